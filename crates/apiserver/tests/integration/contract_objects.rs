//! The same requests about definitions, custom resources, pods and quotas to our server and, where
//! `KUBEBUILDER_ASSETS` points at one, to a real kube-apiserver.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails"
)]
#![allow(clippy::needless_pass_by_value, reason = "bodies are written in place")]

use crate::common;

use common::contract::{Question, both, compare, root, until};
use serde_json::{Value, json};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const SHEEP: &str = "/apis/flock.example.com/v1/namespaces/default/sheep";
const APPLY: &str = "application/apply-patch+yaml";
const SPACES: &str = "/api/v1/namespaces";

/// A definition with two versions, of which the second knows other fields.
fn definition(plural: &str, kind: &str, group: &str) -> Value {
    let version = |name: &str, storage: bool, fields: Value| {
        json!({
            "name": name, "served": true, "storage": storage,
            "subresources": {"status": {}, "scale": {
                "specReplicasPath": ".spec.bells", "statusReplicasPath": ".status.bells",
            }},
            "schema": {"openAPIV3Schema": {"type": "object", "properties": {
                "spec": {"type": "object", "properties": fields},
                "status": {"type": "object", "properties": {"bells": {"type": "integer"}}},
            }}},
        })
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced", "names": {"plural": plural, "kind": kind},
            "versions": [
                version("v1", true, json!({
                    "bells": {"type": "integer", "minimum": 0, "maximum": 9},
                    "role": {"type": "string", "default": "follower"},
                })),
                version("v2", false, json!({
                    "bells": {"type": "integer"}, "colour": {"type": "string", "default": "white"},
                })),
            ],
        },
    })
}

fn sheep(version: &str, name: &str, spec: Value) -> Value {
    json!({
        "apiVersion": format!("flock.example.com/{version}"), "kind": "Sheep",
        "metadata": {"name": name}, "spec": spec,
    })
}

fn get(path: impl Into<String>) -> Question {
    root("GET", path, Value::Null)
}

/// Definitions, before any is established.
fn about_definitions() -> Vec<Question> {
    let own = format!("{DEFINITIONS}/sheep.flock.example.com");
    let mut named = definition("sheep", "Sheep", "flock.example.com");
    named["metadata"]["namespace"] = "default".into();
    let mut unapproved = definition("sheep", "Sheep", "flock.k8s.io");
    unapproved["metadata"]["annotations"] = json!({"api-approved.kubernetes.io": "yes"});
    vec![
        root("POST", DEFINITIONS, named).showing(&[
            "/status",
            "/metadata/finalizers",
            "/metadata/namespace",
        ]),
        root(
            "POST",
            DEFINITIONS,
            definition("sheep", "Sheep", "flock.k8s.io"),
        ),
        root("POST", DEFINITIONS, unapproved),
        get(own).showing(&["/spec/conversion", "/spec/names"]),
    ]
}

/// Custom resources in two versions, and their scale.
fn about_versions() -> Vec<Question> {
    let newer = SHEEP.replace("/v1/", "/v2/");
    let scale = format!("{SHEEP}/a/scale");
    let replicas = |count: i64| json!({"spec": {"replicas": count}});
    let whole = |name: &str, version: &str| {
        json!({
            "apiVersion": "autoscaling/v1", "kind": "Scale",
            "metadata": {"name": name, "resourceVersion": version}, "spec": {"replicas": 2},
        })
    };
    let spec: &[&str] = &["/spec", "/apiVersion", "/metadata/generation"];
    vec![
        root("POST", SHEEP, sheep("v1", "a", json!({"role": "x"}))).showing(spec),
        get(format!("{newer}/a")).showing(spec),
        root(
            "POST",
            &newer,
            sheep("v2", "b", json!({"bells": 2, "role": "x"})),
        )
        .showing(spec),
        get(format!("{SHEEP}/b")).showing(spec),
        get(format!("{newer}/b")).showing(spec),
        get(newer.clone()).showing(&["/items/0/spec", "/items/1/spec", "/items/0/kind"]),
        root("PATCH", format!("{newer}/b"), json!({"spec": {"bells": 3}})).showing(spec),
        get(format!("{SHEEP}/b")).showing(spec),
        get(&scale),
        root("PATCH", &scale, replicas(3)).showing(&["/spec", "/status", "/kind"]),
        get(&scale).showing(&["/spec", "/status", "/kind"]),
        get(format!("{SHEEP}/a")).showing(&[
            "/spec",
            "/metadata/generation",
            "/metadata/managedFields/0/fieldsV1",
            "/metadata/managedFields/1",
        ]),
        root(
            "PATCH",
            format!("{SHEEP}/a?fieldManager=m"),
            json!({"spec": {"bells": 4}}),
        )
        .showing(spec),
        root("PATCH", format!("{scale}?fieldManager=n"), replicas(5)).showing(&["/spec"]),
        get(format!("{SHEEP}/a")).showing(&["/metadata/managedFields/0"]),
        root("PATCH", &scale, replicas(-3)),
        root("PATCH", &scale, replicas(30)),
        root("PUT", &scale, whole("", "")),
        root("PUT", &scale, whole("b", "")),
        root("PUT", &scale, whole("a", "1")),
        root("PUT", &scale, whole("a", "")).showing(&["/spec"]),
        root("PATCH", &scale, replicas(1)).by("application/strategic-merge-patch+json"),
        root("DELETE", &scale, Value::Null),
        get(format!("{SHEEP}/absent/scale")),
        root(
            "PATCH",
            format!("{SHEEP}/a/status"),
            json!({"status": {"bells": -1}}),
        ),
    ]
}

/// A definition that is deleted while an object holds it.
fn about_terminating() -> Vec<Question> {
    let held = json!({
        "apiVersion": "flock.example.com/v1", "kind": "Sheep",
        "metadata": {"name": "held", "finalizers": ["example.com/x"]},
    });
    vec![
        root("POST", SHEEP, held).showing(&["/metadata/finalizers"]),
        root(
            "DELETE",
            format!("{DEFINITIONS}/sheep.flock.example.com"),
            Value::Null,
        )
        .showing(&["/metadata/finalizers", "/status/conditions/2/reason"]),
    ]
}

fn about_terminated() -> Vec<Question> {
    vec![
        root("POST", SHEEP, sheep("v1", "new", json!({}))),
        root(
            "PATCH",
            format!("{SHEEP}/new?fieldManager=me"),
            sheep("v1", "new", json!({})),
        )
        .by(APPLY),
        root(
            "PATCH",
            format!("{SHEEP}/held"),
            json!({"metadata": {"finalizers": null}}),
        )
        .showing(&["/metadata/finalizers"]),
    ]
}

fn pod(name: &str, spec: Value) -> Value {
    let mut pod = json!({"metadata": {"name": name}, "spec": spec});
    if pod["spec"]["containers"].is_null() {
        pod["spec"]["containers"] = json!([{"name": "a", "image": "x"}]);
    }
    pod
}

fn container(fields: Value) -> Value {
    let mut container = json!({"name": "a", "image": "x"});
    for (name, value) in fields.as_object().unwrap() {
        container[name] = value.clone();
    }
    json!({"containers": [container]})
}

/// Pod Security.
fn about_security() -> Vec<Question> {
    let space = |name: &str, labels: Value| json!({"metadata": {"name": name, "labels": labels}});
    let level =
        |mode: &str, level: &str| json!({(format!("pod-security.kubernetes.io/{mode}")): level});
    let mut questions = vec![
        root("POST", SPACES, space("base", level("enforce", "baseline"))),
        root(
            "POST",
            SPACES,
            space("strict", level("enforce", "restricted")),
        ),
        root("POST", SPACES, space("wrong", level("enforce", "x"))),
        root(
            "POST",
            SPACES,
            space("wrong", level("audit-version", "1.3")),
        ),
    ];
    let of = |context: Value| container(json!({"securityContext": context}));
    let specs = [
        json!({}),
        json!({"containers": [{"name": "a", "image": "x"}, {"name": "b", "image": "x"}]}),
        json!({"hostNetwork": true, "hostIPC": true}),
        of(json!({"capabilities": {"add": ["NET_ADMIN", "CHOWN"]}})),
        of(json!({"capabilities": {"drop": ["ALL"]}, "allowPrivilegeEscalation": false})),
        json!({"volumes": [{"name": "v", "hostPath": {"path": "/"}}, {"name": "w", "nfs": {"server": "s", "path": "/"}}]}),
        container(
            json!({"ports": [{"containerPort": 80, "hostPort": 80}, {"containerPort": 81, "hostPort": 443}]}),
        ),
        container(json!({"livenessProbe": {"httpGet": {"port": 80, "host": "1.2.3.4"}}})),
        json!({"securityContext": {"seLinuxOptions": {"type": "x", "user": "y"}}}),
        json!({"securityContext": {"seLinuxOptions": {"role": "y"}}}),
        json!({"securityContext": {"seccompProfile": {"type": "Unconfined"}}}),
        json!({"securityContext": {"sysctls": [{"name": "kernel.msgmax", "value": "1"}]}}),
        json!({"securityContext": {"appArmorProfile": {"type": "Unconfined"}}}),
        json!({"securityContext": {"runAsUser": 0, "runAsNonRoot": false}}),
        json!({"securityContext": {"runAsUser": 1, "runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}}}),
        json!({"hostUsers": false}),
    ];
    for spec in specs {
        for space in ["base", "strict"] {
            let path = format!("{SPACES}/{space}/pods?dryRun=All");
            questions.push(root("POST", path, pod("p", spec.clone())).showing(&["/kind"]));
        }
    }
    let workload = json!({"metadata": {"name": "d"}, "spec": {
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {
            "containers": [{"name": "a", "image": "x"}],
        }},
    }});
    for space in ["base", "strict"] {
        let path = format!("/apis/apps/v1/namespaces/{space}/deployments");
        questions.push(root("POST", path, workload.clone()).showing(&["/kind"]));
    }
    let path = format!("{SPACES}/base");
    questions.extend([
        root("POST", format!("{path}/pods"), pod("one", json!({}))).showing(&["/kind"]),
        root("POST", format!("{path}/pods"), pod("two", json!({}))).showing(&["/kind"]),
        root(
            "PATCH",
            &path,
            json!({"metadata": {"labels": level("enforce", "restricted")}}),
        )
        .showing(&["/kind"]),
        root(
            "PATCH",
            &path,
            json!({"metadata": {"labels": level("warn", "x")}}),
        ),
    ]);
    questions
}

/// LimitRanges and ResourceQuotas. No controller runs beside the real server: what is used is set by
/// hand.
fn about_limits() -> Vec<Question> {
    let base = format!("{SPACES}/limited");
    let pods = format!("{base}/pods");
    let asks = |resources: Value| container(json!({"resources": resources}));
    let claim = |size: &str| {
        json!({"metadata": {"name": "c"}, "spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": size}},
        }})
    };
    let range = json!({"metadata": {"name": "l"}, "spec": {"limits": [
        {"type": "Container", "default": {"cpu": "500m", "memory": "1Gi"}, "defaultRequest": {"cpu": "100m"},
         "max": {"cpu": "1"}, "min": {"memory": "10Mi"}, "maxLimitRequestRatio": {"cpu": "6"}},
        {"type": "Pod", "max": {"cpu": "1500m"}},
        {"type": "PersistentVolumeClaim", "max": {"storage": "5Gi"}, "min": {"storage": "1Gi"}},
    ]}});
    let claims = format!("{base}/persistentvolumeclaims");
    let two = json!({"containers": [
        {"name": "a", "image": "x", "resources": {"limits": {"cpu": "800m"}, "requests": {"cpu": "400m"}}},
        {"name": "b", "image": "x", "resources": {"limits": {"cpu": "800m"}, "requests": {"cpu": "400m"}}},
    ]});
    let shown: &[&str] = &[
        "/spec/containers/0/resources",
        "/metadata/annotations",
        "/status/qosClass",
        "/metadata/generation",
    ];
    vec![
        root("POST", SPACES, json!({"metadata": {"name": "limited"}})),
        root("POST", format!("{base}/limitranges"), range),
        root("POST", &pods, pod("a", json!({}))).showing(shown),
        root(
            "POST",
            &pods,
            pod("b", asks(json!({"limits": {"cpu": "200m"}}))),
        )
        .showing(shown),
        root(
            "POST",
            &pods,
            pod("c", asks(json!({"limits": {"cpu": "2"}}))),
        ),
        root(
            "POST",
            &pods,
            pod(
                "c",
                asks(json!({"limits": {"cpu": "1"}, "requests": {"cpu": "100m"}})),
            ),
        ),
        root(
            "POST",
            &pods,
            pod("c", asks(json!({"limits": {"cpu": "2", "memory": "1Mi"}}))),
        ),
        root("POST", &pods, pod("c", two)),
        root(
            "POST",
            &pods,
            pod("Bad Name", asks(json!({"limits": {"cpu": "2"}}))),
        ),
        root("POST", &claims, claim("10Gi")),
        root("POST", &claims, claim("1Mi")),
    ]
}

fn about_quotas() -> Vec<Question> {
    let base = format!("{SPACES}/counted");
    let pods = format!("{base}/pods");
    let hard = json!({
        "requests.cpu": "1", "limits.memory": "1Gi", "pods": "2", "services": "1",
        "count/configmaps": "1", "requests.storage": "1Gi", "services.nodeports": "0",
    });
    let none: serde_json::Map<String, Value> = hard
        .as_object()
        .unwrap()
        .keys()
        .map(|name| (name.clone(), "0".into()))
        .collect();
    let asks = |cpu: &str, memory: &str| {
        container(json!({"resources": {"requests": {"cpu": cpu}, "limits": {"memory": memory}}}))
    };
    let map = |name: &str| json!({"metadata": {"name": name}});
    let service = |kind: &str| json!({"metadata": {"name": "s"}, "spec": {"type": kind, "ports": [{"port": 80}]}});
    let quota = format!("{base}/resourcequotas");
    let used: &[&str] = &["/status"];
    vec![
        root("POST", SPACES, json!({"metadata": {"name": "counted"}})),
        root(
            "POST",
            &quota,
            json!({"metadata": {"name": "q"}, "spec": {"hard": hard}}),
        ),
        root(
            "PATCH",
            format!("{quota}/q/status"),
            json!({"status": {"hard": hard, "used": none}}),
        )
        .showing(used),
        root("POST", &pods, pod("a", json!({}))),
        root("POST", &pods, pod("a", asks("600m", "100Mi"))).showing(&["/kind"]),
        get(format!("{quota}/q")).showing(used),
        root("POST", &pods, pod("b", asks("600m", "100Mi"))),
        root(
            "POST",
            format!("{pods}?dryRun=All"),
            pod("b", asks("600m", "2Gi")),
        ),
        root("POST", format!("{base}/configmaps"), map("a")).showing(&["/kind"]),
        root("POST", format!("{base}/configmaps"), map("b")),
        root("POST", format!("{base}/services"), service("NodePort")),
        root("POST", format!("{base}/services"), service("ClusterIP")).showing(&["/kind"]),
        root("POST", format!("{base}/services"), service("ClusterIP")),
        root(
            "PATCH",
            format!("{base}/services/s"),
            json!({"spec": {"type": "NodePort"}}),
        ),
        get(format!("{quota}/q")).showing(used),
    ]
}

/// Creations, bindings and deletions.
fn about_pods() -> Vec<Question> {
    let pods = format!("{SPACES}/default/pods");
    let own = format!("{pods}/p");
    let binding = |name: &str, node: &str| json!({"metadata": {"name": name}, "target": {"kind": "Node", "name": node}});
    let ends: &[&str] = &[
        "/metadata/generation",
        "/metadata/deletionGracePeriodSeconds",
    ];
    let grace = |seconds: i64| json!({"gracePeriodSeconds": seconds});
    let stale = |name: &str| json!({"metadata": {"name": name, "resourceVersion": "1"}});
    let role = json!({"metadata": {"name": "r", "namespace": "x"}, "rules": []});
    vec![
        root("POST", format!("{SPACES}/absent/configmaps"), stale("a")),
        root("POST", format!("{SPACES}/default/configmaps"), stale("A b")),
        root("POST", format!("{SPACES}/default/configmaps"), stale("a")),
        root(
            "POST",
            "/apis/rbac.authorization.k8s.io/v1/clusterroles",
            role,
        )
        .showing(&["/metadata/namespace", "/metadata/name"]),
        root("POST", &pods, pod("p", json!({}))).showing(ends),
        root("DELETE", &own, Value::Null).showing(ends),
        root("POST", &pods, pod("p", json!({}))).showing(ends),
        root("POST", format!("{own}/binding"), binding("q", "n")),
        root("POST", format!("{own}/binding"), binding("p", "n")),
        root("POST", format!("{own}/binding"), binding("p", "n")),
        root("PATCH", &own, json!({"spec": {"activeDeadlineSeconds": 9}})).showing(ends),
        root("DELETE", &own, Value::Null).showing(ends),
        root("DELETE", &own, grace(60)).showing(ends),
        root("DELETE", &own, grace(5)).showing(ends),
        root("DELETE", &own, grace(-1)).showing(ends),
        root("DELETE", &own, grace(0)).showing(ends),
        get(&own),
    ]
}

#[tokio::test]
async fn objects_are_treated_as_by_kubernetes() {
    let Some((_real, theirs, _server, ours)) = both().await else {
        return;
    };
    let mut different = compare(&theirs, &ours, &about_definitions()).await;
    let own = format!("{DEFINITIONS}/sheep.flock.example.com");
    for client in [&theirs, &ours] {
        until(client, &own, "/status/conditions/1/status", &json!("True")).await;
        // The real one serves it a moment after that.
        until(client, SHEEP, "/kind", &json!("SheepList")).await;
    }
    different.extend(compare(&theirs, &ours, &about_versions()).await);
    different.extend(compare(&theirs, &ours, &about_terminating()).await);
    for client in [&theirs, &ours] {
        let reason = json!("InstanceDeletionInProgress");
        until(client, &own, "/status/conditions/2/reason", &reason).await;
    }
    for questions in [
        about_terminated(),
        about_security(),
        about_limits(),
        about_quotas(),
        about_pods(),
    ] {
        different.extend(compare(&theirs, &ours, &questions).await);
    }
    assert!(different.is_empty(), "{}", different.join("\n"));
}
