//! Which applications and definitions are refused when they are written, and what is completed.
//!
//! | module | what it does |
//! |---|---|
//! | [`verdict`] | what is wrong with an application |
//! | [`definitions`] | what is wrong with a definition |
//! | [`immutable`] | which parameters an update must not change |
//! | `lookup` | fetches what an application refers to |
//! | `advice` | warnings about what has no effect |

mod advice;
pub mod definitions;
pub mod immutable;
mod lookup;
pub mod verdict;

pub use verdict::{Violation, check};

use bellwether_api::Kind as _;
use bellwether_api::admission::{Admission, Denial, Operation, Review, Rule};
use bellwether_api::oam::names::annotation;
use bellwether_api::oam::{
    Application, ComponentDefinition, GROUP, PolicyDefinition, TraitDefinition,
    WorkflowStepDefinition,
};
use bellwether_api::workflow::{StepStage, WorkflowStep};
use serde_json::{Value, json};

use crate::appfile::name_steps;
use crate::definition::DefinitionKind;
use lookup::Lookup;

const APPLICATIONS: &str = Application::NAMES.plural;
const COMPONENTS: &str = ComponentDefinition::NAMES.plural;

/// The rules of applications and definitions.
#[derive(Debug, Default)]
pub struct ApplicationAdmission {
    lookup: Lookup,
}

impl Admission for ApplicationAdmission {
    fn name(&self) -> &'static str {
        "application"
    }

    fn rules(&self) -> &'static [Rule] {
        const RULES: &[Rule] = &[Rule {
            group: GROUP,
            resources: &[
                APPLICATIONS,
                COMPONENTS,
                TraitDefinition::NAMES.plural,
                PolicyDefinition::NAMES.plural,
                WorkflowStepDefinition::NAMES.plural,
            ],
            operations: &[Operation::Create, Operation::Update],
            condition: None,
        }];
        RULES
    }

    fn mutations(&self) -> &'static [Rule] {
        const MUTATIONS: &[Rule] = &[Rule {
            group: GROUP,
            resources: &[APPLICATIONS, COMPONENTS],
            operations: &[Operation::Create, Operation::Update],
            condition: None,
        }];
        MUTATIONS
    }

    fn mutate(&self, review: &Review<'_>, object: &mut Value) -> Result<(), Denial> {
        match review.resource {
            APPLICATIONS => complete_steps(object),
            COMPONENTS => definitions::complete(object),
            _ => {}
        }
        Ok(())
    }

    fn validate(&self, review: &Review<'_>, object: &Value) -> Result<(), Denial> {
        // Anyone who lets go of an object that is being deleted is not asked what was in it.
        if object["metadata"]["deletionTimestamp"].is_string() || !is_news(review, object) {
            return Ok(());
        }
        let violations = if review.resource == APPLICATIONS {
            self.check_application(review, object)
        } else {
            let kinds = DefinitionKind::ALL;
            let kind = kinds
                .into_iter()
                .find(|kind| kind.plural() == review.resource);
            kind.map_or_else(Vec::new, |kind| definitions::check(kind, review, object))
        };
        match violations.as_slice() {
            [] => Ok(()),
            violations => Err(Denial::BadRequest(list(violations))),
        }
    }
}

impl ApplicationAdmission {
    /// What an application is refused for. What it refers to and is not there is a warning.
    fn check_application(&self, review: &Review<'_>, object: &Value) -> Vec<Violation> {
        let mut object = object.clone();
        object["metadata"]["namespace"] = review.namespace.into();
        let application: Application = match serde_json::from_value(object) {
            Ok(application) => application,
            Err(error) => {
                return vec![Violation {
                    field: "spec".to_owned(),
                    detail: error.to_string(),
                    is_missing: false,
                }];
            }
        };
        let found = self.lookup.of(&application, review.facts);
        let mut violations = check(&found.application, &found.catalog, &found.world);
        violations.extend(found.forbidden);
        if let Some(old) = review.old {
            violations.extend(immutable::check(old, &application, &found.catalog));
        }
        // What an application refers to may be created after it: its conditions say what it waits for.
        let (missing, violations): (Vec<_>, Vec<_>) =
            violations.into_iter().partition(|found| found.is_missing);
        for found in &missing {
            review.warn(found.detail.clone());
        }
        if violations.is_empty() && missing.is_empty() {
            for advice in advice::of(&found.application, &found.catalog, &found.world) {
                review.warn(advice);
            }
        }
        violations
    }
}

/// Annotations that the rules are about.
const ANNOTATIONS: [&str; 3] = [
    annotation::AUTO_UPDATE,
    annotation::FORCE_PARAM_MUTATIONS,
    annotation::PUBLISH_VERSION,
];

/// Whether anything changed that the rules are about. Anyone who adds a finalizer or a note to an application is not asked whether
/// its definitions still exist.
fn is_news(review: &Review<'_>, object: &Value) -> bool {
    let annotations = |object: &Value| {
        let all = &object["metadata"]["annotations"];
        match review.resource {
            APPLICATIONS => ANNOTATIONS.map(|key| all[key].clone()).to_vec(),
            _ => vec![all.clone()],
        }
    };
    let part = |object: &Value| (object["spec"].clone(), annotations(object));
    review.old.is_none_or(|old| part(old) != part(object))
}

/// What is wrong, numbered where it is more than one thing.
fn list(violations: &[Violation]) -> String {
    let line = |violation: &Violation| format!("{:?}: {}", violation.field, violation.detail);
    match violations {
        [one] => line(one),
        several => {
            let lines = several.iter().enumerate();
            let lines = lines.map(|(index, found)| format!("{}) {}", index + 1, line(found)));
            lines.collect::<Vec<_>>().join("\n")
        }
    }
}

/// Gives names to the steps of an application that have none, and room to components that templates bring.
fn complete_steps(object: &mut Value) {
    let Some(steps) = object.pointer_mut("/spec/workflow/steps") else {
        return;
    };
    let Ok(mut named) = serde_json::from_value::<Vec<WorkflowStep>>(steps.clone()) else {
        return;
    };
    name_steps(&mut named);
    let is_template = |step: &WorkflowStep| step.base.stage == Some(StepStage::PreRender);
    let has_template = named.iter().any(is_template);
    for (step, named) in steps.as_array_mut().into_iter().flatten().zip(named) {
        step["name"] = named.base.name.into();
        let sub_steps = step.get_mut("subSteps").and_then(Value::as_array_mut);
        for (sub_step, named) in sub_steps.into_iter().flatten().zip(named.sub_steps) {
            sub_step["name"] = named.name.into();
        }
    }
    // Components that come from a template are not there yet.
    if has_template && object["spec"].get("components").is_none() {
        object["spec"]["components"] = json!([]);
    }
}

#[cfg(test)]
mod tests;
