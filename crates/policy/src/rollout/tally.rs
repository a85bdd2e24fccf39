//! Reports of clusters, counted: what one report changes costs the same however many clusters the policy has.
//!
//! [`plan`](super::plan()) looks at all clusters. That is needed while clusters wait for each other. It is not where
//! all clusters get a version at once, nor once all clusters are done, which is so most of the time: a report then
//! changes what is said of one cluster, and possibly what is true of all. A [`Tally`] keeps the counts from one plan
//! to the next, and gives up where only a plan can tell what follows.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bellwether_api::meta::MicroTime;
use bellwether_api::policy::{ClusterCompliance, ComplianceState, Policy, RolloutStatus};
use jiff::Timestamp;
use serde_json::{Value, json};

use super::track::{Rules, followed, to_be_marked};
use super::{Mode, in_microseconds};
use crate::propagation::{Replica, is_released};
use crate::status::Found;

/// The counts of a policy whose clusters do not wait for each other.
#[derive(Debug, Clone, PartialEq)]
pub struct Tally {
    uid: Option<String>,
    generation: Option<i64>,
    clusters: HashMap<Arc<str>, CountedCluster>,
    found: Found,
    /// What the root policy says of all clusters.
    compliant: Option<ComplianceState>,
    progress: Progress,
    /// The policy only informs: any report is a success.
    is_inform: bool,
}

/// What is known of a cluster.
#[derive(Debug, Clone, PartialEq)]
struct CountedCluster {
    /// Where its entry is in the status of the root policy.
    place: usize,
    /// What this entry says.
    compliant: Option<ComplianceState>,
    status: RolloutStatus,
    since: Timestamp,
    /// The cluster was done before the present rollout began.
    is_frozen: bool,
    replica: Arc<Replica>,
}

/// How far all clusters are.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Progress {
    stage: RolloutStatus,
    running: usize,
    failed: usize,
}

impl Progress {
    /// Where clusters that are this far are counted; nowhere if they are done.
    fn count_of(&mut self, status: &RolloutStatus) -> Option<&mut usize> {
        match status {
            RolloutStatus::Failed | RolloutStatus::TimeOut => Some(&mut self.failed),
            RolloutStatus::Succeeded | RolloutStatus::Skip => None,
            _ => Some(&mut self.running),
        }
    }

    /// How far all clusters are, where they get a version at once.
    fn of_all(&self) -> RolloutStatus {
        match (self.running, self.failed) {
            (0, 0) => RolloutStatus::Succeeded,
            (0, _) => RolloutStatus::Failed,
            _ => RolloutStatus::Progressing,
        }
    }
}

/// What follows from reports.
#[derive(Debug, Clone, PartialEq)]
pub struct Counted {
    /// A JSON patch of the root policy and its status; empty if nothing changes.
    pub patch: Vec<Value>,
}

impl Tally {
    /// Counts the clusters of a root policy, as its status is after a plan that left nothing else to do. Nothing if
    /// a report may decide about other clusters.
    pub fn new(root: &Policy, replicas: &BTreeMap<Arc<str>, Arc<Replica>>) -> Option<Self> {
        let status = root.status.as_ref()?;
        let stage = status.rollout_status.clone()?;
        let mode = Mode::of(root);
        let is_done = stage == RolloutStatus::Succeeded;
        let is_at_once = !mode.is_progressive && !mode.has_deadline();
        if root.spec.disabled || !is_done && !is_at_once {
            return None;
        }
        let start = status.rollout_start_time.as_ref().map(|time| time.0);
        // A plan says when a rollout begins.
        if !is_done && start.is_none() {
            return None;
        }
        let mut tally = Self {
            uid: root.metadata.uid.clone(),
            generation: root.metadata.generation,
            clusters: HashMap::with_capacity(status.status.len()),
            found: Found::default(),
            compliant: status.compliant.clone(),
            progress: Progress {
                stage,
                running: 0,
                failed: 0,
            },
            is_inform: !mode.is_enforced,
        };
        for (place, entry) in status.status.iter().enumerate() {
            let (cluster, replica) = replicas.get_key_value(entry.cluster_name.as_str())?;
            tally.add(place, entry, cluster, replica, start)?;
        }
        // Replicas that belong to nobody are for a plan to remove.
        (tally.clusters.len() == replicas.len()).then_some(tally)
    }

    fn add(
        &mut self,
        place: usize,
        entry: &ClusterCompliance,
        cluster: &Arc<str>,
        replica: &Arc<Replica>,
        start: Option<Timestamp>,
    ) -> Option<()> {
        let status = entry.rollout_status.clone()?;
        let since = entry.rollout_status_last_transition_time.as_ref();
        let since = since.map_or(Timestamp::UNIX_EPOCH, |time| time.0);
        let is_done = status == RolloutStatus::Succeeded;
        // Of a rollout that is over, clusters whose failure was tolerated may still succeed.
        if replica.is_deleting
            || !is_released(&status)
            || !is_done && self.progress.stage == RolloutStatus::Succeeded
        {
            return None;
        }
        self.found.total += 1;
        self.found.replace(None, entry.compliant.as_ref());
        if let Some(count) = self.progress.count_of(&status) {
            *count += 1;
        }
        let known = CountedCluster {
            place,
            compliant: entry.compliant.clone(),
            is_frozen: is_done && start.is_some_and(|start| since < start),
            status,
            since,
            replica: Arc::clone(replica),
        };
        self.clusters.insert(Arc::clone(cluster), known);
        Some(())
    }

    /// Returns how many clusters there are.
    pub fn clusters(&self) -> usize {
        self.clusters.len()
    }

    /// Counts what some clusters report. Nothing if only a plan can tell what follows; the counts are of no use
    /// then.
    pub fn count(&mut self, reports: &[Arc<Replica>], now: Timestamp) -> Option<Counted> {
        let now = in_microseconds(now);
        let mut patch = vec![
            test("/metadata/uid", &json!(self.uid)),
            test("/metadata/generation", &json!(self.generation)),
        ];
        let guards = patch.len();
        // What is true of a rollout that is over is true of all of its clusters.
        let is_over = self.progress.stage == RolloutStatus::Succeeded;
        for replica in reports {
            self.count_one(replica, is_over, now, &mut patch)?;
        }
        let of_all = self.found.of_all();
        if of_all != self.compliant {
            let before = self.compliant.is_some();
            patch.extend(written("/status/compliant", of_all.as_ref(), before));
            self.compliant = of_all;
        }
        let stage = self.progress.of_all();
        if stage != self.progress.stage {
            patch.extend(moved("/status", &stage, now));
            self.progress.stage = stage;
        }
        if patch.len() == guards {
            patch.clear();
        }
        Some(Counted { patch })
    }

    fn count_one(
        &mut self,
        replica: &Arc<Replica>,
        is_over: bool,
        now: Timestamp,
        patch: &mut Vec<Value>,
    ) -> Option<()> {
        let known = self.clusters.get_mut(&replica.cluster)?;
        if !known.replica.is_same_but_for_report(replica) {
            return None;
        }
        known.replica = Arc::clone(replica);
        let mut status = known.status.clone();
        if !is_over && !known.is_frozen {
            let rules = Rules {
                is_inform: self.is_inform,
                holds_failures: false,
                now,
            };
            let evaluation = replica.evaluation(known.since);
            status = followed(&status, evaluation, &rules).unwrap_or(status);
        }
        let has_moved = status != known.status;
        let since = if has_moved { now } else { known.since };
        // What the replica has to say about it is for a plan to write.
        if to_be_marked(&status, replica, since, true).is_some() {
            return None;
        }
        let entry = format!("/status/status/{}", known.place);
        let found = replica.report.compliant.clone();
        if !has_moved && found == known.compliant {
            return Some(());
        }
        let name = json!(replica.cluster);
        patch.push(test(&format!("{entry}/clustername"), &name));
        if found != known.compliant {
            let field = format!("{entry}/compliant");
            let was_there = known.compliant.is_some();
            patch.extend(written(&field, found.as_ref(), was_there));
            self.found.replace(known.compliant.as_ref(), found.as_ref());
            known.compliant = found;
        }
        if has_moved {
            patch.extend(moved(&entry, &status, now));
            if let Some(count) = self.progress.count_of(&known.status) {
                *count = count.saturating_sub(1);
            }
            if let Some(count) = self.progress.count_of(&status) {
                *count += 1;
            }
            known.status = status;
            known.since = since;
        }
        Some(())
    }
}

/// Makes a patch fail where something else is there.
fn test(path: &str, value: &Value) -> Value {
    json!({"op": "test", "path": path, "value": value})
}

/// Writes how far something is, and since when.
fn moved(path: &str, status: &RolloutStatus, now: Timestamp) -> [Value; 2] {
    let field = |name: &str, value: Value| json!({"op": "add", "path": format!("{path}/{name}"), "value": value});
    [
        field("rolloutStatus", json!(status)),
        field("rolloutStatusLastTransitionTime", json!(MicroTime(now))),
    ]
}

/// Writes a state, or removes it if there is none any more.
fn written(path: &str, state: Option<&ComplianceState>, was_there: bool) -> Option<Value> {
    match state {
        Some(state) => Some(json!({"op": "add", "path": path, "value": state})),
        None => was_there.then(|| json!({"op": "remove", "path": path})),
    }
}
