//! Comprehensions whose guards depend on data that comes after an evaluation.

#![allow(clippy::expect_used, reason = "a failure here is a failed test")]

use bellwether_cue::diagnostic::Code;
use bellwether_cue::host::{Budget, Evaluation, Template};
use serde_json::json;

/// A path, and the JSON that comes there.
type Fill = (&'static [&'static str], serde_json::Value);

/// The exported value or the error. Of several reasons why a value is not complete yet, any may be
/// named first.
fn export(evaluation: &mut Evaluation) -> Result<serde_json::Value, String> {
    let root = evaluation.root();
    evaluation
        .export_json(root)
        .map_err(|problem| match problem.code {
            Code::Incomplete => "incomplete".to_owned(),
            _ => problem.to_string(),
        })
}

/// Fills step by step, and compares each time with an evaluation that had all data at once.
#[track_caller]
fn check(source: &str, fills: &[Fill]) {
    let template = Template::compile(source).expect("it compiles");
    let mut refilled = template.evaluate(Budget::default());
    let _ = export(&mut refilled);
    for (done, (path, data)) in fills.iter().enumerate() {
        refilled.fill_json(path, data);
        let mut whole = template.evaluate(Budget::default());
        for (path, data) in &fills[..=done] {
            whole.fill_json(path, data);
        }
        assert_eq!(
            export(&mut refilled),
            export(&mut whole),
            "{source}\nafter {:?}",
            &fills[..=done]
        );
    }
}

const FIELDS: &str =
    "parameter: fields: {host: 1, port: 2, user: string | *\"root\"}\nfound: {...}\n";

/// Fills what is looked for, one field after the other.
#[track_caller]
fn check_found(declarations: &str) {
    for order in [
        ["host", "port", "user"],
        ["user", "host", "port"],
        ["port", "user", "host"],
    ] {
        let fills = order.map(|name| {
            let path: &[&str] = match name {
                "host" => &["found", "host"],
                "port" => &["found", "port"],
                _ => &["found", "user"],
            };
            (path, json!(name))
        });
        let source = format!("{FIELDS}{declarations}");
        check(&source, &fills);
        let in_one: [Fill; 2] = [
            (&["found"], json!({order[0]: 1})),
            (&["found"], json!({order[2]: 2})),
        ];
        check(&source, &in_one);
    }
}

#[test]
fn a_let_of_a_list_loses_its_first_element() {
    check_found(
        "let missing = [for f, _ in parameter.fields if found[f] == _|_ {f}]\nout: missing",
    );
    check_found(
        "let missing = [for f, _ in parameter.fields if found[f] == _|_ {f}]\nif len(missing) > 0 {message: \"missing \\(missing[0])\"}",
    );
    check_found(
        "let missing = [for f, _ in parameter.fields if found[f] == _|_ {f}]\nif len(missing) > 0 {message: missing}",
    );
}

#[test]
fn a_field_of_a_list_loses_its_first_element() {
    check_found(
        "missing: [for f, _ in parameter.fields if found[f] == _|_ {f}]\nfirst: *missing[0] | 0",
    );
}

#[test]
fn a_list_gains_elements() {
    check_found("let there = [for f, _ in parameter.fields if found[f] != _|_ {f}]\nout: there");
    check_found(
        "there: [\"a\", for f, _ in parameter.fields if found[f] != _|_ {f}, \"z\"]\nlast: there[len(there)-1]",
    );
}

#[test]
fn elements_are_structs() {
    check_found(
        "there: [for f, v in parameter.fields if found[f] == _|_ {name: f, value: v}]\nfirst: *there[0].name | 0",
    );
    check_found(
        "let there = [for f, v in parameter.fields if found[f] != _|_ {name: f, value: found[f]}]\nout: there",
    );
}

#[test]
fn structs_gain_and_lose_fields() {
    check_found(
        "out: {for f, v in parameter.fields if found[f] == _|_ {\"\\(f)\": v}}\nn: len(out)",
    );
    check_found(
        "let gone = {for f, _ in parameter.fields if found[f] == _|_ {(f): true}}\nout: gone\nnames: [for k, _ in gone {k}]",
    );
    check_found(
        "let there = {for f, _ in parameter.fields if found[f] != _|_ {(f): found[f]}}\nout: there",
    );
}

/// Everything that can be made of a list, whatever the order in which its elements go.
#[test]
fn whatever_reads_the_list_sees_what_is_left() {
    const READERS: [&str; 6] = [
        "if len(missing) > 0 {out: \"\\(missing[0])\"}",
        "if len(missing) > 0 {out: missing[0]}",
        "if len(missing) > 0 {out: 3}",
        "out: *missing[0] | 0",
        "out: len(missing)",
        "out: {if missing[0] != _|_ {first: missing[0]}}",
    ];
    for reader in READERS {
        for declared in ["let missing =", "missing:"] {
            for guard in ["== _|_", "!= _|_"] {
                check_found(&format!(
                    "{declared} [for f, _ in parameter.fields if found[f] {guard} {{f}}]\n{reader}"
                ));
                check_found(&format!(
                    "{declared} [for f, _ in parameter.fields if found[f] {guard} {{name: f}}]\n\
                     names: [for it in missing {{it.name}}]\n{reader}"
                ));
            }
        }
    }
}

#[test]
fn a_list_that_is_bound_is_seen_through_other_bindings() {
    check_found(
        "let missing = [for f, _ in parameter.fields if found[f] == _|_ {name: f}]\n\
         let first = *missing[0].name | \"nothing\"\nlet text = \"\\(first) is missing\"\nout: text",
    );
}

#[test]
fn a_struct_that_is_bound_breaks_when_data_comes() {
    let fills: [Fill; 2] = [(&["in", "n"], json!(1)), (&["in", "m"], json!(2))];
    check(
        "in: {...}\nlet both = {a: in.n, a: in.m}\nbroken: [if both == _|_ {true}]",
        &fills,
    );
}
