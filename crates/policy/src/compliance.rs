//! What a cluster reports of a policy: the history of each template, and what follows from all.

use bellwether_api::meta::{MicroTime, Time};
use bellwether_api::policy::{
    ComplianceHistory, ComplianceState, Policy, PolicyStatus, RolloutStatus, TemplateDetails,
    TemplateMeta,
};
use jiff::Timestamp;

use crate::propagation::is_enforced;

/// Entries that a history keeps.
const MAX_HISTORY: usize = 10;

/// Equal messages that are not further apart are one.
const SAME: i128 = 5_000;

/// One message of a template, and when it was reported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// When.
    pub at: Timestamp,
    /// The state, and what was found.
    pub text: String,
}

/// What is known of one template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateReport {
    /// The name of the template.
    pub name: String,
    /// Its latest messages, in any order.
    pub messages: Vec<Message>,
    /// Whether it was evaluated in the version that the policy asks for, or cannot be.
    pub is_current: bool,
}

/// The name of the event that reports a message: upstream takes the time of it from there.
pub fn event_name(policy: &str, at: Timestamp) -> String {
    format!("{policy}.{:x}", at.as_nanosecond())
}

/// When an entry was reported: the name of its event is more precise than its time.
fn moment(entry: &ComplianceHistory) -> i128 {
    let name = entry.event_name.as_deref().unwrap_or_default();
    let hex = name.rsplit_once('.').map_or("", |(_, hex)| hex);
    match i128::from_str_radix(hex, 16) {
        Ok(nanoseconds) => nanoseconds,
        Err(_) => entry
            .last_timestamp
            .as_ref()
            .map_or(0, |time| time.0.as_nanosecond()),
    }
}

/// When the newest message of any template was reported.
pub fn newest(details: &[TemplateDetails]) -> Option<Timestamp> {
    let entries = details.iter().flat_map(|details| &details.history);
    let nanoseconds = entries.map(moment).max()?;
    Timestamp::from_nanosecond(nanoseconds).ok()
}

/// The newest message of a template in a status.
pub fn latest<'s>(status: &'s PolicyStatus, template: &str) -> Option<&'s str> {
    let is_it = |details: &&TemplateDetails| {
        let meta = details.template_meta.as_ref();
        meta.and_then(|meta| meta.name.as_deref()) == Some(template)
    };
    let details = status.details.iter().find(is_it)?;
    details.history.first()?.message.as_deref()
}

/// The state that a message begins with.
fn state_of(message: &str) -> ComplianceState {
    let starts = |prefix: &str| {
        let start = message.get(..prefix.len());
        start.is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    if starts("compliant") {
        ComplianceState::Compliant
    } else if starts("pending") {
        ComplianceState::Pending
    } else {
        ComplianceState::NonCompliant
    }
}

/// What the templates of a policy report, in their order, with what they reported before.
pub fn details(
    policy: &str,
    reports: &[TemplateReport],
    before: &[TemplateDetails],
) -> Vec<TemplateDetails> {
    let details = reports.iter().map(|report| {
        let is_it = |details: &&TemplateDetails| {
            let meta = details.template_meta.as_ref();
            meta.and_then(|meta| meta.name.as_ref()) == Some(&report.name)
        };
        let old = before.iter().find(is_it);
        let mut history: Vec<ComplianceHistory> =
            old.map(|old| old.history.clone()).unwrap_or_default();
        for message in &report.messages {
            let name = event_name(policy, message.at);
            if history
                .iter()
                .any(|entry| entry.event_name.as_ref() == Some(&name))
            {
                continue;
            }
            let second = Timestamp::from_second(message.at.as_second());
            history.push(ComplianceHistory {
                last_timestamp: Some(Time(second.unwrap_or(message.at))),
                message: Some(message.text.clone()),
                event_name: Some(name),
                ..ComplianceHistory::default()
            });
        }
        // Newest first; of equal times the order stays.
        history.sort_by_key(|entry| std::cmp::Reverse(moment(entry)));
        history.dedup_by(|older, newer| {
            older.message == newer.message && moment(newer) - moment(older) <= SAME
        });
        history.truncate(MAX_HISTORY);
        let newest = history.first().and_then(|entry| entry.message.as_deref());
        TemplateDetails {
            template_meta: Some(TemplateMeta {
                name: Some(report.name.clone()),
                ..TemplateMeta::default()
            }),
            compliant: newest.map(state_of),
            history,
            ..TemplateDetails::default()
        }
    });
    details.collect()
}

/// What follows for the whole policy. Where a template has not reported, what was true before stays.
pub fn overall(
    details: &[TemplateDetails],
    before: Option<ComplianceState>,
) -> Option<ComplianceState> {
    let has = |state: &ComplianceState| {
        details
            .iter()
            .any(|details| details.compliant.as_ref() == Some(state))
    };
    if has(&ComplianceState::NonCompliant) {
        Some(ComplianceState::NonCompliant)
    } else if has(&ComplianceState::Pending) {
        Some(ComplianceState::Pending)
    } else if details.iter().any(|details| details.compliant.is_none()) {
        before
    } else {
        Some(ComplianceState::Compliant)
    }
}

/// The status of a replica on the hub, after its cluster has evaluated it.
///
/// Of the rollout the agent only says how it ended, and only where the hub has let it begin.
pub fn replica_status(
    replica: &Policy,
    reports: &[TemplateReport],
    now: Timestamp,
) -> PolicyStatus {
    let mut status = replica.status.clone().unwrap_or_default();
    let name = replica.metadata.name.as_deref().unwrap_or_default();
    status.details = details(name, reports, &status.details);
    status.compliant = overall(&status.details, status.compliant.take());
    if !reports.iter().all(|report| report.is_current) {
        return status;
    }
    status.observed_generation = replica.metadata.generation;
    let is_open = matches!(
        status.rollout_status,
        Some(
            RolloutStatus::Progressing
                | RolloutStatus::Succeeded
                | RolloutStatus::Failed
                | RolloutStatus::TimeOut
        )
    );
    let outcome = match &status.compliant {
        Some(ComplianceState::Compliant) => Some(RolloutStatus::Succeeded),
        // Whoever only wants to know has what was wanted.
        Some(ComplianceState::NonCompliant) if !is_enforced(&replica.spec) => {
            Some(RolloutStatus::Succeeded)
        }
        Some(ComplianceState::NonCompliant) => Some(RolloutStatus::Failed),
        _ => None,
    };
    if let Some(outcome) = outcome
        && is_open
        && status.rollout_status.as_ref() != Some(&outcome)
    {
        status.rollout_status = Some(outcome);
        status.rollout_status_last_transition_time = Some(MicroTime(now));
    }
    status
}

#[cfg(test)]
mod tests;
