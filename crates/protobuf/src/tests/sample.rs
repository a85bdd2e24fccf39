//! Random objects of the kinds in the table, in the JSON that Go would print.

use proptest::prelude::Rng;
use serde_json::{Map, Value, json};

use crate::table::{Field, Kind, Message, Presence, Shape, Table};

/// Below this depth, only what must be there is there.
const DEPTH: usize = 8;

/// A random object of a kind.
pub(super) fn object(
    table: &Table,
    index: usize,
    api_version: &str,
    kind: &str,
    random: &mut impl Rng,
) -> Value {
    let mut object = Map::new();
    object.insert("apiVersion".to_owned(), api_version.into());
    object.insert("kind".to_owned(), kind.into());
    fields(table, table.message(index), 0, &mut object, random);
    Value::Object(object)
}

fn fields(
    table: &Table,
    message: &Message,
    depth: usize,
    object: &mut Map<String, Value>,
    random: &mut impl Rng,
) {
    for field in &message.fields {
        if let (Presence::Inline, Kind::Message(index)) = (field.presence, field.kind) {
            fields(table, table.message(index), depth, object, random);
        } else if let Some(value) = field_value(table, field, depth, random) {
            object.insert(field.name.to_owned(), value);
        }
    }
}

fn field_value(table: &Table, field: &Field, depth: usize, random: &mut impl Rng) -> Option<Value> {
    let is_given = depth < DEPTH && below(random, 3) == 0;
    let many = 1 + below(random, 2);
    let value = match field.shape {
        Shape::One if is_given || field.presence == Presence::Always => {
            Some(value(table, field.kind, depth, random))
        }
        Shape::List if is_given => Some(
            (0..many)
                .map(|_| value(table, field.kind, depth, random))
                .collect(),
        ),
        Shape::Map if is_given => Some(Value::Object(
            (0..many)
                .map(|key| {
                    (
                        format!("key-{key}"),
                        value(table, field.kind, depth, random),
                    )
                })
                .collect(),
        )),
        _ => None,
    };
    let is_zero = value
        .as_ref()
        .is_some_and(|value| ["0", "null", "false", "\"\""].contains(&value.to_string().as_str()));
    match (value, field.presence) {
        (Some(_), Presence::NotZero) if is_zero => None,
        (None, Presence::GivenOrNull | Presence::Always) => Some(Value::Null),
        (value, _) => value,
    }
}

fn value(table: &Table, kind: Kind, depth: usize, random: &mut impl Rng) -> Value {
    let mut pick = |values: &[Value]| values[below(random, values.len())].clone();
    match kind {
        Kind::String => pick(&[
            json!(""),
            json!("a"),
            json!("größer\n\"x\""),
            json!("z".repeat(300)),
        ]),
        Kind::Bool => pick(&[json!(false), json!(true)]),
        Kind::Int32 => pick(&[
            json!(0),
            json!(8080),
            json!(-1),
            json!(i32::MIN),
            json!(i32::MAX),
        ]),
        Kind::Int64 => pick(&[
            json!(0),
            json!(1),
            json!(-1),
            json!(i64::MIN),
            json!(i64::MAX),
        ]),
        Kind::Double => pick(&[json!(0), json!(-3), json!(0.5), json!(1e-9), json!(1e40)]),
        Kind::Bytes => pick(&[json!("AA=="), json!("aGVsbG8=")]),
        Kind::Json => pick(&[
            json!(null),
            json!({"a": [1, {"b": false}]}),
            json!("x"),
            json!(2),
        ]),
        Kind::Time => pick(&[
            json!("1970-01-01T00:00:00Z"),
            json!("2024-02-29T23:59:59Z"),
            json!("0001-01-01T00:00:01Z"),
            json!("1900-03-01T12:30:00Z"),
            json!("9999-12-31T23:59:59Z"),
        ]),
        Kind::MicroTime => pick(&[
            json!("2026-12-31T23:59:59.999999Z"),
            json!("1969-12-31T23:59:59.000001Z"),
            json!("0001-01-01T00:00:00.500000Z"),
        ]),
        Kind::Quantity => pick(&[json!("0"), json!("100m"), json!("1Gi")]),
        Kind::IntOrString => pick(&[json!(0), json!(-5), json!("25%"), json!("http")]),
        Kind::Strings => pick(&[json!([]), json!(["a", ""])]),
        Kind::Message(index) => {
            let message = table.message(index);
            if message.is_choice {
                return choice(table, message, depth, random);
            }
            let mut object = Map::new();
            fields(table, message, depth + 1, &mut object, random);
            Value::Object(object)
        }
    }
}

/// One alternative, of which the last shows even if there is none.
fn choice(table: &Table, message: &Message, depth: usize, random: &mut impl Rng) -> Value {
    let field = &message.fields[below(random, message.fields.len())];
    match field.shape {
        Shape::One if depth < DEPTH || field.presence == Presence::Always => {
            value(table, field.kind, depth, random)
        }
        Shape::List if depth < DEPTH => json!([value(table, field.kind, depth, random)]),
        _ => match message.fields.last().map(|last| last.kind) {
            Some(Kind::Bool) => json!(false),
            _ => Value::Null,
        },
    }
}

fn below(random: &mut impl Rng, bound: usize) -> usize {
    random.next_u32() as usize % bound
}
