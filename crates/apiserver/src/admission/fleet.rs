//! Clusters and their sets: what only some may do, and what only the server knows.
//!
//! These kinds are served by definitions; on another hub webhooks check the same.

use std::collections::BTreeMap;

use bellwether_api::Kind as _;
use bellwether_api::cluster::names::{annotation, label, object, registration};
use bellwether_api::cluster::{GROUP, ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding};
use bellwether_json::name::dns_label_problems;
use bellwether_json::time::format_time;
use serde_json::{Value, json};

use crate::access::Attributes;
use crate::context::RequestContext;
use crate::metadata;
use crate::scope::{Party, Terms};
use crate::status::ApiError;

/// Group of the kinds.
pub(super) const KINDS: &str = GROUP;

/// Checks and completes an object of the group; `live` is what it replaces.
pub(super) fn check(
    cx: &RequestContext,
    object: &mut Value,
    live: Option<&Value>,
) -> Result<(), ApiError> {
    let plural = &*cx.resource.plural;
    if plural == ManagedCluster::NAMES.plural {
        return cluster(cx, object, live);
    }
    if plural == ManagedClusterSetBinding::NAMES.plural && live.is_none() {
        return binding(cx, object);
    }
    Ok(())
}

fn cluster(cx: &RequestContext, object: &mut Value, live: Option<&Value>) -> Result<(), ApiError> {
    let name = metadata::text(object, "name").to_owned();
    let problems = dns_label_problems(&name);
    if live.is_none() && !problems.is_empty() {
        let problems = problems.join("; ");
        return Err(ApiError::bad_request(format!(
            "the name of a cluster is also that of its namespace: {problems}"
        )));
    }
    check_addresses(object)?;
    check_party(cx, &name, object, live)?;
    check_acceptance(cx, &name, object, live)?;
    check_set(cx, object, live)?;
    stamp_taints(cx, object, live)
}

/// Refuses changes beyond what an agent tells about its cluster, and clusters that a token is not for.
fn check_party(
    cx: &RequestContext,
    name: &str,
    object: &mut Value,
    live: Option<&Value>,
) -> Result<(), ApiError> {
    let refuse = |why: String| Err(ApiError::forbidden(cx.resource.subject(), name, &why));
    match (Party::of(&cx.cluster, &cx.identity), live) {
        (Some(Party::Joiner(terms)), None) => match join_terms(&terms, name, object) {
            Ok(()) => Ok(()),
            Err(why) => refuse(why),
        },
        (Some(Party::Agent { .. }), Some(live)) if !is_description(object, live) => {
            refuse(format!(
                "an agent may change client configs and annotations that begin with {} of its cluster, and nothing else",
                annotation::AGENT_PREFIX
            ))
        }
        _ => Ok(()),
    }
}

/// Gives a cluster what the token fixes that it joins with; the error says what it may not say.
fn join_terms(terms: &Terms, name: &str, object: &mut Value) -> Result<(), String> {
    if let Some(cluster) = terms.cluster.as_deref().filter(|cluster| *cluster != name) {
        return Err(format!("the token is for the cluster {cluster} only"));
    }
    let labels: BTreeMap<String, String> =
        serde_json::from_value(object["metadata"]["labels"].clone()).unwrap_or_default();
    let mut fixed = BTreeMap::new();
    for (key, value) in labels {
        let allowed = match (&terms.set, &terms.labels) {
            (Some(set), _) if key == label::CLUSTER_SET => Some(set),
            (_, Some(_)) if key == label::CLUSTER_SET => Some(&value),
            (_, Some(labels)) => labels.get(&key),
            (_, None) => Some(&value),
        };
        if allowed != Some(&value) {
            return Err(format!("the token does not allow the label {key}={value}"));
        }
        fixed.insert(key, value);
    }
    fixed.extend(terms.labels.clone().unwrap_or_default());
    if let Some(set) = &terms.set {
        fixed.insert(label::CLUSTER_SET.to_owned(), set.clone());
    }
    if !fixed.is_empty()
        && let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
    {
        metadata.insert("labels".to_owned(), json!(fixed));
    }
    Ok(())
}

/// True if a change touches only what an agent tells about its cluster.
fn is_description(object: &Value, live: &Value) -> bool {
    let rest = |object: &Value| {
        let metadata = &object["metadata"];
        let mut spec = object["spec"].clone();
        if let Some(spec) = spec.as_object_mut() {
            spec.remove("managedClusterClientConfigs");
        }
        let annotations = metadata["annotations"].as_object().into_iter().flatten();
        let annotations: BTreeMap<String, Value> = annotations
            .filter(|(key, _)| !key.starts_with(annotation::AGENT_PREFIX))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect();
        let kept = ["labels", "finalizers", "ownerReferences"];
        (spec, annotations, kept.map(|field| metadata[field].clone()))
    };
    rest(object) == rest(live)
}

fn check_addresses(object: &Value) -> Result<(), ApiError> {
    let configs = object["spec"]["managedClusterClientConfigs"].as_array();
    for config in configs.into_iter().flatten() {
        let url = config["url"].as_str().unwrap_or_default();
        if !url.starts_with("https://") || url.len() <= "https://".len() {
            return Err(ApiError::bad_request(format!(
                "url \"{url}\" is invalid in client configs"
            )));
        }
    }
    Ok(())
}

/// Accepting a cluster gives it rights, so that it takes a right of its own.
fn check_acceptance(
    cx: &RequestContext,
    name: &str,
    object: &Value,
    live: Option<&Value>,
) -> Result<(), ApiError> {
    let accepts = |object: &Value| object["spec"]["hubAcceptsClient"] == true;
    if !accepts(object) || live.is_some_and(accepts) {
        return Ok(());
    }
    let namespace = cx
        .cluster
        .keyspace()
        .get(&format!("core/namespaces/{name}"));
    if namespace.is_some_and(|it| it.value.is_deleting()) {
        return Err(ApiError::bad_request(format!(
            "the namespace {name} of the cluster is terminating: accept it when that is done"
        )));
    }
    let wanted = Attributes {
        verb: "update",
        group: registration::REGISTER_GROUP,
        resource: ManagedCluster::NAMES.plural,
        subresource: "accept",
        name,
        ..Attributes::default()
    };
    demand(cx, &wanted, name, "accept the cluster")
}

/// A cluster without a set is in the default one; to move it takes a right on both.
fn check_set(
    cx: &RequestContext,
    object: &mut Value,
    live: Option<&Value>,
) -> Result<(), ApiError> {
    let set_of = |object: &Value| {
        let set = object["metadata"]["labels"][label::CLUSTER_SET].as_str();
        set.unwrap_or_default().to_owned()
    };
    let (before, after) = (live.map(set_of), set_of(object));
    if after.is_empty() && before.as_deref().unwrap_or_default().is_empty() {
        put_label(object);
        return Ok(());
    }
    let before = before.unwrap_or_default();
    if before == after {
        return Ok(());
    }
    let name = metadata::text(object, "name").to_owned();
    for set in [&before, &after].into_iter().filter(|set| !set.is_empty()) {
        let wanted = set_attributes("join", set);
        demand(cx, &wanted, &name, "move the cluster between sets")?;
    }
    if after.is_empty() {
        put_label(object);
    }
    Ok(())
}

fn put_label(object: &mut Value) {
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else {
        return;
    };
    let labels = metadata.entry("labels").or_insert(Value::Null);
    if labels.is_null() {
        *labels = json!({});
    }
    if let Some(labels) = labels.as_object_mut() {
        let set = object::DEFAULT_CLUSTER_SET;
        labels.insert(label::CLUSTER_SET.to_owned(), set.into());
    }
}

fn set_attributes<'a>(subresource: &'a str, set: &'a str) -> Attributes<'a> {
    Attributes {
        verb: "create",
        group: GROUP,
        resource: ManagedClusterSet::NAMES.plural,
        subresource,
        name: set,
        ..Attributes::default()
    }
}

/// When a taint was added is the server's to say: tolerations count from then.
fn stamp_taints(
    cx: &RequestContext,
    object: &mut Value,
    live: Option<&Value>,
) -> Result<(), ApiError> {
    let same = |one: &Value, other: &Value| {
        let text = |taint: &Value, field: &str| taint[field].as_str().unwrap_or("").to_owned();
        let field = |field: &str| text(one, field) == text(other, field);
        field("key") && field("value") && field("effect")
    };
    let Some(taints) = object.pointer_mut("/spec/taints") else {
        return Ok(());
    };
    let taints = taints.as_array_mut().into_iter().flatten();
    let before = live.and_then(|live| live["spec"]["taints"].as_array());
    let mut wrong = Vec::new();
    for taint in taints {
        let known = before.into_iter().flatten().find(|it| same(it, taint));
        let time = known.map_or(&Value::Null, |it| &it["timeAdded"]);
        let is_told = !taint["timeAdded"].is_null();
        if is_told && live.is_some() && taint["timeAdded"] != *time {
            wrong.push(taint["key"].as_str().unwrap_or_default().to_owned());
            continue;
        }
        let time = match time {
            Value::Null => json!(format_time(cx.now)),
            known => known.clone(),
        };
        if let Some(taint) = taint.as_object_mut() {
            taint.insert("timeAdded".to_owned(), time);
        }
    }
    if wrong.is_empty() {
        return Ok(());
    }
    let keys = wrong.join(",");
    Err(ApiError::bad_request(format!(
        "It is not allowed to set TimeAdded of Taint \"{keys}\"."
    )))
}

fn binding(cx: &RequestContext, object: &Value) -> Result<(), ApiError> {
    let name = metadata::text(object, "name");
    let set = object["spec"]["clusterSet"].as_str().unwrap_or_default();
    if name != set {
        return Err(ApiError::bad_request(
            "The ManagedClusterSetBinding must have the same name as the target ManagedClusterSet",
        ));
    }
    demand(cx, &set_attributes("bind", set), name, "bind the set")
}

fn demand(
    cx: &RequestContext,
    wanted: &Attributes<'_>,
    name: &str,
    what: &str,
) -> Result<(), ApiError> {
    let decision = cx.cluster.authorizer().decide(&cx.identity, wanted);
    if decision.allowed {
        return Ok(());
    }
    let refusal = wanted.refusal(&cx.identity.user);
    let why = format!("not permitted to {what}: {refusal}");
    Err(ApiError::forbidden(cx.resource.subject(), name, &why))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(terms: &Terms, labels: &Value, expected: Result<Value, &str>) {
        let mut cluster = json!({"metadata": {"name": "c1", "labels": labels}});
        let joined = join_terms(terms, "c1", &mut cluster);
        let found = joined.map(|()| cluster["metadata"]["labels"].clone());
        assert_eq!(found, expected.map_err(str::to_owned));
    }

    #[test]
    fn a_token_fixes_what_its_cluster_says() {
        let anything = Terms::default();
        check(&anything, &json!({"a": "b"}), Ok(json!({"a": "b"})));
        let labels = [("region".to_owned(), "emea".to_owned())];
        let fixed = Terms {
            cluster: Some("c1".into()),
            set: Some("prod".into()),
            labels: Some(labels.into()),
        };
        let set = label::CLUSTER_SET;
        let all = json!({"region": "emea", set: "prod"});
        check(&fixed, &Value::Null, Ok(all.clone()));
        check(&fixed, &all, Ok(all.clone()));
        let refused = "the token does not allow the label region=moon";
        check(&fixed, &json!({"region": "moon"}), Err(refused));
        let refused = "the token does not allow the label a=b";
        check(&fixed, &json!({"a": "b"}), Err(refused));
        let other =
            "the token does not allow the label cluster.open-cluster-management.io/clusterset=dev";
        check(&fixed, &json!({set: "dev"}), Err(other));
        let elsewhere = Terms {
            cluster: Some("c2".into()),
            ..Terms::default()
        };
        let refused = "the token is for the cluster c2 only";
        check(&elsewhere, &Value::Null, Err(refused));
    }

    #[test]
    fn an_agent_describes_its_cluster_and_no_more() {
        let live = json!({
            "metadata": {"name": "c1", "labels": {"a": "b"}, "annotations": {"x": "y"}},
            "spec": {"hubAcceptsClient": true, "leaseDurationSeconds": 60},
        });
        for (path, value, expected) in [
            (
                "/metadata/annotations/agent.open-cluster-management.io~1a",
                json!("1"),
                true,
            ),
            (
                "/spec/managedClusterClientConfigs",
                json!([{"url": "https://c1"}]),
                true,
            ),
            ("/metadata/annotations/x", json!("z"), false),
            ("/metadata/labels/a", json!("c"), false),
            ("/metadata/finalizers", json!(["x/y"]), false),
            ("/spec/leaseDurationSeconds", json!(1), false),
            ("/spec/taints", json!([]), false),
        ] {
            let mut changed = live.clone();
            let (parent, key) = path.rsplit_once('/').unwrap();
            let key = key.replace("~1", "/");
            changed.pointer_mut(parent).unwrap()[key] = value;
            assert_eq!(is_description(&changed, &live), expected, "{path}");
        }
    }
}
