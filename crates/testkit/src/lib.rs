//! What tests and benchmarks share. Nothing here is part of the product.
//!
//! [`Assets`] finds the programs of a real control plane, as envtest does; [`RealCluster`] runs
//! them, [`Usage`] tells what a process costs, [`Writes`] finds controllers that fight, [`Fuzzer`] looks for cases
//! that engines stumble over, and [`skip`] counts tests that cannot run here.

mod assets;
mod fuzz;
mod real;
mod skip;
mod usage;
mod writes;

pub use assets::Assets;
pub use fuzz::{Found, Fuzzer, Random, SLOW};
pub use real::RealCluster;
pub use skip::skip;
pub use usage::Usage;
pub use writes::{MOST_WRITES, Watched, Writes};
