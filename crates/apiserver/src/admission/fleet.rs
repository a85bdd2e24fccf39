//! Clusters and their sets: what only some may do, and what only the server knows.
//!
//! These kinds are served by definitions; on another hub webhooks check the same.

use bellwether_api::Kind as _;
use bellwether_api::cluster::names::{label, object, registration};
use bellwether_api::cluster::{GROUP, ManagedCluster, ManagedClusterSet, ManagedClusterSetBinding};
use bellwether_json::name::dns_label_problems;
use bellwether_json::time::format_time;
use serde_json::{Value, json};

use crate::access::Attributes;
use crate::context::RequestContext;
use crate::metadata;
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
    check_acceptance(cx, &name, object, live)?;
    check_set(cx, object, live)?;
    stamp_taints(cx, object, live)
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
