//! Rights of controllers: each that is taken away is named, with who needs it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use bellwether_apiserver::{HUB, Identity};
use bellwether_controllers::registry::{self, merge, to_rules};
use bellwether_controllers::rights::{self, review};
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
