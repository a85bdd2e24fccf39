//! How far a cluster is, by what its works say of themselves.

use std::sync::Arc;

use bellwether_api::meta::{Condition, FALSE, TRUE};
use bellwether_api::work::ManifestWork;
use bellwether_api::work::names::{annotation, condition};
use bellwether_placement::rollout::{ClusterStatus, GroupKey, Status};
use jiff::Timestamp;

use crate::lifecycle::find;

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

/// A cluster that cannot be given works.
pub(super) fn impossible(cluster: &str, group: &GroupKey) -> ClusterStatus {
    ClusterStatus::new(cluster, group.clone(), Status::Failed, None)
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
    let since = |time: Timestamp| Some(time.max(written?));
    // A work that is complete is left alone, also when its content changes: there is nothing to
    // wait for. A Job that failed is complete, too.
    let complete = find(conditions, condition::COMPLETE).filter(|found| found.status == TRUE);
    if let Some(complete) = complete {
        let degraded = find(conditions, condition::DEGRADED);
        return match is_true_since(work, degraded, condition::DEGRADED) {
            Some(failed) => (Status::Failed, Some(failed)),
            None => (Status::Succeeded, Some(complete.last_transition_time.0)),
        };
    }
    let (Some(applied), Some(progressing)) =
        (current(condition::APPLIED), current(condition::PROGRESSING))
    else {
        return (Status::Progressing, written);
    };
    let on_its_way = is_true_since(work, Some(progressing), condition::PROGRESSING);
    let degraded = is_true_since(work, current(condition::DEGRADED), condition::DEGRADED);
    match (on_its_way, degraded) {
        (Some(_), Some(degraded)) => (Status::Failed, since(degraded)),
        (Some(progressing), None) => (Status::Progressing, since(progressing)),
        (None, _) if progressing.status == FALSE && applied.status == TRUE => {
            (Status::Succeeded, since(progressing.last_transition_time.0))
        }
        (None, _) => (
            Status::Progressing,
            since(progressing.last_transition_time.0),
        ),
    }
}

/// Since when a condition holds for a work or for one of its manifests: one that is degraded is enough,
/// whatever the work as a whole says.
fn is_true_since(
    work: &ManifestWork,
    of_work: Option<&Condition>,
    name: &str,
) -> Option<Timestamp> {
    let status = work.status.as_ref();
    let resources = status.and_then(|status| status.resource_status.as_ref());
    let manifests = resources.map_or(&[][..], |resources| &resources.manifests);
    let of_manifests = manifests
        .iter()
        .filter_map(|manifest| find(&manifest.conditions, name));
    let holds = |found: &&Condition| found.status == TRUE;
    let of_work = of_work.filter(holds);
    // The work says it since the first manifest does.
    let since = match of_work {
        Some(found) => Some(found),
        None => of_manifests
            .filter(holds)
            .min_by_key(|it| it.last_transition_time.0),
    };
    since.map(|found| found.last_transition_time.0)
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
