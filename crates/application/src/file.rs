//! Definition files: a definition as its author writes it, in CUE.
//!
//! ```cue
//! import "strings"
//!
//! "my-type": {
//!     type: "component"
//!     description: "What it is for."
//!     attributes: workload: type: "deployments.apps"
//! }
//! template: {
//!     output: {…}
//!     parameter: {…}
//! }
//! ```
//!
//! The first field is named after the type. `attributes` is the spec of the definition; `template` becomes its
//! template, together with the imports.

use bellwether_api::oam::names::annotation;
use bellwether_cue::ast::{Decl, DeclKind, ExprKind, File, LabelKind};
use bellwether_cue::diagnostic::Diagnostic;
use bellwether_cue::host::{Budget, Template};
use bellwether_cue::parser::parse_file;
use serde_json::{Map, Value, json};

use crate::attributes;
use crate::definition::{DefinitionKind, compile};

/// The namespace of definitions for all namespaces.
pub use bellwether_api::workflow::names::SYSTEM_NAMESPACE;

/// The field with the template.
const TEMPLATE: &str = "template";

/// What is wrong with a definition file.
#[derive(Debug, Clone, thiserror::Error)]
pub enum FileError {
    /// The source is no CUE, or does not evaluate.
    #[error("{}", list(.0))]
    Cue(Vec<Diagnostic>),
    /// The file is not laid out as definitions are.
    #[error("{0}")]
    Layout(String),
}

fn list(problems: &[Diagnostic]) -> String {
    let lines = problems.iter().map(|problem| match &problem.location {
        Some(location) => format!("{location}: {problem}"),
        None => problem.to_string(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Reads a definition file. The result is the object that a server gets; its template compiles, unless it is
/// that of a workflow step.
pub fn parse(name: &str, source: &str) -> Result<Value, FileError> {
    let (file, problems) = parse_file(name, source);
    if !problems.is_empty() {
        return Err(FileError::Cue(problems));
    }
    let (type_name, header, template) = parts(&file, source)?;
    let header = evaluate(name, &header, &type_name)?;
    let object = object(&type_name, &header, &template)?;
    // Steps import packages of the workflow engine, which compiles them.
    if object["kind"] != DefinitionKind::WorkflowStep.object_kind() {
        compile(&type_name, &template).map_err(FileError::Cue)?;
    }
    Ok(object)
}

/// The name of the type, the source of the header, and that of the template.
fn parts(file: &File, source: &str) -> Result<(String, String, String), FileError> {
    let mut type_name = None;
    let mut header = String::new();
    let mut template = None;
    for decl in &file.decls {
        let label = label(decl);
        if label == Some(TEMPLATE) {
            template = Some(template_source(file, decl, source));
            continue;
        }
        if let Some(label) = label
            && type_name.is_none()
        {
            type_name = Some(label.to_owned());
        }
        header.push_str(decl.span.text(source));
        header.push('\n');
    }
    let layout = |message: &str| FileError::Layout(message.to_owned());
    let type_name = type_name.ok_or_else(|| {
        layout("no field is named after the type; begin with NAME: {type: \"component\", …}")
    })?;
    let template = template.ok_or_else(|| layout("the field template is missing"))?;
    Ok((type_name, header, template))
}

fn label(decl: &Decl) -> Option<&str> {
    match &decl.kind {
        DeclKind::Field(field) => match &field.label.kind {
            LabelKind::Ident(name) | LabelKind::String(name) => Some(name),
            _ => None,
        },
        _ => None,
    }
}

/// The body of the template with the imports before it.
fn template_source(file: &File, decl: &Decl, source: &str) -> String {
    let mut text = String::new();
    for import in &file.imports {
        text.push_str(import.span.text(source));
        text.push('\n');
    }
    if let DeclKind::Field(field) = &decl.kind {
        let body = field.value.span.text(source);
        let inner = match &field.value.kind {
            ExprKind::Struct(literal) if literal.braces => body
                .strip_prefix('{')
                .and_then(|body| body.strip_suffix('}'))
                .unwrap_or(body),
            _ => body,
        };
        text.push_str(&dedent(inner));
    }
    text
}

/// The text with one level of indentation less.
fn dedent(text: &str) -> String {
    let lines = text.trim_matches('\n').lines();
    let lines = lines.map(|line| line.strip_prefix('\t').unwrap_or(line));
    let mut text = lines.collect::<Vec<_>>().join("\n");
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}

fn evaluate(name: &str, header: &str, type_name: &str) -> Result<Value, FileError> {
    let template = Template::compile_files(&[(name, header)], &[]).map_err(FileError::Cue)?;
    let mut evaluation = template.evaluate(Budget::default());
    let root = evaluation.root();
    let problems = evaluation.validate_concrete(root);
    if !problems.is_empty() {
        return Err(FileError::Cue(problems));
    }
    let exported = evaluation
        .export_json(root)
        .map_err(|problem| FileError::Cue(vec![problem]))?;
    Ok(exported.get(type_name).cloned().unwrap_or_default())
}

fn object(type_name: &str, header: &Value, template: &str) -> Result<Value, FileError> {
    let word = header["type"].as_str().unwrap_or_default();
    let kind = DefinitionKind::from_word(word).ok_or_else(|| {
        FileError::Layout(format!(
            "{type_name}: type {word:?} is none of component, trait, policy and workflow-step"
        ))
    })?;
    let mut annotations = marked(&header["annotations"]);
    for (field, key) in [
        ("description", annotation::DESCRIPTION),
        ("alias", annotation::ALIAS),
    ] {
        if let Some(text) = header[field].as_str().filter(|text| !text.is_empty()) {
            annotations.insert(key.to_owned(), text.into());
        }
    }
    let mut metadata = json!({
        "name": type_name,
        "namespace": SYSTEM_NAMESPACE,
        "annotations": annotations,
    });
    let labels = marked(&header["labels"]);
    if !labels.is_empty() {
        metadata["labels"] = labels.into();
    }
    let mut spec = match &header["attributes"] {
        Value::Object(attributes) => attributes.clone(),
        Value::Null => Map::new(),
        other => {
            return Err(FileError::Layout(format!(
                "{type_name}: attributes has to be a struct, and is {other}"
            )));
        }
    };
    let problems = attributes::problems(kind, "attributes", &Value::Object(spec.clone()));
    if !problems.is_empty() {
        return Err(FileError::Layout(format!(
            "{type_name}: {}",
            problems.join(", ")
        )));
    }
    spec.insert(
        "schematic".to_owned(),
        json!({"cue": {"template": template}}),
    );
    Ok(json!({
        "apiVersion": "core.oam.dev/v1beta1",
        "kind": kind.object_kind(),
        "metadata": metadata,
        "spec": spec,
    }))
}

/// Annotations and labels of the header; keys without a domain of ours get one.
fn marked(entries: &Value) -> Map<String, Value> {
    let entries = entries.as_object().into_iter().flatten();
    let named = entries.map(|(key, value)| {
        let key = if key.contains("oam.dev") {
            key.clone()
        } else {
            format!("{}{key}", annotation::CUSTOM_PREFIX)
        };
        (key, value.clone())
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "import \"strings\"\n\n\"my-type\": {\n\ttype: \"trait\"\n\tdescription: \"Says hello.\"\n\tannotations: group: \"x\"\n\tattributes: podDisruptive: true\n}\ntemplate: {\n\tpatch: metadata: name: strings.ToLower(parameter.name)\n\tparameter: name: string\n}\n";

    #[test]
    fn files_become_objects() {
        let object = parse("my.cue", FILE).unwrap();
        assert_eq!(object["kind"], "TraitDefinition");
        assert_eq!(object["metadata"]["name"], "my-type");
        assert_eq!(object["spec"]["podDisruptive"], true);
        assert_eq!(
            object["metadata"]["annotations"],
            json!({"definition.oam.dev/description": "Says hello.", "custom.definition.oam.dev/group": "x"}),
        );
        assert_eq!(
            object["spec"]["schematic"]["cue"]["template"],
            "import \"strings\"\npatch: metadata: name: strings.ToLower(parameter.name)\nparameter: name: string\n",
        );
    }

    #[track_caller]
    fn check_refused(source: &str, message: &str) {
        let error = parse("my.cue", source).unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        check_refused("x: {type: \"trait\"}\n", "template is missing");
        check_refused("x: {type: \"thing\"}\ntemplate: {}\n", "none of component");
        check_refused("template: {}\n", "named after the type");
        check_refused(
            "x: {type: \"trait\", attributes: appliesToWorkload: [\"*\"]}\ntemplate: {}\n",
            "x: attributes.appliesToWorkload is not a field of TraitDefinition",
        );
        check_refused(
            "x: {type: \"trait\", attributes: 1}\ntemplate: {}\n",
            "attributes has to be a struct",
        );
        check_refused("x: {\n", "my.cue:");
        check_refused(
            "x: {type: \"trait\"}\ntemplate: {patch: nowhere.x\nparameter: {}}\n",
            "nowhere",
        );
    }
}
