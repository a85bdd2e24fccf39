//! All ways to change a Kubernetes object, as pure functions over JSON values.
//!
//! | content type of a request | module |
//! |---|---|
//! | `application/json-patch+json` | [`json_patch`] |
//! | `application/merge-patch+json` | [`merge`] |
//! | `application/strategic-merge-patch+json` | [`strategic`] |
//! | `application/apply-patch+yaml` | [`managed::apply`] |
//!
//! After every write but an apply [`managed::update`] records who owns what. [`FieldSet`] is the form
//! in which ownership is kept. [`three_way`] makes the patch that a client-side apply sends.
//!
//! Nothing here reads a clock, parses YAML or fills in defaults; recursion is bounded by
//! [`MAX_DEPTH`], so that no input can exhaust the stack.

pub mod fieldset;
mod go_text;
pub mod json_patch;
pub mod managed;
pub mod merge;
pub mod path;
pub mod strategic;
#[cfg(test)]
mod testing;
pub mod three_way;
mod typed;
mod value;

pub use fieldset::FieldSet;
pub use path::{Path, PathElement};

use thiserror::Error;

/// How deep a value may be nested before it is refused.
pub const MAX_DEPTH: usize = 256;

/// A value is nested deeper than [`MAX_DEPTH`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error("nested deeper than {MAX_DEPTH} levels")]
pub struct TooDeep;
