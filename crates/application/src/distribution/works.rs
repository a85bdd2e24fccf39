//! The works that bring a distributed application to its clusters, and what they report.

use std::collections::BTreeMap;

use bellwether_api::delivery::names::label as own_label;
use bellwether_api::delivery::{Distribution, DistributionCluster};
use bellwether_api::meta;
use bellwether_api::oam::ComponentService;
use bellwether_api::oam::names::label;
use bellwether_api::work::ManifestWork;
use bellwether_json::path::i64_at;
use serde_json::{Value, json};

use super::{Selected, distribute};
use crate::member;
use crate::resources::RenderedObject;

/// Kinds that have replicas also where nothing is said about them.
const REPLICATED: [&str; 3] = ["Deployment", "StatefulSet", "ReplicaSet"];

/// What a cluster gets.
#[derive(Debug, Clone, PartialEq)]
pub struct ClusterShare {
    /// The work, in the namespace of the cluster.
    pub work: Value,
    /// Replicas of its workloads, by component.
    pub replicas: BTreeMap<String, i64>,
}

/// Name of the works of a distribution. Distributions of other namespaces have others.
pub fn work_name(namespace: &str, name: &str) -> String {
    format!("{namespace}-{name}")
}

/// How many replicas an object has; `None` if it has none at all.
pub fn replicas_of(object: &Value) -> Option<i64> {
    let kind = object["kind"].as_str().unwrap_or_default();
    let given = i64_at(object, &["spec", "replicas"]);
    given.or_else(|| REPLICATED.contains(&kind).then_some(1))
}

/// What each cluster gets.
pub fn works(
    distribution: &Distribution,
    application: &str,
    rendered: &[RenderedObject],
    selected: &[Selected],
) -> BTreeMap<String, ClusterShare> {
    let mut objects: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut replicas: BTreeMap<String, BTreeMap<String, i64>> = BTreeMap::new();
    for component in components(rendered) {
        let own = || rendered.iter().filter(|it| it.component == component);
        let workload = own()
            .find(|it| it.is_workload())
            .and_then(|it| replicas_of(&it.object));
        // A component without replicas goes to all clusters that are selected.
        let targets = distribute(selected, workload.unwrap_or(0));
        for rendered in own() {
            let shares = replicas_of(&rendered.object).map(|total| distribute(selected, total));
            for cluster in targets.keys() {
                let share = shares
                    .as_ref()
                    .map(|shares| shares.get(cluster).copied().unwrap_or(0));
                let object = for_cluster(
                    &rendered.object,
                    cluster,
                    namespace_of(selected, cluster),
                    share,
                );
                objects.entry(cluster.clone()).or_default().push(object);
                if let (Some(share), true) = (share, rendered.is_workload()) {
                    replicas
                        .entry(cluster.clone())
                        .or_default()
                        .insert(component.to_owned(), share);
                }
            }
        }
    }
    let share = |(cluster, objects): (String, Vec<Value>)| {
        let work = work(distribution, application, &cluster, &objects);
        let replicas = replicas.remove(&cluster).unwrap_or_default();
        (cluster, ClusterShare { work, replicas })
    };
    objects.into_iter().map(share).collect()
}

fn components(rendered: &[RenderedObject]) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for object in rendered {
        if !names.contains(&object.component.as_str()) {
            names.push(&object.component);
        }
    }
    names
}

fn namespace_of<'a>(selected: &'a [Selected], cluster: &str) -> &'a str {
    let entry = selected
        .iter()
        .find(|entry| entry.clusters.iter().any(|name| name == cluster));
    entry.map_or("", |entry| entry.namespace.as_str())
}

fn for_cluster(object: &Value, cluster: &str, namespace: &str, replicas: Option<i64>) -> Value {
    let mut object = object.clone();
    if !namespace.is_empty() && object["metadata"]["namespace"].is_string() {
        object["metadata"]["namespace"] = json!(namespace);
    }
    object["metadata"]["labels"][label::CLUSTER] = json!(cluster);
    if let Some(replicas) = replicas {
        object["spec"]["replicas"] = json!(replicas);
    }
    object
}

fn work(distribution: &Distribution, application: &str, cluster: &str, objects: &[Value]) -> Value {
    let name = distribution.metadata.name.as_deref().unwrap_or_default();
    let namespace = distribution
        .metadata
        .namespace
        .as_deref()
        .unwrap_or_default();
    let configs: Vec<Value> = objects
        .iter()
        .map(|object| member::feedback(object, std::iter::empty()))
        .collect();
    json!({
        "apiVersion": "work.open-cluster-management.io/v1",
        "kind": "ManifestWork",
        "metadata": {
            "name": work_name(namespace, name),
            "namespace": cluster,
            "labels": {
                own_label::DISTRIBUTION: name,
                own_label::DISTRIBUTION_NAMESPACE: namespace,
                label::APP_NAME: application,
                label::APP_NAMESPACE: namespace,
                label::APP_REVISION: distribution.spec.app_revision,
            },
        },
        "spec": {"workload": {"manifests": objects}, "manifestConfigs": configs},
    })
}

/// Where the components of a distribution stand on each cluster.
pub fn services(distribution: &Distribution) -> Vec<ComponentService> {
    let status = distribution.status.iter();
    let clusters = status.flat_map(|status| &status.clusters);
    let namespace = distribution.metadata.namespace.clone().unwrap_or_default();
    let service =
        |cluster: &DistributionCluster, component: &str, replicas: i64| ComponentService {
            name: component.to_owned(),
            namespace: namespace.clone(),
            cluster: cluster.name.clone(),
            healthy: cluster.available,
            workload_healthy: cluster.available,
            message: if cluster.available {
                format!("Ready:{replicas}/{replicas}")
            } else {
                cluster.message.clone()
            },
            ..ComponentService::default()
        };
    clusters
        .flat_map(|cluster| {
            let replicas = cluster.replicas.iter();
            replicas.map(move |(component, replicas)| service(cluster, component, *replicas))
        })
        .collect()
}

/// What a cluster has of its share, as its work reports.
pub fn report(
    cluster: &str,
    share: &ClusterShare,
    work: Option<&ManifestWork>,
) -> DistributionCluster {
    let message = waits_for(share, work);
    DistributionCluster {
        name: cluster.to_owned(),
        replicas: share.replicas.clone(),
        available: message.is_none(),
        message: message.unwrap_or_default(),
        ..DistributionCluster::default()
    }
}

/// What is missing on a cluster.
fn waits_for(share: &ClusterShare, work: Option<&ManifestWork>) -> Option<String> {
    let Some(work) = work else {
        return Some("its work is not there yet".to_owned());
    };
    let conditions = work
        .status
        .as_ref()
        .map(|status| status.conditions.as_slice());
    let generation = work.metadata.generation;
    for kind in ["Applied", "Available"] {
        let condition = meta::condition(conditions.unwrap_or_default(), kind);
        let is_of_this = condition.is_some_and(|it| it.observed_generation == generation);
        match condition {
            Some(condition) if is_of_this && condition.status == meta::TRUE => {}
            Some(condition) if is_of_this => return Some(condition.message.clone()),
            _ => return Some("the member has not reported yet".to_owned()),
        }
    }
    let manifests = share
        .work
        .pointer("/spec/workload/manifests")
        .and_then(Value::as_array);
    manifests
        .into_iter()
        .flatten()
        .find_map(|manifest| unready(work, manifest))
}

/// Why a workload on a member is not ready.
fn unready(work: &ManifestWork, manifest: &Value) -> Option<String> {
    let kind = manifest["kind"].as_str().unwrap_or_default();
    if !REPLICATED.contains(&kind) {
        return None;
    }
    let wanted = replicas_of(manifest)?;
    let live = member::live(work, manifest);
    let number = |path: &[&str]| {
        live.as_ref()
            .and_then(|live| i64_at(live, path))
            .unwrap_or(0)
    };
    let is_seen = number(&["status", "observedGeneration"]) >= number(&["metadata", "generation"]);
    let mut ready = if is_seen {
        number(&["status", "readyReplicas"])
    } else {
        0
    };
    if is_replaced(manifest) {
        // Replicas of the version before are ready for as long as the new one is not.
        let updated = number(&["status", "updatedReplicas"]);
        let old = (number(&["status", "replicas"]) - updated).max(0);
        ready = (ready - old).clamp(0, updated.max(0));
    }
    let name = manifest["metadata"]["name"].as_str().unwrap_or_default();
    (ready < wanted).then(|| format!("{kind} {name}: {ready} of {wanted} replicas are ready"))
}

/// True if all replicas of a workload are replaced when its template changes.
fn is_replaced(manifest: &Value) -> bool {
    match manifest["kind"].as_str().unwrap_or_default() {
        "Deployment" => true,
        "StatefulSet" => {
            let strategy = &manifest["spec"]["updateStrategy"];
            let partition = strategy["rollingUpdate"]["partition"].as_i64();
            strategy["type"] != "OnDelete" && partition.unwrap_or(0) == 0
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Share;
    use super::*;

    fn distribution() -> Distribution {
        serde_json::from_value(json!({
            "metadata": {"name": "shop-step-0", "namespace": "default"},
            "spec": {"appRevision": "shop-v1"},
        }))
        .unwrap()
    }

    fn object(component: &str, kind: &str, replicas: Option<i64>) -> RenderedObject {
        let mut object = json!({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": component, "namespace": "default",
            "labels": {label::RESOURCE_TYPE: if kind == "Service" { "TRAIT" } else { "WORKLOAD" }}}});
        if let Some(replicas) = replicas {
            object["spec"] = json!({"replicas": replicas});
        }
        RenderedObject {
            component: component.to_owned(),
            object,
        }
    }

    fn selected() -> Vec<Selected> {
        let entry = |percent, cluster: &str| Selected {
            share: Share::Percent(percent),
            clusters: vec![cluster.to_owned()],
            namespace: String::new(),
        };
        vec![entry(70, "east"), entry(20, "west")]
    }

    #[test]
    fn every_cluster_gets_its_share_of_each_component() {
        let rendered = [
            object("web", "Deployment", Some(10)),
            object("web", "Service", None),
            object("one", "Deployment", None),
            object("all", "DaemonSet", None),
        ];
        let works = works(&distribution(), "shop", &rendered, &selected());
        let names = |cluster: &str| -> Vec<(String, Option<i64>)> {
            let manifests = works[cluster]
                .work
                .pointer("/spec/workload/manifests")
                .unwrap();
            let list = manifests.as_array().unwrap().iter();
            list.map(|it| {
                (
                    format!(
                        "{}/{}",
                        it["kind"].as_str().unwrap(),
                        it["metadata"]["name"].as_str().unwrap()
                    ),
                    it["spec"]["replicas"].as_i64(),
                )
            })
            .collect()
        };
        let text = |list: &[(&str, Option<i64>)]| {
            list.iter()
                .map(|(name, it)| ((*name).to_owned(), *it))
                .collect::<Vec<_>>()
        };
        assert_eq!(
            names("east"),
            text(&[
                ("Deployment/web", Some(7)),
                ("Service/web", None),
                ("Deployment/one", Some(1)),
                ("DaemonSet/all", None)
            ])
        );
        assert_eq!(
            names("west"),
            text(&[
                ("Deployment/web", Some(2)),
                ("Service/web", None),
                ("DaemonSet/all", None)
            ])
        );
        assert_eq!(
            works["east"].replicas,
            [("web".to_owned(), 7), ("one".to_owned(), 1)].into()
        );
        let labels = &works["east"].work["metadata"]["labels"];
        assert_eq!(
            (&labels[label::APP_NAME], &labels[label::APP_REVISION]),
            (&json!("shop"), &json!("shop-v1"))
        );
    }

    #[test]
    fn a_cluster_is_available_when_its_workloads_are_ready() {
        let rendered = [object("web", "Deployment", Some(2))];
        let mut entry = selected();
        entry.truncate(1);
        entry[0].share = Share::Percent(100);
        let share = works(&distribution(), "shop", &rendered, &entry)
            .remove("east")
            .unwrap();
        let reported_with = |replicas: i64,
                             updated: i64,
                             ready: i64,
                             observed: i64|
         -> ManifestWork {
            let value = |name: &str, number: i64| json!({"name": format!("status.{name}"), "fieldValue": {"type": "Integer", "integer": number}});
            let condition = |kind: &str| json!({"type": kind, "status": "True", "reason": "X", "message": "", "observedGeneration": observed, "lastTransitionTime": "2026-01-01T00:00:00Z"});
            serde_json::from_value(json!({"metadata": {"name": "w", "namespace": "east", "generation": 2}, "spec": {}, "status": {
                "conditions": [condition("Applied"), condition("Available")],
                "resourceStatus": {"manifests": [{
                    "resourceMeta": {"ordinal": 0, "group": "apps", "version": "v1", "kind": "Deployment", "resource": "deployments", "name": "web", "namespace": "default"},
                    "conditions": [condition("Applied")],
                    "statusFeedback": {"values": [value("replicas", replicas), value("updatedReplicas", updated), value("readyReplicas", ready)]},
                }]},
            }}))
            .unwrap()
        };
        let reported = |ready, observed| reported_with(2, 2, ready, observed);
        let told = |work: Option<&ManifestWork>| report("east", &share, work).message;
        assert_eq!(told(None), "its work is not there yet");
        assert_eq!(
            told(Some(&reported(2, 1))),
            "the member has not reported yet"
        );
        assert_eq!(
            told(Some(&reported(1, 2))),
            "Deployment web: 1 of 2 replicas are ready"
        );
        assert!(report("east", &share, Some(&reported(2, 2))).available);
        // One replica of the new version beside two of the old one, which are the ones that are ready.
        assert_eq!(
            told(Some(&reported_with(3, 1, 2, 2))),
            "Deployment web: 0 of 2 replicas are ready"
        );
        assert_eq!(
            told(Some(&reported_with(3, 2, 2, 2))),
            "Deployment web: 1 of 2 replicas are ready"
        );
    }

    #[test]
    fn workloads_whose_replicas_stay_are_not_waited_for() {
        let set = |spec: Value| json!({"kind": "StatefulSet", "spec": spec});
        assert!(is_replaced(&set(json!({"replicas": 2}))));
        let partition = json!({"updateStrategy": {"rollingUpdate": {"partition": 1}}});
        assert!(!is_replaced(&set(partition)));
        assert!(!is_replaced(&set(
            json!({"updateStrategy": {"type": "OnDelete"}})
        )));
        assert!(!is_replaced(&json!({"kind": "ReplicaSet", "spec": {}})));
    }
}
