//! Files of the chart that are made from the code: what each controller may do, and which webhooks are called.
//!
//! `BELLWETHER_UPDATE_CHART=1 cargo test -p bellwether install::generated` writes them; without it the test compares.

use std::path::Path;

use bellwether_api::cluster::names::registration::{AGENT_NAMESPACE, BOOTSTRAP_SECRET};
use bellwether_controllers::registry::{self, HUB, Rule, merge, to_rules};
use bellwether_controllers::rights;
use bellwether_json::yaml::to_yaml;
use bellwether_webhook::Location;
use bellwether_webhook::configuration::{Kind, configuration};
use serde_json::{Map, Value, json};

fn rules(rights: &[Rule]) -> Value {
    json!(merge(to_rules(rights)))
}

/// The rights of each controller, and of the other parts of processes.
fn rights() -> Value {
    let controllers: Map<String, Value> = HUB
        .iter()
        .map(|entry| (entry.name.to_owned(), json!(merge(entry.rules()))))
        .collect();
    let in_system: Map<String, Value> = HUB
        .iter()
        .map(|entry| (entry.name, entry.system_rules()))
        .chain(
            rights::IN_SYSTEM_NAMESPACE
                .iter()
                .filter(|(name, _)| *name == rights::WEBHOOK_SERVER)
                .map(|(_, needed)| ("webhooks", to_rules(needed))),
        )
        .filter(|(_, needed)| !needed.is_empty())
        .map(|(name, needed)| (name.to_owned(), json!(merge(needed))))
        .collect();
    let agent = rights::AGENT.iter().flat_map(|part| to_rules(part.rights));
    json!({
        "agentNamespace": AGENT_NAMESPACE,
        "bootstrapSecret": BOOTSTRAP_SECRET,
        "controllers": controllers,
        "parts": {
            "agent": merge(agent),
            "definitions": rules(rights::DEFINITIONS),
            "member-definitions": rules(rights::MEMBER_DEFINITIONS),
            "webhooks": rules(rights::WEBHOOKS),
        },
        "system": {"namespace": rights::SYSTEM_NAMESPACE, "parts": in_system},
        "namespaced": {
            "credentials": rules(rights::CREDENTIALS),
            "lease": rules(rights::LEASE),
            "webhooks": rules(rights::WEBHOOK_SECRET),
        },
    })
}

/// The webhooks of both configurations, each with the path that it is called at.
fn webhooks() -> Value {
    let location = Location::Url(String::new());
    let mut all = json!({});
    for kind in [Kind::Mutating, Kind::Validating] {
        let mut configuration = configuration(kind, &registry::admission(), &location, "");
        for webhook in configuration["webhooks"].as_array_mut().unwrap() {
            webhook["path"] = webhook["clientConfig"]["url"].clone();
            webhook.as_object_mut().unwrap().remove("clientConfig");
        }
        all["name"] = configuration["metadata"]["name"].clone();
        all[kind.as_str()] = configuration["webhooks"].take();
    }
    all
}

#[expect(clippy::disallowed_methods, reason = "a switch of a test")]
fn check(name: &str, content: &Value) {
    let comment = "# Made from the code: see crates/bellwether/src/install/generated.rs.\n";
    let text = format!("{comment}{}", to_yaml(content));
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../deploy/chart/files")
        .join(name);
    if std::env::var("BELLWETHER_UPDATE_CHART").is_ok() {
        std::fs::write(&path, &text).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == text,
        "{} is out of date: run BELLWETHER_UPDATE_CHART=1 cargo test -p bellwether install::generated",
        path.display()
    );
}

#[test]
fn rights_of_the_chart_are_those_of_the_controllers() {
    check("rights.yaml", &rights());
}

#[test]
fn webhooks_of_the_chart_are_those_of_the_rules() {
    check("webhooks.yaml", &webhooks());
}
