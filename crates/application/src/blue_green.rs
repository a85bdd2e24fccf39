//! Moves replicas and requests from the revision of an application that is in use (blue) to a new one (green).
//!
//! [`decide`] says which objects should be there, given what is there. Promises, which are property tests:
//!
//! * The new revision never gets more replicas or requests than was asked for.
//! * Replicas that are in use go only when as many of the new ones are ready.
//! * The same state gives the same plan; a plan that was carried out, and whose replicas became ready, is followed by the next one
//!   until the rollout has come to its end.
//!
//! Workloads of both revisions are side by side under names of their own. Other objects stay as they were until the new
//! revision takes over; those that only the new one has are there from the beginning.

mod component;
mod seen;
pub mod traffic;
pub mod workload;

use bellwether_api::delivery::names::{annotation, condition, reason};
use bellwether_api::delivery::{
    Rollout, RolloutComponent, RolloutPhase, RolloutSide, RolloutStatus,
};
use bellwether_api::meta::{self, Condition, FALSE, TRUE, Time};
use bellwether_api::oam::{ComponentService, WorkloadKind};
use bellwether_api::workflow::{WorkflowRunPhase, WorkflowStatus};
use jiff::Timestamp;
use serde_json::Value;

use crate::resources::RenderedObject;
use component::{ComponentPlan, Goal, Moves};
use workload::Partition;

pub use seen::Seen;

/// Where the workflow stands that the rollout is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkflowState {
    /// Nothing is known of it.
    Unknown,
    /// It goes on.
    Running,
    /// It waits for somebody.
    Suspended,
    /// It ended before its end: it was terminated, or failed.
    Aborted,
    /// It came to its end.
    Succeeded,
}

/// Where the workflow stands whose execution a rollout is for.
pub fn workflow_state(workflow: Option<&WorkflowStatus>, run: &str) -> WorkflowState {
    let Some(workflow) = workflow else {
        return WorkflowState::Unknown;
    };
    let mut steps = workflow.steps.iter().flat_map(|step| {
        let sub_steps = step.sub_steps.iter().map(|step| &step.id);
        std::iter::once(&step.status.id).chain(sub_steps)
    });
    // Another execution says nothing about this one.
    if run.is_empty() || !steps.any(|id| id == run) {
        return WorkflowState::Unknown;
    }
    match &workflow.phase {
        Some(WorkflowRunPhase::Succeeded) => WorkflowState::Succeeded,
        Some(WorkflowRunPhase::Terminated | WorkflowRunPhase::Failed) => WorkflowState::Aborted,
        _ if workflow.suspend => WorkflowState::Suspended,
        _ => WorkflowState::Running,
    }
}

/// Everything that the decision looks at.
#[derive(Debug, Clone, Copy)]
pub struct Observed<'a> {
    /// The rollout.
    pub rollout: &'a Rollout,
    /// Its workflow.
    pub workflow: WorkflowState,
    /// What the revision in use was rendered to; nothing if there is none.
    pub blue: &'a [RenderedObject],
    /// What the new revision was rendered to.
    pub green: &'a [RenderedObject],
    /// What is on the cluster.
    pub seen: &'a Seen,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// All objects that should be there; `None` leaves everything as it is.
    pub objects: Option<Vec<Value>>,
    /// Whether objects go that are no longer wanted.
    pub may_prune: bool,
    /// What to say. The record of objects is not part of it.
    pub status: RolloutStatus,
    /// Whether the workflow goes on, which waits for somebody's decision.
    pub resume_workflow: bool,
}

/// The revision that is in use.
pub fn stable_revision(rollout: &Rollout) -> &str {
    let status = rollout.status.as_ref();
    let known = status.map_or("", |status| status.stable_revision.as_str());
    if known.is_empty() {
        &rollout.spec.previous_revision
    } else {
        known
    }
}

/// Where the components of a rollout stand.
pub fn services(rollout: &Rollout) -> Vec<ComponentService> {
    let components = rollout.status.iter().flat_map(|status| &status.components);
    let namespace = rollout.metadata.namespace.clone().unwrap_or_default();
    let service = |component: &RolloutComponent| {
        let sides = [&component.blue, &component.green];
        let total = sides.into_iter().flatten().fold((0, 0), |sum, it| {
            (sum.0 + it.replicas, sum.1 + it.ready.min(it.replicas))
        });
        let is_healthy = total.1 >= total.0;
        ComponentService {
            name: component.name.clone(),
            namespace: namespace.clone(),
            workload_definition: Some(WorkloadKind {
                api_version: "apps/v1".to_owned(),
                kind: component.kind.clone(),
                ..WorkloadKind::default()
            }),
            healthy: is_healthy,
            workload_healthy: is_healthy,
            message: format!("Ready:{}/{}", total.1, total.0),
            ..ComponentService::default()
        }
    };
    components.map(service).collect()
}

/// Decides what should be there now.
pub fn decide(observed: &Observed<'_>, now: Timestamp) -> Plan {
    let rollout = observed.rollout;
    let mut status = begin(rollout);
    let moves = match moves(observed) {
        Ok(moves) => moves,
        Err(problem) => {
            status.phase = RolloutPhase::Invalid;
            status.message.clone_from(&problem);
            report(
                &mut status,
                rollout,
                now,
                condition::PARTITIONED,
                Err((reason::INVALID, problem)),
            );
            return Plan {
                objects: None,
                may_prune: false,
                status,
                resume_workflow: false,
            };
        }
    };
    let plan = ComponentPlan::new(observed, &moves);
    let decided = Decision {
        observed,
        moves: &moves,
        plan: &plan,
    };
    decided.describe(&mut status, now);
    Plan {
        resume_workflow: observed.workflow == WorkflowState::Suspended && decided.is_decided(),
        may_prune: plan.may_prune,
        objects: Some(plan.objects),
        status,
    }
}

/// The status as it was, or as it is at the beginning of another execution.
fn begin(rollout: &Rollout) -> RolloutStatus {
    let before = rollout.status.clone().unwrap_or_default();
    let mut status = RolloutStatus {
        observed_generation: rollout.metadata.generation,
        run: rollout.spec.run.clone(),
        ..before.clone()
    };
    if before.run != rollout.spec.run {
        status.conditions.clear();
        status.pause = false;
        status.phase = RolloutPhase::Progressing;
    }
    status
}

/// How far the rollout goes now.
fn moves<'a>(observed: &Observed<'a>) -> Result<Moves<'a>, String> {
    let (rollout, spec) = (observed.rollout, &observed.rollout.spec);
    let before = begin(rollout);
    let parse = |field: &str, value: Option<&meta::IntOrString>| match value {
        Some(value) => Partition::parse(value)
            .map(Some)
            .map_err(|problem| format!("{field}: {problem}")),
        None => Ok(None),
    };
    if spec.app_revision.is_empty() {
        return Err("spec.appRevision: name the revision that is rolled out".to_owned());
    }
    let partition = parse("spec.partition", spec.partition.as_ref())?;
    let share = spec
        .traffic
        .as_ref()
        .and_then(|traffic| traffic.partition.as_ref());
    let weight = parse("spec.traffic.partition", share)?;
    let stable = stable_revision(rollout);
    let holds = |kind: &str| meta::is_true(&before.conditions, kind);
    let is_promoted = stable == spec.app_revision || holds(condition::PROMOTED);
    let is_first = stable.is_empty();
    let compensates = spec
        .promotion
        .as_ref()
        .is_none_or(|promotion| promotion.rollback_if_not_approved);
    let is_aborted = observed.workflow == WorkflowState::Aborted && compensates;
    let goal = if is_promoted || is_first {
        Goal::Promote
    } else if holds(condition::ROLLED_BACK) || is_rejected(rollout) || is_aborted {
        Goal::RollBack
    } else if is_approved(rollout, &before) {
        Goal::Promote
    } else {
        Goal::Hold
    };
    Ok(Moves {
        goal,
        is_promoted,
        is_first,
        stable,
        target: &spec.app_revision,
        partition: partition.unwrap_or(Partition::Percent(0)),
        weight: weight.map(Partition::percent),
        gateway: spec
            .traffic
            .as_ref()
            .and_then(|traffic| traffic.gateway.as_ref()),
    })
}

fn is_rejected(rollout: &Rollout) -> bool {
    let annotations = rollout.metadata.annotations.as_ref();
    let reject = annotations.and_then(|all| all.get(annotation::REJECT));
    reject.is_some_and(|reason| !reason.is_empty() && reason != "false")
}

/// True if the new revision may take over: nobody has to approve it, somebody set `pause` to false, or somebody resumed the
/// workflow that waited for it.
fn is_approved(rollout: &Rollout, before: &RolloutStatus) -> bool {
    let Some(promotion) = &rollout.spec.promotion else {
        return false;
    };
    let by_pause = before.phase == RolloutPhase::Paused && !before.pause;
    !promotion.manual_approval
        || promotion.approved
        || by_pause
        || meta::is_true(&before.conditions, condition::APPROVED)
}

/// What can be said of a plan.
struct Decision<'a> {
    observed: &'a Observed<'a>,
    moves: &'a Moves<'a>,
    plan: &'a ComponentPlan,
}

impl Decision<'_> {
    /// True if somebody has decided about the new revision.
    fn is_decided(&self) -> bool {
        self.moves.goal != Goal::Hold && self.observed.rollout.spec.promotion.is_some()
    }

    fn describe(&self, status: &mut RolloutStatus, now: Timestamp) {
        let (rollout, plan) = (self.observed.rollout, self.plan);
        let spec = &rollout.spec;
        let waits = |message: &Option<String>| match message {
            None => Ok(String::new()),
            Some(message) => Err((reason::WAITING, message.clone())),
        };
        let is_kept = self.moves.goal != Goal::RollBack;
        let partitioned = if is_kept {
            waits(&plan.waits_for_replicas)
        } else {
            waits(&Some("the old revision comes back".to_owned()))
        };
        let shifted = match (&spec.traffic, is_kept) {
            (None, _) => Err((reason::NOT_REQUESTED, String::new())),
            (Some(_), false) => waits(&Some("the old revision comes back".to_owned())),
            (Some(_), true) => {
                waits(&plan.waits_for_routes).map(|_| plan.remark.clone().unwrap_or_default())
            }
        };
        let is_reached = partitioned.is_ok() && (spec.traffic.is_none() || shifted.is_ok());
        report(status, rollout, now, condition::PARTITIONED, partitioned);
        report(status, rollout, now, condition::SHIFTED, shifted);
        status.phase = self.phase(is_reached);
        status.pause = status.phase == RolloutPhase::Paused;
        let is_approved = self.moves.goal == Goal::Promote && spec.promotion.is_some();
        let approved = if is_approved {
            Ok(String::new())
        } else {
            Err((reason::WAITING, String::new()))
        };
        report(status, rollout, now, condition::APPROVED, approved);
        let is_promoted = status.phase == RolloutPhase::Promoted;
        let promoted = if is_promoted {
            Ok(String::new())
        } else {
            Err((reason::WAITING, String::new()))
        };
        report(status, rollout, now, condition::PROMOTED, promoted);
        let is_back = status.phase == RolloutPhase::RolledBack;
        let back = if is_back {
            Ok(String::new())
        } else {
            Err((reason::NOT_REQUESTED, String::new()))
        };
        report(status, rollout, now, condition::ROLLED_BACK, back);
        status.message = self.message(&status.phase);
        if is_promoted {
            status.stable_revision.clone_from(&spec.app_revision);
        }
        status.components.clone_from(&plan.components);
        let (blue, green) = self.sides(is_promoted);
        (status.blue, status.green) = (blue, green);
    }

    fn phase(&self, is_reached: bool) -> RolloutPhase {
        match self.moves.goal {
            Goal::Promote if self.moves.is_promoted || self.plan.is_complete => {
                RolloutPhase::Promoted
            }
            Goal::Promote if self.moves.is_first => RolloutPhase::Progressing,
            Goal::Promote => RolloutPhase::Promoting,
            Goal::RollBack if self.plan.is_complete => RolloutPhase::RolledBack,
            Goal::RollBack => RolloutPhase::RollingBack,
            Goal::Hold if !is_reached => RolloutPhase::Progressing,
            Goal::Hold if self.observed.rollout.spec.promotion.is_some() => RolloutPhase::Paused,
            Goal::Hold => RolloutPhase::Waiting,
        }
    }

    fn message(&self, phase: &RolloutPhase) -> String {
        let spec = &self.observed.rollout.spec;
        let first = |messages: [&Option<String>; 2]| {
            messages
                .into_iter()
                .flatten()
                .next()
                .cloned()
                .unwrap_or_default()
        };
        match phase {
            RolloutPhase::Paused => format!(
                "{} waits for approval: set status.pause to false, or resume the workflow",
                spec.app_revision
            ),
            RolloutPhase::Promoted => {
                let waits_for = self.plan.waits_for_replicas.clone();
                waits_for.unwrap_or_else(|| format!("{} is in use", spec.app_revision))
            }
            RolloutPhase::RolledBack => format!("{} is in use again", self.moves.stable),
            RolloutPhase::Waiting => self.plan.remark.clone().unwrap_or_default(),
            _ => first([&self.plan.waits_for_replicas, &self.plan.waits_for_routes]),
        }
    }

    /// Both revisions over all components.
    fn sides(&self, is_promoted: bool) -> (Option<RolloutSide>, Option<RolloutSide>) {
        let components = &self.plan.components;
        let has_green = components.iter().any(|component| component.green.is_some());
        let sum =
            |pick: &dyn Fn(&bellwether_api::delivery::RolloutComponent) -> Option<(i64, i64)>| {
                components
                    .iter()
                    .filter_map(pick)
                    .fold((0, 0), |sum, it| (sum.0 + it.0, sum.1 + it.1))
            };
        let (blue, blue_ready) = sum(&|it| it.blue.as_ref().map(|it| (it.replicas, it.ready)));
        let (green, green_ready) = sum(&|it| it.green.as_ref().map(|it| (it.replicas, it.ready)));
        let weight = self.plan.weight.filter(|_| has_green);
        let in_use = if is_promoted {
            self.moves.target
        } else {
            self.moves.stable
        };
        let side = |revision: &str, replicas, ready, weight| RolloutSide {
            revision: revision.to_owned(),
            replicas,
            ready,
            weight,
            ..RolloutSide::default()
        };
        let blue = (!in_use.is_empty())
            .then(|| side(in_use, blue, blue_ready, weight.map(|weight| 100 - weight)));
        let green = has_green.then(|| side(self.moves.target, green, green_ready, weight));
        (blue, green)
    }
}

/// Sets a condition: a remark if it holds, or the reason and the message if it does not.
fn report(
    status: &mut RolloutStatus,
    rollout: &Rollout,
    now: Timestamp,
    kind: &str,
    state: Result<String, (&str, String)>,
) {
    let (holds, reason, message) = match state {
        Ok(remark) => (TRUE, reason::DONE, remark),
        Err((reason, message)) => (FALSE, reason, message),
    };
    let condition = Condition {
        type_: kind.to_owned(),
        status: holds.to_owned(),
        reason: reason.to_owned(),
        message,
        last_transition_time: Time(now),
        observed_generation: rollout.metadata.generation,
    };
    meta::set_condition(&mut status.conditions, condition);
}

#[cfg(test)]
mod tests;
