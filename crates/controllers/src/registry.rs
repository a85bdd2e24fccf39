//! The controllers of a hub and its admission, one line each: what `--controllers`, help and readiness
//! are made from, and what an embedded API server and the webhook server call.

use std::collections::BTreeSet;
use std::sync::Arc;

use bellwether_api::admission::Admission;
use bellwether_placement::admission::FleetAdmission;
use bellwether_work::admission::WorkAdmission;
use futures::FutureExt as _;
use futures::future::BoxFuture;

use crate::hub::Hub;
use crate::{cluster_set, placement, registration, replica_set, work_config, work_ttl};

/// A controller of a hub.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Its name on the command line, in logs and in metrics.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// Runs it until it is dropped.
    pub run: fn(Hub, &HubOptions) -> BoxFuture<'static, ()>,
}

/// What controllers can be told by flags.
#[derive(Debug, Clone, Default)]
pub struct HubOptions {
    /// Users whose clusters join without somebody accepting them.
    pub auto_approved: BTreeSet<String>,
    /// What the hub makes of clusters that stop renewing their leases.
    pub clusters: registration::clusters::Options,
}

/// All controllers of a hub.
pub const HUB: &[Entry] = &[
    Entry {
        name: "certificate-approval",
        about: "approves certificate requests of agents that may have them",
        run: |hub, options| registration::requests::run(hub, options.auto_approved.clone()).boxed(),
    },
    Entry {
        name: "cluster-set",
        about: "keeps the default sets, and reports which clusters sets and bindings have",
        run: |hub, _| cluster_set::run(hub).boxed(),
    },
    Entry {
        name: "placement",
        about: "chooses clusters for placements",
        run: |hub, _| placement::run(hub).boxed(),
    },
    Entry {
        name: "registration",
        about: "grants accepted clusters their rights, and watches their heartbeats",
        run: |hub, options| registration::clusters::run(hub, options.clusters.clone()).boxed(),
    },
    Entry {
        name: "replica-set",
        about: "creates works for the clusters that placements choose, and rolls changes out",
        run: |hub, _| replica_set::run(hub).boxed(),
    },
    Entry {
        name: "work-config",
        about: "reports which of several configurations for a kind is used",
        run: |hub, _| work_config::run(hub).boxed(),
    },
    Entry {
        name: "work-ttl",
        about: "deletes complete works after their time to live, where agents do not",
        run: |hub, _| work_ttl::run(hub).boxed(),
    },
];

/// All rules that writes to a hub have to pass. The embedded API server calls them itself; for a real
/// one the webhook server does.
pub fn admission() -> Vec<Arc<dyn Admission>> {
    vec![Arc::new(FleetAdmission), Arc::new(WorkAdmission)]
}
