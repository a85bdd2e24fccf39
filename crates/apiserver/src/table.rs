//! Tables and metadata-only forms: what `kubectl get` asks for instead of whole objects.

use bellwether_json::time;
use bellwether_kinds as kinds;
use jiff::Timestamp;
use serde_json::{Map, Value, json};

use crate::answer::{Writer, to_bytes};
use crate::custom::PrinterColumn;
use crate::listing::write_metadata;
use crate::object::StoredObject;
use crate::resource::{Resource, Source};

/// What each row of a table carries besides its cells.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum IncludeObject {
    /// Only metadata: what kubectl needs to sort and to filter.
    #[default]
    Metadata,
    /// The whole object.
    Object,
    /// Nothing.
    None,
}

impl IncludeObject {
    /// Reads `?includeObject=`.
    pub(crate) fn parse(text: Option<&str>) -> Self {
        match text {
            Some("Object") => Self::Object,
            Some("None") => Self::None,
            _ => Self::Metadata,
        }
    }
}

/// A table of objects; `list_metadata` gives revision and continue token.
pub(crate) fn of_objects(
    resource: &Resource,
    objects: &[Value],
    list_metadata: &Value,
    writer: &Writer,
) -> Value {
    let mut metadata = Map::new();
    for key in ["resourceVersion", "continue", "remainingItemCount"] {
        if let Some(found) = list_metadata.get(key).filter(|found| !found.is_null()) {
            metadata.insert(key.into(), found.clone());
        }
    }
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": metadata,
        "columnDefinitions": columns(resource),
        "rows": objects.iter().map(|object| row(resource, object, writer)).collect::<Vec<_>>(),
    })
}

/// Type and metadata of an object, and nothing else.
pub(crate) fn partial_metadata(object: &Value) -> Value {
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": object["metadata"],
    })
}

/// The column definitions of a resource.
pub(crate) fn columns(resource: &Resource) -> Value {
    let column = |name: &str, kind: &str, format: &str, description: &str, priority: i32| {
        json!({
            "name": name, "type": kind, "format": format,
            "description": description, "priority": priority,
        })
    };
    match &resource.source {
        Source::BuiltIn(kind) => kind
            .columns
            .iter()
            .map(|c| column(c.name, c.kind, c.format, c.description, c.priority))
            .collect(),
        Source::Custom(version) => std::iter::once(column(
            "Name",
            "string",
            "name",
            "The name, unique among objects of the kind in a namespace.",
            0,
        ))
        .chain(
            version
                .columns
                .iter()
                .map(|c| column(&c.name, &c.kind, &c.format, &c.description, c.priority)),
        )
        .collect(),
    }
}

/// Appends the row of a stored object; `text` is where its text is put meanwhile.
///
/// Only what columns may show is parsed; what comes along is copied from the stored text.
pub(crate) fn write_row(
    resource: &Resource,
    object: &StoredObject,
    writer: &Writer,
    text: &mut Vec<u8>,
    out: &mut Vec<u8>,
) {
    let needs_all = match &resource.source {
        Source::BuiltIn(_) => false,
        Source::Custom(version) => version.columns.iter().any(|column| column.needs_all),
    };
    if needs_all || resource.converts() {
        let value = resource.read(object);
        out.extend_from_slice(&to_bytes(&row(resource, &value, writer)));
        return;
    }
    let summary = object.to_summary(&resource.api_version, &resource.kind);
    out.extend_from_slice(b"{\"cells\":");
    out.extend_from_slice(&to_bytes(&cells(resource, &summary, writer.now)));
    out.extend_from_slice(b",\"object\":");
    match writer.include_object {
        IncludeObject::Metadata => write_metadata(resource, object, text, out),
        IncludeObject::Object => object.write_typed(&resource.api_version, &resource.kind, out),
        IncludeObject::None => out.extend_from_slice(b"null"),
    }
    out.push(b'}');
}

fn cells(resource: &Resource, object: &Value, now: Timestamp) -> Value {
    match &resource.source {
        Source::BuiltIn(kind) => kinds::row(kind, object, now).into(),
        Source::Custom(version) => {
            let columns = version.columns.iter();
            std::iter::once(object["metadata"]["name"].clone())
                .chain(columns.map(|column| cell(column, object, now)))
                .collect()
        }
    }
}

fn row(resource: &Resource, object: &Value, writer: &Writer) -> Value {
    let cells = cells(resource, object, writer.now);
    let shown = match writer.include_object {
        IncludeObject::Metadata => partial_metadata(object),
        IncludeObject::Object => object.clone(),
        IncludeObject::None => Value::Null,
    };
    json!({"cells": cells, "object": shown})
}

/// The cell of a printer column: what its path finds, in the column's type.
fn cell(column: &PrinterColumn, object: &Value, now: Timestamp) -> Value {
    let Ok(found) = column.path.find(object) else {
        return Value::Null;
    };
    // Paths of columns are simple: what they find beyond the first value is not shown.
    let Some(first) = found.into_iter().flatten().next() else {
        return Value::Null;
    };
    match (column.kind.as_str(), first) {
        ("integer", Value::Number(number)) => number
            .as_i64()
            .or_else(|| number.as_f64().map(truncate))
            .map_or(Value::Null, Into::into),
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => first.clone(),
        ("date", Value::String(text)) => match time::parse_time(text.as_str()) {
            Ok(then) => kinds::human(now.duration_since(then).as_secs()).into(),
            Err(_) => "<unknown>".into(),
        },
        ("string", _) => bellwether_jsonpath::print(&[first]).into(),
        _ => Value::Null,
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a column of integers shows the integral part"
)]
fn truncate(number: f64) -> i64 {
    number as i64
}
