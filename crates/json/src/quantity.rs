//! Amounts of resources: `100m`, `1.5Gi`, `12e6`.
//!
//! A [`Quantity`] is a decimal number of arbitrary scale, never a float, that remembers which kind
//! of suffix it was written with. Text, arithmetic, rounding and messages are those of Kubernetes
//! (apimachinery: pkg/api/resource). Upstream falls back to integers of any size; here 128 bits
//! have to do, and what exceeds them (more than 38 digits) is rounded away from zero.

mod amount;
mod text;

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use amount::Amount;

/// The kinds of suffix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum QuantityFormat {
    /// `12M`: powers of ten with letters.
    #[default]
    DecimalSi,
    /// `12Mi`: powers of 1024 with letters.
    BinarySi,
    /// `12e6`: powers of ten with digits.
    DecimalExponent,
}

/// Why a text is not a quantity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// The text has characters that no quantity has.
    #[error(
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
    )]
    Format,
    /// The part before the suffix is not a number.
    #[error("unable to parse numeric part of quantity")]
    Numeric,
    /// The suffix is unknown.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

/// An exact amount of some resource. Equality and order go by value: `1000m` equals `1`.
#[derive(Debug, Clone)]
pub struct Quantity {
    amount: Amount,
    format: QuantityFormat,
    /// The text as given, if it is to be written back although it is not canonical: upstream keeps
    /// `1.500` and `+1` as they are, and users see it.
    verbatim: Option<Box<str>>,
}

impl Quantity {
    /// A quantity of `unscaled` times ten to the power of `scale`.
    pub fn new(unscaled: i64, scale: i32, format: QuantityFormat) -> Self {
        Self::from_amount(Amount::small(unscaled, scale), format)
    }

    fn from_amount(amount: Amount, format: QuantityFormat) -> Self {
        Self {
            amount,
            format,
            verbatim: None,
        }
    }

    /// The kind of suffix it will be written with.
    pub fn format(&self) -> QuantityFormat {
        self.format
    }

    /// Whether it is nothing.
    pub fn is_zero(&self) -> bool {
        self.amount.unscaled == 0
    }

    /// -1, 0 or 1.
    pub fn signum(&self) -> i32 {
        match self.amount.unscaled.cmp(&0) {
            Ordering::Less => -1,
            Ordering::Equal => 0,
            Ordering::Greater => 1,
        }
    }

    /// The sum; zero takes over the other's format.
    #[must_use]
    pub fn add(&self, other: &Self) -> Self {
        let format = if self.is_zero() {
            other.format
        } else {
            self.format
        };
        Self::from_amount(self.amount.add(other.amount), format)
    }

    /// The difference; zero takes over the other's format.
    #[must_use]
    pub fn sub(&self, other: &Self) -> Self {
        self.add(&Self::from_amount(other.amount.negated(), other.format))
    }

    /// The whole number that is at least this much, counted away from zero; capped at 64 bits.
    pub fn value(&self) -> i64 {
        self.scaled_value(0)
    }

    /// The whole number of thousandths that is at least this much; capped at 64 bits.
    pub fn milli_value(&self) -> i64 {
        self.scaled_value(-3)
    }

    /// The whole number of units of ten to the power of `scale` that is at least this much.
    pub fn scaled_value(&self, scale: i32) -> i64 {
        let whole = self.amount.at_scale(scale).0;
        i64::try_from(whole).unwrap_or(if whole < 0 { i64::MIN } else { i64::MAX })
    }

    /// Rounds away from zero to a multiple of ten to the power of `scale`; also tells whether
    /// nothing was lost.
    #[must_use]
    pub fn rounded_up(&self, scale: i32) -> (Self, bool) {
        if self.amount.scale >= scale {
            return (self.clone(), true);
        }
        let (unscaled, is_exact) = self.amount.at_scale(scale);
        let amount = Amount {
            unscaled,
            scale,
            ..self.amount
        };
        (Self::from_amount(amount, self.format), is_exact)
    }

    /// The amount as a 64-bit integer if upstream's representation gives one: not for numbers
    /// written with a fraction (even `1000m`), nor for those that needed its slow path (`1.5Gi`).
    pub fn as_i64(&self) -> Option<i64> {
        if self.amount.big_scale.is_some() || self.amount.scale < 0 {
            return None;
        }
        let (whole, _) = self.amount.at_scale(0);
        i64::try_from(whole).ok()
    }

    /// A float close to it, computed as upstream does: the last digits may be off.
    pub fn as_f64(&self) -> f64 {
        self.amount.to_f64()
    }
}

impl PartialEq for Quantity {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Quantity {}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        self.amount.compare(other.amount)
    }
}

impl From<i64> for Quantity {
    fn from(whole: i64) -> Self {
        Self::new(whole, 0, QuantityFormat::DecimalSi)
    }
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text::parse(text)
    }
}

impl fmt::Display for Quantity {
    /// The canonical form: no fraction, and the largest suffix that needs none.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.verbatim {
            Some(text) => formatter.write_str(text),
            None => formatter.write_str(&text::canonical(self.amount, self.format)),
        }
    }
}

impl Serialize for Quantity {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Quantity {
    /// Accepts strings and plain numbers, as Kubernetes does.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(text) => text,
            serde_json::Value::Number(number) => number.to_string(),
            serde_json::Value::Null => "0".to_owned(),
            _ => return Err(serde::de::Error::custom(QuantityError::Format)),
        };
        text.trim().parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests;
