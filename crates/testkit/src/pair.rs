//! Two real API servers, used by one test case after the other.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::{Value, json};

use crate::assets::Assets;
use crate::json_client::JsonClient;
use crate::real::RealCluster;

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const PAUSE: Duration = Duration::from_millis(50);
/// How often a list is asked for until nothing is left in it.
const ATTEMPTS: usize = 100;

/// Built-in kinds of which cases leave objects behind.
const BUILT_IN: [&str; 11] = [
    "/api/v1/configmaps",
    "/api/v1/secrets",
    "/api/v1/pods",
    "/api/v1/events",
    "/api/v1/serviceaccounts",
    "/apis/apps/v1/deployments",
    "/apis/apps/v1/daemonsets",
    "/apis/apps/v1/controllerrevisions",
    "/apis/batch/v1/jobs",
    "/apis/rbac.authorization.k8s.io/v1/roles",
    "/apis/rbac.authorization.k8s.io/v1/rolebindings",
];

/// A real hub and a real member. They end when this is dropped.
#[derive(Debug)]
pub struct RealPair {
    /// The hub, as its administrator.
    pub hub: JsonClient,
    /// The member, as its administrator.
    pub member: JsonClient,
    _servers: [RealCluster; 2],
}

impl RealPair {
    /// Starts both, and defines the kinds of a fleet on the hub. The error says why that is not possible here.
    pub async fn start() -> Result<Self, String> {
        let assets = Assets::find()?;
        // One after the other: each takes ports that nobody else has.
        let (hub, member) = (start(&assets).await?, start(&assets).await?);
        let pair = Self {
            hub: hub.0,
            member: member.0,
            _servers: [hub.1, member.1],
        };
        pair.hub.define(bellwether_api::definitions()).await;
        Ok(pair)
    }

    /// Removes what a case has left on both clusters, whatever its finalizers: objects of all custom kinds, and of
    /// built-in kinds outside of the namespaces of Kubernetes. Definitions of other groups than those of a
    /// fleet go, too.
    pub async fn clean(&self) {
        let of_fleet: HashSet<String> = bellwether_api::definitions()
            .map(|it| text(&it["spec"]["group"]).to_owned())
            .collect();
        for client in [&self.hub, &self.member] {
            let definitions = client.list(DEFINITIONS).await;
            let custom = definitions.iter().map(|it| objects_of(&it["spec"]));
            for path in BUILT_IN.map(str::to_owned).into_iter().chain(custom) {
                for _ in 0..ATTEMPTS {
                    if remove_all(client, &path).await {
                        break;
                    }
                    tokio::time::sleep(PAUSE).await;
                }
            }
            let is_of_fleet = |it: &&Value| of_fleet.contains(text(&it["spec"]["group"]));
            for definition in definitions.iter().filter(|it| !is_of_fleet(it)) {
                let path = format!("{DEFINITIONS}/{}", text(&definition["metadata"]["name"]));
                let _ = client.send("DELETE", &path, &Value::Null).await;
                while client.send("GET", &path, &Value::Null).await.is_ok() {
                    tokio::time::sleep(PAUSE).await;
                }
            }
        }
    }
}

async fn start(assets: &Assets) -> Result<(JsonClient, RealCluster), String> {
    let started = async {
        let server = RealCluster::start(assets).await?;
        Ok((server.client().await?.into(), server))
    };
    let started: anyhow::Result<_> = started.await;
    started.map_err(|error| format!("{error:#}"))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The path of all objects of a definition.
fn objects_of(definition: &Value) -> String {
    let versions = definition["versions"].as_array().into_iter().flatten();
    let version = versions.clone().find(|it| it["served"] == true);
    let version = text(&version.unwrap_or(&Value::Null)["name"]);
    let (group, plural) = (
        text(&definition["group"]),
        text(&definition["names"]["plural"]),
    );
    format!("/apis/{group}/{version}/{plural}")
}

/// Deletes all objects at a path; true if none are left.
async fn remove_all(client: &JsonClient, path: &str) -> bool {
    let Ok(list) = client.send("GET", path, &Value::Null).await else {
        return true;
    };
    let items = list["items"].as_array().into_iter().flatten();
    let left: Vec<&Value> = items
        .filter(|it| !text(&it["metadata"]["namespace"]).starts_with("kube-"))
        .collect();
    for item in &left {
        let metadata = &item["metadata"];
        let name = text(&metadata["name"]);
        let path = match (metadata["namespace"].as_str(), path.rsplit_once('/')) {
            (Some(namespace), Some((root, plural))) => {
                format!("{root}/namespaces/{namespace}/{plural}/{name}")
            }
            _ => format!("{path}/{name}"),
        };
        if metadata["finalizers"].is_array() {
            let free = json!({"metadata": {"finalizers": null}});
            let _ = client.send("PATCH", &path, &free).await;
        }
        let options = json!({"gracePeriodSeconds": 0, "propagationPolicy": "Background"});
        let _ = client.send("DELETE", &path, &options).await;
    }
    left.is_empty()
}
