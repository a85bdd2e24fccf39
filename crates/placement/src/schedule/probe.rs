//! Answers questions written as JSON, one per line, for scripts and for tests in other languages.
//!
//! A question has an `id`, a `placement`, and lists of `clusters`, `sets`, `bindings`, `scores` and
//! `decisions`: objects as a server has them. Without `sets` and `bindings` every cluster is in a set
//! that is bound. `now` is a time, 1970 without it. The answer has the `groups` with their decisions
//! (`null`: decisions stay as they are), how many are `selected` and `unscheduled`, both `conditions`,
//! `recheckAt` and `warnings`; with `"explain": true` also `why`, a sentence for each cluster.

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::scene::{Objects, Scene};
use super::{Condition, Decision, DecisionGroup, Outcome};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Question {
    #[serde(default)]
    id: Value,
    placement: Value,
    #[serde(default)]
    clusters: Vec<Value>,
    sets: Option<Vec<Value>>,
    bindings: Option<Vec<Value>>,
    #[serde(default)]
    scores: Vec<Value>,
    #[serde(default)]
    decisions: Vec<Value>,
    now: Option<Timestamp>,
    #[serde(default)]
    explain: bool,
}

/// Answers one question. What cannot be answered gives `{"id": …, "error": …}`.
pub fn answer(line: &str) -> String {
    let question: Result<Question, _> = serde_json::from_str(line);
    match question {
        Ok(question) => question.answer().to_string(),
        Err(error) => {
            let line: Value = serde_json::from_str(line).unwrap_or_default();
            let id = line.get("id").unwrap_or(&Value::Null);
            json!({"id": id, "error": error.to_string()}).to_string()
        }
    }
}

impl Question {
    fn answer(&self) -> Value {
        let everything = json!({"metadata": {"name": "global"}, "spec": {"clusterSelector":
            {"selectorType": "LabelSelector", "labelSelector": {}}}});
        let global = [everything];
        let scene = Scene::new(
            &Objects {
                placement: Some(&self.placement),
                clusters: &self.clusters,
                sets: self.sets.as_deref().unwrap_or(&global),
                bindings: self.bindings.as_deref().unwrap_or(&global),
                scores: &self.scores,
                decisions: &self.decisions,
            },
            self.now.unwrap_or(Timestamp::UNIX_EPOCH),
        );
        let mut answer = report(&self.id, &scene.outcome());
        if self.explain {
            let names = self.clusters.iter().filter_map(|cluster| {
                let name = cluster.pointer("/metadata/name")?.as_str()?;
                Some((name.to_owned(), json!(scene.why(name).to_string())))
            });
            answer["why"] = Value::Object(names.collect::<Map<_, _>>());
        }
        answer
    }
}

fn report(id: &Value, outcome: &Outcome) -> Value {
    let decision =
        |decision: &Decision| json!({"clusterName": &*decision.cluster, "score": decision.score});
    let group = |group: &DecisionGroup| {
        let decisions: Vec<Value> = group.decisions.iter().map(decision).collect();
        json!({"name": group.name, "index": group.index, "decisions": decisions})
    };
    let condition = |condition: &Condition| {
        let status = if condition.status { "True" } else { "False" };
        json!({"type": condition.kind, "status": status, "reason": condition.reason,
            "message": condition.message})
    };
    let groups = outcome.groups.as_ref();
    let groups = groups.map(|groups| groups.iter().map(group).collect::<Vec<_>>());
    json!({
        "id": id,
        "groups": groups,
        "selected": outcome.selected,
        "unscheduled": outcome.unscheduled,
        "conditions": [condition(&outcome.satisfied), condition(&outcome.misconfigured)],
        "recheckAt": outcome.recheck_at,
        "warnings": outcome.warnings,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(question: &Value) -> Value {
        serde_json::from_str(&answer(&question.to_string())).unwrap()
    }

    #[test]
    fn a_question_is_answered_with_groups_and_sentences() {
        let cluster = |name: &str, region: &str| json!({"metadata": {"name": name, "labels": {"region": region}}});
        let selector = json!({"labelSelector": {"matchLabels": {"region": "emea"}}});
        let answer = ask(&json!({
            "id": 7, "explain": true,
            "placement": {"metadata": {"name": "p"}, "spec": {
                "predicates": [{"requiredClusterSelector": selector}]}},
            "clusters": [cluster("a", "emea"), cluster("b", "amer")],
        }));
        assert_eq!(answer["id"], 7);
        assert_eq!(answer["selected"], 1);
        assert_eq!(answer["groups"][0]["decisions"][0]["clusterName"], "a");
        assert_eq!(answer["conditions"][0]["reason"], "AllDecisionsScheduled");
        let why = answer["why"]["b"].as_str().unwrap();
        assert!(why.contains("region"), "{why}");
    }

    #[test]
    fn invalid_objects_are_warnings() {
        let set = json!({"metadata": {"name": "s"}, "spec": {"clusterSelector":
            {"selectorType": "LabelSelector",
             "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Near"}]}}}});
        let score = json!({"metadata": {"namespace": "a", "name": "gpu"},
            "status": {"scores": [{"name": "free", "value": "many"}]}});
        let answer = ask(&json!({
            "placement": {"metadata": {"name": "p"}},
            "clusters": [{"metadata": {"name": "a"}}],
            "sets": [set], "bindings": [{"metadata": {"name": "s"}}], "scores": [score],
        }));
        assert_eq!(answer["selected"], 0);
        assert_eq!(
            answer["warnings"],
            json!([
                "AddOnPlacementScore a/gpu: invalid type: string \"many\", expected i32",
                "ManagedClusterSet s: clusterSelector:\"Near\" is not a valid label selector operator",
            ])
        );
    }

    #[test]
    fn what_is_no_question_is_said_to_be_none() {
        assert!(
            ask(&json!({"id": "x"}))["error"]
                .as_str()
                .unwrap()
                .contains("placement")
        );
        let typo = ask(&json!({"id": "x", "placement": {}, "cluster": []}));
        assert_eq!(typo["id"], "x");
        assert!(
            typo["error"]
                .as_str()
                .unwrap()
                .contains("unknown field `cluster`")
        );
        assert!(answer("{").contains("error"));
    }
}
