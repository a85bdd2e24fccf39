//! ValidatingAdmissionPolicies of a cluster: what they refuse, and what they warn of.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::needless_pass_by_value, reason = "bodies are written in place")]

use crate::common::TestServer;
use crate::common::contract::{Question, ask, root};
use crate::webhooks::{MAPS, REGISTRATION, create, map};

use bellwether_apiserver::HUB;
use serde_json::{Value, json};

/// A policy of a name, with validations and whatever else.
fn policy(name: &str, validations: Value, change: Value) -> Value {
    let mut spec = json!({
        "matchConstraints": {
            "resourceRules": [{
                "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"],
                "operations": ["CREATE", "UPDATE"],
            }],
            "objectSelector": {"matchLabels": {"policy": name}},
        },
        "validations": validations,
    });
    for (key, value) in change.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": name}, "spec": spec,
    })
}

fn binding(name: &str, actions: Value, change: Value) -> Value {
    let mut spec = json!({"policyName": name, "validationActions": actions});
    for (key, value) in change.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": name}, "spec": spec,
    })
}

/// Policies with their bindings.
fn policies() -> Vec<(Value, Value)> {
    let none = || json!({});
    let deny = || json!(["Deny"]);
    let small = json!([{
        "expression": "size(object.data) <= int(params.data.most)",
        "messageExpression": "'at most ' + params.data.most + ' of ' + string(size(object.data))",
        "reason": "Forbidden",
    }]);
    let params = json!({"paramKind": {"apiVersion": "v1", "kind": "ConfigMap"}});
    let by_name = |name: &str| {
        json!({"paramRef": {
            "name": name, "namespace": "default", "parameterNotFoundAction": "Deny",
        }})
    };
    vec![
        (
            policy("plain", json!([{"expression": "has(object.data)"}]), none()),
            binding("plain", deny(), none()),
        ),
        (
            policy(
                "message",
                json!([
                    {"expression": "has(object.data)", "message": " data, please "},
                    {"expression": "false", "message": "second"},
                ]),
                none(),
            ),
            binding("message", deny(), none()),
        ),
        (
            policy(
                "warned",
                json!([{"expression": "has(object.data)"}]),
                none(),
            ),
            binding("warned", json!(["Warn", "Audit"]), none()),
        ),
        (
            policy(
                "failing",
                json!([{"expression": "object.data.a == 'b'"}]),
                none(),
            ),
            binding("failing", deny(), none()),
        ),
        (
            policy(
                "lenient",
                json!([{"expression": "object.data.a == 'b'"}]),
                json!({"failurePolicy": "Ignore"}),
            ),
            binding("lenient", deny(), none()),
        ),
        (
            policy(
                "variables",
                json!([{"expression": "variables.keys.all(key, key in variables.known)"}]),
                json!({
                    "variables": [
                        {"name": "keys", "expression": "object.data.map(key, key)"},
                        {"name": "known", "expression": "['a', 'b']"},
                    ],
                }),
            ),
            binding("variables", deny(), none()),
        ),
        (
            policy(
                "conditional",
                json!([{"expression": "false"}]),
                json!({
                    "matchConditions": [{
                        "name": "who", "expression": "request.operation == 'UPDATE' && oldObject != null",
                    }],
                }),
            ),
            binding("conditional", deny(), none()),
        ),
        (
            policy("params", small.clone(), params.clone()),
            binding("params", deny(), by_name("limits")),
        ),
        (
            policy("missing", small.clone(), params.clone()),
            binding("missing", deny(), by_name("absent")),
        ),
        (
            policy(
                "unknown",
                small,
                json!({
                    "paramKind": {"apiVersion": "example.com/v1", "kind": "Limit"},
                }),
            ),
            binding("unknown", deny(), by_name("limits")),
        ),
        (
            policy(
                "spaced",
                json!([
                    {"expression": "namespaceObject.metadata.name != 'default'"},
                ]),
                none(),
            ),
            binding("spaced", deny(), none()),
        ),
    ]
}

pub(crate) fn about_policies() -> Vec<Question> {
    let make = |policy: &str, data: Value| {
        let mut object = map(&format!("p-{policy}"), json!({"policy": policy}));
        object["metadata"]["labels"]["hooked"].take();
        object["metadata"]["labels"] = json!({"policy": policy});
        if !data.is_null() {
            object["data"] = data;
        }
        root("POST", format!("{MAPS}?dryRun=All"), object).showing(&["/metadata/labels", "/data"])
    };
    vec![
        make("plain", Value::Null),
        make("plain", json!({"a": "b"})),
        make("message", Value::Null),
        make("warned", Value::Null),
        make("failing", Value::Null),
        make("failing", json!({"a": "c"})),
        make("lenient", Value::Null),
        make("variables", json!({"a": "", "b": ""})),
        make("variables", json!({"a": "", "c": ""})),
        make("conditional", Value::Null),
        make("params", json!({"a": "1"})),
        make("params", json!({"a": "1", "b": "2", "c": "3"})),
        make("missing", Value::Null),
        make("unknown", Value::Null),
        make("spaced", Value::Null),
    ]
}

/// Policies that are refused when they are written.
pub(crate) fn about_broken_policies() -> Vec<Question> {
    let path = format!("{REGISTRATION}/validatingadmissionpolicies");
    let refused = |validation: Value| {
        root(
            "POST",
            path.clone(),
            policy("broken", json!([validation]), json!({})),
        )
    };
    vec![
        refused(json!({"expression": "object.metadata."})),
        refused(json!({"expression": "object.metadata.name"})),
        refused(json!({"expression": "absent == 1"})),
        refused(json!({"expression": "true", "messageExpression": "1"})),
        refused(json!({"expression": "request.nothing == ''"})),
    ]
}

pub(crate) async fn prepare_policies(client: &kube::Client) {
    let limits = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "limits"}, "data": {"most": "2"},
    });
    assert_eq!(create(client, limits).await.0, 201);
    for (policy, binding) in policies() {
        for (object, plural) in [
            (policy, "validatingadmissionpolicies"),
            (binding, "validatingadmissionpolicybindings"),
        ] {
            let path = format!("{REGISTRATION}/{plural}");
            let (code, _, body) = ask(client, &root("POST", path, object)).await;
            assert_eq!(code, 201, "{body}");
        }
    }
}

#[tokio::test]
async fn policies_refuse_and_warn() {
    let server = TestServer::start().await;
    let client = server.local(HUB);
    prepare_policies(&client).await;
    let mut answers = Vec::new();
    for question in about_policies() {
        let (code, warnings, body) = ask(&client, &question).await;
        answers.push((code, warnings, body["message"].clone()));
    }
    let codes: Vec<u16> = answers.iter().map(|(code, _, _)| *code).collect();
    assert_eq!(
        codes,
        [
            422, 201, 422, 201, 422, 422, 201, 201, 422, 201, 201, 403, 422, 422, 422
        ],
        "{answers:#?}"
    );
    assert_eq!(
        answers[2].2,
        "configmaps \"p-message\" is forbidden: ValidatingAdmissionPolicy 'message' with binding \
         'message' denied request: data, please"
    );
    let warning = "299 - \"Validation failed for ValidatingAdmissionPolicy 'warned' with binding \
                   'warned': failed expression: has(object.data)\"";
    assert_eq!(answers[3].1, [warning]);
    assert_eq!(
        answers[11].2,
        "configmaps \"p-params\" is forbidden: ValidatingAdmissionPolicy 'params' with binding \
         'params' denied request: at most 2 of 3"
    );
}
