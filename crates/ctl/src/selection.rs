//! Which objects a command is about: `TYPE`, `TYPE NAME…`, `TYPE/NAME…`, by labels or fields.

use crate::error::Error;
use crate::types::{Type, Types};

/// Where to look, and for what.
#[derive(Debug, Clone, Default)]
pub struct Scope {
    /// The namespace of objects that have one.
    pub namespace: String,
    /// In all namespaces.
    pub all_namespaces: bool,
    /// Only objects with such labels.
    pub labels: String,
    /// Only objects with such fields.
    pub fields: String,
}

impl Scope {
    /// The namespace to ask for, unless it is all of them.
    pub(crate) fn namespace(&self) -> Option<&str> {
        (!self.all_namespaces).then_some(self.namespace.as_str())
    }
}

/// One object, or all of a type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The type.
    pub kind: Type,
    /// The object; all if absent.
    pub name: Option<String>,
}

/// What the words after a command stand for.
pub(crate) fn targets(types: &Types, words: &[String]) -> Result<Vec<Target>, Error> {
    let Some((first, rest)) = words.split_first() else {
        return Err(Error::Usage(
            "say which objects: TYPE, TYPE NAME or TYPE/NAME".to_owned(),
        ));
    };
    if words.iter().any(|word| word.contains('/')) {
        return words.iter().map(|word| slashed(types, word)).collect();
    }
    let mut kinds = Vec::new();
    for word in first.split(',').filter(|word| !word.is_empty()) {
        kinds.extend(types.find_all(word)?);
    }
    let target = |kind: &Type, name: Option<&String>| Target {
        kind: kind.clone(),
        name: name.cloned(),
    };
    if rest.is_empty() {
        return Ok(kinds.into_iter().map(|kind| target(kind, None)).collect());
    }
    let named = kinds
        .iter()
        .flat_map(|kind| rest.iter().map(|name| target(kind, Some(name))));
    Ok(named.collect())
}

fn slashed(types: &Types, word: &str) -> Result<Target, Error> {
    match word.split_once('/') {
        Some((kind, name)) if !name.is_empty() && !name.contains('/') => Ok(Target {
            kind: types.find(kind)?.clone(),
            name: Some(name.to_owned()),
        }),
        _ => Err(Error::Usage(format!(
            "\"{word}\": where one argument is TYPE/NAME, all have to be"
        ))),
    }
}
