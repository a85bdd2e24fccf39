//! Jobs and cron jobs.

use serde_json::{Value, json};

use super::picture::Picture;
use super::stage::Stage;
use super::{number, reason};

/// A job whose pods end by themselves.
fn job(name: &str, spec: Value, annotations: Value) -> Value {
    let mut job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {"template": {"metadata": {"annotations": annotations}, "spec": {
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": "busybox"}]}}},
    });
    for (key, value) in spec.as_object().unwrap() {
        job["spec"][key] = value.clone();
    }
    job
}

fn failing(code: &str, indexes: Option<&str>) -> Value {
    let mut notes =
        json!({"simulator.bellwether.dev/fail": "job", "simulator.bellwether.dev/exit-code": code});
    if let Some(indexes) = indexes {
        notes["simulator.bellwether.dev/fail-indexes"] = indexes.into();
    }
    notes
}

#[tokio::test]
async fn jobs_end_as_with_a_real_controller() {
    let Some(stage) = Stage::start("jobs").await else {
        return;
    };
    let endless = json!({"simulator.bellwether.dev/run-for": "1h"});
    let rules = |action: &str| json!({"rules": [{"action": action, "onExitCodes": {"operator": "In", "values": [42]}}]});
    let indexed = |spec: Value| {
        let mut whole = json!({"completions": 3, "parallelism": 3, "completionMode": "Indexed"});
        for (key, value) in spec.as_object().unwrap() {
            whole[key] = value.clone();
        }
        whole
    };
    for job in [
        job("plain", json!({"completions": 2}), Value::Null),
        job("parts", indexed(json!({})), Value::Null),
        job("waiting", json!({"suspend": true}), Value::Null),
        job("doomed", json!({"backoffLimit": 0}), failing("1", None)),
        job("slow", json!({"activeDeadlineSeconds": 2}), endless.clone()),
        job("paused", json!({}), endless),
        job(
            "fatal",
            json!({"podFailurePolicy": rules("FailJob")}),
            failing("42", None),
        ),
        job(
            "limit",
            indexed(json!({"backoffLimitPerIndex": 0})),
            failing("1", Some("1")),
        ),
        job(
            "limits",
            indexed(json!({"parallelism": 1, "backoffLimitPerIndex": 0, "maxFailedIndexes": 0})),
            failing("1", Some("0")),
        ),
        job(
            "index",
            indexed(json!({"backoffLimitPerIndex": 5, "podFailurePolicy": rules("FailIndex")})),
            failing("42", Some("2")),
        ),
        job(
            "enough",
            indexed(
                json!({"parallelism": 1, "successPolicy": {"rules": [{"succeededIndexes": "0"}]}}),
            ),
            Value::Null,
        ),
        job("brief", json!({"ttlSecondsAfterFinished": 1}), Value::Null),
    ] {
        stage.create(job).await;
    }
    let ended = |picture: &Picture, name: &str, kind: &str| {
        !reason(picture, &format!("jobs/{name}"), kind).is_empty()
    };
    stage
        .agree("first ends", |picture| {
            ["plain", "parts", "enough"]
                .iter()
                .all(|name| ended(picture, name, "Complete"))
                && ["doomed", "slow", "fatal", "limit", "limits", "index"]
                    .iter()
                    .all(|name| ended(picture, name, "Failed"))
                && number(picture, "jobs/paused", "/status/ready") == 1
                && !picture.objects.contains_key("jobs/brief")
        })
        .await;
    let path = |name: &str| format!("/apis/batch/v1/namespaces/{{ns}}/jobs/{name}");
    stage
        .patch(&path("waiting"), json!({"spec": {"suspend": false}}))
        .await;
    stage
        .patch(&path("paused"), json!({"spec": {"suspend": true}}))
        .await;
    stage
        .agree("resumed and suspended", |picture| {
            ended(picture, "waiting", "Complete")
                && ended(picture, "paused", "Suspended")
                && number(picture, "jobs/paused", "/status/terminating") == 0
        })
        .await;
}

#[tokio::test]
async fn cron_jobs_run_as_with_a_real_controller() {
    let Some(stage) = Stage::start("schedules").await else {
        return;
    };
    let cron = |name: &str, mut spec: Value| {
        spec["jobTemplate"] = json!({"spec": job("x", json!({}), Value::Null)["spec"]});
        json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name}, "spec": spec})
    };
    for object in [
        cron("tick", json!({"schedule": "* * * * *"})),
        cron("paused", json!({"schedule": "* * * * *", "suspend": true})),
        cron(
            "zone",
            json!({"schedule": "0 0 1 1 *", "timeZone": "Europe/Berlin"}),
        ),
        cron("never", json!({"schedule": "0 0 31 2 *"})),
    ] {
        stage.create(object).await;
    }
    stage
        .agree("a minute", |picture| {
            let status = |name: &str| picture.field("cronjobs/tick", &format!("/status/{name}"));
            !status("lastSuccessfulTime").is_null() && status("active").is_null()
        })
        .await;
}

#[tokio::test]
async fn pods_of_jobs_are_replaced_as_with_a_real_controller() {
    let Some(stage) = Stage::start("losses").await else {
        return;
    };
    let endless = json!({"simulator.bellwether.dev/run-for": "1h"});
    stage
        .create(job(
            "lost",
            json!({"podReplacementPolicy": "Failed"}),
            endless.clone(),
        ))
        .await;
    stage
        .create(job("gone", json!({"backoffLimit": 0}), endless))
        .await;
    stage
        .agree("running", |picture| {
            number(picture, "jobs/lost", "/status/ready") == 1
                && number(picture, "jobs/gone", "/status/ready") == 1
        })
        .await;
    stage.delete_pods().await;
    stage
        .agree("replaced", |picture| {
            number(picture, "jobs/lost", "/status/failed") == 1
                && number(picture, "jobs/lost", "/status/ready") == 1
                && reason(picture, "jobs/gone", "Failed") == "BackoffLimitExceeded"
        })
        .await;
}

#[tokio::test]
async fn cron_jobs_with_busy_jobs_go_on_as_with_a_real_controller() {
    let Some(stage) = Stage::start("overlaps").await else {
        return;
    };
    let endless = json!({"simulator.bellwether.dev/run-for": "1h"});
    for policy in ["Forbid", "Replace", "Allow"] {
        let spec = json!({"schedule": "* * * * *", "concurrencyPolicy": policy,
                          "jobTemplate": {"spec": job("x", json!({}), endless.clone())["spec"]}});
        stage
            .create(json!({"apiVersion": "batch/v1", "kind": "CronJob",
                           "metadata": {"name": policy.to_lowercase()}, "spec": spec}))
            .await;
    }
    let active = |picture: &Picture, name: &str| {
        let found = picture.field(&format!("cronjobs/{name}"), "/status/active");
        found.as_array().map_or(0, Vec::len)
    };
    stage
        .agree("a minute", |picture| {
            ["forbid", "replace", "allow"]
                .iter()
                .all(|name| active(picture, name) == 1)
        })
        .await;
    stage
        .agree("another minute", |picture| {
            active(picture, "allow") == 2
                && active(picture, "replace") == 1
                && ["JobAlreadyActive", "SuccessfulDelete"]
                    .iter()
                    .all(|reason| picture.events.iter().any(|event| event.contains(reason)))
        })
        .await;
}
