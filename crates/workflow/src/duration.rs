//! Durations as authors of workflows write them: Go's notation, and days.

use bellwether_go::duration::GoDuration;
use jiff::SignedDuration;

/// What is wrong with a duration, in the words of Go.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("time: invalid duration {text:?}")]
pub struct InvalidDuration {
    text: String,
}

/// Reads a duration such as `90s`, `1h30m` or `2d`.
pub fn parse(text: &str) -> Result<SignedDuration, InvalidDuration> {
    let invalid = || InvalidDuration {
        text: text.to_owned(),
    };
    let (days, rest) = match text.split_once('d') {
        Some((days, rest)) => (days.parse::<u32>().map_err(|_| invalid())?, rest),
        None => (0, text),
    };
    let days = SignedDuration::from_hours(24 * i64::from(days));
    if rest.is_empty() && rest.len() < text.len() {
        return Ok(days);
    }
    let rest: GoDuration = rest.parse().map_err(|_| invalid())?;
    days.checked_add(rest.to_signed()).ok_or_else(invalid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, seconds: Option<i64>) {
        assert_eq!(
            parse(text).ok().map(|span| span.as_secs()),
            seconds,
            "{text}"
        );
    }

    #[test]
    fn durations_are_those_of_go_and_days() {
        check("90s", Some(90));
        check("1h30m", Some(5400));
        check("1d", Some(86_400));
        check("1d1h", Some(90_000));
        check("0", Some(0));
        check("soon", None);
        check("d", None);
        check("", None);
    }
}
