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

impl Problem {
    /// Adds the line of an item in a list of a kustomization, unless the problem is in another file.
    pub(crate) fn at_item(self, text: &str, key: &str, index: usize) -> Self {
        if self.file.is_some() {
            return self;
        }
        self.at_line(line_of_item(text, key, index))
    }

    /// Adds the line of a path in a list of a kustomization, unless the problem is in another file.
    pub(crate) fn at_path(self, text: &str, path: &str) -> Self {
        if self.file.is_some() {
            return self;
        }
        let is_path = |line: &str| {
            let mut words = line.split([' ', ',', '[', ']', '"', '\'', '\t']);
            words.any(|word| word == path)
        };
        let line = text.lines().position(is_path);
        self.at_line(line.map(|index| index + 1))
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

/// The line on which an item of a list begins, where the list is the value of a key of the outermost
/// mapping; that of the key if the list is in flow style.
pub(crate) fn line_of_item(text: &str, key: &str, index: usize) -> Option<usize> {
    let line = line_of_key(text, key)?;
    let rest = || text.lines().enumerate().skip(line);
    let is_content = |content: &str| !content.is_empty() && !content.starts_with('#');
    let Some((_, first)) = rest().find(|(_, content)| is_content(content.trim_start())) else {
        return Some(line);
    };
    let indent = first.len() - first.trim_start().len();
    let is_item = |content: &str| {
        content.len() - content.trim_start().len() == indent
            && content.trim_start().starts_with('-')
    };
    let inside = |content: &str| {
        let own = content.len() - content.trim_start().len();
        !is_content(content.trim_start()) || own > indent || is_item(content)
    };
    let mut items = rest()
        .take_while(|(_, content)| inside(content))
        .filter(|(_, content)| is_item(content));
    Some(items.nth(index).map_or(line, |(at, _)| at + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_found_by_their_line() {
        let text = "kind: K\npatches:\n# c\n- path: a\n  target:\n    - x\n- path: b\nresources: [a, b]\nlabels:\n  - \
                    a: 1\n\n  - b: 2\n";
        let line = |key: &str, index| line_of_item(text, key, index);
        assert_eq!((line("patches", 0), line("patches", 1)), (Some(4), Some(7)));
        assert_eq!(line("patches", 2), Some(2));
        assert_eq!(line("resources", 1), Some(8));
        assert_eq!((line("labels", 1), line("none", 0)), (Some(12), None));
        let at = |path| Problem::new("").at_path(text, path).line;
        assert_eq!((at("b"), at("c.yaml")), (Some(7), None));
    }
}
