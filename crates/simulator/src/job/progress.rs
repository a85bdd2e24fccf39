//! How far an indexed job has come: which indexes have succeeded, which have failed for good, and
//! which wait for their next pod.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_api::workload::job::{INDEX_FAILURE_COUNT, INDEX_IGNORED_FAILURE_COUNT};
use bellwether_api::workload::pod::SUCCEEDED;
use k8s_openapi::api::batch::v1::{JobSpec, JobStatus};
use k8s_openapi::api::core::v1::Pod;

use super::counting::has_failed;
use super::failure_policy::{Response, respond};
use super::indexes::Indexes;
use super::is_tracked;
use super::replica::{Failures, ended_at, index_of};
use crate::kind::{annotation, uid_of};
use crate::pods;

/// How far an indexed job has come.
#[derive(Debug)]
pub(super) struct Progress<'a> {
    /// How many indexes there are.
    pub(super) total: u32,
    /// Those that have succeeded.
    pub(super) completed: Indexes,
    /// Those that have failed; only if each index has a limit of its own.
    pub(super) failed: Option<Indexes>,
    /// The last pod of an index that failed and has no other yet; only if each index has a limit.
    awaiting: BTreeMap<u32, &'a Pod>,
}

impl<'a> Progress<'a> {
    /// What can be seen; nothing for a job that is not indexed.
    pub(super) fn of(
        spec: &JobSpec,
        status: &JobStatus,
        pods: &'a [Arc<Pod>],
        active: &[&Pod],
    ) -> Option<Self> {
        if spec.completion_mode.as_deref() != Some("Indexed") {
            return None;
        }
        let total = u32::try_from(spec.completions.unwrap_or(0)).unwrap_or(0);
        let read = |text: Option<&str>| Indexes::parse(text.unwrap_or_default(), total);
        let mut progress = Self {
            total,
            completed: read(status.completed_indexes.as_deref()),
            failed: spec
                .backoff_limit_per_index
                .map(|_| read(status.failed_indexes.as_deref())),
            awaiting: BTreeMap::new(),
        };
        let uncounted = || {
            let tracked = pods.iter().map(AsRef::as_ref).filter(|pod| is_tracked(pod));
            tracked.filter_map(|pod: &'a Pod| Some((index_of(pod).filter(|at| *at < total)?, pod)))
        };
        for (index, pod) in uncounted() {
            if pods::phase(pod) == SUCCEEDED {
                progress.completed.insert(index);
            } else if let Some(failed) = &mut progress.failed
                && is_last_failure(spec, pod)
            {
                failed.insert(index);
            }
        }
        if progress.failed.is_some() {
            let busy: Vec<_> = active.iter().filter_map(|pod| index_of(pod)).collect();
            for (index, pod) in uncounted().filter(|(_, pod)| has_failed(spec, pod)) {
                if !busy.contains(&index) && !progress.is_done(index) {
                    progress.await_successor(index, pod);
                }
            }
        }
        Some(progress)
    }

    /// Whether nothing more has to be done for an index.
    pub(super) fn is_done(&self, index: u32) -> bool {
        let failed = self.failed.as_ref();
        self.completed.contains(index) || failed.is_some_and(|failed| failed.contains(index))
    }

    /// The index of a pod, if the job has that.
    pub(super) fn index_of(&self, pod: &Pod) -> Option<u32> {
        index_of(pod).filter(|index| *index < self.total)
    }

    /// Whether a pod is kept until its successor has learnt from it.
    pub(super) fn is_awaiting_successor(&self, pod: &Pod) -> bool {
        let last = index_of(pod).and_then(|index| self.awaiting.get(&index));
        last.is_some_and(|last| uid_of(*last) == uid_of(pod))
    }

    /// The pod that the next one of an index takes the place of.
    pub(super) fn predecessor(&self, index: u32) -> Option<&'a Pod> {
        self.awaiting.get(&index).copied()
    }

    fn await_successor(&mut self, index: u32, pod: &'a Pod) {
        let order = |pod: &Pod| (failures_before(pod).total(), ended_at(pod));
        let known = self.awaiting.get(&index);
        if known.is_none_or(|known| order(known) <= order(pod)) {
            self.awaiting.insert(index, pod);
        }
    }
}

/// Whether the failure of a pod is one too many for its index.
fn is_last_failure(spec: &JobSpec, pod: &Pod) -> bool {
    if !has_failed(spec, pod) {
        return false;
    }
    let policy = spec.pod_failure_policy.as_ref();
    match policy.map_or(Response::Count, |policy| respond(policy, pod)) {
        Response::FailIndex => true,
        Response::Ignore => false,
        Response::Count | Response::FailJob(_) => {
            failures_before(pod).counted >= spec.backoff_limit_per_index.unwrap_or(i32::MAX)
        }
    }
}

/// How often an index had failed when a pod was created for it.
pub(super) fn failures_before(pod: &Pod) -> Failures {
    let read = |name| {
        let text = annotation(&pod.metadata, name);
        let number = text.and_then(|text| text.parse::<i32>().ok());
        number.filter(|number| *number >= 0).unwrap_or(0)
    };
    Failures {
        counted: read(INDEX_FAILURE_COUNT),
        ignored: read(INDEX_IGNORED_FAILURE_COUNT),
    }
}

/// How often an index has failed with this pod.
pub(super) fn failures_with(spec: &JobSpec, pod: Option<&Pod>) -> Failures {
    let Some(pod) = pod else {
        return Failures::default();
    };
    let mut failures = failures_before(pod);
    let policy = spec.pod_failure_policy.as_ref();
    if policy.is_some_and(|policy| respond(policy, pod) == Response::Ignore) {
        failures.ignored += 1;
    } else {
        failures.counted += 1;
    }
    failures
}
