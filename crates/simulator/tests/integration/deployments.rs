//! Deployments on a simulated cluster, from the outside.

use crate::common;

use std::time::Duration;

use common::{TestCluster, deployment, reason};
use serde_json::{Value, json};

fn is_available(object: &Value, replicas: u64) -> bool {
    object["status"]["availableReplicas"] == replicas
        && object["status"]["updatedReplicas"] == replicas
        && object["status"]["replicas"] == replicas
        && object["status"]["observedGeneration"] == object["metadata"]["generation"]
}

fn image(tag: &str) -> Value {
    json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": format!("registry.example/app:{tag}")}]}}}})
}

#[tokio::test(start_paused = true)]
async fn a_deployment_becomes_available_in_a_fraction_of_a_second() {
    let cluster = TestCluster::start().await;
    cluster.create(deployment("web", 3)).await;
    let web = cluster
        .until("Deployment", "web", |web| is_available(web, 3))
        .await;
    assert!(
        cluster.elapsed() < Duration::from_millis(500),
        "{:?}",
        cluster.elapsed()
    );
    assert_eq!(
        reason(&web, "Available", "True"),
        "MinimumReplicasAvailable"
    );
    assert_eq!(
        web["metadata"]["annotations"]["deployment.kubernetes.io/revision"],
        "1"
    );
    cluster
        .until("Deployment", "web", |web| {
            reason(web, "Progressing", "True") == "NewReplicaSetAvailable"
        })
        .await;
    let pods = cluster.list("Pod").await;
    assert_eq!(pods.len(), 3);
    for pod in &pods {
        assert_eq!(pod["status"]["phase"], "Running");
        assert!(pod["metadata"]["labels"]["pod-template-hash"].is_string());
        let name = pod["metadata"]["name"].as_str().unwrap();
        let told = cluster.events("Pod", name).await;
        assert_eq!(
            told,
            [
                format!("Scheduled: Successfully assigned default/{name} to hub-node"),
                "Pulling: Pulling image \"registry.example/app:1\"".to_owned(),
                "Pulled: Successfully pulled image \"registry.example/app:1\" in 150ms (150ms including waiting). Image size: 20000000 bytes.".to_owned(),
                "Created: Container created".to_owned(),
                "Started: Container started".to_owned(),
            ]
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_rollout_keeps_to_its_limits_and_can_be_undone() {
    let cluster = TestCluster::start().await;
    let mut web = deployment("web", 4);
    web["spec"]["strategy"] =
        json!({"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}});
    cluster.create(web).await;
    cluster
        .until("Deployment", "web", |web| is_available(web, 4))
        .await;
    cluster.patch("Deployment", "web", image("2")).await;
    let mut most = 0;
    loop {
        let web = cluster.get("Deployment", "web").await;
        let pods = cluster.list("Pod").await;
        let running = pods
            .iter()
            .filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
        most = most.max(running.count());
        assert!(
            web["status"]["availableReplicas"].as_u64() >= Some(4),
            "{web:#}"
        );
        if is_available(&web, 4) {
            break;
        }
        cluster.pass(Duration::from_millis(10)).await;
    }
    assert_eq!(most, 5);
    let sets = cluster.list("ReplicaSet").await;
    assert_eq!(sets.len(), 2);
    cluster.patch("Deployment", "web", image("1")).await;
    let web = cluster
        .until("Deployment", "web", |web| {
            is_available(web, 4)
                && web["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"
        })
        .await;
    assert_eq!(
        cluster.list("ReplicaSet").await.len(),
        2,
        "the first set is taken up again"
    );
    let sets = cluster.list("ReplicaSet").await;
    let first = sets
        .iter()
        .find(|set| set["spec"]["replicas"] == 4)
        .unwrap();
    assert_eq!(
        first["metadata"]["annotations"]["deployment.kubernetes.io/revision-history"],
        "1"
    );
    assert_eq!(
        reason(&web, "Progressing", "True"),
        "NewReplicaSetAvailable"
    );
}

#[tokio::test(start_paused = true)]
async fn a_rollout_whose_image_is_missing_gets_stuck_and_recovers() {
    let cluster = TestCluster::start().await;
    let mut web = deployment("web", 3);
    web["spec"]["progressDeadlineSeconds"] = json!(60);
    cluster.create(web).await;
    cluster
        .until("Deployment", "web", |web| is_available(web, 3))
        .await;
    let mut bad = image("2");
    bad["spec"]["template"]["metadata"]["annotations"] =
        json!({"simulator.bellwether.dev/fail": "image"});
    cluster.patch("Deployment", "web", bad).await;
    let web = cluster
        .until("Deployment", "web", |web| {
            reason(web, "Progressing", "False") == "ProgressDeadlineExceeded"
        })
        .await;
    assert_eq!(
        reason(&web, "Available", "True"),
        "MinimumReplicasAvailable"
    );
    assert_eq!(web["status"]["updatedReplicas"], 1);
    let pods = cluster.list("Pod").await;
    let waiting: Vec<_> = pods
        .iter()
        .filter_map(|pod| {
            pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"].as_str()
        })
        .collect();
    assert_eq!(waiting, ["ImagePullBackOff"]);
    let good = json!({"spec": {"template": {"metadata": {"annotations": {"simulator.bellwether.dev/fail": null}}}}});
    cluster.patch("Deployment", "web", good).await;
    cluster
        .until("Deployment", "web", |web| {
            is_available(web, 3) && reason(web, "Progressing", "True") == "NewReplicaSetAvailable"
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn an_annotation_of_the_workload_steers_pods_that_are_there() {
    let cluster = TestCluster::start().await;
    let mut web = deployment("web", 1);
    web["metadata"]["annotations"] = json!({"simulator.bellwether.dev/fail": "image"});
    cluster.create(web).await;
    cluster.pass(Duration::from_secs(5)).await;
    assert!(cluster.get("Deployment", "web").await["status"]["availableReplicas"].is_null());
    let good = json!({"metadata": {"annotations": {"simulator.bellwether.dev/fail": "no"}}});
    cluster.patch("Deployment", "web", good).await;
    cluster
        .until("Deployment", "web", |web| is_available(web, 1))
        .await;
}

#[tokio::test(start_paused = true)]
async fn recreate_ends_the_old_before_the_new_begins() {
    let cluster = TestCluster::start().await;
    let mut web = deployment("web", 2);
    web["spec"]["strategy"] = json!({"type": "Recreate"});
    cluster.create(web).await;
    cluster
        .until("Deployment", "web", |web| is_available(web, 2))
        .await;
    cluster.patch("Deployment", "web", image("2")).await;
    loop {
        let pods = cluster.list("Pod").await;
        let mut images: Vec<_> = pods
            .iter()
            .map(|pod| pod["spec"]["containers"][0]["image"].clone())
            .collect();
        images.dedup();
        assert!(images.len() <= 1, "{images:?}");
        if is_available(&cluster.get("Deployment", "web").await, 2)
            && images == ["registry.example/app:2"]
        {
            break;
        }
        cluster.pass(Duration::from_millis(10)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_paused_deployment_is_scaled_but_not_rolled_out() {
    let cluster = TestCluster::start().await;
    cluster.create(deployment("web", 2)).await;
    cluster
        .until("Deployment", "web", |web| is_available(web, 2))
        .await;
    cluster
        .patch(
            "Deployment",
            "web",
            json!({"spec": {"paused": true, "replicas": 3}}),
        )
        .await;
    cluster.patch("Deployment", "web", image("2")).await;
    cluster
        .until("Deployment", "web", |web| {
            reason(web, "Progressing", "Unknown") == "DeploymentPaused"
                && web["status"]["availableReplicas"] == 3
        })
        .await;
    assert_eq!(cluster.list("ReplicaSet").await.len(), 1);
    cluster
        .patch("Deployment", "web", json!({"spec": {"paused": false}}))
        .await;
    cluster
        .until("Deployment", "web", |web| is_available(web, 3))
        .await;
    assert_eq!(cluster.list("ReplicaSet").await.len(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_new_simulator_carries_on_where_the_old_one_ended() {
    let mut cluster = TestCluster::start().await;
    cluster.create(deployment("web", 3)).await;
    cluster
        .until("Deployment", "web", |web| is_available(web, 3))
        .await;
    let names = |pods: Vec<Value>| -> Vec<String> {
        pods.iter()
            .map(|pod| pod["metadata"]["name"].to_string())
            .collect()
    };
    let before = names(cluster.list("Pod").await);
    cluster.restart().await;
    cluster.pass(Duration::from_mins(20)).await;
    assert_eq!(names(cluster.list("Pod").await), before);
    cluster.stop();
    cluster
        .patch("Deployment", "web", json!({"spec": {"replicas": 5}}))
        .await;
    cluster.restart().await;
    cluster
        .until("Deployment", "web", |web| is_available(web, 5))
        .await;
    let pods = cluster.list("Pod").await;
    let mut addresses: Vec<_> = pods
        .iter()
        .map(|pod| pod["status"]["podIP"].to_string())
        .collect();
    addresses.sort();
    addresses.dedup();
    assert_eq!(addresses.len(), 5, "addresses are unique");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_deployment_takes_its_pods_along() {
    let cluster = TestCluster::start().await;
    cluster.create(deployment("web", 3)).await;
    cluster
        .until("Deployment", "web", |web| is_available(web, 3))
        .await;
    cluster.delete("Deployment", "web").await;
    while !cluster.list("Pod").await.is_empty() || !cluster.list("ReplicaSet").await.is_empty() {
        cluster.pass(Duration::from_millis(20)).await;
        assert!(cluster.elapsed() < Duration::from_secs(10));
    }
}
