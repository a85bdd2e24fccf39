//! What can be said of an application: phase, conditions, services, steps, events.

use bellwether_api::meta::{self, Condition, FALSE, TRUE, Time};
use bellwether_api::oam::names::{condition, event, phase};
use bellwether_api::oam::{
    Application, ApplicationStatus, AppliedResource, ComponentService, ManagedResource,
    ResourceTracker, RevisionReference,
};
use bellwether_api::workflow::names::message;
use bellwether_api::workflow::{ContextBackend, StepPhase, WorkflowRunPhase, WorkflowStatus};
use bellwether_application::appfile::Appfile;
use bellwether_application::tracker::CREATOR_WORKFLOW;
use bellwether_application::{RenderError, Stage};
use bellwether_runtime::{EventDraft, ObjectKey, write_status};
use bellwether_workflow::state::StepState;
use bellwether_workflow::{Spec, State, project};
use jiff::Timestamp;
use serde_json::Value;

use super::actions::is_same_service;
use super::own_objects::NOT_SHOWN;
use super::restart::{self, Restart};
use super::revision::ChosenRevision;
use super::{Reconciler, settled_phase, to_json};

/// What is said of a trait that comes after the component.
pub(super) const PENDING_TRAIT: &str = "⏳ Waiting for component to be healthy";

/// A status that is being put together, and what happened meanwhile.
pub(super) struct Report {
    status: ApplicationStatus,
    now: Timestamp,
    generation: Option<i64>,
    was_delivered: bool,
    /// Whether this process has said nothing of it yet: events of another one may be lost.
    is_first: bool,
    /// Whether steps brought back what was delivered before.
    is_rolled_back: bool,
    /// Objects that others deleted and a policy leaves so, in words.
    left_deleted: Vec<String>,
    events: Vec<EventDraft>,
}

impl Report {
    /// Begins with what was said before, by this process or another one.
    pub(super) fn new(application: &Application, now: Timestamp, is_first: bool) -> Self {
        let status = application.status.clone().unwrap_or_default();
        let generation = application.metadata.generation;
        let is_of_this = status.observed_generation == generation;
        Self {
            was_delivered: is_of_this && meta::is_true(&status.conditions, condition::WORKFLOW),
            generation,
            // A workflow that is done was reported whole.
            is_first: is_first && status.workflow.as_ref().is_some_and(|it| !it.finished),
            is_rolled_back: false,
            left_deleted: Vec::new(),
            status,
            now,
            events: Vec::new(),
        }
    }

    /// Whether this generation was delivered whole before.
    pub(super) fn was_delivered(&self) -> bool {
        self.was_delivered
    }

    fn set(&mut self, kind: &str, status: &str, reason: &str, message: &str) -> bool {
        let condition = Condition {
            type_: kind.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: message.to_owned(),
            last_transition_time: Time(self.now),
            observed_generation: self.generation,
        };
        meta::set_condition(&mut self.status.conditions, condition)
    }

    fn hold(&mut self, kind: &str, reason: &'static str, message: &str) {
        let held = meta::is_true(&self.status.conditions, kind);
        self.set(kind, TRUE, condition::AVAILABLE, "");
        if !held || self.is_first {
            self.events.push(EventDraft::normal(reason, message));
        }
    }

    /// Everything that the application refers to exists.
    pub(super) fn parsed(&mut self, appfile: &Appfile<'_>) {
        let applied = &mut self.status.applied_application_policies;
        applied.clone_from(&appfile.applied_policies);
        self.hold(condition::PARSED, event::PARSED, "Parsed successfully");
    }

    /// The revision is stored.
    pub(super) fn revisioned(
        &mut self,
        carried_out: &str,
        chosen: &ChosenRevision,
        appfile: &Appfile<'_>,
    ) {
        self.hold(
            condition::REVISION,
            event::REVISIONED,
            "Revisioned successfully",
        );
        self.status.latest_revision = Some(RevisionReference {
            name: chosen.name.clone(),
            revision: chosen.number,
            revision_hash: chosen.hash.clone(),
            ..RevisionReference::default()
        });
        let workflow = self.status.workflow.get_or_insert_default();
        if workflow.app_revision != carried_out {
            *workflow = WorkflowStatus {
                app_revision: carried_out.to_owned(),
                ..WorkflowStatus::default()
            };
            self.begin();
        }
        // Components that are still part of the application are there until they are applied again.
        let components = &appfile.components;
        let is_part = |name: &str| components.iter().any(|component| component.name == name);
        self.status.services.retain(|known| is_part(&known.name));
    }

    /// The workflow that another one takes the place of before it is done, and the revision that it is of.
    pub(super) fn replaced_workflow(&self, carried_out: &str) -> Option<(String, WorkflowStatus)> {
        let workflow = self.status.workflow.as_ref()?;
        let is_replaced =
            workflow.phase.is_some() && !workflow.finished && workflow.app_revision != carried_out;
        let name = self.status.latest_revision.as_ref()?.name.clone();
        is_replaced.then(|| {
            let mut workflow = workflow.clone();
            workflow.terminated = true;
            workflow.finished = true;
            (name, workflow)
        })
    }

    /// What was said of an earlier round of the workflow is not true any more.
    fn begin(&mut self) {
        self.was_delivered = false;
        let later = [condition::WORKFLOW, condition::READY];
        let conditions = &mut self.status.conditions;
        conditions.retain(|known| !later.contains(&known.type_.as_str()));
    }

    /// Objects of policies are applied.
    pub(super) fn policies(&mut self) {
        self.hold(
            condition::POLICY,
            event::POLICY_GENERATED,
            "Policy generated successfully",
        );
    }

    /// The steps are known.
    pub(super) fn rendered(&mut self) {
        self.hold(condition::RENDER, event::RENDERED, "Rendered successfully");
    }

    /// Where the workflow stands.
    pub(super) fn workflow(
        &mut self,
        state: &State,
        workflow: &Spec,
        backend: Option<ContextBackend>,
    ) {
        let known = self.status.workflow.get_or_insert_default();
        let mut status = WorkflowStatus {
            app_revision: workflow.revision.clone(),
            suspend_state: known.suspend_state.clone(),
            context_backend: backend,
            ..WorkflowStatus::default()
        };
        project::write_status(state, workflow, &mut status);
        // It is part of the condition.
        if status.message == message::TERMINATED_BY_FAILURE {
            status.message.clear();
        }
        let is_same_round = known.start_time == status.start_time;
        *known = status;
        if !is_same_round {
            self.begin();
        }
        let phase = project::phase(state);
        if phase == WorkflowRunPhase::Succeeded {
            return;
        }
        phase_of(&phase).clone_into(&mut self.status.phase);
        self.explain(state, &phase);
    }

    /// Says why an application is not delivered yet, or not at all.
    fn explain(&mut self, state: &State, phase: &WorkflowRunPhase) {
        let is_failing = |step: &StepState| step.phase == StepPhase::Failed;
        let open = project::waiting(state).find(|step| !step.message.is_empty());
        let failed = state.steps.iter().find(|step| is_failing(step));
        let step = match phase {
            WorkflowRunPhase::Executing => failed.filter(|step| !step.is_finished()).or(open),
            WorkflowRunPhase::Suspending => open,
            _ => failed,
        };
        let said = |step: &StepState| match step.message.as_str() {
            "" => format!("step {} is {}", step.name, step.phase),
            message => format!("step {}: {message}", step.name),
        };
        let mut message = step.map(said).unwrap_or_default();
        if !state.message.is_empty() {
            message = format!("{}; {message}", state.message);
        }
        let has_failed = *phase == WorkflowRunPhase::Failed || step.is_some_and(is_failing);
        let reason = match phase {
            WorkflowRunPhase::Terminated => condition::TERMINATED,
            WorkflowRunPhase::Suspending => condition::SUSPENDED,
            _ if has_failed => condition::RECONCILE_ERROR,
            _ => condition::PROGRESSING,
        };
        let is_news = self.set(condition::WORKFLOW, FALSE, reason, &message);
        self.set(condition::READY, FALSE, reason, &message);
        if is_news && has_failed {
            let reason = match phase {
                WorkflowRunPhase::Failed => event::FAILED_WORKFLOW,
                _ => event::FAILED_APPLY,
            };
            self.events.push(EventDraft::warning(reason, message));
        }
    }

    /// Steps brought back what was delivered before.
    pub(super) fn rolled_back(&mut self) {
        self.is_rolled_back = true;
    }

    /// Whether steps brought back what was delivered before.
    pub(super) fn is_rolled_back(&self) -> bool {
        self.is_rolled_back
    }

    /// Where components stand, and what was applied for them in this pass.
    pub(super) fn services(
        &mut self,
        services: Vec<ComponentService>,
        applied: Vec<ManagedResource>,
    ) {
        for service in services {
            let known = &mut self.status.services;
            match known
                .iter_mut()
                .find(|known| is_same_service(known, &service))
            {
                Some(known) => *known = service,
                None => known.push(service),
            }
        }
        for entry in applied {
            if entry.creator == NOT_SHOWN {
                continue;
            }
            let entry = AppliedResource {
                cluster: entry.cluster,
                creator: entry.creator,
                api_version: entry.api_version,
                kind: entry.kind,
                name: entry.name,
                namespace: entry.namespace,
                ..AppliedResource::default()
            };
            if !self.status.applied_resources.contains(&entry) {
                self.status.applied_resources.push(entry);
            }
        }
    }

    /// As soon as steps of a revision applied something, that is what is shown, not what earlier ones had.
    pub(super) fn applied(&mut self, current: &[ResourceTracker]) {
        let has_applied = |tracker: &ResourceTracker| {
            let mut entries = tracker.spec.managed_resources.iter();
            tracker.spec.application_generation != 0
                && entries.any(|entry| entry.creator == CREATOR_WORKFLOW)
        };
        if !current.iter().any(has_applied) {
            return;
        }
        let entries: Vec<&ManagedResource> = current
            .iter()
            .flat_map(|tracker| &tracker.spec.managed_resources)
            .collect();
        let shown = &mut self.status.applied_resources;
        shown.retain(|known| entries.iter().any(|entry| is_shown_as(entry, known)));
    }

    /// Where components stand that somebody else applies: clusters that have nothing of them any more are no longer named.
    pub(super) fn delegated(&mut self, services: Vec<ComponentService>) {
        let known = &mut self.status.services;
        known.retain(|known| {
            let mut own = services.iter().filter(|service| service.name == known.name);
            let is_delegated = own.clone().next().is_some();
            !is_delegated || own.any(|service| is_same_service(known, service))
        });
        self.services(services, Vec::new());
    }

    /// Others had changed objects.
    pub(super) fn repaired(&mut self, objects: &[String]) {
        for object in objects {
            let text = format!("{object} was changed by others and has been repaired");
            self.events
                .push(EventDraft::normal(event::DRIFT_REPAIRED, text));
        }
    }

    /// Where components stand now that were applied before.
    pub(super) fn fare(&mut self, services: &[ComponentService]) {
        for known in &mut self.status.services {
            // What cannot be looked at is as it was.
            let now = services.iter().find(|service| {
                is_same_service(known, service) && service.workload_definition.is_some()
            });
            if let Some(now) = now {
                known.clone_from(now);
            }
        }
    }

    /// Says which objects a policy leaves as others made them.
    fn drifted(&mut self) {
        let left = self.left_deleted.join("; ");
        if left.is_empty() {
            let conditions = &mut self.status.conditions;
            conditions.retain(|known| known.type_ != condition::DRIFTED);
        } else {
            self.set(condition::DRIFTED, TRUE, condition::APPLY_ONCE, &left);
        }
    }

    /// Notes objects that others deleted and a policy leaves so.
    pub(super) fn left_deleted<'a>(&mut self, objects: impl IntoIterator<Item = &'a String>) {
        self.left_deleted.extend(objects.into_iter().cloned());
    }

    /// Notes when the workflow is carried out again.
    pub(super) fn restart(&mut self, restart: &Restart) {
        restart::write(restart, &mut self.status);
        if let Some(problem) = &restart.problem {
            let draft = EventDraft::warning(event::FAILED_WORKFLOW, problem.clone());
            self.events.push(draft);
        }
    }

    /// When the workflow is carried out again: the time of a recurring restart follows from when the workflow ended, which may
    /// have been in this pass.
    pub(super) fn next_restart(
        &mut self,
        application: &Application,
        restart: &Restart,
    ) -> Option<Timestamp> {
        let Some(at) = restart::recurring(application, &self.status) else {
            return restart.at;
        };
        let next = Restart {
            at: Some(at),
            ..Restart::default()
        };
        restart::write(&next, &mut self.status);
        next.at
    }

    /// The workflow if it has ended, or took the place of another one: what a revision records.
    pub(super) fn ended_workflow(&self, has_replaced: bool) -> Option<&WorkflowStatus> {
        let workflow = self.status.workflow.as_ref()?;
        (workflow.finished || has_replaced).then_some(workflow)
    }

    /// Everything that earlier versions had is gone: what is said is about this one.
    pub(super) fn collected(&mut self, current: &[ResourceTracker], appfile: &Appfile<'_>) {
        let components = &appfile.components;
        let is_part = |name: &str| {
            name.is_empty() || components.iter().any(|component| component.name == name)
        };
        let entries: Vec<&ManagedResource> = current
            .iter()
            .flat_map(|tracker| &tracker.spec.managed_resources)
            .filter(|entry| is_part(&entry.component))
            .collect();
        let shown = &mut self.status.applied_resources;
        shown.retain(|known| entries.iter().any(|entry| is_shown_as(entry, known)));
        self.status
            .services
            .retain(|known| entries.iter().any(|entry| entry.component == known.name));
    }

    /// All steps are done.
    pub(super) fn delivered(&mut self) {
        self.hold(condition::WORKFLOW, event::APPLIED, "Workflow finished");
        let is_healthy = self.status.services.iter().all(|service| service.healthy);
        settled_phase(is_healthy).clone_into(&mut self.status.phase);
        let was_ready = meta::is_true(&self.status.conditions, condition::READY);
        self.set(condition::READY, TRUE, condition::RECONCILE_SUCCESS, "");
        self.drifted();
        if !was_ready {
            self.events
                .push(EventDraft::normal(event::DEPLOYED, "Deployed successfully"));
        }
    }

    /// Something is wrong with the application.
    pub(super) fn failed(&mut self, error: &RenderError) {
        let (kind, reason, at) = match error.stage {
            Stage::Parse => (condition::PARSED, event::FAILED_PARSE, phase::RENDERING),
            Stage::Policy => (
                condition::POLICY,
                event::FAILED_APPLY,
                phase::GENERATING_POLICY,
            ),
            Stage::Render => (condition::RENDER, event::FAILED_RENDER, phase::RENDERING),
            Stage::Deploy => (
                condition::WORKFLOW,
                event::FAILED_WORKFLOW,
                phase::WORKFLOW_FAILED,
            ),
        };
        at.clone_into(&mut self.status.phase);
        let is_news = self.set(kind, FALSE, condition::RECONCILE_ERROR, &error.message);
        self.set(
            condition::READY,
            FALSE,
            condition::RECONCILE_ERROR,
            &error.message,
        );
        if is_news {
            self.events
                .push(EventDraft::warning(reason, error.message.clone()));
        }
    }

    /// Objects are being deleted.
    pub(super) fn deleting(&mut self, waiting: &[String]) {
        phase::DELETING.clone_into(&mut self.status.phase);
        let first = waiting.first().map_or("", String::as_str);
        let message = match waiting.len() {
            0 | 1 => format!("Waiting for {first} to delete."),
            count => {
                format!("Waiting for {first} to delete. (At least {count} resources are deleting.)")
            }
        };
        self.set(condition::READY, FALSE, condition::DELETING, &message);
    }
}

/// Whether what a tracker has is what the status shows.
fn is_shown_as(entry: &ManagedResource, known: &AppliedResource) -> bool {
    entry.kind == known.kind
        && entry.name == known.name
        && entry.namespace == known.namespace
        && entry.cluster == known.cluster
}

/// The phase of an application whose workflow is in a phase.
fn phase_of(phase: &WorkflowRunPhase) -> &'static str {
    match phase {
        WorkflowRunPhase::Suspending => phase::WORKFLOW_SUSPENDING,
        WorkflowRunPhase::Terminated => phase::WORKFLOW_TERMINATED,
        WorkflowRunPhase::Failed => phase::WORKFLOW_FAILED,
        WorkflowRunPhase::Succeeded => phase::RUNNING,
        _ => phase::RUNNING_WORKFLOW,
    }
}

impl Reconciler {
    /// Writes a status that says something else than the stored one, and the events.
    pub(super) async fn write_report(
        &self,
        application: &Application,
        mut report: Report,
    ) -> Result<(), kube::Error> {
        report.status.observed_generation = application.metadata.generation;
        let known = application.status.as_ref().map(to_json).unwrap_or_default();
        let told = to_json(&report.status);
        // Anyone who sees the status finds its events, also if this process ends here.
        if !report.events.is_empty() {
            for draft in report.events {
                self.events.record(application, draft);
            }
            self.events.written().await;
        }
        if known != told {
            let patch = with_removals(&known, told);
            let written = write_status(&self.api(application), application, &patch).await?;
            let version = written.and_then(|written| written.metadata.resource_version);
            let key = ObjectKey::of(application);
            self.memory.wrote(&key, &version.unwrap_or_default());
        }
        Ok(())
    }
}

/// A merge patch that also removes fields that are no longer said.
fn with_removals(known: &Value, mut told: Value) -> Value {
    if let (Value::Object(known), Value::Object(fields)) = (known, &mut told) {
        for (name, before) in known {
            match fields.get_mut(name) {
                Some(now) if name == "workflow" => *now = with_removals(before, now.take()),
                Some(_) => {}
                None => {
                    fields.insert(name.clone(), Value::Null);
                }
            }
        }
    }
    told
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_that_are_no_longer_said_are_removed() {
        let known = json!({"status": "running", "services": [1], "workflow": {"message": "x", "mode": "DAG"}});
        let told = json!({"status": "deleting", "workflow": {"mode": "DAG"}});
        let expected = json!({"status": "deleting", "services": null, "workflow": {"mode": "DAG", "message": null}});
        assert_eq!(with_removals(&known, told), expected);
    }
}
