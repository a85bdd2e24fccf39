//! Placements on an embedded hub: what is chosen, what is written, and when.

use crate::common;

use std::collections::{BTreeMap, BTreeSet};

use bellwether_api::cluster::PlacementDecision;
use bellwether_api::meta::condition;
use common::{World, binding, cluster_set};
use futures::StreamExt as _;
use kube::Api;
use kube::api::{ListParams, WatchEvent, WatchParams};
use serde_json::json;

#[tokio::test(start_paused = true)]
async fn a_placement_chooses_from_what_its_namespace_is_bound_to() {
    let world = World::start().await;
    let _scheduler = world.schedule();
    world.cluster("a", &[("region", "emea")]).await;
    world.cluster("b", &[("region", "amer")]).await;
    world.place("all", json!({})).await;
    let status = async || world.placement("all").await.status.unwrap_or_default();
    let reason = async |wanted: &str| {
        world
            .until(format!("reason {wanted}"), async || {
                let status = status().await;
                let found = condition(&status.conditions, "PlacementSatisfied");
                let found = found.map(|it| it.reason.clone()).unwrap_or_default();
                (found == wanted).then_some(()).ok_or(found)
            })
            .await;
    };
    reason("NoManagedClusterSetBindings").await;
    world.create(binding("default", "default")).await;
    world.create(cluster_set("default")).await;
    world.until_chosen("all", &["a", "b"]).await;
    reason("AllDecisionsScheduled").await;
    assert_eq!(status().await.number_of_selected_clusters, 2);
    world.delete(&binding("default", "default")).await;
    world.until_chosen("all", &[]).await;
    reason("NoManagedClusterSetBindings").await;
}

#[tokio::test(start_paused = true)]
async fn groups_are_numbered_and_sliced_over_objects() {
    let world = World::start().await;
    world.bind_default().await;
    for number in 0..310 {
        let labels: &[(&str, &str)] = if number % 31 == 0 {
            &[("canary", "yes")]
        } else {
            &[]
        };
        world.cluster(&format!("c{number:03}"), labels).await;
    }
    let _scheduler = world.schedule();
    let spec = json!({"decisionStrategy": {"groupStrategy": {
        "clustersPerDecisionGroup": 150,
        "decisionGroups": [{"groupName": "canary", "groupClusterSelector":
            {"labelSelector": {"matchLabels": {"canary": "yes"}}}}],
    }}});
    world.place("wide", spec).await;
    let decided = world
        .until("all are written".into(), async || {
            let decided = world.decisions("wide").await;
            let count: usize = decided.iter().map(|it| it.clusters.len()).sum();
            (count == 310).then_some(decided).ok_or(count.to_string())
        })
        .await;
    let shape: Vec<_> = decided
        .iter()
        .map(|it| (it.number, &*it.group.0, &*it.group.1, it.clusters.len()))
        .collect();
    let expected = [
        (1, "0", "canary", 10),
        (2, "1", "", 100),
        (3, "1", "", 50),
        (4, "2", "", 100),
        (5, "2", "", 50),
    ];
    assert_eq!(shape, expected);
    let status = world
        .until("the status".into(), async || {
            world.placement("wide").await.status.ok_or(String::new())
        })
        .await;
    let groups: Vec<_> = status
        .decision_groups
        .iter()
        .map(|it| {
            (
                it.decision_group_index,
                it.clusters_count,
                it.decisions.len(),
            )
        })
        .collect();
    assert_eq!(groups, [(0, 10, 1), (1, 150, 2), (2, 150, 2)]);
}

#[tokio::test(start_paused = true)]
async fn a_typo_in_an_expression_evicts_nobody_and_says_so() {
    let world = World::start().await;
    world.bind_default().await;
    let _scheduler = world.schedule();
    world.cluster("a", &[]).await;
    let predicate = |expression: &str| {
        json!({"predicates": [{"requiredClusterSelector":
        {"celSelector": {"celExpressions": [expression]}}}]})
    };
    let good = predicate("managedCluster.metadata.name == 'a'");
    let placement = world.place("typo", good).await;
    world.until_chosen("typo", &["a"]).await;
    world
        .merge(
            &placement,
            json!({"spec": predicate("managedCluster.metadata.nam ===")}),
        )
        .await;
    world
        .until("it is misconfigured".into(), async || {
            let status = world.placement("typo").await.status.unwrap_or_default();
            let found = condition(&status.conditions, "PlacementMisconfigured").cloned();
            let found = found.ok_or("no condition")?;
            let is_right = found.status == "True" && found.message.contains("compilation failed");
            is_right.then_some(()).ok_or(found.message)
        })
        .await;
    assert_eq!(world.chosen("typo").await, ["a"]);
    world
        .merge(&placement, json!({"spec": predicate("false")}))
        .await;
    world.until_chosen("typo", &[]).await;
}

#[tokio::test(start_paused = true)]
async fn a_toleration_ends_and_a_score_expires_in_time() {
    let world = World::start().await;
    world.bind_default().await;
    let _scheduler = world.schedule();
    world.cluster("a", &[]).await;
    let tainted = world.cluster("b", &[]).await;
    let tolerations = json!([{"key": "slow", "operator": "Exists", "tolerationSeconds": 600}]);
    world
        .place("patient", json!({"tolerations": tolerations}))
        .await;
    world.until_chosen("patient", &["a", "b"]).await;
    let taint = json!([{"key": "slow", "effect": "NoSelect"}]);
    world
        .merge(&tainted, json!({"spec": {"taints": taint}}))
        .await;
    world.pass(590).await;
    assert_eq!(world.chosen("patient").await, ["a", "b"]);
    world.pass(20).await;
    assert_eq!(world.chosen("patient").await, ["a"]);
    // Scores of b count for a while only, then nothing speaks for it.
    world
        .create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "b"}}))
        .await;
    world.merge(&tainted, json!({"spec": {"taints": []}})).await;
    let until = (world.now() + std::time::Duration::from_mins(5)).to_string();
    world
        .create(json!({
            "apiVersion": "cluster.open-cluster-management.io/v1alpha1",
            "kind": "AddOnPlacementScore", "metadata": {"name": "free", "namespace": "b"},
            "status": {"scores": [{"name": "gpu", "value": 80}], "validUntil": until},
        }))
        .await;
    let coordinate =
        json!({"type": "AddOn", "addOn": {"resourceName": "free", "scoreName": "gpu"}});
    let policy = json!({"mode": "Exact", "configurations": [{"scoreCoordinate": coordinate}]});
    world
        .place(
            "best",
            json!({"numberOfClusters": 1, "prioritizerPolicy": policy}),
        )
        .await;
    world.until_chosen("best", &["b"]).await;
    assert_eq!(world.decisions("best").await[0].scores, [80]);
    world.pass(310).await;
    assert_eq!(world.chosen("best").await, ["a"]);
}

#[tokio::test(start_paused = true)]
async fn no_reader_misses_a_cluster_that_moves_between_objects() {
    let world = World::start().await;
    world.bind_default().await;
    let mut clusters = Vec::new();
    for number in 0..250 {
        clusters.push(world.cluster(&format!("c{number:03}"), &[]).await);
    }
    let _scheduler = world.schedule();
    let spec = json!({"decisionStrategy": {"groupStrategy": {"decisionGroups": [
        {"groupName": "first", "groupClusterSelector":
            {"labelSelector": {"matchExpressions": [{"key": "first", "operator": "Exists"}]}}}]}}});
    world.place("moving", spec).await;
    let all: Vec<String> = (0..250).map(|number| format!("c{number:03}")).collect();
    let names: Vec<&str> = all.iter().map(String::as_str).collect();
    world.until_chosen("moving", &names).await;
    let api: Api<PlacementDecision> = Api::namespaced(world.client.clone(), "default");
    let list = api.list(&ListParams::default()).await.unwrap();
    let mut objects: BTreeMap<String, PlacementDecision> = list
        .items
        .into_iter()
        .map(|it| (it.metadata.name.clone().unwrap(), it))
        .collect();
    let version = list.metadata.resource_version.unwrap();
    let mut events = api
        .watch(&WatchParams::default(), &version)
        .await
        .unwrap()
        .boxed();
    // Two thirds of the fleet change their group, in three waves.
    for (number, cluster) in clusters
        .iter()
        .enumerate()
        .filter(|(number, _)| number % 3 > 0)
    {
        world
            .merge(cluster, json!({"metadata": {"labels": {"first": "yes"}}}))
            .await;
        if number % 90 == 89 {
            world.pass(1).await;
        }
    }
    world.pass(5).await;
    world
        .create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "end"}}))
        .await;
    let mut seen = 0;
    while let Ok(Some(event)) =
        tokio::time::timeout(std::time::Duration::from_secs(1), events.next()).await
    {
        seen += 1;
        match event.unwrap() {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                let decisions = object.status.as_ref().map_or(0, |it| it.decisions.len());
                assert!(decisions <= 100);
                objects.insert(object.metadata.name.clone().unwrap(), object);
            }
            WatchEvent::Deleted(object) => {
                objects.remove(object.metadata.name.as_deref().unwrap());
            }
            _ => continue,
        }
        let decisions = objects.values().filter_map(|object| object.status.as_ref());
        let decisions = decisions.flat_map(|status| &status.decisions);
        let present: BTreeSet<&str> = decisions.map(|it| it.cluster_name.as_str()).collect();
        assert_eq!(present.len(), 250, "after event {seen}");
    }
    assert!(seen > 3, "{seen}");
    let decided = world.decisions("moving").await;
    let counts: Vec<_> = decided
        .iter()
        .map(|it| (&*it.group.1, it.clusters.len()))
        .collect();
    assert_eq!(counts, [("first", 100), ("first", 66), ("", 84)]);
}

#[tokio::test(start_paused = true)]
async fn what_is_decided_is_written_once_and_survives_a_restart() {
    let world = World::start().await;
    world.bind_default().await;
    for name in ["a", "b", "c"] {
        world.cluster(name, &[]).await;
    }
    let scheduler = world.schedule();
    world.place("two", json!({"numberOfClusters": 2})).await;
    world.until_chosen("two", &["a", "b"]).await;
    world.pass(300).await;
    let before = (world.placement("two").await, world.decisions("two").await);
    world.pass(3600).await;
    assert_eq!(
        (world.placement("two").await, world.decisions("two").await),
        before
    );
    scheduler.abort();
    let _ = scheduler.await;
    world.cluster("0", &[]).await;
    let _scheduler = world.schedule();
    world.pass(5).await;
    // Those that are chosen stay, although another one comes first by name.
    assert_eq!(world.chosen("two").await, ["a", "b"]);
    assert_eq!(world.placement("two").await, before.0);
}

#[tokio::test(start_paused = true)]
async fn what_others_did_to_decisions_is_put_right() {
    let world = World::start().await;
    world.bind_default().await;
    world.cluster("a", &[]).await;
    let _scheduler = world.schedule();
    world.place("own", json!({})).await;
    world.until_chosen("own", &["a"]).await;
    let decision = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "PlacementDecision",
        "metadata": {"name": "own-decision-1", "namespace": "default"},
    });
    world.delete(&decision).await;
    world.until_chosen("own", &["a"]).await;
    let label = "cluster.open-cluster-management.io/decision-group-index";
    world
        .merge(&decision, json!({"metadata": {"labels": {label: "7"}}}))
        .await;
    world
        .until("the label is right".into(), async || {
            let index = world.decisions("own").await[0].group.0.clone();
            (index == "0").then_some(()).ok_or(index)
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn what_happens_to_decisions_is_told_as_events() {
    let world = World::start().await;
    world.bind_default().await;
    let _scheduler = world.schedule();
    let first = world.cluster("a", &[]).await;
    let placement = world.place("told", json!({})).await;
    world.until_chosen("told", &["a"]).await;
    let events: Api<k8s_openapi::api::core::v1::Event> =
        Api::namespaced(world.client.clone(), "default");
    let told = async || -> Vec<(String, String, i32)> {
        world.pass(3).await;
        let list = events.list(&ListParams::default()).await.unwrap().items;
        assert!(
            list.iter()
                .all(|it| it.involved_object.name.as_deref() == Some("told"))
        );
        let read = |it: &k8s_openapi::api::core::v1::Event| {
            let text = |it: &Option<String>| it.clone().unwrap_or_default();
            (text(&it.reason), text(&it.message), it.count.unwrap_or(0))
        };
        let mut told: Vec<_> = list.iter().map(read).collect();
        told.sort();
        told
    };
    let created = "Decision told-decision-1 is created with placement told in namespace default";
    let scored = ("ScoreUpdate".to_owned(), "a:100 ".to_owned(), 1);
    assert_eq!(
        told().await,
        [("DecisionCreate".to_owned(), created.to_owned(), 1), scored]
    );
    // The same event is counted; scores that differ are events of their own.
    world.cluster("b", &[]).await;
    world.until_chosen("told", &["a", "b"]).await;
    world.delete(&first).await;
    world.until_chosen("told", &["b"]).await;
    let after = told().await;
    let updated = after.iter().find(|it| it.0 == "DecisionUpdate").unwrap();
    assert_eq!((updated.2, after.len()), (2, 5), "{after:?}");
    let typo = json!({"predicates": [{"requiredClusterSelector":
        {"celSelector": {"celExpressions": ["managedCluster.metadata.nam ==="]}}}]});
    world.merge(&placement, json!({"spec": typo})).await;
    let after = told().await;
    let wrong = after.iter().find(|it| it.0 == "Misconfigured").unwrap();
    assert!(wrong.1.contains("compilation failed"), "{after:?}");
}

/// A placement as early documents have it, word for word: other names of fields, another operator.
const EARLY: &str = "
apiVersion: cluster.open-cluster-management.io/v1beta1
kind: Placement
metadata:
  name: sample-placement
  namespace: policy-namespace
spec:
  predicates:
    - requiredClusterSelector:
        labelSelector:
          matchExpressions:
            - key: environment
              operator: In
              values:
                - dev
  decisionStrategy:
    groupStrategy:
      clustersPerDecisionGroup: 10
      DecisionGroups:
        - groupName: dev-emea
          clusterSelector:
            matchExpressions:
              - key: dev-emea
                operator: Exist
        - groupName: dev-apac
          clusterSelector:
            matchExpressions:
              - key: dev-apac
                operator: Exist
";

#[tokio::test(start_paused = true)]
async fn a_placement_of_early_documents_is_taken_as_it_stands() {
    let world = World::start().await;
    let _scheduler = world.schedule();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "policy-namespace"}});
    world.create(namespace).await;
    world.create(cluster_set("default")).await;
    world.create(binding("policy-namespace", "default")).await;
    for (name, labels) in [
        ("a", &[("environment", "dev"), ("dev-apac", "")][..]),
        ("b", &[("environment", "dev"), ("dev-emea", "")][..]),
        ("c", &[("environment", "dev")][..]),
        ("d", &[("environment", "prod"), ("dev-emea", "")][..]),
    ] {
        world.cluster(name, labels).await;
    }
    let early = bellwether_json::yaml::value_from_yaml(EARLY).unwrap();
    world.create(early).await;
    let api: Api<PlacementDecision> = Api::namespaced(world.client.clone(), "policy-namespace");
    let label = "cluster.open-cluster-management.io/decision-group-name";
    world
        .until("three groups".into(), async || {
            let list = api.list(&ListParams::default()).await.unwrap().items;
            let group = |it: &PlacementDecision| {
                let labels = it.metadata.labels.clone().unwrap_or_default();
                let decisions = it.status.iter().flat_map(|status| &status.decisions);
                let clusters: Vec<&str> = decisions.map(|it| it.cluster_name.as_str()).collect();
                (labels[label].clone(), clusters.join(" "))
            };
            let groups: Vec<_> = list.iter().map(group).collect();
            let expected = [("dev-emea", "b"), ("dev-apac", "a"), ("", "c")];
            let expected = expected.map(|(name, clusters)| (name.to_owned(), clusters.to_owned()));
            (groups == expected)
                .then_some(())
                .ok_or(format!("{groups:?}"))
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn early_spellings_of_groups_are_accepted() {
    let world = World::start().await;
    world.bind_default().await;
    let _scheduler = world.schedule();
    world.cluster("a", &[("prod-canary-west", "1")]).await;
    world.cluster("b", &[]).await;
    let spec = json!({"clusterSets": ["default"], "decisionStrategy": {"groupStrategy": {
        "clustersPerDecisionGroup": 150,
        "DecisionGroups": [{"groupName": "prod-canary-west", "clusterSelector":
            {"matchExpressions": [{"key": "prod-canary-west", "operator": "Exist"}]}}],
    }}});
    world.place("early", spec).await;
    world.until_chosen("early", &["a", "b"]).await;
    let groups: Vec<_> = world
        .decisions("early")
        .await
        .into_iter()
        .map(|it| it.group.1)
        .collect();
    assert_eq!(groups, ["prod-canary-west", ""]);
}
