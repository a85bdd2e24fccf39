//! Everything a decision looks at, as objects: for those who have no fleet in memory.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

use super::{
    Choices, Cluster, ClusterSet, DecisionObject, Outcome, Placement, ScoreBoard, Verdict, View,
    schedule, why,
};

/// A placement and the objects around it, as a server lists them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Objects<'a> {
    /// The placement.
    pub placement: Option<&'a Value>,
    /// All clusters.
    pub clusters: &'a [Value],
    /// All cluster sets.
    pub sets: &'a [Value],
    /// The set bindings of the placement's namespace.
    pub bindings: &'a [Value],
    /// All scores of add-ons.
    pub scores: &'a [Value],
    /// All decisions, of this placement and of others.
    pub decisions: &'a [Value],
}

/// A question about one placement at one moment.
#[derive(Debug)]
pub struct Scene {
    placement: Placement,
    clusters: Vec<Cluster>,
    sets: Vec<ClusterSet>,
    bindings: BTreeSet<String>,
    scores: ScoreBoard,
    decided: BTreeSet<Arc<str>>,
    chosen_elsewhere: Choices,
    /// Objects that are left out, and why.
    problems: Vec<String>,
    now: Timestamp,
}

impl Scene {
    /// Reads the objects. Invalid ones are among the warnings of the outcome: a set whose selector
    /// is invalid has no members, and scores that cannot be read are not used.
    pub fn new(objects: &Objects<'_>, now: Timestamp) -> Self {
        let placement = objects.placement.unwrap_or(&Value::Null);
        let text = |object: &Value, field: &str| {
            let text = object.pointer(&format!("/metadata/{field}"));
            text.and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let namespace = text(placement, "namespace");
        let name = text(placement, "name");
        let mut decided = BTreeSet::new();
        let mut chosen_elsewhere = Choices::default();
        for object in objects.decisions {
            let written = DecisionObject::from_json(object);
            let is_own = written.labels[0].1 == name && text(object, "namespace") == namespace;
            for decision in written.decisions {
                if is_own {
                    decided.insert(decision.cluster);
                } else {
                    chosen_elsewhere.add(&decision.cluster);
                }
            }
        }
        let mut scores = ScoreBoard::default();
        let mut problems = Vec::new();
        for score in objects.scores {
            if let Err(error) = scores.insert_json(score) {
                let (cluster, name) = (text(score, "namespace"), text(score, "name"));
                problems.push(format!("AddOnPlacementScore {cluster}/{name}: {error}"));
            }
        }
        let sets: Vec<ClusterSet> = objects.sets.iter().map(ClusterSet::from_json).collect();
        let invalid = sets
            .iter()
            .filter_map(|set| Some((&set.name, set.problem()?)));
        problems
            .extend(invalid.map(|(name, problem)| format!("ManagedClusterSet {name}: {problem}")));
        let clusters = objects.clusters.iter();
        let bindings = objects.bindings.iter();
        Self {
            placement: Placement::from_json(placement),
            clusters: clusters
                .filter_map(|it| Cluster::from_json(Arc::new(it.clone())))
                .collect(),
            sets,
            bindings: bindings.map(|it| text(it, "name")).collect(),
            scores,
            decided,
            chosen_elsewhere,
            problems,
            now,
        }
    }

    /// Decides about the placement.
    pub fn outcome(&self) -> Outcome {
        let mut outcome = self.view(schedule);
        outcome.warnings.extend(self.problems.iter().cloned());
        outcome
    }

    /// Explains the decision about one cluster.
    pub fn why(&self, cluster: &str) -> Verdict {
        self.view(|view| why(view, cluster))
    }

    fn view<T>(&self, ask: impl FnOnce(&View<'_>) -> T) -> T {
        ask(&View {
            placement: &self.placement,
            bindings: &self.bindings,
            sets: &self.sets,
            clusters: &self.clusters,
            candidates: None,
            scores: &self.scores,
            decided: &self.decided,
            chosen_elsewhere: &self.chosen_elsewhere.without([]),
            now: self.now,
        })
    }
}
