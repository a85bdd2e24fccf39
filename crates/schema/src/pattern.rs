//! Regular expressions in Go's dialect, run by the `regex` crate.
//!
//! Both come from RE2, with small differences that this module evens out: Go's `\d`, `\w`, `\s` and
//! `\b` are ASCII, brackets inside a class and braces that do not count are plain characters, and
//! `\Q...\E` quotes. Errors have Go's wording where the cause is a common one.

use regex::{Regex, RegexBuilder};

/// Compiled programs stay below this size: a hundred times what real patterns need.
const SIZE_LIMIT: usize = 8 << 20;

/// Compiles an expression written for Go; the error is what Go says of it.
pub(crate) fn compile(pattern: &str) -> Result<Regex, String> {
    let translated = Translator {
        source: pattern,
        position: 0,
        out: String::new(),
        groups: 0,
    }
    .translate()
    .map_err(|problem| format!("error parsing regexp: {problem}"))?;
    RegexBuilder::new(&translated)
        .size_limit(SIZE_LIMIT)
        .build()
        .map_err(|error| format!("error parsing regexp: {error}"))
}

struct Translator<'a> {
    source: &'a str,
    position: usize,
    out: String,
    groups: usize,
}

/// What was translated last, because it decides whether a repetition may follow.
#[derive(Clone, Copy, PartialEq)]
enum Last {
    Nothing,
    Atom,
    /// The repetition that starts at this position.
    Repetition(usize),
}

impl Translator<'_> {
    fn translate(mut self) -> Result<String, String> {
        let mut last = Last::Nothing;
        while let Some(character) = self.peek() {
            last = match character {
                '\\' => self.escape()?,
                '[' => self.class()?,
                '(' => self.group()?,
                ')' => {
                    if self.groups == 0 {
                        return Err(format!("unexpected ): `{}`", self.source));
                    }
                    self.groups -= 1;
                    self.copy(1);
                    Last::Atom
                }
                '*' | '+' | '?' => self.repetition(1, last)?,
                '{' => {
                    if let Some(length) = self.counted_repetition() {
                        self.check_count(length)?;
                        self.repetition(length, last)?
                    } else {
                        self.position += 1;
                        self.out.push_str("\\{");
                        Last::Atom
                    }
                }
                '|' => {
                    self.copy(1);
                    Last::Nothing
                }
                other => {
                    self.copy(other.len_utf8());
                    Last::Atom
                }
            };
        }
        if self.groups > 0 {
            return Err(format!("missing closing ): `{}`", self.source));
        }
        Ok(self.out)
    }

    fn rest(&self) -> &str {
        &self.source[self.position..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn copy(&mut self, length: usize) {
        let text = &self.source[self.position..self.position + length];
        self.out.push_str(text);
        self.position += length;
    }

    fn repetition(&mut self, length: usize, last: Last) -> Result<Last, String> {
        let start = self.position;
        match last {
            Last::Nothing => {
                let operator = &self.rest()[..length];
                return Err(format!(
                    "missing argument to repetition operator: `{operator}`"
                ));
            }
            Last::Repetition(first) => {
                let operators = &self.source[first..start + length];
                return Err(format!("invalid nested repetition operator: `{operators}`"));
            }
            Last::Atom => {}
        }
        self.copy(length);
        if self.peek() == Some('?') {
            self.copy(1);
        }
        Ok(Last::Repetition(start))
    }

    /// The length of `{n}`, `{n,}` or `{n,m}` at the current position; other braces are literal.
    fn counted_repetition(&self) -> Option<usize> {
        let inside = self.rest().strip_prefix('{')?;
        let end = inside.find('}')?;
        let (minimum, maximum) = inside[..end]
            .split_once(',')
            .unwrap_or((&inside[..end], ""));
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        (!minimum.is_empty() && digits(minimum) && digits(maximum)).then_some(end + 2)
    }

    /// RE2 counts to a thousand, and upwards.
    fn check_count(&self, length: usize) -> Result<(), String> {
        let inside = &self.rest()[1..length - 1];
        let (minimum, maximum) = inside.split_once(',').unwrap_or((inside, inside));
        let number = |text: &str| text.parse::<u32>().unwrap_or(u32::MAX);
        let top = if maximum.is_empty() {
            number(minimum)
        } else {
            number(maximum)
        };
        if number(minimum) > 1000 || top > 1000 || number(minimum) > top {
            return Err(format!(
                "invalid repeat count: `{}`",
                &self.rest()[..length]
            ));
        }
        Ok(())
    }

    fn group(&mut self) -> Result<Last, String> {
        self.groups += 1;
        let rest = self.rest();
        let Some(flags) = rest.strip_prefix("(?") else {
            self.copy(1);
            return Ok(Last::Nothing);
        };
        if let Some(name) = flags.strip_prefix("P<").or_else(|| flags.strip_prefix('<')) {
            let is_name = |name: &str| name.chars().all(|c| c == '_' || c.is_alphanumeric());
            match name.split_once('>') {
                Some((name, after)) if !name.is_empty() && is_name(name) => {
                    let length = rest.len() - after.len();
                    self.copy(length);
                    return Ok(Last::Nothing);
                }
                Some((_, after)) => {
                    let group = &rest[..rest.len() - after.len()];
                    return Err(format!("invalid named capture: `{group}`"));
                }
                None => return Err(format!("invalid named capture: `{rest}`")),
            }
        }
        let end = flags
            .find(|c: char| !"imsU-".contains(c))
            .unwrap_or(flags.len());
        match flags[end..].chars().next() {
            Some(':') => self.copy(end + 3),
            // Flags alone are no group.
            Some(')') => {
                self.groups -= 1;
                self.copy(end + 3);
            }
            next => {
                let length = 2 + end + next.map_or(0, char::len_utf8);
                return Err(format!(
                    "invalid or unsupported Perl syntax: `{}`",
                    &rest[..length]
                ));
            }
        }
        Ok(Last::Nothing)
    }

    fn escape(&mut self) -> Result<Last, String> {
        let Some(escaped) = self.rest()[1..].chars().next() else {
            return Err("trailing backslash at end of expression: ``".to_owned());
        };
        let replacement = match escaped {
            'd' => "[0-9]",
            'D' => "[^0-9]",
            'w' => "[0-9A-Za-z_]",
            'W' => "[^0-9A-Za-z_]",
            's' => "[\\t\\n\\f\\r ]",
            'S' => "[^\\t\\n\\f\\r ]",
            'b' => "(?-u:\\b)",
            'B' => "(?-u:\\B)",
            'Q' => return Ok(self.quoted()),
            _ => {
                self.plain_escape(escaped)?;
                return Ok(Last::Atom);
            }
        };
        self.out.push_str(replacement);
        self.position += 2;
        Ok(Last::Atom)
    }

    /// An escape that both dialects write alike.
    fn plain_escape(&mut self, escaped: char) -> Result<(), String> {
        let known = matches!(
            escaped,
            'a' | 'f' | 't' | 'n' | 'r' | 'v' | 'A' | 'z' | 'x' | 'p' | 'P'
        );
        if !known && (escaped.is_alphanumeric() || !escaped.is_ascii()) {
            return Err(format!("invalid escape sequence: `\\{escaped}`"));
        }
        if known {
            self.copy(1 + escaped.len_utf8());
        } else {
            // Rust refuses to escape what has no meaning, such as `\/` or `\"` in some positions.
            self.out
                .push_str(&regex::escape(escaped.encode_utf8(&mut [0; 4])));
            self.position += 1 + escaped.len_utf8();
        }
        Ok(())
    }

    fn quoted(&mut self) -> Last {
        let text = &self.source[self.position + 2..];
        let (literal, length) = match text.find("\\E") {
            Some(end) => (&text[..end], end + 2),
            None => (text, text.len()),
        };
        self.out.push_str(&regex::escape(literal));
        self.position += 2 + length;
        if literal.is_empty() {
            Last::Nothing
        } else {
            Last::Atom
        }
    }

    fn class(&mut self) -> Result<Last, String> {
        let start = self.position;
        self.copy(1);
        if self.peek() == Some('^') {
            self.copy(1);
        }
        let mut first = true;
        loop {
            let Some(character) = self.peek() else {
                return Err(format!("missing closing ]: `{}`", &self.source[start..]));
            };
            match character {
                ']' if !first => {
                    self.copy(1);
                    return Ok(Last::Atom);
                }
                '[' if self.rest().starts_with("[:") && self.rest().contains(":]") => {
                    let length = self.rest().find(":]").map_or(1, |end| end + 2);
                    self.copy(length);
                }
                '\\' => self.class_escape(start)?,
                '[' | ']' | '&' | '~' => {
                    self.out.push('\\');
                    self.copy(1);
                }
                other => self.copy(other.len_utf8()),
            }
            first = false;
        }
    }

    fn class_escape(&mut self, start: usize) -> Result<(), String> {
        let Some(escaped) = self.rest()[1..].chars().next() else {
            return Err(format!("missing closing ]: `{}`", &self.source[start..]));
        };
        let replacement = match escaped {
            'd' => "0-9",
            'D' => "[^0-9]",
            'w' => "0-9A-Za-z_",
            'W' => "[^0-9A-Za-z_]",
            's' => "\\t\\n\\f\\r ",
            'S' => "[^\\t\\n\\f\\r ]",
            _ => return self.plain_escape(escaped),
        };
        self.out.push_str(replacement);
        self.position += 2;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn go_expressions_match_as_in_go() {
        let cases = [
            (r"^\d+$", "123", true),
            (r"^\d+$", "١٢٣", false),
            (r"^\w+$", "naïve", false),
            (r"\bfoo\b", "éfoo", true),
            (r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "a-b", true),
            (r"^[[:alpha:]]+$", "abc", true),
            (r"^[[]$", "[", true),
            (r"^[]a]$", "]", true),
            (r"^[a&&b]+$", "a&b", true),
            (r"^[\w.-]+$", "a.b-c", true),
            (r"^{a}$", "{a}", true),
            (r"^a{2}$", "aa", true),
            (r"^a{2,}b{1,2}$", "aaabb", true),
            (r"^\Qa.b\E$", "a.b", true),
            (r"^\Qa.b\E$", "axb", false),
            (r"(?i)^ABC$", "abc", true),
            (r"^(?P<x>a|b)$", "b", true),
            (r"^https?:\/\/.*$", "http://x", true),
            (r#"^\"\'\-\_$"#, "\"'-_", true),
            ("b", "abc", true),
            (r"^[^\s]+$", "a b", false),
        ];
        for (pattern, text, expected) in cases {
            let regex = compile(pattern).unwrap_or_else(|error| panic!("{pattern}: {error}"));
            assert_eq!(regex.is_match(text), expected, "{pattern} on {text}");
        }
    }

    #[test]
    fn broken_expressions_are_refused_as_go_does() {
        let cases = [
            ("[a", "missing closing ]: `[a`"),
            ("(a", "missing closing ): `(a`"),
            ("a)", "unexpected ): `a)`"),
            ("*a", "missing argument to repetition operator: `*`"),
            ("a**", "invalid nested repetition operator: `**`"),
            (r"\y", r"invalid escape sequence: `\y`"),
            ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
            ("(?<=a)", "invalid named capture: `(?<=a)`"),
            ("a{1001}", "invalid repeat count: `{1001}`"),
            ("a{2,1}", "invalid repeat count: `{2,1}`"),
            ("x{2}{3}", "invalid nested repetition operator: `{2}{3}`"),
            ("a|*", "missing argument to repetition operator: `*`"),
            ("a\\", "trailing backslash at end of expression: ``"),
        ];
        for (pattern, expected) in cases {
            let error = compile(pattern).unwrap_err();
            assert_eq!(error, format!("error parsing regexp: {expected}"));
        }
    }
}
