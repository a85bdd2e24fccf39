//! Rollouts: given groups of clusters and how far each one is, who may go now?
//!
//! [`decide`] answers one question at one moment and remembers nothing. The caller acts on the
//! answer, observes the clusters, and asks again: when something changed, or after
//! [`Decision::recheck_after`]. Statuses must be about the version being rolled out: a cluster
//! that still has an older one counts as not seen.
//!
//! What is promised, over any history:
//!
//! - nothing starts while as many clusters are in flight as the strategy allows; one that failed, and
//!   is tolerated, is not,
//! - nothing new starts once more clusters failed than are tolerated,
//! - mandatory groups finish before others start,
//! - a soak is never cut short,
//! - clusters that are done stay done, anyone who joins or leaves,
//! - a cluster that has started is part of every answer until it is done or timed out.
//!
//! The library of Open Cluster Management that these strategies come from breaks some of these
//! promises. [`Compat::Upstream`] answers exactly as it does; see there for the differences.
//!
//! ```
//! use bellwether_placement::rollout::{Group, Input, Strategy, decide};
//!
//! let strategy = Strategy::from_json(&serde_json::json!({
//!     "type": "Progressive",
//!     "progressive": {"maxConcurrency": 1}
//! })).unwrap();
//! let groups = [Group::new("canary", 0, ["lyon", "oslo"])];
//! let decision = decide(&Input::new(&strategy, &groups, &[], jiff::Timestamp::UNIX_EPOCH)).unwrap();
//! assert_eq!(decision.starting().collect::<Vec<_>>(), ["lyon"]);
//! assert_eq!(
//!     decision.reason("oslo").unwrap().to_string(),
//!     "waits for a slot: 1 of 1 taken, lyon starts now"
//! );
//! ```

mod chosen;
mod fleet;
mod limits;
mod per_cluster;
mod per_group;
pub mod probe;
mod reason;
pub mod rehearsal;
mod round;
mod status;
mod strategy;
mod upstream;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};

pub use chosen::Chosen;
use fleet::Fleet;
use limits::Limits;
pub use limits::RolloutError;
pub use reason::{Blocker, Hold, Reason, Scope, Spent, Wait};
pub use round::{Round, VersionState, round};
pub use status::{ClusterStatus, Group, GroupKey, Status};
pub use strategy::{Kind, MandatoryGroup, Strategy, Threshold};

/// Whose rules are followed where the two differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Compat {
    /// Ours, which keep the promises of this module.
    #[default]
    Bellwether,
    /// Those of Open Cluster Management's rollout library, to the letter:
    ///
    /// - A budget larger than the group tolerates no failure at all, instead of all of them.
    /// - Thresholds written as digits in quotes are refused.
    /// - A cluster that failed, and is tolerated, keeps its slot until its deadline, or without one until it
    ///   recovers.
    /// - A tolerated timeout lets the next group start while the one before still runs.
    /// - Clusters in flight are left out of the answer when others already fill it, and their
    ///   failures are not counted.
    /// - What has not started yet may still start although the budget is exceeded, if its name
    ///   sorts before the failure or it is in the same group.
    /// - A mandatory group whose clusters timed out earlier holds nothing back; a failure
    ///   elsewhere, even a tolerated one, holds everything back while there are mandatory groups.
    /// - A gap in the numbering of groups hides the groups behind it.
    Upstream,
}

/// What is allowed when a strategy does not say how many clusters may be in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UnsetConcurrency {
    /// All at once.
    #[default]
    All,
    /// One after the other.
    One,
}

/// Everything a decision looks at.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// How to roll out.
    pub strategy: &'a Strategy,
    /// The clusters that are to have it, in groups.
    pub groups: &'a [Group],
    /// What is known of clusters about the version being rolled out.
    pub existing: &'a [ClusterStatus],
    /// The present.
    pub now: Timestamp,
    /// What an absent `maxConcurrency` means.
    pub unset_concurrency: UnsetConcurrency,
    /// Whose rules to follow.
    pub compat: Compat,
    /// Why nothing new may start, whatever the strategy allows.
    pub hold: Option<Hold>,
}

impl<'a> Input<'a> {
    /// A question under the usual rules.
    pub fn new(
        strategy: &'a Strategy,
        groups: &'a [Group],
        existing: &'a [ClusterStatus],
        now: Timestamp,
    ) -> Self {
        Self {
            strategy,
            groups,
            existing,
            now,
            unset_concurrency: UnsetConcurrency::default(),
            compat: Compat::default(),
            hold: None,
        }
    }
}

/// Who goes next.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Decision {
    /// The clusters of this moment, in order: [`Status::ToApply`] may start now, all others are in
    /// flight, soak, or failed and may recover.
    pub rollout: Vec<ClusterStatus>,
    /// Those whose deadline has passed.
    pub timed_out: Vec<ClusterStatus>,
    /// Those that something is known of, but that are in no group any more.
    pub removed: Vec<ClusterStatus>,
    /// Whether more clusters failed than are tolerated.
    pub breached: bool,
    /// When to ask again even if nothing changes.
    pub recheck_after: Option<SignedDuration>,
    /// Why each cluster of every group is where it is, sorted by name.
    pub reasons: Vec<(Arc<str>, Reason)>,
}

impl Decision {
    /// The clusters that may start now, in order.
    pub fn starting(&self) -> impl Iterator<Item = &str> {
        let is_new = |entry: &&ClusterStatus| entry.status == Status::ToApply;
        self.rollout
            .iter()
            .filter(is_new)
            .map(|entry| &*entry.cluster)
    }

    /// Why a cluster is where it is.
    pub fn reason(&self, cluster: &str) -> Option<&Reason> {
        let found = self
            .reasons
            .binary_search_by(|(name, _)| (**name).cmp(cluster));
        found.ok().map(|index| &self.reasons[index].1)
    }
}

/// What a walk over the clusters gives: a decision in the making.
#[derive(Debug, Default)]
struct Walk {
    rollout: Vec<ClusterStatus>,
    timed_out: Vec<ClusterStatus>,
    breached: bool,
    /// What those that are not in the answer wait for.
    wait: Option<Wait>,
}

impl Walk {
    /// Starts nothing new. What is in flight stays in the answer.
    fn hold(&mut self, hold: Hold) {
        self.rollout.retain(|entry| entry.status != Status::ToApply);
        self.wait = Some(Wait::Held(hold));
    }
}

/// Decides who goes next.
pub fn decide(input: &Input<'_>) -> Result<Decision, RolloutError> {
    let limits = Limits::read(input)?;
    let fleet = Fleet::new(input);
    let mut walk = match input.compat {
        Compat::Bellwether => walk(&fleet, &limits, input.strategy)?,
        Compat::Upstream => upstream::walk(&fleet, &limits, input.strategy)?,
    };
    if let Some(hold) = input.hold {
        walk.hold(hold);
    }
    let reasons = reason::reasons(&fleet, &limits, &walk);
    let recheck_after = walk
        .rollout
        .iter()
        .filter_map(|entry| entry.recheck)
        .map(|recheck| recheck.duration_since(input.now))
        .filter(SignedDuration::is_positive)
        .min();
    Ok(Decision {
        rollout: walk.rollout,
        timed_out: walk.timed_out,
        removed: fleet.removed,
        breached: walk.breached,
        recheck_after,
        reasons,
    })
}

fn walk(fleet: &Fleet<'_>, limits: &Limits<'_>, strategy: &Strategy) -> Result<Walk, RolloutError> {
    let everything = fleet.clusters();
    if strategy.kind == Kind::All {
        return Ok(per_cluster::walk(
            fleet,
            limits,
            everything,
            per_cluster::Room::unlimited(),
        ));
    }
    let (mandatory, rest) = fleet.split(&strategy.mandatory_decision_groups);
    let others = fleet.clusters_of(&rest);
    let room = per_cluster::Room {
        size: limits.concurrency(others.len())?,
        tolerated: limits.failures(everything.len())?,
    };
    let budget = match strategy.kind {
        Kind::ProgressivePerGroup => per_group::breach(fleet, limits, &rest)?,
        _ => per_cluster::breach(fleet, limits, room.tolerated),
    };
    if !mandatory.is_empty() {
        let first = per_group::mandatory(fleet, limits, &mandatory, budget.clone());
        if let Some(first) = first {
            return Ok(first);
        }
    }
    match strategy.kind {
        Kind::ProgressivePerGroup => Ok(per_group::walk(fleet, limits, &rest, budget)),
        _ => Ok(per_cluster::walk(fleet, limits, &others, room)),
    }
}
