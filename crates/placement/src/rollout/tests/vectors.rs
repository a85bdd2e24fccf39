//! The vectors in `testdata/rollout.json`, each answered by our rules and by upstream's.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::rollout::probe;

/// One question, and the answers expected: `expect` by both rules, or `bellwether` and `upstream`
/// with `because` saying why they differ.
fn check(vector: &Value) {
    let id = &vector["id"];
    let ask = |compat: &str| {
        let mut question = vector.clone();
        question["compat"] = json!(compat);
        let answer: Value = serde_json::from_str(&probe::answer(&question.to_string())).unwrap();
        shorthand(&answer)
    };
    let (own, upstream) = (ask("bellwether"), ask("upstream"));
    if let Some(because) = vector.get("because") {
        assert!(
            because.as_str().is_some_and(|text| !text.is_empty()),
            "{id}"
        );
        assert_ne!(own, upstream, "{id}: no difference any more");
        assert_eq!(own, vector["bellwether"], "{id}");
        assert_eq!(upstream, vector["upstream"], "{id} by upstream's rules");
    } else {
        assert_eq!(own, vector["expect"], "{id}");
        assert_eq!(upstream, vector["expect"], "{id} by upstream's rules");
    }
}

/// `cluster status since recheck`, as far as there is any, and only what is not empty.
fn shorthand(answer: &Value) -> Value {
    if let Some(error) = answer.get("error") {
        return json!({ "error": error });
    }
    let mut short = serde_json::Map::new();
    for list in ["rollout", "timeout", "removed"] {
        let entries: Vec<String> = answer[list].as_array().unwrap().iter().map(entry).collect();
        if !entries.is_empty() {
            short.insert(list.to_owned(), json!(entries));
        }
    }
    if answer["maxFailureBreach"] == json!(true) {
        short.insert("breach".to_owned(), json!(true));
    }
    if !answer["recheckAfterSeconds"].is_null() {
        short.insert("recheck".to_owned(), answer["recheckAfterSeconds"].clone());
    }
    Value::Object(short)
}

fn entry(entry: &Value) -> String {
    let mut text = format!(
        "{} {}",
        entry["cluster"].as_str().unwrap(),
        entry["status"].as_str().unwrap()
    );
    for (field, sign) in [("ltt", '@'), ("recheck", '>')] {
        if let Some(seconds) = entry[field].as_i64() {
            write!(text, " {sign}{seconds}").unwrap();
        }
    }
    text
}

#[test]
fn every_vector_is_answered_as_written() {
    let vectors: Value =
        serde_json::from_str(include_str!("../../../testdata/rollout.json")).unwrap();
    let vectors = vectors.as_array().unwrap();
    assert!(vectors.len() > 20);
    vectors.iter().for_each(check);
}
