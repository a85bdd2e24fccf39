//! Functions on numbers.

use std::cmp::Ordering;

use super::{identity, list};
use crate::declaration::{Functions, Outcome, Plain};
use crate::error::EvalError;
use crate::value::{Value, compare};

pub(super) fn declare(functions: &mut Functions) {
    declare_extremes(functions);
    declare_doubles(functions);
    declare_signs(functions);
    declare_bits(functions);
}

/// `math.greatest` and `math.least` are macros over these.
fn declare_extremes(functions: &mut Functions) {
    let sides: [(&str, Plain, Plain); 2] = [
        (
            "min",
            |a| pick(a, Ordering::Greater),
            |a| pick_from_list(a, "math.@min", Ordering::Greater),
        ),
        (
            "max",
            |a| pick(a, Ordering::Less),
            |a| pick_from_list(a, "math.@max", Ordering::Less),
        ),
    ];
    // Where a type is open, the first overload that fits fixes it, so order matters.
    let numbers = ["double", "int", "uint"];
    let mixed = [
        ("int", "uint"),
        ("int", "double"),
        ("double", "int"),
        ("double", "uint"),
        ("uint", "int"),
        ("uint", "double"),
    ];
    for (side, pair, many) in sides {
        for of in numbers {
            functions.add(
                &format!("math_@{side}_{of}"),
                &format!("math.@{side}({of}) -> {of}"),
                identity,
            );
        }
        for of in numbers {
            functions.add(
                &format!("math_@{side}_{of}_{of}"),
                &format!("math.@{side}({of}, {of}) -> {of}"),
                pair,
            );
        }
        for (left, right) in mixed {
            functions.add(
                &format!("math_@{side}_{left}_{right}"),
                &format!("math.@{side}({left}, {right}) -> dyn"),
                pair,
            );
        }
        for of in numbers {
            functions.add(
                &format!("math_@{side}_list_{of}"),
                &format!("math.@{side}(list({of})) -> {of}"),
                many,
            );
        }
    }
}

fn pick<'a>(arguments: &[Value<'a>], replace: Ordering) -> Outcome<'a> {
    let [first, second] = arguments else {
        return Err(EvalError::no_such_overload());
    };
    let order = compare("math", first, second)?;
    Ok(if order == replace { second } else { first }.clone())
}

fn pick_from_list<'a>(arguments: &[Value<'a>], name: &str, replace: Ordering) -> Outcome<'a> {
    let mut best: Option<Value<'a>> = None;
    for value in list(arguments, 0)?.iter() {
        let value = value?;
        best = Some(match best {
            None => value,
            Some(best) => pick(&[best, value], replace)?,
        });
    }
    best.ok_or_else(|| EvalError::failed(format!("{name}(list) argument must not be empty")))
}

fn double(arguments: &[Value<'_>]) -> Result<f64, EvalError> {
    match arguments.first() {
        Some(Value::Double(value)) => Ok(*value),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn declare_doubles(functions: &mut Functions) {
    let rounding: [(&str, Plain); 4] = [
        ("ceil", |a| Ok(Value::Double(double(a)?.ceil()))),
        ("floor", |a| Ok(Value::Double(double(a)?.floor()))),
        ("round", |a| Ok(Value::Double(double(a)?.round()))),
        ("trunc", |a| Ok(Value::Double(double(a)?.trunc()))),
    ];
    for (name, run) in rounding {
        functions.add(
            &format!("math_{name}_double"),
            &format!("math.{name}(double) -> double"),
            run,
        );
    }
    let tests: [(&str, Plain); 3] = [
        ("isInf", |a| Ok(Value::Bool(double(a)?.is_infinite()))),
        ("isNaN", |a| Ok(Value::Bool(double(a)?.is_nan()))),
        ("isFinite", |a| Ok(Value::Bool(double(a)?.is_finite()))),
    ];
    for (name, run) in tests {
        functions.add(
            &format!("math_{name}_double"),
            &format!("math.{name}(double) -> bool"),
            run,
        );
    }
    for of in ["double", "int", "uint"] {
        functions.add(
            &format!("math_sqrt_{of}"),
            &format!("math.sqrt({of}) -> double"),
            |a| match crate::value::to_double(a.first().unwrap_or(&Value::Null))? {
                Value::Double(value) => Ok(Value::Double(value.sqrt())),
                _ => Err(EvalError::no_such_overload()),
            },
        );
    }
}

fn declare_signs(functions: &mut Functions) {
    functions.add("math_abs_double", "math.abs(double) -> double", |a| {
        Ok(Value::Double(double(a)?.abs()))
    });
    functions.add("math_abs_int", "math.abs(int) -> int", |a| match a {
        [Value::Int(value)] => match value.checked_abs() {
            Some(value) => Ok(Value::Int(value)),
            None => Err(EvalError::failed("integer overflow")),
        },
        _ => Err(EvalError::no_such_overload()),
    });
    functions.add("math_abs_uint", "math.abs(uint) -> uint", identity);
    for of in ["double", "int", "uint"] {
        functions.add(
            &format!("math_sign_{of}"),
            &format!("math.sign({of}) -> {of}"),
            |a| {
                Ok(match a {
                    [Value::Int(value)] => Value::Int(value.signum()),
                    [Value::Uint(value)] => Value::Uint(u64::from(*value > 0)),
                    [Value::Double(value)] if *value == 0.0 => Value::Double(0.0),
                    [Value::Double(value)] if value.is_nan() => Value::Double(*value),
                    [Value::Double(value)] => Value::Double(value.signum()),
                    _ => return Err(EvalError::no_such_overload()),
                })
            },
        );
    }
}

fn declare_bits(functions: &mut Functions) {
    let pairs: [(&str, Plain); 3] = [
        ("bitAnd", |a| bits(a, |x, y| x & y)),
        ("bitOr", |a| bits(a, |x, y| x | y)),
        ("bitXor", |a| bits(a, |x, y| x ^ y)),
    ];
    for (name, run) in pairs {
        for of in ["int", "uint"] {
            functions.add(
                &format!("math_{name}_{of}_{of}"),
                &format!("math.{name}({of}, {of}) -> {of}"),
                run,
            );
        }
    }
    let shifts: [(&str, Plain); 2] = [
        ("bitShiftLeft", |a| {
            shift(a, "bitShiftLeft", u64::checked_shl)
        }),
        ("bitShiftRight", |a| {
            shift(a, "bitShiftRight", u64::checked_shr)
        }),
    ];
    for of in ["int", "uint"] {
        functions.add(
            &format!("math_bitNot_{of}_{of}"),
            &format!("math.bitNot({of}) -> {of}"),
            |a| match a {
                [Value::Int(value)] => Ok(Value::Int(!value)),
                [Value::Uint(value)] => Ok(Value::Uint(!value)),
                _ => Err(EvalError::no_such_overload()),
            },
        );
        for (name, run) in shifts {
            functions.add(
                &format!("math_{name}_{of}_int"),
                &format!("math.{name}({of}, int) -> {of}"),
                run,
            );
        }
    }
}

fn bits<'a>(arguments: &[Value<'a>], combine: fn(u64, u64) -> u64) -> Outcome<'a> {
    match arguments {
        [Value::Int(x), Value::Int(y)] => Ok(Value::Int(
            combine(x.cast_unsigned(), y.cast_unsigned()).cast_signed(),
        )),
        [Value::Uint(x), Value::Uint(y)] => Ok(Value::Uint(combine(*x, *y))),
        _ => Err(EvalError::no_such_overload()),
    }
}

/// Shifts bits; those shifted by 64 and more are all gone.
fn shift<'a>(
    arguments: &[Value<'a>],
    name: &str,
    shift: fn(u64, u32) -> Option<u64>,
) -> Outcome<'a> {
    let (value, by) = match arguments {
        [Value::Int(value), Value::Int(by)] => (value.cast_unsigned(), *by),
        [Value::Uint(value), Value::Int(by)] => (*value, *by),
        _ => return Err(EvalError::no_such_overload()),
    };
    if by < 0 {
        return Err(EvalError::failed(format!(
            "math.{name}() negative offset: {by}"
        )));
    }
    let shifted = u32::try_from(by)
        .ok()
        .and_then(|by| shift(value, by))
        .unwrap_or(0);
    Ok(match arguments[0] {
        Value::Int(_) => Value::Int(shifted.cast_signed()),
        _ => Value::Uint(shifted),
    })
}
