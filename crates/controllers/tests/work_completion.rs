//! Works that come to an end: completion, conditions by rules, time to live.

#![allow(clippy::unwrap_used, clippy::needless_pass_by_value, reason = "tests")]

mod fleet;

use bellwether_apiserver::HUB;
use fleet::*;
use serde_json::{Value, json};

fn rules(resource: &str, name: &str, rules: Value) -> Value {
    let group = if resource == "jobs" { "batch" } else { "" };
    json!({"manifestConfigs": [{
        "resourceIdentifier": {"group": group, "resource": resource, "name": name, "namespace": "default"},
        "conditionRules": rules}]})
}

fn done() -> Value {
    json!({"conditions": [{"type": "Complete", "status": "True"}]})
}

/// "test that jobs and pods that are completed with WellKnownCompletions and no ttl are no longer
/// updated"
#[tokio::test(start_paused = true)]
async fn a_job_that_is_done_is_never_updated_or_made_again() {
    let fleet = Fleet::start().await;
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
    fleet.merge_status(MEMBER, &job("once"), done()).await;
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

#[tokio::test(start_paused = true)]
async fn a_pod_that_is_done_is_complete() {
    let fleet = Fleet::start().await;
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

#[tokio::test(start_paused = true)]
async fn a_manifest_that_is_done_is_not_updated_even_if_nobody_has_said_so_yet() {
    let mut fleet = Fleet::start().await;
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

#[tokio::test(start_paused = true)]
async fn false_on_one_manifest_keeps_a_work_open() {
    let fleet = Fleet::start().await;
    let never = json!([{"type": "CEL", "condition": "Complete", "celExpressions": [{"expression": "false"}]}]);
    let mut spec = rules("jobs", "once", json!([{"type": "WellKnownCompletions"}]));
    let more = rules("configmaps", "a", never);
    let configs = spec["manifestConfigs"].as_array_mut().unwrap();
    configs.push(more["manifestConfigs"][0].clone());
    let work = work_with("w", json!([job("once"), config_map("a", "1")]), spec);
    fleet.create(HUB, work.clone()).await;
    fleet.until_condition(&work, "Applied", "True").await;
    fleet.merge_status(MEMBER, &job("once"), done()).await;
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
#[tokio::test(start_paused = true)]
async fn a_work_with_a_time_to_live_goes_at_the_right_second() {
    let fleet = Fleet::start().await;
    let mut spec = rules("jobs", "once", json!([{"type": "WellKnownCompletions"}]));
    spec["deleteOption"] = json!({"ttlSecondsAfterFinished": 30});
    let work = work_with("w", json!([job("once"), config_map("a", "1")]), spec);
    fleet.create(HUB, work.clone()).await;
    fleet.until_condition(&work, "Applied", "True").await;
    fleet.pass(100_000).await;
    assert!(fleet.get(HUB, &work).await.is_some(), "it is not done");
    fleet.merge_status(MEMBER, &job("once"), done()).await;
    let seen = fleet.until_condition(&work, "Complete", "True").await;
    let since: jiff::Timestamp = condition(&seen["status"], "Complete")["lastTransitionTime"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap();
    let end = since + jiff::SignedDuration::from_secs(30);
    let rest = end.duration_since(fleet.clock.now());
    fleet
        .pass(u64::try_from(rest.as_millis()).unwrap() - 100)
        .await;
    assert!(fleet.get(HUB, &work).await.is_some());
    fleet.pass(200).await;
    fleet.until_gone(HUB, &work).await;
    assert!(fleet.clock.now() < end + jiff::SignedDuration::from_secs(1));
    assert!(fleet.get(MEMBER, &job("once")).await.is_none());
    assert!(fleet.get(MEMBER, &config_map("a", "")).await.is_none());
}

#[tokio::test(start_paused = true)]
async fn zero_seconds_are_at_once_and_no_rules_are_never() {
    let fleet = Fleet::start().await;
    let mut spec = rules("jobs", "once", json!([{"type": "WellKnownCompletions"}]));
    spec["deleteOption"] = json!({"ttlSecondsAfterFinished": 0});
    let first = work_with("first", json!([job("once")]), spec.clone());
    spec["manifestConfigs"] = json!([]);
    let second = work_with("second", json!([job("other")]), spec);
    fleet.create(HUB, first.clone()).await;
    fleet.create(HUB, second.clone()).await;
    fleet.until_condition(&first, "Applied", "True").await;
    fleet.until_condition(&second, "Applied", "True").await;
    fleet.merge_status(MEMBER, &job("once"), done()).await;
    fleet.merge_status(MEMBER, &job("other"), done()).await;
    fleet.until_gone(HUB, &first).await;
    fleet.pass(3_600_000).await;
    let seen = fleet.get(HUB, &second).await.unwrap();
    assert_eq!(condition(&seen["status"], "Complete"), &Value::Null);
}

/// "test that a workload with custom CelExpressions condition rules are evaluated correctly", and
/// "test that CEL evaluation errors are set in condition messages"
#[tokio::test(start_paused = true)]
async fn conditions_of_any_name_come_from_expressions() {
    let fleet = Fleet::start().await;
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
