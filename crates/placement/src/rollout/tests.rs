//! Vectors and promises.

mod promises;
mod vectors;
