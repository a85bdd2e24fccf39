//! The standard library: operators, sizes, conversions, text.

use std::cmp::Ordering;
use std::sync::Arc;

use super::{check_text_size, identity, regex};
use crate::ast::operator;
use crate::declaration::{Functions, Implementation, Outcome};
use crate::error::EvalError;
use crate::time::{Duration, Timestamp, parse_go_duration, parse_rfc3339};
use crate::value::{Text, Value, compare, to_bool, to_double, to_int, to_string, to_uint};

pub(super) fn declare(functions: &mut Functions) {
    declare_logic(functions);
    declare_arithmetic(functions);
    declare_comparison(functions);
    declare_containers(functions);
    declare_conversions(functions);
    declare_text(functions);
}

/// Declares overloads that share an implementation.
fn singleton(
    functions: &mut Functions,
    name: &str,
    run: crate::declaration::Plain,
    overloads: &[(&str, &str)],
) {
    for (id, signature) in overloads {
        functions.declare(id, &format!("{name}{signature}"), Implementation::Builtin);
    }
    functions.singleton(name, run);
}

fn declare_logic(functions: &mut Functions) {
    let builtin = || Implementation::Builtin;
    functions.declare("conditional", "_?_:_(bool, A, A) -> A", builtin());
    functions.declare("logical_and", "_&&_(bool, bool) -> bool", builtin());
    functions.declare("logical_or", "_||_(bool, bool) -> bool", builtin());
    functions.declare("equals", "_==_(A, A) -> bool", builtin());
    functions.declare("not_equals", "_!=_(A, A) -> bool", builtin());
    functions.declare(
        "not_strictly_false",
        "@not_strictly_false(bool) -> bool",
        builtin(),
    );
    singleton(
        functions,
        operator::LOGICAL_NOT,
        not,
        &[("logical_not", "(bool) -> bool")],
    );
}

/// An operator, what it does, and its overloads.
type Operator = (
    &'static str,
    crate::declaration::Plain,
    &'static [(&'static str, &'static str)],
);

const ARITHMETIC: &[Operator] = &[
    (
        operator::ADD,
        add,
        &[
            ("add_bytes", "(bytes, bytes) -> bytes"),
            ("add_double", "(double, double) -> double"),
            ("add_duration_duration", "(duration, duration) -> duration"),
            (
                "add_duration_timestamp",
                "(duration, timestamp) -> timestamp",
            ),
            (
                "add_timestamp_duration",
                "(timestamp, duration) -> timestamp",
            ),
            ("add_int64", "(int, int) -> int"),
            ("add_list", "(list(A), list(A)) -> list(A)"),
            ("add_string", "(string, string) -> string"),
            ("add_uint64", "(uint, uint) -> uint"),
        ],
    ),
    (
        operator::DIVIDE,
        divide,
        &[
            ("divide_double", "(double, double) -> double"),
            ("divide_int64", "(int, int) -> int"),
            ("divide_uint64", "(uint, uint) -> uint"),
        ],
    ),
    (
        operator::MODULO,
        modulo,
        &[
            ("modulo_int64", "(int, int) -> int"),
            ("modulo_uint64", "(uint, uint) -> uint"),
        ],
    ),
    (
        operator::MULTIPLY,
        multiply,
        &[
            ("multiply_double", "(double, double) -> double"),
            ("multiply_int64", "(int, int) -> int"),
            ("multiply_uint64", "(uint, uint) -> uint"),
        ],
    ),
    (
        operator::NEGATE,
        negate,
        &[
            ("negate_double", "(double) -> double"),
            ("negate_int64", "(int) -> int"),
        ],
    ),
    (
        operator::SUBTRACT,
        subtract,
        &[
            ("subtract_double", "(double, double) -> double"),
            (
                "subtract_duration_duration",
                "(duration, duration) -> duration",
            ),
            ("subtract_int64", "(int, int) -> int"),
            (
                "subtract_timestamp_duration",
                "(timestamp, duration) -> timestamp",
            ),
            (
                "subtract_timestamp_timestamp",
                "(timestamp, timestamp) -> duration",
            ),
            ("subtract_uint64", "(uint, uint) -> uint"),
        ],
    ),
];

fn declare_arithmetic(functions: &mut Functions) {
    for (name, run, overloads) in ARITHMETIC {
        singleton(functions, name, *run, overloads);
    }
}

/// Types with an order, and their names in overloads.
const ORDERED: &[(&str, &str, &str)] = &[
    ("bool", "bool", "bool"),
    ("int64", "int", "int"),
    ("int64_double", "int", "double"),
    ("int64_uint64", "int", "uint"),
    ("uint64", "uint", "uint"),
    ("uint64_double", "uint", "double"),
    ("uint64_int64", "uint", "int"),
    ("double", "double", "double"),
    ("double_int64", "double", "int"),
    ("double_uint64", "double", "uint"),
    ("string", "string", "string"),
    ("bytes", "bytes", "bytes"),
    ("timestamp", "timestamp", "timestamp"),
    ("duration", "duration", "duration"),
];

fn declare_comparison(functions: &mut Functions) {
    let operators: [(&str, &str, crate::declaration::Plain); 4] = [
        (operator::LESS, "less", |a| {
            ordered(operator::LESS, a, Ordering::is_lt)
        }),
        (operator::LESS_EQUALS, "less_equals", |a| {
            ordered(operator::LESS_EQUALS, a, Ordering::is_le)
        }),
        (operator::GREATER, "greater", |a| {
            ordered(operator::GREATER, a, Ordering::is_gt)
        }),
        (operator::GREATER_EQUALS, "greater_equals", |a| {
            ordered(operator::GREATER_EQUALS, a, Ordering::is_ge)
        }),
    ];
    for (name, prefix, run) in operators {
        for (suffix, left, right) in ORDERED {
            let id = format!("{prefix}_{suffix}");
            let signature = format!("{name}({left}, {right}) -> bool");
            functions.declare(&id, &signature, Implementation::Builtin);
        }
        functions.singleton(name, run);
    }
}

fn declare_containers(functions: &mut Functions) {
    let builtin = || Implementation::Builtin;
    functions.declare("index_list", "_[_](list(A), int) -> A", builtin());
    functions.declare("index_map", "_[_](map(A, B), A) -> B", builtin());
    singleton(
        functions,
        operator::IN,
        contains_element,
        &[
            ("in_list", "(A, list(A)) -> bool"),
            ("in_map", "(A, map(A, B)) -> bool"),
        ],
    );
    for (id, of) in [
        ("bytes", "bytes"),
        ("list", "list(A)"),
        ("map", "map(A, B)"),
        ("string", "string"),
    ] {
        functions.declare(
            &format!("size_{id}"),
            &format!("size({of}) -> int"),
            builtin(),
        );
        functions.declare(
            &format!("{id}_size"),
            &format!("{of}::size() -> int"),
            builtin(),
        );
    }
    functions.singleton("size", size);
}

fn declare_conversions(functions: &mut Functions) {
    functions.add("type", "type(A) -> type(A)", |a| {
        let first = a.first().ok_or_else(EvalError::no_such_overload)?;
        Ok(Value::Type(Arc::new(first.runtime_type())))
    });
    functions.add("to_dyn", "dyn(A) -> dyn", identity);
    functions.add("bool_to_bool", "bool(bool) -> bool", identity);
    functions.add("string_to_bool", "bool(string) -> bool", |a| {
        first(a, to_bool)
    });
    functions.add("bytes_to_bytes", "bytes(bytes) -> bytes", identity);
    functions.add("string_to_bytes", "bytes(string) -> bytes", |a| match a {
        [Value::String(text)] => Ok(Value::Bytes(text.as_bytes().into())),
        _ => Err(EvalError::no_such_overload()),
    });
    declare_numbers(functions);
    declare_times(functions);
    functions.add("string_to_string", "string(string) -> string", identity);
    for (id, of) in [
        ("bool", "bool"),
        ("bytes", "bytes"),
        ("double", "double"),
        ("duration", "duration"),
        ("int64", "int"),
        ("timestamp", "timestamp"),
        ("uint64", "uint"),
    ] {
        let (id, signature) = (format!("{id}_to_string"), format!("string({of}) -> string"));
        functions.add(&id, &signature, |a| first(a, to_string));
    }
}

fn declare_numbers(functions: &mut Functions) {
    functions.add("double_to_double", "double(double) -> double", identity);
    for (id, of) in [("int64", "int"), ("string", "string"), ("uint64", "uint")] {
        let (id, signature) = (format!("{id}_to_double"), format!("double({of}) -> double"));
        functions.add(&id, &signature, |a| first(a, to_double));
    }
    functions.add("int64_to_int64", "int(int) -> int", identity);
    for (id, of) in [
        ("double", "double"),
        ("duration", "duration"),
        ("string", "string"),
        ("timestamp", "timestamp"),
        ("uint64", "uint"),
    ] {
        let (id, signature) = (format!("{id}_to_int64"), format!("int({of}) -> int"));
        functions.add(&id, &signature, |a| first(a, to_int));
    }
    functions.add("uint64_to_uint64", "uint(uint) -> uint", identity);
    for (id, of) in [("double", "double"), ("int64", "int"), ("string", "string")] {
        let (id, signature) = (format!("{id}_to_uint64"), format!("uint({of}) -> uint"));
        functions.add(&id, &signature, |a| first(a, to_uint));
    }
}

fn declare_times(functions: &mut Functions) {
    functions.add(
        "duration_to_duration",
        "duration(duration) -> duration",
        identity,
    );
    functions.add(
        "int64_to_duration",
        "duration(int) -> duration",
        to_duration,
    );
    functions.add(
        "string_to_duration",
        "duration(string) -> duration",
        to_duration,
    );
    functions.add(
        "timestamp_to_timestamp",
        "timestamp(timestamp) -> timestamp",
        identity,
    );
    functions.add(
        "int64_to_timestamp",
        "timestamp(int) -> timestamp",
        to_timestamp,
    );
    functions.add(
        "string_to_timestamp",
        "timestamp(string) -> timestamp",
        to_timestamp,
    );
}

fn declare_text(functions: &mut Functions) {
    let member = "string::";
    for (name, id, run) in [
        (
            "contains",
            "contains_string",
            (|a| on_texts(a, |text, part| text.contains(part))) as crate::declaration::Plain,
        ),
        ("startsWith", "starts_with_string", |a| {
            on_texts(a, |text, part| text.starts_with(part))
        }),
        ("endsWith", "ends_with_string", |a| {
            on_texts(a, |text, part| text.ends_with(part))
        }),
    ] {
        functions.add(id, &format!("{member}{name}(string) -> bool"), run);
        functions.unguarded(name);
    }
    let builtin = || Implementation::Builtin;
    functions.declare("matches", "matches(string, string) -> bool", builtin());
    functions.declare(
        "matches_string",
        "string::matches(string) -> bool",
        builtin(),
    );
    functions.singleton("matches", |a| match a {
        [Value::String(text), Value::String(pattern)] => {
            Ok(Value::Bool(regex::compile(pattern)?.is_match(text)))
        }
        [Value::String(_), _] => Err(EvalError::no_such_overload()),
        _ => Err(EvalError::failed("no such overload: matches")),
    });
}

fn first<'a>(arguments: &[Value<'a>], convert: fn(&Value<'a>) -> Outcome<'a>) -> Outcome<'a> {
    convert(arguments.first().ok_or_else(EvalError::no_such_overload)?)
}

fn on_texts<'a>(arguments: &[Value<'a>], holds: fn(&str, &str) -> bool) -> Outcome<'a> {
    match arguments {
        [Value::String(text), Value::String(part)] => Ok(Value::Bool(holds(text, part))),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn not<'a>(arguments: &[Value<'a>]) -> Outcome<'a> {
    match arguments {
        [Value::Bool(value)] => Ok(Value::Bool(!value)),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn ordered<'a>(
    function: &'static str,
    arguments: &[Value<'a>],
    test: fn(Ordering) -> bool,
) -> Outcome<'a> {
    match arguments {
        [left, right] => compare(function, left, right).map(|order| Value::Bool(test(order))),
        _ => Err(EvalError::no_such_overload()),
    }
}

/// The error of an operator whose left operand does not know it at all. Types that look up
/// members by name answer without naming the function.
fn not_applicable<'a>(function: &str, left: &Value<'_>) -> Outcome<'a> {
    match left {
        Value::String(_) | Value::Timestamp(_) | Value::Duration(_) => {
            Err(EvalError::no_such_overload())
        }
        _ => Err(EvalError::failed(format!("no such overload: {function}"))),
    }
}

fn int_overflow() -> EvalError {
    EvalError::failed("integer overflow")
}

fn uint_overflow() -> EvalError {
    EvalError::failed("unsigned integer overflow")
}

fn timestamp_overflow() -> EvalError {
    EvalError::failed("timestamp overflow")
}

pub(super) fn add<'a>(arguments: &[Value<'a>]) -> Outcome<'a> {
    let [left, right] = arguments else {
        return Err(EvalError::no_such_overload());
    };
    Ok(match (left, right) {
        (Value::Int(a), Value::Int(b)) => Value::Int(a.checked_add(*b).ok_or_else(int_overflow)?),
        (Value::Uint(a), Value::Uint(b)) => {
            Value::Uint(a.checked_add(*b).ok_or_else(uint_overflow)?)
        }
        (Value::Double(a), Value::Double(b)) => Value::Double(a + b),
        (Value::String(a), Value::String(b)) => {
            check_text_size(a.len() + b.len())?;
            Value::String(Text::Shared(format!("{}{}", &**a, &**b).into()))
        }
        (Value::Bytes(a), Value::Bytes(b)) => {
            check_text_size(a.len() + b.len())?;
            Value::Bytes([&**a, &**b].concat().into())
        }
        (Value::List(a), Value::List(b)) => Value::List(a.concat(b)?),
        (Value::Duration(a), Value::Duration(b)) => {
            Value::Duration(a.plus(*b).ok_or_else(int_overflow)?)
        }
        (Value::Duration(duration), Value::Timestamp(timestamp))
        | (Value::Timestamp(timestamp), Value::Duration(duration)) => {
            Value::Timestamp(timestamp.plus(*duration).ok_or_else(timestamp_overflow)?)
        }
        (
            Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::Bytes(_) | Value::List(_),
            _,
        ) => return Err(EvalError::no_such_overload()),
        (left, _) => return not_applicable(operator::ADD, left),
    })
}

fn subtract<'a>(arguments: &[Value<'a>]) -> Outcome<'a> {
    let [left, right] = arguments else {
        return Err(EvalError::no_such_overload());
    };
    Ok(match (left, right) {
        (Value::Int(a), Value::Int(b)) => Value::Int(a.checked_sub(*b).ok_or_else(int_overflow)?),
        (Value::Uint(a), Value::Uint(b)) => {
            Value::Uint(a.checked_sub(*b).ok_or_else(uint_overflow)?)
        }
        (Value::Double(a), Value::Double(b)) => Value::Double(a - b),
        (Value::Duration(a), Value::Duration(b)) => {
            Value::Duration(a.minus(*b).ok_or_else(int_overflow)?)
        }
        (Value::Timestamp(a), Value::Timestamp(b)) => {
            Value::Duration(a.since(*b).ok_or_else(int_overflow)?)
        }
        (Value::Timestamp(timestamp), Value::Duration(duration)) => {
            let back = duration.negated().ok_or_else(int_overflow)?;
            Value::Timestamp(timestamp.plus(back).ok_or_else(timestamp_overflow)?)
        }
        (Value::Int(_) | Value::Uint(_) | Value::Double(_), _) => {
            return Err(EvalError::no_such_overload());
        }
        (left, _) => return not_applicable(operator::SUBTRACT, left),
    })
}

fn multiply<'a>(arguments: &[Value<'a>]) -> Outcome<'a> {
    Ok(match arguments {
        [Value::Int(a), Value::Int(b)] => Value::Int(a.checked_mul(*b).ok_or_else(int_overflow)?),
        [Value::Uint(a), Value::Uint(b)] => {
            Value::Uint(a.checked_mul(*b).ok_or_else(uint_overflow)?)
        }
        [Value::Double(a), Value::Double(b)] => Value::Double(a * b),
        [Value::Int(_) | Value::Uint(_) | Value::Double(_), _] => {
            return Err(EvalError::no_such_overload());
        }
        [left, ..] => return not_applicable(operator::MULTIPLY, left),
        [] => return not_applicable(operator::MULTIPLY, &Value::Null),
    })
}

fn divide<'a>(arguments: &[Value<'a>]) -> Outcome<'a> {
    let by_zero = || EvalError::failed("division by zero");
    Ok(match arguments {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => {
            return Err(by_zero());
        }
        [Value::Int(a), Value::Int(b)] => Value::Int(a.checked_div(*b).ok_or_else(int_overflow)?),
        [Value::Uint(a), Value::Uint(b)] => Value::Uint(a / b),
        [Value::Double(a), Value::Double(b)] => Value::Double(a / b),
        [Value::Int(_) | Value::Uint(_) | Value::Double(_), _] => {
            return Err(EvalError::no_such_overload());
        }
        [left, ..] => return not_applicable(operator::DIVIDE, left),
        [] => return not_applicable(operator::DIVIDE, &Value::Null),
    })
}

fn modulo<'a>(arguments: &[Value<'a>]) -> Outcome<'a> {
    let by_zero = || EvalError::failed("modulus by zero");
    Ok(match arguments {
        [Value::Int(_), Value::Int(0)] | [Value::Uint(_), Value::Uint(0)] => {
            return Err(by_zero());
        }
        [Value::Int(a), Value::Int(b)] => Value::Int(a.checked_rem(*b).ok_or_else(int_overflow)?),
        [Value::Uint(a), Value::Uint(b)] => Value::Uint(a % b),
        [Value::Int(_) | Value::Uint(_), _] => return Err(EvalError::no_such_overload()),
        [left, ..] => return not_applicable(operator::MODULO, left),
        [] => return not_applicable(operator::MODULO, &Value::Null),
    })
}

fn negate<'a>(arguments: &[Value<'a>]) -> Outcome<'a> {
    Ok(match arguments {
        [Value::Int(value)] => Value::Int(value.checked_neg().ok_or_else(int_overflow)?),
        [Value::Double(value)] => Value::Double(-value),
        [Value::Duration(value)] => Value::Duration(value.negated().ok_or_else(int_overflow)?),
        [Value::Bool(_)] | [] => return Err(EvalError::no_such_overload()),
        [other, ..] => return not_applicable(operator::NEGATE, other),
    })
}

fn contains_element<'a>(arguments: &[Value<'a>]) -> Outcome<'a> {
    match arguments {
        [value, Value::List(list)] => list.contains(value).map(Value::Bool),
        [key, Value::Map(map)] => match map.find(key)? {
            Some(found) => found.map(|_| Value::Bool(true)),
            None => Ok(Value::Bool(false)),
        },
        _ => Err(EvalError::no_such_overload()),
    }
}

fn size<'a>(arguments: &[Value<'a>]) -> Outcome<'a> {
    match arguments {
        [value] => match value.size() {
            Some(size) => Ok(Value::Int(i64::try_from(size).unwrap_or(i64::MAX))),
            None => not_applicable("size", value),
        },
        _ => Err(EvalError::no_such_overload()),
    }
}

fn to_duration<'a>(arguments: &[Value<'a>]) -> Outcome<'a> {
    let failure = |from: &str| {
        EvalError::failed(format!(
            "type conversion error from '{from}' to 'google.protobuf.Duration'"
        ))
    };
    match arguments {
        [Value::String(text)] => parse_go_duration(text)
            .map(|duration: Duration| Value::Duration(duration))
            .ok_or_else(|| failure("string")),
        [other] => Err(failure(other.type_name())),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn to_timestamp<'a>(arguments: &[Value<'a>]) -> Outcome<'a> {
    match arguments {
        [Value::Int(seconds)] => Timestamp::new(*seconds, 0)
            .map(Value::Timestamp)
            .ok_or_else(timestamp_overflow),
        [Value::String(text)] => match parse_rfc3339(text) {
            Ok(timestamp) => Ok(Value::Timestamp(timestamp)),
            Err(crate::time::TimestampError::OutOfRange) => Err(timestamp_overflow()),
            Err(crate::time::TimestampError::Malformed) => Err(EvalError::failed(
                "type conversion error from 'string' to 'google.protobuf.Timestamp'",
            )),
        },
        _ => Err(EvalError::no_such_overload()),
    }
}
