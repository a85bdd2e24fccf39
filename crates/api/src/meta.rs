//! What many kinds share: types of Kubernetes with the schemas that definitions give them.

use std::fmt;

use schemars::{Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

pub use k8s_openapi::ByteString;
pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::{
    Condition, LabelSelector, LabelSelectorRequirement, MicroTime, ObjectMeta, Time,
};
pub use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// Fields that a type does not know, kept so that writing an object loses nothing.
pub type Unknown = Map<String, Value>;

/// The status of a condition that holds.
pub const TRUE: &str = "True";
/// The status of a condition that does not hold.
pub const FALSE: &str = "False";
/// The status of a condition that cannot be judged.
pub const UNKNOWN: &str = "Unknown";

/// Sets a condition, and returns true if that changes anything. The time of the last transition
/// changes with the status only.
pub fn set_condition(conditions: &mut Vec<Condition>, condition: Condition) -> bool {
    let known = conditions
        .iter_mut()
        .find(|known| known.type_ == condition.type_);
    let Some(known) = known else {
        conditions.push(condition);
        return true;
    };
    let mut new = condition;
    if known.status == new.status {
        new.last_transition_time = known.last_transition_time.clone();
    }
    if *known == new {
        return false;
    }
    *known = new;
    true
}

/// The condition of that type.
pub fn condition<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == kind)
}

/// Returns true if there is a condition of that type, and its status is True.
pub fn is_true(conditions: &[Condition], kind: &str) -> bool {
    condition(conditions, kind).is_some_and(|condition| condition.status == TRUE)
}

/// A name with an optional domain before it, as keys of labels have.
pub(crate) const QUALIFIED_NAME: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$";
/// Pattern of reasons of conditions.
const REASON: &str = "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$";
/// Pattern of quantities.
const QUANTITY: &str = r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$";

/// An amount of a resource, as text with a unit or as a plain number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Quantity {
    /// Such as `1500m` or `64Gi`.
    Text(String),
    /// Such as `4`.
    Number(Number),
}

impl fmt::Display for Quantity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => formatter.write_str(text),
            Self::Number(number) => number.fmt(formatter),
        }
    }
}

/// The schema of a list of conditions, one of each type.
pub(crate) fn conditions(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "description": "An observed aspect of the state of the object.",
            "required": ["lastTransitionTime", "message", "reason", "status", "type"],
            "properties": {
                "lastTransitionTime": {
                    "type": "string",
                    "format": "date-time",
                    "description": "Time when the status changed last.",
                },
                "message": {
                    "type": "string",
                    "maxLength": 32768,
                    "description": "Message for people; may be empty.",
                },
                "observedGeneration": {
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                    "description": "The generation of the object that was observed. The condition is \
                        out of date while it is lower than metadata.generation.",
                },
                "reason": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": REASON,
                    "description": "Reason for the status, as one word for programs.",
                },
                "status": {
                    "type": "string",
                    "enum": [TRUE, FALSE, UNKNOWN],
                    "description": "True, False or Unknown.",
                },
                "type": {
                    "type": "string",
                    "maxLength": 316,
                    "pattern": QUALIFIED_NAME,
                    "description": "Type of the condition.",
                },
            },
        },
    })
}

/// The schema of a selector by labels.
pub(crate) fn label_selector(generator: &mut SchemaGenerator) -> Schema {
    let mut expressions = requirements(generator);
    expressions.insert("x-kubernetes-list-type".into(), "atomic".into());
    json_schema!({
        "type": "object",
        "x-kubernetes-map-type": "atomic",
        "properties": {
            "matchExpressions": expressions,
            "matchLabels": {
                "type": "object",
                "description": "Required labels with their exact values.",
                "additionalProperties": {"type": "string"},
            },
        },
    })
}

/// The schema of a list of requirements on labels or claims.
pub(crate) fn requirements(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "description": "Requirements, all of which must be met.",
        "items": {
            "type": "object",
            "description": "A requirement on the value of one key.",
            "required": ["key", "operator"],
            "properties": {
                "key": {"type": "string", "description": "The key to compare."},
                "operator": {
                    "type": "string",
                    "description": "In and NotIn compare with values; Exists and DoesNotExist \
                        check the key alone. Exist is read as Exists.",
                },
                "values": {
                    "type": "array",
                    "x-kubernetes-list-type": "atomic",
                    "description": "Values for In and NotIn; empty for the other operators.",
                    "items": {"type": "string"},
                },
            },
        },
    })
}

/// The schema of amounts of resources by name.
pub(crate) fn quantities(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "object",
        "additionalProperties": {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": QUANTITY,
            "x-kubernetes-int-or-string": true,
        },
    })
}

/// The schema of a number or a percentage, which as text looks like this.
pub(crate) fn int_or_string(pattern: &str) -> Schema {
    json_schema!({
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "pattern": pattern,
        "x-kubernetes-int-or-string": true,
    })
}

/// The schema of a moment.
pub(crate) fn time(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "format": "date-time"})
}

/// The schema of bytes, which are base64 in JSON.
pub(crate) fn bytes(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "format": "byte"})
}

/// The schema of an object of Kubernetes that this version does not look into.
pub(crate) fn any_object(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
}

/// The schema of a reference to a role.
pub(crate) fn role_reference(_: &mut SchemaGenerator) -> Schema {
    let text = |what: &str| json_schema!({"type": "string", "description": what});
    json_schema!({
        "type": "object",
        "properties": {
            "apiGroup": text("Group of the role."),
            "kind": text("Role or ClusterRole."),
            "name": text("Name of the role."),
        },
        "required": ["apiGroup", "kind", "name"],
        "x-kubernetes-preserve-unknown-fields": true,
    })
}

/// The schema of a list of whole objects of any kind.
pub(crate) fn manifests(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "items": {
            "type": "object",
            "description": "A Kubernetes object of any kind.",
            "x-kubernetes-embedded-resource": true,
            "x-kubernetes-preserve-unknown-fields": true,
        },
    })
}
