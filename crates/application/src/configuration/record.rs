//! What the status of an ApplicationConfiguration has on record of its objects, and what becomes of those that it no longer wants.
//!
//! An object is on record before it is written, and stays there until it is gone: a process that dies in between leaves nothing behind
//! that nobody knows of.

use bellwether_api::oam::{
    ApplicationConfigurationStatus, AppliedTrait, AppliedWorkload, HistoryWorkload, ObjectReference,
};
use serde_json::Value;

use super::apply_once::{ApplyOnce, Recorded, Role};
use super::component_revision::component_of;
use super::render::{Rendered, RenderedObject};

/// Returns what is on record of an object.
pub fn recorded<'a>(
    workloads: &'a [AppliedWorkload],
    reference: &ObjectReference,
    role: Role,
) -> Recorded<'a> {
    let found = match role {
        Role::Workload => workloads
            .iter()
            .find(|known| is_same(&known.workload_ref, reference))
            .map(|known| Recorded::Workload {
                applied_revision: &known.applied_component_revision,
            }),
        Role::Trait => workloads
            .iter()
            .flat_map(|workload| workload.traits.iter().map(move |it| (workload, it)))
            .find(|(_, known)| is_same(&known.trait_ref, reference))
            .map(|(workload, known)| Recorded::Trait {
                component_revision: &workload.component_revision_name,
                applied_generation: known.applied_generation,
            }),
    };
    found.unwrap_or(Recorded::Nothing)
}

/// Returns true if references are to the same object, whatever its UID.
pub fn is_same(one: &ObjectReference, other: &ObjectReference) -> bool {
    one.api_version == other.api_version
        && one.kind == other.kind
        && one.name == other.name
        && one.namespace == other.namespace
}

/// An object that is on record and no longer wanted.
#[derive(Debug, Clone, PartialEq)]
pub struct Unwanted {
    /// What it was to its component.
    pub role: Role,
    /// The component.
    pub component: String,
    /// The revision of the component.
    pub revision: String,
    /// The object.
    pub reference: ObjectReference,
}

/// Returns the objects on record that are no longer wanted, those of components that are gone altogether included.
pub fn unwanted(
    status: &ApplicationConfigurationStatus,
    rendered: &Rendered,
    own_namespace: &str,
) -> Vec<Unwanted> {
    let wanted: Vec<ObjectReference> = rendered
        .objects
        .iter()
        .map(|object| object.reference(own_namespace))
        .collect();
    let mut unwanted = Vec::new();
    let mut add = |role, component: &str, revision: &str, reference: &ObjectReference| {
        if !reference.name.is_empty() && !wanted.iter().any(|it| is_same(it, reference)) {
            unwanted.push(Unwanted {
                role,
                component: component.to_owned(),
                revision: revision.to_owned(),
                reference: reference.clone(),
            });
        }
    };
    for known in &status.workloads {
        let (component, revision) = (&known.component_name, &known.component_revision_name);
        add(Role::Workload, component, revision, &known.workload_ref);
        for known in &known.traits {
            add(Role::Trait, component, revision, &known.trait_ref);
        }
    }
    for known in &status.history_workloads {
        let is_gone = !rendered
            .components
            .iter()
            .any(|it| it.name == known.component_name);
        if is_gone {
            add(
                Role::Workload,
                &known.component_name,
                &known.revision,
                &known.workload_ref,
            );
        }
    }
    unwanted
}

/// What becomes of an object that is no longer wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Removal {
    /// It is deleted.
    Delete,
    /// It is kept as a workload of an earlier revision.
    Keep,
    /// It must not be deleted, for this reason.
    Refuse(String),
}

/// Decides what becomes of an object that is no longer wanted, given what is there.
pub fn removal(
    mode: ApplyOnce,
    unwanted: &Unwanted,
    rendered: &Rendered,
    live: Option<&Value>,
) -> Removal {
    if unwanted.role == Role::Trait {
        return Removal::Delete;
    }
    let mut components = rendered.components.iter();
    let component = components.find(|component| component.name == unwanted.component);
    let is_named_after_revision =
        component_of(&unwanted.reference.name) == Some(unwanted.component.as_str());
    if component.is_some_and(|component| component.is_revision_enabled || is_named_after_revision) {
        return Removal::Keep;
    }
    let replicas = live.and_then(|live| live["spec"]["replicas"].as_i64());
    match replicas {
        Some(replicas) if replicas > 0 && mode != ApplyOnce::Off => Removal::Refuse(format!(
            "can't delete workload with replicas {replicas} in apply once only mode"
        )),
        _ => Removal::Delete,
    }
}

/// What became of an object that is wanted.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Fate {
    /// Whether it is applied, or left because it was.
    pub is_applied: bool,
    /// Whether it waits for values of others.
    pub waits: bool,
    /// Its UID, if it exists.
    pub uid: Option<String>,
}

/// Returns the workloads that the status has: those that are wanted with what became of them, and those that are not gone yet.
/// `fates` are those of the objects of [`Rendered`], in the same order.
pub fn workloads(
    old: &[AppliedWorkload],
    rendered: &Rendered,
    fates: &[Fate],
    leftovers: &[Unwanted],
    target: Target<'_>,
) -> Vec<AppliedWorkload> {
    let mut workloads: Vec<AppliedWorkload> = Vec::new();
    for (object, fate) in rendered.objects.iter().zip(fates) {
        match object.role {
            Role::Workload => workloads.push(workload(old, rendered, object, fate, target)),
            Role::Trait => {
                let known = applied_trait(old, rendered, object, fate, target);
                if let Some(workload) = workloads.last_mut() {
                    workload.traits.push(known);
                }
            }
        }
    }
    for leftover in leftovers {
        keep(&mut workloads, old, leftover);
    }
    workloads
}

/// The ApplicationConfiguration that a status is about.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// Its namespace.
    pub namespace: &'a str,
    /// Its generation.
    pub generation: i64,
}

fn workload(
    old: &[AppliedWorkload],
    rendered: &Rendered,
    object: &RenderedObject,
    fate: &Fate,
    target: Target<'_>,
) -> AppliedWorkload {
    let reference = object.reference(target.namespace);
    let component = &rendered.components[object.component];
    let known = old.iter().find(|it| is_same(&it.workload_ref, &reference));
    let applied_component_revision = if fate.is_applied {
        component.revision.clone()
    } else {
        known
            .map(|it| it.applied_component_revision.clone())
            .unwrap_or_default()
    };
    AppliedWorkload {
        component_name: component.name.clone(),
        component_revision_name: component.revision.clone(),
        applied_component_revision,
        dependency_unsatisfied: fate.waits,
        workload_ref: ObjectReference {
            uid: fate.uid.clone(),
            ..reference
        },
        traits: Vec::new(),
        status: known.map(|it| it.status.clone()).unwrap_or_default(),
        other: known.map(|it| it.other.clone()).unwrap_or_default(),
    }
}

fn applied_trait(
    old: &[AppliedWorkload],
    rendered: &Rendered,
    object: &RenderedObject,
    fate: &Fate,
    target: Target<'_>,
) -> AppliedTrait {
    let reference = object.reference(target.namespace);
    let revision = &rendered.components[object.component].revision;
    let applied_generation = match recorded(old, &reference, Role::Trait) {
        _ if fate.is_applied => Some(target.generation),
        // What was applied for another revision says nothing about this one.
        Recorded::Trait {
            component_revision,
            applied_generation,
        } if component_revision == revision => applied_generation,
        _ => None,
    };
    AppliedTrait {
        trait_ref: ObjectReference {
            uid: fate.uid.clone(),
            ..reference
        },
        applied_generation,
        dependency_unsatisfied: fate.waits,
        ..AppliedTrait::default()
    }
}

/// Keeps an object on record that is not wanted and not gone.
fn keep(workloads: &mut Vec<AppliedWorkload>, old: &[AppliedWorkload], leftover: &Unwanted) {
    let is_it = |reference: &ObjectReference| is_same(reference, &leftover.reference);
    let before = old.iter().find(|known| {
        is_it(&known.workload_ref) || known.traits.iter().any(|it| is_it(&it.trait_ref))
    });
    let place = workloads.iter().position(|workload| {
        before.is_some_and(|before| is_same(&workload.workload_ref, &before.workload_ref))
            || leftover.role == Role::Workload && is_it(&workload.workload_ref)
    });
    let index = place.unwrap_or_else(|| {
        workloads.push(AppliedWorkload {
            component_name: leftover.component.clone(),
            component_revision_name: leftover.revision.clone(),
            applied_component_revision: before
                .map(|it| it.applied_component_revision.clone())
                .unwrap_or_default(),
            workload_ref: before
                .map_or_else(|| leftover.reference.clone(), |it| it.workload_ref.clone()),
            ..AppliedWorkload::default()
        });
        workloads.len() - 1
    });
    if leftover.role == Role::Trait {
        let known = before.and_then(|it| it.traits.iter().find(|it| is_it(&it.trait_ref)));
        let known = known.cloned().unwrap_or_else(|| AppliedTrait {
            trait_ref: leftover.reference.clone(),
            ..AppliedTrait::default()
        });
        workloads[index].traits.push(known);
    }
}

/// Returns the workloads of earlier revisions that the status has: those that it had, of components that are still there, and those
/// that are kept from now on.
pub fn history(
    old: &[HistoryWorkload],
    rendered: &Rendered,
    kept: &[Unwanted],
    own_namespace: &str,
) -> Vec<HistoryWorkload> {
    let is_wanted = |reference: &ObjectReference| {
        let mut objects = rendered.objects.iter();
        objects.any(|object| is_same(&object.reference(own_namespace), reference))
    };
    let mut history: Vec<HistoryWorkload> = old
        .iter()
        .filter(|known| {
            rendered
                .components
                .iter()
                .any(|it| it.name == known.component_name)
        })
        .filter(|known| !is_wanted(&known.workload_ref))
        .cloned()
        .collect();
    for kept in kept {
        if !history
            .iter()
            .any(|known| is_same(&known.workload_ref, &kept.reference))
        {
            history.push(HistoryWorkload {
                revision: kept.revision.clone(),
                component_name: kept.component.clone(),
                workload_ref: kept.reference.clone(),
                ..HistoryWorkload::default()
            });
        }
    }
    history
}

#[cfg(test)]
mod tests;
