//! Semantic versions and constraints on them, as `github.com/Masterminds/semver` has them: sprig's functions
//! and Helm use it.

mod constraint;

use std::cmp::Ordering;
use std::fmt;

use crate::value::{Kind, Method, Named, Object, Type, UintKind, Value};

pub use constraint::Constraints;

/// A version; parts that were left out are 0.
///
/// ```
/// use bellwether_go::semver::{Constraints, Version};
///
/// let range = Constraints::parse(">= 1.2, < 2 || ^3").unwrap();
/// assert!(range.check(&Version::parse("v1.9").unwrap()));
/// assert!(!range.check(&Version::parse("2.0.0").unwrap()));
/// ```
#[derive(Debug, Clone)]
pub struct Version {
    major: u64,
    minor: u64,
    patch: u64,
    prerelease: String,
    metadata: String,
    original: String,
}

const INVALID: &str = "invalid semantic version";

impl Version {
    /// Reads a version, which may have one or two numbers only and a `v` in front.
    pub fn parse(text: &str) -> Result<Self, String> {
        let body = text.strip_prefix('v').unwrap_or(text);
        let (body, metadata) = match body.split_once('+') {
            Some((body, metadata)) => (body, Some(metadata)),
            None => (body, None),
        };
        let (numbers, prerelease) = match body.split_once('-') {
            Some((numbers, prerelease)) => (numbers, Some(prerelease)),
            None => (body, None),
        };
        let parts: Vec<&str> = numbers.split('.').collect();
        if parts.len() > 3 || !parts.iter().all(|part| is_number(part)) {
            return Err(INVALID.to_owned());
        }
        for (identifiers, numeric_without_zero) in [(prerelease, true), (metadata, false)] {
            let Some(identifiers) = identifiers else {
                continue;
            };
            for identifier in identifiers.split('.') {
                if !is_identifier(identifier) {
                    return Err(INVALID.to_owned());
                }
                if numeric_without_zero && is_number(identifier) && has_leading_zero(identifier) {
                    return Err("version segment starts with 0".to_owned());
                }
            }
        }
        let number = |index: usize| -> Result<u64, String> {
            let Some(part) = parts.get(index) else {
                return Ok(0);
            };
            part.parse().map_err(|_| {
                let shown = crate::quote::quote(part);
                format!("error parsing version segment: strconv.ParseUint: parsing {shown}: value out of range")
            })
        };
        Ok(Self {
            major: number(0)?,
            minor: number(1)?,
            patch: number(2)?,
            prerelease: prerelease.unwrap_or_default().to_owned(),
            metadata: metadata.unwrap_or_default().to_owned(),
            original: text.to_owned(),
        })
    }

    /// Compares two versions. What follows a plus sign makes no difference.
    pub fn compare(&self, other: &Self) -> Ordering {
        let numbers = |version: &Self| (version.major, version.minor, version.patch);
        numbers(self)
            .cmp(&numbers(other))
            .then_with(|| compare_prereleases(&self.prerelease, &other.prerelease))
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn has_leading_zero(text: &str) -> bool {
    text.len() > 1 && text.starts_with('0')
}

fn is_identifier(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// A release comes after its prereleases.
fn compare_prereleases(left: &str, right: &str) -> Ordering {
    match (left.is_empty(), right.is_empty()) {
        (true, true) => return Ordering::Equal,
        (true, false) => return Ordering::Greater,
        (false, true) => return Ordering::Less,
        (false, false) => {}
    }
    let (mut left, mut right) = (left.split('.'), right.split('.'));
    loop {
        let order = match (left.next(), right.next()) {
            (None, None) => return Ordering::Equal,
            (None, Some(_)) => return Ordering::Less,
            (Some(_), None) => return Ordering::Greater,
            (Some(left), Some(right)) => compare_identifiers(left, right),
        };
        if order != Ordering::Equal {
            return order;
        }
    }
}

fn compare_identifiers(left: &str, right: &str) -> Ordering {
    match (left.parse::<u64>(), right.parse::<u64>()) {
        (Ok(left), Ok(right)) => left.cmp(&right),
        (Ok(_), Err(_)) => Ordering::Less,
        (Err(_), Ok(_)) => Ordering::Greater,
        (Err(_), Err(_)) => left.cmp(right),
    }
}

impl fmt::Display for Version {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}.{}.{}", self.major, self.minor, self.patch)?;
        if !self.prerelease.is_empty() {
            write!(formatter, "-{}", self.prerelease)?;
        }
        if !self.metadata.is_empty() {
            write!(formatter, "+{}", self.metadata)?;
        }
        Ok(())
    }
}

fn version(value: &Value) -> Result<&Version, String> {
    let found = match value {
        Value::Object(object) => object.as_any().downcast_ref(),
        _ => None,
    };
    found.ok_or_else(|| "not a version".to_owned())
}

macro_rules! method {
    ($name:literal, $body:expr) => {
        Method {
            name: $name,
            parameters: &[],
            is_variadic: false,
            body: |receiver, _, _| {
                let body: fn(&Version) -> Value = $body;
                Ok(body(version(receiver)?))
            },
        }
    };
    ($name:literal, $other:ident, $body:expr) => {
        Method {
            name: $name,
            parameters: &[VERSION],
            is_variadic: false,
            body: |receiver, arguments, _| {
                let body: fn(Ordering) -> Value = $body;
                let $other = version(arguments.first().unwrap_or(&Value::Nil))?;
                Ok(body(version(receiver)?.compare($other)))
            },
        }
    };
}

/// The type as a parameter: types are compared by name, and this one does not refer to itself.
static PARAMETER: Named = Named {
    name: "semver.Version",
    methods: &[],
};
const VERSION: Type = Type::Named(&PARAMETER, Kind::Pointer);

static TYPE: Named = Named {
    name: "semver.Version",
    methods: &[
        method!("String", |version| Value::string(version.to_string())),
        method!("Original", |version| Value::string(&version.original)),
        method!("Major", |version| unsigned(version.major)),
        method!("Minor", |version| unsigned(version.minor)),
        method!("Patch", |version| unsigned(version.patch)),
        method!("Prerelease", |version| Value::string(&version.prerelease)),
        method!("Metadata", |version| Value::string(&version.metadata)),
        method!("IncMajor", |version| {
            next(version.major.wrapping_add(1), 0, 0, &version.original)
        }),
        method!("IncMinor", |version| {
            next(
                version.major,
                version.minor.wrapping_add(1),
                0,
                &version.original,
            )
        }),
        method!("IncPatch", |version| {
            let patch = version
                .patch
                .wrapping_add(u64::from(version.prerelease.is_empty()));
            next(version.major, version.minor, patch, &version.original)
        }),
        method!("Compare", other, |order| Value::int(order as i64)),
        method!("Equal", other, |order| Value::Bool(
            order == Ordering::Equal
        )),
        method!("LessThan", other, |order| Value::Bool(
            order == Ordering::Less
        )),
        method!("GreaterThan", other, |order| Value::Bool(
            order == Ordering::Greater
        )),
        method!("LessThanEqual", other, |order| Value::Bool(
            order != Ordering::Greater
        )),
        method!("GreaterThanEqual", other, |order| Value::Bool(
            order != Ordering::Less
        )),
    ],
};

fn unsigned(number: u64) -> Value {
    Value::Uint(UintKind::Uint64, number)
}

fn next(major: u64, minor: u64, patch: u64, original: &str) -> Value {
    let prefix = if original.starts_with('v') { "v" } else { "" };
    Value::object(Version {
        major,
        minor,
        patch,
        prerelease: String::new(),
        metadata: String::new(),
        original: format!("{prefix}{major}.{minor}.{patch}"),
    })
}

impl Object for Version {
    fn named(&self) -> &'static Named {
        &TYPE
    }

    fn kind(&self) -> Kind {
        Kind::Pointer
    }

    fn printed(&self) -> Vec<(&'static str, Value)> {
        let number = |number: u64| Value::Uint(UintKind::Uint64, number);
        vec![
            ("major", number(self.major)),
            ("minor", number(self.minor)),
            ("patch", number(self.patch)),
            ("pre", Value::string(self.prerelease.as_str())),
            ("metadata", Value::string(self.metadata.as_str())),
            ("original", Value::string(self.original.as_str())),
        ]
    }

    fn string(&self) -> Option<String> {
        Some(self.to_string())
    }

    fn data(&self) -> Value {
        Value::string(self.to_string())
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_constraints_are_those_of_go() {
        for line in include_str!("../tests/data/semver.jsonl").lines() {
            let (constraint, version, expected): (String, String, String) =
                serde_json::from_str(line).unwrap();
            let found = match (Constraints::parse(&constraint), Version::parse(&version)) {
                (Err(error), _) => format!("constraint: {error}"),
                (_, Err(error)) => format!("version: {error}"),
                (Ok(constraints), Ok(version)) => constraints.check(&version).to_string(),
            };
            assert_eq!(found, expected, "{line}");
        }
    }

    #[test]
    fn releases_come_after_their_prereleases() {
        let order = [
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-beta.2",
            "1.0.0-beta.11",
            "1.0.0",
        ];
        let order = order.map(|text| Version::parse(text).unwrap());
        for pair in order.windows(2) {
            assert_eq!(pair[0].compare(&pair[1]), Ordering::Less, "{pair:?}");
        }
    }
}
