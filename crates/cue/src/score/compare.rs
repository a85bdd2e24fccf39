//! Compares one answer with one expectation.

use super::{Outcome, Soft};
use crate::value::Value;

/// Fills in the parts of an outcome that depend on the expectation.
pub(super) fn compare(outcome: &mut Outcome, expected: &Value, answer: &Value) {
    let status = |value: &Value| match value.field("status") {
        Some(Value::String(status)) => status.to_string(),
        _ => String::new(),
    };
    let (wanted, given) = (status(expected), status(answer));
    let values = ["json", "output", "outputs"];
    let mut wrong = None;
    if wanted == "ok" && given == "ok" {
        for label in values {
            if let Some(value) = expected.field(label)
                && !answer
                    .field(label)
                    .is_some_and(|actual| same(value, actual))
            {
                wrong = Some(format!(
                    "{label} differs{}",
                    difference(value, answer.field(label))
                ));
                break;
            }
        }
    }
    outcome.fields = fields(expected, answer);
    outcome.soft = soft(expected, answer);
    outcome.right = wanted == given && wrong.is_none();
    outcome.reason = if outcome.right {
        String::new()
    } else {
        wrong.unwrap_or_else(|| format!("status {given}, expected {wanted}"))
    };
    let class = wanted != "ok" && given != "ok";
    let (matching, all) = outcome.fields;
    // Counts of fields are far below the range where this loses precision.
    #[expect(clippy::cast_precision_loss, reason = "counts are small")]
    let share = if all == 0 {
        0.0
    } else {
        matching as f64 / all as f64
    };
    outcome.points = if outcome.right {
        1.0
    } else if class {
        0.5 + share / 2.0
    } else {
        share / 2.0
    };
}

/// Matching and expected verdicts on fields.
fn fields(expected: &Value, answer: &Value) -> (usize, usize) {
    let Some(Value::Struct(wanted)) = expected.field("fields") else {
        return (0, 0);
    };
    let given = answer.field("fields");
    // A whole value answers for its fields.
    let whole = answer.field("json");
    let matches = wanted.iter().filter(|(path, verdict)| {
        let actual = given.and_then(|given| given.field(path));
        match actual {
            Some(actual) => verdicts_agree(verdict, actual),
            None => match (verdict.field("v"), whole) {
                (Some(value), Some(whole)) => {
                    let found = path
                        .split('.')
                        .try_fold(whole, |value, part| value.field(part));
                    found.is_some_and(|found| same(value, found))
                }
                _ => false,
            },
        }
    });
    (matches.count(), wanted.len())
}

fn verdicts_agree(wanted: &Value, actual: &Value) -> bool {
    match (wanted.field("v"), actual.field("v")) {
        (Some(wanted), Some(actual)) => same(wanted, actual),
        (None, None) => {
            let absent = |value: &Value| value.field("absent").is_some();
            absent(wanted) == absent(actual) && wanted.field("err") == actual.field("err")
        }
        _ => false,
    }
}

/// Deep equality that ignores the order of fields and compares numbers by value, within the
/// precision of the expectations.
fn same(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Number(left), Value::Number(right)) => {
            if left.compare(right).is_eq() {
                return true;
            }
            let (left, right) = (left.to_f64(), right.to_f64());
            (left - right).abs() <= 1e-15 * left.abs().max(right.abs())
        }
        (Value::Struct(fields), Value::Struct(others)) => {
            fields.len() == others.len()
                && fields.iter().all(|(label, value)| {
                    right.field(label).is_some_and(|other| same(value, other))
                })
        }
        (Value::List(items), Value::List(others)) => {
            items.len() == others.len()
                && items
                    .iter()
                    .zip(others.iter())
                    .all(|(left, right)| same(left, right))
        }
        _ => left == right,
    }
}

/// Where two values first differ, for the reader of a report.
fn difference(wanted: &Value, actual: Option<&Value>) -> String {
    let Some(actual) = actual else {
        return ": missing".to_owned();
    };
    let mut path = Vec::new();
    let (mut wanted, mut actual) = (wanted, actual);
    loop {
        let next = match (wanted, actual) {
            (Value::Struct(fields), Value::Struct(others)) => {
                let extra = others
                    .iter()
                    .find(|(label, _)| wanted.field(label).is_none());
                if let Some((label, _)) = extra {
                    return format!(" at {}: unexpected {label:?}", path.join("."));
                }
                fields
                    .iter()
                    .find_map(|(label, value)| match actual.field(label) {
                        Some(other) if same(value, other) => None,
                        other => Some((label.to_string(), value, other)),
                    })
            }
            (Value::List(items), Value::List(others)) if items.len() == others.len() => {
                let pairs = items.iter().zip(others.iter()).enumerate();
                let mut pairs = pairs.filter(|(_, (left, right))| !same(left, right));
                pairs
                    .next()
                    .map(|(index, (left, right))| (index.to_string(), left, Some(right)))
            }
            _ => None,
        };
        match next {
            Some((label, value, Some(other))) => {
                path.push(label);
                (wanted, actual) = (value, other);
            }
            Some((label, _, None)) => {
                return format!(" at {}: missing {label:?}", path.join("."));
            }
            None => {
                let text = |value: &Value| {
                    crate::builtins::write_json(value)
                        .chars()
                        .take(120)
                        .collect::<String>()
                };
                return format!(
                    " at {}: {} instead of {}",
                    path.join("."),
                    text(actual),
                    text(wanted)
                );
            }
        }
    }
}

/// Agreement that does not count.
fn soft(expected: &Value, answer: &Value) -> Soft {
    let first = |value: &Value| match value.field("errs") {
        Some(Value::List(errors)) => errors.first().cloned(),
        _ => None,
    };
    let mut soft = Soft::default();
    if let (Some(wanted), Some(actual)) = (expected.field("json"), answer.field("json")) {
        soft.order = Some(same_order(wanted, actual));
    }
    if let (Some(wanted), Some(actual)) = (first(expected), first(answer)) {
        soft.path = Some(wanted.field("path") == actual.field("path"));
        soft.message = Some(wanted.field("msg") == actual.field("msg"));
        let line = |error: &Value| match error.field("pos") {
            Some(Value::String(position)) => {
                position.rsplit_once(':').map(|(line, _)| line.to_owned())
            }
            _ => None,
        };
        soft.line = Some(line(&wanted) == line(&actual));
    }
    soft
}

fn same_order(left: &Value, right: &Value) -> bool {
    match (left, right) {
        (Value::Struct(fields), Value::Struct(others)) => {
            fields.len() == others.len()
                && fields
                    .iter()
                    .zip(others.iter())
                    .all(|((label, value), (other, actual))| {
                        label == other && same_order(value, actual)
                    })
        }
        (Value::List(items), Value::List(others)) => {
            items.len() == others.len()
                && items
                    .iter()
                    .zip(others.iter())
                    .all(|(left, right)| same_order(left, right))
        }
        _ => true,
    }
}
