//! What agents do with policies, on embedded members.

#![allow(
    clippy::unwrap_used,
    clippy::needless_pass_by_value,
    reason = "a test that cannot go on fails, and tables are written in place"
)]

mod contradictions;
mod gatekeeper;
mod operators;
mod secrets;
mod standalone;

use std::time::Duration;

use bellwether_agent::policy::PolicyAgents;
use bellwether_apiserver::{HUB, Identity};
use bellwether_runtime::ControllerMetrics;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::common::World;

const MEMBER: &str = "cluster1";
const REPLICA: &str = "fleet.rules";
const POLICY_API: &str = "policy.open-cluster-management.io/v1";

/// A hub, and a member with an agent for policies. Time leaps.
struct Bed {
    world: World,
    member: Client,
    _agents: tokio::task::JoinHandle<()>,
}

fn api(client: &Client, api_version: &str, kind: &str, namespace: &str) -> Api<DynamicObject> {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kind = GroupVersionKind::gvk(group, version, kind);
    Api::namespaced_with(client.clone(), namespace, &ApiResource::from_gvk(&kind))
}

impl Bed {
    async fn start() -> Self {
        Self::start_as(Identity::administrator("agent")).await
    }

    /// The agent has these rights on the member.
    async fn start_as(agent: Identity) -> Self {
        let world = World::start().await;
        world.server.add_cluster(MEMBER).await.unwrap();
        let hub = world.server.client(HUB, Identity::administrator("agent"));
        let member = world.server.service(MEMBER, agent);
        let agents = PolicyAgents::start(
            hub,
            None,
            world.clock.clone(),
            |bytes| bytes.fill(7),
            ControllerMetrics::default(),
        );
        agents.add_member(MEMBER, member.reach());
        world
            .create(json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": MEMBER}}))
            .await;
        Self {
            member: world.server.client(MEMBER, Identity::administrator("test")),
            world,
            _agents: tokio::spawn(agents.run()),
        }
    }

    /// A replica, as the hub makes it.
    async fn replicate(&self, spec: Value) {
        self.replicate_as(REPLICA, spec).await;
    }

    /// A replica of a policy of that name.
    async fn replicate_as(&self, name: &str, mut spec: Value) {
        spec["disabled"] = json!(false);
        self.world
            .create(json!({
                "apiVersion": POLICY_API, "kind": "Policy",
                "metadata": {
                    "name": name, "namespace": MEMBER,
                    "labels": {
                        "policy.open-cluster-management.io/root-policy": name,
                        "policy.open-cluster-management.io/cluster-name": MEMBER,
                        "policy.open-cluster-management.io/cluster-namespace": MEMBER,
                    },
                },
                "spec": spec,
            }))
            .await;
    }

    fn replicas(&self) -> Api<DynamicObject> {
        api(&self.world.client, POLICY_API, "Policy", MEMBER)
    }

    async fn change(&self, patch: Value) {
        let params = PatchParams::default();
        let replicas = self.replicas();
        replicas
            .patch(REPLICA, &params, &Patch::Merge(patch))
            .await
            .unwrap();
    }

    fn on_member(&self, api_version: &str, kind: &str, namespace: &str) -> Api<DynamicObject> {
        api(&self.member, api_version, kind, namespace)
    }

    fn config_maps(&self) -> Api<DynamicObject> {
        self.on_member("v1", "ConfigMap", "default")
    }

    async fn create_config_map(&self, name: &str, data: Value) {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "default"}, "data": data,
        });
        let object = serde_json::from_value(object).unwrap();
        let params = PostParams::default();
        self.config_maps().create(&params, &object).await.unwrap();
    }

    async fn until_data(&self, name: &str, data: Option<Value>) {
        self.world
            .until(format!("{name} has {data:?}"), async || {
                let found = self.config_maps().get_opt(name).await.unwrap();
                let found = found.map(|object| object.data["data"].clone());
                (found == data).then_some(()).ok_or(format!("{found:?}"))
            })
            .await;
    }

    /// Waits until a template has reported this message. Returns the message that it reported before.
    async fn until_reported(&self, template: usize, message: &str) -> Value {
        self.world
            .until(
                format!("template {template} has reported {message}"),
                async || {
                    let replica = self.replicas().get(REPLICA).await.unwrap();
                    let replica = serde_json::to_value(&replica).unwrap();
                    let history = &replica["status"]["details"][template]["history"];
                    let mut messages = history.as_array().into_iter().flatten();
                    let found = messages.any(|entry| entry["message"] == message);
                    let before = messages.next().map(|entry| entry["message"].clone());
                    if found {
                        Ok(before.unwrap_or_default())
                    } else {
                        Err(replica["status"].to_string())
                    }
                },
            )
            .await
    }

    /// Waits until the newest message of a template is this one, and returns the replica.
    async fn until_message(&self, template: usize, message: &str) -> Value {
        self.world
            .until(
                format!("template {template} reports {message}"),
                async || {
                    let replica = self.replicas().get(REPLICA).await.unwrap();
                    let replica = serde_json::to_value(&replica).unwrap();
                    let details = &replica["status"]["details"][template];
                    let newest = details["history"][0]["message"].clone();
                    if newest == message {
                        Ok(replica)
                    } else {
                        Err(replica["status"].to_string())
                    }
                },
            )
            .await
    }
}

fn template(name: &str, compliance: &str, object: &str, data: Value) -> Value {
    json!({"objectDefinition": {
        "apiVersion": POLICY_API, "kind": "ConfigurationPolicy",
        "metadata": {"name": name},
        "spec": {
            "remediationAction": "inform", "severity": "low",
            "object-templates": [{
                "complianceType": compliance,
                "objectDefinition": {
                    "apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": {"name": object, "namespace": "default"}, "data": data,
                },
            }],
        },
    }})
}

/// A template that waits until the template `base` is compliant.
fn template_after_base(name: &str) -> Value {
    let mut template = template(name, "musthave", name, json!({}));
    template["extraDependencies"] = json!([{
        "apiVersion": POLICY_API, "kind": "ConfigurationPolicy",
        "name": "base", "compliance": "Compliant",
    }]);
    template
}

const MISSING: &str =
    "NonCompliant; violation - configmaps [anchor] not found in namespace default";
const FOUND: &str =
    "Compliant; notification - configmaps [anchor] found as specified in namespace default";

#[tokio::test(start_paused = true)]
async fn a_policy_that_informs_reports_and_changes_nothing() {
    let bed = Bed::start().await;
    let templates = json!([template("t", "musthave", "anchor", json!({"w": "9"}))]);
    bed.replicate(json!({"remediationAction": "inform", "policy-templates": templates}))
        .await;
    let replica = bed.until_message(0, MISSING).await;
    assert_eq!(replica["status"]["compliant"], "NonCompliant");
    assert_eq!(replica["status"]["observedGeneration"], 1);
    assert_eq!(
        replica["status"]["details"][0]["templateMeta"],
        json!({"name": "t"})
    );
    bed.world.pass(60).await;
    bed.until_data("anchor", None).await;
    let object = bed.on_member(POLICY_API, "ConfigurationPolicy", MEMBER);
    let object = serde_json::to_value(object.get("t").await.unwrap()).unwrap();
    assert_eq!(object["metadata"]["ownerReferences"][0]["name"], REPLICA);
    assert_eq!(object["status"]["lastEvaluatedGeneration"], 1);
    let name = replica["status"]["details"][0]["history"][0]["eventName"].clone();
    let event = bed.on_member("v1", "Event", MEMBER);
    let event = event.get(name.as_str().unwrap()).await.unwrap();
    assert_eq!(event.data["message"], MISSING);
    assert_eq!(event.data["reason"], "policy: cluster1/t");
    let events = bed.on_member("v1", "Event", MEMBER);
    let events = events.list(&kube::api::ListParams::default()).await;
    let told: Vec<Value> = events
        .unwrap()
        .iter()
        .filter(|event| event.data["reason"] == "PolicyTemplateSync")
        .map(|event| event.data["message"].clone())
        .collect();
    assert_eq!(told, ["Policy template t created successfully"]);
    bed.create_config_map("anchor", json!({"w": "9", "x": "1"}))
        .await;
    let replica = bed.until_message(0, FOUND).await;
    assert_eq!(replica["status"]["compliant"], "Compliant");
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_enforces_repairs_drift_and_tells_before_and_after() {
    let bed = Bed::start().await;
    let templates = json!([template("t", "musthave", "anchor", json!({"w": "9"}))]);
    bed.replicate(json!({"remediationAction": "enforce", "policy-templates": templates}))
        .await;
    let created = "Compliant; notification - configmaps [anchor] was created successfully in namespace default";
    assert_eq!(bed.until_reported(0, created).await, MISSING);
    let drift = Patch::Merge(json!({"data": {"w": "1", "own": "2"}}));
    let params = PatchParams::default();
    bed.config_maps()
        .patch("anchor", &params, &drift)
        .await
        .unwrap();
    bed.until_data("anchor", Some(json!({"w": "9", "own": "2"})))
        .await;
    let updated = "Compliant; notification - configmaps [anchor] was updated successfully in namespace default";
    bed.until_reported(0, updated).await;
    let params = DeleteParams::default();
    bed.config_maps().delete("anchor", &params).await.unwrap();
    bed.until_data("anchor", Some(json!({"w": "9"}))).await;
}

#[tokio::test(start_paused = true)]
async fn what_others_change_of_copies_and_templates_is_undone() {
    let bed = Bed::start().await;
    let templates = json!([template("t", "musthave", "anchor", json!({"w": "9"}))]);
    bed.replicate(json!({"remediationAction": "inform", "policy-templates": templates}))
        .await;
    bed.until_message(0, MISSING).await;
    let patch = Patch::Merge(json!({"spec": {"remediationAction": "enforce"}}));
    let params = PatchParams::default();
    for (kind, name) in [("ConfigurationPolicy", "t"), ("Policy", REPLICA)] {
        let objects = bed.on_member(POLICY_API, kind, MEMBER);
        objects.patch(name, &params, &patch).await.unwrap();
        bed.world
            .until(format!("{kind} informs again"), async || {
                let object = objects.get(name).await.unwrap();
                let action = object.data["spec"]["remediationAction"].clone();
                (action == "inform").then_some(()).ok_or(action.to_string())
            })
            .await;
    }
    bed.until_data("anchor", None).await;
}

#[tokio::test(start_paused = true)]
async fn templates_that_are_wrong_say_so_and_others_go_on() {
    let bed = Bed::start().await;
    let strange = json!({"objectDefinition": {
        "apiVersion": POLICY_API, "kind": "TidePolicy", "metadata": {"name": "q"}}});
    let mut unknown = template("field", "musthave", "x", json!({}));
    unknown["objectDefinition"]["spec"]["bogus"] = json!(1);
    let fine = template("fine", "mustnothave", "anchor", json!({}));
    bed.replicate(json!({
        "remediationAction": "inform", "policy-templates": [strange, unknown, fine]}))
        .await;
    bed.until_message(0, "NonCompliant; template-error; Mapping not found, check if you have the CRD deployed: the resource version was not found: no matching kind was found: policy.open-cluster-management.io/v1, Kind=TidePolicy").await;
    bed.until_message(1, "NonCompliant; template-error; Failed to create policy template: ConfigurationPolicy in version \"v1\" cannot be handled as a ConfigurationPolicy: strict decoding error: unknown field \"spec.bogus\"").await;
    let replica = bed
        .until_message(2, "Compliant; notification - configmaps [anchor] missing as expected in namespace default")
        .await;
    assert_eq!(replica["status"]["compliant"], "NonCompliant");
    assert_eq!(
        replica["status"]["details"][0]["history"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test(start_paused = true)]
async fn a_template_waits_for_what_it_depends_on() {
    let bed = Bed::start().await;
    let base = template("base", "musthave", "anchor", json!({}));
    let upper = template_after_base("upper");
    bed.replicate(json!({"remediationAction": "inform", "policy-templates": [base, upper]}))
        .await;
    let pending =
        "Pending; Dependencies were not satisfied: 1 is still pending (ConfigurationPolicy base)";
    bed.until_message(1, pending).await;
    let templates = bed.on_member(POLICY_API, "ConfigurationPolicy", MEMBER);
    assert!(templates.get_opt("upper").await.unwrap().is_none());
    bed.create_config_map("anchor", json!({})).await;
    let missing = "NonCompliant; violation - configmaps [upper] not found in namespace default";
    bed.until_message(1, missing).await;
    let params = DeleteParams::default();
    bed.config_maps().delete("anchor", &params).await.unwrap();
    bed.until_message(1, pending).await;
    assert!(templates.get_opt("upper").await.unwrap().is_none());
}

#[tokio::test(start_paused = true)]
async fn objects_go_with_a_policy_that_prunes_them() {
    let bed = Bed::start().await;
    let mut own = template("t", "musthave", "anchor", json!({"w": "9"}));
    own["objectDefinition"]["spec"]["pruneObjectBehavior"] = json!("DeleteIfCreated");
    bed.replicate(json!({"remediationAction": "enforce", "policy-templates": [own]}))
        .await;
    bed.until_data("anchor", Some(json!({"w": "9"}))).await;
    let created = "Compliant; notification - configmaps [anchor] was created successfully in namespace default";
    bed.until_reported(0, created).await;
    bed.replicas()
        .delete(REPLICA, &DeleteParams::default())
        .await
        .unwrap();
    bed.until_data("anchor", None).await;
    for (kind, name) in [("ConfigurationPolicy", "t"), ("Policy", REPLICA)] {
        let objects = bed.on_member(POLICY_API, kind, MEMBER);
        bed.world
            .until(format!("{kind} is gone"), async || {
                let found = objects.get_opt(name).await.unwrap();
                found.map_or(Ok(()), |object| Err(format!("{object:?}")))
            })
            .await;
    }
}

#[tokio::test(start_paused = true)]
async fn templates_read_the_member_and_follow_its_changes() {
    let bed = Bed::start().await;
    bed.create_config_map("source", json!({"depth": "42"}))
        .await;
    let data = json!({"d": "{{ fromConfigMap \"default\" \"source\" \"depth\" }}"});
    let templates = json!([template("t", "musthave", "anchor", data)]);
    bed.replicate(json!({"remediationAction": "enforce", "policy-templates": templates}))
        .await;
    bed.until_data("anchor", Some(json!({"d": "42"}))).await;
    let deeper = Patch::Merge(json!({"data": {"depth": "43"}}));
    let params = PatchParams::default();
    bed.config_maps()
        .patch("source", &params, &deeper)
        .await
        .unwrap();
    bed.until_data("anchor", Some(json!({"d": "43"}))).await;
}

#[tokio::test(start_paused = true)]
async fn an_interval_is_kept_and_never_means_never() {
    let bed = Bed::start().await;
    let mut often = template("often", "musthave", "anchor", json!({}));
    often["objectDefinition"]["spec"]["evaluationInterval"] =
        json!({"compliant": "10s", "noncompliant": "10s"});
    let mut never = template("never", "musthave", "anchor", json!({}));
    never["objectDefinition"]["spec"]["evaluationInterval"] = json!({"noncompliant": "never"});
    bed.replicate(json!({"remediationAction": "inform", "policy-templates": [often, never]}))
        .await;
    bed.until_message(0, MISSING).await;
    let last = format!(
        "{MISSING}. This policy will not be evaluated again due to spec.evaluationInterval.noncompliant being set to \"never\"."
    );
    bed.until_message(1, &last).await;
    bed.create_config_map("anchor", json!({})).await;
    tokio::time::sleep(Duration::from_secs(11)).await;
    bed.until_message(0, FOUND).await;
    bed.world.pass(600).await;
    bed.until_message(1, &last).await;
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_rollout_is_told_only_where_the_hub_began_it() {
    let bed = Bed::start().await;
    let templates = json!([template("t", "musthave", "anchor", json!({}))]);
    bed.replicate(json!({"remediationAction": "inform", "policy-templates": templates}))
        .await;
    bed.until_message(0, MISSING).await;
    let status = |value: &str| Patch::Merge(json!({"status": {"rolloutStatus": value}}));
    let params = PatchParams::default();
    let replicas = bed.replicas();
    replicas
        .patch_status(REPLICA, &params, &status("ToApply"))
        .await
        .unwrap();
    bed.world.pass(5).await;
    let replica = replicas.get(REPLICA).await.unwrap();
    assert_eq!(replica.data["status"]["rolloutStatus"], "ToApply");
    bed.change(json!({"spec": {"remediationAction": "enforce"}}))
        .await;
    replicas
        .patch_status(REPLICA, &params, &status("Progressing"))
        .await
        .unwrap();
    bed.world
        .until("the rollout succeeded".to_owned(), async || {
            let replica = replicas.get(REPLICA).await.unwrap();
            let status = replica.data["status"].clone();
            let is_done = status["rolloutStatus"] == "Succeeded"
                && status["observedGeneration"] == 2
                && status["compliant"] == "Compliant";
            is_done.then_some(()).ok_or(status.to_string())
        })
        .await;
}

/// The first Policy in a file of examples: what it says is replicated.
fn example(text: &str) -> Value {
    let documents = bellwether_json::yaml::from_yaml(text).unwrap();
    let policy = documents
        .into_iter()
        .find(|document| document["kind"] == "Policy");
    policy.unwrap()["spec"].clone()
}

#[tokio::test(start_paused = true)]
async fn the_examples_inform_and_enforce() {
    let bed = Bed::start().await;
    bed.replicate(example(include_str!(
        "../../../../examples/policy/inform.yaml"
    )))
    .await;
    let missing = "NonCompliant; violation - limitranges [limits] not found in namespace default";
    bed.until_message(0, missing).await;
    let enforce = example(include_str!("../../../../examples/policy/enforce.yaml"));
    bed.change(json!({ "spec": enforce })).await;
    let created = "Compliant; notification - limitranges [limits] was created successfully in namespace default";
    assert_eq!(bed.until_reported(0, created).await, missing);
}

#[tokio::test(start_paused = true)]
async fn the_example_with_templates_fills_in_each_object() {
    let bed = Bed::start().await;
    for name in ["one", "two"] {
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "default", "labels": {"audit": "yes"}},
        });
        let object = serde_json::from_value(object).unwrap();
        let params = PostParams::default();
        bed.config_maps().create(&params, &object).await.unwrap();
    }
    bed.replicate(example(include_str!(
        "../../../../examples/policy/templates.yaml"
    )))
    .await;
    bed.until_data("one", Some(json!({"seen": "one in default"})))
        .await;
    bed.until_data("two", Some(json!({"seen": "two in default"})))
        .await;
}
