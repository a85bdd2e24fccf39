//! An object that is about to be written.

use serde_json::{Map, Value};

use super::scan::{Scan, scan};
use super::shape::{Shape, Values, recognise};
use super::{Owner, Revision, StoredObject, Text, owners};
use std::sync::Arc;

use crate::status::ApiError;

/// An object that is ready to be written, but for its revision.
#[derive(Debug)]
pub(crate) struct Draft {
    text: DraftText,
    owners: Box<[Owner]>,
}

#[derive(Debug)]
enum DraftText {
    Whole {
        json: Vec<u8>,
        /// Where the digits of `metadata.resourceVersion` go.
        hole: usize,
        scan: Scan,
    },
    Shared {
        shape: Arc<Shape>,
        values: Values,
    },
}

/// The largest object that is stored, without its type: what etcd takes of one request.
const LARGEST: usize = 1536 * 1024;

impl Draft {
    /// As [`Draft::new`], for an object that a client sent: one that is too large is refused.
    pub(crate) fn checked(object: &Value) -> Result<Self, ApiError> {
        let draft = Self::new(object);
        let length = match &draft.text {
            DraftText::Whole { json, .. } => json.len(),
            DraftText::Shared { shape, values } => shape.length(values),
        };
        if length > LARGEST {
            return Err(ApiError::too_large_to_store());
        }
        Ok(draft)
    }

    /// Serialises `object`, leaving out its type and a hole where the revision will stand.
    pub(crate) fn new(object: &Value) -> Self {
        let (json, hole) = write_object(object);
        let scan = scan(&json);
        let owners = owners(&json, &scan);
        let text = match recognise(&json, &scan.tokens) {
            Some((shape, values)) => DraftText::Shared { shape, values },
            None => DraftText::Whole { json, hole, scan },
        };
        Self { text, owners }
    }

    /// Fills in the revision.
    pub(crate) fn finish(self, revision: Revision) -> StoredObject {
        let revision = revision.to_string();
        let text = match self.text {
            DraftText::Whole { json, hole, scan } => {
                let json = [&json[..hole], revision.as_bytes(), &json[hole..]].concat();
                Text::whole(json.into(), &scan.shifted(hole, revision.len()))
            }
            DraftText::Shared { shape, values } => Text::Shared {
                shape,
                values: values.with_version(&revision),
            },
        };
        StoredObject {
            text,
            owners: self.owners,
        }
    }
}

/// Writes an object without its type, and returns where the digits of its revision go.
fn write_object(object: &Value) -> (Vec<u8>, usize) {
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
    (json, hole)
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
