//! The operations on a resource, with the parameters that clients look for before they use them.

use serde_json::{Map, Value, json};

use crate::request::Verb;
use crate::resource::Resource;

/// Adds the paths of a resource.
pub(super) fn add(resource: &Resource, paths: &mut Map<String, Value>) {
    let root = if resource.group.is_empty() {
        format!("/api/{}", resource.version)
    } else {
        format!("/apis/{}/{}", resource.group, resource.version)
    };
    let collection = if resource.namespaced {
        format!("{root}/namespaces/{{namespace}}/{}", resource.plural)
    } else {
        format!("{root}/{}", resource.plural)
    };
    let on_collection = [
        ("get", Verb::List),
        ("post", Verb::Create),
        ("delete", Verb::DeleteCollection),
    ];
    let on_item = [
        ("get", Verb::Get),
        ("put", Verb::Update),
        ("patch", Verb::Patch),
        ("delete", Verb::Delete),
    ];
    let mut put = |path: String, operations: &[(&str, Verb)]| {
        let mut entry: Map<String, Value> = operations
            .iter()
            .filter(|(_, verb)| resource.verbs.contains(verb))
            .map(|(method, verb)| ((*method).to_owned(), operation(resource, *verb)))
            .collect();
        if entry.is_empty() {
            return;
        }
        entry.insert("parameters".into(), path_parameters(&path));
        paths.insert(path, Value::Object(entry));
    };
    put(format!("{collection}/{{name}}"), &on_item);
    put(collection, &on_collection);
}

fn operation(resource: &Resource, verb: Verb) -> Value {
    let group = resource.group.split('.').next().unwrap_or_default();
    let action = match verb {
        Verb::Update => "put",
        Verb::Create => "post",
        other => other.as_str(),
    };
    json!({
        "operationId": format!("{}{}{}{}", verb.as_str(), group, resource.version, resource.kind),
        "parameters": query_parameters(verb),
        "responses": {"200": {"description": "OK"}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind":
            {"group": *resource.group, "version": *resource.version, "kind": *resource.kind},
    })
}

fn query_parameters(verb: Verb) -> Vec<Value> {
    let names: &[&str] = match verb {
        Verb::Create | Verb::Update => &["dryRun", "fieldManager", "fieldValidation"],
        Verb::Patch => &["dryRun", "fieldManager", "fieldValidation", "force"],
        Verb::Delete => &["dryRun", "gracePeriodSeconds", "propagationPolicy"],
        Verb::List | Verb::Watch | Verb::DeleteCollection => &[
            "allowWatchBookmarks",
            "continue",
            "fieldSelector",
            "labelSelector",
            "limit",
            "resourceVersion",
            "resourceVersionMatch",
            "sendInitialEvents",
            "timeoutSeconds",
            "watch",
        ],
        Verb::Get => &["resourceVersion"],
    };
    names.iter().map(|name| parameter(name, "query")).collect()
}

fn path_parameters(path: &str) -> Value {
    let names = ["namespace", "name"];
    names
        .iter()
        .filter(|name| path.contains(&format!("{{{name}}}")))
        .map(|name| parameter(name, "path"))
        .collect()
}

fn parameter(name: &str, place: &str) -> Value {
    let kind = match name {
        "limit" | "timeoutSeconds" | "gracePeriodSeconds" => "integer",
        "watch" | "force" | "allowWatchBookmarks" | "sendInitialEvents" => "boolean",
        _ => "string",
    };
    let mut parameter =
        json!({"name": name, "in": place, "schema": {"type": kind, "uniqueItems": true}});
    if place == "path" {
        parameter["required"] = true.into();
    }
    parameter
}
