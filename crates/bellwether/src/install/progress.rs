//! Waits until a Deployment is available, and prints how far it has come.

use std::time::Duration;

use anyhow::Context as _;
use futures::StreamExt as _;
use k8s_openapi::api::apps::v1::Deployment;
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client};

use crate::cli::say;

/// How far a Deployment has come.
#[derive(Debug, PartialEq, Eq)]
struct Progress {
    text: String,
    is_done: bool,
}

/// Returns how far a Deployment has come.
fn progress(deployment: &Deployment) -> Progress {
    let wanted = deployment.spec.as_ref().and_then(|spec| spec.replicas);
    let wanted = wanted.unwrap_or(1);
    let status = deployment.status.clone().unwrap_or_default();
    let updated = status.updated_replicas.unwrap_or(0);
    let available = status.available_replicas.unwrap_or(0);
    let is_seen = status.observed_generation >= deployment.metadata.generation;
    let old = status.replicas.unwrap_or(0) - updated;
    let mut text = format!(
        "{} of {wanted} processes are available",
        available.min(wanted)
    );
    if old > 0 {
        text = format!("{text}, {old} of the version before end");
    }
    Progress {
        text,
        is_done: is_seen && updated >= wanted && available >= wanted && old <= 0,
    }
}

/// Waits until all replicas of a Deployment are available.
pub(super) async fn until_available(
    client: Client,
    namespace: &str,
    name: &str,
    timeout: Duration,
) -> anyhow::Result<()> {
    let api: Api<Deployment> = Api::namespaced(client, namespace);
    let mut last = String::from("nothing is known of its processes");
    let done = async {
        let mut states = std::pin::pin!(watcher::watch_object(api, name).default_backoff());
        while let Some(state) = states.next().await {
            let Ok(Some(deployment)) = state else {
                continue;
            };
            let Progress { text, is_done } = progress(&deployment);
            if text != last {
                say(&format!("deployment.apps/{name}: {text}"));
                last = text;
            }
            if is_done {
                return;
            }
        }
    };
    let waited = tokio::time::timeout(timeout, done).await;
    waited.map_err(|_| anyhow::anyhow!("{last}")).with_context(|| {
        format!(
            "deployment {name} is not available after {} seconds; `kubectl -n {namespace} describe pods -l app.kubernetes.io/instance={name}` shows why",
            timeout.as_secs()
        )
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(status: &serde_json::Value, text: &str, is_done: bool) {
        let deployment = json!({
            "metadata": {"generation": 2}, "status": status,
            "spec": {"replicas": 2, "selector": {}, "template": {}},
        });
        let found = progress(&serde_json::from_value(deployment).unwrap());
        let text = text.to_owned();
        assert_eq!(found, Progress { text, is_done });
    }

    #[test]
    fn a_deployment_is_done_when_only_new_replicas_are_there() {
        let none = "0 of 2 processes are available";
        let both = "2 of 2 processes are available";
        check(&json!(null), none, false);
        check(
            &json!({"observedGeneration": 1, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}),
            both,
            false,
        );
        check(
            &json!({"observedGeneration": 2, "replicas": 3, "updatedReplicas": 2, "availableReplicas": 3}),
            "2 of 2 processes are available, 1 of the version before end",
            false,
        );
        check(
            &json!({"observedGeneration": 2, "replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}),
            both,
            true,
        );
    }
}
