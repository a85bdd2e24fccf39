//! How many pods a job wants, and what becomes of them.

use serde_json::{Value, json};

use super::*;
use crate::plan::{Action, Part};
use bellwether_api::workload::job::{COMPLETION_INDEX, INDEX_FAILURE_COUNT};

const NOW: &str = "2026-01-01T00:10:00Z";

fn pod(number: usize, phase: &str, ended: Option<&str>) -> Arc<Pod> {
    let state = ended.map_or(
        json!({"running": {}}),
        |time| json!({"terminated": {"exitCode": 0, "finishedAt": time}}),
    );
    let pod = json!({
        "metadata": {"name": format!("p{number}"), "uid": format!("u{number}"), "finalizers": [TRACKING],
                     "annotations": {COMPLETION_INDEX: number.to_string()}},
        "spec": {"containers": []},
        "status": {"phase": phase, "containerStatuses": [
            {"name": "c", "image": "", "imageID": "", "ready": false, "restartCount": 0, "state": state}]},
    });
    Arc::new(serde_json::from_value(pod).unwrap())
}

fn decided(spec: Value, status: Value, pods: &[Arc<Pod>]) -> Plan {
    let mut job = json!({
        "metadata": {"name": "j", "namespace": "default", "uid": "j"},
        "spec": {"template": {"spec": {"containers": [], "restartPolicy": "Never"}}},
        "status": status,
    });
    for (key, value) in spec.as_object().unwrap() {
        job["spec"][key] = value.clone();
    }
    let job: Job = serde_json::from_value(job).unwrap();
    let mut endings = Endings::default();
    endings.learn(job.spec.as_ref().unwrap(), pods);
    decide(&View {
        job: &job,
        pods,
        endings: &endings,
        now: NOW.parse().unwrap(),
    })
}

/// Created pods, deleted pods, and the reason of the last condition.
fn outcome(plan: &Plan) -> (usize, usize, String) {
    let created = plan
        .actions
        .iter()
        .filter(|action| matches!(action, Action::Create(_)))
        .count();
    let deleted = plan
        .actions
        .iter()
        .filter(|action| matches!(action, Action::Delete { .. }))
        .count();
    let status = plan.actions.iter().find_map(|action| match action {
        Action::Patch {
            part: Part::Status,
            patch,
            ..
        } => patch["status"]["conditions"].as_array(),
        _ => None,
    });
    let reason = status
        .and_then(|list| list.last())
        .map_or(String::new(), |last| {
            format!(
                "{}/{}",
                last["type"].as_str().unwrap(),
                last["reason"].as_str().unwrap()
            )
        });
    (created, deleted, reason)
}

#[track_caller]
fn check(spec: Value, status: Value, phases: &[&str], expected: (usize, usize, &str)) {
    let pods: Vec<_> = phases
        .iter()
        .enumerate()
        .map(|(number, phase)| {
            let ended = matches!(*phase, "Succeeded" | "Failed").then_some("2026-01-01T00:00:00Z");
            pod(number, phase, ended)
        })
        .collect();
    let (created, deleted, reason) = outcome(&decided(spec, status, &pods));
    assert_eq!((created, deleted, reason.as_str()), expected);
}

#[test]
fn as_many_pods_run_as_are_wanted_and_left_to_do() {
    check(
        json!({"completions": 1, "parallelism": 1}),
        json!({}),
        &[],
        (1, 0, ""),
    );
    check(
        json!({"completions": 5, "parallelism": 2}),
        json!({}),
        &["Running"],
        (1, 0, ""),
    );
    check(
        json!({"completions": 5, "parallelism": 2}),
        json!({"succeeded": 4}),
        &[],
        (1, 0, ""),
    );
    check(
        json!({"completions": 5, "parallelism": 1}),
        json!({}),
        &["Running", "Running"],
        (0, 1, ""),
    );
    check(json!({"parallelism": 3}), json!({}), &[], (3, 0, ""));
    check(
        json!({"parallelism": 3}),
        json!({"succeeded": 1}),
        &["Running"],
        (0, 0, ""),
    );
    check(
        json!({"completions": 2, "parallelism": 2, "suspend": true}),
        json!({}),
        &["Running"],
        (0, 1, "Suspended/JobSuspended"),
    );
    check(
        json!({"completions": 3, "parallelism": 3, "completionMode": "Indexed"}),
        json!({"completedIndexes": "1"}),
        &["Running"],
        (1, 0, ""),
    );
}

#[test]
fn a_job_ends_when_enough_has_succeeded_or_too_much_has_failed() {
    check(
        json!({"completions": 2}),
        json!({"succeeded": 2, "startTime": NOW}),
        &[],
        (0, 0, "Complete/CompletionsReached"),
    );
    // It has ended, but is not counted yet.
    check(
        json!({"completions": 1}),
        json!({"startTime": NOW}),
        &["Succeeded"],
        (0, 0, "SuccessCriteriaMet/CompletionsReached"),
    );
    check(
        json!({"completions": 2, "backoffLimit": 1}),
        json!({"failed": 2, "startTime": NOW}),
        &["Running"],
        (0, 1, "FailureTarget/BackoffLimitExceeded"),
    );
    check(
        json!({"completions": 2, "backoffLimit": 1}),
        json!({"failed": 2, "startTime": NOW}),
        &[],
        (0, 0, "Failed/BackoffLimitExceeded"),
    );
    check(
        json!({"completions": 1, "activeDeadlineSeconds": 60}),
        json!({"startTime": "2026-01-01T00:09:00Z"}),
        &["Running"],
        (0, 1, "FailureTarget/DeadlineExceeded"),
    );
}

#[test]
fn after_failures_a_job_waits() {
    let failed = [
        pod(0, "Failed", Some("2026-01-01T00:09:40Z")),
        pod(1, "Failed", Some("2026-01-01T00:09:50Z")),
    ];
    let plan = decided(
        json!({"completions": 1}),
        json!({"startTime": NOW}),
        &failed,
    );
    assert_eq!(outcome(&plan).0, 0);
    assert_eq!(
        plan.wake,
        Some("2026-01-01T00:10:10Z".parse().unwrap()),
        "twenty seconds after the second failure"
    );
}

#[test]
fn what_has_ended_is_written_down_before_it_is_let_go() {
    let plan = decided(
        json!({"completions": 2}),
        json!({"startTime": NOW}),
        &[pod(0, "Succeeded", Some(NOW))],
    );
    let [
        Action::Patch {
            part: Part::Status,
            patch: status,
            ..
        },
        Action::Patch { patch: release, .. },
        ..,
    ] = plan.actions.as_slice()
    else {
        panic!("{plan:#?}");
    };
    assert_eq!(
        status["status"]["uncountedTerminatedPods"]["succeeded"],
        json!(["u0"])
    );
    assert_eq!(release["metadata"]["finalizers"], Value::Null);
}

#[test]
fn a_finished_job_goes_when_its_time_is_up() {
    let status = |time: &str| json!({"conditions": [{"type": "Complete", "status": "True", "lastTransitionTime": time}]});
    let spec = json!({"ttlSecondsAfterFinished": 60});
    let waits = decided(spec.clone(), status("2026-01-01T00:09:30Z"), &[]);
    assert_eq!(
        (waits.actions.len(), waits.wake),
        (0, Some("2026-01-01T00:10:30Z".parse().unwrap()))
    );
    let goes = decided(spec, status("2026-01-01T00:09:00Z"), &[]);
    assert!(matches!(goes.actions.as_slice(), [Action::Delete { .. }]));
}

#[test]
fn jobs_of_other_controllers_are_theirs() {
    assert_eq!(
        decided(json!({"managedBy": "example.com/queue"}), json!({}), &[]),
        Plan::default()
    );
}

fn failed(index: u32, code: i32, failures: i32) -> Arc<Pod> {
    let mut pod = Pod::clone(&pod(index as usize, "Failed", Some("2026-01-01T00:09:55Z")));
    let annotations = pod.metadata.annotations.get_or_insert_default();
    annotations.insert(INDEX_FAILURE_COUNT.to_owned(), failures.to_string());
    pod.metadata.namespace = Some("default".to_owned());
    let status = pod.status.as_mut().unwrap();
    let state = status.container_statuses.as_mut().unwrap()[0]
        .state
        .as_mut();
    state.unwrap().terminated.as_mut().unwrap().exit_code = code;
    Arc::new(pod)
}

/// The status that is written.
fn written(plan: &Plan) -> Value {
    let status = plan.actions.iter().find_map(|action| match action {
        Action::Patch {
            part: Part::Status,
            patch,
            ..
        } => Some(patch["status"].clone()),
        _ => None,
    });
    status.unwrap_or_default()
}

#[test]
fn a_failure_policy_ends_a_job_or_overlooks_a_failure() {
    let policy = json!({"rules": [
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
        {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [7]}},
    ]});
    let spec = json!({"completions": 1, "backoffLimit": 0, "podFailurePolicy": policy});
    let fatal = decided(spec.clone(), json!({"startTime": NOW}), &[failed(0, 42, 0)]);
    assert_eq!(
        outcome(&fatal),
        (0, 0, "FailureTarget/PodFailurePolicy".to_owned())
    );
    assert_eq!(
        written(&fatal)["conditions"][0]["message"],
        "Container c for pod default/p0 failed with exit code 42 matching FailJob rule at index 0"
    );
    let ignored = decided(spec.clone(), json!({"startTime": NOW}), &[failed(0, 7, 0)]);
    assert_eq!(
        outcome(&ignored),
        (0, 0, String::new()),
        "it waits to try again"
    );
    assert_eq!(written(&ignored)["failed"], Value::Null);
    let counted = decided(spec, json!({"startTime": NOW}), &[failed(0, 1, 0)]);
    assert_eq!(outcome(&counted).2, "FailureTarget/BackoffLimitExceeded");
}

#[test]
fn each_index_may_fail_so_often() {
    let spec = json!({"completions": 2, "parallelism": 2, "completionMode": "Indexed",
                      "backoffLimit": i32::MAX, "backoffLimitPerIndex": 1});
    // It may fail once more: it is kept until its successor has learnt from it.
    let first = decided(spec.clone(), json!({"startTime": NOW}), &[failed(0, 1, 0)]);
    assert_eq!(outcome(&first).0, 1, "the other index need not wait");
    assert_eq!(first.wake, Some("2026-01-01T00:10:05Z".parse().unwrap()));
    assert_eq!(written(&first)["failedIndexes"], "");
    assert_eq!(written(&first)["uncountedTerminatedPods"], json!({}));
    // It has failed once too often.
    let second = decided(spec.clone(), json!({"startTime": NOW}), &[failed(0, 1, 1)]);
    assert_eq!(written(&second)["failedIndexes"], "0");
    let status = json!({"startTime": NOW, "failedIndexes": "0", "completedIndexes": "1"});
    check(spec.clone(), status, &[], (0, 0, "Failed/FailedIndexes"));
    let mut bounded = spec;
    bounded["maxFailedIndexes"] = json!(0);
    let status = json!({"startTime": NOW, "failedIndexes": "0"});
    check(
        bounded,
        status,
        &["Running"],
        (0, 1, "FailureTarget/MaxFailedIndexesExceeded"),
    );
}

#[test]
fn the_successor_of_a_failed_pod_knows_how_often_its_index_failed() {
    let spec = json!({"completions": 1, "completionMode": "Indexed", "backoffLimitPerIndex": 3});
    let mut before = Pod::clone(&failed(0, 1, 1));
    let status = before.status.as_mut().unwrap();
    let state = status.container_statuses.as_mut().unwrap()[0]
        .state
        .as_mut();
    let end = state.unwrap().terminated.as_mut().unwrap();
    end.finished_at = Some(Time("2026-01-01T00:09:00Z".parse().unwrap()));
    let plan = decided(spec, json!({"startTime": NOW}), &[Arc::new(before)]);
    let created = plan.actions.iter().find_map(|action| match action {
        Action::Create(create) => Some(create.object["metadata"]["annotations"].clone()),
        _ => None,
    });
    assert_eq!(
        created,
        Some(json!({COMPLETION_INDEX: "0", INDEX_FAILURE_COUNT: "2"}))
    );
}

#[test]
fn a_success_policy_ends_a_job_early() {
    let spec = json!({"completions": 3, "parallelism": 3, "completionMode": "Indexed",
                      "successPolicy": {"rules": [{"succeededCount": 1}]}});
    check(
        spec.clone(),
        json!({"startTime": NOW}),
        &["Succeeded", "Running"],
        (0, 1, "SuccessCriteriaMet/SuccessPolicy"),
    );
    let condition = json!([{"type": "SuccessCriteriaMet", "status": "True",
                            "reason": "SuccessPolicy", "message": "Matched rules at index 0"}]);
    check(
        spec,
        json!({"startTime": NOW, "completedIndexes": "0", "conditions": condition}),
        &[],
        (0, 0, "Complete/SuccessPolicy"),
    );
}

#[test]
fn pods_of_a_suspended_job_have_not_failed() {
    let plan = decided(
        json!({"completions": 1, "suspend": true}),
        json!({"startTime": NOW}),
        &[pod(0, "Running", None)],
    );
    let released = plan.actions.iter().any(|action| {
        matches!(action, Action::Patch { part: Part::Main, patch, .. }
            if patch["metadata"]["finalizers"].is_null())
    });
    assert!(released, "nobody counts it: {plan:#?}");
    assert_eq!(written(&plan)["terminating"], 1);
}

#[test]
fn an_index_has_one_pod() {
    let twins = [pod(0, "Running", None), pod(0, "Running", None)];
    let spec = json!({"completions": 2, "parallelism": 2, "completionMode": "Indexed"});
    let plan = decided(spec, json!({"startTime": NOW}), &twins);
    assert_eq!(outcome(&plan), (0, 1, String::new()));
}

#[test]
fn failures_of_pods_that_are_gone_are_remembered_until_one_succeeds() {
    let spec: JobSpec = serde_json::from_value(json!({"template": {}})).unwrap();
    let mut endings = Endings::default();
    endings.learn(&spec, &[pod(0, "Failed", Some("2026-01-01T00:09:00Z"))]);
    endings.learn(&spec, &[pod(1, "Failed", Some("2026-01-01T00:09:30Z"))]);
    endings.learn(&spec, &[]);
    let last = "2026-01-01T00:09:30Z".parse().unwrap();
    assert_eq!(endings.failures(), Some((2, last)));
    endings.learn(&spec, &[pod(2, "Succeeded", Some("2026-01-01T00:09:40Z"))]);
    assert_eq!(endings.failures(), None);
}
