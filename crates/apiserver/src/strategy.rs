//! What a resource does to its objects on the way in and out.
//!
//! Built-in kinds answer through the `kinds` crate, custom ones through their schema; the handlers
//! see no difference.

use std::borrow::Cow;

use bellwether_kinds::meta::{self, MetaRules};
use bellwether_kinds::{self as kinds, Creation, NameRule};
use bellwether_schema::meta::Malformed;
use bellwether_schema::{
    Change, FieldError, FieldErrors, FieldPath, RuleLimits, TooManyDefaults, decode,
};
use jiff::Timestamp;
use serde_json::{Map, Value};

use crate::apart::Effort;
use crate::custom::{self, CustomVersion};
use crate::object::StoredObject;
use crate::resource::{Part, Resource, Source};
use crate::status::ApiError;

impl Resource {
    /// The object in this version.
    pub(crate) fn read(&self, stored: &StoredObject) -> Value {
        let mut value = stored.to_value(&self.api_version, &self.kind);
        self.convert_from_storage(&mut value);
        value
    }

    /// Whether objects look different in this version than at rest.
    pub(crate) fn converts(&self) -> bool {
        match &self.source {
            Source::BuiltIn(kind) => {
                (kind.group, kind.version) != (kind.storage.group, kind.storage.version)
            }
            Source::Custom(version) => version.at_rest.is_some(),
        }
    }

    /// The object as it is stored.
    pub(crate) fn to_storage(&self, value: &mut Value) {
        match &self.source {
            Source::BuiltIn(kind) => kinds::to_storage(kind, value),
            Source::Custom(version) => version.convert_to_storage(value),
        }
    }

    /// The stored form of an object, in this version.
    pub(crate) fn convert_from_storage(&self, value: &mut Value) {
        match &self.source {
            Source::BuiltIn(kind) => kinds::from_storage(kind, value),
            Source::Custom(version) => version.convert_from_storage(value),
        }
    }

    /// The object as it is stored, without a copy where that is the same.
    fn stored_form<'a>(&self, value: &'a Value) -> Cow<'a, Value> {
        if !self.converts() {
            return Cow::Borrowed(value);
        }
        let mut stored = value.clone();
        self.to_storage(&mut stored);
        Cow::Owned(stored)
    }

    /// Changes an object in the form in which it is stored: what kinds do, they do in that form.
    fn in_stored_form(&self, value: &mut Value, change: impl FnOnce(&mut Value)) {
        self.to_storage(value);
        change(value);
        self.convert_from_storage(value);
    }

    /// Removes fields that nobody knows, and returns their paths.
    ///
    /// The error is what Go's decoder says of a value of the wrong type; in custom resources that
    /// is found later, by validation.
    pub(crate) fn drop_unknown(&self, value: &mut Value) -> Result<Vec<String>, String> {
        match &self.source {
            Source::BuiltIn(kind) => {
                let schema = kind.schema();
                decode::decode(value, &schema, kind.kind).map_err(|error| error.to_string())
            }
            Source::Custom(version) => version
                .schema
                .get()
                .coerce(value, Malformed::Refuse)
                .map_err(|error| error.to_string()),
        }
    }

    /// Fills in what was left out.
    pub(crate) fn default(&self, value: &mut Value) -> Result<(), TooManyDefaults> {
        match &self.source {
            Source::BuiltIn(kind) => {
                kinds::default(kind, value);
                Ok(())
            }
            Source::Custom(version) => version.schema.get().default(value),
        }
    }

    /// Sets what a client may not set at creation.
    pub(crate) fn prepare_create(&self, value: &mut Value, creation: &Creation<'_>) {
        match &self.source {
            Source::BuiltIn(kind) => {
                self.in_stored_form(value, |value| {
                    kinds::prepare_for_create(kind, value, creation);
                });
            }
            Source::Custom(version) => {
                if version.has_status {
                    remove(value, "status");
                }
                value["metadata"]["generation"] = 1.into();
            }
        }
    }

    /// Takes over from the live object what this part of it may not change, and counts generations.
    pub(crate) fn prepare_update(
        &self,
        part: Part,
        value: &mut Value,
        live: &Value,
        now: Timestamp,
    ) {
        match (&self.source, part) {
            (Source::BuiltIn(kind), Part::Main | Part::Scale) => {
                let live = self.stored_form(live);
                self.in_stored_form(value, |value| kinds::prepare_for_update(kind, value, &live));
            }
            (Source::BuiltIn(kind), Part::Other(_) | Part::Status) => {
                let live = self.stored_form(live);
                let part = part.subresource();
                self.in_stored_form(value, |value| {
                    kinds::prepare_for_part_update(kind, part, value, &live, now);
                });
            }
            // Our own controllers change what they have to.
            (_, Part::Whole) => {}
            (Source::Custom(version), Part::Main | Part::Scale) => {
                if version.has_status {
                    copy_field(value, live, "status");
                }
                let generation = live["metadata"]["generation"].as_i64().unwrap_or(0);
                let changed = content(version, value) != content(version, live);
                value["metadata"]["generation"] = (generation + i64::from(changed)).into();
            }
            (Source::Custom(_), Part::Status | Part::Other(_)) => keep_only_status(value, live),
        }
    }

    /// Everything that is wrong with an object, or with a change.
    pub(crate) fn validate(
        &self,
        part: Part,
        value: &Value,
        live: Option<&Value>,
        effort: &Effort,
    ) -> Result<Vec<FieldError>, ApiError> {
        Ok(match (&self.source, part, live) {
            (_, Part::Whole, _) => Vec::new(),
            (Source::BuiltIn(kind), part, live) => {
                let value = self.stored_form(value);
                let live = live.map(|live| self.stored_form(live));
                let mut errors = match (part, live.as_deref()) {
                    (Part::Status | Part::Other(_), Some(live)) => {
                        kinds::validate_part(kind, part.subresource(), &value, live)
                    }
                    (_, live) => kinds::validate(kind, &value, live),
                };
                if custom::is_definition(kind) && part == Part::Main {
                    errors.extend(custom::validate(&value, live.as_deref()));
                }
                if kind.group == bellwether_admission::GROUP && part == Part::Main {
                    errors.extend(expression_errors(&value, live.as_deref(), kind.kind));
                }
                errors
            }
            (Source::Custom(version), part, live) => {
                let change = match (live, part) {
                    (None, _) => Change::Create(value),
                    (Some(old), Part::Status) => Change::UpdateStatus { new: value, old },
                    (Some(old), _) => Change::Update { new: value, old },
                };
                let compiled = version.schema.get();
                let mut errors = self.validate_custom_metadata(value, live);
                errors.extend(compiled.validate_values(change));
                effort
                    .rules(|limits: RuleLimits<'_>| {
                        compiled.validate_rules(change, &mut errors, limits)
                    })
                    .map_err(|_| effort.exceeded())?;
                if let Some(scale) = &version.scale {
                    scale.validate(value, &mut errors);
                }
                errors
            }
        })
    }

    fn validate_custom_metadata(&self, value: &Value, live: Option<&Value>) -> Vec<FieldError> {
        let mut errors = FieldErrors::new();
        let path = FieldPath::new("metadata");
        let rules = MetaRules {
            namespaced: self.namespaced,
            names: NameRule::Subdomain,
            known_finalizers: false,
        };
        meta::validate(&value["metadata"], rules, &path, &mut errors);
        if let Some(live) = live {
            meta::validate_update(&value["metadata"], &live["metadata"], &path, &mut errors);
        }
        errors.into_vec()
    }

    /// Whether an update may leave out `resourceVersion`.
    pub(crate) fn allows_unconditional_update(&self) -> bool {
        match &self.source {
            Source::BuiltIn(kind) => kind.unconditional_update,
            Source::Custom(_) => false,
        }
    }

    /// Whether an update of an absent object creates it.
    pub(crate) fn allows_create_on_update(&self) -> bool {
        match &self.source {
            Source::BuiltIn(kind) => kind.create_on_update,
            Source::Custom(_) => false,
        }
    }

    /// Whether a field selector may name this field.
    pub(crate) fn knows_field(&self, label: &str) -> bool {
        match &self.source {
            Source::BuiltIn(kind) => kind.field_selector(label).is_some(),
            Source::Custom(version) => version.selectable.iter().any(|(known, _)| known == label),
        }
    }

    /// The value that a field selector compares.
    pub(crate) fn field(&self, label: &str, object: &Value) -> String {
        match &self.source {
            Source::BuiltIn(kind) => kind
                .field_selector(label)
                .map(|field| field.value(object))
                .unwrap_or_default(),
            Source::Custom(version) => version
                .selectable
                .iter()
                .find(|(known, _)| known == label)
                .and_then(|(_, path)| path.find(object).ok())
                .and_then(|found| found.into_iter().flatten().next().map(plain))
                .unwrap_or_default(),
        }
    }
}

/// What is wrong with expressions of webhooks and policies; what is unchanged is not checked again.
fn expression_errors(value: &Value, live: Option<&Value>, kind: &str) -> Vec<FieldError> {
    let is_unchanged = |field: &str| live.is_some_and(|live| live[field] == value[field]);
    if is_unchanged("spec") && is_unchanged("webhooks") {
        return Vec::new();
    }
    let problems = bellwether_admission::policy::problems(kind, value).into_iter();
    problems
        .map(|(path, expression, why)| FieldError::invalid(&FieldPath::new(&path), expression, why))
        .collect()
}

/// What a generation counts the changes of: everything but metadata and status.
fn content(version: &CustomVersion, object: &Value) -> Map<String, Value> {
    let mut fields = object.as_object().cloned().unwrap_or_default();
    fields.remove("metadata");
    if version.has_status {
        fields.remove("status");
    }
    fields
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn remove(value: &mut Value, field: &str) {
    if let Value::Object(fields) = value {
        fields.remove(field);
    }
}

fn copy_field(value: &mut Value, live: &Value, field: &str) {
    match live.get(field) {
        Some(found) => value[field] = found.clone(),
        None => remove(value, field),
    }
}

/// A status write of a custom resource changes its status, and who owns it, and nothing else.
fn keep_only_status(value: &mut Value, live: &Value) {
    let (Value::Object(fields), Value::Object(live)) = (value, live) else {
        return;
    };
    fields.retain(|name, _| name == "status" || live.contains_key(name));
    for (name, kept) in live.iter().filter(|(name, _)| *name != "status") {
        let entries = (name == "metadata").then(|| fields.get_mut(name)?.get_mut("managedFields"));
        let entries = entries.flatten().map(Value::take);
        // Most fields are as they were: comparing them is less than copying.
        if fields.get(name) != Some(kept) {
            fields.insert(name.clone(), kept.clone());
        }
        if name == "metadata"
            && let Some(Value::Object(metadata)) = fields.get_mut(name)
        {
            match entries {
                Some(entries) => metadata.insert("managedFields".to_owned(), entries),
                None => metadata.remove("managedFields"),
            };
        }
    }
}
