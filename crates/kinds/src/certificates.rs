//! The `certificates.k8s.io` group: requests for certificates.

use jiff::Timestamp;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use serde_json::Value;

use crate::columns::{AGE, NAME, age, cell, cell_or, human, name, words};
use crate::resource::{PART_VERBS, STATUS, Subresource};
use crate::value::{at, list, text};
use crate::{Column, FieldSelector, NameRule, Resource};

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
    field_selectors: &[FieldSelector {
        label: "spec.signerName",
        paths: &[&["spec", "signerName"]],
        absent: "",
    }],
    columns: COLUMNS,
    row,
    ..Resource::cluster::<CertificateSigningRequest>(
        "certificates.k8s.io",
        "v1",
        "CertificateSigningRequest",
        "certificatesigningrequests",
    )
};

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
