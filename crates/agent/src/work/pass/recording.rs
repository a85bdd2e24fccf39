//! What a work has on the cluster, on record: before it is created, and after it has been seen.

use std::collections::BTreeSet;

use bellwether_api::meta::TRUE;
use bellwether_api::work::names::{annotation, condition};
use bellwether_apply::ObjectId;
use bellwether_apply::record::Entry;
use bellwether_work::record;
use bellwether_work::status::Report;
use serde_json::{Map, json};

use super::slots::{Mapped, Slot};
use super::{Applied, Pass};
use crate::work::AgentError;
use crate::work::hub::HubWork;
use crate::work::records::{self, NewRecord, Record};

impl Pass<'_> {
    /// Makes sure that all that may be created is on record.
    pub(super) async fn with_record(
        &self,
        work: &HubWork,
        record: Option<Record>,
        slots: &[Slot],
    ) -> Result<Record, AgentError> {
        let wanted: Vec<Entry> = slots
            .iter()
            .filter(|slot| !slot.is_complete)
            .filter_map(|slot| slot.mapped.as_ref().ok())
            .map(Mapped::entry)
            .collect();
        let labels = work.metadata().labels.as_ref();
        let failed = || AgentError::at("recording what is about to be applied");
        let new = NewRecord {
            work_api: work.work_api(),
            name: &self.key.record,
            work: work.name(),
            namespace: work.namespace(),
            hub_hash: &self.shared.hub_hash,
            agent_id: self.shared.agent_id(),
            labels,
            intent: &wanted,
        };
        let record = match record {
            Some(record) => record,
            None => self.records.create(&new).await.map_err(failed())?,
        };
        // Another ID of this agent takes over what it applies, so that it is evicted when the work
        // vanishes.
        let record = if super::is_ours(self.shared, &record) {
            record
        } else {
            let id = self.shared.agent_id();
            let taken = self.records.take_over(&record, id).await;
            taken.map_err(failed())?
        };
        let mut change = records::missing_metadata(&record, labels);
        if let Some(intent) = record.entries().intent_with(&wanted) {
            let metadata = change.get_or_insert_with(|| json!({}));
            metadata["annotations"] = records::intent_annotation(&intent);
        }
        let record = match change {
            Some(metadata) => self
                .records
                .patch_metadata(&record, metadata)
                .await
                .map_err(failed())?,
            None => record,
        };
        if record.eviction_start.is_some() {
            return self
                .records
                .set_eviction(&record, None)
                .await
                .map_err(failed());
        }
        Ok(record)
    }

    /// Writes what is on the cluster and what is complete, where the record does not say so.
    pub(super) async fn write_record(
        &self,
        work: &HubWork,
        record: Record,
        slots: &[Slot],
        applied: &Applied,
    ) -> Result<(), AgentError> {
        let failed = || AgentError::at("recording what was applied");
        let record = match &applied.change.applied {
            None => record,
            Some(entries) => {
                let entries = record::applied_resources(entries, &record.applied);
                self.records
                    .set_status(&record, &entries, record.eviction_start)
                    .await
                    .map_err(failed())?
            }
        };
        let mut annotations = json!({});
        let uid = work.metadata().uid.as_deref().unwrap_or_default();
        let known = record.completed(uid);
        let mut completed = completed(slots, applied);
        if slots.iter().any(|slot| slot.mapped.is_err()) {
            // What is not served now may be complete all the same.
            completed.extend(known.iter().cloned());
        }
        if completed != known {
            let text = record::write_completed(uid, &completed);
            annotations[annotation::COMPLETED] = text.into();
        }
        if let Some(intent) = &applied.change.intended {
            annotations[annotation::INTENT] =
                records::intent_annotation(intent)[annotation::INTENT].take();
        }
        if annotations.as_object().is_some_and(Map::is_empty) {
            return Ok(());
        }
        self.records
            .patch_metadata(&record, json!({ "annotations": annotations }))
            .await
            .map_err(failed())?;
        Ok(())
    }
}

/// The objects of a work that are complete, by what is known and what was just concluded.
fn completed(slots: &[Slot], applied: &Applied) -> BTreeSet<ObjectId> {
    let is_concluded = |report: &Report| {
        let mut conclusions = report.conclusions.iter().flatten();
        conclusions.any(|it| it.condition == condition::COMPLETE && it.status == TRUE)
    };
    let complete = slots
        .iter()
        .zip(&applied.reports)
        .filter(|(slot, report)| slot.is_complete || is_concluded(report));
    complete
        .filter_map(|(slot, _)| slot.mapped.as_ref().ok())
        .map(|mapped| mapped.id.clone())
        .collect()
}
