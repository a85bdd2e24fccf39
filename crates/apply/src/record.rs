//! The record of a set of objects: what is on the cluster because of it, and what is about to be.
//!
//! What is about to be written is on record before it is written, and leaves the record only when it
//! is gone or was never there: a process that is killed at any moment leaves nothing behind that nobody
//! knows of.

use std::collections::BTreeSet;

use crate::manifest::ObjectId;

/// An object on record.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Entry {
    /// The object.
    pub id: ObjectId,
    /// The API version that it was written in.
    pub version: String,
    /// Its UID, once it is known.
    pub uid: Option<String>,
}

/// The record of a set of objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Record {
    /// What is on the cluster.
    pub applied: Vec<Entry>,
    /// What was about to be written.
    pub intended: Vec<Entry>,
}

impl Record {
    /// Returns everything that may be on the cluster, each object once in each version.
    pub fn everything(&self) -> Vec<Entry> {
        let all = self.applied.iter().chain(&self.intended).cloned();
        sorted(all.collect())
    }

    /// Returns the intent with what is about to be written besides; nothing if all of it is on record.
    pub fn intent_with(&self, wanted: &[Entry]) -> Option<Vec<Entry>> {
        let all = self.applied.iter().chain(&self.intended);
        let known: BTreeSet<&ObjectId> = all.map(|entry| &entry.id).collect();
        if wanted.iter().all(|entry| known.contains(&entry.id)) {
            return None;
        }
        let mut intent = self.intended.clone();
        intent.extend(wanted.iter().cloned());
        Some(sorted(intent))
    }

    /// Returns the UID of an object as it was written.
    pub fn uid_of(&self, id: &ObjectId) -> Option<&str> {
        let entry = self.applied.iter().find(|entry| entry.id == *id)?;
        entry.uid.as_deref()
    }
}

/// Returns entries in the order in which records have them, each object once in each version; one with
/// a UID wins.
pub fn sorted(mut entries: Vec<Entry>) -> Vec<Entry> {
    let key = |entry: &Entry| {
        let id = &entry.id;
        (
            id.group.clone(),
            entry.version.clone(),
            id.resource.clone(),
            id.namespace.clone(),
            id.name.clone(),
            entry.uid.is_none(),
        )
    };
    entries.sort_by_cached_key(key);
    entries.dedup_by(|later, earlier| later.id == earlier.id && later.version == earlier.version);
    entries
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(group: &str, version: &str, name: &str, uid: Option<&str>) -> Entry {
        Entry {
            id: ObjectId {
                group: group.into(),
                resource: "things".into(),
                namespace: "n".into(),
                name: name.into(),
            },
            version: version.into(),
            uid: uid.map(str::to_owned),
        }
    }

    #[test]
    fn entries_are_sorted_and_each_is_there_once() {
        let list = sorted(vec![
            entry("b", "v1", "x", None),
            entry("", "v1", "y", None),
            entry("b", "v1", "x", Some("1")),
            entry("", "v1", "a", Some("2")),
        ]);
        let names: Vec<_> = list
            .iter()
            .map(|entry| (&*entry.id.group, &*entry.id.name, entry.uid.as_deref()))
            .collect();
        assert_eq!(
            names,
            [("", "a", Some("2")), ("", "y", None), ("b", "x", Some("1"))]
        );
    }

    #[test]
    fn only_what_is_not_on_record_is_added_to_the_intent() {
        let record = Record {
            applied: vec![entry("", "v1", "applied", Some("1"))],
            intended: vec![entry("", "v1", "intended", None)],
        };
        let check = |wanted: &[Entry], expected: Option<&[&str]>| {
            let found = record.intent_with(wanted);
            let names: Option<Vec<&str>> = found
                .as_ref()
                .map(|entries| entries.iter().map(|entry| &*entry.id.name).collect());
            assert_eq!(names.as_deref(), expected);
        };
        check(&[], None);
        check(&[entry("", "v1", "applied", None)], None);
        check(&[entry("", "v2", "intended", None)], None);
        check(
            &[
                entry("", "v1", "new", None),
                entry("", "v1", "applied", None),
            ],
            Some(&["applied", "intended", "new"]),
        );
    }
}
