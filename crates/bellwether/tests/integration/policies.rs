//! Policies on the command line, with the examples of the documentation.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::process::{Command, Stdio};

fn bellwether(arguments: &str) -> (Option<i32>, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_bellwether"))
        .args(arguments.split(' '))
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code(),
        text(&output.stdout),
        text(&output.stderr),
    )
}

#[test]
fn a_dry_run_says_what_is_wrong_and_exits_with_2() {
    let (code, output, errors) = bellwether(
        "policy dryrun --no-colors --policy examples/policy/dryrun/policy.yaml examples/policy/dryrun/cluster.yaml",
    );
    assert_eq!(code, Some(2), "{errors}");
    assert_eq!(errors, "Error: policy is NonCompliant\n");
    let message = "NonCompliant; violation - resourcequotas [team] not found in namespace green; resourcequotas [team] found but not as specified in namespace blue; notification - secrets [old-registry] missing as expected in namespaces: blue, green\n";
    assert!(output.contains("+    limits.cpu: \"4\"\n"), "{output}");
    assert!(
        output.ends_with(&format!("# Compliance messages:\n{message}")),
        "{output}"
    );
}

#[test]
fn a_policy_that_cannot_be_read_is_one_line_and_exits_with_1() {
    let (code, output, errors) =
        bellwether("policy dryrun --policy examples/policy/dryrun/cluster.yaml");
    assert_eq!((code, output.as_str()), (Some(1), ""));
    assert!(
        errors.starts_with("Error: unable to read input policy: "),
        "{errors}"
    );
}
