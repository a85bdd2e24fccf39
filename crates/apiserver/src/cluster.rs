//! One cluster of many: its objects, its resources, and who may do what in it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use bellwether_api::admission::Admission;
use bellwether_store::Keyspace;
use jiff::SignedDuration;
use parking_lot::{Mutex, RwLock};

use crate::access::{Authorizer, Issuers};
use crate::admission::dynamic::Configurations;
use crate::custom::{DefinitionCache, Served};
use crate::kubelet::Kubelet;
use crate::object::StoredObject;
use crate::resources::{Resources, measured};
use bellwether_runtime::Clock;

/// A cluster in the store. An idle one costs a few kilobytes: schemas and tables are shared.
pub struct Cluster {
    name: String,
    keyspace: Keyspace<StoredObject>,
    resources: RwLock<Resources>,
    /// What `resources` are made of; held while they are rebuilt.
    served: Mutex<Served>,
    authorizer: Authorizer,
    /// Rules that the program brings along, shared with the other clusters.
    admissions: Arc<[Arc<dyn Admission>]>,
    /// What webhooks and policies its objects configure.
    configurations: Configurations,
    /// Who signs certificates and tokens, shared with the other clusters.
    issuers: Arc<Issuers>,
    /// Compiled definitions, shared with the other clusters.
    definitions: Arc<DefinitionCache>,
    clock: Clock,
    event_time_to_live: SignedDuration,
    /// Held while something is counted against a quota.
    quotas: tokio::sync::Mutex<()>,
    /// Whether somebody creates the default service accounts of namespaces.
    keeps_accounts: AtomicBool,
    /// Answers for the nodes, if there are any.
    kubelet: OnceLock<Arc<dyn Kubelet>>,
}

/// What all clusters of a server have in common.
#[derive(Clone)]
pub(crate) struct Shared {
    /// Rules that the program brings along.
    pub(crate) admissions: Arc<[Arc<dyn Admission>]>,
    /// Compiled definitions.
    pub(crate) definitions: Arc<DefinitionCache>,
    /// Who signs certificates and tokens.
    pub(crate) issuers: Arc<Issuers>,
    /// The time.
    pub(crate) clock: Clock,
    /// How long events are kept.
    pub(crate) event_time_to_live: SignedDuration,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

impl Cluster {
    /// A cluster over its part of the store, with the resources that its definitions give it.
    pub(crate) fn new(name: &str, keyspace: Keyspace<StoredObject>, shared: Shared) -> Arc<Self> {
        let cluster = Self {
            name: name.to_owned(),
            authorizer: Authorizer::new(keyspace.clone()),
            resources: RwLock::new(Resources::with_custom(Vec::new())),
            served: Mutex::default(),
            keyspace,
            admissions: shared.admissions,
            configurations: Configurations::default(),
            definitions: shared.definitions,
            issuers: shared.issuers,
            clock: shared.clock,
            event_time_to_live: shared.event_time_to_live,
            quotas: tokio::sync::Mutex::default(),
            keeps_accounts: AtomicBool::new(false),
            kubelet: OnceLock::new(),
        };
        cluster.refresh_resources();
        Arc::new(cluster)
    }

    /// Name in paths and kubeconfigs.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The objects.
    pub(crate) fn keyspace(&self) -> &Keyspace<StoredObject> {
        &self.keyspace
    }

    /// The resources of this moment; a snapshot that is cheap to take.
    pub(crate) fn resources(&self) -> Resources {
        self.resources.read().clone()
    }

    pub(crate) fn authorizer(&self) -> &Authorizer {
        &self.authorizer
    }

    /// Rules that the program brings along.
    pub(crate) fn admissions(&self) -> &Arc<[Arc<dyn Admission>]> {
        &self.admissions
    }

    /// Webhooks and policies that objects configure.
    pub(crate) fn configurations(&self) -> &Configurations {
        &self.configurations
    }

    pub(crate) fn issuers(&self) -> &Issuers {
        &self.issuers
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The lock of those who count against quotas.
    pub(crate) fn quotas(&self) -> &tokio::sync::Mutex<()> {
        &self.quotas
    }

    /// Lets pods run as service accounts from now on: somebody creates the default account of every
    /// namespace.
    pub fn keep_accounts(&self) {
        self.keeps_accounts.store(true, Ordering::Release);
    }

    /// Whether pods run as service accounts.
    pub(crate) fn keeps_accounts(&self) -> bool {
        self.keeps_accounts.load(Ordering::Acquire)
    }

    /// Lets somebody answer for the nodes: there are logs from now on, and `metrics.k8s.io`. The first
    /// one stays.
    pub fn attach_kubelet(&self, kubelet: Arc<dyn Kubelet>) {
        let _turn = self.served.lock();
        if self.kubelet.set(kubelet).is_ok() {
            // The definitions are as they were: they need not be read again.
            let mut resources = self.resources.write();
            let custom = resources.custom().iter().cloned();
            let all = custom.chain(measured()).collect();
            *resources = Resources::with_custom(all);
        }
    }

    /// Who answers for the nodes.
    pub(crate) fn kubelet(&self) -> Option<&dyn Kubelet> {
        self.kubelet.get().map(AsRef::as_ref)
    }

    /// How long events are kept.
    pub(crate) fn event_time_to_live(&self) -> SignedDuration {
        self.event_time_to_live
    }

    /// Reads the definitions that have changed. Called after each write of one, before it is answered, so that
    /// a client that has created a definition can use it at once.
    pub(crate) fn refresh_resources(&self) {
        // One after the other: what was read earlier must not replace what was read later.
        let mut served = self.served.lock();
        let mut custom = served.refresh(&self.keyspace, &self.definitions);
        if self.kubelet.get().is_some() {
            custom.extend(measured());
        }
        *self.resources.write() = Resources::with_custom(custom);
    }
}
