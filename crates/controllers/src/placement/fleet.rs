//! What the scheduler knows, and which placements a change can affect.
//!
//! Cost follows change: a cluster whose labels change affects the placements that ask for its old
//! or new labels, found by an [index](mod@index), and of these only those whose decision can differ;
//! and such a placement looks at the clusters that have a label which it asks for.

mod index;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use bellwether_api::cluster::{
    AddOnPlacementScore, ClusterDecision, ManagedCluster, ManagedClusterSet,
    ManagedClusterSetBinding, Placement, PlacementDecision, names,
};
use bellwether_placement::schedule::{
    Choices, Cluster, ClusterSet, Decision, DecisionObject, Placement as Rules, ScoreBoard, View,
    affects,
};
use bellwether_runtime::{Change, ObjectKey};
use jiff::Timestamp;

use index::{Index, Label};

/// Everything that decisions are made from.
#[derive(Debug, Clone, Default)]
pub(super) struct Fleet {
    /// In any order, so that removal is cheap.
    clusters: Vec<Cluster>,
    /// Where each cluster is among them.
    positions: HashMap<Arc<str>, usize>,
    sets: Vec<ClusterSet>,
    /// How many members each of them has.
    members: HashMap<String, usize>,
    /// The names of bindings by namespace.
    bindings: HashMap<Arc<str>, BTreeSet<String>>,
    scores: ScoreBoard,
    placements: BTreeMap<ObjectKey, IndexedPlacement>,
    /// Who asks for a label, and who has it.
    index: Index,
    /// What is written, by placement and name.
    written: HashMap<ObjectKey, BTreeMap<String, Written>>,
    /// How often each cluster is chosen, by whomever.
    chosen: Choices,
    /// Whether everything is known that there was at the beginning.
    is_complete: bool,
}

/// A placement.
#[derive(Debug, Clone)]
pub(super) struct IndexedPlacement {
    /// As it was last read or written.
    pub(super) object: Arc<Placement>,
    /// What it asks for.
    pub(super) rules: Rules,
    /// Where it is in the index; none: among those that ask for no particular label.
    anchors: Option<Vec<Label>>,
}

/// A `PlacementDecision` as it was last read or written.
#[derive(Debug, Clone)]
pub(super) struct Written {
    /// Its labels and decisions.
    pub(super) content: DecisionObject,
    /// Which object it is.
    pub(super) uid: String,
    /// Which state of it.
    pub(super) resource_version: String,
}

impl Written {
    /// What a server says about a decision.
    pub(super) fn read(object: &PlacementDecision) -> Self {
        let metadata = &object.metadata;
        let label = |name: &'static str| {
            let value = metadata.labels.as_ref().and_then(|it| it.get(name));
            (name, value.cloned().unwrap_or_default())
        };
        let decision = |it: &ClusterDecision| Decision {
            cluster: it.cluster_name.as_str().into(),
            score: it.score.unwrap_or(0),
        };
        let decisions = object.status.iter().flat_map(|status| &status.decisions);
        Self {
            content: DecisionObject {
                name: metadata.name.clone().unwrap_or_default(),
                labels: [
                    label(names::label::PLACEMENT),
                    label(names::label::DECISION_GROUP_INDEX),
                    label(names::label::DECISION_GROUP_NAME),
                ],
                decisions: decisions.map(decision).collect(),
            },
            uid: metadata.uid.clone().unwrap_or_default(),
            resource_version: metadata.resource_version.clone().unwrap_or_default(),
        }
    }
}

/// Whether a state of an object is one that has been seen or overtaken.
fn is_old(seen: &str, known: &str) -> bool {
    match (seen.parse::<u64>(), known.parse::<u64>()) {
        (Ok(seen), Ok(known)) => seen <= known,
        _ => seen == known,
    }
}

impl Fleet {
    /// Everything is known: from now on, a change returns the placements that it affects. Returns all placements.
    pub(super) fn begin(&mut self) -> Vec<ObjectKey> {
        self.is_complete = true;
        let keys: Vec<ObjectKey> = self.placements.keys().cloned().collect();
        for key in &keys {
            self.index(key);
        }
        keys
    }

    /// A placement, if there is one to decide about.
    pub(super) fn known(&self, key: &ObjectKey) -> Option<&IndexedPlacement> {
        self.placements.get(key)
    }

    /// What is written for a placement, by name.
    pub(super) fn written(&self, key: &ObjectKey) -> impl Iterator<Item = &Written> {
        self.written
            .get(key)
            .into_iter()
            .flatten()
            .map(|(_, it)| it)
    }

    /// What is written under one name.
    pub(super) fn written_as(&self, key: &ObjectKey, name: &str) -> Option<&Written> {
        self.written.get(key)?.get(name)
    }

    /// Has a question answered with everything that a decision about a placement may look at.
    pub(super) fn view<T>(
        &self,
        key: &ObjectKey,
        placement: &Rules,
        now: Timestamp,
        ask: impl FnOnce(&View<'_>) -> T,
    ) -> T {
        let own = || self.written(key).flat_map(|it| &it.content.decisions);
        let decided: BTreeSet<Arc<str>> = own().map(|it| it.cluster.clone()).collect();
        let candidates: Option<Vec<&Cluster>> = self
            .known(key)
            .and_then(|known| known.anchors.as_deref())
            .map(|labels| {
                let places = self.index.having(labels).into_iter();
                places.filter_map(|at| self.clusters.get(at)).collect()
            });
        let empty = BTreeSet::new();
        ask(&View {
            placement,
            bindings: self.bindings.get(&key.namespace).unwrap_or(&empty),
            sets: &self.sets,
            clusters: &self.clusters,
            candidates: candidates.as_deref(),
            scores: &self.scores,
            decided: &decided,
            chosen_elsewhere: &self.chosen.without(own().map(|it| &it.cluster)),
            now,
        })
    }

    /// A cluster has come, changed or gone.
    pub(super) fn cluster(&mut self, change: &Change<'_, ManagedCluster>) -> Vec<ObjectKey> {
        let new = change
            .new
            .and_then(|object| Cluster::from_object(Arc::clone(object)));
        let old = self.replace(&change.key.name, new.clone());
        let (old, new) = (old.as_ref(), new.as_ref());
        let mut affected = self.count(old, new);
        if !self.is_complete {
            return Vec::new();
        }
        let mut candidates = self.index.asking([old, new].into_iter().flatten());
        candidates.retain(|key| self.is_concerned(key, old, new));
        affected.extend(candidates);
        affected.into_iter().collect()
    }

    /// Puts a cluster in the place of the one of that name, and returns that one.
    fn replace(&mut self, name: &Arc<str>, new: Option<Cluster>) -> Option<Cluster> {
        let at = self.positions.get(name).copied();
        if let Some((at, old)) = at.and_then(|at| Some((at, self.clusters.get(at)?))) {
            self.index.leave(old, at);
        }
        match (at, new) {
            (None, None) => None,
            (None, Some(new)) => {
                let at = self.clusters.len();
                self.index.enter(&new, at);
                self.positions.insert(new.name.clone(), at);
                self.clusters.push(new);
                None
            }
            (Some(at), Some(new)) => {
                self.index.enter(&new, at);
                Some(std::mem::replace(&mut self.clusters[at], new))
            }
            (Some(at), None) => {
                self.positions.remove(name);
                let old = self.clusters.swap_remove(at);
                if let Some(moved) = self.clusters.get(at) {
                    self.index.leave(moved, self.clusters.len());
                    self.index.enter(moved, at);
                    self.positions.insert(moved.name.clone(), at);
                }
                Some(old)
            }
        }
    }

    /// Counts the members of sets again when a cluster has changed, and returns the placements that
    /// may choose from a set which has its first member by that, or has lost its last.
    fn count(&mut self, old: Option<&Cluster>, new: Option<&Cluster>) -> BTreeSet<ObjectKey> {
        let mut turned = Vec::new();
        for set in &self.sets {
            let (was, is) = (is_member(set, old), is_member(set, new));
            if was == is {
                continue;
            }
            let count = self.members.entry(set.name.clone()).or_default();
            let before = *count;
            *count = if is {
                before.saturating_add(1)
            } else {
                before.saturating_sub(1)
            };
            if before == 0 || *count == 0 {
                turned.push(set.name.clone());
            }
        }
        let turned = turned.iter();
        turned.flat_map(|set| self.choosing_from(set)).collect()
    }

    /// The placements that may choose from a set.
    fn choosing_from(&self, set: &str) -> Vec<ObjectKey> {
        let bound = self.bindings.iter().filter(|(_, sets)| sets.contains(set));
        let in_namespace = |(namespace, _): (&Arc<str>, _)| self.of_namespace(namespace);
        bound.flat_map(in_namespace).collect()
    }

    fn is_concerned(
        &self,
        key: &ObjectKey,
        before: Option<&Cluster>,
        after: Option<&Cluster>,
    ) -> bool {
        let (empty, nothing) = (BTreeSet::new(), Choices::default());
        self.placements.get(key).is_some_and(|known| {
            let view = View {
                placement: &known.rules,
                bindings: self.bindings.get(&key.namespace).unwrap_or(&empty),
                sets: &self.sets,
                clusters: &[],
                candidates: None,
                scores: &self.scores,
                decided: &BTreeSet::new(),
                chosen_elsewhere: &nothing.without([]),
                now: Timestamp::UNIX_EPOCH,
            };
            affects(&view, before, after)
        })
    }

    /// A set has come, changed or gone.
    pub(super) fn set(&mut self, change: &Change<'_, ManagedClusterSet>) -> Vec<ObjectKey> {
        let name = &*change.key.name;
        let selector = |object: Option<&Arc<ManagedClusterSet>>| {
            object.map(|object| object.spec.cluster_selector.clone())
        };
        if change.old.is_some() && selector(change.old) == selector(change.new) {
            return Vec::new();
        }
        self.sets.retain(|set| set.name != name);
        self.members.remove(name);
        if let Some(object) = change.new {
            let set = ClusterSet::from(&**object);
            if let Some(error) = set.problem() {
                tracing::warn!(name, %error, "invalid ManagedClusterSet: it has no members");
            }
            let members = self.clusters.iter().filter(|it| is_member(&set, Some(it)));
            self.members.insert(name.to_owned(), members.count());
            self.sets.push(set);
        }
        self.index_again(self.choosing_from(name))
    }

    /// A binding has come or gone.
    pub(super) fn binding(
        &mut self,
        change: &Change<'_, ManagedClusterSetBinding>,
    ) -> Vec<ObjectKey> {
        let sets = self
            .bindings
            .entry(change.key.namespace.clone())
            .or_default();
        let is_news = match change.new {
            Some(_) => sets.insert(change.key.name.to_string()),
            None => sets.remove(&*change.key.name),
        };
        if sets.is_empty() {
            self.bindings.remove(&change.key.namespace);
        }
        if !is_news {
            return Vec::new();
        }
        let affected = self.of_namespace(&change.key.namespace);
        self.index_again(affected)
    }

    /// Scores of a cluster have come, changed or gone.
    pub(super) fn score(&mut self, change: &Change<'_, AddOnPlacementScore>) -> Vec<ObjectKey> {
        let (cluster, name) = (&change.key.namespace, &*change.key.name);
        match change.new {
            Some(object) => self.scores.insert(object),
            None => self.scores.remove(cluster, name),
        }
        let cluster = self.positions.get(cluster).map(|at| &self.clusters[*at]);
        if !self.is_complete {
            return Vec::new();
        }
        // As if the cluster had come: anyone who may not choose it does not mind its scores.
        let concerned = self.placements.iter().filter(|(key, known)| {
            known.rules.uses_scores(name) && self.is_concerned(key, None, cluster)
        });
        concerned.map(|(key, _)| key.clone()).collect()
    }

    /// A placement has come, changed or gone.
    pub(super) fn placement(&mut self, change: &Change<'_, Placement>) -> Vec<ObjectKey> {
        let Some(object) = change.new else {
            self.forget(change.key);
            return Vec::new();
        };
        let seen = object.metadata.resource_version.as_deref();
        let uid = &object.metadata.uid;
        let known = self.placements.get_mut(change.key);
        if let Some(known) = known.filter(|known| known.object.metadata.uid == *uid) {
            let version = known.object.metadata.resource_version.as_deref();
            if is_old(seen.unwrap_or_default(), version.unwrap_or_default()) {
                return Vec::new();
            }
            let is_same = known.object.spec == object.spec;
            known.object = Arc::clone(object);
            if is_same {
                // It asks for the same labels as before.
                return if self.is_complete {
                    vec![change.key.clone()]
                } else {
                    Vec::new()
                };
            }
            known.rules = Rules::from(&**object);
        } else {
            let known = IndexedPlacement {
                object: Arc::clone(object),
                rules: Rules::from(&**object),
                anchors: None,
            };
            self.forget(change.key);
            self.placements.insert(change.key.clone(), known);
        }
        self.index_again(vec![change.key.clone()])
    }

    /// A decision has come, changed or gone, by us or by others.
    pub(super) fn decision(&mut self, change: &Change<'_, PlacementDecision>) -> Vec<ObjectKey> {
        let Some(object) = change.new.or(change.old) else {
            return Vec::new();
        };
        let Some(placement) = placement_of(object) else {
            return Vec::new();
        };
        let seen = object.metadata.resource_version.as_deref();
        let seen = seen.unwrap_or_default();
        let known = self.written.get(&placement);
        let known = known.and_then(|objects| objects.get(&*change.key.name));
        let is_news = match (known, change.new) {
            (Some(known), Some(_)) => !is_old(seen, &known.resource_version),
            // The last state of what is gone; what is known may be there again.
            (Some(known), None) => Some(&known.uid) == object.metadata.uid.as_ref(),
            (None, new) => new.is_some(),
        };
        if !is_news {
            return Vec::new();
        }
        match change.new {
            Some(_) => self.record(&placement, Written::read(object)),
            None => self.remove(&placement, &change.key.name),
        }
        if self.is_complete {
            vec![placement]
        } else {
            Vec::new()
        }
    }

    /// A decision has been written.
    pub(super) fn record(&mut self, placement: &ObjectKey, written: Written) {
        self.remove(placement, &written.content.name);
        for decision in &written.content.decisions {
            self.chosen.add(&decision.cluster);
        }
        let objects = self.written.entry(placement.clone()).or_default();
        objects.insert(written.content.name.clone(), written);
    }

    /// A decision has been deleted.
    pub(super) fn remove(&mut self, placement: &ObjectKey, name: &str) {
        let Some(objects) = self.written.get_mut(placement) else {
            return;
        };
        let Some(old) = objects.remove(name) else {
            return;
        };
        if objects.is_empty() {
            self.written.remove(placement);
        }
        for decision in old.content.decisions {
            self.chosen.remove(&decision.cluster);
        }
    }

    /// A placement's status has been written.
    pub(super) fn update(&mut self, key: &ObjectKey, object: Placement) {
        let known = self.placements.get_mut(key);
        if let Some(known) = known.filter(|it| it.object.metadata.uid == object.metadata.uid)
            && known.object.spec == object.spec
        {
            known.object = Arc::new(object);
        }
    }

    fn of_namespace(&self, namespace: &str) -> Vec<ObjectKey> {
        let placements = self.placements.range(ObjectKey::new(namespace, "")..);
        placements
            .map(|(key, _)| key)
            .take_while(|key| &*key.namespace == namespace)
            .cloned()
            .collect()
    }

    fn index_again(&mut self, affected: Vec<ObjectKey>) -> Vec<ObjectKey> {
        if !self.is_complete {
            return Vec::new();
        }
        for key in &affected {
            self.index(key);
        }
        affected
    }

    /// Puts a placement where changes of clusters find it.
    fn index(&mut self, key: &ObjectKey) {
        self.unindex(key);
        let anchors = self.anchors(key);
        self.index.insert(key, anchors.as_deref(), &self.clusters);
        if let Some(known) = self.placements.get_mut(key) {
            known.anchors = anchors;
        }
    }

    fn unindex(&mut self, key: &ObjectKey) {
        let known = self.placements.get_mut(key);
        let anchors = known.and_then(|it| it.anchors.take());
        self.index.remove(key, &anchors.unwrap_or_default());
    }

    /// Labels of which every cluster that a placement could choose has one: those its predicates
    /// ask for, or those of its sets.
    fn anchors(&self, key: &ObjectKey) -> Option<Vec<Label>> {
        let rules = &self.placements.get(key)?.rules;
        let owned = |(label, value): (&str, &str)| (label.to_owned(), value.to_owned());
        if let Some(anchors) = rules.anchors() {
            return Some(anchors.into_iter().map(owned).collect());
        }
        let bindings = self.bindings.get(&key.namespace);
        let is_bound = |set: &&ClusterSet| bindings.is_some_and(|it| it.contains(&set.name));
        let asked = &rules.cluster_sets;
        let sets = self.sets.iter().filter(is_bound);
        let sets = sets.filter(|set| asked.is_empty() || asked.contains(&set.name));
        sets.map(|set| set.label().map(owned)).collect()
    }

    fn forget(&mut self, key: &ObjectKey) {
        self.unindex(key);
        self.placements.remove(key);
    }
}

/// Whether a cluster counts for a set.
fn is_member(set: &ClusterSet, cluster: Option<&Cluster>) -> bool {
    cluster.is_some_and(|cluster| !cluster.is_deleting && set.contains(cluster))
}

/// The placement that a decision belongs to.
fn placement_of(object: &PlacementDecision) -> Option<ObjectKey> {
    let labels = object.metadata.labels.as_ref()?;
    let name = labels.get(names::label::PLACEMENT)?;
    Some(ObjectKey::new(object.metadata.namespace.as_deref()?, name))
}

#[cfg(test)]
mod tests;
