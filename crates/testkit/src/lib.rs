//! What tests and benchmarks share. Nothing here is part of the product.
//!
//! | item | for |
//! |---|---|
//! | [`Embedded`] | a server in this process, with a hub |
//! | [`Clusters`] | a hub and members, embedded or real: objects, waiting, clients of controllers |
//! | [`RealCluster`], [`RealPair`], [`Assets`] | real control planes, where their programs are at hand, as with envtest |
//! | [`JsonClient`], [`objects`], [`Polling`] | objects of any kind as JSON, common ones, waiting for something |
//! | [`Counts`], [`Writes`] | how many requests controllers send; whether they fight over objects |
//! | [`place_all`], [`Usage`] | benchmarks: a placement that has chosen all clusters; what a process costs |
//! | [`process`] | commands that run to their end, and the lines of those that go on |
//! | [`GitServer`], [`SshServer`] | servers that sources are fetched from |
//! | [`Fuzzer`] | cases that engines stumble over |
//! | [`skip`] | tests that cannot run here, counted as skipped |

mod assets;
mod clusters;
mod counts;
mod embedded;
mod fuzz;
mod git_server;
mod json_client;
pub mod objects;
mod pair;
mod placed;
mod polling;
pub mod process;
mod real;
mod skip;
mod ssh_server;
mod usage;
mod writes;

pub use assets::Assets;
pub use clusters::{Clusters, MEMBER};
pub use counts::{Counting, Counts};
pub use embedded::{Embedded, START, leaping_clock, store_options};
pub use fuzz::{Found, Fuzzer, Random, SLOW};
pub use git_server::GitServer;
pub use json_client::JsonClient;
pub use pair::RealPair;
pub use placed::place_all;
pub use polling::Polling;
pub use real::RealCluster;
pub use skip::skip;
pub use ssh_server::SshServer;
pub use usage::Usage;
pub use writes::{MOST_WRITES, Watched, Writes};
