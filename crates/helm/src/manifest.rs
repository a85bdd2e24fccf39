//! What templates print: documents, hooks, and their order.

use bellwether_json::path::get;
use bellwether_json::yaml::first_from_yaml;
use serde::Serialize;
use serde_json::Value;

use crate::error::{Error, Result, yaml_text};

const HOOK: &str = "helm.sh/hook";
const HOOK_WEIGHT: &str = "helm.sh/hook-weight";
const HOOK_DELETE_POLICY: &str = "helm.sh/hook-delete-policy";

/// The order in which kinds are installed; other kinds follow by name.
const INSTALL_ORDER: [&str; 36] = [
    "PriorityClass",
    "Namespace",
    "NetworkPolicy",
    "ResourceQuota",
    "LimitRange",
    "PodSecurityPolicy",
    "PodDisruptionBudget",
    "ServiceAccount",
    "Secret",
    "SecretList",
    "ConfigMap",
    "StorageClass",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "CustomResourceDefinition",
    "ClusterRole",
    "ClusterRoleList",
    "ClusterRoleBinding",
    "ClusterRoleBindingList",
    "Role",
    "RoleList",
    "RoleBinding",
    "RoleBindingList",
    "Service",
    "DaemonSet",
    "Pod",
    "ReplicationController",
    "ReplicaSet",
    "Deployment",
    "HorizontalPodAutoscaler",
    "StatefulSet",
    "Job",
    "CronJob",
    "IngressClass",
    "Ingress",
    "APIService",
];

/// One document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// The path of the template, with the name of the chart in front.
    pub path: String,
    /// The kind of the object; empty if the document has none.
    pub kind: String,
    /// The text.
    pub content: String,
}

/// An object that is created at an event of a release.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Hook {
    /// The name of the object.
    pub name: String,
    /// The kind of the object.
    pub kind: String,
    /// The path of the template.
    pub path: String,
    /// The events, such as `pre-install`.
    pub events: Vec<String>,
    /// Hooks of one event run in the order of their weights, then of their names.
    pub weight: i64,
    /// When the object is deleted.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub delete_policies: Vec<String>,
    /// The text.
    #[serde(skip)]
    pub content: String,
}

/// Documents and hooks in the order in which Helm has them.
#[derive(Debug, Default)]
pub(crate) struct Sorted {
    pub(crate) manifests: Vec<Manifest>,
    pub(crate) hooks: Vec<Hook>,
    pub(crate) warnings: Vec<String>,
}

/// Takes rendered files apart, and sorts what is in them.
pub(crate) fn sort<'f>(files: impl Iterator<Item = (&'f str, &'f str)>) -> Result<Sorted> {
    let mut sorted = Sorted::default();
    for (path, text) in files {
        let name = path.rsplit('/').next().unwrap_or(path);
        if name.starts_with('_') || text.trim().is_empty() {
            continue;
        }
        for document in split(text) {
            sorted.add(path, document)?;
        }
    }
    sorted
        .manifests
        .sort_by_cached_key(|manifest| rank(&manifest.kind));
    sorted.hooks.sort_by_cached_key(|hook| rank(&hook.kind));
    Ok(sorted)
}

/// Known kinds by their place, then others by name.
fn rank(kind: &str) -> (usize, String) {
    match INSTALL_ORDER.iter().position(|known| *known == kind) {
        Some(place) => (place, String::new()),
        None => (INSTALL_ORDER.len(), kind.to_owned()),
    }
}

impl Sorted {
    fn add(&mut self, path: &str, document: &str) -> Result<()> {
        let wrong =
            |message: String| Error::Manifest(format!("YAML parse error on {path}: {message}"));
        let value = first_from_yaml(document).map_err(|error| wrong(yaml_text(&error)))?;
        check_head(&value).map_err(|message| {
            wrong(format!(
                "error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {message}"
            ))
        })?;
        let text = |keys: &[&str]| get(&value, keys).and_then(scalar).unwrap_or_default();
        let annotation =
            |key: &str| get(&value, &["metadata", "annotations", key]).and_then(scalar);
        let Some(events) = annotation(HOOK) else {
            self.manifests.push(Manifest {
                path: path.to_owned(),
                kind: text(&["kind"]),
                content: document.to_owned(),
            });
            return Ok(());
        };
        let Some(known) = events.split(',').map(event).collect::<Option<Vec<_>>>() else {
            self.warnings
                .push(format!("info: skipping unknown hook: {events:?}"));
            return Ok(());
        };
        let policies = annotation(HOOK_DELETE_POLICY).map_or_else(Vec::new, |policies| {
            let policies = policies.split(',');
            policies
                .map(|policy| policy.trim().to_lowercase())
                .collect()
        });
        self.hooks.push(Hook {
            name: text(&["metadata", "name"]),
            kind: text(&["kind"]),
            path: path.to_owned(),
            events: known,
            weight: annotation(HOOK_WEIGHT)
                .and_then(|weight| weight.parse().ok())
                .unwrap_or(0),
            delete_policies: policies,
            content: document.to_owned(),
        });
        Ok(())
    }
}

/// The text of a scalar that is not null.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(_) | Value::Number(_) => Some(value.to_string()),
        _ => None,
    }
}

fn event(text: &str) -> Option<String> {
    let event = text.trim().to_lowercase();
    match event.as_str() {
        "pre-install" | "post-install" | "pre-delete" | "post-delete" | "pre-upgrade"
        | "post-upgrade" | "pre-rollback" | "post-rollback" | "test" => Some(event),
        "test-success" => Some("test".to_owned()),
        _ => None,
    }
}

/// Checks the types of the fields that Helm reads of every document.
fn check_head(value: &Value) -> Result<(), String> {
    let kind = |value: &Value| match value {
        Value::Null => None,
        Value::Bool(_) => Some("bool"),
        Value::Number(_) => Some("number"),
        Value::String(_) => Some("string"),
        Value::Array(_) => Some("array"),
        Value::Object(_) => Some("object"),
    };
    // Where Go wants a text, other scalars become one.
    let expect = |value: Option<&Value>, wanted: &str, what: &str| match value.and_then(kind) {
        Some("bool" | "number") if wanted == "string" => Ok(()),
        Some(found) if found != wanted => Err(format!("{found} into Go {what}")),
        _ => Ok(()),
    };
    expect(
        Some(value),
        "object",
        "value of type releaseutil.SimpleHead",
    )?;
    let field = |name: &str| format!("struct field SimpleHead.{name}");
    expect(
        value.get("apiVersion"),
        "string",
        &(field("apiVersion") + " of type string"),
    )?;
    expect(
        value.get("kind"),
        "string",
        &(field("kind") + " of type string"),
    )?;
    let metadata = value.get("metadata");
    expect(metadata, "object", &field("metadata"))?;
    let name = metadata.and_then(|metadata| metadata.get("name"));
    expect(
        name,
        "string",
        &(field("metadata.name") + " of type string"),
    )?;
    let annotations = metadata.and_then(|metadata| metadata.get("annotations"));
    expect(annotations, "object", &field("metadata.annotations"))?;
    for annotation in annotations.and_then(Value::as_object).into_iter().flatten() {
        let what = field("metadata.annotations") + " of type string";
        expect(Some(annotation.1), "string", &what)?;
    }
    Ok(())
}

/// The documents of a text. A separator is `---` at the beginning of a line, whatever follows it.
/// White space around it belongs to it, so that of two in a row only the first one counts.
pub(crate) fn split(text: &str) -> Vec<&str> {
    let text = text.trim();
    let mut documents = Vec::new();
    let mut start = 0;
    let mut from = 0;
    while let Some(at) = text[from..].find("---").map(|at| at + from) {
        from = at + 3;
        let is_separator = at == 0 || (at > start && text.as_bytes()[at - 1] == b'\n');
        if is_separator {
            documents.push(text[start..at].trim());
            start = text.len() - text[from..].trim_start().len();
            from = start;
        }
    }
    documents.push(text[start..].trim());
    documents.retain(|document| !document.is_empty());
    documents
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_split_as_helm_splits_them() {
        assert_eq!(split("---\na: 1\n\n---  \nb: 2\n---\n"), ["a: 1", "b: 2"]);
        assert_eq!(split("a: 1\n---b: 2\n ---\n"), ["a: 1", "b: 2\n ---"]);
        assert_eq!(split("a: 1\n---\n\n---\n# c\n"), ["a: 1", "---\n# c"]);
    }

    #[test]
    fn kinds_are_sorted_and_hooks_taken_out() {
        let hook = "kind: Job\nmetadata: {name: j, annotations: {helm.sh/hook: 'pre-install, test-success', helm.sh/hook-weight: '-2'}}";
        let files = [
            ("c/a.yaml", "kind: Zoo\n---\nkind: Service\n---\nkind: Ape"),
            ("c/b.yaml", hook),
        ];
        let sorted = sort(files.into_iter()).unwrap();
        let kinds: Vec<&str> = sorted.manifests.iter().map(|m| m.kind.as_str()).collect();
        assert_eq!(kinds, ["Service", "Ape", "Zoo"]);
        assert_eq!(sorted.hooks[0].events, ["pre-install", "test"]);
        assert_eq!(sorted.hooks[0].weight, -2);
    }
}
