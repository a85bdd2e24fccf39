//! Pods, and the templates that they are made from.

use serde_json::Value;

use super::containers::{self, Containers};
use super::page::Page;
use super::read::{controller, items, number, selector, text};
use super::subject::{Moment, Subject};
use super::volumes;

/// Describes a pod.
pub(super) fn describe(subject: &Subject<'_>, page: &mut Page) {
    let (metadata, spec, status) = (subject.metadata(), subject.spec(), subject.status());
    page.pair(0, "Name", text(&metadata["name"]));
    page.pair(0, "Namespace", text(&metadata["namespace"]));
    if spec["priority"].is_number() {
        page.pair(0, "Priority", number(&spec["priority"]));
    }
    page.pair_if(0, "Priority Class Name", text(&spec["priorityClassName"]));
    page.pair_if(0, "Runtime Class Name", text(&spec["runtimeClassName"]));
    page.pair_if(0, "Service Account", text(&spec["serviceAccountName"]));
    match text(&spec["nodeName"]) {
        "" => page.pair(0, "Node", "<none>"),
        node => page.pair(
            0,
            "Node",
            format_args!("{node}/{}", text(&status["hostIP"])),
        ),
    }
    if status["startTime"].is_string() {
        page.pair(0, "Start Time", subject.moment.date(&status["startTime"]));
    }
    page.labels("Labels", &metadata["labels"]);
    page.annotations("Annotations", &metadata["annotations"]);
    phase(subject, page);
    addresses(subject, page);
    if spec["resources"].is_object() {
        page.line(0, "Resources:");
        containers::resources(page, 1, &spec["resources"]);
    }
    for (label, list, statuses) in [
        ("Init Containers", "initContainers", "initContainerStatuses"),
        ("Containers", "containers", "containerStatuses"),
        (
            "Ephemeral Containers",
            "ephemeralContainers",
            "ephemeralContainerStatuses",
        ),
    ] {
        if list == "containers" || !items(&spec[list]).is_empty() {
            let containers = Containers {
                label,
                list: &spec[list],
                statuses: &status[statuses],
                pod: Some(subject.object),
                moment: subject.moment,
            };
            containers.write(page);
        }
    }
    conditions(subject, page);
    volumes::write(page, &spec["volumes"], "");
    page.pair(0, "QoS Class", text(&status["qosClass"]));
    page.labels("Node-Selectors", &spec["nodeSelector"]);
    tolerations(page, "Tolerations", &spec["tolerations"]);
    spread(page, &spec["topologySpreadConstraints"], "");
}

fn phase(subject: &Subject<'_>, page: &mut Page) {
    let (metadata, status) = (subject.metadata(), subject.status());
    let phase = text(&status["phase"]);
    let deletion = &metadata["deletionTimestamp"];
    if deletion.is_string() && !matches!(phase, "Failed" | "Succeeded") {
        let since = subject.moment.since(deletion);
        page.pair(0, "Status", format_args!("Terminating (lasts {since})"));
        let grace = number(&metadata["deletionGracePeriodSeconds"]);
        page.pair(0, "Termination Grace Period", format_args!("{grace}s"));
    } else {
        page.pair(0, "Status", phase);
    }
    page.pair_if(0, "Reason", text(&status["reason"]));
    page.pair_if(0, "Message", text(&status["message"]));
    let profile = &subject.spec()["securityContext"]["seccompProfile"];
    page.pair_if(0, "SeccompProfile", text(&profile["type"]));
    page.pair_if(0, "LocalhostProfile", text(&profile["localhostProfile"]));
}

fn addresses(subject: &Subject<'_>, page: &mut Page) {
    let status = subject.status();
    page.pair(0, "IP", text(&status["podIP"]));
    let addresses = items(&status["podIPs"]);
    if addresses.is_empty() {
        page.pair(0, "IPs", "<none>");
    } else {
        page.line(0, "IPs:");
    }
    for address in addresses {
        page.pair(1, "IP", text(&address["ip"]));
    }
    if let Some(controller) = controller(subject.object) {
        page.pair(0, "Controlled By", controller);
    }
    page.pair_if(0, "NominatedNodeName", text(&status["nominatedNodeName"]));
}

fn conditions(subject: &Subject<'_>, page: &mut Page) {
    let conditions = items(&subject.status()["conditions"]);
    let gates = items(&subject.spec()["readinessGates"]);
    if !gates.is_empty() {
        page.line(0, "Readiness Gates:\n  Type\tStatus");
    }
    for gate in gates {
        let kind = text(&gate["conditionType"]);
        let found = conditions.iter().find(|found| found["type"] == kind);
        let status = found.map_or("<none>", |found| text(&found["status"]));
        page.line(1, format_args!("{kind} \t{status} "));
    }
    if !conditions.is_empty() {
        page.line(0, "Conditions:\n  Type\tStatus");
    }
    for found in conditions {
        let (kind, status) = (text(&found["type"]), text(&found["status"]));
        page.line(1, format_args!("{kind} \t{status} "));
    }
}

/// Writes a template of pods.
pub(super) fn template(page: &mut Page, template: &Value, moment: &Moment) {
    let (metadata, spec) = (&template["metadata"], &template["spec"]);
    page.line(0, "Pod Template:");
    page.labels("  Labels", &metadata["labels"]);
    if metadata["annotations"]
        .as_object()
        .is_some_and(|map| !map.is_empty())
    {
        page.annotations("  Annotations", &metadata["annotations"]);
    }
    page.pair_if(1, "Service Account", text(&spec["serviceAccountName"]));
    for (label, list) in [
        ("Init Containers", "initContainers"),
        ("Containers", "containers"),
    ] {
        if list == "containers" || !items(&spec[list]).is_empty() {
            let containers = Containers {
                label,
                list: &spec[list],
                statuses: &Value::Null,
                pod: None,
                moment,
            };
            containers.write(page);
        }
    }
    volumes::write(page, &spec["volumes"], "  ");
    spread(page, &spec["topologySpreadConstraints"], "  ");
    page.pair_if(1, "Priority Class Name", text(&spec["priorityClassName"]));
    page.labels("  Node-Selectors", &spec["nodeSelector"]);
    tolerations(page, "  Tolerations", &spec["tolerations"]);
}

fn tolerations(page: &mut Page, label: &str, tolerations: &Value) {
    let mut found: Vec<&Value> = items(tolerations).iter().collect();
    found.sort_by_key(|toleration| text(&toleration["key"]));
    let lines: Vec<String> = found.into_iter().map(toleration).collect();
    page.list(label, &lines);
}

fn toleration(toleration: &Value) -> String {
    let [key, value, effect] = ["key", "value", "effect"].map(|name| text(&toleration[name]));
    let mut line = key.to_owned();
    if !value.is_empty() {
        line = format!("{line}={value}");
    }
    if !effect.is_empty() {
        line = format!("{line}:{effect}");
    }
    if toleration["operator"] == "Exists" && value.is_empty() {
        let space = if line.is_empty() { "" } else { " " };
        line = format!("{line}{space}op=Exists");
    }
    if toleration["tolerationSeconds"].is_number() {
        line = format!("{line} for {}s", number(&toleration["tolerationSeconds"]));
    }
    line
}

fn spread(page: &mut Page, constraints: &Value, space: &str) {
    let mut found: Vec<&Value> = items(constraints).iter().collect();
    found.sort_by_key(|constraint| text(&constraint["topologyKey"]));
    for (at, constraint) in found.into_iter().enumerate() {
        let label = if at == 0 {
            "Topology Spread Constraints:"
        } else {
            ""
        };
        let [key, otherwise] =
            ["topologyKey", "whenUnsatisfiable"].map(|name| text(&constraint[name]));
        let skew = number(&constraint["maxSkew"]);
        let selected = match &constraint["labelSelector"] {
            Value::Null => String::new(),
            given => format!(" for selector {}", selector(given)),
        };
        page.line(
            0,
            format_args!(
                "{space}{label}\t{key}:{otherwise} when max skew {skew} is exceeded{selected}"
            ),
        );
    }
}
