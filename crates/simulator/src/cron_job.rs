//! Cron jobs: a job whenever it is time.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;
use std::sync::Arc;

use bellwether_api::workload::deployment::{FAILED_CREATE, SUCCESSFUL_CREATE, SUCCESSFUL_DELETE};
use bellwether_api::workload::job::{COMPLETE, SCHEDULED};
use bellwether_go::cron::Schedule;
use bellwether_json::time::format_time;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::batch::v1::{CronJob, CronJobSpec, CronJobStatus, Job};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use crate::job::finished;
use crate::kind::{Kind, Reference, is_deleting, key_of, uid_of};
use crate::plan::{Event, Plan};
use crate::time::seconds_after;

const COMPONENT: &str = "cronjob-controller";

/// Everything that the decision may look at.
#[derive(Debug)]
pub(crate) struct View<'a> {
    pub(crate) cron_job: &'a CronJob,
    /// Its jobs.
    pub(crate) jobs: &'a [Arc<Job>],
    /// The time zone that it names, or UTC; nothing if nobody knows the one that it names.
    pub(crate) zone: Option<&'a TimeZone>,
    pub(crate) now: Timestamp,
}

/// What has to be done for a cron job.
pub(crate) fn decide(view: &View<'_>) -> Plan {
    let Some(spec) = &view.cron_job.spec else {
        return Plan::default();
    };
    let mut turn = Turn {
        view,
        spec,
        owner: Reference::to(view.cron_job),
        status: view.cron_job.status.clone().unwrap_or_default(),
        plan: Plan::default(),
    };
    turn.observe_jobs();
    turn.forget_old();
    if !is_deleting(&view.cron_job.metadata) && !spec.suspend.unwrap_or(false) {
        turn.schedule();
    }
    let old = view.cron_job.status.clone().unwrap_or_default();
    turn.plan.status(view.cron_job, &old, &turn.status);
    turn.plan
}

/// A decision in the making.
struct Turn<'a> {
    view: &'a View<'a>,
    spec: &'a CronJobSpec,
    owner: Reference,
    status: CronJobStatus,
    plan: Plan,
}

impl Turn<'_> {
    /// Brings the list of active jobs up to date.
    fn observe_jobs(&mut self) {
        let listed = self.status.active.take().unwrap_or_default();
        let entry = |uid: &str| {
            listed
                .iter()
                .find(|found| found.uid.as_deref() == Some(uid))
        };
        let mut active = Vec::new();
        for job in self.view.jobs {
            let uid = uid_of(job.as_ref());
            match finished(job) {
                None if !is_deleting(&job.metadata) => {
                    active.push(entry(uid).cloned().unwrap_or_else(|| reference(job)));
                }
                Some(condition) if entry(uid).is_some() => {
                    let name = job.metadata.name.as_deref().unwrap_or_default();
                    let message =
                        format!("Saw completed job: {name}, condition: {}", condition.type_);
                    self.record_event("SawCompletedJob", message);
                }
                _ => {}
            }
        }
        for gone in &listed {
            let exists = self
                .view
                .jobs
                .iter()
                .any(|job| Some(uid_of(job.as_ref())) == gone.uid.as_deref());
            if !exists {
                let name = gone.name.as_deref().unwrap_or_default();
                self.record_event("MissingJob", format!("Active job went missing: {name}"));
            }
        }
        self.status.active = (!active.is_empty()).then_some(active);
        let successes = self
            .view
            .jobs
            .iter()
            .filter(|job| finished(job).is_some_and(|found| found.type_ == COMPLETE));
        let last = successes
            .filter_map(|job| job.status.as_ref()?.completion_time.clone())
            .max();
        if last > self.status.last_successful_time {
            self.status.last_successful_time = last;
        }
    }

    /// Deletes finished jobs beyond what history keeps.
    fn forget_old(&mut self) {
        let limits = [
            (true, self.spec.successful_jobs_history_limit.unwrap_or(3)),
            (false, self.spec.failed_jobs_history_limit.unwrap_or(1)),
        ];
        for (good, limit) in limits {
            let mut jobs: Vec<&Arc<Job>> = self
                .view
                .jobs
                .iter()
                .filter(|job| finished(job).is_some_and(|found| (found.type_ == COMPLETE) == good))
                .filter(|job| !is_deleting(&job.metadata))
                .collect();
            jobs.sort_by_key(|job| Reverse(started(job)));
            for job in jobs.into_iter().skip(usize::try_from(limit).unwrap_or(0)) {
                self.delete(job);
            }
        }
    }

    fn schedule(&mut self) {
        let Some(zone) = self.view.zone else {
            let name = self.spec.time_zone.as_deref().unwrap_or_default();
            let message = format!("invalid timeZone: {name:?}: unknown time zone {name}");
            self.plan.record_event(Event::warning(
                self.owner.clone(),
                COMPONENT,
                "UnknownTimeZone",
                message,
            ));
            return;
        };
        let Ok(schedule) = Schedule::parse(&self.spec.schedule, |_| true) else {
            let message = format!("unparseable schedule: {:?}", self.spec.schedule);
            self.plan.record_event(Event::warning(
                self.owner.clone(),
                COMPONENT,
                "UnparseableSchedule",
                message,
            ));
            return;
        };
        let Some(next) = schedule.next(self.view.now, zone) else {
            self.refuse_schedule();
            return;
        };
        self.plan.wake_at(next);
        let from = self.earliest();
        let Some(due) = schedule.last_between(from, self.view.now, zone) else {
            return;
        };
        if self.is_too_late(due) {
            let message = format!(
                "Missed scheduled time to start a job: {}",
                due.strftime("%a, %d %b %Y %H:%M:%S +0000")
            );
            self.plan.record_event(Event::warning(
                self.owner.clone(),
                COMPONENT,
                "MissSchedule",
                message,
            ));
            return;
        }
        self.begin(due, zone);
    }

    /// Says that no day will ever be the one, such as the 31st of February.
    fn refuse_schedule(&mut self) {
        let message = format!(
            "invalid schedule: {} : time difference between two schedules is less than 1 second",
            self.spec.schedule
        );
        let owner = self.owner.clone();
        let event = Event::warning(owner, COMPONENT, "InvalidSchedule", message);
        self.plan.record_event(event);
    }

    /// From when on times count.
    fn earliest(&self) -> Timestamp {
        let last = self.status.last_schedule_time.as_ref();
        let created = self.view.cron_job.metadata.creation_timestamp.as_ref();
        let earliest = last.or(created).map_or(self.view.now, |time| time.0);
        let deadline = self.spec.starting_deadline_seconds;
        let oldest = deadline.and_then(|seconds| {
            self.view
                .now
                .checked_sub(SignedDuration::from_secs(seconds))
                .ok()
        });
        oldest.map_or(earliest, |oldest| oldest.max(earliest))
    }

    fn is_too_late(&self, due: Timestamp) -> bool {
        let deadline = self.spec.starting_deadline_seconds;
        deadline.is_some_and(|seconds| seconds_after(due, seconds) < self.view.now)
    }

    fn begin(&mut self, due: Timestamp, zone: &TimeZone) {
        let name = format!("{}-{}", self.owner.key.name, due.as_second() / 60);
        let exists = self
            .view
            .jobs
            .iter()
            .any(|job| job.metadata.name.as_deref() == Some(&name));
        if exists {
            self.status.last_schedule_time = Some(Time(due));
            return;
        }
        let is_busy = self.status.active.is_some();
        match self.spec.concurrency_policy.as_deref() {
            Some("Forbid") if is_busy => {
                let message = "Not starting job because prior execution is running and concurrency policy is Forbid";
                self.record_event("JobAlreadyActive", message.to_owned());
                return;
            }
            Some("Replace") => {
                let active: Vec<_> = self
                    .view
                    .jobs
                    .iter()
                    .filter(|job| finished(job).is_none())
                    .collect();
                for job in active {
                    if !is_deleting(&job.metadata) {
                        self.delete(job);
                    }
                }
                self.status.active = None;
            }
            _ => {}
        }
        let job = self.job(&name, due, zone);
        let event = Event::normal(
            self.owner.clone(),
            COMPONENT,
            SUCCESSFUL_CREATE,
            "Created job {}",
        );
        let failed = Event::warning(
            self.owner.clone(),
            COMPONENT,
            FAILED_CREATE,
            "Error creating job: {}",
        );
        self.plan
            .create(&job, Some(self.owner.clone()), Some(event), Some(failed));
        self.status.last_schedule_time = Some(Time(due));
    }

    fn job(&self, name: &str, due: Timestamp, zone: &TimeZone) -> Job {
        let template = &self.spec.job_template;
        let metadata = template.metadata.clone().unwrap_or_default();
        let mut annotations = metadata.annotations.unwrap_or_default();
        let scheduled = if *zone == TimeZone::UTC {
            format_time(due)
        } else {
            due.to_zoned(zone.clone())
                .strftime("%Y-%m-%dT%H:%M:%S%:z")
                .to_string()
        };
        annotations.insert(SCHEDULED.to_owned(), scheduled);
        Job {
            metadata: ObjectMeta {
                name: Some(name.to_owned()),
                namespace: Some(self.owner.key.namespace.to_string()),
                labels: metadata.labels,
                annotations: Some(annotations),
                owner_references: Some(vec![self.owner.controller()]),
                ..ObjectMeta::default()
            },
            spec: template.spec.clone(),
            status: None,
        }
    }

    fn delete(&mut self, job: &Job) {
        self.plan.delete(job);
        let name = job.metadata.name.as_deref().unwrap_or_default();
        self.record_event(SUCCESSFUL_DELETE, format!("Deleted job {name}"));
    }

    fn record_event(&mut self, reason: &'static str, message: String) {
        self.plan.record_event(Event::normal(
            self.owner.clone(),
            COMPONENT,
            reason,
            message,
        ));
    }
}

fn started(job: &Job) -> Option<Timestamp> {
    let time = job.status.as_ref()?.start_time.as_ref()?;
    Some(time.0)
}

fn reference(job: &Job) -> ObjectReference {
    let key = key_of(job);
    ObjectReference {
        api_version: Some(Kind::Job.api_version()),
        kind: Some(Kind::Job.names().kind.to_owned()),
        name: Some(key.name.to_string()),
        namespace: Some(key.namespace.to_string()),
        uid: job.metadata.uid.clone(),
        resource_version: job.metadata.resource_version.clone(),
        field_path: None,
    }
}
