//! Paths of `replacements` and `vars`: `spec.containers.[name=main].env.0.value`, `*` for all items.

use bellwether_go::regexp::Regex;
use serde_json::{Map, Value};

use crate::error::{Problem, Result};
use crate::resource::scalar_text;
use crate::selector::regex;

/// What the last field of a path is made of if it is missing and may be added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Scalar,
    Mapping,
    List,
}

impl Kind {
    pub(crate) fn of(value: &Value) -> Self {
        match value {
            Value::Object(_) => Self::Mapping,
            Value::Array(_) => Self::List,
            _ => Self::Scalar,
        }
    }

    /// A scalar that is added is null until it is set, so that its type is free.
    fn blank(self) -> Value {
        match self {
            Self::Scalar => Value::Null,
            Self::Mapping => Value::Object(Map::new()),
            Self::List => Value::Array(Vec::new()),
        }
    }
}

enum Part<'p> {
    Index(usize),
    /// The key, empty for scalars, and what its value has to match.
    Match(&'p str, &'p str),
    All,
    Field(&'p str),
}

fn part(text: &str) -> Result<Part<'_>> {
    if let Ok(index) = text.parse() {
        return Ok(Part::Index(index));
    }
    if let Some(inner) = text
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
    {
        let (key, value) = inner
            .split_once('=')
            .ok_or_else(|| Problem::new(format!("{text:?} has to be of the form [field=value]")))?;
        return Ok(Part::Match(key, value));
    }
    Ok(match text {
        "*" => Part::All,
        field => Part::Field(field),
    })
}

/// The value at a path, of which the first match counts.
pub(crate) fn lookup<'v>(value: &'v Value, path: &[String]) -> Result<Option<&'v Value>> {
    let mut value = value;
    for text in path.iter().filter(|text| !text.trim().is_empty()) {
        if value.is_null() {
            return Ok(None);
        }
        let next = match (part(text.trim())?, value) {
            (Part::Index(index), Value::Array(items)) => items.get(index),
            (Part::Match(key, wanted), Value::Array(items)) => items
                .iter()
                .find(|item| element_text(item, key).as_deref() == Some(wanted)),
            (Part::Field("-"), Value::Array(items)) => items.last(),
            (Part::Field(name), Value::Object(members)) => members.get(name),
            (Part::All, _) => {
                return Err(Problem::new("`*` is not allowed in the path of a source"));
            }
            _ => {
                let message = format!("{text:?} does not lead into what is there");
                return Err(Problem::new(message));
            }
        };
        match next {
            Some(next) => value = next,
            None => return Ok(None),
        }
    }
    Ok(Some(value))
}

fn element_text(item: &Value, key: &str) -> Option<String> {
    if key.is_empty() {
        return (!item.is_object() && !item.is_array()).then(|| scalar_text(item));
    }
    item.get(key).map(scalar_text)
}

/// Calls `set` for all values at a path; missing ones are added if `create` says of which kind.
/// Returns how many there were.
pub(crate) fn for_each(
    value: &mut Value,
    path: &[String],
    create: Option<Kind>,
    set: &mut dyn FnMut(&mut Value) -> Result<()>,
) -> Result<usize> {
    let Some((text, rest)) = path.split_first() else {
        set(value)?;
        return Ok(1);
    };
    match part(text)? {
        Part::Index(index) => {
            let items = items_of(value, text)?;
            if items.len() == index
                && let Some(create) = create
            {
                items.push(next_kind(rest, create).blank());
            }
            let count = items.len();
            let Some(item) = items.get_mut(index) else {
                let message = format!("index {index} specified but only {count} elements found");
                return Err(Problem::new(message));
            };
            for_each(item, rest, create, set)
        }
        Part::All => {
            let mut found = 0;
            for item in items_of(value, text)? {
                found += for_each(item, rest, create, set)?;
            }
            Ok(found)
        }
        Part::Match(key, pattern) => {
            let items = items_of(value, text)?;
            let matcher = regex(pattern)?;
            let found = for_matching(items, key, &matcher, rest, create, set)?;
            if found > 0 || create.is_none() {
                return Ok(found);
            }
            let scalar = bellwether_json::yaml::plain_scalar(pattern);
            items.push(if key.is_empty() {
                scalar
            } else {
                Value::Object(Map::from_iter([(key.to_owned(), scalar)]))
            });
            for_matching(items, key, &matcher, rest, create, set)
        }
        Part::Field(name) => {
            let members = match value {
                Value::Object(members) => members,
                Value::Null => return Ok(0),
                _ => {
                    let message = format!("{name:?} is looked for in what is not a mapping");
                    return Err(Problem::new(message));
                }
            };
            if let Some(create) = create
                && !members.contains_key(name)
            {
                members.insert(name.to_owned(), next_kind(rest, create).blank());
            }
            match members.get_mut(name) {
                Some(member) => for_each(member, rest, create, set),
                None => Ok(0),
            }
        }
    }
}

fn for_matching(
    items: &mut [Value],
    key: &str,
    matcher: &Regex,
    rest: &[String],
    create: Option<Kind>,
    set: &mut dyn FnMut(&mut Value) -> Result<()>,
) -> Result<usize> {
    let mut found = 0;
    for item in items {
        let is_match = element_text(item, key).is_some_and(|text| matcher.is_match(&text));
        if !is_match {
            continue;
        }
        if key.is_empty() {
            set(item)?;
            found += 1;
        } else {
            found += for_each(item, rest, create, set)?;
        }
    }
    Ok(found)
}

fn items_of<'v>(value: &'v mut Value, part: &str) -> Result<&'v mut Vec<Value>> {
    value
        .as_array_mut()
        .ok_or_else(|| Problem::new(format!("{part:?} is looked for in what is not a list")))
}

/// What a part has to be for the next one to lead into it.
fn next_kind(rest: &[String], last: Kind) -> Kind {
    match rest.first().map(String::as_str) {
        None => last,
        Some(next) if next.starts_with('[') && next.ends_with(']') => Kind::List,
        Some(next) if next.parse::<usize>().is_ok() => Kind::List,
        Some(_) => Kind::Mapping,
    }
}
