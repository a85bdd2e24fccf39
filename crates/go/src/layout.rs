//! Layouts: a format is written as the reference instant, 2 January 2006 15:04:05 in zone -0700.

mod read;

use std::fmt::Write as _;

use crate::civil::Instant;

pub use self::read::{LayoutError, parse};

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

/// Splits a layout into elements, each with its text.
fn elements(layout: &str) -> Vec<(Element<'_>, &str)> {
    let mut result = Vec::new();
    let mut literal_start = 0;
    let mut position = 0;
    while position < layout.len() {
        let rest = &layout[position..];
        match element_at(rest) {
            Some((element, length)) => {
                if literal_start < position {
                    let literal = &layout[literal_start..position];
                    result.push((Element::Literal(literal), literal));
                }
                result.push((element, &rest[..length]));
                position += length;
                literal_start = position;
            }
            None => position += rest.chars().next().map_or(1, char::len_utf8),
        }
    }
    if literal_start < layout.len() {
        let literal = &layout[literal_start..];
        result.push((Element::Literal(literal), literal));
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
pub fn format(layout: &str, instant: &Instant) -> String {
    let mut output = String::new();
    for (element, _) in elements(layout) {
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
