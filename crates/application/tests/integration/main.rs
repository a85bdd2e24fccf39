//! Tests of the crate from outside.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

mod definitions;
mod samples;
mod status;
mod traits;
