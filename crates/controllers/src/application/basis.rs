//! What an application is rendered by: definitions, and what is known of the hub and of what is outside.

use std::sync::Arc;

use bellwether_api::cluster::ManagedCluster;
use bellwether_api::oam::names::label;
use bellwether_api::oam::{Application, ApplicationRevision};
use bellwether_application::Class;
use bellwether_application::appfile::{self, Appfile};
use bellwether_application::catalog::Catalog;
use bellwether_application::deliver::deliver;
use bellwether_application::world::{Cluster, ClusterVersion, World};
use bellwether_runtime::compute;
use serde_json::Value;

use super::{Failure, Reconciler, to_json};

/// How often something may be fetched that what was fetched before asks for.
const FETCH_ROUNDS: usize = 8;

/// What an application is rendered by.
pub(super) struct Basis {
    pub(super) catalog: Catalog,
    pub(super) world: World,
    /// The revision that recorded it.
    pinned: Option<Arc<ApplicationRevision>>,
}

impl Reconciler {
    /// What an application is rendered by: the definitions and objects that its revision recorded, or those of today where
    /// there is none, or something else changed that it refers to.
    pub(super) async fn basis(&self, application: &Application) -> Result<Basis, Failure> {
        if let Some(pinned) = self.pinning_revision(application) {
            let labels = pinned.metadata.labels.as_ref();
            let recorded = labels.and_then(|labels| labels.get(label::APP_REVISION_HASH));
            let recorded = recorded.cloned();
            let basis = Basis {
                catalog: self.definitions.catalog_of(&pinned),
                world: self.world(application, Some(&pinned)).await?,
                pinned: Some(pinned),
            };
            let is_same = match self.parse(application, &basis).await {
                Ok(parsed) => Some(&parsed.context.revision_hash) == recorded.as_ref(),
                Err(Failure::Render(error)) if error.class == Class::Outside => {
                    return Err(error.into());
                }
                Err(_) => false,
            };
            if is_same {
                return Ok(basis);
            }
        }
        Ok(Basis {
            catalog: self.definitions.catalog(),
            world: self.world(application, None).await?,
            pinned: None,
        })
    }

    /// Finds everything that an application refers to, and fetches what rendering asks for until there is nothing more.
    pub(super) async fn parse<'a>(
        &self,
        application: &Application,
        basis: &'a Basis,
    ) -> Result<Appfile<'a>, Failure> {
        let (catalog, world) = (&basis.catalog, &basis.world);
        let outside = world.outside.as_ref();
        if let Some(outside) = outside {
            outside.forget_failures();
        }
        let mut rounds = 0;
        loop {
            let parsed = appfile::parse(application, catalog, world, 1);
            let error = match parsed {
                // Nothing of it is applied before everything that it needs is there.
                Ok(appfile) if appfile.asks_outside() => {
                    match compute(|| deliver(&appfile)).await {
                        Err(error) if error.class == Class::Outside => error,
                        _ => return Ok(appfile),
                    }
                }
                parsed => match parsed {
                    Err(error) if error.class == Class::Outside => error,
                    parsed => return parsed.map_err(Failure::from),
                },
            };
            rounds += 1;
            let (Some(outside), true) = (outside, rounds <= FETCH_ROUNDS) else {
                return Err(error.into());
            };
            let pinned = basis.pinned.as_deref();
            if !self.outside.fetch(application, pinned, outside).await {
                return Err(error.into());
            }
        }
    }

    /// What rendering has to know of the hub. A revision has the objects that it copies.
    pub(super) async fn world(
        &self,
        application: &Application,
        pinned: Option<&ApplicationRevision>,
    ) -> Result<World, kube::Error> {
        let namespace = application
            .metadata
            .namespace
            .as_deref()
            .unwrap_or_default();
        let mut objects = Vec::new();
        objects.extend(
            self.policies
                .in_namespace(namespace)
                .iter()
                .map(|policy| to_json(&**policy)),
        );
        objects.extend(
            self.workflows
                .in_namespace(namespace)
                .iter()
                .map(|workflow| to_json(&**workflow)),
        );
        match pinned {
            Some(revision) => objects.extend(revision.spec.referred_objects.iter().cloned()),
            None => objects.extend(self.children.referred(application).await?),
        }
        let clusters = self.clusters.list();
        Ok(World {
            hub_version: self.children.version().await?,
            clusters: clusters.iter().map(|cluster| member(cluster)).collect(),
            objects,
            outside: Some(self.outside.of(application, pinned, self.hub.clock.now())),
        })
    }
}

/// A member as rendering sees it.
fn member(cluster: &ManagedCluster) -> Cluster {
    let version = to_json(cluster);
    let version = version
        .pointer("/status/version/kubernetes")
        .and_then(Value::as_str);
    Cluster {
        name: cluster.metadata.name.clone().unwrap_or_default(),
        labels: cluster.metadata.labels.clone().unwrap_or_default(),
        version: version.and_then(version_of_text),
    }
}

/// A version from a text such as `v1.31.0`.
fn version_of_text(text: &str) -> Option<ClusterVersion> {
    let mut parts = text.trim_start_matches('v').splitn(3, '.');
    Some(ClusterVersion {
        major: parts.next()?.to_owned(),
        minor: parts.next()?.to_owned(),
        git_version: text.to_owned(),
        platform: ClusterVersion::default().platform,
    })
}
