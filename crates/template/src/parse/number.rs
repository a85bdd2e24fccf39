//! Numbers in a template, and everything that each can be.

use bellwether_go::number;
use bellwether_go::quote;

use crate::ast::Number;
use crate::lex::Kind;

/// Reads a number; the error is Go's.
pub(super) fn read(pos: usize, text: &str, kind: Kind) -> Result<Number, String> {
    let mut number = Number {
        pos,
        text: text.into(),
        int: None,
        uint: None,
        float: None,
        complex: None,
    };
    match kind {
        Kind::CharConstant => return character(number),
        Kind::Complex => {
            let complex =
                complex(text).ok_or_else(|| "syntax error scanning complex number".to_owned())?;
            simplify(&mut number, complex);
            return Ok(number);
        }
        _ => {}
    }
    if let Some(imaginary) = text.strip_suffix('i').and_then(number::parse_float) {
        simplify(&mut number, (0.0, imaginary));
        return Ok(number);
    }
    number.uint = number::parse_uint(text);
    number.int = number::parse_int(text);
    if number.int == Some(0) {
        number.uint = Some(0);
    }
    #[expect(clippy::cast_precision_loss, reason = "as in Go")]
    match (number.int, number.uint) {
        (Some(value), _) => number.float = Some(value as f64),
        (None, Some(value)) => number.float = Some(value as f64),
        (None, None) => {
            let Some(value) = number::parse_float(text) else {
                return Err(format!("illegal number syntax: {}", quote::quote(text)));
            };
            if !text.contains(['.', 'e', 'E', 'p', 'P']) {
                return Err(format!("integer overflow: {}", quote::quote(text)));
            }
            number.float = Some(value);
            number.int = whole(value);
            number.uint = whole_unsigned(value);
        }
    }
    Ok(number)
}

fn character(mut number: Number) -> Result<Number, String> {
    let body = &number.text[1..];
    let (character, tail) = quote::unquote_char(body, '\'').map_err(|error| error.to_string())?;
    if tail != "'" {
        return Err(format!("malformed character constant: {}", number.text));
    }
    let code = character.code();
    number.int = Some(i64::from(code));
    number.uint = Some(u64::from(code));
    number.float = Some(f64::from(code));
    Ok(number)
}

/// `1+2i`.
fn complex(text: &str) -> Option<(f64, f64)> {
    let body = text.strip_suffix('i')?;
    let split = body
        .char_indices()
        .rev()
        .find(|(at, c)| {
            matches!(c, '+' | '-') && *at > 0 && !body[..*at].ends_with(['e', 'E', 'p', 'P'])
        })?
        .0;
    let (real, imaginary) = body.split_at(split);
    Some((number::parse_float(real)?, number::parse_float(imaginary)?))
}

/// A complex number without an imaginary part is also a float, and perhaps an integer.
fn simplify(number: &mut Number, (real, imaginary): (f64, f64)) {
    number.complex = Some((real, imaginary));
    if imaginary == 0.0 {
        number.float = Some(real);
        number.int = whole(real);
        number.uint = whole_unsigned(real);
    }
}

#[expect(clippy::cast_possible_truncation, reason = "checked right after")]
#[expect(
    clippy::cast_precision_loss,
    reason = "compared with where it came from"
)]
#[expect(clippy::float_cmp, reason = "whether the conversion was exact")]
fn whole(value: f64) -> Option<i64> {
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    let integer = value as i64;
    ((-LIMIT..LIMIT).contains(&value) && integer as f64 == value).then_some(integer)
}

#[expect(clippy::cast_possible_truncation, reason = "checked right after")]
#[expect(clippy::cast_sign_loss, reason = "checked before")]
#[expect(
    clippy::cast_precision_loss,
    reason = "compared with where it came from"
)]
#[expect(clippy::float_cmp, reason = "whether the conversion was exact")]
fn whole_unsigned(value: f64) -> Option<u64> {
    const LIMIT: f64 = 18_446_744_073_709_551_616.0;
    let integer = value as u64;
    ((0.0..LIMIT).contains(&value) && integer as f64 == value).then_some(integer)
}
