//! The packages that templates import: what each definition of theirs asks for.

use std::collections::BTreeSet;
use std::sync::Arc;

use bellwether_workflow::Definition;
use bellwether_workflow::definition::StepData;
use bellwether_workflow::packages::PACKAGES;
use bellwether_workflow::session::{Found, Session};
use serde_json::{Value, json};

const OBJECT: &str = r#"{apiVersion: "v1", kind: "ConfigMap", metadata: name: "m"}"#;

fn session(package: &str, field: &str) -> Session {
    let template = format!("import \"{package}\"\na: {field}\nparameter: {{}}\n");
    let data = StepData {
        context: json!({"name": "r", "namespace": "n"}),
        parameter: json!({}),
    };
    Session::new(Arc::new(Definition::new(template)), data).unwrap()
}

/// The action that a definition with these parameters asks for, and its parameters.
#[track_caller]
fn asked(package: &str, field: &str) -> (String, Value) {
    match session(package, field).run() {
        Found::Call(call) => (call.name, call.params),
        other => panic!("{package} {field}: {other:?}"),
    }
}

/// Definitions of today's packages, their parameters, and the action.
fn of_today() -> Vec<(&'static str, &'static str, String, &'static str)> {
    let value = format!("value: {OBJECT}");
    let app = r#"app: {name: "a", namespace: "n"}"#.to_owned();
    let text = str::to_owned;
    vec![
        (
            "builtin",
            "#ConditionalWait",
            text("continue: true"),
            "builtin.wait",
        ),
        ("builtin", "#Wait", text("continue: true"), "builtin.wait"),
        (
            "builtin",
            "#Suspend",
            text(r#"duration: "1s""#),
            "builtin.suspend",
        ),
        (
            "builtin",
            "#Break",
            text(r#"message: "x""#),
            "builtin.break",
        ),
        ("builtin", "#Fail", text(r#"message: "x""#), "builtin.fail"),
        (
            "builtin",
            "#Message",
            text(r#"message: "x""#),
            "builtin.message",
        ),
        (
            "builtin",
            "#DoVar",
            text(r#"method: "Get", path: "x""#),
            "builtin.var",
        ),
        ("kube", "#Apply", value.clone(), "kube.apply"),
        (
            "kube",
            "#ApplyInParallel",
            format!("value: [{OBJECT}]"),
            "kube.apply-in-parallel",
        ),
        (
            "kube",
            "#Patch",
            format!("{value}, patch: data: a: \"1\""),
            "kube.patch",
        ),
        ("kube", "#Read", value.clone(), "kube.read"),
        (
            "kube",
            "#List",
            text(r#"resource: {apiVersion: "v1", kind: "Pod"}"#),
            "kube.list",
        ),
        ("kube", "#Delete", value.clone(), "kube.delete"),
        (
            "http",
            "#HTTPDo",
            text(r#"method: "POST", url: "http://x""#),
            "http.do",
        ),
        ("http", "#HTTPGet", text(r#"url: "http://x""#), "http.do"),
        ("http", "#HTTPPost", text(r#"url: "http://x""#), "http.do"),
        ("http", "#HTTPPut", text(r#"url: "http://x""#), "http.do"),
        ("http", "#HTTPDelete", text(r#"url: "http://x""#), "http.do"),
        (
            "config",
            "#CreateConfig",
            text(r#"name: "c", config: a: 1"#),
            "config.create",
        ),
        ("config", "#ReadConfig", text(r#"name: "c""#), "config.read"),
        (
            "config",
            "#ListConfig",
            text(r#"template: "t""#),
            "config.list",
        ),
        (
            "config",
            "#DeleteConfig",
            text(r#"name: "c""#),
            "config.delete",
        ),
        (
            "oam",
            "#ApplyComponent",
            text(r#"value: {name: "c", type: "t"}"#),
            "oam.component-apply",
        ),
        (
            "oam",
            "#RenderComponent",
            text(r#"value: {name: "c", type: "t"}"#),
            "oam.component-render",
        ),
        ("oam", "#LoadComponets", String::new(), "oam.load"),
        (
            "oam",
            "#LoadComponetsInOrder",
            String::new(),
            "oam.load-comps-in-order",
        ),
        ("oam", "#LoadPolicies", String::new(), "oam.load-policies"),
        ("oam", "#LoadRendered", String::new(), "oam.load-rendered"),
        (
            "multicluster",
            "#ListClusters",
            String::new(),
            "multicluster.list-clusters",
        ),
        (
            "multicluster",
            "#Deploy",
            text(r#"policies: ["p"], parallelism: 5"#),
            "multicluster.deploy",
        ),
        (
            "multicluster",
            "#GetPlacementsFromTopologyPolicies",
            text(r#"policies: ["p"]"#),
            "multicluster.get-placements-from-topology-policies",
        ),
        (
            "util",
            "#PatchK8sObject",
            format!("{value}, patch: data: a: \"1\""),
            "util.patch-k8s-object",
        ),
        ("util", "#ConvertString", text("bt: 'abc'"), "util.string"),
        ("util", "#Log", text(r#"data: "x""#), "util.log"),
        (
            "time",
            "#DateToTimestamp",
            text(r#"date: "2026-01-02T15:04:05Z""#),
            "time.timestamp",
        ),
        (
            "time",
            "#TimestampToDate",
            text("timestamp: 1"),
            "time.date",
        ),
        (
            "email",
            "#SendEmail",
            text(
                r#"from: {address: "a@x", password: "p", host: "h", port: 25}, to: ["b@x"], content: {subject: "s", body: "b"}"#,
            ),
            "email.send",
        ),
        (
            "metrics",
            "#PromCheck",
            text(r#"query: "q", condition: ">=1""#),
            "metrics.promCheck",
        ),
        (
            "query",
            "#ListResourcesInApp",
            app.clone(),
            "query.listResourcesInApp",
        ),
        (
            "query",
            "#ListAppliedResources",
            app.clone(),
            "query.listAppliedResources",
        ),
        (
            "query",
            "#CollectPods",
            format!("{value}, cluster: \"\""),
            "query.collectResources",
        ),
        (
            "query",
            "#SearchEvents",
            format!("{value}, cluster: \"\""),
            "query.searchEvents",
        ),
        (
            "query",
            "#CollectServiceEndpoints",
            app.clone(),
            "query.collectServiceEndpoints",
        ),
        ("ql", "#ListResourcesInApp", app, "query.listResourcesInApp"),
    ]
}

#[test]
fn definitions_of_every_package_ask_for_their_action() {
    let mut seen: BTreeSet<String> = ["vela/git", "vela/op"].map(str::to_owned).into();
    for (package, definition, params, expected) in of_today() {
        let path = format!("vela/{package}");
        let params = if params.is_empty() {
            "{$params: {}}".to_owned()
        } else {
            format!("{{$params: {{{params}}}}}")
        };
        let (name, _) = asked(&path, &format!("{package}.{definition} & {params}"));
        assert_eq!(name, expected, "{package}.{definition}");
        seen.insert(path);
    }
    let all: BTreeSet<String> = PACKAGES
        .iter()
        .map(|(path, _)| (*path).to_owned())
        .collect();
    assert_eq!(seen, all);
}

#[test]
fn methods_of_requests_are_those_of_their_names() {
    for (definition, method) in [
        ("Get", "GET"),
        ("Post", "POST"),
        ("Put", "PUT"),
        ("Delete", "DELETE"),
    ] {
        let field = format!(r#"http.#HTTP{definition} & {{$params: url: "http://x"}}"#);
        let (_, params) = asked("vela/http", &field);
        assert_eq!(params["method"], method);
    }
}

#[test]
fn actions_of_the_design_document_have_their_fields_at_the_top() {
    for (field, expected, path, value) in [
        (
            r#"op.#Load & {component: "c"}"#,
            "oam.load",
            "/component",
            "c",
        ),
        (
            r#"op.#Read & {apiVersion: "v1", kind: "ConfigMap", name: "m", namespace: "n"}"#,
            "kube.read",
            "/kind",
            "ConfigMap",
        ),
        (
            r#"op.#Read & {value: {kind: "ConfigMap"}}"#,
            "kube.read",
            "/value/kind",
            "ConfigMap",
        ),
        (
            r#"op.#Apply & {resource: "kind: ConfigMap"}"#,
            "kube.apply",
            "/resource",
            "kind: ConfigMap",
        ),
        (
            r#"op.#Apply & {value: {kind: "ConfigMap"}}"#,
            "kube.apply",
            "/value/kind",
            "ConfigMap",
        ),
        (
            r#"op.#Wait & {continue: false, message: "m"}"#,
            "builtin.wait",
            "/message",
            "m",
        ),
        (
            r#"op.#ConditionalWait & {continue: false, message: "m"}"#,
            "builtin.wait",
            "/message",
            "m",
        ),
        (
            r#"op.#Break & {message: "m"}"#,
            "builtin.break",
            "/message",
            "m",
        ),
        (
            r#"op.#Export & {secret: "s"}"#,
            "builtin.export",
            "/secret",
            "s",
        ),
        (
            r#"op.#Export & {type: "patch", component: "c", value: a: 1}"#,
            "builtin.export",
            "/component",
            "c",
        ),
        (
            r#"{#do: "read", #provider: "op", kind: "Pod"}"#,
            "kube.read",
            "/kind",
            "Pod",
        ),
        (
            r#"op.#CreateConfig & {name: "c", namespace: "n", config: {}}"#,
            "config.create",
            "/name",
            "c",
        ),
    ] {
        let (name, params) = asked("vela/op", field);
        assert_eq!(name, expected, "{field}");
        assert_eq!(params.pointer(path), Some(&json!(value)), "{field}");
    }
}

#[test]
fn a_macro_applies_the_components_that_it_loads() {
    for (package, field, is_waited_for) in [
        ("op", "op.#ApplyApplication & {}", true),
        ("op", "op.#ApplyApplicationInParallel & {}", false),
        ("oam", "oam.#ApplyApplicationInParallel & {}", false),
        ("op", r"op.#ApplyRemaining & {exceptions: two: {}}", true),
    ] {
        let mut session = session(&format!("vela/{package}"), field);
        let Found::Call(load) = session.run() else {
            panic!("{field}: components are loaded first");
        };
        assert_eq!(load.name, "oam.load-comps-in-order");
        let loaded = json!({"value": [{"name": "one", "type": "t"}, {"name": "two", "type": "t"}]});
        session.complete(&load, &loaded).unwrap();
        let mut applied = Vec::new();
        while let Found::Call(call) = session.run() {
            assert_eq!(call.name, "oam.component-apply");
            assert_eq!(call.params["waitHealthy"], is_waited_for, "{field}");
            applied.push(call.params["value"]["name"].clone());
            session.complete(&call, &json!({})).unwrap();
        }
        let expected = if field.contains("Remaining") {
            vec![json!("one")]
        } else {
            vec![json!("one"), json!("two")]
        };
        assert_eq!(applied, expected, "{field}");
    }
}
