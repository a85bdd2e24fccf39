use serde_json::json;

use super::*;

#[test]
fn json_and_values_convert_back_and_forth() {
    let document = json!({"a": [1, -2.5, "x", null, true], "b": {"c": {}}});
    assert_eq!(Value::from_json(&document).to_json(), document);
}

#[test]
fn values_json_cannot_hold_become_text() {
    let infinity = Value::Double(f64::INFINITY);
    assert_eq!(infinity.to_json(), json!("+Inf"));
    let bytes = Value::Bytes(b"hi".as_slice().into());
    assert_eq!(bytes.to_json(), json!("aGk="));
    assert_eq!(Value::none().to_json(), json!(null));
    assert_eq!(Value::some(Value::Int(1)).to_json(), json!(1));
}

#[test]
fn large_integers_lose_precision_as_doubles() {
    let document = json!(18_446_744_073_709_551_615_u64);
    assert!(matches!(Value::from_json(&document), Value::Double(_)));
}

#[test]
fn equality_crosses_number_types() {
    assert_eq!(Value::Int(1), Value::Double(1.0));
    assert_eq!(Value::Uint(1), Value::Int(1));
    assert_ne!(Value::Int(-1), Value::Uint(u64::MAX));
    assert_ne!(Value::Double(f64::NAN), Value::Double(f64::NAN));
    assert_ne!(Value::from("1"), Value::Int(1));
}

#[test]
fn long_lists_are_joined_without_copying() {
    let numbers = json!((0..40).collect::<Vec<i64>>());
    let Value::List(list) = Value::from_json(&numbers) else {
        panic!("not a list");
    };
    let mut joined = list.clone();
    for _ in 0..30 {
        joined = joined.concat(&list).unwrap();
    }
    assert_eq!(joined.len(), 31 * 40);
    assert_eq!(joined.get(41).unwrap().unwrap(), Value::Int(1));
    assert_eq!(joined.iter().count(), 31 * 40);
}

#[test]
fn text_is_quoted_so_that_it_reads_back() {
    assert_eq!(quoted("a\"b\\\n\u{1}é"), "\"a\\\"b\\\\\\n\\x01é\"");
}
