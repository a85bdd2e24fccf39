//! What a look at a work came to, for the hub: its status, and events about what is new.

use bellwether_api::meta::Condition;
use bellwether_api::work::names::{condition, event};
use bellwether_runtime::Next;
use bellwether_work::lifecycle::{self, Afterlife, find, is_true};
use bellwether_work::status::{self, Failure, Report};
use bellwether_work::work_api;

use super::{Applied, Pass};
use crate::work_agent::hub::{HubWork, Status};
use crate::work_agent::{AgentError, report};

impl Pass<'_> {
    /// Reports, if there is something new to be said. Returns when to look again.
    pub(super) async fn write_status(
        &self,
        work: &HubWork,
        applied: &Applied,
        next: Next,
    ) -> Result<Next, AgentError> {
        let failed = || AgentError::at("reporting");
        if let Some(small) = &work.small {
            let previous = small.status.clone().unwrap_or_default();
            let new = work_api::assemble(&previous, work.generation(), &applied.reports, self.now);
            if small.status.as_ref() != Some(&new) {
                let conditions = new.conditions.clone();
                self.shared
                    .hub
                    .set_status(work, &Status::Work(new))
                    .await
                    .map_err(failed())?;
                self.tell(work, &previous.conditions, &conditions, &applied.reports);
            }
            return Ok(next);
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
            return Ok(next);
        }
        let conditions = new.conditions.clone();
        let written = self
            .shared
            .hub
            .set_status(work, &Status::ManifestWork(new))
            .await
            .map_err(failed())?;
        self.tell(work, &previous.conditions, &conditions, &applied.reports);
        // A work that has just been done may have to go, at once or later.
        match lifecycle::afterlife(&written.work) {
            Afterlife::Open => Ok(next),
            Afterlife::Stays => Ok(None),
            Afterlife::RemovedAt(time) => Ok(Some(time)),
        }
    }

    /// Events for what is new.
    fn tell(&self, work: &HubWork, before: &[Condition], after: &[Condition], reports: &[Report]) {
        let events = &self.shared.events;
        let is_new = |name: &str| {
            let (old, new) = (find(before, name), find(after, name));
            match (old, new) {
                (Some(old), Some(new)) => {
                    old.status != new.status || old.observed_generation != new.observed_generation
                }
                (None, Some(_)) => true,
                _ => false,
            }
        };
        if is_new(condition::APPLIED) {
            if is_true(after, condition::APPLIED) {
                if let Some(heard) = self.shared.news.lock().remove(self.key) {
                    let latency = self.shared.clock.now().duration_since(heard);
                    let latency = latency.as_secs_f64().max(0.0);
                    self.shared.metrics.latency.observe(latency);
                }
                let (count, generation) = (reports.len(), work.generation());
                let objects = if count == 1 { "object" } else { "objects" };
                let text = format!("applied {count} {objects} of generation {generation}");
                events.normal(work, event::APPLIED, &text);
            } else {
                let failures = reports.iter().filter_map(|report| match &report.applied {
                    Err(Failure::Apply(error) | Failure::IgnoreFields(error)) => Some(format!(
                        "{} {}: {error}",
                        report.meta.kind, report.meta.name
                    )),
                    Ok(()) => None,
                });
                let mut text = failures.collect::<Vec<_>>().join("; ");
                if text.is_empty() {
                    let said = find(after, condition::APPLIED);
                    text = said.map(|said| said.message.clone()).unwrap_or_default();
                }
                events.warning(work, event::APPLY_FAILED, &text);
            }
        }
        if is_new(condition::COMPLETE) && is_true(after, condition::COMPLETE) {
            events.normal(
                work,
                event::COMPLETE,
                "the work is complete; it is no longer applied",
            );
        }
    }
}
