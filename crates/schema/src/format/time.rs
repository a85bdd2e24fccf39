//! Dates, times and durations.

use bellwether_go::civil::days_in_month;

/// `2006-01-02`, a day that exists.
pub(super) fn is_date(text: &str) -> bool {
    let bytes = text.as_bytes();
    let shaped = bytes.len() == 10
        && bytes.iter().enumerate().all(|(index, byte)| match index {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        });
    if !shaped {
        return false;
    }
    let number = |range: std::ops::Range<usize>| text[range].parse::<u32>().unwrap_or(0);
    let (year, month, day) = (number(0..4), number(5..7), number(8..10));
    (1..=12).contains(&month) && (1..=days_in_month(i64::from(year), month)).contains(&day)
}

/// A date and a time of day with a zone. Like its model, it looks at the first two parts around
/// `t` only, takes any character for the decimal point, and no leap second.
pub(super) fn is_date_time(text: &str) -> bool {
    let lower = text.to_lowercase();
    let mut parts = lower.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else {
        return false;
    };
    let Some(clock) = time.get(..8) else {
        return false;
    };
    let bytes = clock.as_bytes();
    let shaped = [2, 5].iter().all(|index| bytes[*index] == b':')
        && [0, 1, 3, 4, 6, 7]
            .iter()
            .all(|index| bytes[*index].is_ascii_digit());
    is_date(date)
        && shaped
        && &clock[..2] <= "23"
        && &clock[3..5] <= "59"
        && &clock[6..8] <= "59"
        && is_fraction_and_zone(&time[8..])
}

fn is_fraction_and_zone(text: &str) -> bool {
    if is_zone(text) {
        return true;
    }
    let mut characters = text.chars();
    if characters.next().is_none_or(|point| point == '\n') {
        return false;
    }
    let fraction = characters.as_str();
    let zone = fraction.trim_start_matches(|digit: char| digit.is_ascii_digit());
    zone.len() < fraction.len() && is_zone(zone)
}

fn is_zone(text: &str) -> bool {
    match text.as_bytes() {
        [b'z'] => true,
        [b'+' | b'-', a, b, b':', c, d] => [a, b, c, d].iter().all(|byte| byte.is_ascii_digit()),
        _ => false,
    }
}

/// A Go duration (`1h30m`), or numbers with unit names anywhere in the text (`3 days`).
pub(super) fn is_duration(text: &str) -> bool {
    is_go_duration(text) || is_wordy_duration(text)
}

fn is_go_duration(text: &str) -> bool {
    let mut rest = text.strip_prefix(['+', '-']).unwrap_or(text);
    if rest == "0" {
        return true;
    }
    if rest.is_empty() {
        return false;
    }
    let mut total = 0.0_f64;
    while !rest.is_empty() {
        let end = rest
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(rest.len());
        let (number, after) = rest.split_at(end);
        let well_formed = number.bytes().any(|byte| byte.is_ascii_digit())
            && number.bytes().filter(|byte| *byte == b'.').count() <= 1;
        let end = after
            .find(|c: char| c.is_ascii_digit() || c == '.')
            .unwrap_or(after.len());
        let (unit, after) = after.split_at(end);
        let nanoseconds = match unit {
            "ns" => 1.0,
            "us" | "µs" | "μs" => 1e3,
            "ms" => 1e6,
            "s" => 1e9,
            "m" => 6e10,
            "h" => 3.6e12,
            _ => return false,
        };
        if !well_formed {
            return false;
        }
        // `1.` and `.5` are numbers in Go, but not for every Rust parser.
        total += format!("0{number}0")
            .parse::<f64>()
            .unwrap_or(f64::INFINITY)
            * nanoseconds;
        rest = after;
    }
    // Go counts nanoseconds in 63 bits.
    total < 9_223_372_036_854_775_808.0
}

fn is_wordy_duration(text: &str) -> bool {
    const UNITS: [&[&str]; 8] = [
        &["ns", "nano"],
        &["us", "µs", "micro"],
        &["ms", "milli"],
        &["s", "sec"],
        &["m", "min"],
        &["h", "hr", "hour"],
        &["d", "day"],
        &["w", "wk", "week"],
    ];
    let mut found = false;
    let mut rest = text;
    while let Some(start) = rest.find(|c: char| c.is_ascii_digit()) {
        let number = &rest[start..];
        let after = number.trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = &number[..number.len() - after.len()];
        let word = after.trim_start_matches([' ', '\t', '\n', '\u{c}', '\r']);
        let next = word.trim_start_matches(|c: char| c.is_ascii_alphabetic() || c == 'µ');
        let unit = word[..word.len() - next.len()].to_lowercase();
        rest = if unit.is_empty() { after } else { next };
        if unit.is_empty() {
            continue;
        }
        if digits.parse::<i64>().is_err() {
            return false;
        }
        found |= UNITS.iter().any(|variants| {
            variants.contains(&unit.as_str())
                || variants
                    .last()
                    .is_some_and(|longest| unit.starts_with(longest))
        });
    }
    found
}
