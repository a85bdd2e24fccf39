//! What an agent reports about a ManifestWork: conditions and values of each manifest, and of all
//! together. Every word of it is decided here.

mod aggregate;
pub mod rollout_view;

use bellwether_api::meta::{FALSE, TRUE, UNKNOWN};
use bellwether_api::work::names::{condition, message, reason};
use bellwether_api::work::{
    FeedbackValue, FieldValue, ManifestCondition, ManifestResourceMeta, ManifestResourceStatus,
    ManifestWorkStatus, StatusFeedback, ValueType,
};
use jiff::Timestamp;

use crate::conditions::{ConditionUpdate, Conditions};
use crate::feedback::{Answers, Scalar};
use crate::lifecycle::find;
use crate::rules::Conclusion;
use aggregate::{add_rollout_conditions, aggregate, of_work};

/// Conditions of a manifest that do not come from rules.
const BUILT_IN: [&str; 3] = [
    condition::APPLIED,
    condition::AVAILABLE,
    condition::STATUS_FEEDBACK_SYNCED,
];

/// Why a manifest was not applied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// The write failed, or was not allowed.
    Apply(String),
    /// Fields to be ignored cannot be found out.
    IgnoreFields(String),
}

/// Whether a manifest is on the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Availability {
    /// It is.
    Available,
    /// It is not.
    Missing,
    /// It is, but it does not serve yet; only works of replica sets are judged by that.
    NotReady,
    /// It cannot be read, for this reason.
    Unknown(String),
    /// It is not even known what it is.
    Incomplete,
}

/// What was found out about the values that come back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Feedback {
    /// None are wanted.
    Unwanted,
    /// These.
    Answers(Answers),
    /// Nothing: the object could not be read, and what was known stays.
    Unchanged,
}

/// What was found out about one manifest.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// Which object it is.
    pub meta: ManifestResourceMeta,
    /// Whether it was applied.
    pub applied: Result<(), Failure>,
    /// The generation of the object itself.
    pub object_generation: Option<i64>,
    /// Whether it is on the cluster; nothing if what was known stays.
    pub available: Option<Availability>,
    /// What rules conclude; nothing if what was known stays.
    pub conclusions: Option<Vec<Conclusion>>,
    /// The conditions that rules of the work itself are about. Others are concluded for rollouts.
    pub ruled: Vec<String>,
    /// What is said of conditions that rules have never concluded, because the object has not been
    /// seen.
    pub unseen: Vec<Conclusion>,
    /// The values that come back.
    pub feedback: Feedback,
    /// Whether the record on the member says that it is complete, which the hub does not know yet.
    pub is_remembered_complete: bool,
}

/// What a failure reads as: reason and message.
pub(crate) fn failure_words(failure: &Failure) -> (&'static str, String) {
    match failure {
        Failure::Apply(error) => (
            reason::APPLIED_MANIFEST_FAILED,
            format!("Failed to apply manifest: {error}"),
        ),
        Failure::IgnoreFields(error) => (
            reason::APPLIED_MANIFEST_SSA_IGNORE_FIELD_ERROR,
            format!("Failed to process ignoreFields: {error}"),
        ),
    }
}

/// What availability reads as: status, reason and message.
pub(crate) fn availability_words(
    availability: &Availability,
) -> (&'static str, &'static str, String) {
    match availability {
        Availability::Available => (
            TRUE,
            reason::RESOURCE_AVAILABLE,
            message::RESOURCE_AVAILABLE.to_owned(),
        ),
        Availability::Missing | Availability::NotReady => (
            FALSE,
            reason::RESOURCE_NOT_AVAILABLE,
            message::RESOURCE_NOT_AVAILABLE.to_owned(),
        ),
        Availability::Unknown(error) => (
            UNKNOWN,
            reason::FETCHING_RESOURCE_FAILED,
            format!("Failed to fetch resource: {error}"),
        ),
        Availability::Incomplete => (
            UNKNOWN,
            reason::INCOMPLETE_RESOURCE_META,
            message::RESOURCE_META_INCOMPLETE.to_owned(),
        ),
    }
}

/// The status of a work after its manifests were looked at.
///
/// With `rollout`, Progressing and Degraded are said of the work whatever rules it has: anyone who
/// rolls it out waits for them.
pub fn assemble(
    previous: &ManifestWorkStatus,
    generation: i64,
    reports: &[Report],
    rollout: bool,
    now: Timestamp,
) -> ManifestWorkStatus {
    let known = previous
        .resource_status
        .as_ref()
        .map_or(&[][..], |status| &status.manifests);
    let manifests: Vec<ManifestCondition> = reports
        .iter()
        .map(|report| manifest(find_known(known, &report.meta), generation, report, now))
        .collect();
    let mut conditions = Conditions::new(&previous.conditions, now);
    for update in of_work(&manifests) {
        conditions.set(update.with(generation));
    }
    let mut named = vec![
        condition::APPLIED.to_owned(),
        condition::AVAILABLE.to_owned(),
    ];
    let mut aggregated = aggregate(&manifests, reports);
    if rollout {
        add_rollout_conditions(&manifests, &mut aggregated);
    }
    for update in aggregated {
        conditions.set(update.with(generation));
        named.push(update.name);
    }
    conditions.retain(|known| {
        named.contains(&known.type_) || !known.reason.starts_with(reason::CONDITION_RULE_PREFIX)
    });
    ManifestWorkStatus {
        conditions: conditions.finish(),
        resource_status: Some(ManifestResourceStatus {
            manifests,
            ..previous.resource_status.clone().unwrap_or_default()
        }),
        other: previous.other.clone(),
    }
}

/// What was known of a manifest: under the same place, or of the same object if it moved. While the
/// cluster does not know its kind, the name of its resource is not known either.
pub fn find_known<'a>(
    known: &'a [ManifestCondition],
    meta: &ManifestResourceMeta,
) -> Option<&'a ManifestCondition> {
    if let Some(same) = known.iter().find(|entry| entry.resource_meta == *meta) {
        return Some(same);
    }
    let is_same = |other: &ManifestResourceMeta| {
        let key = |meta: &ManifestResourceMeta| {
            (
                meta.group.clone(),
                meta.version.clone(),
                meta.kind.clone(),
                meta.name.clone(),
                meta.namespace.clone(),
            )
        };
        let resources = [&other.resource, &meta.resource];
        key(other) == key(meta)
            && !meta.name.is_empty()
            && (other.resource == meta.resource || resources.iter().any(|it| it.is_empty()))
    };
    let mut found = known.iter().filter(|entry| is_same(&entry.resource_meta));
    let first = found.next();
    first.filter(|_| found.next().is_none())
}

fn manifest(
    known: Option<&ManifestCondition>,
    generation: i64,
    report: &Report,
    now: Timestamp,
) -> ManifestCondition {
    let previous = known.map_or(&[][..], |known| &known.conditions);
    let mut conditions = Conditions::new(previous, now);
    let (status, why, text) = match &report.applied {
        Ok(()) => (
            TRUE,
            reason::APPLIED_MANIFEST_COMPLETE,
            message::APPLY_MANIFEST_COMPLETE.to_owned(),
        ),
        Err(failure) => {
            let (why, text) = failure_words(failure);
            (FALSE, why, text)
        }
    };
    conditions.set(ConditionUpdate {
        name: condition::APPLIED,
        status,
        reason: why,
        message: &text,
        generation: Some(generation),
    });
    if let Some(availability) = &report.available {
        let (status, why, text) = availability_words(availability);
        conditions.set(ConditionUpdate {
            name: condition::AVAILABLE,
            status,
            reason: why,
            message: &text,
            generation: None,
        });
    }
    let status_feedback = feedback(known, &report.feedback, &mut conditions);
    if let Some(conclusions) = &report.conclusions {
        conditions.retain(|known| {
            BUILT_IN.contains(&known.type_.as_str())
                || conclusions.iter().any(|new| new.condition == known.type_)
        });
        for conclusion in conclusions {
            conditions.set(conclusion.update(generation));
        }
    }
    for conclusion in &report.unseen {
        if find(previous, &conclusion.condition).is_none() {
            conditions.set(conclusion.update(generation));
        }
    }
    if report.is_remembered_complete {
        let complete = Conclusion::plain(condition::COMPLETE, true);
        conditions.set(complete.update(generation));
    }
    ManifestCondition {
        resource_meta: report.meta.clone(),
        status_feedback,
        conditions: conditions.finish(),
        other: known.map(|known| known.other.clone()).unwrap_or_default(),
    }
}

/// The values of a manifest, and the condition that says whether they are current.
fn feedback(
    known: Option<&ManifestCondition>,
    feedback: &Feedback,
    conditions: &mut Conditions,
) -> Option<StatusFeedback> {
    let mut synced = ConditionUpdate {
        name: condition::STATUS_FEEDBACK_SYNCED,
        status: TRUE,
        reason: reason::NO_STATUS_FEEDBACK_SYNCED,
        message: "",
        generation: None,
    };
    let answers = match feedback {
        Feedback::Unchanged => return known.and_then(|known| known.status_feedback.clone()),
        Feedback::Unwanted => {
            conditions.set(synced);
            return None;
        }
        Feedback::Answers(answers) => answers,
    };
    let values: Vec<FeedbackValue> = answers.values.iter().map(value).collect();
    let text = problem_text(answers);
    if answers.problems.is_empty() {
        synced.reason = reason::STATUS_FEEDBACK_SYNCED;
    } else {
        synced.status = FALSE;
        synced.reason = reason::STATUS_FEEDBACK_SYNC_FAILED;
        synced.message = &text;
    }
    conditions.set(synced);
    Some(StatusFeedback {
        values,
        ..StatusFeedback::default()
    })
}

/// What is said when some values could not be found out.
pub(crate) fn problem_text(answers: &Answers) -> String {
    let problems = match answers.problems.as_slice() {
        [one] => one.clone(),
        several => format!("[{}]", several.join(", ")),
    };
    format!("Sync status feedback failed with error {problems}")
}

fn value((name, scalar): &(String, Scalar)) -> FeedbackValue {
    let mut field_value = FieldValue::default();
    match scalar {
        Scalar::Integer(integer) => {
            field_value.kind = ValueType::Integer;
            field_value.integer = Some(*integer);
        }
        Scalar::String(text) => {
            field_value.kind = ValueType::String;
            field_value.string = Some(text.clone());
        }
        Scalar::Boolean(boolean) => {
            field_value.kind = ValueType::Boolean;
            field_value.boolean = Some(*boolean);
        }
        Scalar::Json(json) => {
            field_value.kind = ValueType::JsonRaw;
            field_value.json_raw = Some(json.clone());
        }
        // Only scripts give bytes, and no ManifestWork has scripts.
        Scalar::Bytes(bytes) => {
            field_value.kind = ValueType::String;
            field_value.string = Some(String::from_utf8_lossy(bytes).into_owned());
        }
    }
    FeedbackValue {
        name: name.clone(),
        field_value,
        ..FeedbackValue::default()
    }
}

/// The status of a complete work whose spec changed: it stays complete.
pub fn settled(previous: &ManifestWorkStatus, generation: i64) -> ManifestWorkStatus {
    let mut status = previous.clone();
    for found in &mut status.conditions {
        if found.type_ == condition::COMPLETE {
            found.observed_generation = Some(generation);
        }
    }
    status
}

/// The status of a work that is being removed: what it waits for is in the message.
pub fn deleting(
    previous: &ManifestWorkStatus,
    generation: i64,
    waiting: &[String],
    now: Timestamp,
) -> ManifestWorkStatus {
    let text = deleting_text(message::MANIFEST_WORK_DELETING, waiting);
    let mut conditions = Conditions::new(&previous.conditions, now);
    conditions.set(ConditionUpdate {
        name: condition::DELETING,
        status: TRUE,
        reason: reason::WORK_DELETING,
        message: &text,
        generation: Some(generation),
    });
    ManifestWorkStatus {
        conditions: conditions.finish(),
        ..previous.clone()
    }
}

/// How many objects a message names; of more it says how many there are.
const NAMED_AT_MOST: usize = 10;

pub(crate) fn deleting_text(start: &str, waiting: &[String]) -> String {
    if waiting.is_empty() {
        return start.to_owned();
    }
    let named = waiting
        .iter()
        .take(NAMED_AT_MOST)
        .cloned()
        .collect::<Vec<_>>()
        .join("; ");
    let more = waiting.len().saturating_sub(NAMED_AT_MOST);
    let rest = if more > 0 {
        format!("; and {more} more")
    } else {
        String::new()
    };
    format!("{start}: waiting for {named}{rest}")
}

#[cfg(test)]
mod tests;
