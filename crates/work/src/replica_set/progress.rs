//! How far a cluster is, by what its works say of themselves.

use std::sync::Arc;

use bellwether_api::meta::{FALSE, TRUE};
use bellwether_api::work::ManifestWork;
use bellwether_api::work::names::{annotation, condition};
use bellwether_placement::rollout::{ClusterStatus, GroupKey, Status};
use jiff::Timestamp;

use crate::lifecycle::find;
use crate::status::rollout_view::{self, Seen};

/// How far a cluster is whose works have the content that is being rolled out.
pub(super) fn of_cluster(
    cluster: &str,
    group: &GroupKey,
    works: &[&Arc<ManifestWork>],
) -> ClusterStatus {
    let parts: Vec<(Status, Option<Timestamp>)> = works.iter().map(|work| of_work(work)).collect();
    // One part that failed makes the cluster fail; one that is on its way keeps it so.
    let worst = [Status::Failed, Status::Progressing, Status::Succeeded]
        .into_iter()
        .find(|status| parts.iter().any(|(part, _)| part == status))
        .unwrap_or(Status::Progressing);
    let since = parts
        .iter()
        .filter(|(status, _)| *status == worst)
        .filter_map(|(_, since)| *since)
        .max();
    ClusterStatus::new(cluster, group.clone(), worst, since)
}

/// How far one work is, and since when. What it said of an earlier content does not count.
fn of_work(work: &ManifestWork) -> (Status, Option<Timestamp>) {
    let conditions = work
        .status
        .as_ref()
        .map_or(&[][..], |status| &status.conditions);
    let written = written_at(work);
    let current = |name: &str| {
        find(conditions, name).filter(|found| found.observed_generation == work.metadata.generation)
    };
    let since = |seen: Seen| Some(seen.since.max(written?));
    // A work that is complete is left alone, also when its content changes: there is nothing to
    // wait for. A Job that failed is complete, too.
    let complete = find(conditions, condition::COMPLETE).filter(|found| found.status == TRUE);
    if let Some(complete) = complete {
        return match rollout_view::true_since(work, condition::DEGRADED) {
            Some(failed) => (Status::Failed, Some(failed)),
            None => (Status::Succeeded, Some(complete.last_transition_time.0)),
        };
    }
    let (Some(applied), Some(progressing)) = (
        current(condition::APPLIED),
        rollout_view::of_any(work, condition::PROGRESSING),
    ) else {
        return (Status::Progressing, written);
    };
    let degraded = rollout_view::of_any(work, condition::DEGRADED);
    let degraded = degraded.filter(|seen| seen.status == TRUE);
    match (progressing.status, degraded) {
        (TRUE, Some(degraded)) => (Status::Failed, since(degraded)),
        (FALSE, _) if applied.status == TRUE => (Status::Succeeded, since(progressing)),
        _ => (Status::Progressing, since(progressing)),
    }
}

/// When the present content of a work was written.
pub(super) fn written_at(work: &ManifestWork) -> Option<Timestamp> {
    let annotations = work.metadata.annotations.as_ref();
    let text = annotations.and_then(|map| map.get(annotation::ROLLED_OUT_AT));
    let created = work.metadata.creation_timestamp.as_ref().map(|time| time.0);
    text.and_then(|text| text.parse().ok()).or(created)
}

/// Whether a cluster has come to the end well.
pub(super) fn is_done(status: &ClusterStatus) -> bool {
    status.status == Status::Succeeded
}
