//! Why each cluster is where it is, in words.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use bellwether_json::time::format_time;
use jiff::Timestamp;

use super::Walk;
use super::fleet::Fleet;
use super::limits::{Limits, Step};
use super::status::{ClusterStatus, GroupKey, Status};

/// Why a cluster is where it is. Prints as a phrase to follow the cluster's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// It may start.
    Starts,
    /// It is on its way.
    Progresses {
        /// When it will have taken too long.
        deadline: Option<Timestamp>,
    },
    /// It is well, but not for long enough.
    Soaks {
        /// When it is long enough.
        until: Timestamp,
    },
    /// It is done.
    Done,
    /// It failed.
    Failed {
        /// Until when it may recover.
        deadline: Option<Timestamp>,
    },
    /// It took too long.
    TimedOut,
    /// It is passed over.
    Skipped,
    /// It has not started, because of something else.
    Waits(Arc<Wait>),
    /// It has not started, and nothing is in its way: ask again.
    Queued,
}

/// What clusters wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wait {
    /// Nothing starts any more: more clusters failed than tolerated.
    Budget {
        /// Whose budget.
        scope: Scope,
        /// How many failed.
        failures: usize,
        /// How many might have.
        tolerated: usize,
    },
    /// As many as allowed are in flight.
    Slots {
        /// How many are.
        taken: usize,
        /// How many may be.
        size: usize,
        /// The one that probably makes room first.
        blocker: Blocker,
    },
    /// A group goes first.
    Group {
        /// Which one.
        group: GroupKey,
        /// A cluster that keeps it from being done.
        blocker: Blocker,
    },
}

/// Whose failures are counted together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// Those of all clusters.
    Rollout,
    /// Those of a group.
    Group(GroupKey),
}

/// A cluster that others wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocker {
    /// Which one.
    pub cluster: Arc<str>,
    /// How far it is.
    pub status: Status,
    /// When its soak is over or its deadline reached.
    pub until: Option<Timestamp>,
}

impl Blocker {
    /// The one that is bound to make room first: a soak before a deadline before no time at all.
    pub(super) fn soonest(rollout: &[ClusterStatus]) -> Option<Self> {
        let rank = |status: Status| match status {
            Status::Succeeded => 0,
            Status::Progressing => 1,
            Status::ToApply => 2,
            Status::Failed | Status::TimeOut | Status::Skip => 3,
        };
        let order = |entry: &&ClusterStatus| {
            let recheck = entry.recheck.unwrap_or(Timestamp::MAX);
            (rank(entry.status), recheck)
        };
        rollout.iter().min_by_key(order).map(|entry| Self {
            cluster: entry.cluster.clone(),
            status: entry.status,
            until: entry.recheck,
        })
    }
}

/// The reasons of all clusters, sorted by name.
pub(super) fn reasons(
    fleet: &Fleet<'_>,
    limits: &Limits<'_>,
    walk: &Walk,
) -> Vec<(Arc<str>, Reason)> {
    let wait = match &walk.wait {
        Some(wait) => Reason::Waits(Arc::new(wait.clone())),
        None => Reason::Queued,
    };
    let is_new = |entry: &&ClusterStatus| entry.status == Status::ToApply;
    let starting: HashSet<&str> = walk
        .rollout
        .iter()
        .filter(is_new)
        .map(|entry| &*entry.cluster)
        .collect();
    let reason = |cluster: &Arc<str>| match fleet.known(cluster) {
        Some(known) if known.status != Status::ToApply => settled(limits, known),
        _ if starting.contains(&**cluster) => Reason::Starts,
        _ => wait.clone(),
    };
    fleet
        .clusters()
        .into_iter()
        .map(|cluster| (cluster.clone(), reason(cluster)))
        .collect()
}

fn settled(limits: &Limits<'_>, known: &ClusterStatus) -> Reason {
    let (status, recheck) = match limits.step(known) {
        Step::Rollout(entry) => (entry.status, entry.recheck),
        Step::TimedOut(_) => (Status::TimeOut, None),
        Step::Settled => (known.status, None),
    };
    match (status, recheck) {
        (Status::Succeeded, Some(until)) => Reason::Soaks { until },
        (Status::Succeeded, None) => Reason::Done,
        (Status::Progressing, deadline) => Reason::Progresses { deadline },
        (Status::Failed, deadline) => Reason::Failed { deadline },
        (Status::TimeOut, _) => Reason::TimedOut,
        (Status::Skip, _) => Reason::Skipped,
        (Status::ToApply, _) => Reason::Queued,
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Starts => formatter.write_str("starts now"),
            Self::Progresses { deadline: None } => formatter.write_str("is in progress"),
            Self::Progresses {
                deadline: Some(deadline),
            } => write!(
                formatter,
                "is in progress until {} at most",
                format_time(*deadline)
            ),
            Self::Soaks { until } => {
                write!(
                    formatter,
                    "succeeded and soaks until {}",
                    format_time(*until)
                )
            }
            Self::Done => formatter.write_str("is done"),
            Self::Failed { deadline: None } => formatter.write_str("failed"),
            Self::Failed {
                deadline: Some(deadline),
            } => write!(
                formatter,
                "failed, and may recover until {}",
                format_time(*deadline)
            ),
            Self::TimedOut => formatter.write_str("timed out"),
            Self::Skipped => formatter.write_str("is skipped"),
            Self::Waits(wait) => wait.fmt(formatter),
            Self::Queued => formatter.write_str("is next"),
        }
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Budget {
                scope,
                failures,
                tolerated,
            } => write!(
                formatter,
                "does not start: {scope} has {failures} {}, {tolerated} tolerated",
                if *failures == 1 {
                    "failure"
                } else {
                    "failures"
                }
            ),
            Self::Slots {
                taken,
                size,
                blocker,
            } => write!(
                formatter,
                "waits for a slot: {taken} of {size} taken, {blocker}"
            ),
            Self::Group { group, blocker } => write!(formatter, "waits for {group}: {blocker}"),
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rollout => formatter.write_str("the rollout"),
            Self::Group(group) => group.fmt(formatter),
        }
    }
}

impl fmt::Display for Blocker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            cluster,
            status,
            until,
        } = self;
        let what = match status {
            Status::Succeeded => "soaks",
            Status::ToApply => "starts now",
            Status::Progressing => "is in progress",
            Status::Failed => "failed",
            Status::TimeOut => "timed out",
            Status::Skip => "is skipped",
        };
        write!(formatter, "{cluster} {what}")?;
        match (status, until) {
            (_, None) => Ok(()),
            (Status::Succeeded, Some(until)) => write!(formatter, " until {}", format_time(*until)),
            (_, Some(until)) => write!(formatter, " until {} at most", format_time(*until)),
        }
    }
}
