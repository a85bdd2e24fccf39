//! `Chart.yaml`: what a chart says about itself.

use std::collections::BTreeMap;

use bellwether_go::semver::Version;
use bellwether_json::yaml::first_from_yaml;
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
        let value = first_from_yaml(text)
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

/// Numbers and booleans where texts are meant become texts, as Go's YAML reader makes them: all but a few
/// fields are texts. Members that are null are as if they were not there.
fn as_go_reads(key: &str, field: &mut Value) {
    if matches!(key, "deprecated" | "enabled" | "import-values") {
        return;
    }
    match field {
        Value::Number(_) | Value::Bool(_) => *field = Value::String(field.to_string()),
        Value::Array(items) => {
            for item in items {
                as_go_reads(key, item);
            }
        }
        Value::Object(members) => {
            members.retain(|_, member| !member.is_null());
            for (name, member) in members {
                as_go_reads(name, member);
            }
        }
        Value::Null | Value::String(_) => {}
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_booleans_are_texts_where_texts_are_meant() {
        let mut metadata = Metadata::default();
        let text = "name: 7\nversion: 1.2\nkeywords: [1.5, yes]\nmaintainers: [{name: n, url: }]\n\
                    annotations: {a: true}\ndeprecated: true\ndependencies:\n- {name: b, version: 1, tags: [2], \
                    import-values: [3]}\n";
        metadata.read("Chart.yaml", text).unwrap();
        assert_eq!((&*metadata.name, &*metadata.version), ("7", "1.2"));
        assert_eq!(metadata.keywords, ["1.5", "true"]);
        assert_eq!(metadata.maintainers[0].name, "false");
        assert_eq!(metadata.annotations["a"], "true");
        assert!(metadata.deprecated);
        let dependency = &metadata.dependencies[0];
        assert_eq!((&*dependency.version, &*dependency.tags[0]), ("1", "2"));
        assert_eq!(dependency.import_values, [Value::from(3)]);
    }
}
