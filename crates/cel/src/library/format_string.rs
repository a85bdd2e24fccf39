//! `'%s has %d'.format([name, count])`.

use super::check_text_size;
use crate::error::EvalError;
use crate::value::{List, Value, quoted, to_string};

type Formatted = Result<String, EvalError>;

/// Digits behind the point where none are asked for.
const DEFAULT_PRECISION: usize = 6;

/// More digits than any number has; asking for more is refused.
const MAX_PRECISION: usize = 1_000;

/// A part of a template.
pub(crate) enum Piece<'t> {
    /// Text that stands for itself.
    Text(&'t str),
    /// A clause starts here; what follows the percent sign.
    Clause(&'t str),
}

/// Takes the next piece off the front of a template.
pub(crate) fn next_piece<'t>(rest: &mut &'t str) -> Option<Piece<'t>> {
    let template = *rest;
    if template.is_empty() {
        return None;
    }
    match template.find('%') {
        Some(0) => {
            if let Some(after) = template.strip_prefix("%%") {
                *rest = after;
                return Some(Piece::Text("%"));
            }
            *rest = &template[1..];
            Some(Piece::Clause(rest))
        }
        Some(at) => {
            *rest = &template[at..];
            Some(Piece::Text(&template[..at]))
        }
        None => {
            *rest = "";
            Some(Piece::Text(template))
        }
    }
}

/// The verb and precision at the start of a clause, and what follows them.
pub(crate) fn parse_clause(clause: &str) -> Result<(char, Option<usize>, &str), String> {
    const PREFIX: &str = "could not parse formatting clause: ";
    let (precision, after) = precision(clause)
        .map_err(|reason| format!("{PREFIX}error while parsing precision: {reason}"))?;
    match after.chars().next() {
        Some(verb @ ('s' | 'd' | 'f' | 'e' | 'b' | 'x' | 'X' | 'o')) => {
            Ok((verb, precision, &after[1..]))
        }
        Some(other) => Err(format!(
            "{PREFIX}unrecognized formatting clause \"{other}\""
        )),
        None => Err(format!("{PREFIX}unexpected end of string")),
    }
}

fn precision(text: &str) -> Result<(Option<usize>, &str), String> {
    let Some(digits) = text.strip_prefix('.') else {
        return Ok((None, text));
    };
    let length = digits.bytes().take_while(u8::is_ascii_digit).count();
    let (number, after) = digits.split_at(length);
    if after.is_empty() {
        return Err("could not find end of precision specifier".to_owned());
    }
    match number.parse() {
        Ok(precision) if precision <= MAX_PRECISION => Ok((Some(precision), after)),
        _ => Err(format!(
            "error while converting precision to integer: strconv.Atoi: parsing {}: invalid syntax",
            quoted(number)
        )),
    }
}

/// What a verb can be applied to, as errors say it.
pub(crate) fn rule(verb: char) -> &'static str {
    match verb {
        'd' => "decimal clause can only be used on integers",
        'f' => "fixed-point clause can only be used on doubles",
        'e' => "scientific clause can only be used on doubles",
        'b' => "only integers and bools can be formatted as binary",
        'x' | 'X' => "only integers, byte buffers, and strings can be formatted as hex",
        'o' => "octal clause can only be used on integers",
        _ => {
            "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, \
             types, durations, and timestamps"
        }
    }
}

/// Fills the clauses of `template` with `arguments`.
pub(super) fn format_string(template: &str, arguments: &List<'_>) -> Formatted {
    let mut out = String::with_capacity(template.len());
    let mut rest = template;
    let mut used = 0;
    while let Some(piece) = next_piece(&mut rest) {
        match piece {
            Piece::Text(text) => out.push_str(text),
            Piece::Clause(start) => {
                let Some(argument) = arguments.get(used) else {
                    return fail(format!("index {used} out of range"));
                };
                if start.is_empty() {
                    return fail("unexpected end of string");
                }
                used += 1;
                let (verb, precision, after) = parse_clause(start).map_err(EvalError::failed)?;
                out.push_str(&clause(verb, precision, &argument?)?);
                rest = after;
            }
        }
        check_text_size(out.len())?;
    }
    Ok(out)
}

fn fail<T>(text: impl Into<String>) -> Result<T, EvalError> {
    Err(EvalError::failed(text.into()))
}

fn clause(verb: char, precision: Option<usize>, argument: &Value<'_>) -> Formatted {
    let formatted = match verb {
        'd' => decimal(argument),
        'f' => fixed(argument, precision.unwrap_or(DEFAULT_PRECISION)),
        'e' => scientific(argument),
        'b' => binary(argument),
        'x' => hex(argument, false),
        'X' => hex(argument, true),
        'o' => octal(argument),
        _ => string(argument),
    };
    formatted.map_err(|error| EvalError::failed(format!("error during formatting: {error}")))
}

fn wrong_type(verb: char, argument: &Value<'_>) -> Formatted {
    fail(format!(
        "{}, was given {}",
        rule(verb),
        argument.type_name()
    ))
}

fn string(argument: &Value<'_>) -> Formatted {
    match argument {
        Value::List(_) | Value::Map(_) => nested(argument),
        Value::Null => Ok("null".to_owned()),
        Value::Type(of) => Ok(of.runtime_name().to_owned()),
        Value::Int(_)
        | Value::Uint(_)
        | Value::Double(_)
        | Value::Bool(_)
        | Value::String(_)
        | Value::Timestamp(_)
        | Value::Bytes(_)
        | Value::Duration(_) => match to_string(argument)? {
            Value::String(text) => Ok(text.to_string()),
            _ => fail("could not convert argument to string"),
        },
        other => wrong_type('s', other),
    }
}

/// A value inside a list or map, written as a literal.
fn nested(argument: &Value<'_>) -> Formatted {
    Ok(match argument {
        Value::Int(_) | Value::Uint(_) | Value::Bool(_) | Value::Null | Value::Type(_) => {
            string(argument)?
        }
        Value::String(_) => quoted(&string(argument)?),
        Value::Bytes(_) => format!("b{}", quoted(&string(argument)?)),
        Value::Double(value) if value.is_finite() => format!("{value:.DEFAULT_PRECISION$}"),
        Value::Double(value) => quoted(&bellwether_go::float::shortest(*value)),
        Value::Timestamp(value) => format!("timestamp({})", quoted(&value.to_string())),
        Value::Duration(value) => format!("duration({})", quoted(&value.to_string())),
        Value::List(list) => {
            let mut parts = Vec::with_capacity(list.len());
            for item in list.iter() {
                parts.push(nested(&item?)?);
            }
            format!("[{}]", parts.join(", "))
        }
        Value::Map(map) => {
            let mut parts = Vec::with_capacity(map.len());
            for key in map.keys() {
                if let Some(value) = map.find(&key)? {
                    parts.push((nested(&key)?, nested(&value?)?));
                }
            }
            parts.sort();
            let parts: Vec<String> = parts
                .into_iter()
                .map(|(key, value)| format!("{key}:{value}"))
                .collect();
            format!("{{{}}}", parts.join(", "))
        }
        other => return fail(format!("no formatting function for {}", other.type_name())),
    })
}

fn decimal(argument: &Value<'_>) -> Formatted {
    match argument {
        Value::Int(value) => Ok(value.to_string()),
        Value::Uint(value) => Ok(value.to_string()),
        other => wrong_type('d', other),
    }
}

/// The double of a clause that wants one; some texts stand for special values.
fn double(argument: &Value<'_>) -> Option<f64> {
    match argument {
        Value::Double(value) => Some(*value),
        Value::String(text) => match &**text {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

/// Numbers that are none, as the English locale writes them.
fn special(value: f64) -> Option<String> {
    if value.is_nan() {
        return Some("NaN".to_owned());
    }
    value
        .is_infinite()
        .then(|| if value > 0.0 { "∞" } else { "-∞" }.to_owned())
}

fn fixed(argument: &Value<'_>, precision: usize) -> Formatted {
    let Some(value) = double(argument) else {
        return wrong_type('f', argument);
    };
    if let Some(text) = special(value) {
        return Ok(text);
    }
    Ok(grouped(&bellwether_go::float::fixed(value, precision)))
}

/// Inserts commas between thousands, as the English locale does.
fn grouped(number: &str) -> String {
    let (sign, unsigned) = match number.strip_prefix('-') {
        Some(unsigned) => ("-", unsigned),
        None => ("", number),
    };
    let (whole, fraction) = match unsigned.find('.') {
        Some(at) => unsigned.split_at(at),
        None => (unsigned, ""),
    };
    let mut out = String::from(sign);
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index) % 3 == 0 {
            out.push(',');
        }
        out.push(digit);
    }
    out.push_str(fraction);
    out
}

/// `1.052033 × 10⁰³`: six digits always, since cel-go hands the precision on as a width.
fn scientific(argument: &Value<'_>) -> Formatted {
    let Some(value) = double(argument) else {
        return wrong_type('e', argument);
    };
    if let Some(text) = special(value) {
        return Ok(text);
    }
    let text = format!("{value:.DEFAULT_PRECISION$e}");
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, digits) = match exponent.strip_prefix('-') {
        Some(digits) => ("⁻", digits),
        None => ("", exponent),
    };
    let superscript: String = format!("{digits:0>2}")
        .chars()
        .map(|digit| match digit {
            '1' => '¹',
            '2' => '²',
            '3' => '³',
            '0' => '⁰',
            other => char::from_u32(0x2070 + other.to_digit(10).unwrap_or(0)).unwrap_or(other),
        })
        .collect();
    Ok(format!("{mantissa}×10{sign}{superscript}"))
}

fn binary(argument: &Value<'_>) -> Formatted {
    match argument {
        Value::Int(value) => Ok(signed(*value, |magnitude| format!("{magnitude:b}"))),
        Value::Uint(value) => Ok(format!("{value:b}")),
        Value::Bool(value) => Ok(u8::from(*value).to_string()),
        other => wrong_type('b', other),
    }
}

fn octal(argument: &Value<'_>) -> Formatted {
    match argument {
        Value::Int(value) => Ok(signed(*value, |magnitude| format!("{magnitude:o}"))),
        Value::Uint(value) => Ok(format!("{value:o}")),
        other => wrong_type('o', other),
    }
}

fn hex(argument: &Value<'_>, upper: bool) -> Formatted {
    let bytes = |bytes: &[u8]| {
        let digit = |nibble: u8| char::from_digit(u32::from(nibble), 16).unwrap_or('0');
        bytes
            .iter()
            .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
            .collect::<String>()
    };
    let text = match argument {
        Value::Int(value) => signed(*value, |magnitude| format!("{magnitude:x}")),
        Value::Uint(value) => format!("{value:x}"),
        Value::String(text) => bytes(text.as_bytes()),
        Value::Bytes(octets) => bytes(octets),
        other => return wrong_type('x', other),
    };
    Ok(if upper { text.to_uppercase() } else { text })
}

/// Negative numbers are written with a sign, not as a complement.
fn signed(value: i64, format: fn(u64) -> String) -> String {
    let magnitude = format(value.unsigned_abs());
    if value < 0 {
        format!("-{magnitude}")
    } else {
        magnitude
    }
}
