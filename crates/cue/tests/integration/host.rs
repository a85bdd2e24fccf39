//! What a program that uses the crate relies on: values stay open until asked, data can come in any
//! order, and filling in more of it costs no more than what depends on it.

#![allow(clippy::expect_used, reason = "a failure here is a failed test")]

use bellwether_cue::builtins::{parse_json, write_json};
use bellwether_cue::host::{
    ArcKind, Budget, Evaluation, FieldOptions, Handle, SyntaxOptions, Template,
};
use bellwether_cue::value::{Kind, Value};

fn evaluate(source: &str) -> Evaluation {
    Template::compile(source)
        .expect(source)
        .evaluate(Budget::default())
}

fn at(evaluation: &mut Evaluation, path: &[&str]) -> Handle {
    let root = evaluation.root();
    evaluation.lookup_path(root, path).expect("the path exists")
}

fn json(value: &str) -> Value {
    parse_json(value).expect("test data is JSON")
}

#[test]
fn packages_in_memory_can_be_imported() {
    let template = Template::compile_files(
        &[("main.cue", "import \"acme/net\"\nport: net.#Port & 80\n")],
        &[("acme/net", "package net\n#Port: int & >0 & <65536\n")],
    )
    .expect("it compiles");
    let mut evaluation = template.evaluate(Budget::default());
    let root = evaluation.root();
    assert_eq!(evaluation.json(root).as_deref(), Ok(r#"{"port":80}"#));
}

#[test]
fn a_default_stays_open_until_it_is_taken() {
    let mut evaluation = evaluate("replicas: *1 | int");
    let replicas = at(&mut evaluation, &["replicas"]);
    assert_eq!(evaluation.kind(replicas), Kind::INT);
    let taken = evaluation.default(replicas);
    assert_eq!(evaluation.json(taken).as_deref(), Ok("1"));
    let kept = evaluation.source(replicas, SyntaxOptions::default());
    assert_eq!(kept.as_deref(), Ok("*1 | int"));
    evaluation.fill(&["replicas"], Value::Number(3.into()));
    let replicas = at(&mut evaluation, &["replicas"]);
    assert_eq!(evaluation.json(replicas).as_deref(), Ok("3"));
}

#[test]
fn kinds_tell_what_a_value_is_and_what_it_may_become() {
    let source = "a: int | string, b: {}, c: [...], d: *1 | int, e: >5, f: \"s\"";
    let mut evaluation = evaluate(source);
    for (name, possible, concrete) in [
        ("a", Kind::INT | Kind::STRING, Kind::BOTTOM),
        ("b", Kind::STRUCT, Kind::STRUCT),
        ("c", Kind::LIST, Kind::LIST),
        ("d", Kind::INT, Kind::INT),
        ("e", Kind::NUMBER, Kind::BOTTOM),
        ("f", Kind::STRING, Kind::STRING),
    ] {
        let value = at(&mut evaluation, &[name]);
        assert_eq!(evaluation.kind(value), possible, "{name}");
        assert_eq!(evaluation.concrete_kind(value), concrete, "{name}");
    }
}

#[test]
fn fields_come_in_order_with_what_is_written_around_them() {
    let mut evaluation = evaluate(
        "// +usage=The image\nimage: string @go(Image)\nenv?: [...string]\n#D: 1\n_h: 2\nname!: string\n",
    );
    let root = evaluation.root();
    let names = |evaluation: &mut Evaluation, options| -> Vec<String> {
        let fields = evaluation.fields(root, options);
        fields.iter().map(|field| field.name.to_string()).collect()
    };
    assert_eq!(
        names(&mut evaluation, FieldOptions::default()),
        ["image", "name"]
    );
    let all = FieldOptions {
        definitions: true,
        hidden: true,
        optional: true,
    };
    assert_eq!(
        names(&mut evaluation, all),
        ["image", "env", "#D", "_h", "name"]
    );
    let fields = evaluation.fields(root, all);
    assert_eq!(fields[1].kind, ArcKind::Optional);
    assert_eq!(fields[4].kind, ArcKind::Required);
    let metas = evaluation.metas(fields[0].value);
    assert_eq!(&*metas[0].docs[0], "// +usage=The image");
    assert_eq!(metas[0].attributes[0].name(), "go");
    assert_eq!(evaluation.path(fields[0].value), ["image"]);
    let position = evaluation.position(fields[0].value).expect("declared");
    assert_eq!((position.at.line, position.at.column), (2, 8));
}

#[test]
fn plain_validation_allows_what_concrete_validation_does_not() {
    let mut evaluation = evaluate("a: string, b!: int, c: [1, int]");
    let root = evaluation.root();
    assert!(evaluation.validate(root).is_empty());
    let problems: Vec<String> = evaluation
        .validate_concrete(root)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(problems.len(), 3, "{problems:?}");
    let mut broken = evaluate("a: 1 & 2, #d: {x: \"s\" & int}, e?: 1 & 2");
    let root = broken.root();
    assert_eq!(broken.validate(root).len(), 2);
}

const STEPS: &str = r#"
read: {url: "http://host", $returns?: {status: int, body: string}}
apply: {
	if read.$returns != _|_ {
		value: {data: read.$returns.body, ok: read.$returns.status < 400}
	}
	$returns?: {...}
}
message: "applied: \(*apply.$returns.name | "not yet")"
unrelated: {for i in [1, 2, 3, 4, 5, 6, 7, 8] {"f\(i)": {n: i, square: i * i}}}
let suffix = read.url + "/x"
link: suffix
"#;

#[test]
fn filling_after_evaluation_gives_what_filling_before_gives() {
    let template = Template::compile(STEPS).expect("it compiles");
    let fills = [
        (vec!["read", "$returns"], r#"{"status":200,"body":"hi"}"#),
        (vec!["apply", "$returns"], r#"{"name":"shop"}"#),
        (vec!["read", "extra"], "1"),
        (vec!["added"], r#"{"a":[1,2]}"#),
    ];
    let mut step_by_step = template.evaluate(Budget::default());
    for (done, (path, data)) in fills.iter().enumerate() {
        let root = step_by_step.root();
        assert!(step_by_step.validate(root).is_empty());
        step_by_step.fill(path, json(data));
        let mut at_once = template.evaluate(Budget::default());
        for (path, data) in &fills[..=done] {
            at_once.fill(path, json(data));
        }
        let (left, right) = (step_by_step.root(), at_once.root());
        let (left, right) = (step_by_step.export(left), at_once.export(right));
        assert_eq!(
            left.map(|value| value.sorted()),
            right.map(|value| value.sorted()),
            "after {path:?}"
        );
    }
}

#[test]
fn filling_evaluates_again_only_what_depends_on_the_data() {
    let mut evaluation = evaluate(STEPS);
    let root = evaluation.root();
    assert!(evaluation.validate(root).is_empty());
    let first = evaluation.counters();
    let unrelated = at(&mut evaluation, &["unrelated"]);
    evaluation.fill(&["apply", "$returns"], json(r#"{"name":"shop"}"#));
    let root = evaluation.root();
    assert!(evaluation.validate(root).is_empty());
    let again = evaluation.counters();
    assert!(
        again.nodes - first.nodes < first.nodes / 4,
        "{first:?}, {again:?}"
    );
    assert_eq!(at(&mut evaluation, &["unrelated"]), unrelated);
    let message = at(&mut evaluation, &["message"]);
    assert_eq!(
        evaluation.json(message).as_deref(),
        Ok(r#""applied: shop""#)
    );
}

#[test]
fn a_conflict_that_comes_with_later_data_is_found() {
    let mut evaluation = evaluate("a: {n: int}, b: a.n + 1, c: 1");
    let root = evaluation.root();
    assert!(evaluation.validate(root).is_empty());
    evaluation.fill(&["a", "n"], Value::string("text"));
    let root = evaluation.root();
    let problems = evaluation.validate(root);
    assert!(
        problems[0].to_string().contains("conflicting values"),
        "{problems:?}"
    );
}

#[test]
fn injected_data_means_the_same_as_data_in_the_text() {
    let data = r#"{"name":"shop","labels":{"a":"b","c":"d"},"ports":[{"port":80},{"port":443}],
        "nested":{"deep":{"list":[1,[2,3],{"x":null}]},"flag":true},"size":1.5}"#;
    for template in [
        "out: context",
        "out: context.nested.deep",
        "out: [for k, v in context.labels {\"\\(k)=\\(v)\"}]",
        "out: [for p in context.ports {p.port}]",
        "out: context & {name: string, more: 1}",
        "out: len(context.ports) + len(context.nested)",
        "out: context.nested.deep.list[1]",
        "out: {if context.nested.missing == _|_ {absent: true}, if context.nested.deep != _|_ {there: true}}",
        "import \"encoding/json\"\nout: json.Marshal(context.nested)",
        "context: {labels: [string]: string, ports: [...{port: int, protocol: *\"TCP\" | string}]}\nout: context.ports",
        "context: [string]: _\nout: context.size",
        "out: {context.labels, own: 1}",
        "out: *context.missing | context.labels",
        "out: *{a: context.labels} | {a: 5}",
    ] {
        let source = format!("{template}\ncontext: _\n");
        let mut injected = evaluate(&source);
        injected.fill(&["context"], json(data));
        let mut written = evaluate(&format!("{source}context: {data}\n"));
        let (left, right) = (at(&mut injected, &["out"]), at(&mut written, &["out"]));
        let (left, right) = (injected.export(left), written.export(right));
        let left = left.map(|value| write_json(&value.sorted()));
        let right = right.map(|value| write_json(&value.sorted()));
        assert!(left.is_ok(), "{template}: {left:?}");
        assert_eq!(left, right, "{template}");
    }
}

#[test]
fn a_closed_struct_rejects_injected_fields_as_it_rejects_written_ones() {
    let mut evaluation = evaluate("#P: {a?: int, b?: {c?: int}}\np: #P");
    evaluation.fill(&["p"], json(r#"{"a":1,"b":{"d":2}}"#));
    let root = evaluation.root();
    let problems = evaluation.validate(root);
    assert_eq!(problems.len(), 1, "{problems:?}");
    assert_eq!(problems[0].path.join("."), "p.b.d");
}

#[test]
fn a_small_value_whose_text_is_large_is_refused_as_such() {
    let levels = (1..40).map(|level| {
        let below = level - 1;
        format!("a{level}: {{p: a{below}, q: a{below}}}\n")
    });
    let source = "a0: {x: 1}\n".to_owned() + &levels.collect::<String>();
    let budget = Budget {
        output: 10_000,
        ..Budget::default()
    };
    let mut evaluation = Template::compile(&source).unwrap().evaluate(budget);
    let root = evaluation.root();
    let refused = evaluation.source(root, SyntaxOptions::default());
    let message = refused.unwrap_err().message;
    assert_eq!(message, "evaluation limit exceeded: output");
}

#[test]
fn templates_of_go_are_stopped_by_the_budget() {
    let nested = "{{range .}}{{range $}}{{range $}}{{end}}{{end}}{{end}}";
    let recursive = r#"{{define "a"}}{{template "a" .}}{{end}}{{template "a" .}}"#;
    for (template, expected) in [
        (nested, "evaluation limit exceeded: too many steps"),
        (recursive, "exceeded maximum template depth (100)"),
    ] {
        let source = format!(
            "import (\n\"list\"\n\"text/template\"\n)\n\
             out: template.Execute({}, list.Range(0, 1000, 1))\n",
            write_json(&Value::string(template))
        );
        let mut evaluation = evaluate(&source);
        let root = evaluation.root();
        let problems = evaluation.validate(root);
        let text: Vec<String> = problems.iter().map(ToString::to_string).collect();
        assert!(text.iter().any(|it| it.contains(expected)), "{text:?}");
    }
}

#[test]
fn selections_that_a_package_does_not_declare_are_found() {
    let package = ("tools", "package tools\n#Hammer: {}\nnail: 1\n");
    let open = ("open", "package open\n{a: 1}\n");
    for (source, expected) in [
        ("import \"tools\"\nx: tools.#Hammer\ny: tools.nail", &[][..]),
        (
            "import \"tools\"\nx: tools.#Hamer\nif false {y: tools.nails}",
            &[
                "undefined field: #Hamer 2:10",
                "undefined field: nails 3:20",
            ],
        ),
        ("import \"open\"\nx: open.whatever", &[]),
    ] {
        let template = Template::compile_files(&[("-", source)], &[package, open]).unwrap();
        let found: Vec<String> = template
            .undeclared_selections()
            .iter()
            .map(|problem| {
                let at = problem.location.as_ref().unwrap().at;
                format!("{} {}:{}", problem.message, at.line, at.column)
            })
            .collect();
        assert_eq!(found, expected, "{source}");
    }
}
