//! An object at rest: its JSON without `apiVersion` and `kind`, and the few facts that lists,
//! selectors and garbage collection ask for without parsing it.
//!
//! The type is left out because the key says it: an answer is the type's prefix followed by this
//! text, so reading costs no serialisation, and a list is a concatenation. What the texts of many
//! objects have in common is kept once (`shape`).

mod draft;
mod excerpt;
mod scan;
mod shape;
mod summary;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bellwether_json::label::Labels;
use bellwether_store::{DecodeError, Revision, Value as StoreValue};
use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;

pub(crate) use self::draft::Draft;
pub(crate) use self::excerpt::Excerpt;
pub(crate) use self::scan::member;
use self::scan::{Role, Scan, Span, scan};
use self::shape::{Shape, Values, recognise};

/// An object as the store keeps it.
#[derive(Debug)]
pub struct StoredObject {
    text: Text,
    owners: Box<[Owner]>,
}

/// The text of an object, and where in it to find what is known without parsing.
#[derive(Debug)]
enum Text {
    /// As it is.
    Whole {
        json: Box<[u8]>,
        /// Keys and values of `metadata.labels`.
        labels: Box<[(Span, Span)]>,
        uid: Span,
        is_deleting: bool,
        /// The number of the schema that the object is known to be in order by; zero if there is none.
        settled_by: AtomicU32,
    },
    /// As others, but for its values.
    Shared { shape: Arc<Shape>, values: Values },
}

/// One entry of `metadata.ownerReferences`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Owner {
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
    pub fn untyped_json(&self) -> Vec<u8> {
        let mut json = Vec::with_capacity(self.length());
        self.write_untyped(&mut json);
        json
    }

    /// The length of the object without its type.
    pub(crate) fn length(&self) -> usize {
        match &self.text {
            Text::Whole { json, .. } => json.len(),
            Text::Shared { shape, values } => shape.length(values),
        }
    }

    /// The text of the object without its type, if it is kept whole.
    pub(crate) fn whole_text(&self) -> Option<&[u8]> {
        match &self.text {
            Text::Whole { json, .. } => Some(json),
            Text::Shared { .. } => None,
        }
    }

    /// The number of the schema by which nothing is wrong with the object, nothing unknown and nothing left out.
    /// Zero if that was not found out.
    pub(crate) fn settled_by(&self) -> u32 {
        match &self.text {
            Text::Whole { settled_by, .. } => settled_by.load(Ordering::Relaxed),
            Text::Shared { .. } => 0,
        }
    }

    /// Takes note that the object is in order by a schema.
    pub(crate) fn settle(&self, schema: u32) {
        if let Text::Whole { settled_by, .. } = &self.text {
            settled_by.store(schema, Ordering::Relaxed);
        }
    }

    /// Whether a text occurs in the object: a look before parsing it.
    pub(crate) fn mentions(&self, text: &str) -> bool {
        let json = self.untyped_json();
        std::str::from_utf8(&json).is_ok_and(|json| json.contains(text))
    }

    /// Appends the object without its type.
    pub(crate) fn write_untyped(&self, out: &mut Vec<u8>) {
        self.write_from(0, out);
    }

    /// Appends the object with its type in front.
    pub fn write_typed(&self, api_version: &str, kind: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"kind\":\"");
        out.extend_from_slice(kind.as_bytes());
        out.extend_from_slice(b"\",\"apiVersion\":\"");
        out.extend_from_slice(api_version.as_bytes());
        out.extend_from_slice(b"\",");
        self.write_from(1, out);
    }

    fn write_from(&self, skip: usize, out: &mut Vec<u8>) {
        match &self.text {
            Text::Whole { json, .. } => out.extend_from_slice(&json[skip..]),
            Text::Shared { shape, values } => shape.write(values, skip, out),
        }
    }

    /// Appends at most `most` bytes of the object without its type, beginning at an offset.
    pub(crate) fn write_part(&self, from: usize, most: usize, out: &mut Vec<u8>) {
        match &self.text {
            Text::Whole { json, .. } => {
                let rest = json.get(from..).unwrap_or_default();
                out.extend_from_slice(&rest[..rest.len().min(most)]);
            }
            Text::Shared { shape, values } => shape.write_part(values, from, most, out),
        }
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
        match &self.text {
            Text::Whole { json, .. } => serde_json::from_slice(json),
            Text::Shared { .. } => serde_json::from_slice(&self.untyped_json()),
        }
        .unwrap_or_default()
    }

    /// `metadata.uid`
    pub(crate) fn uid(&self) -> &str {
        text(match &self.text {
            Text::Whole { json, uid, .. } => uid.of(json),
            Text::Shared { shape, values } => shape.uid(values),
        })
    }

    /// `metadata.ownerReferences`
    pub(crate) fn owners(&self) -> &[Owner] {
        &self.owners
    }

    /// Whether `metadata.deletionTimestamp` is set.
    pub(crate) fn is_deleting(&self) -> bool {
        match &self.text {
            Text::Whole { is_deleting, .. } => *is_deleting,
            Text::Shared { shape, .. } => shape.is_deleting(),
        }
    }
}

/// A part of an object's text.
fn text(bytes: &[u8]) -> &str {
    // A text is cut at quotes only.
    std::str::from_utf8(bytes).unwrap_or_default()
}

impl Labels for StoredObject {
    fn label(&self, key: &str) -> Option<&str> {
        let value = match &self.text {
            Text::Whole { json, labels, .. } => {
                let mut labels = labels.iter();
                let found = labels.find(|(name, _)| name.of(json) == key.as_bytes());
                found?.1.of(json)
            }
            Text::Shared { shape, values } => shape.label(key, values)?,
        };
        Some(text(value))
    }
}

impl Text {
    /// A text that is kept whole.
    fn whole(json: Box<[u8]>, scan: &Scan) -> Self {
        let (mut labels, mut key, mut uid) = (Vec::new(), None, Span::default());
        let mut is_deleting = false;
        for token in &scan.tokens {
            match token.role {
                Role::LabelKey => key = Some(token.span),
                Role::LabelValue => labels.extend(key.take().map(|key| (key, token.span))),
                Role::Uid => uid = token.span,
                Role::Deletion => is_deleting = true,
                _ => {}
            }
        }
        Self::Whole {
            json,
            labels: labels.into(),
            uid,
            is_deleting,
            settled_by: AtomicU32::new(0),
        }
    }
}

/// The owners that a text names.
fn owners(json: &[u8], scan: &Scan) -> Box<[Owner]> {
    let Some(list) = scan.owners else {
        return Box::default();
    };
    let owners: Vec<Value> = serde_json::from_slice(list.of(json)).unwrap_or_default();
    let owners = owners.iter();
    owners
        .filter_map(|owner| Owner::deserialize(owner).ok())
        .collect()
}

impl StoreValue for StoredObject {
    fn encode(&self) -> Bytes {
        self.untyped_json().into()
    }

    fn decode(json: Bytes) -> Result<Self, DecodeError> {
        serde_json::from_slice::<Head>(&json)
            .map_err(|error| DecodeError::new(error.to_string()))?;
        let scan = scan(&json);
        let text = match recognise(&json, &scan.tokens) {
            Some((shape, values)) => Text::Shared { shape, values },
            None => Text::whole(json.as_ref().into(), &scan),
        };
        Ok(Self {
            owners: owners(&json, &scan),
            text,
        })
    }

    fn weight(&self) -> usize {
        let text = match &self.text {
            Text::Whole { json, .. } => json.len(),
            Text::Shared { values, .. } => values.len(),
        };
        size_of::<Self>() + text
    }
}

/// What every object at rest has: that much is checked when one is read.
#[derive(Deserialize)]
struct Head {
    #[expect(dead_code, reason = "it has to be there")]
    metadata: serde::de::IgnoredAny,
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, json};

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
    fn what_is_known_survives_a_restart_and_sharing() {
        let object = json!({"metadata": {
            "name": "x", "uid": "0a2b3c4d-0000-4000-8000-000000000000", "labels": {"b": "2", "a": "x"},
            "deletionTimestamp": "2026-01-01T00:00:00Z",
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "o", "blockOwnerDeletion": true}],
        }, "spec": {"what": "is not worth sharing unless it is a little longer than this"}});
        let first = Draft::new(&object).finish(7);
        let second = Draft::new(&object).finish(7);
        assert!(matches!(second.text, Text::Shared { .. }));
        let third = StoredObject::decode(first.encode()).unwrap();
        assert!(matches!(third.text, Text::Shared { .. }));
        for stored in [first, second, third] {
            assert_eq!(stored.uid(), object["metadata"]["uid"]);
            assert_eq!(
                (stored.label("a"), stored.label("b")),
                (Some("x"), Some("2"))
            );
            assert_eq!((stored.owners().len(), &*stored.owners()[0].uid), (1, "o"));
            assert!(stored.is_deleting() && stored.mentions("\"what\""));
            assert_eq!(stored.length(), stored.encode().len());
            for most in [1, 7, 64, 10_000] {
                let mut parts = Vec::new();
                while parts.len() < stored.length() {
                    stored.write_part(parts.len(), most, &mut parts);
                }
                assert_eq!(parts, stored.encode());
            }
            let mut read = stored.to_untyped_value();
            let metadata = read["metadata"].as_object_mut().unwrap();
            assert_eq!(metadata.remove("resourceVersion").unwrap(), "7");
            assert_eq!(read, object);
            let mut typed = Vec::new();
            stored.write_typed("v1", "X", &mut typed);
            assert!(typed.starts_with(br#"{"kind":"X","apiVersion":"v1","metadata":{"deletion"#));
            assert_eq!(
                typed.len(),
                stored.length() + r#""kind":"X","apiVersion":"v1","#.len()
            );
        }
    }

    #[test]
    fn what_is_not_an_object_is_no_value() {
        for text in ["{}", "[]", "{\"metadata\"", "{\"metadata\":{}} x"] {
            assert!(StoredObject::decode(text.into()).is_err(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_object_is_read_as_it_was_written(object in any_object(), revision in 1_u64..10_000_000) {
            let mut want = object.clone();
            want["metadata"]["resourceVersion"] = revision.to_string().into();
            for _ in 0..3 {
                let stored = Draft::new(&object).finish(revision);
                prop_assert_eq!(&stored.to_untyped_value(), &want);
                prop_assert_eq!(stored.uid(), want["metadata"]["uid"].as_str().unwrap());
                let read = StoredObject::decode(stored.encode()).unwrap();
                prop_assert_eq!(&read.to_untyped_value(), &want);
                let labels = want["metadata"]["labels"].as_object().unwrap();
                for (key, value) in labels {
                    prop_assert_eq!(stored.label(key), value.as_str());
                    prop_assert_eq!(read.label(key), value.as_str());
                }
            }
        }
    }

    /// Objects with values of all sorts, many of which look like names, times and uids.
    fn any_object() -> impl Strategy<Value = Value> {
        let text = || {
            prop_oneof![
                Just("one".to_owned()),
                Just("of one, and \"two\"".to_owned()),
                Just("2026-01-31T12:00:00Z".to_owned()),
                Just("01234567-89ab-cdef-0123-456789abcdef".to_owned()),
                Just("k:{\"uid\":\"01234567-89ab-cdef-0123-456789abcdef\"}".to_owned()),
                "[a-z\\\\\"\u{0}-\u{1f}äß]{0,300}",
            ]
        };
        let leaf = prop_oneof![
            text().prop_map(Value::from),
            any::<i64>().prop_map(Value::from)
        ];
        let tree = leaf.prop_recursive(4, 40, 5, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map(text(), inner, 0..5)
                    .prop_map(|fields| fields.into_iter().collect::<Map<_, _>>().into()),
            ]
        });
        let labels = prop::collection::btree_map("[a-z./]{1,9}", "(one|two|[a-z]{0,9})", 0..4);
        let uid = Just("fedcba98-89ab-cdef-0123-456789abcdef");
        ("(one|two)", labels, uid, tree).prop_map(|(name, labels, uid, spec)| {
            json!({"metadata": {"name": name, "labels": labels, "uid": uid}, "spec": spec})
        })
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
