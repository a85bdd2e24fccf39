//! How many pods a job wants, and what becomes of them.

use serde_json::{Value, json};

use super::*;
use crate::plan::{Action, Part};
use bellwether_api::workload::job::COMPLETION_INDEX;

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
    decide(&View {
        job: &job,
        pods,
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

#[test]
fn what_is_not_heeded_is_said_once() {
    let spec = json!({"completions": 1, "podFailurePolicy": {"rules": []}});
    let told = |plan: &Plan| {
        plan.actions
            .iter()
            .filter(|action| matches!(action, Action::Tell(event) if event.reason == NOT_SIMULATED))
            .count()
    };
    assert_eq!(told(&decided(spec.clone(), Value::Null, &[])), 1);
    assert_eq!(
        told(&decided(spec, json!({"uncountedTerminatedPods": {}}), &[])),
        0
    );
}
