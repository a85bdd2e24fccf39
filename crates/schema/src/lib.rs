//! Structural schemas: validate, prune, default, and judge the schemas themselves.
//!
//! Everything behaves as in kube-apiserver 1.35, down to the texts of errors.
//!
//! | question | answer |
//! |---|---|
//! | What does a schema say? | [`Schema`], read by [`parse`] or [`Document`] |
//! | May a CustomResourceDefinition have it? | [`definition::check`] |
//! | What does a request to a custom resource become, and is it valid? | [`CompiledSchema`] |
//! | Can a body be decoded into a built-in kind? | [`decode::decode`] |
//! | How is it published? | [`publish`] |
//! | How is an error worded? | [`FieldError`], [`aggregate`] |
//!
//! A server keeps one [`CompiledSchema`] per version of a custom resource and calls, in this order,
//! [`CompiledSchema::coerce`], [`CompiledSchema::default`], [`CompiledSchema::validate_values`] and
//! [`CompiledSchema::validate_rules`].
//!
//! Nothing here knows about HTTP, names of objects or storage; rules for names and labels in the
//! metadata of embedded resources are passed in ([`embedded::MetadataCheck`]).

#![cfg_attr(
    test,
    allow(
        clippy::needless_pass_by_value,
        reason = "tables of cases hand over their values"
    )
)]

mod compiled;
mod correlate;
pub mod decode;
pub mod default;
pub mod definition;
pub mod document;
pub mod embedded;
pub mod field;
mod field_errors;
pub mod field_path;
mod format;
pub mod lists;
pub mod meta;
mod model;
mod number;
mod parse;
mod pattern;
mod printed;
pub mod prune;
pub mod publish;
mod rules;
mod structural;
pub mod text;
mod validate;

pub use compiled::{Change, CoerceError, CompiledSchema, RuleLimits, Unfinished};
pub use default::TooManyDefaults;
pub use document::Document;
pub use field::{Cause, FieldError, FieldErrorKind, FieldPath, aggregate};
pub use field_errors::{FieldErrors, MAX_FIELD_ERRORS, cap};
pub use model::{Limits, ListType, Logic, MapType, PatchStrategy, Rule, Schema, Type};
pub use parse::parse;
pub use rules::declare as declared_type;
