//! The controllers of a hub and of its members: each observes, has something decided, and acts.
//!
//! | module | brings about |
//! |---|---|
//! | [`hub`] | what the controllers of a hub share: the client, the clock, caches |
//! | [`placement`] | PlacementDecisions for every Placement |
//!
//! A controller is a future that never ends; dropping it ends the controller. It knows its clusters
//! as `kube::Client`s, and cannot tell an embedded one from a real one. What is decided is in the
//! crates of the layer below; what is here reads, keeps in memory what it has read, and writes.

pub mod hub;
pub mod placement;

pub use hub::Hub;
