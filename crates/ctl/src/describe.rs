//! `describe`: an object at length, with its events and what belongs to it, as kubectl shows it.
//!
//! Reading is here; what is written about a kind is a function of its own over what was read
//! (`pod`, `workload`, `network`, …). Kinds without one are shown field by field (`generic`).

mod access;
mod certificate;
mod config;
mod containers;
mod events;
mod generic;
mod network;
mod network_policy;
mod node;
mod page;
mod pod;
mod read;
mod scaling;
mod storage;
mod subject;
mod volumes;
mod workload;

use std::io::Write;

use jiff::Timestamp;
use jiff::tz::TimeZone;
use serde_json::Value;

use crate::connection::Connection;
use crate::error::Error;
use crate::request::{self, JSON, escape, with_query};
use crate::selection::{Scope, targets};
use crate::types::{Type, Types};
use page::Page;
use read::{selector, text};
use subject::{Moment, Related, Subject};

/// Writes what is to be said about an object.
type Describer = fn(&Subject<'_>, &mut Page);

/// The kinds that have a description of their own, and whether their events are shown.
const DESCRIBERS: &[(&str, &str, Describer, bool)] = &[
    ("", "Pod", pod::describe, true),
    ("", "Node", node::describe, true),
    ("", "Namespace", config::namespace, false),
    ("", "ResourceQuota", config::quota, false),
    ("", "LimitRange", config::limit_range, false),
    ("", "ConfigMap", config::config_map, true),
    ("", "Secret", config::secret, false),
    ("", "Service", network::service, true),
    ("", "Endpoints", network::endpoints_object, true),
    ("", "ServiceAccount", access::service_account, true),
    ("", "PersistentVolume", storage::volume, true),
    ("", "PersistentVolumeClaim", storage::claim, true),
    ("", "ReplicationController", workload::replica_set, true),
    ("apps", "Deployment", workload::deployment, true),
    ("apps", "ReplicaSet", workload::replica_set, true),
    ("apps", "StatefulSet", workload::stateful_set, true),
    ("apps", "DaemonSet", workload::daemon_set, true),
    ("batch", "Job", workload::job, true),
    ("batch", "CronJob", workload::cron_job, true),
    (
        "autoscaling",
        "HorizontalPodAutoscaler",
        scaling::autoscaler,
        true,
    ),
    ("policy", "PodDisruptionBudget", scaling::budget, true),
    ("networking.k8s.io", "Ingress", network::ingress, true),
    (
        "networking.k8s.io",
        "IngressClass",
        network::ingress_class,
        true,
    ),
    (
        "certificates.k8s.io",
        "CertificateSigningRequest",
        certificate::describe,
        true,
    ),
    (
        "networking.k8s.io",
        "NetworkPolicy",
        network_policy::describe,
        false,
    ),
    ("discovery.k8s.io", "EndpointSlice", network::slice, true),
    (
        "storage.k8s.io",
        "StorageClass",
        storage::storage_class,
        true,
    ),
    (
        "scheduling.k8s.io",
        "PriorityClass",
        node::priority_class,
        true,
    ),
    ("rbac.authorization.k8s.io", "Role", access::role, false),
    (
        "rbac.authorization.k8s.io",
        "ClusterRole",
        access::role,
        false,
    ),
    (
        "rbac.authorization.k8s.io",
        "RoleBinding",
        access::binding,
        false,
    ),
    (
        "rbac.authorization.k8s.io",
        "ClusterRoleBinding",
        access::binding,
        false,
    ),
];

/// How an object of a kind is described, and whether with its events.
fn describer(kind: &Type) -> (Describer, bool) {
    let mut known = DESCRIBERS.iter();
    let found = known.find(|(group, name, _, _)| kind.group == *group && kind.kind == *name);
    found.map_or((generic::describe, true), |(_, _, describe, events)| {
        (*describe, *events)
    })
}

/// Shows objects at length, as of `now`. What is no object goes to `notes`.
pub async fn run(
    connection: &Connection,
    words: &[String],
    scope: &Scope,
    now: Timestamp,
    out: &mut dyn Write,
    notes: &mut dyn Write,
) -> Result<(), Error> {
    let types = Types::discover(&connection.client).await?;
    let moment = Moment {
        now,
        zone: TimeZone::system(),
    };
    let mut first = true;
    let targets = targets(&types, words)?;
    for target in &targets {
        let (objects, by_prefix) =
            read(connection, scope, &target.kind, target.name.as_deref()).await?;
        for object in objects {
            let (describe, with_events) = describer(&target.kind);
            let events = if with_events {
                Some(events(connection, &object).await?)
            } else {
                None
            };
            let subject = Subject {
                kind: &target.kind,
                object: &object,
                related: &related(connection, &target.kind, &object).await?,
                moment: &moment,
            };
            if !std::mem::take(&mut first) && !by_prefix {
                write!(out, "\n\n")?;
            }
            out.write_all(written(&subject, describe, events.as_deref()).as_bytes())?;
            if by_prefix {
                writeln!(out)?;
            }
        }
    }
    if first {
        match scope.namespace() {
            Some(namespace) => writeln!(notes, "No resources found in {namespace} namespace.")?,
            None => writeln!(notes, "No resources found")?,
        }
    }
    Ok(())
}

/// A description as text.
fn written(subject: &Subject<'_>, describe: Describer, events: Option<&[Value]>) -> String {
    let mut page = Page::default();
    describe(subject, &mut page);
    if let Some(found) = events {
        events::write(&mut page, found, subject.moment);
    }
    page.finish()
}

/// The objects that are meant: one by its name, those whose names begin so, or all of a kind; and
/// whether it is the second.
async fn read(
    connection: &Connection,
    scope: &Scope,
    kind: &Type,
    name: Option<&str>,
) -> Result<(Vec<Value>, bool), Error> {
    let Some(name) = name else {
        return Ok((list_all(connection, scope, kind).await?, false));
    };
    let path = kind.path(scope.namespace(), Some(&escape(name)));
    match request::get(&connection.client, &path, JSON).await {
        Ok(object) => Ok((vec![object], false)),
        Err(error) if error.is_not_found() => {
            let mut found = list_all(connection, scope, kind).await?;
            found.retain(|object| text(&object["metadata"]["name"]).starts_with(name));
            if found.is_empty() {
                return Err(error);
            }
            Ok((found, true))
        }
        Err(error) => Err(error),
    }
}

async fn list_all(
    connection: &Connection,
    scope: &Scope,
    kind: &Type,
) -> Result<Vec<Value>, Error> {
    let query = [
        ("labelSelector", scope.labels.as_str()),
        ("fieldSelector", &scope.fields),
    ];
    let path = with_query(&kind.path(scope.namespace(), None), &query);
    let mut items = list(connection, &path).await?;
    for item in &mut items {
        item["apiVersion"] = kind.api_version().into();
        item["kind"] = kind.kind.as_str().into();
    }
    Ok(items)
}

async fn list(connection: &Connection, path: &str) -> Result<Vec<Value>, Error> {
    let mut list = request::get(&connection.client, path, JSON).await?;
    match list["items"].take() {
        Value::Array(items) => Ok(items),
        _ => Ok(Vec::new()),
    }
}

/// The events about an object; events of the whole cluster are in the default namespace.
async fn events(connection: &Connection, object: &Value) -> Result<Vec<Value>, Error> {
    let metadata = &object["metadata"];
    let namespace = metadata["namespace"].as_str().unwrap_or("default");
    let path = format!("/api/v1/namespaces/{namespace}/events");
    let mut selectors = vec![format!("involvedObject.uid={}", text(&metadata["uid"]))];
    if object["kind"] == "Node" {
        // Kubelets call their node by its name.
        selectors.push(format!("involvedObject.uid={}", text(&metadata["name"])));
    }
    let mut events = Vec::new();
    for selector in selectors {
        let path = with_query(&path, &[("fieldSelector", &selector)]);
        events.extend(list(connection, &path).await?);
    }
    Ok(events)
}

/// Reads what belongs to an object.
async fn related(connection: &Connection, kind: &Type, object: &Value) -> Result<Related, Error> {
    let metadata = &object["metadata"];
    let (name, namespace) = (text(&metadata["name"]), text(&metadata["namespace"]));
    let core = |plural: &str| format!("/api/v1/namespaces/{namespace}/{plural}");
    let slices = format!("/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices");
    let chosen = || match kind.kind.as_str() {
        "ReplicationController" => read::flat_labels(&object["spec"]["selector"]),
        _ => selector(&object["spec"]["selector"]),
    };
    let mut related = Related::default();
    match (kind.group.as_str(), kind.kind.as_str()) {
        ("apps", "Deployment") => {
            let path = format!("/apis/apps/v1/namespaces/{namespace}/replicasets");
            let path = with_query(&path, &[("labelSelector", &chosen())]);
            related.replica_sets = list(connection, &path).await?;
        }
        ("apps", _) | ("", "ReplicationController") if object["spec"]["selector"].is_object() => {
            let path = with_query(&core("pods"), &[("labelSelector", &chosen())]);
            related.pods = list(connection, &path).await?;
        }
        ("", "PersistentVolumeClaim") => related.pods = list(connection, &core("pods")).await?,
        ("", "ServiceAccount") => related.secrets = list(connection, &core("secrets")).await?,
        ("", "Service") => {
            let label = format!("kubernetes.io/service-name={name}");
            let path = with_query(&slices, &[("labelSelector", &label)]);
            related.slices = list(connection, &path).await?;
        }
        ("networking.k8s.io", "Ingress") => {
            related.services = list(connection, &core("services")).await?;
            related.slices = list(connection, &slices).await?;
        }
        ("", "Namespace") => {
            let path = |plural: &str| format!("/api/v1/namespaces/{name}/{plural}");
            related.quotas = list(connection, &path("resourcequotas")).await?;
            related.limits = list(connection, &path("limitranges")).await?;
        }
        ("", "Node") => on_node(connection, name, &mut related).await?,
        _ => {}
    }
    Ok(related)
}

/// The pods of a node that have not ended, and its lease.
async fn on_node(connection: &Connection, name: &str, related: &mut Related) -> Result<(), Error> {
    let running = format!("spec.nodeName={name},status.phase!=Succeeded,status.phase!=Failed");
    let path = with_query("/api/v1/pods", &[("fieldSelector", &running)]);
    match list(connection, &path).await {
        Ok(pods) => related.pods = pods,
        Err(error) if error.is_forbidden() => related.no_pods = true,
        Err(error) => return Err(error),
    }
    let path = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases";
    let lease = request::get(
        &connection.client,
        &format!("{path}/{}", escape(name)),
        JSON,
    )
    .await;
    related.lease = Some(lease.map_err(|error| error.message()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_of_an_unknown_kind_is_shown_field_by_field() {
        let kind = Type {
            group: "example.com".to_owned(),
            version: "v1".to_owned(),
            kind: "Widget".to_owned(),
            plural: "widgets".to_owned(),
            singular: "widget".to_owned(),
            short_names: Vec::new(),
            categories: Vec::new(),
            namespaced: true,
            verbs: Vec::new(),
        };
        let object = json!({
            "apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": {"name": "w", "namespace": "default", "uid": "1", "labels": {"b": "2", "a": "1"}},
            "spec": {"size": 3, "parts": [{"name": "x"}, {"name": "y"}], "words": ["one"]},
        });
        let event = json!({
            "type": "Normal", "reason": "Made", "message": "made it\n", "count": 3,
            "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:01:00Z",
            "source": {"component": "maker"},
        });
        let expected = "\
Name:         w
Namespace:    default
Labels:       a=1
              b=2
Annotations:  <none>
API Version:  example.com/v1
Kind:         Widget
Metadata:
  UID:  1
Spec:
  Parts:
    Name:  x
    Name:  y
  Size:    3
  Words:
    one
Events:
  Type    Reason  Age                From   Message
  ----    ------  ----               ----   -------
  Normal  Made    30s (x3 over 90s)  maker  made it
";
        let moment = Moment {
            now: "2026-01-01T00:01:30Z".parse().unwrap(),
            zone: TimeZone::UTC,
        };
        let subject = Subject {
            kind: &kind,
            object: &object,
            related: &Related::default(),
            moment: &moment,
        };
        let (describe, _) = describer(&kind);
        assert_eq!(written(&subject, describe, Some(&[event])), expected);
        let text = written(&subject, describe, Some(&[]));
        assert!(text.ends_with("    one\nEvents:  <none>\n"), "{text}");
    }
}
