//! What traits do to workloads where parameters work together, and what they refuse.

use serde_json::{Value, json};

use crate::definitions::rendered;

/// The objects of a component of this type with these properties and traits.
fn objects(kind: &str, properties: &Value, traits: &Value) -> Result<Vec<Value>, String> {
    rendered(&json!({
        "metadata": {"name": "shop", "namespace": "default"},
        "spec": {"components": [
            {"name": "web", "type": kind, "properties": properties, "traits": traits},
        ]},
    }))
}

/// Looks at a place of the first object of a webservice with one trait.
#[track_caller]
fn check(service: &Value, kind: &str, properties: &Value, pointer: &str, expected: &Value) {
    let mut image = json!({"image": "nginx"});
    for (name, value) in service.as_object().into_iter().flatten() {
        image[name] = value.clone();
    }
    let traits = json!([{"type": kind, "properties": properties}]);
    let found = objects("webservice", &image, &traits).unwrap();
    let value = found[0].pointer(pointer).unwrap_or(&Value::Null);
    assert_eq!(value, expected, "{kind} {properties}");
}

#[track_caller]
fn check_refused(kind: &str, properties: &Value, expected: &str) {
    let traits = json!([{"type": kind, "properties": properties}]);
    let error = objects("webservice", &json!({"image": "nginx"}), &traits).unwrap_err();
    assert!(error.contains(expected), "{kind} {properties}: {error}");
}

const CONTAINER: &str = "/spec/template/spec/containers/0";

#[test]
fn arguments_are_added_once_and_removed_last() {
    let args = format!("{CONTAINER}/args");
    let service = json!({"args": ["a", "b"]});
    for (properties, expected) in [
        (json!({"addArgs": ["b", "c"]}), json!(["a", "b", "c"])),
        (json!({"delArgs": ["a"]}), json!(["b"])),
        (
            json!({"addArgs": ["c", "d"], "delArgs": ["b", "d"]}),
            json!(["a", "c"]),
        ),
        (json!({"args": ["z"]}), json!(["z"])),
    ] {
        check(&service, "command", &properties, &args, &expected);
    }
    let expected = "args cannot be given together with addArgs or delArgs";
    check_refused(
        "command",
        &json!({"args": ["z"], "addArgs": ["c"]}),
        expected,
    );
    check_refused("command", &json!({"args": [], "delArgs": ["c"]}), expected);
}

#[test]
fn a_variable_that_is_unset_is_not_set_by_the_same_trait() {
    let env = format!("{CONTAINER}/env");
    let service = json!({"env": [{"name": "OLD", "value": "1"}]});
    for (is_replaced, expected) in [
        (
            false,
            json!([{"name": "OLD", "value": "1"}, {"name": "B", "value": "2"}]),
        ),
        (true, json!([{"name": "B", "value": "2"}])),
    ] {
        let properties =
            json!({"env": {"A": "1", "B": "2"}, "unset": ["A"], "replace": is_replaced});
        check(&service, "env", &properties, &env, &expected);
    }
}

#[test]
fn a_strategy_that_a_kind_does_not_have_changes_nothing() {
    for (component, target, strategy, expected) in [
        ("webservice", "Deployment", "OnDelete", Value::Null),
        (
            "webservice",
            "Deployment",
            "Recreate",
            json!({"type": "Recreate"}),
        ),
        ("statefulset", "StatefulSet", "Recreate", Value::Null),
        (
            "statefulset",
            "StatefulSet",
            "OnDelete",
            json!({"type": "OnDelete"}),
        ),
        ("daemon", "DaemonSet", "Recreate", Value::Null),
        (
            "daemon",
            "DaemonSet",
            "OnDelete",
            json!({"type": "OnDelete"}),
        ),
    ] {
        let properties = json!({"targetKind": target, "strategy": {"type": strategy}});
        let traits = json!([{"type": "k8s-update-strategy", "properties": properties}]);
        let found = objects(component, &json!({"image": "nginx"}), &traits).unwrap();
        let field = if target == "Deployment" {
            "strategy"
        } else {
            "updateStrategy"
        };
        assert_eq!(found[0]["spec"][field], expected, "{target} {strategy}");
    }
}

#[test]
fn volumes_go_to_the_first_container_whatever_its_name_is() {
    let workload = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "spec": {"template": {"spec": {"containers": [
            {"name": "first", "image": "nginx"},
            {"name": "second", "image": "busybox"},
        ]}}},
    });
    for (kind, properties, expected) in [
        (
            "storage",
            json!({"emptyDir": [{"name": "scratch", "mountPath": "/tmp"}]}),
            json!([{"name": "emptydir-scratch", "mountPath": "/tmp"}]),
        ),
        (
            "pvc",
            json!({
                "claimName": "data",
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
                "volumesToMount": [{"name": "data", "mountPath": "/data"}],
            }),
            json!([{"name": "data", "mountPath": "/data"}]),
        ),
        (
            "configmap",
            json!({"volumes": [{"name": "settings", "mountPath": "/etc/shop"}]}),
            json!([{"name": "volume-settings", "mountPath": "/etc/shop", "readOnly": false}]),
        ),
    ] {
        let traits = json!([{"type": kind, "properties": properties}]);
        let found = objects("k8s-objects", &json!({"objects": [workload]}), &traits).unwrap();
        let containers = &found[0]["spec"]["template"]["spec"]["containers"];
        assert_eq!(containers.as_array().unwrap().len(), 2, "{kind}");
        assert_eq!(containers[0]["name"], "first", "{kind}");
        assert_eq!(containers[0]["volumeMounts"], expected, "{kind}");
        assert_eq!(containers[1], workload_container(&workload, 1), "{kind}");
    }
}

fn workload_container(workload: &Value, index: usize) -> Value {
    workload["spec"]["template"]["spec"]["containers"][index].clone()
}

#[test]
fn a_claim_of_a_block_device_is_a_device_of_the_container() {
    let properties = json!({
        "claimName": "data",
        "volumeMode": "Block",
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "volumesToMount": [{"name": "data", "devicePath": "/dev/data"}],
    });
    check(
        &json!({}),
        "pvc",
        &properties,
        &format!("{CONTAINER}/volumeDevices"),
        &json!([{"name": "data", "devicePath": "/dev/data"}]),
    );
}

#[test]
fn a_later_host_port_takes_the_place_of_an_earlier_one() {
    let traits = json!([
        {"type": "container-ports", "properties": {"ports": [
            {"containerPort": 80, "hostPort": 8080, "hostIP": "10.0.0.1"},
        ]}},
        {"type": "container-ports", "properties": {"ports": [{"containerPort": 80, "hostPort": 8081}]}},
    ]);
    let service = json!({"image": "nginx", "ports": [{"port": 80}]});
    let found = objects("webservice", &service, &traits).unwrap();
    let expected = json!([{
        "name": "port-80", "containerPort": 80, "protocol": "TCP", "hostPort": 8081, "hostIP": "10.0.0.1",
    }]);
    let container = found[0].pointer(CONTAINER).unwrap();
    assert_eq!(container["ports"], expected);
}

#[test]
fn fields_that_traits_do_not_know_are_left_out_or_refused() {
    let pod = "/spec/template/spec";
    check(
        &json!({}),
        "affinity",
        &json!({
            "podAffinity": {
                "required": [{"topologyKey": "zone", "namespace": "shop"}],
                "preferred": [{"weight": 1, "podAffinityTerm": {"topologyKey": "zone"}, "more": true}],
            },
            "tolerations": [{"key": "gpu", "more": true}],
        }),
        pod,
        &json!({
            "affinity": {"podAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "zone", "namespace": "shop"}],
                "preferredDuringSchedulingIgnoredDuringExecution": [
                    {"weight": 1, "podAffinityTerm": {"topologyKey": "zone"}},
                ],
            }},
            "tolerations": [{"key": "gpu", "operator": "Equal"}],
            "containers": [{"name": "web", "image": "nginx"}],
        }),
    );
    check(
        &json!({}),
        "resource",
        &json!({"requests": {"cpu": "1", "memory": "1Gi", "gpu": 1}}),
        &format!("{CONTAINER}/resources"),
        &json!({"requests": {"cpu": "1", "memory": "1Gi"}}),
    );
    check(
        &json!({}),
        "storage",
        &json!({"hostPath": [{"name": "logs", "path": "/var/log", "mountPath": "/logs", "subPath": "web"}]}),
        &format!("{CONTAINER}/volumeMounts"),
        &json!([{"name": "hostpath-logs", "mountPath": "/logs"}]),
    );
    let terms = json!({"podAffinity": {"required": [{"topologyKey": "zone", "more": true}]}});
    check_refused("affinity", &terms, "podAffinity.required.0.more");
    let mappings = json!({"envMappings": {"PASSWORD": {"secret": "shop", "more": "it"}}});
    check_refused("service-binding", &mappings, "envMappings.PASSWORD.more");
    let probe = json!({"httpGet": {"port": 80, "scheme": "FTP"}});
    check_refused("startup-probe", &probe, "FTP");
}

#[test]
fn a_service_without_ports_has_no_list_of_them() {
    let traits = json!([{"type": "expose", "properties": {}}]);
    let found = objects("webservice", &json!({"image": "nginx"}), &traits).unwrap();
    assert_eq!(found[1]["kind"], "Service");
    assert_eq!(found[1]["spec"]["ports"], Value::Null);
}

#[test]
fn an_old_ingress_leaves_its_class_to_the_cluster() {
    let properties = json!({"domain": "shop.example.org", "http": {"/": 80}});
    let traits = json!([{"type": "ingress", "properties": properties}]);
    let found = objects("webservice", &json!({"image": "nginx"}), &traits).unwrap();
    let ingress = found
        .iter()
        .find(|object| object["kind"] == "Ingress")
        .unwrap();
    assert_eq!(ingress["metadata"]["annotations"], Value::Null);
}

#[test]
fn probes_of_jobs_are_checked_and_left_out() {
    for kind in ["task", "cron-task"] {
        let job = |probe: Value| json!({"image": "busybox", "schedule": "@daily", "livenessProbe": probe});
        let right = job(json!({"httpGet": {"path": "/", "port": 80}}));
        let found = objects(kind, &right, &json!([])).unwrap();
        assert!(
            !found[0].to_string().contains("livenessProbe"),
            "{}",
            found[0]
        );
        let wrong = job(json!({"httpGet": {"path": "/", "port": 80, "scheme": "HTTPS"}}));
        let error = objects(kind, &wrong, &json!([])).unwrap_err();
        assert!(error.contains("livenessProbe.httpGet.scheme"), "{error}");
    }
}
