//! One group at a time, in the order of their indexes.

use std::sync::Arc;

use super::Walk;
use super::fleet::Fleet;
use super::limits::{Limits, RolloutError, Step};
use super::per_cluster::to_apply;
use super::reason::{Blocker, Scope, Spent, Wait};
use super::status::{ClusterStatus, Group, Status};

/// The first group with more failures than tolerated.
pub(super) fn breach(
    fleet: &Fleet<'_>,
    limits: &Limits<'_>,
    groups: &[&Group],
) -> Result<Option<Wait>, RolloutError> {
    for group in groups {
        let tolerated = limits.failures(group.clusters.len())?;
        if let Some(wait) = group_breach(fleet, limits, group, tolerated) {
            return Ok(Some(wait));
        }
    }
    Ok(None)
}

fn group_breach(
    fleet: &Fleet<'_>,
    limits: &Limits<'_>,
    group: &Group,
    tolerated: usize,
) -> Option<Wait> {
    let failures = group
        .clusters
        .iter()
        .filter_map(|cluster| fleet.known(cluster))
        .filter(|known| limits.settled_status(known).is_failure())
        .count();
    (failures > tolerated).then(|| {
        Wait::Budget(Spent {
            scope: Scope::Group(group.key.clone()),
            failures,
            tolerated,
        })
    })
}

/// The mandatory groups, which tolerate no failure; none once all of them are done.
///
/// While anything is on its way or soaks, here or elsewhere, that is all there is. Failures
/// elsewhere hold nothing back beyond what their own budget says, or a tolerated one would stop
/// the rollout for good.
pub(super) fn mandatory(
    fleet: &Fleet<'_>,
    limits: &Limits<'_>,
    groups: &[&Group],
    breach_elsewhere: Option<Wait>,
) -> Option<Walk> {
    let breach_here = groups
        .iter()
        .find_map(|group| group_breach(fleet, limits, group, 0));
    let walk = walk(fleet, limits, groups, breach_here.or(breach_elsewhere));
    let holds = |entry: &ClusterStatus| !entry.status.is_failure();
    (walk.breached || walk.rollout.iter().any(holds)).then_some(walk)
}

/// Everything in flight stays; then the first group with something left to start does so, unless
/// a group before it, or any cluster anywhere, is still on its way.
pub(super) fn walk(
    fleet: &Fleet<'_>,
    limits: &Limits<'_>,
    groups: &[&Group],
    breach: Option<Wait>,
) -> Walk {
    let mut walk = Walk::default();
    let started = |known: &&&ClusterStatus| known.status != Status::ToApply;
    for known in fleet.current.iter().filter(started) {
        match limits.step(known) {
            Step::Settled => {}
            Step::TimedOut(entry) => walk.timed_out.push(entry),
            Step::Rollout(entry) => walk.rollout.push(entry),
        }
    }
    walk.breached = breach.is_some();
    if breach.is_some() {
        walk.wait = breach;
        return walk;
    }
    let is_running = |entry: &ClusterStatus| !entry.status.is_failure();
    for group in groups {
        let mut clusters: Vec<&Arc<str>> = group.clusters.iter().collect();
        clusters.sort_unstable();
        clusters.dedup();
        for cluster in clusters {
            let known = fleet.known(cluster);
            if known.is_none_or(|known| known.status == Status::ToApply) {
                walk.rollout.extend(to_apply(fleet, cluster));
            }
        }
        if walk.rollout.iter().any(is_running) {
            // Not always the group at hand: clusters of later groups may be in flight as well.
            walk.wait = Blocker::soonest(&walk.rollout).map(|blocker| Wait::Group {
                group: fleet
                    .group_of(&blocker.cluster)
                    .unwrap_or(&group.key)
                    .clone(),
                blocker,
            });
            return walk;
        }
    }
    walk
}
