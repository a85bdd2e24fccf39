//! What identifies an object: group, version, kind, name and namespace.

use std::fmt;

use bellwether_json::path::str_at;
use serde_json::Value;

/// Group, version and kind; as a selector an empty part means any.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Gvk {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
}

/// The namespace that objects without one are compared by.
const DEFAULT_NAMESPACE: &str = "default";

/// Stands for the namespace of objects that can have none.
const NO_NAMESPACE: &str = "_non_namespaceable_";

/// Built-in kinds that are in no namespace: group, versions, kinds. Other kinds count as
/// namespaced. The table is the one that kustomize ships.
const CLUSTER_SCOPED: &[(&str, &[&str], &[&str])] = &[
    (
        "",
        &["v1"],
        &["Namespace", "Node", "PersistentVolume", "ComponentStatus"],
    ),
    (
        "admissionregistration.k8s.io",
        &["v1", "v1beta1"],
        &[
            "MutatingWebhookConfiguration",
            "ValidatingWebhookConfiguration",
        ],
    ),
    (
        "admissionregistration.k8s.io",
        &["v1"],
        &[
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
        ],
    ),
    (
        "apiextensions.k8s.io",
        &["v1", "v1beta1"],
        &["CustomResourceDefinition"],
    ),
    (
        "apiregistration.k8s.io",
        &["v1", "v1beta1"],
        &["APIService"],
    ),
    (
        "certificates.k8s.io",
        &["v1", "v1beta1"],
        &["CertificateSigningRequest"],
    ),
    (
        "flowcontrol.apiserver.k8s.io",
        &["v1beta1"],
        &["FlowSchema", "PriorityLevelConfiguration"],
    ),
    ("networking.k8s.io", &["v1", "v1beta1"], &["IngressClass"]),
    ("node.k8s.io", &["v1", "v1beta1"], &["RuntimeClass"]),
    ("policy", &["v1beta1"], &["PodSecurityPolicy"]),
    (
        "rbac.authorization.k8s.io",
        &["v1", "v1beta1"],
        &["ClusterRole", "ClusterRoleBinding"],
    ),
    ("scheduling.k8s.io", &["v1", "v1beta1"], &["PriorityClass"]),
    (
        "storage.k8s.io",
        &["v1", "v1beta1"],
        &["CSIDriver", "CSINode", "StorageClass", "VolumeAttachment"],
    ),
];

impl Gvk {
    /// Splits an `apiVersion` into group and version.
    pub(crate) fn new(api_version: &str, kind: &str) -> Self {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
        }
    }

    pub(crate) fn of(object: &Value) -> Self {
        Self::new(
            str_at(object, &["apiVersion"]).unwrap_or_default(),
            str_at(object, &["kind"]).unwrap_or_default(),
        )
    }

    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() {
            self.version.clone()
        } else {
            format!("{}/{}", self.group, self.version)
        }
    }

    pub(crate) fn is_selected_by(&self, selector: &Self) -> bool {
        let agrees = |own: &str, wanted: &str| wanted.is_empty() || own == wanted;
        agrees(&self.kind, &selector.kind)
            && agrees(&self.group, &selector.group)
            && agrees(&self.version, &selector.version)
    }

    pub(crate) fn is_cluster_scoped(&self) -> bool {
        CLUSTER_SCOPED.iter().any(|(group, versions, kinds)| {
            *group == self.group
                && kinds.contains(&self.kind.as_str())
                && versions.contains(&self.version.as_str())
        })
    }
}

impl fmt::Display for Gvk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or = |text: &str, fallback: &str| -> String {
            if text.is_empty() { fallback } else { text }.to_owned()
        };
        write!(
            f,
            "{}.{}.{}",
            or(&self.kind, "[noKind]"),
            or(&self.version, "[noVer]"),
            or(&self.group, "[noGrp]")
        )
    }
}

/// An object, or as a selector the objects that agree with its parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Id {
    pub(crate) gvk: Gvk,
    pub(crate) name: String,
    pub(crate) namespace: String,
}

impl Id {
    pub(crate) fn is_cluster_scoped(&self) -> bool {
        self.gvk.is_cluster_scoped()
    }

    /// The namespace by which objects are compared.
    pub(crate) fn effective_namespace(&self) -> &str {
        if self.is_cluster_scoped() {
            NO_NAMESPACE
        } else if self.namespace.is_empty() {
            DEFAULT_NAMESPACE
        } else {
            &self.namespace
        }
    }

    /// True if both name one object.
    pub(crate) fn is(&self, other: &Self) -> bool {
        self.name == other.name
            && self.gvk == other.gvk
            && self.effective_namespace() == other.effective_namespace()
    }

    pub(crate) fn is_selected_by(&self, selector: &Self) -> bool {
        (selector.name.is_empty() || selector.name == self.name)
            && (selector.namespace.is_empty()
                || selector.effective_namespace() == self.effective_namespace())
            && self.gvk.is_selected_by(&selector.gvk)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or = |text: &str, fallback: &str| -> String {
            if text.is_empty() { fallback } else { text }.to_owned()
        };
        write!(
            f,
            "{}/{}.{}",
            self.gvk,
            or(&self.name, "[noName]"),
            or(&self.namespace, "[noNs]")
        )
    }
}
