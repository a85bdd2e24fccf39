//! What to write for a root policy now: replicas, what they say about the rollout, and the status of the root.
//!
//! [`plan`] looks at one root policy and its replicas at one moment. A policy that informs, or whose strategy is
//! All, goes to all clusters as it is. Otherwise all clusters first get a new version as inform, and then one
//! after the other as it is meant, as [`bellwether_placement::rollout`] allows.
//!
//! The status of the root policy is the authority on how far each cluster is; whether a cluster has a version,
//! and in which form, is read off its replica. What is promised, wherever the hub is killed:
//!
//! - A cluster gets a version as it is meant only after the root policy says that it waits for it. So what the
//!   root says of a released cluster is always about the version that the cluster has.
//! - A root policy never says more than replicas: Progressing is written after a release, and where all
//!   clusters get a version at once, what was true of the version before is taken back first.
//! - Clusters that are done stay done until their version changes: drift shows in their compliance.

mod aggregate;
mod mode;
mod tally;
mod track;

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use bellwether_api::meta::MicroTime;
use bellwether_api::policy::names::reason;
use bellwether_api::policy::{ClusterCompliance, Policy, PolicyStatus, RolloutStatus};
use bellwether_placement::rollout::{
    Decision, Input, Reason, Round, Status, UnsetConcurrency, VersionState, round,
};
use jiff::Timestamp;

use crate::binding::Bound;
use crate::propagation::{Blueprint, Evaluation, Form, Replica, Version};
use crate::status::compliance_of_all;
pub(crate) use aggregate::exceeded;
pub use mode::Mode;
pub use tally::{Counted, Tally};
use track::{Past, Position, Rules, Track};

/// Everything that a decision about a root policy looks at.
#[derive(Clone, Copy)]
pub struct Observed<'a> {
    /// The root policy.
    pub root: &'a Policy,
    /// The same, made ready for replicas.
    pub blueprint: &'a Blueprint,
    /// The clusters that it goes to.
    pub bound: &'a Bound,
    /// What a cluster gets.
    pub version: &'a dyn Fn(&str) -> Arc<Version>,
    /// Its replicas by cluster.
    pub replicas: &'a BTreeMap<Arc<str>, Arc<Replica>>,
    /// Why the server refuses replicas of clusters.
    pub refused: &'a BTreeMap<Arc<str>, String>,
    /// True for the namespaces of clusters. Replicas elsewhere are left alone.
    pub is_cluster: &'a dyn Fn(&str) -> bool,
    /// The present.
    pub now: Timestamp,
}

impl std::fmt::Debug for Observed<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Observed")
            .field("replicas", &self.replicas.len())
            .finish_non_exhaustive()
    }
}

/// What to do for a root policy, in this order. What fails ends it: the next plan finds out what is left.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Plan {
    /// Take back what the root policy says of clusters that are about to get another version.
    pub status_first: Option<PolicyStatus>,
    /// Create or replace these replicas.
    pub write: Vec<Write>,
    /// Delete the replicas of these clusters.
    pub delete: Vec<Arc<Replica>>,
    /// Say on these replicas how far the rollout is.
    pub mark: Vec<Mark>,
    /// The status of the root policy; nothing if it stays.
    pub status: Option<PolicyStatus>,
    /// What to record with the status.
    pub notices: Vec<Notice>,
    /// Why nobody is released although somebody could be.
    pub problem: Option<String>,
    /// When to look again if nothing changes.
    pub wake_at: Option<Timestamp>,
}

/// A replica to write.
#[derive(Debug, Clone, PartialEq)]
pub struct Write {
    /// The cluster.
    pub cluster: Arc<str>,
    /// What it gets.
    pub version: Arc<Version>,
    /// In which form.
    pub form: Form,
    /// True if the replica names its version.
    pub is_progressive: bool,
    /// The replica that it replaces; nothing if there is none.
    pub replaces: Option<Arc<Replica>>,
}

/// What a replica has to say about the rollout.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    /// The cluster.
    pub cluster: Arc<str>,
    /// How far it is.
    pub status: RolloutStatus,
    /// Since when.
    pub since: Timestamp,
}

/// Something to record as an event of the root policy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// True if somebody should have a look.
    pub is_warning: bool,
    /// One word for it.
    pub reason: &'static str,
    /// A sentence about it.
    pub message: String,
}

impl Write {
    /// Returns what to record once it is written.
    pub fn notices(&self, namespace: &str, name: &str) -> Vec<Notice> {
        let cluster = &self.cluster;
        let what = match self.replaces {
            None => format!("was propagated to cluster {cluster}"),
            Some(_) => format!("was updated for cluster {cluster}"),
        };
        let written = Notice {
            is_warning: false,
            reason: reason::POLICY_PROPAGATION,
            message: format!("Policy {namespace}/{name} {what}"),
        };
        let unresolved = self.version.template_error.as_ref().map(|error| Notice {
            is_warning: true,
            reason: reason::POLICY_PROPAGATION,
            message: format!("Failed to resolve templates for cluster {cluster}: {error}"),
        });
        std::iter::once(written).chain(unresolved).collect()
    }
}

/// Decides what to do for a root policy.
pub fn plan(observed: &Observed<'_>) -> Plan {
    let now = in_microseconds(observed.now);
    let mode = Mode::of(observed.root);
    let past = Past::of(observed.root);
    let rules = Rules {
        is_inform: !mode.is_enforced,
        holds_failures: mode.has_deadline(),
        now,
    };
    let mut tracks: Vec<Track<'_>> = Vec::new();
    if !observed.root.spec.disabled {
        let clusters = observed.bound.clusters();
        tracks.extend(clusters.map(|cluster| Track::of(observed, cluster, &mode, &past, &rules)));
    }
    let mut plan = Plan {
        delete: unwanted(observed, &tracks),
        problem: mode.problem.clone(),
        ..Plan::default()
    };
    let is_first_pass = tracks.iter().any(Track::is_about_to_be_written);
    let outcome = decide(observed, &mode, &tracks, now);
    let decision = match outcome {
        Ok(round) => {
            plan.wake_at = round.wake_at;
            release(&mut tracks, &round, is_first_pass, &mut plan, now);
            Some(round.decision)
        }
        Err(problem) => {
            plan.problem.get_or_insert(problem);
            None
        }
    };
    if let Some(decision) = &decision {
        time_out(&mut tracks, decision, now);
    }
    let before = observed.root.status.as_ref();
    plan.status_first = taken_back(observed, &tracks, &past, now);
    plan.write = tracks.iter().filter_map(Track::to_write).collect();
    plan.mark = tracks.iter().filter_map(Track::to_mark).collect();
    let stage = aggregate::stage(&mode, &tracks, decision.as_ref());
    let status = status(observed, &tracks, stage, now);
    plan.notices = aggregate::notices(before, &status, &mode, decision.as_ref(), &tracks);
    if observed.root.spec.disabled && !plan.delete.is_empty() {
        plan.notices.push(disabled(observed.root));
    }
    let is_same = before.map_or(status == PolicyStatus::default(), |it| *it == status);
    plan.status = (!is_same).then_some(status);
    plan
}

/// Objects keep microseconds: more would seem to change when it is read back.
fn in_microseconds(time: Timestamp) -> Timestamp {
    Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time)
}

fn disabled(root: &Policy) -> Notice {
    let namespace = root.metadata.namespace.as_deref().unwrap_or_default();
    let name = root.metadata.name.as_deref().unwrap_or_default();
    Notice {
        is_warning: false,
        reason: reason::POLICY_PROPAGATION,
        message: format!("Policy {namespace}/{name} was disabled"),
    }
}

/// Replicas of clusters that the policy does not go to.
fn unwanted(observed: &Observed<'_>, tracks: &[Track<'_>]) -> Vec<Arc<Replica>> {
    let wanted: HashSet<&str> = tracks.iter().map(|it| &**it.cluster).collect();
    let replicas = observed.replicas.values();
    replicas
        .filter(|it| !wanted.contains(&*it.cluster) && !it.is_deleting)
        .filter(|it| (observed.is_cluster)(&it.cluster))
        .cloned()
        .collect()
}

fn decide(
    observed: &Observed<'_>,
    mode: &Mode,
    tracks: &[Track<'_>],
    now: Timestamp,
) -> Result<Round<()>, String> {
    if let Some(problem) = &mode.problem {
        return Err(problem.clone());
    }
    let strategy = observed.bound.strategy(&mode.strategy);
    let groups = observed.bound.rollout_groups();
    let groups = if tracks.is_empty() { &[] } else { &groups[..] };
    let input = Input {
        unset_concurrency: UnsetConcurrency::One,
        hold: observed.bound.hold(mode),
        ..Input::new(&strategy, groups, &[], now)
    };
    // Tracks are in the order of the groups, and each cluster is in one of them.
    let mut next = tracks.iter();
    let round = round(&input, |_, _| match next.next() {
        Some(track) => track.standing(),
        None => VersionState::Behind(()),
    });
    round.map_err(|error| error.to_string())
}

/// Releases the clusters that may start. Nobody is released while others wait for a new version as inform, or
/// before the root policy says that the cluster waits.
fn release(
    tracks: &mut [Track<'_>],
    round: &Round<()>,
    is_first_pass: bool,
    plan: &mut Plan,
    now: Timestamp,
) {
    let starting: HashSet<&str> = round.start.iter().map(|(it, ())| &**it).collect();
    for track in tracks
        .iter_mut()
        .filter(|it| starting.contains(&**it.cluster))
    {
        if track.position == Position::Eligible && !is_first_pass {
            track.write = Some(Form::Released);
            track.set(RolloutStatus::Progressing, now);
        } else if track.is_waiting() {
            plan.wake_at = Some(now);
        }
    }
}

/// Gives up on clusters whose deadline has passed. What they reported is more than that they are late.
fn time_out(tracks: &mut [Track<'_>], decision: &Decision, now: Timestamp) {
    let late: HashSet<&str> = decision.timed_out.iter().map(|it| &*it.cluster).collect();
    for track in tracks.iter_mut().filter(|it| late.contains(&**it.cluster)) {
        if track.status == RolloutStatus::Progressing {
            let status = match track.evaluation {
                Evaluation::NonCompliant => RolloutStatus::Failed,
                _ => RolloutStatus::TimeOut,
            };
            track.set(status, now);
        }
    }
}

/// The status of the root policy without what was true of versions that clusters are about to lose, where that
/// could not be told apart later: where replicas do not name their version.
fn taken_back(
    observed: &Observed<'_>,
    tracks: &[Track<'_>],
    past: &Past<'_>,
    now: Timestamp,
) -> Option<PolicyStatus> {
    let is_lost = |track: &&Track<'_>| {
        let known = past.of_cluster(track.cluster);
        let is_settled = known.is_some_and(|(status, _)| status.has_ended());
        track.position == Position::Restarted && is_settled && track.replica.is_some()
    };
    let lost: HashSet<&str> = tracks
        .iter()
        .filter(is_lost)
        .map(|it| &**it.cluster)
        .collect();
    if lost.is_empty() {
        return None;
    }
    let mut status = observed.root.status.clone()?;
    for entry in &mut status.status {
        if lost.contains(entry.cluster_name.as_str()) {
            entry.rollout_status = Some(RolloutStatus::Progressing);
            entry.rollout_status_last_transition_time = Some(MicroTime(now));
        }
    }
    set_stage(&mut status, Some(RolloutStatus::Progressing), past, now);
    Some(status)
}

fn status(
    observed: &Observed<'_>,
    tracks: &[Track<'_>],
    stage: Option<RolloutStatus>,
    now: Timestamp,
) -> PolicyStatus {
    let mut clusters: Vec<ClusterCompliance> = tracks.iter().map(Track::entry).collect();
    clusters.sort_by(|a, b| a.cluster_name.cmp(&b.cluster_name));
    let before = observed.root.status_or_default();
    let reports = clusters.iter().map(|it| it.compliant.as_ref());
    let mut new = PolicyStatus {
        placement: observed.bound.placements.clone(),
        compliant: compliance_of_all(reports),
        status: clusters,
        other: before.other.clone(),
        ..PolicyStatus::default()
    };
    set_stage(&mut new, stage, &Past::of(observed.root), now);
    new
}

/// Says how far all clusters are. A rollout begins where nothing was rolled out before.
fn set_stage(
    status: &mut PolicyStatus,
    stage: Option<RolloutStatus>,
    past: &Past<'_>,
    now: Timestamp,
) {
    let is_running = matches!(
        past.stage,
        Some(RolloutStatus::Progressing | RolloutStatus::Failed)
    );
    let is_same = past.stage == stage.as_ref();
    status.rollout_start_time = match &stage {
        None => None,
        Some(RolloutStatus::Succeeded) => past.start,
        Some(_) if is_running && past.start.is_some() => past.start,
        Some(_) => Some(now),
    }
    .map(MicroTime);
    let since = past.stage_since.filter(|_| is_same).unwrap_or(now);
    status.rollout_status_last_transition_time = stage.as_ref().map(|_| MicroTime(since));
    status.rollout_status = stage;
}

/// The engine's word for how far a cluster is.
pub(crate) fn engine_status(status: &RolloutStatus) -> Status {
    match status {
        RolloutStatus::ToApply => Status::ToApply,
        RolloutStatus::Succeeded => Status::Succeeded,
        RolloutStatus::Failed => Status::Failed,
        RolloutStatus::TimeOut => Status::TimeOut,
        RolloutStatus::Skip => Status::Skip,
        RolloutStatus::Progressing | RolloutStatus::Other(_) => Status::Progressing,
    }
}

/// True if a cluster succeeded, but not for long enough.
pub(crate) fn is_soaking(reason: &Reason) -> bool {
    matches!(reason, Reason::Soaks { .. })
}

#[cfg(test)]
mod tests;
