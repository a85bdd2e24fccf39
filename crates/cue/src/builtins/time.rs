//! Package `time`: instants as RFC 3339 text, layouts written as an example instant, durations.

use bellwether_go::civil::Instant;
use bellwether_go::duration::GoDuration;
use bellwether_go::layout;

use super::argument::{Outcome, int, integer, string, text_result, valid};
use super::{INT, STRING, function};
use crate::value::{Failure, Host, Kind, Package, Value};

pub(super) static PACKAGE: Package = Package {
    path: "time",
    functions: &[
        function("Duration", &[STRING], Kind::BOOL, |_, a| {
            valid(duration(string(a, 0)?))
        }),
        function("FormatDuration", &[INT], Kind::STRING, |_, a| {
            text_result(GoDuration::from_nanos(int(a, 0)?).to_string())
        }),
        function("ParseDuration", &[STRING], Kind::INT, |_, a| {
            integer(duration(string(a, 0)?).map_err(Failure::Error)?)
        }),
        function("Time", &[STRING], Kind::BOOL, |_, a| {
            check(string(a, 0)?, RFC3339_NANO)
        }),
        function("Format", &[STRING, STRING], Kind::BOOL, |_, a| {
            check(string(a, 0)?, string(a, 1)?)
        }),
        function(
            "FormatString",
            &[STRING, STRING],
            Kind::STRING,
            format_string,
        ),
        function("Parse", &[STRING, STRING], Kind::STRING, parse),
        function("Unix", &[INT, INT], Kind::STRING, unix),
        function("Split", &[STRING], Kind::STRUCT, split),
    ],
    source: "
Nanosecond:  1
Microsecond: 1000
Millisecond: 1000000
Second:      1000000000
Minute:      60000000000
Hour:        3600000000000
ANSIC:       \"Mon Jan _2 15:04:05 2006\"
UnixDate:    \"Mon Jan _2 15:04:05 MST 2006\"
RubyDate:    \"Mon Jan 02 15:04:05 -0700 2006\"
RFC822:      \"02 Jan 06 15:04 MST\"
RFC822Z:     \"02 Jan 06 15:04 -0700\"
RFC850:      \"Monday, 02-Jan-06 15:04:05 MST\"
RFC1123:     \"Mon, 02 Jan 2006 15:04:05 MST\"
RFC1123Z:    \"Mon, 02 Jan 2006 15:04:05 -0700\"
RFC3339:     \"2006-01-02T15:04:05Z07:00\"
RFC3339Nano: \"2006-01-02T15:04:05.999999999Z07:00\"
RFC3339Date: \"2006-01-02\"
Kitchen:     \"3:04PM\"
Kitchen24:   \"15:04\"
January:     1
February:    2
March:       3
April:       4
May:         5
June:        6
July:        7
August:      8
September:   9
October:     10
November:    11
December:    12
Sunday:      0
Monday:      1
Tuesday:     2
Wednesday:   3
Thursday:    4
Friday:      5
Saturday:    6
",
};

const RFC3339_NANO: &str = "2006-01-02T15:04:05.999999999Z07:00";

/// Reads a duration as nanoseconds.
fn duration(text: &str) -> Result<i64, String> {
    let duration: Result<GoDuration, _> = text.parse();
    duration
        .map(GoDuration::as_nanos)
        .map_err(|error| error.to_string())
}

fn read(layout: &str, value: &str) -> Result<Instant, Failure> {
    layout::parse(layout, value).map_err(|error| Failure::error(error.to_string()))
}

fn check(value: &str, layout: &str) -> Outcome {
    valid(layout::parse(layout, value).map_err(|_| format!("invalid time {value:?}")))
}

fn format_string(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let instant = read(RFC3339_NANO, string(arguments, 1)?)?;
    text_result(layout::format(string(arguments, 0)?, &instant))
}

fn parse(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let instant = read(string(arguments, 0)?, string(arguments, 1)?)?;
    text_result(layout::format(RFC3339_NANO, &instant.in_utc()))
}

fn unix(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let (seconds, nanoseconds) = (int(arguments, 0)?, int(arguments, 1)?);
    match Instant::from_unix(seconds, nanoseconds) {
        Some(instant) => text_result(layout::format(RFC3339_NANO, &instant)),
        None => Err(Failure::error("time out of range")),
    }
}

fn split(_: &mut dyn Host, arguments: &[Value]) -> Outcome {
    let instant = read(RFC3339_NANO, string(arguments, 0)?)?;
    let field = |label: &str, value: i64| (label.into(), Value::Number(value.into()));
    Ok(Value::structure([
        field("year", instant.year),
        field("month", i64::from(instant.month)),
        field("day", i64::from(instant.day)),
        field("hour", i64::from(instant.hour)),
        field("minute", i64::from(instant.minute)),
        field("second", i64::from(instant.second)),
        field("nanosecond", i64::from(instant.nanosecond)),
    ]))
}
