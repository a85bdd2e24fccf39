//! DaemonSets.

use bellwether_schema::{FieldError, FieldErrorKind, FieldPath};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::DaemonSet;
use serde_json::Value;

use crate::apps::workload;
use crate::check::{self, Errors};
use crate::columns::{
    AGE, CONTAINERS, IMAGES, NAME, SELECTOR, age, column, containers, label_selector, labels, name,
    number, words,
};
use crate::core::pod;
use crate::resource::{ALL, STATUS};
use crate::value::{Fill, at, empty, existing, list, object, same, text};
use crate::{Column, Creation, Generation, Resource, printed};

/// The strategy that replaces pods node by node.
const ROLLING: &str = "RollingUpdate";

pub(crate) const RESOURCE: Resource = Resource {
    short_names: &["ds"],
    categories: ALL,
    subresources: &[STATUS],
    generation: Generation::Spec,
    default,
    prepare_create,
    prepare_update,
    validate,
    validate_part,
    columns: COLUMNS,
    row,
    ..Resource::namespaced::<DaemonSet>("apps", "v1", "DaemonSet", "daemonsets")
};

fn default(object: &mut Value) {
    if let Some(spec) = existing(object, &["spec"]) {
        spec.fill("revisionHistoryLimit", 10);
    }
    if let Some(strategy) = existing(object, &["spec", "updateStrategy"]) {
        strategy.fill_zero("type", ROLLING);
        if strategy.get("type") == Some(&ROLLING.into()) {
            strategy.fill("rollingUpdate", empty());
        }
    }
    if text(object, &["spec", "updateStrategy", "type"]) == ROLLING
        && let Some(update) = existing(object, &["spec", "updateStrategy", "rollingUpdate"])
    {
        update.fill("maxUnavailable", 1);
        update.fill("maxSurge", 0);
    }
    pod::template(object, &["spec", "template"]);
}

fn prepare_create(object: &mut Value, _creation: &Creation<'_>) {
    set_template_generation(object, 1);
}

fn prepare_update(new: &mut Value, old: &Value) {
    let before = template_generation(old);
    let template = ["spec", "template"];
    let changed = !same(at(new, &template), at(old, &template));
    set_template_generation(new, before + i64::from(changed));
}

/// The field of this name is not part of `apps/v1`; an annotation carries it.
const TEMPLATE_GENERATION_NOTE: &str = "deprecated.daemonset.template.generation";

fn template_generation(object: &Value) -> i64 {
    text(
        object,
        &["metadata", "annotations", TEMPLATE_GENERATION_NOTE],
    )
    .parse()
    .unwrap_or(1)
}

fn set_template_generation(object: &mut Value, generation: i64) {
    if let Some(annotations) = self::object(object, &["metadata", "annotations"]) {
        annotations.insert(
            TEMPLATE_GENERATION_NOTE.to_owned(),
            generation.to_string().into(),
        );
    }
}

fn validate(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let path = FieldPath::new("spec");
    let spec = at(new, &["spec"]);
    if let Some(old) = old {
        check::immutable(
            errors,
            new,
            old,
            &["spec", "selector"],
            &path.child("selector"),
        );
    }
    if at(spec, &["selector"]).is_object() {
        workload::selector(spec, "daemonset", &path, errors);
    }
    workload::template(spec, workload::Complaint::None, &path, errors);
    if !list(spec, &["template", "spec", "containers"]).is_empty() {
        workload::keeps_running(spec, "DaemonSet", &path, errors);
    }
    check::not_negative(errors, spec, &path, "minReadySeconds");
    validate_strategy(
        at(spec, &["updateStrategy"]),
        &path.child("updateStrategy"),
        errors,
    );
    check::not_negative(errors, spec, &path, "revisionHistoryLimit");
}

fn validate_strategy(strategy: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    match text(strategy, &["type"]) {
        "OnDelete" => {}
        ROLLING => {
            let update = at(strategy, &["rollingUpdate"]);
            let path = path.child("rollingUpdate");
            let fields = ["maxUnavailable", "maxSurge"];
            for field in fields {
                check::count_or_percentage(errors, &path.child(field), at(update, &[field]));
            }
            for field in fields {
                check::at_most_all(errors, &path.child(field), at(update, &[field]));
            }
            let [unavailable, surge] = fields.map(|field| workload::amount(at(update, &[field])));
            if unavailable != 0 && surge != 0 {
                let detail = "may not be set when maxUnavailable is non-zero";
                let value = at(update, &["maxSurge"]).clone();
                errors.push(FieldError::invalid(&path.child("maxSurge"), value, detail));
            } else if unavailable == 0 && surge == 0 {
                let detail = "cannot be 0 when maxSurge is 0";
                errors.push(FieldError::required(&path.child("maxUnavailable"), detail));
            }
        }
        _ => {
            let value = printed::structure(strategy, printed::STRATEGY);
            let detail = "supported values: \"RollingUpdate\", \"OnDelete\"";
            let kind = FieldErrorKind::NotSupported;
            errors.push(printed::error(kind, path, &value, detail));
        }
    }
}

fn validate_part(part: &str, new: &Value, old: &Value, errors: &mut Errors) {
    if part != "status" {
        return;
    }
    let counts = [
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    ];
    workload::counts(new, &counts, &[], errors);
    workload::collisions(new, old, errors);
}

const COLUMNS: &[Column] = &[
    NAME,
    column("Desired", "integer", "Nodes that should run the pod."),
    column("Current", "integer", "Nodes that run the pod."),
    column("Ready", "integer", "Nodes whose pod is ready."),
    column(
        "Up-to-date",
        "integer",
        "Nodes whose pod has the current template.",
    ),
    column(
        "Available",
        "integer",
        "Nodes whose pod has been ready for long enough.",
    ),
    words(
        "Node Selector",
        "Labels of the nodes that should run the pod.",
    ),
    AGE,
    CONTAINERS,
    IMAGES,
    SELECTOR,
];

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    let pod_spec = at(object, &["spec", "template", "spec"]);
    let [names, images] = containers(pod_spec);
    vec![
        name(object),
        number(object, &["status", "desiredNumberScheduled"]),
        number(object, &["status", "currentNumberScheduled"]),
        number(object, &["status", "numberReady"]),
        number(object, &["status", "updatedNumberScheduled"]),
        number(object, &["status", "numberAvailable"]),
        labels(at(pod_spec, &["nodeSelector"])),
        age(object, now),
        names,
        images,
        label_selector(at(object, &["spec", "selector"])),
    ]
}
