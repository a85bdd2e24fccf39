//! Whether a definition is accepted: its template compiles, and it says what it has to.

use bellwether_api::Kind as _;
use bellwether_api::admission::{ObjectId, Review};
use bellwether_api::oam::names::annotation;
use bellwether_api::oam::{DefinitionRevision, GROUP};
use bellwether_cue::diagnostic::Diagnostic;
use bellwether_json::path::str_at;
use serde_json::Value;

use super::Violation;
use crate::catalog::revised;
use crate::definition::{Definition, DefinitionKind, compile};
use crate::definition_revision::{content, named};

/// The type of workloads of which nothing is known before they are rendered.
const AUTODETECT: &str = "autodetects.core.oam.dev";

/// Where the template is.
const TEMPLATE: &str = "spec.schematic.cue.template";

fn violation(field: &str, detail: impl Into<String>) -> Violation {
    Violation {
        field: field.to_owned(),
        detail: detail.into(),
        is_missing: false,
    }
}

/// Fills in which resource the output of a component is.
pub fn complete(object: &mut Value) {
    let workload = &object["spec"]["workload"];
    if str_at(workload, &["type"]).is_some_and(|text| !text.is_empty())
        || !object["spec"].is_object()
    {
        return;
    }
    let resource = match str_at(workload, &["definition", "kind"]) {
        None | Some("") => Some(AUTODETECT.to_owned()),
        Some(_) => resource_of(workload),
    };
    if let Some(resource) = resource {
        object["spec"]["workload"]["type"] = resource.into();
    }
}

/// The resource of a built-in kind, such as `deployments.apps`.
fn resource_of(workload: &Value) -> Option<String> {
    let api_version = str_at(workload, &["definition", "apiVersion"])?;
    let kind = str_at(workload, &["definition", "kind"])?;
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let known = bellwether_kinds::resources()
        .iter()
        .find(|known| known.group == group && known.kind == kind)?;
    Some(if group.is_empty() {
        known.plural.to_owned()
    } else {
        format!("{}.{group}", known.plural)
    })
}

/// What is wrong with a definition; nothing if it is accepted.
pub fn check(kind: DefinitionKind, review: &Review<'_>, object: &Value) -> Vec<Violation> {
    let name = str_at(object, &["metadata", "name"]).unwrap_or_default();
    let definition = Definition::new(kind, name, object.clone());
    let mut violations = Vec::new();
    if kind == DefinitionKind::Component {
        violations.extend(check_workload(&object["spec"]["workload"]));
    }
    let broken = check_template(&definition);
    // A step whose template cannot be compiled fails with the same words whenever it is carried out.
    if kind == DefinitionKind::WorkflowStep && !review.is_strict {
        if let Some(it) = broken {
            review.warn(format!("{:?}: {}", it.field, it.detail));
        }
    } else {
        violations.extend(broken);
    }
    check_snippets(&definition, &mut violations);
    violations.extend(check_version(kind, review, object));
    violations
}

fn check_workload(workload: &Value) -> Option<Violation> {
    let given = str_at(workload, &["type"]).unwrap_or_default();
    let has_definition =
        str_at(workload, &["definition", "kind"]).is_some_and(|kind| !kind.is_empty());
    if given.is_empty() && !has_definition {
        let detail = format!(
            "neither type nor definition is set; set type, such as deployments.apps, or {AUTODETECT} if it depends on parameters"
        );
        return Some(violation("spec.workload", detail));
    }
    let meant = resource_of(workload)?;
    (!given.is_empty() && given != AUTODETECT && given != meant).then(|| {
        let detail =
            format!("type is {given:?}, but definition is about {meant:?}; set one of them only");
        violation("spec.workload", detail)
    })
}

/// What is wrong, with the place and what to do about it.
fn explain(field: &str, problems: &[Diagnostic]) -> Violation {
    let lines = problems.iter().map(|problem| match &problem.location {
        Some(location) => format!("{location}: {problem}"),
        None => problem.to_string(),
    });
    let lines: Vec<String> = lines.collect();
    let detail = format!(
        "{}; correct the template, and check it with `bellwether def vet`",
        lines.join("; ")
    );
    violation(field, detail)
}

fn check_template(definition: &Definition) -> Option<Violation> {
    let Some(source) = definition.source() else {
        let has_reference = str_at(&definition.object, &["spec", "definitionRef", "name"])
            .is_some_and(|name| !name.is_empty());
        let is_missing = definition.kind == DefinitionKind::Trait && !has_reference;
        return is_missing.then(|| {
            let detail =
                "there is no template; write one, or name a resource in spec.definitionRef";
            violation(TEMPLATE, detail)
        });
    };
    let problems = match definition.kind {
        DefinitionKind::WorkflowStep => bellwether_workflow::definition::check(source).err(),
        _ => compile(TEMPLATE, source).err(),
    };
    problems.map(|problems| explain(TEMPLATE, &problems))
}

fn check_snippets(definition: &Definition, violations: &mut Vec<Violation>) {
    let status = definition.status();
    let snippets = [
        ("spec.status.details", &status.details),
        ("spec.status.healthPolicy", &status.health),
        ("spec.status.customStatus", &status.message),
    ];
    for (field, snippet) in snippets {
        if let Some(Err(problems)) = snippet {
            violations.push(explain(field, problems));
        }
    }
}

/// A revision that has a name of its own stays as it is.
fn check_version(kind: DefinitionKind, review: &Review<'_>, object: &Value) -> Option<Violation> {
    let version = str_at(object, &["spec", "version"]).unwrap_or_default();
    let annotated = str_at(
        object,
        &["metadata", "annotations", annotation::REVISION_NAME],
    );
    let is_version = |text: &str| {
        let parts: Vec<&str> = text.split('.').collect();
        parts.len() == 3 && parts.iter().all(|part| part.parse::<u64>().is_ok())
    };
    if !version.is_empty() && !is_version(version) {
        let detail = format!("{version:?} is not a version of three numbers, such as 1.2.0");
        return Some(violation("spec.version", detail));
    }
    if !version.is_empty() && annotated.is_some_and(|name| !name.is_empty()) {
        let detail = format!(
            "version and the annotation {} exclude each other",
            annotation::REVISION_NAME
        );
        return Some(violation("spec.version", detail));
    }
    let name = named(object)?;
    let id = ObjectId {
        group: GROUP,
        version: DefinitionRevision::NAMES.version,
        resource: DefinitionRevision::NAMES.plural,
        namespace: review.namespace,
        name: &name,
    };
    let known = review.facts.get(&id)?;
    let (known_kind, known) = revised(&known)?;
    (known_kind == kind && content(known) != content(object)).then(|| {
        let detail = format!(
            "revision {name} exists and has another spec; revisions stay as they are, so give this one a new version"
        );
        violation("spec", detail)
    })
}
