//! The action `oam.rollback-app`: an application goes back to what was delivered whole before this revision.
//!
//! The objects of that revision are applied as they were, and those of components that only this revision has are deleted.
//! The spec stays as it is unless the step asks for more, so the application is kept as the step left it until its spec changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bellwether_api::oam::names::label;
use bellwether_api::oam::{Application, ApplicationRevision, ManagedResource, ResourceTracker};
use bellwether_application::appfile;
use bellwether_application::catalog::Catalog;
use bellwether_application::deliver::Delivered;
use bellwether_application::files;
use bellwether_application::label::Manifest;
use bellwether_application::resource_policy::{Occasion, ResourcePolicies};
use bellwether_application::revision::{last_good, number, restore};
use bellwether_application::tracker::{self, CREATOR_POLICY, CREATOR_WORKFLOW};
use bellwether_application::world::World;
use bellwether_application::{Class, RenderError, Stage};
use bellwether_runtime::{Next, ObjectKey, compute, created_by};
use bellwether_workflow::{Done, Request};
use serde_json::{Value, json};

use super::actions::{ComponentActions, WAIT_HEALTHY, is_same_service, message};
use super::deliver::{Live, Pass, is_local};
use super::status::Report;
use super::tracking::Tracking;
use super::workflow::{as_recorded, others};
use super::{Failure, Reconciler};

/// What a step says that set the spec back, until the workflow of that spec begins.
const SET_BACK: &str = "the spec is set back";
/// Conflicts with other writers are tried again this often.
const ATTEMPTS: u32 = 5;

/// An application as it was, and what it was rendered by.
struct Past {
    application: Application,
    policies: ResourcePolicies,
    catalog: Catalog,
    world: World,
    number: i64,
}

impl Reconciler {
    /// An application as it was as a revision.
    async fn past(&self, revision: &ApplicationRevision) -> Result<Past, Failure> {
        let unreadable = |problem: String| {
            let name = revision.metadata.name.as_deref().unwrap_or_default();
            let message = format!("revision {name} cannot be read: {problem}");
            RenderError::new(Stage::Deploy, Class::InvalidInput, message)
        };
        let application: Application = serde_json::from_value(revision.spec.application.value())
            .map_err(|error| unreadable(error.to_string()))?;
        let policies = ResourcePolicies::of(&application).map_err(unreadable)?;
        let mut world = self.world(&application, Some(revision)).await?;
        let recorded: Vec<&Value> = revision
            .spec
            .policies
            .values()
            .chain(&revision.spec.workflow)
            .collect();
        let name = |object: &Value| (object["kind"].clone(), object["metadata"]["name"].clone());
        world
            .objects
            .retain(|object| recorded.iter().all(|known| name(known) != name(object)));
        world.objects.extend(recorded.into_iter().cloned());
        Ok(Past {
            policies,
            catalog: self.definitions.catalog_of(revision),
            world,
            number: number(revision),
            application,
        })
    }

    /// Keeps what a step went back to as it is.
    pub(super) async fn keep_rolled_back(
        &self,
        application: &Application,
        name: &str,
        tracking: &Tracking<'_>,
        before: &[ResourceTracker],
        report: &mut Report,
    ) -> Result<Next, Failure> {
        report.rolled_back();
        let revisions = self.own_revisions(application);
        let found = revisions
            .iter()
            .find(|revision| revision.metadata.name.as_deref() == Some(name));
        let Some(revision) = found else {
            // It is deleted: what was applied stays.
            return Ok(None);
        };
        let earlier = self.past(revision).await?;
        let recorded = tracking.known().await;
        let is_recorded = identities(&recorded);
        let appfile = appfile::parse(
            &earlier.application,
            &earlier.catalog,
            &earlier.world,
            earlier.number,
        )?;
        let mut delivered = as_recorded(compute(|| files::rendered(&appfile)).await?, &recorded);
        for component in &mut delivered {
            component
                .manifests
                .retain(|manifest| is_recorded.contains(&tracker::identity_of(manifest)));
        }
        let mut pass = Pass {
            applications: self,
            appfile: &appfile,
            policies: &earlier.policies,
            tracking,
            before,
            occasion: Occasion::StateKeep,
            live: Live::new(),
            repaired: Vec::new(),
            left_deleted: BTreeMap::new(),
            next: None,
        };
        let all: Vec<&Delivered> = delivered.iter().collect();
        let services = pass.take(&all).await?;
        report.fare(&services);
        let others = others(&recorded, &of_components(&delivered));
        let on_hub: Vec<&Manifest> = others.iter().filter(|it| is_local(&it.cluster)).collect();
        pass.apply(&on_hub).await?;
        report.repaired(&pass.repaired);
        Ok(pass.next)
    }

    /// Sets the spec of an application back. Tells whether nobody else changed it meanwhile.
    async fn set_back(
        &self,
        application: &Application,
        revision: &ApplicationRevision,
    ) -> Result<bool, String> {
        let api = self.api(application);
        let name = application.metadata.name.as_deref().unwrap_or_default();
        let mut attempt = 0;
        loop {
            attempt += 1;
            let live = api.get(name).await.map_err(|error| error.to_string())?;
            if live.metadata.generation != application.metadata.generation {
                return Ok(false);
            }
            let mut wanted = live;
            restore(&mut wanted, revision).map_err(|error| error.to_string())?;
            wanted.metadata.managed_fields = None;
            match api.replace(name, &created_by(), &wanted).await {
                Err(kube::Error::Api(status)) if status.code == 409 && attempt < ATTEMPTS => {}
                Err(error) => return Err(error.to_string()),
                Ok(_) => return Ok(true),
            }
        }
    }
}

impl ComponentActions<'_> {
    /// Goes back to what was delivered whole before this revision; without such a revision its name is empty.
    pub(super) async fn roll_back(&self, request: &Request) -> Result<Done, String> {
        let revisions = self.applications.own_revisions(self.application);
        let current = self.appfile.context.revision_number;
        let Some(revision) = last_good(&revisions, current) else {
            return Ok(Done {
                value: json!({"revision": ""}),
                ..Done::default()
            });
        };
        let name = revision.metadata.name.clone().unwrap_or_default();
        if request.call.params["updateSpec"] == true {
            self.applications
                .set_back(self.application, revision)
                .await?;
            return Ok(Done {
                value: json!({"revision": name}),
                wait: Some(SET_BACK.to_owned()),
                ..Done::default()
            });
        }
        let is_healthy = self.restore_objects(revision).await.map_err(message)?;
        Ok(Done {
            value: json!({"revision": name, "restored": name}),
            wait: (!is_healthy).then(|| WAIT_HEALTHY.to_owned()),
            ..Done::default()
        })
    }

    /// Applies the objects of a revision, deletes those of components that it does not have, and tells whether all are healthy.
    async fn restore_objects(&self, revision: &Arc<ApplicationRevision>) -> Result<bool, Failure> {
        let earlier = self.applications.past(revision).await?;
        let appfile = appfile::parse(
            &earlier.application,
            &earlier.catalog,
            &earlier.world,
            earlier.number,
        )?;
        let name = revision.metadata.name.as_ref();
        let is_of_revision = |tracker: &&ResourceTracker| {
            let labels = tracker.metadata.labels.as_ref();
            labels.and_then(|all| all.get(label::APP_REVISION)) == name
        };
        let trackers: Vec<ResourceTracker> =
            self.before.iter().filter(is_of_revision).cloned().collect();
        let delivered = as_recorded(compute(|| files::rendered(&appfile)).await?, &trackers);
        let others = others(&trackers, &of_components(&delivered));
        // What this revision applied in this very pass is what is changed back.
        let mut before = self.tracking.known().await;
        before.extend(self.before.iter().cloned());
        let mut pass = Pass {
            applications: self.applications,
            appfile: &appfile,
            policies: &earlier.policies,
            tracking: self.tracking,
            before: &before,
            occasion: Occasion::Update,
            live: Live::new(),
            repaired: Vec::new(),
            left_deleted: BTreeMap::new(),
            next: None,
        };
        let all: Vec<&Delivered> = delivered.iter().collect();
        let services = pass.take(&all).await?;
        let further: Vec<&Manifest> = others.iter().collect();
        pass.apply_all(&further, CREATOR_WORKFLOW).await?;
        let mut kept = of_components(&delivered);
        kept.extend(others.iter().map(tracker::identity_of));
        self.remove_others(&kept).await?;
        let is_healthy = services.iter().all(|service| service.healthy);
        let mut known = self.services.lock();
        for service in services {
            known.retain(|known| !is_same_service(known, &service));
            known.push(service);
        }
        Ok(is_healthy)
    }

    /// Deletes objects of components of this revision, except those that are kept.
    async fn remove_others(&self, kept: &BTreeSet<tracker::Identity>) -> Result<(), Failure> {
        let is_gone = |entry: &ManagedResource| {
            !entry.component.is_empty()
                && entry.creator != CREATOR_POLICY
                && !kept.contains(&tracker::identity(entry))
        };
        let recorded = self.tracking.known().await;
        let entries: Vec<&ManagedResource> = recorded
            .iter()
            .filter(|tracker| tracker.spec.application_generation != 0)
            .flat_map(|tracker| &tracker.spec.managed_resources)
            .filter(|entry| is_gone(entry) && !entry.skip_gc)
            .collect();
        let key = ObjectKey::of(self.application);
        tracing::debug!(application = %key, count = entries.len(), "objects of the revision that is taken back are deleted");
        self.applications
            .remove_objects(self.application, self.policies, entries)
            .await?;
        self.tracking.leave_out(is_gone).await?;
        Ok(())
    }
}

/// What trackers have.
fn identities(trackers: &[ResourceTracker]) -> BTreeSet<tracker::Identity> {
    let entries = trackers
        .iter()
        .flat_map(|tracker| &tracker.spec.managed_resources);
    entries.map(tracker::identity).collect()
}

/// What components are rendered to.
fn of_components(delivered: &[Delivered]) -> BTreeSet<tracker::Identity> {
    let manifests = delivered.iter().flat_map(|it| &it.manifests);
    manifests.map(tracker::identity_of).collect()
}
