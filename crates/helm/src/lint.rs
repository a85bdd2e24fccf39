//! `helm lint`: what is wrong with a chart, and what could be better.

mod deprecated;
mod metadata;

use std::fmt;

use bellwether_json::yaml::first_from_yaml;
use bellwether_template::World;
use serde_json::{Map, Value};

use crate::chart::Chart;
use crate::error::Error;
use crate::manifest::Manifest;
use crate::template::{Request, Templated, template};

pub use metadata::lint_metadata;

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

/// Examines a chart, apart from its [metadata](lint_metadata), and renders it with values.
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
    if chart.values_text.is_empty() {
        add(Severity::Info, "values.yaml", "file does not exist");
    }
    if chart.templates.is_empty() {
        add(Severity::Warning, "templates/", "directory does not exist");
    }
    if let Some(lock) = &chart.lock
        && !lock.digest.is_empty()
        && !lock.is_in_sync(&chart.metadata)
    {
        let message =
            "it does not belong to the dependencies in Chart.yaml: run `helm dependency update`";
        add(Severity::Info, "Chart.lock", message);
    }
    if chart.is_library() {
        return findings;
    }
    match template(chart, values, request, world) {
        Ok(Templated::Release(release)) => {
            let found = release.manifests.iter();
            let found = found.flat_map(|it| about(chart, it, &request.kube_version));
            findings.extend(found);
        }
        Ok(Templated::Needs(_)) => {}
        Err(error) => {
            let message = error.to_string();
            let path = match &error {
                Error::Chart(_) => "Chart.yaml".to_owned(),
                Error::Values(_) | Error::Schema(_) => "values.yaml".to_owned(),
                Error::Render(_) | Error::Manifest(_) => file_in(&message, chart.name()),
            };
            add(Severity::Error, &path, &message);
        }
    }
    findings
}

/// The template that a message is about: the first path of the chart in it.
fn file_in(message: &str, chart: &str) -> String {
    const DIRECTORY: &str = "templates/";
    let start = message.find(&format!("{chart}/{DIRECTORY}"));
    let path = start.and_then(|start| message.get(start + chart.len() + 1..));
    let is_end = |character: char| character.is_whitespace() || "():,\"'".contains(character);
    let path = path.and_then(|path| path.split(is_end).next());
    path.unwrap_or(DIRECTORY).to_owned()
}

/// What is wrong with an object that a template made.
fn about(chart: &Chart, manifest: &Manifest, kube_version: &str) -> Vec<Finding> {
    let prefix = format!("{}/", chart.name());
    let path = manifest.path.strip_prefix(&prefix);
    let finding = |severity, message| Finding {
        severity,
        path: path.unwrap_or(&manifest.path).to_owned(),
        message,
    };
    let Ok(object) = first_from_yaml(&manifest.content) else {
        // It has been read once.
        return Vec::new();
    };
    let mut findings = Vec::new();
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let is_part = |part: &str| {
        let is_end = |byte: Option<u8>| byte.is_some_and(|it| it.is_ascii_alphanumeric());
        let inner = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        is_end(part.bytes().next()) && is_end(part.bytes().last()) && part.bytes().all(inner)
    };
    if !name.is_empty()
        && (name.len() > 253 || !name.split('.').all(is_part))
        && !may_have_any_name(&object)
    {
        let message = format!(
            "object name does not conform to Kubernetes naming requirements: {name:?}: use lower case letters, \
             digits, '-' and '.', and begin and end with a letter or digit"
        );
        findings.push(finding(Severity::Warning, message));
    }
    let kind = manifest.kind.as_str();
    let api_version = object["apiVersion"].as_str().unwrap_or_default();
    let deprecated = deprecated::problem(api_version, kind, kube_version);
    findings.extend(deprecated.map(|message| finding(Severity::Warning, message)));
    let selector = &object["spec"]["selector"];
    let has = |field: &str| selector.get(field).is_some_and(|it| !it.is_null());
    let is_workload = ["Deployment", "ReplicaSet", "DaemonSet", "StatefulSet"].contains(&kind);
    if is_workload && !has("matchLabels") && !has("matchExpressions") {
        let message =
            format!("a {kind} must contain matchLabels or matchExpressions, and {name:?} does not");
        findings.push(finding(Severity::Error, message));
    }
    findings
}

/// Names of roles and of their bindings are parts of paths, and may have colons and capital letters.
fn may_have_any_name(object: &Value) -> bool {
    let group = object["apiVersion"].as_str().unwrap_or_default();
    group.starts_with("rbac.authorization.k8s.io/")
}
