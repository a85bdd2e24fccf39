//! Optional values, and the map insertion that two-variable macros expand to.

use crate::declaration::{Functions, Implementation, Outcome};
use crate::error::EvalError;
use crate::value::{Value, display};

pub(super) fn declare(functions: &mut Functions) {
    functions.add(
        "optional_of",
        "optional.of(V) -> optional(V)",
        |a| match a {
            [value] => Ok(Value::some(value.clone())),
            _ => Err(EvalError::no_such_overload()),
        },
    );
    functions.add(
        "optional_ofNonZeroValue",
        "optional.ofNonZeroValue(V) -> optional(V)",
        |a| match a {
            [value] if is_zero(value) => Ok(Value::none()),
            [value] => Ok(Value::some(value.clone())),
            _ => Err(EvalError::no_such_overload()),
        },
    );
    functions.add("optional_none", "optional.none() -> optional(V)", |_| {
        Ok(Value::none())
    });
    functions.add("optional_value", "optional(V)::value() -> V", |a| match a {
        [Value::Optional(Some(value))] => Ok((**value).clone()),
        [Value::Optional(None)] => Err(EvalError::failed("optional.none() dereference")),
        _ => Err(EvalError::no_such_overload()),
    });
    functions.add(
        "optional_hasValue",
        "optional(V)::hasValue() -> bool",
        |a| match a {
            [Value::Optional(value)] => Ok(Value::Bool(value.is_some())),
            _ => Err(EvalError::no_such_overload()),
        },
    );
    declare_selections(functions);
    declare_lists(functions);
}

/// What the evaluator knows itself: alternatives and selections.
fn declare_selections(functions: &mut Functions) {
    let builtin = || Implementation::Builtin;
    for (id, signature) in [
        (
            "optional_or_optional",
            "optional(V)::or(optional(V)) -> optional(V)",
        ),
        ("optional_orValue_value", "optional(V)::orValue(V) -> V"),
        ("select_optional_field", "_?._(dyn, string) -> optional(V)"),
        (
            "list_optindex_optional_int",
            "_[?_](list(V), int) -> optional(V)",
        ),
        (
            "optional_list_optindex_optional_int",
            "_[?_](optional(list(V)), int) -> optional(V)",
        ),
        (
            "map_optindex_optional_value",
            "_[?_](map(K, V), K) -> optional(V)",
        ),
        (
            "optional_map_optindex_optional_value",
            "_[?_](optional(map(K, V)), K) -> optional(V)",
        ),
        (
            "optional_list_index_int",
            "_[_](optional(list(V)), int) -> optional(V)",
        ),
        (
            "optional_map_index_value",
            "_[_](optional(map(K, V)), K) -> optional(V)",
        ),
    ] {
        functions.declare(id, signature, builtin());
    }
}

fn declare_lists(functions: &mut Functions) {
    functions.add("list_last", "list(V)::last() -> optional(V)", |a| {
        let list = super::list(a, 0)?;
        at_end(list.len().checked_sub(1).and_then(|last| list.get(last)))
    });
    functions.add("list_first", "list(V)::first() -> optional(V)", |a| {
        at_end(super::list(a, 0)?.get(0))
    });
    functions.add(
        "optional_unwrap",
        "optional.unwrap(list(optional(V))) -> list(V)",
        unwrap,
    );
    functions.add(
        "optional_unwrapOpt",
        "list(optional(V))::unwrapOpt() -> list(V)",
        unwrap,
    );
}

pub(super) fn declare_map_insert(functions: &mut Functions) {
    functions.add(
        "@mapInsert_map_key_value",
        "cel.@mapInsert(map(K, V), K, V) -> map(K, V)",
        |a| match a {
            [Value::Map(map), key, value] => map.clone().insert(key, value.clone()).map(Value::Map),
            _ => Err(EvalError::no_such_overload()),
        },
    );
    functions.add(
        "@mapInsert_map_map",
        "cel.@mapInsert(map(K, V), map(K, V)) -> map(K, V)",
        |a| match a {
            [Value::Map(into), Value::Map(from)] => {
                let mut merged = into.clone();
                for key in from.keys() {
                    if let Some(value) = from.find(&key)? {
                        merged = merged.insert(&key, value?)?;
                    }
                }
                Ok(Value::Map(merged))
            }
            _ => Err(EvalError::no_such_overload()),
        },
    );
}

fn at_end(element: Option<Outcome<'_>>) -> Outcome<'_> {
    match element {
        None => Ok(Value::none()),
        Some(element) => element.map(Value::some),
    }
}

fn unwrap<'a>(arguments: &[Value<'a>]) -> Outcome<'a> {
    let mut present = Vec::new();
    for value in super::list(arguments, 0)?.iter() {
        match value? {
            Value::Optional(None) => {}
            Value::Optional(Some(value)) => present.push((*value).clone()),
            other => {
                return Err(EvalError::failed(format!(
                    "value {} is not optional",
                    display(&other)
                )));
            }
        }
    }
    Ok(Value::list(present))
}

/// Whether a value is what its type starts with: 0, empty, null, false.
fn is_zero(value: &Value<'_>) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::Int(value) => *value == 0,
        Value::Uint(value) => *value == 0,
        Value::Double(value) => *value == 0.0,
        Value::String(text) => text.is_empty(),
        Value::Bytes(bytes) => bytes.is_empty(),
        Value::List(list) => list.is_empty(),
        Value::Map(map) => map.is_empty(),
        Value::Duration(duration) => duration.nanoseconds() == 0,
        // The zero time of Go is the first instant of year 1.
        Value::Timestamp(timestamp) => {
            timestamp.seconds() == -62_135_596_800 && timestamp.nanos() == 0
        }
        _ => false,
    }
}
