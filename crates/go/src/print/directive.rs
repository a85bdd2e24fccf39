//! Format strings: what stands between a percent sign and its verb.

use super::verb::Printer;
use crate::value::{Meter, Value};

/// Widths and precisions beyond this are refused, as in Go.
const LIMIT: i64 = 1_000_000;

/// Writes operands as a format says: `fmt.Sprintf`.
pub fn sprintf(
    format: &[u8],
    operands: &[Value],
    meter: &mut dyn Meter,
) -> Result<Vec<u8>, String> {
    let mut run = Run {
        format,
        position: 0,
        operands,
        next: 0,
        reordered: false,
        good_index: true,
        printer: Printer::new(meter),
    };
    while let Some(length) = format[run.position..].iter().position(|b| *b == b'%') {
        let text = &format[run.position..run.position + length];
        run.printer.write(text)?;
        run.position += length + 1;
        run.directive()?;
        run.printer.meter.charge(1)?;
    }
    run.printer.write(&format[run.position..])?;
    run.extra()?;
    Ok(run.printer.out)
}

struct Run<'a, 'm> {
    format: &'a [u8],
    position: usize,
    operands: &'a [Value],
    /// The operand that the next verb takes.
    next: usize,
    /// Whether an operand was asked for by its index.
    reordered: bool,
    good_index: bool,
    printer: Printer<'m>,
}

impl Run<'_, '_> {
    fn peek(&self) -> Option<u8> {
        self.format.get(self.position).copied()
    }

    fn take(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.position += usize::from(found);
        found
    }

    fn directive(&mut self) -> Result<(), String> {
        self.printer.flags = super::verb::Flags::default();
        self.good_index = true;
        let mut after_index = false;
        self.flags();
        self.index(&mut after_index);
        if self.take(b'*') {
            match self.star() {
                Some(width) => {
                    self.printer.flags.width =
                        Some(usize::try_from(width.unsigned_abs()).unwrap_or(0));
                    if width < 0 {
                        self.printer.flags.minus = true;
                        self.printer.flags.zero = false;
                    }
                }
                None => self.printer.write(b"%!(BADWIDTH)")?,
            }
            after_index = false;
        } else {
            self.printer.flags.width = self.number();
            if after_index && self.printer.flags.width.is_some() {
                self.good_index = false;
            }
        }
        if self.take(b'.') {
            if after_index {
                self.good_index = false;
            }
            self.index(&mut after_index);
            if self.take(b'*') {
                match self.star() {
                    Some(precision) if precision >= 0 => {
                        self.printer.flags.precision = usize::try_from(precision).ok();
                    }
                    Some(_) => {}
                    None => self.printer.write(b"%!(BADPREC)")?,
                }
                after_index = false;
            } else {
                self.printer.flags.precision = Some(self.number().unwrap_or(0));
            }
        }
        if !after_index {
            self.index(&mut after_index);
        }
        self.verb()
    }

    fn flags(&mut self) {
        while let Some(byte) = self.peek() {
            let flags = &mut self.printer.flags;
            match byte {
                b'#' => flags.sharp = true,
                b'0' => flags.zero = true,
                b'+' => flags.plus = true,
                b'-' => flags.minus = true,
                b' ' => flags.space = true,
                _ => break,
            }
            self.position += 1;
        }
    }

    /// An index of an operand in brackets.
    fn index(&mut self, after_index: &mut bool) {
        if self.peek() != Some(b'[') {
            return;
        }
        self.reordered = true;
        let rest = &self.format[self.position..];
        let Some(end) = rest.iter().position(|byte| *byte == b']') else {
            self.good_index = false;
            self.position += 1;
            return;
        };
        let digits = std::str::from_utf8(&rest[1..end]).unwrap_or_default();
        let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        let index = digits.parse::<usize>().ok().filter(|_| is_number);
        self.position += end + 1;
        match index {
            Some(index) if (1..=self.operands.len()).contains(&index) => {
                self.next = index - 1;
                *after_index = true;
            }
            _ => self.good_index = false,
        }
    }

    /// An operand that is a width or precision.
    fn star(&mut self) -> Option<i64> {
        let operand = self.operands.get(self.next)?;
        self.next += 1;
        let number = match operand {
            Value::Int(_, number) => *number,
            Value::Uint(_, number) => i64::try_from(*number).ok()?,
            _ => return None,
        };
        (-LIMIT..=LIMIT).contains(&number).then_some(number)
    }

    fn number(&mut self) -> Option<usize> {
        let mut number: Option<i64> = None;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            let value = number.unwrap_or(0) * 10 + i64::from(digit - b'0');
            if value > LIMIT {
                // Go gives up on the whole directive.
                self.position = self.format.len();
                return None;
            }
            number = Some(value);
            self.position += 1;
        }
        number.and_then(|number| usize::try_from(number).ok())
    }

    fn verb(&mut self) -> Result<(), String> {
        let rest = &self.format[self.position..];
        if rest.is_empty() {
            return self.printer.write(b"%!(NOVERB)");
        }
        let (verb, length) = decode(rest);
        self.position += length;
        if verb == '%' {
            return self.printer.write(b"%");
        }
        if !self.good_index {
            return self.printer.write(format!("%!{verb}(BADINDEX)").as_bytes());
        }
        let Some(operand) = self.operands.get(self.next) else {
            return self.printer.write(format!("%!{verb}(MISSING)").as_bytes());
        };
        self.next += 1;
        let flags = &mut self.printer.flags;
        if matches!(verb, 'v' | 'w') {
            flags.sharp_v = std::mem::take(&mut flags.sharp);
            flags.plus_v = std::mem::take(&mut flags.plus);
        }
        self.printer.operand(operand, verb)
    }

    /// Reports operands that no verb took.
    fn extra(&mut self) -> Result<(), String> {
        if self.reordered || self.next >= self.operands.len() {
            return Ok(());
        }
        self.printer.flags = super::verb::Flags::default();
        self.printer.write(b"%!(EXTRA ")?;
        for (position, operand) in self.operands[self.next..].iter().enumerate() {
            if position > 0 {
                self.printer.write(b", ")?;
            }
            if operand.is_nil() {
                self.printer.write(b"<nil>")?;
                continue;
            }
            let name = super::type_name(operand);
            self.printer.write(name.as_bytes())?;
            self.printer.write(b"=")?;
            self.printer.operand(operand, 'v')?;
        }
        self.printer.write(b")")
    }
}

/// The first character, or the replacement character for a byte that is none.
fn decode(bytes: &[u8]) -> (char, usize) {
    let head = &bytes[..bytes.len().min(4)];
    let valid = match std::str::from_utf8(head) {
        Ok(text) => text,
        Err(error) => std::str::from_utf8(&head[..error.valid_up_to()]).unwrap_or_default(),
    };
    match valid.chars().next() {
        Some(character) => (character, character.len_utf8()),
        None => (char::REPLACEMENT_CHARACTER, 1),
    }
}
