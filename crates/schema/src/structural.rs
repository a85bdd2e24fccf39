//! Is a schema structural? Every value it restricts has a known type outside of logical junctors, so
//! that pruning and defaulting have a definite meaning.
//!
//! The rules and their texts are those of `k8s.io/apiextensions-apiserver: pkg/apiserver/schema`.

use crate::document::{Additional, Document, Items};
use crate::field::{FieldError, FieldPath};
use crate::pattern;

/// Where in an object the value of a schema is.
#[derive(Clone, Copy, PartialEq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Why the schema is not structural, sorted by text; empty if it is.
pub(crate) fn check(document: &Document, path: &FieldPath<'_>) -> Vec<FieldError> {
    let mut errors = Vec::new();
    check_invariants(document, Level::Root, path, &mut errors);
    check_restrictions_completeness(document, document, path, path, &mut errors);
    errors.sort_by_cached_key(ToString::to_string);
    errors
}

/// Why the schema cannot even be looked at as a structural one.
pub(crate) fn unsupported(document: &Document) -> Option<String> {
    let keywords = [
        ("id", !document.id.is_empty()),
        ("schema", !document.schema.is_empty()),
        (
            "$ref",
            document
                .reference
                .as_ref()
                .is_some_and(|reference| !reference.is_empty()),
        ),
        ("patternProperties", !document.pattern_properties.is_empty()),
        ("dependencies", !document.dependencies.is_empty()),
        ("additionalItems", document.additional_items.is_some()),
        ("definitions", !document.definitions.is_empty()),
    ];
    if let Some((keyword, _)) = keywords.iter().find(|(_, used)| *used) {
        return Some(format!("OpenAPIV3Schema '{keyword}' is not supported"));
    }
    let junctors = document.not.iter().map(AsRef::as_ref);
    let mut junctors = junctors
        .chain(&document.all_of)
        .chain(&document.any_of)
        .chain(&document.one_of);
    if let Some(problem) = junctors.find_map(unsupported) {
        return Some(problem);
    }
    if document.preserve_unknown_fields == Some(false) {
        let name = "x-kubernetes-preserve-unknown-fields";
        return Some(format!(
            "internal error: '{name}' must be true or undefined"
        ));
    }
    if matches!(&document.items, Some(Items::Positions(positions)) if !positions.is_empty()) {
        return Some("OpenAPIV3Schema 'items' must be a schema, but is an array".to_owned());
    }
    let items = document.item_schema().into_iter();
    let mut children = items
        .chain(document.properties.values())
        .chain(document.additional_schema());
    children.find_map(unsupported)
}

// Recursion is as deep as the document, whose parser has bounded it.
fn check_invariants(
    document: &Document,
    level: Level,
    path: &FieldPath<'_>,
    errors: &mut Vec<FieldError>,
) {
    let items_path = path.child("items");
    if document.kind == "array" && document.item_schema().is_none() {
        errors.push(FieldError::required(&items_path, "must be specified"));
    }
    if let Some(items) = document.item_schema() {
        check_invariants(items, Level::Item, &items_path, errors);
    }
    let properties_path = path.child("properties");
    for (name, property) in &document.properties {
        check_invariants(property, Level::Field, &properties_path.key(name), errors);
    }
    if document.additional_properties.is_some() {
        let path = path.child("additionalProperties");
        if level == Level::Root {
            errors.push(FieldError::forbidden(&path, "must not be used at the root"));
        }
        if let Some(additional) = document.additional_schema() {
            check_invariants(additional, Level::Field, &path, errors);
        }
    }
    check_extensions(document, path, errors);
    let skip_any_of = is_int_or_string(&document.any_of);
    let skip_first = document
        .all_of
        .first()
        .is_some_and(|first| is_int_or_string(&first.any_of));
    check_restrictions(document, skip_any_of, skip_first, path, errors);
    check_type(document, level, path, errors);
    check_resource(document, level, path, errors);
}

/// The one place where a type may be in a junctor.
fn is_int_or_string(any_of: &[Document]) -> bool {
    let only = |kind: &str| Document {
        kind: kind.to_owned(),
        ..Document::default()
    };
    matches!(any_of, [first, second] if *first == only("integer") && *second == only("string"))
}

fn check_extensions(document: &Document, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    let detail = "must be false if x-kubernetes-int-or-string is true";
    if !document.int_or_string {
        return;
    }
    if document.preserve_unknown_fields == Some(true) {
        let path = path.child("x-kubernetes-preserve-unknown-fields");
        errors.push(FieldError::invalid(&path, true, detail));
    }
    if document.embedded_resource {
        let path = path.child("x-kubernetes-embedded-resource");
        errors.push(FieldError::invalid(&path, true, detail));
    }
}

fn check_type(
    document: &Document,
    level: Level,
    path: &FieldPath<'_>,
    errors: &mut Vec<FieldError>,
) {
    let type_path = path.child("type");
    let kind = document.kind.as_str();
    let preserves = document.preserve_unknown_fields == Some(true);
    if document.embedded_resource && kind != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(if kind.is_empty() {
            FieldError::required(&type_path, detail)
        } else {
            FieldError::invalid(&type_path, kind, detail)
        });
    } else if kind.is_empty() && !document.int_or_string && !preserves {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(FieldError::required(&type_path, detail));
    }
    if document.embedded_resource && document.additional_properties.is_some() {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(FieldError::forbidden(
            &path.child("additionalProperties"),
            detail,
        ));
    }
    if level == Level::Root && !kind.is_empty() && kind != "object" {
        errors.push(FieldError::invalid(
            &type_path,
            kind,
            "must be object at the root",
        ));
    }
}

/// `apiVersion`, `kind` and `metadata` of a resource are given; little can be said about them.
fn check_resource(
    document: &Document,
    level: Level,
    path: &FieldPath<'_>,
    errors: &mut Vec<FieldError>,
) {
    let is_resource = level == Level::Root || document.embedded_resource;
    let properties_path = path.child("properties");
    let mut check_kind = |name: &str, expected: &str| {
        let Some(property) = document.properties.get(name).filter(|_| is_resource) else {
            return;
        };
        if property.kind != expected {
            let path = properties_path.key(name);
            let detail = format!("must be {expected}");
            errors.push(FieldError::invalid(
                &path.child("type"),
                property.kind.as_str(),
                detail,
            ));
        }
    };
    check_kind("kind", "string");
    check_kind("apiVersion", "string");
    check_kind("metadata", "object");
    if let Some(metadata) = document
        .properties
        .get("metadata")
        .filter(|_| level == Level::Root)
        && !restricts_names_only(metadata)
    {
        let detail = "must not specify anything other than name and generateName, but metadata is \
            implicitly specified";
        errors.push(FieldError::forbidden(
            &properties_path.key("metadata"),
            detail,
        ));
    }
    let preserves = document.preserve_unknown_fields == Some(true);
    if document.embedded_resource && !preserves && document.properties.is_empty() {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
            x-kubernetes-preserve-unknown-fields";
        errors.push(FieldError::required(&properties_path, detail));
    }
}

fn restricts_names_only(metadata: &Document) -> bool {
    let names = metadata
        .properties
        .keys()
        .all(|name| name == "name" || name == "generateName");
    // Defaults are refused elsewhere; documentation that structural schemas do not have is ignored.
    let rest = Document {
        kind: String::new(),
        default: None,
        properties: std::collections::BTreeMap::new(),
        external_docs: None,
        example: None,
        ..metadata.clone()
    };
    names && rest == Document::default()
}

/// The restrictions of a schema, and those of its junctors.
fn check_restrictions(
    document: &Document,
    skip_any_of: bool,
    skip_any_of_in_first_all_of: bool,
    path: &FieldPath<'_>,
    errors: &mut Vec<FieldError>,
) {
    if !skip_any_of {
        let path = path.child("anyOf");
        for (index, nested) in document.any_of.iter().enumerate() {
            check_nested(nested, false, &path.index(index), errors);
        }
    }
    let all_of_path = path.child("allOf");
    for (index, nested) in document.all_of.iter().enumerate() {
        let skip = skip_any_of_in_first_all_of && index == 0;
        check_nested(nested, skip, &all_of_path.index(index), errors);
    }
    let one_of_path = path.child("oneOf");
    for (index, nested) in document.one_of.iter().enumerate() {
        check_nested(nested, false, &one_of_path.index(index), errors);
    }
    if let Some(not) = &document.not {
        check_nested(not, false, &path.child("not"), errors);
    }
    if !document.pattern.is_empty()
        && let Err(problem) = pattern::compile(&document.pattern)
    {
        let detail = format!("must be a valid regular expression, but isn't: {problem}");
        let path = path.child("pattern");
        errors.push(FieldError::invalid(
            &path,
            document.pattern.as_str(),
            detail,
        ));
    }
}

/// A schema inside a junctor restricts values, but has no structure of its own.
fn check_nested(
    document: &Document,
    skip_any_of: bool,
    path: &FieldPath<'_>,
    errors: &mut Vec<FieldError>,
) {
    check_restrictions(document, skip_any_of, false, path, errors);
    if let Some(items) = document.item_schema() {
        check_nested(items, false, &path.child("items"), errors);
    }
    let properties_path = path.child("properties");
    for (name, property) in &document.properties {
        check_nested(property, false, &properties_path.key(name), errors);
    }
    for (keyword, wanted, used) in structure_of(document) {
        if used {
            let detail = format!("must be {wanted} to be structural");
            errors.push(FieldError::forbidden(&path.child(keyword), detail));
        }
    }
    if document.properties.contains_key("metadata") {
        let detail = "must not be specified in a nested context";
        errors.push(FieldError::forbidden(
            &properties_path.key("metadata"),
            detail,
        ));
    }
}

/// The keywords that say something of structure: what a junctor would have to do with each, and
/// whether it is used.
fn structure_of(document: &Document) -> [(&'static str, &'static str, bool); 13] {
    let allows_more = !matches!(
        document.additional_properties,
        None | Some(Additional::Allowed(false))
    );
    [
        ("type", "empty", !document.kind.is_empty()),
        ("additionalProperties", "undefined", allows_more),
        ("default", "undefined", document.default.is_some()),
        ("title", "empty", !document.title.is_empty()),
        ("description", "empty", !document.description.is_empty()),
        ("nullable", "false", document.nullable),
        (
            "x-kubernetes-preserve-unknown-fields",
            "false",
            document.preserve_unknown_fields == Some(true),
        ),
        (
            "x-kubernetes-embedded-resource",
            "false",
            document.embedded_resource,
        ),
        (
            "x-kubernetes-int-or-string",
            "false",
            document.int_or_string,
        ),
        (
            "x-kubernetes-list-map-keys",
            "empty",
            !document.list_map_keys.is_empty(),
        ),
        (
            "x-kubernetes-list-type",
            "undefined",
            document.list_type.is_some(),
        ),
        (
            "x-kubernetes-map-type",
            "undefined",
            document.map_type.is_some(),
        ),
        (
            "x-kubernetes-validations",
            "empty",
            !document.rules.is_empty(),
        ),
    ]
}

/// Everything that a junctor mentions is also specified outside of it.
fn check_restrictions_completeness(
    restrictions: &Document,
    structure: &Document,
    structure_path: &FieldPath<'_>,
    path: &FieldPath<'_>,
    errors: &mut Vec<FieldError>,
) {
    let mut check = |nested: &Document, path: &FieldPath<'_>| {
        check_nested_completeness(nested, structure, structure_path, path, errors);
    };
    if let Some(not) = &restrictions.not {
        check(not, &path.child("not"));
    }
    let junctors = [
        ("allOf", &restrictions.all_of),
        ("anyOf", &restrictions.any_of),
        ("oneOf", &restrictions.one_of),
    ];
    for (name, nested) in junctors {
        let path = path.child(name);
        for (index, nested) in nested.iter().enumerate() {
            check(nested, &path.index(index));
        }
    }
}

fn check_nested_completeness(
    nested: &Document,
    structure: &Document,
    structure_path: &FieldPath<'_>,
    path: &FieldPath<'_>,
    errors: &mut Vec<FieldError>,
) {
    check_restrictions_completeness(nested, structure, structure_path, path, errors);
    let missing = |at: &FieldPath<'_>, because: &FieldPath<'_>| {
        FieldError::required(at, format!("because it is defined in {because}"))
    };
    if let Some(items) = nested.item_schema() {
        let (at, path) = (structure_path.child("items"), path.child("items"));
        match structure.item_schema() {
            Some(structure) => check_nested_completeness(items, structure, &at, &path, errors),
            None => errors.push(missing(&at, &path)),
        }
    }
    let (at, path) = (structure_path.child("properties"), path.child("properties"));
    for (name, property) in &nested.properties {
        let (at, path) = (at.key(name), path.key(name));
        match structure.properties.get(name) {
            Some(structure) => check_nested_completeness(property, structure, &at, &path, errors),
            None => errors.push(missing(&at, &path)),
        }
    }
}

#[cfg(test)]
mod tests;
