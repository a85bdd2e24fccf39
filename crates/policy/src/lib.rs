//! Policies of Open Cluster Management, as pure functions.
//!
//! [`template`] resolves the Go templates in policies: those of the hub (`{{hub … hub}}`) and those
//! of managed clusters (`{{ … }}`).

pub mod template;
