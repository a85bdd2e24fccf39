//! Histories and states of replicas.

use serde_json::json;

use super::*;

fn at(microsecond: i64) -> Timestamp {
    Timestamp::from_microsecond(1_700_000_000_000_000 + microsecond).unwrap()
}

fn report(messages: &[(i64, &str)]) -> TemplateReport {
    let message = |(time, text): &(i64, &str)| Message {
        at: at(*time),
        text: (*text).to_owned(),
    };
    TemplateReport {
        name: "t".to_owned(),
        messages: messages.iter().map(message).collect(),
        is_current: true,
    }
}

fn texts(details: &[TemplateDetails]) -> Vec<&str> {
    let history = details[0].history.iter();
    history
        .filter_map(|entry| entry.message.as_deref())
        .collect()
}

#[test]
fn messages_are_kept_newest_first_and_each_once() {
    let first = details(
        "p",
        &[report(&[(0, "NonCompliant; a"), (20, "Compliant; b")])],
        &[],
    );
    assert_eq!(texts(&first), ["Compliant; b", "NonCompliant; a"]);
    let again = details(
        "p",
        &[report(&[(20, "Compliant; b"), (0, "NonCompliant; a")])],
        &first,
    );
    assert_eq!(again, first);
    let later = details("p", &[report(&[(40, "NonCompliant; c")])], &first);
    assert_eq!(texts(&later).len(), 3);
    assert_eq!(later[0].compliant, Some(ComplianceState::NonCompliant));
    let name = later[0].history[0].event_name.clone().unwrap();
    assert_eq!(name, event_name("p", at(40)));
}

#[test]
fn a_history_has_ten_entries() {
    let texts: Vec<String> = (0..12)
        .map(|number| format!("Compliant; {number}"))
        .collect();
    let messages: Vec<(i64, &str)> = texts
        .iter()
        .enumerate()
        .map(|(index, text)| (i64::try_from(index).unwrap() * 100, text.as_str()))
        .collect();
    let found = details("p", &[report(&messages)], &[]);
    assert_eq!(found[0].history.len(), 10);
    assert_eq!(
        found[0].history[0].message.as_deref(),
        Some("Compliant; 11")
    );
}

#[test]
fn one_violation_counts_more_than_anything_else() {
    let check = |states: &[Option<ComplianceState>], expected: Option<ComplianceState>| {
        let details: Vec<TemplateDetails> = states
            .iter()
            .map(|state| TemplateDetails {
                compliant: state.clone(),
                ..TemplateDetails::default()
            })
            .collect();
        assert_eq!(overall(&details, None), expected, "{states:?}");
    };
    let [compliant, pending, wrong] = [
        ComplianceState::Compliant,
        ComplianceState::Pending,
        ComplianceState::NonCompliant,
    ]
    .map(Some);
    check(&[compliant.clone(), wrong.clone(), pending.clone()], wrong);
    check(&[compliant.clone(), pending.clone()], pending);
    check(&[compliant.clone(), None], None);
    check(&[compliant.clone(), compliant.clone()], compliant);
}

#[track_caller]
fn rollout(before: &str, action: &str, message: &str, is_current: bool, expected: &str) {
    let replica: Policy = serde_json::from_value(json!({
        "apiVersion": "policy.open-cluster-management.io/v1", "kind": "Policy",
        "metadata": {"name": "ns.p", "generation": 4},
        "spec": {"disabled": false, "policy-templates": [], "remediationAction": action},
        "status": {"rolloutStatus": before},
    }))
    .unwrap();
    let report = TemplateReport {
        is_current,
        ..report(&[(0, message)])
    };
    let status = replica_status(&replica, &[report], at(50));
    assert_eq!(status.rollout_status.as_ref().unwrap().as_str(), expected);
    assert_eq!(status.observed_generation, is_current.then_some(4));
    let is_changed = status.rollout_status_last_transition_time.is_some();
    assert_eq!(is_changed, before != expected);
}

#[test]
fn the_agent_only_says_how_a_rollout_ended() {
    rollout("Progressing", "enforce", "Compliant; x", true, "Succeeded");
    rollout("Progressing", "enforce", "NonCompliant; x", true, "Failed");
    rollout("Failed", "enforce", "Compliant; x", true, "Succeeded");
    rollout("TimeOut", "enforce", "Compliant; x", true, "Succeeded");
    rollout("Progressing", "enforce", "Pending; x", true, "Progressing");
    rollout(
        "Progressing",
        "enforce",
        "Compliant; x",
        false,
        "Progressing",
    );
    rollout("ToApply", "inform", "Compliant; x", true, "ToApply");
    rollout(
        "Progressing",
        "inform",
        "NonCompliant; x",
        true,
        "Succeeded",
    );
}
