//! The kinds that the simulator looks after, and what all their objects have in common.

use std::fmt::Debug;

use bellwether_runtime::ObjectKey;
use k8s_openapi::Metadata;
use k8s_openapi::api::apps::v1::{
    ControllerRevision, DaemonSet, Deployment, ReplicaSet, StatefulSet,
};
use k8s_openapi::api::autoscaling::v2::HorizontalPodAutoscaler;
use k8s_openapi::api::batch::v1::{CronJob, Job};
use k8s_openapi::api::core::v1::{
    ConfigMap, Endpoints, Namespace, Node, PersistentVolume, PersistentVolumeClaim, Pod,
    ReplicationController, Service, ServiceAccount,
};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::policy::v1::PodDisruptionBudget;
use k8s_openapi::api::storage::v1::StorageClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// A kind of object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Kind {
    Deployment,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
    DaemonSet,
    ControllerRevision,
    Job,
    CronJob,
    Pod,
    Node,
    Service,
    Endpoints,
    EndpointSlice,
    Claim,
    Volume,
    StorageClass,
    Autoscaler,
    DisruptionBudget,
    Namespace,
    ServiceAccount,
    /// Only those with the certificate of the API server.
    ConfigMap,
}

/// What a kind is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Names {
    /// Empty for core.
    pub(crate) group: &'static str,
    pub(crate) version: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) plural: &'static str,
}

const ALL: [Kind; 21] = [
    Kind::Deployment,
    Kind::ReplicaSet,
    Kind::ReplicationController,
    Kind::StatefulSet,
    Kind::DaemonSet,
    Kind::ControllerRevision,
    Kind::Job,
    Kind::CronJob,
    Kind::Pod,
    Kind::Node,
    Kind::Service,
    Kind::Endpoints,
    Kind::EndpointSlice,
    Kind::Claim,
    Kind::Volume,
    Kind::StorageClass,
    Kind::Autoscaler,
    Kind::DisruptionBudget,
    Kind::Namespace,
    Kind::ServiceAccount,
    Kind::ConfigMap,
];

impl Kind {
    /// The kind of a resource; nothing for one that is not simulated.
    pub(crate) fn of_resource(group: &str, plural: &str) -> Option<Self> {
        let group = if group == "core" { "" } else { group };
        ALL.into_iter().find(|kind| {
            let names = kind.names();
            names.plural == plural && names.group == group
        })
    }

    /// The kind that an owner reference or a scale target names.
    pub(crate) fn of_reference(api_version: &str, kind: &str) -> Option<Self> {
        let (group, _) = api_version.split_once('/').unwrap_or(("", api_version));
        ALL.into_iter().find(|known| {
            let names = known.names();
            names.kind == kind && names.group == group
        })
    }

    pub(crate) fn names(self) -> Names {
        let (group, version, kind, plural) = match self {
            Self::Deployment => ("apps", "v1", "Deployment", "deployments"),
            Self::ReplicaSet => ("apps", "v1", "ReplicaSet", "replicasets"),
            Self::ReplicationController => {
                ("", "v1", "ReplicationController", "replicationcontrollers")
            }
            Self::StatefulSet => ("apps", "v1", "StatefulSet", "statefulsets"),
            Self::DaemonSet => ("apps", "v1", "DaemonSet", "daemonsets"),
            Self::ControllerRevision => ("apps", "v1", "ControllerRevision", "controllerrevisions"),
            Self::Job => ("batch", "v1", "Job", "jobs"),
            Self::CronJob => ("batch", "v1", "CronJob", "cronjobs"),
            Self::Namespace => ("", "v1", "Namespace", "namespaces"),
            Self::ServiceAccount => ("", "v1", "ServiceAccount", "serviceaccounts"),
            Self::ConfigMap => ("", "v1", "ConfigMap", "configmaps"),
            Self::Pod => ("", "v1", "Pod", "pods"),
            Self::Node => ("", "v1", "Node", "nodes"),
            Self::Service => ("", "v1", "Service", "services"),
            Self::Endpoints => ("", "v1", "Endpoints", "endpoints"),
            Self::EndpointSlice => ("discovery.k8s.io", "v1", "EndpointSlice", "endpointslices"),
            Self::Claim => ("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims"),
            Self::Volume => ("", "v1", "PersistentVolume", "persistentvolumes"),
            Self::StorageClass => ("storage.k8s.io", "v1", "StorageClass", "storageclasses"),
            Self::Autoscaler => (
                "autoscaling",
                "v2",
                "HorizontalPodAutoscaler",
                "horizontalpodautoscalers",
            ),
            Self::DisruptionBudget => (
                "policy",
                "v1",
                "PodDisruptionBudget",
                "poddisruptionbudgets",
            ),
        };
        Names {
            group,
            version,
            kind,
            plural,
        }
    }

    /// `v1`, `apps/v1`.
    pub(crate) fn api_version(self) -> String {
        let Names { group, version, .. } = self.names();
        if group.is_empty() {
            version.to_owned()
        } else {
            format!("{group}/{version}")
        }
    }
}

/// An object of one of the kinds.
pub(crate) trait Object:
    Metadata<Ty = ObjectMeta> + Serialize + DeserializeOwned + Debug + Clone + Send + Sync + 'static
{
    /// Which.
    const SORT: Kind;
}

macro_rules! objects {
    ($($type:ty => $kind:ident),* $(,)?) => {
        $(impl Object for $type {
            const SORT: Kind = Kind::$kind;
        })*
    };
}

objects! {
    Deployment => Deployment,
    ReplicaSet => ReplicaSet,
    ReplicationController => ReplicationController,
    StatefulSet => StatefulSet,
    DaemonSet => DaemonSet,
    ControllerRevision => ControllerRevision,
    Job => Job,
    CronJob => CronJob,
    Pod => Pod,
    Node => Node,
    Service => Service,
    Endpoints => Endpoints,
    EndpointSlice => EndpointSlice,
    PersistentVolumeClaim => Claim,
    PersistentVolume => Volume,
    StorageClass => StorageClass,
    HorizontalPodAutoscaler => Autoscaler,
    PodDisruptionBudget => DisruptionBudget,
    Namespace => Namespace,
    ServiceAccount => ServiceAccount,
    ConfigMap => ConfigMap,
}

/// One object, and no other that has or had its name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Reference {
    pub(crate) kind: Kind,
    pub(crate) key: ObjectKey,
    pub(crate) uid: String,
}

impl Reference {
    pub(crate) fn to<K: Object>(object: &K) -> Self {
        Self {
            kind: K::SORT,
            key: key_of(object),
            uid: uid_of(object).to_owned(),
        }
    }

    /// The reference by which an object says that this is its controller.
    pub(crate) fn controller(&self) -> OwnerReference {
        OwnerReference {
            api_version: self.kind.api_version(),
            kind: self.kind.names().kind.to_owned(),
            name: self.key.name.to_string(),
            uid: self.uid.clone(),
            controller: Some(true),
            block_owner_deletion: Some(true),
        }
    }
}

/// What an object is called.
pub(crate) fn key_of<K: Object>(object: &K) -> ObjectKey {
    let metadata = object.metadata();
    ObjectKey::new(
        metadata.namespace.as_deref().unwrap_or_default(),
        metadata.name.as_deref().unwrap_or_default(),
    )
}

/// Distinguishes an object from others of the same name.
pub(crate) fn uid_of<K: Object>(object: &K) -> &str {
    object.metadata().uid.as_deref().unwrap_or_default()
}

/// The owner that manages an object.
pub(crate) fn controller_of(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    let owners = metadata.owner_references.as_deref().unwrap_or_default();
    owners.iter().find(|owner| owner.controller == Some(true))
}

/// Whether somebody wants it gone.
pub(crate) fn is_deleting(metadata: &ObjectMeta) -> bool {
    metadata.deletion_timestamp.is_some()
}

/// The value of an annotation.
pub(crate) fn annotation<'a>(metadata: &'a ObjectMeta, name: &str) -> Option<&'a str> {
    metadata.annotations.as_ref()?.get(name).map(String::as_str)
}

/// The value of a label.
pub(crate) fn label<'a>(metadata: &'a ObjectMeta, name: &str) -> Option<&'a str> {
    metadata.labels.as_ref()?.get(name).map(String::as_str)
}
