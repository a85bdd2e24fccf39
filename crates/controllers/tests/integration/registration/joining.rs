//! Being let in: by a token, by a person, or not at all.

use super::{AVAILABLE, JOINED, taints};
use crate::common::World;
use bellwether_api::cluster::{ClusterClaim, ManagedCluster, ManagedClusterSpec};
use bellwether_api::meta::condition;
use bellwether_apiserver::HUB;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::Api;
use kube::api::{ListParams, Patch, PatchParams, PostParams};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn a_token_made_for_a_cluster_lets_it_in() {
    let world = World::start().await;
    let _controllers = world.control(&[]);
    let token = world.token(Some("c1")).await;
    let member = world.member("c1", &token).await;
    let client = member.agent.member.client();
    let claims: Api<ClusterClaim> = Api::all(client);
    let claim = json!({"metadata": {"name": "id.k8s.io"}, "spec": {"value": "one"}});
    let claim = serde_json::from_value(claim).unwrap();
    claims.create(&PostParams::default(), &claim).await.unwrap();
    let _running = member.start();
    world.until_condition("c1", JOINED, "True").await;
    world.until_condition("c1", AVAILABLE, "True").await;
    world.pass(5).await;
    let cluster = world.managed_cluster("c1").await;
    assert!(cluster.spec.hub_accepts_client);
    assert_eq!(taints(&cluster), Vec::<&str>::new());
    let status = cluster.status.unwrap();
    assert!(
        status
            .version
            .unwrap()
            .kubernetes
            .unwrap()
            .starts_with("v1.")
    );
    assert_eq!(status.cluster_claims[0].value.as_deref(), Some("one"));
    assert_eq!(
        condition(&status.conditions, "HubAcceptedManagedCluster")
            .unwrap()
            .status,
        "True"
    );
    let labels = cluster.metadata.labels.unwrap();
    assert_eq!(
        labels["cluster.open-cluster-management.io/clusterset"],
        "default"
    );
    let namespaces: Api<Namespace> = Api::all(world.client.clone());
    assert!(namespaces.get_opt("c1").await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_asks_before_it_may_make_its_cluster_known_is_let_in_all_the_same() {
    let world = World::start().await;
    // The hub has just begun: those who join may ask for certificates, and nothing else yet.
    let rbac = "rbac.authorization.k8s.io";
    let early = json!({"name": "early"});
    world
        .create(json!({
            "apiVersion": format!("{rbac}/v1"), "kind": "ClusterRole", "metadata": early,
            "rules": [{"apiGroups": ["certificates.k8s.io"],
                "resources": ["certificatesigningrequests"],
                "verbs": ["create", "get", "list", "watch"]}],
        }))
        .await;
    world
        .create(json!({
            "apiVersion": format!("{rbac}/v1"), "kind": "ClusterRoleBinding", "metadata": early,
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "early"},
            "subjects": [{"apiGroup": rbac, "kind": "Group",
                "name": "system:bootstrappers:managedcluster"}],
        }))
        .await;
    let token = world.token(Some("c1")).await;
    let _running = world.member("c1", &token).await.start();
    let requests: Api<CertificateSigningRequest> = Api::all(world.client.clone());
    world
        .until("it asks".into(), async || {
            let list = requests.list(&ListParams::default()).await.unwrap();
            (!list.items.is_empty())
                .then_some(())
                .ok_or_else(String::new)
        })
        .await;
    let _controllers = world.control(&[]);
    world.pass(30).await;
    world.until_condition("c1", AVAILABLE, "True").await;
}

#[tokio::test(start_paused = true)]
async fn a_token_for_one_cluster_lets_no_other_in() {
    let world = World::start().await;
    let _controllers = world.control(&[]);
    let token = world.token(Some("c1")).await;
    let _running = world.member("c2", &token).await.start();
    world.pass(60).await;
    let clusters: Api<ManagedCluster> = Api::all(world.client.clone());
    assert!(clusters.get_opt("c2").await.unwrap().is_none());
    let requests: Api<CertificateSigningRequest> = Api::all(world.client.clone());
    let asked = requests.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(asked.len(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_token_for_one_cluster_sees_and_makes_only_that_one() {
    let world = World::start().await;
    let _controllers = world.control(&[]);
    world.cluster("other", &[]).await;
    world.pass(5).await;
    let token = world.token(Some("c1")).await;
    let client = world.server.client_with_token(HUB, &token.reveal());
    let clusters: Api<ManagedCluster> = Api::all(client);
    let list = clusters.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(list.len(), 0);
    assert!(clusters.get_opt("other").await.unwrap().is_none());
    let make = async |name: &str| {
        let cluster = ManagedCluster::new(name, ManagedClusterSpec::default());
        clusters.create(&PostParams::default(), &cluster).await
    };
    let refused = make("c2").await.unwrap_err().to_string();
    let why = "the token is for the cluster c1 only";
    assert!(refused.contains(why), "{refused}");
    make("c1").await.unwrap();
    let list = clusters.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(list.len(), 1);
    assert!(clusters.get_opt("c1").await.unwrap().is_some());
}

#[tokio::test(start_paused = true)]
async fn a_token_fixes_the_set_and_the_labels_of_its_cluster() {
    let world = World::start().await;
    let _controllers = world.control(&[]);
    world.create(crate::common::cluster_set("prod")).await;
    let token = world.token(Some("c1")).await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": format!("bootstrap-token-{}", token.id()), "namespace": "kube-system"}});
    let fixed = json!({"metadata": {"annotations": {
        "cluster.bellwether.dev/token-cluster-set": "prod",
        "cluster.bellwether.dev/token-labels": "{\"region\":\"emea\"}",
    }}});
    world.merge(&secret, fixed).await;
    let mut member = world.member("c1", &token).await;
    member.agent.labels = [("region".to_owned(), "moon".to_owned())].into();
    let lying = member.start();
    world.pass(60).await;
    let clusters: Api<ManagedCluster> = Api::all(world.client.clone());
    assert!(clusters.get_opt("c1").await.unwrap().is_none());
    lying.stop().await;
    member.agent.labels.clear();
    let _running = member.start();
    world.pass(60).await;
    world.until_condition("c1", AVAILABLE, "True").await;
    let labels = world.managed_cluster("c1").await.metadata.labels.unwrap();
    assert_eq!(labels["region"], "emea");
    let set = "cluster.open-cluster-management.io/clusterset";
    assert_eq!(labels[set], "prod");
}

#[tokio::test(start_paused = true)]
async fn without_a_promise_a_person_decides_in_either_order() {
    let world = World::start().await;
    let _controllers = world.control(&[]);
    let token = world.token(None).await;
    let _running = world.member("c1", &token).await.start();
    let requests: Api<CertificateSigningRequest> = Api::all(world.client.clone());
    let request = world
        .until("it has asked".into(), async || {
            let list = requests.list(&ListParams::default()).await.unwrap();
            list.items.into_iter().next().ok_or(String::new())
        })
        .await;
    world.pass(300).await;
    let live = requests
        .get(request.metadata.name.as_deref().unwrap())
        .await
        .unwrap();
    assert!(live.status.clone().is_none_or(|it| it.conditions.is_none()));
    let accept = json!({"spec": {"hubAcceptsClient": true}});
    let clusters: Api<ManagedCluster> = Api::all(world.client.clone());
    let params = PatchParams::default();
    clusters
        .patch("c1", &params, &Patch::Merge(accept))
        .await
        .unwrap();
    world.pass(10).await;
    let now = world.now();
    bellwether_controllers::registration::requests::approve(&world.client, &live, "by hand", now)
        .await
        .unwrap();
    world.until_condition("c1", AVAILABLE, "True").await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_starts_anew_waits_for_the_answer_to_its_first_request() {
    let world = World::start().await;
    let _controllers = world.control(&[]);
    let token = world.token(None).await;
    let member = world.member("c1", &token).await;
    let requests: Api<CertificateSigningRequest> = Api::all(world.client.clone());
    let asked = async || requests.list(&ListParams::default()).await.unwrap().items;
    for _ in 0..3 {
        let running = member.start();
        world.pass(60).await;
        running.stop().await;
    }
    let all = asked().await;
    assert_eq!(all.len(), 1, "it has asked once");
    let clusters: Api<ManagedCluster> = Api::all(world.client.clone());
    let accept = Patch::Merge(json!({"spec": {"hubAcceptsClient": true}}));
    clusters
        .patch("c1", &PatchParams::default(), &accept)
        .await
        .unwrap();
    let now = world.now();
    bellwether_controllers::registration::requests::approve(&world.client, &all[0], "by hand", now)
        .await
        .unwrap();
    let _running = member.start();
    world.until_condition("c1", AVAILABLE, "True").await;
    assert_eq!(asked().await.len(), 1);
    let secrets: Api<Secret> = Api::namespaced(
        member.agent.member.client(),
        "open-cluster-management-agent",
    );
    assert!(secrets.get_opt("hub-join-request").await.unwrap().is_none());
}
