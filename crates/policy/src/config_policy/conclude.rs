//! What is reported of an evaluation: statuses one after the other, each with its message.

use bellwether_api::meta::{MicroTime, TRUE, Time};
use bellwether_api::policy::{
    ComplianceCondition, CompliancyDetail, ConfigurationPolicy, ConfigurationPolicyStatus,
    EvaluationHistory, RelatedObject, TemplateCompliance,
};
use bellwether_template::World;
use jiff::Timestamp;
use serde_json::Value;

use super::custom_message;
use super::evaluation::Evaluation;
use super::message::Summary;
use super::object::ObservedObject;
use super::reason;

/// Entries that a history keeps.
pub(crate) const MAX_HISTORY: usize = 10;

/// Bytes of a message.
const MAX_MESSAGE: usize = 4096;

/// What stands at the end of a message that was cut.
const CUT: &str = "...[truncated]";

/// The type of a condition that something is wrong.
pub(crate) const VIOLATION: &str = "violation";
/// The type of a condition that everything is as defined.
pub(crate) const NOTIFICATION: &str = "notification";

/// One report: a status to be written, and a message if it is news.
#[derive(Debug, Clone, PartialEq)]
pub struct Report {
    /// The status.
    pub status: ConfigurationPolicyStatus,
    /// What compliance events and the history say.
    pub message: String,
    /// Whether it is news, so that an event is recorded.
    pub is_news: bool,
}

/// What is reported of an evaluation.
#[derive(Debug, Clone, PartialEq)]
pub struct Conclusion {
    /// One after the other; a repair has one before it and one after it.
    pub reports: Vec<Report>,
    /// Objects that the policy spoke of before, and does not any more. Nothing if they are not known.
    pub orphans: Vec<RelatedObject>,
    /// Why another evaluation is worth it.
    pub error: Option<String>,
}

impl Evaluation {
    /// Says what is reported. `now` is when.
    pub fn conclude(mut self, now: Timestamp, world: &World<'_>) -> Conclusion {
        let error = self.error();
        let before = self.policy.status.take().unwrap_or_default();
        let mut reporter = Reporter {
            policy: self.policy.clone(),
            status: before.clone(),
            now,
            world,
            observed: std::mem::take(&mut self.observed),
            is_over: false,
            reports: Vec::new(),
        };
        if let Some(end) = &self.early_end {
            let is_news = reporter.set_only(&end.summary);
            let mut orphans = Vec::new();
            if !end.keeps_related {
                orphans = std::mem::take(&mut reporter.status.related_objects);
            }
            reporter.report(is_news);
            return Conclusion {
                reports: reporter.reports,
                orphans,
                error,
            };
        }
        reporter
            .status
            .compliancy_details
            .truncate(self.results.len());
        let mut is_news = false;
        for (index, result) in self.results.iter().enumerate() {
            let Some(result) = result else { continue };
            is_news |= reporter.template(index, &result.summaries);
        }
        let related = with_history_of(std::mem::take(&mut self.related), &before.related_objects);
        let mut orphans = Vec::new();
        if !self.keeps_children {
            orphans = before.related_objects;
            orphans.retain(|old| !related.iter().any(|new| new.object == old.object));
        }
        reporter.status.related_objects = related;
        reporter.is_over = true;
        reporter.report(is_news);
        Conclusion {
            reports: reporter.reports,
            orphans,
            error,
        }
    }
}

/// Says that objects of a policy that is being deleted are not gone yet.
pub(crate) fn cleanup_failed(
    policy: &ConfigurationPolicy,
    message: String,
    now: Timestamp,
    world: &World<'_>,
) -> Report {
    let mut policy = policy.clone();
    let mut reporter = Reporter {
        status: policy.status.take().unwrap_or_default(),
        policy,
        now,
        world,
        observed: Vec::new(),
        is_over: true,
        reports: Vec::new(),
    };
    let is_news = reporter.set_only(&Summary {
        is_compliant: false,
        reason: reason::CLEANUP_ERROR.to_owned(),
        message,
    });
    reporter.report(is_news);
    reporter.reports.pop().unwrap_or(Report {
        status: reporter.status,
        message: String::new(),
        is_news,
    })
}

/// Sorts objects, and keeps who created them and which they were.
fn with_history_of(
    mut related: Vec<RelatedObject>,
    before: &[RelatedObject],
) -> Vec<RelatedObject> {
    related.sort_by(|left, right| {
        let key = |object: &RelatedObject| {
            let object = &object.object;
            (
                object.kind.clone(),
                object.metadata.namespace.clone(),
                object.metadata.name.clone(),
            )
        };
        key(left).cmp(&key(right))
    });
    for object in &mut related {
        let Some(properties) = &mut object.properties else {
            continue;
        };
        if properties.created_by_policy != Some(false) {
            continue;
        }
        let old = before.iter().find(|old| old.object == object.object);
        if let Some(old) = old.and_then(|old| old.properties.as_ref()) {
            // An object of another UID is another one, which somebody else has created.
            if old.uid == properties.uid {
                properties.created_by_policy = old.created_by_policy;
            }
        }
    }
    related
}

/// Writes reports one after the other.
struct Reporter<'r> {
    policy: ConfigurationPolicy,
    status: ConfigurationPolicyStatus,
    now: Timestamp,
    world: &'r World<'r>,
    /// The objects that messages may show.
    observed: Vec<ObservedObject>,
    /// True once everything has been repaired that is to be.
    is_over: bool,
    reports: Vec<Report>,
}

impl Reporter<'_> {
    /// Adds what one object template went through, and tells whether it is news. All but the last
    /// is reported at once.
    fn template(&mut self, index: usize, summaries: &[Summary]) -> bool {
        let Some((last, before)) = summaries.split_last() else {
            return false;
        };
        if !before.is_empty() && !last.is_compliant && !self.clone_status().set(index, last) {
            // What cannot be repaired is not reported again and again.
            return false;
        }
        let mut is_news = false;
        for summary in before {
            if self.set(index, summary) {
                is_news = true;
                self.report(true);
            }
        }
        self.set(index, last) || is_news
    }

    fn clone_status(&self) -> Self {
        Self {
            policy: self.policy.clone(),
            status: self.status.clone(),
            now: self.now,
            world: self.world,
            observed: Vec::new(),
            is_over: false,
            reports: Vec::new(),
        }
    }

    /// Sets what is true of the whole policy, and forgets single object templates.
    fn set_only(&mut self, summary: &Summary) -> bool {
        let is_news = self.set(0, summary);
        self.status.compliancy_details.truncate(1);
        is_news
    }

    /// Sets what is true of one object template, and tells whether it is news.
    fn set(&mut self, index: usize, summary: &Summary) -> bool {
        let state = if summary.reason == reason::CLEANUP_ERROR {
            TemplateCompliance::Terminating
        } else if summary.is_compliant {
            TemplateCompliance::Compliant
        } else {
            TemplateCompliance::NonCompliant
        };
        let message = format!("{}{}", summary.message, self.never_again(summary));
        let details = &mut self.status.compliancy_details;
        while details.len() <= index {
            details.push(CompliancyDetail::default());
        }
        let detail = &mut details[index];
        let mut is_news = detail.compliant.as_ref() != Some(&state);
        detail.compliant = Some(state);
        let condition = ComplianceCondition {
            type_: if summary.is_compliant {
                NOTIFICATION.to_owned()
            } else {
                VIOLATION.to_owned()
            },
            status: Some(TRUE.to_owned()),
            last_transition_time: Some(Time(self.now)),
            reason: (!summary.reason.is_empty()).then(|| summary.reason.clone()),
            message: Some(message),
            other: bellwether_api::meta::Unknown::new(),
        };
        let is_same = |known: &ComplianceCondition| {
            known.type_ == condition.type_
                && known.status == condition.status
                && known.reason == condition.reason
                && known.message == condition.message
        };
        if !detail.conditions.last().is_some_and(is_same) {
            detail.conditions.pop();
            detail.conditions.push(condition);
            is_news = true;
        }
        is_news
    }

    /// What is added to a message where it is the last one.
    fn never_again(&self, summary: &Summary) -> String {
        let interval = self.policy.spec.evaluation_interval.as_ref();
        let (field, interval) = if summary.is_compliant {
            (
                "compliant",
                interval.and_then(|interval| interval.compliant.as_deref()),
            )
        } else {
            (
                "noncompliant",
                interval.and_then(|interval| interval.noncompliant.as_deref()),
            )
        };
        if interval != Some("never") {
            return String::new();
        }
        format!(
            ". This policy will not be evaluated again due to spec.evaluationInterval.{field} being set to \"never\"."
        )
    }

    /// Adds a report of the status as it is now.
    fn report(&mut self, is_news: bool) {
        let details = &self.status.compliancy_details;
        let is_wrong =
            |detail: &CompliancyDetail| detail.compliant == Some(TemplateCompliance::NonCompliant);
        let state = if self.policy.metadata.deletion_timestamp.is_some() {
            Some(TemplateCompliance::Terminating)
        } else if details.is_empty() {
            None
        } else if details.iter().any(is_wrong) {
            Some(TemplateCompliance::NonCompliant)
        } else {
            Some(TemplateCompliance::Compliant)
        };
        let generation = self.policy.metadata.generation;
        let is_news = is_news
            || self.status.compliant != state
            || self.status.last_evaluated_generation != generation;
        self.status.compliant = state;
        let second = self.now.as_second();
        let second = Timestamp::from_second(second).unwrap_or(self.now);
        self.status.last_evaluated = Some(second.to_string());
        self.status.last_evaluated_generation = generation;
        let message = shortened(custom_message::message(
            &self.policy,
            &self.status,
            &self.objects(),
            self.world,
        ));
        let last = self.status.history.first();
        let is_repeated = last.is_some_and(|last| last.message.as_deref() == Some(&message));
        if is_news || !is_repeated {
            self.status.history.insert(
                0,
                EvaluationHistory {
                    // Two reports of one evaluation differ by a microsecond.
                    last_timestamp: Some(MicroTime(self.moment())),
                    message: Some(message.clone()),
                    ..EvaluationHistory::default()
                },
            );
            self.status.history.truncate(MAX_HISTORY);
        }
        self.reports.push(Report {
            status: self.status.clone(),
            message,
            is_news,
        });
    }

    /// The objects as they are at this moment.
    fn objects(&self) -> Vec<&Value> {
        let objects = self.observed.iter();
        objects
            .filter_map(|it| {
                if self.is_over {
                    it.left.as_ref()
                } else {
                    it.found.as_ref()
                }
            })
            .collect()
    }

    /// When the next report is made.
    fn moment(&self) -> Timestamp {
        let later = i64::try_from(self.reports.len()).unwrap_or_default() * 10;
        let later = jiff::SignedDuration::from_micros(later);
        self.now.checked_add(later).unwrap_or(self.now)
    }
}

/// A message of at most the bytes that one may have.
fn shortened(mut message: String) -> String {
    if message.len() > MAX_MESSAGE {
        let mut end = MAX_MESSAGE - CUT.len();
        while !message.is_char_boundary(end) {
            end -= 1;
        }
        message.truncate(end);
        message.push_str(CUT);
    }
    message
}
