//! Structural schemas: validate, prune, default

mod model;

pub use model::{
    Limits, ListType, Logic, MapType, PatchStrategy, Rule, Schema, Type,
};
