//! The life of an object: created, read, changed by many hands, deleted.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails"
)]
#![allow(clippy::needless_pass_by_value, reason = "bodies are written in place")]

use crate::common;

use common::eventually;
use common::http::{APPLY, Http, MERGE, STRATEGIC};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str, data: Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data})
}

fn revision(object: &Value) -> u64 {
    object["metadata"]["resourceVersion"]
        .as_str()
        .unwrap()
        .parse()
        .unwrap()
}

#[tokio::test]
async fn a_write_that_changes_nothing_is_no_write() {
    let http = Http::start().await;
    let created = http.ok("POST", MAPS, map("a", json!({"k": "1"}))).await;
    let path = format!("{MAPS}/a");
    let same = http.patch(MERGE, &path, json!({"data": {"k": "1"}})).await;
    assert_eq!(same, created);
    let changed = http.patch(MERGE, &path, json!({"data": {"k": "2"}})).await;
    assert!(revision(&changed) > revision(&created));
    let (code, stale) = http.send("PUT", &path, "application/json", created).await;
    assert_eq!((code, &stale["reason"]), (409, &json!("Conflict")));
}

#[tokio::test]
async fn a_dry_run_leaves_no_trace() {
    let http = Http::start().await;
    let before = http.ok("GET", MAPS, Value::Null).await;
    let dry = http
        .ok("POST", &format!("{MAPS}?dryRun=All"), map("a", json!({})))
        .await;
    assert!(dry["metadata"]["uid"].is_string() && dry["metadata"]["resourceVersion"].is_null());
    http.ok("POST", MAPS, map("b", json!({"k": "1"}))).await;
    let path = format!("{MAPS}/b?dryRun=All");
    http.patch(MERGE, &path, json!({"data": {"k": "2"}})).await;
    http.ok("DELETE", &path, Value::Null).await;
    let after = http.ok("GET", MAPS, Value::Null).await;
    assert_eq!(
        after["items"].as_array().unwrap().len(),
        1 + before["items"].as_array().unwrap().len()
    );
    assert_eq!(after["items"][0]["data"]["k"], "1");
}

#[tokio::test]
async fn appliers_share_an_object_until_they_want_the_same_field() {
    let http = Http::start().await;
    let apply = |manager: &str, data: Value| {
        let path = format!("{MAPS}/shared?fieldManager={manager}");
        let http = &http;
        async move { http.send("PATCH", &path, APPLY, map("shared", data)).await }
    };
    assert_eq!(apply("one", json!({"a": "1", "b": "1"})).await.0, 201);
    assert_eq!(apply("two", json!({"c": "1"})).await.0, 200);
    let (code, conflict) = apply("two", json!({"a": "2", "c": "1"})).await;
    assert_eq!(code, 409);
    assert_eq!(
        conflict["message"],
        "Apply failed with 1 conflict: conflict with \"one\": .data.a"
    );
    assert_eq!(conflict["details"]["causes"][0]["field"], ".data.a");
    // What an applier leaves out goes, unless others own it.
    let (_, object) = apply("one", json!({"a": "1"})).await;
    assert_eq!(object["data"], json!({"a": "1", "c": "1"}));
}

#[tokio::test]
async fn strategic_patches_know_the_keys_of_lists() {
    let http = Http::start().await;
    let path = "/apis/apps/v1/namespaces/default/deployments";
    let labels = json!({"app": "x"});
    http.ok("POST", path, json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"selector": {"matchLabels": labels}, "template": {
            "metadata": {"labels": labels}, "spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "1"}]}}},
    }))
    .await;
    let change = json!({"spec": {"template": {"spec": {"containers": [
        {"name": "b", "image": "2"}, {"name": "a", "$patch": "delete"},
    ]}}}});
    let patched = http.patch(STRATEGIC, &format!("{path}/d"), change).await;
    let containers = &patched["spec"]["template"]["spec"]["containers"];
    assert_eq!(containers.as_array().unwrap().len(), 1);
    assert_eq!(
        (&containers[0]["name"], &containers[0]["image"]),
        (&json!("b"), &json!("2"))
    );
    assert_eq!(patched["metadata"]["generation"], 2);
    // Status is another matter: it counts no generation, and the main resource cannot write it.
    let with_status = http
        .patch(
            MERGE,
            &format!("{path}/d/status"),
            json!({"status": {"replicas": 1}, "spec": {"replicas": 9}}),
        )
        .await;
    assert_eq!(
        (
            &with_status["metadata"]["generation"],
            &with_status["spec"]["replicas"]
        ),
        (&json!(2), &json!(1))
    );
    assert_eq!(with_status["status"]["replicas"], 1);
    let sneaky = http
        .patch(
            MERGE,
            &format!("{path}/d"),
            json!({"status": {"replicas": 5}}),
        )
        .await;
    assert_eq!(sneaky["status"]["replicas"], 1);
}

#[tokio::test]
async fn a_finalizer_keeps_a_deleted_object_until_it_is_removed() {
    let http = Http::start().await;
    let mut object = map("a", json!({}));
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    http.ok("POST", MAPS, object).await;
    let path = format!("{MAPS}/a");
    let marked = http.ok("DELETE", &path, Value::Null).await;
    assert!(marked["metadata"]["deletionTimestamp"].is_string());
    let add = json!({"metadata": {"finalizers": ["example.com/hold", "example.com/more"]}});
    assert_eq!(http.send("PATCH", &path, MERGE, add).await.0, 422);
    http.patch(MERGE, &path, json!({"metadata": {"finalizers": null}}))
        .await;
    assert_eq!(http.send("GET", &path, "", Value::Null).await.0, 404);
}

async fn owner_and_dependent(http: &Http, name: &str) {
    let owner = http.ok("POST", MAPS, map(name, json!({}))).await;
    let mut dependent = map(&format!("{name}-dependent"), json!({}));
    dependent["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "v1", "kind": "ConfigMap", "name": name, "uid": owner["metadata"]["uid"],
        "blockOwnerDeletion": true,
    }]);
    http.ok("POST", MAPS, dependent).await;
}

#[tokio::test]
async fn dependents_go_with_their_owner_or_stay_on_request() {
    let http = Http::start().await;
    for policy in ["Background", "Foreground", "Orphan"] {
        let name = policy.to_lowercase();
        owner_and_dependent(&http, &name).await;
        let options =
            json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": policy});
        http.ok("DELETE", &format!("{MAPS}/{name}"), options).await;
        let get = |name: String| {
            let http = &http;
            async move {
                http.send("GET", &format!("{MAPS}/{name}"), "", Value::Null)
                    .await
            }
        };
        eventually("the owner's end", || async {
            (get(name.clone()).await.0 == 404).then_some(())
        })
        .await;
        let dependent = format!("{name}-dependent");
        if policy == "Orphan" {
            let (code, left) = get(dependent).await;
            assert_eq!(
                (code, &left["metadata"]["ownerReferences"]),
                (200, &Value::Null)
            );
        } else {
            eventually("the dependent's end", || async {
                (get(dependent.clone()).await.0 == 404).then_some(())
            })
            .await;
        }
    }
}

#[tokio::test]
async fn an_object_with_an_absent_owner_is_collected() {
    let http = Http::start().await;
    let mut orphan = map("orphan", json!({}));
    orphan["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "gone", "uid": "no-such-uid"}]);
    http.ok("POST", MAPS, orphan).await;
    eventually("its end", || async {
        (http
            .send("GET", &format!("{MAPS}/orphan"), "", Value::Null)
            .await
            .0
            == 404)
            .then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_deleted_namespace_takes_its_contents_along() {
    let http = Http::start().await;
    let namespaces = "/api/v1/namespaces";
    http.ok("POST", namespaces, json!({"metadata": {"name": "shop"}}))
        .await;
    let maps = format!("{namespaces}/shop/configmaps");
    let mut held = map("held", json!({}));
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    http.ok("POST", &maps, held).await;
    http.ok("POST", &maps, map("free", json!({}))).await;
    let path = format!("{namespaces}/shop");
    assert_eq!(
        http.ok("DELETE", &path, Value::Null).await["status"]["phase"],
        "Terminating"
    );
    let (code, refused) = http
        .send("POST", &maps, "application/json", map("late", json!({})))
        .await;
    assert_eq!(
        (code, &refused["details"]["causes"][0]["reason"]),
        (403, &json!("NamespaceTerminating"))
    );
    // It says what it waits for.
    eventually("the explanation", || async {
        let namespace = http.ok("GET", &path, Value::Null).await;
        namespace
            .to_string()
            .contains("example.com/hold in 1 resource instances")
            .then_some(())
    })
    .await;
    http.patch(
        MERGE,
        &format!("{maps}/held"),
        json!({"metadata": {"finalizers": null}}),
    )
    .await;
    eventually("its end", || async {
        (http.send("GET", &path, "", Value::Null).await.0 == 404).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_pod_has_the_priority_of_its_class_and_no_other() {
    let http = Http::start().await;
    let pods = "/api/v1/namespaces/default/pods";
    let pod = |name: &str, extra: Value| {
        let mut spec = json!({"containers": [{"name": "c", "image": "i"}]});
        for (key, value) in extra.as_object().unwrap() {
            spec[key] = value.clone();
        }
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec})
    };
    let class = |name: &str, value: i64, default: bool| json!({"metadata": {"name": name}, "value": value, "globalDefault": default});
    let classes = "/apis/scheduling.k8s.io/v1/priorityclasses";
    let plain = http.ok("POST", pods, pod("plain", json!({}))).await;
    assert_eq!(plain["spec"]["priority"], 0);
    http.ok("POST", classes, class("high", 1000, false)).await;
    http.ok("POST", classes, class("usual", 10, true)).await;
    let high = pod("high", json!({"priorityClassName": "high"}));
    assert_eq!(http.ok("POST", pods, high).await["spec"]["priority"], 1000);
    let usual = http.ok("POST", pods, pod("usual", json!({}))).await;
    assert_eq!(usual["spec"]["priority"], 10);
    assert_eq!(usual["spec"]["priorityClassName"], "usual");
    for (extra, why) in [
        (
            json!({"priorityClassName": "none"}),
            "no PriorityClass with name none was found",
        ),
        (
            json!({"priority": 7}),
            "the integer value of priority (7) must not be provided",
        ),
        (
            json!({"preemptionPolicy": "Never"}),
            "the string value of PreemptionPolicy (Never) must",
        ),
    ] {
        let (code, answer) = http
            .send("POST", pods, "application/json", pod("bad", extra))
            .await;
        let message = answer["message"].as_str().unwrap();
        assert_eq!(code, 403, "{message}");
        assert!(message.contains(why), "{message}");
    }
}

#[tokio::test]
async fn a_key_that_a_body_has_twice_is_warned_of_or_refused() {
    let http = Http::start().await;
    let yaml =
        "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: twice\ndata:\n  a: '1'\n  a: '2'\n";
    let json = r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"twice"},"data":{"a":"1","a":"2"}}"#;
    let line = "yaml: unmarshal errors:\n  line 7: key \"a\" already set in map";
    let cases = [
        ("POST", "application/yaml", yaml, r#"line 7: key \"a\" already set in map"#, format!("ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: {line}")),
        ("POST", "application/json", json, r#"duplicate field \"data.a\""#, "ConfigMap in version \"v1\" cannot be handled as a ConfigMap: strict decoding error: duplicate field \"data.a\"".to_owned()),
        ("PATCH", APPLY, yaml, r#"line 7: key \"a\" already set in map"#, format!("error strict decoding YAML: error converting YAML to JSON: {line}")),
    ];
    for (method, kind, text, warning, error) in cases {
        let name = if method == "PATCH" { "/twice" } else { "" };
        let send = async |validation: &str| {
            let path =
                format!("{MAPS}{name}?dryRun=All&fieldManager=t&fieldValidation={validation}");
            let bytes = text.as_bytes().to_vec().into();
            http.respond_to_bytes(method, &path, kind, bytes).await
        };
        let warned = send("Warn").await;
        assert_eq!(warned.status(), 201, "{kind}");
        assert_eq!(
            warned.headers()["warning"],
            format!("299 - \"{warning}\"").as_str()
        );
        let refused = send("Strict").await;
        assert_eq!(refused.status(), 400, "{kind}");
        let body = refused.into_body().collect().await.unwrap().to_bytes();
        let status: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(status["message"], error);
        assert!(send("Ignore").await.headers().get("warning").is_none());
    }
}

#[tokio::test]
async fn a_creation_with_a_revision_is_refused_after_everything_else() {
    let http = Http::start().await;
    let map = |name: &str| json!({"metadata": {"name": name, "resourceVersion": "1"}});
    let post = |path: &'static str, body: Value| http.send("POST", path, "application/json", body);
    let (code, refused) = post("/api/v1/namespaces/absent/configmaps", map("a")).await;
    assert_eq!((code, &refused["reason"]), (404, &json!("NotFound")));
    let (code, _) = post("/api/v1/namespaces/default/configmaps", map("A b")).await;
    assert_eq!(code, 422);
    let (code, refused) = post("/api/v1/namespaces/default/configmaps", map("a")).await;
    assert_eq!((code, &refused["reason"]), (500, &Value::Null));
    let (code, _) = post("/api/v1/namespaces/default/configmaps?dryRun=All", map("a")).await;
    assert_eq!(code, 201);
}

#[tokio::test]
async fn a_scale_can_be_applied() {
    let http = Http::start().await;
    let base = "/apis/apps/v1/namespaces/default/deployments";
    let template = json!({
        "metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    let deployment = json!({"metadata": {"name": "d"}, "spec": {
        "selector": {"matchLabels": {"a": "b"}}, "template": template,
    }});
    http.ok("POST", base, deployment).await;
    let scale = format!("{base}/d/scale");
    let replicas = json!({"spec": {"replicas": 3}});
    http.patch(MERGE, &format!("{scale}?fieldManager=autoscaler"), replicas)
        .await;
    let wanted = json!({
        "apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "d"},
        "spec": {"replicas": 6},
    });
    let path = format!("{scale}?fieldManager=me");
    let (code, refused) = http.send("PATCH", &path, APPLY, wanted.clone()).await;
    assert_eq!(code, 409);
    assert_eq!(
        refused["message"],
        "Apply failed with 1 conflict: conflict with \"autoscaler\" with subresource \"scale\" using autoscaling/v1: .spec.replicas"
    );
    let applied = http
        .patch(APPLY, &format!("{path}&force=true"), wanted)
        .await;
    assert_eq!(
        (&applied["kind"], &applied["spec"]["replicas"]),
        (&json!("Scale"), &json!(6))
    );
    let live = http.ok("GET", &format!("{base}/d"), Value::Null).await;
    let entries = live["metadata"]["managedFields"].as_array().unwrap();
    let of_scale: Vec<_> = entries
        .iter()
        .filter(|it| it["subresource"] == "scale")
        .collect();
    assert_eq!(of_scale.len(), 1);
    let expected = json!({
        "manager": "me", "operation": "Apply", "apiVersion": "apps/v1", "subresource": "scale",
        "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:replicas": {}}},
    });
    assert_eq!(*of_scale[0], expected);
}
