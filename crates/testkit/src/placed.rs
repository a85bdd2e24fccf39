//! A placement that has chosen all clusters, without a scheduler.

use futures::{StreamExt as _, stream};
use kube::Client;
use serde_json::{Value, json};

use crate::json_client::JsonClient;
use crate::objects::{namespace, placement};

/// How many requests are sent at once.
const AT_ONCE: usize = 32;
/// How many clusters a decision has at most.
const PER_DECISION: usize = 100;

/// Creates the Placement `all` in the namespace `default` and its decisions, which name all those clusters, and a
/// namespace for each cluster.
pub async fn place_all(client: &Client, clusters: &[String]) {
    let client = &JsonClient::from(client.clone());
    stream::iter(clusters)
        .for_each_concurrent(AT_ONCE, |name| async move {
            client.create(&namespace(name)).await;
        })
        .await;
    let all = placement("all", json!({}));
    client.create(&all).await;
    let status = json!({"numberOfSelectedClusters": clusters.len(), "conditions": []});
    client.merge_status(&all, &status).await;
    for (number, chosen) in clusters.chunks(PER_DECISION).enumerate() {
        let key = |name: &str| format!("cluster.open-cluster-management.io/{name}");
        let decision = json!({
            "apiVersion": "cluster.open-cluster-management.io/v1beta1",
            "kind": "PlacementDecision",
            "metadata": {
                "name": format!("all-decision-{}", number + 1), "namespace": "default",
                "labels": {(key("placement")): "all", (key("decision-group-index")): "0",
                    (key("decision-group-name")): ""},
            },
        });
        client.create(&decision).await;
        let decide = |name: &String| json!({"clusterName": name, "reason": ""});
        let decisions: Vec<Value> = chosen.iter().map(decide).collect();
        let status = json!({ "decisions": decisions });
        client.merge_status(&decision, &status).await;
    }
}
