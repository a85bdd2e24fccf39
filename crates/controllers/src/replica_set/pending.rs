//! What has changed about replica sets since they were last reconciled.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bellwether_api::work::ManifestWork;
use bellwether_runtime::ObjectKey;
use parking_lot::Mutex;

/// The changes of all replica sets.
#[derive(Debug, Clone, Default)]
pub(super) struct Pending(Arc<Mutex<HashMap<ObjectKey, Changes>>>);

/// What has changed about one replica set.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Changes {
    /// Works of these clusters, and nothing besides; true if they only report something else.
    Works(BTreeMap<Arc<str>, bool>),
    /// Something else has changed.
    Other,
}

impl Pending {
    /// Something has changed.
    pub(super) fn add(&self, set: &ObjectKey) {
        self.0.lock().insert(set.clone(), Changes::Other);
    }

    /// Something has changed that replica sets have to be planned for. Returns them.
    pub(super) fn plan(&self, sets: impl IntoIterator<Item = ObjectKey>) -> Vec<ObjectKey> {
        let sets: Vec<ObjectKey> = sets.into_iter().collect();
        for set in &sets {
            self.add(set);
        }
        sets
    }

    /// A work of a cluster has changed, perhaps only what it reports.
    pub(super) fn add_work(&self, set: &ObjectKey, cluster: &Arc<str>, is_report: bool) {
        let mut all = self.0.lock();
        let known = all.entry(set.clone());
        let known = known.or_insert_with(|| Changes::Works(BTreeMap::new()));
        if let Changes::Works(clusters) = known {
            let all_reports = clusters.entry(Arc::clone(cluster)).or_insert(true);
            *all_reports &= is_report;
        }
    }

    /// Takes what has changed. A replica set of which nothing is known is reconciled for another reason:
    /// its time has come, or it failed.
    pub(super) fn take(&self, set: &ObjectKey) -> Changes {
        self.0.lock().remove(set).unwrap_or(Changes::Other)
    }
}

/// True if nothing of a work has changed but its status.
pub(super) fn is_report(old: &ManifestWork, new: &ManifestWork) -> bool {
    let (old, new) = (&old.metadata, &new.metadata);
    old.uid == new.uid
        && old.generation.is_some()
        && old.generation == new.generation
        && old.labels == new.labels
        && old.annotations == new.annotations
        && old.deletion_timestamp == new.deletion_timestamp
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_works_are_gathered_until_something_else_changes() {
        let pending = Pending::default();
        let set = ObjectKey::new("apps", "web");
        assert_eq!(pending.take(&set), Changes::Other, "nothing is known");
        pending.add_work(&set, &"b".into(), true);
        pending.add_work(&set, &"a".into(), false);
        pending.add_work(&set, &"a".into(), true);
        let both = [("a".into(), false), ("b".into(), true)].into();
        assert_eq!(pending.take(&set), Changes::Works(both));
        pending.add_work(&set, &"a".into(), true);
        pending.add(&set);
        pending.add_work(&set, &"b".into(), true);
        assert_eq!(pending.take(&set), Changes::Other);
    }
}
