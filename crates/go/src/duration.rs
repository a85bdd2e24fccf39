//! Durations in Go's notation, such as `1h5m0s` or `1.5s`, which Kubernetes uses everywhere.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

const NANOSECOND: u64 = 1;
const MICROSECOND: u64 = 1000 * NANOSECOND;
const MILLISECOND: u64 = 1000 * MICROSECOND;
const SECOND: u64 = 1000 * MILLISECOND;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

/// A signed duration in nanoseconds, read and written as Go's `time.Duration`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct GoDuration(i64);

/// Why a text is not a duration, in Go's words.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("time: {problem} {}", quote(text))]
pub struct DurationError {
    problem: String,
    text: String,
}

impl GoDuration {
    /// A duration of so many nanoseconds.
    pub const fn from_nanos(nanoseconds: i64) -> Self {
        Self(nanoseconds)
    }

    /// A duration of so many seconds, at most what fits (292 years).
    pub const fn from_secs(seconds: i64) -> Self {
        Self(seconds.saturating_mul(1_000_000_000))
    }

    /// The duration in nanoseconds.
    pub const fn as_nanos(self) -> i64 {
        self.0
    }

    /// The duration in seconds, without the fraction.
    pub const fn as_secs(self) -> i64 {
        self.0 / 1_000_000_000
    }

    /// The duration for arithmetic with timestamps.
    pub const fn to_signed(self) -> jiff::SignedDuration {
        jiff::SignedDuration::from_nanos(self.0)
    }
}

impl From<GoDuration> for jiff::SignedDuration {
    fn from(duration: GoDuration) -> Self {
        duration.to_signed()
    }
}

impl FromStr for GoDuration {
    type Err = DurationError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = |problem: &str| DurationError {
            problem: problem.to_owned(),
            text: text.to_owned(),
        };
        let invalid = || error("invalid duration");
        let (is_negative, mut rest) = match text.as_bytes().first() {
            Some(b'-') => (true, &text[1..]),
            Some(b'+') => (false, &text[1..]),
            _ => (false, text),
        };
        if rest == "0" {
            return Ok(Self(0));
        }
        if rest.is_empty() {
            return Err(invalid());
        }
        let mut total: u64 = 0;
        while !rest.is_empty() {
            let (amount, after) = Amount::take(rest).ok_or_else(invalid)?;
            let end = after.find(|c: char| c == '.' || c.is_ascii_digit());
            let (unit, after) = after.split_at(end.unwrap_or(after.len()));
            if unit.is_empty() {
                return Err(error("missing unit in duration"));
            }
            let size = unit_size(unit)
                .ok_or_else(|| error(&format!("unknown unit {} in duration", quote(unit))))?;
            total = amount
                .nanoseconds(size)
                .and_then(|nanoseconds| total.checked_add(nanoseconds))
                .filter(|total| *total <= 1 << 63)
                .ok_or_else(invalid)?;
            rest = after;
        }
        let nanoseconds = if is_negative {
            0_i64.checked_sub_unsigned(total)
        } else {
            i64::try_from(total).ok()
        };
        nanoseconds.map(Self).ok_or_else(invalid)
    }
}

/// Go's time package quotes byte by byte.
pub(crate) fn quote(text: &str) -> String {
    let escape = |byte: u8| match byte {
        b'"' | b'\\' => format!("\\{}", char::from(byte)),
        b' '..=b'~' => char::from(byte).to_string(),
        _ => format!("\\x{byte:02x}"),
    };
    let escaped: String = text.bytes().map(escape).collect();
    format!("\"{escaped}\"")
}

/// Digits with an optional fraction.
struct Amount {
    whole: u64,
    fraction: u64,
    /// What the fraction is to be divided by.
    scale: f64,
}

impl Amount {
    fn take(text: &str) -> Option<(Self, &str)> {
        let (digits, mut rest) = split_digits(text);
        let whole = if digits.is_empty() {
            0
        } else {
            digits.parse().ok()?
        };
        if whole > 1 << 63 {
            return None;
        }
        let mut amount = Self {
            whole,
            fraction: 0,
            scale: 1.0,
        };
        let mut fraction = "";
        if let Some(after) = rest.strip_prefix('.') {
            (fraction, rest) = split_digits(after);
            for digit in fraction.bytes() {
                // Digits beyond what 63 bits hold are dropped, as in Go.
                let Some(next) = amount.fraction.checked_mul(10) else {
                    break;
                };
                let next = next + u64::from(digit - b'0');
                if next > 1 << 63 {
                    break;
                }
                amount.fraction = next;
                amount.scale *= 10.0;
            }
        }
        (!digits.is_empty() || !fraction.is_empty()).then_some((amount, rest))
    }

    fn nanoseconds(&self, unit: u64) -> Option<u64> {
        let whole = self.whole.checked_mul(unit)?;
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "positive, below one unit, and rounded in floating point by Go as well"
        )]
        let fraction = (self.fraction as f64 * (unit as f64 / self.scale)) as u64;
        whole.checked_add(fraction)
    }
}

fn split_digits(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at(end)
}

fn unit_size(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => NANOSECOND,
        // Both Unicode spellings of micro.
        "us" | "\u{b5}s" | "\u{3bc}s" => MICROSECOND,
        "ms" => MILLISECOND,
        "s" => SECOND,
        "m" => MINUTE,
        "h" => HOUR,
        _ => return None,
    })
}

impl fmt::Display for GoDuration {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanoseconds = self.0.unsigned_abs();
        if self.0 < 0 {
            formatter.write_str("-")?;
        }
        if nanoseconds < SECOND {
            return match nanoseconds {
                0 => formatter.write_str("0s"),
                1..MICROSECOND => write!(formatter, "{nanoseconds}ns"),
                MICROSECOND..MILLISECOND => {
                    write!(formatter, "{}\u{b5}s", Decimal(nanoseconds, MICROSECOND))
                }
                _ => write!(formatter, "{}ms", Decimal(nanoseconds, MILLISECOND)),
            };
        }
        let (hours, minutes) = (nanoseconds / HOUR, nanoseconds % HOUR / MINUTE);
        if hours > 0 {
            write!(formatter, "{hours}h")?;
        }
        if nanoseconds >= MINUTE {
            write!(formatter, "{minutes}m")?;
        }
        write!(formatter, "{}s", Decimal(nanoseconds % MINUTE, SECOND))
    }
}

impl Serialize for GoDuration {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for GoDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A number of parts of a unit, as a decimal without trailing zeros.
struct Decimal(u64, u64);

impl fmt::Display for Decimal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(parts, unit) = *self;
        write!(formatter, "{}", parts / unit)?;
        let fraction = parts % unit;
        if fraction == 0 {
            return Ok(());
        }
        let width = unit.ilog10() as usize;
        let digits = format!("{fraction:0width$}");
        write!(formatter, ".{}", digits.trim_end_matches('0'))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<(i64, &str), &str>) {
        match (text.parse::<GoDuration>(), expected) {
            (Ok(duration), Ok((nanoseconds, display))) => {
                assert_eq!(duration.as_nanos(), nanoseconds, "{text}");
                assert_eq!(duration.to_string(), display, "{text}");
            }
            (Err(error), Err(message)) => assert_eq!(error.to_string(), message),
            (actual, expected) => panic!("{text}: got {actual:?}, want {expected:?}"),
        }
    }

    #[test]
    fn durations_are_read_and_written_as_in_go() {
        const S: i64 = 1_000_000_000;
        check("0", Ok((0, "0s")));
        check("5m", Ok((300 * S, "5m0s")));
        check("1h5m", Ok((3900 * S, "1h5m0s")));
        check("90m", Ok((5400 * S, "1h30m0s")));
        check("1.5s", Ok((S + S / 2, "1.5s")));
        check("-1.5h", Ok((-5400 * S, "-1h30m0s")));
        check("+.5s", Ok((S / 2, "500ms")));
        check("1us", Ok((1000, "1µs")));
        check("1μs1500ns", Ok((2500, "2.5µs")));
        check("100ns", Ok((100, "100ns")));
        check("3.000000001s", Ok((3 * S + 1, "3.000000001s")));
        check(
            "-9223372036854775808ns",
            Ok((i64::MIN, "-2562047h47m16.854775808s")),
        );
        check("0.3333333333333333333h", Ok((1_200_000_000_000, "20m0s")));
    }

    #[test]
    fn json_holds_the_text() {
        let duration: GoDuration = serde_json::from_str("\"90s\"").unwrap();
        assert_eq!(serde_json::to_string(&duration).unwrap(), "\"1m30s\"");
    }

    #[test]
    fn errors_are_worded_as_in_go() {
        check("", Err("time: invalid duration \"\""));
        check("3", Err("time: missing unit in duration \"3\""));
        check("3d", Err("time: unknown unit \"d\" in duration \"3d\""));
        check(
            "3µm",
            Err(r#"time: unknown unit "\xc2\xb5m" in duration "3\xc2\xb5m""#),
        );
        check(".s", Err("time: invalid duration \".s\""));
        check("-", Err("time: invalid duration \"-\""));
        check("s", Err("time: invalid duration \"s\""));
        check(
            "9223372036854775808ns",
            Err("time: invalid duration \"9223372036854775808ns\""),
        );
        check("3000000h", Err("time: invalid duration \"3000000h\""));
        check(
            "99999999999999999999h",
            Err("time: invalid duration \"99999999999999999999h\""),
        );
    }

    proptest! {
        #[test]
        fn what_was_written_is_read_back(nanoseconds: i64) {
            let duration = GoDuration::from_nanos(nanoseconds);
            prop_assert_eq!(duration.to_string().parse(), Ok(duration));
        }

        #[test]
        fn no_text_panics(text in "[-+0-9.a-zµ]{0,30}") {
            let _ = text.parse::<GoDuration>();
        }
    }
}
