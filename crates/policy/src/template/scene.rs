//! Answers the functions of one resolution: from the cluster, the restriction and the keys.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use bellwether_api::cluster::GROUP as CLUSTER_GROUP;
use bellwether_go::value::{Map, Numbers, Type, Value};
use bellwether_json::label::LabelSelector;
use bellwether_template::{Facts, Query};
use serde_json::Value as Json;

use super::Request;
use super::context::Context;
use super::functions::{self, packed};
use super::lookup::{Answer, Cluster, Question, Resource};

/// What labels that give a node a role begin with.
const ROLE: &str = "node-role.kubernetes.io";

/// The kind of the objects that stand for clusters.
const MANAGED_CLUSTER: &str = "ManagedCluster";

/// The field of the context that is looked up only where a template names it.
const LABELS: &str = "ManagedClusterLabels";

/// One resolution.
pub(super) struct Scene<'s> {
    request: &'s Request,
    cluster: &'s dyn Cluster,
    needs: Mutex<Vec<Question>>,
    sensitive: AtomicBool,
    skipped: AtomicBool,
}

/// Why a function has no result.
enum Stop {
    /// It refuses.
    Refused(String),
    /// Something is not known yet.
    Unknown,
}

impl<E: ToString> From<E> for Stop {
    fn from(error: E) -> Self {
        Self::Refused(error.to_string())
    }
}

/// What was looked up.
enum Found {
    Object(Json),
    Objects(Vec<Json>),
    /// Nothing; the text says so.
    Nothing(String),
}

/// What is looked up.
#[derive(Clone, Copy)]
struct Target<'t> {
    api_version: &'t str,
    kind: &'t str,
    namespace: &'t str,
    /// Empty for a list.
    name: &'t str,
    selector: &'t str,
}

impl<'s> Scene<'s> {
    pub(super) fn new(request: &'s Request, cluster: &'s dyn Cluster) -> Self {
        Self {
            request,
            cluster,
            needs: Mutex::default(),
            sensitive: AtomicBool::new(false),
            skipped: AtomicBool::new(false),
        }
    }

    pub(super) fn is_sensitive(&self) -> bool {
        self.sensitive.load(Ordering::Relaxed)
    }

    pub(super) fn is_skipped(&self) -> bool {
        self.skipped.load(Ordering::Relaxed)
    }

    pub(super) fn into_needs(self) -> Vec<Question> {
        self.needs
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The value of `.`; nothing if the labels of the cluster are not known yet.
    pub(super) fn dot(&self) -> Option<Value> {
        let hub = match &self.request.context {
            Context::Managed(context) => return Some(context.dot()),
            Context::Hub(context) => context,
        };
        let mut labels = BTreeMap::new();
        if self.request.source.quoted().contains(LABELS) {
            let question = Question::Object {
                api_version: format!("{CLUSTER_GROUP}/v1"),
                kind: MANAGED_CLUSTER.to_owned(),
                namespace: String::new(),
                name: hub.managed_cluster_name.clone(),
            };
            if let Answer::Object(object) = self.ask(question).ok()? {
                let found = object["metadata"]["labels"].as_object();
                let texts = |(key, value): (&String, &Json)| {
                    Some((key.clone(), value.as_str()?.to_owned()))
                };
                labels = found.into_iter().flatten().filter_map(texts).collect();
            }
        }
        Some(hub.dot(&labels))
    }

    fn ask(&self, question: Question) -> Result<Answer, Stop> {
        match self.cluster.answer(&question) {
            Some(Answer::Failed(error)) => return Err(Stop::Refused(error)),
            Some(answer) => return Ok(answer),
            None => {}
        }
        let mut needs = self
            .needs
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if !needs.contains(&question) {
            needs.push(question);
        }
        Err(Stop::Unknown)
    }

    /// The namespace to look in.
    fn namespace<'n>(&'n self, namespace: &'n str) -> Result<&'n str, Stop> {
        match &self.request.restriction {
            Some(restriction) if namespace.is_empty() => Ok(&restriction.namespace),
            Some(restriction) if restriction.namespace != namespace => Err(Stop::Refused(format!(
                "the namespace argument is restricted to {}",
                restriction.namespace
            ))),
            _ => Ok(namespace),
        }
    }

    /// Gets one object, or lists objects.
    fn find(&self, target: Target<'_>) -> Result<Found, Stop> {
        if target.api_version.is_empty() || target.kind.is_empty() {
            return Err("the apiVersion and kind are required".into());
        }
        let namespace = self.namespace(target.namespace)?;
        if target.api_version.matches('/').count() > 1 {
            let version = target.api_version;
            return Err(format!("unexpected GroupVersion string: {version}").into());
        }
        LabelSelector::parse(target.selector)?;
        let resource = self.resource(target)?;
        self.check_scope(target, &resource)?;
        let namespace = if resource.is_namespaced {
            namespace
        } else {
            ""
        };
        let target = Target {
            namespace,
            ..target
        };
        let found = if target.name.is_empty() {
            self.list(target)?
        } else {
            self.get_one(target, &resource)?
        };
        let is_something = match &found {
            Found::Object(_) => true,
            Found::Objects(objects) => !objects.is_empty(),
            Found::Nothing(_) => false,
        };
        if is_something && target.api_version == "v1" && target.kind == "Secret" {
            self.sensitive.store(true, Ordering::Relaxed);
        }
        Ok(found)
    }

    /// How the kind is served.
    fn resource(&self, target: Target<'_>) -> Result<Resource, Stop> {
        let question = Question::Resource {
            api_version: target.api_version.to_owned(),
            kind: target.kind.to_owned(),
        };
        let Answer::Resource(resource) = self.ask(question)? else {
            return Err("one or more API resources are not installed on the API server".into());
        };
        Ok(resource)
    }

    fn list(&self, target: Target<'_>) -> Result<Found, Stop> {
        let question = Question::List {
            api_version: target.api_version.to_owned(),
            kind: target.kind.to_owned(),
            namespace: target.namespace.to_owned(),
            selector: target.selector.to_owned(),
        };
        Ok(match self.ask(question)? {
            Answer::Objects(objects) => Found::Objects(objects),
            _ => Found::Objects(Vec::new()),
        })
    }

    fn get_one(&self, target: Target<'_>, resource: &Resource) -> Result<Found, Stop> {
        let nothing = || Found::Nothing(format!("{} \"{}\" not found", resource.name, target.name));
        if resource.is_namespaced && target.namespace.is_empty() {
            return Ok(nothing());
        }
        let question = Question::Object {
            api_version: target.api_version.to_owned(),
            kind: target.kind.to_owned(),
            namespace: target.namespace.to_owned(),
            name: target.name.to_owned(),
        };
        Ok(match self.ask(question)? {
            Answer::Object(object) => Found::Object(object),
            _ => nothing(),
        })
    }

    /// Restricted templates see no objects outside of namespaces but their own cluster.
    fn check_scope(&self, target: Target<'_>, resource: &Resource) -> Result<(), Stop> {
        let Some(restriction) = &self.request.restriction else {
            return Ok(());
        };
        let group = target
            .api_version
            .split_once('/')
            .map_or("", |(group, _)| group);
        let is_own = group == CLUSTER_GROUP
            && target.kind == MANAGED_CLUSTER
            && target.name == restriction.cluster;
        if resource.is_namespaced || is_own {
            return Ok(());
        }
        Err(format!(
            "lookup of cluster-scoped resource '{}/{}' is not allowed",
            target.kind, target.name
        )
        .into())
    }

    /// `lookup`.
    fn lookup(&self, target: Target<'_>) -> Result<Value, Stop> {
        Ok(match self.find(target)? {
            Found::Object(object) => Value::from_json_with(&object, Numbers::Integers),
            Found::Objects(objects) => items(&objects),
            Found::Nothing(_) => Value::Map(Map::nil(&Type::Interface)),
        })
    }

    /// The data of a ConfigMap or Secret.
    fn data(&self, kind: &str, namespace: &str, name: &str) -> Result<Json, Stop> {
        let failed = |error: String| match kind {
            "Secret" => format!("failed to get the secret {name} from {namespace}: {error}"),
            _ => format!("failed getting the {kind} {name} from {namespace}: {error}"),
        };
        let target = Target {
            api_version: "v1",
            kind,
            namespace,
            name,
            selector: "",
        };
        match self.find(target) {
            Ok(Found::Object(mut object)) => Ok(object["data"].take()),
            Ok(Found::Nothing(error)) | Err(Stop::Refused(error)) => Err(failed(error).into()),
            Ok(Found::Objects(_)) => Err(failed("a name is required".to_owned()).into()),
            Err(Stop::Unknown) => Err(Stop::Unknown),
        }
    }

    fn has_namespace(&self, namespace: &str) -> bool {
        !namespace.is_empty() || self.request.restriction.is_some()
    }

    /// `fromSecret` and `fromConfigMap`.
    fn key(&self, kind: &str, namespace: &str, name: &str, key: &str) -> Result<Value, Stop> {
        if !self.has_namespace(namespace) || name.is_empty() || key.is_empty() {
            return Err("the input is invalid: namespace, name, and key must be specified".into());
        }
        let data = self.data(kind, namespace, name)?;
        let text = data[key].as_str().unwrap_or_default();
        Ok(Value::from(self.secret(kind, text)?))
    }

    /// `copySecretData` and `copyConfigMapData`.
    fn copy(&self, kind: &str, namespace: &str, name: &str) -> Result<Value, Stop> {
        if !self.has_namespace(namespace) || name.is_empty() {
            return Err("the input is invalid: namespace and name must be specified".into());
        }
        let mut data = self.data(kind, namespace, name)?;
        for value in data
            .as_object_mut()
            .into_iter()
            .flatten()
            .map(|(_, value)| value)
        {
            if let Some(text) = value.as_str() {
                *value = Json::from(self.secret(kind, text)?);
            }
        }
        Ok(Value::from(bellwether_json::marshal::to_json(&data)))
    }

    /// A value of a Secret is encrypted if there are keys for it.
    fn secret(&self, kind: &str, text: &str) -> Result<String, Stop> {
        match &self.request.encrypt {
            Some(keys) if kind == "Secret" => Ok(keys.encrypt(text.as_bytes())?),
            _ => Ok(text.to_owned()),
        }
    }

    /// `protect`.
    fn protect(&self, text: &[u8]) -> Result<Value, Stop> {
        match &self.request.encrypt {
            Some(keys) => Ok(Value::from(keys.encrypt(text)?)),
            None => Err("the protect template function is not enabled in this mode".into()),
        }
    }

    /// `fromClusterClaim`, which insists on the claim, and `lookupClusterClaim`.
    fn claim(&self, name: &str, is_required: bool) -> Result<Value, Stop> {
        if name.is_empty() {
            return Err("a claim name must be provided".into());
        }
        let found = self.find(Target {
            api_version: &format!("{CLUSTER_GROUP}/v1alpha1"),
            kind: "ClusterClaim",
            namespace: "",
            name,
            selector: "",
        })?;
        match found {
            Found::Object(claim) => Ok(Value::from(
                claim["spec"]["value"].as_str().unwrap_or_default(),
            )),
            Found::Nothing(error) if is_required => Err(error.into()),
            _ => Ok(Value::from("")),
        }
    }

    /// Nodes that have these roles and no others; that of a worker does not count.
    fn nodes(&self, roles: &[String]) -> Result<Vec<Json>, Stop> {
        let roles = roles.iter().map(|role| role.trim());
        let mut labels: Vec<String> = roles
            .filter(|role| !role.is_empty())
            .map(|role| format!("{ROLE}/{role}"))
            .collect();
        if labels.is_empty() {
            return Err("the input is invalid: at least one name must be specified".into());
        }
        let found = self.find(Target {
            api_version: "v1",
            kind: "Node",
            namespace: "",
            name: "",
            selector: &labels.join(","),
        })?;
        let Found::Objects(mut nodes) = found else {
            return Ok(Vec::new());
        };
        labels.push(format!("{ROLE}/worker"));
        nodes.retain(|node| {
            let keys = node["metadata"]["labels"].as_object().into_iter().flatten();
            let mut roles = keys.map(|(key, _)| key).filter(|key| key.starts_with(ROLE));
            roles.all(|role| labels.contains(role))
        });
        Ok(nodes)
    }

    fn call(&self, query: &Query) -> Result<Value, Stop> {
        let texts: Vec<String> = query
            .arguments
            .iter()
            .map(|text| text.to_str().into_owned())
            .collect();
        let text = |index: usize| texts.get(index).map_or("", String::as_str);
        match query.function {
            functions::LOOKUP => {
                let selectors = texts.get(4..).unwrap_or_default();
                let has_selector = selectors.first().is_some_and(|first| !first.is_empty());
                self.lookup(Target {
                    api_version: text(0),
                    kind: text(1),
                    namespace: text(2),
                    name: text(3),
                    selector: &if has_selector {
                        selectors.join(",")
                    } else {
                        String::new()
                    },
                })
            }
            functions::FROM_SECRET => self.key("Secret", text(0), text(1), text(2)),
            functions::FROM_CONFIG_MAP => self.key("ConfigMap", text(0), text(1), text(2)),
            functions::COPY_SECRET => self.copy("Secret", text(0), text(1)),
            functions::COPY_CONFIG_MAP => self.copy("ConfigMap", text(0), text(1)),
            functions::FROM_CLAIM => self.claim(text(0), true),
            functions::LOOKUP_CLAIM => self.claim(text(0), false),
            functions::GET_NODES => Ok(items(&self.nodes(&texts)?)),
            functions::HAS_NODES => Ok(Value::from(!self.nodes(&texts)?.is_empty())),
            functions::PROTECT => {
                self.protect(query.arguments.first().map_or(b"", |text| text.as_bytes()))
            }
            functions::SKIP => {
                self.skipped.store(true, Ordering::Relaxed);
                Ok(Value::from(""))
            }
            functions::INDENTATION => Ok(Value::int(self.request.context.side().indentation())),
            // Names of hosts are not resolved.
            _ => Ok(Value::from("")),
        }
    }
}

impl Facts for Scene<'_> {
    fn get(&self, query: &Query) -> Option<Value> {
        match self.call(query) {
            Ok(value) if functions::is_ours(query.function) => Some(packed(Ok(value))),
            Ok(value) => Some(value),
            Err(Stop::Refused(message)) => Some(packed(Err(message))),
            Err(Stop::Unknown) => None,
        }
    }
}

/// A list as templates see it.
fn items(objects: &[Json]) -> Value {
    let items = objects.iter();
    let items = items.map(|object| Value::from_json_with(object, Numbers::Integers));
    Value::map([("items", Value::list(items.collect()))])
}
