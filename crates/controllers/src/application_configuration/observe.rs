//! What an ApplicationConfiguration is made of: its Components, the definitions of its traits, and the objects as they are.

use std::sync::Arc;

use bellwether_api::oam::names::label;
use bellwether_api::oam::{
    ApplicationConfiguration, Component, ComponentSpec, ObjectReference, TraitDefinition,
};
use bellwether_api::workflow::names::SYSTEM_NAMESPACE;
use bellwether_application::configuration::component_revision::component_of;
use bellwether_application::configuration::render::{
    Reference, Rendered, Source, TraitSettings, references, render,
};
use bellwether_apply::{LiveState, ObjectId, ResourceType};
use bellwether_runtime::ObjectKey;
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::Api;
use serde_json::Value;

use super::{Error, Reconciler};

/// What became of rendering.
pub(super) enum Observed {
    /// The objects as they should be.
    Rendered(Rendered),
    /// A Component has changed, and its revision is about to be stored.
    Waits,
    /// It cannot be rendered, for this reason.
    Refused(String),
}

/// An object on the hub.
#[derive(Debug, Default)]
pub(super) struct Located {
    /// Its kind and id; nothing if the hub does not serve the kind.
    pub(super) place: Option<(Arc<ResourceType>, ObjectId)>,
    /// The object, if it exists.
    pub(super) live: Option<Value>,
}

impl Located {
    /// The UID of the object, if it exists.
    pub(super) fn uid(&self) -> Option<String> {
        let uid = self.live.as_ref()?["metadata"]["uid"].as_str()?;
        Some(uid.to_owned())
    }
}

/// A Component that was looked up.
enum Found {
    Source(Source),
    Waits,
    Missing(String),
}

impl Reconciler {
    /// Looks up everything that an ApplicationConfiguration names, and renders it.
    pub(super) async fn observe(
        &self,
        key: &ObjectKey,
        configuration: &ApplicationConfiguration,
    ) -> Result<Observed, Error> {
        let references = match references(configuration) {
            Ok(references) => references,
            Err(error) => return Ok(Observed::Refused(error.to_string())),
        };
        let mut sources = Vec::with_capacity(references.len());
        for reference in references {
            match self.source(key, reference).await? {
                Found::Source(source) => sources.push(source),
                Found::Waits => return Ok(Observed::Waits),
                Found::Missing(reason) => return Ok(Observed::Refused(reason)),
            }
        }
        let components = configuration.spec.components.iter();
        let traits = components.flat_map(|component| &component.traits);
        let mut settings: Vec<(&Value, TraitSettings)> = Vec::new();
        for component_trait in traits {
            let component_trait = &component_trait.component_trait;
            let known = self.settings(key, component_trait).await?;
            settings.push((component_trait, known));
        }
        let settings = |component_trait: &Value| {
            let known = settings.iter().find(|(known, _)| *known == component_trait);
            known
                .map(|(_, settings)| settings.clone())
                .unwrap_or_default()
        };
        Ok(match render(configuration, &sources, settings) {
            Ok(rendered) => Observed::Rendered(rendered),
            Err(error) => Observed::Refused(error.to_string()),
        })
    }

    async fn source(&self, key: &ObjectKey, reference: Reference<'_>) -> Result<Found, Error> {
        match reference {
            Reference::Latest(name) => {
                let component = self.components.get(&ObjectKey::new(&key.namespace, name));
                Ok(match component {
                    Some(component) => latest(name, &component),
                    None => Found::Missing(format!("there is no Component {name:?}")),
                })
            }
            Reference::Revision(name) => {
                let api: Api<ControllerRevision> =
                    Api::namespaced(self.hub.client.clone(), &key.namespace);
                let revision = api.get_opt(name).await?;
                let source = revision.and_then(|revision| stored(name, revision));
                Ok(source.map_or_else(
                    || Found::Missing(format!("there is no revision {name:?} of a Component")),
                    Found::Source,
                ))
            }
        }
    }

    /// What is known of the type of a trait: by its definition in the same namespace, or in that of the system.
    async fn settings(
        &self,
        key: &ObjectKey,
        component_trait: &Value,
    ) -> Result<TraitSettings, Error> {
        let resource = self.resource(component_trait).await?;
        let definition = resource.map(|it| format!("{}.{}", it.plural, it.group));
        let named = component_trait["metadata"]["labels"][label::TRAIT_TYPE].as_str();
        let is_it = |known: &Arc<TraitDefinition>| {
            let name = known.metadata.name.as_deref();
            let stands_for = known
                .spec
                .definition_ref
                .as_ref()
                .map(|it| it.name.as_str());
            match named {
                Some(named) => name == Some(named),
                None => definition.is_some() && [name, stands_for].contains(&definition.as_deref()),
            }
        };
        let namespaces = [&*key.namespace, SYSTEM_NAMESPACE];
        let mut definitions = namespaces
            .into_iter()
            .flat_map(|namespace| self.definitions.in_namespace(namespace));
        let definition = definitions.find(is_it);
        Ok(definition.map_or_else(
            || TraitSettings::without_definition(component_trait),
            |definition| TraitSettings::of(&definition),
        ))
    }

    /// What the hub calls the kind of an object; nothing if it does not serve it.
    async fn resource(&self, object: &Value) -> Result<Option<Arc<ResourceType>>, Error> {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let api_version = text(&object["apiVersion"]);
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let discovery = &self.delivery.discovery;
        let kind = text(&object["kind"]);
        Ok(discovery
            .find(&self.delivery.objects, group, version, &kind)
            .await?)
    }

    /// Finds an object that a status refers to, or will.
    pub(super) async fn locate(
        &self,
        key: &ObjectKey,
        reference: &ObjectReference,
    ) -> Result<Located, Error> {
        let api_version = &reference.api_version;
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        let (discovery, objects) = (&self.delivery.discovery, &self.delivery.objects);
        let resource = discovery
            .find(objects, group, version, &reference.kind)
            .await?;
        let Some(resource) = resource else {
            return Ok(Located::default());
        };
        let namespace = match &reference.namespace {
            _ if !resource.namespaced => String::new(),
            Some(namespace) => namespace.clone(),
            None => key.namespace.to_string(),
        };
        let id = ObjectId {
            group: resource.group.clone(),
            resource: resource.plural.clone(),
            namespace,
            name: reference.name.clone(),
        };
        let live = match self.delivery.watches.known(&id) {
            LiveState::Unknown => objects.get(&resource, &id).await?,
            LiveState::Absent => None,
            // A kind is watched in one version, in whose form another cannot be compared.
            LiveState::Present(live) if live["apiVersion"] != **api_version => {
                objects.get(&resource, &id).await?
            }
            LiveState::Present(live) => Some(Arc::unwrap_or_clone(live)),
        };
        Ok(Located {
            place: Some((resource, id)),
            live,
        })
    }
}

/// The latest revision of a Component, once it is stored.
fn latest(name: &str, component: &Component) -> Found {
    let status = component.status.as_ref();
    let is_current =
        status.is_some_and(|it| it.observed_generation == component.metadata.generation);
    let revision = status.and_then(|status| status.latest_revision.as_ref());
    match revision.filter(|_| is_current) {
        Some(revision) => Found::Source(Source {
            name: name.to_owned(),
            revision: revision.name.clone(),
            spec: component.spec.clone(),
        }),
        None => Found::Waits,
    }
}

/// A revision of a Component as it is stored; nothing if it is a revision of something else.
fn stored(name: &str, revision: ControllerRevision) -> Option<Source> {
    let labels = revision.metadata.labels.unwrap_or_default();
    let component = labels.get(label::CONTROLLER_COMPONENT).map(String::as_str);
    let spec = revision.data?.0.get("spec")?.clone();
    let spec: ComponentSpec = serde_json::from_value(spec).ok()?;
    Some(Source {
        name: component.or(component_of(name))?.to_owned(),
        revision: name.to_owned(),
        spec,
    })
}
