//! API versions that Kubernetes has given up, or is going to.

use bellwether_go::semver::Version;

/// An API version of kinds, since when it is deprecated and gone, and what to use instead.
struct Deprecation {
    api_version: &'static str,
    kinds: &'static [&'static str],
    since: &'static str,
    gone: &'static str,
    instead: &'static str,
}

const fn deprecation(
    api_version: &'static str,
    kinds: &'static [&'static str],
    since: &'static str,
    gone: &'static str,
    instead: &'static str,
) -> Deprecation {
    Deprecation {
        api_version,
        kinds,
        since,
        gone,
        instead,
    }
}

/// The deprecation guide of Kubernetes; an empty replacement means that there is none.
const TABLE: &[Deprecation] = &[
    deprecation(
        "apps/v1beta1",
        &["Deployment", "StatefulSet"],
        "1.9",
        "1.16",
        "apps/v1",
    ),
    deprecation(
        "apps/v1beta2",
        &["Deployment", "StatefulSet", "DaemonSet", "ReplicaSet"],
        "1.9",
        "1.16",
        "apps/v1",
    ),
    deprecation(
        "extensions/v1beta1",
        &["Deployment", "DaemonSet", "ReplicaSet"],
        "1.8",
        "1.16",
        "apps/v1",
    ),
    deprecation(
        "extensions/v1beta1",
        &["NetworkPolicy"],
        "1.9",
        "1.16",
        "networking.k8s.io/v1",
    ),
    deprecation(
        "extensions/v1beta1",
        &["PodSecurityPolicy"],
        "1.10",
        "1.16",
        "policy/v1beta1",
    ),
    deprecation(
        "extensions/v1beta1",
        &["Ingress"],
        "1.14",
        "1.22",
        "networking.k8s.io/v1",
    ),
    deprecation(
        "networking.k8s.io/v1beta1",
        &["Ingress", "IngressClass"],
        "1.19",
        "1.22",
        "networking.k8s.io/v1",
    ),
    deprecation(
        "rbac.authorization.k8s.io/v1beta1",
        &["Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"],
        "1.17",
        "1.22",
        "rbac.authorization.k8s.io/v1",
    ),
    deprecation(
        "apiextensions.k8s.io/v1beta1",
        &["CustomResourceDefinition"],
        "1.16",
        "1.22",
        "apiextensions.k8s.io/v1",
    ),
    deprecation(
        "admissionregistration.k8s.io/v1beta1",
        &[
            "MutatingWebhookConfiguration",
            "ValidatingWebhookConfiguration",
        ],
        "1.16",
        "1.22",
        "admissionregistration.k8s.io/v1",
    ),
    deprecation(
        "apiregistration.k8s.io/v1beta1",
        &["APIService"],
        "1.19",
        "1.22",
        "apiregistration.k8s.io/v1",
    ),
    deprecation(
        "scheduling.k8s.io/v1beta1",
        &["PriorityClass"],
        "1.14",
        "1.22",
        "scheduling.k8s.io/v1",
    ),
    deprecation(
        "coordination.k8s.io/v1beta1",
        &["Lease"],
        "1.19",
        "1.22",
        "coordination.k8s.io/v1",
    ),
    deprecation(
        "storage.k8s.io/v1beta1",
        &["StorageClass", "VolumeAttachment"],
        "1.19",
        "1.22",
        "storage.k8s.io/v1",
    ),
    deprecation("batch/v1beta1", &["CronJob"], "1.21", "1.25", "batch/v1"),
    deprecation(
        "discovery.k8s.io/v1beta1",
        &["EndpointSlice"],
        "1.21",
        "1.25",
        "discovery.k8s.io/v1",
    ),
    deprecation(
        "policy/v1beta1",
        &["PodDisruptionBudget"],
        "1.21",
        "1.25",
        "policy/v1",
    ),
    deprecation("policy/v1beta1", &["PodSecurityPolicy"], "1.21", "1.25", ""),
    deprecation(
        "autoscaling/v2beta1",
        &["HorizontalPodAutoscaler"],
        "1.22",
        "1.25",
        "autoscaling/v2",
    ),
    deprecation(
        "autoscaling/v2beta2",
        &["HorizontalPodAutoscaler"],
        "1.23",
        "1.26",
        "autoscaling/v2",
    ),
];

/// What is wrong with an API version for a version of Kubernetes.
pub(super) fn problem(api_version: &str, kind: &str, kube_version: &str) -> Option<String> {
    let is_meant = |it: &&Deprecation| it.api_version == api_version && it.kinds.contains(&kind);
    let found = TABLE.iter().find(is_meant)?;
    let (version, since) = (
        Version::parse(kube_version).ok()?,
        Version::parse(found.since).ok()?,
    );
    if version.compare(&since).is_lt() {
        return None;
    }
    let Deprecation {
        since,
        gone,
        instead,
        ..
    } = found;
    let instead = match *instead {
        "" => String::new(),
        instead => format!("; use {instead} {kind}"),
    };
    Some(format!(
        "{api_version} {kind} is deprecated in v{since}+, unavailable in v{gone}+{instead}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_that_are_gone_are_named_with_their_replacement() {
        assert_eq!(
            problem("extensions/v1beta1", "Ingress", "v1.31.0").as_deref(),
            Some(
                "extensions/v1beta1 Ingress is deprecated in v1.14+, unavailable in v1.22+; use \
                 networking.k8s.io/v1 Ingress"
            )
        );
        assert_eq!(problem("batch/v1beta1", "CronJob", "v1.20.9"), None);
        assert_eq!(problem("batch/v1", "CronJob", "v1.31.0"), None);
        let gone = problem("policy/v1beta1", "PodSecurityPolicy", "1.31").unwrap();
        assert!(gone.ends_with("unavailable in v1.25+"), "{gone}");
    }
}
