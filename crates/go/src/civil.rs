//! Dates and times of the proleptic Gregorian calendar, with an offset from UTC.

const SECONDS_PER_DAY: i64 = 86_400;

/// A point in time as a calendar and a clock in UTC show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DateTime {
    /// The year, which may be negative.
    pub year: i64,
    /// From 1 to 12.
    pub month: i64,
    /// From 1 to 31.
    pub day: i64,
    /// From 0 to 23.
    pub hour: i64,
    /// From 0 to 59.
    pub minute: i64,
    /// From 0 to 59.
    pub second: i64,
}

impl DateTime {
    /// Computes the date and time so many seconds after 1970.
    pub fn from_unix(seconds: i64) -> Self {
        let of_day = seconds.rem_euclid(SECONDS_PER_DAY);
        let (year, month, day) = date_from_days(seconds.div_euclid(SECONDS_PER_DAY));
        Self {
            year,
            month,
            day,
            hour: of_day / 3600,
            minute: of_day / 60 % 60,
            second: of_day % 60,
        }
    }

    /// The day of the week, Sunday being zero.
    pub fn weekday(&self) -> i64 {
        // 1970 began on a Thursday.
        (days_from_date(self.year, self.month, self.day) + 4).rem_euclid(7)
    }

    /// The day of the year, from 1.
    pub fn year_day(&self) -> i64 {
        days_from_date(self.year, self.month, self.day) - days_from_date(self.year, 1, 1) + 1
    }
}

/// A date and time as written, and where the writer's clock stood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Instant {
    /// The year, which may be negative.
    pub year: i64,
    /// From 1 to 12.
    pub month: u32,
    /// From 1 to 31.
    pub day: u32,
    /// From 0 to 23.
    pub hour: u32,
    /// From 0 to 59.
    pub minute: u32,
    /// From 0 to 59.
    pub second: u32,
    /// Below a thousand million.
    pub nanosecond: u32,
    /// Seconds east of UTC.
    pub offset: i64,
    /// The abbreviation of the zone, `UTC` or as it was read.
    pub zone: String,
}

impl Instant {
    /// The instant so many seconds and nanoseconds after 1970; `None` beyond the year 292 million.
    pub fn from_unix(seconds: i64, nanoseconds: i64) -> Option<Self> {
        let seconds = seconds.checked_add(nanoseconds.div_euclid(1_000_000_000))?;
        let at = DateTime::from_unix(seconds);
        let small = |number: i64| u32::try_from(number).ok();
        Some(Instant {
            year: at.year,
            month: small(at.month)?,
            day: small(at.day)?,
            hour: small(at.hour)?,
            minute: small(at.minute)?,
            second: small(at.second)?,
            nanosecond: small(nanoseconds.rem_euclid(1_000_000_000))?,
            offset: 0,
            zone: "UTC".to_owned(),
        })
    }

    /// The same instant on a clock in UTC.
    #[must_use]
    pub fn in_utc(&self) -> Instant {
        Instant::from_unix(self.to_unix(), i64::from(self.nanosecond))
            .unwrap_or_else(|| self.clone())
    }

    /// Seconds since 1970.
    pub fn to_unix(&self) -> i64 {
        let of_day = i64::from(self.hour * 3600 + self.minute * 60 + self.second);
        self.days()
            .saturating_mul(SECONDS_PER_DAY)
            .saturating_add(of_day - self.offset)
    }

    /// The day of the week, Sunday being zero.
    pub fn weekday(&self) -> usize {
        usize::try_from((self.days() + 4).rem_euclid(7)).unwrap_or(0)
    }

    /// The day of the year, from 1.
    pub fn year_day(&self) -> i64 {
        self.days() - days_from_date(self.year, 1, 1) + 1
    }

    fn days(&self) -> i64 {
        days_from_date(self.year, i64::from(self.month), i64::from(self.day))
    }
}

/// The number of days in a month.
pub fn days_in_month(year: i64, month: u32) -> u32 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if is_leap(year) => 29,
        2 => 28,
        _ => 31,
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Counts the days since 1970-01-01.
///
/// Years are counted from March, so that the leap day comes last.
pub fn days_from_date(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month = (month + 9) % 12;
    let day_of_year = (153 * month + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Year, month and day so many days after 1970-01-01.
fn date_from_days(days: i64) -> (i64, i64, i64) {
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_calendar_counts_days_without_gaps(days in -700_000i64..2_900_000) {
            let today = DateTime::from_unix(days * SECONDS_PER_DAY);
            prop_assert_eq!(days_from_date(today.year, today.month, today.day), days);
        }
    }
}
