//! What went wrong and where: the one shape of every message this crate reports.

use std::fmt;
use std::sync::Arc;

use crate::token::LineColumn;

/// How bad an error is. The order is the order of severity, worst first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Code {
    /// A conflict, a type error, a disallowed field: final.
    Eval,
    /// `_|_` or `error()` in the source: final.
    User,
    /// A value that contains itself: final.
    StructuralCycle,
    /// Not enough is known yet; more data may resolve it.
    Incomplete,
    /// A value that depends on itself; more data may resolve it.
    Cycle,
}

impl Code {
    /// Whether more data may still resolve the error.
    pub fn is_temporary(self) -> bool {
        matches!(self, Self::Incomplete | Self::Cycle)
    }

    /// The name used in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Eval => "eval",
            Self::User => "user",
            Self::StructuralCycle => "structural cycle",
            Self::Incomplete => "incomplete",
            Self::Cycle => "cycle",
        }
    }
}

/// The stage that found an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Reading the text.
    Parse,
    /// Resolving names and checking what needs no evaluation.
    Build,
    /// Evaluating.
    Eval,
}

/// A place in a named file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// The file name as given to the parser.
    pub file: Arc<str>,
    /// Line and column, counted from one.
    pub at: LineColumn,
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.file, self.at.line, self.at.column)
    }
}

/// One reported problem.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// Which stage reported it.
    pub phase: Phase,
    /// How bad it is.
    pub code: Code,
    /// The path of the value concerned, elements as they are printed.
    pub path: Vec<String>,
    /// The message without path and position.
    pub message: String,
    /// The place the message is about.
    pub location: Option<Location>,
    /// The other places involved: the conjuncts that conflict.
    pub related: Vec<Location>,
    /// A suggestion, where one is obvious.
    pub hint: Option<Box<str>>,
}

impl Diagnostic {
    /// A syntax or name-resolution problem at one place.
    pub fn at(phase: Phase, message: impl Into<String>, location: Option<Location>) -> Self {
        Self {
            phase,
            code: Code::Eval,
            path: Vec::new(),
            message: message.into(),
            location,
            related: Vec::new(),
            hint: None,
        }
    }

    /// The path in its printed form.
    pub fn path_text(&self) -> String {
        self.path.join(".")
    }
}

/// `path: message`, as the reference prints it.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() {
            f.write_str(&self.message)
        } else {
            write!(f, "{}: {}", self.path_text(), self.message)
        }
    }
}

impl std::error::Error for Diagnostic {}
