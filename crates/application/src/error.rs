//! Why an application cannot be rendered: where, what kind of mistake, and what to do.

use std::fmt;

use bellwether_cue::diagnostic::{Code, Diagnostic};

/// How far rendering came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Definitions, policies and objects that the application refers to were looked up.
    Parse,
    /// A custom policy was rendered.
    Policy,
    /// A component was rendered.
    Render,
    /// Components were placed by a deploy step.
    Deploy,
}

impl Stage {
    /// The word that reports use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Parse => "parse",
            Self::Policy => "policy",
            Self::Render => "render",
            Self::Deploy => "deploy",
        }
    }
}

/// What kind of mistake it is, which is also who can mend it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// A parameter does not fit its definition.
    Parameter,
    /// The definition refuses the parameters in its own words.
    User,
    /// Something is missing that has to be given.
    Incomplete,
    /// The template of the definition is wrong.
    Template,
    /// A trait contradicts the component.
    Patch,
    /// Something that is referred to does not exist.
    NotFound,
    /// Something is not written as it has to be.
    InvalidInput,
    /// Something from outside of the hub is not there, or not yet.
    Outside,
}

impl Class {
    /// The word that reports use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Parameter => "parameter",
            Self::User => "user",
            Self::Incomplete => "incomplete",
            Self::Template => "template",
            Self::Patch => "patch",
            Self::NotFound => "not-found",
            Self::InvalidInput => "invalid-input",
            Self::Outside => "outside",
        }
    }
}

/// Why an application cannot be rendered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderError {
    /// How far it came.
    pub stage: Stage,
    /// What kind of mistake it is.
    pub class: Class,
    /// What is wrong, and where.
    pub message: String,
}

impl RenderError {
    /// An error of that stage and class.
    pub fn new(stage: Stage, class: Class, message: impl Into<String>) -> Self {
        Self {
            stage,
            class,
            message: message.into(),
        }
    }

    /// The same error, about something.
    #[must_use]
    pub fn about(mut self, what: &str) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }

    /// The same error in another stage.
    #[must_use]
    pub fn at(mut self, stage: Stage) -> Self {
        self.stage = stage;
        self
    }
}

impl fmt::Display for RenderError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for RenderError {}

/// What rendering one definition found wrong.
#[derive(Debug, Default)]
pub(crate) struct Problems {
    /// What the definition says itself, in `errs`.
    pub(crate) user: Vec<String>,
    /// What evaluation says.
    pub(crate) found: Vec<Diagnostic>,
}

impl Problems {
    pub(crate) fn is_empty(&self) -> bool {
        self.user.is_empty() && self.found.is_empty()
    }

    /// The class of the whole: what a user can mend comes first.
    fn class(&self) -> Class {
        let is_parameter =
            |found: &Diagnostic| found.path.first().is_some_and(|first| is_parameter(first));
        if !self.user.is_empty() {
            Class::User
        } else if self.found.iter().any(is_temporary) {
            Class::Incomplete
        } else if self.found.iter().any(is_parameter) {
            Class::Parameter
        } else {
            Class::Template
        }
    }

    /// The error about `what`, such as `component web`.
    pub(crate) fn into_error(self, stage: Stage, what: &str) -> RenderError {
        let class = self.class();
        let mut blocks = Vec::new();
        if !self.user.is_empty() {
            blocks.push(block("User errors", self.user));
        }
        let (parameter, template): (Vec<_>, Vec<_>) = self
            .found
            .into_iter()
            .partition(|found| found.path.first().is_some_and(|first| is_parameter(first)));
        for (title, found) in [
            ("Parameter errors", parameter),
            ("Template errors", template),
        ] {
            if !found.is_empty() {
                blocks.push(block(title, found.iter().map(describe).collect()));
            }
        }
        RenderError::new(
            stage,
            class,
            format!("{what} cannot be rendered\n{}", blocks.join("\n")),
        )
    }
}

fn is_parameter(name: &str) -> bool {
    name == "parameter" || name == "parameters"
}

fn is_temporary(found: &Diagnostic) -> bool {
    matches!(found.code, Code::Incomplete | Code::Cycle)
}

/// A problem with the place of the template it is about.
fn describe(found: &Diagnostic) -> String {
    match &found.location {
        Some(location) if !found.path.first().is_some_and(|first| is_parameter(first)) => {
            format!("{found} ({location})")
        }
        _ => found.to_string(),
    }
}

fn block(title: &str, mut lines: Vec<String>) -> String {
    lines.sort();
    lines.dedup();
    let mut text = format!("{title}:");
    for line in lines {
        text.push_str("\n  ");
        text.push_str(&line);
    }
    text
}
