//! Label selectors, in both notations of Kubernetes: text (`app=web,tier in (a,b),!old`) and the
//! `matchLabels`/`matchExpressions` object.
//!
//! [`LabelSelector::parse`] reads the one, [`LabelSelector::from_object`] the other; both give the
//! same type, which matches anything that implements [`Labels`]. Messages are those of
//! apimachinery: pkg/labels.

mod object;
mod parse;

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use crate::{name, path};

/// Something that has labels.
pub trait Labels {
    /// The value of a label, if there is one.
    fn label(&self, key: &str) -> Option<&str>;
}

impl Labels for BTreeMap<String, String> {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key).map(String::as_str)
    }
}

impl Labels for Map<String, Value> {
    fn label(&self, key: &str) -> Option<&str> {
        self.get(key)?.as_str()
    }
}

/// How a requirement relates a label to its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operator {
    /// `a=b`
    Equals,
    /// `a==b`, the same in other letters
    DoubleEquals,
    /// `a!=b`, also true if there is no `a`
    NotEquals,
    /// `a in (b,c)`
    In,
    /// `a notin (b,c)`, also true if there is no `a`
    NotIn,
    /// `a`
    Exists,
    /// `!a`
    DoesNotExist,
    /// `a>1`
    GreaterThan,
    /// `a<1`
    LessThan,
}

/// One condition of a selector.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Requirement {
    key: String,
    operator: Operator,
    /// As many as the operator takes; integers for the inequalities.
    values: Vec<String>,
}

/// Why a selector cannot be understood, in the words of Kubernetes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SelectorError(pub(crate) String);

impl Requirement {
    /// A requirement, checked as Kubernetes does.
    pub fn new(
        key: impl Into<String>,
        operator: Operator,
        values: Vec<String>,
    ) -> Result<Self, SelectorError> {
        let requirement = Self {
            key: key.into(),
            operator,
            values,
        };
        let problems = requirement.problems();
        match problems.as_slice() {
            [] => Ok(requirement),
            [problem] => Err(SelectorError(problem.clone())),
            problems => Err(SelectorError(format!("[{}]", problems.join(", ")))),
        }
    }

    /// The label it is about.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// How the label relates to the values.
    pub fn operator(&self) -> Operator {
        self.operator
    }

    /// The values to compare with; empty for the operators that take none.
    pub fn values(&self) -> &[String] {
        &self.values
    }

    fn problems(&self) -> Vec<String> {
        let mut problems = Vec::new();
        let of_key = name::label_key_problems(&self.key);
        if !of_key.is_empty() {
            problems.push(invalid("key", &self.key, &of_key.join("; ")));
        }
        let count = self.values.len();
        let of_count = match self.operator {
            Operator::In | Operator::NotIn if count == 0 => {
                "for 'in', 'notin' operators, values set can't be empty"
            }
            Operator::Equals | Operator::DoubleEquals | Operator::NotEquals if count != 1 => {
                "exact-match compatibility requires one single value"
            }
            Operator::Exists | Operator::DoesNotExist if count != 0 => {
                "values set must be empty for exists and does not exist"
            }
            Operator::GreaterThan | Operator::LessThan if count != 1 => {
                "for 'Gt', 'Lt' operators, exactly one value is required"
            }
            _ => "",
        };
        if !of_count.is_empty() {
            let values = Value::from(self.values.clone());
            problems.push(format!("values: Invalid value: {values}: {of_count}"));
        }
        if matches!(self.operator, Operator::GreaterThan | Operator::LessThan) {
            for (index, value) in self.values.iter().enumerate() {
                if value.parse::<i64>().is_err() {
                    let detail = "for 'Gt', 'Lt' operators, the value must be an integer";
                    problems.push(invalid(&format!("values[{index}]"), value, detail));
                }
            }
        }
        for (index, value) in self.values.iter().enumerate() {
            let of_value = name::label_value_problems(value);
            if !of_value.is_empty() {
                let path = format!("values[{index}][{}]", self.key);
                problems.push(invalid(&path, value, &of_value.join("; ")));
            }
        }
        problems
    }

    /// Whether labels meet it.
    pub fn matches(&self, labels: &impl Labels) -> bool {
        let actual = labels.label(&self.key);
        let is_listed = |actual: &str| self.values.iter().any(|value| value == actual);
        match self.operator {
            Operator::Equals | Operator::DoubleEquals | Operator::In => {
                actual.is_some_and(is_listed)
            }
            Operator::NotEquals | Operator::NotIn => !actual.is_some_and(is_listed),
            Operator::Exists => actual.is_some(),
            Operator::DoesNotExist => actual.is_none(),
            Operator::GreaterThan | Operator::LessThan => {
                let actual = actual.and_then(|actual| actual.parse::<i64>().ok());
                let limit = self
                    .values
                    .first()
                    .and_then(|value| value.parse::<i64>().ok());
                match (actual, limit) {
                    (Some(actual), Some(limit)) if self.operator == Operator::GreaterThan => {
                        actual > limit
                    }
                    (Some(actual), Some(limit)) => actual < limit,
                    _ => false,
                }
            }
        }
    }
}

fn invalid(path: &str, value: &str, detail: &str) -> String {
    format!("{path}: Invalid value: {value:?}: {detail}")
}

impl fmt::Display for Requirement {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            key,
            operator,
            values,
        } = self;
        let mut values: Vec<&str> = values.iter().map(String::as_str).collect();
        values.sort_unstable();
        let values = values.join(",");
        match operator {
            Operator::Equals => write!(formatter, "{key}={values}"),
            Operator::DoubleEquals => write!(formatter, "{key}=={values}"),
            Operator::NotEquals => write!(formatter, "{key}!={values}"),
            Operator::In => write!(formatter, "{key} in ({values})"),
            Operator::NotIn => write!(formatter, "{key} notin ({values})"),
            Operator::Exists => write!(formatter, "{key}"),
            Operator::DoesNotExist => write!(formatter, "!{key}"),
            Operator::GreaterThan => write!(formatter, "{key}>{values}"),
            Operator::LessThan => write!(formatter, "{key}<{values}"),
        }
    }
}

/// A set of requirements, all of which must be met.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct LabelSelector {
    /// In order of their keys.
    requirements: Vec<Requirement>,
    matches_nothing: bool,
}

impl LabelSelector {
    /// The selector that everything matches.
    pub fn everything() -> Self {
        Self::default()
    }

    /// The selector that nothing matches, which an absent selector object stands for.
    pub fn nothing() -> Self {
        Self {
            requirements: Vec::new(),
            matches_nothing: true,
        }
    }

    /// Reads the text notation.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        parse::requirements(text).map(Self::from_requirements)
    }

    /// Reads the object notation; none matches nothing, an empty one everything.
    pub fn from_object(object: Option<&Value>) -> Result<Self, SelectorError> {
        object::selector(object)
    }

    /// The selector of all these requirements.
    pub fn from_requirements(mut requirements: Vec<Requirement>) -> Self {
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Self {
            requirements,
            matches_nothing: false,
        }
    }

    /// Its requirements, in order of their keys.
    pub fn requirements(&self) -> &[Requirement] {
        &self.requirements
    }

    /// Whether everything matches.
    pub fn is_everything(&self) -> bool {
        self.requirements.is_empty() && !self.matches_nothing
    }

    /// Whether labels meet all requirements.
    pub fn matches(&self, labels: &impl Labels) -> bool {
        !self.matches_nothing
            && self
                .requirements
                .iter()
                .all(|requirement| requirement.matches(labels))
    }

    /// Whether an object's `metadata.labels` meet all requirements.
    pub fn matches_object(&self, object: &Value) -> bool {
        match path::object_at(object, &["metadata", "labels"]) {
            Some(labels) => self.matches(labels),
            None => self.matches(&BTreeMap::new()),
        }
    }

    /// The one value that a label must have, if the selector says so; lets callers use an index.
    pub fn required_value(&self, key: &str) -> Option<&str> {
        let requirement = self
            .requirements
            .iter()
            .find(|requirement| requirement.key == key)?;
        match (requirement.operator, requirement.values.as_slice()) {
            (Operator::Equals | Operator::DoubleEquals | Operator::In, [value]) => Some(value),
            _ => None,
        }
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, requirement) in self.requirements.iter().enumerate() {
            let separator = if index == 0 { "" } else { "," };
            write!(formatter, "{separator}{requirement}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
