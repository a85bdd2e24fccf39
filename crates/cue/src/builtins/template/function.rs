//! The functions every template knows.

use std::cmp::Ordering;
use std::fmt::Write as _;

use super::execute::{Item, is_true};
use super::print;
use crate::builtins::html;
use crate::value::Value;

/// Calls a predefined function.
pub(super) fn call(name: &str, arguments: &[Item]) -> Result<Item, String> {
    let text = |text: String| Ok(Item::Value(Value::string(text)));
    match name {
        "print" => text(print::joined(arguments, false)),
        "println" => text(print::joined(arguments, true)),
        "printf" => text(print::formatted(arguments)?),
        "len" => length(argument(name, arguments, 0)?),
        "index" => index(arguments),
        "slice" => slice(arguments),
        "not" => boolean(!is_true(argument(name, arguments, 0)?)),
        "eq" => equal(arguments),
        "ne" => not_equal(arguments),
        "lt" => compare(name, arguments, |order| order == Ordering::Less),
        "le" => compare(name, arguments, |order| order != Ordering::Greater),
        "gt" => compare(name, arguments, |order| order == Ordering::Greater),
        "ge" => compare(name, arguments, |order| order != Ordering::Less),
        "html" => text(html::escape_text(&print::joined(arguments, false))),
        "js" => text(escape_script(&print::joined(arguments, false))),
        "urlquery" => text(escape_query(&print::joined(arguments, false))),
        _ => Err(format!("function {name:?} not defined")),
    }
}

fn argument<'a>(name: &str, arguments: &'a [Item], position: usize) -> Result<&'a Item, String> {
    arguments
        .get(position)
        .ok_or_else(|| format!("wrong number of args for {name}: got {}", arguments.len()))
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "the last expression of a function"
)]
fn boolean(value: bool) -> Result<Item, String> {
    Ok(Item::Value(Value::Bool(value)))
}

fn length(item: &Item) -> Result<Item, String> {
    let length = match item {
        Item::Value(Value::String(text)) => text.len(),
        Item::Value(Value::Bytes(bytes)) => bytes.len(),
        Item::Value(Value::List(items)) => items.len(),
        Item::Value(Value::Struct(fields)) => fields.len(),
        _ => return Err("error calling len: len of nil pointer".to_owned()),
    };
    Ok(Item::Value(Value::Number(length.into())))
}

fn position(item: &Item) -> Option<usize> {
    match item {
        Item::Value(Value::Number(number)) => number.to_usize(),
        _ => None,
    }
}

fn index(arguments: &[Item]) -> Result<Item, String> {
    let mut current = argument("index", arguments, 0)?.clone();
    for key in &arguments[1..] {
        current = match (&current, key) {
            (Item::Value(Value::List(items)), key) => {
                let found = position(key).and_then(|position| items.get(position));
                let shown = print::item(key);
                let missing = || format!("error calling index: index out of range: {shown}");
                Item::Value(found.ok_or_else(missing)?.clone())
            }
            (Item::Value(value @ Value::Struct(_)), Item::Value(Value::String(label))) => value
                .field(label)
                .map_or(Item::Missing, |field| Item::Value(field.clone())),
            (Item::Value(Value::String(text)), key) => {
                let byte = position(key).and_then(|position| text.as_bytes().get(position));
                let missing = || "error calling index: index out of range".to_owned();
                Item::Value(Value::Number(i64::from(*byte.ok_or_else(missing)?).into()))
            }
            _ => return Err("error calling index: can't index item".to_owned()),
        };
    }
    Ok(current)
}

fn slice(arguments: &[Item]) -> Result<Item, String> {
    let out_of_range = || "error calling slice: index out of range".to_owned();
    let bound = |at: usize, default: usize| match arguments.get(at) {
        Some(item) => position(item).ok_or_else(out_of_range),
        None => Ok(default),
    };
    match argument("slice", arguments, 0)? {
        Item::Value(Value::String(text)) => {
            let range = bound(1, 0)?..bound(2, text.len())?;
            Ok(Item::Value(Value::string(
                text.get(range).ok_or_else(out_of_range)?,
            )))
        }
        Item::Value(Value::List(items)) => {
            let range = bound(1, 0)?..bound(2, items.len())?;
            let part = items.get(range).ok_or_else(out_of_range)?;
            Ok(Item::Value(Value::list(part.iter().cloned())))
        }
        _ => Err("error calling slice: can't slice item".to_owned()),
    }
}

fn same(left: &Item, right: &Item) -> Result<bool, String> {
    match (left, right) {
        (Item::Missing, Item::Missing) => Ok(true),
        (Item::Missing, _) | (_, Item::Missing) => Ok(false),
        (Item::Value(left), Item::Value(right)) => {
            let comparable =
                left.kind() == right.kind() && !matches!(left, Value::List(_) | Value::Struct(_));
            let nil = matches!(left, Value::Null) || matches!(right, Value::Null);
            if comparable || nil {
                Ok(left == right)
            } else {
                Err("error calling eq: incompatible types for comparison".to_owned())
            }
        }
    }
}

/// True when the first argument equals any of the others.
fn equal(arguments: &[Item]) -> Result<Item, String> {
    let first = argument("eq", arguments, 0)?;
    if arguments.len() < 2 {
        return Err("error calling eq: missing argument for comparison".to_owned());
    }
    for other in &arguments[1..] {
        if same(first, other)? {
            return boolean(true);
        }
    }
    boolean(false)
}

fn not_equal(arguments: &[Item]) -> Result<Item, String> {
    boolean(!same(
        argument("ne", arguments, 0)?,
        argument("ne", arguments, 1)?,
    )?)
}

fn compare(
    name: &str,
    arguments: &[Item],
    accept: impl Fn(Ordering) -> bool,
) -> Result<Item, String> {
    let pair = (argument(name, arguments, 0)?, argument(name, arguments, 1)?);
    let order = match pair {
        (Item::Value(Value::Number(left)), Item::Value(Value::Number(right)))
            if left.is_int() == right.is_int() =>
        {
            left.compare(right)
        }
        (Item::Value(Value::String(left)), Item::Value(Value::String(right))) => left.cmp(right),
        _ => {
            return Err(format!(
                "error calling {name}: incompatible types for comparison"
            ));
        }
    };
    boolean(accept(order))
}

/// Escapes text for a string of a script.
pub(super) fn escape_script(text: &str) -> String {
    let mut output = String::new();
    for character in text.chars() {
        match character {
            '\\' => output.push_str("\\\\"),
            '\'' => output.push_str("\\'"),
            '"' => output.push_str("\\\""),
            '<' | '>' | '&' | '=' => {
                let _ = write!(output, "\\u{:04X}", u32::from(character));
            }
            _ if character.is_control() => {
                let _ = write!(output, "\\u{:04X}", u32::from(character));
            }
            _ => output.push(character),
        }
    }
    output
}

fn escape_query(text: &str) -> String {
    let mut output = String::new();
    for byte in text.bytes() {
        match byte {
            b' ' => output.push('+'),
            b'-' | b'_' | b'.' | b'~' => output.push(char::from(byte)),
            _ if byte.is_ascii_alphanumeric() => output.push(char::from(byte)),
            _ => {
                let _ = write!(output, "%{byte:02X}");
            }
        }
    }
    output
}
