//! The examples that work with git, on the binary and a real git server: pushes, templates, and crashes that repeat nothing.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::channel;

use bellwether_testkit::{GitServer, SshServer, skip};
use parking_lot::Mutex;

use crate::fleet::{self, Fleet, pause};

const BELLWETHER: &str = env!("CARGO_BIN_EXE_bellwether");
/// What the examples name as their repositories.
const APPS: &str = "file:///tmp/bellwether-case-4/apps.git";
const TEMPLATES: &str = "file:///tmp/bellwether-case-5/templates.git";

/// Tries until something is found, for a minute at most.
#[track_caller]
fn eventually<T>(mut look: impl FnMut() -> Result<T, String>) -> T {
    let mut last = String::new();
    for _ in 0..300 {
        match look() {
            Ok(found) => return found,
            Err(instead) => last = instead,
        }
        pause();
    }
    panic!("not seen: {last}");
}

fn server(directory: &Path) -> Option<GitServer> {
    let server = GitServer::start(directory);
    if server.is_none() {
        skip("git is not installed");
    }
    server
}

fn example(path: &str) -> String {
    std::fs::read_to_string(fleet::root().join("examples").join(path)).unwrap()
}

fn apply(fleet: &Fleet, text: &str) {
    let file = fleet.scratch().join("applied.yaml");
    std::fs::write(&file, text).unwrap();
    fleet.shell(&format!("{BELLWETHER} apply -f {}", file.display()));
}

/// Waits until the workflow of the present generation of an Application is done.
fn until_done(fleet: &Fleet, name: &str) {
    eventually(|| {
        let (_, text, problem) = fleet.run(&format!("{BELLWETHER} get application {name} -o json"));
        let app: serde_json::Value = serde_json::from_str(&text).map_err(|_| problem)?;
        let status = &app["status"];
        let is_done = status["observedGeneration"] == app["metadata"]["generation"]
            && status["workflow"]["status"] == "succeeded"
            && status["status"] == "running";
        if is_done {
            Ok(())
        } else {
            Err(status.to_string())
        }
    });
}

#[test]
fn case_4_pushes_each_change_once_whatever_happens() {
    let directory = tempfile::tempdir().unwrap();
    let Some(git) = server(directory.path()) else {
        return;
    };
    let git = Arc::new(git);
    git.create("apps.git");
    git.require("git", "s3cret");
    git.commit(
        "apps.git",
        "main",
        "by hand",
        &[("README.md", Some("hello"))],
    );
    let mut fleet = Fleet::start_with(&["--clusters", "0", "--workflow-http-allow", "loopback"]);
    apply(
        &fleet,
        "apiVersion: v1\nkind: Secret\nmetadata: {name: git-token}\nstringData: {token: s3cret}\n",
    );
    let application = example("case-4-gitops/application.yaml").replace(APPS, &git.url("apps.git"));
    let application = application.replace("credentials: ...", "credentials: git-token");
    apply(&fleet, &application);
    until_done(&fleet, "gitops-shop");
    let log = || git.git("apps.git", &["log", "--format=%an %s", "main"]);
    assert_eq!(
        log(),
        "Bellwether gitops-shop gitops-shop-v1\nSomebody by hand"
    );
    let files = git.git(
        "apps.git",
        &[
            "ls-tree",
            "-r",
            "--name-only",
            "main",
            "default/gitops-shop",
        ],
    );
    assert!(files.contains("default/gitops-shop/web.yaml"), "{files}");
    let web = git.git("apps.git", &["show", "main:default/gitops-shop/web.yaml"]);
    assert!(
        web.contains("kind: Deployment") && web.contains("nginx:1.27"),
        "{web}"
    );
    // Nothing was applied: that is left to others.
    assert!(!fleet.run(&format!("{BELLWETHER} get deployment web")).0);

    // The hub is killed between the push and its record.
    let (pushed, seen) = channel();
    let (killed, wait) = channel();
    let wait = Mutex::new(wait);
    git.before_push(move || {
        // Later pushes find nobody who waits for them.
        let is_first = pushed.send(()).is_ok();
        if is_first {
            let _ = wait.lock().recv();
        }
        true
    });
    let changed = application.replace("nginx:1.27", "nginx:1.28");
    apply(&fleet, &changed);
    seen.recv().unwrap();
    drop(seen);
    fleet.kill();
    killed.send(()).unwrap();
    eventually(|| {
        let log = log();
        if log.contains("gitops-shop-v2") {
            Ok(())
        } else {
            Err(log)
        }
    });
    fleet.restart();
    until_done(&fleet, "gitops-shop");
    assert_eq!(
        log(),
        "Bellwether gitops-shop gitops-shop-v2\nBellwether gitops-shop gitops-shop-v1\nSomebody by hand"
    );

    // Only the file of the component that changed is in the commit.
    let changed_files = git.git("apps.git", &["show", "--format=", "--name-only", "main"]);
    assert_eq!(changed_files, "default/gitops-shop/web.yaml");

    // A component that goes takes its files along, and the files of others stay.
    let (head, rest) = changed.split_once("  - name: jobs").unwrap();
    let workflow = &rest[rest.find("  workflow:").unwrap()..];
    apply(&fleet, &format!("{head}{workflow}"));
    until_done(&fleet, "gitops-shop");
    let files = git.git("apps.git", &["ls-tree", "-r", "--name-only", "main"]);
    assert!(
        files.contains("README.md") && !files.contains("jobs"),
        "{files}"
    );
    assert_eq!(log().lines().count(), 4);
    assert_eq!(git.git("apps.git", &["fsck", "--strict"]), "");
}

#[test]
fn case_4_pushes_over_ssh_to_servers_that_are_known() {
    let directory = tempfile::tempdir().unwrap();
    let Some(git) = server(directory.path()) else {
        return;
    };
    git.create("apps.git");
    let Some(ssh) = SshServer::start(directory.path()) else {
        skip("OpenSSH's server is not installed");
        return;
    };
    let fleet = Fleet::start_with(&["--clusters", "0", "--workflow-http-allow", "loopback"]);
    let secret = |host: &str| {
        serde_json::json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "git-ssh"},
            "stringData": {"ssh-privatekey": ssh.key("client"), "known_hosts": ssh.known_hosts(host)},
        })
        .to_string()
    };
    let application = example("case-4-gitops/application.yaml")
        .replace(APPS, &ssh.url(&git.path("apps.git")))
        .replace("credentials: ...", "credentials: git-ssh");
    // Another key than that of the server is in the list.
    apply(&fleet, &secret("stranger"));
    apply(&fleet, &application);
    eventually(|| {
        let shown = fleet.shell(&format!("{BELLWETHER} get application gitops-shop -o yaml"));
        if shown.contains("its key is not the one in known_hosts") {
            Ok(())
        } else {
            Err(shown)
        }
    });
    assert_eq!(git.git("apps.git", &["for-each-ref"]), "");
    apply(&fleet, &secret("host"));
    fleet.shell(&format!("{BELLWETHER} workflow restart gitops-shop"));
    until_done(&fleet, "gitops-shop");
    let log = git.git("apps.git", &["log", "--format=%an %s", "main"]);
    assert_eq!(log, "Bellwether gitops-shop gitops-shop-v1");
    // Nothing of the key is shown to anybody.
    let shown = fleet.shell(&format!("{BELLWETHER} get application gitops-shop -o yaml"));
    let line = ssh.key("client").lines().nth(1).unwrap().to_owned();
    assert!(!shown.contains(&line));
}

#[test]
fn case_5_takes_components_from_templates_whatever_happens() {
    let directory = tempfile::tempdir().unwrap();
    let Some(git) = server(directory.path()) else {
        return;
    };
    git.create("templates.git");
    let paths = [
        "chart/shop/Chart.yaml",
        "chart/shop/values.yaml",
        "chart/shop/templates/application.yaml",
        "base/shop/kustomization.yaml",
        "base/shop/application.yaml",
    ];
    let contents = paths.map(|path| (path, example(&format!("case-5-templates/templates/{path}"))));
    let files: Vec<(&str, Option<&str>)> = contents
        .iter()
        .map(|(path, content)| (*path, Some(content.as_str())))
        .collect();
    git.commit("templates.git", "main", "templates", &files);
    let mut fleet = Fleet::start_with(&["--clusters", "0", "--workflow-http-allow", "loopback"]);
    for file in ["helm.yaml", "kustomize.yaml"] {
        apply(
            &fleet,
            &example(&format!("case-5-templates/{file}"))
                .replace(TEMPLATES, &git.url("templates.git")),
        );
        fleet.kill_and_restart();
    }
    until_done(&fleet, "helm-shop");
    until_done(&fleet, "kustomize-shop");
    let web = fleet.shell(&format!("{BELLWETHER} get deployment web -o yaml"));
    assert!(
        web.contains("image: my-image") && web.contains("replicas: 3"),
        "{web}"
    );
    let instance = fleet.shell(&format!("{BELLWETHER} get deployment instance -o yaml"));
    assert!(instance.contains("image: prod-image"), "{instance}");
    let templates = fleet.shell(&format!(
        "{BELLWETHER} get helmtemplate helm-shop-step-0 -o yaml"
    ));
    assert!(templates.contains("message: no diff"), "{templates}");

    // A template that moves on is taken over when the workflow is carried out again with other parameters.
    let changed =
        example("case-5-templates/helm.yaml").replace(TEMPLATES, &git.url("templates.git"));
    apply(&fleet, &changed.replace("replicas: 3", "replicas: 4"));
    eventually(|| {
        let web = fleet.shell(&format!("{BELLWETHER} get deployment web -o yaml"));
        if web.contains("replicas: 4") {
            Ok(())
        } else {
            Err(web)
        }
    });
}
