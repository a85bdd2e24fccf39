//! `helm lint`: what is wrong with a chart, and what could be better.

use std::fmt;

use bellwether_template::World;
use serde_json::{Map, Value};

use crate::chart::Chart;
use crate::error::Error;
use crate::template::{Request, template};

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Good to know.
    Info,
    /// Should be repaired.
    Warning,
    /// The chart cannot be used.
    Error,
}

/// What was found. Displayed as `[ERROR] templates/a.yaml: …`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The file or directory.
    pub path: String,
    /// What is wrong, with its line, and what to do.
    pub message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = match self.severity {
            Severity::Info => "INFO",
            Severity::Warning => "WARNING",
            Severity::Error => "ERROR",
        };
        write!(f, "[{severity}] {}: {}", self.path, self.message)
    }
}

/// Examines a chart, and renders it with values.
pub fn lint(
    chart: &Chart,
    values: &Map<String, Value>,
    request: &Request,
    world: &World<'_>,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut add = |severity, path: &str, message: &str| {
        findings.push(Finding {
            severity,
            path: path.to_owned(),
            message: message.to_owned(),
        });
    };
    let metadata = &chart.metadata;
    if metadata.icon.is_empty() {
        add(Severity::Info, "Chart.yaml", "icon is recommended");
    }
    if !matches!(metadata.api_version.as_str(), "v1" | "v2") {
        let message = "apiVersion is not valid. The value must be either \"v1\" or \"v2\"";
        add(Severity::Error, "Chart.yaml", message);
    }
    if chart.values_text.is_empty() {
        add(Severity::Info, "values.yaml", "file does not exist");
    }
    if chart.templates.is_empty() {
        add(Severity::Warning, "templates/", "directory does not exist");
    }
    if chart.is_library() {
        return findings;
    }
    if let Err(error) = template(chart, values, request, world) {
        let path = match &error {
            Error::Chart(_) => "Chart.yaml",
            Error::Values(_) | Error::Schema(_) => "values.yaml",
            Error::Render(_) | Error::Manifest(_) => "templates/",
        };
        add(Severity::Error, path, &error.to_string());
    }
    findings
}
