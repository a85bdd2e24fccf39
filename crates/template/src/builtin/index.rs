//! `index`, `slice` and `len`.

use bellwether_go::value::{Type, UintKind, Value};

use crate::call::{Call, Failure};
use crate::execute::zero;

pub(super) fn index(call: &mut Call<'_>, arguments: &[Value]) -> Result<Value, Failure> {
    let mut item = arguments[0].clone();
    if item.is_nil() {
        return Err("index of untyped nil".into());
    }
    for index in &arguments[1..] {
        call.steps(1)?;
        item = match &item {
            Value::Invalid | Value::Nil => return Err("index of nil pointer".into()),
            Value::String(text) => {
                let position = position(index, text.len())?;
                match text.as_bytes().get(position) {
                    Some(byte) => Value::Uint(UintKind::Uint8, u64::from(*byte)),
                    None => return Err("reflect: string index out of range".into()),
                }
            }
            Value::List(list) => {
                let position = position(index, list.len())?;
                match list.get(position) {
                    Some(item) => item.clone(),
                    None => return Err("reflect: slice index out of range".into()),
                }
            }
            Value::Map(map) => match index {
                Value::String(key) => match map.get(key.as_bytes()) {
                    Some(value) => value,
                    None => zero(*map.element()),
                },
                Value::Invalid | Value::Nil => {
                    return Err("value is nil; should be of type string".into());
                }
                other => {
                    let found = other.type_of();
                    return Err(format!("value has type {found}; should be string").into());
                }
            },
            other => return Err(format!("can't index item of type {}", other.type_of()).into()),
        };
    }
    Ok(item)
}

/// A position in something of that length; the length itself is in range.
fn position(index: &Value, length: usize) -> Result<usize, Failure> {
    let position = match index {
        Value::Int(_, number) => i128::from(*number),
        Value::Uint(_, number) => i128::from(*number),
        Value::Invalid | Value::Nil => return Err("cannot index slice/array with nil".into()),
        other => {
            let found = other.type_of();
            return Err(format!("cannot index slice/array with type {found}").into());
        }
    };
    match usize::try_from(position) {
        Ok(position) if position <= length => Ok(position),
        _ => Err(format!("index out of range: {position}").into()),
    }
}

pub(super) fn slice(call: &mut Call<'_>, arguments: &[Value]) -> Result<Value, Failure> {
    let (item, indexes) = (&arguments[0], &arguments[1..]);
    if item.is_nil() {
        return Err("slice of untyped nil".into());
    }
    if indexes.len() > 3 {
        return Err(format!("too many slice indexes: {}", indexes.len()).into());
    }
    let length = match item {
        Value::String(_) if indexes.len() == 3 => {
            return Err("cannot 3-index slice a string".into());
        }
        Value::String(text) => text.len(),
        Value::List(list) => list.len(),
        other => return Err(format!("can't slice item of type {}", other.type_of()).into()),
    };
    let mut bounds = [0, length, length];
    for (bound, index) in bounds.iter_mut().zip(indexes) {
        *bound = position(index, length)?;
    }
    let [from, to, capacity] = bounds;
    if from > to {
        return Err(format!("invalid slice index: {from} > {to}").into());
    }
    if to > capacity {
        return Err(format!("invalid slice index: {to} > {capacity}").into());
    }
    match item {
        Value::String(text) => call.text(&text.as_bytes()[from..to]),
        Value::List(list) => {
            call.bytes((to - from).saturating_mul(size_of::<Value>()))?;
            Ok(Value::List(list.slice(from, to)))
        }
        _ => Ok(Value::Nil),
    }
}

pub(super) fn length(_call: &mut Call<'_>, arguments: &[Value]) -> Result<Value, Failure> {
    let length = match &arguments[0] {
        Value::Nil => return Err("len of nil pointer".into()),
        Value::Invalid => return Err("reflect: call of reflect.Value.Type on zero Value".into()),
        Value::String(text) => text.len(),
        Value::List(list) => list.len(),
        Value::Map(map) => map.len(),
        other => return Err(format!("len of type {}", Type::to_string(&other.type_of())).into()),
    };
    Ok(Value::int(i64::try_from(length).unwrap_or(i64::MAX)))
}
