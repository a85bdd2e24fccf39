//! All tests of this crate that use it from outside, in one program: a program less to link is
//! seconds less to wait.

mod admission;
mod application;
mod cli;
mod clusters;
mod examples;
mod fleet;
mod leadership;
mod policies;
mod pressure;
mod real;
mod templates;
mod workflows;
