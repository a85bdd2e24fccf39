//! Replicas of root policies.

use bellwether_template::NOWHERE;
use serde_json::{Value, json};

use super::*;
use crate::template::{Answer, Question};

fn root(spec: &Value) -> Policy {
    let mut object = json!({
        "metadata": {
            "name": "anchors", "namespace": "fleet", "uid": "1", "resourceVersion": "7",
            "finalizers": ["x/y"],
            "labels": {"team": "red", "policy.open-cluster-management.io/own": "z"},
            "annotations": {
                "note": "hello",
                "policy.open-cluster-management.io/standards": "S-1",
                "policy.open-cluster-management.io/trigger-update": "now",
                "kubectl.kubernetes.io/last-applied-configuration": "{}",
            },
        },
        "spec": {"disabled": false, "remediationAction": "inform", "policy-templates": []},
        "status": {"compliant": "Compliant"},
    });
    for (field, value) in spec.as_object().into_iter().flatten() {
        object["spec"][field] = value.clone();
    }
    serde_json::from_value(object).unwrap()
}

fn sets(namespace: &str, name: &str) -> Option<Vec<String>> {
    ((namespace, name) == ("fleet", "basics")).then(|| vec!["one".to_owned(), "two".to_owned()])
}

fn replica(root: &Policy) -> Policy {
    let blueprint = Blueprint::new(root, &sets);
    let version = blueprint.version(None, None);
    blueprint.replica("reef", &version, Form::Released, false)
}

#[test]
fn a_replica_has_the_metadata_of_its_root_and_the_labels_of_its_cluster() {
    let expected = json!({
        "apiVersion": "policy.open-cluster-management.io/v1",
        "kind": "Policy",
        "metadata": {
            "name": "fleet.anchors",
            "namespace": "reef",
            "annotations": {
                "argocd.argoproj.io/compare-options": "IgnoreExtraneous",
                "note": "hello",
                "policy.open-cluster-management.io/standards": "S-1",
            },
            "labels": {
                "policy.open-cluster-management.io/cluster-name": "reef",
                "policy.open-cluster-management.io/cluster-namespace": "reef",
                "policy.open-cluster-management.io/own": "z",
                "policy.open-cluster-management.io/root-policy": "fleet.anchors",
                "team": "red",
            },
        },
        "spec": {"disabled": false, "remediationAction": "inform", "policy-templates": []},
    });
    assert_eq!(json!(replica(&root(&json!({})))), expected);
}

#[test]
fn without_copies_of_metadata_only_that_of_the_framework_is_copied() {
    let replica = replica(&root(&json!({"copyPolicyMetadata": false})));
    let keys = |map: Option<BTreeMap<String, String>>| -> Vec<String> {
        map.unwrap_or_default().into_keys().collect()
    };
    assert_eq!(
        keys(replica.metadata.annotations),
        [
            "argocd.argoproj.io/compare-options",
            "policy.open-cluster-management.io/standards",
        ]
    );
    assert_eq!(
        keys(replica.metadata.labels),
        [
            "policy.open-cluster-management.io/cluster-name",
            "policy.open-cluster-management.io/cluster-namespace",
            "policy.open-cluster-management.io/own",
            "policy.open-cluster-management.io/root-policy",
        ]
    );
}

#[test]
fn dependencies_name_replicas_and_sets_become_their_policies() {
    let policy = "policy.open-cluster-management.io/v1";
    let set = "policy.open-cluster-management.io/v1beta1";
    let one = |version: &str, kind: &str, name: &str, namespace: Option<&str>| {
        let mut it =
            json!({"apiVersion": version, "kind": kind, "name": name, "compliance": "Compliant"});
        if let Some(namespace) = namespace {
            it["namespace"] = json!(namespace);
        }
        it
    };
    let written = [
        one(policy, "Policy", "base", None),
        one(policy, "Policy", "base", Some("other")),
        one(policy, "Policy", "other.dotted", None),
        one(policy, "Policy", "dotted.name", Some("fleet")),
        one(set, "PolicySet", "basics", None),
        one(set, "PolicySet", "gone", None),
        one(policy, "ConfigurationPolicy", "cfg", None),
    ];
    let expected = json!([
        one(policy, "Policy", "fleet.base", None),
        one(policy, "Policy", "other.base", None),
        one(policy, "Policy", "other.dotted", None),
        one(policy, "Policy", "fleet.dotted.name", None),
        one(policy, "Policy", "fleet.one", None),
        one(policy, "Policy", "fleet.two", None),
        one(set, "PolicySet", "gone", Some("fleet")),
        one(policy, "ConfigurationPolicy", "cfg", None),
    ]);
    let template = json!({"objectDefinition": {}, "extraDependencies": written});
    let root = root(&json!({"dependencies": written, "policy-templates": [template]}));
    let sets = [("fleet", "basics"), ("fleet", "gone")];
    assert_eq!(awaited_sets(&root), [sets, sets].concat());
    let spec = json!(replica(&root).spec);
    assert_eq!(spec["dependencies"], expected);
    assert_eq!(spec["policy-templates"][0]["extraDependencies"], expected);
}

#[test]
fn an_override_counts_where_the_root_does_not_enforce() {
    #[track_caller]
    fn check(own: Option<&str>, expected: &str) {
        let mut root = root(&json!({}));
        root.spec.remediation_action = own.map(|it| RemediationAction(it.to_owned()));
        let blueprint = Blueprint::new(&root, &sets);
        let action = RemediationAction("Enforce".to_owned());
        let version = blueprint.version(Some(&action), None);
        let spec = version.spec(Form::Released);
        let actual = spec.remediation_action.as_ref().unwrap();
        assert_eq!(actual.as_str(), expected, "{own:?}");
    }
    check(Some("inform"), "Enforce");
    check(Some("enforce"), "enforce");
    check(None, "Enforce");
}

#[test]
fn a_version_is_everything_but_the_strategy() {
    let id = |spec: Value| Blueprint::new(&root(&spec), &sets).version(None, None).id;
    let plain = id(json!({}));
    assert_eq!(
        plain,
        id(json!({"rolloutStrategy": {"type": "Progressive"}}))
    );
    assert_ne!(plain, id(json!({"remediationAction": "enforce"})));
    assert_ne!(
        plain,
        id(json!({"policy-templates": [{"objectDefinition": {"a": 1}}]}))
    );
}

#[test]
fn a_replica_is_recognised_in_the_form_that_it_was_made_in() {
    let root = root(&json!({"remediationAction": "enforce"}));
    let blueprint = Blueprint::new(&root, &sets);
    let version = blueprint.version(None, None);
    for form in [Form::Released, Form::Informed] {
        for is_progressive in [true, false] {
            let made = blueprint.replica("reef", &version, form, is_progressive);
            let read = Replica::of(&made);
            for other in [Form::Released, Form::Informed] {
                for other_progressive in [true, false] {
                    let is_same = blueprint.is_same(&read, &version, other, other_progressive);
                    assert_eq!(
                        is_same,
                        (form, is_progressive) == (other, other_progressive)
                    );
                }
            }
            let mut moved = made.clone();
            moved.metadata.namespace = Some("atoll".to_owned());
            assert!(!blueprint.is_same(&Replica::of(&moved), &version, form, is_progressive));
            let mut changed = made;
            let labels = changed.metadata.labels.as_mut().unwrap();
            labels.insert("foreign".to_owned(), "x".to_owned());
            assert!(!blueprint.is_same(&Replica::of(&changed), &version, form, is_progressive));
        }
    }
}

fn with_template(text: &str) -> Blueprint {
    let definition = json!({"kind": "ConfigurationPolicy", "metadata": {"name": "cfg"},
        "spec": {"value": text}});
    let templates = json!([{"objectDefinition": definition}]);
    Blueprint::new(&root(&json!({ "policy-templates": templates })), &sets)
}

#[test]
fn hub_templates_are_resolved_for_each_cluster() {
    let blueprint =
        with_template("{{hub .ManagedClusterName hub}} of {{hub .PolicyMetadata.name hub}}");
    assert!(blueprint.has_hub_templates());
    assert!(!needs_keys(&blueprint));
    let nothing = BTreeMap::<Question, Answer>::new();
    let Resolved::Done(done) = resolve(&blueprint, "reef", &nothing, None, &NOWHERE) else {
        panic!("nothing is looked up");
    };
    assert_eq!(done.error, None);
    let value = &done.templates[0].object_definition["spec"]["value"];
    assert_eq!(value, "reef of anchors");
    let atoll = resolve(&blueprint, "atoll", &nothing, None, &NOWHERE);
    assert_ne!(atoll, Resolved::Done(done));
}

#[test]
fn what_hub_templates_look_up_is_asked_for_and_what_cannot_be_found_is_said_in_the_template() {
    let blueprint = with_template("{{hub fromConfigMap \"\" \"vlans\" \"reef\" hub}}");
    let mut known = BTreeMap::<Question, Answer>::new();
    let done = loop {
        match resolve(&blueprint, "reef", &known, None, &NOWHERE) {
            Resolved::Done(done) => break done,
            Resolved::Needs(questions) => {
                assert!(!questions.is_empty());
                for question in questions {
                    let answer = match question {
                        Question::Resource { .. } => Answer::Resource(crate::template::Resource {
                            name: "configmaps".to_owned(),
                            is_namespaced: true,
                        }),
                        _ => Answer::Nothing,
                    };
                    known.insert(question, answer);
                }
            }
        }
    };
    let error = done.error.unwrap();
    assert!(error.contains("configmaps \"vlans\" not found"), "{error}");
    let annotations = &done.templates[0].object_definition["metadata"]["annotations"];
    assert_eq!(annotations[annotation::HUB_TEMPLATES_ERROR], json!(error));
    assert_eq!(
        done.templates[0].object_definition["spec"]["value"],
        "{{hub fromConfigMap \"\" \"vlans\" \"reef\" hub}}"
    );
}
