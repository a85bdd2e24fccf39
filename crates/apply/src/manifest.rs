//! Manifests: objects as users write them, before anything is known about the cluster.

use std::collections::BTreeMap;

use serde_json::Value;

/// Kinds that others build on come first. The number is the rank; the names are kinds of any group,
/// as the agent of Open Cluster Management sorts them.
const RANKS: [&[&str]; 7] = [
    &[
        "PriorityClass",
        "Namespace",
        "CustomResourceDefinition",
        "StorageClass",
        "PersistentVolume",
        "PodSecurityPolicy",
    ],
    &["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"],
    &[
        "NetworkPolicy",
        "ResourceQuota",
        "LimitRange",
        "PodDisruptionBudget",
        "ServiceAccount",
    ],
    &["Secret", "ConfigMap", "PersistentVolumeClaim"],
    &["Service"],
    &[
        "DaemonSet",
        "Pod",
        "ReplicationController",
        "ReplicaSet",
        "Deployment",
        "HorizontalPodAutoscaler",
        "StatefulSet",
        "Job",
        "CronJob",
    ],
    &[
        "APIService",
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    ],
];

/// The rank of every kind that no other has.
const LAST_RANK: usize = 1000;

/// What the server writes into metadata, and what no manifest may bring along.
const SERVER_METADATA: [&str; 7] = [
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "managedFields",
    "selfLink",
];

/// A manifest that can be distinguished from others.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// Its place among the manifests that it came with.
    pub ordinal: usize,
    /// Its API group; empty for the core group.
    pub group: String,
    /// Its API version.
    pub version: String,
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// The namespace that it was written with; empty if with none.
    pub namespace: String,
    /// The object without what only a server writes.
    pub object: Value,
}

/// Why a manifest cannot be applied anywhere.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestError {
    /// It is a list, a text or the like.
    #[error("the manifest is not an object")]
    NotAnObject,
    /// A field that every object has is missing or empty.
    #[error("the manifest has no {0}")]
    Missing(&'static str),
    /// The group and version make no sense.
    #[error("unexpected GroupVersion string: {0}")]
    GroupVersion(String),
}

impl Manifest {
    /// Reads the manifest at a place among others.
    pub fn read(ordinal: usize, value: &Value) -> Result<Self, ManifestError> {
        if !value.is_object() {
            return Err(ManifestError::NotAnObject);
        }
        let text = |pointer: &str| value.pointer(pointer).and_then(Value::as_str);
        let required = |pointer, field| {
            text(pointer)
                .filter(|text| !text.is_empty())
                .ok_or(ManifestError::Missing(field))
        };
        let api_version = required("/apiVersion", "apiVersion")?;
        let kind = required("/kind", "kind")?;
        let name = required("/metadata/name", "metadata.name")?;
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        if version.contains('/') {
            return Err(ManifestError::GroupVersion(api_version.to_owned()));
        }
        let mut object = value.clone();
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            for field in SERVER_METADATA {
                metadata.remove(field);
            }
        }
        Ok(Self {
            ordinal,
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
            name: name.to_owned(),
            namespace: text("/metadata/namespace").unwrap_or_default().to_owned(),
            object,
        })
    }

    /// Where it stands in the order of application; equal ones keep the order in which they came.
    pub fn rank(&self) -> usize {
        RANKS
            .iter()
            .position(|kinds| kinds.contains(&self.kind.as_str()))
            .unwrap_or(LAST_RANK)
    }

    /// Group, version and kind as messages have them: `apps/v1, Kind=Deployment`.
    pub fn kind_text(&self) -> String {
        let slash = if self.group.is_empty() { "" } else { "/" };
        format!("{}{slash}{}, Kind={}", self.group, self.version, self.kind)
    }

    /// Kind, namespace and name, for messages: `ConfigMap n/m`.
    pub fn described(&self) -> String {
        let slash = if self.namespace.is_empty() { "" } else { "/" };
        format!("{} {}{slash}{}", self.kind, self.namespace, self.name)
    }

    /// Puts the object where its kind lives: in no namespace, or in `default` if it says none.
    #[must_use]
    pub fn placed(mut self, namespaced: bool) -> Self {
        if namespaced && self.namespace.is_empty() {
            "default".clone_into(&mut self.namespace);
        } else if !namespaced {
            self.namespace.clear();
        }
        if let Some(metadata) = self
            .object
            .get_mut("metadata")
            .and_then(Value::as_object_mut)
        {
            metadata.remove("namespace");
            if namespaced {
                metadata.insert("namespace".to_owned(), self.namespace.clone().into());
            }
        }
        self
    }
}

/// A kind as paths name it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ResourceType {
    /// API group; empty for the core group.
    pub group: String,
    /// API version.
    pub version: String,
    /// Kind.
    pub kind: String,
    /// Name in paths.
    pub plural: String,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

/// An object of a cluster, whatever its version.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObjectId {
    /// API group; empty for the core group.
    pub group: String,
    /// Name of its kind in paths.
    pub resource: String,
    /// Namespace; empty if it has none.
    pub namespace: String,
    /// Name.
    pub name: String,
}

impl std::fmt::Display for ObjectId {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.resource)?;
        if !self.group.is_empty() {
            write!(formatter, ".{}", self.group)?;
        }
        formatter.write_str(" ")?;
        if !self.namespace.is_empty() {
            write!(formatter, "{}/", self.namespace)?;
        }
        formatter.write_str(&self.name)
    }
}

/// The kinds that CustomResourceDefinitions among the manifests define, by group, version and kind:
/// they are known before the cluster knows them.
pub fn defined_kinds<'a>(
    manifests: impl IntoIterator<Item = &'a Manifest>,
) -> BTreeMap<(String, String, String), ResourceType> {
    let mut kinds = BTreeMap::new();
    for manifest in manifests {
        if manifest.kind != "CustomResourceDefinition" {
            continue;
        }
        let text = |pointer: &str| manifest.object.pointer(pointer).and_then(Value::as_str);
        let (Some(group), Some(kind), Some(plural)) = (
            text("/spec/group"),
            text("/spec/names/kind"),
            text("/spec/names/plural"),
        ) else {
            continue;
        };
        let versions = manifest.object.pointer("/spec/versions");
        for version in versions.and_then(Value::as_array).into_iter().flatten() {
            let Some(name) = version["name"].as_str() else {
                continue;
            };
            let resource = ResourceType {
                group: group.to_owned(),
                version: name.to_owned(),
                kind: kind.to_owned(),
                plural: plural.to_owned(),
                namespaced: text("/spec/scope") == Some("Namespaced"),
            };
            let key = (group.to_owned(), name.to_owned(), kind.to_owned());
            kinds.insert(key, resource);
        }
    }
    kinds
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of_kind(api_version: &str, kind: &str) -> Manifest {
        let object =
            json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "uid": "1"}});
        Manifest::read(0, &object).unwrap()
    }

    #[test]
    fn what_others_build_on_comes_first() {
        let order = [
            "Namespace",
            "ClusterRole",
            "ServiceAccount",
            "ConfigMap",
            "Service",
            "Deployment",
            "APIService",
            "Certificate",
        ];
        let ranks: Vec<usize> = order.map(|kind| of_kind("v1", kind).rank()).to_vec();
        assert!(ranks.is_sorted(), "{ranks:?}");
        assert_eq!(ranks.last(), Some(&LAST_RANK));
    }

    #[test]
    fn what_a_server_writes_is_dropped() {
        assert_eq!(
            of_kind("apps/v1", "Deployment").object["metadata"],
            json!({"name": "x"})
        );
        assert_eq!(
            of_kind("apps/v1", "Deployment").kind_text(),
            "apps/v1, Kind=Deployment"
        );
        assert_eq!(of_kind("v1", "Pod").kind_text(), "v1, Kind=Pod");
    }

    #[test]
    fn incomplete_manifests_are_told() {
        let check = |value: Value, message: &str| {
            assert_eq!(
                Manifest::read(0, &value).unwrap_err().to_string(),
                message,
                "{value}"
            );
        };
        check(json!([]), "the manifest is not an object");
        check(json!({"kind": "Pod"}), "the manifest has no apiVersion");
        check(
            json!({"apiVersion": "v1", "kind": "Pod"}),
            "the manifest has no metadata.name",
        );
        check(
            json!({"apiVersion": "a/b/c", "kind": "Pod", "metadata": {"name": "x"}}),
            "unexpected GroupVersion string: a/b/c",
        );
    }

    #[test]
    fn namespaces_follow_the_kind() {
        let placed = of_kind("v1", "ConfigMap").placed(true);
        assert_eq!(placed.namespace, "default");
        assert_eq!(placed.object["metadata"]["namespace"], "default");
        let mut cluster_scoped = of_kind("v1", "Namespace");
        cluster_scoped.namespace = "x".into();
        cluster_scoped.object["metadata"]["namespace"] = "x".into();
        let placed = cluster_scoped.placed(false);
        assert_eq!(placed.namespace, "");
        assert_eq!(placed.object["metadata"], json!({"name": "x"}));
    }

    #[test]
    fn kinds_of_definitions_are_known_before_they_exist() {
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "birds.zoo.example"},
            "spec": {"group": "zoo.example", "scope": "Namespaced",
                "names": {"kind": "Bird", "plural": "birds"},
                "versions": [{"name": "v1"}, {"name": "v2"}]},
        });
        let kinds = defined_kinds(&[Manifest::read(0, &definition).unwrap()]);
        let found = &kinds[&("zoo.example".into(), "v2".into(), "Bird".into())];
        assert_eq!((found.plural.as_str(), found.namespaced), ("birds", true));
    }
}
