//! Checks a pattern against RE2's grammar and writes it in the engine's grammar.

use std::fmt::Write as _;

/// Nested groups beyond this are refused, as the reference does.
const NESTING_LIMIT: usize = 250;

/// The largest repetition count RE2 accepts.
const REPEAT_LIMIT: u32 = 1000;

/// Translates a pattern; the error names the offending part in RE2's words.
pub(super) fn translate(pattern: &str) -> Result<String, String> {
    let mut translator = Translator {
        pattern,
        rest: pattern,
        output: String::with_capacity(pattern.len() + 16),
        depth: 0,
        names: Vec::new(),
    };
    translator.run()?;
    Ok(translator.output)
}

/// What stands before the current position, which decides whether a repetition may follow.
#[derive(Clone, Copy, PartialEq)]
enum Before<'a> {
    Nothing,
    Atom,
    /// A repetition and where it began.
    Repetition(&'a str),
}

struct Translator<'a> {
    pattern: &'a str,
    rest: &'a str,
    output: String,
    depth: usize,
    names: Vec<&'a str>,
}

impl<'a> Translator<'a> {
    fn run(&mut self) -> Result<(), String> {
        let mut before = Before::Nothing;
        while let Some(character) = self.rest.chars().next() {
            before = match character {
                '(' => self.group_start()?,
                ')' => self.group_end()?,
                '|' => {
                    self.copy(1);
                    Before::Nothing
                }
                '*' | '+' | '?' => self.repetition(before, 1)?,
                '{' => match self.counted_repetition()? {
                    Some(length) => self.repetition(before, length)?,
                    None => self.literal(character),
                },
                '[' => self.class()?,
                '\\' => self.escape()?,
                '.' | '^' | '$' => {
                    self.copy(1);
                    Before::Atom
                }
                _ => self.literal(character),
            };
        }
        if self.depth > 0 {
            return Err(format!("missing closing ): `{}`", self.pattern));
        }
        Ok(())
    }

    fn copy(&mut self, length: usize) {
        let (taken, rest) = self.rest.split_at(length);
        self.output.push_str(taken);
        self.rest = rest;
    }

    fn skip(&mut self, length: usize) {
        self.rest = &self.rest[length..];
    }

    fn literal(&mut self, character: char) -> Before<'a> {
        push_literal(&mut self.output, character);
        self.skip(character.len_utf8());
        Before::Atom
    }

    fn group_start(&mut self) -> Result<Before<'a>, String> {
        self.depth += 1;
        if self.depth > NESTING_LIMIT {
            return Err(format!("expression nests too deeply: `{}`", self.pattern));
        }
        let Some(after) = self.rest.strip_prefix("(?") else {
            self.copy(1);
            return Ok(Before::Nothing);
        };
        if let Some(named) = after.strip_prefix("P<").or_else(|| after.strip_prefix('<')) {
            return self.named_group(named);
        }
        let flags_length = after
            .bytes()
            .take_while(|byte| matches!(byte, b'i' | b'm' | b's' | b'U' | b'-'))
            .count();
        let flags = &after[..flags_length];
        let unsupported = || {
            let end = after[flags_length..]
                .chars()
                .next()
                .map_or(0, char::len_utf8);
            let shown = &self.rest[..2 + flags_length + end];
            format!("invalid or unsupported Perl syntax: `{shown}`")
        };
        let well_formed = flags.matches('-').count() <= 1 && !flags.ends_with('-');
        match after.as_bytes().get(flags_length) {
            Some(b':') if well_formed => {
                self.copy(2 + flags_length + 1);
                Ok(Before::Nothing)
            }
            Some(b')') if well_formed && !flags.is_empty() => {
                self.copy(2 + flags_length + 1);
                self.depth -= 1;
                Ok(Before::Nothing)
            }
            None => Err(format!("missing closing ): `{}`", self.pattern)),
            _ => Err(unsupported()),
        }
    }

    fn named_group(&mut self, named: &'a str) -> Result<Before<'a>, String> {
        let Some(end) = named.find('>') else {
            return Err(format!("invalid named capture: `{}`", self.rest));
        };
        let name = &named[..end];
        let consumed = self.rest.len() - named.len() + end + 1;
        let word = name
            .chars()
            .all(|character| character == '_' || character.is_alphanumeric());
        if name.is_empty() || !word {
            return Err(format!(
                "invalid named capture: `{}`",
                &self.rest[..consumed]
            ));
        }
        if self.names.contains(&name) {
            return Err(format!("duplicate capture group name: `{name}`"));
        }
        self.names.push(name);
        let _ = write!(self.output, "(?P<{name}>");
        self.skip(consumed);
        Ok(Before::Nothing)
    }

    fn group_end(&mut self) -> Result<Before<'a>, String> {
        if self.depth == 0 {
            return Err(format!("unexpected ): `{}`", self.pattern));
        }
        self.depth -= 1;
        self.copy(1);
        Ok(Before::Atom)
    }

    /// Writes a repetition of `length` bytes and its laziness mark.
    fn repetition(&mut self, before: Before<'a>, length: usize) -> Result<Before<'a>, String> {
        let start = self.rest;
        let lazy = self.rest[length..].starts_with('?');
        let length = length + usize::from(lazy);
        match before {
            Before::Nothing => {
                let operator = &start[..length];
                Err(format!(
                    "missing argument to repetition operator: `{operator}`"
                ))
            }
            Before::Repetition(previous) => {
                let stacked = &previous[..previous.len() - start.len() + length];
                Err(format!("invalid nested repetition operator: `{stacked}`"))
            }
            Before::Atom => {
                self.copy(length);
                Ok(Before::Repetition(start))
            }
        }
    }

    /// The length of `{n}`, `{n,}` or `{n,m}` at the current position; `None` when the brace is
    /// literal text.
    fn counted_repetition(&self) -> Result<Option<usize>, String> {
        let Some(end) = self.rest.find('}') else {
            return Ok(None);
        };
        let body = &self.rest[1..end];
        let (low, high) = match body.split_once(',') {
            None => (body, Some(body)),
            Some((low, "")) => (low, None),
            Some((low, high)) => (low, Some(high)),
        };
        let is_count = |digits: &str| {
            !digits.is_empty()
                && digits.bytes().all(|byte| byte.is_ascii_digit())
                && (digits.len() == 1 || !digits.starts_with('0'))
        };
        if !is_count(low) || !high.is_none_or(is_count) {
            return Ok(None);
        }
        let value = |digits: &str| digits.parse::<u32>().unwrap_or(u32::MAX);
        let low = value(low);
        let high = high.map_or(low, value);
        if low > REPEAT_LIMIT || high > REPEAT_LIMIT || low > high {
            return Err(format!("invalid repeat count: `{}`", &self.rest[..=end]));
        }
        Ok(Some(end + 1))
    }

    /// An escape outside a class.
    fn escape(&mut self) -> Result<Before<'a>, String> {
        let after = &self.rest[1..];
        let Some(character) = after.chars().next() else {
            return Err("trailing backslash at end of expression: ``".to_owned());
        };
        match character {
            'A' | 'z' => self.copy(2),
            // Word boundaries are ASCII in this dialect.
            'b' => {
                self.output.push_str(r"(?-u:\b)");
                self.skip(2);
            }
            'B' => {
                self.output.push_str(r"(?-u:\B)");
                self.skip(2);
            }
            'Q' => self.quoted(),
            'd' | 'D' | 's' | 'S' | 'w' | 'W' => {
                self.output.push_str(perl_class(character));
                self.skip(2);
            }
            'p' | 'P' => self.unicode_class()?,
            _ => {
                let character = self.escaped_character()?;
                push_literal(&mut self.output, character);
            }
        }
        Ok(Before::Atom)
    }

    /// `\Q…\E`: everything between is literal.
    fn quoted(&mut self) {
        self.skip(2);
        let length = self.rest.find(r"\E").unwrap_or(self.rest.len());
        for character in self.rest[..length].chars() {
            push_literal(&mut self.output, character);
        }
        self.skip((length + 2).min(self.rest.len()));
    }

    /// `\pL` or `\p{Greek}`; the engine knows the names.
    fn unicode_class(&mut self) -> Result<(), String> {
        let negated = self.rest[1..].starts_with('P');
        let after = &self.rest[2..];
        let (name, length) = match after.strip_prefix('{') {
            Some(inner) => match inner.find('}') {
                Some(end) => (&inner[..end], end + 2),
                None => return Err(format!("invalid character class range: `{}`", self.rest)),
            },
            None => match after.chars().next() {
                Some(first) => (&after[..first.len_utf8()], first.len_utf8()),
                None => return Err(format!("invalid character class range: `{}`", self.rest)),
            },
        };
        let (name, inverted) = match name.strip_prefix('^') {
            Some(name) => (name, true),
            None => (name, false),
        };
        let known = |character: char| character.is_ascii_alphanumeric() || character == '_';
        if name.is_empty() || !name.chars().all(known) {
            let shown = &self.rest[..2 + length];
            return Err(format!("invalid character class range: `{shown}`"));
        }
        let letter = if negated == inverted { 'p' } else { 'P' };
        let _ = write!(self.output, r"\{letter}{{{name}}}");
        self.skip(2 + length);
        Ok(())
    }

    /// Reads an escape that stands for one character.
    fn escaped_character(&mut self) -> Result<char, String> {
        let after = &self.rest[1..];
        let Some(character) = after.chars().next() else {
            return Err("trailing backslash at end of expression: ``".to_owned());
        };
        let simple = match character {
            'a' => Some('\x07'),
            'f' => Some('\x0c'),
            'n' => Some('\n'),
            'r' => Some('\r'),
            't' => Some('\t'),
            'v' => Some('\x0b'),
            _ if character.is_ascii_punctuation() => Some(character),
            _ => None,
        };
        if let Some(simple) = simple {
            self.skip(1 + character.len_utf8());
            return Ok(simple);
        }
        match character {
            'x' => self.hexadecimal(),
            '0'..='7' => self.octal(character),
            _ => Err(self.invalid_escape(1 + character.len_utf8())),
        }
    }

    fn invalid_escape(&self, length: usize) -> String {
        format!(
            "invalid escape sequence: `{}`",
            &self.rest[..length.min(self.rest.len())]
        )
    }

    fn octal(&mut self, first: char) -> Result<char, String> {
        let after = &self.rest[1..];
        let length = after
            .bytes()
            .take(3)
            .take_while(|byte| matches!(byte, b'0'..=b'7'))
            .count();
        // A single digit other than zero would be a back reference, which RE2 does not have.
        if first != '0' && length == 1 {
            return Err(self.invalid_escape(2));
        }
        let code = u32::from_str_radix(&after[..length], 8).unwrap_or(0);
        let character = char::from_u32(code).ok_or_else(|| self.invalid_escape(1 + length))?;
        self.skip(1 + length);
        Ok(character)
    }

    fn hexadecimal(&mut self) -> Result<char, String> {
        let after = &self.rest[2..];
        let (digits, length) = match after.strip_prefix('{') {
            Some(inner) => match inner.find('}') {
                Some(end) => (&inner[..end], end + 2),
                None => return Err(self.invalid_escape(3)),
            },
            None => match after.get(..2) {
                Some(digits) => (digits, 2),
                None => return Err(self.invalid_escape(self.rest.len())),
            },
        };
        let is_hexadecimal = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_hexdigit());
        let character = u32::from_str_radix(digits, 16)
            .ok()
            .filter(|_| is_hexadecimal)
            .and_then(char::from_u32)
            .ok_or_else(|| self.invalid_escape(2 + length))?;
        self.skip(2 + length);
        Ok(character)
    }

    /// A bracket class.
    fn class(&mut self) -> Result<Before<'a>, String> {
        let start = self.rest;
        let missing = || format!("missing closing ]: `{start}`");
        self.copy(1);
        if self.rest.starts_with('^') {
            self.copy(1);
        }
        let mut first = true;
        loop {
            let Some(character) = self.rest.chars().next() else {
                return Err(missing());
            };
            if character == ']' && !first {
                self.copy(1);
                return Ok(Before::Atom);
            }
            first = false;
            if self.rest.starts_with("[:")
                && let Some(end) = self.rest.find(":]")
            {
                self.posix_class(end + 2)?;
                continue;
            }
            if character == '\\' {
                match self.rest[1..].chars().next() {
                    Some(letter @ ('d' | 'D' | 's' | 'S' | 'w' | 'W')) => {
                        self.output.push_str(perl_class(letter));
                        self.skip(2);
                        continue;
                    }
                    Some('p' | 'P') => {
                        self.unicode_class()?;
                        continue;
                    }
                    _ => {}
                }
            }
            self.class_range(&missing)?;
        }
    }

    fn posix_class(&mut self, length: usize) -> Result<(), String> {
        const NAMES: [&str; 14] = [
            "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print",
            "punct", "space", "upper", "word", "xdigit",
        ];
        let shown = &self.rest[..length];
        let name = &shown[2..length - 2];
        if !NAMES.contains(&name.strip_prefix('^').unwrap_or(name)) {
            return Err(format!("invalid character class range: `{shown}`"));
        }
        self.copy(length);
        Ok(())
    }

    /// One character or a range of them inside a class.
    fn class_range(&mut self, missing: &dyn Fn() -> String) -> Result<(), String> {
        let start = self.rest;
        let low = self.class_character(missing)?;
        let mut high = low;
        let is_range =
            self.rest.starts_with('-') && self.rest.len() > 1 && !self.rest[1..].starts_with(']');
        if is_range {
            self.skip(1);
            high = self.class_character(missing)?;
            if high < low {
                let shown = &start[..start.len() - self.rest.len()];
                return Err(format!("invalid character class range: `{shown}`"));
            }
        }
        push_literal(&mut self.output, low);
        if high != low {
            self.output.push('-');
            push_literal(&mut self.output, high);
        }
        Ok(())
    }

    fn class_character(&mut self, missing: &dyn Fn() -> String) -> Result<char, String> {
        match self.rest.chars().next() {
            None => Err(missing()),
            Some('\\') => self.escaped_character(),
            Some(character) => {
                self.skip(character.len_utf8());
                Ok(character)
            }
        }
    }
}

/// Perl classes as bracket classes, valid outside and inside another class.
fn perl_class(letter: char) -> &'static str {
    match letter {
        'd' => "[0-9]",
        'D' => "[^0-9]",
        's' => r"[\t\n\x0C\r ]",
        'S' => r"[^\t\n\x0C\r ]",
        'w' => "[0-9A-Za-z_]",
        _ => "[^0-9A-Za-z_]",
    }
}

/// Writes a character so that the engine takes it literally everywhere.
fn push_literal(output: &mut String, character: char) {
    if character.is_ascii_alphanumeric() || (!character.is_ascii() && !character.is_control()) {
        output.push(character);
    } else {
        let _ = write!(output, r"\x{{{:X}}}", u32::from(character));
    }
}
