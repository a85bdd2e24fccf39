//! Why a build fails, and where.

use std::fmt;

use bellwether_json::yaml::YamlError;

use crate::Needs;

/// Why there is no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Files or remote bases are missing from the tree; fetch them, add them, and build again.
    #[error("{0}")]
    Needs(Needs),
    /// Something is wrong with a file.
    #[error("{0}")]
    Invalid(Problem),
}

/// What is wrong, and where. Displayed as `FILE:LINE: MESSAGE`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Problem {
    /// The file, as a path in the tree.
    pub file: Option<String>,
    /// The line in that file, counted from 1.
    pub line: Option<usize>,
    /// What is wrong and what to do.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "{file}:{line}: {}", self.message),
            (Some(file), None) => write!(f, "{file}: {}", self.message),
            (None, _) => f.write_str(&self.message),
        }
    }
}

impl Problem {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            ..Self::default()
        }
    }

    /// Names the file, unless the problem knows a closer one.
    pub(crate) fn in_file(mut self, file: &str) -> Self {
        if self.file.is_none() {
            self.file = Some(file.to_owned());
        }
        self
    }

    pub(crate) fn at_line(mut self, line: Option<usize>) -> Self {
        self.line = self.line.or(line);
        self
    }
}

impl From<Problem> for Error {
    fn from(problem: Problem) -> Self {
        Self::Invalid(problem)
    }
}

impl From<YamlError> for Problem {
    fn from(error: YamlError) -> Self {
        Self {
            file: None,
            line: Some(error.line),
            message: format!("this is not YAML: {}", error.message),
        }
    }
}

impl From<regex::Error> for Problem {
    fn from(error: regex::Error) -> Self {
        let text = error.to_string();
        let reason = text.lines().last().unwrap_or_default();
        Self::new(format!("a pattern is not a regular expression: {reason}"))
    }
}

pub(crate) type Result<T, E = Problem> = std::result::Result<T, E>;

/// The line on which a key of the outermost mapping stands, if the text is in block style.
pub(crate) fn line_of_key(text: &str, key: &str) -> Option<usize> {
    let is_key = |line: &str| {
        let line = line.trim_start_matches(['"', '\'']);
        let rest = line.strip_prefix(key);
        rest.is_some_and(|rest| rest.trim_start_matches(['"', '\'']).starts_with(':'))
    };
    text.lines().position(is_key).map(|index| index + 1)
}
