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
    let decimal = Decimal::of(float);
    if float != 0.0 && !(1e-6..1e21).contains(&float.abs()) {
        let (mantissa, exponent) = (decimal.mantissa(), decimal.exponent);
        let sign = if exponent < 0 { "" } else { "+" };
        return format!("{mantissa}e{sign}{exponent}");
    }
    decimal.positional()
}

/// Formats a float as Go's `%v` and `strconv.FormatFloat(f, 'g', -1, 64)` do: shortest digits,
/// with an exponent below `1e-4` and from `1e6` on. Infinities and NaN are `+Inf`, `-Inf`, `NaN`.
pub fn go_general_float(float: f64) -> String {
    if float.is_nan() {
        return "NaN".to_owned();
    }
    if float.is_infinite() {
        return if float > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    let decimal = Decimal::of(float);
    if (-4..6).contains(&decimal.exponent) {
        return decimal.positional();
    }
    let sign = if decimal.exponent < 0 { '-' } else { '+' };
    format!(
        "{}e{sign}{:02}",
        decimal.mantissa(),
        decimal.exponent.unsigned_abs()
    )
}

/// The shortest digits that read back as the same float.
struct Decimal {
    is_negative: bool,
    /// Without leading or trailing zeros, except for zero itself.
    digits: String,
    /// The power of ten of the first digit.
    exponent: i32,
}

impl Decimal {
    /// Takes the digits from the JSON writer: where two candidates are equally near, it chooses the
    /// even one, as Go does and the standard library does not.
    fn of(float: f64) -> Self {
        let text = Number::from_f64(float)
            .map(|number| number.to_string())
            .unwrap_or_default();
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let unsigned = mantissa.trim_start_matches('-');
        let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
        let all_digits = format!("{whole}{fraction}");
        let digits = all_digits.trim_start_matches('0');
        let leading_zeros = all_digits.len() - digits.len();
        let first = i32::try_from(whole.len()).unwrap_or_default() - 1;
        let skipped = i32::try_from(leading_zeros).unwrap_or_default();
        let digits = digits.trim_end_matches('0');
        Self {
            is_negative: float.is_sign_negative(),
            digits: if digits.is_empty() {
                "0".to_owned()
            } else {
                digits.to_owned()
            },
            exponent: match digits {
                "" => 0,
                _ => exponent.parse::<i32>().unwrap_or_default() + first - skipped,
            },
        }
    }

    fn sign(&self) -> &'static str {
        if self.is_negative { "-" } else { "" }
    }

    /// `d.ddd`, to be followed by an exponent.
    fn mantissa(&self) -> String {
        let (first, rest) = self.digits.split_at(1);
        let point = if rest.is_empty() { "" } else { "." };
        format!("{}{first}{point}{rest}", self.sign())
    }

    /// All digits written out, without an exponent.
    fn positional(&self) -> String {
        let sign = self.sign();
        let Ok(exponent) = usize::try_from(self.exponent) else {
            let zeros = "0".repeat(usize::try_from(-self.exponent - 1).unwrap_or_default());
            return format!("{sign}0.{zeros}{}", self.digits);
        };
        let whole_digits = exponent + 1;
        if self.digits.len() <= whole_digits {
            let zeros = "0".repeat(whole_digits - self.digits.len());
            return format!("{sign}{}{zeros}", self.digits);
        }
        let (whole, fraction) = self.digits.split_at(whole_digits);
        format!("{sign}{whole}.{fraction}")
    }
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
