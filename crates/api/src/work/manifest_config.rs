//! How single objects of a work are applied and watched.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::names;
use crate::meta::Unknown;
use crate::open_enum::open_enum;
use crate::structural::{filled_with, keyed_by, rule};

/// Options for applying and watching the objects that an identifier matches.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ManifestConfig {
    /// Selection of objects of the work.
    pub resource_identifier: ResourceIdentifier,
    /// Values of the objects to report in the status of the work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub feedback_rules: Vec<FeedbackRule>,
    /// How values are read: Poll, at intervals; Watch, as soon as they change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(transform = filled_with("Poll"))]
    pub feedback_scrape_type: Option<FeedbackScrapeType>,
    /// Update strategy of the objects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_strategy: Option<UpdateStrategy>,
    /// Rules that derive conditions from the objects. Rules of one condition have to hold together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub condition_rules: Vec<ConditionRule>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Objects of a work.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ResourceIdentifier {
    /// API group of the objects; empty for the core group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Resource of the objects in plural, such as deployments.
    pub resource: String,
    /// Name of the object. In manifestConfigs it may have asterisks, for any text.
    pub name: String,
    /// Namespace of the object; empty if it has none. In manifestConfigs it may have asterisks, for
    /// any text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Values of an object to report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FeedbackRule {
    /// WellKnownStatus: the values that are usually wanted of objects of its kind. JSONPaths: those
    /// that jsonPaths names.
    #[serde(rename = "type")]
    pub kind: FeedbackType,
    /// Paths to values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = keyed_by("name"))]
    pub json_paths: Vec<JsonPath>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

open_enum! {
    /// Options for reporting feedback values.
    pub enum FeedbackType {
        /// By the kind of the object.
        WellKnownStatus = "WellKnownStatus",
        /// By paths.
        JsonPaths = "JSONPaths",
    }
}

/// A path to a value.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct JsonPath {
    /// Name of the value in the status of the work.
    pub name: String,
    /// Required version of the object; any if empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// JSONPath of the value in the object, as in kubectl.
    pub path: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

open_enum! {
    /// Method of reading values.
    pub enum FeedbackScrapeType {
        /// From time to time.
        Poll = "Poll",
        /// As soon as they change.
        Watch = "Watch",
    }
}

/// Update strategy of an object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdateStrategy {
    /// Update: changes on the cluster are undone. CreateOnly: once created, the object is left
    /// alone. ServerSideApply: only fields that the work has are kept. ReadOnly: the object is only
    /// watched.
    #[serde(default, rename = "type")]
    #[schemars(transform = filled_with("Update"))]
    pub kind: UpdateStrategyType,
    /// Settings for ServerSideApply.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_side_apply: Option<ServerSideApply>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

open_enum! {
    /// The ways an object is brought to the cluster.
    pub enum UpdateStrategyType {
        /// Changes on the cluster are undone.
        Update = "Update",
        /// Once created, it is left alone.
        CreateOnly = "CreateOnly",
        /// Only fields that the work has are kept.
        ServerSideApply = "ServerSideApply",
        /// It is only watched.
        ReadOnly = "ReadOnly",
    }
}

/// Options of server-side apply.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ServerSideApply {
    /// True to take over fields that others manage. If false, they are a conflict, and the
    /// object is not applied.
    #[serde(default)]
    pub force: bool,
    /// Field manager; begins with work-agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^work-agent"), transform = filled_with("work-agent"))]
    pub field_manager: Option<String>,
    /// Fields that are left to the cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(transform = keyed_by("condition"))]
    pub ignore_fields: Vec<IgnoreField>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Fields of an object that are left to the cluster.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IgnoreField {
    /// OnSpokePresent: the fields are set when the object is created, and never again.
    /// OnSpokeChange: they are set again only when the work changes.
    #[serde(default)]
    #[schemars(transform = filled_with("OnSpokePresent"))]
    pub condition: IgnoreFieldsCondition,
    /// The fields, as JSONPaths of kubectl.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub json_paths: Vec<String>,
    /// The fields, as JSON Pointers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub json_pointers: Vec<String>,
    /// The fields, as paths of jq.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jq_path_expressions: Vec<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

open_enum! {
    /// Time since which fields are left to the cluster.
    pub enum IgnoreFieldsCondition {
        /// Since the object exists.
        OnSpokePresent = "OnSpokePresent",
        /// Since the cluster changed them.
        OnSpokeChange = "OnSpokeChange",
    }
}

/// A rule that derives a condition from an object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(
    transform = rule(
        "self.type != 'CEL' || (has(self.condition) && self.condition != '')",
        "Condition is required for CEL rules"
    ),
    transform = not_reserved
)]
pub struct ConditionRule {
    /// The condition that is set on the object, and on the work for all its objects. An object that
    /// is Complete is no longer touched, and neither is a work. Well-known rules set Complete by
    /// default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 316))]
    pub condition: Option<String>,
    /// CEL: what celExpressions say. WellKnownConditions, or WellKnownCompletions: what is known
    /// about objects of the kind, such as Jobs and Pods.
    #[serde(rename = "type")]
    pub kind: ConditionRuleType,
    /// Expressions over object; all of them have to be true.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cel_expressions: Vec<CelExpression>,
    /// The message of the condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// An expression over object and result whose text is the message of the condition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_expression: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Conditions that the agent sets itself are no conclusions.
fn not_reserved(schema: &mut Schema) {
    let quoted = names::condition::RESERVED
        .map(|name| format!("'{name}'"))
        .join(", ");
    let listed = names::condition::RESERVED.join(", ");
    rule(
        format!("!has(self.condition) || !(self.condition in [{quoted}])"),
        format!("conditions that the agent sets itself cannot be concluded by rules: {listed}"),
    )(schema);
}

open_enum! {
    /// Operator of a rule.
    pub enum ConditionRuleType {
        /// From what is known about the kind.
        WellKnownConditions = "WellKnownConditions",
        /// Another name for the same.
        WellKnownCompletions = "WellKnownCompletions",
        /// From expressions.
        Cel = "CEL",
    }
}

/// An expression in CEL: a text, or an object that has it as `expression`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum CelExpression {
    /// The text itself.
    Text(String),
    /// An object with the text.
    Object {
        /// The text.
        expression: String,
        /// Fields that this version does not know.
        #[serde(flatten)]
        other: Unknown,
    },
    /// Something else, which no schema of ours admits whole.
    Other(Value),
}

impl CelExpression {
    /// The expression, in whichever form it was given.
    pub fn expression(&self) -> Option<&str> {
        match self {
            Self::Text(expression) | Self::Object { expression, .. } => Some(expression),
            Self::Other(_) => None,
        }
    }
}

impl JsonSchema for CelExpression {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "CelExpression".into()
    }

    /// Two types in one cannot be said in a structural schema. What can be said is that an object
    /// has an expression; numbers and the like are left to the reader.
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "An expression in CEL: a text, or an object that has it as expression.",
            "x-kubernetes-preserve-unknown-fields": true,
            "required": ["expression"],
            "maxItems": 0,
            "properties": {
                "expression": {"type": "string", "description": "The expression."},
            },
        })
    }
}
