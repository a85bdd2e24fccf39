//! Rights of controllers: each that is taken away is named, with who needs it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use bellwether_apiserver::{HUB, Identity};
use bellwether_controllers::registry::{self, merge, to_rules};
use bellwether_controllers::rights::{
    self, IN_SYSTEM_NAMESPACE, SYSTEM_NAMESPACE, review, review_in,
};
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::Client;
use serde_json::json;

use crate::common::World;

/// A client of a user with these rights and no others.
async fn user(world: &World, name: &str, rules: &[PolicyRule]) -> Client {
    let group = "rbac.authorization.k8s.io";
    let role = json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRole",
        "metadata": {"name": name}, "rules": rules});
    let binding = json!({"apiVersion": format!("{group}/v1"), "kind": "ClusterRoleBinding",
        "metadata": {"name": name},
        "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": name},
        "subjects": [{"apiGroup": group, "kind": "User", "name": name}]});
    for object in [role, binding] {
        world.server.ensure(HUB, object).await.unwrap();
    }
    let identity = Identity::authenticated(name, []);
    Client::new(world.server.service(HUB, identity), "default")
}

/// The rights without one of them.
fn without(rules: &[PolicyRule], index: usize, verb: &str) -> Vec<PolicyRule> {
    let mut rules = rules.to_vec();
    rules[index].verbs.retain(|it| it != verb);
    rules.retain(|rule| !rule.verbs.is_empty());
    rules
}

#[tokio::test(start_paused = true)]
async fn each_right_that_is_taken_away_is_named() {
    let world = World::start().await;
    let hub = registry::HUB
        .iter()
        .map(|entry| (entry.name, entry.rules()));
    let agent = rights::AGENT.iter();
    let agent = agent.map(|part| (part.name, to_rules(part.rights)));
    let webhooks = ("webhooks", to_rules(rights::WEBHOOKS));
    let mut taken = 0;
    for (part, rules) in hub.chain(agent).chain([webhooks]) {
        let whole = merge(rules);
        let needed = [(part, whole.clone())];
        let client = user(&world, &format!("whole-{taken}-{part}"), &whole).await;
        assert_eq!(review(&client, &needed).await.unwrap(), [], "{part}");
        let reads_all = whole
            .iter()
            .any(|rule| rule.api_groups == Some(vec!["*".to_owned()]));
        for (index, rule) in whole.iter().enumerate() {
            let resource = &rule.resources.as_ref().unwrap()[0];
            for verb in &rule.verbs {
                // A right to read everything includes this one.
                if reads_all && resource != "*" && ["get", "list", "watch"].contains(&verb.as_str())
                {
                    continue;
                }
                let name = format!("less-{taken}");
                let client = user(&world, &name, &without(&whole, index, verb)).await;
                let missing = review(&client, &needed).await.unwrap();
                let about: Vec<(&str, &str, &str)> = missing
                    .iter()
                    .map(|it| (&*it.part, &*it.verb, &*it.resource))
                    .collect();
                assert_eq!(about, [(part, verb.as_str(), resource.as_str())]);
                taken += 1;
            }
        }
    }
    assert!(taken > 150, "{taken}");
}

/// A client of a user with these rights in one namespace only.
async fn user_in(world: &World, namespace: &str, name: &str, rules: &[PolicyRule]) -> Client {
    let group = "rbac.authorization.k8s.io";
    let metadata = json!({"name": name, "namespace": namespace});
    let role = json!({"apiVersion": format!("{group}/v1"), "kind": "Role",
        "metadata": metadata, "rules": rules});
    let binding = json!({"apiVersion": format!("{group}/v1"), "kind": "RoleBinding",
        "metadata": metadata,
        "roleRef": {"apiGroup": group, "kind": "Role", "name": name},
        "subjects": [{"apiGroup": group, "kind": "User", "name": name}]});
    for object in [role, binding] {
        world.server.ensure(HUB, object).await.unwrap();
    }
    let identity = Identity::authenticated(name, []);
    Client::new(world.server.service(HUB, identity), "default")
}

#[tokio::test(start_paused = true)]
async fn rights_in_the_namespace_of_the_system_are_named_with_it() {
    let world = World::start().await;
    let namespace = Some(SYSTEM_NAMESPACE);
    for (part, rights) in IN_SYSTEM_NAMESPACE {
        let whole = merge(to_rules(rights));
        let needed = [(*part, whole.clone())];
        let name = part.replace(' ', "-");
        let client = user_in(&world, SYSTEM_NAMESPACE, &name, &whole).await;
        assert_eq!(
            review_in(&client, namespace, &needed).await.unwrap(),
            [],
            "{part}"
        );
        // They are not enough elsewhere.
        assert!(!review(&client, &needed).await.unwrap().is_empty());
        for verb in &whole[0].verbs {
            let name = format!("{name}-without-{verb}");
            let less = without(&whole, 0, verb);
            let client = user_in(&world, SYSTEM_NAMESPACE, &name, &less).await;
            let missing = review_in(&client, namespace, &needed).await.unwrap();
            let missing: Vec<String> = missing.iter().map(ToString::to_string).collect();
            let named = format!("{part} may not {verb} secrets in namespace kube-system");
            assert_eq!(missing, [named]);
        }
    }
}
