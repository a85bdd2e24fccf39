//! Decision groups, and the objects that decisions are written to.

use bellwether_api::cluster::names::label;
use bellwether_api::cluster::{DecisionGroup as NamedGroup, DecisionGroupStatus, GroupStrategy};
use serde_json::{Map, Value, json};

use super::Decision;
use super::cluster::Cluster;
use super::placement::{Misconfigured, Rules};
use super::selector::Selector;

/// How many decisions one object holds at most.
pub const MAX_DECISIONS_PER_OBJECT: usize = 100;

/// Which clusters a named group takes.
#[derive(Debug, Clone)]
pub(super) struct GroupRule {
    name: String,
    selector: Selector,
}

/// A group of chosen clusters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionGroup {
    /// Its name; several may share one, and the last ones have none.
    pub name: String,
    /// Its place.
    pub index: usize,
    /// Its clusters, by name or by score.
    pub decisions: Vec<Decision>,
}

/// A `PlacementDecision` to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecisionObject {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: [(&'static str, String); 3],
    /// The clusters in it.
    pub decisions: Vec<Decision>,
}

impl DecisionObject {
    /// Reads a `PlacementDecision`; labels that are missing are empty.
    pub fn from_json(object: &Value) -> Self {
        let text = |value: Option<&Value>| value.and_then(Value::as_str).unwrap_or("").to_owned();
        let labels = object.pointer("/metadata/labels");
        let read = |name: &'static str| (name, text(labels.and_then(|it| it.get(name))));
        let decision = |decision: &Value| {
            Some(Decision {
                cluster: decision.get("clusterName")?.as_str()?.into(),
                score: decision.get("score").and_then(Value::as_i64).unwrap_or(0),
            })
        };
        let decisions = object
            .pointer("/status/decisions")
            .and_then(Value::as_array);
        Self {
            name: text(object.pointer("/metadata/name")),
            labels: [
                read(label::PLACEMENT),
                read(label::DECISION_GROUP_INDEX),
                read(label::DECISION_GROUP_NAME),
            ],
            decisions: decisions
                .into_iter()
                .flatten()
                .filter_map(decision)
                .collect(),
        }
    }

    /// Its `status`.
    pub fn status(&self) -> Value {
        Self::status_of(&self.decisions)
    }

    /// The `status` of an object with such decisions.
    pub fn status_of(decisions: &[Decision]) -> Value {
        let decision = |decision: &Decision| {
            let mut fields = Map::new();
            fields.insert("clusterName".to_owned(), json!(&*decision.cluster));
            fields.insert("reason".to_owned(), json!(""));
            if decision.score != 0 {
                fields.insert("score".to_owned(), json!(decision.score));
            }
            Value::Object(fields)
        };
        json!({ "decisions": decisions.iter().map(decision).collect::<Vec<_>>() })
    }
}

impl GroupRule {
    /// Compiles the named groups, under their present names or those of early documents
    /// (`DecisionGroups`, `clusterSelector`), but not under both.
    pub(super) fn all(strategy: &GroupStrategy) -> Result<Vec<Self>, Misconfigured> {
        if !strategy.decision_groups.is_empty() && !strategy.capitalized_decision_groups.is_empty()
        {
            return Err(both("decisionGroups", "DecisionGroups"));
        }
        strategy.groups().map(Self::new).collect()
    }

    fn new(group: &NamedGroup) -> Result<Self, Misconfigured> {
        let selector = match (&group.group_cluster_selector, &group.cluster_selector) {
            (Some(_), Some(_)) => return Err(both("groupClusterSelector", "clusterSelector")),
            (Some(selector), None) => Selector::of_group(selector),
            (None, labels) => Selector::new(labels.as_ref(), None),
        };
        Ok(Self {
            name: group.group_name.clone(),
            selector: selector.map_err(|problem| Misconfigured::new("", problem))?,
        })
    }
}

fn both(name: &str, early: &str) -> Misconfigured {
    Misconfigured::new("", format!("there are both {name} and {early}"))
}

impl DecisionGroup {
    pub(super) fn empty() -> Self {
        Self {
            name: String::new(),
            index: 0,
            decisions: Vec::new(),
        }
    }

    /// `status.decisionGroups` of a placement: each group with the names of its objects.
    pub fn status(placement: &str, groups: &[Self]) -> Vec<DecisionGroupStatus> {
        let objects = Self::objects(placement, groups);
        let entry = |group: &Self| {
            let index = group.index.to_string();
            let of_group = objects.iter().filter(|object| object.labels[1].1 == index);
            DecisionGroupStatus {
                decision_group_index: i32::try_from(group.index).unwrap_or(i32::MAX),
                decision_group_name: group.name.clone(),
                decisions: of_group.map(|object| object.name.clone()).collect(),
                clusters_count: i32::try_from(group.decisions.len()).unwrap_or(i32::MAX),
                ..DecisionGroupStatus::default()
            }
        };
        groups.iter().map(entry).collect()
    }

    /// The objects that hold the decisions of all groups of a placement, at most
    /// [`MAX_DECISIONS_PER_OBJECT`] each and at least one per group.
    pub fn objects(placement: &str, groups: &[Self]) -> Vec<DecisionObject> {
        let mut objects = Vec::new();
        for group in groups {
            let mut chunks: Vec<&[Decision]> =
                group.decisions.chunks(MAX_DECISIONS_PER_OBJECT).collect();
            if chunks.is_empty() {
                chunks.push(&[]);
            }
            for decisions in chunks {
                objects.push(DecisionObject {
                    name: format!("{placement}-decision-{}", objects.len() + 1),
                    labels: [
                        (label::PLACEMENT, placement.to_owned()),
                        (label::DECISION_GROUP_INDEX, group.index.to_string()),
                        (label::DECISION_GROUP_NAME, group.name.clone()),
                    ],
                    decisions: decisions.to_vec(),
                });
            }
        }
        objects
    }
}

/// The first named group that takes a cluster.
pub(super) fn rule_of(rules: &Rules, cluster: &Cluster) -> Option<usize> {
    let takes = |rule: &GroupRule| rule.selector.matches(cluster);
    rules.groups.iter().position(takes)
}

/// Puts chosen clusters into groups: the named ones in order, then the rest.
pub(super) fn group(rules: &Rules, chosen: Vec<(&Cluster, Decision)>) -> Vec<DecisionGroup> {
    let size = rules.group_size.of(chosen.len()).max(1);
    let mut groups = Vec::new();
    let mut rest = chosen;
    for rule in &rules.groups {
        let (members, others) = rest
            .into_iter()
            .partition(|(cluster, _)| rule.selector.matches(cluster));
        rest = others;
        slice(rules, &rule.name, members, size, &mut groups);
    }
    slice(rules, "", rest, size, &mut groups);
    if groups.is_empty() {
        groups.push(DecisionGroup::empty());
    }
    groups
}

fn slice(
    rules: &Rules,
    name: &str,
    members: Vec<(&Cluster, Decision)>,
    size: usize,
    groups: &mut Vec<DecisionGroup>,
) {
    let mut decisions: Vec<Decision> = members.into_iter().map(|(_, it)| it).collect();
    // Members come in the order of their rank, which is by score.
    if !rules.by_score {
        decisions.sort_by(|a, b| a.cluster.cmp(&b.cluster));
    }
    for decisions in decisions.chunks(size) {
        groups.push(DecisionGroup {
            name: name.to_owned(),
            index: groups.len(),
            decisions: decisions.to_vec(),
        });
    }
}
