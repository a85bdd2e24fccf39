//! The walks exactly as Open Cluster Management's library does them, see
//! [`Compat::Upstream`](super::Compat::Upstream).

use std::collections::HashMap;
use std::sync::Arc;

use super::Walk;
use super::fleet::Fleet;
use super::limits::{Limits, RolloutError, Step};
use super::per_cluster::{Room, to_apply};
use super::reason::{Blocker, Scope, Spent, Wait};
use super::status::{ClusterStatus, Group, Status};
use super::strategy::{Kind, Strategy};

pub(super) fn walk(
    fleet: &Fleet<'_>,
    limits: &Limits<'_>,
    strategy: &Strategy,
) -> Result<Walk, RolloutError> {
    let everything = fleet.clusters();
    if strategy.kind == Kind::All {
        let room = Room {
            size: everything.len(),
            tolerated: everything.len(),
        };
        return Ok(per_cluster(fleet, limits, everything, room));
    }
    let tolerated = limits.failures(everything.len())?;
    let (mandatory, rest) = fleet.split(&strategy.mandatory_decision_groups);
    if !mandatory.is_empty() {
        let first = per_group(fleet, limits, &mandatory, |_| Ok(0))?;
        if !first.rollout.is_empty() || !first.timed_out.is_empty() {
            return Ok(first);
        }
    }
    if strategy.kind == Kind::ProgressivePerGroup {
        return per_group(fleet, limits, &rest, |size| limits.failures(size));
    }
    let others = fleet.clusters_of(&rest);
    let size = limits.concurrency(others.len())?;
    Ok(per_cluster(
        fleet,
        limits,
        &others,
        Room { size, tolerated },
    ))
}

fn per_cluster(fleet: &Fleet<'_>, limits: &Limits<'_>, clusters: &[&Arc<str>], room: Room) -> Walk {
    let mut walk = Walk::default();
    let mut failures = 0;
    for known in fleet.current_by_name() {
        let mut status = known.status;
        if !walk.breached || status != Status::ToApply {
            match limits.step(known) {
                Step::Settled => {}
                Step::TimedOut(entry) => {
                    status = entry.status;
                    walk.timed_out.push(entry);
                }
                Step::Rollout(entry) => walk.rollout.push(entry),
            }
        }
        if status.is_failure() {
            failures += 1;
            walk.breached = failures > room.tolerated;
        }
        if walk.rollout.len() >= room.size {
            return explained(walk, failures, room);
        }
    }
    if walk.breached {
        return explained(walk, failures, room);
    }
    let unseen = clusters
        .iter()
        .filter(|cluster| fleet.known(cluster).is_none());
    for cluster in unseen {
        walk.rollout.extend(to_apply(fleet, cluster));
        if walk.rollout.len() >= room.size {
            break;
        }
    }
    explained(walk, failures, room)
}

fn explained(mut walk: Walk, failures: usize, room: Room) -> Walk {
    walk.wait = if walk.breached {
        Some(Wait::Budget(Spent {
            scope: Scope::Rollout,
            failures,
            tolerated: room.tolerated,
        }))
    } else {
        Blocker::soonest(&walk.rollout).map(|blocker| Wait::Slots {
            taken: walk.rollout.len(),
            size: room.size,
            blocker,
        })
    };
    walk
}

fn per_group(
    fleet: &Fleet<'_>,
    limits: &Limits<'_>,
    groups: &[&Group],
    tolerated: impl Fn(usize) -> Result<usize, RolloutError>,
) -> Result<Walk, RolloutError> {
    let mut walk = Walk::default();
    let mut seen = HashMap::new();
    let started = |known: &&&ClusterStatus| known.status != Status::ToApply;
    for known in fleet.current.iter().filter(started) {
        let mut status = known.status;
        match limits.step(known) {
            Step::Settled => {}
            Step::TimedOut(entry) => {
                status = entry.status;
                walk.timed_out.push(entry);
            }
            Step::Rollout(entry) => walk.rollout.push(entry),
        }
        seen.insert(&*known.cluster, status);
    }
    let mut all_failures = 0;
    for group in groups {
        let tolerated = tolerated(group.clusters.len())?;
        let mut failures = 0;
        let mut clusters: Vec<&Arc<str>> = group.clusters.iter().collect();
        clusters.sort_unstable();
        for cluster in clusters {
            match seen.get(&**cluster) {
                None => walk.rollout.extend(to_apply(fleet, cluster)),
                Some(status) if status.is_failure() => {
                    failures += 1;
                    walk.breached = failures > tolerated;
                }
                Some(_) => {}
            }
        }
        all_failures += failures;
        if walk.breached {
            walk.wait = Some(Wait::Budget(Spent {
                scope: Scope::Group(group.key.clone()),
                failures,
                tolerated,
            }));
            return Ok(walk);
        }
        if walk.rollout.len() > all_failures {
            walk.wait = Blocker::soonest(&walk.rollout).map(|blocker| Wait::Group {
                group: group.key.clone(),
                blocker,
            });
            return Ok(walk);
        }
    }
    Ok(walk)
}
