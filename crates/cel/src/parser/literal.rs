//! The values of number, string and bytes literals.

type Result<T> = std::result::Result<T, &'static str>;

const UNABLE: &str = "unable to unescape string";
const CODE_POINT: &str = "invalid unicode code point";

pub(super) fn int(text: &str, negative: bool) -> Result<i64> {
    let magnitude = unsigned(text).ok_or("invalid int literal")?;
    let value = if negative {
        0_i64.checked_sub_unsigned(magnitude)
    } else {
        i64::try_from(magnitude).ok()
    };
    value.ok_or("invalid int literal")
}

pub(super) fn uint(text: &str) -> Result<u64> {
    unsigned(text.trim_end_matches(['u', 'U'])).ok_or("invalid uint literal")
}

fn unsigned(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

pub(super) fn double(text: &str, negative: bool) -> Result<f64> {
    let value: f64 = text.parse().map_err(|_| "invalid double literal")?;
    if value.is_infinite() {
        return Err("invalid double literal");
    }
    Ok(if negative { -value } else { value })
}

pub(super) fn string(text: &str) -> Result<String> {
    let mut out = String::with_capacity(text.len());
    unescape(text, false, &mut |unit| match unit {
        Unit::Character(character) => out.push(character),
        Unit::Byte(byte) => out.push(char::from(byte)),
    })?;
    Ok(out)
}

pub(super) fn bytes(text: &str) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    unescape(
        text.get(1..).unwrap_or_default(),
        true,
        &mut |unit| match unit {
            Unit::Character(character) => {
                out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            }
            Unit::Byte(byte) => out.push(byte),
        },
    )?;
    Ok(out)
}

enum Unit {
    Character(char),
    /// A byte given by number, which in a bytes literal need not be a character.
    Byte(u8),
}

/// Strips prefix and quotes and hands every unit of the body to `emit`.
fn unescape(text: &str, is_bytes: bool, emit: &mut dyn FnMut(Unit)) -> Result<()> {
    let raw = text.starts_with(['r', 'R']);
    let quoted = if raw { &text[1..] } else { text };
    let width = if quoted.len() >= 6 && (quoted.starts_with("'''") || quoted.starts_with("\"\"\""))
    {
        3
    } else {
        1
    };
    let body = quoted
        .get(width..quoted.len().saturating_sub(width))
        .ok_or(UNABLE)?;
    let mut rest = body.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            // Line ends are the same on every system.
            '\r' => {
                rest.next_if_eq(&'\n');
                emit(Unit::Character('\n'));
            }
            '\\' if !raw => emit(escape(&mut rest, is_bytes)?),
            _ => emit(Unit::Character(character)),
        }
    }
    Ok(())
}

fn escape(rest: &mut std::iter::Peekable<std::str::Chars<'_>>, is_bytes: bool) -> Result<Unit> {
    let code = rest.next().ok_or(UNABLE)?;
    let simple = match code {
        'a' => '\u{7}',
        'b' => '\u{8}',
        'f' => '\u{c}',
        'n' => '\n',
        'r' => '\r',
        't' => '\t',
        'v' => '\u{b}',
        '\\' | '\'' | '"' | '`' | '?' => code,
        'x' | 'X' => return numeric(digits(rest, 16, 2, 0)?, is_bytes),
        'u' | 'U' if is_bytes => return Err(UNABLE),
        'u' => return numeric(digits(rest, 16, 4, 0)?, false),
        'U' => return numeric(digits(rest, 16, 8, 0)?, false),
        '0'..='3' => {
            let first = code.to_digit(8).unwrap_or(0);
            return numeric(digits(rest, 8, 2, first)?, is_bytes);
        }
        _ => return Err(UNABLE),
    };
    Ok(Unit::Character(simple))
}

fn digits(
    rest: &mut std::iter::Peekable<std::str::Chars<'_>>,
    radix: u32,
    count: usize,
    first: u32,
) -> Result<u32> {
    let mut value = first;
    for _ in 0..count {
        let digit = rest
            .next()
            .and_then(|character| character.to_digit(radix))
            .ok_or(UNABLE)?;
        value = value.wrapping_mul(radix).wrapping_add(digit);
    }
    Ok(value)
}

fn numeric(value: u32, is_bytes: bool) -> Result<Unit> {
    if is_bytes {
        return u8::try_from(value).map(Unit::Byte).map_err(|_| UNABLE);
    }
    char::from_u32(value).map(Unit::Character).ok_or(CODE_POINT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_become_characters() {
        assert_eq!(string(r"'\x41é\101\n\'\?'").unwrap(), "Aé\u{41}\n'?");
        assert_eq!(string(r"r'\n'").unwrap(), r"\n");
        assert_eq!(string("'''a'b\r\nc'''").unwrap(), "a'b\nc");
        assert_eq!(string("''").unwrap(), "");
        assert_eq!(string(r"'\uD800'"), Err(CODE_POINT));
    }

    #[test]
    fn bytes_are_bytes() {
        assert_eq!(bytes(r"b'\xff\377a'").unwrap(), vec![255, 255, b'a']);
        assert_eq!(bytes("b'é'").unwrap(), "é".as_bytes());
        assert!(bytes("b'\\u0041'").is_err());
    }

    #[test]
    fn integers_reach_both_ends_and_no_further() {
        assert_eq!(int("9223372036854775808", true), Ok(i64::MIN));
        assert!(int("9223372036854775808", false).is_err());
        assert_eq!(int("0x7fffffffffffffff", false), Ok(i64::MAX));
        assert_eq!(uint("18446744073709551615u"), Ok(u64::MAX));
        assert!(double("1e999", false).is_err());
    }
}
