//! What a user can see of a namespace, without what has to differ between two clusters: uids, times,
//! addresses, hashes and the random ends of names.

use std::collections::{BTreeMap, BTreeSet};

use kube::Client;
use serde_json::{Map, Value, json};

use super::stage::list;

/// The kinds that are looked at: group and version, plural, and whether it is of the namespace.
const KINDS: &[(&str, &str)] = &[
    ("apis/apps/v1", "deployments"),
    ("apis/apps/v1", "replicasets"),
    ("apis/apps/v1", "statefulsets"),
    ("apis/apps/v1", "daemonsets"),
    ("apis/apps/v1", "controllerrevisions"),
    ("apis/batch/v1", "jobs"),
    ("apis/batch/v1", "cronjobs"),
    ("apis/autoscaling/v2", "horizontalpodautoscalers"),
    ("apis/policy/v1", "poddisruptionbudgets"),
    ("apis/discovery.k8s.io/v1", "endpointslices"),
    ("api/v1", "endpoints"),
    ("api/v1", "pods"),
    ("api/v1", "replicationcontrollers"),
    ("api/v1", "persistentvolumeclaims"),
    ("api/v1", "serviceaccounts"),
];

/// What can be seen: objects by kind and name, and events.
#[derive(Debug, Default)]
pub struct Picture {
    pub objects: BTreeMap<String, Vec<Value>>,
    pub events: BTreeSet<String>,
}

impl Picture {
    /// What there is in a namespace, and the volumes of the cluster.
    pub async fn of(client: &Client, namespace: &str) -> Self {
        let mut found = Vec::new();
        for (version, plural) in KINDS {
            let path = format!("/{version}/namespaces/{namespace}/{plural}");
            let items = list(client, &path).await;
            found.extend(items.into_iter().map(|item| (*plural, item)));
        }
        let volumes = list(client, "/api/v1/persistentvolumes").await;
        found.extend(volumes.into_iter().map(|item| ("persistentvolumes", item)));
        let names = names(&found);
        let mut picture = Self::default();
        for (plural, object) in found {
            let shown = normal(&visible(plural, object), &names);
            let name = shown["metadata"]["name"].as_str().unwrap().to_owned();
            let key = format!("{plural}/{name}");
            picture.objects.entry(key).or_default().push(shown);
        }
        for objects in picture.objects.values_mut() {
            objects.sort_by_key(ToString::to_string);
        }
        let path = format!("/api/v1/namespaces/{namespace}/events");
        for event in list(client, &path).await {
            let about = &event["involvedObject"];
            // What kubelets and schedulers say is not the controller manager's.
            if about["kind"] == "Pod" {
                continue;
            }
            let shown = json!([
                about["kind"],
                about["name"],
                event["type"],
                event["reason"],
                event["message"],
                event["source"]["component"],
            ]);
            picture.events.insert(normal(&shown, &names).to_string());
        }
        picture
    }

    /// A field of the only object of that kind and name.
    pub fn field(&self, key: &str, pointer: &str) -> Value {
        let found = self.objects.get(key).and_then(|objects| objects.first());
        found
            .and_then(|object| object.pointer(pointer))
            .cloned()
            .unwrap_or_default()
    }

    /// How many objects there are of that kind, whatever they are called.
    pub fn count(&self, plural: &str) -> usize {
        let own = self
            .objects
            .iter()
            .filter(|(key, _)| key.split('/').next() == Some(plural));
        own.map(|(_, objects)| objects.len()).sum()
    }
}

/// Names that are made up, and what stands for them.
fn names(found: &[(&str, Value)]) -> Vec<(String, String)> {
    let mut names = Vec::new();
    for (plural, object) in found {
        let metadata = &object["metadata"];
        let name = metadata["name"].as_str().unwrap().to_owned();
        let hash = match *plural {
            "replicasets" => metadata["labels"]["pod-template-hash"].as_str(),
            "controllerrevisions" => name.rsplit('-').next(),
            _ => None,
        };
        if let Some(hash) = hash {
            let revision = match &object["revision"] {
                Value::Null => &metadata["annotations"]["deployment.kubernetes.io/revision"],
                revision => revision,
            };
            names.push((hash.to_owned(), format!("HASH{revision}").replace('"', "")));
        }
        if let Some(prefix) = metadata["generateName"].as_str() {
            names.push((name, format!("{prefix}*")));
        }
    }
    // Longer names first: a hash is part of the name of a pod.
    names.sort_by_key(|(name, _)| std::cmp::Reverse(name.len()));
    names
}

/// The part of an object that controllers write.
fn visible(plural: &str, mut object: Value) -> Value {
    let metadata = object["metadata"].take();
    let mut kept = Map::new();
    for field in [
        "name",
        "generateName",
        "labels",
        "annotations",
        "finalizers",
        "ownerReferences",
    ] {
        if !metadata[field].is_null() {
            kept.insert(field.to_owned(), metadata[field].clone());
        }
    }
    if let Some(annotations) = kept.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove("endpoints.kubernetes.io/last-change-trigger-time");
        if annotations.is_empty() {
            kept.remove("annotations");
        }
    }
    let mut shown = json!({"metadata": kept});
    match plural {
        // Their states are the kubelet's, who is another on each side.
        "pods" => {}
        "endpointslices" => {
            let ends = object["endpoints"].take();
            shown["endpoints"] = if ends.is_null() { json!([]) } else { ends };
            shown["ports"] = object["ports"].take();
        }
        "endpoints" => shown["subsets"] = object["subsets"].take(),
        "controllerrevisions" => shown["revision"] = object["revision"].take(),
        "persistentvolumes" => {
            shown["claim"] = object["spec"]["claimRef"].take();
            if let Some(claim) = shown["claim"].as_object_mut() {
                claim.remove("resourceVersion");
            }
            shown["status"] = object["status"].take();
        }
        "persistentvolumeclaims" => {
            shown["volume"] = object["spec"]["volumeName"].take();
            shown["status"] = object["status"].take();
        }
        _ => {
            shown["replicas"] = object["spec"]["replicas"].take();
            shown["status"] = object["status"].take();
        }
    }
    shown
}

/// The same with what has to differ replaced.
fn normal(value: &Value, names: &[(String, String)]) -> Value {
    match value {
        Value::Object(members) => members
            .iter()
            .map(|(key, value)| {
                let value = match key.as_str() {
                    "uid" | "containerID" => json!("UID"),
                    "nodeName" => json!("NODE"),
                    "resourceVersion" => json!("VERSION"),
                    _ => normal(value, names),
                };
                (replaced(key, names), value)
            })
            .collect(),
        Value::Array(items) => {
            let mut items: Vec<Value> = items.iter().map(|item| normal(item, names)).collect();
            // Lists of conditions and addresses have no order that would mean anything.
            if items.iter().all(Value::is_object) {
                items.sort_by_key(ToString::to_string);
            }
            items.into()
        }
        Value::String(text) => replaced(text, names).into(),
        other => other.clone(),
    }
}

fn replaced(text: &str, names: &[(String, String)]) -> String {
    if text.parse::<jiff::Timestamp>().is_ok() {
        return "TIME".to_owned();
    }
    if text.starts_with("10.244.") {
        return "ADDRESS".to_owned();
    }
    let mut text = text.to_owned();
    for (name, instead) in names {
        text = text.replace(name, instead);
    }
    // Pods that are gone are still spoken of: `Deleted pod: web-HASH1-x7k2p`.
    for before in ["Created pod: ", "Deleted pod: "] {
        if text.starts_with(before)
            && let Some((start, end)) = text.rsplit_once('-')
            && end.len() == 5
        {
            text = format!("{start}-*");
        }
    }
    mask_uids(&text)
}

/// Words that have the form of a uid.
fn mask_uids(text: &str) -> String {
    let is_uid = |word: &str| {
        let parts: Vec<usize> = word.split('-').map(str::len).collect();
        parts == [8, 4, 4, 4, 12]
            && word
                .chars()
                .all(|letter| letter.is_ascii_hexdigit() || letter == '-')
    };
    if is_uid(text) {
        "UID".to_owned()
    } else {
        text.to_owned()
    }
}

/// What is in only one of two pictures.
pub fn differences(real: &Picture, ours: &Picture) -> Vec<String> {
    let mut found = Vec::new();
    let keys: BTreeSet<&String> = real.objects.keys().chain(ours.objects.keys()).collect();
    for key in keys {
        match (real.objects.get(key), ours.objects.get(key)) {
            (Some(real), Some(ours)) if real.len() == ours.len() => {
                for (real, ours) in real.iter().zip(ours) {
                    compare(key, real, ours, &mut found);
                }
            }
            (real, ours) => {
                let count = |objects: Option<&Vec<Value>>| objects.map_or(0, Vec::len);
                found.push(format!("{key}: real {}, ours {}", count(real), count(ours)));
            }
        }
    }
    let only = |who: &str, one: &Picture, other: &Picture| -> Vec<String> {
        let events = one.events.difference(&other.events);
        events.map(|event| format!("only {who}: {event}")).collect()
    };
    found.extend(only("real", real, ours));
    found.extend(only("ours", ours, real));
    found
}

fn compare(place: &str, real: &Value, ours: &Value, found: &mut Vec<String>) {
    match (real, ours) {
        (Value::Object(one), Value::Object(other)) => {
            let keys: BTreeSet<&String> = one.keys().chain(other.keys()).collect();
            for key in keys {
                let place = format!("{place}/{key}");
                compare(&place, &real[key], &ours[key], found);
            }
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            for (at, (real, ours)) in one.iter().zip(other).enumerate() {
                compare(&format!("{place}/{at}"), real, ours, found);
            }
        }
        (real, ours) if real != ours => found.push(format!("{place}: real {real}, ours {ours}")),
        _ => {}
    }
}
