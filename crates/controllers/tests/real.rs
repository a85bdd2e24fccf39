//! Membership and placement between two real API servers, where `KUBEBUILDER_ASSETS` says where
//! their programs are.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]

mod attempts;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use bellwether_api::cluster::{ClusterClaim, ManagedCluster, PlacementDecision};
use bellwether_api::meta::is_true;
use bellwether_apiserver::BootstrapToken;
use bellwether_controllers::Hub;
use bellwether_controllers::registration::agent::{self, Agent, KubeconfigDoor};
use bellwether_controllers::{cluster_set, placement, registration};
use bellwether_runtime::{Clock, Reach};
use bellwether_testkit::{Assets, RealCluster};
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{DeleteParams, DynamicObject, ListParams, PostParams};
use kube::config::Kubeconfig;
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use kube::runtime::wait::await_condition;
use kube::{Api, Client};
use serde_json::{Value, json};
use tokio::sync::watch;

const PATIENCE: Duration = Duration::from_mins(2);

async fn create(client: &Client, object: Value) {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let api_version = text(&object["apiVersion"]);
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let kind = GroupVersionKind::gvk(group, version, &text(&object["kind"]));
    let resource = ApiResource::from_gvk(&kind);
    let api: Api<DynamicObject> = match object["metadata"]["namespace"].as_str() {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    };
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
}

async fn define(client: &Client, definitions: Vec<Value>) {
    let kind = GroupVersionKind::gvk("apiextensions.k8s.io", "v1", "CustomResourceDefinition");
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&kind));
    for definition in definitions {
        let name = definition["metadata"]["name"].as_str().unwrap().to_owned();
        create(client, definition).await;
        let is_served = |definition: Option<&DynamicObject>| {
            let conditions = definition.and_then(|it| it.data["status"]["conditions"].as_array());
            conditions
                .into_iter()
                .flatten()
                .any(|it| it["type"] == "Established" && it["status"] == "True")
        };
        let served = await_condition(api.clone(), &name, is_served);
        tokio::time::timeout(PATIENCE, served)
            .await
            .unwrap()
            .unwrap();
    }
}

/// An agent of `name` that joins with a token made for it.
async fn join(hub: &RealCluster, member: &Client, name: &str) -> watch::Receiver<Option<Reach>> {
    let administrator = hub.client().await.unwrap();
    let token = BootstrapToken::generate().unwrap();
    let groups = ["system:bootstrappers:managedcluster"];
    let mut secret = token.to_secret("test", &groups, None);
    let text = token.reveal();
    secret["stringData"] = json!({"token-secret": text.split_once('.').unwrap().1});
    secret["metadata"]["labels"] = json!({"open-cluster-management.io/cluster-name": name});
    create(&administrator, secret).await;
    let mut kubeconfig: Value =
        serde_json::to_value(Kubeconfig::from_yaml(&hub.kubeconfig_text()).unwrap()).unwrap();
    kubeconfig["users"][0]["user"] = json!({"token": text});
    let kubeconfig: Kubeconfig = serde_json::from_value(kubeconfig).unwrap();
    let agent = Agent {
        cluster: name.to_owned(),
        door: Arc::new(KubeconfigDoor::new(kubeconfig).await.unwrap()),
        member: member.clone().into(),
        clock: Clock::system(),
        labels: BTreeMap::from([("region".to_owned(), name.to_owned())]),
        client_configs: Vec::new(),
        expiration_seconds: None,
    };
    let (sender, client) = watch::channel(None);
    tokio::spawn(agent::run(agent, sender));
    let clusters: Api<ManagedCluster> = Api::all(administrator);
    let is_available = |cluster: Option<&ManagedCluster>| {
        let status = cluster.and_then(|it| it.status.as_ref());
        status.is_some_and(|it| is_true(&it.conditions, "ManagedClusterConditionAvailable"))
    };
    let available = await_condition(clusters, name, is_available);
    tokio::time::timeout(PATIENCE, available)
        .await
        .expect("it joins")
        .unwrap();
    client
}

#[tokio::test(flavor = "multi_thread")]
async fn members_of_a_real_hub_join_and_are_kept_apart() {
    let assets = match Assets::find() {
        Ok(assets) => assets,
        Err(why) => {
            eprintln!("skipped: {why}");
            return;
        }
    };
    let mut hub = RealCluster::start(&assets).await.unwrap();
    hub.start_controllers(&assets).unwrap();
    let member = RealCluster::start(&assets).await.unwrap();
    let (administrator, member) = (hub.client().await.unwrap(), member.client().await.unwrap());
    define(&administrator, bellwether_api::definitions()).await;
    define(&member, vec![bellwether_api::definition::<ClusterClaim>()]).await;
    let controllers = Hub::start(administrator.clone(), Clock::system());
    tokio::spawn(placement::run(controllers.clone()));
    tokio::spawn(cluster_set::run(controllers.clone()));
    tokio::spawn(registration::clusters::run(controllers.clone()));
    tokio::spawn(registration::requests::run(controllers, BTreeSet::new()));

    let first = join(&hub, &member, "c1").await;
    // The other one keeps its credentials elsewhere: on the hub itself, which may be a member too.
    let second = join(&hub, &administrator, "c10").await;

    let binding = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta2",
        "kind": "ManagedClusterSetBinding",
        "metadata": {"name": "global", "namespace": "default"}, "spec": {"clusterSet": "global"},
    });
    create(&administrator, binding).await;
    let selector = json!({"labelSelector": {"matchLabels": {"region": "c1"}}});
    let placement = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"predicates": [{"requiredClusterSelector": selector}]},
    });
    create(&administrator, placement).await;
    let decisions: Api<PlacementDecision> = Api::namespaced(administrator.clone(), "default");
    let is_chosen = |decision: Option<&PlacementDecision>| {
        let status = decision.and_then(|it| it.status.as_ref());
        status.is_some_and(|it| it.decisions.iter().any(|it| it.cluster_name == "c1"))
    };
    let chosen = await_condition(decisions, "p-decision-1", is_chosen);
    tokio::time::timeout(PATIENCE, chosen)
        .await
        .unwrap()
        .unwrap();

    let client = |it: watch::Receiver<Option<Reach>>| it.borrow().as_ref().map(Reach::client);
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
    tokio::time::timeout(PATIENCE, gone)
        .await
        .expect("it leaves")
        .unwrap();
    assert!(
        leases.list(&ListParams::default()).await.is_err(),
        "its rights are gone"
    );
}
