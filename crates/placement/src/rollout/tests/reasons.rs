//! What is said about clusters.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::rollout::{ClusterStatus, Group, Hold, Input, Status, Strategy, decide};

/// The reasons of all clusters for statuses that began a minute ago; now is 12:00.
fn check(strategy: &Value, statuses: &[(&str, Status)], expected: &[(&str, &str)]) {
    let strategy = Strategy::from_flat_json(strategy).unwrap();
    let groups = [
        Group::new("dev-emea", 0, ["c1", "c2"]),
        Group::new("", 1, ["c3", "c4"]),
    ];
    let now: Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
    let since = now - SignedDuration::from_mins(1);
    let existing: Vec<ClusterStatus> = statuses
        .iter()
        .map(|(cluster, status)| {
            ClusterStatus::new(*cluster, groups[0].key.clone(), *status, Some(since))
        })
        .collect();
    let decision = decide(&Input::new(&strategy, &groups, &existing, now)).unwrap();
    let actual: Vec<(&str, String)> = decision
        .reasons
        .iter()
        .map(|(cluster, reason)| (&**cluster, reason.to_string()))
        .collect();
    let expected: Vec<(&str, String)> = expected
        .iter()
        .map(|(cluster, reason)| (*cluster, (*reason).to_owned()))
        .collect();
    assert_eq!(actual, expected);
}

#[test]
fn who_waits_is_told_for_whom_and_until_when() {
    check(
        &json!({"type": "ProgressivePerGroup", "minSuccessTime": "5m", "progressDeadline": "10m"}),
        &[("c1", Status::Succeeded), ("c2", Status::Progressing)],
        &[
            ("c1", "succeeded and soaks until 2026-01-01T12:04:00Z"),
            ("c2", "is in progress until 2026-01-01T12:09:00Z at most"),
            (
                "c3",
                "waits for soak of c1 until 2026-01-01T12:04:00Z: group dev-emea goes first",
            ),
            (
                "c4",
                "waits for soak of c1 until 2026-01-01T12:04:00Z: group dev-emea goes first",
            ),
        ],
    );
    check(
        &json!({"type": "Progressive", "maxConcurrency": 1, "mandatoryDecisionGroups": [{}]}),
        &[
            ("c1", Status::Succeeded),
            ("c2", Status::Skip),
            ("c3", Status::Progressing),
        ],
        &[
            ("c1", "is done"),
            ("c2", "is skipped"),
            ("c3", "is in progress"),
            ("c4", "waits for group 1: c3 is in progress"),
        ],
    );
    check(
        &json!({"type": "Progressive", "maxConcurrency": "50%"}),
        &[("c1", Status::Progressing)],
        &[
            ("c1", "is in progress"),
            ("c2", "starts now"),
            ("c3", "waits for a slot: 2 of 2 taken, c1 is in progress"),
            ("c4", "waits for a slot: 2 of 2 taken, c1 is in progress"),
        ],
    );
}

#[test]
fn a_spent_budget_is_told_with_its_numbers() {
    check(
        &json!({"type": "ProgressivePerGroup", "maxFailures": 1, "progressDeadline": "2m"}),
        &[("c1", Status::TimeOut), ("c2", Status::Failed)],
        &[
            (
                "c1",
                "timed out: group dev-emea has 2 failures, 1 tolerated",
            ),
            (
                "c2",
                "failed, and may recover until 2026-01-01T12:01:00Z: group dev-emea has 2 failures, 1 tolerated",
            ),
            (
                "c3",
                "does not start: group dev-emea has 2 failures, 1 tolerated",
            ),
            (
                "c4",
                "does not start: group dev-emea has 2 failures, 1 tolerated",
            ),
        ],
    );
    check(
        &json!({"type": "Progressive", "progressDeadline": "1m"}),
        &[("c1", Status::Progressing)],
        &[
            ("c1", "timed out: the rollout has 1 failure, 0 tolerated"),
            (
                "c2",
                "does not start: the rollout has 1 failure, 0 tolerated",
            ),
            (
                "c3",
                "does not start: the rollout has 1 failure, 0 tolerated",
            ),
            (
                "c4",
                "does not start: the rollout has 1 failure, 0 tolerated",
            ),
        ],
    );
}

#[test]
fn what_is_tolerated_is_told_where_it_was_spent() {
    check(
        &json!({"type": "ProgressivePerGroup", "maxFailures": 1}),
        &[("c1", Status::Failed), ("c2", Status::Succeeded)],
        &[
            ("c1", "failed: group dev-emea has 1 of 1 tolerated failures"),
            ("c2", "is done"),
            ("c3", "starts now"),
            ("c4", "starts now"),
        ],
    );
    check(
        &json!({"type": "Progressive", "maxFailures": 2, "maxConcurrency": 2,
            "minSuccessTime": "5m"}),
        &[("c1", Status::Failed), ("c2", Status::Succeeded)],
        &[
            ("c1", "failed: the rollout has 1 of 2 tolerated failures"),
            ("c2", "succeeded and soaks until 2026-01-01T12:04:00Z"),
            ("c3", "starts now"),
            (
                "c4",
                "waits for soak of c2 until 2026-01-01T12:04:00Z: 2 of 2 slots taken",
            ),
        ],
    );
    check(
        &json!({"type": "All"}),
        &[("c1", Status::Failed)],
        &[
            ("c1", "failed"),
            ("c2", "starts now"),
            ("c3", "starts now"),
            ("c4", "starts now"),
        ],
    );
}

#[test]
fn nothing_starts_while_a_rollout_is_held_and_what_runs_goes_on() {
    for strategy in [
        json!({"type": "All"}),
        json!({"type": "Progressive", "maxConcurrency": 3}),
        json!({"type": "ProgressivePerGroup"}),
        json!({"type": "Progressive", "mandatoryDecisionGroups": [{}]}),
    ] {
        let strategy = Strategy::from_flat_json(&strategy).unwrap();
        let groups = [Group::new("", 0, ["a", "b", "c"])];
        let status = |cluster: &str, status| {
            ClusterStatus::new(cluster, groups[0].key.clone(), status, None)
        };
        let existing = [
            status("a", Status::Progressing),
            status("b", Status::ToApply),
        ];
        let free = Input::new(&strategy, &groups, &existing, Timestamp::UNIX_EPOCH);
        let starting = |hold| {
            let decision = decide(&Input { hold, ..free }).unwrap();
            let names: Vec<String> = decision.starting().map(str::to_owned).collect();
            let running = decision.rollout.iter().any(|it| &*it.cluster == "a");
            assert!(running, "{strategy:?}");
            (names, decision.reason("c").unwrap().to_string())
        };
        assert_eq!(starting(None).0, ["b", "c"], "{strategy:?}");
        for (hold, why) in [
            (Hold::Paused, "does not start: the rollout is paused"),
            (Hold::Aborted, "does not start: the rollout is aborted"),
        ] {
            let expected = (Vec::new(), why.to_owned());
            assert_eq!(starting(Some(hold)), expected, "{strategy:?}");
        }
    }
}
