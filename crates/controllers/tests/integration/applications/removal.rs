//! What becomes of objects that an application no longer has, and of all of them when it is deleted.

use super::*;

cases! {
    rules_say_when_an_object_is_deleted,
    objects_of_older_versions_can_be_kept,
    an_object_is_left_to_nobody_by_a_rule,
    what_others_depend_on_is_deleted_last,
    the_objects_of_an_application_can_stay,
    an_object_that_waits_for_a_finalizer_is_named,
    an_object_that_was_given_to_somebody_else_stays,
}

fn collected(rule: Value) -> Value {
    let mut rule = rule;
    rule["selector"] = json!({"componentNames": ["two"]});
    json!([{"name": "gc", "type": "garbage-collect", "properties": {"rules": [rule]}}])
}

fn both() -> Value {
    json!([settings("one", "1"), settings("two", "2")])
}

async fn rules_say_when_an_object_is_deleted(fleet: &mut Fleet) {
    start(fleet);
    // The strategy, whether the object outlives the version that had it, and the application.
    for (strategy, after_change, after_deletion) in [
        ("onAppUpdate", false, false),
        ("onAppDelete", true, false),
        ("never", true, true),
    ] {
        let policies = collected(json!({"strategy": strategy}));
        let app = app(json!({"components": both(), "policies": policies}));
        fleet.create(HUB, app.clone()).await;
        until_phase(fleet, &app, "running").await;
        let change = json!({"spec": {"components": [settings("one", "1")]}});
        fleet.merge(HUB, &app, change).await;
        until_phase(fleet, &app, "running").await;
        fleet.pass(1_000).await;
        let is_there = fleet.get(HUB, &map("two")).await.is_some();
        assert_eq!(is_there, after_change, "{strategy}");
        // A further version does not forget it.
        let change = json!({"spec": {"components": [settings("one", "3")]}});
        fleet.merge(HUB, &app, change).await;
        until_phase(fleet, &app, "running").await;
        fleet.delete(HUB, &app).await;
        fleet.until_gone(HUB, &app).await;
        let is_there = fleet.get(HUB, &map("two")).await.is_some();
        assert_eq!(is_there, after_deletion, "{strategy}");
        assert_eq!(trackers(fleet).await, 0);
    }
}

async fn trackers(fleet: &Fleet) -> usize {
    let all = "/apis/core.oam.dev/v1beta1/resourcetrackers";
    fleet.list(HUB, all).await.len()
}

async fn objects_of_older_versions_can_be_kept(fleet: &mut Fleet) {
    start(fleet);
    let policies = json!([{"name": "gc", "type": "garbage-collect", "properties": {"keepLegacyResource": true}}]);
    let app = app(json!({"components": both(), "policies": policies}));
    fleet.create(HUB, app.clone()).await;
    until_phase(fleet, &app, "running").await;
    let change = json!({"spec": {"components": [settings("one", "1")]}});
    fleet.merge(HUB, &app, change).await;
    until_phase(fleet, &app, "running").await;
    fleet.pass(1_000).await;
    assert!(fleet.get(HUB, &map("two")).await.is_some());
    fleet.delete(HUB, &app).await;
    fleet.until_gone(HUB, &app).await;
    for name in ["one", "two"] {
        assert!(fleet.get(HUB, &map(name)).await.is_none(), "{name}");
    }
}

async fn an_object_is_left_to_nobody_by_a_rule(fleet: &mut Fleet) {
    start(fleet);
    let policies = collected(json!({"propagation": "orphan"}));
    let app = app(json!({"components": both(), "policies": policies}));
    fleet.create(HUB, app.clone()).await;
    until_phase(fleet, &app, "running").await;
    fleet.delete(HUB, &app).await;
    fleet.until_gone(HUB, &app).await;
    assert!(fleet.get(HUB, &map("one")).await.is_none());
    let left = fleet.get(HUB, &map("two")).await.unwrap();
    let labels = &left["metadata"]["labels"];
    assert_eq!(labels.get("app.oam.dev/name"), None, "{labels}");
    assert_eq!(labels["app.oam.dev/component"], "two");
}

async fn what_others_depend_on_is_deleted_last(fleet: &mut Fleet) {
    start(fleet);
    let mut web = settings("web", "1");
    web["dependsOn"] = json!(["db"]);
    let policies =
        json!([{"name": "gc", "type": "garbage-collect", "properties": {"order": "dependency"}}]);
    let app = app(json!({"components": [settings("db", "1"), web], "policies": policies}));
    fleet.create(HUB, app.clone()).await;
    until_phase(fleet, &app, "running").await;
    let held = |finalizers: Value| json!({"metadata": {"finalizers": finalizers}});
    fleet
        .merge(HUB, &map("web"), held(json!(["example.com/wait"])))
        .await;
    fleet.delete(HUB, &app).await;
    fleet.pass(2_000).await;
    let db = fleet.get(HUB, &map("db")).await.unwrap();
    assert_eq!(db["metadata"].get("deletionTimestamp"), None);
    fleet.merge(HUB, &map("web"), held(Value::Null)).await;
    fleet.until_gone(HUB, &map("db")).await;
    fleet.until_gone(HUB, &app).await;
}

async fn the_objects_of_an_application_can_stay(fleet: &mut Fleet) {
    start(fleet);
    let mut app = app(json!({"components": [settings("one", "1")]}));
    app["metadata"]["finalizers"] = json!(["app.oam.dev/orphan-resource"]);
    fleet.create(HUB, app.clone()).await;
    until_phase(fleet, &app, "running").await;
    fleet.delete(HUB, &app).await;
    fleet.until_gone(HUB, &app).await;
    let left = fleet.get(HUB, &map("one")).await.unwrap();
    assert_eq!(left["metadata"]["labels"].get("app.oam.dev/name"), None);
    assert_eq!(trackers(fleet).await, 0);
}

async fn an_object_that_waits_for_a_finalizer_is_named(fleet: &mut Fleet) {
    start(fleet);
    let app = app(json!({"components": [settings("one", "1")]}));
    fleet.create(HUB, app.clone()).await;
    until_phase(fleet, &app, "running").await;
    let held = json!({"metadata": {"finalizers": ["example.com/wait"]}});
    fleet.merge(HUB, &map("one"), held).await;
    fleet.delete(HUB, &app).await;
    let told = until(fleet, &app, "what it waits for", |app| {
        message_of(app, "Ready").contains("example.com/wait")
    })
    .await;
    assert_eq!(told["status"]["status"], "deleting");
    let released = json!({"metadata": {"finalizers": null}});
    fleet.merge(HUB, &map("one"), released).await;
    fleet.until_gone(HUB, &app).await;
}

async fn an_object_that_was_given_to_somebody_else_stays(fleet: &mut Fleet) {
    start(fleet);
    let app = app(json!({"components": [settings("one", "1")]}));
    fleet.create(HUB, app.clone()).await;
    until_phase(fleet, &app, "running").await;
    let theirs = json!({"metadata": {"labels": {"app.oam.dev/name": "other"}}});
    fleet.merge(HUB, &map("one"), theirs).await;
    until(fleet, &app, "whose it is", |app| {
        message_of(app, "Ready").contains("belongs to application default/other")
    })
    .await;
    fleet.delete(HUB, &app).await;
    fleet.until_gone(HUB, &app).await;
    assert!(fleet.get(HUB, &map("one")).await.is_some());
}
