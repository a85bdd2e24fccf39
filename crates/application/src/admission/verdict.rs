//! Whether an application is accepted: what is wrong with it, before anything is stored.

use std::collections::BTreeSet;

use bellwether_api::oam::Application;
use bellwether_api::oam::names::{annotation, component_type};
use bellwether_go::duration::GoDuration;
use bellwether_workflow::spec::{self, SpecError};

use crate::appfile::{self, Appfile};
use crate::catalog::Catalog;
use crate::context::Target;
use crate::error::Class;
use crate::render::{Mode, render};
use crate::world::World;

/// Something that is wrong with an application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The field that it is about.
    pub field: String,
    /// What is wrong.
    pub detail: String,
    /// Whether it is about something that is not there, and may be created later.
    pub is_missing: bool,
}

fn violation(field: &str, detail: impl Into<String>) -> Violation {
    Violation {
        field: field.to_owned(),
        detail: detail.into(),
        is_missing: false,
    }
}

/// What is wrong with an application; nothing if it is accepted. Parameters may be missing, because overrides and steps
/// can still give them.
pub fn check(application: &Application, catalog: &Catalog, world: &World) -> Vec<Violation> {
    let mut violations = Vec::new();
    let annotations = application.metadata.annotations.as_ref();
    let text = |key: &str| annotations.and_then(|all| all.get(key)).map(String::as_str);
    let is_published = text(annotation::PUBLISH_VERSION).is_some_and(|version| !version.is_empty());
    if text(annotation::AUTO_UPDATE) == Some("true") && is_published {
        violations.push(violation(
            "metadata.annotations",
            format!(
                "{} and {} exclude each other",
                annotation::AUTO_UPDATE,
                annotation::PUBLISH_VERSION
            ),
        ));
    }
    check_steps(application, &mut violations);
    let mut names = BTreeSet::new();
    for (index, component) in application.spec.components.iter().enumerate() {
        if !names.insert(&component.name) {
            let field = format!("components[{index}].name");
            violations.push(violation(
                &field,
                format!("there are two components {:?}", component.name),
            ));
        }
    }
    match appfile::parse(application, catalog, world, 1) {
        Ok(appfile) => check_components(application, &appfile, &mut violations),
        Err(error) => violations.push(Violation {
            is_missing: error.class == Class::NotFound,
            ..violation("spec", error.message)
        }),
    }
    violations
}

fn check_steps(application: &Application, violations: &mut Vec<Violation>) {
    let Some(workflow) = &application.spec.workflow else {
        return;
    };
    let mut steps = workflow.steps.clone();
    appfile::name_steps(&mut steps);
    let mut names = BTreeSet::new();
    for step in steps
        .iter()
        .flat_map(|step| std::iter::once(&step.base).chain(&step.sub_steps))
    {
        if !names.insert(&step.name) {
            violations.push(violation(
                "spec.workflow.steps",
                format!("there are two steps {:?}", step.name),
            ));
        }
        if !step.timeout.is_empty() && !is_duration(&step.timeout) {
            violations.push(violation(
                "spec.workflow.steps.timeout",
                format!(
                    "step {}: {:?} is not a duration, such as 30s, 5m, 1h or 1d",
                    step.name, step.timeout
                ),
            ));
        }
    }
    let mode = workflow.mode.clone().unwrap_or_default();
    match spec::check(&steps, &mode) {
        // Names and timeouts are reported above, one by one.
        Ok(()) | Err(SpecError::DuplicateName(_) | SpecError::Timeout(_)) => {}
        Err(problem) => violations.push(violation("spec.workflow.steps", problem.to_string())),
    }
}

fn is_duration(text: &str) -> bool {
    let days = text
        .strip_suffix('d')
        .is_some_and(|days| days.parse::<u32>().is_ok());
    days || text.parse::<GoDuration>().is_ok()
}

fn check_components(
    application: &Application,
    appfile: &Appfile<'_>,
    violations: &mut Vec<Violation>,
) {
    for spec in &application.spec.components {
        if spec.component_type == component_type::REF_OBJECTS {
            continue;
        }
        let version = &appfile.world().hub_version;
        let checked = appfile.component(spec).and_then(|component| {
            render(
                &component,
                &appfile.context,
                &Target::default(),
                version,
                Mode::Check,
            )
        });
        if let Err(error) = checked {
            violations.push(violation("schematic", error.message));
        }
    }
}
