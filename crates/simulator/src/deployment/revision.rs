//! Which template a replica set is of, and which rollout it belongs to.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_api::workload::deployment::{
    DESIRED_REPLICAS, LAST_APPLIED, MAX_REPLICAS, REVISION, REVISION_HISTORY, ROLLBACK_TO,
    TEMPLATE_HASH,
};
use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet, ReplicaSetSpec};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};

use super::sets::{Limits, Set};
use crate::hash::{fnv32, safe_text};
use crate::kind::{Reference, annotation};
use crate::plan::to_json;

/// Annotations of a deployment that its sets do not take over.
const NOT_COPIED: [&str; 6] = [
    LAST_APPLIED,
    REVISION,
    REVISION_HISTORY,
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    ROLLBACK_TO,
];

/// How long the list of earlier revisions may become.
const HISTORY_LENGTH: usize = 2000;
/// The longest name that leaves room for the names of pods.
const NAME_LENGTH: usize = 253;

/// Whether a set is of that template.
pub(super) fn is_of_template(set: &Arc<ReplicaSet>, template: &PodTemplateSpec) -> bool {
    let own = set.spec.as_ref().and_then(|spec| spec.template.as_ref());
    own.is_some_and(|own| without_hash(own) == without_hash(template))
}

fn without_hash(template: &PodTemplateSpec) -> PodTemplateSpec {
    let mut template = template.clone();
    let mut metadata = template.metadata.take().unwrap_or_default();
    if let Some(labels) = &mut metadata.labels {
        labels.remove(TEMPLATE_HASH);
    }
    metadata.labels = metadata.labels.filter(|labels| !labels.is_empty());
    metadata.annotations = metadata
        .annotations
        .filter(|annotations| !annotations.is_empty());
    template.metadata = Some(metadata);
    template
}

/// The hash of the current template, which tells its pods from others.
fn template_hash(deployment: &Deployment) -> String {
    let template = deployment.spec.as_ref().map(|spec| &spec.template);
    let collisions = deployment
        .status
        .as_ref()
        .and_then(|status| status.collision_count);
    let mut text = to_json(&template).to_string();
    if let Some(count) = collisions {
        text.push_str(&count.to_string());
    }
    safe_text(fnv32(text.into_bytes()))
}

/// The name of the set for the current template.
pub(super) fn set_name(deployment: &Deployment) -> String {
    let name = deployment.metadata.name.as_deref().unwrap_or_default();
    let hash = template_hash(deployment);
    let room = NAME_LENGTH.saturating_sub(hash.len() + 1);
    format!("{}-{hash}", &name[..name.len().min(room)])
}

/// The revision of a set; 0 if it has none.
pub(super) fn of(set: &ReplicaSet) -> i64 {
    let text = annotation(&set.metadata, REVISION);
    text.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// The revision of the current template: one more than all others have.
pub(super) fn next(old: &[Set]) -> i64 {
    let highest = old.iter().map(|set| of(&set.object)).max();
    highest.unwrap_or(0).saturating_add(1)
}

/// Annotations of an existing set for the current template that have to change.
pub(super) fn annotation_changes(
    deployment: &Deployment,
    set: &ReplicaSet,
    next: i64,
) -> BTreeMap<String, String> {
    let mut changes = copied(deployment);
    changes.retain(|name, value| annotation(&set.metadata, name) != Some(value));
    let own = annotation(&set.metadata, REVISION);
    let number = own.map_or(Some(0), |text| text.parse::<i64>().ok());
    // A revision that is not a number was written by somebody who knows why.
    if let Some(number) = number.filter(|number| *number < next) {
        changes.insert(REVISION.to_owned(), next.to_string());
        if own.is_some() {
            let history = annotation(&set.metadata, REVISION_HISTORY).unwrap_or_default();
            changes.insert(REVISION_HISTORY.to_owned(), history_with(history, number));
        }
    }
    changes
}

/// The list of earlier revisions with one more; the oldest are dropped when it gets too long.
fn history_with(history: &str, revision: i64) -> String {
    let mut entries: Vec<String> = history
        .split(',')
        .filter(|entry| !entry.is_empty())
        .map(str::to_owned)
        .collect();
    entries.push(revision.to_string());
    while entries.len() > 1
        && entries.iter().map(|entry| entry.len() + 1).sum::<usize>() > HISTORY_LENGTH
    {
        entries.remove(0);
    }
    entries.join(",")
}

fn copied(deployment: &Deployment) -> BTreeMap<String, String> {
    let mut annotations = deployment.metadata.annotations.clone().unwrap_or_default();
    annotations.retain(|name, _| !NOT_COPIED.contains(&name.as_str()));
    annotations
}

/// A set for the current template.
pub(super) fn new_set(
    deployment: &Deployment,
    owner: &Reference,
    revision: i64,
    size: i32,
    limits: &Limits,
) -> ReplicaSet {
    let hash = template_hash(deployment);
    let spec = deployment.spec.clone().unwrap_or_default();
    let mut template = spec.template;
    let metadata = template.metadata.get_or_insert_default();
    let labels = metadata.labels.get_or_insert_default();
    labels.insert(TEMPLATE_HASH.to_owned(), hash.clone());
    let labels = labels.clone();
    let mut selector: LabelSelector = spec.selector;
    let wanted = selector.match_labels.get_or_insert_default();
    wanted.insert(TEMPLATE_HASH.to_owned(), hash);
    let mut annotations = copied(deployment);
    annotations.insert(REVISION.to_owned(), revision.to_string());
    annotations.insert(DESIRED_REPLICAS.to_owned(), limits.replicas.to_string());
    annotations.insert(MAX_REPLICAS.to_owned(), limits.most().to_string());
    ReplicaSet {
        metadata: ObjectMeta {
            name: Some(set_name(deployment)),
            namespace: deployment.metadata.namespace.clone(),
            labels: Some(labels),
            annotations: Some(annotations),
            owner_references: Some(vec![owner.controller()]),
            ..ObjectMeta::default()
        },
        spec: Some(ReplicaSetSpec {
            replicas: Some(size),
            min_ready_seconds: spec.min_ready_seconds,
            selector,
            template: Some(template),
        }),
        status: None,
    }
}
