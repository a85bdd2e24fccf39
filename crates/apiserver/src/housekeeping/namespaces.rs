//! A deleted namespace takes everything in it along, then goes itself.

use std::sync::Arc;

use bellwether_store::Range;
use serde_json::{Value, json};

use crate::cluster::Cluster;
use crate::context::RequestContext;
use crate::handler::delete::{Outcome, delete_object};
use crate::housekeeping::rewrite::rewrite;
use crate::params::DeleteOptions;

const CONTROLLER: &str = "namespace-controller";
const PREFIX: &str = "core/namespaces/";

/// The key of the namespace that an object was in, if that is being deleted.
pub(super) fn of_key(cluster: &Cluster, key: &str) -> Option<Arc<str>> {
    let namespace = key
        .split('/')
        .nth(2)
        .filter(|_| key.matches('/').count() == 3)?;
    let entry = cluster.keyspace().get(&format!("{PREFIX}{namespace}"))?;
    entry.value.is_deleting().then_some(entry.key)
}

/// Removes the contents of a deleted namespace, and the namespace once it is empty.
pub(super) async fn finish(cluster: &Arc<Cluster>, key: &str) {
    let Some(entry) = cluster
        .keyspace()
        .get(key)
        .filter(|entry| entry.value.is_deleting())
    else {
        return;
    };
    let namespace = key.strip_prefix(PREFIX).unwrap_or(key);
    let held = remove_contents(cluster, namespace).await;
    let Some(resource) = cluster.resources().find("", "v1", "namespaces").cloned() else {
        return;
    };
    let cx = RequestContext::internal(cluster, &resource, &entry.key, CONTROLLER);
    let result = rewrite(&cx, |namespace| {
        if held.is_empty() {
            remove_finalizer(namespace);
        } else {
            namespace["status"]["conditions"] = conditions(namespace, &held, &cx);
        }
    })
    .await;
    if let Err(error) = result
        && error.reason != "NotFound"
    {
        tracing::warn!(cluster = cluster.name(), name = namespace, %error, "cannot finish a namespace");
    }
}

fn remove_finalizer(namespace: &mut Value) {
    if let Some(finalizers) = namespace["spec"]["finalizers"].as_array_mut() {
        finalizers.retain(|name| name != "kubernetes");
    }
}

/// Deletes all objects in a namespace; returns those that wait for their finalizers.
async fn remove_contents(cluster: &Arc<Cluster>, namespace: &str) -> Vec<Held> {
    let mut held = Vec::new();
    let resources = cluster.resources();
    for resource in resources.stored().filter(|resource| resource.namespaced) {
        let prefix = resource.collection_prefix(Some(namespace));
        let range = Range::prefix(&prefix);
        let Ok(page) = cluster.keyspace().range(range) else {
            continue;
        };
        for entry in page.entries {
            let cx = RequestContext::internal(cluster, resource, &entry.key, CONTROLLER);
            let options = DeleteOptions {
                grace_period_seconds: Some(0),
                ..DeleteOptions::default()
            };
            match delete_object(&cx, &options).await {
                Ok(Outcome::Marked(object)) => held.push(Held {
                    resource: resource.subject().to_string(),
                    finalizers: crate::metadata::finalizers(&object)
                        .into_iter()
                        .map(str::to_owned)
                        .collect(),
                }),
                Ok(Outcome::Gone(_)) => {}
                Err(error) if error.reason == "NotFound" => {}
                Err(error) => {
                    tracing::warn!(cluster = cluster.name(), name = &*entry.key, %error, "cannot delete");
                }
            }
        }
    }
    held
}

/// An object that is not gone yet.
#[derive(Debug)]
struct Held {
    resource: String,
    finalizers: Vec<String>,
}

/// Conditions that tell people what a namespace waits for, as Kubernetes words them.
fn conditions(live: &Value, held: &[Held], cx: &RequestContext) -> Value {
    let count = |names: Vec<&str>, what: &str| -> String {
        let mut counts: std::collections::BTreeMap<&str, usize> = std::collections::BTreeMap::new();
        for name in names {
            *counts.entry(name).or_default() += 1;
        }
        let parts: Vec<String> = counts
            .into_iter()
            .map(|(name, count)| format!("{name} {what} {count} resource instances"))
            .collect();
        parts.join(", ")
    };
    let resources = count(
        held.iter().map(|held| held.resource.as_str()).collect(),
        "has",
    );
    let finalizers = count(
        held.iter()
            .flat_map(|held| &held.finalizers)
            .map(String::as_str)
            .collect(),
        "in",
    );
    let condition = |kind: &str, reason: &str, message: String| {
        let before = live["status"]["conditions"]
            .as_array()
            .into_iter()
            .flatten();
        let since = before
            .filter(|found| found["type"] == *kind)
            .map(|found| found["lastTransitionTime"].clone())
            .next();
        let now = bellwether_json::time::format_time(cx.now);
        json!({
            "type": kind, "status": "True", "reason": reason, "message": message,
            "lastTransitionTime": since.unwrap_or_else(|| now.into()),
        })
    };
    json!([
        condition(
            "NamespaceContentRemaining",
            "SomeResourcesRemain",
            format!("Some resources are remaining: {resources}")
        ),
        condition(
            "NamespaceFinalizersRemaining",
            "SomeFinalizersRemain",
            format!("Some content in the namespace has finalizers remaining: {finalizers}")
        ),
    ])
}
