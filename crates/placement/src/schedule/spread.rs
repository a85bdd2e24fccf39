//! How many clusters are chosen, and how evenly they are spread.
//!
//! Without constraints the best ones are chosen. With them, clusters are taken one by one: the
//! best of those that keep the spread as even as demanded, and as even as wished where possible.

use std::collections::HashMap;

use bellwether_api::cluster::{SpreadConstraint, UnsatisfiableSpread};

use super::Decision;
use super::cluster::Cluster;
use super::placement::Misconfigured;

/// Clusters of one value of a label or claim may outnumber those of another by so many.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Constraint {
    key: String,
    is_claim: bool,
    max_skew: usize,
    /// Rather choose nothing than break it.
    is_strict: bool,
}

impl Constraint {
    pub(super) fn new(constraint: &SpreadConstraint) -> Result<Self, Misconfigured> {
        let choice = |field: &str, text: &str, first: &str, second: &str| match text {
            value if value.is_empty() || value == first => Ok(false),
            value if value == second => Ok(true),
            other => Err(Misconfigured::new(
                "",
                format!("incorrect {field}: {other}"),
            )),
        };
        let max_skew = constraint.max_skew.unwrap_or(1).max(1);
        let kind = constraint.topology_key_type.as_str();
        let otherwise = constraint.when_unsatisfiable.as_ref();
        let otherwise = otherwise.map_or("", UnsatisfiableSpread::as_str);
        Ok(Self {
            key: constraint.topology_key.clone(),
            is_claim: choice("topologyKeyType", kind, "Label", "Claim")?,
            max_skew: usize::try_from(max_skew).unwrap_or(1),
            is_strict: choice(
                "whenUnsatisfiable",
                otherwise,
                "ScheduleAnyway",
                "DoNotSchedule",
            )?,
        })
    }

    pub(super) fn domain<'a>(&self, cluster: &'a Cluster) -> Option<&'a str> {
        let values = if self.is_claim {
            &cluster.claims
        } else {
            cluster.labels()
        };
        values.get(&self.key).map(String::as_str)
    }
}

/// How many of each domain of one constraint are chosen.
struct Tally<'a> {
    constraint: &'a Constraint,
    chosen: HashMap<&'a str, usize>,
}

impl<'a> Tally<'a> {
    fn new(constraint: &'a Constraint, ranked: &[(&'a Cluster, Decision)]) -> Self {
        let domains = ranked.iter().filter_map(|(it, _)| constraint.domain(it));
        Self {
            constraint,
            chosen: domains.map(|domain| (domain, 0)).collect(),
        }
    }

    /// Whether one more of the cluster's domain keeps the spread even enough. Clusters in no
    /// domain never do.
    fn admits(&self, cluster: &Cluster) -> bool {
        let domain = self.constraint.domain(cluster);
        let Some(count) = domain.and_then(|domain| self.chosen.get(domain)) else {
            return false;
        };
        let fewest = self.chosen.values().min().copied().unwrap_or(0);
        count + 1 - fewest <= self.constraint.max_skew
    }
}

/// The chosen ones, in the order of their rank.
pub(super) fn choose<'a>(
    constraints: &'a [Constraint],
    mut ranked: Vec<(&'a Cluster, Decision)>,
    number: Option<usize>,
) -> Vec<(&'a Cluster, Decision)> {
    let number = number.unwrap_or(usize::MAX);
    let is_wish_only = constraints.iter().all(|constraint| !constraint.is_strict);
    if is_wish_only && (constraints.is_empty() || number >= ranked.len()) {
        ranked.truncate(number);
        return ranked;
    }
    let mut tallies: Vec<Tally<'_>> = constraints
        .iter()
        .map(|constraint| Tally::new(constraint, &ranked))
        .collect();
    let mut is_chosen = vec![false; ranked.len()];
    for _ in 0..number.min(ranked.len()) {
        let broken = |cluster: &Cluster| {
            let broken = tallies.iter().filter(|tally| !tally.admits(cluster));
            broken.fold((0, 0), |(strict, wishes), tally| {
                if tally.constraint.is_strict {
                    (strict + 1, wishes)
                } else {
                    (strict, wishes + 1)
                }
            })
        };
        let best = ranked
            .iter()
            .enumerate()
            .filter(|(index, _)| !is_chosen[*index])
            .map(|(index, (cluster, _))| (broken(cluster), index))
            .filter(|((strict, _), _)| *strict == 0)
            .min();
        let Some((_, best)) = best else {
            break;
        };
        is_chosen[best] = true;
        for tally in &mut tallies {
            if let Some(domain) = tally.constraint.domain(ranked[best].0) {
                *tally.chosen.entry(domain).or_default() += 1;
            }
        }
    }
    let chosen = ranked.into_iter().zip(is_chosen);
    chosen
        .filter(|(_, is_chosen)| *is_chosen)
        .map(|(it, _)| it)
        .collect()
}
