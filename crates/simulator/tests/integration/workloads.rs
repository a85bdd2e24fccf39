//! Workloads other than deployments and jobs on a simulated cluster, from the outside.

#![allow(
    clippy::needless_pass_by_value,
    reason = "objects are written in place"
)]

use crate::common;

use std::time::Duration;

use common::{TestCluster, deployment, names, reason, template};
use serde_json::{Value, json};

fn stateful_set(name: &str, replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name},
        "spec": {
            "replicas": replicas, "serviceName": name, "selector": {"matchLabels": {"app": name}},
            "template": template(name, json!({})),
            "volumeClaimTemplates": [{
                "metadata": {"name": "data"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            }],
        },
    })
}

#[tokio::test(start_paused = true)]
async fn a_stateful_set_grows_shrinks_and_rolls_in_order() {
    let cluster = TestCluster::start().await;
    cluster.create(stateful_set("db", 3)).await;
    let mut seen = 0;
    loop {
        let pods = cluster.list("Pod").await;
        assert!(
            pods.len() >= seen && pods.len() <= seen + 1,
            "one at a time"
        );
        seen = pods.len();
        if cluster.get("StatefulSet", "db").await["status"]["availableReplicas"] == 3 {
            break;
        }
        cluster.pass(Duration::from_millis(20)).await;
    }
    let db = cluster
        .until("StatefulSet", "db", |db| {
            db["status"]["currentRevision"] == db["status"]["updateRevision"]
                && db["status"]["readyReplicas"] == 3
        })
        .await;
    assert_eq!(names(&cluster.list("Pod").await), ["db-0", "db-1", "db-2"]);
    let claims = cluster.list("PersistentVolumeClaim").await;
    assert_eq!(names(&claims), ["data-db-0", "data-db-1", "data-db-2"]);
    assert!(
        claims
            .iter()
            .all(|claim| claim["status"]["phase"] == "Bound")
    );
    let first = cluster.events("StatefulSet", "db").await;
    assert_eq!(
        first[..2],
        [
            "SuccessfulCreate: Create Claim data-db-0 Pod db-0 in StatefulSet db success",
            "SuccessfulCreate: Create Pod db-0 in StatefulSet db successful",
        ]
    );

    let before = db["status"]["updateRevision"].clone();
    let image = json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "registry.example/app:2"}]}},
                                "updateStrategy": {"rollingUpdate": {"partition": 2}}}});
    cluster.patch("StatefulSet", "db", image).await;
    cluster
        .until("StatefulSet", "db", |db| {
            db["status"]["updatedReplicas"] == 1 && db["status"]["availableReplicas"] == 3
        })
        .await;
    cluster.pass(Duration::from_secs(30)).await;
    let pods = cluster.list("Pod").await;
    let images: Vec<_> = pods
        .iter()
        .map(|pod| pod["spec"]["containers"][0]["image"].as_str().unwrap())
        .collect();
    assert_eq!(
        images,
        [
            "registry.example/app:1",
            "registry.example/app:1",
            "registry.example/app:2"
        ]
    );
    cluster.delete("Pod", "db-0").await;
    cluster.pass(Duration::from_secs(5)).await;
    let first = cluster.get("Pod", "db-0").await;
    assert_eq!(
        first["spec"]["containers"][0]["image"], "registry.example/app:1",
        "below the partition"
    );
    let whole = json!({"spec": {"updateStrategy": {"rollingUpdate": {"partition": 0}}}});
    cluster.patch("StatefulSet", "db", whole).await;
    let db = cluster
        .until("StatefulSet", "db", |db| {
            db["status"]["currentRevision"] == db["status"]["updateRevision"]
                && db["status"]["updatedReplicas"] == 3
        })
        .await;
    assert_ne!(db["status"]["updateRevision"], before);
    assert_eq!(cluster.list("ControllerRevision").await.len(), 2);

    cluster
        .patch("StatefulSet", "db", json!({"spec": {"replicas": 1}}))
        .await;
    cluster
        .until("StatefulSet", "db", |db| db["status"]["replicas"] == 1)
        .await;
    assert_eq!(names(&cluster.list("Pod").await), ["db-0"]);
    assert_eq!(
        cluster.list("PersistentVolumeClaim").await.len(),
        3,
        "claims stay"
    );
}

#[tokio::test(start_paused = true)]
async fn a_parallel_stateful_set_does_not_wait() {
    let cluster = TestCluster::start().await;
    let mut db = stateful_set("db", 4);
    db["spec"]["podManagementPolicy"] = json!("Parallel");
    db["spec"]["template"]["metadata"]["annotations"] =
        json!({"simulator.bellwether.dev/ready-after": "10s"});
    cluster.create(db).await;
    cluster
        .until("StatefulSet", "db", |db| db["status"]["readyReplicas"] == 4)
        .await;
    assert!(
        cluster.elapsed() < Duration::from_secs(15),
        "{:?}",
        cluster.elapsed()
    );
}

#[tokio::test(start_paused = true)]
async fn a_daemon_set_has_a_pod_on_every_node() {
    let cluster = TestCluster::start().await;
    let set = json!({
        "apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "agent"},
        "spec": {"selector": {"matchLabels": {"app": "agent"}}, "template": template("agent", json!({}))},
    });
    cluster.create(set).await;
    let agent = cluster
        .until("DaemonSet", "agent", |agent| {
            agent["status"]["numberAvailable"] == 1
        })
        .await;
    assert_eq!(agent["status"]["desiredNumberScheduled"], 1);
    let mut node = cluster.get("Node", "hub-node").await;
    node["metadata"] = json!({"name": "second", "labels": {"kubernetes.io/hostname": "second"}});
    node["spec"] = json!({});
    cluster.create(node).await;
    cluster
        .until("DaemonSet", "agent", |agent| {
            agent["status"]["numberAvailable"] == 2
        })
        .await;
    let image = json!({"spec": {"template": {"spec": {"containers": [{"name": "main", "image": "registry.example/app:2"}]}}}});
    cluster.patch("DaemonSet", "agent", image).await;
    cluster
        .until("DaemonSet", "agent", |agent| {
            agent["status"]["updatedNumberScheduled"] == 2
                && agent["status"]["numberAvailable"] == 2
                && agent["status"]["observedGeneration"] == agent["metadata"]["generation"]
        })
        .await;
    let pods = cluster.list("Pod").await;
    assert_eq!(pods.len(), 2);
    assert!(
        pods.iter()
            .all(|pod| pod["spec"]["containers"][0]["image"] == "registry.example/app:2")
    );
    cluster.delete("Node", "second").await;
}

#[tokio::test(start_paused = true)]
async fn a_crashing_container_is_restarted_with_growing_waits() {
    let cluster = TestCluster::start().await;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": "crash", "annotations": {"simulator.bellwether.dev/fail": "crash"}},
        "spec": {"containers": [{"name": "main", "image": "registry.example/app:1"}]},
    });
    cluster.create(pod).await;
    let crash = cluster
        .until("Pod", "crash", |pod| {
            pod["status"]["containerStatuses"][0]["state"]["waiting"]["reason"]
                == "CrashLoopBackOff"
        })
        .await;
    let status = &crash["status"]["containerStatuses"][0];
    assert_eq!(status["restartCount"], 1);
    assert_eq!(status["lastState"]["terminated"]["exitCode"], 1);
    let message = status["state"]["waiting"]["message"].as_str().unwrap();
    assert!(
        message.starts_with("back-off 10s restarting failed container=main pod=crash_default("),
        "{message}"
    );
    cluster
        .until("Pod", "crash", |pod| {
            pod["status"]["containerStatuses"][0]["restartCount"] == 5
        })
        .await;
    let elapsed = cluster.elapsed().as_secs();
    assert!(
        (150..160).contains(&elapsed),
        "10 + 20 + 40 + 80 seconds, not {elapsed}"
    );
    cluster
        .patch(
            "Pod",
            "crash",
            json!({"metadata": {"annotations": {"simulator.bellwether.dev/fail": null}}}),
        )
        .await;
    cluster
        .until("Pod", "crash", |pod| {
            pod["status"]["phase"] == "Running" && reason(pod, "Ready", "False").is_empty()
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_service_knows_the_pods_that_are_ready() {
    let cluster = TestCluster::start().await;
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
        "spec": {"selector": {"app": "web"}, "ports": [{"name": "http", "port": 80, "targetPort": "http"}]},
    });
    cluster.create(service).await;
    let mut web = deployment("web", 2);
    web["spec"]["template"]["spec"]["containers"][0]["ports"] =
        json!([{"name": "http", "containerPort": 8080}]);
    cluster.create(web).await;
    let endpoints = cluster
        .until("Endpoints", "web", |found| {
            found["subsets"][0]["addresses"]
                .as_array()
                .is_some_and(|list| list.len() == 2)
        })
        .await;
    assert_eq!(endpoints["subsets"][0]["ports"][0]["port"], 8080);
    let slices = cluster.list("EndpointSlice").await;
    let slice = slices
        .iter()
        .find(|slice| slice["metadata"]["labels"]["kubernetes.io/service-name"] == "web")
        .unwrap();
    assert_eq!(slice["endpoints"].as_array().unwrap().len(), 2);
    assert_eq!(slice["ports"][0]["port"], 8080);
    assert_eq!(
        slice["endpoints"][0]["conditions"],
        json!({"ready": true, "serving": true, "terminating": false})
    );
    cluster
        .patch("Deployment", "web", json!({"spec": {"replicas": 0}}))
        .await;
    cluster
        .until("Endpoints", "web", |found| found["subsets"].is_null())
        .await;
    cluster.delete("Service", "web").await;
    while cluster
        .list("EndpointSlice")
        .await
        .iter()
        .any(|slice| slice["metadata"]["labels"]["kubernetes.io/service-name"] == "web")
    {
        cluster.pass(Duration::from_millis(20)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_gets_a_volume_which_goes_with_it() {
    let cluster = TestCluster::start().await;
    let claim = json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}},
    });
    cluster.create(claim).await;
    let data = cluster
        .until("PersistentVolumeClaim", "data", |data| {
            data["status"]["phase"] == "Bound"
        })
        .await;
    assert_eq!(data["spec"]["storageClassName"], "standard");
    assert_eq!(data["status"]["capacity"]["storage"], "2Gi");
    let volume = data["spec"]["volumeName"].as_str().unwrap().to_owned();
    cluster
        .until("PersistentVolume", &volume, |volume| {
            volume["status"]["phase"] == "Bound"
        })
        .await;
    cluster.delete("PersistentVolumeClaim", "data").await;
    cluster
        .until("PersistentVolume", &volume, Value::is_null)
        .await;
}

#[tokio::test(start_paused = true)]
async fn bounds_and_budgets_are_kept() {
    let cluster = TestCluster::start().await;
    cluster.create(deployment("web", 1)).await;
    cluster
        .create(json!({
            "apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "web"},
            "spec": {"minReplicas": 3, "maxReplicas": 5, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
                     "metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]},
        }))
        .await;
    cluster
        .create(json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
            "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}},
        }))
        .await;
    cluster
        .until("Deployment", "web", |web| {
            web["status"]["availableReplicas"] == 3
        })
        .await;
    let budget = cluster
        .until("PodDisruptionBudget", "web", |budget| {
            budget["status"]["disruptionsAllowed"] == 1
        })
        .await;
    assert_eq!(
        reason(&budget, "DisruptionAllowed", "True"),
        "SufficientPods"
    );
    let events = cluster.events("HorizontalPodAutoscaler", "web").await;
    assert_eq!(
        events[0],
        "SuccessfulRescale: New size: 3; reason: Current number of replicas below Spec.MinReplicas"
    );
    cluster
        .patch("Deployment", "web", json!({"spec": {"replicas": 9}}))
        .await;
    cluster
        .until("Deployment", "web", |web| {
            web["status"]["availableReplicas"] == 5 && web["status"]["replicas"] == 5
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn evictions_are_refused_when_a_budget_is_used_up() {
    let cluster = TestCluster::start().await;
    cluster.create(deployment("web", 3)).await;
    cluster
        .create(json!({
            "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
            "spec": {"minAvailable": 2, "selector": {"matchLabels": {"app": "web"}}},
        }))
        .await;
    let allows = |count: i64| {
        move |budget: &Value| budget["status"]["disruptionsAllowed"].as_i64() == Some(count)
    };
    cluster.until("PodDisruptionBudget", "web", allows(1)).await;
    let pods = cluster.list("Pod").await;
    let name = |at: usize| pods[at]["metadata"]["name"].as_str().unwrap();
    assert_eq!(cluster.evict(name(0)).await["status"], "Success");
    let budget = cluster.get("PodDisruptionBudget", "web").await;
    assert_eq!(budget["status"]["disruptionsAllowed"], 0, "{budget:#}");
    let refused = cluster.evict(name(1)).await;
    assert_eq!(
        (&refused["code"], &refused["reason"], &refused["message"]),
        (
            &json!(429),
            &json!("TooManyRequests"),
            &json!("Cannot evict pod as it would violate the pod's disruption budget.")
        )
    );
    assert_eq!(
        refused["details"]["causes"],
        json!([{"reason": "DisruptionBudget",
                "message": "The disruption budget web needs 2 healthy pods and has 2 currently"}])
    );
    // The replacement is ready: one more can be spared.
    cluster.until("PodDisruptionBudget", "web", allows(1)).await;
    assert_eq!(cluster.evict(name(1)).await["status"], "Success");
    // Nobody counts on a pod that does not work.
    cluster
        .create(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "stuck", "labels": {"app": "web"},
                         "annotations": {"simulator.bellwether.dev/fail": "image"}},
            "spec": {"containers": [{"name": "main", "image": "x"}]},
        }))
        .await;
    cluster
        .until("Pod", "stuck", |pod| pod["status"]["phase"] == "Pending")
        .await;
    assert_eq!(cluster.evict("stuck").await["status"], "Success");
}

#[tokio::test(start_paused = true)]
async fn a_replication_controller_keeps_its_pods() {
    let cluster = TestCluster::start().await;
    cluster
        .create(json!({
            "apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "old"},
            "spec": {"replicas": 2, "selector": {"app": "old"}, "template": template("old", json!({}))},
        }))
        .await;
    cluster
        .until("ReplicationController", "old", |old| {
            old["status"]["availableReplicas"] == 2
        })
        .await;
    let pods = cluster.list("Pod").await;
    let first = pods[0]["metadata"]["name"].as_str().unwrap();
    cluster.delete("Pod", first).await;
    cluster.until("Pod", first, Value::is_null).await;
    cluster
        .until("ReplicationController", "old", |old| {
            old["status"]["availableReplicas"] == 2
        })
        .await;
    cluster
        .patch(
            "ReplicationController",
            "old",
            json!({"spec": {"replicas": 0}}),
        )
        .await;
    cluster
        .until("ReplicationController", "old", |old| {
            old["status"]["replicas"] == 0
        })
        .await;
}

#[tokio::test(start_paused = true)]
async fn a_namespace_has_the_certificate_of_its_server_whatever_people_do() {
    let cluster = TestCluster::start().await;
    let wanted = json!({"ca.crt": cluster.server.certificate().unwrap()});
    let name = "kube-root-ca.crt";
    let is_there = |map: &Value| map["data"] == wanted;
    let map = cluster.until("ConfigMap", name, is_there).await;
    let description = &map["metadata"]["annotations"]["kubernetes.io/description"];
    assert!(description.as_str().unwrap().starts_with("Contains a CA"));
    let other = json!({"data": {"ca.crt": "mine", "more": "x"}});
    cluster.patch("ConfigMap", name, other).await;
    cluster.until("ConfigMap", name, is_there).await;
    cluster.delete("ConfigMap", name).await;
    cluster.until("ConfigMap", name, is_there).await;
}

#[tokio::test(start_paused = true)]
async fn a_cluster_at_rest_wakes_up_when_something_happens() {
    let cluster = TestCluster::start().await;
    for _ in 0..2 {
        // Long enough that what is known has been forgotten.
        cluster.pass(Duration::from_mins(1)).await;
        cluster
            .create(json!({
                "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": "late"},
                "spec": {"replicas": 1, "selector": {"matchLabels": {"app": "late"}}, "template": template("late", json!({}))},
            }))
            .await;
        cluster
            .until("ReplicaSet", "late", |late| {
                late["status"]["availableReplicas"] == 1
            })
            .await;
        cluster.delete("ReplicaSet", "late").await;
        cluster.pass(Duration::from_mins(1)).await;
        assert!(cluster.list("Pod").await.is_empty());
    }
}

/// What `kubectl logs` and `kubectl top` read.
#[tokio::test(start_paused = true)]
async fn simulated_pods_write_logs_and_use_something() {
    let cluster = TestCluster::start().await;
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "main", "image": "registry.example/app:1",
            "resources": {"requests": {"cpu": "200m", "memory": "64Mi"}}}]},
    });
    cluster.create(pod).await;
    let pod = cluster
        .until("Pod", "p", |pod| pod["status"]["phase"] == "Running")
        .await;
    assert_eq!(pod["spec"]["serviceAccountName"], "default");
    let volume = pod["spec"]["volumes"][0]["name"].as_str().unwrap();
    assert!(volume.starts_with("kube-api-access-"), "{volume}");
    cluster.pass(Duration::from_mins(3)).await;
    let read = async |path: &str| {
        let request = http::Request::get(path).body(Vec::new()).unwrap();
        cluster.client.request_text(request).await.unwrap()
    };
    let log = read("/api/v1/namespaces/default/pods/p/log?tailLines=3").await;
    let last = "main: running for 1m\nmain: running for 2m\nmain: running for 3m\n";
    assert_eq!(log, last);
    let base = "/apis/metrics.k8s.io/v1beta1";
    let used: Value =
        serde_json::from_str(&read(&format!("{base}/namespaces/default/pods")).await).unwrap();
    assert_eq!(used["kind"], "PodMetricsList");
    let container = &used["items"][0]["containers"][0];
    assert_eq!(container["name"], "main");
    let cpu = container["usage"]["cpu"].as_str().unwrap();
    let cpu: u32 = cpu.strip_suffix('m').unwrap().parse().unwrap();
    assert!((100..=142).contains(&cpu), "{container}");
    let nodes: Value = serde_json::from_str(&read(&format!("{base}/nodes")).await).unwrap();
    assert!(nodes["items"][0]["usage"]["memory"].is_string(), "{nodes}");
    let groups = read("/apis").await;
    assert!(groups.contains("metrics.k8s.io"), "kubectl looks for it");
}
