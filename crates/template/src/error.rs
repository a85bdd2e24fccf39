//! What can be wrong with a template.

use std::fmt;

use crate::ast::Location;

/// When an error happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The text is not a template.
    Parse,
    /// The template failed on its data.
    Execute,
    /// The template used up its budget.
    Budget,
}

/// A template could not be parsed or executed. The text is Go's, with the position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateError {
    phase: Phase,
    location: Option<Location>,
    /// The template that was executed and the part of it: `executing "x" at <.a>`.
    context: Option<Box<str>>,
    message: Box<str>,
}

impl TemplateError {
    pub(crate) fn parse(location: Location, message: String) -> Self {
        Self {
            phase: Phase::Parse,
            location: Some(location),
            context: None,
            message: message.into(),
        }
    }

    pub(crate) fn execute(
        phase: Phase,
        location: Location,
        context: String,
        message: String,
    ) -> Self {
        Self {
            phase,
            location: Some(location),
            context: Some(context.into()),
            message: message.into(),
        }
    }

    pub(crate) fn budget(name: &str, message: String) -> Self {
        Self {
            phase: Phase::Budget,
            location: Some(Location {
                name: name.to_owned(),
                line: 1,
                column: None,
            }),
            context: None,
            message: message.into(),
        }
    }

    pub(crate) fn no_template(name: &str) -> Self {
        Self {
            phase: Phase::Execute,
            location: None,
            context: None,
            message: format!(
                "no template {} associated with the set",
                bellwether_go::quote::quote(name)
            )
            .into(),
        }
    }

    /// When it happened.
    pub const fn phase(&self) -> Phase {
        self.phase
    }

    /// Where it happened, if that is known.
    pub const fn location(&self) -> Option<&Location> {
        self.location.as_ref()
    }

    /// What is wrong, without the place.
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for TemplateError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("template: ")?;
        if let Some(location) = &self.location {
            write!(formatter, "{location}: ")?;
        }
        if let Some(context) = &self.context {
            write!(formatter, "{context}: ")?;
        }
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for TemplateError {}
