//! Reads what explanations look at.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use bellwether_api::cluster::names::label::PLACEMENT;
use bellwether_api::cluster::{ManagedCluster, Placement, PlacementDecision};
use bellwether_api::multicluster::Work;
use bellwether_api::work::names::label::REPLICA_SET;
use bellwether_api::work::{ManifestWork, ManifestWorkReplicaSet};
use bellwether_runtime::{Cache, Selection};
use bellwether_work::replica_set::report::{PlacementReport, Step};
use bellwether_work::replica_set::{Chosen, owner_label};
use futures::future::join_all;
use kube::api::ListParams;
use kube::{Api, Client};
use serde::de::DeserializeOwned;
use tokio::sync::Notify;

use super::rollout::{Rollout, RolloutSnapshot, Trouble};
use super::work::WorkSnapshot;
use super::{Members, Snapshot, Source, member};
use crate::error::Error;
use crate::near::did_you_mean_or;

/// How many failing members are asked why.
const MOST_ASKED: usize = 5;
/// How long a member may take to answer.
const MEMBER_TIMEOUT: Duration = Duration::from_secs(3);

/// Reads the works of a name, of both interfaces. A hub need not serve the work API.
pub(super) async fn works(source: Source<'_>, name: &str) -> Result<Snapshot, Error> {
    let manifest_works: Api<ManifestWork> =
        Api::namespaced(source.client.clone(), source.namespace);
    let works: Api<Work> = Api::namespaced(source.client.clone(), source.namespace);
    let (manifest_works, works) =
        futures::try_join!(find(&manifest_works, name), find(&works, name))?;
    let mut found: Vec<WorkSnapshot> = manifest_works
        .into_iter()
        .map(WorkSnapshot::of_work)
        .collect();
    found.extend(works.iter().map(WorkSnapshot::of_work_api));
    if found.is_empty() {
        return Err(no_work(source, name).await);
    }
    Ok(Snapshot::Works(found))
}

/// An object, if it is there. A server that does not know the kind at all answers 404 as well, in
/// plain text.
pub(super) async fn find<K>(api: &Api<K>, name: &str) -> Result<Option<K>, Error>
where
    K: Clone + DeserializeOwned + Debug,
{
    match api.get(name).await {
        Ok(object) => Ok(Some(object)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error.into()),
    }
}

pub(super) async fn manifest_work(source: Source<'_>, name: &str) -> Result<Snapshot, Error> {
    let api: Api<ManifestWork> = Api::namespaced(source.client.clone(), source.namespace);
    match find(&api, name).await? {
        Some(work) => Ok(Snapshot::Works(vec![WorkSnapshot::of_work(work)])),
        None => Err(no_work(source, name).await),
    }
}

async fn no_work(source: Source<'_>, name: &str) -> Error {
    let namespace = source.namespace;
    let api: Api<ManifestWork> = Api::namespaced(source.client.clone(), namespace);
    let hint = "; works are in the namespace that has the name of their cluster: use -n CLUSTER";
    let guess = guess(&api, name, hint).await;
    Error::Usage(format!(
        "there is no work {name} in namespace {namespace}{guess}"
    ))
}

pub(super) async fn rollout(source: Source<'_>, name: &str) -> Result<Snapshot, Error> {
    let snapshot = read_rollout(source, name, None).await?;
    Ok(Snapshot::Rollout(Box::new(snapshot)))
}

/// Reads a replica set with its works and placements. Of failing clusters some members are asked as
/// well, `about` one of them or the first ones.
pub async fn read_rollout(
    source: Source<'_>,
    name: &str,
    about: Option<&str>,
) -> Result<RolloutSnapshot, Error> {
    let Source {
        client, namespace, ..
    } = source;
    let sets: Api<ManifestWorkReplicaSet> = Api::namespaced(client.clone(), namespace);
    let Some(set) = find(&sets, name).await? else {
        return Err(no_set(&sets, namespace, name).await);
    };
    let works: Api<ManifestWork> = Api::all(client.clone());
    let own = ListParams::default().labels(&format!("{REPLICA_SET}={}", owner_label(&set)));
    let clusters: Api<ManagedCluster> = Api::all(client.clone());
    let everything = ListParams::default();
    let (works, clusters) = futures::try_join!(works.list(&own), clusters.list(&everything))?;
    let named = |it: ManagedCluster| Some((it.metadata.name.clone()?, Arc::new(it)));
    let mut snapshot = RolloutSnapshot {
        placements: chosen(client, namespace, &set).await?,
        set,
        works: works.into_iter().map(Arc::new).collect(),
        clusters: clusters.into_iter().filter_map(named).collect(),
        troubles: BTreeMap::new(),
        now: source.now,
    };
    snapshot.troubles = troubles(&snapshot, source.members, about).await;
    Ok(snapshot)
}

async fn no_set(api: &Api<ManifestWorkReplicaSet>, namespace: &str, name: &str) -> Error {
    let guess = guess(api, name, "; see bellwether get mwrs -A").await;
    Error::Usage(format!(
        "there is no replica set {name} in namespace {namespace}{guess}"
    ))
}

/// Which object may have been meant by a name that does not exist.
pub(super) async fn guess<K>(api: &Api<K>, name: &str, hint: &str) -> String
where
    K: Clone + DeserializeOwned + Debug,
{
    let known = api.list_metadata(&ListParams::default()).await;
    let known = known.map(|list| list.items).unwrap_or_default();
    let names = known.iter().filter_map(|it| it.metadata.name.as_deref());
    did_you_mean_or(name, names, hint)
}

/// What the placements of a replica set have chosen; those that do not exist are missing.
async fn chosen(
    client: &Client,
    namespace: &str,
    set: &ManifestWorkReplicaSet,
) -> Result<BTreeMap<String, Chosen>, Error> {
    let placements: Api<Placement> = Api::namespaced(client.clone(), namespace);
    let decisions: Api<PlacementDecision> = Api::namespaced(client.clone(), namespace);
    let mut found = BTreeMap::new();
    let names: BTreeSet<&str> = set
        .spec
        .placement_refs
        .iter()
        .map(|it| it.name.as_str())
        .collect();
    for name in names {
        let Some(placement) = find(&placements, name).await? else {
            continue;
        };
        let own = ListParams::default().labels(&format!("{PLACEMENT}={name}"));
        let written = decisions.list(&own).await?;
        found.insert(name.to_owned(), Chosen::of(&placement, &written));
    }
    Ok(found)
}

/// What failing members say themselves. One that does not answer in time says nothing.
async fn troubles(
    snapshot: &RolloutSnapshot,
    members: &dyn Members,
    about: Option<&str>,
) -> BTreeMap<String, Vec<Trouble>> {
    let rollout = Rollout::new(snapshot);
    let clusters = rollout
        .report
        .placements
        .iter()
        .flat_map(PlacementReport::clusters);
    let is_asked = |name: &str, step: Step| match about {
        Some(about) => name == about && step != Step::Waiting,
        None => step == Step::Failing,
    };
    let asked = clusters
        .filter(|it| is_asked(&it.name, it.step()) && !it.works.is_empty())
        .take(MOST_ASKED)
        .map(|it| async move {
            let ask = async {
                let client = members.client(&it.name).await?;
                let mut found = Vec::new();
                for work in &it.works {
                    found.extend(member::troubles(&client, work).await.ok()?);
                }
                Some(found)
            };
            let answer = tokio::time::timeout(MEMBER_TIMEOUT, ask).await;
            Some((it.name.to_string(), answer.ok()??))
        });
    join_all(asked).await.into_iter().flatten().collect()
}

/// Watches everything that a rollout depends on, and notifies when any of it changes. It ends when
/// the result is dropped.
pub fn rollout_triggers(client: &Client, namespace: &str, changed: &Arc<Notify>) -> Triggers {
    let notify = |changed: &Arc<Notify>| {
        let changed = Arc::clone(changed);
        move || changed.notify_one()
    };
    let [on_set, on_decision, on_work] = [(); 3].map(|()| notify(changed));
    let sets: Api<ManifestWorkReplicaSet> = Api::namespaced(client.clone(), namespace);
    let decisions: Api<PlacementDecision> = Api::namespaced(client.clone(), namespace);
    let works: Api<ManifestWork> = Api::all(client.clone());
    Triggers {
        _sets: Cache::start(sets, Selection::default(), move |_| on_set()),
        _decisions: Cache::start(decisions, Selection::default(), move |_| on_decision()),
        _works: Cache::start(works, Selection::labels(REPLICA_SET), move |_| on_work()),
    }
}

/// Watches that go on until this is dropped.
pub struct Triggers {
    _sets: Cache<ManifestWorkReplicaSet>,
    _decisions: Cache<PlacementDecision>,
    _works: Cache<ManifestWork>,
}

impl std::fmt::Debug for Triggers {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Triggers").finish_non_exhaustive()
    }
}
