//! Reading with kubectl: every form of output, selectors, watches, what is served.

use std::process::{Command, Stdio};

use crate::fleet::Fleet;

fn with_maps() -> Fleet {
    let fleet = Fleet::start();
    for (name, tier) in [("one", "front"), ("two", "back"), ("three", "back")] {
        fleet.shell(&format!(
            "kubectl create configmap {name} --from-literal=k={name}"
        ));
        fleet.shell(&format!("kubectl label configmap {name} tier={tier}"));
    }
    fleet
}

#[test]
fn objects_are_shown_in_every_form() {
    let fleet = with_maps();
    let run = |command: &str| fleet.shell(command);
    let table = run("kubectl get configmaps one two");
    assert!(
        table.starts_with("NAME   DATA   AGE\none    1      "),
        "{table}"
    );
    assert!(run("kubectl get nodes,namespaces -o wide").contains("namespace/default"));
    assert!(run("kubectl get cm one -o yaml").contains("\n  k: one\n"));
    assert!(run("kubectl get cm one -o json").contains("\"k\": \"one\""));
    assert_eq!(
        run("kubectl get cm -l tier=front -o name"),
        "configmap/one\n"
    );
    assert_eq!(run("kubectl get cm one -o jsonpath={.data.k}"), "one");
    assert_eq!(
        run(
            "kubectl get cm -l tier -o custom-columns=N:.metadata.name,T:.metadata.labels.tier --sort-by=.data.k"
        ),
        "N       T\none     front\nthree   back\ntwo     back\n"
    );
    assert_eq!(
        run("kubectl get cm --field-selector metadata.name=two -o name"),
        "configmap/two\n"
    );
    assert!(run("kubectl get cm -l tier!=front --show-labels").contains("tier=back"));
    let chunked = run("kubectl get namespaces -o name --chunk-size=1");
    assert_eq!(chunked, run("kubectl get namespaces -o name"));
    assert!(run("kubectl get cm --no-headers one").starts_with("one "));
    assert!(run("kubectl get --raw /readyz").starts_with("ok"));
    let missing = fleet.fails("kubectl get cm four");
    assert_eq!(
        missing,
        "Error from server (NotFound): configmaps \"four\" not found\n"
    );
    assert!(
        fleet
            .fails("kubectl get wombats")
            .contains("doesn't have a resource type")
    );
}

#[test]
fn a_watch_shows_what_is_there_and_what_comes() {
    let fleet = with_maps();
    let watch = |flags: &[&str]| {
        Command::new("kubectl")
            .args(["get", "configmap", "one", "-o", "jsonpath={.data.k} "])
            .args(flags)
            .args(["--request-timeout=3s"])
            .env("KUBECONFIG", fleet.kubeconfig())
            .env("HOME", fleet.directory())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    let both = watch(&["-w"]);
    let only = watch(&["--watch-only"]);
    // Both see the change whenever it comes: a watch begins with what is there.
    for value in ["new", "newer", "newest"] {
        fleet.shell(&format!(
            "kubectl patch configmap one --type=merge -p {{\"data\":{{\"k\":\"{value}\"}}}}"
        ));
    }
    let text = |child: std::process::Child| {
        String::from_utf8_lossy(&child.wait_with_output().unwrap().stdout).into_owned()
    };
    assert!(
        text(both).ends_with("newest "),
        "nothing was missed at the end"
    );
    let only = text(only);
    assert!(
        !only.contains("one "),
        "what was there before is not shown: {only}"
    );
}

#[test]
fn a_cluster_says_what_it_serves() {
    let fleet = Fleet::start();
    let run = |command: &str| fleet.shell(command);
    assert!(
        run("kubectl api-versions")
            .lines()
            .any(|line| line == "apps/v1")
    );
    let resources = run("kubectl api-resources --namespaced=false -o name");
    assert!(resources.lines().any(|line| line == "nodes"), "{resources}");
    assert!(run("kubectl cluster-info").contains("is running at"));
    assert!(run("kubectl version").contains("Server Version: v1.35"));
    assert!(run("kubectl explain managedcluster.spec.taints").contains("effect"));
    assert!(run("kubectl explain deployment.spec.strategy --recursive").contains("maxSurge"));
    assert!(run("kubectl explain cronjob --api-version=batch/v1").contains("KIND:       CronJob"));
    assert!(run("kubectl describe namespace default").contains("Status:       Active"));
    assert!(run("kubectl describe managedcluster cluster1").contains("Hub Accepts Client:"));
}

#[test]
fn what_an_embedded_cluster_cannot_do_is_said_clearly() {
    let fleet = Fleet::start();
    fleet.shell("kubectl --context cluster1 run web --image=nginx");
    // kubectl itself refuses what is not running.
    fleet.shell("kubectl --context cluster1 wait --for=condition=Ready pod/web --timeout=20s");
    for command in [
        "kubectl --context cluster1 exec web -- true",
        "kubectl --context cluster1 port-forward pod/web 18080:80",
    ] {
        let complaint = fleet.fails(command);
        assert!(complaint.contains("embedded"), "{command}: {complaint}");
    }
    // kubectl drops the path of the server here.
    let version = fleet.shell("kubectl --context cluster1 get --raw /version");
    assert!(version.contains("v1.35"), "{version}");
}
