//! Floating-point numbers as texts, as `strconv.FormatFloat` writes them.

/// How a float is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `-ddd.dddd`.
    Plain,
    /// `-d.dddde±dd`.
    Exponent,
    /// The shorter of the two, as `%g` and `%v` do.
    General,
    /// `-0x1.yyyyyyyyp±dd`.
    Hex,
    /// `-ddddp±ddd`.
    Binary,
}

/// Writes a float; without a precision, the shortest text that reads back as the same number.
pub fn format(value: f64, form: Form, precision: Option<usize>) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    if value.is_infinite() {
        return if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    match form {
        Form::Plain => match precision {
            Some(precision) => fixed(value, precision),
            None => format!("{value}"),
        },
        Form::Exponent => with_exponent(value, precision),
        Form::General => general(value, precision),
        Form::Hex => hex(value, precision),
        Form::Binary => binary(value),
    }
}

/// No float has more digits than this behind its point, or behind its first digit: zeros follow. Rust's own
/// formatting panics far beyond it.
const MOST_DIGITS: usize = 1_100;

/// A finite float with so many digits behind its point, however many that are.
pub fn fixed(value: f64, precision: usize) -> String {
    let digits = precision.min(MOST_DIGITS);
    let mut text = format!("{value:.digits$}");
    text.extend(std::iter::repeat_n('0', precision - digits));
    text
}

/// A finite float as Rust writes it with an exponent, such as `1.50e2`, with so many digits behind its point.
pub fn scientific(value: f64, precision: usize) -> String {
    let digits = precision.min(MOST_DIGITS);
    let text = format!("{value:.digits$e}");
    let (front, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    format!("{front}{}e{exponent}", "0".repeat(precision - digits))
}

/// A float as `%v` writes it: with an exponent below 1e-4 and from 1e6 on.
pub fn shortest(value: f64) -> String {
    format(value, Form::General, None)
}

/// A float as `encoding/json` writes it, which has no form for infinities and NaN.
pub fn json(value: f64) -> String {
    let magnitude = value.abs();
    if magnitude != 0.0 && !(1e-6..1e21).contains(&magnitude) {
        let text = format(value, Form::Exponent, None);
        // Single digits lose the zero before them, but only after a minus.
        return match text.strip_suffix(|_: char| true) {
            Some(front) if front.ends_with("e-0") => {
                let last = &text[front.len()..];
                format!("{}{last}", &front[..front.len() - 1])
            }
            _ => text,
        };
    }
    format(value, Form::Plain, None)
}

fn with_exponent(value: f64, precision: Option<usize>) -> String {
    let text = match precision {
        Some(precision) => scientific(value, precision),
        None => format!("{value:e}"),
    };
    let (digits, exponent) = split_exponent(&text);
    signed_exponent(digits, 'e', exponent)
}

fn split_exponent(text: &str) -> (&str, i32) {
    let (digits, exponent) = text.split_once('e').unwrap_or((text, "0"));
    (digits, exponent.parse().unwrap_or_default())
}

fn signed_exponent(digits: &str, letter: char, exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}{letter}{sign}{:02}", exponent.unsigned_abs())
}

/// From this exponent on the shortest form is written with an exponent.
const SHORTEST_LIMIT: i32 = 6;

/// `%g`: with an exponent below -4, and from the precision on.
fn general(value: f64, precision: Option<usize>) -> String {
    let Some(precision) = precision else {
        let scientific = format!("{value:e}");
        let (digits, exponent) = split_exponent(&scientific);
        if value != 0.0 && !(-4..SHORTEST_LIMIT).contains(&exponent) {
            return signed_exponent(digits, 'e', exponent);
        }
        return format!("{value}");
    };
    let scientific = scientific(value, (precision.max(1) - 1).min(MOST_DIGITS));
    let (digits, exponent) = split_exponent(&scientific);
    let digits = trim_zeros(digits);
    let shown = digits.bytes().filter(u8::is_ascii_digit).count();
    let shown = i32::try_from(shown).unwrap_or(i32::MAX);
    let mut limit = i32::try_from(precision.max(1)).unwrap_or(i32::MAX);
    if limit > shown && shown > exponent {
        limit = shown;
    }
    if exponent < -4 || exponent >= limit {
        signed_exponent(digits, 'e', exponent)
    } else {
        moved_point(digits, exponent)
    }
}

fn trim_zeros(digits: &str) -> &str {
    if digits.contains('.') {
        digits.trim_end_matches('0').trim_end_matches('.')
    } else {
        digits
    }
}

/// Writes `d.ddd` times a power of ten without an exponent.
fn moved_point(digits: &str, exponent: i32) -> String {
    let (sign, digits) = match digits.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", digits),
    };
    let plain: String = digits.chars().filter(|c| *c != '.').collect();
    let point = exponent + 1;
    if point <= 0 {
        let zeros = "0".repeat(usize::try_from(-point).unwrap_or(0));
        return format!("{sign}0.{zeros}{plain}");
    }
    let point = usize::try_from(point).unwrap_or(0);
    if point >= plain.len() {
        let zeros = "0".repeat(point - plain.len());
        return format!("{sign}{plain}{zeros}");
    }
    format!("{sign}{}.{}", &plain[..point], &plain[point..])
}

const MANTISSA_BITS: u32 = 52;
const BIAS: i32 = 1023;

fn parts(value: f64) -> (bool, u64, i32) {
    let bits = value.to_bits();
    let exponent = i32::try_from((bits >> MANTISSA_BITS) & 0x7ff).unwrap_or(0);
    let mantissa = bits & ((1 << MANTISSA_BITS) - 1);
    let negative = value.is_sign_negative();
    if exponent == 0 {
        (negative, mantissa, 1 - BIAS)
    } else {
        (negative, mantissa | (1 << MANTISSA_BITS), exponent - BIAS)
    }
}

fn binary(value: f64) -> String {
    let (negative, mantissa, exponent) = parts(value);
    let sign = if negative { "-" } else { "" };
    format!("{sign}{mantissa}p{:+}", exponent - 52)
}

fn hex(value: f64, precision: Option<usize>) -> String {
    let (negative, mut mantissa, mut exponent) = parts(value);
    let sign = if negative { "-" } else { "" };
    if mantissa == 0 {
        exponent = 0;
    } else {
        // One digit before the point, 60 bits after it.
        while mantissa & (1 << MANTISSA_BITS) == 0 {
            mantissa <<= 1;
            exponent -= 1;
        }
    }
    mantissa <<= 8;
    if let Some(precision) = precision.filter(|precision| *precision < 15) {
        let shift = 60 - 4 * u32::try_from(precision).unwrap_or(15);
        let extra = mantissa & ((1 << shift) - 1);
        mantissa >>= shift;
        let half = 1_u64 << (shift - 1);
        if extra > half || (extra == half && mantissa & 1 == 1) {
            mantissa += 1;
        }
        mantissa <<= shift;
        if mantissa & (1 << 61) != 0 {
            mantissa >>= 1;
            exponent += 1;
        }
    }
    let first = mantissa >> 60;
    let mut digits = format!("{:015x}", mantissa & ((1 << 60) - 1));
    match precision {
        None => digits.truncate(digits.trim_end_matches('0').len()),
        Some(precision) => {
            digits.truncate(precision);
            while digits.len() < precision {
                digits.push('0');
            }
        }
    }
    let point = if digits.is_empty() { "" } else { "." };
    signed_exponent(&format!("{sign}0x{first}{point}{digits}"), 'p', exponent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_precision_can_be_asked_for() {
        for form in [Form::Plain, Form::Exponent, Form::General, Form::Hex] {
            for precision in [0, 1, 1_100, 1_101, 65_535, 65_536, 400_000] {
                for value in [0.0, -1.5, 1e308, 5e-324] {
                    let text = format(value, form, Some(precision));
                    assert!(
                        form == Form::General || text.len() > precision,
                        "{value} {precision}"
                    );
                }
            }
        }
        assert_eq!(fixed(0.5, 70_000).len(), 70_002);
        assert_eq!(scientific(150.0, 2), "1.50e2");
    }
}
