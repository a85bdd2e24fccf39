//! Which placements a change affects, and that no others are decided again.

use bellwether_placement::schedule::schedule;
use serde_json::{Value, json};

use super::*;

/// A fleet of clusters in ten regions, and for each region a placement that asks for it.
fn fleet(placements: usize) -> Fleet {
    let mut fleet = Fleet::default();
    let set = json!({"metadata": {"name": "global"}, "spec": {"clusterSelector":
        {"selectorType": "LabelSelector", "labelSelector": {}}}});
    apply_change(&mut fleet, Fleet::set, "", "global", &set);
    let binding = json!({"metadata": {"name": "global", "namespace": "a"},
        "spec": {"clusterSet": "global"}});
    apply_change(&mut fleet, Fleet::binding, "a", "global", &binding);
    for number in 0..placements {
        let selector = json!({"labelSelector": {"matchLabels": {"region": number.to_string()}}});
        let name = format!("p{number}");
        let placement = json!({
            "metadata": {"name": name, "namespace": "a", "uid": name, "resourceVersion": "1"},
            "spec": {"predicates": [{"requiredClusterSelector": selector}]},
        });
        apply_change(&mut fleet, Fleet::placement, "a", &name, &placement);
    }
    fleet
}

fn apply_change<K: serde::de::DeserializeOwned>(
    fleet: &mut Fleet,
    learn: fn(&mut Fleet, &Change<'_, K>) -> Vec<ObjectKey>,
    namespace: &str,
    name: &str,
    object: &Value,
) -> Vec<String> {
    let object: Arc<K> = Arc::new(serde_json::from_value(object.clone()).unwrap());
    let change = Change {
        key: &ObjectKey::new(namespace, name),
        old: None,
        new: Some(&object),
    };
    let affected = learn(fleet, &change);
    affected.iter().map(|key| key.name.to_string()).collect()
}

fn cluster(name: &str, region: &str, noise: &str) -> Value {
    json!({"metadata": {"name": name, "labels": {"region": region, "noise": noise}}})
}

#[test]
fn a_label_change_reaches_the_placements_that_ask_for_it() {
    let mut fleet = fleet(100);
    apply_change(&mut fleet, Fleet::cluster, "", "d", &cluster("d", "", ""));
    assert_eq!(fleet.begin().len(), 100);
    let mut learn = |region: &str, noise: &str| {
        let object = cluster("c", region, noise);
        apply_change(&mut fleet, Fleet::cluster, "", "c", &object)
    };
    assert_eq!(learn("7", ""), ["p7"]);
    assert_eq!(learn("8", ""), ["p7", "p8"]);
    assert_eq!(learn("8", "more"), Vec::<String>::new());
    assert_eq!(learn("nowhere", ""), ["p8"]);
}

#[test]
fn only_placements_that_the_index_names_are_candidates() {
    let mut fleet = fleet(100);
    apply_change(&mut fleet, Fleet::cluster, "", "d", &cluster("d", "", ""));
    fleet.begin();
    assert_eq!(fleet.index.size(), (0, 100));
    let everything = json!({"metadata": {"name": "all", "namespace": "a", "uid": "all"}});
    assert_eq!(
        apply_change(&mut fleet, Fleet::placement, "a", "all", &everything),
        ["all"]
    );
    assert_eq!(fleet.index.size(), (1, 100));
    let object = cluster("c", "7", "");
    assert_eq!(
        apply_change(&mut fleet, Fleet::cluster, "", "c", &object),
        ["all", "p7"]
    );
}

#[test]
fn placements_of_an_exclusive_set_are_found_by_its_label() {
    let mut fleet = Fleet::default();
    let set = json!({"metadata": {"name": "eu"}});
    apply_change(&mut fleet, Fleet::set, "", "eu", &set);
    let binding =
        json!({"metadata": {"name": "eu", "namespace": "a"}, "spec": {"clusterSet": "eu"}});
    apply_change(&mut fleet, Fleet::binding, "a", "eu", &binding);
    let everything = json!({"metadata": {"name": "all", "namespace": "a", "uid": "all"}});
    apply_change(&mut fleet, Fleet::placement, "a", "all", &everything);
    fleet.begin();
    assert_eq!(fleet.index.size(), (0, 1));
    let mut learn = |set: &str| {
        let label = "cluster.open-cluster-management.io/clusterset";
        let object = json!({"metadata": {"name": "c", "labels": {label: set}}});
        apply_change(&mut fleet, Fleet::cluster, "", "c", &object)
    };
    assert_eq!(learn("us"), Vec::<String>::new());
    assert_eq!(learn("eu"), ["all"]);
    assert_eq!(learn("us"), ["all"]);
}

#[test]
fn the_first_and_the_last_member_of_a_set_concern_all_that_choose_from_it() {
    let mut fleet = fleet(3);
    fleet.begin();
    let mut learn = |name: &str| {
        let object = cluster(name, "nowhere", "");
        apply_change(&mut fleet, Fleet::cluster, "", name, &object)
    };
    assert_eq!(learn("c"), ["p0", "p1", "p2"]);
    assert_eq!(learn("d"), Vec::<String>::new());
    assert_eq!(forget(&mut fleet, "c"), Vec::<String>::new());
    assert_eq!(forget(&mut fleet, "d"), ["p0", "p1", "p2"]);
}

fn forget(fleet: &mut Fleet, name: &str) -> Vec<String> {
    let key = ObjectKey::cluster_scoped(name);
    let change = Change {
        key: &key,
        old: None,
        new: None,
    };
    let affected = fleet.cluster(&change);
    affected.iter().map(|key| key.name.to_string()).collect()
}

#[test]
fn a_decision_looks_at_the_clusters_that_could_be_chosen_and_at_no_others() {
    let mut fleet = fleet(10);
    for number in 0..1000 {
        let object = cluster(&format!("c{number}"), &(number % 100).to_string(), "");
        apply_change(
            &mut fleet,
            Fleet::cluster,
            "",
            &format!("c{number}"),
            &object,
        );
    }
    fleet.begin();
    let key = ObjectKey::new("a", "p7");
    let rules = &fleet.known(&key).unwrap().rules;
    fleet.view(&key, rules, Timestamp::UNIX_EPOCH, |view| {
        assert_eq!(view.candidates.unwrap().len(), 10);
    });
}

proptest::proptest! {
    #[test]
    fn the_index_finds_whom_a_look_at_everybody_finds(
        changes in proptest::collection::vec((0_u8..6, 0_u8..4), 0..40),
        begins_after in 0_usize..40,
    ) {
        let mut fleet = fleet(3);
        for (at, (name, region)) in changes.iter().enumerate() {
            if at == begins_after {
                fleet.begin();
            }
            let name = format!("c{name}");
            if *region == 3 {
                forget(&mut fleet, &name);
            } else {
                let object = cluster(&name, &region.to_string(), "");
                apply_change(&mut fleet, Fleet::cluster, "", &name, &object);
            }
        }
        fleet.begin();
        for number in 0..3 {
            let key = ObjectKey::new("a", &format!("p{number}"));
            let rules = &fleet.known(&key).unwrap().rules;
            let found = fleet.view(&key, rules, Timestamp::UNIX_EPOCH, |view| {
                let all = View { candidates: None, ..*view };
                (schedule(view), schedule(&all))
            });
            proptest::prop_assert_eq!(&found.0, &found.1);
        }
    }
}

#[test]
fn own_writes_are_no_news_and_late_news_is_none() {
    let mut fleet = fleet(1);
    fleet.begin();
    let decision = |version: &str, clusters: &[&str]| {
        let decisions: Vec<Value> = clusters
            .iter()
            .map(|it| json!({"clusterName": it, "reason": ""}))
            .collect();
        json!({
            "metadata": {"name": "p0-decision-1", "namespace": "a", "uid": "u",
                "resourceVersion": version,
                "labels": {"cluster.open-cluster-management.io/placement": "p0"}},
            "status": {"decisions": decisions},
        })
    };
    let key = ObjectKey::new("a", "p0");
    let written: PlacementDecision = serde_json::from_value(decision("10", &["c1", "c2"])).unwrap();
    fleet.record(&key, Written::read(&written));
    assert_eq!(fleet.chosen.len(), 2);
    let mut learn = |version: &str, clusters: &[&str]| {
        let object = decision(version, clusters);
        let affected = apply_change(&mut fleet, Fleet::decision, "a", "p0-decision-1", &object);
        (affected.len(), fleet.chosen.len())
    };
    assert_eq!(
        learn("10", &["c1", "c2"]),
        (0, 2),
        "what was written comes back"
    );
    assert_eq!(learn("9", &[]), (0, 2), "what was there before comes late");
    assert_eq!(learn("11", &["c1"]), (1, 1), "somebody else wrote");
}
