//! Requests for certificates, and what they ask for.

use std::net::{Ipv4Addr, Ipv6Addr};

use bellwether_kinds::human as human_duration;
use serde_json::Value;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::oid_registry::{self, Oid};
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::FromDer;
use x509_parser::x509::X509Name;

use super::page::Page;
use super::read::{base64_bytes, flat_labels, items, text};
use super::subject::Subject;

/// Describes a certificate signing request.
pub(super) fn describe(subject: &Subject<'_>, page: &mut Page) {
    let (metadata, spec) = (subject.metadata(), subject.spec());
    page.pair(0, "Name", text(&metadata["name"]));
    page.pair(0, "Labels", flat_labels(&metadata["labels"]));
    page.pair(0, "Annotations", flat_labels(&metadata["annotations"]));
    let created = subject.moment.date(&metadata["creationTimestamp"]);
    page.pair(0, "CreationTimestamp", created);
    page.pair(0, "Requesting User", text(&spec["username"]));
    page.pair_if(0, "Signer", text(&spec["signerName"]));
    if let Some(seconds) = spec["expirationSeconds"].as_i64() {
        page.pair(0, "Requested Duration", human_duration(seconds));
    }
    page.pair(0, "Status", status(subject.status()));
    let pem = base64_bytes(text(&spec["request"]));
    let Ok((_, block)) = parse_x509_pem(&pem) else {
        return;
    };
    // What is no request was refused by the server; there is nothing to say about it.
    if let Ok((_, request)) = X509CertificationRequest::from_der(&block.contents) {
        name(page, &request.certification_request_info.subject);
        alternative_names(page, &request);
    }
}

/// How far a request has come.
fn status(status: &Value) -> String {
    let has = |kind: &str| {
        let mut conditions = items(&status["conditions"]).iter();
        conditions.any(|found| found["type"] == kind)
    };
    let decision = match (has("Denied"), has("Approved")) {
        (true, _) => "Denied",
        (false, true) => "Approved",
        (false, false) => "Pending",
    };
    let failed = if has("Failed") { ",Failed" } else { "" };
    let issued = match text(&status["certificate"]) {
        "" => "",
        _ => ",Issued",
    };
    format!("{decision}{failed}{issued}")
}

fn name(page: &mut Page, name: &X509Name<'_>) {
    let find = |wanted: &Oid<'_>| -> Vec<String> {
        let parts = name.iter_attributes();
        let parts = parts.filter(|part| part.attr_type() == wanted);
        parts
            .filter_map(|part| part.as_str().ok().map(str::to_owned))
            .collect()
    };
    page.line(0, "Subject:");
    for (label, wanted) in [
        ("Common Name", &oid_registry::OID_X509_COMMON_NAME),
        ("Serial Number", &oid_registry::OID_X509_SERIALNUMBER),
    ] {
        let last = find(wanted).pop().unwrap_or_default();
        page.line(0, format_args!("\t{label}:\t{last}"));
    }
    for (label, wanted) in [
        ("Organization", &oid_registry::OID_X509_ORGANIZATION_NAME),
        (
            "Organizational Unit",
            &oid_registry::OID_X509_ORGANIZATIONAL_UNIT,
        ),
        ("Country", &oid_registry::OID_X509_COUNTRY_NAME),
        ("Locality", &oid_registry::OID_X509_LOCALITY_NAME),
        ("Province", &oid_registry::OID_X509_STATE_OR_PROVINCE_NAME),
        ("StreetAddress", &oid_registry::OID_X509_STREET_ADDRESS),
        ("PostalCode", &oid_registry::OID_X509_POSTAL_CODE),
    ] {
        several(page, label, &find(wanted));
    }
}

/// Values under each other, if there are any.
fn several(page: &mut Page, label: &str, values: &[String]) {
    if !values.is_empty() {
        let values = values.join("\n\t\t");
        page.line(0, format_args!("\t{label}:\t{values}"));
    }
}

fn alternative_names(page: &mut Page, request: &X509CertificationRequest<'_>) {
    let extensions = request.requested_extensions().into_iter().flatten();
    let names: Vec<&GeneralName<'_>> = extensions
        .filter_map(|extension| match extension {
            ParsedExtension::SubjectAlternativeName(names) => Some(&names.general_names),
            _ => None,
        })
        .flatten()
        .collect();
    if names.is_empty() {
        return;
    }
    let find = |read: fn(&GeneralName<'_>) -> Option<String>| -> Vec<String> {
        names.iter().filter_map(|name| read(name)).collect()
    };
    page.line(0, "Subject Alternative Names:");
    let dns = find(|name| match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        _ => None,
    });
    several(page, "DNS Names", &dns);
    let mail = find(|name| match name {
        GeneralName::RFC822Name(name) => Some((*name).to_owned()),
        _ => None,
    });
    several(page, "Email Addresses", &mail);
    let places = find(|name| match name {
        GeneralName::URI(name) => Some((*name).to_owned()),
        _ => None,
    });
    several(page, "URIs", &places);
    let addresses = find(|name| match name {
        GeneralName::IPAddress(bytes) => address(bytes),
        _ => None,
    });
    several(page, "IP Addresses", &addresses);
}

fn address(bytes: &[u8]) -> Option<String> {
    if let Ok(bytes) = <[u8; 4]>::try_from(bytes) {
        return Some(Ipv4Addr::from(bytes).to_string());
    }
    let bytes = <[u8; 16]>::try_from(bytes).ok()?;
    Some(Ipv6Addr::from(bytes).to_string())
}
