//! Works are applied, kept, pruned and removed.

use crate::fleet::*;
use bellwether_apiserver::HUB;
use serde_json::json;

async fn a_config_map_reaches_the_member_and_the_hub_knows(fleet: &mut Fleet) {
    let work = work("w", json!([config_map("a", "1")]));
    fleet.create(HUB, work.clone()).await;
    let seen = fleet.until_condition(&work, "Applied", "True").await;
    let object = fleet.get(MEMBER, &config_map("a", "1")).await.unwrap();
    assert_eq!(object["data"], json!({"key": "1"}));
    let record = fleet.get(MEMBER, &record("w")).await.unwrap();
    assert_eq!(
        object["metadata"]["ownerReferences"][0]["uid"],
        record["metadata"]["uid"]
    );
    assert_eq!(
        record["status"]["appliedResources"],
        json!([{"group": "", "version": "v1", "resource": "configmaps", "namespace": "default",
            "name": "a", "uid": object["metadata"]["uid"]}])
    );
    assert_eq!(
        seen["metadata"]["finalizers"],
        json!(["cluster.open-cluster-management.io/manifest-work-cleanup"])
    );
    let applied = condition(&seen["status"], "Applied");
    assert_eq!(applied["reason"], "AppliedManifestWorkComplete");
    assert_eq!(applied["message"], "Apply manifest work complete");
    assert_eq!(applied["observedGeneration"], 1);
    let available = manifest_condition(&seen, 0, "Available");
    assert_eq!(available["reason"], "ResourceAvailable");
    assert_eq!(available.get("observedGeneration"), None);
}

async fn people_can_read_what_happened_to_a_work(fleet: &mut Fleet) {
    let work = work("w", json!([config_map("a", "1")]));
    fleet.create(HUB, work.clone()).await;
    fleet.until_condition(&work, "Applied", "True").await;
    fleet.pass(1000).await;
    let path = format!("/api/v1/namespaces/{MEMBER}/events");
    let events = fleet.list(HUB, &path).await;
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(events[0]["reason"], "Applied");
    assert_eq!(events[0]["involvedObject"]["kind"], "ManifestWork");
    assert_eq!(events[0]["message"], "applied 1 object of generation 1");
}

async fn a_work_takes_two_writes_on_the_hub_and_three_requests_on_the_member(fleet: &mut Fleet) {
    let first = work("first", json!([config_map("a", "1")]));
    fleet.create(HUB, first.clone()).await;
    fleet.until_condition(&first, "Applied", "True").await;
    fleet.pass(1000).await;
    let (hub, member) = (fleet.hub_counts.writes(), fleet.member_counts.all());
    let (hub_all, writes) = (fleet.hub_counts.all(), fleet.member_counts.writes());
    let second = work("second", json!([config_map("b", "1")]));
    fleet.create(HUB, second.clone()).await;
    fleet.until_condition(&second, "Applied", "True").await;
    fleet.pass(1000).await;
    assert_eq!(fleet.hub_counts.writes() - hub, 2);
    assert_eq!(fleet.hub_counts.all() - hub_all, 2);
    assert_eq!(fleet.member_counts.writes() - writes, 3);
    assert_eq!(fleet.member_counts.all() - member, 3);
}

async fn changes_of_others_are_undone_within_a_second(fleet: &mut Fleet) {
    let work = work("w", json!([config_map("a", "1"), deployment("web", 2)]));
    fleet.create(HUB, work.clone()).await;
    fleet.until_condition(&work, "Applied", "True").await;
    fleet.pass(1000).await;
    fleet
        .merge(
            MEMBER,
            &config_map("a", ""),
            json!({"data": {"key": "2", "more": "x"}}),
        )
        .await;
    fleet
        .merge(
            MEMBER,
            &deployment("web", 0),
            json!({"spec": {"replicas": 7}}),
        )
        .await;
    fleet.pass(900).await;
    let object = fleet.get(MEMBER, &config_map("a", "")).await.unwrap();
    assert_eq!(object["data"], json!({"key": "1"}));
    let object = fleet.get(MEMBER, &deployment("web", 0)).await.unwrap();
    assert_eq!(object["spec"]["replicas"], 2);
    fleet.delete(MEMBER, &config_map("a", "")).await;
    fleet.pass(900).await;
    assert!(fleet.get(MEMBER, &config_map("a", "")).await.is_some());
    assert_eq!(fleet.agents.as_ref().unwrap().metrics().repairs.get(), 3);
}

async fn two_versions_of_a_kind_are_no_changes_of_others(fleet: &mut Fleet) {
    let scaler = |version: &str, name: &str| {
        json!({"apiVersion": format!("autoscaling/{version}"), "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": name, "namespace": "default"}, "spec": {"maxReplicas": 3,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}})
    };
    let works = [
        work("new", json!([scaler("v2", "a")])),
        work("old", json!([scaler("v1", "b")])),
    ];
    for work in &works {
        fleet.create(HUB, work.clone()).await;
        fleet.until_condition(work, "Applied", "True").await;
    }
    for name in ["a", "b"] {
        let label = json!({"metadata": {"labels": {"theirs": "yes"}}});
        fleet.merge(MEMBER, &scaler("v2", name), label).await;
    }
    fleet.pass(1000).await;
    let repairs = |fleet: &Fleet| fleet.agents.as_ref().unwrap().metrics().repairs.get();
    assert_eq!(repairs(fleet), 0);
    let change = json!({"spec": {"maxReplicas": 9}});
    fleet.merge(MEMBER, &scaler("v2", "b"), change).await;
    fleet
        .until(MEMBER, &scaler("v1", "b"), "it is repaired", |it| {
            it.is_some_and(|it| it["spec"]["maxReplicas"] == 3)
        })
        .await;
    fleet.pass(100).await;
    assert_eq!(repairs(fleet), 1);
}

async fn what_a_work_no_longer_has_is_removed(fleet: &mut Fleet) {
    let work = work("w", json!([config_map("a", "1"), config_map("b", "1")]));
    fleet.create(HUB, work.clone()).await;
    fleet.until_condition(&work, "Applied", "True").await;
    let change =
        json!({"spec": {"workload": {"manifests": [config_map("b", "2"), config_map("c", "1")]}}});
    fleet.merge(HUB, &work, change).await;
    fleet.until_current(&work, "Applied", "True").await;
    fleet.until_gone(MEMBER, &config_map("a", "")).await;
    assert_eq!(
        fleet.get(MEMBER, &config_map("b", "")).await.unwrap()["data"]["key"],
        "2"
    );
    let record = fleet.get(MEMBER, &record("w")).await.unwrap();
    let names: Vec<_> = record["status"]["appliedResources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["name"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(names, ["b", "c"]);
}

async fn a_work_that_is_removed_takes_its_objects_along(fleet: &mut Fleet) {
    let work = work("w", json!([config_map("a", "1")]));
    fleet.create(HUB, work.clone()).await;
    fleet.until_condition(&work, "Applied", "True").await;
    fleet.delete(HUB, &work).await;
    fleet.until_gone(HUB, &work).await;
    assert!(fleet.get(MEMBER, &config_map("a", "")).await.is_none());
    assert!(fleet.get(MEMBER, &record("w")).await.is_none());
}

async fn a_removal_that_hangs_says_what_it_waits_for(fleet: &mut Fleet) {
    let mut map = config_map("a", "1");
    map["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let work = work("w", json!([map, config_map("b", "1")]));
    fleet.create(HUB, work.clone()).await;
    fleet.until_condition(&work, "Applied", "True").await;
    fleet.delete(HUB, &work).await;
    let seen = fleet.until_condition(&work, "Deleting", "True").await;
    let deleting = condition(&seen["status"], "Deleting");
    assert_eq!(deleting["reason"], "WorkDeleting");
    assert_eq!(
        deleting["message"],
        "ManifestWork is being deleted: waiting for configmaps default/a with finalizers example.com/hold"
    );
    assert!(fleet.get(MEMBER, &config_map("b", "")).await.is_none());
    fleet
        .merge(
            MEMBER,
            &config_map("a", ""),
            json!({"metadata": {"finalizers": null}}),
        )
        .await;
    fleet.until_gone(HUB, &work).await;
}

async fn one_bad_manifest_blocks_nothing_but_itself(fleet: &mut Fleet) {
    let unknown =
        json!({"apiVersion": "zoo.example/v1", "kind": "Bird", "metadata": {"name": "x"}});
    let mut lost = config_map("lost", "1");
    lost["metadata"]["namespace"] = json!("nowhere");
    let work = work("w", json!([unknown, lost, config_map("a", "1")]));
    fleet.create(HUB, work.clone()).await;
    let seen = fleet.until_condition(&work, "Applied", "False").await;
    assert!(fleet.get(MEMBER, &config_map("a", "")).await.is_some());
    assert_eq!(
        manifest_condition(&seen, 0, "Applied")["message"],
        "Failed to apply manifest: the server doesn't have a resource type \"Bird\""
    );
    assert_eq!(
        manifest_condition(&seen, 1, "Applied")["message"],
        "Failed to apply manifest: namespaces \"nowhere\" not found"
    );
    assert_eq!(manifest_condition(&seen, 2, "Applied")["status"], "True");
    fleet
        .create(
            MEMBER,
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "nowhere"}}),
        )
        .await;
    fleet.pass(120_000).await;
    let seen = fleet.get(HUB, &work).await.unwrap();
    assert_eq!(manifest_condition(&seen, 1, "Applied")["status"], "True");
}

/// A manifest that the member refuses as invalid is sent again now and then, not as one is that it could not take just now.
async fn what_the_member_refuses_is_not_sent_again_and_again(fleet: &mut Fleet) {
    let mut invalid = deployment("web", 1);
    invalid["spec"]["replicas"] = json!(-1);
    let work = work("w", json!([invalid]));
    fleet.create(HUB, work.clone()).await;
    let seen = fleet.until_condition(&work, "Applied", "False").await;
    let message = manifest_condition(&seen, 0, "Applied")["message"].clone();
    assert!(message.to_string().contains("spec.replicas"), "{message}");
    let before = fleet.member_counts.writes();
    fleet.pass(10_000).await;
    let soon = fleet.member_counts.writes() - before;
    assert!(soon <= 4, "{soon} writes in ten seconds");
    // Others may have changed what refuses it: it is not given up.
    fleet.pass(600_000).await;
    let later = fleet.member_counts.writes() - before - soon;
    assert!((1..=10).contains(&later), "{later} writes in ten minutes");
}

async fn a_custom_resource_comes_with_its_definition_in_one_pass(fleet: &mut Fleet) {
    let definition = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "birds.zoo.example"},
        "spec": {"group": "zoo.example", "scope": "Namespaced",
            "names": {"kind": "Bird", "plural": "birds", "singular": "bird", "listKind": "BirdList"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]},
    });
    let bird = json!({"apiVersion": "zoo.example/v1", "kind": "Bird",
        "metadata": {"name": "robin", "namespace": "default"}, "spec": {"song": "long"}});
    let work = work("w", json!([bird, definition]));
    fleet.create(HUB, work.clone()).await;
    let seen = fleet
        .until(HUB, &work, "anything is said", |work| {
            work.is_some_and(|work| !condition(&work["status"], "Applied").is_null())
        })
        .await
        .unwrap();
    assert_eq!(
        condition(&seen["status"], "Applied")["status"],
        "True",
        "{seen:#}"
    );
    assert!(fleet.get(MEMBER, &bird).await.is_some());
}

async fn an_agent_that_starts_again_reads_one_list_a_kind_and_writes_nothing(fleet: &mut Fleet) {
    for number in 0..5 {
        let work = work(
            &format!("w{number}"),
            json!([
                config_map(&format!("m{number}"), "1"),
                deployment(&format!("d{number}"), 1)
            ]),
        );
        fleet.create(HUB, work.clone()).await;
        fleet.until_condition(&work, "Applied", "True").await;
    }
    fleet.kill_agents();
    let (hub, member) = (fleet.hub_counts.writes(), fleet.member_counts.writes());
    let reads = fleet.member_counts.reads();
    fleet.start_agents(&[MEMBER]).await;
    fleet.pass(5000).await;
    assert_eq!(fleet.hub_counts.writes() - hub, 0);
    assert_eq!(fleet.member_counts.writes() - member, 0);
    // Records, kinds of three groups, and a list of each kind.
    assert!(
        fleet.member_counts.reads() - reads <= 12,
        "{}",
        fleet.member_counts.reads() - reads
    );
    fleet
        .merge(MEMBER, &config_map("m3", ""), json!({"data": {"key": "2"}}))
        .await;
    fleet.pass(900).await;
    assert_eq!(
        fleet.get(MEMBER, &config_map("m3", "")).await.unwrap()["data"]["key"],
        "1"
    );
}

async fn nothing_is_asked_while_nothing_changes(fleet: &mut Fleet) {
    let work = work("w", json!([config_map("a", "1"), deployment("web", 2)]));
    fleet.create(HUB, work.clone()).await;
    fleet.until_condition(&work, "Applied", "True").await;
    fleet.pass(10_000).await;
    let (hub, member) = (fleet.hub_counts.all(), fleet.member_counts.all());
    fleet.pass(200_000).await;
    assert_eq!(fleet.hub_counts.all() - hub, 0);
    assert_eq!(fleet.member_counts.all() - member, 0);
}

crate::cases![
    a_config_map_reaches_the_member_and_the_hub_knows,
    people_can_read_what_happened_to_a_work,
    a_work_takes_two_writes_on_the_hub_and_three_requests_on_the_member,
    changes_of_others_are_undone_within_a_second,
    two_versions_of_a_kind_are_no_changes_of_others,
    what_a_work_no_longer_has_is_removed,
    a_work_that_is_removed_takes_its_objects_along,
    a_removal_that_hangs_says_what_it_waits_for,
    one_bad_manifest_blocks_nothing_but_itself,
    what_the_member_refuses_is_not_sent_again_and_again,
    a_custom_resource_comes_with_its_definition_in_one_pass,
    an_agent_that_starts_again_reads_one_list_a_kind_and_writes_nothing,
    nothing_is_asked_while_nothing_changes,
];
