//! Validation of values: types, limits, enumerations, formats and their logical combinations, with
//! the messages of `k8s.io/kube-openapi: pkg/validation/validate`.
//!
//! A [`Validator`] is compiled once from a [`Schema`] and used for every request. On an update,
//! errors in parts that did not change are tolerated ("ratcheting").
//!
//! List types and embedded resources are in [`crate::lists`] and [`crate::embedded`].

mod findings;
mod value;

use bellwether_go::regexp::Regex;
use serde_json::Value;

use crate::correlate::Correlated;
use crate::field::{FieldError, FieldPath};
use crate::format::Format;
use crate::model::{self, Limits, Schema, Type};
use crate::pattern;
use findings::{Findings, Place};

/// A schema made ready to validate values.
#[derive(Debug)]
pub(crate) struct Validator {
    types: Vec<Type>,
    nullable: bool,
    /// A format that is checked, with its name as it is written.
    format: Option<Box<(Format, String)>>,
    /// Nothing where there are none, as in most places: a fleet has thousands of validators.
    limits: Option<Box<Limits>>,
    /// The compiled `limits.pattern`, or why it cannot be compiled.
    pattern: Option<Box<Result<Regex, String>>>,
    required: Box<[String]>,
    /// In the order of their names.
    properties: Box<[(String, Validator)]>,
    additional: Option<Box<Validator>>,
    closed: bool,
    items: Option<Box<Validator>>,
    logic: Option<Box<Logic>>,
}

/// Validators of alternatives.
#[derive(Debug)]
struct Logic {
    all_of: Vec<Validator>,
    any_of: Vec<Validator>,
    one_of: Vec<Validator>,
    not: Option<Box<Validator>>,
}

/// The limits of a value that has none.
static NO_LIMITS: Limits = Limits {
    minimum: None,
    exclusive_minimum: false,
    maximum: None,
    exclusive_maximum: false,
    multiple_of: None,
    min_length: None,
    max_length: None,
    pattern: None,
    min_items: None,
    max_items: None,
    unique_items: false,
    min_properties: None,
    max_properties: None,
    one_of_values: Vec::new(),
};

impl Validator {
    /// Prepares `schema`, recursively.
    pub(crate) fn compile(schema: &Schema) -> Self {
        Self::build(schema, true)
    }

    /// As [`Self::compile`], for defaults, where Kubernetes does not look at the type of what may be an
    /// integer or a string.
    pub(crate) fn compile_for_defaults(schema: &Schema) -> Self {
        Self::build(schema, false)
    }

    fn build(schema: &Schema, int_or_string: bool) -> Self {
        let build = |schema: &Schema| Self::build(schema, int_or_string);
        let all = |schemas: &[Schema]| schemas.iter().map(build).collect();
        let logic = &schema.logic;
        Self {
            types: match schema.kind {
                _ if schema.int_or_string && int_or_string => vec![Type::Integer, Type::String],
                Some(kind) => vec![kind],
                None => Vec::new(),
            },
            nullable: schema.nullable,
            format: schema
                .format
                .as_ref()
                .and_then(|name| Some(Box::new((Format::parse(name)?, name.clone())))),
            limits: (schema.limits != NO_LIMITS).then(|| Box::new(schema.limits.clone())),
            pattern: schema
                .limits
                .pattern
                .as_deref()
                .map(|pattern| Box::new(pattern::compile(pattern))),
            required: schema.required.as_slice().into(),
            properties: schema
                .properties
                .iter()
                .map(|(name, property)| (name.clone(), build(property)))
                .collect(),
            additional: schema
                .additional_properties
                .as_ref()
                .map(|additional| Box::new(build(additional))),
            closed: schema.closed,
            items: schema.items.as_ref().map(|items| Box::new(build(items))),
            logic: (*logic != model::Logic::default()).then(|| {
                Box::new(Logic {
                    all_of: all(&logic.all_of),
                    any_of: all(&logic.any_of),
                    one_of: all(&logic.one_of),
                    not: logic.not.as_ref().map(|not| Box::new(build(not))),
                })
            }),
        }
    }

    fn limits(&self) -> &Limits {
        self.limits.as_deref().unwrap_or(&NO_LIMITS)
    }

    /// The validator of a property.
    pub(crate) fn property(&self, name: &str) -> Option<&Validator> {
        let properties = &self.properties;
        let index = properties.binary_search_by(|(known, _)| known.as_str().cmp(name));
        index.ok().map(|index| &properties[index].1)
    }

    /// What is wrong with a new value; `path` is put before the paths of the errors, but not into
    /// their texts.
    pub(crate) fn validate(&self, value: &Value, path: &FieldPath<'_>) -> Vec<FieldError> {
        self.run(value, &Place::Root, None).into_errors(path)
    }

    /// What is wrong with a changed value, apart from what was already so.
    pub(crate) fn validate_change(
        &self,
        change: Correlated<'_>,
        path: &FieldPath<'_>,
    ) -> Vec<FieldError> {
        self.ratchet(change, &Place::Root).into_errors(path)
    }

    fn ratchet(&self, change: Correlated<'_>, place: &Place<'_>) -> Findings {
        let mut findings = self.run(change.new, place, Some(change));
        if !findings.is_valid() && change.is_unchanged() {
            findings.forgive();
        }
        findings
    }

    /// Validates `value`; `change` is what it is a change of, if there is something.
    ///
    /// Each check that applies counts as a match, passed or not: where several alternatives fail,
    /// the errors of the one with most matches are reported.
    fn run(&self, value: &Value, place: &Place<'_>, change: Option<Correlated<'_>>) -> Findings {
        let mut findings = Findings::default();
        if value.is_null() {
            findings.merge(self.check_type(value, place));
            findings.merge(self.check_enumeration(value, place));
            return findings;
        }
        if !self.types.is_empty() || self.format.is_some() {
            findings.merge_counted(self.check_type(value, place));
        }
        findings.merge_counted(self.check_logic(value, place));
        match value {
            Value::String(text) => {
                findings.merge_counted(self.check_string(text, place));
                if let Some((format, name)) = self.format.as_deref() {
                    findings.merge_counted(value::check_format(*format, name, text, place));
                }
            }
            Value::Number(number) => {
                findings.merge_counted(value::check_number(self.limits(), number, place));
            }
            Value::Array(items) => {
                findings.merge_counted(self.check_array(items, place, change));
            }
            _ => {}
        }
        findings.merge_counted(self.check_enumeration(value, place));
        if let Value::Object(fields) = value {
            findings.merge_counted(self.check_object(fields, place, change));
        }
        findings.matched();
        findings
    }

    fn check_array<'a>(
        &self,
        items: &'a [Value],
        place: &Place<'_>,
        change: Option<Correlated<'a>>,
    ) -> Findings {
        let mut findings = Findings::default();
        if let Some(validator) = &self.items {
            let correlated = change.and_then(|change| change.items());
            for (index, item) in items.iter().enumerate() {
                let place = place.index(index);
                let change = correlated
                    .as_ref()
                    .and_then(|correlated| correlated.find(item));
                findings.merge(match change {
                    Some(change) => validator.ratchet(change, &place),
                    None => validator.run(item, &place, None),
                });
            }
        }
        value::check_item_count(self.limits(), items, place, &mut findings);
        findings.matched();
        findings
    }

    fn check_object(
        &self,
        fields: &serde_json::Map<String, Value>,
        place: &Place<'_>,
        change: Option<Correlated<'_>>,
    ) -> Findings {
        let mut findings = Findings::default();
        value::check_field_count(self.limits(), fields.len(), place, &mut findings);
        let further = || {
            fields
                .iter()
                .filter(|(name, _)| self.property(name).is_none())
        };
        if self.closed {
            for (name, _) in further() {
                findings.forbidden_field(place, name);
            }
        } else if let Some(validator) = &self.additional {
            for (name, value) in further() {
                let place = place.entry(name);
                findings.merge(validator.run_field(value, name, &place, change));
            }
        }
        for (name, validator) in &self.properties {
            if let Some(value) = fields.get(name) {
                let place = place.field(name);
                findings.merge(validator.run_field(value, name, &place, change));
            }
        }
        for name in self
            .required
            .iter()
            .filter(|name| !fields.contains_key(*name))
        {
            findings.missing_field(place, name);
        }
        findings
    }

    fn run_field(
        &self,
        value: &Value,
        name: &str,
        place: &Place<'_>,
        change: Option<Correlated<'_>>,
    ) -> Findings {
        // Both versions of an object are converted to the same type, so that these never differ.
        let converted = place.is_top_level() && matches!(name, "kind" | "apiVersion");
        match change
            .filter(|_| !converted)
            .and_then(|change| change.key(name))
        {
            Some(change) => self.ratchet(change, place),
            None => self.run(value, place, None),
        }
    }

    fn check_logic(&self, value: &Value, place: &Place<'_>) -> Findings {
        let mut findings = Findings::default();
        if let Some(logic) = &self.logic {
            logic.check(value, place, &mut findings);
        }
        findings.matched();
        findings
    }
}

impl Logic {
    /// Alternatives are validated without regard to what was there before.
    fn check(&self, value: &Value, place: &Place<'_>, findings: &mut Findings) {
        self.check_any_of(value, place, findings);
        self.check_one_of(value, place, findings);
        self.check_all_of(value, place, findings);
        if let Some(not) = &self.not
            && not.run(value, place, None).is_valid()
        {
            findings.composite(place, "must not validate the schema (not)");
        }
    }

    fn check_any_of(&self, value: &Value, place: &Place<'_>, findings: &mut Findings) {
        let mut best: Option<Findings> = None;
        for alternative in &self.any_of {
            let result = alternative.run(value, place, None);
            if result.is_valid() {
                findings.merge(result);
                return;
            }
            if best
                .as_ref()
                .is_none_or(|best| result.matches() > best.matches())
            {
                best = Some(result);
            }
        }
        if let Some(best) = best {
            findings.composite(place, "must validate at least one schema (anyOf)");
            findings.merge(best);
        }
    }

    fn check_one_of(&self, value: &Value, place: &Place<'_>, findings: &mut Findings) {
        if self.one_of.is_empty() {
            return;
        }
        let mut best: Option<Findings> = None;
        let mut first_valid = None;
        let mut valid = 0_usize;
        for alternative in &self.one_of {
            let result = alternative.run(value, place, None);
            if result.is_valid() {
                valid += 1;
                first_valid.get_or_insert(result);
            } else if best
                .as_ref()
                .is_none_or(|best| result.matches() > best.matches())
            {
                best = Some(result);
            }
        }
        let rule = "must validate one and only one schema (oneOf).";
        match (valid, first_valid, best) {
            (1, Some(result), _) => findings.merge(result),
            (0, _, best) => {
                findings.composite(place, &format!("{rule} Found none valid"));
                findings.merge(best.unwrap_or_default());
            }
            (count, ..) => {
                findings.composite(place, &format!("{rule} Found {count} valid alternatives"));
            }
        }
    }

    fn check_all_of(&self, value: &Value, place: &Place<'_>, findings: &mut Findings) {
        let mut valid = 0;
        for part in &self.all_of {
            let result = part.run(value, place, None);
            valid += usize::from(result.is_valid());
            findings.merge(result);
        }
        if valid < self.all_of.len() {
            let addition = if valid == 0 { ". None validated" } else { "" };
            findings.composite(
                place,
                &format!("must validate all the schemas (allOf){addition}"),
            );
        }
    }
}

#[cfg(test)]
mod tests;
