//! What a cluster must be: one of several predicates, each of labels, claims and expressions.

use bellwether_cel::Budget;
use serde_json::Value;

use super::cluster::{Cluster, ScoreBoard};
use super::expression::Expression;
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
    pub(super) fn read(predicate: &Value) -> Result<Self, Misconfigured> {
        let required = predicate.get("requiredClusterSelector");
        let required = required.unwrap_or(&Value::Null);
        let expressions = required.pointer("/celSelector/celExpressions");
        let expressions = expressions.and_then(Value::as_array).into_iter().flatten();
        let compile = |expression: &Value| {
            let source = expression.as_str().unwrap_or_default();
            Expression::compile(source).map_err(|problem| Misconfigured::new(PART, problem))
        };
        Ok(Self {
            selector: Selector::read(PART, required)?,
            expressions: expressions.map(compile).collect::<Result<_, _>>()?,
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

    fn matches(&self, cluster: &Cluster, scores: &ScoreBoard) -> bool {
        self.selector.matches(cluster) && self.unmet(cluster, scores).is_none()
    }

    /// The first expression that is not true.
    fn unmet(&self, cluster: &Cluster, scores: &ScoreBoard) -> Option<String> {
        if self.expressions.is_empty() {
            return None;
        }
        let scores = scores.to_json(&cluster.name);
        // One budget for all expressions, as Kubernetes has it for all rules on an object.
        let mut budget = Budget::kubernetes();
        self.expressions
            .iter()
            .find_map(|it| it.unmet(cluster.object(), &scores, &mut budget))
    }
}

/// Whether a cluster matches one of the predicates; if there are none, everything matches.
pub(super) fn matches(predicates: &[Predicate], cluster: &Cluster, scores: &ScoreBoard) -> bool {
    predicates.is_empty() || predicates.iter().any(|it| it.matches(cluster, scores))
}

/// What a cluster lacks first, for each of the predicates.
pub(super) fn missing(
    predicates: &[Predicate],
    cluster: &Cluster,
    scores: &ScoreBoard,
) -> Vec<String> {
    let missing = |predicate: &Predicate| {
        let missing = predicate.selector.missing(cluster);
        missing.or_else(|| predicate.unmet(cluster, scores))
    };
    predicates.iter().filter_map(missing).collect()
}
