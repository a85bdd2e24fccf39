//! Resource quantities such as `1500m` and `2Gi`, exactly.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use super::{int, text};
use crate::declaration::{Functions, Outcome};
use crate::error::EvalError;
use crate::value::Value;

/// A quantity: `unscaled * 10^scale`.
///
/// Kubernetes keeps small numbers as an integer and a power of ten without reducing either, and
/// anything else as an arbitrary decimal; only the former can be read as an integer. `small`
/// says which of the two it is.
#[derive(Debug, Clone, Copy)]
pub struct Quantity {
    unscaled: i128,
    scale: i32,
    small: bool,
}

const FORMAT_ERROR: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

/// Smallest power of ten that is kept; finer amounts are rounded up.
const NANO: i32 = -9;

/// Digits that surely fit 64 bits.
const MAX_SMALL_DIGITS: usize = 18;

impl Quantity {
    /// Reads a quantity.
    pub fn parse(text: &str) -> Result<Quantity, EvalError> {
        parse(text).ok_or_else(|| EvalError::failed(FORMAT_ERROR))
    }

    fn small(value: i64, scale: i32) -> Quantity {
        Quantity {
            unscaled: i128::from(value),
            scale,
            small: true,
        }
    }

    /// The whole number this is, if Kubernetes can tell without rounding.
    pub fn as_integer(&self) -> Option<i64> {
        if !self.small || self.scale < 0 {
            return None;
        }
        let factor = power(self.scale.unsigned_abs())?;
        i64::try_from(self.unscaled.checked_mul(factor)?).ok()
    }

    /// The nearest floating point number.
    pub fn as_approximate_float(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "approximate by name")]
        let base = self.unscaled as f64;
        if self.scale == 0 {
            base
        } else {
            base * 10_f64.powi(self.scale)
        }
    }

    /// -1, 0 or 1.
    pub fn sign(&self) -> i64 {
        i64::try_from(self.unscaled.signum()).unwrap_or(0)
    }

    /// The order of two amounts.
    pub fn compare(&self, other: &Quantity) -> Ordering {
        if self.sign() != other.sign() {
            return self.sign().cmp(&other.sign());
        }
        match self.aligned(other) {
            Some((left, right, _)) => left.cmp(&right),
            // One of them is so large that digits beyond the common scale cannot matter.
            None => self
                .as_approximate_float()
                .total_cmp(&other.as_approximate_float()),
        }
    }

    /// Both amounts at the smaller of their scales.
    fn aligned(&self, other: &Quantity) -> Option<(i128, i128, i32)> {
        let scale = self.scale.min(other.scale);
        let at = |quantity: &Quantity| {
            let factor = power(quantity.scale.abs_diff(scale))?;
            quantity.unscaled.checked_mul(factor)
        };
        Some((at(self)?, at(other)?, scale))
    }

    /// The sum; none if it cannot be represented.
    pub fn plus(&self, other: &Quantity) -> Option<Quantity> {
        if self.small && self.unscaled == 0 {
            return Some(*other);
        }
        if other.unscaled == 0 {
            return Some(*self);
        }
        let (left, right, scale) = self.aligned(other)?;
        let sum = left.checked_add(right)?;
        let fits = [left, right, sum]
            .into_iter()
            .all(|value| i64::try_from(value).is_ok());
        Some(Quantity {
            unscaled: sum,
            scale,
            small: self.small && other.small && fits,
        })
    }

    /// The same amount with the other sign.
    fn negated(&self) -> Quantity {
        Quantity {
            unscaled: -self.unscaled,
            ..*self
        }
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.compare(other) == Ordering::Equal
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.scale {
            0 => write!(f, "{}", self.unscaled),
            scale => write!(f, "{}e{scale}", self.unscaled),
        }
    }
}

fn power(exponent: u32) -> Option<i128> {
    10_i128.checked_pow(exponent)
}

/// What a suffix multiplies with.
enum Suffix {
    Ten(i32),
    Two(u32),
}

fn suffix(text: &str) -> Option<Suffix> {
    Some(match text {
        "Ki" => Suffix::Two(10),
        "Mi" => Suffix::Two(20),
        "Gi" => Suffix::Two(30),
        "Ti" => Suffix::Two(40),
        "Pi" => Suffix::Two(50),
        "Ei" => Suffix::Two(60),
        "n" => Suffix::Ten(-9),
        "u" => Suffix::Ten(-6),
        "m" => Suffix::Ten(-3),
        "" => Suffix::Ten(0),
        "k" => Suffix::Ten(3),
        "M" => Suffix::Ten(6),
        "G" => Suffix::Ten(9),
        "T" => Suffix::Ten(12),
        "P" => Suffix::Ten(15),
        "E" => Suffix::Ten(18),
        _ => Suffix::Ten(
            text.strip_prefix(['e', 'E'])
                .filter(|digits| !digits.is_empty())?
                .parse()
                .ok()?,
        ),
    })
}

fn parse(text: &str) -> Option<Quantity> {
    let (negative, rest) = match text.strip_prefix(['+', '-']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    let digits = |text: &str| text.bytes().take_while(u8::is_ascii_digit).count();
    let whole_length = digits(rest);
    let (whole, mut after) = rest.split_at(whole_length);
    let mut fraction = "";
    if let Some(tail) = after.strip_prefix('.') {
        (fraction, after) = tail.split_at(digits(tail));
    }
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let whole = whole.trim_start_matches('0');
    let value = match suffix(after)? {
        Suffix::Ten(exponent) => decimal(whole, fraction, exponent),
        Suffix::Two(exponent) => binary(whole, fraction, exponent),
    };
    Some(if negative { value.negated() } else { value })
}

fn decimal(whole: &str, fraction: &str, exponent: i32) -> Quantity {
    let scale = exponent.saturating_sub(i32::try_from(fraction.len()).unwrap_or(i32::MAX));
    let count = whole.len() + fraction.len();
    if count <= MAX_SMALL_DIGITS && scale >= NANO {
        let value = format!("0{whole}{fraction}").parse().unwrap_or(0);
        return Quantity::small(value, scale);
    }
    capped(digits_value(whole, fraction), scale)
}

fn binary(whole: &str, fraction: &str, exponent: u32) -> Quantity {
    let factor = 1_i128 << exponent;
    if fraction.is_empty()
        && let Some(value) = format!("0{whole}")
            .parse::<i64>()
            .ok()
            .and_then(|value| i64::try_from(i128::from(value) * factor).ok())
    {
        return Quantity::small(value, 0);
    }
    let scale = -i32::try_from(fraction.len()).unwrap_or(i32::MAX);
    let unscaled = digits_value(whole, fraction).saturating_mul(factor);
    capped(unscaled, scale)
}

/// The digits as one number; what exceeds 128 bits saturates, far beyond the largest quantity.
fn digits_value(whole: &str, fraction: &str) -> i128 {
    whole
        .bytes()
        .chain(fraction.bytes())
        .fold(0_i128, |value, digit| {
            value
                .saturating_mul(10)
                .saturating_add(i128::from(digit - b'0'))
        })
}

/// An arbitrary decimal: rounded up to nano, at most 2^63-1.
fn capped(unscaled: i128, scale: i32) -> Quantity {
    let limit = i128::from(i64::MAX);
    let (unscaled, scale) = if scale < NANO {
        let rounded = match power(scale.abs_diff(NANO)) {
            Some(factor) => unscaled / factor + i128::from(unscaled % factor != 0),
            None => i128::from(unscaled != 0),
        };
        (rounded, NANO)
    } else {
        (unscaled, scale)
    };
    let exceeds = if scale >= 0 {
        power(scale.unsigned_abs())
            .and_then(|factor| unscaled.checked_mul(factor))
            .is_none_or(|value| value > limit)
    } else {
        power(scale.unsigned_abs()).is_some_and(|factor| unscaled / factor > limit)
    };
    let (unscaled, scale) = if exceeds {
        (limit, 0)
    } else {
        (unscaled, scale)
    };
    Quantity {
        unscaled,
        scale,
        small: false,
    }
}

pub(super) fn declare(functions: &mut Functions) {
    functions.add(
        "string_to_quantity",
        "quantity(string) -> kubernetes.Quantity",
        |a| Ok(value(Quantity::parse(text(a, 0)?)?)),
    );
    functions.add("is_quantity_string", "isQuantity(string) -> bool", |a| {
        Ok(Value::Bool(Quantity::parse(text(a, 0)?).is_ok()))
    });
    functions.add("quantity_sign", "sign(kubernetes.Quantity) -> int", |a| {
        Ok(Value::Int(quantity(a, 0)?.sign()))
    });
    functions.add(
        "quantity_is_greater_than",
        "kubernetes.Quantity::isGreaterThan(kubernetes.Quantity) -> bool",
        |a| Ok(Value::Bool(compared(a)?.is_gt())),
    );
    functions.add(
        "quantity_is_less_than",
        "kubernetes.Quantity::isLessThan(kubernetes.Quantity) -> bool",
        |a| Ok(Value::Bool(compared(a)?.is_lt())),
    );
    functions.add(
        "quantity_compare_to",
        "kubernetes.Quantity::compareTo(kubernetes.Quantity) -> int",
        |a| Ok(Value::Int(compared(a)? as i64)),
    );
    functions.add(
        "quantity_get_float",
        "kubernetes.Quantity::asApproximateFloat() -> double",
        |a| Ok(Value::Double(quantity(a, 0)?.as_approximate_float())),
    );
    functions.add(
        "quantity_get_int",
        "kubernetes.Quantity::asInteger() -> int",
        |a| match quantity(a, 0)?.as_integer() {
            Some(value) => Ok(Value::Int(value)),
            None => Err(EvalError::failed("cannot convert value to integer")),
        },
    );
    functions.add(
        "quantity_is_integer",
        "kubernetes.Quantity::isInteger() -> bool",
        |a| Ok(Value::Bool(quantity(a, 0)?.as_integer().is_some())),
    );
    declare_arithmetic(functions);
}

fn declare_arithmetic(functions: &mut Functions) {
    functions.add(
        "quantity_add",
        "kubernetes.Quantity::add(kubernetes.Quantity) -> kubernetes.Quantity",
        |a| sum(quantity(a, 0)?, quantity(a, 1)?),
    );
    functions.add(
        "quantity_add_int",
        "kubernetes.Quantity::add(int) -> kubernetes.Quantity",
        |a| sum(quantity(a, 0)?, &Quantity::small(int(a, 1)?, 0)),
    );
    functions.add(
        "quantity_sub",
        "kubernetes.Quantity::sub(kubernetes.Quantity) -> kubernetes.Quantity",
        |a| sum(quantity(a, 0)?, &quantity(a, 1)?.negated()),
    );
    functions.add(
        "quantity_sub_int",
        "kubernetes.Quantity::sub(int) -> kubernetes.Quantity",
        |a| sum(quantity(a, 0)?, &Quantity::small(int(a, 1)?, 0).negated()),
    );
}

fn value<'a>(quantity: Quantity) -> Value<'a> {
    Value::Quantity(Arc::new(quantity))
}

fn quantity<'v>(arguments: &'v [Value<'_>], index: usize) -> Result<&'v Quantity, EvalError> {
    match arguments.get(index) {
        Some(Value::Quantity(quantity)) => Ok(quantity),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn compared(arguments: &[Value<'_>]) -> Result<Ordering, EvalError> {
    Ok(quantity(arguments, 0)?.compare(quantity(arguments, 1)?))
}

fn sum<'a>(left: &Quantity, right: &Quantity) -> Outcome<'a> {
    match left.plus(right) {
        Some(sum) => Ok(value(sum)),
        None => Err(EvalError::failed("quantity overflow")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(text: &str) -> Quantity {
        Quantity::parse(text).unwrap()
    }

    #[test]
    fn spellings_of_one_amount_are_equal() {
        for (left, right) in [
            ("1k", "1000"),
            ("1Ki", "1024"),
            ("1500m", "1.5"),
            ("12e6", "12M"),
            ("0.5Gi", "512Mi"),
            ("1.0000000001", "1000000001n"),
            ("-1.5", "-1500m"),
            ("99999999999999999999", "9223372036854775807"),
        ] {
            assert_eq!(read(left), read(right), "{left} {right}");
        }
    }

    #[test]
    fn integers_are_those_written_without_a_fraction() {
        assert_eq!(read("12e6").as_integer(), Some(12_000_000));
        assert_eq!(read("5Ki").as_integer(), Some(5_120));
        assert_eq!(read("1000m").as_integer(), None);
        assert_eq!(read("100E").as_integer(), None);
    }

    #[test]
    fn malformed_quantities_are_refused() {
        for text in ["", "x", "1x", "1.2.3", ".", "1e", "1 k", "1kI", "+", "1ki"] {
            assert!(Quantity::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn huge_quantities_still_have_an_order() {
        assert!(read("1e300").compare(&read("1")).is_gt());
        assert!(read("-1e300").compare(&read("1")).is_lt());
    }

    proptest! {
        #[test]
        fn addition_and_subtraction_cancel(a in -1_000_000i64..1_000_000, b in -1_000_000i64..1_000_000) {
            let (a, b) = (Quantity::small(a, -3), Quantity::small(b, 0));
            let there = a.plus(&b).unwrap();
            prop_assert_eq!(there.plus(&b.negated()).unwrap(), a);
        }

        #[test]
        fn no_text_makes_parsing_panic(text in "\\PC{0,30}") {
            let _ = Quantity::parse(&text);
        }
    }
}
