//! Applications on the hub and on members, on embedded clusters.

#![allow(clippy::unwrap_used, clippy::needless_pass_by_value, reason = "tests")]

use std::sync::Arc;

use crate::fleet::*;

use bellwether_apiserver::HUB;
use bellwether_controllers::workflow::WorkflowOptions;
use bellwether_controllers::{Hub, application, definition};
use serde_json::{Value, json};

mod faults;
mod keeping;
pub(crate) mod kills;
mod life;
mod ownership;
mod removal;
mod revisions;
mod workflows;

cases! {
    an_application_is_delivered_and_removed,
    a_change_is_a_revision_and_what_is_left_over_goes,
    drift_is_repaired_at_once,
    what_is_wrong_is_refused_with_the_place,
    what_is_missing_is_said_and_waited_for,
    what_is_wrong_is_said_in_conditions,
    objects_of_others_are_not_touched,
    components_wait_for_those_that_they_depend_on,
    a_component_reaches_a_member_and_its_health_comes_back,
    apply_once_keeps_what_others_changed,
    a_paused_application_is_left_alone,
}

/// Every case on real API servers, one after the other; `BELLWETHER_CASE` picks some.
#[tokio::test(flavor = "multi_thread")]
async fn every_case_holds_on_real_servers() {
    let pair = match RealPair::start().await {
        Ok(pair) => Arc::new(pair),
        Err(reason) => return bellwether_testkit::skip(reason),
    };
    let wanted = crate::works::chosen();
    let all = [
        ALL,
        faults::ALL,
        keeping::ALL,
        life::ALL,
        ownership::ALL,
        removal::ALL,
        revisions::ALL,
        workflows::ALL,
    ];
    // What is refused when it is written is asked of webhooks there, which have tests of their own.
    let refused = "what_is_wrong_is_refused_with_the_place";
    for (name, case) in all.into_iter().flatten() {
        if !name.contains(&wanted) || *name == refused {
            continue;
        }
        eprintln!("{name}");
        pair.clean().await;
        let mut fleet = Fleet::on_real_servers(&pair).await;
        case(&mut fleet).await;
    }
}

fn start(fleet: &mut Fleet) {
    start_with(fleet, WorkflowOptions::default());
}

fn start_with(fleet: &mut Fleet, options: WorkflowOptions) {
    let hub = Hub::new(fleet.controller_client(HUB), fleet.clock.clone());
    fleet.run(definition::run(hub.clone()));
    fleet.run(application::run(hub, options));
}

/// The same, and counts what the controllers send.
fn start_counted(fleet: &mut Fleet) -> Arc<Counts> {
    let counts: Arc<Counts> = Arc::default();
    let hub = Hub::new(fleet.counting(HUB, &counts), fleet.clock.clone());
    fleet.run(definition::run(hub.clone()));
    fleet.run(application::run(hub, WorkflowOptions::default()));
    counts
}

fn app(spec: Value) -> Value {
    app_named("shop", spec)
}

fn app_named(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "core.oam.dev/v1beta1", "kind": "Application",
        "metadata": {"name": name, "namespace": "default"}, "spec": spec})
}

fn tracker(name: &str) -> Value {
    json!({"apiVersion": "core.oam.dev/v1beta1", "kind": "ResourceTracker", "metadata": {"name": name}})
}

/// The message of a condition of an application.
fn message_of<'a>(app: &'a Value, kind: &str) -> &'a str {
    condition(&app["status"], kind)["message"]
        .as_str()
        .unwrap_or_default()
}

/// Waits until an event about an application has this text.
async fn until_event(fleet: &Fleet, app: &str, text: &str) {
    for _ in 0..100 {
        let events = fleet.list(HUB, "/api/v1/namespaces/default/events").await;
        let is_it = |event: &Value| {
            event["involvedObject"]["name"] == app
                && event["message"]
                    .as_str()
                    .is_some_and(|it| it.contains(text))
        };
        if events.iter().any(is_it) {
            return;
        }
        fleet.pass(100).await;
    }
    panic!("no event of {app} says {text:?}");
}

/// Creates an application as soon as the server knows the definitions that it uses.
async fn create_when_known(fleet: &Fleet, app: &Value) {
    for _ in 0..100 {
        if fleet.try_create(HUB, app.clone()).await.is_ok() {
            return;
        }
        fleet.pass(50).await;
    }
    fleet.create(HUB, app.clone()).await;
}

/// Has the hub know the member as a cluster.
async fn register_member(fleet: &Fleet) {
    let cluster = json!({"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": MEMBER}, "spec": {"hubAcceptsClient": true}});
    fleet.create(HUB, cluster).await;
}

/// A component that is a ConfigMap.
fn settings(name: &str, value: &str) -> Value {
    json!({"name": name, "type": "k8s-objects", "properties": {"objects": [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": value}}]}})
}

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "default"}})
}

/// Waits until something is so of an object on the hub, and returns it.
async fn until(fleet: &Fleet, object: &Value, what: &str, holds: impl Fn(&Value) -> bool) -> Value {
    let found = fleet
        .until(HUB, object, what, |object| object.is_some_and(&holds))
        .await;
    found.unwrap()
}

async fn until_phase(fleet: &Fleet, app: &Value, phase: &str) -> Value {
    let generation = fleet.get(HUB, app).await.unwrap()["metadata"]["generation"].clone();
    let phase = phase.to_owned();
    until(fleet, app, "it is in that phase", |app| {
        app["status"]["status"] == phase && app["status"]["observedGeneration"] == generation
    })
    .await
}

async fn an_application_is_delivered_and_removed(fleet: &mut Fleet) {
    start(fleet);
    let app = app(json!({"components": [settings("one", "1")]}));
    fleet.create(HUB, app.clone()).await;
    let told = until_phase(fleet, &app, "running").await;
    for kind in ["Parsed", "Revision", "Render", "Workflow", "Ready"] {
        assert_eq!(
            condition(&told["status"], kind)["status"],
            "True",
            "{kind}: {told}"
        );
    }
    assert_eq!(told["status"]["latestRevision"]["name"], "shop-v1");
    assert_eq!(told["status"]["services"][0]["healthy"], true);
    let object = fleet.get(HUB, &map("one")).await.unwrap();
    assert_eq!(object["metadata"]["labels"]["app.oam.dev/component"], "one");
    let tracker = json!({"apiVersion": "core.oam.dev/v1beta1", "kind": "ResourceTracker", "metadata": {"name": "shop-v1-default"}});
    let tracker_now = fleet.get(HUB, &tracker).await.unwrap();
    assert_eq!(tracker_now["spec"]["managedResources"][0]["name"], "one");
    fleet.delete(HUB, &app).await;
    fleet.until_gone(HUB, &app).await;
    fleet.until_gone(HUB, &map("one")).await;
    fleet.until_gone(HUB, &tracker).await;
}

async fn a_change_is_a_revision_and_what_is_left_over_goes(fleet: &mut Fleet) {
    start(fleet);
    let app = app(json!({"components": [settings("one", "1"), settings("two", "2")]}));
    fleet.create(HUB, app.clone()).await;
    until_phase(fleet, &app, "running").await;
    fleet
        .merge(
            HUB,
            &app,
            json!({"spec": {"components": [settings("one", "9")]}}),
        )
        .await;
    let told = until_phase(fleet, &app, "running").await;
    assert_eq!(told["status"]["latestRevision"]["name"], "shop-v2");
    fleet.until_gone(HUB, &map("two")).await;
    assert_eq!(
        fleet.get(HUB, &map("one")).await.unwrap()["data"]["key"],
        "9"
    );
    // What was before is the first revision again.
    fleet
        .merge(
            HUB,
            &app,
            json!({"spec": {"components": [settings("one", "1"), settings("two", "2")]}}),
        )
        .await;
    let told = until_phase(fleet, &app, "running").await;
    assert_eq!(told["status"]["latestRevision"]["name"], "shop-v1");
    fleet.until_there(HUB, &map("two")).await;
}

async fn drift_is_repaired_at_once(fleet: &mut Fleet) {
    start(fleet);
    let app = app(json!({"components": [settings("one", "1")]}));
    fleet.create(HUB, app.clone()).await;
    until_phase(fleet, &app, "running").await;
    fleet
        .merge(
            HUB,
            &map("one"),
            json!({"data": {"key": "drifted", "foreign": "stays"}}),
        )
        .await;
    let repaired = until(fleet, &map("one"), "its value", |map| {
        map["data"]["key"] == "1"
    })
    .await;
    assert_eq!(repaired["data"]["foreign"], "stays");
    fleet.delete(HUB, &map("one")).await;
    fleet.until_there(HUB, &map("one")).await;
}

/// A definition of a component that is a ConfigMap.
fn paint(colour: &str) -> Value {
    let template = format!(
        "output: {{apiVersion: \"v1\", kind: \"ConfigMap\", data: colour: \"{colour}\"}}\nparameter: {{}}"
    );
    json!({"apiVersion": "core.oam.dev/v1beta1", "kind": "ComponentDefinition",
        "metadata": {"name": "paint", "namespace": "default"},
        "spec": {"workload": {"type": "configmaps"}, "schematic": {"cue": {"template": template}}}})
}

async fn what_is_wrong_is_refused_with_the_place(fleet: &mut Fleet) {
    let refusal = |refused: Result<Value, kube::Error>| match refused {
        Err(kube::Error::Api(status)) => (status.code, status.message.clone()),
        other => panic!("{other:?}"),
    };
    let twice = json!({"components": [settings("wall", "1"), settings("wall", "2")]});
    let (code, message) = refusal(fleet.try_create(HUB, app(twice)).await);
    assert_eq!(code, 400);
    assert!(
        message.contains("there are two components \"wall\""),
        "{message}"
    );
    let mut broken = paint("red");
    broken["spec"]["schematic"]["cue"]["template"] = "output: {\n\tkind: nowhere.kind\n}".into();
    let (_, message) = refusal(fleet.try_create(HUB, broken).await);
    assert!(
        message.contains("spec.schematic.cue.template:2:8: ")
            && message.contains("bellwether def vet"),
        "{message}"
    );
}

/// What an application refers to may come after it.
async fn what_is_missing_is_said_and_waited_for(fleet: &mut Fleet) {
    start(fleet);
    let steps = json!({"ref": "plan"});
    let app = app(json!({"components": [{"name": "wall", "type": "paint"}], "workflow": steps}));
    fleet.create(HUB, app.clone()).await;
    until(fleet, &app, "that a type is missing", |app| {
        message_of(app, "Parsed").contains("component definition [paint]")
    })
    .await;
    until_event(fleet, "shop", "component definition [paint]").await;
    fleet.create(HUB, paint("red")).await;
    until(fleet, &app, "that the workflow is missing", |app| {
        message_of(app, "Parsed")
            == "failed to parseWorkflowSteps: Workflow.core.oam.dev \"plan\" not found"
    })
    .await;
    let step =
        json!({"name": "go", "type": "apply-component", "properties": {"component": "wall"}});
    let plan = json!({"apiVersion": "core.oam.dev/v1alpha1", "kind": "Workflow",
        "metadata": {"name": "plan", "namespace": "default"}, "steps": [step]});
    fleet.create(HUB, plan).await;
    until_phase(fleet, &app, "running").await;
}

async fn what_is_wrong_is_said_in_conditions(fleet: &mut Fleet) {
    start(fleet);
    // Steps and overrides can still give parameters that are missing, so they are no reason to refuse.
    let missing =
        json!({"components": [{"name": "web", "type": "webservice", "properties": {"cpu": "1"}}]});
    let app = app(missing);
    fleet.create(HUB, app.clone()).await;
    let told = until(fleet, &app, "what is missing", |app| {
        message_of(app, "Ready").contains("parameter.image")
    })
    .await;
    for kind in ["Workflow", "Ready"] {
        let condition = condition(&told["status"], kind);
        assert_eq!(condition["status"], "False");
        assert!(
            condition["message"]
                .as_str()
                .unwrap()
                .contains("parameter.image"),
            "{condition}"
        );
    }
}

async fn objects_of_others_are_not_touched(fleet: &mut Fleet) {
    start(fleet);
    let mut own = map("one");
    own["data"] = json!({"key": "theirs"});
    fleet.create(HUB, own).await;
    let app = app(json!({"components": [settings("one", "1")]}));
    fleet.create(HUB, app.clone()).await;
    until(fleet, &app, "whose it is", |app| {
        message_of(app, "Ready").contains("belongs to no application")
    })
    .await;
    assert_eq!(
        fleet.get(HUB, &map("one")).await.unwrap()["data"]["key"],
        "theirs"
    );
    let take_over = json!([{"name": "t", "type": "take-over", "properties": {"rules": [{"selector": {"componentNames": ["one"]}}]}}]);
    fleet
        .merge(HUB, &app, json!({"spec": {"policies": take_over}}))
        .await;
    until_phase(fleet, &app, "running").await;
    assert_eq!(
        fleet.get(HUB, &map("one")).await.unwrap()["data"]["key"],
        "1"
    );
}

/// What a controller of deployments says of one that serves.
fn serving() -> Value {
    json!({"observedGeneration": 9, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1})
}

async fn components_wait_for_those_that_they_depend_on(fleet: &mut Fleet) {
    start(fleet);
    let web = json!({"name": "web", "type": "webservice", "properties": {"image": "nginx"},
        "traits": [{"type": "scaler", "properties": {"replicas": 1}}]});
    let mut after = settings("after", "1");
    after["dependsOn"] = json!(["web"]);
    let app = app(json!({"components": [web, after]}));
    fleet.create(HUB, app.clone()).await;
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"}});
    fleet.until_there(HUB, &deployment).await;
    let told = until_phase(fleet, &app, "runningWorkflow").await;
    let steps = &told["status"]["workflow"]["steps"];
    assert_eq!(
        (&steps[0]["phase"], &steps[1]["phase"]),
        (&json!("running"), &json!("pending")),
        "{steps}"
    );
    assert!(fleet.get(HUB, &map("after")).await.is_none());
    let ready = condition(&told["status"], "Ready");
    assert!(
        ready["message"]
            .as_str()
            .unwrap()
            .contains("step web: wait healthy"),
        "{ready}"
    );
    fleet.merge_status(HUB, &deployment, serving()).await;
    until_phase(fleet, &app, "running").await;
    assert!(fleet.get(HUB, &map("after")).await.is_some());
}

async fn a_component_reaches_a_member_and_its_health_comes_back(fleet: &mut Fleet) {
    start(fleet);
    register_member(fleet).await;
    let web = json!({"name": "web", "type": "webservice", "properties": {"image": "nginx"},
        "traits": [{"type": "scaler", "properties": {"replicas": 1}}]});
    let policy = json!({"name": "there", "type": "topology", "properties": {"clusters": [MEMBER]}});
    let app = app(json!({"components": [web], "policies": [policy]}));
    fleet.create(HUB, app.clone()).await;
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"}});
    fleet.until_there(MEMBER, &deployment).await;
    fleet.merge_status(MEMBER, &deployment, serving()).await;
    let told = until_phase(fleet, &app, "running").await;
    assert_eq!(told["status"]["services"][0]["cluster"], MEMBER);
    assert_eq!(told["status"]["services"][0]["message"], "Ready:1/1");
    fleet.delete(HUB, &app).await;
    fleet.until_gone(HUB, &app).await;
    fleet.until_gone(MEMBER, &deployment).await;
}

async fn apply_once_keeps_what_others_changed(fleet: &mut Fleet) {
    start(fleet);
    let policy = json!([{"name": "once", "type": "apply-once", "properties": {"enable": true}}]);
    let app = app(json!({"components": [settings("one", "1")], "policies": policy}));
    fleet.create(HUB, app.clone()).await;
    until_phase(fleet, &app, "running").await;
    fleet
        .merge(HUB, &map("one"), json!({"data": {"key": "drifted"}}))
        .await;
    fleet.pass(2_000).await;
    assert_eq!(
        fleet.get(HUB, &map("one")).await.unwrap()["data"]["key"],
        "drifted"
    );
    fleet
        .merge(
            HUB,
            &app,
            json!({"spec": {"components": [settings("one", "2")]}}),
        )
        .await;
    until(fleet, &map("one"), "its new value", |map| {
        map["data"]["key"] == "2"
    })
    .await;
}

async fn a_paused_application_is_left_alone(fleet: &mut Fleet) {
    start(fleet);
    let mut app = app(json!({"components": [settings("one", "1")]}));
    app["metadata"]["labels"] = json!({"controller.core.oam.dev/pause": "true"});
    fleet.create(HUB, app.clone()).await;
    fleet.pass(2_000).await;
    assert!(fleet.get(HUB, &map("one")).await.is_none());
    fleet
        .merge(
            HUB,
            &app,
            json!({"metadata": {"labels": {"controller.core.oam.dev/pause": null}}}),
        )
        .await;
    until_phase(fleet, &app, "running").await;
}
