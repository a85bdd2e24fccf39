//! Deployments, and evictions of their pods.

use serde_json::json;

use super::picture::Picture;
use super::stage::Stage;
use super::{image, number, reason, workload};

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
