//! PersistentVolumes and PersistentVolumeClaims.

use bellwether_json::time;
use bellwether_schema::{FieldError, FieldPath};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use serde_json::Value;

use crate::check::{self, Errors};
use crate::columns::{AGE, NAME, age, cell, cell_or, name, wide, words};
use crate::core::pod;
use crate::resource::STATUS;
use crate::value::{
    Fill, at, entries, existing, has, remove, restore, restore_at, same, text, texts,
};
use crate::{Column, Creation, Resource, selector};

pub(crate) const VOLUME: Resource = Resource {
    short_names: &["pv"],
    returns_deleted: true,
    subresources: &[STATUS],
    default: default_volume,
    prepare_create: prepare_volume,
    prepare_part: prepare_volume_part,
    validate: validate_volume,
    columns: VOLUME_COLUMNS,
    row: volume_row,
    ..Resource::cluster::<PersistentVolume>("", "v1", "PersistentVolume", "persistentvolumes")
};

pub(crate) const CLAIM: Resource = Resource {
    short_names: &["pvc"],
    returns_deleted: true,
    subresources: &[STATUS],
    default: default_claim,
    prepare_create: prepare_claim,
    prepare_update: prepare_claim_update,
    validate: validate_claim,
    revalidates: true,
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

fn default_volume(object: &mut Value) {
    if let Some(status) = existing(object, &["status"]) {
        status.fill_zero("phase", PENDING);
    }
    if let Some(spec) = existing(object, &["spec"]) {
        spec.fill_zero("persistentVolumeReclaimPolicy", "Retain");
        spec.fill("volumeMode", "Filesystem");
    }
    if let Some(source) = existing(object, &["spec", "hostPath"]) {
        source.fill("type", "");
    }
    if let Some(spec) = object.get_mut("spec") {
        pod::legacy_volume(spec);
    }
}

fn prepare_volume(object: &mut Value, creation: &Creation<'_>) {
    protect(object, "kubernetes.io/pv-protection");
    if let Some(status) = existing(object, &["status"]) {
        status.insert("phase".to_owned(), PENDING.into());
        status.insert(
            TRANSITION.to_owned(),
            time::format_time(creation.now).into(),
        );
    }
}

/// The server notes when the phase changed, unless the writer does.
fn prepare_volume_part(part: &str, new: &mut Value, old: &Value, now: Timestamp) {
    if part != "status" {
        return;
    }
    let path = ["status", TRANSITION];
    let moved = text(new, &["status", "phase"]) != text(old, &["status", "phase"]);
    let noted = has(new, &path) && at(new, &path) != at(old, &path);
    if noted || (!moved && has(new, &path)) {
        return;
    }
    if moved {
        if let Some(status) = existing(new, &["status"]) {
            status.insert(TRANSITION.to_owned(), time::format_time(now).into());
        }
    } else {
        restore_at(new, old, &["status"], TRANSITION);
    }
}

/// Fills in a claim, or the template of one.
pub(crate) fn default_claim(object: &mut Value) {
    if let Some(status) = existing(object, &["status"]) {
        status.fill_zero("phase", PENDING);
    }
    if let Some(spec) = existing(object, &["spec"]) {
        spec.fill("volumeMode", "Filesystem");
    }
}

fn prepare_claim(object: &mut Value, _creation: &Creation<'_>) {
    protect(object, "kubernetes.io/pvc-protection");
    if let Some(status) = existing(object, &["status"]) {
        status.insert("phase".to_owned(), PENDING.into());
    }
    align_data_sources(object);
}

/// Storage that is in use stays until it no longer is.
pub(crate) fn protect(object: &mut Value, finalizer: &str) {
    let Some(metadata) = existing(object, &["metadata"]) else {
        return;
    };
    metadata.fill_zero("finalizers", Value::Array(Vec::new()));
    if let Some(Value::Array(finalizers)) = metadata.get_mut("finalizers")
        && !finalizers.iter().any(|found| found == finalizer)
    {
        finalizers.push(finalizer.into());
    }
}

fn prepare_claim_update(new: &mut Value, _old: &Value) {
    align_data_sources(new);
}

/// `dataSource` and `dataSourceRef` mean the same where the former can say it.
fn align_data_sources(object: &mut Value) {
    let source = at(object, &["spec", "dataSource"]);
    let known = [
        ("", "PersistentVolumeClaim"),
        ("snapshot.storage.k8s.io", "VolumeSnapshot"),
    ];
    if !known.contains(&(text(source, &["apiGroup"]), text(source, &["kind"]))) {
        remove(object, &["spec"], "dataSource");
    }
    let spec = at(object, &["spec"]);
    let (source, reference) = (
        at(spec, &["dataSource"]).clone(),
        at(spec, &["dataSourceRef"]).clone(),
    );
    let Some(spec) = existing(object, &["spec"]) else {
        return;
    };
    if source.is_object() && reference.is_null() {
        spec.insert("dataSourceRef".to_owned(), source);
    } else if reference.is_object() && source.is_null() && !has(&reference, &["namespace"]) {
        spec.insert("dataSource".to_owned(), reference);
    }
}

/// Kinds of volumes that can persist.
const SOURCES: &[&str] = &[
    "hostPath",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "flocker",
    "nfs",
    "rbd",
    "quobyte",
    "cephfs",
    "iscsi",
    "cinder",
    "fc",
    "flexVolume",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "scaleIO",
    "local",
    "storageos",
    "csi",
];

fn validate_volume(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let path = FieldPath::new("spec");
    let spec = at(new, &["spec"]);
    let modes: Vec<_> = texts(spec, &["accessModes"]).collect();
    if modes.is_empty() {
        errors.push(FieldError::required(&path.child("accessModes"), ""));
    }
    validate_modes(&modes, &path.child("accessModes"), errors);
    validate_capacity(spec, &path.child("capacity"), errors);
    let policy = text(spec, &["persistentVolumeReclaimPolicy"]);
    if !policy.is_empty() {
        let path = path.child("persistentVolumeReclaimPolicy");
        check::supported(errors, &path, policy, &["Delete", "Recycle", "Retain"]);
    }
    let affinity = at(spec, &["nodeAffinity", "required"]);
    if has(spec, &["nodeAffinity"]) {
        let path = path.child("nodeAffinity");
        if affinity.is_null() {
            let detail = "must specify required node constraints";
            errors.push(FieldError::required(&path.child("required"), detail));
        } else {
            pod::node_selector(affinity, &path.child("required"), errors);
        }
    }
    let count = SOURCES.iter().filter(|source| has(spec, &[source])).count();
    if count == 0 {
        errors.push(FieldError::required(&path, "must specify a volume type"));
    }
    for source in SOURCES.iter().filter(|source| has(spec, &[source])).skip(1) {
        let detail = "may not specify more than 1 volume type";
        errors.push(FieldError::forbidden(&path.child(source), detail));
    }
    if text(spec, &["hostPath", "path"]) == "/" && policy == "Recycle" {
        let path = path.child("persistentVolumeReclaimPolicy");
        let detail = "may not be 'recycle' for a hostPath mount of '/'";
        errors.push(FieldError::forbidden(&path, detail));
    }
    let class = text(spec, &["storageClassName"]);
    if !class.is_empty() {
        check::subdomain(errors, &path.child("storageClassName"), class);
    }
    if has(spec, &["volumeMode"]) {
        let mode = text(spec, &["volumeMode"]);
        check::supported(errors, &path.child("volumeMode"), mode, VOLUME_MODES);
    }
    if let Some(old) = old {
        validate_volume_update(spec, at(old, &["spec"]), &path, errors);
    }
}

fn validate_capacity(spec: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let capacity = at(spec, &["capacity"]);
    let count = entries(capacity, &[]).count();
    if count == 0 {
        errors.push(FieldError::required(path, ""));
    }
    if count > 1 || capacity.get("storage").is_none() {
        let value = if capacity.is_null() {
            Value::Null
        } else {
            capacity.clone()
        };
        errors.push(FieldError::not_supported(path, value, &["storage"]));
    }
    for (name, amount) in entries(capacity, &[]) {
        if let Some(value) = check::quantity(amount).map(|amount| amount.value())
            && value < 0
        {
            let detail = "must be a valid resource quantity";
            errors.push(FieldError::invalid(&path.key(name), value, detail));
        }
        if check::quantity(amount).is_some_and(|amount| amount.signum() <= 0) {
            let detail = "must be greater than zero";
            errors.push(FieldError::invalid(&path.key(name), amount.clone(), detail));
        }
    }
}

fn validate_volume_update(spec: &Value, old: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let mut sources = SOURCES.iter();
    if sources.any(|source| !same(at(spec, &[source]), at(old, &[source]))) {
        let path = path.child("persistentvolumesource");
        let detail = "spec.persistentvolumesource is immutable after creation";
        errors.push(FieldError::forbidden(&path, detail));
    }
    if !same(at(spec, &["volumeMode"]), at(old, &["volumeMode"])) {
        let value = at(spec, &["volumeMode"]).clone();
        let path = FieldPath::new("volumeMode");
        errors.push(FieldError::invalid(&path, value, crate::meta::IMMUTABLE));
    }
    let before = at(old, &["nodeAffinity"]);
    if !before.is_null() && !same(at(spec, &["nodeAffinity"]), before) {
        let value = at(spec, &["nodeAffinity"]).clone();
        let path = FieldPath::new("nodeAffinity");
        errors.push(FieldError::invalid(&path, value, crate::meta::IMMUTABLE));
    }
}

fn validate_claim(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let path = FieldPath::new("spec");
    validate_spec(at(new, &["spec"]), &path, errors);
    if let Some(old) = old {
        validate_claim_update(new, old, &path, errors);
    }
}

fn validate_claim_update(new: &Value, old: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let mut now = at(new, &["spec"]).clone();
    let before = at(old, &["spec"]);
    let bound = text(new, &["status", "phase"]) == "Bound";
    if text(before, &["volumeName"]).is_empty() {
        restore(&mut now, before, "volumeName");
    }
    // A claim that was made before there was a default class may be given one.
    if before.get("storageClassName").is_none() {
        restore(&mut now, before, "storageClassName");
    }
    if bound {
        restore_at(&mut now, before, &["resources", "requests"], "storage");
        restore(&mut now, before, "volumeAttributesClassName");
    }
    if !same(&now, before) {
        let detail = "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
        errors.push(FieldError::forbidden(path, detail));
    }
    let size = |object: &Value, path: &[&str]| check::quantity(at(object, path));
    let requested = ["spec", "resources", "requests", "storage"];
    if let (Some(wanted), Some(before)) = (size(new, &requested), size(old, &requested))
        && wanted < before
        && size(old, &["status", "capacity", "storage"]).is_some_and(|actual| wanted <= actual)
    {
        let detail = "field can not be less than status.capacity";
        let path = path.child("resources");
        let path = path.child("requests");
        errors.push(FieldError::forbidden(&path.child("storage"), detail));
    }
    check::immutable(
        errors,
        new,
        old,
        &["spec", "volumeMode"],
        &FieldPath::new("volumeMode"),
    );
}

/// Checks the spec of a claim, or of the template of one.
pub(crate) fn validate_spec(spec: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let modes_path = path.child("accessModes");
    let modes: Vec<_> = texts(spec, &["accessModes"]).collect();
    if modes.is_empty() {
        let detail = "at least 1 access mode is required";
        errors.push(FieldError::required(&modes_path, detail));
    }
    let selector = at(spec, &["selector"]);
    selector::validate(selector, &path.child("selector"), errors);
    validate_modes(&modes, &modes_path, errors);
    validate_size(spec, path, errors);
    for field in ["storageClassName", "volumeAttributesClassName"] {
        let class = text(spec, &[field]);
        if !class.is_empty() {
            check::subdomain(errors, &path.child(field), class);
        }
    }
    if has(spec, &["volumeMode"]) {
        let mode = text(spec, &["volumeMode"]);
        check::supported(errors, &path.child("volumeMode"), mode, VOLUME_MODES);
    }
    for field in ["dataSource", "dataSourceRef"] {
        let source = at(spec, &[field]);
        if source.is_object() {
            validate_source(source, &path.child(field), errors);
        }
    }
}

fn validate_modes(modes: &[&str], path: &FieldPath<'_>, errors: &mut Errors) {
    for mode in modes {
        check::supported(errors, path, mode, ACCESS_MODES);
    }
    let exclusive = modes.contains(&"ReadWriteOncePod");
    let others = |mode: &&str| *mode != "ReadWriteOncePod" && ACCESS_MODES.contains(mode);
    if exclusive && modes.iter().any(others) {
        let detail = "may not use ReadWriteOncePod with other access modes";
        errors.push(FieldError::forbidden(path, detail));
    }
}

fn validate_size(spec: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let size = at(spec, &["resources", "requests", "storage"]);
    let path = path.child("resources");
    let path = path.key("storage");
    match check::quantity(size) {
        None => errors.push(FieldError::required(&path, "")),
        Some(amount) if amount.signum() <= 0 => {
            let detail = "must be greater than zero";
            errors.push(FieldError::invalid(&path, size.clone(), detail));
        }
        Some(_) => {}
    }
}

fn validate_source(source: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    check::required(errors, source, path, "name");
    let kind = check::required(errors, source, path, "kind");
    let group = text(source, &["apiGroup"]);
    if group.is_empty() && kind != "PersistentVolumeClaim" {
        let detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        errors.push(FieldError::invalid(path, kind, detail));
    }
    if !group.is_empty() {
        check::subdomain(errors, &path.child("apiGroup"), group);
    }
}

const ACCESS_MODES: &[&str] = &[
    "ReadOnlyMany",
    "ReadWriteMany",
    "ReadWriteOnce",
    "ReadWriteOncePod",
];
const VOLUME_MODES: &[&str] = &["Block", "Filesystem"];

/// The phase of what has not been bound yet.
const PENDING: &str = "Pending";
const TRANSITION: &str = "lastPhaseTransitionTime";

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
