//! Waits until a Deployment that was stopped has no pods any more: until then its processes act.

use std::time::Duration;

use http::Request;
use kube::Client;
use serde_json::Value;

/// How often it is looked at.
const PAUSE: Duration = Duration::from_millis(200);

/// Waits until the Deployment at a path has no pods, or is gone.
pub(crate) async fn until_without_pods(
    client: &Client,
    path: &str,
    timeout: Duration,
) -> anyhow::Result<()> {
    let mut left = 0;
    let gone = async {
        loop {
            let Some(deployment) = read(client, path).await? else {
                return anyhow::Ok(());
            };
            left = match pods_path(&deployment) {
                Some(pods) => {
                    let pods = read(client, &pods).await?.unwrap_or_default();
                    pods["items"].as_array().map_or(0, Vec::len)
                }
                None => 0,
            };
            if left == 0 && is_stopped(&deployment) {
                return Ok(());
            }
            tokio::time::sleep(PAUSE).await;
        }
    };
    match tokio::time::timeout(timeout, gone).await {
        Ok(ended) => ended,
        Err(_) => anyhow::bail!(
            "{path} still has {left} pods after {} seconds",
            timeout.as_secs()
        ),
    }
}

async fn read(client: &Client, path: &str) -> anyhow::Result<Option<Value>> {
    let request = Request::get(path).body(Vec::new())?;
    match client.request::<Value>(request).await {
        Ok(object) => Ok(Some(object)),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// True if the controller of Deployments has noticed that there should be none, or if there is no such controller.
fn is_stopped(deployment: &Value) -> bool {
    let status = &deployment["status"];
    let generation = deployment["metadata"]["generation"].as_i64();
    let observed = status["observedGeneration"].as_i64();
    let is_noticed = observed.is_none() || observed >= generation;
    is_noticed && status["replicas"].as_i64().unwrap_or(0) == 0
}

/// The path of the list of its pods. Those that are ending are not counted in its status.
fn pods_path(deployment: &Value) -> Option<String> {
    let namespace = deployment["metadata"]["namespace"].as_str()?;
    let labels = deployment["spec"]["selector"]["matchLabels"].as_object()?;
    let labels = labels.iter();
    let labels = labels.filter_map(|(key, value)| Some(format!("{key}%3D{}", value.as_str()?)));
    let selector: Vec<String> = labels.collect();
    let selector = selector.join("%2C").replace('/', "%2F");
    Some(format!(
        "/api/v1/namespaces/{namespace}/pods?labelSelector={selector}"
    ))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(status: &Value, expected: bool) {
        let deployment = json!({"metadata": {"generation": 3}, "status": status});
        assert_eq!(is_stopped(&deployment), expected, "{status}");
    }

    #[test]
    fn a_deployment_is_stopped_when_its_controller_says_so() {
        check(&json!({}), true);
        check(&json!({"observedGeneration": 3}), true);
        check(&json!({"observedGeneration": 3, "replicas": 1}), false);
        check(&json!({"observedGeneration": 2}), false);
    }

    #[test]
    fn pods_are_found_by_the_selector() {
        let deployment = json!({
            "metadata": {"namespace": "a"},
            "spec": {"selector": {"matchLabels": {"app.kubernetes.io/name": "b", "c": "d"}}},
        });
        assert_eq!(
            pods_path(&deployment).unwrap(),
            "/api/v1/namespaces/a/pods?labelSelector=app.kubernetes.io%2Fname%3Db%2Cc%3Dd"
        );
    }
}
