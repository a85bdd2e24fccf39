//! What tests and benchmarks share. Nothing here is part of the product.
//!
//! [`Assets`] finds the programs of a real control plane, as envtest does; [`RealCluster`] runs
//! them, and [`Usage`] tells what a process costs.

mod assets;
mod real;
mod usage;

pub use assets::Assets;
pub use real::RealCluster;
pub use usage::Usage;
