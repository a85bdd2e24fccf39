//! Semantic versions.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use super::text;
use crate::declaration::Functions;
use crate::error::EvalError;
use crate::value::{Value, quoted};

/// A semantic version, as version 2.0.0 of the specification defines it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Semver {
    major: u64,
    minor: u64,
    patch: u64,
    pre_release: Vec<Identifier>,
    build: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Identifier {
    Number(u64),
    Text(String),
}

type Parsed<T> = Result<T, String>;

impl Semver {
    /// Reads a version strictly.
    pub fn parse(text: &str) -> Result<Semver, EvalError> {
        parse(text).map_err(EvalError::failed)
    }

    /// Reads a version leniently: a leading `v`, missing parts and leading zeros are accepted.
    pub fn parse_normalized(text: &str) -> Result<Semver, EvalError> {
        normalize(text)
            .and_then(|text| parse(&text))
            .map_err(EvalError::failed)
    }

    /// The order of two versions; build metadata does not matter.
    pub fn compare(&self, other: &Semver) -> Ordering {
        let numbers = |version: &Semver| (version.major, version.minor, version.patch);
        numbers(self).cmp(&numbers(other)).then_with(|| {
            match (self.pre_release.is_empty(), other.pre_release.is_empty()) {
                (true, true) => Ordering::Equal,
                (true, false) => Ordering::Greater,
                (false, true) => Ordering::Less,
                (false, false) => compare_identifiers(&self.pre_release, &other.pre_release),
            }
        })
    }
}

fn compare_identifiers(left: &[Identifier], right: &[Identifier]) -> Ordering {
    for (left, right) in left.iter().zip(right) {
        let order = match (left, right) {
            (Identifier::Number(left), Identifier::Number(right)) => left.cmp(right),
            (Identifier::Number(_), Identifier::Text(_)) => Ordering::Less,
            (Identifier::Text(_), Identifier::Number(_)) => Ordering::Greater,
            (Identifier::Text(left), Identifier::Text(right)) => left.cmp(right),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
    left.len().cmp(&right.len())
}

impl fmt::Display for Semver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        for (index, identifier) in self.pre_release.iter().enumerate() {
            f.write_str(if index == 0 { "-" } else { "." })?;
            match identifier {
                Identifier::Number(number) => write!(f, "{number}")?,
                Identifier::Text(text) => f.write_str(text)?,
            }
        }
        for (index, identifier) in self.build.iter().enumerate() {
            f.write_str(if index == 0 { "+" } else { "." })?;
            f.write_str(identifier)?;
        }
        Ok(())
    }
}

fn parse(text: &str) -> Parsed<Semver> {
    if text.is_empty() {
        return Err("Version string empty".to_owned());
    }
    let mut parts = text.splitn(3, '.');
    let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next()) else {
        return Err("No Major.Minor.Patch elements found".to_owned());
    };
    let major = number("major", "Major", major)?;
    let minor = number("minor", "Minor", minor)?;
    // Build metadata comes last and may contain dashes; a dash before it starts a pre-release.
    let (rest, build_text) = match rest.split_once('+') {
        Some((rest, build)) => (rest, Some(build)),
        None => (rest, None),
    };
    let (patch, pre_release_text) = match rest.split_once('-') {
        Some((patch, pre_release)) => (patch, Some(pre_release)),
        None => (rest, None),
    };
    let patch = number("patch", "Patch", patch)?;
    let mut pre_release = Vec::new();
    for part in pre_release_text
        .into_iter()
        .flat_map(|text| text.split('.'))
    {
        pre_release.push(pre_release_identifier(part)?);
    }
    let mut build = Vec::new();
    for part in build_text.into_iter().flat_map(|text| text.split('.')) {
        if part.is_empty() {
            return Err("Build meta data is empty".to_owned());
        }
        if !is_identifier(part) {
            return Err(format!(
                "Invalid character(s) found in build meta data {}",
                quoted(part)
            ));
        }
        build.push(part.to_owned());
    }
    Ok(Semver {
        major,
        minor,
        patch,
        pre_release,
        build,
    })
}

fn number(name: &str, title: &str, text: &str) -> Parsed<u64> {
    if !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!(
            "Invalid character(s) found in {name} number {}",
            quoted(text)
        ));
    }
    if text.len() > 1 && text.starts_with('0') {
        return Err(format!(
            "{title} number must not contain leading zeroes {}",
            quoted(text)
        ));
    }
    parse_number(text)
}

/// Go's `ParseUint`, with its words.
fn parse_number(text: &str) -> Parsed<u64> {
    text.parse().map_err(|_| {
        let reason = if text.is_empty() {
            "invalid syntax"
        } else {
            "value out of range"
        };
        format!("strconv.ParseUint: parsing {}: {reason}", quoted(text))
    })
}

fn is_identifier(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn pre_release_identifier(text: &str) -> Parsed<Identifier> {
    if text.is_empty() {
        return Err("Prerelease is empty".to_owned());
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        if text.len() > 1 && text.starts_with('0') {
            return Err(format!(
                "Numeric PreRelease version must not contain leading zeroes {}",
                quoted(text)
            ));
        }
        return parse_number(text).map(Identifier::Number);
    }
    if !is_identifier(text) {
        return Err(format!(
            "Invalid character(s) found in prerelease {}",
            quoted(text)
        ));
    }
    Ok(Identifier::Text(text.to_owned()))
}

fn normalize(text: &str) -> Parsed<String> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let mut parts: Vec<String> = text
        .splitn(3, '.')
        .map(|part| {
            if part.len() <= 1 {
                return part.to_owned();
            }
            let trimmed = part.trim_start_matches('0');
            if trimmed.starts_with(|c: char| c.is_ascii_digit()) {
                trimmed.to_owned()
            } else {
                format!("0{trimmed}")
            }
        })
        .collect();
    if parts.len() < 3 {
        if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
            return Err("short version cannot contain PreRelease/Build meta data".to_owned());
        }
        parts.resize(3, "0".to_owned());
    }
    Ok(parts.join("."))
}

pub(super) fn declare(functions: &mut Functions) {
    functions.add(
        "string_to_semver",
        "semver(string) -> kubernetes.Semver",
        |a| Ok(value(Semver::parse(text(a, 0)?)?)),
    );
    functions.add(
        "string_bool_to_semver",
        "semver(string, bool) -> kubernetes.Semver",
        |a| Ok(value(read(a)?)),
    );
    functions.add("is_semver_string", "isSemver(string) -> bool", |a| {
        Ok(Value::Bool(Semver::parse(text(a, 0)?).is_ok()))
    });
    functions.add(
        "is_semver_string_bool",
        "isSemver(string, bool) -> bool",
        |a| Ok(Value::Bool(read(a).is_ok())),
    );
    functions.add(
        "semver_is_greater_than",
        "kubernetes.Semver::isGreaterThan(kubernetes.Semver) -> bool",
        |a| Ok(Value::Bool(version(a, 0)?.compare(version(a, 1)?).is_gt())),
    );
    functions.add(
        "semver_is_less_than",
        "kubernetes.Semver::isLessThan(kubernetes.Semver) -> bool",
        |a| Ok(Value::Bool(version(a, 0)?.compare(version(a, 1)?).is_lt())),
    );
    functions.add(
        "semver_compare_to",
        "kubernetes.Semver::compareTo(kubernetes.Semver) -> int",
        |a| Ok(Value::Int(version(a, 0)?.compare(version(a, 1)?) as i64)),
    );
    functions.add("semver_major", "kubernetes.Semver::major() -> int", |a| {
        Ok(Value::Int(version(a, 0)?.major.cast_signed()))
    });
    functions.add("semver_minor", "kubernetes.Semver::minor() -> int", |a| {
        Ok(Value::Int(version(a, 0)?.minor.cast_signed()))
    });
    functions.add("semver_patch", "kubernetes.Semver::patch() -> int", |a| {
        Ok(Value::Int(version(a, 0)?.patch.cast_signed()))
    });
}

fn value<'a>(version: Semver) -> Value<'a> {
    Value::Semver(Arc::new(version))
}

fn version<'v>(arguments: &'v [Value<'_>], index: usize) -> Result<&'v Semver, EvalError> {
    match arguments.get(index) {
        Some(Value::Semver(version)) => Ok(version),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn read(arguments: &[Value<'_>]) -> Result<Semver, EvalError> {
    match arguments.get(1) {
        Some(Value::Bool(true)) => Semver::parse_normalized(text(arguments, 0)?),
        _ => Semver::parse(text(arguments, 0)?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_the_specification_says() {
        let ascending = [
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-beta",
            "1.0.0-beta.2",
            "1.0.0-beta.11",
            "1.0.0-rc.1",
            "1.0.0",
            "1.0.1",
            "1.10.0",
            "2.0.0",
        ];
        for pair in ascending.windows(2) {
            let (lower, higher) = (
                Semver::parse(pair[0]).unwrap(),
                Semver::parse(pair[1]).unwrap(),
            );
            assert!(lower.compare(&higher).is_lt(), "{pair:?}");
        }
    }

    #[test]
    fn lenient_reading_fills_in() {
        for (text, full) in [
            ("v1", "1.0.0"),
            ("1.2", "1.2.0"),
            ("v01.02.03", "1.2.3"),
            ("1.2.3-a+b", "1.2.3-a+b"),
            ("1.00.0", "1.0.0"),
        ] {
            assert_eq!(Semver::parse_normalized(text).unwrap().to_string(), full);
        }
    }
}
