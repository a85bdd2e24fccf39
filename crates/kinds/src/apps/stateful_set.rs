//! StatefulSets.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use serde_json::Value;

use crate::columns::{AGE, CONTAINERS, IMAGES, NAME, age, containers, fraction, name, words};
use crate::core::{pod, volume};
use crate::resource::{ALL, SCALE, STATUS};
use crate::value::{Fill, at, empty, existing, int, is_zero, items, text};
use crate::{Column, Generation, Resource};

/// The strategy that replaces pods one by one.
const ROLLING: &str = "RollingUpdate";

pub(crate) const RESOURCE: Resource = Resource {
    short_names: &["sts"],
    categories: ALL,
    subresources: &[SCALE, STATUS],
    generation: Generation::Spec,
    default,
    columns: COLUMNS,
    row,
    ..Resource::namespaced::<StatefulSet>("apps", "v1", "StatefulSet", "statefulsets")
};

fn default(object: &mut Value) {
    let Some(spec) = existing(object, &["spec"]) else {
        return;
    };
    spec.fill_zero("podManagementPolicy", "OrderedReady");
    spec.fill("replicas", 1);
    spec.fill("revisionHistoryLimit", 10);
    spec.fill("persistentVolumeClaimRetentionPolicy", empty());
    if let Some(policy) = existing(object, &["spec", "persistentVolumeClaimRetentionPolicy"]) {
        policy.fill_zero("whenDeleted", "Retain");
        policy.fill_zero("whenScaled", "Retain");
    }
    if let Some(strategy) = existing(object, &["spec", "updateStrategy"]) {
        // An explicit type without settings stays without settings.
        if strategy.get("type").is_none_or(is_zero) {
            strategy.fill_zero("type", ROLLING);
            strategy.fill("rollingUpdate", empty());
        }
    }
    if text(object, &["spec", "updateStrategy", "type"]) == ROLLING
        && let Some(update) = existing(object, &["spec", "updateStrategy", "rollingUpdate"])
    {
        update.fill("partition", 0);
    }
    for claim in items(object, &["spec", "volumeClaimTemplates"]) {
        volume::default_claim(claim);
        if let Some(claim) = claim.as_object_mut() {
            claim.insert("apiVersion".to_owned(), "v1".into());
            claim.insert("kind".to_owned(), "PersistentVolumeClaim".into());
        }
    }
    pod::template(object, &["spec", "template"]);
}

const COLUMNS: &[Column] = &[
    NAME,
    words("Ready", "Pods that are ready, of those wanted."),
    AGE,
    CONTAINERS,
    IMAGES,
];

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    let [names, images] = containers(at(object, &["spec", "template", "spec"]));
    vec![
        name(object),
        fraction(
            int(object, &["status", "readyReplicas"]),
            int(object, &["spec", "replicas"]),
        ),
        age(object, now),
        names,
        images,
    ]
}
