//! IPAddresses and ServiceCIDRs: served as data; Services take their addresses from the server.

use bellwether_schema::{FieldError, FieldPath};
use jiff::Timestamp;
use k8s_openapi::api::networking::v1::{IPAddress, ServiceCIDR};
use serde_json::Value;

use crate::check::{self, Errors};
use crate::columns::{AGE, NAME, age, name, words};
use crate::resource::STATUS;
use crate::value::{at, list, text, texts};
use crate::{Column, Resource};

pub(crate) const IP_ADDRESS: Resource = Resource {
    short_names: &["ip"],
    // Rows have an age, too, for which Kubernetes declares no column.
    columns: &[NAME, words("ParentRef", "Who uses the address.")],
    validate: validate_address,
    row: address_row,
    ..Resource::cluster::<IPAddress>("networking.k8s.io", "v1", "IPAddress", "ipaddresses")
};

pub(crate) const SERVICE_CIDR: Resource = Resource {
    subresources: &[STATUS],
    columns: CIDR_COLUMNS,
    validate: validate_ranges,
    row: cidr_row,
    ..Resource::cluster::<ServiceCIDR>("networking.k8s.io", "v1", "ServiceCIDR", "servicecidrs")
};

fn validate_address(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let path = FieldPath::new("metadata");
    check::ip(
        errors,
        &path.child("name"),
        text(new, &["metadata", "name"]),
    );
    let path = FieldPath::new("spec");
    let path = path.child("parentRef");
    let parent = at(new, &["spec", "parentRef"]);
    if parent.is_null() {
        errors.push(FieldError::required(&path, ""));
        return;
    }
    check::required(errors, parent, &path, "resource");
    check::required(errors, parent, &path, "name");
    if let Some(old) = old {
        check::immutable(errors, new, old, &["spec", "parentRef"], &path);
    }
}

fn validate_ranges(new: &Value, old: Option<&Value>, errors: &mut Errors) {
    let path = FieldPath::new("spec");
    let path = path.child("cidrs");
    let ranges = list(new, &["spec", "cidrs"]);
    if ranges.is_empty() {
        errors.push(FieldError::required(&path, "at least one CIDR required"));
    } else if ranges.len() > 2 {
        let detail = "may only hold up to 2 values";
        let value = at(new, &["spec"]).clone();
        errors.push(FieldError::invalid(&FieldPath::new("spec"), value, detail));
    }
    for (index, range) in texts(new, &["spec", "cidrs"]).enumerate() {
        check::cidr(errors, &path.index(index), range);
    }
    if let Some(old) = old {
        check::immutable(errors, new, old, &["spec", "cidrs"], &path);
    }
}

const CIDR_COLUMNS: &[Column] = &[NAME, words("CIDRs", "Ranges of addresses."), AGE];

fn address_row(object: &Value, now: Timestamp) -> Vec<Value> {
    let parent = at(object, &["spec", "parentRef"]);
    let shown = if parent.is_null() {
        "<none>".to_owned()
    } else {
        let mut shown = text(parent, &["resource"]).to_owned();
        for (field, separator) in [("group", '.'), ("namespace", '/'), ("name", '/')] {
            let value = text(parent, &[field]);
            if !value.is_empty() {
                shown.push(separator);
                shown.push_str(value);
            }
        }
        shown
    };
    vec![name(object), shown.into(), age(object, now)]
}

fn cidr_row(object: &Value, now: Timestamp) -> Vec<Value> {
    let ranges: Vec<_> = texts(object, &["spec", "cidrs"]).collect();
    vec![name(object), ranges.join(",").into(), age(object, now)]
}
