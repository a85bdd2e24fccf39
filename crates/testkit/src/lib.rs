//! What tests and benchmarks share. Nothing here is part of the product.
//!
//! [`Embedded`] is a hub in this process; [`Assets`] finds the programs of a real control plane, as envtest does; [`RealCluster`] runs
//! them, [`GitServer`] serves repositories, [`Usage`] tells what a process costs, [`Writes`] finds controllers that fight, [`Fuzzer`]
//! looks for cases that engines stumble over, and [`skip`] counts tests that cannot run here.

mod assets;
mod embedded;
mod fuzz;
mod git_server;
mod real;
mod skip;
mod ssh_server;
mod usage;
mod writes;

pub use assets::Assets;
pub use embedded::{Embedded, START, leaping_clock, store_options};
pub use fuzz::{Found, Fuzzer, Random, SLOW};
pub use git_server::GitServer;
pub use real::RealCluster;
pub use skip::skip;
pub use ssh_server::SshServer;
pub use usage::Usage;
pub use writes::{MOST_WRITES, Watched, Writes};
