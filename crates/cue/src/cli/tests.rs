use super::*;

fn input(files: &[(&str, &str)]) -> Input {
    let files = files
        .iter()
        .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()));
    Input {
        files: files.collect(),
        ..Input::default()
    }
}

const CONFIG: &str = "\
package p

#D: {x: int, y?: string}
a: #D & {x: 1}
b: *2 | int
_h: 3
c: string @tag(c)
l: [1, {z: 1}]
";

fn tagged() -> Input {
    Input {
        tags: vec!["c=hi".to_owned()],
        ..input(&[("p.cue", CONFIG)])
    }
}

#[test]
fn export_writes_every_format() {
    let text = |output| export(&tagged(), output).unwrap();
    assert_eq!(
        text(Output::Json),
        "{\n    \"a\": {\n        \"x\": 1\n    },\n    \"b\": 2,\n    \"c\": \"hi\",\n    \"l\": [\n        1,\n        {\n            \"z\": 1\n        }\n    ]\n}\n"
    );
    assert_eq!(
        text(Output::Yaml),
        "a:\n  x: 1\nb: 2\nc: hi\nl:\n  - 1\n  - z: 1\n"
    );
    assert!(text(Output::Cue).contains("c: \"hi\""));
}

#[test]
fn export_of_what_is_not_concrete_fails_with_the_place() {
    let failure = export(&input(&[("p.cue", CONFIG)]), Output::Json).unwrap_err();
    assert!(
        failure.to_string().contains("c: incomplete value string"),
        "{failure}"
    );
}

#[test]
fn expressions_select_and_compute() {
    let mut one = tagged();
    one.expressions = vec!["a.x + b".to_owned(), "c".to_owned()];
    assert_eq!(export(&one, Output::Json).unwrap(), "3\n\"hi\"\n");
    one.expressions = vec!["c".to_owned()];
    assert_eq!(export(&one, Output::Text).unwrap(), "hi\n");
    one.expressions = vec!["1 +".to_owned()];
    assert!(export(&one, Output::Json).is_err());
    let mut imports = input(&[("a.cue", "import \"strings\"\nx: strings.ToUpper(\"a\")\n")]);
    imports.expressions = vec!["strings.ToLower(x)".to_owned()];
    assert_eq!(export(&imports, Output::Text).unwrap(), "a\n");
}

#[test]
fn eval_shows_what_is_known() {
    let shown = eval(&input(&[("p.cue", CONFIG)]), EvalOptions::default()).unwrap();
    assert!(
        shown.contains("b: 2\n") && shown.contains("c: string\n"),
        "{shown}"
    );
    assert!(!shown.contains("_h"), "{shown}");
    let all = EvalOptions {
        all: true,
        ..EvalOptions::default()
    };
    let shown = eval(&input(&[("p.cue", CONFIG)]), all).unwrap();
    assert!(shown.contains("_h:") && shown.contains("y?:"), "{shown}");
    let concrete = EvalOptions {
        concrete: true,
        ..EvalOptions::default()
    };
    assert!(eval(&input(&[("p.cue", CONFIG)]), concrete).is_err());
}

#[test]
fn def_keeps_defaults_and_constraints() {
    let shown = def(&input(&[("a.cue", "// doc\na: *1 | int\nb?: string\n")])).unwrap();
    assert!(shown.contains("// doc\na:"), "{shown}");
    assert!(
        shown.contains("*1 | int") && shown.contains("b?:"),
        "{shown}"
    );
}

#[test]
fn vet_distinguishes_errors_from_what_is_open() {
    let open = input(&[("a.cue", "a: int\n")]);
    assert!(
        vet(&open, None)
            .unwrap_err()
            .to_string()
            .contains("use the -c flag")
    );
    assert!(vet(&open, Some(true)).is_err());
    assert!(vet(&open, Some(false)).is_ok());
    assert!(vet(&input(&[("a.cue", "a: 1 & 2\n")]), Some(false)).is_err());
    assert!(vet(&input(&[("a.cue", "a: 1\n")]), None).is_ok());
}

#[test]
fn vet_checks_data_against_a_schema() {
    let schema = ("schema.cue", "port: int & <=65535\nname: string\n");
    assert!(vet(&input(&[schema, ("ok.yaml", "port: 80\nname: x\n")]), None).is_ok());
    let bad = input(&[
        schema,
        ("ok.json", "{\"port\":80,\"name\":\"x\"}"),
        ("bad.yaml", "port: 70000\n"),
    ]);
    let failure = vet(&bad, None).unwrap_err();
    assert!(failure.to_string().contains("out of bound"), "{failure}");
}

#[test]
fn files_of_several_packages_need_a_choice() {
    let mut two = input(&[
        ("a.cue", "package a\nx: 1\n"),
        ("b.cue", "package b\nx: 2\n"),
    ]);
    assert!(
        export(&two, Output::Json)
            .unwrap_err()
            .to_string()
            .contains("found packages a, b")
    );
    two.package = Some("b".to_owned());
    assert_eq!(export(&two, Output::Json).unwrap(), "{\n    \"x\": 2\n}\n");
}

#[test]
fn tags_have_types_and_short_forms() {
    let source = "n: int @tag(n,type=int)\nenv: \"dev\" | \"prod\" @tag(env,short=dev|prod)\n";
    let mut tagged = input(&[("a.cue", source)]);
    tagged.tags = vec!["n=3".to_owned(), "prod".to_owned()];
    assert_eq!(
        export(&tagged, Output::Json).unwrap(),
        "{\n    \"n\": 3,\n    \"env\": \"prod\"\n}\n"
    );
    tagged.tags = vec!["other=1".to_owned()];
    assert!(
        export(&tagged, Output::Json)
            .unwrap_err()
            .to_string()
            .contains("no tag for \"other\"")
    );
}

#[test]
fn tags_select_files_by_their_build_constraints() {
    let mut package = input(&[
        ("a.cue", "@if(prod)\n\npackage p\n\nreplicas: 3\n"),
        (
            "b.cue",
            "@if(!prod && !(test || ci))\npackage p\nreplicas: 1\n",
        ),
        ("c.cue", "@ignore()\npackage p\nreplicas: 0\n"),
        ("d.cue", "package p\nname: \"shop\"\n"),
    ]);
    let replicas = |package: &Input| export(package, Output::Json).unwrap();
    assert!(replicas(&package).contains("\"replicas\": 1"));
    package.tags = vec!["prod".to_owned()];
    assert!(replicas(&package).contains("\"replicas\": 3"));
    package.tags = vec!["ci".to_owned()];
    assert!(!replicas(&package).contains("replicas"));
    package.tags.clear();
    package.files.truncate(1);
    let message = export(&package, Output::Json).unwrap_err().to_string();
    assert!(
        message.contains("build constraints exclude all CUE files"),
        "{message}"
    );
    assert!(
        message.contains("a.cue: @if(prod) did not match"),
        "{message}"
    );
    package.files[0].1 = "@if(1 + 1)\npackage p\n".to_owned();
    let message = export(&package, Output::Json).unwrap_err().to_string();
    assert!(
        message.contains("invalid build constraint @if(1 + 1)"),
        "{message}"
    );
}

#[test]
fn fmt_reports_text_that_does_not_parse() {
    assert_eq!(fmt("a.cue", "a:1").unwrap(), "a: 1\n");
    assert!(
        fmt("a.cue", "a: {")
            .unwrap_err()
            .to_string()
            .contains("a.cue:1")
    );
}

#[test]
fn data_is_checked_against_the_schema_that_is_named() {
    let mut one = input(&[
        ("s.cue", "#App: {name: string, replicas: *1 | int}\n"),
        ("d.json", "{\"name\": \"shop\",\n \"replicas\": \"three\"}"),
    ]);
    one.schema = Some("#App".to_owned());
    let failure = vet(&one, None).unwrap_err().to_string();
    assert!(failure.contains("error: replicas: "), "{failure}");
    assert!(
        failure.contains("d.json:2:14\n2 |  \"replicas\": \"three\""),
        "{failure}"
    );
    one.files[1].1 = "{\"name\": \"shop\"}".to_owned();
    assert!(vet(&one, None).is_ok());
}

#[test]
fn def_keeps_what_is_written_and_makes_one_of_several_files() {
    let two = input(&[
        (
            "a.cue",
            "// The shop.\npackage p\n\nimport \"strings\"\n\nlet L = 3\n#A: {n: strings.MinRunes(L)}\na: #A & {n: \"shop\"}\n",
        ),
        (
            "b.cue",
            "package p\n\nimport \"strings\"\n\nlet M = strings.ToUpper(a.n)\nif a.n != _|_ {b: M}\n",
        ),
    ]);
    assert_eq!(
        def(&two).unwrap(),
        "\
// The shop.
package p

import \"strings\"

let L = 3
let M = strings.ToUpper(a.n)

#A: {n: strings.MinRunes(L)}
a: #A & {n: \"shop\"}

if a.n != _|_ {b: M}
"
    );
    let clash = input(&[
        ("a.cue", "let L = 1\na: L\n"),
        ("b.cue", "let L = 2\nb: L\n"),
    ]);
    let text = def(&clash).unwrap();
    assert_eq!(text, "let L = 1\n\na: L\n\n{\n\tlet L = 2\n\tb: L\n}\n");
    let again = export(&input(&[("c.cue", &text)]), Output::Json).unwrap();
    assert_eq!(again, export(&clash, Output::Json).unwrap());
}

#[test]
fn problems_of_expressions_show_the_expression() {
    let mut one = tagged();
    one.expressions = vec!["a.nope".to_owned()];
    let failure = export(&one, Output::Json).unwrap_err().to_string();
    assert!(
        failure.starts_with("error: undefined field: nope\n --> -e:"),
        "{failure}"
    );
    assert!(failure.contains(" | a.nope\n"), "{failure}");
}
