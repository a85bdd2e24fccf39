//! Lists.

use std::borrow::Cow;

use bellwether_go::value::{List, Text, Type, Value};

use super::argument::{any, bytes, int, is_empty, text_of, texts_of, to_int};
use crate::builtin::metered;
use crate::call::{Call, Failure};
use crate::function::{Entry, function, variadic};

const ANY: Type = Type::Interface;
const INT: Type = Type::INT;

type Done = Result<Value, Failure>;

pub(super) const TABLE: &[Entry] = &[
    variadic("list", &[ANY], |call, a| call.list(a.to_vec())),
    variadic("tuple", &[ANY], |call, a| call.list(a.to_vec())),
    function("append", &[ANY, ANY], push),
    function("push", &[ANY, ANY], push),
    function("mustAppend", &[ANY, ANY], push),
    function("mustPush", &[ANY, ANY], push),
    function("prepend", &[ANY, ANY], prepend),
    function("mustPrepend", &[ANY, ANY], prepend),
    function("first", &[ANY], |call, a| {
        end(call, a, "first", <[Value]>::first)
    }),
    function("mustFirst", &[ANY], |call, a| {
        end(call, a, "first", <[Value]>::first)
    }),
    function("last", &[ANY], |call, a| {
        end(call, a, "last", <[Value]>::last)
    }),
    function("mustLast", &[ANY], |call, a| {
        end(call, a, "last", <[Value]>::last)
    }),
    function("rest", &[ANY], |call, a| {
        part(call, a, "rest", |items| &items[1..])
    }),
    function("mustRest", &[ANY], |call, a| {
        part(call, a, "rest", |items| &items[1..])
    }),
    function("initial", &[ANY], |call, a| {
        part(call, a, "initial", |items| &items[..items.len() - 1])
    }),
    function("mustInitial", &[ANY], |call, a| {
        part(call, a, "initial", |items| &items[..items.len() - 1])
    }),
    function("reverse", &[ANY], reverse),
    function("mustReverse", &[ANY], reverse),
    function("compact", &[ANY], compact),
    function("mustCompact", &[ANY], compact),
    function("uniq", &[ANY], uniq),
    function("mustUniq", &[ANY], uniq),
    variadic("without", &[ANY, ANY], without),
    variadic("mustWithout", &[ANY, ANY], without),
    function("has", &[ANY, ANY], has),
    function("mustHas", &[ANY, ANY], has),
    variadic("slice", &[ANY, ANY], slice),
    variadic("mustSlice", &[ANY, ANY], slice),
    variadic("concat", &[ANY], concat),
    function("chunk", &[INT, ANY], chunk),
    function("mustChunk", &[INT, ANY], chunk),
    function("join", &[Type::String, ANY], |call, a| {
        let texts = texts_of(call, any(a, 1))?;
        let separator = bytes(a, 0);
        let size = texts.iter().map(|text| text.len() + separator.len()).sum();
        call.bytes(size)?;
        let parts: Vec<&[u8]> = texts.iter().map(Text::as_bytes).collect();
        Ok(Value::string(parts.join(separator)))
    }),
    function("sortAlpha", &[ANY], |call, a| {
        let mut texts = match any(a, 0) {
            list @ Value::List(_) => texts_of(call, list)?,
            other => vec![text_of(call, other)?],
        };
        call.steps(texts.len() * 8)?;
        texts.sort();
        Ok(Value::strings(texts))
    }),
    function("toStrings", &[ANY], |call, a| {
        Ok(Value::strings(texts_of(call, any(a, 0))?))
    }),
    function("until", &[INT], |call, a| {
        let count = int(a, 0);
        until(call, 0, count, if count < 0 { -1 } else { 1 })
    }),
    function("untilStep", &[INT, INT, INT], |call, a| {
        until(call, int(a, 0), int(a, 1), int(a, 2))
    }),
    variadic("seq", &[INT], seq),
];

/// The items of a list; `what` is what cannot be done to anything else.
fn items<'a>(
    call: &mut Call<'_>,
    value: &'a Value,
    what: &str,
) -> Result<Cow<'a, [Value]>, Failure> {
    match value {
        Value::List(list) => {
            call.bytes(list.len().saturating_mul(size_of::<Value>()))?;
            Ok(list.items())
        }
        Value::Invalid | Value::Nil => Err(NIL_POINTER.into()),
        other => Err(format!("{what} type {}", other.kind()).into()),
    }
}

/// What Go's runtime says where sprig asks nil for its type.
const NIL_POINTER: &str = "runtime error: invalid memory address or nil pointer dereference";

fn nil_list() -> Value {
    Value::List(List::nil(&Type::Interface))
}

fn push(call: &mut Call<'_>, a: &[Value]) -> Done {
    let mut list = items(call, any(a, 0), "Cannot push on")?.to_vec();
    list.push(any(a, 1).clone());
    Ok(Value::list(list))
}

fn prepend(call: &mut Call<'_>, a: &[Value]) -> Done {
    let mut list = vec![any(a, 1).clone()];
    list.extend_from_slice(&items(call, any(a, 0), "Cannot prepend on")?);
    Ok(Value::list(list))
}

fn end(call: &mut Call<'_>, a: &[Value], name: &str, pick: fn(&[Value]) -> Option<&Value>) -> Done {
    let list = items(call, any(a, 0), &format!("Cannot find {name} on"))?;
    Ok(pick(&list).cloned().unwrap_or_default())
}

fn part(call: &mut Call<'_>, a: &[Value], name: &str, pick: fn(&[Value]) -> &[Value]) -> Done {
    let list = items(call, any(a, 0), &format!("Cannot find {name} on"))?;
    if list.is_empty() {
        return Ok(nil_list());
    }
    Ok(Value::list(pick(&list).to_vec()))
}

fn reverse(call: &mut Call<'_>, a: &[Value]) -> Done {
    let list = items(call, any(a, 0), "Cannot find reverse on")?;
    Ok(Value::list(list.iter().rev().cloned().collect()))
}

fn compact(call: &mut Call<'_>, a: &[Value]) -> Done {
    let list = items(call, any(a, 0), "Cannot compact on")?;
    let present = list.iter().filter(|item| !is_empty(item));
    Ok(Value::list(present.cloned().collect()))
}

/// Whether a list has an item; comparing costs as much as both are large.
fn contains(call: &mut Call<'_>, list: &[Value], item: &Value) -> Result<bool, Failure> {
    for known in list {
        call.steps(1)?;
        if metered(known.deep_equal(item, call))? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn uniq(call: &mut Call<'_>, a: &[Value]) -> Done {
    let list = items(call, any(a, 0), "Cannot find uniq on")?;
    let mut unique = Vec::new();
    for item in list.iter() {
        if !contains(call, &unique, item)? {
            unique.push(item.clone());
        }
    }
    Ok(Value::list(unique))
}

fn without(call: &mut Call<'_>, a: &[Value]) -> Done {
    let list = items(call, any(a, 0), "Cannot find without on")?;
    let mut kept = Vec::new();
    for item in list.iter() {
        if !contains(call, a.get(1..).unwrap_or_default(), item)? {
            kept.push(item.clone());
        }
    }
    Ok(Value::list(kept))
}

fn has(call: &mut Call<'_>, a: &[Value]) -> Done {
    if any(a, 1).is_nil() {
        return Ok(Value::Bool(false));
    }
    let list = items(call, any(a, 1), "Cannot find has on")?;
    Ok(Value::Bool(contains(call, &list, any(a, 0))?))
}

fn slice(call: &mut Call<'_>, a: &[Value]) -> Done {
    let value = any(a, 0);
    let Value::List(list) = value else {
        if value.is_nil() {
            return Err(NIL_POINTER.into());
        }
        return Err(format!("list should be type of slice or array but {}", value.kind()).into());
    };
    if list.is_empty() {
        return Ok(Value::Nil);
    }
    let length = i64::try_from(list.len()).unwrap_or(i64::MAX);
    let from = a.get(1).map_or(0, to_int);
    let to = a.get(2).map_or(length, to_int);
    if from < 0 || from > to || to > length {
        return Err("reflect.Value.Slice: slice index out of bounds".into());
    }
    let (from, to) = (usize::try_from(from), usize::try_from(to));
    let part = list.slice(from.unwrap_or(0), to.unwrap_or(0));
    call.bytes(part.len().saturating_mul(size_of::<Value>()))?;
    Ok(Value::List(part))
}

fn concat(call: &mut Call<'_>, a: &[Value]) -> Done {
    let mut all = Vec::new();
    for list in a {
        if let Value::List(_) | Value::Nil | Value::Invalid = list {
            all.extend_from_slice(&items(call, list, "")?);
        } else {
            return Err(format!("Cannot concat type {} as list", list.kind()).into());
        }
    }
    if all.is_empty() {
        return Ok(nil_list());
    }
    Ok(Value::list(all))
}

fn chunk(call: &mut Call<'_>, a: &[Value]) -> Done {
    let list = items(call, any(a, 1), "Cannot chunk")?;
    let size = int(a, 0);
    if list.is_empty() {
        return Ok(Value::List(List::new(&Type::LIST, Vec::new())));
    }
    let Ok(size) = usize::try_from(size) else {
        return Err("runtime error: makeslice: len out of range".into());
    };
    if size == 0 {
        return Err("runtime error: makeslice: len out of range".into());
    }
    let chunks = list.chunks(size).map(|chunk| Value::list(chunk.to_vec()));
    Ok(Value::List(List::new(&Type::LIST, chunks.collect())))
}

fn numbers(call: &mut Call<'_>, from: i64, to: i64, step: i64) -> Result<Vec<i64>, Failure> {
    let goes_down = to < from;
    if step == 0 || goes_down != (step < 0) {
        return Ok(Vec::new());
    }
    let distance = i128::from(to) - i128::from(from);
    let count = distance
        .unsigned_abs()
        .div_ceil(u128::from(step.unsigned_abs()));
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    call.bytes(count.saturating_mul(size_of::<Value>()))?;
    call.steps(count)?;
    let mut numbers = Vec::with_capacity(count);
    let mut number = from;
    for _ in 0..count {
        numbers.push(number);
        number = number.wrapping_add(step);
    }
    Ok(numbers)
}

fn until(call: &mut Call<'_>, from: i64, to: i64, step: i64) -> Done {
    let items = numbers(call, from, to, step)?;
    let items = items.into_iter().map(Value::int).collect();
    Ok(Value::List(List::new(&Type::INT, items)))
}

fn seq(call: &mut Call<'_>, a: &[Value]) -> Done {
    let (from, to, step) = match a.len() {
        1 => (1, int(a, 0), None),
        2 => (int(a, 0), int(a, 1), None),
        3 => (int(a, 0), int(a, 2), Some(int(a, 1))),
        _ => return Ok(Value::from("")),
    };
    let direction = if to < from { -1 } else { 1 };
    let step = step.unwrap_or(direction);
    if a.len() == 3 && to < from && step > 0 {
        return Ok(Value::from(""));
    }
    let numbers = numbers(call, from, to.wrapping_add(direction), step)?;
    let texts: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    call.text(texts.join(" "))
}
