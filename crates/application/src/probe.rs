//! Answers cases of conformance: one JSON line in, one out.
//!
//! An `app` case is an Application with definitions and objects; the answer has `manifests`, or `error` with
//! `errorStage` and `errorClass`, and always `admission`. A `health` case is a definition with the live state; the answer has
//! `healthy`, `message` and `details`. An `apphealth` case is an Application with live objects; the answer has `services`.

use bellwether_api::oam::Application;
use bellwether_json::path::str_at;
use bellwether_json::yaml::value_from_yaml;
use serde_json::{Map, Value, json};

use crate::admission;
use crate::appfile::{self, Appfile};
use crate::catalog::Catalog;
use crate::definition::DefinitionKind;
use crate::deliver::{Delivery, deliver};
use crate::error::{Class, RenderError, Stage};
use crate::health;
use crate::label::Manifest;
use crate::world::{ClusterVersion, World, is_kind};

/// Answers a case.
pub fn answer(line: &str) -> String {
    let case: Value = match serde_json::from_str(line) {
        Ok(case) => case,
        Err(error) => return json!({"error": error.to_string()}).to_string(),
    };
    let mut answer = match case["kind"].as_str() {
        Some("health") => health_of_definition(&case),
        Some("apphealth") => health_of_application(&case),
        _ => application(&case),
    };
    answer["id"] = case["id"].clone();
    answer.to_string()
}

struct Case {
    application: Result<Application, RenderError>,
    catalog: Catalog,
    world: World,
}

fn read(case: &Value) -> Case {
    // Cases of conformance bring the revisions that they need.
    let mut catalog = Catalog::of_revisions();
    for text in case["extraDefinitions"].as_array().into_iter().flatten() {
        if let Ok(object) = value_from_yaml(text.as_str().unwrap_or_default()) {
            catalog.insert(object);
        }
    }
    let version = ClusterVersion::from_json(&case["clusterVersion"]).unwrap_or_default();
    let mut objects = case["objects"].as_array().cloned().unwrap_or_default();
    objects.iter_mut().for_each(as_served);
    Case {
        application: read_application(case["app"].as_str().unwrap_or_default()),
        catalog,
        world: World::new(version, objects),
    }
}

/// Completes an object as a server returns it that stores typed objects: some fields are never left out.
fn as_served(object: &mut Value) {
    let strategy = match object["kind"].as_str() {
        Some("Deployment") => "strategy",
        Some("StatefulSet" | "DaemonSet") => "updateStrategy",
        _ => return,
    };
    if !object["spec"].is_object() || !object["spec"]["template"].is_object() {
        return;
    }
    let spec = &mut object["spec"];
    let default = |place: &mut Value| {
        if place.is_null() {
            *place = json!({});
        }
    };
    default(&mut spec[strategy]);
    let template = &mut spec["template"];
    default(&mut template["metadata"]);
    template["metadata"]["creationTimestamp"] = Value::Null;
    for list in ["initContainers", "containers"] {
        let containers = template["spec"].get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten() {
            default(&mut container["resources"]);
        }
    }
}

fn read_application(text: &str) -> Result<Application, RenderError> {
    let invalid = |message: String| RenderError::new(Stage::Parse, Class::InvalidInput, message);
    let value = value_from_yaml(text).map_err(|error| invalid(error.to_string()))?;
    serde_json::from_value(value).map_err(|error| invalid(error.to_string()))
}

fn failure(error: &RenderError) -> Value {
    json!({
        "error": error.message,
        "errorStage": error.stage.as_str(),
        "errorClass": error.class.as_str(),
    })
}

fn application(case: &Value) -> Value {
    let case = read(case);
    let application = match &case.application {
        Ok(application) => application,
        Err(error) => {
            let mut answer = failure(error);
            answer["admission"] =
                json!({"allowed": false, "errors": [{"field": "spec", "detail": error.message}]});
            return answer;
        }
    };
    let mut answer = match appfile::parse(application, &case.catalog, &case.world, 1) {
        Ok(appfile) => rendered(&appfile),
        Err(error) => failure(&error),
    };
    let violations = admission::check(application, &case.catalog, &case.world);
    let mut verdict = json!({"allowed": violations.is_empty()});
    if !violations.is_empty() {
        let errors = violations
            .iter()
            .map(|found| json!({"field": found.field, "detail": found.detail}));
        verdict["errors"] = errors.collect();
    }
    answer["admission"] = verdict;
    answer
}

fn rendered(appfile: &Appfile<'_>) -> Value {
    let mut answer = match deliver(appfile) {
        Ok(delivery) => delivered(&delivery),
        Err(error) => failure(&error),
    };
    let steps = serde_json::to_value(&appfile.steps).unwrap_or_default();
    let mode = format!("{}-{}", appfile.mode.0, appfile.mode.1);
    answer["workflow"] = json!({"mode": mode, "steps": steps});
    answer["revision"] = appfile.context.revision.as_str().into();
    answer
}

fn delivered(delivery: &Delivery) -> Value {
    let of_components = delivery
        .components
        .iter()
        .flat_map(|component| &component.manifests);
    let all: Vec<&Manifest> = delivery.policies.iter().chain(of_components).collect();
    let components = delivery.components.iter().map(|component| {
        let target = &component.placed.target;
        let mut entry = json!({
            "name": component.placed.component.name,
            "type": component.component_type,
            "manifests": component.manifests.len(),
        });
        for (name, value) in [
            ("cluster", &target.cluster),
            ("namespace", &target.namespace),
            ("replicaKey", &target.replica_key),
        ] {
            if !value.is_empty() {
                entry[name] = value.as_str().into();
            }
        }
        if component.skip_workload {
            entry["skipApplyWorkload"] = true.into();
        }
        entry
    });
    let policies = delivery.policies.len();
    let origins = all
        .iter()
        .enumerate()
        .map(|(index, manifest)| origin(manifest, index < policies));
    let mut answer = json!({
        "manifests": all.iter().map(|manifest| &manifest.object).collect::<Vec<_>>(),
        "origins": origins.collect::<Vec<_>>(),
        "components": components.collect::<Vec<_>>(),
    });
    if !delivery.not_executed.is_empty() {
        answer["notExecuted"] = delivery.not_executed.clone().into();
    }
    answer
}

fn origin(manifest: &Manifest, is_policy: bool) -> Value {
    if is_policy {
        return json!({"policy": manifest.component});
    }
    let mut origin = Map::from_iter([("component".to_owned(), manifest.component.as_str().into())]);
    for (name, value) in [
        ("trait", &manifest.trait_type),
        ("resource", &manifest.resource),
    ] {
        if !value.is_empty() {
            origin.insert(name.to_owned(), value.as_str().into());
        }
    }
    origin.into()
}

fn health_of_definition(case: &Value) -> Value {
    let read = read(case);
    let kind = match case["definition"]["kind"].as_str() {
        Some("trait") => DefinitionKind::Trait,
        _ => DefinitionKind::Component,
    };
    let name = case["definition"]["name"].as_str().unwrap_or_default();
    let Some(definition) = read.catalog.find(kind, "default", name, false) else {
        return json!({"error": format!("there is no {} {name:?}", kind.object_kind())});
    };
    let verdict = health::judge(&definition, &case["context"], &case["parameter"]);
    let mut answer = json!({"healthy": verdict.healthy, "message": verdict.message});
    if !verdict.details.is_empty() {
        answer["details"] = json!(verdict.details);
    }
    answer
}

fn health_of_application(case: &Value) -> Value {
    let read = read(case);
    let services = || -> Result<Value, String> {
        let application = read.application.as_ref().map_err(ToString::to_string)?;
        let appfile = appfile::parse(application, &read.catalog, &read.world, 1)
            .map_err(|error| error.message)?;
        let delivery = deliver(&appfile).map_err(|error| error.message)?;
        let live = |manifest: &Manifest| {
            read.world
                .objects
                .iter()
                .find(|object| is_same_object(object, &manifest.object))
        };
        let services = delivery
            .components
            .iter()
            .map(|component| health::service(&appfile, component, &live))
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| error.to_string())?;
        Ok(json!({"services": services}))
    };
    services().unwrap_or_else(|error| json!({"error": error}))
}

fn is_same_object(object: &Value, wanted: &Value) -> bool {
    let group = wanted["apiVersion"].as_str().unwrap_or_default();
    let group = group.split_once('/').map_or("", |(group, _)| group);
    let text = |value: &'_ Value, field: &str| {
        str_at(value, &["metadata", field])
            .unwrap_or_default()
            .to_owned()
    };
    is_kind(object, group, wanted["kind"].as_str().unwrap_or_default())
        && text(object, "name") == text(wanted, "name")
        && text(object, "namespace") == text(wanted, "namespace")
}
