//! Lists and watches: pages of one revision, history and its end, and what a selector makes of changes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails"
)]
#![allow(clippy::needless_pass_by_value, reason = "bodies are written in place")]

use crate::common;

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

/// Enough objects for several chunks of a list.
async fn create_many(http: &Http) -> Vec<String> {
    let names: Vec<String> = (0..300).map(|number| format!("m{number:03}")).collect();
    for name in &names {
        let labels = json!({"even": (name.as_bytes()[3] % 2 == 0).to_string()});
        let annotations = json!({"kubectl.kubernetes.io/last-applied-configuration": "{}"});
        let metadata = json!({"name": name, "labels": labels, "annotations": annotations});
        let data = json!({"text": "x".repeat(300)});
        let map = json!({"metadata": metadata, "data": data});
        http.ok("POST", MAPS, map).await;
    }
    names
}

async fn next_frame(body: &mut bellwether_apiserver::Body) -> Vec<u8> {
    let frame = body.frame().await.unwrap().unwrap();
    frame.into_data().unwrap().to_vec()
}

#[tokio::test]
async fn a_list_that_is_being_sent_shows_one_revision() {
    let http = Http::start().await;
    let names_before = create_many(&http).await;
    let whole = http.ok("GET", MAPS, Value::Null).await;
    let mut body = http.get_as(MAPS, "application/json").await.into_body();
    let mut sent = next_frame(&mut body).await;
    http.ok("DELETE", &format!("{MAPS}/m299"), Value::Null)
        .await;
    let change = json!({"data": {"text": "changed"}});
    http.send("PATCH", &format!("{MAPS}/m290"), MERGE, change)
        .await;
    create(&http, "m2999", json!({})).await;
    sent.extend_from_slice(&body.collect().await.unwrap().to_bytes());
    let sent: Value = serde_json::from_slice(&sent).unwrap();
    assert_eq!(names(&sent), names_before);
    assert_eq!(sent, whole);
}

#[tokio::test]
async fn a_list_that_is_sent_for_longer_than_the_history_lasts_is_cut_off() {
    let options = Options {
        history_events: 5,
        ..Options::default()
    };
    let http = Http::start_with(options).await;
    create_many(&http).await;
    let mut list = http.get_as(MAPS, "application/json").await.into_body();
    let watch = format!("{MAPS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan");
    let mut watch = http.get_as(&watch, "application/json").await.into_body();
    let mut lines = next_frame(&mut watch).await;
    next_frame(&mut list).await;
    for number in 0..10 {
        create(&http, &format!("n{number}"), json!({})).await;
    }
    let error = list.collect().await.unwrap_err().to_string();
    assert!(error.contains("cut off"), "{error}");
    // A watch says so, and ends.
    lines.extend_from_slice(&watch.collect().await.unwrap().to_bytes());
    let ending = lines.trim_ascii_end().rsplit(|byte| *byte == b'\n').next();
    let ending: Value = serde_json::from_slice(ending.unwrap()).unwrap();
    assert_eq!(
        (&ending["type"], &ending["object"]["code"]),
        (&json!("ERROR"), &json!(410))
    );
}

#[tokio::test]
async fn tables_and_metadata_are_those_of_the_objects() {
    let http = Http::start().await;
    create_many(&http).await;
    let whole = http.ok("GET", MAPS, Value::Null).await;
    let read = async |path: &str, form: &str| -> Value {
        let accept = format!("application/json;as={form};v=v1;g=meta.k8s.io");
        let body = http.get_as(path, &accept).await.into_body();
        serde_json::from_slice(&body.collect().await.unwrap().to_bytes()).unwrap()
    };
    let metadata = read(MAPS, "PartialObjectMetadataList").await;
    assert_eq!(metadata["kind"], "PartialObjectMetadataList");
    assert_eq!(metadata["metadata"], whole["metadata"]);
    let table = read(MAPS, "Table").await;
    assert_eq!(table["metadata"], whole["metadata"]);
    assert_eq!(table["columnDefinitions"][0]["name"], "Name");
    let objects = whole["items"].as_array().unwrap();
    assert_eq!(table["rows"].as_array().unwrap().len(), objects.len());
    for (index, object) in objects.iter().enumerate() {
        let partial = json!({
            "kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1",
            "metadata": object["metadata"],
        });
        assert_eq!(metadata["items"][index], partial);
        let row = &table["rows"][index];
        assert_eq!(row["object"], partial);
        assert_eq!(row["cells"][0], object["metadata"]["name"]);
        assert_eq!(row["cells"][1], 1);
    }
    let name = objects[0]["metadata"]["name"].as_str().unwrap();
    let one = read(&format!("{MAPS}/{name}"), "PartialObjectMetadata").await;
    assert_eq!(one, metadata["items"][0]);
    let with_object = read(&format!("{MAPS}?includeObject=Object&limit=1"), "Table").await;
    assert_eq!(with_object["rows"][0]["object"]["data"], objects[0]["data"]);
    assert_eq!(with_object["rows"][0]["object"]["kind"], "ConfigMap");
    assert!(with_object["metadata"]["continue"].is_string());
    let without = read(&format!("{MAPS}?includeObject=None&limit=1"), "Table").await;
    assert_eq!(without["rows"][0]["object"], Value::Null);
}

/// They are written while they are sent, and yet as if all of it had been there at once.
#[tokio::test]
async fn a_list_says_the_same_in_every_form() {
    let http = Http::start().await;
    let check = async |path: &str| {
        let whole = http.ok("GET", path, Value::Null).await;
        let (_, _, yaml) = fetch(&http, path, &[("accept", "application/yaml")]).await;
        let expected = bellwether_json::yaml::to_yaml(&whole);
        assert_eq!(String::from_utf8(yaml).unwrap(), expected, "{path}");
        let protobuf = [("accept", "application/vnd.kubernetes.protobuf")];
        let (_, _, bytes) = fetch(&http, path, &protobuf).await;
        assert!(
            Some(&bytes) == bellwether_protobuf::encode(&whole).as_ref(),
            "{path}"
        );
        for form in ["Table", "PartialObjectMetadataList"] {
            let ask = |format: &str| format!("application/{format};as={form};v=v1;g=meta.k8s.io");
            let json = async || fetch(&http, path, &[("accept", &ask("json"))]).await.2;
            // Ages go on: both have to be of the same second.
            let (whole, yaml) = loop {
                let before = json().await;
                let (_, _, yaml) = fetch(&http, path, &[("accept", &ask("yaml"))]).await;
                if before == json().await {
                    break (before, yaml);
                }
            };
            let whole: Value = serde_json::from_slice(&whole).unwrap();
            let expected = bellwether_json::yaml::to_yaml(&whole);
            assert_eq!(
                String::from_utf8(yaml).unwrap(),
                expected,
                "{path} as {form}"
            );
        }
    };
    check(MAPS).await;
    let data = json!({"text": "one\n\n  two\n", "long": "a word ".repeat(50), "number": "1"});
    let map = json!({"metadata": {"name": "a"}, "data": data});
    http.ok("POST", MAPS, map).await;
    check(MAPS).await;
    create_many(&http).await;
    check(MAPS).await;
    check(&format!("{MAPS}?limit=7")).await;
    check(&format!("{MAPS}?labelSelector=even%3Dtrue")).await;
}

#[tokio::test]
async fn long_pages_and_rare_matches_are_found() {
    let http = Http::start().await;
    let all = create_many(&http).await;
    let list = http
        .ok("GET", &format!("{MAPS}?limit=1000"), Value::Null)
        .await;
    assert_eq!(names(&list), all);
    let rare = format!("{MAPS}?fieldSelector=metadata.name!=x,metadata.namespace=other");
    assert!(names(&http.ok("GET", &rare, Value::Null).await).is_empty());
    let even = format!("{MAPS}?labelSelector=even=true");
    let even = http.ok("GET", &even, Value::Null).await;
    assert_eq!(names(&even).len(), 150);
}
