//! Tests of the parser: what is accepted, what is reported, and where.

use super::{parse_expression, parse_file};

#[track_caller]
fn accepts(source: &str) {
    let (_, problems) = parse_file("in.cue", source);
    assert!(problems.is_empty(), "{source}: {problems:?}");
}

#[track_caller]
fn rejects(source: &str, message: &str, line: u32) {
    let (_, problems) = parse_file("in.cue", source);
    let first = problems
        .first()
        .unwrap_or_else(|| panic!("{source}: accepted"));
    assert_eq!(first.message, message, "{source}");
    assert_eq!(
        first.location.as_ref().map(|place| place.at.line),
        Some(line),
        "{source}"
    );
}

#[test]
fn fields_comprehensions_and_literals_are_read() {
    for source in [
        "a: 1\nb?: int, c!: string\n#D: {x: 1, ...}\n_h: a.b[0].\"c-d\"[1:2]",
        "a: b: c: 1 @tag(x) @other(\"y)\")",
        "if a != _|_ && b > 1 for k, v in x let y = v { \"\\(k)-x\": y }",
        "for: 1, if: 2, let: 3, in: 4, true: 5, null: 6, import: 7, package: 8",
        "X=a: {b: X}, [K=string]: {name: K}, (x): 1, \"\\(x)\": 2",
        "l: [1, 2, ...int]\nm: [for x in l {x}]\nn: [...]\n",
        "s: \"\"\"\n\tone\n\t  two \\(x)\n\t\"\"\"\nr: #\"raw \\(no) \\#(yes)\"#",
        "b: '\\x00\\377 \\(x)'",
        "d: *1 | int | >=2 & <10 | =~\"x\"",
        "package p\n\nimport \"strings\"\nimport (\n\t\"list\"\n\tx \"a/b:c\"\n)\n",
        "n: 1Ki + 0x1F - 1_000 * 1.5e3 / .5",
        "a: {\n\tb: 1 // trailing\n\t// inside\n}\n// end",
        "let x = 1\ny: x",
        "f: a.b(1, {c: 2},)\n",
    ] {
        accepts(source);
    }
}

#[test]
fn problems_are_reported_where_they_are() {
    rejects("a: {\n\tb: 1 c: 2\n}", "missing ',' in struct literal", 2);
    rejects("a: {", "expected '}', found 'EOF'", 1);
    rejects("a: \"x\nb: 1", "string literal not terminated", 1);
    rejects("a: ~1", "illegal character U+007E '~'", 1);
    rejects("a: [1\n2]", "missing ',' before newline in list literal", 1);
}

#[test]
fn several_problems_are_reported_in_one_go() {
    let (_, problems) = parse_file("in.cue", "a: )\nb: 1\nc: ]\nd: 2\n");
    assert_eq!(problems.len(), 2, "{problems:?}");
}

#[test]
fn deep_nesting_is_an_error_and_not_a_crash() {
    for opening in ["[", "{a:", "(", "-", "a&(", "\"\\(", "a.b[", "a: "] {
        let source = format!("x: {}", opening.repeat(100_000));
        let (_, problems) = parse_file("in.cue", &source);
        assert!(!problems.is_empty(), "{opening}");
    }
    let chain = format!("x: a{}", ".b".repeat(100_000));
    assert!(!parse_file("in.cue", &chain).1.is_empty());
}

#[test]
fn comments_belong_to_the_field_below_or_on_the_line() {
    let (file, problems) = parse_file("in.cue", "// far\n\n// near\na: 1 // line\n\n// last\n");
    assert!(problems.is_empty());
    let comments = &file.decls[0].comments;
    let docs: Vec<&str> = comments
        .docs()
        .flat_map(|group| group.comments.iter().map(|c| &*c.text))
        .collect();
    assert_eq!(docs, ["// near", "// line"]);
    assert_eq!(comments.leading.len(), 2);
    assert_eq!(file.end_comments.len(), 1);
}

#[test]
fn an_expression_must_fill_its_text() {
    assert!(parse_expression("e", "a.b + 1").1.is_empty());
    assert!(!parse_expression("e", "a b").1.is_empty());
}
