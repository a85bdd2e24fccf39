//! What an object of a kind looks like before it has any content.

use bellwether_schema::{Schema, Type};
use serde_json::{Map, Value, json};

use crate::MAX_DEPTH;

/// The object that creation starts from, to be given to [`super::update`] and [`super::apply`].
///
/// Kubernetes compares a new object of a built-in kind with the zero value of its Go type, in which
/// nested structures are present and required lists are null; their presence is therefore nobody's
/// property (`f:spec` has no `.`). Schemas show the former by an empty object as default, the latter
/// as required; a schema without these marks needs the zero value from elsewhere.
///
/// Custom resources start from an empty object: use `json!({})` for them.
pub fn blank(schema: &Schema) -> Value {
    let mut object = structure(schema, 0);
    if let Value::Object(members) = &mut object {
        members.remove("apiVersion");
        members.remove("kind");
        members.entry("metadata").or_insert_with(|| json!({}));
    }
    object
}

fn structure(schema: &Schema, depth: usize) -> Value {
    let mut members = Map::new();
    if depth < MAX_DEPTH {
        for (name, property) in &schema.properties {
            let required = schema.required.contains(name);
            let structural = property
                .default
                .as_ref()
                .is_some_and(|default| *default == json!({}));
            match property.kind {
                Some(Type::Object) if structural => {
                    members.insert(name.clone(), structure(property, depth + 1));
                }
                // A pointer, a map or a list that is written even when it is nil.
                Some(Type::Object | Type::Array) if required => {
                    members.insert(name.clone(), Value::Null);
                }
                _ => {}
            }
        }
    }
    Value::Object(members)
}
