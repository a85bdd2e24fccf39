//! Dates and times of the proleptic Gregorian calendar, with an offset from UTC.

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

const SECONDS_PER_DAY: i64 = 86_400;

impl Instant {
    /// The instant so many seconds and nanoseconds after 1970; `None` beyond the year 292 million.
    pub fn from_unix(seconds: i64, nanoseconds: i64) -> Option<Self> {
        let seconds = seconds.checked_add(nanoseconds.div_euclid(1_000_000_000))?;
        let days = seconds.div_euclid(SECONDS_PER_DAY);
        let of_day = u32::try_from(seconds.rem_euclid(SECONDS_PER_DAY)).ok()?;
        let (year, month, day) = date_from_days(days)?;
        Some(Instant {
            year,
            month,
            day,
            hour: of_day / 3600,
            minute: of_day / 60 % 60,
            second: of_day % 60,
            nanosecond: u32::try_from(nanoseconds.rem_euclid(1_000_000_000)).ok()?,
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
        let days = days_from_date(self.year, self.month, self.day);
        days.saturating_mul(SECONDS_PER_DAY)
            .saturating_add(of_day - self.offset)
    }

    /// The day of the week, Sunday being zero.
    pub fn weekday(&self) -> usize {
        let days = days_from_date(self.year, self.month, self.day);
        // 1970 began on a Thursday.
        usize::try_from((days + 4).rem_euclid(7)).unwrap_or(0)
    }

    /// The day of the year, from 1.
    pub fn year_day(&self) -> i64 {
        days_from_date(self.year, self.month, self.day) - days_from_date(self.year, 1, 1) + 1
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

/// Days since 1970-01-01. Years are counted from March so that the leap day comes last.
fn days_from_date(year: i64, month: u32, day: u32) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let month = (i64::from(month) + 9) % 12;
    let day_of_year = (153 * month + 2) / 5 + i64::from(day) - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

fn date_from_days(days: i64) -> Option<(i64, u32, u32)> {
    let days = days.checked_add(719_468)?;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = u32::try_from(day_of_year - (153 * shifted + 2) / 5 + 1).ok()?;
    let month = u32::try_from(if shifted < 10 {
        shifted + 3
    } else {
        shifted - 9
    })
    .ok()?;
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    Some((year, month, day))
}
