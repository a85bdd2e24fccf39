//! Timestamps in the two notations of Kubernetes: whole seconds (`metav1.Time`) and microseconds
//! (`metav1.MicroTime`). No clock here: the current time is always an argument.

use jiff::Timestamp;
use jiff::fmt::temporal::DateTimeParser;
use jiff::tz::Offset;

/// Why a text is not an RFC 3339 timestamp.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot parse {text:?} as an RFC 3339 timestamp such as 2006-01-02T15:04:05Z")]
pub struct TimeError {
    /// The text that was given.
    pub text: String,
}

/// Reads an RFC 3339 timestamp, with or without a fraction of a second, in any zone.
pub fn parse_time(text: &str) -> Result<Timestamp, TimeError> {
    const PARSER: DateTimeParser = DateTimeParser::new();
    let error = || TimeError {
        text: text.to_owned(),
    };
    // The general parser is far more liberal than RFC 3339: check the shape first.
    if !is_rfc3339(text.as_bytes()) {
        return Err(error());
    }
    PARSER.parse_timestamp(text).map_err(|_| error())
}

/// `YYYY-MM-DDTHH:MM:SS[.fraction](Z|±HH:MM)`; ranges are left to the real parser.
fn is_rfc3339(bytes: &[u8]) -> bool {
    const SHAPE: &[u8; 19] = b"0000-00-00T00:00:00";
    let Some((head, tail)) = bytes.split_at_checked(SHAPE.len()) else {
        return false;
    };
    let fits = |bytes: &[u8], shape: &[u8]| {
        bytes.len() == shape.len()
            && bytes.iter().zip(shape).all(|(byte, shape)| match shape {
                b'0' => byte.is_ascii_digit(),
                _ => byte == shape,
            })
    };
    let zone = match tail.strip_prefix(b".") {
        Some(fraction) => {
            let digits = fraction
                .iter()
                .take_while(|byte| byte.is_ascii_digit())
                .count();
            if digits == 0 {
                return false;
            }
            &fraction[digits..]
        }
        None => tail,
    };
    // Leap seconds are no valid time to Go.
    fits(head, SHAPE)
        && &head[17..] != b"60"
        && (zone == b"Z" || fits(zone, b"+00:00") || fits(zone, b"-00:00"))
}

/// Writes whole seconds in UTC, as `metav1.Time` does: `2006-01-02T15:04:05Z`.
pub fn format_time(time: Timestamp) -> String {
    let time = Offset::UTC.to_datetime(time);
    format!(
        "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
        time.year(),
        time.month(),
        time.day(),
        time.hour(),
        time.minute(),
        time.second()
    )
}

/// Writes microseconds in UTC, always six digits, as `metav1.MicroTime` does.
pub fn format_micro_time(time: Timestamp) -> String {
    let seconds = format_time(time);
    let microseconds = Offset::UTC.to_datetime(time).subsec_nanosecond() / 1000;
    format!("{}.{microseconds:06}Z", seconds.trim_end_matches('Z'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<(&str, &str)>) {
        let actual = parse_time(text)
            .ok()
            .map(|time| (format_time(time), format_micro_time(time)));
        let expected = expected.map(|(time, micro)| (time.to_owned(), micro.to_owned()));
        assert_eq!(actual, expected, "{text}");
    }

    #[test]
    fn both_notations_are_read_and_written() {
        check(
            "2026-11-02T03:04:05Z",
            Some(("2026-11-02T03:04:05Z", "2026-11-02T03:04:05.000000Z")),
        );
        check(
            "2026-11-02T03:04:05.1234567Z",
            Some(("2026-11-02T03:04:05Z", "2026-11-02T03:04:05.123456Z")),
        );
        check(
            "2026-01-01T00:30:00+01:00",
            Some(("2025-12-31T23:30:00Z", "2025-12-31T23:30:00.000000Z")),
        );
        check(
            "0001-01-01T00:00:00Z",
            Some(("0001-01-01T00:00:00Z", "0001-01-01T00:00:00.000000Z")),
        );
        check(
            "1969-12-31T23:59:59.5Z",
            Some(("1969-12-31T23:59:59Z", "1969-12-31T23:59:59.500000Z")),
        );
    }

    #[test]
    fn other_notations_are_refused() {
        for text in [
            "",
            "2026-11-02",
            "2026-11-02 03:04:05Z",
            "2026-11-02T03:04:05",
            "2026-11-02t03:04:05z",
            "2026-13-02T03:04:05Z",
            "2026-02-30T03:04:05Z",
            "2026-11-02T25:04:05Z",
            "2026-11-02T03:04:60Z",
            "2026-11-02T03:04:05.Z",
            "2026-11-02T03:04:05+0100",
            "2026-11-02T03:04:05Z[UTC]",
        ] {
            check(text, None);
        }
    }

    proptest! {
        #[test]
        fn whole_seconds_survive(seconds in -62_135_596_800_i64..253_402_207_200) {
            let time = Timestamp::from_second(seconds).unwrap();
            prop_assert_eq!(parse_time(&format_time(time)), Ok(time));
            prop_assert_eq!(parse_time(&format_micro_time(time)), Ok(time));
        }
    }
}
