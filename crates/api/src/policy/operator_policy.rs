//! Which operators a cluster has to have.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::GROUP;
use super::configuration_policy::{ComplianceType, severity};
use super::configuration_policy_status::{EvaluationHistory, RelatedObject};
use super::word::RemediationAction;
use crate::TypeTag;
use crate::kind::kind;
use crate::meta::{self, Condition, ObjectMeta, Time, Unknown};

/// An operator that a cluster has to have, or must not have.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperatorPolicy {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// The operator and its desired state.
    #[serde(default)]
    pub spec: OperatorPolicySpec,
    /// Result of the last evaluation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<OperatorPolicyStatus>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    OperatorPolicy: GROUP, "v1beta1", "operatorpolicies", "operatorpolicy", Namespaced;
    spec: OperatorPolicySpec;
    status: OperatorPolicyStatus;
    columns: [
        ("Compliance state", "string", ".status.compliant"),
    ];
}

/// The operator and its desired state.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperatorPolicySpec {
    /// Inform reports violations, Enforce repairs them.
    #[serde(default)]
    #[schemars(required)]
    pub remediation_action: RemediationAction,
    /// Severity of a violation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "severity")]
    pub severity: Option<String>,
    /// Required state: musthave or mustnothave.
    #[serde(default)]
    #[schemars(required)]
    pub compliance_type: ComplianceType,
    /// The OperatorGroup, as far as it is defined.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "meta::any_object")]
    pub operator_group: Option<Value>,
    /// The Subscription, as far as it is defined.
    #[serde(default)]
    #[schemars(required, schema_with = "meta::any_object")]
    pub subscription: Value,
    /// Versions that may be installed; empty for any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<String>,
    /// Approval of upgrades: Automatic or None.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "approval")]
    pub upgrade_approval: Option<String>,
    /// Objects removed with the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "meta::any_object")]
    pub removal_behavior: Option<Value>,
    /// States that are violations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "meta::any_object")]
    pub compliance_config: Option<Value>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

fn approval(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "enum": ["None", "Automatic"]})
}

/// Result of the last evaluation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OperatorPolicyStatus {
    /// Compliance of the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compliant: Option<String>,
    /// The generation of the policy that was evaluated last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "generation")]
    pub observed_generation: Option<i64>,
    /// Conditions of the operator.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "meta::conditions")]
    pub conditions: Vec<Condition>,
    /// Label by which the Operator Lifecycle Manager marks the objects of the operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_subscription_label: Option<String>,
    /// Enforced policies about the same operator, as `name.namespace`, this one among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overlapping_policies: Vec<String>,
    /// Time after which a Subscription with unsatisfiable constraints is repaired, if it still has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "meta::time")]
    pub subscription_intervention_time: Option<Time>,
    /// The evaluated objects.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub related_objects: Vec<RelatedObject>,
    /// Results of the last evaluations, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<EvaluationHistory>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

fn generation(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "integer", "format": "int64"})
}
