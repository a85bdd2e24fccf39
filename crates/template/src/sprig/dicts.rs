//! Maps.

use std::collections::BTreeMap;

use bellwether_go::value::{List, Map, Text, Type, Value};

use super::argument::{any, bytes, is_empty, map, text_of};
use crate::call::{Call, Failure};
use crate::function::{Entry, function, variadic};

const ANY: Type = Type::Interface;
const MAP: Type = Type::MAP;
const STRING: Type = Type::String;

type Done = Result<Value, Failure>;

pub(super) const TABLE: &[Entry] = &[
    variadic("dict", &[ANY], dict),
    function("get", &[MAP, STRING], |_, a| {
        let found = map(a, 0).get(bytes(a, 1));
        Ok(found.unwrap_or_else(|| Value::from("")))
    }),
    function("set", &[MAP, STRING, ANY], |call, a| {
        let target = map(a, 0);
        if target.is_nil() {
            return Err("assignment to entry in nil map".into());
        }
        call.set(&target, Text::from(bytes(a, 1)), any(a, 2).clone())?;
        Ok(Value::Map(target))
    }),
    function("unset", &[MAP, STRING], |_, a| {
        let target = map(a, 0);
        target.remove(bytes(a, 1));
        Ok(Value::Map(target))
    }),
    function("hasKey", &[MAP, STRING], |_, a| {
        Ok(Value::Bool(map(a, 0).contains(bytes(a, 1))))
    }),
    variadic("pluck", &[STRING, MAP], |call, a| {
        let maps = a.iter().skip(1).filter_map(Value::as_map);
        let values = maps.filter_map(|map| map.get(bytes(a, 0))).collect();
        call.list(values)
    }),
    variadic("keys", &[MAP], |call, a| {
        let mut keys = Vec::new();
        for map in a.iter().filter_map(Value::as_map) {
            call.bytes(map.len().saturating_mul(size_of::<Value>()))?;
            keys.extend(map.entries().keys().cloned());
        }
        Ok(Value::strings(keys))
    }),
    function("values", &[MAP], |call, a| {
        let values = map(a, 0).entries().values().cloned().collect();
        call.list(values)
    }),
    variadic("pick", &[MAP, STRING], |call, a| {
        let entries = map(a, 0).entries();
        let chosen = a.iter().skip(1).filter_map(Value::as_text);
        let found = chosen.filter_map(|key| Some((key.clone(), entries.get(key)?.clone())));
        new_map(call, found.collect())
    }),
    variadic("omit", &[MAP, STRING], |call, a| {
        let mut entries = BTreeMap::clone(&map(a, 0).entries());
        for key in a.iter().skip(1).filter_map(Value::as_text) {
            entries.remove(key);
        }
        new_map(call, entries)
    }),
    variadic("merge", &[MAP, MAP], |call, a| merge(call, a, false)),
    variadic("mustMerge", &[MAP, MAP], |call, a| merge(call, a, false)),
    variadic("mergeOverwrite", &[MAP, MAP], |call, a| {
        merge(call, a, true)
    }),
    variadic("mustMergeOverwrite", &[MAP, MAP], |call, a| {
        merge(call, a, true)
    }),
    function("deepCopy", &[ANY], |call, a| copied(call, any(a, 0), 0)),
    function("mustDeepCopy", &[ANY], |call, a| copied(call, any(a, 0), 0)),
    variadic("dig", &[ANY], dig),
];

fn new_map(call: &mut Call<'_>, entries: BTreeMap<Text, Value>) -> Done {
    call.bytes(entries.len().saturating_mul(2 * size_of::<Value>()))?;
    Ok(Value::Map(Map::new(&Type::Interface, entries)))
}

fn dict(call: &mut Call<'_>, a: &[Value]) -> Done {
    let mut entries = BTreeMap::new();
    for pair in a.chunks(2) {
        let key = text_of(call, any(pair, 0))?;
        let value = pair.get(1).cloned().unwrap_or_else(|| Value::from(""));
        entries.insert(key, value);
    }
    new_map(call, entries)
}

fn merge(call: &mut Call<'_>, a: &[Value], overwrites: bool) -> Done {
    let mut target = map(a, 0);
    if target.is_nil() {
        target = Map::new(&Type::Interface, BTreeMap::new());
    }
    for source in a.iter().skip(1).filter_map(Value::as_map) {
        merge_into(call, &target, source, overwrites, 0)?;
    }
    Ok(Value::Map(target))
}

/// Maps nested deeper than this are not merged: one holds itself.
const DEPTH_LIMIT: usize = 1000;

/// Fills what is missing or empty from a source; or overwrites everything that it has.
fn merge_into(
    call: &mut Call<'_>,
    target: &Map,
    source: &Map,
    overwrites: bool,
    depth: usize,
) -> Result<(), Failure> {
    if depth > DEPTH_LIMIT {
        return Err("maps are nested too deeply".into());
    }
    if target.is_same(source) {
        return Ok(());
    }
    for (key, value) in source.entries().iter() {
        call.steps(1)?;
        let known = target.get(key.as_bytes());
        if value.is_nil() {
            if overwrites {
                call.set(target, key.clone(), Value::Nil)?;
            }
            continue;
        }
        if let (Value::Map(inner), Some(Value::Map(known))) = (value, &known) {
            crate::stack::deeper(|| merge_into(call, known, inner, overwrites, depth + 1))?;
        }
        if let Value::List(_) = value {
            match &known {
                None | Some(Value::Nil | Value::List(_) | Value::Map(_)) => {}
                Some(other) => {
                    let kind = other.kind();
                    return Err(
                        format!("reflect: call of reflect.Value.IsNil on {kind} Value").into(),
                    );
                }
            }
            if overwrites {
                call.set(target, key.clone(), value.clone())?;
            }
        }
        let is_known = known.as_ref().is_some_and(|known| !is_empty(known));
        if is_known {
            let both_maps = matches!((value, &known), (Value::Map(_), Some(Value::Map(_))));
            if matches!(value, Value::List(_)) || both_maps {
                continue;
            }
        }
        if overwrites || !is_known {
            call.set(target, key.clone(), value.clone())?;
        }
    }
    Ok(())
}

/// Copies lists and maps all the way down.
fn copied(call: &mut Call<'_>, value: &Value, depth: usize) -> Done {
    if depth > DEPTH_LIMIT {
        return Err("values are nested too deeply".into());
    }
    call.bytes(size_of::<Value>())?;
    match value {
        Value::List(list) => {
            let items = list.iter().map(|item| copied(call, item, depth + 1));
            let items = items.collect::<Result<_, _>>()?;
            Ok(Value::List(List::new(list.element(), items)))
        }
        Value::Map(map) => {
            let mut entries = BTreeMap::new();
            for (key, item) in map.entries().iter() {
                entries.insert(key.clone(), copied(call, item, depth + 1)?);
            }
            let copy = Map::new(map.element(), entries);
            Ok(Value::Map(match map.named() {
                Some(named) => copy.with_name(named),
                None => copy,
            }))
        }
        other => Ok(other.clone()),
    }
}

fn dig(call: &mut Call<'_>, a: &[Value]) -> Done {
    let [keys @ .., default, first] = a else {
        return Err("dig needs at least three arguments".into());
    };
    if keys.is_empty() {
        return Err("dig needs at least three arguments".into());
    }
    let mut current = first.clone();
    let mut names = Vec::new();
    as_plain_map(&current)?;
    for key in keys {
        match key {
            Value::String(name) => names.push(name),
            other => {
                return Err(format!(
                    "interface conversion: interface {{}} is {}, not string",
                    interface_type(other)
                )
                .into());
            }
        }
    }
    for name in names {
        call.steps(1)?;
        match as_plain_map(&current)?.get(name.as_bytes()) {
            Some(next) => current = next,
            None => return Ok(default.clone()),
        }
    }
    Ok(current)
}

/// A map that is exactly `map[string]interface {}`.
fn as_plain_map(value: &Value) -> Result<&Map, Failure> {
    match value {
        Value::Map(map) if map.type_of() == Type::MAP => Ok(map),
        other => Err(format!(
            "interface conversion: interface {{}} is {}, not map[string]interface {{}}",
            interface_type(other)
        )
        .into()),
    }
}

fn interface_type(value: &Value) -> String {
    match value {
        Value::Invalid | Value::Nil => "nil".to_owned(),
        other => other.type_of().to_string(),
    }
}
