//! Templates of policies and what they resolve to.

use serde_json::Value;

use super::lines::Corpus;

pub(crate) const CORPUS: Corpus = Corpus {
    package: "bellwether-policy",
    probe: "policy-probe",
    judge,
    gates: &[(1, 99.0), (2, 96.0)],
};

/// What stands before the message of a YAML reader, which may be another.
const YAML: &str = "failed to convert the resolved template to JSON: ";

/// Values and errors have to be equal, and whether the object is skipped or sensitive.
fn judge(case: &Value, answer: &Value) -> Result<(), String> {
    let expected = &case["expect"];
    let is_right = match (expected["error"].as_str(), answer["error"].as_str()) {
        (Some(expected), Some(found)) => compared(expected) == compared(found),
        (None, None) => is_same(&expected["value"], &answer["value"]),
        _ => false,
    };
    let flags = ["hasTemplate", "skipped", "sensitive"];
    if is_right && flags.iter().all(|flag| expected[flag] == answer[flag]) {
        return Ok(());
    }
    Err(format!("got {answer}\nwant {expected}"))
}

/// The part of an error that has to be equal.
fn compared(error: &str) -> &str {
    if error.starts_with(YAML) {
        return YAML;
    }
    match error.split_once("yaml: ") {
        Some((before, _)) => before,
        None => error,
    }
}

/// Whether values are equal as JSON: 1 and 1.0 are.
fn is_same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        (Value::Array(a), Value::Array(b)) => {
            a.len() == b.len() && std::iter::zip(a, b).all(|(a, b)| is_same(a, b))
        }
        (Value::Object(a), Value::Object(b)) => {
            let has = |(key, value)| b.get(key).is_some_and(|other| is_same(value, other));
            a.len() == b.len() && a.iter().all(has)
        }
        _ => left == right,
    }
}
