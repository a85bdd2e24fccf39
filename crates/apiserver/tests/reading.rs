//! Lists and watches: pages of one revision, history and its end, and what a selector makes of changes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails"
)]
#![allow(clippy::needless_pass_by_value, reason = "bodies are written in place")]

mod common;

use bellwether_apiserver::{Caller, HUB, Identity};
use bellwether_store::Options;
use common::http::{Http, MERGE};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn create(http: &Http, name: &str, labels: Value) -> Value {
    http.ok(
        "POST",
        MAPS,
        json!({"metadata": {"name": name, "labels": labels}}),
    )
    .await
}

fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().unwrap().iter();
    items
        .map(|item| item["metadata"]["name"].as_str().unwrap())
        .collect()
}

#[tokio::test]
async fn pages_show_one_revision_whatever_happens_in_between() {
    let http = Http::start().await;
    for name in ["a", "b", "c", "d", "e"] {
        create(&http, name, json!({})).await;
    }
    let first = http
        .ok("GET", &format!("{MAPS}?limit=2"), Value::Null)
        .await;
    assert_eq!(names(&first), ["a", "b"]);
    assert_eq!(first["metadata"]["remainingItemCount"], 3);
    http.ok("DELETE", &format!("{MAPS}/c"), Value::Null).await;
    create(&http, "cc", json!({})).await;
    let token = first["metadata"]["continue"].as_str().unwrap();
    let second = http
        .ok(
            "GET",
            &format!("{MAPS}?limit=2&continue={token}"),
            Value::Null,
        )
        .await;
    assert_eq!(names(&second), ["c", "d"]);
    assert_eq!(
        second["metadata"]["resourceVersion"],
        first["metadata"]["resourceVersion"]
    );
    let exact = first["metadata"]["resourceVersion"].as_str().unwrap();
    let path = format!("{MAPS}?resourceVersion={exact}&resourceVersionMatch=Exact");
    assert_eq!(
        names(&http.ok("GET", &path, Value::Null).await),
        ["a", "b", "c", "d", "e"]
    );
    assert_eq!(
        names(&http.ok("GET", MAPS, Value::Null).await),
        ["a", "b", "cc", "d", "e"]
    );
}

#[tokio::test]
async fn what_the_history_has_forgotten_is_gone() {
    let options = Options {
        history_events: 3,
        ..Options::default()
    };
    let http = Http::start_with(options).await;
    for name in ["a", "b", "c"] {
        create(&http, name, json!({})).await;
    }
    let first = http
        .ok("GET", &format!("{MAPS}?limit=1"), Value::Null)
        .await;
    for value in 0..10 {
        http.patch(
            MERGE,
            &format!("{MAPS}/a"),
            json!({"data": {"k": value.to_string()}}),
        )
        .await;
    }
    let token = first["metadata"]["continue"].as_str().unwrap();
    let (code, expired) = http
        .send(
            "GET",
            &format!("{MAPS}?limit=1&continue={token}"),
            "",
            Value::Null,
        )
        .await;
    assert_eq!((code, &expired["reason"]), (410, &json!("Expired")));
    // With the token of the answer a client may go on, knowing that it is inconsistent.
    let token = expired["metadata"]["continue"].as_str().unwrap();
    let rest = http
        .ok("GET", &format!("{MAPS}?continue={token}"), Value::Null)
        .await;
    assert_eq!(names(&rest), ["b", "c"]);
    let events = http
        .watch(&format!(
            "{MAPS}?watch=1&resourceVersion=1&timeoutSeconds=1"
        ))
        .await;
    assert_eq!(
        (events[0].0.as_str(), &events[0].1["code"]),
        ("ERROR", &json!(410))
    );
}

#[tokio::test]
async fn a_watch_resumes_without_gap_or_repetition() {
    let http = Http::start().await;
    let created = create(&http, "a", json!({})).await;
    let since = created["metadata"]["resourceVersion"]
        .as_str()
        .unwrap()
        .to_owned();
    http.patch(MERGE, &format!("{MAPS}/a"), json!({"data": {"k": "1"}}))
        .await;
    http.ok("DELETE", &format!("{MAPS}/a"), Value::Null).await;
    let events = http
        .watch(&format!(
            "{MAPS}?watch=1&resourceVersion={since}&timeoutSeconds=1"
        ))
        .await;
    let kinds: Vec<&str> = events.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(kinds, ["MODIFIED", "DELETED"]);
    let revisions: Vec<u64> = events
        .iter()
        .map(|(_, object)| {
            object["metadata"]["resourceVersion"]
                .as_str()
                .unwrap()
                .parse()
                .unwrap()
        })
        .collect();
    assert!(
        revisions.is_sorted() && revisions[0] > since.parse().unwrap(),
        "{revisions:?}"
    );
}

#[tokio::test]
async fn an_object_that_ceases_to_match_is_deleted_for_the_watcher() {
    let http = Http::start().await;
    let created = create(&http, "a", json!({"color": "red"})).await;
    let since = created["metadata"]["resourceVersion"]
        .as_str()
        .unwrap()
        .to_owned();
    for color in ["blue", "red"] {
        http.patch(
            MERGE,
            &format!("{MAPS}/a"),
            json!({"metadata": {"labels": {"color": color}}}),
        )
        .await;
    }
    let path = format!(
        "{MAPS}?watch=1&labelSelector=color%3Dred&resourceVersion={since}&timeoutSeconds=1"
    );
    let events = http.watch(&path).await;
    let kinds: Vec<&str> = events.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(kinds, ["DELETED", "ADDED"]);
    assert_eq!(events[0].1["metadata"]["labels"]["color"], "red");
}

#[tokio::test]
async fn a_streamed_list_ends_with_a_bookmark() {
    let http = Http::start().await;
    create(&http, "a", json!({})).await;
    let path = format!(
        "{MAPS}?watch=1&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan&timeoutSeconds=1"
    );
    let events = http.watch(&path).await;
    assert_eq!(
        (events[0].0.as_str(), events[1].0.as_str()),
        ("ADDED", "BOOKMARK")
    );
    assert_eq!(
        events[1].1["metadata"]["annotations"]["k8s.io/initial-events-end"],
        "true"
    );
}

#[tokio::test]
async fn old_paths_watch_a_collection_or_one_object() {
    let http = Http::start().await;
    create(&http, "a", json!({})).await;
    create(&http, "b", json!({})).await;
    let seen = |events: Vec<(String, Value)>| -> Vec<String> {
        let names = events.into_iter();
        names
            .map(|(_, object)| object["metadata"]["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let base = "/api/v1/watch/namespaces/default/configmaps";
    let all = http.watch(&format!("{base}?timeoutSeconds=1")).await;
    assert_eq!(seen(all), ["a", "b"]);
    let one = http.watch(&format!("{base}/b?timeoutSeconds=1")).await;
    assert_eq!(seen(one), ["b"]);
    let everywhere = http
        .watch("/api/v1/watch/configmaps?timeoutSeconds=1")
        .await;
    assert_eq!(seen(everywhere), ["a", "b"]);
    let namespace = http
        .watch("/api/v1/watch/namespaces/default?timeoutSeconds=1")
        .await;
    assert_eq!(seen(namespace), ["default"]);
    let (code, _) = http
        .send("DELETE", &format!("{base}/b"), "", Value::Null)
        .await;
    assert_eq!(code, 405);
}

/// Content type, content encoding and bytes of an answer.
async fn fetch(http: &Http, path: &str, headers: &[(&str, &str)]) -> (String, String, Vec<u8>) {
    let caller = Caller {
        identity: Some(Identity::administrator("test")),
        only_cluster: Some(HUB.into()),
        in_process: true,
        ..Caller::default()
    };
    let mut request = http::Request::builder().uri(path).extension(caller);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let body = http_body_util::Empty::<bytes::Bytes>::new();
    let response = http.server.handle(request.body(body).unwrap()).await;
    let header = |name: &str| {
        let value = response.headers().get(name);
        value.map_or("", |value| value.to_str().unwrap()).to_owned()
    };
    let (kind, encoding) = (header("content-type"), header("content-encoding"));
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (kind, encoding, bytes.to_vec())
}

#[tokio::test]
async fn answers_are_indented_and_compressed_on_demand() {
    let http = Http::start().await;
    let (_, _, pretty) = fetch(&http, "/api/v1/namespaces/default?pretty=true", &[]).await;
    let text = String::from_utf8(pretty).unwrap();
    assert!(
        text.starts_with("{\n  \"kind\": \"Namespace\",\n"),
        "{text}"
    );
    let (_, _, refused) = fetch(
        &http,
        "/api/v1/namespaces/absent",
        &[("user-agent", "curl/8")],
    )
    .await;
    assert!(refused.starts_with(b"{\n  "));

    let gzip = [("accept-encoding", "deflate, gzip")];
    let (_, encoding, _) = fetch(&http, MAPS, &gzip).await;
    assert_eq!(encoding, "");
    let large = json!({"metadata": {"name": "large"}, "data": {"x": "abc".repeat(100_000)}});
    http.ok("POST", MAPS, large).await;
    let (_, _, plain) = fetch(&http, MAPS, &[]).await;
    let (kind, encoding, small) = fetch(&http, MAPS, &gzip).await;
    assert_eq!(
        (kind.as_str(), encoding.as_str()),
        ("application/json", "gzip")
    );
    assert!(small.len() * 10 < plain.len());
    let (_, encoding, _) = fetch(&http, &format!("{MAPS}?watch=1&timeoutSeconds=1"), &gzip).await;
    assert_eq!(encoding, "");
}

#[tokio::test]
async fn built_in_kinds_are_answered_in_protobuf() {
    let http = Http::start().await;
    create(&http, "a", json!({"x": "y"})).await;
    let accept = [(
        "accept",
        "application/vnd.kubernetes.protobuf, application/json",
    )];
    let (kind, _, bytes) = fetch(&http, &format!("{MAPS}/a"), &accept).await;
    assert_eq!(kind, "application/vnd.kubernetes.protobuf");
    let live = http.ok("GET", &format!("{MAPS}/a"), Value::Null).await;
    assert_eq!(bellwether_protobuf::decode(&bytes).unwrap(), live);
    let (kind, _, bytes) = fetch(&http, MAPS, &accept).await;
    assert_eq!(kind, "application/vnd.kubernetes.protobuf");
    assert!(bytes.starts_with(b"k8s\0"));
    // What has no such form is JSON, if the client takes that.
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let (kind, _, _) = fetch(&http, definitions, &accept).await;
    assert_eq!(kind, "application/vnd.kubernetes.protobuf");
    let (kind, _, _) = fetch(&http, &format!("{MAPS}/absent"), &accept).await;
    assert_eq!(kind, "application/json");
    let only = [("accept", "application/vnd.kubernetes.protobuf")];
    let (kind, _, _) = fetch(&http, &format!("{MAPS}?watch=1&timeoutSeconds=1"), &accept).await;
    assert_eq!(kind, "application/json");
    let (_, _, refused) = fetch(&http, "/apis/nobody.example.com/v1/things", &only).await;
    assert_eq!(refused, b"404 page not found\n");
}
