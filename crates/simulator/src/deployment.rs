//! Deployments: from one template to the next, by way of replica sets.
//!
//! The steps are those of Kubernetes' deployment controller, one reconciliation at a time: find or
//! create the replica set of the current template, scale it up and the others down as far as the
//! strategy allows, clean up history, and say how far things are.

mod progress;
mod revision;
mod rolling;
mod sets;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use bellwether_api::workload::deployment::{
    DEADLINE_EXCEEDED, FOUND_NEW_SET, NEW_SET_CREATED, PAUSED, PROGRESSING, RESUMED, REVISION,
    SCALING, SET_CREATE_ERROR,
};
use bellwether_api::workload::status::{FALSE, TRUE, UNKNOWN};
use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, DeploymentStatus, ReplicaSet};
use serde_json::{Value, json};

use crate::kind::{Reference, annotation, is_deleting};
use crate::plan::{Event, Plan};
use crate::select::{is_empty, matches};
use progress::set_condition;
use sets::{Limits, Set};

const COMPONENT: &str = "deployment-controller";

/// Everything that the decision may look at.
#[derive(Debug)]
pub(crate) struct View<'a> {
    pub(crate) deployment: &'a Deployment,
    /// Its replica sets.
    pub(crate) sets: &'a [Arc<ReplicaSet>],
    /// Replica sets in its namespace that nobody controls.
    pub(crate) orphans: &'a [Arc<ReplicaSet>],
    /// Whether a set that is not ours has the name that our next one would have.
    pub(crate) name_is_taken: bool,
    /// The sets of ours, by uid, that have pods which have not ended.
    pub(crate) sets_with_pods: &'a [String],
    /// Why the last replica set could not be created.
    pub(crate) trouble: Option<&'a str>,
    pub(crate) now: Timestamp,
}

/// The name that a set for the current template would have.
pub(crate) fn next_set_name(deployment: &Deployment) -> String {
    revision::set_name(deployment)
}

/// What has to be done for a deployment.
pub(crate) fn decide(view: &View<'_>) -> Plan {
    let Some(spec) = &view.deployment.spec else {
        return Plan::default();
    };
    let mut rollout = Rollout::new(view, spec);
    if is_empty(&spec.selector) {
        rollout.refuse_to_select_all();
    } else if is_deleting(&view.deployment.metadata) {
        rollout.write_status(false);
    } else if !rollout.claim() {
        rollout.go_on();
    }
    rollout.plan
}

/// A decision in the making.
struct Rollout<'a> {
    view: &'a View<'a>,
    spec: &'a DeploymentSpec,
    owner: Reference,
    limits: Limits,
    /// The set of the current template.
    new: Option<Set>,
    /// All others, oldest first.
    old: Vec<Set>,
    /// The status as it is becoming.
    status: DeploymentStatus,
    /// The revision that the deployment shall show.
    revision: Option<String>,
    plan: Plan,
}

impl<'a> Rollout<'a> {
    fn new(view: &'a View<'a>, spec: &'a DeploymentSpec) -> Self {
        let mut sets: Vec<Set> = view.sets.iter().map(Set::new).collect();
        sets.sort_by_key(Set::age);
        let position = sets
            .iter()
            .position(|set| revision::is_of_template(&set.object, &spec.template));
        let new = position.map(|position| sets.remove(position));
        Self {
            view,
            spec,
            owner: Reference::to(view.deployment),
            limits: Limits::of(spec),
            new,
            old: sets,
            status: view.deployment.status.clone().unwrap_or_default(),
            revision: None,
            plan: Plan::default(),
        }
    }

    fn refuse_to_select_all(&mut self) {
        let message = "This deployment is selecting all pods. A non-empty selector is required.";
        self.record_warning("SelectingAll", message.to_owned());
        self.status.observed_generation = self.view.deployment.metadata.generation;
        let old = self.view.deployment.status.clone().unwrap_or_default();
        self.plan.status(self.view.deployment, &old, &self.status);
    }

    /// Takes sets that match and belong to nobody; lets go of those that no longer match.
    fn claim(&mut self) -> bool {
        let fits = |set: &ReplicaSet| matches(&self.spec.selector, set.metadata.labels.as_ref());
        for set in self
            .view
            .orphans
            .iter()
            .filter(|set| fits(set) && !is_deleting(&set.metadata))
        {
            self.plan.adopt(set.as_ref(), &self.owner);
        }
        for set in self.view.sets.iter().filter(|set| !fits(set)) {
            self.plan.release(set.as_ref(), &self.owner);
        }
        !self.plan.actions.is_empty()
    }

    fn go_on(&mut self) {
        self.note_pause();
        if self.is_paused() || self.was_scaled() {
            self.follow_size();
        } else if self.limits.recreate {
            self.recreate();
        } else {
            self.roll();
        }
    }

    fn is_paused(&self) -> bool {
        self.spec.paused.unwrap_or(false)
    }

    fn deadline(&self) -> Option<i32> {
        // Kubernetes takes the largest number for "never".
        self.spec
            .progress_deadline_seconds
            .filter(|seconds| *seconds != i32::MAX)
    }

    /// Progress is not measured from before a pause.
    fn note_pause(&mut self) {
        if self.deadline().is_none() {
            return;
        }
        let reason = progress::condition(&self.status, PROGRESSING)
            .and_then(|condition| condition.reason.clone());
        let was_paused = reason.as_deref() == Some(PAUSED);
        if reason.as_deref() == Some(DEADLINE_EXCEEDED) || self.is_paused() == was_paused {
            return;
        }
        let (reason, message) = if self.is_paused() {
            (PAUSED, "Deployment is paused")
        } else {
            (RESUMED, "Deployment is resumed")
        };
        self.set_progressing(UNKNOWN, reason, message.to_owned());
    }

    /// Whether somebody changed the number of replicas since the sets were last scaled.
    fn was_scaled(&self) -> bool {
        let sets = self.new.iter().chain(&self.old);
        sets.filter(|set| set.size > 0)
            .filter_map(Set::desired)
            .any(|desired| desired != self.limits.replicas)
    }

    /// The number of replicas has changed, or the rollout is paused: no new set, but the right size.
    fn follow_size(&mut self) {
        self.update_new_set();
        self.scale_in_proportion();
        if self.is_paused() {
            self.clean_up();
        }
        self.finish(false);
    }

    /// First no more pods of the old, then those of the new.
    fn recreate(&mut self) {
        self.update_new_set();
        let mut busy = false;
        for set in self.old.iter_mut().filter(|set| set.size > 0) {
            set.size = 0;
            busy = true;
        }
        let new = self.new.as_ref().map(|set| set.uid().to_owned());
        busy |= self.old.iter().any(|set| set.actual > 0);
        busy |= self
            .view
            .sets_with_pods
            .iter()
            .any(|uid| Some(uid) != new.as_ref());
        if !busy {
            if self.new.is_none() && !self.create_new_set() {
                return;
            }
            if let Some(set) = &mut self.new {
                set.size = self.limits.replicas;
            }
            self.clean_up_if_complete();
        }
        self.finish(true);
    }

    /// Some more of the new, some less of the old, as far as the limits allow.
    fn roll(&mut self) {
        self.update_new_set();
        if self.new.is_none() && !self.create_new_set() {
            return;
        }
        if let Some(new) = &mut self.new
            && !rolling::scale_up(&self.limits, new, &self.old)
            && !rolling::scale_down(&self.limits, new, &mut self.old)
        {
            self.clean_up_if_complete();
        }
        self.finish(true);
    }

    /// Brings annotations of an existing set for the current template up to date.
    fn update_new_set(&mut self) {
        let Some(new) = &self.new else { return };
        let object = Arc::clone(&new.object);
        let next = revision::next(&self.old);
        let changes = revision::annotation_changes(self.view.deployment, &object, next);
        let min_ready = self.spec.min_ready_seconds;
        let set_spec = object.spec.as_ref();
        let stale = set_spec
            .is_some_and(|spec| spec.min_ready_seconds.unwrap_or(0) != min_ready.unwrap_or(0));
        let mut patch = json!({});
        if !changes.is_empty() {
            patch["metadata"] = json!({"annotations": changes});
        }
        if stale {
            patch["spec"] = json!({"minReadySeconds": min_ready.unwrap_or(0)});
        }
        if patch != json!({}) {
            self.plan.patch(object.as_ref(), patch);
        }
        let current = changes.get(REVISION).map(String::as_str);
        let current = current.or_else(|| annotation(&object.metadata, REVISION));
        self.revision = current.map(str::to_owned);
        let unknown = progress::condition(&self.status, PROGRESSING).is_none();
        if self.deadline().is_some() && unknown {
            let name = object.metadata.name.as_deref().unwrap_or_default();
            self.set_progressing(
                TRUE,
                FOUND_NEW_SET,
                format!("Found new replica set {name:?}"),
            );
        }
    }

    /// Creates a set for the current template. Returns whether to go on in this round.
    fn create_new_set(&mut self) -> bool {
        let next = revision::next(&self.old);
        let name = revision::set_name(self.view.deployment);
        if self.view.name_is_taken {
            let count = self.status.collision_count.unwrap_or(0);
            self.status.collision_count = Some(count.saturating_add(1));
            self.finish(true);
            return false;
        }
        if let Some(trouble) = self.view.trouble
            && self.deadline().is_some()
        {
            let message = format!("Failed to create new replica set {name:?}: {trouble}");
            self.set_progressing(FALSE, SET_CREATE_ERROR, message);
        }
        let size = rolling::first_size(&self.limits, &self.old);
        let set = revision::new_set(self.view.deployment, &self.owner, next, size, &self.limits);
        let message = format!("Scaled up replica set {name} from 0 to {size}");
        let event =
            (size > 0).then(|| Event::normal(self.owner.clone(), COMPONENT, SCALING, message));
        let message = format!("Failed to create new replica set {name:?}: {{}}");
        let failed = Event::warning(self.owner.clone(), COMPONENT, SET_CREATE_ERROR, message);
        self.plan
            .create(&set, Some(self.owner.clone()), event, Some(failed));
        self.revision = Some(next.to_string());
        if self.deadline().is_some() && self.view.trouble.is_none() {
            let message = format!("Created new replica set {name:?}");
            self.set_progressing(TRUE, NEW_SET_CREATED, message);
        }
        let mut set = Set::new(&Arc::new(set));
        // It is created with this size, so there is nothing to scale.
        set.size = size;
        self.new = Some(set);
        true
    }

    fn scale_in_proportion(&mut self) {
        sets::scale_in_proportion(&self.limits, self.new.as_mut(), &mut self.old, &self.status);
    }

    fn clean_up_if_complete(&mut self) {
        let status = self.view.deployment.status.clone().unwrap_or_default();
        if progress::is_complete(self.view.deployment, &self.limits, &status) {
            self.clean_up();
        }
    }

    /// Deletes sets beyond what history keeps.
    fn clean_up(&mut self) {
        let Some(limit) = self
            .spec
            .revision_history_limit
            .filter(|limit| *limit != i32::MAX)
        else {
            return;
        };
        let mut sets: Vec<&Set> = self
            .old
            .iter()
            .filter(|set| !is_deleting(&set.object.metadata))
            .collect();
        let surplus = sets
            .len()
            .saturating_sub(usize::try_from(limit).unwrap_or(0));
        sets.sort_by_key(|set| revision::of(&set.object));
        let objects: Vec<_> = sets
            .into_iter()
            .take(surplus)
            .filter(|set| set.is_over())
            .map(|set| Arc::clone(&set.object))
            .collect();
        for set in objects {
            self.plan.delete(set.as_ref());
        }
    }

    /// Scales what has to be scaled, and says how far things are.
    fn finish(&mut self, measure: bool) {
        let sets: Vec<Set> = self.new.iter().chain(&self.old).cloned().collect();
        for set in sets {
            if let Some((patch, change)) = set.change(&self.limits) {
                self.plan.patch(set.object.as_ref(), patch);
                if let Some(message) = change {
                    let event = Event::normal(self.owner.clone(), COMPONENT, SCALING, message);
                    self.plan.record_event(event);
                }
            }
        }
        self.write_status(measure);
    }

    fn write_status(&mut self, measure: bool) {
        let old = self.view.deployment.status.clone().unwrap_or_default();
        let mut status = progress::calculate(
            self.view.deployment,
            &self.limits,
            self.new.as_ref(),
            &self.old,
            &self.status,
            self.view.now,
        );
        if measure {
            let name = self.new.as_ref().map(|set| set.name().to_owned());
            progress::measure(
                self.view.deployment,
                &self.limits,
                name.as_deref(),
                &old,
                &mut status,
                self.view.now,
            );
            progress::copy_failures(self.new.as_ref(), &self.old, &mut status, self.view.now);
        }
        if let Some(time) = progress::next_check(self.view.deployment, &self.limits, &status) {
            self.plan.wake_at(time);
        }
        let shown = annotation(&self.view.deployment.metadata, REVISION);
        let metadata: Value = match self.revision.as_deref() {
            Some(revision) if shown != Some(revision) => {
                json!({"annotations": {REVISION: revision}})
            }
            _ => json!({}),
        };
        self.plan
            .status_with(self.view.deployment, &old, &status, metadata);
    }

    fn set_progressing(&mut self, status: &str, reason: &str, message: String) {
        set_condition(
            &mut self.status,
            PROGRESSING,
            status,
            reason,
            message,
            self.view.now,
        );
    }

    fn record_warning(&mut self, reason: &'static str, message: String) {
        self.plan.record_event(Event::warning(
            self.owner.clone(),
            COMPONENT,
            reason,
            message,
        ));
    }
}
