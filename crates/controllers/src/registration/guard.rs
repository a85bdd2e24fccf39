//! Notices when somebody touches the rights of clusters, so that they can be repaired.
//!
//! Nothing is kept in memory: what is watched is only that something changed, not what it was.

use std::sync::Arc;

use bellwether_api::cluster::names::label::CLUSTER_NAME;
use bellwether_api::cluster::names::registration as names;
use bellwether_api::meta::ObjectMeta;
use bellwether_runtime::{FeedEvent, Selection, follow};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, RoleBinding};
use kube::{Client, Resource};
use serde::Deserialize;

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

/// Tells whose rights somebody may have touched, forever.
pub(super) async fn watch(client: &Client, on_change: impl Fn(Touched) + Sync) {
    let (all, labelled) = (Selection::default(), Selection::labels(CLUSTER_NAME));
    futures::join!(
        // The roles that clusters share have no label.
        guard::<ClusterRole>(client, &all, &on_change),
        guard::<ClusterRoleBinding>(client, &all, &on_change),
        guard::<RoleBinding>(client, &labelled, &on_change),
    );
}

async fn guard<K: Resource<DynamicType = ()>>(
    client: &Client,
    selection: &Selection,
    on_change: &(impl Fn(Touched) + Sync),
) {
    let mut is_first = true;
    follow(
        client.clone(),
        &K::url_path(&(), None),
        selection,
        &mut |event| match event {
            FeedEvent::Applied(text) | FeedEvent::Deleted(text) => {
                if let Some(touched) = touched_by(text) {
                    on_change(touched);
                }
            }
            FeedEvent::ListDone(_) => {
                if !std::mem::take(&mut is_first) {
                    on_change(Touched::Anybody);
                }
            }
            FeedEvent::ListStarted | FeedEvent::Listed(_) | FeedEvent::Disconnected(_) => {}
        },
    )
    .await;
}

/// What is read of a role or binding.
#[derive(Deserialize)]
struct Head {
    metadata: ObjectMeta,
}

fn touched_by(text: &str) -> Option<Touched> {
    let Head { metadata } = serde_json::from_str(text).ok()?;
    if let Some(cluster) = metadata.labels.unwrap_or_default().get(CLUSTER_NAME) {
        return Some(Touched::Cluster(cluster.as_str().into()));
    }
    let name = metadata.name.unwrap_or_default();
    let shared = [
        names::BOOTSTRAP_ROLE,
        names::REGISTRATION_ROLE,
        names::WORK_ROLE,
        names::VIEW_ROLE,
        names::EDIT_ROLE,
    ];
    shared.contains(&name.as_str()).then_some(Touched::Shared)
}
