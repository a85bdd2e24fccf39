//! How templates print values, and `printf`.

use std::fmt::Write as _;

use super::execute::Item;
use crate::number::Number;
use crate::value::Value;

/// The text of an action's result.
pub(super) fn item(item: &Item) -> String {
    match item {
        Item::Missing => "<no value>".to_owned(),
        Item::Value(value) => {
            let mut output = String::new();
            write_value(&mut output, value);
            output
        }
    }
}

fn write_value(output: &mut String, value: &Value) {
    match value {
        Value::Null | Value::Opaque(_) => output.push_str("<nil>"),
        Value::Bool(value) => output.push_str(if *value { "true" } else { "false" }),
        Value::Number(number) if number.is_int() => {
            let _ = write!(output, "{number}");
        }
        Value::Number(number) => output.push_str(&float(number.to_f64())),
        Value::String(text) => output.push_str(text),
        Value::Bytes(bytes) => {
            let numbers: Vec<String> = bytes.iter().map(ToString::to_string).collect();
            let _ = write!(output, "[{}]", numbers.join(" "));
        }
        Value::List(items) => {
            output.push('[');
            for (position, item) in items.iter().enumerate() {
                if position > 0 {
                    output.push(' ');
                }
                write_value(output, item);
            }
            output.push(']');
        }
        Value::Struct(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_by(|left, right| left.0.cmp(&right.0));
            output.push_str("map[");
            for (position, (label, field)) in sorted.into_iter().enumerate() {
                if position > 0 {
                    output.push(' ');
                }
                let _ = write!(output, "{label}:");
                write_value(output, field);
            }
            output.push(']');
        }
    }
}

/// The shortest text of a float, with an exponent from 1e21 on and below 1e-4.
fn float(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-4..1e21).contains(&magnitude) {
        let text = format!("{value:e}");
        if let Some((mantissa, exponent)) = text.split_once('e') {
            let exponent: i32 = exponent.parse().unwrap_or(0);
            let sign = if exponent < 0 { '-' } else { '+' };
            return format!("{mantissa}e{sign}{:02}", exponent.unsigned_abs());
        }
    }
    format!("{value}")
}

/// Joins values; blanks go between two when neither is text, or everywhere when asked for lines.
pub(super) fn joined(items: &[Item], lines: bool) -> String {
    let is_text = |item: &Item| matches!(item, Item::Value(Value::String(_)));
    let mut output = String::new();
    for (position, current) in items.iter().enumerate() {
        if position > 0 && (lines || !(is_text(&items[position - 1]) || is_text(current))) {
            output.push(' ');
        }
        output.push_str(&item(current));
    }
    if lines {
        output.push('\n');
    }
    output
}

/// A format directive between the percent sign and the verb.
#[derive(Default)]
struct Directive {
    left: bool,
    zero: bool,
    plus: bool,
    width: usize,
    precision: Option<usize>,
}

/// Widths beyond this are refused: they come from the template.
const WIDTH_LIMIT: usize = 10_000;

/// Formats like Go's `Sprintf`, for the verbs that make sense on plain data.
pub(super) fn formatted(items: &[Item]) -> Result<String, String> {
    let Some((Item::Value(Value::String(format)), arguments)) = items.split_first() else {
        return Err("error calling printf: the format must be a string".to_owned());
    };
    let mut output = String::new();
    let mut arguments = arguments.iter();
    let mut characters = format.chars().peekable();
    while let Some(character) = characters.next() {
        if character != '%' {
            output.push(character);
            continue;
        }
        let directive = directive(&mut characters)?;
        match characters.next() {
            None => output.push_str("%!(NOVERB)"),
            Some('%') => output.push('%'),
            Some(verb) => match arguments.next() {
                Some(argument) => pad(
                    &mut output,
                    &verb_text(verb, &directive, argument),
                    &directive,
                ),
                None => {
                    let _ = write!(output, "%!{verb}(MISSING)");
                }
            },
        }
    }
    if arguments.len() > 0 {
        let extra: Vec<String> = arguments.map(item).collect();
        let _ = write!(output, "%!(EXTRA {})", extra.join(", "));
    }
    Ok(output)
}

fn directive(
    characters: &mut std::iter::Peekable<std::str::Chars<'_>>,
) -> Result<Directive, String> {
    let mut result = Directive::default();
    while let Some(flag) = characters.next_if(|c| "-0+ #".contains(*c)) {
        result.left |= flag == '-';
        result.zero |= flag == '0';
        result.plus |= flag == '+';
    }
    result.width = digits(characters).unwrap_or(0);
    if characters.next_if_eq(&'.').is_some() {
        result.precision = Some(digits(characters).unwrap_or(0));
    }
    if result.width > WIDTH_LIMIT || result.precision.is_some_and(|p| p > WIDTH_LIMIT) {
        return Err("error calling printf: width too large".to_owned());
    }
    Ok(result)
}

fn digits(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<usize> {
    let mut value = None;
    while let Some(digit) = characters.next_if(char::is_ascii_digit) {
        let digit = digit.to_digit(10).unwrap_or(0) as usize;
        value = Some(
            value
                .unwrap_or(0usize)
                .saturating_mul(10)
                .saturating_add(digit),
        );
    }
    value
}

fn verb_text(verb: char, directive: &Directive, argument: &Item) -> String {
    let plus = |text: String, negative: bool| {
        if directive.plus && !negative {
            format!("+{text}")
        } else {
            text
        }
    };
    match (verb, argument) {
        ('v', Item::Missing) => "<nil>".to_owned(),
        ('s', Item::Value(Value::String(text))) => match directive.precision {
            Some(precision) => text.chars().take(precision).collect(),
            None => text.to_string(),
        },
        ('v', argument) | ('s', argument @ Item::Value(Value::List(_) | Value::Struct(_))) => {
            item(argument)
        }
        ('q', Item::Value(Value::String(text))) => format!("{text:?}"),
        ('t', Item::Value(Value::Bool(value))) => value.to_string(),
        ('d', Item::Value(Value::Number(number))) if number.is_int() => {
            plus(number.to_string(), number.is_negative())
        }
        ('x' | 'X' | 'o' | 'b', Item::Value(Value::Number(number))) if number.is_int() => {
            in_base(verb, number)
        }
        ('x', Item::Value(Value::String(text))) => {
            text.bytes().fold(String::new(), |mut output, byte| {
                let _ = write!(output, "{byte:02x}");
                output
            })
        }
        ('c', Item::Value(Value::Number(number))) => number
            .to_i64()
            .and_then(|code| u32::try_from(code).ok())
            .and_then(char::from_u32)
            .unwrap_or(char::REPLACEMENT_CHARACTER)
            .to_string(),
        ('f' | 'F', Item::Value(Value::Number(number))) if !number.is_int() => {
            let precision = directive.precision.unwrap_or(6);
            plus(
                format!("{:.precision$}", number.to_f64()),
                number.is_negative(),
            )
        }
        ('g', Item::Value(Value::Number(number))) if !number.is_int() => {
            plus(float(number.to_f64()), number.is_negative())
        }
        ('T', Item::Value(value)) => value.kind().to_string(),
        (verb, argument) => format!("%!{verb}({})", item(argument)),
    }
}

/// An integer in base 2, 8 or 16.
fn in_base(verb: char, number: &Number) -> String {
    let base = match verb {
        'o' => 8,
        'b' => 2,
        _ => 16,
    };
    let text = number
        .to_big()
        .map_or(String::new(), |big| big.to_str_radix(base));
    if verb == 'X' {
        text.to_uppercase()
    } else {
        text
    }
}

fn pad(output: &mut String, text: &str, directive: &Directive) {
    let missing = directive.width.saturating_sub(text.chars().count());
    if directive.left {
        output.push_str(text);
        output.extend(std::iter::repeat_n(' ', missing));
    } else if directive.zero {
        let (sign, digits) = match text.strip_prefix(['-', '+']) {
            Some(digits) => (&text[..1], digits),
            None => ("", text),
        };
        output.push_str(sign);
        output.extend(std::iter::repeat_n('0', missing));
        output.push_str(digits);
    } else {
        output.extend(std::iter::repeat_n(' ', missing));
        output.push_str(text);
    }
}
