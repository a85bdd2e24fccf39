//! Charts and overlays on the command line, with the examples of the documentation.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use bellwether_testkit::process;

use crate::fleet;

/// Runs a command in the root of the repository: whether it succeeded, its output, its errors.
pub(crate) fn bellwether(arguments: &str) -> (bool, String, String) {
    process::run(fleet::bellwether().args(arguments.split(' ')))
}

#[test]
fn an_overlay_is_built_from_its_directory() {
    let (succeeded, output, errors) =
        bellwether("kustomize build examples/kustomize/overlays/prod");
    assert!(succeeded, "{errors}");
    let expected = include_str!("../../../../examples/kustomize/overlays/prod.expected.yaml");
    assert_eq!(output, expected);
}

#[test]
fn lists_of_an_application_merge_by_name() {
    let command = "kustomize build --merge-applications examples/kustomize/application";
    let (succeeded, output, errors) = bellwether(command);
    assert!(succeeded, "{errors}");
    assert!(
        output.contains("shop:1.4") && output.contains("worker:1.0"),
        "{output}"
    );
}

#[test]
fn a_broken_kustomization_is_one_line_with_file_and_line() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(
        directory.path().join("kustomization.yaml"),
        "resources: []\nnamspace: x\n",
    )
    .unwrap();
    let command = format!("kustomize build {}", directory.path().display());
    let (succeeded, _, errors) = bellwether(&command);
    assert!(!succeeded && errors.lines().count() == 1, "{errors}");
    assert!(
        errors.contains("kustomization.yaml:2: unknown field \"namspace\""),
        "{errors}"
    );
}

#[test]
fn a_chart_is_rendered_checked_and_shown() {
    let (succeeded, output, errors) =
        bellwether("helm template examples/helm/shop --set replicas=3");
    assert!(succeeded, "{errors}");
    assert_eq!(
        output,
        include_str!("../../../../examples/helm/shop.expected.yaml")
    );
    let (succeeded, output, _) = bellwether("helm lint examples/helm/shop --strict");
    assert!(
        succeeded && output.ends_with("0 chart(s) failed\n"),
        "{output}"
    );
    let (succeeded, output, errors) = bellwether("helm lint examples/helm/shop --set image=x");
    assert!(
        !succeeded && output.contains("at '/image': got string, want object"),
        "{output}{errors}"
    );
    let (succeeded, output, _) = bellwether("helm show values examples/helm/shop");
    assert!(succeeded && output.starts_with("replicas: 2\n"), "{output}");
}

#[test]
fn a_release_is_named_by_a_template_and_written_to_files() {
    let directory = tempfile::tempdir().unwrap();
    let place = directory.path().display();
    let command = format!(
        "helm template examples/helm/shop --name-template {{{{`night`}}}} --output-dir {place} --release-name"
    );
    let (succeeded, output, errors) = bellwether(&command);
    assert!(succeeded, "{errors}");
    let written = format!("wrote {place}/night/shop/templates/");
    assert!(output.starts_with(&written), "{output}");
    let first = output
        .lines()
        .next()
        .unwrap()
        .strip_prefix("wrote ")
        .unwrap();
    let text = std::fs::read_to_string(first).unwrap();
    assert!(text.starts_with("---\n# Source: shop/templates/"), "{text}");
    let (succeeded, _, errors) = bellwether("helm template shop examples/helm/shop -g");
    assert!(
        !succeeded && errors.contains("error: a name is given"),
        "{errors}"
    );
}

#[test]
fn the_chart_of_a_hub_says_what_is_applied_once() {
    for (set, expected) in [
        ("", "off"),
        (" --set applyOnceOnly=on", "on"),
        (" --set applyOnceOnly=force", "force"),
    ] {
        let command = format!("helm template kubevela deploy/chart -n vela-system{set}");
        let (succeeded, output, errors) = bellwether(&command);
        assert!(succeeded, "{errors}");
        let argument = format!("- --apply-once-only={expected}\n");
        assert!(output.contains(&argument), "{output}");
    }
    let (succeeded, _, errors) =
        bellwether("helm template kubevela deploy/chart --set applyOnceOnly=maybe");
    assert!(!succeeded && errors.contains("applyOnceOnly"), "{errors}");
}
