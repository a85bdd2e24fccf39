//! Values that objects of an ApplicationConfiguration pass to each other: an object with inputs is applied when all of them are
//! there.

use std::collections::BTreeMap;

use bellwether_api::oam::{
    DataCondition, DataInput, DataOperator, DataOutput, DependencyEnd, DependencyStart,
    UnsatisfiedDependency,
};
use serde_json::Value;

use super::render::{Rendered, RenderedObject};
use crate::path;

/// Puts values of existing objects where others want them. `live` has the objects of [`Rendered`] as they are, in the same
/// order, and the configuration is what conditions compare with. Returns what is missing, and for each object whether it has to wait.
pub fn pass_values(
    rendered: &mut Rendered,
    live: &[Option<Value>],
    configuration: &Value,
) -> (Vec<UnsatisfiedDependency>, Vec<bool>) {
    let outputs = outputs(rendered, live, configuration);
    let mut unsatisfied = Vec::new();
    let mut waits = Vec::with_capacity(rendered.objects.len());
    for object in &mut rendered.objects {
        let before = unsatisfied.len();
        for input in object.inputs.clone() {
            let name = input.value_from.as_ref();
            let name = name.map_or("", |source| source.data_output_name.as_str());
            let found = outputs.get(name);
            let value = match found {
                Some(found) => found.value.clone(),
                None => Err(format!("there is no data output {name:?}")),
            };
            let passed =
                value.and_then(|value| put(&mut object.object, &input, &value, configuration));
            if let Err(reason) = passed {
                unsatisfied.push(UnsatisfiedDependency {
                    reason,
                    from: found.map(|found| found.start.clone()).unwrap_or_default(),
                    to: end(object, &input),
                    ..UnsatisfiedDependency::default()
                });
            }
        }
        waits.push(unsatisfied.len() > before);
    }
    (unsatisfied, waits)
}

/// A value, or why it is not there, and where it comes from.
struct Found {
    value: Result<Value, String>,
    start: DependencyStart,
}

/// The outputs of all objects by name; of two that have the same name the first counts.
fn outputs(
    rendered: &Rendered,
    live: &[Option<Value>],
    configuration: &Value,
) -> BTreeMap<String, Found> {
    let mut outputs = BTreeMap::new();
    for (object, live) in rendered.objects.iter().zip(live) {
        for output in &object.outputs {
            let reference = object.reference("");
            outputs.entry(output.name.clone()).or_insert_with(|| Found {
                value: output_value(output, live.as_ref(), configuration),
                start: DependencyStart {
                    api_version: reference.api_version,
                    kind: reference.kind,
                    name: reference.name,
                    field_path: output.field_path.clone(),
                    ..DependencyStart::default()
                },
            });
        }
    }
    outputs
}

fn output_value(
    output: &DataOutput,
    live: Option<&Value>,
    configuration: &Value,
) -> Result<Value, String> {
    let live = live.ok_or("the object does not exist yet")?;
    let value = field(live, &output.field_path)?;
    if is_empty(&value) {
        return Err(format!("{} is empty", output.field_path));
    }
    for condition in &output.conditions {
        check(condition, live, &value, configuration)?;
    }
    Ok(value)
}

fn put(
    object: &mut Value,
    input: &DataInput,
    value: &Value,
    configuration: &Value,
) -> Result<(), String> {
    for condition in &input.conditions {
        check(condition, object, value, configuration)?;
    }
    for field in &input.to_field_paths {
        path::set(object, &path::parse(field)?, value.clone());
    }
    Ok(())
}

fn check(
    condition: &DataCondition,
    object: &Value,
    value: &Value,
    configuration: &Value,
) -> Result<(), String> {
    let (compared, place) = if condition.field_path.is_empty() {
        (value.clone(), "the value")
    } else {
        (
            field(object, &condition.field_path)?,
            condition.field_path.as_str(),
        )
    };
    let expected = match &condition.value_from {
        Some(source) if condition.value.is_empty() => {
            shown(&field(configuration, &source.field_path)?)
        }
        _ => condition.value.clone(),
    };
    let found = shown(&compared);
    match &condition.operator {
        DataOperator::Equal if found == expected => Ok(()),
        DataOperator::Equal => Err(format!("{place} is {found:?}, not {expected:?}")),
        DataOperator::NotEqual if found != expected => Ok(()),
        DataOperator::NotEqual => Err(format!("{place} is still {found:?}")),
        DataOperator::NotEmpty if !is_empty(&compared) => Ok(()),
        DataOperator::NotEmpty => Err(format!("{place} is empty")),
        DataOperator::Other(other) => Err(format!(
            "{other:?} is not an operator: use eq, notEq or notEmpty"
        )),
    }
}

fn field(object: &Value, place: &str) -> Result<Value, String> {
    let steps = path::parse(place)?;
    Ok(path::find(object, &steps).cloned().unwrap_or_default())
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value == ""
}

/// A value as conditions compare it.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn end(object: &RenderedObject, input: &DataInput) -> DependencyEnd {
    let reference = object.reference("");
    DependencyEnd {
        api_version: reference.api_version,
        kind: reference.kind,
        name: reference.name,
        field_paths: input.to_field_paths.clone(),
        ..DependencyEnd::default()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::apply_once::Role;
    use super::*;

    fn object(kind: &str, outputs: Value, inputs: Value) -> RenderedObject {
        RenderedObject {
            component: 0,
            role: Role::Workload,
            object: json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": "x"}}),
            outputs: serde_json::from_value(outputs).unwrap(),
            inputs: serde_json::from_value(inputs).unwrap(),
        }
    }

    /// What comes of passing `status.host` of a Database to `spec.host` of a Web: the value, or why it is not there.
    #[track_caller]
    #[expect(clippy::needless_pass_by_value, reason = "tables are written in place")]
    fn check(live: Option<Value>, conditions: Value, expected: Result<&str, &str>) {
        let outputs =
            json!([{"name": "host", "fieldPath": "status.host", "conditions": conditions}]);
        let inputs =
            json!([{"valueFrom": {"dataOutputName": "host"}, "toFieldPaths": ["spec.host"]}]);
        let mut rendered = Rendered {
            components: Vec::new(),
            objects: vec![
                object("Web", json!([]), inputs),
                object("Database", outputs, json!([])),
            ],
        };
        let configuration = json!({"metadata": {"generation": 4}});
        let (unsatisfied, waits) = pass_values(&mut rendered, &[None, live], &configuration);
        match expected {
            Ok(value) => {
                assert_eq!(rendered.objects[0].object["spec"]["host"], value);
                assert_eq!((unsatisfied, waits), (vec![], vec![false, false]));
            }
            Err(reason) => {
                assert_eq!(unsatisfied[0].reason, reason);
                assert_eq!(unsatisfied[0].from.kind, "Database");
                assert_eq!(unsatisfied[0].to.field_paths, ["spec.host"]);
                assert_eq!(waits, [true, false]);
                assert_eq!(rendered.objects[0].object["spec"], Value::Null);
            }
        }
    }

    #[test]
    fn a_value_is_passed_when_it_is_there() {
        let live = |host: &str| Some(json!({"status": {"host": host, "generation": 4}}));
        check(None, json!([]), Err("the object does not exist yet"));
        check(Some(json!({})), json!([]), Err("status.host is empty"));
        check(live(""), json!([]), Err("status.host is empty"));
        check(live("db"), json!([]), Ok("db"));
    }

    #[test]
    fn a_value_is_passed_when_its_conditions_hold() {
        let live =
            |generation: i64| Some(json!({"status": {"host": "db", "generation": generation}}));
        let current = json!([{"op": "eq", "fieldPath": "status.generation",
            "valueFrom": {"fieldPath": "metadata.generation"}}]);
        check(live(4), current.clone(), Ok("db"));
        check(
            live(3),
            current,
            Err("status.generation is \"3\", not \"4\""),
        );
        let not_db = json!([{"op": "notEq", "value": "db"}]);
        check(live(4), not_db, Err("the value is still \"db\""));
        let ready = json!([{"op": "notEmpty", "fieldPath": "status.ready"}]);
        check(live(4), ready, Err("status.ready is empty"));
        let odd = json!([{"op": "like", "value": "db"}]);
        check(
            live(4),
            odd,
            Err("\"like\" is not an operator: use eq, notEq or notEmpty"),
        );
    }
}
