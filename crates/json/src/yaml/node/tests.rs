use super::*;

fn text(text: &str) -> Node {
    Node::String(text.to_owned())
}

fn map(entries: &[(&str, Node)]) -> Node {
    let entry = |(key, node): &(&str, Node)| (text(key), node.clone());
    Node::Map(entries.iter().map(entry).collect())
}

#[track_caller]
fn check(input: &str, expected: &Node) {
    match first_node(input) {
        Ok(node) => assert_eq!(node, *expected, "{input:?}"),
        Err(error) => panic!("{input:?}: {error}"),
    }
}

#[track_caller]
fn refuses(input: &str, expected: &str) {
    match first_node(input) {
        Ok(node) => panic!("{input:?} is {node:?}"),
        Err(error) => assert_eq!(error.to_string(), format!("yaml: {expected}"), "{input:?}"),
    }
}

#[test]
fn scalars_have_types() {
    for (input, node) in [
        ("12", Node::Integer(12)),
        ("18446744073709551615", Node::Unsigned(u64::MAX)),
        ("1.5", Node::Float(1.5)),
        ("-.inf", Node::Float(f64::NEG_INFINITY)),
        ("yes", text("yes")),
        ("True", Node::Bool(true)),
        ("'12'", text("12")),
        ("!!float 3", Node::Float(3.0)),
        ("", Node::Null),
        (
            "2021-03-04",
            Node::Timestamp("2021-03-04T00:00:00Z".to_owned()),
        ),
    ] {
        check(input, &node);
    }
    let mixed = [
        (Node::Integer(1), text("one")),
        (text("two"), Node::Integer(2)),
    ];
    check("{1: one, two: 2}", &Node::Map(mixed.to_vec()));
}

#[test]
fn text_may_follow_the_first_value() {
    let list = Node::List(vec![Node::Integer(7)]);
    let flow = map(&[("k", Node::Integer(7))]);
    for (input, node) in [
        ("\"port\" \"80\"", text("port")),
        ("'port' [80]", text("port")),
        ("\"port\"80", text("port")),
        ("[7] [8]", list.clone()),
        ("[7]}", list.clone()),
        ("[7] \"eight\" 9", list.clone()),
        ("[7]# note", list.clone()),
        ("[[7]# note\n]", Node::List(vec![list])),
        ("{\"k\": 7} {", flow.clone()),
        ("k: 7\n---\n{", flow),
        ("---\n---\nk: 7", Node::Null),
        ("k: \"a\nb\"", map(&[("k", text("a b"))])),
    ] {
        check(input, &node);
    }
}

#[test]
fn what_follows_has_to_be_a_token_and_stand_behind_the_root() {
    for (input, error) in [
        ("k: \"a\" b", "did not find expected key"),
        ("\"a\" b: c", "did not find expected key"),
        ("\"a\" @", "did not find expected key"),
        ("k: ]", "did not find expected node content"),
        ("k: {l: 1", "line 1: did not find expected ',' or '}'"),
        ("\n\nk: [1", "line 2: did not find expected ',' or ']'"),
    ] {
        refuses(input, error);
    }
}

#[test]
fn errors_are_worded_and_counted_as_in_go() {
    for (input, error) in [
        ("a: b: c", "mapping values are not allowed in this context"),
        (
            "a: 1\nb: c: d",
            "line 2: mapping values are not allowed in this context",
        ),
        ("a: 1\n- b", "line 1: did not find expected key"),
        ("a: 1\nb", "line 2: could not find expected ':'"),
        ("a: @", "found character that cannot start any token"),
        ("\tq: 1", "found character that cannot start any token"),
        ("a: *gone", "unknown anchor 'gone' referenced"),
        ("a: &me [*me]", "anchor 'me' value contains itself"),
        ("a: \u{7}", "control characters are not allowed"),
        ("!!int x", "cannot decode !!str `x` as a !!int"),
        (
            "a: 1\n'a': 2\nb: 1\nb: 1",
            "unmarshal errors:\n  line 2: mapping key \"a\" already defined at line 1\n  \
             line 4: mapping key \"b\" already defined at line 3",
        ),
        (
            "<<: 5",
            "map merge requires map or sequence of maps as the value",
        ),
    ] {
        refuses(input, error);
    }
}

#[test]
fn explicit_keys_win_over_merged_ones() {
    let merged = map(&[
        ("k", Node::Integer(1)),
        ("l", Node::Integer(2)),
        ("m", Node::Integer(3)),
    ]);
    let input = "- &a {k: 5, l: 2}\n- &b {l: 9, m: 3}\n- {k: 1, <<: [*a, *b]}\n";
    let Ok(Node::List(items)) = first_node(input) else {
        panic!("not a list");
    };
    assert_eq!(items[2], merged);
}

#[test]
fn a_block_at_the_end_has_no_line_break_that_the_text_lacks() {
    for (input, value) in [
        ("k: |\n  x", "x"),
        ("k: |\n  x\n", "x\n"),
        ("k: |+\n  x", "x"),
        ("k: >\n  x\n  y", "x y"),
        ("k: |\n  x\n  ", "x\n"),
        ("k: |-\n  x", "x"),
    ] {
        check(input, &map(&[("k", text(value))]));
    }
    let first = map(&[("k", text("x\n")), ("l", Node::Integer(1))]);
    check("k: |\n  x\nl: 1", &first);
}

#[test]
fn aliases_cannot_make_a_text_huge() {
    let first = "a: &a [x, x, x, x, x, x, x, x, x]".to_owned();
    let lines = ('b'..='j').zip('a'..).map(|(next, before)| {
        let aliases = vec![format!("*{before}"); 9].join(", ");
        format!("{next}: &{next} [{aliases}]")
    });
    let lines: Vec<String> = std::iter::once(first).chain(lines).collect();
    let input = lines.join("\n");
    refuses(&input, "document contains excessive aliasing");
}
