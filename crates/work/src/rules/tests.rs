use serde_json::{Value, json};

use super::*;

/// Checks what rules conclude from an object: condition, status, reason and message of each.
#[track_caller]
fn check(rules: Value, expected: &[[&str; 4]]) {
    let object = json!({"apiVersion": "batch/v1", "kind": "Job", "data": {"key": "1", "n": 3},
        "status": {"conditions": [{"type": "Complete", "status": "True"}]}});
    let read: Vec<ConditionRule> = serde_json::from_value(rules.clone()).unwrap();
    let read: Vec<&ConditionRule> = read.iter().collect();
    let found = conclude(&read, &object, &Programs::default(), Past::default());
    let found: Vec<[&str; 4]> = found
        .iter()
        .map(|it| [&*it.condition, it.status, &*it.reason, &*it.message])
        .collect();
    assert_eq!(found, expected, "{rules}");
}

fn cel(name: &str, expressions: Value) -> Value {
    json!({"condition": name, "type": "CEL", "celExpressions": expressions})
}

const PASSED: &str = reason::CONDITION_RULES_PASSED;
const FAILED: &str = reason::CONDITION_RULES_FAILED;

#[test]
fn well_known_rules_are_about_completion_unless_they_say_otherwise() {
    let complete = ["Complete", "True", PASSED, "Manifest is Complete"];
    check(json!([{"type": "WellKnownCompletions"}]), &[complete]);
    check(
        json!([{"type": "WellKnownConditions", "condition": "Complete"}]),
        &[complete],
    );
    check(
        json!([{"type": "WellKnownConditions", "condition": "Unheard"}]),
        &[UNHEARD],
    );
}

const UNHEARD: [&str; 4] = [
    "Unheard",
    "Unknown",
    "ConditionRuleUnsupported",
    "there is no well-known rule for Unheard of Job (batch/v1); use a rule of type CEL",
];

#[test]
fn what_is_false_goes_before_what_is_unknown() {
    let unheard = || json!({"type": "WellKnownConditions", "condition": "Unheard"});
    let with = |answer: &str| cel("Unheard", json!([answer]));
    check(json!([unheard(), with("true")]), &[UNHEARD]);
    check(json!([with("true"), unheard()]), &[UNHEARD]);
    let no = ["Unheard", "False", FAILED, "Manifest is not Unheard"];
    check(json!([unheard(), with("false")]), &[no]);
    check(json!([with("false"), unheard()]), &[no]);
}

#[test]
fn rules_and_expressions_of_a_condition_hold_together() {
    let (yes, no) = (
        ["C", "True", PASSED, "Manifest is C"],
        ["C", "False", FAILED, "Manifest is not C"],
    );
    check(
        json!([cel(
            "C",
            json!(["true", {"expression": "object.data.key == '1'"}])
        )]),
        &[yes],
    );
    check(json!([cel("C", json!(["true", "false"]))]), &[no]);
    check(
        json!([cel("C", json!(["true"])), cel("C", json!(["false"]))]),
        &[no],
    );
    check(
        json!([cel("C", json!(["false"])), cel("C", json!(["true"]))]),
        &[no],
    );
    let nothing =
        "failed to evaluate: a rule of type CEL needs at least one expression in celExpressions";
    check(
        json!([cel("C", json!([]))]),
        &[["C", "False", FAILED, nothing]],
    );
}

#[test]
fn what_is_not_true_is_false_and_stops_no_other_rule() {
    let after = ["D", "True", PASSED, "Manifest is D"];
    let failing = |expression: &str, message: &str| {
        let rules = json!([cel("C", json!([expression])), cel("D", json!(["true"]))]);
        check(rules, &[["C", "False", FAILED, message], after]);
    };
    failing(
        "object.data.none == 'x'",
        "failed to evaluate: no such key: none",
    );
    failing(
        "object.data.key",
        "failed to evaluate: expected bool result, got string",
    );
    failing(
        "object.data.n",
        "failed to evaluate: expected bool result, got int",
    );
    let large = "[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, a+b+c+d+e+f > 0))))))";
    failing(large, "failed to evaluate: CEL evaluation budget exceeded");
}

#[test]
fn a_rule_may_say_it_in_its_own_words() {
    let mut rule = cel("C", json!(["object.data.key == '1'"]));
    rule["message"] = json!("plain");
    check(json!([rule]), &[["C", "True", PASSED, "plain"]]);
    rule["messageExpression"] = json!("'key ' + object.data.key + ' ' + string(result)");
    check(json!([rule]), &[["C", "True", PASSED, "key 1 true"]]);
    rule["messageExpression"] = json!("object.data.none");
    check(json!([rule]), &[["C", "True", PASSED, "no such key: none"]]);
    let map = |status: &str| {
        json!([cel(
            "C",
            json!([format!(
                "{{'message': 'm', 'reason': 'R', 'status': {status}}}"
            )])
        )])
    };
    check(map("'True'"), &[["C", "True", "R", "m"]]);
    check(map("'False'"), &[["C", "False", "R", "m"]]);
    check(map("true"), &[["C", "True", "R", "m"]]);
    check(map("object.data.n == 4"), &[["C", "False", "R", "m"]]);
    check(map("'Unknown'"), &[["C", "Unknown", "R", "m"]]);
    let message =
        "failed to evaluate: expected status to be a bool, 'True', 'False' or 'Unknown', got 3";
    check(map("object.data.n"), &[["C", "False", FAILED, message]]);
    let choice = "object.data.n > 2 ? {'status': true, 'message': 'many'} : {'status': false, 'message': 'few'}";
    check(
        json!([cel("C", json!([choice]))]),
        &[["C", "True", PASSED, "many"]],
    );
}

#[test]
fn nothing_holds_of_an_object_that_nobody_has_seen() {
    let rules = json!([
        {"type": "WellKnownCompletions"},
        cel("Complete", json!(["true"])),
        {"type": "WellKnownConditions", "condition": "Unheard"},
        {"type": "WellKnownConditions", "condition": "Progressing"},
        cel("Ready", json!(["true"])),
        cel("Applied", json!(["true"])),
        cel("no name", json!(["true"])),
    ]);
    let rules: Vec<ConditionRule> = serde_json::from_value(rules).unwrap();
    let rules: Vec<&ConditionRule> = rules.iter().collect();
    let check = |rules: &[&ConditionRule], kind: &str, expected: &[(&str, &str)]| {
        let found = unseen(rules, "batch/v1", kind);
        let found: Vec<_> = found.iter().map(|it| (&*it.condition, it.status)).collect();
        assert_eq!(found, expected, "{kind}");
    };
    check(
        &rules,
        "Job",
        &[("Complete", FALSE), ("Unheard", UNKNOWN), ("Ready", FALSE)],
    );
    check(&rules[..1], "Bird", &[("Complete", UNKNOWN)]);
    check(&rules[..2], "Bird", &[("Complete", FALSE)]);
}

#[test]
fn an_unknown_type_of_rule_is_told() {
    let message = "unrecognized condition rule type Magic";
    check(
        json!([{"type": "Magic", "condition": "C"}]),
        &[["C", "Unknown", "ConditionRuleInvalid", message]],
    );
}
