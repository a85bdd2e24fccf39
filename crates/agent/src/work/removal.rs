//! Works and records that go: objects first, then the record, then the work.

use bellwether_api::work::ManifestWorkSpec;
use bellwether_api::work::names::event;
use bellwether_apply::pass::{Pass, Pending, Pruning};
use bellwether_apply::record::{Entry, Record as Entries};
use bellwether_apply::{LiveState, ObjectId};
use bellwether_runtime::{Keeper, Next};
use bellwether_work::lifecycle::{self, Eviction};
use bellwether_work::strategy::RECORD_KINDS;
use bellwether_work::{in_whole_seconds, options, record, status};
use jiff::SignedDuration;

use super::hub::{HubWork, Status};
use super::member::Member;
use super::pass::owned_by;
use super::records::{Record, Records};
use super::{AgentError, Shared, WorkApi, WorkKey};

/// After how many seconds to check what is waited for, even without a watch event.
const SAFETY_NET: i64 = 60;

/// Brings a work that is being removed to its end.
pub(super) async fn remove_work(
    shared: &Shared,
    member: &Member,
    key: &WorkKey,
    work: HubWork,
    record: Option<Record>,
) -> Result<Next, AgentError> {
    if !work.has_finalizer() {
        // Others may still hold it; it is no longer ours to keep.
        if let Some(record) = record {
            return remove_record(shared, member, key, record).await;
        }
        return Ok(None);
    }
    let records = member.records(key.work_api).await?;
    // One that was made just now may not have been heard of yet, and nobody would look for it again
    // once the work is gone.
    let record = match record {
        Some(record) => Some(record),
        None => records
            .read(key.work_api, &key.record)
            .await
            .map_err(AgentError::at("looking for the record"))?,
    };
    if let Some(record) = record {
        let left = empty(member, records, key, record, Some(&work.work.spec)).await?;
        if !left.pending.is_empty() {
            let next = wait(shared, work, &left.pending).await?;
            return left.failure.map_or(Ok(next), Err);
        }
    }
    let ours = work.finalizer();
    let left: Vec<String> = work
        .finalizers()
        .iter()
        .filter(|name| *name != ours)
        .cloned()
        .collect();
    match shared.hub.set_finalizers(&work, &left).await {
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(AgentError::at("letting the work go")(error)),
        Ok(_) => {
            let text = "all objects of the work are gone";
            shared.events.normal(&work, event::DELETED, text);
            Ok(None)
        }
    }
}

/// Says what a removal waits for.
async fn wait(shared: &Shared, work: HubWork, pending: &[Pending]) -> Result<Next, AgentError> {
    let now = shared.clock.now();
    let waiting: Vec<String> = pending.iter().map(|it| it.waits_for.clone()).collect();
    let previous = work.work.status.clone().unwrap_or_default();
    let new = status::deleting(&previous, work.generation(), &waiting, now);
    if new != previous && work.work_api() == WorkApi::ManifestWork {
        let text = new
            .conditions
            .last()
            .map(|it| it.message.clone())
            .unwrap_or_default();
        shared.events.warning(&work, event::DELETION_WAITING, &text);
        shared
            .hub
            .set_status(&work, &Status::ManifestWork(new))
            .await
            .map_err(AgentError::at("reporting the removal"))?;
    }
    Ok(now.checked_add(SignedDuration::from_secs(SAFETY_NET)).ok())
}

/// Brings a record that is being removed to its end, whatever its work.
pub(super) async fn remove_record(
    shared: &Shared,
    member: &Member,
    key: &WorkKey,
    record: Record,
) -> Result<Next, AgentError> {
    let records = member.records(key.work_api).await?;
    let left = empty(member, records, key, record, None).await?;
    if let Some(failure) = left.failure {
        return Err(failure);
    }
    let again = shared
        .clock
        .now()
        .checked_add(SignedDuration::from_secs(SAFETY_NET))
        .ok();
    Ok(again.filter(|_| !left.pending.is_empty()))
}

/// What is left of a record.
#[derive(Default)]
struct Left {
    /// Objects that are being deleted, or cannot be removed.
    pending: Vec<Pending>,
    /// Why one cannot be removed, if so.
    failure: Option<AgentError>,
}

/// Removes all that a record names, and then the record. What is not gone yet is returned. What the
/// spec of the work leaves behind stays, also if it said so only just now.
async fn empty(
    member: &Member,
    records: &Records,
    key: &WorkKey,
    mut record: Record,
    spec: Option<&ManifestWorkSpec>,
) -> Result<Left, AgentError> {
    if !record.is_deleting() {
        // From here on nobody applies anything for it, whatever happens to this process.
        match records
            .delete(&record)
            .await
            .map_err(AgentError::at("removing the record"))?
        {
            Some(marked) => record = marked,
            None => return Ok(Left::default()),
        }
    }
    let owner = record.owner();
    let is_left = |id: &ObjectId| spec.is_some_and(|spec| !options::is_owned(spec, id));
    let pruning = Pruning {
        ownership: owned_by(&owner),
        rivals: &RECORD_KINDS,
        is_left: Some(&is_left),
        is_allowed: true,
    };
    let known = |_: &ObjectId| LiveState::Unknown;
    let pass = Pass::new(Vec::new(), record.entries(), pruning, known);
    let delivery = &member.delivery;
    let settled = delivery.carry_out(key, pass, &mut NothingToWrite).await?;
    if settled.pending.is_empty() {
        records
            .release(&record)
            .await
            .map_err(AgentError::at("letting the record go"))?;
        member.forget(key);
        return Ok(Left::default());
    }
    if let Some(left) = &settled.change.applied {
        let left = record::applied_resources(left, &record.applied);
        records
            .set_status(&record, &left, record.eviction_start)
            .await
            .map_err(AgentError::at("recording what is left"))?;
    }
    let failure = settled.failed.into_iter().min_by_key(|it| it.retry);
    Ok(Left {
        pending: settled.pending,
        failure: failure.map(|refusal| AgentError::Removal {
            message: refusal.message,
            retry: refusal.retry,
        }),
    })
}

/// Removes objects, and never writes any.
struct NothingToWrite;

impl Keeper for NothingToWrite {
    type Error = AgentError;

    async fn intend(&mut self, _: Vec<Entry>) -> Result<Entries, AgentError> {
        Ok(Entries::default())
    }
}

/// Decides about a record whose work is missing on the hub, or that is of another hub.
pub(super) async fn evict(
    shared: &Shared,
    member: &Member,
    key: &WorkKey,
    record: Record,
    has_work: bool,
) -> Result<Next, AgentError> {
    let now = shared.clock.now();
    let records = member.records(key.work_api).await?;
    let failed = || AgentError::at("marking a record");
    let grace = shared.options.eviction_grace;
    match lifecycle::eviction(has_work, record.eviction_start, grace, now) {
        Eviction::None => Ok(None),
        Eviction::Clear => {
            records
                .set_eviction(&record, None)
                .await
                .map_err(failed())?;
            Ok(None)
        }
        Eviction::Begin => {
            records
                .set_eviction(&record, Some(in_whole_seconds(now)))
                .await
                .map_err(failed())?;
            Ok(now.checked_add(grace).ok())
        }
        Eviction::Wait(time) => Ok(Some(time)),
        Eviction::Remove => {
            tracing::info!(cluster = %member.cluster, name = record.name(), "evicting what a missing work applied");
            remove_record(shared, member, key, record).await
        }
    }
}
