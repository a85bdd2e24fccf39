use serde_json::json;

use super::super::ignore::Place;
use super::*;

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
        (Err(error), Err(expected)) => assert_eq!(error, expected, "{expression}"),
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
