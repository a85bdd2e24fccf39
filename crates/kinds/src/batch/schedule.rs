//! Schedules of CronJobs, with the messages of the parser that Kubernetes uses
//! (`robfig/cron: parser.go`).

use bellwether_json::duration::GoDuration;

/// A field of a schedule: its bounds, and names for its values.
struct Field {
    low: u32,
    high: u32,
    names: &'static [&'static str],
}

const FIELDS: [Field; 5] = [
    Field {
        low: 0,
        high: 59,
        names: &[],
    },
    Field {
        low: 0,
        high: 23,
        names: &[],
    },
    Field {
        low: 1,
        high: 31,
        names: &[],
    },
    Field {
        low: 1,
        high: 12,
        names: &[
            "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
        ],
    },
    Field {
        low: 0,
        high: 6,
        names: &["sun", "mon", "tue", "wed", "thu", "fri", "sat"],
    },
];

/// Why a text is no schedule.
pub(super) fn check(schedule: &str) -> Result<(), String> {
    let mut schedule = schedule;
    if schedule.starts_with("TZ=") || schedule.starts_with("CRON_TZ=") {
        let Some((zone, rest)) = schedule.split_once(' ') else {
            return Err(format!(
                "provided bad location {schedule}: unknown time zone"
            ));
        };
        let zone = zone.split_once('=').map_or("", |(_, zone)| zone);
        if zone_problem(zone).is_some() {
            return Err(format!(
                "provided bad location {zone}: unknown time zone {zone}"
            ));
        }
        schedule = rest.trim();
    }
    if let Some(word) = schedule.strip_prefix('@') {
        return descriptor(schedule, word);
    }
    let fields: Vec<_> = schedule.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Err(format!(
            "expected exactly 5 fields, found {}: [{}]",
            fields.len(),
            fields.join(" ")
        ));
    }
    for (text, field) in fields.iter().zip(&FIELDS) {
        for range in text.split(',').filter(|range| !range.is_empty()) {
            check_range(range, field)?;
        }
    }
    Ok(())
}

fn descriptor(schedule: &str, word: &str) -> Result<(), String> {
    const WORDS: [&str; 7] = [
        "yearly", "annually", "monthly", "weekly", "daily", "midnight", "hourly",
    ];
    if WORDS.contains(&word) {
        return Ok(());
    }
    if let Some(duration) = word.strip_prefix("every ") {
        return match duration.parse::<GoDuration>() {
            Ok(_) => Ok(()),
            Err(error) => Err(format!("failed to parse duration {schedule}: {error}")),
        };
    }
    Err(format!("unrecognized descriptor: {schedule}"))
}

/// `*`, `5`, `1-5`, each with `/2` or without.
fn check_range(range: &str, field: &Field) -> Result<(), String> {
    let mut parts = range.split('/');
    let span = parts.next().unwrap_or_default();
    let step = parts.next();
    if parts.next().is_some() {
        return Err(format!("too many slashes: {range}"));
    }
    let mut ends = span.split('-');
    let first = ends.next().unwrap_or_default();
    let second = ends.next();
    if ends.next().is_some() {
        return Err(format!("too many hyphens: {range}"));
    }
    let (start, end) = if matches!(first, "*" | "?") {
        (field.low, field.high)
    } else {
        let start = number(first, field)?;
        match second {
            Some(second) => (start, number(second, field)?),
            None if step.is_some() => (start, field.high),
            None => (start, start),
        }
    };
    let step = match step {
        Some(step) => plain_number(step)?,
        None => 1,
    };
    if start < field.low {
        return Err(format!(
            "beginning of range ({start}) below minimum ({}): {range}",
            field.low
        ));
    }
    if end > field.high {
        return Err(format!(
            "end of range ({end}) above maximum ({}): {range}",
            field.high
        ));
    }
    if start > end {
        return Err(format!(
            "beginning of range ({start}) beyond end of range ({end}): {range}"
        ));
    }
    if step == 0 {
        return Err(format!(
            "step of range should be a positive number: {range}"
        ));
    }
    Ok(())
}

fn number(text: &str, field: &Field) -> Result<u32, String> {
    let name = text.to_lowercase();
    if let Some(index) = field.names.iter().position(|known| *known == name) {
        return Ok(field.low + u32::try_from(index).unwrap_or_default());
    }
    plain_number(text)
}

fn plain_number(text: &str) -> Result<u32, String> {
    match text.parse::<i64>() {
        Ok(number) if number < 0 => Err(format!("negative number ({number}) not allowed: {text}")),
        Ok(number) => u32::try_from(number).map_err(|_| parse_failure(text)),
        Err(_) => Err(parse_failure(text)),
    }
}

fn parse_failure(text: &str) -> String {
    format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: invalid syntax")
}

/// Why a text cannot be the name of a time zone; whether there is such a zone only a database knows,
/// and reading one is not for this crate.
pub(super) fn zone_problem(zone: &str) -> Option<String> {
    if zone.is_empty() {
        return Some("timeZone must be nil or non-empty string".to_owned());
    }
    let valid =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-' | b'+');
    let strange = zone.split('/').any(|part| {
        matches!(part, "" | "." | "..") || part.starts_with('-') || !part.bytes().all(valid)
    });
    if strange {
        return Some(format!("unknown time zone {zone}"));
    }
    if zone.eq_ignore_ascii_case("local") {
        return Some(
            "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
                .to_owned(),
        );
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_understood() {
        for good in [
            "* * * * *",
            "*/5 0-6,12 1 jan-MAR mon",
            "@hourly",
            "@every 1h30m",
            "5/10 * ? * *",
        ] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_schedule_is_said() {
        let cases = [
            ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            (
                "5-1 * * * *",
                "beginning of range (5) beyond end of range (1): 5-1",
            ),
            (
                "*/0 * * * *",
                "step of range should be a positive number: */0",
            ),
            ("1/2/3 * * * *", "too many slashes: 1/2/3"),
            (
                "a * * * *",
                "failed to parse int from a: strconv.Atoi: parsing \"a\": invalid syntax",
            ),
            ("@never", "unrecognized descriptor: @never"),
        ];
        for (schedule, expected) in cases {
            assert_eq!(check(schedule), Err(expected.to_owned()), "{schedule}");
        }
    }
}
