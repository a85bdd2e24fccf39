//! The strategy Comply: an object has to have what a template says, and possibly nothing else, or it
//! must not exist. The rules are those of configuration policies.
//!
//! [`compare`] merges a template into a live object and says whether that changes it. The order of lists
//! does not matter, and quantities are compared by their values. Where only the server can say whether
//! a write would change anything (a field is missing whose default the template may have), `plan`
//! asks it by [`Step::DryRun`].

mod equality;
mod merge;

use serde_json::{Map, Value};

use crate::metadata;
use crate::plan::{ApplyError, Step, creation};
use crate::target::{Live, Target};
use crate::update;

use equality::{Equality, Place};
use merge::Merge;

/// How an object has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComplianceType {
    /// It has all that the template has; what it has besides stays.
    MustHave,
    /// It has what the template has, and nothing else.
    MustOnlyHave,
    /// It does not exist.
    MustNotHave,
}

/// How an object and its metadata have to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Compliance {
    /// The object.
    pub object: ComplianceType,
    /// Its labels and annotations.
    pub metadata: ComplianceType,
}

/// What comes of merging a template into a live object.
#[derive(Debug, Clone, PartialEq)]
pub struct Comparison {
    /// The live object with what the template says.
    pub merged: Value,
    /// Whether the merged object is the live one, apart from its status.
    pub is_equal: bool,
    /// Whether the live object lacks a field whose value may be its default: only the server knows.
    pub has_missing_field: bool,
    /// Whether the status is not as the template says, which no write can change.
    pub status_differs: bool,
}

/// Why a template and an object cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// A key has a map or a list on one side, and something else on the other.
    #[error(
        "Error merging changes into key {0:?}: object type of template and existing do not match"
    )]
    Types(String),
    /// A label or an annotation is not a text.
    #[error("invalid {field}, error: the value of {key:?} is not a string")]
    Metadata {
        /// `label` or `annotation`.
        field: &'static str,
        /// Its key.
        key: String,
    },
    /// Lists are so long that comparing them would take too long.
    #[error("the lists of the object are too long to be compared")]
    TooLong,
}

/// Decides about an object that has to comply with a template.
pub(crate) fn plan(
    target: &Target<'_>,
    compliance: Compliance,
    live: Live<'_>,
) -> Result<Step, ApplyError> {
    let live = match (live, compliance.object) {
        (Live::Unknown, _) => return Ok(Step::Read),
        (Live::Absent, ComplianceType::MustNotHave) => return Ok(Step::Leave),
        (Live::Absent, _) => return creation(target).map(Step::Create),
        (Live::Present(live), ComplianceType::MustNotHave) => {
            let uid = live["metadata"]["uid"].as_str().unwrap_or_default();
            return Ok(Step::Delete {
                uid: uid.to_owned(),
            });
        }
        (Live::Present(live), _) => live,
    };
    let mut template = target.manifest.object.clone();
    metadata::drop_marks(&mut template);
    if target.manifest.kind == "Secret" && target.manifest.group.is_empty() {
        update::fold_string_data(&mut template)?;
    }
    let comparison = compare(&template, live, compliance)
        .map_err(|error| ApplyError::Compare(error.to_string()))?;
    let mut merged = comparison.merged;
    target.ownership.mark(&mut merged);
    if comparison.is_equal && !comparison.has_missing_field {
        return Ok(target.ownership.patch(live).map_or(Step::Leave, Step::Own));
    }
    Ok(match target.dry_run {
        None => Step::DryRun(merged),
        Some(result) if is_same(result, live) => Step::Leave,
        Some(_) => Step::Replace(merged),
    })
}

/// Returns true if a dry run would change nothing but what only the server writes.
pub fn is_same(result: &Value, live: &Value) -> bool {
    let content = |object: &Value| {
        let mut object = object.clone();
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            for field in ["managedFields", "resourceVersion", "generation"] {
                metadata.remove(field);
            }
        }
        object
    };
    content(result) == content(live)
}

/// Merges a template into a live object, and says whether that changes it.
pub fn compare(
    template: &Value,
    live: &Value,
    compliance: Compliance,
) -> Result<Comparison, CompareError> {
    let mut merge = Merge::default();
    let mut comparison = Comparison {
        merged: live.clone(),
        is_equal: true,
        has_missing_field: false,
        status_differs: false,
    };
    let only = compliance.object == ComplianceType::MustOnlyHave;
    for (key, wanted) in template.as_object().into_iter().flatten() {
        if matches!(key.as_str(), "apiVersion" | "kind") {
            continue;
        }
        if key == "metadata" {
            let is_equal = merge_metadata(&mut comparison.merged, wanted, live, compliance)?;
            comparison.is_equal &= is_equal;
            continue;
        }
        let present = live.get(key);
        let value = match present {
            Some(present) if !only => merge.top_level(key, wanted, present)?,
            _ => wanted.clone(),
        };
        let mut equality = Equality::default();
        let is_equal = equality.holds(&value, present, Place::Field);
        if key == "status" {
            comparison.status_differs |= !is_equal;
            continue;
        }
        comparison.is_equal &= is_equal;
        comparison.has_missing_field |= equality.has_missing_field;
        comparison.merged[key.as_str()] = value;
    }
    comparison.has_missing_field |= merge.has_missing_field;
    if only {
        comparison.is_equal &= !drop_others(&mut comparison.merged, template);
    }
    Ok(comparison)
}

/// Removes what a template does not have; true if there was anything.
fn drop_others(merged: &mut Value, template: &Value) -> bool {
    let is_account = template["kind"] == "ServiceAccount";
    let Some(object) = merged.as_object_mut() else {
        return false;
    };
    let count = object.len();
    object.retain(|key, _| match key.as_str() {
        "metadata" | "status" | "apiVersion" | "kind" => true,
        // Controllers fill these in.
        "secrets" | "imagePullSecrets" if is_account => true,
        _ => template.get(key).is_some(),
    });
    object.len() != count
}

/// What annotates namespaces on OpenShift, and is never taken away.
const OPENSHIFT_ANNOTATIONS: &str = "openshift.io/sa.scc.";

/// Merges labels and annotations; true if that changes nothing. A side that the template does not have
/// is left alone.
fn merge_metadata(
    merged: &mut Value,
    wanted: &Value,
    live: &Value,
    compliance: Compliance,
) -> Result<bool, CompareError> {
    let mut is_equal = true;
    for (field, one) in [("labels", "label"), ("annotations", "annotation")] {
        let Some(wanted) = wanted.get(field).and_then(Value::as_object) else {
            continue;
        };
        if let Some((key, _)) = wanted.iter().find(|(_, value)| !value.is_string()) {
            return Err(CompareError::Metadata {
                field: one,
                key: key.clone(),
            });
        }
        let none = Map::new();
        let known = live["metadata"][field].as_object().unwrap_or(&none);
        let mut result = if compliance.metadata == ComplianceType::MustOnlyHave {
            let mut kept = known.clone();
            kept.retain(|key, _| {
                live["kind"] == "Namespace" && key.starts_with(OPENSHIFT_ANNOTATIONS)
            });
            kept
        } else {
            known.clone()
        };
        for (key, value) in wanted {
            result.insert(key.clone(), value.clone());
        }
        if result != *known {
            is_equal = false;
            merged["metadata"][field] = Value::Object(result);
        }
    }
    Ok(is_equal)
}

#[cfg(test)]
mod tests;
