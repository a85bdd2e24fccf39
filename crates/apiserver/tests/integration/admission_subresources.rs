//! Webhooks and policies see subresources and reviews, and ask the authorizer, as in a real API server.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![allow(clippy::needless_pass_by_value, reason = "bodies are written in place")]

use crate::common::TestServer;
use crate::common::contract::{Question, ask, both, compare, root};
use crate::common::hook::Hook;
use crate::contract_admission::{answered, blanked};
use crate::webhooks::{REGISTRATION, configure};

use bellwether_apiserver::HUB;
use serde_json::{Value, json};

const CORE: &str = "/api/v1/namespaces/sub";
const WEB: &str = "/apis/apps/v1/namespaces/sub/deployments/web";
const WIDGET: &str = "/apis/example.com/v1/namespaces/sub/widgets/w";
const REVIEWS: &str = "/apis/authorization.k8s.io/v1";

fn definition() -> Value {
    let replicas = json!({"type": "object", "properties": {"replicas": {"type": "integer"}}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                    "spec": replicas, "status": replicas,
                }}},
                "subresources": {"status": {}, "scale": {
                    "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
                }},
            }],
        },
    })
}

fn pod() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    })
}

/// Objects that have subresources, in a namespace of their own.
async fn prepare(client: &kube::Client) {
    let labels = json!({"app": "web"});
    let web = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "labels": labels},
        "spec": {
            "replicas": 1, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod()["spec"]},
        },
    });
    let account = |name: &str| json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name}});
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "writer"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create", "get"]}],
    });
    let given = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "writers"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "writer"},
        "subjects": [
            {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"},
            {"kind": "ServiceAccount", "name": "robot", "namespace": "sub"},
        ],
    });
    let rights = "/apis/rbac.authorization.k8s.io/v1/namespaces/sub";
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "sub"}});
    let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    for (path, object) in [
        ("/api/v1/namespaces".to_owned(), namespace),
        (definitions.to_owned(), definition()),
        (format!("{CORE}/serviceaccounts"), account("default")),
        (format!("{CORE}/serviceaccounts"), account("robot")),
        (format!("{CORE}/pods"), pod()),
        (WEB.strip_suffix("/web").unwrap().to_owned(), web),
        (format!("{rights}/roles"), role),
        (format!("{rights}/rolebindings"), given),
    ] {
        let (code, _, body) = ask(client, &root("POST", &*path, object)).await;
        assert!(code == 201 || code == 409, "{path}: {body}");
    }
    let widget = json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"},
        "spec": {"replicas": 1},
    });
    answered(
        client,
        &root("POST", WIDGET.strip_suffix("/w").unwrap(), widget),
        201,
    )
    .await;
}

/// The reviews of one request, without `managedFields`: a real server keeps them also in objects that it does not store.
fn reviewed(hook: &Hook) -> Vec<(String, Value)> {
    let mut asked = blanked(hook);
    for (_, review) in &mut asked {
        for field in ["object", "oldObject"] {
            let metadata = review["request"][field]["metadata"].as_object_mut();
            metadata.map(|it| it.remove("managedFields"));
        }
    }
    asked
}

/// Rules about subresources and reviews, in one namespace where they are in any.
fn rules(operations: Value, change: Value) -> Value {
    let mut webhook = json!({
        "rules": [
            {
                "operations": operations, "apiGroups": ["*"], "apiVersions": ["*"], "scope": "*",
                "resources": [
                    "*/scale", "deployments/*", "pods/eviction", "pods/binding", "pods/exec", "pods/portforward",
                    "serviceaccounts/token",
                ],
            },
            {
                "operations": operations, "apiGroups": ["authorization.k8s.io", "authentication.k8s.io"],
                "apiVersions": ["v1"], "resources": ["*"],
            },
        ],
        "objectSelector": {},
        "namespaceSelector": {"matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["sub"]},
        ]},
        "matchConditions": [
            {"name": "ours", "expression": "!request.userInfo.username.startsWith('system:apiserver')"},
        ],
    });
    for (key, value) in change.as_object().into_iter().flatten() {
        webhook[key] = value.clone();
    }
    webhook
}

/// A webhook that sees everything, and one that does not let six replicas stand.
async fn hooked(client: &kube::Client, hook: &Hook) {
    let six = json!({
        "rules": [{
            "operations": ["UPDATE"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["*/scale"],
        }],
        "matchConditions": [{"name": "six", "expression": "object.?spec.?replicas.orValue(0) == 6"}],
    });
    let all = || rules(json!(["*"]), json!({}));
    let mutating = [
        hook.webhook("six.example.com", "/replicas", &rules(json!([]), six)),
        hook.webhook("seen.example.com", "/allow", &all()),
    ];
    let validating = [hook.webhook("checked.example.com", "/allow", &all())];
    configure(client, "Mutating", &mutating).await;
    configure(client, "Validating", &validating).await;
}

fn scale(replicas: u32) -> Question {
    root(
        "PATCH",
        format!("{WEB}/scale"),
        json!({"spec": {"replicas": replicas}}),
    )
    .showing(&["/spec/replicas"])
}

/// Requests whose reviews have to be the same.
fn seen() -> Vec<Question> {
    let eviction = json!({
        "apiVersion": "policy/v1", "kind": "Eviction", "unknown": 1,
        "metadata": {"name": "p", "uid": "u"}, "deleteOptions": {"gracePeriodSeconds": 5},
    });
    let bound = json!({
        "apiVersion": "v1", "kind": "Binding", "metadata": {"name": "p"},
        "target": {"apiVersion": "v1", "kind": "Node", "name": "n"},
    });
    let token = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {"audiences": ["a"], "expirationSeconds": 700},
    });
    let access = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}},
    });
    let local = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "LocalSubjectAccessReview",
        "spec": {"user": "ann", "resourceAttributes": {"verb": "get", "resource": "pods", "namespace": "sub"}},
    });
    let status = json!({"status": {"observedGeneration": 1}});
    vec![
        scale(3),
        scale(6),
        root(
            "PATCH",
            format!("{WIDGET}/scale"),
            json!({"spec": {"replicas": 2}}),
        ),
        root("PATCH", format!("{WEB}/status?fieldManager=me"), status),
        root(
            "POST",
            format!("{CORE}/pods/p/eviction?dryRun=All"),
            eviction,
        ),
        root("POST", format!("{CORE}/pods/p/binding"), bound),
        root("POST", format!("{CORE}/serviceaccounts/robot/token"), token),
        root(
            "POST",
            format!("{REVIEWS}/selfsubjectaccessreviews"),
            access,
        ),
        root(
            "POST",
            format!("{REVIEWS}/namespaces/sub/localsubjectaccessreviews"),
            local,
        ),
        root(
            "GET",
            format!("{CORE}/pods/p/exec?command=ls&command=-l&stdin=true"),
            Value::Null,
        ),
        root(
            "GET",
            format!("{CORE}/pods/p/portforward?ports=80"),
            Value::Null,
        ),
    ]
}

fn policy(name: &str, resources: Value, validations: Value, change: Value) -> [Value; 2] {
    let mut spec = json!({
        "matchConstraints": {"resourceRules": [{
            "apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": resources,
        }]},
        "validations": validations,
    });
    for (key, value) in change.as_object().into_iter().flatten() {
        spec[key] = value.clone();
    }
    let in_namespace =
        json!({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "sub"}}});
    [
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
            "metadata": {"name": name}, "spec": spec,
        }),
        json!({
            "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": name},
            "spec": {"policyName": name, "validationActions": ["Deny"], "matchResources": in_namespace},
        }),
    ]
}

fn policies() -> Vec<[Value; 2]> {
    let none = || json!({});
    let scaled = json!([{
        "expression": "object.spec.replicas <= 5 && object.kind == 'Scale' && request.subResource == 'scale' \
                       && request.requestKind.group == 'autoscaling' && request.resource.resource != 'pods'",
        "messageExpression": "'not ' + string(object.spec.replicas) + ' after ' + string(oldObject.spec.replicas)",
    }]);
    let evicted = json!([{"expression": "object.deleteOptions.gracePeriodSeconds > 3", "reason": "Forbidden"}]);
    let token =
        json!([{"expression": "object.spec.expirationSeconds <= 3600", "message": "too long"}]);
    let owner = json!([{
        "expression": "variables.mine || variables.robot",
        "messageExpression": "'nobody may ' + object.data.verb",
    }]);
    let asking = json!({
        "matchConditions": [
            {"name": "marked", "expression": "has(object.data) && 'verb' in object.data"},
            {"name": "ann", "expression": "request.userInfo.username == 'ann'"},
        ],
        "variables": [
            {"name": "mine", "expression": "authorizer.requestResource.check(object.data.verb).allowed()"},
            {"name": "robot", "expression": "authorizer.serviceAccount('sub', object.data.account).group('')\
                .resource(object.data.resource).namespace('sub').check('get').allowed()"},
        ],
    });
    let reasons = json!([{
        "expression": "authorizer.path('/healthz').check('get').reason() == 'x' || \
            authorizer.group('').resource('configmaps').namespace('sub').check('get').reason() == object.data.reason",
    }]);
    let reason = json!({"matchConditions": [
        {"name": "marked", "expression": "has(object.data) && 'reason' in object.data"},
    ]});
    let costly =
        json!([{"expression": "[1, 2, 3].all(i, authorizer.path('/x').check('get').allowed())"}]);
    let cost = json!({"matchConditions": [
        {"name": "marked", "expression": "has(object.data) && 'costly' in object.data"},
    ]});
    vec![
        policy("scaled", json!(["*/scale"]), scaled, none()),
        policy("evicted", json!(["pods/eviction"]), evicted, none()),
        policy("token", json!(["serviceaccounts/*"]), token, none()),
        policy("owner", json!(["configmaps"]), owner, asking),
        policy("reasons", json!(["configmaps"]), reasons, reason),
        policy("costly", json!(["configmaps"]), costly, cost),
    ]
}

async fn apply(client: &kube::Client) {
    for [policy, binding] in policies() {
        for (plural, object) in [
            ("validatingadmissionpolicies", policy),
            ("validatingadmissionpolicybindings", binding),
        ] {
            let path = format!("{REGISTRATION}/{plural}");
            let (code, _, body) = ask(client, &root("POST", path, object)).await;
            assert_eq!(code, 201, "{body}");
        }
    }
}

fn map(name: &str, data: Value) -> Question {
    let object =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data});
    root("POST", format!("{CORE}/configmaps?dryRun=All"), object).showing(&["/metadata/name"])
}

/// What policies are asked, and what our server answers: a code, and a part of the message.
fn asked() -> Vec<(Question, u16, &'static str)> {
    let eviction = |seconds: u32| {
        let object = json!({
            "apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "p"},
            "deleteOptions": {"gracePeriodSeconds": seconds},
        });
        root("POST", format!("{CORE}/pods/p/eviction?dryRun=All"), object)
    };
    let token = |seconds: u32| {
        let object = json!({
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
            "spec": {"expirationSeconds": seconds},
        });
        root(
            "POST",
            format!("{CORE}/serviceaccounts/robot/token"),
            object,
        )
    };
    let ann = |data: Value| map("m", data).with("impersonate-user", "ann");
    let owner = |verb: &str, account: &str, resource: &str| {
        ann(json!({"verb": verb, "account": account, "resource": resource}))
    };
    let reason = "RBAC: allowed by RoleBinding \"writers/sub\" of Role \"writer\" to User \"ann\"";
    vec![
        (scale(5), 200, ""),
        (scale(9), 422, "denied request: not 9 after 5"),
        (
            root(
                "PATCH",
                format!("{WIDGET}/scale"),
                json!({"spec": {"replicas": 8}}),
            ),
            422,
            "not 8 after",
        ),
        (
            root("PATCH", WEB, json!({"spec": {"replicas": 9}})).showing(&["/spec/replicas"]),
            200,
            "",
        ),
        (eviction(5), 201, ""),
        (
            eviction(2),
            403,
            "denied request: failed expression: object.deleteOptions.gracePeriodSeconds > 3",
        ),
        (token(3600), 201, ""),
        (token(3601), 422, "denied request: too long"),
        (owner("create", "none", "pods"), 201, ""),
        (owner("delete", "robot", "configmaps"), 201, ""),
        (
            owner("delete", "robot", "pods"),
            422,
            "denied request: nobody may delete",
        ),
        (
            owner("delete", "none", "configmaps"),
            422,
            "denied request: nobody may delete",
        ),
        (
            owner("delete", "Not A Name", "pods"),
            422,
            "Invalid service account name",
        ),
        (ann(json!({"reason": reason})), 201, ""),
        (
            ann(json!({"reason": "x"})),
            422,
            "denied request: failed expression",
        ),
        (map("m", json!({"reason": ""})), 201, ""),
        (
            map("m", json!({"costly": ""})),
            422,
            "actual cost limit exceeded",
        ),
    ]
}

/// Policies that are refused when they are written, or not.
fn written() -> Vec<Question> {
    let path = format!("{REGISTRATION}/validatingadmissionpolicies?dryRun=All");
    let write = |validation: Value| {
        let [policy, _] = policy("x", json!(["configmaps"]), json!([validation]), json!({}));
        root("POST", &*path, policy).showing(&["/metadata/name"])
    };
    let expression = |text: &str| write(json!({"expression": text}));
    vec![
        expression("authorizer.group('').resource('pods').check('get').allowed()"),
        expression("authorizer.group('').resource('pods').check('get')"),
        expression("authorizer.group('').check('get').allowed()"),
        expression("authorizer.unknown"),
        expression("authorizer.path('/').check('get').allowed() == authorizer"),
        expression(
            "authorizer.requestResource.fieldSelector('a=b').labelSelector('c').check('list').errored()",
        ),
        write(
            json!({"expression": "true", "messageExpression": "authorizer.path('/').check('get').reason()"}),
        ),
    ]
}

#[tokio::test]
async fn webhooks_see_subresources_and_reviews() {
    let server = TestServer::start().await;
    let client = server.local(HUB);
    let hook = Hook::start().await;
    prepare(&client).await;
    hooked(&client, &hook).await;
    let (code, _, body) = ask(&client, &scale(6)).await;
    assert_eq!(
        (code, &body["spec"]["replicas"]),
        (200, &json!(4)),
        "{body}"
    );
    let asked = hook.asked();
    let paths: Vec<&str> = asked.iter().map(|(path, _)| path.as_str()).collect();
    assert_eq!(paths, ["/replicas", "/allow", "/allow"]);
    let request = &asked[2].1["request"];
    assert_eq!(request["object"]["kind"], "Scale");
    assert_eq!(request["object"]["spec"]["replicas"], 4);
    assert_eq!(request["oldObject"]["spec"]["replicas"], 1);
    assert_eq!(request["subResource"], "scale");
    let kind = json!({"group": "autoscaling", "version": "v1", "kind": "Scale"});
    assert_eq!((&request["kind"], &request["requestKind"]), (&kind, &kind));
    let resource = json!({"group": "apps", "version": "v1", "resource": "deployments"});
    assert_eq!(request["resource"], resource);
    for (question, kind, operation) in seen()
        .into_iter()
        .skip(4)
        .zip([
            ("Eviction", "CREATE"),
            ("Binding", "CREATE"),
            ("TokenRequest", "CREATE"),
            ("SelfSubjectAccessReview", "CREATE"),
            ("LocalSubjectAccessReview", "CREATE"),
            ("PodExecOptions", "CONNECT"),
            ("PodPortForwardOptions", "CONNECT"),
        ])
        .map(|(question, (kind, operation))| (question, kind, operation))
    {
        ask(&client, &question).await;
        let asked = hook.asked();
        assert_eq!(asked.len(), 2, "{}: {asked:?}", question.path);
        for (_, review) in asked {
            let request = &review["request"];
            assert_eq!(request["object"]["kind"], kind);
            assert_eq!(request["requestKind"]["kind"], kind);
            assert_eq!(request["operation"], operation);
        }
    }
}

#[tokio::test]
async fn policies_see_subresources_and_ask_the_authorizer() {
    let server = TestServer::start().await;
    let client = server.local(HUB);
    prepare(&client).await;
    apply(&client).await;
    for (question, code, message) in asked() {
        let (found, _, body) = ask(&client, &question).await;
        let said = body["message"].as_str().unwrap_or_default();
        assert!(
            found == code && said.contains(message),
            "{} {}: {body}",
            question.path,
            question.body
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_api_server_shows_the_same_of_subresources() {
    let Some((_real, theirs, _server, ours)) = both().await else {
        return;
    };
    let hook = Hook::start().await;
    for client in [&theirs, &ours] {
        prepare(client).await;
        hooked(client, &hook).await;
        apply(client).await;
        // Configurations take effect at a real server after a while.
        let (costly, code, _) = asked().pop().unwrap();
        answered(client, &costly, code).await;
        answered(client, &scale(20), 422).await;
    }
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    let mut different = Vec::new();
    for question in seen() {
        hook.asked();
        ask(&theirs, &question).await;
        let expected = reviewed(&hook);
        ask(&ours, &question).await;
        let found = reviewed(&hook);
        if found != expected {
            different.push(format!(
                "{} {}\n  real {expected:#?}\n  ours {found:#?}",
                question.method, question.path
            ));
        }
    }
    let questions: Vec<Question> = asked().into_iter().map(|(question, ..)| question).collect();
    different.extend(compare(&theirs, &ours, &questions).await);
    different.extend(compare(&theirs, &ours, &written()).await);
    assert!(different.is_empty(), "{}", different.join("\n"));
}
