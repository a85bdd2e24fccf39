//! Simulated workloads: what kubelets, a scheduler and workload controllers would do, on clusters
//! that run nothing.
//!
//! [`Simulator::start`], then [`Simulator::add`] for each cluster: from then on its deployments get
//! replica sets, these get pods, pods start and become ready, jobs end, claims are bound, services
//! get endpoints, and everybody who watches sees the conditions, reasons and events that Kubernetes
//! would show. Annotations on a workload or its pod template say how long things take and what goes
//! wrong ([`bellwether_api::simulator`]).
//!
//! # How it works
//!
//! A decision is a pure function over plain values in a module of its own (`deployment`,
//! `replica_set`, `pod`, …): what there is and what time it is go in, a `plan` comes out. Around them
//! is a thin shell: `member` knows what there is, `observe` picks what a decision may look at, `act`
//! does what was decided through an ordinary `kube::Client`, which passes all checks of the server.
//!
//! # What it costs
//!
//! One queue and one set of workers serve all clusters. A cluster has one task, which sleeps on one
//! feed of all changes ([`Cluster::changes`](bellwether_apiserver::Cluster::changes)) instead of a
//! watch for each of the kinds; a client is there only while there is something
//! to write. Nothing is polled: whatever happens later is a time in the queue. So an idle cluster
//! costs some tens of kilobytes, most of them for its Node, and no processor time at all.
//!
//! # What it does not do
//!
//! It runs no containers, and therefore no probes: readiness is a matter of time. Logs and what pods use
//! are made up to fit their state (`kubelet`); autoscalers keep to their bounds. It knows no
//! priorities, preemption, affinity between pods or topology spread. Nodes send no heartbeats and do not fail.

#![cfg_attr(
    test,
    allow(clippy::needless_pass_by_value, reason = "tables are written in place")
)]

mod account;
mod act;
mod autoscaler;
mod behaviour;
mod certificate;
mod claim;
mod cron_job;
mod daemon_set;
mod deployment;
mod disruption;
mod events;
mod follow;
mod hash;
mod job;
mod kind;
mod kubelet;
mod member;
mod node;
mod observe;
mod plan;
mod pod;
mod pods;
mod replica_set;
mod revision;
mod route;
mod scale;
mod scheduler;
mod select;
mod service;
mod simulator;
mod stateful_set;
mod time;
mod world;

pub use simulator::Simulator;
