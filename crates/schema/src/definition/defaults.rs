//! Defaults have to be values that the server would accept and keep.

use bellwether_cel::Budget;
use serde_json::{Map, Value};

use crate::embedded::{MetadataCheck, check_embedded, coerce_embedded_at};
use crate::field::{FieldError, FieldPath, aggregate};
use crate::meta::Malformed;
use crate::model::Schema;
use crate::prune::{prune, prune_value};
use crate::rules::{self, RuleTree};
use crate::validate::Validator;

/// What is wrong with the defaults in the schema of a resource.
pub(super) fn check(
    schema: &Schema,
    check_metadata: MetadataCheck,
    path: &FieldPath<'_>,
) -> Vec<FieldError> {
    let root = Schema {
        embedded_resource: true,
        ..schema.clone()
    };
    let mut checker = Checker {
        check_metadata,
        errors: Vec::new(),
        budget: Budget::kubernetes(),
    };
    checker.schema(
        &root,
        path,
        &Resource {
            schema: &root,
            steps: &[],
            inside_meta: false,
        },
    );
    checker.errors
}

/// The innermost resource around a schema, and the way from it to the schema.
struct Resource<'a> {
    schema: &'a Schema,
    steps: &'a [Step<'a>],
    inside_meta: bool,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Field(&'a str),
    Item,
}

struct Checker {
    check_metadata: MetadataCheck,
    errors: Vec<FieldError>,
    /// Shared by the rules on all defaults.
    budget: Budget,
}

impl Checker {
    fn schema(&mut self, schema: &Schema, path: &FieldPath<'_>, resource: &Resource<'_>) {
        let own = Resource {
            schema,
            steps: &[],
            inside_meta: false,
        };
        let resource = if schema.embedded_resource {
            &own
        } else {
            resource
        };
        if let Some(default) = &schema.default {
            let path = path.child("default");
            let errors = if resource.inside_meta {
                self.metadata_default(default, schema, &path, resource)
            } else {
                self.plain_default(default, schema, &path)
            };
            let is_valid = errors.is_empty();
            self.errors.extend(errors);
            if is_valid {
                self.rules(default, schema, &path);
            }
        }
        // There are no defaults in maps: what would have them is named by the request.
        if let Some(items) = &schema.items {
            let mut steps = resource.steps.to_vec();
            steps.push(Step::Item);
            let resource = Resource {
                steps: &steps,
                ..*resource
            };
            self.schema(items, &path.child("items"), &resource);
        }
        let path = path.child("properties");
        for (name, property) in &schema.properties {
            let mut steps = resource.steps.to_vec();
            steps.push(Step::Field(name));
            let is_meta = matches!(name.as_str(), "metadata" | "apiVersion" | "kind");
            let inside_meta = resource.inside_meta || (schema.embedded_resource && is_meta);
            let resource = Resource {
                steps: &steps,
                inside_meta,
                ..*resource
            };
            self.schema(property, &path.key(name), &resource);
        }
    }

    /// The rules hold on the default, as a new value and as one that stays.
    fn rules(&mut self, default: &Value, schema: &Schema, path: &FieldPath<'_>) {
        let Some(tree) = RuleTree::compile(schema, schema.embedded_resource) else {
            return;
        };
        let mut run = |old: Option<&Value>| {
            let subject = (default, old);
            let limits = (&mut self.budget, &(|| false) as &dyn Fn() -> bool);
            rules::run(&tree, schema, path, subject, None, limits)
                .errors
                .into_vec()
        };
        let mut errors = run(Some(default));
        if errors.is_empty() {
            errors = run(None);
        }
        self.errors.extend(errors);
    }

    fn plain_default(
        &self,
        default: &Value,
        schema: &Schema,
        path: &FieldPath<'_>,
    ) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let mut pruned = default.clone();
        if schema.embedded_resource {
            prune(&mut pruned, schema);
        } else {
            prune_value(&mut pruned, schema);
        }
        if pruned != *default {
            let detail = "must not have unknown fields";
            errors.push(FieldError::invalid(path, default.clone(), detail));
        }
        let mut coerced = default.clone();
        if let Err(error) = coerce_embedded_at(&mut coerced, schema, Malformed::Refuse, path) {
            errors.push(error);
            return errors;
        }
        let found = check_embedded(&coerced, schema, self.check_metadata, path);
        if found.is_empty() {
            errors.extend(Validator::compile_for_defaults(schema).validate(&coerced, path));
        } else {
            errors.extend(found);
        }
        errors
    }

    /// A default inside metadata is looked at within the resource that it would become part of.
    fn metadata_default(
        &self,
        default: &Value,
        schema: &Schema,
        path: &FieldPath<'_>,
        resource: &Resource<'_>,
    ) -> Vec<FieldError> {
        let surround = |inner: Value, step: &Step<'_>| match step {
            Step::Item => Value::Array(vec![inner]),
            Step::Field(name) => Value::Object(Map::from_iter([((*name).to_owned(), inner)])),
        };
        let mut object = resource.steps.iter().rev().fold(default.clone(), surround);
        if let Value::Object(fields) = &mut object {
            fields.entry("kind").or_insert_with(|| "Validation".into());
            fields
                .entry("apiVersion")
                .or_insert_with(|| "validation/v1".into());
        }
        let root = FieldPath::NIL;
        let invalid = |problem: String| {
            let detail = format!("must result in valid metadata: {problem}");
            vec![FieldError::invalid(path, default.clone(), detail)]
        };
        if let Err(error) =
            coerce_embedded_at(&mut object, resource.schema, Malformed::Refuse, &root)
        {
            return invalid(error.to_string());
        }
        let errors = check_embedded(&object, resource.schema, self.check_metadata, &root);
        if !errors.is_empty() {
            return invalid(aggregate(&errors));
        }
        Validator::compile_for_defaults(schema).validate(default, path)
    }
}
