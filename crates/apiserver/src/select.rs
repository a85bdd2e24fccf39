//! Which objects of a collection a list or a watch wants.

use std::sync::Arc;

use bellwether_json::field::FieldSelector;
use bellwether_json::label::LabelSelector;

use crate::object::StoredObject;
use crate::params::ListOptions;
use crate::resource::{Resource, Source};
use crate::status::ApiError;

/// Label and field conditions, checked against what the resource knows.
#[derive(Debug, Clone)]
pub(crate) struct Selector {
    labels: LabelSelector,
    fields: Vec<FieldCondition>,
    resource: Arc<Resource>,
}

#[derive(Debug, Clone)]
struct FieldCondition {
    field: Field,
    value: String,
    equal: bool,
}

#[derive(Debug, Clone)]
enum Field {
    Name,
    Namespace,
    /// Any other field that the resource offers.
    Other(String),
}

impl Selector {
    /// Checks that the resource knows the fields.
    pub(crate) fn new(resource: &Arc<Resource>, options: &ListOptions) -> Result<Self, ApiError> {
        Ok(Self {
            labels: options.labels.clone(),
            fields: conditions(resource, &options.fields)?,
            resource: Arc::clone(resource),
        })
    }

    /// Whether nothing is left out.
    pub(crate) fn is_everything(&self) -> bool {
        self.labels.is_everything() && self.fields.is_empty()
    }

    /// The only name that can match, if there is one.
    pub(crate) fn name(&self) -> Option<&str> {
        self.fields
            .iter()
            .find(|condition| condition.equal && matches!(condition.field, Field::Name))
            .map(|condition| condition.value.as_str())
    }

    /// Whether the object under `key` is wanted.
    pub(crate) fn matches(&self, key: &str, object: &StoredObject) -> bool {
        self.labels.matches(object) && self.fields_match(key, object)
    }

    fn fields_match(&self, key: &str, object: &StoredObject) -> bool {
        if self.fields.is_empty() {
            return true;
        }
        let (namespace, name) = self.resource.split_key(key);
        let mut value = None;
        self.fields.iter().all(|condition| {
            let equal = match &condition.field {
                Field::Name => name == condition.value,
                Field::Namespace => namespace.unwrap_or("") == condition.value,
                Field::Other(label) => {
                    let object = value.get_or_insert_with(|| self.resource.read(object));
                    self.resource.field(label, object) == condition.value
                }
            };
            equal == condition.equal
        })
    }
}

fn conditions(
    resource: &Resource,
    selector: &FieldSelector,
) -> Result<Vec<FieldCondition>, ApiError> {
    selector
        .requirements()
        .iter()
        .map(|requirement| {
            let field = match requirement.field.as_str() {
                "metadata.name" => Field::Name,
                "metadata.namespace" => Field::Namespace,
                other if resource.knows_field(other) => Field::Other(other.to_owned()),
                other => return Err(unknown_field(resource, other)),
            };
            Ok(FieldCondition {
                field,
                value: requirement.value.clone(),
                equal: requirement.is_equal,
            })
        })
        .collect()
}

fn unknown_field(resource: &Resource, field: &str) -> ApiError {
    ApiError::bad_request(match &resource.source {
        Source::BuiltIn(kind) if !kind.field_selectors.is_empty() => {
            format!("field label not supported: {field}")
        }
        Source::BuiltIn(_) => format!(
            "\"{field}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
        ),
        Source::Custom(_) => format!("field label not supported: {field}"),
    })
}
