//! The definitions are sound, say what they should, and agree with the types.

#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "helpers of tests fail as tests do"
)]
#![allow(
    clippy::needless_pass_by_value,
    reason = "tables of cases hand over their values"
)]

mod inventory;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bellwether_api::{
    Kind, addon, cluster, definitions, delivery, multicluster, oam, policy, work, workflow,
};
use bellwether_schema::meta::Malformed;
use bellwether_schema::{
    Change, CompiledSchema, Document, FieldPath, RuleLimits, definition, parse,
};
use serde_json::{Value, json};

/// The definition of a kind as a server has it.
struct Served {
    name: String,
    schema: CompiledSchema,
}

impl Served {
    fn of(definition: &Value) -> Self {
        let spec = &definition["spec"];
        let schema = parse(&spec["versions"][0]["schema"]["openAPIV3Schema"]).expect("a schema");
        Self {
            name: format!(
                "{}/{} {}",
                spec["group"].as_str().expect("a group"),
                spec["versions"][0]["name"].as_str().expect("a version"),
                spec["names"]["kind"].as_str().expect("a kind"),
            ),
            schema: CompiledSchema::compile(Arc::new(schema), |_, _| Vec::new()),
        }
    }

    fn all() -> BTreeMap<String, Self> {
        let served = definitions().map(|it| Self::of(&it)).collect::<Vec<_>>();
        served
            .into_iter()
            .map(|served| (served.name.clone(), served))
            .collect()
    }

    /// What is wrong with an object, fields that would be lost included; fills in defaults.
    fn admit(&self, object: &mut Value) -> Vec<String> {
        let unknown = self
            .schema
            .coerce(object, Malformed::Refuse)
            .expect("decodable metadata");
        self.schema.default(object).expect("few defaults");
        let change = Change::Create(object);
        let mut errors = self.schema.validate_values(change);
        let warnings = self
            .schema
            .validate_rules(change, &mut errors, RuleLimits::default())
            .expect("rules within their budget");
        assert!(
            warnings.is_empty(),
            "nothing was wrong before: {warnings:?}"
        );
        let unknown = unknown.into_iter().map(|path| format!("unknown: {path}"));
        unknown
            .chain(errors.iter().map(ToString::to_string))
            .collect()
    }
}

fn name_of(object: &Value) -> String {
    let text = |field: &str| object[field].as_str().expect("a type").to_owned();
    format!("{} {}", text("apiVersion"), text("kind"))
}

fn samples() -> Vec<Value> {
    let files = [
        include_str!("../testdata/samples/addon.yaml"),
        include_str!("../testdata/samples/cluster.yaml"),
        include_str!("../testdata/samples/delivery.yaml"),
        include_str!("../testdata/samples/multicluster.yaml"),
        include_str!("../testdata/samples/oam.yaml"),
        include_str!("../testdata/samples/policy.yaml"),
        include_str!("../testdata/samples/work.yaml"),
        include_str!("../testdata/samples/workflow.yaml"),
    ];
    let read = |text: &str| bellwether_json::yaml::from_yaml(text).expect("samples are YAML");
    files.into_iter().flat_map(read).collect()
}

/// Reads an object as its type and writes it again.
fn through_type(object: &Value) -> Result<Value, serde_json::Error> {
    fn through<K: Kind>(object: &Value) -> Result<Value, serde_json::Error> {
        serde_json::to_value(serde_json::from_value::<K>(object.clone())?)
    }
    let through = match object["kind"].as_str().expect("a kind") {
        "AddOnDeploymentConfig" => through::<addon::AddOnDeploymentConfig>,
        "AddOnTemplate" => through::<addon::AddOnTemplate>,
        "ClusterManagementAddOn" => through::<addon::ClusterManagementAddOn>,
        "ManagedClusterAddOn" => through::<addon::ManagedClusterAddOn>,
        "AddOnPlacementScore" => through::<cluster::AddOnPlacementScore>,
        "AppliedManifestWork" => through::<work::AppliedManifestWork>,
        "AppliedWork" => through::<multicluster::AppliedWork>,
        "ClusterClaim" => through::<cluster::ClusterClaim>,
        "ManagedCluster" => through::<cluster::ManagedCluster>,
        "ManagedClusterSet" => through::<cluster::ManagedClusterSet>,
        "ManagedClusterSetBinding" => through::<cluster::ManagedClusterSetBinding>,
        "ManifestWork" => through::<work::ManifestWork>,
        "ManifestWorkReplicaSet" => through::<work::ManifestWorkReplicaSet>,
        "Placement" => through::<cluster::Placement>,
        "PlacementBinding" => through::<policy::PlacementBinding>,
        "PlacementDecision" => through::<cluster::PlacementDecision>,
        "PlacementRule" => through::<policy::PlacementRule>,
        "Application" => through::<oam::Application>,
        "ApplicationConfiguration" => through::<oam::ApplicationConfiguration>,
        "ApplicationRevision" => through::<oam::ApplicationRevision>,
        "Component" => through::<oam::Component>,
        "ComponentDefinition" => through::<oam::ComponentDefinition>,
        "ContainerizedWorkload" => through::<oam::ContainerizedWorkload>,
        "DefinitionRevision" => through::<oam::DefinitionRevision>,
        "ManualScalerTrait" => through::<oam::ManualScalerTrait>,
        "PolicyDefinition" => through::<oam::PolicyDefinition>,
        "ResourceTracker" => through::<oam::ResourceTracker>,
        "TraitDefinition" => through::<oam::TraitDefinition>,
        "WorkflowStepDefinition" => through::<oam::WorkflowStepDefinition>,
        "WorkloadDefinition" => through::<oam::WorkloadDefinition>,
        "Policy" if object["apiVersion"] == "core.oam.dev/v1alpha1" => through::<oam::Policy>,
        "Policy" => through::<policy::Policy>,
        "CertificatePolicy" => through::<policy::CertificatePolicy>,
        "ConfigurationPolicy" => through::<policy::ConfigurationPolicy>,
        "OperatorPolicy" => through::<policy::OperatorPolicy>,
        "PolicyAutomation" => through::<policy::PolicyAutomation>,
        "PolicySet" => through::<policy::PolicySet>,
        "Distribution" => through::<delivery::Distribution>,
        "Rollout" => through::<delivery::Rollout>,
        "Work" => through::<multicluster::Work>,
        "WorkManifestConfig" => through::<multicluster::WorkManifestConfig>,
        "Workflow" => through::<workflow::Workflow>,
        "HelmTemplate" => through::<workflow::HelmTemplate>,
        "KustomizePatch" => through::<workflow::KustomizePatch>,
        "WorkflowHistory" => through::<workflow::WorkflowHistory>,
        "WorkflowRun" => through::<workflow::WorkflowRun>,
        other => panic!("no type for {other}"),
    };
    through(object)
}

#[test]
fn definitions_are_sound() {
    for definition in definitions() {
        let name = definition["metadata"]["name"].clone();
        let version = &definition["spec"]["versions"][0];
        let (document, unknown) =
            Document::parse(&version["schema"]["openAPIV3Schema"]).expect("a schema");
        assert_eq!(
            unknown,
            Vec::<String>::new(),
            "{name}: keywords nobody knows"
        );
        let has_status = version["subresources"].get("status").is_some();
        let path = FieldPath::new("schema");
        let errors = definition::check(&document, has_status, |_, _| Vec::new(), &path);
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(errors, Vec::<String>::new(), "{name}");
    }
}

#[test]
fn other_versions_are_served_as_they_are_stored() {
    for definition in definitions() {
        let versions = definition["spec"]["versions"].as_array().unwrap();
        let other = match definition["metadata"]["name"].as_str().unwrap() {
            "traitdefinitions.core.oam.dev" | "workloaddefinitions.core.oam.dev" => {
                Some("v1alpha2")
            }
            _ if definition["spec"]["group"] == addon::GROUP => Some("v1beta1"),
            _ => None,
        };
        assert_eq!(versions.len(), 1 + usize::from(other.is_some()));
        for version in &versions[1..] {
            assert_eq!(
                (&version["name"], &version["storage"]),
                (&json!(other), &json!(false))
            );
            let spec = &version["schema"]["openAPIV3Schema"]["properties"]["spec"];
            assert_eq!(spec["x-kubernetes-preserve-unknown-fields"], true);
            let (document, unknown) =
                Document::parse(&version["schema"]["openAPIV3Schema"]).expect("a schema");
            assert_eq!(unknown, Vec::<String>::new());
            let has_status = version["subresources"].get("status").is_some();
            let path = FieldPath::new("schema");
            let errors = definition::check(&document, has_status, |_, _| Vec::new(), &path);
            assert_eq!(errors.len(), 0);
        }
    }
}

#[test]
fn definitions_are_named_after_what_they_define_and_sorted() {
    let keys: Vec<(String, String)> = definitions()
        .map(|definition| {
            let spec = &definition["spec"];
            let text = |value: &Value| value.as_str().expect("a text").to_owned();
            let expected = format!(
                "{}.{}",
                text(&spec["names"]["plural"]),
                text(&spec["group"])
            );
            assert_eq!(definition["metadata"]["name"], expected);
            (text(&spec["group"]), text(&spec["names"]["kind"]))
        })
        .collect();
    let mut sorted = keys.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!(keys, sorted);
}

/// `BELLWETHER_BLESS=1 cargo test -p bellwether-api` writes the files again.
#[test]
fn fields_are_those_of_the_inventory() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/fields");
    for definition in definitions() {
        let actual = inventory::of(&definition);
        let plural = definition["spec"]["names"]["plural"]
            .as_str()
            .expect("a plural");
        // Two groups have policies.
        let name = match definition["metadata"]["name"].as_str() {
            Some(whole @ "policies.core.oam.dev") => whole,
            _ => plural,
        };
        let file = folder.join(format!("{name}.txt"));
        if option_env!("BELLWETHER_BLESS").is_some() {
            std::fs::write(&file, &actual).expect("the inventory is written");
        }
        let expected = std::fs::read_to_string(&file).expect("an inventory for every kind");
        assert_eq!(actual, expected, "{name}");
    }
}

#[test]
fn every_field_has_a_description() {
    for definition in definitions() {
        let missing: Vec<String> = inventory::fields(&definition)
            .into_iter()
            .filter(|field| !field.is_described && !field.path.ends_with("[]"))
            .map(|field| field.path)
            .filter(|path| path != "metadata" && !path.ends_with("{}"))
            .collect();
        assert_eq!(
            missing,
            Vec::<String>::new(),
            "{}",
            definition["metadata"]["name"]
        );
    }
}

#[test]
fn samples_are_admitted_whole() {
    let served = Served::all();
    for sample in samples() {
        let name = name_of(&sample);
        let mut admitted = sample.clone();
        assert_eq!(
            served[&name].admit(&mut admitted),
            Vec::<String>::new(),
            "{name}"
        );
    }
}

#[test]
fn there_is_a_sample_of_every_kind() {
    let mut kinds: Vec<String> = samples().iter().map(name_of).collect();
    kinds.sort();
    kinds.dedup();
    assert_eq!(kinds, Served::all().into_keys().collect::<Vec<_>>());
}

#[test]
fn types_lose_nothing_of_samples() {
    for sample in samples() {
        let name = name_of(&sample);
        assert_eq!(
            through_type(&sample).expect("a readable sample"),
            sample,
            "{name}"
        );
    }
}

/// Puts a field that nobody knows into every object within a value.
fn add_unknown(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (key, field) in fields.iter_mut() {
                // Metadata, conditions and selectors are types of Kubernetes, and maps have no fields.
                let is_foreign = [
                    "metadata",
                    "conditions",
                    "labelSelector",
                    "clusterSelector",
                    "matchExpressions",
                    "capacity",
                    "allocatable",
                    "scopes",
                    "details",
                    "workflowContext",
                ];
                let is_own_selector =
                    key == "clusterSelector" && field.get("selectorType").is_some();
                if is_own_selector || !is_foreign.contains(&key.as_str()) {
                    add_unknown(field);
                }
            }
            fields.insert("fromTheFuture".into(), json!({"known": false}));
        }
        Value::Array(items) => {
            for item in items {
                add_unknown(item);
            }
        }
        _ => {}
    }
}

#[test]
fn unknown_fields_survive_anywhere() {
    // Anyone who writes a decision writes it whole.
    let is_kept = |sample: &Value| sample["kind"] != "PlacementDecision";
    for mut sample in samples().into_iter().filter(is_kept) {
        add_unknown(&mut sample);
        let name = name_of(&sample);
        assert_eq!(
            through_type(&sample).expect("a readable sample"),
            sample,
            "{name}"
        );
    }
}

#[test]
fn unknown_values_survive() {
    let mut sample = samples()
        .into_iter()
        .find(|sample| sample["kind"] == "ManifestWork")
        .unwrap();
    sample["spec"]["deleteOption"]["propagationPolicy"] = "Sideways".into();
    sample["spec"]["manifestConfigs"][0]["updateStrategy"]["type"] = "Guess".into();
    sample["spec"]["manifestConfigs"][0]["conditionRules"][2]["celExpressions"][0] = 7.into();
    assert_eq!(through_type(&sample).unwrap(), sample);
}

#[test]
fn another_kind_is_refused_by_name() {
    let mut claim = samples()
        .into_iter()
        .find(|sample| sample["kind"] == "ClusterClaim")
        .unwrap();
    claim["apiVersion"] = "cluster.open-cluster-management.io/v1".into();
    let error = serde_json::from_value::<cluster::ClusterClaim>(claim).unwrap_err();
    assert_eq!(
        error.to_string(),
        "expected cluster.open-cluster-management.io/v1alpha1 ClusterClaim, \
         found cluster.open-cluster-management.io/v1 ClusterClaim",
    );
}

fn object(api_version: &str, kind: &str, rest: Value) -> Value {
    let mut object = rest;
    object["apiVersion"] = api_version.into();
    object["kind"] = kind.into();
    object["metadata"] = json!({"name": "x"});
    object
}

#[track_caller]
#[allow(
    clippy::needless_pass_by_value,
    reason = "tables of cases hand over their values"
)]
fn check_defaults(api_version: &str, kind: &str, given: Value, expected: Value) {
    let mut object = object(api_version, kind, given);
    let errors = Served::all()[&name_of(&object)].admit(&mut object);
    assert_eq!(errors, Vec::<String>::new());
    assert_eq!(object["spec"], expected["spec"]);
}

const CLUSTER_V1: &str = "cluster.open-cluster-management.io/v1";
const CLUSTER_V1BETA1: &str = "cluster.open-cluster-management.io/v1beta1";
const CLUSTER_V1BETA2: &str = "cluster.open-cluster-management.io/v1beta2";
const WORK_V1: &str = "work.open-cluster-management.io/v1";
const WORK_V1ALPHA1: &str = "work.open-cluster-management.io/v1alpha1";
const MULTICLUSTER: &str = "multicluster.x-k8s.io/v1alpha1";

#[test]
fn servers_fill_in_what_peers_fill_in() {
    check_defaults(
        CLUSTER_V1,
        "ManagedCluster",
        json!({"spec": {}}),
        json!({"spec": {"leaseDurationSeconds": 60}}),
    );
    check_defaults(
        CLUSTER_V1BETA2,
        "ManagedClusterSet",
        json!({}),
        json!({"spec": {"clusterSelector": {"selectorType": "ExclusiveClusterSetLabel"}}}),
    );
    check_defaults(
        CLUSTER_V1BETA1,
        "Placement",
        json!({"spec": {
            "prioritizerPolicy": {"configurations": [{"scoreCoordinate": {"builtIn": "Steady"}}]},
            "tolerations": [{"key": "a"}],
            "decisionStrategy": {"groupStrategy": {}},
            "spreadPolicy": {"spreadConstraints": [{"topologyKey": "a", "topologyKeyType": "Claim"}]},
        }}),
        json!({"spec": {
            "prioritizerPolicy": {
                "mode": "Additive",
                "configurations": [
                    {"scoreCoordinate": {"type": "BuiltIn", "builtIn": "Steady"}, "weight": 1},
                ],
            },
            "tolerations": [{"key": "a", "operator": "Equal"}],
            "decisionStrategy": {"groupStrategy": {"clustersPerDecisionGroup": "100%"}},
            "spreadPolicy": {"spreadConstraints": [{
                "topologyKey": "a",
                "topologyKeyType": "Claim",
                "maxSkew": 1,
                "whenUnsatisfiable": "ScheduleAnyway",
            }]},
            "sortBy": "ClusterName",
            "scoreRateLimit": "1m",
        }}),
    );
    let identifier = json!({"resource": "jobs", "name": "x"});
    check_defaults(
        WORK_V1,
        "ManifestWork",
        json!({"spec": {
            "deleteOption": {},
            "manifestConfigs": [{
                "resourceIdentifier": identifier,
                "updateStrategy": {"serverSideApply": {"ignoreFields": [{}]}},
            }],
        }}),
        json!({"spec": {
            "deleteOption": {"propagationPolicy": "Foreground"},
            "manifestConfigs": [{
                "resourceIdentifier": identifier,
                "feedbackScrapeType": "Poll",
                "updateStrategy": {
                    "type": "Update",
                    "serverSideApply": {
                        "fieldManager": "work-agent",
                        "ignoreFields": [{"condition": "OnSpokePresent"}],
                    },
                },
            }],
        }}),
    );
    check_defaults(
        WORK_V1ALPHA1,
        "ManifestWorkReplicaSet",
        json!({"spec": {"placementRefs": [
            {"name": "a"},
            {"name": "b", "rolloutStrategy": {"type": "Progressive", "progressive": {}}},
        ]}}),
        json!({"spec": {
            "cascadeDeletionPolicy": "Background",
            "placementRefs": [
                {"name": "a", "rolloutStrategy": {
                    "type": "All",
                    "all": {"minSuccessTime": "0", "progressDeadline": "None", "maxFailures": 0},
                }},
                {"name": "b", "rolloutStrategy": {
                    "type": "Progressive",
                    "progressive": {
                        "minSuccessTime": "0",
                        "progressDeadline": "None",
                        "maxFailures": 0,
                    },
                }},
            ],
        }}),
    );
    let kind = json!({"group": "", "version": "v1", "kind": "Pod"});
    check_defaults(
        MULTICLUSTER,
        "WorkManifestConfig",
        json!({"spec": {"manifestGVK": kind, "resourceStatusSync": {}}}),
        json!({"spec": {
            "manifestGVK": kind,
            "resourceStatusSync": {"frequencySeconds": 60, "stopThreshold": 0},
        }}),
    );
}

#[track_caller]
#[allow(
    clippy::needless_pass_by_value,
    reason = "tables of cases hand over their values"
)]
fn check_refused(api_version: &str, kind: &str, rest: Value, expected: &str) {
    let mut object = object(api_version, kind, rest);
    let errors = Served::all()[&name_of(&object)]
        .admit(&mut object)
        .join("\n");
    assert!(
        errors.contains(expected),
        "expected {expected:?} in:\n{errors}"
    );
}

fn with_rule(rule: Value) -> Value {
    json!({"spec": {"manifestConfigs": [{
        "resourceIdentifier": {"resource": "jobs", "name": "x"},
        "conditionRules": [rule],
    }]}})
}

fn with_groups(strategy: Value) -> Value {
    json!({"spec": {"decisionStrategy": {"groupStrategy": strategy}}})
}

#[test]
fn what_cannot_work_is_refused() {
    let refused = |rest, expected| check_refused(WORK_V1, "ManifestWork", rest, expected);
    refused(
        with_rule(json!({"type": "CEL"})),
        "Condition is required for CEL rules",
    );
    refused(
        with_rule(json!({"type": "CEL", "condition": "Available"})),
        "conditions that the agent sets itself",
    );
    refused(
        with_rule(json!({"type": "Hunch"})),
        "Unsupported value: \"Hunch\"",
    );
    refused(
        with_rule(json!({"type": "CEL", "condition": "A", "celExpressions": [{"rule": "true"}]})),
        "celExpressions[0].expression: Required value",
    );
    refused(
        json!({"spec": {"deleteOption": {"propagationPolicy": "Now"}}}),
        "\"Now\"",
    );

    let refused = |rest, expected| check_refused(CLUSTER_V1BETA1, "Placement", rest, expected);
    refused(
        with_groups(json!({"clustersPerDecisionGroup": "0%"})),
        "clustersPerDecisionGroup",
    );
    refused(
        with_groups(json!({"decisionGroups": [{"groupName": "ab"}]})),
        "groupClusterSelector is required",
    );
    refused(
        with_groups(json!({
            "decisionGroups": [{"groupName": "ab", "groupClusterSelector": {}}],
            "DecisionGroups": [{"groupName": "cd", "clusterSelector": {}}],
        })),
        "two spellings of one field",
    );
    check_refused(
        WORK_V1ALPHA1,
        "ManifestWorkReplicaSet",
        json!({"spec": {"placementRefs": []}}),
        "spec.placementRefs",
    );
    check_refused(
        MULTICLUSTER,
        "WorkManifestConfig",
        json!({"spec": {
            "manifestGVK": {"group": "", "version": "v1", "kind": "Pod"},
            "resourceStatusSync": {"frequencySeconds": 0},
        }}),
        "frequencySeconds",
    );
}

#[test]
fn columns_name_conditions_that_exist() {
    use bellwether_api::addon::condition as of_add_on;
    use bellwether_api::cluster::names::condition as of_cluster;
    use bellwether_api::work::names::condition as of_work;
    use bellwether_api::workflow::names::condition as of_workflow;
    let known = [
        of_add_on::AVAILABLE,
        of_add_on::DEGRADED,
        of_add_on::PROGRESSING,
        of_cluster::JOINED,
        of_cluster::AVAILABLE,
        of_cluster::CLUSTER_SET_EMPTY,
        of_cluster::PLACEMENT_SATISFIED,
        of_work::PLACEMENT_VERIFIED,
        of_work::MANIFESTWORK_APPLIED,
        of_workflow::WORKFLOW_PROGRESS,
    ];
    for definition in definitions() {
        let columns = &definition["spec"]["versions"][0]["additionalPrinterColumns"];
        for column in columns.as_array().into_iter().flatten() {
            let path = column["jsonPath"].as_str().expect("a path");
            let named = path.split('"').nth(1);
            assert!(named.is_none_or(|name| known.contains(&name)), "{path}");
        }
    }
}

#[test]
fn both_spellings_of_groups_are_read() {
    let placements = samples()
        .into_iter()
        .filter(|sample| sample["kind"] == "Placement");
    let names: Vec<(String, bool)> = placements
        .flat_map(|sample| {
            let placement: cluster::Placement = serde_json::from_value(sample).unwrap();
            let strategy = placement
                .spec
                .decision_strategy
                .unwrap()
                .group_strategy
                .unwrap();
            strategy
                .groups()
                .map(|group| (group.group_name.clone(), group.label_selector().is_some()))
                .collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(
        names,
        [("pilots".to_owned(), true), ("river".to_owned(), true)]
    );
}

#[test]
fn both_spellings_of_expressions_are_read() {
    let sample = samples()
        .into_iter()
        .find(|sample| sample["kind"] == "ManifestWork")
        .unwrap();
    let work: work::ManifestWork = serde_json::from_value(sample).unwrap();
    let rules = &work.spec.manifest_configs[0].condition_rules;
    let expressions: Vec<_> = rules
        .iter()
        .flat_map(|rule| &rule.cel_expressions)
        .map(|cel| cel.expression())
        .collect();
    assert_eq!(
        expressions,
        [
            Some("object.status.succeeded > 0"),
            Some("object.status.failed == 0")
        ]
    );
}
