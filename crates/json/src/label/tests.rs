use proptest::prelude::*;
use serde_json::json;

use super::*;

fn labels(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
        .collect()
}

#[track_caller]
fn check(text: &str, expected: Result<&str, &str>) {
    let actual = LabelSelector::parse(text).map(|selector| selector.to_string());
    let actual = actual.map_err(|error| error.to_string());
    assert_eq!(
        actual,
        expected.map(str::to_owned).map_err(str::to_owned),
        "{text}"
    );
}

#[test]
fn texts_are_read_and_written() {
    check("", Ok(""));
    check(" ", Ok(""));
    check("a=b", Ok("a=b"));
    check("z , a", Ok("a,z"));
    check(
        "a==b,c!=d, e in (x,,y),!f,g>1,h<5,i notin ()",
        Ok("a==b,c!=d,e in (,x,y),!f,g>1,h<5,i notin ()"),
    );
    check("a=", Ok("a="));
    check(
        "in in (in),notin notin (notin)",
        Ok("in in (in),notin notin (notin)"),
    );
    check("a in (,b),c in (b,)", Ok("a in (,b),c in (,b)"));
    check("b=1,a=2,a=1", Ok("a=2,a=1,b=1"));
}

#[test]
fn errors_are_worded_as_in_kubernetes() {
    for (text, message) in [
        (
            "a b",
            "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
        ),
        (
            "a in",
            "unable to parse requirement: found '' expected: '('",
        ),
        (
            "a in (",
            "unable to parse requirement: found '', expected: ',', ')' or identifier",
        ),
        (
            "a in (b",
            "unable to parse requirement: found '', expected: ',' or ')'",
        ),
        (
            "a in (b c)",
            "unable to parse requirement: found 'c', expected: ',' or ')'",
        ),
        (
            "a in (b,=)",
            "unable to parse requirement: found '=', expected: ',', or identifier",
        ),
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        (
            ",a",
            "found ',', expected: !, identifier, or 'end of string'",
        ),
        ("a,", "found '', expected: identifier after ','"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        (
            "!",
            "unable to parse requirement: found '', expected: identifier",
        ),
        (
            "a===b",
            "unable to parse requirement: found '=', expected: identifier",
        ),
        (
            "/a",
            "unable to parse requirement: <nil>: Invalid value: \"/a\": prefix part must be non-empty",
        ),
        (
            "a>x",
            "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer",
        ),
    ] {
        check(text, Err(message));
    }
}

#[track_caller]
fn matches(text: &str, pairs: &[(&str, &str)], expected: bool) {
    let selector = LabelSelector::parse(text).unwrap();
    assert_eq!(
        selector.matches(&labels(pairs)),
        expected,
        "{text} on {pairs:?}"
    );
}

#[test]
fn all_requirements_must_be_met() {
    let web = [("app", "web"), ("tier", "front"), ("level", "7")];
    matches("", &web, true);
    matches("", &[], true);
    matches("app=web,tier=front", &web, true);
    matches("app=web,tier=back", &web, false);
    matches("app!=web", &web, false);
    matches("missing!=web,missing notin (a),!missing", &web, true);
    matches("app in (api,web)", &web, true);
    matches("app notin (api,web)", &web, false);
    matches("app,!missing", &web, true);
    matches("missing", &web, false);
    matches("level>6,level<8", &web, true);
    matches("level>7", &web, false);
    matches("app>1", &web, false);
    matches("empty=", &[("empty", "")], true);
    matches("empty=", &[], false);
}

#[test]
fn objects_are_read() {
    let selector = LabelSelector::from_object(Some(&json!({
        "matchLabels": {"app": "web"},
        "matchExpressions": [
            {"key": "tier", "operator": "In", "values": ["b", "a"]},
            {"key": "old", "operator": "DoesNotExist"},
            {"key": "zone", "operator": "Exists", "values": []},
            {"key": "x", "operator": "NotIn", "values": ["y"]},
        ],
    })))
    .unwrap();
    assert_eq!(
        selector.to_string(),
        "app=web,!old,tier in (a,b),x notin (y),zone"
    );
    assert_eq!(selector.required_value("app"), Some("web"));
    assert_eq!(selector.required_value("tier"), None);
    let object = json!({"metadata": {"labels": {"app": "web", "tier": "a", "zone": ""}}});
    assert!(selector.matches_object(&object));
    assert!(!selector.matches_object(&json!({})));
}

#[test]
fn no_object_selects_nothing_and_an_empty_one_everything() {
    for none in [None, Some(&Value::Null)] {
        let selector = LabelSelector::from_object(none).unwrap();
        assert!(!selector.matches_object(&json!({})) && !selector.is_everything());
    }
    let everything = LabelSelector::from_object(Some(&json!({}))).unwrap();
    assert!(everything.matches_object(&json!({})) && everything.is_everything());
}

#[test]
fn wrong_objects_are_refused() {
    for (object, message) in [
        (
            json!({"matchExpressions": [{"key": "a", "operator": "Like"}]}),
            "\"Like\" is not a valid label selector operator",
        ),
        (
            json!({"matchExpressions": [{"key": "a", "operator": "In"}]}),
            "values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty",
        ),
        (
            json!({"matchLabels": {"a": 1}}),
            "matchLabels: expected a string, found integer 1",
        ),
    ] {
        let error = LabelSelector::from_object(Some(&object)).unwrap_err();
        assert_eq!(error.to_string(), message);
    }
}

proptest! {
    #[test]
    fn what_was_written_is_read_back(text in "[ab]{1,3}(=|==|!=)[cd]{0,2}(,!?[ef](,[gh] (in|notin) \\([i-k,]{0,5}\\))?)?") {
        let selector = LabelSelector::parse(&text).unwrap();
        prop_assert_eq!(LabelSelector::parse(&selector.to_string()), Ok(selector));
    }

    #[test]
    fn no_text_panics(text in "[a-c,=!<>() /n\\x00-]{0,24}") {
        let _ = LabelSelector::parse(&text);
    }
}
