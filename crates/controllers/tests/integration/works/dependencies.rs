//! What works depend on besides their manifests: namespaces, definitions and rights, of executors and of
//! the agent itself. What changes there is noticed at once.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bellwether_apiserver::{HUB, Identity};
use serde_json::{Value, json};

use crate::fleet::*;

const RBAC: &str = "rbac.authorization.k8s.io/v1";

fn definition() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "birds.zoo.example"},
        "spec": {"group": "zoo.example", "scope": "Namespaced",
            "names": {"kind": "Bird", "plural": "birds", "singular": "bird", "listKind": "BirdList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]},
    })
}

fn bird() -> Value {
    json!({"apiVersion": "zoo.example/v1", "kind": "Bird",
        "metadata": {"name": "robin", "namespace": "default"}, "spec": {"song": "long"}})
}

/// Waits until a condition of a work is so, and checks that it took no longer than that.
async fn until_soon(fleet: &Fleet, work: &Value, name: &str, status: &str) -> Value {
    let start = fleet.clock.now();
    let seen = fleet.until_condition(work, name, status).await;
    let limit = if fleet.is_real() { 15 } else { 2 };
    let end = start + Duration::from_secs(limit);
    assert!(
        fleet.clock.now() < end,
        "{name} is {status} only after {}",
        fleet.clock.now().duration_since(start)
    );
    seen
}

async fn a_namespace_that_appears_later_is_noticed_at_once(fleet: &mut Fleet) {
    let mut homeless = config_map("a", "1");
    homeless["metadata"]["namespace"] = json!("later");
    let work = work("w", json!([homeless]));
    fleet.create(HUB, work.clone()).await;
    fleet.until_condition(&work, "Applied", "False").await;
    fleet.pass(600_000).await;
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "later"}});
    fleet.create(MEMBER, namespace).await;
    until_soon(fleet, &work, "Applied", "True").await;
}

async fn a_definition_that_appears_later_is_noticed_at_once(fleet: &mut Fleet) {
    let work = work("w", json!([bird()]));
    fleet.create(HUB, work.clone()).await;
    fleet.until_condition(&work, "Applied", "False").await;
    fleet.pass(600_000).await;
    fleet.create(MEMBER, definition()).await;
    until_soon(fleet, &work, "Applied", "True").await;
    assert!(fleet.get(MEMBER, &bird()).await.is_some());
}

async fn a_definition_that_goes_takes_applied_along_and_what_comes_back_has_its_owner(
    fleet: &mut Fleet,
) {
    fleet.create(MEMBER, definition()).await;
    let work = work("w", json!([bird()]));
    fleet.create(HUB, work.clone()).await;
    fleet.until_condition(&work, "Applied", "True").await;
    fleet.pass(60_000).await;
    fleet.delete(MEMBER, &definition()).await;
    until_soon(fleet, &work, "Applied", "False").await;
    fleet.until_gone(MEMBER, &definition()).await;
    fleet.pass(600_000).await;
    fleet.create(MEMBER, definition()).await;
    until_soon(fleet, &work, "Applied", "True").await;
    let back = fleet.get(MEMBER, &bird()).await.unwrap();
    let record = fleet.get(MEMBER, &record("w")).await.unwrap();
    assert_eq!(
        back["metadata"]["ownerReferences"][0]["uid"],
        record["metadata"]["uid"]
    );
    fleet.delete(HUB, &work).await;
    fleet.until_gone(HUB, &work).await;
    assert!(fleet.get(MEMBER, &bird()).await.is_none());
}

/// A kind may be served some time after its definition was created. Nobody else waits for that.
async fn a_definition_that_is_not_served_yet_holds_up_no_worker(fleet: &mut Fleet) {
    if fleet.is_real() {
        return;
    }
    fleet.kill_agents();
    fleet.options.workers = 1;
    fleet
        .member_faults
        .birds_are_unserved
        .store(true, Ordering::SeqCst);
    fleet.start_agents(&[MEMBER]).await;
    let slow = work("slow", json!([definition(), bird()]));
    let other = work("other", json!([config_map("a", "1")]));
    fleet.create(HUB, slow.clone()).await;
    fleet.until_there(MEMBER, &definition()).await;
    fleet.create(HUB, other.clone()).await;
    let start = fleet.clock.now();
    fleet.until_condition(&other, "Applied", "True").await;
    let waited = fleet.clock.now().duration_since(start);
    assert!(waited < jiff::SignedDuration::from_secs(1), "{waited}");
    fleet
        .member_faults
        .birds_are_unserved
        .store(false, Ordering::SeqCst);
    let seen = fleet.until_condition(&slow, "Applied", "True").await;
    let events = format!("/api/v1/namespaces/{MEMBER}/events");
    let events = fleet.list(HUB, &events).await;
    assert!(
        events.iter().all(|event| event["reason"] != "ApplyFailed"),
        "a moment is no failure: {seen:#}"
    );
}

fn executor() -> Value {
    json!({"executor": {"subject": {"type": "ServiceAccount",
        "serviceAccount": {"namespace": "default", "name": "deployer"}}}})
}

/// What lets the executor apply ConfigMaps.
fn rights() -> [Value; 2] {
    let verbs = json!(["create", "get", "update", "patch", "delete"]);
    [
        json!({"apiVersion": RBAC, "kind": "Role", "metadata": {"name": "d", "namespace": "default"},
            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs}]}),
        json!({"apiVersion": RBAC, "kind": "RoleBinding", "metadata": {"name": "d", "namespace": "default"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "d"},
            "subjects": [{"kind": "ServiceAccount", "name": "deployer", "namespace": "default"}]}),
    ]
}

async fn rights_that_an_executor_gets_and_loses_are_noticed_at_once(fleet: &mut Fleet) {
    let work = work_with("w", json!([config_map("a", "1")]), executor());
    fleet.create(HUB, work.clone()).await;
    fleet.until_condition(&work, "Applied", "False").await;
    fleet.pass(600_000).await;
    for object in rights() {
        fleet.create(MEMBER, object).await;
    }
    until_soon(fleet, &work, "Applied", "True").await;
    fleet.pass(600_000).await;
    fleet.delete(MEMBER, &rights()[1]).await;
    until_soon(fleet, &work, "Applied", "False").await;
    // What was applied rightly is still the work's, and goes with it.
    assert!(fleet.get(MEMBER, &config_map("a", "")).await.is_some());
    fleet.delete(HUB, &work).await;
    fleet.until_gone(HUB, &work).await;
    assert!(fleet.get(MEMBER, &config_map("a", "")).await.is_none());
}

/// Whether an object is there, and what is in it, is nobody's business who may not apply it.
async fn who_may_not_apply_an_object_learns_nothing_of_it(fleet: &mut Fleet) {
    fleet.create(MEMBER, config_map("secret", "treasure")).await;
    let watched = work("watched", json!([config_map("other", "1")]));
    fleet.create(HUB, watched.clone()).await;
    fleet.until_condition(&watched, "Applied", "True").await;
    let mut spec = executor();
    spec["manifestConfigs"] = json!([{
        "resourceIdentifier": {"resource": "configmaps", "name": "*", "namespace": "default"},
        "feedbackRules": [{"type": "JSONPaths", "jsonPaths": [{"name": "v", "path": ".data.key"}]}],
        "conditionRules": [{"type": "CEL", "condition": "Rich", "celExpressions": ["object.data.key == 'treasure'"]}]}]);
    let manifests = json!([config_map("secret", "1"), config_map("absent", "1")]);
    let work = work_with("w", manifests, spec);
    fleet.create(HUB, work.clone()).await;
    fleet.until_condition(&work, "Applied", "False").await;
    // Time and again it is the same.
    for _ in 0..3 {
        let seen = fleet.get(HUB, &work).await.unwrap();
        for index in [0, 1] {
            let available = manifest_condition(&seen, index, "Available");
            assert_eq!(available["status"], "False", "{seen:#}");
            assert_eq!(available["message"], "Resource is not available");
            assert_eq!(manifest_condition(&seen, index, "Rich")["status"], "False");
            let manifest = &seen["status"]["resourceStatus"]["manifests"][index];
            assert_eq!(manifest["statusFeedback"]["values"], Value::Null);
        }
        fleet.pass(61_000).await;
    }
}

/// A user on a cluster who may do what these rules say.
async fn user(fleet: &Fleet, cluster: &str, rules: Value) -> Identity {
    let role = json!({"apiVersion": RBAC, "kind": "ClusterRole", "metadata": {"name": "limited"}, "rules": rules});
    let binding = json!({"apiVersion": RBAC, "kind": "ClusterRoleBinding", "metadata": {"name": "limited"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "limited"},
        "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "limited"}]});
    for object in [role, binding] {
        fleet.create(cluster, object).await;
    }
    Identity::authenticated("limited", Vec::<String>::new())
}

async fn an_agent_that_may_not_keep_records_says_so_on_the_hub(fleet: &mut Fleet) {
    if fleet.is_real() {
        return;
    }
    fleet.kill_agents();
    let reads =
        json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}]);
    fleet.member_identity = user(fleet, MEMBER, reads).await;
    fleet.start_agents(&[MEMBER]).await;
    let work = work("w", json!([config_map("a", "1")]));
    fleet.create(HUB, work.clone()).await;
    let seen = fleet.until_condition(&work, "Applied", "False").await;
    let message = manifest_condition(&seen, 0, "Applied")["message"].clone();
    let message = message.as_str().unwrap();
    assert!(
        message.contains("the agent may not keep its records on the member")
            && message.contains("customresourcedefinitions.apiextensions.k8s.io is forbidden"),
        "{message}"
    );
}

/// The rights that Open Cluster Management gives to its agents on a hub.
fn role_of_the_peer() -> Value {
    json!([
        {"apiGroups": ["", "events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch", "update"]},
        {"apiGroups": ["work.open-cluster-management.io"], "resources": ["manifestworks"],
         "verbs": ["get", "list", "watch", "update", "patch"]},
        {"apiGroups": ["work.open-cluster-management.io"], "resources": ["manifestworks/status"],
         "verbs": ["patch", "update"]},
    ])
}

async fn an_agent_with_the_role_of_the_peer_does_its_work(fleet: &mut Fleet) {
    if fleet.is_real() {
        return;
    }
    fleet.kill_agents();
    fleet.hub_identity = user(fleet, HUB, role_of_the_peer()).await;
    fleet.start_agents(&[MEMBER]).await;
    let mut spec = json!({"manifestConfigs": [{
        "resourceIdentifier": {"group": "batch", "resource": "jobs", "name": "once", "namespace": "default"},
        "conditionRules": [{"type": "WellKnownCompletions"}]}]});
    spec["deleteOption"] = json!({"ttlSecondsAfterFinished": 5});
    let work = work_with("w", json!([job("once")]), spec);
    fleet.create(HUB, work.clone()).await;
    fleet.until_condition(&work, "Applied", "True").await;
    // It may not delete the work: it says so once, and leaves that to the hub.
    fleet.merge_status(MEMBER, &job("once"), job_done()).await;
    fleet.until_condition(&work, "Complete", "True").await;
    fleet.pass(600_000).await;
    assert!(fleet.get(HUB, &work).await.is_some());
    let events = format!("/api/v1/namespaces/{MEMBER}/events");
    let events = fleet.list(HUB, &events).await;
    let told = events.iter().filter(|it| it["reason"] == "TTLLeftToHub");
    assert_eq!(told.count(), 1, "{events:#?}");
    let client = fleet.client(HUB);
    let hub = bellwether_controllers::Hub::new(client, fleet.clock.clone());
    fleet.run(bellwether_controllers::work_ttl::run(hub));
    fleet.until_gone(HUB, &work).await;
    assert!(fleet.get(MEMBER, &job("once")).await.is_none());
}

crate::cases![
    a_namespace_that_appears_later_is_noticed_at_once,
    a_definition_that_appears_later_is_noticed_at_once,
    a_definition_that_goes_takes_applied_along_and_what_comes_back_has_its_owner,
    a_definition_that_is_not_served_yet_holds_up_no_worker,
    rights_that_an_executor_gets_and_loses_are_noticed_at_once,
    who_may_not_apply_an_object_learns_nothing_of_it,
    an_agent_that_may_not_keep_records_says_so_on_the_hub,
    an_agent_with_the_role_of_the_peer_does_its_work,
];
