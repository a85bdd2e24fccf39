//! Placements, read once: selectors parsed, expressions compiled, weights summed up.

use std::collections::{BTreeMap, BTreeSet};

use bellwether_api::cluster::{self, DecisionSortOrder, PlacementSpec};
use bellwether_api::meta::IntOrString;
use serde::Deserialize as _;
use serde_json::Value;

use super::group::GroupRule;
use super::predicate::Predicate;
use super::score::{self, Coordinate};
use super::spread::Constraint;
use super::taint::Toleration;

/// Why a placement cannot be followed: the user must change it. Prints as upstream's condition
/// does, with the part of the placement first.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{part}{}{message}", if part.is_empty() { "" } else { ":" })]
pub struct Misconfigured {
    part: &'static str,
    message: String,
}

impl Misconfigured {
    pub(super) fn new(part: &'static str, message: impl Into<String>) -> Self {
        Self {
            part,
            message: message.into(),
        }
    }
}

/// A `Placement`.
#[derive(Debug, Clone)]
pub struct Placement {
    /// Its name, which its decisions are named after.
    pub name: String,
    /// The sets to choose from; empty: all that are bound.
    pub cluster_sets: BTreeSet<String>,
    /// Everything else, unless it is not in order.
    pub(super) rules: Result<Rules, Misconfigured>,
}

/// What a placement asks for.
#[derive(Debug, Clone)]
pub(super) struct Rules {
    /// One of them must match; empty: everything does.
    pub(super) predicates: Vec<Predicate>,
    pub(super) tolerations: Vec<Toleration>,
    /// None of zero.
    pub(super) weights: BTreeMap<Coordinate, i64>,
    /// How many clusters; none: all.
    pub(super) number: Option<usize>,
    pub(super) spread: Vec<Constraint>,
    pub(super) groups: Vec<GroupRule>,
    pub(super) group_size: GroupSize,
    pub(super) by_score: bool,
}

/// How many clusters go in a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GroupSize {
    Count(usize),
    Percent(usize),
}

impl GroupSize {
    /// The number for so many clusters: at least one, at most all.
    pub(super) fn of(self, selected: usize) -> usize {
        let size = match self {
            Self::Count(count) => count,
            Self::Percent(percentage) => percentage.saturating_mul(selected).div_ceil(100),
        };
        if size == 0 || size > selected {
            selected
        } else {
            size
        }
    }

    fn new(value: Option<&IntOrString>) -> Result<Self, Misconfigured> {
        let number = |text: &str| text.parse().ok();
        let size = match value {
            None => Some(Self::Percent(100)),
            Some(IntOrString::Int(count)) => usize::try_from(*count).ok().map(Self::Count),
            Some(IntOrString::String(text)) => match text.strip_suffix('%') {
                Some(percentage) => number(percentage).map(Self::Percent),
                None => number(text).map(Self::Count),
            },
        };
        size.ok_or_else(|| {
            let text = match value {
                Some(IntOrString::Int(count)) => count.to_string(),
                Some(IntOrString::String(text)) => format!("{text:?}"),
                None => String::new(),
            };
            let message =
                format!("clustersPerDecisionGroup is neither a number nor a percentage: {text}");
            Misconfigured::new("", message)
        })
    }
}

impl From<&cluster::Placement> for Placement {
    /// Compiles a placement. One that is not in order is still a placement: it keeps the
    /// decisions it has.
    fn from(object: &cluster::Placement) -> Self {
        Self {
            name: object.metadata.name.clone().unwrap_or_default(),
            cluster_sets: object.spec.cluster_sets.iter().cloned().collect(),
            rules: Rules::new(&object.spec),
        }
    }
}

impl Placement {
    /// The same from JSON that no API server has checked; what does not have the form of a
    /// placement is a [problem](Self::problem) of it.
    pub fn from_json(object: &Value) -> Self {
        let name = object.pointer("/metadata/name").and_then(Value::as_str);
        let spec = match object.get("spec") {
            None | Some(Value::Null) => Ok(PlacementSpec::default()),
            Some(spec) => PlacementSpec::deserialize(spec),
        };
        let (cluster_sets, rules) = match spec {
            Ok(spec) => (
                spec.cluster_sets.iter().cloned().collect(),
                Rules::new(&spec),
            ),
            Err(error) => {
                let problem = Misconfigured::new("", error.to_string());
                (BTreeSet::new(), Err(problem))
            }
        };
        Self {
            name: name.unwrap_or_default().to_owned(),
            cluster_sets,
            rules,
        }
    }

    /// What is not in order.
    pub fn problem(&self) -> Option<&Misconfigured> {
        self.rules.as_ref().err()
    }

    /// Labels of which every cluster that it could choose has one: what an index of placements is
    /// made of. None if there are no such labels.
    pub fn anchors(&self) -> Option<Vec<(&str, &str)>> {
        let predicates = &self.rules.as_ref().ok()?.predicates;
        if predicates.is_empty() {
            return None;
        }
        let anchors: Option<Vec<_>> = predicates.iter().map(Predicate::anchors).collect();
        Some(anchors?.into_iter().flatten().collect())
    }

    /// Returns true if it has programs of users, which may take long.
    pub fn has_expressions(&self) -> bool {
        let Ok(rules) = &self.rules else {
            return false;
        };
        rules.predicates.iter().any(Predicate::has_expressions)
    }

    /// Whether a change of an add-on's scores concerns it.
    pub fn uses_scores(&self, name: &str) -> bool {
        let Ok(rules) = &self.rules else {
            return false;
        };
        let is_weighed = |coordinate: &Coordinate| matches!(coordinate, Coordinate::AddOn { resource, .. } if resource == name);
        rules.weights.keys().any(is_weighed) || self.has_expressions()
    }
}

impl Rules {
    fn new(spec: &PlacementSpec) -> Result<Self, Misconfigured> {
        let number = spec.number_of_clusters.map(usize::try_from).transpose();
        let number = number
            .map_err(|_| Misconfigured::new("", "numberOfClusters is not a number of clusters"))?;
        let by_score = match spec.sort_by.as_ref().map(DecisionSortOrder::as_str) {
            None | Some("" | "ClusterName") => false,
            Some("Score") => true,
            Some(other) => {
                return Err(Misconfigured::new("", format!("incorrect sortBy: {other}")));
            }
        };
        let strategy = spec.decision_strategy.as_ref();
        let strategy = strategy.and_then(|it| it.group_strategy.as_ref());
        let size = strategy.and_then(|it| it.clusters_per_decision_group.as_ref());
        let predicates = spec.predicates.iter().map(Predicate::new);
        let tolerations = spec.tolerations.iter().map(Toleration::new);
        let constraints = spec.spread_policy.iter();
        let constraints = constraints.flat_map(|it| &it.spread_constraints);
        Ok(Self {
            predicates: predicates.collect::<Result<_, _>>()?,
            tolerations: tolerations.collect::<Result<_, _>>()?,
            weights: score::weights(spec.prioritizer_policy.as_ref())?,
            number,
            spread: constraints.map(Constraint::new).collect::<Result<_, _>>()?,
            groups: strategy.map_or(Ok(Vec::new()), GroupRule::all)?,
            group_size: GroupSize::new(size)?,
            by_score,
        })
    }
}
