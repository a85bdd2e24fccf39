//! Helm charts as values: files in, manifests out.
//!
//! [`Chart`] is a loaded chart, from the files of a directory or from a packed archive.
//! [`ValueSources::merge`] lays files and flags over one another, and [`template`] does what `helm
//! template` does: dependencies, values, schemas, templates, hooks and their order. Templates are
//! executed by `bellwether_template` under its budget; what they look up is asked for
//! ([`Templated::Needs`]) and never fetched.
//!
//! [`index`] and [`oci`] read what repositories and registries answer; fetching is up to callers.

mod archive;
mod capabilities;
mod chart;
mod dependencies;
mod error;
mod files;
mod functions;
mod glob;
pub mod gotemplate;
mod ignore;
pub mod index;
mod lint;
mod lock;
mod manifest;
mod metadata;
mod objects;
pub mod oci;
pub mod probe;
mod render;
mod schema;
mod set;
mod template;
mod values;

pub use archive::archive_files;
pub use chart::{Chart, File};
pub use error::Error;
pub use lint::{Finding, Severity, lint, lint_metadata};
pub use lock::Lock;
pub use manifest::{Hook, Manifest};
pub use metadata::{Dependency, Maintainer, Metadata};
pub use template::{NoCluster, Release, Request, Templated, ValueSources, template};
