//! All tests of this crate that use it from outside, in one program: a program less to link is
//! seconds less to wait.

#[macro_use]
mod fleet;
mod application_configurations;
mod applications;
mod applications_outside;
mod attempts;
mod common;
mod placement;
mod policies;
mod policy_agent;
mod real;
mod registration;
mod rights;
mod templates;
mod work_examples;
mod work_faults;
mod workflow_effects;
mod workflow_kills;
mod workflow_runs;
mod works;
