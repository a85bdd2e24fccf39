//! The pods of a stateful set: numbers, names, claims.

use bellwether_api::workload::revision::{CONTROLLER_REVISION_HASH, POD_INDEX, POD_NAME};
use k8s_openapi::api::apps::v1::StatefulSetSpec;
use k8s_openapi::api::core::v1::{
    PersistentVolumeClaim, PersistentVolumeClaimVolumeSource, Pod, PodTemplateSpec, Volume,
};

use crate::kind::{Reference, label};
use crate::pods;

/// The number of the first pod.
pub(super) fn first_ordinal(spec: &StatefulSetSpec) -> i32 {
    let ordinals = spec.ordinals.as_ref();
    ordinals.and_then(|ordinals| ordinals.start).unwrap_or(0)
}

/// The name of a pod.
pub(super) fn name(owner: &Reference, ordinal: i32) -> String {
    format!("{}-{ordinal}", owner.key.name)
}

/// The number of a pod, from its name.
pub(super) fn ordinal(owner: &Reference, pod: &Pod) -> Option<i32> {
    let name = pod.metadata.name.as_deref()?;
    let number = name.strip_prefix(&*owner.key.name)?.strip_prefix('-')?;
    number.parse().ok().filter(|ordinal: &i32| *ordinal >= 0)
}

/// The name of the revision that a pod is made of.
pub(super) fn revision(pod: &Pod) -> Option<&str> {
    label(&pod.metadata, CONTROLLER_REVISION_HASH)
}

fn claim_name(template: &PersistentVolumeClaim, owner: &Reference, ordinal: i32) -> String {
    let volume = template.metadata.name.as_deref().unwrap_or_default();
    format!("{volume}-{}-{ordinal}", owner.key.name)
}

/// The claims of a pod.
pub(super) fn claims(
    owner: &Reference,
    spec: &StatefulSetSpec,
    ordinal: i32,
) -> Vec<PersistentVolumeClaim> {
    let policy = spec.persistent_volume_claim_retention_policy.as_ref();
    let goes_along = policy.and_then(|policy| policy.when_deleted.as_deref()) == Some("Delete");
    let templates = spec.volume_claim_templates.iter().flatten();
    templates
        .map(|template| {
            let mut claim = template.clone();
            claim.status = None;
            claim.metadata.name = Some(claim_name(template, owner, ordinal));
            claim.metadata.namespace = Some(owner.key.namespace.to_string());
            let labels = claim.metadata.labels.get_or_insert_default();
            labels.extend(spec.selector.match_labels.clone().unwrap_or_default());
            if goes_along {
                claim.metadata.owner_references = Some(vec![owner.controller()]);
            }
            claim
        })
        .collect()
}

/// The number of the pod that a claim belongs to, if it is one of ours.
pub(super) fn claim_ordinal(
    owner: &Reference,
    spec: &StatefulSetSpec,
    claim: &PersistentVolumeClaim,
) -> Option<i32> {
    let name = claim.metadata.name.as_deref()?;
    let mut templates = spec.volume_claim_templates.iter().flatten();
    templates.find_map(|template| {
        let volume = template.metadata.name.as_deref()?;
        let prefix = format!("{volume}-{}-", owner.key.name);
        name.strip_prefix(&prefix)?.parse().ok()
    })
}

/// A pod of the set.
pub(super) fn pod(
    owner: &Reference,
    spec: &StatefulSetSpec,
    template: &PodTemplateSpec,
    revision: &str,
    ordinal: i32,
) -> Pod {
    let mut pod = pods::from_template(template, owner);
    let name = name(owner, ordinal);
    pod.metadata.generate_name = Some(format!("{}-", owner.key.name));
    pod.metadata.name = Some(name.clone());
    let labels = pod.metadata.labels.get_or_insert_default();
    labels.insert(POD_NAME.to_owned(), name.clone());
    labels.insert(POD_INDEX.to_owned(), ordinal.to_string());
    labels.insert(CONTROLLER_REVISION_HASH.to_owned(), revision.to_owned());
    let pod_spec = pod.spec.get_or_insert_default();
    pod_spec.hostname = Some(name);
    pod_spec.subdomain = spec.service_name.clone().filter(|name| !name.is_empty());
    let templates = spec.volume_claim_templates.as_deref().unwrap_or_default();
    let volumes = pod_spec.volumes.get_or_insert_default();
    for template in templates {
        let volume = template.metadata.name.clone().unwrap_or_default();
        volumes.retain(|known| known.name != volume);
        volumes.push(Volume {
            name: volume,
            persistent_volume_claim: Some(PersistentVolumeClaimVolumeSource {
                claim_name: claim_name(template, owner, ordinal),
                read_only: None,
            }),
            ..Volume::default()
        });
    }
    pod
}
