//! What pods and nodes use, as `metrics.k8s.io` tells it to `kubectl top`.

use bellwether_json::label::LabelSelector;
use bellwether_json::time;
use bellwether_store::Range;
use http::StatusCode;
use serde_json::{Value, json};

use crate::answer::{Answer, Reply};
use crate::context::RequestContext;
use crate::handler::get::not_found;
use crate::kubelet::{Kubelet, Usage};
use crate::params::ListOptions;
use crate::request::Verb;
use crate::status::ApiError;

/// How long measurements are said to have taken.
const WINDOW: &str = "30s";

/// What a node uses besides its pods.
const NODE_ITSELF: Usage = Usage {
    millicores: 80,
    bytes: 400 << 20,
};

/// Answers requests for measurements.
pub(crate) fn handle(cx: &RequestContext) -> Result<Reply, ApiError> {
    let Some(kubelet) = cx.cluster.kubelet() else {
        return Err(ApiError::no_such_resource());
    };
    let labels = ListOptions::parse(&cx.query, false)?.labels;
    let mut items = if cx.resource.namespaced {
        of_pods(cx, kubelet, &labels)
    } else {
        of_nodes(cx, kubelet, &labels)
    };
    match cx.verb {
        Verb::List => {
            let list = json!({
                "kind": *cx.resource.list_kind, "apiVersion": *cx.resource.api_version,
                "metadata": {}, "items": items,
            });
            Ok(Answer::Value(StatusCode::OK, list).into())
        }
        Verb::Get => {
            let name = cx.name()?;
            items.retain(|item| item["metadata"]["name"] == *name);
            let item = items.pop().ok_or_else(|| not_found(cx))?;
            Ok(Answer::Value(StatusCode::OK, item).into())
        }
        _ => Err(ApiError::method_not_allowed()),
    }
}

fn objects(cx: &RequestContext, prefix: &str, labels: &LabelSelector) -> Vec<Value> {
    let page = cx.cluster.keyspace().range(Range::prefix(prefix));
    let entries = page.map(|page| page.entries).unwrap_or_default();
    let selected = entries.iter().filter(|entry| labels.matches(&*entry.value));
    let objects = selected.map(|entry| entry.value.to_untyped_value());
    objects.collect()
}

/// A measurement, but for its contents.
fn measurement(cx: &RequestContext, object: &Value) -> Value {
    let now = time::format_time(cx.now);
    let mut item = json!({
        "kind": *cx.resource.kind, "apiVersion": *cx.resource.api_version,
        "metadata": {"name": object["metadata"]["name"], "creationTimestamp": now},
        "timestamp": now, "window": WINDOW,
    });
    for field in ["namespace", "labels"] {
        if let Some(found) = object["metadata"].get(field) {
            item["metadata"][field] = found.clone();
        }
    }
    item
}

fn amounts(usage: Usage) -> Value {
    json!({
        "cpu": format!("{}m", usage.millicores),
        "memory": format!("{}Ki", usage.bytes >> 10),
    })
}

/// What each container of a pod uses, by name.
fn of_containers<'a>(
    cx: &RequestContext,
    kubelet: &dyn Kubelet,
    pod: &'a Value,
) -> Vec<(&'a str, Usage)> {
    let containers = pod["spec"]["containers"].as_array().into_iter().flatten();
    containers
        .filter_map(|container| {
            let name = container["name"].as_str()?;
            Some((name, kubelet.usage(pod, name, cx.now)?))
        })
        .collect()
}

fn of_pods(cx: &RequestContext, kubelet: &dyn Kubelet, labels: &LabelSelector) -> Vec<Value> {
    let prefix = match cx.namespace.as_deref() {
        Some(namespace) => format!("core/pods/{namespace}/"),
        None => "core/pods/".to_owned(),
    };
    let pods = objects(cx, &prefix, labels);
    pods.iter()
        .filter_map(|pod| {
            let used = of_containers(cx, kubelet, pod);
            if used.is_empty() {
                return None;
            }
            let mut item = measurement(cx, pod);
            let containers = used
                .into_iter()
                .map(|(name, usage)| json!({"name": name, "usage": amounts(usage)}));
            item["containers"] = containers.collect();
            Some(item)
        })
        .collect()
}

fn of_nodes(cx: &RequestContext, kubelet: &dyn Kubelet, labels: &LabelSelector) -> Vec<Value> {
    let pods = objects(cx, "core/pods/", &LabelSelector::default());
    let nodes = objects(cx, "core/nodes/", labels);
    nodes
        .iter()
        .map(|node| {
            let own = pods
                .iter()
                .filter(|pod| pod["spec"]["nodeName"] == node["metadata"]["name"]);
            let used = own.flat_map(|pod| of_containers(cx, kubelet, pod));
            let sum = used.fold(NODE_ITSELF, |sum, (_, usage)| sum + usage);
            let mut item = measurement(cx, node);
            item["usage"] = amounts(sum);
            item
        })
        .collect()
}
