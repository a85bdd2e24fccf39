//! Answers questions written as JSON, one per line, for scripts and for tests in other languages.
//!
//! A question has an `id`, a flat `strategy`, `groups` and `existing` statuses; times are whole
//! seconds relative to now. With `"compat": "upstream"` it is answered by upstream's rules, with
//! `"explain": true` the answer has a reason per cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::{
    ClusterStatus, Compat, Decision, Group, GroupKey, Input, RolloutError, Status, Strategy,
    UnsetConcurrency, decide,
};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Question {
    #[serde(default)]
    strategy: Value,
    #[serde(default)]
    groups: Vec<QuestionGroup>,
    #[serde(default)]
    existing: Vec<Entry>,
    #[serde(default)]
    compat: Rules,
    #[serde(default)]
    unset_concurrency: Unset,
    #[serde(default)]
    explain: bool,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Rules {
    #[default]
    Bellwether,
    Upstream,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
enum Unset {
    #[default]
    All,
    One,
}

#[derive(Debug, Deserialize)]
struct QuestionGroup {
    #[serde(default)]
    name: Arc<str>,
    #[serde(default)]
    index: i64,
    #[serde(default)]
    clusters: Vec<Arc<str>>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Entry {
    cluster: Arc<str>,
    #[serde(default)]
    group: (Arc<str>, i64),
    status: Status,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ltt: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    recheck: Option<i64>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    rollout: Vec<Entry>,
    timeout: Vec<Entry>,
    removed: Vec<Entry>,
    max_failure_breach: bool,
    recheck_after_seconds: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reasons: Option<BTreeMap<Arc<str>, String>>,
}

/// Answers one question. What cannot be answered gives `{"id": …, "error": …}`.
pub fn answer(line: &str) -> String {
    let question: Value = match serde_json::from_str(line) {
        Ok(question) => question,
        Err(error) => return json!({"id": null, "error": error.to_string()}).to_string(),
    };
    let id = question.get("id").cloned().unwrap_or(Value::Null);
    let answer = respond(question).unwrap_or_else(|error| json!({"error": error}));
    match answer {
        Value::Object(mut fields) => {
            fields.insert("id".to_owned(), id);
            Value::Object(fields).to_string()
        }
        other => other.to_string(),
    }
}

fn respond(question: Value) -> Result<Value, String> {
    let question: Question = serde_json::from_value(question).map_err(|error| error.to_string())?;
    let decision = question.decide().map_err(|error| error.to_string())?;
    let reasons = question.explain.then(|| {
        let words =
            |(cluster, reason): &(Arc<str>, super::Reason)| (cluster.clone(), reason.to_string());
        decision.reasons.iter().map(words).collect()
    });
    let answer = Answer::new(decision, reasons);
    serde_json::to_value(answer).map_err(|error| error.to_string())
}

impl Question {
    fn decide(&self) -> Result<Decision, RolloutError> {
        let strategy = Strategy::from_flat_json(&self.strategy)?;
        let groups: Vec<Group> = self
            .groups
            .iter()
            .map(|group| Group::new(&group.name, group.index, group.clusters.iter().cloned()))
            .collect();
        let existing: Vec<ClusterStatus> = self.existing.iter().map(Entry::read).collect();
        decide(&Input {
            compat: match self.compat {
                Rules::Bellwether => Compat::Bellwether,
                Rules::Upstream => Compat::Upstream,
            },
            unset_concurrency: match self.unset_concurrency {
                Unset::All => UnsetConcurrency::All,
                Unset::One => UnsetConcurrency::One,
            },
            ..Input::new(&strategy, &groups, &existing, Timestamp::UNIX_EPOCH)
        })
    }
}

impl Answer {
    fn new(decision: Decision, reasons: Option<BTreeMap<Arc<str>, String>>) -> Self {
        let entries = |entries: Vec<ClusterStatus>| entries.iter().map(Entry::write).collect();
        Self {
            rollout: entries(decision.rollout),
            timeout: entries(decision.timed_out),
            removed: entries(decision.removed),
            max_failure_breach: decision.breached,
            recheck_after_seconds: decision.recheck_after.map(seconds),
            reasons,
        }
    }
}

/// Whole seconds, rounded up so that anyone who comes back then is not too early.
fn seconds(duration: SignedDuration) -> i64 {
    duration.as_secs() + i64::from(duration.subsec_nanos() > 0)
}

impl Entry {
    fn read(&self) -> ClusterStatus {
        // Seconds beyond the years 9999 mean as long ago, or as far ahead, as there is.
        let time = |seconds: i64| {
            let bound = if seconds < 0 {
                Timestamp::MIN
            } else {
                Timestamp::MAX
            };
            Timestamp::from_second(seconds).unwrap_or(bound)
        };
        let (name, index) = self.group.clone();
        let group = GroupKey { name, index };
        ClusterStatus::new(self.cluster.clone(), group, self.status, self.ltt.map(time))
    }

    fn write(status: &ClusterStatus) -> Self {
        let seconds = |time: Timestamp| seconds(time.duration_since(Timestamp::UNIX_EPOCH));
        Self {
            cluster: status.cluster.clone(),
            group: (status.group.name.clone(), status.group.index),
            status: status.status,
            ltt: status.last_transition.map(seconds),
            recheck: status.recheck.map(seconds),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_answered_says_why() {
        let check = |line: &str, expected: Value| {
            let actual: Value = serde_json::from_str(&answer(line)).unwrap();
            assert_eq!(actual, expected, "{line}");
        };
        check(
            r#"{"id": 7, "strategy": {"type": "Sideways"}}"#,
            json!({"id": 7, "error": "incorrect rollout strategy type Sideways"}),
        );
        check(
            r#"{"id": "x", "strategy": {"type": "Progressive", "maxConcurency": 1}}"#,
            json!({"id": "x", "error": "invalid rollout strategy: unknown field `maxConcurency`, \
                expected one of `minSuccessTime`, `minSuccessTimeSeconds`, `progressDeadline`, \
                `maxFailures`, `maxConcurrency`, `mandatoryDecisionGroups`"}),
        );
        check(
            "{",
            json!({"id": null, "error": "EOF while parsing an object at line 1 column 1"}),
        );
    }

    #[test]
    fn reasons_are_given_on_request() {
        let line = r#"{"id": "x", "explain": true, "strategy": {"type": "ProgressivePerGroup"},
            "groups": [{"name": "", "index": 0, "clusters": ["a"]},
                       {"name": "", "index": 1, "clusters": ["b"]}]}"#;
        let actual: Value = serde_json::from_str(&answer(line)).unwrap();
        let expected = json!({"a": "starts now", "b": "waits for group 0: a starts now"});
        assert_eq!(actual["reasons"], expected);
    }
}
