//! Whether an object of an ApplicationConfiguration is applied, or left as others changed it.
//!
//! An object carries the generation of the ApplicationConfiguration and the revision of the Component that it was applied for. With
//! apply-once it is applied again when one of them is another one, and only then. [`decide`] is the whole table.

use std::fmt;
use std::str::FromStr;

use bellwether_api::oam::names::{annotation, label};
use serde_json::Value;

/// How often objects are applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ApplyOnce {
    /// Always: what others change is undone.
    #[default]
    Off,
    /// Once for each generation and revision; what others delete is created again.
    On,
    /// Once for each generation and revision; what others delete stays deleted.
    Force,
}

impl ApplyOnce {
    /// Returns the mode as flags have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::On => "on",
            Self::Force => "force",
        }
    }
}

impl fmt::Display for ApplyOnce {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A text that is not a mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a mode: use off, on or force")]
pub struct UnknownMode(String);

impl FromStr for ApplyOnce {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        match text.to_ascii_lowercase().as_str() {
            "" | "false" | "off" => Ok(Self::Off),
            "true" | "on" => Ok(Self::On),
            "force" => Ok(Self::Force),
            _ => Err(UnknownMode(text.to_owned())),
        }
    }
}

/// What an object is to its component.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// The workload.
    Workload,
    /// A trait.
    Trait,
}

impl Role {
    /// Returns the value of [`label::RESOURCE_TYPE`].
    pub fn label(self) -> &'static str {
        match self {
            Self::Workload => label::WORKLOAD,
            Self::Trait => label::TRAIT,
        }
    }

    /// Returns the role that the labels of an object name.
    pub fn of(object: &Value) -> Option<Self> {
        match object["metadata"]["labels"][label::RESOURCE_TYPE].as_str()? {
            label::WORKLOAD => Some(Self::Workload),
            label::TRAIT => Some(Self::Trait),
            _ => None,
        }
    }
}

/// What an object was applied for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Marks<'a> {
    /// Revision of the component.
    pub revision: &'a str,
    /// Generation of the ApplicationConfiguration.
    pub generation: &'a str,
}

impl<'a> Marks<'a> {
    /// Reads the marks of an object; what it does not have is empty.
    pub fn of(object: &'a Value) -> Self {
        let metadata = &object["metadata"];
        let text = |value: &'a Value| value.as_str().unwrap_or_default();
        Self {
            revision: text(&metadata["labels"][label::REVISION]),
            generation: text(&metadata["annotations"][annotation::GENERATION]),
        }
    }
}

/// What the status of the ApplicationConfiguration has on record of an object of the same kind and name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recorded<'a> {
    /// Nothing.
    Nothing,
    /// A workload.
    Workload {
        /// The revision that was applied; empty if none was yet.
        applied_revision: &'a str,
    },
    /// A trait.
    Trait {
        /// The revision of its component.
        component_revision: &'a str,
        /// The generation that was applied, if one was.
        applied_generation: Option<i64>,
    },
}

impl Recorded<'_> {
    /// Returns true if the object was applied for these marks before.
    fn was_applied_for(self, wanted: Marks<'_>) -> bool {
        match self {
            Self::Nothing => false,
            // A workload that was deleted stays so whatever the generation: only a new revision brings it back.
            Self::Workload { applied_revision } => applied_revision == wanted.revision,
            Self::Trait {
                component_revision,
                applied_generation,
            } => {
                let generation = applied_generation.map(|generation| generation.to_string());
                component_revision == wanted.revision
                    && generation.as_deref() == Some(wanted.generation)
            }
        }
    }
}

/// What to do with an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Create it, or bring it to what is wanted.
    Apply,
    /// Leave it as it is, changed or deleted.
    Leave,
}

/// Decides what to do with an object, given what is there and what is on record.
pub fn decide(
    mode: ApplyOnce,
    wanted: &Value,
    live: Option<&Value>,
    recorded: Recorded<'_>,
) -> Decision {
    // Objects that are neither workload nor trait are always kept as they should be.
    if mode == ApplyOnce::Off || Role::of(wanted).is_none() {
        return Decision::Apply;
    }
    let marks = Marks::of(wanted);
    let is_left = match live {
        Some(live) => Marks::of(live) == marks,
        None => mode == ApplyOnce::Force && recorded.was_applied_for(marks),
    };
    if is_left {
        Decision::Leave
    } else {
        Decision::Apply
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Decision::{Apply, Leave};
    use super::*;

    const MODES: [ApplyOnce; 3] = [ApplyOnce::Off, ApplyOnce::On, ApplyOnce::Force];

    fn object(resource_type: &str, revision: &str, generation: &str) -> Value {
        json!({"metadata": {
            "labels": {label::RESOURCE_TYPE: resource_type, label::REVISION: revision},
            "annotations": {annotation::GENERATION: generation},
        }})
    }

    /// Objects that are wanted for revision v2 and generation 2, in the order of [`MODES`].
    #[track_caller]
    fn check(
        resource_type: &str,
        live: Option<(&str, &str)>,
        recorded: Recorded<'_>,
        expected: [Decision; 3],
    ) {
        let wanted = object(resource_type, "web-v2", "2");
        let live = live.map(|(revision, generation)| object(resource_type, revision, generation));
        let found = MODES.map(|mode| decide(mode, &wanted, live.as_ref(), recorded));
        assert_eq!(found, expected, "{resource_type} {live:?} {recorded:?}");
    }

    fn workload(applied_revision: &str) -> Recorded<'_> {
        Recorded::Workload { applied_revision }
    }

    fn a_trait(component_revision: &str, applied_generation: Option<i64>) -> Recorded<'_> {
        Recorded::Trait {
            component_revision,
            applied_generation,
        }
    }

    #[test]
    fn existing_objects_are_left_while_generation_and_revision_are_the_same() {
        for resource_type in [label::WORKLOAD, label::TRAIT] {
            let records = [
                Recorded::Nothing,
                workload("web-v2"),
                workload(""),
                a_trait("web-v2", Some(2)),
            ];
            for recorded in records {
                let same = Some(("web-v2", "2"));
                check(resource_type, same, recorded, [Apply, Leave, Leave]);
                for other in [("web-v1", "2"), ("web-v2", "1"), ("web-v1", "1"), ("", "")] {
                    check(resource_type, Some(other), recorded, [Apply, Apply, Apply]);
                }
            }
        }
    }

    #[test]
    fn a_deleted_workload_comes_back_in_force_mode_with_a_new_revision_alone() {
        let check = |recorded, force| check(label::WORKLOAD, None, recorded, [Apply, Apply, force]);
        check(Recorded::Nothing, Apply);
        check(workload("web-v2"), Leave);
        check(workload("web-v1"), Apply);
        // It was never applied, because it waited for a value.
        check(workload(""), Apply);
    }

    #[test]
    fn a_deleted_trait_comes_back_in_force_mode_with_a_new_generation_too() {
        let check = |recorded, force| check(label::TRAIT, None, recorded, [Apply, Apply, force]);
        check(Recorded::Nothing, Apply);
        check(a_trait("web-v2", Some(2)), Leave);
        check(a_trait("web-v2", Some(1)), Apply);
        check(a_trait("web-v1", Some(2)), Apply);
        check(a_trait("web-v2", None), Apply);
    }

    #[test]
    fn other_objects_are_always_applied() {
        for resource_type in ["SCOPE", ""] {
            for live in [None, Some(("web-v2", "2")), Some(("web-v1", "1"))] {
                check(
                    resource_type,
                    live,
                    workload("web-v2"),
                    [Apply, Apply, Apply],
                );
            }
        }
    }

    #[test]
    fn modes_are_read_as_flags_have_them() {
        let check = |text: &str, expected: Option<ApplyOnce>| {
            assert_eq!(text.parse().ok(), expected, "{text:?}");
        };
        for text in ["", "false", "off", "OFF", "False"] {
            check(text, Some(ApplyOnce::Off));
        }
        for text in ["true", "on", "On"] {
            check(text, Some(ApplyOnce::On));
        }
        check("force", Some(ApplyOnce::Force));
        check("FORCE", Some(ApplyOnce::Force));
        check("yes", None);
        check(" on", None);
        let error = "sometimes".parse::<ApplyOnce>().unwrap_err().to_string();
        assert_eq!(error, "\"sometimes\" is not a mode: use off, on or force");
    }
}
