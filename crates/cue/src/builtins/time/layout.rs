//! Layouts: a format is written as the reference instant, 2 January 2006 15:04:05 in zone -0700.

use std::fmt::Write as _;

use super::civil::{Instant, days_in_month};

const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

const WEEKDAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];

/// An element of a layout.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Element<'a> {
    Literal(&'a str),
    LongMonth,
    ShortMonth,
    Month {
        padded: bool,
    },
    LongWeekday,
    ShortWeekday,
    Day {
        padding: Padding,
    },
    YearDay {
        padding: Padding,
    },
    Hour24,
    Hour12 {
        padded: bool,
    },
    Minute {
        padded: bool,
    },
    Second {
        padded: bool,
    },
    LongYear,
    ShortYear,
    Noon {
        upper: bool,
    },
    Zone,
    /// A numeric offset: `Z` stands for zero, colons between parts, seconds as well, hours alone.
    Offset {
        utc_letter: bool,
        colon: bool,
        seconds: bool,
        hours_only: bool,
    },
    /// A fraction of a second with its digits; trailing zeros may be cut.
    Fraction {
        separator: char,
        digits: usize,
        trim: bool,
    },
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Padding {
    None,
    Zero,
    Blank,
}

/// Fixed elements, longer ones before their prefixes.
const ELEMENTS: &[(&str, Element<'static>)] = &[
    ("January", Element::LongMonth),
    ("Jan", Element::ShortMonth),
    ("Monday", Element::LongWeekday),
    ("Mon", Element::ShortWeekday),
    ("MST", Element::Zone),
    (
        "002",
        Element::YearDay {
            padding: Padding::Zero,
        },
    ),
    (
        "__2",
        Element::YearDay {
            padding: Padding::Blank,
        },
    ),
    ("01", Element::Month { padded: true }),
    (
        "02",
        Element::Day {
            padding: Padding::Zero,
        },
    ),
    ("03", Element::Hour12 { padded: true }),
    ("04", Element::Minute { padded: true }),
    ("05", Element::Second { padded: true }),
    ("06", Element::ShortYear),
    ("15", Element::Hour24),
    ("2006", Element::LongYear),
    (
        "_2",
        Element::Day {
            padding: Padding::Blank,
        },
    ),
    ("1", Element::Month { padded: false }),
    (
        "2",
        Element::Day {
            padding: Padding::None,
        },
    ),
    ("3", Element::Hour12 { padded: false }),
    ("4", Element::Minute { padded: false }),
    ("5", Element::Second { padded: false }),
    ("PM", Element::Noon { upper: true }),
    ("pm", Element::Noon { upper: false }),
    ("-07:00:00", offset(false, true, true, false)),
    ("-070000", offset(false, false, true, false)),
    ("-07:00", offset(false, true, false, false)),
    ("-0700", offset(false, false, false, false)),
    ("-07", offset(false, false, false, true)),
    ("Z07:00:00", offset(true, true, true, false)),
    ("Z070000", offset(true, false, true, false)),
    ("Z07:00", offset(true, true, false, false)),
    ("Z0700", offset(true, false, false, false)),
    ("Z07", offset(true, false, false, true)),
];

#[expect(
    clippy::fn_params_excessive_bools,
    reason = "a row of a table, read against its text"
)]
const fn offset(
    utc_letter: bool,
    colon: bool,
    seconds: bool,
    hours_only: bool,
) -> Element<'static> {
    Element::Offset {
        utc_letter,
        colon,
        seconds,
        hours_only,
    }
}

/// Splits a layout into elements.
fn elements(layout: &str) -> Vec<Element<'_>> {
    let mut result = Vec::new();
    let mut literal_start = 0;
    let mut position = 0;
    while position < layout.len() {
        let rest = &layout[position..];
        match element_at(rest) {
            Some((element, length)) => {
                if literal_start < position {
                    result.push(Element::Literal(&layout[literal_start..position]));
                }
                result.push(element);
                position += length;
                literal_start = position;
            }
            None => position += rest.chars().next().map_or(1, char::len_utf8),
        }
    }
    if literal_start < layout.len() {
        result.push(Element::Literal(&layout[literal_start..]));
    }
    result
}

fn element_at(rest: &str) -> Option<(Element<'static>, usize)> {
    // `_2006` is a literal underscore before the year, not a padded day.
    if rest.starts_with("_2006") {
        return None;
    }
    // A word that only begins like a month's short name is text.
    if rest.starts_with("Jan") && !rest.starts_with("January") {
        let next = rest[3..].chars().next();
        if next.is_some_and(char::is_lowercase) {
            return None;
        }
    }
    if let Some(fraction) = fraction_at(rest) {
        return Some(fraction);
    }
    let found = ELEMENTS.iter().find(|(text, _)| rest.starts_with(text));
    found.map(|(text, element)| (*element, text.len()))
}

/// `.000` or `,999`: a run of one digit not followed by another digit.
fn fraction_at(rest: &str) -> Option<(Element<'static>, usize)> {
    let mut characters = rest.chars();
    let separator = characters.next().filter(|c| matches!(c, '.' | ','))?;
    let digit = characters.next().filter(|c| matches!(c, '0' | '9'))?;
    let run = rest[1..].chars().take_while(|c| *c == digit).count();
    let next = rest[1 + run..].chars().next();
    if next.is_some_and(|c| c.is_ascii_digit()) {
        return None;
    }
    Some((
        Element::Fraction {
            separator,
            digits: run,
            trim: digit == '9',
        },
        1 + run,
    ))
}

/// Writes an instant in a layout.
pub(super) fn format(layout: &str, instant: &Instant) -> String {
    let mut output = String::new();
    for element in elements(layout) {
        write_element(&mut output, element, instant);
    }
    output
}

fn write_element(output: &mut String, element: Element<'_>, instant: &Instant) {
    let month = MONTHS[(instant.month as usize + 11) % 12];
    let weekday = WEEKDAYS[instant.weekday() % 7];
    let hour12 = match instant.hour % 12 {
        0 => 12,
        hour => hour,
    };
    let _ = match element {
        Element::Literal(text) => write!(output, "{text}"),
        Element::LongMonth => write!(output, "{month}"),
        Element::ShortMonth => write!(output, "{}", &month[..3]),
        Element::Month { padded } => write_padded(output, instant.month, padded),
        Element::LongWeekday => write!(output, "{weekday}"),
        Element::ShortWeekday => write!(output, "{}", &weekday[..3]),
        Element::Day { padding } => match padding {
            Padding::Blank => write!(output, "{:2}", instant.day),
            padding => write_padded(output, instant.day, padding == Padding::Zero),
        },
        Element::YearDay { padding } => match padding {
            Padding::Blank => write!(output, "{:3}", instant.year_day()),
            _ => write!(output, "{:03}", instant.year_day()),
        },
        Element::Hour24 => write_padded(output, instant.hour, true),
        Element::Hour12 { padded } => write_padded(output, hour12, padded),
        Element::Minute { padded } => write_padded(output, instant.minute, padded),
        Element::Second { padded } => write_padded(output, instant.second, padded),
        Element::LongYear => write!(output, "{:04}", instant.year),
        Element::ShortYear => write!(output, "{:02}", instant.year.rem_euclid(100)),
        Element::Noon { upper } => {
            let text = match (instant.hour >= 12, upper) {
                (true, true) => "PM",
                (true, false) => "pm",
                (false, true) => "AM",
                (false, false) => "am",
            };
            write!(output, "{text}")
        }
        Element::Zone if instant.zone.is_empty() => {
            write_offset(output, instant.offset, false, false, false)
        }
        Element::Zone => write!(output, "{}", instant.zone),
        Element::Offset {
            utc_letter: true, ..
        } if instant.offset == 0 => write!(output, "Z"),
        Element::Offset {
            colon,
            seconds,
            hours_only,
            ..
        } => write_offset(output, instant.offset, colon, seconds, hours_only),
        Element::Fraction {
            separator,
            digits,
            trim,
        } => write_fraction(output, instant.nanosecond, separator, digits, trim),
    };
}

fn write_padded(output: &mut String, value: u32, padded: bool) -> std::fmt::Result {
    if padded {
        write!(output, "{value:02}")
    } else {
        write!(output, "{value}")
    }
}

fn write_offset(
    output: &mut String,
    offset: i64,
    colon: bool,
    seconds: bool,
    hours_only: bool,
) -> std::fmt::Result {
    let sign = if offset < 0 { '-' } else { '+' };
    let magnitude = offset.abs();
    let separator = if colon { ":" } else { "" };
    write!(output, "{sign}{:02}", magnitude / 3600)?;
    if !hours_only {
        write!(output, "{separator}{:02}", magnitude / 60 % 60)?;
    }
    if seconds {
        write!(output, "{separator}{:02}", magnitude % 60)?;
    }
    Ok(())
}

fn write_fraction(
    output: &mut String,
    nanosecond: u32,
    separator: char,
    digits: usize,
    trim: bool,
) -> std::fmt::Result {
    let all = format!("{nanosecond:09}");
    let mut shown = all.chars().take(digits).collect::<String>();
    if trim {
        shown.truncate(shown.trim_end_matches('0').len());
        if shown.is_empty() {
            return Ok(());
        }
    } else if digits > 9 {
        shown.push_str(&"0".repeat(digits - 9));
    }
    write!(output, "{separator}{shown}")
}

/// What was read so far.
#[derive(Default)]
struct Parsed {
    year: i64,
    month: Option<u32>,
    day: Option<u32>,
    year_day: Option<u32>,
    hour: u32,
    minute: u32,
    second: u32,
    nanosecond: u32,
    afternoon: Option<bool>,
    offset: Option<i64>,
    zone: Option<String>,
}

/// Reads an instant written in a layout; without a zone it is in UTC.
pub(super) fn parse(layout: &str, value: &str) -> Result<Instant, ()> {
    let mut parsed = Parsed::default();
    let mut rest = value;
    let elements = elements(layout);
    for (position, element) in elements.iter().enumerate() {
        rest = read_element(&mut parsed, *element, rest).ok_or(())?;
        let seconds = matches!(element, Element::Second { .. });
        let fraction_follows = matches!(elements.get(position + 1), Some(Element::Fraction { .. }));
        if seconds && !fraction_follows {
            rest = read_implicit_fraction(&mut parsed, rest);
        }
    }
    if !rest.is_empty() {
        return Err(());
    }
    finish(parsed).ok_or(())
}

fn finish(parsed: Parsed) -> Option<Instant> {
    let hour = match parsed.afternoon {
        Some(true) if parsed.hour < 12 => parsed.hour + 12,
        Some(false) if parsed.hour == 12 => 0,
        _ => parsed.hour,
    };
    let (month, day) = match parsed.year_day {
        Some(mut left) => {
            let mut month = 1;
            while month <= 12 && left > days_in_month(parsed.year, month) {
                left -= days_in_month(parsed.year, month);
                month += 1;
            }
            (month, left)
        }
        None => (parsed.month.unwrap_or(1), parsed.day.unwrap_or(1)),
    };
    if !(1..=12).contains(&month) || day == 0 || day > days_in_month(parsed.year, month) {
        return None;
    }
    let zone = match (parsed.offset, parsed.zone) {
        (_, Some(zone)) => zone,
        (Some(offset), None) if offset != 0 => String::new(),
        _ => "UTC".to_owned(),
    };
    Some(Instant {
        year: parsed.year,
        month,
        day,
        hour,
        minute: parsed.minute,
        second: parsed.second,
        nanosecond: parsed.nanosecond,
        offset: parsed.offset.unwrap_or(0),
        zone,
    })
}

/// Reads one element; the rest of the text, or `None` when it does not fit.
fn read_element<'a>(parsed: &mut Parsed, element: Element<'_>, text: &'a str) -> Option<&'a str> {
    match element {
        Element::Literal(literal) => read_literal(literal, text),
        Element::LongMonth => read_name(&MONTHS, usize::MAX, text).map(|(index, rest)| {
            parsed.month = u32::try_from(index + 1).ok();
            rest
        }),
        Element::ShortMonth => read_name(&MONTHS, 3, text).map(|(index, rest)| {
            parsed.month = u32::try_from(index + 1).ok();
            rest
        }),
        Element::LongWeekday => read_name(&WEEKDAYS, usize::MAX, text).map(|(_, rest)| rest),
        Element::ShortWeekday => read_name(&WEEKDAYS, 3, text).map(|(_, rest)| rest),
        Element::Month { padded } => read_number(text, padded, 1..=12).map(|(month, rest)| {
            parsed.month = Some(month);
            rest
        }),
        Element::Day { padding } => {
            let text = if padding == Padding::Blank {
                text.trim_start_matches(' ')
            } else {
                text
            };
            let (day, rest) = read_number(text, padding == Padding::Zero, 1..=31)?;
            parsed.day = Some(day);
            Some(rest)
        }
        Element::YearDay { padding } => {
            let text = if padding == Padding::Blank {
                text.trim_start_matches(' ')
            } else {
                text
            };
            let length = text.bytes().take(3).take_while(u8::is_ascii_digit).count();
            let (digits, rest) = text.split_at(length);
            parsed.year_day = Some(digits.parse().ok().filter(|day| (1..=366).contains(day))?);
            Some(rest)
        }
        Element::Hour24 => read_number(text, false, 0..=23).map(|(hour, rest)| {
            parsed.hour = hour;
            rest
        }),
        Element::Hour12 { padded } => read_number(text, padded, 0..=12).map(|(hour, rest)| {
            parsed.hour = hour;
            rest
        }),
        Element::Minute { padded } => read_number(text, padded, 0..=59).map(|(minute, rest)| {
            parsed.minute = minute;
            rest
        }),
        Element::Second { padded } => read_number(text, padded, 0..=59).map(|(second, rest)| {
            parsed.second = second;
            rest
        }),
        Element::LongYear => {
            let digits = text
                .get(..4)
                .filter(|d| d.bytes().all(|b| b.is_ascii_digit()))?;
            parsed.year = digits.parse().ok()?;
            Some(&text[4..])
        }
        Element::ShortYear => {
            let (year, rest) = read_number(text, true, 0..=99)?;
            // Two digits mean the years from 1969 to 2068.
            parsed.year = i64::from(year) + if year >= 69 { 1900 } else { 2000 };
            Some(rest)
        }
        Element::Noon { upper } => {
            let (morning, afternoon) = if upper { ("AM", "PM") } else { ("am", "pm") };
            let is_afternoon = text.starts_with(afternoon);
            if !is_afternoon && !text.starts_with(morning) {
                return None;
            }
            parsed.afternoon = Some(is_afternoon);
            Some(&text[2..])
        }
        Element::Zone => read_zone(parsed, text),
        Element::Offset { .. } => read_offset(parsed, element, text),
        Element::Fraction {
            separator,
            digits,
            trim,
        } => read_fraction(parsed, text, separator, digits, trim),
    }
}

/// Blanks in a layout match any number of blanks.
fn read_literal<'a>(literal: &str, text: &'a str) -> Option<&'a str> {
    let mut rest = text;
    let mut characters = literal.chars().peekable();
    while let Some(character) = characters.next() {
        if character == ' ' {
            while characters.next_if_eq(&' ').is_some() {}
            if !rest.is_empty() && !rest.starts_with(' ') {
                return None;
            }
            rest = rest.trim_start_matches(' ');
        } else {
            rest = rest.strip_prefix(character)?;
        }
    }
    Some(rest)
}

fn read_name<'a>(names: &[&str], length: usize, text: &'a str) -> Option<(usize, &'a str)> {
    names.iter().enumerate().find_map(|(index, name)| {
        let name = &name[..name.len().min(length)];
        let start = text.get(..name.len())?;
        start
            .eq_ignore_ascii_case(name)
            .then(|| (index, &text[name.len()..]))
    })
}

/// One or two digits, exactly two when padded.
fn read_number(
    text: &str,
    padded: bool,
    range: std::ops::RangeInclusive<u32>,
) -> Option<(u32, &str)> {
    let length = text.bytes().take(2).take_while(u8::is_ascii_digit).count();
    if length == 0 || (padded && length < 2) {
        return None;
    }
    let value = text[..length]
        .parse()
        .ok()
        .filter(|value| range.contains(value))?;
    Some((value, &text[length..]))
}

fn read_zone<'a>(parsed: &mut Parsed, text: &'a str) -> Option<&'a str> {
    if let Some(rest) = text.strip_prefix("UTC") {
        parsed.zone = Some("UTC".to_owned());
        parsed.offset = Some(0);
        return Some(rest);
    }
    let length = text.bytes().take_while(u8::is_ascii_uppercase).count();
    if !(3..=5).contains(&length) {
        return None;
    }
    let (zone, rest) = text.split_at(length);
    // The offset of an abbreviation is not known without a database; `GMT` may carry one.
    let (hours, rest) = match (zone, rest.as_bytes().first()) {
        ("GMT", Some(b'+' | b'-')) => {
            let digits = rest[1..].bytes().take_while(u8::is_ascii_digit).count();
            let hours: i64 = rest[1..=digits].parse().ok()?;
            let signed = if rest.starts_with('-') { -hours } else { hours };
            (signed, &rest[1 + digits..])
        }
        _ => (0, rest),
    };
    parsed.zone = Some(zone.to_owned());
    parsed.offset = Some(hours * 3600);
    Some(rest)
}

fn read_offset<'a>(parsed: &mut Parsed, element: Element<'_>, text: &'a str) -> Option<&'a str> {
    let Element::Offset {
        utc_letter,
        colon,
        seconds,
        hours_only,
    } = element
    else {
        return None;
    };
    if utc_letter && let Some(rest) = text.strip_prefix('Z') {
        parsed.offset = Some(0);
        return Some(rest);
    }
    let sign = match text.bytes().next()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let mut rest = &text[1..];
    let mut parts = [0i64; 3];
    let count = if hours_only {
        1
    } else {
        2 + usize::from(seconds)
    };
    for (index, part) in parts.iter_mut().take(count).enumerate() {
        if index > 0 && colon {
            rest = rest.strip_prefix(':')?;
        }
        let limit = if index == 0 { 24 } else { 60 };
        let (value, after) = read_number(rest, true, 0..=limit)?;
        *part = i64::from(value);
        rest = after;
    }
    parsed.offset = Some(sign * (parts[0] * 3600 + parts[1] * 60 + parts[2]));
    Some(rest)
}

fn nanoseconds(digits: &str) -> u32 {
    let padded = format!("{digits:0<9}");
    padded
        .get(..9)
        .and_then(|digits| digits.parse().ok())
        .unwrap_or(0)
}

fn read_fraction<'a>(
    parsed: &mut Parsed,
    text: &'a str,
    separator: char,
    digits: usize,
    trim: bool,
) -> Option<&'a str> {
    if trim {
        // An optional fraction of any length.
        let Some(after) = text.strip_prefix(separator) else {
            return Some(text);
        };
        let length = after.bytes().take_while(u8::is_ascii_digit).count();
        if length == 0 || length > 9 {
            return if length == 0 { Some(text) } else { None };
        }
        parsed.nanosecond = nanoseconds(&after[..length]);
        return Some(&after[length..]);
    }
    let after = text.strip_prefix(['.', ','])?;
    let exact = after.get(..digits)?;
    if !exact.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    parsed.nanosecond = nanoseconds(exact);
    Some(&after[digits..])
}

/// A fraction after the seconds is accepted even when the layout has none.
fn read_implicit_fraction<'a>(parsed: &mut Parsed, text: &'a str) -> &'a str {
    let Some(after) = text.strip_prefix(['.', ',']) else {
        return text;
    };
    let length = after.bytes().take_while(u8::is_ascii_digit).count();
    if length == 0 {
        return text;
    }
    parsed.nanosecond = nanoseconds(&after[..length.min(9)]);
    &after[length..]
}
