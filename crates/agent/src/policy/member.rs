//! What is known of a member, and what was done there.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use bellwether_api::policy::{
    CertificatePolicy, ConfigurationPolicy, OperatorPolicy, Policy, template_definition,
};
use bellwether_api::{Kind as _, KindNames, definition};
use bellwether_apply::{LiveState, ObjectId, ResourceType};
use bellwether_policy::config_policy::Repairs;
use bellwether_runtime::objects::collection;
use bellwether_runtime::{
    ClusterHandle, Discovery, Objects, Queue, RequestError, SharedKinds, Watches, in_time,
};
use jiff::Timestamp;
use parking_lot::Mutex;
use prometheus_client::metrics::gauge::Gauge;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::list_watches::ListWatches;
use super::standalone::{KINDS, Standalone};
use super::{MANAGER, PolicyKey};

/// What is remembered of one policy.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Objects whose changes enqueue it.
    pub(super) tracked: BTreeSet<ObjectId>,
    /// When its templates were evaluated last, by name.
    pub(super) evaluated: HashMap<String, Timestamp>,
    /// What its templates have repaired, by name.
    pub(super) repairs: HashMap<String, Repairs>,
    /// The time of its last message: no two have the same, because events are named after it.
    pub(super) latest: Option<Timestamp>,
    /// The objects that its templates are; nothing until they were looked for.
    pub(super) templates: Option<BTreeSet<TemplateObject>>,
}

/// The object of a template: group and version, kind, name.
pub(super) type TemplateObject = (String, String, String);

/// A member.
pub(super) struct Member {
    pub(super) cluster: Arc<str>,
    pub(super) objects: Objects,
    pub(super) discovery: Discovery,
    pub(super) watches: Watches<PolicyKey>,
    pub(super) lists: ListWatches,
    pub(super) standalone: Standalone,
    begun: OnceCell<()>,
    pub(super) memories: Mutex<HashMap<PolicyKey, Memory>>,
}

/// How a kind of ours is named in paths.
pub(super) fn resource_of(names: KindNames) -> ResourceType {
    ResourceType {
        group: names.group.to_owned(),
        version: names.version.to_owned(),
        kind: names.kind.to_owned(),
        plural: names.plural.to_owned(),
        namespaced: true,
    }
}

/// A kind of Kubernetes.
pub(super) fn core_resource(kind: &str, plural: &str, namespaced: bool) -> ResourceType {
    ResourceType {
        group: String::new(),
        version: "v1".to_owned(),
        kind: kind.to_owned(),
        plural: plural.to_owned(),
        namespaced,
    }
}

/// The kind of definitions.
pub(super) fn definitions() -> ResourceType {
    ResourceType {
        group: "apiextensions.k8s.io".to_owned(),
        ..core_resource(
            "CustomResourceDefinition",
            "customresourcedefinitions",
            false,
        )
    }
}

/// An object by its kind and name.
pub(super) fn id_of(resource: &ResourceType, namespace: &str, name: &str) -> ObjectId {
    ObjectId {
        group: resource.group.clone(),
        resource: resource.plural.clone(),
        namespace: if resource.namespaced {
            namespace.to_owned()
        } else {
            String::new()
        },
        name: name.to_owned(),
    }
}

/// How an object is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Request {
    Create,
    Replace,
    /// Replace only the status.
    ReplaceStatus,
}

impl Member {
    pub(super) fn new(
        cluster: Arc<str>,
        reach: ClusterHandle,
        queue: Queue<PolicyKey>,
        kinds: Arc<SharedKinds>,
    ) -> Self {
        let objects = Objects::new(reach.clone(), MANAGER);
        Self {
            watches: Watches::new(objects.clone(), queue.clone(), Gauge::default()),
            lists: ListWatches::new(reach.clone(), queue.clone()),
            standalone: Standalone::new(Arc::clone(&cluster), reach, queue),
            cluster,
            objects,
            discovery: Discovery::new(kinds),
            begun: OnceCell::new(),
            memories: Mutex::default(),
        }
    }

    /// Makes sure that policies can be kept on the member.
    pub(super) async fn begin(&self) -> Result<(), RequestError> {
        let begun = self.begun.get_or_try_init(|| async {
            self.define(Policy::NAMES, definition::<Policy>).await?;
            self.define_template(ConfigurationPolicy::NAMES.kind)
                .await?;
            self.find_kinds().await?;
            let namespaces = core_resource("Namespace", "namespaces", false);
            let namespace = json!({
                "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": &*self.cluster}});
            match self.objects.create(&namespaces, "", &namespace).await {
                Err(error) if !error.is_already_there() => Err(error),
                _ => Ok(()),
            }
        });
        begun.await?;
        Ok(())
    }

    /// Watches the kinds of templates that the member serves.
    pub(super) async fn find_kinds(&self) -> Result<(), RequestError> {
        for names in KINDS {
            if self.find(&names.api_version(), names.kind).await?.is_some() {
                self.standalone.watch(names);
            }
        }
        Ok(())
    }

    /// Defines a kind of template that this agent evaluates; others have to be there.
    pub(super) async fn define_template(&self, kind: &str) -> Result<(), RequestError> {
        let (names, definition): (_, fn() -> Value) = match kind {
            "ConfigurationPolicy" => (
                ConfigurationPolicy::NAMES,
                template_definition::<ConfigurationPolicy>,
            ),
            "CertificatePolicy" => (
                CertificatePolicy::NAMES,
                template_definition::<CertificatePolicy>,
            ),
            "OperatorPolicy" => (OperatorPolicy::NAMES, template_definition::<OperatorPolicy>),
            _ => return Ok(()),
        };
        self.define(names, definition).await?;
        self.standalone.watch(names);
        Ok(())
    }

    async fn define(
        &self,
        names: KindNames,
        definition: fn() -> Value,
    ) -> Result<(), RequestError> {
        if self.find(&names.api_version(), names.kind).await?.is_some() {
            return Ok(());
        }
        let answer = self.objects.create(&definitions(), "", &definition()).await;
        self.discovery.forget(names.group, names.version);
        match answer {
            Err(error) if !error.is_already_there() => Err(error),
            _ => Ok(()),
        }
    }

    /// What the member calls a kind; nothing if it does not serve it.
    pub(super) async fn find(
        &self,
        api_version: &str,
        kind: &str,
    ) -> Result<Option<Arc<ResourceType>>, RequestError> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        if version.is_empty() || version.contains('/') || kind.is_empty() {
            return Ok(None);
        }
        self.discovery
            .find(&self.objects, group, version, kind)
            .await
    }

    /// Reads an object, from a watch if there is one.
    pub(super) async fn read(
        &self,
        resource: &ResourceType,
        id: &ObjectId,
    ) -> Result<Option<Value>, RequestError> {
        match self.watches.known(id) {
            LiveState::Present(object) => Ok(Some(Arc::unwrap_or_clone(object))),
            LiveState::Absent => Ok(None),
            LiveState::Unknown => {
                let found = self.objects.get(resource, id).await?;
                match &found {
                    Some(object) => self.watches.note(id, object),
                    None => self.watches.note_gone(id),
                }
                Ok(found)
            }
        }
    }

    /// Has a policy enqueued when an object changes.
    pub(super) async fn track(&self, resource: &Arc<ResourceType>, id: &ObjectId, key: &PolicyKey) {
        self.watches.track(id, key);
        self.watches.ensure(resource);
        self.watches.settled(id).await;
    }

    /// Lists objects of a kind, in one namespace or in all.
    pub(super) async fn list(
        &self,
        resource: &ResourceType,
        namespace: &str,
        selector: &str,
    ) -> Result<Vec<Value>, RequestError> {
        let mut path = collection(resource, namespace).url_path;
        if !selector.is_empty() {
            path = format!("{path}?labelSelector={}", encoded(selector));
        }
        let mut list = self.objects.read(&path).await?;
        let Value::Array(mut items) = list["items"].take() else {
            return Ok(Vec::new());
        };
        let api_version = list["apiVersion"].take();
        for item in &mut items {
            if item.get("kind").is_none() {
                item["apiVersion"] = api_version.clone();
                item["kind"] = json!(resource.kind);
            }
        }
        Ok(items)
    }

    /// Writes an object. Fields that the kind does not have are refused.
    pub(super) async fn write(
        &self,
        request: Request,
        resource: &ResourceType,
        id: &ObjectId,
        object: &Value,
    ) -> Result<Value, RequestError> {
        let path = collection(resource, &id.namespace).url_path;
        let (method, path) = match request {
            Request::Create => (http::Method::POST, path),
            Request::Replace => (http::Method::PUT, format!("{path}/{}", id.name)),
            Request::ReplaceStatus => (http::Method::PUT, format!("{path}/{}/status", id.name)),
        };
        let request = http::Request::builder()
            .method(method)
            .uri(format!(
                "{path}?fieldManager={MANAGER}&fieldValidation=Strict"
            ))
            .header(http::header::CONTENT_TYPE, "application/json")
            .body(object.to_string().into_bytes())
            .map_err(|error| RequestError::Unreached(error.to_string()))?;
        let client = self.objects.cluster().client();
        let written: Value = in_time(client.request(request)).await?;
        self.watches.note(id, &written);
        Ok(written)
    }
}

/// A text for a query, with what has a meaning there escaped.
fn encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            encoded.push(char::from(byte));
        } else {
            encoded.extend(['%', hex(byte >> 4), hex(byte & 15)]);
        }
    }
    encoded
}

fn hex(digit: u8) -> char {
    char::from_digit(u32::from(digit), 16).map_or('0', |digit| digit.to_ascii_uppercase())
}
