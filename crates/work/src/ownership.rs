//! Who an object belongs to: the record of the work that applied it, and possibly of others.

use bellwether_api::Kind as _;
use bellwether_api::multicluster::AppliedWork;
use bellwether_api::work::names::FIELD_MANAGER;
use bellwether_api::work::{AppliedManifestWork, GROUP};
use serde_json::{Map, Value, json};

/// The record of a work on the cluster, as an owner of objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Group and version of the record.
    pub api_version: String,
    /// Kind of the record.
    pub kind: String,
    /// Name of the record.
    pub name: String,
    /// UID of the record.
    pub uid: String,
}

impl Owner {
    /// The reference that an object has to this owner.
    pub fn reference(&self) -> Value {
        json!({"apiVersion": self.api_version, "kind": self.kind, "name": self.name, "uid": self.uid})
    }

    fn group(&self) -> &str {
        group_of(&self.api_version)
    }

    /// Whether a reference is to something of this name, kind and group, whatever its UID.
    fn is_named_by(&self, reference: &Value) -> bool {
        reference["name"] == *self.name
            && reference["kind"] == *self.kind
            && group_of(reference["apiVersion"].as_str().unwrap_or_default()) == self.group()
    }

    /// Whether an object belongs to exactly this record.
    pub fn owns(&self, object: &Value) -> bool {
        references(object)
            .iter()
            .any(|reference| reference["uid"] == *self.uid)
    }
}

fn group_of(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// Whether a reference is to the record of a work, of either interface.
fn is_record(reference: &Value) -> bool {
    let group = group_of(reference["apiVersion"].as_str().unwrap_or_default());
    [AppliedManifestWork::NAMES, AppliedWork::NAMES]
        .iter()
        .any(|names| reference["kind"] == names.kind && group == names.group)
}

/// The owners of an object.
pub fn references(object: &Value) -> &[Value] {
    let list = object.pointer("/metadata/ownerReferences");
    list.and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// The owners that a live object has to have: those that it has, with this one or without.
pub fn wanted_references(live: &Value, owner: &Owner, belongs: bool) -> Vec<Value> {
    let mut wanted = references(live).to_vec();
    if !belongs {
        wanted.retain(|reference| !owner.is_named_by(reference));
        return wanted;
    }
    match wanted
        .iter_mut()
        .find(|reference| owner.is_named_by(reference))
    {
        // A record that was removed and made again has another UID.
        Some(reference) => reference["uid"] = owner.uid.clone().into(),
        None => wanted.push(owner.reference()),
    }
    wanted
}

/// The merge patch that gives a live object its owners; nothing if it has them.
pub fn patch(live: &Value, owner: &Owner, belongs: bool) -> Option<Value> {
    let wanted = wanted_references(live, owner, belongs);
    (wanted != references(live)).then(|| references_patch(live, wanted))
}

/// The merge patch that gives a complete object its owners after the propagation policy of its work
/// changed; nothing if it has them. An object that was complete before the work could write it was
/// never the work's, and stays so.
pub fn realign(live: &Value, owner: &Owner, belongs: bool) -> Option<Value> {
    let managers = live["metadata"]["managedFields"].as_array();
    let is_ours = |entry: &Value| {
        let manager = entry["manager"].as_str().unwrap_or_default();
        manager.starts_with(FIELD_MANAGER)
    };
    let was_written = managers.is_some_and(|managers| managers.iter().any(is_ours));
    patch(live, owner, belongs).filter(|_| !belongs || was_written)
}

fn references_patch(live: &Value, wanted: Vec<Value>) -> Value {
    let mut metadata = Map::new();
    for field in ["uid", "resourceVersion"] {
        if let Some(value) = live["metadata"].get(field) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    metadata.insert("ownerReferences".to_owned(), Value::Array(wanted));
    json!({ "metadata": metadata })
}

/// What becomes of an object that its work no longer has.
#[derive(Debug, Clone, PartialEq)]
pub enum Removal {
    /// It is gone, or was never ours: the record forgets it.
    Forget,
    /// Another work has it too: only our reference is taken away, by this merge patch.
    Release(Value),
    /// It is on its way out; it waits for these finalizers.
    Wait(Vec<String>),
    /// It is deleted, if it still has this UID.
    Delete {
        /// The UID.
        uid: String,
    },
}

/// Decides what becomes of an object that its work no longer has.
///
/// Only what the record owns is deleted; owners of other kinds do not protect an object, other
/// records do. An object that took the place of the one that was applied is left alone.
pub fn removal(recorded_uid: Option<&str>, live: Option<&Value>, owner: &Owner) -> Removal {
    let Some(live) = live.filter(|live| owner.owns(live)) else {
        return Removal::Forget;
    };
    let uid = live["metadata"]["uid"].as_str().unwrap_or_default();
    let is_shared = references(live)
        .iter()
        .any(|reference| reference["uid"] != *owner.uid && is_record(reference));
    if is_shared {
        let mut others = references(live).to_vec();
        others.retain(|reference| reference["uid"] != *owner.uid);
        return Removal::Release(references_patch(live, others));
    }
    if recorded_uid.is_some_and(|recorded| !recorded.is_empty() && recorded != uid) {
        return Removal::Forget;
    }
    if live["metadata"]["deletionTimestamp"].is_string() {
        let finalizers = live["metadata"]["finalizers"].as_array();
        let names = finalizers.into_iter().flatten().filter_map(Value::as_str);
        return Removal::Wait(names.map(str::to_owned).collect());
    }
    Removal::Delete {
        uid: uid.to_owned(),
    }
}

/// Group and version of the records of ManifestWorks.
pub fn record_api_version() -> String {
    format!("{GROUP}/v1")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(uid: &str) -> Owner {
        Owner {
            api_version: record_api_version(),
            kind: "AppliedManifestWork".into(),
            name: format!("hub-{uid}"),
            uid: uid.into(),
        }
    }

    fn object(owners: &[Value]) -> Value {
        json!({"metadata": {"uid": "u", "resourceVersion": "7", "ownerReferences": owners}})
    }

    #[test]
    fn owners_are_added_kept_and_taken_away() {
        let foreign =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "9"});
        let live = object(std::slice::from_ref(&foreign));
        let wanted = wanted_references(&live, &owner("1"), true);
        assert_eq!(wanted, [foreign.clone(), owner("1").reference()]);
        let owned = object(&wanted);
        assert_eq!(patch(&owned, &owner("1"), true), None);
        assert_eq!(
            patch(&owned, &owner("1"), false),
            Some(
                json!({"metadata": {"uid": "u", "resourceVersion": "7", "ownerReferences": [foreign]}})
            )
        );
    }

    #[test]
    fn a_record_that_was_made_again_takes_the_place_of_the_old_one() {
        let mut old = owner("1");
        old.uid = "0".into();
        let live = object(&[old.reference()]);
        assert_eq!(
            wanted_references(&live, &owner("1"), true),
            [owner("1").reference()]
        );
    }

    #[test]
    fn what_becomes_of_objects() {
        let check =
            |recorded: Option<&str>, live: Option<&Value>, mine: &Owner, expected: Removal| {
                assert_eq!(
                    removal(recorded, live, mine),
                    expected,
                    "{recorded:?} {live:?}"
                );
            };
        let mine = owner("1");
        let ours = object(&[mine.reference()]);
        let delete = Removal::Delete { uid: "u".into() };
        check(Some("u"), None, &mine, Removal::Forget);
        check(Some("u"), Some(&object(&[])), &mine, Removal::Forget);
        check(Some("u"), Some(&ours), &mine, delete.clone());
        check(None, Some(&ours), &mine, delete.clone());
        check(Some("other"), Some(&ours), &mine, Removal::Forget);
        let foreign =
            json!({"apiVersion": "apps/v1", "kind": "Deployment", "name": "d", "uid": "9"});
        check(
            Some("u"),
            Some(&object(&[mine.reference(), foreign])),
            &mine,
            delete,
        );
        let shared = object(&[mine.reference(), owner("2").reference()]);
        let released = references_patch(&shared, vec![owner("2").reference()]);
        check(Some("u"), Some(&shared), &mine, Removal::Release(released));
        let small = json!({"apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "AppliedWork", "name": "d", "uid": "9"});
        let shared = object(&[mine.reference(), small.clone()]);
        let released = references_patch(&shared, vec![small]);
        check(Some("u"), Some(&shared), &mine, Removal::Release(released));
        let mut leaving = ours.clone();
        leaving["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        leaving["metadata"]["finalizers"] = json!(["a/b"]);
        check(
            Some("u"),
            Some(&leaving),
            &mine,
            Removal::Wait(vec!["a/b".into()]),
        );
    }
}
