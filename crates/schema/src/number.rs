//! Numbers as Go sees them after decoding JSON: 64-bit integers where the text is one, else floats.

use serde_json::{Number, Value};

/// A decoded number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum GoNumber {
    Integer(i64),
    Float(f64),
}

impl GoNumber {
    pub(crate) fn new(number: &Number) -> Self {
        match number.as_i64() {
            Some(integer) => Self::Integer(integer),
            // Only numbers of arbitrary precision have no float, and that feature is off.
            None => Self::Float(number.as_f64().unwrap_or(f64::NAN)),
        }
    }

    #[expect(clippy::cast_precision_loss, reason = "as Go converts")]
    pub(crate) fn as_float(self) -> f64 {
        match self {
            Self::Integer(integer) => integer as f64,
            Self::Float(float) => float,
        }
    }
}

/// Whether a float counts as an integer in JSON schemas: within the range that floats represent
/// exactly, and off by a billionth at most.
pub(crate) fn is_json_integer(float: f64) -> bool {
    const MAX_SAFE: f64 = 9_007_199_254_740_991.0;
    if !float.is_finite() || float.abs() > MAX_SAFE {
        return false;
    }
    let truncated = float.trunc();
    let difference = (float - truncated).abs();
    if difference == 0.0 {
        return true;
    }
    // Go converts negative values to unsigned ones here, which never come close.
    truncated > 0.0 && difference / (float + truncated) < 1e-9
}

/// Equality after decoding: an integer and a float are different, whatever their value.
pub(crate) fn deep_equal(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => GoNumber::new(left) == GoNumber::new(right),
        (Value::Array(left), Value::Array(right)) => {
            left.len() == right.len() && left.iter().zip(right).all(|(l, r)| deep_equal(l, r))
        }
        (Value::Object(left), Value::Object(right)) => {
            left.len() == right.len()
                && left
                    .iter()
                    .all(|(key, l)| right.get(key).is_some_and(|r| deep_equal(l, r)))
        }
        _ => left == right,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floats_close_to_integers_count_as_integers() {
        let cases = [
            (3.0, true),
            (-3.0, true),
            (0.0, true),
            (2.5, false),
            (-2.5, false),
            (3.000_000_000_1, true),
            (1e-12, false),
            (1e300, false),
            (f64::NAN, false),
        ];
        for (float, expected) in cases {
            assert_eq!(is_json_integer(float), expected, "{float}");
        }
    }
}
