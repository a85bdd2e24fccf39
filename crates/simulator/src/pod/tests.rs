//! The life of a pod, told as a list of moments.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::*;
use crate::plan::test::merge;

/// Plays a pod's life for some time, and lists when it was in which state.
fn life(policy: &str, behaviour: &Behaviour, seconds: i64) -> Vec<String> {
    let start: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let mut object = json!({
        "metadata": {"name": "p", "namespace": "default", "uid": "u"},
        "spec": {"nodeName": "n", "restartPolicy": policy, "containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": "Pending"},
    });
    let (mut now, mut since) = (start, start);
    let mut moments = Vec::new();
    let end = start + SignedDuration::from_secs(seconds);
    while now <= end {
        let pod: Pod = serde_json::from_value(object.clone()).unwrap();
        let view = View {
            pod: &pod,
            behaviour,
            since,
            stopping_since: None,
            address: "10.244.0.1",
            host: "172.18.0.2",
            now,
        };
        let plan = decide(&view);
        let mut changed = false;
        for action in plan.actions {
            if let Action::Patch { patch, .. } = action {
                merge(&mut object, &patch);
                changed = true;
            }
        }
        if changed {
            since = now;
            moments.push(moment(now.duration_since(start), &object));
        } else if let Some(wake) = plan.wake {
            now = wake;
        } else {
            break;
        }
    }
    moments
}

/// `seconds phase state ready/restarts`
fn moment(time: SignedDuration, object: &Value) -> String {
    let status = &object["status"]["containerStatuses"][0];
    let state = &status["state"];
    let reason = ["waiting", "terminated"]
        .iter()
        .find_map(|kind| state[kind]["reason"].as_str());
    let conditions = object["status"]["conditions"].as_array().unwrap();
    let ready = conditions
        .iter()
        .find(|found| found["type"] == "Ready")
        .unwrap();
    format!(
        "{:.2} {} {} ready={} restarts={}",
        time.as_secs_f64(),
        object["status"]["phase"].as_str().unwrap(),
        reason.unwrap_or("running"),
        ready["status"].as_str().unwrap(),
        status["restartCount"]
    )
}

#[track_caller]
fn check(policy: &str, behaviour: Behaviour, seconds: i64, expected: &[&str]) {
    assert_eq!(life(policy, &behaviour, seconds), expected);
}

#[test]
fn a_pod_starts_and_becomes_ready() {
    check(
        "Always",
        Behaviour::default(),
        3600,
        &[
            "0.00 Pending ContainerCreating ready=False restarts=0",
            "0.15 Running running ready=True restarts=0",
        ],
    );
    let slow = Behaviour {
        ready_after: Duration::from_secs(7),
        ..Behaviour::default()
    };
    check(
        "Always",
        slow,
        3600,
        &[
            "0.00 Pending ContainerCreating ready=False restarts=0",
            "0.15 Running running ready=False restarts=0",
            "7.15 Running running ready=True restarts=0",
        ],
    );
}

#[test]
fn what_is_meant_to_end_ends_well_or_badly() {
    let run_for = Some(Duration::from_secs(5));
    let well = Behaviour {
        run_for,
        ..Behaviour::default()
    };
    let start = "0.00 Pending ContainerCreating ready=False restarts=0";
    let running = "0.15 Running running ready=True restarts=0";
    check(
        "Never",
        well,
        60,
        &[
            start,
            running,
            "5.15 Succeeded Completed ready=False restarts=0",
        ],
    );
    let badly = Behaviour {
        run_for,
        failure: Some(Failure::Job),
        ..Behaviour::default()
    };
    check(
        "Never",
        badly.clone(),
        60,
        &[start, running, "5.15 Failed Error ready=False restarts=0"],
    );
    check(
        "OnFailure",
        badly,
        22,
        &[
            start,
            running,
            "5.15 Running running ready=True restarts=1",
            "10.15 Running CrashLoopBackOff ready=False restarts=1",
            "20.15 Running running ready=True restarts=2",
        ],
    );
}

#[test]
fn what_crashes_is_never_ready_and_waits_longer_and_longer() {
    let crash = Behaviour {
        failure: Some(Failure::Crash),
        ..Behaviour::default()
    };
    check(
        "Always",
        crash,
        35,
        &[
            "0.00 Pending ContainerCreating ready=False restarts=0",
            "0.15 Running running ready=False restarts=0",
            "0.25 Running running ready=False restarts=1",
            "0.35 Running CrashLoopBackOff ready=False restarts=1",
            "10.35 Running running ready=False restarts=2",
            "10.45 Running CrashLoopBackOff ready=False restarts=2",
            "30.45 Running running ready=False restarts=3",
            "30.55 Running CrashLoopBackOff ready=False restarts=3",
        ],
    );
}

#[test]
fn an_image_that_is_missing_is_asked_for_again_and_again() {
    let missing = Behaviour {
        failure: Some(Failure::Image),
        ..Behaviour::default()
    };
    check(
        "Always",
        missing,
        31,
        &[
            "0.00 Pending ContainerCreating ready=False restarts=0",
            "0.15 Pending ErrImagePull ready=False restarts=0",
            "1.15 Pending ImagePullBackOff ready=False restarts=0",
            "10.00 Pending ErrImagePull ready=False restarts=0",
            "11.00 Pending ImagePullBackOff ready=False restarts=0",
            "30.00 Pending ErrImagePull ready=False restarts=0",
            "31.00 Pending ImagePullBackOff ready=False restarts=0",
        ],
    );
}

#[test]
fn a_pod_that_is_deleted_is_let_go_when_its_containers_have_ended() {
    let now: Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "p", "namespace": "default", "uid": "u", "deletionTimestamp": "2026-01-01T00:00:30Z",
                     "deletionGracePeriodSeconds": 30},
        "spec": {"nodeName": "n", "containers": [{"name": "c"}]},
        "status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z",
                   "containerStatuses": [{"name": "c", "image": "", "imageID": "", "ready": true, "restartCount": 0,
                                          "state": {"running": {}}}]},
    }))
    .unwrap();
    let decide_at = |stopping_since, now| {
        let behaviour = Behaviour::default();
        decide(&View {
            pod: &pod,
            behaviour: &behaviour,
            since: now,
            stopping_since,
            address: "",
            host: "",
            now,
        })
    };
    let asked = decide_at(None, now);
    assert!(
        matches!(asked.actions.as_slice(), [Action::RecordEvent(event)] if event.message == "Stopping container c")
    );
    assert_eq!(decide_at(Some(now), now).wake, Some(after(now, STOP)));
    let gone = decide_at(Some(now), after(now, STOP));
    assert!(
        matches!(
            gone.actions.as_slice(),
            [Action::Delete { grace: Some(0), .. }]
        ),
        "{gone:?}"
    );
}
