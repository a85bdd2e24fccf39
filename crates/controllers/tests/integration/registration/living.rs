//! Heartbeats: heartbeats, certificates, and what a member tells about itself.

use super::{AVAILABLE, joined, reasons, taints};
use crate::common::World;
use bellwether_agent::registration::{ClaimOptions, Roster};
use bellwether_api::about::ClusterProperty;
use bellwether_api::cluster::{ClusterClaim, ManagedCluster};
use bellwether_api::meta::condition;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::Api;
use kube::api::{DeleteParams, ListParams, PostParams};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn a_silent_cluster_becomes_unreachable_and_comes_back() {
    let world = World::start().await;
    let _controllers = world.control(&[]);
    let token = world.token(Some("c1")).await;
    let member = world.member("c1", &token).await;
    let running = member.start();
    world.until_condition("c1", AVAILABLE, "True").await;
    world.pass(1200).await;
    assert_eq!(
        taints(&world.managed_cluster("c1").await),
        Vec::<&str>::new()
    );
    running.stop().await;
    world.pass(290 - 75).await;
    world.until_condition("c1", AVAILABLE, "True").await;
    world.pass(100).await;
    world.until_condition("c1", AVAILABLE, "Unknown").await;
    let cluster = world.managed_cluster("c1").await;
    assert_eq!(
        taints(&cluster),
        ["cluster.open-cluster-management.io/unreachable"]
    );
    assert!(cluster.spec.taints[0].time_added.is_some());
    let requests: Api<CertificateSigningRequest> = Api::all(world.client.clone());
    let before = requests
        .list(&ListParams::default())
        .await
        .unwrap()
        .items
        .len();
    let _running = member.start();
    world.until_condition("c1", AVAILABLE, "True").await;
    world.pass(5).await;
    assert_eq!(
        taints(&world.managed_cluster("c1").await),
        Vec::<&str>::new()
    );
    let after = requests
        .list(&ListParams::default())
        .await
        .unwrap()
        .items
        .len();
    assert_eq!(after, before, "the certificate was kept");
}

#[tokio::test(start_paused = true)]
async fn a_certificate_is_renewed_before_it_expires() {
    let world = World::start().await;
    let _controllers = world.control(&[]);
    let token = world.token(Some("c1")).await;
    let mut member = world.member("c1", &token).await;
    member.agent.expiration_seconds = Some(3600);
    let running = member.start();
    world.until_condition("c1", AVAILABLE, "True").await;
    let secrets: Api<Secret> = Api::namespaced(
        member.agent.member.client(),
        "open-cluster-management-agent",
    );
    let kept = async || {
        let secret = secrets.get("hub-kubeconfig-secret").await.unwrap();
        secret.data.unwrap()
    };
    let first = kept().await;
    world.pass(3600 * 24).await;
    let later = kept().await;
    assert_ne!(first["tls.crt"], later["tls.crt"]);
    assert_ne!(
        first["tls.key"], later["tls.key"],
        "with a new key each time"
    );
    assert_eq!(first["agent-name"], later["agent-name"]);
    world.until_condition("c1", AVAILABLE, "True").await;
    let clusters: Api<ManagedCluster> = Api::all(running.hub_client().await);
    let status = clusters.get("c1").await.unwrap().status.unwrap();
    let rotated = condition(&status.conditions, "ClusterCertificateRotated").unwrap();
    assert!(
        rotated.message.contains("from 2026-01-0"),
        "{}",
        rotated.message
    );
}

#[tokio::test(start_paused = true)]
async fn a_renewal_that_fails_is_told_and_tried_again_while_the_member_lives_on() {
    let world = World::start().await;
    let mut controllers = world.control(&[]);
    let token = world.token(Some("c1")).await;
    let mut member = world.member("c1", &token).await;
    member.agent.expiration_seconds = Some(36_000);
    let _running = member.start();
    world.until_condition("c1", AVAILABLE, "True").await;
    // Nobody answers requests.
    let approver = controllers.pop().unwrap();
    approver.abort();
    let rotated = "ClusterCertificateRotated";
    world.until_condition("c1", rotated, "True").await;
    world.pass(29_500).await;
    world.until_condition("c1", rotated, "False").await;
    let status = world.managed_cluster("c1").await.status.unwrap();
    let told = condition(&status.conditions, rotated).unwrap();
    assert_eq!(told.reason, "ClientCertificateUpdateFailed");
    assert!(
        told.message.contains("has not answered"),
        "{}",
        told.message
    );
    world.pass(5).await;
    assert!(
        reasons(&world)
            .await
            .contains(&"CertificateRotationFailed".to_owned())
    );
    // Meanwhile it is heard of as ever.
    world.pass(3600).await;
    world.until_condition("c1", AVAILABLE, "True").await;
    controllers.extend(world.control(&[]).pop());
    world.pass(1000).await;
    world.until_condition("c1", rotated, "True").await;
    world.until_condition("c1", AVAILABLE, "True").await;
}

#[tokio::test(start_paused = true)]
async fn agents_that_share_a_watch_are_told_of_their_own_cluster_alone() {
    let world = World::start().await;
    let hub = world.hub();
    let _controllers = world.control(&[]);
    let roster = Roster::new(hub.cache());
    let mut agents = Vec::new();
    for name in ["c1", "c10"] {
        let token = world.token(Some(name)).await;
        let member = world.neighbour(name, &token, &roster).await;
        let running = member.start();
        world.until_condition(name, AVAILABLE, "True").await;
        agents.push((member, running));
    }
    let (first, second) = (&agents[0], &agents[1]);
    // Sharing is no right: what they ask for passes with their own certificates.
    crate::attempts::all_fail(&first.1.hub_client().await, "c1", "c10").await;
    let cluster = |name: &str| {
        json!({"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
            "metadata": {"name": name}})
    };
    world.delete(&cluster("c1")).await;
    world
        .until("its agent has ended".into(), async || {
            world.pass(1).await;
            let is_over = first.1.task.is_finished();
            is_over.then_some(()).ok_or("it lives".to_owned())
        })
        .await;
    world.pass(600).await;
    assert!(!second.1.task.is_finished());
    world.until_condition("c10", AVAILABLE, "True").await;
}

#[tokio::test(start_paused = true)]
async fn what_happens_to_a_cluster_is_told_as_events() {
    let world = World::start().await;
    let _controllers = world.control(&[]);
    let running = joined(&world, "c1").await;
    world.pass(5).await;
    let mut told = reasons(&world).await;
    told.sort();
    assert_eq!(told, ["Accepted", "Available", "Joined"]);
    running.stop().await;
    world.pass(400).await;
    assert_eq!(reasons(&world).await.last().unwrap(), "AvailableUnknown");
}

#[tokio::test(start_paused = true)]
async fn claims_and_properties_are_reported_and_what_is_too_much_is_told() {
    let world = World::start().await;
    let _controllers = world.control(&[]);
    let token = world.token(Some("c1")).await;
    let mut member = world.member("c1", &token).await;
    member.agent.claims = ClaimOptions {
        most_custom: 2,
        reserved_suffixes: vec![".example.com".to_owned()],
        properties: true,
    };
    let client = member.agent.member.client();
    let claims: Api<ClusterClaim> = Api::all(client.clone());
    for (name, value) in [
        ("a", "1"),
        ("b", "2"),
        ("c", "3"),
        ("zone.example.com", "4"),
    ] {
        let claim = json!({"metadata": {"name": name}, "spec": {"value": value}});
        let claim = serde_json::from_value(claim).unwrap();
        claims.create(&PostParams::default(), &claim).await.unwrap();
    }
    let reported = async || -> Vec<String> {
        world.pass(40).await;
        let status = world.managed_cluster("c1").await.status.unwrap();
        let text = |it: &Option<String>| it.clone().unwrap_or_default();
        let claims = status.cluster_claims.iter();
        claims
            .map(|it| format!("{}={}", text(&it.name), text(&it.value)))
            .collect()
    };
    let _running = member.start();
    world.until_condition("c1", AVAILABLE, "True").await;
    // The member does not know the kind of properties yet.
    assert_eq!(reported().await, ["zone.example.com=4", "a=1", "b=2"]);
    let events: Api<k8s_openapi::api::core::v1::Event> =
        Api::namespaced(world.client.clone(), "c1");
    let told = events.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(told.len(), 1);
    assert_eq!(
        told[0].reason.as_deref(),
        Some("CustomClusterClaimsTruncated")
    );
    assert_eq!(
        told[0].message.as_deref(),
        Some(
            "3 cluster claims are found. It exceeds the max number of custom cluster claims (2). \
             1 custom cluster claims are not exposed."
        )
    );
    let mut definition = bellwether_api::definition::<ClusterProperty>();
    // Groups of Kubernetes' own domain need it.
    definition["metadata"]["annotations"] =
        json!({"api-approved.kubernetes.io": "unapproved, a test"});
    world.server.ensure("c1", definition).await.unwrap();
    let properties: Api<ClusterProperty> = Api::all(client);
    let property = json!({"metadata": {"name": "b"}, "spec": {"value": "property"}});
    let property = serde_json::from_value(property).unwrap();
    properties
        .create(&PostParams::default(), &property)
        .await
        .unwrap();
    assert_eq!(
        reported().await,
        ["zone.example.com=4", "a=1", "b=property"]
    );
}

#[tokio::test(start_paused = true)]
async fn namespaces_that_a_set_wants_are_on_its_members() {
    let world = World::start().await;
    let _controllers = world.control(&[]);
    let token = world.token(Some("c1")).await;
    let member = world.member("c1", &token).await;
    let namespaces: Api<Namespace> = Api::all(member.agent.member.client());
    let running = member.start();
    world.until_condition("c1", AVAILABLE, "True").await;
    let set = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta2", "kind": "ManagedClusterSet",
        "metadata": {"name": "default"},
    });
    let want = async |names: serde_json::Value| {
        world
            .merge(&set, json!({"spec": {"managedNamespaces": names}}))
            .await;
        world.pass(5).await;
    };
    want(json!([{"name": "team-b"}, {"name": "team-a"}])).await;
    let said = async || -> Vec<(String, String, String)> {
        let status = world.managed_cluster("c1").await.status.unwrap();
        let read = |it: &bellwether_api::cluster::ClusterSetManagedNamespace| {
            let reason = it.conditions.first().map(|it| it.reason.clone());
            (
                it.cluster_set.clone(),
                it.name.clone(),
                reason.unwrap_or_default(),
            )
        };
        status.managed_namespaces.iter().map(read).collect()
    };
    let applied = |name: &str| ("default".into(), name.into(), "NamespaceApplied".into());
    assert_eq!(said().await, [applied("team-a"), applied("team-b")]);
    let marks = async |name: &str| -> Vec<String> {
        let labels = namespaces.get(name).await.unwrap().metadata.labels.unwrap();
        let is_mark = |(key, _): &(&String, &String)| {
            key.starts_with("clusterset.open-cluster-management.io/")
        };
        labels
            .iter()
            .filter(is_mark)
            .map(|(_, value)| value.clone())
            .collect()
    };
    assert_eq!(marks("team-b").await, ["true"]);
    // One that is not wanted any more stays, without the mark; one that is deleted comes back.
    want(json!([{"name": "team-a"}])).await;
    assert_eq!(said().await, [applied("team-a")]);
    assert_eq!(marks("team-b").await, ["false"]);
    namespaces
        .delete("team-a", &DeleteParams::default())
        .await
        .unwrap();
    world.pass(150).await;
    assert_eq!(marks("team-a").await, ["true"]);
    want(json!(null)).await;
    assert_eq!(said().await, []);
    assert_eq!(marks("team-a").await, ["false"]);
    running.stop().await;
}

#[tokio::test(start_paused = true)]
async fn an_expired_certificate_is_replaced_with_the_bootstrap_credentials() {
    let world = World::start().await;
    let _controllers = world.control(&[]);
    let token = world.token(Some("c1")).await;
    let mut member = world.member("c1", &token).await;
    member.agent.expiration_seconds = Some(3600);
    let running = member.start();
    world.until_condition("c1", AVAILABLE, "True").await;
    running.stop().await;
    // The agent is away for longer than its certificate is good; the token has expired as well.
    world.pass(2 * 3600).await;
    let refused = bellwether_agent::registration::join(&member.agent).await;
    let refused = refused.unwrap_err().to_string();
    for part in [
        "the certificate of c1 expired at 2026-01-01T0",
        "the hub does not know the token",
        "bellwether token create --cluster-name c1",
        "bellwether cluster join --cluster-name c1",
    ] {
        assert!(refused.contains(part), "{refused}");
    }
    // With another token it comes back, and is the member that it was.
    let token = world.token(Some("c1")).await;
    let again = world.member("c1", &token).await;
    let _running = again.start();
    world.until_condition("c1", AVAILABLE, "True").await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_of_the_hubs_process_that_was_away_while_it_was_detached_ends() {
    let world = World::start().await;
    let _controllers = world.control(&[]);
    let roster = Roster::new(world.hub().cache());
    let token = world.token(Some("c1")).await;
    let member = world.neighbour("c1", &token, &roster).await;
    let running = member.start();
    world.until_condition("c1", AVAILABLE, "True").await;
    running.stop().await;
    let clusters: Api<ManagedCluster> = Api::all(world.client.clone());
    let params = DeleteParams::default();
    clusters.delete("c1", &params).await.unwrap();
    world
        .until("it is gone".into(), async || {
            world.pass(1).await;
            let found = clusters.get_opt("c1").await.unwrap();
            found.is_none().then_some(()).ok_or_else(String::new)
        })
        .await;
    let running = member.start();
    world.pass(60).await;
    assert!(running.task.is_finished(), "it waits for rights in vain");
    let secrets = "open-cluster-management-agent";
    let secrets: Api<Secret> = Api::namespaced(member.agent.member.client(), secrets);
    let kept = secrets.list(&ListParams::default()).await.unwrap().items;
    assert_eq!(kept.len(), 0, "its credentials are removed");
    assert!(clusters.get_opt("c1").await.unwrap().is_none());
}
