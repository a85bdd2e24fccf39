//! How far a policy is, cluster by cluster, for people: what `status` and `why` are made of.
//!
//! It is read off the status of the root policy, which is the authority, and off its replicas.

use std::collections::HashMap;
use std::sync::Arc;

use bellwether_api::policy::{
    ClusterCompliance, ComplianceState, Policy, RolloutStatus, TemplateDetails,
};
use bellwether_placement::rollout::{
    Decision, GroupKey, Hold, Input, Reason, Spent, UnsetConcurrency, VersionState, Wait, round,
};
use jiff::Timestamp;

use crate::binding::Bound;
use crate::propagation::is_released;
use crate::rollout::{Mode, engine_status, exceeded};

/// How far a policy is.
#[derive(Debug, Clone)]
pub struct Report {
    /// How it is rolled out.
    pub mode: Mode,
    /// How far all clusters are.
    pub stage: Option<RolloutStatus>,
    /// When the rollout began.
    pub started: Option<Timestamp>,
    /// What is true of all clusters.
    pub compliant: Option<ComplianceState>,
    /// The clusters in their groups, in order.
    pub groups: Vec<GroupReport>,
    /// The budget of failures that is exceeded.
    pub exceeded: Option<Spent>,
    /// Why nobody is released, if the strategy cannot be understood.
    pub problem: Option<String>,
}

/// How far the clusters of a decision group are.
#[derive(Debug, Clone)]
pub struct GroupReport {
    /// The placement.
    pub placement: Arc<str>,
    /// Which group.
    pub key: GroupKey,
    /// Its clusters by name.
    pub clusters: Vec<ClusterReport>,
}

/// How far a cluster is.
#[derive(Debug, Clone)]
pub struct ClusterReport {
    /// Its name.
    pub name: Arc<str>,
    /// How far the rollout is, in the word of the status; nothing before the hub has said something.
    pub status: Option<RolloutStatus>,
    /// Since when.
    pub since: Option<Timestamp>,
    /// Why it is there.
    pub reason: Reason,
    /// What it found.
    pub compliant: Option<ComplianceState>,
    /// What is not as the policy says: templates and their last messages.
    pub causes: Vec<String>,
}

/// How many clusters are how far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// All of them.
    pub total: usize,
    /// Those that have the version as it is meant, have reported, and soak no more.
    pub done: usize,
    /// Those that failed or timed out.
    pub failing: usize,
    /// Those that wait.
    pub waiting: usize,
}

impl Report {
    /// True if clusters wait because somebody paused the rollout.
    pub fn is_paused(&self) -> bool {
        let mut clusters = self.clusters();
        clusters.any(|it| match &it.reason {
            Reason::Waits(wait) => matches!(**wait, Wait::Held(Hold::Paused | Hold::Aborted)),
            _ => false,
        })
    }

    /// Reports about a root policy that is bound to these clusters and has these replicas.
    pub fn new(
        root: &Policy,
        bound: &Bound,
        replicas: &HashMap<String, Policy>,
        now: Timestamp,
    ) -> Self {
        let mode = Mode::of(root);
        let status = root.status_or_default();
        let entries: HashMap<&str, &ClusterCompliance> = status
            .status
            .iter()
            .map(|it| (it.cluster_name.as_str(), it))
            .collect();
        let decision = decide(&mode, bound, &entries, now);
        let (decision, problem) = match decision {
            Ok(decision) => (decision, mode.problem.clone()),
            Err(problem) => (Decision::default(), Some(problem)),
        };
        let cluster = |name: &Arc<str>| {
            let entry = entries.get(&**name);
            let time = entry.and_then(|it| it.rollout_status_last_transition_time.as_ref());
            let reason = decision.reason(name);
            ClusterReport {
                name: Arc::clone(name),
                status: entry.and_then(|it| it.rollout_status.clone()),
                since: time.map(|time| time.0),
                reason: reason.cloned().unwrap_or(Reason::Queued),
                compliant: entry.and_then(|it| it.compliant.clone()),
                causes: replicas.get(&**name).map(causes).unwrap_or_default(),
            }
        };
        let groups = bound.groups.iter().map(|it| {
            let mut names: Vec<&Arc<str>> = it.group.clusters.iter().collect();
            names.sort_unstable();
            GroupReport {
                placement: Arc::clone(&it.placement),
                key: it.group.key.clone(),
                clusters: names.into_iter().map(cluster).collect(),
            }
        });
        Self {
            groups: groups.collect(),
            stage: status.rollout_status.clone(),
            started: status.rollout_start_time.as_ref().map(|time| time.0),
            compliant: status.compliant.clone(),
            exceeded: decision
                .breached
                .then(|| exceeded(&decision).cloned())
                .flatten(),
            problem,
            mode,
        }
    }

    /// Returns all clusters, group by group.
    pub fn clusters(&self) -> impl Iterator<Item = &ClusterReport> {
        self.groups.iter().flat_map(|it| &it.clusters)
    }

    /// Returns a cluster, with its group.
    pub fn cluster(&self, name: &str) -> Option<(&GroupReport, &ClusterReport)> {
        self.groups.iter().find_map(|group| {
            let found = group.clusters.iter().find(|it| &*it.name == name)?;
            Some((group, found))
        })
    }

    /// Counts how many clusters are how far.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for cluster in self.clusters() {
            counts.total += 1;
            match cluster.reason {
                Reason::Done | Reason::Skipped => counts.done += 1,
                Reason::Failed { .. } | Reason::TimedOut { .. } => counts.failing += 1,
                Reason::Starts | Reason::Waits(_) | Reason::Queued => counts.waiting += 1,
                Reason::Progresses { .. } | Reason::Soaks { .. } => {}
            }
        }
        counts
    }
}

fn decide(
    mode: &Mode,
    bound: &Bound,
    entries: &HashMap<&str, &ClusterCompliance>,
    now: Timestamp,
) -> Result<Decision, String> {
    let strategy = bound.strategy(&mode.strategy);
    let groups = bound.rollout_groups();
    let input = Input {
        unset_concurrency: UnsetConcurrency::One,
        hold: bound.hold(mode),
        ..Input::new(&strategy, &groups, &[], now)
    };
    let standing = |cluster: &Arc<str>| {
        let entry = entries.get(&**cluster);
        let status = entry.and_then(|it| it.rollout_status.as_ref());
        let since = entry.and_then(|it| it.rollout_status_last_transition_time.as_ref());
        match status.filter(|it| is_released(it)) {
            Some(status) => VersionState::Current(engine_status(status), since.map(|time| time.0)),
            None => VersionState::Behind(()),
        }
    };
    let round = round(&input, |cluster, _| standing(cluster));
    let round = round.map_err(|error| error.to_string())?;
    Ok(round.decision)
}

/// What the templates of a replica say that do not comply: their names and last messages.
fn causes(replica: &Policy) -> Vec<String> {
    let details = replica.status.iter().flat_map(|status| &status.details);
    let is_bad = |it: &&TemplateDetails| it.compliant != Some(ComplianceState::Compliant);
    let cause = |it: &TemplateDetails| {
        let name = it.template_meta.as_ref().and_then(|it| it.name.as_deref());
        let message = it.history.first().and_then(|it| it.message.as_deref())?;
        Some(match name {
            Some(name) => format!("{name}: {message}"),
            None => message.to_owned(),
        })
    };
    details.filter(is_bad).filter_map(cause).collect()
}

#[cfg(test)]
mod tests {
    use bellwether_placement::rollout::Group;
    use serde_json::json;

    use super::*;
    use crate::binding::BoundGroup;

    #[test]
    fn every_cluster_says_why_it_is_where_it_is() {
        let root = json!({
            "metadata": {"name": "limits", "namespace": "policies"},
            "spec": {"disabled": false, "remediationAction": "enforce",
                "policy-templates": [{"objectDefinition": {"kind": "ConfigurationPolicy"}}],
                "rolloutStrategy": {"type": "ProgressivePerGroup"}},
            "status": {"rolloutStatus": "Failed", "status": [
                {"clustername": "a", "rolloutStatus": "Succeeded", "compliant": "Compliant",
                    "rolloutStatusLastTransitionTime": "1970-01-01T00:00:00.000000Z"},
                {"clustername": "b", "rolloutStatus": "Failed", "compliant": "NonCompliant",
                    "rolloutStatusLastTransitionTime": "1970-01-01T00:00:00.000000Z"},
                {"clustername": "c", "rolloutStatus": "ToApply"},
            ]},
        });
        let root: Policy = serde_json::from_value(root).unwrap();
        let replica = json!({
            "metadata": {"name": "policies.limits", "namespace": "b"},
            "spec": root.spec,
            "status": {"details": [{"templateMeta": {"name": "cfg"}, "compliant": "NonCompliant",
                "history": [{"message": "NonCompliant; violation - x not found"}]}]},
        });
        let replicas = HashMap::from([("b".to_owned(), serde_json::from_value(replica).unwrap())]);
        let group = |index, clusters: &[&str]| BoundGroup {
            placement: "everywhere".into(),
            index,
            group: Group::new("", index, clusters.iter().copied()),
        };
        let bound = Bound {
            groups: vec![group(0, &["a", "b"]), group(1, &["c"])],
            ..Bound::default()
        };
        let report = Report::new(&root, &bound, &replicas, Timestamp::UNIX_EPOCH);
        let reasons: Vec<String> = report
            .clusters()
            .map(|it| format!("{} {}", it.name, it.reason))
            .collect();
        assert_eq!(
            reasons,
            [
                "a is done",
                "b failed: group 0 has 1 failure, 0 tolerated",
                "c does not start: group 0 has 1 failure, 0 tolerated",
            ]
        );
        let (_, failing) = report.cluster("b").unwrap();
        assert_eq!(
            failing.causes,
            ["cfg: NonCompliant; violation - x not found"]
        );
        let counts = Counts {
            total: 3,
            done: 1,
            failing: 1,
            waiting: 1,
        };
        assert_eq!(report.counts(), counts);
        assert!(report.exceeded.is_some());
    }
}
