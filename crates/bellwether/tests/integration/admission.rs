//! Admission by the real binary: policies of the examples, and the webhooks of a hub, on an embedded API
//! server and, where `KUBEBUILDER_ASSETS` says where its programs are, on a real one.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]

use crate::fleet;

use std::path::Path;

use bellwether_testkit::{Assets, RealCluster, process, skip};
use fleet::{Fleet, Process, pause};
use serde_json::Value;

fn run(kubeconfig: &Path, command: &str) -> (bool, String, String) {
    let mut bellwether = fleet::bellwether();
    process::run(
        bellwether
            .args(command.split(' '))
            .env("KUBECONFIG", kubeconfig),
    )
}

/// Runs a command until it ends as expected: a real API server takes a while to notice configurations.
#[track_caller]
fn until(kubeconfig: &Path, command: &str, is_expected: impl Fn(bool, &str) -> bool) -> String {
    let mut attempts = 0;
    loop {
        let (succeeded, output, errors) = run(kubeconfig, command);
        let said = format!("{output}{errors}");
        if is_expected(succeeded, &said) {
            return said;
        }
        attempts += 1;
        assert!(attempts < 150, "{command}: {said}");
        pause();
    }
}

#[track_caller]
fn succeeds(kubeconfig: &Path, command: &str) -> String {
    let (succeeded, output, errors) = run(kubeconfig, command);
    assert!(succeeded, "{command}\n{output}{errors}");
    output
}

/// The policies of the examples refuse what they are about.
fn policies_hold(kubeconfig: &Path) {
    let refusal = "ValidatingAdmissionPolicy 'enough-replicas' with binding 'enough-replicas' denied \
                   request: checkout needs at least 2 replicas";
    succeeds(kubeconfig, "apply -f examples/admission/replicas.yaml");
    until(
        kubeconfig,
        "apply -f examples/admission/single.yaml",
        |succeeded, said| {
            if succeeded {
                // It was there before the policies: take it away.
                succeeds(kubeconfig, "delete deployment checkout -n shop-production");
            }
            !succeeded && said.contains(refusal)
        },
    );
}

/// A hub has its writes checked, repairs its configurations, and fails closed.
fn webhooks_hold(kubeconfig: &Path) {
    let directory = tempfile::tempdir().unwrap();
    let file = |name: &str, address: &str| {
        let path = directory.path().join(format!("{name}.yaml"));
        let text = format!(
            "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\nmetadata: {{name: \
             {name}}}\nspec:\n  hubAcceptsClient: false\n  managedClusterClientConfigs: [{{url: \
             '{address}'}}]\n"
        );
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let command = format!(
        "hub --kubeconfig {} --webhook-listen 127.0.0.1:0",
        kubeconfig.display()
    );
    let hub = Process::start(&command, "the hub is ready");
    let get = "get validatingwebhookconfiguration bellwether-hub -o json";
    let found: Value = serde_json::from_str(&succeeds(kubeconfig, get)).unwrap();
    let webhook = found["webhooks"]
        .as_array()
        .and_then(|webhooks| {
            let name = "fleet.validate.bellwether.dev";
            webhooks.iter().find(|webhook| webhook["name"] == name)
        })
        .unwrap_or_else(|| panic!("{found}"));
    assert!(webhook["clientConfig"]["caBundle"].is_string(), "{webhook}");
    // The wrong one is refused, the good one accepted and completed.
    let wrong = file("wrong", "http://wrong");
    until(
        kubeconfig,
        &format!("apply -f {wrong}"),
        |succeeded, said| !succeeded && said.contains("is invalid in client configs"),
    );
    let good = file("good", "https://good");
    succeeds(kubeconfig, &format!("apply -f {good}"));
    let made = succeeds(kubeconfig, "get managedcluster good -o json");
    let made: Value = serde_json::from_str(&made).unwrap();
    let set = "cluster.open-cluster-management.io/clusterset";
    assert_eq!(made["metadata"]["labels"][set], "default");
    // Somebody deletes the configuration.
    succeeds(
        kubeconfig,
        "delete validatingwebhookconfiguration bellwether-hub",
    );
    until(kubeconfig, get, |succeeded, _| succeeded);
    // Without the hub nobody checks, so nobody writes.
    drop(hub);
    let other = file("other", "https://other");
    let said = until(
        kubeconfig,
        &format!("apply -f {other}"),
        |succeeded, said| !succeeded && said.contains("failed calling webhook"),
    );
    assert!(said.contains("connection refused"), "{said}");
}

#[test]
fn admission_holds_on_an_embedded_hub() {
    let fleet = Fleet::only_server();
    policies_hold(&fleet.kubeconfig());
    webhooks_hold(&fleet.kubeconfig());
}

#[tokio::test(flavor = "multi_thread")]
async fn admission_holds_on_a_real_hub() {
    let assets = match Assets::find() {
        Ok(assets) => assets,
        Err(why) => {
            skip(why);
            return;
        }
    };
    let real = RealCluster::start(&assets).await.unwrap();
    let kubeconfig = real.kubeconfig();
    tokio::task::spawn_blocking(move || {
        policies_hold(&kubeconfig);
        webhooks_hold(&kubeconfig);
    })
    .await
    .unwrap();
}
