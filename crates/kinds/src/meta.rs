//! Checks of `metadata`, which are the same for built-in kinds and custom resources.

use std::collections::HashSet;

use bellwether_schema::{FieldError, FieldErrorKind, FieldErrors, FieldPath};
use serde_json::Value;

use crate::value::{at, entries, flag, int, list, same, text, texts};
use crate::{NameRule, names, printed, selector};

/// What all annotations of an object may have together, in bytes.
const ANNOTATIONS_SIZE: usize = 256 * 1024;
/// The longest field manager, in bytes.
const MANAGER_LENGTH: usize = 128;
/// The longest subresource in `managedFields`, in bytes.
const SUBRESOURCE_LENGTH: usize = 256;

/// The message about a field that may not change.
pub const IMMUTABLE: &str = "field is immutable";

/// How `metadata` is checked.
#[derive(Debug, Clone, Copy)]
pub struct MetaRules {
    /// Whether objects live in a namespace.
    pub namespaced: bool,
    /// Which names are valid.
    pub names: NameRule,
    /// Whether a finalizer without a domain has to be one of the server's own.
    pub known_finalizers: bool,
}

/// Checks `metadata` of an object that is to be written. A `generateName` has become a name before.
pub fn validate(meta: &Value, rules: MetaRules, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let generate = text(meta, &["generateName"]);
    if !generate.is_empty() {
        for message in names::object_name(rules.names, generate, true) {
            errors.push(FieldError::invalid(
                &path.child("generateName"),
                generate,
                message,
            ));
        }
    }
    let name = text(meta, &["name"]);
    if name.is_empty() {
        let detail = "name or generateName is required";
        errors.push(FieldError::required(&path.child("name"), detail));
    } else {
        for message in names::object_name(rules.names, name, false) {
            errors.push(FieldError::invalid(&path.child("name"), name, message));
        }
    }
    validate_namespace(text(meta, &["namespace"]), rules.namespaced, path, errors);
    validate_common(meta, path, errors);
    validate_finalizers(
        meta,
        rules.known_finalizers,
        &path.child("finalizers"),
        errors,
    );
}

fn validate_namespace(
    namespace: &str,
    namespaced: bool,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let path = path.child("namespace");
    match (namespaced, namespace) {
        (true, "") => errors.push(FieldError::required(&path, "")),
        (true, _) => {
            for message in names::label(namespace) {
                errors.push(FieldError::invalid(&path, namespace, message));
            }
        }
        (false, "") => {}
        (false, _) => errors.push(FieldError::forbidden(&path, "not allowed on this type")),
    }
}

/// Checks what is the same at creation and update.
fn validate_common(meta: &Value, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let generation = int(meta, &["generation"]);
    if generation < 0 {
        errors.push(not_negative(&path.child("generation"), generation));
    }
    selector::validate_labels(at(meta, &["labels"]), &path.child("labels"), errors);
    validate_annotations(
        at(meta, &["annotations"]),
        &path.child("annotations"),
        errors,
    );
    validate_owners(meta, &path.child("ownerReferences"), errors);
    validate_managed_fields(meta, &path.child("managedFields"), errors);
}

/// Checks a map of annotations.
pub fn validate_annotations(annotations: &Value, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let mut size = 0;
    for (key, value) in entries(annotations, &[]) {
        size += key.len() + value.as_str().map_or(0, str::len);
        // Only annotations may have capital letters in the domain.
        for message in names::qualified_name(&key.to_lowercase()) {
            errors.push(FieldError::invalid(path, key.as_str(), message));
        }
    }
    if size > ANNOTATIONS_SIZE {
        errors.push(FieldError::too_long(path, ANNOTATIONS_SIZE as u64));
    }
}

fn validate_owners(meta: &Value, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let mut controller: Option<String> = None;
    for owner in list(meta, &["ownerReferences"]) {
        let api_version = text(owner, &["apiVersion"]);
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        let kind = text(owner, &["kind"]);
        if version.is_empty() {
            let detail = "version must not be empty";
            errors.push(FieldError::invalid(
                &path.child("apiVersion"),
                api_version,
                detail,
            ));
        }
        for field in ["kind", "name", "uid"] {
            if text(owner, &[field]).is_empty() {
                errors.push(FieldError::invalid(
                    &path.child(field),
                    "",
                    "must not be empty",
                ));
            }
        }
        if (group, version, kind) == ("", "v1", "Event") {
            let detail = "/v1, Kind=Event is disallowed from being an owner";
            let kind = FieldErrorKind::Invalid;
            errors.push(printed::error(kind, path, &printed_owner(owner), detail));
        }
        if flag(owner, &["controller"]) {
            let this = format!("{kind}/{}", text(owner, &["name"]));
            match &controller {
                None => controller = Some(this),
                Some(first) => {
                    errors.push_with(|| {
                        let detail = format!(
                            "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
                        );
                        let value = printed_owners(list(meta, &["ownerReferences"]));
                        printed::error(FieldErrorKind::Invalid, path, &value, &detail)
                    });
                }
            }
        }
    }
}

fn printed_owners(owners: &[Value]) -> String {
    let owners: Vec<_> = owners.iter().map(printed_owner).collect();
    format!("[{}]", owners.join(","))
}

fn printed_owner(owner: &Value) -> String {
    let mut fields = vec![
        printed::words("apiVersion", "apiVersion"),
        printed::words("kind", "kind"),
        printed::words("name", "name"),
        printed::words("uid", "uid"),
    ];
    for flag in ["controller", "blockOwnerDeletion"] {
        if at(owner, &[flag]).is_boolean() {
            fields.push(printed::pointer(flag, flag));
        }
    }
    printed::structure(owner, &fields)
}

fn validate_finalizers(meta: &Value, known: bool, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    let finalizers = list(meta, &["finalizers"]);
    let has = |name: &str| finalizers.iter().any(|finalizer| finalizer == name);
    for finalizer in texts(meta, &["finalizers"]) {
        for message in names::qualified_name(finalizer) {
            errors.push(FieldError::invalid(path, finalizer, message));
        }
    }
    if has("orphan") && has("foregroundDeletion") {
        let detail = "finalizer orphan and foregroundDeletion cannot be both set";
        errors.push(FieldError::invalid(
            path,
            at(meta, &["finalizers"]).clone(),
            detail,
        ));
    }
    if known {
        report_unknown_finalizers(meta, path, errors);
    }
}

/// Checks that finalizers without a domain are the server's own.
pub fn validate_known_finalizers(meta: &Value, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    report_unknown_finalizers(meta, &path.child("finalizers"), errors);
}

fn report_unknown_finalizers(meta: &Value, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    for (index, finalizer) in texts(meta, &["finalizers"]).enumerate() {
        let standard = ["kubernetes", "orphan", "foregroundDeletion"].contains(&finalizer);
        if !finalizer.contains('/') && !standard {
            let detail = "name is neither a standard finalizer name nor is it fully qualified";
            errors.push(FieldError::invalid(&path.index(index), finalizer, detail));
        }
    }
}

fn validate_managed_fields(meta: &Value, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    for (index, entry) in list(meta, &["managedFields"]).iter().enumerate() {
        let path = path.index(index);
        let operation = text(entry, &["operation"]);
        if !matches!(operation, "Apply" | "Update") {
            let detail = "must be `Apply` or `Update`";
            errors.push(FieldError::invalid(
                &path.child("operation"),
                operation,
                detail,
            ));
        }
        let kind = text(entry, &["fieldsType"]);
        if !matches!(kind, "" | "FieldsV1") {
            let detail = "must be `FieldsV1`";
            errors.push(FieldError::invalid(&path.child("fieldsType"), kind, detail));
        }
        validate_manager(text(entry, &["manager"]), &path.child("manager"), errors);
        if text(entry, &["subresource"]).len() > SUBRESOURCE_LENGTH {
            let limit = SUBRESOURCE_LENGTH as u64;
            errors.push(FieldError::too_long(&path.child("subresource"), limit));
        }
    }
}

/// Checks the name of a field manager.
pub fn validate_manager(manager: &str, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if manager.len() > MANAGER_LENGTH {
        errors.push(FieldError::too_long(path, MANAGER_LENGTH as u64));
    }
    for (position, character) in manager.char_indices() {
        if character.is_control() || (character.is_whitespace() && character != ' ') {
            let detail = format!(
                "invalid character U+{:04X} (at position {position})",
                character as u32
            );
            errors.push(FieldError::invalid(path, manager, detail));
        }
    }
}

/// Checks that an update leaves alone what only the server may change.
pub fn validate_update(new: &Value, old: &Value, path: &FieldPath<'_>, errors: &mut FieldErrors) {
    if at(old, &["deletionTimestamp"]).is_string() {
        validate_no_new_finalizers(new, old, &path.child("finalizers"), errors);
    }
    if text(new, &["resourceVersion"]).is_empty() {
        let detail = "must be specified for an update";
        errors.push(FieldError::invalid(
            &path.child("resourceVersion"),
            "",
            detail,
        ));
    }
    let generation = int(new, &["generation"]);
    if generation < int(old, &["generation"]) {
        let detail = "must not be decremented";
        errors.push(FieldError::invalid(
            &path.child("generation"),
            generation,
            detail,
        ));
    }
    let fixed = [
        "name",
        "namespace",
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
    ];
    for field in fixed {
        let value = at(new, &[field]);
        if !same(value, at(old, &[field])) {
            errors.push(FieldError::invalid(
                &path.child(field),
                value.clone(),
                IMMUTABLE,
            ));
        }
    }
    validate_common(new, path, errors);
}

fn validate_no_new_finalizers(
    new: &Value,
    old: &Value,
    path: &FieldPath<'_>,
    errors: &mut FieldErrors,
) {
    let before: HashSet<&str> = texts(old, &["finalizers"]).collect();
    let mut extra: Vec<_> = texts(new, &["finalizers"])
        .filter(|finalizer| !before.contains(finalizer))
        .map(|finalizer| format!("{finalizer:?}"))
        .collect();
    extra.sort();
    extra.dedup();
    if !extra.is_empty() {
        let detail = format!(
            "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
            extra.join(", ")
        );
        errors.push(FieldError::forbidden(path, detail));
    }
}

/// The error about a number below zero.
pub(crate) fn not_negative(path: &FieldPath<'_>, value: i64) -> FieldError {
    FieldError::invalid(path, value, "must be greater than or equal to 0")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const RULES: MetaRules = MetaRules {
        namespaced: true,
        names: NameRule::Subdomain,
        known_finalizers: true,
    };

    fn messages(errors: &FieldErrors) -> Vec<String> {
        errors.iter().map(ToString::to_string).collect()
    }

    #[track_caller]
    fn check(meta: &Value, expected: &[&str]) {
        let mut errors = FieldErrors::new();
        validate(meta, RULES, &FieldPath::new("metadata"), &mut errors);
        let found = messages(&errors);
        assert_eq!(found.len(), expected.len(), "{found:?}");
        for (found, expected) in found.iter().zip(expected) {
            assert!(found.starts_with(expected), "{found}");
        }
    }

    #[test]
    fn metadata_is_checked_at_creation() {
        check(&json!({"name": "a", "namespace": "b"}), &[]);
        check(
            &json!({"namespace": "b"}),
            &["metadata.name: Required value: name or generateName is required"],
        );
        check(
            &json!({"name": "a"}),
            &["metadata.namespace: Required value"],
        );
        check(
            &json!({"name": "A", "namespace": "b.c"}),
            &[
                "metadata.name: Invalid value: \"A\": a lowercase RFC 1123 subdomain",
                "metadata.namespace: Invalid value: \"b.c\": must not contain dots",
            ],
        );
        check(
            &json!({"name": "a", "namespace": "b", "labels": {"x y": "z"}, "annotations": {"A.b/c": "", "d/": ""}}),
            &[
                "metadata.labels: Invalid value: \"x y\": name part must consist",
                "metadata.annotations: Invalid value: \"d/\": name part must be non-empty",
                "metadata.annotations: Invalid value: \"d/\": name part must consist",
            ],
        );
        check(
            &json!({"name": "a", "namespace": "b", "finalizers": ["mine", "orphan", "foregroundDeletion", "a.b/c"]}),
            &[
                "metadata.finalizers: Invalid value: [\"mine\",",
                "metadata.finalizers[0]: Invalid value: \"mine\": name is neither",
            ],
        );
        check(
            &json!({"name": "a", "namespace": "b", "ownerReferences": [
                {"apiVersion": "", "kind": "", "name": "", "uid": ""}]}),
            &[
                "metadata.ownerReferences.apiVersion: Invalid value: \"\": version must not be empty",
                "metadata.ownerReferences.kind: Invalid value: \"\": must not be empty",
                "metadata.ownerReferences.name: Invalid value: \"\": must not be empty",
                "metadata.ownerReferences.uid: Invalid value: \"\": must not be empty",
            ],
        );
    }

    #[test]
    fn there_is_one_controller_at_most() {
        let owner = |name: &str| json!({"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name, "controller": true});
        check(
            &json!({"name": "a", "namespace": "b", "ownerReferences": [owner("x"), owner("y")]}),
            &["metadata.ownerReferences: Invalid value: [{"],
        );
    }

    #[test]
    fn annotations_have_a_limit_in_total() {
        let text = "x".repeat(ANNOTATIONS_SIZE);
        check(
            &json!({"name": "a", "namespace": "b", "annotations": {"k": text}}),
            &["metadata.annotations: Too long: may not be more than 262144 bytes"],
        );
    }

    #[test]
    fn an_update_leaves_the_identity_alone() {
        let old = json!({"name": "a", "uid": "1", "deletionTimestamp": "2030-01-01T00:00:00Z", "finalizers": ["x.y/z"]});
        let new = json!({"name": "b", "uid": "2", "finalizers": ["x.y/z", "x.y/new"], "resourceVersion": ""});
        let mut errors = FieldErrors::new();
        validate_update(&new, &old, &FieldPath::new("metadata"), &mut errors);
        assert_eq!(
            messages(&errors),
            [
                "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, found new finalizers []string{\"x.y/new\"}",
                "metadata.resourceVersion: Invalid value: \"\": must be specified for an update",
                "metadata.name: Invalid value: \"b\": field is immutable",
                "metadata.uid: Invalid value: \"2\": field is immutable",
                "metadata.deletionTimestamp: Invalid value: null: field is immutable",
            ]
        );
    }
}
