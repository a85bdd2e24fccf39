//! How one manifest gets onto the cluster: what to write, given what is there.
//!
//! [`plan`] is asked again after every change of either side; a manifest that is as it should be
//! gives [`Step::Leave`]. What the agent itself wrote last is remembered as a [`Baseline`], so that
//! defaults that the server filled in are not taken for changes of others.

mod baseline;
pub mod ignore;
mod jq;
mod metadata;
mod owned_fields;
mod server_side;
mod update;

use bellwether_api::work::{UpdateStrategy, UpdateStrategyType};
use serde_json::Value;

pub use baseline::Baseline;
pub use ignore::IgnoreError;

use crate::manifest::Manifest;
use crate::ownership::{self, Owner};

/// What is known of the object on the cluster.
#[derive(Debug, Clone, Copy)]
pub enum Live<'a> {
    /// Nothing: nobody looked.
    Unknown,
    /// It is not there.
    Absent,
    /// It is there.
    Present(&'a Value),
}

/// Everything that a decision about one manifest looks at.
#[derive(Debug, Clone, Copy)]
pub struct Target<'a> {
    /// The manifest, in the namespace where it belongs.
    pub manifest: &'a Manifest,
    /// How it is brought to the cluster; nothing is Update.
    pub strategy: Option<&'a UpdateStrategy>,
    /// The record of the work.
    pub owner: &'a Owner,
    /// Whether the object goes with its work.
    pub owned: bool,
    /// What was written last, if this is remembered.
    pub baseline: Option<&'a Baseline>,
    /// Whether the work says that this very manifest has been applied before.
    pub applied_before: bool,
}

/// What to do next for one manifest.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Read the object first.
    Read,
    /// Nothing: it is as it should be.
    Leave,
    /// Create it. If it exists after all, look, and decide again.
    Create(Value),
    /// Replace it; the object has the resourceVersion that it replaces.
    Replace(Value),
    /// Delete the object of this UID, and create it again: what differs cannot be changed.
    Recreate {
        /// The UID of the old one.
        uid: String,
        /// The new one.
        object: Value,
    },
    /// Change the owners by this merge patch, and nothing else.
    Own(Value),
    /// Have the server apply it, then give it its owners.
    Apply {
        /// The fields to be applied.
        configuration: Value,
        /// Who they belong to.
        manager: String,
        /// Whether fields of others are taken.
        force: bool,
    },
}

/// Why a manifest cannot be applied as it is.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ApplyError {
    /// Fields to be ignored cannot be found out.
    #[error(transparent)]
    Ignore(#[from] IgnoreError),
    /// There is no such strategy.
    #[error(
        "the update strategy {0} is not known: use Update, CreateOnly, ServerSideApply or ReadOnly"
    )]
    UnknownStrategy(String),
    /// Both fields of a secret have a key, with different values.
    #[error("the key {0} is in data and in stringData with different values")]
    SecretKey(String),
    /// The field manager would not be ours.
    #[error("the field manager {0} does not begin with work-agent")]
    FieldManager(String),
}

impl ApplyError {
    /// Returns true if a program of the user exceeded its budget.
    pub fn is_over_budget(&self) -> bool {
        matches!(self, Self::Ignore(IgnoreError::Budget { .. }))
    }
}

/// Decides what to do next for one manifest.
pub fn plan(target: &Target<'_>, live: Live<'_>) -> Result<Step, ApplyError> {
    let kind = target.strategy.map(|strategy| &strategy.kind);
    match kind {
        None | Some(UpdateStrategyType::Update) => match live {
            Live::Unknown if target.applied_before => Ok(Step::Read),
            Live::Unknown | Live::Absent => creation(target).map(Step::Create),
            Live::Present(live) => update::plan(target, live),
        },
        Some(UpdateStrategyType::CreateOnly) => {
            match live {
                Live::Unknown if target.applied_before => Ok(Step::Read),
                Live::Unknown | Live::Absent => creation(target).map(Step::Create),
                Live::Present(live) => Ok(ownership::patch(live, target.owner, target.owned)
                    .map_or(Step::Leave, Step::Own)),
            }
        }
        Some(UpdateStrategyType::ServerSideApply) => server_side::plan(target, live),
        Some(UpdateStrategyType::ReadOnly) => Ok(match live {
            Live::Unknown => Step::Read,
            Live::Absent | Live::Present(_) => Step::Leave,
        }),
        Some(UpdateStrategyType::Other(name)) => Err(ApplyError::UnknownStrategy(name.clone())),
    }
}

/// What to remember after a manifest was written, or found to be as it should be.
pub fn remember(target: &Target<'_>, result: &Value) -> Baseline {
    let manager = server_side::manager(target.strategy);
    Baseline::new(&target.manifest.object, &settings(target), result, manager)
}

/// Whether a write would repaired what somebody else changed: this very manifest was written
/// before.
pub fn is_repair(target: &Target<'_>) -> bool {
    let known = target.baseline;
    known.is_some_and(|known| known.is_of(&target.manifest.object, &settings(target)))
}

fn settings(target: &Target<'_>) -> String {
    match target.strategy {
        Some(strategy) if strategy.kind == UpdateStrategyType::ServerSideApply => {
            server_side::settings_text(strategy.server_side_apply.as_ref())
        }
        _ => update::SETTINGS.to_owned(),
    }
}

/// Returns true if a decision runs programs of users, which may take long.
pub fn has_programs(strategy: Option<&UpdateStrategy>) -> bool {
    let options = strategy.and_then(|strategy| strategy.server_side_apply.as_ref());
    let mut fields = options.into_iter().flat_map(|it| &it.ignore_fields);
    fields.any(|field| !field.jq_path_expressions.is_empty() || !field.json_paths.is_empty())
}

/// Whether a strategy touches an object that is there already.
pub fn is_updating(strategy: Option<&UpdateStrategy>) -> bool {
    strategy.is_none_or(|strategy| {
        matches!(
            strategy.kind,
            UpdateStrategyType::Update | UpdateStrategyType::ServerSideApply
        )
    })
}

/// The object to be created: without marks of removal, and with its owner.
fn creation(target: &Target<'_>) -> Result<Value, ApplyError> {
    let mut object = target.manifest.object.clone();
    metadata::drop_marks(&mut object);
    if target.manifest.kind == "Secret" && target.manifest.group.is_empty() {
        update::fold_string_data(&mut object)?;
    }
    let owners = if target.owned {
        vec![target.owner.reference()]
    } else {
        Vec::new()
    };
    metadata::set_owners(&mut object, owners);
    Ok(object)
}

#[cfg(test)]
mod tests;
