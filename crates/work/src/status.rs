//! What an agent reports about a ManifestWork: conditions and values of each manifest, and of all
//! together. Every word of it is decided here.

use bellwether_api::meta::{Condition, FALSE, TRUE, UNKNOWN};
use bellwether_api::work::names::{condition, message, reason};
use bellwether_api::work::{
    FeedbackValue, FieldValue, ManifestCondition, ManifestResourceMeta, ManifestResourceStatus,
    ManifestWorkStatus, StatusFeedback, ValueType,
};
use jiff::Timestamp;

use crate::admission::NO_MANIFESTS;
use crate::conditions::{Conditions, Saying};
use crate::feedback::{Answers, Scalar};
use crate::lifecycle::{find, is_true};
use crate::rules::Conclusion;

/// Conditions of a manifest that do not come from rules.
const BUILT_IN: [&str; 3] = [
    condition::APPLIED,
    condition::AVAILABLE,
    condition::STATUS_FEEDBACK_SYNCED,
];

/// Conditions of which one manifest is enough to make them true of the work: it is not "on its way"
/// or "not as it should be" only when all manifests are.
const OF_ANY: [&str; 2] = [condition::PROGRESSING, condition::DEGRADED];

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
    /// What is said of conditions that rules have never concluded, because the object has not been
    /// seen.
    pub unseen: Vec<Conclusion>,
    /// The values that come back.
    pub feedback: Feedback,
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
/// With `rollout`, Progressing and Degraded are said of the work whatever rules it has: whoever
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
    for saying in of_work(&manifests) {
        conditions.say(saying.with(generation));
    }
    let mut named = vec![
        condition::APPLIED.to_owned(),
        condition::AVAILABLE.to_owned(),
    ];
    let mut aggregated = aggregate(&manifests, reports);
    if rollout {
        add_rollout_conditions(&manifests, &mut aggregated);
    }
    for saying in aggregated {
        conditions.say(saying.with(generation));
        named.push(saying.name);
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
    conditions.say_of_generation(Saying {
        name: condition::APPLIED,
        status,
        reason: why,
        message: &text,
        generation: Some(generation),
    });
    if let Some(availability) = &report.available {
        let (status, why, text) = availability_words(availability);
        conditions.say(Saying {
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
            conditions.say_of_generation(conclusion.saying(generation));
        }
    }
    for conclusion in &report.unseen {
        if find(previous, &conclusion.condition).is_none() {
            conditions.say_of_generation(conclusion.saying(generation));
        }
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
    let before = known.and_then(|known| known.status_feedback.clone());
    let mut synced = Saying {
        name: condition::STATUS_FEEDBACK_SYNCED,
        status: TRUE,
        reason: reason::NO_STATUS_FEEDBACK_SYNCED,
        message: "",
        generation: None,
    };
    let answers = match feedback {
        Feedback::Unchanged => return before,
        Feedback::Unwanted => {
            conditions.say(synced);
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
    if before.as_ref().is_none_or(|before| before.values == values) {
        conditions.say(synced);
    } else {
        conditions.say_anew(synced);
    }
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
    }
    FeedbackValue {
        name: name.clone(),
        field_value,
        ..FeedbackValue::default()
    }
}

/// Something said of a whole work.
#[derive(Debug, Clone)]
struct OfWork {
    name: String,
    status: &'static str,
    reason: &'static str,
    message: String,
}

impl OfWork {
    fn with(&self, generation: i64) -> Saying<'_> {
        Saying {
            name: &self.name,
            status: self.status,
            reason: self.reason,
            message: &self.message,
            generation: Some(generation),
        }
    }
}

/// Whether a work as a whole is applied, and available.
fn of_work(manifests: &[ManifestCondition]) -> Vec<OfWork> {
    let applied = manifests
        .iter()
        .all(|manifest| is_true(&manifest.conditions, condition::APPLIED))
        && !manifests.is_empty();
    let (status, why, text) = if applied {
        (
            TRUE,
            reason::APPLIED_MANIFEST_WORK_COMPLETE,
            message::APPLY_MANIFEST_WORK_COMPLETE,
        )
    } else {
        (
            FALSE,
            reason::APPLIED_MANIFEST_WORK_FAILED,
            // Without manifests there is none that could say why.
            if manifests.is_empty() {
                NO_MANIFESTS
            } else {
                message::APPLY_MANIFEST_WORK_FAILED
            },
        )
    };
    let applied = OfWork {
        name: condition::APPLIED.to_owned(),
        status,
        reason: why,
        message: text.to_owned(),
    };
    vec![applied, availability(manifests)]
}

fn availability(manifests: &[ManifestCondition]) -> OfWork {
    let total = manifests.len();
    let count = |wanted: &str| {
        let has = |manifest: &&ManifestCondition| {
            find(&manifest.conditions, condition::AVAILABLE)
                .is_some_and(|found| found.status == wanted)
        };
        manifests.iter().filter(has).count()
    };
    let (missing, unknown, available) = (count(FALSE), count(UNKNOWN), count(TRUE));
    let (status, why, text) = if missing > 0 {
        (
            FALSE,
            reason::RESOURCES_NOT_AVAILABLE,
            format!("{missing} of {total} resources are not available"),
        )
    } else if unknown > 0 {
        (
            UNKNOWN,
            reason::RESOURCES_STATUS_UNKNOWN,
            format!("{unknown} of {total} resources have unknown status"),
        )
    } else if available == 0 {
        (
            UNKNOWN,
            reason::RESOURCES_STATUS_UNKNOWN,
            // The trailing space is the peer's.
            "cannot get any available resource ".to_owned(),
        )
    } else {
        (
            TRUE,
            reason::RESOURCES_AVAILABLE,
            message::ALL_RESOURCES_AVAILABLE.to_owned(),
        )
    };
    OfWork {
        name: condition::AVAILABLE.to_owned(),
        status,
        reason: why,
        message: text,
    }
}

/// What rules say of the work: a condition holds if it holds for all manifests that have it; for
/// those in [`OF_ANY`], if it holds for one.
fn aggregate(manifests: &[ManifestCondition], reports: &[Report]) -> Vec<OfWork> {
    let mut names: Vec<&str> = Vec::new();
    for (manifest, report) in manifests.iter().zip(reports) {
        let of_rules = manifest
            .conditions
            .iter()
            .filter(|found| match &report.conclusions {
                Some(conclusions) => conclusions.iter().any(|new| new.condition == found.type_),
                None => !BUILT_IN.contains(&found.type_.as_str()),
            });
        names.extend(of_rules.map(|found| found.type_.as_str()));
    }
    names.sort_unstable();
    names.dedup();
    names
        .into_iter()
        .map(|name| {
            let found: Vec<&Condition> = manifests
                .iter()
                .filter_map(|manifest| find(&manifest.conditions, name))
                .collect();
            together(name, &found)
        })
        .collect()
}

fn together(name: &str, found: &[&Condition]) -> OfWork {
    let any = |status: &str| found.iter().any(|condition| condition.status == status);
    let is_of_any = OF_ANY.contains(&name);
    let (status, text) = match (is_of_any, any(TRUE), any(FALSE), any(UNKNOWN)) {
        (true, true, _, _) => (TRUE, format!("One or more manifests is {name}")),
        (true, false, _, false) => (FALSE, format!("No manifest is {name}")),
        (false, _, true, _) => (FALSE, format!("One or more manifests is not {name}")),
        (_, _, _, true) => (
            UNKNOWN,
            format!("Whether one or more manifests is {name} is unknown"),
        ),
        (false, _, false, false) => (TRUE, format!("All manifests are {name}")),
    };
    rule_saying(name, status, text)
}

fn rule_saying(name: &str, status: &'static str, message: String) -> OfWork {
    let reason = match status {
        TRUE => reason::CONDITION_RULES_PASSED,
        FALSE => reason::CONDITION_RULES_FAILED,
        _ => reason::CONDITION_RULE_INVALID,
    };
    OfWork {
        name: name.to_owned(),
        status,
        reason,
        message,
    }
}

/// What a rollout waits for: a work that could not be applied is on its way, and not as it should
/// be.
fn add_rollout_conditions(manifests: &[ManifestCondition], aggregated: &mut Vec<OfWork>) {
    let all = |name: &str| {
        manifests
            .iter()
            .all(|manifest| is_true(&manifest.conditions, name))
    };
    let is_applied = all(condition::APPLIED);
    let is_there = is_applied && all(condition::AVAILABLE);
    let facts = [
        (
            condition::PROGRESSING,
            !is_there,
            "One or more manifests is not there yet",
        ),
        (
            condition::DEGRADED,
            !is_applied,
            "One or more manifests could not be applied",
        ),
    ];
    for (name, holds, why) in facts {
        match aggregated.iter_mut().find(|known| known.name == name) {
            Some(known) if holds && known.status != TRUE => {
                *known = rule_saying(name, TRUE, why.to_owned());
            }
            Some(_) => {}
            None if holds => aggregated.push(rule_saying(name, TRUE, why.to_owned())),
            None => {
                aggregated.push(rule_saying(name, FALSE, format!("No manifest is {name}")));
            }
        }
    }
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
    conditions.say(Saying {
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
