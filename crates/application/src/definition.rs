//! Definitions: types of components, traits, policies and steps, with their templates compiled.

use std::sync::{Arc, OnceLock};

use bellwether_api::Kind as _;
use bellwether_api::oam::{
    ComponentDefinition, PolicyDefinition, StatusTemplates, TraitDefinition, TraitStage,
    WorkflowStepDefinition,
};
use bellwether_cue::ast::{DeclKind, LabelKind};
use bellwether_cue::diagnostic::Diagnostic;
use bellwether_cue::host::Template;
use bellwether_cue::parser::parse_file;
use bellwether_json::path::str_at;
use serde_json::Value;

/// What a definition defines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DefinitionKind {
    /// Components.
    Component,
    /// Traits.
    Trait,
    /// Policies.
    Policy,
    /// Workflow steps.
    WorkflowStep,
}

impl DefinitionKind {
    /// All of them.
    pub const ALL: [Self; 4] = [
        Self::Component,
        Self::Trait,
        Self::Policy,
        Self::WorkflowStep,
    ];

    /// The kind of its objects.
    pub fn object_kind(self) -> &'static str {
        match self {
            Self::Component => "ComponentDefinition",
            Self::Trait => "TraitDefinition",
            Self::Policy => "PolicyDefinition",
            Self::WorkflowStep => "WorkflowStepDefinition",
        }
    }

    /// The resource of its objects.
    pub fn plural(self) -> &'static str {
        match self {
            Self::Component => ComponentDefinition::NAMES.plural,
            Self::Trait => TraitDefinition::NAMES.plural,
            Self::Policy => PolicyDefinition::NAMES.plural,
            Self::WorkflowStep => WorkflowStepDefinition::NAMES.plural,
        }
    }

    /// The word that definition files and people use.
    pub fn word(self) -> &'static str {
        match self {
            Self::Component => "component",
            Self::Trait => "trait",
            Self::Policy => "policy",
            Self::WorkflowStep => "workflow-step",
        }
    }

    /// The kind whose objects are called so.
    pub fn from_object_kind(kind: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|known| known.object_kind() == kind)
    }

    /// The kind that people call so.
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|known| known.word() == word)
    }
}

/// A definition that can be rendered.
#[derive(Debug)]
pub struct Definition {
    /// What it defines.
    pub kind: DefinitionKind,
    /// The name of the type, with the version if one was asked for.
    pub type_name: String,
    /// The whole object.
    pub object: Value,
    template: OnceLock<Result<CompiledTemplate, Vec<Diagnostic>>>,
    status: OnceLock<StatusSnippets>,
    content_hash: OnceLock<String>,
}

/// A template, and how its parameters are called.
#[derive(Debug, Clone)]
pub struct CompiledTemplate {
    /// The template with places for parameters and context.
    pub template: Template,
    /// `parameter`, or `parameters` where a template has only that.
    pub parameter: &'static str,
    /// Whether it may look at `context.output` or `context.outputs`.
    pub reads_outputs: bool,
}

/// The snippets that tell the state of objects, compiled.
#[derive(Debug, Default)]
pub struct StatusSnippets {
    /// Values by name.
    pub details: Option<Snippet>,
    /// Whether objects are healthy.
    pub health: Option<Snippet>,
    /// What a person should know.
    pub message: Option<Snippet>,
}

/// A compiled snippet, or what is wrong with it.
pub type Snippet = Result<Template, Vec<Diagnostic>>;

impl Definition {
    /// Reads a definition; nothing is compiled yet.
    pub fn new(kind: DefinitionKind, type_name: impl Into<String>, object: Value) -> Arc<Self> {
        Arc::new(Self {
            kind,
            type_name: type_name.into(),
            object,
            template: OnceLock::new(),
            status: OnceLock::new(),
            content_hash: OnceLock::new(),
        })
    }

    /// The source of its template; `None` if it has none.
    pub fn source(&self) -> Option<&str> {
        str_at(&self.object, &["spec", "schematic", "cue", "template"])
            .or_else(|| str_at(&self.object, &["spec", "extension", "template"]))
    }

    /// Its template, compiled the first time.
    pub fn template(&self) -> Result<&CompiledTemplate, &[Diagnostic]> {
        self.template
            .get_or_init(|| compile(&self.type_name, self.source().unwrap_or_default()))
            .as_ref()
            .map_err(Vec::as_slice)
    }

    /// Its snippets, compiled the first time.
    pub fn status(&self) -> &StatusSnippets {
        self.status.get_or_init(|| {
            let templates = self
                .object
                .pointer("/spec/status")
                .cloned()
                .unwrap_or_default();
            let templates: StatusTemplates = serde_json::from_value(templates).unwrap_or_default();
            StatusSnippets {
                details: snippet(&templates.details),
                health: snippet(&templates.health_policy),
                message: snippet(&templates.custom_status),
            }
        })
    }

    /// What identifies the definition as it is written, made the first time.
    pub fn content_hash(&self) -> &str {
        self.content_hash.get_or_init(|| {
            crate::revision::hash(&(
                self.kind.object_kind(),
                self.object_name(),
                &self.object["spec"],
            ))
        })
    }

    /// When objects of a trait are applied.
    pub fn stage(&self) -> TraitStage {
        str_at(&self.object, &["spec", "stage"]).map_or(TraitStage::DefaultDispatch, |text| {
            TraitStage::from(text.to_owned())
        })
    }

    /// A setting of the spec that is on or off.
    pub fn flag(&self, name: &str) -> bool {
        self.object["spec"][name].as_bool().unwrap_or_default()
    }

    /// Where objects of a trait get a reference to the workload.
    pub fn workload_ref_path(&self) -> Option<&str> {
        str_at(&self.object, &["spec", "workloadRefPath"]).filter(|path| !path.is_empty())
    }

    /// Group and version, and kind, that a component says its output has; empty if it depends.
    pub fn workload_kind(&self) -> (String, String) {
        let definition = |field| str_at(&self.object, &["spec", "workload", "definition", field]);
        let text = |field| definition(field).unwrap_or_default().to_owned();
        (text("apiVersion"), text("kind"))
    }

    /// The name of its object.
    pub fn object_name(&self) -> &str {
        str_at(&self.object, &["metadata", "name"]).unwrap_or(&self.type_name)
    }
}

fn snippet(source: &str) -> Option<Snippet> {
    if source.trim().is_empty() {
        return None;
    }
    let source = format!("{source}\ncontext: _\nparameter: _\n");
    Some(Template::compile_files(&[("status", &source)], &[]))
}

/// Compiles a template with places for what is filled in. Templates of old definitions have their parameters
/// in `parameters`; where there is no `parameter`, that is taken.
/// What `apiVersion` and `kind` are is text, also without quotes, as the first definitions of policies were written.
pub fn compile(name: &str, source: &str) -> Result<CompiledTemplate, Vec<Diagnostic>> {
    let parameter = parameter_name(source);
    let compile = |source: &str| {
        let whole = format!("{source}\ncontext: _\n{parameter}: _\n");
        Template::compile_files(&[(name, &whole)], &[])
    };
    let template = match (compile(source), quoted_kinds(source)) {
        (Err(problems), Some(quoted)) => compile(&quoted).map_err(|_| problems)?,
        (compiled, _) => compiled?,
    };
    Ok(CompiledTemplate {
        template,
        parameter,
        reads_outputs: reads_outputs(source),
    })
}

/// Whether a template may look at what was rendered before. It does not if each `context` in it is followed by the name of another
/// field.
fn reads_outputs(source: &str) -> bool {
    let is_part = |letter: char| letter.is_alphanumeric() || "_$#".contains(letter);
    source.match_indices("context").any(|(at, found)| {
        let (before, after) = (&source[..at], &source[at + found.len()..]);
        if before.ends_with(is_part) || after.starts_with(is_part) {
            return false;
        }
        let Some(field) = after.strip_prefix('.') else {
            return true;
        };
        let end = field.find(|letter| !is_part(letter));
        let field = &field[..end.unwrap_or(field.len())];
        field.is_empty() || field == "output" || field == "outputs"
    })
}

/// The source with quotes around values of `apiVersion` and `kind` that are bare words; none if there are none.
fn quoted_kinds(source: &str) -> Option<String> {
    let is_kind = |text: &str| {
        text.starts_with(|first: char| first.is_ascii_uppercase())
            && text.chars().all(|letter| letter.is_ascii_alphanumeric())
    };
    let is_version = |text: &str| {
        let (group, version) = text.rsplit_once('/').unwrap_or_default();
        let is_part = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
        group
            .chars()
            .all(|letter| is_part(letter) || ".-".contains(letter))
            && version.starts_with('v')
            && version.chars().all(is_part)
    };
    let mut found = false;
    let lines: Vec<String> = source
        .lines()
        .map(|line| {
            let (field, value) = line.split_once(':').unwrap_or_default();
            let value = value.trim();
            let is_bare = match field.trim() {
                "apiVersion" => is_version(value),
                "kind" => is_kind(value),
                _ => false,
            };
            found |= is_bare;
            if is_bare {
                format!("{field}: {value:?}")
            } else {
                line.to_owned()
            }
        })
        .collect();
    found.then(|| lines.join("\n"))
}

/// How a template calls its parameters.
fn parameter_name(source: &str) -> &'static str {
    if !source.contains("parameters") {
        return "parameter";
    }
    let (file, _) = parse_file("-", source);
    let declares = |name: &str| {
        file.decls.iter().any(|decl| match &decl.kind {
            DeclKind::Field(field) => match &field.label.kind {
                LabelKind::Ident(label) | LabelKind::String(label) => **label == *name,
                _ => false,
            },
            _ => false,
        })
    };
    if declares("parameters") && !declares("parameter") {
        "parameters"
    } else {
        "parameter"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_without_quotes_are_text() {
        let source = "parameters: {\n\tfrequency: *\"enabled\" | \"disabled\"\n}\noutput: {\n\tapiVersion: app.oam.dev/v1\n\tkind: Insight\n\tspec:\n\t\tfrequency: parameters.frequency\n}";
        let compiled = compile("insight", source).unwrap();
        assert_eq!(compiled.parameter, "parameters");
        let mut evaluation = compiled
            .template
            .evaluate(bellwether_cue::host::Budget::default());
        let root = evaluation.root();
        let output = evaluation.lookup(root, "output").unwrap();
        let expected = serde_json::json!({"apiVersion": "app.oam.dev/v1", "kind": "Insight", "spec": {"frequency": "enabled"}});
        assert_eq!(evaluation.export_json(output).unwrap(), expected);
        assert!(compile("x", "output: {\n\tkind: nowhere.kind\n}").is_err());
        assert!(compile("x", "output: {\n\tkind: Some\n\tname: nowhere\n}").is_err());
    }

    #[test]
    fn templates_that_look_at_what_was_rendered_are_known() {
        for (source, expected) in [
            ("patch: spec: replicas: parameter.n", false),
            (
                "patch: name: \"\\(context.name)-\\(context.appName)\"",
                false,
            ),
            ("patch: a: mycontext.output, b: contexts.x", false),
            ("if context.output.spec != _|_ {patch: {}}", true),
            ("for o in context.outputs {patch: {}}", true),
            ("let c = context\npatch: c.output", true),
            ("patch: context[\"output\"]", true),
            ("context: {name: string}", true),
        ] {
            assert_eq!(reads_outputs(source), expected, "{source}");
        }
    }
}
