//! Changes of works, counted: what one report changes costs the same for any number of clusters.
//!
//! A plan walks over all clusters. A [`Tally`] keeps what a plan counted, and takes in what has changed on some
//! clusters since: the counts, and the names of those that fail. It gives up where only a plan can tell what
//! follows: a cluster that waits may start, or somebody else has changed a work.

mod placement;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bellwether_api::work::{ManifestWork, ManifestWorkReplicaSet};
use bellwether_placement::rollout::{Group, Hold, Input, Reason, decide};
use jiff::Timestamp;

use super::control::Control;
use super::flags::Flags;
use super::report::{ClusterReport, PlacementReport, Report, Stage, Step, step_of};
use super::summary::{self, Findings};
use super::wanted::Wanted;
use super::{Memo, Observed, Outlook, Plan, changed, owner_label, progress, retry};
use crate::Programs;
use placement::Tallied;

/// Works of some clusters of a replica set, which have changed since its last plan. Nothing besides has: not
/// the replica set but for its status, and not its placements.
pub struct ChangedWorks<'a> {
    /// The replica set.
    pub set: &'a ManifestWorkReplicaSet,
    /// The clusters; true if nothing but the status of their works has changed.
    pub clusters: &'a BTreeMap<Arc<str>, bool>,
    /// Returns the works of a cluster in the order of their names.
    pub works_of: &'a dyn Fn(&str) -> Vec<Arc<ManifestWork>>,
    /// The present.
    pub now: Timestamp,
}

impl std::fmt::Debug for ChangedWorks<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("ChangedWorks")
            .field("clusters", &self.clusters)
            .finish_non_exhaustive()
    }
}

/// What follows from changes of some works.
#[derive(Debug, PartialEq)]
pub struct Counted {
    /// What to do: at most the status is written.
    pub plan: Plan,
    /// The clusters that have taken a step: placement, cluster, step.
    pub steps: Vec<(String, Arc<str>, Step)>,
    /// The placements, each with those of its clusters that fail or have taken a step.
    pub placements: Vec<PlacementReport>,
    /// How far the replica set is as a whole.
    pub stage: Stage,
    /// How far it is, in one line.
    pub sentence: String,
}

/// Counts changes of works. `None` if only a plan can tell what follows from them: then one has to follow, as
/// it has if what was counted cannot be written.
pub fn count_changes(
    changes: &ChangedWorks<'_>,
    programs: &Programs,
    memo: &Memo,
) -> Option<Counted> {
    let (set, now) = (changes.set, changes.now);
    let mut tally = memo.take_tally()?;
    if !tally.is_about(set) || tally.wake_at.is_some_and(|time| time <= now) {
        return None;
    }
    let placements = BTreeMap::new();
    let observed = Observed {
        set,
        placements: &placements,
        works: &[],
        // Content that depends on the cluster is for plans.
        cluster: &|_| None,
        now,
    };
    let owner = owner_label(set);
    let names: Vec<String> = tally
        .placements
        .iter()
        .map(|one| one.name.clone())
        .collect();
    let wanted = names
        .iter()
        .map(|name| Wanted::new(&observed, programs, &owner, name));
    let content = Content {
        wanted: wanted.collect(),
        memo,
    };
    let mut moves = Vec::new();
    for (cluster, is_report) in changes.clusters {
        let works = (changes.works_of)(cluster);
        tally.update(cluster, *is_report, &works, &content, now, &mut moves)?;
    }
    let placements = tally.reports(changes, &moves)?;
    let findings = tally.findings(&placements);
    let plan = Plan {
        wake_at: tally.wake_at,
        ..Plan::default()
    };
    let stage = tally.stage(&placements);
    let mut both = tally.placements.iter().zip(&placements);
    if both.any(|(one, report)| one.may_start(report.breached || tally.hold.is_some())) {
        return None;
    }
    let of_move = |one: &Move| {
        let placement = tally.placements[one.placement].name.clone();
        (placement, Arc::clone(&one.cluster), step_of(&one.reason))
    };
    let counted = Counted {
        plan: changed(set, summary::of(set, &findings, now), plan),
        steps: moves.iter().map(of_move).collect(),
        stage,
        placements,
        sentence: findings.progress,
    };
    memo.set_tally(Some(tally));
    Some(counted)
}

/// What clusters should have.
struct Content<'a> {
    /// By the index of the placement.
    wanted: Vec<Wanted<'a>>,
    memo: &'a Memo,
}

/// A cluster that has taken a step.
struct Move {
    placement: usize,
    group: usize,
    cluster: Arc<str>,
    reason: Reason,
    since: Option<Timestamp>,
}

/// The counts of a replica set.
#[derive(Debug)]
pub(super) struct Tally {
    of: Identity,
    placements: Vec<Tallied>,
    clusters: HashMap<Arc<str>, Contribution>,
    notes: Vec<String>,
    hold: Option<Hold>,
    retried_at: Option<Timestamp>,
    wake_at: Option<Timestamp>,
}

/// What of a replica set decides about its works.
#[derive(Debug, PartialEq)]
struct Identity {
    uid: Option<String>,
    generation: Option<i64>,
    metadata: String,
}

/// What a cluster adds to the counts.
#[derive(Debug, Clone, Copy)]
struct Contribution {
    placement: usize,
    group: usize,
    /// How far it is with the present template; nothing if it does not have it.
    known: Option<ClusterProgress>,
}

/// How far a cluster is that has the present template.
#[derive(Debug, Clone, Copy)]
struct ClusterProgress {
    flags: Flags,
    is_succeeded: bool,
    step: Step,
}

impl Identity {
    fn of(set: &ManifestWorkReplicaSet) -> Self {
        let metadata = &set.metadata;
        Self {
            uid: metadata.uid.clone(),
            generation: metadata.generation,
            metadata: format!(
                "{:?} {:?} {:?} {:?}",
                metadata.labels,
                metadata.annotations,
                metadata.finalizers,
                metadata.deletion_timestamp
            ),
        }
    }
}

impl Tally {
    /// The counts after a plan; `None` if changes of works can have consequences that are not counted.
    pub(super) fn of(
        set: &ManifestWorkReplicaSet,
        outlook: &Outlook<'_>,
        report: &Report,
        control: &Control,
        plan: &Plan,
    ) -> Option<Self> {
        let is_at_rest = plan.write.is_empty()
            && plan.delete.is_empty()
            && outlook.missing.is_empty()
            && report.problems.is_empty();
        if !is_at_rest {
            return None;
        }
        let mut clusters = HashMap::new();
        let placed = outlook.placed.iter().enumerate();
        let placements = placed.map(|(index, placed)| {
            let of_placement = report.placements.get(index)?;
            let has_works =
                |it: &ClusterReport| it.works.is_empty() == (it.step() == Step::Waiting);
            let is_counted = placed.impossible.is_empty()
                && placed.decision.removed.is_empty()
                && of_placement.clusters().all(has_works);
            if !is_counted {
                return None;
            }
            Tallied::of(index, placed, of_placement, &mut clusters)
        });
        Some(Self {
            of: Identity::of(set),
            placements: placements.collect::<Option<_>>()?,
            clusters,
            notes: report.notes.clone(),
            hold: control.hold,
            retried_at: control.retried_at,
            wake_at: plan.wake_at,
        })
    }

    fn is_about(&self, set: &ManifestWorkReplicaSet) -> bool {
        self.of == Identity::of(set)
    }

    /// Counts the works of a cluster as they are now, and adds the step that it has taken, if it has.
    /// `None` if that is not all that follows.
    fn update(
        &mut self,
        cluster: &Arc<str>,
        is_report: bool,
        works: &[Arc<ManifestWork>],
        content: &Content<'_>,
        now: Timestamp,
        moves: &mut Vec<Move>,
    ) -> Option<()> {
        let contribution = self.clusters.get_mut(cluster)?;
        let index = contribution.placement;
        let placed = self.placements.get_mut(index)?;
        let works: Vec<&Arc<ManifestWork>> = works.iter().collect();
        let is_current = match contribution.known {
            Some(_) if is_report => true,
            Some(_) => content.wanted[index].is_written(&works, content.memo)?,
            // What it says of an older template does not count.
            None => return is_report.then_some(()),
        };
        if !is_current {
            return None;
        }
        let group = placed.groups.get(contribution.group)?;
        let status = progress::of_cluster(cluster, group, &works);
        let (status, wake_at) = retry::restart(status, &works, now);
        let is_succeeded = progress::is_done(&status);
        let groups = [Group {
            key: group.clone(),
            clusters: vec![Arc::clone(cluster)],
        }];
        let existing = [status];
        let decision = decide(&Input::new(&placed.strategy, &groups, &existing, now)).ok()?;
        let reason = decision.reason(cluster)?;
        let step = step_of(reason);
        let [status] = existing;
        let since = status.last_transition;
        let is_retried = |time| since.is_some_and(|since| since < time);
        if step == Step::Failing && self.retried_at.is_some_and(is_retried) {
            // It is tried again: that is recorded on its works.
            return None;
        }
        let place = (contribution.group, Arc::clone(cluster));
        match step {
            Step::Waiting => return None,
            Step::Failing => placed.failing.insert(place, status),
            _ => placed.failing.remove(&place),
        };
        let recheck = decision.recheck_after;
        let recheck = recheck.and_then(|wait| now.checked_add(wait).ok());
        self.wake_at = [self.wake_at, wake_at, recheck].into_iter().flatten().min();
        let known = ClusterProgress {
            flags: Flags::of(&works.iter().map(|work| &***work)),
            is_succeeded,
            step,
        };
        let before = contribution.known.replace(known);
        placed.replace(before, known);
        if before.map(|it| it.step) != Some(step) {
            moves.push(Move {
                placement: index,
                group: contribution.group,
                cluster: Arc::clone(cluster),
                reason: reason.clone(),
                since,
            });
        }
        Some(())
    }

    /// The placements with the clusters that fail, and those that have taken a step.
    fn reports(&self, changes: &ChangedWorks<'_>, moves: &[Move]) -> Option<Vec<PlacementReport>> {
        let placements = self.placements.iter().enumerate();
        placements
            .map(|(index, one)| {
                let moves = moves.iter().filter(|it| it.placement == index);
                one.report(changes, moves)
            })
            .collect()
    }

    fn findings(&self, reports: &[PlacementReport]) -> Findings {
        let hold = match self.stage(reports) {
            Stage::Held(hold) => Some(hold.to_string()),
            _ => None,
        };
        let both = self.placements.iter().zip(reports);
        let sentences = both.map(|(one, report)| {
            let sentence = report.sentence_with(one.done, one.total);
            format!("{}: {sentence}", one.name)
        });
        let parts: Vec<String> = hold.into_iter().chain(sentences).collect();
        Findings {
            placements: self.placements.iter().map(Tallied::figures).collect(),
            missing: Vec::new(),
            wrong: None,
            problems: String::new(),
            progress: parts.join("; "),
            notes: self.notes.clone(),
        }
    }

    fn stage(&self, reports: &[PlacementReport]) -> Stage {
        let total: usize = self.placements.iter().map(|one| one.total).sum();
        let done: usize = self.placements.iter().map(|one| one.done).sum();
        match (total, self.hold) {
            (total, _) if total > 0 && total == done => Stage::Complete,
            (_, Some(hold)) => Stage::Held(hold),
            _ if reports.iter().any(|report| report.breached) => Stage::Stopped,
            (0, _) => Stage::Empty,
            _ => Stage::RollingOut,
        }
    }
}
