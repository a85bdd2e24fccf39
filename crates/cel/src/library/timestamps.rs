//! What can be asked of points and spans of time.

use bellwether_go::civil::DateTime;

use super::text;
use crate::declaration::{Functions, Outcome, Plain};
use crate::error::EvalError;
use crate::time::{Timestamp, offset_in};
use crate::value::Value;

/// A part of a calendar or clock.
type Part = fn(&DateTime, Timestamp) -> i64;

pub(super) fn declare(functions: &mut Functions) {
    let parts: [(&str, &str, Plain); 10] = [
        ("getFullYear", "year", |a| part(a, |at, _| at.year)),
        ("getMonth", "month", |a| part(a, |at, _| at.month - 1)),
        ("getDayOfYear", "day_of_year", |a| {
            part(a, |at, _| at.year_day() - 1)
        }),
        ("getDayOfMonth", "day_of_month", |a| {
            part(a, |at, _| at.day - 1)
        }),
        ("getDate", "day_of_month_1_based", |a| {
            part(a, |at, _| at.day)
        }),
        ("getDayOfWeek", "day_of_week", |a| {
            part(a, |at, _| at.weekday())
        }),
        ("getHours", "hours", |a| part(a, |at, _| at.hour)),
        ("getMinutes", "minutes", |a| part(a, |at, _| at.minute)),
        ("getSeconds", "seconds", |a| part(a, |at, _| at.second)),
        ("getMilliseconds", "milliseconds", |a| {
            part(a, |_, timestamp| i64::from(timestamp.nanos() / 1_000_000))
        }),
    ];
    for (name, id, run) in parts {
        functions.add(
            &format!("timestamp_to_{id}"),
            &format!("timestamp::{name}() -> int"),
            run,
        );
        functions.add(
            &format!("timestamp_to_{id}_with_tz"),
            &format!("timestamp::{name}(string) -> int"),
            run,
        );
    }
    let spans: [(&str, &str, Plain); 4] = [
        ("getHours", "hours", |a| whole(a, 3_600_000_000_000)),
        ("getMinutes", "minutes", |a| whole(a, 60_000_000_000)),
        ("getSeconds", "seconds", |a| whole(a, 1_000_000_000)),
        ("getMilliseconds", "milliseconds", |a| whole(a, 1_000_000)),
    ];
    for (name, id, run) in spans {
        functions.add(
            &format!("duration_to_{id}"),
            &format!("duration::{name}() -> int"),
            run,
        );
    }
}

/// A part of a timestamp in UTC or in the zone that is the second argument.
fn part<'a>(arguments: &[Value<'a>], part: Part) -> Outcome<'a> {
    let Some(Value::Timestamp(timestamp)) = arguments.first() else {
        return Err(EvalError::no_such_overload());
    };
    let offset = match arguments.len() {
        1 => 0,
        _ => offset_in(*timestamp, text(arguments, 1)?)?,
    };
    let at = DateTime::from_unix(timestamp.seconds() + offset);
    Ok(Value::Int(part(&at, *timestamp)))
}

/// How many whole units a span has.
fn whole<'a>(arguments: &[Value<'a>], unit: i64) -> Outcome<'a> {
    match arguments {
        [Value::Duration(duration)] => Ok(Value::Int(duration.nanoseconds() / unit)),
        _ => Err(EvalError::no_such_overload()),
    }
}
