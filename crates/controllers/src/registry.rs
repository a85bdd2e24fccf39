//! The controllers of a hub and its admission, one line each: `--controllers`, help, readiness and the
//! rights of an installation are made from these lists; an embedded API server and the webhook server call
//! the admission.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Debug};
use std::sync::Arc;

use bellwether_api::admission::Admission;
use bellwether_application::admission::ApplicationAdmission;
use bellwether_application::configuration::apply_once::ApplyOnce;
use bellwether_placement::admission::FleetAdmission;
use bellwether_policy::admission::PolicyAdmission;
use bellwether_work::admission::WorkAdmission;
use bellwether_workflow::admission::WorkflowAdmission;
use futures::future::BoxFuture;
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::Resource;
use serde::de::DeserializeOwned;

use crate::hub::Hub;
use crate::rights::{DEFINITIONS, IN_SYSTEM_NAMESPACE, LEASE};

/// All controllers of a hub.
pub const HUB: &[Entry] = &[
    crate::application::ENTRY,
    crate::application_configuration::ENTRY,
    crate::registration::requests::ENTRY,
    crate::cluster_set::ENTRY,
    crate::component::ENTRY,
    crate::definition::ENTRY,
    crate::distribution::ENTRY,
    crate::template::HELM_ENTRY,
    crate::template::KUSTOMIZE_ENTRY,
    crate::placement::ENTRY,
    crate::policy_propagator::ENTRY,
    crate::registration::clusters::ENTRY,
    crate::replica_set::ENTRY,
    crate::rollout::ENTRY,
    crate::work_config::ENTRY,
    crate::work_ttl::ENTRY,
    crate::workflow_run::ENTRY,
];

/// All rules that writes to a hub have to pass. The embedded API server calls them itself; for a real
/// one the webhook server does.
pub fn admission() -> Vec<Arc<dyn Admission>> {
    vec![
        Arc::new(ApplicationAdmission::default()),
        Arc::new(FleetAdmission),
        Arc::new(PolicyAdmission),
        Arc::new(WorkAdmission),
        Arc::new(WorkflowAdmission),
    ]
}

/// A controller of a hub.
#[derive(Debug, Clone, Copy)]
pub struct Entry {
    /// Its name on the command line, in logs and in metrics.
    pub name: &'static str,
    /// What it does, in one line.
    pub about: &'static str,
    /// The kinds that it reads from shared caches. A process that stands by has them ready.
    pub watches: &'static [Watched],
    /// The requests that it makes in all namespaces besides reading these kinds.
    pub rights: &'static [Rule],
    /// Runs it until it is dropped.
    pub run: fn(Hub, &HubOptions) -> BoxFuture<'static, ()>,
}

impl Entry {
    /// Starts the shared caches of this controller. Must be called within a tokio runtime.
    pub fn start_caches(&self, hub: &Hub) {
        for watched in self.watches {
            (watched.start)(hub);
        }
    }

    /// Returns the rules of a ClusterRole that suffices for this controller.
    pub fn rules(&self) -> Vec<PolicyRule> {
        let watched = self.watches.iter().map(|watched| {
            let (group, plural) = (watched.resource)();
            rule(&group, &[&plural], READ)
        });
        watched.chain(to_rules(self.rights)).collect()
    }

    /// Returns the rules of a Role in [`crate::rights::SYSTEM_NAMESPACE`] that this controller needs besides.
    pub fn system_rules(&self) -> Vec<PolicyRule> {
        let needed = IN_SYSTEM_NAMESPACE.iter();
        let own = needed.filter(|(name, _)| *name == self.name);
        own.flat_map(|(_, rights)| to_rules(rights)).collect()
    }
}

/// A kind that a controller reads from a shared cache.
#[derive(Clone, Copy)]
pub struct Watched {
    /// Its group and its plural.
    resource: fn() -> (String, String),
    start: fn(&Hub),
}

impl Watched {
    /// Names a kind.
    pub const fn kind<K>() -> Self
    where
        K: Resource<DynamicType = ()> + Clone + DeserializeOwned + Debug + Send + Sync + 'static,
    {
        Self {
            resource: || (K::group(&()).into_owned(), K::plural(&()).into_owned()),
            start: |hub| drop(hub.cache::<K>()),
        }
    }
}

impl Debug for Watched {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (group, plural) = (self.resource)();
        write!(formatter, "{plural}.{group}")
    }
}

/// Requests that a controller makes.
#[derive(Debug, Clone, Copy)]
pub struct Rule {
    /// The API group of the resources; empty for the core group.
    pub group: &'static str,
    /// Plurals, also with subresources: `placements/status`.
    pub resources: &'static [&'static str],
    /// What is done to them.
    pub verbs: &'static [&'static str],
}

/// What recording events takes.
pub(crate) const EVENTS: Rule = Rule {
    group: "",
    resources: &["events"],
    verbs: &["create", "patch"],
};

/// The verbs of a watch. `get` shows nothing that `list` does not.
pub(crate) const READ: &[&str] = &["get", "list", "watch"];

/// The options of controllers that flags set.
#[derive(Debug, Clone, Default)]
pub struct HubOptions {
    /// Users whose clusters join without somebody accepting them.
    pub auto_approved: BTreeSet<String>,
    /// What the hub makes of clusters that stop renewing their leases.
    pub clusters: crate::registration::clusters::Options,
    /// How workflows are carried out.
    pub workflows: crate::workflow::WorkflowOptions,
    /// How often objects of ApplicationConfigurations are applied.
    pub apply_once: ApplyOnce,
}

/// Returns the rules of a ClusterRole that suffices for a process with these controllers: for them, for its lease, and for the
/// definitions that it creates. Sorted and without repetitions.
pub fn rules(controllers: &[Entry]) -> Vec<PolicyRule> {
    let process = to_rules(LEASE).into_iter().chain(to_rules(DEFINITIONS));
    merge(controllers.iter().flat_map(Entry::rules).chain(process))
}

/// Returns the rules of a Role in [`crate::rights::SYSTEM_NAMESPACE`] that these controllers need besides.
pub fn system_rules(controllers: &[Entry]) -> Vec<PolicyRule> {
    merge(controllers.iter().flat_map(Entry::system_rules))
}

/// Returns rules as roles have them.
pub fn to_rules(rights: &[Rule]) -> Vec<PolicyRule> {
    let rights = rights.iter();
    let rights = rights.map(|right| rule(right.group, right.resources, right.verbs));
    rights.collect()
}

/// Returns the same rights, sorted and each resource once.
pub fn merge(rules: impl IntoIterator<Item = PolicyRule>) -> Vec<PolicyRule> {
    let mut verbs: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
    for rule in rules {
        for group in rule.api_groups.iter().flatten() {
            for resource in rule.resources.iter().flatten() {
                let known = verbs.entry((group.clone(), resource.clone())).or_default();
                known.extend(rule.verbs.iter().cloned());
            }
        }
    }
    let rules = verbs.into_iter().map(|((group, resource), verbs)| {
        let verbs: Vec<&str> = verbs.iter().map(String::as_str).collect();
        rule(&group, &[&resource], &verbs)
    });
    rules.collect()
}

fn rule(group: &str, resources: &[&str], verbs: &[&str]) -> PolicyRule {
    let owned = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect();
    PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(owned(resources)),
        verbs: owned(verbs),
        ..PolicyRule::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controllers_are_sorted_by_name() {
        let names: Vec<&str> = HUB.iter().map(|entry| entry.name).collect();
        assert!(names.is_sorted(), "{names:?}");
    }

    #[test]
    fn rights_name_each_resource_once() {
        let rules = rules(HUB);
        let resources: Vec<_> = rules
            .iter()
            .map(|rule| (rule.api_groups.clone(), rule.resources.clone()))
            .collect();
        let distinct: BTreeSet<_> = resources.iter().collect();
        assert_eq!(resources.len(), distinct.len());
        let of = |resource: &str| {
            let rule = rules.iter().find(|rule| {
                let resources = rule.resources.iter().flatten();
                resources.into_iter().any(|it| it == resource)
            });
            rule.map(|rule| rule.verbs.join(",")).unwrap_or_default()
        };
        assert_eq!(of("placements"), "get,list,watch");
        assert_eq!(of("placements/status"), "patch");
        assert_eq!(of("events"), "create,patch");
    }
}
