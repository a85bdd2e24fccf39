//! How a cluster goes from some works to others without losing objects on the way.
//!
//! An object may move from one work to another because a template outgrows a work. Its old work lets go of
//! it only after the new one has it, so that the agent sees two owners for a moment instead of none. A
//! cluster that comes to belong to another placement keeps its works: they only change their label.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bellwether_api::meta::TRUE;
use bellwether_api::work::names::{condition, finalizer, label};
use bellwether_api::work::{ManifestWork, ManifestWorkSpec};
use serde_json::Value;

use super::wanted::{Labels, Wanted};
use super::{Observed, Outlook, Plan, is_same, key_of, label_of, part_of};
use crate::lifecycle::find;

/// True if a work has these labels, but for the placement that it was written for.
pub(super) fn has_labels(work: &ManifestWork, wanted: &Labels) -> bool {
    let is_other = |(key, _): &(&String, &String)| *key != label::PLACEMENT_NAME;
    let there = work.metadata.labels.iter().flatten().filter(is_other);
    there.eq(wanted.iter().filter(is_other))
}

/// Relabels works that were written for another placement. Their content is right: nothing else changes, and
/// nothing is rolled out.
pub(super) fn adopt(wanted: &Wanted<'_>, there: &[&Arc<ManifestWork>], plan: &mut Plan) {
    for work in there {
        let Ok(part) = part_of(work).parse() else {
            continue;
        };
        let labels = wanted.labels(part);
        let is_kept = work.metadata.deletion_timestamp.is_none();
        if is_kept && work.metadata.labels.as_ref() != Some(&*labels) {
            let mut work = ManifestWork {
                status: None,
                ..ManifestWork::clone(work)
            };
            work.metadata.labels = Some(Labels::clone(&labels));
            plan.write.push(work);
        }
    }
}

/// How a part of what a cluster should have stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HandoverState {
    /// It is written, and the agent has seen it.
    Settled,
    /// It is written.
    Unseen,
    /// It is yet to be written.
    Different,
}

/// Writes the parts that are not as they should be, under the names that they have, and deletes those
/// that are too many.
pub(super) fn write(parts: &[ManifestWork], there: &[&Arc<ManifestWork>], plan: &mut Plan) {
    // Two works of one part are left from two placements that had both chosen the cluster.
    let known = |part: &ManifestWork| {
        let same = |work: &&&Arc<ManifestWork>| part_of(work) == part_of(part);
        let is_other = |work: &&Arc<ManifestWork>| work.metadata.labels != part.metadata.labels;
        there.iter().filter(same).copied().min_by_key(is_other)
    };
    let standings: Vec<HandoverState> = parts
        .iter()
        .map(|part| match known(part) {
            Some(work) if is_same(part, work) && is_seen(work) => HandoverState::Settled,
            Some(work) if is_same(part, work) => HandoverState::Unseen,
            _ => HandoverState::Different,
        })
        .collect();
    let different =
        || (0..parts.len()).filter(|index| standings[*index] == HandoverState::Different);
    let waits = |index: usize| {
        let work = known(&parts[index]).filter(|work| parts.len() > 1 && is_applied(work));
        work.is_some_and(|work| loses(work, index, parts, &standings))
    };
    let mut ready: Vec<usize> = different().filter(|index| !waits(*index)).collect();
    if ready.is_empty() && !standings.contains(&HandoverState::Unseen) {
        // Parts that wait for each other would do so forever.
        ready = different().collect();
    }
    for index in ready {
        let part = &parts[index];
        match known(part) {
            Some(work) if work.metadata.deletion_timestamp.is_some() => {}
            Some(work) => plan.write.push(replaced(work, part)),
            None => plan.write.push(part.clone()),
        }
    }
    let is_settled = standings.iter().all(|it| *it == HandoverState::Settled);
    for work in there {
        let is_known = |part: &ManifestWork| known(part).is_some_and(|it| Arc::ptr_eq(it, work));
        let is_surplus = !parts.iter().any(is_known);
        let may_go = is_settled || !is_applied(work);
        if is_surplus && may_go && work.metadata.deletion_timestamp.is_none() {
            plan.delete.push(key_of(&work.metadata));
        }
    }
}

/// Whether a work would lose objects to parts that do not have them yet.
fn loses(work: &ManifestWork, index: usize, parts: &[ManifestWork], all: &[HandoverState]) -> bool {
    let (before, after) = (objects(&work.spec), objects(&parts[index].spec));
    let mut lost = before.difference(&after).peekable();
    if lost.peek().is_none() {
        return false;
    }
    let lost: BTreeSet<_> = lost.copied().collect();
    parts
        .iter()
        .zip(all)
        .enumerate()
        .any(|(other, (part, it))| {
            other != index
                && *it != HandoverState::Settled
                && !objects(&part.spec).is_disjoint(&lost)
        })
}

/// A work with the content that it should have; what others gave it stays, but for its labels.
fn replaced(work: &ManifestWork, part: &ManifestWork) -> ManifestWork {
    let mut work = ManifestWork {
        spec: part.spec.clone(),
        status: None,
        ..work.clone()
    };
    work.metadata.labels.clone_from(&part.metadata.labels);
    let annotations = work.metadata.annotations.get_or_insert_default();
    annotations.extend(part.metadata.annotations.clone().unwrap_or_default());
    work
}

/// Deletes works of clusters that no placement chooses any more. Works of a placement that does not exist
/// stay.
pub(super) fn delete_unwanted(
    observed: &Observed<'_>,
    owners: &BTreeMap<&str, &str>,
    outlook: &Outlook<'_>,
    plan: &mut Plan,
) {
    for work in observed.works {
        let placement = label_of(work, label::PLACEMENT_NAME).unwrap_or_default();
        let cluster = work.metadata.namespace.as_deref().unwrap_or_default();
        if !owners.contains_key(cluster)
            && !outlook.missing.contains(&placement)
            && work.metadata.deletion_timestamp.is_none()
        {
            plan.delete.push(key_of(&work.metadata));
        }
    }
}

/// Whether an agent has something to remove when a work goes: otherwise nothing can be lost.
fn is_applied(work: &ManifestWork) -> bool {
    let finalizers = work.metadata.finalizers.as_ref();
    finalizers.is_some_and(|all| all.iter().any(|name| name == finalizer::MANIFEST_WORK))
}

/// Whether the agent has reported on the present content of a work, or never will.
fn is_seen(work: &ManifestWork) -> bool {
    let status = work.status.as_ref();
    let conditions = status.map_or(&[][..], |status| &status.conditions);
    let is_complete = find(conditions, condition::COMPLETE).is_some_and(|it| it.status == TRUE);
    let applied = find(conditions, condition::APPLIED);
    is_complete || applied.is_some_and(|it| it.observed_generation == work.metadata.generation)
}

/// Which objects a work has.
fn objects(spec: &ManifestWorkSpec) -> BTreeSet<[&str; 4]> {
    let manifests = spec.workload.as_ref().map(|it| it.manifests.as_slice());
    let manifests = manifests.unwrap_or_default().iter();
    manifests
        .map(|manifest| {
            [
                "/apiVersion",
                "/kind",
                "/metadata/namespace",
                "/metadata/name",
            ]
            .map(|pointer| text(manifest, pointer))
        })
        .collect()
}

fn text<'a>(manifest: &'a Value, pointer: &str) -> &'a str {
    let found = manifest.pointer(pointer).and_then(Value::as_str);
    found.unwrap_or_default()
}
