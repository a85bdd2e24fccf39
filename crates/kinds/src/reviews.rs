//! The `authentication.k8s.io` and `authorization.k8s.io` groups: questions to the server, which are
//! answered and never stored.

use k8s_openapi::api::authentication::v1::{SelfSubjectReview, TokenReview};
use k8s_openapi::api::authorization::v1::{
    LocalSubjectAccessReview, SelfSubjectAccessReview, SelfSubjectRulesReview, SubjectAccessReview,
};

use bellwether_schema::{FieldError, FieldErrorKind, FieldPath};
use serde_json::Value;

use crate::check::Errors;
use crate::resource::CREATE;
use crate::value::{at, has, list, text};
use crate::{Resource, printed};

const AUTHENTICATION: &str = "authentication.k8s.io";
const AUTHORIZATION: &str = "authorization.k8s.io";

pub(crate) const TOKEN_REVIEW: Resource = Resource {
    verbs: CREATE,
    ..Resource::cluster::<TokenReview>(AUTHENTICATION, "v1", "TokenReview", "tokenreviews")
};

pub(crate) const SELF_SUBJECT_REVIEW: Resource = Resource {
    verbs: CREATE,
    ..Resource::cluster::<SelfSubjectReview>(
        AUTHENTICATION,
        "v1",
        "SelfSubjectReview",
        "selfsubjectreviews",
    )
};

pub(crate) const SUBJECT_ACCESS_REVIEW: Resource = Resource {
    verbs: CREATE,
    validate: |new, _, errors| validate_access(new, true, errors),
    ..Resource::cluster::<SubjectAccessReview>(
        AUTHORIZATION,
        "v1",
        "SubjectAccessReview",
        "subjectaccessreviews",
    )
};

pub(crate) const LOCAL_SUBJECT_ACCESS_REVIEW: Resource = Resource {
    verbs: CREATE,
    validate: validate_local,
    ..Resource::namespaced::<LocalSubjectAccessReview>(
        AUTHORIZATION,
        "v1",
        "LocalSubjectAccessReview",
        "localsubjectaccessreviews",
    )
};

pub(crate) const SELF_SUBJECT_ACCESS_REVIEW: Resource = Resource {
    verbs: CREATE,
    validate: |new, _, errors| validate_access(new, false, errors),
    ..Resource::cluster::<SelfSubjectAccessReview>(
        AUTHORIZATION,
        "v1",
        "SelfSubjectAccessReview",
        "selfsubjectaccessreviews",
    )
};

pub(crate) const SELF_SUBJECT_RULES_REVIEW: Resource = Resource {
    verbs: CREATE,
    ..Resource::cluster::<SelfSubjectRulesReview>(
        AUTHORIZATION,
        "v1",
        "SelfSubjectRulesReview",
        "selfsubjectrulesreviews",
    )
};

/// Checks a question about access; `about_somebody` if it has to say about whom.
fn validate_access(new: &Value, about_somebody: bool, errors: &mut Errors) {
    validate_spec(at(new, &["spec"]), about_somebody, errors);
    if has_metadata(new, &["managedFields"]) {
        let path = FieldPath::new("metadata");
        let value = at(new, &["metadata"]).clone();
        errors.push(FieldError::invalid(&path, value, "must be empty"));
    }
}

/// Checks a question about access in one namespace.
fn validate_local(new: &Value, _old: Option<&Value>, errors: &mut Errors) {
    let spec = at(new, &["spec"]);
    validate_spec(spec, true, errors);
    if has_metadata(new, &["managedFields", "namespace"]) {
        let path = FieldPath::new("metadata");
        let value = at(new, &["metadata"]).clone();
        errors.push(FieldError::invalid(
            &path,
            value,
            "must be empty except for namespace",
        ));
    }
    let namespace = text(spec, &["resourceAttributes", "namespace"]);
    if has(spec, &["resourceAttributes"]) && namespace != text(new, &["metadata", "namespace"]) {
        let path = FieldPath::new("spec.resourceAttributes.namespace");
        let detail = "must match metadata.namespace";
        errors.push(FieldError::invalid(&path, namespace, detail));
    }
    if has(spec, &["nonResourceAttributes"]) {
        let path = FieldPath::new("spec.nonResourceAttributes");
        let value = at(spec, &["nonResourceAttributes"]);
        errors.push(non_resource(
            &path,
            value,
            "disallowed on this kind of request",
        ));
    }
}

fn has_metadata(new: &Value, allowed: &[&str]) -> bool {
    let fields = at(new, &["metadata"]).as_object().into_iter().flatten();
    fields
        .into_iter()
        .any(|(name, _)| !allowed.contains(&name.as_str()))
}

fn validate_spec(spec: &Value, about_somebody: bool, errors: &mut Errors) {
    let path = FieldPath::new("spec");
    let other = at(spec, &["nonResourceAttributes"]);
    match (has(spec, &["resourceAttributes"]), !other.is_null()) {
        (true, true) => {
            let detail = "cannot be specified in combination with resourceAttributes";
            let path = path.child("nonResourceAttributes");
            errors.push(non_resource(&path, other, detail));
        }
        (false, false) => {
            let detail =
                "exactly one of nonResourceAttributes or resourceAttributes must be specified";
            let path = path.child("resourceAttributes");
            errors.push(FieldError::invalid(&path, Value::Null, detail));
        }
        _ => {}
    }
    let nobody = text(spec, &["user"]).is_empty() && list(spec, &["groups"]).is_empty();
    if about_somebody && nobody {
        let detail = "at least one of user or group must be specified";
        errors.push(FieldError::invalid(&path.child("user"), "", detail));
    }
}

fn non_resource(path: &FieldPath<'_>, value: &Value, detail: &str) -> FieldError {
    let fields = [
        printed::words("Path", "path"),
        printed::words("Verb", "verb"),
    ];
    let value = printed::structure(value, &fields);
    printed::error(FieldErrorKind::Invalid, path, &value, detail)
}
