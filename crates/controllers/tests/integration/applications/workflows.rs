//! Workflows of applications: steps of any kind, control by the status, restarts, and a hub that is killed.

use super::*;

cases! {
    steps_of_any_kind_are_carried_out_and_what_they_apply_is_collected,
    a_workflow_is_ended_by_its_status,
    an_annotation_carries_a_workflow_out_again,
    a_hub_that_is_killed_goes_on_where_it_was,
    a_step_that_consists_of_an_object_waits_for_it,
    components_hand_values_on,
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
