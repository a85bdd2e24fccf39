//! Keeping the number of entries small.

use std::collections::HashMap;

use super::entries::{Entries, Entry, ManagerId, Operation};
use crate::fieldset::FieldSet;

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
    let mut slots: Vec<Option<Entry>> = std::mem::take(&mut entries.0)
        .into_iter()
        .map(Some)
        .collect();
    let ids = slots.iter().flatten().map(|entry| entry.id.clone());
    let mut places: HashMap<ManagerId, usize> = ids.zip(0..).collect();
    // The first entry of a version only waits for a second one to be merged with.
    let mut first_of_version: HashMap<String, ManagerId> = HashMap::new();
    let mut gathered: HashMap<ManagerId, Gathered> = HashMap::new();
    for (time, id) in oldest {
        if count <= MAX_UPDATE_ENTRIES {
            break;
        }
        let version = id.api_version.clone();
        let Some(first) = first_of_version.get(&version) else {
            first_of_version.insert(version, id);
            continue;
        };
        let bucket = ManagerId::new(ANCIENT_CHANGES, Operation::Update, &version, "");
        if !places.contains_key(&bucket)
            && let Some(place) = places.remove(first)
        {
            if let Some(entry) = &mut slots[place] {
                entry.id = bucket.clone();
            }
            places.insert(bucket.clone(), place);
        }
        if id == bucket {
            continue;
        }
        let Some(merged) = places.remove(&id).and_then(|place| slots[place].take()) else {
            continue;
        };
        let gathered = gathered.entry(bucket).or_default();
        gathered.sets.push(merged.set);
        gathered.time = time;
        count -= 1;
    }
    for (bucket, Gathered { mut sets, time }) in gathered {
        let place = places.get(&bucket);
        if let Some(entry) = place.and_then(|place| slots[*place].as_mut()) {
            sets.push(std::mem::take(&mut entry.set));
            entry.set = FieldSet::union_of(sets);
            entry.time = time;
        }
    }
    entries.0 = slots.into_iter().flatten().collect();
}

/// What is merged into one entry, and the time of the latest of it.
#[derive(Default)]
struct Gathered {
    sets: Vec<FieldSet>,
    time: Option<String>,
}
