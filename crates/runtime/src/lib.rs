//! What every controller needs: the time, caches that watches keep up to date, a queue, a loop,
//! leadership, metrics.
//!
//! A controller watches kinds ([`Cache`], or [`follow`] if it keeps nothing). A change of an object puts
//! the keys that it concerns into a [`Queue`]; a [`Controller`] takes them out and reconciles them. Nothing
//! is polled: a key that has to be reconciled later says when, and one that failed is retried after a
//! wait that grows with every failure. [`Tasks`] notices when something ends that should not, and a
//! [`Candidate`] sees to it that of several processes one acts. A [`Recorder`] records events, and
//! [`write_status`] writes what was decided about an object, unless the object has changed.
//!
//! Objects of any kind are read and written by [`Objects`], named by [`Discovery`], and watched by
//! [`Watches`]; [`Delivery`] carries out what a pass over a set of them decides.
//!
//! A [`Rehearsal`] shows what controllers would write.
//!
//! Programs of users run in [`compute`], beside the tasks of the runtime.
//!
//! A cluster is a [`kube::Client`], real or embedded; nothing here can tell which. A process that serves
//! thousands of clusters has a [`ClusterHandle`] of each, which makes a client when one is needed.
//! [`read_kubeconfig`] says where clusters are, [`InCluster`] where the one is that a pod runs in; a [`Pacer`] slows requests down when
//! the server asks for it.

mod authority;
mod cache;
mod clock;
mod cluster_handle;
mod compute;
mod controller;
mod delivery;
pub mod discovery;
mod ensure;
mod events;
pub mod executor;
mod feed;
mod fence;
mod in_cluster;
mod key;
mod kubeconfig;
mod lease;
mod metrics;
pub mod objects;
mod outage;
mod pace;
mod queue;
mod rehearsal;
mod request_error;
mod retry;
mod supervise;
mod user_agent;
mod watches;
mod write;

pub use cache::{Cache, CacheEntry, Change, Subscription};
pub use clock::{Clock, Forward};
pub use cluster_handle::{ClientLease, ClusterHandle};
pub use compute::compute;
pub use controller::{Controller, Next, Reconcile};
pub use delivery::{Delivery, Keeper};
pub use discovery::{Discovery, SharedKinds};
pub use ensure::{api_of, covers, delete_if_present, ensure};
pub use events::{
    Correlator, EventDraft, EventLimit, EventType, EventWrite, Occurrence, Recorder,
    event_namespace,
};
pub use feed::{FeedError, FeedEvent, Selection, follow};
pub use fence::{Fence, Fenced};
pub use in_cluster::{InCluster, InClusterError, SERVICE_ACCOUNT_DIRECTORY};
pub use key::ObjectKey;
pub use kubeconfig::{KubeconfigError, parse_kubeconfig, read_kubeconfig};
pub use lease::{Candidate, Leadership, LeaseError, LeaseOptions};
pub use metrics::{ControllerMetrics, METRICS_CONTENT_TYPE, MetricsRegistry, SECONDS};
pub use objects::{Deleted, Objects};
pub use outage::Outage;
pub use pace::{Pace, Pacer};
pub use queue::Queue;
pub use rehearsal::{Effect, Rehearsal};
pub use request_error::{RequestError, in_time};
pub use retry::{ReconcileError, Retry, causes_of, label_of_code, retry_of_code, with_sources};
pub use supervise::{Ended, Tasks, spawn_vital};
pub use user_agent::with_user_agent;
pub use watches::Watches;
pub use write::{
    FIELD_MANAGER, created_by, delete_if_exists, patch_seen, unless_exists, unless_gone,
    write_status, written_by,
};
