//! Policies that are written more loosely than an API server would take them.

use bellwether_template::NOWHERE;
use serde_json::{Value, json};

use super::probe::answer;

const FOUND: &str =
    "Compliant; notification - configmaps [tide] found as specified in namespace default";

/// A dry run on a cluster with the ConfigMap `tide` and the namespaces `bay` and `default`.
fn run(spec: &str) -> Value {
    let policy = format!(
        "apiVersion: policy.open-cluster-management.io/v1\nkind: ConfigurationPolicy\n\
         metadata: {{name: p}}\nspec:\n{spec}"
    );
    let objects = [
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: tide, namespace: default}, data: {a: \"1\"}}",
        "{apiVersion: v1, kind: Namespace, metadata: {name: bay, labels: {sea: north}}}",
        "{apiVersion: v1, kind: Namespace, metadata: {name: default}}",
    ];
    let case = json!({"policy": policy, "objects": objects});
    serde_json::from_str(&answer(&case.to_string(), &NOWHERE)).unwrap()
}

const TIDE: &str = "{apiVersion: v1, kind: ConfigMap, metadata: {name: tide, namespace: default}}";

#[test]
fn what_go_reads_is_evaluated() {
    let absent = "NonCompliant; violation - configmaps [tide] not found in namespace bay";
    let banned = "NonCompliant; violation - configmaps [tide] found in namespace default";
    let unnamed = "{apiVersion: v1, kind: ConfigMap, metadata: {name: tide}}";
    for (spec, message) in [
        (
            format!("  object-templates: [{{objectDefinition: {TIDE}}}]"),
            FOUND,
        ),
        (
            format!(
                "  RemediationAction: inform\n  object-templates: [{{ComplianceType: MustNotHave, objectdefinition: {TIDE}}}]"
            ),
            banned,
        ),
        (
            format!(
                "  namespaceselector: {{matchlabels: {{sea: north}}}}\n  object-templates: [{{objectDefinition: {unnamed}}}]"
            ),
            absent,
        ),
        (
            format!(
                "  namespaceSelector: {{Include: [bay]}}\n  object-templates: [{{objectDefinition: {unnamed}}}]"
            ),
            absent,
        ),
        (
            format!(
                "  object-templates-raw: |\n    - objectdefinition: {TIDE}\n    ---\n    - [\n"
            ),
            FOUND,
        ),
    ] {
        let found = run(&spec);
        assert_eq!(found["messages"], json!([message]), "{spec}: {found}");
    }
}

#[test]
fn a_definition_that_is_missing_is_an_error() {
    let message =
        "NonCompliant; violation - Error parsing the namespace from the object definition";
    for spec in [
        "  object-templates: [{complianceType: musthave}]",
        "  object-templates: [{complianceType: musthave, objectDefinition: null}]",
        "  object-templates-raw: '[{}]'",
    ] {
        let found = run(spec);
        assert_eq!(found["exit"], 1, "{spec}");
        let error = "Error: unable to complete the dryrun reconcile: unexpected end of JSON input";
        assert_eq!(found["error"], error, "{spec}");
        assert_eq!(found["controller"]["messages"], json!([message]), "{spec}");
    }
}

#[test]
fn keys_that_occur_twice_are_all_named() {
    let found = run(
        "  severity: low\n  severity: high\n  remediationAction: inform\n  remediationAction: inform\n",
    );
    let error = "Error: unable to read input policy: error converting YAML to JSON: yaml: unmarshal errors:\n  \
                 line 6: key \"severity\" already set in map\n  \
                 line 8: key \"remediationAction\" already set in map";
    assert_eq!(found["error"], error);
}
