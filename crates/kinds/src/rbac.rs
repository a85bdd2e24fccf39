//! The `rbac.authorization.k8s.io` group: who may do what.

use jiff::Timestamp;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use serde_json::Value;

use crate::columns::{AGE, NAME, NAME_AND_CREATION, age, name, name_and_creation, wide, words};
use crate::value::{Fill, at, existing, items, list, text};
use crate::{Column, NameRule, Resource};

const GROUP: &str = "rbac.authorization.k8s.io";

pub(crate) const ROLE: Resource = Resource {
    columns: NAME_AND_CREATION,
    row: name_and_creation,
    names: NameRule::PathSegment,
    create_on_update: true,
    ..Resource::namespaced::<Role>(GROUP, "v1", "Role", "roles")
};

pub(crate) const CLUSTER_ROLE: Resource = Resource {
    columns: NAME_AND_CREATION,
    row: name_and_creation,
    names: NameRule::PathSegment,
    create_on_update: true,
    ..Resource::cluster::<ClusterRole>(GROUP, "v1", "ClusterRole", "clusterroles")
};

pub(crate) const ROLE_BINDING: Resource = Resource {
    columns: BINDING_COLUMNS,
    row: binding_row,
    names: NameRule::PathSegment,
    create_on_update: true,
    default: default_binding,
    ..Resource::namespaced::<RoleBinding>(GROUP, "v1", "RoleBinding", "rolebindings")
};

pub(crate) const CLUSTER_ROLE_BINDING: Resource = Resource {
    columns: BINDING_COLUMNS,
    row: binding_row,
    names: NameRule::PathSegment,
    create_on_update: true,
    default: default_binding,
    ..Resource::cluster::<ClusterRoleBinding>(
        GROUP,
        "v1",
        "ClusterRoleBinding",
        "clusterrolebindings",
    )
};

fn default_binding(object: &mut Value) {
    if let Some(role) = existing(object, &["roleRef"]) {
        role.fill_zero("apiGroup", GROUP);
    }
    for subject in items(object, &["subjects"]) {
        let named = matches!(text(subject, &["kind"]), "User" | "Group");
        if let Some(subject) = subject.as_object_mut()
            && named
        {
            subject.fill_zero("apiGroup", GROUP);
        }
    }
}

const BINDING_COLUMNS: &[Column] = &[
    NAME,
    words("Role", "The role that is granted."),
    AGE,
    wide("Users", "Users that have it."),
    wide("Groups", "Groups that have it."),
    wide("ServiceAccounts", "Service accounts that have it."),
];

fn binding_row(object: &Value, now: Timestamp) -> Vec<Value> {
    let role = at(object, &["roleRef"]);
    let subjects = |kind: &str| {
        let all: Vec<_> = list(object, &["subjects"])
            .iter()
            .filter(|subject| text(subject, &["kind"]) == kind)
            .map(|subject| match text(subject, &["namespace"]) {
                namespace if kind == "ServiceAccount" && !namespace.is_empty() => {
                    format!("{namespace}/{}", text(subject, &["name"]))
                }
                _ => text(subject, &["name"]).to_owned(),
            })
            .collect();
        Value::from(all.join(", "))
    };
    vec![
        name(object),
        format!("{}/{}", text(role, &["kind"]), text(role, &["name"])).into(),
        age(object, now),
        subjects("User"),
        subjects("Group"),
        subjects("ServiceAccount"),
    ]
}
