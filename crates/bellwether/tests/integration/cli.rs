//! The command line as people meet it: help, bad flags, a port in use, an unwritable directory.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on fails"
)]
#![allow(clippy::needless_pass_by_value, reason = "bodies are written in place")]

use std::net::TcpListener;
use std::process::Command;

use bellwether_testkit::process;

fn bellwether(arguments: &[&str]) -> (bool, String, String) {
    process::run(Command::new(env!("CARGO_BIN_EXE_bellwether")).args(arguments))
}

#[test]
fn every_command_has_help_with_an_example() {
    for command in [
        "up",
        "apiserver",
        "crds",
        "cue",
        "helm template",
        "helm lint",
        "helm show",
        "kustomize build",
        "probe",
        "apply",
        "get",
        "delete",
        "wait",
        "describe",
        "hub",
        "agent",
        "install",
        "install hub",
        "install agent",
        "uninstall",
        "uninstall hub",
        "uninstall agent",
        "adopt",
        "backup",
        "restore",
        "token create",
        "token list",
        "token delete",
        "cluster",
        "cluster join",
        "cluster accept",
        "cluster list",
        "cluster label",
        "cluster taint",
        "cluster detach",
        "why",
        "plan",
        "status",
        "rollout",
        "rollout pause",
        "rollout resume",
        "rollout retry",
        "rollout abort",
        "examples",
        "examples list",
        "examples run",
        "examples show",
        "completion",
        "version",
    ] {
        let mut arguments: Vec<&str> = command.split(' ').collect();
        arguments.push("--help");
        let (succeeded, help, _) = bellwether(&arguments);
        assert!(
            succeeded && help.contains("bellwether "),
            "{command}: {help}"
        );
        assert!(help.contains("Example"), "{command}: {help}");
    }
}

#[test]
fn a_bad_flag_is_named() {
    let (succeeded, _, errors) = bellwether(&["up", "--clutsers", "3"]);
    assert!(!succeeded && errors.contains("--clutsers"), "{errors}");
    assert!(
        errors.contains("--clusters") && errors.lines().count() == 1,
        "{errors}"
    );
}

#[test]
fn a_port_in_use_is_one_clear_line() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let directory = tempfile::tempdir().unwrap();
    let data = directory.path().join("data");
    let (succeeded, _, errors) = bellwether(&[
        "up",
        "--listen",
        &address,
        "--data-dir",
        data.to_str().unwrap(),
    ]);
    assert!(!succeeded);
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(
        errors.contains(&address) && errors.contains("--listen"),
        "{errors}"
    );
    assert!(!data.exists(), "nothing may be touched");
}

#[test]
fn a_data_directory_that_is_a_file_is_one_clear_line() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    let (succeeded, _, errors) = bellwether(&["up", "--listen", "127.0.0.1:0", "--data-dir", path]);
    assert!(!succeeded);
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(errors.contains(path), "{errors}");
}

#[test]
fn crds_are_printed_as_yaml_that_kubectl_applies() {
    let (succeeded, text, errors) = bellwether(&["crds"]);
    assert!(succeeded, "{errors}");
    for kind in [
        "ManagedCluster",
        "Placement",
        "ManifestWork",
        "WorkManifestConfig",
    ] {
        assert!(
            text.contains(&format!("kind: {kind}\n")),
            "{kind} is missing"
        );
    }
    let (succeeded, json, _) = bellwether(&["crds", "-o", "json"]);
    assert!(succeeded && json.starts_with('{'), "{json}");
}

#[test]
fn a_server_that_is_not_there_is_one_clear_line() {
    // Taken and given back: nobody listens there now.
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("kubeconfig");
    let cluster = serde_json::json!({
        "clusters": [{"name": "c", "cluster": {"server": format!("http://{free}")}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": ""}}],
        "current-context": "c",
    });
    std::fs::write(&path, cluster.to_string()).unwrap();
    let refused = format!(
        "The connection to the server {free} was refused - did you specify the right host or port?"
    );
    let at = ["--kubeconfig", path.to_str().unwrap()];
    for (command, want) in [
        (&["get", "pods"][..], format!("{refused}\n")),
        (
            &["cluster", "list"],
            format!("error: {refused} (`bellwether up` starts one)\n"),
        ),
    ] {
        let (succeeded, _, errors) = bellwether(&[command, &at].concat());
        assert!(!succeeded);
        assert_eq!(errors, want);
    }
}

#[test]
fn joining_asks_which_cluster_is_the_member_and_for_a_good_name() {
    let join = |arguments: &[&str]| {
        let mut all = vec!["cluster", "join", "--hub-apiserver", "https://127.0.0.1:1"];
        all.extend(["--hub-token", "abcdef.0123456789abcdef"]);
        all.extend(arguments);
        let (succeeded, _, errors) = bellwether(&all);
        assert!(!succeeded, "{errors}");
        errors
    };
    let nobody = join(&["--cluster-name", "edge1"]);
    assert!(nobody.contains("--kubeconfig"), "{nobody}");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("member.yaml");
    let member = "{apiVersion: v1, kind: Config, current-context: c, \
        clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}], \
        contexts: [{name: c, context: {cluster: c, user: c}}], users: [{name: c, user: {}}]}";
    std::fs::write(&path, member).unwrap();
    let path = path.to_str().unwrap();
    let bad = join(&["--cluster-name", "Edge_1", "--kubeconfig", path]);
    assert!(bad.contains("cannot be the name of a cluster"), "{bad}");
    let hub = join(&["--cluster-name", "edge1", "--kubeconfig", path]);
    assert!(hub.contains("leads to the hub itself"), "{hub}");
}

#[test]
fn errors_have_one_voice_and_name_what_was_meant() {
    for (arguments, expected) in [
        (
            &["status", "mwsr/shop"][..],
            "error: unknown kind \"mwsr\"; did you mean mwrs? This command knows app, work, manifestwork, mwrs, policy, workflowrun.\n",
        ),
        (
            &["why", "cluster1", "shop"],
            "error: \"shop\" is not of the form KIND/NAME, such as mwrs/web\n",
        ),
        (
            &["rollout", "pause", "deployment/shop"],
            "error: unknown kind \"deployment\". This command knows mwrs, policy.\n",
        ),
        (
            &["hub", "--controllers", "placment"],
            "error: --controllers: there is no controller \"placment\"; did you mean placement? Controllers are",
        ),
        (&["statsu"], "error: unrecognized subcommand 'statsu'"),
    ] {
        let (succeeded, _, errors) = bellwether(arguments);
        assert!(!succeeded && errors.starts_with(expected), "{errors}");
    }
}

#[test]
fn the_version_is_for_people_and_for_programs() {
    let (succeeded, text, _) = bellwether(&["version"]);
    assert!(
        succeeded && text.contains(env!("CARGO_PKG_VERSION")),
        "{text}"
    );
    let (_, json, _) = bellwether(&["version", "-o", "json"]);
    let version: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(version["version"], env!("CARGO_PKG_VERSION"));
    let kubernetes = version["kubernetesVersion"].as_str().unwrap();
    assert!(kubernetes.starts_with("v1.35"), "{kubernetes}");
}

#[test]
fn shells_complete_commands() {
    for (shell, expected) in [
        ("bash", "complete -F _bellwether"),
        ("zsh", "#compdef bellwether"),
        ("fish", "complete -c bellwether"),
    ] {
        let (succeeded, script, _) = bellwether(&["completion", shell]);
        assert!(succeeded && script.contains(expected), "{shell}: {script}");
        assert!(script.contains("rollout"), "{shell}");
    }
    let (succeeded, _, errors) = bellwether(&["completion", "csh"]);
    assert!(!succeeded && errors.contains("bash, zsh, fish"), "{errors}");
}

#[test]
fn a_reader_that_has_read_enough_is_no_error() {
    for arguments in [&["crds"][..], &["completion", "bash"], &["version"]] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_bellwether"))
            .args(arguments)
            .stdout(std::process::Stdio::piped())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(141), "{arguments:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{arguments:?}");
    }
}

#[test]
fn nothing_that_goes_into_a_file_has_colours() {
    for arguments in [
        &["--help"][..],
        &["up", "--clutsers"],
        &["-vv", "status", "x"],
    ] {
        let (_, text, errors) = bellwether(arguments);
        assert!(
            !text.contains('\x1b') && !errors.contains('\x1b'),
            "{text}{errors}"
        );
    }
}

#[test]
fn a_plan_refuses_assumptions_about_unknown_clusters() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("fleet.yaml");
    let cluster = |name: &str| {
        format!(
            "apiVersion: cluster.open-cluster-management.io/v1\nkind: ManagedCluster\n\
             metadata: {{name: {name}}}\n---\n"
        )
    };
    let placement = "apiVersion: cluster.open-cluster-management.io/v1beta1\nkind: Placement\n\
                     metadata: {name: everywhere}\n";
    let text = format!("{}{}{placement}", cluster("cluster1"), cluster("cluster2"));
    std::fs::write(&path, text).unwrap();
    let strategy = "{type: Progressive, progressive: {maxConcurrency: 1}}";
    let plan = |more: &[&str]| {
        let path = path.to_str().unwrap();
        let fixed = ["plan", "--offline", "-f", path, "--strategy", strategy];
        bellwether(&[&fixed, more].concat())
    };
    for flag in ["--fail", "--stuck"] {
        let (succeeded, _, errors) = plan(&[flag, "clutser2"]);
        assert!(!succeeded);
        let expected = format!(
            "error: {flag}: the rollout does not reach a cluster clutser2; did you mean cluster2?\n"
        );
        assert_eq!(errors, expected);
    }
    let (succeeded, _, errors) = plan(&["--duration", "cluster9=1m"]);
    assert!(!succeeded && errors.contains("--duration"), "{errors}");
    let (succeeded, text, _) = plan(&["--stuck", "cluster1"]);
    let expected = "It stops after 0s and does not reach all clusters: cluster1 never finishes; \
                    a progressDeadline would end the wait\n";
    assert!(succeeded && text.contains(expected), "{text}");
    let (_, text, _) = plan(&[]);
    assert!(text.contains("It ends after 2m0s."), "{text}");
}
