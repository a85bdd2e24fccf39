//! Merging of metadata: labels and annotations are added, those marked with a trailing dash removed.

use serde_json::{Map, Value};

use crate::ownership::Ownership;

/// Maps whose keys may be marked for removal.
const MARKED: [&str; 2] = ["labels", "annotations"];

/// Takes away what only asks for a removal: keys that end with a dash.
pub(crate) fn drop_marks(object: &mut Value) {
    for field in MARKED {
        // Indexing would put a null where there is nothing.
        let map = object.pointer_mut(&format!("/metadata/{field}"));
        let Some(map) = map.and_then(Value::as_object_mut) else {
            continue;
        };
        map.retain(|key, _| !key.ends_with('-'));
        if map.is_empty() {
            remove(object, field);
        }
    }
}

fn remove(object: &mut Value, field: &str) {
    let metadata = object.get_mut("metadata").and_then(Value::as_object_mut);
    if let Some(metadata) = metadata {
        metadata.remove(field);
    }
}

/// Sets the owners of an object; without any, it has no such field.
pub(crate) fn set_owners(object: &mut Value, owners: Vec<Value>) {
    if owners.is_empty() {
        remove(object, "ownerReferences");
    } else {
        object["metadata"]["ownerReferences"] = Value::Array(owners);
    }
}

/// The metadata of a live object after that of a manifest has been merged into it.
pub(crate) fn merged(manifest: &Value, live: &Value, ownership: &Ownership<'_>) -> Value {
    let mut result = live["metadata"].clone();
    for field in MARKED {
        let Some(wanted) = manifest["metadata"][field].as_object() else {
            continue;
        };
        let mut map = match &result[field] {
            Value::Object(map) => map.clone(),
            _ => Map::new(),
        };
        for (key, value) in wanted {
            match key.strip_suffix('-') {
                Some(removed) => {
                    map.remove(removed);
                }
                None => {
                    map.insert(key.clone(), value.clone());
                }
            }
        }
        if let Some(metadata) = result.as_object_mut() {
            if map.is_empty() {
                metadata.remove(field);
            } else {
                metadata.insert(field.to_owned(), Value::Object(map));
            }
        }
    }
    let mut object = serde_json::json!({ "metadata": result });
    ownership.mark(&mut object);
    object["metadata"].take()
}
