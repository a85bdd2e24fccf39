//! Templates of steps: of the namespace of the workflow, of the system, or built in.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bellwether_api::workflow::names::{SYSTEM_NAMESPACE, step_type};
use bellwether_runtime::{Cache, CacheEntry, ObjectKey, Selection};
use bellwether_workflow::{Definition, Spec, builtin};
use kube::Client;
use parking_lot::Mutex;
use serde::Deserialize;

/// Where definitions of steps are.
const PATH: &str = "/apis/core.oam.dev/v1beta1";
const PLURAL: &str = "workflowstepdefinitions";
/// No more compiled templates than this are kept.
const MOST_COMPILED: usize = 1000;

/// Steps whose templates are part of the engine.
const ENGINE_STEPS: [&str; 4] = [
    step_type::SUSPEND,
    step_type::STEP_GROUP,
    step_type::APPLY_COMPONENT,
    step_type::BUILTIN_APPLY_COMPONENT,
];

/// What is kept of a WorkflowStepDefinition.
#[derive(Debug)]
pub struct Template {
    key: ObjectKey,
    version: String,
    source: Arc<str>,
}

#[derive(Deserialize)]
struct Stored {
    metadata: Metadata,
    #[serde(default)]
    spec: serde_json::Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    #[serde(default)]
    namespace: String,
    #[serde(default)]
    resource_version: String,
}

impl CacheEntry for Template {
    fn read(text: &str) -> Result<Self, serde_json::Error> {
        let stored: Stored = serde_json::from_str(text)?;
        let source = stored.spec["schematic"]["cue"]["template"]
            .as_str()
            .unwrap_or_default();
        Ok(Self {
            key: ObjectKey::new(&stored.metadata.namespace, &stored.metadata.name),
            version: stored.metadata.resource_version,
            source: source.into(),
        })
    }

    fn key(&self) -> ObjectKey {
        self.key.clone()
    }

    fn is_same(&self, other: &Self) -> bool {
        self.version == other.version
    }
}

/// Why a workflow cannot be carried out.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionError {
    /// There is no such definition.
    #[error("{PLURAL}.core.oam.dev {0:?} not found")]
    NotFound(String),
    /// The server cannot be asked.
    #[error(transparent)]
    Kube(#[from] kube::Error),
}

/// All definitions of a hub, and those of them that were compiled.
pub struct Definitions {
    client: Client,
    stored: Cache<Template>,
    compiled: Mutex<HashMap<Arc<str>, Arc<Definition>>>,
}

impl std::fmt::Debug for Definitions {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Definitions")
            .finish_non_exhaustive()
    }
}

impl Definitions {
    /// Begins to watch definitions; must be called within a tokio runtime.
    pub fn start(client: &Client) -> Self {
        let path = format!("{PATH}/{PLURAL}");
        let stored = Cache::follow(client.clone(), path, Selection::default(), |_| {});
        Self {
            client: client.clone(),
            stored,
            compiled: Mutex::default(),
        }
    }

    /// The definitions that were stored, for those who want to know when they change.
    pub fn cache(&self) -> &Cache<Template> {
        &self.stored
    }

    /// Adds the templates of all types of steps to a workflow.
    pub async fn resolve(&self, spec: &mut Spec) -> Result<(), DefinitionError> {
        let mut found = BTreeMap::new();
        for (step, _) in spec.all() {
            let name = &step.step_type;
            let is_engine = ENGINE_STEPS.contains(&name.as_str());
            if is_engine || found.contains_key(name) {
                continue;
            }
            let definition = self.find(&spec.namespace, name).await?;
            found.insert(name.clone(), definition);
        }
        spec.definitions = found;
        Ok(())
    }

    async fn find(&self, namespace: &str, name: &str) -> Result<Arc<Definition>, DefinitionError> {
        let cached = [namespace, SYSTEM_NAMESPACE]
            .into_iter()
            .find_map(|namespace| self.stored.get(&ObjectKey::new(namespace, name)));
        if let Some(template) = cached {
            return Ok(self.compile(&template.source));
        }
        // The watch may be behind: somebody created a definition, and then the workflow.
        if let Some(source) = self.read(namespace, name).await? {
            return Ok(self.compile(&source));
        }
        let own = builtin::step(name).ok_or_else(|| DefinitionError::NotFound(name.to_owned()))?;
        Ok(self.compile(own))
    }

    async fn read(&self, namespace: &str, name: &str) -> Result<Option<Arc<str>>, kube::Error> {
        if name.contains(['/', '?', '#', '%']) {
            return Ok(None);
        }
        let path = format!("{PATH}/namespaces/{namespace}/{PLURAL}/{name}");
        let request = http::Request::get(path).body(Vec::new());
        let request = request.map_err(kube::Error::HttpError)?;
        match self.client.request::<serde_json::Value>(request).await {
            Ok(object) => {
                let source = object["spec"]["schematic"]["cue"]["template"].as_str();
                Ok(source.map(Arc::from))
            }
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// A template that is compiled once.
    pub fn compile(&self, source: &str) -> Arc<Definition> {
        let mut compiled = self.compiled.lock();
        if let Some(definition) = compiled.get(source) {
            return Arc::clone(definition);
        }
        if compiled.len() >= MOST_COMPILED {
            compiled.clear();
        }
        let definition = Arc::new(Definition::new(source));
        compiled.insert(source.into(), Arc::clone(&definition));
        definition
    }
}
