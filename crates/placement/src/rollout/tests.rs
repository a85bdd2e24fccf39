//! Vectors and promises.

mod any_input;
mod promises;
mod reasons;
mod strategies;
mod vectors;
