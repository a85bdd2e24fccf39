//! An object at rest: its JSON without `apiVersion` and `kind`, and the few facts that lists,
//! selectors and garbage collection ask for without parsing it.
//!
//! The type is left out because the key says it: an answer is the type's prefix followed by these
//! bytes, so reading costs no serialisation, and a list is a concatenation.
//!
//! The default roles are the greater part of an idle cluster, and differ between clusters only in
//! their metadata: their rules, which end the text, are kept once for all clusters.

use std::borrow::Cow;
use std::collections::BTreeMap;

use bellwether_json::label::Labels;
use bellwether_store::{DecodeError, Revision, Value as StoreValue};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::access::shared_endings;

/// An object as the store keeps it.
#[derive(Debug)]
pub struct StoredObject {
    /// The text but for its ending.
    json: Bytes,
    /// The ending, if many objects share it; else nothing.
    ending: &'static [u8],
    /// What is known without parsing.
    pub facts: Facts,
}

/// What lists, selectors and garbage collection ask for.
#[derive(Debug, Default)]
pub struct Facts {
    /// `metadata.uid`
    pub uid: Box<str>,
    /// `metadata.labels`, sorted by key.
    pub labels: Box<[(Box<str>, Box<str>)]>,
    /// `metadata.ownerReferences`
    pub owners: Box<[Owner]>,
    /// Whether `metadata.deletionTimestamp` is set.
    pub deleting: bool,
}

/// One entry of `metadata.ownerReferences`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    /// API version of the owner.
    #[serde(default)]
    pub api_version: Box<str>,
    /// Kind of the owner.
    #[serde(default)]
    pub kind: Box<str>,
    /// Name of the owner.
    #[serde(default)]
    pub name: Box<str>,
    /// Uid of the owner: a namesake with another uid is somebody else.
    #[serde(default)]
    pub uid: Box<str>,
    /// Whether a foreground deletion of the owner waits for this object.
    #[serde(default)]
    pub block_owner_deletion: bool,
}

impl StoredObject {
    /// The object without its type.
    pub fn untyped_json(&self) -> Bytes {
        if self.ending.is_empty() {
            return self.json.clone();
        }
        [&self.json, self.ending].concat().into()
    }

    /// The length of the object without its type.
    pub(crate) fn length(&self) -> usize {
        self.json.len() + self.ending.len()
    }

    /// Whether a text occurs in the object, its ending apart: a look before parsing it.
    pub(crate) fn mentions(&self, text: &str) -> bool {
        std::str::from_utf8(&self.json).is_ok_and(|json| json.contains(text))
    }

    /// Appends the object without its type.
    pub(crate) fn write_untyped(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.json);
        out.extend_from_slice(self.ending);
    }

    /// Appends the object with its type in front.
    pub fn write_typed(&self, api_version: &str, kind: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"kind\":\"");
        out.extend_from_slice(kind.as_bytes());
        out.extend_from_slice(b"\",\"apiVersion\":\"");
        out.extend_from_slice(api_version.as_bytes());
        out.extend_from_slice(b"\",");
        out.extend_from_slice(&self.json[1..]);
        out.extend_from_slice(self.ending);
    }

    /// The object with its type, for changing it.
    pub fn to_value(&self, api_version: &str, kind: &str) -> Value {
        let mut value = self.to_untyped_value();
        if let Value::Object(fields) = &mut value {
            fields.insert("apiVersion".into(), api_version.into());
            fields.insert("kind".into(), kind.into());
        }
        value
    }

    /// The object without its type.
    pub fn to_untyped_value(&self) -> Value {
        // What was written by `Draft` or accepted by `decode` parses.
        serde_json::from_slice(&self.untyped_json()).unwrap_or_default()
    }
}

impl Labels for StoredObject {
    fn label(&self, key: &str) -> Option<&str> {
        let labels = &self.facts.labels;
        let found = labels
            .binary_search_by(|(name, _)| (**name).cmp(key))
            .ok()?;
        Some(&labels[found].1)
    }
}

/// An object that is ready to be written, but for its revision.
#[derive(Debug)]
pub(crate) struct Draft {
    json: Vec<u8>,
    /// Where the digits of `metadata.resourceVersion` go.
    hole: usize,
    facts: Facts,
}

impl Draft {
    /// Serialises `object`, leaving out its type and a hole where the revision will stand.
    pub(crate) fn new(object: &Value) -> Self {
        let mut json = Vec::with_capacity(512);
        let mut hole = 0;
        let empty = Map::new();
        let fields = object.as_object().unwrap_or(&empty);
        json.push(b'{');
        let mut has_metadata = false;
        for (key, value) in fields {
            if key == "apiVersion" || key == "kind" {
                continue;
            }
            separate(&mut json);
            write_json(&mut json, key);
            json.push(b':');
            if key == "metadata" {
                has_metadata = true;
                hole = write_metadata(&mut json, value.as_object().unwrap_or(&empty));
            } else {
                write_json(&mut json, value);
            }
        }
        if !has_metadata {
            separate(&mut json);
            json.extend_from_slice(b"\"metadata\":");
            hole = write_metadata(&mut json, &empty);
        }
        json.push(b'}');
        let facts = facts_of(object.get("metadata").unwrap_or(&Value::Null));
        Self { json, hole, facts }
    }

    /// Fills in the revision.
    pub(crate) fn finish(self, revision: Revision) -> StoredObject {
        let revision = revision.to_string();
        // An ending follows the metadata, so it comes after the hole.
        let ending = shared_ending(&self.json);
        let end = self.json.len() - ending.len();
        let mut json = Vec::with_capacity(end + revision.len());
        json.extend_from_slice(&self.json[..self.hole]);
        json.extend_from_slice(revision.as_bytes());
        json.extend_from_slice(&self.json[self.hole..end]);
        StoredObject {
            json: json.into(),
            ending,
            facts: self.facts,
        }
    }
}

/// The ending of a text that many objects have, or nothing.
fn shared_ending(json: &[u8]) -> &'static [u8] {
    let mut endings = shared_endings().iter();
    endings
        .find(|ending| json.ends_with(ending))
        .map_or(&[], |ending| ending)
}

/// Writes `metadata` with an empty `resourceVersion` and returns where its digits go.
fn write_metadata(json: &mut Vec<u8>, metadata: &Map<String, Value>) -> usize {
    const FIELD: &str = "resourceVersion";
    let mut hole = None;
    json.push(b'{');
    for (key, value) in metadata {
        if key == FIELD {
            continue;
        }
        if hole.is_none() && key.as_str() > FIELD {
            hole = Some(write_hole(json));
        }
        separate(json);
        write_json(json, key);
        json.push(b':');
        write_json(json, value);
    }
    let hole = hole.unwrap_or_else(|| write_hole(json));
    json.push(b'}');
    hole
}

fn write_hole(json: &mut Vec<u8>) -> usize {
    separate(json);
    json.extend_from_slice(b"\"resourceVersion\":\"");
    let hole = json.len();
    json.push(b'"');
    hole
}

fn separate(json: &mut Vec<u8>) {
    if json.last() != Some(&b'{') {
        json.push(b',');
    }
}

fn write_json<T: serde::Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    // Writing a JSON value with string keys into memory has no way to fail.
    let _ = serde_json::to_writer(out, value);
}

fn facts_of(metadata: &Value) -> Facts {
    let labels = metadata["labels"].as_object().map(|labels| {
        labels
            .iter()
            .map(|(key, value)| {
                (
                    key.as_str().into(),
                    value.as_str().unwrap_or_default().into(),
                )
            })
            .collect()
    });
    let owners = metadata["ownerReferences"].as_array().map(|owners| {
        owners
            .iter()
            .filter_map(|owner| Owner::deserialize(owner).ok())
            .collect()
    });
    Facts {
        uid: metadata["uid"].as_str().unwrap_or_default().into(),
        labels: labels.unwrap_or_default(),
        owners: owners.unwrap_or_default(),
        deleting: metadata
            .get("deletionTimestamp")
            .is_some_and(Value::is_string),
    }
}

/// The part of an object that [`Facts`] are made of, borrowed from its bytes.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    metadata: HeadMetadata<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct HeadMetadata<'a> {
    #[serde(borrow, default)]
    uid: Cow<'a, str>,
    #[serde(borrow, default)]
    labels: BTreeMap<Cow<'a, str>, Cow<'a, str>>,
    #[serde(default)]
    owner_references: Vec<Owner>,
    #[serde(borrow, default)]
    deletion_timestamp: Option<Cow<'a, str>>,
}

impl StoreValue for StoredObject {
    fn encode(&self) -> Bytes {
        self.untyped_json()
    }

    fn decode(json: Bytes) -> Result<Self, DecodeError> {
        let head: Head<'_> =
            serde_json::from_slice(&json).map_err(|error| DecodeError::new(error.to_string()))?;
        let metadata = head.metadata;
        let facts = Facts {
            uid: metadata.uid.into(),
            labels: metadata
                .labels
                .into_iter()
                .map(|(key, value)| (key.into(), value.into()))
                .collect(),
            owners: metadata.owner_references.into(),
            deleting: metadata.deletion_timestamp.is_some(),
        };
        let ending = shared_ending(&json);
        let kept = json.len() - ending.len();
        // A slice would keep the whole text alive.
        let json = match ending {
            [] => json,
            _ => Bytes::copy_from_slice(&json[..kept]),
        };
        Ok(Self {
            json,
            ending,
            facts,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_revision_is_spliced_in_and_the_type_left_out() {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"},
            "metadata": {"name": "x", "uid": "u", "resourceVersion": "old", "labels": {"l": "1"}},
        });
        let stored = Draft::new(&object).finish(42);
        let want = json!({
            "data": {"a": "b"},
            "metadata": {"name": "x", "uid": "u", "resourceVersion": "42", "labels": {"l": "1"}},
        });
        assert_eq!(stored.to_untyped_value(), want);
        assert_eq!(stored.label("l"), Some("1"));
        assert_eq!(stored.label("m"), None);
        let mut typed = Vec::new();
        stored.write_typed("v1", "ConfigMap", &mut typed);
        let typed: Value = serde_json::from_slice(&typed).unwrap();
        assert_eq!(typed["kind"], "ConfigMap");
        assert_eq!(typed, stored.to_value("v1", "ConfigMap"));
    }

    #[test]
    fn facts_survive_a_restart() {
        let object = json!({"metadata": {
            "name": "x", "uid": "u", "labels": {"b": "2", "a": "1"}, "deletionTimestamp": "2026-01-01T00:00:00Z",
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "o", "blockOwnerDeletion": true}],
        }});
        let stored = Draft::new(&object).finish(7);
        let read = StoredObject::decode(stored.encode()).unwrap();
        assert_eq!(read.facts.labels, stored.facts.labels);
        assert_eq!(read.facts.owners, stored.facts.owners);
        assert_eq!((&*read.facts.uid, read.facts.deleting), ("u", true));
    }

    #[test]
    fn what_many_objects_end_with_is_kept_once_and_never_missed() {
        let role = crate::access::bootstrap_objects()
            .into_iter()
            .find(|object| object["metadata"]["name"] == "admin")
            .unwrap();
        let stored = Draft::new(&role).finish(42);
        assert!(stored.json.len() * 2 < stored.length());
        for stored in [StoredObject::decode(stored.encode()).unwrap(), stored] {
            let mut read = stored.to_value("rbac.authorization.k8s.io/v1", "ClusterRole");
            let metadata = read["metadata"].as_object_mut().unwrap();
            assert_eq!(metadata.remove("resourceVersion").unwrap(), "42");
            assert_eq!(read, role);
            let mut typed = Vec::new();
            stored.write_typed("v1", "X", &mut typed);
            assert_eq!(
                serde_json::from_slice::<Value>(&typed).unwrap()["rules"],
                role["rules"]
            );
            let mut untyped = Vec::new();
            stored.write_untyped(&mut untyped);
            assert_eq!(
                (untyped.len(), untyped),
                (stored.length(), stored.encode().to_vec())
            );
        }
    }

    #[test]
    fn an_object_without_metadata_gets_a_revision_all_the_same() {
        let stored = Draft::new(&json!({"kind": "X"})).finish(3);
        assert_eq!(
            stored.to_untyped_value(),
            json!({"metadata": {"resourceVersion": "3"}})
        );
    }
}
