//! Policies on a member that the hub knows nothing of.

use super::*;

fn alone(action: &str, data: Value) -> Value {
    json!({
        "apiVersion": POLICY_API, "kind": "ConfigurationPolicy",
        "metadata": {"name": "alone", "namespace": MEMBER},
        "spec": {
            "remediationAction": action, "severity": "low", "pruneObjectBehavior": "DeleteIfCreated",
            "object-templates": [{
                "complianceType": "musthave",
                "objectDefinition": {
                    "apiVersion": "v1", "kind": "ConfigMap",
                    "metadata": {"name": "anchor", "namespace": "default"}, "data": data,
                },
            }],
        },
    })
}

#[tokio::test(start_paused = true)]
async fn a_policy_that_stands_alone_is_evaluated_where_it_is() {
    let bed = Bed::start().await;
    // Any policy of the hub brings the kind with it.
    let other = template("t", "mustnothave", "weed", json!({}));
    bed.replicate(json!({"remediationAction": "inform", "policy-templates": [other]}))
        .await;
    bed.until_message(
        0,
        "Compliant; notification - configmaps [weed] missing as expected in namespace default",
    )
    .await;
    let policies = bed.on_member(POLICY_API, "ConfigurationPolicy", MEMBER);
    let object = serde_json::from_value(alone("inform", json!({"w": "9"}))).unwrap();
    let params = PostParams::default();
    policies.create(&params, &object).await.unwrap();
    let until = async |state: &str| {
        bed.world
            .until(format!("it is {state}"), async || {
                let found = policies.get("alone").await.unwrap();
                let status = found.data["status"].clone();
                let is_there = status["compliant"] == state;
                is_there.then_some(status.clone()).ok_or(status.to_string())
            })
            .await
    };
    let status = until("NonCompliant").await;
    assert_eq!(status["history"][0]["message"], MISSING);
    bed.until_data("anchor", None).await;
    let patch = Patch::Merge(json!({"spec": {"remediationAction": "enforce"}}));
    let params = PatchParams::default();
    policies.patch("alone", &params, &patch).await.unwrap();
    bed.until_data("anchor", Some(json!({"w": "9"}))).await;
    until("Compliant").await;
    let drift = Patch::Merge(json!({"data": {"w": "1"}}));
    let params = PatchParams::default();
    let maps = bed.config_maps();
    maps.patch("anchor", &params, &drift).await.unwrap();
    bed.until_data("anchor", Some(json!({"w": "9"}))).await;
    // Nobody reads compliance events of such policies.
    let events = bed.on_member("v1", "Event", MEMBER);
    let events = events.list(&kube::api::ListParams::default()).await;
    let is_about_it = |event: &DynamicObject| event.data["reason"] == "policy: cluster1/alone";
    assert!(!events.unwrap().iter().any(is_about_it));
    let params = DeleteParams::default();
    policies.delete("alone", &params).await.unwrap();
    bed.until_data("anchor", None).await;
}

/// A member that lets its agent look, but define nothing.
#[tokio::test(start_paused = true)]
async fn an_agent_that_may_not_keep_policies_says_so() {
    let bed = Bed::start_as(Identity::authenticated("agent", [])).await;
    let templates = json!([template("t", "musthave", "anchor", json!({"w": "9"}))]);
    bed.replicate(json!({"remediationAction": "enforce", "policy-templates": templates}))
        .await;
    let found = bed
        .world
        .until("it says why".to_owned(), async || {
            let replica = bed.replicas().get(REPLICA).await.unwrap();
            let message = replica.data["status"]["details"][0]["history"][0]["message"].clone();
            let text = message.as_str().unwrap_or_default().to_owned();
            let is_said = text.starts_with("NonCompliant; template-error; ");
            is_said
                .then_some(text)
                .ok_or(replica.data["status"].to_string())
        })
        .await;
    assert!(
        found.contains("the agent of cluster cluster1 cannot evaluate policies: ")
            && found.contains("forbidden"),
        "{found}"
    );
    bed.world.pass(120).await;
    let replica = bed.replicas().get(REPLICA).await.unwrap();
    let history = &replica.data["status"]["details"][0]["history"];
    assert_eq!(history.as_array().unwrap().len(), 1, "once is enough");
}
