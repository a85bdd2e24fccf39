//! Points and spans of time, written and read as Go does.

mod parse;
mod zone;

use std::cmp::Ordering;
use std::fmt;

use bellwether_go::civil::DateTime;

pub(crate) use parse::{
    TimestampError, parse_date, parse_date_time, parse_go_duration, parse_open_api_duration,
    parse_rfc3339,
};
pub(crate) use zone::offset_in;

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// 0001-01-01T00:00:00Z, the earliest timestamp.
const MIN_SECONDS: i64 = -62_135_596_800;

/// 9999-12-31T23:59:59Z, the second of the latest timestamp.
const MAX_SECONDS: i64 = 253_402_300_799;

/// A point in time with the UTC offset it was written with, which matters only when it is
/// printed again.
#[derive(Debug, Clone, Copy)]
pub struct Timestamp {
    seconds: i64,
    nanos: u32,
    offset: i32,
}

impl Timestamp {
    /// The point `seconds` and `nanos` after 1970 UTC, if CEL can express it.
    pub fn new(seconds: i64, nanos: u32) -> Option<Timestamp> {
        Timestamp::with_offset(seconds, nanos, 0)
    }

    pub(crate) fn with_offset(seconds: i64, nanos: u32, offset: i32) -> Option<Timestamp> {
        ((MIN_SECONDS..=MAX_SECONDS).contains(&seconds) && i64::from(nanos) < NANOS_PER_SECOND)
            .then_some(Timestamp {
                seconds,
                nanos,
                offset,
            })
    }

    /// Whole seconds since 1970 UTC.
    pub fn seconds(self) -> i64 {
        self.seconds
    }

    /// Nanoseconds within the second.
    pub fn nanos(self) -> u32 {
        self.nanos
    }

    /// The same point, printed in UTC.
    pub(crate) fn in_utc(self) -> Timestamp {
        Timestamp { offset: 0, ..self }
    }

    /// The point `duration` later; none beyond the range of timestamps.
    pub(crate) fn plus(self, duration: Duration) -> Option<Timestamp> {
        let total = self.total_nanos() + i128::from(duration.0);
        let per_second = i128::from(NANOS_PER_SECOND);
        let seconds = i64::try_from(total.div_euclid(per_second)).ok()?;
        let nanos = u32::try_from(total.rem_euclid(per_second)).ok()?;
        Timestamp::with_offset(seconds, nanos, self.offset)
    }

    /// The span from `earlier` to here; none if 64 bits of nanoseconds cannot hold it.
    pub(crate) fn since(self, earlier: Timestamp) -> Option<Duration> {
        i64::try_from(self.total_nanos() - earlier.total_nanos())
            .ok()
            .map(Duration)
    }

    fn total_nanos(self) -> i128 {
        i128::from(self.seconds) * i128::from(NANOS_PER_SECOND) + i128::from(self.nanos)
    }
}

impl PartialEq for Timestamp {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Timestamp {}

impl PartialOrd for Timestamp {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timestamp {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.seconds, self.nanos).cmp(&(other.seconds, other.nanos))
    }
}

impl fmt::Display for Timestamp {
    /// RFC 3339 with as many fractional digits as needed.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let at = DateTime::from_unix(self.seconds + i64::from(self.offset));
        write!(
            f,
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}",
            at.year, at.month, at.day, at.hour, at.minute, at.second
        )?;
        if self.nanos > 0 {
            let fraction = format!("{:09}", self.nanos);
            write!(f, ".{}", fraction.trim_end_matches('0'))?;
        }
        if self.offset == 0 {
            return f.write_str("Z");
        }
        let sign = if self.offset < 0 { '-' } else { '+' };
        let minutes = self.offset.abs() / 60;
        write!(f, "{sign}{:02}:{:02}", minutes / 60, minutes % 60)
    }
}

/// A span of time in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Duration(i64);

impl Duration {
    /// A span of this many nanoseconds.
    pub fn from_nanoseconds(nanoseconds: i64) -> Duration {
        Duration(nanoseconds)
    }

    /// The span in nanoseconds.
    pub fn nanoseconds(self) -> i64 {
        self.0
    }

    pub(crate) fn plus(self, other: Duration) -> Option<Duration> {
        self.0.checked_add(other.0).map(Duration)
    }

    pub(crate) fn minus(self, other: Duration) -> Option<Duration> {
        self.0.checked_sub(other.0).map(Duration)
    }

    pub(crate) fn negated(self) -> Option<Duration> {
        self.0.checked_neg().map(Duration)
    }
}

impl fmt::Display for Duration {
    /// Seconds with the shortest fraction: `90s`, `1.5s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        #[expect(clippy::cast_precision_loss, reason = "Go computes it so")]
        let seconds = (self.0 / NANOS_PER_SECOND) as f64
            + (self.0 % NANOS_PER_SECOND) as f64 / NANOS_PER_SECOND as f64;
        write!(f, "{seconds}s")
    }
}

#[cfg(test)]
mod tests;
