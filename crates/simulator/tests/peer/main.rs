//! The same workloads beside a real kube-controller-manager, where `KUBEBUILDER_ASSETS` points at one:
//! statuses, conditions, reasons, messages and events have to be the same.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    unreachable_pub,
    reason = "a test that cannot go on fails, and one that is skipped says so"
)]
#![allow(
    clippy::needless_pass_by_value,
    reason = "objects are written in place"
)]

mod kubelet;
mod picture;
mod stage;

use picture::Picture;
use serde_json::{Value, json};
use stage::Stage;

fn template(app: &str, annotations: Value) -> Value {
    json!({
        "metadata": {"labels": {"app": app}, "annotations": annotations},
        "spec": {"terminationGracePeriodSeconds": 1, "containers": [
            {"name": "main", "image": "registry.example/app:1", "ports": [{"name": "http", "containerPort": 80}],
             "resources": {"requests": {"cpu": "10m"}}}]},
    })
}

fn workload(version: &str, kind: &str, name: &str, mut spec: Value) -> Value {
    spec["selector"] = json!({"matchLabels": {"app": name}});
    if spec["template"].is_null() {
        spec["template"] = template(name, Value::Null);
    }
    json!({"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec})
}

fn image(tag: &str) -> Value {
    let container = json!({"name": "main", "image": format!("registry.example/app:{tag}"),
                           "ports": [{"name": "http", "containerPort": 80}]});
    json!({"spec": {"template": {"spec": {"containers": [container]}}}})
}

fn number(picture: &Picture, key: &str, pointer: &str) -> i64 {
    picture.field(key, pointer).as_i64().unwrap_or(0)
}

/// The reason of a condition that is true.
fn reason(picture: &Picture, key: &str, kind: &str) -> String {
    let conditions = picture.field(key, "/status/conditions");
    let mut conditions = conditions.as_array().into_iter().flatten();
    let found = conditions.find(|found| found["type"] == kind && found["status"] == "True");
    let reason = found.and_then(|found| found["reason"].as_str());
    reason.unwrap_or_default().to_owned()
}

#[tokio::test]
async fn deployments_roll_out_as_with_a_real_controller() {
    let Some(stage) = Stage::start("rollouts").await else {
        return;
    };
    let web = "/apis/apps/v1/namespaces/{ns}/deployments/web";
    stage
        .create(workload(
            "apps/v1",
            "Deployment",
            "web",
            json!({"replicas": 3}),
        ))
        .await;
    stage
        .create(json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"},
                       "spec": {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": "http"}]}}))
        .await;
    let rolled_out = |revision: &'static str, replicas: i64| {
        move |picture: &Picture| {
            let key = "deployments/web";
            reason(picture, key, "Progressing") == "NewReplicaSetAvailable"
                && number(picture, key, "/status/availableReplicas") == replicas
                && number(picture, key, "/status/updatedReplicas") == replicas
                && picture.count("pods") == usize::try_from(replicas).unwrap()
                && picture.field(
                    key,
                    "/metadata/annotations/deployment.kubernetes.io~1revision",
                ) == revision
        }
    };
    stage.agree("create", rolled_out("1", 3)).await;
    stage
        .create(json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"},
                       "spec": {"minAvailable": 3, "selector": {"matchLabels": {"app": "web"}}}}))
        .await;
    stage
        .agree("budget", |picture| {
            picture.count("poddisruptionbudgets") == 1
        })
        .await;
    evictions(&stage).await;
    stage
        .agree_on_objects("evictions", rolled_out("1", 3))
        .await;
    stage.patch(web, image("2")).await;
    stage.agree("update", rolled_out("2", 3)).await;
    stage
        .patch(web, json!({"spec": {"paused": true, "replicas": 4}}))
        .await;
    stage
        .agree("pause and scale", |picture| {
            number(picture, "deployments/web", "/status/availableReplicas") == 4
        })
        .await;
    stage.patch(web, json!({"spec": {"paused": false}})).await;
    stage.patch(web, image("1")).await;
    stage.agree("resume and undo", rolled_out("3", 4)).await;
    stage
        .patch(
            web,
            json!({"spec": {"progressDeadlineSeconds": 2, "template": {"metadata": {
                "annotations": {"simulator.bellwether.dev/fail": "image"}}}}}),
        )
        .await;
    stage
        .agree("stuck", |picture| {
            let conditions = picture.field("deployments/web", "/status/conditions");
            conditions.to_string().contains("ProgressDeadlineExceeded")
        })
        .await;
    stage
        .both("DELETE", web, &json!({"propagationPolicy": "Foreground"}))
        .await;
    stage
        .agree_on_objects("delete", |picture| {
            picture.count("replicasets") == 0 && picture.count("pods") == 0
        })
        .await;
}

/// Evictions that a budget refuses, allows, and cannot decide about.
async fn evictions(stage: &Stage) {
    let budget = "/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets";
    stage.evict("refused").await;
    stage
        .patch(
            &format!("{budget}/web"),
            json!({"spec": {"minAvailable": 2}}),
        )
        .await;
    let allowed = |picture: &Picture| {
        number(
            picture,
            "poddisruptionbudgets/web",
            "/status/disruptionsAllowed",
        ) == 1
    };
    stage.agree_on_objects("one allowed", allowed).await;
    stage.evict("allowed").await;
    stage.agree_on_objects("evicted", allowed).await;
    stage
        .create(json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "other"},
                       "spec": {"minAvailable": "10%", "selector": {"matchLabels": {"app": "web"}}}}))
        .await;
    stage.evict("two budgets").await;
    stage
        .both("DELETE", &format!("{budget}/other"), &json!({}))
        .await;
}

#[tokio::test]
async fn sets_keep_their_pods_as_with_a_real_controller() {
    let Some(stage) = Stage::start("sets").await else {
        return;
    };
    stage
        .create(workload(
            "apps/v1",
            "StatefulSet",
            "db",
            json!({"replicas": 2, "serviceName": "db"}),
        ))
        .await;
    stage
        .create(workload("apps/v1", "DaemonSet", "agent", json!({})))
        .await;
    stage
        .create(workload(
            "apps/v1",
            "ReplicaSet",
            "set",
            json!({"replicas": 2}),
        ))
        .await;
    let mut old = workload("v1", "ReplicationController", "old", json!({"replicas": 2}));
    old["spec"]["selector"] = json!({"app": "old"});
    stage.create(old).await;
    let ready = |db: i64, old: i64| {
        move |picture: &Picture| {
            number(picture, "statefulsets/db", "/status/availableReplicas") == db
                && number(picture, "statefulsets/db", "/status/updatedReplicas") == db
                && number(picture, "daemonsets/agent", "/status/numberAvailable") == 1
                && number(
                    picture,
                    "daemonsets/agent",
                    "/status/updatedNumberScheduled",
                ) == 1
                && number(picture, "replicasets/set", "/status/availableReplicas") == 2
                && number(
                    picture,
                    "replicationcontrollers/old",
                    "/status/availableReplicas",
                ) == old
        }
    };
    stage.agree("create", ready(2, 2)).await;
    let path = |kind: &str| format!("/apis/apps/v1/namespaces/{{ns}}/{kind}");
    stage.patch(&path("statefulsets/db"), image("2")).await;
    stage.patch(&path("daemonsets/agent"), image("2")).await;
    stage
        .agree("update", |picture| {
            ready(2, 2)(picture)
                && picture.field("statefulsets/db", "/status/currentRevision")
                    == picture.field("statefulsets/db", "/status/updateRevision")
        })
        .await;
    stage
        .patch(&path("statefulsets/db"), json!({"spec": {"replicas": 3}}))
        .await;
    let old = "/api/v1/namespaces/{ns}/replicationcontrollers/old";
    stage.patch(old, json!({"spec": {"replicas": 1}})).await;
    stage.agree("scale", ready(3, 1)).await;
    let nowhere = json!({"spec": {"template": {"spec": {"nodeSelector": {"no": "node"}}}}});
    stage.patch(&path("daemonsets/agent"), nowhere).await;
    stage
        .agree("nowhere", |picture| {
            number(
                picture,
                "daemonsets/agent",
                "/status/currentNumberScheduled",
            ) == 0
        })
        .await;
    stage
        .both(
            "DELETE",
            &path("replicasets/set"),
            &json!({"propagationPolicy": "Orphan"}),
        )
        .await;
    stage
        .agree("orphans", |picture| picture.count("replicasets") == 0)
        .await;
}

/// A job whose pods end by themselves.
fn job(name: &str, spec: Value, annotations: Value) -> Value {
    let mut job = json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {"template": {"metadata": {"annotations": annotations}, "spec": {
            "restartPolicy": "Never", "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "main", "image": "busybox"}]}}},
    });
    for (key, value) in spec.as_object().unwrap() {
        job["spec"][key] = value.clone();
    }
    job
}

fn failing(code: &str, indexes: Option<&str>) -> Value {
    let mut notes =
        json!({"simulator.bellwether.dev/fail": "job", "simulator.bellwether.dev/exit-code": code});
    if let Some(indexes) = indexes {
        notes["simulator.bellwether.dev/fail-indexes"] = indexes.into();
    }
    notes
}

#[tokio::test]
async fn jobs_end_as_with_a_real_controller() {
    let Some(stage) = Stage::start("jobs").await else {
        return;
    };
    let endless = json!({"simulator.bellwether.dev/run-for": "1h"});
    let rules = |action: &str| json!({"rules": [{"action": action, "onExitCodes": {"operator": "In", "values": [42]}}]});
    let indexed = |spec: Value| {
        let mut whole = json!({"completions": 3, "parallelism": 3, "completionMode": "Indexed"});
        for (key, value) in spec.as_object().unwrap() {
            whole[key] = value.clone();
        }
        whole
    };
    for job in [
        job("plain", json!({"completions": 2}), Value::Null),
        job("parts", indexed(json!({})), Value::Null),
        job("waiting", json!({"suspend": true}), Value::Null),
        job("doomed", json!({"backoffLimit": 0}), failing("1", None)),
        job("slow", json!({"activeDeadlineSeconds": 2}), endless.clone()),
        job("paused", json!({}), endless),
        job(
            "fatal",
            json!({"podFailurePolicy": rules("FailJob")}),
            failing("42", None),
        ),
        job(
            "limit",
            indexed(json!({"backoffLimitPerIndex": 0})),
            failing("1", Some("1")),
        ),
        job(
            "limits",
            indexed(json!({"parallelism": 1, "backoffLimitPerIndex": 0, "maxFailedIndexes": 0})),
            failing("1", Some("0")),
        ),
        job(
            "index",
            indexed(json!({"backoffLimitPerIndex": 5, "podFailurePolicy": rules("FailIndex")})),
            failing("42", Some("2")),
        ),
        job(
            "enough",
            indexed(
                json!({"parallelism": 1, "successPolicy": {"rules": [{"succeededIndexes": "0"}]}}),
            ),
            Value::Null,
        ),
        job("brief", json!({"ttlSecondsAfterFinished": 1}), Value::Null),
    ] {
        stage.create(job).await;
    }
    let ended = |picture: &Picture, name: &str, kind: &str| {
        !reason(picture, &format!("jobs/{name}"), kind).is_empty()
    };
    stage
        .agree("first ends", |picture| {
            ["plain", "parts", "enough"]
                .iter()
                .all(|name| ended(picture, name, "Complete"))
                && ["doomed", "slow", "fatal", "limit", "limits", "index"]
                    .iter()
                    .all(|name| ended(picture, name, "Failed"))
                && number(picture, "jobs/paused", "/status/ready") == 1
                && !picture.objects.contains_key("jobs/brief")
        })
        .await;
    let path = |name: &str| format!("/apis/batch/v1/namespaces/{{ns}}/jobs/{name}");
    stage
        .patch(&path("waiting"), json!({"spec": {"suspend": false}}))
        .await;
    stage
        .patch(&path("paused"), json!({"spec": {"suspend": true}}))
        .await;
    stage
        .agree("resumed and suspended", |picture| {
            ended(picture, "waiting", "Complete")
                && ended(picture, "paused", "Suspended")
                && number(picture, "jobs/paused", "/status/terminating") == 0
        })
        .await;
}

#[tokio::test]
async fn cron_jobs_run_as_with_a_real_controller() {
    let Some(stage) = Stage::start("schedules").await else {
        return;
    };
    let cron = |name: &str, mut spec: Value| {
        spec["jobTemplate"] = json!({"spec": job("x", json!({}), Value::Null)["spec"]});
        json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": name}, "spec": spec})
    };
    for object in [
        cron("tick", json!({"schedule": "* * * * *"})),
        cron("paused", json!({"schedule": "* * * * *", "suspend": true})),
        cron(
            "zone",
            json!({"schedule": "0 0 1 1 *", "timeZone": "Europe/Berlin"}),
        ),
        cron("never", json!({"schedule": "0 0 31 2 *"})),
    ] {
        stage.create(object).await;
    }
    stage
        .agree("a minute", |picture| {
            let status = |name: &str| picture.field("cronjobs/tick", &format!("/status/{name}"));
            !status("lastSuccessfulTime").is_null() && status("active").is_null()
        })
        .await;
}

#[tokio::test]
async fn sizes_budgets_and_claims_are_kept_as_with_a_real_controller() {
    let Some(stage) = Stage::start("bounds").await else {
        return;
    };
    for (name, replicas) in [("web", 1), ("zero", 0), ("many", 6)] {
        let object = workload("apps/v1", "Deployment", name, json!({"replicas": replicas}));
        stage.create(object).await;
    }
    let available = |picture: &Picture, name: &str| {
        number(
            picture,
            &format!("deployments/{name}"),
            "/status/availableReplicas",
        )
    };
    stage
        .agree("deployments", |picture| available(picture, "many") == 6)
        .await;
    let scaler = |name: &str, metric: Value| {
        json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": name},
               "spec": {"minReplicas": 2, "maxReplicas": 4, "metrics": [metric],
                        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}}})
    };
    let resource = |name: &str| json!({"type": "Resource", "resource": {"name": name, "target": {"type": "Utilization", "averageUtilization": 50}}});
    let pods = json!({"type": "Pods", "pods": {"metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": "5"}}});
    for object in [
        scaler("nothing", resource("cpu")),
        scaler("web", resource("cpu")),
        scaler("zero", resource("cpu")),
        scaler("many", pods),
    ] {
        stage.create(object).await;
    }
    for (name, spec) in [
        (
            "empty",
            json!({"minAvailable": 1, "selector": {"matchLabels": {"app": "none"}}}),
        ),
        (
            "naked",
            json!({"maxUnavailable": 1, "selector": {"matchLabels": {"app": "naked"}}}),
        ),
        (
            "web",
            json!({"minAvailable": "50%", "selector": {"matchLabels": {"app": "web"}}}),
        ),
    ] {
        stage
            .create(
                json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
                           "metadata": {"name": name}, "spec": spec}),
            )
            .await;
    }
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "naked", "labels": {"app": "naked"}}});
    pod["spec"] = template("naked", Value::Null)["spec"].clone();
    stage.create(pod).await;
    stage
        .agree("bounds", |picture| {
            let metrics = |name: &str| {
                let key = format!("horizontalpodautoscalers/{name}");
                picture
                    .field(&key, "/status/conditions")
                    .to_string()
                    .contains("ScalingActive")
            };
            ["web", "zero", "many"].iter().all(|name| metrics(name))
                && available(picture, "many") == 4
        })
        .await;
    claims(&stage).await;
}

/// Claims that are bound, wait, or never will be.
async fn claims(stage: &Stage) {
    let claim = |name: &str, class: &str, size: &str| {
        json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name},
               "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": class,
                        "resources": {"requests": {"storage": size}}}})
    };
    stage
        .create(json!({"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "later"},
                       "provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"}))
        .await;
    stage
        .create(
            json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "disk"},
                       "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "manual",
                                "capacity": {"storage": "2Gi"}, "hostPath": {"path": "/data"},
                                "persistentVolumeReclaimPolicy": "Retain"}}),
        )
        .await;
    for object in [
        claim("none", "", "1Gi"),
        claim("missing", "gone", "1Gi"),
        claim("bound", "manual", "1Gi"),
        claim("later", "later", "1Gi"),
    ] {
        stage.create(object).await;
    }
    stage
        .agree("claims", |picture| {
            picture.field("persistentvolumeclaims/bound", "/status/phase") == "Bound"
                && picture
                    .events
                    .iter()
                    .any(|event| event.contains("WaitForFirstConsumer"))
        })
        .await;
    let path = "/api/v1/namespaces/{ns}/persistentvolumeclaims/bound";
    stage.both("DELETE", path, &json!({})).await;
    stage
        .agree("released", |picture| {
            picture.field("persistentvolumes/disk", "/status/phase") == "Released"
        })
        .await;
}

#[tokio::test]
async fn a_namespace_and_its_account_are_kept_as_with_a_real_controller() {
    let Some(stage) = Stage::start("home").await else {
        return;
    };
    let account = "/api/v1/namespaces/{ns}/serviceaccounts/default";
    stage
        .agree("account", |picture| picture.count("serviceaccounts") == 1)
        .await;
    stage.both("DELETE", account, &json!({})).await;
    stage
        .agree("another account", |picture| {
            picture.count("serviceaccounts") == 1
        })
        .await;
    stage
        .create(json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "headless"},
                       "spec": {"clusterIP": "None", "selector": {"app": "web"}, "ports": [{"port": 80}]}}))
        .await;
    stage
        .create(
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "manual"},
                       "spec": {"ports": [{"port": 80}]}}),
        )
        .await;
    stage
        .create(workload(
            "apps/v1",
            "Deployment",
            "web",
            json!({"replicas": 2}),
        ))
        .await;
    stage
        .agree("services", |picture| {
            number(picture, "deployments/web", "/status/availableReplicas") == 2
                && picture.count("endpointslices") == 1
        })
        .await;
    stage
        .both("DELETE", "/api/v1/namespaces/{ns}", &json!({}))
        .await;
    stage
        .agree_on_objects("gone", |picture| {
            picture
                .objects
                .keys()
                .all(|key| key.starts_with("persistentvolumes/"))
        })
        .await;
}

#[tokio::test]
async fn unusual_rollouts_go_as_with_a_real_controller() {
    let Some(stage) = Stage::start("unusual").await else {
        return;
    };
    let web = "/apis/apps/v1/namespaces/{ns}/deployments/web";
    let spec = json!({"replicas": 2, "strategy": {"type": "Recreate"}, "revisionHistoryLimit": 1});
    let object = workload("apps/v1", "Deployment", "web", spec);
    stage.create(object.clone()).await;
    let rolled_out = |revision: &'static str| {
        move |picture: &Picture| {
            let key = "deployments/web";
            reason(picture, key, "Progressing") == "NewReplicaSetAvailable"
                && number(picture, key, "/status/updatedReplicas") == 2
                && picture.count("pods") == 2
                && picture.field(
                    key,
                    "/metadata/annotations/deployment.kubernetes.io~1revision",
                ) == revision
        }
    };
    stage.agree("recreate", rolled_out("1")).await;
    stage.patch(web, image("2")).await;
    stage.agree("second", rolled_out("2")).await;
    stage.patch(web, image("3")).await;
    stage
        .agree_on_objects("third", |picture| {
            rolled_out("3")(picture) && picture.count("replicasets") == 2
        })
        .await;
    let orphan = json!({"propagationPolicy": "Orphan"});
    stage.both("DELETE", web, &orphan).await;
    stage
        .agree_on_objects("orphans", |picture| {
            picture.count("deployments") == 0 && picture.count("pods") == 2
        })
        .await;
    let mut object = object;
    object["spec"]["minReadySeconds"] = json!(1);
    object["spec"]["template"]["spec"]["containers"] =
        image("3")["spec"]["template"]["spec"]["containers"].clone();
    stage.create(object).await;
    stage
        .agree_on_objects("adopted", |picture| {
            number(picture, "deployments/web", "/status/availableReplicas") == 2
                && picture.count("pods") == 2
        })
        .await;
}

#[tokio::test]
async fn unusual_sets_are_kept_as_with_a_real_controller() {
    let Some(stage) = Stage::start("strange").await else {
        return;
    };
    let parallel = json!({"replicas": 3, "serviceName": "db", "podManagementPolicy": "Parallel",
                          "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}});
    stage
        .create(workload("apps/v1", "StatefulSet", "db", parallel))
        .await;
    let by_hand = |name: &str, kind: &str, mut spec: Value| {
        spec["updateStrategy"] = json!({"type": "OnDelete"});
        workload("apps/v1", kind, name, spec)
    };
    stage
        .create(by_hand(
            "calm",
            "StatefulSet",
            json!({"replicas": 1, "serviceName": "calm"}),
        ))
        .await;
    stage.create(by_hand("agent", "DaemonSet", json!({}))).await;
    let there = |picture: &Picture| {
        number(picture, "statefulsets/db", "/status/availableReplicas") == 3
            && number(picture, "statefulsets/calm", "/status/availableReplicas") == 1
            && number(picture, "daemonsets/agent", "/status/numberAvailable") == 1
    };
    stage.agree("create", there).await;
    for name in ["statefulsets/db", "statefulsets/calm", "daemonsets/agent"] {
        stage
            .patch(
                &format!("/apis/apps/v1/namespaces/{{ns}}/{name}"),
                image("2"),
            )
            .await;
    }
    stage
        .agree("update", |picture| {
            there(picture)
                && number(picture, "statefulsets/db", "/status/updatedReplicas") == 1
                && number(picture, "statefulsets/calm", "/status/updatedReplicas") == 0
                && number(
                    picture,
                    "daemonsets/agent",
                    "/status/updatedNumberScheduled",
                ) == 0
        })
        .await;
    stage
        .both("DELETE", "/api/v1/namespaces/{ns}/pods/calm-0", &json!({}))
        .await;
    stage
        .agree("by hand", |picture| {
            there(picture) && number(picture, "statefulsets/calm", "/status/updatedReplicas") == 1
        })
        .await;
    let db = "/apis/apps/v1/namespaces/{ns}/statefulsets/db";
    stage.patch(db, json!({"spec": {"replicas": 1}})).await;
    stage
        .agree("shrink", |picture| {
            number(picture, "statefulsets/db", "/status/replicas") == 1
                && number(picture, "statefulsets/db", "/status/availableReplicas") == 1
        })
        .await;
}

#[tokio::test]
async fn pods_of_jobs_are_replaced_as_with_a_real_controller() {
    let Some(stage) = Stage::start("losses").await else {
        return;
    };
    let endless = json!({"simulator.bellwether.dev/run-for": "1h"});
    stage
        .create(job(
            "lost",
            json!({"podReplacementPolicy": "Failed"}),
            endless.clone(),
        ))
        .await;
    stage
        .create(job("gone", json!({"backoffLimit": 0}), endless))
        .await;
    stage
        .agree("running", |picture| {
            number(picture, "jobs/lost", "/status/ready") == 1
                && number(picture, "jobs/gone", "/status/ready") == 1
        })
        .await;
    stage.delete_pods().await;
    stage
        .agree("replaced", |picture| {
            number(picture, "jobs/lost", "/status/failed") == 1
                && number(picture, "jobs/lost", "/status/ready") == 1
                && reason(picture, "jobs/gone", "Failed") == "BackoffLimitExceeded"
        })
        .await;
}
