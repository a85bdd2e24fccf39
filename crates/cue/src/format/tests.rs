use proptest::prelude::*;

use super::format_source;

#[track_caller]
fn check(source: &str, expected: &str) {
    let formatted = format_source("-", source).expect(source);
    assert_eq!(formatted, expected, "{source}");
    assert_eq!(
        format_source("-", &formatted).expect("formatted text parses"),
        expected,
        "twice"
    );
}

#[test]
fn neighbouring_values_line_up() {
    check(
        "a: 1\nbbb:   2   // two\nd: 3 // three\n",
        "a:   1\nbbb: 2 // two\nd:   3 // three\n",
    );
    check("a: 1\n\nbbb: 2\n", "a: 1\n\nbbb: 2\n");
    check("a: 1\n// doc\nbbb: 2\n", "a: 1\n// doc\nbbb: 2\n");
    check(
        "a: 1\nbbb: {x:1,yy:2}\nc: [1,2]\n",
        "a: 1\nbbb: {x: 1, yy: 2}\nc: [1, 2]\n",
    );
}

#[test]
fn structure_follows_the_source() {
    check(
        "d: {\n e: 1\n  ffff?: int\n\n\n g!:   2\n}\n",
        "d: {\n\te:     1\n\tffff?: int\n\n\tg!: 2\n}\n",
    );
    check("i:  x:   y: 3\n", "i: x: y: 3\n");
    check("w: {  }\nx: [ ]\n", "w: {}\nx: []\n");
    check("hh: [1,2,\n3]\n", "hh: [1, 2,\n\t3]\n");
    check("l: [1,{\nz: 1\n}]\n", "l: [1, {\n\tz: 1\n}]\n");
    check(
        "l: [\n{\nz: 1\n},{\ny: 1\n}]\n",
        "l: [\n\t{\n\t\tz: 1\n\t}, {\n\t\ty: 1\n\t}]\n",
    );
    check(
        "z: [\n  1, // one\n  2,\n\n  // three\n  3,\n]\n",
        "z: [\n\t1, // one\n\t2,\n\n\t// three\n\t3,\n]\n",
    );
}

#[test]
fn operators_have_blanks_and_keep_line_breaks() {
    check(
        "a: \"s\"|\"t\"|\n  \"u\"\n",
        "a: \"s\" | \"t\" |\n\t\"u\"\n",
    );
    check("m: int&>1&<  5\n", "m: int & >1 & <5\n");
    check("n: (1+2)*-3\n", "n: (1 + 2) * -3\n");
    check("u: *1|int\n", "u: *1 | int\n");
}

#[test]
fn comprehensions_patterns_and_labels_are_normalised() {
    check(
        "for   k,v   in  a if v>1 let z=k {\n \"\\(k)\": v\n}\na: {}\n",
        "for k, v in a if v > 1 let z = k {\n\t\"\\(k)\": v\n}\na: {}\n",
    );
    check(
        "[ string ]: int\n[X= string]: X\n",
        "[string]:   int\n[X=string]: X\n",
    );
    check(
        "X = o: 5\n(\"a\"+\"b\"): X\n",
        "X=o:         5\n(\"a\" + \"b\"): X\n",
    );
    check(
        "v: [for x in a {x},if true {1},...]\n",
        "v: [for x in a {x}, if true {1}, ...]\n",
    );
    check(
        "q: list.Concat([[1],[2]])\nr: a[0 : 2].b\n",
        "q: list.Concat([[1], [2]])\nr: a[0:2].b\n",
    );
}

#[test]
fn packages_imports_and_attributes_stay() {
    check(
        "// doc\npackage   foo\nimport \"strings\"\nimport (\n\"list\"\n  y \"encoding/yaml\"\n)\na: 1 @tag(x)\n",
        "// doc\npackage foo\n\nimport \"strings\"\n\nimport (\n\t\"list\"\n\ty \"encoding/yaml\"\n)\n\na: 1 @tag(x)\n",
    );
}

#[test]
fn text_over_several_lines_is_left_alone() {
    let source = "s: \"\"\"\n   hello\n     \\(a) there\n   \"\"\"\n";
    check(source, source);
}

#[test]
fn comments_at_the_end_are_kept() {
    check(
        "a: {\n\tb: 1\n\n\t// last\n}\n// end\n",
        "a: {\n\tb: 1\n\n\t// last\n}\n// end\n",
    );
    check("// only\n", "// only\n");
    check("", "");
}

/// Small sources made of pieces that fit together.
fn declaration() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        Just("1".to_owned()),
        Just("\"s\"".to_owned()),
        Just("*1|int".to_owned()),
        Just("[1,2,\n 3]".to_owned()),
        Just("[...{a:1}]".to_owned()),
        Just("{}".to_owned()),
        Just("x.y[0]&{z: 1}".to_owned()),
    ];
    let label = prop_oneof![
        Just("a"),
        Just("bb?"),
        Just("\"c-d\""),
        Just("#E"),
        Just("_f")
    ];
    let leaf = (label.clone(), value).prop_map(|(label, value)| format!("{label}:  {value}"));
    leaf.prop_recursive(3, 24, 4, move |inner| {
        let body = prop::collection::vec(inner, 0..4);
        (label.clone(), body.clone(), any::<bool>()).prop_map(|(label, body, comment)| {
            let comment = if comment { "// note\n" } else { "" };
            format!("{comment}{label}: {{\n{}\n}}", body.join("\n"))
        })
    })
}

proptest! {
    #[test]
    fn formatting_is_stable(decls in prop::collection::vec(declaration(), 0..5)) {
        let source = decls.join("\n");
        let once = format_source("-", &source).expect("generated source parses");
        let twice = format_source("-", &once).expect("formatted source parses");
        prop_assert_eq!(once, twice);
    }
}

#[test]
fn what_follows_an_element_with_a_comment_inside_begins_a_line() {
    let once = format_source("-", "b: [quo(// why\n7, 2), rem(7, 2)]\n").unwrap();
    assert_eq!(once, "b: [quo(7, 2), // why\n\trem(7, 2)]\n");
    assert_eq!(format_source("-", &once).unwrap(), once);
}

#[test]
fn operators_do_not_run_into_a_match() {
    for source in ["a: ! =~\"x\"\n", "a: < =~\"x\"\n", "a: > =~\"x\"\n"] {
        assert_eq!(format_source("-", source).unwrap(), source);
    }
    assert_eq!(
        format_source("-", "a: != =~\"x\"\n").unwrap(),
        "a: !==~\"x\"\n"
    );
    assert!(format_source("-", "a: !==~\"x\"\n").is_ok());
}
