use serde_json::{Value, json};

use super::*;

/// Checks what is known of a condition: nothing, or status, and message if it is not the usual.
#[track_caller]
fn check(name: &str, api_version: &str, kind: &str, rest: Value, expected: Option<(bool, &str)>) {
    check_after(Past::default(), name, [api_version, kind], rest, expected);
}

/// The same, of an object about which something is remembered.
#[track_caller]
fn check_after(
    past: Past,
    name: &str,
    [api_version, kind]: [&str; 2],
    rest: Value,
    expected: Option<(bool, &str)>,
) {
    let mut object =
        json!({"apiVersion": api_version, "kind": kind, "metadata": {"generation": 2}});
    for (key, value) in rest.as_object().unwrap() {
        object[key] = value.clone();
    }
    let found = conclude(name, &object, past);
    let Some((holds, message)) = expected else {
        assert_eq!(found, None, "{name} of {object}");
        return;
    };
    let found = found.unwrap_or_else(|| panic!("nothing about {name} of {object}"));
    assert_eq!(found.status == "True", holds, "{name} of {object}");
    let usual = if holds {
        format!("Manifest is {name}")
    } else {
        format!("Manifest is not {name}")
    };
    let wanted = if message.is_empty() { &usual } else { message };
    assert_eq!(found.message, wanted, "{name} of {object}");
}

fn status(status: Value) -> Value {
    json!({ "status": status })
}

fn with_condition(name: &str, value: &str) -> Value {
    status(json!({"conditions": [{"type": name, "status": value, "message": "so it is"}]}))
}

#[test]
fn jobs_and_pods_come_to_an_end() {
    let job = |rest, expected| check("Complete", "batch/v1", "Job", rest, Some((expected, "")));
    job(json!({}), false);
    job(with_condition("Complete", "True"), true);
    job(with_condition("Failed", "True"), true);
    job(with_condition("Complete", "False"), false);
    job(with_condition("Suspended", "True"), false);
    let pod = |phase: &str, expected| {
        let rest = status(json!({ "phase": phase }));
        check("Complete", "v1", "Pod", rest, Some((expected, "")));
    };
    pod("Succeeded", true);
    pod("Failed", true);
    pod("Running", false);
    pod("", false);
    let cron = |rest, expected| {
        check(
            "Complete",
            "batch/v1",
            "CronJob",
            rest,
            Some((expected, "")),
        );
    };
    cron(json!({}), false);
    let (early, late) = ("2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z");
    cron(
        status(json!({"lastScheduleTime": early, "lastSuccessfulTime": late})),
        true,
    );
    cron(
        status(json!({"lastScheduleTime": late, "lastSuccessfulTime": early})),
        false,
    );
    let active = json!({"lastScheduleTime": early, "lastSuccessfulTime": late, "active": [{}]});
    cron(status(active), false);
    check("Complete", "apps/v1", "Deployment", json!({}), None);
    check("Complete", "example.com/v1", "Job", json!({}), None);
}

#[test]
fn workloads_are_on_their_way_until_all_of_them_serve() {
    let deployment = |rest: Value, holds, message: &str| {
        let mut rest = rest;
        rest["spec"] = json!({"replicas": 2});
        check(
            "Progressing",
            "apps/v1",
            "Deployment",
            rest,
            Some((holds, message)),
        );
    };
    let counted = |generation: i64, updated: i64, available: i64, all: i64| {
        status(
            json!({"observedGeneration": generation, "updatedReplicas": updated,
            "availableReplicas": available, "replicas": all}),
        )
    };
    deployment(json!({}), true, "0 of 2 replicas are updated and available");
    deployment(
        counted(2, 2, 1, 2),
        true,
        "1 of 2 replicas are updated and available",
    );
    deployment(
        counted(2, 2, 2, 2),
        false,
        "2 of 2 replicas are updated and available",
    );
    deployment(
        counted(1, 2, 2, 2),
        true,
        "2 of 2 replicas are updated and available",
    );
    deployment(
        counted(2, 2, 2, 3),
        true,
        "2 of 2 replicas are updated and available",
    );

    let stateful = |rest: Value, holds, message: &str| {
        check(
            "Progressing",
            "apps/v1",
            "StatefulSet",
            rest,
            Some((holds, message)),
        );
    };
    let same = json!({"observedGeneration": 2, "readyReplicas": 1, "updateRevision": "a", "currentRevision": "a"});
    stateful(status(same), false, "1 of 1 replicas are updated and ready");
    let other = json!({"observedGeneration": 2, "readyReplicas": 1, "updatedReplicas": 0, "updateRevision": "b", "currentRevision": "a"});
    stateful(status(other), true, "0 of 1 replicas are updated and ready");

    let daemon = |rest: Value, holds, message: &str| {
        check(
            "Progressing",
            "apps/v1",
            "DaemonSet",
            rest,
            Some((holds, message)),
        );
    };
    let nodes = |updated: i64, available: i64| {
        status(json!({"observedGeneration": 2, "desiredNumberScheduled": 3,
            "updatedNumberScheduled": updated, "numberAvailable": available}))
    };
    daemon(nodes(3, 2), true, "2 of 3 nodes are updated and available");
    daemon(nodes(3, 3), false, "3 of 3 nodes are updated and available");
    daemon(json!({}), true, "0 of 0 nodes are updated and available");
}

#[test]
fn other_kinds_are_on_their_way_until_they_are_what_they_should_be() {
    let check = |api_version: &str, kind: &str, rest: Value, holds, message: &str| {
        check(
            "Progressing",
            api_version,
            kind,
            rest,
            Some((holds, message)),
        );
    };
    check("batch/v1", "Job", json!({}), true, "");
    check(
        "batch/v1",
        "Job",
        with_condition("Complete", "True"),
        false,
        "",
    );
    check(
        "batch/v1",
        "Job",
        with_condition("Failed", "True"),
        true,
        "",
    );
    check("batch/v1", "CronJob", json!({}), false, "");
    let pending = status(json!({"phase": "Pending"}));
    check(
        "v1",
        "Pod",
        pending.clone(),
        true,
        "Pod is in phase Pending",
    );
    let failed = status(json!({"phase": "Failed"}));
    check("v1", "Pod", failed, true, "Pod is in phase Failed");
    check(
        "v1",
        "PersistentVolumeClaim",
        pending,
        true,
        "PersistentVolumeClaim is in phase Pending",
    );
    let bound = status(json!({"phase": "Bound"}));
    check(
        "v1",
        "PersistentVolumeClaim",
        bound,
        false,
        "PersistentVolumeClaim is in phase Bound",
    );
    let (definition, service) = ("apiextensions.k8s.io/v1", "apiregistration.k8s.io/v1");
    check(definition, "CustomResourceDefinition", json!({}), true, "");
    let established = with_condition("Established", "True");
    check(
        definition,
        "CustomResourceDefinition",
        established,
        false,
        "",
    );
    check(
        service,
        "APIService",
        with_condition("Available", "True"),
        false,
        "",
    );
    check(service, "APIService", json!({}), true, "");
}

#[test]
fn what_goes_wrong_is_degraded_and_says_why() {
    let check = |api_version: &str, kind: &str, rest: Value, expected: Option<(bool, &str)>| {
        check("Degraded", api_version, kind, rest, expected);
    };
    let (yes, no) = (Some((true, "so it is")), Some((false, "")));
    check(
        "apps/v1",
        "Deployment",
        with_condition("Progressing", "False"),
        yes,
    );
    check(
        "apps/v1",
        "Deployment",
        with_condition("ReplicaFailure", "True"),
        yes,
    );
    check(
        "apps/v1",
        "Deployment",
        with_condition("Progressing", "True"),
        no,
    );
    check("apps/v1", "StatefulSet", json!({}), no);
    check("apps/v1", "DaemonSet", json!({}), no);
    check("batch/v1", "CronJob", json!({}), no);
    check("batch/v1", "Job", with_condition("Failed", "True"), yes);
    check("batch/v1", "Job", with_condition("Complete", "True"), no);
    let waiting = status(json!({"phase": "Pending", "containerStatuses": [
        {"name": "app", "state": {"waiting": {"reason": "ImagePullBackOff"}}}]}));
    check(
        "v1",
        "Pod",
        waiting,
        Some((true, "container app is waiting: ImagePullBackOff")),
    );
    let running = status(json!({"phase": "Running"}));
    check(
        "v1",
        "Pod",
        running,
        Some((false, "Pod is in phase Running")),
    );
    let lost = status(json!({"phase": "Lost"}));
    let text = "PersistentVolumeClaim is in phase Lost";
    check("v1", "PersistentVolumeClaim", lost, Some((true, text)));
    let refused = with_condition("NamesAccepted", "False");
    check(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        refused,
        yes,
    );
    check(
        "apiregistration.k8s.io/v1",
        "APIService",
        with_condition("Available", "False"),
        yes,
    );
    check("v1", "ConfigMap", json!({}), None);
}

#[test]
fn what_was_there_and_is_lost_is_degraded_and_what_comes_is_not() {
    let check = |kind: &str, rest: &Value, expected: (bool, &str)| {
        let kind = ["apps/v1", kind];
        let arrived = Past { had_arrived: true };
        check_after(arrived, "Degraded", kind, rest.clone(), Some(expected));
        let never = Some((false, ""));
        check_after(Past::default(), "Degraded", kind, rest.clone(), never);
    };
    let daemon = |observed: i64, updated: i64, available: i64, misplaced: i64| {
        status(
            json!({"observedGeneration": observed, "desiredNumberScheduled": 3,
            "updatedNumberScheduled": updated, "numberAvailable": available,
            "numberMisscheduled": misplaced}),
        )
    };
    let lost = (true, "only on 2 of 3 nodes it is available any more");
    check("DaemonSet", &daemon(2, 3, 2, 0), lost);
    check("DaemonSet", &daemon(2, 3, 3, 0), (false, ""));
    let misplaced = (true, "it runs on 1 nodes where it should not");
    check("DaemonSet", &daemon(2, 3, 3, 1), misplaced);
    // It is being updated, or will be.
    check("DaemonSet", &daemon(2, 2, 2, 0), (false, ""));
    check("DaemonSet", &daemon(1, 3, 2, 0), (false, ""));
    check("DaemonSet", &json!({}), (false, ""));

    let stateful = |observed: i64, updated: i64, ready: i64, revision: &str| {
        json!({"spec": {"replicas": 3}, "status": {"observedGeneration": observed,
            "updatedReplicas": updated, "readyReplicas": ready,
            "currentRevision": "a", "updateRevision": revision}})
    };
    let lost = (true, "only 2 of 3 replicas are ready any more");
    check("StatefulSet", &stateful(2, 0, 2, "a"), lost);
    check("StatefulSet", &stateful(2, 3, 2, "b"), lost);
    check("StatefulSet", &stateful(2, 3, 3, "a"), (false, ""));
    check("StatefulSet", &stateful(2, 1, 2, "b"), (false, ""));
    check("StatefulSet", &stateful(1, 0, 2, "a"), (false, ""));
}

#[test]
fn a_cron_job_is_degraded_when_its_last_run_failed() {
    let (early, late) = ("2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z");
    let cron = |rest: Value, expected| {
        check(
            "Degraded",
            "batch/v1",
            "CronJob",
            status(rest),
            Some(expected),
        );
    };
    let failed = (true, "the last run did not succeed");
    cron(json!({}), (false, ""));
    cron(json!({"lastScheduleTime": late}), failed);
    let both = json!({"lastScheduleTime": late, "lastSuccessfulTime": early});
    cron(both, failed);
    let running = json!({"lastScheduleTime": late, "lastSuccessfulTime": early, "active": [{}]});
    cron(running, (false, ""));
    let well = json!({"lastScheduleTime": early, "lastSuccessfulTime": late});
    cron(well, (false, ""));
}

#[test]
fn workloads_are_available_when_they_serve() {
    let check = |api_version: &str, kind: &str, rest: Value, expected: Option<bool>| {
        check(
            "Available",
            api_version,
            kind,
            rest,
            expected.map(|holds| (holds, "")),
        );
    };
    check("apps/v1", "Deployment", json!({}), Some(false));
    check(
        "apps/v1",
        "Deployment",
        with_condition("Available", "True"),
        Some(true),
    );
    let all = status(json!({"availableReplicas": 1}));
    check("apps/v1", "Deployment", all, Some(true));
    check(
        "apps/v1",
        "StatefulSet",
        status(json!({"readyReplicas": 1})),
        Some(true),
    );
    check("apps/v1", "StatefulSet", json!({}), Some(false));
    check("apps/v1", "DaemonSet", json!({}), Some(false));
    let seen = status(json!({"observedGeneration": 2}));
    check("apps/v1", "DaemonSet", seen, Some(true));
    check("v1", "Pod", with_condition("Ready", "True"), Some(true));
    check(
        "v1",
        "Pod",
        status(json!({"phase": "Succeeded"})),
        Some(true),
    );
    check(
        "v1",
        "Pod",
        status(json!({"phase": "Pending"})),
        Some(false),
    );
    check(
        "v1",
        "PersistentVolumeClaim",
        status(json!({"phase": "Bound"})),
        Some(true),
    );
    check("batch/v1", "Job", json!({}), None);
    check("v1", "ConfigMap", json!({}), None);
}
