//! Formats binary floats the way C's `printf` and its descendants do.

use bellwether_go::float;

/// Formats with a verb of `e`, `E`, `f`, `F`, `g` or `G`; a negative precision asks for the shortest
/// text that reads back the same. `None` for other verbs.
pub(super) fn format(value: f64, verb: char, precision: i64, narrow: bool) -> Option<String> {
    let digits = usize::try_from(precision).ok();
    match verb {
        'f' | 'F' => Some(fixed(value, digits, narrow)),
        'e' | 'E' => Some(scientific(value, digits, narrow, verb)),
        'g' | 'G' => Some(general(value, digits, narrow, verb)),
        _ => None,
    }
}

fn fixed(value: f64, precision: Option<usize>, narrow: bool) -> String {
    match precision {
        Some(precision) => float::fixed(value, precision),
        None if narrow => format!("{}", narrowed(value)),
        None => format!("{value}"),
    }
}

/// The value as a 32-bit float; losing digits is what was asked for.
#[expect(
    clippy::cast_possible_truncation,
    reason = "the caller asks for a 32-bit float"
)]
fn narrowed(value: f64) -> f32 {
    value as f32
}

/// Mantissa digits with a point after the first, and the exponent.
fn parts(value: f64, precision: Option<usize>, narrow: bool) -> (String, i32) {
    let text = match precision {
        Some(precision) => float::scientific(value, precision),
        None if narrow => format!("{:e}", narrowed(value)),
        None => format!("{value:e}"),
    };
    match text.split_once('e') {
        Some((mantissa, exponent)) => (mantissa.to_owned(), exponent.parse().unwrap_or(0)),
        None => (text, 0),
    }
}

fn exponent_text(letter: char, exponent: i32) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{letter}{sign}{:02}", exponent.unsigned_abs())
}

fn scientific(value: f64, precision: Option<usize>, narrow: bool, letter: char) -> String {
    let (mantissa, exponent) = parts(value, precision, narrow);
    format!("{mantissa}{}", exponent_text(letter, exponent))
}

fn general(value: f64, precision: Option<usize>, narrow: bool, verb: char) -> String {
    let shortest = precision.is_none();
    let wanted = precision.map(|digits| digits.max(1) - 1);
    let (mantissa, exponent) = parts(value, wanted, narrow);
    let significant = mantissa.chars().filter(char::is_ascii_digit).count();
    let digits = i32::try_from(significant).unwrap_or(i32::MAX);
    // The exponent form is used below 1e-4 and from the precision on; the shortest form decides
    // as if the precision were six.
    let limit = if shortest { 6 } else { digits };
    let letter = if verb == 'g' { 'e' } else { 'E' };
    if exponent < -4 || exponent >= limit {
        let mantissa = trim_fraction(&mantissa, shortest);
        return format!("{mantissa}{}", exponent_text(letter, exponent));
    }
    let decimals = usize::try_from(digits - 1 - exponent).unwrap_or(0);
    trim_fraction(&float::fixed(value, decimals), shortest).to_owned()
}

/// Removes trailing zeros of a fraction and a point that is left alone.
fn trim_fraction(text: &str, keep: bool) -> &str {
    if keep || !text.contains('.') {
        return text;
    }
    text.trim_end_matches('0').trim_end_matches('.')
}
