//! When a merged value is as good as the live one: lists in any order, quantities by value, zero values
//! as good as none.

use bellwether_json::quantity::Quantity;
use serde_json::Value;

use crate::fields::MAX_DEPTH;

/// Where a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    /// Under a key of an object.
    Field,
    /// In a list. There, an empty map is as good as none.
    Item,
}

/// A comparison, and what was noticed on the way.
#[derive(Default)]
pub(super) struct Equality {
    /// Whether a zero value was compared with nothing.
    pub(super) has_missing_field: bool,
}

impl Equality {
    /// Returns true if a merged value is as good as the live one.
    pub(super) fn holds(&mut self, merged: &Value, live: Option<&Value>, place: Place) -> bool {
        self.compare(merged, live, place, 0)
    }

    fn compare(
        &mut self,
        merged: &Value,
        live: Option<&Value>,
        place: Place,
        depth: usize,
    ) -> bool {
        if depth > MAX_DEPTH {
            return false;
        }
        let live = live.filter(|live| !live.is_null());
        match (merged, live) {
            (Value::Object(merged), Some(Value::Object(live))) => {
                merged.len() >= live.len()
                    && merged
                        .iter()
                        .all(|(key, value)| self.compare(value, live.get(key), place, depth + 1))
            }
            (Value::Object(merged), None) => place == Place::Item && merged.is_empty(),
            (Value::Array(merged), None) => merged.is_empty(),
            (Value::Array(merged), Some(Value::Array(live))) => {
                merged.len() == live.len()
                    && in_order(merged)
                        .into_iter()
                        .zip(in_order(live))
                        .all(|(merged, live)| {
                            self.compare(merged, Some(live), Place::Item, depth + 1)
                        })
            }
            (Value::Object(_) | Value::Array(_), Some(_)) => false,
            (scalar, Some(live)) => is_same_scalar(scalar, live),
            (scalar, None) => {
                self.has_missing_field |= !scalar.is_null();
                is_zero(scalar)
            }
        }
    }
}

fn is_zero(scalar: &Value) -> bool {
    match scalar {
        Value::Null | Value::Bool(false) => true,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        _ => false,
    }
}

fn is_same_scalar(merged: &Value, live: &Value) -> bool {
    if let Value::String(text) = merged
        && let Ok(quantity) = text.parse::<Quantity>()
    {
        let live = live.as_str().and_then(|text| text.parse::<Quantity>().ok());
        return live.is_some_and(|live| live == quantity);
    }
    match (merged, live) {
        (Value::Number(merged), Value::Number(live)) => {
            bellwether_json::equality::number_eq(merged, live)
        }
        (_, Value::Object(_) | Value::Array(_)) => false,
        _ => printed(merged) == printed(live),
    }
}

/// A scalar as text, so that `1` and `"1"` are the same.
fn printed(scalar: &Value) -> String {
    scalar
        .as_str()
        .map_or_else(|| scalar.to_string(), str::to_owned)
}

/// The items of a list in the order of their texts.
fn in_order(items: &[Value]) -> Vec<&Value> {
    let mut keyed: Vec<(String, &Value)> =
        items.iter().map(|item| (canonical(item), item)).collect();
    keyed.sort_by(|one, other| one.0.cmp(&other.0));
    keyed.into_iter().map(|(_, item)| item).collect()
}

/// A text that values have in common which differ in nothing but the order of keys and items.
pub(super) fn canonical(value: &Value) -> String {
    match value {
        Value::Object(members) => {
            let mut texts: Vec<String> = members
                .iter()
                .map(|(key, value)| format!("{key:?}:{}", canonical(value)))
                .collect();
            texts.sort();
            format!("{{{}}}", texts.join(","))
        }
        Value::Array(items) => {
            let mut texts: Vec<String> = items.iter().map(canonical).collect();
            texts.sort();
            format!("[{}]", texts.join(","))
        }
        scalar => scalar.to_string(),
    }
}
