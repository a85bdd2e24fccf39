//! All tests of this crate that use it from outside, in one program: a program less to link is
//! seconds less to wait.

mod examples;
mod fuzz;
mod host;
mod laws;
mod refill;
mod refill_random;
mod refill_yield;
mod specs;
