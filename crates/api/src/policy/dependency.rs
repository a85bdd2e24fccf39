//! What a policy waits for.

use schemars::{JsonSchema, Schema};
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::word::ComplianceState;
use crate::meta::Unknown;

/// An object that has to be in a state of compliance before a template is applied.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = own_namespace_only)]
pub struct PolicyDependency {
    /// Group and version of the object.
    pub api_version: String,
    /// Kind of the object, such as Policy, PolicySet or ConfigurationPolicy.
    pub kind: String,
    /// Name of the object.
    pub name: String,
    /// Namespace of the object. Kinds that clusters evaluate are in the namespace of the cluster, and
    /// have none here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The state that the object has to be in.
    pub compliance: ComplianceState,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Templates are looked up in the namespace of the cluster, whatever a dependency names.
fn own_namespace_only(schema: &mut Schema) {
    let evaluated = json!(["CertificatePolicy", "ConfigurationPolicy"]);
    schema.insert(
        "oneOf".to_owned(),
        json!([
            {"properties": {"kind": {"enum": evaluated}, "namespace": {"maxLength": 0}}},
            {"properties": {"kind": {"not": {"enum": evaluated}}}},
        ]),
    );
}
