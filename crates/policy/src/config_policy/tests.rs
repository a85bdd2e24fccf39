//! Tables for the rules by which objects are compared, and for what is reported.

use bellwether_api::policy::{ComplianceType, ConfigurationPolicy};
use bellwether_template::NOWHERE;
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::compare::{Comparison, Rule, compare};
use super::{
    Conclusion, Evaluation, EvaluationOptions, Facts, Need, Step, Verb, Write, WriteError,
    WriteErrorKind, WriteOutcome,
};
use crate::template::{Answer, Question, Resource};

const HAVE: &str = "musthave";
const ONLY: &str = "mustonlyhave";

/// Compares an object of a kind with this spec with a definition that has this spec.
fn compare_spec(compliance: &str, template: &Value, live: &Value) -> Result<Comparison, String> {
    let object = |spec: &Value| {
        let mut object = json!({
            "apiVersion": "example.org/v1", "kind": "Ship", "metadata": {"name": "s"}});
        if !spec.is_null() {
            object["spec"] = spec.clone();
        }
        object
    };
    let rule = Rule {
        compliance: &ComplianceType(compliance.to_owned()),
        metadata: None,
    };
    compare(&object(template), &object(live), rule)
}

/// Checks what a definition is merged to, and whether that is an update. A server decides only where
/// zero values are involved.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "tables are easier to read")]
fn merges(compliance: &str, template: Value, live: Value, merged: &Value, verdict: &str) {
    let found = compare_spec(compliance, &template, &live).unwrap();
    assert_eq!(found.merged["spec"], *merged, "{template} over {live}");
    let actual = match (found.needs_update, found.is_missing) {
        (true, _) => "update",
        (false, true) => "server decides",
        (false, false) => "same",
    };
    assert_eq!(actual, verdict, "{template} over {live}");
}

#[test]
fn lists_keep_what_is_live_behind_what_is_defined() {
    let list = |items: Value| json!({ "l": items });
    let check = |template: Value, live: Value, merged: Value, verdict: &str| {
        merges(HAVE, list(template), list(live), &list(merged), verdict);
    };
    check(json!([1, 2]), json!([2, 1, 3]), json!([1, 2, 3]), "same");
    check(json!([1, 1]), json!([1]), json!([1, 1]), "update");
    check(json!([1]), json!([1, 1]), json!([1, 1]), "same");
    check(json!(["x "]), json!(["x"]), json!(["x ", "x"]), "update");
    check(json!([4]), json!([]), json!([4]), "update");
    check(json!([]), json!([4]), json!([4]), "same");
    check(
        json!([{"name": "a", "v": 1}]),
        json!([{"name": "a", "v": 2, "x": 9}]),
        json!([{"name": "a", "v": 1, "x": 9}]),
        "update",
    );
    check(
        json!([{"port": 80}]),
        json!([{"port": 80, "protocol": "TCP"}]),
        json!([{"port": 80, "protocol": "TCP"}]),
        "same",
    );
    check(
        json!([{"name": "b"}]),
        json!([{"name": "a"}]),
        json!([{"name": "b"}, {"name": "a"}]),
        "update",
    );
    // The order of lists in lists counts, but such an item is still the same item.
    check(json!([[1, 2]]), json!([[2, 1]]), json!([[1, 2]]), "update");
    check(
        json!(["500m"]),
        json!(["0.5"]),
        json!(["500m", "0.5"]),
        "update",
    );
}

#[test]
fn texts_are_compared_as_quantities_only_where_both_are_texts() {
    let check = |template: Value, live: Value, verdict: &str| {
        let (template, live) = (json!({ "v": template }), json!({ "v": live }));
        merges(HAVE, template.clone(), live, &template, verdict);
    };
    check(json!("500m"), json!("0.5"), "same");
    check(json!("1Gi"), json!("1024Mi"), "same");
    check(json!("1Gi"), json!("1G"), "update");
    check(json!("1"), json!(1), "update");
    check(json!(1), json!("1"), "same");
    check(json!(1), json!("1000m"), "update");
    check(json!(true), json!("true"), "same");
    check(json!("on"), json!("off"), "update");
}

#[test]
fn a_server_decides_about_zero_values() {
    let check = |template: Value, verdict: &str| {
        let template = json!({ "v": template });
        merges(HAVE, template.clone(), json!({}), &template, verdict);
    };
    check(json!(0), "server decides");
    check(json!(false), "server decides");
    check(json!([]), "server decides");
    check(json!(null), "server decides");
    check(json!(""), "update");
    check(json!({}), "update");
    check(json!(1), "update");
}

#[test]
fn null_does_not_care_about_maps() {
    merges(
        HAVE,
        json!({"a": null}),
        json!({"a": {"x": 1}}),
        &json!({"a": {"x": 1}}),
        "same",
    );
    let null = json!({"a": null});
    merges(HAVE, null.clone(), json!({"a": 5}), &null, "update");
}

#[test]
fn must_only_have_replaces_keys_and_removes_others() {
    merges(
        ONLY,
        json!({"a": 1}),
        json!({"a": 1, "b": 2}),
        &json!({"a": 1}),
        "update",
    );
    merges(
        ONLY,
        json!({"l": [2, 1]}),
        json!({"l": [1, 2]}),
        &json!({"l": [2, 1]}),
        "same",
    );
    let found = compare_spec(ONLY, &Value::Null, &json!({"a": 1})).unwrap();
    assert!(found.needs_update && found.merged.get("spec").is_none());
}

#[test]
fn a_type_that_does_not_fit_is_an_error_only_at_the_top() {
    let found = compare_spec(HAVE, &json!([1]), &json!({"a": 1}));
    let error = "Error merging changes into key \"spec\": object type of template and existing do not match";
    assert_eq!(found.unwrap_err(), error);
    let template = json!({"a": {"b": 1}});
    merges(
        HAVE,
        template.clone(),
        json!({"a": [1]}),
        &template,
        "update",
    );
}

#[test]
fn labels_follow_their_own_compliance_type() {
    let check = |metadata: Option<&str>, needs_update: bool| {
        let object = |labels: Value| json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": labels}});
        let own = metadata.map(|text| ComplianceType(text.to_owned()));
        let rule = Rule {
            compliance: &ComplianceType(HAVE.to_owned()),
            metadata: own.as_ref(),
        };
        let found = compare(
            &object(json!({"a": "b"})),
            &object(json!({"a": "b", "c": "d"})),
            rule,
        );
        assert_eq!(found.unwrap().needs_update, needs_update, "{metadata:?}");
    };
    check(None, false);
    check(Some(HAVE), false);
    check(Some(ONLY), true);
}

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
            Question::Resource { kind, .. } if kind == "ConfigMap" => Answer::Resource(Resource {
                name: "configmaps".to_owned(),
                is_namespaced: true,
            }),
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
            Verb::Update => self.live = Some(object.clone()),
        }
        self.written.push(write.clone());
        WriteOutcome::Done(object)
    }

    fn evaluate(&mut self, policy: &Value) -> Conclusion {
        let policy: ConfigurationPolicy = serde_json::from_value(policy.clone()).unwrap();
        let mut evaluation = Evaluation::new(policy, EvaluationOptions::default());
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
