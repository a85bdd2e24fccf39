use proptest::prelude::*;
use serde_json::json;

use super::*;

#[track_caller]
fn check(text: &str, expected: Result<Value, &str>) {
    let actual = parse(text.as_bytes()).map(|parsed| parsed.value);
    let actual = actual.map_err(|error| error.to_string());
    assert_eq!(actual, expected.map_err(str::to_owned), "{text}");
}

#[track_caller]
fn check_duplicates(text: &str, expected: &[&str]) {
    assert_eq!(
        parse(text.as_bytes()).unwrap().duplicates,
        expected,
        "{text}"
    );
}

#[test]
fn syntax_errors_are_worded_as_in_go() {
    for (text, message) in [
        ("", "unexpected end of JSON input"),
        ("{", "unexpected end of JSON input"),
        (
            "{nope",
            "invalid character 'n' looking for beginning of object key string",
        ),
        ("{\"a\" 1}", "invalid character '1' after object key"),
        (
            "{\"a\":}",
            "invalid character '}' looking for beginning of value",
        ),
        (
            "{\"a\":1 \"b\"}",
            "invalid character '\"' after object key:value pair",
        ),
        (
            "{\"a\":1,}",
            "invalid character '}' looking for beginning of object key string",
        ),
        (
            "[1,]",
            "invalid character ']' looking for beginning of value",
        ),
        ("[1 2]", "invalid character '2' after array element"),
        ("1 2", "invalid character '2' after top-level value"),
        (
            "nul",
            "invalid character ' ' in literal null (expecting 'l')",
        ),
        (
            "[1.",
            "invalid character ' ' after decimal point in numeric literal",
        ),
        ("\"a\\", "invalid character ' ' in string escape code"),
        ("\"a", "unexpected end of JSON input"),
        (
            "nulL",
            "invalid character 'L' in literal null (expecting 'l')",
        ),
        (
            "fAlse",
            "invalid character 'A' in literal false (expecting 'a')",
        ),
        ("-x", "invalid character 'x' in numeric literal"),
        (
            "1.x",
            "invalid character 'x' after decimal point in numeric literal",
        ),
        (
            "1ex",
            "invalid character 'x' in exponent of numeric literal",
        ),
        ("[01]", "invalid character '1' after array element"),
        ("\"\\x\"", "invalid character 'x' in string escape code"),
        (
            "\"\\u12g4\"",
            "invalid character 'g' in \\u hexadecimal character escape",
        ),
        ("\"a\nb\"", "invalid character '\\n' in string literal"),
        (
            "\"abcdefgh\u{1}\"",
            "invalid character '\\x01' in string literal",
        ),
        (
            "'a'",
            "invalid character '\\'' looking for beginning of value",
        ),
        ("é", "invalid character 'Ã' looking for beginning of value"),
        (
            "1e400",
            "json: cannot unmarshal number 1e400 into Go value of type float64",
        ),
    ] {
        check(text, Err(message));
    }
}

#[test]
fn numbers_are_integers_whenever_they_fit() {
    check("9223372036854775807", Ok(json!(i64::MAX)));
    check("-9223372036854775808", Ok(json!(i64::MIN)));
    check(
        "9223372036854775808",
        Ok(json!(9_223_372_036_854_775_808_f64)),
    );
    check("1.0", Ok(json!(1)));
    check("1e3", Ok(json!(1000)));
    check("-0", Ok(json!(0)));
    check("0.1", Ok(json!(0.1)));
    check("5e-324", Ok(json!(5e-324)));
    let kept = ParseOptions {
        fold_integral_floats: false,
        ..ParseOptions::default()
    };
    assert_eq!(parse_with(b"1.0", kept).unwrap().value, json!(1.0));
}

#[test]
fn strings_are_decoded_as_go_decodes_them() {
    check(
        r#""a\"\\\/\b\f\n\r\t\u00e9""#,
        Ok(json!("a\"\\/\u{8}\u{c}\n\r\té")),
    );
    check(r#""\ud83d\ude00""#, Ok(json!("😀")));
    check(r#""\ud83dx""#, Ok(json!("\u{fffd}x")));
    check(r#""\ud83d\u0041""#, Ok(json!("\u{fffd}A")));
    check(r#""\ude00""#, Ok(json!("\u{fffd}")));
    check(
        r#""é wide text beyond eight bytes é""#,
        Ok(json!("é wide text beyond eight bytes é")),
    );
    assert_eq!(
        parse(b"\"a\xff\xfeb\"").unwrap().value,
        json!("a\u{fffd}\u{fffd}b")
    );
}

#[test]
fn duplicates_are_reported_with_their_paths() {
    check_duplicates(r#"{"a":1,"b":2}"#, &[]);
    check_duplicates(r#"{"data":{"a":1,"a":2}}"#, &["data.a"]);
    check_duplicates(r#"{"l":[0,{"x":1,"x":1,"x":1}]}"#, &["l[1].x"]);
    check_duplicates(r#"{"a":1,"a":{"b":1,"b":1}}"#, &["a", "a.b"]);
    check_duplicates(r#"[[{"a":1,"a":2}]]"#, &["[0][0].a"]);
    check(r#"{"a":1,"a":2}"#, Ok(json!({"a": 2})));
}

#[test]
fn duplicates_are_reported_up_to_a_limit() {
    let keys: Vec<String> = (0..300).map(|i| format!("\"k{i}\":0,\"k{i}\":0")).collect();
    let text = format!("{{{}}}", keys.join(","));
    assert_eq!(
        parse(text.as_bytes()).unwrap().duplicates.len(),
        MAX_REPORTED_DUPLICATES
    );
}

#[test]
fn nesting_beyond_the_limit_is_refused() {
    let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
    assert!(parse(nested(DEFAULT_MAX_DEPTH).as_bytes()).is_ok());
    check(&nested(DEFAULT_MAX_DEPTH + 1), Err("exceeded max depth"));
    check(&"[".repeat(1_000_000), Err("exceeded max depth"));
}

#[test]
fn a_stream_holds_any_number_of_values() {
    let stream = |text: &str| parse_stream(text.as_bytes(), ParseOptions::default());
    let values: Vec<Value> = stream(" {\"a\":1,\"a\":2}\n[1] 2 ")
        .unwrap()
        .into_iter()
        .map(|p| p.value)
        .collect();
    assert_eq!(values, [json!({"a": 2}), json!([1]), json!(2)]);
    assert_eq!(
        stream("{\"a\":1,\"a\":2}{}").unwrap()[1].duplicates,
        [""; 0]
    );
    assert!(stream("  ").unwrap().is_empty());
    assert_eq!(stream("{}x").unwrap_err().offset, 2);
}

#[test]
fn errors_know_their_offset() {
    assert_eq!(parse(b"{\"a\": tru}").unwrap_err().offset, 9);
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>()
            .prop_filter("fraction", |f| f.fract() != 0.0)
            .prop_map(Value::from),
        ".*".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(".*", inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

proptest! {
    #[test]
    fn what_was_written_is_read_back(value in values()) {
        for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            let parsed = parse(text.as_bytes()).unwrap();
            prop_assert_eq!(&parsed.value, &value);
            prop_assert!(parsed.duplicates.is_empty());
        }
    }

    #[test]
    fn no_input_panics(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = parse(&bytes);
    }

    #[test]
    fn accepts_and_refuses_the_same_texts_as_serde_json(text in "[\\[\\]{}:,\"\\\\ 0-9eE.+-tfnu]{0,24}") {
        // serde_json refuses lone surrogates and huge numbers, which this alphabet cannot make.
        let theirs: Result<Value, _> = serde_json::from_str(&text);
        prop_assert_eq!(parse(text.as_bytes()).is_ok(), theirs.is_ok(), "{}", text);
    }
}
