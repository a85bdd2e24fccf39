//! Decimals: a coefficient and a power of ten, with arithmetic rounded to a context's precision.
//!
//! The rules are those of the General Decimal Arithmetic specification restricted to finite
//! values: an operation whose result would be infinite or undefined is an error instead.

use std::cmp::Ordering;
use std::fmt;

use num_bigint::{BigInt, BigUint, Sign};

use super::{EXPONENT_LIMIT, NumberError, PRECISION};

/// A finite decimal: `coefficient × 10^exponent`. Trailing zeros are significant for display.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Decimal {
    coefficient: BigInt,
    exponent: i32,
}

/// How a result with too many digits is shortened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rounding {
    /// Ties go away from zero.
    HalfUp,
    /// Ties go to the even neighbour.
    HalfEven,
    /// Always towards zero.
    Down,
    /// Towards negative infinity.
    Floor,
    /// Towards positive infinity.
    Ceiling,
}

/// Precision and rounding of an operation.
#[derive(Debug, Clone, Copy)]
pub struct Context {
    /// Significant digits of a result.
    pub precision: u32,
    /// What happens to the digits that do not fit.
    pub rounding: Rounding,
}

impl Context {
    /// The context of the language's operators.
    pub const BASE: Context = Context {
        precision: PRECISION,
        rounding: Rounding::HalfUp,
    };

    /// A context of another precision that rounds ties to even, for inner steps of functions.
    pub const fn working(precision: u32) -> Context {
        Context {
            precision,
            rounding: Rounding::HalfEven,
        }
    }

    /// Sum.
    pub fn add(&self, left: &Decimal, right: &Decimal) -> Result<Decimal, NumberError> {
        let (left, right, exponent) = aligned(left, right)?;
        self.round(Decimal::new(left + right, exponent))
    }

    /// Difference.
    pub fn sub(&self, left: &Decimal, right: &Decimal) -> Result<Decimal, NumberError> {
        let (left, right, exponent) = aligned(left, right)?;
        self.round(Decimal::new(left - right, exponent))
    }

    /// Product.
    pub fn mul(&self, left: &Decimal, right: &Decimal) -> Result<Decimal, NumberError> {
        let exponent = left.exponent + right.exponent;
        self.round(Decimal::new(
            &left.coefficient * &right.coefficient,
            exponent,
        ))
    }

    /// Quotient. The result has the full precision even when fewer digits are exact.
    pub fn quo(&self, left: &Decimal, right: &Decimal) -> Result<Decimal, NumberError> {
        if right.is_zero() {
            let message = if left.is_zero() {
                "division undefined"
            } else {
                "division by zero"
            };
            return Err(NumberError::Arithmetic(message));
        }
        if left.is_zero() {
            return self.round(Decimal::new(BigInt::ZERO, left.exponent - right.exponent));
        }
        let dividend = left.coefficient.magnitude();
        let divisor = right.coefficient.magnitude();
        // One digit more than needed, so that the quotient never has fewer than the precision;
        // the remainder then decides ties through a sticky digit.
        let shift = i64::from(self.precision) + digit_count(divisor) - digit_count(dividend) + 1;
        let (dividend, divisor) = if shift >= 0 {
            (dividend * power_of_ten(shift)?, divisor.clone())
        } else {
            (dividend.clone(), divisor * power_of_ten(-shift)?)
        };
        let quotient = &dividend / &divisor;
        let exact = &quotient * &divisor == dividend;
        let mut exponent = i64::from(left.exponent) - i64::from(right.exponent) - shift;
        let mut coefficient = quotient;
        if !exact {
            coefficient = coefficient * 10u32 + 1u32;
            exponent -= 1;
        }
        let sign = if left.sign() == right.sign() {
            Sign::Plus
        } else {
            Sign::Minus
        };
        let exponent = i32::try_from(exponent).map_err(|_| OUT_OF_RANGE)?;
        self.round(Decimal::new(
            BigInt::from_biguint(sign, coefficient),
            exponent,
        ))
    }

    /// Shortens a value to the precision of the context and checks its exponent.
    pub fn round(&self, value: Decimal) -> Result<Decimal, NumberError> {
        let digits = digit_count(value.coefficient.magnitude());
        let excess = digits - i64::from(self.precision);
        let value = if excess > 0 {
            self.drop_digits(&value, excess)?
        } else {
            value
        };
        let adjusted = i64::from(value.exponent) + digit_count(value.coefficient.magnitude()) - 1;
        if adjusted.abs() > i64::from(EXPONENT_LIMIT) {
            return Err(OUT_OF_RANGE);
        }
        Ok(value)
    }

    /// Rounds to an integral value with exponent zero.
    pub fn to_integral(self, value: &Decimal) -> Result<BigInt, NumberError> {
        if value.exponent >= 0 {
            return value.to_integer().ok_or(OUT_OF_RANGE);
        }
        let dropped = self.drop_digits(value, -i64::from(value.exponent))?;
        // Rounding up may carry into a new digit, which `drop_digits` expresses in the exponent.
        dropped.to_integer().ok_or(OUT_OF_RANGE)
    }

    fn drop_digits(self, value: &Decimal, excess: i64) -> Result<Decimal, NumberError> {
        let unit = power_of_ten(excess)?;
        let magnitude = value.coefficient.magnitude();
        let mut kept = magnitude / &unit;
        let discarded = magnitude - &kept * &unit;
        let negative = value.sign() == Sign::Minus;
        if discarded != BigUint::ZERO {
            let half = (&discarded * 2u32).cmp(&unit);
            let up = match self.rounding {
                Rounding::Down => false,
                Rounding::Floor => negative,
                Rounding::Ceiling => !negative,
                Rounding::HalfUp => half != Ordering::Less,
                Rounding::HalfEven => {
                    half == Ordering::Greater || (half == Ordering::Equal && kept.bit(0))
                }
            };
            if up {
                kept += 1u32;
            }
        }
        let mut exponent = i64::from(value.exponent) + excess;
        if digit_count(&kept) > i64::from(self.precision)
            && digit_count(magnitude) - excess >= i64::from(self.precision)
        {
            kept /= 10u32;
            exponent += 1;
        }
        let sign = value.sign();
        let exponent = i32::try_from(exponent).map_err(|_| OUT_OF_RANGE)?;
        Ok(Decimal::new(BigInt::from_biguint(sign, kept), exponent))
    }
}

/// The error for results whose exponent leaves the permitted range.
pub(super) const OUT_OF_RANGE: NumberError = NumberError::Arithmetic("exponent out of range");

impl Decimal {
    /// `coefficient × 10^exponent`.
    pub fn new(coefficient: BigInt, exponent: i32) -> Self {
        Decimal {
            coefficient,
            exponent,
        }
    }

    /// The signed coefficient.
    pub fn coefficient(&self) -> &BigInt {
        &self.coefficient
    }

    /// The power of ten.
    pub fn exponent(&self) -> i32 {
        self.exponent
    }

    /// The sign of the value.
    pub fn sign(&self) -> Sign {
        self.coefficient.sign()
    }

    /// Whether the value is zero.
    pub fn is_zero(&self) -> bool {
        self.sign() == Sign::NoSign
    }

    /// Whether the value has no fractional part.
    pub fn is_integral(&self) -> bool {
        self.exponent >= 0 || self.reduced().exponent >= 0
    }

    /// The number of digits of the coefficient; zero counts as one digit.
    pub fn digits(&self) -> i64 {
        digit_count(self.coefficient.magnitude())
    }

    /// The exact integer, if the value is one.
    pub fn to_integer(&self) -> Option<BigInt> {
        if self.is_zero() {
            return Some(BigInt::ZERO);
        }
        let value = if self.exponent < 0 {
            self.reduced()
        } else {
            self.clone()
        };
        if value.exponent < 0 {
            return None;
        }
        let scale = power_of_ten(i64::from(value.exponent)).ok()?;
        Some(value.coefficient * BigInt::from(scale))
    }

    /// The value with the opposite sign.
    #[must_use]
    pub fn negated(&self) -> Decimal {
        Decimal::new(-self.coefficient.clone(), self.exponent)
    }

    /// The magnitude of the value.
    #[must_use]
    pub fn absolute(&self) -> Decimal {
        Decimal::new(
            BigInt::from(self.coefficient.magnitude().clone()),
            self.exponent,
        )
    }

    /// The same value without trailing zeros; zero has exponent zero.
    #[must_use]
    pub fn reduced(&self) -> Decimal {
        if self.is_zero() {
            return Decimal::new(BigInt::ZERO, 0);
        }
        let mut coefficient = self.coefficient.clone();
        let mut exponent = self.exponent;
        let ten = BigInt::from(10);
        loop {
            let shorter = &coefficient / &ten;
            if &shorter * &ten != coefficient {
                return Decimal::new(coefficient, exponent);
            }
            coefficient = shorter;
            exponent += 1;
        }
    }

    /// The same value without trailing zeros, except the one that keeps the decimal point when
    /// there was a fraction (`3.000` becomes `3.0`).
    #[must_use]
    pub fn reduced_keeping_point(&self) -> Decimal {
        let mut reduced = self.reduced();
        if self.exponent < 0 && reduced.exponent >= 0 {
            reduced.coefficient *= 10;
            reduced.exponent -= 1;
        }
        reduced
    }

    /// Numeric order, independent of trailing zeros.
    pub fn compare(&self, other: &Decimal) -> Ordering {
        let by_sign = rank(self.sign()).cmp(&rank(other.sign()));
        if by_sign != Ordering::Equal || self.is_zero() {
            return by_sign;
        }
        let magnitude = |value: &Decimal| i64::from(value.exponent) + value.digits();
        let mut order = magnitude(self).cmp(&magnitude(other));
        if order == Ordering::Equal
            && let Ok((left, right, _)) = aligned(self, other)
        {
            return left.cmp(&right);
        }
        if self.sign() == Sign::Minus {
            order = order.reverse();
        }
        order
    }
}

impl From<i64> for Decimal {
    fn from(value: i64) -> Self {
        Decimal::new(BigInt::from(value), 0)
    }
}

impl fmt::Display for Decimal {
    /// Plain notation for moderate exponents, scientific otherwise, following the "to-scientific-string"
    /// conversion of the decimal arithmetic specification with the reference's treatment of zeros.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.sign() == Sign::Minus {
            formatter.write_str("-")?;
        }
        let digits = self.coefficient.magnitude().to_string();
        let exponent = i64::from(self.exponent);
        let mut length = i64::try_from(digits.len()).unwrap_or(i64::MAX);
        if self.is_zero() && (-2000..0).contains(&exponent) {
            length -= exponent;
        }
        if exponent <= 0 && exponent + length > -6 {
            return write_plain(formatter, &digits, self.exponent);
        }
        let adjusted = exponent + i64::try_from(digits.len()).unwrap_or(i64::MAX) - 1;
        formatter.write_str(&digits[..1])?;
        if digits.len() > 1 {
            write!(formatter, ".{}", &digits[1..])?;
        }
        write!(formatter, "E{adjusted:+}")
    }
}

fn write_plain(formatter: &mut fmt::Formatter<'_>, digits: &str, exponent: i32) -> fmt::Result {
    let fraction = usize::try_from(-exponent).unwrap_or(0);
    if fraction == 0 {
        return formatter.write_str(digits);
    }
    if fraction >= digits.len() {
        write!(
            formatter,
            "0.{}{digits}",
            "0".repeat(fraction - digits.len())
        )
    } else {
        let (whole, rest) = digits.split_at(digits.len() - fraction);
        write!(formatter, "{whole}.{rest}")
    }
}

fn rank(sign: Sign) -> i8 {
    match sign {
        Sign::Minus => -1,
        Sign::NoSign => 0,
        Sign::Plus => 1,
    }
}

/// Both coefficients scaled to the smaller exponent.
fn aligned(left: &Decimal, right: &Decimal) -> Result<(BigInt, BigInt, i32), NumberError> {
    let difference = i64::from(left.exponent) - i64::from(right.exponent);
    let scale = BigInt::from(power_of_ten(difference.abs())?);
    Ok(match difference.cmp(&0) {
        Ordering::Equal => (
            left.coefficient.clone(),
            right.coefficient.clone(),
            left.exponent,
        ),
        Ordering::Greater => (
            &left.coefficient * scale,
            right.coefficient.clone(),
            right.exponent,
        ),
        Ordering::Less => (
            left.coefficient.clone(),
            &right.coefficient * scale,
            left.exponent,
        ),
    })
}

/// `10^exponent` for a non-negative exponent within twice the exponent limit.
pub(super) fn power_of_ten(exponent: i64) -> Result<BigUint, NumberError> {
    let exponent = u32::try_from(exponent).map_err(|_| OUT_OF_RANGE)?;
    if i64::from(exponent) > 3 * i64::from(EXPONENT_LIMIT) {
        return Err(OUT_OF_RANGE);
    }
    match 10u128.checked_pow(exponent) {
        Some(power) => Ok(BigUint::from(power)),
        None => Ok(BigUint::from(10u32).pow(exponent)),
    }
}

/// Decimal digits of a magnitude; zero has one.
fn digit_count(value: &BigUint) -> i64 {
    if let Ok(small) = u128::try_from(value) {
        return i64::from(small.checked_ilog10().unwrap_or(0)) + 1;
    }
    // A value of b bits is at least 2^(b-1), so its digits are those of that power or one more;
    // a comparison settles which. The constant is log10(2), rounded down.
    let bits = u128::from(value.bits());
    let lower = (bits - 1) * 30_102_999_566 / 100_000_000_000 + 1;
    let boundary = BigUint::from(10u32).pow(u32::try_from(lower).unwrap_or(u32::MAX));
    let digits = if *value < boundary { lower } else { lower + 1 };
    i64::try_from(digits).unwrap_or(i64::MAX)
}
