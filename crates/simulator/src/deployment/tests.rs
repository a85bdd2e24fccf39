//! Tables of sizes, and the law that limits are kept.

use std::sync::Arc;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::rolling::{first_size, scale_down, scale_up};
use super::sets::{Limits, Set, scale_in_proportion};
use super::*;
use crate::plan::test::merge;
use crate::plan::{Action, Part};

const NOW: &str = "2026-01-01T00:00:00Z";

fn set(name: &str, size: i32, available: i32, most: i32) -> Set {
    let set = json!({
        "metadata": {"name": name, "uid": name, "creationTimestamp": NOW, "annotations": {
            "deployment.kubernetes.io/max-replicas": most.to_string(),
        }},
        "spec": {"replicas": size, "selector": {}},
        "status": {"replicas": size, "availableReplicas": available},
    });
    Set::new(&Arc::new(serde_json::from_value(set).unwrap()))
}

fn limits(replicas: i32, max_surge: i32, max_unavailable: i32) -> Limits {
    Limits {
        replicas,
        max_surge,
        max_unavailable,
        recreate: false,
    }
}

/// One step of a rollout: sizes and available pods before, sizes after.
#[track_caller]
fn check(limits: Limits, new: (i32, i32), old: &[(i32, i32)], expected: (i32, &[i32])) {
    let mut new = set("new", new.0, new.1, 0);
    let mut old: Vec<Set> = old
        .iter()
        .map(|(size, available)| set("old", *size, *available, 0))
        .collect();
    if !scale_up(&limits, &mut new, &old) {
        scale_down(&limits, &new, &mut old);
    }
    let sizes: Vec<i32> = old.iter().map(|set| set.size).collect();
    assert_eq!((new.size, sizes.as_slice()), expected);
}

#[test]
fn a_rollout_goes_step_by_step() {
    let one_more = limits(3, 1, 0);
    check(one_more, (0, 0), &[(3, 3)], (1, &[3]));
    check(one_more, (1, 0), &[(3, 3)], (1, &[3]));
    check(one_more, (1, 1), &[(3, 3)], (1, &[2]));
    check(one_more, (1, 1), &[(2, 2)], (2, &[2]));
    check(one_more, (3, 3), &[(1, 1)], (3, &[0]));
    let one_less = limits(3, 0, 1);
    check(one_less, (0, 0), &[(3, 3)], (0, &[2]));
    check(one_less, (0, 0), &[(2, 2)], (1, &[2]));
    // What is unhealthy goes first, oldest set first.
    check(limits(10, 0, 2), (2, 0), &[(4, 1), (4, 4)], (2, &[4, 4]));
    check(limits(10, 3, 2), (5, 5), &[(4, 0), (4, 4)], (5, &[0, 3]));
    // Somebody wants fewer.
    check(limits(2, 1, 0), (5, 5), &[], (2, &[]));
}

#[test]
fn the_first_size_leaves_room_for_the_old() {
    let cases = [
        (limits(3, 1, 0), vec![3], 1),
        (limits(3, 1, 0), vec![], 3),
        (limits(10, 3, 2), vec![10, 3], 0),
    ];
    for (limits, old, expected) in cases {
        let old: Vec<Set> = old
            .into_iter()
            .map(|size| set("old", size, size, 0))
            .collect();
        assert_eq!(first_size(&limits, &old), expected);
    }
}

#[test]
fn scaling_in_the_middle_of_a_rollout_keeps_proportions() {
    let check = |wanted: i32, new: (i32, i32), old: (i32, i32), expected: (i32, i32)| {
        let limits = limits(wanted, wanted * 30 / 100, 0);
        let mut new = set("new", new.0, 0, new.1);
        let mut old = [set("old", old.0, 0, old.1)];
        scale_in_proportion(
            &limits,
            Some(&mut new),
            &mut old,
            &DeploymentStatus::default(),
        );
        assert_eq!((new.size, old[0].size), expected);
    };
    // Ten replicas and three more, now twenty and six more.
    check(20, (5, 13), (8, 13), (10, 16));
    check(5, (5, 13), (8, 13), (2, 4));
    check(0, (5, 13), (8, 13), (0, 0));
    // Only one set has pods: it gets them all.
    check(7, (0, 13), (8, 13), (0, 7));
}

fn deployment(status: Value) -> Deployment {
    serde_json::from_value(json!({
        "metadata": {"name": "web", "namespace": "default", "uid": "d", "generation": 1},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "progressDeadlineSeconds": 600,
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
        },
        "status": status,
    }))
    .unwrap()
}

fn view<'a>(deployment: &'a Deployment, sets: &'a [Arc<ReplicaSet>]) -> View<'a> {
    View {
        deployment,
        sets,
        orphans: &[],
        name_is_taken: false,
        sets_with_pods: &[],
        trouble: None,
        now: NOW.parse().unwrap(),
    }
}

#[test]
fn the_first_thing_is_a_replica_set() {
    let web = deployment(json!({}));
    let plan = decide(&view(&web, &[]));
    let [
        Action::Create(create),
        Action::Patch {
            part: Part::Status,
            patch,
            ..
        },
    ] = plan.actions.as_slice()
    else {
        panic!("{plan:#?}");
    };
    assert_eq!(create.object["spec"]["replicas"], 2);
    assert_eq!(
        create.object["metadata"]["annotations"]["deployment.kubernetes.io/revision"],
        "1"
    );
    let hash = &create.object["metadata"]["labels"]["pod-template-hash"];
    assert_eq!(
        &create.object["spec"]["selector"]["matchLabels"]["pod-template-hash"],
        hash
    );
    assert_eq!(
        create.object["metadata"]["name"],
        format!("web-{}", hash.as_str().unwrap())
    );
    assert_eq!(
        patch["metadata"]["annotations"]["deployment.kubernetes.io/revision"],
        "1"
    );
    let reasons: Vec<_> = patch["status"]["conditions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|found| found["reason"].as_str().unwrap())
        .collect();
    assert_eq!(
        reasons,
        ["NewReplicaSetCreated", "MinimumReplicasUnavailable"]
    );
    assert_eq!(
        plan.wake,
        Some("2026-01-01T00:10:01Z".parse().unwrap()),
        "to see whether it is stuck"
    );
}

#[test]
fn a_name_that_is_taken_is_avoided_the_next_time() {
    let web = deployment(json!({}));
    let first = next_set_name(&web);
    let plan = decide(&View {
        name_is_taken: true,
        ..view(&web, &[])
    });
    let [Action::Patch { patch, .. }] = plan.actions.as_slice() else {
        panic!("{plan:#?}");
    };
    assert_eq!(patch["status"]["collisionCount"], 1);
    assert_ne!(
        next_set_name(&deployment(json!({"collisionCount": 1}))),
        first
    );
}

#[test]
fn why_no_replica_set_can_be_created_is_said() {
    let web = deployment(json!({}));
    let plan = decide(&View {
        trouble: Some("quota exceeded"),
        ..view(&web, &[])
    });
    let text = format!("{plan:?}");
    assert!(
        text.contains("ReplicaSetCreateError") && text.contains("quota exceeded"),
        "{text}"
    );
}

#[test]
fn a_deployment_that_is_as_it_should_be_is_left_alone() {
    let web = deployment(json!({}));
    let plan = decide(&view(&web, &[]));
    let Action::Create(create) = &plan.actions[0] else {
        panic!("{plan:#?}")
    };
    let mut set = create.object.clone();
    set["metadata"]["uid"] = json!("r");
    set["metadata"]["creationTimestamp"] = json!(NOW);
    set["metadata"]["generation"] = json!(1);
    set["status"] = json!({"replicas": 2, "readyReplicas": 2, "availableReplicas": 2, "observedGeneration": 1, "terminatingReplicas": 0});
    let sets = [Arc::new(serde_json::from_value::<ReplicaSet>(set).unwrap())];
    let mut web = web;
    for round in 0..4 {
        let plan = decide(&view(&web, &sets));
        let Some(action) = plan.actions.into_iter().next() else {
            assert!(round > 0);
            return;
        };
        let Action::Patch {
            part: Part::Status,
            patch,
            ..
        } = action
        else {
            panic!("{action:?}")
        };
        let mut object = serde_json::to_value(&web).unwrap();
        merge(&mut object, &patch);
        web = serde_json::from_value(object).unwrap();
    }
    panic!("it never comes to rest: {web:#?}");
}

proptest! {
    #[test]
    fn limits_are_kept_whatever_happens(
        replicas in 1..20_i32, surge in 0..5_i32, unavailable in 0..5_i32,
        sizes in prop::collection::vec((0..10_i32, 0..10_i32), 1..4),
    ) {
        prop_assume!(surge > 0 || unavailable > 0);
        let limits = limits(replicas, surge, unavailable.min(replicas));
        let mut sets: Vec<Set> = sets_of(&sizes);
        let mut new = sets.remove(0);
        let before: i32 = new.size + sets.iter().map(|set| set.size).sum::<i32>();
        let available: i32 = new.available + sets.iter().map(|set| set.available).sum::<i32>();
        if scale_up(&limits, &mut new, &sets) {
            let after = new.size + sets.iter().map(|set| set.size).sum::<i32>();
            prop_assert!(after <= limits.most().max(before));
        } else {
            let old: Vec<i32> = sets.iter().map(|set| set.size).collect();
            scale_down(&limits, &new, &mut sets);
            let gone: i32 = sets.iter().zip(&old).map(|(set, old)| {
                // Pods that are not available go first.
                let unhealthy = old - set.available.min(*old);
                (old - set.size - unhealthy).max(0)
            }).sum();
            prop_assert!(available - gone >= limits.fewest().min(available));
        }
    }
}

fn sets_of(sizes: &[(i32, i32)]) -> Vec<Set> {
    let sets = sizes.iter().enumerate();
    sets.map(|(number, (size, available))| {
        set(&format!("s{number}"), *size, *available.min(size), 0)
    })
    .collect()
}
