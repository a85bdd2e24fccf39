//! Two real API servers, used by one case after the other.

use std::time::Duration;

use bellwether_controllers::work_agent::WorkAgents;
use bellwether_testkit::{Assets, RealCluster};
use http::Request;
use kube::Client;
use serde_json::{Value, json};

/// How long it takes at most until a change has come round through both servers.
const QUIET: Duration = Duration::from_millis(400);

/// A real hub and a real member. They end when this is dropped.
pub struct RealPair {
    pub hub: Client,
    pub member: Client,
    _servers: [RealCluster; 2],
}

/// Kinds of which cases leave objects behind: on which cluster, and where they are.
const LEFTOVERS: [(bool, &str); 37] = [
    (true, "/apis/core.oam.dev/v1beta1/applications"),
    (true, "/apis/core.oam.dev/v1beta1/applicationrevisions"),
    (true, "/apis/core.oam.dev/v1beta1/resourcetrackers"),
    (true, "/apis/core.oam.dev/v1beta1/componentdefinitions"),
    (true, "/apis/core.oam.dev/v1beta1/policydefinitions"),
    (true, "/apis/core.oam.dev/v1beta1/definitionrevisions"),
    (true, "/api/v1/namespaces/default/events"),
    (true, "/api/v1/namespaces/far/configmaps"),
    (true, "/api/v1/namespaces/default/serviceaccounts"),
    (
        true,
        "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
    ),
    (
        true,
        "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
    ),
    (
        true,
        "/apis/core.oam.dev/v1alpha2/applicationconfigurations",
    ),
    (true, "/apis/core.oam.dev/v1alpha2/components"),
    (true, "/apis/core.oam.dev/v1beta1/traitdefinitions"),
    (true, "/apis/apps/v1/namespaces/default/controllerrevisions"),
    (true, "/apis/apps/v1/namespaces/default/deployments"),
    (true, "/api/v1/namespaces/default/configmaps"),
    (
        true,
        "/apis/work.open-cluster-management.io/v1/manifestworks",
    ),
    (
        true,
        "/apis/work.open-cluster-management.io/v1alpha1/manifestworkreplicasets",
    ),
    (true, "/apis/multicluster.x-k8s.io/v1alpha1/works"),
    (
        true,
        "/apis/multicluster.x-k8s.io/v1alpha1/workmanifestconfigs",
    ),
    (
        true,
        "/apis/cluster.open-cluster-management.io/v1beta1/placements",
    ),
    (
        true,
        "/apis/cluster.open-cluster-management.io/v1beta1/placementdecisions",
    ),
    (
        true,
        "/apis/cluster.open-cluster-management.io/v1/managedclusters",
    ),
    (true, "/api/v1/namespaces/cluster1/events"),
    (
        false,
        "/apis/work.open-cluster-management.io/v1/appliedmanifestworks",
    ),
    (false, "/apis/multicluster.x-k8s.io/v1alpha1/appliedworks"),
    (false, "/api/v1/namespaces/default/configmaps"),
    (false, "/api/v1/namespaces/default/secrets"),
    (false, "/api/v1/namespaces/default/pods"),
    (false, "/apis/apps/v1/namespaces/default/deployments"),
    (false, "/apis/apps/v1/namespaces/default/daemonsets"),
    (false, "/apis/batch/v1/namespaces/default/jobs"),
    (
        false,
        "/apis/rbac.authorization.k8s.io/v1/namespaces/default/roles",
    ),
    (
        false,
        "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings",
    ),
    (false, "/apis/zoo.example/v1/birds"),
    (false, "/apis/zoo.example/v1/mycustomresources"),
];

impl RealPair {
    /// Starts both, with the kinds of a fleet on the hub; a word about why not otherwise.
    pub async fn start() -> Result<Self, String> {
        let assets = Assets::find()?;
        // One after the other: each takes ports that nobody else has.
        let start = async || {
            let started = RealCluster::start(&assets).await;
            started.map_err(|error| format!("{error:#}"))
        };
        let (hub, member) = (start().await?, start().await?);
        let pair = Self {
            hub: hub.client().await.map_err(|error| error.to_string())?,
            member: member.client().await.map_err(|error| error.to_string())?,
            _servers: [hub, member],
        };
        pair.define().await.map_err(|error| error.to_string())?;
        Ok(pair)
    }

    /// Defines the kinds of a fleet on the hub, and waits until they are served.
    async fn define(&self) -> Result<(), kube::Error> {
        let all = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        for definition in bellwether_api::definitions() {
            send(&self.hub, "POST", all, &definition).await?;
            let name = definition["metadata"]["name"].as_str().unwrap();
            let path = format!("{all}/{name}");
            loop {
                let seen = send(&self.hub, "GET", &path, &Value::Null).await?;
                let conditions = seen["status"]["conditions"].as_array();
                let is_served = conditions
                    .into_iter()
                    .flatten()
                    .any(|it| it["type"] == "Established" && it["status"] == "True");
                if is_served {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        Ok(())
    }

    /// Removes what a case has left, anyone who holds it.
    pub async fn clean(&self) {
        for (is_on_hub, path) in LEFTOVERS {
            let client = if is_on_hub { &self.hub } else { &self.member };
            for _ in 0..100 {
                if remove_all(client, path).await {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        for name in ["birds.zoo.example", "mycustomresources.zoo.example"] {
            let path = format!("{definitions}/{name}");
            let _ = send(&self.member, "DELETE", &path, &Value::Null).await;
            while send(&self.member, "GET", &path, &Value::Null).await.is_ok() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

/// Has all objects of a kind removed; whether none are left.
async fn remove_all(client: &Client, path: &str) -> bool {
    let Ok(list) = send(client, "GET", path, &Value::Null).await else {
        return true;
    };
    let items = list["items"].as_array().cloned().unwrap_or_default();
    for item in &items {
        let metadata = &item["metadata"];
        let name = metadata["name"].as_str().unwrap_or_default();
        let path = match metadata["namespace"].as_str() {
            Some(namespace) if !path.contains("/namespaces/") => {
                let (root, plural) = path.rsplit_once('/').unwrap();
                format!("{root}/namespaces/{namespace}/{plural}/{name}")
            }
            _ => format!("{path}/{name}"),
        };
        if metadata["finalizers"].is_array() {
            let free = json!({"metadata": {"finalizers": null}});
            let _ = send(client, "PATCH", &path, &free).await;
        }
        let options = json!({"gracePeriodSeconds": 0, "propagationPolicy": "Background"});
        let _ = send(client, "DELETE", &path, &options).await;
    }
    items.is_empty()
}

async fn send(
    client: &Client,
    method: &str,
    path: &str,
    body: &Value,
) -> Result<Value, kube::Error> {
    let kind = if method == "PATCH" {
        "application/merge-patch+json"
    } else {
        "application/json"
    };
    let body = if body.is_null() {
        Vec::new()
    } else {
        body.to_string().into_bytes()
    };
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", kind)
        .body(body)
        .unwrap();
    client.request(request).await
}

/// Waits until the agents have had nothing to do for a while.
pub async fn settle(agents: Option<&WorkAgents>) {
    const STEP: Duration = Duration::from_millis(25);
    let mut quiet = Duration::ZERO;
    while quiet < QUIET {
        tokio::time::sleep(STEP).await;
        let is_idle = agents.is_none_or(WorkAgents::is_idle);
        quiet = if is_idle {
            quiet + STEP
        } else {
            Duration::ZERO
        };
    }
}
