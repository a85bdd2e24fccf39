//! Moving from client-side to server-side apply with `kubectl`.
//!
//! `kubectl apply` keeps what it sent in an annotation. When the manager `kubectl` applies on the
//! server, fields that the annotation shows to be its own do not conflict, and the annotation is kept
//! up to date so that going back works. Other managers opt out by their name.

use serde_json::Value;

use super::{Applied, Write};
use crate::fieldset::FieldSet;
use crate::path::write_json_text;
use crate::typed::Type;
use crate::typed::compare::compare;
use crate::typed::fields::field_set;
use crate::typed::validate::validate;

/// The manager that client-side apply upgrades to (kubernetes: `lastappliedmanager.go`).
pub(super) const KUBECTL: &str = "kubectl";

/// Where client-side apply keeps the configuration that it sent last.
pub const LAST_APPLIED_ANNOTATION: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Bytes that all annotations may have together (kubernetes: `TotalAnnotationSizeLimitB`).
const MAX_ANNOTATION_BYTES: usize = 256 * 1024;

/// The fields of the annotation whose values are still those of the object; `None` without one.
pub(super) fn unchanged_fields(live: &Value, write: &Write) -> Option<FieldSet> {
    let text = live
        .get("metadata")?
        .get("annotations")?
        .get(LAST_APPLIED_ANNOTATION)?
        .as_str()?;
    let last: Value = serde_json::from_str(text).ok()?;
    if last.get("apiVersion").and_then(Value::as_str) != Some(write.api_version) {
        return None;
    }
    let kind = Type::root(write.schema);
    validate(kind, live, false).ok()?;
    validate(kind, &last, false).ok()?;
    let mut fields = field_set(kind, &last).ok()?;
    let change = compare(kind, &last, live).ok()?;
    fields.subtract(&change.modified);
    fields.subtract(&change.added);
    fields.subtract(&change.removed);
    Some(fields)
}

/// Writes the configuration into the annotation of an object that has one.
pub(super) fn refresh(applied: &mut Applied, configuration: &Value) {
    let annotations = applied
        .object
        .get_mut("metadata")
        .and_then(|metadata| metadata.get_mut("annotations"))
        .and_then(Value::as_object_mut);
    let Some(annotations) = annotations else {
        return;
    };
    let Some(current) = annotations
        .get(LAST_APPLIED_ANNOTATION)
        .and_then(Value::as_str)
    else {
        return;
    };
    if current.is_empty() {
        return;
    }
    let mut configuration = configuration.clone();
    let own = configuration
        .get_mut("metadata")
        .and_then(|metadata| metadata.get_mut("annotations"))
        .and_then(Value::as_object_mut);
    if let Some(own) = own {
        own.remove(LAST_APPLIED_ANNOTATION);
    }
    let mut text = String::new();
    write_sorted(&configuration, &mut text);
    text.push('\n');
    applied.changed |= current != text;
    annotations.insert(LAST_APPLIED_ANNOTATION.to_owned(), Value::String(text));
    let size: usize = annotations
        .iter()
        .map(|(name, value)| name.len() + value.as_str().map_or(0, str::len))
        .sum();
    if size > MAX_ANNOTATION_BYTES {
        annotations.remove(LAST_APPLIED_ANNOTATION);
    }
}

/// JSON as Go's encoder writes it: members by name, HTML characters escaped.
fn write_sorted(value: &Value, out: &mut String) {
    match value {
        Value::String(text) => write_json_text(text, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_sorted(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut sorted: Vec<_> = members.iter().collect();
            sorted.sort_by_key(|(name, _)| *name);
            out.push('{');
            for (index, (name, member)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_json_text(name, out);
                out.push(':');
                write_sorted(member, out);
            }
            out.push('}');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}
