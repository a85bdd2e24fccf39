//! Reports of clusters after a rollout, counted: what one report changes costs the same however many clusters
//! the policy has.
//!
//! [`plan`](super::plan()) looks at all clusters. That is needed while a policy is rolled out. It is not once all
//! clusters are done, which is so most of the time: how far they are is settled then, so that a report changes
//! what one cluster found, and possibly what is true of all. A [`Tally`] keeps the counts from one plan to the
//! next, and gives up where only a plan can tell what follows.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bellwether_api::policy::{ComplianceState, Policy, RolloutStatus};
use serde_json::{Value, json};

use crate::propagation::Replica;

/// The counts of a policy that is rolled out to all of its clusters.
#[derive(Debug, Clone, PartialEq)]
pub struct Tally {
    uid: Option<String>,
    clusters: HashMap<Arc<str>, Known>,
    found: Found,
    /// What the root policy says of all clusters.
    compliant: Option<ComplianceState>,
}

/// What is known of a cluster.
#[derive(Debug, Clone, PartialEq)]
struct Known {
    /// Where its entry is in the status of the root policy.
    place: usize,
    /// What this entry says.
    compliant: Option<ComplianceState>,
    replica: Arc<Replica>,
}

/// How many clusters found what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Found {
    total: usize,
    compliant: usize,
    pending: usize,
    non_compliant: usize,
}

impl Found {
    /// Where clusters that found this are counted; nowhere if it is not known.
    fn count_of(&mut self, state: Option<&ComplianceState>) -> Option<&mut usize> {
        match state? {
            ComplianceState::Compliant => Some(&mut self.compliant),
            ComplianceState::Pending => Some(&mut self.pending),
            ComplianceState::NonCompliant => Some(&mut self.non_compliant),
            _ => None,
        }
    }

    /// What is true of all, by the same rules as [`compliance_of_all`](crate::status::compliance_of_all).
    fn of_all(self) -> Option<ComplianceState> {
        if self.non_compliant > 0 {
            Some(ComplianceState::NonCompliant)
        } else if self.pending > 0 {
            Some(ComplianceState::Pending)
        } else if self.total > 0 && self.compliant == self.total {
            Some(ComplianceState::Compliant)
        } else {
            None
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
    /// Counts the clusters of a root policy, as its status is after a plan that left nothing to do. Nothing if a
    /// report may change how far a cluster is.
    pub fn new(root: &Policy, replicas: &BTreeMap<Arc<str>, Arc<Replica>>) -> Option<Self> {
        let status = root.status.as_ref()?;
        if status.rollout_status != Some(RolloutStatus::Succeeded) || root.spec.disabled {
            return None;
        }
        let mut tally = Self {
            uid: root.metadata.uid.clone(),
            clusters: HashMap::with_capacity(status.status.len()),
            found: Found::default(),
            compliant: status.compliant.clone(),
        };
        for (place, entry) in status.status.iter().enumerate() {
            // Clusters whose failure was tolerated may still succeed.
            if entry.rollout_status != Some(RolloutStatus::Succeeded) {
                return None;
            }
            let (cluster, replica) = replicas.get_key_value(entry.cluster_name.as_str())?;
            tally.found.total += 1;
            if let Some(count) = tally.found.count_of(entry.compliant.as_ref()) {
                *count += 1;
            }
            let known = Known {
                place,
                compliant: entry.compliant.clone(),
                replica: Arc::clone(replica),
            };
            tally.clusters.insert(Arc::clone(cluster), known);
        }
        // Replicas that belong to nobody are for a plan to remove.
        (tally.clusters.len() == replicas.len()).then_some(tally)
    }

    /// Returns how many clusters there are.
    pub fn clusters(&self) -> usize {
        self.clusters.len()
    }

    /// Counts what some clusters report. Nothing if only a plan can tell what follows; the counts are of no use
    /// then.
    pub fn count(&mut self, reports: &[Arc<Replica>]) -> Option<Counted> {
        let mut patch = vec![json!({"op": "test", "path": "/metadata/uid", "value": self.uid})];
        for replica in reports {
            self.count_one(replica, &mut patch)?;
        }
        let of_all = self.found.of_all();
        if of_all != self.compliant {
            let before = self.compliant.is_some();
            patch.extend(written("/status/compliant", of_all.as_ref(), before));
            self.compliant = of_all;
        }
        if patch.len() == 1 {
            patch.clear();
        }
        Some(Counted { patch })
    }

    fn count_one(&mut self, replica: &Arc<Replica>, patch: &mut Vec<Value>) -> Option<()> {
        let known = self.clusters.get_mut(&replica.cluster)?;
        let is_by_agent = matches!(
            replica.report.rollout_status,
            Some(RolloutStatus::Succeeded | RolloutStatus::Failed)
        );
        if !is_by_agent || !known.replica.is_same_but_for_report(replica) {
            return None;
        }
        known.replica = Arc::clone(replica);
        let (before, now) = (known.compliant.clone(), replica.report.compliant.clone());
        if before == now {
            return Some(());
        }
        let entry = format!("/status/status/{}", known.place);
        patch.push(json!({"op": "test", "path": format!("{entry}/clustername"),
            "value": replica.cluster}));
        let field = format!("{entry}/compliant");
        patch.extend(written(&field, now.as_ref(), before.is_some()));
        if let Some(count) = self.found.count_of(before.as_ref()) {
            *count = count.saturating_sub(1);
        }
        if let Some(count) = self.found.count_of(now.as_ref()) {
            *count += 1;
        }
        known.compliant = now;
        Some(())
    }
}

/// Writes a state, or removes it if there is none any more.
fn written(path: &str, state: Option<&ComplianceState>, was_there: bool) -> Option<Value> {
    match state {
        Some(state) => Some(json!({"op": "add", "path": path, "value": state})),
        None => was_there.then(|| json!({"op": "remove", "path": path})),
    }
}
