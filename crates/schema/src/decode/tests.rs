use std::sync::Arc;

use serde_json::json;

use super::*;

fn node(kind: Type) -> Schema {
    Schema {
        kind: Some(kind),
        ..Schema::default()
    }
}

fn formatted(kind: Type, format: &str) -> Arc<Schema> {
    Arc::new(Schema {
        format: Some(format.to_owned()),
        ..node(kind)
    })
}

/// A made-up built-in kind with one field of each sort.
fn kettle() -> Schema {
    let map = Schema {
        additional_properties: Some(Arc::new(node(Type::String))),
        ..node(Type::Object)
    };
    let lid = Schema {
        properties: [("tight".to_owned(), Arc::new(node(Type::Boolean)))].into(),
        type_name: Some("io.example.api.kitchen.v1.Lid".into()),
        ..node(Type::Object)
    };
    let lids = Schema {
        items: Some(Arc::new(lid.clone())),
        ..node(Type::Array)
    };
    let names = Schema {
        items: Some(Arc::new(node(Type::String))),
        ..node(Type::Array)
    };
    let port = Schema {
        int_or_string: true,
        ..Schema::default()
    };
    let raw = Schema {
        preserve_unknown_fields: true,
        ..node(Type::Object)
    };
    let quantity = Schema {
        type_name: Some("io.k8s.apimachinery.pkg.api.resource.Quantity".into()),
        ..node(Type::String)
    };
    let properties = [
        ("labels", Arc::new(map)),
        ("lid", Arc::new(lid)),
        ("lids", Arc::new(lids)),
        ("names", Arc::new(names)),
        ("size", formatted(Type::Integer, "int32")),
        ("weight", Arc::new(node(Type::Number))),
        ("port", Arc::new(port)),
        ("raw", Arc::new(raw)),
        ("boiled", formatted(Type::String, "date-time")),
        ("secret", formatted(Type::String, "byte")),
        ("volume", Arc::new(quantity)),
    ];
    Schema {
        properties: properties
            .map(|(name, schema)| (name.to_owned(), schema))
            .into(),
        type_name: Some("io.example.api.kitchen.v1.Kettle".into()),
        ..node(Type::Object)
    }
}

#[track_caller]
fn refuses(body: Value, expected: &str) {
    let mut value = body.clone();
    match decode(&mut value, &kettle(), "Kettle") {
        Err(error) => assert_eq!(error.to_string(), expected, "{body}"),
        Ok(_) => panic!("{body} was decoded"),
    }
}

#[track_caller]
fn becomes(body: Value, expected: Value, unknown: &[&str]) {
    let mut value = body.clone();
    let found = decode(&mut value, &kettle(), "Kettle").unwrap();
    assert_eq!(value, expected, "{body}");
    assert_eq!(found, unknown, "{body}");
}

#[test]
fn wrong_types_are_refused_as_go_does() {
    let cases = [
        (
            json!({"labels": {"a": 1}}),
            "number into Go struct field Kettle.labels of type string",
        ),
        (
            json!({"labels": 1}),
            "number into Go struct field Kettle.labels of type map[string]string",
        ),
        (
            json!({"lid": {"tight": "x"}}),
            "string into Go struct field Lid.lid.tight of type bool",
        ),
        (
            json!({"lid": []}),
            "array into Go struct field Kettle.lid of type v1.Lid",
        ),
        (
            json!({"lids": {}}),
            "object into Go struct field Kettle.lids of type []v1.Lid",
        ),
        (
            json!({"lids": [{"tight": 1}]}),
            "number into Go struct field Lid.lids.tight of type bool",
        ),
        (
            json!({"names": [true]}),
            "bool into Go struct field Kettle.names of type string",
        ),
        (
            json!({"size": 1.5}),
            "number 1.5 into Go struct field Kettle.size of type int32",
        ),
        (
            json!({"size": 3_000_000_000_u64}),
            "number 3000000000 into Go struct field Kettle.size of type int32",
        ),
        (
            json!({"size": "1"}),
            "string into Go struct field Kettle.size of type int32",
        ),
        (
            json!({"weight": "1"}),
            "string into Go struct field Kettle.weight of type float64",
        ),
        (
            json!({"port": true}),
            "bool into Go struct field Kettle.port of type int32",
        ),
        (
            json!({"boiled": 3}),
            "number into Go struct field Kettle.boiled of type string",
        ),
        (json!("x"), "string into Go value of type v1.Kettle"),
    ];
    for (body, expected) in cases {
        refuses(body, &format!("json: cannot unmarshal {expected}"));
    }
}

#[test]
fn malformed_scalars_are_refused_as_go_does() {
    let layout = "2006-01-02T15:04:05Z07:00";
    let as_layout = format!(" as \"{layout}\": ");
    let times = [
        ("soon", &*as_layout, r#"cannot parse "soon" as "2006""#),
        ("2026-13-01T00:00:00Z", ": ", "month out of range"),
        ("2026-02-30T00:00:00Z", ": ", "day out of range"),
        ("2026-02-03T25:00:00Z", ": ", "hour out of range"),
        ("2026-02-03", &as_layout, r#"cannot parse "" as "T""#),
        (
            "2026-02-03T10:00:00",
            &as_layout,
            r#"cannot parse "" as "Z07:00""#,
        ),
        (
            "2026-2-03T10:00:00Z",
            &as_layout,
            r#"cannot parse "2-03T10:00:00Z" as "01""#,
        ),
        ("2026-02-03T10:00:00Zx", ": ", r#"extra text: "x""#),
    ];
    for (time, between, problem) in times {
        refuses(
            json!({"boiled": time}),
            &format!("parsing time \"{time}\"{between}{problem}"),
        );
    }
    let secrets = [
        ("a*==", 1),
        ("abcde", 4),
        ("ab", 0),
        ("abc", 0),
        ("abcd=", 4),
        ("ab=", 3),
        ("ab==x", 4),
        ("a===", 1),
        ("ab=c", 2),
        ("abcd===", 4),
    ];
    for (secret, offset) in secrets {
        refuses(
            json!({"secret": secret}),
            &format!("illegal base64 data at input byte {offset}"),
        );
    }
    let quantity = "quantities must match the regular expression \
        '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
    refuses(json!({"volume": "lots"}), quantity);
    refuses(json!({"volume": ""}), quantity);
}

#[test]
fn well_formed_bodies_are_kept() {
    let body = json!({
        "labels": {"a": "b"}, "lid": {"tight": true}, "lids": [{"tight": false}], "size": 3,
        "weight": 1, "port": "http", "raw": {"any": [1, {"thing": null}]}, "secret": "aGk=",
        "boiled": "2026-02-03T10:00:00.5+02:00", "volume": "1.5Gi",
    });
    becomes(body.clone(), body, &[]);
    becomes(
        json!({"volume": 2, "port": 80}),
        json!({"volume": 2, "port": 80}),
        &[],
    );
}

#[test]
fn unknown_fields_are_dropped_and_named() {
    becomes(
        json!({"bogus": 1, "lid": {"loose": 1}, "lids": [{}, {"x": {}}], "Size": 1}),
        json!({"lid": {}, "lids": [{}, {}]}),
        &["Size", "bogus", "lid.loose", "lids[1].x"],
    );
}

#[test]
fn nulls_vanish_from_fields_and_become_zero_values_in_lists_and_maps() {
    becomes(
        json!({"size": null, "lid": null, "labels": {"a": null}, "names": [null], "lids": [null]}),
        json!({"labels": {"a": ""}, "names": [""], "lids": [{}]}),
        &[],
    );
}

#[test]
fn structs_that_only_go_knows_are_named() {
    let probe = Schema {
        properties: [("exec".to_owned(), Arc::new(node(Type::Object)))].into(),
        type_name: Some("io.k8s.api.core.v1.Probe".into()),
        ..node(Type::Object)
    };
    let spec = Schema {
        properties: [
            ("restartPolicy".to_owned(), Arc::new(node(Type::String))),
            ("probe".to_owned(), Arc::new(probe)),
        ]
        .into(),
        type_name: Some("io.k8s.api.core.v1.PodSpec".into()),
        ..node(Type::Object)
    };
    let error = |mut body: Value| decode(&mut body, &spec, "PodSpec").unwrap_err().to_string();
    assert_eq!(
        error(json!({"restartPolicy": 3})),
        "json: cannot unmarshal number into Go struct field PodSpec.restartPolicy of type \
         v1.RestartPolicy"
    );
    assert_eq!(
        error(json!({"probe": {"exec": 3}})),
        "json: cannot unmarshal number into Go struct field Probe.probe.ProbeHandler.exec of type \
         map[string]interface {}"
    );
}
