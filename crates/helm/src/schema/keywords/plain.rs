//! Keywords that need no other schema: types, constants, limits, formats.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use bellwether_go::regexp::Regex;
use serde_json::{Map, Value};

use super::{Problem, problem};

/// Whether a number is on the right side of a limit.
type Check = fn(f64, f64) -> bool;

pub(super) fn any_type(
    schema: &Map<String, Value>,
    value: &Value,
    at: &str,
    out: &mut Vec<Problem>,
) {
    if let Some(wanted) = schema.get("type") {
        let names: Vec<&str> = match wanted {
            Value::Array(names) => names.iter().filter_map(Value::as_str).collect(),
            one => one.as_str().into_iter().collect(),
        };
        if !names.iter().any(|name| is_type(value, name)) {
            let text = format!("got {}, want {}", type_of(value), names.join(" or "));
            out.push(problem(at, text));
        }
    }
    if let Some(constant) = schema.get("const")
        && !is_equal(constant, value)
    {
        out.push(problem(at, format!("value must be {}", shown(constant))));
    }
    if let Some(options) = schema.get("enum").and_then(Value::as_array)
        && !options.iter().any(|option| is_equal(option, value))
    {
        let options: Vec<String> = options.iter().map(shown).collect();
        out.push(problem(
            at,
            format!("value must be one of {}", options.join(", ")),
        ));
    }
}

pub(super) fn missing(
    required: &[Value],
    members: &Map<String, Value>,
    at: &str,
    out: &mut Vec<Problem>,
) {
    let names: Vec<String> = required
        .iter()
        .filter_map(Value::as_str)
        .filter(|name| !members.contains_key(*name))
        .map(|name| format!("'{name}'"))
        .collect();
    match names.len() {
        0 => {}
        1 => out.push(problem(at, format!("missing property {}", names[0]))),
        _ => out.push(problem(
            at,
            format!("missing properties {}", names.join(", ")),
        )),
    }
}

pub(super) fn limits(
    schema: &Map<String, Value>,
    [least, most]: [&str; 2],
    count: usize,
    at: &str,
    out: &mut Vec<Problem>,
) {
    let count = u64::try_from(count).unwrap_or(u64::MAX);
    let limit = |key: &str| schema.get(key).and_then(Value::as_u64);
    if let Some(limit) = limit(least).filter(|limit| count < *limit) {
        out.push(problem(at, format!("{least}: got {count}, want {limit}")));
    }
    if let Some(limit) = limit(most).filter(|limit| count > *limit) {
        out.push(problem(at, format!("{most}: got {count}, want {limit}")));
    }
}

pub(super) fn numbers(
    schema: &Map<String, Value>,
    number: f64,
    value: &Value,
    at: &str,
    out: &mut Vec<Problem>,
) {
    let checks: [(&str, Check); 4] = [
        ("minimum", |number, limit| number >= limit),
        ("maximum", |number, limit| number <= limit),
        ("exclusiveMinimum", |number, limit| number > limit),
        ("exclusiveMaximum", |number, limit| number < limit),
    ];
    for (key, holds) in checks {
        let limit = schema
            .get(key)
            .and_then(|limit| Some((limit, limit.as_f64()?)));
        if let Some((limit, bound)) = limit
            && !holds(number, bound)
        {
            out.push(problem(at, format!("{key}: got {value}, want {limit}")));
        }
    }
    let step = schema.get("multipleOf").and_then(Value::as_f64);
    if let Some(step) = step.filter(|step| *step > 0.0) {
        let quotient = number / step;
        if (quotient - quotient.round()).abs() > 1e-9 {
            out.push(problem(at, format!("multipleOf: got {value}, want {step}")));
        }
    }
}

/// The first two items that are equal. Numbers without a fraction are integers here, so that equal items have equal texts.
pub(super) fn repetition(items: &[Value]) -> Option<(usize, usize)> {
    let mut places = HashMap::with_capacity(items.len());
    let mut found: Option<(usize, usize)> = None;
    for (place, item) in items.iter().enumerate() {
        match places.entry(item.to_string()) {
            Entry::Vacant(entry) => {
                entry.insert(place);
            }
            Entry::Occupied(entry) if found.is_none_or(|(first, _)| *entry.get() < first) => {
                found = Some((*entry.get(), place));
            }
            Entry::Occupied(_) => {}
        }
    }
    found
}

fn is_equal(first: &Value, second: &Value) -> bool {
    match (first, second) {
        (Value::Number(first), Value::Number(second)) => first.as_f64() == second.as_f64(),
        _ => first == second,
    }
}

fn is_type(value: &Value, name: &str) -> bool {
    match name {
        "integer" => match value {
            Value::Number(number) => {
                number.is_i64()
                    || number.is_u64()
                    || number.as_f64().is_some_and(|float| float.fract() == 0.0)
            }
            _ => false,
        },
        name => type_of(value) == name,
    }
}

fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => format!("'{text}'"),
        other => other.to_string(),
    }
}

pub(super) fn read_pattern(pattern: &str) -> Option<Regex> {
    Regex::new(pattern).ok()
}

/// Whether a text has one of the formats that values commonly use; others are not checked.
pub(super) fn has_format(text: &str, format: &str) -> bool {
    match format {
        "ipv4" => text.parse::<std::net::Ipv4Addr>().is_ok(),
        "ipv6" => text.parse::<std::net::Ipv6Addr>().is_ok(),
        "email" => text
            .split_once('@')
            .is_some_and(|(name, host)| !name.is_empty() && !host.is_empty()),
        "hostname" => {
            bellwether_json::name::dns_subdomain_problems(&text.to_lowercase()).is_empty()
        }
        "uri" => text.split_once(':').is_some_and(|(scheme, _)| {
            scheme.starts_with(|first: char| first.is_ascii_alphabetic())
        }),
        "regex" => read_pattern(text).is_some(),
        _ => true,
    }
}
