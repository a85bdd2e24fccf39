//! The clusters in question, indexed once per decision.

use std::borrow::Cow;
use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::status::{ClusterStatus, Group, GroupKey};
use super::strategy::MandatoryGroup;
use super::{Compat, Input};

/// Groups and what is known of their clusters.
#[derive(Debug)]
pub(super) struct Fleet<'a> {
    /// In the order of their indexes.
    pub(super) groups: Vec<&'a Group>,
    group_of: HashMap<&'a str, &'a GroupKey>,
    /// What is known of clusters in groups, in the order it came.
    pub(super) current: Vec<&'a ClusterStatus>,
    /// The same by cluster.
    known: HashMap<&'a str, &'a ClusterStatus>,
    /// What is known of clusters in no group, in the order it came.
    pub(super) removed: Vec<ClusterStatus>,
    /// Every cluster once, sorted.
    sorted: Vec<&'a Arc<str>>,
}

impl<'a> Fleet<'a> {
    pub(super) fn new(input: &Input<'a>) -> Self {
        let mut groups: Vec<&Group> = input.groups.iter().collect();
        groups.sort_by(|a, b| (a.key.index, &a.key.name).cmp(&(b.key.index, &b.key.name)));
        if input.compat == Compat::Upstream {
            // Upstream counts from 0 to the number of groups and never sees larger indexes.
            let count = groups.len();
            groups.retain(|group| usize::try_from(group.key.index).is_ok_and(|i| i < count));
        }
        let size = groups.iter().map(|group| group.clusters.len()).sum();
        let mut group_of = HashMap::with_capacity(size);
        for group in &groups {
            for cluster in &group.clusters {
                group_of.entry(&**cluster).or_insert(&group.key);
            }
        }
        let mut current = Vec::with_capacity(input.existing.len());
        let mut known = HashMap::with_capacity(input.existing.len());
        let mut removed = Vec::new();
        for status in input.existing {
            if !group_of.contains_key(&*status.cluster) {
                removed.push(status.clone());
                continue;
            }
            // Of a cluster that is there twice, the first counts.
            if let Entry::Vacant(entry) = known.entry(&*status.cluster) {
                entry.insert(status);
                current.push(status);
            }
        }
        Self {
            sorted: names(&groups),
            groups,
            group_of,
            current,
            known,
            removed,
        }
    }

    /// The group a cluster is in now.
    pub(super) fn group_of(&self, cluster: &str) -> Option<&'a GroupKey> {
        self.group_of.get(cluster).copied()
    }

    /// What is known of a cluster.
    pub(super) fn known(&self, cluster: &str) -> Option<&'a ClusterStatus> {
        self.known.get(cluster).copied()
    }

    /// What is known, sorted by cluster.
    pub(super) fn current_by_name(&self) -> Vec<&'a ClusterStatus> {
        let mut current = self.current.clone();
        current.sort_by(|a, b| a.cluster.cmp(&b.cluster));
        current
    }

    /// Every cluster once, sorted.
    pub(super) fn clusters(&self) -> &[&'a Arc<str>] {
        &self.sorted
    }

    /// The clusters of some of the groups once, sorted.
    pub(super) fn clusters_of(&self, groups: &[&'a Group]) -> Cow<'_, [&'a Arc<str>]> {
        if groups.len() == self.groups.len() {
            Cow::Borrowed(&self.sorted)
        } else {
            Cow::Owned(names(groups))
        }
    }

    /// The groups that are mandatory and those that are not, each in order.
    pub(super) fn split(&self, mandatory: &[MandatoryGroup]) -> (Vec<&'a Group>, Vec<&'a Group>) {
        let mut names = HashSet::new();
        let mut indexes = HashSet::new();
        for group in mandatory {
            if group.group_name.is_empty() {
                indexes.insert(group.group_index);
            } else {
                names.insert(group.group_name.as_str());
            }
        }
        self.groups.iter().partition(|group| {
            names.contains(&*group.key.name) || indexes.contains(&group.key.index)
        })
    }
}

fn names<'a>(groups: &[&'a Group]) -> Vec<&'a Arc<str>> {
    let mut names: Vec<&Arc<str>> = groups.iter().flat_map(|group| &group.clusters).collect();
    names.sort_unstable();
    names.dedup();
    names
}
