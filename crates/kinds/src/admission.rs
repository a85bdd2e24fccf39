//! The `admissionregistration.k8s.io` group as data. What it configures is in the crate `admission`.

use std::collections::HashSet;

use bellwether_schema::{FieldError, FieldPath};
use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
    ValidatingWebhookConfiguration,
};
use serde_json::{Map, Value};

use crate::check::{self, Errors};
use crate::columns::{AGE, NAME, age, cell, column, name, words};
use crate::resource::{API_EXTENSIONS, STATUS};
use crate::value::{Fill, at, empty, existing, has, int, items, list, text, texts};
use crate::{Column, Generation, Resource, selector};

const GROUP: &str = "admissionregistration.k8s.io";

pub(crate) const MUTATING_WEBHOOKS: Resource = Resource {
    categories: API_EXTENSIONS,
    generation: Generation::Spec,
    unconditional_update: false,
    default: default_mutating,
    validate: validate_webhooks,
    columns: WEBHOOK_COLUMNS,
    row: webhook_row,
    ..Resource::cluster::<MutatingWebhookConfiguration>(
        GROUP,
        "v1",
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
    )
};

pub(crate) const VALIDATING_WEBHOOKS: Resource = Resource {
    categories: API_EXTENSIONS,
    generation: Generation::Spec,
    unconditional_update: false,
    default: default_webhooks,
    validate: validate_webhooks,
    columns: WEBHOOK_COLUMNS,
    row: webhook_row,
    ..Resource::cluster::<ValidatingWebhookConfiguration>(
        GROUP,
        "v1",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
    )
};

pub(crate) const VALIDATING_POLICY: Resource = Resource {
    categories: API_EXTENSIONS,
    subresources: &[STATUS],
    generation: Generation::Spec,
    unconditional_update: false,
    default: default_policy,
    validate: validate_policy,
    columns: POLICY_COLUMNS,
    row: policy_row,
    ..Resource::cluster::<ValidatingAdmissionPolicy>(
        GROUP,
        "v1",
        "ValidatingAdmissionPolicy",
        "validatingadmissionpolicies",
    )
};

pub(crate) const VALIDATING_POLICY_BINDING: Resource = Resource {
    categories: API_EXTENSIONS,
    generation: Generation::Spec,
    unconditional_update: false,
    default: default_policy_binding,
    validate: validate_policy_binding,
    columns: BINDING_COLUMNS,
    row: binding_row,
    ..Resource::cluster::<ValidatingAdmissionPolicyBinding>(
        GROUP,
        "v1",
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
    )
};

fn default_webhooks(object: &mut Value) {
    for webhook in items(object, &["webhooks"]) {
        if let Some(webhook) = webhook.as_object_mut() {
            webhook.fill("failurePolicy", "Fail");
            webhook.fill("timeoutSeconds", 10);
            default_match(webhook);
        }
        if let Some(service) = existing(webhook, &["clientConfig", "service"]) {
            service.fill("port", 443);
        }
        default_scope(webhook, &["rules"]);
    }
}

fn default_mutating(object: &mut Value) {
    default_webhooks(object);
    for webhook in items(object, &["webhooks"]) {
        if let Some(webhook) = webhook.as_object_mut() {
            webhook.fill("reinvocationPolicy", "Never");
        }
    }
}

fn default_policy(object: &mut Value) {
    if let Some(spec) = existing(object, &["spec"]) {
        spec.fill("failurePolicy", "Fail");
    }
    default_resources(object, &["spec", "matchConstraints"]);
}

fn default_policy_binding(object: &mut Value) {
    default_resources(object, &["spec", "matchResources"]);
}

/// Fills in which resources a policy looks at.
fn default_resources(object: &mut Value, path: &[&str]) {
    let Some(resources) = existing(object, path) else {
        return;
    };
    default_match(resources);
    for rules in ["resourceRules", "excludeResourceRules"] {
        default_scope(object, &[path, &[rules]].concat());
    }
}

fn default_match(fields: &mut Map<String, Value>) {
    fields.fill("matchPolicy", "Equivalent");
    fields.fill("namespaceSelector", empty());
    fields.fill("objectSelector", empty());
}

fn default_scope(object: &mut Value, path: &[&str]) {
    for rule in items(object, path) {
        if let Some(rule) = rule.as_object_mut() {
            rule.fill("scope", "*");
        }
    }
}

/// Longest time to wait for a webhook, in seconds.
const TIMEOUT_SECONDS: i64 = 30;

fn validate_webhooks(new: &Value, _old: Option<&Value>, errors: &mut Errors) {
    let path = FieldPath::new("webhooks");
    let webhooks = list(new, &["webhooks"]);
    let mut seen = HashSet::new();
    for (index, webhook) in webhooks.iter().enumerate() {
        let item = path.index(index);
        validate_webhook(webhook, &item, errors);
        let name = text(webhook, &["name"]);
        if !seen.insert(name) {
            errors.push(FieldError::duplicate(&item.child("name"), name));
        }
    }
}

fn validate_webhook(webhook: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let name = text(webhook, &["name"]);
    let name_path = path.child("name");
    if name.is_empty() {
        errors.push(FieldError::required(&name_path, ""));
    } else {
        check::subdomain(errors, &name_path, name);
        if name.split('.').count() < 3 {
            let detail = "should be a domain with at least three segments separated by dots";
            errors.push(FieldError::invalid(&name_path, name, detail));
        }
    }
    let rules = path.child("rules");
    for (index, rule) in list(webhook, &["rules"]).iter().enumerate() {
        validate_rule(rule, &rules.index(index), errors);
    }
    for (field, allowed) in [
        ("failurePolicy", ["Fail", "Ignore"]),
        ("matchPolicy", ["Equivalent", "Exact"]),
    ] {
        check::supported(
            errors,
            &path.child(field),
            text(webhook, &[field]),
            &allowed,
        );
    }
    let effects_path = path.child("sideEffects");
    if has(webhook, &["sideEffects"]) {
        let effects = text(webhook, &["sideEffects"]);
        check::supported(errors, &effects_path, effects, &["None", "NoneOnDryRun"]);
    } else {
        let detail = "must specify one of None, NoneOnDryRun";
        errors.push(FieldError::required(&effects_path, detail));
    }
    let seconds = int(webhook, &["timeoutSeconds"]);
    if !(1..=TIMEOUT_SECONDS).contains(&seconds) {
        let detail = "the timeout value must be between 1 and 30 seconds";
        errors.push(FieldError::invalid(
            &path.child("timeoutSeconds"),
            seconds,
            detail,
        ));
    }
    for field in ["namespaceSelector", "objectSelector"] {
        selector::validate(at(webhook, &[field]), &path.child(field), errors);
    }
    validate_client(
        at(webhook, &["clientConfig"]),
        &path.child("clientConfig"),
        errors,
    );
    let versions = path.child("admissionReviewVersions");
    if list(webhook, &["admissionReviewVersions"]).is_empty() {
        let detail = "must specify one of v1, v1beta1";
        errors.push(FieldError::required(&versions, detail));
    }
}

fn validate_client(client: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    if has(client, &["url"]) == has(client, &["service"]) {
        let detail = "exactly one of url or service is required";
        errors.push(FieldError::required(path, detail));
    }
    let service = at(client, &["service"]);
    if service.is_object() {
        let path = path.child("service");
        check::required(errors, service, &path, "name");
        check::required(errors, service, &path, "namespace");
        check::port_number(errors, &path.child("port"), int(service, &["port"]));
    }
}

fn validate_rule(rule: &Value, path: &FieldPath<'_>, errors: &mut Errors) {
    let operations = path.child("operations");
    if list(rule, &["operations"]).is_empty() {
        errors.push(FieldError::required(&operations, ""));
    }
    for (index, operation) in texts(rule, &["operations"]).enumerate() {
        let allowed = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
        check::supported(errors, &operations.index(index), operation, &allowed);
    }
    for field in ["apiGroups", "apiVersions", "resources"] {
        if list(rule, &[field]).is_empty() {
            errors.push(FieldError::required(&path.child(field), ""));
        }
    }
    if has(rule, &["scope"]) {
        let scope = text(rule, &["scope"]);
        check::supported(
            errors,
            &path.child("scope"),
            scope,
            &["*", "Cluster", "Namespaced"],
        );
    }
}

fn validate_policy(new: &Value, _old: Option<&Value>, errors: &mut Errors) {
    let path = FieldPath::new("spec");
    let spec = at(new, &["spec"]);
    let constraints = path.child("matchConstraints");
    if has(spec, &["matchConstraints"]) {
        let rules = list(spec, &["matchConstraints", "resourceRules"]);
        let rules_path = constraints.child("resourceRules");
        if rules.is_empty() {
            errors.push(FieldError::required(&rules_path, ""));
        }
        for (index, rule) in rules.iter().enumerate() {
            validate_rule(rule, &rules_path.index(index), errors);
        }
    } else {
        errors.push(FieldError::required(&constraints, ""));
    }
    let parts = ["validations", "auditAnnotations"];
    if parts.iter().all(|part| list(spec, &[part]).is_empty()) {
        let detail = "validations or auditAnnotations must contain at least one item";
        for part in parts {
            errors.push(FieldError::required(&path.child(part), detail));
        }
    }
    let validations = path.child("validations");
    for (index, validation) in list(spec, &["validations"]).iter().enumerate() {
        if text(validation, &["expression"]).trim().is_empty() {
            let path = validations.index(index);
            let detail = "expression is not specified";
            errors.push(FieldError::required(&path.child("expression"), detail));
        }
    }
}

fn validate_policy_binding(new: &Value, _old: Option<&Value>, errors: &mut Errors) {
    let path = FieldPath::new("spec");
    let spec = at(new, &["spec"]);
    check::required(errors, spec, &path, "policyName");
    let actions_path = path.child("validationActions");
    let actions: Vec<_> = texts(spec, &["validationActions"]).collect();
    if actions.is_empty() {
        let detail = "at least one validation action is required";
        errors.push(FieldError::required(&actions_path, detail));
    }
    let mut seen = HashSet::new();
    for (index, action) in actions.iter().enumerate() {
        let allowed = ["Audit", "Deny", "Warn"];
        check::supported(errors, &actions_path.index(index), action, &allowed);
        if !seen.insert(action) {
            errors.push(FieldError::duplicate(&actions_path.index(index), *action));
        }
    }
    if actions.contains(&"Deny") && actions.contains(&"Warn") {
        let detail = "must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)";
        let value = at(spec, &["validationActions"]).clone();
        errors.push(FieldError::invalid(&actions_path, value, detail));
    }
}

const WEBHOOK_COLUMNS: &[Column] = &[
    NAME,
    column("Webhooks", "integer", "Webhooks in the configuration."),
    AGE,
];

fn webhook_row(object: &Value, now: Timestamp) -> Vec<Value> {
    vec![
        name(object),
        list(object, &["webhooks"]).len().into(),
        age(object, now),
    ]
}

const POLICY_COLUMNS: &[Column] = &[
    NAME,
    column("Validations", "integer", "Rules of the policy."),
    words("ParamKind", "Kind of the parameters."),
    AGE,
];

fn policy_row(object: &Value, now: Timestamp) -> Vec<Value> {
    let kind = at(object, &["spec", "paramKind"]);
    let shown = if kind.is_null() {
        "<unset>".to_owned()
    } else {
        format!("{}/{}", text(kind, &["apiVersion"]), text(kind, &["kind"]))
    };
    vec![
        name(object),
        list(object, &["spec", "validations"]).len().into(),
        shown.into(),
        age(object, now),
    ]
}

const BINDING_COLUMNS: &[Column] = &[
    NAME,
    words("PolicyName", "The policy that is bound."),
    words("ParamRef", "The parameters."),
    AGE,
];

fn binding_row(object: &Value, now: Timestamp) -> Vec<Value> {
    let parameters = at(object, &["spec", "paramRef"]);
    let shown = match (
        text(parameters, &["namespace"]),
        text(parameters, &["name"]),
    ) {
        (_, "") => "<unset>".to_owned(),
        ("", name) => format!("*/{name}"),
        (namespace, name) => format!("{namespace}/{name}"),
    };
    vec![
        name(object),
        cell(object, &["spec", "policyName"]),
        shown.into(),
        age(object, now),
    ]
}
