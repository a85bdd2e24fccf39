//! What people get to see of objects, in messages and differences, and what they never see.

use serde_json::{Value, json};

use super::{HAVE, OneObject, policy, reports};
use crate::config_policy::EvaluationOptions;
use crate::template::Keys;

/// What the agent evaluates with.
fn agent(keys: Option<Keys>) -> EvaluationOptions {
    EvaluationOptions {
        keys,
        hides_secrets: true,
        ..EvaluationOptions::default()
    }
}

fn with_message(mut policy: Value, compliant: &str, noncompliant: &str) -> Value {
    policy["spec"]["customMessage"] = json!({"compliant": compliant, "noncompliant": noncompliant});
    policy
}

const VALUES: &str = "{{ range .Policy.status.relatedObjects }}{{ .object.metadata.name }}: {{ .object.data }}{{ end }}";

#[test]
fn a_message_of_its_own_sees_whole_objects_as_they_are_when_it_is_written() {
    let wanted = policy("enforce", HAVE, &json!({"a": "1"}));
    let wanted = with_message(wanted, VALUES, VALUES);
    let mut cluster = OneObject::new(Some(json!({"a": "2"})));
    // Before the first evaluation nothing is related.
    let first = reports(
        &mut cluster,
        &wanted,
        &["NonCompliant; ", "Compliant; c: map[a:1]"],
    );
    let mut again = wanted.clone();
    again["status"] = serde_json::to_value(&first.reports[1].status).unwrap();
    cluster.live.as_mut().unwrap()["data"] = json!({"a": "3"});
    reports(
        &mut cluster,
        &again,
        &["NonCompliant; c: map[a:3]", "Compliant; c: map[a:1]"],
    );
    let informing = with_message(policy("inform", HAVE, &json!({"a": "9"})), VALUES, VALUES);
    reports(&mut cluster, &informing, &["NonCompliant; c: map[a:1]"]);
    // What is not there has nothing but its name.
    let missing = &["NonCompliant; c: <no value>"];
    reports(&mut OneObject::new(None), &informing, missing);
}

#[test]
fn a_message_of_its_own_never_shows_what_secrets_hold() {
    let mut wanted = policy("inform", HAVE, &json!({"p": "b3RoZXI="}));
    wanted["spec"]["object-templates"][0]["objectDefinition"]["kind"] = json!("Secret");
    let wanted = with_message(wanted, VALUES, VALUES);
    let mut cluster = OneObject::new(Some(json!({"p": "aHVzaA=="})));
    cluster.live.as_mut().unwrap()["kind"] = json!("Secret");
    reports(
        &mut cluster,
        &wanted,
        &["NonCompliant; c: map[p:(redacted)]"],
    );
}

/// A policy that wants what was encrypted on the hub, and what it spells out.
fn sealed(keys: &Keys) -> Value {
    let sealed = keys.encrypt(b"open sesame").unwrap();
    let loud = format!("{{{{ \"{sealed}\" | upper }}}}");
    let mut wanted = policy(
        "inform",
        HAVE,
        &json!({"a": sealed, "loud": loud, "b": "spelled out"}),
    );
    wanted["spec"]["object-templates"][0]["recordDiff"] = json!("InStatus");
    wanted
}

fn keys() -> Keys {
    Keys::new(Some(vec![7; 32]), None, Some(&[9; 16])).unwrap()
}

#[test]
fn a_difference_never_shows_what_was_decrypted_or_what_was_made_of_it() {
    let wanted = sealed(&keys());
    let mut cluster = OneObject::new(Some(json!({"a": "closed sesame", "b": "was"})));
    let found = cluster.evaluate_with(&wanted, agent(Some(keys())));
    let object = &found.reports[0].status.related_objects[0];
    let diff = object.properties.clone().unwrap().diff;
    let expected = "\
-  a: (redacted)
-  b: was
+  a: (redacted, changed)
+  b: spelled out
+  loud: (redacted)
";
    assert!(diff.contains(expected), "{diff}");
    assert!(!diff.to_lowercase().contains("sesame"), "{diff}");
}

#[test]
fn a_message_never_shows_what_was_made_of_secrets() {
    let wanted = with_message(sealed(&keys()), VALUES, VALUES);
    let live = json!({"a": "open sesame", "loud": "OPEN SESAME", "b": "spelled out"});
    let mut cluster = OneObject::new(Some(live));
    let found = cluster.evaluate_with(&wanted, agent(Some(keys())));
    assert_eq!(
        found.reports[0].message,
        "Compliant; c: map[a:(redacted) b:spelled out loud:(redacted)]"
    );
}

#[test]
fn a_difference_of_a_secret_shows_its_keys_only() {
    let mut wanted = policy("inform", HAVE, &json!({"p": "b3RoZXI=", "q": "bmV3"}));
    let template = &mut wanted["spec"]["object-templates"][0];
    template["objectDefinition"]["kind"] = json!("Secret");
    template["recordDiff"] = json!("InStatus");
    let mut cluster = OneObject::new(Some(json!({"p": "aHVzaA=="})));
    cluster.live.as_mut().unwrap()["kind"] = json!("Secret");
    let found = cluster.evaluate_with(&wanted, agent(None));
    let object = &found.reports[0].status.related_objects[0];
    let diff = object.properties.clone().unwrap().diff;
    let expected = "\
-  p: (redacted)
+  p: (redacted, changed)
+  q: (redacted)
";
    assert!(diff.contains(expected), "{diff}");
    assert!(!diff.contains("aHVzaA") && !diff.contains("b3Ro"), "{diff}");
}
