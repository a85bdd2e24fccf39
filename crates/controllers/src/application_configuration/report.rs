//! What can be said of an ApplicationConfiguration: its status, and events about what changed.

use std::sync::Arc;

use bellwether_api::meta::{
    Condition, FALSE, TRUE, Time, condition as condition_of, set_condition,
};
use bellwether_api::oam::names::{condition, event};
use bellwether_api::oam::{
    ApplicationConfiguration, ApplicationConfigurationStatus, AppliedWorkload, DependencyStatus,
    ObjectReference, UnsatisfiedDependency,
};
use bellwether_application::configuration::record::{self, Fate, Target, Unwanted};
use bellwether_application::configuration::render::Rendered;
use bellwether_runtime::{EventDraft, ObjectKey, Retry, write_status};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Error, Reconciler};

/// What failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// It cannot be rendered.
    Render,
    /// Objects cannot be applied.
    Apply,
    /// Objects cannot be deleted.
    GarbageCollect,
}

impl Failure {
    /// What the message of a condition begins with.
    fn text(self) -> &'static str {
        match self {
            Self::Render => "cannot render components",
            Self::Apply => "cannot apply components",
            Self::GarbageCollect => "cannot garbage collect components",
        }
    }

    fn event(self) -> &'static str {
        match self {
            Self::Render => event::CANNOT_RENDER_COMPONENTS,
            Self::Apply => event::CANNOT_APPLY_COMPONENTS,
            Self::GarbageCollect => event::CANNOT_GARBAGE_COLLECT_COMPONENTS,
        }
    }
}

/// What is found out about an ApplicationConfiguration in one reconcile.
pub(super) struct Report {
    /// It, as it was last read or written.
    pub(super) configuration: Arc<ApplicationConfiguration>,
    /// What waits for values of others.
    pub(super) unsatisfied: Vec<UnsatisfiedDependency>,
    /// Whether an object was written, other than to repair it.
    pub(super) has_written: bool,
    /// Objects that were deleted.
    pub(super) collected: Vec<ObjectReference>,
    /// What went wrong.
    failures: Vec<(Failure, String)>,
    /// The objects, once that is known.
    settled: Option<SettledObjects>,
    now: Timestamp,
}

struct SettledObjects {
    workloads: Vec<AppliedWorkload>,
    history: Vec<bellwether_api::oam::HistoryWorkload>,
}

impl Report {
    pub(super) fn new(configuration: Arc<ApplicationConfiguration>, now: Timestamp) -> Self {
        Self {
            configuration,
            unsatisfied: Vec::new(),
            has_written: false,
            collected: Vec::new(),
            failures: Vec::new(),
            settled: None,
            now,
        }
    }

    pub(super) fn generation(&self) -> i64 {
        self.configuration.metadata.generation.unwrap_or_default()
    }

    /// The status before.
    pub(super) fn old_status(&self) -> ApplicationConfigurationStatus {
        self.configuration.status.clone().unwrap_or_default()
    }

    /// What was on record before.
    pub(super) fn workloads(&self) -> &[AppliedWorkload] {
        let status = self.configuration.status.as_ref();
        status.map_or(&[], |status| &status.workloads)
    }

    pub(super) fn fail(&mut self, failure: Failure, reason: String) {
        self.failures.push((failure, reason));
    }

    /// Takes in what became of all objects.
    pub(super) fn settle(
        &mut self,
        rendered: &Rendered,
        fates: &[Fate],
        left: &[Unwanted],
        kept: &[Unwanted],
        key: &ObjectKey,
    ) {
        let target = Target {
            namespace: &key.namespace,
            generation: self.generation(),
        };
        let status = self.configuration.status.as_ref();
        let history = status.map_or(&[][..], |status| &status.history_workloads);
        self.settled = Some(SettledObjects {
            workloads: record::workloads(self.workloads(), rendered, fates, left, target),
            history: record::history(history, rendered, kept, &key.namespace),
        });
    }

    /// What the condition says if something is wrong: the first stage that failed, with all its reasons.
    pub(super) fn problem(&self) -> Option<String> {
        let (first, _) = self.failures.first()?;
        let reasons = self.failures.iter().filter(|(failure, _)| failure == first);
        let reasons: Vec<&str> = reasons.map(|(_, reason)| reason.as_str()).collect();
        Some(format!("{}: {}", first.text(), reasons.join("; ")))
    }

    fn condition(&self) -> Condition {
        let problem = self.problem();
        let (status, reason) = match problem {
            None => (TRUE, condition::RECONCILE_SUCCESS),
            Some(_) => (FALSE, condition::RECONCILE_ERROR),
        };
        Condition {
            type_: condition::SYNCED.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message: problem.unwrap_or_default(),
            last_transition_time: Time(self.now),
            observed_generation: None,
        }
    }

    /// The status after.
    fn status(&self) -> ApplicationConfigurationStatus {
        let mut status = self.old_status();
        set_condition(&mut status.conditions, self.condition());
        status.observed_generation = self.configuration.metadata.generation;
        let Some(settled) = &self.settled else {
            return status;
        };
        status.workloads.clone_from(&settled.workloads);
        status.history_workloads.clone_from(&settled.history);
        status.dependency = (!self.unsatisfied.is_empty()).then(|| DependencyStatus {
            unsatisfied: self.unsatisfied.clone(),
            ..DependencyStatus::default()
        });
        status
    }

    /// What is worth an event: what was done, and what is wrong since now.
    fn events(&self) -> Vec<EventDraft> {
        let mut drafts = Vec::new();
        if self.has_written {
            let text = "Successfully rendered components";
            drafts.push(EventDraft::normal(event::RENDERED_COMPONENTS, text));
        }
        let collected = self.collected.iter().map(|object| {
            let text = format!("Deleted {} {}", object.kind, object.name);
            EventDraft::normal(event::GARBAGE_COLLECTED_COMPONENT, text)
        });
        drafts.extend(collected);
        let new = self.condition();
        let old = self.configuration.status.as_ref();
        let old = old.and_then(|status| condition_of(&status.conditions, condition::SYNCED));
        let is_news = old.is_none_or(|old| old.message != new.message || old.status != new.status);
        match self.failures.first() {
            None if self.has_written || is_news => {
                let text = "Successfully applied components";
                drafts.push(EventDraft::normal(event::APPLIED_COMPONENTS, text));
            }
            Some((failure, _)) if is_news => {
                drafts.push(EventDraft::warning(failure.event(), new.message));
            }
            _ => {}
        }
        drafts
    }
}

impl Reconciler {
    /// Writes what was found out, if it is news.
    pub(super) async fn publish(&self, key: &ObjectKey, report: Report) -> Result<(), Error> {
        for draft in report.events() {
            self.events.record(&*report.configuration, draft);
        }
        let status = report.status();
        if report.configuration.status.as_ref() == Some(&status) {
            return Ok(());
        }
        let written = write_status(&self.api(key), &*report.configuration, &patch(&status)).await?;
        if let Some(written) = written {
            self.note_written(key, &Arc::new(written));
        }
        Ok(())
    }

    /// Puts objects on record that are about to be written.
    pub(super) async fn write_intent(
        &self,
        key: &ObjectKey,
        report: &mut Report,
        workloads: &[AppliedWorkload],
    ) -> Result<(), Error> {
        let patch = json!({"workloads": workloads});
        let written = write_status(&self.api(key), &*report.configuration, &patch).await?;
        let Some(written) = written else {
            let problem = "it was deleted meanwhile".to_owned();
            return Err(Error::Reported(problem, Retry::Backoff));
        };
        self.take_written(key, report, written);
        Ok(())
    }
}

/// The whole status as a merge patch: what it does not have is removed.
fn patch(status: &ApplicationConfigurationStatus) -> Value {
    let mut patch = serde_json::to_value(status).unwrap_or_default();
    for field in ["workloads", "historyWorkloads", "dependency"] {
        if patch.get(field).is_none() {
            patch[field] = Value::Null;
        }
    }
    patch
}
