//! What is wrong with `Chart.yaml`, in the words of Helm.

use bellwether_json::yaml::first_from_yaml;
use serde_json::Value;

use super::{Finding, Severity};
use crate::error::yaml_text;
use bellwether_go::semver::Version;

const FILE: &str = "Chart.yaml";

/// Examines the text of `Chart.yaml`.
pub fn lint_metadata(text: &str) -> Vec<Finding> {
    let finding = |severity, message: String| Finding {
        severity,
        path: FILE.to_owned(),
        message,
    };
    let metadata = match first_from_yaml(text) {
        Ok(metadata) => metadata,
        Err(error) => {
            let message = format!("unable to parse YAML: {}", yaml_text(&error));
            return vec![finding(Severity::Error, message)];
        }
    };
    let mut problems = Vec::new();
    problems.extend(name(&metadata));
    problems.extend(api_version(&metadata));
    problems.extend(version(&metadata));
    problems.extend(type_of(&metadata, "appVersion"));
    problems.extend(maintainers(&metadata));
    problems.extend(sources(&metadata));
    problems.extend(icon(&metadata));
    problems.extend(only_in_v2(&metadata));
    let error = |problem| finding(Severity::Error, problem);
    let mut findings: Vec<Finding> = problems.into_iter().map(error).collect();
    if text_at(&metadata, "icon").is_empty() {
        findings.push(finding(Severity::Info, "icon is recommended".to_owned()));
    }
    findings
}

fn text_at<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or_default()
}

fn name(metadata: &Value) -> Option<String> {
    let name = text_at(metadata, "name");
    if name.is_empty() {
        return Some("name is required".to_owned());
    }
    let is_invalid = name.contains('/') || matches!(name, "." | "..");
    is_invalid.then(|| format!("chart name {name:?} is invalid"))
}

fn api_version(metadata: &Value) -> Option<String> {
    const VALUES: &str = "The value must be either \"v1\" or \"v2\"";
    match text_at(metadata, "apiVersion") {
        "v1" | "v2" => None,
        "" => Some(format!("apiVersion is required. {VALUES}")),
        other => Some(format!("apiVersion '{other}' is not valid. {VALUES}")),
    }
}

fn version(metadata: &Value) -> Option<String> {
    if let Some(problem) = type_of(metadata, "version") {
        return Some(problem);
    }
    match text_at(metadata, "version") {
        "" => Some("version is required".to_owned()),
        version if Version::parse(version).is_err() => {
            Some(format!("version '{version}' is not a valid SemVer"))
        }
        _ => None,
    }
}

/// What is wrong with a field that has to be a text: `1.10` without quotes is the number 1.1.
fn type_of(metadata: &Value, field: &str) -> Option<String> {
    let kind = match metadata.get(field)? {
        Value::String(_) | Value::Null => return None,
        Value::Number(_) => "float64",
        Value::Bool(_) => "bool",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    };
    Some(format!(
        "{field} should be of type string but it's of type {kind}"
    ))
}

fn maintainers(metadata: &Value) -> Vec<String> {
    let maintainers = metadata["maintainers"].as_array().into_iter().flatten();
    let problem = |maintainer: &Value| {
        let text = |field| text_at(maintainer, field);
        let (name, email, url) = (text("name"), text("email"), text("url"));
        if name.is_empty() {
            Some("each maintainer requires a name".to_owned())
        } else if !email.is_empty() && !is_email(email) {
            Some(format!("invalid email '{email}' for maintainer '{name}'"))
        } else if !url.is_empty() && !is_address(url) {
            Some(format!("invalid url '{url}' for maintainer '{name}'"))
        } else {
            None
        }
    };
    maintainers.filter_map(problem).collect()
}

fn sources(metadata: &Value) -> Vec<String> {
    let sources = metadata["sources"].as_array().into_iter().flatten();
    let invalid = sources
        .filter_map(Value::as_str)
        .filter(|source| !is_address(source));
    invalid
        .map(|source| format!("invalid source URL '{source}'"))
        .collect()
}

fn icon(metadata: &Value) -> Option<String> {
    let icon = text_at(metadata, "icon");
    let is_invalid = !icon.is_empty() && !is_address(icon);
    is_invalid.then(|| format!("invalid icon URL '{icon}'"))
}

fn only_in_v2(metadata: &Value) -> Vec<String> {
    let version = text_at(metadata, "apiVersion");
    let mut problems = Vec::new();
    if version == "v2" {
        return problems;
    }
    if !text_at(metadata, "type").is_empty() {
        problems.push(format!(
            "chart type is not valid in apiVersion '{version}'. It is valid in apiVersion 'v2'"
        ));
    }
    if metadata["dependencies"]
        .as_array()
        .is_some_and(|it| !it.is_empty())
    {
        problems.push(format!(
            "dependencies are not valid in the Chart file with apiVersion '{version}'. They are valid in \
             apiVersion 'v2'"
        ));
    }
    problems
}

/// True for an absolute address: a scheme, and something behind it.
fn is_address(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once(':') else {
        return text.starts_with('/');
    };
    let mut letters = scheme.bytes();
    letters
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic())
        && letters.all(|byte| byte.is_ascii_alphanumeric() || b"+-.".contains(&byte))
        && !rest.is_empty()
}

fn is_email(text: &str) -> bool {
    let Some((user, domain)) = text.rsplit_once('@') else {
        return false;
    };
    !user.is_empty() && !domain.is_empty() && !text.contains(char::is_whitespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let found: Vec<String> = lint_metadata(text)
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn mistakes_in_a_chart_file_are_named_as_helm_names_them() {
        check(
            "apiVersion: v2\nname: a\nversion: 1.0.0\nicon: https://a.example/icon.png\n",
            &[],
        );
        check(
            "apiVersion: v3\nname: B b\nversion: one\nappVersion: 1\ntype: foo\nmaintainers: [{email: x}]\n\
             sources: [x]\ndependencies:\n- {name: s, version: 1.0.0}\n",
            &[
                "[ERROR] Chart.yaml: apiVersion 'v3' is not valid. The value must be either \"v1\" or \"v2\"",
                "[ERROR] Chart.yaml: version 'one' is not a valid SemVer",
                "[ERROR] Chart.yaml: appVersion should be of type string but it's of type float64",
                "[ERROR] Chart.yaml: each maintainer requires a name",
                "[ERROR] Chart.yaml: invalid source URL 'x'",
                "[ERROR] Chart.yaml: chart type is not valid in apiVersion 'v3'. It is valid in apiVersion 'v2'",
                "[ERROR] Chart.yaml: dependencies are not valid in the Chart file with apiVersion 'v3'. They \
                 are valid in apiVersion 'v2'",
                "[INFO] Chart.yaml: icon is recommended",
            ],
        );
        check(
            "icon: x\nmaintainers: [{name: a, email: b}, {name: a, email: b@c, url: d}]\n",
            &[
                "[ERROR] Chart.yaml: name is required",
                "[ERROR] Chart.yaml: apiVersion is required. The value must be either \"v1\" or \"v2\"",
                "[ERROR] Chart.yaml: version is required",
                "[ERROR] Chart.yaml: invalid email 'b' for maintainer 'a'",
                "[ERROR] Chart.yaml: invalid url 'd' for maintainer 'a'",
                "[ERROR] Chart.yaml: invalid icon URL 'x'",
            ],
        );
        check(
            "name: a\n b: c\n",
            &[
                "[ERROR] Chart.yaml: unable to parse YAML: error converting YAML to JSON: yaml: line 2: mapping \
                 values are not allowed in this context",
            ],
        );
    }
}
