//! What a look at a work came to, for the hub: its status, and events about what is new.

use bellwether_api::meta::Condition;
use bellwether_runtime::Next;
use bellwether_work::events;
use bellwether_work::lifecycle::{self, AfterCompletion};
use bellwether_work::status::{self, Report};
use bellwether_work::work_api;
use jiff::Timestamp;

use super::slots::meta_of;
use super::{Applied, Pass};
use crate::work::hub::{HubWork, Status};
use crate::work::{AgentError, report};

/// What became of a report, and when to reconcile again.
pub(super) enum Reported {
    /// The hub knows all there is to know.
    Said(Next),
    /// The status was written often enough lately: the latest one is written later.
    Later(Next),
}

impl Reported {
    pub(super) fn next(self) -> Next {
        match self {
            Self::Said(next) | Self::Later(next) => next,
        }
    }
}

impl Pass<'_> {
    /// Reports that the agent may not keep records on the member, so that nothing is applied.
    pub(super) async fn report_unrecorded(
        &self,
        work: &HubWork,
        error: &AgentError,
    ) -> Result<(), AgentError> {
        let workload = work.work.spec.workload.as_ref();
        let manifests = workload.map_or(&[][..], |workload| &workload.manifests);
        let text = format!("the agent may not keep its records on the member: {error}");
        let reports = manifests.iter().enumerate().map(|(ordinal, manifest)| {
            let meta = meta_of(ordinal, manifest);
            report::of_unmapped(&meta, &[], &text)
        });
        let applied = Applied {
            reports: reports.collect(),
            ..Applied::new(&[])
        };
        self.write_status(work, &applied, None).await.map(drop)
    }

    /// Takes a turn to write the status of a work; if it was written often enough lately, has it
    /// reconciled again when there is one.
    fn take_turn(&self) -> Result<(), Timestamp> {
        let mut turns = self.shared.turns.lock();
        let turn = turns.take(self.key, self.now);
        if let Err(time) = turn {
            self.shared.queue.add_at(self.key.clone(), time);
        }
        turn
    }

    /// Reports, if something has changed and the hub was not written to too often. Returns
    /// when to reconcile again.
    pub(super) async fn write_status(
        &self,
        work: &HubWork,
        applied: &Applied,
        next: Next,
    ) -> Result<Reported, AgentError> {
        let failed = || AgentError::at("reporting");
        if let Some(as_work) = &work.as_work {
            let previous = as_work.status.clone().unwrap_or_default();
            let new = work_api::assemble(&previous, work.generation(), &applied.reports, self.now);
            if as_work.status.as_ref() != Some(&new) {
                if let Err(time) = self.take_turn() {
                    return Ok(Reported::Later(Some(time)));
                }
                let conditions = new.conditions.clone();
                self.shared
                    .hub
                    .set_status(work, &Status::Work(new))
                    .await
                    .map_err(failed())?;
                self.record_events(work, &previous.conditions, &conditions, &applied.reports);
            }
            return Ok(Reported::Said(next));
        }
        let previous = work.work.status.clone().unwrap_or_default();
        let rollout = report::is_rolled_out(&work.work);
        let new = status::assemble(
            &previous,
            work.generation(),
            &applied.reports,
            rollout,
            self.now,
        );
        if work.work.status.as_ref() == Some(&new) {
            return Ok(Reported::Said(next));
        }
        if let Err(time) = self.take_turn() {
            return Ok(Reported::Later(Some(time)));
        }
        let conditions = new.conditions.clone();
        let written = self
            .shared
            .hub
            .set_status(work, &Status::ManifestWork(new))
            .await
            .map_err(failed())?;
        self.record_events(work, &previous.conditions, &conditions, &applied.reports);
        // A work that has just been done may have to go, at once or later.
        Ok(Reported::Said(match lifecycle::afterlife(&written.work) {
            AfterCompletion::NotComplete => next,
            AfterCompletion::Keep => None,
            // One that is to go at once has no time of its own.
            AfterCompletion::DeleteAt(time) => Some(time.max(self.now)),
        }))
    }

    /// Records events about what is new.
    fn record_events(
        &self,
        work: &HubWork,
        before: &[Condition],
        after: &[Condition],
        reports: &[Report],
    ) {
        if events::is_newly_applied(before, after)
            && let Some(since) = self.shared.first_seen.lock().remove(self.key)
        {
            let latency = self.shared.clock.now().duration_since(since);
            let latency = latency.as_secs_f64().max(0.0);
            self.shared.metrics.latency.observe(latency);
        }
        for event in events::of_change(before, after, reports, work.generation()) {
            let recorder = &self.shared.events;
            if event.is_warning {
                recorder.warning(work, event.reason, &event.message);
            } else {
                recorder.normal(work, event.reason, &event.message);
            }
        }
    }
}
