//! What is known of clusters: the parts of their objects that placements look at.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};

use bellwether_api::cluster::names::label::CLUSTER_SET;
use bellwether_api::cluster::{
    AddOnPlacementScore, ManagedCluster, ManagedClusterSet, SelectorType,
};
use bellwether_api::meta;
use bellwether_json::label::LabelSelector;
use bellwether_json::path::object_at;
use bellwether_json::quantity::Quantity;
use bellwether_json::time::parse_time;
use jiff::Timestamp;
use serde::Deserialize as _;
use serde_json::Value;

use super::placement::Misconfigured;
use super::selector::label_selector;

/// A `ManagedCluster`, read once.
#[derive(Debug, Clone)]
pub struct Cluster {
    /// Its name.
    pub name: Arc<str>,
    /// What it claims about itself.
    pub claims: BTreeMap<String, String>,
    /// What keeps placements away from it.
    pub taints: Vec<Taint>,
    /// Whether it is about to go.
    pub is_deleting: bool,
    object: Object,
}

/// The whole object. A fleet has thousands of them, so what is known elsewhere is not copied.
#[derive(Debug, Clone)]
enum Object {
    Json {
        labels: BTreeMap<String, String>,
        whole: Arc<Value>,
    },
    Typed {
        cluster: Arc<ManagedCluster>,
        /// As expressions see it, once one has looked.
        whole: OnceLock<Arc<Value>>,
    },
}

/// For a cluster without labels.
static NO_LABELS: BTreeMap<String, String> = BTreeMap::new();

/// Something about a cluster that placements must tolerate to choose it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taint {
    /// Its key.
    pub key: String,
    /// Its value, often empty.
    pub value: String,
    /// What it does.
    pub effect: TaintEffect,
    /// Since when it is there.
    pub time_added: Option<Timestamp>,
}

/// What a taint does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TaintEffect {
    /// The cluster is not chosen, and given up.
    NoSelect,
    /// Nothing; a wish that is not heard.
    PreferNoSelect,
    /// The cluster is not chosen, but kept by those that have it.
    NoSelectIfNew,
}

impl TaintEffect {
    pub(super) fn read(text: &str) -> Option<Self> {
        match text {
            "NoSelect" => Some(Self::NoSelect),
            "PreferNoSelect" => Some(Self::PreferNoSelect),
            "NoSelectIfNew" => Some(Self::NoSelectIfNew),
            _ => None,
        }
    }

    /// How it is written.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoSelect => "NoSelect",
            Self::PreferNoSelect => "PreferNoSelect",
            Self::NoSelectIfNew => "NoSelectIfNew",
        }
    }
}

impl Cluster {
    /// Reads a `ManagedCluster`; none if it has no name. What an API server would not have let
    /// in is left out.
    pub fn from_json(object: Arc<Value>) -> Option<Self> {
        let metadata = object_at(&object, &["metadata"])?;
        let name = metadata.get("name")?.as_str()?.into();
        let is_deleting = metadata
            .get("deletionTimestamp")
            .is_some_and(|time| !time.is_null());
        let items = |path: &str| object.pointer(path).and_then(Value::as_array);
        let claim = |claim: &Value| {
            let name = claim.get("name")?.as_str()?.to_owned();
            Some((name, claim.get("value")?.as_str()?.to_owned()))
        };
        let claims = items("/status/clusterClaims").into_iter().flatten();
        let taints = items("/spec/taints").into_iter().flatten();
        Some(Self {
            name,
            claims: claims.filter_map(claim).collect(),
            taints: taints.filter_map(Taint::read).collect(),
            is_deleting,
            object: Object::Json {
                labels: texts(object_at(&object, &["metadata", "labels"])),
                whole: object,
            },
        })
    }

    /// The same from an object that somebody else keeps as well.
    pub fn from_object(cluster: Arc<ManagedCluster>) -> Option<Self> {
        let metadata = &cluster.metadata;
        let claims = cluster.status.iter().flat_map(|it| &it.cluster_claims);
        let claim = |it: &bellwether_api::cluster::ManagedClusterClaim| {
            Some((it.name.clone()?, it.value.clone()?))
        };
        Some(Self {
            name: metadata.name.as_deref()?.into(),
            claims: claims.filter_map(claim).collect(),
            taints: cluster.spec.taints.iter().filter_map(Taint::of).collect(),
            is_deleting: metadata.deletion_timestamp.is_some(),
            object: Object::Typed {
                cluster,
                whole: OnceLock::new(),
            },
        })
    }

    /// Its labels.
    pub fn labels(&self) -> &BTreeMap<String, String> {
        match &self.object {
            Object::Json { labels, .. } => labels,
            Object::Typed { cluster, .. } => {
                let labels = cluster.metadata.labels.as_ref();
                labels.unwrap_or(&NO_LABELS)
            }
        }
    }

    /// The whole object, for expressions.
    pub(super) fn object(&self) -> &Value {
        match &self.object {
            Object::Json { whole, .. } => whole,
            // Our own types always have a JSON form.
            Object::Typed { cluster, whole } => {
                whole.get_or_init(|| Arc::new(serde_json::to_value(&**cluster).unwrap_or_default()))
            }
        }
    }

    /// How much of a resource can be used, if the cluster says so.
    pub(super) fn allocatable(&self, resource: &str) -> Option<f64> {
        self.amount("capacity", resource)?;
        let amount = self.amount("allocatable", resource)?;
        Some(amount.as_f64())
    }

    /// An amount of a resource, `capacity` or `allocatable`, if it can be read.
    fn amount(&self, field: &str, resource: &str) -> Option<Quantity> {
        let text = match &self.object {
            Object::Json { whole, .. } => {
                let amounts = object_at(whole, &["status", field])?;
                match amounts.get(resource)? {
                    Value::String(text) => Cow::Borrowed(text.as_str()),
                    other => other.to_string().into(),
                }
            }
            Object::Typed { cluster, .. } => {
                let status = cluster.status.as_ref()?;
                let amounts = match field {
                    "capacity" => &status.capacity,
                    _ => &status.allocatable,
                };
                match amounts.get(resource)? {
                    meta::Quantity::Text(text) => Cow::Borrowed(text.as_str()),
                    meta::Quantity::Number(number) => number.to_string().into(),
                }
            }
        };
        text.parse().ok()
    }
}

impl Taint {
    fn read(taint: &Value) -> Option<Self> {
        let text = |field: &str| taint.get(field).and_then(Value::as_str);
        Some(Self {
            key: text("key")?.to_owned(),
            value: text("value").unwrap_or_default().to_owned(),
            effect: TaintEffect::read(text("effect")?)?,
            time_added: text("timeAdded").and_then(|time| parse_time(time).ok()),
        })
    }

    fn of(taint: &bellwether_api::cluster::Taint) -> Option<Self> {
        Some(Self {
            key: taint.key.clone(),
            value: taint.value.clone().unwrap_or_default(),
            effect: TaintEffect::read(taint.effect.as_str())?,
            time_added: taint.time_added.as_ref().map(|time| time.0),
        })
    }
}

fn texts(map: Option<&serde_json::Map<String, Value>>) -> BTreeMap<String, String> {
    let text = |(key, value): (&String, &Value)| Some((key.clone(), value.as_str()?.to_owned()));
    map.into_iter().flatten().filter_map(text).collect()
}

/// A `ManagedClusterSet`: which clusters belong to it.
#[derive(Debug, Clone)]
pub struct ClusterSet {
    /// Its name.
    pub name: String,
    /// By their labels; none: those that carry the set's own label.
    selector: Option<LabelSelector>,
    /// What is wrong with the selector; such a set has no members.
    problem: Option<Misconfigured>,
}

impl From<&ManagedClusterSet> for ClusterSet {
    fn from(object: &ManagedClusterSet) -> Self {
        let name = object.metadata.name.clone().unwrap_or_default();
        Self::new(name, selector(object))
    }
}

/// Compiles the selector of a set; none if its members carry the set's own label.
fn selector(object: &ManagedClusterSet) -> Result<Option<LabelSelector>, String> {
    let Some(selector) = &object.spec.cluster_selector else {
        return Ok(None);
    };
    match &selector.selector_type {
        SelectorType::ExclusiveClusterSetLabel => Ok(None),
        SelectorType::LabelSelector => match &selector.label_selector {
            Some(labels) => label_selector(labels).map(Some),
            None => Ok(Some(LabelSelector::nothing())),
        },
        SelectorType::Other(text) if text.is_empty() => Ok(None),
        SelectorType::Other(text) => Err(format!("unknown selectorType {text:?}")),
    }
}

impl ClusterSet {
    fn new(name: String, selector: Result<Option<LabelSelector>, String>) -> Self {
        let (selector, problem) = match selector {
            Ok(selector) => (selector, None),
            Err(problem) => {
                let problem = Misconfigured::new("clusterSelector", problem);
                (Some(LabelSelector::nothing()), Some(problem))
            }
        };
        Self {
            name,
            selector,
            problem,
        }
    }

    /// The same from JSON that no API server has checked.
    pub fn from_json(object: &Value) -> Self {
        match ManagedClusterSet::deserialize(object) {
            Ok(set) => Self::from(&set),
            Err(error) => {
                let name = object.pointer("/metadata/name").and_then(Value::as_str);
                Self::new(name.unwrap_or_default().to_owned(), Err(error.to_string()))
            }
        }
    }

    /// What is wrong with its selector.
    pub fn problem(&self) -> Option<&Misconfigured> {
        self.problem.as_ref()
    }

    /// The label that all its members have, if members are told by one.
    pub fn label(&self) -> Option<(&'static str, &str)> {
        match self.selector {
            Some(_) => None,
            None => Some((CLUSTER_SET, &self.name)),
        }
    }

    /// Whether a cluster belongs to it.
    pub fn contains(&self, cluster: &Cluster) -> bool {
        self.has(cluster.labels())
    }

    /// Whether a cluster with these labels belongs to it.
    pub fn has(&self, labels: &BTreeMap<String, String>) -> bool {
        match &self.selector {
            Some(selector) => selector.matches(labels),
            None => labels.get(CLUSTER_SET) == Some(&self.name),
        }
    }
}

/// An `AddOnPlacementScore`: what an add-on thinks of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AddOnScores {
    /// The scores by name.
    pub values: BTreeMap<String, i64>,
    /// Until when they count.
    pub valid_until: Option<Timestamp>,
}

/// The scores of all clusters, by cluster and by the name of the `AddOnPlacementScore`.
#[derive(Debug, Clone, Default)]
pub struct ScoreBoard {
    clusters: HashMap<Arc<str>, BTreeMap<String, AddOnScores>>,
}

impl ScoreBoard {
    /// Adds an `AddOnPlacementScore`, which lives in the namespace of its cluster.
    pub fn insert(&mut self, object: &AddOnPlacementScore) {
        let metadata = &object.metadata;
        let (Some(cluster), Some(name)) = (&metadata.namespace, &metadata.name) else {
            return;
        };
        let status = object.status.as_ref();
        let scores = status.iter().flat_map(|it| &it.scores);
        let scores = AddOnScores {
            values: scores
                .map(|it| (it.name.clone(), i64::from(it.value)))
                .collect(),
            valid_until: status.and_then(|it| Some(it.valid_until.as_ref()?.0)),
        };
        let of_cluster = self.clusters.entry(cluster.as_str().into()).or_default();
        of_cluster.insert(name.clone(), scores);
    }

    /// The same from JSON that no API server has checked.
    pub(super) fn insert_json(&mut self, object: &Value) -> Result<(), serde_json::Error> {
        AddOnPlacementScore::deserialize(object).map(|object| self.insert(&object))
    }

    /// Forgets what a cluster has under a name.
    pub fn remove(&mut self, cluster: &str, name: &str) {
        if let Some(of_cluster) = self.clusters.get_mut(cluster) {
            of_cluster.remove(name);
            if of_cluster.is_empty() {
                self.clusters.remove(cluster);
            }
        }
    }

    /// What a cluster has under a name.
    pub fn get(&self, cluster: &str, name: &str) -> Option<&AddOnScores> {
        self.clusters.get(cluster)?.get(name)
    }

    /// Everything a cluster has, as expressions see it: lists of names and values by name.
    pub(super) fn to_json(&self, cluster: &str) -> Value {
        let list = |scores: &AddOnScores| -> Value {
            let score = |(name, value)| serde_json::json!({"name": name, "value": value});
            scores.values.iter().map(score).collect()
        };
        let of_cluster = self.clusters.get(cluster).into_iter().flatten();
        let lists = of_cluster.map(|(name, scores)| (name.clone(), list(scores)));
        Value::Object(lists.collect())
    }
}
