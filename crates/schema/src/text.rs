//! How Go prints values: clients compare messages byte for byte, so quoting, floats and JSON inside
//! messages follow `strconv.Quote`, `fmt`'s `%v` and `encoding/json`.

use std::fmt::Write as _;

pub use bellwether_go::quote::quote;
use serde_json::{Number, Value};

/// A number as Go's `%v` writes it: integers plainly, floats in the shortest form, with an exponent
/// from a million on.
pub fn number(number: &Number) -> String {
    match number.as_f64() {
        Some(value) if number.is_f64() => float(value),
        _ => number.to_string(),
    }
}

/// A float as Go's `%v` writes it.
pub fn float(value: f64) -> String {
    float_with(value, -4, 6, true)
}

/// A float as Go's `encoding/json` writes it.
fn json_float(value: f64) -> String {
    float_with(value, -6, 21, false)
}

/// Shortest digits that read back as `value`; with an exponent below `smallest` and from `largest`
/// on. Go pads exponents to two digits with `%v`, and only positive ones in JSON.
fn float_with(value: f64, smallest: i32, largest: i32, padded: bool) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{value:e}");
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if value == 0.0 || (smallest..largest).contains(&exponent) {
        return format!("{value}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    let magnitude = exponent.unsigned_abs();
    if padded || exponent >= 0 {
        format!("{digits}e{sign}{magnitude:02}")
    } else {
        format!("{digits}e{sign}{magnitude}")
    }
}

/// `value` as Go's `json.Marshal` writes it: compact, keys sorted, `<`, `>` and `&` escaped.
pub fn json(value: &Value) -> String {
    let mut out = String::new();
    push_json(&mut out, value);
    out
}

// Recursion is as deep as the value, which its parser has bounded.
fn push_json(out: &mut String, value: &Value) {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(flag) => out.push_str(if *flag { "true" } else { "false" }),
        Value::Number(number) => match number.as_f64() {
            Some(value) if number.is_f64() => out.push_str(&json_float(value)),
            _ => out.push_str(&number.to_string()),
        },
        Value::String(text) => push_json_string(out, text),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                push_json(out, item);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_by(|left, right| left.0.cmp(right.0));
            out.push('{');
            for (index, (key, field)) in sorted.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                push_json_string(out, key);
                out.push(':');
                push_json(out, field);
            }
            out.push('}');
        }
    }
}

fn push_json_string(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\0'..='\u{1f}' | '<' | '>' | '&' | '\u{2028}' | '\u{2029}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(character));
            }
            _ => out.push(character),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn strings_are_quoted_as_go_does() {
        let cases = [
            ("plain", r#""plain""#),
            ("a\"b\\c", r#""a\"b\\c""#),
            (
                "a\u{7f}\u{a0}é\u{200b}😀\u{301}\n\u{b}\u{1}<>",
                "\"a\\x7f\\u00a0é\\u200b😀\u{301}\\n\\v\\x01<>\"",
            ),
            ("\u{e0001}", r#""\U000e0001""#),
        ];
        for (text, expected) in cases {
            assert_eq!(quote(text), expected);
        }
    }

    #[test]
    fn floats_are_printed_as_go_does() {
        let cases = [
            (1_000_000.0, "1e+06", "1000000"),
            (123_456_789.0, "1.23456789e+08", "123456789"),
            (20.5, "20.5", "20.5"),
            (1e21, "1e+21", "1e+21"),
            (1e-5, "1e-05", "0.00001"),
            (1e-7, "1e-07", "1e-7"),
            (0.0001, "0.0001", "0.0001"),
            (100_000.0, "100000", "100000"),
            (3.0, "3", "3"),
            (0.0, "0", "0"),
            (-2.5, "-2.5", "-2.5"),
        ];
        for (value, plain, in_json) in cases {
            assert_eq!(float(value), plain);
            assert_eq!(json_float(value), in_json);
        }
    }

    #[test]
    fn json_sorts_keys_and_escapes_markup() {
        let value = json!({"b": "<&\u{2028}\u{1}\u{7f}\n", "a": [1, true, null, 1e20]});
        let expected = "{\"a\":[1,true,null,100000000000000000000],\
            \"b\":\"\\u003c\\u0026\\u2028\\u0001\u{7f}\\n\"}";
        assert_eq!(json(&value), expected);
    }
}
