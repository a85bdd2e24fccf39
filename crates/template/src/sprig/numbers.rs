//! Arithmetic.

use bellwether_go::number;
use bellwether_go::value::{Type, Value};

use super::argument::{any, bytes, int, text_of, to_float, to_int};
use super::decimal::Decimal;
use crate::call::{Call, Failure};
use crate::function::{Entry, function, variadic};

const ANY: Type = Type::Interface;

type Done = Result<Value, Failure>;

pub(super) const TABLE: &[Entry] = &[
    function("int", &[ANY], |_, a| Ok(Value::int(to_int(any(a, 0))))),
    function("int64", &[ANY], |_, a| Ok(Value::int64(to_int(any(a, 0))))),
    function("float64", &[ANY], |_, a| {
        Ok(Value::Float(to_float(any(a, 0))))
    }),
    function("atoi", &[Type::String], |_, a| {
        let text = std::str::from_utf8(bytes(a, 0)).unwrap_or_default();
        Ok(Value::int(atoi(text).unwrap_or(0)))
    }),
    function("toDecimal", &[ANY], |call, a| {
        let text = text_of(call, any(a, 0))?;
        Ok(Value::int64(octal(&text.to_str()).unwrap_or(0)))
    }),
    function("add1", &[ANY], |_, a| {
        Ok(Value::int64(to_int(any(a, 0)).wrapping_add(1)))
    }),
    variadic("add", &[ANY], |_, a| {
        let sum = a.iter().map(to_int).fold(0, i64::wrapping_add);
        Ok(Value::int64(sum))
    }),
    function("sub", &[ANY, ANY], |_, a| {
        Ok(Value::int64(
            to_int(any(a, 0)).wrapping_sub(to_int(any(a, 1))),
        ))
    }),
    function("div", &[ANY, ANY], |_, a| divided(a, i64::wrapping_div)),
    function("mod", &[ANY, ANY], |_, a| divided(a, i64::wrapping_rem)),
    variadic("mul", &[ANY, ANY], |_, a| {
        let product = a.iter().map(to_int).fold(1, i64::wrapping_mul);
        Ok(Value::int64(product))
    }),
    variadic("max", &[ANY, ANY], |_, a| largest(a)),
    variadic("biggest", &[ANY, ANY], |_, a| largest(a)),
    variadic("min", &[ANY, ANY], |_, a| {
        Ok(Value::int64(a.iter().map(to_int).min().unwrap_or(0)))
    }),
    variadic("maxf", &[ANY, ANY], |_, a| {
        Ok(Value::Float(folded(a, |left, right| {
            if left.is_nan() || right.is_nan() {
                f64::NAN
            } else {
                left.max(right)
            }
        })))
    }),
    variadic("minf", &[ANY, ANY], |_, a| {
        Ok(Value::Float(folded(a, |left, right| {
            if left.is_nan() || right.is_nan() {
                f64::NAN
            } else {
                left.min(right)
            }
        })))
    }),
    function("floor", &[ANY], |_, a| {
        Ok(Value::Float(to_float(any(a, 0)).floor()))
    }),
    function("ceil", &[ANY], |_, a| {
        Ok(Value::Float(to_float(any(a, 0)).ceil()))
    }),
    variadic("round", &[ANY, Type::INT, Type::Float64], round),
    function("add1f", &[ANY], |call, a| {
        decimals(call, any(a, 0), &[Value::int(1)], |left, right| {
            Ok(left.add(right))
        })
    }),
    variadic("addf", &[ANY], |call, a| {
        decimals(call, &Value::Float(0.0), a, |left, right| {
            Ok(left.add(right))
        })
    }),
    variadic("subf", &[ANY, ANY], |call, a| {
        decimals(call, any(a, 0), &a[1..], |left, right| {
            Ok(left.subtract(right))
        })
    }),
    variadic("mulf", &[ANY, ANY], |call, a| {
        decimals(call, any(a, 0), &a[1..], |left, right| {
            Ok(left.multiply(right))
        })
    }),
    variadic("divf", &[ANY, ANY], |call, a| {
        decimals(call, any(a, 0), &a[1..], Decimal::divide)
    }),
];

/// A decimal integer with a sign, and nothing else.
/// Numbers that are too large are the largest of their sign.
fn atoi(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let limit = if text.starts_with('-') {
        i64::MIN
    } else {
        i64::MAX
    };
    Some(text.parse().unwrap_or(limit))
}

fn octal(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| (b'0'..b'8').contains(&byte)) {
        return None;
    }
    let magnitude = number::parse_uint(&format!("0{digits}"))?;
    if text.starts_with('-') {
        0_i64.checked_sub_unsigned(magnitude)
    } else {
        i64::try_from(magnitude).ok()
    }
}

fn divided(a: &[Value], divide: fn(i64, i64) -> i64) -> Done {
    let divisor = to_int(any(a, 1));
    if divisor == 0 {
        return Err("runtime error: integer divide by zero".into());
    }
    Ok(Value::int64(divide(to_int(any(a, 0)), divisor)))
}

#[expect(
    clippy::unnecessary_wraps,
    reason = "the last expression of a function"
)]
fn largest(a: &[Value]) -> Done {
    Ok(Value::int64(a.iter().map(to_int).max().unwrap_or(0)))
}

fn folded(a: &[Value], fold: impl Fn(f64, f64) -> f64) -> f64 {
    a.iter().map(to_float).reduce(fold).unwrap_or(0.0)
}

#[expect(clippy::cast_precision_loss, reason = "as in Go")]
#[expect(clippy::unnecessary_wraps, reason = "the body of a function")]
fn round(_call: &mut Call<'_>, a: &[Value]) -> Done {
    let (value, places) = (to_float(any(a, 0)), int(a, 1));
    let from = a.get(2).map_or(0.5, to_float);
    let power = 10.0_f64.powf(places as f64);
    let shifted = power * value;
    let rounded = if shifted.fract() >= from {
        shifted.ceil()
    } else {
        shifted.floor()
    };
    Ok(Value::Float(rounded / power))
}

fn decimals(
    call: &mut Call<'_>,
    first: &Value,
    others: &[Value],
    operation: fn(&Decimal, &Decimal) -> Result<Decimal, Failure>,
) -> Done {
    let mut result = Decimal::new(to_float(first))?;
    for other in others {
        // Digits grow with every operation.
        call.steps(result.digits() / 16 + 1)?;
        result = operation(&result, &Decimal::new(to_float(other))?)?;
    }
    Ok(Value::Float(result.to_float()))
}
