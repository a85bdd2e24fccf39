//! What happens to changes of others: they are undone, or kept, as policies say.

use super::*;

cases! {
    labels_that_others_took_away_are_put_back,
    apply_once_keeps_deletions_until_the_application_changes,
    apply_once_keeps_deletions_on_members,
    apply_once_goes_by_field_and_occasion,
    apply_once_goes_by_field_and_occasion_on_members,
    what_members_cannot_read_of_apply_once_is_reported,
    an_object_is_created_again_if_a_fixed_field_differs,
    an_object_is_replaced_or_patched,
    nothing_is_requested_while_nothing_changes,
    a_repair_is_told_in_an_event,
}

fn rules(kind: &str, strategy: Value) -> Value {
    json!([{"name": kind, "type": kind, "properties": {"enable": true,
        "rules": [{"selector": {"resourceTypes": ["ConfigMap"]}, "strategy": strategy}]}}])
}

/// A component that is a ConfigMap with two values.
fn pair(a: &str, b: &str) -> Value {
    json!([{"name": "one", "type": "k8s-objects", "properties": {"objects": [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"a": a, "b": b}}]}}])
}

async fn data_becomes(fleet: &Fleet, cluster: &str, name: &str, expected: Value) {
    let has_it = |map: Option<&Value>| map.is_some_and(|map| map["data"] == expected);
    fleet
        .until(cluster, &map(name), &expected.to_string(), has_it)
        .await;
}

async fn labels_that_others_took_away_are_put_back(fleet: &mut Fleet) {
    start(fleet);
    let app = app(json!({"components": [settings("one", "1")]}));
    fleet.create(HUB, app.clone()).await;
    until_phase(fleet, &app, "running").await;
    let stripped =
        json!({"metadata": {"labels": {"app.oam.dev/name": null, "app.oam.dev/namespace": null}}});
    fleet.merge(HUB, &map("one"), stripped).await;
    until(fleet, &map("one"), "its labels", |map| {
        map["metadata"]["labels"]["app.oam.dev/name"] == "shop"
    })
    .await;
    until_phase(fleet, &app, "running").await;
}

async fn apply_once_keeps_deletions_until_the_application_changes(fleet: &mut Fleet) {
    start(fleet);
    let policy = json!([{"name": "once", "type": "apply-once", "properties": {"enable": true}}]);
    let app = app(json!({"components": [settings("one", "1")], "policies": policy}));
    fleet.create(HUB, app.clone()).await;
    until_phase(fleet, &app, "running").await;
    let tracker = fleet.get(HUB, &tracker("shop-v1-default")).await.unwrap();
    assert_eq!(tracker["spec"]["managedResources"][0].get("raw"), None);
    fleet.delete(HUB, &map("one")).await;
    fleet.pass(2_000).await;
    assert!(fleet.get(HUB, &map("one")).await.is_none());
    let deleted = "ConfigMap default/one was deleted by others; the apply-once policy leaves it so until the application changes";
    let told = until(fleet, &app, "it says what is missing", |app| {
        message_of(app, "Drifted") == deleted
    })
    .await;
    assert_eq!(told["status"]["status"], "running");
    let change = json!({"spec": {"components": [settings("one", "2")]}});
    fleet.merge(HUB, &app, change).await;
    until(fleet, &map("one"), "its new value", |map| {
        map["data"]["key"] == "2"
    })
    .await;
    let told = until_phase(fleet, &app, "running").await;
    let conditions = told["status"]["conditions"].as_array().unwrap();
    assert!(conditions.iter().all(|it| it["type"] != "Drifted"));
    fleet.delete(HUB, &app).await;
    fleet.until_gone(HUB, &map("one")).await;
}

async fn apply_once_keeps_deletions_on_members(fleet: &mut Fleet) {
    start(fleet);
    register_member(fleet).await;
    let there = json!({"name": "there", "type": "topology", "properties": {"clusters": [MEMBER]}});
    let once = json!({"name": "once", "type": "apply-once", "properties": {"enable": true}});
    let components = json!([settings("one", "1"), settings("two", "2")]);
    let app = app(json!({"components": components, "policies": [there, once]}));
    fleet.create(HUB, app.clone()).await;
    until_phase(fleet, &app, "running").await;
    fleet.delete(MEMBER, &map("one")).await;
    let told = until(fleet, &app, "it says what is missing", |app| {
        message_of(app, "Drifted").contains("ConfigMap default/one was deleted by others")
    })
    .await;
    assert_eq!(told["status"]["status"], "running");
    fleet.pass(5_000).await;
    assert!(fleet.get(MEMBER, &map("one")).await.is_none());
    let change = json!({"spec": {"components": [settings("one", "3"), settings("two", "2")]}});
    fleet.merge(HUB, &app, change).await;
    fleet.until_there(MEMBER, &map("one")).await;
    let told = until_phase(fleet, &app, "running").await;
    assert_eq!(message_of(&told, "Ready"), "");
    // Without the policy it comes back.
    let change = json!({"spec": {"policies": [there]}});
    fleet.merge(HUB, &app, change).await;
    until_phase(fleet, &app, "running").await;
    fleet.delete(MEMBER, &map("two")).await;
    fleet.until_there(MEMBER, &map("two")).await;
}

async fn apply_once_goes_by_field_and_occasion(fleet: &mut Fleet) {
    start(fleet);
    goes_by_field_and_occasion(fleet, HUB, None).await;
}

async fn apply_once_goes_by_field_and_occasion_on_members(fleet: &mut Fleet) {
    start(fleet);
    register_member(fleet).await;
    let there = json!({"name": "there", "type": "topology", "properties": {"clusters": [MEMBER]}});
    goes_by_field_and_occasion(fleet, MEMBER, Some(there)).await;
}

/// The same holds wherever the objects are.
async fn goes_by_field_and_occasion(fleet: &Fleet, cluster: &str, topology: Option<Value>) {
    // The affect, what is there after a change of others, and after a change of the application.
    let table = [
        ("", json!({"a": "x", "b": "1"}), json!({"a": "x", "b": "2"})),
        (
            "always",
            json!({"a": "x", "b": "1"}),
            json!({"a": "x", "b": "2"}),
        ),
        (
            "onStateKeep",
            json!({"a": "x", "b": "1"}),
            json!({"a": "2", "b": "2"}),
        ),
        (
            "onUpdate",
            json!({"a": "1", "b": "1"}),
            json!({"a": "1", "b": "2"}),
        ),
    ];
    for (affect, kept, changed) in table {
        let rule = json!({"selector": {"componentNames": ["one"], "resourceTypes": ["ConfigMap"]},
            "strategy": {"path": ["data.a"], "affect": affect}});
        let once = json!({"name": "once", "type": "apply-once", "properties": {"enable": true, "rules": [rule]}});
        let policies: Vec<Value> = topology.iter().cloned().chain([once]).collect();
        let components = |a: &str, b: &str| {
            let mut components = pair(a, b).as_array().cloned().unwrap_or_default();
            components.push(settings("two", "1"));
            components
        };
        let app = app(json!({"components": components("1", "1"), "policies": policies}));
        fleet.create(HUB, app.clone()).await;
        until_phase(fleet, &app, "running").await;
        let drift = json!({"data": {"a": "x", "b": "x"}});
        fleet.merge(cluster, &map("one"), drift).await;
        data_becomes(fleet, cluster, "one", kept).await;
        // What no rule selects is repaired.
        let drift = json!({"data": {"key": "x"}});
        fleet.merge(cluster, &map("two"), drift).await;
        data_becomes(fleet, cluster, "two", json!({"key": "1"})).await;
        let change = json!({"spec": {"components": components("2", "2")}});
        fleet.merge(HUB, &app, change).await;
        data_becomes(fleet, cluster, "one", changed).await;
        until_phase(fleet, &app, "running").await;
        fleet.delete(cluster, &map("one")).await;
        fleet.pass(2_000).await;
        let is_there = fleet.get(cluster, &map("one")).await.is_some();
        assert_eq!(is_there, affect == "onUpdate", "{affect}");
        fleet.delete(HUB, &app).await;
        fleet.until_gone(HUB, &app).await;
    }
}

async fn what_members_cannot_read_of_apply_once_is_reported(fleet: &mut Fleet) {
    start(fleet);
    let work = json!({"apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": "w", "namespace": MEMBER, "annotations": {"work.bellwether.dev/kept-fields": "all"}},
        "spec": {"workload": {"manifests": [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", "namespace": "default"}}]}}});
    fleet.create(HUB, work.clone()).await;
    until(fleet, &work, "the annotation is named", |work| {
        let manifest = &work["status"]["resourceStatus"]["manifests"][0];
        let message = manifest["conditions"][0]["message"].as_str();
        message.is_some_and(|it| it.contains("annotation work.bellwether.dev/kept-fields"))
    })
    .await;
    assert!(fleet.get(MEMBER, &map("one")).await.is_none());
}

async fn an_object_is_created_again_if_a_fixed_field_differs(fleet: &mut Fleet) {
    start(fleet);
    let policies = rules("resource-update", json!({"recreateFields": ["data.a"]}));
    let app = app(json!({"components": pair("1", "1"), "policies": policies}));
    fleet.create(HUB, app.clone()).await;
    until_phase(fleet, &app, "running").await;
    let first = fleet.get(HUB, &map("one")).await.unwrap();
    let change = json!({"spec": {"components": pair("1", "2")}});
    fleet.merge(HUB, &app, change).await;
    data_becomes(fleet, HUB, "one", json!({"a": "1", "b": "2"})).await;
    let second = fleet.get(HUB, &map("one")).await.unwrap();
    assert_eq!(first["metadata"]["uid"], second["metadata"]["uid"]);
    let change = json!({"spec": {"components": pair("2", "2")}});
    fleet.merge(HUB, &app, change).await;
    data_becomes(fleet, HUB, "one", json!({"a": "2", "b": "2"})).await;
    let third = fleet.get(HUB, &map("one")).await.unwrap();
    assert_ne!(second["metadata"]["uid"], third["metadata"]["uid"]);
    until_phase(fleet, &app, "running").await;
}

async fn an_object_is_replaced_or_patched(fleet: &mut Fleet) {
    start(fleet);
    for (op, expected) in [
        ("patch", json!({"a": "2", "b": "2", "foreign": "x"})),
        ("replace", json!({"a": "2", "b": "2"})),
    ] {
        // What is replaced loses what others added at once, so it is added before the change that is looked at.
        let policies = rules("resource-update", json!({"op": op}));
        let app = app(json!({"components": pair("1", "1"), "policies": policies}));
        fleet.create(HUB, app.clone()).await;
        until_phase(fleet, &app, "running").await;
        let foreign = json!({"data": {"foreign": "x"}});
        fleet.merge(HUB, &map("one"), foreign).await;
        let change = json!({"spec": {"components": pair("2", "2")}});
        fleet.merge(HUB, &app, change).await;
        data_becomes(fleet, HUB, "one", expected).await;
        fleet.delete(HUB, &app).await;
        fleet.until_gone(HUB, &app).await;
    }
}

async fn nothing_is_requested_while_nothing_changes(fleet: &mut Fleet) {
    let counts = start_counted(fleet);
    let app = app(json!({"components": [settings("one", "1"), settings("two", "2")]}));
    fleet.create(HUB, app.clone()).await;
    until_phase(fleet, &app, "running").await;
    fleet.pass(2_000).await;
    let before = counts.all();
    fleet
        .pass(if fleet.is_real() { 2_000 } else { 120_000 })
        .await;
    assert_eq!(counts.all(), before);
}

async fn a_repair_is_told_in_an_event(fleet: &mut Fleet) {
    start(fleet);
    let app = app(json!({"components": [settings("one", "1")]}));
    fleet.create(HUB, app.clone()).await;
    until_phase(fleet, &app, "running").await;
    let drift = json!({"data": {"key": "x"}});
    fleet.merge(HUB, &map("one"), drift).await;
    until_event(fleet, "shop", "ConfigMap default/one was changed by others").await;
}
