//! Which clusters a policy goes to.
//!
//! A PlacementBinding names a placement and policies, or sets of policies. [`resolve`] looks at all bindings of
//! a namespace for one policy. Clusters of bindings with `subFilter: restricted` count only where another
//! binding selects them as well: such a binding adds an override, never a cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bellwether_api::cluster;
use bellwether_api::policy::{
    APPS_GROUP, ExcludedCluster, GROUP, PlacementBinding, PlacementRule, PlacementSubject,
    PolicyPlacement, PolicySet, RemediationAction, SubFilter,
};
use bellwether_placement::rollout::{Chosen, Group, GroupKey, Hold, MandatoryGroup, Strategy};

use crate::rollout::Mode;

/// Everything that decides to which clusters a policy goes.
#[derive(Clone, Copy)]
pub struct Bindings<'a> {
    /// Name of the policy.
    pub policy: &'a str,
    /// The bindings of its namespace.
    pub bindings: &'a [Arc<PlacementBinding>],
    /// The sets of its namespace by name.
    pub set: &'a dyn Fn(&str) -> Option<Arc<PolicySet>>,
    /// What a placement of its namespace selects; nothing if it does not exist.
    pub selected: &'a dyn Fn(&PlacementSubject) -> Option<Chosen>,
}

impl std::fmt::Debug for Bindings<'_> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Bindings")
            .field("policy", &self.policy)
            .finish_non_exhaustive()
    }
}

/// The clusters that a policy goes to.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Bound {
    /// What the status of the policy says about bindings.
    pub placements: Vec<PolicyPlacement>,
    /// The clusters in their groups: placement by placement, each cluster once.
    pub groups: Vec<BoundGroup>,
    /// Clusters where a binding enforces a policy that informs elsewhere.
    pub overrides: BTreeMap<Arc<str>, RemediationAction>,
    /// Placements whose decisions have not all been seen.
    pub unsettled: BTreeSet<String>,
}

/// A decision group of one of the placements.
#[derive(Debug, Clone, PartialEq)]
pub struct BoundGroup {
    /// Name of the placement.
    pub placement: Arc<str>,
    /// Its index in that placement.
    pub index: i64,
    /// The group. Its index counts the groups of all placements if there are several.
    pub group: Group,
}

impl Bound {
    /// Returns all clusters, group by group.
    pub fn clusters(&self) -> impl Iterator<Item = &Arc<str>> {
        self.groups.iter().flat_map(|it| &it.group.clusters)
    }

    /// Returns what a binding overrides on a cluster. While a policy is rolled out step by step, nothing.
    pub fn override_of(&self, cluster: &str, mode: &Mode) -> Option<&RemediationAction> {
        let action = self.overrides.get(cluster);
        action.filter(|_| !mode.is_progressive)
    }

    /// Returns why no further cluster may be released: somebody decided so, or it is not known yet who goes
    /// first.
    pub fn hold(&self, mode: &Mode) -> Option<Hold> {
        let unsettled = (!self.unsettled.is_empty()).then_some(Hold::Unsettled);
        mode.hold.or(unsettled).filter(|_| mode.is_progressive)
    }

    /// Returns the groups as a rollout takes them.
    pub fn rollout_groups(&self) -> Vec<Group> {
        self.groups.iter().map(|it| it.group.clone()).collect()
    }

    /// Rewrites the mandatory groups of a strategy: a name or an index means that group of every placement.
    #[must_use]
    pub fn strategy(&self, strategy: &Strategy) -> Strategy {
        let is_named = |wanted: &MandatoryGroup, it: &BoundGroup| {
            if wanted.group_name.is_empty() {
                wanted.group_index == it.index
            } else {
                *wanted.group_name == *it.group.key.name
            }
        };
        let groups = strategy
            .mandatory_decision_groups
            .iter()
            .flat_map(|wanted| {
                let found = self.groups.iter().filter(move |it| is_named(wanted, it));
                found.map(|it| MandatoryGroup {
                    group_name: String::new(),
                    group_index: it.group.key.index,
                })
            });
        Strategy {
            mandatory_decision_groups: groups.collect(),
            ..strategy.clone()
        }
    }
}

/// Finds the clusters that a policy goes to.
pub fn resolve(observed: &Bindings<'_>) -> Bound {
    let mut uses: Vec<Use<'_>> = observed
        .bindings
        .iter()
        .filter_map(|binding| Use::of(observed, binding))
        .collect();
    uses.sort_by(|a, b| a.name().cmp(b.name()));
    let groups = groups(&uses);
    let clusters: BTreeSet<&Arc<str>> = groups.iter().flat_map(|it| &it.group.clusters).collect();
    let mut placements: Vec<PolicyPlacement> = uses
        .iter()
        .filter(|it| !it.is_restricted() || it.clusters().any(|one| clusters.contains(one)))
        .flat_map(Use::entries)
        .collect();
    placements.sort_by_cached_key(sort_key);
    // Ordinary bindings decide before restricted ones, each in the order of names.
    let (restricted, ordinary): (Vec<_>, Vec<_>) = uses.iter().partition(|it| it.is_restricted());
    let mut overrides = BTreeMap::new();
    for one in ordinary.into_iter().chain(restricted) {
        let Some(action) = one.override_action() else {
            continue;
        };
        for cluster in one.clusters().filter(|it| clusters.contains(it)) {
            let entry = overrides.entry(Arc::clone(cluster));
            entry.or_insert_with(|| action.clone());
        }
    }
    Bound {
        placements,
        groups,
        overrides,
        unsettled: unsettled(&uses),
    }
}

/// The placements whose decisions have not all been seen. Restricted bindings add no clusters to a rollout.
fn unsettled(uses: &[Use<'_>]) -> BTreeSet<String> {
    let ordinary = uses.iter().filter(|it| !it.is_restricted());
    let is_unsettled = |it: &&Use<'_>| it.selected.as_ref().is_some_and(|it| !it.is_settled);
    let placements = ordinary.filter(is_unsettled);
    placements
        .map(|it| it.binding.placement_ref.name.clone())
        .collect()
}

/// A binding as far as it concerns the policy.
struct Use<'a> {
    binding: &'a PlacementBinding,
    /// True if it names the policy itself.
    is_direct: bool,
    /// The sets that it names and that have the policy, with the clusters that they exclude.
    sets: Vec<(&'a str, BTreeSet<String>)>,
    /// What its placement selects; nothing if there is no such placement.
    selected: Option<Chosen>,
}

impl<'a> Use<'a> {
    fn of(observed: &Bindings<'a>, binding: &'a PlacementBinding) -> Option<Self> {
        let reference = &binding.placement_ref;
        if !is_placement(reference) && !is_rule(reference) {
            return None;
        }
        let mut is_direct = false;
        let mut sets: Vec<(&str, BTreeSet<String>)> = Vec::new();
        for subject in binding.subjects.iter().filter(|it| it.api_group == GROUP) {
            match subject.kind.as_str() {
                "Policy" => is_direct |= subject.name == observed.policy,
                "PolicySet" if !sets.iter().any(|(name, _)| *name == subject.name) => {
                    let set = (observed.set)(&subject.name);
                    if let Some(set) = set.filter(|set| has_policy(set, observed.policy)) {
                        sets.push((&subject.name, excluded(&set, observed.policy)));
                    }
                }
                _ => {}
            }
        }
        (is_direct || !sets.is_empty()).then(|| Self {
            binding,
            is_direct,
            sets,
            selected: (observed.selected)(reference),
        })
    }

    fn name(&self) -> &'a str {
        self.binding.metadata.name.as_deref().unwrap_or_default()
    }

    fn is_restricted(&self) -> bool {
        self.binding.sub_filter == Some(SubFilter::Restricted)
    }

    fn override_action(&self) -> Option<&'a RemediationAction> {
        let overrides = self.binding.binding_overrides.as_ref()?;
        let action = overrides.remediation_action.as_ref()?;
        action.is_enforce().then_some(action)
    }

    /// True if the binding selects a cluster of its placement: not all of its subjects exclude it.
    fn is_selected(&self, cluster: &str) -> bool {
        self.is_direct || self.sets.iter().any(|(_, out)| !out.contains(cluster))
    }

    fn clusters(&self) -> impl Iterator<Item = &Arc<str>> {
        let groups = self.selected.iter().flat_map(|chosen| &chosen.groups);
        let clusters = groups.flat_map(|group| &group.clusters);
        clusters.filter(|it| self.is_selected(it))
    }

    /// What the status says about it: one entry for the policy, and one for each set.
    fn entries(&self) -> Vec<PolicyPlacement> {
        let reference = &self.binding.placement_ref;
        let name = self.selected.is_some().then(|| reference.name.clone());
        let (placement, placement_rule) = if is_placement(reference) {
            (name, None)
        } else {
            (None, name)
        };
        let entry = PolicyPlacement {
            placement_binding: Some(self.name().to_owned()),
            placement,
            placement_rule,
            ..PolicyPlacement::default()
        };
        let of_set = |(set, out): &(&str, BTreeSet<String>)| {
            let names: BTreeSet<&str> = self.selected.iter().flat_map(Chosen::clusters).collect();
            let exclusion = |cluster: &str| ExcludedCluster {
                cluster_name: cluster.to_owned(),
                ..ExcludedCluster::default()
            };
            PolicyPlacement {
                policy_set: Some((*set).to_owned()),
                exclusions: names
                    .into_iter()
                    .filter(|it| out.contains(*it))
                    .map(exclusion)
                    .collect(),
                ..entry.clone()
            }
        };
        let sets: Vec<_> = self.sets.iter().map(of_set).collect();
        let direct = self.is_direct.then_some(entry);
        direct.into_iter().chain(sets).collect()
    }
}

fn is_placement(reference: &PlacementSubject) -> bool {
    reference.api_group == cluster::GROUP && reference.kind == "Placement"
}

/// True if a reference names a PlacementRule.
pub fn is_rule(reference: &PlacementSubject) -> bool {
    reference.api_group == APPS_GROUP && reference.kind == "PlacementRule"
}

/// Reads the decisions of a PlacementRule as one group without a name. All of them are in one object.
pub fn chosen_by_rule(rule: &PlacementRule) -> Chosen {
    let decisions = rule.status.iter().flat_map(|status| &status.decisions);
    let clusters = decisions.map(|it| it.cluster_name.as_str());
    Chosen::from(vec![Group::new("", 0, clusters)])
}

/// True if a set lists a policy.
pub fn has_policy(set: &PolicySet, policy: &str) -> bool {
    set.spec.policies.iter().any(|name| name == policy)
}

fn excluded(set: &PolicySet, policy: &str) -> BTreeSet<String> {
    let exclusions = set.spec.exclusions.iter();
    let own = exclusions.filter(|it| it.policy_name == policy);
    own.flat_map(|it| it.cluster_names.iter().cloned())
        .collect()
}

/// What entries of the status are sorted by.
fn sort_key(entry: &PolicyPlacement) -> String {
    let text = |value: &Option<String>| value.clone().unwrap_or_default();
    [
        text(&entry.placement_binding),
        text(&entry.placement),
        text(&entry.placement_rule),
        text(&entry.policy_set),
    ]
    .join(" ")
}

/// The groups of all placements, in the order of their names. Of a cluster that is in several, the first counts.
fn groups(uses: &[Use<'_>]) -> Vec<BoundGroup> {
    let mut placements: BTreeMap<(&str, &str), Vec<&Use<'_>>> = BTreeMap::new();
    for one in uses.iter().filter(|it| !it.is_restricted()) {
        let reference = &one.binding.placement_ref;
        let key = (reference.name.as_str(), reference.kind.as_str());
        placements.entry(key).or_default().push(one);
    }
    let has_several = placements.len() > 1;
    let mut seen = BTreeSet::new();
    let mut groups = Vec::new();
    for ((placement, _), uses) in &placements {
        // All of them name the same placement, so that they have the same groups.
        let selected = uses.first().and_then(|one| one.selected.as_ref());
        for group in selected.into_iter().flat_map(|chosen| &chosen.groups) {
            let is_selected = |cluster: &&Arc<str>| uses.iter().any(|it| it.is_selected(cluster));
            let clusters: Vec<Arc<str>> = group
                .clusters
                .iter()
                .filter(is_selected)
                .filter(|cluster| seen.insert(Arc::clone(cluster)))
                .cloned()
                .collect();
            if clusters.is_empty() {
                continue;
            }
            let index = if has_several {
                i64::try_from(groups.len()).unwrap_or(i64::MAX)
            } else {
                group.key.index
            };
            let key = GroupKey {
                name: Arc::clone(&group.key.name),
                index,
            };
            groups.push(BoundGroup {
                placement: (*placement).into(),
                index: group.key.index,
                group: Group { key, clusters },
            });
        }
    }
    groups
}

#[cfg(test)]
mod tests;
