//! Constraints on versions, such as `>=1.2 <2 || ~3.1`.

use std::cmp::Ordering;

use super::{Version, compare_prereleases};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operator {
    TildeOrEqual,
    NotEqual,
    Greater,
    Less,
    GreaterOrEqual,
    LessOrEqual,
    Tilde,
    Caret,
}

/// An operator and a version of which parts may be left out.
#[derive(Debug, Clone)]
struct Constraint {
    operator: Operator,
    version: Version,
    is_dirty: bool,
    minor_is_dirty: bool,
    patch_is_dirty: bool,
}

/// Alternatives, each of which is constraints that all have to hold.
#[derive(Debug, Clone)]
pub struct Constraints(Vec<Vec<Constraint>>);

impl Constraints {
    /// Reads constraints such as `>=1.2, <2 || ^3`, `1.2 - 1.4`, `~1.2`, `1.x`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let rewritten = rewrite_ranges(text);
        let alternatives = rewritten.split("||").map(parse_all);
        alternatives.collect::<Result<_, _>>().map(Self)
    }

    /// Returns true if a version meets the constraints.
    pub fn check(&self, version: &Version) -> bool {
        self.0.iter().any(|all| {
            let names_prerelease = all.iter().any(|one| !one.version.prerelease.is_empty());
            let allowed = version.prerelease.is_empty() || names_prerelease;
            all.iter()
                .all(|constraint| constraint.check(version, allowed))
        })
    }
}

/// `1.2 - 2.3` is `>= 1.2, <= 2.3`.
fn rewrite_ranges(text: &str) -> String {
    let mut out = String::new();
    for (index, alternative) in text.split("||").enumerate() {
        if index > 0 {
            out.push_str("||");
        }
        match alternative.split_once(" - ") {
            Some((low, high)) if is_one_version(low) && is_one_version(high) => {
                out.push_str(&format_range(low.trim(), high.trim()));
            }
            _ => out.push_str(alternative),
        }
    }
    out
}

fn format_range(low: &str, high: &str) -> String {
    format!(">= {low}, <= {high} ")
}

fn is_one_version(text: &str) -> bool {
    let text = text.trim();
    !text.is_empty() && version_length(text) == Some(text.len())
}

/// How much of a text is a version with wildcards.
fn version_length(text: &str) -> Option<usize> {
    let is_part = |c: char| c.is_ascii_digit() || matches!(c, 'x' | 'X' | '*' | '|');
    let mut length = usize::from(text.starts_with('v'));
    let first = text[length..]
        .find(|c| !is_part(c))
        .unwrap_or(text.len() - length);
    if first == 0 {
        return None;
    }
    length += first;
    for _ in 0..2 {
        let Some(rest) = text[length..].strip_prefix('.') else {
            break;
        };
        let part = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        if part == 0 {
            break;
        }
        length += part + 1;
    }
    for mark in ['-', '+'] {
        let Some(rest) = text[length..].strip_prefix(mark) else {
            continue;
        };
        let is_identifier = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
        let part = rest.find(|c| !is_identifier(c)).unwrap_or(rest.len());
        let identifiers = rest[..part].trim_end_matches('.');
        if identifiers.is_empty() || identifiers.split('.').any(str::is_empty) {
            break;
        }
        length += identifiers.len() + 1;
    }
    Some(length)
}

const OPERATORS: [(&str, Operator); 12] = [
    ("!=", Operator::NotEqual),
    (">=", Operator::GreaterOrEqual),
    ("=>", Operator::GreaterOrEqual),
    ("<=", Operator::LessOrEqual),
    ("=<", Operator::LessOrEqual),
    ("~>", Operator::Tilde),
    ("=", Operator::TildeOrEqual),
    (">", Operator::Greater),
    ("<", Operator::Less),
    ("~", Operator::Tilde),
    ("^", Operator::Caret),
    ("", Operator::TildeOrEqual),
];

fn parse_all(text: &str) -> Result<Vec<Constraint>, String> {
    let improper = || format!("improper constraint: {}", crate::quote::quote(text));
    let mut constraints = Vec::new();
    let mut rest = text.trim_start();
    loop {
        let (symbol, operator) = OPERATORS
            .iter()
            .find(|(symbol, _)| rest.starts_with(symbol))
            .ok_or_else(improper)?;
        rest = rest[symbol.len()..].trim_start();
        let length = version_length(rest).ok_or_else(improper)?;
        constraints.push(one(*operator, &rest[..length])?);
        let after = rest[length..].trim_start();
        if after.is_empty() {
            return Ok(constraints);
        }
        rest = match after.strip_prefix(',') {
            Some(after) => after.trim_start(),
            // Blanks or an operator have to stand between two.
            None if after.len() < rest.len() - length => after,
            None => return Err(improper()),
        };
    }
}

fn one(operator: Operator, text: &str) -> Result<Constraint, String> {
    let body = text.strip_prefix('v').unwrap_or(text);
    let end = body.find(['-', '+']).unwrap_or(body.len());
    let (numbers, tail) = body.split_at(end);
    let tail = tail.split('+').next().unwrap_or_default();
    let parts: Vec<&str> = numbers.split('.').collect();
    let is_open = |index: usize| {
        parts
            .get(index)
            .is_none_or(|part| matches!(*part, "x" | "X" | "*"))
    };
    let (version, is_dirty, minor_is_dirty, patch_is_dirty) = if is_open(0) {
        (format!("0.0.0{tail}"), true, false, false)
    } else if is_open(1) {
        (format!("{}.0.0{tail}", parts[0]), true, true, false)
    } else if is_open(2) {
        (
            format!("{}.{}.0{tail}", parts[0], parts[1]),
            true,
            false,
            true,
        )
    } else {
        (text.to_owned(), false, false, false)
    };
    let version = Version::parse(&version).map_err(|_| "constraint parser error".to_owned())?;
    Ok(Constraint {
        operator,
        version,
        is_dirty,
        minor_is_dirty,
        patch_is_dirty,
    })
}

impl Constraint {
    fn check(&self, version: &Version, prerelease_is_allowed: bool) -> bool {
        if !prerelease_is_allowed {
            return false;
        }
        let order = version.compare(&self.version);
        match self.operator {
            Operator::NotEqual => self.differs(version),
            Operator::TildeOrEqual if self.is_dirty => self.tilde(version),
            Operator::TildeOrEqual => order == Ordering::Equal,
            Operator::Greater => self.greater(version, order),
            Operator::Less => order == Ordering::Less,
            Operator::GreaterOrEqual => order != Ordering::Less,
            Operator::LessOrEqual if !self.is_dirty => order != Ordering::Greater,
            Operator::LessOrEqual => {
                version.major < self.version.major
                    || (version.major == self.version.major
                        && (version.minor <= self.version.minor || self.minor_is_dirty))
            }
            Operator::Tilde => self.tilde(version),
            Operator::Caret => self.caret(version, order),
        }
    }

    fn differs(&self, version: &Version) -> bool {
        if !self.is_dirty {
            return version.compare(&self.version) != Ordering::Equal;
        }
        if self.version.major != version.major {
            return true;
        }
        if self.minor_is_dirty {
            return false;
        }
        if self.version.minor != version.minor {
            return true;
        }
        if self.patch_is_dirty {
            let (left, right) = (&version.prerelease, &self.version.prerelease);
            return (!left.is_empty() || !right.is_empty())
                && compare_prereleases(left, right) != Ordering::Equal;
        }
        if self.version.patch != version.patch {
            return true;
        }
        version.compare(&self.version) != Ordering::Equal
    }

    fn greater(&self, version: &Version, order: Ordering) -> bool {
        if !self.is_dirty {
            return order == Ordering::Greater;
        }
        match version.major.cmp(&self.version.major) {
            Ordering::Greater => true,
            Ordering::Less => false,
            Ordering::Equal if self.minor_is_dirty => false,
            Ordering::Equal if self.patch_is_dirty => version.minor > self.version.minor,
            Ordering::Equal => order == Ordering::Greater,
        }
    }

    fn tilde(&self, version: &Version) -> bool {
        let own = &self.version;
        if version.compare(own) == Ordering::Less {
            return false;
        }
        let is_zero = own.major == 0 && own.minor == 0 && own.patch == 0;
        if is_zero && !self.minor_is_dirty && !self.patch_is_dirty {
            return true;
        }
        version.major == own.major && (version.minor == own.minor || self.minor_is_dirty)
    }

    fn caret(&self, version: &Version, order: Ordering) -> bool {
        let own = &self.version;
        if order == Ordering::Less {
            return false;
        }
        if own.major > 0 || self.minor_is_dirty {
            return version.major == own.major;
        }
        if version.major > 0 {
            return false;
        }
        if own.minor > 0 || self.patch_is_dirty {
            return version.minor == own.minor;
        }
        version.minor == 0 && own.patch == version.patch
    }
}
