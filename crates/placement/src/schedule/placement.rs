//! Placements, read once: selectors parsed, expressions compiled, weights summed up.

use std::collections::{BTreeMap, BTreeSet};

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

    fn read(value: Option<&Value>) -> Result<Self, Misconfigured> {
        let number = |text: &str| text.parse().ok();
        let size = match value {
            None | Some(Value::Null) => Some(Self::Percent(100)),
            Some(Value::Number(count)) => count
                .as_u64()
                .and_then(|count| usize::try_from(count).ok())
                .map(Self::Count),
            Some(Value::String(text)) => match text.strip_suffix('%') {
                Some(percentage) => number(percentage).map(Self::Percent),
                None => number(text).map(Self::Count),
            },
            Some(_) => None,
        };
        size.ok_or_else(|| {
            let text = value.map(ToString::to_string).unwrap_or_default();
            let message =
                format!("clustersPerDecisionGroup is neither a number nor a percentage: {text}");
            Misconfigured::new("", message)
        })
    }
}

impl Placement {
    /// Reads a `Placement`. One that is not in order is still a placement: it keeps the
    /// decisions it has.
    pub fn from_json(object: &Value) -> Self {
        let name = object.pointer("/metadata/name").and_then(Value::as_str);
        let sets = object
            .pointer("/spec/clusterSets")
            .and_then(Value::as_array);
        let set = |set: &Value| set.as_str().map(ToOwned::to_owned);
        Self {
            name: name.unwrap_or_default().to_owned(),
            cluster_sets: sets.into_iter().flatten().filter_map(set).collect(),
            rules: Rules::read(object.get("spec").unwrap_or(&Value::Null)),
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
    fn read(spec: &Value) -> Result<Self, Misconfigured> {
        let items = |path: &str| {
            let items = spec.pointer(path).and_then(Value::as_array);
            items.into_iter().flatten()
        };
        let number = match spec.get("numberOfClusters") {
            None | Some(Value::Null) => None,
            Some(number) => {
                let number = number.as_u64().and_then(|it| usize::try_from(it).ok());
                let problem =
                    || Misconfigured::new("", "numberOfClusters is not a number of clusters");
                Some(number.ok_or_else(problem)?)
            }
        };
        let by_score = match spec.get("sortBy").and_then(Value::as_str) {
            None | Some("" | "ClusterName") => false,
            Some("Score") => true,
            Some(other) => {
                return Err(Misconfigured::new("", format!("incorrect sortBy: {other}")));
            }
        };
        let strategy = spec.pointer("/decisionStrategy/groupStrategy");
        let size = strategy.and_then(|it| it.get("clustersPerDecisionGroup"));
        Ok(Self {
            predicates: items("/predicates")
                .map(Predicate::read)
                .collect::<Result<_, _>>()?,
            tolerations: items("/tolerations")
                .map(Toleration::read)
                .collect::<Result<_, _>>()?,
            weights: score::weights(spec.get("prioritizerPolicy"))?,
            number,
            spread: items("/spreadPolicy/spreadConstraints")
                .map(Constraint::read)
                .collect::<Result<_, _>>()?,
            groups: GroupRule::read_all(strategy)?,
            group_size: GroupSize::read(size)?,
            by_score,
        })
    }
}
