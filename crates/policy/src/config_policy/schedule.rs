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

/// Time that a template has to itself for one repair, in the long run.
const REPAIR_INTERVAL: SignedDuration = SignedDuration::from_secs(5);

/// How many repairs may come at once.
const REPAIRS_AT_ONCE: i32 = 3;

/// Repairs of one template. Drift is repaired at once; who changes the same object again and again, for another
/// policy or by itself, does not keep a cluster busy.
#[derive(Debug, Clone, Copy, Default)]
pub struct Repairs {
    generations: [Option<i64>; 2],
    /// When the intervals of all repairs so far are over.
    paid_until: Option<Timestamp>,
}

impl Repairs {
    /// Until when a template only looks; nothing if it may repair now. Where its policy or the template itself has
    /// another generation than before, it begins without repairs.
    pub fn rest(&mut self, generations: [Option<i64>; 2], now: Timestamp) -> Option<Timestamp> {
        if self.generations != generations {
            *self = Self {
                generations,
                paid_until: None,
            };
        }
        let credit = REPAIR_INTERVAL.saturating_mul(REPAIRS_AT_ONCE - 1);
        let end = self.paid_until?.checked_sub(credit).ok()?;
        (end > now).then_some(end)
    }

    /// Notes a repair.
    pub fn add(&mut self, now: Timestamp) {
        let begin = self.paid_until.map_or(now, |until| until.max(now));
        self.paid_until = begin.checked_add(REPAIR_INTERVAL).ok();
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

#[cfg(test)]
mod tests {
    use super::*;

    const GENERATIONS: [Option<i64>; 2] = [Some(1), Some(1)];

    #[test]
    fn a_few_repairs_come_at_once_and_further_ones_one_after_the_other() {
        let at = |seconds| Timestamp::from_second(seconds).unwrap();
        let mut repairs = Repairs::default();
        for _ in 0..3 {
            assert_eq!(repairs.rest(GENERATIONS, at(100)), None);
            repairs.add(at(100));
        }
        assert_eq!(repairs.rest(GENERATIONS, at(100)), Some(at(105)));
        assert_eq!(repairs.rest(GENERATIONS, at(104)), Some(at(105)));
        assert_eq!(repairs.rest(GENERATIONS, at(105)), None);
        repairs.add(at(105));
        assert_eq!(repairs.rest(GENERATIONS, at(105)), Some(at(110)));
        assert_eq!(
            repairs.rest([Some(2), Some(1)], at(105)),
            None,
            "another version"
        );
        repairs.add(at(105));
        assert_eq!(repairs.rest([Some(2), Some(1)], at(105)), None);
        let mut late = Repairs::default();
        late.add(Timestamp::MAX);
        assert_eq!(late.rest([None, None], at(100)), None);
    }
}
