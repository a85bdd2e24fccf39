//! Object metadata: its schema, and what is left of it after decoding.

use std::sync::{Arc, LazyLock};

use serde_json::{Map, Value};

use crate::decode::{DecodeError, Mismatch, decode};
use crate::model::{Schema, Type};

/// Prefix of the types of the metadata package.
const PACKAGE: &str = "io.k8s.apimachinery.pkg.apis.meta.v1";

static OBJECT_META: LazyLock<Schema> = LazyLock::new(|| {
    let labels = || Schema {
        additional_properties: Some(string()),
        ..kind(Type::Object)
    };
    let list = |items: Schema| Schema {
        items: Some(Arc::new(items)),
        ..kind(Type::Array)
    };
    let fields_v1 = Schema {
        preserve_unknown_fields: true,
        ..kind(Type::Object)
    };
    let managed = structure(
        "ManagedFieldsEntry",
        [
            ("manager", string()),
            ("operation", string()),
            ("apiVersion", string()),
            ("time", time()),
            ("fieldsType", string()),
            ("fieldsV1", Arc::new(fields_v1)),
            ("subresource", string()),
        ],
    );
    let owner = structure(
        "OwnerReference",
        [
            ("apiVersion", string()),
            ("kind", string()),
            ("name", string()),
            ("uid", string()),
            ("controller", Arc::new(kind(Type::Boolean))),
            ("blockOwnerDeletion", Arc::new(kind(Type::Boolean))),
        ],
    );
    structure(
        "ObjectMeta",
        [
            ("name", string()),
            ("generateName", string()),
            ("namespace", string()),
            ("selfLink", string()),
            ("uid", string()),
            ("resourceVersion", string()),
            ("generation", Arc::new(kind(Type::Integer))),
            ("creationTimestamp", time()),
            ("deletionTimestamp", time()),
            ("deletionGracePeriodSeconds", Arc::new(kind(Type::Integer))),
            ("labels", Arc::new(labels())),
            ("annotations", Arc::new(labels())),
            ("ownerReferences", Arc::new(list(owner))),
            ("finalizers", Arc::new(list(kind(Type::String)))),
            ("managedFields", Arc::new(list(managed))),
        ],
    )
});

fn kind(kind: Type) -> Schema {
    Schema {
        kind: Some(kind),
        ..Schema::default()
    }
}

fn string() -> Arc<Schema> {
    Arc::new(kind(Type::String))
}

fn time() -> Arc<Schema> {
    Arc::new(Schema {
        format: Some("date-time".to_owned()),
        ..kind(Type::String)
    })
}

fn structure<const N: usize>(name: &str, fields: [(&str, Arc<Schema>); N]) -> Schema {
    Schema {
        properties: fields
            .map(|(name, schema)| (name.to_owned(), schema))
            .into(),
        type_name: Some(format!("{PACKAGE}.{name}").into()),
        ..kind(Type::Object)
    }
}

/// What to do with metadata fields of a wrong type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Malformed {
    /// Refuse the object: what requests get.
    Refuse,
    /// Leave the fields out: what stored objects get, so that they can still be read.
    Drop,
}

/// Makes `metadata` what decoding it into an `ObjectMeta` and encoding it again would leave: known
/// fields only, without empty ones. Returns the paths of the unknown fields, relative to it.
pub fn coerce_metadata(
    metadata: &mut Value,
    malformed: Malformed,
) -> Result<Vec<String>, DecodeError> {
    if metadata.is_null() {
        *metadata = Value::Object(Map::new());
        return Ok(Vec::new());
    }
    let mut attempt = metadata.clone();
    let unknown = match decode(&mut attempt, &OBJECT_META, "ObjectMeta") {
        Ok(unknown) => unknown,
        Err(error) if malformed == Malformed::Refuse => return Err(error),
        Err(_) => {
            let Value::Object(fields) = metadata else {
                let expected = "v1.ObjectMeta";
                return Err(Mismatch::new(metadata, "", &[], expected).into());
            };
            let (fields, unknown) = decode_each(fields);
            attempt = Value::Object(fields);
            unknown
        }
    };
    if let Value::Object(fields) = &mut attempt {
        fields.retain(|name, field| !is_omitted(name, field));
        complete_owners(fields);
    }
    *metadata = attempt;
    Ok(unknown)
}

/// The fields that can be decoded on their own.
fn decode_each(fields: &Map<String, Value>) -> (Map<String, Value>, Vec<String>) {
    let mut kept = Map::new();
    let mut unknown = Vec::new();
    for (name, field) in fields {
        let mut single = Value::Object(Map::from_iter([(name.clone(), field.clone())]));
        if let Ok(mut found) = decode(&mut single, &OBJECT_META, "ObjectMeta") {
            unknown.append(&mut found);
            if let Value::Object(single) = single {
                kept.extend(single);
            }
        }
    }
    (kept, unknown)
}

/// All fields are omitted when empty, but a period of no seconds is not empty.
fn is_omitted(name: &str, field: &Value) -> bool {
    match field {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Number(number) => name == "generation" && number.as_i64() == Some(0),
        Value::Bool(_) => false,
    }
}

/// Owners are written with all four parts, empty or not.
fn complete_owners(fields: &mut Map<String, Value>) {
    let Some(Value::Array(owners)) = fields.get_mut("ownerReferences") else {
        return;
    };
    for owner in owners.iter_mut().filter_map(Value::as_object_mut) {
        for part in ["apiVersion", "kind", "name", "uid"] {
            owner
                .entry(part)
                .or_insert_with(|| Value::String(String::new()));
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn metadata_is_reduced_to_what_it_knows() {
        let mut metadata = json!({
            "name": "n", "namespace": "", "labels": {}, "annotations": {"a": "b"}, "bogus": 1,
            "creationTimestamp": null, "generation": 0, "deletionGracePeriodSeconds": 0,
            "ownerReferences": [{"name": "o", "odd": 1}],
        });
        let unknown = coerce_metadata(&mut metadata, Malformed::Refuse).unwrap();
        assert_eq!(unknown, ["bogus", "ownerReferences[0].odd"]);
        let expected = json!({
            "name": "n", "annotations": {"a": "b"}, "deletionGracePeriodSeconds": 0,
            "ownerReferences": [{"apiVersion": "", "kind": "", "name": "o", "uid": ""}],
        });
        assert_eq!(metadata, expected);
    }

    #[test]
    fn malformed_fields_are_refused_or_dropped() {
        let original = json!({"name": 3, "labels": {"a": "b"}});
        let mut metadata = original.clone();
        let error = coerce_metadata(&mut metadata, Malformed::Refuse).unwrap_err();
        assert_eq!(
            error.to_string(),
            "json: cannot unmarshal number into Go struct field ObjectMeta.name of type string"
        );
        assert_eq!(metadata, original);
        coerce_metadata(&mut metadata, Malformed::Drop).unwrap();
        assert_eq!(metadata, json!({"labels": {"a": "b"}}));
    }
}
