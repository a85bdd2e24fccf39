//! Policies: what clusters have to be like, and how far that is enforced.

mod certificate_policy;
mod configuration_policy;
mod configuration_policy_status;
mod dependency;
pub mod names;
mod operator_policy;
mod placement_binding;
mod placement_rule;
mod policy_automation;
mod policy_set;
mod root_policy;
mod root_policy_status;
mod word;

pub use certificate_policy::{
    BadCertificate, CertificatePolicy, CertificatePolicySpec, CertificatePolicyStatus,
    NamespaceCertificates,
};
pub use configuration_policy::{
    ComplianceType, ConfigurationPolicy, ConfigurationPolicySpec, CustomMessage,
    EvaluationInterval, NamespaceSelector, ObjectTemplate, PruneObjectBehavior, RecordDiff,
    RecreateOption, TerminatingInclusion,
};
pub use configuration_policy_status::{
    ComplianceCondition, CompliancyDetail, ConfigurationPolicyStatus, EvaluationHistory,
    ObjectName, ObjectProperties, ObjectReference, RelatedObject, TemplateCompliance, Validity,
};
pub use dependency::PolicyDependency;
pub use operator_policy::{OperatorPolicy, OperatorPolicySpec, OperatorPolicyStatus};
pub use placement_binding::{
    BindingOverrides, PlacementBinding, PlacementBindingStatus, PlacementSubject, PolicySubject,
    SubFilter,
};
pub use placement_rule::{
    PlacementRule, PlacementRuleDecision, PlacementRuleSpec, PlacementRuleStatus,
};
pub use policy_automation::{
    AutomationDef, AutomationEvent, AutomationMode, PolicyAutomation, PolicyAutomationSpec,
    PolicyAutomationStatus,
};
pub use policy_set::{
    ExcludedClusters, PolicyExclusion, PolicySet, PolicySetPlacement, PolicySetSpec,
    PolicySetStatus,
};
pub use root_policy::{HubTemplateOptions, Policy, PolicySpec, PolicyTemplate};
pub use root_policy_status::{
    ClusterCompliance, ComplianceHistory, ExcludedCluster, PolicyPlacement, PolicyStatus,
    RemainingBinding, TemplateDetails, TemplateMeta,
};
pub use word::{ComplianceState, RemediationAction, RolloutStatus};

/// The API group of these kinds.
pub const GROUP: &str = "policy.open-cluster-management.io";
/// The API group of PlacementRule, which came before Placement.
pub const APPS_GROUP: &str = "apps.open-cluster-management.io";

/// The definition of a kind that policies have as templates: a label says so.
pub fn template_definition<K: crate::Kind>() -> serde_json::Value {
    let mut definition = crate::definition::<K>();
    definition["metadata"]["labels"] =
        serde_json::json!({names::label::POLICY_TYPE: names::POLICY_TYPE_TEMPLATE});
    definition
}
