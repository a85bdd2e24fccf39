//! ApplicationConfigurations in each mode of apply-once, on embedded clusters and on real API servers.

#![allow(clippy::unwrap_used, clippy::needless_pass_by_value, reason = "tests")]

use std::sync::Arc;

use crate::fleet::*;

use bellwether_apiserver::HUB;
use bellwether_application::configuration::apply_once::ApplyOnce;
use bellwether_controllers::{Hub, application_configuration, component};
use serde_json::{Value, json};

cases! {
    objects_carry_what_they_were_applied_for,
    off_undoes_changes_and_deletions,
    on_keeps_changes_and_creates_again,
    on_applies_again_for_a_new_generation_and_a_new_revision,
    force_keeps_changes_and_deletions,
    force_brings_the_trait_back_for_a_new_generation_alone,
    force_brings_both_back_for_a_new_revision,
    force_creates_a_workload_that_waited_for_a_value,
    a_workload_that_waited_is_created_for_a_named_revision_too,
    parameters_and_revisions_are_used,
    what_is_dropped_is_deleted,
    workloads_that_run_are_not_deleted_with_apply_once,
    what_is_wrong_is_said_and_goes_away,
    objects_of_others_are_not_touched,
    objects_elsewhere_go_with_the_configuration,
    workloads_named_after_revisions_are_kept,
    nothing_is_written_when_nothing_changes,
    a_new_process_carries_on,
}

/// Every case on real API servers, one after the other.
#[tokio::test(flavor = "multi_thread")]
async fn every_case_holds_on_real_servers() {
    let pair = match RealPair::start().await {
        Ok(pair) => Arc::new(pair),
        Err(reason) => return bellwether_testkit::skip(reason),
    };
    for (name, case) in ALL {
        eprintln!("{name}");
        pair.clean().await;
        let mut fleet = Fleet::on_real_servers(&pair).await;
        case(&mut fleet).await;
    }
}

fn start(fleet: &mut Fleet, mode: ApplyOnce) {
    let hub = Hub::new(fleet.controller_client(HUB), fleet.clock.clone());
    fleet.run(component::run(hub.clone()));
    fleet.run(application_configuration::run(hub, mode));
}

fn named(api_version: &str, kind: &str, name: &str) -> Value {
    json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": name, "namespace": "default"}})
}

fn configuration(components: Value) -> Value {
    let mut object = named(
        "core.oam.dev/v1alpha2",
        "ApplicationConfiguration",
        "example-appconfig",
    );
    object["spec"] = json!({"components": components});
    object
}

fn component(image: &str) -> Value {
    let mut object = named("core.oam.dev/v1alpha2", "Component", "example-component");
    object["spec"] = json!({"workload": {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "sample"}},
            "template": {
                "metadata": {"labels": {"app": "sample"}},
                "spec": {"containers": [{"name": "sample-app", "image": image}]},
            },
        },
    }});
    object
}

fn deployment() -> Value {
    named("apps/v1", "Deployment", "example-component")
}

/// A trait that somebody else acts on; ConfigMaps will do.
fn settings() -> Value {
    named("v1", "ConfigMap", "settings")
}

fn settings_trait(value: &str) -> Value {
    json!({"trait": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"},
        "data": {"key": value}}})
}

/// The component with one trait.
fn components(value: &str) -> Value {
    json!([{"componentName": "example-component", "traits": [settings_trait(value)]}])
}

fn image(deployment: &Value) -> &Value {
    &deployment["spec"]["template"]["spec"]["containers"][0]["image"]
}

async fn patch_image(fleet: &Fleet, image: &str) {
    let patch = json!({"spec": {"template": {"spec": {"containers": [{"name": "sample-app", "image": image}]}}}});
    let kind = "application/strategic-merge-patch+json";
    fleet
        .send(HUB, "PATCH", &path(&deployment()), Some(&patch), kind)
        .await
        .unwrap();
}

/// Waits until something is so of an object on the hub, and returns it.
async fn until(fleet: &Fleet, object: &Value, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
    let found = fleet
        .until(HUB, object, what, |object| object.is_some_and(&holds))
        .await;
    found.unwrap()
}

/// Waits until the ApplicationConfiguration is applied in its present generation, and returns it.
async fn until_synced(fleet: &Fleet) -> Value {
    let object = configuration(json!([]));
    until(fleet, &object, "it is applied", |object| {
        object["status"]["observedGeneration"] == object["metadata"]["generation"]
            && condition(&object["status"], "Synced")["status"] == "True"
    })
    .await
}

async fn until_problem(fleet: &Fleet, message: &str) -> Value {
    let object = configuration(json!([]));
    until(fleet, &object, message, |object| {
        let synced = condition(&object["status"], "Synced");
        synced["status"] == "False" && synced["message"] == message
    })
    .await
}

/// Applies the component with its trait, and waits until it is there.
async fn apply(fleet: &Fleet) {
    fleet.create(HUB, component("sample/app:1.0")).await;
    fleet.create(HUB, configuration(components("a"))).await;
    until_synced(fleet).await;
    fleet.until_there(HUB, &deployment()).await;
    fleet.until_there(HUB, &settings()).await;
}

/// Lets everybody do what they want to do.
async fn settle(fleet: &Fleet) {
    fleet.pass(30_000).await;
}

async fn change_by_others(fleet: &Fleet) {
    patch_image(fleet, "sample/app:2.0").await;
    fleet
        .merge(HUB, &settings(), json!({"data": {"key": "theirs"}}))
        .await;
}

async fn delete_by_others(fleet: &Fleet) {
    fleet.delete(HUB, &deployment()).await;
    fleet.delete(HUB, &settings()).await;
}

/// What is there: the image of the deployment, and the value of the trait.
async fn state(fleet: &Fleet) -> [Option<String>; 2] {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let deployment = fleet.get(HUB, &deployment()).await;
    let settings = fleet.get(HUB, &settings()).await;
    [
        deployment.map(|it| text(image(&it))),
        settings.map(|it| text(&it["data"]["key"])),
    ]
}

async fn until_state(fleet: &Fleet, expected: [Option<&str>; 2]) {
    let expected = expected.map(|it| it.map(str::to_owned));
    for _ in 0..400 {
        if state(fleet).await == expected {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(25)).await;
    }
    assert_eq!(state(fleet).await, expected);
}

/// Things stay as they are.
async fn check_state(fleet: &Fleet, expected: [Option<&str>; 2]) {
    settle(fleet).await;
    assert_eq!(state(fleet).await, expected.map(|it| it.map(str::to_owned)));
    until_synced(fleet).await;
}

/// A new generation of the ApplicationConfiguration, with another value in the trait.
async fn bump_generation(fleet: &Fleet, value: &str) {
    let patch = json!({"spec": {"components": components(value)}});
    fleet.merge(HUB, &configuration(json!([])), patch).await;
    until_synced(fleet).await;
}

async fn change_component(fleet: &Fleet, image: &str) {
    let patch = json!({"spec": component(image)["spec"]});
    fleet.merge(HUB, &component(image), patch).await;
    until(fleet, &component(image), "it has a revision", |it| {
        it["status"]["observedGeneration"] == it["metadata"]["generation"]
    })
    .await;
}

async fn objects_carry_what_they_were_applied_for(fleet: &mut Fleet) {
    start(fleet, ApplyOnce::Off);
    apply(fleet).await;
    let found = fleet.get(HUB, &deployment()).await.unwrap();
    let metadata = &found["metadata"];
    let labels = json!({
        "app.oam.dev/component": "example-component",
        "app.oam.dev/name": "example-appconfig",
        "app.oam.dev/resourceType": "WORKLOAD",
        "app.oam.dev/revision": "example-component-v1",
    });
    assert_eq!(metadata["labels"], labels);
    assert_eq!(metadata["annotations"]["app.oam.dev/generation"], "1");
    let owner = &metadata["ownerReferences"][0];
    assert_eq!(
        (&owner["kind"], &owner["controller"]),
        (&json!("ApplicationConfiguration"), &json!(true))
    );
    let found = fleet.get(HUB, &settings()).await.unwrap();
    assert_eq!(
        found["metadata"]["labels"]["app.oam.dev/resourceType"],
        "TRAIT"
    );
    let status = until_synced(fleet).await["status"].clone();
    let workload = &status["workloads"][0];
    assert_eq!(workload["componentName"], "example-component");
    assert_eq!(workload["componentRevisionName"], "example-component-v1");
    assert_eq!(workload["appliedComponentRevision"], "example-component-v1");
    assert_eq!(workload["workloadRef"]["name"], "example-component");
    assert_eq!(workload["workloadRef"]["uid"], metadata["uid"]);
    assert_eq!(workload["traits"][0]["appliedGeneration"], 1);
    let revision = named("apps/v1", "ControllerRevision", "example-component-v1");
    let revision = fleet.get(HUB, &revision).await.unwrap();
    assert_eq!(revision["revision"], 1);
    assert_eq!(revision["data"]["spec"]["workload"]["kind"], "Deployment");
    assert_eq!(
        revision["metadata"]["labels"]["controller.oam.dev/component"],
        "example-component"
    );
}

async fn off_undoes_changes_and_deletions(fleet: &mut Fleet) {
    start(fleet, ApplyOnce::Off);
    apply(fleet).await;
    let ours = [Some("sample/app:1.0"), Some("a")];
    change_by_others(fleet).await;
    until_state(fleet, ours).await;
    delete_by_others(fleet).await;
    until_state(fleet, ours).await;
    change_component(fleet, "sample/app:3.0").await;
    until_state(fleet, [Some("sample/app:3.0"), Some("a")]).await;
}

async fn on_keeps_changes_and_creates_again(fleet: &mut Fleet) {
    start(fleet, ApplyOnce::On);
    apply(fleet).await;
    change_by_others(fleet).await;
    check_state(fleet, [Some("sample/app:2.0"), Some("theirs")]).await;
    delete_by_others(fleet).await;
    until_state(fleet, [Some("sample/app:1.0"), Some("a")]).await;
}

async fn on_applies_again_for_a_new_generation_and_a_new_revision(fleet: &mut Fleet) {
    start(fleet, ApplyOnce::On);
    apply(fleet).await;
    change_by_others(fleet).await;
    bump_generation(fleet, "b").await;
    until_state(fleet, [Some("sample/app:1.0"), Some("b")]).await;
    let found = fleet.get(HUB, &deployment()).await.unwrap();
    assert_eq!(
        found["metadata"]["annotations"]["app.oam.dev/generation"],
        "2"
    );
    change_by_others(fleet).await;
    check_state(fleet, [Some("sample/app:2.0"), Some("theirs")]).await;
    change_component(fleet, "sample/app:3.0").await;
    until_state(fleet, [Some("sample/app:3.0"), Some("b")]).await;
    let found = fleet.get(HUB, &deployment()).await.unwrap();
    assert_eq!(
        found["metadata"]["labels"]["app.oam.dev/revision"],
        "example-component-v2"
    );
}

async fn force_keeps_changes_and_deletions(fleet: &mut Fleet) {
    start(fleet, ApplyOnce::Force);
    apply(fleet).await;
    change_by_others(fleet).await;
    check_state(fleet, [Some("sample/app:2.0"), Some("theirs")]).await;
    delete_by_others(fleet).await;
    check_state(fleet, [None, None]).await;
}

async fn force_brings_the_trait_back_for_a_new_generation_alone(fleet: &mut Fleet) {
    start(fleet, ApplyOnce::Force);
    apply(fleet).await;
    delete_by_others(fleet).await;
    settle(fleet).await;
    bump_generation(fleet, "b").await;
    until_state(fleet, [None, Some("b")]).await;
    check_state(fleet, [None, Some("b")]).await;
}

async fn force_brings_both_back_for_a_new_revision(fleet: &mut Fleet) {
    start(fleet, ApplyOnce::Force);
    apply(fleet).await;
    delete_by_others(fleet).await;
    check_state(fleet, [None, None]).await;
    change_component(fleet, "sample/app:3.0").await;
    until_state(fleet, [Some("sample/app:3.0"), Some("a")]).await;
}

/// The component waits for a value of its trait.
fn waiting(component: Value) -> Value {
    let mut component = component;
    let mut source = settings_trait("a");
    source["dataOutputs"] = json!([{"name": "ready", "fieldPath": "data.ready"}]);
    component["traits"] = json!([source]);
    component["dataInputs"] = json!([{"valueFrom": {"dataOutputName": "ready"},
        "toFieldPaths": ["metadata.annotations.ready"]}]);
    json!([component])
}

async fn check_waiting(fleet: &mut Fleet, component: Value) {
    start(fleet, ApplyOnce::Force);
    fleet.create(HUB, configuration(waiting(component))).await;
    fleet.until_there(HUB, &settings()).await;
    let object = configuration(json!([]));
    let found = until(fleet, &object, "the value is waited for", |it| {
        it["status"]["dependency"]["unsatisfied"][0]["reason"] == "data.ready is empty"
    })
    .await;
    assert_eq!(
        found["status"]["dependency"]["unsatisfied"][0]["to"]["kind"],
        "Deployment"
    );
    assert_eq!(
        found["status"]["workloads"][0]["dependencyUnsatisfied"],
        true
    );
    settle(fleet).await;
    assert_eq!(state(fleet).await[0], None);
    fleet
        .merge(HUB, &settings(), json!({"data": {"ready": "yes"}}))
        .await;
    let found = fleet.until_there(HUB, &deployment()).await;
    assert_eq!(found["metadata"]["annotations"]["ready"], "yes");
    let object = configuration(json!([]));
    until(fleet, &object, "nothing is waited for", |it| {
        it["status"]["dependency"].is_null()
            && it["status"]["workloads"][0]["appliedComponentRevision"] == "example-component-v1"
    })
    .await;
    fleet.delete(HUB, &deployment()).await;
    settle(fleet).await;
    assert_eq!(state(fleet).await[0], None);
}

async fn force_creates_a_workload_that_waited_for_a_value(fleet: &mut Fleet) {
    fleet.create(HUB, component("sample/app:1.0")).await;
    check_waiting(fleet, json!({"componentName": "example-component"})).await;
}

async fn a_workload_that_waited_is_created_for_a_named_revision_too(fleet: &mut Fleet) {
    fleet.create(HUB, component("sample/app:1.0")).await;
    check_waiting(fleet, json!({"revisionName": "example-component-v1"})).await;
}

async fn parameters_and_revisions_are_used(fleet: &mut Fleet) {
    start(fleet, ApplyOnce::Off);
    let mut object = component("sample/app:1.0");
    object["spec"]["parameters"] = json!([{"name": "image", "required": true,
        "fieldPaths": ["spec.template.spec.containers[0].image"]}]);
    fleet.create(HUB, object).await;
    fleet
        .create(
            HUB,
            configuration(json!([{"componentName": "example-component"}])),
        )
        .await;
    let missing = "cannot render components: component \"example-component\": required parameter \"image\" not specified";
    until_problem(fleet, missing).await;
    let with_image = |component: Value| {
        let mut component = component;
        component["parameterValues"] = json!([{"name": "image", "value": "sample/app:9"}]);
        json!({"spec": {"components": [component]}})
    };
    let patch = with_image(json!({"componentName": "example-component"}));
    fleet.merge(HUB, &configuration(json!([])), patch).await;
    until_state(fleet, [Some("sample/app:9"), None]).await;
    // A revision stays what it was.
    let patch = json!({"spec": {"workload": {"spec": {"replicas": 5}}}});
    fleet.merge(HUB, &component(""), patch).await;
    until(fleet, &deployment(), "the latest revision is used", |it| {
        it["spec"]["replicas"] == 5
    })
    .await;
    let patch = with_image(json!({"revisionName": "example-component-v1"}));
    fleet.merge(HUB, &configuration(json!([])), patch).await;
    let found = until(fleet, &deployment(), "the first revision is used", |it| {
        it["spec"]["replicas"] == 2
    })
    .await;
    assert_eq!(
        found["metadata"]["labels"]["app.oam.dev/revision"],
        "example-component-v1"
    );
}

async fn what_is_dropped_is_deleted(fleet: &mut Fleet) {
    start(fleet, ApplyOnce::Off);
    apply(fleet).await;
    let without_trait = json!({"spec": {"components": [{"componentName": "example-component"}]}});
    fleet
        .merge(HUB, &configuration(json!([])), without_trait)
        .await;
    until_state(fleet, [Some("sample/app:1.0"), None]).await;
    let nothing = json!({"spec": {"components": []}});
    fleet.merge(HUB, &configuration(json!([])), nothing).await;
    until_state(fleet, [None, None]).await;
    let found = until_synced(fleet).await;
    assert_eq!(found["status"]["workloads"], Value::Null);
}

async fn workloads_that_run_are_not_deleted_with_apply_once(fleet: &mut Fleet) {
    start(fleet, ApplyOnce::On);
    apply(fleet).await;
    let nothing = json!({"spec": {"components": []}});
    fleet.merge(HUB, &configuration(json!([])), nothing).await;
    let refusal = "cannot garbage collect components: Deployment example-component: can't delete workload with replicas 2 in apply once only mode";
    until_problem(fleet, refusal).await;
    until_state(fleet, [Some("sample/app:1.0"), None]).await;
    fleet
        .merge(HUB, &deployment(), json!({"spec": {"replicas": 0}}))
        .await;
    until_state(fleet, [None, None]).await;
    until_synced(fleet).await;
}

async fn what_is_wrong_is_said_and_goes_away(fleet: &mut Fleet) {
    start(fleet, ApplyOnce::Off);
    fleet.create(HUB, configuration(components("a"))).await;
    until_problem(
        fleet,
        "cannot render components: there is no Component \"example-component\"",
    )
    .await;
    fleet.create(HUB, component("sample/app:1.0")).await;
    until_state(fleet, [Some("sample/app:1.0"), Some("a")]).await;
    until_synced(fleet).await;
    let unknown = json!({"spec": {"components": [{"componentName": "example-component", "traits": [
        {"trait": {"apiVersion": "zoo.example/v1", "kind": "Bird", "metadata": {"name": "b"}}}]}]}});
    fleet.merge(HUB, &configuration(json!([])), unknown).await;
    until_problem(
        fleet,
        "cannot apply components: Bird b: its kind is not served here",
    )
    .await;
    fleet
        .merge(
            HUB,
            &configuration(json!([])),
            json!({"spec": {"components": components("a")}}),
        )
        .await;
    until_synced(fleet).await;
}

async fn objects_of_others_are_not_touched(fleet: &mut Fleet) {
    let owner = fleet.create(HUB, named("v1", "ConfigMap", "owner")).await;
    let mut theirs = settings();
    theirs["metadata"]["ownerReferences"] = json!([{"apiVersion": "v1", "kind": "ConfigMap",
        "name": "owner", "uid": owner["metadata"]["uid"], "controller": true}]);
    theirs["data"] = json!({"key": "theirs"});
    fleet.create(HUB, theirs).await;
    start(fleet, ApplyOnce::Off);
    fleet.create(HUB, component("sample/app:1.0")).await;
    let created = fleet.create(HUB, configuration(components("a"))).await;
    let uid = created["metadata"]["uid"].as_str().unwrap();
    let refusal = format!(
        "cannot apply components: ConfigMap settings: existing object is not controlled by UID \"{uid}\""
    );
    until_problem(fleet, &refusal).await;
    settle(fleet).await;
    assert_eq!(
        state(fleet).await,
        [Some("sample/app:1.0".to_owned()), Some("theirs".to_owned())]
    );
}

async fn objects_elsewhere_go_with_the_configuration(fleet: &mut Fleet) {
    let elsewhere = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": MEMBER}});
    start(fleet, ApplyOnce::Off);
    fleet.create(HUB, component("sample/app:1.0")).await;
    let components =
        json!([{"componentName": "example-component", "traits": [{"trait": elsewhere.clone()}]}]);
    fleet.create(HUB, configuration(components)).await;
    let found = fleet.until_there(HUB, &elsewhere).await;
    assert_eq!(found["metadata"]["ownerReferences"], Value::Null);
    let found = until_synced(fleet).await;
    assert_eq!(
        found["status"]["workloads"][0]["traits"][0]["traitRef"]["namespace"],
        MEMBER
    );
    fleet.delete(HUB, &configuration(json!([]))).await;
    fleet.until_gone(HUB, &elsewhere).await;
    fleet.until_gone(HUB, &configuration(json!([]))).await;
}

async fn workloads_named_after_revisions_are_kept(fleet: &mut Fleet) {
    let mut definition = named("core.oam.dev/v1beta1", "TraitDefinition", "settings");
    definition["spec"] = json!({"revisionEnabled": true, "definitionRef": {"name": "configmaps."}});
    let created = fleet.try_create(HUB, definition.clone()).await;
    assert!(created.is_ok() || fleet.is_real());
    start(fleet, ApplyOnce::On);
    fleet.create(HUB, component("sample/app:1.0")).await;
    fleet.create(HUB, configuration(components("a"))).await;
    let deployment = |number: usize| {
        named(
            "apps/v1",
            "Deployment",
            &format!("example-component-v{number}"),
        )
    };
    fleet.until_there(HUB, &deployment(1)).await;
    until_synced(fleet).await;
    change_component(fleet, "sample/app:2.0").await;
    fleet.until_there(HUB, &deployment(2)).await;
    let object = configuration(json!([]));
    let found = until(fleet, &object, "the first one is kept", |it| {
        it["status"]["historyWorkloads"][0]["revision"] == "example-component-v1"
    })
    .await;
    assert_eq!(found["status"]["workloads"].as_array().unwrap().len(), 1);
    settle(fleet).await;
    assert!(fleet.get(HUB, &deployment(1)).await.is_some());
    fleet.delete(HUB, &definition).await;
}

async fn nothing_is_written_when_nothing_changes(fleet: &mut Fleet) {
    start(fleet, ApplyOnce::Off);
    apply(fleet).await;
    settle(fleet).await;
    let versions = async |fleet: &Fleet| {
        let mut versions = Vec::new();
        for object in [
            configuration(json!([])),
            component(""),
            deployment(),
            settings(),
        ] {
            let found = fleet.get(HUB, &object).await.unwrap();
            versions.push(found["metadata"]["resourceVersion"].clone());
        }
        versions
    };
    let before = versions(fleet).await;
    settle(fleet).await;
    assert_eq!(versions(fleet).await, before);
}

async fn a_new_process_carries_on(fleet: &mut Fleet) {
    start(fleet, ApplyOnce::Force);
    apply(fleet).await;
    change_by_others(fleet).await;
    settle(fleet).await;
    fleet.kill_agents();
    fleet.delete(HUB, &deployment()).await;
    start(fleet, ApplyOnce::Force);
    check_state(fleet, [None, Some("theirs")]).await;
    // A process in another mode goes by that.
    fleet.kill_agents();
    start(fleet, ApplyOnce::On);
    until_state(fleet, [Some("sample/app:1.0"), Some("theirs")]).await;
}
