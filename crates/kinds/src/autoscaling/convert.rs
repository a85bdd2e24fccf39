//! Between the versions of a HorizontalPodAutoscaler.
//!
//! `autoscaling/v1` has a field for one metric, the utilisation of CPU. Kubernetes keeps the rest in
//! annotations, so that a client of the old version does not lose what it cannot show.

use serde_json::{Map, Value, json};

use crate::value::{Fill, at, existing, list, object, remove, text};

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const CURRENT: &str = "autoscaling.alpha.kubernetes.io/current-metrics";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";

/// From `autoscaling/v1` to the stored version.
pub(super) fn to_v2(object: &mut Value) {
    let cpu = remove(object, &["spec"], "targetCPUUtilizationPercentage");
    let current = remove(object, &["status"], "currentCPUUtilizationPercentage");
    let mut metrics: Vec<Value> = note(object, METRICS)
        .iter()
        .filter_map(metric_to_v2)
        .collect();
    let mut now: Vec<Value> = note(object, CURRENT)
        .iter()
        .filter_map(current_to_v2)
        .collect();
    let conditions = note(object, CONDITIONS);
    let behavior = text(object, &["metadata", "annotations", BEHAVIOR]);
    let behavior = serde_json::from_str(behavior)
        .ok()
        .map(|found| rename(&found, lower_first));
    if let Some(percent) = cpu.filter(Value::is_number) {
        metrics.insert(
            0,
            cpu_metric(
                "target",
                &json!({"type": "Utilization", "averageUtilization": percent}),
            ),
        );
    }
    if let Some(percent) = current.filter(Value::is_number) {
        now.insert(
            0,
            cpu_metric("current", &json!({"averageUtilization": percent})),
        );
    }
    for name in [METRICS, CURRENT, CONDITIONS, BEHAVIOR] {
        remove(object, &["metadata", "annotations"], name);
    }
    if at(object, &["metadata", "annotations"]) == &json!({}) {
        remove(object, &["metadata"], "annotations");
    }
    if let Some(spec) = existing(object, &["spec"]) {
        if !metrics.is_empty() {
            spec.insert("metrics".to_owned(), metrics.into());
        }
        if let Some(behavior) = behavior {
            spec.insert("behavior".to_owned(), behavior);
        }
    }
    if let Some(status) = existing(object, &["status"]) {
        status.fill(
            "currentMetrics",
            if now.is_empty() {
                Value::Null
            } else {
                now.into()
            },
        );
        if !conditions.is_empty() {
            status.insert("conditions".to_owned(), conditions.into());
        }
    }
    set_version(object, "autoscaling/v2");
    super::default_v2(object);
}

/// From the stored version to `autoscaling/v1`.
pub(super) fn to_v1(object: &mut Value) {
    let is_cpu = |metric: &&Value, side: &str| {
        text(metric, &["type"]) == "Resource"
            && text(metric, &["resource", "name"]) == "cpu"
            && at(metric, &["resource", side, "averageUtilization"]).is_number()
    };
    let wanted = list(object, &["spec", "metrics"]);
    let cpu = wanted
        .iter()
        .find(|metric| is_cpu(metric, "target"))
        .cloned();
    let rest: Vec<_> = wanted
        .iter()
        .filter(|metric| Some(*metric) != cpu.as_ref())
        .filter_map(metric_to_v1)
        .collect();
    let now = list(object, &["status", "currentMetrics"]);
    let current = now.iter().find(|metric| is_cpu(metric, "current")).cloned();
    let others: Vec<_> = now
        .iter()
        .filter(|metric| Some(*metric) != current.as_ref())
        .filter_map(current_to_v1)
        .collect();
    let conditions = list(object, &["status", "conditions"]).to_vec();
    let behavior = remove(object, &["spec"], "behavior");
    remove(object, &["spec"], "metrics");
    remove(object, &["status"], "currentMetrics");
    remove(object, &["status"], "conditions");
    set_percentage(
        object,
        "spec",
        "targetCPUUtilizationPercentage",
        cpu.as_ref(),
        "target",
    );
    set_percentage(
        object,
        "status",
        "currentCPUUtilizationPercentage",
        current.as_ref(),
        "current",
    );
    annotate(object, METRICS, &rest.into());
    annotate(object, CURRENT, &others.into());
    annotate(object, CONDITIONS, &conditions.into());
    if let Some(behavior) = behavior {
        annotate(object, BEHAVIOR, &rename(&behavior, upper_first));
    }
    set_version(object, "autoscaling/v1");
}

fn set_version(object: &mut Value, version: &str) {
    if let Some(fields) = object.as_object_mut()
        && fields.contains_key("apiVersion")
    {
        fields.insert("apiVersion".to_owned(), version.into());
    }
}

fn cpu_metric(side: &str, value: &Value) -> Value {
    json!({"type": "Resource", "resource": {"name": "cpu", side: value}})
}

fn set_percentage(object: &mut Value, part: &str, field: &str, metric: Option<&Value>, side: &str) {
    let (Some(fields), Some(metric)) = (existing(object, &[part]), metric) else {
        return;
    };
    let percent = at(metric, &["resource", side, "averageUtilization"]);
    fields.insert(field.to_owned(), percent.clone());
}

fn note(object: &Value, name: &str) -> Vec<Value> {
    serde_json::from_str(text(object, &["metadata", "annotations", name])).unwrap_or_default()
}

fn annotate(object: &mut Value, name: &str, value: &Value) {
    if crate::value::is_zero(value) {
        return;
    }
    if let Some(annotations) = self::object(object, &["metadata", "annotations"]) {
        annotations.insert(name.to_owned(), ordered(value, NESTING).into());
    }
}

/// Names in annotations, in the order in which Go declares them.
const ORDER: &[&str] = &[
    "type",
    "kind",
    "name",
    "apiVersion",
    "status",
    "lastTransitionTime",
    "reason",
    "message",
    "target",
    "metricName",
    "metricSelector",
    "targetAverageUtilization",
    "targetValue",
    "targetAverageValue",
    "currentAverageUtilization",
    "currentValue",
    "currentAverageValue",
    "selector",
    "averageValue",
    "container",
    "ScaleUp",
    "ScaleDown",
    "StabilizationWindowSeconds",
    "SelectPolicy",
    "Policies",
    "Type",
    "Value",
    "PeriodSeconds",
];
/// How deep annotations are written in that order; deeper there are only labels.
const NESTING: usize = 6;

/// JSON text with the fields in the order of [`ORDER`], then by name.
fn ordered(value: &Value, depth: usize) -> String {
    let rank = |name: &str| {
        ORDER
            .iter()
            .position(|known| *known == name)
            .unwrap_or(ORDER.len())
    };
    match value {
        Value::Object(fields) if depth > 0 => {
            let mut fields: Vec<_> = fields.iter().collect();
            fields.sort_by_key(|(name, _)| rank(name));
            let fields: Vec<_> = fields
                .into_iter()
                .map(|(name, value)| {
                    format!(
                        "{}:{}",
                        Value::from(name.as_str()),
                        ordered(value, depth - 1)
                    )
                })
                .collect();
            format!("{{{}}}", fields.join(","))
        }
        Value::Array(items) if depth > 0 => {
            let items: Vec<_> = items.iter().map(|item| ordered(item, depth - 1)).collect();
            format!("[{}]", items.join(","))
        }
        other => other.to_string(),
    }
}

/// Changes the first letter of every key: the annotation holds Go's names, not JSON's.
///
/// Behaviours are three levels deep; deeper values are left as they are.
fn rename(value: &Value, change: fn(&str) -> String) -> Value {
    fn walk(value: &Value, change: fn(&str) -> String, depth: usize) -> Value {
        match value {
            Value::Object(fields) if depth > 0 => fields
                .iter()
                .map(|(key, value)| (change(key), walk(value, change, depth - 1)))
                .collect::<Map<_, _>>()
                .into(),
            Value::Array(items) if depth > 0 => items
                .iter()
                .map(|item| walk(item, change, depth - 1))
                .collect::<Vec<_>>()
                .into(),
            other => other.clone(),
        }
    }
    walk(value, change, 8)
}

fn lower_first(key: &str) -> String {
    let mut letters = key.chars();
    let first = letters.next().map(|first| first.to_ascii_lowercase());
    first.into_iter().chain(letters).collect()
}

fn upper_first(key: &str) -> String {
    let mut letters = key.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// The field that holds a metric of a type, and what its amounts are called in the old version.
fn source(metric: &Value) -> Option<(&'static str, Amounts)> {
    match text(metric, &["type"]) {
        "Resource" => Some(("resource", Amounts::Averages)),
        "ContainerResource" => Some(("containerResource", Amounts::Averages)),
        "Pods" => Some(("pods", Amounts::Averages)),
        "Object" => Some(("object", Amounts::Object)),
        "External" => Some(("external", Amounts::External)),
        _ => None,
    }
}

/// Old names of the amounts of a metric.
#[derive(Clone, Copy)]
enum Amounts {
    Averages,
    Object,
    External,
}

/// Pairs of the name in the stored version and the old one.
fn names(amounts: Amounts, current: bool) -> &'static [(&'static str, &'static str)] {
    match (amounts, current) {
        (Amounts::Averages, false) => &[
            ("averageUtilization", "targetAverageUtilization"),
            ("averageValue", "targetAverageValue"),
        ],
        (Amounts::Averages, true) => &[
            ("averageUtilization", "currentAverageUtilization"),
            ("averageValue", "currentAverageValue"),
        ],
        (Amounts::Object, false) => &[("value", "targetValue"), ("averageValue", "averageValue")],
        (Amounts::Object, true) => &[("value", "currentValue"), ("averageValue", "averageValue")],
        (Amounts::External, false) => &[
            ("value", "targetValue"),
            ("averageValue", "targetAverageValue"),
        ],
        (Amounts::External, true) => &[
            ("value", "currentValue"),
            ("averageValue", "currentAverageValue"),
        ],
    }
}

fn metric_to_v1(metric: &Value) -> Option<Value> {
    to_old(metric, "target", false)
}

fn current_to_v1(metric: &Value) -> Option<Value> {
    to_old(metric, "current", true)
}

fn to_old(metric: &Value, side: &str, current: bool) -> Option<Value> {
    let (field, amounts) = source(metric)?;
    let body = at(metric, &[field]);
    let mut old = Map::new();
    for name in ["name", "container"] {
        if let Some(value) = body.get(name) {
            old.insert(name.to_owned(), value.clone());
        }
    }
    if let Some(name) = body.get("metric").and_then(|metric| metric.get("name")) {
        old.insert("metricName".to_owned(), name.clone());
    }
    let selector = at(body, &["metric", "selector"]);
    if selector.is_object() {
        old.insert(selector_name(amounts).to_owned(), selector.clone());
    }
    if let Some(target) = body.get("describedObject") {
        old.insert("target".to_owned(), target.clone());
    }
    for (new, name) in names(amounts, current) {
        if let Some(value) = at(body, &[side]).get(*new) {
            old.insert((*name).to_owned(), value.clone());
        }
    }
    Some(json!({"type": metric["type"], field: old}))
}

fn selector_name(amounts: Amounts) -> &'static str {
    match amounts {
        Amounts::External => "metricSelector",
        Amounts::Averages | Amounts::Object => "selector",
    }
}

fn metric_to_v2(metric: &Value) -> Option<Value> {
    let mut new = to_new(metric, "target", false)?;
    let (field, _) = source(metric)?;
    let target = at(&new, &[field, "target"]);
    let kind = if target.get("averageUtilization").is_some() {
        "Utilization"
    } else if target.get("averageValue").is_some() {
        "AverageValue"
    } else {
        "Value"
    };
    if let Some(target) = existing(&mut new, &[field, "target"]) {
        target.insert("type".to_owned(), kind.into());
    }
    Some(new)
}

fn current_to_v2(metric: &Value) -> Option<Value> {
    to_new(metric, "current", true)
}

fn to_new(metric: &Value, side: &str, current: bool) -> Option<Value> {
    let (field, amounts) = source(metric)?;
    let old = at(metric, &[field]);
    let mut new = Map::new();
    for name in ["name", "container"] {
        if let Some(value) = old.get(name) {
            new.insert(name.to_owned(), value.clone());
        }
    }
    if let Some(name) = old.get("metricName") {
        let mut described = json!({"name": name});
        if let Some(selector) = old.get(selector_name(amounts)) {
            described["selector"] = selector.clone();
        }
        new.insert("metric".to_owned(), described);
    }
    if let (Amounts::Object, Some(target)) = (amounts, old.get("target")) {
        new.insert("describedObject".to_owned(), target.clone());
    }
    let mut values = Map::new();
    for (name, old_name) in names(amounts, current) {
        if let Some(value) = old.get(*old_name) {
            values.insert((*name).to_owned(), value.clone());
        }
    }
    new.insert(side.to_owned(), values.into());
    Some(json!({"type": metric["type"], field: new}))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_one_metric_of_v1_is_cpu() {
        let mut hpa = json!({"apiVersion": "autoscaling/v1", "metadata": {},
            "spec": {"maxReplicas": 3, "targetCPUUtilizationPercentage": 40},
            "status": {"currentReplicas": 0, "desiredReplicas": 0, "currentCPUUtilizationPercentage": 7}});
        let v1 = hpa.clone();
        to_v2(&mut hpa);
        assert_eq!(
            hpa["spec"]["metrics"],
            json!([{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 40}}}])
        );
        assert_eq!(
            hpa["status"]["currentMetrics"],
            json!([{"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": 7}}}])
        );
        to_v1(&mut hpa);
        remove(&mut hpa, &["spec"], "minReplicas");
        assert_eq!(hpa, v1);
    }

    #[test]
    fn what_v1_cannot_show_survives_in_annotations() {
        let metrics = json!([
            {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 40}}},
            {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}},
            {"type": "Pods", "pods": {"metric": {"name": "hits", "selector": {"matchLabels": {"a": "b"}}}, "target": {"type": "AverageValue", "averageValue": "5"}}},
            {"type": "Object", "object": {"metric": {"name": "queue"}, "describedObject": {"kind": "Service", "name": "s"}, "target": {"type": "Value", "value": "5"}}},
            {"type": "External", "external": {"metric": {"name": "sqs", "selector": {}}, "target": {"type": "AverageValue", "averageValue": "5"}}},
        ]);
        let mut hpa = json!({"apiVersion": "autoscaling/v2", "metadata": {}, "status": {"currentMetrics": null,
            "conditions": [{"type": "AbleToScale", "status": "True"}]},
            "spec": {"maxReplicas": 3, "minReplicas": 1, "metrics": metrics,
            "behavior": {"scaleUp": {"stabilizationWindowSeconds": 1, "selectPolicy": "Max", "policies": []},
                         "scaleDown": {"selectPolicy": "Max", "policies": []}}}});
        let v2 = hpa.clone();
        to_v1(&mut hpa);
        assert_eq!(
            hpa["spec"],
            json!({"maxReplicas": 3, "minReplicas": 1, "targetCPUUtilizationPercentage": 40})
        );
        to_v2(&mut hpa);
        assert_eq!(hpa, v2);
    }
}
