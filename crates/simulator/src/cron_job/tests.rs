//! When a cron job runs, and when not.

use serde_json::{Value, json};

use super::*;
use crate::plan::Action;

fn job(name: &str, condition: Option<&str>) -> Arc<Job> {
    let conditions = condition.map(|kind| json!([{"type": kind, "status": "True"}]));
    let job = json!({
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "status": {"startTime": "2026-01-01T00:00:00Z", "conditions": conditions},
    });
    Arc::new(serde_json::from_value(job).unwrap())
}

#[track_caller]
fn check(spec: Value, status: Value, jobs: &[Arc<Job>], expected: &[&str]) {
    let mut object = json!({
        "metadata": {"name": "c", "namespace": "default", "uid": "c", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"schedule": "*/10 * * * *", "jobTemplate": {"spec": {"template": {}}}},
        "status": status,
    });
    for (key, value) in spec.as_object().unwrap() {
        object["spec"][key] = value.clone();
    }
    let cron_job: CronJob = serde_json::from_value(object).unwrap();
    let view = View {
        cron_job: &cron_job,
        jobs,
        zone: Some(&TimeZone::UTC),
        now: "2026-01-01T00:31:00Z".parse().unwrap(),
    };
    let plan = decide(&view);
    let done: Vec<String> = plan
        .actions
        .iter()
        .filter_map(|action| match action {
            Action::Create(create) => Some(format!(
                "+{}",
                create.object["metadata"]["annotations"][SCHEDULED]
                    .as_str()
                    .unwrap()
            )),
            Action::Delete { subject, .. } => Some(format!("-{}", subject.key.name)),
            Action::RecordEvent(event) => Some(event.reason.to_owned()),
            _ => None,
        })
        .collect();
    assert_eq!(done, expected);
}

#[test]
fn a_job_begins_at_the_last_time_that_was_missed() {
    check(json!({}), json!({}), &[], &["+2026-01-01T00:30:00Z"]);
    check(
        json!({}),
        json!({"lastScheduleTime": "2026-01-01T00:30:00Z"}),
        &[],
        &[],
    );
    check(json!({"suspend": true}), json!({}), &[], &[]);
    check(json!({"startingDeadlineSeconds": 30}), json!({}), &[], &[]);
    check(
        json!({"startingDeadlineSeconds": 90}),
        json!({}),
        &[],
        &["+2026-01-01T00:30:00Z"],
    );
}

#[test]
fn what_happens_to_a_job_that_still_runs_is_a_matter_of_policy() {
    let running = [job("c-1", None)];
    check(
        json!({"concurrencyPolicy": "Allow"}),
        json!({}),
        &running,
        &["+2026-01-01T00:30:00Z"],
    );
    check(
        json!({"concurrencyPolicy": "Forbid"}),
        json!({}),
        &running,
        &["JobAlreadyActive"],
    );
    check(
        json!({"concurrencyPolicy": "Replace"}),
        json!({}),
        &running,
        &["-c-1", "SuccessfulDelete", "+2026-01-01T00:30:00Z"],
    );
}

#[test]
fn history_is_kept_as_long_as_asked() {
    let done = json!({"lastScheduleTime": "2026-01-01T00:30:00Z"});
    let jobs = [
        job("a", Some("Complete")),
        job("b", Some("Failed")),
        job("c", Some("Failed")),
    ];
    check(json!({}), done.clone(), &jobs, &["-c", "SuccessfulDelete"]);
    let none = json!({"successfulJobsHistoryLimit": 0, "failedJobsHistoryLimit": 2});
    check(none, done, &jobs, &["-a", "SuccessfulDelete"]);
}
