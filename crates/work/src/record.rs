//! The record of a work on the cluster: what it applied, and what it is about to apply.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use bellwether_api::work::AppliedResource;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use bellwether_apply::ObjectId;
use bellwether_apply::record::Entry;

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

/// Returns an entry of a record as decisions see it.
pub fn entry(resource: &AppliedResource) -> Entry {
    Entry {
        id: id_of(resource),
        version: resource.version.clone(),
        uid: resource.uid.clone(),
    }
}

/// Returns entries as records have them. Those that were there keep what this version does not know.
pub fn applied_resources(entries: &[Entry], known: &[AppliedResource]) -> Vec<AppliedResource> {
    let known: BTreeMap<Entry, &AppliedResource> =
        known.iter().map(|known| (entry(known), known)).collect();
    let resource = |wanted: &Entry| {
        let known = known.get(wanted).copied();
        known.cloned().unwrap_or_else(|| AppliedResource {
            group: wanted.id.group.clone(),
            version: wanted.version.clone(),
            resource: wanted.id.resource.clone(),
            name: wanted.id.name.clone(),
            namespace: wanted.id.namespace.clone(),
            uid: wanted.uid.clone(),
            ..AppliedResource::default()
        })
    };
    entries.iter().map(resource).collect()
}

/// What a record says that is about to be applied, from its annotation.
///
/// It is written before anything is created. An entry leaves the annotation only when the entry of
/// the status is written, so that what was created is always found again.
pub fn read_intent(annotation: Option<&str>) -> Vec<Entry> {
    let Some(Ok(Value::Array(items))) = annotation.map(serde_json::from_str) else {
        return Vec::new();
    };
    items
        .iter()
        .filter_map(|item| {
            let text = |index: usize| item.get(index)?.as_str().map(str::to_owned);
            Some(Entry {
                version: text(1)?,
                id: ObjectId {
                    group: text(0)?,
                    resource: text(2)?,
                    namespace: text(3)?,
                    name: text(4)?,
                },
                uid: None,
            })
        })
        .collect()
}

/// The annotation for what is about to be applied.
pub fn write_intent(entries: &[Entry]) -> String {
    let items: Vec<Value> = entries
        .iter()
        .map(|entry| {
            let id = &entry.id;
            json!([id.group, entry.version, id.resource, id.namespace, id.name])
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

    fn applied(group: &str, name: &str, uid: Option<&str>) -> AppliedResource {
        AppliedResource {
            group: group.into(),
            version: "v1".into(),
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
    fn entries_that_stay_keep_what_is_not_known_here() {
        let mut old = applied("g", "x", Some("1"));
        old.other.insert("later".to_owned(), json!(true));
        let known = [old.clone(), applied("g", "y", Some("2"))];
        let again = applied("g", "y", Some("3"));
        let entries = [entry(&old), entry(&again)];
        assert_eq!(applied_resources(&entries, &known), [old, again]);
    }

    #[test]
    fn what_is_complete_is_remembered_of_one_work() {
        let objects = BTreeSet::from([id_of(&applied("g", "x", None))]);
        let text = write_completed("uid-1", &objects);
        assert_eq!(read_completed(Some(&text), "uid-1"), objects);
        assert_eq!(read_completed(Some(&text), "uid-2"), BTreeSet::new());
        assert_eq!(read_completed(None, "uid-1"), BTreeSet::new());
        assert_eq!(read_completed(Some("[1"), "uid-1"), BTreeSet::new());
    }

    #[test]
    fn what_is_about_to_be_applied_is_read_as_it_was_written() {
        let entries = [applied("g", "x", None), applied("", "y", None)].map(|it| entry(&it));
        assert_eq!(read_intent(Some(&write_intent(&entries))), entries);
        assert_eq!(read_intent(None), []);
        assert_eq!(read_intent(Some("{")), []);
        assert_eq!(read_intent(Some("[[1],[\"a\"]]")), []);
    }
}
