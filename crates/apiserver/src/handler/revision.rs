//! Revisions that a client knows and we may not know yet.

use std::time::Duration;

use bellwether_store::Revision;

use crate::cluster::Cluster;
use crate::status::ApiError;

/// How long a read waits for a revision from the future, as kube-apiserver's cache does.
const REVISION_TIMEOUT: Duration = Duration::from_secs(3);

/// Waits until the cluster has reached `revision`, or says that it is too large.
pub(crate) async fn wait_for(cluster: &Cluster, revision: Revision) -> Result<(), ApiError> {
    let keyspace = cluster.keyspace();
    let mut current = keyspace.revision();
    if revision <= current {
        return Ok(());
    }
    let deadline = tokio::time::sleep(REVISION_TIMEOUT);
    tokio::pin!(deadline);
    let mut watch = keyspace
        .watch("", current)
        .map_err(|error| ApiError::internal(error.to_string()))?;
    while current < revision {
        tokio::select! {
            () = &mut deadline => return Err(ApiError::revision_too_large(revision, current)),
            event = watch.next() => match event {
                Some(Ok(event)) => current = event.revision,
                _ => return Err(ApiError::revision_too_large(revision, current)),
            },
        }
    }
    Ok(())
}
