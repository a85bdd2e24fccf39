//! `Chart.yaml`: what a chart says about itself.

use std::collections::BTreeMap;

use bellwether_go::semver::Version;
use bellwether_json::yaml::value_from_yaml;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::error::{Error, Result, yaml_text};

/// The content of `Chart.yaml`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Metadata {
    /// The name of the chart.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// Where the project lives.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub home: String,
    /// Addresses of source code.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// The version of the chart.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// One sentence.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// Words to find the chart by.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keywords: Vec<String>,
    /// Who looks after it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub maintainers: Vec<Maintainer>,
    /// The address of an image.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub icon: String,
    /// `v1` or `v2`.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub api_version: String,
    /// Paths of values that enable the chart as a dependency.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub condition: String,
    /// Tags by which it is enabled as a dependency.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub tags: String,
    /// The version of what it installs.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub app_version: String,
    /// True if nobody should use it any more.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub deprecated: bool,
    /// What tools want to know.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// The versions of Kubernetes that it runs on, as a range.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub kube_version: String,
    /// The charts that it needs.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub dependencies: Vec<Dependency>,
    /// `application` or `library`.
    #[serde(rename = "type", skip_serializing_if = "String::is_empty")]
    pub chart_type: String,
}

/// Who looks after a chart.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Maintainer {
    /// A name.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// An address.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub email: String,
    /// A page.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub url: String,
}

/// A chart that another one needs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Dependency {
    /// The name of the chart.
    pub name: String,
    /// Versions that will do, as a range.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub version: String,
    /// Where it comes from.
    pub repository: String,
    /// Paths of values that enable it; the first that exists counts.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub condition: String,
    /// Tags that enable or disable it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// Set by [`crate::template`] from condition and tags.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub enabled: bool,
    /// Values that the parent takes over.
    #[serde(rename = "import-values", skip_serializing_if = "Vec::is_empty")]
    pub import_values: Vec<Value>,
    /// The name under which the parent knows it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub alias: String,
}

impl Metadata {
    /// Reads `Chart.yaml`, or `requirements.yaml` into what is there.
    pub(crate) fn read(&mut self, file: &str, text: &str) -> Result<()> {
        let value = value_from_yaml(text)
            .map_err(|error| Error::chart(format!("cannot load {file}: {}", yaml_text(&error))))?;
        let Value::Object(fields) = value else {
            if value.is_null() {
                return Ok(());
            }
            let message = format!("cannot load {file}: it has to be a mapping");
            return Err(Error::chart(message));
        };
        let mut merged = match serde_json::to_value(&*self) {
            Ok(Value::Object(merged)) => merged,
            _ => serde_json::Map::new(),
        };
        for (key, mut field) in fields {
            as_go_reads(&key, &mut field);
            if !field.is_null() {
                merged.insert(key, field);
            }
        }
        *self = serde_json::from_value(Value::Object(merged))
            .map_err(|error| Error::chart(format!("cannot load {file}: {error}")))?;
        Ok(())
    }

    /// Checks what Helm checks when it loads a chart.
    pub(crate) fn validate(&mut self) -> Result<()> {
        let invalid = |message: String| Err(Error::chart(format!("validation: {message}")));
        for text in [
            &mut self.name,
            &mut self.description,
            &mut self.home,
            &mut self.icon,
            &mut self.app_version,
            &mut self.kube_version,
        ] {
            *text = sanitized(text);
        }
        if self.name.is_empty() {
            return invalid("chart.metadata.name is required".to_owned());
        }
        if matches!(self.name.as_str(), "." | "..") {
            return invalid(format!(
                "chart.metadata.name {:?} is not allowed",
                self.name
            ));
        }
        if self.name.contains('/') {
            return invalid(format!("chart.metadata.name {:?} is invalid", self.name));
        }
        if self.version.is_empty() {
            return invalid("chart.metadata.version is required".to_owned());
        }
        if Version::parse(&self.version).is_err() {
            return invalid(format!(
                "chart.metadata.version {:?} is invalid",
                self.version
            ));
        }
        if !matches!(self.chart_type.as_str(), "" | "application" | "library") {
            let message = "chart.metadata.type must be application or library";
            return invalid(message.to_owned());
        }
        let mut names = std::collections::BTreeSet::new();
        for dependency in &self.dependencies {
            let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
            if !dependency.alias.bytes().all(is_word) {
                return invalid(format!(
                    "dependency {:?} has disallowed characters in the alias",
                    dependency.name
                ));
            }
            let name = dependency.known_as();
            if !names.insert(name) {
                return invalid(format!(
                    "more than one dependency with name or alias {name:?}"
                ));
            }
        }
        Ok(())
    }
}

impl Dependency {
    /// The name under which the parent knows the chart.
    pub(crate) fn known_as(&self) -> &str {
        if self.alias.is_empty() {
            &self.name
        } else {
            &self.alias
        }
    }
}

/// Numbers that are meant as texts become texts, as Go's YAML reader makes them.
fn as_go_reads(key: &str, field: &mut Value) {
    let is_text = matches!(
        key,
        "name"
            | "version"
            | "appVersion"
            | "kubeVersion"
            | "description"
            | "home"
            | "icon"
            | "type"
            | "apiVersion"
            | "condition"
            | "tags"
    );
    if is_text && (field.is_number() || field.is_boolean()) {
        *field = Value::String(field.to_string());
    }
    if key == "dependencies" {
        for dependency in field.as_array_mut().into_iter().flatten() {
            let Value::Object(members) = dependency else {
                continue;
            };
            members.retain(|_, member| !member.is_null());
            for name in ["version", "name", "alias", "condition"] {
                if let Some(member) = members.get_mut(name).filter(|member| member.is_number()) {
                    *member = Value::String(member.to_string());
                }
            }
        }
    }
}

/// Blanks of any kind become spaces, what cannot be printed goes.
fn sanitized(text: &str) -> String {
    text.chars()
        .filter_map(|character| match character {
            _ if character.is_whitespace() => Some(' '),
            _ if character.is_control() => None,
            other => Some(other),
        })
        .collect()
}
