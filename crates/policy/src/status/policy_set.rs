//! What a set of policies reports: the policies of its bindings' clusters, and why some say nothing.
//!
//! A [`SetTally`] counts what the clusters report about each policy, so that one report costs the same however many
//! clusters and policies the set has.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use bellwether_api::policy::{
    ComplianceState, ExcludedClusters, PolicySet, PolicySetPlacement, PolicySetStatus,
};

use super::{Found, compliance_of_all};

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
    /// What is known of it.
    pub state: MemberState,
}

/// What is known of a policy that a set names.
#[derive(Debug)]
pub enum MemberState {
    /// It does not exist.
    Missing,
    /// It is disabled.
    Disabled,
    /// Clusters report this.
    Reported(Vec<(Arc<str>, ComplianceState)>),
}

/// What the clusters of a set report about its policies, counted.
#[derive(Debug)]
pub struct SetTally {
    placements: Vec<PolicySetPlacement>,
    exclusions: Vec<ExcludedClusters>,
    clusters: BTreeSet<String>,
    members: Vec<Counted>,
    /// Where members of a name are.
    places: HashMap<String, Vec<usize>>,
}

/// What is known of one policy.
#[derive(Debug)]
struct Counted {
    name: String,
    kind: Kind,
    excluded: BTreeSet<String>,
    /// What clusters of the set report. Those that are silent do not count if others report.
    reports: HashMap<Arc<str>, ComplianceState>,
    found: Found,
}

#[derive(Debug, PartialEq, Eq)]
enum Kind {
    Missing,
    Disabled,
    Active,
}

impl Counted {
    fn set(&mut self, cluster: &Arc<str>, state: Option<&ComplianceState>) {
        let before = match state {
            Some(state) => self.reports.insert(Arc::clone(cluster), state.clone()),
            None => self.reports.remove(cluster),
        };
        self.found.replace(before.as_ref(), state);
        self.found.total = self.reports.len();
    }
}

impl SetTally {
    /// Counts everything.
    pub fn new(observed: SetObserved<'_>) -> Self {
        let exclusions = exclusions(&observed);
        let mut places: HashMap<String, Vec<usize>> = HashMap::new();
        let mut members = Vec::with_capacity(observed.members.len());
        let mut reported = Vec::new();
        for (place, member) in observed.members.into_iter().enumerate() {
            let exclusions = observed.set.spec.exclusions.iter();
            let own = exclusions.filter(|it| it.policy_name == member.name);
            let kind = match member.state {
                MemberState::Missing => Kind::Missing,
                MemberState::Disabled => Kind::Disabled,
                MemberState::Reported(reports) => {
                    reported.push((member.name, reports));
                    Kind::Active
                }
            };
            let name = member.name.to_owned();
            places.entry(name.clone()).or_default().push(place);
            members.push(Counted {
                name,
                kind,
                excluded: own.flat_map(|it| it.cluster_names.clone()).collect(),
                reports: HashMap::new(),
                found: Found::default(),
            });
        }
        let mut tally = Self {
            placements: observed.placements,
            exclusions,
            clusters: observed.clusters,
            members,
            places,
        };
        for (policy, reports) in reported {
            for (cluster, state) in reports {
                tally.report(policy, &cluster, Some(&state));
            }
        }
        tally
    }

    /// Takes in what a cluster reports about a policy. Returns true if that changes what is said of the set.
    pub fn report(
        &mut self,
        policy: &str,
        cluster: &Arc<str>,
        state: Option<&ComplianceState>,
    ) -> bool {
        if !self.clusters.contains(&**cluster) {
            return false;
        }
        let mut is_changed = false;
        for place in self.places.get(policy).into_iter().flatten() {
            let Some(member) = self.members.get_mut(*place) else {
                continue;
            };
            if !member.excluded.contains(&**cluster) {
                let before = member.found.of_all();
                member.set(cluster, state);
                is_changed |= member.kind == Kind::Active && member.found.of_all() != before;
            }
        }
        is_changed
    }

    /// Reports about the set.
    pub fn status(&self) -> PolicySetStatus {
        if self.members.is_empty() {
            return PolicySetStatus::default();
        }
        let mut states = Vec::new();
        let (mut pending, mut disabled, mut silent, mut deleted) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for member in &self.members {
            let name = member.name.as_str();
            match (&member.kind, member.found.of_all()) {
                (Kind::Missing, _) => deleted.push(name),
                (Kind::Disabled, _) => disabled.push(name),
                (Kind::Active, state) => {
                    match state {
                        Some(ComplianceState::Pending) => pending.push(name),
                        None => silent.push(name),
                        Some(_) => {}
                    }
                    states.push(state);
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
        if !self.exclusions.is_empty() {
            texts.push(
                "One or more policies were excluded. For details, see status.exclusions."
                    .to_owned(),
            );
        }
        // A policy that is missing has not reported: the set cannot be compliant without it.
        let is_known = silent.is_empty() && deleted.is_empty();
        let compliant = compliance_of_all(states.iter().map(Option::as_ref));
        PolicySetStatus {
            placement: self.placements.clone(),
            compliant: compliant.filter(|state| is_known || *state != ComplianceState::Compliant),
            status_message: Some(texts.join("; ")),
            exclusions: self.exclusions.clone(),
            ..PolicySetStatus::default()
        }
    }

    /// Returns the names of policies that do not exist.
    pub fn missing(&self) -> impl Iterator<Item = &str> {
        let members = self.members.iter();
        let missing = members.filter(|it| it.kind == Kind::Missing);
        missing.map(|it| it.name.as_str())
    }
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const CLUSTERS: [&str; 3] = ["a", "b", "c"];

    fn set(exclusions: &serde_json::Value) -> PolicySet {
        let set = json!({
            "metadata": {"name": "s", "namespace": "n"},
            "spec": {"policies": ["one", "two", "three"], "exclusions": exclusions},
        });
        serde_json::from_value(set).unwrap()
    }

    fn reported(reports: &[(&str, ComplianceState)]) -> MemberState {
        let reports = reports.iter();
        let reports = reports.map(|(cluster, state)| (Arc::from(*cluster), state.clone()));
        MemberState::Reported(reports.collect())
    }

    fn tally(set: &PolicySet, states: Vec<MemberState>) -> SetTally {
        let names = set.spec.policies.iter();
        SetTally::new(SetObserved {
            set,
            placements: Vec::new(),
            clusters: CLUSTERS.iter().map(|it| (*it).to_owned()).collect(),
            members: names
                .zip(states)
                .map(|(name, state)| Member { name, state })
                .collect(),
        })
    }

    #[track_caller]
    fn check(members: Vec<MemberState>, compliant: Option<&ComplianceState>, message: &str) {
        let status = tally(&set(&json!([])), members).status();
        assert_eq!(status.status_message.as_deref(), Some(message));
        assert_eq!(status.compliant.as_ref(), compliant);
    }

    #[test]
    fn a_set_says_why_policies_are_silent() {
        use ComplianceState::{Compliant, NonCompliant, Pending};
        let good = || reported(&[("a", Compliant)]);
        check(
            vec![good(), good(), good()],
            Some(&Compliant),
            "All policies are reporting status",
        );
        check(
            vec![good(), MemberState::Missing, MemberState::Disabled],
            None,
            "Disabled policies: three; Deleted policies: two",
        );
        check(
            vec![reported(&[("a", Pending)]), reported(&[]), good()],
            Some(&Pending),
            "Policies awaiting pending dependencies: one; No status provided while awaiting policy status: two",
        );
        check(
            vec![
                reported(&[("a", Compliant), ("b", NonCompliant)]),
                MemberState::Missing,
                good(),
            ],
            Some(&NonCompliant),
            "Deleted policies: two",
        );
        // A cluster that the set is not bound to does not count.
        check(
            vec![
                reported(&[("a", Compliant), ("z", NonCompliant)]),
                good(),
                good(),
            ],
            Some(&Compliant),
            "All policies are reporting status",
        );
    }

    #[test]
    fn excluded_clusters_do_not_count() {
        let exclusions = json!([{"policyName": "one", "clusterNames": ["a", "elsewhere"]}]);
        let good = || reported(&[("b", ComplianceState::Compliant)]);
        let bad = reported(&[
            ("a", ComplianceState::NonCompliant),
            ("b", ComplianceState::Compliant),
        ]);
        let mut tally = tally(&set(&exclusions), vec![bad, good(), good()]);
        let status = tally.status();
        assert_eq!(status.compliant, Some(ComplianceState::Compliant));
        assert_eq!(status.exclusions[0].clusters, ["a"]);
        let report = Some(&ComplianceState::NonCompliant);
        assert!(!tally.report("one", &Arc::from("a"), report));
        assert!(tally.report("two", &Arc::from("a"), report));
    }

    proptest! {
        #[test]
        fn counting_one_by_one_comes_to_the_same_as_counting_all(
            reports in proptest::collection::vec((0..3_usize, 0..4_usize, 0..4_usize), 0..20),
        ) {
            let set = set(&json!([{"policyName": "two", "clusterNames": ["b"]}]));
            let nothing = || vec![reported(&[]), reported(&[]), reported(&[])];
            let mut counted = tally(&set, nothing());
            let mut all: Vec<HashMap<&str, ComplianceState>> = vec![HashMap::new(); 3];
            for (policy, cluster, state) in reports {
                let cluster = ["a", "b", "c", "elsewhere"][cluster];
                let state = [
                    Some(ComplianceState::Compliant),
                    Some(ComplianceState::NonCompliant),
                    Some(ComplianceState::Pending),
                    None,
                ][state].clone();
                let before = counted.status();
                let name = &set.spec.policies[policy];
                let is_news = counted.report(name, &Arc::from(cluster), state.as_ref());
                match state {
                    Some(state) => drop(all[policy].insert(cluster, state)),
                    None => drop(all[policy].remove(cluster)),
                }
                prop_assert!(is_news || counted.status() == before);
            }
            let states = all.iter().map(|it| {
                let reports: Vec<_> = it.iter().map(|(name, state)| (*name, state.clone())).collect();
                reported(&reports)
            });
            prop_assert_eq!(counted.status(), tally(&set, states.collect()).status());
        }
    }
}
