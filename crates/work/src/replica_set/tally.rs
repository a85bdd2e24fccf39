//! Reports of works, counted: what one report changes costs the same however many clusters there are.
//!
//! A plan walks over all clusters. That is needed where somebody may start or is observed. It is not where
//! every cluster has the present template, which is so most of the time: a report then changes some counts,
//! and the names of those that fail. A [`Tally`] keeps these from one plan to the next, and gives up where only
//! a plan can tell what follows.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use bellwether_api::work::names::condition;
use bellwether_api::work::{ManifestWork, ManifestWorkReplicaSet, WorkSummary};
use bellwether_placement::rollout::{
    ClusterStatus, Decision, Group, GroupKey, Input, Reason, Strategy, decide,
};
use jiff::Timestamp;

use super::control::Control;
use super::report::{ClusterReport, GroupReport, PlacementReport, Report, Stage, Step, step_of};
use super::summary::{self, Findings, PlacementFigures};
use super::{Memo, Outlook, Placed, Plan, changed, progress, retry};
use crate::lifecycle::is_true;
use crate::status::rollout_view;

/// What follows from reports of some works.
#[derive(Debug, PartialEq)]
pub struct Counted {
    /// What to do: at most the status is written.
    pub plan: Plan,
    /// The clusters that have taken a step: placement, cluster, step.
    pub steps: Vec<(String, Arc<str>, Step)>,
    /// The placements, each with those of its clusters that fail.
    pub placements: Vec<PlacementReport>,
    /// How far the replica set is as a whole.
    pub stage: Stage,
    /// How far it is, in one line.
    pub sentence: String,
}

/// Counts the reports of the works of some clusters. `None` if only a plan can tell what follows from them.
///
/// `works_of` returns the works of a cluster in the order of their names. Nothing else may have changed since
/// the last plan with this memo: not the replica set but for its status, not its placements, and not the
/// content, labels or annotations of works.
pub fn count_reports(
    set: &ManifestWorkReplicaSet,
    clusters: &[Arc<str>],
    works_of: impl Fn(&str) -> Vec<Arc<ManifestWork>>,
    now: Timestamp,
    memo: &Memo,
) -> Option<Counted> {
    let mut tally = memo.take_tally()?;
    if !tally.is_about(set) || tally.wake_at.is_some_and(|time| time <= now) {
        return None;
    }
    let mut steps = Vec::new();
    for cluster in clusters {
        tally.update(cluster, &works_of(cluster), now, &mut steps)?;
    }
    let placements = tally.reports(&works_of, now)?;
    let findings = tally.findings(&placements);
    let plan = Plan {
        wake_at: tally.wake_at,
        ..Plan::default()
    };
    let counted = Counted {
        plan: changed(set, summary::of(set, &findings, now), plan),
        steps,
        stage: tally.stage(&placements),
        placements,
        sentence: findings.progress,
    };
    memo.set_tally(Some(tally));
    Some(counted)
}

/// The counts of a replica set.
#[derive(Debug)]
pub(super) struct Tally {
    of: Identity,
    placements: Vec<Tallied>,
    clusters: HashMap<Arc<str>, Contribution>,
    notes: Vec<String>,
    wake_at: Option<Timestamp>,
}

/// What of a replica set decides about its works.
#[derive(Debug, PartialEq)]
struct Identity {
    uid: Option<String>,
    generation: Option<i64>,
    metadata: String,
}

/// The counts of one placement.
#[derive(Debug)]
struct Tallied {
    name: String,
    strategy: Strategy,
    groups: Vec<GroupKey>,
    selected: i64,
    summary: WorkSummary,
    succeeded: usize,
    done: usize,
    total: usize,
    /// Decides about failures alone; `None` if they cannot be counted apart from the others.
    of_failures: Option<Strategy>,
    /// The clusters that fail, in the order of reports.
    failing: BTreeMap<(usize, Arc<str>), ClusterStatus>,
}

/// What a cluster adds to the counts.
#[derive(Debug, Clone, Copy)]
struct Contribution {
    placement: usize,
    group: usize,
    flags: Flags,
    is_succeeded: bool,
    step: Step,
}

/// What the works of a cluster say of themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(clippy::struct_excessive_bools, reason = "one for each condition")]
pub(super) struct Flags {
    applied: bool,
    available: bool,
    progressing: bool,
    degraded: bool,
}

impl Flags {
    pub(super) fn of<'a>(works: &(impl Iterator<Item = &'a ManifestWork> + Clone)) -> Self {
        let all = |name: &str| works.clone().all(|work| says(work, name));
        let any = |name: &str| {
            let mut works = works.clone();
            works.any(|work| rollout_view::is_any(work, name))
        };
        Self {
            applied: all(condition::APPLIED),
            available: all(condition::AVAILABLE),
            progressing: any(condition::PROGRESSING),
            degraded: any(condition::DEGRADED),
        }
    }

    /// Adds a cluster to a summary, or with -1 takes it out.
    pub(super) fn add_to(self, summary: &mut WorkSummary, sign: i64) {
        summary.total += sign;
        summary.updated += sign;
        summary.applied += sign * i64::from(self.applied);
        summary.available += sign * i64::from(self.available);
        summary.progressing += sign * i64::from(self.progressing);
        summary.degraded += sign * i64::from(self.degraded);
    }
}

fn says(work: &ManifestWork, name: &str) -> bool {
    let conditions = work
        .status
        .as_ref()
        .map_or(&[][..], |status| &status.conditions);
    is_true(conditions, name)
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
    /// The counts after a plan; `None` if reports can have other consequences than other counts.
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
            && report.problems.is_empty()
            && control.hold.is_none();
        if !is_at_rest {
            return None;
        }
        let mut clusters = HashMap::new();
        let placed = outlook.placed.iter().enumerate();
        let placements = placed.map(|(index, placed)| {
            let cluster_reports = report.placements.get(index)?;
            let mut steps = cluster_reports.clusters();
            let is_counted = placed.impossible.is_empty()
                && placed.decision.removed.is_empty()
                && steps.all(|cluster| can_count(cluster.step()) && !cluster.works.is_empty());
            if !is_counted {
                return None;
            }
            let mut tallied = Tallied::of(index, placed, cluster_reports, &mut clusters)?;
            // After a retry, a plan may have to write to works of clusters that fail.
            if control.retried_at.is_some() {
                tallied.of_failures = None;
            }
            tallied.counts_failures().then_some(tallied)
        });
        Some(Self {
            of: Identity::of(set),
            placements: placements.collect::<Option<_>>()?,
            clusters,
            notes: report.notes.clone(),
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
        works: &[Arc<ManifestWork>],
        now: Timestamp,
        steps: &mut Vec<(String, Arc<str>, Step)>,
    ) -> Option<()> {
        let known = self.clusters.get_mut(cluster)?;
        let placed = self.placements.get_mut(known.placement)?;
        let works: Vec<&Arc<ManifestWork>> = works.iter().collect();
        let group = placed.groups.get(known.group)?;
        let status = progress::of_cluster(cluster, group, &works);
        let (status, wake_at) = retry::restart(status, &works, now);
        let is_succeeded = progress::is_done(&status);
        let groups = [Group {
            key: group.clone(),
            clusters: vec![Arc::clone(cluster)],
        }];
        let existing = [status];
        let decision = decide(&Input::new(&placed.strategy, &groups, &existing, now)).ok()?;
        let step = step_of(decision.reason(cluster)?);
        if !can_count(step) {
            return None;
        }
        let [status] = existing;
        let place = (known.group, Arc::clone(cluster));
        match step {
            Step::Failing => placed.failing.insert(place, status),
            _ => placed.failing.remove(&place),
        };
        if !placed.counts_failures() {
            return None;
        }
        let recheck = decision.recheck_after;
        let recheck = recheck.and_then(|wait| now.checked_add(wait).ok());
        self.wake_at = [self.wake_at, wake_at, recheck].into_iter().flatten().min();
        let flags = Flags::of(&works.iter().map(|work| &***work));
        known.flags.add_to(&mut placed.summary, -1);
        flags.add_to(&mut placed.summary, 1);
        placed.succeeded -= usize::from(known.is_succeeded);
        placed.succeeded += usize::from(is_succeeded);
        placed.done -= usize::from(known.step == Step::Done);
        placed.done += usize::from(step == Step::Done);
        if known.step != step {
            steps.push((placed.name.clone(), Arc::clone(cluster), step));
        }
        (known.flags, known.is_succeeded, known.step) = (flags, is_succeeded, step);
        Some(())
    }

    /// The placements with the clusters that fail.
    fn reports(
        &self,
        works_of: &impl Fn(&str) -> Vec<Arc<ManifestWork>>,
        now: Timestamp,
    ) -> Option<Vec<PlacementReport>> {
        let placements = self.placements.iter();
        placements.map(|one| one.report(works_of, now)).collect()
    }

    fn findings(&self, reports: &[PlacementReport]) -> Findings {
        let both = self.placements.iter().zip(reports);
        let sentences: Vec<String> = both
            .map(|(one, report)| {
                let sentence = report.sentence_with(one.done, one.total);
                format!("{}: {sentence}", one.name)
            })
            .collect();
        Findings {
            placements: self.placements.iter().map(Tallied::figures).collect(),
            missing: Vec::new(),
            wrong: None,
            problems: String::new(),
            progress: sentences.join("; "),
            notes: self.notes.clone(),
        }
    }

    fn stage(&self, reports: &[PlacementReport]) -> Stage {
        let total: usize = self.placements.iter().map(|one| one.total).sum();
        let done: usize = self.placements.iter().map(|one| one.done).sum();
        match total {
            total if total > 0 && total == done => Stage::Complete,
            _ if reports.iter().any(|report| report.breached) => Stage::Stopped,
            0 => Stage::Empty,
            _ => Stage::RollingOut,
        }
    }
}

/// Whether a cluster that is this far can be counted without a plan.
fn can_count(step: Step) -> bool {
    matches!(step, Step::InProgress | Step::Done | Step::Failing)
}

impl Tallied {
    fn of(
        index: usize,
        placed: &Placed<'_>,
        report: &super::report::PlacementReport,
        clusters: &mut HashMap<Arc<str>, Contribution>,
    ) -> Option<Self> {
        let succeeded: HashSet<&str> = placed
            .statuses
            .iter()
            .filter(|status| progress::is_done(status))
            .map(|status| &*status.cluster)
            .collect();
        let total = report.clusters().count();
        let mut tallied = Self {
            name: placed.name.to_owned(),
            strategy: placed.strategy.clone(),
            groups: placed
                .groups
                .iter()
                .map(|group| group.key.clone())
                .collect(),
            selected: placed.selected,
            summary: WorkSummary {
                desired_total: placed.selected,
                ..WorkSummary::default()
            },
            succeeded: 0,
            done: 0,
            total,
            of_failures: placed.strategy.with_counted_failures(total),
            failing: BTreeMap::new(),
        };
        for (group, of_group) in report.groups.iter().enumerate() {
            for cluster in &of_group.clusters {
                let contribution = Contribution {
                    placement: index,
                    group,
                    flags: Flags::of(&cluster.works.iter().map(|work| &**work)),
                    is_succeeded: succeeded.contains(&*cluster.name),
                    step: cluster.step(),
                };
                contribution.flags.add_to(&mut tallied.summary, 1);
                tallied.succeeded += usize::from(contribution.is_succeeded);
                tallied.done += usize::from(contribution.step == Step::Done);
                if contribution.step == Step::Failing {
                    let mut statuses = placed.statuses.iter();
                    let status = statuses.find(|it| it.cluster == cluster.name)?;
                    let place = (group, Arc::clone(&cluster.name));
                    tallied.failing.insert(place, status.clone());
                }
                // A cluster in two groups is counted by a plan.
                if clusters
                    .insert(Arc::clone(&cluster.name), contribution)
                    .is_some()
                {
                    return None;
                }
            }
        }
        Some(tallied)
    }

    fn counts_failures(&self) -> bool {
        self.failing.is_empty() || self.of_failures.is_some()
    }

    /// The clusters that fail, and what follows for the rollout.
    fn report(
        &self,
        works_of: &impl Fn(&str) -> Vec<Arc<ManifestWork>>,
        now: Timestamp,
    ) -> Option<PlacementReport> {
        let decision = self.decide_failures(now)?;
        let of_cluster = |(name, status): (&Arc<str>, &ClusterStatus)| ClusterReport {
            name: Arc::clone(name),
            reason: decision.reason(name).cloned().unwrap_or(Reason::Queued),
            since: status.last_transition,
            works: works_of(name),
            problem: None,
        };
        let groups = self.groups.iter().enumerate().map(|(index, key)| {
            let of_group = self
                .failing
                .iter()
                .filter(|((group, _), _)| *group == index);
            let clusters = of_group.map(|((_, name), status)| of_cluster((name, status)));
            GroupReport {
                key: key.clone(),
                clusters: clusters.collect(),
            }
        });
        Some(PlacementReport {
            name: self.name.clone(),
            strategy: self.strategy.clone(),
            selected: self.selected,
            breached: decision.breached,
            groups: groups.collect(),
        })
    }

    fn decide_failures(&self, now: Timestamp) -> Option<Decision> {
        if self.failing.is_empty() {
            return Some(Decision::default());
        }
        let mut groups: Vec<Group> = Vec::new();
        for (index, key) in self.groups.iter().enumerate() {
            let of_group = self.failing.keys().filter(|(group, _)| *group == index);
            groups.push(Group {
                key: key.clone(),
                clusters: of_group.map(|(_, name)| Arc::clone(name)).collect(),
            });
        }
        groups.retain(|group| !group.clusters.is_empty());
        let existing: Vec<ClusterStatus> = self.failing.values().cloned().collect();
        let strategy = self.of_failures.as_ref()?;
        decide(&Input::new(strategy, &groups, &existing, now)).ok()
    }

    fn figures(&self) -> PlacementFigures {
        PlacementFigures {
            name: self.name.clone(),
            groups: self.groups.len(),
            selected: self.selected,
            summary: self.summary.clone(),
            succeeded: self.succeeded,
        }
    }
}
