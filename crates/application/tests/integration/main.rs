//! Tests of the crate from outside.

mod definitions;
mod samples;
