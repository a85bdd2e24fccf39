//! Objects that steps before rendering consist of: where an Application comes from.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::HISTORY_GROUP;
use crate::TypeTag;
use crate::kind::kind;
use crate::meta::{Condition, ObjectMeta, Unknown, any_object, conditions};

/// An Application that a Helm chart renders to. Its components and policies are written to the Application that
/// owns this object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct HelmTemplate {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// Input of the template.
    pub spec: HelmTemplateSpec,
    /// Result of rendering.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<ApplicationTemplateStatus>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    HelmTemplate: HISTORY_GROUP, "v1alpha1", "helmtemplates", "helmtemplate", Namespaced;
    spec: HelmTemplateSpec;
    status: ApplicationTemplateStatus;
    categories: ["oam"];
    columns: [
        ("Source", "string", ".spec.source"),
        ("Progress", "string", ".status.conditions[?(@.type==\"workflow-progress\")].reason"),
        ("Age", "date", ".metadata.creationTimestamp"),
    ];
}

/// An Application that is built from a folder and patched. Its components and policies are written to the
/// Application that owns this object.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KustomizePatch {
    /// Group, version and kind.
    #[serde(flatten)]
    #[schemars(skip)]
    pub types: TypeTag<Self>,
    /// Name, labels and so on.
    #[serde(default)]
    #[schemars(skip)]
    pub metadata: ObjectMeta,
    /// Input of the overlay.
    pub spec: KustomizePatchSpec,
    /// Result of building.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<ApplicationTemplateStatus>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

kind! {
    KustomizePatch: HISTORY_GROUP, "v1alpha1", "kustomizepatches", "kustomizepatch", Namespaced;
    spec: KustomizePatchSpec;
    status: ApplicationTemplateStatus;
    categories: ["oam"];
    columns: [
        ("Source", "string", ".spec.source"),
        ("Progress", "string", ".status.conditions[?(@.type==\"workflow-progress\")].reason"),
        ("Age", "date", ".metadata.creationTimestamp"),
    ];
}

/// Source of files.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct TemplateSource {
    /// The address: a git repository, an archive that ends in .tgz or .tar.gz, an OCI artifact (oci://host/name), or a Helm
    /// repository if a chart is named.
    pub source: String,
    /// The folder of the chart or kustomization in the source; its root if absent.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub path: String,
    /// A branch, tag or commit of a git repository; the tag of an OCI artifact; the version, or a range of versions, of a
    /// chart in a Helm repository. If absent, what the source shows first.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub revision: String,
    /// Required version of the source: sha256:… of an archive, sha256:… of the manifest of an OCI artifact, or the commit of a git
    /// repository. A source that is something else is refused.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// The Secret with credentials: username and password, token, bearerToken, ca.crt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_ref: Option<TemplateSecret>,
}

/// A Secret in the same namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TemplateSecret {
    /// Name of the Secret.
    pub name: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Input of a HelmTemplate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HelmTemplateSpec {
    /// Source of the chart.
    #[serde(flatten)]
    pub from: TemplateSource,
    /// The name of the chart, if the source is a Helm repository.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub chart: String,
    /// Values of the chart.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub values: Option<Map<String, Value>>,
    /// The execution of the step that this is for: another one renders again.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub session: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Input of a KustomizePatch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct KustomizePatchSpec {
    /// Source of the base.
    #[serde(flatten)]
    pub from: TemplateSource,
    /// Changes merged into the Application of the base: components, policies and steps by name, traits by type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "any_object")]
    pub patch: Option<Map<String, Value>>,
    /// The execution of the step that this is for: another one builds again.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub session: String,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}

/// Result of a template.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ApplicationTemplateStatus {
    /// The generation that this is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Version of the source: the commit, or the digest of the fetched content.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// State of the Application compared with the rendered one: workflow-progress.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "conditions")]
    pub conditions: Vec<Condition>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    #[schemars(skip)]
    pub other: Unknown,
}
