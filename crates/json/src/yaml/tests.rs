use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::number;

#[track_caller]
#[expect(
    clippy::needless_pass_by_value,
    reason = "tables read better without borrows"
)]
fn reads(text: &str, expected: Value) {
    assert_eq!(value_from_yaml(text).unwrap(), expected, "{text}");
}

#[track_caller]
fn refuses(text: &str, expected: &str) {
    assert_eq!(
        value_from_yaml(text).unwrap_err().to_string(),
        expected,
        "{text}"
    );
}

#[track_caller]
#[expect(
    clippy::needless_pass_by_value,
    reason = "tables read better without borrows"
)]
fn writes(value: Value, expected: &str) {
    let text = to_yaml(&value);
    assert_eq!(text, expected);
    assert_eq!(
        value_from_yaml(&text).unwrap(),
        value,
        "read back from {text}"
    );
}

#[test]
fn words_of_yaml_1_1_are_booleans() {
    reads(
        "[y, Y, yes, on, On, TRUE]",
        json!([true, true, true, true, true, true]),
    );
    reads(
        "[n, N, no, off, Off, FALSE]",
        json!([false, false, false, false, false, false]),
    );
    reads("[oN, yEs, 'y', \"on\"]", json!(["oN", "yEs", "y", "on"]));
    reads(
        "[~, null, Null, '~', nUll]",
        json!([null, null, null, "~", "nUll"]),
    );
}

#[test]
fn numbers_are_read_as_kubectl_reads_them() {
    reads(
        "[0777, 08, 0o17, 0x1F, 0b11, -0b11]",
        json!([511, 8, 15, 31, 3, -3]),
    );
    reads(
        "[1_000, +5, 1_0.5, .5, 5., -.5]",
        json!([1000, 5, 10.5, 0.5, 5, -0.5]),
    );
    reads("[1.0, 1e3, 012e4, -0.0]", json!([1, 1000, 120_000, 0]));
    reads("99999999999999999999", json!(1e20));
    reads("9223372036854775808", json!(9_223_372_036_854_775_808_f64));
    reads(
        "[1e400, 0o8, 1e, 0b2, 0x, +, '1']",
        json!(["1e400", "0o8", "1e", "0b2", "0x", "+", "1"]),
    );
    reads(
        "[12:30:45, 2001-01-01, 1.2.3]",
        json!(["12:30:45", "2001-01-01", "1.2.3"]),
    );
    refuses("a: .inf", "yaml: line 1, column 4: unsupported value: .inf");
}

#[test]
fn keys_become_strings() {
    reads(
        "{y: 1, 2: 2, 1.5: 3, 1e3: 4, 0x10: 5, off: 6, 2001-01-01: 7}",
        json!({
            "true": 1, "2": 2, "1.5": 3, "1000": 4, "16": 5, "false": 6, "2001-01-01": 7,
        }),
    );
    reads("'y': 1", json!({"y": 1}));
    refuses(
        "~: 1",
        "yaml: line 1, column 1: unsupported map key of type: null",
    );
    refuses(
        "[a]: 1",
        "yaml: line 1, column 3: invalid map key: must be a scalar",
    );
}

#[test]
fn merge_keys_are_merged_and_replace_what_stood_before() {
    reads(
        "base: &b {a: 2, b: 3}\nuse: {<<: *b, a: 1}",
        json!({
            "base": {"a": 2, "b": 3}, "use": {"a": 1, "b": 3},
        }),
    );
    reads("- &b {a: 2}\n- {a: 1, <<: *b}", json!([{"a": 2}, {"a": 2}]));
    reads(
        "- &b {a: 1}\n- &c {a: 2, c: 2}\n- <<: [*b, *c]",
        json!([{"a": 1}, {"a": 2, "c": 2}, {"a": 1, "c": 2}]),
    );
    reads("'<<': 1", json!({"<<": 1}));
    refuses(
        "<<: 1",
        "yaml: line 1, column 5: map merge requires map or sequence of maps as the value",
    );
}

#[test]
fn the_dialect_of_kustomize_keeps_words_and_writes_dates_out() {
    let options = YamlOptions {
        dialect: Dialect::GoYamlV3,
        ..YamlOptions::default()
    };
    let read = |text: &str| value_from_yaml_with(text, options);
    assert_eq!(
        read("{y: on, no: True, o: 0755, e: 1e3}").unwrap(),
        json!({"y": "on", "no": true, "o": 493, "e": 1000})
    );
    assert_eq!(
        read("[2001-01-01, 2001-1-2 3:04:05.10, 2001-01-01T10:00:00+01:00, '2001-01-01']").unwrap(),
        json!([
            "2001-01-01T00:00:00Z",
            "2001-01-02T03:04:05.1Z",
            "2001-01-01T10:00:00+01:00",
            "2001-01-01"
        ])
    );
    assert_eq!(
        read("- &b {a: 2, b: 3}\n- {a: 1, <<: *b}").unwrap(),
        json!([{"a": 2, "b": 3}, {"a": 1, "b": 3}])
    );
    assert_eq!(
        read("1: a").unwrap_err().to_string(),
        "yaml: line 1, column 1: the key 1 is not a string: put it in quotes"
    );
    assert_eq!(plain_scalar("80"), json!(80));
    assert_eq!(plain_scalar("yes"), json!("yes"));
}

#[test]
fn tags_decide_the_type() {
    reads(
        "[!!str 12, !!int '3', !!float 3, !foo 3, ! 12]",
        json!(["12", 3, 3, "3", "12"]),
    );
    reads("!!binary aGVsbG8=", json!("hello"));
    refuses(
        "a: !!int abc",
        "yaml: line 1, column 10: cannot decode !!str `abc` as a !!int",
    );
}

#[test]
fn empty_documents_are_skipped() {
    let text = "---\n---\na: 1\n---\n# only a comment\n---\nb: 2\n...\n";
    assert_eq!(from_yaml(text).unwrap(), [json!({"a": 1}), json!({"b": 2})]);
    assert_eq!(from_yaml("").unwrap(), Vec::<Value>::new());
    assert_eq!(value_from_yaml("# nothing").unwrap(), Value::Null);
    refuses(
        "a: 1\n---\nb: 2",
        "yaml: line 1, column 1: expected a single document, found 2",
    );
}

#[test]
fn duplicate_keys_are_the_callers_choice() {
    let text = "spec:\n  containers:\n  - name: a\n    image: v1\n    image: v2\n";
    reads(
        text,
        json!({"spec": {"containers": [{"name": "a", "image": "v2"}]}}),
    );
    let documents = documents_from_yaml(text, YamlOptions::default()).unwrap();
    let duplicate = &documents[0].duplicates[0];
    assert_eq!(duplicate.path, "spec.containers[0].image");
    assert_eq!(
        duplicate.to_string(),
        "line 5: key \"image\" already set in map"
    );

    let strict = YamlOptions {
        duplicate_keys: DuplicateKeys::Error,
        ..YamlOptions::default()
    };
    let error = from_yaml_with(text, strict).unwrap_err();
    assert_eq!(
        error.to_string(),
        "yaml: line 5, column 5: key \"image\" already set in map (spec.containers[0].image)"
    );
    let json = "{\"a\": 1,\n \"a\": 2}";
    assert_eq!(from_yaml_with(json, strict).unwrap_err().line, 2);
    let merged = "- &b {a: 1}\n- {<<: *b, a: 2}";
    assert!(
        from_yaml_with(merged, strict).is_ok(),
        "overriding a merged key is no duplicate"
    );
}

#[test]
fn json_is_yaml() {
    reads("{\"a\": [1.0, \"y\", null]}", json!({"a": [1, "y", null]}));
    reads("{\"a\": y}", json!({"a": true}));
    assert_eq!(
        from_yaml("{\"a\": 1}\n{\"b\": 2}").unwrap(),
        [json!({"a": 1}), json!({"b": 2})]
    );
}

#[test]
fn byte_order_marks_and_carriage_returns_are_no_content() {
    reads(
        "\u{feff}a: 1\r\nb: |\r\n  x\r\n  y\r\n",
        json!({"a": 1, "b": "x\ny\n"}),
    );
}

#[test]
fn expansion_and_nesting_are_bounded() {
    let mut bomb = vec!["a0: &a0 [x, x, x, x, x, x, x, x, x]".to_owned()];
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
        bomb.push(format!("a{level}: &a{level} [{aliases}]"));
    }
    let error = from_yaml(&bomb.join("\n")).unwrap_err();
    assert_eq!(error.message, "document contains excessive aliasing");

    let long = format!(
        "a: &a {}\nb: [{}]",
        "x".repeat(100_000),
        vec!["*a"; 1000].join(", ")
    );
    assert_eq!(
        from_yaml(&long).unwrap_err().message,
        "document contains excessive aliasing"
    );

    assert!(from_yaml(&"[".repeat(5000)).is_err());
    assert!(from_yaml(&"- ".repeat(5000)).is_err());
    let deep = format!(
        "a: &a {}{}\nb: {}*a{}",
        "[".repeat(200),
        "]".repeat(200),
        "[".repeat(200),
        "]".repeat(200)
    );
    assert_eq!(from_yaml(&deep).unwrap_err().message, "exceeded max depth");
    refuses(
        "a: &x [*x]",
        "yaml: line 1, column 8: anchor value contains itself",
    );
}

#[test]
fn errors_know_where() {
    let error = from_yaml("a: 1\nb: [1, 2\nc: 3\n").unwrap_err();
    assert_eq!(error.line, 3, "{error}");
    assert!(from_yaml("a: *unknown").is_err());
    refuses(
        "a: 1\nb: &lt;c d",
        "yaml: line 2, column 4: did not find expected alphabetic or numeric character",
    );
    reads("a: &on-e_1 x\nb: *on-e_1", json!({"a": "x", "b": "x"}));
}

#[test]
fn layout_is_that_of_kubectl() {
    writes(
        json!({"b": [1, {"x": [], "y": {}, "z": [[1, 2], "s"]}], "a": {"n": null, "t": true}}),
        "a:\n  \"n\": null\n  t: true\nb:\n- 1\n- x: []\n  \"y\": {}\n  z:\n  - - 1\n    - 2\n  - s\n",
    );
    writes(json!([{"a": 1, "b": 2}, []]), "- a: 1\n  b: 2\n- []\n");
    writes(json!("x"), "x\n");
    writes(json!({}), "{}\n");
    let style = YamlStyle {
        indent_lists: true,
        fold_after: None,
        ..YamlStyle::default()
    };
    assert_eq!(
        to_yaml_with(&json!({"a": [1, [2]]}), style),
        "a:\n  - 1\n  - - 2\n"
    );
}

#[test]
fn keys_are_in_natural_order() {
    let value =
        json!({"a10": 1, "a2": 1, "a-1": 1, "B": 1, "a": 1, "a02": 1, "10": 1, "9": 1, "_": 1});
    let keys: Vec<String> = to_yaml(&value)
        .lines()
        .filter_map(|line| Some(line.split_once(':')?.0.to_owned()))
        .collect();
    assert_eq!(
        keys,
        ["_", "\"9\"", "\"10\"", "B", "a", "a-1", "a2", "a02", "a10"]
    );
    // No order is right for these, but writing them must not fail.
    writes(
        json!({"a9": 1, "a10": 1, "a1b": 1}),
        "a10: 1\na1b: 1\na9: 1\n",
    );
}

#[test]
fn strings_are_quoted_when_they_would_be_something_else() {
    for (text, expected) in [
        ("plain text", "plain text"),
        ("", "\"\""),
        ("yes", "\"yes\""),
        ("null", "\"null\""),
        ("123", "\"123\""),
        ("0x1f", "\"0x1f\""),
        ("1e3", "\"1e3\""),
        ("1.2.3", "1.2.3"),
        ("12:30:45", "\"12:30:45\""),
        ("2001-01-01", "\"2001-01-01\""),
        ("2001-13-01", "2001-13-01"),
        ("2001-01-01T00:00:00Z", "\"2001-01-01T00:00:00Z\""),
        ("2001-01-01 10:00:00", "\"2001-01-01 10:00:00\""),
        ("a: b", "'a: b'"),
        ("a:b", "a:b"),
        ("a #b", "'a #b'"),
        ("a#b", "a#b"),
        ("# a", "'# a'"),
        ("- a", "'- a'"),
        ("-a", "-a"),
        ("---", "'---'"),
        ("{a}", "'{a}'"),
        ("it's", "it's"),
        ("'it's", "'''it''s'"),
        ("\"a\"", "'\"a\"'"),
        ("%a", "'%a'"),
        ("a%", "a%"),
        (" a", "' a'"),
        ("a ", "'a '"),
        ("a\tb", "\"a\\tb\""),
        ("é", "é"),
        ("😀", "\"\\U0001F600\""),
        ("a\u{2028}b", "\"a\\Lb\""),
        ("\\d", "\\d"),
        ("<<", "<<"),
        ("=", "="),
        ("a\r", "\"a\\r\""),
    ] {
        writes(json!({"k": text}), &format!("k: {expected}\n"));
    }
}

#[test]
fn several_lines_become_literal_blocks() {
    writes(json!({"k": "a\nb"}), "k: |-\n  a\n  b\n");
    writes(json!({"k": "a\nb\n"}), "k: |\n  a\n  b\n");
    writes(json!({"k": "a\n\n"}), "k: |+\n  a\n\n");
    writes(json!({"k": "\n"}), "k: |2+\n\n");
    writes(json!({"k": " a\nb"}), "k: |2-\n   a\n  b\n");
    writes(json!({"k": "a\n  b\n\nc"}), "k: |-\n  a\n    b\n\n  c\n");
    writes(json!({"k": "a \nb"}), "k: \"a \\nb\"\n");
    writes(json!({"k": "a\tb\nc"}), "k: \"a\\tb\\nc\"\n");
    writes(
        json!(["a\nb", {"c": "d\n"}]),
        "- |-\n  a\n  b\n- c: |\n    d\n",
    );
    writes(json!({"a\nb": 1}), "? |-\n  a\n  b\n: 1\n");
}

#[test]
fn long_lines_are_folded_at_a_space_beyond_the_width() {
    let word = "w".repeat(40);
    let text = format!("{word} {word} {word} end");
    writes(
        json!({"k": text}),
        &format!("k: {word} {word}\n  {word} end\n"),
    );
    let quoted = format!("{word} {word} {word}: end");
    writes(
        json!({"k": quoted}),
        &format!("k: '{word} {word}\n  {word}: end'\n"),
    );
    let style = YamlStyle {
        fold_after: None,
        ..YamlStyle::default()
    };
    assert_eq!(to_yaml_with(&json!(text), style), format!("{text}\n"));
}

#[test]
fn long_keys_are_explicit() {
    let key = "k".repeat(129);
    writes(json!({key.clone(): [1]}), &format!("? {key}\n: - 1\n"));
    let key = "k".repeat(128);
    writes(json!({key.clone(): {"a": 1}}), &format!("{key}:\n  a: 1\n"));
}

#[test]
fn floats_are_written_as_in_go() {
    assert_eq!(
        to_yaml(&json!([1.0, 1_234_567.5, 1e20, 1e19, 1e21, 0.5])),
        "- 1\n- 1.2345675e+06\n- 1e+20\n- 10000000000000000000\n- 1e+21\n- 0.5\n"
    );
}

fn normalized(value: Value) -> Value {
    match value {
        Value::Number(number) => Value::Number(number::normalize(&number)),
        Value::Array(items) => items.into_iter().map(normalized).collect(),
        Value::Object(map) => map
            .into_iter()
            .map(|(key, value)| (key, normalized(value)))
            .collect(),
        other => other,
    }
}

fn texts() -> impl Strategy<Value = String> {
    prop_oneof![
        "[ \\t\\n\\r'\":#,\\[\\]{}&*!|>%@`?.~=<0-9a-e_+-]{0,12}",
        "(y|n|yes|no|on|off|null|~|true|0x1|1e3|0777|<<|---|\\.\\.\\.|\\.inf|2001-01-01|1:20)",
        "[a-c\\n ]{0,10}",
        "([a-f ']{1,30} ){3,6}",
        any::<String>(),
    ]
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        texts().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(texts(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

#[test]
fn the_first_document_is_read_alone() {
    let first = |text: &str| first_from_yaml(text).unwrap();
    assert_eq!(first("a: 1\n---\nb: 2"), json!({"a": 1}));
    assert_eq!(first("# none\n---\n---\na: 1"), Value::Null);
    assert_eq!(first("a: 1\n--- ["), json!({"a": 1}));
    assert_eq!(first("{\"a\": 1}{\"b\": 2}"), json!({"a": 1}));
    assert_eq!(first(""), Value::Null);
    assert!(first_from_yaml("a: [").is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn what_was_written_is_read_back(value in values()) {
        let value = normalized(value);
        for style in [YamlStyle::default(), YamlStyle { fold_after: None, indent_lists: true, ..YamlStyle::default() }] {
            let text = to_yaml_with(&value, style);
            prop_assert_eq!(&value_from_yaml(&text).unwrap(), &value, "{}", text);
        }
    }

    #[test]
    fn no_text_panics(text in texts()) {
        let _ = from_yaml(&text);
    }
}

#[test]
fn the_other_writer_of_go_keeps_tabs_in_blocks() {
    let style = YamlStyle {
        is_v3: true,
        ..YamlStyle::default()
    };
    for (text, v3, v2) in [
        ("a:\n\tb\n", "|\n  a:\n  \tb\n", "\"a:\\n\\tb\\n\"\n"),
        ("a\tb", "\"a\\tb\"\n", "\"a\\tb\"\n"),
        ("\na\n", "|2\n  a\n", "|2\n\n  a\n"),
        ("\n", "|2+\n", "|2+\n\n"),
    ] {
        let value = Value::from(text);
        assert_eq!(to_yaml_with(&value, style), v3, "{text:?}");
        assert_eq!(to_yaml(&value), v2, "{text:?}");
    }
}

#[test]
fn a_final_line_break_is_added_unless_the_caller_says_no() {
    let exact = YamlOptions {
        adds_final_break: false,
        ..YamlOptions::default()
    };
    for (text, added, written) in [
        ("a: |\n  x", "x\n", "x"),
        ("a: |\n  x\n", "x\n", "x\n"),
        ("--- {}\n---\na: >\n  x", "x\n", "x"),
    ] {
        let last = |options| from_yaml_with(text, options).unwrap().pop().unwrap();
        assert_eq!(last(YamlOptions::default())["a"], added, "{text:?}");
        assert_eq!(last(exact)["a"], written, "{text:?}");
    }
}
