//! Functions on numbers that are defined on decimals: rounding to integers, powers, roots,
//! exponential and logarithm.
//!
//! Each is computed with more digits than the result keeps and rounded once at the end, so the
//! last digit is right except in the rarest ties.

use std::cmp::Ordering;

use num_bigint::{BigInt, Sign};

use super::decimal::OUT_OF_RANGE;
use super::{Context, Decimal, Number, NumberError, PRECISION, Rounding};

/// Extra digits carried through series and iterations.
const GUARD_DIGITS: u32 = 12;

/// Digits of working precision are bounded by this; arguments that would need more overflow anyway.
const WORKING_LIMIT: u32 = 4_000;

const INVALID: NumberError = NumberError::Arithmetic("invalid operation");

impl Number {
    /// Rounds to an integer with the given rounding.
    pub fn round_to_integer(&self, rounding: Rounding) -> Result<Number, NumberError> {
        if self.is_int() {
            return Ok(self.clone());
        }
        let context = Context {
            precision: PRECISION,
            rounding,
        };
        Ok(Number::from_big(context.to_integral(&self.to_decimal())?))
    }

    /// `self` raised to `exponent`. Integral exponents are computed by repeated multiplication;
    /// others need a positive base.
    pub fn pow(&self, exponent: &Number) -> Result<Number, NumberError> {
        let is_int = self.is_int() && exponent.is_int() && !exponent.is_negative();
        let base = self.to_decimal();
        let power = exponent.to_decimal();
        if power.is_zero() {
            if base.is_zero() {
                return Err(INVALID);
            }
            return Ok(if is_int {
                Number::from(1i64)
            } else {
                decimal(1)
            });
        }
        if base.is_zero() {
            if power.sign() == Sign::Minus {
                return Err(NumberError::Arithmetic("division by zero"));
            }
            return Ok(if is_int { Number::ZERO } else { decimal(0) });
        }
        let working = Context::working(PRECISION + GUARD_DIGITS);
        let result = match power.to_integer() {
            Some(integer) => integer_power(working, &base, &integer)?,
            None if base.sign() == Sign::Minus => return Err(INVALID),
            None => {
                let logarithm = natural_logarithm(&base, PRECISION + GUARD_DIGITS)?;
                exponential(&working.mul(&logarithm, &power)?, PRECISION + GUARD_DIGITS)?
            }
        };
        let rounded = Context::BASE.round(result)?;
        Ok(match rounded.to_integer() {
            Some(integer) if is_int => Number::from_big(integer),
            _ => Number::from_decimal(rounded),
        })
    }

    /// The number e raised to `self`.
    pub fn exp(&self) -> Result<Number, NumberError> {
        let result = exponential(&self.to_decimal(), PRECISION + GUARD_DIGITS)?;
        Context::BASE.round(result).map(Number::from_decimal)
    }

    /// Natural logarithm.
    pub fn ln(&self) -> Result<Number, NumberError> {
        let result = natural_logarithm(&self.to_decimal(), PRECISION + GUARD_DIGITS)?;
        Context::BASE.round(result).map(Number::from_decimal)
    }

    /// Logarithm to a small integer base.
    pub fn log(&self, base: i64) -> Result<Number, NumberError> {
        let precision = PRECISION + GUARD_DIGITS;
        let numerator = natural_logarithm(&self.to_decimal(), precision)?;
        let denominator = natural_logarithm(&Decimal::from(base), precision)?;
        let quotient = Context::working(precision).quo(&numerator, &denominator)?;
        Context::BASE.round(quotient).map(Number::from_decimal)
    }

    /// Cube root, exact when it is exact.
    pub fn cbrt(&self) -> Result<Number, NumberError> {
        let value = self.to_decimal();
        if value.is_zero() {
            return Ok(decimal(0));
        }
        // Scale so that the integer cube root has all digits wanted.
        let digits = i64::from(PRECISION + GUARD_DIGITS);
        let mut exponent = i64::from(value.exponent()) - 3 * digits;
        exponent -= exponent.rem_euclid(3);
        let shift = i64::from(value.exponent()) - exponent;
        let scale = super::decimal::power_of_ten(shift)?;
        let root = (value.coefficient() * BigInt::from(scale)).cbrt();
        let exponent = i32::try_from(exponent / 3).map_err(|_| OUT_OF_RANGE)?;
        let result = Context::BASE.round(Decimal::new(root, exponent))?;
        Ok(Number::from_decimal(result.reduced()))
    }
}

fn decimal(value: i64) -> Number {
    Number::from_decimal(Decimal::from(value))
}

/// Power by squaring; the exponent may be negative.
fn integer_power(cx: Context, base: &Decimal, power: &BigInt) -> Result<Decimal, NumberError> {
    let mut result = Decimal::from(1);
    let mut square = base.clone();
    let bits = power.magnitude().bits();
    for bit in 0..bits {
        if power.magnitude().bit(bit) {
            result = cx.mul(&result, &square)?;
        }
        if bit + 1 < bits {
            square = cx.mul(&square, &square)?;
        }
    }
    if power.sign() == Sign::Minus {
        return Ok(cx.quo(&Decimal::from(1), &result)?.reduced());
    }
    Ok(result)
}

/// `e^x`: the argument is divided by a power of two, the series summed, and the result squared
/// back.
fn exponential(x: &Decimal, precision: u32) -> Result<Decimal, NumberError> {
    if x.is_zero() {
        return Ok(Decimal::from(1));
    }
    let magnitude = i64::from(x.exponent()) + x.digits();
    if magnitude > 7 {
        return Err(OUT_OF_RANGE);
    }
    let halvings = u32::try_from((magnitude * 4).max(0) + 8).map_err(|_| OUT_OF_RANGE)?;
    let cx = Context::working((precision + halvings + 10).min(WORKING_LIMIT));
    let scale = Decimal::new(BigInt::from(1u8) << halvings, 0);
    let reduced = cx.quo(x, &scale)?;
    let mut sum = Decimal::from(1);
    let mut term = Decimal::from(1);
    for index in 1..i64::from(cx.precision) * 4 {
        term = cx.quo(&cx.mul(&term, &reduced)?, &Decimal::from(index))?;
        if negligible(&term, &sum, cx.precision) {
            break;
        }
        sum = cx.add(&sum, &term)?;
    }
    for _ in 0..halvings {
        sum = cx.mul(&sum, &sum)?;
    }
    Ok(sum)
}

/// `ln x`: the argument is brought near one by powers of ten and two, then summed with the series of
/// the inverse hyperbolic tangent.
fn natural_logarithm(x: &Decimal, precision: u32) -> Result<Decimal, NumberError> {
    if x.sign() != Sign::Plus {
        return Err(INVALID);
    }
    let one = Decimal::from(1);
    if x.compare(&one) == Ordering::Equal {
        return Ok(Decimal::from(0));
    }
    let cx = Context::working(precision + GUARD_DIGITS);
    // x = mantissa × 10^tens with the mantissa in [0.1, 1), doubled until it is above 0.7.
    let tens = i64::from(x.exponent()) + x.digits();
    let near_one = cx
        .sub(x, &one)?
        .absolute()
        .compare(&Decimal::new(BigInt::from(4), -1));
    if near_one != Ordering::Greater {
        return logarithm_series(cx, x);
    }
    let exponent = i32::try_from(-x.digits()).map_err(|_| OUT_OF_RANGE)?;
    let mut mantissa = Decimal::new(x.coefficient().clone(), exponent);
    let mut twos = 0i64;
    while mantissa.compare(&Decimal::new(BigInt::from(7), -1)) == Ordering::Less {
        mantissa = cx.mul(&mantissa, &Decimal::from(2))?;
        twos += 1;
    }
    let two = logarithm_series(cx, &Decimal::from(2))?;
    // ln 10 = 3 ln 2 + ln 1.25
    let quarter = logarithm_series(cx, &Decimal::new(BigInt::from(125), -2))?;
    let ten = cx.add(&cx.mul(&two, &Decimal::from(3))?, &quarter)?;
    let main = logarithm_series(cx, &mantissa)?;
    let with_tens = cx.add(&main, &cx.mul(&ten, &Decimal::from(tens))?)?;
    cx.sub(&with_tens, &cx.mul(&two, &Decimal::from(twos))?)
}

/// `ln x = 2 Σ r^(2n+1)/(2n+1)` with `r = (x-1)/(x+1)`; converges quickly near one.
fn logarithm_series(cx: Context, x: &Decimal) -> Result<Decimal, NumberError> {
    let one = Decimal::from(1);
    let ratio = cx.quo(&cx.sub(x, &one)?, &cx.add(x, &one)?)?;
    let square = cx.mul(&ratio, &ratio)?;
    let mut power = ratio.clone();
    let mut sum = ratio;
    for index in 1..i64::from(cx.precision) * 8 {
        power = cx.mul(&power, &square)?;
        let term = cx.quo(&power, &Decimal::from(2 * index + 1))?;
        if negligible(&term, &sum, cx.precision) {
            break;
        }
        sum = cx.add(&sum, &term)?;
    }
    cx.mul(&sum, &Decimal::from(2))
}

/// Whether adding `term` can no longer change `sum` at the given precision.
fn negligible(term: &Decimal, sum: &Decimal, precision: u32) -> bool {
    let position = |value: &Decimal| i64::from(value.exponent()) + value.digits();
    term.is_zero() || position(term) < position(sum) - i64::from(precision) - 1
}
