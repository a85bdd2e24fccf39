//! Managers that use different API versions of a kind.

use serde_json::json;

use super::*;

/// `toys/v1` calls `spec.title` what `toys/v2` calls `spec.name`; `toys/v0` is not served any more.
#[derive(Debug)]
struct Renamed {
    first: Schema,
    second: Schema,
}

impl Renamed {
    fn new() -> Self {
        let spec = |name| object([("spec", object([(name, text()), ("count", text())]))]);
        Self {
            first: spec("title"),
            second: spec("name"),
        }
    }

    fn write<'a>(&'a self, version: &'a str, manager: &'a str) -> Write<'a> {
        Write {
            schema: self.schema(version).unwrap(),
            api_version: version,
            kind: "Gadget",
            subresource: "",
            manager,
            reset_fields: None,
            now: NOW,
            versions: Some(self),
        }
    }
}

impl Versions for Renamed {
    fn schema(&self, api_version: &str) -> Option<&Schema> {
        match api_version {
            "toys/v1" => Some(&self.first),
            "toys/v2" => Some(&self.second),
            _ => None,
        }
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, String> {
        let mut object = object.clone();
        object["apiVersion"] = api_version.into();
        let (from, to) = if api_version == "toys/v1" {
            ("name", "title")
        } else {
            ("title", "name")
        };
        if let Some(Value::Object(spec)) = object.get_mut("spec")
            && let Some(value) = spec.remove(from)
        {
            spec.insert(to.to_owned(), value);
        }
        Ok(object)
    }
}

fn object_in(version: &str, spec: &Value) -> Value {
    json!({"apiVersion": version, "kind": "Gadget", "metadata": {"name": "top", "uid": "1"}, "spec": spec})
}

fn created(versions: &Renamed) -> Value {
    let configuration = object_in("toys/v1", &json!({"title": "x", "count": "1"}));
    apply(
        &json!({}),
        &configuration,
        &versions.write("toys/v1", "m1"),
        false,
    )
    .unwrap()
    .object
}

#[test]
fn a_conflict_is_found_in_the_version_of_the_owner() {
    let versions = Renamed::new();
    let live = versions.convert(&created(&versions), "toys/v2").unwrap();
    let configuration = object_in("toys/v2", &json!({"name": "y"}));
    let write = versions.write("toys/v2", "m2");
    let refused = apply(&live, &configuration, &write, false).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "Apply failed with 1 conflict: conflict with \"m1\": .spec.title"
    );
    let forced = apply(&live, &configuration, &write, true).unwrap().object;
    assert_eq!(forced["spec"], json!({"name": "y", "count": "1"}));
    let fields: Vec<_> = forced["metadata"]["managedFields"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| json!([entry["apiVersion"], entry["fieldsV1"]]))
        .collect();
    assert_eq!(
        fields,
        [
            json!(["toys/v1", {"f:spec": {"f:count": {}}}]),
            json!(["toys/v2", {"f:spec": {"f:name": {}}}]),
        ]
    );
}

#[test]
fn an_applier_that_moves_to_another_version_keeps_its_entry() {
    let versions = Renamed::new();
    let live = versions.convert(&created(&versions), "toys/v2").unwrap();
    let configuration = object_in("toys/v2", &json!({"name": "x"}));
    let applied = apply(
        &live,
        &configuration,
        &versions.write("toys/v2", "m1"),
        false,
    )
    .unwrap()
    .object;
    assert_eq!(applied["spec"], json!({"name": "x"}));
    let entries = applied["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0]["apiVersion"], "toys/v2");
}

#[test]
fn entries_of_a_version_that_is_gone_are_dropped() {
    let versions = Renamed::new();
    let mut live = created(&versions);
    live["metadata"]["managedFields"][0]["apiVersion"] = "toys/v0".into();
    let mut new = live.clone();
    new["spec"]["count"] = "2".into();
    let updated = update(&live, new, &versions.write("toys/v1", "editor"));
    let entries = updated["metadata"]["managedFields"].as_array().unwrap();
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0]["manager"], "editor");
}
