//! Integers and floats under the flags of a directive.

use super::verb::{Flags, Printer};
use crate::float::{self, Form};

impl Printer<'_> {
    /// An integer in a base; `verb` is `O` for octal with a prefix.
    pub(super) fn integer(
        &mut self,
        magnitude: u64,
        is_negative: bool,
        base: u64,
        verb: char,
        is_upper: bool,
    ) -> Result<(), String> {
        let flags = self.flags;
        let mut least = 0;
        if let Some(precision) = flags.precision {
            least = precision;
            if precision == 0 && magnitude == 0 {
                let width = flags.width.unwrap_or(0);
                return self.fill(width, b' ');
            }
        } else if flags.zero && !flags.minus && flags.width.is_some() {
            least = flags.width.unwrap_or(0);
            if is_negative || flags.plus || flags.space {
                least = least.saturating_sub(1);
            }
        }
        self.meter.charge(least)?;
        // Written backwards.
        let mut digits = Vec::with_capacity(least.max(24) + 3);
        let alphabet: &[u8; 16] = if is_upper {
            b"0123456789ABCDEF"
        } else {
            b"0123456789abcdef"
        };
        let mut rest = magnitude;
        loop {
            digits.push(alphabet[usize::try_from(rest % base).unwrap_or(0)]);
            rest /= base;
            if rest == 0 {
                break;
            }
        }
        while digits.len() < least {
            digits.push(b'0');
        }
        if flags.sharp {
            match base {
                2 => digits.extend_from_slice(b"b0"),
                8 if digits.last() != Some(&b'0') => digits.push(b'0'),
                16 => digits.extend_from_slice(if is_upper { b"X0" } else { b"x0" }),
                _ => {}
            }
        }
        if verb == 'O' {
            digits.extend_from_slice(b"o0");
        }
        if is_negative {
            digits.push(b'-');
        } else if flags.plus {
            digits.push(b'+');
        } else if flags.space {
            digits.push(b' ');
        }
        digits.reverse();
        self.flags.zero = false;
        let padded = self.pad(&digits);
        self.flags.zero = flags.zero;
        padded
    }

    /// A float; `precision` is used if the directive has none.
    pub(super) fn float(
        &mut self,
        value: f64,
        verb: char,
        precision: Option<usize>,
    ) -> Result<(), String> {
        let flags = self.flags;
        let precision = flags.precision.or(precision);
        self.meter.charge(precision.unwrap_or(0))?;
        let text = signed(value, verb, precision);
        let (mut sign, mut digits) = text.split_at(1);
        if flags.space && sign == "+" && !flags.plus {
            sign = " ";
        }
        if digits.starts_with(['I', 'N']) {
            if digits.starts_with('N') && !flags.space && !flags.plus {
                sign = "";
            }
            let shown = if sign == "+" && !flags.plus {
                digits.to_owned()
            } else {
                format!("{sign}{digits}")
            };
            // An infinity keeps its sign.
            let shown = if digits.starts_with('I') {
                format!("{sign}{digits}")
            } else {
                shown
            };
            self.flags.zero = false;
            let padded = self.pad(shown.as_bytes());
            self.flags.zero = flags.zero;
            return padded;
        }
        let pointed;
        if flags.sharp && verb != 'b' {
            pointed = with_point(digits, verb, precision);
            digits = &pointed;
        }
        if flags.plus || sign != "+" {
            let length = digits.len() + 1;
            if flags.zero && !flags.minus && flags.width.is_some_and(|width| width > length) {
                self.write(sign.as_bytes())?;
                self.fill(flags.width.unwrap_or(0) - length, b'0')?;
                return self.write(digits.as_bytes());
            }
            return self.pad(format!("{sign}{digits}").as_bytes());
        }
        self.pad(digits.as_bytes())
    }

    /// A complex number: both parts under the same flags.
    pub(super) fn complex(&mut self, real: f64, imaginary: f64, verb: char) -> Result<(), String> {
        let flags = self.flags;
        let (verb, precision) = match verb {
            'v' => ('g', None),
            'b' | 'g' | 'G' | 'x' | 'X' => (verb, None),
            'f' | 'F' | 'e' | 'E' => (verb, Some(6)),
            _ => {
                return self.bad_verb(&crate::value::Value::Complex(real, imaginary), verb);
            }
        };
        self.write(b"(")?;
        self.float(real, verb, precision)?;
        self.flags.plus = true;
        self.float(imaginary, verb, precision)?;
        self.flags = Flags { ..flags };
        self.write(b"i)")
    }
}

/// The number with its sign in front, also a plus.
fn signed(value: f64, verb: char, precision: Option<usize>) -> String {
    let form = match verb {
        'e' | 'E' => Form::Exponent,
        'f' | 'F' => Form::Plain,
        'b' => Form::Binary,
        'x' | 'X' => Form::Hex,
        _ => Form::General,
    };
    let text = float::format(value, form, precision);
    let text = if matches!(verb, 'E' | 'G' | 'X') && value.is_finite() {
        text.to_uppercase()
    } else {
        text
    };
    if text.starts_with(['+', '-']) {
        text
    } else {
        format!("+{text}")
    }
}

/// With the `#` flag a number has a point, and keeps its zeros.
fn with_point(digits: &str, verb: char, precision: Option<usize>) -> String {
    let mut wanted: i64 = match verb {
        'g' | 'G' | 'x' | 'X' => precision.map_or(6, |p| i64::try_from(p).unwrap_or(i64::MAX)),
        _ => 0,
    };
    let is_hex = matches!(verb, 'x' | 'X');
    let tail_at = digits
        .find(|c| matches!(c, 'p' | 'P') || (!is_hex && matches!(c, 'e' | 'E')))
        .unwrap_or(digits.len());
    let (head, tail) = digits.split_at(tail_at);
    let mut out = head.to_owned();
    let mut significant = false;
    for digit in head.chars().filter(|c| *c != '.') {
        significant |= digit != '0';
        wanted -= i64::from(significant);
    }
    if !head.contains('.') {
        if head == "0" {
            wanted -= 1;
        }
        out.push('.');
    }
    for _ in 0..wanted.max(0) {
        out.push('0');
    }
    out + tail
}
