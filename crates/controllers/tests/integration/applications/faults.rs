//! What is wrong with an application is named where people look: phase, conditions and events.

use super::*;

cases! {
    a_trait_that_is_removed_takes_its_objects_along,
    a_definition_that_is_gone_is_named,
    an_object_that_the_server_refuses_is_named,
    a_component_that_does_not_exist_is_named_by_who_depends_on_it,
    an_object_of_another_application_on_a_member_is_not_touched,
    an_object_on_a_member_can_be_shared,
    nothing_is_brought_to_a_cluster_that_is_being_detached,
    policies_that_change_the_application_are_kept_with_its_revision,
    an_object_of_a_policy_that_cannot_be_applied_is_named,
}

async fn a_trait_that_is_removed_takes_its_objects_along(fleet: &mut Fleet) {
    start(fleet);
    let web = |image: &str, traits: Value| {
        json!({"components": [{"name": "web", "type": "webservice",
            "properties": {"image": image, "ports": [{"port": 80, "expose": true}]}, "traits": traits}]})
    };
    let gateway = json!([{"type": "gateway", "properties": {"domain": "shop.example.org", "http": {"/": 80}}}]);
    let app = app(web("nginx:1", gateway));
    fleet.create(HUB, app.clone()).await;
    let object = |api_version: &str, kind: &str| json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "web", "namespace": "default"}});
    let deployment = object("apps/v1", "Deployment");
    fleet.until_there(HUB, &deployment).await;
    fleet.merge_status(HUB, &deployment, serving()).await;
    let ingress = object("networking.k8s.io/v1", "Ingress");
    fleet.until_there(HUB, &ingress).await;
    let balanced = json!({"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}});
    fleet.merge_status(HUB, &ingress, balanced).await;
    until_phase(fleet, &app, "running").await;
    let change = json!({"spec": web("nginx:2", json!([]))});
    fleet.merge(HUB, &app, change).await;
    fleet.merge_status(HUB, &deployment, serving()).await;
    let told = until_phase(fleet, &app, "running").await;
    assert_eq!(told["status"]["latestRevision"]["name"], "shop-v2");
    fleet.until_gone(HUB, &ingress).await;
    fleet.until_gone(HUB, &tracker("shop-v1-default")).await;
    let service = fleet.get(HUB, &object("v1", "Service")).await.unwrap();
    let origin = &service["metadata"]["labels"]["trait.oam.dev/type"];
    assert_eq!(origin, "AuxiliaryWorkload");
}

async fn a_definition_that_is_gone_is_named(fleet: &mut Fleet) {
    fleet.create(HUB, paint("red")).await;
    let app = app(json!({"components": [{"name": "wall", "type": "paint"}]}));
    create_when_known(fleet, &app).await;
    fleet.delete(HUB, &paint("red")).await;
    start(fleet);
    let told = until_phase(fleet, &app, "rendering").await;
    for kind in ["Parsed", "Ready"] {
        let condition = condition(&told["status"], kind);
        assert_eq!(condition["status"], "False");
        assert_eq!(condition["reason"], "ReconcileError");
        let message = message_of(&told, kind);
        assert!(
            message.contains("type of wall") && message.contains("\"paint\" not found"),
            "{message}"
        );
    }
    until_event(fleet, "shop", "\"paint\" not found").await;
    assert!(told["status"]["latestRevision"].is_null());
    fleet.create(HUB, paint("blue")).await;
    until_phase(fleet, &app, "running").await;
}

async fn an_object_that_the_server_refuses_is_named(fleet: &mut Fleet) {
    start(fleet);
    let spec = |name: &str| {
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        json!({"components": [settings("one", "1"), {"name": "odd", "type": "k8s-objects", "properties": {"objects": [map]}}]})
    };
    let app = app(spec("No_Name"));
    fleet.create(HUB, app.clone()).await;
    let told = until(fleet, &app, "what is refused", |app| {
        message_of(app, "Ready").contains("No_Name")
    })
    .await;
    let message = message_of(&told, "Ready");
    assert!(
        message.contains("component odd") && message.contains("metadata.name"),
        "{message}"
    );
    until_event(fleet, "shop", "component odd").await;
    fleet
        .merge(HUB, &app, json!({"spec": spec("a-name")}))
        .await;
    until_phase(fleet, &app, "running").await;
    fleet.until_there(HUB, &map("a-name")).await;
}

async fn a_component_that_does_not_exist_is_named_by_who_depends_on_it(fleet: &mut Fleet) {
    start(fleet);
    let mut after = settings("after", "1");
    after["dependsOn"] = json!(["ghost"]);
    let app = app(json!({"components": [after]}));
    fleet.create(HUB, app.clone()).await;
    let text = "component ghost not found, which is depended by after";
    let told = until(fleet, &app, "the dependency", |app| {
        message_of(app, "Workflow").contains(text)
    })
    .await;
    assert!(message_of(&told, "Ready").contains(text), "{told}");
    assert_eq!(told["status"]["status"], "workflowFailed");
    until_event(fleet, "shop", text).await;
}

fn on_member(value: &str, policies: Value) -> Value {
    let mut all =
        json!([{"name": "there", "type": "topology", "properties": {"clusters": [MEMBER]}}]);
    for policy in policies.as_array().unwrap() {
        all.as_array_mut().unwrap().push(policy.clone());
    }
    json!({"components": [settings("one", value)], "policies": all})
}

async fn nothing_is_brought_to_a_cluster_that_is_being_detached(fleet: &mut Fleet) {
    start(fleet);
    register_member(fleet).await;
    let app = app(on_member("1", json!([])));
    fleet.create(HUB, app.clone()).await;
    until_phase(fleet, &app, "running").await;
    let cluster = json!({"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": MEMBER}});
    let held = json!({"metadata": {"finalizers": ["example.com/held"]}});
    fleet.merge(HUB, &cluster, held).await;
    fleet.delete(HUB, &cluster).await;
    // As the hub does when it detaches a cluster.
    let work = json!({"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": "app-default-shop", "namespace": MEMBER}});
    fleet.until_there(HUB, &work).await;
    fleet.delete(HUB, &work).await;
    fleet.until_gone(HUB, &work).await;
    let change = json!({"spec": on_member("2", json!([]))});
    fleet.merge(HUB, &app, change).await;
    let text = format!("cluster {MEMBER} is being detached");
    until(fleet, &app, "the detached cluster", |app| {
        message_of(app, "Ready").contains(&text)
    })
    .await;
    fleet.pass(60_000).await;
    assert_eq!(fleet.get(HUB, &work).await, None);
    let released = json!({"metadata": {"finalizers": null}});
    fleet.merge(HUB, &cluster, released).await;
}

async fn an_object_of_another_application_on_a_member_is_not_touched(fleet: &mut Fleet) {
    start(fleet);
    register_member(fleet).await;
    let first = app_named("first", on_member("1", json!([])));
    fleet.create(HUB, first.clone()).await;
    until_phase(fleet, &first, "running").await;
    let second = app_named("second", on_member("2", json!([])));
    fleet.create(HUB, second.clone()).await;
    let told = until(fleet, &second, "whose it is", |app| {
        message_of(app, "Ready").contains("belongs to application default/first")
    })
    .await;
    let message = message_of(&told, "Ready");
    assert!(
        message.contains("component one: ConfigMap default/one on cluster"),
        "{message}"
    );
    until_event(fleet, "second", "belongs to application default/first").await;
    fleet.pass(5_000).await;
    let value = &fleet.get(MEMBER, &map("one")).await.unwrap()["data"]["key"];
    assert_eq!(value, "1");
    // The one that lost leaves it alone when it goes.
    let third = app_named("third", on_member("3", json!([])));
    fleet.create(HUB, third.clone()).await;
    until(fleet, &third, "whose it is", |app| {
        message_of(app, "Ready").contains("belongs to application default/first")
    })
    .await;
    fleet.delete(HUB, &third).await;
    fleet.until_gone(HUB, &third).await;
    assert!(fleet.get(MEMBER, &map("one")).await.is_some());
    // When the first one goes, the second one has it, without anybody changing it.
    fleet.delete(HUB, &first).await;
    fleet.until_gone(HUB, &first).await;
    until_phase(fleet, &second, "running").await;
    let what = "the value of the second";
    let found = fleet
        .until(MEMBER, &map("one"), what, |map| {
            map.is_some_and(|map| map["data"]["key"] == "2")
        })
        .await;
    assert!(found.is_some());
}

async fn an_object_on_a_member_can_be_shared(fleet: &mut Fleet) {
    start(fleet);
    register_member(fleet).await;
    let shared = json!([{"name": "s", "type": "shared-resource",
        "properties": {"rules": [{"selector": {"resourceTypes": ["ConfigMap"]}}]}}]);
    let first = app_named("first", on_member("1", shared.clone()));
    let second = app_named("second", on_member("1", shared));
    for app in [&first, &second] {
        fleet.create(HUB, app.clone()).await;
        until_phase(fleet, app, "running").await;
    }
    fleet.delete(HUB, &first).await;
    fleet.until_gone(HUB, &first).await;
    fleet.pass(5_000).await;
    assert!(fleet.get(MEMBER, &map("one")).await.is_some());
    fleet.delete(HUB, &second).await;
    fleet.until_gone(MEMBER, &map("one")).await;
}

async fn policies_that_change_the_application_are_kept_with_its_revision(fleet: &mut Fleet) {
    start(fleet);
    let definition = |team: &str| {
        let template = format!(
            "output: {{\n\tlabels: team: \"{team}\"\n\tcomponents: [for c in context.appComponents {{c}}, {{name: \"extra\", type: \"k8s-objects\", properties: objects: [{{apiVersion: \"v1\", kind: \"ConfigMap\", metadata: name: \"extra\"}}]}}]\n}}"
        );
        json!({"apiVersion": "core.oam.dev/v1beta1", "kind": "PolicyDefinition", "metadata": {"name": "team", "namespace": "default"},
            "spec": {"scope": "Application", "schematic": {"cue": {"template": template}}}})
    };
    fleet.create(HUB, definition("red")).await;
    let policy = json!([{"name": "team", "type": "team", "properties": {}}]);
    let app = app(json!({"components": [settings("one", "1")], "policies": policy}));
    create_when_known(fleet, &app).await;
    let told = until_phase(fleet, &app, "running").await;
    assert_eq!(told["status"]["services"].as_array().unwrap().len(), 2);
    let applied = json!([{"name": "team", "type": "team", "namespace": "default", "applied": true, "source": "explicit",
        "specModified": true, "labelsCount": 1}]);
    assert_eq!(told["status"]["appliedApplicationPolicies"], applied);
    let team = |map: &Value| map["metadata"]["labels"]["team"].clone();
    assert_eq!(team(&fleet.get(HUB, &map("one")).await.unwrap()), "red");
    fleet.until_there(HUB, &map("extra")).await;
    // The definition changes; the application is what it was until it changes itself.
    fleet
        .merge(
            HUB,
            &definition("blue"),
            json!({"spec": definition("blue")["spec"]}),
        )
        .await;
    fleet.pass(5_000).await;
    assert_eq!(team(&fleet.get(HUB, &map("one")).await.unwrap()), "red");
    let change = json!({"spec": {"components": [settings("one", "2")]}});
    fleet.merge(HUB, &app, change).await;
    until(fleet, &map("one"), "the label", |map| team(map) == "blue").await;
    until_phase(fleet, &app, "running").await;
}

async fn an_object_of_a_policy_that_cannot_be_applied_is_named(fleet: &mut Fleet) {
    start(fleet);
    let template = "output: {apiVersion: \"rules.example.org/v1\", kind: \"Rule\"}\nparameter: {}";
    let definition = json!({"apiVersion": "core.oam.dev/v1beta1", "kind": "PolicyDefinition", "metadata": {"name": "rule", "namespace": "default"},
        "spec": {"schematic": {"cue": {"template": template}}}});
    fleet.create(HUB, definition).await;
    let policy = json!([{"name": "mine", "type": "rule", "properties": {}}]);
    let app = app(json!({"components": [settings("one", "1")], "policies": policy}));
    create_when_known(fleet, &app).await;
    let told = until_phase(fleet, &app, "generatingPolicy").await;
    let message = message_of(&told, "Policy");
    let expected = "policy mine: Rule default/mine: the hub does not serve the kind Rule";
    assert!(message.starts_with(expected), "{message}");
    assert_eq!(message_of(&told, "Ready"), message);
}
