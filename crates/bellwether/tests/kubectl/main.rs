//! The real binary and the real kubectl: the tour of the README, and everyday commands.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails"
)]
#![allow(clippy::needless_pass_by_value, reason = "bodies are written in place")]

mod access;
mod apply_once;
mod changing;
mod docs;
#[path = "../integration/fleet/mod.rs"]
mod fleet;
mod reading;
mod twins;
mod workloads;

use fleet::Fleet;

#[test]
fn everyday_commands_work() {
    let fleet = Fleet::start();
    let run = |command: &str| fleet.shell(command);
    assert_eq!(
        run("kubectl create namespace shop").trim(),
        "namespace/shop created"
    );
    run("kubectl create deployment web --image=nginx --replicas=2 -n shop");
    run("kubectl set image deployment/web nginx=nginx:2 -n shop");
    assert_eq!(
        run(
            "kubectl get deployment web -n shop -o jsonpath={.spec.template.spec.containers[0].image}"
        ),
        "nginx:2"
    );
    run("kubectl scale deployment web --replicas=5 -n shop");
    run("kubectl label deployment web tier=front -n shop");
    run("kubectl annotate deployment web note=x -n shop");
    assert!(run("kubectl get all -A -l tier=front").contains("deployment.apps/web"));
    run(
        "kubectl patch deployment web -n shop --type=json -p [{\"op\":\"remove\",\"path\":\"/metadata/annotations/note\"}]",
    );
    assert!(run("kubectl describe deployment web -n shop").contains("nginx:2"));
    assert!(run("kubectl explain pod.spec.containers.resources").contains("limits"));
    assert!(run("kubectl api-resources").contains("customresourcedefinitions"));
    assert_eq!(run("kubectl auth can-i create pods").trim(), "yes");
    assert!(run("kubectl auth whoami").contains("bellwether-admin"));
    run("kubectl create configmap a --from-literal=k=v -n shop");
    run("kubectl wait --for=jsonpath={.data.k}=v configmap/a -n shop --timeout=5s");
    run("kubectl delete namespace shop --timeout=20s");
    let gone = fleet.fails("kubectl get namespace shop");
    assert!(gone.contains("namespaces \"shop\" not found"), "{gone}");
}

#[test]
fn client_side_and_server_side_apply_agree() {
    let fleet = Fleet::start();
    let run = |command: &str| fleet.shell(command);
    assert!(run("kubectl apply -f examples/web/web.yaml").contains("deployment.apps/web created"));
    assert!(
        run("kubectl apply -f examples/web/web.yaml").contains("deployment.apps/web unchanged")
    );
    run("kubectl diff -f examples/web/web.yaml");
    run("kubectl apply --server-side --force-conflicts -f examples/web/web.yaml");
    let wrong = fleet
        .fails("kubectl apply --server-side --field-manager=other -f examples/web/conflict.yaml");
    assert!(wrong.contains("Apply failed with 1 conflict"), "{wrong}");
    run("kubectl delete -f examples/web/web.yaml --timeout=20s");
}

#[test]
fn killed_at_any_moment_nothing_acknowledged_is_lost() {
    let mut fleet = Fleet::start();
    for round in 0..5 {
        for item in 0..4 {
            fleet.shell(&format!(
                "kubectl create configmap m{round}-{item} --from-literal=k={round}"
            ));
        }
        fleet.kill_and_restart();
        let found = fleet.shell("kubectl get configmaps -o name");
        let own = found.lines().filter(|name| name.contains("/m"));
        assert_eq!(own.count(), (round + 1) * 4, "{found}");
    }
}

#[test]
fn our_own_definitions_can_be_applied() {
    let fleet = Fleet::start();
    let (_, text, _) = fleet.run(&format!("{} crds", env!("CARGO_BIN_EXE_bellwether")));
    let file = fleet.directory().join("crds.yaml");
    std::fs::write(&file, text).unwrap();
    fleet.shell(&format!(
        "kubectl apply --server-side -f {}",
        file.display()
    ));
    assert!(
        fleet
            .shell("kubectl explain manifestwork.spec")
            .contains("workload")
    );
    let members = fleet.shell("kubectl get managedclusters -l region=emea -o name");
    assert_eq!(
        members.trim(),
        "managedcluster.cluster.open-cluster-management.io/cluster1"
    );
}
