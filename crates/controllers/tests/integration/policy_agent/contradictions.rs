//! Policies and templates that touch the same objects: what one of them writes is news to the others.

use super::*;

async fn until_state(bed: &Bed, name: &str, state: &str) -> Value {
    let what = format!("{name} is {state}");
    let replicas = bed.replicas();
    bed.world
        .until(what, async || {
            let replica = replicas.get(name).await.unwrap();
            let status = replica.data["status"].clone();
            let is_there = status["compliant"] == state;
            is_there.then_some(status.clone()).ok_or(status.to_string())
        })
        .await
}

const UPDATED: &str =
    "Compliant; notification - configmaps [anchor] was updated successfully in namespace default";
const DIFFERS: &str =
    "NonCompliant; violation - configmaps [anchor] found but not as specified in namespace default";

#[tokio::test(start_paused = true)]
async fn templates_that_contradict_each_other_are_reported_and_go_on_reporting() {
    let pairs = [
        (
            ("musthave", json!({"w": "1"})),
            ("musthave", json!({"w": "2"})),
        ),
        (("musthave", json!({"w": "1"})), ("mustnothave", json!({}))),
        (
            ("mustonlyhave", json!({"w": "1"})),
            ("mustonlyhave", json!({"v": "2"})),
        ),
    ];
    for ((one, first), (two, second)) in pairs {
        let bed = Bed::start().await;
        let templates = json!([
            template("one", one, "anchor", first.clone()),
            template("two", two, "anchor", second)
        ]);
        bed.replicate(json!({"remediationAction": "enforce", "policy-templates": templates}))
            .await;
        // One of them is not as it should be, no matter which writes last.
        let status = until_state(&bed, REPLICA, "NonCompliant").await;
        let text = format!("{one} and {two}: {status:#}");
        let details = status["details"].as_array().unwrap();
        let found = details.iter().map(|it| it["compliant"].as_str().unwrap());
        let found: std::collections::BTreeSet<&str> = found.collect();
        assert_eq!(found, ["Compliant", "NonCompliant"].into(), "{text}");
        // They try again now and then, not all the time.
        let count = async || {
            let events = bed.on_member("v1", "Event", MEMBER);
            let events = events.list(&kube::api::ListParams::default()).await;
            events.unwrap().items.len()
        };
        bed.world.pass(30).await;
        let before = count().await;
        bed.world.pass(60).await;
        let during = count().await - before;
        assert!((4..=120).contains(&during), "{during} events, {text}");
        // Once they agree, everything is well, and said so.
        let agree = json!([template("one", one, "anchor", first)]);
        bed.change(json!({"spec": {"policy-templates": agree}}))
            .await;
        until_state(&bed, REPLICA, "Compliant").await;
        bed.until_data("anchor", Some(json!({"w": "1"}))).await;
        bed.world.pass(60).await;
        until_state(&bed, REPLICA, "Compliant").await;
    }
}

#[tokio::test(start_paused = true)]
async fn what_one_policy_writes_is_news_to_another() {
    let bed = Bed::start().await;
    let looks = json!([template("looks", "musthave", "anchor", json!({"w": "9"}))]);
    bed.replicate_as(
        "fleet.looks",
        json!({"remediationAction": "inform", "policy-templates": looks}),
    )
    .await;
    until_state(&bed, "fleet.looks", "NonCompliant").await;
    let templates = json!([template("t", "musthave", "anchor", json!({"w": "9"}))]);
    bed.replicate(json!({"remediationAction": "enforce", "policy-templates": templates}))
        .await;
    until_state(&bed, "fleet.looks", "Compliant").await;
    let other = json!([template("t", "musthave", "anchor", json!({"w": "8"}))]);
    bed.change(json!({"spec": {"policy-templates": other}}))
        .await;
    until_state(&bed, "fleet.looks", "NonCompliant").await;
    // Two that want different things do not keep the member busy, and neither claims to have won.
    let enforce = json!({"spec": {"remediationAction": "enforce"}});
    let params = PatchParams::default();
    let replicas = bed.replicas();
    replicas
        .patch("fleet.looks", &params, &Patch::Merge(enforce))
        .await
        .unwrap();
    bed.until_reported(0, DIFFERS).await;
    bed.until_reported(0, UPDATED).await;
    bed.world.pass(60).await;
    let version = async || {
        let anchor = bed.config_maps().get("anchor").await.unwrap();
        let version = anchor.metadata.resource_version.unwrap();
        version.parse::<u64>().unwrap()
    };
    let before = version().await;
    bed.world.pass(60).await;
    let changes = version().await - before;
    assert!((1..2000).contains(&changes), "{changes}");
    let mut states = Vec::new();
    for name in ["fleet.looks", REPLICA] {
        let replica = replicas.get(name).await.unwrap();
        states.push(replica.data["status"]["compliant"].clone());
    }
    assert!(states.contains(&json!("NonCompliant")), "{states:?}");
}

#[tokio::test(start_paused = true)]
async fn a_policy_follows_the_policy_that_it_depends_on() {
    let bed = Bed::start().await;
    let upper = json!([template("upper", "musthave", "upper", json!({}))]);
    let dependencies = json!([{"apiVersion": POLICY_API, "kind": "Policy",
        "name": REPLICA, "namespace": "", "compliance": "Compliant"}]);
    bed.replicate_as(
        "fleet.upper",
        json!({"remediationAction": "enforce", "policy-templates": upper,
            "dependencies": dependencies}),
    )
    .await;
    until_state(&bed, "fleet.upper", "Pending").await;
    let base = json!([template("base", "musthave", "anchor", json!({}))]);
    bed.replicate(json!({"remediationAction": "inform", "policy-templates": base}))
        .await;
    until_state(&bed, REPLICA, "NonCompliant").await;
    until_state(&bed, "fleet.upper", "Pending").await;
    bed.create_config_map("anchor", json!({})).await;
    until_state(&bed, "fleet.upper", "Compliant").await;
    bed.until_data("upper", Some(Value::Null)).await;
}

#[tokio::test(start_paused = true)]
async fn a_template_may_depend_on_one_that_comes_after_it() {
    let bed = Bed::start().await;
    let base = template("base", "musthave", "anchor", json!({}));
    let upper = template_after_base("upper");
    bed.replicate(json!({"remediationAction": "enforce", "policy-templates": [upper, base]}))
        .await;
    until_state(&bed, REPLICA, "Compliant").await;
    bed.until_data("upper", Some(Value::Null)).await;
    // It waits again when that one is gone.
    bed.change(json!({"spec": {"policy-templates": [template_after_base("upper")]}}))
        .await;
    until_state(&bed, REPLICA, "Pending").await;
}

#[tokio::test(start_paused = true)]
async fn what_is_found_after_a_restart_is_newer_than_what_was_reported_before() {
    let bed = Bed::start().await;
    let templates = json!([template("t", "musthave", "anchor", json!({"w": "9"}))]);
    bed.replicate(json!({"remediationAction": "inform", "policy-templates": templates}))
        .await;
    bed.until_message(0, MISSING).await;
    // The agent before had a clock that was a minute ahead.
    let ahead = bed.world.clock.now() + Duration::from_mins(1);
    let name = format!("{REPLICA}.{:x}", ahead.as_nanosecond());
    let history = json!([{"lastTimestamp": "2026-01-01T00:01:00Z", "eventName": name,
        "message": "Compliant; notification - as it was then"}]);
    let details =
        json!([{"templateMeta": {"name": "t"}, "compliant": "Compliant", "history": history}]);
    let status = Patch::Merge(json!({"status": {"compliant": "Compliant", "details": details}}));
    let params = PatchParams::default();
    let replicas = bed.replicas();
    replicas
        .patch_status(REPLICA, &params, &status)
        .await
        .unwrap();
    let replica = bed.until_message(0, MISSING).await;
    assert_eq!(replica["status"]["compliant"], "NonCompliant");
}
