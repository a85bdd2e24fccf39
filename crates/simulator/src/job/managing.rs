//! Keeping as many pods of a job running as are wanted.

use std::collections::BTreeSet;
use std::time::Duration;

use bellwether_api::workload::deployment::{FAILED_CREATE, SUCCESSFUL_CREATE, SUCCESSFUL_DELETE};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Pod;

use super::progress::{failures_before, failures_with};
use super::replica::{self, Place, ended_at, index_of};
use super::{COMPONENT, Turn, remove_finalizer};
use crate::plan::{Event, Plan};
use crate::pods::{self, number};
use crate::time::after;

/// How many pods are created or deleted at a time.
const BURST: usize = 500;
/// The wait after a first failure; doubled with each further one.
const FIRST_BACK_OFF: Duration = Duration::from_secs(10);
/// The longest wait.
const LAST_BACK_OFF: Duration = Duration::from_mins(10);

impl<'a> Turn<'a> {
    /// Ends all pods of a job that is over. They keep their finalizer, and are counted.
    pub(super) fn end_active(&mut self) {
        for pod in std::mem::take(&mut self.active) {
            self.delete(pod);
        }
    }

    /// As many pods at a time as wanted, and no more than there is left to do.
    pub(super) fn manage(&mut self) {
        if self.is_suspended() {
            let all = std::mem::take(&mut self.active);
            self.withdraw(all);
            return;
        }
        let parallelism = self.spec.parallelism.unwrap_or(1);
        let active = number(self.active.len());
        let wanted = match self.spec.completions {
            None if self.succeeded() > 0 => active,
            None => parallelism,
            Some(completions) => (completions - self.succeeded()).min(parallelism).max(0),
        };
        let surplus = self.take_surplus(usize::try_from(active - wanted).unwrap_or(0));
        if !surplus.is_empty() {
            self.withdraw(surplus);
            return;
        }
        let leaving = if self.spec.pod_replacement_policy.as_deref() == Some("Failed") {
            number(self.terminating())
        } else {
            0
        };
        let missing = usize::try_from(wanted - leaving - active).unwrap_or(0);
        if missing > 0 {
            self.add(missing.min(BURST));
        }
    }

    /// Takes out of the active pods those that have no place, and the least useful ones.
    fn take_surplus(&mut self, count: usize) -> Vec<&'a Pod> {
        let mut surplus = Vec::new();
        let mut active = std::mem::take(&mut self.active);
        active.sort_by(|one, other| pods::worth(other).cmp(&pods::worth(one)));
        if let Some(progress) = &self.progress {
            let mut taken = BTreeSet::new();
            // The most useful pod of an index stays.
            let (rightful, wrong): (Vec<_>, Vec<_>) = active.into_iter().partition(|pod| {
                let index = progress.index_of(pod);
                index.is_some_and(|index| taken.insert(index))
            });
            active = rightful;
            surplus = wrong;
        }
        while surplus.len() < count
            && let Some(least) = active.pop()
        {
            surplus.push(least);
        }
        self.active = active;
        surplus.truncate(BURST);
        surplus
    }

    /// Deletes pods that nobody wants to count.
    fn withdraw(&mut self, pods: Vec<&'a Pod>) {
        for pod in &pods {
            remove_finalizer(pod, &mut self.plan);
        }
        for pod in pods {
            self.delete(pod);
        }
    }

    fn delete(&mut self, pod: &Pod) {
        self.deleted += 1;
        self.plan.delete(pod);
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        self.record_event(SUCCESSFUL_DELETE, &format!("Deleted pod: {name}"));
    }

    /// Creates pods, unless one has to wait after a failure.
    fn add(&mut self, count: usize) {
        let now = self.view.now;
        let Some(progress) = &self.progress else {
            match self.back_off_until().filter(|time| *time > now) {
                Some(time) => self.plan.wake_at(time),
                None => (0..count).for_each(|_| self.create(None)),
            }
            return;
        };
        let busy: BTreeSet<u32> = self.active.iter().filter_map(|pod| index_of(pod)).collect();
        let free = (0..progress.total).filter(|at| !busy.contains(at) && !progress.is_done(*at));
        let free: Vec<u32> = free.take(count).collect();
        if self.spec.backoff_limit_per_index.is_none() {
            match self.back_off_until().filter(|time| *time > now) {
                Some(time) => self.plan.wake_at(time),
                None => free
                    .into_iter()
                    .for_each(|index| self.create(Some(Place::plain(index)))),
            }
            return;
        }
        let places = free.into_iter().map(|index| {
            let before = progress.predecessor(index);
            let place = Place {
                index,
                failures: Some(failures_with(self.spec, before)),
            };
            (before.and_then(index_back_off), place)
        });
        let (later, ready): (Vec<_>, Vec<_>) =
            places.partition(|(until, _)| until.is_some_and(|until| until > now));
        for until in later.into_iter().filter_map(|(until, _)| until) {
            self.plan.wake_at(until);
        }
        for (_, place) in ready {
            self.create(Some(place));
        }
    }

    /// When pods may be created again after failures.
    fn back_off_until(&self) -> Option<Timestamp> {
        let (count, last) = self.view.endings.failures()?;
        Some(after(last, back_off(count)))
    }

    fn create(&mut self, place: Option<Place>) {
        let pod = replica::pod(&self.owner, self.spec, place);
        let owner = || self.owner.clone();
        let event = Event::normal(owner(), COMPONENT, SUCCESSFUL_CREATE, "Created pod: {}");
        let failed = Event::warning(owner(), COMPONENT, FAILED_CREATE, "Error creating: {}");
        let plan: &mut Plan = &mut self.plan;
        plan.create(&pod, Some(self.owner.clone()), Some(event), Some(failed));
    }
}

/// When the successor of a pod may be created, by how often its index has failed.
fn index_back_off(pod: &Pod) -> Option<Timestamp> {
    let failures = usize::try_from(failures_before(pod).total()).unwrap_or(0) + 1;
    Some(after(ended_at(pod)?, back_off(failures)))
}

/// How long to wait after that many failures in a row.
fn back_off(failures: usize) -> Duration {
    let doublings = u32::try_from(failures.saturating_sub(1)).unwrap_or(u32::MAX);
    FIRST_BACK_OFF
        .saturating_mul(1 << doublings.min(16))
        .min(LAST_BACK_OFF)
}
