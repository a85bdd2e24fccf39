//! What rendering has to know of the hub: clusters, and objects that applications refer to.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_api::oam::names::{LOCAL_CLUSTER, annotation, label};
use bellwether_json::path::str_at;
use serde_json::{Value, json};

use crate::outside::Outside;

/// The version of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClusterVersion {
    /// Such as `1`.
    pub major: String,
    /// Such as `31` or `25+`.
    pub minor: String,
    /// Such as `v1.31.0`.
    pub git_version: String,
    /// Such as `linux/amd64`.
    pub platform: String,
}

impl Default for ClusterVersion {
    fn default() -> Self {
        Self {
            major: "1".to_owned(),
            minor: "31".to_owned(),
            git_version: "v1.31.0".to_owned(),
            platform: "linux/amd64".to_owned(),
        }
    }
}

impl ClusterVersion {
    /// Reads a version as servers tell it; `None` if a part is missing.
    pub fn from_json(value: &Value) -> Option<Self> {
        let text = |name: &str| value[name].as_str().map(str::to_owned);
        Some(Self {
            major: text("major")?,
            minor: text("minor")?,
            git_version: text("gitVersion")?,
            platform: text("platform")?,
        })
    }

    /// What templates see: `minor` is a number there.
    pub fn context(&self) -> Value {
        let digits: String = self
            .minor
            .chars()
            .take_while(char::is_ascii_digit)
            .collect();
        json!({
            "major": self.major,
            "minor": digits.parse::<i64>().unwrap_or_default(),
            "gitVersion": self.git_version,
            "platform": self.platform,
        })
    }
}

/// A cluster that components can go to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    /// Its name.
    pub name: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its version, if it is known.
    pub version: Option<ClusterVersion>,
}

/// A kind that the hub serves, and what it is called by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServedKind {
    /// The API group; empty for the core group.
    pub group: String,
    /// The version of the group.
    pub version: String,
    /// Such as `Widget`.
    pub kind: String,
    /// Such as `widgets`.
    pub plural: String,
    /// Such as `widget`.
    pub singular: String,
    /// Further names, such as `wg`.
    pub short_names: Vec<String>,
    /// Whether objects live in a namespace.
    pub namespaced: bool,
}

impl ServedKind {
    /// Group and version, as objects have them.
    pub fn api_version(&self) -> String {
        match self.group.as_str() {
            "" => self.version.clone(),
            group => format!("{group}/{}", self.version),
        }
    }

    /// Whether the resource is called by this name.
    pub fn is_called(&self, name: &str) -> bool {
        self.plural == name || self.singular == name || self.short_names.iter().any(|it| it == name)
    }

    /// The kind that a CustomResourceDefinition defines; none if the object is something else.
    pub fn of_definition(object: &Value) -> Option<Self> {
        if !is_kind(object, "apiextensions.k8s.io", "CustomResourceDefinition") {
            return None;
        }
        let (spec, names) = (&object["spec"], &object["spec"]["names"]);
        let versions = spec["versions"].as_array()?;
        let stored = versions.iter().find(|version| version["storage"] == true);
        let kind = names["kind"].as_str()?;
        let singular = names["singular"].as_str().filter(|name| !name.is_empty());
        let short_names = names["shortNames"].as_array().into_iter().flatten();
        Some(Self {
            group: spec["group"].as_str()?.to_owned(),
            version: stored?["name"].as_str()?.to_owned(),
            kind: kind.to_owned(),
            plural: names["plural"].as_str()?.to_owned(),
            singular: singular.map_or_else(|| kind.to_lowercase(), str::to_owned),
            short_names: short_names
                .filter_map(|name| name.as_str().map(str::to_owned))
                .collect(),
            namespaced: spec["scope"] == "Namespaced",
        })
    }
}

/// What rendering has to know of the hub.
#[derive(Debug, Clone, Default)]
pub struct World {
    /// The version of the hub, which stands in for clusters whose own is not known.
    pub hub_version: ClusterVersion,
    /// Clusters besides the hub.
    pub clusters: Arc<Vec<Cluster>>,
    /// Policies, Workflows and other objects that applications refer to.
    pub objects: Vec<Value>,
    /// Kinds of applications' copies that are not built in.
    pub kinds: Vec<ServedKind>,
    /// What is known from outside; none where nothing can be fetched.
    pub outside: Option<Arc<Outside>>,
}

impl World {
    /// A world with these objects; Secrets that stand for clusters become clusters, CustomResourceDefinitions become kinds.
    pub fn new(hub_version: ClusterVersion, objects: Vec<Value>) -> Self {
        Self {
            hub_version,
            clusters: Arc::new(objects.iter().filter_map(cluster_of_secret).collect()),
            kinds: objects
                .iter()
                .filter_map(ServedKind::of_definition)
                .collect(),
            objects,
            outside: None,
        }
    }

    /// Whether there is a cluster of that name.
    pub fn has_cluster(&self, name: &str) -> bool {
        name == LOCAL_CLUSTER || self.clusters.iter().any(|cluster| cluster.name == name)
    }

    /// The version of a cluster; that of the hub if it is not known.
    pub fn version(&self, cluster: &str) -> &ClusterVersion {
        let found = self.clusters.iter().find(|known| known.name == cluster);
        found
            .and_then(|known| known.version.as_ref())
            .unwrap_or(&self.hub_version)
    }

    /// An object by group, kind, namespace and name.
    pub fn object(&self, group: &str, kind: &str, namespace: &str, name: &str) -> Option<&Value> {
        self.objects.iter().find(|object| {
            is_kind(object, group, kind)
                && str_at(object, &["metadata", "name"]) == Some(name)
                && str_at(object, &["metadata", "namespace"]).unwrap_or_default() == namespace
        })
    }
}

/// Whether an object is of that group and kind.
pub(crate) fn is_kind(object: &Value, group: &str, kind: &str) -> bool {
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let found = api_version.split_once('/').map_or("", |(group, _)| group);
    object["kind"] == kind && found == group
}

fn cluster_of_secret(object: &Value) -> Option<Cluster> {
    let labels = object["metadata"]["labels"].as_object()?;
    labels.get(label::CLUSTER_CREDENTIAL_TYPE)?;
    let version = str_at(
        object,
        &["metadata", "annotations", annotation::CLUSTER_VERSION],
    );
    let version = version.and_then(|text| serde_json::from_str::<Value>(text).ok());
    let text = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
    Some(Cluster {
        name: str_at(object, &["metadata", "name"])?.to_owned(),
        labels: labels.iter().filter_map(text).collect(),
        version: version.as_ref().and_then(ClusterVersion::from_json),
    })
}
