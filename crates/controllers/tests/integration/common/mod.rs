//! A hub in this process, its controllers, and a clock that leaps.

#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "shared by tests, each of which uses what it needs"
)]

use std::ops::{Deref, DerefMut};
use std::sync::Arc;
use std::time::Duration;

use bellwether_agent::registration::{
    self as membership, Agent, ClaimOptions, ConnectError, Credentials, HubConnector, Roster,
};
use bellwether_api::cluster::{ClusterClaim, ManagedCluster, Placement, PlacementDecision};
use bellwether_api::meta::condition;
use bellwether_apiserver::{ApiServer, Authority, BootstrapToken, HUB, Identity, ServerOptions};
use bellwether_controllers::Hub;
use bellwether_controllers::rights::SYSTEM_NAMESPACE;
use bellwether_controllers::{registration, registry};
use bellwether_runtime::{Clock, ClusterHandle};
use bellwether_testkit::{Clusters, JsonClient, Writes, leaping_clock, objects};
use jiff::Timestamp;
use kube::api::ListParams;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub use bellwether_testkit::START;
pub use objects::{cluster_set, cluster_set_binding as binding, placement};

/// The user that the hub's controllers are.
const CONTROLLERS: &str = "bellwether-hub";

/// What grants the hub's controllers the rights that the registry says that they need.
fn grants() -> [Value; 4] {
    let rules = registry::rules(registry::HUB);
    let group = "rbac.authorization.k8s.io";
    let role = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
        "metadata": {"name": CONTROLLERS}, "rules": rules});
    let binding = json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
        "metadata": {"name": CONTROLLERS},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": CONTROLLERS},
        "subjects": [{"apiGroup": group, "kind": "User", "name": CONTROLLERS}]});
    let mut system_role = role.clone();
    system_role["kind"] = "Role".into();
    system_role["metadata"]["namespace"] = SYSTEM_NAMESPACE.into();
    system_role["rules"] = json!(registry::system_rules(registry::HUB));
    let mut system_binding = binding.clone();
    system_binding["kind"] = "RoleBinding".into();
    system_binding["metadata"]["namespace"] = SYSTEM_NAMESPACE.into();
    system_binding["roleRef"]["kind"] = "Role".into();
    [role, binding, system_role, system_binding]
}

/// A hub without controllers.
pub struct World {
    clusters: Clusters,
    /// A client of the hub, with all rights.
    pub client: Client,
}

impl Deref for World {
    type Target = Clusters;

    fn deref(&self) -> &Clusters {
        &self.clusters
    }
}

impl DerefMut for World {
    fn deref_mut(&mut self) -> &mut Clusters {
        &mut self.clusters
    }
}

impl World {
    /// A hub that knows the kinds of a fleet. The runtime's time is to be paused.
    pub async fn start() -> Self {
        Self::with_clock(leaping_clock()).await
    }

    /// The same with a clock of the test.
    pub async fn with_clock(clock: Clock) -> Self {
        let authority = Authority::generate(clock.now()).unwrap();
        let options = ServerOptions {
            authority: Some(Arc::new(authority)),
            admission: registry::admission(),
            ..ServerOptions::default()
        };
        let mut clusters = Clusters::with_clock(clock, options).await;
        clusters.hub_identity = Identity::authenticated(CONTROLLERS, []);
        clusters.ensure(bellwether_api::definitions()).await;
        clusters.ensure(grants()).await;
        Self {
            client: clusters.client(HUB),
            clusters,
        }
    }

    /// What the hub's controllers work with: the rights that the registry lists, and no others.
    pub fn hub(&self) -> Hub {
        Hub::new(self.controller_client(HUB), self.clock.clone())
    }

    /// Starts the scheduler.
    pub fn schedule(&self) -> JoinHandle<()> {
        tokio::spawn(bellwether_controllers::placement::run(self.hub()))
    }

    /// Starts all controllers of a hub. Users of `promised` may let clusters in.
    pub fn control(&self, promised: &[&str]) -> Vec<JoinHandle<()>> {
        self.control_with(registration::clusters::Options::default(), promised)
    }

    /// The same, with options for the controller of clusters.
    pub fn control_with(
        &self,
        options: registration::clusters::Options,
        promised: &[&str],
    ) -> Vec<JoinHandle<()>> {
        let hub = self.hub();
        let promised = promised.iter().map(|it| (*it).to_owned()).collect();
        vec![
            tokio::spawn(bellwether_controllers::placement::run(hub.clone())),
            tokio::spawn(bellwether_controllers::cluster_set::run(hub.clone())),
            tokio::spawn(registration::clusters::run(hub.clone(), options)),
            tokio::spawn(registration::requests::run(hub, promised)),
        ]
    }

    /// A bootstrap token; for one cluster, or for anyone who shows it.
    pub async fn token(&self, cluster: Option<&str>) -> BootstrapToken {
        let token = BootstrapToken::generate().unwrap();
        let groups = ["system:bootstrappers:managedcluster"];
        let mut secret = token.to_secret("test", &groups, None);
        if let Some(cluster) = cluster {
            secret["metadata"]["labels"] =
                json!({"open-cluster-management.io/cluster-name": cluster});
        }
        self.create(secret).await;
        token
    }

    /// A member with an agent that knocks with a token.
    pub async fn member(&self, cluster: &str, token: &BootstrapToken) -> Member {
        self.server.add_cluster(cluster).await.unwrap();
        let claims = bellwether_api::definition::<ClusterClaim>();
        self.server.ensure(cluster, claims).await.unwrap();
        let client = self.controller_client(cluster);
        let connector = EmbeddedConnector {
            server: self.server.clone(),
            token: token.reveal(),
            roster: None,
            writes: self.writes.clone(),
        };
        Member {
            agent: Agent {
                cluster: cluster.to_owned(),
                connector: Arc::new(connector),
                member: client.into(),
                clock: self.clock.clone(),
                labels: std::collections::BTreeMap::new(),
                client_configs: Vec::new(),
                expiration_seconds: None,
                claims: ClaimOptions::default(),
            },
        }
    }

    /// The same in the hub's process: its agent shares a watch of clusters with others.
    pub async fn neighbour(
        &self,
        cluster: &str,
        token: &BootstrapToken,
        roster: &Roster,
    ) -> Member {
        let mut member = self.member(cluster, token).await;
        member.agent.connector = Arc::new(EmbeddedConnector {
            server: self.server.clone(),
            token: token.reveal(),
            roster: Some(roster.clone()),
            writes: self.writes.clone(),
        });
        member
    }

    /// Waits until a condition of a cluster has a status.
    pub async fn until_condition(&self, cluster: &str, kind: &str, status: &str) {
        let what = format!("{kind} of {cluster} is {status}");
        self.until(what, async || {
            let clusters: Api<ManagedCluster> = Api::all(self.client.clone());
            let found = clusters.get_opt(cluster).await.unwrap();
            let found = found.and_then(|it| it.status).unwrap_or_default();
            let found = condition(&found.conditions, kind).map(|it| it.status.clone());
            let found = found.unwrap_or_default();
            (found == status).then_some(()).ok_or(found)
        })
        .await;
    }

    /// Creates an object of any kind, with its status.
    pub async fn create(&self, object: Value) -> Value {
        let client = JsonClient::from(self.client.clone());
        let created = client.create(&object).await;
        match object.get("status") {
            Some(status) => client.merge_status(&object, status).await,
            None => created,
        }
    }

    /// Merges something into an object of any kind.
    pub async fn merge(&self, object: &Value, change: Value) {
        self.clusters.merge(HUB, object, change).await;
    }

    pub async fn delete(&self, object: &Value) {
        self.clusters.delete(HUB, object).await;
    }

    /// A cluster in a set, with further labels as `key=value`.
    pub async fn cluster(&self, name: &str, labels: &[(&str, &str)]) -> Value {
        let object = objects::managed_cluster(name, labels);
        self.create(object.clone()).await;
        object
    }

    /// The set `default`, bound to the namespace `default`.
    pub async fn bind_default(&self) {
        self.create(cluster_set("default")).await;
        self.create(binding("default", "default")).await;
    }

    /// A placement in the namespace `default`.
    pub async fn place(&self, name: &str, spec: Value) -> Value {
        let object = placement(name, spec);
        self.create(object.clone()).await;
        object
    }

    pub async fn placement(&self, name: &str) -> Placement {
        let api: Api<Placement> = Api::namespaced(self.client.clone(), "default");
        api.get(name).await.unwrap()
    }

    pub async fn managed_cluster(&self, name: &str) -> ManagedCluster {
        let api: Api<ManagedCluster> = Api::all(self.client.clone());
        api.get(name).await.unwrap()
    }

    /// The decisions of a placement: for each object the group's index and name, and clusters.
    pub async fn decisions(&self, placement: &str) -> Vec<Decided> {
        let api: Api<PlacementDecision> = Api::namespaced(self.client.clone(), "default");
        let selector = format!("cluster.open-cluster-management.io/placement={placement}");
        let params = ListParams::default().labels(&selector);
        let list = api.list(&params).await.unwrap();
        let mut decided: Vec<Decided> = list.items.iter().map(Decided::read).collect();
        decided.sort_by_key(|it| it.number);
        decided
    }

    /// The clusters that a placement has chosen, by name.
    pub async fn chosen(&self, placement: &str) -> Vec<String> {
        let decided = self.decisions(placement).await;
        let mut all: Vec<String> = decided.into_iter().flat_map(|it| it.clusters).collect();
        all.sort();
        all
    }

    /// Waits until a placement has chosen exactly these.
    #[track_caller]
    pub fn until_chosen(&self, placement: &str, clusters: &[&str]) -> impl Future<Output = ()> {
        let wanted: Vec<String> = clusters.iter().map(|it| (*it).to_owned()).collect();
        let what = format!("{placement} chooses {clusters:?}");
        let place = placement.to_owned();
        self.until(what, async move || {
            let chosen = self.chosen(&place).await;
            (chosen == wanted)
                .then_some(())
                .ok_or(format!("{chosen:?}"))
        })
    }

    /// Waits for something, and returns it.
    pub async fn until<T>(&self, what: String, look: impl AsyncFnMut() -> Result<T, String>) -> T {
        self.polling().until(what, look).await
    }

    /// Lets time pass.
    pub async fn pass(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }

    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

/// A member whose agent can be started.
pub struct Member {
    pub agent: Agent,
}

/// A running agent.
pub struct Running {
    pub task: JoinHandle<()>,
    /// Its client of the hub.
    pub hub: watch::Receiver<Option<ClusterHandle>>,
}

impl Running {
    /// Its client of the hub, with its real credentials.
    pub async fn hub_client(&self) -> Client {
        let mut hub = self.hub.clone();
        let client = hub.wait_for(Option::is_some).await.unwrap();
        client.as_ref().unwrap().client()
    }

    pub async fn stop(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

impl Member {
    pub fn start(&self) -> Running {
        let (sender, hub) = watch::channel(None);
        let task = tokio::spawn(membership::run(self.agent.clone(), sender));
        Running { task, hub }
    }
}

/// The hub of this process.
#[derive(Debug)]
pub struct EmbeddedConnector {
    server: ApiServer,
    token: String,
    roster: Option<Roster>,
    writes: Writes,
}

impl HubConnector for EmbeddedConnector {
    fn bootstrap_client(&self) -> Result<Client, ConnectError> {
        Ok(self.server.client_with_token(HUB, &self.token))
    }

    fn connect(&self, credentials: &Credentials) -> Result<ClusterHandle, ConnectError> {
        let credentials = bellwether_apiserver::Credentials {
            certificate: credentials.certificate.clone(),
            key: credentials.key.clone(),
        };
        let service = self.server.service_with_certificate(HUB, &credentials);
        let service = service.map_err(|error| ConnectError(error.to_string()))?;
        let service = self.writes.of_controllers(HUB, service);
        Ok(Client::new(service, "default").into())
    }

    fn roster(&self) -> Option<Roster> {
        self.roster.clone()
    }

    fn address(&self) -> String {
        "hub".to_owned()
    }

    fn kubeconfig(&self) -> Option<String> {
        None
    }
}

/// A `PlacementDecision` in short.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    pub number: usize,
    pub group: (String, String),
    pub clusters: Vec<String>,
    pub scores: Vec<i64>,
}

impl Decided {
    pub fn read(object: &PlacementDecision) -> Self {
        let name = object.metadata.name.as_deref().unwrap();
        let labels = object.metadata.labels.clone().unwrap_or_default();
        let label = |name: &str| {
            let key = format!("cluster.open-cluster-management.io/decision-group-{name}");
            labels[&key].clone()
        };
        let decisions = object.status.clone().unwrap_or_default().decisions;
        Self {
            number: name.rsplit_once('-').unwrap().1.parse().unwrap(),
            group: (label("index"), label("name")),
            scores: decisions.iter().map(|it| it.score.unwrap_or(0)).collect(),
            clusters: decisions.into_iter().map(|it| it.cluster_name).collect(),
        }
    }
}
