//! Policies on a fleet: bindings and placements become replicas, and rollouts go on by what agents report.
//!
//! Agents are played: they report what a verdict says as soon as they see a replica.

#![allow(clippy::unwrap_used, clippy::needless_pass_by_value, reason = "tests")]

mod decisions;
mod real;
mod reports;
mod story;
mod with_agents;

use crate::fleet;
use crate::work_faults::Dice;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use bellwether_agent::work::AgentOptions;
use bellwether_api::policy::{ComplianceState, Policy, RemediationAction, RolloutStatus};
use bellwether_apiserver::HUB;
use bellwether_controllers::{Hub, cluster_set, placement, policy_propagator};
use bellwether_runtime::{Cache, Selection};
use fleet::*;
use kube::Api;
use kube::api::{Patch, PatchParams};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

const NAMESPACE: &str = "policy-namespace";
const ROOT: &str = "policy.open-cluster-management.io/root-policy";

/// What a cluster finds when it evaluates a replica; nothing while it is silent.
type Verdict = Arc<dyn Fn(&str, &Policy) -> Option<ComplianceState> + Send + Sync>;

/// A fleet with a scheduler, a propagator and agents that are played.
struct Bed {
    fleet: Fleet,
    propagator: JoinHandle<()>,
    scheduler: JoinHandle<()>,
    /// Clusters that do not comply when they enforce.
    broken: Arc<Mutex<BTreeSet<String>>>,
    /// Clusters that report nothing.
    silent: Arc<Mutex<BTreeSet<String>>>,
    _agents: JoinHandle<()>,
    _replicas: Cache<Policy>,
}

impl Bed {
    async fn start(members: &[&str], labels: impl Fn(usize) -> Value) -> Self {
        let fleet = Fleet::without_agents(AgentOptions::default(), members).await;
        let scheduler = furnish(&fleet, members, labels).await;
        let broken: Arc<Mutex<BTreeSet<String>>> = Arc::default();
        let silent: Arc<Mutex<BTreeSet<String>>> = Arc::default();
        let (known, quiet) = (Arc::clone(&broken), Arc::clone(&silent));
        let verdict: Verdict = Arc::new(move |cluster, replica| {
            if quiet.lock().contains(cluster) {
                return None;
            }
            let action = replica.spec.remediation_action.as_ref();
            let is_enforced = action.is_some_and(RemediationAction::is_enforce);
            let is_bad = !is_enforced || known.lock().contains(cluster);
            Some(if is_bad {
                ComplianceState::NonCompliant
            } else {
                ComplianceState::Compliant
            })
        });
        let (replicas, agents) = play_agents(&fleet, verdict);
        let propagator = start_propagator(&fleet);
        Self {
            fleet,
            propagator,
            scheduler,
            broken,
            silent,
            _agents: agents,
            _replicas: replicas,
        }
    }

    /// Ends the hub at once, whatever it is doing, and starts another.
    fn kill_hub(&mut self) {
        self.fleet.writes.change_from_outside();
        self.propagator.abort();
        self.propagator = start_propagator(&self.fleet);
    }

    /// The same for the part of the hub that writes decisions.
    fn kill_scheduler(&mut self) {
        self.fleet.writes.change_from_outside();
        self.scheduler.abort();
        self.scheduler = start_scheduler(&self.fleet);
    }

    async fn create(&self, objects: impl IntoIterator<Item = Value>) {
        for object in objects {
            self.fleet.create(HUB, object).await;
        }
    }

    async fn root(&self, name: &str) -> Policy {
        let api: Api<Policy> = Api::namespaced(self.fleet.client(HUB), NAMESPACE);
        api.get(name).await.unwrap()
    }

    /// Waits until the rollout of a policy is there.
    async fn until(&self, name: &str, status: RolloutStatus) -> Policy {
        let what = json!({"apiVersion": "policy.open-cluster-management.io/v1", "kind": "Policy",
            "metadata": {"name": name, "namespace": NAMESPACE}});
        let wanted = json!(status);
        let found = self
            .fleet
            .until(HUB, &what, &format!("it is {status}"), |it| {
                it.is_some_and(|it| it["status"]["rolloutStatus"] == wanted)
            })
            .await;
        serde_json::from_value(found.unwrap()).unwrap()
    }

    async fn replicas(&self) -> BTreeMap<String, Policy> {
        let api: Api<Policy> = Api::all(self.fleet.client(HUB));
        let list = api
            .list(&kube::api::ListParams::default().labels(ROOT))
            .await;
        let replicas = list.unwrap().into_iter();
        replicas
            .map(|it| (it.metadata.namespace.clone().unwrap(), it))
            .collect()
    }

    /// The clusters whose replica enforces.
    async fn enforcing(&self) -> Vec<String> {
        let replicas = self.replicas().await.into_iter();
        let enforcing = replicas.filter(|(_, it)| {
            let action = it.spec.remediation_action.as_ref();
            action.is_some_and(RemediationAction::is_enforce)
        });
        enforcing.map(|(cluster, _)| cluster).collect()
    }

    async fn edit(&self, name: &str, spec: Value) {
        let api: Api<Policy> = Api::namespaced(self.fleet.client(HUB), NAMESPACE);
        self.fleet.writes.change_from_outside();
        let patch = Patch::Merge(json!({ "spec": spec }));
        api.patch(name, &PatchParams::default(), &patch)
            .await
            .unwrap();
    }

    /// A cluster evaluates again, as after a repair.
    async fn evaluate_again(&self, cluster: &str, name: &str) {
        let api: Api<Policy> = Api::namespaced(self.fleet.client(HUB), cluster);
        self.fleet.writes.change_from_outside();
        let patch = Patch::Merge(json!({"status": {"observedGeneration": null}}));
        let replica = format!("{NAMESPACE}.{name}");
        let params = PatchParams::default();
        api.patch_status(&replica, &params, &patch).await.unwrap();
    }
}

/// Has clusters placed: members with labels, a namespace for policies, and the controllers of placements.
async fn furnish(
    fleet: &Fleet,
    members: &[&str],
    labels: impl Fn(usize) -> Value,
) -> JoinHandle<()> {
    let scheduler = start_scheduler(fleet);
    let hub = Hub::new(fleet.controller_client(HUB), fleet.clock.clone());
    tokio::spawn(cluster_set::run(hub));
    for (index, member) in members.iter().enumerate() {
        let cluster = json!({"apiVersion": "cluster.open-cluster-management.io/v1",
            "kind": "ManagedCluster", "metadata": {"name": member, "labels": labels(index)},
            "spec": {"hubAcceptsClient": true}});
        fleet.create(HUB, cluster).await;
    }
    let namespace =
        json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}});
    fleet.create(HUB, namespace).await;
    let bind = json!({"apiVersion": "cluster.open-cluster-management.io/v1beta2",
        "kind": "ManagedClusterSetBinding", "spec": {"clusterSet": "global"},
        "metadata": {"name": "global", "namespace": NAMESPACE}});
    fleet.create(HUB, bind).await;
    scheduler
}

fn start_scheduler(fleet: &Fleet) -> JoinHandle<()> {
    let hub = Hub::new(fleet.controller_client(HUB), fleet.clock.clone());
    tokio::spawn(placement::run(hub))
}

fn start_propagator(fleet: &Fleet) -> JoinHandle<()> {
    let hub = Hub::new(fleet.controller_client(HUB), fleet.clock.clone());
    tokio::spawn(policy_propagator::run(hub))
}

/// Reports what the verdict says of every replica, as agents do.
fn play_agents(fleet: &Fleet, verdict: Verdict) -> (Cache<Policy>, JoinHandle<()>) {
    let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
    let replicas = Cache::start(
        Api::all(fleet.client(HUB)),
        Selection::labels(ROOT),
        move |change: bellwether_runtime::Change<'_, Policy>| {
            if let Some(replica) = change.new {
                let _ = sender.send(Arc::clone(replica));
            }
        },
    );
    let (client, writes) = (fleet.client(HUB), fleet.writes.clone());
    let agents = tokio::spawn(async move {
        while let Some(replica) = receiver.recv().await {
            let cluster = replica.metadata.namespace.clone().unwrap();
            let Some(state) = verdict(&cluster, &replica) else {
                continue;
            };
            let status = replica.status_or_default();
            let mut patch = json!({
                "compliant": state, "observedGeneration": replica.metadata.generation,
                "details": [{"templateMeta": {"name": "cfg"}, "compliant": state,
                    "history": [{"message": format!("{state}; as the test says")}]}],
            });
            let ended = match state {
                ComplianceState::Compliant => RolloutStatus::Succeeded,
                _ => RolloutStatus::Failed,
            };
            let is_waiting = matches!(status.rollout_status, None | Some(RolloutStatus::ToApply));
            if !is_waiting && status.rollout_status != Some(ended.clone()) {
                patch["rolloutStatus"] = json!(ended);
            }
            let is_known = status.observed_generation == replica.metadata.generation
                && status.compliant == Some(state)
                && patch.get("rolloutStatus").is_none();
            if is_known {
                continue;
            }
            let api: Api<Policy> = Api::namespaced(client.clone(), &cluster);
            let name = replica.metadata.name.clone().unwrap();
            let patch = json!({
                "metadata": {"resourceVersion": replica.metadata.resource_version},
                "status": patch,
            });
            // One that changed meanwhile is seen again.
            writes.change_from_outside();
            let params = PatchParams::default();
            let _ = api.patch_status(&name, &params, &Patch::Merge(patch)).await;
        }
    });
    (replicas, agents)
}

fn policy(name: &str, strategy: Value) -> Value {
    json!({
        "apiVersion": "policy.open-cluster-management.io/v1", "kind": "Policy",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {
            "disabled": false, "remediationAction": "enforce", "rolloutStrategy": strategy,
            "policy-templates": [{"objectDefinition": {
                "apiVersion": "policy.open-cluster-management.io/v1", "kind": "ConfigurationPolicy",
                "metadata": {"name": "cfg"}, "spec": {"size": 1},
            }}],
        },
    })
}

fn binding(name: &str, placement: &str, policy: &str) -> Value {
    json!({
        "apiVersion": "policy.open-cluster-management.io/v1", "kind": "PlacementBinding",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "placementRef": {"name": placement, "apiGroup": "cluster.open-cluster-management.io",
            "kind": "Placement"},
        "subjects": [{"name": policy, "apiGroup": "policy.open-cluster-management.io", "kind": "Policy"}],
    })
}

fn placement_of(name: &str, strategy: Value) -> Value {
    json!({"apiVersion": "cluster.open-cluster-management.io/v1beta1", "kind": "Placement",
        "metadata": {"name": name, "namespace": NAMESPACE}, "spec": {"decisionStrategy": strategy}})
}

#[tokio::test(start_paused = true)]
async fn a_policy_goes_to_the_clusters_of_its_placement_and_leaves_them() {
    let mut bed = Bed::start(&["cluster1", "cluster2"], |_| json!({})).await;
    bed.create([
        placement_of("all", json!({})),
        binding("all", "all", "limits"),
        policy("limits", json!({"type": "All"})),
    ])
    .await;
    let root = bed.until("limits", RolloutStatus::Succeeded).await;
    let status = root.status.unwrap();
    assert_eq!(status.compliant, Some(ComplianceState::Compliant));
    assert_eq!(status.placement[0].placement.as_deref(), Some("all"));
    assert_eq!(bed.enforcing().await, ["cluster1", "cluster2"]);
    let replica = &bed.replicas().await["cluster1"];
    assert_eq!(
        replica.status.as_ref().unwrap().rollout_status,
        Some(RolloutStatus::Succeeded)
    );
    // What others do to replicas is undone.
    let api: Api<Policy> = Api::namespaced(bed.fleet.client(HUB), "cluster1");
    let name = format!("{NAMESPACE}.limits");
    bed.fleet.writes.change_from_outside();
    let patch =
        Patch::Merge(json!({"metadata": {"labels": {"x": "y"}}, "spec": {"disabled": true}}));
    api.patch(&name, &PatchParams::default(), &patch)
        .await
        .unwrap();
    bed.fleet.pass(1000).await;
    assert_eq!(bed.replicas().await["cluster1"].spec, replica.spec);
    api.delete(&name, &kube::api::DeleteParams::default())
        .await
        .unwrap();
    bed.fleet.pass(1000).await;
    assert_eq!(bed.enforcing().await, ["cluster1", "cluster2"]);
    bed.edit("limits", json!({"disabled": true})).await;
    bed.fleet.pass(1000).await;
    assert!(bed.replicas().await.is_empty());
    let status = bed.root("limits").await.status.unwrap();
    assert_eq!((status.status.len(), status.rollout_status), (0, None));
    assert_eq!(status.placement.len(), 1);
    // A hub that was not there when a policy was deleted removes its replicas.
    bed.edit("limits", json!({"disabled": false})).await;
    bed.until("limits", RolloutStatus::Succeeded).await;
    bed.propagator.abort();
    let roots: Api<Policy> = Api::namespaced(bed.fleet.client(HUB), NAMESPACE);
    roots
        .delete("limits", &kube::api::DeleteParams::default())
        .await
        .unwrap();
    bed.fleet.pass(100).await;
    bed.kill_hub();
    bed.fleet.pass(1000).await;
    assert!(bed.replicas().await.is_empty());
}

/// What a replica wants, as its template says it.
fn value_of(replica: &Policy) -> String {
    let definition = &replica.spec.policy_templates[0].object_definition;
    let value = definition["spec"]["value"].as_str();
    value.unwrap_or_default().to_owned()
}

fn with_value(name: &str, value: &str) -> Value {
    let mut policy = policy(name, json!({"type": "All"}));
    policy["spec"]["policy-templates"][0]["objectDefinition"]["spec"] = json!({ "value": value });
    policy
}

#[tokio::test(start_paused = true)]
async fn hub_templates_follow_what_they_look_up() {
    let bed = Bed::start(
        &["cluster1", "cluster2"],
        |index| json!({"env": if index == 0 { "dev" } else { "prod" }}),
    )
    .await;
    let vlans = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "vlans", "namespace": NAMESPACE}, "data": {"cluster1": "7", "cluster2": "8"}});
    let secret = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "token", "namespace": NAMESPACE}, "stringData": {"text": "open sesame"}});
    let both = "{{hub .ManagedClusterLabels.env hub}} {{hub fromConfigMap \"\" \"vlans\" .ManagedClusterName hub}}";
    bed.create([
        vlans.clone(),
        secret,
        placement_of("all", json!({})),
        binding("one", "all", "network"),
        binding("two", "all", "token"),
        with_value("network", both),
        with_value("token", "{{hub fromSecret \"\" \"token\" \"text\" hub}}"),
    ])
    .await;
    let replica = async |cluster: &str, name: &str| {
        let api: Api<Policy> = Api::namespaced(bed.fleet.client(HUB), cluster);
        let found = api.get_opt(&format!("{NAMESPACE}.{name}")).await.unwrap();
        found.unwrap_or_default()
    };
    bed.until("network", RolloutStatus::Succeeded).await;
    assert_eq!(value_of(&replica("cluster1", "network").await), "dev 7");
    assert_eq!(value_of(&replica("cluster2", "network").await), "prod 8");
    let patch = json!({"data": {"cluster2": "9"}});
    bed.fleet.merge(HUB, &vlans, patch).await;
    bed.fleet.pass(1000).await;
    assert_eq!(value_of(&replica("cluster1", "network").await), "dev 7");
    assert_eq!(value_of(&replica("cluster2", "network").await), "prod 9");
    let cluster = json!({"apiVersion": "cluster.open-cluster-management.io/v1", "kind": "ManagedCluster",
        "metadata": {"name": "cluster1"}});
    let patch = json!({"metadata": {"labels": {"env": "lab"}}});
    bed.fleet.merge(HUB, &cluster, patch).await;
    bed.fleet.pass(1000).await;
    assert_eq!(value_of(&replica("cluster1", "network").await), "lab 7");
    bed.fleet.delete(HUB, &vlans).await;
    bed.fleet.pass(1000).await;
    let broken = replica("cluster1", "network").await;
    let definition = &broken.spec.policy_templates[0].object_definition;
    let error = "policy.open-cluster-management.io/hub-templates-error";
    let error = definition["metadata"]["annotations"][error]
        .as_str()
        .unwrap();
    assert!(error.contains("configmaps \"vlans\" not found"), "{error}");
    // What comes from a Secret is encrypted for the cluster, the same way each time.
    bed.until("token", RolloutStatus::Succeeded).await;
    let sealed = replica("cluster1", "token").await;
    let value = value_of(&sealed);
    assert!(value.starts_with("$ocm_encrypted:"), "{value}");
    assert_ne!(value, value_of(&replica("cluster2", "token").await));
    let annotations = sealed.metadata.annotations.unwrap();
    assert!(annotations.contains_key("policy.open-cluster-management.io/encryption-iv"));
}

#[tokio::test(start_paused = true)]
async fn a_key_is_replaced_in_time_and_a_new_key_is_no_new_version() {
    let bed = Bed::start(&["cluster1"], |_| json!({})).await;
    let secret = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "token", "namespace": NAMESPACE}, "stringData": {"text": "open sesame"}});
    let mut policy = with_value("token", "{{hub fromSecret \"\" \"token\" \"text\" hub}}");
    policy["spec"]["remediationAction"] = json!("enforce");
    policy["spec"]["rolloutStrategy"] = json!({"type": "Progressive"});
    let placed = placement_of("all", json!({}));
    bed.create([
        secret,
        placed,
        binding("one", "all", "token"),
        policy.clone(),
    ])
    .await;
    let replica = async || {
        let replicas = bed.replicas().await;
        replicas.into_values().next().unwrap()
    };
    let root = bed.until("token", RolloutStatus::Succeeded).await;
    let before = replica().await;
    let key = json!({"apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "policy-encryption-key", "namespace": "cluster1"}});
    let old = bed.fleet.get(HUB, &key).await.unwrap();
    let rotated = "policy.open-cluster-management.io/last-rotated";
    let patch = json!({"metadata": {"annotations": {(rotated): "2020-01-01T00:00:00Z"}}});
    bed.fleet.merge(HUB, &key, patch).await;
    let trigger = "policy.open-cluster-management.io/trigger-update";
    let patch = json!({"metadata": {"annotations": {(trigger): "1"}}});
    bed.fleet.merge(HUB, &policy, patch).await;
    bed.fleet.pass(2000).await;
    let new = bed.fleet.get(HUB, &key).await.unwrap();
    assert_ne!(new["data"]["key"], old["data"]["key"]);
    assert_eq!(new["data"]["previousKey"], old["data"]["key"]);
    let after = replica().await;
    assert_ne!(
        value_of(&after),
        value_of(&before),
        "encrypted with the new key"
    );
    assert_eq!(bed.enforcing().await, ["cluster1"]);
    assert_eq!(after.metadata.annotations, before.metadata.annotations);
    let now = bed.root("token").await;
    let start = |root: &Policy| root.status_or_default().rollout_start_time.clone();
    assert_eq!(start(&now), start(&root), "no other rollout has begun");
    // A key that is to stay stays.
    let keep = "policy.open-cluster-management.io/disable-rotation";
    let patch =
        json!({"metadata": {"annotations": {(rotated): "2020-01-01T00:00:00Z", (keep): "true"}}});
    bed.fleet.merge(HUB, &key, patch).await;
    let patch = json!({"metadata": {"annotations": {(trigger): "2"}}});
    bed.fleet.merge(HUB, &policy, patch).await;
    bed.fleet.pass(2000).await;
    let kept = bed.fleet.get(HUB, &key).await.unwrap();
    assert_eq!(kept["data"], new["data"]);
}

#[tokio::test(start_paused = true)]
async fn a_set_binds_its_policies_and_reports_about_them() {
    let bed = Bed::start(&["cluster1", "cluster2"], |_| json!({})).await;
    let group = "policy.open-cluster-management.io";
    let set = json!({"apiVersion": format!("{group}/v1beta1"), "kind": "PolicySet",
        "metadata": {"name": "basics", "namespace": NAMESPACE},
        "spec": {"policies": ["limits", "gone"],
            "exclusions": [{"policyName": "limits", "clusterNames": ["cluster2"]}]}});
    let mut by_set = binding("basics", "all", "basics");
    by_set["subjects"][0]["kind"] = json!("PolicySet");
    bed.create([
        set.clone(),
        by_set,
        placement_of("all", json!({})),
        policy("limits", json!({"type": "All"})),
    ])
    .await;
    bed.until("limits", RolloutStatus::Succeeded).await;
    assert_eq!(bed.enforcing().await, ["cluster1"]);
    bed.fleet.pass(2000).await;
    let found = bed.fleet.get(HUB, &set).await.unwrap();
    let expected = json!({
        "placement": [{"placement": "all", "placementBinding": "basics"}],
        "statusMessage": "Deleted policies: gone; One or more policies were excluded. \
            For details, see status.exclusions.",
        "exclusions": [{"policyName": "limits", "clusters": ["cluster2"]}],
    });
    assert_eq!(found["status"], expected);
    let patch = json!({"spec": {"policies": ["limits"], "exclusions": null}});
    bed.fleet.merge(HUB, &set, patch).await;
    bed.fleet.pass(3000).await;
    let found = bed.fleet.get(HUB, &set).await.unwrap();
    assert_eq!(found["status"]["compliant"], "Compliant");
    assert_eq!(
        found["status"]["statusMessage"],
        "All policies are reporting status"
    );
    assert_eq!(bed.enforcing().await, ["cluster1", "cluster2"]);
}

/// A group of canaries, and then groups of that size.
fn canary_groups(size: usize) -> Value {
    let canaries = json!({"labelSelector": {"matchLabels": {"canary": "true"}}});
    json!({"groupStrategy": {"clustersPerDecisionGroup": size, "decisionGroups": [
        {"groupName": "canary", "groupClusterSelector": canaries},
    ]}})
}

/// Fifty members: a canary group of five, then groups of fifteen.
async fn fifty() -> (Bed, Vec<String>) {
    let names: Vec<String> = (1..=50).map(|it| format!("cluster{it:02}")).collect();
    let members: Vec<&str> = names.iter().map(String::as_str).collect();
    let bed = Bed::start(
        &members,
        |index| json!({"canary": if index < 5 { "true" } else { "false" }}),
    )
    .await;
    bed.create([
        placement_of("all", canary_groups(15)),
        binding("all", "all", "limits"),
        policy("limits", json!({"type": "ProgressivePerGroup"})),
    ])
    .await;
    (bed, names)
}

#[tokio::test(start_paused = true)]
async fn one_cluster_of_fifty_that_does_not_comply_stops_the_groups_behind_it_until_it_does() {
    let (bed, names) = fifty().await;
    bed.until("limits", RolloutStatus::Succeeded).await;
    assert_eq!(bed.enforcing().await, names);
    bed.broken.lock().insert("cluster03".to_owned());
    bed.edit(
        "limits",
        json!({"dependencies": [{"apiVersion": "v1", "kind": "Other", "name": "x",
        "compliance": "Compliant"}]}),
    )
    .await;
    let root = bed.until("limits", RolloutStatus::Failed).await;
    bed.fleet.pass(60_000).await;
    // The others are back to inform: they have the new version, and wait for it.
    assert_eq!(bed.enforcing().await, &names[..5]);
    assert_eq!(
        root.status.unwrap().compliant,
        Some(ComplianceState::NonCompliant)
    );
    bed.broken.lock().clear();
    bed.evaluate_again("cluster03", "limits").await;
    bed.until("limits", RolloutStatus::Succeeded).await;
    assert_eq!(bed.enforcing().await, names);
}

#[tokio::test(start_paused = true)]
async fn a_hub_that_is_killed_two_hundred_times_releases_nobody_early_and_comes_to_the_same_end() {
    let (mut bed, names) = fifty().await;
    // Everything that happens to replicas, in the order of the server.
    let seen: Arc<Mutex<Vec<Arc<Policy>>>> = Arc::default();
    let log = Arc::clone(&seen);
    let client = bed.fleet.client(HUB);
    let _log = Cache::<Policy>::start(Api::all(client), Selection::labels(ROOT), move |change| {
        log.lock().extend(change.new.cloned());
    });
    let dice = Dice(AtomicU64::new(7));
    for kill in 0..200 {
        if kill == 60 {
            bed.edit("limits", json!({"dependencies": []})).await;
            bed.edit("limits", json!({"copyPolicyMetadata": true}))
                .await;
        }
        tokio::time::sleep(Duration::from_millis(dice.roll(25))).await;
        bed.kill_hub();
    }
    bed.until("limits", RolloutStatus::Succeeded).await;
    assert_eq!(bed.enforcing().await, names);
    let group = |cluster: &str| {
        names
            .iter()
            .position(|it| it == cluster)
            .map(|place| match place {
                0..5 => 0,
                place => 1 + (place - 5) / 15,
            })
    };
    let mut done: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for replica in &*seen.lock() {
        let cluster = replica.metadata.namespace.clone().unwrap();
        let annotations = replica.metadata.annotations.as_ref().unwrap();
        let version = &annotations["policy.open-cluster-management.io/rollout-hash"];
        let is_enforced = replica
            .spec
            .remediation_action
            .as_ref()
            .is_some_and(RemediationAction::is_enforce);
        if !is_enforced {
            continue;
        }
        let done = done.entry(version.clone()).or_default();
        let before = names.iter().filter(|it| group(it) < group(&cluster));
        let missing: Vec<_> = before.filter(|it| !done.contains(*it)).collect();
        assert!(
            missing.is_empty(),
            "{cluster} enforces before {missing:?} complied"
        );
        let status = replica.status_or_default();
        if status.observed_generation == replica.metadata.generation
            && status.compliant == Some(ComplianceState::Compliant)
        {
            done.insert(cluster);
        }
    }
    assert_eq!(done.len(), 2, "two versions were enforced");
}
