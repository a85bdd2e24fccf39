//! The front of the work API: its works become ManifestWorks, its configurations become questions,
//! and reports become its status.

mod config;

use bellwether_api::meta::{ByteString, FALSE, TRUE};
use bellwether_api::multicluster::names::{condition, message, reason};
use bellwether_api::multicluster::{
    FieldValue, ManifestCondition, StatusSyncResult, SyncValue, ValueType, Work,
    WorkManifestConfig, WorkResourceIdentifier, WorkStatus,
};
use bellwether_api::work::{
    ManifestResourceMeta, ManifestResourceStatus, ManifestWork, ManifestWorkSpec,
    ManifestWorkStatus, Workload,
};
use jiff::{SignedDuration, Timestamp};

use crate::conditions::{ConditionUpdate, Conditions};
use crate::feedback::{Answers, Scalar};
use crate::status::{Feedback, Report, availability_words, failure_words, problem_text};

pub use config::{config_for, standing};

/// How often values are read if a configuration does not say, in seconds.
const FREQUENCY: i32 = 60;

/// The work as the engine sees it: objects, conditions of each, and nothing else to be said.
pub fn as_manifest_work(work: &Work) -> ManifestWork {
    let workload = work.spec.workload.as_ref().map(|template| Workload {
        manifests: template.manifests.clone(),
        ..Workload::default()
    });
    let status = work.status.as_ref().map(|status| ManifestWorkStatus {
        conditions: status.conditions.clone(),
        resource_status: Some(ManifestResourceStatus {
            manifests: status
                .manifest_conditions
                .iter()
                .map(|entry| bellwether_api::work::ManifestCondition {
                    resource_meta: meta_of(&entry.identifier),
                    conditions: entry.conditions.clone(),
                    ..bellwether_api::work::ManifestCondition::default()
                })
                .collect(),
            ..ManifestResourceStatus::default()
        }),
        ..ManifestWorkStatus::default()
    });
    ManifestWork {
        metadata: work.metadata.clone(),
        spec: ManifestWorkSpec {
            workload,
            ..ManifestWorkSpec::default()
        },
        status,
        ..ManifestWork::default()
    }
}

fn meta_of(identifier: &WorkResourceIdentifier) -> ManifestResourceMeta {
    let text = |field: &Option<String>| field.clone().unwrap_or_default();
    ManifestResourceMeta {
        ordinal: identifier
            .ordinal
            .and_then(|ordinal| i32::try_from(ordinal).ok())
            .unwrap_or_default(),
        group: text(&identifier.group),
        version: text(&identifier.version),
        kind: text(&identifier.kind),
        resource: text(&identifier.resource),
        name: text(&identifier.name),
        namespace: text(&identifier.namespace),
        ..ManifestResourceMeta::default()
    }
}

fn identifier_of(meta: &ManifestResourceMeta) -> WorkResourceIdentifier {
    let text = |field: &str| (!field.is_empty()).then(|| field.to_owned());
    WorkResourceIdentifier {
        ordinal: Some(i64::from(meta.ordinal)),
        group: text(&meta.group),
        version: text(&meta.version),
        kind: text(&meta.kind),
        resource: text(&meta.resource),
        namespace: text(&meta.namespace),
        name: text(&meta.name),
        ..WorkResourceIdentifier::default()
    }
}

/// When the values of an object were last looked at, and since when they are the same.
#[derive(Debug, Clone, PartialEq)]
pub struct Pace {
    /// What the values were asked with; another question starts over.
    question: (Option<i64>, Option<String>),
    reported: Timestamp,
    changed: Timestamp,
    answers: Answers,
}

/// How often values are read.
pub fn period(config: &WorkManifestConfig) -> SignedDuration {
    let sync = config.spec.resource_status_sync.as_ref();
    let seconds = sync.and_then(|sync| sync.frequency_seconds);
    SignedDuration::from_secs(i64::from(seconds.unwrap_or(FREQUENCY).max(1)))
}

/// Whether values are read now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// They are.
    Now,
    /// They are at this time, because others came shortly before.
    At(Timestamp),
    /// They are not any more: they have been the same for as long as the configuration asks for.
    Stopped,
}

impl Pace {
    /// Whether the values of an object are read now: at most once in a period, and until they
    /// have been the same for so many periods. What went wrong is read again in each period.
    ///
    /// An agent that watches reads values when they change. The threshold then counts the periods
    /// in which they would have been read in vain.
    pub fn turn(
        known: Option<&Self>,
        work: &Work,
        config: &WorkManifestConfig,
        now: Timestamp,
    ) -> Turn {
        let Some(known) = known.filter(|known| known.question == question(work, config)) else {
            return Turn::Now;
        };
        let sync = config.spec.resource_status_sync.as_ref();
        let period = period(config);
        let threshold = sync
            .and_then(|sync| sync.stop_threshold)
            .unwrap_or_default();
        let after = |start: Timestamp, periods: i32| {
            let span = period.checked_mul(periods).unwrap_or(SignedDuration::MAX);
            start.checked_add(span).unwrap_or(Timestamp::MAX)
        };
        let is_well = known.answers.problems.is_empty();
        if threshold > 0 && is_well && now >= after(known.changed, threshold) {
            return Turn::Stopped;
        }
        let next = after(known.reported, 1);
        if now >= next {
            Turn::Now
        } else {
            Turn::At(next)
        }
    }

    /// Remembers that the values were looked at. Values that are the same do not use up the turn:
    /// the next that differ are reported at once.
    pub fn after(
        known: Option<&Self>,
        work: &Work,
        config: &WorkManifestConfig,
        answers: &Answers,
        now: Timestamp,
    ) -> Self {
        let question = question(work, config);
        match known {
            Some(known) if known.question == question && known.answers == *answers => known.clone(),
            _ => Self {
                question,
                // Nothing was found and nothing reported so far: the first value is reported at once.
                reported: if answers.values.is_empty() {
                    Timestamp::MIN
                } else {
                    now
                },
                changed: now,
                answers: answers.clone(),
            },
        }
    }

    /// Whether there are values among these that were not there in the last report. Those
    /// are reported at once: anyone who asks for what a workload says when it is ready has waited for it.
    pub fn is_outgrown_by(&self, answers: &Answers) -> bool {
        let told = |name: &String| self.answers.values.iter().any(|(known, _)| known == name);
        answers.values.iter().any(|(name, _)| !told(name))
    }

    /// The object was written again: how long its values have been the same is counted from now.
    pub fn restart(&mut self, now: Timestamp) {
        self.changed = now;
    }

    /// The values of the last report.
    pub fn answers(&self) -> &Answers {
        &self.answers
    }
}

fn question(work: &Work, config: &WorkManifestConfig) -> (Option<i64>, Option<String>) {
    let metadata = &config.metadata;
    let version = format!(
        "{} {}",
        metadata.uid.as_deref().unwrap_or_default(),
        metadata.generation.unwrap_or_default()
    );
    (work.metadata.generation, Some(version))
}

/// The status of a work of the work API after its manifests were looked at.
pub fn assemble(
    previous: &WorkStatus,
    generation: i64,
    reports: &[Report],
    now: Timestamp,
) -> WorkStatus {
    let manifests: Vec<ManifestCondition> = reports
        .iter()
        .map(|report| {
            let known = previous.manifest_conditions.iter().find(|entry| {
                let meta = meta_of(&entry.identifier);
                ManifestResourceMeta {
                    ordinal: report.meta.ordinal,
                    ..meta
                } == report.meta
            });
            manifest(known, report, now)
        })
        .collect();
    let is_applied = !reports.is_empty() && reports.iter().all(|report| report.applied.is_ok());
    let mut conditions = Conditions::new(&previous.conditions, now);
    conditions.set(ConditionUpdate {
        name: condition::APPLIED,
        status: if is_applied { TRUE } else { FALSE },
        reason: if is_applied {
            reason::APPLIED_WORK_COMPLETE
        } else {
            reason::APPLIED_WORK_FAILED
        },
        message: if is_applied {
            message::APPLY_WORK_COMPLETE
        } else {
            message::APPLY_WORK_FAILED
        },
        generation: Some(generation),
    });
    WorkStatus {
        conditions: conditions.finish(),
        manifest_conditions: manifests,
        other: previous.other.clone(),
    }
}

fn manifest(
    known: Option<&ManifestCondition>,
    report: &Report,
    now: Timestamp,
) -> ManifestCondition {
    let mut conditions = Conditions::new(known.map_or(&[], |known| &known.conditions), now);
    let failure = report.applied.as_ref().err().map(failure_words);
    conditions.set(match &failure {
        None => ConditionUpdate {
            name: condition::APPLIED,
            status: TRUE,
            reason: reason::APPLIED_MANIFEST_COMPLETE,
            message: message::APPLY_MANIFEST_COMPLETE,
            // In this interface it is the generation of the object, not of the work.
            generation: report.object_generation,
        },
        Some((why, text)) => ConditionUpdate {
            name: condition::APPLIED,
            status: FALSE,
            reason: why,
            message: text,
            generation: None,
        },
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
    let status_sync = match &report.feedback {
        Feedback::Unchanged => known.and_then(|known| known.status_sync.clone()),
        Feedback::Unwanted => {
            conditions.retain(|known| known.type_ != condition::STATUS_SYNCED);
            None
        }
        Feedback::Answers(answers) => Some(synced(answers, &mut conditions)),
    };
    ManifestCondition {
        identifier: identifier_of(&report.meta),
        conditions: conditions.finish(),
        status_sync,
        other: known.map(|known| known.other.clone()).unwrap_or_default(),
    }
}

fn synced(answers: &Answers, conditions: &mut Conditions) -> StatusSyncResult {
    let values: Vec<SyncValue> = answers.values.iter().map(value).collect();
    let text = problem_text(answers);
    let update = if answers.problems.is_empty() {
        ConditionUpdate {
            name: condition::STATUS_SYNCED,
            status: TRUE,
            reason: reason::STATUS_SYNCED,
            message: "",
            generation: None,
        }
    } else {
        ConditionUpdate {
            name: condition::STATUS_SYNCED,
            status: FALSE,
            reason: reason::STATUS_SYNC_FAILED,
            message: &text,
            generation: None,
        }
    };
    conditions.set(update);
    StatusSyncResult {
        values,
        ..StatusSyncResult::default()
    }
}

fn value((name, scalar): &(String, Scalar)) -> SyncValue {
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
            field_value.kind = ValueType::ByteArray;
            field_value.byte_array = Some(ByteString(json.clone().into_bytes()));
        }
        Scalar::Bytes(bytes) => {
            field_value.kind = ValueType::ByteArray;
            field_value.byte_array = Some(ByteString(bytes.clone()));
        }
    }
    SyncValue {
        name: name.clone(),
        field_value,
        ..SyncValue::default()
    }
}

#[cfg(test)]
mod tests;
