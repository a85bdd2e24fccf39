//! Numbers of the language: integers without bound and decimals of 34 significant digits.
//!
//! [`Number`] is the one numeric type of the evaluator. Integer arithmetic is exact; a result that
//! involves a decimal is rounded to [`PRECISION`] digits, half up, as the reference does. Binary
//! floating point appears only where a mathematical builtin is defined by it.
//!
//! Equality (`==`, `Hash`) is the equality of the value lattice: `1` and `1.0` differ because they
//! have different kinds, `1.0` and `1.00` are the same value. [`Number::compare`] is the numeric
//! order used by operators and bounds, under which `1` equals `1.0`.

mod decimal;
mod function;
mod literal;

#[cfg(test)]
mod tests;

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};

use num_bigint::{BigInt, Sign};

pub use self::decimal::{Context, Decimal, Rounding};

/// Significant digits kept by arithmetic on decimals: those of IEEE decimal128, as the language
/// asks for.
pub const PRECISION: u32 = 34;

/// Largest magnitude of a decimal exponent; beyond it a result is an error, so that no short
/// literal can demand gigabytes of digits.
pub const EXPONENT_LIMIT: i32 = 100_000;

/// Largest integer result in bits. Integers are unbounded for every honest purpose; the limit
/// keeps repeated squaring from exhausting memory.
pub const INTEGER_BITS_LIMIT: u64 = 1 << 21;

/// A number: an integer of any size, or a decimal.
#[derive(Clone)]
pub struct Number(Repr);

/// Integers that fit are kept inline, which covers nearly everything a template computes with.
#[derive(Clone)]
enum Repr {
    Small(i64),
    Big(Box<BigInt>),
    Decimal(Box<Decimal>),
}

/// Why an arithmetic operation or a literal has no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NumberError {
    /// Integer division by zero.
    #[error("division by zero")]
    DivisionByZero,
    /// A failed decimal operation, worded as the reference words it.
    #[error("failed arithmetic: {0}")]
    Arithmetic(&'static str),
    /// The text of a literal is not a number.
    #[error("{0}")]
    Literal(String),
    /// The number does not fit where it is needed.
    #[error("{0}")]
    Range(String),
}

impl Number {
    /// The integer zero.
    pub const ZERO: Number = Number(Repr::Small(0));

    /// Parses the text of a number literal of the language, including separators, bases and
    /// multipliers (`0x1F`, `1_000`, `1.5Ki`).
    pub fn parse_literal(text: &str) -> Result<Self, NumberError> {
        literal::parse(text)
    }

    /// Parses a decimal number as it appears in data: an optional sign, digits, an optional
    /// fraction and exponent. Without fraction and exponent the result is an integer.
    pub fn parse_decimal(text: &str) -> Result<Self, NumberError> {
        literal::parse_decimal(text)
    }

    /// Wraps an integer of any size.
    pub fn from_big(value: BigInt) -> Self {
        match i64::try_from(&value) {
            Ok(small) => Number(Repr::Small(small)),
            Err(_) => Number(Repr::Big(Box::new(value))),
        }
    }

    /// Wraps a decimal; the result is of kind float even when its value is integral.
    pub fn from_decimal(value: Decimal) -> Self {
        Number(Repr::Decimal(Box::new(value)))
    }

    /// Converts a binary float through its shortest decimal text, as the reference does for the
    /// results of functions defined on `float64`. `None` for infinities and not-a-number.
    pub fn from_f64(value: f64) -> Option<Self> {
        if !value.is_finite() {
            return None;
        }
        let text = format!("{value:e}");
        let (mantissa, exponent) = text.split_once('e')?;
        let exponent: i32 = exponent.parse().ok()?;
        let digits = mantissa.replace('.', "");
        let fraction = mantissa
            .split_once('.')
            .map_or(0, |(_, fraction)| fraction.len());
        let coefficient: BigInt = digits.parse().ok()?;
        let exponent = exponent - i32::try_from(fraction).ok()?;
        Some(Number::from_decimal(Decimal::new(coefficient, exponent)))
    }

    /// Whether the number is of kind int.
    pub fn is_int(&self) -> bool {
        !matches!(self.0, Repr::Decimal(_))
    }

    /// Whether the numeric value has no fractional part, whatever its kind.
    pub fn is_integral(&self) -> bool {
        match &self.0 {
            Repr::Small(_) | Repr::Big(_) => true,
            Repr::Decimal(decimal) => decimal.is_integral(),
        }
    }

    /// Whether the number is below zero.
    pub fn is_negative(&self) -> bool {
        match &self.0 {
            Repr::Small(value) => *value < 0,
            Repr::Big(value) => value.sign() == Sign::Minus,
            Repr::Decimal(decimal) => decimal.sign() == Sign::Minus,
        }
    }

    /// Whether the number is zero.
    pub fn is_zero(&self) -> bool {
        match &self.0 {
            Repr::Small(value) => *value == 0,
            Repr::Big(_) => false,
            Repr::Decimal(decimal) => decimal.sign() == Sign::NoSign,
        }
    }

    /// The value as `i64` when it is an integer of kind int that fits.
    pub fn to_i64(&self) -> Option<i64> {
        match self.0 {
            Repr::Small(value) => Some(value),
            Repr::Big(_) | Repr::Decimal(_) => None,
        }
    }

    /// The value as `usize` when it is a non-negative integer of kind int that fits.
    pub fn to_usize(&self) -> Option<usize> {
        self.to_i64().and_then(|value| usize::try_from(value).ok())
    }

    /// The exact integer behind a number of integral value, whatever its kind.
    pub fn to_big(&self) -> Option<BigInt> {
        match &self.0 {
            Repr::Small(value) => Some(BigInt::from(*value)),
            Repr::Big(value) => Some((**value).clone()),
            Repr::Decimal(decimal) => decimal.to_integer(),
        }
    }

    /// The value as a decimal.
    pub fn to_decimal(&self) -> Decimal {
        match &self.0 {
            Repr::Small(value) => Decimal::from(*value),
            Repr::Big(value) => Decimal::new((**value).clone(), 0),
            Repr::Decimal(decimal) => (**decimal).clone(),
        }
    }

    /// The nearest binary float, for functions defined by it and for hosts that ask.
    pub fn to_f64(&self) -> f64 {
        // The text form is always accepted by the parser of the standard library; a magnitude
        // out of range parses as infinity.
        self.to_string().parse().unwrap_or(f64::NAN)
    }

    /// Numeric order across both kinds.
    pub fn compare(&self, other: &Number) -> Ordering {
        match (&self.0, &other.0) {
            (Repr::Small(left), Repr::Small(right)) => left.cmp(right),
            (Repr::Big(left), Repr::Big(right)) => left.cmp(right),
            _ => self.to_decimal().compare(&other.to_decimal()),
        }
    }

    /// Sum.
    pub fn add(&self, other: &Number) -> Result<Number, NumberError> {
        if let (Repr::Small(left), Repr::Small(right)) = (&self.0, &other.0)
            && let Some(sum) = left.checked_add(*right)
        {
            return Ok(Number(Repr::Small(sum)));
        }
        self.combine(other, |left, right| left + right, Context::add)
    }

    /// Difference.
    pub fn sub(&self, other: &Number) -> Result<Number, NumberError> {
        if let (Repr::Small(left), Repr::Small(right)) = (&self.0, &other.0)
            && let Some(difference) = left.checked_sub(*right)
        {
            return Ok(Number(Repr::Small(difference)));
        }
        self.combine(other, |left, right| left - right, Context::sub)
    }

    /// Product.
    pub fn mul(&self, other: &Number) -> Result<Number, NumberError> {
        if let (Repr::Small(left), Repr::Small(right)) = (&self.0, &other.0)
            && let Some(product) = left.checked_mul(*right)
        {
            return Ok(Number(Repr::Small(product)));
        }
        self.combine(other, |left, right| left * right, Context::mul)
    }

    /// Quotient of the operator `/`: always of kind float, trailing zeros removed.
    pub fn quo(&self, other: &Number) -> Result<Number, NumberError> {
        let quotient = Context::BASE.quo(&self.to_decimal(), &other.to_decimal())?;
        Ok(Number::from_decimal(quotient.reduced_keeping_point()))
    }

    /// Euclidean quotient of two integers (the builtin `div`).
    pub fn div_euclid(&self, other: &Number) -> Result<Number, NumberError> {
        self.divide(other, |dividend, divisor| {
            let quotient = dividend / divisor;
            let remainder = dividend % divisor;
            match (remainder.sign(), divisor.sign()) {
                (Sign::Minus, Sign::Plus) => quotient - 1,
                (Sign::Minus, _) => quotient + 1,
                _ => quotient,
            }
        })
    }

    /// Euclidean remainder of two integers, never negative (the builtin `mod`).
    pub fn mod_euclid(&self, other: &Number) -> Result<Number, NumberError> {
        self.divide(other, |dividend, divisor| {
            let remainder = dividend % divisor;
            if remainder.sign() == Sign::Minus {
                remainder + BigInt::from(divisor.magnitude().clone())
            } else {
                remainder
            }
        })
    }

    /// Quotient of two integers truncated towards zero (the builtin `quo`).
    pub fn quo_truncated(&self, other: &Number) -> Result<Number, NumberError> {
        self.divide(other, |dividend, divisor| dividend / divisor)
    }

    /// Remainder of the truncated division (the builtin `rem`); it has the sign of the dividend.
    pub fn rem_truncated(&self, other: &Number) -> Result<Number, NumberError> {
        self.divide(other, |dividend, divisor| dividend % divisor)
    }

    /// The number with the opposite sign.
    #[must_use]
    pub fn negated(&self) -> Number {
        match &self.0 {
            Repr::Small(value) => match value.checked_neg() {
                Some(negated) => Number(Repr::Small(negated)),
                None => Number::from_big(-BigInt::from(*value)),
            },
            Repr::Big(value) => Number::from_big(-(**value).clone()),
            Repr::Decimal(decimal) => Number::from_decimal(decimal.negated()),
        }
    }

    /// The magnitude of the number, of the same kind.
    #[must_use]
    pub fn absolute(&self) -> Number {
        if self.is_negative() {
            self.negated()
        } else {
            self.clone()
        }
    }

    /// The text of the number as source: like `Display`, but a float always shows that it is one.
    pub fn to_source(&self) -> String {
        let mut text = self.to_string();
        if !self.is_int() {
            if let Some(position) = text.find('E') {
                text.replace_range(position..=position, "e");
            } else if !text.contains('.') {
                text.push_str(".0");
            }
        }
        text
    }

    /// The text of the number in error messages: like `Display`, with a trailing `.0` on integral
    /// floats.
    pub fn to_message(&self) -> String {
        let mut text = self.to_string();
        if !self.is_int() && !text.contains(['.', 'E']) {
            text.push_str(".0");
        }
        text
    }

    fn combine(
        &self,
        other: &Number,
        exact: impl Fn(BigInt, BigInt) -> BigInt,
        rounded: impl Fn(&Context, &Decimal, &Decimal) -> Result<Decimal, NumberError>,
    ) -> Result<Number, NumberError> {
        if self.is_int()
            && other.is_int()
            && let (Some(left), Some(right)) = (self.to_big(), other.to_big())
        {
            if left.bits() + right.bits() > INTEGER_BITS_LIMIT {
                return Err(NumberError::Arithmetic("integer out of range"));
            }
            return Ok(Number::from_big(exact(left, right)));
        }
        rounded(&Context::BASE, &self.to_decimal(), &other.to_decimal()).map(Number::from_decimal)
    }

    fn divide(
        &self,
        other: &Number,
        operation: impl Fn(&BigInt, &BigInt) -> BigInt,
    ) -> Result<Number, NumberError> {
        if other.is_zero() {
            return Err(NumberError::DivisionByZero);
        }
        match (self.to_big(), other.to_big()) {
            (Some(dividend), Some(divisor)) => Ok(Number::from_big(operation(&dividend, &divisor))),
            _ => Err(NumberError::Arithmetic("integer operands required")),
        }
    }
}

impl From<i64> for Number {
    fn from(value: i64) -> Self {
        Number(Repr::Small(value))
    }
}

impl From<i32> for Number {
    fn from(value: i32) -> Self {
        Number(Repr::Small(i64::from(value)))
    }
}

impl From<u64> for Number {
    fn from(value: u64) -> Self {
        Number::from_big(BigInt::from(value))
    }
}

impl From<usize> for Number {
    fn from(value: usize) -> Self {
        match i64::try_from(value) {
            Ok(small) => Number(Repr::Small(small)),
            Err(_) => Number::from_big(BigInt::from(value)),
        }
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Self) -> bool {
        self.is_int() == other.is_int() && self.compare(other) == Ordering::Equal
    }
}

impl Eq for Number {}

impl Hash for Number {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match &self.0 {
            Repr::Small(value) => value.hash(state),
            Repr::Big(value) => value.hash(state),
            Repr::Decimal(decimal) => decimal.reduced().hash(state),
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Small(value) => value.fmt(formatter),
            Repr::Big(value) => value.fmt(formatter),
            Repr::Decimal(decimal) => decimal.fmt(formatter),
        }
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.to_message())
    }
}
