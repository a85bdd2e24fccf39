//! Decimal arithmetic for floats, so that 0.1 + 0.2 is 0.3.

use bellwether_go::float::{self, Form};
use num_bigint::BigInt;

use crate::call::Failure;

/// A division has as many digits after the point.
const DIVISION_DIGITS: i32 = 16;

/// A number times a power of ten.
pub(super) struct Decimal {
    digits: BigInt,
    exponent: i32,
}

impl Decimal {
    /// The shortest decimal that reads back as the float.
    pub(super) fn new(value: f64) -> Result<Self, Failure> {
        if !value.is_finite() {
            let shown = float::shortest(value);
            return Err(format!("Cannot create a Decimal from {shown}").into());
        }
        let text = float::format(value, Form::Exponent, None);
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{whole}{fraction}").parse().unwrap_or_default();
        let exponent: i32 = exponent.parse().unwrap_or(0);
        let decimals = i32::try_from(fraction.len()).unwrap_or(0);
        Ok(Self {
            digits,
            exponent: exponent - decimals,
        })
    }

    /// How many bits it takes.
    pub(super) fn digits(&self) -> usize {
        usize::try_from(self.digits.bits()).unwrap_or(usize::MAX)
    }

    /// Both with the smaller exponent.
    fn aligned(&self, other: &Self) -> (BigInt, BigInt, i32) {
        let exponent = self.exponent.min(other.exponent);
        let scaled = |number: &Self| &number.digits * power(number.exponent - exponent);
        (scaled(self), scaled(other), exponent)
    }

    pub(super) fn add(&self, other: &Self) -> Self {
        let (left, right, exponent) = self.aligned(other);
        Self {
            digits: left + right,
            exponent,
        }
    }

    pub(super) fn subtract(&self, other: &Self) -> Self {
        let (left, right, exponent) = self.aligned(other);
        Self {
            digits: left - right,
            exponent,
        }
    }

    pub(super) fn multiply(&self, other: &Self) -> Self {
        Self {
            digits: &self.digits * &other.digits,
            exponent: self.exponent + other.exponent,
        }
    }

    /// Rounded to sixteen digits after the point, halves away from zero.
    pub(super) fn divide(&self, other: &Self) -> Result<Self, Failure> {
        let zero = BigInt::ZERO;
        if other.digits == zero {
            return Err("decimal division by 0".into());
        }
        let shift = self.exponent - other.exponent + DIVISION_DIGITS;
        let (mut dividend, mut divisor) = (self.digits.clone(), other.digits.clone());
        if shift >= 0 {
            dividend *= power(shift);
        } else {
            divisor *= power(-shift);
        }
        let (quotient, rest) = (&dividend / &divisor, &dividend % &divisor);
        let is_negative = (dividend < zero) != (divisor < zero);
        let twice = (if rest < zero { -rest } else { rest }) * 2;
        let size = if divisor < zero { -divisor } else { divisor };
        let quotient = if twice >= size {
            quotient + if is_negative { -1 } else { 1 }
        } else {
            quotient
        };
        Ok(Self {
            digits: quotient,
            exponent: -DIVISION_DIGITS,
        })
    }

    pub(super) fn to_float(&self) -> f64 {
        format!("{}e{}", self.digits, self.exponent)
            .parse()
            .unwrap_or(0.0)
    }
}

fn power(exponent: i32) -> BigInt {
    BigInt::from(10).pow(exponent.max(0).unsigned_abs())
}
