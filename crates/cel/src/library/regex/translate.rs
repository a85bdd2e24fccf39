//! From RE2's syntax to that of the `regex` crate, which differs in details: RE2's `\d`, `\w`,
//! `\s` and `\b` know only ASCII, brackets and `&&` mean nothing inside a class, a brace that
//! starts no repetition is itself, and `\Q...\E` quotes.

use std::iter::Peekable;
use std::str::Chars;

/// Largest count of a repetition, as in RE2.
const MAX_REPEAT: u32 = 1_000;

/// Rewrites `pattern`, or says what only RE2 would refuse. What neither syntax knows is left for
/// the compiler to refuse.
pub(super) fn translate(pattern: &str) -> Result<String, String> {
    let mut translator = Translator {
        input: pattern.chars().peekable(),
        output: String::with_capacity(pattern.len() + 8),
    };
    translator.run()?;
    Ok(translator.output)
}

struct Translator<'p> {
    input: Peekable<Chars<'p>>,
    output: String,
}

impl Translator<'_> {
    fn run(&mut self) -> Result<(), String> {
        // The repetition just read: repeating it again is refused, making it lazy is not.
        let mut repetition: Option<String> = None;
        while let Some(character) = self.input.next() {
            let start = self.output.len();
            let mut repeats = matches!(character, '*' | '+' | '?');
            match character {
                '\\' => self.escape(),
                '[' => self.class(),
                '{' if self.is_repetition() => {
                    repeats = true;
                    self.repetition()?;
                }
                '{' => self.output.push_str("\\{"),
                '}' => self.output.push_str("\\}"),
                other => self.output.push(other),
            }
            repetition = match (repetition, repeats) {
                (Some(_), true) if character == '?' => None,
                (Some(before), true) => {
                    let part = &self.output[start..];
                    return Err(format!(
                        "invalid nested repetition operator: `{before}{part}`"
                    ));
                }
                (None, true) => Some(self.output[start..].to_owned()),
                (_, false) => None,
            };
        }
        Ok(())
    }

    /// Whether what follows `{` makes it a repetition: `n}`, `n,}` or `n,m}`.
    fn is_repetition(&self) -> bool {
        let rest: String = self.input.clone().take_while(|c| *c != '}').collect();
        let closed = self.input.clone().any(|c| c == '}');
        let (least, most) = rest.split_once(',').unwrap_or((&rest, ""));
        let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        closed && !least.is_empty() && number(least) && number(most)
    }

    fn repetition(&mut self) -> Result<(), String> {
        let start = self.output.len();
        self.output.push('{');
        for character in self.input.by_ref() {
            self.output.push(character);
            if character == '}' {
                break;
            }
        }
        let text = &self.output[start..];
        let counts = text.trim_matches(['{', '}']).split(',');
        for count in counts.filter(|count| !count.is_empty()) {
            if count
                .parse::<u32>()
                .map_or(true, |count| count > MAX_REPEAT)
            {
                return Err(format!("invalid repeat count: `{text}`"));
            }
        }
        Ok(())
    }

    fn escape(&mut self) {
        match self.input.next() {
            None => self.output.push('\\'),
            Some('d') => self.output.push_str("[0-9]"),
            Some('D') => self.output.push_str("[^0-9]"),
            Some('w') => self.output.push_str("[0-9A-Za-z_]"),
            Some('W') => self.output.push_str("[^0-9A-Za-z_]"),
            Some('s') => self.output.push_str(r"[\t\n\f\r ]"),
            Some('S') => self.output.push_str(r"[^\t\n\f\r ]"),
            Some('b') => self.output.push_str(r"(?-u:\b)"),
            Some('Q') => self.quoted(),
            Some(other) => {
                self.output.push('\\');
                self.output.push(other);
            }
        }
    }

    /// `\Q...\E`: everything in between stands for itself.
    fn quoted(&mut self) {
        while let Some(character) = self.input.next() {
            if character == '\\' && self.input.peek() == Some(&'E') {
                self.input.next();
                return;
            }
            if !character.is_alphanumeric() && character.is_ascii() && character != '_' {
                self.output.push('\\');
            }
            self.output.push(character);
        }
    }

    fn class(&mut self) {
        self.output.push('[');
        if self.input.next_if_eq(&'^').is_some() {
            self.output.push('^');
        }
        // A bracket that closes nothing yet is itself.
        if self.input.next_if_eq(&']').is_some() {
            self.output.push_str("\\]");
        }
        while let Some(character) = self.input.next() {
            match character {
                ']' => {
                    self.output.push(']');
                    return;
                }
                '\\' => self.class_escape(),
                '[' if self.input.peek() == Some(&':') => self.named_class(),
                '[' | '&' | '~' => {
                    self.output.push('\\');
                    self.output.push(character);
                }
                other => self.output.push(other),
            }
        }
    }

    fn class_escape(&mut self) {
        match self.input.next() {
            None => self.output.push('\\'),
            Some('d') => self.output.push_str("0-9"),
            Some('D') => self.output.push_str("[^0-9]"),
            Some('w') => self.output.push_str("0-9A-Za-z_"),
            Some('W') => self.output.push_str("[^0-9A-Za-z_]"),
            Some('s') => self.output.push_str(r"\t\n\f\r "),
            Some('S') => self.output.push_str(r"[^\t\n\f\r ]"),
            Some(other) => {
                self.output.push('\\');
                self.output.push(other);
            }
        }
    }

    /// `[:alpha:]`.
    fn named_class(&mut self) {
        self.output.push('[');
        for character in self.input.by_ref() {
            self.output.push(character);
            if character == ']' {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::compile;
    use proptest::prelude::*;

    #[track_caller]
    fn check(pattern: &str, text: &str, expected: bool) {
        assert_eq!(
            compile(pattern).unwrap().is_match(text),
            expected,
            "{pattern} on {text}"
        );
    }

    #[test]
    fn perl_classes_are_ascii() {
        check(r"^\d+$", "123", true);
        check(r"^\d+$", "١٢٣", false);
        check(r"^\w$", "é", false);
        check(r"^[\w-]+$", "a-b", true);
        check(r"^[\D]$", "x", true);
        check(r"^\S+$", "é", true);
    }

    #[test]
    fn brackets_and_braces_can_be_themselves() {
        check("^[[]$", "[", true);
        check("^[]a]$", "]", true);
        check("^a{$", "a{", true);
        check("^a{,2}$", "a{,2}", true);
        check("^a{2}$", "aa", true);
        check("^[a&&b]$", "&", true);
        check(r"^\Qa.b\E$", "a.b", true);
        check(r"^\Qa.b\E$", "axb", false);
        check("^[[:alpha:]]+$", "abc", true);
        check("^a{2,}?b??$", "aaa", true);
    }

    #[test]
    fn broken_patterns_are_refused() {
        for pattern in ["[", "(", "*", r"\", "a**", "a+{2}", "a{1001}", "(?<n"] {
            assert!(compile(pattern).is_err(), "{pattern}");
        }
    }

    proptest! {
        #[test]
        fn no_pattern_makes_translation_panic(pattern in "\\PC{0,20}") {
            let _ = compile(&pattern);
        }
    }
}
