//! Members of a fleet in this process: they join as any other cluster does, without a socket.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use anyhow::Context as _;
use bellwether_api::cluster::names::{condition, registration};
use bellwether_api::cluster::{ClusterClaim, ManagedCluster};
use bellwether_api::meta::is_true;
use bellwether_apiserver::{ApiServer, BootstrapToken, Clock, HUB, Identity};
use bellwether_controllers::Hub;
use bellwether_controllers::registration::agent::{
    self, Agent, ClaimOptions, Credentials, Door, DoorError, Roster,
};
use bellwether_controllers::work_agent::WorkAgents;
use bellwether_runtime::{ObjectKey, Reach};
use kube::{Api, Client};
use parking_lot::Mutex;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinSet;

use crate::hub;

/// How long the token is good with which members join.
const TOKEN_LIFE: jiff::SignedDuration = jiff::SignedDuration::from_hours(1);

/// The hub's controllers, and the agents of all members. Everything ends when it is dropped.
#[derive(Debug)]
pub(crate) struct Members {
    server: ApiServer,
    clock: Clock,
    hub: Hub,
    /// What the hub says about its clusters, for all agents.
    roster: Roster,
    token: BootstrapToken,
    controllers: Mutex<JoinSet<()>>,
    agents: Mutex<JoinSet<()>>,
    /// Who waits for a member to be available.
    waiting: Arc<Mutex<BTreeMap<String, oneshot::Sender<()>>>>,
    /// Who applies works on all members.
    works: WorkAgents,
}

impl Members {
    /// Starts the controllers of the hub.
    pub(crate) async fn start(
        server: &ApiServer,
        clock: &Clock,
        works: WorkAgents,
    ) -> anyhow::Result<Self> {
        let client = server.client(HUB, Identity::administrator("bellwether-hub"));
        let token = BootstrapToken::generate()?;
        let expires = clock.now().checked_add(TOKEN_LIFE).ok();
        let groups = [registration::BOOTSTRAP_GROUP];
        let secret = token.to_secret("members of this process join with it", &groups, expires);
        server.ensure(HUB, secret).await?;
        // Agents find their rights as soon as they knock.
        bellwether_controllers::registration::clusters::ensure_shared(&client).await?;
        let hub = Hub::start(client, clock.clone());
        let promised = BTreeSet::from([format!("system:bootstrap:{}", token.id())]);
        let controllers = hub::start(&hub, &hub::all(), &promised);
        let waiting: Arc<Mutex<BTreeMap<String, oneshot::Sender<()>>>> = Arc::default();
        let told = Arc::clone(&waiting);
        hub.clusters.subscribe(move |change| {
            if change.new.is_some_and(|cluster| is_available(cluster)) {
                // Nobody may be listening any more.
                let _ = told.lock().remove(&*change.key.name).map(|it| it.send(()));
            }
        });
        Ok(Self {
            server: server.clone(),
            clock: clock.clone(),
            roster: Roster::new(hub.clusters.clone()),
            hub,
            token,
            controllers: Mutex::new(controllers),
            agents: Mutex::default(),
            waiting,
            works,
        })
    }

    /// Starts the agent of a member, and waits until the hub finds it available. `member` is
    /// the member itself.
    pub(crate) async fn join(
        &self,
        name: &str,
        member: Reach,
        labels: BTreeMap<String, String>,
    ) -> anyhow::Result<()> {
        let claims = bellwether_api::definition::<ClusterClaim>();
        self.server.ensure(name, claims).await?;
        let door = EmbeddedDoor {
            server: self.server.clone(),
            token: self.token.clone(),
            cluster: name.to_owned(),
            works: self.works.clone(),
            roster: self.roster.clone(),
        };
        let agent = Agent {
            cluster: name.to_owned(),
            door: Arc::new(door),
            member,
            clock: self.clock.clone(),
            labels,
            client_configs: Vec::new(),
            expiration_seconds: None,
            claims: ClaimOptions::default(),
        };
        let (available, is_there) = oneshot::channel();
        self.waiting.lock().insert(name.to_owned(), available);
        let known = self.hub.clusters.get(&ObjectKey::cluster_scoped(name));
        if known.is_some_and(|cluster| is_available(&cluster)) {
            self.waiting.lock().remove(name);
        }
        let (hub, _) = watch::channel(None);
        self.agents.lock().spawn(agent::run(agent, hub));
        // An error means that it had been available before.
        let _ = is_there.await;
        Ok(())
    }

    /// All members have joined: what they joined with is of no use any more.
    pub(crate) async fn close(&self) -> anyhow::Result<()> {
        let secrets: Api<k8s_openapi::api::core::v1::Secret> =
            Api::namespaced(self.hub.client.clone(), "kube-system");
        let name = format!("bootstrap-token-{}", self.token.id());
        let deleted = secrets
            .delete(&name, &kube::api::DeleteParams::default())
            .await;
        deleted.context("cannot remove the token with which members joined")?;
        Ok(())
    }

    /// Ends all agents and controllers.
    pub(crate) fn stop(&self) {
        self.agents.lock().abort_all();
        self.controllers.lock().abort_all();
    }
}

fn is_available(cluster: &ManagedCluster) -> bool {
    let status = cluster.status.as_ref();
    status.is_some_and(|status| is_true(&status.conditions, condition::AVAILABLE))
}

/// The way to the hub in this process: no socket, but the same tokens, certificates and checks.
#[derive(Debug)]
struct EmbeddedDoor {
    server: ApiServer,
    token: BootstrapToken,
    cluster: String,
    works: WorkAgents,
    roster: Roster,
}

impl Door for EmbeddedDoor {
    fn knock(&self) -> Result<Client, DoorError> {
        Ok(self.server.client_with_token(HUB, &self.token.reveal()))
    }

    fn enter(&self, credentials: &Credentials) -> Result<Reach, DoorError> {
        let credentials = bellwether_apiserver::Credentials {
            certificate: credentials.certificate.clone(),
            key: credentials.key.clone(),
        };
        let service = self.server.service_with_certificate(HUB, &credentials);
        let service = service.map_err(|error| DoorError(error.to_string()))?;
        let hub = service.reach();
        // One watch serves the works of all members, but each writes with its own rights.
        self.works.speak_for(&self.cluster, hub.clone());
        Ok(hub)
    }

    fn roster(&self) -> Option<Roster> {
        Some(self.roster.clone())
    }

    fn address(&self) -> String {
        "hub".to_owned()
    }

    fn kubeconfig(&self) -> Option<String> {
        None
    }
}
