//! Membership on an embedded hub: joining, being heard of, renewing, leaving; and that a member can
//! do nothing to another, tried with its real credentials.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod attempts;
mod common;

use bellwether_api::about::ClusterProperty;
use bellwether_api::cluster::{ClusterClaim, ManagedCluster};
use bellwether_api::meta::condition;
use bellwether_apiserver::HUB;
use bellwether_controllers::registration::agent::{ClaimOptions, Roster};
use common::{Running, World};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret};
use k8s_openapi::api::rbac::v1::{ClusterRole, RoleBinding};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

const AVAILABLE: &str = "ManagedClusterConditionAvailable";
const JOINED: &str = "ManagedClusterJoined";

fn taints(cluster: &ManagedCluster) -> Vec<&str> {
    cluster
        .spec
        .taints
        .iter()
        .map(|it| it.key.as_str())
        .collect()
}

/// A member that has joined by a token of its own.
async fn joined(world: &World, name: &str) -> Running {
    let token = world.token(Some(name)).await;
    let running = world.member(name, &token).await.start();
    world.until_condition(name, AVAILABLE, "True").await;
    running
}

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
    let cluster = world.managed_cluster("c2").await;
    assert!(!cluster.spec.hub_accepts_client);
    assert_eq!(
        taints(&cluster),
        ["cluster.open-cluster-management.io/unreachable"]
    );
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
    let _controllers = world.control(&[]);
    let token = world.token(Some("c1")).await;
    let mut member = world.member("c1", &token).await;
    member.agent.expiration_seconds = Some(36_000);
    let _running = member.start();
    world.until_condition("c1", AVAILABLE, "True").await;
    // All names for renewals are taken.
    let requests: Api<CertificateSigningRequest> = Api::all(world.client.clone());
    let known = requests.list(&ListParams::default()).await.unwrap().items;
    for number in 0..10 {
        let mut another = known[0].clone();
        another.metadata = kube::api::ObjectMeta {
            name: Some(format!("c1-renewal-{number}")),
            ..kube::api::ObjectMeta::default()
        };
        another.status = None;
        requests
            .create(&PostParams::default(), &another)
            .await
            .unwrap();
    }
    let rotated = "ClusterCertificateRotated";
    world.until_condition("c1", rotated, "True").await;
    world.pass(29_000).await;
    world.until_condition("c1", rotated, "False").await;
    let status = world.managed_cluster("c1").await.status.unwrap();
    let told = condition(&status.conditions, rotated).unwrap();
    assert_eq!(told.reason, "ClientCertificateUpdateFailed");
    assert!(told.message.contains("are taken"), "{}", told.message);
    world.pass(5).await;
    assert!(
        reasons(&world)
            .await
            .contains(&"CertificateRotationFailed".to_owned())
    );
    // Meanwhile it is heard of as ever.
    world.pass(3600).await;
    world.until_condition("c1", AVAILABLE, "True").await;
    let first = DeleteParams::default();
    requests.delete("c1-renewal-0", &first).await.unwrap();
    world.pass(700).await;
    world.until_condition("c1", rotated, "True").await;
    world.until_condition("c1", AVAILABLE, "True").await;
}

#[tokio::test(start_paused = true)]
async fn a_member_can_do_nothing_to_another() {
    let world = World::start().await;
    let _controllers = world.control(&[]);
    let (first, second) = (joined(&world, "c1").await, joined(&world, "c10").await);
    world.pass(5).await;
    let client = first.hub_client().await;
    let own: Api<Lease> = Api::namespaced(client.clone(), "c1");
    assert!(own.get("managed-cluster-lease").await.is_ok());
    attempts::all_fail(&client, "c1", "c10").await;
    // The name of the other begins like its own; that does not help it the other way round either.
    attempts::all_fail(&second.hub_client().await, "c10", "c1").await;
    // Its own works it may finish with.
    let work = json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": "done", "namespace": "c1"},
        "spec": {"workload": {"manifests": [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}},
        ]}},
    });
    world.create(work).await;
    let works: Api<bellwether_api::work::ManifestWork> = Api::namespaced(client, "c1");
    assert!(works.delete("done", &DeleteParams::default()).await.is_ok());
}

#[tokio::test(start_paused = true)]
async fn a_member_gets_no_certificate_for_another() {
    let world = World::start().await;
    let _controllers = world.control(&[]);
    let (first, _second) = (joined(&world, "c1").await, joined(&world, "c10").await);
    let client = first.hub_client().await;
    let requests: Api<CertificateSigningRequest> = Api::all(world.client.clone());
    let list = requests.list(&ListParams::default()).await.unwrap();
    let of_other = list.items.iter().find(|it| {
        it.metadata
            .labels
            .as_ref()
            .unwrap()
            .values()
            .any(|cluster| cluster == "c10")
    });
    // The other's own request, word for word, under a name that the first may read.
    let mut stolen = of_other.unwrap().clone();
    stolen.metadata = serde_json::from_value(json!({
        "name": "c1-renewal-0",
        "labels": {"open-cluster-management.io/cluster-name": "c10"},
    }))
    .unwrap();
    stolen.status = None;
    let own: Api<CertificateSigningRequest> = Api::all(client);
    own.create(&PostParams::default(), &stolen).await.unwrap();
    world.pass(60).await;
    let answer = own.get("c1-renewal-0").await.unwrap();
    assert!(
        answer.status.is_none_or(|it| it.conditions.is_none()),
        "left to people"
    );
}

/// An add-on of a cluster, which somebody has to remove; its kind is not ours.
async fn add_on(world: &World) -> Value {
    let group = "addon.open-cluster-management.io";
    let (plural, kind) = ("managedclusteraddons", "ManagedClusterAddOn");
    let schema = json!({"openAPIV3Schema": {"type": "object"}});
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {"group": group, "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": "managedclusteraddon"},
            "versions": [{"name": "v1alpha1", "served": true, "storage": true, "schema": schema}]},
    });
    world.server.ensure(HUB, definition).await.unwrap();
    let add_on = json!({
        "apiVersion": format!("{group}/v1alpha1"), "kind": kind,
        "metadata": {"name": "a", "namespace": "c1", "finalizers": ["example.com/agent"]},
    });
    world.create(add_on.clone()).await;
    add_on
}

#[tokio::test(start_paused = true)]
async fn agents_that_share_a_watch_are_told_of_their_own_cluster_alone() {
    let world = World::start().await;
    let hub = world.hub();
    let _controllers = world.control(&[]);
    let roster = Roster::new(hub.clusters.clone());
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
    attempts::all_fail(&first.1.hub_client().await, "c1", "c10").await;
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
async fn a_cluster_that_leaves_takes_its_rights_with_it() {
    let world = World::start().await;
    let _controllers = world.control(&[]);
    let token = world.token(Some("c1")).await;
    let joining = world.member("c1", &token).await;
    let member = joining.agent.member.client();
    let running = joining.start();
    world.until_condition("c1", AVAILABLE, "True").await;
    let client = running.hub_client().await;
    let work = json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": "w", "namespace": "c1", "finalizers": ["example.com/agent"]},
        "spec": {"workload": {"manifests": [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}},
        ]}},
    });
    world.create(work.clone()).await;
    // One of the other interface, whose turn comes later.
    let small = json!({
        "apiVersion": "multicluster.x-k8s.io/v1alpha1", "kind": "Work",
        "metadata": {"name": "s", "namespace": "c1",
            "annotations": {"open-cluster-management.io/cleanup-priority": "10"}},
        "spec": {"workload": {"manifests": [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "n"}},
        ]}},
    });
    world.create(small).await;
    let add_on = add_on(&world).await;
    let cluster = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": "c1"},
    });
    world.delete(&cluster).await;
    // Add-ons go first, since they make works.
    world.until_condition("c1", "Deleting", "False").await;
    let status = world.managed_cluster("c1").await.status.unwrap();
    let told = condition(&status.conditions, "Deleting").unwrap();
    assert!(
        told.message.contains("managedclusteraddons"),
        "{}",
        told.message
    );
    world
        .merge(&add_on, json!({"metadata": {"finalizers": null}}))
        .await;
    let smalls: Api<bellwether_api::multicluster::Work> =
        Api::namespaced(world.client.clone(), "c1");
    assert!(smalls.get_opt("s").await.unwrap().is_some());
    // The agent removes what it runs, and needs its rights for that.
    let own: Api<bellwether_api::work::ManifestWork> = Api::namespaced(client.clone(), "c1");
    world
        .until("the work is deleted".into(), async || {
            world.pass(1).await;
            let live = own.get("w").await.unwrap();
            let is_deleted = live.metadata.deletion_timestamp.is_some();
            is_deleted.then_some(()).ok_or_else(String::new)
        })
        .await;
    let done = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    own.patch("w", &PatchParams::default(), &done)
        .await
        .unwrap();
    let clusters: Api<ManagedCluster> = Api::all(world.client.clone());
    world
        .until("it is gone".into(), async || {
            world.pass(1).await;
            match clusters.get_opt("c1").await.unwrap() {
                None => Ok(()),
                Some(_) => Err("there".into()),
            }
        })
        .await;
    assert!(smalls.get_opt("s").await.unwrap().is_none());
    // On the member nothing is left of what it joined with, and the agent has ended.
    let secrets: Api<Secret> = Api::namespaced(member, "open-cluster-management-agent");
    world
        .until("credentials are gone".into(), async || {
            world.pass(1).await;
            let secrets = secrets.list(&ListParams::default()).await.unwrap().items;
            let names: Vec<_> = secrets
                .into_iter()
                .filter_map(|it| it.metadata.name)
                .collect();
            names.is_empty().then_some(()).ok_or(format!("{names:?}"))
        })
        .await;
    world.pass(600).await;
    assert!(
        clusters.get_opt("c1").await.unwrap().is_none(),
        "it does not come back by itself"
    );
    running.stop().await;
    let requests: Api<CertificateSigningRequest> = Api::all(world.client.clone());
    assert_eq!(
        requests
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .len(),
        0
    );
    let tokens: Api<Secret> = Api::namespaced(world.client.clone(), "kube-system");
    let promised = ListParams::default().labels("open-cluster-management.io/cluster-name=c1");
    assert_eq!(tokens.list(&promised).await.unwrap().items.len(), 0);
    let roles: Api<ClusterRole> = Api::all(world.client.clone());
    let own = "open-cluster-management:managedcluster:c1";
    assert!(roles.get_opt(own).await.unwrap().is_none());
    let bindings: Api<RoleBinding> = Api::namespaced(world.client.clone(), "c1");
    assert_eq!(
        bindings
            .list(&ListParams::default())
            .await
            .unwrap()
            .items
            .len(),
        0
    );
    let maps: Api<ConfigMap> = Api::namespaced(client, "c1");
    assert!(maps.list(&ListParams::default()).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn rights_that_somebody_takes_away_come_back_while_the_hub_runs() {
    let world = World::start().await;
    let _controllers = world.control(&[]);
    let running = joined(&world, "c1").await;
    world.pass(5).await;
    let own: Api<Lease> = Api::namespaced(running.hub_client().await, "c1");
    assert!(own.get("managed-cluster-lease").await.is_ok());
    let rbac = "rbac.authorization.k8s.io/v1";
    let name = "open-cluster-management:managedcluster:c1";
    for right in [
        json!({"apiVersion": rbac, "kind": "RoleBinding",
            "metadata": {"name": format!("{name}:registration"), "namespace": "c1"}}),
        json!({"apiVersion": rbac, "kind": "ClusterRoleBinding", "metadata": {"name": name}}),
        json!({"apiVersion": rbac, "kind": "ClusterRole",
            "metadata": {"name": "open-cluster-management:managedcluster:registration"}}),
    ] {
        world.delete(&right).await;
        world.pass(5).await;
        assert!(own.get("managed-cluster-lease").await.is_ok(), "{right}");
    }
    // What is changed is put right as well.
    let role = json!({"apiVersion": rbac, "kind": "ClusterRole", "metadata": {"name": name}});
    world.merge(&role, json!({"rules": []})).await;
    world.pass(5).await;
    let clusters: Api<ManagedCluster> = Api::all(running.hub_client().await);
    assert!(clusters.get("c1").await.is_ok());
    assert!(reasons(&world).await.contains(&"RightsRestored".to_owned()));
    // And the lease, without which nobody would hear of the cluster.
    let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "managed-cluster-lease", "namespace": "c1"}});
    world.delete(&lease).await;
    world.pass(5).await;
    assert!(own.get("managed-cluster-lease").await.is_ok());
}

/// The reasons of events about clusters, in the order in which they were told.
async fn reasons(world: &World) -> Vec<String> {
    let events: Api<k8s_openapi::api::core::v1::Event> =
        Api::namespaced(world.client.clone(), "default");
    let mut list = events.list(&ListParams::default()).await.unwrap().items;
    list.retain(|it| it.involved_object.kind.as_deref() == Some("ManagedCluster"));
    list.sort_by_key(|it| it.first_timestamp.as_ref().map(|it| it.0));
    list.into_iter().filter_map(|it| it.reason).collect()
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
    let definition = bellwether_api::definition::<ClusterProperty>();
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
async fn a_cluster_that_is_denied_may_only_see_that_it_is() {
    let world = World::start().await;
    let _controllers = world.control(&[]);
    let running = joined(&world, "c1").await;
    let client = running.hub_client().await;
    let clusters: Api<ManagedCluster> = Api::all(world.client.clone());
    let deny = Patch::Merge(json!({"spec": {"hubAcceptsClient": false}}));
    clusters
        .patch("c1", &PatchParams::default(), &deny)
        .await
        .unwrap();
    world
        .until_condition("c1", "HubAcceptedManagedCluster", "False")
        .await;
    world.pass(5).await;
    let own: Api<ManagedCluster> = Api::all(client.clone());
    assert!(own.get("c1").await.is_ok());
    let leases: Api<Lease> = Api::namespaced(client, "c1");
    assert!(leases.get("managed-cluster-lease").await.is_err());
    // It is not accepted again behind the back of whoever denied it.
    world.pass(3600).await;
    assert!(!clusters.get("c1").await.unwrap().spec.hub_accepts_client);
}
