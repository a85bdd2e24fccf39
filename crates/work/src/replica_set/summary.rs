//! What is said of a replica set.

use std::sync::Arc;

use bellwether_api::meta::{Condition, FALSE, TRUE};
use bellwether_api::work::names::{condition, reason};
use bellwether_api::work::{
    ManifestWork, ManifestWorkReplicaSet, ManifestWorkReplicaSetStatus, PlacementSummary,
    WorkSummary,
};
use jiff::Timestamp;

use super::Placed;
use crate::conditions::{Conditions, Saying};
use crate::lifecycle::is_true;

/// One thing that is said.
struct Said<'a> {
    name: &'static str,
    holds: bool,
    reason: &'static str,
    message: &'a str,
}

fn with<'a>(
    previous: &[Condition],
    said: impl IntoIterator<Item = Said<'a>>,
    now: Timestamp,
) -> Vec<Condition> {
    let mut conditions = Conditions::new(previous, now);
    for it in said {
        conditions.say(Saying {
            name: it.name,
            status: if it.holds { TRUE } else { FALSE },
            reason: it.reason,
            message: it.message,
            generation: None,
        });
    }
    conditions.finish()
}

/// A replica set whose name does not fit into a label.
pub(super) fn invalid_name(
    set: &ManifestWorkReplicaSet,
    owner: &str,
    problem: &str,
    now: Timestamp,
) -> ManifestWorkReplicaSetStatus {
    let previous = set.status.clone().unwrap_or_default();
    let message = format!(
        "the works of this replica set would be labelled {owner:?}, which is no value of a label: {problem}"
    );
    let said = Said {
        name: condition::MANIFESTWORK_APPLIED,
        holds: false,
        reason: reason::INVALID_MANIFEST_WORK_NAME,
        message: &message,
    };
    ManifestWorkReplicaSetStatus {
        conditions: with(&previous.conditions, [said], now),
        ..previous
    }
}

/// A replica set that names a placement which does not exist.
pub(super) fn placement_missing(
    set: &ManifestWorkReplicaSet,
    placement: &str,
    now: Timestamp,
) -> ManifestWorkReplicaSetStatus {
    let previous = set.status.clone().unwrap_or_default();
    let message = format!("there is no Placement {placement} in this namespace");
    let said = Said {
        name: condition::PLACEMENT_VERIFIED,
        holds: false,
        reason: reason::PLACEMENT_DECISION_NOT_FOUND,
        message: &message,
    };
    ManifestWorkReplicaSetStatus {
        conditions: with(&previous.conditions, [said], now),
        ..previous
    }
}

/// What is said of a replica set whose placements exist.
pub(super) fn of(
    set: &ManifestWorkReplicaSet,
    placed: &[Placed<'_>],
    problem: Option<&str>,
    now: Timestamp,
) -> ManifestWorkReplicaSetStatus {
    let previous = set.status.clone().unwrap_or_default();
    let mut summary = WorkSummary::default();
    let mut placements = Vec::new();
    for one in placed {
        let counted = count(one);
        add(&mut summary, &counted);
        let clusters = one.current.len();
        placements.push(PlacementSummary {
            name: one.name.to_owned(),
            available_decision_groups: format!(
                "{} ({clusters} / {} clusters applied)",
                one.groups, one.selected
            ),
            summary: counted,
            ..PlacementSummary::default()
        });
    }
    let held: Vec<String> = placed
        .iter()
        .filter_map(|one| one.held.as_ref().map(|why| format!("{}: {why}", one.name)))
        .chain(problem.map(str::to_owned))
        .collect();
    let held = held.join("; ");
    let selected: i64 = placed.iter().map(|one| one.selected).sum();
    let succeeded: usize = placed.iter().map(|one| one.succeeded).sum();
    let is_done = problem.is_none() && i64::try_from(succeeded) == Ok(selected);
    let rolled_out = Said {
        name: condition::PLACEMENT_ROLLED_OUT,
        holds: is_done,
        reason: if is_done {
            reason::COMPLETE
        } else {
            reason::PROGRESSING
        },
        message: &held,
    };
    let verified = verified(&summary, problem.is_some());
    ManifestWorkReplicaSetStatus {
        conditions: with(
            &previous.conditions,
            [verified, applied(&summary), rolled_out],
            now,
        ),
        summary,
        placement_summary: placements,
        other: previous.other,
    }
}

fn verified(summary: &WorkSummary, is_wrong: bool) -> Said<'static> {
    let (holds, why) = if is_wrong {
        (false, reason::NOT_AS_EXPECTED)
    } else if summary.total == 0 {
        (false, reason::PLACEMENT_DECISION_EMPTY)
    } else {
        (true, reason::AS_EXPECTED)
    };
    Said {
        name: condition::PLACEMENT_VERIFIED,
        holds,
        reason: why,
        message: "",
    }
}

fn applied(summary: &WorkSummary) -> Said<'static> {
    let is_well = summary.progressing == 0 && summary.degraded == 0;
    let (holds, why) = if summary.total == 0 {
        (false, reason::PLACEMENT_DECISION_EMPTY)
    } else if summary.progressing > 0 && summary.degraded == 0 {
        (false, reason::PROCESSING)
    } else if is_well && summary.available == summary.total {
        (true, reason::AS_EXPECTED)
    } else {
        (false, reason::NOT_AS_EXPECTED)
    };
    Said {
        name: condition::MANIFESTWORK_APPLIED,
        holds,
        reason: why,
        message: "",
    }
}

/// Counts clusters whose works are as they should be. Two numbers stay at zero, as with the peer.
fn count(placed: &Placed<'_>) -> WorkSummary {
    let all = |works: &[&Arc<ManifestWork>], name: &str| works.iter().all(|work| says(work, name));
    let any = |works: &[&Arc<ManifestWork>], name: &str| works.iter().any(|work| says(work, name));
    let mut summary = WorkSummary::default();
    for works in placed.current.values() {
        summary.total += 1;
        summary.applied += i64::from(all(works, condition::APPLIED));
        summary.available += i64::from(all(works, condition::AVAILABLE));
        summary.progressing += i64::from(any(works, condition::PROGRESSING));
        summary.degraded += i64::from(any(works, condition::DEGRADED));
    }
    summary
}

fn says(work: &ManifestWork, name: &str) -> bool {
    let conditions = work
        .status
        .as_ref()
        .map_or(&[][..], |status| &status.conditions);
    is_true(conditions, name)
}

fn add(sum: &mut WorkSummary, one: &WorkSummary) {
    sum.total += one.total;
    sum.applied += one.applied;
    sum.available += one.available;
    sum.progressing += one.progressing;
    sum.degraded += one.degraded;
}
