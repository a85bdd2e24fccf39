//! The `certificates.k8s.io` group: requests for certificates.

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use bellwether_json::time;
use bellwether_schema::{FieldError, FieldPath};
use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use serde_json::Value;

use crate::check::{self, Errors};
use crate::columns::{AGE, NAME, age, cell, cell_or, human, name, words};
use crate::resource::{PART_VERBS, STATUS, Subresource};
use crate::value::{
    Fill, at, existing, has, int, items, list, restore, restore_at, same, text, texts,
};
use crate::{Column, Creation, FieldSelector, NameRule, Resource, names};

pub(crate) const SIGNING_REQUEST: Resource = Resource {
    short_names: &["csr"],
    subresources: &[
        Subresource {
            name: "approval",
            kind: None,
            verbs: PART_VERBS,
        },
        STATUS,
    ],
    names: NameRule::PathSegment,
    field_selectors: &[
        FieldSelector {
            label: "spec.signerName",
            paths: &[&["spec", "signerName"]],
            absent: "",
        },
        // Kubernetes has no such selector. It is for those who may see only what they asked for.
        FieldSelector {
            label: "spec.username",
            paths: &[&["spec", "username"]],
            absent: "",
        },
    ],
    prepare_create,
    prepare_update,
    prepare_part,
    validate,
    validate_part,
    columns: COLUMNS,
    row,
    ..Resource::cluster::<CertificateSigningRequest>(
        "certificates.k8s.io",
        "v1",
        "CertificateSigningRequest",
        "certificatesigningrequests",
    )
};

/// Records who asks; nobody can ask for somebody else.
fn prepare_create(object: &mut Value, creation: &Creation<'_>) {
    let Some(spec) = existing(object, &["spec"]) else {
        return;
    };
    for field in ["username", "uid", "groups", "extra"] {
        let value = at(creation.user, &[field]);
        if value.is_null() {
            spec.remove(field);
        } else {
            spec.insert(field.to_owned(), value.clone());
        }
    }
}

fn prepare_update(new: &mut Value, old: &Value) {
    restore(new, old, "spec");
}

fn prepare_part(part: &str, new: &mut Value, old: &Value, now: Timestamp) {
    match part {
        "approval" => {
            let conditions = at(new, &["status", "conditions"]).clone();
            restore(new, old, "spec");
            restore(new, old, "status");
            if let Some(status) = crate::value::object(new, &["status"]) {
                status.insert("conditions".to_owned(), conditions);
            }
        }
        // Anyone who issues certificates does not decide who gets one.
        "status" => keep_decisions(new, old),
        _ => return,
    }
    note_times(new, old, now);
}

fn keep_decisions(new: &mut Value, old: &Value) {
    let is_decision =
        |condition: &&Value| matches!(text(condition, &["type"]), "Approved" | "Denied");
    let mut conditions: Vec<Value> = list(old, &["status", "conditions"])
        .iter()
        .filter(is_decision)
        .cloned()
        .collect();
    let others = list(new, &["status", "conditions"]).iter();
    conditions.extend(others.filter(|condition| !is_decision(condition)).cloned());
    if conditions.is_empty() {
        restore_at(new, old, &["status"], "conditions");
    } else if let Some(status) = crate::value::object(new, &["status"]) {
        status.insert("conditions".to_owned(), conditions.into());
    }
}

/// Notes when conditions were set, unless the writer does.
fn note_times(new: &mut Value, old: &Value, now: Timestamp) {
    let now = time::format_time(now);
    for condition in items(new, &["status", "conditions"]) {
        let kind = text(condition, &["type"]).to_owned();
        let before = list(old, &["status", "conditions"]).iter();
        let known = before
            .filter(|old| {
                text(old, &["type"]) == kind
                    && text(old, &["status"]) == text(condition, &["status"])
            })
            .map(|old| at(old, &["lastTransitionTime"]).clone())
            .find(Value::is_string);
        if let Some(condition) = condition.as_object_mut() {
            condition.fill("lastUpdateTime", now.clone());
            condition.fill(
                "lastTransitionTime",
                known.unwrap_or_else(|| now.clone().into()),
            );
        }
    }
}

/// What a certificate can be for.
const USAGES: &[&str] = &[
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];
/// Shortest life of a certificate.
const SHORTEST_SECONDS: i64 = 600;

fn validate(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    validate_request(new, errors);
    if let Some(old) = old {
        validate_decisions(new, old, false, errors);
        validate_certificate(new, old, false, errors);
    }
}

fn validate_part(part: &str, new: &Value, old: &Value, errors: &mut Errors) {
    validate_request(new, errors);
    validate_decisions(new, old, part == "approval", errors);
    validate_certificate(new, old, part == "status", errors);
}

fn validate_request(new: &Value, errors: &mut Errors) {
    let path = FieldPath::new("spec");
    let spec = at(new, &["spec"]);
    let request = text(spec, &["request"]);
    let decoded = BASE64.decode(request).unwrap_or_default();
    if !decoded.starts_with(b"-----BEGIN CERTIFICATE REQUEST-----") {
        let detail = "PEM block type must be CERTIFICATE REQUEST";
        let value = at(spec, &["request"]);
        let value = if request.is_empty() {
            &Value::Null
        } else {
            value
        };
        errors.push(FieldError::invalid(
            &path.child("request"),
            value.clone(),
            detail,
        ));
    }
    let usages: Vec<_> = texts(spec, &["usages"]).collect();
    let usages_path = path.child("usages");
    if usages.is_empty() {
        errors.push(FieldError::required(&usages_path, ""));
    }
    for (index, usage) in usages.iter().enumerate() {
        check::supported(errors, &usages_path.index(index), usage, USAGES);
    }
    let mut seen = HashSet::new();
    for (index, usage) in usages.iter().enumerate() {
        if !seen.insert(usage) {
            errors.push(FieldError::duplicate(&usages_path.index(index), *usage));
        }
    }
    validate_signer(
        text(spec, &["signerName"]),
        &path.child("signerName"),
        errors,
    );
    let seconds = int(spec, &["expirationSeconds"]);
    if has(spec, &["expirationSeconds"]) && seconds < SHORTEST_SECONDS {
        let detail = "may not specify a duration less than 600 seconds (10 minutes)";
        errors.push(FieldError::invalid(
            &path.child("expirationSeconds"),
            seconds,
            detail,
        ));
    }
    validate_conditions(new, errors);
}

fn validate_signer(name: &str, path: &FieldPath<'_>, errors: &mut Errors) {
    if name.is_empty() {
        errors.push(FieldError::required(path, ""));
        return;
    }
    let Some((domain, rest)) = name.split_once('/').filter(|(_, rest)| !rest.contains('/')) else {
        let detail =
            "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        errors.push(FieldError::invalid(path, name, detail));
        return;
    };
    check::subdomain(errors, path, domain);
    if domain.split('.').count() < 2 {
        let detail = "should be a domain with at least two segments separated by dots";
        errors.push(FieldError::invalid(path, domain, detail));
    }
    for message in names::subdomain(rest) {
        let detail = format!("validating label {rest:?}: {message}");
        errors.push(FieldError::invalid(path, rest, detail));
    }
}

fn validate_conditions(new: &Value, errors: &mut Errors) {
    let path = FieldPath::new("status");
    let path = path.child("conditions");
    let conditions = list(new, &["status", "conditions"]);
    let mut decision = "";
    let mut seen = HashSet::new();
    for (index, condition) in conditions.iter().enumerate() {
        let item = path.index(index);
        let kind = check::required(errors, condition, &item, "type");
        let status = text(condition, &["status"]);
        let statuses: &[&str] = if matches!(kind, "Approved" | "Denied" | "Failed") {
            &["True"]
        } else {
            &["False", "True", "Unknown"]
        };
        check::required_choice(errors, &item.child("status"), status, statuses);
        if matches!(kind, "Approved" | "Denied") {
            if !decision.is_empty() && decision != kind {
                let detail = "Approved and Denied conditions are mutually exclusive";
                errors.push(FieldError::invalid(&path, kind, detail));
            }
            decision = kind;
        }
        if !seen.insert(kind) {
            errors.push(FieldError::duplicate(&item.child("type"), kind));
        }
    }
}

fn validate_decisions(new: &Value, old: &Value, may_decide: bool, errors: &mut Errors) {
    let path = FieldPath::new("status");
    let path = path.child("conditions");
    let find = |object: &Value, kind: &str| -> Vec<Value> {
        let all = list(object, &["status", "conditions"]).iter();
        all.filter(|condition| text(condition, &["type"]) == kind)
            .cloned()
            .collect()
    };
    for kind in ["Approved", "Denied", "Failed"] {
        if find(new, kind).len() < find(old, kind).len() {
            let detail = format!("updates may not remove a condition of type {kind:?}");
            errors.push(FieldError::forbidden(&path, detail));
        }
    }
    if may_decide {
        return;
    }
    for kind in ["Approved", "Denied"] {
        let (now, before) = (find(new, kind), find(old, kind));
        let verb = if now.len() > before.len() {
            "add"
        } else if now.len() == before.len() && !same(&now.into(), &before.into()) {
            "modify"
        } else {
            continue;
        };
        let detail = format!("updates may not {verb} a condition of type {kind:?}");
        errors.push(FieldError::forbidden(&path, detail));
    }
}

fn validate_certificate(new: &Value, old: &Value, may_issue: bool, errors: &mut Errors) {
    let path = FieldPath::new("status");
    let path = path.child("certificate");
    let before = text(old, &["status", "certificate"]);
    if text(new, &["status", "certificate"]) == before {
        return;
    }
    let certificate = BASE64
        .decode(text(new, &["status", "certificate"]))
        .unwrap_or_default();
    let certificate = String::from_utf8(certificate).unwrap_or_default();
    if !certificate.contains("-----BEGIN CERTIFICATE-----\n")
        && !text(new, &["status", "certificate"]).is_empty()
    {
        let detail = "must contain at least one CERTIFICATE PEM block";
        let value = "<certificate data>";
        errors.push(FieldError::invalid(&path, value, detail));
    }
    if !may_issue {
        let detail = "updates may not set certificate content";
        errors.push(FieldError::forbidden(&path, detail));
    } else if !before.is_empty() {
        let detail = "updates may not modify existing certificate content";
        errors.push(FieldError::forbidden(&path, detail));
    }
}

const COLUMNS: &[Column] = &[
    NAME,
    AGE,
    words("SignerName", "Who is to sign."),
    words("Requestor", "Who asks."),
    words("RequestedDuration", "How long the certificate should last."),
    words("Condition", "How far the request has got."),
];

fn row(object: &Value, now: Timestamp) -> Vec<Value> {
    let duration = match at(object, &["spec", "expirationSeconds"]).as_i64() {
        Some(seconds) => human(seconds),
        None => "<none>".to_owned(),
    };
    vec![
        name(object),
        age(object, now),
        cell_or(object, &["spec", "signerName"], "<none>"),
        cell(object, &["spec", "username"]),
        duration.into(),
        condition(object).into(),
    ]
}

fn condition(object: &Value) -> String {
    let has = |kind: &str| {
        list(object, &["status", "conditions"])
            .iter()
            .any(|condition| text(condition, &["type"]) == kind)
    };
    let mut shown = if has("Denied") {
        "Denied"
    } else if has("Approved") {
        "Approved"
    } else {
        "Pending"
    }
    .to_owned();
    if has("Failed") {
        shown.push_str(",Failed");
    }
    if !text(object, &["status", "certificate"]).is_empty() {
        shown.push_str(",Issued");
    }
    shown
}
