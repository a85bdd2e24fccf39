//! What an unquoted scalar means, by the rules of YAML 1.1 as Go's reader has them.
//!
//! The reader asks to learn the value, the writer to learn whether a string needs quotes.

/// The meaning of an unquoted scalar.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Resolved {
    Null,
    Bool(bool),
    Integer(i64),
    /// An integer beyond 64 bits signed; decimal text, so that keys can be refused as in Go.
    Unsigned(u64),
    Float(f64),
    /// Read as a string, but a string that must be quoted when written.
    Timestamp,
    String,
}

impl Resolved {
    /// The short tag that Go shows in messages.
    pub(super) fn tag(self) -> &'static str {
        match self {
            Self::Null => "!!null",
            Self::Bool(_) => "!!bool",
            Self::Integer(_) | Self::Unsigned(_) => "!!int",
            Self::Float(_) => "!!float",
            Self::Timestamp => "!!timestamp",
            Self::String => "!!str",
        }
    }
}

/// Resolves an unquoted scalar.
pub(super) fn resolve(text: &str) -> Resolved {
    let Some(first) = text.bytes().next() else {
        return Resolved::Null;
    };
    match first {
        b'y' | b'Y' | b'n' | b'N' | b't' | b'T' | b'f' | b'F' | b'o' | b'O' | b'~' => word(text),
        b'.' => match text {
            ".nan" | ".NaN" | ".NAN" => Resolved::Float(f64::NAN),
            ".inf" | ".Inf" | ".INF" => Resolved::Float(f64::INFINITY),
            _ => float(text).map_or(Resolved::String, Resolved::Float),
        },
        b'+' | b'-' | b'0'..=b'9' => number(text),
        _ => Resolved::String,
    }
}

/// Resolves an unquoted scalar as `go.yaml.in/yaml/v3` does: `yes`, `on` and `y` are strings.
pub(super) fn resolve_v3(text: &str) -> Resolved {
    match resolve(text) {
        Resolved::Bool(_) if !matches!(text.as_bytes()[0] | 0x20, b't' | b'f') => Resolved::String,
        resolved => resolved,
    }
}

/// The text of a timestamp with date, time and zone, as Go marshals it to JSON.
pub(super) fn full_timestamp(text: &str) -> String {
    let (date, time) = match text.find(['T', 't', ' ']) {
        Some(at) => (&text[..at], text[at + 1..].trim()),
        None => (text, "00:00:00"),
    };
    let two = |part: &str| format!("{part:0>2}");
    let date: Vec<String> = date.split('-').map(two).collect();
    let zone_at = time.find(['Z', '+', '-']).unwrap_or(time.len());
    let (clock, zone) = time.split_at(zone_at);
    let (clock, fraction) = clock.split_once(['.', ',']).unwrap_or((clock, ""));
    let clock: Vec<String> = clock.split(':').map(two).collect();
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    let zone = if zone.is_empty() { "Z" } else { zone };
    format!(
        "{}T{}{point}{fraction}{zone}",
        date.join("-"),
        clock.join(":")
    )
}

fn word(text: &str) -> Resolved {
    match text {
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            Resolved::Bool(true)
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            Resolved::Bool(false)
        }
        "~" | "null" | "Null" | "NULL" => Resolved::Null,
        _ => Resolved::String,
    }
}

fn number(text: &str) -> Resolved {
    match text {
        "+.inf" | "+.Inf" | "+.INF" => return Resolved::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Resolved::Float(f64::NEG_INFINITY),
        _ => {}
    }
    if is_timestamp(text) {
        return Resolved::Timestamp;
    }
    let plain;
    let digits = if text.contains('_') {
        plain = text.replace('_', "");
        plain.as_str()
    } else {
        text
    };
    integer(digits)
        .or_else(|| float(digits).map(Resolved::Float))
        .unwrap_or(Resolved::String)
}

/// Go's `ParseInt(text, 0, 64)`, then `ParseUint`: a leading `0` alone means octal.
fn integer(text: &str) -> Option<Resolved> {
    let (negative, unsigned) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let prefix = unsigned.get(..2).unwrap_or_default();
    let (radix, digits) = match prefix {
        "0x" | "0X" => (16, &unsigned[2..]),
        "0o" | "0O" => (8, &unsigned[2..]),
        "0b" | "0B" => (2, &unsigned[2..]),
        _ if unsigned.len() > 1 && unsigned.starts_with('0') => (8, &unsigned[1..]),
        _ => (10, unsigned),
    };
    // The standard parser would take a second sign.
    if !digits.bytes().next()?.is_ascii_hexdigit() {
        return None;
    }
    let magnitude = u64::from_str_radix(digits, radix).ok()?;
    if negative {
        return 0_i64.checked_sub_unsigned(magnitude).map(Resolved::Integer);
    }
    match i64::try_from(magnitude) {
        Ok(integer) => Some(Resolved::Integer(integer)),
        Err(_) if text.starts_with('+') => None,
        Err(_) => Some(Resolved::Unsigned(magnitude)),
    }
}

/// `[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?`, and finite.
fn float(text: &str) -> Option<f64> {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
    let mantissa_fits = match mantissa.split_once('.') {
        Some(("", fraction)) => is_digits(fraction),
        Some((whole, fraction)) => is_digits(whole) && (fraction.is_empty() || is_digits(fraction)),
        None => is_digits(mantissa),
    };
    let exponent_fits =
        exponent.is_none_or(|part| is_digits(part.strip_prefix(['-', '+']).unwrap_or(part)));
    if !mantissa_fits || !exponent_fits {
        return None;
    }
    // Go's parser calls an overflow an error, and the text stays a string.
    text.parse().ok().filter(|float: &f64| float.is_finite())
}

/// Whether Go would take the text for a timestamp: a date, or a date and time in one of three
/// notations, with valid ranges.
fn is_timestamp(text: &str) -> bool {
    let bytes = text.as_bytes();
    if bytes.len() < 8 || bytes[4] != b'-' || !bytes[..4].iter().all(u8::is_ascii_digit) {
        return false;
    }
    let year: u32 = text[..4].parse().unwrap_or_default();
    let mut rest = &text[5..];
    let (Some(month), true) = (field(&mut rest), take(&mut rest, "-")) else {
        return false;
    };
    let Some(day) = field(&mut rest) else {
        return false;
    };
    if !(1..=12).contains(&month)
        || day == 0
        || day > bellwether_go::civil::days_in_month(i64::from(year), month)
    {
        return false;
    }
    if rest.is_empty() {
        return true;
    }
    let zoned = take(&mut rest, "T") || take(&mut rest, "t");
    if !zoned {
        let time = rest.trim_start_matches(' ');
        if time.len() == rest.len() {
            return false;
        }
        rest = time;
    }
    is_clock(&mut rest)
        && (if zoned {
            is_zone(rest)
        } else {
            rest.is_empty()
        })
}

fn is_clock(rest: &mut &str) -> bool {
    let (Some(0..=23), true) = (field(rest), take(rest, ":")) else {
        return false;
    };
    let (Some(0..=59), true) = (field(rest), take(rest, ":")) else {
        return false;
    };
    let Some(0..=59) = field(rest) else {
        return false;
    };
    if let Some(fraction) = rest.strip_prefix(['.', ',']) {
        let after = fraction.trim_start_matches(|c: char| c.is_ascii_digit());
        if after.len() < fraction.len() {
            *rest = after;
        }
    }
    true
}

fn is_zone(text: &str) -> bool {
    let Some(offset) = text.strip_prefix(['+', '-']) else {
        return text == "Z";
    };
    let Some((hours, minutes)) = offset.split_once(':') else {
        return false;
    };
    let below = |part: &str, limit: u32| {
        part.len() == 2
            && part.bytes().all(|b| b.is_ascii_digit())
            && part.parse().is_ok_and(|number: u32| number <= limit)
    };
    below(hours, 24) && below(minutes, 60)
}

/// One or two digits.
fn field(rest: &mut &str) -> Option<u32> {
    let digits = rest.bytes().take(2).take_while(u8::is_ascii_digit).count();
    let (number, after) = rest.split_at(digits);
    *rest = after;
    number.parse().ok()
}

fn take(rest: &mut &str, prefix: &str) -> bool {
    let after = rest.strip_prefix(prefix);
    if let Some(after) = after {
        *rest = after;
    }
    after.is_some()
}

/// Whether a string looks like a sexagesimal number, which other readers of YAML 1.1 would make of
/// it: `[-+]?[0-9][0-9_]*(:[0-5]?[0-9])+(\.[0-9_]*)?`.
pub(super) fn is_base60(text: &str) -> bool {
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    let Some((whole, rest)) = unsigned.split_once(':') else {
        return false;
    };
    let (groups, fraction) = rest.split_once('.').unwrap_or((rest, ""));
    let is_group = |group: &str| match group.as_bytes() {
        [last] => last.is_ascii_digit(),
        [first, last] => matches!(first, b'0'..=b'5') && last.is_ascii_digit(),
        _ => false,
    };
    let is_loose = |part: &str| part.bytes().all(|b| b.is_ascii_digit() || b == b'_');
    whole.starts_with(|c: char| c.is_ascii_digit())
        && is_loose(whole)
        && is_loose(fraction)
        && groups.split(':').all(is_group)
}
