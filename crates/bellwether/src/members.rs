//! Members of a fleet in this process: they join as any other cluster does, without a socket.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use bellwether_agent::registration::{
    self as membership, Agent, ClaimOptions, ConnectError, Credentials, HubConnector, Roster,
};
use bellwether_api::cluster::names::{annotation, condition, registration};
use bellwether_api::cluster::{ClusterClaim, ManagedCluster};
use bellwether_api::meta::is_true;
use bellwether_apiserver::{ApiServer, BootstrapToken, Clock, HUB, Identity};
use bellwether_controllers::Hub;
use bellwether_controllers::registration::clusters::{self, force_removal};
use bellwether_controllers::registry::{HUB as HUB_CONTROLLERS, HubOptions};
use bellwether_json::time::format_time;
use bellwether_runtime::{ClusterHandle, Ended, MetricsRegistry, ObjectKey, Tasks};
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::api::{DeleteParams, Patch, PatchParams};
use kube::runtime::wait::await_condition;
use kube::{Api, Client, ResourceExt as _};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::{oneshot, watch};

use crate::hub;
use bellwether_process::member_agents::MemberAgents;

/// Lifetime of the token with which members join.
const TOKEN_LIFE: jiff::SignedDuration = jiff::SignedDuration::from_hours(1);

/// How long to wait until the hub finds a member available, or has removed it. A member that is denied
/// never is.
const AVAILABLE_TIMEOUT: Duration = Duration::from_mins(1);

/// The namespace of a member that carries [`annotation::DETACHED`]: it cannot be deleted.
const MARKED_NAMESPACE: &str = "kube-system";

/// Who writes that annotation.
const MARKER: &str = "bellwether-hub";

/// The hub's controllers, and the agents of all members. Everything ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Members {
    server: ApiServer,
    clock: Clock,
    hub: Hub,
    /// What the hub says about its clusters, for all agents.
    roster: Roster,
    token: BootstrapToken,
    tasks: tokio::sync::Mutex<Tasks>,
    /// Who waits for a member to be available.
    waiting: Arc<Mutex<BTreeMap<String, oneshot::Sender<()>>>>,
    /// Who looks after all members.
    agents: MemberAgents,
}

impl Members {
    /// Starts the controllers of the hub.
    pub(crate) async fn start(
        server: &ApiServer,
        clock: &Clock,
        agents: MemberAgents,
        options: HubOptions,
        metrics: &MetricsRegistry,
    ) -> anyhow::Result<Self> {
        let client = server.client(HUB, Identity::administrator("bellwether-hub"));
        let token = BootstrapToken::generate()?;
        let expires = clock.now().checked_add(TOKEN_LIFE).ok();
        let groups = [registration::BOOTSTRAP_GROUP];
        let secret = token.to_secret("members of this process join with it", &groups, expires);
        server.ensure(HUB, secret).await?;
        // Agents find their rights as soon as they knock.
        clusters::ensure_shared(&client).await?;
        let hub = Hub::new(client, clock.clone());
        let promised =
            BTreeSet::from([format!("{}{}", registration::TOKEN_USER_PREFIX, token.id())]);
        let options = HubOptions {
            auto_approved: promised,
            ..options
        };
        hub.metrics.register(metrics);
        options.clusters.metrics.register(metrics);
        let mut tasks = hub::start(&hub, HUB_CONTROLLERS, &options);
        agents.clone().spawn(&mut tasks, "");
        let waiting: Arc<Mutex<BTreeMap<String, oneshot::Sender<()>>>> = Arc::default();
        let pending = Arc::clone(&waiting);
        hub.cache::<ManagedCluster>().subscribe(move |change| {
            if change.new.is_some_and(|cluster| is_available(cluster)) {
                // Nobody may be listening any more.
                let _ = pending
                    .lock()
                    .remove(&*change.key.name)
                    .map(|it| it.send(()));
            }
        });
        Ok(Self {
            server: server.clone(),
            clock: clock.clone(),
            roster: Roster::new(hub.cache()),
            hub,
            token,
            tasks: tokio::sync::Mutex::new(tasks),
            waiting,
            agents,
        })
    }

    /// Starts the agent of a member, and waits until the hub finds it available. `member` is
    /// the member itself. Returns false if that takes too long; its agent goes on trying.
    pub(crate) async fn join(
        &self,
        name: &str,
        member: ClusterHandle,
        labels: BTreeMap<String, String>,
    ) -> anyhow::Result<bool> {
        let claims = bellwether_api::definition::<ClusterClaim>();
        self.server.ensure(name, claims).await?;
        let connector = EmbeddedConnector {
            server: self.server.clone(),
            token: self.token.clone(),
            cluster: name.to_owned(),
            agents: self.agents.clone(),
            roster: self.roster.clone(),
            clock: self.clock.clone(),
        };
        let agent = Agent {
            cluster: name.to_owned(),
            connector: Arc::new(connector),
            member,
            clock: self.clock.clone(),
            labels,
            client_configs: Vec::new(),
            expiration_seconds: None,
            claims: ClaimOptions::default(),
        };
        let (available, is_there) = oneshot::channel();
        self.waiting.lock().insert(name.to_owned(), available);
        let known = self
            .hub
            .cache::<ManagedCluster>()
            .get(&ObjectKey::cluster_scoped(name));
        if known.is_some_and(|cluster| is_available(&cluster)) {
            self.waiting.lock().remove(name);
        }
        let (hub, _) = watch::channel(None);
        let task = format!("agent of {name}");
        // A detached member needs no agent.
        let mut tasks = self.tasks.lock().await;
        tasks.spawn_finite(task, membership::run(agent, hub));
        drop(tasks);
        // An error means that it had been available before.
        let waited = tokio::time::timeout(AVAILABLE_TIMEOUT, is_there).await;
        Ok(waited.is_ok())
    }

    /// True if the hub has let a member go, and nobody has let it join again since.
    pub(crate) async fn is_detached(&self, name: &str) -> anyhow::Result<bool> {
        let client = self.server.client(name, Identity::administrator(MARKER));
        let namespaces: Api<Namespace> = Api::all(client.clone());
        let marked = namespaces.get_metadata(MARKED_NAMESPACE).await?;
        if !marked.annotations().contains_key(annotation::DETACHED) {
            return Ok(false);
        }
        let secrets: Api<Secret> = Api::namespaced(client, registration::AGENT_NAMESPACE);
        let secret = registration::HUB_KUBECONFIG_SECRET;
        if secrets.get_metadata_opt(secret).await?.is_none() {
            return Ok(true);
        }
        // `bellwether cluster join` has let it in again.
        let patch = json!({"metadata": {"annotations": {annotation::DETACHED: null}}});
        let params = PatchParams::default();
        namespaces
            .patch_metadata(MARKED_NAMESPACE, &params, &Patch::Merge(patch))
            .await?;
        Ok(false)
    }

    /// Removes a member from the hub whose cluster is deleted: there is nobody to wait for.
    pub(crate) async fn delete(&self, name: &str) -> anyhow::Result<()> {
        let client = &self.hub.client;
        let clusters: Api<ManagedCluster> = Api::all(client.clone());
        let attempt = || format!("cannot remove {name} from the hub");
        match clusters.delete(name, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.is_not_found() => return Ok(()),
            deleted => deleted.with_context(attempt)?,
        };
        force_removal(client, name).await.with_context(attempt)?;
        let is_gone = |cluster: Option<&ManagedCluster>| cluster.is_none();
        let gone = await_condition(clusters, name, is_gone);
        let gone = tokio::time::timeout(AVAILABLE_TIMEOUT, gone).await;
        gone.context("it is still there after a minute")
            .with_context(attempt)??;
        Ok(())
    }

    /// All members have joined: what they joined with is of no use any more.
    pub(crate) async fn close(&self) -> anyhow::Result<()> {
        let secrets: Api<Secret> =
            Api::namespaced(self.hub.client.clone(), registration::TOKEN_NAMESPACE);
        let name = format!("{}{}", registration::TOKEN_SECRET_PREFIX, self.token.id());
        let deleted = secrets.delete(&name, &DeleteParams::default()).await;
        deleted.context("cannot remove the token with which members joined")?;
        Ok(())
    }

    /// Waits until a controller or an agent ends, which none should.
    pub(crate) async fn ended(&self) -> Ended {
        self.tasks.lock().await.ended().await
    }

    /// Ends all agents and controllers.
    pub(crate) async fn stop(&self) {
        *self.tasks.lock().await = Tasks::new();
    }
}

fn is_available(cluster: &ManagedCluster) -> bool {
    let status = cluster.status.as_ref();
    status.is_some_and(|status| is_true(&status.conditions, condition::AVAILABLE))
}

/// The way to the hub in this process: no socket, but the same tokens, certificates and checks.
#[derive(Debug)]
struct EmbeddedConnector {
    server: ApiServer,
    token: BootstrapToken,
    cluster: String,
    agents: MemberAgents,
    roster: Roster,
    clock: Clock,
}

impl HubConnector for EmbeddedConnector {
    fn bootstrap_client(&self) -> Result<Client, ConnectError> {
        Ok(self.server.client_with_token(HUB, &self.token.reveal()))
    }

    fn connect(&self, credentials: &Credentials) -> Result<ClusterHandle, ConnectError> {
        let credentials = bellwether_apiserver::Credentials {
            certificate: credentials.certificate.clone(),
            key: credentials.key.clone(),
        };
        let service = self.server.service_with_certificate(HUB, &credentials);
        let service = service.map_err(|error| ConnectError(error.to_string()))?;
        let hub = service.reach();
        // One watch serves the works of all members, but each writes with its own rights.
        self.agents.use_hub_client(&self.cluster, &hub);
        Ok(hub)
    }

    fn roster(&self) -> Option<Roster> {
        Some(self.roster.clone())
    }

    fn on_detached(&self) -> BoxFuture<'_, ()> {
        Box::pin(async {
            self.agents.remove_member(&self.cluster);
            let identity = Identity::administrator(MARKER);
            let namespaces: Api<Namespace> = Api::all(self.server.client(&self.cluster, identity));
            let now = format_time(self.clock.now());
            let patch = json!({"metadata": {"annotations": {annotation::DETACHED: now}}});
            let params = PatchParams::default();
            let marked = namespaces
                .patch_metadata(MARKED_NAMESPACE, &params, &Patch::Merge(patch))
                .await;
            if let Err(error) = marked {
                tracing::warn!(
                    cluster = self.cluster,
                    %error,
                    "a detached cluster cannot be marked: it joins again at the next start"
                );
            }
        })
    }

    fn address(&self) -> String {
        "hub".to_owned()
    }

    fn kubeconfig(&self) -> Option<String> {
        None
    }
}
