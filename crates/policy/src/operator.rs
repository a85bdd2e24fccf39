//! OperatorPolicies: whether a cluster has an operator, installed by the Operator Lifecycle Manager, and
//! what installs or removes it.
//!
//! [`evaluate`] is called again and again: what it has to know, and what has to be written, it asks for. It
//! looks at everything that an operator consists of, each with a condition of its own. Conditions, reasons
//! and messages are those of upstream.
//!
//! | module | decides |
//! |---|---|
//! | `wanted` | what the policy asks for, with what it leaves to the catalog filled in |
//! | `install` | the OperatorGroup and the Subscription |
//! | `resolution` | what becomes of a Subscription whose operator cannot be found |
//! | `approval` | whether the InstallPlan goes ahead |
//! | `running` | the version, kinds, deployments and the catalog of the operator |
//! | `removal` | what goes if the operator must not be there |

mod approval;
mod configured;
mod finding;
mod install;
mod look;
mod notices;
mod removal;
mod resolution;
mod running;
#[cfg(test)]
mod tests;
mod wanted;

use bellwether_api::meta::{Condition, FALSE, MicroTime, TRUE, Time, set_condition};
use bellwether_api::policy::{
    ComplianceState, EvaluationHistory, OperatorPolicy, OperatorPolicyStatus, RelatedObject,
};
use bellwether_template::World;
use jiff::{SignedDuration, Timestamp};

use crate::config_policy::{Facts, MAX_HISTORY, Need};
use crate::template::Question;
use finding::{Finding, INVALID, Part};
use look::{Look, PACKAGE, Stop};

/// Time between what is found before a repair and after it.
const SPACING: SignedDuration = SignedDuration::from_micros(10);

/// How long after an intervention is due a policy is evaluated. Times of objects are cut to seconds.
const AFTER_INTERVENTION: SignedDuration = SignedDuration::from_secs(1);

/// What is found of an operator: a status to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct OperatorReport {
    /// The status.
    pub status: OperatorPolicyStatus,
    /// What is reported.
    pub message: String,
    /// Whether it is news.
    pub is_news: bool,
}

/// What an evaluation comes to.
#[derive(Debug, Clone, PartialEq)]
pub struct OperatorConclusion {
    /// One after the other; a repair has one before it and one after it.
    pub reports: Vec<OperatorReport>,
    /// Whether it is worth evaluating again although nothing changes that can be watched.
    pub retries: bool,
    /// When to evaluate again at the latest.
    pub again_at: Option<Timestamp>,
}

/// True for what no server lets anybody watch.
pub fn is_unwatchable(question: &Question) -> bool {
    let (Question::Resource { api_version, .. }
    | Question::Object { api_version, .. }
    | Question::List { api_version, .. }) = question;
    api_version == PACKAGE.api_version
}

/// Evaluates a policy as far as the facts go. The error is what is needed first.
pub fn evaluate(
    policy: &OperatorPolicy,
    facts: &Facts,
    world: &World<'_>,
    now: Timestamp,
) -> Result<OperatorConclusion, Vec<Need>> {
    let assessed = |is_before| {
        let look = Look {
            facts,
            is_before,
            now,
        };
        assess(policy, &look, world)
    };
    let after = assessed(false)?;
    let mut reporter = Reporter {
        policy,
        status: policy.status.clone().unwrap_or_default(),
        reports: Vec::new(),
    };
    if facts.has_written() {
        let before = assessed(true)?;
        if !reporter.has_just_said(&before) {
            reporter.report(before, now);
        }
    }
    let retries = after.retries;
    let again_at = after.intervention.filter(|it| *it > now);
    let again_at = again_at.and_then(|it| it.checked_add(AFTER_INTERVENTION).ok());
    let later = now.checked_add(SPACING).unwrap_or(now);
    reporter.report(after, later);
    Ok(OperatorConclusion {
        reports: reporter.reports,
        retries,
        again_at,
    })
}

/// Everything that is found of an operator.
struct Assessment {
    findings: Vec<Finding>,
    label: Option<String>,
    overlapping: Vec<String>,
    /// When a Subscription is helped that is stuck.
    intervention: Option<Timestamp>,
    retries: bool,
}

fn assess(
    policy: &OperatorPolicy,
    look: &Look<'_>,
    world: &World<'_>,
) -> Result<Assessment, Vec<Need>> {
    let mut assessment = Assessment {
        findings: Vec::new(),
        label: None,
        overlapping: Vec::new(),
        intervention: None,
        retries: false,
    };
    let wanted = match wanted::wanted(policy, look, world) {
        Ok(wanted) => wanted,
        Err(Stop::Needs(needs)) => return Err(needs),
        Err(Stop::Failed(error)) => {
            assessment.retries = true;
            wanted::Wanted {
                errors: vec![error],
                ..wanted::Wanted::default()
            }
        }
    };
    assessment.retries |= wanted.waits_for_package;
    assessment.findings.push(validity(&wanted.errors));
    assessment.label = wanted.subscription.as_ref().map(wanted::label);
    // Of several enforced policies about one operator, none changes anything.
    let is_disputed = !wanted.overlapping.is_empty();
    assessment.overlapping = wanted.overlapping;
    let subscription = wanted.subscription.filter(|_| !is_disputed);
    let versions = &wanted.versions;

    let group = install::group(policy, wanted.group.as_ref(), look);
    let is_group_right = assessment.take(Part::Group, group)?.unwrap_or(false);
    let installed = install::subscription(policy, subscription.as_ref(), is_group_right, look);
    let subscribed = assessment.take(Part::Subscription, installed)?;
    let subscribed = subscribed.unwrap_or_default();
    assessment.intervention = subscribed.intervention;
    let live = subscribed.object.as_ref();
    let plan = approval::install_plan(policy, versions, live, look);
    assessment.take(Part::InstallPlan, plan.map(|it| ((), it)))?;
    let version = running::service_version(policy, versions, live, look);
    let version = assessment.take(Part::ServiceVersion, version)?.flatten();
    let definitions = running::definitions(policy, live, look);
    assessment.take(Part::Definitions, definitions.map(|it| ((), it)))?;
    let deployments = running::deployments(policy, version, look);
    assessment.take(Part::Deployments, deployments.map(|it| ((), it)))?;
    let catalog = running::catalog(policy, live, look);
    assessment.take(Part::Catalog, catalog.map(|it| ((), it)))?;
    let deprecations = notices::deprecations(policy, live);
    assessment.findings.extend(deprecations);
    if let Some(channels) = notices::channels(policy, live, look).transpose() {
        assessment.take(Part::Channels, channels.map(|it| ((), it)))?;
    }
    Ok(assessment)
}

fn validity(errors: &[String]) -> Finding {
    if errors.is_empty() {
        let message = "the policy spec is valid".to_owned();
        return Finding::new(Part::Policy, true, "PolicyValidated", message);
    }
    Finding::new(Part::Policy, false, INVALID, errors.join(", "))
}

impl Assessment {
    /// Notes what is found of one part. Where the server does not answer, others go on.
    fn take<T>(
        &mut self,
        part: Part,
        found: Result<(T, Finding), Stop>,
    ) -> Result<Option<T>, Vec<Need>> {
        match found {
            Ok((value, finding)) => {
                self.findings.push(finding);
                Ok(Some(value))
            }
            Err(Stop::Needs(needs)) => Err(needs),
            Err(Stop::Failed(error)) => {
                self.retries = true;
                self.findings.push(Finding::failed(part, &error));
                Ok(None)
            }
        }
    }

    fn state(&self) -> ComplianceState {
        if self.findings.iter().all(Finding::is_good) {
            ComplianceState::Compliant
        } else {
            ComplianceState::NonCompliant
        }
    }

    fn message(&self) -> String {
        let findings = self.findings.iter().filter(|it| !it.is_unsaid);
        let texts: Vec<&str> = findings.map(|it| it.message.as_str()).collect();
        format!("{}; {}", self.state(), texts.join(", "))
    }
}

/// Writes reports one after the other.
struct Reporter<'r> {
    policy: &'r OperatorPolicy,
    status: OperatorPolicyStatus,
    reports: Vec<OperatorReport>,
}

impl Reporter<'_> {
    /// Whether the history ends with the same.
    fn has_just_said(&self, assessment: &Assessment) -> bool {
        let last = self.status.history.first();
        let last = last.and_then(|last| last.message.as_ref());
        last == Some(&assessment.message())
    }

    fn report(&mut self, assessment: Assessment, now: Timestamp) {
        let generation = self.policy.metadata.generation;
        let is_news =
            !self.has_just_said(&assessment) || self.status.observed_generation != generation;
        let state = assessment.state();
        let message = assessment.message();
        let is_compliant = state == ComplianceState::Compliant;
        let status = &mut self.status;
        status.compliant = Some(state.as_str().to_owned());
        status.observed_generation = generation;
        status.resolved_subscription_label = assessment.label;
        status.overlapping_policies = assessment.overlapping;
        status.subscription_intervention_time = assessment.intervention.map(Time);
        let mut conditions: Vec<(&str, &str, String, String)> = Vec::new();
        for finding in assessment.findings {
            let kind = finding.part.condition();
            conditions.push((kind, finding.status, finding.reason, finding.message));
            if let (Some(kind), Some(objects)) = (finding.part.kind(), finding.objects) {
                replace(&mut status.related_objects, kind.name, objects);
            }
        }
        let of_all = if is_compliant { TRUE } else { FALSE };
        let reason = state.as_str().to_owned();
        conditions.push(("Compliant", of_all, reason, message.clone()));
        for (kind, value, reason, message) in conditions {
            let condition = Condition {
                type_: kind.to_owned(),
                status: value.to_owned(),
                // A reason has to be a word; the Operator Lifecycle Manager may leave it out.
                reason: if reason.is_empty() {
                    "Unknown".to_owned()
                } else {
                    reason
                },
                message,
                last_transition_time: Time(now),
                observed_generation: None,
            };
            set_condition(&mut status.conditions, condition);
        }
        status.conditions.sort_by(|a, b| a.type_.cmp(&b.type_));
        if is_news {
            let entry = EvaluationHistory {
                last_timestamp: Some(MicroTime(now)),
                message: Some(message.clone()),
                ..EvaluationHistory::default()
            };
            status.history.insert(0, entry);
            status.history.truncate(MAX_HISTORY);
        }
        self.reports.push(OperatorReport {
            status: status.clone(),
            message,
            is_news,
        });
    }
}

/// Replaces the objects of one kind. Who created them is kept.
fn replace(listed: &mut Vec<RelatedObject>, kind: &str, mut objects: Vec<RelatedObject>) {
    let is_kind = |it: &RelatedObject| it.object.kind.as_deref() == Some(kind);
    for object in &mut objects {
        let old = listed.iter().find(|old| old.object == object.object);
        let old = old.and_then(|old| old.properties.as_ref());
        if let (Some(old), Some(new)) = (old, &mut object.properties)
            && old.uid == new.uid
            && new.created_by_policy.is_none()
        {
            new.created_by_policy = old.created_by_policy;
        }
    }
    listed.retain(|it| !is_kind(it));
    listed.append(&mut objects);
    let key = |it: &RelatedObject| (it.object.kind.clone(), it.object.metadata.name.clone());
    listed.sort_by_key(key);
}
