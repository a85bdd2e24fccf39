//! Notices when somebody touches the rights of clusters, so that they can be put right.
//!
//! Nothing is kept in memory: what is watched is only that something changed, not what it was.

use std::fmt::Debug;
use std::sync::Arc;

use bellwether_api::cluster::names::label::CLUSTER_NAME;
use bellwether_api::cluster::names::registration as names;
use futures::StreamExt as _;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, RoleBinding};
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::{Config, Event};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client, Resource, ResourceExt as _};
use serde::de::DeserializeOwned;

/// Whose rights somebody may have touched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Touched {
    /// Those of a cluster.
    Cluster(Arc<str>),
    /// Those that all clusters share.
    Shared,
    /// Nobody knows: a watch was interrupted.
    Anybody,
}

/// Tells whose rights somebody may have touched, for ever.
pub(super) async fn watch(client: &Client, tell: impl Fn(Touched) + Sync) {
    let labelled = Config::default().labels(CLUSTER_NAME);
    futures::join!(
        // The roles that clusters share have no label.
        follow::<ClusterRole>(client, Config::default(), &tell),
        follow::<ClusterRoleBinding>(client, Config::default(), &tell),
        follow::<RoleBinding>(client, labelled, &tell),
    );
}

async fn follow<K>(client: &Client, config: Config, tell: &(impl Fn(Touched) + Sync))
where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + 'static,
{
    let api: Api<PartialObjectMeta<K>> = Api::all(client.clone());
    let mut events = watcher(api, config).default_backoff().boxed();
    let mut is_first = true;
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Apply(object) | Event::Delete(object)) => {
                if let Some(touched) = concerned(&object) {
                    tell(touched);
                }
            }
            Ok(Event::InitDone) => {
                if !std::mem::take(&mut is_first) {
                    tell(Touched::Anybody);
                }
            }
            Ok(Event::Init | Event::InitApply(_)) => {}
            Err(error) => tracing::debug!(%error, "watch interrupted"),
        }
    }
}

fn concerned<K: Resource<DynamicType = ()>>(object: &PartialObjectMeta<K>) -> Option<Touched> {
    if let Some(cluster) = object.labels().get(CLUSTER_NAME) {
        return Some(Touched::Cluster(cluster.as_str().into()));
    }
    let shared = [
        names::BOOTSTRAP_ROLE,
        names::REGISTRATION_ROLE,
        names::WORK_ROLE,
    ];
    shared
        .contains(&object.name_any().as_str())
        .then_some(Touched::Shared)
}
