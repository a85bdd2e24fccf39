//! Stateful sets: pods with names and volumes of their own, one after the other.

mod replica;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use bellwether_api::workload::deployment::{FAILED_CREATE, SUCCESSFUL_CREATE, SUCCESSFUL_DELETE};
use bellwether_api::workload::pod::RUNNING;
use bellwether_api::workload::revision::REVISION_HASH;
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{
    ControllerRevision, StatefulSet, StatefulSetSpec, StatefulSetStatus,
};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod};

use crate::kind::{Reference, is_deleting};
use crate::plan::{Event, Plan};
use crate::pods::{self, nonzero};
use crate::revision::{self, History};
use crate::scale::{Round, resolve};
use crate::select::matches;

const COMPONENT: &str = "statefulset-controller";

/// Everything that the decision may look at.
#[derive(Debug)]
pub(crate) struct View<'a> {
    pub(crate) set: &'a StatefulSet,
    /// Its pods.
    pub(crate) pods: &'a [Arc<Pod>],
    /// Pods in its namespace that nobody controls.
    pub(crate) orphans: &'a [Arc<Pod>],
    /// Its revisions.
    pub(crate) revisions: &'a [Arc<ControllerRevision>],
    /// The claims of its namespace.
    pub(crate) claims: &'a [Arc<PersistentVolumeClaim>],
    pub(crate) now: Timestamp,
}

/// What has to be done for a stateful set.
pub(crate) fn decide(view: &View<'_>) -> Plan {
    let mut plan = Plan::default();
    let Some(spec) = &view.set.spec else {
        return plan;
    };
    let owner = Reference::to(view.set);
    if !is_deleting(&view.set.metadata) {
        for pod in view.orphans {
            let fits = matches(&spec.selector, pod.metadata.labels.as_ref());
            if fits && pods::is_active(pod) && replica::ordinal(&owner, pod).is_some() {
                plan.adopt(pod.as_ref(), &owner);
            }
        }
        if !plan.actions.is_empty() {
            return plan;
        }
    }
    let history = History::new(view.revisions, &spec.template);
    let Some(update) = history.current(&view.set.metadata, &owner, REVISION_HASH, &mut plan) else {
        return plan;
    };
    let known = view
        .set
        .status
        .as_ref()
        .and_then(|status| status.current_revision.as_deref());
    let current = known.and_then(|name| history.named(name)).unwrap_or(update);
    let mut round = Turn::new(view, spec, owner, current, update);
    if !is_deleting(&view.set.metadata) {
        round.go_on();
    }
    round.write_status();
    let mut done = round.plan;
    done.actions.splice(0..0, plan.actions);
    let in_use = |revision: &ControllerRevision| {
        let name = revision::name(revision);
        name == revision::name(current)
            || name == revision::name(update)
            || view
                .pods
                .iter()
                .any(|pod| replica::revision(pod) == Some(name))
    };
    history.clean_up(spec.revision_history_limit, in_use, &mut done);
    done
}

/// A decision in the making.
struct Turn<'a> {
    view: &'a View<'a>,
    spec: &'a StatefulSetSpec,
    owner: Reference,
    current: &'a ControllerRevision,
    update: &'a ControllerRevision,
    /// Pods that shall be there, by their place; nothing where one is missing.
    replicas: Vec<Option<&'a Pod>>,
    /// Pods that shall go, the highest number first.
    condemned: Vec<&'a Pod>,
    plan: Plan,
}

/// Whether to stop for this time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Flow {
    Stop,
    GoOn,
}

impl<'a> Turn<'a> {
    fn new(
        view: &'a View<'a>,
        spec: &'a StatefulSetSpec,
        owner: Reference,
        current: &'a ControllerRevision,
        update: &'a ControllerRevision,
    ) -> Self {
        let count = usize::try_from(spec.replicas.unwrap_or(1)).unwrap_or(0);
        let mut replicas = vec![None; count];
        let mut condemned = Vec::new();
        let start = replica::first_ordinal(spec);
        for pod in view.pods {
            let Some(ordinal) = replica::ordinal(&owner, pod) else {
                continue;
            };
            let place = ordinal
                .checked_sub(start)
                .and_then(|place| usize::try_from(place).ok());
            match place.and_then(|place| replicas.get_mut(place)) {
                Some(slot) => *slot = Some(pod.as_ref()),
                None => condemned.push((ordinal, pod.as_ref())),
            }
        }
        condemned.sort_by_key(|(ordinal, _)| std::cmp::Reverse(*ordinal));
        Self {
            view,
            spec,
            owner,
            current,
            update,
            replicas,
            condemned: condemned.into_iter().map(|(_, pod)| pod).collect(),
            plan: Plan::default(),
        }
    }

    fn is_ordered(&self) -> bool {
        self.spec.pod_management_policy.as_deref() != Some("Parallel")
    }

    fn go_on(&mut self) {
        if self.keep_replicas() == Flow::Stop || self.remove_condemned() == Flow::Stop {
            return;
        }
        let strategy = self.spec.update_strategy.as_ref();
        if strategy.and_then(|strategy| strategy.type_.as_deref()) != Some("OnDelete") {
            self.roll();
        }
    }

    /// Creates what is missing, in order, each only when those before it can be used.
    fn keep_replicas(&mut self) -> Flow {
        let ordered = self.is_ordered();
        let start = replica::first_ordinal(self.spec);
        for place in 0..self.replicas.len() {
            let ordinal = start.saturating_add(i32::try_from(place).unwrap_or(i32::MAX));
            let busy = match self.replicas[place] {
                None => {
                    self.create(ordinal);
                    true
                }
                Some(pod) if pods::has_ended(pod) => {
                    if !is_deleting(&pod.metadata) {
                        self.delete(pod);
                    }
                    true
                }
                Some(pod) => {
                    self.create_missing_claims(ordinal);
                    !self.is_available(pod)
                }
            };
            if busy && ordered {
                return Flow::Stop;
            }
        }
        Flow::GoOn
    }

    fn is_available(&mut self, pod: &Pod) -> bool {
        let ready = pods::phase(pod) == RUNNING && !is_deleting(&pod.metadata);
        let available = pods::available_at(pod, self.spec.min_ready_seconds.unwrap_or(0));
        match available.filter(|_| ready) {
            Some(time) if time <= self.view.now => true,
            Some(time) => {
                self.plan.wake_at(time);
                false
            }
            None => false,
        }
    }

    /// Deletes what is too much, the highest number first.
    fn remove_condemned(&mut self) -> Flow {
        let ordered = self.is_ordered();
        for pod in self.condemned.clone() {
            if !is_deleting(&pod.metadata) {
                self.delete(pod);
            }
            if ordered {
                return Flow::Stop;
            }
        }
        self.remove_claims();
        Flow::GoOn
    }

    /// Replaces pods of other templates, the highest number first, as many at a time as allowed.
    fn roll(&mut self) {
        let strategy = self.spec.update_strategy.as_ref();
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
        let partition = rolling.and_then(|rolling| rolling.partition).unwrap_or(0);
        let partition = usize::try_from(partition).unwrap_or(0);
        let total = i32::try_from(self.replicas.len()).unwrap_or(i32::MAX);
        let limit = rolling.and_then(|rolling| rolling.max_unavailable.as_ref());
        let limit = resolve(limit, total, Round::Down).max(1);
        let pods: Vec<Option<&Pod>> = self.replicas.clone();
        let mut unavailable = 0;
        for pod in &pods {
            if !pod.is_some_and(|pod| self.is_available(pod)) {
                unavailable += 1;
            }
        }
        for pod in pods.into_iter().skip(partition).rev().flatten() {
            let stale = replica::revision(pod) != Some(revision::name(self.update));
            let available = self.is_available(pod);
            if stale && !is_deleting(&pod.metadata) && (!available || unavailable < limit) {
                self.delete(pod);
                unavailable += i32::from(available);
            }
            if unavailable >= limit {
                return;
            }
        }
    }

    /// The revision that a new pod is made of: below the partition the old one stays in force.
    fn revision_for(&self, ordinal: i32) -> &'a ControllerRevision {
        let strategy = self.spec.update_strategy.as_ref();
        let rolling = strategy.and_then(|strategy| strategy.rolling_update.as_ref());
        let partition = rolling.and_then(|rolling| rolling.partition).unwrap_or(0);
        let place = ordinal.saturating_sub(replica::first_ordinal(self.spec));
        if place < partition {
            self.current
        } else {
            self.update
        }
    }

    fn create(&mut self, ordinal: i32) {
        self.create_missing_claims(ordinal);
        let revision = self.revision_for(ordinal);
        let template = revision::template(revision).unwrap_or_else(|| self.spec.template.clone());
        let pod = replica::pod(
            &self.owner,
            self.spec,
            &template,
            revision::name(revision),
            ordinal,
        );
        let name = pod.metadata.name.clone().unwrap_or_default();
        let message = format!(
            "Create Pod {name} in StatefulSet {} successful",
            self.owner.key.name
        );
        let event = Event::normal(self.owner.clone(), COMPONENT, SUCCESSFUL_CREATE, message);
        let message = format!(
            "Create Pod {name} in StatefulSet {} failed error: {{}}",
            self.owner.key.name
        );
        let failed = Event::warning(self.owner.clone(), COMPONENT, FAILED_CREATE, message);
        self.plan
            .create(&pod, Some(self.owner.clone()), Some(event), Some(failed));
    }

    fn create_missing_claims(&mut self, ordinal: i32) {
        for claim in replica::claims(&self.owner, self.spec, ordinal) {
            let exists = self
                .view
                .claims
                .iter()
                .any(|found| found.metadata.name == claim.metadata.name);
            if exists {
                continue;
            }
            let message = format!(
                "Create Claim {} Pod {} in StatefulSet {} success",
                claim.metadata.name.as_deref().unwrap_or_default(),
                replica::name(&self.owner, ordinal),
                self.owner.key.name
            );
            let event = Event::normal(self.owner.clone(), COMPONENT, SUCCESSFUL_CREATE, message);
            self.plan
                .create(&claim, Some(self.owner.clone()), Some(event), None);
        }
    }

    /// Claims of pods that are no longer there go with them, if that is wanted.
    fn remove_claims(&mut self) {
        let policy = self.spec.persistent_volume_claim_retention_policy.as_ref();
        if policy.and_then(|policy| policy.when_scaled.as_deref()) != Some("Delete") {
            return;
        }
        let start = replica::first_ordinal(self.spec);
        let end = start.saturating_add(self.spec.replicas.unwrap_or(1));
        for claim in self.view.claims {
            let ordinal = replica::claim_ordinal(&self.owner, self.spec, claim);
            if ordinal.is_some_and(|ordinal| !(start..end).contains(&ordinal))
                && !is_deleting(&claim.metadata)
            {
                self.plan.delete(claim.as_ref());
            }
        }
    }

    fn delete(&mut self, pod: &Pod) {
        self.plan.delete(pod);
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let message = format!(
            "Delete Pod {name} in StatefulSet {} successful",
            self.owner.key.name
        );
        self.plan.record_event(Event::normal(
            self.owner.clone(),
            COMPONENT,
            SUCCESSFUL_DELETE,
            message,
        ));
    }

    fn write_status(&mut self) {
        let old = self.view.set.status.clone().unwrap_or_default();
        let all: Vec<&Pod> = self
            .replicas
            .iter()
            .flatten()
            .chain(&self.condemned)
            .copied()
            .collect();
        let ready = all
            .iter()
            .copied()
            .filter(|pod| pods::phase(pod) == RUNNING);
        let counts = pods::count(
            ready,
            self.spec.min_ready_seconds.unwrap_or(0),
            self.view.now,
        );
        if let Some(next) = counts.next {
            self.plan.wake_at(next);
        }
        let of = |revision: &ControllerRevision| {
            let name = revision::name(revision);
            let alive = all.iter().filter(|pod| !is_deleting(&pod.metadata));
            pods::number(
                alive
                    .filter(|pod| replica::revision(pod) == Some(name))
                    .count(),
            )
        };
        let mut status = StatefulSetStatus {
            observed_generation: self.view.set.metadata.generation,
            replicas: pods::number(all.len()),
            ready_replicas: nonzero(counts.ready),
            available_replicas: Some(counts.available),
            current_replicas: nonzero(of(self.current)),
            updated_replicas: nonzero(of(self.update)),
            current_revision: Some(revision::name(self.current).to_owned()),
            update_revision: Some(revision::name(self.update).to_owned()),
            collision_count: Some(old.collision_count.unwrap_or(0)),
            conditions: old.conditions.clone(),
        };
        let is_all = |count: Option<i32>| count.unwrap_or(0) == status.replicas;
        let rolling = self
            .spec
            .update_strategy
            .as_ref()
            .and_then(|strategy| strategy.type_.as_deref())
            != Some("OnDelete");
        if rolling && is_all(status.updated_replicas) && is_all(status.ready_replicas) {
            // The update is complete: what was new is now what there is.
            status.current_revision.clone_from(&status.update_revision);
            status.current_replicas = status.updated_replicas;
        }
        self.plan.status(self.view.set, &old, &status);
    }
}
