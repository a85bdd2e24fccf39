//! Clusters that failed and are tried again.
//!
//! A retry is recorded on the works of the cluster. Its clocks restart then: a failure from before
//! counts again only if it lasts longer than [`GRACE`], and a deadline is counted from the retry.

use std::sync::Arc;

use bellwether_api::work::ManifestWork;
use bellwether_api::work::names::annotation;
use bellwether_placement::rollout::{ClusterStatus, Reason, Status};
use jiff::{SignedDuration, Timestamp};

use super::{Placed, Plan};

/// How long a cluster that still fails after a retry counts as in progress. Workloads need about as
/// long to notice that what they lacked is there.
const GRACE: SignedDuration = SignedDuration::from_mins(1);

/// How far a cluster is, with clocks that restart when it was tried again; and when that has to be
/// looked at again.
pub(super) fn restart(
    known: ClusterStatus,
    works: &[&Arc<ManifestWork>],
    now: Timestamp,
) -> (ClusterStatus, Option<Timestamp>) {
    let Some(retried) = works.iter().filter_map(|work| retried_at(work)).max() else {
        return (known, None);
    };
    let is_older = known.last_transition.is_none_or(|since| since <= retried);
    if !is_older || !matches!(known.status, Status::Failed | Status::Progressing) {
        return (known, None);
    }
    let end = retried.checked_add(GRACE).unwrap_or(Timestamp::MAX);
    let is_forgiven = known.status == Status::Failed && now < end;
    let restarted = ClusterStatus {
        status: if is_forgiven {
            Status::Progressing
        } else {
            known.status
        },
        last_transition: Some(retried),
        ..known
    };
    (restarted, is_forgiven.then_some(end))
}

/// Writes the time of a retry to the works of every cluster that had failed by then.
pub(super) fn record(placed: &Placed<'_>, retried_at: Timestamp, plan: &mut Plan) {
    for known in &placed.statuses {
        let reason = placed.decision.reason(&known.cluster);
        let has_failed = matches!(
            reason,
            Some(Reason::Failed { .. } | Reason::TimedOut { .. })
        );
        let is_older = known
            .last_transition
            .is_some_and(|since| since < retried_at);
        let Some(works) = placed.current.get(&*known.cluster) else {
            continue;
        };
        if !(has_failed && is_older) {
            continue;
        }
        for work in works {
            let mut work = ManifestWork::clone(work);
            work.status = None;
            let annotations = work.metadata.annotations.get_or_insert_default();
            let key = annotation::ROLLOUT_RETRIED_AT.to_owned();
            annotations.insert(key, retried_at.to_string());
            plan.write.push(work);
        }
    }
}

fn retried_at(work: &ManifestWork) -> Option<Timestamp> {
    let annotations = work.metadata.annotations.as_ref()?;
    annotations
        .get(annotation::ROLLOUT_RETRIED_AT)?
        .parse()
        .ok()
}
