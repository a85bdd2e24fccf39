//! Namespaces, and what is configured in them.

use serde_json::Value;

use super::page::{Page, sorted};
use super::read::{base64_bytes, items, quantity, text};
use super::subject::Subject;

/// Describes a namespace.
pub(super) fn namespace(subject: &Subject<'_>, page: &mut Page) {
    let (metadata, status) = (subject.metadata(), subject.status());
    page.pair(0, "Name", text(&metadata["name"]));
    page.labels("Labels", &metadata["labels"]);
    page.annotations("Annotations", &metadata["annotations"]);
    page.pair(0, "Status", text(&status["phase"]));
    let conditions = items(&status["conditions"]);
    if !conditions.is_empty() {
        page.line(0, "Conditions:");
        page.line(1, "Type\tStatus\tLastTransitionTime\tReason\tMessage");
        page.line(1, "----\t------\t------------------\t------\t-------");
    }
    for found in conditions {
        let [kind, value, reason, message] =
            ["type", "status", "reason", "message"].map(|name| text(&found[name]));
        let since = subject.moment.date(&found["lastTransitionTime"]);
        page.line(
            1,
            format_args!("{kind}\t{value}\t{since}\t{reason}\t{message}"),
        );
    }
    page.line(0, "");
    quotas(page, &subject.related.quotas);
    page.line(0, "");
    limits(page, &subject.related.limits);
}

fn quotas(page: &mut Page, quotas: &[Value]) {
    if quotas.is_empty() {
        page.line(0, "No resource quota.");
        return;
    }
    page.line(0, "Resource Quotas");
    for quota in quotas {
        page.pair(1, "Name", text(&quota["metadata"]["name"]));
        scopes(page, 1, "* ", quota);
        page.line(1, "Resource\tUsed\tHard");
        page.line(1, "--------\t---\t---");
        used(page, 1, quota);
    }
}

/// The scopes of a quota, and what they mean.
fn scopes(page: &mut Page, level: usize, bullet: &str, quota: &Value) {
    let mut scopes: Vec<&str> = items(&quota["spec"]["scopes"]).iter().map(text).collect();
    scopes.sort_unstable();
    if !scopes.is_empty() {
        page.pair(level, "Scopes", scopes.join(", "));
    }
    for scope in scopes {
        let meaning = match scope {
            "Terminating" => {
                "Matches all pods that have an active deadline. These pods have a limited lifespan on a node before being actively terminated by the system."
            }
            "NotTerminating" => {
                "Matches all pods that do not have an active deadline. These pods usually include long running pods whose container command is not expected to terminate."
            }
            "BestEffort" => {
                "Matches all pods that do not have resource requirements set. These pods have a best effort quality of service."
            }
            "NotBestEffort" => {
                "Matches all pods that have at least one resource requirement set. These pods have a burstable or guaranteed quality of service."
            }
            _ => continue,
        };
        page.line(level, format_args!("{bullet}{meaning}"));
    }
}

fn used(page: &mut Page, level: usize, quota: &Value) {
    for (name, hard) in sorted(&quota["status"]["hard"]) {
        let used = match &quota["status"]["used"][name] {
            Value::Null => "0".to_owned(),
            used => quantity(used),
        };
        page.line(level, format_args!("{name}\t{used}\t{}", quantity(hard)));
    }
}

/// Describes a quota.
pub(super) fn quota(subject: &Subject<'_>, page: &mut Page) {
    page.pair(0, "Name", text(&subject.metadata()["name"]));
    page.pair(0, "Namespace", text(&subject.metadata()["namespace"]));
    scopes(page, 0, " * ", subject.object);
    page.line(0, "Resource\tUsed\tHard");
    page.line(0, "--------\t----\t----");
    used(page, 0, subject.object);
}

const LIMITS: [&str; 2] = [
    "Type\tResource\tMin\tMax\tDefault Request\tDefault Limit\tMax Limit/Request Ratio",
    "----\t--------\t---\t---\t---------------\t-------------\t-----------------------",
];

fn limits(page: &mut Page, ranges: &[Value]) {
    if ranges.is_empty() {
        page.line(0, "No LimitRange resource.");
        return;
    }
    page.line(0, "Resource Limits");
    for line in LIMITS {
        page.line(0, format_args!(" {line}"));
    }
    for range in ranges {
        limit_lines(page, range, " ");
    }
}

fn limit_lines(page: &mut Page, range: &Value, prefix: &str) {
    const FIELDS: [&str; 5] = [
        "min",
        "max",
        "defaultRequest",
        "default",
        "maxLimitRequestRatio",
    ];
    for item in items(&range["spec"]["limits"]) {
        let mut names: Vec<&String> = FIELDS
            .iter()
            .flat_map(|field| sorted(&item[*field]))
            .map(|(name, _)| name)
            .collect();
        names.sort();
        names.dedup();
        for name in names {
            let cells = FIELDS.map(|field| match &item[field][name] {
                Value::Null => "-".to_owned(),
                found => quantity(found),
            });
            let kind = text(&item["type"]);
            page.line(
                0,
                format_args!("{prefix}{kind}\t{name}\t{}", cells.join("\t")),
            );
        }
    }
}

/// Describes a limit range.
pub(super) fn limit_range(subject: &Subject<'_>, page: &mut Page) {
    page.pair(0, "Name", text(&subject.metadata()["name"]));
    page.pair(0, "Namespace", text(&subject.metadata()["namespace"]));
    for line in LIMITS {
        page.line(0, line);
    }
    limit_lines(page, subject.object, "");
}

fn marks(subject: &Subject<'_>, page: &mut Page) {
    page.pair(0, "Name", text(&subject.metadata()["name"]));
    page.pair(0, "Namespace", text(&subject.metadata()["namespace"]));
    page.labels("Labels", &subject.metadata()["labels"]);
    page.annotations("Annotations", &subject.metadata()["annotations"]);
}

/// Describes a config map.
pub(super) fn config_map(subject: &Subject<'_>, page: &mut Page) {
    marks(subject, page);
    page.line(0, "\nData\n====");
    for (key, value) in sorted(&subject.object["data"]) {
        page.line(0, format_args!("{key}:\n----\n{}\n", text(value)));
    }
    page.line(0, "\nBinaryData\n====");
    for (key, value) in sorted(&subject.object["binaryData"]) {
        page.line(
            0,
            format_args!("{key}: {} bytes", base64_bytes(text(value)).len()),
        );
    }
    page.line(0, "");
}

/// Describes a secret, without saying what it is.
pub(super) fn secret(subject: &Subject<'_>, page: &mut Page) {
    marks(subject, page);
    let kind = text(&subject.object["type"]);
    page.line(0, format_args!("\nType:\t{kind}"));
    page.line(0, "\nData\n====");
    for (key, value) in sorted(&subject.object["data"]) {
        if key == "token" && kind == "kubernetes.io/service-account-token" {
            let token = base64_bytes(text(value));
            page.pair(0, key, String::from_utf8_lossy(&token));
        } else {
            page.pair(
                0,
                key,
                format_args!("{} bytes", base64_bytes(text(value)).len()),
            );
        }
    }
}
