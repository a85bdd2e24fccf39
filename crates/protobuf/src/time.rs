//! Times: seconds and nanoseconds since 1970 in protobuf, RFC 3339 in JSON.

use serde_json::Value;

use crate::error::Reason;
use crate::scalar;
use crate::wire::{Reader, WireType};

/// 0001-01-01T00:00:00Z, which Go takes for the absence of a time.
const ZERO: i64 = -62_135_596_800;
/// 9999-12-31T23:59:59Z, the last second that RFC 3339 can express.
const LAST: i64 = 253_402_300_799;
const DAY: i64 = 86_400;

/// `meta.v1.Time`, with a precision of seconds.
pub(crate) fn time(message: &[u8]) -> Result<Value, Reason> {
    let Some((seconds, _)) = timestamp(message)? else {
        return Ok(Value::Null);
    };
    let text = date_and_time(seconds)?;
    Ok(text.map_or(Value::Null, |text| Value::String(text + "Z")))
}

/// `meta.v1.MicroTime`, with a precision of microseconds.
pub(crate) fn micro_time(message: &[u8]) -> Result<Value, Reason> {
    let Some((seconds, nanoseconds)) = timestamp(message)? else {
        return Ok(Value::Null);
    };
    let microseconds = nanoseconds / 1_000;
    let seconds = seconds
        .checked_add(i64::from(microseconds.div_euclid(1_000_000)))
        .ok_or(Reason::TimeOutOfRange)?;
    let fraction = microseconds.rem_euclid(1_000_000);
    let text = match date_and_time(seconds)? {
        None if fraction == 0 => return Ok(Value::Null),
        None => "0001-01-01T00:00:00".to_owned(),
        Some(text) => text,
    };
    Ok(Value::String(format!("{text}.{fraction:06}Z")))
}

/// Seconds and nanoseconds, or nothing if there is no time.
fn timestamp(message: &[u8]) -> Result<Option<(i64, i32)>, Reason> {
    if message.is_empty() {
        return Ok(None);
    }
    let mut seconds = 0;
    let mut nanoseconds = 0;
    let mut reader = Reader::new(message);
    while let Some(tag) = reader.tag()? {
        match tag.number {
            1 => {
                tag.expect(WireType::Varint)?;
                seconds = reader.varint()?.cast_signed();
            }
            2 => {
                tag.expect(WireType::Varint)?;
                nanoseconds = scalar::int32(reader.varint()?);
            }
            _ => reader.skip(tag)?,
        }
    }
    Ok(Some((seconds, nanoseconds)))
}

/// Date and time without zone, or nothing for the time that stands for none.
fn date_and_time(seconds: i64) -> Result<Option<String>, Reason> {
    if !(ZERO..=LAST).contains(&seconds) {
        return Err(Reason::TimeOutOfRange);
    }
    if seconds == ZERO {
        return Ok(None);
    }
    let (year, month, day) = date(seconds.div_euclid(DAY));
    let second = seconds.rem_euclid(DAY);
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    Ok(Some(format!(
        "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}"
    )))
}

/// Year, month and day of a day since 1970.
///
/// Years are counted from March, so that the leap day is the last of its year and the lengths of
/// the months before it follow one formula.
fn date(day: i64) -> (i64, i64, i64) {
    const DAYS_OF_400_YEARS: i64 = 146_097;
    /// From 0000-03-01 to 1970-01-01.
    const MARCH_OF_YEAR_0: i64 = 719_468;
    let day = day + MARCH_OF_YEAR_0;
    let cycle = day.div_euclid(DAYS_OF_400_YEARS);
    let day = day.rem_euclid(DAYS_OF_400_YEARS);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    (400 * cycle + year + next, month, day)
}
