//! May a CustomResourceDefinition have this schema? Everything that is checked when one is created.
//!
//! [`check`] answers with the field errors of kube-apiserver: unsupported keywords, structure
//! (types everywhere), defaults that are valid and pruned, and combinations of extensions.

mod defaults;
mod formats;
mod rule;

use crate::document::{Additional, Document, Items};
use crate::embedded::MetadataCheck;
use crate::field::{FieldError, FieldPath};
use crate::model::Schema;
use crate::rules::cost::{self, Total, Typed};
use crate::{printed, rules, structural};

pub use formats::unrecognized_formats;

/// What is wrong with a schema.
///
/// `path` is that of the object that holds `openAPIV3Schema`. Kubernetes keeps a schema that is the
/// same for all versions at `spec.validation`, and others at `spec.versions[n].schema`.
pub fn check(
    document: &Document,
    has_status: bool,
    check_metadata: MetadataCheck,
    path: &FieldPath<'_>,
) -> Vec<FieldError> {
    let mut errors = Vec::new();
    if has_status {
        check_root_keywords(document, path, &mut errors);
    }
    if document.nullable {
        let path = path.child("openAPIV3Schema.nullable");
        errors.push(FieldError::forbidden(
            &path,
            "nullable cannot be true at the root",
        ));
    }
    let path = path.child("openAPIV3Schema");
    let unsupported = structural::unsupported(document);
    let schema = document.to_schema();
    let structure = match unsupported {
        Some(_) => None,
        None => Some(check_structure(document, &schema, check_metadata, &path)),
    };
    let is_sound = structure.as_ref().is_some_and(Vec::is_empty);
    errors.extend(structure.unwrap_or_default());
    // Rules are looked at only where their types are known for sure.
    let decl = if is_sound {
        rules::declare(&schema, true)
    } else {
        None
    };
    let around = Surroundings {
        typed: is_sound.then(|| Typed::root(decl.as_ref())),
        ..Surroundings::default()
    };
    let mut walk = Walk::default();
    walk.document(document, &path, &around, true);
    errors.append(&mut walk.errors);
    errors.append(&mut walk.rule_errors);
    if let (true, Some(problem)) = (errors.is_empty(), unsupported) {
        errors.push(FieldError::invalid(&path, "", problem));
    }
    errors.extend(walk.total.errors(&path));
    errors
}

fn check_structure(
    document: &Document,
    schema: &Schema,
    check_metadata: MetadataCheck,
    path: &FieldPath<'_>,
) -> Vec<FieldError> {
    let errors = structural::check(document, path);
    if errors.is_empty() {
        defaults::check(schema, check_metadata, path)
    } else {
        errors
    }
}

/// With a status subresource, the schema of the status is used on its own; so that nothing is lost,
/// the root may not combine it with anything.
fn check_root_keywords(document: &Document, path: &FieldPath<'_>, errors: &mut Vec<FieldError>) {
    const ALLOWED: &str = "[Description Type Format Title Maximum ExclusiveMaximum Minimum \
        ExclusiveMinimum MaxLength MinLength Pattern MaxItems MinItems UniqueItems MultipleOf \
        Required Items Properties ExternalDocs Example XPreserveUnknownFields XValidations]";
    let before_type =
        !document.id.is_empty() || !document.schema.is_empty() || document.reference.is_some();
    let after_type = document.nullable
        || document.default.is_some()
        || !document.enumeration.is_empty()
        || document.max_properties.is_some()
        || document.min_properties.is_some()
        || !document.all_of.is_empty()
        || !document.one_of.is_empty()
        || !document.any_of.is_empty()
        || document.not.is_some()
        || document.additional_properties.is_some()
        || !document.pattern_properties.is_empty()
        || !document.dependencies.is_empty()
        || document.additional_items.is_some()
        || !document.definitions.is_empty()
        || document.embedded_resource
        || document.int_or_string
        || !document.list_map_keys.is_empty()
        || document.list_type.is_some()
        || document.map_type.is_some();
    let wrong_type = !document.kind.is_empty() && document.kind != "object";
    if !before_type && wrong_type {
        let detail = "only \"object\" is allowed as the type at the root of the schema if the status \
            subresource is enabled";
        let path = path.child("openAPIV3Schema.type");
        errors.push(FieldError::invalid(&path, document.kind.as_str(), detail));
    } else if before_type || after_type {
        let detail = format!(
            "only {ALLOWED} fields are allowed at the root of the schema if the status subresource is \
             enabled"
        );
        let printed = printed::document(document);
        errors.push(FieldError::invalid_printed(
            &path.child("openAPIV3Schema"),
            &printed,
            &detail,
        ));
    }
}

/// What a schema inherits from those around it.
#[derive(Debug, Clone, Default)]
struct Surroundings<'a> {
    /// Why there may be no default, if so.
    no_defaults: Option<String>,
    /// Whether the schema is about `apiVersion`, `kind` or `metadata` of a resource.
    inside_meta: bool,
    /// The path of the outermost list around whose items have no counterpart in an old object.
    uncorrelatable: Option<String>,
    /// What rules can know; `None` where they are not looked at.
    typed: Option<Typed<'a>>,
}

#[derive(Default)]
struct Walk {
    errors: Vec<FieldError>,
    /// Errors of compiling rules come after all others.
    rule_errors: Vec<FieldError>,
    total: Total,
}

// Recursion is as deep as the document, whose parser has bounded it.
impl Walk {
    fn document(
        &mut self,
        document: &Document,
        path: &FieldPath<'_>,
        around: &Surroundings<'_>,
        is_root: bool,
    ) {
        let errors_before = self.errors.len();
        self.keywords(document, path, around);
        if document.unique_items {
            let detail =
                "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.forbid(&path.child("uniqueItems"), detail);
        }
        self.additional(document, path, around);
        self.properties(document, path, around, is_root);
        self.junctors(document, path, around);
        self.items(document, path, around);
        if document.preserve_unknown_fields == Some(false) {
            let path = path.child("x-kubernetes-preserve-unknown-fields");
            self.errors.push(FieldError::invalid(
                &path,
                false,
                "must be true or undefined",
            ));
        }
        self.map_type(document, path);
        self.list_type(document, path);
        self.list_map(document, path);
        self.list_items(document, path);
        for (index, rule) in document.rules.iter().enumerate() {
            let path = path.child("x-kubernetes-validations");
            self.errors
                .extend(rule::check(rule, document, &path.index(index)));
        }
        // Compiling rules against a schema that is wrong gives errors that nobody understands.
        let is_sound = self.errors.len() == errors_before;
        if let (true, false, Some(typed)) = (is_sound, document.rules.is_empty(), around.typed) {
            let list = around.uncorrelatable.as_deref();
            let errors = cost::check(document, typed, list, path, &mut self.total);
            self.rule_errors.extend(errors);
        }
    }

    fn forbid(&mut self, path: &FieldPath<'_>, detail: &str) {
        self.errors.push(FieldError::forbidden(path, detail));
    }

    fn keywords(&mut self, document: &Document, path: &FieldPath<'_>, around: &Surroundings<'_>) {
        const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
        let kind = document.kind.as_str();
        if !kind.is_empty() && !TYPES.contains(&kind) {
            self.errors
                .push(FieldError::not_supported(&path.child("type"), kind, &TYPES));
        }
        if let (Some(_), Some(reason)) = (&document.default, &around.no_defaults) {
            self.forbid(&path.child("default"), &format!("must not be set {reason}"));
        }
        let unsupported = [
            ("id", !document.id.is_empty()),
            ("additionalItems", document.additional_items.is_some()),
            ("patternProperties", !document.pattern_properties.is_empty()),
            ("definitions", !document.definitions.is_empty()),
            ("dependencies", !document.dependencies.is_empty()),
            ("$ref", document.reference.is_some()),
        ];
        for (keyword, _) in unsupported.iter().filter(|(_, used)| *used) {
            self.forbid(&path.child(keyword), &format!("{keyword} is not supported"));
        }
        if kind == "null" {
            let detail = "type cannot be set to null, use nullable as an alternative";
            self.forbid(&path.child("type"), detail);
        }
        if matches!(&document.items, Some(Items::Positions(positions)) if !positions.is_empty()) {
            self.forbid(
                &path.child("items"),
                "items must be a schema object and not an array",
            );
        }
        if around.inside_meta && document.embedded_resource {
            let path = path.child("x-kubernetes-embedded-resource");
            self.forbid(&path, "must not be used inside of resource meta");
        }
    }

    fn additional(&mut self, document: &Document, path: &FieldPath<'_>, around: &Surroundings<'_>) {
        let Some(additional) = &document.additional_properties else {
            return;
        };
        let path = path.child("additionalProperties");
        if !document.properties.is_empty() && *additional != Additional::Allowed(true) {
            self.forbid(
                &path,
                "additionalProperties and properties are mutual exclusive",
            );
        }
        let Additional::Schema(schema) = additional else {
            return;
        };
        let mut inside = around.clone();
        inside.typed = around.typed.map(|typed| typed.element(document));
        if around.inside_meta {
            let reason = "inside additionalProperties applying to object metadata";
            inside.no_defaults = Some(reason.to_owned());
        }
        self.document(schema, &path, &inside, false);
    }

    fn properties(
        &mut self,
        document: &Document,
        path: &FieldPath<'_>,
        around: &Surroundings<'_>,
        is_root: bool,
    ) {
        let path = path.child("properties");
        for (name, property) in &document.properties {
            let is_meta = matches!(name.as_str(), "metadata" | "kind" | "apiVersion");
            let mut inside = around.clone();
            inside.typed = around.typed.map(|typed| typed.property(document, name));
            if is_meta && (is_root || document.embedded_resource) {
                inside.inside_meta = true;
                if is_root {
                    inside.no_defaults = Some(format!("in top-level {name}"));
                }
            }
            self.document(property, &path.key(name), &inside, false);
        }
    }

    fn junctors(&mut self, document: &Document, path: &FieldPath<'_>, around: &Surroundings<'_>) {
        let around = &Surroundings {
            typed: None,
            ..around.clone()
        };
        if let Some(not) = &document.not {
            self.document(not, &path.child("not"), around, false);
        }
        let junctors = [
            ("allOf", &document.all_of),
            ("oneOf", &document.one_of),
            ("anyOf", &document.any_of),
        ];
        for (name, nested) in junctors {
            let path = path.child(name);
            for (index, nested) in nested.iter().enumerate() {
                self.document(nested, &path.index(index), around, false);
            }
        }
        let path = path.child("definitions");
        for (name, definition) in &document.definitions {
            self.document(definition, &path.key(name), around, false);
        }
    }

    fn items(&mut self, document: &Document, path: &FieldPath<'_>, around: &Surroundings<'_>) {
        let mut around = around.clone();
        around.typed = around.typed.map(|typed| typed.element(document));
        if document.list_type.as_deref() != Some("map") {
            around
                .uncorrelatable
                .get_or_insert_with(|| path.to_string());
        }
        let path = path.child("items");
        match &document.items {
            Some(Items::Schema(items)) => self.document(items, &path, &around, false),
            Some(Items::Positions(positions)) => {
                for (index, position) in positions.iter().enumerate() {
                    self.document(position, &path.index(index), &around, false);
                }
            }
            None => {}
        }
    }

    /// Where an extension asks for a type, the schema has it.
    fn require_type(
        &mut self,
        document: &Document,
        path: &FieldPath<'_>,
        kind: &str,
        because: &str,
    ) {
        if document.kind == kind {
            return;
        }
        let detail = format!("must be {kind} if {because} is specified");
        let path = path.child("type");
        self.errors.push(if document.kind.is_empty() {
            FieldError::required(&path, detail)
        } else {
            FieldError::invalid(&path, document.kind.as_str(), detail)
        });
    }

    fn map_type(&mut self, document: &Document, path: &FieldPath<'_>) {
        let Some(map_type) = document.map_type.as_deref() else {
            return;
        };
        self.require_type(document, path, "object", "x-kubernetes-map-type");
        let allowed = ["atomic", "granular"];
        if !allowed.contains(&map_type) {
            let path = path.child("x-kubernetes-map-type");
            self.errors
                .push(FieldError::not_supported(&path, map_type, &allowed));
        }
    }

    fn list_type(&mut self, document: &Document, path: &FieldPath<'_>) {
        let list_type_path = path.child("x-kubernetes-list-type");
        if let Some(list_type) = document.list_type.as_deref() {
            self.require_type(document, path, "array", "x-kubernetes-list-type");
            if document.kind == "array" && list_type == "set" {
                self.set_items(document, path);
            }
            let allowed = ["atomic", "set", "map"];
            if !allowed.contains(&list_type) {
                self.errors.push(FieldError::not_supported(
                    &list_type_path,
                    list_type,
                    &allowed,
                ));
            }
        }
        if document.list_map_keys.is_empty() {
            return;
        }
        let detail = "must be map if x-kubernetes-list-map-keys is non-empty";
        match document.list_type.as_deref() {
            None => self
                .errors
                .push(FieldError::required(&list_type_path, detail)),
            Some("map") => {}
            Some(other) => self
                .errors
                .push(FieldError::invalid(&list_type_path, other, detail)),
        }
    }

    /// Items of a set are compared as a whole, so that nothing inside may be owned on its own.
    fn set_items(&mut self, document: &Document, path: &FieldPath<'_>) {
        let Some(items) = document.item_schema() else {
            return;
        };
        let keyword = match items.kind.as_str() {
            "array"
                if items
                    .list_type
                    .as_deref()
                    .is_some_and(|kind| kind != "atomic") =>
            {
                "x-kubernetes-list-type"
            }
            "object" if items.map_type.as_deref() != Some("atomic") => "x-kubernetes-map-type",
            _ => return,
        };
        // The list type is shown in both cases, as Kubernetes does.
        let shown = serde_json::Value::from(items.list_type.clone());
        let detail = "must be atomic as item of a list with x-kubernetes-list-type=set";
        let path = path.child("items");
        self.errors
            .push(FieldError::invalid(&path.child(keyword), shown, detail));
    }

    fn list_map(&mut self, document: &Document, path: &FieldPath<'_>) {
        if document.list_type.as_deref() != Some("map") {
            return;
        }
        let keys_path = path.child("x-kubernetes-list-map-keys");
        if document.list_map_keys.is_empty() {
            let detail = "must not be empty if x-kubernetes-list-type is map";
            self.errors.push(FieldError::required(&keys_path, detail));
        }
        let items_path = path.child("items");
        let items = match &document.items {
            None => {
                let detail = "must have a schema if x-kubernetes-list-type is map";
                self.errors.push(FieldError::required(&items_path, detail));
                return;
            }
            Some(positions @ Items::Positions(_)) => {
                let detail = "must only have a single schema if x-kubernetes-list-type is map";
                let printed = printed::items(positions);
                self.errors
                    .push(FieldError::invalid_printed(&items_path, &printed, detail));
                return;
            }
            Some(Items::Schema(items)) => items,
        };
        if items.kind != "object" {
            let detail = "must be object if parent array's x-kubernetes-list-type is map";
            let path = items_path.child("type");
            self.errors
                .push(FieldError::invalid(&path, items.kind.as_str(), detail));
            return;
        }
        let properties_path = items_path.child("properties");
        for (index, key) in document.list_map_keys.iter().enumerate() {
            match items.properties.get(key) {
                Some(property) if matches!(property.kind.as_str(), "array" | "object") => {
                    let detail =
                        "must be a scalar type if parent array's x-kubernetes-list-type is map";
                    let path = properties_path.key(key);
                    self.errors
                        .push(FieldError::invalid(&path.child("type"), "object", detail));
                }
                Some(_) => {}
                None => {
                    let detail = "entries must all be names of item properties";
                    let keys = document.list_map_keys.clone();
                    self.errors
                        .push(FieldError::invalid(&keys_path, keys, detail));
                }
            }
            if document.list_map_keys[..index].contains(key) {
                let keys = document.list_map_keys.clone();
                let detail = "must not contain duplicate entries";
                self.errors
                    .push(FieldError::invalid(&keys_path, keys, detail));
            }
        }
    }

    /// Items that are distinguished have to have what tells them apart.
    fn list_items(&mut self, document: &Document, path: &FieldPath<'_>) {
        let Some(items) = document.item_schema() else {
            return;
        };
        let Some(list_type @ ("set" | "map")) = document.list_type.as_deref() else {
            return;
        };
        let path = path.child("items");
        if items.nullable {
            let detail = format!("cannot be nullable when x-kubernetes-list-type is {list_type}");
            self.forbid(&path.child("nullable"), &detail);
        }
        if list_type == "set" {
            return;
        }
        let properties_path = path.child("properties");
        for key in &document.list_map_keys {
            let Some(property) = items.properties.get(key) else {
                continue;
            };
            let path = properties_path.key(key);
            if !items.required.contains(key) && property.default.is_none() {
                let detail = "this property is in x-kubernetes-list-map-keys, so it must have a \
                    default or be a required property";
                self.errors
                    .push(FieldError::required(&path.child("default"), detail));
            }
            if property.nullable {
                let detail =
                    "this property is in x-kubernetes-list-map-keys, so it cannot be nullable";
                self.forbid(&path.child("nullable"), detail);
            }
        }
    }
}

#[cfg(test)]
mod tests;
