//! Which places of an object filters name.

use serde_json::Value;

use super::super::ignore::{Location, MAX_DEPTH, Place};
use super::Filter;
use super::ask::{holds, type_of};

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

/// The places that a filter gives for some places.
pub(super) fn all(
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
        Filter::Index(index) => {
            let length = length_of(value)?;
            let index = if *index < 0 { index + length } else { *index };
            let index = usize::try_from(index);
            index
                .map(|index| below(Place::Index(index)))
                .into_iter()
                .collect()
        }
        Filter::Slice(from, to) => slice(*from, *to, length_of(value)?)
            .map(|index| below(Place::Index(index)))
            .collect(),
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
        Filter::First(inner) => {
            let mut found = all(inner, object, vec![place], steps)?;
            found.truncate(1);
            found
        }
        Filter::Last(inner) => {
            let found = all(inner, object, vec![place], steps)?;
            found.into_iter().next_back().into_iter().collect()
        }
        Filter::Alternative(parts) => alternative(parts, object, &place, steps)?,
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

/// The length of a list; that of nothing is 0.
fn length_of(value: &Value) -> Result<i64, String> {
    match value {
        Value::Array(items) => Ok(i64::try_from(items.len()).unwrap_or(i64::MAX)),
        Value::Null => Ok(0),
        other => Err(format!("expected an array but got: {}", described(other))),
    }
}

/// The indexes of a part of a list; what is negative counts from the end.
fn slice(from: Option<i64>, to: Option<i64>, length: i64) -> std::ops::Range<usize> {
    let end = |index: i64| {
        let index = if index < 0 {
            index.saturating_add(length)
        } else {
            index
        };
        usize::try_from(index.clamp(0, length)).unwrap_or_default()
    };
    end(from.unwrap_or(0))..end(to.unwrap_or(length))
}

fn alternative(
    parts: &[Filter],
    object: &Value,
    place: &Location,
    steps: &mut usize,
) -> Result<Places, String> {
    let Some((last, others)) = parts.split_last() else {
        return Ok(Vec::new());
    };
    for part in others {
        let found = all(part, object, vec![place.clone()], steps).unwrap_or_default();
        let is_something = |place: &Location| {
            value_at(object, place).is_some_and(|it| !it.is_null() && *it != false)
        };
        let found: Places = found.into_iter().filter(is_something).collect();
        if !found.is_empty() {
            return Ok(found);
        }
    }
    all(last, object, vec![place.clone()], steps)
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

pub(super) fn described(value: &Value) -> String {
    let kind = type_of(value);
    format!("{kind} ({value})")
}
