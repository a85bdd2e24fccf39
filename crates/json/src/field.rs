//! Field selectors: `metadata.name=web,status.phase!=Running`.
//!
//! In values, `\\`, `\,` and `\=` stand for the character after the backslash. Which fields a kind
//! can be selected by is not known here. Messages are those of apimachinery: pkg/fields.

use std::fmt;

/// One condition of a field selector.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FieldRequirement {
    /// The path of the field, e.g. `metadata.name`.
    pub field: String,
    /// Whether the field must have the value, or must not.
    pub is_equal: bool,
    /// The value to compare with, without escapes.
    pub value: String,
}

/// A set of conditions, all of which must be met.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct FieldSelector {
    requirements: Vec<FieldRequirement>,
}

/// Why a field selector cannot be understood, in the words of Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FieldSelectorError {
    /// A term without an operator.
    #[error("invalid selector: '{selector}'; can't understand '{term}'")]
    NotUnderstood {
        /// The whole text.
        selector: String,
        /// The part that has no operator.
        term: String,
    },
    /// A backslash before a character that needs none.
    #[error("invalid field selector: invalid escape sequence: {0}")]
    InvalidEscape(String),
    /// A `,` or `=` inside a value; upstream shows the number of the character.
    #[error("invalid field selector: unescaped character in value: {}", u32::from(*.0))]
    Unescaped(char),
}

impl FieldSelector {
    /// Reads a selector; an empty text selects everything.
    pub fn parse(text: &str) -> Result<Self, FieldSelectorError> {
        let mut terms = split_terms(text);
        terms.sort_unstable();
        let mut requirements = Vec::new();
        for term in terms.into_iter().filter(|term| !term.is_empty()) {
            let Some((field, is_equal, value)) = split_term(term) else {
                return Err(FieldSelectorError::NotUnderstood {
                    selector: text.to_owned(),
                    term: term.to_owned(),
                });
            };
            let value = unescape(value)?;
            // Upstream drops what says nothing about nothing.
            if field.is_empty() && value.is_empty() {
                continue;
            }
            requirements.push(FieldRequirement {
                field: field.to_owned(),
                is_equal,
                value,
            });
        }
        Ok(Self { requirements })
    }

    /// Its conditions, in order of their text.
    pub fn requirements(&self) -> &[FieldRequirement] {
        &self.requirements
    }

    /// Whether everything matches.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty()
    }

    /// Whether the fields meet all conditions; `field_value` gives the text of a field, empty if
    /// it is absent.
    pub fn matches<'value>(&self, field_value: impl Fn(&str) -> &'value str) -> bool {
        self.requirements.iter().all(|requirement| {
            (field_value(&requirement.field) == requirement.value) == requirement.is_equal
        })
    }

    /// The one value that a field must have, if the selector says so; lets callers use an index.
    pub fn required_value(&self, field: &str) -> Option<&str> {
        let requirement = self
            .requirements
            .iter()
            .find(|requirement| requirement.is_equal && requirement.field == field)?;
        Some(&requirement.value)
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements.iter().enumerate() {
            let separator = if index == 0 { "" } else { "," };
            let operator = if requirement.is_equal { "=" } else { "!=" };
            let FieldRequirement { field, value, .. } = requirement;
            write!(formatter, "{separator}{field}{operator}{}", escape(value))?;
        }
        Ok(())
    }
}

/// Splits at commas that have no backslash before them.
fn split_terms(text: &str) -> Vec<&str> {
    let mut is_escaped = false;
    text.split(|character| {
        let is_separator = character == ',' && !is_escaped;
        is_escaped = character == '\\' && !is_escaped;
        is_separator
    })
    .collect()
}

/// Field, whether equal, and value; split at the first operator.
fn split_term(term: &str) -> Option<(&str, bool, &str)> {
    let start = term.char_indices().find_map(|(index, _)| {
        let rest = &term[index..];
        (rest.starts_with("!=") || rest.starts_with('=')).then_some(index)
    })?;
    let (field, rest) = term.split_at(start);
    if let Some(value) = rest.strip_prefix("!=") {
        return Some((field, false, value));
    }
    let value = rest.strip_prefix("==").or_else(|| rest.strip_prefix('='))?;
    Some((field, true, value))
}

/// Puts a backslash before what would end a value.
pub fn escape(value: &str) -> String {
    let mut escaped = String::with_capacity(value.len());
    for character in value.chars() {
        if matches!(character, '\\' | ',' | '=') {
            escaped.push('\\');
        }
        escaped.push(character);
    }
    escaped
}

fn unescape(value: &str) -> Result<String, FieldSelectorError> {
    let mut unescaped = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(character) = characters.next() {
        match character {
            '\\' => match characters.next() {
                Some(escaped @ ('\\' | ',' | '=')) => unescaped.push(escaped),
                other => {
                    let sequence = ['\\'].into_iter().chain(other).collect();
                    return Err(FieldSelectorError::InvalidEscape(sequence));
                }
            },
            ',' | '=' => return Err(FieldSelectorError::Unescaped(character)),
            _ => unescaped.push(character),
        }
    }
    Ok(unescaped)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<&str, &str>) {
        let actual = FieldSelector::parse(text).map(|selector| selector.to_string());
        let actual = actual.map_err(|error| error.to_string());
        assert_eq!(
            actual,
            expected.map(str::to_owned).map_err(str::to_owned),
            "{text}"
        );
    }

    #[test]
    fn texts_are_read_and_written() {
        check("", Ok(""));
        check(",", Ok(""));
        check("=,!=", Ok(""));
        check("z==1,a!=2", Ok("a!=2,z=1"));
        check("a=,b=", Ok("a=,b="));
        check(r"a=b\,c\=d\\", Ok(r"a=b\,c\=d\\"));
    }

    #[test]
    fn errors_are_worded_as_in_kubernetes() {
        check(
            "a,b=c",
            Err("invalid selector: 'a,b=c'; can't understand 'a'"),
        );
        check(
            r"a=b\x",
            Err(r"invalid field selector: invalid escape sequence: \x"),
        );
        check(
            "a=b\\",
            Err("invalid field selector: invalid escape sequence: \\"),
        );
        check(
            "a=b=c",
            Err("invalid field selector: unescaped character in value: 61"),
        );
    }

    #[test]
    fn all_conditions_must_be_met() {
        let selector = FieldSelector::parse("metadata.name=web,status.phase!=Failed").unwrap();
        let running = |field: &str| match field {
            "metadata.name" => "web",
            "status.phase" => "Running",
            _ => "",
        };
        assert!(selector.matches(running));
        assert!(!selector.matches(|_| ""));
        assert_eq!(selector.required_value("metadata.name"), Some("web"));
        assert_eq!(selector.required_value("status.phase"), None);
    }

    proptest! {
        #[test]
        fn any_value_survives(value in "[a-c,=\\\\! é]{0,12}") {
            let text = format!("a.b={}", escape(&value));
            let selector = FieldSelector::parse(&text).unwrap();
            prop_assert_eq!(selector.required_value("a.b"), Some(value.as_str()));
            prop_assert_eq!(FieldSelector::parse(&selector.to_string()), Ok(selector));
        }
    }
}
