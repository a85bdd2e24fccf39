//! What a placement's conditions say, word for word.

use std::collections::BTreeSet;

use bellwether_api::cluster::names::condition::{
    PLACEMENT_MISCONFIGURED as MISCONFIGURED, PLACEMENT_SATISFIED as SATISFIED,
};
use bellwether_api::cluster::names::reason;

use super::placement::Misconfigured;

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
        reason::NO_MANAGED_CLUSTER_SET_BINDINGS,
        "No valid ManagedClusterSetBindings found in placement namespace",
    )
}

pub(super) fn no_intersection(sets: &BTreeSet<String>) -> Condition {
    let sets = list(sets);
    unsatisfied(
        reason::NO_INTERSECTION,
        format!("None of ManagedClusterSets [{sets}] is bound to placement namespace"),
    )
}

pub(super) fn empty_sets(sets: &BTreeSet<String>) -> Condition {
    let sets = list(sets);
    unsatisfied(
        reason::ALL_MANAGED_CLUSTER_SETS_EMPTY,
        format!("All ManagedClusterSets [{sets}] have no member ManagedCluster"),
    )
}

pub(super) fn scheduled(selected: usize, unscheduled: usize) -> Condition {
    if selected == 0 {
        return unsatisfied(
            reason::NO_MANAGED_CLUSTER_MATCHED,
            "No ManagedCluster matches any of the cluster predicate",
        );
    }
    if unscheduled > 0 {
        let message = format!("{unscheduled} cluster decisions unscheduled");
        return unsatisfied(reason::NOT_ALL_DECISIONS_SCHEDULED, message);
    }
    Condition {
        kind: SATISFIED,
        status: true,
        reason: reason::ALL_DECISIONS_SCHEDULED,
        message: "All cluster decisions scheduled".to_owned(),
    }
}

pub(super) fn kept(kept: usize, problem: &Misconfigured) -> Condition {
    unsatisfied(
        reason::NOT_ALL_DECISIONS_SCHEDULED,
        format!("{problem}; the {kept} cluster decisions made before are kept"),
    )
}

pub(super) fn misconfigured(problem: &Misconfigured) -> Condition {
    Condition {
        kind: MISCONFIGURED,
        status: true,
        reason: reason::MISCONFIGURED,
        message: problem.to_string(),
    }
}

pub(super) fn in_order() -> Condition {
    Condition {
        kind: MISCONFIGURED,
        status: false,
        reason: reason::SUCCEED_CONFIGURED,
        message: "Placement configurations check pass".to_owned(),
    }
}
