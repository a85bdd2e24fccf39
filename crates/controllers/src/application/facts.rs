//! What rendering has to know of the hub: its version, and its members.

use std::sync::Arc;

use bellwether_api::cluster::ManagedCluster;
use bellwether_application::world::{Cluster, ClusterVersion};
use bellwether_runtime::{Cache, Subscription};
use kube::Client;
use parking_lot::Mutex;

/// What rendering has to know of the hub.
pub(super) struct HubFacts {
    client: Client,
    version: Mutex<Option<ClusterVersion>>,
    clusters: Cache<ManagedCluster>,
    /// The members as rendering sees them; none after a change of one.
    members: Arc<Mutex<Option<Members>>>,
    _subscription: Subscription,
}

type Members = Arc<Vec<Cluster>>;

impl HubFacts {
    pub(super) fn new(client: &Client, clusters: Cache<ManagedCluster>) -> Self {
        let members: Arc<Mutex<Option<Members>>> = Arc::default();
        let own = Arc::clone(&members);
        let subscription = clusters.subscribe_until_dropped(move |change| {
            let seen = |cluster: Option<&Arc<ManagedCluster>>| cluster.map(|it| member(it));
            // Most of what members report is nothing to applications.
            if seen(change.old) != seen(change.new) {
                *own.lock() = None;
            }
        });
        Self {
            client: client.clone(),
            version: Mutex::default(),
            clusters,
            members,
            _subscription: subscription,
        }
    }

    /// The version of the hub.
    pub(super) async fn version(&self) -> Result<ClusterVersion, kube::Error> {
        if let Some(known) = self.version.lock().clone() {
            return Ok(known);
        }
        let info = self.client.apiserver_version().await?;
        let version = ClusterVersion {
            major: info.major,
            minor: info.minor,
            git_version: info.git_version,
            platform: info.platform,
        };
        *self.version.lock() = Some(version.clone());
        Ok(version)
    }

    /// The members of the hub.
    pub(super) fn members(&self) -> Arc<Vec<Cluster>> {
        let mut members = self.members.lock();
        let known = members.get_or_insert_with(|| {
            let clusters = self.clusters.list();
            Arc::new(clusters.iter().map(|cluster| member(cluster)).collect())
        });
        Arc::clone(known)
    }
}

impl std::fmt::Debug for HubFacts {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("HubFacts").finish_non_exhaustive()
    }
}

/// A member as rendering sees it.
fn member(cluster: &ManagedCluster) -> Cluster {
    let version = cluster
        .status
        .as_ref()
        .and_then(|status| status.version.as_ref());
    let version = version.and_then(|version| version.kubernetes.as_deref());
    Cluster {
        name: cluster.metadata.name.clone().unwrap_or_default(),
        labels: cluster.metadata.labels.clone().unwrap_or_default(),
        version: version.and_then(version_of_text),
    }
}

/// A version from a text such as `v1.31.0`.
fn version_of_text(text: &str) -> Option<ClusterVersion> {
    let mut parts = text.trim_start_matches('v').splitn(3, '.');
    Some(ClusterVersion {
        major: parts.next()?.to_owned(),
        minor: parts.next()?.to_owned(),
        git_version: text.to_owned(),
        platform: ClusterVersion::default().platform,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_has_the_version_that_it_reports() {
        let cluster = serde_json::json!({"metadata": {"name": "east", "labels": {"region": "e"}},
            "spec": {}, "status": {"conditions": [], "version": {"kubernetes": "v1.32.4"}}});
        let seen = member(&serde_json::from_value(cluster).unwrap());
        let version = seen.version.unwrap();
        assert_eq!(
            (version.major.as_str(), version.minor.as_str()),
            ("1", "32")
        );
        assert_eq!(seen.labels["region"], "e");
    }
}
