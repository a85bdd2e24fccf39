//! Membership and placement between two real API servers, where `KUBEBUILDER_ASSETS` says where
//! their programs are.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]

use crate::attempts;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bellwether_agent::registration::{
    self as membership, Agent, ClaimOptions, KubeconfigConnector,
};
use bellwether_api::cluster::{
    ClusterClaim, ManagedCluster, ManagedClusterStatus, PlacementDecision,
};
use bellwether_api::meta::{condition, is_true};
use bellwether_apiserver::BootstrapToken;
use bellwether_controllers::Hub;
use bellwether_controllers::{cluster_set, placement, registration};
use bellwether_runtime::{Clock, ClusterHandle};
use bellwether_testkit::objects::{self, cluster_set_binding};
use bellwether_testkit::{Assets, JsonClient, RealCluster};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, ListParams};
use kube::config::Kubeconfig;
use kube::runtime::wait::await_condition;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinHandle;

const TEST_TIMEOUT: Duration = Duration::from_mins(2);
const AVAILABLE: &str = "ManagedClusterConditionAvailable";

/// An agent of `name` with a token made for it.
async fn agent_of(hub: &RealCluster, member: &Client, name: &str, clock: &Clock) -> Agent {
    let administrator = hub.client().await.unwrap();
    let token = BootstrapToken::generate().unwrap();
    let groups = ["system:bootstrappers:managedcluster"];
    let mut secret = token.to_secret("test", &groups, None);
    let text = token.reveal();
    secret["stringData"] = json!({"token-secret": text.split_once('.').unwrap().1});
    secret["metadata"]["labels"] = json!({"open-cluster-management.io/cluster-name": name});
    JsonClient::from(administrator).create(&secret).await;
    let mut kubeconfig: Value =
        serde_json::to_value(Kubeconfig::from_yaml(&hub.kubeconfig_text()).unwrap()).unwrap();
    kubeconfig["users"][0]["user"] = json!({"token": text});
    let kubeconfig: Kubeconfig = serde_json::from_value(kubeconfig).unwrap();
    Agent {
        cluster: name.to_owned(),
        connector: Arc::new(KubeconfigConnector::new(kubeconfig).await.unwrap()),
        member: member.clone().into(),
        clock: clock.clone(),
        labels: BTreeMap::from([("region".to_owned(), name.to_owned())]),
        client_configs: Vec::new(),
        expiration_seconds: None,
        claims: ClaimOptions::default(),
    }
}

/// Has an agent join, and waits until the hub finds it available.
async fn join(
    administrator: &Client,
    agent: Agent,
) -> (JoinHandle<()>, watch::Receiver<Option<ClusterHandle>>) {
    let name = agent.cluster.clone();
    let (sender, way) = watch::channel(None);
    let task = tokio::spawn(membership::run(agent, sender));
    until(administrator, &name, |status, taints| {
        is_true(&status.conditions, AVAILABLE) && taints.is_empty()
    })
    .await;
    (task, way)
}

/// Waits until what is known of a cluster, and its taints, are as they should be.
async fn until(
    administrator: &Client,
    name: &str,
    is_right: impl Fn(&ManagedClusterStatus, &[&str]) -> bool,
) -> ManagedCluster {
    let clusters: Api<ManagedCluster> = Api::all(administrator.clone());
    let is_right = |cluster: Option<&ManagedCluster>| {
        cluster.is_some_and(|cluster| {
            let taints = cluster.spec.taints.iter().map(|it| it.key.as_str());
            let status = cluster.status.clone().unwrap_or_default();
            is_right(&status, &taints.collect::<Vec<_>>())
        })
    };
    let found = await_condition(clusters.clone(), name, is_right);
    let Ok(found) = tokio::time::timeout(TEST_TIMEOUT, found).await else {
        panic!("timed out; last state: {:#?}", clusters.get_opt(name).await);
    };
    found.unwrap().unwrap()
}

/// A hub with all its controllers, which go by a clock.
async fn start(assets: &Assets, clock: &Clock) -> (RealCluster, Client) {
    let mut hub = RealCluster::start(assets).await.unwrap();
    hub.start_controllers(assets).unwrap();
    let administrator = hub.client().await.unwrap();
    let definitions = bellwether_api::definitions();
    JsonClient::from(administrator.clone())
        .define(definitions)
        .await;
    let controllers = Hub::new(administrator.clone(), clock.clone());
    tokio::spawn(placement::run(controllers.clone()));
    tokio::spawn(cluster_set::run(controllers.clone()));
    tokio::spawn(registration::clusters::run(
        controllers.clone(),
        registration::clusters::Options::default(),
    ));
    tokio::spawn(registration::requests::run(controllers, BTreeSet::new()));
    (hub, administrator)
}

/// The server's own time cannot be moved, but that of the hub's controllers and of agents can.
#[tokio::test(flavor = "multi_thread")]
async fn a_real_hub_misses_a_silent_member_and_renews_certificates_in_time() {
    let assets = match Assets::find() {
        Ok(assets) => assets,
        Err(why) => {
            bellwether_testkit::skip(why);
            return;
        }
    };
    let (clock, forward) = Clock::system().adjustable();
    let (hub, administrator) = start(&assets, &clock).await;
    let mut agent = agent_of(&hub, &administrator, "c1", &clock).await;
    agent.expiration_seconds = Some(3600);
    let (running, _) = join(&administrator, agent.clone()).await;

    // Five renewals of a minute each have to be missed.
    running.abort();
    assert!(running.await.is_err());
    forward.by(Duration::from_mins(4));
    let clusters: Api<ManagedCluster> = Api::all(administrator.clone());
    let status = clusters.get("c1").await.unwrap().status.unwrap();
    assert!(is_true(&status.conditions, AVAILABLE));
    forward.by(Duration::from_secs(61));
    let unreachable = ["cluster.open-cluster-management.io/unreachable"];
    let silent = until(&administrator, "c1", |status, taints| {
        condition(&status.conditions, AVAILABLE).is_some_and(|it| it.status == "Unknown")
            && taints == unreachable
    })
    .await;
    let status = silent.status.unwrap();
    let said = condition(&status.conditions, AVAILABLE).unwrap();
    assert_eq!(said.reason, "ManagedClusterLeaseUpdateStopped");

    // When it is heard of again it is back, with the certificate that it has.
    let requests: Api<CertificateSigningRequest> = Api::all(administrator.clone());
    let count = async || {
        requests
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .len()
    };
    assert_eq!(count().await, 1);
    agent.expiration_seconds = None;
    let (_running, mut way) = join(&administrator, agent).await;
    assert_eq!(count().await, 1);

    // A fifth to a quarter of its life before it expires it is renewed.
    let secrets: Api<Secret> =
        Api::namespaced(administrator.clone(), "open-cluster-management-agent");
    let kept = async || {
        secrets
            .get("hub-kubeconfig-secret")
            .await
            .unwrap()
            .data
            .unwrap()
    };
    let first = kept().await;
    let status = clusters.get("c1").await.unwrap().status.unwrap();
    let rotated = condition(&status.conditions, "ClusterCertificateRotated").unwrap();
    let before = rotated.message.clone();
    way.mark_unchanged();
    forward.by(Duration::from_secs(2950 - 301));
    let renewed = tokio::time::timeout(TEST_TIMEOUT, way.changed()).await;
    renewed.expect("it is renewed").unwrap();
    let second = kept().await;
    assert_ne!(first["tls.crt"], second["tls.crt"]);
    assert_ne!(first["tls.key"], second["tls.key"]);
    assert_eq!(first["agent-name"], second["agent-name"]);
    let made = requests.list(&ListParams::default()).await.unwrap().items;
    let is_renewal = |it: &CertificateSigningRequest| {
        let sender = it.spec.username.as_deref().unwrap_or_default();
        sender.starts_with("system:open-cluster-management:c1:")
    };
    let request = made.into_iter().find(is_renewal).unwrap();
    let approved = request.status.unwrap().conditions.unwrap().remove(0);
    let reason = approved.reason.as_deref();
    assert_eq!(reason, Some("AutoApprovedByHubCSRApprovingController"));
    let own = way.borrow().clone().unwrap().client();
    let leases: Api<Lease> = Api::namespaced(own, "c1");
    assert!(leases.get("managed-cluster-lease").await.is_ok());
    until(&administrator, "c1", |status, taints| {
        let rotated = condition(&status.conditions, "ClusterCertificateRotated");
        let is_told = rotated.is_some_and(|it| it.message != before);
        is_told && is_true(&status.conditions, AVAILABLE) && taints.is_empty()
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn members_of_a_real_hub_join_and_are_kept_apart() {
    let assets = match Assets::find() {
        Ok(assets) => assets,
        Err(why) => {
            bellwether_testkit::skip(why);
            return;
        }
    };
    let clock = Clock::system();
    let (hub, administrator) = start(&assets, &clock).await;
    let member = RealCluster::start(&assets).await.unwrap();
    let member = member.client().await.unwrap();
    let claims = bellwether_api::definition::<ClusterClaim>();
    JsonClient::from(member.clone()).define([claims]).await;

    let agent = agent_of(&hub, &member, "c1", &clock).await;
    let (_, first) = join(&administrator, agent).await;
    // The other one keeps its credentials elsewhere: on the hub itself, which may be a member too.
    let agent = agent_of(&hub, &administrator, "c10", &clock).await;
    let (_, second) = join(&administrator, agent).await;

    let client = JsonClient::from(administrator.clone());
    client
        .create(&cluster_set_binding("default", "global"))
        .await;
    let selector = json!({"labelSelector": {"matchLabels": {"region": "c1"}}});
    let spec = json!({"predicates": [{"requiredClusterSelector": selector}]});
    client.create(&objects::placement("p", spec)).await;
    let decisions: Api<PlacementDecision> = Api::namespaced(administrator.clone(), "default");
    let is_chosen = |decision: Option<&PlacementDecision>| {
        let status = decision.and_then(|it| it.status.as_ref());
        status.is_some_and(|it| it.decisions.iter().any(|it| it.cluster_name == "c1"))
    };
    let chosen = await_condition(decisions, "p-decision-1", is_chosen);
    tokio::time::timeout(TEST_TIMEOUT, chosen)
        .await
        .unwrap()
        .unwrap();

    let client = |it: watch::Receiver<Option<ClusterHandle>>| {
        it.borrow().as_ref().map(ClusterHandle::client)
    };
    let own = client(first).unwrap();
    let leases: Api<Lease> = Api::namespaced(own.clone(), "c1");
    assert!(leases.get("managed-cluster-lease").await.is_ok());
    attempts::all_fail(&own, "c1", "c10").await;
    attempts::all_fail(&client(second).unwrap(), "c10", "c1").await;

    let clusters: Api<ManagedCluster> = Api::all(administrator);
    clusters
        .delete("c1", &DeleteParams::default())
        .await
        .unwrap();
    let gone = await_condition(clusters.clone(), "c1", |it: Option<&ManagedCluster>| {
        it.is_none()
    });
    tokio::time::timeout(TEST_TIMEOUT, gone)
        .await
        .expect("it leaves")
        .unwrap();
    assert!(
        leases.list(&ListParams::default()).await.is_err(),
        "its rights are gone"
    );
}
