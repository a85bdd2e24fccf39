//! Values as Go's `fmt` prints them, for error texts that users search the web for.

use std::fmt::Write;

use bellwether_schema::text::quote;
use serde_json::Value;

/// `%v` of an unstructured value behind structured-merge-diff's wrapper: `&{…}`.
pub(crate) fn wrapped(value: &Value) -> String {
    let mut out = String::from("&{");
    plain(value, &mut out);
    out.push('}');
    out
}

/// `%#v` of the same: `&value.valueUnstructured{Value:…}`.
pub(crate) fn wrapped_syntax(value: &Value) -> String {
    let mut out = String::from("&value.valueUnstructured{Value:");
    syntax(value, &mut out);
    out.push('}');
    out
}

/// `%T` of an unstructured value.
pub(crate) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// `%v` of an unstructured value.
pub(crate) fn text(value: &Value) -> String {
    let mut out = String::new();
    plain(value, &mut out);
    out
}

fn plain(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("<nil>"),
        Value::String(text) => out.push_str(text),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(' ');
                }
                plain(item, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push_str("map[");
            for (index, (name, member)) in members.iter().enumerate() {
                if index > 0 {
                    out.push(' ');
                }
                out.push_str(name);
                out.push(':');
                plain(member, out);
            }
            out.push(']');
        }
        scalar => {
            let _ = write!(out, "{scalar}");
        }
    }
}

fn syntax(value: &Value, out: &mut String) {
    match value {
        Value::Null => out.push_str("interface {}(nil)"),
        Value::String(text) => out.push_str(&quote(text)),
        Value::Array(items) => {
            out.push_str("[]interface {}{");
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                syntax(item, out);
            }
            out.push('}');
        }
        Value::Object(members) => {
            out.push_str("map[string]interface {}{");
            for (index, (name, member)) in members.iter().enumerate() {
                if index > 0 {
                    out.push_str(", ");
                }
                out.push_str(&quote(name));
                out.push(':');
                syntax(member, out);
            }
            out.push('}');
        }
        scalar => {
            let _ = write!(out, "{scalar}");
        }
    }
}
