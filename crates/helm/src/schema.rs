//! `values.schema.json`: whether values are what a chart expects.
//!
//! JSON Schema as of drafts 7 and 2020-12. References lead inside of the schema only, and keywords
//! that are not supported are errors rather than ignored. Messages are those of the validator that
//! Helm uses.

mod keywords;

use serde_json::{Map, Value};

use crate::chart::Chart;
use crate::error::{Error, Result};
use keywords::Validator;

/// Checks values against the schemas of a chart and of those inside of it.
pub(crate) fn validate(chart: &Chart, values: &Map<String, Value>) -> Result<()> {
    let mut problems = Vec::new();
    collect(chart, values, &mut problems);
    if problems.is_empty() {
        return Ok(());
    }
    Err(Error::Schema(problems.join("\n")))
}

fn collect(chart: &Chart, values: &Map<String, Value>, problems: &mut Vec<String>) {
    if let Some(schema) = &chart.schema {
        let lines = problems_of(schema, values);
        if !lines.is_empty() {
            problems.push(format!("{}:\n{}", chart.name(), lines.join("\n")));
        }
    }
    for dependency in &chart.dependencies {
        match values.get(dependency.name()) {
            Some(Value::Object(values)) => collect(dependency, values, problems),
            None | Some(Value::Null) => {}
            Some(other) => problems.push(format!(
                "{}:\ninvalid type for values: expected object (map), got {}",
                dependency.name(),
                bellwether_json::path::type_name(other)
            )),
        }
    }
}

fn problems_of(schema: &[u8], values: &Map<String, Value>) -> Vec<String> {
    let schema: Value = match serde_json::from_slice(schema) {
        Ok(schema) => schema,
        Err(error) => return vec![format!("values.schema.json is not JSON: {error}")],
    };
    let values = whole_numbers(Value::Object(values.clone()));
    Validator::new(&schema).validate(&values)
}

/// Floating point numbers without a fraction are integers to a schema, and are shown as such.
fn whole_numbers(value: Value) -> Value {
    match value {
        Value::Number(number) => Value::Number(bellwether_json::number::normalize(&number)),
        Value::Array(items) => Value::Array(items.into_iter().map(whole_numbers).collect()),
        Value::Object(members) => {
            let members = members.into_iter();
            Value::Object(
                members
                    .map(|(key, value)| (key, whole_numbers(value)))
                    .collect(),
            )
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(schema: &Value, value: &Value, expected: &[&str]) {
        assert_eq!(
            Validator::new(schema).validate(value),
            expected,
            "{schema} {value}"
        );
    }

    #[test]
    fn values_are_checked_in_the_words_of_helm() {
        let schema = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "required": ["image"],
            "properties": {
                "image": {"type": "object", "properties": {"tag": {"type": "string"}}},
                "replicas": {"type": "integer", "minimum": 1, "maximum": 10},
                "mode": {"enum": ["dev", "prod"]},
                "ports": {"type": "array", "items": {"type": "integer"}, "uniqueItems": true},
            },
        });
        check(
            &schema,
            &json!({"image": {}, "replicas": 3, "ports": [1, 2]}),
            &[],
        );
        check(&schema, &json!({}), &["- at '': missing property 'image'"]);
        check(
            &schema,
            &json!({"image": {}, "ports": [1, 1, "x"], "replicas": 99, "mode": "x"}),
            &[
                "- at '/mode': value must be one of 'dev', 'prod'",
                "- at '/ports': items at 0 and 1 are equal",
                "- at '/ports/2': got string, want integer",
                "- at '/replicas': maximum: got 99, want 10",
            ],
        );
    }

    #[test]
    fn references_conditions_and_combinations_are_followed() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$defs": {"port": {"type": "integer"}},
            "properties": {"port": {"$ref": "#/$defs/port"}},
            "if": {"properties": {"kind": {"const": "x"}}, "required": ["kind"]},
            "then": {"required": ["y"]},
            "additionalProperties": {"type": "string"},
        });
        check(
            &schema,
            &json!({"kind": "x", "port": "80"}),
            &[
                "- at '/port': got string, want integer",
                "- at '': missing property 'y'",
            ],
        );
        check(
            &schema,
            &json!({"other": 1}),
            &["- at '/other': got number, want string"],
        );
        check(
            &json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
            &json!(1),
            &[
                "- at '': 'anyOf' failed\n  - at '': got number, want string\n  - at '': got number, want null",
            ],
        );
        check(
            &json!({"additionalProperties": false, "properties": {"a": {}}}),
            &json!({"a": 1, "zz": 2}),
            &["- at '': additional properties 'zz' not allowed"],
        );
    }

    #[test]
    fn a_schema_that_multiplies_what_it_checks_ends() {
        let branches = |depth: usize| {
            let mut definitions = Map::from_iter([("0".to_owned(), json!({"type": "string"}))]);
            for level in 0..depth {
                let part = json!({"$ref": format!("#/$defs/{level}")});
                let both = json!({"oneOf": [part.clone(), {"allOf": [part]}]});
                definitions.insert((level + 1).to_string(), both);
            }
            json!({"$ref": format!("#/$defs/{depth}"), "$defs": definitions})
        };
        let errors = Validator::new(&branches(20)).validate(&json!({}));
        assert_eq!(
            errors,
            ["- at '': the schema takes too many steps to check these values"]
        );
        let errors = Validator::new(&branches(11)).validate(&json!({}));
        assert!(
            errors.len() == 1 && errors[0].len() < 128 * 1024,
            "{}",
            errors[0].len()
        );
    }

    #[test]
    fn equal_items_are_found_far_apart() {
        let items: Vec<Value> = (0..5_000).map(Value::from).chain([json!(7)]).collect();
        check(
            &json!({"uniqueItems": true}),
            &Value::Array(items),
            &["- at '': items at 7 and 5000 are equal"],
        );
    }

    #[test]
    fn a_schema_that_refers_to_itself_ends() {
        let errors = Validator::new(&json!({"$ref": "#"})).validate(&json!({}));
        assert!(errors[0].contains("refer to themselves"), "{errors:?}");
        let twice = json!({"anyOf": [{"$ref": "#"}, {"$ref": "#"}], "patternProperties": {"(x+x+)+y": {"type": "string"}}});
        check(
            &twice,
            &json!({"x".repeat(40): "a".repeat(1000)}),
            &["- at '': the schema is too deep, or its parts refer to themselves"],
        );
        let tree = json!({"properties": {"child": {"$ref": "#"}}, "required": ["name"]});
        check(
            &tree,
            &json!({"name": 1, "child": {}}),
            &["- at '/child': missing property 'name'"],
        );
    }
}
