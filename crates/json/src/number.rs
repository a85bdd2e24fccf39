//! Numbers as Kubernetes sees them: 64-bit integers where possible, floats otherwise.
//!
//! Kubernetes decodes a JSON number to `int64` when its text is an integer that fits and to
//! `float64` otherwise; when it writes a `float64` without a fraction, the text has none either,
//! so the next reader sees an integer. [`from_f64`] makes that trip in one step.

use serde_json::Number;

/// Integers up to this magnitude are exact in an `f64`.
const EXACT_INTEGER_LIMIT: f64 = 9_007_199_254_740_992.0;

/// The number that a float becomes after Kubernetes has written and read it once: an integer if it
/// has no fraction and fits 64 bits. `None` for infinities and NaN, which JSON cannot hold.
pub fn from_f64(float: f64) -> Option<Number> {
    if float.fract() == 0.0 {
        if float.abs() <= EXACT_INTEGER_LIMIT {
            #[expect(clippy::cast_possible_truncation, reason = "integral and below 2^53")]
            return Some(Number::from(float as i64));
        }
        // The decimal text, not the binary value, decides: that is what the next reader sees.
        if let Ok(integer) = go_json_float(float).parse::<i64>() {
            return Some(Number::from(integer));
        }
    }
    Number::from_f64(float)
}

/// The number that Kubernetes makes of a JSON number: integral floats are folded to integers and
/// integers beyond 64 bits signed become floats.
pub fn normalize(number: &Number) -> Number {
    if number.is_i64() {
        return number.clone();
    }
    number
        .as_f64()
        .and_then(from_f64)
        .unwrap_or_else(|| number.clone())
}

/// Formats a float as Go's `encoding/json` does: shortest digits, exponent only below `1e-6` and
/// from `1e21` on.
pub fn go_json_float(float: f64) -> String {
    let magnitude = float.abs();
    if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
        let text = format!("{float:e}");
        return match text.split_once('e') {
            Some((digits, exponent)) if !exponent.starts_with('-') => {
                format!("{digits}e+{exponent}")
            }
            _ => text,
        };
    }
    format!("{float}")
}

/// Formats a float as Go's `%v` and `strconv.FormatFloat(f, 'g', -1, 64)` do: shortest digits,
/// with an exponent below `1e-4` and from `1e6` on.
pub fn go_general_float(float: f64) -> String {
    if float.is_nan() {
        return "NaN".to_owned();
    }
    if float.is_infinite() {
        return if float > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let scientific = format!("{float:e}");
    let Some((digits, exponent)) = scientific.split_once('e') else {
        return scientific;
    };
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) {
        return format!("{float}");
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(float: f64, number: &str, json: &str, general: &str) {
        assert_eq!(
            from_f64(float).unwrap().to_string(),
            number,
            "number of {float}"
        );
        assert_eq!(go_json_float(float), json, "json of {float}");
        assert_eq!(go_general_float(float), general, "general of {float}");
    }

    #[test]
    fn floats_are_written_as_go_writes_them() {
        check(1.0, "1", "1", "1");
        check(-0.0, "0", "-0", "-0");
        check(1.5, "1.5", "1.5", "1.5");
        check(123_456.5, "123456.5", "123456.5", "123456.5");
        check(1_234_567.5, "1234567.5", "1234567.5", "1.2345675e+06");
        check(1e20, "1e+20", "100000000000000000000", "1e+20");
        check(1e21, "1e+21", "1e+21", "1e+21");
        check(0.000_01, "0.00001", "0.00001", "1e-05");
        check(0.000_000_1, "1e-7", "1e-7", "1e-07");
        check(
            1.5e17,
            "150000000000000000",
            "150000000000000000",
            "1.5e+17",
        );
    }

    #[test]
    fn integers_beyond_64_bits_signed_become_floats() {
        assert_eq!(
            normalize(&Number::from(u64::MAX)).to_string(),
            "1.8446744073709552e+19"
        );
        assert_eq!(normalize(&Number::from(i64::MIN)).as_i64(), Some(i64::MIN));
        assert!(from_f64(f64::NAN).is_none());
    }
}
