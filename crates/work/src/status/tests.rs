use bellwether_api::meta::Condition;
use serde_json::{Value, json};

use super::*;

const NOW: &str = "2026-01-01T00:00:01.5Z";

fn report(applied: Result<(), Failure>, available: Availability) -> Report {
    Report {
        meta: ManifestResourceMeta {
            kind: "ConfigMap".into(),
            name: "m".into(),
            ..ManifestResourceMeta::default()
        },
        applied,
        object_generation: None,
        available: Some(available),
        conclusions: Some(Vec::new()),
        ruled: Vec::new(),
        unseen: Vec::new(),
        feedback: Feedback::Unwanted,
        is_remembered_complete: false,
    }
}

fn fine() -> Report {
    report(Ok(()), Availability::Available)
}

fn with_rule(name: &str, status: bool) -> Report {
    Report {
        conclusions: Some(vec![Conclusion::plain(name, status)]),
        ruled: vec![name.to_owned()],
        ..fine()
    }
}

/// What is concluded for rollouts without a rule of the work.
fn without_rule(name: &str, status: bool) -> Report {
    Report {
        ruled: Vec::new(),
        ..with_rule(name, status)
    }
}

fn status_of(reports: &[Report], rollout: bool) -> ManifestWorkStatus {
    let previous = ManifestWorkStatus::default();
    assemble(&previous, 3, reports, rollout, NOW.parse().unwrap())
}

#[track_caller]
fn check(conditions: &[Condition], name: &str, expected: (&str, &str, &str, Option<i64>)) {
    let found = find(conditions, name).unwrap_or_else(|| panic!("no {name}"));
    let found = (
        found.status.as_str(),
        found.reason.as_str(),
        found.message.as_str(),
        found.observed_generation,
    );
    assert_eq!(found, expected, "{name}");
}

#[test]
fn every_word_about_a_manifest() {
    let manifest = |report: Report| {
        let status = status_of(&[report], false);
        status
            .resource_status
            .unwrap()
            .manifests
            .remove(0)
            .conditions
    };
    let well = manifest(fine());
    check(
        &well,
        "Applied",
        (
            "True",
            "AppliedManifestComplete",
            "Apply manifest complete",
            Some(3),
        ),
    );
    check(
        &well,
        "Available",
        ("True", "ResourceAvailable", "Resource is available", None),
    );
    check(
        &well,
        "StatusFeedbackSynced",
        ("True", "NoStatusFeedbackSynced", "", None),
    );
    assert_eq!(
        serde_json::to_value(&well[0].last_transition_time).unwrap(),
        "2026-01-01T00:00:02Z",
        "whole seconds, and never early"
    );
    let failed = |failure, available| manifest(report(Err(failure), available));
    let it = failed(Failure::Apply("no".into()), Availability::Missing);
    check(
        &it,
        "Applied",
        (
            "False",
            "AppliedManifestFailed",
            "Failed to apply manifest: no",
            Some(3),
        ),
    );
    check(
        &it,
        "Available",
        (
            "False",
            "ResourceNotAvailable",
            "Resource is not available",
            None,
        ),
    );
    let it = failed(
        Failure::IgnoreFields("x".into()),
        Availability::Unknown("gone".into()),
    );
    check(
        &it,
        "Applied",
        (
            "False",
            "AppliedManifestSSAIgnoreFieldError",
            "Failed to process ignoreFields: x",
            Some(3),
        ),
    );
    check(
        &it,
        "Available",
        (
            "Unknown",
            "FetchingResourceFailed",
            "Failed to fetch resource: gone",
            None,
        ),
    );
    let it = failed(Failure::Apply("x".into()), Availability::Incomplete);
    check(
        &it,
        "Available",
        (
            "Unknown",
            "IncompleteResourceMeta",
            "Resource meta is incomplete",
            None,
        ),
    );
    let it = manifest(with_rule("Complete", true));
    check(
        &it,
        "Complete",
        (
            "True",
            "ConditionRulesPassed",
            "Manifest is Complete",
            Some(3),
        ),
    );
    let it = manifest(with_rule("Complete", false));
    check(
        &it,
        "Complete",
        (
            "False",
            "ConditionRulesFailed",
            "Manifest is not Complete",
            Some(3),
        ),
    );
}

#[test]
fn every_word_about_a_work() {
    let all = |reports: &[Report]| status_of(reports, false).conditions;
    let well = all(&[fine()]);
    check(
        &well,
        "Applied",
        (
            "True",
            "AppliedManifestWorkComplete",
            "Apply manifest work complete",
            Some(3),
        ),
    );
    check(
        &well,
        "Available",
        (
            "True",
            "ResourcesAvailable",
            "All resources are available",
            Some(3),
        ),
    );
    let missing = report(Err(Failure::Apply("x".into())), Availability::Missing);
    let it = all(&[fine(), missing]);
    check(
        &it,
        "Applied",
        (
            "False",
            "AppliedManifestWorkFailed",
            "Failed to apply manifest work",
            Some(3),
        ),
    );
    check(
        &it,
        "Available",
        (
            "False",
            "ResourcesNotAvailable",
            "1 of 2 resources are not available",
            Some(3),
        ),
    );
    let unknown = report(Ok(()), Availability::Incomplete);
    let it = all(&[fine(), unknown]);
    check(
        &it,
        "Available",
        (
            "Unknown",
            "ResourcesStatusUnknown",
            "1 of 2 resources have unknown status",
            Some(3),
        ),
    );
    let it = all(&[]);
    check(
        &it,
        "Applied",
        (
            "False",
            "AppliedManifestWorkFailed",
            "manifests should not be empty",
            Some(3),
        ),
    );
    check(
        &it,
        "Available",
        (
            "Unknown",
            "ResourcesStatusUnknown",
            "cannot get any available resource ",
            Some(3),
        ),
    );
}

#[test]
fn a_condition_of_a_work_holds_for_all_that_have_it() {
    let all = |reports: &[Report]| status_of(reports, false).conditions;
    let it = all(&[with_rule("Ripe", true), fine()]);
    check(
        &it,
        "Ripe",
        (
            "True",
            "ConditionRulesPassed",
            "All manifests are Ripe",
            Some(3),
        ),
    );
    let it = all(&[with_rule("Ripe", true), with_rule("Ripe", false)]);
    check(
        &it,
        "Ripe",
        (
            "False",
            "ConditionRulesFailed",
            "One or more manifests is not Ripe",
            Some(3),
        ),
    );
    let it = all(&[
        with_rule("Progressing", true),
        with_rule("Progressing", false),
    ]);
    check(
        &it,
        "Progressing",
        (
            "False",
            "ConditionRulesFailed",
            "One or more manifests is not Progressing",
            Some(3),
        ),
    );
    let it = all(&[
        without_rule("Progressing", true),
        without_rule("Progressing", false),
    ]);
    check(
        &it,
        "Progressing",
        (
            "True",
            "ConditionRulesPassed",
            "One or more manifests is Progressing",
            Some(3),
        ),
    );
}

#[test]
fn rules_of_a_work_are_not_overruled_by_what_rollouts_wait_for() {
    let missing = report(Err(Failure::Apply("x".into())), Availability::Missing);
    let it = status_of(&[with_rule("Degraded", false), missing], true).conditions;
    check(
        &it,
        "Degraded",
        (
            "False",
            "ConditionRulesFailed",
            "One or more manifests is not Degraded",
            Some(3),
        ),
    );
}

#[test]
fn why_a_manifest_is_unknown_is_why_the_work_is() {
    let unknown = Report {
        conclusions: Some(vec![Conclusion {
            condition: "Complete".into(),
            status: UNKNOWN,
            reason: reason::CONDITION_RULE_UNSUPPORTED.into(),
            message: String::new(),
            is_over_budget: false,
        }]),
        ..with_rule("Complete", true)
    };
    let it = status_of(&[with_rule("Complete", true), unknown], false).conditions;
    check(
        &it,
        "Complete",
        (
            "Unknown",
            "ConditionRuleUnsupported",
            "Whether one or more manifests is Complete is unknown",
            Some(3),
        ),
    );
}

#[test]
fn rollouts_are_always_told_how_far_a_work_is() {
    let all = |reports: &[Report]| status_of(reports, true).conditions;
    let it = all(&[fine()]);
    check(
        &it,
        "Progressing",
        (
            "False",
            "ConditionRulesFailed",
            "No manifest is Progressing",
            Some(3),
        ),
    );
    check(
        &it,
        "Degraded",
        (
            "False",
            "ConditionRulesFailed",
            "No manifest is Degraded",
            Some(3),
        ),
    );
    let it = all(&[
        fine(),
        report(Err(Failure::Apply("x".into())), Availability::Missing),
    ]);
    check(
        &it,
        "Progressing",
        (
            "True",
            "ConditionRulesPassed",
            "One or more manifests is not there yet",
            Some(3),
        ),
    );
    check(
        &it,
        "Degraded",
        (
            "True",
            "ConditionRulesPassed",
            "One or more manifests could not be applied",
            Some(3),
        ),
    );
}

#[test]
fn nothing_new_is_nothing_to_write_and_times_move_with_the_status() {
    let first = status_of(&[with_rule("Ripe", true)], false);
    let later: Timestamp = "2026-01-01T01:00:00Z".parse().unwrap();
    let again = assemble(&first, 3, &[with_rule("Ripe", true)], false, later);
    assert_eq!(again, first);
    let next = assemble(&first, 4, &[with_rule("Ripe", true)], false, later);
    let time = |conditions: &[Condition], name: &str| {
        find(conditions, name).unwrap().last_transition_time.0
    };
    assert_eq!(
        time(&next.conditions, "Applied"),
        time(&first.conditions, "Applied")
    );
    let manifest = &next.resource_status.as_ref().unwrap().manifests[0].conditions;
    for name in ["Applied", "Ripe"] {
        assert_eq!(
            time(manifest, name),
            time(&first.conditions, name),
            "another generation is no other status"
        );
        let observed = find(manifest, name).unwrap().observed_generation;
        assert_eq!(observed, Some(4), "{name}");
    }
    let without = assemble(&next, 4, &[fine()], false, later);
    assert!(
        find(&without.conditions, "Ripe").is_none(),
        "a rule that is gone is forgotten"
    );
    let manifest = &without.resource_status.as_ref().unwrap().manifests[0].conditions;
    assert!(find(manifest, "Ripe").is_none());
}

#[test]
fn what_the_member_remembers_to_be_complete_is_complete() {
    let known = status_of(&[with_rule("Complete", false)], false);
    let remembered = Report {
        conclusions: None,
        is_remembered_complete: true,
        ..with_rule("Complete", false)
    };
    let later: Timestamp = "2026-01-01T01:00:00Z".parse().unwrap();
    let after = assemble(&known, 3, &[remembered], false, later);
    let complete = find(&after.conditions, "Complete").unwrap();
    assert_eq!(complete.status, TRUE);
    assert_eq!(complete.last_transition_time.0, later);
}

#[test]
fn a_removal_names_what_it_waits_for() {
    let previous = ManifestWorkStatus::default();
    let message = |waiting: &[String]| {
        let status = deleting(&previous, 2, waiting, NOW.parse().unwrap());
        status.conditions[0].message.clone()
    };
    assert_eq!(message(&[]), "ManifestWork is being deleted");
    let many: Vec<String> = (0..12)
        .map(|number| format!("pods n/p{number} to end"))
        .collect();
    assert!(message(&many).ends_with("; pods n/p9 to end; and 2 more"));
}

#[test]
fn conditions_have_what_their_schema_demands() {
    let value: Value = serde_json::to_value(status_of(&[fine()], false)).unwrap();
    let synced = &value["resourceStatus"]["manifests"][0]["conditions"][2];
    assert_eq!(synced["message"], json!(""), "an empty message is written");
    assert_eq!(synced.get("observedGeneration"), None);
}

#[test]
fn conditions_of_what_nobody_has_seen_are_said_once_and_stay_what_they_were() {
    let mut missing = report(Err(Failure::Apply("no".into())), Availability::Missing);
    missing.conclusions = None;
    missing.unseen = vec![Conclusion::plain("Complete", false)];
    let first = status_of(&[with_rule("Complete", true), missing.clone()], false);
    let of_work = find(&first.conditions, "Complete").unwrap();
    assert_eq!(of_work.status, FALSE);
    assert_eq!(of_work.message, "One or more manifests is not Complete");
    // What rules have once concluded stays while the object cannot be looked at.
    let known = status_of(&[with_rule("Complete", true)], false);
    let after = assemble(&known, 2, &[missing], false, Timestamp::UNIX_EPOCH);
    let manifests = after.resource_status.unwrap().manifests;
    let kept = find(&manifests[0].conditions, "Complete").unwrap();
    assert_eq!(kept.status, TRUE);
}

#[test]
fn what_is_known_of_a_manifest_outlives_a_kind_that_is_not_served() {
    let known = status_of(&[with_rule("Complete", true)], false);
    let mut manifests = known.resource_status.unwrap().manifests;
    manifests[0].resource_meta.resource = "configmaps".into();
    let mut meta = manifests[0].resource_meta.clone();
    meta.resource = String::new();
    assert_eq!(find_known(&manifests, &meta), Some(&manifests[0]));
    meta.resource = "others".into();
    assert_eq!(find_known(&manifests, &meta), None);
}
