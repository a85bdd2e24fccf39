//! Members as rendering sees them.

use bellwether_api::cluster::ManagedCluster;
use bellwether_application::world::{Cluster, ClusterVersion};
use serde_json::Value;

use super::to_json;

/// A member as rendering sees it.
pub(super) fn member(cluster: &ManagedCluster) -> Cluster {
    let version = to_json(cluster);
    let version = version
        .pointer("/status/version/kubernetes")
        .and_then(Value::as_str);
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
