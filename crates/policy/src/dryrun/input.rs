//! Reads the policy and the objects of a dry run.

use bellwether_api::policy::{ConfigurationPolicy, EvaluationInterval, GROUP, RemediationAction};
use bellwether_json::yaml::{
    Dialect, DuplicateKeys, YamlOptions, documents_from_yaml, from_yaml_with,
};
use serde_json::{Map, Value};

use crate::field_names;

/// How often a policy would be evaluated, which dry runs never do.
const INTERVAL: &str = "10s";

/// The policy of a dry run.
pub(super) struct ReadPolicy {
    pub(super) policy: ConfigurationPolicy,
    /// Whether there were more than one.
    pub(super) has_others: bool,
}

/// Reads a ConfigurationPolicy, or a Policy with one in it. It becomes one that informs.
pub(super) fn policy(text: &str) -> Result<ReadPolicy, String> {
    let value = document(first_document(text))?;
    let api_version = value["apiVersion"].as_str().unwrap_or_default();
    let supported = format!("{GROUP}/v1");
    if api_version != supported {
        return Err(format!(
            "unsupported apiVersion: {api_version}, the input policy must be '{supported}'"
        ));
    }
    let (definition, has_others) = match value["kind"].as_str().unwrap_or_default() {
        "ConfigurationPolicy" => {
            let policy = strict(value).map_err(|error| {
                format!("could not unmarshal input to a ConfigurationPolicy: {error}")
            })?;
            (policy, false)
        }
        "Policy" => template_of(&value)?,
        kind => {
            return Err(format!(
                "unsupported input kind: {kind}, must be 'Policy' or 'ConfigurationPolicy'"
            ));
        }
    };
    let mut policy = definition;
    policy.spec.remediation_action = RemediationAction::inform();
    policy.spec.evaluation_interval = Some(EvaluationInterval {
        compliant: Some(INTERVAL.to_owned()),
        noncompliant: Some(INTERVAL.to_owned()),
        ..EvaluationInterval::default()
    });
    policy.status = None;
    Ok(ReadPolicy { policy, has_others })
}

/// Reads a document without keys that occur twice.
fn document(text: &str) -> Result<Value, String> {
    const PROBLEM: &str = "error converting YAML to JSON: yaml:";
    let options = YamlOptions {
        adds_final_break: false,
        ..YamlOptions::default()
    };
    let read = documents_from_yaml(text, options)
        .map_err(|error| format!("{PROBLEM} line {}: {}", error.line, error.message))?;
    let document = read.into_iter().next().unwrap_or_default();
    if document.duplicates.is_empty() {
        return Ok(document.value);
    }
    let keys: Vec<String> = document
        .duplicates
        .iter()
        .map(ToString::to_string)
        .collect();
    Err(format!(
        "{PROBLEM} unmarshal errors:\n  {}",
        keys.join("\n  ")
    ))
}

/// The first document of a text: what comes after it is not looked at.
pub(super) fn first_document(text: &str) -> &str {
    let mut has_begun = false;
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        let is_marker = |marker: &str| {
            let rest = line.strip_prefix(marker);
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\r', '\n']))
        };
        let begins = is_marker("---");
        if has_begun && (begins || is_marker("...")) {
            return &text[..end];
        }
        let content = line.trim_start();
        let is_content = !(content.is_empty() || content.starts_with(['#', '%']));
        has_begun |= begins || is_content;
        end += line.len();
    }
    text
}

/// The first ConfigurationPolicy of a Policy, and whether there are more.
fn template_of(policy: &Value) -> Result<(ConfigurationPolicy, bool), String> {
    let templates = match &policy["spec"]["policy-templates"] {
        Value::Array(templates) => templates,
        Value::Null => return Err("invalid input Policy: no policy-templates found".to_owned()),
        other => {
            return Err(format!(
                "invalid input Policy: .spec.policy-templates accessor error: {other} is not a list"
            ));
        }
    };
    let mut found = templates
        .iter()
        .enumerate()
        .map(|(index, template)| (index, &template["objectDefinition"]))
        .filter(|(_, definition)| definition["kind"] == "ConfigurationPolicy");
    let Some((index, definition)) = found.next() else {
        return Err("invalid input Policy: it must contain a ConfigurationPolicy".to_owned());
    };
    let policy = strict(definition.clone()).map_err(|error| {
        format!(
            "could not unmarshal input policy template [{index}] to a ConfigurationPolicy: {error}"
        )
    })?;
    Ok((policy, found.next().is_some()))
}

/// Reads a policy that has no fields but those that are known.
fn strict(mut value: Value) -> Result<ConfigurationPolicy, String> {
    field_names::rename(&mut value, &field_names::CONFIGURATION_POLICY);
    field_names::complete_all(&mut value);
    let wrong = |error: String| format!("error unmarshaling JSON: while decoding JSON: {error}");
    let policy: ConfigurationPolicy =
        serde_json::from_value(value).map_err(|error| wrong(format!("json: {error}")))?;
    let spec = &policy.spec;
    let mut unknown: Vec<&Map<String, Value>> = vec![&policy.other, &spec.other];
    unknown.extend(spec.custom_message.as_ref().map(|part| &part.other));
    unknown.extend(spec.evaluation_interval.as_ref().map(|part| &part.other));
    unknown.extend(spec.namespace_selector.as_ref().map(|part| &part.other));
    let templates = spec.object_templates.iter().flatten();
    unknown.extend(templates.map(|template| &template.other));
    match unknown.iter().find_map(|fields| fields.keys().next()) {
        Some(field) => Err(wrong(format!("json: unknown field {field:?}"))),
        None => Ok(policy),
    }
}

/// Reads the objects of a cluster.
pub(super) fn objects(inputs: &[(String, String)]) -> Result<Vec<Value>, String> {
    let options = YamlOptions {
        dialect: Dialect::GoYamlV3,
        duplicate_keys: DuplicateKeys::Error,
        adds_final_break: false,
        ..YamlOptions::default()
    };
    let mut objects = Vec::new();
    for (name, text) in inputs {
        let documents = from_yaml_with(text, options).map_err(|error| {
            format!(
                "could not decode {name} to YAML: yaml: line {}: {}",
                error.line, error.message
            )
        })?;
        for document in documents {
            if document.is_null() {
                continue;
            }
            if !document.is_object() {
                return Err(format!(
                    "could not decode {name} to YAML: yaml: unmarshal errors: it is not a map"
                ));
            }
            if document["kind"].as_str().is_none_or(str::is_empty) {
                return Err(format!(
                    "could not re-un-marshal {name} to kubernetes YAML: error unmarshaling JSON: while decoding JSON: Object 'Kind' is missing in '{document}'"
                ));
            }
            objects.push(document);
        }
    }
    Ok(objects)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_document_ends_where_another_begins() {
        let table = [
            ("a: 1\n", "a: 1\n"),
            ("a: 1\n---\nb: [\n", "a: 1\n"),
            ("# note\n---\na: 1\n---\nb: 2\n", "# note\n---\na: 1\n"),
            ("--- {a: 1}\n--- {b: 2}\n", "--- {a: 1}\n"),
            ("a: |\n  ---\n  b\n...\nrest", "a: |\n  ---\n  b\n"),
            ("a: ----\n----: 1\n", "a: ----\n----: 1\n"),
            (
                "%YAML 1.1\n---\r\na: 1\r\n---\r\n",
                "%YAML 1.1\n---\r\na: 1\r\n",
            ),
            ("---\n---\na: 1\n", "---\n"),
            ("", ""),
        ];
        for (text, first) in table {
            assert_eq!(first_document(text), first, "{text:?}");
        }
    }
}
