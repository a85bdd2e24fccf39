//! Which places of an object filters name.

use serde_json::Value;

use super::Filter;
use super::ask::{holds, type_of};
use crate::fields::{Location, MAX_DEPTH, Place};

type Places = Vec<Location>;

/// Why an expression gives nothing.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stop {
    /// It makes no sense for this object.
    Wrong(String),
    /// It takes too much.
    OverBudget,
}

impl From<String> for Stop {
    fn from(problem: String) -> Self {
        Self::Wrong(problem)
    }
}

/// Counts what an expression takes: a step is one value visited, or one part of a place copied.
#[derive(Debug, Default)]
pub(super) struct Meter(usize);

impl Meter {
    /// How many steps an expression may take: some tenths of a second.
    pub(super) const BUDGET: usize = 2_000_000;

    pub(super) fn charge(&mut self, steps: usize) -> Result<(), Stop> {
        self.0 = self.0.saturating_add(steps);
        if self.0 > Self::BUDGET {
            Err(Stop::OverBudget)
        } else {
            Ok(())
        }
    }
}

/// The places that a filter gives for a whole object.
pub(super) fn run(filter: &Filter, object: &Value, meter: &mut Meter) -> Result<Places, Stop> {
    all(filter, object, vec![Vec::new()], meter)
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
    meter: &mut Meter,
) -> Result<Places, Stop> {
    let mut found = Vec::new();
    match filter {
        Filter::Pipe(parts) => {
            let mut places = places;
            for part in parts {
                places = all(part, object, places, meter)?;
            }
            return Ok(places);
        }
        Filter::Identity => return Ok(places),
        _ => {}
    }
    for place in places {
        meter.charge(1 + place.len())?;
        let next = step(filter, object, place, meter)?;
        meter.charge(next.iter().map(|place| 1 + place.len()).sum())?;
        found.extend(next);
    }
    Ok(found)
}

/// What one filter gives for one place.
fn step(
    filter: &Filter,
    object: &Value,
    place: Location,
    meter: &mut Meter,
) -> Result<Places, Stop> {
    let null = Value::Null;
    let value = value_at(object, &place).unwrap_or(&null);
    let below = |next: Place| {
        let mut location = place.clone();
        location.push(next);
        location
    };
    Ok(match filter {
        Filter::Identity => vec![place],
        Filter::Pipe(_) => all(filter, object, vec![place], meter)?,
        Filter::Comma(parts) => {
            let mut found = Vec::new();
            for part in parts {
                found.extend(all(part, object, vec![place.clone()], meter)?);
            }
            found
        }
        Filter::Field(name) => match value {
            Value::Object(_) | Value::Null => vec![below(Place::Field(name.clone()))],
            other => {
                let problem = format!("expected an object but got: {}", described(other));
                return Err(problem.into());
            }
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
            other => return Err(format!("cannot iterate over: {}", described(other)).into()),
        },
        Filter::Recurse => {
            let mut found = Vec::new();
            everything(value, &place, 0, &mut found, meter)?;
            found
        }
        Filter::First(inner) => {
            let mut found = all(inner, object, vec![place], meter)?;
            found.truncate(1);
            found
        }
        Filter::Last(inner) => {
            let found = all(inner, object, vec![place], meter)?;
            found.into_iter().next_back().into_iter().collect()
        }
        Filter::Alternative(parts) => alternative(parts, object, &place, meter)?,
        Filter::Try(inner) => match all(inner, object, vec![place], meter) {
            Err(Stop::Wrong(_)) => Vec::new(),
            other => other?,
        },
        Filter::Select(test) => {
            if holds(test, value, meter)? {
                vec![place]
            } else {
                Vec::new()
            }
        }
    })
}

/// The length of a list; that of nothing is 0.
fn length_of(value: &Value) -> Result<i64, Stop> {
    match value {
        Value::Array(items) => Ok(i64::try_from(items.len()).unwrap_or(i64::MAX)),
        Value::Null => Ok(0),
        other => Err(format!("expected an array but got: {}", described(other)).into()),
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
    meter: &mut Meter,
) -> Result<Places, Stop> {
    let Some((last, others)) = parts.split_last() else {
        return Ok(Vec::new());
    };
    for part in others {
        let found = match all(part, object, vec![place.clone()], meter) {
            Err(Stop::Wrong(_)) => Vec::new(),
            other => other?,
        };
        let is_something = |place: &Location| {
            value_at(object, place).is_some_and(|it| !it.is_null() && *it != false)
        };
        let found: Places = found.into_iter().filter(is_something).collect();
        if !found.is_empty() {
            return Ok(found);
        }
    }
    all(last, object, vec![place.clone()], meter)
}

/// Adds the place of a value, and of everything in it.
fn everything(
    value: &Value,
    place: &Location,
    depth: usize,
    found: &mut Places,
    meter: &mut Meter,
) -> Result<(), Stop> {
    meter.charge(1 + place.len())?;
    found.push(place.clone());
    if depth > MAX_DEPTH {
        return Ok(());
    }
    let mut enter = |next: Place, value: &Value| {
        let mut location = place.clone();
        location.push(next);
        everything(value, &location, depth + 1, found, meter)
    };
    match value {
        Value::Object(map) => map
            .iter()
            .try_for_each(|(key, value)| enter(Place::Field(key.clone()), value)),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .try_for_each(|(index, value)| enter(Place::Index(index), value)),
        _ => Ok(()),
    }
}

pub(super) fn described(value: &Value) -> String {
    let kind = type_of(value);
    format!("{kind} ({value})")
}
