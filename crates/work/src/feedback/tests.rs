use serde_json::json;

use super::*;

const JSON: Limits = Limits {
    text: 30,
    structures: Structures::Json {
        limit: 40,
        several: false,
    },
};

fn ask(queries: &[Query], object: &Value) -> Answers {
    let subject = Subject {
        object,
        versions: None,
    };
    let mut allowance = Allowance::default();
    answer(
        queries,
        &subject,
        &Programs::default(),
        JSON,
        &mut allowance,
    )
}

fn at(path: &str, object: &Value, structures: Structures) -> Result<Option<Scalar>, String> {
    let subject = Subject {
        object,
        versions: None,
    };
    let limits = Limits { structures, ..JSON };
    by_path("x", None, path, &subject, limits)
}

#[track_caller]
fn script(content: &str, expected: Result<Option<Scalar>, &str>) {
    let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": 3},
        "status": {"readyReplicas": 2, "ratio": 0.25, "conditions": [{"type": "Available"}]}});
    let query = Query::Script {
        name: "x".to_owned(),
        language: "CEL".to_owned(),
        content: content.to_owned(),
    };
    let answers = ask(&[query], &object);
    match expected {
        Ok(value) => {
            assert_eq!(answers.problems, Vec::<String>::new(), "{content}");
            let found = answers.values.into_iter().map(|(_, value)| value).next();
            assert_eq!(found, value, "{content}");
        }
        Err(problem) => {
            let found = answers.problems.join("; ");
            assert!(found.contains(problem), "{content}: {found}");
        }
    }
}

#[test]
fn scripts_see_the_object_its_status_and_the_keys_of_the_status() {
    script("size(readyReplicas) > 0", Ok(Some(Scalar::Boolean(true))));
    script("readyReplicas", Ok(Some(Scalar::Integer(2))));
    script(
        "status.readyReplicas + object.spec.replicas",
        Ok(Some(Scalar::Integer(5))),
    );
    script("size(conditions)", Ok(Some(Scalar::Integer(1))));
    script(
        "conditions.exists(c, c.type == 'Available')",
        Ok(Some(Scalar::Boolean(true))),
    );
    script(
        "string(readyReplicas) + ' ready'",
        Ok(Some(Scalar::String("2 ready".into()))),
    );
    script("ratio", Ok(Some(Scalar::String("0.25".into()))));
    script("ratio * 8.0", Ok(Some(Scalar::String("2".into()))));
    script(
        "conditions",
        Ok(Some(Scalar::Json("[{\"type\":\"Available\"}]".into()))),
    );
}

#[test]
fn what_is_not_there_is_left_out_and_what_is_wrong_is_told() {
    script("missing > 0", Ok(None));
    script("status.missing > 0", Ok(None));
    script("conditions[7].type", Ok(None));
    script(
        "readyReplicas >",
        Err("failed to compile script x: ERROR: <input>:1:"),
    );
    script(
        "1 / (readyReplicas - 2)",
        Err("failed to evaluate script x: division by zero"),
    );
    script(
        "[conditions, conditions, conditions]",
        Err("for name x is larger than the maximum length 40"),
    );
}

#[test]
fn two_values_of_one_name_are_told() {
    let path = |path: &str| Query::Path {
        name: "x".to_owned(),
        version: None,
        path: path.to_owned(),
    };
    let object = json!({"a": 1, "b": 2.5});
    let answers = ask(&[path(".b"), path(".a")], &object);
    assert_eq!(
        answers.values,
        [("x".to_owned(), Scalar::String("2.5".into()))]
    );
    assert_eq!(answers.problems, ["there are two values with the name x"]);
}

#[test]
fn lists_and_maps_come_back_only_where_they_may() {
    let check = |structures: Structures, expected: Result<Option<Scalar>, &str>| {
        let object = json!({"items": [{"n": 1}, {"n": 2}]});
        let found = at(".items[*].n", &object, structures);
        assert_eq!(found, expected.map_err(str::to_owned));
    };
    check(Structures::Refused, Ok(Some(Scalar::Integer(1))));
    let several = Structures::Json {
        limit: 40,
        several: true,
    };
    check(several, Ok(Some(Scalar::Json("[1,2]".into()))));
}

#[test]
fn an_item_that_a_list_does_not_have_is_left_out() {
    let object = json!({"items": [{"n": 1}], "none": []});
    let found = |path: &str| at(path, &object, Structures::Refused);
    assert_eq!(found(".items[0].n"), Ok(Some(Scalar::Integer(1))));
    assert_eq!(found(".items[3].n"), Ok(None));
    assert_eq!(found(".none[0].n"), Ok(None));
}

#[test]
fn a_kind_whose_usual_status_is_not_known_is_named() {
    let rules: Vec<FeedbackRule> =
        serde_json::from_value(json!([{"type": "WellKnownStatus"}])).unwrap();
    let check = |api_version: &str, kind: &str, named: &str| {
        let text = format!("cannot find the wellknown statuses for resource with gvk {named}");
        let queries = of_manifest_work(&rules, api_version, kind);
        assert_eq!(queries, [Query::Wrong(text)]);
    };
    check("apps/v1", "StatefulSet", "apps/v1, Kind=StatefulSet");
    check("v1", "ConfigMap", "/v1, Kind=ConfigMap");
}

#[test]
fn an_object_without_a_status_has_an_empty_one() {
    let query = |content: &str| Query::Script {
        name: content.to_owned(),
        language: "CEL".to_owned(),
        content: content.to_owned(),
    };
    let queries = [
        query("size(status)"),
        query("has(status.ready)"),
        query("ready > 0"),
    ];
    let answers = ask(&queries, &json!({"kind": "Thing"}));
    assert_eq!(
        answers.values,
        [
            ("size(status)".to_owned(), Scalar::Integer(0)),
            ("has(status.ready)".to_owned(), Scalar::Boolean(false)),
        ]
    );
    assert_eq!(answers.problems, Vec::<String>::new());
}

#[test]
fn names_of_types_are_keys_of_a_status_that_has_them() {
    let value = |content: &str, status: Value| {
        let query = Query::Script {
            name: "x".to_owned(),
            language: "CEL".to_owned(),
            content: content.to_owned(),
        };
        let answers = ask(&[query], &json!({"status": status}));
        assert_eq!(answers.problems, Vec::<String>::new(), "{content}");
        answers.values.into_iter().map(|(_, value)| value).next()
    };
    let text = |text: &str| Some(Scalar::String(text.to_owned()));
    assert_eq!(value("type", json!({"type": "Ready"})), text("Ready"));
    let status = json!({"int": 3, "n": "4"});
    assert_eq!(
        value("int + int(n)", status),
        Some(Scalar::Integer(7)),
        "functions keep their names"
    );
    assert_eq!(
        value("type(n) == string", json!({"n": "4"})),
        Some(Scalar::Boolean(true)),
        "types that are no keys stay types"
    );
}

#[test]
fn bytes_come_back_as_bytes() {
    script("b'\\x00\\xff'", Ok(Some(Scalar::Bytes(vec![0, 255]))));
    script(
        "bytes('0123456789012345678901234567890')",
        Err("the value of x has 31 bytes, which is more than the maximum of 30"),
    );
}

#[test]
fn what_comes_back_is_limited_for_each_value_and_for_the_work() {
    script(
        "'0123456789012345678901234567890'",
        Err("the value of x has 31 bytes, which is more than the maximum of 30"),
    );
    let object = json!({"text": "x".repeat(limits::MAX_TEXT)});
    let query = |index: usize| Query::Path {
        name: format!("value{index}"),
        version: None,
        path: ".text".to_owned(),
    };
    let queries: Vec<Query> = (0..10).map(query).collect();
    let subject = Subject {
        object: &object,
        versions: None,
    };
    let large = Limits {
        text: limits::MAX_TEXT,
        ..JSON
    };
    let mut allowance = Allowance::default();
    let answers = answer(
        &queries,
        &subject,
        &Programs::default(),
        large,
        &mut allowance,
    );
    assert_eq!(answers.values.len(), 7);
    assert_eq!(
        answers.problems[0],
        "the value of value7 is left out: all values of a work take at most 262144 bytes together"
    );
}
