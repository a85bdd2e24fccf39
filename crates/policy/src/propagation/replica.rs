//! What has to be known of a replica that exists. A hub has many of them, so this is much smaller than the
//! object.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_api::policy::names::{annotation, label};
use bellwether_api::policy::{
    ComplianceState, Policy, PolicyStatus, RemediationAction, RolloutStatus,
};
use jiff::Timestamp;

use super::{Fingerprint, version_id};

/// A replica as far as decisions look at it.
#[derive(Debug, Clone, PartialEq)]
pub struct Replica {
    /// The cluster: the namespace of the replica.
    pub cluster: Arc<str>,
    /// Identifies the object.
    pub uid: Option<String>,
    /// Identifies its state.
    pub resource_version: Option<String>,
    /// Counts the changes of its spec.
    pub generation: i64,
    /// True once it is being deleted.
    pub is_deleting: bool,
    /// True if its labels name the cluster whose namespace it is in.
    pub(super) is_addressed: bool,
    pub(super) labels: Fingerprint,
    pub(super) annotations: Fingerprint,
    pub(super) spec: Fingerprint,
    /// What it does about violations.
    pub remediation_action: Option<RemediationAction>,
    /// Identifies the version that its spec is.
    pub version: Fingerprint,
    /// The version that it names, while it is rolled out step by step.
    pub version_named: Option<String>,
    pub(super) vector: Option<String>,
    /// What its cluster reports.
    pub report: Report,
}

/// What a cluster reports on a replica.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Report {
    /// What the evaluation found.
    pub compliant: Option<ComplianceState>,
    /// What hub and agent write about the rollout.
    pub rollout_status: Option<RolloutStatus>,
    /// When that changed last.
    pub since: Option<Timestamp>,
    /// The generation that was evaluated.
    pub observed_generation: Option<i64>,
    /// When something was reported last.
    pub newest: Option<Timestamp>,
}

/// What a cluster found about the version that it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Evaluation {
    /// It has not reported about this version.
    Unknown,
    /// It waits for dependencies.
    Pending,
    /// Everything is as the policy says.
    Compliant,
    /// Something is not as the policy says.
    NonCompliant,
}

/// Labels without those that name the cluster, which are the only ones that differ.
pub(super) fn labels_print(labels: &BTreeMap<String, String>) -> Fingerprint {
    let is_common = |(key, _): &(&String, &String)| {
        ![label::CLUSTER_NAME, label::CLUSTER_NAMESPACE].contains(&key.as_str())
    };
    let common: BTreeMap<_, _> = labels.iter().filter(is_common).collect();
    Fingerprint::of(&common)
}

/// Annotations without those that name the version and the vector of a cluster.
pub(super) fn annotations_print(annotations: &BTreeMap<String, String>) -> Fingerprint {
    let is_common = |(key, _): &(&String, &String)| {
        ![annotation::ROLLOUT_HASH, annotation::ENCRYPTION_IV].contains(&key.as_str())
    };
    let common: BTreeMap<_, _> = annotations.iter().filter(is_common).collect();
    Fingerprint::of(&common)
}

impl Replica {
    /// Reads a replica.
    pub fn of(policy: &Policy) -> Self {
        let metadata = &policy.metadata;
        let nothing = BTreeMap::new();
        let labels = metadata.labels.as_ref().unwrap_or(&nothing);
        let annotations = metadata.annotations.as_ref().unwrap_or(&nothing);
        let cluster = metadata.namespace.as_deref().unwrap_or_default();
        let names_cluster = |key: &str| labels.get(key).is_some_and(|it| it == cluster);
        Self {
            cluster: cluster.into(),
            uid: metadata.uid.clone(),
            resource_version: metadata.resource_version.clone(),
            generation: metadata.generation.unwrap_or_default(),
            is_deleting: metadata.deletion_timestamp.is_some(),
            is_addressed: names_cluster(label::CLUSTER_NAME)
                && names_cluster(label::CLUSTER_NAMESPACE),
            labels: labels_print(labels),
            annotations: annotations_print(annotations),
            spec: Fingerprint::of(&policy.spec),
            remediation_action: policy.spec.remediation_action.clone(),
            version: version_id(&policy.spec),
            version_named: annotations.get(annotation::ROLLOUT_HASH).cloned(),
            vector: annotations.get(annotation::ENCRYPTION_IV).cloned(),
            report: policy.status.as_ref().map(Report::of).unwrap_or_default(),
        }
    }

    /// Returns the initialisation vector of its encrypted values.
    pub fn vector(&self) -> Option<&str> {
        self.vector.as_deref()
    }

    /// True if nothing differs that a decision looks at.
    pub fn is_equivalent(&self, other: &Self) -> bool {
        let report = |it: &Self| Report {
            newest: None,
            ..it.report.clone()
        };
        let is_time_asked = |it: &Self| it.report.observed_generation.is_none();
        self.is_same_but_for_report(other)
            && report(self) == report(other)
            && (self.report.newest == other.report.newest
                || !(is_time_asked(self) || is_time_asked(other)))
    }

    /// True if nothing differs but what the cluster reports.
    pub fn is_same_but_for_report(&self, other: &Self) -> bool {
        self.uid == other.uid
            && self.generation == other.generation
            && self.is_deleting == other.is_deleting
            && self.is_addressed == other.is_addressed
            && self.labels == other.labels
            && self.annotations == other.annotations
            && self.spec == other.spec
            && self.version_named == other.version_named
            && self.vector == other.vector
    }

    /// Returns what the cluster found about its present version, which it has had since that time.
    ///
    /// An agent that says which generation it evaluated is believed by that. Otherwise it is believed by the
    /// times of what it reports, which are cut to seconds.
    pub fn evaluation(&self, since: Timestamp) -> Evaluation {
        let report = &self.report;
        let is_after =
            |time: Option<Timestamp>| time.is_some_and(|it| it.as_second() >= since.as_second());
        let agent_wrote = matches!(
            report.rollout_status,
            Some(RolloutStatus::Succeeded | RolloutStatus::Failed)
        );
        let is_believed = match report.observed_generation {
            Some(generation) => generation == self.generation,
            None => (agent_wrote && is_after(report.since)) || is_after(report.newest),
        };
        if !is_believed {
            return Evaluation::Unknown;
        }
        match report.compliant {
            Some(ComplianceState::Compliant) => Evaluation::Compliant,
            Some(ComplianceState::NonCompliant) => Evaluation::NonCompliant,
            Some(ComplianceState::Pending) => Evaluation::Pending,
            _ => Evaluation::Unknown,
        }
    }

    /// True if what the replica says about the rollout is about its present generation.
    pub fn is_rollout_status_current(&self, since: Timestamp) -> bool {
        match self.report.observed_generation {
            Some(generation) => generation == self.generation,
            None => self.report.since.is_some_and(|it| it >= since),
        }
    }
}

impl Report {
    fn of(status: &PolicyStatus) -> Self {
        let histories = status.details.iter().flat_map(|it| &it.history);
        let known = |state: &&ComplianceState| **state != ComplianceState::Unknown;
        Self {
            compliant: status.compliant.as_ref().filter(known).cloned(),
            rollout_status: status.rollout_status.clone(),
            since: status
                .rollout_status_last_transition_time
                .as_ref()
                .map(|time| time.0),
            observed_generation: status.observed_generation,
            newest: histories
                .filter_map(|it| it.last_timestamp.as_ref())
                .map(|time| time.0)
                .max(),
        }
    }
}
