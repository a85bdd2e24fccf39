//! What can be said of an application: phase, conditions, services, steps, events.

use std::collections::BTreeMap;

use bellwether_api::meta::{self, Condition, FALSE, TRUE, Time};
use bellwether_api::oam::names::{condition, event, phase};
use bellwether_api::oam::{Application, ApplicationStatus, ComponentService, RevisionReference};
use bellwether_api::workflow::{WorkflowRunPhase, WorkflowStatus};
use bellwether_application::appfile::Appfile;
use bellwether_application::progress::{Outcome, Step, step_status};
use bellwether_application::{RenderError, Stage};
use bellwether_runtime::{EventDraft, write_status};
use jiff::Timestamp;
use serde_json::Value;

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
    events: Vec<EventDraft>,
}

impl Report {
    /// Begins with what was said before.
    pub(super) fn new(application: &Application, now: Timestamp) -> Self {
        let status = application.status.clone().unwrap_or_default();
        let generation = application.metadata.generation;
        let is_of_this = status.observed_generation == generation;
        Self {
            was_delivered: is_of_this && meta::is_true(&status.conditions, condition::WORKFLOW),
            generation,
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
        if !held {
            self.events.push(EventDraft::normal(reason, message));
        }
    }

    /// Everything that the application refers to exists.
    pub(super) fn parsed(&mut self) {
        self.hold(condition::PARSED, event::PARSED, "Parsed successfully");
    }

    /// The revision is stored.
    pub(super) fn revisioned(&mut self, appfile: &Appfile<'_>, chosen: &ChosenRevision) {
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
        if workflow.app_revision != chosen.name {
            *workflow = WorkflowStatus {
                app_revision: chosen.name.clone(),
                start_time: Some(Time(self.now)),
                ..WorkflowStatus::default()
            };
        }
        workflow.mode = format!("{}-{}", appfile.mode.0, appfile.mode.1);
    }

    /// All objects are rendered.
    pub(super) fn rendered(&mut self) {
        self.set(condition::POLICY, TRUE, condition::AVAILABLE, "");
        self.hold(condition::RENDER, event::RENDERED, "Rendered successfully");
    }

    /// Where the steps stand.
    pub(super) fn steps(&mut self, steps: &[Step], outcomes: &BTreeMap<&str, Outcome>) {
        let is_done = steps
            .iter()
            .all(|step| outcomes.get(step.name.as_str()) == Some(&Outcome::Done));
        let now = self.now;
        let workflow = self.status.workflow.get_or_insert_default();
        let known = std::mem::take(&mut workflow.steps);
        workflow.steps = steps
            .iter()
            .map(|step| {
                let outcome = outcomes
                    .get(step.name.as_str())
                    .unwrap_or(&Outcome::Pending);
                let mut status = step_status(step, outcome);
                let before = known.iter().find(|before| before.status.name == step.name);
                if *outcome != Outcome::Pending {
                    let first = before.and_then(|before| before.status.first_execute_time.clone());
                    status.status.first_execute_time = first.or(Some(Time(now)));
                    let is_same =
                        before.is_some_and(|before| before.status.phase == status.status.phase);
                    let last = before
                        .and_then(|before| before.status.last_execute_time.clone())
                        .filter(|_| is_same);
                    status.status.last_execute_time = last.or(Some(Time(now)));
                }
                status
            })
            .collect();
        workflow.finished = is_done;
        workflow.phase = Some(if is_done {
            WorkflowRunPhase::Succeeded
        } else {
            WorkflowRunPhase::Executing
        });
        if is_done {
            workflow.end_time.get_or_insert(Time(now));
        } else {
            workflow.end_time = None;
        }
        phase::RUNNING_WORKFLOW.clone_into(&mut self.status.phase);
        if !is_done {
            let waiting = outcomes.values().find_map(|outcome| match outcome {
                Outcome::Waiting(message) => Some(message.clone()),
                _ => None,
            });
            let message = waiting.unwrap_or_else(|| "steps are waiting for others".to_owned());
            // Once delivered, an application that is not healthy any more is not delivered again.
            if self.was_delivered {
                phase::UNHEALTHY.clone_into(&mut self.status.phase);
            } else {
                self.set(condition::WORKFLOW, FALSE, condition::PROGRESSING, &message);
            }
            self.set(condition::READY, FALSE, condition::PROGRESSING, &message);
        }
    }

    /// Where the components stand.
    pub(super) fn services(&mut self, services: Vec<ComponentService>) {
        self.status.services = services;
    }

    /// All steps are done.
    pub(super) fn delivered(&mut self) {
        self.hold(condition::WORKFLOW, event::APPLIED, "Workflow finished");
        let is_healthy = self.status.services.iter().all(|service| service.healthy);
        settled_phase(is_healthy).clone_into(&mut self.status.phase);
        let was_ready = meta::is_true(&self.status.conditions, condition::READY);
        self.set(condition::READY, TRUE, condition::RECONCILE_SUCCESS, "");
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
                event::FAILED_APPLY,
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
        if known != told {
            let patch = with_removals(&known, told);
            write_status(&self.api(application), application, &patch).await?;
        }
        for draft in report.events {
            self.events.record(application, draft);
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
