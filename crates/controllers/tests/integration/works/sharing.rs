//! Several hubs on one member, hubs that are away, and what people are told.

use bellwether_agent::work::WorkAgents;
use bellwether_apiserver::{HUB, Identity};
use bellwether_runtime::MetricsRegistry;
use serde_json::json;

use crate::fleet::*;

/// Where the other hub is.
const OTHER_ADDRESS: &str = "https://other.example:6443";
const OTHER: &str = "other-hub";

/// A second hub, which is always embedded, with an agent of its own on the same member.
async fn second_hub(fleet: &mut Fleet) -> WorkAgents {
    fleet.server.add_cluster(OTHER).await.unwrap();
    for definition in bellwether_api::definitions() {
        fleet.server.ensure(OTHER, definition).await.unwrap();
    }
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": MEMBER}});
    fleet.create(OTHER, namespace).await;
    let hub = fleet.server.client(OTHER, Identity::administrator("agent"));
    let (clock, options) = (fleet.clock.clone(), fleet.options.clone());
    let agents = WorkAgents::start(hub, OTHER_ADDRESS, None, clock, options).await;
    agents.add_member(MEMBER, fleet.controller_client(MEMBER));
    fleet.run(agents.clone().run());
    agents
}

fn owners(object: &serde_json::Value) -> usize {
    let owners = object["metadata"]["ownerReferences"].as_array();
    owners.map_or(0, Vec::len)
}

async fn several_hubs_share_a_member(fleet: &mut Fleet) {
    let _other = second_hub(fleet).await;
    let ours = work(
        "w",
        json!([config_map("shared", "1"), config_map("ours", "1")]),
    );
    let theirs = work(
        "w",
        json!([config_map("shared", "1"), config_map("theirs", "1")]),
    );
    fleet.create(HUB, ours.clone()).await;
    fleet.create(OTHER, theirs.clone()).await;
    for name in ["ours", "theirs"] {
        fleet.until_there(MEMBER, &config_map(name, "")).await;
    }
    // Both own what both have.
    let shared = config_map("shared", "");
    fleet
        .until(MEMBER, &shared, "both own it", |it| {
            it.is_some_and(|it| owners(it) == 2)
        })
        .await;
    let record_of_theirs = record_of(OTHER_ADDRESS, "w");
    assert!(fleet.get(MEMBER, &record("w")).await.is_some());
    assert!(fleet.get(MEMBER, &record_of_theirs).await.is_some());
    // One goes, and leaves what is the other's.
    fleet.delete(HUB, &ours).await;
    fleet.until_gone(HUB, &ours).await;
    assert!(fleet.get(MEMBER, &config_map("ours", "")).await.is_none());
    assert_eq!(owners(&fleet.get(MEMBER, &shared).await.unwrap()), 1);
    assert!(fleet.get(MEMBER, &config_map("theirs", "")).await.is_some());
    // A record of another hub is nobody else's to evict.
    fleet.pass(2 * 3_600_000).await;
    let left = fleet.get(MEMBER, &record_of_theirs).await.unwrap();
    assert!(left["status"]["evictionStartTime"].is_null(), "{left:#}");
    fleet.delete(OTHER, &theirs).await;
    fleet.until_gone(OTHER, &theirs).await;
    assert!(fleet.get(MEMBER, &shared).await.is_none());
    assert!(fleet.get(MEMBER, &record_of_theirs).await.is_none());
}

async fn a_thousand_objects_are_one_watch(fleet: &mut Fleet) {
    for number in 0..20 {
        let maps: Vec<_> = (0..50)
            .map(|map| config_map(&format!("m{number}-{map}"), "1"))
            .collect();
        fleet
            .create(HUB, work(&format!("w{number}"), json!(maps)))
            .await;
    }
    for number in 0..20 {
        let work = work(&format!("w{number}"), json!([]));
        fleet.until_condition(&work, "Applied", "True").await;
    }
    fleet.pass(1000).await;
    let watches = || fleet.agents.as_ref().unwrap().metrics().watches.get();
    assert_eq!(watches(), 1);
    for number in 0..20 {
        let work = work(&format!("w{number}"), json!([]));
        fleet.delete(HUB, &work).await;
    }
    for number in 0..20 {
        let work = work(&format!("w{number}"), json!([]));
        fleet.until_gone(HUB, &work).await;
    }
    fleet.pass(1000).await;
    assert_eq!(watches(), 0, "nobody is interested any more");
}

async fn everything_that_happens_to_a_work_is_an_event(fleet: &mut Fleet) {
    let rules = json!({"manifestConfigs": [{
        "resourceIdentifier": {"resource": "jobs", "name": "once", "namespace": "default"},
        "conditionRules": [{"type": "WellKnownCompletions"}]}]});
    let mut lost = config_map("lost", "1");
    lost["metadata"]["namespace"] = json!("not-there");
    let work = work_with("w", json!([job("once"), lost]), rules);
    fleet.create(HUB, work.clone()).await;
    fleet.until_condition(&work, "Applied", "False").await;
    let change = json!({"spec": {"workload": {"manifests": [job("once")]}}});
    fleet.merge(HUB, &work, change).await;
    fleet.until_current(&work, "Applied", "True").await;
    fleet.merge_status(MEMBER, &job("once"), job_done()).await;
    fleet.until_condition(&work, "Complete", "True").await;
    fleet.delete(HUB, &work).await;
    fleet.until_gone(HUB, &work).await;
    fleet.pass(1000).await;
    let path = format!("/api/v1/namespaces/{MEMBER}/events");
    let events = fleet.list(HUB, &path).await;
    let mut told: Vec<_> = events
        .iter()
        .map(|event| ["type", "reason", "message"].map(|it| event[it].as_str().unwrap_or("")))
        .collect();
    told.sort_by_key(|[_, reason, _]| *reason);
    assert_eq!(
        told,
        [
            ["Normal", "Applied", "applied 1 object of generation 2"],
            [
                "Warning",
                "ApplyFailed",
                "ConfigMap lost: namespaces \"not-there\" not found"
            ],
            [
                "Normal",
                "Complete",
                "the work is complete; it is no longer applied"
            ],
            ["Normal", "Deleted", "all objects of the work are gone"],
        ]
    );
}

async fn numbers_tell_what_was_done(fleet: &mut Fleet) {
    let work = work("w", json!([config_map("a", "1")]));
    fleet.create(HUB, work.clone()).await;
    fleet.until_condition(&work, "Applied", "True").await;
    fleet.pass(1000).await;
    let drift = json!({"data": {"key": "2"}});
    fleet.merge(MEMBER, &config_map("a", ""), drift).await;
    let is_right = |it: Option<&serde_json::Value>| it.is_some_and(|it| it["data"]["key"] == "1");
    fleet
        .until(MEMBER, &config_map("a", ""), "it is repaired", is_right)
        .await;
    fleet.pass(1000).await;
    let registry = MetricsRegistry::default();
    fleet.agents.as_ref().unwrap().metrics().register(&registry);
    let text = registry.render();
    for line in [
        "bellwether_work_applies_total 1",
        "bellwether_work_drift_repairs_total 1",
        "bellwether_work_watches 1",
        "bellwether_work_applied_seconds_count 1",
    ] {
        assert!(text.lines().any(|it| it == line), "{line}\n{text}");
    }
}

/// What an agent applied under another ID is its own from the next look on, also where nothing is to
/// be done, so that it is evicted when its work vanishes.
async fn an_agent_with_another_id_takes_over_what_it_applies(fleet: &mut Fleet) {
    let done = json!({"manifestConfigs": [{
        "resourceIdentifier": {"resource": "configmaps", "name": "b", "namespace": "default"},
        "conditionRules": [{"type": "CEL", "condition": "Complete", "celExpressions": ["true"]}]}]});
    let open = work("open", json!([config_map("a", "1")]));
    let complete = work_with("complete", json!([config_map("b", "1")]), done);
    for work in [&open, &complete] {
        fleet.create(HUB, work.clone()).await;
    }
    fleet.until_condition(&open, "Applied", "True").await;
    fleet.until_condition(&complete, "Complete", "True").await;
    fleet.kill_agents();
    fleet.options.agent_id = Some("another".to_owned());
    fleet.start_agents(&[MEMBER]).await;
    for name in ["open", "complete"] {
        let is_taken = |it: Option<&serde_json::Value>| {
            it.is_some_and(|it| it["spec"]["agentID"] == "another")
        };
        fleet
            .until(MEMBER, &record(name), "it is taken over", is_taken)
            .await;
    }
}

crate::cases![
    an_agent_with_another_id_takes_over_what_it_applies,
    several_hubs_share_a_member,
    a_thousand_objects_are_one_watch,
    everything_that_happens_to_a_work_is_an_event,
    numbers_tell_what_was_done,
];
