//! What a write would change, field by field.

use std::fmt;

use serde_json::Value;

use crate::fields::MAX_DEPTH;

/// A field that would change.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// The field: `spec.containers[0].image`. Names with dots are in brackets.
    pub path: String,
    /// Its value before; nothing if it is added.
    pub before: Option<Value>,
    /// Its value after; nothing if it is removed.
    pub after: Option<Value>,
}

impl fmt::Display for Difference {
    /// One line: `spec.replicas: 1 -> 2`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = |value: &Option<Value>| {
            value
                .as_ref()
                .map_or_else(|| "(none)".to_owned(), Value::to_string)
        };
        let (before, after) = (text(&self.before), text(&self.after));
        write!(formatter, "{}: {before} -> {after}", self.path)
    }
}

/// Fields of metadata that only the server writes.
const OF_THE_SERVER: [&str; 4] = [
    "metadata.managedFields",
    "metadata.resourceVersion",
    "metadata.generation",
    "metadata.uid",
];

/// Returns the fields in which two states of an object differ, in the order of their paths, apart from
/// what only the server writes. Items of lists are compared by their place.
pub fn diff(before: &Value, after: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    collect("", Some(before), Some(after), 0, &mut found);
    found
}

fn collect(
    path: &str,
    before: Option<&Value>,
    after: Option<&Value>,
    depth: usize,
    found: &mut Vec<Difference>,
) {
    if before == after || OF_THE_SERVER.contains(&path) {
        return;
    }
    match (before, after) {
        (Some(Value::Object(before)), Some(Value::Object(after))) if depth < MAX_DEPTH => {
            let mut keys: Vec<&String> = before.keys().chain(after.keys()).collect();
            keys.sort();
            keys.dedup();
            for key in keys {
                let below = member(path, key);
                collect(&below, before.get(key), after.get(key), depth + 1, found);
            }
        }
        (Some(Value::Array(before)), Some(Value::Array(after))) if depth < MAX_DEPTH => {
            for index in 0..before.len().max(after.len()) {
                let below = format!("{path}[{index}]");
                let (before, after) = (before.get(index), after.get(index));
                collect(&below, before, after, depth + 1, found);
            }
        }
        (before, after) => found.push(Difference {
            path: path.to_owned(),
            before: before.cloned(),
            after: after.cloned(),
        }),
    }
}

fn member(path: &str, key: &str) -> String {
    if key.contains('.') {
        format!("{path}[{key:?}]")
    } else if path.is_empty() {
        key.to_owned()
    } else {
        format!("{path}.{key}")
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(before: Value, after: Value, expected: &[&str]) {
        let found: Vec<String> = diff(&before, &after)
            .iter()
            .map(Difference::to_string)
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn differences_are_named_by_their_paths() {
        check(
            json!({"spec": {"replicas": 1, "paused": true}, "metadata": {"uid": "u"}}),
            json!({"spec": {"replicas": 2, "list": [1]}, "metadata": {"uid": "v"}}),
            &[
                "spec.list: (none) -> [1]",
                "spec.paused: true -> (none)",
                "spec.replicas: 1 -> 2",
            ],
        );
        check(
            json!({"metadata": {"annotations": {"a.b/c": "1"}}, "x": [{"y": 1}, 2]}),
            json!({"metadata": {"annotations": {"a.b/c": "2"}}, "x": [{"y": 2}]}),
            &[
                r#"metadata.annotations["a.b/c"]: "1" -> "2""#,
                "x[0].y: 1 -> 2",
                "x[1]: 2 -> (none)",
            ],
        );
        check(json!({"a": 1}), json!({"a": 1}), &[]);
    }
}
