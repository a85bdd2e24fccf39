//! Stateful sets, daemon sets, replica sets and replication controllers.

use serde_json::{Value, json};

use super::picture::Picture;
use super::stage::Stage;
use super::{image, number, workload};

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
async fn claims_of_sets_are_kept_as_with_a_real_controller() {
    let Some(stage) = Stage::start("disks").await else {
        return;
    };
    for (name, size) in [("small", "1Gi"), ("medium", "2Gi"), ("large", "3Gi")] {
        stage
            .create(
                json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
                           "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "manual",
                                    "capacity": {"storage": size}, "hostPath": {"path": "/data"},
                                    "persistentVolumeReclaimPolicy": "Retain"}}),
            )
            .await;
    }
    let claims = json!([{"metadata": {"name": "data", "labels": {"kind": "disk"}},
                         "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": "manual",
                                  "resources": {"requests": {"storage": "1Gi"}}}}]);
    let set = |name: &str, replicas: i64, retention: Value| {
        workload(
            "apps/v1",
            "StatefulSet",
            name,
            json!({"replicas": replicas, "serviceName": name, "volumeClaimTemplates": claims,
                   "persistentVolumeClaimRetentionPolicy": retention}),
        )
    };
    let ready = |picture: &Picture, name: &str| {
        let key = format!("statefulsets/{name}");
        number(picture, &key, "/status/availableReplicas")
    };
    let scaled = json!({"whenScaled": "Delete", "whenDeleted": "Retain"});
    stage.create(set("db", 2, scaled)).await;
    stage
        .agree("two", |picture| ready(picture, "db") == 2)
        .await;
    let deleted = json!({"whenScaled": "Retain", "whenDeleted": "Delete"});
    stage.create(set("cache", 1, deleted)).await;
    // The real controller may trip over its own change of the claim, and tell so.
    stage
        .agree_on_objects("three", |picture| ready(picture, "cache") == 1)
        .await;
    let path = "/apis/apps/v1/namespaces/{ns}/statefulsets";
    stage
        .patch(&format!("{path}/db"), json!({"spec": {"replicas": 1}}))
        .await;
    stage
        .agree_on_objects("scaled", |picture| {
            number(picture, "statefulsets/db", "/status/replicas") == 1
                && picture.count("persistentvolumeclaims") == 2
        })
        .await;
    for name in ["db", "cache"] {
        stage
            .both("DELETE", &format!("{path}/{name}"), &json!({}))
            .await;
    }
    stage
        .agree_on_objects("deleted", |picture| {
            picture.count("statefulsets") == 0
                && picture.count("pods") == 0
                && picture.count("persistentvolumeclaims") == 1
        })
        .await;
}
