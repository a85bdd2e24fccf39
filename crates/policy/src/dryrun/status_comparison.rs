//! Compares the status of a dry run with the one that was expected.

use std::sync::LazyLock;

use bellwether_api::policy::ConfigurationPolicyStatus;
use bellwether_json::yaml::{Dialect, YamlOptions, value_from_yaml_with};
use regex::Regex;
use serde_json::{Map, Value};

use super::colors::Colors;
use super::status_value;

/// Paths inside of items of lists, which are not printed.
static HIDDEN: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(r"\.\w+\[\d+\]\.\w").ok());

/// Compares, and says what was compared with what.
pub(super) fn compare(
    desired: &str,
    status: &ConfigurationPolicyStatus,
    colors: Colors,
) -> Result<String, String> {
    let options = YamlOptions {
        dialect: Dialect::GoYamlV3,
        ..YamlOptions::default()
    };
    let desired = value_from_yaml_with(super::input::first_document(desired), options)
        .map_err(|error| format!("yaml: line {}: {}", error.line, error.message))?;
    let desired = match desired {
        Value::Object(fields) => fields,
        Value::Null => Map::new(),
        _ => return Err("yaml: unmarshal errors: the status is not a map".to_owned()),
    };
    let actual = status_value(status);
    let mut comparison = Comparison {
        output: "# Status compare:\n".to_owned(),
        colors,
    };
    let empty = Map::new();
    let actual = actual.as_object().unwrap_or(&empty);
    let text = if comparison.fields("", &desired, actual) {
        colors.success(&colors.bold(" Expected status matches the actual status"))
    } else {
        colors.error(&colors.bold(" Expected status does not match the actual status"))
    };
    comparison.output.push_str(&text);
    comparison.output.push('\n');
    Ok(comparison.output)
}

struct Comparison {
    output: String,
    colors: Colors,
}

impl Comparison {
    fn line(&mut self, path: &str, text: &str) {
        let is_hidden = HIDDEN.as_ref().is_some_and(|hidden| hidden.is_match(path));
        if !is_hidden {
            self.output.push_str(text);
            self.output.push('\n');
        }
    }

    fn error(&mut self, path: &str, text: &str) {
        let text = self.colors.error(text);
        self.line(path, &text);
    }

    fn success(&mut self, path: &str, text: &str) {
        let text = self.colors.success(text);
        self.line(path, &text);
    }

    /// Compares the fields that are expected.
    fn fields(
        &mut self,
        parent: &str,
        desired: &Map<String, Value>,
        actual: &Map<String, Value>,
    ) -> bool {
        let mut is_same = true;
        for (key, desired) in desired {
            let Some(actual) = actual.get(key) else {
                let text = format!("Key '{key}' not found in result at path '{parent}'");
                self.error(parent, &text);
                is_same = false;
                continue;
            };
            is_same &= self.value(&format!("{parent}.{key}"), key, desired, actual);
        }
        is_same
    }

    fn value(&mut self, path: &str, key: &str, desired: &Value, actual: &Value) -> bool {
        match (desired, actual) {
            (Value::Object(desired), Value::Object(actual)) => self.fields(path, desired, actual),
            (Value::Array(desired), Value::Array(actual)) => self.items(path, desired, actual),
            (Value::Array(_), _) => {
                let text = format!("skip {key}, {path} is not array,");
                let text = self.colors.warning(&text);
                self.output.push_str(&text);
                self.output.push('\n');
                false
            }
            (Value::Object(_) | Value::Null, actual) => {
                let text = format!(
                    "The input status field '{path}' is not the right type - expected '{}'",
                    type_of(actual)
                );
                let text = self.colors.error(&text);
                self.output.push_str(&text);
                self.output.push('\n');
                desired.is_null()
            }
            (desired, actual) => self.texts(path, &shown(desired), &shown(actual)),
        }
    }

    fn texts(&mut self, path: &str, desired: &str, actual: &str) -> bool {
        if desired == actual {
            self.success(path, &format!("{path}: '{desired}' does match '{actual}'"));
        } else {
            self.error(
                path,
                &format!("{path}: '{desired}' does not match '{actual}'"),
            );
        }
        desired == actual
    }

    /// Each expected item has to be one of the actual ones.
    fn items(&mut self, path: &str, desired: &[Value], actual: &[Value]) -> bool {
        if !desired.first().is_some_and(Value::is_object) {
            let (desired, actual) = (
                shown(&Value::from(desired.to_vec())),
                shown(&Value::from(actual.to_vec())),
            );
            return self.texts(path, &desired, &actual);
        }
        for (index, item) in desired.iter().enumerate() {
            let place = format!("{path}[{index}]");
            let empty = Map::new();
            let fields = item.as_object().unwrap_or(&empty);
            let is_found = actual.iter().any(|actual| {
                actual
                    .as_object()
                    .is_some_and(|actual| self.fields(&place, fields, actual))
            });
            if !is_found {
                self.error(&place, &format!("{place} does not match any elements"));
                self.error(path, &format!("{path} does not match the elements"));
                return false;
            }
            self.success(&place, &format!("{place} matches"));
        }
        self.success(path, &format!("{path} matches"));
        true
    }
}

fn shown(value: &Value) -> String {
    use bellwether_go::value::{Numbers, Value as GoValue};
    bellwether_go::print::text(&GoValue::from_json_with(value, Numbers::Integers))
}

/// The name that Go gives the type of a value of JSON.
fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}
