//! An object that is about to be written.

use serde_json::{Map, Value};

use super::excerpt::Excerpt;
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
    /// The number of the schema that the object is in order by, if that is known.
    settled_by: u32,
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
        if draft.length() > LARGEST {
            return Err(ApiError::too_large_to_store());
        }
        Ok(draft)
    }

    /// What `text` is after its excerpt has become `object`. Nothing if that has another form, or is too large.
    pub(crate) fn of_excerpt(excerpt: &Excerpt, object: &Value, text: &[u8]) -> Option<Self> {
        let has_members = object.as_object().is_some_and(|it| excerpt.has_members(it));
        let mut is_written = has_members;
        let written = write_object(object, text.len() + 512, |out, name, value| {
            is_written &= excerpt.write_member(name, value, text, out);
        });
        if !is_written || written.json.len() > LARGEST {
            return None;
        }
        // What others have in common with it was found to be little when its text was kept whole.
        let scan = scan(&written.json[..written.metadata_end]);
        Some(Self {
            owners: owners(&written.json, &scan),
            text: DraftText::Whole {
                json: written.json,
                hole: written.hole,
                scan,
            },
            settled_by: 0,
        })
    }

    /// Takes note that the object is in order by the schema of this number.
    pub(crate) fn settled_by(mut self, schema: u32) -> Self {
        self.settled_by = schema;
        self
    }

    fn length(&self) -> usize {
        match &self.text {
            DraftText::Whole { json, .. } => json.len(),
            DraftText::Shared { shape, values } => shape.length(values),
        }
    }

    /// Serialises `object`, leaving out its type and a hole where the revision will stand.
    pub(crate) fn new(object: &Value) -> Self {
        let Written { json, hole, .. } = write_object(object, 512, |out, _, value| {
            write_json(out, value);
        });
        let scan = scan(&json);
        let owners = owners(&json, &scan);
        let text = match recognise(&json, &scan.tokens) {
            Some((shape, values)) => DraftText::Shared { shape, values },
            None => DraftText::Whole { json, hole, scan },
        };
        Self {
            text,
            owners,
            settled_by: 0,
        }
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
        let stored = StoredObject {
            text,
            owners: self.owners,
        };
        stored.settle(self.settled_by);
        stored
    }
}

/// An object without its type, as it is written.
struct Written {
    json: Vec<u8>,
    /// Where the digits of its revision go.
    hole: usize,
    /// Where its metadata end.
    metadata_end: usize,
}

/// Writes an object without its type; members other than metadata by a function.
fn write_object(
    object: &Value,
    capacity: usize,
    mut write: impl FnMut(&mut Vec<u8>, &str, &Value),
) -> Written {
    let mut json = Vec::with_capacity(capacity);
    let (mut hole, mut metadata_end) = (0, 0);
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
            metadata_end = json.len();
        } else {
            write(&mut json, key, value);
        }
    }
    if !has_metadata {
        separate(&mut json);
        json.extend_from_slice(b"\"metadata\":");
        hole = write_metadata(&mut json, &empty);
        metadata_end = json.len();
    }
    json.push(b'}');
    Written {
        json,
        hole,
        metadata_end,
    }
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
