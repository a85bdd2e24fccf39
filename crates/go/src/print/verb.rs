//! Verbs: how each kind of value is written under each of them.

use crate::quote::{self, Keep};
use crate::value::{Kind, List, Map, Meter, Object, Type, Value};

/// Values nested deeper than this are cut off.
const DEPTH_LIMIT: usize = crate::value::DEPTH_LIMIT;

/// The flags of a directive.
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a flag of its own in a directive"
)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Flags {
    pub(super) width: Option<usize>,
    pub(super) precision: Option<usize>,
    pub(super) minus: bool,
    pub(super) plus: bool,
    pub(super) sharp: bool,
    pub(super) space: bool,
    pub(super) zero: bool,
    pub(super) plus_v: bool,
    pub(super) sharp_v: bool,
}

/// Writes values to `out`, charging for what it writes.
pub(super) struct Printer<'m> {
    pub(super) out: Vec<u8>,
    pub(super) flags: Flags,
    pub(super) meter: &'m mut dyn Meter,
}

impl<'m> Printer<'m> {
    pub(super) fn new(meter: &'m mut dyn Meter) -> Self {
        Self {
            out: Vec::new(),
            flags: Flags::default(),
            meter,
        }
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), String> {
        self.meter.charge(bytes.len())?;
        self.out.extend_from_slice(bytes);
        Ok(())
    }

    pub(super) fn fill(&mut self, count: usize, byte: u8) -> Result<(), String> {
        self.meter.charge(count)?;
        self.out.extend(std::iter::repeat_n(byte, count));
        Ok(())
    }

    /// Writes a text with blanks, or zeros, up to the width; it is counted in characters.
    pub(super) fn pad(&mut self, bytes: &[u8]) -> Result<(), String> {
        let Some(width) = self.flags.width else {
            return self.write(bytes);
        };
        let missing = width.saturating_sub(count(bytes));
        if self.flags.minus {
            self.write(bytes)?;
            return self.fill(missing, b' ');
        }
        self.fill(missing, if self.flags.zero { b'0' } else { b' ' })?;
        self.write(bytes)
    }

    /// Writes an operand of a format or of `print`.
    pub(super) fn operand(&mut self, value: &Value, verb: char) -> Result<(), String> {
        match (verb, value) {
            ('T' | 'v', Value::Invalid | Value::Nil) => self.pad(b"<nil>"),
            // Wrapping is for errors, and these are not.
            (_, Value::Invalid | Value::Nil)
            | ('w', Value::List(_) | Value::Map(_) | Value::Object(_)) => {
                self.bad_verb(value, verb)
            }
            ('T', _) => {
                let name = super::type_name(value);
                self.string(name.as_bytes(), 's', value)
            }
            ('p', _) => self.pointer(value, verb),
            _ => self.value(value, verb, 0),
        }
    }

    /// Says that a verb does not fit a value.
    pub(super) fn bad_verb(&mut self, value: &Value, verb: char) -> Result<(), String> {
        self.write(format!("%!{verb}(").as_bytes())?;
        if value.is_nil() {
            self.write(b"<nil>")?;
        } else {
            self.write(super::type_name(value).as_bytes())?;
            self.write(b"=")?;
            self.value(value, 'v', 0)?;
        }
        self.write(b")")
    }

    fn value(&mut self, value: &Value, verb: char, depth: usize) -> Result<(), String> {
        self.meter.charge(1)?;
        if depth > DEPTH_LIMIT {
            return self.write(b"...");
        }
        if self.by_method(value, verb)? {
            return Ok(());
        }
        match value {
            Value::Invalid | Value::Nil if self.flags.sharp_v => self.write(b"interface {}(nil)"),
            Value::Invalid | Value::Nil => self.write(b"<nil>"),
            Value::Bool(flag) => match verb {
                't' | 'v' => self.pad(if *flag { b"true" } else { b"false" }),
                _ => self.bad_verb(value, verb),
            },
            Value::Int(_, number) => {
                let magnitude = number.unsigned_abs();
                self.integer_by_verb(value, magnitude, *number < 0, true, verb)
            }
            Value::Uint(_, number) => self.integer_by_verb(value, *number, false, false, verb),
            Value::Float(number) => match verb {
                'v' => self.float(*number, 'g', None),
                'b' | 'g' | 'G' | 'x' | 'X' => self.float(*number, verb, None),
                'f' | 'e' | 'E' | 'F' => self.float(*number, verb, Some(6)),
                _ => self.bad_verb(value, verb),
            },
            Value::Complex(real, imaginary) => self.complex(*real, *imaginary, verb),
            Value::String(text) => self.string(text.as_bytes(), verb, value),
            Value::List(list) => self.list(value, list, verb, depth),
            Value::Map(map) => self.map(map, verb, depth),
            Value::Object(object) => self.object(&**object, verb, depth),
        }
    }

    /// Types with `String` or `Error` are written by it, for verbs that fit strings.
    fn by_method(&mut self, value: &Value, verb: char) -> Result<bool, String> {
        if self.flags.sharp_v || !matches!(verb, 'v' | 's' | 'x' | 'X' | 'q') {
            return Ok(false);
        }
        let text = match value {
            Value::Object(object) => object.string(),
            Value::Int(..) | Value::List(_) | Value::Map(_) => match value.method(b"String") {
                Some(method) => match (method.body)(value, &[], self.meter)? {
                    Value::String(text) => Some(text.to_str().into_owned()),
                    _ => None,
                },
                None => None,
            },
            _ => None,
        };
        let Some(text) = text else { return Ok(false) };
        self.string(text.as_bytes(), verb, value)?;
        Ok(true)
    }

    fn integer_by_verb(
        &mut self,
        value: &Value,
        magnitude: u64,
        is_negative: bool,
        is_signed: bool,
        verb: char,
    ) -> Result<(), String> {
        match verb {
            'v' if self.flags.sharp_v && !is_signed => {
                let sharp = std::mem::replace(&mut self.flags.sharp, true);
                let done = self.integer(magnitude, false, 16, 'v', false);
                self.flags.sharp = sharp;
                done
            }
            'v' | 'd' => self.integer(magnitude, is_negative, 10, verb, false),
            'b' => self.integer(magnitude, is_negative, 2, verb, false),
            'o' | 'O' => self.integer(magnitude, is_negative, 8, verb, false),
            'x' => self.integer(magnitude, is_negative, 16, verb, false),
            'X' => self.integer(magnitude, is_negative, 16, verb, true),
            'c' => {
                let character = character(magnitude, is_negative);
                self.pad(character.encode_utf8(&mut [0; 4]).as_bytes())
            }
            'q' => {
                let keep = if self.flags.plus {
                    Keep::Ascii
                } else {
                    Keep::Printable
                };
                let quoted = quote::quote_char(character(magnitude, is_negative), keep);
                self.pad(quoted.as_bytes())
            }
            'U' => self.unicode(magnitude, is_negative),
            _ => self.bad_verb(value, verb),
        }
    }

    /// `U+0078`, with `#` also the character.
    fn unicode(&mut self, magnitude: u64, is_negative: bool) -> Result<(), String> {
        let code = if is_negative {
            magnitude.wrapping_neg()
        } else {
            magnitude
        };
        let digits = self.flags.precision.filter(|p| *p > 4).unwrap_or(4);
        self.meter.charge(digits)?;
        let code_text = format!("{code:X}");
        let zeros = "0".repeat(digits.saturating_sub(code_text.len()));
        let mut text = format!("U+{zeros}{code_text}");
        if self.flags.sharp
            && let Some(shown) = u32::try_from(code).ok().and_then(char::from_u32)
            && quote::is_print(shown)
        {
            text.extend([' ', '\'', shown, '\'']);
        }
        let zero = std::mem::take(&mut self.flags.zero);
        let done = self.pad(text.as_bytes());
        self.flags.zero = zero;
        done
    }

    fn string(&mut self, bytes: &[u8], verb: char, value: &Value) -> Result<(), String> {
        match verb {
            'v' if self.flags.sharp_v => self.quoted(bytes),
            'v' | 's' => {
                let cut = self.cut(bytes);
                self.pad(cut)
            }
            'x' | 'X' => self.hex(bytes, verb == 'X'),
            'q' => self.quoted(bytes),
            _ => self.bad_verb(value, verb),
        }
    }

    fn quoted(&mut self, bytes: &[u8]) -> Result<(), String> {
        let cut = self.cut(bytes);
        self.meter.charge(cut.len())?;
        if self.flags.sharp && quote::can_backquote(cut) {
            return self.pad(&[b"`", cut, b"`"].concat());
        }
        let keep = if self.flags.plus {
            Keep::Ascii
        } else {
            Keep::Printable
        };
        let quoted = quote::quote_with(cut, keep);
        self.pad(quoted.as_bytes())
    }

    /// The first characters, as many as the precision says.
    fn cut<'a>(&self, bytes: &'a [u8]) -> &'a [u8] {
        let Some(precision) = self.flags.precision else {
            return bytes;
        };
        let starts = character_starts(bytes).nth(precision);
        &bytes[..starts.unwrap_or(bytes.len())]
    }

    /// Bytes as hexadecimal digits.
    fn hex(&mut self, bytes: &[u8], is_upper: bool) -> Result<(), String> {
        let length = self.flags.precision.unwrap_or(bytes.len()).min(bytes.len());
        self.meter.charge(length * 5)?;
        let mut out = Vec::with_capacity(length * 2);
        let prefix: &[u8] = if is_upper { b"0X" } else { b"0x" };
        for (index, byte) in bytes[..length].iter().enumerate() {
            if self.flags.space && index > 0 {
                out.push(b' ');
            }
            if self.flags.sharp && (self.flags.space || index == 0) {
                out.extend_from_slice(prefix);
            }
            let digits = if is_upper {
                format!("{byte:02X}")
            } else {
                format!("{byte:02x}")
            };
            out.extend_from_slice(digits.as_bytes());
        }
        self.pad(&out)
    }

    fn list(&mut self, value: &Value, list: &List, verb: char, depth: usize) -> Result<(), String> {
        if matches!(verb, 's' | 'q' | 'x' | 'X')
            && let Some(bytes) = list.as_bytes()
        {
            return self.string(&bytes, verb, value);
        }
        if self.flags.sharp_v {
            self.write(list.type_of().to_string().as_bytes())?;
            if list.is_nil() {
                return self.write(b"(nil)");
            }
        }
        let (open, close, between) = self.brackets();
        self.write(open)?;
        for (index, item) in list.iter().enumerate() {
            if index > 0 {
                self.write(between)?;
            }
            self.value(item, verb, depth + 1)?;
        }
        self.write(close)
    }

    const fn brackets(&self) -> (&'static [u8], &'static [u8], &'static [u8]) {
        if self.flags.sharp_v {
            (b"{", b"}", b", ")
        } else {
            (b"[", b"]", b" ")
        }
    }

    fn map(&mut self, map: &Map, verb: char, depth: usize) -> Result<(), String> {
        let (open, close, between) = self.brackets();
        if self.flags.sharp_v {
            self.write(map.type_of().to_string().as_bytes())?;
            if map.is_nil() {
                return self.write(b"(nil)");
            }
        } else {
            self.write(b"map")?;
        }
        self.write(open)?;
        for (index, (key, item)) in map.entries().iter().enumerate() {
            if index > 0 {
                self.write(between)?;
            }
            let key = Value::String(key.clone());
            self.value(&key, verb, depth + 1)?;
            self.write(b":")?;
            self.value(item, verb, depth + 1)?;
        }
        self.write(close)
    }

    fn object(&mut self, object: &dyn Object, verb: char, depth: usize) -> Result<(), String> {
        if object.kind() == Kind::Pointer {
            if depth > 0 {
                return self.address_of(object, verb);
            }
            self.write(b"&")?;
        }
        self.fields(object, verb, depth)
    }

    /// A pointer inside of another value: its address, which is a number.
    fn address_of(&mut self, object: &dyn Object, verb: char) -> Result<(), String> {
        let address = std::ptr::from_ref(object).cast::<u8>().addr();
        match verb {
            'v' => self.address(address),
            'b' | 'o' | 'd' | 'x' | 'X' => {
                let base = match verb {
                    'b' => 2,
                    'o' => 8,
                    'd' => 10,
                    _ => 16,
                };
                self.integer(address as u64, false, base, verb, verb == 'X')
            }
            _ => {
                let name = Type::Named(object.named(), Kind::Pointer);
                self.write(format!("%!{verb}({name}=").as_bytes())?;
                self.object(object, 'v', 0)?;
                self.write(b")")
            }
        }
    }

    /// An address, with `0x` unless `#` is given.
    fn address(&mut self, address: usize) -> Result<(), String> {
        let sharp = self.flags.sharp;
        self.flags.sharp = !sharp;
        let done = self.integer(address as u64, false, 16, 'v', false);
        self.flags.sharp = sharp;
        done
    }

    /// A struct in braces.
    pub(super) fn fields(
        &mut self,
        object: &dyn Object,
        verb: char,
        depth: usize,
    ) -> Result<(), String> {
        if self.flags.sharp_v {
            self.write(object.named().name.as_bytes())?;
        }
        self.write(b"{")?;
        for (index, (name, field)) in object.printed().iter().enumerate() {
            if index > 0 {
                self.write(if self.flags.sharp_v { b", " } else { b" " })?;
            }
            if self.flags.plus_v || self.flags.sharp_v {
                self.write(name.as_bytes())?;
                self.write(b":")?;
            }
            self.value(field, verb, depth + 1)?;
        }
        self.write(b"}")
    }

    /// The address of what has one.
    fn pointer(&mut self, value: &Value, verb: char) -> Result<(), String> {
        match value {
            Value::Map(map) => self.address(map.address()),
            Value::List(list) => self.address(list.address()),
            _ => self.bad_verb(value, verb),
        }
    }
}

fn character(magnitude: u64, is_negative: bool) -> char {
    let code = u32::try_from(magnitude).ok().filter(|_| !is_negative);
    code.and_then(char::from_u32)
        .unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// Where characters begin; a byte that is not UTF-8 counts as one.
fn character_starts(bytes: &[u8]) -> impl Iterator<Item = usize> {
    let mut offset = 0;
    bytes.utf8_chunks().flat_map(move |chunk| {
        let start = offset;
        offset += chunk.valid().len() + chunk.invalid().len();
        let valid = chunk.valid().char_indices().map(move |(at, _)| start + at);
        let invalid_from = start + chunk.valid().len();
        let invalid = (0..chunk.invalid().len()).map(move |at| invalid_from + at);
        valid.chain(invalid).collect::<Vec<_>>()
    })
}

fn count(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.chars().count(),
        Err(_) => character_starts(bytes).count(),
    }
}
