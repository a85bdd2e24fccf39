use serde_json::json;

use super::*;
use crate::fields::Place;

fn shown(location: &Location) -> String {
    location
        .iter()
        .fold(String::new(), |text, place| match place {
            Place::Field(name) => format!("{text}/{name}"),
            Place::Index(index) => format!("{text}/{index}"),
        })
}

#[track_caller]
fn check(expression: &str, expected: Result<&[&str], &str>) {
    let object = json!({
        "spec": {"replicas": 1, "containers": [
            {"name": "app", "image": "a:1", "env": [{"name": "X", "value": "1"}]},
            {"name": "side", "image": "s:1"},
        ]},
        "data": {"a.b": "c"},
    });
    let found = paths(expression, &object).map(|found| found.iter().map(shown).collect::<Vec<_>>());
    match (found, expected) {
        (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{expression}"),
        (Err(FieldError::Jq { problem, .. }), Err(expected)) => {
            assert_eq!(problem, expected, "{expression}");
        }
        (found, expected) => panic!("{expression}: {found:?}, not {expected:?}"),
    }
}

#[test]
fn fields_are_found() {
    check(".spec.replicas", Ok(&["/spec/replicas"]));
    check(".data[\"a.b\"]", Ok(&["/data/a.b"]));
    check(".data.\"a.b\"", Ok(&["/data/a.b"]));
    check(
        ".spec.containers[0].image",
        Ok(&["/spec/containers/0/image"]),
    );
    check(
        ".spec.containers[-1].image",
        Ok(&["/spec/containers/1/image"]),
    );
    check(
        ".spec.containers[].image",
        Ok(&["/spec/containers/0/image", "/spec/containers/1/image"]),
    );
    check(".spec.missing", Ok(&[]));
    check(".spec.missing[]?.x", Ok(&[]));
    check(".spec.replicas, .data", Ok(&["/spec/replicas", "/data"]));
    check(".spec | .replicas", Ok(&["/spec/replicas"]));
    check("(.spec | .replicas)", Ok(&["/spec/replicas"]));
}

#[test]
fn items_are_selected_by_tests() {
    let image = "/spec/containers/0/image";
    check(
        ".spec.containers[] | select(.name == \"app\") | .image",
        Ok(&[image]),
    );
    check(
        ".spec.containers[] | select(.name != \"side\") | .image",
        Ok(&[image]),
    );
    check(
        ".spec.containers[] | select(has(\"env\")).image",
        Ok(&[image]),
    );
    check(
        ".spec.containers[] | select(.name | startswith(\"a\")) | .image",
        Ok(&[image]),
    );
    check(
        ".spec.containers[] | select(.name == \"x\" or (.name == \"app\" and .image == \"a:1\")).image",
        Ok(&[image]),
    );
    check(
        ".spec.containers[] | select(.name | test(\"^ap+$\")) | .image",
        Ok(&[image]),
    );
    check(".spec | select(.replicas > 1).replicas", Ok(&[]));
    check(
        ".. | select(.name? == \"X\") | .value",
        Ok(&["/spec/containers/0/env/0/value"]),
    );
}

#[test]
fn parts_alternatives_and_places_by_name_are_found() {
    let (first, second) = ("/spec/containers/0/image", "/spec/containers/1/image");
    check(".spec.containers[1:][].image", Ok(&[second]));
    check(".spec.containers[:1]", Ok(&["/spec/containers/0"]));
    check(".spec.containers[-1:]", Ok(&["/spec/containers/1"]));
    check(".spec.containers[1:1]", Ok(&[]));
    check("first(.spec.containers[]).image", Ok(&[first]));
    check("last(.spec.containers[]).image", Ok(&[second]));
    check(".spec.containers | first | .image", Ok(&[first]));
    check(
        "getpath([\"spec\", \"containers\", 1, \"image\"])",
        Ok(&[second]),
    );
    check(".spec.missing // .spec.replicas", Ok(&["/spec/replicas"]));
    check(".spec.replicas // .data", Ok(&["/spec/replicas"]));
    check("empty", Ok(&[]));
    check(
        ".spec.containers[1:].image",
        Err("failed to parse jq expression: expected [] after a part of a list at \".image\""),
    );
}

#[test]
fn tests_may_have_several_answers_and_questions() {
    let app = ["/spec/containers/0"];
    let select = |test: &str, expected: &[&str]| {
        check(
            &format!(".spec.containers[] | select({test})"),
            Ok(expected),
        );
    };
    select(".env[]?.name == \"X\"", &app);
    select("(.env[]?.name == \"Y\") | not", &app);
    select(".env | length > 0", &app);
    select(".env | type == \"array\"", &app);
    select(".name | IN(\"x\", \"app\")", &app);
    select(".name | ascii_upcase == \"APP\"", &app);
    select(".name | ascii_downcase | startswith(\"ap\")", &app);
    select("any(.env[]?; .name == \"X\")", &app);
    select(".env // empty | any(.value == \"1\")", &app);
    select("has(\"env\") and all(.env[]; .value != \"2\")", &app);
    select(". | contains({\"name\": \"ap\"})", &app);
    select(".env | . == null | not", &app);
}

#[test]
fn long_expressions_are_no_danger() {
    let tests = vec![".replicas == 2"; 20_000].join(" or ");
    check(&format!(".spec | select({tests}).replicas"), Ok(&[]));
    let tries = "?".repeat(20_000);
    check(&format!(".spec.replicas{tries}"), Ok(&["/spec/replicas"]));
    let nots = " | not".repeat(20_000);
    check(
        &format!(".spec | select(.replicas{nots}).replicas"),
        Ok(&["/spec/replicas"]),
    );
}

#[test]
fn what_is_no_path_is_told() {
    check(
        "",
        Err("failed to parse jq expression: expected a path at \"\""),
    );
    check(
        ".a + 1",
        Err("failed to parse jq expression: unexpected \"+ 1\""),
    );
    check(
        ".spec.replicas[]",
        Err("jq expression returned error: cannot iterate over: number (1)"),
    );
    check(
        ".spec | select(.replicas | test(\"1\")).replicas",
        Err("jq expression returned error: test cannot be applied to: number (1)"),
    );
    check(".", Err("jq expression did not return any data"));
}

#[test]
fn an_expression_stops_at_its_budget_however_it_is_written() {
    let check = |expression: String, object: &serde_json::Value| {
        let found = paths(&expression, object);
        let is_stopped = match &found {
            Err(FieldError::Budget { budget, .. }) => *budget == Meter::BUDGET,
            Err(FieldError::Jq { problem, .. }) => {
                problem.contains("too complex") || problem.contains("too deeply")
            }
            _ => false,
        };
        assert!(is_stopped, "{} bytes: {found:?}", expression.len());
    };
    // Places that grow with every part: each is copied by the next.
    check(vec![".a"; 7000].join("|"), &json!({}));
    // Everything in everything, again and again.
    let deep = (0..120).fold(json!(1), |inner, _| json!([inner]));
    check("..|..|..|..".to_owned(), &deep);
    // Parts that may be read in two ways.
    let nested = "any(.a|select(".repeat(25) + ".a" + &"))".repeat(25);
    check(format!(".a|select({nested})"), &json!({"a": 1}));
}
