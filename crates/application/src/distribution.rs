//! Which cluster gets how many replicas of a component.
//!
//! A placement says which clusters get how much together: a share of the replicas that the component has, or a number. Promises,
//! which are property tests:
//!
//! * Shares are rounded so that together they are as many as the rounded sum of the shares (largest remainder first), and never
//!   more than the component has.
//! * Clusters of one entry differ by one replica at most; the first by name get the extra ones.
//! * The same clusters in any order get the same.

pub mod works;

use std::collections::BTreeMap;

use bellwether_api::delivery::DistributionPlacement;
use bellwether_api::meta::IntOrString;

use crate::world::Cluster;

/// How much the clusters of an entry get.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Share {
    /// So many hundredths of what there is.
    Percent(u32),
    /// So many replicas, whatever there is.
    Count(i64),
}

/// An entry of a placement, with the clusters that it selects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Selected {
    /// How much they get together.
    pub share: Share,
    /// Their names, sorted.
    pub clusters: Vec<String>,
    /// The namespace that objects go to instead of their own.
    pub namespace: String,
}

/// Why something cannot be distributed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DistributionError {
    /// It never can be.
    #[error("{0}")]
    Invalid(String),
    /// It can be as soon as there are clusters for it.
    #[error("no cluster matches {0}")]
    NoCluster(String),
}

impl DistributionError {
    /// True if only another placement helps.
    pub fn is_final(&self) -> bool {
        matches!(self, Self::Invalid(_))
    }
}

/// Reads a placement, and finds the clusters that it selects.
pub fn select(
    placement: &[DistributionPlacement],
    clusters: &[Cluster],
) -> Result<Vec<Selected>, DistributionError> {
    if placement.is_empty() {
        return Err(DistributionError::Invalid(
            "placement has no entry: name clusters by clusterSelector".to_owned(),
        ));
    }
    let mut selected = Vec::with_capacity(placement.len());
    let mut percent = 0;
    for (index, entry) in placement.iter().enumerate() {
        let share = share(entry.replicas.as_ref()).map_err(|problem| {
            DistributionError::Invalid(format!("placement[{index}].replicas: {problem}"))
        })?;
        if let Share::Percent(part) = share {
            percent += part;
        }
        let mut names: Vec<String> = clusters
            .iter()
            .filter(|cluster| is_selected(&entry.cluster_selector, &cluster.labels))
            .map(|cluster| cluster.name.clone())
            .collect();
        names.sort();
        names.dedup();
        selected.push(Selected {
            share,
            clusters: names,
            namespace: entry.namespace.clone(),
        });
    }
    if percent > 100 {
        return Err(DistributionError::Invalid(format!(
            "placement asks for {percent}% of the replicas: shares must not exceed 100% together"
        )));
    }
    let missing = placement
        .iter()
        .zip(&selected)
        .find(|(_, found)| found.clusters.is_empty());
    if let Some((entry, _)) = missing {
        return Err(DistributionError::NoCluster(describe(
            &entry.cluster_selector,
        )));
    }
    Ok(selected)
}

fn is_selected(selector: &BTreeMap<String, String>, labels: &BTreeMap<String, String>) -> bool {
    selector
        .iter()
        .all(|(key, value)| labels.get(key) == Some(value))
}

/// A selector as messages have it: `{region: east}`.
fn describe(selector: &BTreeMap<String, String>) -> String {
    let pairs: Vec<String> = selector
        .iter()
        .map(|(key, value)| format!("{key}: {value}"))
        .collect();
    format!("{{{}}}", pairs.join(", "))
}

/// Reads a share: `70%`, `3` or `"3"`; everything if nothing is said.
fn share(text: Option<&IntOrString>) -> Result<Share, String> {
    let Some(text) = text else {
        return Ok(Share::Percent(100));
    };
    let text = match text {
        IntOrString::Int(number) => number.to_string(),
        IntOrString::String(text) => text.trim().to_owned(),
    };
    let wrong = || format!("{text:?} is not a number or a percentage, such as 3 or \"70%\"");
    if let Some(percent) = text.strip_suffix('%') {
        let percent: u32 = percent.trim().parse().map_err(|_| wrong())?;
        if percent > 100 {
            return Err(format!("{text:?} is more than there is"));
        }
        return Ok(Share::Percent(percent));
    }
    let count: i64 = text.parse().map_err(|_| wrong())?;
    if count < 0 {
        Err(wrong())
    } else {
        Ok(Share::Count(count))
    }
}

/// Replicas by cluster, for a component that has so many in all. Clusters that get none are not in it, unless there are none to
/// get.
pub fn distribute(selected: &[Selected], total: i64) -> BTreeMap<String, i64> {
    let mut replicas = BTreeMap::new();
    for (entry, amount) in selected.iter().zip(amounts(selected, total)) {
        let count = i64::try_from(entry.clusters.len()).unwrap_or(i64::MAX);
        for (index, cluster) in (0..).zip(&entry.clusters) {
            let extra = i64::from(index < amount % count);
            let own = replicas.entry(cluster.clone()).or_insert(0);
            *own += amount / count + extra;
        }
    }
    if replicas.values().any(|replicas| *replicas > 0) {
        replicas.retain(|_, replicas| *replicas > 0);
    }
    replicas
}

/// How many replicas each entry gets.
fn amounts(selected: &[Selected], total: i64) -> Vec<i64> {
    let total = total.max(0);
    // Hundredths of a replica: the whole ones are given, the rest goes where most is left over.
    let exact: Vec<i64> = selected
        .iter()
        .map(|entry| match entry.share {
            Share::Percent(percent) => total.saturating_mul(i64::from(percent)),
            Share::Count(count) => count.saturating_mul(100),
        })
        .collect();
    let mut amounts: Vec<i64> = exact.iter().map(|exact| exact / 100).collect();
    let is_share = |index: &usize| matches!(selected[*index].share, Share::Percent(_));
    let of_shares: i64 = (0..exact.len())
        .filter(is_share)
        .map(|index| exact[index])
        .sum();
    let given: i64 = (0..exact.len())
        .filter(is_share)
        .map(|index| amounts[index])
        .sum();
    let mut left = (of_shares + 50) / 100 - given;
    let mut order: Vec<usize> = (0..exact.len())
        .filter(is_share)
        .filter(|index| exact[*index] % 100 > 0)
        .collect();
    order.sort_by_key(|index| std::cmp::Reverse(exact[*index] % 100));
    for index in order {
        if left == 0 {
            break;
        }
        amounts[index] += 1;
        left -= 1;
    }
    amounts
}

/// What a placement leaves over of so many replicas, for people; nothing if it leaves nothing.
pub fn left_over(selected: &[Selected], total: i64) -> Option<String> {
    let percent: u32 = selected
        .iter()
        .map(|entry| match entry.share {
            Share::Percent(percent) => percent,
            Share::Count(_) => 0,
        })
        .sum();
    if selected
        .iter()
        .all(|entry| matches!(entry.share, Share::Percent(_)))
    {
        return (percent < 100).then(|| format!("{}% of replicas unassigned", 100 - percent));
    }
    let placed: i64 = amounts(selected, total).iter().sum();
    (placed < total).then(|| format!("{} of {total} replicas unassigned", total - placed))
}

#[cfg(test)]
mod tests;
