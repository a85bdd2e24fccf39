//! Which places of an object filters name.

use serde_json::Value;

use super::super::ignore::{Location, MAX_DEPTH, Place};
use super::{Filter, Operand, Test};

/// How many places an expression may go through.
const MAX_STEPS: usize = 100_000;

type Places = Vec<Location>;

/// The places that a filter gives for a whole object.
pub(super) fn run(filter: &Filter, object: &Value) -> Result<Places, String> {
    let mut steps = 0;
    all(filter, object, vec![Vec::new()], &mut steps)
}

/// What an object has at a place.
pub(super) fn value_at<'a>(object: &'a Value, location: &[Place]) -> Option<&'a Value> {
    location
        .iter()
        .try_fold(object, |value, place| match place {
            Place::Field(name) => value.get(name),
            Place::Index(index) => value.get(index),
        })
}

fn all(
    filter: &Filter,
    object: &Value,
    places: Places,
    steps: &mut usize,
) -> Result<Places, String> {
    let mut found = Vec::new();
    match filter {
        Filter::Pipe(parts) => {
            let mut places = places;
            for part in parts {
                places = all(part, object, places, steps)?;
            }
            return Ok(places);
        }
        Filter::Identity => return Ok(places),
        _ => {}
    }
    for place in places {
        *steps += 1;
        if *steps > MAX_STEPS {
            return Err("too many places".to_owned());
        }
        found.extend(step(filter, object, place, steps)?);
    }
    Ok(found)
}

/// What one filter gives for one place.
fn step(
    filter: &Filter,
    object: &Value,
    place: Location,
    steps: &mut usize,
) -> Result<Places, String> {
    let null = Value::Null;
    let value = value_at(object, &place).unwrap_or(&null);
    let below = |next: Place| {
        let mut location = place.clone();
        location.push(next);
        location
    };
    Ok(match filter {
        Filter::Identity => vec![place],
        Filter::Pipe(_) => all(filter, object, vec![place], steps)?,
        Filter::Comma(parts) => {
            let mut found = Vec::new();
            for part in parts {
                found.extend(all(part, object, vec![place.clone()], steps)?);
            }
            found
        }
        Filter::Field(name) => match value {
            Value::Object(_) | Value::Null => vec![below(Place::Field(name.clone()))],
            other => return Err(format!("expected an object but got: {}", described(other))),
        },
        Filter::Index(index) => match value {
            Value::Array(items) => {
                let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
                let index = if *index < 0 { index + length } else { *index };
                usize::try_from(index)
                    .map(|index| below(Place::Index(index)))
                    .into_iter()
                    .collect()
            }
            Value::Null => Vec::new(),
            other => return Err(format!("expected an array but got: {}", described(other))),
        },
        Filter::Iterate => match value {
            Value::Array(items) => (0..items.len())
                .map(|index| below(Place::Index(index)))
                .collect(),
            Value::Object(map) => map
                .keys()
                .map(|key| below(Place::Field(key.clone())))
                .collect(),
            other => return Err(format!("cannot iterate over: {}", described(other))),
        },
        Filter::Recurse => everything(value, &place, 0),
        Filter::Try(inner) => all(inner, object, vec![place], steps).unwrap_or_default(),
        Filter::Select(test) => {
            if holds(test, value, steps)? {
                vec![place]
            } else {
                Vec::new()
            }
        }
    })
}

fn everything(value: &Value, place: &Location, depth: usize) -> Places {
    let mut found = vec![place.clone()];
    if depth > MAX_DEPTH {
        return found;
    }
    let mut enter = |next: Place, value: &Value| {
        let mut location = place.clone();
        location.push(next);
        found.extend(everything(value, &location, depth + 1));
    };
    match value {
        Value::Object(map) => map
            .iter()
            .for_each(|(key, value)| enter(Place::Field(key.clone()), value)),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .for_each(|(index, value)| enter(Place::Index(index), value)),
        _ => {}
    }
    found
}

fn described(value: &Value) -> String {
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    format!("{kind} ({value})")
}

fn holds(test: &Test, value: &Value, steps: &mut usize) -> Result<bool, String> {
    Ok(match test {
        Test::Or(one, other) => holds(one, value, steps)? || holds(other, value, steps)?,
        Test::And(one, other) => holds(one, value, steps)? && holds(other, value, steps)?,
        Test::Not(inner) => !holds(inner, value, steps)?,
        Test::Holds(operand) => !matches!(
            evaluate(operand, value, steps)?,
            Value::Null | Value::Bool(false)
        ),
        Test::Compare(left, comparison, right) => {
            let (left, right) = (
                evaluate(left, value, steps)?,
                evaluate(right, value, steps)?,
            );
            let is_equal = bellwether_json::equality::semantic_eq(&left, &right);
            match *comparison {
                "==" => is_equal,
                "!=" => !is_equal,
                "<=" => is_equal || is_less(&left, &right)?,
                ">=" => is_equal || is_less(&right, &left)?,
                "<" => is_less(&left, &right)?,
                _ => is_less(&right, &left)?,
            }
        }
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

fn evaluate(operand: &Operand, value: &Value, steps: &mut usize) -> Result<Value, String> {
    let first = |filter: &Filter, steps: &mut usize| -> Result<Value, String> {
        let places = all(filter, value, vec![Vec::new()], steps)?;
        let found = places.first().and_then(|place| value_at(value, place));
        Ok(found.cloned().unwrap_or(Value::Null))
    };
    match operand {
        Operand::Literal(literal) => Ok(literal.clone()),
        Operand::Path(filter) => first(filter, steps),
        Operand::Matches(filter, pattern) => match first(filter, steps)? {
            Value::String(subject) => Ok(pattern.is_match(&subject).into()),
            other => Err(format!("test cannot be applied to: {}", described(&other))),
        },
        Operand::Call(filter, name, argument) => {
            let subject = first(filter, steps)?;
            let text = argument.as_str().unwrap_or_default();
            let answer = match (*name, &subject) {
                ("has", Value::Object(map)) => map.contains_key(text),
                ("startswith", Value::String(subject)) => subject.starts_with(text),
                ("endswith", Value::String(subject)) => subject.ends_with(text),
                ("contains", Value::String(subject)) => subject.contains(text),
                (name, other) => {
                    return Err(format!("{name} cannot be applied to: {}", described(other)));
                }
            };
            Ok(answer.into())
        }
    }
}
