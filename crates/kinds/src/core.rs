//! The core group.

pub(crate) mod config;
pub(crate) mod endpoints;
pub(crate) mod event;
pub(crate) mod limit_range;
pub(crate) mod namespace;
pub(crate) mod node;
pub(crate) mod pod;
pub(crate) mod pod_template;
pub(crate) mod quota;
pub(crate) mod replication_controller;
pub(crate) mod service;
pub(crate) mod service_account;
pub mod usage;
pub(crate) mod volume;
