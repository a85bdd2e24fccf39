//! Pods, and Bindings of pods to nodes.

mod account;
mod columns;
mod defaults;
mod image;
mod prepare;
mod qos;
mod validate;

pub use account::{DEFAULT_ACCOUNT, TOKEN_VOLUME, account_name, set_account};
pub(crate) use defaults::{legacy_volume, template};
pub use prepare::set_priority;
pub(crate) use validate::{
    node_selector, resource_amount, resource_name, taint_effect, template as validate_template,
    tolerations,
};

use k8s_openapi::api::core::v1::{Binding, Pod};
use serde_json::Value;

use crate::resource::{ALL, CREATE, PART_VERBS, STATUS, Subresource, connection, proxy};
use crate::{FieldSelector, Generation, Resource};

pub(crate) const RESOURCE: Resource = Resource {
    short_names: &["po"],
    categories: ALL,
    subresources: &[
        connection("attach", "PodAttachOptions"),
        Subresource {
            name: "binding",
            kind: Some(("", "v1", "Binding")),
            verbs: CREATE,
        },
        Subresource {
            name: "ephemeralcontainers",
            kind: None,
            verbs: PART_VERBS,
        },
        Subresource {
            name: "eviction",
            kind: Some(("policy", "v1", "Eviction")),
            verbs: CREATE,
        },
        connection("exec", "PodExecOptions"),
        Subresource {
            name: "log",
            kind: None,
            verbs: &["get"],
        },
        connection("portforward", "PodPortForwardOptions"),
        proxy("PodProxyOptions"),
        Subresource {
            name: "resize",
            kind: None,
            verbs: PART_VERBS,
        },
        STATUS,
    ],
    field_selectors: FIELD_SELECTORS,
    generation: Generation::Spec,
    returns_deleted: true,
    grace_period: Some(grace_period),
    default: defaults::pod,
    prepare_create: prepare::create,
    prepare_part: prepare::part,
    validate: validate::pod,
    revalidates: true,
    validate_part: validate::part,
    columns: columns::COLUMNS,
    row: columns::row,
    ..Resource::namespaced::<Pod>("", "v1", "Pod", "pods")
};

/// A pod may take some time to end only while a node has it.
fn grace_period(wanted: Option<i64>, live: &Value) -> i64 {
    let unscheduled = live["spec"]["nodeName"].as_str().unwrap_or("").is_empty();
    let ended = matches!(
        live["status"]["phase"].as_str(),
        Some("Failed" | "Succeeded")
    );
    if unscheduled || ended {
        return 0;
    }
    let own = live["spec"]["terminationGracePeriodSeconds"].as_i64();
    match wanted.or(own).unwrap_or(0) {
        seconds if seconds < 0 => 1,
        seconds => seconds,
    }
}

/// The quality of service of a pod: `Guaranteed`, `Burstable` or `BestEffort`.
pub(crate) fn qos_class(pod: &Value) -> &'static str {
    qos::class(crate::value::at(pod, &["spec"]))
}

pub(crate) const BINDING: Resource = Resource {
    verbs: CREATE,
    ..Resource::namespaced::<Binding>("", "v1", "Binding", "bindings")
};

const FIELD_SELECTORS: &[FieldSelector] = &[
    selector("spec.nodeName", &[&["spec", "nodeName"]]),
    selector("spec.host", &[&["spec", "nodeName"]]),
    selector("spec.restartPolicy", &[&["spec", "restartPolicy"]]),
    selector("spec.schedulerName", &[&["spec", "schedulerName"]]),
    selector(
        "spec.serviceAccountName",
        &[&["spec", "serviceAccountName"]],
    ),
    FieldSelector {
        absent: "false",
        ..selector("spec.hostNetwork", &[&["spec", "hostNetwork"]])
    },
    selector("status.phase", &[&["status", "phase"]]),
    selector("status.podIP", &[&["status", "podIP"]]),
    selector(
        "status.nominatedNodeName",
        &[&["status", "nominatedNodeName"]],
    ),
];

const fn selector(label: &'static str, paths: &'static [&'static [&'static str]]) -> FieldSelector {
    FieldSelector {
        label,
        paths,
        absent: "",
    }
}
