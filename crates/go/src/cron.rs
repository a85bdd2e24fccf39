//! Schedules of cron, as `github.com/robfig/cron` reads them: what CronJobs, policies and workflows have.

use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

use crate::duration::GoDuration;
use crate::quote::quote;

/// A schedule that has been read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    kind: Kind,
    zone: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kind {
    /// At the minutes that match.
    Times(Box<Fields>),
    /// Every so often.
    Every(SignedDuration),
}

/// Which minutes, hours, days, months and weekdays match: one bit each.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Fields {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Whether days of the month or weekdays are left open: then only the other counts.
    has_star: bool,
}

/// A field of a schedule: its bounds, and names for its values.
struct Field {
    low: i64,
    high: i64,
    names: &'static [&'static str],
}

const FIELDS: [Field; 5] = [
    Field::plain(0, 59),
    Field::plain(0, 23),
    Field::plain(1, 31),
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

/// Dates that do not come within this many years never come.
const YEARS: i16 = 5;

impl Schedule {
    /// Reads a schedule of five fields, a descriptor such as `@daily`, or `@every 1h`, with or without
    /// `TZ=` before it. `is_zone` tells whether there is a time zone of a name.
    ///
    /// ```
    /// use bellwether_go::cron::Schedule;
    ///
    /// let schedule = Schedule::parse("*/15 8 * * mon-fri", |_| true).unwrap();
    /// let friday = "2026-01-02T09:00:00Z".parse().unwrap();
    /// let next = schedule.next(friday, &jiff::tz::TimeZone::UTC).unwrap();
    /// assert_eq!(next.to_string(), "2026-01-05T08:00:00Z");
    /// assert_eq!(
    ///     Schedule::parse("60 * * * *", |_| true).unwrap_err(),
    ///     "end of range (60) above maximum (59): 60"
    /// );
    /// ```
    pub fn parse(text: &str, is_zone: impl Fn(&str) -> bool) -> Result<Self, String> {
        if text.is_empty() {
            return Err("empty spec string".to_owned());
        }
        let (zone, rest) = split_zone(text)?;
        if let Some(zone) = zone.filter(|zone| !zone.is_empty() && !is_zone(zone)) {
            return Err(format!(
                "provided bad location {zone}: unknown time zone {zone}"
            ));
        }
        Ok(Self {
            kind: if rest.starts_with('@') {
                descriptor(rest)?
            } else {
                Kind::Times(Box::new(Fields::parse(rest)?))
            },
            zone: zone.map(ToOwned::to_owned),
        })
    }

    /// Returns the time zone that the schedule names itself; an empty one is UTC.
    pub fn zone(&self) -> Option<&str> {
        self.zone.as_deref()
    }

    /// Returns the first time after that one; `None` if none comes within five years.
    ///
    /// A time that the clock leaps over does not happen, and one that it shows twice happens twice. Where
    /// clocks are set back by half an hour the original misses the next midnight; this does not.
    pub fn next(&self, time: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        match &self.kind {
            Kind::Every(every) => {
                let whole = Timestamp::from_second(time.as_second()).ok()?;
                whole.checked_add(*every).ok()
            }
            Kind::Times(fields) => fields.next(time, zone),
        }
    }

    /// Returns the last time after `from` and not after `to`.
    pub fn last_between(
        &self,
        from: Timestamp,
        to: Timestamp,
        zone: &TimeZone,
    ) -> Option<Timestamp> {
        // Short periods first: after a year away only the last minute counts.
        for hours in [1, 24, 24 * 32, 24 * 366, 24 * 366 * 9] {
            let window = to
                .checked_sub(SignedDuration::from_hours(hours))
                .unwrap_or(Timestamp::MIN);
            let mut time = from.max(window);
            let mut last = None;
            while let Some(next) = self.next(time, zone).filter(|next| *next <= to) {
                last = Some(next);
                time = next;
            }
            if last.is_some() || window <= from {
                return last;
            }
        }
        None
    }
}

/// The time zone before a schedule, and the rest of it.
fn split_zone(text: &str) -> Result<(Option<&str>, &str), String> {
    if !text.starts_with("TZ=") && !text.starts_with("CRON_TZ=") {
        return Ok((None, text));
    }
    let Some((zone, rest)) = text.split_once(' ') else {
        // The original panics here.
        return Err(format!("provided bad location {text}: no schedule follows"));
    };
    let zone = zone.split_once('=').map_or("", |(_, zone)| zone);
    Ok((Some(zone), rest.trim()))
}

fn descriptor(text: &str) -> Result<Kind, String> {
    let fields = match text {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        _ => {
            let Some(every) = text.strip_prefix("@every ") else {
                return Err(format!("unrecognized descriptor: {text}"));
            };
            let every: GoDuration = every
                .parse()
                .map_err(|error| format!("failed to parse duration {text}: {error}"))?;
            // Less than a second is a second.
            let seconds = every.to_signed().as_secs().max(1);
            return Ok(Kind::Every(SignedDuration::from_secs(seconds)));
        }
    };
    Fields::parse(fields).map(|fields| Kind::Times(Box::new(fields)))
}

impl Fields {
    fn parse(text: &str) -> Result<Self, String> {
        let texts: Vec<&str> = text.split_whitespace().collect();
        let [minutes, hours, days, months, weekdays] = texts[..] else {
            return Err(format!(
                "expected exactly 5 fields, found {}: [{}]",
                texts.len(),
                texts.join(" ")
            ));
        };
        let minutes = FIELDS[0].read(minutes)?;
        let hours = FIELDS[1].read(hours)?;
        let days = FIELDS[2].read(days)?;
        let months = FIELDS[3].read(months)?;
        let weekdays = FIELDS[4].read(weekdays)?;
        Ok(Self {
            minutes: minutes.0,
            hours: hours.0,
            days: days.0,
            months: months.0,
            weekdays: weekdays.0,
            has_star: days.1 || weekdays.1,
        })
    }

    fn next(&self, time: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let mut date = zone.to_datetime(time).date();
        let last_year = date.year().checked_add(YEARS)?;
        while date.year() <= last_year {
            if self.fits_date(date)
                && let Some(found) = self.next_on(date, time, zone)
            {
                return Some(found);
            }
            date = date.tomorrow().ok()?;
        }
        None
    }

    /// The first time of a day after that one: minute by minute, since clocks may be set meanwhile.
    fn next_on(&self, date: Date, time: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let minute = SignedDuration::from_mins(1);
        let midnight = DateTime::from_parts(date, jiff::civil::Time::midnight());
        let start = zone.to_ambiguous_timestamp(midnight).compatible().ok()?;
        let passed = time.duration_since(start).as_secs().div_euclid(60);
        let mut instant = if passed < 0 {
            start
        } else {
            start
                .checked_add(SignedDuration::from_mins(passed + 1))
                .ok()?
        };
        loop {
            let local = zone.to_datetime(instant);
            if local.date() != date {
                return None;
            }
            let fits = has(self.hours, local.hour())
                && has(self.minutes, local.minute())
                && instant > time;
            if fits {
                return Some(instant);
            }
            instant = instant.checked_add(minute).ok()?;
        }
    }

    fn fits_date(&self, date: Date) -> bool {
        let day = has(self.days, date.day());
        let weekday = has(self.weekdays, date.weekday().to_sunday_zero_offset());
        // If both are given, one of them suffices.
        let fits_day = if self.has_star {
            day && weekday
        } else {
            day || weekday
        };
        has(self.months, date.month()) && fits_day
    }
}

fn has(set: u64, number: i8) -> bool {
    u32::try_from(number).is_ok_and(|number| set & (1 << number) != 0)
}

impl Field {
    const fn plain(low: i64, high: i64) -> Self {
        Self {
            low,
            high,
            names: &[],
        }
    }

    /// The numbers that a text means, and whether it leaves everything open.
    fn read(&self, text: &str) -> Result<(u64, bool), String> {
        let mut all = (0, false);
        for range in text.split(',').filter(|range| !range.is_empty()) {
            let (set, has_star) = self.read_range(range)?;
            all.0 |= set;
            all.1 |= has_star;
        }
        Ok(all)
    }

    /// `*`, `5`, `1-5`, each with `/2` or without.
    fn read_range(&self, range: &str) -> Result<(u64, bool), String> {
        let mut parts = range.split('/');
        let span = parts.next().unwrap_or_default();
        let step = parts.next();
        let has_too_many_slashes = parts.next().is_some();
        let mut ends = span.split('-');
        let first = ends.next().unwrap_or_default();
        let second = ends.next();
        let is_star = matches!(first, "*" | "?");
        let (start, mut end) = if is_star {
            (self.low, self.high)
        } else {
            let start = self.number(first)?;
            match second {
                Some(_) if ends.next().is_some() => {
                    return Err(format!("too many hyphens: {range}"));
                }
                Some(second) => (start, self.number(second)?),
                None => (start, start),
            }
        };
        if has_too_many_slashes {
            return Err(format!("too many slashes: {range}"));
        }
        let step = match step {
            None => 1,
            Some(step) => {
                let step = plain_number(step)?;
                if second.is_none() && !is_star {
                    end = self.high;
                }
                step
            }
        };
        self.check(start, end, step, range)?;
        let mut set = 0;
        let mut number = start;
        while number <= end {
            set |= 1_u64 << number;
            number = number.saturating_add(step);
        }
        Ok((set, is_star && step == 1))
    }

    fn check(&self, start: i64, end: i64, step: i64, range: &str) -> Result<(), String> {
        let (low, high) = (self.low, self.high);
        if start < low {
            return Err(format!(
                "beginning of range ({start}) below minimum ({low}): {range}"
            ));
        }
        if end > high {
            return Err(format!(
                "end of range ({end}) above maximum ({high}): {range}"
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

    fn number(&self, text: &str) -> Result<i64, String> {
        let name = text.to_lowercase();
        match self.names.iter().position(|known| *known == name) {
            Some(index) => Ok(self.low + i64::try_from(index).unwrap_or_default()),
            None => plain_number(text),
        }
    }
}

/// `strconv.Atoi`, and no negative numbers.
fn plain_number(text: &str) -> Result<i64, String> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    let why = match text.parse::<i64>() {
        Ok(number) if number >= 0 => return Ok(number),
        Ok(number) => return Err(format!("negative number ({number}) not allowed: {text}")),
        Err(_) if is_number => "value out of range",
        Err(_) => "invalid syntax",
    };
    let quoted = quote(text);
    Err(format!(
        "failed to parse int from {text}: strconv.Atoi: parsing {quoted}: {why}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What Go gave: schedule, zone, from, times.
    const NEXT: &str = include_str!("../tests/data/cron-next.txt");
    /// What Go gave: schedule, error.
    const ERRORS: &str = include_str!("../tests/data/cron-errors.txt");

    fn rows(text: &'static str) -> impl Iterator<Item = Vec<&'static str>> {
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| line.split('\t').collect())
    }

    #[test]
    fn times_are_those_of_go() {
        let mut wrong = Vec::new();
        for row in rows(NEXT) {
            let [schedule, zone, from, times] = row[..] else {
                panic!("{row:?}");
            };
            let parsed = Schedule::parse(schedule, |_| true).unwrap();
            let zone = TimeZone::posix(zone).unwrap();
            let mut time: Timestamp = from.parse().unwrap();
            let mut found = Vec::new();
            for _ in 0..3 {
                let Some(next) = parsed.next(time, &zone) else {
                    break;
                };
                found.push(next.to_string());
                time = next;
            }
            if found.join(" ") != times {
                wrong.push(format!("{row:?}: {found:?}"));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn errors_are_those_of_go() {
        for row in rows(ERRORS) {
            let schedule = row[0].replace("\\t", "\t");
            let expected = row.get(1).copied().unwrap_or_default();
            let found = Schedule::parse(&schedule, |zone| zone != "Nowhere/City");
            let found = found.err().unwrap_or_default();
            assert_eq!(found, expected, "{schedule:?}");
        }
        assert!(Schedule::parse("TZ=UTC", |_| true).is_err(), "no panic");
        let out_of_range = "99999999999999999999 * * * *";
        let error = Schedule::parse(out_of_range, |_| true).unwrap_err();
        assert!(error.ends_with("value out of range"), "{error}");
    }

    #[test]
    fn a_zone_is_named_by_the_schedule() {
        let zone = |text: &str| {
            let schedule = Schedule::parse(text, |_| true).unwrap();
            schedule.zone().map(ToOwned::to_owned)
        };
        assert_eq!(zone("0 5 * * *"), None);
        assert_eq!(
            zone("CRON_TZ=Asia/Tokyo 0 5 * * *").as_deref(),
            Some("Asia/Tokyo")
        );
    }

    #[test]
    fn only_the_last_missed_time_counts() {
        let check = |text: &str, from: &str, to: &str, expected: Option<&str>| {
            let schedule = Schedule::parse(text, |_| true).unwrap();
            let time = |text: &str| text.parse::<Timestamp>().unwrap();
            let last = schedule.last_between(time(from), time(to), &TimeZone::UTC);
            assert_eq!(last, expected.map(time), "{text}");
        };
        let (old, now) = ("2020-01-01T00:00:00Z", "2026-01-01T00:00:30Z");
        check("* * * * *", old, now, Some("2026-01-01T00:00:00Z"));
        check(
            "@yearly",
            old,
            "2026-06-01T00:00:00Z",
            Some("2026-01-01T00:00:00Z"),
        );
        check(
            "@yearly",
            "2026-01-01T00:00:00Z",
            "2026-06-01T00:00:00Z",
            None,
        );
    }
}
