use super::{brief, closest, render};
use crate::diagnostic::Diagnostic;
use crate::host::{Budget, Template};

fn problems(source: &str) -> Vec<Diagnostic> {
    match Template::compile_files(&[("in.cue", source)], &[]) {
        Err(problems) => problems,
        Ok(template) => {
            let mut evaluation = template.evaluate(Budget::default());
            let root = evaluation.root();
            let problems = evaluation.validate(root);
            if problems.is_empty() {
                evaluation.validate_concrete(root)
            } else {
                problems
            }
        }
    }
}

#[track_caller]
fn check(source: &str, expected: &str) {
    let rendered = render(&problems(source), &[("in.cue", source)]);
    assert_eq!(rendered, expected, "\n{rendered}");
}

#[test]
fn a_conflict_shows_every_conjunct() {
    let source = "a: 1\nb: c: 2\nx: 5\na: 2\n";
    let rendered = render(&problems(source), &[("in.cue", source)]);
    assert!(
        rendered.starts_with("error: a: conflicting values"),
        "{rendered}"
    );
    assert!(
        rendered.contains("1 | a: 1\n  |    ^\n  ⋮\n4 | a: 2\n  |    ^\n"),
        "{rendered}"
    );
}

#[test]
fn places_on_one_line_share_it() {
    let source = "a: 1 & 2\n";
    let rendered = render(&problems(source), &[("in.cue", source)]);
    assert!(
        rendered.ends_with("1 | a: 1 & 2\n  |    ^   ^\n"),
        "{rendered}"
    );
}

#[test]
fn a_misspelt_name_gets_a_suggestion() {
    check(
        "parameter: image: string\noutput: parameter.imgae\n",
        "\
incomplete: parameter.image: incomplete value string
 --> in.cue:1:19
1 | parameter: image: string
  |                   ^^^^^^
  = hint: give it a value, or a default with *

incomplete: output: undefined field: imgae
 --> in.cue:2:19
2 | output: parameter.imgae
  |                   ^^^^^
  = hint: did you mean \"image\"?
",
    );
}

#[test]
fn a_missing_import_is_named() {
    let source = "a: strings.ToUpper(\"x\")\n";
    let rendered = render(&problems(source), &[("in.cue", source)]);
    assert!(
        rendered.contains("hint: add `import \"strings\"`"),
        "{rendered}"
    );
    assert!(
        rendered.contains("1 | a: strings.ToUpper(\"x\")\n"),
        "{rendered}"
    );
}

#[test]
fn the_brief_form_is_the_reference_s() {
    let text = brief(&problems("a: 1\na: \"x\"\n"));
    assert!(text.contains("(mismatched types"), "{text}");
    assert!(
        text.contains(":\n    ./in.cue:1:4\n    ./in.cue:2:4\n"),
        "{text}"
    );
}

#[test]
fn closeness_counts_edits() {
    assert_eq!(
        closest("imgae", ["image", "imagePullPolicy", "name"]),
        Some("image")
    );
    assert_eq!(closest("prot", ["port", "ports"]), Some("port"));
    assert_eq!(closest("x", ["port"]), None);
    assert_eq!(closest("same", ["same"]), None);
}
