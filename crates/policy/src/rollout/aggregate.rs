//! How far all clusters are together.

use bellwether_api::policy::names::reason;
use bellwether_api::policy::{PolicyStatus, RolloutStatus};
use bellwether_placement::rollout::{Decision, Reason, Spent, Wait};

use super::track::Track;
use super::{Mode, Notice, is_soaking};

/// How many failing clusters a sentence names.
const MOST_NAMED: usize = 3;

/// How far all clusters are: Progressing, Succeeded or Failed; nothing if there are none.
pub(super) fn stage(
    mode: &Mode,
    tracks: &[Track<'_>],
    decision: Option<&Decision>,
) -> Option<RolloutStatus> {
    if tracks.is_empty() {
        return None;
    }
    if decision.is_some_and(|it| it.breached) {
        return Some(RolloutStatus::Failed);
    }
    let is_running = tracks.iter().any(|track| {
        matches!(
            track.status,
            RolloutStatus::ToApply | RolloutStatus::Progressing
        )
    });
    let soaks = |it: &Decision| it.reasons.iter().any(|(_, reason)| is_soaking(reason));
    if is_running || decision.is_none_or(soaks) {
        return Some(RolloutStatus::Progressing);
    }
    let has_failed =
        |track: &Track<'_>| matches!(track.status, RolloutStatus::Failed | RolloutStatus::TimeOut);
    // Where clusters go one after the other, what is tolerated changes nothing.
    if !mode.is_progressive && tracks.iter().any(has_failed) {
        return Some(RolloutStatus::Failed);
    }
    Some(RolloutStatus::Succeeded)
}

/// What to record about the rollout as a whole.
pub(super) fn notices(
    before: Option<&PolicyStatus>,
    status: &PolicyStatus,
    mode: &Mode,
    decision: Option<&Decision>,
    tracks: &[Track<'_>],
) -> Vec<Notice> {
    let before = before.and_then(|it| it.rollout_status.as_ref());
    let stage = status.rollout_status.as_ref();
    if before == stage || !mode.is_progressive {
        return Vec::new();
    }
    let count = tracks.len();
    let (is_warning, message) = match (before, stage) {
        (_, None) => return Vec::new(),
        (_, Some(RolloutStatus::Succeeded)) => (
            false,
            format!("the rollout to {count} clusters is complete"),
        ),
        (_, Some(RolloutStatus::Failed)) => (true, stopped(decision, tracks)),
        (Some(RolloutStatus::Failed), Some(_)) => (false, "the rollout goes on".to_owned()),
        (_, Some(_)) => (false, format!("the rollout to {count} clusters begins")),
    };
    vec![Notice {
        is_warning,
        reason: reason::POLICY_ROLLOUT,
        message,
    }]
}

fn stopped(decision: Option<&Decision>, tracks: &[Track<'_>]) -> String {
    let mut text = "the rollout stopped".to_owned();
    if let Some(spent) = decision.and_then(exceeded) {
        text = format!("{text}: {spent}");
    }
    let failing: Vec<&str> = tracks
        .iter()
        .filter(|it| matches!(it.status, RolloutStatus::Failed | RolloutStatus::TimeOut))
        .map(|it| &**it.cluster)
        .collect();
    for cluster in failing.iter().take(MOST_NAMED) {
        text = format!("{text}; {cluster} does not comply");
    }
    match failing.len().saturating_sub(MOST_NAMED) {
        0 => text,
        more => format!("{text}; and {more} more"),
    }
}

/// The budget of failures that is exceeded.
pub(crate) fn exceeded(decision: &Decision) -> Option<&Spent> {
    decision
        .reasons
        .iter()
        .find_map(|(_, reason)| match reason {
            Reason::Failed {
                spent: Some(spent), ..
            }
            | Reason::TimedOut { spent: Some(spent) }
                if spent.failures > spent.tolerated =>
            {
                Some(&**spent)
            }
            Reason::Waits(wait) => match &**wait {
                Wait::Budget(spent) => Some(spent),
                _ => None,
            },
            _ => None,
        })
}
