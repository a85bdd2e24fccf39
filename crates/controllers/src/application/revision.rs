//! Revisions of applications, and trackers of what they applied.

use bellwether_api::oam::names::{annotation, label};
use bellwether_api::oam::{
    Application, ApplicationRevision, ApplicationRevisionSpec, ConfigMapReference, ResourceTracker,
};
use bellwether_application::appfile::Appfile;
use bellwether_application::definition::DefinitionKind;
use bellwether_application::deliver::Delivery;
use bellwether_runtime::{created_by, delete_if_exists, unless_exists, unless_gone, written_by};
use kube::Api;
use kube::api::{DeleteParams, Patch};
use serde_json::{Value, json};

use super::{Reconciler, to_json};
use crate::objects;

/// How many revisions are kept besides the one that is delivered.
const HISTORY_LIMIT: usize = 10;

/// The revision that an application is delivered as.
pub(super) struct ChosenRevision {
    pub(super) name: String,
    pub(super) number: i64,
    pub(super) hash: String,
    pub(super) is_new: bool,
}

fn publish_version(application: &Application) -> Option<&String> {
    application
        .metadata
        .annotations
        .as_ref()?
        .get(annotation::PUBLISH_VERSION)
}

impl Reconciler {
    /// The revisions of an application, oldest first.
    fn own_revisions(&self, application: &Application) -> Vec<std::sync::Arc<ApplicationRevision>> {
        let namespace = application
            .metadata
            .namespace
            .as_deref()
            .unwrap_or_default();
        let uid = application.metadata.uid.as_deref();
        let mut revisions = self.revisions.in_namespace(namespace);
        revisions.retain(|revision| {
            let owners = revision
                .metadata
                .owner_references
                .as_deref()
                .unwrap_or_default();
            owners.iter().any(|owner| Some(owner.uid.as_str()) == uid)
        });
        revisions.sort_by_key(|revision| number(revision));
        revisions
    }

    /// The application as it is published: while the version stays the same, changes of the spec wait.
    pub(super) fn published(&self, application: &Application) -> Application {
        let mut published = application.clone();
        let Some(version) = publish_version(application) else {
            return published;
        };
        let revisions = self.own_revisions(application);
        let found = revisions.iter().rev().find(|revision| {
            let annotations = revision.metadata.annotations.as_ref();
            annotations.and_then(|all| all.get(annotation::PUBLISH_VERSION)) == Some(version)
        });
        let spec = found.and_then(|revision| {
            serde_json::from_value(revision.spec.application["spec"].clone()).ok()
        });
        if let Some(spec) = spec {
            published.spec = spec;
        }
        published
    }

    /// The revision with this content, or the next one.
    pub(super) fn choose_revision(&self, application: &Application, hash: &str) -> ChosenRevision {
        let revisions = self.own_revisions(application);
        let version = publish_version(application);
        let same = revisions.iter().rev().find(|revision| {
            let labels = revision.metadata.labels.as_ref();
            let annotations = revision.metadata.annotations.as_ref();
            labels
                .and_then(|all| all.get(label::APP_REVISION_HASH))
                .is_some_and(|known| known == hash)
                && annotations.and_then(|all| all.get(annotation::PUBLISH_VERSION)) == version
        });
        let app = application.metadata.name.as_deref().unwrap_or_default();
        let number = match same {
            Some(revision) => number(revision),
            None => revisions.last().map_or(1, |latest| number(latest) + 1),
        };
        ChosenRevision {
            name: format!("{app}-v{number}"),
            number,
            hash: hash.to_owned(),
            is_new: same.is_none(),
        }
    }

    /// Stores a new revision, and deletes those beyond the limit.
    pub(super) async fn store_revision(
        &self,
        application: &Application,
        appfile: &Appfile<'_>,
        chosen: &ChosenRevision,
    ) -> Result<(), kube::Error> {
        if !chosen.is_new {
            return Ok(());
        }
        let namespace = application
            .metadata
            .namespace
            .as_deref()
            .unwrap_or_default();
        let api: Api<ApplicationRevision> = Api::namespaced(self.hub.client.clone(), namespace);
        let revision = revision(application, appfile, chosen);
        unless_exists(api.create(&created_by(), &revision).await)?;
        let known = self.own_revisions(application);
        let surplus = known.len().saturating_sub(HISTORY_LIMIT);
        for old in known.iter().take(surplus) {
            let name = old.metadata.name.as_deref().unwrap_or_default();
            delete_if_exists(&api, name, &DeleteParams::default()).await?;
        }
        Ok(())
    }

    /// Stores what a revision is rendered to, by component.
    pub(super) async fn store_resources(
        &self,
        application: &Application,
        appfile: &Appfile<'_>,
        delivery: &Delivery,
    ) -> Result<(), kube::Error> {
        let mut data = serde_json::Map::new();
        for manifest in delivery
            .components
            .iter()
            .flat_map(|component| &component.manifests)
        {
            let key = if manifest.resource.is_empty() {
                manifest.component.clone()
            } else {
                format!("{}.{}", manifest.component, manifest.resource)
            };
            data.insert(key, manifest.object.to_string().into());
        }
        let config_map = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": appfile.context.revision,
                "namespace": appfile.context.namespace,
                "ownerReferences": [owner_reference(application)],
            },
            "data": data,
        });
        objects::ensure(&self.hub.client, &config_map)
            .await
            .map(drop)
    }

    /// The trackers of an application, the newest first.
    pub(super) fn own_trackers(&self, application: &Application) -> Vec<ResourceTracker> {
        let uid = application.metadata.uid.as_deref();
        let mut trackers: Vec<ResourceTracker> = self
            .trackers
            .list()
            .iter()
            .filter(|tracker| {
                let labels = tracker.metadata.labels.as_ref();
                labels
                    .and_then(|labels| labels.get(label::APP_UID))
                    .map(String::as_str)
                    == uid
            })
            .map(|tracker| (**tracker).clone())
            .collect();
        trackers.sort_by_key(|tracker| std::cmp::Reverse(tracker.spec.application_generation));
        trackers
    }

    /// Writes a tracker if it differs from the one that is stored.
    pub(super) async fn record(
        &self,
        tracker: &ResourceTracker,
        known: &[ResourceTracker],
    ) -> Result<(), kube::Error> {
        let api: Api<ResourceTracker> = Api::all(self.hub.client.clone());
        let name = tracker.metadata.name.as_deref().unwrap_or_default();
        let stored = known
            .iter()
            .find(|known| known.metadata.name == tracker.metadata.name);
        if stored.is_some_and(|stored| stored.spec == tracker.spec) {
            return Ok(());
        }
        if stored.is_some() {
            let patch = Patch::Merge(
                json!({"metadata": {"labels": tracker.metadata.labels}, "spec": tracker.spec}),
            );
            return api.patch(name, &written_by(), &patch).await.map(drop);
        }
        if unless_exists(api.create(&created_by(), tracker).await)?.is_none() {
            let patch = Patch::Merge(json!({"spec": tracker.spec}));
            api.patch(name, &written_by(), &patch).await?;
        }
        Ok(())
    }

    /// Deletes a tracker whose objects are gone, or recorded elsewhere.
    pub(super) async fn forget(&self, tracker: &ResourceTracker) -> Result<(), kube::Error> {
        let api: Api<ResourceTracker> = Api::all(self.hub.client.clone());
        let name = tracker.metadata.name.as_deref().unwrap_or_default();
        let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        unless_gone(api.patch(name, &written_by(), &patch).await)?;
        delete_if_exists(&api, name, &DeleteParams::default()).await
    }
}

fn number(revision: &ApplicationRevision) -> i64 {
    let name = revision.metadata.name.as_deref().unwrap_or_default();
    name.rsplit_once("-v")
        .and_then(|(_, number)| number.parse().ok())
        .unwrap_or_default()
}

fn owner_reference(application: &Application) -> Value {
    json!({
        "apiVersion": "core.oam.dev/v1beta1",
        "kind": "Application",
        "name": application.metadata.name,
        "uid": application.metadata.uid,
        "controller": true,
    })
}

fn revision(
    application: &Application,
    appfile: &Appfile<'_>,
    chosen: &ChosenRevision,
) -> ApplicationRevision {
    let mut snapshot = application.clone();
    snapshot.status = None;
    snapshot.metadata.managed_fields = None;
    let of_kind = |kind: DefinitionKind| {
        let used = appfile
            .definitions
            .iter()
            .filter(|((known, _), _)| *known == kind);
        used.map(|((_, name), definition)| (name.clone(), definition.object.clone()))
            .collect()
    };
    let spec = ApplicationRevisionSpec {
        application: to_json(&snapshot),
        component_definitions: of_kind(DefinitionKind::Component),
        trait_definitions: of_kind(DefinitionKind::Trait),
        policy_definitions: of_kind(DefinitionKind::Policy),
        workflow_step_definitions: of_kind(DefinitionKind::WorkflowStep),
        resources_config_map: Some(ConfigMapReference {
            name: chosen.name.clone(),
            ..ConfigMapReference::default()
        }),
        ..ApplicationRevisionSpec::default()
    };
    let mut revision = ApplicationRevision::new(chosen.name.clone(), spec);
    let mut labels = application.metadata.labels.clone().unwrap_or_default();
    labels.insert(label::APP_NAME.to_owned(), appfile.context.name.clone());
    labels.insert(label::APP_REVISION_HASH.to_owned(), chosen.hash.clone());
    revision.metadata.labels = Some(labels);
    let mut annotations = application.metadata.annotations.clone().unwrap_or_default();
    annotations.remove(annotation::KUBECTL_LAST_APPLIED);
    revision.metadata.annotations = Some(annotations);
    revision.metadata.owner_references =
        serde_json::from_value(json!([owner_reference(application)])).ok();
    revision
}
