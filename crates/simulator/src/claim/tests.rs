//! Which volume a claim gets.

use serde_json::{Value, json};

use super::*;
use crate::plan::Action;

fn volume(name: &str, size: &str, spec: Value) -> Arc<PersistentVolume> {
    let mut object = json!({
        "metadata": {"name": name},
        "spec": {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], "storageClassName": "disk"},
    });
    for (key, value) in spec.as_object().unwrap() {
        object["spec"][key] = value.clone();
    }
    Arc::new(serde_json::from_value(object).unwrap())
}

fn class(name: &str, provisioner: &str, mode: &str, default: bool) -> Arc<StorageClass> {
    let object = json!({
        "metadata": {"name": name, "annotations": {DEFAULT_CLASS: default.to_string()}},
        "provisioner": provisioner, "volumeBindingMode": mode, "reclaimPolicy": "Delete",
    });
    Arc::new(serde_json::from_value(object).unwrap())
}

#[track_caller]
fn check(spec: Value, volumes: &[Arc<PersistentVolume>], is_used: bool, expected: &[&str]) {
    let mut object = json!({
        "metadata": {"name": "data", "namespace": "default", "uid": "u"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "5Gi"}}},
        "status": {"phase": "Pending"},
    });
    for (key, value) in spec.as_object().unwrap() {
        object["spec"][key] = value.clone();
    }
    let claim: PersistentVolumeClaim = serde_json::from_value(object).unwrap();
    let classes = [
        class("standard", PROVISIONER, "Immediate", true),
        class("late", PROVISIONER, "WaitForFirstConsumer", false),
        class("foreign", "example.com/disks", "Immediate", false),
    ];
    let plan = decide(&View {
        claim: &claim,
        volumes,
        classes: &classes,
        is_used,
    });
    let done: Vec<String> = plan
        .actions
        .iter()
        .map(|action| match action {
            Action::Create(create) => {
                format!("+{}", create.object["metadata"]["name"].as_str().unwrap())
            }
            Action::Patch { subject, patch, .. } => match (
                patch["spec"]["volumeName"].as_str(),
                patch["spec"]["storageClassName"].as_str(),
            ) {
                (Some(volume), _) => format!("bound to {volume}"),
                (_, Some(class)) => format!("class {class}"),
                _ => format!("{} changed", subject.key.name),
            },
            Action::RecordEvent(event) => event.reason.to_owned(),
            other => format!("{other:?}"),
        })
        .collect();
    assert_eq!(done, expected);
}

#[test]
fn a_claim_gets_the_smallest_volume_that_fits() {
    let disk = json!({"storageClassName": "disk"});
    let volumes = [
        volume("small", "1Gi", json!({})),
        volume("large", "100Gi", json!({})),
        volume("fitting", "8Gi", json!({})),
        volume("shared", "6Gi", json!({"accessModes": ["ReadOnlyMany"]})),
        volume(
            "taken",
            "5Gi",
            json!({"claimRef": {"name": "other", "namespace": "default", "uid": "x"}}),
        ),
    ];
    check(
        disk.clone(),
        &volumes,
        false,
        &["fitting changed", "bound to fitting"],
    );
    let kept = [volume(
        "kept",
        "9Gi",
        json!({"claimRef": {"name": "data", "namespace": "default"}}),
    )];
    check(
        disk.clone(),
        &kept,
        false,
        &["kept changed", "bound to kept"],
    );
    check(disk, &[], false, &["ProvisioningFailed"]);
}

#[test]
fn without_a_volume_one_is_made_if_the_class_is_ours() {
    check(json!({}), &[], false, &["class standard"]);
    check(
        json!({"storageClassName": "standard"}),
        &[],
        false,
        &["+pvc-u", "bound to pvc-u"],
    );
    check(
        json!({"storageClassName": "late"}),
        &[],
        false,
        &["WaitForFirstConsumer"],
    );
    check(
        json!({"storageClassName": "late"}),
        &[],
        true,
        &["+pvc-u", "bound to pvc-u"],
    );
    check(
        json!({"storageClassName": "foreign"}),
        &[],
        false,
        &["ExternalProvisioning"],
    );
    check(
        json!({"storageClassName": ""}),
        &[],
        false,
        &["FailedBinding"],
    );
}

#[test]
fn a_volume_is_free_bound_or_left_over() {
    let phase = |volume: &PersistentVolume, claim: Option<&PersistentVolumeClaim>| {
        let plan = decide_volume(volume, claim);
        plan.actions
            .iter()
            .map(|action| match action {
                Action::Patch { patch, .. } => {
                    patch["status"]["phase"].as_str().unwrap().to_owned()
                }
                Action::Delete { .. } => "deleted".to_owned(),
                other => format!("{other:?}"),
            })
            .collect::<Vec<_>>()
    };
    let claim: PersistentVolumeClaim =
        serde_json::from_value(json!({"metadata": {"name": "data", "uid": "u"}})).unwrap();
    let bound = |policy: &str| {
        volume(
            "v",
            "1Gi",
            json!({"claimRef": {"name": "data", "uid": "u"}, "persistentVolumeReclaimPolicy": policy}),
        )
    };
    assert_eq!(phase(&volume("v", "1Gi", json!({})), None), ["Available"]);
    assert_eq!(phase(&bound("Retain"), Some(&claim)), ["Bound"]);
    assert_eq!(phase(&bound("Retain"), None), ["Released"]);
    assert_eq!(phase(&bound("Delete"), None), ["deleted", "Released"]);
}
