//! The `storage.k8s.io` group: kinds of volumes, and what drivers say of them.

use bellwether_schema::{FieldError, FieldPath};
use jiff::Timestamp;
use k8s_openapi::api::storage::v1::{
    CSIDriver, CSINode, CSIStorageCapacity, StorageClass, VolumeAttachment, VolumeAttributesClass,
};
use serde_json::Value;

use crate::check::{self, Errors};
use crate::columns::{
    AGE, NAME, NAME_AND_CREATION, age, cell, cell_or, column, name, name_and_creation, words,
};
use crate::core::volume::protect;
use crate::resource::STATUS;
use crate::value::{Fill, at, entries, existing, flag, has, list, same, text, texts};
use crate::{Column, Resource};

const GROUP: &str = "storage.k8s.io";

pub(crate) const STORAGE_CLASS: Resource = Resource {
    short_names: &["sc"],
    default: default_class,
    validate: validate_class,
    columns: CLASS_COLUMNS,
    row: class_row,
    ..Resource::cluster::<StorageClass>(GROUP, "v1", "StorageClass", "storageclasses")
};

pub(crate) const VOLUME_ATTRIBUTES_CLASS: Resource = Resource {
    short_names: &["vac"],
    prepare_create: |object, _| protect(object, "kubernetes.io/vac-protection"),
    validate: validate_attributes,
    columns: &[NAME, words("DriverName", "The driver of the class."), AGE],
    row: attributes_row,
    ..Resource::cluster::<VolumeAttributesClass>(
        GROUP,
        "v1",
        "VolumeAttributesClass",
        "volumeattributesclasses",
    )
};

pub(crate) const CSI_DRIVER: Resource = Resource {
    unconditional_update: false,
    default: default_driver,
    validate: validate_driver,
    columns: DRIVER_COLUMNS,
    row: driver_row,
    ..Resource::cluster::<CSIDriver>(GROUP, "v1", "CSIDriver", "csidrivers")
};

pub(crate) const CSI_NODE: Resource = Resource {
    unconditional_update: false,
    columns: &[
        NAME,
        column("Drivers", "integer", "Drivers on the node."),
        AGE,
    ],
    row: node_row,
    ..Resource::cluster::<CSINode>(GROUP, "v1", "CSINode", "csinodes")
};

pub(crate) const CSI_STORAGE_CAPACITY: Resource = Resource {
    unconditional_update: false,
    columns: NAME_AND_CREATION,
    row: name_and_creation,
    ..Resource::namespaced::<CSIStorageCapacity>(
        GROUP,
        "v1",
        "CSIStorageCapacity",
        "csistoragecapacities",
    )
};

pub(crate) const VOLUME_ATTACHMENT: Resource = Resource {
    subresources: &[STATUS],
    unconditional_update: false,
    validate: validate_attachment,
    columns: ATTACHMENT_COLUMNS,
    row: attachment_row,
    ..Resource::cluster::<VolumeAttachment>(GROUP, "v1", "VolumeAttachment", "volumeattachments")
};

fn default_class(object: &mut Value) {
    if let Some(class) = object.as_object_mut() {
        class.fill("reclaimPolicy", "Delete");
        class.fill("volumeBindingMode", "Immediate");
    }
}

fn default_driver(object: &mut Value) {
    if let Some(spec) = existing(object, &["spec"]) {
        spec.fill("attachRequired", true);
        for field in [
            "podInfoOnMount",
            "storageCapacity",
            "requiresRepublish",
            "seLinuxMount",
        ] {
            spec.fill(field, false);
        }
        spec.fill("fsGroupPolicy", "ReadWriteOnceWithFSType");
        spec.fill_zero("volumeLifecycleModes", vec![Value::from("Persistent")]);
    }
}

fn forbid_changes(new: &Value, old: &Value, fields: &[&str], errors: &mut Errors) {
    for field in fields {
        if !same(at(new, &[field]), at(old, &[field])) {
            let detail = format!("updates to {field} are forbidden.");
            errors.push(FieldError::forbidden(&FieldPath::new(field), detail));
        }
    }
}

/// Most parameters of a class, and what they may have together, in bytes.
const PARAMETERS: usize = 512;
const PARAMETERS_SIZE: usize = 256 * 1024;

fn validate_parameters(new: &Value, errors: &mut Errors) {
    let path = FieldPath::new("parameters");
    let mut size = 0;
    let mut count = 0;
    for (name, value) in entries(new, &["parameters"]) {
        if name.is_empty() {
            errors.push(FieldError::invalid(&path, "", "field can not be empty."));
        }
        count += 1;
        size += name.len() + value.as_str().map_or(0, str::len);
    }
    if count > PARAMETERS {
        errors.push(FieldError::too_long(&path, PARAMETERS as u64));
    } else if size > PARAMETERS_SIZE {
        errors.push(FieldError::too_long(&path, PARAMETERS_SIZE as u64));
    }
}

fn validate_class(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let mode_path = FieldPath::new("volumeBindingMode");
    if let Some(old) = old {
        forbid_changes(
            new,
            old,
            &["parameters", "provisioner", "reclaimPolicy"],
            errors,
        );
        check::immutable(errors, new, old, &["volumeBindingMode"], &mode_path);
        return;
    }
    let provisioner = text(new, &["provisioner"]);
    let path = FieldPath::new("provisioner");
    if provisioner.is_empty() {
        errors.push(FieldError::required(&path, ""));
    } else {
        check::qualified_name(errors, &path, &provisioner.to_lowercase());
    }
    validate_parameters(new, errors);
    let policy = text(new, &["reclaimPolicy"]);
    if !policy.is_empty() {
        let path = FieldPath::new("reclaimPolicy");
        check::supported(errors, &path, policy, &["Delete", "Retain"]);
    }
    let mode = text(new, &["volumeBindingMode"]);
    let modes = ["Immediate", "WaitForFirstConsumer"];
    check::supported(errors, &mode_path, mode, &modes);
}

fn validate_attributes(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    if let Some(old) = old {
        forbid_changes(new, old, &["driverName", "parameters"], errors);
        return;
    }
    check::required(errors, new, &FieldPath::NIL, "driverName");
    if entries(new, &["parameters"]).next().is_none() {
        let detail = "must contain at least one key/value pair";
        errors.push(FieldError::required(&FieldPath::new("parameters"), detail));
    }
    validate_parameters(new, errors);
}

fn validate_driver(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let path = FieldPath::new("spec");
    let spec = at(new, &["spec"]);
    if let Some(old) = old {
        for field in ["attachRequired", "volumeLifecycleModes"] {
            check::immutable(errors, new, old, &["spec", field], &path.child(field));
        }
    }
    let policy = text(spec, &["fsGroupPolicy"]);
    let policies = ["File", "None", "ReadWriteOnceWithFSType"];
    check::supported(errors, &path.child("fsGroupPolicy"), policy, &policies);
    let modes = path.child("volumeLifecycleModes");
    for mode in texts(spec, &["volumeLifecycleModes"]) {
        check::supported(errors, &modes, mode, &["Persistent", "Ephemeral"]);
    }
}

fn validate_attachment(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let path = FieldPath::new("spec");
    if let Some(old) = old {
        check::immutable(errors, new, old, &["spec"], &path);
        return;
    }
    let spec = at(new, &["spec"]);
    check::required(errors, spec, &path, "attacher");
    let given = |field: &str| has(spec, &["source", field]);
    let source = path.child("source");
    let detail = "must specify exactly one of inlineVolumeSpec and persistentVolumeName";
    match (given("inlineVolumeSpec"), given("persistentVolumeName")) {
        (false, false) => errors.push(FieldError::required(&source, detail)),
        (true, true) => errors.push(FieldError::forbidden(&source, detail)),
        (false, true) if text(spec, &["source", "persistentVolumeName"]).is_empty() => {
            let detail = "must specify non empty persistentVolumeName";
            errors.push(FieldError::required(
                &source.child("persistentVolumeName"),
                detail,
            ));
        }
        _ => {}
    }
    check::subdomain(errors, &path.child("nodeName"), text(spec, &["nodeName"]));
    // Version 1 checks two names once more, under paths of one piece.
    validate_driver_name(
        text(spec, &["attacher"]),
        &FieldPath::new("spec.attacher"),
        errors,
    );
    if given("persistentVolumeName") {
        let name = text(spec, &["source", "persistentVolumeName"]);
        check::subdomain(
            errors,
            &FieldPath::new("spec.source.persistentVolumeName"),
            name,
        );
    }
}

/// Longest name of a driver.
const DRIVER_NAME_LENGTH: u64 = 63;

fn validate_driver_name(name: &str, path: &FieldPath<'_>, errors: &mut Errors) {
    if name.is_empty() {
        errors.push(FieldError::required(path, ""));
    }
    if name.len() as u64 > DRIVER_NAME_LENGTH {
        errors.push(FieldError::too_long(path, DRIVER_NAME_LENGTH));
    }
    if !name.is_empty() {
        let messages = crate::names::subdomain(&name.to_lowercase());
        check::report(errors, path, name, messages);
    }
}

const CLASS_COLUMNS: &[Column] = &[
    NAME,
    words("Provisioner", "Who makes volumes of the class."),
    words(
        "ReclaimPolicy",
        "What becomes of a volume that is released.",
    ),
    words("VolumeBindingMode", "When volumes are made."),
    words("AllowVolumeExpansion", "Whether volumes can grow."),
    AGE,
];

fn class_row(object: &Value, now: Timestamp) -> Vec<Value> {
    let annotations = at(object, &["metadata", "annotations"]);
    let is_default = [
        "storageclass.kubernetes.io/is-default-class",
        "storageclass.beta.kubernetes.io/is-default-class",
    ]
    .iter()
    .any(|key| text(annotations, &[key]) == "true");
    let name = text(object, &["metadata", "name"]);
    let name = if is_default {
        format!("{name} (default)")
    } else {
        name.to_owned()
    };
    vec![
        name.into(),
        cell(object, &["provisioner"]),
        cell_or(object, &["reclaimPolicy"], "Delete"),
        cell_or(object, &["volumeBindingMode"], "Immediate"),
        flag(object, &["allowVolumeExpansion"]).into(),
        age(object, now),
    ]
}

fn attributes_row(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(object),
        cell(object, &["driverName"]),
        age(object, now),
    ]
}

const DRIVER_COLUMNS: &[Column] = &[
    NAME,
    column(
        "AttachRequired",
        "boolean",
        "Whether volumes have to be attached.",
    ),
    column(
        "PodInfoOnMount",
        "boolean",
        "Whether the driver wants to know the pod.",
    ),
    column(
        "StorageCapacity",
        "boolean",
        "Whether the driver reports its capacity.",
    ),
    words(
        "TokenRequests",
        "Audiences of tokens that the driver wants.",
    ),
    column(
        "RequiresRepublish",
        "boolean",
        "Whether volumes are published again and again.",
    ),
    words("Modes", "Kinds of volumes that the driver makes."),
    AGE,
];

fn driver_row(object: &Value, now: Timestamp) -> Vec<Value> {
    let spec = at(object, &["spec"]);
    let audiences = match at(spec, &["tokenRequests"]).as_array() {
        None => "<unset>".to_owned(),
        Some(requests) => {
            let all: Vec<_> = requests
                .iter()
                .map(|request| text(request, &["audience"]))
                .collect();
            all.join(",")
        }
    };
    let modes: Vec<_> = texts(spec, &["volumeLifecycleModes"]).collect();
    let modes = if modes.is_empty() {
        "<none>".to_owned()
    } else {
        modes.join(",")
    };
    vec![
        name(object),
        at(spec, &["attachRequired"])
            .as_bool()
            .unwrap_or(true)
            .into(),
        flag(spec, &["podInfoOnMount"]).into(),
        flag(spec, &["storageCapacity"]).into(),
        audiences.into(),
        flag(spec, &["requiresRepublish"]).into(),
        modes.into(),
        age(object, now),
    ]
}

fn node_row(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(object),
        list(object, &["spec", "drivers"]).len().into(),
        age(object, now),
    ]
}

const ATTACHMENT_COLUMNS: &[Column] = &[
    NAME,
    Column {
        format: "name",
        ..words("Attacher", "The driver that attaches.")
    },
    words("PV", "The volume."),
    words("Node", "The node."),
    column("Attached", "boolean", "Whether it is attached."),
    AGE,
];

fn attachment_row(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(object),
        cell(object, &["spec", "attacher"]),
        cell(object, &["spec", "source", "persistentVolumeName"]),
        cell(object, &["spec", "nodeName"]),
        flag(object, &["status", "attached"]).into(),
        age(object, now),
    ]
}
