//! Jobs: pods that run to their end, so often as wanted.
//!
//! A pod that has ended is counted once, even if it is deleted: it carries a finalizer, its uid is
//! noted in the status, the finalizer is removed, and only then it becomes part of the count. That
//! is how Kubernetes does it, and what people see in a Job's status.
//!
//! One look at a job: `counting` finds what has ended, `verdict` says whether that is the end of the
//! job, `managing` creates and deletes pods if it is not.

mod counting;
mod endings;
mod failure_policy;
mod indexes;
mod managing;
mod progress;
mod replica;
mod success_policy;
#[cfg(test)]
mod tests;
mod verdict;

use std::collections::BTreeSet;
use std::sync::Arc;

use bellwether_api::workload::job::{
    COMPLETE, COMPLETED, FAILED, FAILURE_TARGET, JOB_RESUMED, JOB_SUSPENDED, SUCCESS_CRITERIA_MET,
    SUSPENDED, TOO_MANY_SUCCEEDED_PODS, TRACKING,
};
use bellwether_api::workload::status::{FALSE, TRUE};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{Job, JobCondition, JobSpec, JobStatus, UncountedTerminatedPods};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use crate::kind::{Reference, is_deleting, uid_of};
use crate::plan::{Event, Plan};
use crate::pods::{self, nonzero, number};
use crate::time::seconds_after;
pub(crate) use endings::Endings;
use progress::Progress;
use verdict::{Outcome, Verdict};

const COMPONENT: &str = "job-controller";
/// The controller that Kubernetes means if nobody is named.
const OURSELVES: &str = "kubernetes.io/job-controller";

/// Everything that the decision may look at.
#[derive(Debug)]
pub(crate) struct View<'a> {
    pub(crate) job: &'a Job,
    /// Its pods.
    pub(crate) pods: &'a [Arc<Pod>],
    /// When they ended, and those before them.
    pub(crate) endings: &'a Endings,
    pub(crate) now: Timestamp,
}

/// What has to be done for a job.
pub(crate) fn decide(view: &View<'_>) -> Plan {
    let Some(spec) = &view.job.spec else {
        return Plan::default();
    };
    if spec
        .managed_by
        .as_deref()
        .is_some_and(|name| name != OURSELVES)
    {
        return Plan::default();
    }
    let mut turn = Turn::new(view, spec);
    if let Some(finished) = turn.finished_at() {
        turn.clean_up(finished);
    } else {
        turn.go_on();
    }
    turn.plan
}

/// What has to be done for a pod whose job is gone: nobody will count it any more.
pub(crate) fn release(pod: &Pod) -> Plan {
    let mut plan = Plan::default();
    remove_finalizer(pod, &mut plan);
    plan
}

/// Whether a pod waits to be counted.
pub(crate) fn is_tracked(pod: &Pod) -> bool {
    let finalizers = pod.metadata.finalizers.as_ref();
    finalizers.is_some_and(|finalizers| finalizers.iter().any(|name| name == TRACKING))
}

fn remove_finalizer(pod: &Pod, plan: &mut Plan) {
    if is_tracked(pod) {
        let finalizers = pod.metadata.finalizers.iter().flatten();
        let others: Vec<_> = finalizers.filter(|name| *name != TRACKING).collect();
        let value = if others.is_empty() {
            Value::Null
        } else {
            json!(others)
        };
        plan.patch(pod, json!({"metadata": {"finalizers": value}}));
    }
}

/// Whether a job has come to its end, and how.
pub(crate) fn finished(job: &Job) -> Option<&JobCondition> {
    let conditions = job.status.as_ref()?.conditions.as_ref()?;
    let mut conditions = conditions.iter();
    conditions
        .find(|found| found.status == TRUE && matches!(found.type_.as_str(), COMPLETE | FAILED))
}

/// A decision in the making.
struct Turn<'a> {
    view: &'a View<'a>,
    spec: &'a JobSpec,
    owner: Reference,
    active: Vec<&'a Pod>,
    status: JobStatus,
    uncounted: UncountedTerminatedPods,
    /// How far an indexed job has come.
    progress: Option<Progress<'a>>,
    /// The pods that may go once the status is written, by uid.
    released: BTreeSet<&'a str>,
    /// How many pods this plan deletes.
    deleted: usize,
    plan: Plan,
}

impl<'a> Turn<'a> {
    fn new(view: &'a View<'a>, spec: &'a JobSpec) -> Self {
        let status = view.job.status.clone().unwrap_or_default();
        let active: Vec<&Pod> = view
            .pods
            .iter()
            .map(AsRef::as_ref)
            .filter(|pod| pods::is_active(pod))
            .collect();
        Self {
            view,
            spec,
            owner: Reference::to(view.job),
            progress: Progress::of(spec, &status, view.pods, &active),
            active,
            uncounted: status.uncounted_terminated_pods.clone().unwrap_or_default(),
            status,
            released: BTreeSet::new(),
            deleted: 0,
            plan: Plan::default(),
        }
    }

    fn finished_at(&self) -> Option<Timestamp> {
        let condition = finished(self.view.job)?;
        Some(
            condition
                .last_transition_time
                .as_ref()
                .map_or(self.view.now, |time| time.0),
        )
    }

    /// A finished job lets go of its pods, and goes itself when its time is up.
    fn clean_up(&mut self, finished: Timestamp) {
        for pod in self.view.pods {
            remove_finalizer(pod, &mut self.plan);
        }
        let Some(seconds) = self.spec.ttl_seconds_after_finished else {
            return;
        };
        let end = seconds_after(finished, i64::from(seconds));
        if self.view.now < end {
            self.plan.wake_at(end);
        } else if !is_deleting(&self.view.job.metadata) {
            self.plan.delete(self.view.job);
        }
    }

    fn go_on(&mut self) {
        self.count_released();
        if self.status.start_time.is_none() && !self.is_suspended() {
            self.status.start_time = Some(Time(self.view.now));
        }
        let mut verdict = self.verdict();
        if verdict.is_some() {
            self.end_active();
        } else {
            let deleting = is_deleting(&self.view.job.metadata);
            if !deleting {
                self.manage();
            }
            if self.is_complete() {
                verdict = Some(Verdict::completed());
            } else if !deleting {
                self.note_suspension();
            }
        }
        self.note_ended(verdict.as_ref());
        if let Some(verdict) = &verdict {
            self.conclude(verdict);
        }
        self.write_status();
    }

    fn is_suspended(&self) -> bool {
        self.spec.suspend.unwrap_or(false)
    }

    /// Pods that have been asked to end, and have not.
    fn terminating(&self) -> usize {
        let pods = self.view.pods.iter();
        pods.filter(|pod| is_deleting(&pod.metadata) && !pods::has_ended(pod))
            .count()
            + self.deleted
    }

    fn is_complete(&self) -> bool {
        let succeeded = self.succeeded();
        match self.spec.completions {
            None => succeeded > 0 && self.active.is_empty(),
            Some(wanted) => succeeded >= wanted && self.active.is_empty(),
        }
    }

    /// Says how the job ends, and that it has ended once all its pods have, and are counted.
    fn conclude(&mut self, verdict: &Verdict) {
        let (interim, last) = match verdict.outcome {
            Outcome::Success => (SUCCESS_CRITERIA_MET, COMPLETE),
            Outcome::Failure => (FAILURE_TARGET, FAILED),
        };
        self.set_condition(interim, TRUE, verdict.reason, &verdict.message);
        let counted = self.uncounted.succeeded.as_ref().is_none_or(Vec::is_empty)
            && self.uncounted.failed.as_ref().is_none_or(Vec::is_empty);
        let pending = self.active.len() + self.terminating();
        if pending > 0 || !counted || !self.released.is_empty() {
            return;
        }
        self.set_condition(last, TRUE, verdict.reason, &verdict.message);
        if verdict.outcome == Outcome::Failure {
            self.warn(verdict.reason, &verdict.message);
            return;
        }
        self.status.completion_time = Some(Time(self.view.now));
        if self
            .spec
            .completions
            .is_some_and(|wanted| self.succeeded() > wanted)
        {
            let message = "Too many succeeded pods running after completion count reached";
            self.warn(TOO_MANY_SUCCEEDED_PODS, message);
        }
        self.record_event(COMPLETED, "Job completed");
    }

    fn record_event(&mut self, reason: &'static str, message: &str) {
        let event = Event::normal(self.owner.clone(), COMPONENT, reason, message);
        self.plan.record_event(event);
    }

    fn warn(&mut self, reason: &'static str, message: &str) {
        let event = Event::warning(self.owner.clone(), COMPONENT, reason, message);
        self.plan.record_event(event);
    }

    fn note_suspension(&mut self) {
        let known = self
            .status
            .conditions
            .iter()
            .flatten()
            .find(|found| found.type_ == SUSPENDED);
        let was = known.is_some_and(|found| found.status == TRUE);
        if self.is_suspended() && !was {
            self.set_condition(SUSPENDED, TRUE, JOB_SUSPENDED, "Job suspended");
            self.record_event("Suspended", "Job suspended");
        } else if !self.is_suspended() && was {
            self.set_condition(SUSPENDED, FALSE, JOB_RESUMED, "Job resumed");
            self.record_event("Resumed", "Job resumed");
            // The deadline counts from here.
            self.status.start_time = Some(Time(self.view.now));
        }
    }

    fn set_condition(&mut self, kind: &str, status: &str, reason: &str, message: &str) {
        let conditions = self.status.conditions.get_or_insert_default();
        let known = conditions.iter_mut().find(|found| found.type_ == kind);
        let condition = JobCondition {
            type_: kind.to_owned(),
            status: status.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            last_probe_time: Some(Time(self.view.now)),
            last_transition_time: Some(Time(self.view.now)),
        };
        match known {
            Some(known) if known.status == status && known.reason.as_deref() == Some(reason) => {}
            Some(known) => *known = condition,
            None => conditions.push(condition),
        }
    }

    fn write_status(&mut self) {
        let old = self.view.job.status.clone().unwrap_or_default();
        let ready = self.active.iter().filter(|pod| pods::is_ready(pod)).count();
        self.status.active = nonzero(number(self.active.len()));
        self.status.ready = Some(number(ready));
        self.status.terminating = Some(number(self.terminating()));
        if let Some(progress) = &self.progress {
            let text = progress.completed.to_string();
            self.status.completed_indexes = (!text.is_empty()).then_some(text);
            self.status.failed_indexes = progress.failed.as_ref().map(ToString::to_string);
            self.status.succeeded = nonzero(number(progress.completed.len()));
        }
        self.status.uncounted_terminated_pods = Some(std::mem::take(&mut self.uncounted));
        // What has ended is written down before it is let go.
        let mut before = Plan::default();
        before.status(self.view.job, &old, &self.status);
        for pod in self
            .view
            .pods
            .iter()
            .filter(|pod| self.released.contains(uid_of(pod.as_ref())))
        {
            remove_finalizer(pod, &mut before);
        }
        before.actions.append(&mut self.plan.actions);
        self.plan.actions = before.actions;
    }
}
