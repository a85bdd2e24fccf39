//! What tests say of values. A path may give several values, and a test then several answers.

use serde_json::Value;

use super::run::{Meter, Stop, all, described, value_at};
use super::{Operand, Question, Test};

/// How many answers a test may have.
const MAX_ANSWERS: usize = 10_000;

/// Whether a test holds, at least once.
pub(super) fn holds(test: &Test, value: &Value, meter: &mut Meter) -> Result<bool, Stop> {
    Ok(answers(test, value, meter)?.contains(&true))
}

fn answers(test: &Test, value: &Value, meter: &mut Meter) -> Result<Vec<bool>, Stop> {
    Ok(match test {
        Test::Or(tests) => chained(tests, value, true, meter)?,
        Test::And(tests) => chained(tests, value, false, meter)?,
        Test::Not(inner) => {
            let found = answers(inner, value, meter)?;
            found.into_iter().map(|answer| !answer).collect()
        }
        Test::Holds(operand) => {
            let found = values(operand, value, meter)?;
            found
                .iter()
                .map(|it| !it.is_null() && *it != false)
                .collect()
        }
        Test::Compare(left, comparison, right) => {
            let (left, right) = (values(left, value, meter)?, values(right, value, meter)?);
            if left.len().saturating_mul(right.len()) > MAX_ANSWERS {
                return Err(Stop::OverBudget);
            }
            let mut found = Vec::new();
            for right in &right {
                for left in &left {
                    meter.charge(size_of_value(left).min(size_of_value(right)))?;
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
    meter: &mut Meter,
) -> Result<Vec<bool>, Stop> {
    let mut found = Vec::new();
    // How many answers so far leave the matter open.
    let mut open = 1;
    for test in tests {
        if open == 0 {
            break;
        }
        let new = answers(test, value, meter)?;
        let settled = new.iter().filter(|answer| **answer == settling).count();
        if (new.len() + 1).saturating_mul(open) > MAX_ANSWERS {
            return Err(Stop::OverBudget);
        }
        found.extend(std::iter::repeat_n(settling, settled * open));
        open *= new.len() - settled;
    }
    found.extend(std::iter::repeat_n(!settling, open));
    Ok(found)
}

fn compare(left: &Value, comparison: &str, right: &Value) -> Result<bool, Stop> {
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

fn is_less(left: &Value, right: &Value) -> Result<bool, Stop> {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => Ok(left.as_f64() < right.as_f64()),
        (Value::String(left), Value::String(right)) => Ok(left < right),
        _ => Err(format!(
            "cannot compare {} with {}",
            described(left),
            described(right)
        )
        .into()),
    }
}

fn values(operand: &Operand, value: &Value, meter: &mut Meter) -> Result<Vec<Value>, Stop> {
    match operand {
        Operand::Literal(literal) => Ok(vec![literal.clone()]),
        Operand::Path(filter) => {
            let places = all(filter, value, vec![Vec::new()], meter)?;
            let mut found = Vec::new();
            for place in &places {
                let value = value_at(value, place).unwrap_or(&Value::Null);
                meter.charge(size_of_value(value))?;
                found.push(value.clone());
            }
            Ok(found)
        }
        Operand::Call(operand, question) => {
            let subjects = values(operand, value, meter)?;
            let found = subjects
                .iter()
                .map(|subject| answer(question, subject, meter));
            found.collect()
        }
    }
}

/// The answer to a question about a value.
fn answer(question: &Question, subject: &Value, meter: &mut Meter) -> Result<Value, Stop> {
    meter.charge(size_of_value(subject))?;
    let cannot =
        |name: &str| Err(format!("{name} cannot be applied to: {}", described(subject)).into());
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
        (Question::Contains(part), _) => {
            meter.charge(size_of_value(subject).saturating_mul(size_of_value(part)))?;
            match contains(subject, part) {
                Some(found) => found.into(),
                None => return cannot("contains"),
            }
        }
        (Question::Matches(pattern), Value::String(text)) => {
            meter.charge(text.len())?;
            pattern.is_match(text).into()
        }
        (Question::Matches(_), _) => return cannot("test"),
        (Question::Among(values), _) => {
            meter.charge(size_of_value(subject).saturating_mul(values.len()))?;
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
            let places = all(of, subject, vec![Vec::new()], meter)?;
            for place in places {
                let item = value_at(subject, &place).unwrap_or(&Value::Null);
                let found = answers(test, item, meter)?;
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

/// How many steps it takes to copy a value, or to look at all of it.
fn size_of_value(value: &Value) -> usize {
    match value {
        Value::String(text) => 1 + text.len() / 8,
        Value::Array(items) => 1 + items.iter().map(size_of_value).sum::<usize>(),
        Value::Object(map) => 1 + map.values().map(size_of_value).sum::<usize>(),
        _ => 1,
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
