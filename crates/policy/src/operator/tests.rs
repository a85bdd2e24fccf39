//! Operators through their lives, on a cluster of a few objects.

use bellwether_json::label::LabelSelector;
use bellwether_template::NOWHERE;
use serde_json::{Value, json};

use super::look::text;
use super::*;
use crate::config_policy::{Verb, Write, WriteOutcome};
use crate::template::{Answer, Resource};

/// A cluster that does what it is asked to, without the Operator Lifecycle Manager doing anything.
#[derive(Default)]
struct Cluster {
    objects: Vec<Value>,
    has_no_manager: bool,
    writes: Vec<String>,
    now: Timestamp,
}

impl Cluster {
    fn new(objects: &[Value]) -> Self {
        let namespace = object("v1", "Namespace", "", "ops", json!({}));
        let mut objects = objects.to_vec();
        objects.push(namespace);
        Self {
            objects,
            ..Self::default()
        }
    }

    fn answer(&self, question: &Question) -> Answer {
        match question {
            Question::Resource { api_version, kind } => {
                if self.has_no_manager && api_version.contains("coreos.com") {
                    return Answer::Nothing;
                }
                Answer::Resource(Resource {
                    name: kind.to_lowercase(),
                    is_namespaced: true,
                })
            }
            Question::Object {
                kind,
                namespace,
                name,
                ..
            } => {
                let is_it = |it: &&Value| {
                    it["kind"] == **kind
                        && text(it, "namespace") == namespace
                        && text(it, "name") == name
                };
                let found = self.objects.iter().find(is_it);
                found.map_or(Answer::Nothing, |it| Answer::Object(it.clone()))
            }
            Question::List {
                kind,
                namespace,
                selector,
                ..
            } => {
                let selector = LabelSelector::parse(selector).unwrap();
                let is_it = |it: &&Value| {
                    it["kind"] == **kind
                        && text(it, "namespace") == namespace
                        && selector.matches_object(it)
                };
                Answer::Objects(self.objects.iter().filter(is_it).cloned().collect())
            }
        }
    }

    fn write(&mut self, write: &Write) -> WriteOutcome {
        let mut object = write.object.clone();
        if write.verb == Verb::DryRun {
            return WriteOutcome::Done(object);
        }
        let what = format!("{:?} {}/{}", write.verb, write.kind, write.name);
        self.writes.push(what);
        let is_it = |it: &Value| it["kind"] == *write.kind && text(it, "name") == write.name;
        self.objects.retain(|it| !is_it(it));
        if write.verb == Verb::Delete {
            return WriteOutcome::Done(Value::Null);
        }
        if write.name.is_empty() {
            object["metadata"]["name"] = json!("generated");
        }
        object["metadata"]["uid"] = json!("1");
        self.objects.push(object.clone());
        WriteOutcome::Done(object)
    }

    /// Evaluates a policy, which keeps its status. Returns what is reported.
    fn evaluate(&mut self, policy: &mut Value) -> Vec<String> {
        let parsed: OperatorPolicy = serde_json::from_value(policy.clone()).unwrap();
        let mut facts = Facts::default();
        let conclusion = loop {
            match evaluate(&parsed, &facts, &NOWHERE, self.now) {
                Ok(conclusion) => break conclusion,
                Err(needs) => {
                    for need in needs {
                        match need {
                            Need::Read(question) => {
                                let answer = self.answer(&question);
                                facts.answer(question, answer);
                            }
                            Need::Write(write) => {
                                let outcome = self.write(&write);
                                facts.outcome(&write, outcome);
                            }
                        }
                    }
                }
            }
        };
        let last = conclusion.reports.last().unwrap();
        policy["status"] = serde_json::to_value(&last.status).unwrap();
        let reports = conclusion.reports.iter();
        reports.map(|report| report.message.clone()).collect()
    }

    fn find(&mut self, kind: &str) -> &mut Value {
        let is_it = |it: &&mut Value| it["kind"] == *kind;
        self.objects.iter_mut().find(is_it).unwrap()
    }
}

#[expect(
    clippy::needless_pass_by_value,
    reason = "objects are written in place"
)]
fn object(api_version: &str, kind: &str, namespace: &str, name: &str, rest: Value) -> Value {
    let mut object = json!({
        "apiVersion": api_version, "kind": kind, "metadata": {"name": name, "uid": "0"}});
    if !namespace.is_empty() {
        object["metadata"]["namespace"] = json!(namespace);
    }
    for (key, value) in rest.as_object().unwrap() {
        object[key] = value.clone();
    }
    object
}

fn olm(kind: &str, name: &str, rest: Value) -> Value {
    object("operators.coreos.com/v1alpha1", kind, "ops", name, rest)
}

fn package() -> Value {
    let status = json!({
        "catalogSource": "shelf", "catalogSourceNamespace": "ops", "defaultChannel": "stable",
        "channels": [{"name": "stable", "currentCSVDesc": {"annotations": {
            "operatorframework.io/suggested-namespace": "ops"}}}],
    });
    let version = "packages.operators.coreos.com/v1";
    object(
        version,
        "PackageManifest",
        "default",
        "lamp",
        json!({ "status": status }),
    )
}

fn shelf() -> Value {
    let state = json!({"connectionState": {"lastObservedState": "READY"}});
    olm("CatalogSource", "shelf", json!({ "status": state }))
}

fn policy(action: &str, compliance: &str) -> Value {
    json!({
        "apiVersion": "policy.open-cluster-management.io/v1beta1", "kind": "OperatorPolicy",
        "metadata": {"name": "lamp", "namespace": "c1", "generation": 1},
        "spec": {"remediationAction": action, "complianceType": compliance, "severity": "low",
            "upgradeApproval": "None", "subscription": {"name": "lamp"}},
    })
}

/// What the Operator Lifecycle Manager makes of a Subscription.
fn install(cluster: &mut Cluster, version: &str) {
    let name = format!("lamp.v{version}");
    cluster.find("Subscription")["status"] = json!({"currentCSV": name, "installedCSV": name});
    let mut found = olm(
        "ClusterServiceVersion",
        &name,
        json!({
        "spec": {"install": {"spec": {"deployments": [{"name": "lamp"}]}}},
        "status": {"phase": "Succeeded", "reason": "InstallSucceeded",
            "message": "install strategy completed with no errors"}}),
    );
    found["metadata"]["labels"] = json!({"operators.coreos.com/lamp.ops": ""});
    let mut definition = object(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "",
        "lights.lamp.io",
        json!({}),
    );
    definition["metadata"]["labels"] = json!({"operators.coreos.com/lamp.ops": ""});
    let deployment = object(
        "apps/v1",
        "Deployment",
        "ops",
        "lamp",
        json!({"status": {}}),
    );
    cluster.objects.extend([found, definition, deployment]);
}

const RUNNING: &str = "Compliant; the policy spec is valid, the OperatorGroup matches what is required by the policy, the Subscription matches what is required by the policy, there are no relevant InstallPlans in the namespace, ClusterServiceVersion (lamp.v1) - install strategy completed with no errors, there are CRDs present for the operator, all operator Deployments have their minimum availability, CatalogSource was found";

#[test]
fn a_cluster_without_the_manager_says_so_once() {
    let mut cluster = Cluster::new(&[]);
    cluster.has_no_manager = true;
    let mut policy = policy("enforce", "musthave");
    let said = cluster.evaluate(&mut policy);
    assert_eq!(
        said,
        [
            "NonCompliant; the subscription defaults could not be determined because the PackageManifest was not found, the status of the OperatorGroup could not be determined because the policy is invalid, the status of the Subscription could not be determined because the policy is invalid, the status of the InstallPlan could not be determined because the policy is invalid, a relevant installed ClusterServiceVersion could not be found, no CRDs were found for the operator, there are no relevant deployments because the ClusterServiceVersion is missing, the status of the CatalogSource could not be determined because the policy is invalid"
        ]
    );
    let status = policy["status"].clone();
    cluster.evaluate(&mut policy);
    assert_eq!(policy["status"], status);
    assert!(cluster.writes.is_empty());
}

#[test]
fn a_policy_that_informs_writes_nothing() {
    let mut cluster = Cluster::new(&[package(), shelf()]);
    let mut policy = policy("inform", "musthave");
    let said = cluster.evaluate(&mut policy);
    assert_eq!(said.len(), 1);
    assert!(said[0].starts_with("NonCompliant; the policy spec is valid, the OperatorGroup required by the policy was not found, the Subscription required by the policy was not found,"), "{said:?}");
    assert!(cluster.writes.is_empty());
}

#[test]
fn a_policy_that_enforces_installs_and_waits_for_the_operator() {
    let mut cluster = Cluster::new(&[package(), shelf()]);
    let mut policy = policy("enforce", "musthave");
    let said = cluster.evaluate(&mut policy);
    assert_eq!(
        cluster.writes,
        ["Create OperatorGroup/", "Create Subscription/lamp"]
    );
    assert!(said[0].contains("the OperatorGroup required by the policy was not found"));
    assert!(said[1].contains("the OperatorGroup required by the policy was created, the Subscription required by the policy was created"));
    assert!(said[1].starts_with("NonCompliant;"), "{said:?}");
    let subscription = cluster.find("Subscription").clone();
    assert_eq!(
        subscription["spec"],
        json!({"name": "lamp", "channel": "stable", "source": "shelf", "sourceNamespace": "ops",
            "installPlanApproval": "Manual"})
    );
    install(&mut cluster, "1");
    cluster.writes.clear();
    assert_eq!(cluster.evaluate(&mut policy), [RUNNING]);
    assert!(cluster.writes.is_empty());
    assert_eq!(policy["status"]["resolvedSubscriptionLabel"], "lamp.ops");
    let related = policy["status"]["relatedObjects"].as_array().unwrap();
    let created: Vec<&str> = related
        .iter()
        .filter(|it| it["properties"]["createdByPolicy"] == true)
        .filter_map(|it| it["object"]["kind"].as_str())
        .collect();
    assert_eq!(created, ["OperatorGroup", "Subscription"]);
    // Somebody changes the channel.
    cluster.find("Subscription")["spec"]["channel"] = json!("beta");
    let said = cluster.evaluate(&mut policy);
    assert!(said[0].contains("the Subscription found on the cluster does not match the policy"));
    assert!(said[1].contains("the Subscription was updated to match the policy"));
    assert_eq!(cluster.find("Subscription")["spec"]["channel"], "stable");
    // A deployment fails.
    cluster.find("Deployment")["status"] = json!({"unavailableReplicas": 1});
    let said = cluster.evaluate(&mut policy);
    assert!(said[0].contains("the deployments lamp do not have their minimum availability"));
    policy["spec"]["complianceConfig"] = json!({"deploymentsUnavailable": "Compliant"});
    assert!(cluster.evaluate(&mut policy)[0].starts_with("Compliant;"));
}

/// What the manager says about a Subscription that it cannot resolve.
fn stuck(cluster: &mut Cluster, message: &str) {
    cluster.find("Subscription")["status"] = json!({"conditions": [{
        "type": "ResolutionFailed", "status": "True", "reason": "ConstraintsNotSatisfiable",
        "message": message}]});
}

const ORPHAN: &str = "constraints not satisfiable: @existing/ops//lamp.v1 and shelf/ops/stable/lamp.v1 originate from package lamp, clusterserviceversion lamp.v1 exists and is not referenced by a subscription, subscription lamp exists";

#[test]
fn a_subscription_that_lost_its_operator_is_connected_after_a_while() {
    let mut cluster = Cluster::new(&[package(), shelf()]);
    let mut policy = policy("enforce", "musthave");
    cluster.evaluate(&mut policy);
    install(&mut cluster, "1");
    stuck(&mut cluster, ORPHAN);
    cluster.writes.clear();
    let text = "the Subscription: its constraints cannot be satisfied";
    let wait = |cluster: &mut Cluster, seconds: i64| {
        cluster.now += SignedDuration::from_secs(seconds);
    };
    assert!(cluster.evaluate(&mut policy)[0].contains(text));
    let time = "1970-01-01T00:00:30Z";
    assert_eq!(policy["status"]["subscriptionInterventionTime"], time);
    wait(&mut cluster, 29);
    assert!(cluster.evaluate(&mut policy)[0].contains(text));
    assert!(cluster.writes.is_empty());
    wait(&mut cluster, 2);
    let said = cluster.evaluate(&mut policy);
    assert_eq!(cluster.writes, ["UpdateStatus Subscription/lamp"]);
    assert!(
        said.last()
            .unwrap()
            .contains("the Subscription was updated to match the policy")
    );
    assert_eq!(
        cluster.find("Subscription")["status"]["currentCSV"],
        "lamp.v1"
    );
    // The manager goes on by itself.
    cluster.find("Subscription")["status"] =
        json!({"currentCSV": "lamp.v1", "installedCSV": "lamp.v1"});
    wait(&mut cluster, 60);
    assert_eq!(cluster.evaluate(&mut policy), [RUNNING]);
    assert_eq!(policy["status"].get("subscriptionInterventionTime"), None);
}

#[test]
fn other_subscriptions_that_are_stuck_are_only_reported() {
    let check = |action: &str, message: &str, change: &dyn Fn(&mut Cluster), is_reported: bool| {
        let mut cluster = Cluster::new(&[package(), shelf()]);
        let mut policy = policy("enforce", "musthave");
        cluster.evaluate(&mut policy);
        install(&mut cluster, "1");
        stuck(&mut cluster, message);
        change(&mut cluster);
        policy["spec"]["remediationAction"] = json!(action);
        cluster.writes.clear();
        for _ in 0..40 {
            let said = cluster.evaluate(&mut policy);
            let is_said = said[0].contains("its constraints cannot be satisfied");
            assert_eq!(is_said, is_reported, "{message}: {said:?}");
            cluster.now += SignedDuration::from_secs(3);
        }
        assert!(cluster.writes.is_empty(), "{:?}", cluster.writes);
    };
    let nothing = |_: &mut Cluster| {};
    check("inform", ORPHAN, &nothing, true);
    let unknown = "constraints not satisfiable: no operators found in package lamp in the catalog referenced by subscription lamp";
    check("enforce", unknown, &nothing, true);
    // The problem is another Subscription's.
    let other = "constraints not satisfiable: subscription lamp-shade exists";
    check("enforce", other, &nothing, false);
    let copied = |cluster: &mut Cluster| {
        cluster.find("ClusterServiceVersion")["status"]["reason"] = json!("Copied");
    };
    check("enforce", ORPHAN, &copied, true);
    let connected = |cluster: &mut Cluster| {
        cluster.find("Subscription")["status"]["currentCSV"] = json!("lamp.v0");
    };
    check("enforce", ORPHAN, &connected, true);
}

/// An InstallPlan for these versions.
fn plan(names: &[&str]) -> Value {
    olm(
        "InstallPlan",
        "install-1",
        json!({
        "spec": {"clusterServiceVersionNames": names, "approved": false, "generation": 1},
        "status": {"phase": "RequiresApproval"}}),
    )
}

#[test]
fn install_plans_are_approved_as_far_as_the_policy_goes() {
    let run = |change: &dyn Fn(&mut Value, &mut Cluster)| {
        let mut cluster = Cluster::new(&[package(), shelf()]);
        let mut policy = policy("enforce", "musthave");
        cluster.evaluate(&mut policy);
        install(&mut cluster, "1");
        cluster.find("Subscription")["status"]["currentCSV"] = json!("lamp.v2");
        cluster.objects.push(plan(&["lamp.v2"]));
        cluster.evaluate(&mut policy);
        change(&mut policy, &mut cluster);
        cluster.writes.clear();
        let said = cluster.evaluate(&mut policy);
        let is_approved = cluster
            .writes
            .contains(&"Update InstallPlan/install-1".to_owned());
        (said.last().unwrap().clone(), is_approved)
    };
    let (said, is_approved) = run(&|_, _| {});
    assert!(said.contains("an InstallPlan to update to lamp.v2 is available for approval,"));
    assert!(said.starts_with("Compliant;") && !is_approved, "{said}");
    let (said, is_approved) = run(&|policy, _| {
        policy["spec"]["complianceConfig"] = json!({"upgradesAvailable": "NonCompliant"});
    });
    assert!(said.starts_with("NonCompliant;") && !is_approved);
    let (said, is_approved) = run(&|policy, _| {
        policy["spec"]["upgradeApproval"] = json!("Automatic");
        policy["spec"]["versions"] = json!(["lamp.v1", " lamp.v2 "]);
    });
    assert!(
        said.contains("the InstallPlan for lamp.v2 was approved") && is_approved,
        "{said}"
    );
    let (said, is_approved) = run(&|policy, _| {
        policy["spec"]["upgradeApproval"] = json!("Automatic");
        policy["spec"]["versions"] = json!(["lamp.v1"]);
    });
    assert!(said.contains("is available for approval but approval for [lamp.v2] is required"));
    assert!(!is_approved);
    let (said, is_approved) = run(&|policy, cluster| {
        policy["spec"]["upgradeApproval"] = json!("Automatic");
        policy["spec"]["versions"] = json!(["lamp.v2", "lamp.v1"]);
        let found = cluster.find("InstallPlan");
        found["spec"]["clusterServiceVersionNames"] = json!(["lamp.v2", "oil.v3"]);
        let properties = json!({"properties": [
            {"type": "olm.package.required", "value": {"packageName": "oil"}}]});
        found["status"]["bundleLookups"] = json!([
            {"identifier": "lamp.v2", "properties": properties.to_string()}]);
    });
    assert!(is_approved, "{said}");
}

#[test]
fn a_version_that_is_not_allowed_does_not_comply() {
    let mut cluster = Cluster::new(&[package(), shelf()]);
    let mut policy = policy("enforce", "musthave");
    cluster.evaluate(&mut policy);
    install(&mut cluster, "1");
    policy["spec"]["versions"] = json!(["lamp.v7"]);
    let said = cluster.evaluate(&mut policy);
    assert!(
        said[0].contains("ClusterServiceVersion (lamp.v1) is not an allowed version"),
        "{said:?}"
    );
}

#[test]
fn an_operator_that_must_not_be_there_is_removed_but_for_its_kinds() {
    let mut cluster = Cluster::new(&[package(), shelf()]);
    let mut wanted = policy("enforce", "musthave");
    cluster.evaluate(&mut wanted);
    install(&mut cluster, "1");
    cluster.find("OperatorGroup")["metadata"]["generateName"] = json!("ops-");
    cluster.writes.clear();
    let mut unwanted = policy("inform", "mustnothave");
    let said = cluster.evaluate(&mut unwanted);
    assert!(said[0].contains("the OperatorGroup is present, the Subscription is present, "));
    assert!(cluster.writes.is_empty());
    unwanted["spec"]["remediationAction"] = json!("enforce");
    let said = cluster.evaluate(&mut unwanted);
    assert_eq!(
        cluster.writes,
        [
            "Delete OperatorGroup/generated",
            "Delete Subscription/lamp",
            "Delete ClusterServiceVersion/lamp.v1"
        ]
    );
    // What was wrong had been said before.
    assert_eq!(
        said,
        [
            "Compliant; the policy spec is valid, the OperatorGroup was deleted, the Subscription was deleted, there are no relevant InstallPlans in the namespace, the ClusterServiceVersion (lamp.v1) was deleted, the policy specifies to keep the CustomResourceDefinition, MustNotHave policies ignore kind Deployment, MustNotHave policies ignore kind CatalogSource"
        ]
    );
    cluster.writes.clear();
    let said = cluster.evaluate(&mut unwanted);
    assert!(said[0].contains("the OperatorGroup is not present, the Subscription is not present"));
    assert!(cluster.writes.is_empty());
}

#[test]
fn policies_that_cannot_be_understood_say_why_and_write_nothing() {
    let check = |change: Value, expected: &str| {
        let mut cluster = Cluster::new(&[package(), shelf()]);
        let mut policy = policy("enforce", "musthave");
        for (key, value) in change.as_object().unwrap() {
            policy["spec"][key] = value.clone();
        }
        let said = cluster.evaluate(&mut policy);
        assert!(
            said[0].starts_with(&format!("NonCompliant; {expected}")),
            "{said:?}"
        );
        assert!(cluster.writes.is_empty(), "{:?}", cluster.writes);
    };
    check(
        json!({"subscription": {}}),
        "name is required in spec.subscription",
    );
    check(
        json!({"subscription": {"name": "lamp", "colour": "red"}}),
        "the policy spec.subscription is invalid: json: unknown field \"colour\"",
    );
    check(
        json!({"subscription": {"name": "lamp", "installPlanApproval": "Automatic"}}),
        "installPlanApproval is prohibited in spec.subscription",
    );
    check(
        json!({"subscription": {"name": "lamp", "source": "other"}}),
        "the subscription defaults could not be determined because the catalog specified in the policy does not match what was found in the PackageManifest on the cluster",
    );
    check(
        json!({"subscription": {"name": "torch"}}),
        "the subscription defaults could not be determined because the PackageManifest was not found",
    );
    check(
        json!({"operatorGroup": {"name": "g", "namespace": "elsewhere"}}),
        "the namespace specified in spec.operatorGroup ('elsewhere') must match the namespace used for the subscription ('ops')",
    );
    check(
        json!({"operatorGroup": {}}),
        "name is required in spec.operatorGroup",
    );
}

#[test]
fn two_enforced_policies_about_one_operator_change_nothing() {
    let mut other = policy("enforce", "musthave");
    other["metadata"]["name"] = json!("second");
    other["status"] = json!({"resolvedSubscriptionLabel": "lamp.ops"});
    let mut cluster = Cluster::new(&[package(), shelf(), other]);
    let mut policy = policy("enforce", "musthave");
    let said = cluster.evaluate(&mut policy);
    assert!(said[0].starts_with("NonCompliant; the specified operator is managed by multiple enforced policies (lamp.c1, second.c1)"), "{said:?}");
    assert!(cluster.writes.is_empty());
}

#[test]
fn templates_choose_the_version_and_the_namespace() {
    let mut cluster = Cluster::new(&[package(), shelf()]);
    let settings = object(
        "v1",
        "ConfigMap",
        "ops",
        "settings",
        json!({"data": {"channel": "beta"}}),
    );
    cluster.objects.push(settings);
    let mut policy = policy("enforce", "musthave");
    policy["spec"]["subscription"]["channel"] =
        json!("{{ fromConfigMap \"ops\" \"settings\" \"channel\" }}");
    policy["spec"]["subscription"]["namespace"] = json!("ops");
    cluster.evaluate(&mut policy);
    assert_eq!(cluster.find("Subscription")["spec"]["channel"], "beta");
}

#[test]
fn deprecations_and_newer_channels_are_reported_and_count_if_the_policy_says_so() {
    let channel = |name: &str| {
        json!({"name": name, "currentCSVDesc": {"annotations": {
            "operatorframework.io/suggested-namespace": "ops"}}})
    };
    let mut cluster = Cluster::new(&[package(), shelf()]);
    let channels = json!([channel("stable"), channel("stable-1.2")]);
    cluster.find("PackageManifest")["status"]["channels"] = channels;
    let mut policy = policy("enforce", "musthave");
    policy["spec"]["upgradeApproval"] = json!("Automatic");
    policy["spec"]["subscription"]["channel"] = json!("stable-1.2");
    cluster.evaluate(&mut policy);
    install(&mut cluster, "1");
    let deprecated =
        json!({"type": "ChannelDeprecated", "status": "True", "message": "stable-1.2 ends soon"});
    cluster.find("Subscription")["status"]["conditions"] = json!([deprecated]);
    let channels = json!([
        channel("stable"),
        channel("stable-1.2"),
        channel("stable-1.10")
    ]);
    cluster.find("PackageManifest")["status"]["channels"] = channels;
    let condition = |policy: &Value, kind: &str| {
        let conditions = policy["status"]["conditions"].as_array().unwrap().iter();
        let mut found = conditions.filter(|it| it["type"] == *kind);
        found.next().map(|it| it["status"].clone())
    };
    // It is said, and is no violation.
    let said = cluster.evaluate(&mut policy).pop().unwrap();
    let deprecations = "the operator has deprecations: stable-1.2 ends soon";
    assert!(
        said.starts_with("Compliant;") && said.ends_with(deprecations),
        "{said}"
    );
    assert_eq!(condition(&policy, "NoDeprecations"), Some(json!("False")));
    assert_eq!(condition(&policy, "MinorChannelUpgradeAvailable"), None);
    policy["spec"]["complianceConfig"] = json!({"deprecationsPresent": "NonCompliant"});
    let said = cluster.evaluate(&mut policy).pop().unwrap();
    assert!(said.starts_with("NonCompliant;"), "{said}");
    // Once nothing is deprecated any more, only the condition says so.
    cluster.find("Subscription")["status"]["conditions"] = json!([]);
    policy["spec"]["complianceConfig"] = json!({"minorChannelUpgradeAvailable": "NonCompliant"});
    let said = cluster.evaluate(&mut policy).pop().unwrap();
    let newer = "the channel stable-1.10 has a newer minor version than stable-1.2";
    assert!(
        said.starts_with("NonCompliant;") && said.ends_with(newer),
        "{said}"
    );
    assert_eq!(condition(&policy, "NoDeprecations"), Some(json!("True")));
    assert_eq!(
        condition(&policy, "MinorChannelUpgradeAvailable"),
        Some(json!("True"))
    );
    policy["spec"]["complianceConfig"] = json!({"minorChannelUpgradeAvailable": "Compliant"});
    let said = cluster.evaluate(&mut policy).pop().unwrap();
    assert!(said.starts_with("Compliant;"), "{said}");
}
