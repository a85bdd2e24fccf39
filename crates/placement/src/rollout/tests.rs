//! Vectors and promises.

mod promises;
mod reasons;
mod strategies;
mod vectors;
