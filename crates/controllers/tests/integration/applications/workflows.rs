//! Workflows of applications: steps of any kind, control by the status, restarts, and a hub that is killed.

use super::*;
use bellwether_controllers::workflow_run;

cases! {
    steps_of_any_kind_are_carried_out_and_what_they_apply_is_collected,
    a_workflow_is_ended_by_its_status,
    an_annotation_carries_a_workflow_out_again,
    a_workflow_is_carried_out_again_at_a_time,
    a_workflow_is_carried_out_again_after_each_end,
    a_hub_that_is_killed_goes_on_where_it_was,
    a_step_that_consists_of_an_object_waits_for_it,
    components_hand_values_on,
    a_step_goes_back_to_what_was_delivered_before,
    a_step_that_goes_back_may_set_the_spec_back,
    a_first_revision_has_nothing_to_go_back_to,
    a_configuration_goes_with_its_application,
    an_environment_of_a_policy_is_deployed_to,
    environments_of_a_policy_are_deployed_to_without_steps,
    a_step_reads_fields_of_an_object_of_a_member,
}

fn put(name: &str) -> Value {
    let mut object = map(name);
    object["data"] = json!({"from": "a step"});
    json!({"name": name, "type": "apply-object", "properties": {"value": object}})
}

fn hold() -> Value {
    json!({"name": "hold", "type": "suspend", "properties": {"message": "go on?"}})
}

fn go(component: &str) -> Value {
    json!({"name": component, "type": "apply-component", "properties": {"component": component}})
}

fn phases(app: &Value) -> Vec<String> {
    let steps = app["status"]["workflow"]["steps"].as_array().unwrap();
    steps
        .iter()
        .map(|step| format!("{} {}", step["name"], step["phase"]).replace('"', ""))
        .collect()
}

async fn steps_of_any_kind_are_carried_out_and_what_they_apply_is_collected(fleet: &mut Fleet) {
    start(fleet);
    let steps = json!([put("extra"), hold(), go("one")]);
    let app = app(json!({"components": [settings("one", "1")], "workflow": {"steps": steps}}));
    fleet.create(HUB, app.clone()).await;
    let told = until_phase(fleet, &app, "workflowSuspending").await;
    assert_eq!(phases(&told), ["extra succeeded", "hold suspending"]);
    assert_eq!(told["status"]["workflow"]["stepIndex"], 1);
    assert_eq!(told["status"]["workflow"]["appRevision"], "shop-v1");
    let message = &condition(&told["status"], "Ready")["message"];
    assert_eq!(message, "step hold: go on?");
    let extra = fleet.get(HUB, &map("extra")).await.unwrap();
    assert_eq!(extra["metadata"]["labels"]["app.oam.dev/name"], "shop");
    assert!(fleet.get(HUB, &map("one")).await.is_none());
    fleet
        .merge_status(HUB, &app, json!({"workflow": {"suspend": false}}))
        .await;
    let told = until_phase(fleet, &app, "running").await;
    assert_eq!(told["status"]["workflow"]["status"], "succeeded");
    assert_eq!(told["status"]["workflow"]["stepIndex"], 3);
    // What a step applied is kept like the objects of components.
    fleet.delete(HUB, &map("extra")).await;
    fleet.until_there(HUB, &map("extra")).await;
    let steps = json!([go("one")]);
    fleet
        .merge(HUB, &app, json!({"spec": {"workflow": {"steps": steps}}}))
        .await;
    until_phase(fleet, &app, "running").await;
    fleet.until_gone(HUB, &map("extra")).await;
}

async fn a_workflow_is_ended_by_its_status(fleet: &mut Fleet) {
    start(fleet);
    let steps = json!([hold(), go("one")]);
    let app = app(json!({"components": [settings("one", "1")], "workflow": {"steps": steps}}));
    fleet.create(HUB, app.clone()).await;
    until_phase(fleet, &app, "workflowSuspending").await;
    fleet
        .merge_status(HUB, &app, json!({"workflow": {"terminated": true}}))
        .await;
    let told = until_phase(fleet, &app, "workflowTerminated").await;
    assert_eq!(phases(&told), ["hold failed", "one skipped"]);
    assert!(fleet.get(HUB, &map("one")).await.is_none());
    // A cleared status begins again.
    fleet
        .merge_status(HUB, &app, json!({"workflow": null}))
        .await;
    until_phase(fleet, &app, "workflowSuspending").await;
}

async fn an_annotation_carries_a_workflow_out_again(fleet: &mut Fleet) {
    start(fleet);
    let app = app(json!({"components": [settings("one", "1")]}));
    fleet.create(HUB, app.clone()).await;
    let id = |app: &Value| app["status"]["workflow"]["steps"][0]["id"].clone();
    let first = id(&until_phase(fleet, &app, "running").await);
    fleet.pass(2_000).await;
    let asked = json!({"metadata": {"annotations": {"app.oam.dev/restart-workflow": "true"}}});
    fleet.merge(HUB, &app, asked).await;
    let again = until(fleet, &app, "another round", |app| {
        app["status"]["status"] == "running" && id(app) != first
    })
    .await;
    let annotations = &again["metadata"]["annotations"];
    assert!(
        annotations["app.oam.dev/restart-workflow"].is_null(),
        "{again}"
    );
    fleet.pass(5_000).await;
    let later = fleet.get(HUB, &app).await.unwrap();
    assert_eq!(id(&later), id(&again), "it is carried out once");
}

async fn a_workflow_is_carried_out_again_at_a_time(fleet: &mut Fleet) {
    start(fleet);
    let app = app(json!({"components": [settings("one", "1")]}));
    fleet.create(HUB, app.clone()).await;
    let id = |app: &Value| app["status"]["workflow"]["steps"][0]["id"].clone();
    let first = id(&until_phase(fleet, &app, "running").await);
    let at = fleet.clock.now() + jiff::SignedDuration::from_secs(4);
    let at = bellwether_json::time::format_time(at);
    let asked = json!({"metadata": {"annotations": {"app.oam.dev/restart-workflow": at}}});
    fleet.merge(HUB, &app, asked).await;
    let told = until(fleet, &app, "when it is carried out again", |app| {
        app["status"]["workflowRestartScheduledAt"] == at
            && app["metadata"]["annotations"]["app.oam.dev/restart-workflow"].is_null()
    })
    .await;
    assert_eq!(id(&told), first);
    fleet.pass(4_000).await;
    until(fleet, &app, "another round", |app| {
        let is_over = app["status"]["workflowRestartScheduledAt"].is_null();
        app["status"]["status"] == "running" && id(app) != first && is_over
    })
    .await;
}

async fn a_workflow_is_carried_out_again_after_each_end(fleet: &mut Fleet) {
    start(fleet);
    let mut app = app(json!({"components": [settings("one", "1")]}));
    app["metadata"]["annotations"] = json!({"app.oam.dev/restart-workflow": "3s"});
    fleet.create(HUB, app.clone()).await;
    let id = |app: &Value| app["status"]["workflow"]["steps"][0]["id"].clone();
    let mut last = id(&until_phase(fleet, &app, "running").await);
    for round in 0..3 {
        fleet.pass(4_000).await;
        let told = until(fleet, &app, "another round", |app| {
            app["status"]["status"] == "running" && id(app) != last
        })
        .await;
        let next = &told["status"]["workflowRestartScheduledAt"];
        let ended = &told["status"]["workflow"]["endTime"];
        assert!(
            next.as_str() > ended.as_str(),
            "{round}: {next} after {ended}"
        );
        last = id(&told);
    }
}

async fn a_hub_that_is_killed_goes_on_where_it_was(fleet: &mut Fleet) {
    start(fleet);
    let steps = json!([put("extra"), hold(), go("one")]);
    let app = app(json!({"components": [settings("one", "1")], "workflow": {"steps": steps}}));
    fleet.create(HUB, app.clone()).await;
    let told = until_phase(fleet, &app, "workflowSuspending").await;
    let ids = |app: &Value| -> Vec<Value> {
        let steps = app["status"]["workflow"]["steps"].as_array().unwrap();
        steps.iter().map(|step| step["id"].clone()).collect()
    };
    fleet.kill_agents();
    fleet
        .merge_status(HUB, &app, json!({"workflow": {"suspend": false}}))
        .await;
    start(fleet);
    let again = until_phase(fleet, &app, "running").await;
    assert_eq!(
        ids(&again)[..2],
        ids(&told)[..],
        "no step is carried out again"
    );
}

async fn a_step_that_consists_of_an_object_waits_for_it(fleet: &mut Fleet) {
    start(fleet);
    let definition = json!({"apiVersion": "core.oam.dev/v1beta1", "kind": "WorkflowStepDefinition",
        "metadata": {"name": "report", "namespace": "default"},
        "spec": {"schematic": {"cue": {"template":
            "output: {apiVersion: \"apps/v1\", kind: \"Deployment\", spec: {selector: matchLabels: a: \"b\", template: {metadata: labels: a: \"b\", spec: containers: [{name: \"c\", image: \"d\"}]}}}\nparameter: {}"}}}});
    fleet.create(HUB, definition).await;
    let steps = json!([{"name": "tell", "type": "report"}, go("one")]);
    let app = app(json!({"components": [settings("one", "1")], "workflow": {"steps": steps}}));
    fleet.create(HUB, app.clone()).await;
    let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "shop-tell", "namespace": "default"}});
    let found = fleet.until_there(HUB, &object).await;
    let known = found["metadata"]["annotations"]["app.oam.dev/workflow-context"].as_str();
    let known: Value = serde_json::from_str(known.unwrap()).unwrap();
    assert_eq!(known["appRevision"], "shop-v1");
    assert_eq!(known["stepName"], "tell");
    let rendered = known["resourcesConfigMap"].as_str().unwrap();
    let rendered = fleet.get(HUB, &map(rendered)).await.unwrap();
    assert!(
        rendered["data"]["one"]
            .as_str()
            .unwrap()
            .contains("ConfigMap")
    );
    let told = until(fleet, &app, "the step waits", |app| {
        app["status"]["workflow"]["steps"][0]["resourceRef"]["name"] == "shop-tell"
    })
    .await;
    assert_eq!(phases(&told), ["tell running"]);
    let generation = found["metadata"]["generation"].clone();
    let done = json!({"type": "workflow-progress", "status": "True", "reason": "Succeeded",
        "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"});
    let status = json!({"observedGeneration": generation, "conditions": [done]});
    fleet.merge_status(HUB, &object, status).await;
    let told = until_phase(fleet, &app, "running").await;
    assert_eq!(phases(&told), ["tell succeeded", "one succeeded"]);
}

async fn components_hand_values_on(fleet: &mut Fleet) {
    start(fleet);
    let mut first = settings("first", "blue");
    first["outputs"] = json!([{"name": "colour", "valueFrom": "output.data.key"}]);
    let mut second = settings("second", "");
    second["inputs"] = json!([{"from": "colour", "parameterKey": "objects[0].data.key"}]);
    let app = app(json!({"components": [second, first]}));
    fleet.create(HUB, app.clone()).await;
    until_phase(fleet, &app, "running").await;
    let found = fleet.get(HUB, &map("second")).await.unwrap();
    assert_eq!(found["data"]["key"], "blue");
    // It stays so.
    fleet
        .merge(HUB, &map("second"), json!({"data": {"key": "drifted"}}))
        .await;
    until(fleet, &map("second"), "its value", |map| {
        map["data"]["key"] == "blue"
    })
    .await;
}

fn back() -> Value {
    json!({"name": "back", "type": "rollback"})
}

/// Lets a workflow apply a second version with another component, and go back at its end.
async fn go_back(fleet: &mut Fleet, app: &Value, last: Value) -> Value {
    fleet.create(HUB, app.clone()).await;
    until_phase(fleet, app, "running").await;
    let mut undone = put("note");
    undone["onRollback"] = json!({"type": "apply-object", "properties": {"value": map("undone")}});
    let spec = json!({"spec": {
        "components": [settings("one", "2"), settings("two", "2")],
        "workflow": {"steps": [undone, go("one"), go("two"), last]},
    }});
    fleet.merge(HUB, app, spec).await;
    until(fleet, app, "the end of the second version", |app| {
        app["status"]["workflow"]["finished"] == true
            && app["status"]["latestRevision"]["name"] != "shop-v1"
            || app["spec"]["components"].as_array().unwrap().len() == 1
    })
    .await
}

async fn a_step_goes_back_to_what_was_delivered_before(fleet: &mut Fleet) {
    start(fleet);
    let app = app(json!({"components": [settings("one", "1")]}));
    let told = go_back(fleet, &app, back()).await;
    let all = [
        "note succeeded",
        "one succeeded",
        "two succeeded",
        "back succeeded",
        "note-on-rollback succeeded",
    ];
    assert_eq!(phases(&told), all);
    let steps = &told["status"]["workflow"]["steps"];
    assert_eq!(steps[3]["message"], "rolled back to shop-v1");
    assert_eq!(told["status"]["status"], "running");
    fleet.until_gone(HUB, &map("two")).await;
    let one = fleet.get(HUB, &map("one")).await.unwrap();
    assert_eq!(one["data"]["key"], "1");
    fleet.until_there(HUB, &map("undone")).await;
    // It stays so, although the spec has not changed.
    fleet
        .merge(HUB, &map("one"), json!({"data": {"key": "drifted"}}))
        .await;
    until(fleet, &map("one"), "its value", |map| {
        map["data"]["key"] == "1"
    })
    .await;
    fleet.pass(2_000).await;
    assert!(fleet.get(HUB, &map("two")).await.is_none());
    // A revision that was taken back is not what a later one goes back to.
    let revision = json!({"apiVersion": "core.oam.dev/v1beta1", "kind": "ApplicationRevision",
        "metadata": {"name": "shop-v2", "namespace": "default"}});
    let revision = fleet.get(HUB, &revision).await.unwrap();
    assert_eq!(revision["status"]["succeeded"], false);
}

async fn a_step_that_goes_back_may_set_the_spec_back(fleet: &mut Fleet) {
    start(fleet);
    let app = app(json!({"components": [settings("one", "1")]}));
    let mut last = back();
    last["properties"] = json!({"updateSpec": true});
    go_back(fleet, &app, last).await;
    let told = until(fleet, &app, "the first version", |app| {
        app["status"]["status"] == "running" && app["status"]["latestRevision"]["name"] == "shop-v1"
    })
    .await;
    assert_eq!(told["spec"]["components"].as_array().unwrap().len(), 1);
    fleet.until_gone(HUB, &map("two")).await;
    let one = fleet.get(HUB, &map("one")).await.unwrap();
    assert_eq!(one["data"]["key"], "1");
}

async fn a_first_revision_has_nothing_to_go_back_to(fleet: &mut Fleet) {
    start(fleet);
    let steps = json!([go("one"), back()]);
    let app = app(json!({"components": [settings("one", "1")], "workflow": {"steps": steps}}));
    fleet.create(HUB, app.clone()).await;
    let told = until_phase(fleet, &app, "workflowFailed").await;
    let step = &told["status"]["workflow"]["steps"][1];
    assert_eq!(step["reason"], "Action");
    assert_eq!(
        step["message"],
        "no revision before this one was delivered whole"
    );
}

async fn a_configuration_goes_with_its_application(fleet: &mut Fleet) {
    start(fleet);
    let mut template = map("config-template-dial");
    template["metadata"]["namespace"] = "vela-system".into();
    template["data"] = json!({"template": "template: {parameter: volume: string, output: {kind: \"Secret\", stringData: loud: parameter.volume}}"});
    let system =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "vela-system"}});
    let _ = fleet.try_create(HUB, system).await;
    fleet.create(HUB, template).await;
    let properties = json!({"name": "dial", "template": "dial", "config": {"volume": "11"}});
    let steps = json!([{"name": "make", "type": "create-config", "properties": properties}]);
    let app = app(json!({"components": [settings("one", "1")], "workflow": {"steps": steps}}));
    fleet.create(HUB, app.clone()).await;
    let told = until_phase(fleet, &app, "running").await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "dial", "namespace": "default"}});
    let made = fleet.get(HUB, &secret).await.unwrap();
    assert_eq!(made["data"]["loud"], "MTE=");
    assert_eq!(made["metadata"]["labels"]["config.oam.dev/type"], "dial");
    assert!(!told["status"].to_string().contains("dial\",\"namespace"));
    fleet.delete(HUB, &app).await;
    fleet.until_gone(HUB, &secret).await;
}

async fn an_environment_of_a_policy_is_deployed_to(fleet: &mut Fleet) {
    start(fleet);
    let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "staging"}});
    fleet.create(HUB, space).await;
    let env = json!({"name": "staging", "placement": {"clusterSelector": {"name": "local"}, "namespaceSelector": {"name": "staging"}},
        "selector": {"components": ["one"]}});
    let policy = json!({"name": "envs", "type": "env-binding", "properties": {"envs": [env]}});
    let step = json!({"name": "out", "type": "deploy2env", "properties": {"policy": "envs", "env": "staging"}});
    let components = json!([settings("one", "1"), settings("two", "2")]);
    let app =
        app(json!({"components": components, "policies": [policy], "workflow": {"steps": [step]}}));
    fleet.create(HUB, app.clone()).await;
    let told = until_phase(fleet, &app, "running").await;
    assert_eq!(phases(&told), ["out succeeded"]);
    let there = |name: &str| {
        let mut object = map(name);
        object["metadata"]["namespace"] = "staging".into();
        object
    };
    assert_eq!(
        fleet.get(HUB, &there("one")).await.unwrap()["data"]["key"],
        "1"
    );
    assert!(fleet.get(HUB, &there("two")).await.is_none());
}

async fn environments_of_a_policy_are_deployed_to_without_steps(fleet: &mut Fleet) {
    start(fleet);
    let space = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "trial"}});
    fleet.create(HUB, space).await;
    let env = |name: &str, namespace: &str| json!({"name": name, "placement": {"namespaceSelector": {"name": namespace}}});
    let policy = json!({"name": "envs", "type": "env-binding",
        "properties": {"envs": [env("test", "trial"), env("prod", "default")]}});
    let app = app(json!({"components": [settings("one", "1")], "policies": [policy]}));
    fleet.create(HUB, app.clone()).await;
    let told = until_phase(fleet, &app, "running").await;
    let expected = ["deploy-envs-test succeeded", "deploy-envs-prod succeeded"];
    assert_eq!(phases(&told), expected);
    let mut there = map("one");
    for namespace in ["trial", "default"] {
        there["metadata"]["namespace"] = namespace.into();
        assert!(fleet.get(HUB, &there).await.is_some(), "{namespace}");
    }
}

async fn a_step_reads_fields_of_an_object_of_a_member(fleet: &mut Fleet) {
    start(fleet);
    register_member(fleet).await;
    let hub = Hub::new(fleet.controller_client(HUB), fleet.clock.clone());
    fleet.run(workflow_run::run(hub, WorkflowOptions::default()));
    let read = json!({"name": "read", "type": "read-member-object",
        "properties": {"cluster": MEMBER, "kind": "ConfigMap", "name": "theirs", "fields": {"color": ".data.key"}},
        "outputs": [{"name": "color", "valueFrom": "output.color"}]});
    let mut copy = map("copy");
    copy["data"] = json!({"key": "none"});
    let copy = json!({"name": "copy", "type": "apply-object", "properties": {"value": copy},
        "inputs": [{"from": "color", "parameterKey": "value.data.key"}]});
    let steps = json!([read, copy]);
    let app = app(json!({"components": [], "workflow": {"steps": steps}}));
    let run = json!({"apiVersion": "core.oam.dev/v1alpha1", "kind": "WorkflowRun",
        "metadata": {"name": "look", "namespace": "default"}, "spec": {"workflowSpec": {"steps": [steps[0]]}}});
    fleet.create(HUB, app.clone()).await;
    fleet.create(HUB, run.clone()).await;
    let told = until(fleet, &app, "it waits", |app| {
        let step = &app["status"]["workflow"]["steps"][0]["message"];
        step.as_str()
            .is_some_and(|message| message.contains(MEMBER))
    })
    .await;
    assert_eq!(phases(&told), ["read running"]);
    let mut theirs = map("theirs");
    theirs["data"] = json!({"key": "green"});
    fleet.create(MEMBER, theirs.clone()).await;
    until_phase(fleet, &app, "running").await;
    let copied = fleet.get(HUB, &map("copy")).await.unwrap();
    assert_eq!(copied["data"]["key"], "green");
    until(fleet, &run, "it ended", |run| {
        run["status"]["status"] == "succeeded"
    })
    .await;
    // The work of the run is gone, that of the application goes with it; the object of the member stays as it is.
    let works =
        format!("/apis/work.open-cluster-management.io/v1/namespaces/{MEMBER}/manifestworks");
    let left = fleet.list(HUB, &works).await;
    let of_app = |work: &Value| work["metadata"]["labels"]["app.oam.dev/name"] == "shop";
    let is_going = |work: &Value| work["metadata"]["deletionTimestamp"].is_string();
    assert!(
        left.iter().all(|work| of_app(work) || is_going(work)),
        "{left:?}"
    );
    fleet.delete(HUB, &app).await;
    fleet.until_gone(HUB, &app).await;
    assert_eq!(
        fleet.get(MEMBER, &theirs).await.unwrap()["data"]["key"],
        "green"
    );
}
