//! What a placement's conditions say, word for word.

use std::collections::BTreeSet;

use super::placement::Misconfigured;

/// The condition that says whether a placement got what it asks for.
pub(super) const SATISFIED: &str = "PlacementSatisfied";
/// The condition that says whether a placement can be understood.
pub(super) const MISCONFIGURED: &str = "PlacementMisconfigured";

/// A condition without its times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Condition {
    /// Its type.
    pub kind: &'static str,
    /// Whether it holds.
    pub status: bool,
    /// Why, for machines.
    pub reason: &'static str,
    /// Why, for people.
    pub message: String,
}

fn unsatisfied(reason: &'static str, message: impl Into<String>) -> Condition {
    Condition {
        kind: SATISFIED,
        status: false,
        reason,
        message: message.into(),
    }
}

fn list(names: &BTreeSet<String>) -> String {
    names.iter().cloned().collect::<Vec<_>>().join(",")
}

pub(super) fn no_bindings() -> Condition {
    unsatisfied(
        "NoManagedClusterSetBindings",
        "No valid ManagedClusterSetBindings found in placement namespace",
    )
}

pub(super) fn no_intersection(sets: &BTreeSet<String>) -> Condition {
    let sets = list(sets);
    unsatisfied(
        "NoIntersection",
        format!("None of ManagedClusterSets [{sets}] is bound to placement namespace"),
    )
}

pub(super) fn empty_sets(sets: &BTreeSet<String>) -> Condition {
    let sets = list(sets);
    unsatisfied(
        "AllManagedClusterSetsEmpty",
        format!("All ManagedClusterSets [{sets}] have no member ManagedCluster"),
    )
}

pub(super) fn scheduled(selected: usize, unscheduled: usize) -> Condition {
    if selected == 0 {
        return unsatisfied(
            "NoManagedClusterMatched",
            "No ManagedCluster matches any of the cluster predicate",
        );
    }
    if unscheduled > 0 {
        let message = format!("{unscheduled} cluster decisions unscheduled");
        return unsatisfied("NotAllDecisionsScheduled", message);
    }
    Condition {
        kind: SATISFIED,
        status: true,
        reason: "AllDecisionsScheduled",
        message: "All cluster decisions scheduled".to_owned(),
    }
}

pub(super) fn kept(kept: usize, problem: &Misconfigured) -> Condition {
    unsatisfied(
        "NotAllDecisionsScheduled",
        format!("{problem}; the {kept} cluster decisions made before are kept"),
    )
}

pub(super) fn misconfigured(problem: &Misconfigured) -> Condition {
    Condition {
        kind: MISCONFIGURED,
        status: true,
        reason: "Misconfigured",
        message: problem.to_string(),
    }
}

pub(super) fn in_order() -> Condition {
    Condition {
        kind: MISCONFIGURED,
        status: false,
        reason: "Succeedconfigured",
        message: "Placement configurations check pass".to_owned(),
    }
}
