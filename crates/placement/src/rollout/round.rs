//! One round of a rollout: where every cluster stands, and who starts with what.
//!
//! Whatever is rolled out, the caller knows for each cluster whether it has the present version. [`round`]
//! asks for that once per cluster, decides, and hands back what those get that may start.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;

use super::{ClusterStatus, Decision, GroupKey, Input, RolloutError, Status, decide};

/// Where a cluster stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VersionState<T> {
    /// It has the present version, and is this far since that time.
    Current(Status, Option<Timestamp>),
    /// It has another version, or none. This is what it gets when it starts.
    Behind(T),
    /// It cannot have the present version. It counts as failed, so that others may go on.
    Impossible(String),
}

/// What a round comes to.
#[derive(Debug, Clone, PartialEq)]
pub struct Round<T> {
    /// The clusters that start now, in order, with what they get.
    pub start: Vec<(Arc<str>, T)>,
    /// What is decided about all clusters.
    pub decision: Decision,
    /// What the decision knew: clusters that have the present version, cannot have it, or are in no group.
    pub statuses: Vec<ClusterStatus>,
    /// The clusters that cannot have the present version, and why.
    pub impossible: Vec<(Arc<str>, String)>,
    /// When to ask again if nothing changes.
    pub wake_at: Option<Timestamp>,
}

/// Decides a round. `input.existing` is what is known of clusters that are in no group any more; `standing` is
/// asked once for each of the others.
///
/// ```
/// use bellwether_placement::rollout::{Group, Input, VersionState, Status, Strategy, round};
///
/// let strategy = Strategy::from_json(&serde_json::json!({
///     "type": "Progressive",
///     "progressive": {"maxConcurrency": 1}
/// })).unwrap();
/// let groups = [Group::new("", 0, ["lyon", "oslo", "pisa"])];
/// let input = Input::new(&strategy, &groups, &[], jiff::Timestamp::UNIX_EPOCH);
/// let round = round(&input, |cluster, _| match &**cluster {
///     "lyon" => VersionState::Current(Status::Succeeded, None),
///     other => VersionState::Behind(format!("version 2 for {other}")),
/// }).unwrap();
/// assert_eq!(round.start, [("oslo".into(), "version 2 for oslo".to_owned())]);
/// ```
pub fn round<T>(
    input: &Input<'_>,
    mut standing: impl FnMut(&Arc<str>, &GroupKey) -> VersionState<T>,
) -> Result<Round<T>, RolloutError> {
    let mut statuses = Vec::new();
    let mut behind: HashMap<&Arc<str>, T> = HashMap::new();
    let mut impossible = Vec::new();
    let mut seen = HashSet::new();
    for group in input.groups {
        // Of a cluster that is in two groups, the first counts.
        for cluster in group.clusters.iter().filter(|it| seen.insert(&***it)) {
            let mut know = |status, since| {
                let known = ClusterStatus::new(cluster.clone(), group.key.clone(), status, since);
                statuses.push(known);
            };
            match standing(cluster, &group.key) {
                VersionState::Current(status, since) => know(status, since),
                VersionState::Behind(what) => drop(behind.insert(cluster, what)),
                VersionState::Impossible(why) => {
                    know(Status::Failed, None);
                    impossible.push((cluster.clone(), why));
                }
            }
        }
    }
    statuses.extend(input.existing.iter().cloned());
    let decision = decide(&Input {
        existing: &statuses,
        ..*input
    })?;
    let starting = decision.rollout.iter().map(|entry| &entry.cluster);
    let start = starting
        .filter_map(|cluster| Some((cluster.clone(), behind.remove(cluster)?)))
        .collect();
    let wait = decision.recheck_after;
    Ok(Round {
        start,
        wake_at: wait.and_then(|wait| input.now.checked_add(wait).ok()),
        decision,
        statuses,
        impossible,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::rollout::{Group, Strategy};

    #[test]
    fn every_cluster_is_asked_for_once_and_those_that_may_start_get_what_is_theirs() {
        let strategy = json!({"type": "Progressive", "maxConcurrency": 2, "maxFailures": 1,
            "progressDeadline": "1m"});
        let strategy = Strategy::from_flat_json(&strategy).unwrap();
        let groups = [
            Group::new("", 0, ["a", "b", "c"]),
            Group::new("", 1, ["c", "d", "e"]),
        ];
        let gone = ClusterStatus::new("z", groups[0].key.clone(), Status::Failed, None);
        let existing = [gone.clone()];
        let now = Timestamp::UNIX_EPOCH;
        let mut asked = Vec::new();
        let round = round(
            &Input::new(&strategy, &groups, &existing, now),
            |cluster, group| {
                asked.push((cluster.to_string(), group.index));
                match &**cluster {
                    "a" => VersionState::Impossible("it has no region".to_owned()),
                    "b" => VersionState::Current(Status::Progressing, Some(now)),
                    other => VersionState::Behind(other.to_uppercase()),
                }
            },
        )
        .unwrap();
        let expected = [("a", 0), ("b", 0), ("c", 0), ("d", 1), ("e", 1)];
        let expected: Vec<_> = expected
            .map(|(name, group)| (name.to_owned(), group))
            .into();
        assert_eq!(asked, expected);
        assert_eq!(round.start, [("c".into(), "C".to_owned())]);
        assert_eq!(
            round.impossible,
            [("a".into(), "it has no region".to_owned())]
        );
        assert_eq!(round.decision.removed, [gone]);
        assert_eq!(
            round.wake_at,
            now.checked_add(jiff::SignedDuration::from_mins(1)).ok()
        );
    }
}
