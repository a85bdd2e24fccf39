//! Jobs and cron jobs on a simulated cluster, from the outside.

#![allow(
    clippy::needless_pass_by_value,
    reason = "objects are written in place"
)]

use crate::common;

use std::time::Duration;

use common::{TestCluster, names, reason};
use serde_json::{Value, json};

fn job(name: &str, spec: Value, annotations: Value) -> Value {
    let mut job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {"template": {
            "metadata": {"annotations": annotations},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "registry.example/task:1"}]},
        }},
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        job["spec"][key] = value.clone();
    }
    job
}

#[tokio::test(start_paused = true)]
async fn a_job_runs_to_its_end() {
    let cluster = TestCluster::start().await;
    let spec = json!({"completions": 4, "parallelism": 2, "ttlSecondsAfterFinished": 60});
    cluster
        .create(job(
            "load",
            spec,
            json!({"simulator.bellwether.dev/run-for": "5s"}),
        ))
        .await;
    let load = cluster
        .until("Job", "load", |load| {
            reason(load, "Complete", "True") == "CompletionsReached"
        })
        .await;
    assert_eq!(load["status"]["succeeded"], 4);
    assert_eq!(load["status"]["uncountedTerminatedPods"], json!({}));
    assert!(
        cluster.elapsed() > Duration::from_secs(10) && cluster.elapsed() < Duration::from_secs(13)
    );
    let pods = cluster.list("Pod").await;
    assert_eq!(pods.len(), 4);
    assert!(pods.iter().all(
        |pod| pod["status"]["phase"] == "Succeeded" && pod["metadata"]["finalizers"].is_null()
    ));
    let events = cluster.events("Job", "load").await;
    assert_eq!(events.last().unwrap(), "Completed: Job completed");
    cluster.until("Job", "load", Value::is_null).await;
    assert!(cluster.elapsed() > Duration::from_mins(1));
    while !cluster.list("Pod").await.is_empty() {
        cluster.pass(Duration::from_millis(20)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_fails_too_often_fails() {
    let cluster = TestCluster::start().await;
    let fails = json!({"simulator.bellwether.dev/fail": "job"});
    cluster
        .create(job("bad", json!({"backoffLimit": 2}), fails))
        .await;
    let bad = cluster
        .until("Job", "bad", |bad| {
            reason(bad, "Failed", "True") == "BackoffLimitExceeded"
        })
        .await;
    assert_eq!(bad["status"]["failed"], 3);
    assert!(
        cluster.elapsed() > Duration::from_secs(28),
        "waits between attempts: {:?}",
        cluster.elapsed()
    );
    let events = cluster.events("Job", "bad").await;
    assert_eq!(
        events.last().unwrap(),
        "BackoffLimitExceeded: Job has reached the specified backoff limit"
    );
}

#[tokio::test(start_paused = true)]
async fn a_job_that_takes_too_long_fails_and_its_pods_end() {
    let cluster = TestCluster::start().await;
    let slow = json!({"simulator.bellwether.dev/run-for": "1h"});
    cluster
        .create(job("slow", json!({"activeDeadlineSeconds": 30}), slow))
        .await;
    cluster
        .until("Job", "slow", |slow| {
            reason(slow, "Failed", "True") == "DeadlineExceeded"
        })
        .await;
    assert!(
        cluster.elapsed() < Duration::from_secs(35),
        "{:?}",
        cluster.elapsed()
    );
    let pods = cluster.list("Pod").await;
    assert!(
        pods.iter().all(|pod| pod["status"]["phase"] != "Running"),
        "{pods:#?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_indexed_job_does_every_index_once() {
    let cluster = TestCluster::start().await;
    let spec = json!({"completions": 3, "parallelism": 3, "completionMode": "Indexed"});
    cluster.create(job("parts", spec, json!({}))).await;
    let parts = cluster
        .until("Job", "parts", |parts| {
            reason(parts, "Complete", "True") == "CompletionsReached"
        })
        .await;
    assert_eq!(parts["status"]["completedIndexes"], "0-2");
    assert_eq!(parts["status"]["succeeded"], 3);
    let pods = cluster.list("Pod").await;
    let mut hosts: Vec<_> = pods
        .iter()
        .map(|pod| pod["spec"]["hostname"].as_str().unwrap())
        .collect();
    hosts.sort_unstable();
    assert_eq!(hosts, ["parts-0", "parts-1", "parts-2"]);
}

#[tokio::test(start_paused = true)]
async fn a_suspended_job_waits_to_be_resumed() {
    let cluster = TestCluster::start().await;
    cluster
        .create(job("later", json!({"suspend": true}), json!({})))
        .await;
    cluster
        .until("Job", "later", |later| {
            reason(later, "Suspended", "True") == "JobSuspended"
        })
        .await;
    cluster.pass(Duration::from_mins(5)).await;
    assert!(cluster.list("Pod").await.is_empty());
    cluster
        .patch("Job", "later", json!({"spec": {"suspend": false}}))
        .await;
    let later = cluster
        .until("Job", "later", |later| {
            reason(later, "Complete", "True") == "CompletionsReached"
        })
        .await;
    assert_eq!(reason(&later, "Suspended", "False"), "JobResumed");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_job_takes_its_pods_along() {
    let cluster = TestCluster::start().await;
    let slow = json!({"simulator.bellwether.dev/run-for": "1h"});
    cluster.create(job("slow", json!({}), slow)).await;
    cluster
        .until("Job", "slow", |slow| slow["status"]["ready"] == 1)
        .await;
    cluster.delete("Job", "slow").await;
    while !cluster.list("Pod").await.is_empty() {
        cluster.pass(Duration::from_millis(20)).await;
        assert!(cluster.elapsed() < Duration::from_mins(1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_cron_job_runs_whenever_it_is_time() {
    let cluster = TestCluster::start().await;
    let cron_job = json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tick"},
        "spec": {"schedule": "*/10 * * * *", "jobTemplate": {"spec": job("x", json!({}), json!({}))["spec"]}},
    });
    cluster.create(cron_job).await;
    cluster.pass(Duration::from_mins(95)).await;
    let tick = cluster.get("CronJob", "tick").await;
    assert_eq!(tick["status"]["lastScheduleTime"], "2026-01-01T01:30:00Z");
    assert_eq!(tick["status"]["lastSuccessfulTime"], "2026-01-01T01:30:00Z");
    assert!(tick["status"]["active"].is_null());
    let jobs = cluster.list("Job").await;
    assert_eq!(jobs.len(), 3, "history keeps three");
    let minute = "2026-01-01T01:30:00Z"
        .parse::<jiff::Timestamp>()
        .unwrap()
        .as_second()
        / 60;
    let last = format!("tick-{minute}");
    assert_eq!(names(&jobs)[2], last);
    let events = cluster.events("CronJob", "tick").await;
    assert!(
        events.contains(&format!("SuccessfulCreate: Created job {last}")),
        "{events:?}"
    );
    assert!(
        events.contains(&format!(
            "SawCompletedJob: Saw completed job: {last}, condition: Complete"
        )),
        "{events:?}"
    );
}

/// An indexed job with three parts, some of which fail.
fn parts(spec: Value, annotations: Value) -> Value {
    let mut job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "parts"},
        "spec": {
            "completions": 3, "parallelism": 3, "completionMode": "Indexed",
            "template": {
                "metadata": {"annotations": annotations},
                "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "x"}]},
            },
        },
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        job["spec"][key] = value.clone();
    }
    job
}

#[tokio::test(start_paused = true)]
async fn an_index_may_fail_while_others_go_on() {
    let cluster = TestCluster::start().await;
    cluster
        .create(parts(
            json!({"backoffLimitPerIndex": 1}),
            json!({"simulator.bellwether.dev/fail": "job", "simulator.bellwether.dev/fail-indexes": "1"}),
        ))
        .await;
    let job = cluster
        .until("Job", "parts", |job| {
            !reason(job, "Failed", "True").is_empty()
        })
        .await;
    assert_eq!(reason(&job, "Failed", "True"), "FailedIndexes");
    let status = &job["status"];
    assert_eq!(
        (
            &status["completedIndexes"],
            &status["failedIndexes"],
            &status["failed"]
        ),
        (&json!("0,2"), &json!("1"), &json!(2))
    );
    let told = cluster.events("Job", "parts").await;
    assert_eq!(
        told.last().unwrap(),
        "FailedIndexes: Job has failed indexes"
    );
}

#[tokio::test(start_paused = true)]
async fn one_exit_code_ends_a_job_at_once() {
    let cluster = TestCluster::start().await;
    let rule = json!({"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}});
    cluster
        .create(parts(
            json!({"podFailurePolicy": {"rules": [rule]}}),
            json!({"simulator.bellwether.dev/fail": "job", "simulator.bellwether.dev/exit-code": "42",
                   "simulator.bellwether.dev/fail-indexes": "1", "simulator.bellwether.dev/run-for": "1s"}),
        ))
        .await;
    let job = cluster
        .until("Job", "parts", |job| {
            !reason(job, "Failed", "True").is_empty()
        })
        .await;
    assert_eq!(reason(&job, "Failed", "True"), "PodFailurePolicy");
    assert!(cluster.elapsed() < Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn a_job_has_done_enough_by_its_success_policy() {
    let cluster = TestCluster::start().await;
    cluster
        .create(parts(
            json!({"successPolicy": {"rules": [{"succeededIndexes": "0"}]}, "parallelism": 1}),
            json!({}),
        ))
        .await;
    let job = cluster
        .until("Job", "parts", |job| {
            !reason(job, "Complete", "True").is_empty()
        })
        .await;
    assert_eq!(reason(&job, "Complete", "True"), "SuccessPolicy");
    assert_eq!(job["status"]["completedIndexes"], "0");
}
