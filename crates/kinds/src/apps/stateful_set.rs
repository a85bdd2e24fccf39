//! StatefulSets.

use std::collections::HashSet;

use bellwether_schema::{FieldError, FieldErrorKind, FieldPath};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use serde_json::{Value, json};

use crate::apps::workload;
use crate::check::{self, Errors};
use crate::columns::{AGE, CONTAINERS, IMAGES, NAME, age, containers, fraction, name, words};
use crate::core::{pod, volume};
use crate::resource::{ALL, SCALE, STATUS};
use crate::value::{
    Fill, at, empty, existing, has, int, is_zero, items, list, restore_at, same, text,
};
use crate::{Column, Generation, NameRule, Resource, printed};

const INVALID: FieldErrorKind = FieldErrorKind::Invalid;
/// The strategy that replaces pods one by one.
const ROLLING: &str = "RollingUpdate";

pub(crate) const RESOURCE: Resource = Resource {
    short_names: &["sts"],
    categories: ALL,
    subresources: &[SCALE, STATUS],
    generation: Generation::Spec,
    names: NameRule::Label,
    default,
    validate,
    validate_part,
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

fn validate(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let path = FieldPath::new("spec");
    let spec = at(new, &["spec"]);
    let policy = text(spec, &["podManagementPolicy"]);
    if !matches!(policy, "OrderedReady" | "Parallel") {
        let detail = "must be 'OrderedReady' or 'Parallel'";
        errors.push(FieldError::invalid(
            &path.child("podManagementPolicy"),
            policy,
            detail,
        ));
    }
    validate_strategy(
        at(spec, &["updateStrategy"]),
        &path.child("updateStrategy"),
        errors,
    );
    let retention = path.child("persistentVolumeClaimRetentionPolicy");
    for field in ["whenDeleted", "whenScaled"] {
        let policy = text(spec, &["persistentVolumeClaimRetentionPolicy", field]);
        check::supported(
            errors,
            &retention.child(field),
            policy,
            &["Retain", "Delete"],
        );
    }
    if old.is_none() {
        let claims = path.child("volumeClaimTemplates");
        for (index, claim) in list(spec, &["volumeClaimTemplates"]).iter().enumerate() {
            let path = claims.index(index);
            volume::validate_spec(at(claim, &["spec"]), &path.child("spec"), errors);
        }
    }
    check::not_negative(errors, spec, &path, "replicas");
    check::not_negative(errors, spec, &path, "minReadySeconds");
    let start = int(spec, &["ordinals", "start"]);
    if start < 0 {
        errors.push(crate::meta::not_negative(
            &path.child("ordinals.start"),
            start,
        ));
    }
    let service = text(spec, &["serviceName"]);
    if old.is_none() && !service.is_empty() {
        check::label(errors, &path.child("serviceName"), service);
    }
    workload::selector(spec, "statefulset", &path, errors);
    workload::template(
        &with_claims(spec),
        workload::Complaint::Says(""),
        &path,
        errors,
    );
    workload::keeps_running(spec, "StatefulSet", &path, errors);
    if let Some(old) = old {
        validate_update(new, old, errors);
    }
}

/// The spec as its pods will have it: every claim is a volume, and the set gives the host names.
fn with_claims(spec: &Value) -> Value {
    let claims = list(spec, &["volumeClaimTemplates"]);
    let mut spec = spec.clone();
    let Some(pod) = existing(&mut spec, &["template", "spec"]) else {
        return spec;
    };
    pod.remove("hostname");
    pod.remove("subdomain");
    if claims.is_empty() {
        return spec;
    }
    let names: Vec<_> = claims
        .iter()
        .map(|claim| text(claim, &["metadata", "name"]))
        .collect();
    let mut volumes: Vec<_> = names
        .iter()
        .map(|name| json!({"name": name, "persistentVolumeClaim": {"claimName": name}}))
        .collect();
    if let Some(Value::Array(others)) = pod.get("volumes") {
        let names: HashSet<&str> = names.iter().copied().collect();
        let others = others.iter();
        let others = others.filter(|volume| !names.contains(text(volume, &["name"])));
        volumes.extend(others.cloned());
    }
    pod.insert("volumes".to_owned(), volumes.into());
    spec
}

fn validate_strategy(strategy: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let update = at(strategy, &["rollingUpdate"]);
    let update_path = path.child("rollingUpdate");
    match text(strategy, &["type"]) {
        "OnDelete" if !update.is_null() => {
            let detail = "only allowed for updateStrategy 'RollingUpdate'";
            let fields = [
                printed::number("Partition", "partition"),
                printed::pointer("MaxUnavailable", "maxUnavailable"),
            ];
            let value = printed::structure(update, &fields);
            errors.push(printed::error(INVALID, &update_path, &value, detail));
        }
        "OnDelete" => {}
        ROLLING => {
            check::not_negative(errors, update, &update_path, "partition");
            let most = at(update, &["maxUnavailable"]);
            if has(update, &["maxUnavailable"]) {
                let path = update_path.child("maxUnavailable");
                check::count_or_percentage(errors, &path, most);
                if workload::amount(most) == 0 {
                    errors.push(FieldError::invalid(&path, most.clone(), "cannot be 0"));
                }
                check::at_most_all(errors, &path, most);
            }
        }
        _ => {
            let detail = "must be 'RollingUpdate' or 'OnDelete'";
            let value = printed::structure(strategy, printed::STRATEGY);
            errors.push(printed::error(INVALID, path, &value, detail));
        }
    }
}

fn validate_update(new: &Value, old: &Value, errors: &mut Errors) {
    let mut unchanged = new.clone();
    for field in [
        "replicas",
        "template",
        "updateStrategy",
        "minReadySeconds",
        "ordinals",
        "revisionHistoryLimit",
        "persistentVolumeClaimRetentionPolicy",
    ] {
        restore_at(&mut unchanged, old, &["spec"], field);
    }
    if !same(at(&unchanged, &["spec"]), at(old, &["spec"])) {
        let detail = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden";
        errors.push(FieldError::forbidden(&FieldPath::new("spec"), detail));
    }
}

fn validate_part(part: &str, new: &Value, old: &Value, errors: &mut Errors) {
    if part != "status" {
        return;
    }
    let counts = [
        "replicas",
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
        "observedGeneration",
        "collisionCount",
    ];
    let parts = [
        ("readyReplicas", "replicas", "status.replicas"),
        ("currentReplicas", "replicas", "status.replicas"),
        ("updatedReplicas", "replicas", "status.replicas"),
        ("availableReplicas", "replicas", "status.replicas"),
        ("availableReplicas", "readyReplicas", "status.readyReplicas"),
    ];
    workload::counts(new, &counts, &parts, errors);
    workload::collisions(new, old, errors);
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
