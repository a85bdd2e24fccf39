//! Patches come to the same with texts and without them.

use proptest::prelude::*;

use super::super::{Operand, PatchError};
use super::{by_text, compiled};
use crate::host::{Budget, Evaluation};

type Unify = fn(Operand<'_>, Operand<'_>, Budget) -> Result<Evaluation, PatchError>;

/// Applies patches one after the other: what came of each, defaults kept and taken, or its problem.
fn outcome(base: &str, patches: &[String], unify: Unify) -> Vec<String> {
    let mut evaluation = compiled(base);
    let mut outcome = Vec::new();
    for patch in patches {
        let mut change = compiled(patch);
        let (base, patch) = (evaluation.root(), change.root());
        let merged = unify(
            Operand {
                evaluation: &mut evaluation,
                value: base,
            },
            Operand {
                evaluation: &mut change,
                value: patch,
            },
            Budget::default(),
        );
        match merged {
            Ok(merged) => evaluation = merged,
            Err(problem) => {
                outcome.push(problem.to_string());
                return outcome;
            }
        }
        let root = evaluation.root();
        outcome.push(match evaluation.json(root) {
            Ok(json) => json,
            Err(problem) => problem.to_string(),
        });
        let problems = evaluation.validate_concrete(root);
        outcome.extend(problems.iter().map(ToString::to_string));
    }
    outcome
}

#[track_caller]
fn check(base: &str, patches: &[String]) {
    let expected = outcome(base, patches, by_text::unify);
    let actual = outcome(base, patches, super::super::unify);
    assert_eq!(actual, expected, "{base}\n<-\n{}", patches.join("\n<-\n"));
}

/// Labels, of which some have to be quoted, and some are the words of the language.
fn label() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "a", "b", "c", "name", "\"a-b\"", "\"for\"", "\"_x\"", "\"0\"", "z9",
    ])
}

fn scalar() -> impl Strategy<Value = String> {
    let choices = [
        "1",
        "2",
        "-1",
        "1.0",
        "1.5",
        "1e3",
        "0x10",
        "\"s\"",
        "\"t\"",
        "\"x\\ny\\u0001\\\"\"",
        "true",
        "false",
        "null",
        "'by\\x00tes'",
        "\"é…\"",
    ];
    prop::sample::select(choices.to_vec()).prop_map(ToOwned::to_owned)
}

fn open() -> impl Strategy<Value = String> {
    let choices = [
        "int",
        "string",
        "number",
        "bool",
        "_",
        "*1 | int",
        "*\"s\" | string",
        "1 | 2",
        ">0",
        ">=1 & <5",
        "int & >1",
        "=~\"^s\"",
        "*{a: 1} | {b: 2}",
        "*[1, 2] | [...int]",
        "{...}",
        "[...]",
        "[...int]",
        "[1, ...int]",
        "[...{a: *1 | int}]",
        "*null | {a: 1, b: 2}",
        "uint8",
        "-5 | *-1",
    ];
    prop::sample::select(choices.to_vec()).prop_map(ToOwned::to_owned)
}

/// A marker above a field, or none.
fn marker() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "",
        "",
        "",
        "// about it\n",
        "// +patchKey=name\n",
        "// +patchKey=a\n",
        "// +patchKey=a.b,name\n",
        "// +patchStrategy=retainKeys\n",
        "// +patchStrategy=replace\n",
        "// +patchKey=name\n// +patchStrategy=retainKeys\n",
    ])
}

/// A value with parts that are plain and parts that are not.
fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![3 => scalar(), 1 => open()];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            fields(inner.clone()).prop_map(|fields| format!("{{\n{fields}}}")),
            prop::collection::vec(inner.clone(), 0..4)
                .prop_map(|items| format!("[{}]", items.join(", "))),
            // Elements that have a name in common with others.
            prop::collection::vec((prop::sample::select(vec!["x", "y", "z"]), inner), 1..4)
                .prop_map(|items| {
                    let items: Vec<String> = items
                        .iter()
                        .map(|(name, value)| format!("{{name: \"{name}\", a: {value}}}"))
                        .collect();
                    format!("[{}]", items.join(", "))
                }),
        ]
    })
}

fn fields(value: impl Strategy<Value = String>) -> impl Strategy<Value = String> {
    prop::collection::vec((marker(), label(), value), 0..5).prop_map(|mut fields| {
        // A field that is declared twice mostly contradicts itself.
        let mut seen = Vec::new();
        fields.retain(|(_, label, _)| {
            let is_new = !seen.contains(label);
            seen.push(*label);
            is_new
        });
        let fields = fields.iter();
        fields
            .map(|(marker, label, value)| format!("{marker}{label}: {value}\n"))
            .collect::<Vec<_>>()
            .concat()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn texts_change_nothing(
        base in fields(value()),
        patches in prop::collection::vec(fields(value()), 1..3),
    ) {
        check(&base, &patches);
    }

    /// Most random patches contradict their base; these add to it, or decide what it left open.
    #[test]
    fn texts_change_nothing_where_a_patch_fits(
        shared in fields(value()),
        base in fields(value()),
        patch in fields(value()),
        marker in marker(),
    ) {
        let base = format!("spec: {{\n{shared}}}\nmetadata: {{\n{base}}}\n");
        let patch = format!("more: {{\n{patch}}}\n{marker}spec: {{\n{shared}}}\n");
        check(&base, &[patch.clone(), patch]);
    }
}

#[test]
fn texts_change_nothing_about_objects() {
    let base = r#"
        apiVersion: "apps/v1"
        kind: "Deployment"
        metadata: name: "web"
        spec: {
            replicas: *1 | int
            selector: matchLabels: "app.oam.dev/component": "web"
            template: spec: {
                containers: [{name: "web", image: "nginx", env: [{name: "A", value: "1"}]}]
                volumes: [{name: "v", emptyDir: {}}, {name: "w", hostPath: path: "/x"}]
            }
        }"#;
    let patches = [
        "spec: replicas: 3",
        "// +patchKey=name\nspec: template: spec: containers: [{name: \"web\", args: [\"-v\"]}, {name: \"side\", image: \"s\"}]",
        "// +patchKey=name\n// +patchStrategy=retainKeys\nspec: template: spec: volumes: [{name: \"w\", emptyDir: {}}]",
        "metadata: labels: {a: \"1\", \"b.c/d\": \"2\"}",
        "spec: replicas: \"many\"",
        "spec: template: spec: volumes: [{name: \"other\"}]",
        "spec: template: 1",
        "metadata: [1]",
        "metadata: name: {first: \"web\"}",
    ];
    for first in patches {
        for second in patches {
            check(base, &[first.to_owned(), second.to_owned()]);
        }
    }
}
