//! How long certificates of a cluster have to be good.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::GROUP;
use super::configuration_policy::{NamespaceSelector, severity};
use super::configuration_policy_status::EvaluationHistory;
use super::word::RemediationAction;
use crate::TypeTag;
use crate::kind::kind;
use crate::meta::{ObjectMeta, Unknown};

/// Required lifetimes of certificates in Secrets of a cluster. It only informs, and changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CertificatePolicy {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// Selection of certificates, and their required lifetimes.
    #[serde(default)]
    pub spec: CertificatePolicySpec,
    /// Result of the last evaluation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<CertificatePolicyStatus>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    CertificatePolicy: GROUP, "v1", "certificatepolicies", "certificatepolicy", Namespaced;
    spec: CertificatePolicySpec;
    status: CertificatePolicyStatus;
    columns: [
        ("Compliance state", "string", ".status.compliant"),
    ];
}

/// Selection of certificates, and their required lifetimes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CertificatePolicySpec {
    /// Kept as it is written; violations are never repaired.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remediation_action: Option<RemediationAction>,
    /// Severity of a violation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "severity")]
    pub severity: Option<String>,
    /// Namespaces whose Secrets are checked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<NamespaceSelector>,
    /// Labels that the Secrets have to have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub label_selector: BTreeMap<String, String>,
    /// Minimum remaining lifetime of certificates, such as 672h.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration")]
    pub minimum_duration: Option<String>,
    /// The same for those of certificate authorities.
    #[serde(
        default,
        rename = "minimumCADuration",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(schema_with = "duration")]
    pub minimum_ca_duration: Option<String>,
    /// Maximum total lifetime of certificates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "duration")]
    pub maximum_duration: Option<String>,
    /// The same for those of certificate authorities.
    #[serde(
        default,
        rename = "maximumCADuration",
        skip_serializing_if = "Option::is_none"
    )]
    #[schemars(schema_with = "duration")]
    pub maximum_ca_duration: Option<String>,
    /// A pattern that every name of a certificate has to match.
    #[serde(
        default,
        rename = "allowedSANPattern",
        skip_serializing_if = "Option::is_none"
    )]
    pub allowed_san_pattern: Option<String>,
    /// A pattern that no name of a certificate may match.
    #[serde(
        default,
        rename = "disallowedSANPattern",
        skip_serializing_if = "Option::is_none"
    )]
    pub disallowed_san_pattern: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

fn duration(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "string",
        "pattern": "^(?:(?:(?:[0-9]+(?:.[0-9])?)(?:h|m|s|(?:ms)|(?:us)|(?:ns)))+)+$",
    })
}

/// Result of the last evaluation.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CertificatePolicyStatus {
    /// Compliance of all certificates together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compliant: Option<String>,
    /// Compliance of the certificates of each namespace.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub compliancy_details: BTreeMap<String, NamespaceCertificates>,
    /// Results of the last evaluations, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<EvaluationHistory>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Compliance of the certificates of one namespace.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct NamespaceCertificates {
    /// Number of certificates that violate the policy.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub non_compliant_certificates: u32,
    /// These certificates, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub non_compliant_certificates_list: BTreeMap<String, BadCertificate>,
    /// The same in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A certificate that is not as the policy says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct BadCertificate {
    /// The Secret that it is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_name: Option<String>,
    /// Time when it expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expiration: Option<String>,
    /// True for the certificate of a certificate authority.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ca: bool,
    /// Total lifetime of the certificate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<String>,
    /// The names that it is for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sans: Vec<String>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde calls it with a reference"
)]
fn is_zero(number: &u32) -> bool {
    *number == 0
}
