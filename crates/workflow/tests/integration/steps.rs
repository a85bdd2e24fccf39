//! Every built-in type of step with parameters that people give: which action it begins with.

use std::collections::BTreeSet;
use std::sync::Arc;

use bellwether_workflow::Definition;
use bellwether_workflow::builtin::{self, STEPS};
use bellwether_workflow::definition::StepData;
use bellwether_workflow::session::{Found, Session};
use serde_json::{Value, json};

fn context() -> Value {
    json!({"name": "r", "namespace": "n", "appName": "r", "appRevision": "r-v1", "workflowName": "",
        "publishVersion": "", "appLabels": {}, "appAnnotations": {}, "stepName": "s", "stepSessionID": "id"})
}

/// What a step begins with: an action, or that it consists of an object or does nothing.
fn first(name: &str, parameter: Value) -> String {
    let data = StepData {
        context: context(),
        parameter,
    };
    let template = builtin::step(name).unwrap();
    let mut session = match Session::new(Arc::new(Definition::new(template)), data) {
        Ok(session) => session,
        Err(problem) => return problem,
    };
    match session.run() {
        Found::Call(call) => call.name,
        Found::Done => match session.object() {
            Some(object) => format!("object {}", object["kind"].as_str().unwrap_or_default()),
            None => "done".to_owned(),
        },
        other => format!("{other:?}"),
    }
}

/// Types of steps, parameters, and what each begins with.
fn table() -> Vec<(&'static str, Value, &'static str)> {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "m"}});
    let named = json!({"name": "a", "namespace": "n"});
    let config = json!({"name": "c", "namespace": "n", "template": "t", "config": {"a": 1}});
    let data = json!({"data": {"a": "1"}});
    let with = |mut base: Value, key: &str, value: &str| {
        base[key] = json!(value);
        base
    };
    let service = json!({"ip": "192.0.2.1", "port": 80, "targetPort": 80});
    vec![
        ("addon-operation", json!({"addonName": "x"}), "kube.apply"),
        (
            "apply-app",
            json!({"data": {"apiVersion": "core.oam.dev/v1beta1", "kind": "Application", "metadata": {"name": "a"}}}),
            "kube.apply",
        ),
        ("apply-application", json!({}), "oam.load-comps-in-order"),
        (
            "apply-application-in-parallel",
            json!({}),
            "oam.load-comps-in-order",
        ),
        ("apply-deployment", json!({"image": "nginx"}), "kube.apply"),
        (
            "apply-job",
            json!({"value": {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}}}),
            "kube.apply",
        ),
        ("apply-object", json!({"value": object}), "kube.apply"),
        ("apply-remaining", json!({}), "oam.load-comps-in-order"),
        (
            "apply-terraform-config",
            json!({"source": {"hcl": "x"}, "variable": {}}),
            "kube.apply",
        ),
        (
            "apply-terraform-provider",
            json!({"type": "aws", "region": "e", "accessKey": "a", "secretKey": "s"}),
            "kube.apply",
        ),
        (
            "blue-green-rollout",
            json!({"partition": "50%"}),
            "kube.apply",
        ),
        (
            "build-push-image",
            json!({"context": "git://x", "image": "i"}),
            "kube.apply",
        ),
        (
            "chat-gpt",
            json!({"token": {"value": "t"}, "prompt": {"content": "hi"}}),
            "http.do",
        ),
        (
            "check-metrics",
            json!({"query": "q", "condition": ">1"}),
            "metrics.promCheck",
        ),
        ("clean-jobs", json!({}), "kube.delete"),
        (
            "collect-service-endpoints",
            named.clone(),
            "query.collectServiceEndpoints",
        ),
        ("create-config", config.clone(), "config.create"),
        ("delete-config", named.clone(), "config.delete"),
        ("depends-on-app", named.clone(), "kube.read"),
        ("deploy", json!({"auto": true}), "multicluster.deploy"),
        ("deploy-cloud-resource", json!({"env": "e"}), "oam.load"),
        (
            "deploy2env",
            json!({"policy": "p", "env": "e"}),
            "oam.load-policies",
        ),
        ("deploy2runtime", json!({}), "multicluster.list-clusters"),
        (
            "export-data",
            data.clone(),
            "multicluster.get-placements-from-topology-policies",
        ),
        (
            "export-service",
            service,
            "multicluster.get-placements-from-topology-policies",
        ),
        (
            "export2config",
            with(data.clone(), "configName", "c"),
            "kube.apply",
        ),
        ("export2secret", with(data, "secretName", "c"), "kube.apply"),
        (
            "generate-jdbc-connection",
            json!({"name": "db"}),
            "kube.read",
        ),
        (
            "gitops",
            json!({"gitRepo": "https://x/y"}),
            "oam.load-rendered",
        ),
        (
            "helm-template",
            json!({"source": "https://x/y"}),
            "object HelmTemplate",
        ),
        (
            "kustomize-patch",
            json!({"source": "https://x/y"}),
            "object KustomizePatch",
        ),
        (
            "list-config",
            json!({"template": "t", "namespace": "n"}),
            "config.list",
        ),
        (
            "notification",
            json!({"slack": {"url": {"value": "https://x"}, "message": {"text": "hi"}}}),
            "http.do",
        ),
        (
            "open-cluster-management",
            json!({"placement": [{"clusterSelector": {"region": "east"}, "replicas": "70%"}]}),
            "kube.apply",
        ),
        (
            "print-message-in-status",
            json!({"message": "hi"}),
            "builtin.message",
        ),
        ("read-app", named.clone(), "kube.read"),
        ("read-config", named, "config.read"),
        (
            "read-member-object",
            json!({"cluster": "east", "kind": "ConfigMap", "name": "m", "fields": {"a": ".data.a"}}),
            "kube.apply",
        ),
        ("read-object", json!({"name": "a"}), "kube.read"),
        (
            "request",
            json!({"url": "https://x", "method": "POST", "body": {}}),
            "http.do",
        ),
        ("restart-workflow", json!({"after": "5m"}), "kube.patch"),
        ("rollback", json!({}), "oam.rollback-app"),
        (
            "rollout-promotion",
            json!({"manualApproval": true}),
            "kube.read",
        ),
        (
            "share-cloud-resource",
            json!({"placements": [{"cluster": "east"}], "policy": "p", "env": "e"}),
            "oam.load",
        ),
        ("traffic-shift", json!({"partition": "50%"}), "kube.read"),
        ("vela-cli", json!({"command": ["ls"]}), "kube.apply"),
        (
            "webhook",
            json!({"url": {"value": "https://x"}, "data": {"a": 1}}),
            "http.do",
        ),
    ]
}

#[test]
fn every_type_of_step_begins_with_its_action() {
    let mut wrong = Vec::new();
    let mut seen = BTreeSet::new();
    for (name, parameter, expected) in table() {
        seen.insert(name);
        let found = first(name, parameter);
        if found != expected {
            wrong.push(format!("{name}: {found}, not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let all: BTreeSet<&str> = STEPS.iter().map(|(name, _)| *name).collect();
    assert_eq!(seen, all);
}

/// What a member reported: the values that a step asked for, one of them missing at first.
#[test]
fn fields_of_a_member_are_waited_for() {
    let reported = |values: Value| {
        json!({"value": {"status": {"resourceStatus": {"manifests": [{"conditions": [],
            "statusFeedback": {"values": values}}]}}}})
    };
    let text =
        json!({"name": "host", "fieldValue": {"type": "String", "string": "db.example.org"}});
    let number = json!({"name": "port", "fieldValue": {"type": "Integer", "integer": 5432}});
    for (values, expected) in [
        (
            json!([]),
            "waiting for ConfigMap m of cluster east: host, port",
        ),
        (
            json!([text]),
            "waiting for ConfigMap m of cluster east: host, port",
        ),
        (json!([text, number]), ""),
    ] {
        let data = StepData {
            context: context(),
            parameter: json!({"cluster": "east", "kind": "ConfigMap", "name": "m",
                "fields": {"host": ".data.host", "port": ".data.port"}}),
        };
        let template = builtin::step("read-member-object").unwrap();
        let mut session = Session::new(Arc::new(Definition::new(template)), data).unwrap();
        let Found::Call(work) = session.run() else {
            panic!("the work is applied first");
        };
        let config = &work.params["value"]["spec"]["manifestConfigs"][0];
        assert_eq!(config["resourceIdentifier"]["resource"], "configmaps");
        session.complete(&work, &reported(values)).unwrap();
        let Found::Call(wait) = session.run() else {
            panic!("fields are waited for");
        };
        assert_eq!(wait.params["continue"], expected.is_empty());
        if expected.is_empty() {
            session.complete(&wait, &json!({})).unwrap();
            let output = session.output("output").unwrap();
            assert_eq!(output, json!({"host": "db.example.org", "port": 5432}));
        } else {
            let found = session.output("found");
            assert_eq!(wait.params["message"], expected, "{found:?}");
        }
    }
}

/// A run deletes its work when it has the fields, and not before.
#[test]
fn the_work_of_a_run_goes_when_the_fields_are_there() {
    let parameter =
        json!({"cluster": "east", "kind": "ConfigMap", "name": "m", "fields": {"a": ".data.a"}});
    let data = StepData {
        context: json!({"name": "r", "namespace": "n", "stepName": "s", "stepSessionID": "id"}),
        parameter,
    };
    let template = builtin::step("read-member-object").unwrap();
    let mut session = Session::new(Arc::new(Definition::new(template)), data).unwrap();
    let mut names = Vec::new();
    while let Found::Call(call) = session.run() {
        let value = json!({"name": "a", "fieldValue": {"type": "Boolean", "boolean": true}});
        let result = match call.name.as_str() {
            "kube.apply" => json!({"value": {"status": {"resourceStatus": {"manifests": [
                {"statusFeedback": {"values": [value]}}]}}}}),
            _ => json!({}),
        };
        names.push(call.name.clone());
        session.complete(&call, &result).unwrap();
    }
    assert_eq!(names, ["kube.apply", "builtin.wait", "kube.delete"]);
}
