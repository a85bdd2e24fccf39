//! What containers ask for and may use.

use std::collections::HashSet;

use bellwether_schema::{FieldError, FieldPath};
use serde_json::Value;

use crate::check::{self, Errors, quantity};
use crate::names;
use crate::value::{at, entries, list};

/// Resources that containers can ask for without a domain in the name.
const OF_CONTAINERS: &[&str] = &["cpu", "memory", "ephemeral-storage"];
/// Resources that exist without a domain in the name.
const STANDARD: &[&str] = &[
    "cpu",
    "memory",
    "ephemeral-storage",
    "requests.cpu",
    "requests.memory",
    "requests.ephemeral-storage",
    "limits.cpu",
    "limits.memory",
    "limits.ephemeral-storage",
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "storage",
    "requests.storage",
    "services.nodeports",
    "services.loadbalancers",
];
/// Resources of which there is no half.
const WHOLE: &[&str] = &[
    "pods",
    "resourcequotas",
    "services",
    "replicationcontrollers",
    "secrets",
    "configmaps",
    "persistentvolumeclaims",
    "services.nodeports",
    "services.loadbalancers",
];

/// Checks `resources` of a container.
pub(super) fn container(
    resources: &Value,
    known_claims: &HashSet<&str>,
    path: &FieldPath<'_>,
    errors: &mut Errors,
) {
    let limits = path.child("limits");
    let requests = path.child("requests");
    let mut huge = false;
    let mut computes = false;
    for (name, amount) in entries(resources, &["limits"]) {
        amount_of_container(name, amount, &limits.key(name), errors);
        huge |= is_huge_pages(name);
        computes |= matches!(name.as_str(), "cpu" | "memory");
    }
    for (name, amount) in entries(resources, &["requests"]) {
        amount_of_container(name, amount, &requests.key(name), errors);
        huge |= is_huge_pages(name);
        computes |= matches!(name.as_str(), "cpu" | "memory");
        let limit = at(resources, &["limits", name]);
        within_limit(name, amount, limit, [&requests, &limits], errors);
    }
    if huge && !computes {
        errors.push(FieldError::forbidden(
            path,
            "HugePages require cpu or memory",
        ));
    }
    claims(resources, known_claims, &path.child("claims"), errors);
}

fn within_limit(
    name: &str,
    amount: &Value,
    limit: &Value,
    [requests, limits]: [&FieldPath<'_>; 2],
    errors: &mut Errors,
) {
    let (Some(asked), Some(most)) = (quantity(amount), quantity(limit)) else {
        if limit.is_null() && !may_overcommit(name) {
            let detail = "Limit must be set for non overcommitable resources";
            errors.push(FieldError::required(limits, detail));
        }
        return;
    };
    let relation = if asked != most && !may_overcommit(name) {
        "equal to"
    } else if asked > most {
        "less than or equal to"
    } else {
        return;
    };
    let detail = format!("must be {relation} {name} limit of {most}");
    errors.push(FieldError::invalid(requests, asked.to_string(), detail));
}

fn claims(resources: &Value, known: &HashSet<&str>, path: &FieldPath<'_>, errors: &mut Errors) {
    for (index, claim) in list(resources, &["claims"]).iter().enumerate() {
        let path = path.index(index);
        let name = check::required(errors, claim, &path, "name");
        if !name.is_empty() && !known.contains(name) {
            let mut error = FieldError::not_found(&path, name);
            error.detail = if known.is_empty() {
                "must be one of the names in pod.spec.resourceClaims which is empty".to_owned()
            } else {
                "must be one of the names in pod.spec.resourceClaims".to_owned()
            };
            errors.push(error);
        }
    }
}

fn amount_of_container(name: &str, amount: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let before = errors.len();
    resource_name(name, path, errors);
    if errors.len() == before {
        let standard = OF_CONTAINERS.contains(&name) || is_huge_pages(name);
        if !name.contains('/') && !standard {
            let detail = "must be a standard resource for containers";
            errors.push(FieldError::invalid(path, name, detail));
        } else if name.contains('/') && !is_native(name) && !is_extended(name) {
            let detail = "doesn't follow extended resource name standard";
            errors.push(FieldError::invalid(path, name, detail));
        }
    } else if !name.contains('/') {
        let detail = "must be a standard resource for containers";
        errors.push(FieldError::invalid(path, name, detail));
    }
    resource_amount(name, amount, path, errors);
}

/// Checks the name of a resource.
pub(crate) fn resource_name(name: &str, path: &FieldPath<'_>, errors: &mut Errors) {
    let messages = names::qualified_name(name);
    if !messages.is_empty() {
        check::report(errors, path, name, messages);
    } else if !name.contains('/')
        && !STANDARD.contains(&name)
        && !is_huge_pages(name)
        && !name.starts_with("requests.hugepages-")
    {
        let detail = "must be a standard resource type or fully qualified";
        errors.push(FieldError::invalid(path, name, detail));
    }
}

/// Checks the amount of a resource.
pub(crate) fn resource_amount(
    name: &str,
    amount: &Value,
    path: &FieldPath<'_>,
    errors: &mut Errors,
) {
    check::quantity_not_negative(errors, path, amount);
    let whole = WHOLE.contains(&name) || is_extended(name);
    if whole && quantity(amount).is_some_and(|amount| amount.milli_value() % 1000 != 0) {
        errors.push(FieldError::invalid(
            path,
            amount.clone(),
            "must be an integer",
        ));
    }
}

fn is_huge_pages(name: &str) -> bool {
    name.starts_with("hugepages-")
}

fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Resources that vendors add.
fn is_extended(name: &str) -> bool {
    !is_native(name)
        && !name.starts_with("requests.")
        && names::qualified_name(&format!("requests.{name}")).is_empty()
}

/// Whether more can be promised than there is.
fn may_overcommit(name: &str) -> bool {
    is_native(name) && !is_huge_pages(name)
}
