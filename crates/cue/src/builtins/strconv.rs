//! Package `strconv`.

mod float;

use num_bigint::BigInt;

use bellwether_go::quote;

use super::argument::{
    Outcome, big, boolean, from_float, int, integer, number, string, text_result,
};
use super::{INT, NUMBER, STRING, function};
use crate::ast::ExprKind;
use crate::number::Number;
use crate::parser::parse_expression;
use crate::value::{Failure, Host, Kind, Package, Param, Value};

pub(super) static PACKAGE: Package = Package {
    path: "strconv",
    functions: &[
        function("Unquote", &[STRING], Kind::STRING, unquote),
        function("ParseBool", &[STRING], Kind::BOOL, parse_bool),
        function(
            "FormatBool",
            &[Param::of(Kind::BOOL)],
            Kind::STRING,
            format_bool,
        ),
        function("ParseFloat", &[STRING, INT], Kind::NUMBER, parse_float),
        function("ParseUint", &[STRING, INT, INT], Kind::INT, parse_uint),
        function("ParseInt", &[STRING, INT, INT], Kind::INT, parse_int),
        function("Atoi", &[STRING], Kind::INT, atoi),
        function(
            "FormatFloat",
            &[NUMBER, INT, INT, INT],
            Kind::STRING,
            format_float,
        ),
        function("FormatUint", &[INT, INT], Kind::STRING, format_int),
        function("FormatInt", &[INT, INT], Kind::STRING, format_int),
        function("Quote", &[STRING], Kind::STRING, |_, a| {
            text_result(quote::quote_with(
                string(a, 0)?.as_bytes(),
                quote::Keep::Printable,
            ))
        }),
        function("QuoteToASCII", &[STRING], Kind::STRING, |_, a| {
            text_result(quote::quote_with(
                string(a, 0)?.as_bytes(),
                quote::Keep::Ascii,
            ))
        }),
        function("QuoteToGraphic", &[STRING], Kind::STRING, |_, a| {
            text_result(quote::quote_with(
                string(a, 0)?.as_bytes(),
                quote::Keep::Graphic,
            ))
        }),
        function("QuoteRune", &[INT], Kind::STRING, |_, a| {
            text_result(quote::quote_char(rune(a)?, quote::Keep::Printable))
        }),
        function("QuoteRuneToASCII", &[INT], Kind::STRING, |_, a| {
            text_result(quote::quote_char(rune(a)?, quote::Keep::Ascii))
        }),
        function("QuoteRuneToGraphic", &[INT], Kind::STRING, |_, a| {
            text_result(quote::quote_char(rune(a)?, quote::Keep::Graphic))
        }),
        function("IsPrint", &[INT], Kind::BOOL, |_, a| {
            Ok(Value::Bool(quote::Keep::Printable.keeps(rune(a)?)))
        }),
        function("IsGraphic", &[INT], Kind::BOOL, |_, a| {
            Ok(Value::Bool(quote::Keep::Graphic.keeps(rune(a)?)))
        }),
    ],
    source: "IntSize: 64\n",
};

fn syntax(name: &str, text: &str) -> Failure {
    Failure::error(format!("strconv.{name}: parsing {text:?}: invalid syntax"))
}

fn out_of_range(name: &str, text: &str) -> Failure {
    Failure::error(format!(
        "strconv.{name}: parsing {text:?}: value out of range"
    ))
}

/// A character argument; what is no character counts as the replacement character.
fn rune(arguments: &[Value]) -> Result<char, Failure> {
    let code = u32::try_from(int(arguments, 0)?).ok();
    Ok(code
        .and_then(char::from_u32)
        .unwrap_or(char::REPLACEMENT_CHARACTER))
}

fn unquote(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let (literal, problems) = parse_expression("", string(arguments, 0)?);
    match literal.kind {
        ExprKind::String(text) if problems.is_empty() => text_result(text),
        ExprKind::Bytes(bytes) if problems.is_empty() => {
            text_result(String::from_utf8_lossy(&bytes))
        }
        _ => Err(Failure::error("invalid syntax")),
    }
}

fn parse_bool(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    match string(arguments, 0)? {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(Value::Bool(true)),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(Value::Bool(false)),
        other => Err(syntax("ParseBool", other)),
    }
}

fn format_bool(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    text_result(if boolean(arguments, 0)? {
        "true"
    } else {
        "false"
    })
}

fn parse_float(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let text = string(arguments, 0)?;
    let value = if int(arguments, 1)? == 32 {
        text.parse::<f32>().map(f64::from)
    } else {
        text.parse::<f64>()
    };
    match value {
        Ok(value) if value.is_infinite() && text.contains(|c: char| c.is_ascii_digit()) => {
            Err(out_of_range("ParseFloat", text))
        }
        Ok(value) => from_float(value),
        Err(_) => Err(syntax("ParseFloat", text)),
    }
}

/// Reads digits of a base, with prefixes and separators when the base is zero.
fn magnitude(name: &str, text: &str, digits: &str, base: i64) -> Result<BigInt, Failure> {
    let (digits, base) = match (base, digits.as_bytes()) {
        (0, [b'0', b'x' | b'X', ..]) => (&digits[2..], 16),
        (0, [b'0', b'o' | b'O', ..]) => (&digits[2..], 8),
        (0, [b'0', b'b' | b'B', ..]) => (&digits[2..], 2),
        (0, [b'0', _, ..]) => (&digits[1..], 8),
        (0, _) => (digits, 10),
        (2..=36, _) => (digits, u32::try_from(base).unwrap_or(10)),
        _ => {
            return Err(Failure::error(format!(
                "strconv.{name}: parsing {text:?}: invalid base {base}"
            )));
        }
    };
    let separators = digits.contains('_');
    let malformed = digits.is_empty()
        || digits.starts_with(['+', '-'])
        || (separators && (base != 10 || text.len() == digits.len()) && !is_separated(digits));
    let plain = digits.replace('_', "");
    let value = BigInt::parse_bytes(plain.as_bytes(), base);
    match value {
        Some(value) if !malformed => Ok(value),
        _ => Err(syntax(name, text)),
    }
}

fn is_separated(digits: &str) -> bool {
    !digits.starts_with('_') && !digits.ends_with('_') && !digits.contains("__")
}

fn size(arguments: &[Value], name: &str, text: &str) -> Result<u32, Failure> {
    match int(arguments, 2)? {
        0 => Ok(64),
        size @ 1..=64 => Ok(u32::try_from(size).unwrap_or(64)),
        size => Err(Failure::error(format!(
            "strconv.{name}: parsing {text:?}: invalid bit size {size}"
        ))),
    }
}

fn parse_uint(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let text = string(arguments, 0)?;
    let value = magnitude("ParseUint", text, text, int(arguments, 1)?)?;
    let limit = BigInt::from(1) << size(arguments, "ParseUint", text)?;
    if value >= limit {
        return Err(out_of_range("ParseUint", text));
    }
    Ok(Value::Number(Number::from_big(value)))
}

fn signed(name: &str, text: &str, base: i64, bits: u32) -> Outcome {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let value = magnitude(name, text, digits, base)?;
    let limit = BigInt::from(1) << (bits - 1);
    let value = if negative { -value } else { value };
    if value >= limit || value < -limit {
        return Err(out_of_range(name, text));
    }
    Ok(Value::Number(Number::from_big(value)))
}

fn parse_int(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let text = string(arguments, 0)?;
    signed(
        "ParseInt",
        text,
        int(arguments, 1)?,
        size(arguments, "ParseInt", text)?,
    )
}

fn atoi(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let text = string(arguments, 0)?;
    match text.parse::<i64>() {
        Ok(value) => integer(value),
        Err(_) => signed("Atoi", text, 10, 64),
    }
}

fn format_int(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let base = int(arguments, 1)?;
    if base == 10 {
        return text_result(number(arguments, 0)?.to_string());
    }
    let value = big(arguments, 0)?;
    match u32::try_from(base) {
        Ok(base @ 2..=36) => text_result(value.to_str_radix(base)),
        Ok(base @ 37..=62) => text_result(wide_base(&value, base)),
        _ => Err(Failure::error(format!("invalid base {base}"))),
    }
}

/// Bases above 36 use upper-case letters after the lower-case ones.
fn wide_base(value: &BigInt, base: u32) -> String {
    const DIGITS: &[u8] = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    let mut magnitude = value.magnitude().clone();
    let mut digits = Vec::new();
    loop {
        let digit = u32::try_from(&magnitude % base).unwrap_or(0);
        digits.push(DIGITS.get(digit as usize).copied().unwrap_or(b'?'));
        magnitude /= base;
        if magnitude.bits() == 0 {
            break;
        }
    }
    if value.sign() == num_bigint::Sign::Minus {
        digits.push(b'-');
    }
    digits.iter().rev().map(|byte| char::from(*byte)).collect()
}

fn format_float(host: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let value = number(arguments, 0)?.to_f64();
    let precision = int(arguments, 2)?;
    let verb = u8::try_from(int(arguments, 1)?).map_or('?', char::from);
    super::argument::check_size(host, usize::try_from(precision.max(0)).ok())?;
    let narrow = int(arguments, 3)? == 32;
    match float::format(value, verb, precision, narrow) {
        Some(text) => text_result(text),
        None => Err(Failure::error(format!("unsupported float format {verb:?}"))),
    }
}
