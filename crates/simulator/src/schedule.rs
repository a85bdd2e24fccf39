//! Schedules of cron jobs: when is the next time?

use bellwether_json::duration::GoDuration;
use jiff::civil::{Date, DateTime, Time};
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};

/// A schedule that has been understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Schedule {
    /// At the minutes that match.
    Times(Box<Fields>),
    /// Every so often.
    Every(SignedDuration),
}

/// Which minutes, hours, days, months and weekdays match: one bit each.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fields {
    minutes: u64,
    hours: u64,
    days: u64,
    months: u64,
    weekdays: u64,
    /// Whether days of the month are left open: then only weekdays count, and the other way round.
    any_day: bool,
    any_weekday: bool,
}

const MONTHS: [&str; 12] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec",
];
const WEEKDAYS: [&str; 7] = ["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
/// Every date comes round within this time, the 29th of February included.
const YEARS: i16 = 9;

impl Schedule {
    /// Reads a schedule; the server lets in only those that can be read.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = match text.trim() {
            "@yearly" | "@annually" => "0 0 1 1 *",
            "@monthly" => "0 0 1 * *",
            "@weekly" => "0 0 * * 0",
            "@daily" | "@midnight" => "0 0 * * *",
            "@hourly" => "0 * * * *",
            other => other,
        };
        if let Some(every) = text.strip_prefix("@every ") {
            let every: GoDuration = every.parse().ok()?;
            // Less than a second is a second.
            return Some(Self::Every(SignedDuration::from_secs(
                every.as_secs().max(1),
            )));
        }
        let mut parts = text.split_whitespace();
        let mut next = |low, high, names: &[&str]| field(parts.next()?, low, high, names);
        let (minutes, _) = next(0, 59, &[])?;
        let (hours, _) = next(0, 23, &[])?;
        let (days, any_day) = next(1, 31, &[])?;
        let (months, _) = next(1, 12, &MONTHS)?;
        let (weekdays, any_weekday) = next(0, 6, &WEEKDAYS)?;
        let fields = Fields {
            minutes,
            hours,
            days,
            months,
            weekdays,
            any_day,
            any_weekday,
        };
        parts
            .next()
            .is_none()
            .then(|| Self::Times(Box::new(fields)))
    }

    /// The first time after that one; nothing if there is none.
    pub(crate) fn next(&self, time: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        match self {
            Self::Every(every) => {
                let whole = Timestamp::from_second(time.as_second()).ok()?;
                whole.checked_add(*every).ok()
            }
            Self::Times(fields) => fields.next(time, zone),
        }
    }

    /// The last time after `from` and not after `to`.
    pub(crate) fn last_between(
        &self,
        from: Timestamp,
        to: Timestamp,
        zone: &TimeZone,
    ) -> Option<Timestamp> {
        // Short periods first: who was away for a year is interested in the last minute only.
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

impl Fields {
    fn next(&self, time: Timestamp, zone: &TimeZone) -> Option<Timestamp> {
        let local = zone.to_datetime(time);
        let mut date = local.date();
        let mut after = Some(local.time());
        let last_year = date.year().checked_add(YEARS)?;
        while date.year() <= last_year {
            if self.fits_date(date) {
                for clock in self.times(after) {
                    let moment = DateTime::from_parts(date, clock);
                    // A time that the clock leaps over does not happen; one that it shows twice
                    // happens the first time.
                    let found = zone.to_ambiguous_timestamp(moment).compatible().ok()?;
                    if found > time && zone.to_datetime(found).time() == clock {
                        return Some(found);
                    }
                }
            }
            after = None;
            date = date.tomorrow().ok()?;
        }
        None
    }

    fn fits_date(&self, date: Date) -> bool {
        let has = |set: u64, number: i8| {
            u32::try_from(number).is_ok_and(|number| set & (1 << number) != 0)
        };
        let day = has(self.days, date.day());
        let weekday = has(self.weekdays, date.weekday().to_sunday_zero_offset());
        // If both are given, one of them suffices.
        let fits_day = if self.any_day || self.any_weekday {
            day && weekday
        } else {
            day || weekday
        };
        has(self.months, date.month()) && fits_day
    }

    /// The times of a day that match, from that one on.
    fn times(&self, from: Option<Time>) -> impl Iterator<Item = Time> {
        let (hours, minutes) = (self.hours, self.minutes);
        let first_hour = from.map_or(0, Time::hour);
        (first_hour..24)
            .filter(move |hour| hours & (1 << hour) != 0)
            .flat_map(move |hour| {
                (0..60_i8)
                    .filter(move |minute| minutes & (1 << minute) != 0)
                    .filter_map(move |minute| Time::new(hour, minute, 0, 0).ok())
            })
    }
}

/// The numbers that a field means, and whether it leaves everything open.
fn field(text: &str, low: u32, high: u32, names: &[&str]) -> Option<(u64, bool)> {
    let mut set = 0;
    let mut open = false;
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (span, step) = match part.split_once('/') {
            Some((span, step)) => (
                span,
                Some(step.parse::<u32>().ok().filter(|step| *step > 0)?),
            ),
            None => (part, None),
        };
        let number = |text: &str| {
            let name = text.to_lowercase();
            let position = names.iter().position(|known| *known == name);
            position.map_or_else(
                || text.parse().ok(),
                |position| Some(low + u32::try_from(position).ok()?),
            )
        };
        let (first, last) = match (span, span.split_once('-')) {
            ("*" | "?", _) => {
                open |= step.is_none();
                (low, high)
            }
            (_, Some((first, last))) => (number(first)?, number(last)?),
            (_, None) => {
                let first = number(span)?;
                (first, if step.is_some() { high } else { first })
            }
        };
        if first < low || last > high || first > last {
            return None;
        }
        let step = usize::try_from(step.unwrap_or(1)).ok()?;
        for number in (first..=last).step_by(step) {
            set |= 1 << number;
        }
    }
    Some((set, open))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(schedule: &str, zone: &TimeZone, from: &str, expected: &[&str]) {
        let schedule = Schedule::parse(schedule).unwrap();
        let mut time: Timestamp = from.parse().unwrap();
        for expected in expected {
            time = schedule.next(time, zone).unwrap();
            assert_eq!(time.to_string(), *expected, "{schedule:?}");
        }
    }

    #[test]
    fn the_next_time_is_found() {
        let utc = TimeZone::UTC;
        check(
            "*/15 * * * *",
            &utc,
            "2026-01-01T00:01:30Z",
            &["2026-01-01T00:15:00Z", "2026-01-01T00:30:00Z"],
        );
        check(
            "0 0 29 2 *",
            &utc,
            "2026-01-01T00:00:00Z",
            &["2028-02-29T00:00:00Z", "2032-02-29T00:00:00Z"],
        );
        check(
            "30 8 * * mon-fri",
            &utc,
            "2026-01-02T09:00:00Z",
            &["2026-01-05T08:30:00Z"],
        );
        // The 13th, and Fridays too.
        check(
            "0 0 13 * fri",
            &utc,
            "2026-01-01T00:00:00Z",
            &[
                "2026-01-02T00:00:00Z",
                "2026-01-09T00:00:00Z",
                "2026-01-13T00:00:00Z",
            ],
        );
        check(
            "5/20 * ? * *",
            &utc,
            "2026-01-01T00:00:00Z",
            &[
                "2026-01-01T00:05:00Z",
                "2026-01-01T00:25:00Z",
                "2026-01-01T00:45:00Z",
                "2026-01-01T01:05:00Z",
            ],
        );
        check(
            "@hourly",
            &utc,
            "2026-01-01T00:00:00Z",
            &["2026-01-01T01:00:00Z"],
        );
        check(
            "@every 90m",
            &utc,
            "2026-01-01T00:00:00Z",
            &["2026-01-01T01:30:00Z", "2026-01-01T03:00:00Z"],
        );
    }

    #[test]
    fn time_zones_count() {
        let zone = TimeZone::fixed(jiff::tz::offset(2));
        check(
            "0 9 * * *",
            &zone,
            "2026-01-01T00:00:00Z",
            &["2026-01-01T07:00:00Z", "2026-01-02T07:00:00Z"],
        );
    }

    #[test]
    fn a_time_that_the_clock_leaps_over_does_not_happen() {
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        check(
            "30 2 * * *",
            &zone,
            "2026-03-28T00:00:00Z",
            &["2026-03-28T01:30:00Z", "2026-03-30T00:30:00Z"],
        );
    }

    #[test]
    fn nonsense_is_refused_and_never_panics() {
        for text in [
            "",
            "* * * *",
            "* * * * * *",
            "60 * * * *",
            "5-1 * * * *",
            "*/0 * * * *",
            "@never",
            "a * * * *",
            "0 0 0 * *",
        ] {
            assert_eq!(Schedule::parse(text), None, "{text}");
        }
        let never = Schedule::parse("0 0 31 2 *").unwrap();
        assert_eq!(never.next(Timestamp::UNIX_EPOCH, &TimeZone::UTC), None);
    }

    #[test]
    fn only_the_last_missed_time_counts() {
        let schedule = Schedule::parse("* * * * *").unwrap();
        let time = |text: &str| text.parse::<Timestamp>().unwrap();
        let last = schedule.last_between(
            time("2020-01-01T00:00:00Z"),
            time("2026-01-01T00:00:30Z"),
            &TimeZone::UTC,
        );
        assert_eq!(last, Some(time("2026-01-01T00:00:00Z")));
        let yearly = Schedule::parse("@yearly").unwrap();
        let last = yearly.last_between(
            time("2020-01-01T00:00:00Z"),
            time("2026-06-01T00:00:00Z"),
            &TimeZone::UTC,
        );
        assert_eq!(last, Some(time("2026-01-01T00:00:00Z")));
        let none = yearly.last_between(
            time("2026-01-01T00:00:00Z"),
            time("2026-06-01T00:00:00Z"),
            &TimeZone::UTC,
        );
        assert_eq!(none, None);
    }
}
