//! Whether a merged value means the same as the live one.
//!
//! Lists are compared without regard to order, strings that are quantities by value, and zero values
//! count as absent. Texts are those that Go's `fmt.Sprint` writes, because upstream sorts and compares
//! by them.

use bellwether_go::print;
use bellwether_go::value::{Numbers, Value as GoValue};
use bellwether_json::quantity::Quantity;
use serde_json::{Map, Value};

/// What a comparison found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Equivalence {
    /// Whether the values mean the same.
    pub(super) is_equal: bool,
    /// Whether a zero value stands for an absent one, so that only a server can decide.
    pub(super) is_missing: bool,
}

impl Equivalence {
    const fn of(is_equal: bool) -> Self {
        Self {
            is_equal,
            is_missing: false,
        }
    }

    /// Of a value that is there on one side only: it is equal if it is zero.
    const fn absent(is_zero: bool) -> Self {
        Self {
            is_equal: is_zero,
            is_missing: true,
        }
    }

    const DIFFERENT: Self = Self::of(false);
}

/// The text that Go prints for a value.
pub(super) fn sprint(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        value => print::text(&GoValue::from_json_with(value, Numbers::Integers)),
    }
}

/// The name that Go prints for the type of a value.
pub(super) fn type_name(value: &Value) -> &'static str {
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

/// Compares a merged value with the live one. With `zero_is_absent` an empty map equals an absent one.
pub(super) fn equivalent(merged: &Value, live: &Value, zero_is_absent: bool) -> Equivalence {
    match (merged, live) {
        (Value::Object(merged), Value::Object(live)) => fields(merged, live, zero_is_absent),
        (Value::Array(merged), Value::Null) => Equivalence::of(merged.is_empty()),
        // Here upstream swaps the two lists, so it is the live items that may not have fewer fields.
        (Value::Array(merged), Value::Array(live)) => lists(live, merged),
        (Value::Object(_) | Value::Array(_), _) => Equivalence::DIFFERENT,
        (Value::Null, Value::Null) => Equivalence::of(true),
        (merged, Value::Null) if zero_is_absent => Equivalence::absent(is_zero(merged)),
        (Value::Null, live) if zero_is_absent => Equivalence::of(is_zero(live)),
        (merged, live) => Equivalence::of(sprint(merged) == sprint(live)),
    }
}

/// Whether a value is what Go has where nothing was set.
fn is_zero(value: &Value) -> bool {
    match value {
        Value::Bool(value) => !value,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Null => false,
    }
}

fn fields(
    merged: &Map<String, Value>,
    live: &Map<String, Value>,
    zero_is_absent: bool,
) -> Equivalence {
    if merged.len() < live.len() {
        return Equivalence::DIFFERENT;
    }
    let pairs = merged.iter().map(|(key, value)| (value, live.get(key)));
    all(pairs, |(value, live)| field(value, live, zero_is_absent))
}

/// Equal if all are, and missing if one of those that were looked at is.
fn all<T>(items: impl IntoIterator<Item = T>, compare: impl Fn(T) -> Equivalence) -> Equivalence {
    let mut is_missing = false;
    for item in items {
        let found = compare(item);
        is_missing |= found.is_missing;
        if !found.is_equal {
            return Equivalence {
                is_equal: false,
                is_missing,
            };
        }
    }
    Equivalence {
        is_equal: true,
        is_missing,
    }
}

fn field(merged: &Value, live: Option<&Value>, zero_is_absent: bool) -> Equivalence {
    match (merged, live) {
        (Value::Object(merged), Some(Value::Object(live))) => fields(merged, live, zero_is_absent),
        (Value::Object(merged), _) => Equivalence::of(zero_is_absent && merged.is_empty()),
        (Value::Array(merged), Some(Value::Array(live))) => lists(merged, live),
        // An empty list asks for nothing, whatever is there.
        (Value::Array(merged), _) => Equivalence::of(merged.is_empty()),
        (Value::String(merged), live) => Equivalence::of(strings(merged, live)),
        (Value::Null, None | Some(Value::Null)) => Equivalence::of(true),
        (merged, None | Some(Value::Null)) => Equivalence::absent(is_zero(merged)),
        (merged, Some(live)) => Equivalence::of(sprint(merged) == sprint(live)),
    }
}

/// Whether a live value is this text, or the same quantity.
fn strings(merged: &str, live: Option<&Value>) -> bool {
    let Some(live) = live else { return false };
    match merged.parse::<Quantity>() {
        Err(_) => sprint(live) == merged,
        Ok(merged) => live
            .as_str()
            .and_then(|live| live.parse::<Quantity>().ok())
            .is_some_and(|live| live == merged),
    }
}

/// Whether lists have the same items in any order.
fn lists(merged: &[Value], live: &[Value]) -> Equivalence {
    if merged.len() != live.len() {
        return Equivalence::DIFFERENT;
    }
    let pairs = std::iter::zip(sorted(merged), sorted(live));
    all(pairs, |(merged, live)| match (merged, live) {
        (Value::Object(merged), Value::Object(live)) => fields(merged, live, true),
        (_, Value::Object(_)) => Equivalence::DIFFERENT,
        // Inside lists the order of lists counts, and quantities are texts.
        (merged, live) => Equivalence::of(sprint(merged) == sprint(live)),
    })
}

fn sorted(items: &[Value]) -> Vec<&Value> {
    let mut keyed: Vec<(String, &Value)> =
        items.iter().map(|item| (sort_key(item), item)).collect();
    keyed.sort_by(|(left, _), (right, _)| left.cmp(right));
    keyed.into_iter().map(|(_, item)| item).collect()
}

/// What items of lists are sorted by: the text of the value with its own lists sorted.
fn sort_key(value: &Value) -> String {
    match value {
        Value::Object(fields) => {
            let fields = fields.iter();
            let fields: Vec<String> = fields
                .map(|(key, field)| format!("{key}:{}", sort_key(field)))
                .collect();
            format!("map[{}]", fields.join(" "))
        }
        Value::Array(items) => {
            let mut items: Vec<String> = items.iter().map(sort_key).collect();
            items.sort();
            format!("[{}]", items.join(" "))
        }
        scalar => sprint(scalar),
    }
}
