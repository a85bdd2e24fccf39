//! Values that several steps give to one name.

use serde_json::{Map, Value};

/// One value that has everything both have; none if they contradict each other. `null` says nothing.
pub(crate) fn unify(known: &Value, value: &Value) -> Option<Value> {
    match (known, value) {
        (Value::Null, other) | (other, Value::Null) => Some(other.clone()),
        (Value::Object(known), Value::Object(value)) => unify_fields(known, value),
        (Value::Array(known), Value::Array(value)) if known.len() == value.len() => {
            let items = known.iter().zip(value);
            items.map(|(known, value)| unify(known, value)).collect()
        }
        _ => (known == value).then(|| known.clone()),
    }
}

fn unify_fields(known: &Map<String, Value>, value: &Map<String, Value>) -> Option<Value> {
    let mut both = known.clone();
    for (name, value) in value {
        let known = known.get(name).unwrap_or(&Value::Null);
        both.insert(name.clone(), unify(known, value)?);
    }
    Some(Value::Object(both))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_agree_where_both_have_a_field() {
        for (known, value, expected) in [
            (
                json!({"x": 1}),
                json!({"y": 2}),
                Some(json!({"x": 1, "y": 2})),
            ),
            (
                json!({"x": {"a": 1}}),
                json!({"x": {"b": 2}}),
                Some(json!({"x": {"a": 1, "b": 2}})),
            ),
            (json!({"x": 1}), json!({"x": 2}), None),
            (json!({"x": 1}), json!("x"), None),
            (
                json!([{"a": 1}]),
                json!([{"b": 2}]),
                Some(json!([{"a": 1, "b": 2}])),
            ),
            (json!([1]), json!([1, 2]), None),
            (json!(null), json!(3), Some(json!(3))),
            (json!(3), json!(null), Some(json!(3))),
        ] {
            assert_eq!(unify(&known, &value), expected, "{known} {value}");
        }
    }
}
