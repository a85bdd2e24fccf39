//! What tests say of values. A path may give several values, and a test then several answers.

use serde_json::Value;

use super::run::{all, described, value_at};
use super::{Operand, Question, Test};

/// How many answers a test may have.
const MAX_ANSWERS: usize = 10_000;

/// Whether a test holds, at least once.
pub(super) fn holds(test: &Test, value: &Value, steps: &mut usize) -> Result<bool, String> {
    Ok(answers(test, value, steps)?.contains(&true))
}

fn answers(test: &Test, value: &Value, steps: &mut usize) -> Result<Vec<bool>, String> {
    Ok(match test {
        Test::Or(tests) => chained(tests, value, true, steps)?,
        Test::And(tests) => chained(tests, value, false, steps)?,
        Test::Not(inner) => {
            let found = answers(inner, value, steps)?;
            found.into_iter().map(|answer| !answer).collect()
        }
        Test::Holds(operand) => {
            let found = values(operand, value, steps)?;
            found
                .iter()
                .map(|it| !it.is_null() && *it != false)
                .collect()
        }
        Test::Compare(left, comparison, right) => {
            let (left, right) = (values(left, value, steps)?, values(right, value, steps)?);
            if left.len().saturating_mul(right.len()) > MAX_ANSWERS {
                return Err("too many values to compare".to_owned());
            }
            let mut found = Vec::new();
            for right in &right {
                for left in &left {
                    found.push(compare(left, comparison, right)?);
                }
            }
            found
        }
    })
}

/// Tests one after the other: an answer that settles the matter ends it.
fn chained(
    tests: &[Test],
    value: &Value,
    settling: bool,
    steps: &mut usize,
) -> Result<Vec<bool>, String> {
    let mut found = Vec::new();
    // How many answers so far leave the matter open.
    let mut open = 1;
    for test in tests {
        if open == 0 {
            break;
        }
        let new = answers(test, value, steps)?;
        let settled = new.iter().filter(|answer| **answer == settling).count();
        if (new.len() + 1).saturating_mul(open) > MAX_ANSWERS {
            return Err("too many values to compare".to_owned());
        }
        found.extend(std::iter::repeat_n(settling, settled * open));
        open *= new.len() - settled;
    }
    found.extend(std::iter::repeat_n(!settling, open));
    Ok(found)
}

fn compare(left: &Value, comparison: &str, right: &Value) -> Result<bool, String> {
    let is_equal = bellwether_json::equality::semantic_eq(left, right);
    Ok(match comparison {
        "==" => is_equal,
        "!=" => !is_equal,
        "<=" => is_equal || is_less(left, right)?,
        ">=" => is_equal || is_less(right, left)?,
        "<" => is_less(left, right)?,
        _ => is_less(right, left)?,
    })
}

fn is_less(left: &Value, right: &Value) -> Result<bool, String> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => Ok(left.as_f64() < right.as_f64()),
        (Value::String(left), Value::String(right)) => Ok(left < right),
        _ => Err(format!(
            "cannot compare {} with {}",
            described(left),
            described(right)
        )),
    }
}

fn values(operand: &Operand, value: &Value, steps: &mut usize) -> Result<Vec<Value>, String> {
    match operand {
        Operand::Literal(literal) => Ok(vec![literal.clone()]),
        Operand::Path(filter) => {
            let places = all(filter, value, vec![Vec::new()], steps)?;
            let found = places
                .iter()
                .map(|place| value_at(value, place).cloned().unwrap_or(Value::Null));
            Ok(found.collect())
        }
        Operand::Call(operand, question) => {
            let subjects = values(operand, value, steps)?;
            let found = subjects
                .iter()
                .map(|subject| answer(question, subject, steps));
            found.collect()
        }
    }
}

/// The answer to a question about a value.
fn answer(question: &Question, subject: &Value, steps: &mut usize) -> Result<Value, String> {
    let cannot = |name: &str| {
        Err(format!(
            "{name} cannot be applied to: {}",
            described(subject)
        ))
    };
    Ok(match (question, subject) {
        (Question::Has(Value::String(key)), Value::Object(map)) => map.contains_key(key).into(),
        (Question::Has(Value::Number(index)), Value::Array(items)) => {
            let index = index.as_u64().and_then(|index| usize::try_from(index).ok());
            index.is_some_and(|index| index < items.len()).into()
        }
        (Question::Has(_), _) => return cannot("has"),
        (Question::StartsWith(start), Value::String(text)) => text.starts_with(start).into(),
        (Question::StartsWith(_), _) => return cannot("startswith"),
        (Question::EndsWith(end), Value::String(text)) => text.ends_with(end).into(),
        (Question::EndsWith(_), _) => return cannot("endswith"),
        (Question::Contains(part), _) => match contains(subject, part) {
            Some(found) => found.into(),
            None => return cannot("contains"),
        },
        (Question::Matches(pattern), Value::String(text)) => pattern.is_match(text).into(),
        (Question::Matches(_), _) => return cannot("test"),
        (Question::Among(values), _) => {
            let mut values = values.iter();
            values
                .any(|it| bellwether_json::equality::semantic_eq(it, subject))
                .into()
        }
        (Question::Length, Value::Null) => 0.into(),
        (Question::Length, Value::String(text)) => text.chars().count().into(),
        (Question::Length, Value::Array(items)) => items.len().into(),
        (Question::Length, Value::Object(map)) => map.len().into(),
        (Question::Length, _) => return cannot("length"),
        (Question::Type, _) => type_of(subject).into(),
        (Question::Lowercase, Value::String(text)) => text.to_ascii_lowercase().into(),
        (Question::Lowercase, _) => return cannot("ascii_downcase"),
        (Question::Uppercase, Value::String(text)) => text.to_ascii_uppercase().into(),
        (Question::Uppercase, _) => return cannot("ascii_upcase"),
        (Question::Quantified { any, of, test }, _) => {
            let places = all(of, subject, vec![Vec::new()], steps)?;
            for place in places {
                let item = value_at(subject, &place).unwrap_or(&Value::Null);
                let found = answers(test, item, steps)?;
                if found.contains(any) {
                    return Ok((*any).into());
                }
            }
            (!*any).into()
        }
    })
}

/// Whether a value has another in it, as jq sees it; nothing if that makes no sense.
fn contains(whole: &Value, part: &Value) -> Option<bool> {
    match (whole, part) {
        (Value::String(whole), Value::String(part)) => Some(whole.contains(part.as_str())),
        (Value::Array(whole), Value::Array(part)) => Some(part.iter().all(|part| {
            whole
                .iter()
                .any(|whole| contains(whole, part) == Some(true))
        })),
        (Value::Object(whole), Value::Object(part)) => Some(part.iter().all(|(key, part)| {
            let found = whole.get(key);
            found.is_some_and(|whole| contains(whole, part) == Some(true))
        })),
        (Value::Object(_) | Value::Array(_) | Value::String(_), _) => None,
        (whole, part) if type_of(whole) == type_of(part) => {
            Some(bellwether_json::equality::semantic_eq(whole, part))
        }
        _ => None,
    }
}

/// What jq calls the type of a value.
pub(super) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
