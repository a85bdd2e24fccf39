//! The schema tree: one node type for custom resources and built-in kinds alike.
//!
//! Children are shared (`Arc`), because built-in kinds repeat large parts (a pod template occurs in
//! seven of them) and because a thousand clusters use the same compiled tree.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

/// What is known about the value at one place of an object.
///
/// The default node allows anything and knows nothing.
#[derive(Debug, Clone, Default, PartialEq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a keyword of its own in OpenAPI"
)]
pub struct Schema {
    /// The JSON type, or `None` where any is allowed (`x-kubernetes-int-or-string`,
    /// `x-kubernetes-preserve-unknown-fields`).
    pub kind: Option<Type>,
    /// Prose for `kubectl explain`.
    pub description: Option<Arc<str>>,
    /// `format`, such as `date-time` or `int32`.
    pub format: Option<String>,
    /// `title`, kept so that a served definition reads as it was written.
    pub title: Option<String>,
    /// Whether an explicit `null` is a value rather than an absence.
    pub nullable: bool,
    /// Filled in where the field is absent.
    pub default: Option<Value>,

    /// Known fields of an object.
    pub properties: BTreeMap<String, Arc<Schema>>,
    /// Schema of the values of a map; an object has either this or `properties`.
    pub additional_properties: Option<Arc<Schema>>,
    /// `additionalProperties: false`: no field beyond `properties` may be there.
    pub closed: bool,
    /// Fields that have to be there.
    pub required: Vec<String>,
    /// Schema of the items of an array.
    pub items: Option<Arc<Schema>>,

    /// Value restrictions that are checked, but say nothing about structure.
    pub limits: Limits,
    /// `allOf`, `anyOf`, `oneOf`, `not`: restrictions without structure of their own.
    pub logic: Logic,
    /// `x-kubernetes-validations`.
    pub rules: Vec<Rule>,

    /// `x-kubernetes-preserve-unknown-fields`: pruning stops here.
    pub preserve_unknown_fields: bool,
    /// `x-kubernetes-embedded-resource`: the object has `apiVersion`, `kind` and `metadata`.
    pub embedded_resource: bool,
    /// `x-kubernetes-int-or-string`.
    pub int_or_string: bool,

    /// How lists merge in server-side apply (`x-kubernetes-list-type`).
    pub list_type: ListType,
    /// How objects merge in server-side apply (`x-kubernetes-map-type`).
    pub map_type: MapType,
    /// How strategic merge patches treat this field; `None` for custom resources.
    pub patch: Option<PatchStrategy>,
    /// Name of the type in published OpenAPI documents (`io.k8s.api.core.v1.PodSpec`), which become
    /// references there; `None` is written in place.
    pub type_name: Option<Arc<str>>,
}

impl Schema {
    /// Whether the node says nothing of its value: as `additional_properties` it stands for
    /// `additionalProperties: true`, because a schema of its own has at least a type.
    pub fn is_unspecified(&self) -> bool {
        self.kind.is_none() && !self.int_or_string && !self.preserve_unknown_fields
    }
}

/// JSON types as OpenAPI names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Type {
    /// `object`
    Object,
    /// `array`
    Array,
    /// `string`
    String,
    /// `integer`
    Integer,
    /// `number`
    Number,
    /// `boolean`
    Boolean,
}

impl Type {
    /// The type that OpenAPI calls `name`.
    pub fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "object" => Self::Object,
            "array" => Self::Array,
            "string" => Self::String,
            "integer" => Self::Integer,
            "number" => Self::Number,
            "boolean" => Self::Boolean,
            _ => return None,
        })
    }

    /// OpenAPI's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }
}

/// Restrictions on a single value.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Limits {
    /// `minimum`
    pub minimum: Option<f64>,
    /// `exclusiveMinimum` (a flag in OpenAPI 3.0)
    pub exclusive_minimum: bool,
    /// `maximum`
    pub maximum: Option<f64>,
    /// `exclusiveMaximum` (a flag in OpenAPI 3.0)
    pub exclusive_maximum: bool,
    /// `multipleOf`
    pub multiple_of: Option<f64>,
    /// `minLength`, in code points
    pub min_length: Option<u64>,
    /// `maxLength`, in code points
    pub max_length: Option<u64>,
    /// `pattern`, an RE2 expression that has to match somewhere
    pub pattern: Option<String>,
    /// `minItems`
    pub min_items: Option<u64>,
    /// `maxItems`
    pub max_items: Option<u64>,
    /// `uniqueItems`
    pub unique_items: bool,
    /// `minProperties`
    pub min_properties: Option<u64>,
    /// `maxProperties`
    pub max_properties: Option<u64>,
    /// `enum`; empty means no restriction
    pub one_of_values: Vec<Value>,
}

/// Logical combinations of value restrictions.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Logic {
    /// `allOf`
    pub all_of: Vec<Schema>,
    /// `anyOf`
    pub any_of: Vec<Schema>,
    /// `oneOf`
    pub one_of: Vec<Schema>,
    /// `not`
    pub not: Option<Box<Schema>>,
}

/// One entry of `x-kubernetes-validations`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rule {
    /// The CEL expression over `self` (and `oldSelf`).
    pub rule: String,
    /// The message for the user when it is false.
    pub message: Option<String>,
    /// A CEL expression that computes the message.
    pub message_expression: Option<String>,
    /// The reason of the reported cause; `FieldValueInvalid` when unset.
    pub reason: Option<String>,
    /// Path of the field to blame, relative to the schema of the rule.
    pub field_path: Option<String>,
    /// Whether `oldSelf` is optional, so that the rule also runs at creation.
    pub optional_old_self: Option<bool>,
}

/// How a list merges in server-side apply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ListType {
    /// The list is replaced as a whole: what Kubernetes does where nothing is said.
    #[default]
    Atomic,
    /// Each scalar item is owned on its own.
    Set,
    /// Items are objects that are identified by these keys.
    Map(Vec<String>),
}

/// How an object merges in server-side apply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MapType {
    /// Each field is owned on its own.
    #[default]
    Granular,
    /// The object is replaced as a whole.
    Atomic,
}

/// What `patchStrategy` and `patchMergeKey` say of a field of a built-in kind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PatchStrategy {
    /// `merge`: items are merged by `merge_key`, or as a set of scalars without one.
    pub merge: bool,
    /// `retainKeys`: only the keys that the patch names survive.
    pub retain_keys: bool,
    /// The field that identifies an item.
    pub merge_key: Option<String>,
}
