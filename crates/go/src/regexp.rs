//! Regular expressions in Go's dialect, which is RE2's.
//!
//! [`Regex::new`] checks a pattern against RE2's grammar and translates it for the matching engine.
//! The two dialects agree on most of the syntax but not on all of it: here the Perl classes are
//! ASCII, a malformed repetition is literal text, brackets inside a class are ordinary characters,
//! and stacked repetitions are errors. Matching takes time linear in the text.

mod translate;

#[cfg(test)]
mod tests;

use regex::bytes;

/// Compiled patterns may not grow beyond this; a pattern is part of untrusted input.
const SIZE_LIMIT: usize = 8 << 20;

/// A compiled pattern.
#[derive(Debug, Clone)]
pub struct Regex {
    inner: bytes::Regex,
}

impl Regex {
    /// Compiles a pattern. The error is worded like that of the reference, without its prefix
    /// `error parsing regexp: `.
    pub fn new(pattern: &str) -> Result<Self, String> {
        let translated = translate::translate(pattern)?;
        let built = bytes::RegexBuilder::new(&translated)
            .size_limit(SIZE_LIMIT)
            .build();
        match built {
            Ok(inner) => Ok(Regex { inner }),
            Err(regex::Error::CompiledTooBig(_)) => {
                Err(format!("expression too large: `{pattern}`"))
            }
            // Only names of Unicode classes and of groups are left to the engine to judge.
            Err(_) if pattern.contains("\\p") || pattern.contains("\\P") => {
                Err(format!("invalid character class range: `{pattern}`"))
            }
            Err(_) => Err(format!("invalid or unsupported syntax: `{pattern}`")),
        }
    }

    /// Whether the pattern matches anywhere in the text.
    pub fn is_match(&self, text: &str) -> bool {
        self.inner.is_match(text.as_bytes())
    }

    /// Whether the pattern matches anywhere in the bytes.
    pub fn is_match_bytes(&self, text: &[u8]) -> bool {
        self.inner.is_match(text)
    }

    /// The leftmost match, or all of them up to `limit`, without groups.
    pub fn find_all(&self, text: &str, limit: usize) -> Vec<String> {
        let matches = self.inner.find_iter(text.as_bytes()).take(limit);
        matches.map(|found| lossy(found.as_bytes())).collect()
    }

    /// The text of every group of each match up to `limit`; a group that took no part is empty.
    pub fn find_all_groups(&self, text: &str, limit: usize) -> Vec<Vec<String>> {
        let matches = self.inner.captures_iter(text.as_bytes()).take(limit);
        let group = |part: Option<bytes::Match<'_>>| {
            part.map_or_else(String::new, |part| lossy(part.as_bytes()))
        };
        matches
            .map(|captures| captures.iter().map(group).collect())
            .collect()
    }

    /// Where the matches are, from left to right. A match of nothing right after another is left out.
    pub fn matches<'r>(&'r self, text: &'r [u8]) -> impl Iterator<Item = std::ops::Range<usize>> {
        self.inner
            .find_iter(text)
            .map(|found| found.start()..found.end())
    }

    /// Replaces every match; if it `expands`, `$1` and `${name}` stand for groups.
    pub fn replace_all_bytes(&self, text: &[u8], replacement: &[u8], expands: bool) -> Vec<u8> {
        let replaced = if expands {
            self.inner.replace_all(text, replacement)
        } else {
            self.inner.replace_all(text, bytes::NoExpand(replacement))
        };
        replaced.into_owned()
    }

    /// The names of the groups by index; unnamed groups and the whole match have none.
    pub fn group_names(&self) -> Vec<Option<&str>> {
        self.inner.capture_names().collect()
    }

    /// Replaces every match; `$1` and `${name}` in the replacement stand for groups.
    pub fn replace_all(&self, text: &str, replacement: &str) -> String {
        lossy(
            &self
                .inner
                .replace_all(text.as_bytes(), replacement.as_bytes()),
        )
    }

    /// Replaces every match by exactly the given text.
    pub fn replace_all_literal(&self, text: &str, replacement: &str) -> String {
        let replacement = bytes::NoExpand(replacement.as_bytes());
        lossy(&self.inner.replace_all(text.as_bytes(), replacement))
    }
}

/// Escapes what has a meaning in patterns: `regexp.QuoteMeta`.
pub fn quote_meta(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    for byte in text {
        if br"\.+*?()|[]{}^$".contains(byte) {
            out.push(b'\\');
        }
        out.push(*byte);
    }
    out
}

/// Matches of text are text, except where an ASCII word boundary falls inside a character.
fn lossy(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
