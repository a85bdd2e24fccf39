//! Decisions of placements that come in pieces, late, or change while a policy is rolled out: the canaries go first.

use super::*;

const CLUSTER_API: &str = "cluster.open-cluster-management.io/v1beta1";

/// A decision of a group, with these clusters.
async fn decide(bed: &Bed, group: usize, clusters: &[&str]) {
    let decision = json!({"apiVersion": CLUSTER_API, "kind": "PlacementDecision",
    "metadata": {"name": format!("all-decision-{}", group + 1), "namespace": NAMESPACE, "labels": {
        "cluster.open-cluster-management.io/placement": "all",
        "cluster.open-cluster-management.io/decision-group-index": group.to_string(),
        "cluster.open-cluster-management.io/decision-group-name": "",
    }}});
    if bed.fleet.get(HUB, &decision).await.is_none() {
        bed.fleet.create(HUB, decision.clone()).await;
    }
    let decisions = clusters.iter();
    let decisions = decisions.map(|it| json!({"clusterName": it, "reason": ""}));
    let status = json!({"status": {"decisions": decisions.collect::<Vec<_>>()}});
    set_status(bed, &decision, status).await;
}

async fn set_status(bed: &Bed, object: &Value, status: Value) {
    let kind = kube::core::GroupVersionKind::gvk(
        "cluster.open-cluster-management.io",
        "v1beta1",
        object["kind"].as_str().unwrap(),
    );
    let resource = kube::core::ApiResource::from_gvk(&kind);
    let api: Api<kube::core::DynamicObject> =
        Api::namespaced_with(bed.fleet.client(HUB), NAMESPACE, &resource);
    let name = object["metadata"]["name"].as_str().unwrap();
    bed.fleet.writes.change_from_outside();
    let params = PatchParams::default();
    api.patch_status(name, &params, &Patch::Merge(status))
        .await
        .unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_canary_group_whose_decisions_come_late_goes_first_all_the_same() {
    let bed = Bed::start(&["cluster1", "cluster2", "cluster3"], |_| json!({})).await;
    bed.broken.lock().insert("cluster1".to_owned());
    // Decisions are written by hand, one by one.
    bed.scheduler.abort();
    let placement = placement_of("all", json!({}));
    bed.create([
        placement.clone(),
        binding("all", "all", "limits"),
        policy("limits", json!({"type": "ProgressivePerGroup"})),
    ])
    .await;
    decide(&bed, 0, &[]).await;
    decide(&bed, 1, &["cluster2", "cluster3"]).await;
    bed.fleet.pass(5000).await;
    assert_eq!(bed.replicas().await.len(), 2, "they inform");
    assert_eq!(bed.enforcing().await, [""; 0]);
    decide(&bed, 0, &["cluster1"]).await;
    bed.fleet.pass(5000).await;
    assert_eq!(bed.enforcing().await, [""; 0], "there may be more of them");
    let selected = json!({"status": {"numberOfSelectedClusters": 3, "conditions": []}});
    set_status(&bed, &placement, selected).await;
    bed.fleet.pass(5000).await;
    assert_eq!(bed.enforcing().await, ["cluster1"]);
    bed.broken.lock().clear();
    bed.evaluate_again("cluster1", "limits").await;
    bed.until("limits", RolloutStatus::Succeeded).await;
    assert_eq!(bed.enforcing().await, ["cluster1", "cluster2", "cluster3"]);
}

/// Canaries are named otherwise again and again, while both parts of the hub are killed.
#[tokio::test(start_paused = true)]
async fn no_cluster_overtakes_the_canaries_while_placements_change_and_hubs_are_killed() {
    let names: Vec<String> = (1..=12).map(|it| format!("cluster{it:02}")).collect();
    let members: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut bed = Bed::start(&members, |_| json!({"canary": "false"})).await;
    // Those who were ever canaries never comply, so that nobody else may enforce.
    let canaries = &names[..4];
    bed.broken.lock().extend(canaries.iter().cloned());
    let seen: Arc<Mutex<BTreeSet<String>>> = Arc::default();
    let log = Arc::clone(&seen);
    let client = bed.fleet.client(HUB);
    let _log = Cache::<Policy>::start(Api::all(client), Selection::labels(ROOT), move |change| {
        let action = change.new.and_then(|it| it.spec.remediation_action.clone());
        if action.is_some_and(|it| it.is_enforce()) {
            log.lock().insert(change.key.namespace.to_string());
        }
    });
    let label = async |bed: &Bed, cluster: &str, is_canary: bool| {
        let cluster = json!({"apiVersion": "cluster.open-cluster-management.io/v1",
            "kind": "ManagedCluster", "metadata": {"name": cluster}});
        let labels = json!({"canary": is_canary.to_string()});
        let patch = json!({"metadata": {"labels": labels}});
        bed.fleet.merge(HUB, &cluster, patch).await;
    };
    label(&bed, &canaries[0], true).await;
    bed.create([
        placement_of("all", canary_groups(3)),
        binding("all", "all", "limits"),
        policy("limits", json!({"type": "ProgressivePerGroup"})),
    ])
    .await;
    let dice = Dice(AtomicU64::new(11));
    for round in 0..60 {
        // One joins before another leaves: there is always a canary.
        let next = &canaries[(round + 1) % canaries.len()];
        label(&bed, next, true).await;
        tokio::time::sleep(Duration::from_millis(dice.roll(12))).await;
        bed.kill_scheduler();
        tokio::time::sleep(Duration::from_millis(dice.roll(12))).await;
        bed.kill_hub();
        label(&bed, &canaries[round % canaries.len()], false).await;
        tokio::time::sleep(Duration::from_millis(dice.roll(12))).await;
    }
    bed.fleet.pass(10_000).await;
    let overtaken: Vec<String> = seen.lock().iter().cloned().collect();
    let others: Vec<&String> = overtaken
        .iter()
        .filter(|it| !canaries.contains(it))
        .collect();
    assert!(
        others.is_empty(),
        "{others:?} enforced before the canaries complied"
    );
    assert!(!overtaken.is_empty(), "somebody was a canary long enough");
    bed.broken.lock().clear();
    for cluster in canaries {
        bed.evaluate_again(cluster, "limits").await;
    }
    bed.until("limits", RolloutStatus::Succeeded).await;
    assert_eq!(bed.enforcing().await, names);
}
