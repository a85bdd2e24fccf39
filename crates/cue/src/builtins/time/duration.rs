//! Durations such as `1h15m30.918s`.

const UNITS: [(&str, u64); 8] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("m", 60_000_000_000),
    ("h", 3_600_000_000_000),
];

/// Reads a duration as nanoseconds.
pub(super) fn parse(text: &str) -> Result<i64, String> {
    let invalid = || format!("time: invalid duration {text:?}");
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Ok(0);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let whole_length = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (whole, after) = rest.split_at(whole_length);
        let (fraction, after) = match after.strip_prefix('.') {
            Some(after) => after.split_at(after.bytes().take_while(u8::is_ascii_digit).count()),
            None => ("", after),
        };
        if whole.is_empty() && fraction.is_empty() {
            return Err(invalid());
        }
        let unit_length = after.find(|c: char| c == '.' || c.is_ascii_digit());
        let (unit, after) = after.split_at(unit_length.unwrap_or(after.len()));
        if unit.is_empty() {
            return Err(format!("time: missing unit in duration {text:?}"));
        }
        let Some((_, scale)) = UNITS.iter().find(|(name, _)| *name == unit) else {
            return Err(format!("time: unknown unit {unit:?} in duration {text:?}"));
        };
        let amount = amount(whole, fraction, *scale).ok_or_else(invalid)?;
        total = total.checked_add(amount).ok_or_else(invalid)?;
        rest = after;
    }
    let signed = i128::from(total) * if negative { -1 } else { 1 };
    i64::try_from(signed).map_err(|_| invalid())
}

/// A number times its unit, the fraction cut at whole nanoseconds.
fn amount(whole: &str, fraction: &str, scale: u64) -> Option<u64> {
    let whole: u64 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    let mut result = u128::from(whole).checked_mul(u128::from(scale))?;
    let mut place = u128::from(scale) * 1_000_000_000;
    let mut billionths: u128 = 0;
    for digit in fraction.bytes() {
        place /= 10;
        billionths += u128::from(digit - b'0') * place;
    }
    result += billionths / 1_000_000_000;
    u64::try_from(result).ok()
}

/// Writes nanoseconds with the units that fit, `0s` for none.
pub(super) fn format(nanoseconds: i64) -> String {
    let magnitude = nanoseconds.unsigned_abs();
    let sign = if nanoseconds < 0 { "-" } else { "" };
    if magnitude < 1_000_000_000 {
        let (unit, scale) = match magnitude {
            0 => return "0s".to_owned(),
            1..1_000 => ("ns", 1),
            1_000..1_000_000 => ("µs", 1_000),
            _ => ("ms", 1_000_000),
        };
        return format!("{sign}{}{unit}", decimal(magnitude, scale));
    }
    let seconds = magnitude / 1_000_000_000;
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    let rest = decimal(magnitude % 60_000_000_000, 1_000_000_000);
    if hours > 0 {
        format!("{sign}{hours}h{minutes}m{rest}s")
    } else if minutes > 0 {
        format!("{sign}{minutes}m{rest}s")
    } else {
        format!("{sign}{rest}s")
    }
}

/// A quotient with its exact decimal fraction.
fn decimal(value: u64, scale: u64) -> String {
    let width = scale.ilog10() as usize;
    let fraction = format!("{:0width$}", value % scale);
    let fraction = fraction.trim_end_matches('0');
    if width == 0 || fraction.is_empty() {
        (value / scale).to_string()
    } else {
        format!("{}.{fraction}", value / scale)
    }
}
