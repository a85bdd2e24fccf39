//! Whether two values mean the same.
//!
//! [`semantic_eq`] is what to ask before writing an object: numbers count by value, so that `1`
//! equals `1.0`, which one trip through Kubernetes makes of it. Nothing else is lenient: `{}` and
//! an absent field differ, since `emptyDir: {}` means something. [`is_covered_by`] ignores whatever
//! the expected side leaves out.

use serde_json::{Number, Value};

/// Whether two values are the same, with numbers compared by value.
///
/// Recursion is as deep as the values, which readers bound.
pub fn semantic_eq(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => number_eq(a, b),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| semantic_eq(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            // Both are in key order.
            a.len() == b.len()
                && a.iter()
                    .zip(b)
                    .all(|((key, a), (other, b))| key == other && semantic_eq(a, b))
        }
        _ => a == b,
    }
}

/// Whether two numbers are the same value, whatever their notation; integers are compared exactly.
pub fn number_eq(a: &Number, b: &Number) -> bool {
    match (a.as_i128(), b.as_i128()) {
        (Some(a), Some(b)) => a == b,
        _ => crate::number::normalize(a) == crate::number::normalize(b),
    }
}

/// Whether `actual` has everything that `expected` asks for: fields that `expected` leaves out do
/// not matter, and neither does anything below its nulls. Lists must agree item by item.
pub fn is_covered_by(expected: &Value, actual: &Value) -> bool {
    match (expected, actual) {
        (Value::Null, _) => true,
        (Value::Array(expected), Value::Array(actual)) => {
            expected.len() == actual.len()
                && expected
                    .iter()
                    .zip(actual)
                    .all(|(e, a)| is_covered_by(e, a))
        }
        (Value::Object(expected), Value::Object(actual)) => expected.iter().all(|(key, value)| {
            actual
                .get(key)
                .map_or(value.is_null(), |other| is_covered_by(value, other))
        }),
        _ => semantic_eq(expected, actual),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[track_caller]
    #[expect(
        clippy::needless_pass_by_value,
        reason = "tables read better without borrows"
    )]
    fn check(a: Value, b: Value, expected: bool) {
        assert_eq!(semantic_eq(&a, &b), expected, "{a} {b}");
        assert_eq!(semantic_eq(&b, &a), expected, "{b} {a}");
    }

    #[test]
    fn numbers_are_compared_by_value() {
        check(json!(1), json!(1.0), true);
        check(
            json!({"a": [1, {"b": 2.0}]}),
            json!({"a": [1.0, {"b": 2}]}),
            true,
        );
        check(json!(1), json!(1.5), false);
        check(
            json!(9_007_199_254_740_993_i64),
            json!(9_007_199_254_740_992_i64),
            false,
        );
        check(json!(u64::MAX), json!(u64::MAX), true);
        check(json!(1), json!("1"), false);
    }

    #[test]
    fn empty_is_not_absent() {
        check(json!({}), json!({"a": {}}), false);
        check(json!({"a": []}), json!({"a": null}), false);
        check(json!({"a": 1, "b": 2}), json!({"a": 1, "c": 2}), false);
    }

    #[test]
    fn covered_values_may_say_more() {
        let actual = json!({"a": 1, "b": {"c": [1, {"x": 1, "y": 2}]}});
        assert!(is_covered_by(
            &json!({"b": {"c": [1.0, {"x": 1}]}}),
            &actual
        ));
        assert!(is_covered_by(&json!({"b": null, "z": null}), &actual));
        assert!(!is_covered_by(&json!({"b": {"c": [1]}}), &actual));
        assert!(!is_covered_by(&json!({"z": {}}), &actual));
    }

    proptest! {
        #[test]
        fn integers_equal_only_themselves(a: i64, b: i64) {
            prop_assert_eq!(semantic_eq(&json!(a), &json!(b)), a == b);
        }
    }
}
