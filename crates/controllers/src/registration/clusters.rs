//! The hub's side of membership: rights, heartbeats, taints, and what is left to be cleaned up.
//!
//! Cost follows change: an idle cluster costs the hub one heartbeat a minute, which it reads from a
//! watch.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bellwether_api::cluster::names::{event, label, object};
use bellwether_api::cluster::{GROUP, ManagedCluster, ManagedClusterSet};
use bellwether_api::meta::ObjectMeta;
use bellwether_runtime::{
    Cache, Controller, EventDraft, Next, ObjectKey, Queue, Reconcile, Recorder, created_by,
    delete_if_exists, delete_if_present, ensure, patch_seen, unless_exists, write_status,
};
use futures::FutureExt as _;
use futures::future::try_join_all;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{DeleteParams, ListParams};
use kube::{Api, Client, ResourceExt as _};
use parking_lot::Mutex;
use serde_json::json;

pub use super::cleanup::force_removal;
use super::cleanup::{self, Load};
use super::decide::{self, Action, Observed, Plan};
use super::guard::{self, Touched};
pub use super::heartbeats::LossThreshold;
use super::leases::Leases;
pub use super::leases::Metrics;
use super::rights::{self, ClusterAccess};
use super::{cluster_events, loss};
use crate::hub::Hub;
use crate::registry::{EVENTS, Entry, Rule, Watched};

/// How many clusters are looked after at a time: enough that their writes share commits.
const WORKERS: usize = 16;

/// What may be set about the hub's side of membership.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// When a loss of heartbeats is taken for the hub's own fault.
    pub loss_threshold: LossThreshold,
    /// Where heartbeats are counted.
    pub metrics: Arc<Metrics>,
}

/// The controller of clusters.
pub const ENTRY: Entry = Entry {
    name: "registration",
    about: "grants accepted clusters their rights, and watches their heartbeats",
    watches: &[
        Watched::kind::<ManagedCluster>(),
        Watched::kind::<ManagedClusterSet>(),
    ],
    rights: &[
        EVENTS,
        Rule {
            group: GROUP,
            resources: &["managedclusters"],
            verbs: &["patch"],
        },
        Rule {
            group: GROUP,
            resources: &["managedclusters/status", "managedclustersets/status"],
            verbs: &["patch"],
        },
        Rule {
            group: "",
            resources: &["namespaces"],
            verbs: &["get", "create", "patch"],
        },
        // Members get rights that the hub itself does not use.
        Rule {
            group: "rbac.authorization.k8s.io",
            resources: &["clusterroles"],
            verbs: &[
                "get", "list", "watch", "create", "patch", "delete", "bind", "escalate",
            ],
        },
        Rule {
            group: "rbac.authorization.k8s.io",
            resources: &["clusterrolebindings", "rolebindings"],
            verbs: &["get", "list", "watch", "create", "patch", "delete"],
        },
        Rule {
            group: "coordination.k8s.io",
            resources: &["leases"],
            verbs: &["get", "list", "watch", "create", "delete"],
        },
        Rule {
            group: "certificates.k8s.io",
            resources: &["certificatesigningrequests"],
            verbs: &["list", "delete"],
        },
        Rule {
            group: bellwether_api::work::GROUP,
            resources: &["manifestworks"],
            verbs: &["list", "delete"],
        },
        Rule {
            group: bellwether_api::multicluster::GROUP,
            resources: &["works"],
            verbs: &["list", "delete"],
        },
        Rule {
            group: bellwether_api::addon::GROUP,
            resources: &["managedclusteraddons"],
            verbs: &["list", "delete"],
        },
    ],
    run: |hub, options| run(hub, options.clusters.clone()).boxed(),
};

/// Reconciles the clusters of a hub, until cancelled.
///
/// Every member gets a whole grace period from the start of this future: a process that takes over from
/// another starts it when it takes over, and judges nobody by what the other one saw.
pub async fn run(hub: Hub, options: Options) {
    let controller = Controller::new(ENTRY.name, &hub.clock, &hub.metrics);
    let queue = controller.queue();
    let leases = Leases::follow(&hub, &queue, options.loss_threshold, &options.metrics);
    let clusters = hub.cache::<ManagedCluster>();
    let membership = Arc::new(Membership {
        events: hub.recorder(ENTRY.name),
        clusters: clusters.clone(),
        leases: Arc::new(leases),
        has_shared_roles: AtomicBool::new(false),
        granted: Mutex::default(),
        touched: Mutex::default(),
        hub,
    });
    let events = membership.events.clone();
    controller
        .on(&clusters, move |change| {
            cluster_events::record(&events, change);
            [Key::Cluster(change.key.name.clone())]
        })
        .after(membership.leases.cache())
        .begin_with(|| [Key::SharedRoles])
        .beside(Arc::clone(&membership).guard(queue.clone()))
        .beside(Arc::clone(&membership.leases).run(queue))
        .beside(Arc::clone(&membership).publish_losses())
        .workers(WORKERS)
        .run(membership)
        .await;
}

/// What is reconciled.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    /// The roles that all agents share.
    SharedRoles,
    /// A cluster, and what it may do.
    Cluster(Arc<str>),
}

impl std::fmt::Display for Key {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::SharedRoles => formatter.write_str("roles of all agents"),
            Self::Cluster(name) => formatter.write_str(name),
        }
    }
}

/// Writes the roles that all agents share.
pub async fn ensure_shared(client: &Client) -> Result<(), kube::Error> {
    let roles = rights::shared();
    try_join_all(roles.iter().map(|role| ensure(client, role))).await?;
    Ok(())
}

struct Membership {
    hub: Hub,
    clusters: Cache<ManagedCluster>,
    leases: Arc<Leases>,
    /// True if the roles that all agents share have been written since the start.
    has_shared_roles: AtomicBool,
    /// Clusters whose rights have been written since the start, and whom nobody touched since.
    granted: Mutex<HashSet<(Arc<str>, bool)>>,
    /// Clusters whose rights somebody else may have touched.
    touched: Mutex<HashSet<Arc<str>>>,
    events: Recorder,
}

impl Reconcile for Membership {
    type Key = Key;
    type Error = kube::Error;

    async fn reconcile(&self, key: &Key) -> Result<Next, kube::Error> {
        match key {
            Key::SharedRoles => self.write_shared_roles().await.map(|()| None),
            Key::Cluster(name) => self.reconcile_cluster(name).await,
        }
    }
}

impl Membership {
    async fn write_shared_roles(&self) -> Result<(), kube::Error> {
        ensure_shared(&self.hub.client).await?;
        self.has_shared_roles.store(true, Ordering::Release);
        Ok(())
    }

    async fn reconcile_cluster(&self, name: &Arc<str>) -> Result<Next, kube::Error> {
        // Bindings need the roles that they name.
        if !self.has_shared_roles.load(Ordering::Acquire) {
            self.write_shared_roles().await?;
        }
        let key = ObjectKey::cluster_scoped(name);
        let Some(cluster) = self.clusters.get(&key) else {
            self.forget(name);
            return Ok(None);
        };
        if self.leases.contact(name).is_silent && decide::is_silence_unrecorded(&cluster) {
            self.leases.confirm_silence(name).await?;
        }
        let works = if decide::needs_remains(&cluster) {
            Some(cleanup::loads(&self.hub.client, name).await?)
        } else {
            None
        };
        let plan = decide::decide(&Observed {
            cluster: &cluster,
            has_lease: self.leases.has_lease(name),
            contact: self.leases.contact(name),
            skew: self.leases.skew(name),
            remains: works.as_deref().map(cleanup::remains),
            now: self.hub.clock.now(),
        });
        self.execute(name, &cluster, &plan, works.as_deref())
            .await?;
        Ok(plan.wake_at)
    }

    /// Reconciles the rights that somebody touches.
    async fn guard(self: Arc<Self>, queue: Queue<Key>) {
        guard::watch(&self.hub.client, |touched| {
            self.reconcile_touched(&touched, &queue);
        })
        .await;
    }

    async fn publish_losses(self: Arc<Self>) {
        loss::publish(&self.hub, &self.leases, &self.events).await;
    }

    /// A cluster is gone: if it comes again, it is a new one.
    fn forget(&self, name: &Arc<str>) {
        self.leases.forget(name);
        self.touched.lock().remove(name);
        self.granted.lock().retain(|(known, _)| known != name);
    }

    /// Somebody touched rights: they are read again, and repaired if need be.
    fn reconcile_touched(&self, touched: &Touched, queue: &Queue<Key>) {
        let mut granted = self.granted.lock();
        let is_meant = |name: &Arc<str>| match touched {
            Touched::Cluster(cluster) => cluster == name,
            Touched::Shared => false,
            Touched::Anybody => true,
        };
        let names: Vec<Arc<str>> = granted.iter().map(|(name, _)| name.clone()).collect();
        granted.retain(|(name, _)| !is_meant(name));
        drop(granted);
        for name in names.into_iter().filter(is_meant) {
            self.touched.lock().insert(name.clone());
            queue.add(Key::Cluster(name));
        }
        if !matches!(touched, Touched::Cluster(_)) {
            queue.add(Key::SharedRoles);
        }
    }

    async fn execute(
        &self,
        name: &Arc<str>,
        cluster: &ManagedCluster,
        plan: &Plan,
        works: Option<&[Load]>,
    ) -> Result<(), kube::Error> {
        for action in &plan.actions {
            let done = match action {
                Action::CleanUp => {
                    let works = works.unwrap_or_default();
                    cleanup::delete_next(&self.hub.client, name, works).await
                }
                Action::Grant(standing) => self.grant(name, cluster, *standing).await,
                Action::Revoke => self.revoke(name).await,
                Action::CreateLease => self.create_lease(name).await,
                Action::Remove => self.remove(name).await,
            };
            if let Err(error) = done {
                self.report_failure(cluster, *action, &error).await;
                return Err(error);
            }
        }
        let clusters: Api<ManagedCluster> = Api::all(self.hub.client.clone());
        let mut written = None;
        if let Some(conditions) = &plan.conditions {
            let status = json!({ "conditions": conditions });
            written = write_status(&clusters, cluster, &status).await?;
        }
        if let Some(patch) = &plan.patch {
            let seen = written.as_ref().unwrap_or(cluster);
            patch_seen(&clusters, seen, patch.clone()).await?;
        }
        Ok(())
    }

    /// Reports in the status what could not be done; it is retried.
    async fn report_failure(&self, cluster: &ManagedCluster, action: Action, error: &kube::Error) {
        let now = self.hub.clock.now();
        let Some(conditions) = decide::failed(cluster, action, &error.to_string(), now) else {
            return;
        };
        let clusters: Api<ManagedCluster> = Api::all(self.hub.client.clone());
        let written = write_status(&clusters, cluster, &json!({ "conditions": conditions })).await;
        if let Err(error) = written {
            tracing::debug!(%error, "cannot report a failure");
        }
    }

    async fn grant(
        &self,
        name: &Arc<str>,
        cluster: &ManagedCluster,
        standing: ClusterAccess,
    ) -> Result<(), kube::Error> {
        let entry = (name.clone(), standing == ClusterAccess::Accepted);
        if self.granted.lock().contains(&entry) {
            return Ok(());
        }
        if standing == ClusterAccess::Accepted {
            ensure(&self.hub.client, &rights::namespace(name)).await?;
        }
        let was_touched = self.touched.lock().remove(name);
        let rights = rights::of_cluster(name, standing);
        let written = try_join_all(rights.iter().map(|right| ensure(&self.hub.client, right)));
        let is_restored = written.await?.contains(&true) && was_touched;
        let mut granted = self.granted.lock();
        granted.remove(&(name.clone(), !entry.1));
        granted.insert(entry);
        drop(granted);
        if is_restored {
            let message = format!(
                "The permissions of the cluster {name} were changed by another client and have been restored"
            );
            let happening = EventDraft::warning(event::RIGHTS_RESTORED, message);
            self.events.record(cluster, happening);
        }
        Ok(())
    }

    /// Takes away the bindings in the namespace.
    async fn revoke(&self, name: &str) -> Result<(), kube::Error> {
        let rights = rights::of_cluster(name, ClusterAccess::Accepted);
        let bindings = rights.iter().filter(|it| it["kind"] == "RoleBinding");
        try_join_all(bindings.map(|it| delete_if_present(&self.hub.client, it))).await?;
        Ok(())
    }

    /// Takes away everything but the namespace, which may hold what belongs to people.
    async fn remove(&self, name: &Arc<str>) -> Result<(), kube::Error> {
        let lease = json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"name": object::LEASE, "namespace": &**name},
        });
        let rights = rights::of_cluster(name, ClusterAccess::Accepted);
        let all = rights.iter().chain([&lease]);
        try_join_all(all.map(|it| delete_if_present(&self.hub.client, it))).await?;
        self.remove_requests(name).await?;
        self.forget(name);
        Ok(())
    }

    /// Removes what the cluster joined with: anyone who has its token or waits for an answer to its
    /// request does not get in any more, and another of that name starts over.
    async fn remove_requests(&self, name: &str) -> Result<(), kube::Error> {
        let own = ListParams::default().labels(&format!("{}={name}", label::CLUSTER_NAME));
        let requests: Api<CertificateSigningRequest> = Api::all(self.hub.client.clone());
        let secrets: Api<Secret> = Api::namespaced(self.hub.client.clone(), "kube-system");
        let params = DeleteParams::default();
        for request in requests.list_metadata(&own).await?.items {
            delete_if_exists(&requests, &request.name_any(), &params).await?;
        }
        for secret in secrets.list_metadata(&own).await?.items {
            let name = secret.name_any();
            if name.starts_with("bootstrap-token-") {
                delete_if_exists(&secrets, &name, &params).await?;
            }
        }
        Ok(())
    }

    async fn create_lease(&self, cluster: &str) -> Result<(), kube::Error> {
        let labels = [(label::CLUSTER_NAME.to_owned(), cluster.to_owned())];
        let lease = Lease {
            metadata: ObjectMeta {
                name: Some(object::LEASE.to_owned()),
                labels: Some(labels.into()),
                ..ObjectMeta::default()
            },
            spec: Some(LeaseSpec {
                holder_identity: Some(object::LEASE.to_owned()),
                renew_time: Some(MicroTime(self.hub.clock.now())),
                ..LeaseSpec::default()
            }),
        };
        let api: Api<Lease> = Api::namespaced(self.hub.client.clone(), cluster);
        unless_exists(api.create(&created_by(), &lease).await).map(drop)
    }
}
