//! Jobs: pods that run to their end, so often as wanted.
//!
//! A pod that has ended is counted once, even if it is deleted: it carries a finalizer, its uid is
//! noted in the status, the finalizer is removed, and only then it becomes part of the count. That
//! is how Kubernetes does it, and what people see in a Job's status.

mod indexes;
mod replica;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bellwether_api::simulator::NOT_SIMULATED;
use bellwether_api::workload::deployment::{FAILED_CREATE, SUCCESSFUL_CREATE, SUCCESSFUL_DELETE};
use bellwether_api::workload::job::{
    BACKOFF_LIMIT_EXCEEDED, COMPLETE, COMPLETED, COMPLETIONS_REACHED, DEADLINE_EXCEEDED, FAILED,
    FAILURE_TARGET, JOB_RESUMED, JOB_SUSPENDED, SUCCESS_CRITERIA_MET, SUSPENDED, TRACKING,
};
use bellwether_api::workload::pod::SUCCEEDED;
use bellwether_api::workload::status::{FALSE, TRUE};
use jiff::Timestamp;
use k8s_openapi::api::batch::v1::{Job, JobCondition, JobSpec, JobStatus, UncountedTerminatedPods};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use serde_json::{Value, json};

use crate::kind::{Reference, is_deleting, uid_of};
use crate::plan::{Event, Plan};
use crate::pods::{self, nonzero, number};
use crate::time::{after, seconds_after};
use indexes::Indexes;
use replica::{ended_at, index_of};

const COMPONENT: &str = "job-controller";
/// How many pods are created at a time.
const BURST: usize = 500;
/// The wait after a first failure; doubled with each further one.
const FIRST_BACK_OFF: Duration = Duration::from_secs(10);
/// The longest wait.
const LAST_BACK_OFF: Duration = Duration::from_mins(10);
/// The controller that Kubernetes means if nobody is named.
const OURSELVES: &str = "kubernetes.io/job-controller";

/// Everything that the decision may look at.
#[derive(Debug)]
pub(crate) struct View<'a> {
    pub(crate) job: &'a Job,
    /// Its pods.
    pub(crate) pods: &'a [Arc<Pod>],
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
    /// The indexes that have succeeded, of an indexed job.
    completed: Option<Indexes>,
    /// How many pods this plan deletes.
    deleted: usize,
    plan: Plan,
}

impl<'a> Turn<'a> {
    fn new(view: &'a View<'a>, spec: &'a JobSpec) -> Self {
        let status = view.job.status.clone().unwrap_or_default();
        let indexed = spec.completion_mode.as_deref() == Some("Indexed");
        let completed = indexed
            .then(|| Indexes::parse(status.completed_indexes.as_deref().unwrap_or_default()));
        Self {
            view,
            spec,
            owner: Reference::to(view.job),
            active: view
                .pods
                .iter()
                .map(AsRef::as_ref)
                .filter(|pod| pods::is_active(pod))
                .collect(),
            uncounted: status.uncounted_terminated_pods.clone().unwrap_or_default(),
            status,
            completed,
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
        self.count_ended();
        if self.status.uncounted_terminated_pods.is_none() {
            // Nobody has looked at this job before.
            self.admit_ignorance();
        }
        if self.status.start_time.is_none() && !self.is_suspended() {
            self.status.start_time = Some(Time(self.view.now));
        }
        let failure = self.failure();
        if let Some((reason, message)) = &failure {
            self.set_condition(FAILURE_TARGET, TRUE, reason, message);
            self.delete_active();
        } else if !is_deleting(&self.view.job.metadata) && !self.is_complete() {
            self.manage();
            self.note_suspension();
        }
        let pending = self.active.len() + self.terminating();
        let counted = self.uncounted.succeeded.as_ref().is_none_or(Vec::is_empty)
            && self.uncounted.failed.as_ref().is_none_or(Vec::is_empty);
        if let Some((reason, message)) = failure {
            if pending == 0 && counted {
                self.set_condition(FAILED, TRUE, &reason, &message);
                self.tell_end(&reason, &message);
            }
        } else if self.is_complete() {
            let message = "Reached expected number of succeeded pods";
            self.set_condition(SUCCESS_CRITERIA_MET, TRUE, COMPLETIONS_REACHED, message);
            if pending == 0 && counted {
                self.set_condition(COMPLETE, TRUE, COMPLETIONS_REACHED, message);
                self.status.completion_time = Some(Time(self.view.now));
                self.plan.tell(Event::normal(
                    self.owner.clone(),
                    COMPONENT,
                    COMPLETED,
                    "Job completed",
                ));
            }
        }
        self.write_status();
    }

    /// Says at the beginning what will not be heeded.
    fn admit_ignorance(&mut self) {
        let ignored = [
            ("podFailurePolicy", self.spec.pod_failure_policy.is_some()),
            ("successPolicy", self.spec.success_policy.is_some()),
            (
                "backoffLimitPerIndex",
                self.spec.backoff_limit_per_index.is_some(),
            ),
        ];
        for (field, _) in ignored.into_iter().filter(|(_, given)| *given) {
            let message = format!("spec.{field} is ignored: the simulator does not know it");
            let event = Event::warning(self.owner.clone(), COMPONENT, NOT_SIMULATED, message);
            self.plan.tell(event);
        }
    }

    fn tell_end(&mut self, reason: &str, message: &str) {
        let known = [BACKOFF_LIMIT_EXCEEDED, DEADLINE_EXCEEDED];
        let reason = known
            .into_iter()
            .find(|known| *known == reason)
            .unwrap_or(FAILED);
        self.plan.tell(Event::warning(
            self.owner.clone(),
            COMPONENT,
            reason,
            message,
        ));
    }

    fn is_suspended(&self) -> bool {
        self.spec.suspend.unwrap_or(false)
    }

    fn terminating(&self) -> usize {
        let pods = self.view.pods.iter();
        pods.filter(|pod| is_deleting(&pod.metadata) && !pods::has_ended(pod))
            .count()
            + self.deleted
    }

    /// Counts pods whose finalizer is gone, and notes those that have ended since.
    fn count_ended(&mut self) {
        let tracked: BTreeSet<&str> = self
            .view
            .pods
            .iter()
            .filter(|pod| is_tracked(pod))
            .map(|pod| uid_of(pod.as_ref()))
            .collect();
        let split = |uids: &mut Option<Vec<String>>| -> i32 {
            let all = uids.take().unwrap_or_default();
            let before = all.len();
            let left: Vec<_> = all
                .into_iter()
                .filter(|uid| tracked.contains(uid.as_str()))
                .collect();
            let counted = number(before - left.len());
            *uids = (!left.is_empty()).then_some(left);
            counted
        };
        let succeeded = split(&mut self.uncounted.succeeded);
        let failed = split(&mut self.uncounted.failed);
        self.status.succeeded = nonzero(self.status.succeeded.unwrap_or(0) + succeeded);
        self.status.failed = nonzero(self.status.failed.unwrap_or(0) + failed);
        for pod in self
            .view
            .pods
            .iter()
            .filter(|pod| is_tracked(pod) && !pods::is_active(pod))
        {
            let good = pods::phase(pod) == SUCCEEDED;
            let index = index_of(pod);
            if let (true, Some(completed), Some(index)) = (good, &mut self.completed, index) {
                completed.insert(index);
            }
            let list = if good {
                &mut self.uncounted.succeeded
            } else {
                &mut self.uncounted.failed
            };
            let list = list.get_or_insert_default();
            let uid = uid_of(pod.as_ref());
            if !list.iter().any(|known| known == uid) {
                list.push(uid.to_owned());
            }
        }
    }

    fn succeeded(&self) -> i32 {
        if let Some(completed) = &self.completed {
            return number(completed.len());
        }
        self.status.succeeded.unwrap_or(0)
            + number(self.uncounted.succeeded.as_ref().map_or(0, Vec::len))
    }

    fn failed(&self) -> i32 {
        self.status.failed.unwrap_or(0) + number(self.uncounted.failed.as_ref().map_or(0, Vec::len))
    }

    fn is_complete(&self) -> bool {
        let succeeded = self.succeeded();
        match self.spec.completions {
            None => succeeded > 0 && self.active.is_empty(),
            Some(wanted) => succeeded >= wanted && self.active.is_empty(),
        }
    }

    /// Why the job has failed, if it has.
    fn failure(&mut self) -> Option<(String, String)> {
        let known = self
            .status
            .conditions
            .iter()
            .flatten()
            .find(|found| found.type_ == FAILURE_TARGET);
        if let Some(known) = known {
            return Some((
                known.reason.clone().unwrap_or_default(),
                known.message.clone().unwrap_or_default(),
            ));
        }
        let limit = self.spec.backoff_limit.unwrap_or(6);
        if self.failed() > limit || self.restarted_too_often(limit) {
            return Some((
                BACKOFF_LIMIT_EXCEEDED.to_owned(),
                "Job has reached the specified backoff limit".to_owned(),
            ));
        }
        let start = self
            .status
            .start_time
            .as_ref()
            .filter(|_| !self.is_suspended())?
            .0;
        let end = seconds_after(start, self.spec.active_deadline_seconds?);
        if self.view.now >= end {
            return Some((
                DEADLINE_EXCEEDED.to_owned(),
                "Job was active longer than specified deadline".to_owned(),
            ));
        }
        self.plan.wake_at(end);
        None
    }

    /// Containers that are restarted in place count as well.
    fn restarted_too_often(&self, limit: i32) -> bool {
        let template = self.spec.template.spec.as_ref();
        if template.and_then(|spec| spec.restart_policy.as_deref()) != Some("OnFailure") {
            return false;
        }
        let statuses = self.active.iter().filter_map(|pod| pod.status.as_ref());
        let statuses = statuses.flat_map(|status| status.container_statuses.iter().flatten());
        let restarts: i32 = statuses.map(|status| status.restart_count).sum();
        if limit == 0 {
            restarts > 0
        } else {
            restarts >= limit
        }
    }

    fn delete_active(&mut self) {
        for pod in std::mem::take(&mut self.active) {
            self.delete(pod);
        }
    }

    fn delete(&mut self, pod: &Pod) {
        self.deleted += 1;
        self.plan.delete(pod);
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let message = format!("Deleted pod: {name}");
        self.plan.tell(Event::normal(
            self.owner.clone(),
            COMPONENT,
            SUCCESSFUL_DELETE,
            message,
        ));
    }

    /// As many pods at a time as wanted, and no more than there is left to do.
    fn manage(&mut self) {
        if self.is_suspended() {
            self.delete_active();
            return;
        }
        let parallelism = self.spec.parallelism.unwrap_or(1);
        let active = number(self.active.len());
        let wanted = match self.spec.completions {
            None if self.succeeded() > 0 => active,
            None => parallelism,
            Some(completions) => (completions - self.succeeded()).min(parallelism).max(0),
        };
        if active > wanted {
            let surplus = usize::try_from(active - wanted).unwrap_or(0);
            self.active
                .sort_by(|one, other| pods::worth(one).cmp(&pods::worth(other)));
            for pod in self.active.drain(..surplus).collect::<Vec<_>>() {
                self.delete(pod);
            }
        }
        let missing = usize::try_from(wanted - active).unwrap_or(0).min(BURST);
        if missing == 0 {
            return;
        }
        match self.back_off_until().filter(|time| *time > self.view.now) {
            Some(time) => self.plan.wake_at(time),
            None => self.create(missing),
        }
    }

    /// When pods may be created again after failures.
    fn back_off_until(&self) -> Option<Timestamp> {
        let ended = |good: bool| {
            let pods =
                self.view.pods.iter().filter(move |pod| {
                    pods::has_ended(pod) && (pods::phase(pod) == SUCCEEDED) == good
                });
            pods.filter_map(|pod| ended_at(pod)).collect::<Vec<_>>()
        };
        let last_success = ended(true).into_iter().max();
        let failures: Vec<_> = ended(false)
            .into_iter()
            .filter(|time| Some(*time) > last_success)
            .collect();
        let last = failures.iter().max()?;
        let doublings = u32::try_from(failures.len() - 1)
            .unwrap_or(u32::MAX)
            .min(16);
        let wait = FIRST_BACK_OFF
            .saturating_mul(1 << doublings)
            .min(LAST_BACK_OFF);
        Some(after(*last, wait))
    }

    fn create(&mut self, count: usize) {
        let indexes: Vec<Option<u32>> = match &self.completed {
            None => vec![None; count],
            Some(completed) => {
                let busy: BTreeSet<u32> =
                    self.active.iter().filter_map(|pod| index_of(pod)).collect();
                let total = u32::try_from(self.spec.completions.unwrap_or(0)).unwrap_or(0);
                let free =
                    (0..total).filter(|index| !busy.contains(index) && !completed.contains(*index));
                free.take(count).map(Some).collect()
            }
        };
        for index in indexes {
            let pod = replica::pod(&self.owner, self.spec, index);
            let told = Event::normal(
                self.owner.clone(),
                COMPONENT,
                SUCCESSFUL_CREATE,
                "Created pod: {}",
            );
            let failed = Event::warning(
                self.owner.clone(),
                COMPONENT,
                FAILED_CREATE,
                "Error creating: {}",
            );
            self.plan
                .create(&pod, Some(self.owner.clone()), Some(told), Some(failed));
        }
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
            self.plan.tell(Event::normal(
                self.owner.clone(),
                COMPONENT,
                "Suspended",
                "Job suspended",
            ));
        } else if !self.is_suspended() && was {
            self.set_condition(SUSPENDED, FALSE, JOB_RESUMED, "Job resumed");
            self.plan.tell(Event::normal(
                self.owner.clone(),
                COMPONENT,
                "Resumed",
                "Job resumed",
            ));
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
        if let Some(completed) = &self.completed {
            let text = completed.to_string();
            self.status.completed_indexes = (!text.is_empty()).then_some(text);
            self.status.succeeded = nonzero(number(completed.len()));
        }
        let noted: BTreeSet<String> = [&self.uncounted.succeeded, &self.uncounted.failed]
            .into_iter()
            .flatten()
            .flatten()
            .cloned()
            .collect();
        self.status.uncounted_terminated_pods = Some(std::mem::take(&mut self.uncounted));
        // What has ended is written down before it is let go.
        let mut before = Plan::default();
        before.status(self.view.job, &old, &self.status);
        for pod in self
            .view
            .pods
            .iter()
            .filter(|pod| noted.contains(uid_of(pod.as_ref())))
        {
            remove_finalizer(pod, &mut before);
        }
        before.actions.append(&mut self.plan.actions);
        self.plan.actions = before.actions;
    }
}
