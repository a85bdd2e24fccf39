//! Sets of clusters: the two that every hub has, and what can be said of sets and bindings.

mod namespaces;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use bellwether_api::cluster::names::{annotation, condition, object, reason};
use bellwether_api::cluster::{
    ClusterSetManagedNamespace, GROUP, ManagedCluster, ManagedClusterSelector, ManagedClusterSet,
    ManagedClusterSetBinding, ManagedClusterSetSpec, SelectorType,
};
use bellwether_api::meta::{Condition, FALSE, LabelSelector, TRUE, Time, set_condition};
use bellwether_placement::schedule::ClusterSet;
use bellwether_runtime::{
    Cache, Change, Controller, Next, ObjectKey, Reconcile, created_by, unless_exists, write_status,
};
use futures::FutureExt as _;
use kube::{Api, ResourceExt as _};
use parking_lot::Mutex;
use serde_json::json;

use crate::hub::Hub;
use crate::registry::{Entry, Rule, Watched};

/// How long changes of clusters are gathered before sets count their members again: a thousand
/// clusters that join are counted a few times, not a thousand times.
const GATHER: Duration = Duration::from_millis(200);

/// What is reconciled.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Key {
    Set(Arc<str>),
    Binding(ObjectKey),
    /// The namespaces that sets want on a cluster.
    Namespaces(Arc<str>),
}

impl std::fmt::Display for Key {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Set(name) => write!(formatter, "set {name}"),
            Self::Binding(key) => write!(formatter, "binding {key}"),
            Self::Namespaces(cluster) => write!(formatter, "namespaces of {cluster}"),
        }
    }
}

/// The controller of sets of clusters.
pub const ENTRY: Entry = Entry {
    name: "cluster-set",
    about: "keeps the default sets, and reports which clusters sets and bindings have",
    watches: &[
        Watched::kind::<ManagedCluster>(),
        Watched::kind::<ManagedClusterSet>(),
        Watched::kind::<ManagedClusterSetBinding>(),
    ],
    rights: &[
        Rule {
            group: GROUP,
            resources: &["managedclustersets"],
            verbs: &["create", "update"],
        },
        Rule {
            group: GROUP,
            resources: &[
                "managedclusters/status",
                "managedclustersetbindings/status",
                "managedclustersets/status",
            ],
            verbs: &["patch"],
        },
    ],
    run: |hub, _| run(hub).boxed(),
};

/// Keeps sets and bindings up to date, until it is dropped.
pub async fn run(hub: Hub) {
    let members: Arc<Mutex<Members>> = Arc::default();
    let [of_sets, of_clusters, wanted] = [(); 3].map(|()| Arc::clone(&members));
    let (clusters, bindings) = (hub.cache::<ManagedCluster>(), hub.cache());
    let of_binding = |change: &Change<'_, _>| [Key::Binding(change.key.clone())];
    let all = bindings.clone();
    let built_in = [object::DEFAULT_CLUSTER_SET, object::GLOBAL_CLUSTER_SET];
    Controller::new(ENTRY.name, &hub.clock, &hub.metrics)
        .on(&hub.cache(), move |change| {
            set_changed(change, &of_sets, &all)
        })
        .on(&bindings, of_binding)
        .gather(GATHER, &clusters, move |change| {
            of_clusters.lock().cluster(change).into_iter().map(Key::Set)
        })
        .on(&clusters, move |change| {
            let name = &change.key.name;
            let written = change.new.map_or(&[][..], |object| written(object));
            let is_as_wanted =
                namespaces::are_as_wanted(written, &wanted.lock().namespaces_of(name));
            (!is_as_wanted).then(|| Key::Namespaces(name.clone()))
        })
        .begin_with(move || built_in.map(|set| Key::Set(set.into())))
        .workers(4)
        .run(Arc::new(ClusterSets {
            known: hub.cache(),
            bindings,
            clusters,
            hub,
            members,
        }))
        .await;
}

/// What a change of a set concerns: itself, the namespaces on its members, and its bindings if it comes
/// or goes.
fn set_changed(
    change: &Change<'_, ManagedClusterSet>,
    members: &Mutex<Members>,
    bindings: &Cache<ManagedClusterSetBinding>,
) -> Vec<Key> {
    let name = &change.key.name;
    let concerned = members.lock().set(name, change.new);
    let mut keys: Vec<Key> = concerned.into_iter().map(Key::Namespaces).collect();
    keys.push(Key::Set(name.clone()));
    if change.old.is_none() || change.new.is_none() {
        let of_set = bindings.list();
        let of_set = of_set
            .iter()
            .filter(|it| it.metadata.name.as_deref() == Some(name));
        keys.extend(of_set.map(|binding| Key::Binding(ObjectKey::of(&**binding))));
    }
    keys
}

/// Which clusters are in which sets, kept by what changes.
#[derive(Debug, Default)]
struct Members {
    sets: Vec<ClusterSet>,
    /// The very objects that the hub keeps; membership follows from their labels only.
    clusters: HashMap<Arc<str>, Arc<ManagedCluster>>,
    /// The namespaces that sets want on their members, of sets that want any.
    namespaces: HashMap<String, Vec<String>>,
}

impl Members {
    /// Takes a set in, and returns the clusters on which other namespaces are wanted by that.
    fn set(&mut self, name: &str, object: Option<&Arc<ManagedClusterSet>>) -> Vec<Arc<str>> {
        let wanted = object.map(|object| object.spec.managed_namespaces.as_slice());
        let wanted: Vec<String> = wanted
            .unwrap_or_default()
            .iter()
            .map(|it| it.name.clone())
            .collect();
        let is_of_interest = !wanted.is_empty() || self.namespaces.contains_key(name);
        let mut concerned = if is_of_interest {
            self.members(name)
        } else {
            Vec::new()
        };
        self.sets.retain(|set| set.name != name);
        self.sets
            .extend(object.map(|object| ClusterSet::from(&**object)));
        self.namespaces.remove(name);
        if !wanted.is_empty() {
            self.namespaces.insert(name.to_owned(), wanted);
            concerned.extend(self.members(name));
        }
        concerned
    }

    fn members(&self, name: &str) -> Vec<Arc<str>> {
        let set = self.sets.iter().find(|set| set.name == name);
        let clusters = self.clusters.iter();
        clusters
            .filter(|(_, cluster)| set.is_some_and(|set| is_in(set, cluster)))
            .map(|(name, _)| name.clone())
            .collect()
    }

    /// The namespaces that sets want on a cluster, with the set that does, in order.
    fn namespaces_of(&self, cluster: &str) -> BTreeSet<(String, String)> {
        let Some(cluster) = self.clusters.get(cluster) else {
            return BTreeSet::new();
        };
        let sets = self.sets.iter();
        sets.filter(|set| self.namespaces.contains_key(&set.name) && is_in(set, cluster))
            .flat_map(|set| {
                let names = self.namespaces.get(&set.name).into_iter().flatten();
                names.map(|name| (set.name.clone(), name.clone()))
            })
            .collect()
    }

    /// Takes a change in, and returns the sets that won or lost a member by it.
    fn cluster(&mut self, change: &Change<'_, ManagedCluster>) -> Vec<Arc<str>> {
        let name = &change.key.name;
        let old = match change.new {
            Some(new) => self.clusters.insert(Arc::clone(name), Arc::clone(new)),
            None => self.clusters.remove(name),
        };
        let is_member = |set: &ClusterSet, cluster: Option<&Arc<ManagedCluster>>| {
            cluster.is_some_and(|cluster| is_in(set, cluster))
        };
        let changed = self
            .sets
            .iter()
            .filter(|set| is_member(set, old.as_ref()) != is_member(set, change.new));
        changed.map(|set| set.name.as_str().into()).collect()
    }

    /// How many members a set has, or what is wrong with its selector.
    fn count(&self, name: &str) -> Result<usize, String> {
        let Some(set) = self.sets.iter().find(|set| set.name == name) else {
            return Ok(0);
        };
        match set.problem() {
            Some(problem) => Err(problem.to_string()),
            None => Ok(self.clusters.values().filter(|it| is_in(set, it)).count()),
        }
    }
}

fn is_in(set: &ClusterSet, cluster: &ManagedCluster) -> bool {
    match &cluster.metadata.labels {
        Some(labels) => set.has(labels),
        None => set.has(&BTreeMap::new()),
    }
}

struct ClusterSets {
    hub: Hub,
    known: Cache<ManagedClusterSet>,
    bindings: Cache<ManagedClusterSetBinding>,
    clusters: Cache<ManagedCluster>,
    members: Arc<Mutex<Members>>,
}

impl Reconcile for ClusterSets {
    type Key = Key;
    type Error = kube::Error;

    async fn reconcile(&self, key: &Key) -> Result<Next, kube::Error> {
        match key {
            Key::Set(name) => self.set(name).await?,
            Key::Binding(key) => self.binding(key).await?,
            Key::Namespaces(cluster) => self.namespaces(cluster).await?,
        }
        Ok(None)
    }
}

impl ClusterSets {
    async fn set(&self, name: &Arc<str>) -> Result<(), kube::Error> {
        let built_in = built_in(name);
        let Some(set) = self.known.get(&ObjectKey::cluster_scoped(name)) else {
            return match built_in {
                Some(selector) => self.create(name, selector).await,
                None => Ok(()),
            };
        };
        let is_left_alone = set.annotations().get(annotation::AUTO_UPDATE);
        if is_left_alone.is_none_or(|it| it != "false")
            && built_in.is_some()
            && set.spec.cluster_selector != built_in
        {
            let mut right = ManagedClusterSet::clone(&set);
            right.spec.cluster_selector = built_in;
            let api: Api<ManagedClusterSet> = Api::all(self.hub.client.clone());
            api.replace(name, &created_by(), &right).await?;
            // The watch brings it, and another look with it.
            return Ok(());
        }
        let mut conditions = set.status.clone().unwrap_or_default().conditions;
        if set_condition(&mut conditions, self.emptiness(name)) {
            let api: Api<ManagedClusterSet> = Api::all(self.hub.client.clone());
            write_status(&api, &set, &json!({ "conditions": conditions })).await?;
        }
        Ok(())
    }

    async fn create(
        &self,
        name: &str,
        selector: ManagedClusterSelector,
    ) -> Result<(), kube::Error> {
        let spec = ManagedClusterSetSpec {
            cluster_selector: Some(selector),
            ..ManagedClusterSetSpec::default()
        };
        let api: Api<ManagedClusterSet> = Api::all(self.hub.client.clone());
        let set = ManagedClusterSet::new(name, spec);
        unless_exists(api.create(&created_by(), &set).await).map(drop)
    }

    fn emptiness(&self, name: &str) -> Condition {
        let count = self.members.lock().count(name);
        let (status, reason, message) = emptiness(count);
        self.condition(condition::CLUSTER_SET_EMPTY, status, reason, message)
    }

    fn condition(&self, kind: &str, status: &str, reason: &str, message: String) -> Condition {
        Condition {
            type_: kind.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message,
            last_transition_time: Time(self.hub.clock.now()),
            observed_generation: None,
        }
    }

    async fn binding(&self, key: &ObjectKey) -> Result<(), kube::Error> {
        let Some(binding) = self.bindings.get(key) else {
            return Ok(());
        };
        let set = &binding.spec.cluster_set;
        let exists = self.known.get(&ObjectKey::cluster_scoped(set)).is_some();
        let (status, reason, message) = if exists {
            (TRUE, reason::CLUSTER_SET_BOUND, String::new())
        } else {
            let message = format!("ManagedClusterSet {set} is not found");
            (FALSE, reason::CLUSTER_SET_NOT_FOUND, message)
        };
        let bound = self.condition(condition::BOUND, status, reason, message);
        let mut conditions = binding.status.clone().unwrap_or_default().conditions;
        if set_condition(&mut conditions, bound) {
            let client = self.hub.client.clone();
            let api: Api<ManagedClusterSetBinding> = Api::namespaced(client, &key.namespace);
            write_status(&api, &binding, &json!({ "conditions": conditions })).await?;
        }
        Ok(())
    }
}

impl ClusterSets {
    /// Writes down which namespaces the sets of a cluster want on it; its agent does the rest.
    async fn namespaces(&self, name: &Arc<str>) -> Result<(), kube::Error> {
        let Some(cluster) = self.clusters.get(&ObjectKey::cluster_scoped(name)) else {
            return Ok(());
        };
        let wanted = self.members.lock().namespaces_of(name);
        let written = written(&cluster);
        if namespaces::are_as_wanted(written, &wanted) {
            return Ok(());
        }
        let api: Api<ManagedCluster> = Api::all(self.hub.client.clone());
        let status = json!({"managedNamespaces": namespaces::of(written, &wanted)});
        write_status(&api, &cluster, &status).await?;
        Ok(())
    }
}

/// Status, reason and message of the condition `ClusterSetEmpty`.
fn emptiness(count: Result<usize, String>) -> (&'static str, &'static str, String) {
    match count {
        Err(problem) => {
            let message = format!("No ManagedCluster selected: {problem}");
            (TRUE, reason::INVALID_CLUSTER_SELECTOR, message)
        }
        Ok(0) => {
            let message = "No ManagedCluster selected".to_owned();
            (TRUE, reason::NO_CLUSTER_MATCHED, message)
        }
        Ok(count) => {
            let message = format!("{count} ManagedClusters selected");
            (FALSE, reason::CLUSTERS_SELECTED, message)
        }
    }
}

/// The namespaces that are written down for a cluster.
fn written(cluster: &ManagedCluster) -> &[ClusterSetManagedNamespace] {
    let status = cluster.status.as_ref();
    status.map_or(&[], |status| status.managed_namespaces.as_slice())
}

/// How the members of a set are selected that every hub has.
fn built_in(name: &str) -> Option<ManagedClusterSelector> {
    let (selector_type, label_selector) = match name {
        object::DEFAULT_CLUSTER_SET => (SelectorType::ExclusiveClusterSetLabel, None),
        object::GLOBAL_CLUSTER_SET => (SelectorType::LabelSelector, Some(LabelSelector::default())),
        _ => return None,
    };
    Some(ManagedClusterSelector {
        selector_type,
        label_selector,
        ..ManagedClusterSelector::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(name: &str, spec: &serde_json::Value) -> Arc<ManagedClusterSet> {
        let object = json!({"metadata": {"name": name}, "spec": spec});
        Arc::new(serde_json::from_value(object).unwrap())
    }

    #[test]
    fn an_invalid_selector_is_reported_in_the_condition() {
        let by_labels = |selector: serde_json::Value| json!({"clusterSelector": {"selectorType": "LabelSelector", "labelSelector": selector}});
        for (spec, reason, message) in [
            (
                by_labels(json!({})),
                reason::CLUSTERS_SELECTED,
                "1 ManagedClusters selected",
            ),
            (
                by_labels(json!({"matchLabels": {"zone": "a"}})),
                reason::NO_CLUSTER_MATCHED,
                "No ManagedCluster selected",
            ),
            (
                by_labels(json!({"matchExpressions": [{"key": "zone", "operator": "Near"}]})),
                reason::INVALID_CLUSTER_SELECTOR,
                "No ManagedCluster selected: clusterSelector:\"Near\" is not a valid label selector \
                 operator",
            ),
            (
                json!({"clusterSelector": {"selectorType": "ByName"}}),
                reason::INVALID_CLUSTER_SELECTOR,
                "No ManagedCluster selected: clusterSelector:unknown selectorType \"ByName\"",
            ),
        ] {
            let mut members = Members::default();
            members.set("s", Some(&set("s", &spec)));
            let cluster = Arc::new(ManagedCluster::default());
            members.clusters.insert("c".into(), cluster);
            let (_, found, text) = emptiness(members.count("s"));
            assert_eq!((found, text.as_str()), (reason, message));
        }
    }
}
