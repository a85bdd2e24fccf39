//! What objects of a cluster have to be like: the template that most policies consist of.

use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::GROUP;
use super::configuration_policy_status::ConfigurationPolicyStatus;
use super::word::RemediationAction;
use crate::TypeTag;
use crate::kind::kind;
use crate::meta::{self, ObjectMeta, Unknown};
use crate::open_enum::open_enum;
use crate::structural;

/// Required state of objects of a cluster.
///
/// It is evaluated on the cluster that it is on. With `inform` it reports, with `enforce` it repairs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ConfigurationPolicy {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// Objects, their required state, and the reaction to violations.
    #[serde(default)]
    pub spec: ConfigurationPolicySpec,
    /// Result of the last evaluation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<ConfigurationPolicyStatus>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    ConfigurationPolicy: GROUP, "v1", "configurationpolicies", "configurationpolicy", Namespaced;
    spec: ConfigurationPolicySpec;
    status: ConfigurationPolicyStatus;
    columns: [
        ("Compliance state", "string", ".status.compliant"),
    ];
}

/// Objects, their required state, and the reaction to violations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = one_list)]
pub struct ConfigurationPolicySpec {
    /// Messages by state, as Go templates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_message: Option<CustomMessage>,
    /// Severity of a violation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "severity")]
    pub severity: Option<String>,
    /// Inform reports violations, Enforce repairs them.
    #[serde(default)]
    #[schemars(required, transform = structural::filled_with("inform"))]
    pub remediation_action: RemediationAction,
    /// Namespaces that objects without one are looked for in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<NamespaceSelector>,
    /// The objects.
    #[serde(
        rename = "object-templates",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub object_templates: Option<Vec<ObjectTemplate>>,
    /// The objects, as a Go template that writes the list of them in YAML.
    #[serde(
        rename = "object-templates-raw",
        default,
        skip_serializing_if = "Option::is_none"
    )]
    pub object_templates_raw: Option<String>,
    /// Interval of evaluation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evaluation_interval: Option<EvaluationInterval>,
    /// Treatment of objects when the policy is deleted or no longer contains them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = structural::filled_with("None"))]
    pub prune_object_behavior: Option<PruneObjectBehavior>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Objects are listed in one of two ways.
fn one_list(schema: &mut Schema) {
    schema.insert(
        "oneOf".to_owned(),
        json!([{"required": ["object-templates"]}, {"required": ["object-templates-raw"]}]),
    );
}

pub(super) fn severity(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "enum": ["low", "Low", "medium", "Medium", "high", "High", "critical", "Critical"],
    })
}

/// Messages by state, as Go templates over `.DefaultMessage` and `.Policy`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub struct CustomMessage {
    /// Message for compliance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compliant: Option<String>,
    /// Message for violations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noncompliant: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Interval of evaluation: a duration, `never`, or `watch`, which is the default.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub struct EvaluationInterval {
    /// While it is compliant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "interval")]
    pub compliant: Option<String>,
    /// While it is not compliant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "interval")]
    pub noncompliant: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

fn interval(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "pattern": "^(?:(?:(?:[0-9]+(?:.[0-9])?)(?:h|m|s|(?:ms)|(?:us)|(?:ns)))|never|watch)+$",
    })
}

open_enum! {
    /// Treatment of objects when a policy is deleted or no longer contains them.
    pub enum PruneObjectBehavior {
        /// They stay.
        None = "None",
        /// They are deleted.
        DeleteAll = "DeleteAll",
        /// Those that the policy has created are deleted.
        DeleteIfCreated = "DeleteIfCreated",
    }
}

/// Namespaces by labels and names. Without labels and without names, none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceSelector {
    /// Labels that a namespace has to have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "labels")]
    pub match_labels: Option<Value>,
    /// Requirements on the labels of a namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "meta::requirements")]
    pub match_expressions: Option<Value>,
    /// Patterns of names that are selected.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "patterns")]
    pub include: Vec<String>,
    /// Patterns of names that are not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "patterns")]
    pub exclude: Vec<String>,
    /// Selection of namespaces that are being deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = structural::filled_with("Default"))]
    pub terminating_inclusion: Option<TerminatingInclusion>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

fn labels(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "object", "additionalProperties": {"type": "string"}})
}

fn patterns(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "array", "items": {"type": "string", "minLength": 1}})
}

open_enum! {
    /// Selection of namespaces that are being deleted.
    pub enum TerminatingInclusion {
        /// As the agent decides: they are.
        Default = "Default",
        /// If the selector matches.
        IfMatch = "IfMatch",
        /// Never.
        Never = "Never",
    }
}

/// Required state of one object, or of each of several.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ObjectTemplate {
    /// Required state: musthave, mustonlyhave or mustnothave.
    pub compliance_type: ComplianceType,
    /// The same for labels and annotations; absent, what holds for the rest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "metadata_compliance_type")]
    pub metadata_compliance_type: Option<ComplianceType>,
    /// Option to delete objects that cannot be updated, and create them again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = structural::filled_with("None"))]
    pub recreate_option: Option<RecreateOption>,
    /// Defined part of the object.
    #[schemars(schema_with = "meta::any_object")]
    pub object_definition: Value,
    /// Selects objects by labels where the definition has no name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "meta::label_selector")]
    pub object_selector: Option<Value>,
    /// Where differences from the required state are recorded. Absent means InStatus, but
    /// for kinds and templates with sensitive data, whose differences are redacted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub record_diff: Option<RecordDiff>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Required state of an object. Kept as it is written.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ComplianceType(pub String);

impl ComplianceType {
    /// Returns true if the object may not exist.
    pub fn is_must_not_have(&self) -> bool {
        self.0.eq_ignore_ascii_case("mustnothave")
    }

    /// Returns true if the object may have nothing but what is defined.
    pub fn is_must_only_have(&self) -> bool {
        self.0.eq_ignore_ascii_case("mustonlyhave")
    }
}

impl fmt::Display for ComplianceType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl JsonSchema for ComplianceType {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ComplianceType".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "enum": [
                "MustHave", "Musthave", "musthave",
                "MustOnlyHave", "Mustonlyhave", "mustonlyhave",
                "MustNotHave", "Mustnothave", "mustnothave",
            ],
        })
    }
}

fn metadata_compliance_type(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "enum": [
            "MustHave", "Musthave", "musthave",
            "MustOnlyHave", "Mustonlyhave", "mustonlyhave",
        ],
    })
}

open_enum! {
    /// Option to delete objects that cannot be updated, and create them again.
    pub enum RecreateOption {
        /// It is not.
        None = "None",
        /// If an update is refused because fields are immutable.
        IfRequired = "IfRequired",
        /// Always, instead of an update.
        Always = "Always",
    }
}

open_enum! {
    /// Where differences from the required state are recorded.
    pub enum RecordDiff {
        /// In the log of the agent.
        Log = "Log",
        /// In the status of the policy.
        InStatus = "InStatus",
        /// Nowhere.
        None = "None",
    }
}
