//! A webhook server for a hub: embedded, and, where `KUBEBUILDER_ASSETS` points at one, a real
//! kube-apiserver.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Duration;

use bellwether_placement::admission::FleetAdmission;
use bellwether_runtime::{Clock, MetricsRegistry};
use bellwether_testkit::{Assets, Embedded, Polling, RealCluster, skip};
use bellwether_webhook::certificate::AUTHORITY_AGE;
use bellwether_webhook::{Keeper, Location, Options, WebhookServer};
use bellwether_work::admission::WorkAdmission;
use http_body_util::BodyExt as _;
use jiff::SignedDuration;
use kube::Client;
use serde_json::{Value, json};
use tokio::net::TcpListener;

const CLUSTERS: &str = "/apis/cluster.open-cluster-management.io/v1/managedclusters";
const WORKS: &str = "/apis/work.open-cluster-management.io/v1/namespaces/c1/manifestworks";
const CONFIGURATION: &str =
    "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/bellwether-hub";
const SET: &str = "cluster.open-cluster-management.io/clusterset";

/// Sends a request, as another user if one is named.
async fn send(
    client: &Client,
    user: Option<&str>,
    method: &str,
    path: &str,
    body: Value,
) -> (u16, Value) {
    let kind = match method {
        "PATCH" => "application/merge-patch+json",
        _ => "application/json",
    };
    let mut request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", kind);
    if let Some(user) = user {
        request = request.header("impersonate-user", user);
    }
    let body = match body {
        Value::Null => Vec::new(),
        body => body.to_string().into_bytes(),
    };
    let response = client
        .send(request.body(body.into()).unwrap())
        .await
        .unwrap();
    let code = response.status().as_u16();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (code, serde_json::from_slice(&bytes).unwrap_or_default())
}

/// Tries until a request is answered like this: rights and webhooks take effect after a while.
async fn until(
    client: &Client,
    user: Option<&str>,
    (method, path, body): (&str, &str, Value),
    expected: u16,
) -> Value {
    let polling = Polling {
        attempts: 600,
        interval: Duration::from_millis(50),
    };
    let what = format!("{method} {path} is answered by {expected}");
    let ask = async || {
        let (code, answer) = send(client, user, method, path, body.clone()).await;
        if code == expected {
            return Ok(answer);
        }
        Err(format!("{code} {answer}"))
    };
    polling.until(what, ask).await
}

/// Gives a user rules in the whole cluster.
async fn grant(client: &Client, name: &str, user: &str, rules: Value) {
    let group = "rbac.authorization.k8s.io";
    let root = format!("/apis/{group}/v1");
    let role = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRole", "metadata": {"name": name},
        "rules": rules,
    });
    let binding = json!({
        "apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding", "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": group, "kind": "User", "name": user}],
    });
    let (code, body) = send(client, None, "POST", &format!("{root}/clusterroles"), role).await;
    assert_eq!(code, 201, "{body}");
    let path = format!("{root}/clusterrolebindings");
    let (code, body) = send(client, None, "POST", &path, binding).await;
    assert_eq!(code, 201, "{body}");
}

/// The webhooks of a hub, and a clock that can be set.
struct Bed {
    client: Client,
    keeper: Keeper,
    /// A second process of the same hub, which shows no certificate.
    other: Keeper,
    /// How far the clock is ahead, in seconds.
    ahead: Arc<AtomicI64>,
}

/// The first authority is to be replaced two hours before the time of the machine. Until rotation the clock shows an hour before that, and
/// an hour after it then: certificates of either moment are good for the API server.
const FIRST_AUTHORITY: SignedDuration = SignedDuration::from_hours(-2);
const BEFORE_ROTATION: SignedDuration = SignedDuration::from_hours(-3);
const AFTER_ROTATION: SignedDuration = SignedDuration::from_hours(-1);

impl Bed {
    async fn start(client: Client) -> Self {
        for definition in bellwether_api::definitions() {
            let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
            let (code, body) = send(&client, None, "POST", path, definition).await;
            assert!(code == 201 || code == 409, "{body}");
        }
        for path in [CLUSTERS, WORKS] {
            until(&client, None, ("GET", path, Value::Null), 200).await;
        }
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let bound = listener.local_addr().unwrap();
        let first = FIRST_AUTHORITY - AUTHORITY_AGE;
        let ahead = Arc::new(AtomicI64::new(first.as_secs()));
        let (machine, shown) = (Clock::system(), ahead.clone());
        let clock = Clock::new(move || {
            machine.now() + SignedDuration::from_secs(shown.load(Ordering::Relaxed))
        });
        let options = Options {
            location: Location::Url(format!("https://{bound}")),
            secret: ("kube-system".into(), "bellwether-webhook".into()),
            client_authorities: None,
            admissions: vec![Arc::new(FleetAdmission), Arc::new(WorkAdmission)],
        };
        let registry = MetricsRegistry::default();
        let other = WebhookServer::new(
            client.clone(),
            clock.clone(),
            options.clone(),
            &MetricsRegistry::default(),
        );
        let other = Keeper::new(&other, clock.clone());
        let server = WebhookServer::new(client.clone(), clock.clone(), options, &registry);
        let keeper = Keeper::new(&server, clock);
        tokio::spawn(server.serve(listener));
        keeper.tidy(&client).await.unwrap();
        let bed = Self {
            client,
            keeper,
            other,
            ahead,
        };
        bed.set_clock(BEFORE_ROTATION);
        // The first certificate has grown old since.
        bed.keeper.tidy(&bed.client).await.unwrap();
        bed
    }

    fn set_clock(&self, ahead: SignedDuration) {
        self.ahead.store(ahead.as_secs(), Ordering::Relaxed);
    }

    /// The rules are in force: the probe is refused by the webhook, and not because it cannot be called.
    async fn is_in_force(&self) {
        let (code, refused) = send(&self.client, None, "POST", CLUSTERS, probe()).await;
        assert_eq!((code, &refused["message"]), (400, &json!(PROBE_REFUSED)));
    }
}

fn cluster(name: &str) -> Value {
    json!({
        "apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": name}, "spec": {"hubAcceptsClient": false},
    })
}

/// What a rule refuses, which shows that webhooks are in force.
fn probe() -> Value {
    let mut wrong = cluster("probe");
    wrong["spec"]["managedClusterClientConfigs"] = json!([{"url": "http://x"}]);
    wrong
}

/// What the probe is refused with, if the webhook was called.
const PROBE_REFUSED: &str = "admission webhook \"fleet.validate.bellwether.dev\" denied the request: url \
                             \"http://x\" is invalid in client configs";

/// Who accepts clusters, moves them, and names an executor; and what keeps these rules in force.
async fn rules_hold(client: Client) {
    let bed = Bed::start(client.clone()).await;
    let all = |group: &str, resource: &str| {
        // Not all: one of them is the right to name any executor.
        let verbs = ["create", "get", "list", "update", "patch"];
        json!({"apiGroups": [group], "resources": [resource], "verbs": verbs})
    };
    let ann = Some("ann");
    let rules = json!([
        all("cluster.open-cluster-management.io", "managedclusters"),
        all("work.open-cluster-management.io", "manifestworks"),
    ]);
    grant(&client, "ann", "ann", rules).await;
    let refused = until(&client, None, ("POST", CLUSTERS, probe()), 400).await;
    assert_eq!(refused["message"], PROBE_REFUSED);
    acceptance(&client, ann).await;
    executors(&client, ann).await;
    repairs(&bed).await;
    rotation(&bed).await;
}

async fn acceptance(client: &Client, ann: Option<&str>) {
    let made = until(client, ann, ("POST", CLUSTERS, cluster("c1")), 201).await;
    assert_eq!(made["metadata"]["labels"][SET], "default", "{made}");
    let c1 = &format!("{CLUSTERS}/c1");
    let accept = json!({"spec": {"hubAcceptsClient": true}});
    let (code, refused) = send(client, ann, "PATCH", c1, accept.clone()).await;
    assert_eq!(code, 403, "{refused}");
    assert_eq!(
        refused["message"],
        "admission webhook \"fleet.validate.bellwether.dev\" denied the request: not permitted to \
         accept the cluster: User \"ann\" cannot update resource \"managedclusters/accept\" in API \
         group \"register.open-cluster-management.io\" at the cluster scope"
    );
    let moved = json!({"metadata": {"labels": {SET: "prod"}}});
    let (code, refused) = send(client, ann, "PATCH", c1, moved.clone()).await;
    assert_eq!(code, 403, "{refused}");
    let rights = json!([
        {
            "apiGroups": ["register.open-cluster-management.io"],
            "resources": ["managedclusters/accept"], "verbs": ["update"],
        },
        {
            "apiGroups": ["cluster.open-cluster-management.io"],
            "resources": ["managedclustersets/join"], "verbs": ["create"],
        },
    ]);
    grant(client, "acceptor", "ann", rights).await;
    until(client, ann, ("PATCH", c1, accept), 200).await;
    until(client, ann, ("PATCH", c1, moved), 200).await;
}

async fn executors(client: &Client, ann: Option<&str>) {
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "c1"}});
    let (code, body) = send(client, None, "POST", "/api/v1/namespaces", namespace).await;
    assert_eq!(code, 201, "{body}");
    let work = json!({
        "apiVersion": "work.open-cluster-management.io/v1", "kind": "ManifestWork",
        "metadata": {"name": "w"},
        "spec": {
            "workload": {"manifests": [
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m", "namespace": "n"}},
            ]},
            "executor": {"subject": {
                "type": "ServiceAccount", "serviceAccount": {"namespace": "n", "name": "boss"},
            }},
        },
    });
    let refused = until(client, ann, ("POST", WORKS, work.clone()), 400).await;
    assert_eq!(
        refused["message"],
        "admission webhook \"work.validate.bellwether.dev\" denied the request: user ann cannot \
         manipulate the Manifestwork with executor n/boss in namespace c1"
    );
    let right = json!([{
        "apiGroups": ["work.open-cluster-management.io"], "resources": ["manifestworks"],
        "resourceNames": ["system:serviceaccount:n:boss"], "verbs": ["execute-as"],
    }]);
    grant(client, "executor", "ann", right).await;
    until(client, ann, ("POST", WORKS, work), 201).await;
}

/// A configuration that somebody changed or deleted is as it was.
async fn repairs(bed: &Bed) {
    let (_, before) = send(&bed.client, None, "GET", CONFIGURATION, Value::Null).await;
    let loosened = json!({"webhooks": []});
    let (code, body) = send(&bed.client, None, "PATCH", CONFIGURATION, loosened).await;
    assert_eq!(code, 200, "{body}");
    bed.keeper.tidy(&bed.client).await.unwrap();
    let (_, after) = send(&bed.client, None, "GET", CONFIGURATION, Value::Null).await;
    assert_eq!(after["webhooks"], before["webhooks"]);
    let (code, _) = send(&bed.client, None, "DELETE", CONFIGURATION, Value::Null).await;
    assert_eq!(code, 200);
    bed.keeper.tidy(&bed.client).await.unwrap();
    let (_, after) = send(&bed.client, None, "GET", CONFIGURATION, Value::Null).await;
    assert_eq!(after["webhooks"], before["webhooks"]);
    // Nothing is written where nothing has changed.
    bed.keeper.tidy(&bed.client).await.unwrap();
    let (_, still) = send(&bed.client, None, "GET", CONFIGURATION, Value::Null).await;
    assert_eq!(
        still["metadata"]["resourceVersion"],
        after["metadata"]["resourceVersion"]
    );
}

/// Another authority takes over, and rules are in force all the time.
async fn rotation(bed: &Bed) {
    let bundle =
        |configuration: &Value| configuration["webhooks"][0]["clientConfig"]["caBundle"].clone();
    let (_, before) = send(&bed.client, None, "GET", CONFIGURATION, Value::Null).await;
    bed.is_in_force().await;
    bed.set_clock(AFTER_ROTATION);
    // Another process leads. Its authority is trusted, and ours still shows a certificate of the one before.
    bed.other.tidy(&bed.client).await.unwrap();
    let (_, between) = send(&bed.client, None, "GET", CONFIGURATION, Value::Null).await;
    assert_ne!(bundle(&between), bundle(&before));
    bed.is_in_force().await;
    // Ours follows, when the API server has had time to read the new configuration.
    bed.keeper.tidy(&bed.client).await.unwrap();
    let (_, after) = send(&bed.client, None, "GET", CONFIGURATION, Value::Null).await;
    assert_eq!(bundle(&after), bundle(&between));
    let refused = until(&bed.client, None, ("POST", CLUSTERS, probe()), 400).await;
    assert_eq!(refused["message"], PROBE_REFUSED);
}

/// A keeper of an API server that refuses every connection, and answers no more after an unreasonable number of requests.
fn keeper_of_nothing(requests: Arc<AtomicUsize>) -> (Client, Keeper) {
    let refusing = tower::service_fn(move |_: http::Request<kube::client::Body>| {
        let count = requests.fetch_add(1, Ordering::Relaxed);
        async move {
            if count > 10_000 {
                std::future::pending::<()>().await;
            }
            let refused = std::io::Error::from(std::io::ErrorKind::ConnectionRefused);
            Err::<http::Response<kube::client::Body>, _>(refused)
        }
    });
    let client = Client::new(refusing, "default");
    let options = Options {
        location: Location::Url("https://127.0.0.1:1".to_owned()),
        secret: ("kube-system".into(), "bellwether-webhook".into()),
        client_authorities: None,
        admissions: vec![Arc::new(FleetAdmission)],
    };
    let clock = Clock::of_runtime("2026-01-01T00:00:00Z".parse().unwrap());
    let registry = MetricsRegistry::default();
    let server = WebhookServer::new(client.clone(), clock.clone(), options, &registry);
    (client, Keeper::new(&server, clock))
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_is_away_is_not_asked_all_the_time() {
    let requests = Arc::new(AtomicUsize::new(0));
    let (client, keeper) = keeper_of_nothing(Arc::clone(&requests));
    let minute = Duration::from_mins(1);
    let kept = tokio::time::timeout(minute, keeper.keep(&client)).await;
    assert!(kept.is_err(), "it goes on");
    // Every two seconds.
    let asked = requests.load(Ordering::Relaxed);
    assert!((20..=60).contains(&asked), "{asked} requests in a minute");
}

#[tokio::test]
async fn rules_hold_on_a_hub_that_calls_webhooks() {
    rules_hold(Embedded::start(Clock::system()).await.hub()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rules_hold_on_a_real_hub() {
    let assets = match Assets::find() {
        Ok(assets) => assets,
        Err(why) => {
            skip(why);
            return;
        }
    };
    let real = RealCluster::start(&assets).await.unwrap();
    rules_hold(real.client().await.unwrap()).await;
}
