//! Scores: which of the possible clusters are the best.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use bellwether_api::cluster::names::prioritizer;
use bellwether_api::cluster::{PrioritizerPolicy, PrioritizerPolicyMode, ScoreCoordinate};
use jiff::{SignedDuration, Timestamp};

use super::cluster::Cluster;
use super::placement::Misconfigured;
use super::{Decision, View};

/// The resources that clusters are compared by.
const CPU: &str = "cpu";
const MEMORY: &str = "memory";

/// The best that one prioritizer gives.
const MAX: i64 = 100;

/// What else there is to say about scores.
#[derive(Debug, Default)]
pub(super) struct Notes {
    pub(super) warnings: BTreeSet<String>,
    /// When the first score that was used will not count any more.
    pub(super) expiry: Option<Timestamp>,
}

/// Where a score comes from.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Coordinate {
    /// Clusters that few placements chose.
    Balance,
    /// Clusters that this placement chose before.
    Steady,
    /// Clusters with much processor time to spare.
    AllocatableCpu,
    /// Clusters with much memory to spare.
    AllocatableMemory,
    /// What an add-on says.
    AddOn {
        /// The name of the `AddOnPlacementScore`.
        resource: String,
        /// The name of the score in it.
        score: String,
    },
}

impl Coordinate {
    /// The resource of clusters that it looks at.
    pub(super) fn resource(&self) -> Option<&'static str> {
        match self {
            Self::AllocatableCpu => Some(CPU),
            Self::AllocatableMemory => Some(MEMORY),
            Self::Balance | Self::Steady | Self::AddOn { .. } => None,
        }
    }
}

impl fmt::Display for Coordinate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Balance => formatter.write_str(prioritizer::BALANCE),
            Self::Steady => formatter.write_str(prioritizer::STEADY),
            Self::AllocatableCpu => formatter.write_str(prioritizer::RESOURCE_ALLOCATABLE_CPU),
            Self::AllocatableMemory => {
                formatter.write_str(prioritizer::RESOURCE_ALLOCATABLE_MEMORY)
            }
            Self::AddOn { resource, score } => write!(formatter, "AddOn/{resource}/{score}"),
        }
    }
}

impl Coordinate {
    fn new(coordinate: &ScoreCoordinate) -> Result<Self, Misconfigured> {
        let problem = |message: String| Err(Misconfigured::new("", message));
        match coordinate.kind.as_str() {
            "AddOn" => match &coordinate.add_on {
                None => problem("addOn should not be empty".to_owned()),
                Some(add_on) => Ok(Self::AddOn {
                    resource: add_on.resource_name.clone(),
                    score: add_on.score_name.clone(),
                }),
            },
            "" | "BuiltIn" => match coordinate.built_in.as_deref().unwrap_or_default() {
                prioritizer::BALANCE => Ok(Self::Balance),
                prioritizer::STEADY => Ok(Self::Steady),
                prioritizer::RESOURCE_ALLOCATABLE_CPU => Ok(Self::AllocatableCpu),
                prioritizer::RESOURCE_ALLOCATABLE_MEMORY => Ok(Self::AllocatableMemory),
                other => problem(format!("incorrect builtin prioritizer: {other}")),
            },
            other => problem(format!("incorrect scoreCoordinate type: {other}")),
        }
    }
}

/// The weights of `prioritizerPolicy`, without those of zero.
pub(super) fn weights(
    policy: Option<&PrioritizerPolicy>,
) -> Result<BTreeMap<Coordinate, i64>, Misconfigured> {
    let mode = policy.map_or(PrioritizerPolicyMode::default(), |it| it.mode.clone());
    let mut weights = match mode.as_str() {
        "" | "Additive" => BTreeMap::from([(Coordinate::Balance, 1), (Coordinate::Steady, 1)]),
        "Exact" => BTreeMap::new(),
        other => {
            let message = format!("incorrect prioritizer policy mode: {other}");
            return Err(Misconfigured::new("", message));
        }
    };
    for configuration in policy.iter().flat_map(|it| &it.configurations) {
        // An API server lets nothing else in; beyond, sums could overflow.
        let weight = configuration.weight.unwrap_or(1).clamp(-10, 10);
        let coordinate = Coordinate::new(&configuration.score_coordinate)?;
        weights.insert(coordinate, i64::from(weight));
    }
    weights.retain(|_, weight| *weight != 0);
    Ok(weights)
}

/// Clusters and their scores, the best first, equal ones by name.
pub(super) fn rank<'a>(
    weights: &BTreeMap<Coordinate, i64>,
    view: &View<'a>,
    candidates: Vec<&'a Cluster>,
    notes: &mut Notes,
) -> Vec<(&'a Cluster, Decision)> {
    let mut totals = vec![0_i64; candidates.len()];
    for (coordinate, weight) in weights {
        let scores = scores(coordinate, view, &candidates, notes);
        for (total, score) in totals.iter_mut().zip(scores) {
            *total = total.saturating_add(weight.saturating_mul(score));
        }
    }
    let mut ranked: Vec<(&Cluster, Decision)> = candidates
        .into_iter()
        .zip(totals)
        .map(|(cluster, score)| {
            let name = cluster.name.clone();
            (
                cluster,
                Decision {
                    cluster: name,
                    score,
                },
            )
        })
        .collect();
    ranked.sort_by(|(_, a), (_, b)| {
        b.score
            .cmp(&a.score)
            .then_with(|| a.cluster.cmp(&b.cluster))
    });
    ranked
}

/// One score per candidate, between -100 and 100.
fn scores(
    coordinate: &Coordinate,
    view: &View<'_>,
    candidates: &[&Cluster],
    notes: &mut Notes,
) -> Vec<i64> {
    match coordinate {
        Coordinate::Balance => balance(view, candidates),
        Coordinate::Steady => {
            let score = |cluster: &&Cluster| {
                if view.decided.contains(&cluster.name) {
                    MAX
                } else {
                    0
                }
            };
            candidates.iter().map(score).collect()
        }
        Coordinate::AllocatableCpu => allocatable(CPU, candidates),
        Coordinate::AllocatableMemory => allocatable(MEMORY, candidates),
        Coordinate::AddOn { resource, score } => {
            let value = |cluster: &&Cluster| {
                let Some(scores) = view.scores.get(&cluster.name, resource) else {
                    return 0;
                };
                if scores.valid_until.is_some_and(|until| until < view.now) {
                    notes.warnings.insert(format!(
                        "AddOnPlacementScores {}/{resource} expired",
                        cluster.name
                    ));
                    return 0;
                }
                let expiry = scores.valid_until.map(just_after);
                notes.expiry = [notes.expiry, expiry].into_iter().flatten().min();
                scores
                    .values
                    .get(score)
                    .copied()
                    .unwrap_or(0)
                    .clamp(-MAX, MAX)
            };
            candidates.iter().map(value).collect()
        }
    }
}

/// A score counts up to and including its last moment.
fn just_after(time: Timestamp) -> Timestamp {
    let moment = SignedDuration::from_nanos(1);
    time.checked_add(moment).unwrap_or(Timestamp::MAX)
}

fn balance(view: &View<'_>, candidates: &[&Cluster]) -> Vec<i64> {
    let most = view.chosen_elsewhere.most();
    let score = |cluster: &&Cluster| {
        let count = view.chosen_elsewhere.count(&cluster.name);
        if count == 0 {
            return MAX;
        }
        2 * truncated(100.0 * (0.5 - f64::from(count) / f64::from(most)))
    };
    candidates.iter().map(score).collect()
}

fn allocatable(resource: &str, candidates: &[&Cluster]) -> Vec<i64> {
    let amounts: Vec<Option<f64>> = candidates
        .iter()
        .map(|cluster| cluster.allocatable(resource))
        .collect();
    let known = amounts.iter().flatten().copied();
    let (least, most) = known.fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), it| {
        (least.min(it), most.max(it))
    });
    let score = |amount: &Option<f64>| match amount {
        None => 0,
        Some(_) if most <= least => MAX,
        Some(amount) => truncated(((amount - least) / (most - least) - 0.5) * 200.0),
    };
    amounts.iter().map(score).collect()
}

/// The whole part of a score.
#[expect(
    clippy::cast_possible_truncation,
    reason = "scores are between -100 and 100, and truncation is what is wanted"
)]
fn truncated(score: f64) -> i64 {
    score as i64
}
