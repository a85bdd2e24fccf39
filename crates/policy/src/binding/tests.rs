//! Bindings, sets and placements of one namespace, and the clusters that they come to.

use serde_json::{Value, json};

use super::*;

/// A namespace with three placements: all of a, b, c; only b; a rule for d.
fn bound(bindings: &[Value], sets: &[Value]) -> Bound {
    let bindings: Vec<Arc<PlacementBinding>> = bindings
        .iter()
        .map(|it| Arc::new(serde_json::from_value(it.clone()).unwrap()))
        .collect();
    let sets: Vec<Arc<PolicySet>> = sets
        .iter()
        .map(|it| Arc::new(serde_json::from_value(it.clone()).unwrap()))
        .collect();
    resolve(&Bindings {
        policy: "limits",
        bindings: &bindings,
        set: &|name| {
            let found = sets.iter();
            found
                .clone()
                .find(|it| it.metadata.name.as_deref() == Some(name))
                .cloned()
        },
        selected: &|reference| match (reference.kind.as_str(), reference.name.as_str()) {
            ("Placement", "all") => Some(Chosen::from(vec![
                Group::new("canary", 0, ["a"]),
                Group::new("", 1, ["b", "c"]),
            ])),
            ("Placement", "one") => Some(Chosen::from(vec![Group::new("canary", 0, ["b"])])),
            ("Placement", "late") => Some(Chosen {
                groups: vec![Group::new("", 1, ["e"])],
                ..Chosen::default()
            }),
            ("PlacementRule", "old") => Some(Chosen::from(vec![Group::new("", 0, ["d"])])),
            _ => None,
        },
    })
}

fn binding(name: &str, placement: &str, subjects: &[(&str, &str)], more: &Value) -> Value {
    let (group, kind) = match placement {
        "old" => (APPS_GROUP, "PlacementRule"),
        _ => (cluster::GROUP, "Placement"),
    };
    let subject =
        |(kind, name): &(&str, &str)| json!({"apiGroup": GROUP, "kind": kind, "name": name});
    let mut binding = json!({
        "metadata": {"name": name, "namespace": "policies"},
        "placementRef": {"apiGroup": group, "kind": kind, "name": placement},
        "subjects": subjects.iter().map(subject).collect::<Vec<_>>(),
    });
    for (field, value) in more.as_object().into_iter().flatten() {
        binding[field] = value.clone();
    }
    binding
}

const LIMITS: &[(&str, &str)] = &[("Policy", "limits")];

fn restricted() -> Value {
    json!({"subFilter": "restricted", "bindingOverrides": {"remediationAction": "Enforce"}})
}

fn set(policies: &[&str], exclusions: &Value) -> Value {
    json!({"metadata": {"name": "set"}, "spec": {"policies": policies, "exclusions": exclusions}})
}

#[track_caller]
fn check(bound: &Bound, groups: &str, placements: &str) {
    let shown = bound.groups.iter().map(|it| {
        let key = &it.group.key;
        let clusters = it.group.clusters.join("+");
        format!("{}:{}{}={clusters}", it.placement, key.name, key.index)
    });
    assert_eq!(shown.collect::<Vec<_>>().join(" "), groups);
    let text = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_owned());
    let shown = bound.placements.iter().map(|it| {
        let parts = [
            &it.placement_binding,
            &it.placement,
            &it.placement_rule,
            &it.policy_set,
        ];
        let out: Vec<&str> = it
            .exclusions
            .iter()
            .map(|it| it.cluster_name.as_str())
            .collect();
        format!("{}({})", parts.map(text).join("/"), out.join("+"))
    });
    assert_eq!(shown.collect::<Vec<_>>().join(" "), placements);
}

#[test]
fn a_binding_selects_the_clusters_of_its_placement_for_the_policies_that_it_names() {
    let none = json!({});
    check(
        &bound(&[binding("b1", "all", LIMITS, &none)], &[]),
        "all:canary0=a all:1=b+c",
        "b1/all/-/-()",
    );
    check(
        &bound(&[binding("b1", "all", &[("Policy", "other")], &none)], &[]),
        "",
        "",
    );
    check(
        &bound(&[binding("b1", "gone", LIMITS, &none)], &[]),
        "",
        "b1/-/-/-()",
    );
    let mut mixed = binding("b1", "all", LIMITS, &none);
    mixed["placementRef"]["apiGroup"] = json!(APPS_GROUP);
    check(&bound(&[mixed], &[]), "", "");
}

#[test]
fn several_placements_go_in_the_order_of_their_names_and_a_cluster_counts_once() {
    let none = json!({});
    let bindings = [
        binding("b1", "one", LIMITS, &none),
        binding("b2", "all", LIMITS, &none),
        binding("b3", "old", LIMITS, &none),
        binding("b4", "all", LIMITS, &none),
    ];
    let bound = bound(&bindings, &[]);
    check(
        &bound,
        "all:canary0=a all:1=b+c old:2=d",
        "b1/one/-/-() b2/all/-/-() b3/-/old/-() b4/all/-/-()",
    );
    let strategy = Strategy {
        mandatory_decision_groups: vec![
            MandatoryGroup {
                group_name: "canary".to_owned(),
                group_index: 0,
            },
            MandatoryGroup {
                group_name: String::new(),
                group_index: 0,
            },
        ],
        ..Strategy::default()
    };
    let mandatory = bound.strategy(&strategy).mandatory_decision_groups;
    let indexes: Vec<i64> = mandatory.iter().map(|it| it.group_index).collect();
    assert_eq!(indexes, [0, 0, 2], "the first group of every placement");
}

#[test]
fn a_restricted_binding_overrides_where_another_selects_and_adds_no_cluster() {
    let none = json!({});
    let both = [
        binding("b1", "one", LIMITS, &none),
        binding("b2", "all", LIMITS, &restricted()),
    ];
    let bound_both = bound(&both, &[]);
    check(&bound_both, "one:canary0=b", "b1/one/-/-() b2/all/-/-()");
    let overrides: Vec<_> = bound_both.overrides.iter().collect();
    assert_eq!(overrides.len(), 1);
    assert_eq!(
        (&**overrides[0].0, overrides[0].1.as_str()),
        ("b", "Enforce")
    );
    check(&bound(&both[1..], &[]), "", "");
    let apart = [
        binding("b1", "old", LIMITS, &none),
        binding("b2", "all", LIMITS, &restricted()),
    ];
    check(&bound(&apart, &[]), "old:0=d", "b1/-/old/-()");
}

#[test]
fn a_set_binds_its_policies_except_where_it_excludes_clusters() {
    let none = json!({});
    let by_set = binding("b1", "all", &[("PolicySet", "set")], &none);
    let excluding = set(
        &["limits"],
        &json!([{"policyName": "limits", "clusterNames": ["b", "z"]}]),
    );
    check(&bound(std::slice::from_ref(&by_set), &[]), "", "");
    check(
        &bound(
            std::slice::from_ref(&by_set),
            &[set(&["other"], &json!([]))],
        ),
        "",
        "",
    );
    check(
        &bound(
            std::slice::from_ref(&by_set),
            std::slice::from_ref(&excluding),
        ),
        "all:canary0=a all:1=c",
        "b1/all/-/set(b)",
    );
    // Another binding selects the cluster all the same.
    check(
        &bound(&[by_set, binding("b2", "one", LIMITS, &none)], &[excluding]),
        "all:canary0=a all:1=c one:canary2=b",
        "b1/all/-/set(b) b2/one/-/-()",
    );
}

#[test]
fn placements_whose_decisions_are_incomplete_are_named_unless_they_only_override() {
    let none = json!({});
    let late = binding("b1", "late", LIMITS, &none);
    let all = binding("b2", "all", LIMITS, &none);
    let found = bound(&[late, all.clone()], &[]);
    assert_eq!(found.unsettled, ["late".to_owned()].into());
    let only_override = binding("b1", "late", LIMITS, &restricted());
    let found = bound(&[only_override, all], &[]);
    assert!(found.unsettled.is_empty());
}
