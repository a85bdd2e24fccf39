//! Reading times and durations.

use bellwether_go::civil::{days_from_date, days_in_month};
use bellwether_go::duration::GoDuration;

use super::{Duration, Timestamp};

/// Why a text is no timestamp.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum TimestampError {
    /// It does not have the form of one.
    Malformed,
    /// It lies before year 1 or after year 9999.
    OutOfRange,
}

/// RFC 3339, as Go reads it: capital `T` and `Z`, any number of fractional digits.
pub(crate) fn parse_rfc3339(text: &str) -> Result<Timestamp, TimestampError> {
    let (seconds, nanos, rest) = date_and_time(text).ok_or(TimestampError::Malformed)?;
    let offset = zone_offset(rest, true).ok_or(TimestampError::Malformed)?;
    Timestamp::with_offset(seconds - i64::from(offset), nanos, offset)
        .ok_or(TimestampError::OutOfRange)
}

/// A `date-time` of OpenAPI: RFC 3339, also without the colon in the offset, or without any
/// offset, which means UTC.
pub(crate) fn parse_date_time(text: &str) -> Option<Timestamp> {
    let (seconds, nanos, rest) = date_and_time(text)?;
    let offset = if rest.is_empty() {
        0
    } else {
        zone_offset(rest, true).or_else(|| zone_offset(rest, false))?
    };
    Timestamp::with_offset(seconds - i64::from(offset), nanos, offset)
}

/// A `date` of OpenAPI: `2006-01-02`.
pub(crate) fn parse_date(text: &str) -> Option<Timestamp> {
    let (days, rest) = date(text)?;
    rest.is_empty().then_some(())?;
    Timestamp::new(days * 86_400, 0)
}

/// Takes `count` digits off the front.
fn digits(text: &str, count: usize) -> Option<(i64, &str)> {
    let head = text.get(..count)?;
    if !head.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    Some((head.parse().ok()?, &text[count..]))
}

fn date(text: &str) -> Option<(i64, &str)> {
    let (year, rest) = digits(text, 4)?;
    let (month, rest) = digits(rest.strip_prefix('-')?, 2)?;
    let (day, rest) = digits(rest.strip_prefix('-')?, 2)?;
    let days = i64::from(days_in_month(year, u32::try_from(month).ok()?));
    let valid = (1..=12).contains(&month) && (1..=days).contains(&day);
    valid.then(|| (days_from_date(year, month, day), rest))
}

/// Seconds since 1970 as if in UTC, nanoseconds, and what follows.
fn date_and_time(text: &str) -> Option<(i64, u32, &str)> {
    let (days, rest) = date(text)?;
    let (hour, rest) = digits(rest.strip_prefix('T')?, 2)?;
    let (minute, rest) = digits(rest.strip_prefix(':')?, 2)?;
    let (second, mut rest) = digits(rest.strip_prefix(':')?, 2)?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let mut nanos = 0;
    if let Some(fraction) = rest.strip_prefix(['.', ',']) {
        let length = fraction.bytes().take_while(u8::is_ascii_digit).count();
        if length == 0 {
            return None;
        }
        let padded: String = fraction[..length]
            .chars()
            .chain("000000000".chars())
            .take(9)
            .collect();
        nanos = padded.parse().ok()?;
        rest = &fraction[length..];
    }
    Some((
        days * 86_400 + hour * 3_600 + minute * 60 + second,
        nanos,
        rest,
    ))
}

/// `Z` or `+hh:mm` in seconds.
fn zone_offset(text: &str, colon: bool) -> Option<i32> {
    if text == "Z" {
        return Some(0);
    }
    let sign = match text.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let (hours, rest) = digits(&text[1..], 2)?;
    let rest = if colon { rest.strip_prefix(':')? } else { rest };
    let (minutes, rest) = digits(rest, 2)?;
    if !rest.is_empty() || hours > 24 || minutes > 59 {
        return None;
    }
    i32::try_from(sign * (hours * 3_600 + minutes * 60)).ok()
}

/// Go's `time.ParseDuration`: `1h30m`, `-1.5s`, `0`.
pub(crate) fn parse_go_duration(text: &str) -> Option<Duration> {
    let duration: GoDuration = text.parse().ok()?;
    Some(Duration(duration.as_nanos()))
}

fn unit_nanos(unit: &str) -> Option<i128> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// A `duration` of OpenAPI: Go's form, or numbers with spelled-out units such as `2 weeks`.
pub(crate) fn parse_open_api_duration(text: &str) -> Option<Duration> {
    if let Some(duration) = parse_go_duration(text) {
        return Some(duration);
    }
    let mut total: i128 = 0;
    let mut rest = text.trim();
    let mut parts = 0;
    while !rest.is_empty() {
        let length = rest.bytes().take_while(u8::is_ascii_digit).count();
        let count: i128 = rest[..length].parse().ok()?;
        rest = rest[length..].trim_start();
        let unit_length = rest
            .find(|c: char| !(c.is_alphabetic() || c == 'µ'))
            .unwrap_or(rest.len());
        total = total.checked_add(count.checked_mul(long_unit(&rest[..unit_length])?)?)?;
        rest = rest[unit_length..].trim_start();
        parts += 1;
    }
    (parts > 0).then_some(())?;
    i64::try_from(total).ok().map(Duration)
}

fn long_unit(unit: &str) -> Option<i128> {
    let singular = unit.strip_suffix('s').filter(|rest| rest.len() > 2);
    let day = 24 * 3_600_000_000_000;
    Some(match singular.unwrap_or(unit) {
        "nano" | "nanosecond" => 1,
        "micro" | "microsecond" => 1_000,
        "milli" | "millisecond" => 1_000_000,
        "sec" | "second" => 1_000_000_000,
        "min" | "minute" => 60_000_000_000,
        "hr" | "hour" => 3_600_000_000_000,
        "d" | "day" => day,
        "w" | "wk" | "week" => 7 * day,
        other => unit_nanos(other)?,
    })
}
