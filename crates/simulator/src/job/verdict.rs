//! Whether a job has come to its end, and why.

use bellwether_api::workload::job::{
    BACKOFF_LIMIT_EXCEEDED, COMPLETIONS_REACHED, DEADLINE_EXCEEDED, FAILED, FAILED_INDEXES,
    FAILURE_TARGET, MAX_FAILED_INDEXES_EXCEEDED, POD_FAILURE_POLICY, SUCCESS_CRITERIA_MET,
    SUCCESS_POLICY,
};
use bellwether_api::workload::pod::{PENDING, RUNNING};
use bellwether_api::workload::status::TRUE;
use k8s_openapi::api::batch::v1::JobCondition;

use super::counting::has_failed;
use super::failure_policy::{Response, respond};
use super::{Turn, success_policy};
use crate::pods;
use crate::time::seconds_after;

/// Why jobs end.
const REASONS: [&str; 7] = [
    COMPLETIONS_REACHED,
    SUCCESS_POLICY,
    BACKOFF_LIMIT_EXCEEDED,
    DEADLINE_EXCEEDED,
    FAILED_INDEXES,
    MAX_FAILED_INDEXES_EXCEEDED,
    POD_FAILURE_POLICY,
];

/// How a job ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Verdict {
    pub(super) outcome: Outcome,
    pub(super) reason: &'static str,
    pub(super) message: String,
}

/// Well or badly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Success,
    Failure,
}

impl Verdict {
    /// Enough pods have succeeded.
    pub(super) fn completed() -> Self {
        Self {
            outcome: Outcome::Success,
            reason: COMPLETIONS_REACHED,
            message: "Reached expected number of succeeded pods".to_owned(),
        }
    }

    fn failed(reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            outcome: Outcome::Failure,
            reason,
            message: message.into(),
        }
    }

    /// What was decided before, and is not to be decided again.
    fn known(conditions: &[JobCondition]) -> Option<Self> {
        let find = |kind: &str| {
            let mut conditions = conditions.iter();
            conditions.find(|found| found.type_ == kind && found.status == TRUE)
        };
        let (outcome, condition) = match (find(SUCCESS_CRITERIA_MET), find(FAILURE_TARGET)) {
            (Some(condition), _) => (Outcome::Success, condition),
            (None, Some(condition)) => (Outcome::Failure, condition),
            (None, None) => return None,
        };
        let given = condition.reason.as_deref().unwrap_or_default();
        let reason = REASONS.into_iter().find(|known| *known == given);
        Some(Self {
            outcome,
            reason: reason.unwrap_or(FAILED),
            message: condition.message.clone().unwrap_or_default(),
        })
    }
}

impl Turn<'_> {
    /// The end that a job has come to, other than that all its pods have succeeded. What was decided
    /// before stands; then failures come before successes.
    pub(super) fn verdict(&mut self) -> Option<Verdict> {
        Verdict::known(self.status.conditions.as_deref().unwrap_or_default())
            .or_else(|| self.fatal_failure())
            .or_else(|| self.limit_exceeded())
            .or_else(|| self.deadline_exceeded())
            .or_else(|| self.indexes_failed())
            .or_else(|| self.policy_met())
    }

    fn fatal_failure(&self) -> Option<Verdict> {
        let policy = self.spec.pod_failure_policy.as_ref()?;
        let failed = self
            .view
            .pods
            .iter()
            .filter(|pod| has_failed(self.spec, pod));
        let mut fatal = failed.filter_map(|pod| match respond(policy, pod) {
            Response::FailJob(message) => Some(Verdict::failed(POD_FAILURE_POLICY, message)),
            _ => None,
        });
        fatal.next()
    }

    fn limit_exceeded(&self) -> Option<Verdict> {
        let limit = self.spec.backoff_limit.unwrap_or(6);
        let exceeded = self.failed() > limit || self.restarted_too_often(limit);
        exceeded.then(|| {
            let message = "Job has reached the specified backoff limit";
            Verdict::failed(BACKOFF_LIMIT_EXCEEDED, message)
        })
    }

    /// Containers that are restarted in place count as well.
    fn restarted_too_often(&self, limit: i32) -> bool {
        let template = self.spec.template.spec.as_ref();
        if template.and_then(|spec| spec.restart_policy.as_deref()) != Some("OnFailure") {
            return false;
        }
        let alive = |phase: &str| matches!(phase, RUNNING | PENDING);
        let pods = self.view.pods.iter().filter(|pod| alive(pods::phase(pod)));
        let statuses = pods.filter_map(|pod| pod.status.as_ref());
        let containers = statuses.flat_map(|status| {
            let init = status.init_container_statuses.iter().flatten();
            init.chain(status.container_statuses.iter().flatten())
        });
        let restarts: i32 = containers.map(|status| status.restart_count).sum();
        if limit == 0 {
            restarts > 0
        } else {
            restarts >= limit
        }
    }

    fn deadline_exceeded(&mut self) -> Option<Verdict> {
        let start = self
            .status
            .start_time
            .as_ref()
            .filter(|_| !self.is_suspended())?
            .0;
        let end = seconds_after(start, self.spec.active_deadline_seconds?);
        if self.view.now >= end {
            let message = "Job was active longer than specified deadline";
            return Some(Verdict::failed(DEADLINE_EXCEEDED, message));
        }
        self.plan.wake_at(end);
        None
    }

    fn indexes_failed(&self) -> Option<Verdict> {
        let progress = self.progress.as_ref()?;
        let failed = progress.failed.as_ref()?.len();
        let most = self.spec.max_failed_indexes;
        if most.is_some_and(|most| failed > usize::try_from(most).unwrap_or(0)) {
            let message = "Job has exceeded the specified maximal number of failed indexes";
            return Some(Verdict::failed(MAX_FAILED_INDEXES_EXCEEDED, message));
        }
        let done = failed + progress.completed.len();
        let all = done >= usize::try_from(progress.total).unwrap_or(usize::MAX);
        (failed > 0 && all).then(|| Verdict::failed(FAILED_INDEXES, "Job has failed indexes"))
    }

    fn policy_met(&self) -> Option<Verdict> {
        let progress = self.progress.as_ref()?;
        let policy = self.spec.success_policy.as_ref()?;
        let message = success_policy::is_met(policy, &progress.completed, progress.total)?;
        Some(Verdict {
            outcome: Outcome::Success,
            reason: SUCCESS_POLICY,
            message,
        })
    }
}
