//! What changes the number of pods, and what keeps it.

use serde_json::Value;

use super::page::Page;
use super::read::{items, number, quantity, selector, shown, shown_or, text};
use super::subject::Subject;

/// Describes an autoscaler.
pub(super) fn autoscaler(subject: &Subject<'_>, page: &mut Page) {
    let (metadata, spec, status) = (subject.metadata(), subject.spec(), subject.status());
    page.pair(0, "Name", text(&metadata["name"]));
    page.pair(0, "Namespace", text(&metadata["namespace"]));
    page.labels("Labels", &metadata["labels"]);
    page.annotations("Annotations", &metadata["annotations"]);
    let created = subject.moment.date(&metadata["creationTimestamp"]);
    page.pair(0, "CreationTimestamp", created);
    let target = &spec["scaleTargetRef"];
    let kind = text(&target["kind"]);
    page.pair(
        0,
        "Reference",
        format_args!("{kind}/{}", text(&target["name"])),
    );
    page.pair(0, "Metrics", "( current / target )");
    for (at, wanted) in items(&spec["metrics"]).iter().enumerate() {
        page.line(1, metric(wanted, &status["currentMetrics"][at]));
    }
    page.pair(0, "Min replicas", shown_or(&spec["minReplicas"], "<unset>"));
    page.pair(0, "Max replicas", number(&spec["maxReplicas"]));
    if spec["behavior"].is_object() {
        page.line(0, "Behavior:");
        behaviour(page, "Scale Up", &spec["behavior"]["scaleUp"]);
        behaviour(page, "Scale Down", &spec["behavior"]["scaleDown"]);
    }
    let (there, desired) = (
        number(&status["currentReplicas"]),
        number(&status["desiredReplicas"]),
    );
    let label = format!("{kind} pods");
    page.pair(
        0,
        &label,
        format_args!("{there} current / {desired} desired"),
    );
    let conditions = items(&status["conditions"]);
    if !conditions.is_empty() {
        page.line(0, "Conditions:");
        page.line(1, "Type\tStatus\tReason\tMessage");
        page.line(1, "----\t------\t------\t-------");
    }
    for found in conditions {
        let cells = ["type", "status", "reason", "message"].map(|name| text(&found[name]));
        page.line(1, cells.join("\t"));
    }
}

/// A metric: what is wanted of it, and what is known of it.
fn metric(wanted: &Value, known: &Value) -> String {
    let member = match text(&wanted["type"]) {
        "External" => "external",
        "Pods" => "pods",
        "Object" => "object",
        "Resource" => "resource",
        "ContainerResource" => "containerResource",
        other => return format!("<unknown metric type {other:?}>"),
    };
    let (spec, current) = (&wanted[member], &known[member]["current"]);
    let target = &spec["target"];
    let amount = |value: &Value| match value {
        Value::Null => "<unknown>".to_owned(),
        value => quantity(value),
    };
    let of = |field: &str| format!("{} / {}", amount(&current[field]), quantity(&target[field]));
    let name = text(&spec["metric"]["name"]);
    let averages = !target["averageValue"].is_null();
    let (kind, field) = if averages {
        ("target average value", "averageValue")
    } else {
        ("target value", "value")
    };
    match member {
        "external" => format!("{name:?} ({kind}):\t{}", of(field)),
        "pods" => format!("{name:?} on pods:\t{}", of("averageValue")),
        "object" => {
            let object = &spec["describedObject"];
            let object = format!("{}/{}", text(&object["kind"]), text(&object["name"]));
            format!("\"{name}\" on {object} ({kind}):\t{}", of(field))
        }
        _ => {
            let container = match text(&spec["container"]) {
                "" => String::new(),
                name => format!(" of container \"{name}\""),
            };
            let resource = text(&spec["name"]);
            let values = if averages {
                format!(":\t{}", of("averageValue"))
            } else {
                format!(
                    "  (as a percentage of request):\t{}",
                    percentage(current, target)
                )
            };
            format!("resource {resource}{container} on pods{values}")
        }
    }
}

fn percentage(current: &Value, target: &Value) -> String {
    let known = match &current["averageUtilization"] {
        Value::Null => "<unknown>".to_owned(),
        percent => format!("{percent}% ({})", quantity(&current["averageValue"])),
    };
    let wanted = match &target["averageUtilization"] {
        Value::Null => "<auto>".to_owned(),
        percent => format!("{percent}%"),
    };
    format!("{known} / {wanted}")
}

fn behaviour(page: &mut Page, label: &str, rules: &Value) {
    if !rules.is_object() {
        return;
    }
    page.line(1, format_args!("{label}:"));
    if rules["stabilizationWindowSeconds"].is_number() {
        let seconds = number(&rules["stabilizationWindowSeconds"]);
        page.line(2, format_args!("Stabilization Window: {seconds} seconds"));
    }
    let policies = items(&rules["policies"]);
    if !policies.is_empty() {
        page.line(
            2,
            format_args!("Select Policy: {}", shown_or(&rules["selectPolicy"], "Max")),
        );
        page.line(2, "Policies:");
    }
    for policy in policies {
        let (kind, value) = (text(&policy["type"]), number(&policy["value"]));
        let period = number(&policy["periodSeconds"]);
        page.line(
            3,
            format_args!("- Type: {kind}\tValue: {value}\tPeriod: {period} seconds"),
        );
    }
}

/// Describes a disruption budget.
pub(super) fn budget(subject: &Subject<'_>, page: &mut Page) {
    let (metadata, spec, status) = (subject.metadata(), subject.spec(), subject.status());
    page.pair(0, "Name", text(&metadata["name"]));
    page.pair(0, "Namespace", text(&metadata["namespace"]));
    if !spec["minAvailable"].is_null() {
        page.pair(0, "Min available", shown(&spec["minAvailable"]));
    } else if !spec["maxUnavailable"].is_null() {
        page.pair(0, "Max unavailable", shown(&spec["maxUnavailable"]));
    }
    let chosen = match &spec["selector"] {
        Value::Null => "<unset>".to_owned(),
        given => super::read::or_none(&selector(given)).to_owned(),
    };
    page.pair(0, "Selector", chosen);
    page.line(0, "Status:");
    for (label, name) in [
        ("Allowed disruptions", "disruptionsAllowed"),
        ("Current", "currentHealthy"),
        ("Desired", "desiredHealthy"),
        ("Total", "expectedPods"),
    ] {
        page.pair(2, label, number(&status[name]));
    }
}
