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

/// Seconds and nanoseconds since 1970 of a time in UTC as [`time`] and [`micro_time`] write it.
pub(crate) fn parse(text: &str) -> Option<(i64, i64)> {
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let fraction = text.get(19..)?.strip_suffix('Z')?;
    let nanoseconds = match fraction.strip_prefix('.') {
        Some(digits) => format!("{digits:0<9}").get(..9)?.parse().ok()?,
        None => 0,
    };
    let seconds = days_since_1970(year, month, day) * 86_400 + hour * 3_600 + minute * 60 + second;
    Some((seconds, nanoseconds))
}

/// Days from 1970 to a date of the Gregorian calendar. Years are counted from March, so that the day
/// that leap years have comes last.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month > 2 { year } else { year - 1 };
    let month = (month + 9) % 12;
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    year * 365 + leap_days + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_follow_each_other_from_the_first_to_the_last_year() {
        let is_leap = |year| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let (mut year, mut month, mut day) = (1, 1, 1);
        for number in ZERO / DAY..=LAST / DAY {
            assert_eq!(date(number), (year, month, day), "{number}");
            let length = match month {
                2 if is_leap(year) => 29,
                2 => 28,
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            day += 1;
            if day > length {
                (month, day) = (month + 1, 1);
            }
            if month > 12 {
                (year, month) = (year + 1, 1);
            }
        }
        assert_eq!((year, month, day), (10_000, 1, 1));
    }

    #[track_caller]
    fn check(read: fn(&[u8]) -> Result<Value, Reason>, message: &[u8], expected: Option<&str>) {
        let expected = expected.map_or(Value::Null, Value::from);
        assert_eq!(read(message), Ok(expected), "{message:?}");
    }

    /// 0001-01-01T00:00:00Z as a field.
    const YEAR_ONE: [u8; 11] = [
        0x08, 0x80, 0x92, 0xb8, 0xc3, 0x98, 0xfe, 0xff, 0xff, 0xff, 0x01,
    ];

    #[test]
    fn no_time_and_the_first_time_are_null() {
        check(time, &[], None);
        check(micro_time, &[], None);
        check(time, &YEAR_ONE, None);
        check(micro_time, &YEAR_ONE, None);
    }

    #[test]
    fn a_time_has_no_fraction_and_a_micro_time_has_six_digits() {
        let message = [0x08, 0x01, 0x10, 0xff, 0xe7, 0xc9, 0x02];
        check(time, &message, Some("1970-01-01T00:00:01Z"));
        check(micro_time, &message, Some("1970-01-01T00:00:01.005403Z"));
        check(time, &[0x10, 0x01], Some("1970-01-01T00:00:00Z"));
        check(
            micro_time,
            &[0x18, 0x01],
            Some("1970-01-01T00:00:00.000000Z"),
        );
    }

    #[test]
    fn negative_nanoseconds_count_back_from_the_second() {
        let minus_one_microsecond = [
            0x10, 0x98, 0xf8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01,
        ];
        check(
            micro_time,
            &minus_one_microsecond,
            Some("1969-12-31T23:59:59.999999Z"),
        );
    }

    #[test]
    fn a_micro_time_may_lie_just_after_the_first_time() {
        let message = [&YEAR_ONE[..], &[0x10, 0xe8, 0x07]].concat();
        check(micro_time, &message, Some("0001-01-01T00:00:00.000001Z"));
        check(time, &message, None);
    }

    #[test]
    fn times_that_rfc_3339_cannot_express_are_refused() {
        let last = [
            0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0x10, 0xff, 0xff, 0xff,
            0xff, 0x07,
        ];
        assert_eq!(time(&last), Err(Reason::TimeOutOfRange));
        assert_eq!(micro_time(&last), Err(Reason::TimeOutOfRange));
    }
}
