//! `time.Time`.

use bellwether_go::civil::Instant;
use bellwether_go::layout;
use bellwether_go::value::{IntKind, Kind, Method, MethodBody, Named, Object, Text, Type, Value};

/// A moment, and the clock on which it is shown.
#[derive(Debug, Clone)]
pub(super) struct Time {
    pub(super) seconds: i64,
    nanosecond: u32,
    zone: Zone,
}

#[derive(Debug, Clone)]
enum Zone {
    Utc,
    /// Seconds east of UTC, and an abbreviation that may be empty.
    Fixed(i64, String),
    Named(Box<jiff::tz::TimeZone>),
}

const SECOND: i128 = 1_000_000_000;

/// The `time.Time` of a text in the notation of RFC 3339, if it is one.
pub fn time_of(text: &str) -> Option<Value> {
    let instant = layout::parse("2006-01-02T15:04:05.999999999Z07:00", text).ok()?;
    Some(Value::object(Time::of(&instant)))
}

impl Time {
    /// The first of January of the year 1.
    pub(super) const ZERO: Self = Self {
        seconds: -62_135_596_800,
        nanosecond: 0,
        zone: Zone::Utc,
    };

    /// A moment after 1970, in UTC.
    pub(super) const fn new(seconds: i64, nanosecond: u32) -> Self {
        Self {
            seconds,
            nanosecond,
            zone: Zone::Utc,
        }
    }

    /// A moment as it was written.
    pub(super) fn of(instant: &Instant) -> Self {
        let zone = if instant.offset == 0 && matches!(&*instant.zone, "" | "UTC") {
            Zone::Utc
        } else {
            Zone::Fixed(instant.offset, instant.zone.clone())
        };
        Self {
            seconds: instant.to_unix(),
            nanosecond: instant.nanosecond,
            zone,
        }
    }

    pub(super) fn from_value(value: &Value) -> Option<&Self> {
        match value {
            Value::Object(object) => object.as_any().downcast_ref(),
            _ => None,
        }
    }

    /// On the clock of a zone; one that is not known is UTC, and so is the local one.
    pub(super) fn in_zone(&self, name: &str) -> Self {
        let zone = match name {
            "" | "UTC" | "Local" => Zone::Utc,
            _ => match jiff::tz::TimeZone::get(name) {
                Ok(zone) => Zone::Named(Box::new(zone)),
                Err(_) => Zone::Utc,
            },
        };
        Self {
            zone,
            ..self.clone()
        }
    }

    /// Date and time on its clock.
    pub(super) fn instant(&self) -> Instant {
        let (offset, zone) = match &self.zone {
            Zone::Utc => (0, "UTC".to_owned()),
            Zone::Fixed(offset, name) => (*offset, name.clone()),
            Zone::Named(zone) => match jiff::Timestamp::from_second(self.seconds) {
                Ok(timestamp) => {
                    let info = zone.to_offset_info(timestamp);
                    (
                        i64::from(info.offset().seconds()),
                        info.abbreviation().to_owned(),
                    )
                }
                Err(_) => (0, "UTC".to_owned()),
            },
        };
        let local = self.seconds.saturating_add(offset);
        let found = Instant::from_unix(local, i64::from(self.nanosecond));
        let mut instant = found.unwrap_or_else(|| Self::ZERO.instant());
        instant.offset = offset;
        instant.zone = zone;
        instant
    }

    fn nanoseconds(&self) -> i128 {
        i128::from(self.seconds) * SECOND + i128::from(self.nanosecond)
    }

    fn at(&self, nanoseconds: i128) -> Self {
        let seconds = nanoseconds.div_euclid(SECOND);
        Self {
            seconds: i64::try_from(seconds).unwrap_or(self.seconds),
            nanosecond: u32::try_from(nanoseconds.rem_euclid(SECOND)).unwrap_or(0),
            zone: self.zone.clone(),
        }
    }

    pub(super) fn add(&self, nanoseconds: i64) -> Self {
        self.at(self.nanoseconds() + i128::from(nanoseconds))
    }

    /// How much later it is, at most what a duration holds.
    pub(super) fn since(&self, earlier: &Self) -> i64 {
        let difference = self.nanoseconds() - earlier.nanoseconds();
        let bounded = difference.clamp(i128::from(i64::MIN), i128::from(i64::MAX));
        i64::try_from(bounded).unwrap_or(0)
    }

    fn add_date(&self, years: i64, months: i64, days: i64) -> Self {
        let mut instant = self.instant();
        let months = instant
            .year
            .saturating_mul(12)
            .saturating_add(i64::from(instant.month) - 1)
            .saturating_add(years.saturating_mul(12))
            .saturating_add(months);
        instant.year = months.div_euclid(12);
        instant.month = u32::try_from(months.rem_euclid(12) + 1).unwrap_or(1);
        let day = i64::from(instant.day);
        instant.day = 1;
        let seconds = instant
            .to_unix()
            .saturating_add((day - 1).saturating_add(days).saturating_mul(86_400));
        Self {
            seconds,
            ..self.clone()
        }
    }
}

const STRING: &str = "2006-01-02 15:04:05.999999999 -0700 MST";
const RFC3339_NANO: &str = "2006-01-02T15:04:05.999999999Z07:00";

const fn method(name: &'static str, parameters: &'static [Type], body: MethodBody) -> Method {
    Method {
        name,
        parameters,
        is_variadic: false,
        body,
    }
}

fn time(value: &Value) -> &Time {
    static ZERO: Time = Time::ZERO;
    Time::from_value(value).unwrap_or(&ZERO)
}

fn argument(arguments: &[Value], index: usize) -> i64 {
    match arguments.get(index) {
        Some(Value::Int(_, value)) => *value,
        _ => 0,
    }
}

fn other(arguments: &[Value]) -> &Time {
    time(arguments.first().unwrap_or(&Value::Nil))
}

/// The type as a parameter: types are compared by name, and this one does not refer to itself.
static PARAMETER: Named = Named {
    name: "time.Time",
    methods: &[],
};
const TIME: Type = Type::Named(&PARAMETER, Kind::Struct);
const DURATION: Type = Type::Int(IntKind::Duration);

#[expect(clippy::unnecessary_wraps, reason = "the last expression of a method")]
fn part(value: &Value, part: fn(&Instant) -> i64) -> Result<Value, String> {
    Ok(Value::int(part(&time(value).instant())))
}

pub(super) static TYPE: Named = Named {
    name: "time.Time",
    methods: &[
        method("Format", &[Type::String], |value, arguments, meter| {
            let layout = arguments
                .first()
                .and_then(Value::as_text)
                .cloned()
                .unwrap_or_default();
            meter.charge(layout.len().saturating_mul(4))?;
            let text = layout::format(&layout.to_str(), &time(value).instant());
            Ok(Value::string(text))
        }),
        method("String", &[], |value, _, _| {
            Ok(Value::string(layout::format(
                STRING,
                &time(value).instant(),
            )))
        }),
        method("Unix", &[], |value, _, _| {
            Ok(Value::int64(time(value).seconds))
        }),
        method("UnixMilli", &[], |value, _, _| Ok(unix(value, 1_000_000))),
        method("UnixMicro", &[], |value, _, _| Ok(unix(value, 1_000))),
        method("UnixNano", &[], |value, _, _| Ok(unix(value, 1))),
        method("Year", &[], |value, _, _| {
            part(value, |instant| instant.year)
        }),
        method("Month", &[], |value, _, _| {
            Ok(Value::Int(
                IntKind::Month,
                i64::from(time(value).instant().month),
            ))
        }),
        method("Day", &[], |value, _, _| {
            part(value, |instant| i64::from(instant.day))
        }),
        method("Hour", &[], |value, _, _| {
            part(value, |instant| i64::from(instant.hour))
        }),
        method("Minute", &[], |value, _, _| {
            part(value, |instant| i64::from(instant.minute))
        }),
        method("Second", &[], |value, _, _| {
            part(value, |instant| i64::from(instant.second))
        }),
        method("Nanosecond", &[], |value, _, _| {
            part(value, |instant| i64::from(instant.nanosecond))
        }),
        method("YearDay", &[], |value, _, _| part(value, Instant::year_day)),
        method("Weekday", &[], |value, _, _| {
            let day = time(value).instant().weekday();
            Ok(Value::Int(
                IntKind::Weekday,
                i64::try_from(day).unwrap_or(0),
            ))
        }),
        method("UTC", &[], |value, _, _| {
            Ok(Value::object(time(value).in_zone("UTC")))
        }),
        method("Local", &[], |value, _, _| {
            Ok(Value::object(time(value).in_zone("Local")))
        }),
        method("IsZero", &[], |value, _, _| {
            Ok(Value::Bool(
                time(value).nanoseconds() == Time::ZERO.nanoseconds(),
            ))
        }),
        method("Add", &[DURATION], |value, arguments, _| {
            Ok(Value::object(time(value).add(argument(arguments, 0))))
        }),
        method(
            "AddDate",
            &[Type::INT, Type::INT, Type::INT],
            |value, arguments, _| {
                let by = |index| argument(arguments, index);
                Ok(Value::object(time(value).add_date(by(0), by(1), by(2))))
            },
        ),
        method("Sub", &[TIME], |value, arguments, _| {
            Ok(Value::Int(
                IntKind::Duration,
                time(value).since(other(arguments)),
            ))
        }),
        method("Before", &[TIME], |value, arguments, _| {
            Ok(Value::Bool(
                time(value).nanoseconds() < other(arguments).nanoseconds(),
            ))
        }),
        method("After", &[TIME], |value, arguments, _| {
            Ok(Value::Bool(
                time(value).nanoseconds() > other(arguments).nanoseconds(),
            ))
        }),
        method("Equal", &[TIME], |value, arguments, _| {
            Ok(Value::Bool(
                time(value).nanoseconds() == other(arguments).nanoseconds(),
            ))
        }),
        method("Compare", &[TIME], |value, arguments, _| {
            let order = time(value)
                .nanoseconds()
                .cmp(&other(arguments).nanoseconds());
            Ok(Value::int(order as i64))
        }),
        method("Truncate", &[DURATION], |value, arguments, _| {
            Ok(Value::object(
                time(value).truncated(argument(arguments, 0), 0),
            ))
        }),
        method("Round", &[DURATION], |value, arguments, _| {
            let unit = argument(arguments, 0);
            Ok(Value::object(time(value).truncated(unit, unit / 2)))
        }),
    ],
};

impl Time {
    /// Down to a multiple of a unit since the year 1, after adding to it.
    fn truncated(&self, unit: i64, add: i64) -> Self {
        if unit <= 0 {
            return self.clone();
        }
        let since = self.nanoseconds() - Self::ZERO.nanoseconds() + i128::from(add);
        self.at(since - since.rem_euclid(i128::from(unit)) + Self::ZERO.nanoseconds())
    }
}

fn unix(value: &Value, unit: i128) -> Value {
    let units = time(value).nanoseconds().div_euclid(unit);
    Value::int64(i64::try_from(units).unwrap_or(i64::MAX))
}

impl Object for Time {
    fn named(&self) -> &'static Named {
        &TYPE
    }

    fn string(&self) -> Option<String> {
        Some(layout::format(STRING, &self.instant()))
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        Vec::new()
    }

    fn data(&self) -> Value {
        Value::String(Text::from(layout::format(RFC3339_NANO, &self.instant())))
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}
