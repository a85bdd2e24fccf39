//! IPAddresses and ServiceCIDRs: served as data; Services take their addresses from the server.

use jiff::Timestamp;
use k8s_openapi::api::networking::v1::{IPAddress, ServiceCIDR};
use serde_json::Value;

use crate::columns::{AGE, NAME, age, name, words};
use crate::resource::STATUS;
use crate::value::{at, text, texts};
use crate::{Column, Resource};

pub(crate) const IP_ADDRESS: Resource = Resource {
    short_names: &["ip"],
    columns: &[NAME, words("ParentRef", "Who uses the address."), AGE],
    row: address_row,
    ..Resource::cluster::<IPAddress>("networking.k8s.io", "v1", "IPAddress", "ipaddresses")
};

pub(crate) const SERVICE_CIDR: Resource = Resource {
    subresources: &[STATUS],
    columns: CIDR_COLUMNS,
    row: cidr_row,
    ..Resource::cluster::<ServiceCIDR>("networking.k8s.io", "v1", "ServiceCIDR", "servicecidrs")
};

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
