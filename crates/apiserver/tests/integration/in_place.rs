//! Patches of a few items of a large object: whether they are applied to a part of it or to the whole, the outcome is
//! the same, in what is stored and in what is said.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails"
)]
#![allow(clippy::needless_pass_by_value, reason = "bodies are written in place")]

use crate::common;

use common::http::{Http, MERGE};
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const FLEETS: &str = "/apis/sea.example.com/v1/namespaces/default/fleets";
const JSON: &str = "application/json-patch+json";
/// How many ships there are: enough for an object of 40 KB.
const SHIPS: usize = 600;

fn definition(extra: Value) -> Value {
    let mut ship = json!({"type": "object", "required": ["name"], "properties": {
        "name": {"type": "string"},
        "state": {"type": "string", "enum": ["docked", "sailing"]},
        "flag": {"type": "string", "default": "none"},
        "crew": {"type": "integer", "minimum": 0},
        "ports": {"type": "array", "items": {"type": "string"}},
    }});
    for (name, property) in extra.as_object().into_iter().flatten() {
        ship["properties"][name] = property.clone();
    }
    let ships = json!({"type": "array", "items": ship});
    let part =
        json!({"type": "object", "properties": {"ships": ships, "admiral": {"type": "string"}}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "fleets.sea.example.com"},
        "spec": {
            "group": "sea.example.com", "scope": "Namespaced",
            "names": {"plural": "fleets", "singular": "fleet", "kind": "Fleet", "listKind": "FleetList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object",
                    "properties": {"spec": part, "status": part}}}}],
        },
    })
}

/// Two fleets that are the same but for their names.
struct Twins(Http);

impl Twins {
    async fn start() -> Self {
        let http = Http::start().await;
        http.ok("POST", DEFINITIONS, definition(json!({}))).await;
        let twins = Self(http);
        let ship = |number: usize| json!({"name": format!("ship \"{number}\""), "state": "docked"});
        let ships: Vec<Value> = (0..SHIPS).map(ship).collect();
        for name in ["part", "whole"] {
            let fleet = json!({"apiVersion": "sea.example.com/v1", "kind": "Fleet",
                "metadata": {"name": name, "labels": {"a": "b"}}, "spec": {"ships": ships}});
            twins.0.ok("POST", FLEETS, fleet).await;
            let status = json!({"status": {"ships": ships, "admiral": "nobody"}});
            let url = format!("{FLEETS}/{name}/status");
            twins.0.patch(MERGE, &url, status).await;
        }
        // The first patch finds out that the object is in order.
        twins
            .agree(
                "/status",
                json!([replace("/status/ships/0/crew", json!(1))]),
            )
            .await;
        twins
    }

    /// Sends a patch to one fleet as it is, and to the other with an operation that needs the whole object.
    async fn agree(&self, subresource: &str, patch: Value) -> (u16, Value) {
        self.agree_with(subresource, patch, "").await
    }

    async fn agree_with(&self, subresource: &str, patch: Value, query: &str) -> (u16, Value) {
        let mut whole = patch.clone();
        let copy =
            json!({"op": "copy", "from": "/metadata/labels/a", "path": "/metadata/labels/a"});
        whole.as_array_mut().unwrap().push(copy);
        let url = |name: &str| format!("{FLEETS}/{name}{subresource}{query}");
        let send = async |name: &str, patch: &Value| {
            let answer = self.0.send("PATCH", &url(name), JSON, patch.clone()).await;
            (answer.0, same_names(answer.1))
        };
        let (one, two) = (send("part", &patch).await, send("whole", &whole).await);
        assert_eq!(one, two, "{patch}");
        let part = self.stored("part").await;
        assert_eq!(part, self.stored("whole").await, "{patch}");
        one
    }

    async fn stored(&self, name: &str) -> Value {
        let url = format!("{FLEETS}/{name}");
        same_names(self.0.ok("GET", &url, Value::Null).await)
    }
}

/// An answer without what tells two objects apart.
fn same_names(mut answer: Value) -> Value {
    if let Some(metadata) = answer["metadata"].as_object_mut() {
        for field in ["name", "uid", "resourceVersion", "creationTimestamp"] {
            metadata.remove(field);
        }
        let entries = metadata.get_mut("managedFields");
        if let Some(entries) = entries.and_then(Value::as_array_mut) {
            for entry in entries.iter_mut() {
                entry["time"] = Value::Null;
            }
            // They are in the order of their times.
            entries.sort_by_key(ToString::to_string);
        }
    }
    let text = answer.to_string().replace("\\\"part\\\"", "\\\"whole\\\"");
    let text = text.replace(r#""name":"part""#, r#""name":"whole""#);
    serde_json::from_str(&text).unwrap()
}

fn replace(pointer: &str, value: Value) -> Value {
    json!({"op": "replace", "path": pointer, "value": value})
}

#[tokio::test]
async fn items_are_changed_filled_in_and_pruned() {
    let twins = Twins::start().await;
    let (_, fleet) = twins
        .agree(
            "/status",
            json!([
                {"op": "test", "path": "/status/ships/17/name", "value": "ship \"17\""},
                replace("/status/ships/17/state", json!("sailing")),
                {"op": "add", "path": "/status/ships/599/ports", "value": ["a", "]"]},
                {"op": "remove", "path": "/status/ships/3/state"},
                replace("/status/ships/9", json!({"name": "new", "unknown": 1})),
                replace("/status/admiral", json!("somebody")),
                replace("/spec/ships/4/state", json!("sailing")),
            ]),
        )
        .await;
    let ships = &fleet["status"]["ships"];
    assert_eq!(ships.as_array().unwrap().len(), SHIPS);
    assert_eq!(ships[17]["state"], "sailing");
    assert_eq!(ships[599]["ports"], json!(["a", "]"]));
    assert_eq!(ships[3].get("state"), None);
    assert_eq!(ships[9], json!({"name": "new", "flag": "none"}));
    assert_eq!(ships[18]["state"], "docked");
    // A status is all that a write of a status changes.
    assert_eq!(fleet["spec"]["ships"][4]["state"], "docked");
    assert_eq!(fleet["metadata"]["generation"], 1);
    let (_, fleet) = twins
        .agree(
            "",
            json!([replace("/spec/ships/4/state", json!("sailing"))]),
        )
        .await;
    assert_eq!(fleet["spec"]["ships"][4]["state"], "sailing");
    assert_eq!(fleet["metadata"]["generation"], 2);
    // Nothing changes, and nothing is written.
    let url = format!("{FLEETS}/part/status");
    let before = twins.0.ok("GET", &url, Value::Null).await;
    let patch = json!([replace("/status/ships/17/state", json!("sailing"))]);
    let after = twins.0.patch(JSON, &url, patch).await;
    assert_eq!(before, after);
}

#[tokio::test]
async fn what_is_wrong_is_said_about_the_whole_object() {
    let twins = Twins::start().await;
    let check = async |patch: Value, code: u16, part: &str| {
        let (found, answer) = twins.agree("/status", patch).await;
        let message = answer["message"].as_str().unwrap_or_default();
        assert!(found == code && message.contains(part), "{found} {message}");
    };
    let wrong = json!([replace("/status/ships/17/state", json!("sunk"))]);
    check(wrong, 422, "status.ships[17].state: Unsupported value").await;
    let wrong = json!([{"op": "remove", "path": "/status/ships/17/name"}]);
    check(wrong, 422, "status.ships[17].name: Required value").await;
    let wrong = json!([replace("/status/ships/600/state", json!("docked"))]);
    check(wrong, 422, "").await;
    let wrong = json!([
        {"op": "test", "path": "/status/ships/17/name", "value": "another"},
        replace("/status/ships/17/state", json!("sailing")),
    ]);
    check(wrong, 422, "").await;
    let wrong = json!([
        replace("/metadata/resourceVersion", json!("1")),
        replace("/status/ships/17/state", json!("sailing")),
    ]);
    check(wrong, 409, "the object has been modified").await;
    let unknown = json!([replace("/status/ships/17/unknown", json!(1))]);
    let strict = twins
        .agree_with("/status", unknown.clone(), "?fieldValidation=Strict")
        .await;
    let message = strict.1["message"].as_str().unwrap();
    assert!(
        message.contains(r#"unknown field "status.ships[17].unknown""#),
        "{message}"
    );
    assert_eq!(twins.agree("/status", unknown).await.0, 200);
}

#[tokio::test]
async fn another_schema_is_applied_to_everything() {
    let twins = Twins::start().await;
    let one = json!([replace("/status/ships/1/crew", json!(2))]);
    let (_, fleet) = twins.agree("/status", one).await;
    assert_eq!(fleet["status"]["ships"][2].get("home"), None);
    // From now on every ship has a home, and those that have none get one with the next write.
    let home = json!({"home": {"type": "string", "default": "here"}});
    let versions = definition(home)["spec"]["versions"].clone();
    let patch = json!([{"op": "replace", "path": "/spec/versions", "value": versions}]);
    let url = format!("{DEFINITIONS}/fleets.sea.example.com");
    twins.0.patch(JSON, &url, patch).await;
    for crew in 3..6 {
        let one = json!([replace("/status/ships/1/crew", json!(crew))]);
        let (_, fleet) = twins.agree("/status", one).await;
        assert_eq!(fleet["status"]["ships"][2]["home"], "here");
        assert_eq!(fleet["status"]["ships"][1]["crew"], crew);
    }
}

#[tokio::test]
async fn a_deleted_object_goes_when_its_last_finalizer_does() {
    let twins = Twins::start().await;
    let url = format!("{FLEETS}/part");
    let finalizers = json!({"metadata": {"finalizers": ["sea.example.com/harbour"]}});
    twins.0.patch(MERGE, &url, finalizers).await;
    twins.0.ok("DELETE", &url, Value::Null).await;
    let patch = json!([
        {"op": "remove", "path": "/metadata/finalizers"},
        replace("/spec/ships/4/state", json!("sailing")),
    ]);
    twins.0.patch(JSON, &url, patch).await;
    let (code, _) = twins.0.send("GET", &url, "", Value::Null).await;
    assert_eq!(code, 404);
}
