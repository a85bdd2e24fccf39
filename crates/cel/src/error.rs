//! What can go wrong: while compiling ([`CompileErrors`]) and while evaluating ([`EvalError`]).

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use crate::source::{self, Location, Position};

/// Problems beyond this many are counted, not listed.
const MAX_REPORTED: usize = 100;

/// One problem found while compiling.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// Where it is.
    pub location: Location,
    /// What it is, in cel-go's words.
    pub message: String,
}

/// At which stage compilation stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// The text is not an expression, or its types do not fit. Kubernetes prefixes such texts
    /// with `compilation failed: `.
    Compile,
    /// A constant part of the expression fails whenever it is evaluated, for example
    /// `int('x')`. Kubernetes prefixes such texts with `program instantiation failed: `.
    Program,
}

/// Why an expression was refused. `Display` prints every problem with its line and a mark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CompileErrors {
    stage: Stage,
    text: Arc<str>,
    issues: Vec<Issue>,
    total: usize,
}

impl CompileErrors {
    /// At which stage compilation stopped.
    pub fn stage(&self) -> Stage {
        self.stage
    }

    /// The problems in the order of the source, at most 100.
    pub fn issues(&self) -> &[Issue] {
        &self.issues
    }

    pub(crate) fn program(text: &str, error: &EvalError) -> CompileErrors {
        CompileErrors {
            stage: Stage::Program,
            text: text.into(),
            issues: vec![Issue {
                location: source::locate(text, Position::NONE),
                message: error.to_string(),
            }],
            total: 1,
        }
    }
}

impl fmt::Display for CompileErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, issue) in self.issues.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            let text = match self.stage {
                Stage::Program => issue.message.clone(),
                Stage::Compile => source::render(&self.text, issue.location, &issue.message),
            };
            f.write_str(&text)?;
        }
        if self.total > MAX_REPORTED {
            let more = self.total - MAX_REPORTED;
            write!(f, "\n{more} more errors were truncated")?;
        }
        Ok(())
    }
}

impl std::error::Error for CompileErrors {}

/// Collects problems during one stage.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    found: Vec<(Position, String)>,
    total: usize,
}

impl Problems {
    pub(crate) fn report(&mut self, position: Position, message: impl Into<String>) {
        self.total += 1;
        if self.total <= MAX_REPORTED {
            self.found.push((position, message.into()));
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.total == 0
    }

    pub(crate) fn into_errors(self, text: &str) -> CompileErrors {
        let mut issues: Vec<Issue> = self
            .found
            .into_iter()
            .map(|(position, message)| Issue {
                location: source::locate(text, position),
                message,
            })
            .collect();
        issues.sort_by_key(|issue| issue.location);
        CompileErrors {
            stage: Stage::Compile,
            text: text.into(),
            issues,
            total: self.total,
        }
    }
}

/// Why an evaluation gave no value. `Display` words it as cel-go does.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EvalError {
    /// The expression failed on these bindings, for example `no such key: x`.
    #[error("{0}")]
    Failed(Cow<'static, str>),
    /// This evaluation alone cost more than one call may.
    #[error("operation cancelled: actual cost limit exceeded")]
    CallLimitExceeded,
    /// The budget shared with earlier evaluations is used up.
    #[error(
        "validation failed due to running out of cost budget, no further validation rules will be run"
    )]
    BudgetExceeded,
}

impl EvalError {
    /// An ordinary failure with this text; for functions of your own.
    pub fn failed(text: impl Into<Cow<'static, str>>) -> EvalError {
        EvalError::Failed(text.into())
    }

    /// Whether evaluation was stopped for its cost rather than failing by itself.
    pub fn is_over_budget(&self) -> bool {
        matches!(
            self,
            EvalError::CallLimitExceeded | EvalError::BudgetExceeded
        )
    }

    pub(crate) fn no_such_overload() -> EvalError {
        EvalError::Failed(Cow::Borrowed("no such overload"))
    }

    pub(crate) fn no_such_key(key: impl fmt::Display) -> EvalError {
        EvalError::Failed(format!("no such key: {key}").into())
    }
}
