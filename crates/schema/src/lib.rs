//! Structural schemas: validate, prune, default

mod correlate;
pub mod decode;
pub mod default;
pub mod document;
pub mod embedded;
pub mod field;
mod format;
pub mod lists;
pub mod meta;
mod model;
mod number;
mod parse;
mod pattern;
pub mod prune;
pub mod text;
mod validate;

pub use document::Document;
pub use field::{Cause, FieldError, FieldErrorKind, FieldPath, aggregate};
pub use model::{Limits, ListType, Logic, MapType, PatchStrategy, Rule, Schema, Type};
pub use parse::parse;
