//! The examples of the proposals on workload completion and on status sync, as they are written
//! there: only the parts that they leave out are filled in.

use bellwether_apiserver::HUB;
use bellwether_json::yaml::value_from_yaml;
use serde_json::{Value, json};

use crate::fleet::*;

/// An example, for this member and with this workload.
fn example(text: &str, manifests: Value) -> Value {
    let mut object = value_from_yaml(text).unwrap();
    assert_eq!(object["metadata"]["namespace"], "<target managed cluster>");
    assert_eq!(object["spec"]["workload"], "...");
    object["metadata"]["namespace"] = json!(MEMBER);
    object["spec"]["workload"] = json!({ "manifests": manifests });
    object
}

const RUN_A_JOB_ONCE: &str = "
apiVersion: work.open-cluster-management.io/v1
kind: ManifestWork
metadata:
  namespace: <target managed cluster>
  name: example-job
spec:
  manifestConfigs:
    - resourceIdentifier:
        resource: jobs
        name: some-job
        namespace: default
      conditionRules:
        - type: WellKnownCompletions
  workload: ...
";

const RUN_A_JOB_ONCE_AND_DELETE: &str = "
apiVersion: work.open-cluster-management.io/v1
kind: ManifestWork
metadata:
  namespace: <target managed cluster>
  name: example-job
spec:
  deleteOption:
    ttlSecondsAfterFinished: 30
  manifestConfigs:
    - resourceIdentifier:
        resource: jobs
        namespace: default
        name: some-job
      conditionRules:
        - type: WellKnownCompletions
  workload: ...
";

const CUSTOM_RESOURCE: &str = "
apiVersion: work.open-cluster-management.io/v1
kind: ManifestWork
metadata:
  namespace: <target managed cluster>
  name: example-custom-resource
spec:
  workload: ...
  manifestConfigs:
    - resourceIdentifier:
        resource: mycustomresources
        namespace: default
        name: some-custom-resource
      conditionRules:
        - condition: Complete
          type: CEL
          celExpressions:
           - expression: |
              object.status.conditions.filter(
                c, c.type == 'Complete' || c.type == 'Failed'
              ).exists(
                c, c.status == 'True'
              )
        - condition: MyCondition
          type: CEL
          celExpressions:
           - expression: |
              object.status.conditions.exists(
                c, c.type == 'MyCondition' && c.status == 'True'
              )
";

/// The rules of the optional enhancement, in which an expression gives a map.
const MAPS: &str = r#"
- resourceIdentifier:
    resource: mycustomresources
    namespace: default
    name: some-custom-resource
  conditionRules:
    - condition: ExpectedCount
      type: CEL
      celExpressions:
        - expression: |
            object.status.count >= object.status.expectedCount
              ? {
                "message": "Count matches expected",
                "reason": "CountReached",
              }
              : {
                "message": "Count is only " + string(object.status.count) + " expected " + string(object.status.expectedCount),
                "reason": "CountNotReached",
              }
"#;

/// A custom resource, and its definition.
fn custom_resource() -> [Value; 2] {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "mycustomresources.zoo.example"},
        "spec": {"group": "zoo.example", "scope": "Namespaced",
            "names": {"kind": "MyCustomResource", "plural": "mycustomresources",
                "singular": "mycustomresource", "listKind": "MyCustomResourceList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"status":
                    {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}}]},
    });
    let object = json!({"apiVersion": "zoo.example/v1", "kind": "MyCustomResource",
        "metadata": {"name": "some-custom-resource", "namespace": "default"}});
    [definition, object]
}

/// What is said of a condition, apart from when: status, reason and message.
fn said(condition: &Value) -> [&str; 3] {
    ["status", "reason", "message"].map(|field| condition[field].as_str().unwrap_or_default())
}

async fn a_job_runs_once(fleet: &mut Fleet) {
    let work = example(RUN_A_JOB_ONCE, json!([job("some-job")]));
    fleet.create(HUB, work.clone()).await;
    let seen = fleet.until_condition(&work, "Complete", "False").await;
    let not_complete = ["False", "ConditionRulesFailed", "Manifest is not Complete"];
    assert_eq!(said(manifest_condition(&seen, 0, "Complete")), not_complete);
    fleet
        .merge_status(MEMBER, &job("some-job"), job_done())
        .await;
    let seen = fleet.until_condition(&work, "Complete", "True").await;
    let complete = ["True", "ConditionRulesPassed", "Manifest is Complete"];
    assert_eq!(said(manifest_condition(&seen, 0, "Complete")), complete);
    // The member's own controller cleans up, and nobody makes it again.
    fleet.delete(MEMBER, &job("some-job")).await;
    fleet.pass(3_600_000).await;
    assert!(fleet.get(MEMBER, &job("some-job")).await.is_none());
    assert!(
        fleet.get(HUB, &work).await.is_some(),
        "without a TTL it stays"
    );
}

async fn a_job_runs_once_and_all_of_it_goes(fleet: &mut Fleet) {
    let manifests = json!([job("some-job"), config_map("beside", "1")]);
    let work = example(RUN_A_JOB_ONCE_AND_DELETE, manifests);
    fleet.create(HUB, work.clone()).await;
    fleet.until_condition(&work, "Complete", "False").await;
    fleet.pass(60_000).await;
    assert!(fleet.get(HUB, &work).await.is_some());
    fleet
        .merge_status(MEMBER, &job("some-job"), job_done())
        .await;
    fleet.until_condition(&work, "Complete", "True").await;
    fleet.pass(20_000).await;
    assert!(
        fleet.get(HUB, &work).await.is_some(),
        "its time is yet to come"
    );
    fleet.pass(11_000).await;
    fleet.until_gone(HUB, &work).await;
    assert!(fleet.get(MEMBER, &job("some-job")).await.is_none());
    assert!(fleet.get(MEMBER, &config_map("beside", "")).await.is_none());
}

async fn conditions_of_a_custom_resource(fleet: &mut Fleet) {
    let work = example(CUSTOM_RESOURCE, json!(custom_resource()));
    fleet.create(HUB, work.clone()).await;
    let seen = fleet.until_condition(&work, "Complete", "False").await;
    let absent = [
        "False",
        "ConditionRulesFailed",
        "failed to evaluate: no such key: status",
    ];
    assert_eq!(said(manifest_condition(&seen, 1, "Complete")), absent);
    assert_eq!(said(manifest_condition(&seen, 1, "MyCondition")), absent);
    let [_, object] = custom_resource();
    let half = json!({"conditions": [{"type": "MyCondition", "status": "True"}]});
    fleet.merge_status(MEMBER, &object, half).await;
    let seen = fleet.until_condition(&work, "MyCondition", "True").await;
    let holds = ["True", "ConditionRulesPassed", "Manifest is MyCondition"];
    assert_eq!(said(manifest_condition(&seen, 1, "MyCondition")), holds);
    assert_eq!(condition(&seen["status"], "Complete")["status"], "False");
    let whole = json!({"conditions": [{"type": "Failed", "status": "True"}]});
    fleet.merge_status(MEMBER, &object, whole).await;
    fleet.until_condition(&work, "Complete", "True").await;
}

/// The status that the proposal shows: one manifest is complete, the other is not, and an
/// expression of it fails.
async fn the_conditions_that_are_shown(fleet: &mut Fleet) {
    let rule = |name: &str, expression: &str| json!({"condition": name, "type": "CEL", "celExpressions": [{"expression": expression}]});
    let config = |name: &str, rules: Value| {
        let identifier = json!({"resource": "configmaps", "name": name, "namespace": "default"});
        json!({"resourceIdentifier": identifier, "conditionRules": rules})
    };
    let complete = "object.data.key == 'done'";
    let initialized = rule("Initialized", "object.data.initialzed == 'yes'");
    let configs = json!({"manifestConfigs": [
        config("first", json!([rule("Complete", complete)])),
        config("second", json!([rule("Complete", complete), initialized])),
    ]});
    let manifests = json!([config_map("first", "done"), config_map("second", "not yet")]);
    let work = work_with("example-statuses", manifests, configs);
    fleet.create(HUB, work.clone()).await;
    let seen = fleet.until_condition(&work, "Initialized", "False").await;
    let failed = |message| ["False", "ConditionRulesFailed", message];
    let of_work = |name: &str| said(condition(&seen["status"], name));
    assert_eq!(
        of_work("Complete"),
        failed("One or more manifests is not Complete")
    );
    assert_eq!(
        of_work("Initialized"),
        failed("One or more manifests is not Initialized")
    );
    let of_manifest = |index, name: &str| said(manifest_condition(&seen, index, name));
    let passed = ["True", "ConditionRulesPassed", "Manifest is Complete"];
    assert_eq!(of_manifest(0, "Complete"), passed);
    assert!(manifest_condition(&seen, 0, "Initialized").is_null());
    assert_eq!(
        of_manifest(1, "Complete"),
        failed("Manifest is not Complete")
    );
    assert_eq!(
        of_manifest(1, "Initialized"),
        failed("failed to evaluate: no such key: initialzed")
    );
}

async fn an_expression_that_gives_a_map(fleet: &mut Fleet) {
    let configs = json!({"manifestConfigs": value_from_yaml(MAPS).unwrap()});
    let work = work_with("maps", json!(custom_resource()), configs);
    fleet.create(HUB, work.clone()).await;
    fleet.until_condition(&work, "Applied", "True").await;
    let [_, object] = custom_resource();
    let counted = async |count: i64, status: &str| {
        let counts = json!({"count": count, "expectedCount": 4});
        fleet.merge_status(MEMBER, &object, counts).await;
        let has_it = |work: Option<&Value>| {
            work.is_some_and(|work| {
                let found = manifest_condition(work, 1, "ExpectedCount");
                let reason = found["reason"].as_str().unwrap_or_default();
                found["status"] == status && reason.starts_with("Count")
            })
        };
        let seen = fleet.until(HUB, &work, "it is counted", has_it).await;
        manifest_condition(&seen.unwrap(), 1, "ExpectedCount").clone()
    };
    let found = counted(3, "False").await;
    assert_eq!(
        said(&found),
        ["False", "CountNotReached", "Count is only 3 expected 4"]
    );
    let found = counted(4, "True").await;
    assert_eq!(
        said(&found),
        ["True", "CountReached", "Count matches expected"]
    );
}

crate::cases![
    a_job_runs_once,
    a_job_runs_once_and_all_of_it_goes,
    conditions_of_a_custom_resource,
    the_conditions_that_are_shown,
    an_expression_that_gives_a_map,
];
