//! What an application is rendered by: definitions, and what is known of the hub and of what is outside.

use std::sync::Arc;

use bellwether_api::oam::names::label;
use bellwether_api::oam::{Application, ApplicationRevision};
use bellwether_application::appfile::Appfile;
use bellwether_application::catalog::Catalog;
use bellwether_application::revision::has_referred;
use bellwether_application::world::World;
use bellwether_application::{Class, RenderError, Stage};
use serde_json::Value;

use super::copies::CopyError;
use super::outside::Subject;
use super::{Failure, Reconciler, to_json};

/// What an application is rendered by.
pub(super) struct Basis {
    pub(super) catalog: Catalog,
    pub(super) world: World,
    /// The revision that recorded it.
    pinned: Option<Arc<ApplicationRevision>>,
}

impl Reconciler {
    /// What an application is rendered by that is delivered as it is: the definitions and objects that its revision recorded.
    pub(super) async fn recorded_basis(
        &self,
        application: &Application,
    ) -> Result<Option<Basis>, Failure> {
        let Some(pinned) = self.pinning_revision(application) else {
            return Ok(None);
        };
        Ok(Some(Basis {
            catalog: self.definitions.catalog_of(&pinned),
            world: self.world(application, Some(&pinned)).await?,
            pinned: Some(pinned),
        }))
    }

    /// What an application is rendered by otherwise: definitions and objects of today.
    pub(super) async fn basis(&self, application: &Application) -> Result<Basis, Failure> {
        Ok(Basis {
            catalog: self.definitions.catalog(),
            world: self.world(application, None).await?,
            pinned: None,
        })
    }

    /// Parses an application by what its revision recorded; none if something else changed that it refers to.
    pub(super) async fn parse_recorded<'a>(
        &self,
        application: &Application,
        basis: &'a Basis,
    ) -> Result<Option<Appfile<'a>>, Failure> {
        let Some(pinned) = &basis.pinned else {
            return Ok(None);
        };
        let labels = pinned.metadata.labels.as_ref();
        let recorded = labels.and_then(|labels| labels.get(label::APP_REVISION_HASH));
        match self.parse(application, basis).await {
            Ok(mut parsed) => {
                // The revision has this spec and these definitions. Identifiers of other controllers are never ours: a revision of theirs
                // is carried on under the one that it has.
                let is_same = has_referred(pinned, &parsed.referred);
                let Some(recorded) = recorded.filter(|_| is_same) else {
                    return Ok(None);
                };
                parsed.context.revision_hash.clone_from(recorded);
                Ok(Some(parsed))
            }
            Err(Failure::Render(error)) if error.class == Class::Outside => Err(error.into()),
            Err(_) => Ok(None),
        }
    }

    /// Finds everything that an application refers to, and fetches what rendering asks for until there is nothing more.
    pub(super) async fn parse<'a>(
        &self,
        application: &Application,
        basis: &'a Basis,
    ) -> Result<Appfile<'a>, Failure> {
        let subject = Subject {
            application,
            pinned: basis.pinned.as_deref(),
            number: 1,
        };
        let parsed = self.outside.parse(&subject, &basis.catalog, &basis.world);
        parsed.await.map_err(Failure::from)
    }

    /// What rendering has to know of the hub. A revision has the objects that it copies.
    pub(super) async fn world(
        &self,
        application: &Application,
        pinned: Option<&ApplicationRevision>,
    ) -> Result<World, Failure> {
        let namespace = application
            .metadata
            .namespace
            .as_deref()
            .unwrap_or_default();
        let policies = self.policies.in_namespace(namespace);
        let workflows = self.workflows.in_namespace(namespace);
        let mut objects: Vec<Value> = policies.iter().map(|policy| to_json(&**policy)).collect();
        objects.extend(workflows.iter().map(|workflow| to_json(&**workflow)));
        let mut world = World {
            hub_version: self.facts.version().await?,
            clusters: self.facts.members(),
            objects,
            kinds: Vec::new(),
            outside: Some(self.outside.of(application, pinned, self.hub.clock.now())),
        };
        let copied = match pinned {
            Some(revision) => {
                let referred = revision.spec.referred_objects.iter().cloned();
                world.objects.extend(referred);
                self.copies.add_kinds(application, &mut world).await
            }
            None => self.copies.add(application, namespace, &mut world).await,
        };
        copied.map_err(unread)?;
        Ok(world)
    }
}

/// A copy that the hub may not make is reported; everything else is tried again.
fn unread(error: CopyError) -> Failure {
    match error.source {
        kube::Error::Api(ref status) if status.code == 403 => {
            RenderError::new(Stage::Parse, Class::InvalidInput, error.to_string()).into()
        }
        source => Failure::Request(source),
    }
}
