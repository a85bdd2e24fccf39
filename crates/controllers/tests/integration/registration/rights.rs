//! What a member may do, until it leaves or is denied; and that it can do nothing to another.

use super::{AVAILABLE, joined, reasons};
use crate::common::World;
use bellwether_api::cluster::ManagedCluster;
use bellwether_api::meta::condition;
use bellwether_apiserver::HUB;
use futures::StreamExt as _;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::api::rbac::v1::{ClusterRole, RoleBinding};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};

#[tokio::test(start_paused = true)]
async fn a_member_can_do_nothing_to_another() {
    let world = World::start().await;
    let _controllers = world.control(&[]);
    let (first, second) = (joined(&world, "c1").await, joined(&world, "c10").await);
    world.pass(5).await;
    let client = first.hub_client().await;
    let own: Api<Lease> = Api::namespaced(client.clone(), "c1");
    assert!(own.get("managed-cluster-lease").await.is_ok());
    crate::attempts::all_fail(&client, "c1", "c10").await;
    // The name of the other begins like its own; that does not help it the other way round either.
    crate::attempts::all_fail(&second.hub_client().await, "c10", "c1").await;
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
    // The other's own request, word for word, in the other's name and in its own.
    let mut stolen = of_other.unwrap().clone();
    let label = |cluster: &str| {
        serde_json::from_value(json!({
            "generateName": "c1-",
            "labels": {"open-cluster-management.io/cluster-name": cluster},
        }))
        .unwrap()
    };
    stolen.status = None;
    stolen.metadata = label("c10");
    let own: Api<CertificateSigningRequest> = Api::all(client);
    let refused = own.create(&PostParams::default(), &stolen).await;
    let refused = refused.unwrap_err().to_string();
    assert!(
        refused.contains("may ask for certificates of the cluster c1 only"),
        "{refused}"
    );
    stolen.metadata = label("c1");
    let made = own.create(&PostParams::default(), &stolen).await.unwrap();
    world.pass(60).await;
    let answer = own.get(&made.metadata.name.unwrap()).await.unwrap();
    assert!(
        answer.status.is_none_or(|it| it.conditions.is_none()),
        "left to people"
    );
}

#[tokio::test(start_paused = true)]
async fn nobody_takes_a_name_that_is_reserved_for_the_agent_of_a_cluster() {
    let world = World::start().await;
    let _controllers = world.control(&[]);
    let (first, second) = (joined(&world, "c1").await, joined(&world, "c10").await);
    let anybody = world.token(None).await;
    let anybody = world.server.client_with_token(HUB, &anybody.reveal());
    let requests: Api<CertificateSigningRequest> = Api::all(world.client.clone());
    let list = requests.list(&ListParams::default()).await.unwrap();
    let mut request = list.items[0].clone();
    request.status = None;
    request.metadata = serde_json::from_value(json!({"name": "c10-renewal-0"})).unwrap();
    for client in [first.hub_client().await, anybody] {
        let requests: Api<CertificateSigningRequest> = Api::all(client);
        let refused = requests.create(&PostParams::default(), &request).await;
        let refused = refused.unwrap_err().to_string();
        let why = "the name is reserved for the agent of the cluster c10";
        assert!(refused.contains(why), "{refused}");
    }
    let own: Api<CertificateSigningRequest> = Api::all(second.hub_client().await);
    own.create(&PostParams::default(), &request).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_member_sees_the_requests_that_it_made_and_no_others() {
    let world = World::start().await;
    let _controllers = world.control(&[]);
    let mut members = Vec::new();
    for name in ["c1", "c10"] {
        let token = world.token(Some(name)).await;
        let mut member = world.member(name, &token).await;
        member.agent.expiration_seconds = Some(3600);
        members.push(member.start());
        world.until_condition(name, AVAILABLE, "True").await;
    }
    // Both have renewed their certificates.
    world.pass(3000).await;
    let all: Api<CertificateSigningRequest> = Api::all(world.client.clone());
    let all = all.list(&ListParams::default()).await.unwrap().items;
    assert!(all.len() >= 4, "{}", all.len());
    for (name, member) in ["c1", "c10"].into_iter().zip(&members) {
        let user = format!("system:open-cluster-management:{name}:");
        let is_own = |it: &CertificateSigningRequest| {
            let sender = it.spec.username.as_deref().unwrap_or_default();
            sender.starts_with(&user)
        };
        let own: Api<CertificateSigningRequest> = Api::all(member.hub_client().await);
        let seen = own.list(&ListParams::default()).await.unwrap().items;
        assert!(!seen.is_empty() && seen.iter().all(is_own), "{seen:?}");
        // A selector of its own does not widen the view.
        let other = all.iter().find(|it| !is_own(it)).unwrap();
        let other = other.metadata.name.clone().unwrap();
        let by_name = ListParams::default().fields(&format!("metadata.name={other}"));
        assert_eq!(own.list(&by_name).await.unwrap().items.len(), 0);
        assert!(own.get_opt(&other).await.unwrap().is_none());
        let params = kube::api::WatchParams::default().timeout(1);
        let watched = own.watch(&params, "0").await.unwrap();
        let watched: Vec<_> = watched.collect().await;
        let names = watched
            .into_iter()
            .filter_map(|event| match event.unwrap() {
                kube::api::WatchEvent::Added(it) => it.metadata.name,
                _ => None,
            });
        let expected: Vec<String> = seen.into_iter().filter_map(|it| it.metadata.name).collect();
        assert_eq!(names.collect::<Vec<_>>(), expected);
    }
}

/// An add-on of a cluster, which somebody has to remove.
async fn add_on(world: &World) -> Value {
    let add_on = json!({
        "apiVersion": "addon.open-cluster-management.io/v1alpha1", "kind": "ManagedClusterAddOn",
        "metadata": {"name": "a", "namespace": "c1", "finalizers": ["example.com/agent"]},
        "spec": {},
    });
    world.create(add_on.clone()).await;
    add_on
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
    // What is changed is repaired as well.
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
    // It is not accepted again behind the back of anyone who denied it.
    world.pass(3600).await;
    assert!(!clusters.get("c1").await.unwrap().spec.hub_accepts_client);
}
