//! What a cluster must be: one of several predicates, each of labels, claims and expressions.

use bellwether_api::cluster::ClusterPredicate;
use bellwether_cel::Budget;

use super::cluster::{Cluster, ScoreBoard};
use super::expression::{Expression, Unmet};
use super::placement::Misconfigured;
use super::selector::Selector;

/// The part of a placement that conditions name.
const PART: &str = "Predicate";

/// Labels, claims and expressions, all of which must match.
#[derive(Debug, Clone)]
pub(super) struct Predicate {
    selector: Selector,
    expressions: Vec<Expression>,
}

impl Predicate {
    pub(super) fn new(predicate: &ClusterPredicate) -> Result<Self, Misconfigured> {
        Self::compile(predicate).map_err(|problem| Misconfigured::new(PART, problem))
    }

    fn compile(predicate: &ClusterPredicate) -> Result<Self, String> {
        let Some(required) = &predicate.required_cluster_selector else {
            return Ok(Self {
                selector: Selector::everything(),
                expressions: Vec::new(),
            });
        };
        let sources = required
            .cel_selector
            .iter()
            .flat_map(|it| &it.cel_expressions);
        Ok(Self {
            selector: Selector::of_predicate(required)?,
            expressions: sources
                .map(|source| Expression::compile(source))
                .collect::<Result<_, _>>()?,
        })
    }

    /// Labels of which a cluster must have one, as far as that can be said.
    pub(super) fn anchors(&self) -> Option<Vec<(&str, &str)>> {
        self.selector.anchors()
    }

    /// Whether the whole object and its scores matter, not only labels and claims.
    pub(super) fn has_expressions(&self) -> bool {
        !self.expressions.is_empty()
    }

    fn matches(
        &self,
        cluster: &Cluster,
        scores: &ScoreBoard,
        budget: &mut Budget,
    ) -> Result<bool, Misconfigured> {
        if !self.selector.matches(cluster) {
            return Ok(false);
        }
        match self.unmet(cluster, scores, budget) {
            None => Ok(true),
            Some(Unmet::No(_)) => Ok(false),
            Some(Unmet::OverBudget(problem)) => Err(Misconfigured::new(PART, problem)),
        }
    }

    /// The first expression that is not true.
    fn unmet(&self, cluster: &Cluster, scores: &ScoreBoard, budget: &mut Budget) -> Option<Unmet> {
        if self.expressions.is_empty() {
            return None;
        }
        let scores = scores.to_json(&cluster.name);
        self.expressions
            .iter()
            .find_map(|it| it.unmet(cluster.object(), &scores, budget))
    }
}

/// What expressions may cost for each cluster on average, and for a small fleet together.
const BUDGET_PER_CLUSTER: u64 = 1_000;
const MIN_BUDGET: u64 = 2_000_000;

/// What all expressions of a placement may cost together: a fraction of a second, whatever the number
/// of clusters, unless there are very many.
pub(super) fn budget(clusters: usize) -> Budget {
    let clusters = u64::try_from(clusters).unwrap_or(u64::MAX);
    let total = clusters.saturating_mul(BUDGET_PER_CLUSTER).max(MIN_BUDGET);
    Budget::new(Budget::PER_CALL_LIMIT, total)
}

/// Whether a cluster matches one of the predicates; if there are none, everything matches. It is an
/// error if that cannot be found out within the budget.
pub(super) fn matches(
    predicates: &[Predicate],
    cluster: &Cluster,
    scores: &ScoreBoard,
    budget: &mut Budget,
) -> Result<bool, Misconfigured> {
    for predicate in predicates {
        if predicate.matches(cluster, scores, budget)? {
            return Ok(true);
        }
    }
    Ok(predicates.is_empty())
}

/// What a cluster lacks first, for each of the predicates.
pub(super) fn missing(
    predicates: &[Predicate],
    cluster: &Cluster,
    scores: &ScoreBoard,
) -> Vec<String> {
    let missing = |predicate: &Predicate| {
        let missing = predicate.selector.missing(cluster);
        missing.or_else(|| {
            let mut budget = budget(1);
            let unmet = predicate.unmet(cluster, scores, &mut budget)?;
            Some(match unmet {
                Unmet::No(text) | Unmet::OverBudget(text) => text,
            })
        })
    };
    predicates.iter().filter_map(missing).collect()
}
