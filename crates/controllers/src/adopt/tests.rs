use super::*;

fn deployment(namespace: &str, name: &str, replicas: u32, labels: &Value) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"namespace": namespace, "name": name, "labels": labels},
        "spec": {"replicas": replicas},
    })
}

fn webhooks(name: &str) -> Value {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": name},
        "webhooks": [{"name": "a", "failurePolicy": "Fail"}, {"name": "b", "failurePolicy": "Ignore"}],
    })
}

/// A hub as the operator of Open Cluster Management leaves it.
fn ocm() -> Found {
    let hub = "open-cluster-management-hub";
    let none = json!({});
    Found {
        deployments: vec![
            deployment(hub, "cluster-manager-work-controller", 3, &none),
            deployment(hub, "cluster-manager-addon-manager-controller", 3, &none),
            deployment(hub, "cluster-manager-placement-controller", 0, &none),
            deployment("open-cluster-management", "cluster-manager", 3, &none),
            deployment("default", "shop", 2, &none),
        ],
        webhooks: vec![
            webhooks("manifestworkvalidators.admission.work.open-cluster-management.io"),
            webhooks("shop"),
        ],
        trackers: Vec::new(),
    }
}

/// The name of our webhook configurations.
const OURS: &str = "our-hub";

fn words(plan: &Plan) -> Vec<&str> {
    plan.steps.iter().map(|step| step.what.as_str()).collect()
}

/// What a merge patch makes of an object.
fn patched(object: &mut Value, patch: &Value) {
    let (Some(fields), true) = (patch.as_object(), object.is_object()) else {
        *object = patch.clone();
        return;
    };
    for (key, value) in fields {
        if value.is_null() {
            object.as_object_mut().unwrap().remove(key);
        } else {
            let slot = &mut object[key.as_str()];
            if value.is_object() && !slot.is_object() {
                *slot = json!({});
            }
            patched(slot, value);
        }
    }
}

fn carry_out(found: &mut Found, plan: &Plan) {
    for step in &plan.steps {
        let objects = found.deployments.iter_mut().chain(&mut found.webhooks);
        for object in objects.filter(|object| path_of(object) == step.path) {
            if let Change::Patch(patch) | Change::Stop(patch) = &step.change {
                patched(object, patch);
            }
        }
        if step.change == Change::Delete {
            found.webhooks.retain(|it| path_of(it) != step.path);
        }
    }
}

#[test]
fn the_operator_is_stopped_before_what_it_keeps_in_order() {
    let plan = plan(Origin::Ocm, &ocm());
    assert_eq!(
        words(&plan),
        [
            "stop Deployment open-cluster-management/cluster-manager (3 replicas)",
            "let writes pass ValidatingWebhookConfiguration manifestworkvalidators.admission.work.open-cluster-management.io",
            "stop Deployment open-cluster-management-hub/cluster-manager-work-controller (3 replicas)",
        ]
    );
    assert!(plan.obstacles.is_empty());
    let path = "/apis/apps/v1/namespaces/open-cluster-management/deployments/cluster-manager";
    assert_eq!(plan.steps[0].path, path);
}

#[test]
fn what_was_taken_over_can_be_given_back() {
    let (mut found, before) = (ocm(), ocm());
    let there = plan(Origin::Ocm, &found);
    carry_out(&mut found, &there);
    assert_eq!(
        plan(Origin::Ocm, &found).steps,
        [],
        "taking over twice changes nothing"
    );
    let back = undo(Origin::Ocm, &found, OURS);
    assert_eq!(back.steps.len(), there.steps.len());
    carry_out(&mut found, &back);
    for (now, then) in found.webhooks.iter().zip(&before.webhooks) {
        assert_eq!(now["webhooks"], then["webhooks"]);
    }
    for (now, then) in found.deployments.iter().zip(&before.deployments) {
        assert_eq!(now["spec"], then["spec"]);
    }
    assert_eq!(undo(Origin::Ocm, &found, OURS).steps, []);
}

#[test]
fn kubevela_is_found_by_its_labels() {
    let label = json!({"app.kubernetes.io/name": "vela-core"});
    let found = Found {
        deployments: vec![deployment("vela-system", "kubevela-vela-core", 1, &label)],
        webhooks: vec![webhooks("kubevela-vela-core-admission")],
        trackers: Vec::new(),
    };
    let plan = plan(Origin::Kubevela, &found);
    assert_eq!(plan.steps.len(), 2, "{:?}", words(&plan));
}

fn tracker(spec: &Value) -> ResourceTracker {
    serde_json::from_value(json!({
        "apiVersion": "core.oam.dev/v1beta1", "kind": "ResourceTracker",
        "metadata": {"name": "ship-v1-scen"}, "spec": spec,
    }))
    .unwrap()
}

#[test]
fn records_that_cannot_be_carried_on_stand_in_the_way() {
    let check = |spec: Value, expected: Option<&str>| {
        let found = Found {
            trackers: vec![tracker(&spec)],
            ..Found::default()
        };
        let obstacles = plan(Origin::Kubevela, &found).obstacles;
        match expected {
            None => assert_eq!(obstacles, [""; 0]),
            Some(text) => assert!(obstacles[0].contains(text), "{obstacles:?}"),
        }
        assert!(plan(Origin::Ocm, &found).obstacles.is_empty());
    };
    let resource = |cluster: &str| json!({"cluster": cluster, "apiVersion": "v1", "kind": "ConfigMap", "name": "a", "namespace": "b"});
    let local = json!([resource(""), resource("local")]);
    check(
        json!({"type": "versioned", "managedResources": local}),
        None,
    );
    let far = json!([resource("edge1")]);
    check(
        json!({"type": "versioned", "managedResources": far}),
        Some("objects on edge1"),
    );
    let packed = json!({"type": "gzip", "data": "H4sI"});
    check(
        json!({"type": "versioned", "compression": packed}),
        Some("type \"gzip\" that cannot be read"),
    );
}

/// When our hub is stopped, its webhooks are removed, whether it took over from OCM or from KubeVela.
#[test]
fn our_webhooks_go_before_others_start_again() {
    let labels =
        json!({"app.kubernetes.io/name": "bellwether", "app.kubernetes.io/component": "hub"});
    let kept = json!({REPLICAS: "1"});
    for (origin, name, label) in [
        (Origin::Ocm, "cluster-manager", "any"),
        (Origin::Kubevela, "kubevela-vela-core", "vela-core"),
    ] {
        let label = json!({"app.kubernetes.io/name": label});
        let mut theirs = deployment("theirs", name, 0, &label);
        theirs["metadata"]["annotations"] = kept.clone();
        let mut mutating = webhooks(OURS);
        mutating["kind"] = "MutatingWebhookConfiguration".into();
        let found = Found {
            deployments: vec![theirs, deployment("ours", "hub", 2, &labels)],
            webhooks: vec![mutating, webhooks(OURS), webhooks("shop")],
            trackers: Vec::new(),
        };
        let plan = undo(origin, &found, OURS);
        assert_eq!(
            words(&plan),
            [
                "stop Deployment ours/hub",
                "delete MutatingWebhookConfiguration our-hub",
                "delete ValidatingWebhookConfiguration our-hub",
                &format!("start Deployment theirs/{name} (1 replicas)"),
            ]
        );
        assert!(
            matches!(plan.steps[0].change, Change::Stop(_)),
            "it is waited for"
        );
    }
}
