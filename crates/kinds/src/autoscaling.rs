//! The `autoscaling` group: HorizontalPodAutoscalers in two versions over one storage.

mod convert;
mod validate;

use jiff::Timestamp;
use k8s_openapi::api::autoscaling::{v1, v2};
use serde_json::{Value, json};

use crate::columns::{AGE, NAME, age, first_few, name, number, words};
use crate::resource::{ALL, STATUS, Storage};
use crate::value::{Fill, at, existing, int, list, object, text};
use crate::{Column, Resource};

const STORAGE: Storage = Storage {
    group: "autoscaling",
    version: "v2",
};

/// `autoscaling/v2`, in which objects are stored.
pub(crate) const V2: Resource = Resource {
    short_names: &["hpa"],
    categories: ALL,
    subresources: &[STATUS],
    default: default_v2,
    validate: validate::autoscaler,
    validate_part: validate::part,
    columns: COLUMNS,
    row,
    ..Resource::namespaced::<v2::HorizontalPodAutoscaler>(
        "autoscaling",
        "v2",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
    )
};

/// `autoscaling/v1`, which knows only one metric.
pub(crate) const V1: Resource = Resource {
    short_names: &["hpa"],
    categories: ALL,
    subresources: &[STATUS],
    storage: STORAGE,
    default: default_fewest,
    validate: validate::autoscaler,
    validate_part: validate::part,
    to_storage: convert::to_v2,
    from_storage: convert::to_v1,
    columns: COLUMNS,
    row,
    ..Resource::namespaced::<v1::HorizontalPodAutoscaler>(
        "autoscaling",
        "v1",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
    )
};

fn default_fewest(object: &mut Value) {
    if let Some(spec) = existing(object, &["spec"]) {
        spec.fill("minReplicas", 1);
    }
}

/// Fills in an object in its stored version.
fn default_v2(object: &mut Value) {
    default_fewest(object);
    if let Some(spec) = existing(object, &["spec"]) {
        let cpu = json!([{"type": "Resource", "resource": {
            "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]);
        spec.fill_zero("metrics", cpu);
    }
    if !at(object, &["spec", "behavior"]).is_object() {
        return;
    }
    let percent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
    let pods = json!({"type": "Pods", "value": 4, "periodSeconds": 15});
    if let Some(up) = self::object(object, &["spec", "behavior", "scaleUp"]) {
        up.fill("stabilizationWindowSeconds", 0);
        up.fill("selectPolicy", "Max");
        up.fill("policies", json!([pods, percent]));
    }
    if let Some(down) = self::object(object, &["spec", "behavior", "scaleDown"]) {
        down.fill("selectPolicy", "Max");
        down.fill("policies", json!([percent]));
    }
}

const COLUMNS: &[Column] = &[
    NAME,
    words("Reference", "The object that is scaled."),
    words("Targets", "Metrics: current and wanted values."),
    words("MinPods", "Fewest pods."),
    words("MaxPods", "Most pods."),
    words("Replicas", "Pods at present."),
    AGE,
];

/// Cells of an object in its stored version.
fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    let target = at(object, &["spec", "scaleTargetRef"]);
    let fewest = match at(object, &["spec", "minReplicas"]).as_i64() {
        Some(fewest) => fewest.to_string(),
        None => "<unset>".to_owned(),
    };
    vec![
        name(object),
        format!("{}/{}", text(target, &["kind"]), text(target, &["name"])).into(),
        metrics(object).into(),
        fewest.into(),
        number(object, &["spec", "maxReplicas"]),
        number(object, &["status", "currentReplicas"]),
        age(object, now),
    ]
}

fn metrics(object: &Value) -> String {
    let current = list(object, &["status", "currentMetrics"]);
    let all: Vec<_> = list(object, &["spec", "metrics"])
        .iter()
        .enumerate()
        .map(|(index, wanted)| metric(wanted, current.get(index).unwrap_or(&Value::Null)))
        .collect();
    first_few(&all, 2, ", ", "<none>")
}

/// One metric: `cpu: 40%/80%`.
fn metric(wanted: &Value, current: &Value) -> String {
    let source = match text(wanted, &["type"]) {
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        "Pods" => "pods",
        "Object" => "object",
        "External" => "external",
        _ => return "<unknown type>".to_owned(),
    };
    let is_resource = matches!(source, "resource" | "containerResource");
    let target = at(wanted, &[source, "target"]);
    let now = at(current, &[source, "current"]);
    let known = |key: &str| match text(now, &[key]) {
        "" => "<unknown>".to_owned(),
        value => value.to_owned(),
    };
    let average = text(target, &["averageValue"]);
    let values = if !average.is_empty() {
        let suffix = if matches!(source, "object" | "external") {
            " (avg)"
        } else {
            ""
        };
        format!("{}/{average}{suffix}", known("averageValue"))
    } else if is_resource {
        let percent = |value: &Value, absent: &str| match value.as_i64() {
            Some(_) => format!("{}%", int(value, &[])),
            None => absent.to_owned(),
        };
        format!(
            "{}/{}",
            percent(at(now, &["averageUtilization"]), "<unknown>"),
            percent(at(target, &["averageUtilization"]), "<auto>")
        )
    } else {
        format!("{}/{}", known("value"), text(target, &["value"]))
    };
    if is_resource {
        format!("{}: {values}", text(wanted, &[source, "name"]))
    } else {
        values
    }
}
