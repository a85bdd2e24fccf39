//! JSON values for everyone else: YAML in and out, strict JSON, quantities, paths, selectors, time.
//!
//! Everything here works on [`serde_json::Value`], knows the conventions of Kubernetes and does no
//! I/O. Each module stands on its own:
//!
//! | module | for |
//! |---|---|
//! | [`yaml`] | reading and writing YAML as kubectl does |
//! | [`strict`] | reading JSON with duplicate keys reported and Go's error texts |
//! | [`marshal`] | writing JSON as Go does |
//! | [`number`] | integers and floats as Kubernetes tells them apart |
//! | [`path`] | reading, setting and removing what is deep inside a value |
//! | [`quantity`] | amounts of resources |
//! | [`equality`] | whether two values mean the same |
//! | [`label`], [`field`] | label and field selectors |
//! | [`name`] | what Kubernetes accepts as names |
//! | [`duration`], [`time`] | Go's durations and Kubernetes' timestamps |

pub mod equality;
pub mod field;
pub mod label;
pub mod marshal;
pub mod name;
pub mod number;
pub mod path;
pub mod quantity;
pub mod strict;
pub mod time;
pub mod yaml;

pub use bellwether_go::duration;
