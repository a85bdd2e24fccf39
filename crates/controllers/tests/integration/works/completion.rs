//! Works that come to an end: completion, conditions by rules, time to live.

use crate::fleet::*;
use std::time::Duration;

use bellwether_apiserver::HUB;
use serde_json::{Value, json};

fn rules(resource: &str, name: &str, rules: Value) -> Value {
    let group = if resource == "jobs" { "batch" } else { "" };
    json!({"manifestConfigs": [{
        "resourceIdentifier": {"group": group, "resource": resource, "name": name, "namespace": "default"},
        "conditionRules": rules}]})
}

/// "test that jobs and pods that are completed with WellKnownCompletions and no ttl are no longer
/// updated"
async fn a_job_that_is_done_is_never_updated_or_made_again(fleet: &mut Fleet) {
    let spec = rules("jobs", "once", json!([{"type": "WellKnownCompletions"}]));
    let work = work_with("w", json!([job("once"), config_map("a", "1")]), spec);
    fleet.create(HUB, work.clone()).await;
    let seen = fleet.until_condition(&work, "Complete", "False").await;
    let complete = condition(&seen["status"], "Complete");
    assert_eq!(complete["reason"], "ConditionRulesFailed");
    assert_eq!(complete["message"], "One or more manifests is not Complete");
    assert_eq!(
        manifest_condition(&seen, 0, "Complete")["message"],
        "Manifest is not Complete"
    );
    fleet.merge_status(MEMBER, &job("once"), job_done()).await;
    let seen = fleet.until_condition(&work, "Complete", "True").await;
    let complete = manifest_condition(&seen, 0, "Complete");
    assert_eq!(complete["message"], "Manifest is Complete");
    assert_eq!(complete["reason"], "ConditionRulesPassed");
    assert_eq!(
        condition(&seen["status"], "Complete")["message"],
        "All manifests are Complete"
    );
    // The whole work is frozen: neither the job nor anything else is touched any more.
    fleet.delete(MEMBER, &job("once")).await;
    fleet.delete(MEMBER, &config_map("a", "")).await;
    let change = json!({"spec": {"workload": {"manifests": [job("once"), config_map("b", "1")]}}});
    fleet.merge(HUB, &work, change).await;
    fleet.pass(600_000).await;
    for object in [job("once"), config_map("a", ""), config_map("b", "")] {
        assert!(fleet.get(MEMBER, &object).await.is_none(), "{object}");
    }
    let seen = fleet.get(HUB, &work).await.unwrap();
    assert_eq!(condition(&seen["status"], "Complete")["status"], "True");
}

async fn a_pod_that_is_done_is_complete(fleet: &mut Fleet) {
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "namespace": "default"},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}});
    let spec = rules(
        "pods",
        "p",
        json!([{"type": "WellKnownConditions", "condition": "Complete"}]),
    );
    let work = work_with("w", json!([pod]), spec);
    fleet.create(HUB, work.clone()).await;
    fleet.until_condition(&work, "Complete", "False").await;
    fleet
        .merge_status(MEMBER, &pod, json!({"phase": "Failed"}))
        .await;
    fleet.until_condition(&work, "Complete", "True").await;
}

async fn a_manifest_that_is_done_is_not_updated_even_if_nobody_has_said_so_yet(fleet: &mut Fleet) {
    let expression = json!([{"type": "CEL", "condition": "Complete",
        "celExpressions": [{"expression": "has(object.data.done)"}]}]);
    let work = work_with(
        "w",
        json!([config_map("a", "1")]),
        rules("configmaps", "a", expression),
    );
    fleet.create(HUB, work.clone()).await;
    fleet.until_condition(&work, "Complete", "False").await;
    // While the agent is away, the object comes to its end and the work changes.
    fleet.kill_agents();
    fleet
        .merge(
            MEMBER,
            &config_map("a", ""),
            json!({"data": {"done": "yes"}}),
        )
        .await;
    let change = json!({"spec": {"workload": {"manifests": [config_map("a", "2")]}}});
    fleet.merge(HUB, &work, change).await;
    fleet.start_agents(&[MEMBER]).await;
    fleet.until_condition(&work, "Complete", "True").await;
    let object = fleet.get(MEMBER, &config_map("a", "")).await.unwrap();
    assert_eq!(object["data"], json!({"key": "1", "done": "yes"}));
}

/// Nobody has looked at the object before, and the server would apply it without a look.
async fn what_is_done_already_is_not_applied_by_the_server_either(fleet: &mut Fleet) {
    fleet.create(MEMBER, job("once")).await;
    fleet.merge_status(MEMBER, &job("once"), job_done()).await;
    let mut changed = job("once");
    changed["metadata"]["labels"] = json!({"changed": "yes"});
    let mut spec = rules("jobs", "once", json!([{"type": "WellKnownCompletions"}]));
    spec["manifestConfigs"][0]["updateStrategy"] = json!({"type": "ServerSideApply"});
    let work = work_with("w", json!([changed]), spec);
    fleet.create(HUB, work.clone()).await;
    fleet.until_condition(&work, "Complete", "True").await;
    let object = fleet.get(MEMBER, &job("once")).await.unwrap();
    assert_eq!(object["metadata"]["labels"]["changed"], Value::Null);
}

/// A time to live would remove the work before it did what it is for.
async fn a_work_is_not_done_while_an_object_of_it_cannot_be_made(fleet: &mut Fleet) {
    let done = json!([{"type": "CEL", "condition": "Complete",
        "celExpressions": ["object.data.key == '1'"]}]);
    let homeless = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "b", "namespace": "soon"}, "data": {"key": "1"}});
    let unknown = json!({"apiVersion": "later.example/v1", "kind": "Bird",
        "metadata": {"name": "c", "namespace": "default"}});
    let identifiers = [
        json!({"resource": "configmaps", "name": "*", "namespace": "*"}),
        json!({"group": "later.example", "resource": "birds", "name": "c", "namespace": "default"}),
    ];
    let configs = identifiers
        .map(|identifier| json!({"resourceIdentifier": identifier, "conditionRules": done}));
    let spec = json!({"manifestConfigs": configs, "deleteOption": {"ttlSecondsAfterFinished": 0}});
    let work = work_with("w", json!([config_map("a", "1"), homeless, unknown]), spec);
    fleet.create(HUB, work.clone()).await;
    let seen = fleet.until_condition(&work, "Complete", "False").await;
    assert_eq!(manifest_condition(&seen, 0, "Complete")["status"], "True");
    for index in [1, 2] {
        let said = manifest_condition(&seen, index, "Complete");
        assert_eq!(said["message"], "Manifest is not Complete");
        assert_eq!(said["reason"], "ConditionRulesFailed");
    }
    assert_eq!(manifest_condition(&seen, 1, "Available")["status"], "False");
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "soon"}});
    fleet.create(MEMBER, namespace).await;
    let is_made = |work: Option<&Value>| {
        work.is_some_and(|work| manifest_condition(work, 1, "Complete")["status"] == "True")
    };
    let seen = fleet.until(HUB, &work, "one is made", is_made).await;
    let seen = seen.unwrap();
    assert_eq!(condition(&seen["status"], "Complete")["status"], "False");
    // Without the one that cannot be made, all that is left is done.
    let change = json!({"spec": {"workload": {"manifests": [config_map("a", "1"), homeless]}}});
    fleet.merge(HUB, &work, change).await;
    fleet.until_gone(HUB, &work).await;
    assert!(fleet.get(MEMBER, &config_map("a", "")).await.is_none());
}

async fn false_on_one_manifest_keeps_a_work_open(fleet: &mut Fleet) {
    let never = json!([{"type": "CEL", "condition": "Complete", "celExpressions": [{"expression": "false"}]}]);
    let mut spec = rules("jobs", "once", json!([{"type": "WellKnownCompletions"}]));
    let more = rules("configmaps", "a", never);
    let configs = spec["manifestConfigs"].as_array_mut().unwrap();
    configs.push(more["manifestConfigs"][0].clone());
    let work = work_with("w", json!([job("once"), config_map("a", "1")]), spec);
    fleet.create(HUB, work.clone()).await;
    fleet.until_condition(&work, "Applied", "True").await;
    fleet.merge_status(MEMBER, &job("once"), job_done()).await;
    fleet
        .until(HUB, &work, "the job is complete", |work| {
            work.is_some_and(|work| manifest_condition(work, 0, "Complete")["status"] == "True")
        })
        .await;
    fleet.delete(MEMBER, &job("once")).await;
    fleet.delete(MEMBER, &config_map("a", "")).await;
    fleet
        .until(MEMBER, &config_map("a", ""), "the map is back", |it| {
            it.is_some()
        })
        .await;
    fleet.pass(10_000).await;
    assert!(fleet.get(MEMBER, &job("once")).await.is_none());
    let seen = fleet.get(HUB, &work).await.unwrap();
    assert_eq!(condition(&seen["status"], "Complete")["status"], "False");
}

/// "test that a workload that is completed with a ttl will be deleted after the time has ellapsed"
async fn a_work_with_a_time_to_live_goes_at_the_right_second(fleet: &mut Fleet) {
    let mut spec = rules("jobs", "once", json!([{"type": "WellKnownCompletions"}]));
    spec["deleteOption"] = json!({"ttlSecondsAfterFinished": 30});
    let work = work_with("w", json!([job("once"), config_map("a", "1")]), spec);
    fleet.create(HUB, work.clone()).await;
    fleet.until_condition(&work, "Applied", "True").await;
    fleet.pass(100_000).await;
    assert!(fleet.get(HUB, &work).await.is_some(), "it is not done");
    fleet.merge_status(MEMBER, &job("once"), job_done()).await;
    let seen = fleet.until_condition(&work, "Complete", "True").await;
    let since: jiff::Timestamp = condition(&seen["status"], "Complete")["lastTransitionTime"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    let end = since + jiff::SignedDuration::from_secs(30);
    let rest = end.duration_since(fleet.clock.now());
    // Time that is not paused goes on while one looks.
    let margin = if fleet.is_real() { 5000 } else { 100 };
    let rest = u64::try_from(rest.as_millis()).unwrap();
    fleet.pass(rest - margin).await;
    assert!(fleet.get(HUB, &work).await.is_some());
    fleet.pass(margin).await;
    fleet.until_gone(HUB, &work).await;
    assert!(fleet.clock.now() < end + Duration::from_millis(10 * margin));
    assert!(fleet.get(MEMBER, &job("once")).await.is_none());
    assert!(fleet.get(MEMBER, &config_map("a", "")).await.is_none());
}

async fn zero_seconds_are_at_once_and_no_rules_are_never(fleet: &mut Fleet) {
    let mut spec = rules("jobs", "once", json!([{"type": "WellKnownCompletions"}]));
    spec["deleteOption"] = json!({"ttlSecondsAfterFinished": 0});
    let first = work_with("first", json!([job("once")]), spec.clone());
    spec["manifestConfigs"] = json!([]);
    let second = work_with("second", json!([job("other")]), spec);
    fleet.create(HUB, first.clone()).await;
    fleet.create(HUB, second.clone()).await;
    fleet.until_condition(&first, "Applied", "True").await;
    fleet.until_condition(&second, "Applied", "True").await;
    fleet.merge_status(MEMBER, &job("once"), job_done()).await;
    fleet.merge_status(MEMBER, &job("other"), job_done()).await;
    fleet.until_gone(HUB, &first).await;
    fleet.pass(3_600_000).await;
    let seen = fleet.get(HUB, &second).await.unwrap();
    assert_eq!(condition(&seen["status"], "Complete"), &Value::Null);
}

/// "test that a workload with custom CelExpressions condition rules are evaluated correctly", and
/// "test that CEL evaluation errors are set in condition messages"
async fn conditions_of_any_name_come_from_expressions(fleet: &mut Fleet) {
    let all = json!([
        {"condition": "MyCondition", "type": "CEL", "celExpressions": ["object.data.key == '1'", "true"]},
        {"condition": "Initialized", "type": "CEL", "celExpressions": [{"expression": "object.data.initialzed == 'x'"}]},
        {"condition": "Text", "type": "CEL", "celExpressions": ["object.data.key"]},
        {"condition": "Broken", "type": "CEL", "celExpressions": ["object.data.key =="]},
        {"condition": "Both", "type": "CEL", "celExpressions": ["true"]},
        {"condition": "Both", "type": "CEL", "celExpressions": ["false"]},
        {"condition": "Told", "type": "CEL", "celExpressions": ["object.data.key == '1'"],
         "message": "plain", "messageExpression": "'key is ' + object.data.key + ' ' + string(result)"},
        {"condition": "Count", "type": "CEL", "celExpressions": [
            "object.data.key == '2' ? {'message': 'Count matches', 'reason': 'CountReached'} : {'message': 'Count is only ' + object.data.key, 'reason': 'CountNotReached'}"]},
    ]);
    let spec = rules("configmaps", "*", all);
    let work = work_with("w", json!([config_map("a", "1")]), spec);
    fleet.create(HUB, work.clone()).await;
    let seen = fleet.until_condition(&work, "MyCondition", "True").await;
    let check = |name: &str, status: &str, reason: &str, message: &str| {
        let found = manifest_condition(&seen, 0, name);
        assert_eq!(found["status"], status, "{found}");
        assert_eq!(found["reason"], reason, "{found}");
        assert!(
            found["message"].as_str().unwrap().starts_with(message),
            "{found}"
        );
        assert_eq!(found["observedGeneration"], 1);
    };
    check(
        "MyCondition",
        "True",
        "ConditionRulesPassed",
        "Manifest is MyCondition",
    );
    check(
        "Initialized",
        "False",
        "ConditionRulesFailed",
        "failed to evaluate: no such key: initialzed",
    );
    check(
        "Text",
        "False",
        "ConditionRulesFailed",
        "failed to evaluate: expected bool result, got string",
    );
    check(
        "Broken",
        "False",
        "ConditionRulesFailed",
        "failed to evaluate: ERROR: <input>:1:",
    );
    check(
        "Both",
        "False",
        "ConditionRulesFailed",
        "Manifest is not Both",
    );
    check("Told", "True", "ConditionRulesPassed", "key is 1 true");
    check("Count", "False", "CountNotReached", "Count is only 1");
    assert_eq!(
        condition(&seen["status"], "Initialized")["message"],
        "One or more manifests is not Initialized"
    );
    let change = json!({"spec": {"workload": {"manifests": [config_map("a", "2")]}}});
    fleet.merge(HUB, &work, change).await;
    let seen = fleet.until_condition(&work, "Count", "True").await;
    assert_eq!(
        manifest_condition(&seen, 0, "Count")["reason"],
        "CountReached"
    );
}

async fn a_stateful_set_that_lost_what_it_had_is_degraded_and_one_that_starts_is_not(
    fleet: &mut Fleet,
) {
    let set = |image: &str| {
        json!({
            "apiVersion": "apps/v1", "kind": "StatefulSet",
            "metadata": {"name": "s", "namespace": "default"},
            "spec": {"replicas": 3, "serviceName": "s", "selector": {"matchLabels": {"app": "s"}},
                "template": {"metadata": {"labels": {"app": "s"}},
                    "spec": {"containers": [{"name": "main", "image": image}]}}},
        })
    };
    let rule = |name: &str| json!({"type": "WellKnownConditions", "condition": name});
    let rules = json!([rule("Progressing"), rule("Degraded")]);
    let config = json!({"resourceIdentifier": {"group": "apps", "resource": "statefulsets",
        "name": "s", "namespace": "default"}, "conditionRules": rules});
    let work = work_with(
        "w",
        json!([set("nginx:1")]),
        json!({"manifestConfigs": [config]}),
    );
    fleet.create(HUB, work.clone()).await;
    let status = |generation: i64, ready: i64, revision: &str| {
        json!({"observedGeneration": generation, "replicas": 3, "readyReplicas": ready,
            "updatedReplicas": if revision == "a" { 3 } else { 0 },
            "currentRevision": "a", "updateRevision": revision})
    };
    let all = |progressing: &'static str, degraded: &'static str| {
        move |work: Option<&Value>| {
            work.is_some_and(|work| {
                let generation = &work["metadata"]["generation"];
                [("Progressing", progressing), ("Degraded", degraded)]
                    .iter()
                    .all(|(name, wanted)| {
                        let found = condition(&work["status"], name);
                        found["status"] == *wanted && found["observedGeneration"] == *generation
                    })
            })
        }
    };
    fleet.until_there(MEMBER, &set("")).await;
    fleet
        .merge_status(MEMBER, &set(""), status(1, 1, "a"))
        .await;
    let starts = all("True", "False");
    fleet.until(HUB, &work, "it starts", starts).await;
    fleet
        .merge_status(MEMBER, &set(""), status(1, 3, "a"))
        .await;
    let serves = all("False", "False");
    fleet.until(HUB, &work, "it is all there", serves).await;
    fleet
        .merge_status(MEMBER, &set(""), status(1, 2, "a"))
        .await;
    let seen = fleet
        .until(HUB, &work, "it is degraded", all("True", "True"))
        .await;
    assert_eq!(
        manifest_condition(&seen.unwrap(), 0, "Degraded")["message"],
        "only 2 of 3 replicas are ready any more"
    );
    // What comes next is not what was lost.
    let change = json!({"spec": {"workload": {"manifests": [set("nginx:2")]}}});
    fleet.merge(HUB, &work, change).await;
    fleet
        .merge_status(MEMBER, &set(""), status(2, 2, "b"))
        .await;
    fleet
        .until(HUB, &work, "it is updated", all("True", "False"))
        .await;
}

async fn an_expression_gives_status_message_and_reason_at_once(fleet: &mut Fleet) {
    let expression = "{'status': object.data.key == '2', 'reason': 'Counted', 'message': 'key is ' + object.data.key}";
    let rule = json!([{"type": "CEL", "condition": "Ready", "celExpressions": [expression]}]);
    let spec = rules("configmaps", "a", rule);
    let work = work_with("w", json!([config_map("a", "1")]), spec);
    fleet.create(HUB, work.clone()).await;
    let seen = fleet.until_condition(&work, "Ready", "False").await;
    let told = manifest_condition(&seen, 0, "Ready");
    assert_eq!(
        (&told["reason"], &told["message"]),
        (&json!("Counted"), &json!("key is 1"))
    );
    let change = json!({"spec": {"workload": {"manifests": [config_map("a", "2")]}}});
    fleet.merge(HUB, &work, change).await;
    fleet.until_condition(&work, "Ready", "True").await;
}

/// A Job and a Deployment with rules that say when Jobs are done: the Deployment is never done.
async fn a_well_known_rule_for_a_kind_that_has_none_keeps_the_work(fleet: &mut Fleet) {
    let rule = json!([{"type": "WellKnownCompletions"}]);
    let mut spec = rules("jobs", "once", rule.clone());
    let mut more = rules("deployments", "web", rule);
    more["manifestConfigs"][0]["resourceIdentifier"]["group"] = json!("apps");
    let configs = spec["manifestConfigs"].as_array_mut().unwrap();
    configs.push(more["manifestConfigs"][0].clone());
    spec["deleteOption"] = json!({"ttlSecondsAfterFinished": 0});
    let work = work_with("w", json!([job("once"), deployment("web", 1)]), spec);
    fleet.create(HUB, work.clone()).await;
    fleet.until_condition(&work, "Applied", "True").await;
    fleet.merge_status(MEMBER, &job("once"), job_done()).await;
    let seen = fleet.until_condition(&work, "Complete", "Unknown").await;
    let of_work = condition(&seen["status"], "Complete");
    assert_eq!(of_work["reason"], "ConditionRuleUnsupported");
    let said = manifest_condition(&seen, 1, "Complete");
    assert_eq!(said["status"], "Unknown");
    assert_eq!(
        said["message"],
        "there is no well-known rule for Complete of Deployment (apps/v1); use a rule of type CEL"
    );
    fleet.pass(600_000).await;
    assert!(fleet.get(HUB, &work).await.is_some());
    assert!(fleet.get(MEMBER, &deployment("web", 1)).await.is_some());
    // The author of such a rule gets a warning.
    if !fleet.is_real() {
        let mut again = work.clone();
        again["metadata"]["name"] = json!("again");
        let answer = fleet.respond_to_create(HUB, &again).await;
        let warning = answer.headers().get("warning").unwrap().to_str().unwrap();
        assert!(
            warning.contains("no well-known rule for Complete of deployments.apps"),
            "{warning}"
        );
    }
}

async fn rules_of_all_matching_configurations_hold_together(fleet: &mut Fleet) {
    let cel = |expression: &str| json!([{"type": "CEL", "condition": "Complete", "celExpressions": [expression]}]);
    let mut spec = rules("configmaps", "*", cel("true"));
    let more = rules("configmaps", "a", cel("object.data.key == '2'"));
    let configs = spec["manifestConfigs"].as_array_mut().unwrap();
    configs.push(more["manifestConfigs"][0].clone());
    spec["deleteOption"] = json!({"ttlSecondsAfterFinished": 0});
    let work = work_with("w", json!([config_map("a", "1")]), spec);
    fleet.create(HUB, work.clone()).await;
    fleet.until_condition(&work, "Complete", "False").await;
    fleet.pass(600_000).await;
    assert!(fleet.get(HUB, &work).await.is_some());
    let change = json!({"spec": {"workload": {"manifests": [config_map("a", "2")]}}});
    fleet.merge(HUB, &work, change).await;
    fleet.until_gone(HUB, &work).await;
}

/// The hub was away when the job ended, and the agent was restarted before it came back.
async fn what_is_complete_is_remembered_on_the_member(fleet: &mut Fleet) {
    let never = json!([{"type": "CEL", "condition": "Complete", "celExpressions": ["false"]}]);
    let mut spec = rules("jobs", "once", json!([{"type": "WellKnownCompletions"}]));
    let more = rules("configmaps", "a", never);
    let configs = spec["manifestConfigs"].as_array_mut().unwrap();
    configs.push(more["manifestConfigs"][0].clone());
    let work = work_with("w", json!([job("once"), config_map("a", "1")]), spec);
    fleet.create(HUB, work.clone()).await;
    fleet.until_condition(&work, "Applied", "True").await;
    let before = fleet.get(HUB, &work).await.unwrap()["status"].clone();
    fleet.merge_status(MEMBER, &job("once"), job_done()).await;
    let is_done = |work: Option<&Value>| {
        work.is_some_and(|work| manifest_condition(work, 0, "Complete")["status"] == "True")
    };
    fleet.until(HUB, &work, "the job is done", is_done).await;
    fleet.kill_agents();
    fleet.delete(MEMBER, &job("once")).await;
    fleet.merge_status(HUB, &work, before).await;
    assert!(!is_done(fleet.get(HUB, &work).await.as_ref()));
    fleet.start_agents(&[MEMBER]).await;
    fleet.until(HUB, &work, "the hub knows it", is_done).await;
    fleet.pass(60_000).await;
    assert!(
        fleet.get(MEMBER, &job("once")).await.is_none(),
        "it ran once"
    );
    // Another work of the same name is another work.
    fleet.kill_agents();
    let free = json!({"metadata": {"finalizers": null}});
    fleet.merge(HUB, &work, free).await;
    fleet.delete(HUB, &work).await;
    fleet.create(HUB, work.clone()).await;
    fleet.start_agents(&[MEMBER]).await;
    fleet.until_there(MEMBER, &job("once")).await;
}

async fn what_becomes_of_objects_may_be_said_after_they_are_complete(fleet: &mut Fleet) {
    let policy = |policy: &str| json!({"spec": {"deleteOption": {"propagationPolicy": policy}}});
    let check = async |name: &str, first: &str, then: &str, stays: bool| {
        let done = json!([{"type": "CEL", "condition": "Complete", "celExpressions": ["true"]}]);
        let mut spec = rules("configmaps", name, done);
        spec["deleteOption"] = policy(first)["spec"]["deleteOption"].clone();
        let work = work_with(name, json!([config_map(name, "1")]), spec);
        fleet.create(HUB, work.clone()).await;
        fleet.until_condition(&work, "Complete", "True").await;
        fleet.merge(HUB, &work, policy(then)).await;
        fleet.until_current(&work, "Complete", "True").await;
        fleet.delete(HUB, &work).await;
        fleet.until_gone(HUB, &work).await;
        let is_there = fleet.get(MEMBER, &config_map(name, "")).await.is_some();
        assert_eq!(is_there, stays, "{first} and then {then}");
    };
    check("left", "Foreground", "Orphan", true).await;
    check("taken", "Orphan", "Foreground", false).await;
    check("same", "Foreground", "Foreground", false).await;
}

/// An agent of Open Cluster Management leaves the end of works to the hub.
async fn the_hub_removes_what_another_agent_completed(fleet: &mut Fleet) {
    fleet.kill_agents();
    let spec = json!({"deleteOption": {"ttlSecondsAfterFinished": 30}});
    let work = work_with("w", json!([config_map("a", "1")]), spec);
    fleet.create(HUB, work.clone()).await;
    let since = fleet.clock.now().to_string();
    let complete = json!({"conditions": [{"type": "Complete", "status": "True", "reason": "R",
        "message": "", "lastTransitionTime": format!("{}Z", &since[..19])}]});
    fleet.merge_status(HUB, &work, complete).await;
    let client = fleet.client(HUB);
    let hub = bellwether_controllers::Hub::new(client, fleet.clock.clone());
    fleet.run(bellwether_controllers::work_ttl::run(hub));
    fleet.pass(20_000).await;
    assert!(fleet.get(HUB, &work).await.is_some(), "not yet");
    fleet.pass(15_000).await;
    fleet.until_gone(HUB, &work).await;
}

crate::cases![
    a_well_known_rule_for_a_kind_that_has_none_keeps_the_work,
    rules_of_all_matching_configurations_hold_together,
    what_is_complete_is_remembered_on_the_member,
    what_becomes_of_objects_may_be_said_after_they_are_complete,
    the_hub_removes_what_another_agent_completed,
    a_stateful_set_that_lost_what_it_had_is_degraded_and_one_that_starts_is_not,
    an_expression_gives_status_message_and_reason_at_once,
    a_job_that_is_done_is_never_updated_or_made_again,
    a_pod_that_is_done_is_complete,
    a_manifest_that_is_done_is_not_updated_even_if_nobody_has_said_so_yet,
    what_is_done_already_is_not_applied_by_the_server_either,
    a_work_is_not_done_while_an_object_of_it_cannot_be_made,
    false_on_one_manifest_keeps_a_work_open,
    a_work_with_a_time_to_live_goes_at_the_right_second,
    zero_seconds_are_at_once_and_no_rules_are_never,
    conditions_of_any_name_come_from_expressions,
];
