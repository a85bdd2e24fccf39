//! How components and traits fare, as the snippets of their definitions tell it.
//!
//! A snippet sees `context` with the live objects, and `parameter`. Details come first, then health, which
//! sees them as `context.status.details`, then the message, which sees health too. A snippet with a contradiction, or
//! with an undecided `if` at its top, tells nothing: health is false then, and the message empty.

use std::collections::BTreeMap;

use bellwether_api::oam::{ComponentService, ServiceTrait, WorkloadKind};
use bellwether_cue::bridge::from_json;
use bellwether_cue::host::{Budget, Evaluation, FieldOptions, SyntaxOptions, Template};
use bellwether_cue::value::Value as CueValue;
use bellwether_json::path::str_at;
use serde_json::{Value, json};

use crate::appfile::Appfile;
use crate::context::{field, status_context};
use crate::definition::{Definition, Snippet};
use crate::deliver::Delivered;
use crate::error::RenderError;
use crate::label::Manifest;

/// Labels of details this long are not shown.
const LONG_LABEL: usize = 32;

/// What snippets tell of objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Whether they are healthy; true if no snippet says otherwise.
    pub healthy: bool,
    /// What a person should know.
    pub message: String,
    /// Values by name.
    pub details: BTreeMap<String, String>,
}

/// Asks the snippets of a definition. `context` has the live objects.
pub fn judge(definition: &Definition, context: &Value, parameter: &Value) -> Verdict {
    let status = definition.status();
    let parameter = from_json(parameter);
    let mut fields = match from_json(context) {
        CueValue::Struct(fields) => fields.to_vec(),
        _ => Vec::new(),
    };
    let mut verdict = Verdict {
        healthy: true,
        message: String::new(),
        details: BTreeMap::new(),
    };
    let mut details = CueValue::structure([]);
    if let Some(Ok(template)) = &status.details {
        let context = CueValue::structure(fields.iter().cloned());
        (verdict.details, details) = tell_details(template, context, &parameter);
    }
    let with_status = |state: Vec<_>| {
        let mut fields = fields.clone();
        fields.retain(|(name, _)| &**name != "status");
        fields.push(field("status", CueValue::structure(state)));
        CueValue::structure(fields)
    };
    if let Some(snippet) = &status.health {
        let context = with_status(vec![field("details", details.clone())]);
        let told = ask(snippet, context, &parameter, "isHealth");
        verdict.healthy = matches!(told, Some(CueValue::Bool(true)));
    }
    if let Some(snippet) = &status.message {
        let state = vec![
            field("healthy", CueValue::Bool(verdict.healthy)),
            field("details", details),
        ];
        if let Some(CueValue::String(text)) =
            ask(snippet, with_status(state), &parameter, "message")
        {
            verdict.message = text.to_string();
        }
    }
    fields.clear();
    verdict
}

fn start(template: &Template, context: CueValue, parameter: &CueValue) -> Evaluation {
    let mut evaluation = template.evaluate(Budget::default());
    evaluation.fill(&["context"], context);
    evaluation.fill(&["parameter"], parameter.clone());
    evaluation
}

/// The value of a field, unless the snippet as a whole cannot be evaluated.
fn ask(snippet: &Snippet, context: CueValue, parameter: &CueValue, name: &str) -> Option<CueValue> {
    let template = snippet.as_ref().ok()?;
    let mut evaluation = start(template, context, parameter);
    let root = evaluation.root();
    if !evaluation.validate(root).is_empty() {
        return None;
    }
    let is_about_whole = |problem: &bellwether_cue::diagnostic::Diagnostic| problem.path.is_empty();
    if evaluation
        .validate_concrete(root)
        .iter()
        .any(is_about_whole)
    {
        return None;
    }
    let value = evaluation.lookup(root, name)?;
    evaluation.export(value).ok()
}

/// The details for people, and those that later snippets see.
fn tell_details(
    template: &Template,
    context: CueValue,
    parameter: &CueValue,
) -> (BTreeMap<String, String>, CueValue) {
    let mut evaluation = start(template, context, parameter);
    let root = evaluation.root();
    let mut shown = BTreeMap::new();
    let mut values = Vec::new();
    for entry in evaluation.fields(root, FieldOptions::default()) {
        if ["context", "parameter"].contains(&&*entry.name) {
            continue;
        }
        let exported = evaluation.export(entry.value);
        if let Ok(value) = &exported {
            values.push((entry.name.clone(), value.clone()));
        }
        let metas = evaluation.metas(entry.value);
        let mut attributes = metas.iter().flat_map(|meta| &meta.attributes);
        let is_hidden = entry.name.starts_with('$')
            || attributes.any(|attribute| ["local", "private"].contains(&attribute.name()));
        if is_hidden || entry.name.len() >= LONG_LABEL {
            continue;
        }
        let text = match exported {
            Ok(CueValue::String(text)) => text.to_string(),
            Ok(_) => {
                let source = evaluation.source(entry.value, SyntaxOptions::default());
                source.map_or_else(|_| "_|_".to_owned(), |source| source.trim_end().to_owned())
            }
            Err(_) => "_|_".to_owned(),
        };
        shown.insert(entry.name.to_string(), text);
    }
    (shown, CueValue::structure(values))
}

/// Why the state of a component cannot be told: an object of it does not exist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("component {component}: {kind} {namespace}/{name} does not exist")]
pub struct Missing {
    /// The component.
    pub component: String,
    /// Kind of the object.
    pub kind: String,
    /// Namespace of the object.
    pub namespace: String,
    /// Name of the object.
    pub name: String,
}

/// Where a component stands on its cluster. `live` finds objects there.
pub fn service<'a>(
    appfile: &Appfile<'_>,
    delivered: &Delivered,
    live: &dyn Fn(&Manifest) -> Option<&'a Value>,
) -> Result<ComponentService, ServiceError> {
    let component = appfile.component(&delivered.placed.component)?;
    let target = &delivered.placed.target;
    let own = |manifest: &&Manifest| manifest.trait_type.is_empty();
    let workload = delivered.manifests.iter().find(own);
    let mut context = status_context(&appfile.context, &component.spec.name);
    if let Some(manifest) = workload {
        context["output"] = found(manifest, live)?.clone();
    }
    let auxiliary = bellwether_api::oam::names::label::AUXILIARY;
    add_outputs(&mut context, delivered, auxiliary, live)?;
    let parameter = component
        .spec
        .properties
        .clone()
        .unwrap_or_else(|| json!({}));
    let verdict = judge(&component.definition, &context, &parameter);
    let (api_version, kind) = component.definition.workload_kind();
    let mut service = ComponentService {
        name: component.spec.name.clone(),
        namespace: if target.namespace.is_empty() {
            appfile.context.namespace.clone()
        } else {
            target.namespace.clone()
        },
        cluster: target.cluster.clone(),
        workload_definition: Some(WorkloadKind {
            api_version,
            kind,
            ..WorkloadKind::default()
        }),
        healthy: verdict.healthy,
        workload_healthy: verdict.healthy,
        details: verdict.details,
        message: verdict.message,
        ..ComponentService::default()
    };
    for applied in &component.traits {
        let trait_type = applied.definition.type_name.clone();
        let mut context = status_context(&appfile.context, &component.spec.name);
        add_outputs(&mut context, delivered, &trait_type, live)?;
        let parameter = applied.properties.clone().unwrap_or_else(|| json!({}));
        let verdict = judge(&applied.definition, &context, &parameter);
        service.healthy &= verdict.healthy;
        if service.message.is_empty() {
            service.message.clone_from(&verdict.message);
        }
        service.traits.push(ServiceTrait {
            trait_type,
            healthy: verdict.healthy,
            details: verdict.details,
            message: verdict.message,
            ..ServiceTrait::default()
        });
    }
    Ok(service)
}

/// Why the state of a component cannot be told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ServiceError {
    /// An object does not exist.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// A definition does not exist.
    #[error(transparent)]
    Render(#[from] RenderError),
}

fn add_outputs<'a>(
    context: &mut Value,
    delivered: &Delivered,
    trait_type: &str,
    live: &dyn Fn(&Manifest) -> Option<&'a Value>,
) -> Result<(), Missing> {
    for manifest in delivered
        .manifests
        .iter()
        .filter(|manifest| manifest.trait_type == trait_type)
    {
        context["outputs"][&manifest.resource] = found(manifest, live)?.clone();
    }
    Ok(())
}

fn found<'a>(
    manifest: &Manifest,
    live: &dyn Fn(&Manifest) -> Option<&'a Value>,
) -> Result<&'a Value, Missing> {
    live(manifest).ok_or_else(|| {
        let text = |path: &[&str]| {
            str_at(&manifest.object, path)
                .unwrap_or_default()
                .to_owned()
        };
        Missing {
            component: manifest.component.clone(),
            kind: text(&["kind"]),
            namespace: text(&["metadata", "namespace"]),
            name: text(&["metadata", "name"]),
        }
    })
}
