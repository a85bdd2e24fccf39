//! The strategy Update: what others changed is undone.
//!
//! A few kinds have rules of their own, which are those of the agent of Open Cluster Management;
//! of all others the whole object is replaced, keeping what only the server can know.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bellwether_json::equality::{is_covered_by, semantic_eq};
use serde_json::{Map, Value};

use crate::baseline::leaves_scale;
use crate::metadata;
use crate::plan::{ApplyError, Step, creation};
use crate::target::Target;

/// Settings that a baseline depends on besides the manifest.
pub(crate) const SETTINGS: &str = "Update";

/// Decides about an object that is there.
pub(crate) fn plan(target: &Target<'_>, live: &Value) -> Result<Step, ApplyError> {
    let manifest = target.manifest;
    let core = manifest.group.is_empty();
    let mut wanted = match manifest.kind.as_str() {
        // Only their metadata can be changed by a work.
        "Namespace" | "ServiceAccount" | "Pod" if core => live.clone(),
        "ConfigMap" if core => config_map(live, &manifest.object),
        "Secret" if core => match secret(target, live)? {
            Ok(wanted) => wanted,
            Err(recreate) => return Ok(recreate),
        },
        "StorageClass" if differs_in_fixed_fields(&manifest.object, live) => {
            return recreation(target, live);
        }
        _ => return Ok(generic(target, live)),
    };
    wanted["metadata"] = metadata::merged(&manifest.object, live, &target.ownership);
    Ok(if semantic_eq(&wanted, live) {
        Step::Leave
    } else {
        Step::Replace(wanted)
    })
}

/// The live object with some fields as the manifest has them, also where it has none.
fn with_fields(live: &Value, manifest: &Value, fields: &[&str]) -> Value {
    let mut wanted = live.clone();
    if let Some(object) = wanted.as_object_mut() {
        for field in fields {
            match manifest.get(field).filter(|value| !is_empty(value)) {
                Some(value) => object.insert((*field).to_owned(), value.clone()),
                None => object.remove(*field),
            };
        }
    }
    wanted
}

/// Keys of a ConfigMap that OpenShift fills in where a label or an annotation asks for it.
const INJECTED: [(&str, &str, &str); 2] = [
    (
        "labels",
        "config.openshift.io/inject-trusted-cabundle",
        "ca-bundle.crt",
    ),
    (
        "annotations",
        "service.beta.openshift.io/inject-cabundle",
        "service-ca.crt",
    ),
];

/// The live ConfigMap with the data of the manifest, and what was filled in where that was wanted.
fn config_map(live: &Value, manifest: &Value) -> Value {
    let mut wanted = with_fields(live, manifest, &["data", "binaryData"]);
    for (field, mark, key) in INJECTED {
        let is_asked = manifest["metadata"][field][mark] == "true";
        if let Some(value) = live["data"].get(key).filter(|_| is_asked)
            && manifest["data"].get(key).is_none()
        {
            wanted["data"][key] = value.clone();
        }
    }
    wanted
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_object().is_some_and(Map::is_empty)
}

/// A secret whose type differs has to be created again; of a token only the given keys are set.
fn secret(target: &Target<'_>, live: &Value) -> Result<Result<Value, Step>, ApplyError> {
    let mut manifest = target.manifest.object.clone();
    fold_string_data(&mut manifest)?;
    let kind_of = |object: &Value| {
        let kind = object["type"].as_str().unwrap_or_default();
        if kind.is_empty() { "Opaque" } else { kind }.to_owned()
    };
    if kind_of(&manifest) != kind_of(live) {
        return recreation(target, live).map(Err);
    }
    if kind_of(live) == "kubernetes.io/service-account-token" {
        let mut wanted = live.clone();
        for (key, value) in manifest["data"].as_object().into_iter().flatten() {
            wanted["data"][key] = value.clone();
        }
        return Ok(Ok(wanted));
    }
    Ok(Ok(with_fields(live, &manifest, &["data"])))
}

/// Puts the plain texts of a secret where the server would: into `data`, encoded.
pub(crate) fn fold_string_data(secret: &mut Value) -> Result<(), ApplyError> {
    let Some(object) = secret.as_object_mut() else {
        return Ok(());
    };
    let Some(Value::Object(texts)) = object.remove("stringData") else {
        return Ok(());
    };
    let data = object
        .entry("data")
        .or_insert_with(|| Value::Object(Map::new()));
    if !data.is_object() {
        *data = Value::Object(Map::new());
    }
    for (key, text) in texts {
        let encoded = Value::from(STANDARD.encode(text.as_str().unwrap_or_default()));
        if data.get(&key).is_some_and(|known| *known != encoded) {
            return Err(ApplyError::SecretKey(key));
        }
        data[key] = encoded;
    }
    Ok(())
}

/// Whether fields of a storage class differ that cannot be changed.
fn differs_in_fixed_fields(manifest: &Value, live: &Value) -> bool {
    [
        "provisioner",
        "parameters",
        "reclaimPolicy",
        "volumeBindingMode",
    ]
    .iter()
    .any(|field| {
        manifest
            .get(field)
            .is_some_and(|wanted| !semantic_eq(wanted, &live[field]))
    })
}

pub(crate) fn recreation(target: &Target<'_>, live: &Value) -> Result<Step, ApplyError> {
    Ok(Step::Recreate {
        uid: live["metadata"]["uid"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        object: creation(target)?,
    })
}

/// Whether a StorageClass is the default one.
const DEFAULT_CLASS: &str = "storageclass.kubernetes.io/is-default-class";

/// Any other kind: the whole object is replaced, unless it is what the last write became.
fn generic(target: &Target<'_>, live: &Value) -> Step {
    let manifest = &target.manifest.object;
    let mut merged = metadata::merged(manifest, live, &target.ownership);
    if target.manifest.kind == "StorageClass"
        && let Some(choice) = live["metadata"]["annotations"].get(DEFAULT_CLASS)
    {
        // Which class is the default one is for the cluster to say.
        merged["annotations"][DEFAULT_CLASS] = choice.clone();
    }
    if merged == live["metadata"] {
        let is_known = match target.baseline {
            Some(baseline) => baseline.holds(manifest, SETTINGS, live),
            // After a restart: what has all that the manifest says, and was applied, is ours.
            None => target.applied_before && covers(manifest, live),
        };
        if is_known {
            return Step::Leave;
        }
    }
    let mut wanted = manifest.clone();
    wanted["metadata"] = merged;
    carry_over(target, &mut wanted, live);
    if semantic_eq(&wanted, live) {
        Step::Leave
    } else {
        Step::Replace(wanted)
    }
}

/// Whether an object has all that a manifest says besides metadata and status.
pub(crate) fn covers(manifest: &Value, live: &Value) -> bool {
    manifest
        .as_object()
        .into_iter()
        .flatten()
        .all(|(key, value)| {
            matches!(key.as_str(), "metadata" | "status" | "apiVersion" | "kind")
                || live
                    .get(key)
                    .map_or(value.is_null(), |live| is_covered_by(value, live))
        })
}

/// Keeps what only the server or a controller can know, and what cannot be changed without it.
fn carry_over(target: &Target<'_>, wanted: &mut Value, live: &Value) {
    if wanted.get("status").is_none() && live.get("status").is_some() {
        wanted["status"] = live["status"].clone();
    }
    let spec_fields: &[&str] = match (
        target.manifest.group.as_str(),
        target.manifest.kind.as_str(),
    ) {
        ("", "Service") => &[
            "clusterIP",
            "clusterIPs",
            "ipFamilies",
            "ipFamilyPolicy",
            "healthCheckNodePort",
        ],
        ("", "PersistentVolumeClaim") => &["volumeName", "storageClassName", "volumeMode"],
        ("batch", "Job") => &["selector", "manualSelector", "completionMode", "suspend"],
        ("apps", _) if leaves_scale(&target.manifest.object) => &["replicas"],
        _ => &[],
    };
    for field in spec_fields {
        if wanted["spec"].get(field).is_none()
            && let Some(known) = live["spec"].get(field)
            && wanted["spec"].is_object()
        {
            wanted["spec"][field] = known.clone();
        }
    }
    match target.manifest.kind.as_str() {
        "Service" => keep_node_ports(wanted, live),
        "Job" => keep_job_labels(wanted, live),
        // The rules of such a role are what the server gathers.
        "ClusterRole" if !target.manifest.object["aggregationRule"].is_null() => {
            wanted["rules"] = live["rules"].clone();
        }
        "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration" => {
            keep_webhook_authorities(wanted, live);
        }
        "CustomResourceDefinition" => {
            keep_authority(wanted, live, "/spec/conversion/webhook/clientConfig");
        }
        "APIService" => keep_authority(wanted, live, "/spec"),
        _ => {}
    }
}

/// Certificates by which the server knows a webhook are often filled in by others.
fn keep_webhook_authorities(wanted: &mut Value, live: &Value) {
    let known = live["webhooks"].as_array();
    let webhooks = wanted["webhooks"].as_array_mut();
    for webhook in webhooks.into_iter().flatten() {
        let mut known = known.into_iter().flatten();
        if let Some(same) = known.find(|known| known["name"] == webhook["name"]) {
            keep_authority(webhook, same, "/clientConfig");
        }
    }
}

/// Keeps a live `caBundle` where the manifest has none.
fn keep_authority(wanted: &mut Value, live: &Value, place: &str) {
    let known = live.pointer(place).and_then(|it| it.get("caBundle"));
    if let (Some(known), Some(Value::Object(target))) = (known, wanted.pointer_mut(place))
        && target
            .get("caBundle")
            .is_none_or(|it| it.is_null() || *it == "")
    {
        target.insert("caBundle".to_owned(), known.clone());
    }
}

fn keep_node_ports(wanted: &mut Value, live: &Value) {
    let known = live["spec"]["ports"].as_array();
    let ports = wanted
        .pointer_mut("/spec/ports")
        .and_then(Value::as_array_mut);
    for port in ports.into_iter().flatten() {
        let same = known.into_iter().flatten().find(|other| {
            other["port"] == port["port"]
                && other["protocol"].as_str().unwrap_or("TCP")
                    == port["protocol"].as_str().unwrap_or("TCP")
        });
        if let Some(node_port) = same.and_then(|other| other.get("nodePort"))
            && port.get("nodePort").is_none()
        {
            port["nodePort"] = node_port.clone();
        }
    }
}

/// The labels by which a job finds its pods are the server's, and cannot be taken away.
fn keep_job_labels(wanted: &mut Value, live: &Value) {
    let known = live.pointer("/spec/template/metadata/labels");
    for (key, value) in known.and_then(Value::as_object).into_iter().flatten() {
        let labels = &mut wanted["spec"]["template"]["metadata"]["labels"];
        if labels.get(key).is_none() && (labels.is_null() || labels.is_object()) {
            labels[key] = value.clone();
        }
    }
}
