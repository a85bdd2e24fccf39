//! Counting pods that have ended, each of them once.

use std::collections::BTreeSet;

use bellwether_api::workload::pod::{FAILED, SUCCEEDED};
use k8s_openapi::api::batch::v1::JobSpec;
use k8s_openapi::api::core::v1::Pod;

use super::failure_policy::{Response, respond};
use super::verdict::{Outcome, Verdict};
use super::{Turn, is_tracked};
use crate::kind::{is_deleting, uid_of};
use crate::pods::{self, nonzero, number};

/// Whether a pod counts as failed. One that is being deleted does, since nobody may ever learn how
/// it ended; unless the job wants to know before it replaces a pod.
pub(super) fn has_failed(spec: &JobSpec, pod: &Pod) -> bool {
    let phase = pods::phase(pod);
    if phase == FAILED {
        return true;
    }
    let waits_for_end = spec.pod_replacement_policy.as_deref() == Some("Failed")
        || spec.pod_failure_policy.is_some();
    !waits_for_end && is_deleting(&pod.metadata) && phase != SUCCEEDED
}

impl<'a> Turn<'a> {
    /// Counts pods that were noted, and whose finalizer is gone.
    pub(super) fn count_released(&mut self) {
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
    }

    /// How many have succeeded, counted or not.
    pub(super) fn succeeded(&self) -> i32 {
        if let Some(progress) = &self.progress {
            return number(progress.completed.len());
        }
        let noted = self.uncounted.succeeded.as_deref().unwrap_or_default();
        let new = self
            .fresh(noted)
            .filter(|pod| pods::phase(pod) == SUCCEEDED);
        self.status.succeeded.unwrap_or(0) + number(noted.len() + new.count())
    }

    /// How many have failed, counted or not.
    pub(super) fn failed(&self) -> i32 {
        let noted = self.uncounted.failed.as_deref().unwrap_or_default();
        let new = self
            .fresh(noted)
            .filter(|pod| has_failed(self.spec, pod) && self.is_counted(pod));
        self.status.failed.unwrap_or(0) + number(noted.len() + new.count())
    }

    /// Pods that nobody has counted or noted.
    fn fresh(&self, noted: &[String]) -> impl Iterator<Item = &'a Pod> {
        let pods = self.view.pods.iter().map(AsRef::as_ref);
        pods.filter(move |pod| {
            is_tracked(pod) && self.is_in_range(pod) && !noted.iter().any(|uid| uid == uid_of(*pod))
        })
    }

    /// Whether the index of a pod, if it should have one, is among those of the job.
    fn is_in_range(&self, pod: &Pod) -> bool {
        let progress = self.progress.as_ref();
        progress.is_none_or(|progress| progress.index_of(pod).is_some())
    }

    /// Whether the failure of a pod counts, by the policy of the job.
    fn is_counted(&self, pod: &Pod) -> bool {
        let policy = self.spec.pod_failure_policy.as_ref();
        policy.is_none_or(|policy| respond(policy, pod) != Response::Ignore)
    }

    /// Notes pods that have ended, and decides which may go.
    pub(super) fn note_ended(&mut self, verdict: Option<&Verdict>) {
        let is_failing = verdict.is_some_and(|verdict| verdict.outcome == Outcome::Failure);
        for pod in self.view.pods.iter().filter(|pod| is_tracked(pod)) {
            let failed = has_failed(self.spec, pod);
            if !self.may_go(pod, failed, verdict.is_some()) {
                continue;
            }
            let uid = uid_of(pod.as_ref());
            self.released.insert(uid);
            let list = if pods::phase(pod) == SUCCEEDED {
                if self.progress.is_some() {
                    // Its index says it all.
                    continue;
                }
                &mut self.uncounted.succeeded
            } else if (failed || is_failing) && self.is_in_range(pod) && self.is_counted(pod) {
                &mut self.uncounted.failed
            } else {
                continue;
            };
            let list = list.get_or_insert_default();
            if !list.iter().any(|known| known == uid) {
                list.push(uid.to_owned());
            }
        }
    }

    /// Whether nobody needs a pod any more.
    fn may_go(&self, pod: &Pod, failed: bool, ending: bool) -> bool {
        if ending || is_deleting(&self.view.job.metadata) || pods::phase(pod) == SUCCEEDED {
            return true;
        }
        let progress = self.progress.as_ref();
        // Its successor learns from it how often the index has failed.
        failed && progress.is_none_or(|progress| !progress.is_awaiting_successor(pod))
    }
}
