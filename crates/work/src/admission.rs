//! Which works are refused, with what words: by the hub when they are written, and by agents where a
//! hub has no admission.

use std::collections::BTreeSet;

use bellwether_api::Kind as _;
use bellwether_api::admission::{Admission, Attributes, Denial, Operation, Review, Rule};
use bellwether_api::work::names::condition;
use bellwether_api::work::{
    CelExpression, ConditionRuleType, GROUP, ManifestWork, ManifestWorkReplicaSet, ManifestWorkSpec,
};
use serde_json::Value;

use crate::rules::well_known;

const WORKS: &str = ManifestWork::NAMES.plural;
const REPLICA_SETS: &str = ManifestWorkReplicaSet::NAMES.plural;

/// The rules of works: which manifests are refused, and in whose name they may be applied.
#[derive(Debug, Clone, Copy)]
pub struct WorkAdmission;

impl Admission for WorkAdmission {
    fn name(&self) -> &'static str {
        "work"
    }

    fn rules(&self) -> &'static [Rule] {
        const RULES: &[Rule] = &[Rule {
            group: GROUP,
            resources: &[WORKS, REPLICA_SETS],
            operations: &[Operation::Create, Operation::Update],
            condition: None,
        }];
        RULES
    }

    fn validate(&self, review: &Review<'_>, object: &Value) -> Result<(), Denial> {
        // Anyone who lets go of an object that is being deleted is not asked what was in it.
        if object["metadata"]["deletionTimestamp"].is_string() {
            return Ok(());
        }
        match review.resource {
            WORKS => check_work(review, object),
            REPLICA_SETS => check_template(review, object),
            _ => Ok(()),
        }
    }
}

fn check_work(review: &Review<'_>, object: &Value) -> Result<(), Denial> {
    if is_new(review, object) {
        check_manifest_work(object).map_err(Denial::BadRequest)?;
        warn(review, &object["spec"]);
    }
    check_executor(review, object)
}

/// A template has whole manifests; how large they are together does not matter, since works are
/// split.
fn check_template(review: &Review<'_>, object: &Value) -> Result<(), Denial> {
    let template = &object["spec"]["manifestWorkTemplate"];
    check_rules(template).map_err(Denial::BadRequest)?;
    if is_new(review, object) {
        warn(review, template);
    }
    let Some(manifests) = template.pointer("/workload/manifests") else {
        return Ok(());
    };
    let manifests = manifests.as_array().map_or(&[][..], Vec::as_slice);
    check_manifests(manifests, usize::MAX).map_err(Denial::BadRequest)
}

fn is_new(review: &Review<'_>, object: &Value) -> bool {
    review.old.is_none_or(|old| old["spec"] != object["spec"])
}

/// Warns of rules that can never hold.
fn warn(review: &Review<'_>, spec: &Value) {
    for warning in warnings(spec) {
        review.warn(warning);
    }
}

/// To have a work applied in somebody's name takes a right of its own.
fn check_executor(review: &Review<'_>, object: &Value) -> Result<(), Denial> {
    let changed = changed_executor(object, review.old).map_err(Denial::BadRequest)?;
    let Some(account) = changed else {
        return Ok(());
    };
    let name = format!("system:serviceaccount:{}:{}", account.0, account.1);
    let wanted = Attributes {
        verb: "execute-as",
        group: GROUP,
        resource: WORKS,
        name: &name,
        namespace: review.namespace,
        ..Attributes::default()
    };
    if review.facts.allows(&wanted) {
        return Ok(());
    }
    let denial = executor_denial(review.user, &account, review.namespace);
    Err(Denial::BadRequest(denial))
}

/// The largest size of all manifests of a work together, in bytes.
pub const MANIFEST_LIMIT: usize = 512_000;

/// What is said of a work without manifests.
pub(crate) const NO_MANIFESTS: &str = "manifests should not be empty";

/// What is wrong with a CEL rule that says nothing.
pub(crate) const NO_EXPRESSIONS: &str =
    "a rule of type CEL needs at least one expression in celExpressions";

/// What is wrong with an expression that is a number, for example.
pub(crate) const NO_EXPRESSION: &str =
    "an expression is a text, or an object with the text in its field expression";

/// What is wrong with the manifests of a work; the words are those of Open Cluster Management.
pub fn check_manifests(manifests: &[Value], limit: usize) -> Result<(), String> {
    check_size(manifests, limit)?;
    let mut seen = Seen::default();
    manifests
        .iter()
        .try_for_each(|manifest| seen.check(manifest))
}

/// Whether there are manifests, and not too many: what concerns all of them together.
pub fn check_size(manifests: &[Value], limit: usize) -> Result<(), String> {
    if manifests.is_empty() {
        return Err(NO_MANIFESTS.to_owned());
    }
    let size: usize = manifests
        .iter()
        .map(|manifest| manifest.to_string().len())
        .sum();
    if size > limit {
        return Err(format!(
            "the size of manifests is {size} bytes which exceeds the {limit} limit"
        ));
    }
    Ok(())
}

/// Manifests of a work that have been looked at: none may come twice.
#[derive(Debug, Default)]
pub struct Seen<'a>(BTreeSet<[&'a str; 4]>);

impl<'a> Seen<'a> {
    /// What is wrong with one manifest, given those before it.
    pub fn check(&mut self, manifest: &'a Value) -> Result<(), String> {
        let text = |pointer: &str| {
            let found = manifest.pointer(pointer).and_then(Value::as_str);
            found.unwrap_or_default()
        };
        let name = text("/metadata/name");
        let problems = [
            (name.is_empty(), "name must be set in manifest"),
            (
                !text("/metadata/generateName").is_empty(),
                "generateName must not be set in manifest",
            ),
        ];
        let problems = problems.iter().filter(|(is_one, _)| *is_one);
        let problems: Vec<&str> = problems.map(|(_, problem)| *problem).collect();
        if !problems.is_empty() {
            return Err(problems.join(", "));
        }
        let (api_version, kind) = (text("/apiVersion"), text("/kind"));
        let namespace = text("/metadata/namespace");
        if !self.0.insert([api_version, kind, namespace, name]) {
            return Err(format!(
                "duplicate manifest for resource {namespace}/{name} with resource type {api_version}.{kind}"
            ));
        }
        Ok(())
    }
}

/// What is wrong with a whole ManifestWork as it was sent.
pub fn check_manifest_work(work: &Value) -> Result<(), String> {
    check_name(work["metadata"]["name"].as_str().unwrap_or_default())?;
    let none = Vec::new();
    let manifests = work
        .pointer("/spec/workload/manifests")
        .and_then(Value::as_array);
    check_manifests(manifests.unwrap_or(&none), MANIFEST_LIMIT)?;
    check_rules(&work["spec"])
}

/// What is wrong with the rules in the configurations of a work, or of a template, as they were
/// sent.
pub fn check_rules(spec: &Value) -> Result<(), String> {
    for (path, _, rule) in rules_of(spec) {
        let at = |problem: String| format!("{path}: {problem}");
        let expressions = rule["celExpressions"].as_array().into_iter().flatten();
        let expressions = expressions.map(|it| it.as_str().or(it["expression"].as_str()));
        check_rule(
            rule["condition"].as_str(),
            rule["type"].as_str().unwrap_or_default(),
            expressions,
        )
        .map_err(at)?;
    }
    Ok(())
}

/// The rules of a work as they were sent, each with its path and the identifier that it belongs to.
fn rules_of(spec: &Value) -> impl Iterator<Item = (String, &Value, &Value)> {
    let configs = spec["manifestConfigs"].as_array().into_iter().flatten();
    configs.enumerate().flat_map(|(config_index, config)| {
        let rules = config["conditionRules"].as_array().into_iter().flatten();
        rules.enumerate().map(move |(rule_index, rule)| {
            let path = format!("manifestConfigs[{config_index}].conditionRules[{rule_index}]");
            (path, &config["resourceIdentifier"], rule)
        })
    })
}

/// What the writer of a work is warned of: rules that can never hold.
pub fn warnings(spec: &Value) -> Vec<String> {
    let mut found = Vec::new();
    for (path, identifier, rule) in rules_of(spec) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (group, resource) = (text(&identifier["group"]), text(&identifier["resource"]));
        let is_well_known = matches!(
            ConditionRuleType::from(text(&rule["type"])),
            ConditionRuleType::WellKnownConditions | ConditionRuleType::WellKnownCompletions
        );
        let name = rule["condition"].as_str().filter(|name| !name.is_empty());
        let name = name.unwrap_or(condition::COMPLETE);
        if is_well_known && !well_known::is_supported(name, &group, &resource) {
            let dot = if group.is_empty() { "" } else { "." };
            found.push(format!(
                "{path}: there is no well-known rule for {name} of {resource}{dot}{group}, so the \
                 condition will be Unknown; use a rule of type CEL"
            ));
        }
    }
    found
}

/// What is wrong with one rule.
fn check_rule<'a>(
    condition: Option<&str>,
    kind: &str,
    expressions: impl Iterator<Item = Option<&'a str>>,
) -> Result<(), String> {
    check_conditions(condition)?;
    if kind != ConditionRuleType::Cel.as_str() {
        return Ok(());
    }
    let mut is_empty = true;
    for expression in expressions {
        is_empty = false;
        expression.ok_or(NO_EXPRESSION)?;
    }
    if is_empty {
        return Err(NO_EXPRESSIONS.to_owned());
    }
    Ok(())
}

/// What is wrong with a work as an agent reads it, apart from single manifests: on hubs that refuse
/// no works, agents do.
pub fn check_spec(spec: &ManifestWorkSpec) -> Result<(), String> {
    let manifests = spec.workload.as_ref().map(|it| it.manifests.as_slice());
    check_size(manifests.unwrap_or_default(), MANIFEST_LIMIT)?;
    let rules = spec
        .manifest_configs
        .iter()
        .flat_map(|config| &config.condition_rules);
    for rule in rules {
        let expressions = rule.cel_expressions.iter().map(CelExpression::expression);
        check_rule(rule.condition.as_deref(), rule.kind.as_str(), expressions)?;
    }
    Ok(())
}

/// What is wrong with a work that is about to be written, in the words of a hub that refuses it.
pub fn check_new_spec(spec: &ManifestWorkSpec) -> Result<(), String> {
    check_spec(spec)?;
    let manifests = spec.workload.as_ref().map(|it| it.manifests.as_slice());
    let mut seen = Seen::default();
    manifests
        .unwrap_or_default()
        .iter()
        .try_for_each(|manifest| seen.check(manifest))
}

/// Rules that no schema of the peer refuses: about conditions that the agent says itself, and with
/// names that no status may have.
pub(crate) fn check_conditions<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<(), String> {
    for name in names {
        if condition::RESERVED.contains(&name) {
            return Err(format!(
                "the condition {name} is set by the agent itself and cannot be concluded by rules"
            ));
        }
        if !name.is_empty() && !is_condition_name(name) {
            return Err(format!(
                "{name:?} cannot be the name of a condition: it consists of letters, digits, '-', \
                 '_' and '.', begins and ends with a letter or a digit, and may have a prefix such \
                 as 'example.com/'"
            ));
        }
    }
    Ok(())
}

/// Whether the schema of conditions allows a name.
fn is_condition_name(name: &str) -> bool {
    let is_edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
    let is_made_of = |text: &str, more: &str| {
        is_edge(text.chars().next())
            && is_edge(text.chars().next_back())
            && text
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || more.contains(c))
    };
    let (prefix, last) = match name.split_once('/') {
        Some((prefix, last)) => (Some(prefix), last),
        None => (None, name),
    };
    let is_prefix = |prefix: &str| {
        let is_lower = !prefix.chars().any(|c| c.is_ascii_uppercase());
        is_lower && prefix.split('.').all(|label| is_made_of(label, "-"))
    };
    name.len() <= 316 && is_made_of(last, "-_.") && prefix.is_none_or(is_prefix)
}

/// The longest name of a work: that of its record begins with the hash of the hub.
const MAX_NAME: usize = 188;

/// What is wrong with the name of a work.
pub fn check_name(name: &str) -> Result<(), String> {
    if name.len() > MAX_NAME {
        return Err(format!(
            "the name of a work has at most {MAX_NAME} characters, this one has {}",
            name.len()
        ));
    }
    Ok(())
}

/// Who the requester has to be allowed to act as, for a work whose executor is set or changed:
/// namespace and name of the service account.
pub fn changed_executor(
    work: &Value,
    old: Option<&Value>,
) -> Result<Option<(String, String)>, String> {
    let executor = |work: &Value| work.pointer("/spec/executor").cloned();
    let new = executor(work);
    if old.is_some_and(|old| executor(old) == new) {
        return Ok(None);
    }
    let Some(new) = new.filter(|new| !new.is_null()) else {
        return Ok(None);
    };
    let account = &new["subject"]["serviceAccount"];
    if !account.is_object() {
        return Err("executor service account can not be nil".to_owned());
    }
    let text = |field: &str| account[field].as_str().unwrap_or_default().to_owned();
    Ok(Some((text("namespace"), text("name"))))
}

/// What is said when the requester is not allowed to act as the executor.
pub fn executor_denial(user: &str, account: &(String, String), namespace: &str) -> String {
    format!(
        "user {user} cannot manipulate the Manifestwork with executor {}/{} in namespace {namespace}",
        account.0, account.1
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn map(name: &str) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "n"}})
    }

    #[test]
    fn wrong_manifests_are_refused() {
        let check = |manifests: Value, limit: usize, expected: Result<(), &str>| {
            let list = manifests.as_array().unwrap();
            let found = check_manifests(list, limit);
            assert_eq!(found, expected.map_err(str::to_owned), "{manifests}");
        };
        check(json!([map("a"), map("b")]), 1000, Ok(()));
        check(json!([]), 1000, Err("manifests should not be empty"));
        check(
            json!([map("a")]),
            50,
            Err("the size of manifests is 78 bytes which exceeds the 50 limit"),
        );
        check(
            json!([{"apiVersion": "v1", "kind": "ConfigMap"}]),
            1000,
            Err("name must be set in manifest"),
        );
        check(
            json!([{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "x"}}]),
            1000,
            Err("name must be set in manifest, generateName must not be set in manifest"),
        );
        check(
            json!([{"kind": "ConfigMap", "metadata": {"name": "x", "generateName": "x"}}]),
            1000,
            Err("generateName must not be set in manifest"),
        );
        check(
            json!([map("a"), map("b"), map("a")]),
            1000,
            Err("duplicate manifest for resource n/a with resource type v1.ConfigMap"),
        );
    }

    #[test]
    fn conditions_of_the_agent_are_no_conclusions() {
        let work = json!({"spec": {
            "workload": {"manifests": [map("a")]},
            "manifestConfigs": [{"conditionRules": [{"type": "CEL", "condition": "Applied"}]}],
        }});
        assert_eq!(
            check_manifest_work(&work).unwrap_err(),
            "manifestConfigs[0].conditionRules[0]: the condition Applied is set by the agent \
             itself and cannot be concluded by rules"
        );
    }

    #[test]
    fn a_rule_needs_expressions_that_are_texts() {
        let check = |expressions: Value, expected: Result<(), &str>| {
            let rule = json!({"type": "CEL", "condition": "Ready", "celExpressions": expressions});
            let spec = json!({"workload": {"manifests": [map("a")]}, "manifestConfigs": [{
                "resourceIdentifier": {"resource": "jobs", "name": "j"},
                "conditionRules": [rule],
            }]});
            let expected = expected.map_err(str::to_owned);
            let path = "manifestConfigs[0].conditionRules[0]: ";
            let sent = check_rules(&spec).map_err(|it| it.replace(path, ""));
            assert_eq!(sent, expected, "{expressions}");
            let spec: ManifestWorkSpec = serde_json::from_value(spec).unwrap();
            assert_eq!(check_spec(&spec), expected, "{expressions}");
        };
        check(json!(["true"]), Ok(()));
        check(json!([{"expression": "true"}]), Ok(()));
        check(json!([]), Err(NO_EXPRESSIONS));
        check(json!([5]), Err(NO_EXPRESSION));
        check(json!([null]), Err(NO_EXPRESSION));
        check(json!(["true", {"expression": 5}]), Err(NO_EXPRESSION));
        check(json!([{}]), Err(NO_EXPRESSION));
    }

    #[test]
    fn rules_that_can_never_hold_are_warned_of() {
        let check = |group: &str, resource: &str, rule: Value, expected: bool| {
            let spec = json!({"manifestConfigs": [{
                "resourceIdentifier": {"group": group, "resource": resource, "name": "x"},
                "conditionRules": [rule],
            }]});
            let found = warnings(&spec);
            assert_eq!(!found.is_empty(), expected, "{spec} {found:?}");
        };
        let complete = || json!({"type": "WellKnownCompletions"});
        check("batch", "jobs", complete(), false);
        check("", "jobs", complete(), false);
        check("", "pods", complete(), false);
        check("apps", "deployments", complete(), true);
        check("example.com", "jobs", complete(), true);
        check("", "configmaps", complete(), true);
        let progressing = json!({"type": "WellKnownConditions", "condition": "Progressing"});
        check("apps", "deployments", progressing, false);
        let cel = json!({"type": "CEL", "condition": "Complete", "celExpressions": ["true"]});
        check("apps", "deployments", cel, false);
        let identifier = json!({"group": "apps", "resource": "deployments"});
        let config = json!({"resourceIdentifier": identifier, "conditionRules": [complete()]});
        assert_eq!(
            warnings(&json!({"manifestConfigs": [config]})),
            [
                "manifestConfigs[0].conditionRules[0]: there is no well-known rule for Complete of \
              deployments.apps, so the condition will be Unknown; use a rule of type CEL"
            ]
        );
    }

    #[test]
    fn names_of_conditions_are_those_that_a_status_may_have() {
        let check = |name: &str, expected: bool| {
            assert_eq!(check_conditions([name]).is_ok(), expected, "{name}");
        };
        check("Initialized", true);
        check("my_own.condition-2", true);
        check("example.com/Ready", true);
        check("", true);
        check("my condition", false);
        check("-x", false);
        check("x.", false);
        check("Example.com/Ready", false);
        check("a/b/c", false);
        check("/x", false);
        check("grün", false);
        check(&"x".repeat(317), false);
    }

    #[test]
    fn names_of_works_leave_room_for_those_of_records() {
        assert_eq!(check_name(&"x".repeat(188)), Ok(()));
        assert_eq!(
            check_name(&"x".repeat(189)).unwrap_err(),
            "the name of a work has at most 188 characters, this one has 189"
        );
    }

    #[test]
    fn an_executor_is_asked_about_when_it_changes() {
        let with = |name: &str| {
            json!({"spec": {"executor": {"subject": {"type": "ServiceAccount",
                "serviceAccount": {"namespace": "n", "name": name}}}}})
        };
        let account = Some(("n".to_owned(), "a".to_owned()));
        assert_eq!(changed_executor(&with("a"), None), Ok(account.clone()));
        assert_eq!(changed_executor(&with("a"), Some(&with("b"))), Ok(account));
        assert_eq!(changed_executor(&with("a"), Some(&with("a"))), Ok(None));
        assert_eq!(changed_executor(&json!({}), Some(&with("a"))), Ok(None));
        let nil = json!({"spec": {"executor": {"subject": {"type": "ServiceAccount"}}}});
        assert_eq!(
            changed_executor(&nil, None).unwrap_err(),
            "executor service account can not be nil"
        );
    }
}
