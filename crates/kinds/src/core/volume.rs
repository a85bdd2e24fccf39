//! PersistentVolumes and PersistentVolumeClaims.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use serde_json::Value;

use crate::columns::{AGE, NAME, age, cell, cell_or, name, wide, words};
use crate::resource::STATUS;
use crate::value::{at, has, text, texts};
use crate::{Column, Resource};

pub(crate) const VOLUME: Resource = Resource {
    short_names: &["pv"],
    subresources: &[STATUS],
    columns: VOLUME_COLUMNS,
    row: volume_row,
    ..Resource::cluster::<PersistentVolume>("", "v1", "PersistentVolume", "persistentvolumes")
};

pub(crate) const CLAIM: Resource = Resource {
    short_names: &["pvc"],
    subresources: &[STATUS],
    columns: CLAIM_COLUMNS,
    row: claim_row,
    ..Resource::namespaced::<PersistentVolumeClaim>(
        "",
        "v1",
        "PersistentVolumeClaim",
        "persistentvolumeclaims",
    )
};

/// Before there was a field for it, the class was an annotation, which still wins.
const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

const VOLUME_COLUMNS: &[Column] = &[
    NAME,
    words("Capacity", "Size of the volume."),
    words("Access Modes", "How it can be mounted."),
    words("Reclaim Policy", "What becomes of it when it is released."),
    words("Status", "Whether it is bound."),
    words("Claim", "The claim that it is bound to."),
    words("StorageClass", "Its class."),
    words("VolumeAttributesClass", "Its class of attributes."),
    words("Reason", "Why it has its status."),
    AGE,
    wide("VolumeMode", "File system or block device."),
];

fn volume_row(object: &Value, now: Timestamp) -> Vec<Value> {
    let claim = at(object, &["spec", "claimRef"]);
    let claim = if claim.is_null() {
        String::new()
    } else {
        format!("{}/{}", text(claim, &["namespace"]), text(claim, &["name"]))
    };
    vec![
        name(object),
        cell_or(object, &["spec", "capacity", "storage"], "0"),
        access_modes(at(object, &["spec", "accessModes"])).into(),
        cell(object, &["spec", "persistentVolumeReclaimPolicy"]),
        phase(object),
        claim.into(),
        class(object),
        cell_or(object, &["spec", "volumeAttributesClassName"], "<unset>"),
        cell(object, &["status", "reason"]),
        age(object, now),
        cell_or(object, &["spec", "volumeMode"], "<unset>"),
    ]
}

const CLAIM_COLUMNS: &[Column] = &[
    NAME,
    words("Status", "Whether it is bound."),
    words("Volume", "The volume that it is bound to."),
    words("Capacity", "Size of the volume."),
    words("Access Modes", "How it can be mounted."),
    words("StorageClass", "Its class."),
    words("VolumeAttributesClass", "Its class of attributes."),
    AGE,
    wide("VolumeMode", "File system or block device."),
];

fn claim_row(object: &Value, now: Timestamp) -> Vec<Value> {
    let bound = !text(object, &["spec", "volumeName"]).is_empty();
    let (capacity, modes) = if bound {
        (
            cell_or(object, &["status", "capacity", "storage"], "0"),
            access_modes(at(object, &["status", "accessModes"])),
        )
    } else {
        ("".into(), String::new())
    };
    vec![
        name(object),
        phase(object),
        cell(object, &["spec", "volumeName"]),
        capacity,
        modes.into(),
        class(object),
        cell_or(object, &["spec", "volumeAttributesClassName"], "<unset>"),
        age(object, now),
        cell_or(object, &["spec", "volumeMode"], "<unset>"),
    ]
}

fn phase(object: &Value) -> Value {
    if has(object, &["metadata", "deletionTimestamp"]) {
        "Terminating".into()
    } else {
        cell(object, &["status", "phase"])
    }
}

fn class(object: &Value) -> Value {
    match text(object, &["metadata", "annotations", CLASS_ANNOTATION]) {
        "" => cell(object, &["spec", "storageClassName"]),
        class => class.into(),
    }
}

/// `RWO,ROX`: always in the same order, each once.
fn access_modes(modes: &Value) -> String {
    let short = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ];
    let found: Vec<_> = short
        .into_iter()
        .filter(|(long, _)| texts(modes, &[]).any(|mode| mode == *long))
        .map(|(_, short)| short)
        .collect();
    found.join(",")
}
