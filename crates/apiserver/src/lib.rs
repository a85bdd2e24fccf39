//! An embedded Kubernetes API server over the store.
//!
//! One [`ApiServer`] serves many clusters: a cluster is a keyspace of the store and a path,
//! `/clusters/NAME/…`; the hub is also at `/`. A request goes through [`server`](ApiServer::handle)
//! (whose cluster, who asks, may they), then to one generic handler that is driven by a table of
//! resources; what differs between kinds is asked of `kinds` or of a definition's schema.
//!
//! Nothing here decides by kind name outside `admission`, `services` and `housekeeping`.

mod access;
mod admission;
mod answer;
mod apart;
mod audit;
mod authenticate;
mod authorize;
mod body;
mod bootstrap;
mod changes;
mod client;

mod cluster;
mod coding;
mod context;
mod custom;
mod discovery;
mod endpoint;
mod frames;
mod handler;
mod housekeeping;
mod impersonate;
mod kubelet;
mod limits;
mod listen;
mod listing;
mod metadata;
mod metrics;
mod negotiate;
mod object;
mod openapi;
mod outgoing;
mod ownership;
mod params;
mod pki;
mod priority;
mod repeats;
mod request;
mod resource;
mod resources;
mod scope;
mod select;
mod server;
mod services;
mod status;
mod strategy;
mod table;
mod tls;
mod unstalled;
mod watching;

pub use access::{BootstrapToken, Identity, TokenKey};
pub use audit::AuditLog;
pub use authenticate::Caller;
pub use bellwether_runtime::Clock;
pub use changes::{Change, Changes, Subject as ChangedObject};
pub use client::ClusterService;
pub use cluster::Cluster;
pub use endpoint::kubernetes_version;
pub use kubelet::{Kubelet, LogLine, Usage};
pub use limits::Limits;
pub use listen::serve;
pub use object::StoredObject;
pub use outgoing::{Body, Interrupted};
pub use pki::{Authority, Credentials, PkiError};
pub use server::{ApiServer, HUB, ServerOptions};
pub use status::ApiError;
pub use tls::{TlsError, tls_config};
