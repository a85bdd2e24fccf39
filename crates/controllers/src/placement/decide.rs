//! What to write for a placement.

use std::collections::HashMap;
use std::time::Duration;

use bellwether_api::cluster::{Placement, PlacementStatus, names};
use bellwether_api::meta::{Condition, FALSE, TRUE, Time, set_condition};
use bellwether_placement::schedule::{
    self, Decision, DecisionGroup, DecisionObject, Outcome, Write, schedule, transition,
};
use bellwether_runtime::ObjectKey;
use jiff::Timestamp;

use super::fleet::Fleet;

/// How often scores are brought up to date while the choice stays, unless a placement says.
const SCORE_RATE_LIMIT: Duration = Duration::from_mins(1);

/// Everything that is to be done for a placement.
#[derive(Debug)]
pub(super) struct Plan {
    /// The placement that it was made for.
    pub(super) placement: std::sync::Arc<Placement>,
    /// Decisions to write, step by step.
    pub(super) steps: Vec<Vec<Write>>,
    /// The scores of all possible clusters, the best first; empty if no decision is written.
    pub(super) scores: Vec<Decision>,
    /// The placement's status, if it is another one then.
    pub(super) status: Option<PlacementStatus>,
    /// When to decide again if nothing changes before.
    pub(super) wake_at: Option<Timestamp>,
    /// Whether expressions cost too much, so that nothing could be decided.
    pub(super) is_over_budget: bool,
}

impl Plan {
    /// Whether there is nothing to write.
    pub(super) fn is_empty(&self) -> bool {
        self.steps.is_empty() && self.status.is_none()
    }
}

/// Decides about a placement; none if it is to be left alone.
pub(super) fn decide(fleet: &Fleet, key: &ObjectKey, now: Timestamp) -> Option<Plan> {
    let known = fleet.known(key)?;
    let placement = &known.object;
    if placement.metadata.deletion_timestamp.is_some() || is_disabled(placement) {
        return None;
    }
    let mut outcome = fleet.view(key, &known.rules, now, schedule);
    for warning in &outcome.warnings {
        tracing::debug!(%key, warning, "a score does not count");
    }
    let current: Vec<DecisionObject> = fleet.written(key).map(|it| it.content.clone()).collect();
    let scored_at = placement.status.as_ref().and_then(|status| {
        let time = status.last_score_update_time.as_ref()?;
        Some(time.0)
    });
    let due = scored_at.and_then(|time| time.checked_add(rate_limit(placement)).ok());
    let mut wake_at = outcome.recheck_at;
    let mut scored_at = scored_at;
    let mut steps = Vec::new();
    if let Some(groups) = &outcome.groups {
        let mut desired = DecisionGroup::objects(&known.rules.name, groups);
        if let Some(due) = due.filter(|due| now < *due) {
            let has_changed = keep_scores(&current, &mut desired);
            let due = has_changed.then_some(due);
            wake_at = [wake_at, due].into_iter().flatten().min();
        } else if differs(&current, &desired) {
            scored_at = Some(now);
        }
        steps = transition(&current, &desired);
        if !steps.is_empty() {
            // That they are chosen now is itself a score.
            let due = scored_at.and_then(|time| time.checked_add(rate_limit(placement)).ok());
            wake_at = [wake_at, due].into_iter().flatten().min();
        }
    }
    let status = status(&outcome, placement, &known.rules, scored_at, now);
    let scores = if steps.is_empty() {
        Vec::new()
    } else {
        std::mem::take(&mut outcome.scores)
    };
    Some(Plan {
        placement: placement.clone(),
        steps,
        scores,
        status: (placement.status.as_ref() != Some(&status)).then_some(status),
        wake_at,
        is_over_budget: outcome.is_over_budget,
    })
}

fn is_disabled(placement: &Placement) -> bool {
    let annotations = placement.metadata.annotations.as_ref();
    annotations
        .and_then(|annotations| annotations.get(names::annotation::SCHEDULING_DISABLED))
        .is_some_and(|value| value == "true")
}

/// How often scores are brought up to date at most.
fn rate_limit(placement: &Placement) -> Duration {
    let read = |text: &str| {
        let unit = text.chars().next_back()?;
        let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
        let seconds = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3600,
            _ => return None,
        };
        // A year is as good as forever, and far from the end of the calendar.
        Some(Duration::from_secs(
            number.saturating_mul(seconds).min(31_536_000),
        ))
    };
    let text = placement.spec.score_rate_limit.as_deref();
    text.and_then(read).unwrap_or(SCORE_RATE_LIMIT)
}

/// Whether any score is written that is not there yet.
fn differs(current: &[DecisionObject], desired: &[DecisionObject]) -> bool {
    let scores = |objects: &[DecisionObject]| -> HashMap<std::sync::Arc<str>, i64> {
        let decisions = objects.iter().flat_map(|object| &object.decisions);
        decisions.map(|it| (it.cluster.clone(), it.score)).collect()
    };
    scores(current) != scores(desired)
}

/// Leaves the scores of clusters that stay as they are written; tells whether one has changed.
fn keep_scores(current: &[DecisionObject], desired: &mut [DecisionObject]) -> bool {
    let decisions = current.iter().flat_map(|object| &object.decisions);
    let written: HashMap<_, _> = decisions.map(|it| (it.cluster.clone(), it.score)).collect();
    let mut has_changed = false;
    for decision in desired.iter_mut().flat_map(|object| &mut object.decisions) {
        if let Some(score) = written.get(&decision.cluster) {
            has_changed |= decision.score != *score;
            decision.score = *score;
        }
    }
    has_changed
}

fn status(
    outcome: &Outcome,
    placement: &Placement,
    rules: &schedule::Placement,
    scored_at: Option<Timestamp>,
    now: Timestamp,
) -> PlacementStatus {
    let mut status = placement.status.clone().unwrap_or_default();
    status.number_of_selected_clusters = i32::try_from(outcome.selected).unwrap_or(i32::MAX);
    if let Some(groups) = &outcome.groups {
        status.decision_groups = DecisionGroup::status(&rules.name, groups);
    }
    status.last_score_update_time = scored_at.map(Time);
    for condition in [&outcome.satisfied, &outcome.misconfigured] {
        let condition = Condition {
            type_: condition.kind.to_owned(),
            status: if condition.status { TRUE } else { FALSE }.to_owned(),
            reason: condition.reason.to_owned(),
            message: condition.message.clone(),
            last_transition_time: Time(now),
            observed_generation: None,
        };
        set_condition(&mut status.conditions, condition);
    }
    status
}
