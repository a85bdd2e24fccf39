//! What a namespace makes of its pods: service accounts, limits, quotas, Pod Security; and how pods
//! are bound and deleted. The words are those of kube-apiserver.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails"
)]
#![allow(clippy::needless_pass_by_value, reason = "bodies are written in place")]

use crate::common;

use bellwether_apiserver::HUB;
use common::eventually;
use common::http::{Http, MERGE};
use serde_json::{Value, json};

const SPACE: &str = "/api/v1/namespaces/default";

fn pods() -> String {
    format!("{SPACE}/pods")
}

fn pod(name: &str, resources: Value) -> Value {
    json!({"metadata": {"name": name}, "spec": {
        "containers": [{"name": "a", "image": "x", "resources": resources}],
    }})
}

async fn post(http: &Http, path: &str, body: Value) -> (u16, Value) {
    http.send("POST", path, "application/json", body).await
}

/// Expects a refusal in these words.
#[track_caller]
fn refused(answer: (u16, Value), code: u16, message: &str) {
    assert_eq!(answer.1["message"], message);
    assert_eq!(answer.0, code);
}

#[tokio::test]
async fn pods_run_as_their_service_account() {
    let http = Http::start().await;
    let plain = http.ok("POST", &pods(), pod("plain", json!({}))).await;
    assert_eq!(
        plain["spec"]["serviceAccountName"],
        Value::Null,
        "nobody keeps accounts here"
    );
    http.server.cluster(HUB).unwrap().keep_accounts();
    refused(
        post(&http, &pods(), pod("a", json!({}))).await,
        403,
        "pods \"a\" is forbidden: error looking up service account default/default: serviceaccount \"default\" not found",
    );
    // One that comes a little later is waited for.
    let accounts = format!("{SPACE}/serviceaccounts");
    let account = json!({"metadata": {"name": "default"}, "imagePullSecrets": [{"name": "s"}]});
    let path = pods();
    let (created, _) = tokio::join!(
        post(&http, &path, pod("a", json!({}))),
        http.ok("POST", &accounts, account)
    );
    assert_eq!(created.0, 201, "{}", created.1);
    let spec = &created.1["spec"];
    assert_eq!(spec["serviceAccountName"], "default");
    assert_eq!(spec["imagePullSecrets"], json!([{"name": "s"}]));
    let volume = spec["volumes"][0]["name"].as_str().unwrap();
    assert!(
        volume.starts_with("kube-api-access-") && volume.len() == 21,
        "{volume}"
    );
    assert_eq!(spec["containers"][0]["volumeMounts"][0]["name"], volume);
    let owned = created.1["metadata"]["managedFields"].to_string();
    assert!(
        !owned.contains("volumes"),
        "nobody owns what admission adds: {owned}"
    );

    let mut silent = pod("silent", json!({}));
    silent["spec"]["automountServiceAccountToken"] = false.into();
    let silent = http.ok("POST", &pods(), silent).await;
    assert_eq!(silent["spec"]["volumes"], Value::Null);
    let mut other = pod("other", json!({}));
    other["spec"]["serviceAccountName"] = "absent".into();
    refused(
        post(&http, &pods(), other).await,
        403,
        "pods \"other\" is forbidden: error looking up service account default/absent: serviceaccount \"absent\" not found",
    );
}

#[tokio::test]
async fn limit_ranges_complete_and_bound_pods() {
    let http = Http::start().await;
    let range = json!({"metadata": {"name": "l"}, "spec": {"limits": [
        {"type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "100m"}, "max": {"cpu": "1"}},
        {"type": "Pod", "max": {"cpu": "1500m"}},
        {"type": "PersistentVolumeClaim", "max": {"storage": "5Gi"}},
    ]}});
    http.ok("POST", &format!("{SPACE}/limitranges"), range)
        .await;
    let made = http.ok("POST", &pods(), pod("a", json!({}))).await;
    assert_eq!(
        made["spec"]["containers"][0]["resources"],
        json!({"limits": {"cpu": "500m"}, "requests": {"cpu": "100m"}})
    );
    assert_eq!(
        made["metadata"]["annotations"]["kubernetes.io/limit-ranger"],
        "LimitRanger plugin set: cpu request for container a; cpu limit for container a"
    );
    assert_eq!(made["status"]["qosClass"], "Burstable");
    refused(
        post(&http, &pods(), pod("m", json!({"limits": {"cpu": "2"}}))).await,
        403,
        "pods \"m\" is forbidden: [maximum cpu usage per Container is 1, but limit is 2, maximum cpu usage per Pod is 1500m, but limit is 2]",
    );
    let claim = json!({"metadata": {"name": "c"}, "spec": {
        "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}},
    }});
    refused(
        post(&http, &format!("{SPACE}/persistentvolumeclaims"), claim).await,
        403,
        "persistentvolumeclaims \"c\" is forbidden: maximum storage usage per PersistentVolumeClaim is 5Gi, but request is 10Gi",
    );
    // What is wrong in itself is said first.
    let (code, _) = post(&http, &pods(), pod("Bad", json!({"limits": {"cpu": "2"}}))).await;
    assert_eq!(code, 422);
}

async fn used(http: &Http, name: &str) -> Value {
    let path = format!("{SPACE}/resourcequotas/q");
    http.ok("GET", &path, Value::Null).await["status"]["used"][name].clone()
}

#[tokio::test]
async fn quotas_count_what_is_there_and_refuse_the_rest() {
    let http = Http::start().await;
    let maps = format!("{SPACE}/configmaps");
    http.ok("POST", &maps, json!({"metadata": {"name": "before"}}))
        .await;
    let hard = json!({
        "requests.cpu": "1", "pods": "2", "count/configmaps": "2", "services.nodeports": "0",
    });
    let quotas = format!("{SPACE}/resourcequotas");
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": hard}});
    http.ok("POST", &quotas, quota).await;
    let live = http.ok("GET", &format!("{quotas}/q"), Value::Null).await;
    assert_eq!(live["status"]["hard"], hard);
    assert_eq!(
        live["status"]["used"],
        json!({"count/configmaps": "1", "pods": "0", "requests.cpu": "0", "services.nodeports": "0"})
    );

    refused(
        post(&http, &pods(), pod("a", json!({}))).await,
        403,
        "pods \"a\" is forbidden: failed quota: q: must specify requests.cpu for: a",
    );
    let cpu = || json!({"requests": {"cpu": "600m"}});
    http.ok("POST", &pods(), pod("a", cpu())).await;
    assert_eq!(used(&http, "requests.cpu").await, "600m");
    for path in [pods(), format!("{}?dryRun=All", pods())] {
        refused(
            post(&http, &path, pod("b", cpu())).await,
            403,
            "pods \"b\" is forbidden: exceeded quota: q, requested: requests.cpu=600m, used: requests.cpu=600m, limited: requests.cpu=1",
        );
    }
    // What is refused for another reason takes nothing.
    let small = || json!({"requests": {"cpu": "100m"}});
    assert_eq!(post(&http, &pods(), pod("a", small())).await.0, 409);
    assert_eq!(used(&http, "requests.cpu").await, "600m");
    assert_eq!(used(&http, "pods").await, "1");
    http.ok("POST", &format!("{}?dryRun=All", pods()), pod("b", small()))
        .await;
    assert_eq!(used(&http, "pods").await, "1");

    let services = format!("{SPACE}/services");
    let service = json!({"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}]}});
    http.ok("POST", &services, service).await;
    let (code, answer) = http
        .send(
            "PATCH",
            &format!("{services}/s"),
            MERGE,
            json!({"spec": {"type": "NodePort"}}),
        )
        .await;
    refused(
        (code, answer),
        403,
        "services \"s\" is forbidden: exceeded quota: q, requested: services.nodeports=1, used: services.nodeports=0, limited: services.nodeports=0",
    );

    // What goes or ends makes room.
    let ended = json!({"status": {"phase": "Succeeded"}});
    http.patch(MERGE, &format!("{}/a/status", pods()), ended)
        .await;
    eventually("room for another pod", || async {
        (used(&http, "pods").await == "0").then_some(())
    })
    .await;
    http.ok("POST", &pods(), pod("b", cpu())).await;
    http.ok("DELETE", &format!("{}/b", pods()), Value::Null)
        .await;
    eventually("its end", || async {
        (used(&http, "requests.cpu").await == "0").then_some(())
    })
    .await;
}

/// However many create at the same time, no more than the quota allows come into being.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_quota_holds_against_a_crowd() {
    let http = std::sync::Arc::new(Http::start().await);
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"count/configmaps": "5"}}});
    http.ok("POST", &format!("{SPACE}/resourcequotas"), quota)
        .await;
    let crowd: Vec<_> = (0..20)
        .map(|number| {
            let http = http.clone();
            tokio::spawn(async move {
                let map = json!({"metadata": {"name": format!("map-{number}")}});
                post(&http, &format!("{SPACE}/configmaps"), map).await.0
            })
        })
        .collect();
    let mut created = 0;
    for one in crowd {
        match one.await.unwrap() {
            201 => created += 1,
            code => assert_eq!(code, 403),
        }
    }
    assert_eq!(created, 5);
    assert_eq!(used(&http, "count/configmaps").await, "5");
}

/// The warnings of an answer.
fn warnings(response: &http::Response<bellwether_apiserver::Body>) -> Vec<String> {
    let headers = response.headers().get_all("warning").iter();
    headers
        .map(|value| value.to_str().unwrap().to_owned())
        .collect()
}

#[tokio::test]
async fn namespaces_choose_how_secure_their_pods_are() {
    let http = Http::start().await;
    let label = |level: &str| json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": level}}});
    http.ok("POST", &pods(), pod("old", json!({}))).await;
    http.ok("POST", &pods(), pod("older", json!({}))).await;
    let (code, answer) = http.send("PATCH", SPACE, MERGE, label("strict")).await;
    refused(
        (code, answer),
        422,
        "Namespace \"default\" is invalid: metadata.labels[pod-security.kubernetes.io/enforce]: Invalid value: \"strict\": must be one of privileged, baseline, restricted",
    );
    let body = label("restricted").to_string().into();
    let changed = http.respond_to_bytes("PATCH", SPACE, MERGE, body).await;
    assert_eq!(changed.status(), 200);
    assert_eq!(
        warnings(&changed),
        [
            "299 - \"existing pods in namespace \\\"default\\\" violate the new PodSecurity enforce level \\\"restricted:latest\\\"\"",
            "299 - \"old (and 1 other pod): allowPrivilegeEscalation != false, unrestricted capabilities, runAsNonRoot != true, seccompProfile\"",
        ]
    );
    refused(
        post(&http, &pods(), pod("new", json!({}))).await,
        403,
        "pods \"new\" is forbidden: violates PodSecurity \"restricted:latest\": allowPrivilegeEscalation != false (container \"a\" must set securityContext.allowPrivilegeEscalation=false), unrestricted capabilities (container \"a\" must set securityContext.capabilities.drop=[\"ALL\"]), runAsNonRoot != true (pod or container \"a\" must set securityContext.runAsNonRoot=true), seccompProfile (pod or container \"a\" must set securityContext.seccompProfile.type to \"RuntimeDefault\" or \"Localhost\")",
    );
    // Workloads are accepted with a warning; pods that are there can still be changed.
    let deployment = json!({"metadata": {"name": "d"}, "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {
            "hostPID": true, "containers": [{"name": "a", "image": "x"}],
        }},
    }});
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let body = deployment.to_string().into();
    let made = http
        .respond_to_bytes("POST", path, "application/json", body)
        .await;
    assert_eq!(made.status(), 201);
    let warning = warnings(&made).concat();
    assert!(
        warning.starts_with("299 - \"would violate PodSecurity \\\"restricted:latest\\\": host namespaces (hostPID=true), "),
        "{warning}"
    );
    let labels = json!({"metadata": {"labels": {"a": "b"}}});
    http.patch(MERGE, &format!("{}/old", pods()), labels).await;
}

#[tokio::test]
async fn the_example_bounds_what_a_team_may_do() {
    let http = Http::start().await;
    let rules = include_str!("../../../../examples/access/limits.yaml");
    for rule in bellwether_json::yaml::from_yaml(rules).unwrap() {
        let path = match rule["kind"].as_str().unwrap() {
            "Namespace" => "/api/v1/namespaces".to_owned(),
            kind => format!("/api/v1/namespaces/team/{}s", kind.to_lowercase()),
        };
        http.ok("POST", &path, rule).await;
    }
    let pods = "/api/v1/namespaces/team/pods";
    for name in ["a", "b"] {
        let made = http.ok("POST", pods, pod(name, json!({}))).await;
        assert_eq!(
            made["spec"]["containers"][0]["resources"]["requests"]["cpu"],
            "50m"
        );
    }
    refused(
        post(&http, pods, pod("c", json!({}))).await,
        403,
        "pods \"c\" is forbidden: exceeded quota: team, requested: pods=1, used: pods=2, limited: pods=2",
    );
    let mut host = pod("d", json!({}));
    host["spec"]["hostNetwork"] = true.into();
    refused(
        post(&http, pods, host).await,
        403,
        "pods \"d\" is forbidden: violates PodSecurity \"baseline:latest\": host namespaces (hostNetwork=true)",
    );
}

#[tokio::test]
async fn bound_pods_end_gracefully() {
    let http = Http::start().await;
    let path = format!("{}/a", pods());
    let times = |pod: &Value| {
        let metadata = &pod["metadata"];
        (
            metadata["generation"].as_i64(),
            metadata["deletionGracePeriodSeconds"].as_i64(),
        )
    };
    let made = http.ok("POST", &pods(), pod("a", json!({}))).await;
    assert_eq!(times(&made), (Some(1), None));
    // Nothing runs on no node: it goes at once, and shows that it went.
    let gone = http.ok("DELETE", &path, Value::Null).await;
    assert_eq!(times(&gone), (Some(2), Some(0)));

    http.ok("POST", &pods(), pod("a", json!({}))).await;
    let bind = |name: &str, node: &str| {
        let body = json!({"metadata": {"name": name}, "target": {"kind": "Node", "name": node}});
        let path = format!("{path}/binding");
        let http = &http;
        async move { post(http, &path, body).await }
    };
    refused(
        bind("b", "n").await,
        400,
        "name in URL does not match name in Binding object",
    );
    assert_eq!(bind("a", "n").await.0, 201);
    refused(
        bind("a", "n").await,
        409,
        "Operation cannot be fulfilled on pods/binding \"a\": pod a is already assigned to node \"n\"",
    );
    let deadline = json!({"spec": {"activeDeadlineSeconds": 100}});
    let changed = http.patch(MERGE, &path, deadline).await;
    assert_eq!(
        times(&changed),
        (Some(2), None),
        "binding counts as no change"
    );
    let delete = |grace: Value| http.send("DELETE", &path, "application/json", grace);
    for (options, grace) in [
        (Value::Null, 30),
        (json!({"gracePeriodSeconds": 60}), 30),
        (json!({"gracePeriodSeconds": 5}), 5),
        (json!({"gracePeriodSeconds": -1}), 1),
    ] {
        let (code, going) = delete(options.clone()).await;
        assert_eq!(
            (code, times(&going)),
            (200, (Some(3), Some(grace))),
            "{options}"
        );
    }
    let (_, gone) = delete(json!({"gracePeriodSeconds": 0})).await;
    assert_eq!(times(&gone), (Some(3), Some(0)));
    assert_eq!(http.send("GET", &path, "", Value::Null).await.0, 404);
}
