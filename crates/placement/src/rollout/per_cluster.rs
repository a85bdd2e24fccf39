//! Some clusters at a time, in the order of their names. Those that failed take no slot: what is tolerated
//! holds nobody up, and what is not stops everything.

use std::sync::Arc;

use super::Walk;
use super::fleet::Fleet;
use super::limits::{Limits, Step};
use super::reason::{Blocker, Scope, Spent, Wait};
use super::status::{ClusterStatus, Status};

/// How many may be in flight, and how many may fail.
#[derive(Debug, Clone, Copy)]
pub(super) struct Room {
    pub(super) size: usize,
    pub(super) tolerated: usize,
}

impl Room {
    pub(super) fn unlimited() -> Self {
        Self {
            size: usize::MAX,
            tolerated: usize::MAX,
        }
    }
}

/// The failures of the whole fleet, if they are more than tolerated.
pub(super) fn breach(fleet: &Fleet<'_>, limits: &Limits<'_>, tolerated: usize) -> Option<Wait> {
    let is_failure = |known: &&&ClusterStatus| limits.settled_status(known).is_failure();
    let failures = fleet.current.iter().filter(is_failure).count();
    (failures > tolerated).then_some(Wait::Budget(Spent {
        scope: Scope::Rollout,
        failures,
        tolerated,
    }))
}

/// Everything in flight stays; what is free goes first to known and then to new clusters.
pub(super) fn walk(
    fleet: &Fleet<'_>,
    limits: &Limits<'_>,
    clusters: &[&Arc<str>],
    room: Room,
) -> Walk {
    let steps: Vec<Step> = fleet
        .current_by_name()
        .into_iter()
        .map(|known| limits.step(known))
        .collect();
    let in_flight = steps.iter().filter(|step| takes_slot(step)).count();
    let breach = breach(fleet, limits, room.tolerated);
    let mut free = match breach {
        Some(_) => 0,
        None => room.size.saturating_sub(in_flight),
    };
    let mut walk = Walk::default();
    for step in steps {
        match step {
            Step::Settled => {}
            Step::TimedOut(entry) => walk.timed_out.push(entry),
            Step::Rollout(entry) if entry.status != Status::ToApply => walk.rollout.push(entry),
            Step::Rollout(_) if free == 0 => {}
            Step::Rollout(entry) => {
                free -= 1;
                walk.rollout.push(entry);
            }
        }
    }
    let unseen = clusters
        .iter()
        .filter(|cluster| fleet.known(cluster).is_none());
    for cluster in unseen.take(free) {
        walk.rollout.extend(to_apply(fleet, cluster));
    }
    walk.breached = breach.is_some();
    walk.wait = breach.or_else(|| {
        let has_failed = |entry: &&ClusterStatus| entry.status.is_failure();
        let failed = walk.rollout.iter().filter(has_failed).count();
        Some(Wait::Slots {
            taken: walk.rollout.len() - failed,
            size: room.size,
            blocker: Blocker::soonest(&walk.rollout)?,
        })
    });
    walk
}

/// True if a cluster is on its way or soaks.
fn takes_slot(step: &Step) -> bool {
    match step {
        Step::Rollout(entry) => entry.status != Status::ToApply && !entry.status.is_failure(),
        Step::TimedOut(_) | Step::Settled => false,
    }
}

/// A cluster that nothing is known of, about to start.
pub(super) fn to_apply(fleet: &Fleet<'_>, cluster: &Arc<str>) -> Option<ClusterStatus> {
    let group = fleet.group_of(cluster)?.clone();
    Some(ClusterStatus::new(
        cluster.clone(),
        group,
        Status::ToApply,
        None,
    ))
}
