//! `bellwether workflow rollback`: an application goes back to what was delivered before its workflow began.
//!
//! An application that is published by versions goes back to the newest one that was delivered whole, with its status: its
//! workflow is not carried out again. What steps of the later version declare for that (`onRollback`) is carried out first. Any
//! other application goes back to the spec of its latest revision.

use std::time::Duration;

use anyhow::Context as _;
use bellwether_api::oam::names::{annotation, label};
use bellwether_api::oam::{
    Application, ApplicationRevision, AppliedResource, ResourceTracker, RevisionReference,
};
use bellwether_api::workflow::WorkflowStep;
use bellwether_application::revision::number;
use bellwether_workflow::operation::OperationError;
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client, ResourceExt as _};

use super::Target;
use super::subject::{self, Subject};
use crate::cli::say;

/// The version of a controller that does not exist: nobody handles the application meanwhile.
const NOBODY: &str = "Disabled";

/// How long steps are given to make good for what was done.
const LONGEST: Duration = Duration::from_mins(5);
/// How often it is asked whether they have.
const INTERVAL: Duration = Duration::from_millis(200);

struct Rollback {
    applications: Api<Application>,
    revisions: Api<ApplicationRevision>,
    trackers: Api<ResourceTracker>,
    name: String,
}

/// Goes back.
pub(super) async fn run(client: &Client, namespace: &str, target: &Target) -> anyhow::Result<()> {
    let subject = subject::find(client, namespace, target).await?;
    let Subject::Application(application) = &subject else {
        return Err(OperationError::RollbackRun.into());
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
        let (revisions, position) = rollback.published(namespace).await?;
        let tracker = rollback.tracker(namespace, &revisions[position]).await?;
        // Without a later version there is nothing to make good for.
        let steps = subject.steps(client, namespace).await?;
        if position > 0 && has_compensations(&steps) {
            rollback.make_good(client, namespace, target).await?;
        }
        rollback.restore(&revisions, position, &tracker).await?;
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

/// Whether any step declares what is carried out if somebody goes back.
fn has_compensations(steps: &[WorkflowStep]) -> bool {
    let mut all = steps
        .iter()
        .flat_map(|step| std::iter::once(&step.base).chain(&step.sub_steps));
    all.any(|step| step.on_rollback.is_some())
}

impl Rollback {
    /// All revisions, the newest first, and which of them is the newest version that was delivered whole.
    async fn published(
        &self,
        namespace: &str,
    ) -> anyhow::Result<(Vec<ApplicationRevision>, usize)> {
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
        Ok((revisions, position))
    }

    /// Has everything carried out that steps declare for the case that somebody goes back, and waits for it.
    async fn make_good(
        &self,
        client: &Client,
        namespace: &str,
        target: &Target,
    ) -> anyhow::Result<()> {
        subject::change(client, namespace, target, |subject| {
            let Subject::Application(application) = subject else {
                return Err(OperationError::RollbackRun.into());
            };
            let status = application.status.as_mut();
            let workflow = status.and_then(|status| status.workflow.as_mut());
            if let Some(workflow) = workflow.filter(|workflow| !workflow.rolling_back) {
                workflow.rolling_back = true;
                workflow.finished = false;
            }
            Ok(())
        })
        .await?;
        let is_done = async {
            loop {
                let application = self.applications.get(&self.name).await?;
                let status = application.status.unwrap_or_default();
                if status.workflow.is_none_or(|workflow| workflow.finished) {
                    return anyhow::Ok(());
                }
                tokio::time::sleep(INTERVAL).await;
            }
        };
        let waited = tokio::time::timeout(LONGEST, is_done).await;
        waited.with_context(|| {
            let name = &self.name;
            format!("what steps of {name} declare in onRollback is still carried out: see `bellwether workflow status {name}`, and try again later")
        })?
    }

    /// Restores a version with its status; revisions that are newer are deleted.
    async fn restore(
        &self,
        revisions: &[ApplicationRevision],
        position: usize,
        tracker: &ResourceTracker,
    ) -> anyhow::Result<()> {
        let revision = &revisions[position];
        self.update(revision, Some(NOBODY)).await?;
        self.restore_status(revision, tracker).await?;
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
