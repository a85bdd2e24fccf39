//! Replica sets as this process has written them.
//!
//! A status is written only if it differs from the one that is known. A watch lags behind: by the status of a
//! moment ago, a report that undoes the one before it would change nothing, and the status would stay wrong.

use std::collections::HashMap;
use std::sync::Arc;

use bellwether_api::work::ManifestWorkReplicaSet;
use bellwether_runtime::ObjectKey;
use parking_lot::Mutex;

use crate::policy_propagator::is_newer;

/// The answers to writes that the watch may not have shown yet.
#[derive(Debug, Default)]
pub(super) struct Written(Mutex<HashMap<ObjectKey, Arc<ManifestWorkReplicaSet>>>);

impl Written {
    /// Remembers the answer to a write.
    pub(super) fn add(&self, set: Option<ManifestWorkReplicaSet>) {
        if let Some(set) = set {
            self.0.lock().insert(ObjectKey::of(&set), Arc::new(set));
        }
    }

    /// Forgets a replica set.
    pub(super) fn forget(&self, key: &ObjectKey) {
        self.0.lock().remove(key);
    }

    /// Returns the later of what a watch has shown and what was written.
    pub(super) fn latest(
        &self,
        key: &ObjectKey,
        seen: Arc<ManifestWorkReplicaSet>,
    ) -> Arc<ManifestWorkReplicaSet> {
        let mut all = self.0.lock();
        match all.get(key) {
            Some(written) if is_newer(&written.metadata, &seen.metadata) => Arc::clone(written),
            _ => {
                all.remove(key);
                seen
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bellwether_api::meta::ObjectMeta;

    use super::*;

    fn set(uid: &str, version: &str) -> ManifestWorkReplicaSet {
        ManifestWorkReplicaSet {
            metadata: ObjectMeta {
                name: Some("web".to_owned()),
                namespace: Some("apps".to_owned()),
                uid: Some(uid.to_owned()),
                resource_version: Some(version.to_owned()),
                ..ObjectMeta::default()
            },
            ..ManifestWorkReplicaSet::default()
        }
    }

    #[test]
    fn the_later_version_counts_until_the_watch_has_shown_it() {
        let key = ObjectKey::new("apps", "web");
        let written = Written::default();
        let version = |seen: ManifestWorkReplicaSet| {
            let latest = written.latest(&key, Arc::new(seen));
            latest.metadata.resource_version.clone().unwrap()
        };
        assert_eq!(version(set("u", "9")), "9");
        written.add(Some(set("u", "10")));
        assert_eq!(version(set("u", "9")), "10");
        assert_eq!(version(set("u", "10")), "10");
        assert_eq!(version(set("u", "9")), "9", "it is not remembered any more");
        written.add(Some(set("u", "10")));
        assert_eq!(version(set("v", "3")), "3", "another one of that name");
        written.add(None);
        assert_eq!(version(set("u", "11")), "11");
    }
}
