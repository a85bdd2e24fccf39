//! Runs the documents in `testdata/`: prose with templates and what they print.

#![expect(
    clippy::expect_used,
    reason = "a document that cannot be read fails the test"
)]

use bellwether_jsonpath::JsonPath;
use proptest::prelude::*;
use serde_json::{Value, json};

/// One expectation of a document.
struct Case<'document> {
    line: usize,
    template: &'document str,
    allow_missing_keys: bool,
    expected: Result<&'document str, &'document str>,
}

fn check(name: &str, document: &str) {
    let input: Value = {
        let (_, after) = document
            .split_once("```json\n")
            .expect("the document has an input");
        let (text, _) = after.split_once("\n```").expect("the input ends");
        serde_json::from_str(text).expect("the input is JSON")
    };
    let cases = cases(document);
    assert!(
        cases.len() > 20,
        "{name}: only {} cases were found",
        cases.len()
    );
    for case in cases {
        let actual = JsonPath::parse(case.template)
            .and_then(|path| {
                path.allow_missing_keys(case.allow_missing_keys)
                    .render(&input)
            })
            .map_err(|error| error.to_string());
        let expected = case.expected.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(actual, expected, "{name}:{}: {}", case.line, case.template);
    }
}

fn cases(document: &str) -> Vec<Case<'_>> {
    let mut cases = Vec::new();
    let mut template = None;
    let mut is_inside = false;
    for (index, text) in document.lines().enumerate() {
        let line = index + 1;
        match (is_inside, template) {
            (false, _) => is_inside = text == "```jsonpath",
            (true, None) if text == "```" => is_inside = false,
            (true, None) => template = Some(text),
            (true, Some(before)) => {
                let (allow_missing_keys, expected) = expectation(text)
                    .unwrap_or_else(|| panic!("line {line}: expected an expectation: {text}"));
                cases.push(Case {
                    line,
                    template: before,
                    allow_missing_keys,
                    expected,
                });
                template = None;
            }
        }
    }
    cases
}

fn expectation(text: &str) -> Option<(bool, Result<&str, &str>)> {
    let (mark, rest) = text.split_once(' ').unwrap_or((text, ""));
    Some(match mark {
        "=" => (false, Ok(rest)),
        "!" => (false, Err(rest)),
        "~" => (true, Ok(rest)),
        "~!" => (true, Err(rest)),
        _ => return None,
    })
}

#[test]
fn paths_behave_as_documented() {
    check("paths.md", include_str!("../testdata/paths.md"));
}

#[test]
fn filters_and_ranges_behave_as_documented() {
    check("filters.md", include_str!("../testdata/filters.md"));
}

#[test]
fn results_are_one_list_for_each_piece() {
    let value = json!({"a": [1, 2], "b": "x"});
    let path = JsonPath::parse("{.a[*]} and {.b}").unwrap();
    let results = path.find(&value).unwrap();
    let expected: Vec<Vec<Value>> = vec![
        vec![json!(1), json!(2)],
        vec![json!(" and ")],
        vec![json!("x")],
    ];
    assert_eq!(results.len(), expected.len());
    for (actual, expected) in results.iter().zip(&expected) {
        assert!(actual.iter().copied().eq(expected), "{actual:?}");
    }
}

#[test]
fn paths_are_read_in_the_relaxed_form() {
    let value = json!({"spec": {"color": "red"}});
    for path in ["spec.color", ".spec.color", "{spec.color}", "{.spec.color}"] {
        assert_eq!(
            JsonPath::parse_relaxed(path)
                .unwrap()
                .render(&value)
                .unwrap(),
            "red"
        );
    }
    assert!(JsonPath::parse_relaxed("{.a}{.b}").is_err());
}

#[test]
fn work_is_bounded() {
    let wide: Value = (0..300).map(|_| json!([[[1], [2]], [[3], [4]]])).collect();
    let value = json!({"wide": wide});
    for template in ["{..}", "{.wide[*][*][*]}", "{range .wide[*]}{@[*]}{end}"] {
        let path = JsonPath::parse(template).unwrap();
        assert!(path.render(&value).is_ok(), "{template}");
    }
    // Without an end, each of these doubles the work.
    let explosion = "{range $}".repeat(60);
    let error = JsonPath::parse(&explosion)
        .unwrap()
        .render(&value)
        .unwrap_err();
    assert!(error.to_string().contains("too many values"), "{error}");
    let too_deep = "{range $}".repeat(100);
    assert!(JsonPath::parse(&too_deep).unwrap().render(&value).is_err());
}

#[test]
fn nesting_of_templates_is_bounded() {
    let nested = format!("{{{}@.a{}}}", "[?(".repeat(40), ")]".repeat(40));
    assert!(JsonPath::parse(&nested).is_err());
    let open = "{[?(".repeat(10_000);
    assert!(JsonPath::parse(&open).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_template_panics(
        pieces in prop::collection::vec(prop::sample::select(vec![
            "{", "}", ".a", "..", ".*", "[*]", "[0]", "[-1]", "[1:2]", "['a']", "[?(", ")]", "@", "$",
            "==", "<", "!=", "\"x\"", "'", "\\", "range ", "end", "1", ".", ",", "é", " ", "\n", "[", "]",
        ]), 0..14),
    ) {
        let template = pieces.concat();
        if let Ok(path) = JsonPath::parse(&template) {
            let value = json!({"a": [{"a": 1}, "é", null, [1, 2.5]], "b": {"a": {}}});
            let _ = path.render(&value);
        }
    }
}
