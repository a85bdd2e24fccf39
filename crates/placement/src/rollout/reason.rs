//! Why each cluster is where it is, in words.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use bellwether_json::time::format_time;
use jiff::Timestamp;

use super::Walk;
use super::fleet::Fleet;
use super::limits::{Limits, Step};
use super::status::{ClusterStatus, GroupKey, Status};
use super::strategy::Kind;

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
        /// What that took of what is tolerated; none if nothing is counted.
        spent: Option<Arc<Spent>>,
    },
    /// It took too long.
    TimedOut {
        /// What that took of what is tolerated; none if nothing is counted.
        spent: Option<Arc<Spent>>,
    },
    /// It is passed over.
    Skipped,
    /// It has not started, because of something else.
    Waits(Arc<Wait>),
    /// It has not started, and nothing is in its way: ask again.
    Queued,
}

/// Why nothing new starts although the strategy would allow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hold {
    /// Until the rollout is resumed.
    Paused,
    /// Until the content that is rolled out changes.
    Aborted,
    /// Until all decisions of the placement are there. Nobody decided so.
    Unsettled,
}

impl fmt::Display for Hold {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Paused => "the rollout is paused",
            Self::Aborted => "the rollout is aborted",
            Self::Unsettled => "the placement has not written all of its decisions",
        })
    }
}

/// What clusters wait for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wait {
    /// Nothing starts for now: a person decided so, or the placement is not ready.
    Held(Hold),
    /// Nothing starts any more: more clusters failed than tolerated.
    Budget(Spent),
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

/// How many clusters failed, and how many might have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spent {
    /// Whose budget.
    pub scope: Scope,
    /// How many failed.
    pub failures: usize,
    /// How many might have.
    pub tolerated: usize,
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

impl Blocker {
    /// What others wait for if it is well, but not for long enough.
    fn soak(&self) -> Option<String> {
        let until = self.until.filter(|_| self.status == Status::Succeeded)?;
        Some(format!(
            "soak of {} until {}",
            self.cluster,
            format_time(until)
        ))
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
    let budgets = Budgets::of(fleet, limits);
    let reason = |cluster: &Arc<str>| match fleet.known(cluster) {
        Some(known) if known.status != Status::ToApply => settled(fleet, limits, &budgets, known),
        _ if starting.contains(&**cluster) => Reason::Starts,
        _ => wait.clone(),
    };
    fleet
        .clusters()
        .iter()
        .map(|cluster| (Arc::clone(cluster), reason(cluster)))
        .collect()
}

/// What is spent of every budget that anything is spent of.
struct Budgets<'a> {
    rollout: Option<Arc<Spent>>,
    groups: HashMap<&'a GroupKey, Arc<Spent>>,
}

impl<'a> Budgets<'a> {
    fn of(fleet: &Fleet<'a>, limits: &Limits<'_>) -> Self {
        let mut budgets = Self {
            rollout: None,
            groups: HashMap::new(),
        };
        let is_failure = |known: &&&ClusterStatus| limits.settled_status(known).is_failure();
        let failed: Vec<_> = fleet.current.iter().filter(is_failure).collect();
        if failed.is_empty() || limits.kind() == Kind::All {
            return budgets;
        }
        let mut counts: HashMap<&GroupKey, usize> = HashMap::new();
        for group in failed.iter().filter_map(|it| fleet.group_of(&it.cluster)) {
            *counts.entry(group).or_default() += 1;
        }
        let (mandatory, rest) = fleet.split(limits.mandatory());
        let by_group = limits.kind() == Kind::ProgressivePerGroup;
        for (group, is_mandatory) in rest
            .iter()
            .map(|group| (group, false))
            .chain(mandatory.iter().map(|group| (group, true)))
            .filter(|(_, is_mandatory)| by_group || *is_mandatory)
        {
            // The numbers have been read before: none is wrong.
            let tolerated = limits.failures(group.clusters.len()).unwrap_or(0);
            let Some(failures) = counts.get(&group.key).copied() else {
                continue;
            };
            let spent = Spent {
                scope: Scope::Group(group.key.clone()),
                failures,
                tolerated: if is_mandatory { 0 } else { tolerated },
            };
            budgets.groups.insert(&group.key, Arc::new(spent));
        }
        if !by_group {
            budgets.rollout = Some(Arc::new(Spent {
                scope: Scope::Rollout,
                failures: failed.len(),
                tolerated: limits.failures(fleet.clusters().len()).unwrap_or(0),
            }));
        }
        budgets
    }

    fn spent_by(&self, group: Option<&GroupKey>) -> Option<Arc<Spent>> {
        let of_group = group.and_then(|group| self.groups.get(group));
        of_group.or(self.rollout.as_ref()).cloned()
    }
}

fn settled(
    fleet: &Fleet<'_>,
    limits: &Limits<'_>,
    budgets: &Budgets<'_>,
    known: &ClusterStatus,
) -> Reason {
    let spent = || budgets.spent_by(fleet.group_of(&known.cluster));
    let (status, recheck) = match limits.step(known) {
        Step::Rollout(entry) => (entry.status, entry.recheck),
        Step::TimedOut(_) => (Status::TimeOut, None),
        Step::Settled => (known.status, None),
    };
    match (status, recheck) {
        (Status::Succeeded, Some(until)) => Reason::Soaks { until },
        (Status::Succeeded, None) => Reason::Done,
        (Status::Progressing, deadline) => Reason::Progresses { deadline },
        (Status::Failed, deadline) => Reason::Failed {
            deadline,
            spent: spent(),
        },
        (Status::TimeOut, _) => Reason::TimedOut { spent: spent() },
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
            Self::Failed { deadline, spent } => {
                formatter.write_str("failed")?;
                if let Some(deadline) = deadline {
                    write!(
                        formatter,
                        ", and may recover until {}",
                        format_time(*deadline)
                    )?;
                }
                write_spent(formatter, spent.as_deref())
            }
            Self::TimedOut { spent } => {
                formatter.write_str("timed out")?;
                write_spent(formatter, spent.as_deref())
            }
            Self::Skipped => formatter.write_str("is skipped"),
            Self::Waits(wait) => wait.fmt(formatter),
            Self::Queued => formatter.write_str("is next"),
        }
    }
}

/// What a failure took of what is tolerated, behind the failure.
fn write_spent(formatter: &mut fmt::Formatter<'_>, spent: Option<&Spent>) -> fmt::Result {
    match spent {
        Some(spent) => write!(formatter, ": {spent}"),
        None => Ok(()),
    }
}

impl fmt::Display for Spent {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            scope,
            failures,
            tolerated,
        } = self;
        if failures <= tolerated {
            return write!(
                formatter,
                "{scope} has {failures} of {tolerated} tolerated failures"
            );
        }
        let noun = if *failures == 1 {
            "failure"
        } else {
            "failures"
        };
        write!(
            formatter,
            "{scope} has {failures} {noun}, {tolerated} tolerated"
        )
    }
}

impl fmt::Display for Wait {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Held(hold) => write!(formatter, "does not start: {hold}"),
            Self::Budget(spent) => write!(formatter, "does not start: {spent}"),
            Self::Slots {
                taken,
                size,
                blocker,
            } => match blocker.soak() {
                Some(soak) => write!(formatter, "waits for {soak}: {taken} of {size} slots taken"),
                None => write!(
                    formatter,
                    "waits for a slot: {taken} of {size} taken, {blocker}"
                ),
            },
            Self::Group { group, blocker } => match blocker.soak() {
                Some(soak) => write!(formatter, "waits for {soak}: {group} goes first"),
                None => write!(formatter, "waits for {group}: {blocker}"),
            },
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
