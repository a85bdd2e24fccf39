//! Data that comes after an evaluation: it gives what it would have given before, and costs what depends
//! on it.

#![allow(clippy::expect_used, reason = "a failure here is a failed test")]

use bellwether_cue::builtins::{parse_json, write_json};
use bellwether_cue::host::{Budget, Counters, Evaluation, FieldOptions, Template};
use bellwether_cue::value::Value;
use proptest::prelude::*;

/// What an evaluation comes to: whether it is broken, and if not, the value of each field or that it has
/// none yet.
fn outcome(evaluation: &mut Evaluation) -> String {
    let root = evaluation.root();
    let problems = evaluation.validate(root);
    if let Some(limit) = problems.iter().find(|it| it.message.contains(LIMIT)) {
        return limit.message.clone();
    }
    if !problems.is_empty() {
        return "broken".to_owned();
    }
    let mut fields: Vec<String> = evaluation
        .fields(root, FieldOptions::default())
        .into_iter()
        .map(|field| match evaluation.export(field.value) {
            Ok(value) => format!("{}: {}", field.name, write_json(&value.sorted())),
            Err(_) => format!("{}: incomplete", field.name),
        })
        .collect();
    fields.sort();
    fields.join("\n")
}

const LIMIT: &str = "evaluation limit exceeded";

fn json(value: &str) -> Value {
    parse_json(value).expect("test data is JSON")
}

fn compile(source: &str) -> Template {
    Template::compile(source).unwrap_or_else(|problems| panic!("{source}\n{problems:?}"))
}

/// Enough for every program here that comes to an end.
const BUDGET: Budget = Budget {
    steps: 50_000,
    memory: 32 << 20,
    depth: 500,
    output: 1 << 20,
    disjuncts: 1_000,
};

/// A path and the data that comes there.
type Fill = (Vec<&'static str>, &'static str);

/// Fills step by step, with a look at everything in between, and compares each time with an
/// evaluation that had all data at once.
#[track_caller]
fn check(source: &str, fills: &[Fill]) {
    let template = compile(source);
    let mut step_by_step = template.evaluate(BUDGET);
    outcome(&mut step_by_step);
    for done in 1..=fills.len() {
        let (path, data) = &fills[done - 1];
        step_by_step.fill(path, json(data));
        let mut at_once = template.evaluate(BUDGET);
        for (path, data) in &fills[..done] {
            at_once.fill(path, json(data));
        }
        let (after, before) = (outcome(&mut step_by_step), outcome(&mut at_once));
        if [&after, &before].iter().any(|it| it.contains(LIMIT)) {
            // Where a limit cuts off something endless is a matter of what was done before.
            return;
        }
        assert_eq!(after, before, "{source}\nafter {:?}", &fills[..done]);
    }
}

/// The work of evaluating a program, and the work of filling in data after that.
fn work(source: &str, fills: &[Fill]) -> (Counters, Counters) {
    let template = compile(source);
    let mut evaluation = template.evaluate(BUDGET);
    outcome(&mut evaluation);
    let first = evaluation.counters();
    for (path, data) in fills {
        evaluation.fill(path, json(data));
    }
    outcome(&mut evaluation);
    let both = evaluation.counters();
    let again = Counters {
        nodes: both.nodes - first.nodes,
        conjuncts: both.conjuncts - first.conjuncts,
        disjuncts: both.disjuncts - first.disjuncts,
        steps: both.steps - first.steps,
    };
    (first, again)
}

/// A struct of a thousand nodes or so in all, none of which reads anything around it.
const HEAVY: &str = r#"{for i in [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] {
	"n\(i)": {
		for j in [0, 1, 2, 3, 4, 5, 6, 7, 8, 9] {"m\(j)": {sum: i + j, port: *80 | int, kind: "a" | "b"}}
	}
}}"#;

#[track_caller]
fn check_heavy_is_left_alone(source: &str, fills: &[Fill]) {
    let source = source.replace("HEAVY", HEAVY);
    check(&source, fills);
    let (first, again) = work(&source, fills);
    assert!(first.conjuncts > 600, "{first:?}");
    assert!(again.conjuncts < 60, "{source}\n{again:?}");
    assert!(again.nodes < 30, "{source}\n{again:?}");
    assert!(again.disjuncts < 10, "{source}\n{again:?}");
}

#[test]
fn a_field_beside_the_data_is_not_evaluated_again() {
    check_heavy_is_left_alone(
        "heavy: HEAVY\nin: x?: int\nout: {if in.x != _|_ {y: in.x + 1}}",
        &[(vec!["in", "x"], "1")],
    );
}

#[test]
fn nor_is_one_deep_beside_it() {
    check_heavy_is_left_alone(
        "a: b: c: {heavy: HEAVY, in: x?: int, out: *in.x | 5}\nd: a.b.c.out + 1",
        &[(vec!["a", "b", "c", "in", "x"], "1")],
    );
}

#[test]
fn nor_one_beside_a_comprehension_of_the_file() {
    check_heavy_is_left_alone(
        "heavy: HEAVY\nin: x?: int\nif in.x != _|_ {out: y: in.x}\nif in.x == _|_ {wait: true}",
        &[(vec!["in", "x"], "1")],
    );
}

#[test]
fn nor_one_that_a_comprehension_of_the_file_makes() {
    check_heavy_is_left_alone(
        "on: true\nif on {heavy: HEAVY}\nin: x?: int\nif in.x != _|_ {out: y: in.x}",
        &[(vec!["in", "x"], "1")],
    );
}

#[test]
fn nor_one_in_the_struct_that_a_comprehension_adds_to() {
    check_heavy_is_left_alone(
        "step: {heavy: HEAVY, ret?: {ok: bool}, if ret != _|_ {done: ret.ok}}\nout: *step.done | false",
        &[(vec!["step", "ret"], r#"{"ok":true}"#)],
    );
}

#[test]
fn nor_one_that_an_embedded_definition_brings() {
    check_heavy_is_left_alone(
        "#Step: {heavy: HEAVY, params: {...}, ret?: {...}, ...}\na: #Step & {params: n: 1}\n\
         b: #Step & {params: n: a.ret.n}\n{#file: 1}",
        &[(vec!["b", "ret"], r#"{"n":2}"#)],
    );
}

#[test]
fn one_that_reads_a_field_beside_the_filled_one_is_left_alone_too() {
    check_heavy_is_left_alone(
        "parameter: {name: \"x\", size?: int}\nheavy: {name: parameter.name, all: HEAVY}\nsize: *parameter.size | 1",
        &[(vec!["parameter", "size"], "3")],
    );
}

#[test]
fn a_long_workflow_costs_each_step_once() {
    let steps: Vec<String> = (1..40)
        .map(|step| {
            format!(
                "s{step}: {{in: s{}.ret.n, ret?: {{n: int}}, if ret != _|_ {{done: true}}}}",
                step - 1
            )
        })
        .collect();
    let source = format!("s0: ret?: {{n: int}}\n{}", steps.join("\n"));
    let template = compile(&source);
    let mut evaluation = template.evaluate(BUDGET);
    outcome(&mut evaluation);
    let mut before = evaluation.counters();
    for step in 0..40 {
        let name = format!("s{step}");
        evaluation.fill(&[&name, "ret"], json(&format!(r#"{{"n":{step}}}"#)));
        outcome(&mut evaluation);
        let after = evaluation.counters();
        let conjuncts = after.conjuncts - before.conjuncts;
        // The data so far is looked through, and a step or two evaluated.
        assert!(conjuncts < 60, "{step}: {conjuncts}");
        before = after;
    }
}

#[test]
fn what_depends_through_a_chain_is_evaluated_again() {
    check(
        "a: x?: int\nb: {if a.x != _|_ {y: a.x}}\nc: {if b.y != _|_ {z: b.y + 1}}\nif c.z != _|_ {d: c.z}\n\
         let L = c.z\ne: *L | 0\nf: [for k, v in b {\"\\(k)=\\(v)\"}]\ng: len(b)",
        &[(vec!["a", "x"], "1"), (vec!["b", "q"], "7")],
    );
}

#[test]
fn a_field_that_only_absence_made_goes_away() {
    check(
        "a: x?: int\nif a.x == _|_ {b: 1, c: d: 2}\ne: {if a.x == _|_ {f: 1}, g: 2}",
        &[(vec!["a", "x"], "1")],
    );
}

#[test]
fn handles_stay_valid() {
    let template = compile("a: x?: int\nb: *a.x | 5\nc: 1");
    let mut evaluation = template.evaluate(BUDGET);
    let root = evaluation.root();
    let b = evaluation.lookup(root, "b").expect("declared");
    assert_eq!(evaluation.json(b).as_deref(), Ok("5"));
    evaluation.fill(&["a", "x"], json("6"));
    assert_eq!(evaluation.json(b).as_deref(), Ok("6"));
    evaluation.fill(&["c"], json("2"));
    assert_eq!(evaluation.json(b).as_deref(), Ok("6"));
    assert_eq!(evaluation.validate(root).len(), 1);
}

const FIELDS: [&str; 6] = ["a", "b", "c", "d", "e", "f"];
const MEMBERS: [&str; 3] = ["x", "y", "z"];

fn field() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&FIELDS[..])
}

fn member() -> impl Strategy<Value = &'static str> {
    prop::sample::select(&MEMBERS[..])
}

fn expression() -> impl Strategy<Value = String> {
    prop_oneof![
        (0..4_u8).prop_map(|n| n.to_string()),
        Just("int".to_owned()),
        Just("*2 | int".to_owned()),
        Just("L".to_owned()),
        (field(), member()).prop_map(|(f, m)| format!("{f}.{m}")),
        (field(), member()).prop_map(|(f, m)| format!("{f}.{m} + 1")),
        (field(), member()).prop_map(|(f, m)| format!("*{f}.{m} | 3")),
        (field(), member()).prop_map(|(f, m)| format!("\"\\({f}.{m})\"")),
        field().prop_map(|f| format!("len({f})")),
        field().prop_map(ToOwned::to_owned),
        (field(), member(), 0..3_u8).prop_map(|(f, m, n)| format!("{f} & {{{m}: {n}}}")),
        (field(), field())
            .prop_map(|(f, g)| format!("[for k, v in {f} if k != \"y\" {{v}}, len({g})]")),
    ]
}

fn condition() -> impl Strategy<Value = String> {
    prop_oneof![
        (field(), member()).prop_map(|(f, m)| format!("{f}.{m} != _|_")),
        (field(), member()).prop_map(|(f, m)| format!("{f}.{m} == _|_")),
        (field(), member()).prop_map(|(f, m)| format!("{f}.{m} > 1")),
        field().prop_map(|f| format!("{f} != _|_")),
        Just("true".to_owned()),
    ]
}

fn declaration() -> impl Strategy<Value = String> {
    let (f, m, e, c) = (field, member, expression, condition);
    prop_oneof![
        (f(), m(), e()).prop_map(|(f, m, e)| format!("{f}: {m}: {e}")),
        (f(), m(), e()).prop_map(|(f, m, e)| format!("{f}: {m}?: {e}")),
        (f(), f(), m(), e()).prop_map(|(f, g, m, e)| format!("{f}: {g} & {{{m}: {e}}}")),
        (f(), f(), m(), e()).prop_map(|(f, g, m, e)| format!("{f}: {{{g}, {m}: {e}}}")),
        (f(), c(), m(), e()).prop_map(|(f, c, m, e)| format!("{f}: {{if {c} {{{m}: {e}}}}}")),
        (f(), c(), m(), e()).prop_map(|(f, c, m, e)| format!("if {c} {{{f}: {m}: {e}}}")),
        (f(), f()).prop_map(|(f, g)| format!("{f}: {{for k, v in {g} {{\"\\(k)1\": v}}}}")),
        (f(), f()).prop_map(|(f, g)| format!("for k, v in {g} {{{f}: (k): v}}")),
        (f(), e()).prop_map(|(f, e)| format!("{f}: list: [{e}, 1]")),
        (f(), m(), e()).prop_map(|(f, m, e)| format!("{f}: #D & {{{m}: {e}}}")),
        (
            f(),
            prop::sample::select(vec!["int", "_", "*2 | _", "{...} | int"])
        )
            .prop_map(|(f, e)| format!("{f}: [string]: {e}")),
        (f(), m(), e()).prop_map(|(f, m, e)| format!("{f}: {{{m}: {e}}} | {{other: {e}}}")),
        (f(), m(), e()).prop_map(|(f, m, e)| format!("{f}: *{{{m}: 1}} | {{{m}: {e}}}")),
        (f(), e(), m()).prop_map(|(f, e, m)| format!("{f}: {{let N = {e}, {m}: {{in: N}}}}")),
    ]
}

fn fill() -> impl Strategy<Value = Fill> {
    let path = prop_oneof![
        field().prop_map(|f| vec![f]),
        (field(), member()).prop_map(|(f, m)| vec![f, m]),
        (field(), member()).prop_map(|(f, m)| vec![f, m]),
    ];
    let data = prop::sample::select(vec![
        "1",
        "2",
        "3",
        "\"s\"",
        "{}",
        r#"{"x":1}"#,
        r#"{"y":2}"#,
        r#"{"w":{"x":3}}"#,
    ]);
    (path, data)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn data_gives_the_same_before_an_evaluation_and_after(
        declarations in prop::collection::vec(declaration(), 2..8),
        bound in expression(),
        fills in prop::collection::vec(fill(), 1..4),
    ) {
        let tops: Vec<String> = FIELDS.iter().map(|field| format!("{field}: _")).collect();
        let bound = if bound == "L" { "1".to_owned() } else { bound };
        let source = format!(
            "{}\n#D: {{x: *1 | int, y?: _, z?: int}}\nlet L = {bound}\nuse: L\n{}",
            tops.join("\n"),
            declarations.join("\n"),
        );
        check(&source, &fills);
    }
}
