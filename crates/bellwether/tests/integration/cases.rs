//! Every example that can be played keeps what it promises, also when everything is killed meanwhile.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::process::Command;

use bellwether_testkit::process;

use crate::fleet;

fn examples(arguments: &[&str]) -> (bool, String, String) {
    let mut bellwether = Command::new(env!("CARGO_BIN_EXE_bellwether"));
    process::run(bellwether.arg("examples").args(arguments))
}

#[track_caller]
fn play(arguments: &[&str]) {
    let arguments = [&["run"], arguments].concat();
    let (succeeded, output, errors) = examples(&arguments);
    assert!(succeeded, "{output}\n{errors}");
    assert!(
        output.ends_with("Everything that was promised was seen.\n"),
        "{output}"
    );
}

macro_rules! played {
    ($($test:ident: $name:literal,)*) => {
        /// The examples that are played here.
        const PLAYED: &[&str] = &[$($name),*];

        $(
            #[test]
            fn $test() {
                play(&[$name]);
            }
        )*
    };
}

played! {
    policies_become_objects_before_the_workflow: "application-policies",
    a_rollout_stops_at_the_canary: "canary",
    components_are_distributed_over_clusters: "case-1-multi-cluster",
    a_new_version_takes_over_when_it_is_approved: "case-2-blue-green",
    an_application_waits_for_its_database: "case-3-data-passing",
    each_change_is_one_commit: "case-4-gitops",
    components_come_from_templates: "case-5-templates",
    the_answer_of_a_webhook_decides: "case-6-conditions",
    steps_of_a_group_are_a_graph: "case-7-step-group",
}

#[test]
fn every_example_is_played() {
    let (succeeded, output, _) = examples(&["list", "-o", "name"]);
    assert!(succeeded);
    let names: Vec<&str> = output.lines().collect();
    assert_eq!(names, PLAYED);
}

#[test]
fn kills_of_everything_at_random_moments_change_nothing() {
    for (name, seed) in [("case-1-multi-cluster", "1"), ("case-4-gitops", "2")] {
        play(&[name, "--kills", "4", "--seed", seed]);
    }
}

macro_rules! killed_apart {
    ($($test:ident: $name:literal, $seed:literal;)*) => {
        $(
            #[test]
            fn $test() {
                play(&[$name, "--apart", "--kills", "5", "--seed", $seed]);
            }
        )*
    };
}

// The hub and each agent are processes of their own, of which one at a time is killed.
killed_apart! {
    kills_of_hub_and_agents_change_no_distribution: "case-1-multi-cluster", "11";
    kills_of_the_hub_change_no_rollout: "case-2-blue-green", "12";
    kills_of_the_hub_change_no_passed_data: "case-3-data-passing", "13";
    kills_of_hub_and_agents_change_no_commit: "case-4-gitops", "14";
    kills_of_the_hub_change_no_template: "case-5-templates", "15";
    kills_of_the_hub_repeat_no_request: "case-6-conditions", "16";
    kills_of_the_hub_change_no_group: "case-7-step-group", "17";
}

/// A member that leaves the hub, which the example does by labels only: it is played with agents that may not end.
const DETACHED: &str = r#"
title: A cluster is detached, and its replicas go to the others
about: Two clusters are in the east. One of them leaves the hub.
fleet:
  clusters: 3
  labels: {cluster1: {region: east}, cluster2: {region: east}, cluster3: {region: west}}
steps:
- say: The application is applied.
  apply: [app.yaml]
  expect:
  - {object: deployments/storefront, cluster: cluster1, that: object.status.readyReplicas == 4}
  - {object: deployments/storefront, cluster: cluster2, that: object.status.readyReplicas == 3}
- say: A cluster is detached.
  run: [cluster detach cluster2]
  expect:
  - {object: managedclusters/cluster2, gone: true}
  - {object: deployments/storefront, cluster: cluster1, that: object.status.readyReplicas == 7}
  - {object: deployments/storefront, cluster: cluster2, gone: true}
  - {object: deployments/storefront, cluster: cluster3, that: object.status.readyReplicas == 2}
  - object: applications/regional-shop
    that: >-
      object.status.status == "running" && object.status.services.map(s, s.cluster) == ["cluster1", "cluster3"] &&
      object.status.services.all(s, s.healthy)
"#;

#[test]
fn replicas_of_a_cluster_that_is_detached_go_to_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let app = fleet::root().join("examples/case-1-multi-cluster/app.yaml");
    std::fs::copy(app, folder.path().join("app.yaml")).unwrap();
    std::fs::write(folder.path().join("script.yaml"), DETACHED).unwrap();
    play(&[folder.path().to_str().unwrap()]);
}

#[test]
fn an_example_that_needs_one_process_is_not_played_apart() {
    let (succeeded, _, errors) = examples(&["run", "canary", "--apart"]);
    assert!(!succeeded);
    assert_eq!(
        errors,
        "error: this example needs all its clusters in one process\n"
    );
}

#[test]
fn an_example_that_does_not_exist_is_named() {
    let (succeeded, _, errors) = examples(&["run", "case-1-multicluster"]);
    assert!(!succeeded);
    assert_eq!(
        errors,
        "error: there is no example \"case-1-multicluster\"; did you mean case-1-multi-cluster?\n"
    );
}
