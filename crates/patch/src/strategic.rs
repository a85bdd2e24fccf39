//! Strategic merge patch: merge patch for built-in kinds, whose schema says how lists merge.
//!
//! [`apply`] is what `application/strategic-merge-patch+json` does, [`diff()`] makes such a patch.
//! Directives in a patch:
//!
//! | directive | effect |
//! |---|---|
//! | `$patch: delete`, `replace` in an object | the object is emptied, or replaced by the rest of it |
//! | `$patch: delete` in a list item | the item with that merge key goes |
//! | `$patch: replace` in a list item | the list is replaced by the other items |
//! | `$retainKeys: […]` | members of the object that are not named go |
//! | `$deleteFromPrimitiveList/x: […]` | these values go from the list `x` |
//! | `$setElementOrder/x: […]` | the order that the items of `x` get |
//!
//! Custom resources have no such schema; servers refuse this content type for them.

use bellwether_schema::{PatchStrategy, Schema};
use serde_json::{Map, Value};
use thiserror::Error;

use crate::go_text;
use crate::typed::Type;

mod diff;
mod lists;
mod merge;

pub(crate) use diff::{DiffOptions, Part, diff_maps};
pub(crate) use merge::{Mode, merge_maps};

pub(crate) const PATCH: &str = "$patch";
pub(crate) const RETAIN_KEYS: &str = "$retainKeys";
pub(crate) const DELETE_FROM_LIST: &str = "$deleteFromPrimitiveList";
pub(crate) const SET_ELEMENT_ORDER: &str = "$setElementOrder";

/// Why a strategic merge patch was refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum StrategicError {
    /// The patch itself is wrong: a bad request (400).
    #[error("{0}")]
    BadRequest(&'static str),
    /// The patch asks for what cannot be done: unprocessable (422).
    #[error("{0}")]
    Unprocessable(&'static str),
    /// The patch does not fit the document; Kubernetes answers with an internal error (500).
    #[error("{0}")]
    Mismatch(String),
}

impl StrategicError {
    pub(crate) const BAD_DOCUMENT: Self = Self::BadRequest("invalid JSON document");
    pub(crate) const BAD_PRIMITIVE_LIST: Self =
        Self::BadRequest("invalid patch format of primitive list");
    pub(crate) const BAD_RETAIN_KEYS: Self = Self::BadRequest("invalid patch format of retainKeys");
    pub(crate) const BAD_ELEMENT_ORDER: Self =
        Self::BadRequest("invalid patch format of setElementOrder list");
    pub(crate) const LIST_OF_LISTS: Self = Self::Unprocessable("lists of lists are not supported");
    pub(crate) const TOO_DEEP: Self = Self::BadRequest("nested too deeply");

    pub(crate) fn wrong_type(expected: &Value, actual: &Value) -> Self {
        let expected = go_text::type_name(expected);
        let actual = match actual {
            // How Go prints the type of nothing.
            Value::Null => "%!s(<nil>)",
            other => go_text::type_name(other),
        };
        Self::Mismatch(format!("expected a {expected}, but received a {actual}"))
    }

    pub(crate) fn no_merge_key(item: &Map<String, Value>, key: &str) -> Self {
        let item = go_text::text(&Value::Object(item.clone()));
        Self::Mismatch(format!(
            "map: {item} does not contain declared merge key: {key}"
        ))
    }
}

/// Applies a strategic merge patch to a document of a kind.
pub fn apply(document: Value, patch: Value, schema: &Schema) -> Result<Value, StrategicError> {
    let (Value::Object(document), Value::Object(patch)) = (document, patch) else {
        return Err(StrategicError::BAD_DOCUMENT);
    };
    merge_maps(document, patch, Type::root(schema), Mode::Apply, 0).map(Value::Object)
}

/// The strategic merge patch that turns `original` into `modified`.
pub fn diff(original: &Value, modified: &Value, schema: &Schema) -> Result<Value, StrategicError> {
    let (Value::Object(original), Value::Object(modified)) = (original, modified) else {
        return Err(StrategicError::BAD_DOCUMENT);
    };
    let options = DiffOptions::of(Part::All);
    diff_maps(original, modified, Type::root(schema), options, 0).map(Value::Object)
}

/// How one field merges.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field<'s> {
    pub(crate) kind: Type<'s>,
    strategy: Option<&'s PatchStrategy>,
}

impl<'s> Field<'s> {
    pub(crate) fn lookup(parent: Type<'s>, name: &str) -> Result<Self, StrategicError> {
        let field = parent.field(name);
        if !field.allowed {
            return Err(StrategicError::Mismatch(format!(
                "unable to find api field in struct {} for the json field {name:?}",
                parent.name()
            )));
        }
        let strategy = match field.kind {
            Type::Known { schema, .. } => schema.patch.as_ref(),
            _ => None,
        };
        Ok(Self {
            kind: field.kind,
            strategy,
        })
    }

    pub(crate) fn merges(&self) -> bool {
        self.strategy.is_some_and(|strategy| strategy.merge)
    }

    pub(crate) fn retains_keys(&self) -> bool {
        self.strategy.is_some_and(|strategy| strategy.retain_keys)
    }

    pub(crate) fn merge_key(&self) -> Option<&'s str> {
        self.strategy
            .and_then(|strategy| strategy.merge_key.as_deref())
    }
}

#[cfg(test)]
mod tests;
