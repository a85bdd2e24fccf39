//! The fields that kustomize's transformers change unless a user says otherwise.

use crate::config::{BackReference, Config, FieldSpec};
use crate::id::Gvk;

const RBAC: &str = "rbac.authorization.k8s.io";
const ADMISSION: &str = "admissionregistration.k8s.io";

/// Kinds with a pod template, and where the specification of the pod is.
const POD_SPECS: [(&str, &str); 9] = [
    ("Pod", "spec"),
    ("PodTemplate", "template/spec"),
    ("Deployment", "spec/template/spec"),
    ("ReplicaSet", "spec/template/spec"),
    ("DaemonSet", "spec/template/spec"),
    ("StatefulSet", "spec/template/spec"),
    ("Job", "spec/template/spec"),
    ("CronJob", "spec/jobTemplate/spec/template/spec"),
    ("ReplicationController", "spec/template/spec"),
];

/// Kinds whose pods name configuration.
const CONFIGURED: &[&str] = &[
    "Pod",
    "PodTemplate",
    "Deployment",
    "ReplicaSet",
    "DaemonSet",
    "StatefulSet",
    "Job",
    "CronJob",
];

/// Kinds whose pods name accounts, claims and priorities.
const BOUND: &[&str] = &[
    "Pod",
    "StatefulSet",
    "Deployment",
    "ReplicationController",
    "CronJob",
    "Job",
    "DaemonSet",
];

fn gvk(group: &str, version: &str, kind: &str) -> Gvk {
    Gvk {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.to_owned(),
    }
}

fn spec(group: &str, kind: &str, path: &str, create: bool) -> FieldSpec {
    FieldSpec::new(gvk(group, "", kind), path, create)
}

fn of_kind(kind: &str, path: &str) -> FieldSpec {
    spec("", kind, path, false)
}

/// Fields below the pod specification of some kinds.
fn in_pods<'a>(kinds: &'a [&'a str], paths: &'a [&'a str]) -> impl Iterator<Item = FieldSpec> + 'a {
    POD_SPECS
        .iter()
        .filter(|(kind, _)| kinds.contains(kind))
        .flat_map(move |(kind, root)| {
            paths
                .iter()
                .map(move |path| of_kind(kind, &format!("{root}/{path}")))
        })
}

pub(crate) fn config() -> Config {
    let name = || vec![spec("", "", "metadata/name", false)];
    let template_labels = templates("labels");
    Config {
        name_prefix: name(),
        name_suffix: name(),
        namespace: vec![
            spec("", "Namespace", "metadata/name", true),
            spec(
                "apiregistration.k8s.io",
                "APIService",
                "spec/service/namespace",
                true,
            ),
            spec(
                "apiextensions.k8s.io",
                "CustomResourceDefinition",
                "spec/conversion/webhook/clientConfig/service/namespace",
                false,
            ),
        ],
        common_labels: selectors()
            .into_iter()
            .chain(template_labels.clone())
            .chain(volume_claims())
            .collect(),
        labels: Vec::new(),
        template_labels,
        volume_claim_template_labels: volume_claims(),
        common_annotations: templates("annotations"),
        name_reference: references(),
        var_reference: variables(),
        images: images(),
        replicas: [
            "Deployment",
            "ReplicationController",
            "ReplicaSet",
            "StatefulSet",
        ]
        .iter()
        .map(|kind| spec("", kind, "spec/replicas", true))
        .collect(),
    }
}

/// Labels or annotations of objects and of the pods that they make.
fn templates(field: &str) -> Vec<FieldSpec> {
    let stateful_group = if field == "labels" { "apps" } else { "" };
    let template = format!("spec/template/metadata/{field}");
    let mut fields = vec![
        spec("", "", &format!("metadata/{field}"), true),
        FieldSpec::new(gvk("", "v1", "ReplicationController"), &template, true),
    ];
    for kind in ["Deployment", "ReplicaSet", "DaemonSet"] {
        fields.push(spec("", kind, &template, true));
    }
    fields.extend([
        spec(stateful_group, "StatefulSet", &template, true),
        spec("batch", "Job", &template, true),
        spec(
            "batch",
            "CronJob",
            &format!("spec/jobTemplate/metadata/{field}"),
            true,
        ),
        spec(
            "batch",
            "CronJob",
            &format!("spec/jobTemplate/spec/template/metadata/{field}"),
            true,
        ),
    ]);
    fields
}

fn volume_claims() -> Vec<FieldSpec> {
    let path = "spec/volumeClaimTemplates[]/metadata/labels";
    vec![spec("apps", "StatefulSet", path, true)]
}

fn selectors() -> Vec<FieldSpec> {
    let mut fields = vec![
        FieldSpec::new(gvk("", "v1", "Service"), "spec/selector", true),
        FieldSpec::new(
            gvk("", "v1", "ReplicationController"),
            "spec/selector",
            true,
        ),
        spec("", "Deployment", "spec/selector/matchLabels", true),
        spec("", "ReplicaSet", "spec/selector/matchLabels", true),
        spec("", "DaemonSet", "spec/selector/matchLabels", true),
        spec("apps", "StatefulSet", "spec/selector/matchLabels", true),
        spec("batch", "Job", "spec/selector/matchLabels", false),
        spec(
            "batch",
            "CronJob",
            "spec/jobTemplate/spec/selector/matchLabels",
            false,
        ),
        spec(
            "policy",
            "PodDisruptionBudget",
            "spec/selector/matchLabels",
            false,
        ),
    ];
    for path in [
        "spec/podSelector/matchLabels",
        "spec/ingress/from/podSelector/matchLabels",
        "spec/egress/to/podSelector/matchLabels",
    ] {
        fields.push(spec("networking.k8s.io", "NetworkPolicy", path, false));
    }
    for kind in ["Deployment", "StatefulSet"] {
        for affinity in ["podAffinity", "podAntiAffinity"] {
            for term in [
                "preferredDuringSchedulingIgnoredDuringExecution/podAffinityTerm",
                "requiredDuringSchedulingIgnoredDuringExecution",
            ] {
                let path = format!(
                    "spec/template/spec/affinity/{affinity}/{term}/labelSelector/matchLabels"
                );
                fields.push(spec("apps", kind, &path, false));
            }
        }
        let path = "spec/template/spec/topologySpreadConstraints/labelSelector/matchLabels";
        fields.push(spec("apps", kind, path, false));
    }
    fields
}

fn images() -> Vec<FieldSpec> {
    [
        "spec/containers[]/image",
        "spec/initContainers[]/image",
        "spec/volumes[]/image/reference",
        "spec/template/spec/containers[]/image",
        "spec/template/spec/initContainers[]/image",
        "spec/template/spec/volumes[]/image/reference",
        "spec/jobTemplate/spec/template/spec/volumes[]/image/reference",
    ]
    .iter()
    .map(|path| spec("", "", path, true))
    .collect()
}

fn references() -> Vec<BackReference> {
    let mut references: Vec<BackReference> = [
        "Deployment",
        "ReplicationController",
        "ReplicaSet",
        "StatefulSet",
    ]
    .iter()
    .map(|kind| BackReference {
        target: gvk("", "", kind),
        referrers: vec![of_kind(
            "HorizontalPodAutoscaler",
            "spec/scaleTargetRef/name",
        )],
    })
    .collect();
    references.extend([
        config_maps(),
        secrets(),
        services(),
        BackReference {
            target: gvk(RBAC, "", "Role"),
            referrers: vec![spec(RBAC, "RoleBinding", "roleRef/name", false)],
        },
        BackReference {
            target: gvk(RBAC, "", "ClusterRole"),
            referrers: vec![
                spec(RBAC, "RoleBinding", "roleRef/name", false),
                spec(RBAC, "ClusterRoleBinding", "roleRef/name", false),
            ],
        },
        BackReference {
            target: gvk("", "v1", "ServiceAccount"),
            referrers: [
                spec(RBAC, "RoleBinding", "subjects", false),
                spec(RBAC, "ClusterRoleBinding", "subjects", false),
            ]
            .into_iter()
            .chain(in_pods(BOUND, &["serviceAccountName"]))
            .collect(),
        },
        BackReference {
            target: gvk("", "v1", "PersistentVolumeClaim"),
            referrers: in_pods(BOUND, &["volumes/persistentVolumeClaim/claimName"]).collect(),
        },
        BackReference {
            target: gvk("", "v1", "PersistentVolume"),
            referrers: vec![
                of_kind("PersistentVolumeClaim", "spec/volumeName"),
                of_kind("ClusterRole", "rules/resourceNames"),
            ],
        },
        BackReference {
            target: gvk("storage.k8s.io", "v1", "StorageClass"),
            referrers: vec![
                of_kind("PersistentVolume", "spec/storageClassName"),
                of_kind("PersistentVolumeClaim", "spec/storageClassName"),
                of_kind(
                    "StatefulSet",
                    "spec/volumeClaimTemplates/spec/storageClassName",
                ),
            ],
        },
        BackReference {
            target: gvk("scheduling.k8s.io", "v1", "PriorityClass"),
            referrers: in_pods(BOUND, &["priorityClassName"]).collect(),
        },
        // The version in the group is kustomize's; it means that the reference is never followed.
        BackReference {
            target: gvk("networking.k8s.io/v1", "v1", "IngressClass"),
            referrers: vec![of_kind("Ingress", "spec/ingressClassName")],
        },
        BackReference {
            target: gvk(ADMISSION, "", "ValidatingAdmissionPolicy"),
            referrers: vec![spec(
                ADMISSION,
                "ValidatingAdmissionPolicyBinding",
                "spec/policyName",
                false,
            )],
        },
    ]);
    references
}

fn config_maps() -> BackReference {
    const PATHS: &[&str] = &[
        "volumes/configMap/name",
        "containers/env/valueFrom/configMapKeyRef/name",
        "initContainers/env/valueFrom/configMapKeyRef/name",
        "containers/envFrom/configMapRef/name",
        "initContainers/envFrom/configMapRef/name",
        "volumes/projected/sources/configMap/name",
    ];
    let annotation = "metadata/annotations/nginx.ingress.kubernetes.io\\/fastcgi-params-configmap";
    let others = [
        of_kind("Node", "spec/configSource/configMap"),
        of_kind("Role", "rules/resourceNames"),
        of_kind("ClusterRole", "rules/resourceNames"),
        of_kind("Ingress", annotation),
    ];
    BackReference {
        target: gvk("", "v1", "ConfigMap"),
        referrers: in_pods(CONFIGURED, PATHS).chain(others).collect(),
    }
}

fn secrets() -> BackReference {
    const PATHS: &[&str] = &[
        "volumes/secret/secretName",
        "containers/env/valueFrom/secretKeyRef/name",
        "initContainers/env/valueFrom/secretKeyRef/name",
        "containers/envFrom/secretRef/name",
        "initContainers/envFrom/secretRef/name",
        "imagePullSecrets/name",
        "volumes/projected/sources/secret/name",
    ];
    const OTHERS: &[(&str, &str)] = &[
        ("Ingress", "spec/tls/secretName"),
        (
            "Ingress",
            "metadata/annotations/ingress.kubernetes.io\\/auth-secret",
        ),
        (
            "Ingress",
            "metadata/annotations/nginx.ingress.kubernetes.io\\/auth-secret",
        ),
        (
            "Ingress",
            "metadata/annotations/nginx.ingress.kubernetes.io\\/auth-tls-secret",
        ),
        ("ServiceAccount", "imagePullSecrets/name"),
        ("StorageClass", "parameters/secretName"),
        ("StorageClass", "parameters/adminSecretName"),
        ("StorageClass", "parameters/userSecretName"),
        ("StorageClass", "parameters/secretRef"),
        ("Role", "rules/resourceNames"),
        ("ClusterRole", "rules/resourceNames"),
        ("PersistentVolume", "spec/azureFile/secretName"),
    ];
    let knative = FieldSpec::new(
        gvk("serving.knative.dev", "v1", "Service"),
        "spec/template/spec/containers/env/valueFrom/secretKeyRef/name",
        false,
    );
    BackReference {
        target: gvk("", "v1", "Secret"),
        referrers: in_pods(CONFIGURED, PATHS)
            .chain(OTHERS.iter().map(|(kind, path)| of_kind(kind, path)))
            .chain([knative])
            .collect(),
    }
}

fn services() -> BackReference {
    let webhook = "webhooks/clientConfig/service";
    BackReference {
        target: gvk("", "v1", "Service"),
        referrers: vec![
            spec("apps", "StatefulSet", "spec/serviceName", false),
            of_kind("Ingress", "spec/rules/http/paths/backend/serviceName"),
            of_kind("Ingress", "spec/backend/serviceName"),
            of_kind("Ingress", "spec/rules/http/paths/backend/service/name"),
            of_kind("Ingress", "spec/defaultBackend/service/name"),
            spec(
                "apiregistration.k8s.io",
                "APIService",
                "spec/service/name",
                false,
            ),
            spec(ADMISSION, "ValidatingWebhookConfiguration", webhook, false),
            spec(ADMISSION, "MutatingWebhookConfiguration", webhook, false),
        ],
    }
}

fn variables() -> Vec<FieldSpec> {
    const PATHS: &[&str] = &[
        "containers/args",
        "containers/command",
        "containers/env/value",
        "containers/volumeMounts/mountPath",
        "initContainers/args",
        "initContainers/command",
        "initContainers/env/value",
        "initContainers/volumeMounts/mountPath",
    ];
    const KINDS: &[&str] = &[
        "CronJob",
        "DaemonSet",
        "Deployment",
        "Job",
        "Pod",
        "ReplicaSet",
        "StatefulSet",
    ];
    const OTHERS: &[(&str, &str)] = &[
        (
            "CronJob",
            "spec/jobTemplate/spec/template/volumes/nfs/server",
        ),
        ("DaemonSet", "spec/template/spec/volumes/nfs/server"),
        ("Deployment", "spec/template/spec/volumes/nfs/server"),
        ("Deployment", "spec/template/metadata/annotations"),
        ("Ingress", "spec/rules/host"),
        ("Ingress", "spec/tls/hosts"),
        ("Ingress", "spec/tls/secretName"),
        ("Job", "spec/template/spec/volumes/nfs/server"),
        ("Pod", "spec/volumes/nfs/server"),
        ("ReplicaSet", "spec/template/spec/volumes/nfs/server"),
        ("Service", "spec/ports/port"),
        ("Service", "spec/ports/targetPort"),
        ("StatefulSet", "spec/volumeClaimTemplates/spec/nfs/server"),
        ("PersistentVolume", "spec/nfs/server"),
        ("", "metadata/labels"),
        ("", "metadata/annotations"),
    ];
    in_pods(KINDS, PATHS)
        .chain(OTHERS.iter().map(|(kind, path)| of_kind(kind, path)))
        .collect()
}
