//! A schema made ready for requests: everything that can be prepared once is.

use std::sync::Arc;

use bellwether_cel::Budget;
use serde_json::Value;

use crate::correlate::Correlated;
use crate::decode::DecodeError;
use crate::default::{TooManyDefaults, apply_defaults, drop_nulls};
use crate::embedded::{MetadataCheck, check_embedded, coerce_embedded};
use crate::field::{FieldError, FieldErrorKind, FieldPath};
use crate::lists::check_list_types;
use crate::meta::{Malformed, coerce_metadata};
use crate::model::Schema;
use crate::prune::prune;
use crate::rules::{self, RuleTree};
use crate::validate::Validator;

/// The schema of one version of a custom resource, with what it takes to apply it.
#[derive(Debug)]
pub struct CompiledSchema {
    schema: Arc<Schema>,
    validator: Validator,
    rules: Option<RuleTree>,
    check_metadata: MetadataCheck,
}

/// A request that is to be validated.
#[derive(Debug, Clone, Copy)]
pub enum Change<'a> {
    /// A new object.
    Create(&'a Value),
    /// An object that replaces another.
    Update {
        /// The object to be.
        new: &'a Value,
        /// The object so far.
        old: &'a Value,
    },
    /// As `Update`, through the status subresource.
    UpdateStatus {
        /// The object to be.
        new: &'a Value,
        /// The object so far.
        old: &'a Value,
    },
}

/// How much running rules may take.
#[derive(Clone, Copy)]
pub struct RuleLimits<'a> {
    /// What the rules on one object may cost together, as far as that is less than what Kubernetes
    /// allows.
    pub cost: u64,
    /// Asked between two rules whether to go on.
    pub is_interrupted: &'a dyn Fn() -> bool,
}

impl Default for RuleLimits<'_> {
    fn default() -> Self {
        Self {
            cost: Budget::RUNTIME_BUDGET,
            is_interrupted: &|| false,
        }
    }
}

impl std::fmt::Debug for RuleLimits<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("RuleLimits")
            .field("cost", &self.cost)
            .finish_non_exhaustive()
    }
}

/// Rules were not run to their end: they cost more than the limits allow, or were interrupted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("rules were not run to their end")]
pub struct Unfinished;

/// Why a body cannot be taken for a custom resource.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum CoerceError {
    /// The metadata of the object cannot be decoded.
    #[error(transparent)]
    Metadata(#[from] DecodeError),
    /// The type or metadata of an embedded resource cannot be decoded.
    #[error(transparent)]
    Embedded(#[from] FieldError),
}

impl CompiledSchema {
    /// Prepares a schema; `check_metadata` is how metadata of embedded resources is validated.
    pub fn compile(schema: Arc<Schema>, check_metadata: MetadataCheck) -> Self {
        let validator = Validator::compile(&schema);
        let rules = RuleTree::compile(&schema, true);
        Self {
            schema,
            validator,
            rules,
            check_metadata,
        }
    }

    /// The schema itself.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// What decoding does for built-in kinds: metadata is reduced to what it knows, unknown fields
    /// and meaningless nulls are removed. Returns the paths of the unknown fields.
    pub fn coerce(
        &self,
        object: &mut Value,
        malformed: Malformed,
    ) -> Result<Vec<String>, CoerceError> {
        let mut unknown = Vec::new();
        if let Some(metadata) = object.get_mut("metadata") {
            let found = coerce_metadata(metadata, malformed)?;
            unknown.extend(found.into_iter().map(|name| format!("metadata.{name}")));
        }
        unknown.extend(prune(object, &self.schema));
        drop_nulls(object, &self.schema);
        unknown.extend(coerce_embedded(object, &self.schema, malformed)?);
        Ok(unknown)
    }

    /// Fills in the defaults, unless they are too many.
    pub fn default(&self, object: &mut Value) -> Result<(), TooManyDefaults> {
        apply_defaults(object, &self.schema)
    }

    /// True if the object is as any write would leave it: nothing is unknown, left out or wrong. False where rules
    /// would have to be run to know that.
    pub fn is_settled(&self, object: &Value) -> bool {
        if self.rules.is_some() || !self.validate_values(Change::Create(object)).is_empty() {
            return false;
        }
        let mut settled = object.clone();
        let is_known = self.coerce(&mut settled, Malformed::Refuse);
        let is_complete = self.default(&mut settled);
        // Metadata are settled with every write.
        is_known.is_ok_and(|unknown| unknown.is_empty())
            && is_complete.is_ok()
            && content(object).eq(content(&settled))
            && check_list_types(object, &self.schema, &FieldPath::NIL).is_empty()
    }

    /// What is wrong with the values: types, limits, required fields...
    pub fn validate_values(&self, change: Change<'_>) -> Vec<FieldError> {
        match change {
            Change::Create(object) => self.validator.validate(object, &FieldPath::NIL),
            Change::Update { new, old } => {
                let change = Correlated {
                    new,
                    old,
                    schema: &self.schema,
                };
                self.validator.validate_change(change, &FieldPath::NIL)
            }
            Change::UpdateStatus { new, old } => {
                let (Some(validator), Some(status)) =
                    (self.validator.property("status"), new.get("status"))
                else {
                    return Vec::new();
                };
                let path = FieldPath::new("status");
                match (Correlated {
                    new,
                    old,
                    schema: &self.schema,
                })
                .key("status")
                {
                    Some(change) => validator.validate_change(change, &path),
                    None => validator.validate(status, &path),
                }
            }
        }
    }

    /// What is wrong beyond single values: embedded resources, list types and rules.
    ///
    /// Errors are added to those that were found before, because rules are not run on objects whose
    /// values are of wrong types or missing. Returns what is wrong but tolerated, because it was so
    /// before: the server warns of it.
    pub fn validate_rules(
        &self,
        change: Change<'_>,
        errors: &mut Vec<FieldError>,
        limits: RuleLimits<'_>,
    ) -> Result<Vec<FieldError>, Unfinished> {
        let root = FieldPath::NIL;
        let (new, old) = match change {
            Change::Create(object) => (object, None),
            Change::Update { new, old } | Change::UpdateStatus { new, old } => (new, Some(old)),
        };
        if !matches!(change, Change::UpdateStatus { .. }) {
            errors.extend(check_embedded(
                new,
                &self.schema,
                self.check_metadata,
                &root,
            ));
        }
        // Lists that had duplicates before may keep them.
        let was_fine = |old: &Value| check_list_types(old, &self.schema, &root).is_empty();
        let found = check_list_types(new, &self.schema, &root);
        if !found.is_empty() && old.is_none_or(was_fine) {
            errors.extend(found);
        }
        let Some(tree) = &self.rules else {
            return Ok(Vec::new());
        };
        if errors.iter().any(is_blocking) {
            let detail = "some validation rules were not checked because the object was invalid; \
                correct the existing errors to complete validation";
            errors.push(FieldError::invalid(&root, Value::Null, detail));
            return Ok(Vec::new());
        }
        let correlated = old.map(|old| Correlated {
            new,
            old,
            schema: &self.schema,
        });
        let total = limits.cost.min(Budget::RUNTIME_BUDGET);
        let mut budget = Budget::new(Budget::PER_CALL_LIMIT.min(total), total);
        let outcome = rules::run(
            tree,
            &self.schema,
            &root,
            (new, old),
            correlated,
            (&mut budget, limits.is_interrupted),
        );
        let is_short = total < Budget::RUNTIME_BUDGET && budget.spent() >= total;
        if outcome.interrupted || is_short {
            return Err(Unfinished);
        }
        errors.extend(outcome.errors.into_vec());
        Ok(outcome.tolerated.into_vec())
    }
}

/// The fields of an object other than its metadata.
fn content(object: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let fields = object.as_object().into_iter().flatten();
    fields.filter(|(name, _)| *name != "metadata")
}

/// Whether an error keeps rules from being run.
fn is_blocking(error: &FieldError) -> bool {
    matches!(
        error.kind,
        FieldErrorKind::NotSupported
            | FieldErrorKind::Required
            | FieldErrorKind::TooLong
            | FieldErrorKind::TooMany
            | FieldErrorKind::TypeInvalid
    )
}

#[cfg(test)]
mod tests;
