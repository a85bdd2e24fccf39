//! What still counts once manifests are complete: whether their objects go with the work.

use bellwether_api::work::names::{FIELD_MANAGER, condition};
use bellwether_apply::Ownership;
use bellwether_runtime::RequestError;
use bellwether_work::lifecycle::find;
use bellwether_work::options;
use bellwether_work::status;

use super::{Pass, Slot};
use crate::work::AgentError;
use crate::work::hub::{HubWork, Status};
use crate::work::records::Record;

impl Pass<'_> {
    /// Takes note of a changed spec of a work that is complete.
    pub(super) async fn settle(
        &self,
        work: &HubWork,
        record: Option<&Record>,
    ) -> Result<(), AgentError> {
        if let Some(record) = record {
            for slot in self.slots(work, Some(record)).await? {
                self.own(work, record, &slot)
                    .await
                    .map_err(AgentError::at("changing the owners of a complete object"))?;
            }
        }
        let previous = work.work.status.clone().unwrap_or_default();
        let new = status::settled(&previous, work.generation());
        self.shared
            .hub
            .set_status(work, &Status::ManifestWork(new))
            .await
            .map_err(AgentError::at("reporting"))?;
        Ok(())
    }

    /// Gives a complete object its owners, if the spec changed since that was last done.
    pub(super) async fn realign(
        &self,
        work: &HubWork,
        record: &Record,
        slot: &Slot,
    ) -> Result<(), RequestError> {
        let conditions = slot.known.as_ref().map(|known| known.conditions.as_slice());
        let applied = find(conditions.unwrap_or_default(), condition::APPLIED);
        if applied.is_some_and(|it| it.observed_generation == Some(work.generation())) {
            return Ok(());
        }
        self.own(work, record, slot).await
    }

    /// Gives a complete object the owners that the propagation policy asks for.
    async fn own(&self, work: &HubWork, record: &Record, slot: &Slot) -> Result<(), RequestError> {
        let Ok(mapped) = &slot.mapped else {
            return Ok(());
        };
        let entries = record.entries();
        let Some(uid) = entries.uid_of(&mapped.id) else {
            return Ok(());
        };
        let objects = &self.member.delivery.objects;
        let Some(live) = objects.get(&mapped.resource, &mapped.id).await? else {
            return Ok(());
        };
        if live["metadata"]["uid"] != uid || live["metadata"]["deletionTimestamp"].is_string() {
            return Ok(());
        }
        let ownership = Ownership::Reference {
            owner: &record.owner(),
            belongs: options::is_owned(&work.work.spec, &mapped.id),
        };
        let Some(patch) = ownership.realign(&live, FIELD_MANAGER) else {
            return Ok(());
        };
        let object = objects.merge(&mapped.resource, &mapped.id, &patch).await?;
        self.member.delivery.watches.note(&mapped.id, &object);
        Ok(())
    }
}
