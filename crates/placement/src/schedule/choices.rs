//! How often clusters are chosen, by whomever: kept up to date decision by decision, so that nobody
//! has to count a fleet again.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// How often each cluster is chosen by all placements together.
#[derive(Debug, Clone, Default)]
pub struct Choices {
    /// None of zero.
    counts: HashMap<Arc<str>, u32>,
    /// How many clusters are chosen so often.
    clusters: BTreeMap<u32, usize>,
}

impl Choices {
    /// Somebody has chosen a cluster.
    pub fn add(&mut self, cluster: &Arc<str>) {
        let before = self.count(cluster);
        self.set(cluster, before, before.saturating_add(1));
    }

    /// Somebody has given a cluster up.
    pub fn remove(&mut self, cluster: &Arc<str>) {
        let before = self.count(cluster);
        self.set(cluster, before, before.saturating_sub(1));
    }

    /// How many clusters somebody has chosen.
    pub fn len(&self) -> usize {
        self.counts.len()
    }

    /// Whether nobody has chosen any.
    pub fn is_empty(&self) -> bool {
        self.counts.is_empty()
    }

    /// What is left without the choices of one placement. Costs as much as these are.
    pub fn without<'a>(&'a self, own: impl IntoIterator<Item = &'a Arc<str>>) -> Elsewhere<'a> {
        let mut counts: HashMap<&str, u32> = HashMap::new();
        for cluster in own {
            *counts.entry(cluster).or_default() += 1;
        }
        let mut elsewhere = Elsewhere {
            all: self,
            own: counts,
            most: 0,
        };
        elsewhere.most = elsewhere.find_most();
        elsewhere
    }

    fn count(&self, cluster: &str) -> u32 {
        self.counts.get(cluster).copied().unwrap_or(0)
    }

    fn set(&mut self, cluster: &Arc<str>, before: u32, after: u32) {
        if let Some(clusters) = self.clusters.get_mut(&before) {
            *clusters = clusters.saturating_sub(1);
            if *clusters == 0 {
                self.clusters.remove(&before);
            }
        }
        if after == 0 {
            self.counts.remove(cluster);
        } else {
            self.counts.insert(cluster.clone(), after);
            *self.clusters.entry(after).or_default() += 1;
        }
    }
}

/// How often clusters are chosen by others than one placement.
#[derive(Debug)]
pub struct Elsewhere<'a> {
    all: &'a Choices,
    /// How often that placement chose them: once, and twice while they move between objects.
    own: HashMap<&'a str, u32>,
    most: u32,
}

impl Elsewhere<'_> {
    /// How often others chose a cluster.
    pub(super) fn count(&self, cluster: &str) -> u32 {
        let own = self.own.get(cluster).copied().unwrap_or(0);
        self.all.count(cluster).saturating_sub(own)
    }

    /// How often others chose the cluster that they chose most often.
    pub(super) fn most(&self) -> u32 {
        self.most
    }

    fn find_most(&self) -> u32 {
        let mut of_own: BTreeMap<u32, usize> = BTreeMap::new();
        let mut most = 0;
        for cluster in self.own.keys() {
            most = most.max(self.count(cluster));
            *of_own.entry(self.all.count(cluster)).or_default() += 1;
        }
        // Those that are only chosen elsewhere, the most popular first.
        let foreign = self.all.clusters.iter().rev().find(|(count, clusters)| {
            let own = of_own.get(count).copied().unwrap_or(0);
            **clusters > own
        });
        foreign.map_or(most, |(count, _)| most.max(*count))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name(cluster: u8) -> Arc<str> {
        format!("c{cluster}").into()
    }

    proptest! {
        #[test]
        fn what_is_kept_up_to_date_is_what_counting_gives(
            others in prop::collection::vec(0_u8..6, 0..20),
            given_up in prop::collection::vec(0_u8..6, 0..10),
            own in prop::collection::vec(0_u8..8, 0..6),
        ) {
            let mut choices = Choices::default();
            let mut counted: HashMap<Arc<str>, u32> = HashMap::new();
            for cluster in others {
                choices.add(&name(cluster));
                *counted.entry(name(cluster)).or_default() += 1;
            }
            for cluster in given_up {
                choices.remove(&name(cluster));
                let count = counted.entry(name(cluster)).or_default();
                *count = count.saturating_sub(1);
            }
            let own: Vec<Arc<str>> = own.into_iter().map(name).collect();
            for cluster in &own {
                choices.add(cluster);
            }
            let elsewhere = choices.without(&own);
            prop_assert_eq!(elsewhere.most(), counted.values().max().copied().unwrap_or(0));
            for cluster in 0..8 {
                let cluster = name(cluster);
                let count = counted.get(&cluster).copied().unwrap_or(0);
                prop_assert_eq!(elsewhere.count(&cluster), count);
            }
            for cluster in &own {
                choices.remove(cluster);
            }
            prop_assert_eq!(choices.len(), counted.values().filter(|it| **it > 0).count());
        }
    }
}
