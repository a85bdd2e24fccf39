use proptest::prelude::*;
use serde_json::json;

use super::*;

fn rbac() -> Rbac {
    let mut rbac = Rbac::default();
    rbac.set(
        "clusterroles",
        "",
        "reader",
        Some(&json!({"rules": [
            {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["configmaps", "*/scale"]},
            {"verbs": ["get"], "nonResourceURLs": ["/metrics", "/logs/*"]},
        ]})),
    );
    rbac.set(
        "roles",
        "a",
        "one",
        Some(&json!({"rules": [
            {"verbs": ["*"], "apiGroups": ["*"], "resources": ["secrets"], "resourceNames": ["only"]},
        ]})),
    );
    rbac.set(
        "clusterrolebindings",
        "",
        "all",
        Some(&json!({
            "subjects": [{"kind": "Group", "name": "readers"}],
            "roleRef": {"kind": "ClusterRole", "name": "reader"},
        })),
    );
    rbac.set(
        "rolebindings",
        "a",
        "sa",
        Some(&json!({
            "subjects": [
                {"kind": "ServiceAccount", "name": "bot", "namespace": "b"},
                {"kind": "ServiceAccount", "name": "own"},
            ],
            "roleRef": {"kind": "Role", "name": "one"},
        })),
    );
    rbac
}

#[track_caller]
fn check(identity: &Identity, wanted: &Attributes<'_>, allowed: bool) {
    assert_eq!(
        rbac().decide(identity, wanted).allowed,
        allowed,
        "{identity:?} {wanted:?}"
    );
}

#[test]
fn a_cluster_binding_holds_in_every_namespace() {
    let reader = Identity::authenticated("ann", ["readers".to_owned()]);
    let list = Attributes {
        verb: "list",
        resource: "configmaps",
        namespace: "x",
        ..Default::default()
    };
    check(&reader, &list, true);
    check(
        &reader,
        &Attributes {
            namespace: "",
            ..list
        },
        true,
    );
    check(
        &reader,
        &Attributes {
            verb: "delete",
            ..list
        },
        false,
    );
    check(
        &reader,
        &Attributes {
            group: "apps",
            ..list
        },
        false,
    );
    check(
        &reader,
        &Attributes {
            resource: "deployments",
            subresource: "scale",
            ..list
        },
        true,
    );
    check(
        &reader,
        &Attributes {
            verb: "get",
            resource: "",
            path: "/logs/x",
            ..list
        },
        true,
    );
    check(
        &reader,
        &Attributes {
            verb: "get",
            resource: "",
            path: "/metrics/x",
            ..list
        },
        false,
    );
    check(&Identity::authenticated("bob", []), &list, false);
}

#[test]
fn a_role_holds_in_its_own_namespace_for_the_names_it_lists() {
    let bot = Identity::authenticated("system:serviceaccount:b:bot", []);
    let get = Attributes {
        verb: "get",
        resource: "secrets",
        namespace: "a",
        name: "only",
        ..Default::default()
    };
    check(&bot, &get, true);
    check(
        &bot,
        &Attributes {
            namespace: "b",
            ..get
        },
        false,
    );
    check(
        &bot,
        &Attributes {
            name: "other",
            ..get
        },
        false,
    );
    check(&bot, &Attributes { name: "", ..get }, false);
    let other = Identity::authenticated("system:serviceaccount:a:bot", []);
    check(&other, &get, false);
}

#[test]
fn refusals_read_as_in_kubernetes() {
    let wanted = Attributes {
        verb: "get",
        group: "apps",
        resource: "deployments",
        namespace: "x",
        ..Default::default()
    };
    assert_eq!(
        wanted.refusal("bob"),
        "User \"bob\" cannot get resource \"deployments\" in API group \"apps\" in the namespace \"x\""
    );
    assert_eq!(
        Attributes {
            namespace: "",
            subresource: "scale",
            ..wanted
        }
        .refusal("bob"),
        "User \"bob\" cannot get resource \"deployments/scale\" in API group \"apps\" at the cluster scope"
    );
}

#[test]
fn an_account_without_a_namespace_is_in_that_of_the_binding() {
    let own = Identity::authenticated("system:serviceaccount:a:own", []);
    let get = Attributes {
        verb: "get",
        resource: "secrets",
        namespace: "a",
        name: "only",
        ..Default::default()
    };
    check(&own, &get, true);
}

#[test]
fn what_is_taken_away_is_gone_at_once() {
    let mut rbac = rbac();
    let reader = Identity::authenticated("ann", ["readers".to_owned()]);
    let list = Attributes {
        verb: "list",
        resource: "configmaps",
        ..Default::default()
    };
    assert!(rbac.decide(&reader, &list).allowed);
    assert_eq!(rbac.rules_for(&reader, "x").len(), 2);
    rbac.set("clusterroles", "", "reader", None);
    assert!(!rbac.decide(&reader, &list).allowed);
    rbac.set("clusterrolebindings", "", "all", None);
    assert!(rbac.by_group.is_empty());
    rbac.set("rolebindings", "a", "sa", Some(&json!({})));
    assert!(rbac.by_user.is_empty());
}

#[test]
fn a_role_of_another_namespace_cannot_be_named() {
    let mut rbac = rbac();
    let bob = Identity::authenticated("bob", []);
    let binding = json!({
        "subjects": [{"kind": "User", "name": "bob"}],
        "roleRef": {"kind": "Role", "name": "one"},
    });
    rbac.set("rolebindings", "b", "x", Some(&binding));
    rbac.set("clusterrolebindings", "", "x", Some(&binding));
    for namespace in ["", "a", "b"] {
        assert!(rbac.rules_for(&bob, namespace).is_empty(), "{namespace}");
    }
}

proptest! {
    /// However roles and bindings came and went, those that are there count, and no others.
    #[test]
    fn the_order_of_changes_does_not_matter(
        changes in proptest::collection::vec((0..4_usize, 0..2_usize, 0..2_usize, any::<bool>()), 0..24),
    ) {
        const PLURALS: [&str; 4] = ["clusterroles", "roles", "clusterrolebindings", "rolebindings"];
        const VERBS: [&str; 2] = ["get", "list"];
        const KINDS: [&str; 2] = ["ClusterRole", "Role"];
        const USERS: [&str; 2] = ["bob", "ann"];
        let object = |plural: &str, variant: usize| match plural {
            "clusterroles" | "roles" => json!({"rules": [
                {"verbs": [VERBS[variant]], "apiGroups": [""], "resources": ["pods"]},
            ]}),
            _ => json!({
                "roleRef": {"kind": KINDS[variant], "name": "0"},
                "subjects": [
                    {"kind": "User", "name": USERS[variant]},
                    {"kind": "Group", "name": "devs"},
                ],
            }),
        };
        let mut changed = Rbac::default();
        let mut last = std::collections::BTreeMap::new();
        for (plural, name, variant, stays) in changes {
            let plural = PLURALS[plural];
            let namespace = if plural.starts_with("cluster") { "" } else { "a" };
            let name = name.to_string();
            let object = stays.then(|| object(plural, variant));
            changed.set(plural, namespace, &name, object.as_ref());
            last.insert((plural, namespace, name), object);
        }
        let mut fresh = Rbac::default();
        for ((plural, namespace, name), object) in &last {
            if let Some(object) = object {
                fresh.set(plural, namespace, name, Some(object));
            }
        }
        for identity in [
            Identity::authenticated("bob", []),
            Identity::authenticated("ann", ["devs".to_owned()]),
        ] {
            for namespace in ["", "a", "b"] {
                prop_assert_eq!(
                    changed.rules_for(&identity, namespace),
                    fresh.rules_for(&identity, namespace)
                );
            }
        }
    }
}
