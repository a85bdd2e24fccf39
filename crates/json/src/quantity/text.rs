//! Quantities to and from text.

use super::amount::{Amount, NANO, power_of_ten};
use super::{Quantity, QuantityError, QuantityFormat};

/// Digits of which any number fits 64 bits.
const MAX_SMALL_DIGITS: usize = 18;

/// Larger exponents are refused: written out, they would fill memory. Upstream goes on to 32 bits.
const MAX_EXPONENT: i32 = 999;

const DECIMAL_SUFFIXES: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];

const BINARY_SUFFIXES: [(&str, u32); 6] = [
    ("Ki", 10),
    ("Mi", 20),
    ("Gi", 30),
    ("Ti", 40),
    ("Pi", 50),
    ("Ei", 60),
];

/// The parts of a quantity's text.
struct Parts<'text> {
    is_negative: bool,
    /// Digits before the point, without leading zeros but never empty.
    whole: &'text str,
    /// Digits after the point.
    fraction: &'text str,
    has_digits: bool,
    suffix: &'text str,
}

pub(super) fn parse(text: &str) -> Result<Quantity, QuantityError> {
    if text.is_empty() {
        return Err(QuantityError::Format);
    }
    let parts = split(text)?;
    let (factor, format) = Factor::from_suffix(parts.suffix).ok_or(QuantityError::Suffix)?;
    if let Some(amount) = parse_small(&parts, factor) {
        let canonical = canonical(amount, format);
        let verbatim = is_kept(&parts, amount, factor) && canonical != text;
        let verbatim = verbatim.then(|| Box::from(text));
        return Ok(Quantity {
            amount,
            format,
            verbatim,
        });
    }
    if !parts.has_digits {
        return Err(QuantityError::Numeric);
    }
    let amount = parse_big(&parts, factor);
    Ok(cap(&parts, amount, format))
}

/// Takes the text apart; the characters of the suffix are checked here, its meaning is not.
fn split(text: &str) -> Result<Parts<'_>, QuantityError> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let digits_end = |text: &str| {
        text.find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len())
    };
    let (all_digits, rest) = unsigned.split_at(digits_end(unsigned));
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(after) => after.split_at(digits_end(after)),
        None => ("", rest),
    };
    let exponent = suffix.trim_start_matches(|c: char| "eEinumkKMGTP".contains(c));
    let exponent = exponent.strip_prefix(['-', '+']).unwrap_or(exponent);
    if !exponent.bytes().all(|b| b.is_ascii_digit()) {
        return Err(QuantityError::Format);
    }
    let significant = all_digits.trim_start_matches('0');
    Ok(Parts {
        is_negative: text.starts_with('-'),
        whole: if significant.is_empty() {
            "0"
        } else {
            significant
        },
        fraction,
        has_digits: !all_digits.is_empty() || !fraction.is_empty(),
        suffix,
    })
}

/// What a suffix multiplies by.
#[derive(Clone, Copy)]
enum Factor {
    PowerOfTen(i32),
    PowerOfTwo(u32),
}

impl Factor {
    fn from_suffix(suffix: &str) -> Option<(Self, QuantityFormat)> {
        if let Some((_, scale)) = DECIMAL_SUFFIXES.iter().find(|(name, _)| *name == suffix) {
            return Some((Self::PowerOfTen(*scale), QuantityFormat::DecimalSi));
        }
        if let Some((_, bits)) = BINARY_SUFFIXES.iter().find(|(name, _)| *name == suffix) {
            return Some((Self::PowerOfTwo(*bits), QuantityFormat::BinarySi));
        }
        let exponent: i64 = suffix.strip_prefix(['e', 'E'])?.parse().ok()?;
        let exponent = i32::try_from(exponent)
            .ok()
            .filter(|e| e.abs() <= MAX_EXPONENT)?;
        Some((Self::PowerOfTen(exponent), QuantityFormat::DecimalExponent))
    }
}

/// The everyday case: few enough digits for 64 bits, and nothing finer than a billionth.
fn parse_small(parts: &Parts<'_>, factor: Factor) -> Option<Amount> {
    let digits = parts.whole.len() + parts.fraction.len();
    let fraction_digits = i32::try_from(parts.fraction.len()).ok()?;
    let (scale, multiplier) = match factor {
        Factor::PowerOfTen(scale) => (scale.checked_sub(fraction_digits)?, 1),
        Factor::PowerOfTwo(bits) => {
            let room = usize::try_from(bits).ok()? * 3 / 10 + 1 + digits;
            if !parts.fraction.is_empty() || room > 15 {
                return None;
            }
            (0, 1_i64.checked_shl(bits)?)
        }
    };
    if digits > MAX_SMALL_DIGITS || scale < NANO {
        return None;
    }
    let number: i64 = format!("{}{}", parts.whole, parts.fraction).parse().ok()?;
    let number = number.checked_mul(multiplier)?;
    Some(Amount::small(
        if parts.is_negative { -number } else { number },
        scale,
    ))
}

/// Whether upstream takes the text for canonical and keeps it, rightly or not.
fn is_kept(parts: &Parts<'_>, amount: Amount, factor: Factor) -> bool {
    match factor {
        Factor::PowerOfTen(_) => {
            let ends_in_zeros = parts.fraction.ends_with("000")
                || format!("{}{}", parts.whole, parts.fraction).ends_with("000");
            amount.scale % 3 == 0 && !ends_in_zeros && !parts.whole.starts_with('0')
        }
        Factor::PowerOfTwo(_) => parts.whole.parse().is_ok_and(|number: i64| number % 8 != 0),
    }
}

/// Any number of digits; whatever is finer than a billionth is rounded away from zero.
fn parse_big(parts: &Parts<'_>, factor: Factor) -> Amount {
    let mut unscaled: i128 = 0;
    let mut scale = 0_i32;
    let mut is_truncated = false;
    let digits = parts
        .whole
        .bytes()
        .map(|b| (b, 0))
        .chain(parts.fraction.bytes().map(|b| (b, 1)));
    for (digit, fraction) in digits {
        let digit = i128::from(digit - b'0');
        match unscaled
            .checked_mul(10)
            .and_then(|unscaled| unscaled.checked_add(digit))
        {
            Some(next) if !is_truncated => {
                unscaled = next;
                scale -= fraction;
            }
            _ => {
                // The rest only tells how far the digits kept stand from the point.
                is_truncated = true;
                scale = scale.saturating_add(1 - fraction);
            }
        }
    }
    let sign = if parts.is_negative { -1 } else { 1 };
    let mut amount = Amount {
        unscaled: unscaled * sign,
        scale,
        big_scale: Some(NANO),
    };
    match factor {
        Factor::PowerOfTen(exponent) => amount.scale = amount.scale.saturating_add(exponent),
        Factor::PowerOfTwo(bits) => match amount.unscaled.checked_mul(1 << bits) {
            Some(product) => amount.unscaled = product,
            None => {
                amount = Amount {
                    unscaled: sign * i128::MAX,
                    ..amount
                };
            }
        },
    }
    if amount.scale < NANO {
        amount = Amount {
            unscaled: amount.at_scale(NANO).0,
            scale: NANO,
            ..amount
        };
    }
    amount
}

/// Binary quantities end at 64 bits, and below one they become decimal.
fn cap(parts: &Parts<'_>, amount: Amount, format: QuantityFormat) -> Quantity {
    if format != QuantityFormat::BinarySi {
        return Quantity::from_amount(amount, format);
    }
    let sign = if parts.is_negative { -1 } else { 1 };
    let limit = Amount {
        unscaled: sign * i128::from(i64::MAX),
        scale: 0,
        big_scale: Some(0),
    };
    let (whole, _) = amount.at_scale(0);
    if whole.unsigned_abs() > limit.unscaled.unsigned_abs() {
        return Quantity::from_amount(limit, format);
    }
    let is_fraction = amount.unscaled != 0 && (amount.at_scale(0) == (sign, false));
    let format = if is_fraction {
        QuantityFormat::DecimalSi
    } else {
        format
    };
    Quantity::from_amount(amount, format)
}

pub(super) fn canonical(amount: Amount, format: QuantityFormat) -> String {
    if amount.unscaled == 0 {
        return "0".to_owned();
    }
    match format {
        QuantityFormat::BinarySi => {
            // Small and broken numbers are clearer in decimal.
            let (whole, is_exact) = amount.at_scale(0);
            if is_exact && whole.unsigned_abs() >= 1024 {
                return binary(whole);
            }
            decimal(amount)
        }
        QuantityFormat::DecimalSi => decimal(amount),
        QuantityFormat::DecimalExponent => match thousands(amount, i32::MAX) {
            (digits, 0) => digits,
            (digits, exponent) => format!("{digits}e{exponent}"),
        },
    }
}

fn binary(mut whole: i128) -> String {
    let mut suffix = "";
    for (name, _) in BINARY_SUFFIXES {
        if whole % 1024 != 0 {
            break;
        }
        whole /= 1024;
        suffix = name;
    }
    format!("{whole}{suffix}")
}

fn decimal(amount: Amount) -> String {
    let (digits, exponent) = thousands(amount, 18);
    let suffix = DECIMAL_SUFFIXES
        .iter()
        .find(|(_, scale)| *scale == exponent);
    format!("{digits}{}", suffix.map_or("", |(name, _)| name))
}

/// Digits and the largest exponent that is a multiple of three and needs no fraction.
fn thousands(amount: Amount, max_exponent: i32) -> (String, i32) {
    let reduced = amount.reduced();
    let exponent = (reduced.scale - reduced.scale.rem_euclid(3)).min(max_exponent);
    let zeros = i64::from(reduced.scale) - i64::from(exponent);
    let digits = power_of_ten(zeros).and_then(|power| reduced.unscaled.checked_mul(power));
    let digits = digits.map_or_else(
        || {
            format!(
                "{}{}",
                reduced.unscaled,
                "0".repeat(usize::try_from(zeros).unwrap_or_default())
            )
        },
        |digits| digits.to_string(),
    );
    (digits, exponent)
}
