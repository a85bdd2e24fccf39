//! ApplicationConfigurations, the interface before Applications: what they are rendered to, and which of their objects are
//! applied again.
//!
//! | module | decides |
//! |---|---|
//! | [`apply_once`] | whether an object is applied or left as others changed it |
//! | [`component_revision`] | when a Component gets a new revision, and which revisions go |
//! | [`parameter`] | what the values of parameters make of a workload |
//! | [`render`] | the workloads and traits of an ApplicationConfiguration |
//! | [`data_passing`] | which values objects pass to each other, and what waits for them |
//! | [`ownership`] | whose an object is |
//! | [`record`] | what the status has on record, and what becomes of what is no longer wanted |
//!
//! The way is: [`render::render`] makes objects of the ApplicationConfiguration and its Components, [`apply_once::decide`] says for each
//! of them what to do, and [`record::workloads`] what the status says afterwards.

pub mod apply_once;
pub mod component_revision;
pub mod data_passing;
pub mod ownership;
pub mod parameter;
pub mod record;
pub mod render;
