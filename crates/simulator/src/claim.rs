//! Claims and volumes: a claim gets a volume that fits, or a new one.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use bellwether_api::simulator::PROVISIONER;
use bellwether_api::workload::volume::{
    BIND_COMPLETED, BOUND_BY_CONTROLLER, DEFAULT_CLASS, PROVISIONED_BY, STORAGE_PROVISIONER,
};
use bellwether_json::quantity::Quantity;
use k8s_openapi::api::core::v1::{
    HostPathVolumeSource, ObjectReference, PersistentVolume, PersistentVolumeClaim,
    PersistentVolumeClaimSpec, PersistentVolumeSpec,
};
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use crate::kind::{Kind, Object, Reference, annotation, is_deleting, key_of, uid_of};
use crate::plan::{Event, Plan, to_json};
use crate::select::matches;

const COMPONENT: &str = "persistentvolume-controller";
const STORAGE: &str = "storage";
/// The finalizer that keeps a claim while a pod uses it.
const CLAIM_PROTECTION: &str = "kubernetes.io/pvc-protection";
/// The finalizer that keeps a volume while it is bound.
const VOLUME_PROTECTION: &str = "kubernetes.io/pv-protection";

/// Everything that the decision about a claim may look at.
#[derive(Debug)]
pub(crate) struct View<'a> {
    pub(crate) claim: &'a PersistentVolumeClaim,
    pub(crate) volumes: &'a [Arc<PersistentVolume>],
    pub(crate) classes: &'a [Arc<StorageClass>],
    /// Whether a pod that has not ended uses it.
    pub(crate) is_used: bool,
}

/// What has to be done for a claim.
pub(crate) fn decide(view: &View<'_>) -> Plan {
    let mut plan = Plan::default();
    let Some(spec) = &view.claim.spec else {
        return plan;
    };
    if is_deleting(&view.claim.metadata) {
        if !view.is_used {
            release(view.claim, CLAIM_PROTECTION, &mut plan);
        }
        return plan;
    }
    if let Some(name) = spec.volume_name.as_deref().filter(|name| !name.is_empty()) {
        follow_volume(view, name, &mut plan);
        return plan;
    }
    match spec.storage_class_name.as_deref() {
        Some(class) => match fitting(view, spec, class) {
            Some(volume) => bind(view, volume, &mut plan),
            None => provide(view, spec, class, &mut plan),
        },
        None => match default_class(view.classes) {
            Some(name) => plan.patch(view.claim, json!({"spec": {"storageClassName": name}})),
            None => wait(view, FAILED_BINDING, NO_CLASS, &mut plan),
        },
    }
    plan
}

const LATE: &str = "WaitForFirstConsumer";
const FAILED_BINDING: &str = "FailedBinding";
const NO_CLASS: &str = "no persistent volumes available for this claim and no storage class is set";

/// There is no volume: the class may provide one.
fn provide(view: &View<'_>, spec: &PersistentVolumeClaimSpec, name: &str, plan: &mut Plan) {
    let mut classes = view.classes.iter();
    let class = classes.find(|class| class.metadata.name.as_deref() == Some(name));
    let Some(class) = class else {
        if name.is_empty() {
            wait(view, FAILED_BINDING, NO_CLASS, plan);
            return;
        }
        let message = format!("storageclass.storage.k8s.io {name:?} not found");
        let subject = Reference::to(view.claim);
        plan.record_event(Event::warning(
            subject,
            COMPONENT,
            "ProvisioningFailed",
            message,
        ));
        set_pending(view, plan);
        return;
    };
    if class.volume_binding_mode.as_deref() == Some(LATE) && !view.is_used {
        let message = "waiting for first consumer to be created before binding";
        wait(view, LATE, message, plan);
    } else {
        provision(view, spec, class, plan);
    }
}

fn default_class(classes: &[Arc<StorageClass>]) -> Option<&str> {
    let default = classes
        .iter()
        .filter(|class| annotation(&class.metadata, DEFAULT_CLASS) == Some("true"));
    let newest = default.max_by_key(|class| {
        class
            .metadata
            .creation_timestamp
            .as_ref()
            .map(|time| time.0)
    })?;
    newest.metadata.name.as_deref()
}

fn phase(claim: &PersistentVolumeClaim) -> Option<&str> {
    claim.status.as_ref()?.phase.as_deref()
}

fn wait(view: &View<'_>, reason: &'static str, message: &str, plan: &mut Plan) {
    plan.record_event(Event::normal(
        Reference::to(view.claim),
        COMPONENT,
        reason,
        message,
    ));
    set_pending(view, plan);
}

fn set_pending(view: &View<'_>, plan: &mut Plan) {
    let old = view.claim.status.clone().unwrap_or_default();
    let mut status = old.clone();
    status.phase = Some("Pending".to_owned());
    plan.status(view.claim, &old, &status);
}

/// The smallest volume that nobody has and that is large enough.
fn fitting<'a>(
    view: &'a View<'_>,
    spec: &PersistentVolumeClaimSpec,
    class: &str,
) -> Option<&'a PersistentVolume> {
    let wanted = requested(spec);
    let claim = key_of(view.claim);
    let candidates = view.volumes.iter().filter(|volume| {
        let Some(own) = &volume.spec else {
            return false;
        };
        let free = own.claim_ref.as_ref().is_none_or(|bound| {
            // A volume may be kept for one claim.
            bound.name.as_deref() == Some(&*claim.name)
                && bound.namespace.as_deref() == Some(&*claim.namespace)
                && bound
                    .uid
                    .as_deref()
                    .is_none_or(|uid| uid == uid_of(view.claim))
        });
        let modes = own.access_modes.as_deref().unwrap_or_default();
        let wanted_modes = spec.access_modes.as_deref().unwrap_or_default();
        free && !is_deleting(&volume.metadata)
            && own.storage_class_name.as_deref().unwrap_or_default() == class
            && wanted_modes.iter().all(|mode| modes.contains(mode))
            && spec
                .selector
                .as_ref()
                .is_none_or(|selector| matches(selector, volume.metadata.labels.as_ref()))
            && capacity(volume) >= wanted
    });
    candidates
        .min_by_key(|volume| capacity(volume))
        .map(AsRef::as_ref)
}

fn requested(spec: &PersistentVolumeClaimSpec) -> Option<Quantity> {
    let requests = spec.resources.as_ref()?.requests.as_ref()?;
    requests.get(STORAGE)?.0.parse().ok()
}

fn capacity(volume: &PersistentVolume) -> Option<Quantity> {
    let capacity = volume.spec.as_ref()?.capacity.as_ref()?;
    capacity.get(STORAGE)?.0.parse().ok()
}

fn reference(claim: &PersistentVolumeClaim) -> ObjectReference {
    let key = key_of(claim);
    ObjectReference {
        api_version: Some(Kind::Claim.api_version()),
        kind: Some(Kind::Claim.names().kind.to_owned()),
        name: Some(key.name.to_string()),
        namespace: Some(key.namespace.to_string()),
        uid: claim.metadata.uid.clone(),
        resource_version: claim.metadata.resource_version.clone(),
        ..ObjectReference::default()
    }
}

/// The volume is written first, so that no two claims get the same.
fn bind(view: &View<'_>, volume: &PersistentVolume, plan: &mut Plan) {
    let bound = volume
        .spec
        .as_ref()
        .and_then(|spec| spec.claim_ref.as_ref());
    if bound.and_then(|bound| bound.uid.as_deref()) != Some(uid_of(view.claim)) {
        plan.patch(
            volume,
            json!({
                "metadata": {
                    "annotations": {BOUND_BY_CONTROLLER: "yes"},
                    // Anyone who else wants it finds out.
                    "resourceVersion": volume.metadata.resource_version,
                },
                "spec": {"claimRef": to_json(&reference(view.claim))},
            }),
        );
    }
    let name = volume.metadata.name.as_deref().unwrap_or_default();
    plan.patch(
        view.claim,
        json!({
            "metadata": {"annotations": {BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes"}},
            "spec": {"volumeName": name},
        }),
    );
}

/// A claim that names a volume is bound as soon as the volume is there.
fn follow_volume(view: &View<'_>, name: &str, plan: &mut Plan) {
    let volume = view
        .volumes
        .iter()
        .find(|volume| volume.metadata.name.as_deref() == Some(name));
    let old = view.claim.status.clone().unwrap_or_default();
    let mut status = old.clone();
    let Some(volume) = volume else {
        if phase(view.claim) == Some("Bound") {
            let message = "Bound claim has lost its PersistentVolume. Data on the volume is lost!";
            plan.record_event(Event::warning(
                Reference::to(view.claim),
                COMPONENT,
                "ClaimLost",
                message,
            ));
            status.phase = Some("Lost".to_owned());
            plan.status(view.claim, &old, &status);
        }
        return;
    };
    let bound = volume
        .spec
        .as_ref()
        .and_then(|spec| spec.claim_ref.as_ref());
    match bound.and_then(|bound| bound.uid.as_deref()) {
        Some(uid) if uid != uid_of(view.claim) => return,
        Some(_) => {}
        None => {
            plan.patch(
                volume.as_ref(),
                json!({"spec": {"claimRef": to_json(&reference(view.claim))}}),
            );
        }
    }
    status.phase = Some("Bound".to_owned());
    status.access_modes = volume
        .spec
        .as_ref()
        .and_then(|spec| spec.access_modes.clone());
    status.capacity = volume.spec.as_ref().and_then(|spec| spec.capacity.clone());
    plan.status(view.claim, &old, &status);
}

/// Makes a volume for a claim.
fn provision(
    view: &View<'_>,
    spec: &PersistentVolumeClaimSpec,
    class: &StorageClass,
    plan: &mut Plan,
) {
    let claim = Reference::to(view.claim);
    if class.provisioner != PROVISIONER {
        let message = format!(
            "Waiting for a volume to be created either by the external provisioner '{}' or manually by the system administrator. If volume creation is delayed, please verify that the provisioner is running and correctly registered.",
            class.provisioner
        );
        plan.record_event(Event::normal(
            claim,
            COMPONENT,
            "ExternalProvisioning",
            message,
        ));
        set_pending(view, plan);
        return;
    }
    let name = format!("pvc-{}", claim.uid);
    let volume = new_volume(view.claim, spec, class, &name);
    let message = format!("Successfully provisioned volume {name}");
    let event = Event::normal(claim.clone(), PROVISIONER, "ProvisioningSucceeded", message);
    let failed = Event::warning(
        claim.clone(),
        PROVISIONER,
        "ProvisioningFailed",
        "failed to provision volume: {}",
    );
    plan.create(&volume, Some(claim), Some(event), Some(failed));
    plan.patch(
        view.claim,
        json!({
            "metadata": {"annotations": {
                BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes", STORAGE_PROVISIONER: PROVISIONER,
            }},
            "spec": {"volumeName": name},
        }),
    );
}

/// A volume made for a claim.
fn new_volume(
    claim: &PersistentVolumeClaim,
    spec: &PersistentVolumeClaimSpec,
    class: &StorageClass,
    name: &str,
) -> PersistentVolume {
    let resources = spec.resources.as_ref();
    PersistentVolume {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            annotations: Some([(PROVISIONED_BY.to_owned(), PROVISIONER.to_owned())].into()),
            ..ObjectMeta::default()
        },
        spec: Some(PersistentVolumeSpec {
            access_modes: spec.access_modes.clone(),
            capacity: resources.and_then(|resources| resources.requests.clone()),
            claim_ref: Some(reference(claim)),
            persistent_volume_reclaim_policy: class.reclaim_policy.clone(),
            storage_class_name: class.metadata.name.clone(),
            volume_mode: spec.volume_mode.clone(),
            host_path: Some(HostPathVolumeSource {
                path: format!("/var/lib/simulated-volumes/{name}"),
                type_: None,
            }),
            ..PersistentVolumeSpec::default()
        }),
        status: None,
    }
}

/// Lets go of an object that is being deleted.
fn release<K: Object>(object: &K, finalizer: &str, plan: &mut Plan) {
    let finalizers = object.metadata().finalizers.as_deref().unwrap_or_default();
    if finalizers.iter().any(|name| name == finalizer) {
        let others: Vec<_> = finalizers
            .iter()
            .filter(|name| *name != finalizer)
            .collect();
        let value = if others.is_empty() {
            Value::Null
        } else {
            json!(others)
        };
        plan.patch(object, json!({"metadata": {"finalizers": value}}));
    }
}

/// What has to be done for a volume: it is free, bound, or left over.
pub(crate) fn decide_volume(
    volume: &PersistentVolume,
    claim: Option<&PersistentVolumeClaim>,
) -> Plan {
    let mut plan = Plan::default();
    let Some(spec) = &volume.spec else {
        return plan;
    };
    let deleting = is_deleting(&volume.metadata);
    let bound = spec.claim_ref.as_ref().filter(|bound| bound.uid.is_some());
    let claim =
        claim.filter(|claim| claim.metadata.uid == bound.and_then(|bound| bound.uid.clone()));
    let phase = match (bound, claim) {
        (None, _) => "Available",
        (Some(_), Some(_)) => "Bound",
        (Some(_), None) if spec.persistent_volume_reclaim_policy.as_deref() == Some("Delete") => {
            if !deleting {
                plan.delete(volume);
            }
            "Released"
        }
        (Some(_), None) => "Released",
    };
    if deleting {
        if phase != "Bound" {
            release(volume, VOLUME_PROTECTION, &mut plan);
        }
        return plan;
    }
    let old = volume.status.clone().unwrap_or_default();
    let mut status = old.clone();
    status.phase = Some(phase.to_owned());
    plan.status(volume, &old, &status);
    plan
}
