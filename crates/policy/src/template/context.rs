//! What `.` is in a template: structs with the names that Go gives them in errors.

use std::collections::BTreeMap;

use bellwether_go::value::{Map, Named, Numbers, Object, Text, Type, Value};
use serde::Deserialize;
use serde_json::Value as Json;

use super::Side;

/// What a template knows without looking anything up.
#[derive(Debug, Clone)]
pub enum Context {
    /// On the hub.
    Hub(HubContext),
    /// On a managed cluster.
    Managed(ManagedContext),
}

impl Context {
    /// Where the template is resolved.
    pub const fn side(&self) -> Side {
        match self {
            Self::Hub(_) => Side::Hub,
            Self::Managed(_) => Side::Managed,
        }
    }
}

/// The policy and the cluster that it is resolved for. The labels of the cluster are looked up.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct HubContext {
    /// The name of the cluster.
    pub managed_cluster_name: String,
    /// The policy.
    pub policy_metadata: PolicyMetadata,
}

/// What templates see of a policy.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub struct PolicyMetadata {
    /// Its name.
    pub name: String,
    /// Its namespace.
    pub namespace: String,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Its annotations.
    pub annotations: BTreeMap<String, String>,
}

/// The object that a template describes, as far as it is known. Templates see only the fields that
/// are known.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, rename_all = "PascalCase")]
pub struct ManagedContext {
    /// The name of the object.
    pub object_name: Option<String>,
    /// The namespace of the object.
    pub object_namespace: Option<String>,
    /// The object, if it is there.
    pub object: Option<Json>,
}

/// A map of strings.
fn strings(map: &BTreeMap<String, String>) -> Value {
    let entries = map.iter();
    let entries = entries.map(|(key, value)| (Text::from(key), Value::string(value)));
    Value::Map(Map::new(&Type::String, entries.collect()))
}

/// A struct of a template.
#[derive(Debug)]
struct Dot {
    named: &'static Named,
    fields: Vec<(&'static str, Value)>,
}

impl Object for Dot {
    fn named(&self) -> &'static Named {
        self.named
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        self.fields.clone()
    }

    fn members(&self) -> Option<Vec<(&'static str, Value)>> {
        Some(self.fields())
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

const fn named(name: &'static str) -> Named {
    Named { name, methods: &[] }
}

static HUB: Named = named("propagator.templateCtx");
static NOTHING: Named = named("struct {}");
static NAMESPACE: Named = named("struct { ObjectNamespace string }");
static NAME: Named = named("struct { Object map[string]interface {}; ObjectName string }");
static BOTH: Named =
    named("struct { Object map[string]interface {}; ObjectNamespace string; ObjectName string }");

impl HubContext {
    /// The value of `.`, with the labels of the cluster.
    pub(super) fn dot(&self, labels: &BTreeMap<String, String>) -> Value {
        let policy = &self.policy_metadata;
        let metadata = [
            ("annotations", strings(&policy.annotations)),
            ("labels", strings(&policy.labels)),
            ("name", Value::string(&policy.name)),
            ("namespace", Value::string(&policy.namespace)),
        ];
        Value::object(Dot {
            named: &HUB,
            fields: vec![
                (
                    "ManagedClusterName",
                    Value::string(&self.managed_cluster_name),
                ),
                ("ManagedClusterLabels", strings(labels)),
                ("PolicyMetadata", Value::map(metadata)),
            ],
        })
    }
}

impl ManagedContext {
    /// The value of `.`.
    pub(super) fn dot(&self) -> Value {
        let object = match &self.object {
            Some(object @ Json::Object(_)) => Value::from_json_with(object, Numbers::Integers),
            _ => Value::Map(Map::nil(&Type::Interface)),
        };
        let object = ("Object", object);
        let namespace = |namespace| ("ObjectNamespace", Value::string(namespace));
        let name = |name| ("ObjectName", Value::string(name));
        let (named, fields) = match (&self.object_name, &self.object_namespace) {
            (Some(n), Some(ns)) => (&BOTH, vec![object, namespace(ns), name(n)]),
            (Some(n), None) => (&NAME, vec![object, name(n)]),
            (None, Some(ns)) => (&NAMESPACE, vec![namespace(ns)]),
            (None, None) => (&NOTHING, Vec::new()),
        };
        Value::object(Dot { named, fields })
    }
}
