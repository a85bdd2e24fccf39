//! Autoscalers, budgets, claims, services and namespaces.

use serde_json::{Value, json};

use super::picture::Picture;
use super::stage::Stage;
use super::{number, template, workload};

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
