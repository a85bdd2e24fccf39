//! Numbers in Go's syntax, as `strconv.ParseInt`, `ParseUint` and `ParseFloat` read them, and powers of ten.

/// An integer in the base that its prefix says, with underscores between digits.
pub fn parse_int(text: &str) -> Option<i64> {
    let (is_negative, digits) = match text.strip_prefix(['+', '-']) {
        Some(rest) => (text.starts_with('-'), rest),
        None => (false, text),
    };
    let magnitude = parse_uint(digits)?;
    if is_negative {
        0_i64.checked_sub_unsigned(magnitude)
    } else {
        i64::try_from(magnitude).ok()
    }
}

/// An unsigned integer in the base that its prefix says, with underscores between digits.
pub fn parse_uint(text: &str) -> Option<u64> {
    let lower = text.get(..2).map(str::to_ascii_lowercase);
    let (base, digits) = match lower.as_deref() {
        Some("0x") => (16, &text[2..]),
        Some("0o") => (8, &text[2..]),
        Some("0b") => (2, &text[2..]),
        _ if text.len() > 1 && text.starts_with('0') => (8, &text[1..]),
        _ => (10, text),
    };
    if !underscores_are_fine(text) {
        return None;
    }
    let plain: String = digits.chars().filter(|c| *c != '_').collect();
    if plain.is_empty() || !plain.chars().all(|c| c.is_digit(base)) {
        return None;
    }
    u64::from_str_radix(&plain, base).ok()
}

/// A decimal or hexadecimal float; out of range is none.
pub fn parse_float(text: &str) -> Option<f64> {
    if text.contains('_') && !underscores_are_fine(text) {
        return None;
    }
    let plain: String = text.chars().filter(|c| *c != '_').collect();
    let (is_negative, body) = match plain.strip_prefix(['+', '-']) {
        Some(rest) => (plain.starts_with('-'), rest),
        None => (false, plain.as_str()),
    };
    let magnitude = if let Some(hex) = body.strip_prefix("0x").or_else(|| body.strip_prefix("0X")) {
        hex_float(hex)?
    } else {
        if text.contains('_') {
            // Only a base prefix allows underscores.
            return None;
        }
        match body.to_ascii_lowercase().as_str() {
            "inf" | "infinity" => f64::INFINITY,
            "nan" => f64::NAN,
            _ => {
                let is_number = body.bytes().any(|byte| byte.is_ascii_digit())
                    && body
                        .bytes()
                        .all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte));
                let value: f64 = body.parse().ok().filter(|_| is_number)?;
                if value.is_infinite() {
                    return None;
                }
                value
            }
        }
    };
    Some(if is_negative { -magnitude } else { magnitude })
}

/// Ten to a power, as a float: `math.Pow10`, which multiplies two entries of tables and so is not always the nearest.
pub fn pow10(exponent: i32) -> f64 {
    let entry = |exponent: i32| format!("1e{exponent}").parse().unwrap_or(f64::NAN);
    match exponent {
        0..=308 => entry(exponent / 32 * 32) * entry(exponent % 32),
        -323..0 => entry(exponent / 32 * 32) / entry(-exponent % 32),
        ..0 => 0.0,
        _ => f64::INFINITY,
    }
}

/// Digits, a point, and an exponent of two, which is required.
fn hex_float(text: &str) -> Option<f64> {
    let (mantissa, exponent) = text.split_once(['p', 'P'])?;
    let exponent: i32 = exponent.parse().ok()?;
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let mut value = 0.0_f64;
    for digit in whole.chars() {
        value = value * 16.0 + f64::from(digit.to_digit(16)?);
    }
    let mut scale = 1.0 / 16.0;
    for digit in fraction.chars() {
        value += f64::from(digit.to_digit(16)?) * scale;
        scale /= 16.0;
    }
    let value = value * 2.0_f64.powi(exponent);
    value.is_finite().then_some(value)
}

/// Underscores stand between digits, or between a base prefix and a digit.
fn underscores_are_fine(text: &str) -> bool {
    let text = text.strip_prefix(['+', '-']).unwrap_or(text);
    let lower = text.get(..2).map(str::to_ascii_lowercase);
    let (has_prefix, is_hex) = match lower.as_deref() {
        Some("0x") => (true, true),
        Some("0b" | "0o") => (true, false),
        _ => (false, false),
    };
    let mut after_digit = has_prefix;
    let mut after_underscore = false;
    for character in text[if has_prefix { 2 } else { 0 }..].chars() {
        let is_digit = character.is_ascii_digit() || (is_hex && character.is_ascii_hexdigit());
        if character == '_' {
            if !after_digit {
                return false;
            }
            after_underscore = true;
            after_digit = false;
            continue;
        }
        if after_underscore && !is_digit {
            return false;
        }
        after_underscore = false;
        after_digit = is_digit;
    }
    !after_underscore
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Exponents, and the bits of `math.Pow10` of Go 1.26.
    const POWERS: &str = include_str!("../tests/data/pow10.txt");

    #[test]
    fn powers_of_ten_are_those_of_go() {
        for line in POWERS.lines() {
            let (exponent, bits) = line.split_once(' ').unwrap();
            let bits = u64::from_str_radix(bits, 16).unwrap();
            let power = pow10(exponent.parse().unwrap());
            assert_eq!(power.to_bits(), bits, "1e{exponent}");
        }
    }
}
