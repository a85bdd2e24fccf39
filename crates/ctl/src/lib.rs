//! Everyday commands on the objects of a cluster, for people without kubectl: the same words, the
//! same output.
//!
//! [`Connection`] finds the cluster, [`Types`] knows what it serves, and each command is a module:
//! [`apply`], [`get`], [`delete`], [`wait`], [`describe`]. What they print goes to a writer, so that
//! a test can read it. [`explain`] is for objects of a fleet: where they stand, and why.

pub mod apply;
mod connection;
pub mod delete;
pub mod describe;
mod dry_run;
mod error;
pub mod explain;
pub mod get;
mod manifests;
pub mod near;
mod output;
mod request;
mod selection;
mod table;
mod types;
pub mod wait;

pub use connection::{Connection, Locator, Unreachable};
pub use dry_run::DryRun;
pub use error::Error;
pub use manifests::{Manifest, read_manifests};
pub use output::Output;
pub use selection::{Scope, Target};
pub use table::write as write_table;
pub use types::{Type, Types};
