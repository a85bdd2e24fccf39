//! kustomize as a pure function: a tree of files in, manifests out.
//!
//! [`build`] does what `kustomize build` does, with the same order of steps, the same hashes and the
//! same text ([`Build::to_yaml`]). Nothing is read here: a caller hands in a [`Tree`], and [`needs`]
//! says which files and remote bases it still lacks. The way through a build:
//!
//! 1. `kustomization` reads a file strictly, field by field.
//! 2. `build` collects resources, bases, generators and components of one directory, then runs the
//!    transformers on them, and hands the result to the directory that asked for it.
//! 3. At the top, hashes are added to the names of generated objects, references follow the names,
//!    variables are replaced, and objects are put in order.
//!
//! Exec and container plugins, `helmCharts` and Go plugins are refused with an error. Everything
//! from outside is bounded: see [`limits`].

mod build;
mod builtin_lists;
mod config;
mod config_defaults;
mod error;
mod field_spec;
mod generator;
mod hash;
mod id;
mod image;
mod kustomization;
pub mod limits;
mod merge_schema;
mod name_reference;
mod needs;
mod order;
mod origin;
mod patch;
mod path;
mod plugin;
pub mod probe;
mod replacement;
mod resource;
mod resource_list;
mod selector;
mod strategic;
mod transform;
mod tree;
mod value_path;
mod variable;

pub use build::{Build, Options, build};
pub use error::{Error, Problem};
pub use needs::{Needs, needs};
pub use order::Order;
pub use tree::Tree;
