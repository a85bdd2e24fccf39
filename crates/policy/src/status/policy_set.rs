//! What a set of policies reports: the policies of its bindings' clusters, and why some say nothing.

use std::collections::BTreeSet;

use bellwether_api::policy::{
    ComplianceState, ExcludedClusters, Policy, PolicySet, PolicySetPlacement, PolicySetStatus,
};

use super::compliance_of_all;

/// What a set is judged by.
#[derive(Debug)]
pub struct SetObserved<'a> {
    /// The set.
    pub set: &'a PolicySet,
    /// The bindings of the set: what the status says about them.
    pub placements: Vec<PolicySetPlacement>,
    /// The clusters that they select.
    pub clusters: BTreeSet<String>,
    /// Its policies, in order.
    pub members: Vec<Member<'a>>,
}

/// A policy that a set names.
#[derive(Debug)]
pub struct Member<'a> {
    /// Its name.
    pub name: &'a str,
    /// The policy, if it exists.
    pub policy: Option<&'a Policy>,
}

/// Reports about a set.
pub fn set_status(observed: &SetObserved<'_>) -> PolicySetStatus {
    if observed.members.is_empty() {
        return PolicySetStatus::default();
    }
    let excluded = |policy: &str| -> BTreeSet<&str> {
        let exclusions = observed.set.spec.exclusions.iter();
        let own = exclusions.filter(|it| it.policy_name == policy);
        own.flat_map(|it| it.cluster_names.iter().map(String::as_str))
            .collect()
    };
    let mut states = Vec::new();
    let (mut pending, mut disabled, mut silent, mut deleted) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for member in &observed.members {
        let Some(policy) = member.policy else {
            deleted.push(member.name);
            continue;
        };
        if policy.spec.disabled {
            disabled.push(member.name);
            continue;
        }
        match compliance(policy, &observed.clusters, &excluded(member.name)) {
            Some(ComplianceState::Pending) => {
                pending.push(member.name);
                states.push(Some(ComplianceState::Pending));
            }
            Some(state) => states.push(Some(state)),
            None => {
                silent.push(member.name);
                states.push(None);
            }
        }
    }
    let parts = [
        ("Policies awaiting pending dependencies", &pending),
        ("Disabled policies", &disabled),
        ("No status provided while awaiting policy status", &silent),
        ("Deleted policies", &deleted),
    ];
    let texts = parts.iter().filter(|(_, names)| !names.is_empty());
    let mut texts: Vec<String> = texts
        .map(|(what, names)| format!("{what}: {}", names.join(", ")))
        .collect();
    if texts.is_empty() {
        texts.push("All policies are reporting status".to_owned());
    }
    let exclusions = exclusions(observed);
    if !exclusions.is_empty() {
        texts.push(
            "One or more policies were excluded. For details, see status.exclusions.".to_owned(),
        );
    }
    // A policy that is missing has not reported: the set cannot be compliant without it.
    let is_known = silent.is_empty() && deleted.is_empty();
    let compliant = compliance_of_all(states.iter().map(Option::as_ref));
    PolicySetStatus {
        placement: observed.placements.clone(),
        compliant: compliant.filter(|state| is_known || *state != ComplianceState::Compliant),
        status_message: Some(texts.join("; ")),
        exclusions,
        ..PolicySetStatus::default()
    }
}

/// What the clusters of the set report about a policy: those that are silent do not count if others report.
fn compliance(
    policy: &Policy,
    clusters: &BTreeSet<String>,
    excluded: &BTreeSet<&str>,
) -> Option<ComplianceState> {
    let entries = policy.status.iter().flat_map(|status| &status.status);
    let states = entries
        .filter(|it| {
            clusters.contains(&it.cluster_name) && !excluded.contains(it.cluster_name.as_str())
        })
        .filter_map(|it| it.compliant.as_ref());
    compliance_of_all(states.map(Some))
}

fn exclusions(observed: &SetObserved<'_>) -> Vec<ExcludedClusters> {
    let exclusions = observed.set.spec.exclusions.iter();
    let selected = exclusions.map(|it| ExcludedClusters {
        policy_name: it.policy_name.clone(),
        clusters: it
            .cluster_names
            .iter()
            .filter(|name| observed.clusters.contains(*name))
            .cloned()
            .collect(),
        ..ExcludedClusters::default()
    });
    selected.filter(|it| !it.clusters.is_empty()).collect()
}
