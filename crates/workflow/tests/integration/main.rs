//! All tests of this crate that use it from outside, in one program.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests fail as tests do"
)]

mod crashes;
mod engine;
mod packages;
mod promises;
mod steps;
mod world;
