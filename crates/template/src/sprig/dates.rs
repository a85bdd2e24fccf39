//! Dates and durations.

use bellwether_go::duration::GoDuration;
use bellwether_go::layout;
use bellwether_go::value::{IntKind, Kind, Type, Value};

use super::argument::{any, string};
use super::time::Time;
use crate::call::{Call, Failure};
use crate::function::{Entry, function};

const ANY: Type = Type::Interface;
const STRING: Type = Type::String;
const TIME: Type = Type::Named(&super::time::TYPE, Kind::Struct);

type Done = Result<Value, Failure>;

pub(super) const TABLE: &[Entry] = &[
    function("now", &[], |call, _| Ok(Value::object(now(call)))),
    function("ago", &[ANY], |call, a| {
        let since = now(call).since(&time_of(call, any(a, 0)));
        call.text(GoDuration::from_nanos(round_to_second(since)).to_string())
    }),
    function("date", &[STRING, ANY], |call, a| {
        formatted(call, &string(a, 0), any(a, 1), "Local")
    }),
    function("htmlDate", &[ANY], |call, a| {
        formatted(call, "2006-01-02", any(a, 0), "Local")
    }),
    function("htmlDateInZone", &[ANY, STRING], |call, a| {
        formatted(call, "2006-01-02", any(a, 0), &string(a, 1))
    }),
    function("dateInZone", &[STRING, ANY, STRING], in_zone),
    function("date_in_zone", &[STRING, ANY, STRING], in_zone),
    function("dateModify", &[STRING, TIME], modified),
    function("date_modify", &[STRING, TIME], modified),
    function("mustDateModify", &[STRING, TIME], must_modified),
    function("must_date_modify", &[STRING, TIME], must_modified),
    function("toDate", &[STRING, STRING], |_, a| {
        let read = layout::parse(&string(a, 0), &string(a, 1));
        Ok(Value::object(
            read.map_or(Time::ZERO, |instant| Time::of(&instant)),
        ))
    }),
    function("mustToDate", &[STRING, STRING], |_, a| {
        let read = layout::parse(&string(a, 0), &string(a, 1));
        let instant = read.map_err(|error| error.to_string())?;
        Ok(Value::object(Time::of(&instant)))
    }),
    function("unixEpoch", &[TIME], |call, a| {
        let seconds = Time::from_value(any(a, 0)).map_or(0, |time| time.seconds);
        call.text(seconds.to_string())
    }),
    function("duration", &[ANY], |call, a| {
        let seconds = match any(a, 0) {
            Value::String(text) => text.to_str().parse().unwrap_or(0),
            Value::Int(IntKind::Int64, seconds) => *seconds,
            _ => 0_i64,
        };
        call.text(GoDuration::from_nanos(seconds.wrapping_mul(1_000_000_000)).to_string())
    }),
    function("durationRound", &[ANY], |call, a| {
        let nanoseconds = match any(a, 0) {
            Value::String(text) => {
                let parsed: Result<GoDuration, _> = text.to_str().parse();
                parsed.map_or(0, GoDuration::as_nanos)
            }
            Value::Int(IntKind::Int64, nanoseconds) => *nanoseconds,
            other => match Time::from_value(other) {
                Some(time) => now(call).since(time),
                None => 0,
            },
        };
        call.text(rounded(nanoseconds.unsigned_abs()))
    }),
];

fn now(call: &Call<'_>) -> Time {
    let now = call.world().now;
    Time::new(now.as_second(), now.subsec_nanosecond().unsigned_abs())
}

/// Times and seconds since 1970 are what they are; anything else is now.
fn time_of(call: &Call<'_>, value: &Value) -> Time {
    match value {
        Value::Int(IntKind::Int | IntKind::Int64 | IntKind::Int32, seconds) => {
            Time::new(*seconds, 0)
        }
        other => match Time::from_value(other) {
            Some(time) => time.clone(),
            None => now(call),
        },
    }
}

fn formatted(call: &mut Call<'_>, layout: &str, value: &Value, zone: &str) -> Done {
    let time = time_of(call, value).in_zone(zone);
    // A layout may ask for as many digits of a second as it has bytes.
    call.bytes(layout.len().saturating_mul(4))?;
    call.text(layout::format(layout, &time.instant()))
}

fn in_zone(call: &mut Call<'_>, a: &[Value]) -> Done {
    formatted(call, &string(a, 0), any(a, 1), &string(a, 2))
}

fn modified(call: &mut Call<'_>, a: &[Value]) -> Done {
    must_modified(call, a).or_else(|_| Ok(any(a, 1).clone()))
}

fn must_modified(_call: &mut Call<'_>, a: &[Value]) -> Done {
    let duration: GoDuration = string(a, 0)
        .parse()
        .map_err(|error: bellwether_go::duration::DurationError| error.to_string())?;
    let time = Time::from_value(any(a, 1)).cloned().unwrap_or(Time::ZERO);
    Ok(Value::object(time.add(duration.as_nanos())))
}

fn round_to_second(nanoseconds: i64) -> i64 {
    const SECOND: i64 = 1_000_000_000;
    let rest = nanoseconds % SECOND;
    let cut = nanoseconds - rest;
    if rest.abs() * 2 < SECOND {
        cut
    } else {
        cut.saturating_add(SECOND * rest.signum())
    }
}

/// The largest unit that is more than one, without a fraction.
fn rounded(nanoseconds: u64) -> String {
    const HOUR: u64 = 3_600_000_000_000;
    const UNITS: [(u64, &str); 6] = [
        (HOUR * 24 * 365, "y"),
        (HOUR * 24 * 30, "mo"),
        (HOUR * 24, "d"),
        (HOUR, "h"),
        (HOUR / 60, "m"),
        (HOUR / 3600, "s"),
    ];
    match UNITS.iter().find(|(size, _)| nanoseconds > *size) {
        Some((size, unit)) => format!("{}{unit}", nanoseconds / size),
        None => "0s".to_owned(),
    }
}
