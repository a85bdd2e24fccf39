//! Reads properties of policies and steps; errors name the field.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// Reads a value. An error begins with the path of the field that is wrong, if it is one.
pub fn decode<T: DeserializeOwned>(value: &Value) -> Result<T, String> {
    T::deserialize(value).map_err(|error| {
        let mut path = Vec::new();
        // A value that can be read without one of its fields is wrong there.
        while let Some(next) = children(at(value, &path))
            .into_iter()
            .find(|child| T::deserialize(&without(value, &path, child)).is_ok())
        {
            path.push(next);
        }
        if path.is_empty() {
            return error.to_string();
        }
        format!("{}: {error}", spelled(&path))
    })
}

/// A field of an object or an element of a list.
#[derive(Debug, Clone)]
enum Child {
    Field(String),
    Element(usize),
}

fn children(value: Option<&Value>) -> Vec<Child> {
    match value {
        Some(Value::Object(fields)) => fields.keys().cloned().map(Child::Field).collect(),
        Some(Value::Array(elements)) => (0..elements.len()).map(Child::Element).collect(),
        _ => Vec::new(),
    }
}

fn at<'a>(value: &'a Value, path: &[Child]) -> Option<&'a Value> {
    path.iter().try_fold(value, |value, child| match child {
        Child::Field(name) => value.get(name),
        Child::Element(index) => value.get(index),
    })
}

/// A copy of a value without a child of the value at a path.
fn without(whole: &Value, path: &[Child], child: &Child) -> Value {
    let mut copy = whole.clone();
    let place = path.iter().try_fold(&mut copy, |value, child| match child {
        Child::Field(name) => value.get_mut(name),
        Child::Element(index) => value.get_mut(index),
    });
    match (place, child) {
        (Some(Value::Object(fields)), Child::Field(name)) => {
            fields.remove(name);
        }
        (Some(Value::Array(elements)), Child::Element(index)) => {
            elements.remove(*index);
        }
        _ => {}
    }
    copy
}

fn spelled(path: &[Child]) -> String {
    let text: String = path
        .iter()
        .map(|child| match child {
            Child::Field(name) => format!(".{name}"),
            Child::Element(index) => format!("[{index}]"),
        })
        .collect();
    text.trim_start_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::overrides::OverridePolicy;
    use crate::resource_policy::GarbageCollectPolicy;

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "tables are written in place")]
    fn check<T: DeserializeOwned>(value: Value, expected: &str) {
        let problem = decode::<T>(&value).err().unwrap_or_default();
        assert!(problem.starts_with(expected), "{problem}");
    }

    #[test]
    fn errors_name_the_field() {
        check::<GarbageCollectPolicy>(
            json!({"order": "dependency", "rules": [{}, {"strategy": "nevr"}]}),
            "rules[1].strategy: unknown variant `nevr`",
        );
        check::<GarbageCollectPolicy>(
            json!({"keepLegacyResource": "yes"}),
            "keepLegacyResource: invalid type",
        );
        check::<OverridePolicy>(
            json!({"components": [{"traits": [{"properties": {}}]}]}),
            "components[0].traits[0]: missing field `type`",
        );
        check::<OverridePolicy>(json!(1), "invalid type");
        // Nothing can be left out that makes it right.
        check::<OverridePolicy>(json!({"selector": 1, "components": 2}), "invalid type");
    }
}
