//! `time.Duration`.

use super::{Method, MethodBody, Named};
use crate::duration::GoDuration;
use crate::value::{IntKind, Type, Value};

pub(crate) static TYPE: Named = Named {
    name: "time.Duration",
    methods: &[
        method("String", &[], |value, _, _| {
            let duration = GoDuration::from_nanos(nanoseconds(value));
            Ok(Value::string(duration.to_string()))
        }),
        method("Nanoseconds", &[], |value, _, _| {
            Ok(Value::int64(nanoseconds(value)))
        }),
        method("Microseconds", &[], |value, _, _| {
            Ok(Value::int64(nanoseconds(value) / 1_000))
        }),
        method("Milliseconds", &[], |value, _, _| {
            Ok(Value::int64(nanoseconds(value) / 1_000_000))
        }),
        method("Seconds", &[], |value, _, _| {
            Ok(in_units(value, 1_000_000_000))
        }),
        method("Minutes", &[], |value, _, _| {
            Ok(in_units(value, 60_000_000_000))
        }),
        method("Hours", &[], |value, _, _| {
            Ok(in_units(value, 3_600_000_000_000))
        }),
        method("Abs", &[], |value, _, _| {
            Ok(duration(nanoseconds(value).saturating_abs()))
        }),
        method("Round", &[DURATION], |value, arguments, _| {
            let unit = arguments.first().map_or(0, nanoseconds);
            Ok(duration(round(nanoseconds(value), unit)))
        }),
        method("Truncate", &[DURATION], |value, arguments, _| {
            let unit = arguments.first().map_or(0, nanoseconds);
            let value = nanoseconds(value);
            Ok(duration(if unit <= 0 {
                value
            } else {
                value - value % unit
            }))
        }),
    ],
};

const DURATION: Type = Type::Int(IntKind::Duration);

const fn method(name: &'static str, parameters: &'static [Type], body: MethodBody) -> Method {
    Method {
        name,
        parameters,
        is_variadic: false,
        body,
    }
}

const fn duration(nanoseconds: i64) -> Value {
    Value::Int(IntKind::Duration, nanoseconds)
}

const fn nanoseconds(value: &Value) -> i64 {
    match value {
        Value::Int(_, value) => *value,
        _ => 0,
    }
}

/// To the nearest multiple of a unit, halves away from zero.
pub(crate) fn round(value: i64, unit: i64) -> i64 {
    if unit <= 0 {
        return value;
    }
    let rest = value % unit;
    let cut = value - rest;
    if u128::from(rest.unsigned_abs()) * 2 < u128::from(unit.unsigned_abs()) {
        cut
    } else {
        cut.saturating_add(unit.saturating_mul(rest.signum()))
    }
}

#[expect(clippy::cast_precision_loss, reason = "as in Go")]
fn in_units(value: &Value, unit: i64) -> Value {
    let nanoseconds = nanoseconds(value);
    Value::Float((nanoseconds / unit) as f64 + (nanoseconds % unit) as f64 / unit as f64)
}
