//! No body makes the server panic: mutilated, deep, huge and merely odd ones are answered.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails"
)]
#![allow(clippy::needless_pass_by_value, reason = "bodies are written in place")]

use bellwether_apiserver::{ApiServer, Caller, Clock, HUB, Identity};
use bellwether_store::{Options, Store};
use bytes::Bytes;
use http::Request;
use http_body_util::Full;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

const PATHS: [(&str, &str); 10] = [
    ("POST", "/api/v1/namespaces/default/configmaps"),
    ("POST", "/api/v1/namespaces/default/pods"),
    ("POST", "/api/v1/namespaces/default/services"),
    ("POST", "/apis/apps/v1/namespaces/default/deployments"),
    ("POST", "/apis/batch/v1/namespaces/default/jobs"),
    (
        "POST",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    ),
    ("PUT", "/api/v1/namespaces/default"),
    ("PATCH", "/api/v1/namespaces/default"),
    ("PATCH", "/apis/apps/v1/namespaces/default/deployments/d"),
    ("DELETE", "/api/v1/namespaces/default/configmaps/x"),
];

const CONTENT_TYPES: [&str; 6] = [
    "application/json",
    "application/yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
];

const SEEDS: [&str; 7] = [
    r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x","labels":{"a":"b"}},"data":{"a":"1"}}"#,
    r#"{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"p-"},"spec":{"containers":[{"name":"c","image":"i","ports":[{"containerPort":80}],"env":[{"name":"A","value":"b"}]}]}}"#,
    r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}"#,
    r#"{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"j"},"spec":{"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"c","image":"i"}]}}}}"#,
    r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"ws.e.io"},"spec":{"group":"e.io","scope":"Namespaced","names":{"plural":"ws","kind":"W"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","x-kubernetes-validations":[{"rule":"self.a > 1"}],"properties":{"a":{"type":"integer","default":2}}}}}}}]}}"#,
    r#"[{"op":"add","path":"/metadata/labels","value":{"a":"b"}},{"op":"move","from":"/metadata/labels","path":"/metadata/annotations"}]"#,
    r#"{"spec":{"template":{"spec":{"$setElementOrder/containers":[{"name":"c"}],"containers":[{"$patch":"delete","name":"c"}]}}}}"#,
];

/// Replaces a piece of a seed by something that is, or is not, JSON.
fn mutilated() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just("null".to_owned()),
        Just("[]".to_owned()),
        Just("{}".to_owned()),
        Just("-1".to_owned()),
        Just("1e400".to_owned()),
        Just("99999999999999999999999".to_owned()),
        Just("\"\"".to_owned()),
        Just("[[[[{\"a\":[{}]}]]]]".to_owned()),
        any::<String>(),
        Just("[".repeat(600)),
        Just("{\"a\":".repeat(400)),
    ];
    (
        0..SEEDS.len(),
        any::<prop::sample::Index>(),
        0_usize..40,
        piece,
    )
        .prop_map(|(seed, at, length, piece)| {
            let seed = SEEDS[seed].as_bytes();
            let at = at.index(seed.len());
            let end = (at + length).min(seed.len());
            [&seed[..at], piece.as_bytes(), &seed[end..]].concat()
        })
}

#[test]
fn mutilated_bodies_are_answered() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let server = runtime.block_on(async {
        let server = ApiServer::new(Store::in_memory(Options::default()), Clock::system());
        server.add_cluster(HUB).await.unwrap();
        server
    });
    #[expect(
        clippy::disallowed_methods,
        reason = "how long to look for crashes is for the caller to say"
    )]
    let cases = std::env::var("BELLWETHER_FUZZ_CASES")
        .ok()
        .and_then(|n| n.parse().ok())
        .unwrap_or(2_000);
    let mut runner = TestRunner::new(Config {
        cases,
        failure_persistence: None,
        ..Config::default()
    });
    let strategy = (0..PATHS.len(), 0..CONTENT_TYPES.len(), mutilated());
    runner
        .run(&strategy, |(path, content_type, body)| {
            let (method, path) = PATHS[path];
            let caller = Caller {
                identity: Some(Identity::administrator("fuzz")),
                only_cluster: Some(HUB.into()),
                expires: None,
                address: None,
                in_process: true,
            };
            let request = Request::builder()
                .method(method)
                .uri(format!("{path}?fieldManager=fuzz"))
                .header("content-type", CONTENT_TYPES[content_type])
                .extension(caller)
                .body(Full::new(Bytes::from(body)))
                .unwrap();
            // A panic in the handler is a panic here.
            runtime.block_on(server.handle(request));
            Ok(())
        })
        .unwrap();
}
