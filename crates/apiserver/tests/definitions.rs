//! CustomResourceDefinitions: from creation to the end of all their objects.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails"
)]
#![allow(clippy::needless_pass_by_value, reason = "bodies are written in place")]

mod common;

use common::eventually;
use common::http::{Http, MERGE};
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const SHEEP: &str = "/apis/flock.example.com/v1/namespaces/default/sheep";

fn definition() -> Value {
    let text = include_str!("../../../examples/crd/definition.yaml");
    bellwether_json::yaml::value_from_yaml(text).unwrap()
}

fn sheep(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "flock.example.com/v1", "kind": "Sheep", "metadata": {"name": name}, "spec": spec})
}

#[tokio::test]
async fn a_definition_can_be_used_at_once() {
    let http = Http::start().await;
    let created = http.ok("POST", DEFINITIONS, definition()).await;
    assert!(
        created.to_string().contains("InitialNamesAccepted"),
        "{created}"
    );
    let dolly = http
        .ok(
            "POST",
            SHEEP,
            sheep("dolly", json!({"bells": 1, "unknown": true})),
        )
        .await;
    assert_eq!(dolly["spec"], json!({"bells": 1, "role": "follower"}));
    let (code, refused) = http
        .send(
            "POST",
            SHEEP,
            "application/json",
            sheep("x", json!({"bells": 0, "role": "bellwether"})),
        )
        .await;
    assert_eq!(code, 422);
    assert_eq!(
        refused["message"],
        "Sheep.flock.example.com \"x\" is invalid: spec: Invalid value: a bellwether wears a bell"
    );
}

#[tokio::test]
async fn a_deleted_definition_takes_its_objects_along() {
    let http = Http::start().await;
    http.ok("POST", DEFINITIONS, definition()).await;
    let mut dolly = sheep("dolly", json!({"bells": 1}));
    dolly["metadata"]["finalizers"] = json!(["flock.example.com/shear"]);
    http.ok("POST", SHEEP, dolly).await;
    let path = format!("{DEFINITIONS}/sheep.flock.example.com");
    http.ok("DELETE", &path, Value::Null).await;
    eventually("the mark on its object", || async {
        let (_, dolly) = http
            .send("GET", &format!("{SHEEP}/dolly"), "", Value::Null)
            .await;
        dolly["metadata"]["deletionTimestamp"]
            .is_string()
            .then_some(())
    })
    .await;
    http.patch(
        MERGE,
        &format!("{SHEEP}/dolly"),
        json!({"metadata": {"finalizers": null}}),
    )
    .await;
    eventually("its end", || async {
        (http.send("GET", &path, "", Value::Null).await.0 == 404).then_some(())
    })
    .await;
    assert_eq!(http.send("GET", SHEEP, "", Value::Null).await.0, 404);
}

#[tokio::test]
async fn versions_of_a_kind_show_the_same_objects() {
    let http = Http::start().await;
    let mut two = definition();
    let mut second = two["spec"]["versions"][0].clone();
    second["name"] = "v2".into();
    second["storage"] = false.into();
    two["spec"]["versions"].as_array_mut().unwrap().push(second);
    http.ok("POST", DEFINITIONS, two.clone()).await;
    http.ok("POST", SHEEP, sheep("dolly", json!({"bells": 1})))
        .await;
    let other = http
        .ok("GET", &SHEEP.replace("/v1/", "/v2/"), Value::Null)
        .await;
    assert_eq!(other["items"][0]["apiVersion"], "flock.example.com/v2");
    let (_, group) = http
        .send("GET", "/apis/flock.example.com", "", Value::Null)
        .await;
    assert_eq!(group["preferredVersion"]["version"], "v2");
    // A version in which objects are stored cannot be taken away.
    let live = http
        .ok(
            "GET",
            &format!("{DEFINITIONS}/sheep.flock.example.com"),
            Value::Null,
        )
        .await;
    let mut changed = live;
    changed["spec"]["versions"]
        .as_array_mut()
        .unwrap()
        .remove(0);
    changed["spec"]["versions"][0]["storage"] = true.into();
    let path = format!("{DEFINITIONS}/sheep.flock.example.com");
    let (code, refused) = http.send("PUT", &path, "application/json", changed).await;
    assert_eq!(code, 422, "{refused}");
    assert!(
        refused["message"]
            .as_str()
            .unwrap()
            .contains("storedVersions[0]"),
        "{refused}"
    );
}

#[tokio::test]
async fn names_that_are_taken_are_not_served_twice() {
    let http = Http::start().await;
    http.ok("POST", DEFINITIONS, definition()).await;
    let mut rival = definition();
    rival["metadata"]["name"] = "rams.flock.example.com".into();
    rival["spec"]["names"]["plural"] = "rams".into();
    let rival = http.ok("POST", DEFINITIONS, rival).await;
    assert!(
        rival
            .to_string()
            .contains("\\\"sheep\\\" is already in use"),
        "{rival}"
    );
    let path = "/apis/flock.example.com/v1/namespaces/default/rams";
    assert_eq!(http.send("GET", path, "", Value::Null).await.0, 404);
}

#[tokio::test]
async fn selectable_fields_scale_and_columns_come_from_the_definition() {
    let http = Http::start().await;
    let mut definition = definition();
    let version = &mut definition["spec"]["versions"][0];
    version["selectableFields"] = json!([{"jsonPath": ".spec.role"}]);
    version["subresources"]["scale"] =
        json!({"specReplicasPath": ".spec.bells", "statusReplicasPath": ".status.bells"});
    version["schema"]["openAPIV3Schema"]["properties"]["status"]["properties"]["bells"] =
        json!({"type": "integer"});
    http.ok("POST", DEFINITIONS, definition).await;
    for (name, role) in [("dolly", "bellwether"), ("shaun", "follower")] {
        let spec = json!({"bells": 1, "role": role});
        http.ok("POST", SHEEP, sheep(name, spec)).await;
    }
    let found = http
        .ok(
            "GET",
            &format!("{SHEEP}?fieldSelector=spec.role%3Dfollower"),
            Value::Null,
        )
        .await;
    assert_eq!(found["items"].as_array().unwrap().len(), 1);
    assert_eq!(found["items"][0]["metadata"]["name"], "shaun");
    let path = format!("{SHEEP}?fieldSelector=spec.bells%3D1");
    assert_eq!(http.send("GET", &path, "", Value::Null).await.0, 400);

    let path = format!("{SHEEP}/dolly/scale");
    let scale = http
        .patch(MERGE, &path, json!({"spec": {"replicas": 3}}))
        .await;
    assert_eq!(
        (&scale["kind"], &scale["spec"]["replicas"]),
        (&json!("Scale"), &json!(3))
    );
    let dolly = http.ok("GET", &format!("{SHEEP}/dolly"), Value::Null).await;
    assert_eq!(
        (&dolly["spec"]["bells"], &dolly["metadata"]["generation"]),
        (&json!(3), &json!(2))
    );
}
