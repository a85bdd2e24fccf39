//! The record of a work on the cluster: what it applied, and what it is about to apply.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use bellwether_api::work::AppliedResource;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use bellwether_apply::ObjectId;

/// The hash of a hub's address, by which the records of several hubs are distinguished.
pub fn hub_hash(address: &str) -> String {
    let digest = Sha256::digest(address.as_bytes());
    digest.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The name of the record of a work.
pub fn record_name(hub_hash: &str, work: &str) -> String {
    format!("{hub_hash}-{work}")
}

/// The work that a record of this hub is of.
pub fn work_name<'a>(hub_hash: &str, record: &'a str) -> Option<&'a str> {
    record.strip_prefix(hub_hash)?.strip_prefix('-')
}

/// The object that an entry of a record is about.
pub fn id_of(entry: &AppliedResource) -> ObjectId {
    ObjectId {
        group: entry.group.clone(),
        resource: entry.resource.clone(),
        namespace: entry.namespace.clone(),
        name: entry.name.clone(),
    }
}

/// Entries in the order in which records have them, each object once; one with a UID wins.
pub fn sorted(mut entries: Vec<AppliedResource>) -> Vec<AppliedResource> {
    entries.sort_by(|one, other| {
        let key = |entry: &AppliedResource| {
            (
                entry.group.clone(),
                entry.version.clone(),
                entry.resource.clone(),
                entry.namespace.clone(),
                entry.name.clone(),
                entry.uid.is_none(),
            )
        };
        key(one).cmp(&key(other))
    });
    entries.dedup_by(|later, earlier| {
        id_of(later) == id_of(earlier) && later.version == earlier.version
    });
    entries
}

/// Entries that nothing wants any more, whatever their version.
pub fn untracked<'a>(
    recorded: &'a [AppliedResource],
    wanted: &BTreeSet<ObjectId>,
) -> Vec<&'a AppliedResource> {
    recorded
        .iter()
        .filter(|entry| !wanted.contains(&id_of(entry)))
        .collect()
}

/// What a record says that is about to be applied, from its annotation.
///
/// It is written before anything is created. An entry leaves the annotation only when the entry of
/// the status is written, so that what was created is always found again.
pub fn read_intent(annotation: Option<&str>) -> Vec<AppliedResource> {
    let Some(Ok(Value::Array(items))) = annotation.map(serde_json::from_str) else {
        return Vec::new();
    };
    items
        .iter()
        .filter_map(|item| {
            let text = |index: usize| item.get(index)?.as_str().map(str::to_owned);
            Some(AppliedResource {
                group: text(0)?,
                version: text(1)?,
                resource: text(2)?,
                namespace: text(3)?,
                name: text(4)?,
                ..AppliedResource::default()
            })
        })
        .collect()
}

/// The annotation for what is about to be applied.
pub fn write_intent(entries: &[AppliedResource]) -> String {
    let items: Vec<Value> = entries
        .iter()
        .map(|entry| {
            json!([
                entry.group,
                entry.version,
                entry.resource,
                entry.namespace,
                entry.name
            ])
        })
        .collect();
    Value::Array(items).to_string()
}

/// What a record says is complete, from its annotation, if it speaks of the work with this UID. A
/// work that was deleted and created again runs again.
pub fn read_completed(annotation: Option<&str>, work_uid: &str) -> BTreeSet<ObjectId> {
    let Some(Ok(value)) = annotation.map(serde_json::from_str::<Value>) else {
        return BTreeSet::new();
    };
    if value["work"] != work_uid {
        return BTreeSet::new();
    }
    let objects = value["objects"].as_array().into_iter().flatten();
    objects
        .filter_map(|item| {
            let text = |index: usize| item.get(index)?.as_str().map(str::to_owned);
            Some(ObjectId {
                group: text(0)?,
                resource: text(1)?,
                namespace: text(2)?,
                name: text(3)?,
            })
        })
        .collect()
}

/// The annotation for what is complete.
pub fn write_completed(work_uid: &str, objects: &BTreeSet<ObjectId>) -> String {
    let objects: Vec<Value> = objects
        .iter()
        .map(|id| json!([id.group, id.resource, id.namespace, id.name]))
        .collect();
    json!({"work": work_uid, "objects": objects}).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(group: &str, version: &str, name: &str, uid: Option<&str>) -> AppliedResource {
        AppliedResource {
            group: group.into(),
            version: version.into(),
            resource: "things".into(),
            namespace: "n".into(),
            name: name.into(),
            uid: uid.map(str::to_owned),
            ..AppliedResource::default()
        }
    }

    #[test]
    fn a_hub_is_known_by_the_hash_of_its_address() {
        let hash = hub_hash("https://127.0.0.1:6443");
        assert_eq!(hash.len(), 64);
        assert_eq!(work_name(&hash, &record_name(&hash, "a-b")), Some("a-b"));
        assert_eq!(work_name(&hash, "other-a-b"), None);
        assert_eq!(
            hub_hash(""),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
        );
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
            .map(|entry| {
                (
                    entry.group.as_str(),
                    entry.name.as_str(),
                    entry.uid.as_deref(),
                )
            })
            .collect();
        assert_eq!(
            names,
            [("", "a", Some("2")), ("", "y", None), ("b", "x", Some("1"))]
        );
    }

    #[test]
    fn another_version_is_the_same_object() {
        let wanted = BTreeSet::from([id_of(&entry("g", "v2", "x", None))]);
        let recorded = [entry("g", "v1", "x", None), entry("g", "v1", "y", None)];
        let gone: Vec<_> = untracked(&recorded, &wanted)
            .iter()
            .map(|entry| entry.name.as_str())
            .collect();
        assert_eq!(gone, ["y"]);
    }

    #[test]
    fn what_is_complete_is_remembered_of_one_work() {
        let objects = BTreeSet::from([id_of(&entry("g", "v1", "x", None))]);
        let text = write_completed("uid-1", &objects);
        assert_eq!(read_completed(Some(&text), "uid-1"), objects);
        assert_eq!(read_completed(Some(&text), "uid-2"), BTreeSet::new());
        assert_eq!(read_completed(None, "uid-1"), BTreeSet::new());
        assert_eq!(read_completed(Some("[1"), "uid-1"), BTreeSet::new());
    }

    #[test]
    fn what_is_about_to_be_applied_is_read_as_it_was_written() {
        let entries = [entry("g", "v1", "x", None), entry("", "v1", "y", None)];
        assert_eq!(read_intent(Some(&write_intent(&entries))), entries);
        assert_eq!(read_intent(None), []);
        assert_eq!(read_intent(Some("{")), []);
        assert_eq!(read_intent(Some("[[1],[\"a\"]]")), []);
    }
}
