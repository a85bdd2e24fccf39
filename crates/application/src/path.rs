//! Fields of JSON by paths: `spec.targets[0].name`.

use serde_json::{Map, Value};

/// Deeper paths are refused: each step is a level of nesting.
const MAX_STEPS: usize = 64;
/// A list is filled up to an index; larger ones are refused.
const MAX_INDEX: usize = 1_000;

/// A step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A field of an object.
    Field(String),
    /// An element of a list.
    Index(usize),
}

/// Takes a path apart. Names with dots are quoted in brackets: `metadata.labels["a.b/c"]`.
pub fn parse(path: &str) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    let mut rest = path;
    while !rest.is_empty() {
        if let Some(inner) = rest.strip_prefix('[') {
            let (step, after) = inner
                .split_once(']')
                .ok_or_else(|| format!("{path:?}: \"[\" without \"]\""))?;
            let quoted = step
                .strip_prefix('"')
                .and_then(|step| step.strip_suffix('"'))
                .or_else(|| {
                    step.strip_prefix('\'')
                        .and_then(|step| step.strip_suffix('\''))
                });
            steps.push(match (quoted, step.parse::<usize>()) {
                (Some(name), _) => Step::Field(name.to_owned()),
                (None, Ok(index)) if index <= MAX_INDEX => Step::Index(index),
                _ => return Err(format!("{path:?}: {step:?} is not an index")),
            });
            rest = after.strip_prefix('.').unwrap_or(after);
        } else {
            let end = rest.find(['.', '[']).unwrap_or(rest.len());
            let (name, after) = rest.split_at(end);
            if name.is_empty() {
                return Err(format!("{path:?}: a name is missing"));
            }
            steps.push(Step::Field(name.to_owned()));
            rest = after.strip_prefix('.').unwrap_or(after);
        }
        if steps.len() > MAX_STEPS {
            return Err(format!("{path:?}: more than {MAX_STEPS} steps"));
        }
    }
    if steps.is_empty() {
        return Err("the path is empty".to_owned());
    }
    Ok(steps)
}

/// The value at a path.
pub fn find<'a>(value: &'a Value, steps: &[Step]) -> Option<&'a Value> {
    steps.iter().try_fold(value, |value, step| match step {
        Step::Field(name) => value.get(name),
        Step::Index(index) => value.get(index),
    })
}

/// Puts a value at a path; objects and lists on the way are made.
pub fn set(target: &mut Value, steps: &[Step], value: Value) {
    let mut place = target;
    for step in steps {
        place = match step {
            Step::Field(name) => {
                if !place.is_object() {
                    *place = Value::Object(Map::new());
                }
                &mut place[name.as_str()]
            }
            Step::Index(index) => {
                if !place.is_array() {
                    *place = Value::Array(Vec::new());
                }
                let Value::Array(items) = place else { return };
                if items.len() <= *index {
                    items.resize(index + 1, Value::Null);
                }
                &mut items[*index]
            }
        };
    }
    *place = value;
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "tables are written in place")]
    fn check(path: &str, expected: Value) {
        let mut target = json!({"spec": {"targets": [{"a": 1}]}});
        set(&mut target, &parse(path).unwrap(), json!("x"));
        assert_eq!(target, expected);
    }

    #[test]
    fn values_are_put_at_paths() {
        check(
            "spec.ref",
            json!({"spec": {"targets": [{"a": 1}], "ref": "x"}}),
        );
        check(
            "spec.targets[0].ref",
            json!({"spec": {"targets": [{"a": 1, "ref": "x"}]}}),
        );
        check(
            "spec.targets[1]",
            json!({"spec": {"targets": [{"a": 1}, "x"]}}),
        );
        check(
            "labels[\"a.b/c\"]",
            json!({"spec": {"targets": [{"a": 1}]}, "labels": {"a.b/c": "x"}}),
        );
    }

    #[test]
    fn paths_that_lead_nowhere_are_refused() {
        assert!(parse("").is_err());
        assert!(parse("a[").is_err());
        assert!(parse("a[x]").is_err());
        assert!(parse("a[100000]").is_err());
        assert!(parse(".a").is_err());
    }
}
