//! Revisions of applications and of definitions: what is rendered by which.

use super::*;

cases! {
    a_changed_definition_reaches_an_application_with_its_next_change,
    a_definition_that_could_not_be_rendered_is_tried_again_when_it_changes,
    auto_update_follows_definitions,
    a_version_of_a_definition_can_be_asked_for,
    with_publish_version_changes_wait,
    a_rollback_brings_back_the_definitions_too,
    old_revisions_are_deleted_and_the_delivered_one_stays,
    copied_objects_stay_as_they_were,
    objects_of_custom_kinds_can_be_copied,
}

fn wall(version: &str, note: &str) -> Value {
    let mut component = settings("note", note);
    component["name"] = "note".into();
    json!({"components": [{"name": "wall", "type": format!("paint{version}")}, component]})
}

async fn colour_is(fleet: &Fleet, colour: &str) {
    let colour = colour.to_owned();
    until(fleet, &map("wall"), "its colour", |map| {
        map["data"]["colour"] == colour
    })
    .await;
}

async fn repaint(fleet: &Fleet, colour: &str) {
    let spec = paint(colour)["spec"].clone();
    fleet.merge(HUB, &paint(""), json!({"spec": spec})).await;
    let template = spec["schematic"]["cue"]["template"].clone();
    // The revision tells that controllers have heard of the change.
    let revisions = "/apis/core.oam.dev/v1beta1/namespaces/default/definitionrevisions";
    for _ in 0..100 {
        let known = fleet.list(HUB, revisions).await;
        let is_there = known.iter().any(|revision| {
            revision["spec"]["componentDefinition"]["spec"]["schematic"]["cue"]["template"]
                == template
        });
        if is_there {
            return;
        }
        fleet.pass(100).await;
    }
    panic!("there is no revision of {colour} paint");
}

async fn revision_of(fleet: &Fleet, app: &Value) -> Value {
    fleet.get(HUB, app).await.unwrap()["status"]["latestRevision"]["name"].clone()
}

async fn a_changed_definition_reaches_an_application_with_its_next_change(fleet: &mut Fleet) {
    start(fleet);
    fleet.create(HUB, paint("red")).await;
    let app = app(wall("", "1"));
    fleet.create(HUB, app.clone()).await;
    until_phase(fleet, &app, "running").await;
    colour_is(fleet, "red").await;
    repaint(fleet, "blue").await;
    // Repairs are made by the definition that the revision recorded.
    fleet.delete(HUB, &map("wall")).await;
    colour_is(fleet, "red").await;
    fleet.pass(2_000).await;
    assert_eq!(revision_of(fleet, &app).await, "shop-v1");
    fleet.merge(HUB, &app, json!({"spec": wall("", "2")})).await;
    colour_is(fleet, "blue").await;
    until_phase(fleet, &app, "running").await;
    assert_eq!(revision_of(fleet, &app).await, "shop-v2");
    let revision = json!({"apiVersion": "core.oam.dev/v1beta1", "kind": "ApplicationRevision",
        "metadata": {"name": "shop-v2", "namespace": "default"}});
    let revision = until(fleet, &revision, "it succeeded", |it| {
        it["status"]["succeeded"] == true
    })
    .await;
    // No step reads what it is rendered to.
    assert!(revision["spec"]["resourcesConfigMap"].is_null());
    assert!(revision["spec"]["componentDefinitions"]["paint"]["spec"].is_object());
}

async fn a_definition_that_could_not_be_rendered_is_tried_again_when_it_changes(fleet: &mut Fleet) {
    start(fleet);
    let mut broken = paint("red");
    broken["spec"]["schematic"]["cue"]["template"] =
        "output: {apiVersion: \"v1\", kind: \"ConfigMap\", data: colour: 1}".into();
    fleet.create(HUB, broken).await;
    let app = app(wall("", "1"));
    fleet.create(HUB, app.clone()).await;
    until(fleet, &app, "what is wrong", |app| {
        message_of(app, "Ready").contains("component wall")
    })
    .await;
    repaint(fleet, "blue").await;
    until_phase(fleet, &app, "running").await;
    colour_is(fleet, "blue").await;
}

async fn auto_update_follows_definitions(fleet: &mut Fleet) {
    start(fleet);
    fleet.create(HUB, paint("red")).await;
    let mut app = app(wall("", "1"));
    app["metadata"]["annotations"] = json!({"app.oam.dev/autoUpdate": "true"});
    fleet.create(HUB, app.clone()).await;
    until_phase(fleet, &app, "running").await;
    repaint(fleet, "blue").await;
    colour_is(fleet, "blue").await;
}

async fn a_version_of_a_definition_can_be_asked_for(fleet: &mut Fleet) {
    start(fleet);
    fleet.create(HUB, paint("red")).await;
    repaint(fleet, "red").await;
    repaint(fleet, "blue").await;
    let definition = until(fleet, &paint(""), "its revision", |it| {
        it["status"]["latestRevision"]["name"] == "paint-v2"
    })
    .await;
    assert_eq!(condition(&definition["status"], "Synced")["status"], "True");
    let app = app(wall("@v1", "1"));
    fleet.create(HUB, app.clone()).await;
    until_phase(fleet, &app, "running").await;
    colour_is(fleet, "red").await;
    let labels = &fleet.get(HUB, &map("wall")).await.unwrap()["metadata"]["labels"];
    assert_eq!(labels["workload.oam.dev/type"], "paint-v1");
    let unknown = json!({"spec": wall("@v7", "1")});
    fleet.merge(HUB, &app, unknown).await;
    until(fleet, &app, "what is missing is named", |it| {
        let parsed = condition(&it["status"], "Parsed");
        let message = parsed["message"].as_str().unwrap_or_default();
        parsed["status"] == "False" && message.contains("paint")
    })
    .await;
    colour_is(fleet, "red").await;
}

async fn with_publish_version_changes_wait(fleet: &mut Fleet) {
    start(fleet);
    let version = |version: &str| json!({"metadata": {"annotations": {"app.oam.dev/publishVersion": version}}});
    let mut app = app(json!({"components": [settings("one", "1")]}));
    app["metadata"]["annotations"] = version("alpha")["metadata"]["annotations"].clone();
    fleet.create(HUB, app.clone()).await;
    until_phase(fleet, &app, "running").await;
    fleet
        .merge(
            HUB,
            &app,
            json!({"spec": {"components": [settings("one", "2")]}}),
        )
        .await;
    until_phase(fleet, &app, "running").await;
    fleet.pass(2_000).await;
    assert_eq!(
        fleet.get(HUB, &map("one")).await.unwrap()["data"]["key"],
        "1"
    );
    assert_eq!(revision_of(fleet, &app).await, "shop-v1");
    fleet.merge(HUB, &app, version("beta")).await;
    until(fleet, &map("one"), "its value", |map| {
        map["data"]["key"] == "2"
    })
    .await;
    until(fleet, &app, "its revision", |app| {
        app["status"]["latestRevision"]["name"] == "shop-v2"
    })
    .await;
}

async fn a_rollback_brings_back_the_definitions_too(fleet: &mut Fleet) {
    start(fleet);
    fleet.create(HUB, paint("red")).await;
    let app = app(wall("", "1"));
    fleet.create(HUB, app.clone()).await;
    until_phase(fleet, &app, "running").await;
    repaint(fleet, "blue").await;
    fleet.merge(HUB, &app, json!({"spec": wall("", "2")})).await;
    colour_is(fleet, "blue").await;
    until_phase(fleet, &app, "running").await;
    let back = json!({"metadata": {"annotations": {"app.bellwether.dev/rolled-back-to": "shop-v1"}},
        "spec": wall("", "1")});
    fleet.merge(HUB, &app, back).await;
    colour_is(fleet, "red").await;
    until_phase(fleet, &app, "running").await;
    assert_eq!(revision_of(fleet, &app).await, "shop-v1");
}

async fn old_revisions_are_deleted_and_the_delivered_one_stays(fleet: &mut Fleet) {
    start(fleet);
    let spec = |value: &str| {
        json!({"components": [settings("one", value)], "policies": [
            {"name": "gc", "type": "garbage-collect", "properties": {"applicationRevisionLimit": 2}}]})
    };
    let app = app(spec("1"));
    fleet.create(HUB, app.clone()).await;
    until_phase(fleet, &app, "running").await;
    for value in ["2", "3", "4", "5", "6"] {
        fleet.merge(HUB, &app, json!({"spec": spec(value)})).await;
        until_phase(fleet, &app, "running").await;
        fleet.pass(500).await;
    }
    let names: Vec<Value> = fleet
        .list(
            HUB,
            "/apis/core.oam.dev/v1beta1/namespaces/default/applicationrevisions",
        )
        .await
        .iter()
        .map(|revision| revision["metadata"]["name"].clone())
        .collect();
    assert!(
        names.len() <= 4 && names.contains(&json!("shop-v6")),
        "{names:?}"
    );
    fleet.until_gone(HUB, &map("shop-v1")).await;
}

async fn copied_objects_stay_as_they_were(fleet: &mut Fleet) {
    start(fleet);
    let mut original = map("origin");
    original["data"] = json!({"key": "old"});
    fleet.create(HUB, original.clone()).await;
    let copy = json!({"name": "copy", "type": "ref-objects", "properties": {"objects": [
        {"resource": "configmap", "name": "origin"}]}});
    let far = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "far-copies"}});
    fleet.create(HUB, far).await;
    let app = app(json!({"components": [copy], "policies": [
        {"name": "there", "type": "topology", "properties": {"clusters": ["local"], "namespace": "far-copies"}}]}));
    fleet.create(HUB, app.clone()).await;
    until_phase(fleet, &app, "running").await;
    let mut copied = map("origin");
    copied["metadata"]["namespace"] = "far-copies".into();
    assert_eq!(fleet.get(HUB, &copied).await.unwrap()["data"]["key"], "old");
    fleet
        .merge(HUB, &original, json!({"data": {"key": "new"}}))
        .await;
    fleet.delete(HUB, &copied).await;
    let again = until(fleet, &copied, "it is there again", |_| true).await;
    assert_eq!(again["data"]["key"], "old");
}

async fn objects_of_custom_kinds_can_be_copied(fleet: &mut Fleet) {
    start(fleet);
    let schema = json!({"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}});
    let names =
        json!({"kind": "Widget", "plural": "widgets", "singular": "widget", "shortNames": ["wg"]});
    let definition = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.org"}, "spec": {"group": "example.org", "scope": "Namespaced",
            "names": names, "versions": [{"name": "v1", "served": true, "storage": true, "schema": schema}]}});
    fleet.create(HUB, definition).await;
    let widget = |namespace: &str| {
        json!({"apiVersion": "example.org/v1", "kind": "Widget",
            "metadata": {"name": "origin", "namespace": namespace}, "spec": {"size": 1}})
    };
    create_when_known(fleet, &widget("default")).await;
    let far = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "far-widgets"}});
    fleet.create(HUB, far).await;
    let policy = json!([{"name": "there", "type": "topology", "properties": {"clusters": ["local"], "namespace": "far-widgets"}}]);
    let copy = |resource: &str| {
        json!([{"name": "origin", "type": "ref-objects", "properties": {"objects": [
            {"resource": resource, "group": "example.org"}]}}])
    };
    let app = app(json!({"components": copy("widgets"), "policies": policy}));
    fleet.create(HUB, app.clone()).await;
    until_phase(fleet, &app, "running").await;
    let copied = fleet.get(HUB, &widget("far-widgets")).await.unwrap();
    assert_eq!(copied["spec"]["size"], 1);
    // It stays as it was when the original changes, and other names of the kind mean the same.
    let change = json!({"spec": {"size": 2}});
    fleet.merge(HUB, &widget("default"), change).await;
    fleet.delete(HUB, &widget("far-widgets")).await;
    let again = until(fleet, &widget("far-widgets"), "it is there again", |_| true).await;
    assert_eq!(again["spec"]["size"], 1);
    fleet
        .merge(HUB, &app, json!({"spec": {"components": copy("wg")}}))
        .await;
    until(fleet, &widget("far-widgets"), "the new size", |it| {
        it["spec"]["size"] == 2
    })
    .await;
    fleet
        .merge(HUB, &app, json!({"spec": {"components": copy("gadgets")}}))
        .await;
    until(fleet, &app, "that there is no such kind", |app| {
        message_of(app, "Parsed")
            .contains(r#"component origin: ref-objects: there is no resource "gadgets""#)
    })
    .await;
}
