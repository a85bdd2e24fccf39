//! What the server fills in of pods and pod templates.

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use super::image;
use crate::value::{Fill, at, empty, entries, existing, flag, int, is_zero, items, list, text};

/// Mode of files in volumes that are made of API objects: 0644.
const FILE_MODE: i64 = 0o644;

/// Fills in a whole pod.
pub(super) fn pod(object: &mut Value) {
    let Some(spec) = object.get_mut("spec") else {
        return;
    };
    for list in ["containers", "initContainers"] {
        for container in items(spec, &[list]) {
            request_what_is_limited(container);
        }
    }
    request_what_is_limited_in_the_pod(spec);
    let host_network = flag(spec, &["hostNetwork"]);
    if let Some(fields) = spec.as_object_mut() {
        fields.fill("enableServiceLinks", true);
    }
    if host_network {
        open_host_ports(spec);
    }
    pod_spec(spec);
}

/// Fills in the template of a pod, at a path.
pub(crate) fn template(object: &mut Value, path: &[&str]) {
    let found = path
        .iter()
        .try_fold(object, |value, segment| value.get_mut(segment));
    let Some(spec) = found.and_then(|template| template.get_mut("spec")) else {
        return;
    };
    pod_spec(spec);
}

fn pod_spec(spec: &mut Value) {
    let Some(fields) = spec.as_object_mut() else {
        return;
    };
    fields.fill_zero("dnsPolicy", "ClusterFirst");
    fields.fill_zero("restartPolicy", "Always");
    fields.fill("securityContext", empty());
    fields.fill("terminationGracePeriodSeconds", 30);
    fields.fill_zero("schedulerName", "default-scheduler");
    mirror_service_account(fields);
    for volume in items(spec, &["volumes"]) {
        self::volume(volume);
    }
    for list in ["initContainers", "containers", "ephemeralContainers"] {
        for container in items(spec, &[list]) {
            self::container(container);
        }
    }
}

/// `serviceAccount` is the old name of `serviceAccountName`, and is kept the same.
fn mirror_service_account(fields: &mut Map<String, Value>) {
    let of = |name: &str| fields.get(name).filter(|value| !is_zero(value)).cloned();
    if let Some(account) = of("serviceAccountName").or_else(|| of("serviceAccount")) {
        fields.insert("serviceAccountName".to_owned(), account.clone());
        fields.insert("serviceAccount".to_owned(), account);
    }
}

/// A limit without a request is a request, too.
fn request_what_is_limited(container: &mut Value) {
    let limits = at(container, &["resources", "limits"]).clone();
    let Value::Object(limits) = limits else {
        return;
    };
    let Some(resources) = existing(container, &["resources"]) else {
        return;
    };
    resources.fill("requests", empty());
    if let Some(Value::Object(requests)) = resources.get_mut("requests") {
        for (name, limit) in limits {
            requests.entry(name).or_insert(limit);
        }
    }
}

/// The same for limits of the pod as a whole, where no container asks for more particular ones.
fn request_what_is_limited_in_the_pod(spec: &mut Value) {
    let Value::Object(limits) = at(spec, &["resources", "limits"]).clone() else {
        return;
    };
    let kinds = ["containers", "initContainers"].iter();
    let containers = kinds.flat_map(|kind| list(spec, &[kind]));
    let requested = containers.flat_map(|container| {
        let requests = entries(container, &["resources", "requests"]);
        requests.map(|(name, _)| name.as_str())
    });
    let requested: HashSet<&str> = requested.collect();
    let missing: Vec<_> = limits
        .into_iter()
        .filter(|(name, _)| !requested.contains(name.as_str()))
        .collect();
    let Some(resources) = existing(spec, &["resources"]) else {
        return;
    };
    if missing.is_empty() {
        return;
    }
    resources.fill("requests", empty());
    if let Some(Value::Object(requests)) = resources.get_mut("requests") {
        for (name, limit) in missing {
            requests.entry(name).or_insert(limit);
        }
    }
}

/// On the network of the host, a port of a container is a port of the host.
fn open_host_ports(spec: &mut Value) {
    for list in ["containers", "initContainers"] {
        for container in items(spec, &[list]) {
            for port in items(container, &["ports"]) {
                let number = int(port, &["containerPort"]);
                if let Some(port) = port.as_object_mut()
                    && number != 0
                {
                    port.fill_zero("hostPort", number);
                }
            }
        }
    }
}

fn container(container: &mut Value) {
    let policy = image::pull_policy(text(container, &["image"]));
    let Some(fields) = container.as_object_mut() else {
        return;
    };
    fields.fill_zero("imagePullPolicy", policy);
    fields.fill_zero("terminationMessagePath", "/dev/termination-log");
    fields.fill_zero("terminationMessagePolicy", "File");
    for port in items(container, &["ports"]) {
        if let Some(port) = port.as_object_mut() {
            port.fill_zero("protocol", "TCP");
        }
    }
    for variable in items(container, &["env"]) {
        field_reference(variable, &["valueFrom", "fieldRef"]);
        if let Some(key) = existing(variable, &["valueFrom", "fileKeyRef"]) {
            key.fill("optional", false);
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = container.get_mut(name) {
            self::probe(probe);
        }
    }
    for hook in ["postStart", "preStop"] {
        http_get(container, &["lifecycle", hook, "httpGet"]);
    }
}

fn probe(probe: &mut Value) {
    if let Some(fields) = probe.as_object_mut() {
        fields.fill_zero("timeoutSeconds", 1);
        fields.fill_zero("periodSeconds", 10);
        fields.fill_zero("successThreshold", 1);
        fields.fill_zero("failureThreshold", 3);
    }
    http_get(probe, &["httpGet"]);
    if let Some(action) = existing(probe, &["grpc"]) {
        action.fill("service", "");
    }
}

fn http_get(value: &mut Value, path: &[&str]) {
    if let Some(action) = existing(value, path) {
        action.fill_zero("path", "/");
        action.fill_zero("scheme", "HTTP");
    }
}

fn field_reference(value: &mut Value, path: &[&str]) {
    if let Some(reference) = existing(value, path) {
        reference.fill_zero("apiVersion", "v1");
    }
}

fn volume(volume: &mut Value) {
    let Some(fields) = volume.as_object_mut() else {
        return;
    };
    if fields.keys().all(|name| name == "name") {
        fields.insert("emptyDir".to_owned(), empty());
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = existing(volume, &[source]) {
            source.fill("defaultMode", FILE_MODE);
        }
    }
    if let Some(source) = existing(volume, &["hostPath"]) {
        source.fill("type", "");
    }
    for item in items(volume, &["downwardAPI", "items"]) {
        field_reference(item, &["fieldRef"]);
    }
    for source in items(volume, &["projected", "sources"]) {
        for item in items(source, &["downwardAPI", "items"]) {
            field_reference(item, &["fieldRef"]);
        }
        if let Some(token) = existing(source, &["serviceAccountToken"]) {
            token.fill("expirationSeconds", 3600);
        }
    }
    if let Some(claim) = existing(volume, &["ephemeral", "volumeClaimTemplate", "spec"]) {
        claim.fill("volumeMode", "Filesystem");
    }
    if let Some(source) = existing(volume, &["image"]) {
        let policy = image::pull_policy(
            source
                .get("reference")
                .and_then(Value::as_str)
                .unwrap_or_default(),
        );
        source.fill_zero("pullPolicy", policy);
    }
    legacy_volume(volume);
}

/// Defaults of drivers that are no longer part of Kubernetes, whose fields are still accepted.
pub(crate) fn legacy_volume(volume: &mut Value) {
    let defaults = [
        ("iscsi", json!({"iscsiInterface": "default"})),
        (
            "rbd",
            json!({"pool": "rbd", "user": "admin", "keyring": "/etc/ceph/keyring"}),
        ),
        (
            "scaleIO",
            json!({"storageMode": "ThinProvisioned", "fsType": "xfs"}),
        ),
        (
            "azureDisk",
            json!({"cachingMode": "ReadWrite", "fsType": "ext4", "readOnly": false, "kind": "Shared"}),
        ),
    ];
    for (name, defaults) in defaults {
        let (Some(source), Value::Object(defaults)) = (existing(volume, &[name]), defaults) else {
            continue;
        };
        for (field, value) in defaults {
            source.fill_zero(&field, value);
        }
    }
}
