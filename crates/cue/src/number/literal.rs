//! Number literals: the text forms of the language and of plain data.

use num_bigint::BigInt;

use super::{Decimal, EXPONENT_LIMIT, Number, NumberError};

/// Parses a literal of the language. See [`Number::parse_literal`].
pub(super) fn parse(text: &str) -> Result<Number, NumberError> {
    let (negative, body) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if body.is_empty() {
        return Err(invalid(text));
    }
    let digits = without_separators(body)?;
    let number = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => based(&digits[2..], 16, "hexadecimal", text)?,
        [b'0', b'o', ..] => based(&digits[2..], 8, "octal", text)?,
        [b'0', b'b', ..] => based(&digits[2..], 2, "binary", text)?,
        _ => decimal_or_scaled(&digits, text)?,
    };
    Ok(if negative { number.negated() } else { number })
}

/// Parses plain decimal text. See [`Number::parse_decimal`].
pub(super) fn parse_decimal(text: &str) -> Result<Number, NumberError> {
    if let Ok(small) = text.parse::<i64>() {
        return Ok(Number::from(small));
    }
    let (mantissa, exponent) = match text.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (text, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let unsigned = whole.strip_prefix(['-', '+']).unwrap_or(whole);
    let fraction_digits = fraction.unwrap_or("");
    let all_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !all_digits(unsigned)
        || !all_digits(fraction_digits)
        || (unsigned.is_empty() && fraction_digits.is_empty())
    {
        return Err(invalid(text));
    }
    let coefficient: BigInt = format!("{whole}{fraction_digits}")
        .parse()
        .map_err(|_| invalid(text))?;
    if fraction.is_none() && exponent.is_none() {
        return Ok(Number::from_big(coefficient));
    }
    let shift = match exponent {
        None => 0,
        Some(digits) => parse_exponent(digits, text)?,
    };
    let length = i64::try_from(fraction_digits.len()).map_err(|_| invalid(text))?;
    let exponent = i32::try_from(shift - length)
        .ok()
        .filter(|exponent| exponent.abs() <= EXPONENT_LIMIT)
        .ok_or_else(|| NumberError::Literal(format!("exponent out of range in number {text:?}")))?;
    Ok(Number::from_decimal(Decimal::new(coefficient, exponent)))
}

fn parse_exponent(digits: &str, text: &str) -> Result<i64, NumberError> {
    let illegal = || NumberError::Literal(format!("illegal exponent {text:?}"));
    let unsigned = digits.strip_prefix(['-', '+']).unwrap_or(digits);
    if unsigned.is_empty() || !unsigned.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(illegal());
    }
    digits
        .parse()
        .map_err(|_| NumberError::Literal(format!("exponent out of range in number {text:?}")))
}

fn decimal_or_scaled(digits: &str, text: &str) -> Result<Number, NumberError> {
    let (mantissa, binary) = match digits.strip_suffix('i') {
        Some(rest) => (rest, true),
        None => (digits, false),
    };
    let power = match mantissa.bytes().last() {
        Some(b'K') => 1,
        Some(b'M') => 2,
        Some(b'G') => 3,
        Some(b'T') => 4,
        Some(b'P') => 5,
        _ if binary => return Err(invalid(text)),
        _ => return plain(digits, text),
    };
    let mantissa = plain(&mantissa[..mantissa.len() - 1], text)?;
    let unit: i64 = if binary { 1024 } else { 1000 };
    let scaled = mantissa.mul(&Number::from(unit.pow(power)))?;
    match scaled.to_big() {
        Some(integer) => Ok(Number::from_big(integer)),
        None => Err(NumberError::Literal(
            "number cannot be represented as int".to_owned(),
        )),
    }
}

fn plain(digits: &str, text: &str) -> Result<Number, NumberError> {
    let is_integer = digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_integer && digits.len() > 1 && digits.starts_with('0') {
        return Err(NumberError::Literal(format!(
            "illegal integer number {text:?}"
        )));
    }
    parse_decimal(digits)
}

fn based(digits: &str, base: u32, name: &str, text: &str) -> Result<Number, NumberError> {
    match BigInt::parse_bytes(digits.as_bytes(), base) {
        Some(value) if !digits.starts_with(['-', '+']) => Ok(Number::from_big(value)),
        _ => Err(NumberError::Literal(format!(
            "illegal {name} number {text:?}"
        ))),
    }
}

/// Removes digit separators, which must stand between two digits.
fn without_separators(body: &str) -> Result<String, NumberError> {
    if !body.contains('_') {
        return Ok(body.to_owned());
    }
    let illegal = body.ends_with('_')
        || body.starts_with('_')
        || ["__", "_.", "._", "_e", "_E"]
            .iter()
            .any(|pair| body.contains(pair))
            && !body.starts_with("0x");
    if illegal {
        return Err(NumberError::Literal("illegal '_' in number".to_owned()));
    }
    Ok(body.replace('_', ""))
}

fn invalid(text: &str) -> NumberError {
    NumberError::Literal(format!("invalid number {text:?}"))
}
