//! Backups of a running fleet, and data directories of earlier versions.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::Path;
use std::process::Command;

use crate::fleet::{self, Fleet};

const BELLWETHER: &str = env!("CARGO_BIN_EXE_bellwether");

fn config_map(fleet: &Fleet, name: &str, context: &str) {
    let manifest = format!(
        r#"{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {{"name": "{name}", "namespace": "default"}}}}"#
    );
    let path = fleet.scratch().join(format!("{name}.json"));
    std::fs::write(&path, manifest).unwrap();
    fleet.shell(&format!(
        "{BELLWETHER} apply --context {context} -f {}",
        path.display()
    ));
}

fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_running_fleet_is_saved_and_restored() {
    let fleet = Fleet::start_with(&["--clusters", "1"]);
    config_map(&fleet, "before", "cluster1");
    let elsewhere = tempfile::tempdir().unwrap();
    let file = elsewhere.path().join("saved.tar");
    let data = fleet.directory().display();
    let backup = format!(
        "{BELLWETHER} backup --data-dir {data} --output {}",
        file.display()
    );
    // What a client has left that was killed.
    std::fs::write(elsewhere.path().join("saved.tar.part"), "half").unwrap();
    let output = fleet.shell(&backup);
    assert!(output.starts_with("saved "), "{output}");
    config_map(&fleet, "after", "cluster1");
    assert_eq!(
        names(elsewhere.path()),
        ["saved.tar"],
        "nothing else is left"
    );
    let errors = fleet.fails(&backup);
    assert!(errors.contains("already exists"), "{errors}");

    let restored = elsewhere.path().join("restored");
    let restore = |file: &Path| {
        format!(
            "{BELLWETHER} restore {} --data-dir {}",
            file.display(),
            restored.display()
        )
    };
    // Whatever is wrong with a file, nothing is made of it.
    let whole = std::fs::read(&file).unwrap();
    let damaged = elsewhere.path().join("damaged.tar");
    let mut flipped = whole.clone();
    flipped[whole.len() / 2] ^= 1;
    let cut = whole[..whole.len() / 2].to_vec();
    for content in [flipped, cut, b"no archive".to_vec(), Vec::new()] {
        std::fs::write(&damaged, content).unwrap();
        let errors = fleet.fails(&restore(&damaged));
        assert!(errors.contains("cannot restore"), "{errors}");
        assert_eq!(names(elsewhere.path()), ["damaged.tar", "saved.tar"]);
    }
    let output = fleet.shell(&restore(&file));
    assert!(output.contains("has 2 clusters"), "{output}");
    let errors = fleet.fails(&restore(&file));
    assert!(errors.contains("is not empty"), "{errors}");

    let again = Fleet::start_in(&restored, &[]);
    again.shell(&format!(
        "{BELLWETHER} get configmap before --context cluster1"
    ));
    let errors = again.fails(&format!(
        "{BELLWETHER} get configmap after --context cluster1"
    ));
    assert!(errors.contains("not found"), "{errors}");
    // Certificates of the fleet are still good: it is the same authority.
    let (one, other) = (fleet.directory().join("ca.crt"), restored.join("ca.crt"));
    assert_eq!(std::fs::read(one).unwrap(), std::fs::read(other).unwrap());
}

#[test]
fn a_fleet_that_does_not_run_is_saved() {
    let mut fleet = Fleet::start_with(&["--clusters", "0"]);
    config_map(&fleet, "kept", "hub");
    fleet.kill();
    let file = fleet.scratch().join("saved.tar");
    let data = fleet.directory().display();
    fleet.shell(&format!(
        "{BELLWETHER} backup --data-dir {data} --output {}",
        file.display()
    ));
    let restored = tempfile::tempdir().unwrap();
    fleet.shell(&format!(
        "{BELLWETHER} restore {} --data-dir {}",
        file.display(),
        restored.path().display()
    ));
    let again = Fleet::start_in(restored.path(), &[]);
    again.shell(&format!("{BELLWETHER} get configmap kept --context hub"));
    let nothing = fleet.scratch().join("nothing");
    let errors = again.fails(&format!(
        "{BELLWETHER} backup --data-dir {} --output {}",
        nothing.display(),
        nothing.display()
    ));
    assert!(errors.contains("has no store"), "{errors}");
}

/// The directory was written by version 0.1.0, before backups: a member with a rollout that is done.
#[test]
fn a_data_directory_of_an_earlier_version_is_carried_on() {
    let data = tempfile::tempdir().unwrap();
    let archive = fleet::root().join("crates/bellwether/testdata/upgrade/0.1.0.tar.gz");
    let unpacked = Command::new("tar")
        .args(["-xzf"])
        .arg(archive)
        .arg("-C")
        .arg(data.path())
        .status();
    assert!(unpacked.unwrap().success());
    let fleet = Fleet::start_in(data.path(), &[]);
    fleet.shell(&format!(
        "{BELLWETHER} wait --for=condition=PlacementRolledOut --timeout=60s manifestworkreplicaset/shop"
    ));
    let uid = fleet.shell(&format!(
        "{BELLWETHER} get deployment shop --context cluster1 -o jsonpath={{.metadata.uid}}"
    ));
    assert_eq!(uid.trim(), UID, "the deployment was left alone");
}

/// The Deployment of the rollout in the directory.
const UID: &str = include_str!("../../testdata/upgrade/0.1.0.uid");
