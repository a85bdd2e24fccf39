//! The life of an application: what its phases, services, labels and revisions are while it changes.

use super::*;

cases! {
    one_object_of_two_outputs_is_applied_once,
    a_label_of_the_application_reaches_its_objects,
    a_workload_that_is_not_healthy_is_named,
    a_topology_names_namespace_and_override,
    what_is_published_has_a_tracker_of_its_name,
    a_wrong_application_can_be_corrected,
    copies_of_a_component_are_made,
    a_trait_can_wait_for_its_component,
    custom_policies_are_applied_before_the_workflow,
    an_unserved_kind_and_a_missing_namespace_are_named,
    rendered_resources_are_stored_by_component,
}

fn deployment() -> Value {
    json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "default"}})
}

fn service(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": name, "namespace": "default"}})
}

async fn one_object_of_two_outputs_is_applied_once(fleet: &mut Fleet) {
    start(fleet);
    let web = json!({"name": "web", "type": "webservice",
        "properties": {"image": "nginx", "ports": [{"port": 80, "expose": true}]},
        "traits": [{"type": "gateway", "properties": {"domain": "shop.example.org", "http": {"/": 80}}}]});
    let app = app(json!({"components": [web]}));
    fleet.create(HUB, app.clone()).await;
    fleet.until_there(HUB, &deployment()).await;
    fleet.merge_status(HUB, &deployment(), serving()).await;
    fleet.until_there(HUB, &service("web")).await;
    fleet.pass(3_000).await;
    let first = fleet.get(HUB, &service("web")).await.unwrap();
    fleet.pass(60_000).await;
    let second = fleet.get(HUB, &service("web")).await.unwrap();
    assert_eq!(
        first["metadata"]["resourceVersion"], second["metadata"]["resourceVersion"],
        "nobody fights over it"
    );
    // The trait comes later, and is what is applied.
    assert_eq!(first["metadata"]["labels"]["trait.oam.dev/type"], "gateway");
    fleet.delete(HUB, &app).await;
    fleet.until_gone(HUB, &service("web")).await;
}

async fn a_label_of_the_application_reaches_its_objects(fleet: &mut Fleet) {
    start(fleet);
    let app = app(json!({"components": [settings("one", "1")]}));
    fleet.create(HUB, app.clone()).await;
    until_phase(fleet, &app, "running").await;
    let labelled = json!({"metadata": {"labels": {"team": "red"}}});
    fleet.merge(HUB, &app, labelled).await;
    until(fleet, &map("one"), "the label", |map| {
        map["metadata"]["labels"]["team"] == "red"
    })
    .await;
    let told = until_phase(fleet, &app, "running").await;
    assert_eq!(told["status"]["latestRevision"]["name"], "shop-v1");
}

async fn a_workload_that_is_not_healthy_is_named(fleet: &mut Fleet) {
    start(fleet);
    let web = json!({"name": "web", "type": "webservice", "properties": {"image": "nginx"}});
    let app = app(json!({"components": [web]}));
    fleet.create(HUB, app.clone()).await;
    let told = until_phase(fleet, &app, "runningWorkflow").await;
    let service = &told["status"]["services"][0];
    assert_eq!(
        (service.get("healthy"), &service["message"]),
        (Some(&json!(false)), &json!("Ready:0/1")),
        "{told}"
    );
    assert!(message_of(&told, "Ready").contains("web"), "{told}");
    fleet.until_there(HUB, &deployment()).await;
    fleet.merge_status(HUB, &deployment(), serving()).await;
    let told = until_phase(fleet, &app, "running").await;
    let service = &told["status"]["services"][0];
    assert_eq!(service["workloadDefinition"]["kind"], "Deployment");
    assert_eq!(service["message"], "Ready:1/1");
    // Once delivered, it may become unhealthy, and well again.
    let broken = json!({"readyReplicas": 0, "availableReplicas": 0});
    fleet.merge_status(HUB, &deployment(), broken).await;
    until_phase(fleet, &app, "unhealthy").await;
    fleet.merge_status(HUB, &deployment(), serving()).await;
    until_phase(fleet, &app, "running").await;
}

async fn a_topology_names_namespace_and_override(fleet: &mut Fleet) {
    start(fleet);
    let far = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "far"}});
    if fleet.get(HUB, &far).await.is_none() {
        fleet.create(HUB, far).await;
    }
    let greeting = json!({"name": "one", "type": "k8s-objects", "properties": {"objects": [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "here"}, "data": {"key": "1"}}]}});
    let changed = json!([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "there"}, "data": {"key": "2"}}]);
    let policies = json!([
        {"name": "t", "type": "topology", "properties": {"clusters": ["local"], "namespace": "far"}},
        {"name": "o", "type": "override", "properties": {"components": [{"name": "one", "properties": {"objects": changed}}]}},
    ]);
    let app = app(json!({"components": [greeting], "policies": policies}));
    fleet.create(HUB, app.clone()).await;
    let told = until_phase(fleet, &app, "running").await;
    let service = &told["status"]["services"][0];
    assert_eq!(
        (&service["cluster"], &service["namespace"]),
        (&json!("local"), &json!("far")),
        "{service}"
    );
    assert_eq!(told["status"]["workflow"]["steps"][0]["name"], "deploy-t");
    let mut there = map("there");
    there["metadata"]["namespace"] = "far".into();
    let found = fleet.get(HUB, &there).await.unwrap();
    let labels = &found["metadata"]["labels"];
    assert_eq!(labels["app.oam.dev/cluster"], "local");
    assert_eq!(labels["app.oam.dev/namespace"], "default");
    fleet.delete(HUB, &app).await;
    fleet.until_gone(HUB, &there).await;
}

async fn what_is_published_has_a_tracker_of_its_name(fleet: &mut Fleet) {
    start(fleet);
    let publish = |version: &str| json!({"metadata": {"annotations": {"app.oam.dev/publishVersion": version}}});
    let mut app = app(json!({"components": [settings("one", "1")]}));
    app["metadata"]["annotations"] = json!({"app.oam.dev/publishVersion": "alpha"});
    fleet.create(HUB, app.clone()).await;
    until_phase(fleet, &app, "running").await;
    fleet.until_there(HUB, &tracker("shop-alpha-default")).await;
    let change = json!({"spec": {"components": [settings("one", "2")]}});
    fleet.merge(HUB, &app, change).await;
    fleet.pass(2_000).await;
    assert_eq!(
        fleet.get(HUB, &map("one")).await.unwrap()["data"]["key"],
        "1"
    );
    fleet.merge(HUB, &app, publish("beta")).await;
    until(fleet, &map("one"), "what is published", |map| {
        map["data"]["key"] == "2"
    })
    .await;
    fleet.until_there(HUB, &tracker("shop-beta-default")).await;
    fleet.until_gone(HUB, &tracker("shop-alpha-default")).await;
    // The version is in an annotation: the generation does not tell whether the status is about it.
    until(fleet, &app, "the revision that is published", |app| {
        app["status"]["latestRevision"]["name"] == "shop-v2" && app["status"]["status"] == "running"
    })
    .await;
}

async fn a_wrong_application_can_be_corrected(fleet: &mut Fleet) {
    start(fleet);
    let web = |properties: Value| json!({"components": [{"name": "web", "type": "webservice", "properties": properties}]});
    let app = app(web(json!({"cpu": "1"})));
    fleet.create(HUB, app.clone()).await;
    until(fleet, &app, "what is wrong", |app| {
        message_of(app, "Ready").contains("parameter.image")
    })
    .await;
    let right = web(json!({"image": "nginx"}));
    fleet.merge(HUB, &app, json!({"spec": right})).await;
    fleet.until_there(HUB, &deployment()).await;
    fleet.merge_status(HUB, &deployment(), serving()).await;
    let told = until_phase(fleet, &app, "running").await;
    assert_eq!(told["status"]["latestRevision"]["name"], "shop-v2");
    for (name, succeeded) in [("shop-v1", false), ("shop-v2", true)] {
        let revision = json!({"apiVersion": "core.oam.dev/v1beta1", "kind": "ApplicationRevision", "metadata": {"name": name, "namespace": "default"}});
        let found = fleet.get(HUB, &revision).await.unwrap();
        let is_done = found["status"]["succeeded"].as_bool().unwrap_or_default();
        assert_eq!(is_done, succeeded, "{name}");
    }
}

async fn copies_of_a_component_are_made(fleet: &mut Fleet) {
    start(fleet);
    let template = "output: {apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: \"\\(context.name)-\\(context.replicaKey)\", data: key: context.replicaKey}\nparameter: {}";
    let definition = json!({"apiVersion": "core.oam.dev/v1beta1", "kind": "ComponentDefinition",
        "metadata": {"name": "copied", "namespace": "default"},
        "spec": {"workload": {"type": "configmaps"}, "schematic": {"cue": {"template": template}}}});
    fleet.create(HUB, definition.clone()).await;
    let policies = json!([{"name": "copies", "type": "replication", "properties": {"keys": ["east", "west"]}}]);
    let step = json!({"name": "all", "type": "deploy", "properties": {"policies": ["copies"]}});
    let app = app(json!({"components": [{"name": "one", "type": "copied"}],
        "policies": policies, "workflow": {"steps": [step]}}));
    create_when_known(fleet, &app).await;
    until_phase(fleet, &app, "running").await;
    for key in ["east", "west"] {
        let found = fleet.get(HUB, &map(&format!("one-{key}"))).await.unwrap();
        assert_eq!(found["data"]["key"], key);
    }
    fleet.delete(HUB, &app).await;
    fleet.until_gone(HUB, &map("one-east")).await;
    fleet.delete(HUB, &definition).await;
}

async fn a_trait_can_wait_for_its_component(fleet: &mut Fleet) {
    start(fleet);
    let web = json!({"name": "web", "type": "webservice", "properties": {"image": "nginx"},
        "traits": [{"type": "expose", "properties": {"port": [80]}}]});
    let app = app(json!({"components": [web]}));
    fleet.create(HUB, app.clone()).await;
    let told = until_phase(fleet, &app, "runningWorkflow").await;
    let pending = &told["status"]["services"][0]["traits"][0];
    assert_eq!(
        (&pending["type"], &pending["pending"]),
        (&json!("expose"), &json!(true)),
        "{told}"
    );
    assert!(fleet.get(HUB, &service("web")).await.is_none());
    fleet.merge_status(HUB, &deployment(), serving()).await;
    until_phase(fleet, &app, "running").await;
    assert!(fleet.get(HUB, &service("web")).await.is_some());
    fleet.delete(HUB, &app).await;
    fleet.until_gone(HUB, &service("web")).await;
}

async fn custom_policies_are_applied_before_the_workflow(fleet: &mut Fleet) {
    start(fleet);
    let template = "parameters: {\n\tfrequency: *\"enabled\" | \"disabled\"\n}\noutput: {\n\tapiVersion: \"v1\"\n\tkind: \"ConfigMap\"\n\tdata: frequency: parameters.frequency\n}\n";
    let definition = json!({"apiVersion": "core.oam.dev/v1beta1", "kind": "PolicyDefinition",
        "metadata": {"name": "insights", "namespace": "default"},
        "spec": {"schematic": {"cue": {"template": template}}}});
    fleet.create(HUB, definition.clone()).await;
    let policies = json!([{"name": "my-insight", "type": "insights", "properties": {"frequency": "disabled"}}]);
    let web = json!({"name": "web", "type": "webservice", "properties": {"image": "nginx"}});
    let app = app(json!({"components": [web], "policies": policies}));
    create_when_known(fleet, &app).await;
    // The component is not healthy, so the workflow is not done.
    let insight = fleet.until_there(HUB, &map("my-insight")).await;
    assert_eq!(insight["data"]["frequency"], "disabled");
    assert_eq!(
        insight["metadata"]["labels"]["app.oam.dev/component"],
        "my-insight"
    );
    until_phase(fleet, &app, "runningWorkflow").await;
    fleet.delete(HUB, &app).await;
    fleet.until_gone(HUB, &map("my-insight")).await;
    fleet.delete(HUB, &definition).await;
}

async fn an_unserved_kind_and_a_missing_namespace_are_named(fleet: &mut Fleet) {
    start(fleet);
    let component = |object: Value| json!({"components": [{"name": "odd", "type": "k8s-objects", "properties": {"objects": [object]}}]});
    let ghost = component(
        json!({"apiVersion": "ghost.example/v1", "kind": "Ghost", "metadata": {"name": "g"}}),
    );
    let app = app(ghost);
    fleet.create(HUB, app.clone()).await;
    let told = until(fleet, &app, "the kind", |app| {
        message_of(app, "Ready").contains("ghost.example/v1")
    })
    .await;
    assert!(
        message_of(&told, "Ready").contains("component odd"),
        "{told}"
    );
    let nowhere = component(
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "g", "namespace": "nowhere"}}),
    );
    fleet.merge(HUB, &app, json!({"spec": nowhere})).await;
    until(fleet, &app, "the namespace", |app| {
        message_of(app, "Ready").contains("nowhere")
    })
    .await;
    // Once it is there, the object is made, without anyone changing the application.
    let nowhere = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "nowhere"}});
    fleet.create(HUB, nowhere).await;
    let mut object = map("g");
    object["metadata"]["namespace"] = "nowhere".into();
    if !fleet.is_real() {
        fleet.pass(120_000).await;
        fleet.until_there(HUB, &object).await;
    }
}

async fn rendered_resources_are_stored_by_component(fleet: &mut Fleet) {
    let options = WorkflowOptions {
        stores_rendered: true,
        ..WorkflowOptions::default()
    };
    start_with(fleet, options);
    let app = app(json!({"components": [settings("one", "1")]}));
    fleet.create(HUB, app.clone()).await;
    until_phase(fleet, &app, "running").await;
    let revision = json!({"apiVersion": "core.oam.dev/v1beta1", "kind": "ApplicationRevision", "metadata": {"name": "shop-v1", "namespace": "default"}});
    let revision = until(fleet, &revision, "its resources are named", |it| {
        it["spec"]["resourcesConfigMap"]["name"].is_string()
    })
    .await;
    let name = revision["spec"]["resourcesConfigMap"]["name"].as_str();
    let stored = fleet.get(HUB, &map(name.unwrap())).await.unwrap();
    let object: Value = serde_json::from_str(stored["data"]["one"].as_str().unwrap()).unwrap();
    assert_eq!(object["kind"], "ConfigMap");
    assert_eq!(object["data"]["key"], "1");
}
