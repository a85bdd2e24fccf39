//! Who asks for a label, and who has it: what makes a change cost as much as it changes.
//!
//! An anchor is a label of which every cluster that a placement could choose has one. By its anchors
//! a placement is found when a cluster comes to have such a label or ceases to, and by them it finds
//! the clusters that it has to look at, however many others there are.

use std::collections::{BTreeSet, HashMap};

use bellwether_placement::schedule::Cluster;
use bellwether_runtime::ObjectKey;

/// A label and its value.
pub(super) type Label = (String, String);

/// Placements and clusters by label.
#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    /// Only labels that some placement asks for are kept.
    anchors: HashMap<Label, Anchor>,
    /// Placements that ask for no particular label.
    unanchored: BTreeSet<ObjectKey>,
}

#[derive(Debug, Clone, Default)]
struct Anchor {
    placements: BTreeSet<ObjectKey>,
    /// Where the clusters with this label are among all clusters.
    clusters: BTreeSet<usize>,
}

impl Index {
    /// Takes a placement in, with the labels that it asks for; none: it may choose anybody.
    pub(super) fn insert(
        &mut self,
        key: &ObjectKey,
        anchors: Option<&[Label]>,
        clusters: &[Cluster],
    ) {
        let Some(anchors) = anchors else {
            self.unanchored.insert(key.clone());
            return;
        };
        for label in anchors {
            let anchor = self.anchors.entry(label.clone()).or_insert_with(|| Anchor {
                placements: BTreeSet::new(),
                clusters: having(label, clusters),
            });
            anchor.placements.insert(key.clone());
        }
    }

    /// Forgets a placement, which is there with these labels.
    pub(super) fn remove(&mut self, key: &ObjectKey, anchors: &[Label]) {
        self.unanchored.remove(key);
        for label in anchors {
            if let Some(anchor) = self.anchors.get_mut(label) {
                anchor.placements.remove(key);
                if anchor.placements.is_empty() {
                    self.anchors.remove(label);
                }
            }
        }
    }

    /// A cluster is no longer at a place.
    pub(super) fn leave(&mut self, cluster: &Cluster, at: usize) {
        self.each_anchor(cluster, |anchor| {
            anchor.clusters.remove(&at);
        });
    }

    /// A cluster is at a place.
    pub(super) fn enter(&mut self, cluster: &Cluster, at: usize) {
        self.each_anchor(cluster, |anchor| {
            anchor.clusters.insert(at);
        });
    }

    /// The placements that could choose such a cluster.
    pub(super) fn asking<'a>(
        &self,
        clusters: impl Iterator<Item = &'a Cluster>,
    ) -> BTreeSet<ObjectKey> {
        let mut asking = self.unanchored.clone();
        for label in clusters.flat_map(Cluster::labels) {
            let anchor = self.anchors.get(&owned(label));
            asking.extend(anchor.into_iter().flat_map(|it| &it.placements).cloned());
        }
        asking
    }

    /// Where the clusters are that have one of these labels, each once.
    pub(super) fn having(&self, labels: &[Label]) -> Vec<usize> {
        let anchors = labels.iter().filter_map(|label| self.anchors.get(label));
        let mut places: Vec<usize> = anchors.flat_map(|it| &it.clusters).copied().collect();
        if labels.len() > 1 {
            places.sort_unstable();
            places.dedup();
        }
        places
    }

    fn each_anchor(&mut self, cluster: &Cluster, mut act: impl FnMut(&mut Anchor)) {
        if self.anchors.is_empty() {
            return;
        }
        for label in cluster.labels() {
            if let Some(anchor) = self.anchors.get_mut(&owned(label)) {
                act(anchor);
            }
        }
    }

    /// How many placements ask for no particular label, and how many labels are asked for.
    #[cfg(test)]
    pub(super) fn size(&self) -> (usize, usize) {
        (self.unanchored.len(), self.anchors.len())
    }
}

fn owned((key, value): (&String, &String)) -> Label {
    (key.clone(), value.clone())
}

fn having((key, value): &Label, clusters: &[Cluster]) -> BTreeSet<usize> {
    let places = clusters.iter().enumerate();
    places
        .filter(|(_, cluster)| cluster.labels().get(key) == Some(value))
        .map(|(at, _)| at)
        .collect()
}
