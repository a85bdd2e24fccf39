//! Works and records that go: objects first, then the record, then the work.

use bellwether_api::work::names::event;
use bellwether_api::work::{AppliedResource, ManifestWorkSpec};
use bellwether_apply::removal::{self as decide, finalizers};
use bellwether_apply::{Owner, Ownership, Removal};
use bellwether_runtime::{Deleted, LiveState, Next, RequestError};
use bellwether_work::lifecycle::{self, Eviction};
use bellwether_work::options;
use bellwether_work::strategy::RECORD_KINDS;
use bellwether_work::{in_whole_seconds, record, status};
use jiff::SignedDuration;

use super::hub::{HubWork, Status};
use super::member::Member;
use super::records::{Record, Records};
use super::{AgentError, Shared, WorkApi, WorkKey};

/// When to look again at what is waited for, besides being told, in seconds.
const SAFETY_NET: i64 = 60;

/// An object that is not gone yet, and what it waits for.
pub(super) struct Pending {
    pub(super) entry: AppliedResource,
    pub(super) waits_for: String,
}

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
        let pending = empty(member, records, key, record, Some(&work.work.spec)).await?;
        if !pending.is_empty() {
            return wait(shared, work, &pending).await;
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
    let pending = empty(member, records, key, record, None).await?;
    let again = shared
        .clock
        .now()
        .checked_add(SignedDuration::from_secs(SAFETY_NET))
        .ok();
    Ok(again.filter(|_| !pending.is_empty()))
}

/// Removes all that a record names, and then the record. What is not gone yet is returned. What the
/// spec of the work leaves behind stays, also if it said so only just now.
async fn empty(
    member: &Member,
    records: &Records,
    key: &WorkKey,
    mut record: Record,
    spec: Option<&ManifestWorkSpec>,
) -> Result<Vec<Pending>, AgentError> {
    if !record.is_deleting() {
        // From here on nobody applies anything for it, whatever happens to this process.
        match records
            .delete(&record)
            .await
            .map_err(AgentError::at("removing the record"))?
        {
            Some(marked) => record = marked,
            None => return Ok(Vec::new()),
        }
    }
    let everything = record.everything();
    let owner = record.owner();
    let is_left = |entry: &&AppliedResource| {
        spec.is_some_and(|spec| !options::is_owned(spec, &record::id_of(entry)))
    };
    for entry in everything.iter().filter(is_left) {
        let released = release(member, &owner, entry).await;
        released.map_err(AgentError::at("leaving an object behind"))?;
    }
    let pending = remove_all(member, key, &owner, &everything).await?;
    if pending.is_empty() {
        records
            .release(&record)
            .await
            .map_err(AgentError::at("letting the record go"))?;
        for entry in &everything {
            member.watches.untrack(&record::id_of(entry), key);
        }
        member.forget(key);
        return Ok(pending);
    }
    let left: Vec<AppliedResource> = pending.iter().map(|it| it.entry.clone()).collect();
    if left != record.applied {
        records
            .set_status(&record, &left, record.eviction_start)
            .await
            .map_err(AgentError::at("recording what is left"))?;
    }
    Ok(pending)
}

/// Removes objects that a record names. What is not gone yet is returned.
pub(super) async fn remove_all(
    member: &Member,
    key: &WorkKey,
    owner: &Owner,
    entries: &[AppliedResource],
) -> Result<Vec<Pending>, AgentError> {
    let mut pending = Vec::new();
    for entry in entries {
        match remove(member, key, owner, entry).await {
            Ok(None) => {}
            Ok(Some(waits_for)) => pending.push(Pending {
                entry: entry.clone(),
                waits_for,
            }),
            Err(error) => {
                return Err(AgentError::at("removing an object")(error));
            }
        }
    }
    Ok(pending)
}

/// Takes an object out of the possession of a record, so that it stays.
async fn release(
    member: &Member,
    owner: &Owner,
    entry: &AppliedResource,
) -> Result<(), RequestError> {
    let id = record::id_of(entry);
    let (discovery, objects) = (&member.discovery, &member.objects);
    let resource = discovery
        .find_plural(objects, &entry.group, &entry.version, &entry.resource)
        .await?;
    let Some(resource) = resource else {
        return Ok(());
    };
    let live = match member.watches.known(&id) {
        LiveState::Present(object) => Some(object),
        LiveState::Absent => None,
        LiveState::Unknown => objects.get(&resource, &id).await?.map(Into::into),
    };
    let ownership = owned_by(owner);
    let Some(patch) = live.and_then(|live| ownership.release(&live)) else {
        return Ok(());
    };
    match objects.merge(&resource, &id, &patch).await {
        Ok(object) => {
            member.watches.note(&id, &object);
            Ok(())
        }
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Removes one object; says what it waits for if it is not gone.
async fn remove(
    member: &Member,
    key: &WorkKey,
    owner: &Owner,
    entry: &AppliedResource,
) -> Result<Option<String>, RequestError> {
    let id = record::id_of(entry);
    let resource = member
        .discovery
        .find_plural(
            &member.objects,
            &entry.group,
            &entry.version,
            &entry.resource,
        )
        .await?;
    // A kind that the cluster no longer has, has no objects.
    let Some(resource) = resource else {
        return Ok(None);
    };
    let live = match member.watches.known(&id) {
        LiveState::Present(object) => Some(object),
        LiveState::Absent => None,
        LiveState::Unknown => member.objects.get(&resource, &id).await?.map(Into::into),
    };
    let ownership = owned_by(owner);
    match decide::removal(
        entry.uid.as_deref(),
        live.as_deref(),
        &ownership,
        &RECORD_KINDS,
    ) {
        Removal::Forget => Ok(None),
        Removal::Release(patch) => match member.objects.merge(&resource, &id, &patch).await {
            Ok(object) => {
                member.watches.note(&id, &object);
                Ok(None)
            }
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(error),
        },
        Removal::Wait(finalizers) => {
            member.watches.track(&id, key);
            member.watches.ensure(&resource);
            Ok(Some(waiting_text(&id, &finalizers)))
        }
        Removal::Delete { uid } => match member.objects.delete(&resource, &id, &uid).await? {
            Deleted::Gone => {
                member.watches.note_gone(&id);
                member.watches.enqueue_others(&id, key);
                Ok(None)
            }
            Deleted::Waits(object) => {
                member.watches.track(&id, key);
                member.watches.ensure(&resource);
                member.watches.note(&id, &object);
                Ok(Some(waiting_text(&id, &finalizers(&object))))
            }
        },
    }
}

fn owned_by(owner: &Owner) -> Ownership<'_> {
    Ownership::Reference {
        owner,
        belongs: true,
    }
}

fn waiting_text(id: &impl std::fmt::Display, finalizers: &[String]) -> String {
    if finalizers.is_empty() {
        format!("{id} to end")
    } else {
        format!("{id} with finalizers {}", finalizers.join(", "))
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
