//! CustomResourceDefinitions: from creation to the end of all their objects.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails"
)]
#![allow(clippy::needless_pass_by_value, reason = "bodies are written in place")]

use crate::common;

use common::eventually;
use common::http::{APPLY, Http, MERGE};
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const SHEEP: &str = "/apis/flock.example.com/v1/namespaces/default/sheep";

fn definition() -> Value {
    let text = include_str!("../../../../examples/crd/definition.yaml");
    bellwether_json::yaml::value_from_yaml(text).unwrap()
}

fn definition_path() -> String {
    format!("{DEFINITIONS}/sheep.flock.example.com")
}

/// Type, status and reason of each condition.
fn conditions(object: &Value) -> impl Iterator<Item = (&str, &str, &str)> {
    let conditions = object["status"]["conditions"].as_array().unwrap().iter();
    conditions.map(|found| {
        let text = |field: &str| found[field].as_str().unwrap();
        (text("type"), text("status"), text("reason"))
    })
}

fn sheep(name: &str, spec: Value) -> Value {
    json!({"apiVersion": "flock.example.com/v1", "kind": "Sheep", "metadata": {"name": name}, "spec": spec})
}

#[tokio::test]
async fn a_definition_can_be_used_at_once() {
    let http = Http::start().await;
    let created = http.ok("POST", DEFINITIONS, definition()).await;
    // The answer is that of a server whose controllers are yet to look at it.
    let status = json!({
        "acceptedNames": {"kind": "", "plural": ""}, "conditions": null, "storedVersions": ["v1"],
    });
    assert_eq!(created["status"], status);
    assert_eq!(created["metadata"]["finalizers"], Value::Null);
    let live = http.ok("GET", &definition_path(), Value::Null).await;
    let conditions: Vec<_> = conditions(&live).collect();
    assert_eq!(
        conditions,
        [
            ("NamesAccepted", "True", "NoConflicts"),
            ("Established", "True", "InitialNamesAccepted")
        ]
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
async fn objects_outlive_a_change_of_the_stored_version() {
    let http = Http::start().await;
    let path = format!("{DEFINITIONS}/sheep.flock.example.com");
    http.ok("POST", DEFINITIONS, definition()).await;
    http.ok("POST", SHEEP, sheep("dolly", json!({"bells": 1})))
        .await;
    // A later version of the software stores another version of the kind.
    let mut changed = http.ok("GET", &path, Value::Null).await;
    let mut second = changed["spec"]["versions"][0].clone();
    second["name"] = "v2".into();
    changed["spec"]["versions"][0]["storage"] = false.into();
    let versions = changed["spec"]["versions"].as_array_mut().unwrap();
    versions.push(second);
    let changed = http.ok("PUT", &path, changed).await;
    assert_eq!(changed["status"]["storedVersions"], json!(["v1", "v2"]));
    let newer = SHEEP.replace("/v1/", "/v2/");
    for (list, version) in [(SHEEP, "v1"), (&newer, "v2")] {
        let dolly = http.ok("GET", &format!("{list}/dolly"), Value::Null).await;
        assert_eq!(dolly["apiVersion"], format!("flock.example.com/{version}"));
        assert_eq!(dolly["spec"]["bells"], 1);
    }
    // The one before still works with it, and both see the same.
    let bells = json!({"spec": {"bells": 2}});
    http.patch(MERGE, &format!("{SHEEP}/dolly"), bells).await;
    // Each object is written again, the version is struck off, and can be taken away.
    let dolly = http.ok("GET", &format!("{newer}/dolly"), Value::Null).await;
    assert_eq!(dolly["spec"]["bells"], 2);
    http.ok("PUT", &format!("{newer}/dolly"), dolly).await;
    let stored = json!({"status": {"storedVersions": ["v2"]}});
    http.patch(MERGE, &format!("{path}/status"), stored).await;
    let mut last = http.ok("GET", &path, Value::Null).await;
    assert_eq!(last["status"]["storedVersions"], json!(["v2"]));
    last["spec"]["versions"].as_array_mut().unwrap().remove(0);
    http.ok("PUT", &path, last).await;
    eventually("the end of v1", || async {
        (http.send("GET", SHEEP, "", Value::Null).await.0 == 404).then_some(())
    })
    .await;
    let dolly = http.ok("GET", &format!("{newer}/dolly"), Value::Null).await;
    assert_eq!(dolly["spec"]["bells"], 2);
}

#[tokio::test]
async fn names_that_are_taken_are_not_served_twice() {
    let http = Http::start().await;
    http.ok("POST", DEFINITIONS, definition()).await;
    let mut rival = definition();
    rival["metadata"]["name"] = "rams.flock.example.com".into();
    rival["spec"]["names"]["plural"] = "rams".into();
    http.ok("POST", DEFINITIONS, rival).await;
    let path = format!("{DEFINITIONS}/rams.flock.example.com");
    let rival = http.ok("GET", &path, Value::Null).await;
    assert!(
        rival
            .to_string()
            .contains("\\\"SheepList\\\" is already in use"),
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

/// As kube-apiserver: nothing new of a kind that goes, neither by POST nor by an apply.
#[tokio::test]
async fn nothing_is_created_while_a_definition_terminates() {
    let http = Http::start().await;
    http.ok("POST", DEFINITIONS, definition()).await;
    let mut dolly = sheep("dolly", json!({"bells": 1}));
    dolly["metadata"]["finalizers"] = json!(["example.com/hold"]);
    http.ok("POST", SHEEP, dolly).await;
    let going = http.ok("DELETE", &definition_path(), Value::Null).await;
    assert_eq!(
        going["metadata"]["finalizers"],
        json!(["customresourcecleanup.apiextensions.k8s.io"])
    );
    let json_type = "application/json";
    let shaun = sheep("shaun", json!({"bells": 1}));
    let (code, refused) = http.send("POST", SHEEP, json_type, shaun.clone()).await;
    assert_eq!((code, &refused["reason"]), (403, &json!("Forbidden")));
    assert_eq!(
        refused["message"],
        "sheep.flock.example.com \"shaun\" is forbidden: create not allowed while custom resource definition is terminating"
    );
    let details = json!({"name": "shaun", "group": "flock.example.com", "kind": "sheep"});
    assert_eq!(refused["details"], details);
    let path = format!("{SHEEP}/shaun?fieldManager=me");
    let (code, _) = http.send("PATCH", &path, APPLY, shaun).await;
    assert_eq!(code, 403);
    // What is there can still be changed, and says how far it is.
    eventually("the deletion of its objects", || async {
        let live = http.ok("GET", &definition_path(), Value::Null).await;
        let found = conditions(&live).any(|found| found.2 == "InstanceDeletionInProgress");
        found.then_some(())
    })
    .await;
    let free = json!({"metadata": {"finalizers": null}});
    http.patch(MERGE, &format!("{SHEEP}/dolly"), free).await;
    eventually("its end", || async {
        let (code, _) = http.send("GET", &definition_path(), "", Value::Null).await;
        (code == 404).then_some(())
    })
    .await;
    // Who defines it again begins with nothing.
    http.ok("POST", DEFINITIONS, definition()).await;
    let found = http.ok("GET", SHEEP, Value::Null).await;
    assert_eq!(found["items"], json!([]));
}

/// Creations that race with the deletion of their definition leave nothing behind.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_object_outlives_its_definition() {
    let http = std::sync::Arc::new(Http::start().await);
    for _ in 0..10 {
        http.ok("POST", DEFINITIONS, definition()).await;
        let writers: Vec<_> = (0..8)
            .map(|writer| {
                let http = http.clone();
                tokio::spawn(async move {
                    for count in 0.. {
                        let name = format!("sheep-{writer}-{count}");
                        let body = sheep(&name, json!({"bells": 1}));
                        let (code, _) = http.send("POST", SHEEP, "application/json", body).await;
                        if code != 201 {
                            return code;
                        }
                    }
                    0
                })
            })
            .collect();
        http.ok("DELETE", &definition_path(), Value::Null).await;
        for writer in writers {
            assert!(matches!(writer.await.unwrap(), 403 | 404));
        }
        eventually("its end", || async {
            let (code, _) = http.send("GET", &definition_path(), "", Value::Null).await;
            (code == 404).then_some(())
        })
        .await;
        http.ok("POST", DEFINITIONS, definition()).await;
        let found = http.ok("GET", SHEEP, Value::Null).await;
        assert_eq!(found["items"], json!([]));
        http.ok("DELETE", &definition_path(), Value::Null).await;
        eventually("its end", || async {
            let (code, _) = http.send("GET", &definition_path(), "", Value::Null).await;
            (code == 404).then_some(())
        })
        .await;
    }
}

#[tokio::test]
async fn a_version_that_is_not_served_goes_with_its_definition() {
    let http = Http::start().await;
    http.ok("POST", DEFINITIONS, definition()).await;
    http.ok("POST", SHEEP, sheep("dolly", json!({"bells": 1})))
        .await;
    let mut hidden = http.ok("GET", &definition_path(), Value::Null).await;
    hidden["spec"]["versions"][0]["served"] = false.into();
    let mut other = definition()["spec"]["versions"][0].clone();
    other["name"] = "v2".into();
    other["storage"] = false.into();
    other["served"] = false.into();
    hidden["spec"]["versions"]
        .as_array_mut()
        .unwrap()
        .push(other);
    http.ok("PUT", &definition_path(), hidden).await;
    http.ok("DELETE", &definition_path(), Value::Null).await;
    eventually("its end", || async {
        let (code, _) = http.send("GET", &definition_path(), "", Value::Null).await;
        (code == 404).then_some(())
    })
    .await;
    http.ok("POST", DEFINITIONS, definition()).await;
    let found = http.ok("GET", SHEEP, Value::Null).await;
    assert_eq!(found["items"], json!([]));
}

/// Fields that one version does not know are not shown there, and are lost when it is written there:
/// the strategy `None` changes nothing but the name of the version.
#[tokio::test]
async fn a_version_is_pruned_by_its_own_schema_and_defaulted_by_the_stored_one() {
    let http = Http::start().await;
    let mut two = definition();
    let mut second = two["spec"]["versions"][0].clone();
    second["name"] = "v2".into();
    second["storage"] = false.into();
    let spec = "/schema/openAPIV3Schema/properties/spec";
    let fields = second.pointer_mut(spec).unwrap();
    fields["properties"] = json!({
        "bells": {"type": "integer"}, "colour": {"type": "string", "default": "white"},
    });
    fields
        .as_object_mut()
        .unwrap()
        .remove("x-kubernetes-validations");
    two["spec"]["versions"].as_array_mut().unwrap().push(second);
    http.ok("POST", DEFINITIONS, two).await;
    let newer = SHEEP.replace("/v1/", "/v2/");

    let role = json!({"bells": 1, "role": "bellwether"});
    http.ok("POST", SHEEP, sheep("dolly", role)).await;
    let other = http.ok("GET", &format!("{newer}/dolly"), Value::Null).await;
    assert_eq!(other["spec"], json!({"bells": 1}));
    assert_eq!(other["apiVersion"], "flock.example.com/v2");
    let list = http.ok("GET", &newer, Value::Null).await;
    assert_eq!(list["items"][0]["spec"], json!({"bells": 1}));
    assert_eq!(list["items"][0]["kind"], "Sheep");
    let events = http
        .watch(&format!("{newer}?watch=1&timeoutSeconds=1"))
        .await;
    assert_eq!(events[0].1["spec"], json!({"bells": 1}));

    let mut shaun = sheep("shaun", json!({"bells": 2, "role": "x"}));
    shaun["apiVersion"] = "flock.example.com/v2".into();
    let created = http.ok("POST", &newer, shaun).await;
    assert_eq!(created["spec"], json!({"bells": 2}));
    let stored = http.ok("GET", &format!("{SHEEP}/shaun"), Value::Null).await;
    assert_eq!(stored["spec"], json!({"bells": 2, "role": "follower"}));

    let bells = json!({"spec": {"bells": 3}});
    let patched = http.patch(MERGE, &format!("{newer}/dolly"), bells).await;
    assert_eq!(patched["metadata"]["generation"], 2);
    let stored = http.ok("GET", &format!("{SHEEP}/dolly"), Value::Null).await;
    assert_eq!(stored["spec"], json!({"bells": 3, "role": "follower"}));
}

#[tokio::test]
async fn a_name_becomes_free_when_its_holder_goes() {
    let http = Http::start().await;
    http.ok("POST", DEFINITIONS, definition()).await;
    let mut rival = definition();
    rival["metadata"]["name"] = "rams.flock.example.com".into();
    rival["spec"]["names"]["plural"] = "rams".into();
    http.ok("POST", DEFINITIONS, rival).await;
    let path = format!("{DEFINITIONS}/rams.flock.example.com");
    let waiting = http.ok("GET", &path, Value::Null).await;
    let found: Vec<_> = conditions(&waiting).collect();
    assert_eq!(
        found,
        [
            ("NamesAccepted", "False", "ListKindConflict"),
            ("Established", "False", "NotAccepted")
        ]
    );
    // Names that nobody else has are given already.
    assert_eq!(waiting["status"]["acceptedNames"]["plural"], "rams");
    assert_eq!(waiting["status"]["acceptedNames"]["kind"], "");
    http.ok("DELETE", &definition_path(), Value::Null).await;
    eventually("the names of the other", || async {
        let live = http.ok("GET", &path, Value::Null).await;
        let mut found = conditions(&live);
        found
            .any(|found| found.0 == "Established" && found.1 == "True")
            .then_some(())
    })
    .await;
    let served = "/apis/flock.example.com/v1/namespaces/default/rams";
    http.ok("GET", served, Value::Null).await;
}

#[tokio::test]
async fn groups_of_kubernetes_are_reserved() {
    let http = Http::start().await;
    let mut reserved = definition();
    reserved["metadata"]["name"] = "sheep.flock.k8s.io".into();
    reserved["spec"]["group"] = "flock.k8s.io".into();
    let (code, refused) = http
        .send("POST", DEFINITIONS, "application/json", reserved.clone())
        .await;
    assert_eq!(code, 422);
    assert_eq!(
        refused["message"],
        "CustomResourceDefinition.apiextensions.k8s.io \"sheep.flock.k8s.io\" is invalid: metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval annotation \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111"
    );
    reserved["metadata"]["annotations"] =
        json!({"api-approved.kubernetes.io": "unapproved, a test"});
    http.ok("POST", DEFINITIONS, reserved).await;
}

#[tokio::test]
async fn metadata_of_custom_kinds_can_be_explained() {
    let http = Http::start().await;
    http.ok("POST", DEFINITIONS, definition()).await;
    let document = http
        .ok("GET", "/openapi/v3/apis/flock.example.com/v1", Value::Null)
        .await;
    let name = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
    let metadata = &document["components"]["schemas"][name];
    let labels = &metadata["properties"]["labels"];
    assert!(
        labels["description"].as_str().unwrap().len() > 20,
        "{labels}"
    );
    let owners = "io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference";
    assert!(document["components"]["schemas"][owners].is_object());
}

#[tokio::test]
async fn a_cluster_scoped_object_may_name_a_namespace() {
    let http = Http::start().await;
    let mut named = definition();
    named["metadata"]["namespace"] = "default".into();
    let created = http.ok("POST", DEFINITIONS, named.clone()).await;
    assert_eq!(created["metadata"]["namespace"], Value::Null);
    let path = format!("{}?fieldManager=me&force=true", definition_path());
    let applied = http.patch(APPLY, &path, named.clone()).await;
    assert_eq!(applied["metadata"]["namespace"], Value::Null);
    let role = json!({"metadata": {"name": "r", "namespace": "elsewhere"}, "rules": []});
    let roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles";
    let created = http.ok("POST", roles, role.clone()).await;
    assert_eq!(created["metadata"]["namespace"], Value::Null);
    let put = http.ok("PUT", &format!("{roles}/r"), role).await;
    assert_eq!(put["metadata"]["namespace"], Value::Null);
}

/// A client may apply a definition that another client created.
#[tokio::test]
async fn a_definition_that_was_created_can_be_applied_by_another() {
    let http = Http::start().await;
    for definition in [definition()]
        .into_iter()
        .chain(bellwether_api::definitions().map(|mut it| {
            it["status"] = json!({
                "acceptedNames": {"kind": "", "plural": ""}, "conditions": [], "storedVersions": [],
            });
            it["metadata"]["creationTimestamp"] = Value::Null;
            it
        }))
    {
        let schema = "/spec/versions/0/schema/openAPIV3Schema/properties/spec";
        let mut definition = definition;
        if let Some(spec) = definition.pointer_mut(schema) {
            // One client writes whole numbers with a fraction, another without.
            spec["minProperties"] = 0.into();
            spec["properties"]["extra"] =
                json!({"type": "number", "minimum": 1.0, "maximum": 100, "multipleOf": 0.5});
        }
        let mut other = definition.clone();
        if let Some(extra) = other.pointer_mut(&format!("{schema}/properties/extra")) {
            extra["minimum"] = 1.into();
            extra["maximum"] = 100.0.into();
        }
        let name = definition["metadata"]["name"].as_str().unwrap().to_owned();
        http.ok("POST", DEFINITIONS, definition.clone()).await;
        let path = format!("{DEFINITIONS}/{name}?fieldManager=another");
        let applied = http.patch(APPLY, &path, other).await;
        assert_eq!(applied["metadata"]["name"], name.as_str());
    }
}

/// As kube-apiserver: numbers that nobody set, owners, and what is refused.
#[tokio::test]
async fn the_scale_of_a_custom_resource_is_that_of_kubernetes() {
    let http = Http::start().await;
    let mut definition = definition();
    let version = &mut definition["spec"]["versions"][0];
    version["subresources"]["scale"] =
        json!({"specReplicasPath": ".spec.bells", "statusReplicasPath": ".status.bells"});
    let schema = &mut version["schema"]["openAPIV3Schema"];
    schema["properties"]["status"]["properties"]["bells"] = json!({"type": "integer"});
    schema["properties"]["spec"]
        .as_object_mut()
        .unwrap()
        .remove("required");
    schema["properties"]["spec"]
        .as_object_mut()
        .unwrap()
        .remove("x-kubernetes-validations");
    http.ok("POST", DEFINITIONS, definition).await;
    http.ok("POST", SHEEP, sheep("dolly", json!({}))).await;
    let scale = format!("{SHEEP}/dolly/scale");
    let (code, refused) = http.send("GET", &scale, "", Value::Null).await;
    let why = "the spec replicas field \".spec.bells\" does not exist";
    assert_eq!(code, 500);
    assert_eq!(
        refused["message"],
        format!("Internal error occurred: {why}")
    );
    assert_eq!(refused["details"], json!({"causes": [{"message": why}]}));

    let owners = async || {
        let live = http.ok("GET", &format!("{SHEEP}/dolly"), Value::Null).await;
        let entries = live["metadata"]["managedFields"]
            .as_array()
            .unwrap()
            .clone();
        let owners = entries
            .iter()
            .filter(|entry| entry["subresource"] == "scale");
        owners
            .map(|entry| entry["manager"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let replicas = |count: i64| json!({"spec": {"replicas": count}});
    http.patch(MERGE, &format!("{scale}?fieldManager=one"), replicas(2))
        .await;
    assert_eq!(owners().await, [""; 0]);
    http.patch(
        MERGE,
        &format!("{SHEEP}/dolly?fieldManager=me"),
        json!({"spec": {"bells": 3}}),
    )
    .await;
    http.patch(MERGE, &format!("{scale}?fieldManager=two"), replicas(4))
        .await;
    assert_eq!(owners().await, ["two"]);

    let (code, refused) = http.send("PATCH", &scale, MERGE, replicas(-1)).await;
    assert_eq!(code, 422);
    assert_eq!(
        refused["message"],
        "Sheep.flock.example.com \"dolly\" is invalid: [spec.bells: Invalid value: -1: spec.bells in body should be greater than or equal to 0, .spec.bells: Invalid value: -1: should be a non-negative integer]"
    );
    let put = |body: Value| http.send("PUT", &scale, "application/json", body);
    let (code, _) = put(json!({"metadata": {"name": "other"}, "spec": {}})).await;
    assert_eq!(code, 400);
    let (code, _) = put(json!({"metadata": {"name": "dolly"}, "spec": {"replicas": 5}})).await;
    assert_eq!(code, 200);
    let (code, refused) = http.send("DELETE", &scale, "", Value::Null).await;
    assert_eq!(code, 405);
    assert_eq!(
        refused["message"],
        "delete is not supported on resources of kind \"sheep.flock.example.com\""
    );
}
