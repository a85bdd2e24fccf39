//! Placements: which clusters are chosen, in which groups, and why not others.
//!
//! [`Placement`] is made once from an object: selectors parsed, expressions compiled.
//! [`schedule`] then answers for one moment, from a [`View`] of everything it may look at;
//! [`why()`] tells what kept one cluster out, [`affects`] whether a change of a cluster matters at
//! all, and [`transition()`] in which order to write decisions so that readers miss none.
//!
//! The steps: sets bound to the namespace → predicates → taints → scores → number → groups.
//! Health is no step of its own: what is unreachable has a taint.
//!
//! Beyond Open Cluster Management, whose rules these are:
//!
//! - A placement that is not in order keeps the decisions it has ([`Outcome::groups`] is none)
//!   instead of evicting everything, and is reported even if no cluster exists.
//! - `spreadPolicy` and `sortBy` work.
//! - Every decision carries its score.

mod change;
mod choices;
mod cluster;
mod condition;
mod expression;
mod group;
mod placement;
mod predicate;
pub mod probe;
mod scene;
mod score;
mod selector;
mod spread;
mod taint;
mod transition;
mod why;

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;

pub use change::affects;
pub use choices::{Choices, Elsewhere};
pub use cluster::{AddOnScores, Cluster, ClusterSet, ScoreBoard, Taint, TaintEffect};
pub use condition::Condition;
pub use group::{DecisionGroup, DecisionObject, MAX_DECISIONS_PER_OBJECT};
pub use placement::{Misconfigured, Placement};
pub use scene::{Objects, Scene};
pub use score::Coordinate;
pub use transition::{Write, transition};
pub use why::{Verdict, why};

/// Everything a decision may look at.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    /// What is asked for.
    pub placement: &'a Placement,
    /// The names of the set bindings in the placement's namespace.
    pub bindings: &'a BTreeSet<String>,
    /// All cluster sets.
    pub sets: &'a [ClusterSet],
    /// All clusters, in any order.
    pub clusters: &'a [Cluster],
    /// Those of them to look at, if an index of their [labels](Placement::anchors) says so: every
    /// other one is out of the question.
    pub candidates: Option<&'a [&'a Cluster]>,
    /// Scores that add-ons gave to clusters.
    pub scores: &'a ScoreBoard,
    /// The clusters this placement chose last.
    pub decided: &'a BTreeSet<Arc<str>>,
    /// How often other placements, in all namespaces, chose each cluster.
    pub chosen_elsewhere: &'a Elsewhere<'a>,
    /// The present.
    pub now: Timestamp,
}

/// A cluster that is chosen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decision {
    /// Which one.
    pub cluster: Arc<str>,
    /// The weighted sum of its scores.
    pub score: i64,
}

/// What is decided.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// The chosen clusters in groups, at least one group; none: leave decisions as they are.
    pub groups: Option<Vec<DecisionGroup>>,
    /// How many clusters are chosen.
    pub selected: usize,
    /// How many more were asked for than there are.
    pub unscheduled: usize,
    /// `PlacementSatisfied`.
    pub satisfied: Condition,
    /// `PlacementMisconfigured`.
    pub misconfigured: Condition,
    /// When to decide again even if nothing changes: a toleration ends, or a score expires.
    pub recheck_at: Option<Timestamp>,
    /// The scores of all clusters that were possible, chosen or not, the best first.
    pub scores: Vec<Decision>,
    /// What went wrong without stopping anything, for example an expired score.
    pub warnings: Vec<String>,
    /// Whether expressions cost too much, so that nothing could be decided.
    pub is_over_budget: bool,
}

/// Decides which clusters a placement chooses.
pub fn schedule(view: &View<'_>) -> Outcome {
    let eligible = match eligible(view) {
        Ok(eligible) => eligible,
        Err(nothing) => return Outcome::nothing(view, nothing),
    };
    let rules = match &view.placement.rules {
        Ok(rules) => rules,
        Err(problem) => return Outcome::kept(view, problem),
    };
    let mut recheck_at: Option<Timestamp> = None;
    let mut candidates: Vec<&Cluster> = Vec::new();
    let mut budget = predicate::budget(eligible.len());
    for cluster in eligible {
        match predicate::matches(&rules.predicates, cluster, view.scores, &mut budget) {
            Ok(true) => {}
            Ok(false) => continue,
            Err(problem) => return Outcome::over_budget(view, &problem),
        }
        let is_decided = view.decided.contains(&cluster.name);
        if let Ok(until) = taint::tolerated(&rules.tolerations, cluster, is_decided, view.now) {
            candidates.push(cluster);
            if is_decided {
                recheck_at = [recheck_at, until].into_iter().flatten().min();
            }
        }
    }
    let mut notes = score::Notes::default();
    let ranked = score::rank(&rules.weights, view, candidates, &mut notes);
    let scores = ranked
        .iter()
        .map(|(_, decision)| decision.clone())
        .collect();
    let chosen = spread::choose(&rules.spread, ranked, rules.number);
    let selected = chosen.len();
    let unscheduled = rules
        .number
        .map_or(0, |number| number.saturating_sub(selected));
    Outcome {
        groups: Some(group::group(rules, chosen)),
        selected,
        unscheduled,
        satisfied: condition::scheduled(selected, unscheduled),
        misconfigured: condition::in_order(),
        recheck_at: [recheck_at, notes.expiry].into_iter().flatten().min(),
        scores,
        warnings: notes.warnings.into_iter().collect(),
        is_over_budget: false,
    }
}

/// The clusters of the sets that are bound and asked for; or why there are none.
fn eligible<'a>(view: &View<'a>) -> Result<Vec<&'a Cluster>, Condition> {
    let asked = &view.placement.cluster_sets;
    let bound: Vec<&ClusterSet> = view
        .sets
        .iter()
        .filter(|set| view.bindings.contains(&set.name))
        .collect();
    if bound.is_empty() {
        return Err(condition::no_bindings());
    }
    let is_asked = |set: &&ClusterSet| asked.is_empty() || asked.contains(&set.name);
    let sets: Vec<&ClusterSet> = bound.into_iter().filter(is_asked).collect();
    if sets.is_empty() {
        return Err(condition::no_intersection(asked));
    }
    let is_member =
        |cluster: &&Cluster| !cluster.is_deleting && sets.iter().any(|set| set.contains(cluster));
    let clusters: Vec<&Cluster> = match view.candidates {
        Some(candidates) => candidates.iter().copied().filter(is_member).collect(),
        None => view.clusters.iter().filter(is_member).collect(),
    };
    // Sets without members are one thing, and sets without a candidate another.
    if clusters.is_empty() && !view.clusters.iter().any(|it| is_member(&it)) {
        let names: BTreeSet<String> = sets.iter().map(|set| set.name.clone()).collect();
        return Err(condition::empty_sets(&names));
    }
    Ok(clusters)
}

impl Outcome {
    /// There is nothing to choose from.
    fn nothing(view: &View<'_>, satisfied: Condition) -> Self {
        let rules = view.placement.rules.as_ref();
        Self {
            groups: Some(vec![DecisionGroup::empty()]),
            selected: 0,
            unscheduled: rules.map_or(0, |rules| rules.number.unwrap_or(0)),
            satisfied,
            misconfigured: match rules {
                Ok(_) => condition::in_order(),
                Err(problem) => condition::misconfigured(problem),
            },
            recheck_at: None,
            scores: Vec::new(),
            warnings: Vec::new(),
            is_over_budget: false,
        }
    }

    /// Expressions cost too much: what was decided stays.
    fn over_budget(view: &View<'_>, problem: &Misconfigured) -> Self {
        Self {
            satisfied: condition::kept(view.decided.len(), problem),
            is_over_budget: true,
            ..Self::kept(view, problem)
        }
    }

    /// The placement is not in order: what was decided stays.
    fn kept(view: &View<'_>, problem: &Misconfigured) -> Self {
        let kept = view.decided.len();
        Self {
            groups: (kept == 0).then(|| vec![DecisionGroup::empty()]),
            selected: kept,
            unscheduled: 0,
            satisfied: if kept == 0 {
                condition::scheduled(0, 0)
            } else {
                condition::kept(kept, problem)
            },
            misconfigured: condition::misconfigured(problem),
            recheck_at: None,
            scores: Vec::new(),
            warnings: Vec::new(),
            is_over_budget: false,
        }
    }
}
