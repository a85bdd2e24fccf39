//! A root policy, its replicas and their agents in memory. Objects count generations and versions as a server
//! does, and the hub may be killed after any step.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwether_api::meta::MicroTime;
use bellwether_api::policy::{
    ComplianceState, Policy, PolicyStatus, RemediationAction, RolloutStatus,
};
use bellwether_placement::rollout::Group;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::binding::{Bound, BoundGroup};
use crate::propagation::{Blueprint, Form, HubTemplates, Replica, Version};
use crate::rollout::{Mode, Observed, Plan, plan};

pub(super) struct World {
    pub(super) root: Policy,
    pub(super) replicas: BTreeMap<Arc<str>, Policy>,
    pub(super) groups: Vec<Group>,
    /// True while not all decisions of the placement have been seen.
    pub(super) is_unsettled: bool,
    pub(super) refused: BTreeMap<Arc<str>, String>,
    /// What hub templates give clusters that differ from the others.
    pub(super) own: BTreeMap<Arc<str>, i64>,
    /// What bindings override.
    pub(super) overrides: BTreeMap<Arc<str>, RemediationAction>,
    pub(super) now: Timestamp,
    versions: u64,
}

impl World {
    /// A policy with this strategy, bound to these clusters in these groups.
    pub(super) fn new(action: &str, strategy: &Value, groups: &[&[&str]]) -> Self {
        let root = json!({
            "metadata": {"name": "limits", "namespace": "policies", "generation": 1},
            "spec": {
                "disabled": false,
                "remediationAction": action,
                "rolloutStrategy": strategy,
                "policy-templates": [{"objectDefinition": {
                    "apiVersion": "policy.open-cluster-management.io/v1",
                    "kind": "ConfigurationPolicy",
                    "metadata": {"name": "limits"},
                    "spec": {"size": 1},
                }}],
            },
        });
        let groups = groups.iter().zip(0..);
        Self {
            root: serde_json::from_value(root).unwrap(),
            replicas: BTreeMap::new(),
            groups: groups
                .map(|(clusters, index)| Group::new("", index, clusters.iter().copied()))
                .collect(),
            is_unsettled: false,
            refused: BTreeMap::new(),
            own: BTreeMap::new(),
            overrides: BTreeMap::new(),
            now: Timestamp::UNIX_EPOCH,
            versions: 0,
        }
    }

    pub(super) fn blueprint(&self) -> Blueprint {
        Blueprint::new(&self.root, &|_, _| None)
    }

    pub(super) fn version(&self) -> Version {
        self.blueprint().version(None, None)
    }

    /// What a cluster gets.
    fn version_of(&self, cluster: &str) -> Version {
        let blueprint = self.blueprint();
        let templates = self.own.get(cluster).map(|size| {
            let mut templates = blueprint.templates().to_vec();
            templates[0].object_definition["spec"]["size"] = json!(size);
            HubTemplates {
                templates,
                ..HubTemplates::default()
            }
        });
        let bound = self.bound();
        let action = bound.override_of(cluster, &Mode::of(&self.root));
        blueprint.version(action, templates)
    }

    pub(super) fn bound(&self) -> Bound {
        let group = |group: &Group| BoundGroup {
            placement: "everywhere".into(),
            index: group.key.index,
            group: group.clone(),
        };
        let unsettled = self.is_unsettled.then_some("everywhere");
        Bound {
            groups: self.groups.iter().map(group).collect(),
            overrides: self.overrides.clone(),
            unsettled: unsettled.map(ToOwned::to_owned).into_iter().collect(),
            ..Bound::default()
        }
    }

    pub(super) fn plan(&self) -> Plan {
        let blueprint = self.blueprint();
        let replicas = self.replicas.iter();
        let replicas = replicas.map(|(name, it)| (Arc::clone(name), Arc::new(Replica::of(it))));
        plan(&Observed {
            root: &self.root,
            blueprint: &blueprint,
            bound: &self.bound(),
            version: &|cluster| Arc::new(self.version_of(cluster)),
            replicas: &replicas.collect(),
            refused: &self.refused,
            is_cluster: &|_| true,
            now: self.now,
        })
    }

    /// Carries out so many steps of a plan; returns how many there were.
    pub(super) fn execute(&mut self, plan: &Plan, most: usize) -> usize {
        let mut left = most;
        let mut may = || {
            let is_left = left > 0;
            left = left.saturating_sub(1);
            is_left
        };
        if let Some(status) = &plan.status_first
            && may()
        {
            self.root.status = Some(status.clone());
        }
        for write in &plan.write {
            if may() {
                self.write(write);
            }
        }
        for replica in &plan.delete {
            if may() {
                self.replicas.remove(&replica.cluster);
            }
        }
        for mark in &plan.mark {
            if may()
                && let Some(replica) = self.replicas.get_mut(&mark.cluster)
            {
                let status = replica.status.get_or_insert_with(PolicyStatus::default);
                status.rollout_status = Some(mark.status.clone());
                status.rollout_status_last_transition_time = Some(MicroTime(mark.since));
            }
        }
        if let Some(status) = &plan.status
            && may()
        {
            self.root.status = Some(status.clone());
        }
        most - left
    }

    fn write(&mut self, write: &crate::rollout::Write) {
        let blueprint = self.blueprint();
        let cluster = &*write.cluster;
        let mut policy =
            blueprint.replica(cluster, &write.version, write.form, write.is_progressive);
        self.versions += 1;
        let before = self.replicas.get(cluster);
        let generation = before.and_then(|it| it.metadata.generation).unwrap_or(0);
        let is_same = before.is_some_and(|it| it.spec == policy.spec);
        policy.metadata.generation = Some(generation + i64::from(!is_same));
        policy.metadata.resource_version = Some(self.versions.to_string());
        policy.status = before.and_then(|it| it.status.clone());
        self.replicas.insert(cluster.into(), policy);
    }

    /// Plans and executes until nothing is left to do at this moment.
    pub(super) fn settle(&mut self) {
        for _ in 0..20 {
            let plan = self.plan();
            if self.execute(&plan, usize::MAX) == 0 {
                return;
            }
        }
        panic!("there is always something left to do: {:#?}", self.plan());
    }

    /// Lets time pass.
    pub(super) fn pass(&mut self, seconds: i64) {
        self.now += SignedDuration::from_secs(seconds);
    }

    /// An agent evaluates the replica that it has, and does to the rollout status what agents do.
    pub(super) fn report(&mut self, cluster: &str, state: ComplianceState) {
        let now = MicroTime(self.now);
        let Some(replica) = self.replicas.get_mut(cluster) else {
            return;
        };
        let generation = replica.metadata.generation;
        let status = replica.status.get_or_insert_with(PolicyStatus::default);
        status.observed_generation = generation;
        let ended = match state {
            ComplianceState::Compliant => Some(RolloutStatus::Succeeded),
            ComplianceState::NonCompliant => Some(RolloutStatus::Failed),
            _ => None,
        };
        let is_released = status
            .rollout_status
            .as_ref()
            .is_some_and(crate::propagation::is_released);
        if let Some(ended) = ended.filter(|_| is_released)
            && status.rollout_status.as_ref() != Some(&ended)
        {
            status.rollout_status = Some(ended);
            status.rollout_status_last_transition_time = Some(now);
        }
        status.compliant = Some(state);
    }

    /// Writes a new version of the policy.
    pub(super) fn edit(&mut self, size: i64) {
        let template = &mut self.root.spec.policy_templates[0];
        template.object_definition["spec"]["size"] = json!(size);
    }

    pub(super) fn set_strategy(&mut self, strategy: &Value) {
        let strategy = serde_json::from_value(strategy.clone()).unwrap();
        self.root.spec.rollout_strategy = Some(strategy);
    }

    /// True if a cluster has the present version as it is meant.
    pub(super) fn is_released(&self, cluster: &str) -> bool {
        let version = self.version();
        let replica = self.replicas.get(cluster);
        replica.is_some_and(|it| {
            let replica = Replica::of(it);
            version.is_spec_of(&replica, Form::Released)
        })
    }

    /// How far the whole and each cluster is, such as `Progressing: a Succeeded, b ToApply`.
    pub(super) fn outcome(&self) -> String {
        let status = self.root.status_or_default();
        let clusters = status.status.iter().map(|entry| {
            let status = entry.rollout_status.as_ref();
            let status = status.map_or("-", RolloutStatus::as_str);
            format!("{} {status}", entry.cluster_name)
        });
        let clusters: Vec<String> = clusters.collect();
        let whole = status.rollout_status.as_ref();
        let whole = whole.map_or("-", RolloutStatus::as_str);
        format!("{whole}: {}", clusters.join(", "))
    }

    /// The clusters whose replica enforces.
    pub(super) fn enforcing(&self) -> Vec<&str> {
        let enforces = |it: &&Policy| {
            let action = it.spec.remediation_action.as_ref();
            action.is_none_or(bellwether_api::policy::RemediationAction::is_enforce)
        };
        let replicas = self.replicas.values().filter(enforces);
        replicas
            .map(|it| it.metadata.namespace.as_deref().unwrap())
            .collect()
    }
}
