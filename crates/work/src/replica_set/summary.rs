//! What is said of a replica set.

use std::iter;

use bellwether_api::meta::{Condition, FALSE, TRUE};
use bellwether_api::work::names::{condition, reason};
use bellwether_api::work::{
    ManifestWorkReplicaSet, ManifestWorkReplicaSetStatus, PlacementSummary, WorkSummary,
};
use jiff::Timestamp;

use super::flags::Flags;
use super::report::{Report, Stage};
use super::{Outlook, Placed};
use crate::conditions::{ConditionUpdate, Conditions};

/// One thing that is said.
struct NewCondition<'a> {
    name: &'static str,
    holds: bool,
    reason: &'static str,
    message: &'a str,
}

fn with<'a>(
    previous: &[Condition],
    said: impl IntoIterator<Item = NewCondition<'a>>,
    now: Timestamp,
) -> Vec<Condition> {
    let mut conditions = Conditions::new(previous, now);
    for it in said {
        conditions.set(ConditionUpdate {
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
        "the works of this replica set would be labelled {owner:?}, which is not a valid label value: {problem}"
    );
    let said = NewCondition {
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

/// What a status is made of.
#[derive(Debug)]
pub(super) struct Findings {
    pub(super) placements: Vec<PlacementFigures>,
    /// Placements that do not exist.
    pub(super) missing: Vec<String>,
    /// Why a placement could not be rolled out to.
    pub(super) wrong: Option<String>,
    /// Why clusters cannot have the works that they should have.
    pub(super) problems: String,
    /// How far the rollout is, and what stops it.
    pub(super) progress: String,
    /// What to know besides.
    pub(super) notes: Vec<String>,
}

/// The numbers of one placement.
#[derive(Debug)]
pub(super) struct PlacementFigures {
    pub(super) name: String,
    /// How many decision groups it has.
    pub(super) groups: usize,
    pub(super) selected: i64,
    pub(super) summary: WorkSummary,
    /// How many clusters have come to the end well.
    pub(super) succeeded: usize,
}

impl Findings {
    /// What a plan has found.
    pub(super) fn of(outlook: &Outlook<'_>, report: &Report) -> Self {
        let figures = |placed: &Placed<'_>| PlacementFigures {
            name: placed.name.to_owned(),
            groups: placed.groups.len(),
            selected: placed.selected,
            summary: count(placed),
            succeeded: placed.succeeded,
        };
        Self {
            placements: outlook.placed.iter().map(figures).collect(),
            missing: outlook.missing.iter().map(|&name| name.into()).collect(),
            wrong: outlook.wrong.clone(),
            problems: problems(outlook),
            progress: progress(report),
            notes: report.notes.clone(),
        }
    }

    /// Whether all clusters of all placements have come to the end well.
    fn is_done(&self) -> bool {
        let selected: i64 = self.placements.iter().map(|one| one.selected).sum();
        let succeeded: usize = self.placements.iter().map(|one| one.succeeded).sum();
        self.missing.is_empty() && self.wrong.is_none() && i64::try_from(succeeded) == Ok(selected)
    }
}

/// The status of a replica set.
pub(super) fn of(
    set: &ManifestWorkReplicaSet,
    findings: &Findings,
    now: Timestamp,
) -> ManifestWorkReplicaSetStatus {
    let previous = set.status.clone().unwrap_or_default();
    let mut placements: Vec<PlacementSummary> =
        findings.placements.iter().map(of_placement).collect();
    // Nothing new is known of works whose placement is gone.
    let gone = |known: &&PlacementSummary| findings.missing.contains(&known.name);
    placements.extend(previous.placement_summary.iter().filter(gone).cloned());
    let mut summary = WorkSummary::default();
    for placement in &placements {
        add(&mut summary, &placement.summary);
    }
    let missing = findings
        .missing
        .first()
        .map(|name| format!("there is no Placement {name} in this namespace"));
    let is_done = findings.is_done();
    let rolled_out = NewCondition {
        name: condition::PLACEMENT_ROLLED_OUT,
        holds: is_done,
        reason: if is_done {
            reason::COMPLETE
        } else {
            reason::PROGRESSING
        },
        message: &findings.progress,
    };
    let selected = format!(
        "{} selected by {}",
        number(summary.desired_total, "cluster"),
        number(findings.placements.len(), "placement")
    );
    let selected: Vec<String> = iter::once(selected)
        .chain(findings.notes.iter().cloned())
        .collect();
    let selected = selected.join("; ");
    let available = format!(
        "{} of {} available, {} in progress, {} degraded",
        summary.available,
        number(summary.total, "work"),
        summary.progressing,
        summary.degraded
    );
    let problems = &findings.problems;
    let is_wrong = findings.wrong.is_some() || (summary.total == 0 && !problems.is_empty());
    let said = [
        verified(&summary, missing.as_deref(), is_wrong, &selected),
        applied(&summary, problems, &available),
        rolled_out,
    ];
    ManifestWorkReplicaSetStatus {
        conditions: with(&previous.conditions, said, now),
        summary,
        placement_summary: placements,
        other: previous.other,
    }
}

fn of_placement(placed: &PlacementFigures) -> PlacementSummary {
    PlacementSummary {
        name: placed.name.clone(),
        available_decision_groups: format!(
            "{} ({} / {} clusters applied)",
            placed.groups, placed.summary.total, placed.selected
        ),
        summary: placed.summary.clone(),
        ..PlacementSummary::default()
    }
}

/// Why clusters cannot have the works that they should have.
fn problems(outlook: &Outlook<'_>) -> String {
    let of_placed = outlook.placed.iter().filter_map(|one| {
        let problem = one.impossible.values().next()?;
        Some(format!("{}: {problem}", one.name))
    });
    let all: Vec<String> = of_placed.chain(outlook.wrong.clone()).collect();
    all.join("; ")
}

/// How far the rollout is, and what stops it.
fn progress(report: &Report) -> String {
    let mut parts: Vec<String> = Vec::new();
    if let Stage::Held(hold) = report.stage() {
        parts.push(hold.to_string());
    }
    parts.extend(report.problems.iter().cloned());
    let missing = report.missing.iter();
    parts.extend(missing.map(|name| format!("{name}: there is no such Placement")));
    let placements = report.placements.iter();
    parts.extend(placements.map(|one| format!("{}: {}", one.name, one.sentence())));
    parts.join("; ")
}

/// A number and what is counted.
fn number(count: impl TryInto<u64> + std::fmt::Display + Copy, noun: &str) -> String {
    match count.try_into() {
        Ok(1) => format!("{count} {noun}"),
        _ => format!("{count} {noun}s"),
    }
}

fn verified<'a>(
    summary: &WorkSummary,
    missing: Option<&'a str>,
    is_wrong: bool,
    selected: &'a str,
) -> NewCondition<'a> {
    let (holds, why) = if missing.is_some() {
        (false, reason::PLACEMENT_DECISION_NOT_FOUND)
    } else if is_wrong {
        (false, reason::NOT_AS_EXPECTED)
    } else if summary.total == 0 {
        (false, reason::PLACEMENT_DECISION_EMPTY)
    } else {
        (true, reason::AS_EXPECTED)
    };
    NewCondition {
        name: condition::PLACEMENT_VERIFIED,
        holds,
        reason: why,
        message: missing.unwrap_or(selected),
    }
}

fn applied<'a>(summary: &WorkSummary, problems: &'a str, available: &'a str) -> NewCondition<'a> {
    let is_well = summary.progressing == 0 && summary.degraded == 0;
    let (holds, why) = if !problems.is_empty() {
        (false, reason::NOT_AS_EXPECTED)
    } else if summary.total == 0 {
        (false, reason::PLACEMENT_DECISION_EMPTY)
    } else if summary.progressing > 0 && summary.degraded == 0 {
        (false, reason::PROCESSING)
    } else if is_well && summary.available == summary.total {
        (true, reason::AS_EXPECTED)
    } else {
        (false, reason::NOT_AS_EXPECTED)
    };
    NewCondition {
        name: condition::MANIFESTWORK_APPLIED,
        holds,
        reason: why,
        message: if problems.is_empty() {
            available
        } else {
            problems
        },
    }
}

/// Counts the clusters that should have works, and those whose works have the present template.
fn count(placed: &Placed<'_>) -> WorkSummary {
    let mut summary = WorkSummary {
        desired_total: placed.selected,
        ..WorkSummary::default()
    };
    for works in placed.current.values() {
        Flags::of(&works.iter().map(|work| &***work)).add_to(&mut summary, 1);
    }
    summary
}

fn add(sum: &mut WorkSummary, one: &WorkSummary) {
    sum.total += one.total;
    sum.applied += one.applied;
    sum.available += one.available;
    sum.progressing += one.progressing;
    sum.degraded += one.degraded;
    sum.desired_total += one.desired_total;
    sum.updated += one.updated;
}
