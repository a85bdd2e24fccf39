//! A policy: templates of what clusters evaluate.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::GROUP;
use super::dependency::PolicyDependency;
use super::root_policy_status::PolicyStatus;
use super::word::RemediationAction;
use crate::TypeTag;
use crate::cluster::RolloutStrategy;
use crate::kind::kind;
use crate::meta::{self, ObjectMeta, Unknown};

/// Required state of clusters.
///
/// A root policy is what a person writes. The hub replicates it into the namespaces of the clusters that
/// placements select, and brings changes to them as a rollout strategy says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Policy {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// Policy templates, and the reaction to violations.
    pub spec: PolicySpec,
    /// Results of clusters, and progress of the rollout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<PolicyStatus>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    Policy: GROUP, "v1", "policies", "policy", Namespaced;
    spec: PolicySpec;
    status: PolicyStatus;
    short: ["plc"];
    columns: [
        ("Remediation action", "string", ".spec.remediationAction"),
        ("Compliance state", "string", ".status.compliant"),
        ("Rollout status", "string", ".status.rolloutStatus"),
        ("Age", "date", ".metadata.creationTimestamp"),
    ];
}

/// Policy templates, and the reaction to violations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicySpec {
    /// Removes the policy from all clusters while it is true.
    pub disabled: bool,
    /// Copies all labels and annotations of the root policy to its replicas. If false, only those of the
    /// policy framework are copied. Absent means true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copy_policy_metadata: Option<bool>,
    /// Inform reports violations, Enforce repairs them. It overrides what each template says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediation_action: Option<RemediationAction>,
    /// Objects that are created on each cluster, and evaluated there.
    #[serde(rename = "policy-templates")]
    pub policy_templates: Vec<PolicyTemplate>,
    /// Dependencies of all templates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<PolicyDependency>,
    /// Options for templates that are resolved on the hub.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hub_template_options: Option<HubTemplateOptions>,
    /// Rollout strategy: order and pace of enforcing a new version. Until its turn a cluster has the version as
    /// inform. Absent, and for policies that only inform, every cluster has it at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rollout_strategy: Option<RolloutStrategy>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// An object that is created on each cluster, and evaluated there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PolicyTemplate {
    /// The object, such as a ConfigurationPolicy.
    #[schemars(schema_with = "meta::any_object")]
    pub object_definition: Value,
    /// Dependencies of this template, besides those of the policy.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub extra_dependencies: Vec<PolicyDependency>,
    /// Reports Compliant instead of Pending while dependencies are not met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignore_pending: Option<bool>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Options for templates that are resolved on the hub.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubTemplateOptions {
    /// Service account in the namespace of the policy, whose rights decide what templates can look up.
    /// Without one they can look up objects of that namespace, and the ManagedCluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_account_name: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

impl Policy {
    /// The status, or an empty one.
    pub fn status_or_default(&self) -> std::borrow::Cow<'_, PolicyStatus> {
        match &self.status {
            Some(status) => std::borrow::Cow::Borrowed(status),
            None => std::borrow::Cow::Owned(PolicyStatus::default()),
        }
    }
}
