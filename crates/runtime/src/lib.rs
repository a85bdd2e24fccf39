//! What every controller needs: the time, a cache that a watch keeps true, a queue, a loop.
//!
//! A controller watches kinds ([`Cache`], or [`follow`] for those who keep nothing); a change of an object puts the keys that it concerns
//! into a [`Queue`]; [`run`] takes them out one by one and has them looked at. Nothing is polled: a
//! key that has to be looked at later says when, and one that failed comes back after a while that
//! grows with every failure.
//!
//! A cluster is a [`kube::Client`], real or embedded; nothing here can tell which. Who looks after many
//! clusters has a [`Reach`] of each, which makes a client when one is needed. [`read_kubeconfig`] says where
//! clusters are.

mod cache;
mod clock;
mod controller;
mod feed;
mod key;
mod kubeconfig;
mod queue;
mod reach;

pub use cache::{Cache, Change, Kept};
pub use clock::{Clock, Forward};
pub use controller::{Next, Reconcile, run};
pub use feed::{FeedError, News, Selection, follow};
pub use key::ObjectKey;
pub use kubeconfig::{KubeconfigError, parse_kubeconfig, read_kubeconfig};
pub use queue::Queue;
pub use reach::{Hold, Reach};
