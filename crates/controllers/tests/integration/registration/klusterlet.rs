//! The agent of Open Cluster Management on our hub: the requests that it makes, one by one, for more
//! than an hour, with the renewal of its certificate.
//!
//! What it asks for is taken from its source (ocm: pkg/registration/spoke, pkg/registration/register,
//! pkg/work/spoke): informers list and then watch, certificate requests get their names from the hub,
//! and the answer is read from the watch.

use std::collections::BTreeMap;

use bellwether_apiserver::{Credentials, HUB};
use bellwether_testkit::JsonClient;
use futures::StreamExt as _;
use http::{Method, Request};
use kube::Client;
use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};
use serde_json::{Value, json};

use super::AVAILABLE;
use crate::common::World;

const CLUSTERS: &str = "/apis/cluster.open-cluster-management.io/v1/managedclusters";
const REQUESTS: &str = "/apis/certificates.k8s.io/v1/certificatesigningrequests";
const LEASES: &str = "/apis/coordination.k8s.io/v1/namespaces/c1/leases";
const ADD_ONS: &str =
    "/apis/addon.open-cluster-management.io/v1alpha1/namespaces/c1/managedclusteraddons";
const WORKS: &str = "/apis/work.open-cluster-management.io/v1/namespaces/c1/manifestworks";
const OWN_REQUESTS: &str = "labelSelector=open-cluster-management.io%2Fcluster-name%3Dc1";
const OWN_CLUSTER: &str = "fieldSelector=metadata.name%3Dc1";

/// Whom the agent claims to be.
const USER: &str = "system:open-cluster-management:c1:klusterlet";

struct Klusterlet {
    client: Client,
}

impl Klusterlet {
    /// Sends a request, and returns the answer or what the hub says instead.
    async fn send(&self, method: Method, path: &str, body: Value) -> Result<Value, String> {
        let client = JsonClient::from(self.client.clone());
        let answer = client.send(method.as_str(), path, &body).await;
        answer.map_err(|error| format!("{method} {path}: {error}"))
    }

    async fn get(&self, path: &str) -> Value {
        self.send(Method::GET, path, Value::Null).await.unwrap()
    }

    async fn post(&self, path: &str, body: Value) -> Value {
        self.send(Method::POST, path, body).await.unwrap()
    }

    async fn put(&self, path: &str, body: Value) -> Value {
        self.send(Method::PUT, path, body).await.unwrap()
    }

    async fn patch(&self, path: &str, body: Value) -> Value {
        self.send(Method::PATCH, path, body).await.unwrap()
    }

    /// Lists as an informer does, and returns a watch from there.
    async fn inform(&self, path: &str, selector: &str) -> (Vec<Value>, Watch<'_>) {
        let list = self
            .get(&format!("{path}?{selector}&limit=500&resourceVersion=0"))
            .await;
        let version = list["metadata"]["resourceVersion"].as_str().unwrap();
        let watch = format!(
            "{path}?{selector}&watch=true&allowWatchBookmarks=true&resourceVersion={version}&timeoutSeconds=7200"
        );
        let request = Request::get(&watch).body(Vec::new()).unwrap();
        let lines = self.client.request_stream(request).await.unwrap();
        let items = list["items"].as_array().unwrap().clone();
        (items, Watch(Box::pin(lines_of(lines))))
    }

    /// Asks for a certificate and reads the answer from a watch, as the agent does.
    async fn ask(&self, seconds: i64) -> Credentials {
        let (known, mut watch) = self.inform(REQUESTS, OWN_REQUESTS).await;
        assert!(known.len() < 10, "the agent would ask no more");
        let key = KeyPair::generate().unwrap();
        let mut name = DistinguishedName::new();
        name.push(
            DnType::OrganizationName,
            "system:open-cluster-management:c1",
        );
        name.push(
            DnType::CustomDnType(vec![2, 5, 4, 10]),
            "system:open-cluster-management:managed-clusters",
        );
        name.push(DnType::CommonName, USER);
        let mut params = CertificateParams::default();
        params.distinguished_name = name;
        let pem = params.serialize_request(&key).unwrap().pem().unwrap();
        let request = json!({
            "apiVersion": "certificates.k8s.io/v1", "kind": "CertificateSigningRequest",
            "metadata": {"generateName": "c1-",
                "labels": {"open-cluster-management.io/cluster-name": "c1"}},
            "spec": {
                "request": k8s_openapi::ByteString(pem.into_bytes()),
                "signerName": "kubernetes.io/kube-apiserver-client",
                "usages": ["digital signature", "key encipherment", "client auth"],
                "expirationSeconds": seconds,
            },
        });
        let made = self.post(REQUESTS, request).await;
        let name = made["metadata"]["name"].clone();
        loop {
            let event = watch.next().await;
            let certificate = event["object"]["status"]["certificate"].as_str();
            if let (true, Some(text)) = (event["object"]["metadata"]["name"] == name, certificate) {
                let bytes: k8s_openapi::ByteString = serde_json::from_value(json!(text)).unwrap();
                return Credentials {
                    certificate: String::from_utf8(bytes.0).unwrap(),
                    key: key.serialize_pem(),
                };
            }
        }
    }
}

/// The lines of a watch.
struct Watch<'a>(std::pin::Pin<Box<dyn futures::Stream<Item = String> + 'a>>);

impl Watch<'_> {
    async fn next(&mut self) -> Value {
        let line = self.0.next().await.unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

fn lines_of<'a>(
    reader: impl futures::AsyncBufRead + 'a,
) -> impl futures::Stream<Item = String> + 'a {
    use futures::AsyncBufReadExt as _;
    Box::pin(reader).lines().map(Result::unwrap)
}

/// The conditions that the agent reports.
fn conditions(now: &str) -> Value {
    let condition = |kind: &str, reason: &str| {
        json!({"type": kind, "status": "True", "reason": reason, "message": "",
            "lastTransitionTime": now})
    };
    json!([
        condition("ManagedClusterJoined", "ManagedClusterJoined"),
        condition(AVAILABLE, "ManagedClusterAvailable"),
    ])
}

/// Everything that the agent does in a minute, besides its certificate.
async fn minute(world: &World, agent: &Klusterlet) {
    let now = world.now().to_string();
    let mut lease = agent.get(&format!("{LEASES}/managed-cluster-lease")).await;
    lease["spec"]["renewTime"] = json!(now);
    agent
        .put(&format!("{LEASES}/managed-cluster-lease"), lease)
        .await;
    let cluster = agent.get(&format!("{CLUSTERS}/c1")).await;
    let known = cluster["status"]["conditions"].as_array().unwrap().iter();
    let own = conditions(&now);
    let all: BTreeMap<String, Value> = known
        .chain(own.as_array().unwrap())
        .map(|it| (it["type"].as_str().unwrap().to_owned(), it.clone()))
        .collect();
    let status = json!({
        "metadata": {"resourceVersion": cluster["metadata"]["resourceVersion"]},
        "status": {"conditions": all.into_values().collect::<Vec<_>>(),
            "capacity": {"cpu": "8"}, "allocatable": {"cpu": "8"},
            "version": {"kubernetes": "v1.35.0"}},
    });
    let told = agent
        .send(Method::PATCH, &format!("{CLUSTERS}/c1/status"), status)
        .await;
    // The hub may have written meanwhile; the agent reads again then.
    if let Err(error) = told {
        assert!(error.contains("modified"), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_agent_of_open_cluster_management_stays_a_member() {
    let world = World::start().await;
    let _controllers = world.control(&[]);
    let token = world.token(Some("c1")).await;
    let bootstrap = Klusterlet {
        client: world.server.client_with_token(HUB, &token.reveal()),
    };
    world.pass(5).await;
    // It makes its cluster known, and asks for a certificate.
    let absent = bootstrap
        .send(Method::GET, &format!("{CLUSTERS}/c1"), Value::Null)
        .await;
    assert!(absent.unwrap_err().contains("not found"));
    let cluster = json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": "c1",
            "annotations": {"agent.open-cluster-management.io/version": "v1"}},
        "spec": {"managedClusterClientConfigs": [{"url": "https://c1.example:6443"}]},
    });
    bootstrap.post(CLUSTERS, cluster).await;
    let credentials = bootstrap.ask(3600).await;
    let enter = |credentials: &Credentials| {
        let service = world.server.service_with_certificate(HUB, credentials);
        Klusterlet {
            client: Client::new(service.unwrap(), "default"),
        }
    };
    let first = enter(&credentials);
    world
        .until_condition("c1", "HubAcceptedManagedCluster", "True")
        .await;
    world.pass(5).await;
    // Its informers.
    for (path, selector) in [
        (CLUSTERS, OWN_CLUSTER),
        (LEASES, ""),
        (ADD_ONS, ""),
        // Newer ones speak this version.
        (&ADD_ONS.replace("v1alpha1", "v1beta1"), ""),
        (WORKS, ""),
        (REQUESTS, OWN_REQUESTS),
    ] {
        first.inform(path, selector).await;
    }
    minute(&world, &first).await;
    world.until_condition("c1", AVAILABLE, "True").await;

    // It updates what it tells about its cluster, as a whole, and may change nothing else.
    let mut own = first.get(&format!("{CLUSTERS}/c1")).await;
    own["metadata"]["annotations"]["agent.open-cluster-management.io/version"] = json!("v2");
    own["spec"]["managedClusterClientConfigs"][0]["url"] = json!("https://c1.example:7443");
    let mut own = first.put(&format!("{CLUSTERS}/c1"), own).await;
    own["metadata"]["labels"]["region"] = json!("moon");
    let refused = first
        .send(Method::PUT, &format!("{CLUSTERS}/c1"), own)
        .await
        .unwrap_err();
    assert!(refused.contains("an agent may change"), "{refused}");

    // Add-ons, works and events.
    world
        .create(json!({
            "apiVersion": "addon.open-cluster-management.io/v1alpha1",
            "kind": "ManagedClusterAddOn",
            "metadata": {"name": "proxy", "namespace": "c1"}, "spec": {},
        }))
        .await;
    let now = world.now().to_string();
    let available = json!({"status": {"conditions": [{"type": "Available", "status": "True",
        "reason": "LeaseUpdated", "message": "", "lastTransitionTime": now}]}});
    first
        .patch(&format!("{ADD_ONS}/proxy/status"), available)
        .await;
    world
        .create(json!({
            "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
            "metadata": {"name": "w", "namespace": "c1"},
            "spec": {"workload": {"manifests": [
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}}]}},
        }))
        .await;
    let finalizer = json!({"metadata": {"finalizers": ["cluster.open-cluster-management.io/manifest-work-cleanup"]}});
    first.patch(&format!("{WORKS}/w"), finalizer).await;
    let applied = json!({"status": {"conditions": [{"type": "Applied", "status": "True",
        "reason": "AppliedManifestWorkComplete", "message": "", "lastTransitionTime": now}]}});
    first.patch(&format!("{WORKS}/w/status"), applied).await;
    let event = json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event",
        "metadata": {"generateName": "registration-", "namespace": "c1"},
        "eventTime": "2026-01-01T00:00:00.000000Z", "action": "Joined", "reason": "Joined",
        "type": "Normal", "note": "", "reportingController": "klusterlet",
        "reportingInstance": "klusterlet-0",
        "regarding": {"kind": "ManagedCluster", "name": "c1", "namespace": "c1"},
    });
    first
        .post("/apis/events.k8s.io/v1/namespaces/c1/events", event)
        .await;

    // Time passes; when a fifth of the certificate's life is left it asks for the next one.
    for _ in 0..49 {
        minute(&world, &first).await;
        world.pass(60).await;
    }
    let renewed = first.ask(3600).await;
    let second = enter(&renewed);
    for _ in 0..20 {
        minute(&world, &second).await;
        world.pass(60).await;
    }
    world.until_condition("c1", AVAILABLE, "True").await;
    assert!(super::taints(&world.managed_cluster("c1").await).is_empty());
    let expired = first
        .send(Method::GET, &format!("{CLUSTERS}/c1"), Value::Null)
        .await;
    assert!(expired.unwrap_err().contains("Unauthorized"));
}
