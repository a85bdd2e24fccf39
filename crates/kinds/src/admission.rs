//! The `admissionregistration.k8s.io` group: served as data. Webhooks are not called and policies
//! are not evaluated.

use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
    ValidatingWebhookConfiguration,
};
use serde_json::{Map, Value};

use crate::columns::{AGE, NAME, age, cell, column, name, words};
use crate::resource::{API_EXTENSIONS, STATUS};
use crate::value::{Fill, at, empty, existing, items, list, text};
use crate::{Column, Generation, Resource};

const GROUP: &str = "admissionregistration.k8s.io";

pub(crate) const MUTATING_WEBHOOKS: Resource = Resource {
    categories: API_EXTENSIONS,
    generation: Generation::Spec,
    unconditional_update: false,
    default: default_mutating,
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
