//! The hub's side of membership: rights, heartbeats, taints, and what is left to be cleaned up.
//!
//! Cost follows change: an idle cluster costs the hub one heartbeat a minute, which it reads from a
//! watch.

use std::collections::HashSet;
use std::sync::Arc;

use bellwether_api::cluster::ManagedCluster;
use bellwether_api::cluster::names::{event, label, object};
use bellwether_api::meta::ObjectMeta;
use bellwether_runtime::{Controller, Next, ObjectKey, Queue, Reconcile};
use futures::future::try_join_all;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{ListParams, Patch};
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
use super::{loss, news};
use crate::events::{EventDraft, EventType, Recorder};
use crate::hub::{Hub, created_by, written_by};
use crate::objects::{delete_if_present, ensure};

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

/// Reconciles the clusters of a hub, until cancelled.
///
/// Every member gets a whole grace period from the start of this future: a process that takes over from
/// another starts it when it takes over, and judges nobody by what the other one saw.
pub async fn run(hub: Hub, options: Options) {
    let queue = Queue::new(hub.clock.clone());
    let leases = Leases::follow(&hub, &queue, options.loss_threshold, &options.metrics);
    let changed = queue.clone();
    hub.clusters.subscribe(move |change| {
        changed.add(change.key.name.clone());
    });
    hub.clusters.ready().await;
    leases.ready().await;
    while let Err(error) = ensure_shared(&hub.client).await {
        tracing::warn!(%error, "the roles of agents cannot be written");
        tokio::time::sleep(std::time::Duration::from_secs(5)).await;
    }
    let events = Recorder::new(&hub.client, &hub.clock, "registration");
    news::tell(&hub, events.clone());
    let controller = Arc::new(Membership {
        hub,
        leases,
        granted: Mutex::default(),
        touched: Mutex::default(),
        events,
    });
    let guard = guard::watch(&controller.hub.client, |touched| {
        controller.look_again(&touched, &queue);
    });
    let reconciling =
        Controller::with_queue("registration", queue.clone(), &controller.hub.metrics)
            .workers(WORKERS);
    tokio::select! {
        () = guard => {}
        () = controller.leases.run(&queue) => {}
        () = loss::publish(&controller.hub, &controller.leases, &controller.events) => {}
        () = reconciling.run(Arc::clone(&controller)) => {}
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
    leases: Leases,
    /// Clusters whose rights have been written since the start, and whom nobody touched since.
    granted: Mutex<HashSet<(Arc<str>, bool)>>,
    /// Clusters whose rights somebody else may have touched.
    touched: Mutex<HashSet<Arc<str>>>,
    events: Recorder,
}

impl Reconcile for Membership {
    type Key = Arc<str>;
    type Error = kube::Error;

    async fn reconcile(&self, name: &Arc<str>) -> Result<Next, kube::Error> {
        let key = ObjectKey::cluster_scoped(name);
        let Some(cluster) = self.hub.clusters.get(&key) else {
            self.forget(name);
            return Ok(None);
        };
        if self.leases.contact(name).is_silent && decide::is_silence_news(&cluster) {
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
}

impl Membership {
    /// A cluster is gone: if it comes again, it is a new one.
    fn forget(&self, name: &Arc<str>) {
        self.leases.forget(name);
        self.touched.lock().remove(name);
        self.granted.lock().retain(|(known, _)| known != name);
    }

    /// Somebody touched rights: they are looked at, and repaired if they are not.
    fn look_again(&self, touched: &Touched, queue: &Queue<Arc<str>>) {
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
            queue.add(name);
        }
        if !matches!(touched, Touched::Cluster(_)) {
            let client = self.hub.client.clone();
            tokio::spawn(async move {
                if let Err(error) = ensure_shared(&client).await {
                    tracing::warn!(%error, "the roles of agents cannot be written");
                }
            });
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
                self.tell_failure(cluster, *action, &error).await;
                return Err(error);
            }
        }
        let clusters: Api<ManagedCluster> = Api::all(self.hub.client.clone());
        let mut version = cluster.resource_version();
        if let Some(conditions) = &plan.conditions {
            let patch = json!({
                "metadata": {"resourceVersion": version}, "status": {"conditions": conditions},
            });
            let patch = Patch::Merge(patch);
            let written = clusters.patch_status(name, &written_by(), &patch).await?;
            version = written.resource_version();
        }
        if let Some(patch) = &plan.patch {
            let mut patch = patch.clone();
            patch["metadata"]["resourceVersion"] = json!(version);
            clusters
                .patch(name, &written_by(), &Patch::Merge(patch))
                .await?;
        }
        Ok(())
    }

    /// Says in the status what could not be done; it is tried again.
    async fn tell_failure(&self, cluster: &ManagedCluster, action: Action, error: &kube::Error) {
        let now = self.hub.clock.now();
        let Some(conditions) = decide::failed(cluster, action, &error.to_string(), now) else {
            return;
        };
        let clusters: Api<ManagedCluster> = Api::all(self.hub.client.clone());
        let patch = json!({
            "metadata": {"resourceVersion": cluster.resource_version()},
            "status": {"conditions": conditions},
        });
        let patch = Patch::Merge(patch);
        let told = clusters
            .patch_status(&cluster.name_any(), &written_by(), &patch)
            .await;
        if let Err(error) = told {
            tracing::debug!(%error, "a failure cannot be told");
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
            let happening = EventDraft {
                tone: EventType::Warning,
                reason: event::RIGHTS_RESTORED,
                message: format!(
                    "Somebody changed the rights of the cluster {name}; they are back"
                ),
            };
            self.events.tell(cluster, happening);
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
        for request in requests.list_metadata(&own).await?.items {
            cleanup::remove_one(&requests, &request.name_any()).await?;
        }
        for secret in secrets.list_metadata(&own).await?.items {
            let name = secret.name_any();
            if name.starts_with("bootstrap-token-") {
                cleanup::remove_one(&secrets, &name).await?;
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
        match api.create(&created_by(), &lease).await {
            Ok(_) => Ok(()),
            Err(kube::Error::Api(status)) if status.is_already_exists() => Ok(()),
            Err(error) => Err(error),
        }
    }
}
