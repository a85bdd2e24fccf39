//! What stands in the way of an apply.

use std::fmt;

use bellwether_schema::text::quote;

use super::entries::{ManagerId, Operation};
use crate::fieldset::FieldSet;
use crate::path::{Path, PathElement};

/// The most conflicts that an answer names.
const MAX_CONFLICTS: usize = 100;

/// A field that the configuration would change and another manager owns.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Conflict {
    id: ManagerId,
    path: Path,
}

impl Conflict {
    pub(super) fn new(id: &ManagerId, path: &[PathElement]) -> Self {
        Self {
            id: id.clone(),
            path: Path(path.to_vec()),
        }
    }

    /// The manager that owns the field.
    pub fn manager(&self) -> &str {
        &self.id.manager
    }

    /// The version that an updating manager used; `None` for one that applied.
    pub fn api_version(&self) -> Option<&str> {
        (self.id.operation == Operation::Update).then_some(self.id.api_version.as_str())
    }

    /// The subresource that the manager wrote, or an empty text.
    pub fn subresource(&self) -> &str {
        &self.id.subresource
    }

    /// The field.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The manager as messages name it: `"kubectl" with subresource "status" using v1`.
    fn manager_text(&self) -> String {
        let mut text = quote(&self.id.manager);
        if !self.id.subresource.is_empty() {
            text.push_str(" with subresource ");
            text.push_str(&quote(&self.id.subresource));
        }
        if let Some(version) = self.api_version() {
            text.push_str(" using ");
            text.push_str(version);
        }
        text
    }
}

/// The reason of every cause of a refused apply (kubernetes: `metav1.CauseTypeFieldManagerConflict`).
pub const CONFLICT_REASON: &str = "FieldManagerConflict";

/// Returns true if the causes of a refused apply name this manager, and nobody else. An answer with so
/// many causes that some may have been left out says nothing.
pub fn is_conflict_only_with<'a>(manager: &str, causes: impl IntoIterator<Item = &'a str>) -> bool {
    let mut count = 0;
    let is_only = causes.into_iter().all(|message| {
        count += 1;
        // `conflict with "NAME" using …`
        let named = message.strip_prefix("conflict with \"");
        named.and_then(|rest| rest.split('"').next()) == Some(manager)
    });
    is_only && (1..MAX_CONFLICTS).contains(&count)
}

/// One entry of `details.causes` of the answer; its reason is [`CONFLICT_REASON`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// With whom.
    pub message: String,
    /// The path of the field.
    pub field: String,
}

/// All conflicts of one apply, by manager. The text is the message of the 409 answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflicts(Vec<Conflict>);

impl Conflicts {
    pub(super) fn new(mut conflicts: Vec<Conflict>) -> Self {
        // Stable: the paths of a manager keep the order of its set.
        conflicts.sort_by(|left, right| left.id.cmp(&right.id));
        Self(conflicts)
    }

    /// The conflicts, by manager.
    pub fn iter(&self) -> impl Iterator<Item = &Conflict> {
        self.0.iter()
    }

    /// `details.causes` of the answer.
    pub fn causes(&self) -> Vec<Cause> {
        let cause = |conflict: &Conflict| Cause {
            message: format!("conflict with {}", conflict.manager_text()),
            field: conflict.path.to_string(),
        };
        self.0.iter().take(MAX_CONFLICTS).map(cause).collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn except(self, allowed: &FieldSet) -> Self {
        let mut conflicts = self.0;
        conflicts.retain(|conflict| !allowed.contains(&conflict.path.0));
        Self(conflicts)
    }
}

impl fmt::Display for Conflicts {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let [conflict] = self.0.as_slice() {
            return write!(
                formatter,
                "Apply failed with 1 conflict: conflict with {}: {}",
                conflict.manager_text(),
                conflict.path
            );
        }
        write!(formatter, "Apply failed with {} conflicts: ", self.0.len())?;
        let mut previous: Option<&Conflict> = None;
        for conflict in self.0.iter().take(MAX_CONFLICTS) {
            if previous.is_none_or(|previous| previous.id != conflict.id) {
                if previous.is_some() {
                    formatter.write_str("\n")?;
                }
                write!(formatter, "conflicts with {}:", conflict.manager_text())?;
            }
            write!(formatter, "\n- {}", conflict.path)?;
            previous = Some(conflict);
        }
        match self.0.len().saturating_sub(MAX_CONFLICTS) {
            0 => Ok(()),
            more => write!(formatter, "\nand {more} more conflicts are not shown"),
        }
    }
}
