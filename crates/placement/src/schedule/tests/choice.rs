//! Who is chosen, and what the conditions and explanations say.

use serde_json::{Value, json};

use super::world::{World, set};
use crate::schedule::Verdict;

/// Names of the chosen clusters, without their scores.
fn check(world: &World, expected: &str) {
    let chosen = world.chosen();
    let names: Vec<&str> = chosen
        .split_whitespace()
        .filter_map(|decision| decision.split(':').next())
        .collect();
    assert_eq!(names.join(" "), expected);
}

fn exact(coordinates: &Value) -> Value {
    json!({"mode": "Exact", "configurations": coordinates})
}

#[test]
fn conditions_say_what_upstream_says() {
    let check = |world: &World, status: bool, reason: &str, message: &str| {
        let outcome = world.schedule();
        let satisfied = &outcome.satisfied;
        assert_eq!((satisfied.status, satisfied.reason), (status, reason));
        assert_eq!(satisfied.message, message);
        assert_eq!(
            outcome.misconfigured.message,
            "Placement configurations check pass"
        );
        assert_eq!(outcome.misconfigured.reason, "Succeedconfigured");
    };
    let mut world = World::new(&json!({"clusterSets": ["eu", "asia"]}), &["oslo"]);
    world.bindings.clear();
    world.bindings.insert("gone".to_owned());
    let message = "No valid ManagedClusterSetBindings found in placement namespace";
    check(&world, false, "NoManagedClusterSetBindings", message);
    world.bindings.insert("global".to_owned());
    let message = "None of ManagedClusterSets [asia,eu] is bound to placement namespace";
    check(&world, false, "NoIntersection", message);
    world.bindings.insert("eu".to_owned());
    let message = "All ManagedClusterSets [eu] have no member ManagedCluster";
    check(&world, false, "AllManagedClusterSetsEmpty", message);

    let spec = json!({"predicates": [{"requiredClusterSelector":
        {"labelSelector": {"matchLabels": {"tier": "gold"}}}}], "numberOfClusters": 3});
    let message = "No ManagedCluster matches any of the cluster predicate";
    check(
        &World::new(&spec, &["oslo"]),
        false,
        "NoManagedClusterMatched",
        message,
    );
    let message = "2 cluster decisions unscheduled";
    let world = World::new(&spec, &["oslo tier=gold"]);
    check(&world, false, "NotAllDecisionsScheduled", message);
    let world = World::new(&json!({}), &["oslo"]);
    check(
        &world,
        true,
        "AllDecisionsScheduled",
        "All cluster decisions scheduled",
    );
}

#[test]
fn sets_hold_clusters_by_their_own_label_or_by_a_selector() {
    let mut world = World::new(
        &json!({"clusterSets": ["eu"]}),
        &[
            "rome cluster.open-cluster-management.io/clusterset=eu",
            "lima",
        ],
    );
    world.bindings.insert("eu".to_owned());
    check(&world, "rome");
    assert_eq!(world.verdict("lima"), Verdict::NotInSets);
    let nothing = json!({"selectorType": "LabelSelector"});
    world.sets = vec![set("eu", &nothing)];
    assert_eq!(
        world.schedule().satisfied.reason,
        "AllManagedClusterSetsEmpty"
    );
}

#[test]
fn one_predicate_must_match_in_labels_claims_and_expressions() {
    let spec = json!({"predicates": [
        {"requiredClusterSelector": {"labelSelector": {"matchLabels": {"env": "dev"}}}},
        {"requiredClusterSelector": {
            "claimSelector": {"matchExpressions": [
                {"key": "region", "operator": "In", "values": ["north"]}]},
            "celSelector": {"celExpressions": ["managedCluster.metadata.labels.size == 'big'"]},
        }},
    ]});
    let mut world = World::new(&spec, &["a env=dev", "b env=prod"]);
    for (name, region, size) in [
        ("c", "north", "big"),
        ("d", "south", "big"),
        ("e", "north", "s"),
    ] {
        world.add(json!({
            "metadata": {"name": name, "labels": {"size": size}},
            "status": {"clusterClaims": [{"name": "region", "value": region}]},
        }));
    }
    check(&world, "a c");
    assert_eq!(
        world.why("b"),
        "It does not match: label env=dev; or claim region in (north)."
    );
    assert_eq!(
        world.why("e"),
        "It does not match: label env=dev; or expression \
         managedCluster.metadata.labels.size == 'big'."
    );
    assert_eq!(world.why("x"), "There is no such cluster.");
}

#[test]
fn expressions_know_scores_and_read_json() {
    let cel = |expression: &str| {
        json!({"predicates": [{"requiredClusterSelector":
            {"celSelector": {"celExpressions": [expression]}}}]})
    };
    let mut world = World::new(
        &cel("managedCluster.scores('load').exists(s, s.name == 'free' && s.value > 5)"),
        &["a", "b", "c"],
    );
    for (cluster, value) in [("a", 3), ("b", 7)] {
        world
            .scores
            .insert_json(&json!({"metadata": {"name": "load", "namespace": cluster},
            "status": {"scores": [{"name": "free", "value": value}]}}))
            .unwrap();
    }
    check(&world, "b");
    assert!(
        world
            .why("c")
            .contains("which fails: there is no AddOnPlacementScore \"load\"")
    );
    let spec = cel("parseJSON(managedCluster.metadata.labels.j).x[1] == 2");
    let mut world = World::new(&spec, &["b"]);
    world.add(json!({"metadata": {"name": "a", "labels": {"j": "{\"x\": [1, 2]}"}}}));
    check(&world, "a");
}

#[test]
fn expressions_that_cost_too_much_keep_what_was_decided_and_name_the_budget() {
    // Each of a thousand rounds reads a text of 2,000 characters.
    let ten = "[1,2,3,4,5,6,7,8,9,10]";
    let parse = "parseJSON(managedCluster.metadata.labels.j).x == 2";
    let expression = format!("{ten}.all(a, {ten}.all(b, {ten}.all(c, {parse})))");
    let spec = json!({"predicates": [{"requiredClusterSelector":
        {"celSelector": {"celExpressions": [expression]}}}]});
    let text = format!("{{\"x\": 2, \"y\": \"{}\"}}", "z".repeat(2000));
    let check = |decided: &[&str]| {
        let mut world = World::new(&spec, &[]).decided(decided);
        world.add(json!({"metadata": {"name": "a", "labels": {"j": text}}}));
        let outcome = world.schedule();
        assert!(outcome.is_over_budget);
        assert_eq!(outcome.selected, decided.len());
        for condition in [&outcome.satisfied, &outcome.misconfigured] {
            assert!(
                condition
                    .message
                    .contains("which exceeds the CEL evaluation budget"),
                "{}",
                condition.message
            );
        }
        assert_ne!(outcome.satisfied.reason, "NoManagedClusterMatched");
        assert!(world.why("a").contains("exceeds the CEL evaluation budget"));
        // Whether a change matters is not found out at any price.
        assert!(world.affects(None, world.clusters.first()));
    };
    check(&[]);
    check(&["a"]);
}

#[test]
fn all_clusters_share_one_budget() {
    let spec = json!({"predicates": [{"requiredClusterSelector": {"celSelector": {"celExpressions":
        ["parseJSON(managedCluster.metadata.labels.j).x == 2"]}}}]});
    let text = format!("{{\"x\": 2, \"y\": \"{}\"}}", "z".repeat(300_000));
    let mut world = World::new(&spec, &[]);
    for index in 0..10 {
        let name = format!("c{index}");
        world.add(json!({"metadata": {"name": name, "labels": {"j": text}}}));
        assert_eq!(world.schedule().is_over_budget, index >= 6, "{index}");
    }
}

#[test]
fn a_typo_keeps_what_was_decided_and_says_so() {
    let spec = json!({"predicates": [{"requiredClusterSelector":
        {"celSelector": {"celExpressions": ["managedCluster.metadata.name == "]}}}]});
    let world = World::new(&spec, &["a", "b"]).decided(&["a"]);
    let outcome = world.schedule();
    assert_eq!(outcome.groups, None);
    assert_eq!(outcome.selected, 1);
    assert!(outcome.misconfigured.status);
    assert_eq!(outcome.misconfigured.reason, "Misconfigured");
    let message = outcome.misconfigured.message;
    assert!(
        message.starts_with("Predicate:compilation failed: ERROR"),
        "{message}"
    );
    assert!(!outcome.satisfied.status);
    assert!(
        outcome
            .satisfied
            .message
            .ends_with("the 1 cluster decisions made before are kept")
    );
    assert!(
        world
            .why("a")
            .ends_with("; it was chosen before and is kept.")
    );
    let fresh = World::new(&spec, &["a"]).schedule();
    assert_eq!(fresh.groups.unwrap()[0].decisions, []);
    assert_eq!(fresh.satisfied.reason, "NoManagedClusterMatched");
}

#[test]
fn wrong_settings_are_named() {
    let check = |spec: Value, expected: &str| {
        let outcome = World::new(&spec, &["a"]).schedule();
        assert_eq!(outcome.misconfigured.message, expected);
    };
    check(
        json!({"tolerations": [{"operator": "Equal"}]}),
        "TaintToleration:If the key is empty, operator must be Exists.",
    );
    check(
        json!({"tolerations": [{"key": "a", "operator": "Exists", "value": "b"}]}),
        "TaintToleration:If the operator is Exists, the value should be empty.",
    );
    check(
        json!({"prioritizerPolicy": {"mode": "Best"}}),
        "incorrect prioritizer policy mode: Best",
    );
    check(
        json!({"prioritizerPolicy": exact(&json!([{}]))}),
        "missing field `scoreCoordinate`",
    );
    check(
        json!({"prioritizerPolicy": exact(&json!([{"scoreCoordinate": {"builtIn": "Spread"}}]))}),
        "incorrect builtin prioritizer: Spread",
    );
    check(
        json!({"prioritizerPolicy": exact(&json!([{"scoreCoordinate": {"type": "AddOn"}}]))}),
        "addOn should not be empty",
    );
}

#[test]
fn taints_keep_placements_away_unless_tolerated_in_time() {
    let tainted = |spec: Value, effect: &str| {
        let mut world = World::new(&spec, &["a"]);
        world.add(json!({"metadata": {"name": "b"}, "spec": {"taints": [
            {"key": "gpu", "value": "x", "effect": effect, "timeAdded": "2026-01-01T00:00:00Z"}]}}));
        world
    };
    let world = tainted(json!({}), "NoSelect");
    check(&world, "a");
    assert_eq!(world.why("b"), "Its taint gpu=x:NoSelect is not tolerated.");
    check(&tainted(json!({}), "PreferNoSelect"), "a b");
    check(&tainted(json!({}), "NoSelectIfNew"), "a");
    check(&tainted(json!({}), "NoSelectIfNew").decided(&["b"]), "a b");
    let with = |toleration: Value| tainted(json!({"tolerations": [toleration]}), "NoSelect");
    check(&with(json!({"key": "gpu", "value": "x"})), "a b");
    check(&with(json!({"key": "gpu", "value": "y"})), "a");
    check(
        &with(json!({"key": "gpu", "operator": "Exists", "effect": "NoSelectIfNew"})),
        "a",
    );
    check(&with(json!({"operator": "Exists"})), "a b");
    // A minute has passed since the taint appeared.
    check(
        &with(json!({"operator": "Exists", "tolerationSeconds": 60})),
        "a",
    );
    let world = with(json!({"operator": "Exists", "tolerationSeconds": 61}));
    check(&world, "a b");
    assert_eq!(world.schedule().recheck_at, None);
    let recheck_at = world.decided(&["b"]).schedule().recheck_at.unwrap();
    assert_eq!(recheck_at.to_string(), "2026-01-01T00:01:01Z");
}

#[test]
fn scores_are_those_of_upstream() {
    let of = |built_in: &str| {
        exact(&json!([{"scoreCoordinate": {"type": "BuiltIn", "builtIn": built_in}}]))
    };
    let spec = |built_in: &str| json!({"prioritizerPolicy": of(built_in)});
    let mut world = World::new(&spec("Balance"), &["a", "b", "c"]);
    for cluster in ["a", "a", "a", "b"] {
        world.elsewhere.add(&cluster.into());
    }
    assert_eq!(world.chosen(), "a:-100 b:32 c:100");
    let world = World::new(&spec("Steady"), &["a", "b"]).decided(&["b"]);
    assert_eq!(world.chosen(), "a:0 b:100");
    let mut world = World::new(&spec("ResourceAllocatableCPU"), &["e"]);
    for (name, cpu) in [("a", "2"), ("b", "500m"), ("c", "1")] {
        world.add(json!({"metadata": {"name": name},
            "status": {"capacity": {"cpu": "9"}, "allocatable": {"cpu": cpu}}}));
    }
    assert_eq!(world.chosen(), "a:100 b:-100 c:-33 e:0");
    // Additive is Balance and Steady unless it says otherwise.
    let world = World::new(&json!({}), &["a", "b"]).decided(&["b"]);
    assert_eq!(world.chosen(), "a:100 b:200");
    let without =
        json!({"configurations": [{"scoreCoordinate": {"builtIn": "Balance"}, "weight": 0}]});
    let world = World::new(&json!({"prioritizerPolicy": without}), &["a", "b"]).decided(&["b"]);
    assert_eq!(world.chosen(), "a:0 b:100");
}

#[test]
fn the_best_are_chosen_and_expired_scores_count_nothing() {
    let add_on = json!({"type": "AddOn", "addOn": {"resourceName": "load", "scoreName": "free"}});
    let policy = exact(&json!([{"scoreCoordinate": add_on, "weight": 3}]));
    let spec = json!({"prioritizerPolicy": policy, "numberOfClusters": 2});
    let mut world = World::new(&spec, &["a", "b", "c"]);
    for (cluster, value, until) in [("a", -5, "2030"), ("b", 7, "2030"), ("c", 90, "2020")] {
        world
            .scores
            .insert_json(&json!({"metadata": {"name": "load", "namespace": cluster},
            "status": {"validUntil": format!("{until}-01-01T00:00:00Z"),
                       "scores": [{"name": "free", "value": value}]}}))
            .unwrap();
    }
    assert_eq!(world.chosen(), "b:21 c:0");
    let outcome = world.schedule();
    assert_eq!(outcome.warnings, ["AddOnPlacementScores c/load expired"]);
    let recheck_at = outcome.recheck_at.unwrap();
    assert_eq!(recheck_at.to_string(), "2030-01-01T00:00:00.000000001Z");
    assert_eq!(
        world.why("a"),
        "Its score of -15 is rank 3, and 2 are asked for; the last one chosen has 0."
    );
    assert_eq!(world.why("b"), "It is chosen, with a score of 21.");
}

#[test]
fn spread_is_kept_where_it_must_and_wished_where_it_can() {
    let spec = |when: &str, number: usize| {
        json!({"numberOfClusters": number, "spreadPolicy": {"spreadConstraints": [
            {"topologyKey": "zone", "topologyKeyType": "Label", "whenUnsatisfiable": when}]}})
    };
    let clusters = ["a zone=1", "b zone=1", "c zone=1", "d zone=2", "e"];
    check(&World::new(&spec("ScheduleAnyway", 2), &clusters), "a d");
    check(
        &World::new(&spec("ScheduleAnyway", 4), &clusters),
        "a b c d",
    );
    let strict = World::new(&spec("DoNotSchedule", 4), &clusters);
    check(&strict, "a b d");
    assert_eq!(strict.schedule().unscheduled, 1);
    assert_eq!(
        strict.why("c"),
        "Its score is 100, but choosing it would upset the spread."
    );
}
