//! What is reported about objects, and what is written.

mod shown;

use bellwether_api::policy::ConfigurationPolicy;
use bellwether_template::NOWHERE;
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{
    Conclusion, Evaluation, EvaluationOptions, Facts, Need, Step, Verb, Write, WriteError,
    WriteErrorKind, WriteOutcome,
};
use crate::template::{Answer, Question, Resource};

const HAVE: &str = "musthave";
const ONLY: &str = "mustonlyhave";

/// A cluster of one ConfigMap, or none, that remembers what was written.
struct OneObject {
    live: Option<Value>,
    /// What a server says to updates that are tried.
    refusal: Option<WriteError>,
    written: Vec<Write>,
}

impl OneObject {
    fn new(data: Option<Value>) -> Self {
        let live = data.map(|data| {
            json!({
                "apiVersion": "v1", "kind": "ConfigMap", "data": data,
                "metadata": {"name": "c", "namespace": "n", "uid": "u1"},
            })
        });
        Self {
            live,
            refusal: None,
            written: Vec::new(),
        }
    }

    fn answer(&self, question: &Question) -> Answer {
        match question {
            Question::Resource { kind, .. } if matches!(kind.as_str(), "ConfigMap" | "Secret") => {
                Answer::Resource(Resource {
                    name: format!("{}s", kind.to_lowercase()),
                    is_namespaced: true,
                })
            }
            Question::Resource { .. } => Answer::Nothing,
            Question::Object { name, .. } => match &self.live {
                Some(live) if name == "c" => Answer::Object(live.clone()),
                _ => Answer::Nothing,
            },
            Question::List { .. } => Answer::Objects(self.live.clone().into_iter().collect()),
        }
    }

    fn write(&mut self, write: &Write) -> WriteOutcome {
        if let (Some(refusal), Verb::DryRun | Verb::Update) = (&self.refusal, write.verb) {
            return WriteOutcome::Failed(refusal.clone());
        }
        let mut object = write.object.clone();
        match write.verb {
            Verb::DryRun => return WriteOutcome::Done(object),
            Verb::Delete => {
                object = Value::Null;
                self.live = None;
            }
            Verb::Create | Verb::Recreate => {
                object["metadata"]["uid"] = json!("u2");
                self.live = Some(object.clone());
            }
            Verb::Update | Verb::UpdateStatus => self.live = Some(object.clone()),
        }
        self.written.push(write.clone());
        WriteOutcome::Done(object)
    }

    fn evaluate(&mut self, policy: &Value) -> Conclusion {
        self.evaluate_with(policy, EvaluationOptions::default())
    }

    fn evaluate_with(&mut self, policy: &Value, options: EvaluationOptions) -> Conclusion {
        let policy: ConfigurationPolicy = serde_json::from_value(policy.clone()).unwrap();
        let mut evaluation = Evaluation::new(policy, options);
        let mut facts = Facts::default();
        while let Step::Needs(needs) = evaluation.step(&mut facts, &NOWHERE) {
            for need in needs {
                match need {
                    Need::Read(question) => {
                        let answer = self.answer(&question);
                        facts.answer(question, answer);
                    }
                    Need::Write(write) => {
                        let outcome = self.write(&write);
                        facts.outcome(&write, outcome);
                    }
                }
            }
        }
        evaluation.conclude(Timestamp::UNIX_EPOCH, &NOWHERE)
    }
}

fn policy(action: &str, compliance: &str, data: &Value) -> Value {
    json!({
        "apiVersion": "policy.open-cluster-management.io/v1",
        "kind": "ConfigurationPolicy",
        "metadata": {"name": "p", "namespace": "n", "generation": 1},
        "spec": {
            "remediationAction": action,
            "object-templates": [{
                "complianceType": compliance,
                "objectDefinition": {
                    "apiVersion": "v1", "kind": "ConfigMap", "data": data,
                    "metadata": {"name": "c", "namespace": "n"},
                },
            }],
        },
    })
}

#[track_caller]
fn reports(cluster: &mut OneObject, policy: &Value, expected: &[&str]) -> Conclusion {
    let conclusion = cluster.evaluate(policy);
    let messages: Vec<&str> = conclusion
        .reports
        .iter()
        .map(|report| report.message.as_str())
        .collect();
    assert_eq!(messages, expected);
    conclusion
}

#[test]
fn a_missing_object_is_reported_before_it_is_created() {
    let mut cluster = OneObject::new(None);
    let conclusion = reports(
        &mut cluster,
        &policy("enforce", HAVE, &json!({"a": "1"})),
        &[
            "NonCompliant; violation - configmaps [c] not found in namespace n",
            "Compliant; notification - configmaps [c] was created successfully in namespace n",
        ],
    );
    assert_eq!(cluster.written.len(), 1);
    let status = &conclusion.reports[1].status;
    let properties = status.related_objects[0].properties.clone().unwrap();
    assert_eq!(properties.created_by_policy, Some(true));
    assert_eq!(properties.uid, "u2");
    assert_eq!(status.history.len(), 2);
}

#[test]
fn drift_is_reported_before_it_is_repaired() {
    let mut cluster = OneObject::new(Some(json!({"a": "2", "b": "3"})));
    reports(
        &mut cluster,
        &policy("enforce", HAVE, &json!({"a": "1"})),
        &[
            "NonCompliant; violation - configmaps [c] found but not as specified in namespace n",
            "Compliant; notification - configmaps [c] was updated successfully in namespace n",
        ],
    );
    assert_eq!(cluster.live.unwrap()["data"], json!({"a": "1", "b": "3"}));
}

#[test]
fn what_must_not_be_is_deleted_with_one_report() {
    let mut cluster = OneObject::new(Some(json!({"a": "2"})));
    reports(
        &mut cluster,
        &policy("enforce", "mustnothave", &json!({"a": "1"})),
        &["Compliant; notification - configmaps [c] was deleted successfully in namespace n"],
    );
    assert!(cluster.live.is_none());
}

#[test]
fn an_immutable_object_is_recreated_only_if_asked_for() {
    let refusal = WriteError {
        kind: WriteErrorKind::Invalid,
        message: "field is immutable".to_owned(),
    };
    let mut cluster = OneObject::new(Some(json!({"a": "2"})));
    cluster.refusal = Some(refusal);
    let mut policy = policy("enforce", HAVE, &json!({"a": "1"}));
    reports(
        &mut cluster,
        &policy,
        &[
            "NonCompliant; violation - configmaps [c] in namespace n cannot be updated, likely due to immutable fields not matching, you may set spec[\"object-templates\"][].recreateOption to recreate the object",
        ],
    );
    policy["spec"]["object-templates"][0]["recreateOption"] = json!("IfRequired");
    reports(
        &mut cluster,
        &policy,
        &[
            "NonCompliant; violation - configmaps [c] found but not as specified in namespace n",
            "Compliant; notification - configmaps [c] was updated successfully in namespace n",
        ],
    );
    assert_eq!(cluster.live.unwrap()["metadata"]["uid"], "u2");
}

#[test]
fn an_error_of_the_server_is_reported_with_its_text() {
    let mut cluster = OneObject::new(Some(json!({"a": "2"})));
    cluster.refusal = Some(WriteError {
        kind: WriteErrorKind::Other,
        message: "strict decoding error: unknown field \"dta\"".to_owned(),
    });
    reports(
        &mut cluster,
        &policy("inform", HAVE, &json!({"a": "1"})),
        &[
            "NonCompliant; violation - Error validating the object c, the error is `strict decoding error: unknown field \"dta\"`",
        ],
    );
}

#[test]
fn a_policy_that_is_never_evaluated_again_says_so() {
    let mut policy = policy("inform", HAVE, &json!({"a": "1"}));
    policy["spec"]["evaluationInterval"] = json!({"noncompliant": "never"});
    reports(
        &mut OneObject::new(None),
        &policy,
        &[
            "NonCompliant; violation - configmaps [c] not found in namespace n. This policy will not be evaluated again due to spec.evaluationInterval.noncompliant being set to \"never\".",
        ],
    );
}

#[test]
fn a_second_evaluation_without_a_change_is_no_news() {
    let mut cluster = OneObject::new(Some(json!({"a": "1"})));
    let mut policy = policy("inform", HAVE, &json!({"a": "1"}));
    let first = cluster.evaluate(&policy);
    assert!(first.reports[0].is_news);
    policy["status"] = serde_json::to_value(&first.reports[0].status).unwrap();
    let second = cluster.evaluate(&policy);
    assert!(!second.reports[0].is_news);
    assert_eq!(second.reports[0].status, first.reports[0].status);
}

#[test]
fn differences_of_kinds_with_secrets_are_redacted() {
    let mut cluster = OneObject::new(Some(json!({"a": "hush"})));
    let mut policy = policy("inform", HAVE, &json!({"a": "1"}));
    let diff = |conclusion: Conclusion| {
        let object = &conclusion.reports[0].status.related_objects[0];
        object.properties.clone().unwrap().diff
    };
    let redacted = diff(cluster.evaluate(&policy));
    assert!(redacted.starts_with("# The difference is redacted") && !redacted.contains("hush"));
    policy["spec"]["object-templates"][0]["recordDiff"] = json!("InStatus");
    let shown = diff(cluster.evaluate(&policy));
    assert!(shown.contains("-  a: hush\n+  a: \"1\"\n"), "{shown}");
    policy["spec"]["object-templates"][0]["recordDiff"] = json!("None");
    assert_eq!(diff(cluster.evaluate(&policy)), "");
}

fn data() -> impl Strategy<Value = Value> {
    proptest::collection::btree_map("[a-c]", "[x-z]{0,1}", 0..3).prop_map(|map| json!(map))
}

proptest! {
    #[test]
    fn an_inform_copy_never_changes_a_member(
        template in data(),
        live in proptest::option::of(data()),
        compliance in proptest::sample::select(vec![HAVE, ONLY, "mustnothave"]),
        recreate in proptest::sample::select(vec!["None", "IfRequired", "Always"]),
        prune in proptest::sample::select(vec!["None", "DeleteAll", "DeleteIfCreated"]),
    ) {
        let mut cluster = OneObject::new(live);
        let before = cluster.live.clone();
        let mut policy = policy("inform", compliance, &template);
        policy["spec"]["object-templates"][0]["recreateOption"] = json!(recreate);
        policy["spec"]["pruneObjectBehavior"] = json!(prune);
        let conclusion = cluster.evaluate(&policy);
        prop_assert!(cluster.written.is_empty());
        prop_assert_eq!(cluster.live, before);
        let policy: ConfigurationPolicy = serde_json::from_value(policy).unwrap();
        let pruned = super::prune(&policy, &conclusion.reports[0].status.related_objects, &Facts::default());
        prop_assert_eq!(pruned, super::Pruning::Done);
    }

    #[test]
    fn an_enforced_policy_is_compliant_at_its_second_evaluation(
        template in data(),
        live in proptest::option::of(data()),
        compliance in proptest::sample::select(vec![HAVE, ONLY, "mustnothave"]),
    ) {
        let mut cluster = OneObject::new(live);
        let policy = policy("enforce", compliance, &template);
        cluster.evaluate(&policy);
        let writes = cluster.written.len();
        let second = cluster.evaluate(&policy);
        prop_assert_eq!(cluster.written.len(), writes);
        prop_assert_eq!(second.reports.len(), 1);
        prop_assert!(second.reports[0].message.starts_with("Compliant; "));
    }
}
