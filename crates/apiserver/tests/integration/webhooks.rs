//! Webhooks that objects of a cluster configure.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails"
)]
#![allow(clippy::needless_pass_by_value, reason = "bodies are written in place")]

use crate::common;

use std::time::Duration;

use bellwether_apiserver::HUB;
use common::contract::{Question, ask, root};
use common::hook::{Hook, configuration};
use common::{TestServer, eventually};
use serde_json::{Value, json};
use tokio::time::Instant;

pub(crate) const MAPS: &str = "/api/v1/namespaces/default/configmaps";
pub(crate) const REGISTRATION: &str = "/apis/admissionregistration.k8s.io/v1";

/// A ConfigMap that webhooks see.
pub(crate) fn map(name: &str, labels: Value) -> Value {
    let mut all = json!({"hooked": "yes"});
    for (key, value) in labels.as_object().into_iter().flatten() {
        all[key] = value.clone();
    }
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": all}})
}

pub(crate) async fn configure(client: &kube::Client, kind: &str, webhooks: &[Value]) {
    let path = format!(
        "{REGISTRATION}/{}webhookconfigurations",
        kind.to_lowercase()
    );
    let object = configuration(kind, "test", webhooks);
    let (code, _, body) = ask(client, &root("POST", path, object)).await;
    assert_eq!(code, 201, "{body}");
}

pub(crate) async fn create(client: &kube::Client, object: Value) -> (u16, Vec<String>, Value) {
    ask(client, &root("POST", MAPS, object)).await
}

/// A server, a client and a webhook.
async fn start() -> (TestServer, kube::Client, Hook) {
    let server = TestServer::start().await;
    let client = server.local(HUB);
    (server, client, Hook::start().await)
}

#[tokio::test]
async fn a_mutating_webhook_changes_an_object_before_it_is_stored() {
    let (server, client, hook) = start().await;
    let webhooks = [
        hook.webhook(
            "count.example.com",
            "/count",
            &json!({"reinvocationPolicy": "IfNeeded"}),
        ),
        hook.webhook("label.example.com", "/label", &json!({})),
    ];
    configure(&client, "Mutating", &webhooks).await;
    let (code, _, body) = create(&client, map("a", json!({}))).await;
    assert_eq!(code, 201, "{body}");
    assert_eq!(body["metadata"]["labels"]["mutated"], "yes");
    // The first one was called again, because the second had changed something.
    assert_eq!(body["metadata"]["annotations"]["count"], "2");
    let asked: Vec<String> = hook.asked().into_iter().map(|(path, _)| path).collect();
    assert_eq!(asked, ["/count", "/label", "/count"]);
    // Objects that nobody selects, and other clusters, are not shown.
    let plain = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}});
    assert_eq!(create(&client, plain).await.0, 201);
    assert_eq!(
        create(&server.local("cluster1"), map("a", json!({})))
            .await
            .0,
        201
    );
    assert!(hook.asked().is_empty());
}

#[tokio::test]
async fn what_a_webhook_makes_of_an_object_is_validated() {
    let (_server, client, hook) = start().await;
    configure(
        &client,
        "Mutating",
        &[hook.webhook("a.example.com", "/break", &json!({}))],
    )
    .await;
    let (code, _, body) = create(&client, map("a", json!({}))).await;
    assert_eq!(code, 500, "{body}");
}

#[tokio::test]
async fn a_webhook_that_hangs_holds_up_only_what_it_is_about() {
    let (_server, client, hook) = start().await;
    let hangs = hook.webhook("hang.example.com", "/hang", &json!({"timeoutSeconds": 2}));
    configure(&client, "Validating", &[hangs]).await;
    let slow: Vec<_> = (0..20)
        .map(|number| {
            let client = client.clone();
            tokio::spawn(
                async move { create(&client, map(&format!("a{number}"), json!({}))).await },
            )
        })
        .collect();
    eventually("a call", || async {
        (!hook.asked().is_empty()).then_some(())
    })
    .await;
    let begun = Instant::now();
    let plain = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "b"}});
    assert_eq!(create(&client, plain).await.0, 201);
    assert!(
        begun.elapsed() < Duration::from_secs(1),
        "{:?}",
        begun.elapsed()
    );
    for call in slow {
        let (code, _, body) = call.await.unwrap();
        assert_eq!(code, 500, "{body}");
        let message = body["message"].as_str().unwrap();
        assert!(
            message.ends_with("?timeout=2s\": context deadline exceeded"),
            "{message}"
        );
    }
}

#[tokio::test]
async fn a_webhook_that_leads_back_to_the_server_comes_to_an_end() {
    let (server, client, hook) = start().await;
    let mut itself = hook.webhook("self.example.com", "/", &json!({}));
    let authority = hook_authority(&server);
    itself["clientConfig"] = json!({
        "url": format!("{}/clusters/{HUB}{MAPS}", server.address), "caBundle": authority,
    });
    configure(&client, "Validating", &[itself]).await;
    let (code, _, body) = create(&client, map("a", json!({}))).await;
    // Nothing that proves who we are is sent along: the server meets a stranger.
    assert_eq!(code, 500, "{body}");
    let message = body["message"].as_str().unwrap();
    assert!(message.contains("system:anonymous"), "{message}");
}

fn hook_authority(server: &TestServer) -> String {
    use base64::Engine as _;
    let certificate = &server.authority.credentials().certificate;
    base64::engine::general_purpose::STANDARD.encode(certificate)
}

#[tokio::test]
async fn a_service_is_found_by_its_endpoints() {
    let (_server, client, hook) = start().await;
    let mut webhook = hook.webhook("a.example.com", "/label", &json!({}));
    let bundle = webhook["clientConfig"]["caBundle"].clone();
    webhook["clientConfig"] = json!({
        "service": {"namespace": "default", "name": "hook", "path": "/label"}, "caBundle": bundle,
    });
    configure(&client, "Mutating", &[webhook]).await;
    let refused = |body: &Value| body["message"].as_str().unwrap_or_default().to_owned();
    let (_, _, body) = create(&client, map("a", json!({}))).await;
    let message = refused(&body);
    assert!(message.ends_with("service \"hook\" not found"), "{message}");
    let service = json!({
        "apiVersion": "v1", "kind": "Service", "metadata": {"name": "hook"},
        "spec": {"ports": [{"port": 443}]},
    });
    let path = "/api/v1/namespaces/default/services";
    assert_eq!(ask(&client, &root("POST", path, service)).await.0, 201);
    let (_, _, body) = create(&client, map("a", json!({}))).await;
    let message = refused(&body);
    assert!(
        message.ends_with("no endpoints available for service \"hook\""),
        "{message}"
    );
    let port: u16 = hook.address.rsplit_once(':').unwrap().1.parse().unwrap();
    let endpoints = json!({
        "apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "hook"},
        "subsets": [{"addresses": [{"ip": "127.0.0.1"}], "ports": [{"port": port}]}],
    });
    let path = "/api/v1/namespaces/default/endpoints";
    let (code, _, body) = ask(&client, &root("POST", path, endpoints)).await;
    // Kubernetes allows no endpoints on this machine itself; the object is as if somebody had.
    if code == 201 {
        let (code, _, body) = create(&client, map("a", json!({}))).await;
        assert_eq!(code, 201, "{body}");
        assert_eq!(body["metadata"]["labels"]["mutated"], "yes");
    } else {
        assert!(refused(&body).contains("loopback"), "{body}");
    }
}

/// Webhooks that answer in every way, each for the objects that name it.
pub(crate) fn all_webhooks(hook: &Hook) -> (Vec<Value>, Vec<Value>) {
    let named = |path: &str, change: Value| {
        let mut webhook =
            hook.webhook(&format!("{path}.example.com"), &format!("/{path}"), &change);
        if webhook["objectSelector"]["matchExpressions"][0]["key"] == "hooked" {
            webhook["objectSelector"] = json!({"matchLabels": {"by": path}});
        }
        webhook
    };
    let deleted = json!([{
        "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
        "operations": ["DELETE"],
    }]);
    let condition = |expression: &str| json!([{"name": "c", "expression": expression}]);
    let validating = vec![
        named("deny", json!({})),
        named("deny-silently", json!({})),
        named("warn", json!({})),
        named("lie", json!({})),
        named("fail", json!({})),
        named("hang", json!({"timeoutSeconds": 1})),
        named("allow", json!({})),
        {
            let mut ignored = named("fail", json!({"failurePolicy": "Ignore"}));
            ignored["name"] = "ignored.example.com".into();
            ignored["objectSelector"] = json!({"matchLabels": {"by": "ignored"}});
            ignored
        },
        {
            let mut gone = named("gone", json!({}));
            gone["clientConfig"] = json!({"url": "https://127.0.0.1:1/x"});
            gone
        },
        {
            let mut deletion = named("deny", json!({"rules": deleted}));
            deletion["name"] = "deletion.example.com".into();
            deletion["objectSelector"] = json!({"matchLabels": {"by": "deletion"}});
            deletion
        },
        {
            let expression = "object.metadata.name != 'let-through'";
            let mut chosen = named("deny", json!({"matchConditions": condition(expression)}));
            chosen["name"] = "chosen.example.com".into();
            chosen["objectSelector"] = json!({"matchLabels": {"by": "chosen"}});
            chosen
        },
        {
            let expression = "object.data.absent == 'x'";
            let mut failing = named("deny", json!({"matchConditions": condition(expression)}));
            failing["name"] = "failing.example.com".into();
            failing["objectSelector"] = json!({"matchLabels": {"by": "failing"}});
            failing
        },
        {
            let selector = json!({"matchLabels": {"env": "prod"}});
            let mut spaced = named("deny", json!({"namespaceSelector": selector}));
            spaced["name"] = "spaced.example.com".into();
            spaced["objectSelector"] = json!({"matchLabels": {"by": "spaced"}});
            spaced
        },
    ];
    let mutating = vec![
        named("count", json!({"reinvocationPolicy": "IfNeeded"})),
        named("label", json!({})),
        {
            let mut both = named("label", json!({}));
            both["name"] = "second.example.com".into();
            both["objectSelector"] = json!({"matchLabels": {"by": "count"}});
            both
        },
        named("break", json!({})),
    ];
    (mutating, validating)
}

/// Requests that meet all of them.
pub(crate) fn about_webhooks() -> Vec<Question> {
    let make = |name: &str, by: &str| root("POST", MAPS, map(name, json!({"by": by})));
    let shown = ["/metadata/labels", "/metadata/annotations", "/data"];
    let dry = |name: &str, by: &str| {
        let path = format!("{MAPS}?dryRun=All");
        root("POST", path, map(name, json!({"by": by})))
    };
    let mut generated = map("x", json!({"by": "deny"}));
    generated["metadata"] = json!({"generateName": "gen-", "labels": {"by": "deny"}});
    let prod = "/api/v1/namespaces/prod/configmaps";
    vec![
        make("deny", "deny"),
        root("POST", MAPS, generated),
        make("silent", "deny-silently"),
        make("warn", "warn").showing(&shown),
        make("lie", "lie"),
        make("fail", "fail"),
        make("hang", "hang"),
        make("gone", "gone"),
        make("ignored", "ignored").showing(&shown),
        make("allow", "allow").showing(&shown),
        dry("dry", "deny"),
        dry("dry", "allow").showing(&shown),
        make("deletion", "deletion").showing(&shown),
        root("DELETE", format!("{MAPS}/deletion"), Value::Null),
        root(
            "PATCH",
            format!("{MAPS}/deletion"),
            json!({"data": {"a": "b"}}),
        )
        .showing(&shown),
        make("chosen", "chosen"),
        make("let-through", "chosen").showing(&shown),
        make("failing", "failing"),
        make("spaced", "spaced").showing(&shown),
        root(
            "POST",
            "/api/v1/namespaces",
            json!({
                "apiVersion": "v1", "kind": "Namespace",
                "metadata": {"name": "prod", "labels": {"env": "prod"}},
            }),
        )
        .showing(&["/metadata/labels/env"]),
        root("POST", prod, map("spaced", json!({"by": "spaced"}))),
        make("count", "count").showing(&shown),
        make("label", "label").showing(&shown),
        root(
            "PATCH",
            format!("{MAPS}/label"),
            json!({"metadata": {"labels": {"mutated": null}}}),
        )
        .showing(&shown),
        make("break", "break"),
    ]
}

#[tokio::test]
async fn webhooks_answer_in_every_way() {
    let (_server, client, hook) = start().await;
    let (mutating, validating) = all_webhooks(&hook);
    configure(&client, "Mutating", &mutating).await;
    configure(&client, "Validating", &validating).await;
    let mut codes = Vec::new();
    for question in about_webhooks() {
        let (code, _, body) = ask(&client, &question).await;
        codes.push((code, body["message"].clone()));
    }
    let found: Vec<u16> = codes.iter().map(|(code, _)| *code).collect();
    assert_eq!(
        found,
        [
            403, 403, 400, 201, 500, 500, 500, 500, 201, 201, 403, 201, 201, 403, 200, 403, 201,
            403, 201, 201, 403, 201, 201, 200, 500
        ],
        "{codes:#?}"
    );
    let denied = "admission webhook \"deny.example.com\" denied the request: no sheep today";
    assert_eq!(codes[0].1, denied);
}
