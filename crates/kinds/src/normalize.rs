//! What a round trip through Kubernetes' Go types makes of an object.
//!
//! Whether a field that is empty is left out, kept, or written although nobody set it is a fact of
//! each Go type: a client that reads an object back sees `resources: {}` and does not see
//! `minReadySeconds: 0`. Owners of fields depend on it, too. Quantities and times get their
//! canonical form.

use bellwether_json::quantity::Quantity;
use bellwether_json::time;
use bellwether_schema::{Schema, Type};
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::catalog::{INT_OR_STRING, MICRO_TIME, QUANTITY, RAW_EXTENSION, TIME};
use crate::facts::{self, Presence, TypeFacts};
use crate::value::{empty, is_zero};

/// Rewrites an object that fits the schema as Kubernetes would write it.
///
/// The recursion follows the schema, which is finite.
pub(crate) fn normalize(schema: &Schema, value: &mut Value) {
    if schema.preserve_unknown_fields {
        return;
    }
    match value {
        Value::Object(fields) => match &schema.additional_properties {
            Some(values) if values.type_name.as_deref() == Some(QUANTITY) => {
                fields.values_mut().for_each(normalize_amount);
            }
            Some(values) => {
                for value in fields.values_mut() {
                    normalize_item(values, value);
                }
            }
            None => normalize_fields(schema, fields),
        },
        Value::Array(items) => {
            if let Some(schema) = &schema.items {
                for item in items {
                    normalize_item(schema, item);
                }
            }
        }
        _ => normalize_leaf(schema, value),
    }
}

/// The value of a field that nobody set but that is always written.
pub(crate) fn zero(schema: &Schema) -> Value {
    match schema.type_name.as_deref() {
        Some(QUANTITY) => return "0".into(),
        Some(INT_OR_STRING) => return 0.into(),
        Some(TIME | MICRO_TIME | RAW_EXTENSION) => return Value::Null,
        _ => {}
    }
    match schema.kind {
        Some(Type::String) if schema.format.as_deref() == Some("byte") => Value::Null,
        Some(Type::String) => "".into(),
        Some(Type::Integer | Type::Number) => 0.into(),
        Some(Type::Boolean) => false.into(),
        Some(Type::Object) if !schema.properties.is_empty() => {
            let mut value = empty();
            normalize(schema, &mut value);
            value
        }
        _ => Value::Null,
    }
}

/// Items of lists and maps have no name to be left out: `null` becomes the zero value.
fn normalize_item(schema: &Schema, value: &mut Value) {
    if value.is_null() {
        *value = zero(schema);
    } else {
        normalize(schema, value);
    }
}

fn normalize_fields(schema: &Schema, fields: &mut Map<String, Value>) {
    let facts = schema.type_name.as_deref().and_then(facts::of);
    fields.retain(|name, value| {
        if let Some(schema) = schema.properties.get(name) {
            normalize(schema, value);
        }
        match facts
            .and_then(|facts| facts.field(name))
            .map(|field| field.presence)
        {
            Some(Presence::NotZero) => !is_zero(value),
            Some(Presence::Given) | None => !value.is_null(),
            Some(Presence::GivenOrNull | Presence::Always | Presence::Object) => true,
        }
    });
    for field in facts.into_iter().flat_map(TypeFacts::written) {
        if fields.get(field.name).is_some_and(|value| !value.is_null()) {
            continue;
        }
        // Fields that this build does not know cannot be written.
        if let Some(schema) = schema.properties.get(field.name) {
            let value = match field.presence {
                Presence::GivenOrNull => Value::Null,
                _ => zero(schema),
            };
            fields.insert(field.name.to_owned(), value);
        }
    }
}

fn normalize_leaf(schema: &Schema, value: &mut Value) {
    match schema.type_name.as_deref() {
        Some(QUANTITY) => {
            if let Some(quantity) = quantity(value) {
                *value = quantity.to_string().into();
            }
        }
        Some(TIME) => {
            if let Some(canonical) = reformat(value, time::format_time) {
                *value = canonical.into();
            }
        }
        Some(MICRO_TIME) => {
            if let Some(canonical) = reformat(value, time::format_micro_time) {
                *value = canonical.into();
            }
        }
        _ => {}
    }
}

/// Resources are counted in thousandths at the finest.
fn normalize_amount(value: &mut Value) {
    const THOUSANDTHS: i32 = -3;
    if let Some(quantity) = quantity(value) {
        *value = quantity.rounded_up(THOUSANDTHS).0.to_string().into();
    } else if value.is_null() {
        *value = "0".into();
    }
}

fn quantity(value: &Value) -> Option<Quantity> {
    match value {
        Value::String(text) => text.parse().ok(),
        Value::Number(number) => number.to_string().parse().ok(),
        _ => None,
    }
}

fn reformat(value: &Value, format: fn(Timestamp) -> String) -> Option<String> {
    time::parse_time(value.as_str()?).ok().map(format)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::find_kind;

    #[track_caller]
    fn check(group: &str, kind: &str, input: Value, expected: &Value) {
        let mut value = input;
        let schema = find_kind(group, "v1", kind).unwrap().schema();
        normalize(&schema, &mut value);
        assert_eq!(&value, expected);
        normalize(&schema, &mut value);
        assert_eq!(&value, expected, "again");
    }

    #[test]
    fn empty_values_are_left_out_where_go_leaves_them_out() {
        check(
            "",
            "ConfigMap",
            json!({"metadata": {"labels": {}, "name": "a"}, "data": {}, "immutable": false}),
            &json!({"metadata": {"name": "a"}, "immutable": false}),
        );
    }

    #[test]
    fn objects_and_required_fields_are_always_written() {
        check(
            "",
            "Pod",
            json!({"metadata": {}, "spec": {"containers": [{"resources": null, "stdin": false}]}}),
            &json!({"metadata": {}, "spec": {"containers": [{"name": "", "resources": {}}]}, "status": {}}),
        );
        check(
            "rbac.authorization.k8s.io",
            "Role",
            json!({}),
            &json!({"metadata": {}, "rules": null}),
        );
    }

    #[test]
    fn quantities_and_times_get_their_canonical_form() {
        check(
            "",
            "Pod",
            json!({"metadata": {"creationTimestamp": "2030-01-01T02:00:00+02:00"}, "spec": {"containers": [
                {"name": "a", "resources": {"limits": {"cpu": 0.5, "memory": "1024Mi"}}}]}}),
            &json!({"metadata": {"creationTimestamp": "2030-01-01T00:00:00Z"}, "spec": {"containers": [
                {"name": "a", "resources": {"limits": {"cpu": "500m", "memory": "1Gi"}}}]}, "status": {}}),
        );
    }

    #[test]
    fn null_items_become_zero_values() {
        check(
            "",
            "ConfigMap",
            json!({"metadata": {}, "data": {"a": null}}),
            &json!({"metadata": {}, "data": {"a": ""}}),
        );
    }
}
