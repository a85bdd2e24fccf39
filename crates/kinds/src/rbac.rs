//! The `rbac.authorization.k8s.io` group: who may do what.

use bellwether_schema::{FieldError, FieldErrorKind, FieldPath};
use jiff::Timestamp;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, Role, RoleBinding};
use serde_json::Value;

use crate::check::{self, Errors};
use crate::columns::{AGE, NAME, NAME_AND_CREATION, age, name, name_and_creation, wide, words};
use crate::value::{Fill, at, existing, items, list, same, text};
use crate::{Column, NameRule, Resource, names, printed, selector};

const GROUP: &str = "rbac.authorization.k8s.io";

pub(crate) const ROLE: Resource = Resource {
    columns: NAME_AND_CREATION,
    row: name_and_creation,
    names: NameRule::PathSegment,
    create_on_update: true,
    revalidates: true,
    validate: |new, _, errors| validate_rules(new, true, errors),
    ..Resource::namespaced::<Role>(GROUP, "v1", "Role", "roles")
};

pub(crate) const CLUSTER_ROLE: Resource = Resource {
    columns: NAME_AND_CREATION,
    row: name_and_creation,
    names: NameRule::PathSegment,
    create_on_update: true,
    revalidates: true,
    validate: validate_cluster_role,
    ..Resource::cluster::<ClusterRole>(GROUP, "v1", "ClusterRole", "clusterroles")
};

pub(crate) const ROLE_BINDING: Resource = Resource {
    columns: BINDING_COLUMNS,
    row: binding_row,
    names: NameRule::PathSegment,
    create_on_update: true,
    revalidates: true,
    default: default_binding,
    validate: |new, old, errors| validate_binding(new, old, true, errors),
    ..Resource::namespaced::<RoleBinding>(GROUP, "v1", "RoleBinding", "rolebindings")
};

pub(crate) const CLUSTER_ROLE_BINDING: Resource = Resource {
    columns: BINDING_COLUMNS,
    row: binding_row,
    names: NameRule::PathSegment,
    create_on_update: true,
    revalidates: true,
    default: default_binding,
    validate: |new, old, errors| validate_binding(new, old, false, errors),
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

fn validate_rules(new: &Value, namespaced: bool, errors: &mut Errors) {
    let path = FieldPath::new("rules");
    for (index, rule) in list(new, &["rules"]).iter().enumerate() {
        let path = path.index(index);
        let given = |field: &str| !list(rule, &[field]).is_empty();
        if !given("verbs") {
            let detail = "verbs must contain at least one value";
            errors.push(FieldError::required(&path.child("verbs"), detail));
        }
        if given("nonResourceURLs") {
            let path = path.child("nonResourceURLs");
            let value = || at(rule, &["nonResourceURLs"]).clone();
            if namespaced {
                let detail = "namespaced rules cannot apply to non-resource URLs";
                errors.push_with(|| FieldError::invalid(&path, value(), detail));
            }
            if given("apiGroups") || given("resources") || given("resourceNames") {
                let detail = "rules cannot apply to both regular resources and non-resource URLs";
                errors.push_with(|| FieldError::invalid(&path, value(), detail));
            }
            continue;
        }
        if !given("apiGroups") {
            let detail = "resource rules must supply at least one api group";
            errors.push(FieldError::required(&path.child("apiGroups"), detail));
        }
        if !given("resources") {
            let detail = "resource rules must supply at least one resource";
            errors.push(FieldError::required(&path.child("resources"), detail));
        }
    }
}

fn validate_cluster_role(new: &Value, _old: Option<&Value>, errors: &mut Errors) {
    validate_rules(new, false, errors);
    let aggregation = at(new, &["aggregationRule"]);
    if aggregation.is_null() {
        return;
    }
    let path = FieldPath::new("aggregationRule");
    let path = path.child("clusterRoleSelectors");
    let selectors = list(aggregation, &["clusterRoleSelectors"]);
    if selectors.is_empty() {
        let detail = "at least one clusterRoleSelector required if aggregationRule is non-nil";
        errors.push(FieldError::required(&path, detail));
    }
    for (index, selector) in selectors.iter().enumerate() {
        selector::validate(selector, &path.index(index), errors);
        if !selector::is_valid(selector) {
            let detail = "invalid label selector.";
            errors.push(FieldError::invalid(&path.index(index), Value::Null, detail));
        }
    }
}

fn validate_binding(new: &Value, old: Option<&Value>, namespaced: bool, errors: &mut Errors) {
    let role = at(new, &["roleRef"]);
    let path = FieldPath::new("roleRef");
    check::supported(
        errors,
        &path.child("apiGroup"),
        text(role, &["apiGroup"]),
        &[GROUP],
    );
    let kinds: &[&str] = if namespaced {
        &["Role", "ClusterRole"]
    } else {
        &["ClusterRole"]
    };
    check::supported(errors, &path.child("kind"), text(role, &["kind"]), kinds);
    let name = check::required(errors, role, &path, "name");
    check::report(
        errors,
        &path.child("name"),
        name,
        names::path_segment(name, false),
    );
    let subjects = FieldPath::new("subjects");
    for (index, subject) in list(new, &["subjects"]).iter().enumerate() {
        validate_subject(subject, namespaced, &subjects.index(index), errors);
    }
    if let Some(old) = old
        && !same(role, at(old, &["roleRef"]))
    {
        let fields = [
            printed::words("APIGroup", "apiGroup"),
            printed::words("Kind", "kind"),
            printed::words("Name", "name"),
        ];
        let value = printed::structure(role, &fields);
        let kind = FieldErrorKind::Invalid;
        errors.push(printed::error(kind, &path, &value, "cannot change roleRef"));
    }
}

fn validate_subject(subject: &Value, namespaced: bool, path: &FieldPath<'_>, errors: &mut Errors) {
    let name = check::required(errors, subject, path, "name");
    let group = text(subject, &["apiGroup"]);
    let kind = text(subject, &["kind"]);
    match kind {
        "ServiceAccount" => {
            if !name.is_empty() {
                check::subdomain(errors, &path.child("name"), name);
            }
            check::supported(errors, &path.child("apiGroup"), group, &[""]);
            if !namespaced {
                check::required(errors, subject, path, "namespace");
            }
        }
        "User" | "Group" => {
            check::supported(errors, &path.child("apiGroup"), group, &[GROUP]);
        }
        _ => {
            let kinds = ["ServiceAccount", "User", "Group"];
            check::supported(errors, &path.child("kind"), kind, &kinds);
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
            .map(|subject| match kind {
                "ServiceAccount" => format!(
                    "{}/{}",
                    text(subject, &["namespace"]),
                    text(subject, &["name"])
                ),
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
