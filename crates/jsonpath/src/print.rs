//! Results to text, as kubectl prints them.

use bellwether_json::{marshal, number};
use serde_json::Value;

/// The text of one list of results: values separated by spaces, objects and lists as JSON.
pub fn print(values: &[&Value]) -> String {
    let texts: Vec<String> = values.iter().map(|value| text(value)).collect();
    texts.join(" ")
}

fn text(value: &Value) -> String {
    match value {
        Value::Array(_) | Value::Object(_) => marshal::to_json(value),
        Value::String(text) => text.clone(),
        _ => scalar(value, "null"),
    }
}

/// Go's `%v`, which messages show.
pub(crate) fn go_value(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_value).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(map) => {
            let fields: Vec<String> = map
                .iter()
                .map(|(key, value)| format!("{key}:{}", go_value(value)))
                .collect();
            format!("map[{}]", fields.join(" "))
        }
        _ => scalar(value, "<nil>"),
    }
}

/// What Go calls the type of a decoded value.
pub(crate) fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

fn scalar(value: &Value, null: &str) -> String {
    match value {
        Value::Null => null.to_owned(),
        Value::Number(number) if !number.is_i64() => number
            .as_f64()
            .map_or_else(|| number.to_string(), number::go_general_float),
        other => other.to_string(),
    }
}
