//! Versions and version ranges as Helm compares them.
//!
//! Parts that are missing from a version count as zero; in a range they are wildcards. A range
//! matches a pre-release only if it names one itself.

use std::cmp::Ordering;
use std::fmt;

/// A version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Version {
    major: u64,
    minor: u64,
    patch: u64,
    prerelease: String,
}

impl Version {
    /// Reads `1`, `v1.2`, `1.2.3-rc.1+build`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let (text, build) = split_once_or(text, '+');
        let (numbers, prerelease) = split_once_or(text, '-');
        if !build.is_none_or(is_identifiers) || !prerelease.is_none_or(is_identifiers) {
            return None;
        }
        let mut parts = numbers.split('.').map(number);
        let (major, minor, patch) = (parts.next()??, parts.next(), parts.next());
        if parts.next().is_some() {
            return None;
        }
        Some(Self {
            major,
            minor: minor.map_or(Some(0), |part| part)?,
            patch: patch.map_or(Some(0), |part| part)?,
            prerelease: prerelease.unwrap_or_default().to_owned(),
        })
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if self.prerelease.is_empty() {
            return Ok(());
        }
        write!(f, "-{}", self.prerelease)
    }
}

fn split_once_or(text: &str, separator: char) -> (&str, Option<&str>) {
    match text.split_once(separator) {
        Some((before, after)) => (before, Some(after)),
        None => (text, None),
    }
}

fn number(text: &str) -> Option<u64> {
    let is_digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_digits.then(|| text.parse().ok()).flatten()
}

fn is_identifiers(text: &str) -> bool {
    text.split('.').all(|part| {
        !part.is_empty()
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    })
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.major, self.minor, self.patch)
            .cmp(&(other.major, other.minor, other.patch))
            .then_with(|| compare_prereleases(&self.prerelease, &other.prerelease))
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A version without a pre-release is the later one; numbers come before words.
fn compare_prereleases(first: &str, second: &str) -> Ordering {
    match (first.is_empty(), second.is_empty()) {
        (true, true) => return Ordering::Equal,
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    let (mut first, mut second) = (first.split('.'), second.split('.'));
    loop {
        let order = match (first.next(), second.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => Ordering::Less,
            (Some(_), None) => Ordering::Greater,
            (Some(a), Some(b)) => match (number(a), number(b)) {
                (Some(a), Some(b)) => a.cmp(&b),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (None, None) => a.cmp(b),
            },
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

/// A range: alternatives of conditions that all have to hold.
#[derive(Debug, Clone)]
pub(crate) struct Range {
    alternatives: Vec<Vec<Condition>>,
}

#[derive(Debug, Clone)]
struct Condition {
    operator: Operator,
    version: Version,
    /// How many of major, minor and patch were written.
    written: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    Tilde,
    Caret,
}

impl Range {
    /// Reads `>=1.2, <2 || ^3`, `1.2 - 1.4`, `~1.2`, `1.x`.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let alternatives = text.split("||").map(conditions).collect::<Option<_>>()?;
        Some(Self { alternatives })
    }

    /// True if the version is in the range.
    pub(crate) fn contains(&self, version: &Version) -> bool {
        self.alternatives
            .iter()
            .any(|conditions| conditions.iter().all(|condition| condition.holds(version)))
    }
}

fn conditions(text: &str) -> Option<Vec<Condition>> {
    let text = text.trim();
    if let Some((from, to)) = text.split_once(" - ") {
        return Some(vec![
            condition(&format!(">={}", from.trim()))?,
            condition(&format!("<={}", to.trim()))?,
        ]);
    }
    // Conditions are separated by commas or spaces; an operator may stand apart from its version.
    let mut found: Vec<String> = Vec::new();
    for word in text.split([',', ' ']).filter(|word| !word.is_empty()) {
        match found.last_mut() {
            Some(last) if last.chars().all(is_operator) => last.push_str(word),
            _ => found.push(word.to_owned()),
        }
    }
    if found.is_empty() {
        return None;
    }
    found.iter().map(|word| condition(word)).collect()
}

fn is_operator(character: char) -> bool {
    matches!(character, '=' | '!' | '<' | '>' | '~' | '^')
}

fn condition(text: &str) -> Option<Condition> {
    let at = text.find(|character| !is_operator(character))?;
    let (operator, version) = text.split_at(at);
    let operator = match operator {
        "" | "=" => Operator::Equal,
        "!=" => Operator::NotEqual,
        ">" => Operator::Greater,
        ">=" | "=>" => Operator::GreaterOrEqual,
        "<" => Operator::Less,
        "<=" | "=<" => Operator::LessOrEqual,
        "~" | "~>" => Operator::Tilde,
        "^" => Operator::Caret,
        _ => return None,
    };
    let plain = version.strip_prefix('v').unwrap_or(version);
    let (plain, _) = split_once_or(plain, '+');
    let (numbers, prerelease) = split_once_or(plain, '-');
    if !prerelease.is_none_or(is_identifiers) {
        return None;
    }
    let mut parts = [0_u64; 3];
    let mut written = 0;
    let mut open = false;
    for (index, part) in numbers.split('.').enumerate() {
        if index > 2 {
            return None;
        }
        if matches!(part, "x" | "X" | "*") {
            open = true;
            continue;
        }
        parts[index] = number(part)?;
        if !open {
            written = index + 1;
        }
    }
    Some(Condition {
        operator,
        version: Version {
            major: parts[0],
            minor: parts[1],
            patch: parts[2],
            prerelease: prerelease.unwrap_or_default().to_owned(),
        },
        written,
    })
}

impl Condition {
    fn holds(&self, version: &Version) -> bool {
        if !version.prerelease.is_empty() && self.version.prerelease.is_empty() {
            return false;
        }
        let own = &self.version;
        let is_partial = self.written < 3;
        match self.operator {
            Operator::Equal if is_partial => self.in_tilde(version),
            Operator::Equal => version == own,
            Operator::NotEqual if is_partial => !self.in_tilde(version),
            Operator::NotEqual => version != own,
            Operator::Greater if is_partial => match self.written {
                0 => false,
                1 => version.major > own.major,
                _ => (version.major, version.minor) > (own.major, own.minor),
            },
            Operator::Greater => version > own,
            Operator::GreaterOrEqual => version >= own,
            Operator::Less => version < own,
            Operator::LessOrEqual if is_partial => match self.written {
                0 => true,
                1 => version.major <= own.major,
                _ => (version.major, version.minor) <= (own.major, own.minor),
            },
            Operator::LessOrEqual => version <= own,
            Operator::Tilde => self.in_tilde(version),
            Operator::Caret => self.in_caret(version),
        }
    }

    fn in_tilde(&self, version: &Version) -> bool {
        let own = &self.version;
        version >= own
            && match self.written {
                0 => true,
                1 => version.major == own.major,
                _ => (version.major, version.minor) == (own.major, own.minor),
            }
    }

    /// The first part that is not zero stays.
    fn in_caret(&self, version: &Version) -> bool {
        let own = &self.version;
        if version < own {
            return false;
        }
        match (own.major, own.minor, self.written) {
            (_, _, 0) => true,
            (1.., _, _) | (0, _, 1) => version.major == own.major,
            (0, 1.., _) | (0, 0, 2) => (version.major, version.minor) == (0, own.minor),
            (0, 0, _) => (version.major, version.minor, version.patch) == (0, 0, own.patch),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_match_as_in_helm() {
        for (range, version, expected) in [
            (">=1.22.0-0", "v1.31.4", true),
            (">=1.25.0-0", "1.31.4-eks.1", true),
            (">=1.25.0", "1.31.4-eks.1", false),
            ("^2.0.0", "1.0.0", false),
            ("^1.2", "1.9.0", true),
            ("^0.2.3", "0.3.0", false),
            ("~1.2.3", "1.2.9", true),
            ("~1.2.3", "1.3.0", false),
            ("1.x", "1.7.2", true),
            ("1.2 - 1.4", "1.4.5", true),
            (">= 1.2, < 2 || 3.0.0", "3.0.0", true),
            (">1.2", "1.2.7", false),
            ("*", "0.0.1", true),
            ("!=1.2.3", "1.2.3", false),
        ] {
            let version = Version::parse(version).expect(version);
            let parsed = Range::parse(range).expect(range);
            assert_eq!(parsed.contains(&version), expected, "{range} {version}");
        }
        assert!(Range::parse("not a range").is_none() && Range::parse("").is_none());
        assert!(Version::parse("one").is_none() && Version::parse("1.2").is_some());
    }
}
