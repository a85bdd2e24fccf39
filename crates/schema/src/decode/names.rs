//! Names that only Go knows: structs that are embedded in others without a field of their own in
//! JSON, and types of strings. They appear in messages and nowhere else.

/// The embedded struct that holds `field` of the struct `structure`, if it is in one.
pub(super) fn embedded(structure: &str, field: &str) -> Option<&'static str> {
    Some(match (structure, field) {
        ("Probe", "exec" | "grpc" | "httpGet" | "tcpSocket") => "ProbeHandler",
        ("Volume", field) if field != "name" => "VolumeSource",
        (
            "PersistentVolumeSpec",
            "awsElasticBlockStore"
            | "azureDisk"
            | "azureFile"
            | "cephfs"
            | "cinder"
            | "csi"
            | "fc"
            | "flexVolume"
            | "flocker"
            | "gcePersistentDisk"
            | "glusterfs"
            | "hostPath"
            | "iscsi"
            | "local"
            | "nfs"
            | "photonPersistentDisk"
            | "portworxVolume"
            | "quobyte"
            | "rbd"
            | "scaleIO"
            | "storageos"
            | "vsphereVolume",
        ) => "PersistentVolumeSource",
        ("EphemeralContainer", field) if field != "targetContainerName" => {
            "EphemeralContainerCommon"
        }
        (
            "ConfigMapKeySelector"
            | "SecretKeySelector"
            | "ConfigMapEnvSource"
            | "SecretEnvSource"
            | "ConfigMapProjection"
            | "SecretProjection"
            | "ConfigMapVolumeSource",
            "name",
        ) => "LocalObjectReference",
        _ => return None,
    })
}

/// The Go type of a field that is a string in JSON, where it is not Go's `string`.
pub(super) fn text_type(structure: &str, field: &str) -> Option<&'static str> {
    Some(match (structure, field) {
        ("ObjectMeta" | "OwnerReference" | "ObjectReference", "uid") => "types.UID",
        ("PodSpec", "restartPolicy") => "v1.RestartPolicy",
        ("PodSpec", "dnsPolicy") => "v1.DNSPolicy",
        ("Container" | "EphemeralContainerCommon", "imagePullPolicy") => "v1.PullPolicy",
        ("Container" | "EphemeralContainerCommon", "terminationMessagePolicy") => {
            "v1.TerminationMessagePolicy"
        }
        ("ContainerPort" | "ServicePort" | "EndpointPort", "protocol") => "v1.Protocol",
        ("HTTPGetAction", "scheme") => "v1.URIScheme",
        ("Toleration" | "Taint", "effect") => "v1.TaintEffect",
        ("Toleration", "operator") => "v1.TolerationOperator",
        ("NodeSelectorRequirement", "operator") => "v1.NodeSelectorOperator",
        ("LabelSelectorRequirement", "operator") => "v1.LabelSelectorOperator",
        ("ServiceSpec", "type") => "v1.ServiceType",
        ("ServiceSpec", "sessionAffinity") => "v1.ServiceAffinity",
        ("ServiceSpec", "externalTrafficPolicy") => "v1.ServiceExternalTrafficPolicy",
        ("Secret", "type") => "v1.SecretType",
        ("DeploymentStrategy", "type") => "v1.DeploymentStrategyType",
        ("DaemonSetUpdateStrategy", "type") => "v1.DaemonSetUpdateStrategyType",
        ("StatefulSetUpdateStrategy", "type") => "v1.StatefulSetUpdateStrategyType",
        ("StatefulSetSpec", "podManagementPolicy") => "v1.PodManagementPolicyType",
        ("CronJobSpec", "concurrencyPolicy") => "v1.ConcurrencyPolicy",
        ("PodStatus", "phase") => "v1.PodPhase",
        ("NamespaceStatus", "phase") => "v1.NamespacePhase",
        ("ManagedFieldsEntry", "operation") => "v1.ManagedFieldsOperationType",
        _ => return None,
    })
}
