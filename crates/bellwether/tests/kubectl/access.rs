//! Who may what, as people meet it: `auth`, `create token`, `certificate`, and what is left behind.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::fleet::{Fleet, root};

#[test]
fn a_robot_gets_a_token_and_is_nobody_else() {
    let mut fleet = Fleet::start();
    fleet.shell("kubectl apply -f examples/access/team.yaml");
    let token = fleet.shell("kubectl create token robot -n shop --duration=10m");
    // The key for tokens survives.
    fleet.kill_and_restart();
    let run = |command: &str| fleet.shell(command);
    run(&format!(
        "kubectl config set-credentials robot --token={}",
        token.trim()
    ));
    let whoami = run("kubectl --user=robot auth whoami");
    assert!(
        whoami.contains("system:serviceaccount:shop:robot"),
        "{whoami}"
    );
    let can = |question: &str| {
        let (_, answer, _) = fleet.run(&format!("kubectl --user=robot auth can-i {question}"));
        answer.trim().to_owned()
    };
    assert_eq!(can("list pods -n shop"), "yes");
    assert_eq!(can("create pods -n shop"), "no");
    assert_eq!(can("list pods -n default"), "no");
    assert_eq!(can("get secrets -n shop"), "no");
    assert_eq!(can("get /version"), "yes");
    let rules = run("kubectl --user=robot auth can-i --list -n shop");
    assert!(rules.contains("deployments.apps"), "{rules}");
    let refused = fleet.fails("kubectl --user=robot create configmap x -n shop");
    assert!(
        refused.contains("configmaps is forbidden: User \"system:serviceaccount:shop:robot\" cannot create resource \"configmaps\" in API group \"\" in the namespace \"shop\""),
        "{refused}"
    );
    // A token of the hub is nobody's on a member.
    let foreign = fleet.fails("kubectl --context=cluster1 --user=robot get pods");
    assert!(foreign.contains("You must be logged in"), "{foreign}");
    run("kubectl delete serviceaccount robot -n shop");
    let gone = fleet.fails("kubectl --user=robot get pods -n shop");
    assert!(gone.contains("You must be logged in"), "{gone}");
}

#[test]
fn certificates_are_asked_for_approved_and_denied() {
    let fleet = Fleet::start();
    let run = |command: &str| fleet.shell(command);
    run("kubectl apply -f examples/access/ann.yaml");
    let shown = run("kubectl get csr ann");
    assert!(
        shown.contains("Pending") && shown.contains("bellwether-admin"),
        "{shown}"
    );
    run("kubectl certificate approve ann");
    run("kubectl wait csr/ann --for=jsonpath={.status.certificate} --timeout=10s");
    assert!(run("kubectl get csr ann").contains("Approved,Issued"));
    assert!(run("kubectl describe csr ann").contains("kube-apiserver-client"));
    run("kubectl delete csr ann");
    run("kubectl apply -f examples/access/ann.yaml");
    run("kubectl certificate deny ann");
    assert!(run("kubectl get csr ann").contains("Denied"));
}

#[test]
fn the_recipe_for_certificates_works_as_it_is_written() {
    let fleet = Fleet::start();
    let text = std::fs::read_to_string(crate::fleet::root().join("docs/security.md")).unwrap();
    let (_, rest) = text.split_once("### People: client certificates").unwrap();
    let (_, rest) = rest.split_once("```console\n").unwrap();
    let (recipe, _) = rest.split_once("```").unwrap();
    let output = std::process::Command::new("sh")
        .args(["-e", "-c", recipe])
        .current_dir(fleet.scratch())
        .env("KUBECONFIG", fleet.kubeconfig())
        .env("HOME", fleet.scratch())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (said, complained) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{said}{complained}");
    let whoami = said.lines().rev().take(3).collect::<String>();
    assert!(whoami.contains("ann") && whoami.contains("shop"), "{said}");
}

#[test]
fn editors_of_a_namespace_may_deliver_from_it() {
    let fleet = Fleet::start();
    fleet.shell("kubectl create rolebinding bob --clusterrole=edit --user=bob");
    fleet.shell("kubectl create rolebinding eve --clusterrole=view --user=eve");
    let can = |question: &str| {
        let (_, answer, _) = fleet.run(&format!("kubectl auth can-i {question}"));
        answer.trim().to_owned()
    };
    let kinds = [
        "placements.cluster.open-cluster-management.io",
        "manifestworkreplicasets.work.open-cluster-management.io",
        "manifestworks.work.open-cluster-management.io",
        "works.multicluster.x-k8s.io",
    ];
    for kind in kinds {
        assert_eq!(can(&format!("create {kind} --as=bob")), "yes", "{kind}");
        assert_eq!(can(&format!("list {kind} --as=bob")), "yes", "{kind}");
        assert_eq!(can(&format!("list {kind} --as=eve")), "yes", "{kind}");
        assert_eq!(can(&format!("create {kind} --as=eve")), "no", "{kind}");
    }
    let bindings = "managedclustersetbindings.cluster.open-cluster-management.io";
    assert_eq!(can(&format!("create {bindings} --as=bob")), "no");
}

#[test]
fn roles_are_made_and_tried_out() {
    let fleet = Fleet::start();
    let run = |command: &str| fleet.shell(command);
    run("kubectl create role reader --verb=get,list --resource=pods,configmaps");
    run("kubectl create rolebinding reader --role=reader --user=bob --serviceaccount=default:bot");
    run("kubectl create clusterrole watcher --verb=watch --resource=nodes");
    run("kubectl create clusterrole all --aggregation-rule=part-of=all");
    run("kubectl label clusterrole watcher part-of=all");
    run("kubectl create clusterrolebinding all --clusterrole=all --group=ops");
    let can = |question: &str| {
        let (_, answer, _) = fleet.run(&format!("kubectl auth can-i {question}"));
        answer.trim().to_owned()
    };
    assert_eq!(can("list pods --as=bob"), "yes");
    assert_eq!(
        can("list pods --as=system:serviceaccount:default:bot"),
        "yes"
    );
    assert_eq!(can("delete pods --as=bob"), "no");
    run("kubectl wait clusterrole/all --for=jsonpath={.rules[0].resources[0]}=nodes --timeout=10s");
    assert!(can("watch nodes --as=carol --as-group=ops").starts_with("yes"));
    let whoami = run("kubectl auth whoami --as=bob --as-group=devs --as-uid=7");
    assert!(
        whoami.contains("bob") && whoami.contains("devs"),
        "{whoami}"
    );
    let refused = fleet.fails(
        "kubectl create clusterrolebinding x --clusterrole=cluster-admin --user=bob --as=bob",
    );
    assert!(refused.contains("cannot create resource"), "{refused}");
    run("kubectl auth reconcile -f examples/access/team.yaml");
}

/// Everything below a directory.
fn files(directory: &Path, found: &mut Vec<std::path::PathBuf>) {
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, found);
        }
        found.push(path);
    }
}

#[cfg(unix)]
#[test]
fn nothing_that_is_kept_can_be_read_by_others_and_no_secret_is_logged() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let [log, audit] = ["log", "audit"].map(|name| directory.path().join(name));
    let mut process = Command::new(env!("CARGO_BIN_EXE_bellwether"))
        .args(["-vvv", "apiserver", "--listen", "127.0.0.1:0", "--data-dir"])
        .arg(&data)
        .arg("--audit-log")
        .arg(&audit)
        .stdout(Stdio::piped())
        .stderr(std::fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let ready = lines.any(|line| line.unwrap_or_default().contains("ready"));
    assert!(ready, "it ended before it was ready");
    let kubeconfig = data.join("kubeconfig");
    let kubectl = |arguments: &str| {
        let output = Command::new("kubectl")
            .args(arguments.split(' '))
            .env("KUBECONFIG", &kubeconfig)
            .env("HOME", directory.path())
            .current_dir(root())
            .output()
            .unwrap();
        assert!(output.status.success(), "{arguments}: {output:?}");
        String::from_utf8(output.stdout).unwrap()
    };
    kubectl("create secret generic s --from-literal=password=hunter2hunter2");
    kubectl("create serviceaccount bot");
    let token = kubectl("create token bot");
    kubectl(&format!(
        "config set-credentials bot --token={}",
        token.trim()
    ));
    kubectl("--user=bot auth whoami");
    let mut kept = vec![data.clone(), audit.clone()];
    files(&data, &mut kept);
    assert!(kept.len() > 5, "{kept:?}");
    for path in &kept {
        let mode = std::fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{} is {mode:o}", path.display());
    }
    process.kill().unwrap();
    process.wait().unwrap();
    let audited = std::fs::read_to_string(&audit).unwrap();
    assert!(audited.contains("\"serviceaccounts\""), "{audited}");
    let logged = std::fs::read_to_string(&log).unwrap();
    let signature = token.trim().rsplit('.').next().unwrap();
    for text in [&audited, &logged] {
        for private in [
            "hunter2hunter2",
            "aHVudGVyMmh1bnRlcjI",
            signature,
            "PRIVATE KEY",
        ] {
            assert!(!text.contains(private), "{private} was written");
        }
    }
}
