//! Objects in the protobuf form of the Kubernetes API: request bodies read as JSON, and answers written
//! from it.
//!
//! Typed clients send objects of built-in kinds as [`MEDIA_TYPE`]: a prefix of four bytes, an
//! envelope that names `apiVersion` and `kind`, and the object as a protobuf message. [`decode`]
//! gives the JSON form of such a body: exactly the value that a Go program prints after reading
//! it, with its rules of what is left out, what is `null` and what is written as a zero value.
//!
//! Which field numbers make which JSON is a table of facts, `messages.txt`; its notation is
//! described at its top. It holds the kinds that can be the body of a request; lists of them are all
//! alike. [`encode`] goes the other way.
//!
//! Nothing is checked beyond what is needed to read the message: defaults and validation are those of
//! any JSON object.
//!
//! ```
//! let body = b"k8s\0\x0a\x0f\x0a\x02v1\x12\x09Namespace\x12\x0b\x0a\x09\x0a\x07staging";
//! let object = bellwether_protobuf::decode(body)?;
//! assert_eq!(object["kind"], "Namespace");
//! assert_eq!(object["metadata"]["name"], "staging");
//! # Ok::<(), bellwether_protobuf::DecodeError>(())
//! ```

mod decode;
mod encode;
mod envelope;
mod error;
mod scalar;
mod table;
mod time;
mod wire;

#[cfg(test)]
mod tests;

use serde_json::Value;

use table::Message;

pub use decode::{MAX_DEPTH, MAX_VALUES};
pub use error::{DecodeError, Reason};
pub use wire::WireType;

/// The media type of the bodies that [`decode`] reads.
pub const MEDIA_TYPE: &str = "application/vnd.kubernetes.protobuf";

/// What every such body starts with.
pub const PREFIX: &[u8; 4] = b"k8s\0";

/// The object in a request body, with `apiVersion` and `kind`.
///
/// Unknown fields are skipped, as a server that is older than its client does.
pub fn decode(body: &[u8]) -> Result<Value, DecodeError> {
    let envelope = envelope::open(body)?;
    let table = table::table();
    let message = table
        .kind(&envelope.api_version, &envelope.kind)
        .ok_or_else(|| DecodeError::UnknownKind {
            api_version: envelope.api_version.clone(),
            kind: envelope.kind.clone(),
        })?;
    decode::object(table, message, &envelope)
}

/// Whether objects of a kind can be written.
pub fn knows(api_version: &str, kind: &str) -> bool {
    table::table().kind(api_version, kind).is_some()
}

/// An object, or a list of objects of one kind, as the body of an answer; nothing for kinds that have
/// no such form. `apiVersion` and `kind` say what it is.
///
/// ```
/// let object = serde_json::json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}});
/// let body = bellwether_protobuf::encode(&object).unwrap();
/// assert_eq!(bellwether_protobuf::decode(&body)?["metadata"]["name"], "x");
/// # Ok::<(), bellwether_protobuf::DecodeError>(())
/// ```
pub fn encode(object: &Value) -> Option<Vec<u8>> {
    let table = table::table();
    let api_version = object["apiVersion"].as_str()?;
    let kind = object["kind"].as_str()?;
    if let Some(message) = table.kind(api_version, kind) {
        let message = encode::object(table, message, object);
        return Some(encode::envelope(api_version, kind, &message));
    }
    let items = table.kind(api_version, kind.strip_suffix("List")?)?;
    let message = encode::list(table, items, object);
    Some(encode::envelope(api_version, kind, &message))
}

/// Writes a list item by item, for answers that are sent while they are written.
///
/// The length of all items stands before the first one, so items have to be written twice: once to add
/// their lengths up, and once to send them.
#[derive(Debug, Clone, Copy)]
pub struct ListEncoder {
    items: &'static Message,
}

impl ListEncoder {
    /// For items of a kind; nothing for kinds that have no such form.
    pub fn new(api_version: &str, kind: &str) -> Option<Self> {
        let items = table::table().kind(api_version, kind)?;
        Some(Self { items })
    }

    /// Returns what stands before the items of a list of this kind, given their length.
    pub fn head(
        self,
        api_version: &str,
        list_kind: &str,
        metadata: &Value,
        items_length: usize,
    ) -> Vec<u8> {
        encode::list_head(api_version, list_kind, metadata, items_length)
    }

    /// Appends an item.
    pub fn item(self, object: &Value, out: &mut Vec<u8>) {
        encode::list_item(table::table(), self.items, object, out);
    }
}
