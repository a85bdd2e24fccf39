//! What templates are told about the cluster.

/// The API versions that a chart sees when no cluster is asked.
pub(crate) const API_VERSIONS: [&str; 57] = [
    "v1",
    "admissionregistration.k8s.io/v1",
    "admissionregistration.k8s.io/v1alpha1",
    "admissionregistration.k8s.io/v1beta1",
    "internal.apiserver.k8s.io/v1alpha1",
    "apps/v1",
    "apps/v1beta1",
    "apps/v1beta2",
    "authentication.k8s.io/v1",
    "authentication.k8s.io/v1alpha1",
    "authentication.k8s.io/v1beta1",
    "authorization.k8s.io/v1",
    "authorization.k8s.io/v1beta1",
    "autoscaling/v1",
    "autoscaling/v2",
    "batch/v1",
    "batch/v1beta1",
    "certificates.k8s.io/v1",
    "certificates.k8s.io/v1beta1",
    "certificates.k8s.io/v1alpha1",
    "coordination.k8s.io/v1alpha2",
    "coordination.k8s.io/v1beta1",
    "coordination.k8s.io/v1",
    "discovery.k8s.io/v1",
    "discovery.k8s.io/v1beta1",
    "events.k8s.io/v1",
    "events.k8s.io/v1beta1",
    "extensions/v1beta1",
    "flowcontrol.apiserver.k8s.io/v1",
    "flowcontrol.apiserver.k8s.io/v1beta1",
    "flowcontrol.apiserver.k8s.io/v1beta2",
    "flowcontrol.apiserver.k8s.io/v1beta3",
    "lifecycle.k8s.io/v1alpha1",
    "networking.k8s.io/v1",
    "networking.k8s.io/v1beta1",
    "node.k8s.io/v1",
    "node.k8s.io/v1alpha1",
    "node.k8s.io/v1beta1",
    "policy/v1",
    "policy/v1beta1",
    "rbac.authorization.k8s.io/v1",
    "rbac.authorization.k8s.io/v1beta1",
    "rbac.authorization.k8s.io/v1alpha1",
    "resource.k8s.io/v1",
    "resource.k8s.io/v1beta2",
    "resource.k8s.io/v1beta1",
    "resource.k8s.io/v1alpha3",
    "scheduling.k8s.io/v1alpha3",
    "scheduling.k8s.io/v1beta1",
    "scheduling.k8s.io/v1",
    "storage.k8s.io/v1beta1",
    "storage.k8s.io/v1",
    "storage.k8s.io/v1alpha1",
    "storagemigration.k8s.io/v1",
    "storagemigration.k8s.io/v1beta1",
    "apiextensions.k8s.io/v1beta1",
    "apiextensions.k8s.io/v1",
];

/// The release of Helm that charts are told.
pub(crate) const HELM_VERSION: &str = "v3.22.0";

/// A version of Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KubeVersion {
    /// With `v`, and without what follows the three numbers.
    pub(crate) version: String,
    pub(crate) major: String,
    pub(crate) minor: String,
}

impl KubeVersion {
    /// Reads `1.31`, `v1.31.4`, `v1.31.4-eks.1`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("invalid kube version '{text}': could not parse \"{text}\" as version");
        let plain = text.trim();
        let plain = plain.strip_prefix('v').unwrap_or(plain);
        let end = plain
            .find(|character: char| !character.is_ascii_digit() && character != '.')
            .unwrap_or(plain.len());
        let numbers: Vec<&str> = plain[..end]
            .split('.')
            .filter(|part| !part.is_empty())
            .collect();
        let [major, minor, ..] = numbers.as_slice() else {
            return Err(wrong());
        };
        let is_canonical = |part: &&str| part.len() == 1 || !part.starts_with('0');
        if !numbers.iter().all(is_canonical) {
            return Err(wrong());
        }
        let patch = numbers.get(2).copied().unwrap_or("0");
        Ok(Self {
            version: format!("v{major}.{minor}.{patch}"),
            major: (*major).to_owned(),
            minor: (*minor).to_owned(),
        })
    }
}
