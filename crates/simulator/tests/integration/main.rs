//! All tests of this crate that use it from outside, in one program: a program less to link is
//! seconds less to wait.

mod common;
mod deployments;
mod jobs;
mod peer;
mod workloads;
