//! Webhooks and policies that objects of a cluster configure: called, evaluated, and compared with a real
//! kube-apiserver where `KUBEBUILDER_ASSETS` points at one.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails"
)]
#![allow(clippy::needless_pass_by_value, reason = "bodies are written in place")]

use crate::common;

use std::time::Duration;

use bellwether_apiserver::HUB;
use common::contract::{Question, ask, both, compare, root};
use common::hook::{Hook, configuration};
use common::{TestServer, eventually};
use serde_json::{Value, json};
use tokio::time::Instant;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const REGISTRATION: &str = "/apis/admissionregistration.k8s.io/v1";

/// A ConfigMap that webhooks see.
fn map(name: &str, labels: Value) -> Value {
    let mut all = json!({"hooked": "yes"});
    for (key, value) in labels.as_object().into_iter().flatten() {
        all[key] = value.clone();
    }
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": all}})
}

async fn configure(client: &kube::Client, kind: &str, webhooks: &[Value]) {
    let path = format!(
        "{REGISTRATION}/{}webhookconfigurations",
        kind.to_lowercase()
    );
    let object = configuration(kind, "test", webhooks);
    let (code, _, body) = ask(client, &root("POST", path, object)).await;
    assert_eq!(code, 201, "{body}");
}

async fn create(client: &kube::Client, object: Value) -> (u16, Vec<String>, Value) {
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
fn all_webhooks(hook: &Hook) -> (Vec<Value>, Vec<Value>) {
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
fn about_webhooks() -> Vec<Question> {
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

/// A policy of a name, with validations and whatever else.
fn policy(name: &str, validations: Value, change: Value) -> Value {
    let mut spec = json!({
        "matchConstraints": {
            "resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
                "operations": ["CREATE", "UPDATE"],
            }],
            "objectSelector": {"matchLabels": {"policy": name}},
        },
        "validations": validations,
    });
    for (key, value) in change.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name}, "spec": spec,
    })
}

fn binding(name: &str, actions: Value, change: Value) -> Value {
    let mut spec = json!({"policyName": name, "validationActions": actions});
    for (key, value) in change.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name}, "spec": spec,
    })
}

/// Policies with their bindings.
fn policies() -> Vec<(Value, Value)> {
    let none = || json!({});
    let deny = || json!(["Deny"]);
    let small = json!([{
        "expression": "size(object.data) <= int(params.data.most)",
        "messageExpression": "'at most ' + params.data.most + ' of ' + string(size(object.data))",
        "reason": "Forbidden",
    }]);
    let params = json!({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}});
    let by_name = |name: &str| {
        json!({"paramRef": {
            "name": name, "namespace": "default", "parameterNotFoundAction": "Deny",
        }})
    };
    vec![
        (
            policy("plain", json!([{"expression": "has(object.data)"}]), none()),
            binding("plain", deny(), none()),
        ),
        (
            policy(
                "message",
                json!([
                    {"expression": "has(object.data)", "message": " data, please "},
                    {"expression": "false", "message": "second"},
                ]),
                none(),
            ),
            binding("message", deny(), none()),
        ),
        (
            policy(
                "warned",
                json!([{"expression": "has(object.data)"}]),
                none(),
            ),
            binding("warned", json!(["Warn", "Audit"]), none()),
        ),
        (
            policy(
                "failing",
                json!([{"expression": "object.data.a == 'b'"}]),
                none(),
            ),
            binding("failing", deny(), none()),
        ),
        (
            policy(
                "lenient",
                json!([{"expression": "object.data.a == 'b'"}]),
                json!({"failurePolicy": "Ignore"}),
            ),
            binding("lenient", deny(), none()),
        ),
        (
            policy(
                "variables",
                json!([{"expression": "variables.keys.all(key, key in variables.known)"}]),
                json!({
                    "variables": [
                        {"name": "keys", "expression": "object.data.map(key, key)"},
                        {"name": "known", "expression": "['a', 'b']"},
                    ],
                }),
            ),
            binding("variables", deny(), none()),
        ),
        (
            policy(
                "conditional",
                json!([{"expression": "false"}]),
                json!({
                    "matchConditions": [{
                        "name": "who", "expression": "request.operation == 'UPDATE' && oldObject != null",
                    }],
                }),
            ),
            binding("conditional", deny(), none()),
        ),
        (
            policy("params", small.clone(), params.clone()),
            binding("params", deny(), by_name("limits")),
        ),
        (
            policy("missing", small.clone(), params.clone()),
            binding("missing", deny(), by_name("absent")),
        ),
        (
            policy(
                "unknown",
                small,
                json!({
                    "paramKind": {"apiVersion": "example.com/v1", "kind": "Limit"},
                }),
            ),
            binding("unknown", deny(), by_name("limits")),
        ),
        (
            policy(
                "spaced",
                json!([
                    {"expression": "namespaceObject.metadata.name != 'default'"},
                ]),
                none(),
            ),
            binding("spaced", deny(), none()),
        ),
    ]
}

fn about_policies() -> Vec<Question> {
    let make = |policy: &str, data: Value| {
        let mut object = map(&format!("p-{policy}"), json!({"policy": policy}));
        object["metadata"]["labels"]["hooked"].take();
        object["metadata"]["labels"] = json!({"policy": policy});
        if !data.is_null() {
            object["data"] = data;
        }
        root("POST", format!("{MAPS}?dryRun=All"), object).showing(&["/metadata/labels", "/data"])
    };
    vec![
        make("plain", Value::Null),
        make("plain", json!({"a": "b"})),
        make("message", Value::Null),
        make("warned", Value::Null),
        make("failing", Value::Null),
        make("failing", json!({"a": "c"})),
        make("lenient", Value::Null),
        make("variables", json!({"a": "", "b": ""})),
        make("variables", json!({"a": "", "c": ""})),
        make("conditional", Value::Null),
        make("params", json!({"a": "1"})),
        make("params", json!({"a": "1", "b": "2", "c": "3"})),
        make("missing", Value::Null),
        make("unknown", Value::Null),
        make("spaced", Value::Null),
    ]
}

/// Policies that are refused when they are written.
fn about_broken_policies() -> Vec<Question> {
    let path = format!("{REGISTRATION}/validatingadmissionpolicies");
    let refused = |validation: Value| {
        root(
            "POST",
            path.clone(),
            policy("broken", json!([validation]), json!({})),
        )
    };
    vec![
        refused(json!({"expression": "object.metadata."})),
        refused(json!({"expression": "object.metadata.name"})),
        refused(json!({"expression": "absent == 1"})),
        refused(json!({"expression": "true", "messageExpression": "1"})),
        refused(json!({"expression": "request.nothing == ''"})),
    ]
}

async fn prepare_policies(client: &kube::Client) {
    let limits = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "limits"}, "data": {"most": "2"},
    });
    assert_eq!(create(client, limits).await.0, 201);
    for (policy, binding) in policies() {
        for (object, plural) in [
            (policy, "validatingadmissionpolicies"),
            (binding, "validatingadmissionpolicybindings"),
        ] {
            let path = format!("{REGISTRATION}/{plural}");
            let (code, _, body) = ask(client, &root("POST", path, object)).await;
            assert_eq!(code, 201, "{body}");
        }
    }
}

#[tokio::test]
async fn policies_refuse_and_warn() {
    let server = TestServer::start().await;
    let client = server.local(HUB);
    prepare_policies(&client).await;
    let mut answers = Vec::new();
    for question in about_policies() {
        let (code, warnings, body) = ask(&client, &question).await;
        answers.push((code, warnings, body["message"].clone()));
    }
    let codes: Vec<u16> = answers.iter().map(|(code, _, _)| *code).collect();
    assert_eq!(
        codes,
        [
            422, 201, 422, 201, 422, 422, 201, 201, 422, 201, 201, 403, 422, 422, 422
        ],
        "{answers:#?}"
    );
    assert_eq!(
        answers[2].2,
        "configmaps \"p-message\" is forbidden: ValidatingAdmissionPolicy 'message' with binding \
         'message' denied request: data, please"
    );
    let warning = "299 - \"Validation failed for ValidatingAdmissionPolicy 'warned' with binding \
                   'warned': failed expression: has(object.data)\"";
    assert_eq!(answers[3].1, [warning]);
    assert_eq!(
        answers[11].2,
        "configmaps \"p-params\" is forbidden: ValidatingAdmissionPolicy 'params' with binding \
         'params' denied request: at most 2 of 3"
    );
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

/// The reviews of one request with what differs from server to server blanked.
fn blanked(hook: &Hook) -> Vec<(String, Value)> {
    let mut asked = hook.asked();
    for (_, review) in &mut asked {
        let request = &mut review["request"];
        request["uid"] = "u".into();
        request["userInfo"] = Value::Null;
        for field in ["object", "oldObject"] {
            let metadata = request[field]["metadata"].as_object_mut();
            for (key, value) in metadata.into_iter().flatten() {
                if matches!(
                    key.as_str(),
                    "uid" | "resourceVersion" | "creationTimestamp"
                ) {
                    *value = "x".into();
                }
                if key == "managedFields" {
                    for entry in value.as_array_mut().into_iter().flatten() {
                        entry["time"] = "t".into();
                    }
                }
            }
        }
    }
    asked
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_api_server_does_the_same() {
    let Some((_real, theirs, _server, ours)) = both().await else {
        return;
    };
    let hook = Hook::start().await;
    let (mutating, validating) = all_webhooks(&hook);
    for client in [&theirs, &ours] {
        configure(client, "Mutating", &mutating).await;
        configure(client, "Validating", &validating).await;
        prepare_policies(client).await;
        // Configurations take effect at a real server after a while.
        let mut denied = root(
            "POST",
            format!("{MAPS}?dryRun=All"),
            map("probe", json!({"by": "deny"})),
        );
        answered(client, &denied, 403).await;
        denied = about_policies().remove(14);
        answered(client, &denied, 422).await;
    }
    let mut questions = about_webhooks();
    // Its message has the uid of the review.
    questions.retain(|question| question.body["metadata"]["name"] != "lie");
    let mut different = compare(&theirs, &ours, &questions).await;
    different.extend(compare(&theirs, &ours, &about_policies()).await);
    different.extend(compare(&theirs, &ours, &about_broken_policies()).await);
    different.extend(compare_reviews(&theirs, &ours, &hook).await);
    assert!(different.is_empty(), "{}", different.join("\n"));
}

/// Waits until a request is answered like this.
async fn answered(client: &kube::Client, question: &Question, expected: u16) {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let (code, _, body) = ask(client, question).await;
        if code == expected {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "{}: {code} {body}",
            question.path
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// What webhooks are sent, for each kind of request.
async fn compare_reviews(theirs: &kube::Client, ours: &kube::Client, hook: &Hook) -> Vec<String> {
    let mut generated = map("x", json!({"by": "count"}));
    generated["metadata"] = json!({"generateName": "gen-", "labels": {"by": "count"}});
    let questions = [
        root(
            "POST",
            format!("{MAPS}?fieldManager=me"),
            map("seen", json!({"by": "allow"})),
        ),
        root("POST", format!("{MAPS}?dryRun=All"), generated),
        root(
            "PATCH",
            format!("{MAPS}/seen?fieldValidation=Strict"),
            json!({"data": {"a": "b"}}),
        ),
        root(
            "PUT",
            format!("{MAPS}/seen"),
            map("seen", json!({"by": "allow"})),
        ),
        root(
            "DELETE",
            format!("{MAPS}/seen?gracePeriodSeconds=0"),
            Value::Null,
        ),
    ];
    let mut different = Vec::new();
    for question in &questions {
        hook.asked();
        ask(theirs, question).await;
        let expected = blanked(hook);
        ask(ours, question).await;
        let found = blanked(hook);
        if found != expected {
            different.push(format!(
                "{} {}\n  real {expected:?}\n  ours {found:?}",
                question.method, question.path
            ));
        }
    }
    different
}
