//! Structural schemas: validate, prune, default

pub mod field;
mod model;
pub mod text;

pub use field::{Cause, FieldError, FieldErrorKind, FieldPath, aggregate};
pub use model::{Limits, ListType, Logic, MapType, PatchStrategy, Rule, Schema, Type};
