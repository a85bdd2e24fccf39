//! Reports of clusters: which there are, and what they change where clusters do not wait for each other.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use bellwether_api::policy::Policy;
use bellwether_policy::rollout::Tally;
use bellwether_runtime::{ObjectKey, written_by};
use http::header::{ACCEPT, HeaderValue};
use kube::Resource as _;
use kube::api::Patch;
use kube::core::PartialObjectMeta;
use parking_lot::Mutex;

use super::Propagator;

/// Asks for an answer without spec and status.
const METADATA_ONLY: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";

/// What has happened to a policy and its replicas since it was looked at last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum PendingChange {
    /// Only these clusters have reported something.
    Reports(BTreeSet<Arc<str>>),
    /// Anything: the policy has to be planned.
    Anything,
}

/// What has happened to all policies. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Reports(Arc<Mutex<HashMap<ObjectKey, PendingChange>>>);

impl Reports {
    /// A cluster has reported something, and nothing else of its replica has changed.
    pub(super) fn add(&self, root: &ObjectKey, cluster: &Arc<str>) {
        let mut all = self.0.lock();
        let news = all.entry(root.clone());
        let news = news.or_insert_with(|| PendingChange::Reports(BTreeSet::new()));
        if let PendingChange::Reports(clusters) = news {
            clusters.insert(Arc::clone(cluster));
        }
    }

    /// Something else has happened.
    pub(super) fn add_change(&self, root: &ObjectKey) {
        self.0.lock().insert(root.clone(), PendingChange::Anything);
    }

    /// Returns what has happened since this was asked last. Where nothing has, somebody wants a plan.
    pub(super) fn take(&self, root: &ObjectKey) -> PendingChange {
        self.0
            .lock()
            .remove(root)
            .unwrap_or(PendingChange::Anything)
    }
}

impl Propagator {
    /// Counts the reports of some clusters, and writes what they change. False if only a plan can tell.
    ///
    /// Only what changes is sent, and only metadata comes back: a status has an entry for each cluster.
    pub(super) async fn count(
        &self,
        key: &ObjectKey,
        mut counts: Tally,
        clusters: &BTreeSet<Arc<str>>,
    ) -> Result<bool, kube::Error> {
        let replicas = clusters.iter().map(|it| self.replicas.one(key, it));
        let Some(replicas) = replicas.collect::<Option<Vec<_>>>() else {
            return Ok(false);
        };
        let Some(counted) = counts.count(&replicas, self.hub.clock.now()) else {
            return Ok(false);
        };
        if !counted.patch.is_empty() {
            let Ok(patch) = serde_json::from_value(counted.patch.into()) else {
                return Ok(false);
            };
            // A policy that changed meanwhile is planned.
            if self.patch_status(key, &Patch::Json(patch)).await.is_err() {
                return Ok(false);
            }
            self.begin_rest(key, counts.clusters());
        }
        self.tallies.lock().insert(key.clone(), counts);
        Ok(true)
    }

    /// Sends a patch of the status. What the policy is then is read when somebody asks for it.
    async fn patch_status(&self, key: &ObjectKey, patch: &Patch<()>) -> Result<(), kube::Error> {
        self.roots.forget(key);
        let collection = Policy::url_path(&(), Some(&key.namespace));
        let request = kube::core::Request::new(collection);
        let request = request.patch_subresource("status", &key.name, &written_by(), patch);
        let mut request = request.map_err(kube::Error::BuildRequest)?;
        let accepted = HeaderValue::from_static(METADATA_ONLY);
        request.headers_mut().insert(ACCEPT, accepted);
        let _: PartialObjectMeta<Policy> = self.hub.client.request(request).await?;
        // A plan that was cut off may have read it meanwhile.
        self.roots.forget(key);
        Ok(())
    }
}
