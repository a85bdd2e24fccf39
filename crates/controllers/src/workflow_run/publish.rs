//! What is written about a run: status, context, events.

use bellwether_api::meta::{Condition, FALSE, TRUE, Time, set_condition};
use bellwether_api::workflow::names::{condition, event, message};
use bellwether_api::workflow::{ContextBackend, WorkflowRun, WorkflowRunPhase, WorkflowRunStatus};
use bellwether_runtime::{EventDraft, Next, ObjectKey};
use bellwether_workflow::{Spec, project};
use jiff::{SignedDuration, Timestamp};
use kube::Api;
use kube::api::PostParams;

use super::{RunError, Runs};
use crate::workflow::{Outcome, Owner, context};

/// When a run that cannot be carried out is looked at again.
const RETRY: SignedDuration = SignedDuration::from_secs(10);

impl Runs {
    /// Writes what is true of a run now.
    pub(super) async fn publish(
        &self,
        run: &WorkflowRun,
        owner: &Owner,
        workflow: &Spec,
        outcome: &Outcome,
    ) -> Result<(), RunError> {
        let known = run
            .status
            .as_ref()
            .and_then(|status| status.context_backend.as_ref());
        let backend = context::write(&self.hub.client, owner, &outcome.state, known).await?;
        for (id, text) in &outcome.debug {
            context::write_debug(&self.hub.client, owner, id, text).await?;
        }
        let mut status = run.status.clone().unwrap_or_default();
        let was_finished = status.finished;
        project::write_run_status(&outcome.state, workflow, &mut status);
        status.context_backend = Some(ContextBackend {
            other: serde_json::Map::new(),
            ..backend
        });
        // Why a run could not be carried out stays until it succeeds, as with other engines.
        if outcome.state.finished == Some(WorkflowRunPhase::Succeeded) {
            self.set_condition(&mut status, TRUE, condition::AVAILABLE, String::new());
        }
        if let Some(phase) = &outcome.state.finished
            && !was_finished
        {
            let text = match phase {
                WorkflowRunPhase::Succeeded => message::FINISHED,
                WorkflowRunPhase::Terminated => message::FINISHED_TERMINATED,
                _ => message::FINISHED_FAILED,
            };
            self.recorder
                .record(run, EventDraft::normal(event::EXECUTE, text));
            // Anyone who sees the status finds its event, also if this process ends here.
            self.recorder.written().await;
        }
        self.write_status(run, status).await
    }

    /// Says that a run cannot be carried out; it is looked at again when definitions change, or later.
    pub(super) async fn cannot_generate(
        &self,
        run: &WorkflowRun,
        problem: String,
    ) -> Result<Next, RunError> {
        let key = ObjectKey::of(run);
        self.memory.block(&key);
        let mut status = run.status.clone().unwrap_or_default();
        let was_begun = status.phase != Some(WorkflowRunPhase::Initializing);
        status.phase = Some(WorkflowRunPhase::Initializing);
        let news = self.set_condition(
            &mut status,
            FALSE,
            condition::RECONCILE_ERROR,
            problem.clone(),
        );
        if news {
            let text = format!("{}: {problem}", message::GENERATE_FAILED);
            self.recorder
                .record(run, EventDraft::warning(event::GENERATE, text));
            self.recorder.written().await;
        }
        if news || was_begun {
            self.write_status(run, status).await?;
        }
        self.memory.wake_all(&key);
        Ok(self.hub.clock.now().checked_add(RETRY).ok())
    }

    fn set_condition(
        &self,
        status: &mut WorkflowRunStatus,
        value: &str,
        reason: &str,
        message: String,
    ) -> bool {
        let now = self.hub.clock.now();
        let condition = Condition {
            type_: condition::WORKFLOW_RUN.to_owned(),
            status: value.to_owned(),
            reason: reason.to_owned(),
            message,
            last_transition_time: Time(Timestamp::from_second(now.as_second()).unwrap_or(now)),
            observed_generation: None,
        };
        set_condition(&mut status.conditions, condition)
    }

    async fn write_status(
        &self,
        run: &WorkflowRun,
        status: WorkflowRunStatus,
    ) -> Result<(), RunError> {
        if run.status.as_ref() == Some(&status) {
            return Ok(());
        }
        let key = ObjectKey::of(run);
        let api: Api<WorkflowRun> = Api::namespaced(self.hub.client.clone(), &key.namespace);
        let mut wanted = run.clone();
        wanted.status = Some(status);
        wanted.metadata.managed_fields = None;
        let written = api
            .replace_status(&key.name, &PostParams::default(), &wanted)
            .await?;
        let version = written.metadata.resource_version.unwrap_or_default();
        self.memory.wrote(&key, &version);
        Ok(())
    }
}
