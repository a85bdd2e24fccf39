//! How one object gets onto the cluster: what to write, given what is there.
//!
//! [`plan`] is asked again after every change of either side; an object that is as it should be gives
//! [`Step::Leave`]. What was written last is remembered as a [`Baseline`], so that defaults of the
//! server are not taken for changes of others.

mod drift;

use serde_json::Value;

use crate::baseline::Baseline;
use crate::fields::FieldError;
use crate::ownership::Join;
use crate::target::{Drift, Live, Strategy, Target};
use crate::{compliance, metadata, server_side, three_way, update};

/// What to do next for one object.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Read the object first.
    Read,
    /// Nothing: it is as it should be.
    Leave,
    /// Create it. If it exists after all, read it, and decide again.
    Create(Value),
    /// Replace it; the object has the resourceVersion that it replaces.
    Replace(Value),
    /// Patch it.
    Patch(Patch),
    /// Delete the object of this UID, and create it again: what differs cannot be changed.
    Recreate {
        /// The UID of the old one.
        uid: String,
        /// The new one.
        object: Value,
    },
    /// Delete the object of this UID: it must not exist.
    Delete {
        /// Its UID.
        uid: String,
    },
    /// Change by whom it is owned by this merge patch, and nothing else.
    Own(Value),
    /// Have the server apply it, then mark it as owned.
    Apply {
        /// The fields to be applied.
        configuration: Value,
        /// Who they belong to.
        manager: String,
        /// Whether fields of others are taken.
        force: bool,
    },
}

/// A patch of an object, and how it is to be read.
#[derive(Debug, Clone, PartialEq)]
pub struct Patch {
    /// Whether lists are merged by keys, as built-in kinds allow.
    pub is_strategic: bool,
    /// The patch.
    pub content: Value,
}

/// Why an object cannot be applied as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// Fields that are named by paths cannot be found.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// Both fields of a secret have a key, with different values.
    #[error("the key {0} is in data and in stringData with different values")]
    SecretKey(String),
    /// The object exists, and belongs to nobody; only an owner that adopts may write it.
    #[error("{0} exists, but has no owner")]
    Unowned(String),
    /// The object belongs to somebody else.
    #[error("{object} is managed by {owner}")]
    OwnedByOther {
        /// The object.
        object: String,
        /// Who owns it.
        owner: String,
    },
    /// The object has to exist already.
    #[error("{0} does not exist, and is only read")]
    Missing(String),
    /// What was applied and what is there cannot be compared.
    #[error("{0}")]
    Compare(String),
}

impl ApplyError {
    /// Returns true if a program of the user exceeded its budget.
    pub fn is_over_budget(&self) -> bool {
        matches!(self, Self::Field(FieldError::Budget { .. }))
    }
}

/// Decides what to do next for one object.
pub fn plan(target: &Target<'_>, live: Live<'_>) -> Result<Step, ApplyError> {
    if let Live::Present(live) = live
        && *target.strategy != Strategy::ReadOnly
    {
        target.ownership.check(target.manifest, live)?;
        match target.ownership.join(live) {
            Some(Join::Listed) => return Ok(Step::Leave),
            Some(Join::Patch(patch)) => return Ok(Step::Own(patch)),
            None => {}
        }
    }
    if let Some(step) = drift::keep(target, live) {
        return Ok(step);
    }
    let (Drift::KeepFields(paths), Live::Present(present)) = (target.drift, live) else {
        return write(target, live);
    };
    let kept = drift::with_fields(target.manifest, present, paths, target.applied_before)?;
    let target = Target {
        manifest: &kept,
        // What was written before had other values in these fields.
        baseline: None,
        ..*target
    };
    write(&target, live)
}

fn write(target: &Target<'_>, live: Live<'_>) -> Result<Step, ApplyError> {
    match target.strategy {
        Strategy::Update => match live {
            Live::Unknown if target.applied_before => Ok(Step::Read),
            Live::Unknown | Live::Absent => creation(target).map(Step::Create),
            Live::Present(live) => update::plan(target, live),
        },
        Strategy::CreateOnly => match live {
            Live::Unknown if target.applied_before => Ok(Step::Read),
            Live::Unknown | Live::Absent => creation(target).map(Step::Create),
            Live::Present(live) => Ok(target.ownership.patch(live).map_or(Step::Leave, Step::Own)),
        },
        Strategy::ServerSide(settings) => server_side::plan(target, settings, live),
        Strategy::ThreeWay(settings) => three_way::plan(target, settings, live),
        Strategy::Comply(rule) => compliance::plan(target, *rule, live),
        Strategy::ReadOnly => Ok(match live {
            Live::Unknown => Step::Read,
            Live::Absent | Live::Present(_) => Step::Leave,
        }),
    }
}

/// Returns what to remember after an object was written, or found to be as it should be.
pub fn remember(target: &Target<'_>, result: &Value) -> Baseline {
    let (settings, manager) = (target.strategy.settings(), target.strategy.manager());
    Baseline::new(&target.manifest.object, &settings, result, manager)
}

/// Returns true if a write would repair what somebody else changed: this very manifest was written
/// before.
pub fn is_repair(target: &Target<'_>) -> bool {
    target.is_remembered()
}

/// The object to be created: without marks of removal, and marked as ours.
pub(crate) fn creation(target: &Target<'_>) -> Result<Value, ApplyError> {
    let mut object = target.manifest.object.clone();
    metadata::drop_marks(&mut object);
    if target.manifest.kind == "Secret" && target.manifest.group.is_empty() {
        update::fold_string_data(&mut object)?;
    }
    target.ownership.claim(&mut object);
    Ok(object)
}

#[cfg(test)]
mod tests;
