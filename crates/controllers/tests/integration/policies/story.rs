//! What the proposal that asked for rollouts of policies shows: its documents, and the statuses that follow.

use super::*;

/// The documents of the proposal that asked for rollouts, as they stand there: `...` is a template.
#[tokio::test(start_paused = true)]
async fn the_documents_that_rollouts_were_proposed_with_do_what_is_said_there() {
    let text = include_str!("../data/policy-rollout.yaml");
    let documents = bellwether_json::yaml::from_yaml(text).unwrap();
    let bed = Bed::start(&["cluster1", "cluster2", "cluster3"], |index| {
        let group = if index == 0 { "dev-emea" } else { "dev-apac" };
        json!({"environment": "dev", (group): ""})
    })
    .await;
    bed.broken.lock().insert("cluster1".to_owned());
    bed.create(documents).await;
    let root = bed.until("sample-policy", RolloutStatus::Failed).await;
    let status = json!(root.status.unwrap());
    let shown = |field: &str| -> Vec<Value> {
        let entries = status["status"].as_array().unwrap();
        entries.iter().map(|it| it[field].clone()).collect()
    };
    assert_eq!(shown("clustername"), ["cluster1", "cluster2", "cluster3"]);
    assert_eq!(
        shown("clusternamespace"),
        ["cluster1", "cluster2", "cluster3"]
    );
    assert_eq!(shown("rolloutStatus"), ["Failed", "ToApply", "ToApply"]);
    assert_eq!(
        status["placement"],
        json!([{"placement": "sample-placement", "placementBinding": "sample-placementbinding"}])
    );
    let replica = json!(bed.replicas().await["cluster2"]);
    assert_eq!(
        replica["metadata"]["name"],
        "policy-namespace.sample-policy"
    );
    assert_eq!(replica["spec"]["remediationAction"], "inform");
    assert_eq!(
        replica["spec"]["rolloutStrategy"]["type"],
        "ProgressivePerGroup"
    );
    assert_eq!(replica["status"]["rolloutStatus"], "ToApply");
    bed.broken.lock().clear();
    bed.evaluate_again("cluster1", "sample-policy").await;
    let root = bed.until("sample-policy", RolloutStatus::Succeeded).await;
    let status = root.status.unwrap();
    assert_eq!(status.compliant, Some(ComplianceState::Compliant));
    let replica = json!(bed.replicas().await["cluster1"]);
    assert_eq!(replica["spec"]["remediationAction"], "enforce");
    assert_eq!(replica["status"]["rolloutStatus"], "Succeeded");
    assert_eq!(replica["status"]["compliant"], "Compliant");
}

/// The first story: which clusters have been updated is in the status of the root policy.
#[tokio::test(start_paused = true)]
async fn the_status_of_a_root_policy_shows_which_clusters_have_been_updated() {
    let bed = Bed::start(&["cluster1", "cluster2", "cluster3"], |_| json!({})).await;
    bed.silent
        .lock()
        .extend(["cluster2".to_owned(), "cluster3".to_owned()]);
    bed.create([
        placement_of("sample-placement", json!({})),
        binding(
            "sample-placementbinding",
            "sample-placement",
            "sample-policy",
        ),
        policy("sample-policy", json!({"type": "Progressive"})),
    ])
    .await;
    bed.fleet.pass(10_000).await;
    let mut status = json!(bed.root("sample-policy").await.status.unwrap());
    // Times are beside it; the story does not show them.
    let times = ["rolloutStatusLastTransitionTime", "rolloutStartTime"];
    let without_times = |object: &mut Value| {
        let object = object.as_object_mut().unwrap();
        assert!(object.contains_key(times[0]));
        object.retain(|key, _| !times.contains(&key.as_str()));
    };
    without_times(&mut status);
    for entry in status["status"].as_array_mut().unwrap() {
        without_times(entry);
    }
    // A state that is not known is left out. What is true of all is not known before all have reported.
    let expected = json!({
        "rolloutStatus": "Progressing",
        "placement": [{"placement": "sample-placement",
            "placementBinding": "sample-placementbinding"}],
        "status": [
            {"clustername": "cluster1", "clusternamespace": "cluster1", "compliant": "Compliant",
                "rolloutStatus": "Succeeded"},
            {"clustername": "cluster2", "clusternamespace": "cluster2",
                "rolloutStatus": "Progressing"},
            {"clustername": "cluster3", "clusternamespace": "cluster3",
                "rolloutStatus": "ToApply"},
        ],
    });
    assert_eq!(status, expected);
    let replicas = bed.replicas().await;
    let of = |cluster: &str| json!(replicas[cluster].status);
    assert_eq!(of("cluster1")["compliant"], "Compliant");
    assert_eq!(of("cluster1")["rolloutStatus"], "Succeeded");
    assert_eq!(of("cluster1")["details"][0]["compliant"], "Compliant");
    assert_eq!(of("cluster2")["rolloutStatus"], "Progressing");
    assert_eq!(of("cluster3")["rolloutStatus"], "ToApply");
    assert_eq!(of("cluster3")["compliant"], Value::Null);
}

/// Bindings that narrow or override are ignored while a policy is rolled out step by step.
#[tokio::test(start_paused = true)]
async fn overrides_and_restricted_bindings_count_only_where_all_clusters_go_at_once() {
    let bed = Bed::start(
        &["cluster1", "cluster2", "cluster3"],
        |index| json!({"place": if index == 0 { "here" } else { "there" }}),
    )
    .await;
    let selecting = |name: &str, place: &str| {
        let mut placement = placement_of(name, json!({}));
        placement["spec"] = json!({"predicates": [{"requiredClusterSelector":
            {"labelSelector": {"matchLabels": {"place": place}}}}]});
        placement
    };
    let mut restricted = binding("restricted", "all", "limits");
    restricted["subFilter"] = json!("restricted");
    restricted["bindingOverrides"] = json!({"remediationAction": "enforce"});
    let mut informs = policy("limits", json!({"type": "Progressive"}));
    informs["spec"]["remediationAction"] = json!("inform");
    bed.create([
        selecting("here", "here"),
        placement_of("all", json!({})),
        binding("here", "here", "limits"),
        restricted,
        informs,
    ])
    .await;
    bed.fleet.pass(5000).await;
    // A policy that informs goes to all clusters at once: the override counts, and adds no cluster.
    assert_eq!(bed.enforcing().await, ["cluster1"]);
    assert_eq!(bed.replicas().await.len(), 1);
    // The same binding without the filter adds its clusters.
    let any = json!({"apiVersion": "policy.open-cluster-management.io/v1",
        "kind": "PlacementBinding", "metadata": {"name": "restricted", "namespace": NAMESPACE}});
    bed.fleet.merge(HUB, &any, json!({"subFilter": null})).await;
    bed.fleet.pass(5000).await;
    assert_eq!(bed.enforcing().await, ["cluster1", "cluster2", "cluster3"]);
    // A policy that enforces step by step ignores overrides, and restricted bindings select nobody.
    bed.fleet
        .merge(HUB, &any, json!({"subFilter": "restricted"}))
        .await;
    bed.edit("limits", json!({"remediationAction": "enforce"}))
        .await;
    bed.fleet.pass(5000).await;
    assert_eq!(bed.enforcing().await, ["cluster1"]);
    assert_eq!(bed.replicas().await.len(), 1);
}
