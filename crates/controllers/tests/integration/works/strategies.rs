//! The ways in which objects are brought to a member, and who owns them there.

use crate::fleet::*;
use bellwether_apiserver::HUB;
use serde_json::{Value, json};

fn strategy(resource: (&str, &str), name: &str, strategy: Value) -> Value {
    json!({"manifestConfigs": [{
        "resourceIdentifier": {"group": resource.0, "resource": resource.1, "name": name, "namespace": "default"},
        "updateStrategy": strategy}]})
}

async fn create_only_leaves_changes_and_makes_again_what_is_gone(fleet: &mut Fleet) {
    let spec = strategy(("", "configmaps"), "a", json!({"type": "CreateOnly"}));
    let work = work_with("w", json!([config_map("a", "1")]), spec);
    fleet.create(HUB, work.clone()).await;
    fleet.until_condition(&work, "Applied", "True").await;
    fleet
        .merge(MEMBER, &config_map("a", ""), json!({"data": {"key": "2"}}))
        .await;
    fleet.pass(5000).await;
    assert_eq!(
        fleet.get(MEMBER, &config_map("a", "")).await.unwrap()["data"]["key"],
        "2"
    );
    fleet.delete(MEMBER, &config_map("a", "")).await;
    fleet
        .until(MEMBER, &config_map("a", ""), "it is back", |it| {
            it.is_some()
        })
        .await;
}

async fn read_only_only_looks(fleet: &mut Fleet) {
    let mut spec = strategy(("", "configmaps"), "a", json!({"type": "ReadOnly"}));
    spec["manifestConfigs"][0]["feedbackRules"] =
        json!([{"type": "JSONPaths", "jsonPaths": [{"name": "key", "path": ".data.key"}]}]);
    let work = work_with("w", json!([config_map("a", "1")]), spec);
    fleet.create(HUB, work.clone()).await;
    let seen = fleet.until_condition(&work, "Applied", "True").await;
    assert_eq!(manifest_condition(&seen, 0, "Available")["status"], "False");
    assert!(fleet.get(MEMBER, &config_map("a", "")).await.is_none());
    fleet.create(MEMBER, config_map("a", "theirs")).await;
    let seen = fleet.until_condition(&work, "Available", "True").await;
    let value = &seen["status"]["resourceStatus"]["manifests"][0]["statusFeedback"]["values"][0];
    assert_eq!(value["fieldValue"]["string"], "theirs");
    fleet.delete(HUB, &work).await;
    fleet.until_gone(HUB, &work).await;
    assert!(fleet.get(MEMBER, &config_map("a", "")).await.is_some());
}

async fn server_side_apply_shares_objects_and_tells_conflicts(fleet: &mut Fleet) {
    let spec = strategy(
        ("apps", "deployments"),
        "web",
        json!({"type": "ServerSideApply"}),
    );
    let work = work_with("w", json!([deployment("web", 2)]), spec);
    fleet.create(HUB, work.clone()).await;
    fleet.until_condition(&work, "Applied", "True").await;
    let object = fleet.get(MEMBER, &deployment("web", 0)).await.unwrap();
    assert_eq!(
        object["metadata"]["ownerReferences"][0]["kind"],
        "AppliedManifestWork"
    );
    let entry = &object["metadata"]["managedFields"][0];
    assert_eq!(
        (entry["manager"].as_str(), entry["operation"].as_str()),
        (Some("work-agent"), Some("Apply"))
    );
    // Somebody else adds a label, and takes the replicas.
    let path = "/apis/apps/v1/namespaces/default/deployments/web?fieldManager=hpa&force=true";
    let theirs = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "labels": {"x": "y"}},
        "spec": {"replicas": 5}});
    fleet
        .send(
            MEMBER,
            "PATCH",
            path,
            Some(&theirs),
            "application/apply-patch+yaml",
        )
        .await
        .unwrap();
    let seen = fleet.until_condition(&work, "Applied", "False").await;
    let message = manifest_condition(&seen, 0, "Applied")["message"]
        .as_str()
        .unwrap()
        .to_owned();
    assert!(
        message.starts_with("Failed to apply manifest: Apply failed with 1 conflict"),
        "{message}"
    );
    let object = fleet.get(MEMBER, &deployment("web", 0)).await.unwrap();
    assert_eq!(object["spec"]["replicas"], 5);
}

async fn a_work_may_turn_to_server_side_apply_and_back(fleet: &mut Fleet) {
    let of = |name: &str, replicas: i64| {
        let spec = strategy(("apps", "deployments"), "web", json!({"type": name}));
        work_with("w", json!([deployment("web", replicas)]), spec)
    };
    let work = of("Update", 1);
    fleet.create(HUB, work.clone()).await;
    fleet.until_condition(&work, "Applied", "True").await;
    for (name, replicas) in [
        ("ServerSideApply", 2),
        ("Update", 3),
        ("ServerSideApply", 4),
    ] {
        let change = json!({"spec": of(name, replicas)["spec"]});
        fleet.merge(HUB, &work, change).await;
        fleet.until_current(&work, "Applied", "True").await;
        let object = fleet.get(MEMBER, &deployment("web", 0)).await.unwrap();
        assert_eq!(object["spec"]["replicas"], replicas, "{name}");
    }
}

async fn fields_of_others_are_none_of_our_business(fleet: &mut Fleet) {
    let spec = strategy(
        ("", "configmaps"),
        "a",
        json!({"type": "ServerSideApply", "serverSideApply": {"force": true}}),
    );
    let work = work_with("w", json!([config_map("a", "1")]), spec);
    fleet.create(HUB, work.clone()).await;
    fleet.until_condition(&work, "Applied", "True").await;
    for value in ["1", "2", "3"] {
        let theirs = json!({"data": {"theirs": value}});
        fleet.merge(MEMBER, &config_map("a", ""), theirs).await;
        fleet.pass(100).await;
    }
    let repairs = |fleet: &Fleet| fleet.agents.as_ref().unwrap().metrics().repairs.get();
    assert_eq!(repairs(fleet), 0);
    let ours = json!({"data": {"key": "2"}});
    fleet.merge(MEMBER, &config_map("a", ""), ours).await;
    let object = fleet
        .until(MEMBER, &config_map("a", ""), "ours is back", |it| {
            it.is_some_and(|it| it["data"]["key"] == "1")
        })
        .await
        .unwrap();
    assert_eq!(object["data"]["theirs"], "3");
    fleet.pass(100).await;
    assert_eq!(repairs(fleet), 1);
}

async fn ignored_fields_are_left_to_the_member_and_keep_their_value(fleet: &mut Fleet) {
    let ignore = json!({"type": "ServerSideApply", "serverSideApply": {"force": true, "ignoreFields": [
        {"condition": "OnSpokePresent", "jsonPaths": [".spec.replicas"]}]}});
    let spec = strategy(("apps", "deployments"), "web", ignore);
    let work = work_with("w", json!([deployment("web", 2)]), spec);
    fleet.create(HUB, work.clone()).await;
    fleet.until_condition(&work, "Applied", "True").await;
    // A change of the work leaves the field, which nobody else has taken, as it is.
    let mut changed = deployment("web", 9);
    changed["metadata"]["labels"] = json!({"v": "2"});
    fleet
        .merge(
            HUB,
            &work,
            json!({"spec": {"workload": {"manifests": [changed]}}}),
        )
        .await;
    fleet.until_current(&work, "Applied", "True").await;
    let object = fleet.get(MEMBER, &deployment("web", 0)).await.unwrap();
    assert_eq!(object["metadata"]["labels"]["v"], "2");
    assert_eq!(object["spec"]["replicas"], 2);
    // Somebody else changes it, and it stays so.
    fleet
        .merge(
            MEMBER,
            &deployment("web", 0),
            json!({"spec": {"replicas": 7}}),
        )
        .await;
    fleet.pass(5000).await;
    let object = fleet.get(MEMBER, &deployment("web", 0)).await.unwrap();
    assert_eq!(object["spec"]["replicas"], 7);
    let bad = json!({"spec": {"manifestConfigs": strategy(("apps", "deployments"), "web",
        json!({"type": "ServerSideApply", "serverSideApply": {"ignoreFields": [
            {"condition": "OnSpokePresent", "jqPathExpressions": [".spec +"]}]}}))["manifestConfigs"]}});
    fleet.merge(HUB, &work, bad).await;
    let seen = fleet.until_current(&work, "Applied", "False").await;
    let applied = manifest_condition(&seen, 0, "Applied");
    assert_eq!(applied["reason"], "AppliedManifestSSAIgnoreFieldError");
    assert!(applied["message"].as_str().unwrap().starts_with(
        "Failed to process ignoreFields: JQ expression error in '.spec +': failed to parse jq expression:"
    ));
}

async fn what_cannot_be_applied_is_not_there(fleet: &mut Fleet) {
    let wrong = json!({"type": "ServerSideApply", "serverSideApply": {"ignoreFields": [
        {"condition": "OnSpokePresent", "jsonPointers": ["data"]}]}});
    let spec = strategy(("", "configmaps"), "a", wrong);
    let work = work_with("w", json!([config_map("a", "1")]), spec);
    fleet.create(HUB, work.clone()).await;
    let seen = fleet.until_condition(&work, "Available", "False").await;
    let said = |name: &str| manifest_condition(&seen, 0, name)["reason"].clone();
    assert_eq!(said("Applied"), "AppliedManifestSSAIgnoreFieldError");
    assert_eq!(said("Available"), "ResourceNotAvailable");
}

async fn objects_of_two_works_stay_until_both_are_gone(fleet: &mut Fleet) {
    let (one, two) = (
        work("one", json!([config_map("a", "1")])),
        work("two", json!([config_map("a", "1")])),
    );
    for work in [&one, &two] {
        fleet.create(HUB, work.clone()).await;
        fleet.until_condition(work, "Applied", "True").await;
    }
    let object = fleet.get(MEMBER, &config_map("a", "")).await.unwrap();
    assert_eq!(
        object["metadata"]["ownerReferences"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    fleet.delete(HUB, &one).await;
    fleet.until_gone(HUB, &one).await;
    let object = fleet.get(MEMBER, &config_map("a", "")).await.unwrap();
    assert_eq!(
        object["metadata"]["ownerReferences"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    fleet.delete(HUB, &two).await;
    fleet.until_gone(HUB, &two).await;
    assert!(fleet.get(MEMBER, &config_map("a", "")).await.is_none());
}

async fn an_object_that_one_work_takes_away_is_made_again_for_another(fleet: &mut Fleet) {
    let orphan = json!({"deleteOption": {"propagationPolicy": "Orphan"}});
    let keeper = work_with("keeper", json!([config_map("a", "1")]), orphan);
    let owner = work("owner", json!([config_map("a", "1")]));
    for work in [&keeper, &owner] {
        fleet.create(HUB, work.clone()).await;
        fleet.until_condition(work, "Applied", "True").await;
    }
    let before = fleet.get(MEMBER, &config_map("a", "")).await.unwrap();
    fleet.delete(HUB, &owner).await;
    fleet.until_gone(HUB, &owner).await;
    fleet
        .until(MEMBER, &config_map("a", ""), "it is made again", |it| {
            it.is_some_and(|it| it["metadata"]["uid"] != before["metadata"]["uid"])
        })
        .await;
}

async fn orphans_stay(fleet: &mut Fleet) {
    let keep = json!({"deleteOption": {"propagationPolicy": "SelectivelyOrphan", "selectivelyOrphans": {"orphaningRules": [
        {"group": "", "resource": "configmaps", "namespace": "default", "name": "a"}]}}});
    let work = work_with(
        "w",
        json!([config_map("a", "1"), config_map("b", "1")]),
        keep,
    );
    fleet.create(HUB, work.clone()).await;
    fleet.until_condition(&work, "Applied", "True").await;
    fleet.delete(HUB, &work).await;
    fleet.until_gone(HUB, &work).await;
    assert!(fleet.get(MEMBER, &config_map("a", "")).await.is_some());
    assert!(fleet.get(MEMBER, &config_map("b", "")).await.is_none());
}

async fn an_executor_needs_rights_of_its_own(fleet: &mut Fleet) {
    let executor = json!({"executor": {"subject": {"type": "ServiceAccount",
        "serviceAccount": {"namespace": "default", "name": "deployer"}}}});
    let work = work_with("w", json!([config_map("a", "1")]), executor);
    fleet.create(HUB, work.clone()).await;
    let seen = fleet.until_condition(&work, "Applied", "False").await;
    assert_eq!(
        manifest_condition(&seen, 0, "Applied")["message"],
        "Failed to apply manifest: not allowed to apply the resource  configmaps, default a, will try again in 1m0s"
    );
    assert!(fleet.get(MEMBER, &config_map("a", "")).await.is_none());
    fleet.create(MEMBER, json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": "d", "namespace": "default"}, "rules": [{"apiGroups": [""], "resources": ["configmaps"],
        "verbs": ["create", "update", "patch", "get", "delete"]}]})).await;
    fleet
        .create(
            MEMBER,
            json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": "d", "namespace": "default"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "d"},
        "subjects": [{"kind": "ServiceAccount", "name": "deployer", "namespace": "default"}]}),
        )
        .await;
    fleet.pass(61_000).await;
    fleet.until_condition(&work, "Applied", "True").await;
}

/// The strategy writes nothing, and yet the executor has to be allowed to.
async fn an_executor_is_asked_whatever_is_written_and_anew_when_the_work_changes(
    fleet: &mut Fleet,
) {
    let executor = |name: &str| {
        json!({"executor": {"subject": {"type": "ServiceAccount",
            "serviceAccount": {"namespace": "default", "name": name}}}})
    };
    let rbac = "rbac.authorization.k8s.io/v1";
    let verbs = json!(["create", "get", "update", "patch", "delete"]);
    let objects = [
        json!({"apiVersion": rbac, "kind": "Role", "metadata": {"name": "d", "namespace": "default"},
            "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": verbs}]}),
        json!({"apiVersion": rbac, "kind": "RoleBinding", "metadata": {"name": "d", "namespace": "default"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "d"},
            "subjects": [{"kind": "ServiceAccount", "name": "trusted", "namespace": "default"}]}),
    ];
    for object in objects {
        fleet.create(MEMBER, object).await;
    }
    let mut spec = strategy(("", "configmaps"), "a", json!({"type": "ReadOnly"}));
    spec["executor"] = executor("stranger")["executor"].clone();
    let work = work_with("w", json!([config_map("a", "1")]), spec);
    fleet.create(HUB, work.clone()).await;
    let seen = fleet.until_condition(&work, "Applied", "False").await;
    assert_eq!(
        manifest_condition(&seen, 0, "Applied")["message"],
        "Failed to apply manifest: not allowed to apply the resource  configmaps, default a, will try again in 1m0s"
    );
    assert_eq!(manifest_condition(&seen, 0, "Available")["status"], "False");
    // Another executor is asked at once, and so is one that comes back.
    let change = json!({"spec": executor("trusted")});
    fleet.merge(HUB, &work, change).await;
    fleet.until_current(&work, "Applied", "True").await;
    let change = json!({"spec": executor("stranger")});
    fleet.merge(HUB, &work, change).await;
    fleet.until_current(&work, "Applied", "False").await;
}

async fn an_executor_gives_no_rights_that_it_does_not_have(fleet: &mut Fleet) {
    let rbac = "rbac.authorization.k8s.io/v1";
    let verbs = json!(["create", "update", "patch", "get", "delete"]);
    let rules = json!([{"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": verbs}]);
    let role = |name: &str, rules: &Value| json!({"apiVersion": rbac, "kind": "Role", "metadata": {"name": name, "namespace": "default"}, "rules": rules});
    fleet.create(MEMBER, role("d", &rules)).await;
    fleet
        .create(
            MEMBER,
            json!({"apiVersion": rbac, "kind": "RoleBinding",
        "metadata": {"name": "d", "namespace": "default"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "d"},
        "subjects": [{"kind": "ServiceAccount", "name": "deployer", "namespace": "default"}]}),
        )
        .await;
    let secrets = json!([{"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]}]);
    let executor = json!({"executor": {"subject": {"type": "ServiceAccount",
        "serviceAccount": {"namespace": "default", "name": "deployer"}}}});
    let manifests = json!([role("greedy", &secrets), role("modest", &rules)]);
    let work = work_with("w", manifests, executor);
    fleet.create(HUB, work.clone()).await;
    let seen = fleet.until_condition(&work, "Applied", "False").await;
    assert_eq!(
        manifest_condition(&seen, 0, "Applied")["message"],
        "Failed to apply manifest: not allowed to apply the resource rbac.authorization.k8s.io roles, default greedy, error: permission escalation, will try again in 1m0s"
    );
    assert_eq!(manifest_condition(&seen, 1, "Applied")["status"], "True");
    let none = json!([]);
    assert!(fleet.get(MEMBER, &role("greedy", &none)).await.is_none());
    assert!(fleet.get(MEMBER, &role("modest", &none)).await.is_some());
}

async fn what_a_lost_work_applied_is_evicted_after_a_while(fleet: &mut Fleet) {
    let work = work("w", json!([config_map("a", "1")]));
    fleet.create(HUB, work.clone()).await;
    fleet.until_condition(&work, "Applied", "True").await;
    fleet.kill_agents();
    fleet
        .merge(HUB, &work, json!({"metadata": {"finalizers": null}}))
        .await;
    fleet.delete(HUB, &work).await;
    fleet.start_agents(&[MEMBER]).await;
    fleet
        .until(MEMBER, &record("w"), "it is marked", |record| {
            record.is_some_and(|record| record["status"]["evictionStartTime"].is_string())
        })
        .await;
    fleet.pass(59 * 60_000).await;
    assert!(fleet.get(MEMBER, &config_map("a", "")).await.is_some());
    fleet.pass(61_000).await;
    fleet.until_gone(MEMBER, &record("w")).await;
    assert!(fleet.get(MEMBER, &config_map("a", "")).await.is_none());
}

/// An embedded hub refuses them; on a real one the agent does, in the same words.
async fn wrong_works_are_refused(fleet: &mut Fleet) {
    let mut nameless = config_map("", "");
    nameless["metadata"] = json!({"name": "", "generateName": "x", "namespace": "default"});
    let large = "x".repeat(520_000);
    let rule = |condition: &str| {
        json!({"manifestConfigs": [{
            "resourceIdentifier": {"resource": "configmaps", "name": "a", "namespace": "default"},
            "conditionRules": [{"condition": condition, "type": "CEL", "celExpressions": ["false"]}]}]})
    };
    let long = "x".repeat(189);
    let twice = json!([config_map("a", ""), config_map("a", "")]);
    let all = [
        (work("none", json!([])), "manifests should not be empty"),
        (
            work("twice", twice),
            "duplicate manifest for resource default/a with resource type v1.ConfigMap",
        ),
        (
            work("nameless", json!([nameless])),
            "name must be set in manifest, generateName must not be set in manifest",
        ),
        (
            work("large", json!([config_map("a", &large)])),
            "the size of manifests is 520102 bytes which exceeds the 512000 limit",
        ),
        (
            work_with("rule", json!([config_map("a", "")]), rule("Available")),
            "the condition Available is set by the agent itself and cannot be concluded by rules",
        ),
        (
            work_with("name", json!([config_map("a", "")]), rule("no name")),
            "\"no name\" cannot be the name of a condition: it consists of letters, digits, '-', '_' \
             and '.', begins and ends with a letter or a digit, and may have a prefix such as \
             'example.com/'",
        ),
        (
            work(&long, json!([config_map("a", "")])),
            "the name of a work has at most 188 characters, this one has 189",
        ),
    ];
    let expressions = |name: &str, expressions: Value| {
        let mut spec = rule("Ready");
        spec["manifestConfigs"][0]["conditionRules"][0]["celExpressions"] = expressions;
        work_with(name, json!([config_map("a", "")]), spec)
    };
    let no_text = "an expression is a text, or an object with the text in its field expression";
    let none = "a rule of type CEL needs at least one expression in celExpressions";
    let all = all.into_iter().chain([
        (expressions("empty", json!([])), none),
        (expressions("number", json!([5])), no_text),
        (expressions("null", json!([null])), no_text),
    ]);
    for (work, words) in all {
        let answer = fleet.try_create(HUB, work.clone()).await;
        if !fleet.is_real() {
            match answer {
                Err(kube::Error::Api(status)) => {
                    assert_eq!(status.code, 400, "{status}");
                    assert!(status.message.ends_with(words), "{status}");
                }
                other => panic!("{other:?}"),
            }
            continue;
        }
        match answer {
            Ok(_) => {}
            // What the definition of the kind can tell, any server refuses.
            Err(kube::Error::Api(status)) if status.code == 422 => {
                assert!(status.message.contains("the agent sets itself"), "{status}");
                continue;
            }
            Err(error) => panic!("{error}"),
        }
        let seen = fleet.until_condition(&work, "Applied", "False").await;
        let manifests = seen["status"]["resourceStatus"]["manifests"].as_array();
        let last = manifests.and_then(|all| all.last());
        let said = match last {
            Some(last) => condition(last, "Applied")["message"].clone(),
            None => condition(&seen["status"], "Applied")["message"].clone(),
        };
        assert!(said.as_str().unwrap().ends_with(words), "{said}");
        assert!(
            fleet.get(MEMBER, &config_map("a", "")).await.is_none() || words.contains("duplicate")
        );
        fleet.delete(HUB, &work).await;
        fleet.until_gone(HUB, &work).await;
    }
}

crate::cases![
    create_only_leaves_changes_and_makes_again_what_is_gone,
    read_only_only_looks,
    server_side_apply_shares_objects_and_tells_conflicts,
    a_work_may_turn_to_server_side_apply_and_back,
    fields_of_others_are_none_of_our_business,
    ignored_fields_are_left_to_the_member_and_keep_their_value,
    what_cannot_be_applied_is_not_there,
    objects_of_two_works_stay_until_both_are_gone,
    an_object_that_one_work_takes_away_is_made_again_for_another,
    orphans_stay,
    an_executor_needs_rights_of_its_own,
    an_executor_is_asked_whatever_is_written_and_anew_when_the_work_changes,
    an_executor_gives_no_rights_that_it_does_not_have,
    what_a_lost_work_applied_is_evicted_after_a_while,
    wrong_works_are_refused,
];
