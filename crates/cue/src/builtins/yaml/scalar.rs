//! What a plain YAML scalar means, by the rules of YAML 1.2 with the exceptions of 1.1 that the
//! reference keeps.

use crate::number::Number;
use crate::value::Value;

/// Resolves a plain scalar.
pub(super) fn resolve(text: &str) -> Result<Value, String> {
    Ok(match text {
        "" | "~" | "null" | "Null" | "NULL" => Value::Null,
        "true" | "True" | "TRUE" => Value::Bool(true),
        "false" | "False" | "FALSE" => Value::Bool(false),
        _ => match number(text) {
            Some(number) => Value::Number(number),
            None if is_special_float(text) => {
                return Err(format!("cannot represent {text} as a number"));
            }
            None => Value::string(text),
        },
    })
}

/// Whether a string written plainly would be read back as something else.
pub(super) fn is_ambiguous(text: &str) -> bool {
    const WORDS: [&str; 37] = [
        "", "~", "null", "Null", "NULL", "true", "True", "TRUE", "false", "False", "FALSE", "y",
        "Y", "yes", "Yes", "YES", "on", "On", "ON", "n", "N", "no", "No", "NO", "off", "Off",
        "OFF", "t", "T", "f", "F", ".nan", ".NaN", ".NAN", ".inf", ".Inf", ".INF",
    ];
    WORDS.contains(&text)
        || number(text).is_some()
        || is_special_float(text)
        || is_sexagesimal(text)
        || is_timestamp(text)
}

fn is_special_float(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    matches!(unsigned, ".inf" | ".Inf" | ".INF") || matches!(text, ".nan" | ".NaN" | ".NAN")
}

/// A number in one of YAML's notations.
pub(super) fn number(text: &str) -> Option<Number> {
    let first = text.bytes().next()?;
    if !(first.is_ascii_digit() || matches!(first, b'+' | b'-' | b'.')) {
        return None;
    }
    let (sign, unsigned) = match first {
        b'-' => ("-", &text[1..]),
        b'+' => ("", &text[1..]),
        _ => ("", text),
    };
    let digits = unsigned.replace('_', "");
    if !digits
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_digit() || byte == b'.')
    {
        return None;
    }
    // A leading zero is an octal number of YAML 1.1; with other digits it is plain text.
    let octal = digits.len() > 1
        && digits.starts_with('0')
        && digits.bytes().all(|byte| byte.is_ascii_digit());
    if octal {
        let valid = digits.bytes().all(|byte| byte <= b'7');
        return valid.then(|| Number::parse_literal(&format!("{sign}0o{}", &digits[1..])).ok())?;
    }
    let prefixed = ["0x", "0o", "0b"]
        .iter()
        .any(|prefix| digits.starts_with(prefix));
    if prefixed {
        return Number::parse_literal(&format!("{sign}{digits}")).ok();
    }
    if digits == "." {
        return None;
    }
    Number::parse_decimal(&format!("{sign}{digits}")).ok()
}

/// `12:30:45` was a number in base sixty once, so writers quote it.
fn is_sexagesimal(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let mut parts = unsigned.split(':');
    let digits = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let first = parts.next().is_some_and(digits);
    let mut count = 0;
    let rest = parts.all(|part| {
        count += 1;
        let whole = part.split('.').next().unwrap_or(part);
        digits(whole) && whole.len() <= 2
    });
    first && rest && count > 0
}

/// Dates and times, which older readers take for timestamps.
fn is_timestamp(text: &str) -> bool {
    let bytes = text.as_bytes();
    let digits = |from: usize, count: usize| {
        bytes
            .get(from..from + count)
            .is_some_and(|part| part.iter().all(u8::is_ascii_digit))
    };
    if !digits(0, 4) || bytes.get(4) != Some(&b'-') {
        return false;
    }
    let mut offset = 5;
    for separator in [Some(b'-'), None] {
        let width = (1..=2).rev().find(|width| digits(offset, *width));
        let Some(width) = width else { return false };
        offset += width;
        if let Some(separator) = separator {
            if bytes.get(offset) != Some(&separator) {
                return false;
            }
            offset += 1;
        }
    }
    match bytes.get(offset) {
        None => true,
        Some(b'T' | b't' | b' ') => {
            let time = &bytes[offset + 1..];
            let allowed = |byte: &u8| byte.is_ascii_digit() || b":.+-Zz ".contains(byte);
            time.contains(&b':') && time.iter().all(allowed)
        }
        Some(_) => false,
    }
}
