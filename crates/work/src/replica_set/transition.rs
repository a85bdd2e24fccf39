//! What happened to a rollout between two reconciles: what events are made of.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_api::work::names::{condition, event};
use bellwether_api::work::{ManifestWorkReplicaSet, ManifestWorkReplicaSetStatus};
use bellwether_json::time::format_time;
use bellwether_placement::rollout::{Hold, Reason};
use jiff::Timestamp;

use super::report::{ClusterReport, PlacementReport, Report, Stage, Step};
use super::tally::Counted;
use crate::lifecycle::find;

/// How many clusters an event names.
const MOST_NAMED: usize = 8;

/// How a rollout stood: as much of a [`Report`] as the next one is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RolloutSnapshot {
    stage: Stage,
    retried_at: Option<Timestamp>,
    /// How far clusters were, by placement; those that had not started are missing.
    steps: BTreeMap<String, BTreeMap<Arc<str>, Step>>,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    /// Whether somebody should have a look.
    pub is_warning: bool,
    /// The reason of the event.
    pub reason: &'static str,
    /// A sentence about it.
    pub message: String,
}

impl RolloutSnapshot {
    /// How a rollout stands now.
    pub fn of(report: &Report) -> Self {
        let steps = report.placements.iter().map(|placement| {
            let started = placement
                .clusters()
                .filter(|cluster| cluster.step() != Step::Waiting);
            let steps = started.map(|cluster| (Arc::clone(&cluster.name), cluster.step()));
            (placement.name.clone(), steps.collect())
        });
        Self {
            stage: report.stage(),
            retried_at: report.control.retried_at,
            steps: steps.collect(),
        }
    }

    /// What a replica set of which nothing is remembered is compared with: nothing has happened yet
    /// if it has no status, otherwise all of it has been recorded before.
    pub fn before(set: &ManifestWorkReplicaSet, report: &Report) -> Self {
        let is_reported = |status: &ManifestWorkReplicaSetStatus| {
            find(&status.conditions, condition::PLACEMENT_ROLLED_OUT).is_some()
        };
        if set.status.as_ref().is_some_and(is_reported) {
            return Self::of(report);
        }
        Self {
            stage: Stage::Empty,
            retried_at: report.control.retried_at,
            steps: BTreeMap::new(),
        }
    }

    /// Takes in what [`count_changes`](super::count_changes) counted. Returns what has happened by it.
    pub fn count(&mut self, counted: &Counted) -> Vec<Transition> {
        let placements = counted.placements.iter();
        let mut all: Vec<Transition> = placements.flat_map(|it| self.steps_of(it)).collect();
        if counted.stage != self.stage {
            all.extend(self.entered(counted.stage, || counted.sentence.clone()));
        }
        for (placement, cluster, step) in &counted.steps {
            let steps = self.steps.entry(placement.clone()).or_default();
            steps.insert(Arc::clone(cluster), *step);
        }
        self.stage = counted.stage;
        all
    }

    /// What has happened since, each thing once.
    pub fn transitions(&self, report: &Report) -> Vec<Transition> {
        let placements = report.placements.iter();
        let mut all: Vec<Transition> = placements.flat_map(|it| self.steps_of(it)).collect();
        if report.control.retried_at > self.retried_at {
            let message = "clusters that failed are tried again".to_owned();
            all.push(normal(event::ROLLOUT_RETRIED, message));
        }
        let stage = report.stage();
        if stage != self.stage {
            let sentence = || {
                let of = |one: &PlacementReport| format!("{}: {}", one.name, one.sentence());
                let all: Vec<String> = report.placements.iter().map(of).collect();
                all.join("; ")
            };
            all.extend(self.entered(stage, sentence));
        }
        all
    }

    fn steps_of(&self, placement: &PlacementReport) -> impl Iterator<Item = Transition> {
        let started = self.started(placement);
        let soaking = self.soaking(placement);
        let failing = self.failing(placement);
        started.into_iter().chain(soaking).chain(failing)
    }

    fn started(&self, placement: &PlacementReport) -> Option<Transition> {
        let started = self.entering(placement, |old, new| old.is_none() && new != Step::Waiting);
        let names = names(&started)?;
        let message = match group_of(placement, &started) {
            Some(group) => format!("{group} started: {names}"),
            None => format!("started: {names}"),
        };
        Some(normal(event::ROLLOUT_STARTED, message))
    }

    fn soaking(&self, placement: &PlacementReport) -> Option<Transition> {
        let soaking = self.entering(placement, |_, new| new == Step::Soaking);
        let names = names(&soaking)?;
        let until = |cluster: &&ClusterReport| match cluster.reason {
            Reason::Soaks { until } => Some(until),
            _ => None,
        };
        let until = soaking.iter().filter_map(until).max()?;
        let message = format!("soaking until {}: {names}", format_time(until));
        Some(normal(event::ROLLOUT_SOAKING, message))
    }

    fn failing(&self, placement: &PlacementReport) -> Option<Transition> {
        let failing = self.entering(placement, |_, new| new == Step::Failing);
        if failing.is_empty() {
            return None;
        }
        let failures = failing.iter().take(MOST_NAMED);
        let failures: Vec<String> = failures.map(|cluster| cluster.failure()).collect();
        let more = match failing.len().saturating_sub(MOST_NAMED) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let message = format!("{}{more}", failures.join("; "));
        Some(warning(event::ROLLOUT_FAILING, message))
    }

    fn entered(&self, stage: Stage, sentence: impl Fn() -> String) -> Option<Transition> {
        match stage {
            Stage::Stopped => Some(warning(event::ROLLOUT_STOPPED, sentence())),
            Stage::Complete => Some(normal(event::ROLLOUT_COMPLETE, sentence())),
            Stage::Held(hold) => {
                let reason = match hold {
                    Hold::Paused => event::ROLLOUT_PAUSED,
                    Hold::Aborted => event::ROLLOUT_ABORTED,
                    // Nobody asked for it, and it is over in a moment.
                    Hold::Unsettled => return None,
                };
                let message = format!("{hold}: no further cluster starts");
                Some(normal(reason, message))
            }
            Stage::RollingOut if matches!(self.stage, Stage::Held(_) | Stage::Stopped) => {
                let message = format!("the rollout goes on; {}", sentence());
                Some(normal(event::ROLLOUT_RESUMED, message))
            }
            Stage::RollingOut | Stage::Empty => None,
        }
    }

    /// The clusters that have come to another step, if it is one that is asked for.
    fn entering<'a>(
        &self,
        placement: &'a PlacementReport,
        is_meant: impl Fn(Option<Step>, Step) -> bool,
    ) -> Vec<&'a ClusterReport> {
        let known = self.steps.get(&placement.name);
        let has_come = |cluster: &&ClusterReport| {
            let old = known.and_then(|steps| steps.get(&cluster.name)).copied();
            let new = cluster.step();
            old != Some(new) && is_meant(old, new)
        };
        placement.clusters().filter(has_come).collect()
    }
}

/// The group that clusters are in, if it is one of several and the same for all.
fn group_of(placement: &PlacementReport, clusters: &[&ClusterReport]) -> Option<String> {
    if placement.groups.len() < 2 {
        return None;
    }
    let group = placement.groups.iter().find(|group| {
        let is_in = |cluster: &&ClusterReport| {
            let found = group
                .clusters
                .binary_search_by(|one| one.name.cmp(&cluster.name));
            found.is_ok()
        };
        clusters.iter().all(is_in)
    })?;
    Some(group.key.to_string())
}

fn names(clusters: &[&ClusterReport]) -> Option<String> {
    let named: Vec<&str> = clusters
        .iter()
        .take(MOST_NAMED)
        .map(|it| &*it.name)
        .collect();
    match clusters.len().saturating_sub(MOST_NAMED) {
        _ if named.is_empty() => None,
        0 => Some(named.join(", ")),
        more => Some(format!("{} and {more} more", named.join(", "))),
    }
}

fn normal(reason: &'static str, message: String) -> Transition {
    Transition {
        is_warning: false,
        reason,
        message,
    }
}

fn warning(reason: &'static str, message: String) -> Transition {
    Transition {
        is_warning: true,
        ..normal(reason, message)
    }
}
