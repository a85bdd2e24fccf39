//! The kinds that every cluster knows: schemas, defaults, validation, columns.
//!
//! What kube-apiserver compiles in about built-in kinds is here as data and small pure functions:
//! [`resources`] is the table, and a generic server calls the functions below in the order in which
//! kube-apiserver does. "What does the server do to a Deployment?" is answered by one file,
//! `apps/deployment.rs`; every group has a file or folder of its own.
//!
//! No function does I/O, reads a clock or draws a random number: the server passes in what it
//! decided.

#![cfg_attr(
    test,
    allow(clippy::needless_pass_by_value, reason = "tables are written in place")
)]

mod admission;
mod amounts;
mod apiextensions;
mod apiregistration;
mod apps;
mod autoscaling;
mod batch;
mod behaviour;
mod catalog;
mod certificates;
mod check;
mod columns;
mod coordination;
mod core;
mod discovery;
mod facts;
pub mod meta;
pub mod metrics;
pub mod names;
mod networking;
mod normalize;
mod policy;
mod printed;
mod rbac;
mod resource;
mod reviews;
mod scheduling;
pub mod security;
mod selector;
mod storage;
mod table;
mod value;

pub use amounts::Amounts;
pub use behaviour::{
    blank, default, from_storage, prepare_for_create, prepare_for_part_update, prepare_for_update,
    to_storage, validate, validate_part,
};
pub use catalog::type_schema;
pub use columns::{human, row};
pub use core::limit_range::{claim_beyond_limits, pod_beyond_limits, set_limits};
pub use core::pod::{DEFAULT_ACCOUNT, TOKEN_VOLUME, account_name, set_account, set_priority};
pub use core::service::{ServiceNeeds, service_needs, set_cluster_ip, set_node_port};
pub use core::usage as quota;
pub use resource::{
    ALL_VERBS, Column, Creation, FieldSelector, Generation, NameRule, Resource, SCALE, Storage,
    Subresource,
};
pub use table::{find, find_kind, resources};
