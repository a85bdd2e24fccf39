//! What is wrong with a text that is not JSON, in the words of `encoding/json`.

use crate::quote::{Keep, quote_char};

/// What the reader is inside of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Inside {
    Key,
    Value,
    Array,
}

struct Scanner<'t> {
    text: &'t [u8],
    at: usize,
    inside: Vec<Inside>,
}

/// Go's words for the end of a text that should go on.
const END: &str = "unexpected end of JSON input";

/// Deeper nesting is refused by Go.
const MAX_DEPTH: usize = 10_000;

/// Says what is wrong with a text; nothing if it is JSON.
pub(super) fn problem(text: &[u8]) -> Option<String> {
    let mut scanner = Scanner {
        text,
        at: 0,
        inside: Vec::new(),
    };
    scanner.document().err()
}

type Scanned = Result<(), String>;

impl Scanner<'_> {
    fn document(&mut self) -> Scanned {
        self.value()?;
        loop {
            self.blanks();
            let Some(inside) = self.inside.last().copied() else {
                return match self.peek() {
                    None => Ok(()),
                    Some(byte) => Err(invalid(byte, "after top-level value")),
                };
            };
            let byte = self.next()?;
            match (inside, byte) {
                (Inside::Key, b':') => {
                    self.set(Inside::Value);
                    self.value()?;
                }
                (Inside::Key, _) => return Err(invalid(byte, "after object key")),
                (Inside::Value, b',') => {
                    self.set(Inside::Key);
                    self.blanks();
                    self.key()?;
                }
                (Inside::Value, b'}') | (Inside::Array, b']') => {
                    self.inside.pop();
                }
                (Inside::Value, _) => return Err(invalid(byte, "after object key:value pair")),
                (Inside::Array, b',') => self.value()?,
                (Inside::Array, _) => return Err(invalid(byte, "after array element")),
            }
        }
    }

    /// A value, or as much of it as stands before the first value inside.
    fn value(&mut self) -> Scanned {
        loop {
            self.blanks();
            match self.next()? {
                b'{' => {
                    self.enter(Inside::Key)?;
                    self.blanks();
                    if self.peek() == Some(b'}') {
                        self.at += 1;
                        self.inside.pop();
                        return Ok(());
                    }
                    return self.key();
                }
                b'[' => {
                    self.enter(Inside::Array)?;
                    self.blanks();
                    if self.peek() == Some(b']') {
                        self.at += 1;
                        self.inside.pop();
                        return Ok(());
                    }
                }
                b'"' => return self.string(),
                b'-' => {
                    let byte = self.next_or_blank();
                    if !byte.is_ascii_digit() {
                        return Err(invalid(byte, "in numeric literal"));
                    }
                    return self.number(byte);
                }
                byte @ b'0'..=b'9' => return self.number(byte),
                b't' => return self.literal("true"),
                b'f' => return self.literal("false"),
                b'n' => return self.literal("null"),
                byte => return Err(invalid(byte, "looking for beginning of value")),
            }
        }
    }

    fn key(&mut self) -> Scanned {
        match self.next()? {
            b'"' => self.string(),
            byte => Err(invalid(byte, "looking for beginning of object key string")),
        }
    }

    fn string(&mut self) -> Scanned {
        loop {
            match self.next()? {
                b'"' => return Ok(()),
                b'\\' => match self.next_or_blank() {
                    b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => {}
                    b'u' => {
                        for _ in 0..4 {
                            let byte = self.next_or_blank();
                            if !byte.is_ascii_hexdigit() {
                                let place = "in \\u hexadecimal character escape";
                                return Err(invalid(byte, place));
                            }
                        }
                    }
                    byte => return Err(invalid(byte, "in string escape code")),
                },
                byte if byte < b' ' => return Err(invalid(byte, "in string literal")),
                _ => {}
            }
        }
    }

    fn number(&mut self, first: u8) -> Scanned {
        if first != b'0' {
            self.digits();
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digit("after decimal point in numeric literal")?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digit("in exponent of numeric literal")?;
        }
        Ok(())
    }

    /// One digit, and all that follow.
    fn digit(&mut self, place: &str) -> Scanned {
        let byte = self.next_or_blank();
        if !byte.is_ascii_digit() {
            return Err(invalid(byte, place));
        }
        self.digits();
        Ok(())
    }

    fn digits(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
    }

    fn literal(&mut self, word: &str) -> Scanned {
        for expected in word.bytes().skip(1) {
            let byte = self.next_or_blank();
            if byte != expected {
                let place = format!("in literal {word} (expecting '{}')", char::from(expected));
                return Err(invalid(byte, &place));
            }
        }
        Ok(())
    }

    fn enter(&mut self, inside: Inside) -> Scanned {
        self.inside.push(inside);
        if self.inside.len() > MAX_DEPTH {
            return Err("exceeded max depth".to_owned());
        }
        Ok(())
    }

    fn set(&mut self, inside: Inside) {
        if let Some(last) = self.inside.last_mut() {
            *last = inside;
        }
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn next(&mut self) -> Result<u8, String> {
        let byte = self.peek().ok_or(END)?;
        self.at += 1;
        Ok(byte)
    }

    /// The next byte where a blank is wrong: Go reads one behind the end of the text.
    fn next_or_blank(&mut self) -> u8 {
        self.next().unwrap_or(b' ')
    }
}

fn invalid(byte: u8, place: &str) -> String {
    let shown = quote_char(char::from(byte), Keep::Printable);
    format!("invalid character {shown} {place}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        assert_eq!(
            problem(text.as_bytes()).as_deref(),
            Some(expected),
            "{text}"
        );
    }

    /// Compared with `json.Valid` and `json.Unmarshal` of Go 1.26.
    #[test]
    fn problems_are_named_as_go_names_them() {
        for fine in [
            "1",
            " {} ",
            "[1, {\"a\": [true, null, -0.5e+3, \"\\u00e9\"]}, []]",
        ] {
            assert_eq!(problem(fine.as_bytes()), None, "{fine}");
        }
        for cut in ["", "  ", "{", "[1,", "{\"a\"", "{\"a\":", "\"a"] {
            check(cut, END);
        }
        check("-", "invalid character ' ' in numeric literal");
        check(
            "[1.",
            "invalid character ' ' after decimal point in numeric literal",
        );
        check("1e", "invalid character ' ' in exponent of numeric literal");
        check(
            "tru",
            "invalid character ' ' in literal true (expecting 'e')",
        );
        check("\"\\", "invalid character ' ' in string escape code");
        check(
            "\"\\u1",
            "invalid character ' ' in \\u hexadecimal character escape",
        );
        check(
            "here",
            "invalid character 'h' looking for beginning of value",
        );
        check("0x10", "invalid character 'x' after top-level value");
        check("[1 2]", "invalid character '2' after array element");
        check("{\"a\" 1}", "invalid character '1' after object key");
        check(
            "{\"a\": 1 2}",
            "invalid character '2' after object key:value pair",
        );
        check(
            "{a: 1}",
            "invalid character 'a' looking for beginning of object key string",
        );
        check(
            "{\"a\": 1,}",
            "invalid character '}' looking for beginning of object key string",
        );
        check(
            "[1,]",
            "invalid character ']' looking for beginning of value",
        );
        check(
            "nul!",
            "invalid character '!' in literal null (expecting 'l')",
        );
        check("-a", "invalid character 'a' in numeric literal");
        check(
            "1.a",
            "invalid character 'a' after decimal point in numeric literal",
        );
        check(
            "1ea",
            "invalid character 'a' in exponent of numeric literal",
        );
        check("\"\\q\"", "invalid character 'q' in string escape code");
        check(
            "\"\\u12g4\"",
            "invalid character 'g' in \\u hexadecimal character escape",
        );
        check("\"a\nb\"", "invalid character '\\n' in string literal");
        check(
            "'a'",
            "invalid character '\\'' looking for beginning of value",
        );
    }
}
