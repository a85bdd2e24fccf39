//! Values of applied objects come back to the hub, in both interfaces.

use std::sync::atomic::Ordering;

use crate::fleet::*;
use bellwether_apiserver::HUB;
use serde_json::{Value, json};

fn values(work: &Value) -> &Value {
    &work["status"]["resourceStatus"]["manifests"][0]["statusFeedback"]["values"]
}

async fn the_status_of_a_deployment_is_on_the_hub_as_soon_as_it_changes(fleet: &mut Fleet) {
    let spec = json!({"manifestConfigs": [{
        "resourceIdentifier": {"group": "apps", "resource": "deployments", "name": "web", "namespace": "default"},
        "feedbackRules": [{"type": "WellKnownStatus"}, {"type": "JSONPaths", "jsonPaths": [
            {"name": "image", "path": ".spec.template.spec.containers[0].image"},
            {"name": "missing", "path": ".status.none"}]}]}]});
    let work = work_with("w", json!([deployment("web", 2)]), spec);
    fleet.create(HUB, work.clone()).await;
    let seen = fleet.until_condition(&work, "Applied", "True").await;
    let image = json!({"name": "image", "fieldValue": {"type": "String", "string": "nginx"}});
    assert_eq!(values(&seen), &json!([image]));
    fleet
        .merge_status(
            MEMBER,
            &deployment("web", 0),
            json!({"replicas": 2, "readyReplicas": 1}),
        )
        .await;
    fleet.pass(200).await;
    let seen = fleet.get(HUB, &work).await.unwrap();
    let integer = |name: &str, value: i64| json!({"name": name, "fieldValue": {"type": "Integer", "integer": value}});
    assert_eq!(
        values(&seen),
        &json!([integer("ReadyReplicas", 1), integer("Replicas", 2), image])
    );
    let synced = manifest_condition(&seen, 0, "StatusFeedbackSynced");
    assert_eq!(synced["status"], "True");
    assert_eq!(synced["reason"], "StatusFeedbackSynced");
    assert_eq!(synced["message"], "");
}

async fn wrong_rules_are_told_and_the_others_answered(fleet: &mut Fleet) {
    let spec = json!({"manifestConfigs": [{
        "resourceIdentifier": {"resource": "configmaps", "name": "a", "namespace": "default"},
        "feedbackRules": [{"type": "WellKnownStatus"}, {"type": "JSONPaths", "jsonPaths": [
            {"name": "all", "path": ".data"},
            {"name": "bad", "path": ".data["},
            {"name": "old", "version": "v1beta1", "path": ".data.key"},
            {"name": "key", "path": ".data.key"}]}]}]});
    let work = work_with("w", json!([config_map("a", "1")]), spec);
    fleet.create(HUB, work.clone()).await;
    let seen = fleet.until_condition(&work, "Applied", "True").await;
    assert_eq!(
        values(&seen),
        &json!([{"name": "key", "fieldValue": {"type": "String", "string": "1"}}])
    );
    let synced = manifest_condition(&seen, 0, "StatusFeedbackSynced");
    assert_eq!(synced["reason"], "StatusFeedbackSyncFailed");
    let message = synced["message"].as_str().unwrap();
    for part in [
        "Sync status feedback failed with error [",
        "cannot find the wellknown statuses for resource with gvk /v1, Kind=ConfigMap",
        "the type map[string]interface {} of the value for all is not found",
        "failed to parse json path .data[ of bad with error:",
        "version set in the path old is not matched for the related resource",
    ] {
        assert!(message.contains(part), "{message}");
    }
}

fn small_work(manifests: Value) -> Value {
    json!({"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "Work",
        "metadata": {"name": "w", "namespace": MEMBER}, "spec": {"workload": {"manifests": manifests}}})
}

/// The configuration of the document, as it is written there.
fn config() -> Value {
    bellwether_json::yaml::value_from_yaml(
        r#"
apiVersion: multicluster.x-k8s.io/v1alpha1
kind: WorkManifestConfig
metadata:
  name: apps-v1-deployment # prefer naming scheme
spec:
  manifestGVK:
    group: apps
    version: v1
    kind: Deployment
  resourceStatusSync:
    stopThreshold: 0
    frequencySeconds: 60
    rules:
    - type: JSONPaths
      jsonPaths:
      - name: isAvailable
        path: '.status.conditions[?(@.type=="Available")].status'
    - type: Scripts
      scripts:
      - name: isReady
        language: CEL
        content: 'size(readyReplicas) > 0'
"#,
    )
    .unwrap()
}

async fn the_example_of_the_work_api_gives_the_status_that_it_shows(fleet: &mut Fleet) {
    fleet.create(HUB, config()).await;
    let work = small_work(json!([deployment("test-nginx", 1)]));
    fleet.create(HUB, work.clone()).await;
    fleet.until_condition(&work, "Applied", "True").await;
    let status = json!({"replicas": 1, "readyReplicas": 1, "conditions": [
        {"type": "Available", "status": "True", "reason": "MinimumReplicasAvailable", "message": "",
         "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"}]});
    fleet
        .merge_status(MEMBER, &deployment("test-nginx", 1), status)
        .await;
    let seen = fleet
        .until(HUB, &work, "values are there", |work| {
            work.is_some_and(|work| {
                !work["status"]["manifestConditions"][0]["statusSync"]["values"].is_null()
            })
        })
        .await
        .unwrap();
    let manifest = &seen["status"]["manifestConditions"][0];
    assert_eq!(
        manifest["statusSync"]["values"],
        json!([
            {"name": "isAvailable", "fieldValue": {"type": "String", "string": "True"}},
            {"name": "isReady", "fieldValue": {"type": "Boolean", "boolean": true}},
        ])
    );
    let check = |name: &str, reason: &str, message: &str| {
        let found = condition(manifest, name);
        assert_eq!(found["status"], "True");
        assert_eq!(found["reason"], reason);
        assert_eq!(found["message"], message);
    };
    check(
        "Applied",
        "AppliedManifestComplete",
        "Apply manifest complete",
    );
    check("Available", "ResourceAvailable", "Resource is available");
    check("StatusSynced", "StatusSynced", "");
    assert_eq!(condition(manifest, "Applied")["observedGeneration"], 1);
    assert_eq!(manifest["identifier"]["resource"], "deployments");
    assert_eq!(manifest["identifier"]["group"], "apps");
    let applied = condition(&seen["status"], "Applied");
    assert_eq!(applied["reason"], "AppliedWorkComplete");
    assert_eq!(applied["message"], "Apply work complete");
    fleet.delete(HUB, &work).await;
    fleet.until_gone(HUB, &work).await;
    assert!(
        fleet
            .get(MEMBER, &deployment("test-nginx", 1))
            .await
            .is_none()
    );
}

fn synced(work: &Value) -> &Value {
    &work["status"]["manifestConditions"][0]["statusSync"]["values"]
}

/// "Add, update or remove an sync field", "Status field updates"
async fn a_changed_configuration_takes_effect_at_once_and_values_at_their_pace(fleet: &mut Fleet) {
    let mut config = config();
    config["metadata"]["name"] = json!("v1-configmap");
    config["spec"] = json!({"manifestGVK": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "resourceStatusSync": {"frequencySeconds": 60, "rules": [
            {"type": "JSONPaths", "jsonPaths": [{"name": "key", "path": ".data.key"}]}]}});
    fleet.create(HUB, config.clone()).await;
    let work = small_work(json!([{"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "default"}, "data": {"key": "1"}}]));
    fleet.create(HUB, work.clone()).await;
    let seen = fleet.until_condition(&work, "Applied", "True").await;
    let text = |value: &str| json!({"type": "String", "string": value});
    assert_eq!(
        synced(&seen),
        &json!([{"name": "key", "fieldValue": text("1")}])
    );
    // Another question, answered at once; lists and maps are bytes.
    let rules = json!([{"type": "JSONPaths", "jsonPaths": [{"name": "all", "path": ".data"}, {"name": "key", "path": ".data.key"}]}]);
    let change = json!({"spec": {"resourceStatusSync": {"rules": rules}}});
    fleet.merge(HUB, &config, change).await;
    fleet.pass(200).await;
    let seen = fleet.get(HUB, &work).await.unwrap();
    let all = json!({"type": "ByteArray", "byteArray": "eyJrZXkiOiIxIn0="});
    assert_eq!(
        synced(&seen),
        &json!([{"name": "all", "fieldValue": all}, {"name": "key", "fieldValue": text("1")}])
    );
    // A wrong one is told.
    let rules = json!([{"type": "JSONPaths", "jsonPaths": [{"name": "bad", "path": ".data["}]},
        {"type": "Scripts", "scripts": [{"name": "lua", "language": "Lua", "content": "1"}, {"name": "no", "language": "CEL", "content": "missing > 1"}]}]);
    fleet
        .merge(
            HUB,
            &config,
            json!({"spec": {"resourceStatusSync": {"rules": rules}}}),
        )
        .await;
    fleet.pass(200).await;
    let seen = fleet.get(HUB, &work).await.unwrap();
    let found = condition(&seen["status"]["manifestConditions"][0], "StatusSynced");
    assert_eq!(found["status"], "False");
    assert_eq!(found["reason"], "StatusSyncFailed");
    let message = found["message"].as_str().unwrap();
    assert!(
        message.contains("of bad") && message.contains("Lua") && !message.contains("missing"),
        "{message}"
    );
    // Without a configuration nothing comes back.
    fleet.delete(HUB, &config).await;
    fleet.pass(200).await;
    let seen = fleet.get(HUB, &work).await.unwrap();
    assert_eq!(synced(&seen), &Value::Null);
    assert_eq!(
        condition(&seen["status"]["manifestConditions"][0], "StatusSynced"),
        &Value::Null
    );
}

async fn values_are_told_at_most_once_in_a_period_and_until_they_rest(fleet: &mut Fleet) {
    let mut config = config();
    config["spec"]["resourceStatusSync"] = json!({"frequencySeconds": 10, "stopThreshold": 3, "rules": [
        {"type": "JSONPaths", "jsonPaths": [{"name": "ready", "path": ".status.readyReplicas"}]}]});
    fleet.create(HUB, config.clone()).await;
    let work = small_work(json!([deployment("web", 3)]));
    fleet.create(HUB, work.clone()).await;
    fleet.until_condition(&work, "Applied", "True").await;
    fleet.pass(15_000).await;
    let ready = async |number: i64| {
        let status = json!({"replicas": 3, "readyReplicas": number});
        fleet
            .merge_status(MEMBER, &deployment("web", 3), status)
            .await;
        fleet.pass(200).await;
    };
    let told = async || {
        let seen = fleet.get(HUB, &work).await.unwrap();
        synced(&seen)[0]["fieldValue"]["integer"].as_i64()
    };
    ready(1).await;
    assert_eq!(told().await, Some(1), "after a rest, at once");
    ready(2).await;
    assert_eq!(told().await, Some(1), "not again so soon");
    fleet.pass(10_000).await;
    assert_eq!(told().await, Some(2), "but in time");
    fleet.pass(40_000).await;
    ready(3).await;
    fleet.pass(20_000).await;
    assert_eq!(
        told().await,
        Some(2),
        "three periods without a change are the end"
    );
    fleet
        .merge(
            HUB,
            &config,
            json!({"spec": {"resourceStatusSync": {"stopThreshold": 0}}}),
        )
        .await;
    fleet.pass(200).await;
    assert_eq!(told().await, Some(3));
}

async fn a_value_that_was_not_there_before_is_told_at_once(fleet: &mut Fleet) {
    fleet.create(HUB, config()).await;
    let work = small_work(json!([deployment("web", 1)]));
    fleet.create(HUB, work.clone()).await;
    fleet.until_condition(&work, "Applied", "True").await;
    let status = |available: &str, ready: Option<i64>| {
        json!({"replicas": 1, "readyReplicas": ready, "conditions": [
            {"type": "Available", "status": available, "reason": "R", "message": "",
             "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"}]})
    };
    let object = deployment("web", 1);
    let names = |work: &Value| -> Vec<String> {
        let values = synced(work).as_array().cloned().unwrap_or_default();
        let name = |value: &Value| value["name"].as_str().unwrap_or_default().to_owned();
        values.iter().map(name).collect()
    };
    let has = |wanted: &'static [&'static str]| {
        move |work: Option<&Value>| work.is_some_and(|work| names(work) == wanted)
    };
    fleet
        .merge_status(MEMBER, &object, status("False", None))
        .await;
    fleet
        .until(HUB, &work, "the first is told", has(&["isAvailable"]))
        .await;
    // Long before the period is over.
    fleet
        .merge_status(MEMBER, &object, status("True", Some(1)))
        .await;
    let seen = fleet
        .until(HUB, &work, "both are", has(&["isAvailable", "isReady"]))
        .await;
    let seen = seen.unwrap();
    assert_eq!(synced(&seen)[0]["fieldValue"]["string"], "True");
    assert_eq!(synced(&seen)[1]["fieldValue"]["boolean"], true);
}

async fn objects_that_cannot_be_watched_are_read_as_often_as_their_values_are_asked_for(
    fleet: &mut Fleet,
) {
    let refused = &fleet.member_faults.lists_are_refused;
    refused.store(true, Ordering::SeqCst);
    let mut config = config();
    config["metadata"]["name"] = json!("v1-configmap");
    config["spec"] = json!({"manifestGVK": {"group": "", "version": "v1", "kind": "ConfigMap"},
        "resourceStatusSync": {"frequencySeconds": 2, "rules": [
            {"type": "JSONPaths", "jsonPaths": [{"name": "mark", "path": ".metadata.labels.mark"}]}]}});
    fleet.create(HUB, config).await;
    let object = config_map("a", "1");
    let work = small_work(json!([object]));
    fleet.create(HUB, work.clone()).await;
    fleet.until_condition(&work, "Applied", "True").await;
    // By then it is seldom tried whether watching is allowed after all.
    fleet.pass(600_000).await;
    for mark in ["1", "2", "3", "4"] {
        let change = json!({"metadata": {"labels": {"mark": mark}}});
        fleet.merge(MEMBER, &object, change).await;
        // Agents read such objects every ten seconds if nobody asks for more.
        fleet.pass(4_500).await;
        let seen = fleet.get(HUB, &work).await.unwrap();
        assert_eq!(synced(&seen)[0]["fieldValue"]["string"], mark);
    }
}

/// "Invalid status fields"
async fn invalid_status_fields_are_told_and_the_others_synced(fleet: &mut Fleet) {
    let mut config = config();
    let paths = |name: &str, path: &str| json!({"name": name, "path": path});
    config["spec"]["resourceStatusSync"]["rules"] = json!([
        {"type": "JSONPaths", "jsonPaths": [
            paths("unclosed", ".status.conditions["),
            paths("nowhere", ".status.nothing.here"),
            paths("replicas", ".status.replicas"),
            paths("types", ".status.conditions[*].type"),
            paths("third", ".status.conditions[2].type"),
            paths("one", ".status.conditions[?(@.type=='Available')].status")]},
        {"type": "Scripts", "scripts": [
            {"name": "broken", "language": "CEL", "content": "1 +"},
            {"name": "unknown", "language": "JavaScript", "content": "1"},
            {"name": "double", "language": "CEL", "content": "replicas * 2"}]},
    ]);
    fleet.create(HUB, config).await;
    let work = small_work(json!([deployment("web", 3)]));
    fleet.create(HUB, work.clone()).await;
    fleet.until_condition(&work, "Applied", "True").await;
    let said = |name: &str| {
        json!({"type": name, "status": "True", "reason": "R", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z", "lastUpdateTime": "2026-01-01T00:00:00Z"})
    };
    let status = json!({"replicas": 3, "conditions": [said("Available"), said("Progressing")]});
    fleet
        .merge_status(MEMBER, &deployment("web", 3), status)
        .await;
    let has_values =
        |work: Option<&Value>| work.is_some_and(|work| synced(work)[0]["name"] == "replicas");
    let seen = fleet
        .until(HUB, &work, "values are there", has_values)
        .await;
    let seen = seen.unwrap();
    let integer = |name: &str, value: i64| json!({"name": name, "fieldValue": {"type": "Integer", "integer": value}});
    // Several results are a list, one is itself, and none is left out.
    let types = json!({"name": "types", "fieldValue":
        {"type": "ByteArray", "byteArray": "WyJBdmFpbGFibGUiLCJQcm9ncmVzc2luZyJd"}});
    let one = json!({"name": "one", "fieldValue": {"type": "String", "string": "True"}});
    assert_eq!(
        synced(&seen),
        &json!([integer("replicas", 3), types, one, integer("double", 6)])
    );
    let found = condition(&seen["status"]["manifestConditions"][0], "StatusSynced");
    assert_eq!(
        (found["status"].as_str(), found["reason"].as_str()),
        (Some("False"), Some("StatusSyncFailed"))
    );
    let message = found["message"].as_str().unwrap();
    for part in ["of unclosed", "broken", "JavaScript"] {
        assert!(message.contains(part), "{part}: {message}");
    }
    for part in ["nowhere", "third"] {
        assert!(!message.contains(part), "{part}: {message}");
    }
}

/// "Status field updates"
async fn synced_values_follow_the_status(fleet: &mut Fleet) {
    let mut config = config();
    config["spec"]["resourceStatusSync"]["frequencySeconds"] = json!(1);
    fleet.create(HUB, config).await;
    let work = small_work(json!([deployment("web", 2)]));
    fleet.create(HUB, work.clone()).await;
    fleet.until_condition(&work, "Applied", "True").await;
    for ready in [1, 0, 2] {
        let status = json!({"replicas": 2, "readyReplicas": ready});
        fleet
            .merge_status(MEMBER, &deployment("web", 2), status)
            .await;
        fleet.pass(1500).await;
        let is_told = |work: Option<&Value>| {
            // What a server leaves out is not there: of no replicas it says nothing.
            let wanted = if ready > 0 { json!(true) } else { Value::Null };
            work.is_some_and(|work| {
                let value = &synced(work)[0]["fieldValue"]["boolean"];
                *value == wanted || (ready == 0 && *value == json!(false))
            })
        };
        fleet.until(HUB, &work, "it is told", is_told).await;
    }
}

async fn of_two_configurations_for_a_kind_one_counts_and_the_other_says_so(fleet: &mut Fleet) {
    let hub = bellwether_controllers::Hub::new(fleet.controller_client(HUB), fleet.clock.clone());
    fleet.run(bellwether_controllers::work_config::run(hub));
    let mut other = config();
    other["metadata"]["name"] = json!("mine");
    other["spec"]["resourceStatusSync"]["rules"] = json!([{"type": "JSONPaths", "jsonPaths": [
        {"name": "mine", "path": ".spec.replicas"}]}]);
    fleet.create(HUB, other.clone()).await;
    fleet.until_condition(&other, "InUse", "True").await;
    fleet.create(HUB, config()).await;
    let seen = fleet.until_condition(&other, "InUse", "False").await;
    let said = condition(&seen["status"], "InUse");
    assert_eq!(said["reason"], "AnotherInUse");
    assert_eq!(
        said["message"],
        "apps-v1-deployment is used for objects of kind Deployment"
    );
    fleet.until_condition(&config(), "InUse", "True").await;
    let work = small_work(json!([deployment("web", 2)]));
    fleet.create(HUB, work.clone()).await;
    let seen = fleet.until_condition(&work, "Applied", "True").await;
    assert_eq!(synced(&seen), &Value::Null, "the other does not count");
    fleet.delete(HUB, &config()).await;
    fleet.until_condition(&other, "InUse", "True").await;
    let is_told = |work: Option<&Value>| work.is_some_and(|work| synced(work)[0]["name"] == "mine");
    fleet.until(HUB, &work, "now it does", is_told).await;
}

/// An object whose status changes all the time costs the hub little, and the last value gets there.
async fn a_status_that_flaps_is_written_ten_times_a_second_at_most(fleet: &mut Fleet) {
    let rules = json!({"manifestConfigs": [{
        "resourceIdentifier": {"group": "apps", "resource": "deployments", "name": "web", "namespace": "default"},
        "feedbackRules": [{"type": "WellKnownStatus"}]}]});
    let object = deployment("web", 300);
    let work = work_with("w", json!([object]), rules);
    fleet.create(HUB, work.clone()).await;
    fleet.until_condition(&work, "Applied", "True").await;
    fleet.pass(5000).await;
    let (before, start) = (fleet.hub_counts.writes(), fleet.clock.now());
    for ready in 1..=200 {
        let status = json!({"replicas": 300, "readyReplicas": ready});
        fleet.merge_status(MEMBER, &object, status).await;
        fleet.pass(10).await;
    }
    let has_last = |work: Option<&Value>| {
        work.is_some_and(|work| {
            let manifest = &work["status"]["resourceStatus"]["manifests"][0];
            manifest["statusFeedback"]["values"][0]["fieldValue"]["integer"] == 200
        })
    };
    fleet
        .until(HUB, &work, "the last value is there", has_last)
        .await;
    let seconds = fleet.clock.now().duration_since(start).as_secs() + 1;
    let writes = fleet.hub_counts.writes() - before;
    let allowed = usize::try_from(10 * (seconds + 1)).unwrap();
    assert!(writes <= allowed, "{writes} in {seconds} s");
}

/// A kind with two versions: paths are resolved in the latest, or in the one that they name.
async fn paths_are_resolved_in_the_version_that_they_ask_for(fleet: &mut Fleet) {
    let version = |name: &str, storage: bool| {
        json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema":
            {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}})
    };
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "birds.zoo.example"},
        "spec": {"group": "zoo.example", "scope": "Namespaced",
            "names": {"kind": "Bird", "plural": "birds", "singular": "bird", "listKind": "BirdList"},
            "versions": [version("v1alpha1", true), version("v1", false)]},
    });
    fleet.create(MEMBER, definition).await;
    let path = |name: &str, version: Value| json!({"name": name, "version": version, "path": ".apiVersion"});
    let mut config = config();
    config["metadata"]["name"] = json!("birds");
    config["spec"] = json!({"manifestGVK": {"group": "zoo.example", "version": "v1alpha1", "kind": "Bird"},
        "resourceStatusSync": {"rules": [{"type": "JSONPaths", "jsonPaths": [
            path("latest", Value::Null), path("old", json!("v1alpha1")), path("none", json!("v9"))]}]}});
    fleet.create(HUB, config).await;
    let bird = json!({"apiVersion": "zoo.example/v1alpha1", "kind": "Bird",
        "metadata": {"name": "robin", "namespace": "default"}});
    let work = small_work(json!([bird]));
    fleet.create(HUB, work.clone()).await;
    let has_values = |work: Option<&Value>| work.is_some_and(|work| synced(work).is_array());
    let seen = fleet
        .until(HUB, &work, "values are there", has_values)
        .await;
    let seen = seen.unwrap();
    let values: Vec<_> = synced(&seen).as_array().unwrap().iter().collect();
    let values: Vec<_> = values
        .iter()
        .map(|it| {
            (
                it["name"].as_str().unwrap(),
                it["fieldValue"]["string"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        values,
        [
            ("latest", "zoo.example/v1"),
            ("old", "zoo.example/v1alpha1")
        ]
    );
    let said = condition(&seen["status"]["manifestConditions"][0], "StatusSynced");
    assert_eq!(said["status"], "False");
    assert!(
        said["message"]
            .as_str()
            .unwrap()
            .ends_with("version v9 set in the path none is not served"),
        "{said}"
    );
}

crate::cases![
    a_status_that_flaps_is_written_ten_times_a_second_at_most,
    paths_are_resolved_in_the_version_that_they_ask_for,
    the_status_of_a_deployment_is_on_the_hub_as_soon_as_it_changes,
    wrong_rules_are_told_and_the_others_answered,
    the_example_of_the_work_api_gives_the_status_that_it_shows,
    a_changed_configuration_takes_effect_at_once_and_values_at_their_pace,
    values_are_told_at_most_once_in_a_period_and_until_they_rest,
    invalid_status_fields_are_told_and_the_others_synced,
    a_value_that_was_not_there_before_is_told_at_once,
    objects_that_cannot_be_watched_are_read_as_often_as_their_values_are_asked_for,
    synced_values_follow_the_status,
    of_two_configurations_for_a_kind_one_counts_and_the_other_says_so,
];
