//! When a policy is evaluated again.

use bellwether_api::policy::{ConfigurationPolicy, TemplateCompliance};
use bellwether_go::duration::GoDuration;
use jiff::{SignedDuration, Timestamp};

use super::reason;

/// What a policy waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// Nothing: it is evaluated now.
    Now,
    /// A change of an object that it has looked at.
    Watch,
    /// A moment.
    At(Timestamp),
    /// A change of the policy itself.
    Never,
}

/// How long a policy with an interval that cannot be read waits.
const FALLBACK: SignedDuration = SignedDuration::from_secs(10);

/// Says when a policy is evaluated next. `last` is when this process evaluated it last.
pub fn next_evaluation(policy: &ConfigurationPolicy, last: Option<Timestamp>) -> Trigger {
    let status = policy.status.as_ref();
    let state = status.and_then(|status| status.compliant.as_ref());
    let generation = status.and_then(|status| status.last_evaluated_generation);
    let Some(last) = last else {
        return Trigger::Now;
    };
    let is_known = matches!(
        state,
        Some(TemplateCompliance::Compliant | TemplateCompliance::NonCompliant)
    );
    if policy.metadata.deletion_timestamp.is_some()
        || generation != policy.metadata.generation
        || !is_known
        || is_recreation_open(policy)
    {
        return Trigger::Now;
    }
    let interval = policy.spec.evaluation_interval.as_ref();
    let interval = interval.and_then(|interval| match state {
        Some(TemplateCompliance::Compliant) => interval.compliant.as_deref(),
        _ => interval.noncompliant.as_deref(),
    });
    match interval.unwrap_or_default() {
        "" | "watch" => Trigger::Watch,
        "never" => Trigger::Never,
        interval => {
            let interval = interval
                .parse::<GoDuration>()
                .map_or(FALLBACK, GoDuration::to_signed);
            last.checked_add(interval)
                .map_or(Trigger::Never, Trigger::At)
        }
    }
}

/// Whether an object was deleted to be created again, and was not gone in time.
fn is_recreation_open(policy: &ConfigurationPolicy) -> bool {
    let details = policy.status.iter().flat_map(|s| &s.compliancy_details);
    let mut conditions = details.flat_map(|detail| &detail.conditions);
    conditions.any(|condition| {
        let message = condition.message.as_deref().unwrap_or_default();
        condition.reason.as_deref() == Some(reason::UPDATE_ERROR)
            && message.contains("timed out waiting for the object to delete during recreate")
    })
}
