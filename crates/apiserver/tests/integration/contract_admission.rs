//! Webhooks and policies of the embedded server beside those of a real kube-apiserver, where
//! `KUBEBUILDER_ASSETS` points at one.

use crate::admission_policies::{about_broken_policies, about_policies, prepare_policies};
use crate::common::contract::{Question, ask, both, compare, root};
use crate::common::hook::Hook;
use crate::webhooks::{MAPS, about_webhooks, all_webhooks, configure, map};

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

/// The reviews of one request with what differs from server to server blanked.
pub(crate) fn blanked(hook: &Hook) -> Vec<(String, Value)> {
    let mut asked = hook.asked();
    for (_, review) in &mut asked {
        let request = &mut review["request"];
        request["uid"] = "u".into();
        request["userInfo"] = Value::Null;
        for field in ["object", "oldObject"] {
            let metadata = request[field]["metadata"].as_object_mut();
            for (key, value) in metadata.into_iter().flatten() {
                if matches!(
                    key.as_str(),
                    "uid" | "resourceVersion" | "creationTimestamp"
                ) {
                    *value = "x".into();
                }
                if key == "managedFields" {
                    for entry in value.as_array_mut().into_iter().flatten() {
                        entry["time"] = "t".into();
                    }
                }
            }
        }
    }
    asked
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_api_server_does_the_same() {
    let Some((_real, theirs, _server, ours)) = both().await else {
        return;
    };
    let hook = Hook::start().await;
    let (mutating, validating) = all_webhooks(&hook);
    for client in [&theirs, &ours] {
        configure(client, "Mutating", &mutating).await;
        configure(client, "Validating", &validating).await;
        prepare_policies(client).await;
        // Configurations take effect at a real server after a while.
        let mut denied = root(
            "POST",
            format!("{MAPS}?dryRun=All"),
            map("probe", json!({"by": "deny"})),
        );
        answered(client, &denied, 403).await;
        denied = about_policies().remove(14);
        answered(client, &denied, 422).await;
    }
    let mut questions = about_webhooks();
    // Its message has the uid of the review.
    questions.retain(|question| question.body["metadata"]["name"] != "lie");
    let mut different = compare(&theirs, &ours, &questions).await;
    different.extend(compare(&theirs, &ours, &about_policies()).await);
    different.extend(compare(&theirs, &ours, &about_broken_policies()).await);
    different.extend(compare_reviews(&theirs, &ours, &hook).await);
    assert!(different.is_empty(), "{}", different.join("\n"));
}

/// Waits until a request is answered like this.
pub(crate) async fn answered(client: &kube::Client, question: &Question, expected: u16) {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let (code, _, body) = ask(client, question).await;
        if code == expected {
            return;
        }
        assert!(
            Instant::now() < deadline,
            "{}: {code} {body}",
            question.path
        );
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// What webhooks are sent, for each kind of request.
async fn compare_reviews(theirs: &kube::Client, ours: &kube::Client, hook: &Hook) -> Vec<String> {
    let mut generated = map("x", json!({"by": "count"}));
    generated["metadata"] = json!({"generateName": "gen-", "labels": {"by": "count"}});
    let questions = [
        root(
            "POST",
            format!("{MAPS}?fieldManager=me"),
            map("seen", json!({"by": "allow"})),
        ),
        root("POST", format!("{MAPS}?dryRun=All"), generated),
        root(
            "PATCH",
            format!("{MAPS}/seen?fieldValidation=Strict"),
            json!({"data": {"a": "b"}}),
        ),
        root(
            "PUT",
            format!("{MAPS}/seen"),
            map("seen", json!({"by": "allow"})),
        ),
        root(
            "DELETE",
            format!("{MAPS}/seen?gracePeriodSeconds=0"),
            Value::Null,
        ),
    ];
    let mut different = Vec::new();
    for question in &questions {
        hook.asked();
        ask(theirs, question).await;
        let expected = blanked(hook);
        ask(ours, question).await;
        let found = blanked(hook);
        if found != expected {
            different.push(format!(
                "{} {}\n  real {expected:?}\n  ours {found:?}",
                question.method, question.path
            ));
        }
    }
    different
}
