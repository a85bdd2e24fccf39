//! Reads instants written in a layout.

use super::{Element, MONTHS, Padding, WEEKDAYS, elements};
use crate::civil::{Instant, days_in_month};
use crate::duration::quote;

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

/// A text is not written in a layout; the message is that of `time.ParseError`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LayoutError(String);

/// Reads an instant written in a layout; without a zone it is in UTC.
pub fn parse(layout: &str, value: &str) -> Result<Instant, LayoutError> {
    let wrong = |problem: String| {
        let value = quote(value);
        LayoutError(format!("parsing time {value}{problem}"))
    };
    let mut parsed = Parsed::default();
    let mut rest = value;
    let elements = elements(layout);
    for (position, (element, source)) in elements.iter().enumerate() {
        let Some(after) = read_element(&mut parsed, *element, rest) else {
            if let Some(part) = out_of_range(*element, rest) {
                return Err(wrong(format!(": {part} out of range")));
            }
            let (layout, rest, source) = (quote(layout), quote(rest), quote(source));
            return Err(wrong(format!(
                " as {layout}: cannot parse {rest} as {source}"
            )));
        };
        rest = after;
        let seconds = matches!(element, Element::Second { .. });
        let next = elements.get(position + 1);
        let fraction_follows = matches!(next, Some((Element::Fraction { .. }, _)));
        if seconds && !fraction_follows {
            rest = read_implicit_fraction(&mut parsed, rest);
        }
    }
    if !rest.is_empty() {
        return Err(wrong(format!(": extra text: {}", quote(rest))));
    }
    finish(parsed).ok_or_else(|| wrong(": day out of range".to_owned()))
}

/// The part whose number was read, but is too large or too small.
fn out_of_range(element: Element<'_>, text: &str) -> Option<&'static str> {
    let (part, padded) = match element {
        Element::Month { padded } => ("month", padded),
        Element::Day { padding } => ("day", padding == Padding::Zero),
        Element::Hour24 => ("hour", false),
        Element::Hour12 { padded } => ("hour", padded),
        Element::Minute { padded } => ("minute", padded),
        Element::Second { padded } => ("second", padded),
        _ => return None,
    };
    read_number(text.trim_start_matches(' '), padded, 0..=99).map(|_| part)
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
        Element::Month { .. }
        | Element::Day { .. }
        | Element::Hour24
        | Element::Hour12 { .. }
        | Element::Minute { .. }
        | Element::Second { .. } => read_two_digits(parsed, element, text),
        Element::YearDay { padding } => {
            let text = without_padding(text, padding);
            let length = text.bytes().take(3).take_while(u8::is_ascii_digit).count();
            let (digits, rest) = text.split_at(length);
            parsed.year_day = Some(digits.parse().ok().filter(|day| (1..=366).contains(day))?);
            Some(rest)
        }
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

/// Reads a part of one or two digits.
fn read_two_digits<'a>(
    parsed: &mut Parsed,
    element: Element<'_>,
    text: &'a str,
) -> Option<&'a str> {
    let (number, rest) = match element {
        Element::Month { padded } => read_number(text, padded, 1..=12)?,
        Element::Day { padding } => {
            let text = without_padding(text, padding);
            read_number(text, padding == Padding::Zero, 1..=31)?
        }
        Element::Hour24 => read_number(text, false, 0..=23)?,
        Element::Hour12 { padded } => read_number(text, padded, 0..=12)?,
        Element::Minute { padded } | Element::Second { padded } => {
            read_number(text, padded, 0..=59)?
        }
        _ => return None,
    };
    match element {
        Element::Month { .. } => parsed.month = Some(number),
        Element::Day { .. } => parsed.day = Some(number),
        Element::Minute { .. } => parsed.minute = number,
        Element::Second { .. } => parsed.second = number,
        _ => parsed.hour = number,
    }
    Some(rest)
}

fn without_padding(text: &str, padding: Padding) -> &str {
    if padding == Padding::Blank {
        text.trim_start_matches(' ')
    } else {
        text
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
