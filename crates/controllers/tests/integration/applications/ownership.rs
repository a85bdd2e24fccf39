//! Objects that others have: shared, taken over, only read, or not touched.

use super::*;

cases! {
    a_shared_object_goes_from_one_application_to_the_next,
    who_leaves_a_shared_object_first_is_no_longer_on_its_list,
    an_object_of_another_application_is_not_touched,
    an_adopted_object_keeps_what_others_added_and_goes_with_the_application,
    what_is_read_only_is_never_written,
    what_is_read_only_has_to_exist,
    an_application_has_the_rights_of_its_service_account,
}

fn rule(kind: &str) -> Value {
    json!([{"name": kind, "type": kind, "properties": {"rules": [{"selector": {"resourceTypes": ["ConfigMap"]}}]}}])
}

fn sharing(name: &str, value: &str) -> Value {
    app_named(
        name,
        json!({"components": [settings("common", value)], "policies": rule("shared-resource")}),
    )
}

const SHARED_BY: &str = "app.oam.dev/shared-by";

fn sharers(map: &Value) -> &Value {
    &map["metadata"]["annotations"][SHARED_BY]
}

async fn a_shared_object_goes_from_one_application_to_the_next(fleet: &mut Fleet) {
    start(fleet);
    let (first, second) = (sharing("first", "1"), sharing("second", "2"));
    fleet.create(HUB, first.clone()).await;
    until_phase(fleet, &first, "running").await;
    fleet.create(HUB, second.clone()).await;
    until_phase(fleet, &second, "running").await;
    let common = fleet.get(HUB, &map("common")).await.unwrap();
    assert_eq!(*sharers(&common), "default/first,default/second");
    assert_eq!(common["data"]["key"], "1");
    fleet.delete(HUB, &first).await;
    fleet.until_gone(HUB, &first).await;
    // The second has it now, and writes it when it is due again.
    let common = fleet.get(HUB, &map("common")).await.unwrap();
    assert_eq!(common["data"]["key"], "1");
    fleet.pass(5 * 60_000).await;
    let common = until(fleet, &map("common"), "the second's", |map| {
        map["data"]["key"] == "2"
    })
    .await;
    assert_eq!(*sharers(&common), "default/second");
    assert_eq!(
        common["metadata"]["labels"]["app.oam.dev/name"], "second",
        "{common}"
    );
    fleet.delete(HUB, &second).await;
    fleet.until_gone(HUB, &second).await;
    fleet.until_gone(HUB, &map("common")).await;
}

async fn who_leaves_a_shared_object_first_is_no_longer_on_its_list(fleet: &mut Fleet) {
    start(fleet);
    let (first, second) = (sharing("first", "1"), sharing("second", "2"));
    fleet.create(HUB, first.clone()).await;
    until_phase(fleet, &first, "running").await;
    fleet.create(HUB, second.clone()).await;
    until_phase(fleet, &second, "running").await;
    fleet.delete(HUB, &second).await;
    fleet.until_gone(HUB, &second).await;
    let common = fleet.get(HUB, &map("common")).await.unwrap();
    assert_eq!(*sharers(&common), "default/first");
    fleet.delete(HUB, &first).await;
    fleet.until_gone(HUB, &map("common")).await;
}

async fn an_object_of_another_application_is_not_touched(fleet: &mut Fleet) {
    start(fleet);
    let owner = app_named("owner", json!({"components": [settings("fought", "1")]}));
    let other = app_named("other", json!({"components": [settings("fought", "2")]}));
    fleet.create(HUB, owner.clone()).await;
    until_phase(fleet, &owner, "running").await;
    fleet.create(HUB, other.clone()).await;
    let told = until(fleet, &other, "why it waits", |app| {
        message_of(app, "Ready").contains("belongs to application default/owner")
    })
    .await;
    assert!(message_of(&told, "Ready").contains("component fought"));
    assert_eq!(condition(&told["status"], "Workflow")["status"], "False");
    until_event(fleet, "other", "belongs to application default/owner").await;
    fleet.delete(HUB, &other).await;
    fleet.until_gone(HUB, &other).await;
    assert_eq!(
        fleet.get(HUB, &map("fought")).await.unwrap()["data"]["key"],
        "1"
    );
}

async fn an_adopted_object_keeps_what_others_added_and_goes_with_the_application(
    fleet: &mut Fleet,
) {
    start(fleet);
    let mut own = map("adopted");
    own["data"] = json!({"key": "theirs", "foreign": "x"});
    fleet.create(HUB, own).await;
    let app = app(json!({"components": [settings("adopted", "1")], "policies": rule("take-over")}));
    fleet.create(HUB, app.clone()).await;
    until_phase(fleet, &app, "running").await;
    let adopted = fleet.get(HUB, &map("adopted")).await.unwrap();
    assert_eq!(adopted["data"], json!({"key": "1", "foreign": "x"}));
    fleet.delete(HUB, &app).await;
    fleet.until_gone(HUB, &map("adopted")).await;
}

async fn what_is_read_only_is_never_written(fleet: &mut Fleet) {
    start(fleet);
    let mut own = map("museum");
    own["data"] = json!({"key": "theirs"});
    let before = fleet.create(HUB, own).await;
    let app = app(json!({"components": [settings("museum", "1")], "policies": rule("read-only")}));
    fleet.create(HUB, app.clone()).await;
    until_phase(fleet, &app, "running").await;
    fleet.delete(HUB, &app).await;
    fleet.until_gone(HUB, &app).await;
    let after = fleet.get(HUB, &map("museum")).await.unwrap();
    assert_eq!(
        after["metadata"]["resourceVersion"],
        before["metadata"]["resourceVersion"]
    );
}

async fn what_is_read_only_has_to_exist(fleet: &mut Fleet) {
    start(fleet);
    let app = app(json!({"components": [settings("museum", "1")], "policies": rule("read-only")}));
    fleet.create(HUB, app.clone()).await;
    until(fleet, &app, "what is missing", |app| {
        message_of(app, "Ready").contains("ConfigMap default/museum is read-only by policy")
    })
    .await;
    assert!(fleet.get(HUB, &map("museum")).await.is_none());
}

async fn an_application_has_the_rights_of_its_service_account(fleet: &mut Fleet) {
    start(fleet);
    let mut app = app(json!({"components": [settings("one", "1")]}));
    app["metadata"]["annotations"] = json!({"app.oam.dev/service-account-name": "deployer"});
    fleet.create(HUB, app.clone()).await;
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "deployer", "namespace": "default"}});
    fleet.create(HUB, account).await;
    let told = until(fleet, &app, "what it may not", |app| {
        message_of(app, "Ready").contains("one")
    })
    .await;
    assert!(
        message_of(&told, "Ready").contains("ConfigMap default/one"),
        "{told}"
    );
    assert!(fleet.get(HUB, &map("one")).await.is_none());
    let rights = "rbac.authorization.k8s.io/v1";
    fleet.create(HUB, json!({"apiVersion": rights, "kind": "Role", "metadata": {"name": "deployer", "namespace": "default"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "create", "update", "patch", "delete"]}]})).await;
    fleet.create(HUB, json!({"apiVersion": rights, "kind": "RoleBinding", "metadata": {"name": "deployer", "namespace": "default"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "deployer"},
        "subjects": [{"kind": "ServiceAccount", "name": "deployer", "namespace": "default"}]})).await;
    until_phase(fleet, &app, "running").await;
}
