//! The counts of one placement of a replica set.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bellwether_api::work::WorkSummary;
use bellwether_placement::rollout::{
    ClusterStatus, Group, GroupKey, Input, Kind, Reason, Strategy, decide,
};
use jiff::Timestamp;

use super::{ChangedWorks, ClusterProgress, Contribution, Move};
use crate::replica_set::flags::Flags;
use crate::replica_set::report::{ClusterReport, GroupReport, PlacementReport, Step};
use crate::replica_set::summary::PlacementFigures;
use crate::replica_set::{Placed, progress};

/// The counts of one placement.
#[derive(Debug)]
pub(super) struct Tallied {
    pub(super) name: String,
    pub(super) strategy: Strategy,
    pub(super) groups: Vec<GroupKey>,
    selected: i64,
    summary: WorkSummary,
    succeeded: usize,
    pub(super) done: usize,
    pub(super) total: usize,
    /// How many clusters each group has.
    sizes: Vec<usize>,
    /// The clusters that fail, in the order of reports.
    pub(super) failing: BTreeMap<(usize, Arc<str>), ClusterStatus>,
    /// How many clusters may be on their way or soak; `None` if who starts next does not follow from that.
    slots: Option<usize>,
    /// How many clusters are on their way or soak.
    in_flight: usize,
    /// Some clusters wait.
    has_waiting: bool,
    /// A cluster has started, arrived or failed since the last plan, or the opposite.
    has_moved: bool,
}

/// True if a cluster that is this far is on its way or soaks.
fn takes_slot(step: Step) -> bool {
    matches!(step, Step::InProgress | Step::Soaking)
}

impl Tallied {
    /// The counts after a plan. `None` if a cluster is in two groups.
    pub(super) fn of(
        index: usize,
        placed: &Placed<'_>,
        report: &PlacementReport,
        clusters: &mut HashMap<Arc<str>, Contribution>,
    ) -> Option<Self> {
        let statuses = placed.statuses.iter();
        let statuses: HashMap<&str, &ClusterStatus> =
            statuses.map(|status| (&*status.cluster, status)).collect();
        let total = report.clusters().count();
        let groups = placed.groups.iter();
        let mut tallied = Self {
            name: placed.name.to_owned(),
            strategy: placed.strategy.clone(),
            groups: groups.map(|group| group.key.clone()).collect(),
            selected: placed.selected,
            summary: WorkSummary {
                desired_total: placed.selected,
                ..WorkSummary::default()
            },
            succeeded: 0,
            done: 0,
            total,
            sizes: report.groups.iter().map(|it| it.clusters.len()).collect(),
            failing: BTreeMap::new(),
            slots: placed.strategy.slots(total),
            in_flight: 0,
            has_waiting: false,
            has_moved: false,
        };
        for (group, of_group) in report.groups.iter().enumerate() {
            for cluster in &of_group.clusters {
                let step = cluster.step();
                let status = statuses.get(&*cluster.name).copied();
                let known = (step != Step::Waiting).then(|| ClusterProgress {
                    flags: Flags::of(&cluster.works.iter().map(|work| &**work)),
                    is_succeeded: status.is_some_and(progress::is_done),
                    step,
                });
                match known {
                    Some(known) => tallied.count(known),
                    None => tallied.has_waiting = true,
                }
                if step == Step::Failing {
                    let place = (group, Arc::clone(&cluster.name));
                    tallied.failing.insert(place, status?.clone());
                }
                let contribution = Contribution {
                    placement: index,
                    group,
                    known,
                };
                // A cluster in two groups is counted by a plan.
                let before = clusters.insert(Arc::clone(&cluster.name), contribution);
                if before.is_some() {
                    return None;
                }
            }
        }
        Some(tallied)
    }

    /// Counts a cluster that has the present template.
    fn count(&mut self, known: ClusterProgress) {
        known.flags.add_to(&mut self.summary, 1);
        self.succeeded += usize::from(known.is_succeeded);
        self.done += usize::from(known.step == Step::Done);
        self.in_flight += usize::from(takes_slot(known.step));
    }

    /// Counts a cluster as it is now instead of as it was.
    pub(super) fn replace(&mut self, before: Option<ClusterProgress>, now: ClusterProgress) {
        if let Some(before) = before {
            before.flags.add_to(&mut self.summary, -1);
            self.succeeded -= usize::from(before.is_succeeded);
            self.done -= usize::from(before.step == Step::Done);
            self.in_flight -= usize::from(takes_slot(before.step));
        }
        self.count(now);
        let is_same = |before: ClusterProgress| {
            before.step == now.step || (takes_slot(before.step) && takes_slot(now.step))
        };
        self.has_moved |= !before.is_some_and(is_same);
    }

    /// True if a cluster that waits may start now, so that a plan has to follow.
    pub(super) fn may_start(&self, is_stopped: bool) -> bool {
        if is_stopped || !self.has_waiting {
            return false;
        }
        match self.slots {
            Some(slots) => self.in_flight < slots,
            None => self.has_moved,
        }
    }

    /// The clusters that fail, those that have taken a step, and what follows for the rollout.
    pub(super) fn report<'a>(
        &self,
        changes: &ChangedWorks<'_>,
        moves: impl Iterator<Item = &'a Move>,
    ) -> Option<PlacementReport> {
        let failures = self.decide_failures(changes.now)?;
        let mut groups: Vec<GroupReport> = self
            .groups
            .iter()
            .map(|key| GroupReport {
                key: key.clone(),
                clusters: Vec::new(),
            })
            .collect();
        let mut add = |group: usize, name: &Arc<str>, reason: Reason, since| {
            let cluster = ClusterReport {
                name: Arc::clone(name),
                reason,
                since,
                works: (changes.works_of)(name),
                problem: None,
            };
            if let Some(group) = groups.get_mut(group) {
                group.clusters.push(cluster);
            }
        };
        for ((group, name), status) in &self.failing {
            let reason = failures.reasons.get(name).cloned();
            let reason = reason.unwrap_or(Reason::Queued);
            add(*group, name, reason, status.last_transition);
        }
        let is_listed = |one: &&Move| {
            self.failing
                .contains_key(&(one.group, Arc::clone(&one.cluster)))
        };
        for one in moves.filter(|one| !is_listed(one)) {
            add(one.group, &one.cluster, one.reason.clone(), one.since);
        }
        for group in &mut groups {
            group.clusters.sort_by(|a, b| a.name.cmp(&b.name));
        }
        Some(PlacementReport {
            name: self.name.clone(),
            strategy: self.strategy.clone(),
            selected: self.selected,
            breached: failures.is_breached,
            groups,
        })
    }

    /// Decides about the clusters that fail alone: about all of them, or group by group where each group has
    /// a budget of its own.
    fn decide_failures(&self, now: Timestamp) -> Option<Failures> {
        let mut groups: BTreeMap<usize, Vec<&ClusterStatus>> = BTreeMap::new();
        for ((index, _), status) in &self.failing {
            groups.entry(*index).or_default().push(status);
        }
        let mut failures = Failures::default();
        if self.strategy.kind == Kind::ProgressivePerGroup {
            for (index, failing) in groups {
                let size = *self.sizes.get(index)?;
                failures.add(
                    &self.strategy,
                    size,
                    &[(self.groups.get(index)?, failing)],
                    now,
                )?;
            }
        } else if !groups.is_empty() {
            let groups = groups.into_iter();
            let groups = groups.map(|(index, failing)| Some((self.groups.get(index)?, failing)));
            let groups: Vec<_> = groups.collect::<Option<_>>()?;
            failures.add(&self.strategy, self.total, &groups, now)?;
        }
        Some(failures)
    }

    pub(super) fn figures(&self) -> PlacementFigures {
        PlacementFigures {
            name: self.name.clone(),
            groups: self.groups.len(),
            selected: self.selected,
            summary: self.summary.clone(),
            succeeded: self.succeeded,
        }
    }
}

/// What follows from the clusters that fail.
#[derive(Debug, Default)]
struct Failures {
    /// More of them than are tolerated.
    is_breached: bool,
    reasons: HashMap<Arc<str>, Reason>,
}

impl Failures {
    /// Adds failures that share a budget: those of `total` clusters.
    fn add(
        &mut self,
        strategy: &Strategy,
        total: usize,
        failing: &[(&GroupKey, Vec<&ClusterStatus>)],
        now: Timestamp,
    ) -> Option<()> {
        let strategy = strategy.with_counted_failures(total)?;
        let groups: Vec<Group> = failing
            .iter()
            .map(|(key, failing)| Group {
                key: (*key).clone(),
                clusters: failing.iter().map(|it| Arc::clone(&it.cluster)).collect(),
            })
            .collect();
        let existing = failing.iter().flat_map(|(_, failing)| failing);
        let existing: Vec<ClusterStatus> = existing.copied().cloned().collect();
        let decision = decide(&Input::new(&strategy, &groups, &existing, now)).ok()?;
        self.is_breached |= decision.breached;
        self.reasons.extend(decision.reasons);
        Some(())
    }
}
