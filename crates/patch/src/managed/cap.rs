//! Keeping the number of entries small.

use super::entries::{Entries, ManagerId, Operation};

/// Entries of updates that are kept apart (kubernetes: `DefaultMaxUpdateManagers`).
const MAX_UPDATE_ENTRIES: usize = 10;

/// The manager that old entries are merged into.
const ANCIENT_CHANGES: &str = "ancient-changes";

/// Merges the oldest entries of updates, version by version, until few enough are left.
pub(super) fn merge_old_updates(entries: &mut Entries) {
    let mut oldest: Vec<(Option<String>, ManagerId)> = entries
        .0
        .iter()
        .filter(|entry| entry.id.operation == Operation::Update)
        .map(|entry| (entry.time.clone(), entry.id.clone()))
        .collect();
    let mut count = oldest.len();
    if count <= MAX_UPDATE_ENTRIES {
        return;
    }
    oldest.sort();
    // The first entry of a version only waits for a second one to be merged with.
    let mut first_of_version: Vec<ManagerId> = Vec::new();
    for (time, id) in oldest {
        if count <= MAX_UPDATE_ENTRIES {
            break;
        }
        let version = id.api_version.clone();
        let Some(first) = first_of_version
            .iter()
            .find(|first| first.api_version == version)
        else {
            first_of_version.push(id);
            continue;
        };
        let bucket = ManagerId::new(ANCIENT_CHANGES, Operation::Update, &version, "");
        if entries.get(&bucket).is_none()
            && let Some(entry) = entries.get_mut(first)
        {
            entry.id = bucket.clone();
        }
        if id == bucket {
            continue;
        }
        let Some(position) = entries.0.iter().position(|entry| entry.id == id) else {
            continue;
        };
        let merged = entries.0.remove(position);
        if let Some(entry) = entries.get_mut(&bucket) {
            entry.set = std::mem::take(&mut entry.set).union(merged.set);
            entry.time = time;
        }
        count -= 1;
    }
}
