//! Volumes of a pod, and how containers mount them.

use std::collections::{HashMap, HashSet};

use bellwether_schema::{FieldError, FieldPath};
use serde_json::Value;

use super::container::is_privileged;
use super::environment::{self, FILE_FIELDS};
use super::security::file_mode;
use crate::check::{self, Errors};
use crate::core::volume as claim;
use crate::value::{self, at, flag, has, int, list, text};

/// Kinds of volumes, in the order in which Kubernetes looks for them.
const SOURCES: &[&str] = &[
    "emptyDir",
    "hostPath",
    "gitRepo",
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "secret",
    "nfs",
    "iscsi",
    "glusterfs",
    "flocker",
    "persistentVolumeClaim",
    "rbd",
    "cinder",
    "cephfs",
    "quobyte",
    "downwardAPI",
    "fc",
    "flexVolume",
    "configMap",
    "azureFile",
    "vsphereVolume",
    "photonPersistentDisk",
    "portworxVolume",
    "azureDisk",
    "storageos",
    "projected",
    "scaleIO",
    "csi",
    "ephemeral",
    "image",
];
const HOST_PATH_TYPES: &[&str] = &[
    "",
    "BlockDevice",
    "CharDevice",
    "Directory",
    "DirectoryOrCreate",
    "File",
    "FileOrCreate",
    "Socket",
];
/// Shortest and longest life of a projected token, in seconds.
const TOKEN_SECONDS: std::ops::RangeInclusive<i64> = 600..=1 << 32;

/// What containers of a pod refer to: the volumes that are sound enough to be mounted, and the names
/// of its resource claims.
pub(super) struct Volumes<'a> {
    pub(super) claims: HashSet<&'a str>,
    known: HashMap<&'a str, &'a Value>,
}

/// Checks the volumes of a pod.
pub(super) fn volumes<'a>(
    spec: &'a Value,
    path: &FieldPath<'_>,
    errors: &mut Errors,
) -> Volumes<'a> {
    let mut volumes = Volumes {
        claims: value::names(list(spec, &["resourceClaims"])),
        known: HashMap::new(),
    };
    for (index, volume) in list(spec, &["volumes"]).iter().enumerate() {
        let path = path.index(index);
        let before = errors.len();
        source(volume, &path, errors);
        let name = check::required(errors, volume, &path, "name");
        if !name.is_empty() {
            check::label(errors, &path.child("name"), name);
        }
        if volumes.find(name).is_some() {
            errors.push(FieldError::duplicate(&path.child("name"), name));
        }
        if errors.len() == before {
            volumes.known.insert(name, volume);
        }
    }
    volumes
}

impl Volumes<'_> {
    fn find(&self, name: &str) -> Option<&Value> {
        self.known.get(name).copied()
    }

    /// Checks the mounts of a container.
    pub(super) fn mounts(&self, container: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
        let mounts = list(container, &["volumeMounts"]);
        let devices = list(container, &["volumeDevices"]);
        let of_devices = |field: &str| -> HashSet<&str> {
            let texts = devices.iter().map(|device| text(device, &[field]));
            texts.collect()
        };
        let (device_names, device_paths) = (of_devices("name"), of_devices("devicePath"));
        let mut seen = HashSet::new();
        for (index, mount) in mounts.iter().enumerate() {
            let item = path.index(index);
            let name = check::required(errors, mount, &item, "name");
            if self.find(name).is_none() {
                errors.push(FieldError::not_found(&item.child("name"), name));
            }
            let place = check::required(errors, mount, &item, "mountPath");
            if !seen.insert(place) {
                let detail = "must be unique";
                errors.push(FieldError::invalid(&item.child("mountPath"), place, detail));
            }
            if device_names.contains(name) {
                let detail = "must not already exist in volumeDevices";
                errors.push(FieldError::invalid(&item.child("name"), name, detail));
            }
            if device_paths.contains(place) {
                let detail = "must not already exist as a path in volumeDevices";
                errors.push(FieldError::invalid(&item.child("mountPath"), place, detail));
            }
            sub_path(mount, &item, path, errors);
            propagation(mount, container, &path.child("mountPropagation"), errors);
            recursive_read_only(mount, &path.child("recursiveReadOnly"), errors);
        }
    }

    /// Checks the block devices of a container.
    pub(super) fn devices(&self, container: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
        let devices = list(container, &["volumeDevices"]);
        let (mut names, mut places) = (HashSet::new(), HashSet::new());
        for (index, device) in devices.iter().enumerate() {
            let path = path.index(index);
            let name = check::required(errors, device, &path, "name");
            let name_path = path.child("name");
            if !names.insert(name) {
                errors.push(FieldError::invalid(&name_path, name, "must be unique"));
            }
            match self.find(name) {
                None => errors.push(FieldError::not_found(&name_path, name)),
                Some(volume) => {
                    let claimed = has(volume, &["persistentVolumeClaim"]);
                    if !claimed && !has(volume, &["ephemeral"]) {
                        let detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode";
                        errors.push(FieldError::invalid(&name_path, name, detail));
                    }
                }
            }
            let place = check::required(errors, device, &path, "devicePath");
            let place_path = path.child("devicePath");
            if !places.insert(place) {
                errors.push(FieldError::invalid(&place_path, place, "must be unique"));
            }
            if goes_back(place) {
                let detail = "can not contain backsteps ('..')";
                errors.push(FieldError::invalid(&place_path, place, detail));
            }
        }
    }
}

fn sub_path(mount: &Value, item: &FieldPath<'_>, path: &FieldPath<'_>, errors: &mut Errors) {
    let plain = text(mount, &["subPath"]);
    let expression = text(mount, &["subPathExpr"]);
    // The paths of these two are those of the list.
    if !plain.is_empty() {
        descending(plain, &path.child("subPath"), errors);
    }
    if !expression.is_empty() {
        if !plain.is_empty() {
            let detail = "subPathExpr and subPath are mutually exclusive";
            errors.push(FieldError::invalid(
                &item.child("subPathExpr"),
                expression,
                detail,
            ));
        }
        descending(expression, &path.child("subPathExpr"), errors);
    }
}

fn propagation(mount: &Value, container: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    if !has(mount, &["mountPropagation"]) {
        return;
    }
    let mode = text(mount, &["mountPropagation"]);
    let modes = ["Bidirectional", "HostToContainer", "None"];
    check::supported(errors, path, mode, &modes);
    if mode == "Bidirectional" && !is_privileged(container) {
        let detail = "Bidirectional mount propagation is available only to privileged containers";
        errors.push(FieldError::forbidden(path, detail));
    }
}

fn recursive_read_only(mount: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    if !has(mount, &["recursiveReadOnly"]) {
        return;
    }
    let mode = text(mount, &["recursiveReadOnly"]);
    let modes = ["Disabled", "Enabled", "IfPossible"];
    if !check::supported(errors, path, mode, &modes) || mode == "Disabled" {
        return;
    }
    if !flag(mount, &["readOnly"]) {
        let detail = "may only be specified when readOnly is true";
        errors.push(FieldError::forbidden(path, detail));
    }
    if !matches!(text(mount, &["mountPropagation"]), "" | "None") {
        let detail = "may only be specified when mountPropagation is None or not specified";
        errors.push(FieldError::forbidden(path, detail));
    }
}

/// Checks that a volume has one source, and that it is sound.
fn source(volume: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let mut found = false;
    for kind in SOURCES {
        let source = at(volume, &[kind]);
        if source.is_null() {
            continue;
        }
        let path = path.child(kind);
        if found {
            let detail = "may not specify more than 1 volume type";
            errors.push(FieldError::forbidden(&path, detail));
            continue;
        }
        found = true;
        one_source(kind, source, &path, errors);
    }
    if !found {
        errors.push(FieldError::required(path, "must specify a volume type"));
    }
}

fn one_source(kind: &str, source: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    match kind {
        "emptyDir" => {
            let limit = check::quantity(at(source, &["sizeLimit"]));
            if limit.is_some_and(|limit| limit.signum() < 0) {
                let detail = "SizeLimit field must be a valid resource quantity";
                errors.push(FieldError::forbidden(&path.child("sizeLimit"), detail));
            }
        }
        "hostPath" => host_path(source, path, errors),
        "secret" | "configMap" => {
            let name = if kind == "secret" {
                "secretName"
            } else {
                "name"
            };
            check::required(errors, source, path, name);
            file_mode(source, "defaultMode", path, errors);
            let path = path.child("items");
            for (index, item) in list(source, &["items"]).iter().enumerate() {
                key_to_path(item, &path.index(index), errors);
            }
        }
        "persistentVolumeClaim" => {
            check::required(errors, source, path, "claimName");
        }
        "nfs" => nfs(source, path, errors),
        "downwardAPI" => {
            file_mode(source, "defaultMode", path, errors);
            for file in list(source, &["items"]) {
                downward_file(file, path, errors);
            }
        }
        "projected" => projected(source, path, errors),
        "csi" => {
            check::required(errors, source, path, "driver");
        }
        "ephemeral" => {
            let template = at(source, &["volumeClaimTemplate"]);
            let path = path.child("volumeClaimTemplate");
            if template.is_null() {
                errors.push(FieldError::required(&path, ""));
            } else {
                claim::validate_spec(at(template, &["spec"]), &path.child("spec"), errors);
            }
        }
        _ => {}
    }
}

/// Checks a path of the host.
pub(crate) fn host_path(source: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let place = check::required(errors, source, path, "path");
    if place.is_empty() {
        return;
    }
    no_way_back(place, &path.child("path"), errors);
    if has(source, &["type"]) {
        let kind = text(source, &["type"]);
        check::supported(errors, &path.child("type"), kind, HOST_PATH_TYPES);
    }
}

/// Checks a share of a file server.
pub(crate) fn nfs(source: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    check::required(errors, source, path, "server");
    let place = check::required(errors, source, path, "path");
    if !place.starts_with('/') {
        let detail = "must be an absolute path";
        errors.push(FieldError::invalid(&path.child("path"), place, detail));
    }
}

fn key_to_path(item: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    check::required(errors, item, path, "key");
    let place = check::required(errors, item, path, "path");
    not_reserved(place, &path.child("path"), errors);
    file_mode(item, "mode", path, errors);
}

fn downward_file(file: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let place = check::required(errors, file, path, "path");
    not_reserved(place, &path.child("path"), errors);
    let (field, resource) = (at(file, &["fieldRef"]), at(file, &["resourceFieldRef"]));
    if field.is_object() {
        environment::field(field, FILE_FIELDS, &path.child("fieldRef"), errors);
        if resource.is_object() {
            let detail = "fieldRef and resourceFieldRef can not be specified simultaneously";
            errors.push(FieldError::invalid(path, "resource", detail));
        }
    } else if resource.is_object() {
        environment::resource(resource, true, &path.child("resourceFieldRef"), errors);
    } else {
        let detail = "one of fieldRef and resourceFieldRef is required";
        errors.push(FieldError::required(path, detail));
    }
    file_mode(file, "mode", path, errors);
}

fn projected(source: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    file_mode(source, "defaultMode", path, errors);
    let sources = path.child("sources");
    let mut places: HashSet<&str> = HashSet::new();
    for (index, source) in list(source, &["sources"]).iter().enumerate() {
        let item = sources.index(index);
        let mut count = 0;
        for kind in ["secret", "configMap"] {
            let object = at(source, &[kind]);
            if object.is_null() {
                continue;
            }
            count += 1;
            let item = item.child(kind);
            let name = check::required(errors, object, &item, "name");
            let items = item.child("items");
            for (index, key) in list(object, &["items"]).iter().enumerate() {
                key_to_path(key, &items.index(index), errors);
                take(text(key, &["path"]), name, &mut places, path, errors);
            }
        }
        let downward = at(source, &["downwardAPI"]);
        if downward.is_object() {
            count += 1;
            for file in list(downward, &["items"]) {
                downward_file(file, &item.child("downwardAPI"), errors);
                let place = text(file, &["path"]);
                take(place, place, &mut places, path, errors);
            }
        }
        let token = at(source, &["serviceAccountToken"]);
        if token.is_object() {
            count += 1;
            token_projection(token, &item.child("serviceAccountToken"), path, errors);
        }
        if count > 1 {
            let detail = "may not specify more than 1 volume type per source";
            errors.push(FieldError::forbidden(&item, detail));
        }
    }
}

/// Reports a file that is already there.
fn take<'a>(
    place: &'a str,
    blamed: &str,
    places: &mut HashSet<&'a str>,
    path: &FieldPath<'_>,
    errors: &mut Errors,
) {
    if place.is_empty() {
    } else if !places.insert(place) {
        errors.push(FieldError::invalid(
            path,
            blamed,
            "conflicting duplicate paths",
        ));
    }
}

fn token_projection(
    token: &Value,
    item: &FieldPath<'_>,
    path: &FieldPath<'_>,
    errors: &mut Errors,
) {
    let seconds = int(token, &["expirationSeconds"]);
    let problem = if seconds < *TOKEN_SECONDS.start() {
        "may not specify a duration less than 10 minutes"
    } else if seconds > *TOKEN_SECONDS.end() {
        "may not specify a duration larger than 2^32 seconds"
    } else {
        ""
    };
    if !problem.is_empty() {
        errors.push(FieldError::invalid(
            &item.child("expirationSeconds"),
            seconds,
            problem,
        ));
    }
    let place = check::required(errors, token, path, "path");
    if !place.is_empty() {
        not_reserved(place, &path.child("path"), errors);
    }
}

fn goes_back(place: &str) -> bool {
    place.split('/').any(|part| part == "..")
}

fn no_way_back(place: &str, path: &FieldPath<'_>, errors: &mut Errors) {
    if goes_back(place) {
        errors.push(FieldError::invalid(path, place, "must not contain '..'"));
    }
}

/// Checks that a path stays below where it starts.
pub(super) fn descending(place: &str, path: &FieldPath<'_>, errors: &mut Errors) {
    if place.starts_with('/') {
        errors.push(FieldError::invalid(path, place, "must be a relative path"));
    }
    no_way_back(place, path, errors);
}

fn not_reserved(place: &str, path: &FieldPath<'_>, errors: &mut Errors) {
    descending(place, path, errors);
    if place.starts_with("..") && !place.starts_with("../") {
        errors.push(FieldError::invalid(path, place, "must not start with '..'"));
    }
}
