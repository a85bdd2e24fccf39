//! Structural schemas: validate, prune, default

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

pub use compiled::{Change, CoerceError, CompiledSchema};
pub use document::Document;
pub use field::{Cause, FieldError, FieldErrorKind, FieldPath, aggregate};
pub use model::{Limits, ListType, Logic, MapType, PatchStrategy, Rule, Schema, Type};
pub use parse::parse;
