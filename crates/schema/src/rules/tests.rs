use bellwether_cel::Budget;
use serde_json::json;

use super::run::Outcome;
use super::*;
use crate::correlate::Correlated;
use crate::field::FieldPath;
use crate::parse;

/// Runs the rules of a resource whose `spec` has the schema `spec`.
fn outcome(spec: &Value, new: &Value, old: Option<&Value>, budget: &mut Budget) -> Outcome {
    let schema = parse(&json!({"type": "object", "properties": {"spec": spec}})).unwrap();
    let tree = RuleTree::compile(&schema, true).unwrap();
    let wrap = |spec: &Value| json!({"kind": "K", "metadata": {"name": "n"}, "spec": spec});
    let (new, old) = (wrap(new), old.map(wrap));
    let change = old.as_ref().map(|old| Correlated {
        new: &new,
        old,
        schema: &schema,
    });
    run(
        &tree,
        &schema,
        &FieldPath::NIL,
        (&new, old.as_ref()),
        change,
        (budget, &|| false),
    )
}

#[track_caller]
fn check(spec: Value, new: Value, old: Option<Value>, expected: &[&str]) {
    let found = outcome(&spec, &new, old.as_ref(), &mut Budget::kubernetes());
    let texts: Vec<_> = found.errors.iter().map(ToString::to_string).collect();
    assert_eq!(texts, expected, "{new} from {old:?}");
}

fn with_rule(mut schema: Value, rule: Value) -> Value {
    schema["x-kubernetes-validations"] = json!([rule]);
    schema
}

fn text(rule: Value) -> Value {
    with_rule(json!({"type": "string"}), rule)
}

#[test]
fn a_rule_that_does_not_hold_is_an_error() {
    let rule = text(json!({"rule": "self.startsWith('a')"}));
    check(rule.clone(), json!("abc"), None, &[]);
    check(
        rule,
        json!("xyz"),
        None,
        &[r#"spec: Invalid value: "xyz": failed rule: self.startsWith('a')"#],
    );
    check(
        text(json!({"rule": "self == 'a'", "message": " only a "})),
        json!("b"),
        None,
        &[r#"spec: Invalid value: "b": only a"#],
    );
}

#[test]
fn objects_and_lists_are_not_repeated_in_errors() {
    let object = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
    check(
        with_rule(object, json!({"rule": "self.a > 1", "message": "more"})),
        json!({"a": 1}),
        None,
        &["spec: Invalid value: more"],
    );
}

#[test]
fn messages_can_be_computed() {
    let with = |expression: &str| {
        text(json!({"rule": "self == 'a'", "messageExpression": expression, "message": "fallback"}))
    };
    let cases = [
        ("'not ' + self", "not b"),
        ("'  '", "fallback"),
        ("'two\\nlines'", "fallback"),
        ("['x'][self.size()]", "fallback"),
    ];
    for (expression, expected) in cases {
        let expected = format!("spec: Invalid value: \"b\": {expected}");
        check(with(expression), json!("b"), None, &[&expected]);
    }
}

#[test]
fn a_rule_chooses_reason_and_field() {
    let with = |reason: &str| {
        let rule =
            json!({"rule": "self.a > 1", "message": "m", "reason": reason, "fieldPath": ".a"});
        with_rule(
            json!({"type": "object", "properties": {"a": {"type": "integer"}}}),
            rule,
        )
    };
    let cases = [
        ("FieldValueInvalid", "spec.a: Invalid value: m"),
        ("FieldValueForbidden", "spec.a: Forbidden: m"),
        ("FieldValueRequired", "spec.a: Required value: m"),
        ("FieldValueDuplicate", "spec.a: Duplicate value"),
    ];
    for (reason, expected) in cases {
        check(with(reason), json!({"a": 1}), None, &[expected]);
    }
}

#[test]
fn rules_that_fail_say_so() {
    check(
        with_rule(json!({"type": "integer"}), json!({"rule": "10 / self > 1"})),
        json!(0),
        None,
        &["spec: Invalid value: \"integer\": division by zero evaluating rule: 10 / self > 1"],
    );
    check(
        with_rule(
            json!({"x-kubernetes-int-or-string": true}),
            json!({"rule": "self < 5"}),
        ),
        json!("x"),
        None,
        &[
            "spec: Invalid value: \"\": 'no such overload': call arguments did not match a supported \
           operator, function or macro signature for rule: self < 5",
        ],
    );
    check(
        text(json!({"rule": "self.nothing"})),
        json!("x"),
        None,
        &[
            "spec: Invalid value: \"string\": rule compile error: compilation failed: ERROR: <input>:1:5: \
           type 'string' does not support field selection\n | self.nothing\n | ....^",
        ],
    );
}

#[test]
fn transition_rules_need_something_to_compare_with() {
    let rule = text(json!({"rule": "self == oldSelf", "message": "fixed"}));
    check(rule.clone(), json!("a"), None, &[]);
    check(rule.clone(), json!("a"), Some(json!("a")), &[]);
    check(
        rule.clone(),
        json!("a"),
        Some(json!("b")),
        &["spec: Invalid value: \"a\": fixed"],
    );
    check(rule, json!("a"), Some(json!(null)), &[]);
    let optional = text(json!({
        "rule": "oldSelf.hasValue() || self == 'first'", "optionalOldSelf": true, "message": "first",
    }));
    check(optional.clone(), json!("first"), None, &[]);
    check(
        optional.clone(),
        json!("second"),
        None,
        &["spec: Invalid value: \"second\": first"],
    );
    check(optional, json!("second"), Some(json!("first")), &[]);
}

#[test]
fn items_of_keyed_lists_are_compared_by_key() {
    let item = with_rule(
        json!({"type": "object", "properties": {"k": {"type": "string"}, "v": {"type": "integer"}}}),
        json!({"rule": "self.v >= oldSelf.v", "message": "may only grow"}),
    );
    let list = json!({"type": "array", "items": item, "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["k"]});
    check(
        list,
        json!([{"k": "b", "v": 1}, {"k": "c", "v": 0}, {"k": "a", "v": 2}]),
        Some(json!([{"k": "a", "v": 1}, {"k": "b", "v": 2}])),
        &["spec[0]: Invalid value: may only grow"],
    );
}

#[test]
fn rules_reach_into_maps_and_lists() {
    let small = with_rule(
        json!({"type": "integer"}),
        json!({"rule": "self < 5", "message": "small"}),
    );
    check(
        json!({"type": "array", "items": small}),
        json!([1, 7, null]),
        None,
        &["spec[1]: Invalid value: 7: small"],
    );
    check(
        json!({"type": "object", "additionalProperties": small}),
        json!({"a": 1, "b": 7}),
        None,
        &["spec[b]: Invalid value: 7: small"],
    );
}

#[test]
fn unchanged_violations_are_tolerated() {
    let rule = text(json!({"rule": "self == 'a'", "message": "only a"}));
    let spec = json!({"type": "object", "properties": {"x": rule, "y": {"type": "string"}}});
    let old = json!({"x": "b"});
    let new = json!({"x": "b", "y": "changed"});
    let found = outcome(&spec, &new, Some(&old), &mut Budget::kubernetes());
    assert!(found.errors.is_empty());
    assert_eq!(
        found.tolerated.into_vec()[0].to_string(),
        "spec.x: Invalid value: \"b\": only a"
    );
    check(
        spec,
        json!({"x": "c"}),
        Some(old),
        &["spec.x: Invalid value: \"c\": only a"],
    );
}

#[test]
fn rules_see_name_and_kind_of_the_resource() {
    let schema = parse(&with_rule(
        json!({"type": "object"}),
        json!({"rule": "self.metadata.name == 'n' && self.kind == 'Other'", "message": "m"}),
    ))
    .unwrap();
    let tree = RuleTree::compile(&schema, true).unwrap();
    let object = json!({"kind": "K", "metadata": {"name": "n"}});
    let mut budget = Budget::kubernetes();
    let found = run(
        &tree,
        &schema,
        &FieldPath::NIL,
        (&object, None),
        None,
        (&mut budget, &|| false),
    );
    assert_eq!(
        found.errors.into_vec()[0].to_string(),
        "<nil>: Invalid value: m"
    );
}

#[test]
fn the_budget_ends_validation() {
    let rule = json!({"rule": "self.all(x, x > 0)"});
    let spec = json!({"type": "object", "properties": {
        "a": with_rule(json!({"type": "array", "items": {"type": "integer"}}), rule.clone()),
        "b": with_rule(json!({"type": "array", "items": {"type": "integer"}}), rule),
    }});
    let object = json!({"a": vec![1; 100], "b": [1]});
    let errors = |budget: &mut Budget| -> Vec<String> {
        let found = outcome(&spec, &object, None, budget);
        found.errors.iter().map(ToString::to_string).collect()
    };
    assert_eq!(errors(&mut Budget::kubernetes()), [""; 0]);
    assert_eq!(
        errors(&mut Budget::new(Budget::PER_CALL_LIMIT, 50)),
        [
            "spec.a: Invalid value: \"array\": validation failed due to running out of cost budget, no \
          further validation rules will be run"
        ]
    );
    assert_eq!(
        errors(&mut Budget::new(50, 1000)),
        [
            "spec.a: Invalid value: \"array\": 'operation cancelled: actual cost limit exceeded': no further \
          validation rules will be run due to call cost exceeds limit for rule: self.all(x, x > 0)"
        ]
    );
}

#[test]
fn a_schema_without_rules_has_no_tree() {
    assert!(RuleTree::compile(&parse(&json!({"type": "object"})).unwrap(), true).is_none());
}
