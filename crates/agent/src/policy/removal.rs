//! Policies that go: their copies, and the objects of their templates.

use std::collections::BTreeSet;
use std::sync::Arc;

use bellwether_api::Kind as _;
use bellwether_api::policy::names::{POLICY_TYPE_TEMPLATE, finalizer, gatekeeper, label};
use bellwether_api::policy::{ConfigurationPolicy, Policy};
use bellwether_apply::ResourceType;
use bellwether_policy::template_sync;
use bellwether_runtime::{Next, RequestError};
use serde_json::{Value, json};

use super::answers::Answers;
use super::evaluate::{Evaluator, microseconds};
use super::member::{Member, TemplateObject, definitions, id_of, resource_of};
use super::{PolicyKey, Shared};

/// Removes what a policy that is gone from the hub has left on its member.
pub(super) async fn remove(
    shared: &Shared,
    member: &Member,
    key: &PolicyKey,
) -> Result<Next, RequestError> {
    let names = Policy::NAMES;
    if member
        .find(&names.api_version(), names.kind)
        .await?
        .is_none()
    {
        forget(member, key);
        return Ok(None);
    }
    member.find_kinds().await?;
    let resource = Arc::new(resource_of(names));
    let answers = Answers::new(member, key);
    let id = id_of(&resource, &key.cluster, &key.policy);
    let live = member.objects.get(&resource, &id).await?;
    if let Some(live) = &live {
        answers.object(&resource, &key.cluster, &key.policy).await?;
        answers.delete(&resource, &id, live).await?;
    }
    let policy = live
        .clone()
        .and_then(|live| serde_json::from_value(live).ok());
    let policy: Policy = policy.unwrap_or_default();
    let evaluator = Evaluator {
        shared,
        answers: &answers,
        policy: &policy,
        now: microseconds(shared.clock.now()),
    };
    let mut is_left = false;
    for (api_version, kind, name) in objects_of(member, &key.policy, &policy).await? {
        let Some(resource) = member.find(&api_version, &kind).await? else {
            continue;
        };
        let id = id_of(&resource, &key.cluster, &name);
        let Some(live) = member.objects.get(&resource, &id).await? else {
            continue;
        };
        // Its end is a change that brings us here again.
        answers.object(&resource, &key.cluster, &name).await?;
        if !live["metadata"]["deletionTimestamp"].is_string() {
            answers.delete(&resource, &id, &live).await?;
        }
        if let Some(live) = member.objects.get(&resource, &id).await? {
            is_left = true;
            if kind == ConfigurationPolicy::NAMES.kind {
                evaluator.release(&live).await?;
            }
        }
    }
    answers.finish();
    if is_left {
        return Ok(next_check(shared));
    }
    if is_cleaned_up(&policy) {
        let_go(member, key, &policy).await?;
    }
    forget(member, key);
    Ok(None)
}

/// Lets the copy of a policy go that waits until templates without a namespace are deleted.
pub(super) async fn let_go(
    member: &Member,
    key: &PolicyKey,
    copy: &Policy,
) -> Result<(), RequestError> {
    let resource = resource_of(Policy::NAMES);
    let id = id_of(&resource, &key.cluster, &key.policy);
    let mut finalizers = copy.metadata.finalizers.clone().unwrap_or_default();
    finalizers.retain(|name| name != finalizer::CLEANUP_CLUSTER_SCOPED);
    let patch = json!({"metadata": {"finalizers": finalizers}});
    match member.objects.merge(&resource, &id, &patch).await {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}

/// Whether objects without a namespace may have been made for a policy.
pub(super) fn is_cleaned_up(copy: &Policy) -> bool {
    let mut finalizers = copy.metadata.finalizers.iter().flatten();
    finalizers.any(|it| it == finalizer::CLEANUP_CLUSTER_SCOPED)
}

/// Time of the next check of a policy whose objects are not gone: what they wait for may end without being seen.
pub(super) fn next_check(shared: &Shared) -> Next {
    let retry = jiff::SignedDuration::from_secs(2);
    shared.clock.now().checked_add(retry).ok()
}

/// Forgets what a policy has looked at.
pub(super) fn forget(member: &Member, key: &PolicyKey) {
    let memory = member.memories.lock().remove(key);
    for id in memory.iter().flat_map(|memory| &memory.tracked) {
        member.watches.untrack(id, key);
    }
    member.lists.retain(key, &BTreeSet::new());
}

/// The objects of the templates of a policy, by their label; of kinds of others only if the copy says that it has some.
pub(super) async fn objects_of(
    member: &Member,
    policy: &str,
    copy: &Policy,
) -> Result<BTreeSet<TemplateObject>, RequestError> {
    let mut resources = Vec::new();
    for names in member.standalone.watched() {
        let resource = member.find(&names.api_version(), names.kind).await?;
        resources.extend(resource);
    }
    if is_cleaned_up(copy) {
        for group in [gatekeeper::CONSTRAINTS, gatekeeper::TEMPLATES] {
            resources.extend(member.discovery.all_of(&member.objects, group).await?);
        }
    }
    if is_cleaned_up(copy) || template_sync::has_other_kinds(copy) {
        resources.extend(other_kinds(member).await?);
    }
    let mut found = BTreeSet::new();
    let selector = format!("{}={policy}", label::POLICY);
    for resource in resources {
        let namespace = if resource.namespaced {
            &*member.cluster
        } else {
            ""
        };
        let api_version = format!("{}/{}", resource.group, resource.version);
        for object in member.list(&resource, namespace, &selector).await? {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            found.insert((api_version.clone(), resource.kind.clone(), name.to_owned()));
        }
    }
    Ok(found)
}

/// The kinds of templates that others define.
async fn other_kinds(member: &Member) -> Result<Vec<Arc<ResourceType>>, RequestError> {
    let selector = format!("{}={POLICY_TYPE_TEMPLATE}", label::POLICY_TYPE);
    let mut found = Vec::new();
    for definition in member.list(&definitions(), "", &selector).await? {
        let spec = &definition["spec"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (group, kind) = (text(&spec["group"]), text(&spec["names"]["kind"]));
        let mut versions = spec["versions"].as_array().into_iter().flatten();
        let served = versions.find(|version| version["served"] == true);
        let version = served.map(|version| text(&version["name"]));
        let api_version = format!("{group}/{}", version.unwrap_or_default());
        if !template_sync::is_own_kind((&api_version, &kind)) {
            found.extend(member.find(&api_version, &kind).await?);
        }
    }
    Ok(found)
}

/// Enqueues copies on a member, whose policies may be gone, and watches policies that stand alone.
pub(super) async fn find_orphans(shared: &Shared, member: &Member) -> Result<Next, RequestError> {
    member.find_kinds().await?;
    let names = Policy::NAMES;
    let found = member.find(&names.api_version(), names.kind).await?;
    let Some(resource) = found else {
        return Ok(None);
    };
    let copies: Vec<Value> = member.list(&resource, &member.cluster, "").await?;
    for copy in copies {
        let name = copy["metadata"]["name"].as_str().unwrap_or_default();
        let is_copy = copy["metadata"]["labels"][label::ROOT_POLICY].is_string();
        if is_copy && !name.is_empty() {
            shared.enqueue(&member.cluster, name);
        }
    }
    Ok(None)
}
