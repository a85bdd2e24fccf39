//! How far a replica set is, cluster by cluster, for people: what `status`, `why`, conditions and
//! events are made of.

use std::collections::HashMap;
use std::sync::Arc;

use bellwether_api::work::ManifestWork;
use bellwether_placement::rollout::{GroupKey, Hold, Reason, Spent, Strategy, Wait};
use jiff::Timestamp;

use super::control::Control;
use super::{Outlook, Placed, progress};
use crate::cause::{self, Cause};

/// How many failing clusters a sentence names.
const MOST_NAMED: usize = 3;

/// How far a replica set is.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Its placements, in the order in which it names them.
    pub placements: Vec<PlacementReport>,
    /// Placements that it names and that do not exist.
    pub missing: Vec<String>,
    /// Why a placement cannot be rolled out to.
    pub problems: Vec<String>,
    /// What to know besides: clusters that belong to another placement.
    pub notes: Vec<String>,
    /// What people have asked of the rollout.
    pub control: Control,
    /// When the first cluster got the present template.
    pub started: Option<Timestamp>,
}

/// How far a replica set is with the clusters of one placement.
#[derive(Debug, Clone, PartialEq)]
pub struct PlacementReport {
    /// The name of the placement.
    pub name: String,
    /// How to roll out.
    pub strategy: Strategy,
    /// How many clusters the placement says that it selects.
    pub selected: i64,
    /// Whether more clusters failed than are tolerated.
    pub breached: bool,
    /// Its decision groups, in order.
    pub groups: Vec<GroupReport>,
}

/// How far the clusters of a decision group are.
#[derive(Debug, Clone, PartialEq)]
pub struct GroupReport {
    /// Which group.
    pub key: GroupKey,
    /// Its clusters, in order.
    pub clusters: Vec<ClusterReport>,
}

/// How far a cluster is.
#[derive(Debug, Clone, PartialEq)]
pub struct ClusterReport {
    /// Its name.
    pub name: Arc<str>,
    /// Why it is where it is.
    pub reason: Reason,
    /// Since when it is in progress, failing or done.
    pub since: Option<Timestamp>,
    /// Its works, if they have the present template.
    pub works: Vec<Arc<ManifestWork>>,
    /// Why it cannot have the works at all.
    pub problem: Option<String>,
}

/// How far a cluster is, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// It has not started.
    Waiting,
    /// It has the present template, and is not there yet.
    InProgress,
    /// It is there, and is observed.
    Soaking,
    /// It failed or timed out.
    Failing,
    /// It is done, or passed over.
    Done,
}

/// How far a replica set is as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Its placements select no cluster.
    Empty,
    /// Clusters start and get there.
    RollingOut,
    /// Nothing starts: a person decided so.
    Held(Hold),
    /// Nothing starts: more clusters failed than are tolerated.
    Stopped,
    /// All clusters are done.
    Complete,
}

/// How many clusters are how far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// All of them.
    pub total: usize,
    /// Those that are done.
    pub done: usize,
    /// Those that are observed.
    pub soaking: usize,
    /// Those that are in progress.
    pub in_progress: usize,
    /// Those that failed or timed out.
    pub failing: usize,
    /// Those that have not started.
    pub waiting: usize,
}

impl ClusterReport {
    /// How far it is, in one word.
    pub fn step(&self) -> Step {
        step_of(&self.reason)
    }

    /// What its member reports of objects that are not as they should be.
    pub fn causes(&self) -> Vec<Cause> {
        let causes = self.works.iter().flat_map(|work| cause::of_work(work));
        causes.collect()
    }

    /// Why it is not there, in one line.
    pub fn cause(&self) -> Option<String> {
        if let Some(problem) = &self.problem {
            return Some(problem.clone());
        }
        let causes: Vec<String> = self.causes().iter().map(ToString::to_string).collect();
        (!causes.is_empty()).then(|| causes.join("; "))
    }

    /// That it failed, and why.
    pub fn failure(&self) -> String {
        let what = match self.reason {
            Reason::TimedOut { .. } => "timed out",
            _ => "failed",
        };
        match self.cause() {
            Some(cause) => format!("{} {what}: {cause}", self.name),
            None => format!("{} {what}", self.name),
        }
    }
}

/// How far a cluster is, by the reason why it is there.
pub(super) fn step_of(reason: &Reason) -> Step {
    match reason {
        Reason::Starts | Reason::Waits(_) | Reason::Queued => Step::Waiting,
        Reason::Progresses { .. } => Step::InProgress,
        Reason::Soaks { .. } => Step::Soaking,
        Reason::Failed { .. } | Reason::TimedOut { .. } => Step::Failing,
        Reason::Done | Reason::Skipped => Step::Done,
    }
}

impl PlacementReport {
    /// All clusters, group by group.
    pub fn clusters(&self) -> impl Iterator<Item = &ClusterReport> {
        self.groups.iter().flat_map(|group| &group.clusters)
    }

    /// The clusters that failed or timed out.
    pub fn failing(&self) -> impl Iterator<Item = &ClusterReport> {
        self.clusters().filter(|it| it.step() == Step::Failing)
    }

    /// How many clusters are how far.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for cluster in self.clusters() {
            counts.total += 1;
            *match cluster.step() {
                Step::Waiting => &mut counts.waiting,
                Step::InProgress => &mut counts.in_progress,
                Step::Soaking => &mut counts.soaking,
                Step::Failing => &mut counts.failing,
                Step::Done => &mut counts.done,
            } += 1;
        }
        counts
    }

    /// The budget of failures that is exceeded, if one is.
    pub fn exceeded(&self) -> Option<&Spent> {
        self.clusters().find_map(|cluster| match &cluster.reason {
            // A group within its budget may come before the one that exceeded its own.
            Reason::Failed {
                spent: Some(spent), ..
            }
            | Reason::TimedOut { spent: Some(spent) }
                if spent.failures > spent.tolerated =>
            {
                Some(&**spent)
            }
            Reason::Waits(wait) => match &**wait {
                Wait::Budget(spent) => Some(spent),
                _ => None,
            },
            _ => None,
        })
    }

    /// How far it is, in one line.
    pub fn sentence(&self) -> String {
        let counts = self.counts();
        self.sentence_with(counts.done, counts.total)
    }

    /// The same for a report that has only the clusters that fail.
    pub(super) fn sentence_with(&self, done: usize, total: usize) -> String {
        let mut text = format!("{done} of {total} clusters are done");
        if self.breached
            && let Some(spent) = self.exceeded()
        {
            text = format!("stopped, {spent}; {text}");
        }
        let failing: Vec<&ClusterReport> = self.failing().collect();
        for cluster in failing.iter().take(MOST_NAMED) {
            text = format!("{text}; {}", cluster.failure());
        }
        match failing.len().saturating_sub(MOST_NAMED) {
            0 => text,
            more => format!("{text}; and {more} more"),
        }
    }
}

impl Report {
    /// How many clusters of all placements are how far.
    pub fn counts(&self) -> Counts {
        let mut sum = Counts::default();
        for one in self.placements.iter().map(PlacementReport::counts) {
            sum.total += one.total;
            sum.done += one.done;
            sum.soaking += one.soaking;
            sum.in_progress += one.in_progress;
            sum.failing += one.failing;
            sum.waiting += one.waiting;
        }
        sum
    }

    /// How far it is as a whole.
    pub fn stage(&self) -> Stage {
        let counts = self.counts();
        let is_known = self.missing.is_empty() && self.problems.is_empty();
        if counts.total > 0 && counts.done == counts.total && is_known {
            Stage::Complete
        } else if let Some(hold) = self.control.hold {
            Stage::Held(hold)
        } else if self.placements.iter().any(|one| one.breached) {
            Stage::Stopped
        } else if counts.total == 0 {
            Stage::Empty
        } else {
            Stage::RollingOut
        }
    }

    /// The first report of a cluster, with the placement that it belongs to.
    pub fn cluster(&self, name: &str) -> Option<(&PlacementReport, &ClusterReport)> {
        self.placements.iter().find_map(|placement| {
            let mut clusters = placement.clusters();
            let found = clusters.find(|cluster| &*cluster.name == name)?;
            Some((placement, found))
        })
    }
}

pub(super) fn of(outlook: &Outlook<'_>, control: &Control) -> Report {
    let current = outlook.placed.iter().flat_map(|one| one.current.values());
    let written = current
        .flatten()
        .filter_map(|work| progress::written_at(work));
    let mut problems: Vec<String> = outlook.wrong.iter().cloned().collect();
    problems.extend(control.problem.clone());
    Report {
        placements: outlook.placed.iter().map(of_placement).collect(),
        missing: outlook.missing.iter().map(|&name| name.into()).collect(),
        problems,
        notes: ceded(outlook),
        control: control.clone(),
        started: written.min(),
    }
}

fn of_placement(placed: &Placed<'_>) -> PlacementReport {
    let since: HashMap<&str, Option<Timestamp>> = placed
        .statuses
        .iter()
        .map(|known| (&*known.cluster, known.last_transition))
        .collect();
    let cluster = |name: &Arc<str>| {
        let reason = placed.decision.reason(name);
        let works = placed.current.get(&**name);
        let works = works.map_or(&[][..], Vec::as_slice).iter();
        ClusterReport {
            name: Arc::clone(name),
            reason: reason.cloned().unwrap_or(Reason::Queued),
            since: since.get(&**name).copied().flatten(),
            works: works.map(|work| Arc::clone(work)).collect(),
            problem: placed.impossible.get(name).cloned(),
        }
    };
    let groups = placed.groups.iter().map(|group| {
        let mut names: Vec<&Arc<str>> = group.clusters.iter().collect();
        names.sort_unstable();
        GroupReport {
            key: group.key.clone(),
            clusters: names.into_iter().map(cluster).collect(),
        }
    });
    PlacementReport {
        name: placed.name.to_owned(),
        strategy: placed.strategy.clone(),
        selected: placed.selected,
        breached: placed.decision.breached,
        groups: groups.collect(),
    }
}

/// Which placements have chosen clusters that belong to others.
fn ceded(outlook: &Outlook<'_>) -> Vec<String> {
    let of_placement = |placed: &Placed<'_>| {
        let first = placed.ceded.first()?;
        let (cluster, owner) = (first.cluster, first.owner);
        Some(match placed.ceded.len() {
            1 => format!(
                "{}: the cluster {cluster} belongs to the placement {owner}, which is named before",
                placed.name
            ),
            count => format!(
                "{}: {count} clusters belong to placements that are named before, such as {cluster} to {owner}",
                placed.name
            ),
        })
    };
    outlook.placed.iter().filter_map(of_placement).collect()
}
