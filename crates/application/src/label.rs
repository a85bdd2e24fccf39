//! Names, namespaces, labels and annotations of rendered objects.

use std::collections::BTreeMap;

use bellwether_api::oam::TraitStage;
use bellwether_api::oam::names::{LOCAL_CLUSTER, annotation, label};
use bellwether_json::path::str_at;
use serde_json::{Map, Value, json};

use crate::context::{AppContext, Target};
use crate::path;
use crate::render::{Component, Output, Rendered};
use crate::revision::short_hash;

/// An object that is ready to be applied, and where it comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// The object.
    pub object: Value,
    /// The component that it belongs to; of a custom policy, its name.
    pub component: String,
    /// The type of the trait that it belongs to; empty for the workload itself.
    pub trait_type: String,
    /// The name of the output; empty for the workload itself.
    pub resource: String,
    /// When it is applied.
    pub stage: TraitStage,
    /// The cluster that it goes to; empty for the hub where nothing is said.
    pub cluster: String,
}

impl Manifest {
    /// What it belongs to, in words: a policy, a component, or a trait of one. `None` if a step made it.
    pub fn origin(&self) -> Option<String> {
        let name = &self.component;
        if name.is_empty() {
            return None;
        }
        // Objects of policies say nothing of a workload or a trait.
        let labels = &self.object["metadata"]["labels"];
        Some(match self.trait_type.as_str() {
            "" if labels.get(label::RESOURCE_TYPE).is_none() => format!("policy {name}"),
            "" => format!("component {name}"),
            trait_type => format!("component {name}, trait {trait_type}"),
        })
    }
}

/// Completes what a component was rendered to: the workload first, unless a trait takes its place.
pub fn complete(
    rendered: Rendered,
    component: &Component,
    app: &AppContext,
    target: &Target,
) -> Vec<Manifest> {
    let mut manifests = Vec::new();
    let name = &component.spec.name;
    let mut workload = rendered.workload;
    if let Some(workload) = &mut workload {
        place(workload, app, &target.namespace);
        name_unless_named(workload, name);
        let labels = [
            (label::COMPONENT, name.as_str()),
            (label::RESOURCE_TYPE, label::WORKLOAD),
            (
                label::WORKLOAD_TYPE,
                component.definition.type_name.as_str(),
            ),
        ];
        mark(workload, app, &labels, &target.cluster);
    }
    let reference = workload.as_ref().map(reference);
    if let Some(object) = workload.filter(|_| !rendered.skip_workload) {
        manifests.push(Manifest {
            cluster: cluster_of(&object),
            object,
            component: name.clone(),
            trait_type: String::new(),
            resource: String::new(),
            stage: TraitStage::DefaultDispatch,
        });
    }
    for output in rendered.outputs {
        manifests.push(complete_output(
            output,
            name,
            app,
            target,
            reference.as_ref(),
        ));
    }
    manifests
}

fn complete_output(
    output: Output,
    component: &str,
    app: &AppContext,
    target: &Target,
    workload: Option<&Value>,
) -> Manifest {
    let stage = output.stage();
    let flag = |name: &str| {
        output
            .definition
            .as_ref()
            .is_some_and(|definition| definition.flag(name))
    };
    let on_hub = flag("controlPlaneOnly");
    let namespace = if on_hub {
        ""
    } else {
        target.namespace.as_str()
    };
    let cluster = if on_hub {
        LOCAL_CLUSTER
    } else {
        target.cluster.as_str()
    };
    let mut object = output.object;
    place(&mut object, app, namespace);
    let path = output
        .definition
        .as_ref()
        .and_then(|definition| definition.workload_ref_path());
    if let (Some(path), Some(workload)) = (path, workload)
        && let Ok(steps) = path::parse(path)
    {
        path::set(&mut object, &steps, workload.clone());
    }
    let mut labels = vec![
        (label::COMPONENT, component),
        (label::RESOURCE_TYPE, label::TRAIT),
        (label::TRAIT_TYPE, output.trait_type.as_str()),
        (label::TRAIT_RESOURCE, output.resource.as_str()),
    ];
    if flag("manageWorkload") {
        labels.push((label::MANAGE_WORKLOAD, "true"));
    }
    mark(&mut object, app, &labels, cluster);
    if str_at(&object, &["metadata", "name"]).is_none() {
        let mut hashed = object.clone();
        bellwether_json::path::remove(&mut hashed, &["metadata", "labels", label::APP_REVISION]);
        bellwether_json::path::remove(
            &mut hashed,
            &["metadata", "labels", label::APP_REVISION_HASH],
        );
        let name = format!(
            "{component}-{}-{}",
            output.trait_type.to_lowercase(),
            short_hash(&hashed)
        );
        object["metadata"]["name"] = name.into();
    }
    Manifest {
        cluster: cluster_of(&object),
        object,
        component: component.to_owned(),
        trait_type: output.trait_type,
        resource: output.resource,
        stage,
    }
}

/// Completes what a custom policy was rendered to. Its objects are on the hub.
pub fn complete_policy(rendered: Rendered, policy: &str, app: &AppContext) -> Vec<Manifest> {
    let outputs = rendered
        .outputs
        .into_iter()
        .map(|output| (output.resource, output.object));
    let workload = rendered
        .workload
        .into_iter()
        .map(|object| (String::new(), object));
    workload
        .chain(outputs)
        .map(|(resource, mut object)| {
            place(&mut object, app, "");
            name_unless_named(&mut object, policy);
            for (key, value) in [
                (label::APP_NAME, app.name.as_str()),
                (label::APP_NAMESPACE, app.namespace.as_str()),
                (label::COMPONENT, policy),
                (label::APP_REVISION, app.revision.as_str()),
            ] {
                set(&mut object, "labels", key, value);
            }
            Manifest {
                object,
                component: policy.to_owned(),
                trait_type: String::new(),
                resource,
                stage: TraitStage::DefaultDispatch,
                cluster: String::new(),
            }
        })
        .collect()
}

/// What a trait refers to the workload by.
fn reference(workload: &Value) -> Value {
    json!({
        "apiVersion": workload["apiVersion"],
        "kind": workload["kind"],
        "name": workload["metadata"]["name"],
    })
}

fn cluster_of(object: &Value) -> String {
    str_at(object, &["metadata", "labels", label::CLUSTER])
        .unwrap_or_default()
        .to_owned()
}

fn name_unless_named(object: &mut Value, name: &str) {
    if str_at(object, &["metadata", "name"]).is_none_or(str::is_empty)
        && object["metadata"]["generateName"].is_null()
    {
        metadata(object).insert("name".to_owned(), name.into());
    }
}

/// Gives an object its namespace: that of the placement goes before its own.
fn place(object: &mut Value, app: &AppContext, namespace: &str) {
    if is_cluster_scoped(object) {
        metadata(object).remove("namespace");
    } else if !namespace.is_empty() {
        metadata(object).insert("namespace".to_owned(), namespace.into());
    } else if str_at(object, &["metadata", "namespace"]).is_none_or(str::is_empty) {
        metadata(object).insert("namespace".to_owned(), app.namespace.as_str().into());
    }
}

/// Whether an object of a built-in kind has no namespace. Of other kinds the cluster knows.
pub fn is_cluster_scoped(object: &Value) -> bool {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kind = object["kind"].as_str().unwrap_or_default();
    bellwether_kinds::find_kind(group, version, kind).is_some_and(|resource| !resource.namespaced)
}

/// Marks an object that is about to be applied by what it was rendered to.
pub fn stamp(object: &mut Value) {
    let hash = short_hash(object);
    set(object, "labels", label::RENDER_HASH, &hash);
}

/// Labels and annotations of the application go before those of templates, and ours before both.
fn mark(object: &mut Value, app: &AppContext, labels: &[(&str, &str)], cluster: &str) {
    // A template may pin an object to a cluster.
    let pinned = cluster_of(object);
    for (key, value) in inherited_labels(app) {
        set(object, "labels", key, value);
    }
    for (key, value) in inherited_annotations(app) {
        set(object, "annotations", key, value);
    }
    for (key, value) in [
        (label::APP_NAME, app.name.as_str()),
        (label::APP_NAMESPACE, app.namespace.as_str()),
        (label::APP_REVISION, app.revision.as_str()),
        (label::APP_REVISION_HASH, app.revision_hash.as_str()),
    ] {
        set(object, "labels", key, value);
    }
    for (key, value) in labels {
        set(object, "labels", key, value);
    }
    let cluster = if pinned.is_empty() { cluster } else { &pinned };
    if !cluster.is_empty() {
        set(object, "labels", label::CLUSTER, cluster);
    }
}

fn inherited_labels(app: &AppContext) -> impl Iterator<Item = (&str, &str)> {
    let left_out = listed(&app.annotations, annotation::FILTER_LABEL_KEYS);
    let labels = app
        .labels
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()));
    labels.filter(move |(key, _)| !left_out.contains(key))
}

fn inherited_annotations(app: &AppContext) -> impl Iterator<Item = (&str, &str)> {
    const OWN: [&str; 5] = [
        annotation::RESTART_WORKFLOW,
        annotation::INPLACE_UPGRADE,
        annotation::FILTER_LABEL_KEYS,
        annotation::FILTER_ANNOTATION_KEYS,
        annotation::KUBECTL_LAST_APPLIED,
    ];
    let left_out = listed(&app.annotations, annotation::FILTER_ANNOTATION_KEYS);
    let annotations = app
        .annotations
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()));
    annotations.filter(move |(key, _)| !OWN.contains(key) && !left_out.contains(key))
}

fn listed<'a>(annotations: &'a BTreeMap<String, String>, key: &str) -> Vec<&'a str> {
    let text = annotations.get(key).map_or("", String::as_str);
    text.split(',')
        .map(str::trim)
        .filter(|key| !key.is_empty())
        .collect()
}

fn metadata(object: &mut Value) -> &mut Map<String, Value> {
    member(object, "metadata")
}

fn set(object: &mut Value, field: &str, key: &str, value: &str) {
    let metadata = metadata(object);
    let entry = metadata.entry(field).or_insert_with(|| json!({}));
    if !entry.is_object() {
        *entry = json!({});
    }
    if let Value::Object(entries) = entry {
        entries.insert(key.to_owned(), value.into());
    }
}

/// A member that is an object; whatever else is there gives way.
fn member<'a>(object: &'a mut Value, name: &str) -> &'a mut Map<String, Value> {
    if !object.is_object() {
        *object = json!({});
    }
    let entry = &mut object[name];
    if !entry.is_object() {
        *entry = json!({});
    }
    match entry {
        Value::Object(fields) => fields,
        // It was made an object above.
        _ => unreachable!("it is an object"),
    }
}
