//! Tests of the crate from outside.

mod definitions;
mod samples;
mod status;
mod traits;
