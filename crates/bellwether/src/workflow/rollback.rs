//! `bellwether workflow rollback`: an application goes back to what was delivered before its workflow began.
//!
//! An application that is published by versions goes back to the newest one that was delivered whole, with its status: its
//! workflow is not carried out again. Any other goes back to the spec of its latest revision.

use anyhow::Context as _;
use bellwether_api::oam::names::{annotation, label};
use bellwether_api::oam::{
    Application, ApplicationRevision, AppliedResource, ResourceTracker, RevisionReference,
};
use bellwether_application::revision::number;
use bellwether_workflow::operation::OperationError;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client, ResourceExt as _};

use super::Target;
use super::subject::{self, Subject};
use crate::cli::say;

/// The version of a controller that does not exist: nobody handles the application meanwhile.
const NOBODY: &str = "Disabled";

struct Rollback {
    applications: Api<Application>,
    revisions: Api<ApplicationRevision>,
    trackers: Api<ResourceTracker>,
    name: String,
}

/// Goes back.
pub(super) async fn run(client: &Client, namespace: &str, target: &Target) -> anyhow::Result<()> {
    let application = match subject::find(client, namespace, target).await? {
        Subject::Application(application) => *application,
        Subject::Run(_) => return Err(OperationError::RollbackRun.into()),
    };
    let status = application.status.clone().unwrap_or_default();
    if let Some(workflow) = &status.workflow {
        let is_resting = workflow.terminated || workflow.suspend || workflow.finished;
        anyhow::ensure!(is_resting, "can not rollback a running workflow");
    }
    let rollback = Rollback {
        applications: Api::namespaced(client.clone(), namespace),
        revisions: Api::namespaced(client.clone(), namespace),
        trackers: Api::all(client.clone()),
        name: target.name.clone(),
    };
    if application
        .annotations()
        .contains_key(annotation::PUBLISH_VERSION)
    {
        rollback.to_published(namespace).await?;
    } else {
        let latest = status
            .latest_revision
            .context("the application has no revision yet")?;
        let revision = rollback.revisions.get(&latest.name).await?;
        rollback.update(&revision, None).await?;
    }
    say(&format!("Successfully rollback workflow: {}", target.name));
    Ok(())
}

impl Rollback {
    /// Goes back to the newest version that was delivered whole.
    async fn to_published(&self, namespace: &str) -> anyhow::Result<()> {
        let own = ListParams::default().labels(&format!("{}={}", label::APP_NAME, self.name));
        let mut revisions = self.revisions.list(&own).await?.items;
        revisions.sort_by_key(|revision| std::cmp::Reverse(number(revision)));
        let is_delivered = |revision: &ApplicationRevision| {
            revision
                .annotations()
                .contains_key(annotation::PUBLISH_VERSION)
                && revision
                    .status
                    .as_ref()
                    .is_some_and(|status| status.succeeded)
        };
        let position = revisions.iter().position(is_delivered).with_context(|| {
            let name = &self.name;
            format!("failed to find previous succeeded revision for application {namespace}/{name}")
        })?;
        let revision = &revisions[position];
        let tracker = self.tracker(namespace, revision).await?;
        self.update(revision, Some(NOBODY)).await?;
        self.restore_status(revision, &tracker).await?;
        self.update(revision, None).await?;
        for newer in &revisions[..position] {
            self.revisions
                .delete(&newer.name_any(), &DeleteParams::default())
                .await?;
        }
        Ok(())
    }

    async fn tracker(
        &self,
        namespace: &str,
        revision: &ApplicationRevision,
    ) -> anyhow::Result<ResourceTracker> {
        let revision = revision.name_any();
        let own = format!(
            "{}={},{}={namespace},{}={revision}",
            label::APP_NAME,
            self.name,
            label::APP_NAMESPACE,
            label::APP_REVISION
        );
        let found = self
            .trackers
            .list(&ListParams::default().labels(&own))
            .await?;
        let mut found = found.items.into_iter();
        let tracker = found.find(|tracker| tracker.metadata.deletion_timestamp.is_none());
        tracker.with_context(|| {
            format!(
                "cannot find resource tracker for previous revision {revision}, unable to rollback"
            )
        })
    }

    /// Writes the spec and the version of a revision, for the controllers of a version only.
    async fn update(
        &self,
        revision: &ApplicationRevision,
        required: Option<&str>,
    ) -> anyhow::Result<()> {
        let mut application = self.applications.get(&self.name).await?;
        application.spec = serde_json::from_value(revision.spec.application.value()["spec"].take())
            .with_context(|| format!("revision {} cannot be read", revision.name_any()))?;
        let annotations = application.annotations_mut();
        if let Some(version) = revision.annotations().get(annotation::PUBLISH_VERSION) {
            annotations.insert(annotation::PUBLISH_VERSION.to_owned(), version.clone());
        }
        annotations.remove(annotation::CONTROLLER_VERSION);
        if let Some(required) = required {
            annotations.insert(
                annotation::CONTROLLER_VERSION.to_owned(),
                required.to_owned(),
            );
        }
        application.metadata.managed_fields = None;
        self.applications
            .replace(&self.name, &PostParams::default(), &application)
            .await?;
        Ok(())
    }

    /// Restores what was said when a revision was delivered.
    async fn restore_status(
        &self,
        revision: &ApplicationRevision,
        tracker: &ResourceTracker,
    ) -> anyhow::Result<()> {
        let mut application = self.applications.get(&self.name).await?;
        let status = application.status.get_or_insert_default();
        let delivered = revision.status.as_ref();
        status.workflow = delivered.and_then(|status| status.workflow.clone());
        status.services.clear();
        let entries = tracker.spec.managed_resources.iter();
        status.applied_resources = entries
            .map(|entry| AppliedResource {
                cluster: entry.cluster.clone(),
                api_version: entry.api_version.clone(),
                kind: entry.kind.clone(),
                name: entry.name.clone(),
                namespace: entry.namespace.clone(),
                ..AppliedResource::default()
            })
            .collect();
        status.latest_revision = Some(RevisionReference {
            name: revision.name_any(),
            revision: number(revision),
            revision_hash: revision
                .labels()
                .get(label::APP_REVISION_HASH)
                .cloned()
                .unwrap_or_default(),
            ..RevisionReference::default()
        });
        application.metadata.managed_fields = None;
        self.applications
            .replace_status(&self.name, &PostParams::default(), &application)
            .await?;
        Ok(())
    }
}
