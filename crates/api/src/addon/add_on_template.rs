//! What the agent of an add-on consists of.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::GROUP;
use super::config::Subject;
use crate::TypeTag;
use crate::kind::kind;
use crate::meta::{self, ObjectMeta, Unknown};
use crate::open_enum::open_enum;

/// Manifests of the agent of an add-on, and its access to the hub.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AddOnTemplate {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// The objects of the agent, and its access to the hub.
    pub spec: AddOnTemplateSpec,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    AddOnTemplate: GROUP, "v1alpha1", "addontemplates", "addontemplate", Cluster;
    spec: AddOnTemplateSpec;
    also_served: ["v1beta1"];
    columns: [("ADDON NAME", "string", ".spec.addonName")];
}

/// The objects of an add-on's agent, and its access to the hub.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AddOnTemplateSpec {
    /// Name of the add-on.
    pub addon_name: String,
    /// Objects that clusters with the add-on get, whole.
    #[schemars(schema_with = "meta::manifests")]
    pub agent_manifests: Vec<Value>,
    /// Certificates of the agent for the hub.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub registration: Vec<RegistrationSpec>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A certificate of an agent for the hub.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RegistrationSpec {
    /// KubeClient: one for the hub's API. CustomSigner: one of another signer.
    #[serde(rename = "type")]
    pub kind: RegistrationType,
    /// Permissions of the agent on the hub, for KubeClient.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kube_client: Option<KubeClientRegistration>,
    /// Signer of the certificate, for CustomSigner.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub custom_signer: Option<CustomSignerRegistration>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

open_enum! {
    /// Purpose of a certificate.
    pub enum RegistrationType {
        /// The hub's API.
        KubeClient = "KubeClient",
        /// Something else.
        CustomSigner = "CustomSigner",
    }
}

/// Permissions of an agent on the hub.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KubeClientRegistration {
    /// Roles that the agent is bound to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hub_permissions: Vec<HubPermission>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A role that an agent is bound to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HubPermission {
    /// CurrentCluster: in the namespace of its cluster. SingleNamespace: in a namespace that is named.
    #[serde(rename = "type")]
    pub kind: HubPermissionBinding,
    /// The role.
    #[schemars(schema_with = "meta::role_reference")]
    pub role_ref: Value,
    /// The namespace, for SingleNamespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub single_namespace: Option<SingleNamespaceBinding>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

open_enum! {
    /// Scope of a role binding of an agent.
    pub enum HubPermissionBinding {
        /// In the namespace of its cluster.
        CurrentCluster = "CurrentCluster",
        /// In another one.
        SingleNamespace = "SingleNamespace",
    }
}

/// The namespace in which an agent is bound to a role.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SingleNamespaceBinding {
    /// Its name.
    pub namespace: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Signer of certificates of an agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CustomSignerRegistration {
    /// The signer that is asked.
    #[schemars(length(min = 5, max = 571))]
    pub signer_name: String,
    /// User and groups of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<Subject>,
    /// The Secret with the authority that signs.
    #[serde(rename = "signingCA")]
    pub signing_ca: SigningCa,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// A Secret with an authority, as ca.crt and ca.key.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SigningCa {
    /// Its namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}
