//! Workloads other than deployments on a simulated cluster, from the outside.

#![allow(
    clippy::needless_pass_by_value,
    reason = "objects are written in place"
)]

mod common;

use std::time::Duration;

use common::{TestCluster, deployment, reason, template};
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

fn job(name: &str, spec: Value, annotations: Value) -> Value {
    let mut job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {"template": {
            "metadata": {"annotations": annotations},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "registry.example/task:1"}]},
        }},
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        job["spec"][key] = value.clone();
    }
    job
}

fn names(objects: &[Value]) -> Vec<&str> {
    objects
        .iter()
        .filter_map(|object| object["metadata"]["name"].as_str())
        .collect()
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
async fn a_job_runs_to_its_end() {
    let cluster = TestCluster::start().await;
    let spec = json!({"completions": 4, "parallelism": 2, "ttlSecondsAfterFinished": 60});
    cluster
        .create(job(
            "load",
            spec,
            json!({"simulator.bellwether.dev/run-for": "5s"}),
        ))
        .await;
    let load = cluster
        .until("Job", "load", |load| {
            reason(load, "Complete", "True") == "CompletionsReached"
        })
        .await;
    assert_eq!(load["status"]["succeeded"], 4);
    assert_eq!(load["status"]["uncountedTerminatedPods"], json!({}));
    assert!(
        cluster.elapsed() > Duration::from_secs(10) && cluster.elapsed() < Duration::from_secs(13)
    );
    let pods = cluster.list("Pod").await;
    assert_eq!(pods.len(), 4);
    assert!(pods.iter().all(
        |pod| pod["status"]["phase"] == "Succeeded" && pod["metadata"]["finalizers"].is_null()
    ));
    let events = cluster.events("Job", "load").await;
    assert_eq!(events.last().unwrap(), "Completed: Job completed");
    cluster.until("Job", "load", Value::is_null).await;
    assert!(cluster.elapsed() > Duration::from_mins(1));
    while !cluster.list("Pod").await.is_empty() {
        cluster.pass(Duration::from_millis(20)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_job_that_fails_too_often_fails() {
    let cluster = TestCluster::start().await;
    let fails = json!({"simulator.bellwether.dev/fail": "job"});
    cluster
        .create(job("bad", json!({"backoffLimit": 2}), fails))
        .await;
    let bad = cluster
        .until("Job", "bad", |bad| {
            reason(bad, "Failed", "True") == "BackoffLimitExceeded"
        })
        .await;
    assert_eq!(bad["status"]["failed"], 3);
    assert!(
        cluster.elapsed() > Duration::from_secs(28),
        "waits between attempts: {:?}",
        cluster.elapsed()
    );
    let events = cluster.events("Job", "bad").await;
    assert_eq!(
        events.last().unwrap(),
        "BackoffLimitExceeded: Job has reached the specified backoff limit"
    );
}

#[tokio::test(start_paused = true)]
async fn a_job_that_takes_too_long_fails_and_its_pods_end() {
    let cluster = TestCluster::start().await;
    let slow = json!({"simulator.bellwether.dev/run-for": "1h"});
    cluster
        .create(job("slow", json!({"activeDeadlineSeconds": 30}), slow))
        .await;
    cluster
        .until("Job", "slow", |slow| {
            reason(slow, "Failed", "True") == "DeadlineExceeded"
        })
        .await;
    assert!(
        cluster.elapsed() < Duration::from_secs(35),
        "{:?}",
        cluster.elapsed()
    );
    let pods = cluster.list("Pod").await;
    assert!(
        pods.iter().all(|pod| pod["status"]["phase"] != "Running"),
        "{pods:#?}"
    );
}

#[tokio::test(start_paused = true)]
async fn an_indexed_job_does_every_index_once() {
    let cluster = TestCluster::start().await;
    let spec = json!({"completions": 3, "parallelism": 3, "completionMode": "Indexed"});
    cluster.create(job("parts", spec, json!({}))).await;
    let parts = cluster
        .until("Job", "parts", |parts| {
            reason(parts, "Complete", "True") == "CompletionsReached"
        })
        .await;
    assert_eq!(parts["status"]["completedIndexes"], "0-2");
    assert_eq!(parts["status"]["succeeded"], 3);
    let pods = cluster.list("Pod").await;
    let mut hosts: Vec<_> = pods
        .iter()
        .map(|pod| pod["spec"]["hostname"].as_str().unwrap())
        .collect();
    hosts.sort_unstable();
    assert_eq!(hosts, ["parts-0", "parts-1", "parts-2"]);
}

#[tokio::test(start_paused = true)]
async fn a_suspended_job_waits_to_be_resumed() {
    let cluster = TestCluster::start().await;
    cluster
        .create(job("later", json!({"suspend": true}), json!({})))
        .await;
    cluster
        .until("Job", "later", |later| {
            reason(later, "Suspended", "True") == "JobSuspended"
        })
        .await;
    cluster.pass(Duration::from_mins(5)).await;
    assert!(cluster.list("Pod").await.is_empty());
    cluster
        .patch("Job", "later", json!({"spec": {"suspend": false}}))
        .await;
    let later = cluster
        .until("Job", "later", |later| {
            reason(later, "Complete", "True") == "CompletionsReached"
        })
        .await;
    assert_eq!(reason(&later, "Suspended", "False"), "JobResumed");
}

#[tokio::test(start_paused = true)]
async fn a_deleted_job_takes_its_pods_along() {
    let cluster = TestCluster::start().await;
    let slow = json!({"simulator.bellwether.dev/run-for": "1h"});
    cluster.create(job("slow", json!({}), slow)).await;
    cluster
        .until("Job", "slow", |slow| slow["status"]["ready"] == 1)
        .await;
    cluster.delete("Job", "slow").await;
    while !cluster.list("Pod").await.is_empty() {
        cluster.pass(Duration::from_millis(20)).await;
        assert!(cluster.elapsed() < Duration::from_mins(1));
    }
}

#[tokio::test(start_paused = true)]
async fn a_cron_job_runs_whenever_it_is_time() {
    let cluster = TestCluster::start().await;
    let cron_job = json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "tick"},
        "spec": {"schedule": "*/10 * * * *", "jobTemplate": {"spec": job("x", json!({}), json!({}))["spec"]}},
    });
    cluster.create(cron_job).await;
    cluster.pass(Duration::from_mins(95)).await;
    let tick = cluster.get("CronJob", "tick").await;
    assert_eq!(tick["status"]["lastScheduleTime"], "2026-01-01T01:30:00Z");
    assert_eq!(tick["status"]["lastSuccessfulTime"], "2026-01-01T01:30:00Z");
    assert!(tick["status"]["active"].is_null());
    let jobs = cluster.list("Job").await;
    assert_eq!(jobs.len(), 3, "history keeps three");
    let minute = "2026-01-01T01:30:00Z"
        .parse::<jiff::Timestamp>()
        .unwrap()
        .as_second()
        / 60;
    let last = format!("tick-{minute}");
    assert_eq!(names(&jobs)[2], last);
    let events = cluster.events("CronJob", "tick").await;
    assert!(
        events.contains(&format!("SuccessfulCreate: Created job {last}")),
        "{events:?}"
    );
    assert!(
        events.contains(&format!(
            "SawCompletedJob: Saw completed job: {last}, condition: Complete"
        )),
        "{events:?}"
    );
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

/// An indexed job with three parts, some of which fail.
fn parts(spec: Value, annotations: Value) -> Value {
    let mut job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "parts"},
        "spec": {
            "completions": 3, "parallelism": 3, "completionMode": "Indexed",
            "template": {
                "metadata": {"annotations": annotations},
                "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "x"}]},
            },
        },
    });
    for (key, value) in spec.as_object().into_iter().flatten() {
        job["spec"][key] = value.clone();
    }
    job
}

#[tokio::test(start_paused = true)]
async fn an_index_may_fail_while_others_go_on() {
    let cluster = TestCluster::start().await;
    cluster
        .create(parts(
            json!({"backoffLimitPerIndex": 1}),
            json!({"simulator.bellwether.dev/fail": "job", "simulator.bellwether.dev/fail-indexes": "1"}),
        ))
        .await;
    let job = cluster
        .until("Job", "parts", |job| {
            !reason(job, "Failed", "True").is_empty()
        })
        .await;
    assert_eq!(reason(&job, "Failed", "True"), "FailedIndexes");
    let status = &job["status"];
    assert_eq!(
        (
            &status["completedIndexes"],
            &status["failedIndexes"],
            &status["failed"]
        ),
        (&json!("0,2"), &json!("1"), &json!(2))
    );
    let told = cluster.events("Job", "parts").await;
    assert_eq!(
        told.last().unwrap(),
        "FailedIndexes: Job has failed indexes"
    );
}

#[tokio::test(start_paused = true)]
async fn one_exit_code_ends_a_job_at_once() {
    let cluster = TestCluster::start().await;
    let rule = json!({"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}});
    cluster
        .create(parts(
            json!({"podFailurePolicy": {"rules": [rule]}}),
            json!({"simulator.bellwether.dev/fail": "job", "simulator.bellwether.dev/exit-code": "42",
                   "simulator.bellwether.dev/fail-indexes": "1", "simulator.bellwether.dev/run-for": "1s"}),
        ))
        .await;
    let job = cluster
        .until("Job", "parts", |job| {
            !reason(job, "Failed", "True").is_empty()
        })
        .await;
    assert_eq!(reason(&job, "Failed", "True"), "PodFailurePolicy");
    assert!(cluster.elapsed() < Duration::from_secs(3));
}

#[tokio::test(start_paused = true)]
async fn a_job_has_done_enough_by_its_success_policy() {
    let cluster = TestCluster::start().await;
    cluster
        .create(parts(
            json!({"successPolicy": {"rules": [{"succeededIndexes": "0"}]}, "parallelism": 1}),
            json!({}),
        ))
        .await;
    let job = cluster
        .until("Job", "parts", |job| {
            !reason(job, "Complete", "True").is_empty()
        })
        .await;
    assert_eq!(reason(&job, "Complete", "True"), "SuccessPolicy");
    assert_eq!(job["status"]["completedIndexes"], "0");
}
