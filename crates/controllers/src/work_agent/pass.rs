//! One look at one work: apply, prune, record, report.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bellwether_api::work::names::condition;
use bellwether_api::work::{AppliedResource, ManifestCondition, ManifestResourceMeta};
use bellwether_runtime::Next;
use bellwether_work::admission;
use bellwether_work::executor::Account;
use bellwether_work::lifecycle::{self, Afterlife, find, is_true};
use bellwether_work::manifest::{Manifest, ObjectId, ResourceType, defined_kinds};
use bellwether_work::options::{self, Options};
use bellwether_work::status::{self, Availability, Failure, Feedback, Report};
use bellwether_work::{record, work_api};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::apply_one::{self, Job};
use super::events::reason;
use super::hub::{HubWork, Status};
use super::member::{Member, Memories};
use super::records::{self, NewRecord, Record, Records};
use super::removal::{self, Pending};
use super::watches::Known;
use super::{AgentError, Front, Shared, WorkKey, report};

/// Looks at one work, or at what is left of one.
pub(super) async fn look(
    shared: &Shared,
    member: &Arc<Member>,
    key: &WorkKey,
) -> Result<Next, AgentError> {
    if key.record.is_empty() {
        if member.known_records().is_none() && member.has_records().await? {
            member.records().await?;
        }
        return Ok(None);
    }
    let name = record::work_name(&shared.hub_hash, &key.record);
    let work = name.and_then(|name| shared.hub.get(key.front, &key.cluster, name));
    if let Some(work) = &work
        && !work.is_deleting()
        && let Some(next) = rest(shared, work).await?
    {
        return Ok(next);
    }
    if work.is_none() && member.known_records().is_none() {
        return Ok(None);
    }
    let records = member.records().await?;
    let record = records.get(key.front, &key.record);
    match (work, record) {
        (None, None) => {
            member.recall(key);
            Ok(None)
        }
        (None, Some(record)) if !is_ours(shared, &record) => Ok(None),
        (work, Some(record)) if record.is_deleting() => match work {
            Some(work) if work.is_deleting() => {
                removal::remove_work(shared, member, key, work, Some(record)).await
            }
            // Somebody on the member removes it; when it is gone it is made again.
            _ => removal::remove_record(shared, member, key, record).await,
        },
        (None, Some(record)) => removal::evict(shared, member, key, record, false).await,
        (Some(work), record) if work.is_deleting() => {
            removal::remove_work(shared, member, key, work, record).await
        }
        (Some(work), record) => {
            let mut memories = member.recall(key);
            let pass = Pass {
                shared,
                member,
                records,
                key,
                now: shared.clock.now(),
            };
            let result = pass.run(work, record, &mut memories).await;
            member.remember(key, memories);
            result
        }
    }
}

/// Whether a record is this agent's to look after.
fn is_ours(shared: &Shared, record: &Record) -> bool {
    match record.front {
        Front::ManifestWork => record.agent_id == shared.agent_id(),
        Front::Work => record::work_name(&shared.hub_hash, record.name()).is_some(),
    }
}

/// A work that is done is left alone until its time has come; nothing if it is not done.
async fn rest(shared: &Shared, work: &HubWork) -> Result<Option<Next>, AgentError> {
    match lifecycle::afterlife(&work.work) {
        Afterlife::Open => Ok(None),
        Afterlife::Stays => Ok(Some(None)),
        Afterlife::RemovedAt(time) if time > shared.clock.now() => Ok(Some(Some(time))),
        Afterlife::RemovedAt(_) => {
            let text = "the work is complete, and its time to live is over";
            shared.events.normal(work, reason::EXPIRED, text);
            shared
                .hub
                .delete(work)
                .await
                .map_err(AgentError::at("removing a work that is done"))?;
            Ok(Some(None))
        }
    }
}

/// A manifest whose kind the cluster knows.
struct Mapped {
    manifest: Manifest,
    resource: Arc<ResourceType>,
    id: ObjectId,
    is_defined_here: bool,
}

/// A manifest of the work and what is known of it.
struct Slot {
    meta: ManifestResourceMeta,
    mapped: Result<Mapped, String>,
    known: Option<ManifestCondition>,
}

/// One look at one work that is to be on the cluster.
struct Pass<'a> {
    shared: &'a Shared,
    member: &'a Member,
    records: &'a Records,
    key: &'a WorkKey,
    now: Timestamp,
}

impl Pass<'_> {
    async fn run(
        &self,
        work: HubWork,
        record: Option<Record>,
        memories: &mut Memories,
    ) -> Result<Next, AgentError> {
        let work = self.with_finalizer(work).await?;
        let slots = self.slots(&work).await?;
        let was_recorded = record.is_some();
        let record = self.with_record(&work, record, &slots).await?;
        self.await_watches(&slots, was_recorded).await;
        let applied = self.apply_all(&work, &record, &slots, memories).await;
        let (pending, keep_all, failed_removals) = match self.prune(&work, &record, &slots).await {
            Ok(Some(pending)) => (pending, false, 0),
            Ok(None) => (Vec::new(), true, 0),
            Err(error) => {
                tracing::debug!(%error, "pruning failed");
                (Vec::new(), true, 1)
            }
        };
        self.write_record(record, &slots, &applied, &pending, keep_all)
            .await?;
        let failures = applied.retries + failed_removals;
        let next = [applied.again, self.safety_net(&pending)]
            .into_iter()
            .flatten()
            .min();
        let next = self.write_status(&work, &applied, next).await?;
        // What was not removed because nothing had been reported is removed now that it has been.
        let next = if keep_all { Some(self.now) } else { next };
        memories.retain(|id, _| {
            slots
                .iter()
                .any(|slot| slot.mapped.as_ref().is_ok_and(|mapped| mapped.id == *id))
        });
        if failures > 0 {
            return Err(AgentError::Manifests(failures));
        }
        Ok(next)
    }

    async fn with_finalizer(&self, work: HubWork) -> Result<HubWork, AgentError> {
        if work.has_finalizer() {
            return Ok(work);
        }
        let mut finalizers = work.finalizers().to_vec();
        finalizers.push(work.finalizer().to_owned());
        self.shared
            .hub
            .set_finalizers(&work, &finalizers)
            .await
            .map_err(AgentError::at("claiming the work"))
    }

    /// Reads the manifests, and asks the cluster what it calls their kinds.
    async fn slots(&self, work: &HubWork) -> Result<Vec<Slot>, AgentError> {
        let none = Vec::new();
        let workload = work.work.spec.workload.as_ref();
        let values: &[Value] = workload.map_or(&none, |workload| &workload.manifests);
        let too_large = match admission::check_manifests(values, admission::MANIFEST_LIMIT) {
            Err(error) if error.starts_with("the size of manifests") => Some(error),
            _ => None,
        };
        let manifests: Vec<Result<Manifest, String>> = values
            .iter()
            .enumerate()
            .map(|(ordinal, value)| {
                Manifest::read(ordinal, value).map_err(|error| error.to_string())
            })
            .collect();
        let defined = defined_kinds(manifests.iter().filter_map(|it| it.as_ref().ok()));
        let known = known_manifests(work);
        let mut seen = BTreeSet::new();
        let mut slots = Vec::new();
        for (ordinal, manifest) in manifests.into_iter().enumerate() {
            let mut meta = meta_of(ordinal, manifest.as_ref().ok());
            let mut mapped = match (manifest, &too_large) {
                (Err(error), _) => Err(error),
                (Ok(_), Some(error)) => Err(error.clone()),
                (Ok(manifest), None) => self.map(manifest, &defined).await,
            };
            if let Ok(found) = &mapped {
                meta.resource.clone_from(&found.id.resource);
                meta.namespace.clone_from(&found.id.namespace);
                if !seen.insert(found.id.clone()) {
                    mapped = Err(format!("another manifest of the work is also {}", found.id));
                }
            }
            slots.push(Slot {
                known: status::find_known(known, &meta).cloned(),
                meta,
                mapped,
            });
        }
        Ok(slots)
    }

    async fn map(
        &self,
        manifest: Manifest,
        defined: &BTreeMap<(String, String, String), ResourceType>,
    ) -> Result<Mapped, String> {
        let (group, version, kind) = (&manifest.group, &manifest.version, &manifest.kind);
        let here = defined.get(&(group.clone(), version.clone(), kind.clone()));
        let found = self
            .member
            .discovery
            .find(&self.member.objects, group, version, kind)
            .await
            .map_err(|error| error.to_string())?;
        let resource = found
            .or_else(|| here.cloned().map(Arc::new))
            .ok_or_else(|| format!("the server doesn't have a resource type {kind:?}"))?;
        let is_defined_here = here.is_some();
        let manifest = manifest.placed(resource.namespaced);
        Ok(Mapped {
            id: ObjectId {
                group: resource.group.clone(),
                resource: resource.plural.clone(),
                namespace: manifest.namespace.clone(),
                name: manifest.name.clone(),
            },
            manifest,
            resource,
            is_defined_here,
        })
    }

    /// Makes sure that all that may be created is on record.
    async fn with_record(
        &self,
        work: &HubWork,
        record: Option<Record>,
        slots: &[Slot],
    ) -> Result<Record, AgentError> {
        let wanted: Vec<AppliedResource> = slots
            .iter()
            .filter(|slot| !report::is_complete(slot.known.as_ref()))
            .filter_map(|slot| slot.mapped.as_ref().ok())
            .map(|mapped| entry_of(mapped, None))
            .collect();
        let labels = work.metadata().labels.as_ref();
        let failed = || AgentError::at("recording what is about to be applied");
        let new = NewRecord {
            front: work.front(),
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
        let known: BTreeSet<ObjectId> = record.everything().iter().map(record::id_of).collect();
        let mut change = records::missing_metadata(&record, labels);
        if wanted
            .iter()
            .any(|entry| !known.contains(&record::id_of(entry)))
        {
            let mut intent = record.intent.clone();
            intent.extend(wanted.iter().cloned());
            let metadata = change.get_or_insert_with(|| json!({}));
            metadata["annotations"] = records::intent_annotation(&record::sorted(intent));
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

    /// Says which objects concern the work. What was applied before is read with one list a kind.
    async fn await_watches(&self, slots: &[Slot], was_recorded: bool) {
        for mapped in slots.iter().filter_map(|slot| slot.mapped.as_ref().ok()) {
            self.member.watches.concern(&mapped.id, self.key);
        }
        if !was_recorded {
            return;
        }
        for slot in slots {
            if let (Ok(mapped), Some(known)) = (&slot.mapped, &slot.known)
                && is_true(&known.conditions, condition::APPLIED)
            {
                self.member.watches.ensure(&mapped.resource);
                self.member.watches.settled(&mapped.id).await;
            }
        }
    }

    /// Applies all manifests in the order of their kinds.
    async fn apply_all(
        &self,
        work: &HubWork,
        record: &Record,
        slots: &[Slot],
        memories: &mut Memories,
    ) -> Applied {
        let spec = &work.work.spec;
        let owner = record.owner();
        let executor = spec.executor.as_ref().map(Account::of).transpose();
        let of_generation = is_of_generation(work);
        let mut order: Vec<usize> = (0..slots.len()).collect();
        order.sort_by_key(|index| {
            let mapped = slots[*index].mapped.as_ref();
            mapped.map_or(usize::MAX, |mapped| mapped.manifest.rank())
        });
        let mut applied = Applied::new(slots);
        for index in order {
            let slot = &slots[index];
            if report::is_complete(slot.known.as_ref()) {
                applied.reports[index] = report::of_complete(slot.meta.clone());
                continue;
            }
            let (mapped, executor) = match (&slot.mapped, &executor) {
                (Ok(mapped), Ok(executor)) => (mapped, executor),
                (Err(error), _) | (_, Err(error)) => {
                    applied.fail(index, slot, error);
                    continue;
                }
            };
            let options = Options::of(&spec.manifest_configs, &mapped.id);
            let known = slot.known.as_ref();
            let job = Job {
                manifest: &mapped.manifest,
                resource: &mapped.resource,
                id: &mapped.id,
                options,
                owner: &owner,
                owned: options::is_owned(spec, &mapped.id),
                applied_before: of_generation
                    && known.is_some_and(|known| is_true(&known.conditions, condition::APPLIED)),
                is_defined_here: mapped.is_defined_here,
                executor: executor.as_ref(),
            };
            let memory = memories.entry(mapped.id.clone()).or_default();
            let outcome = apply_one::apply(self.shared, self.member, &job, memory).await;
            self.member.watches.ensure(&mapped.resource);
            if outcome.wrote && mapped.manifest.kind == "CustomResourceDefinition" {
                self.forget_kinds(&mapped.manifest);
            }
            if outcome.repaired {
                let text = format!("{} was changed by others and has been put right", mapped.id);
                self.shared.events.normal(work, reason::REPAIRED, &text);
            }
            let (report, again) = report::of_outcome(
                self.shared,
                work,
                slot.meta.clone(),
                &options,
                &outcome,
                memory,
            );
            if let Known::Present(object) = &outcome.live {
                let uid = object["metadata"]["uid"].as_str();
                applied.entries.push(entry_of(mapped, uid));
            }
            let polled = self
                .member
                .watches
                .is_refused(&mapped.id)
                .then(|| self.poll_time());
            let times = [applied.again, outcome.again, again, polled.flatten()];
            applied.again = times.into_iter().flatten().min();
            applied.retries += usize::from(outcome.retry);
            applied.reports[index] = report;
        }
        applied
    }

    /// What a definition defines may be called otherwise now.
    fn forget_kinds(&self, definition: &Manifest) {
        for (group, version, _) in defined_kinds([definition]).keys() {
            self.member.discovery.forget(group, version);
        }
    }

    fn poll_time(&self) -> Option<Timestamp> {
        let interval = self.shared.options.status_sync_interval;
        self.now
            .checked_add(SignedDuration::try_from(interval).ok()?)
            .ok()
    }

    /// Removes what the work no longer has, and returns what is not gone yet. A work about which
    /// nothing has been reported yet may be of a hub that took the place of another: nothing is
    /// removed then, and nothing returned.
    async fn prune(
        &self,
        work: &HubWork,
        record: &Record,
        slots: &[Slot],
    ) -> Result<Option<Vec<Pending>>, AgentError> {
        let wanted: BTreeSet<ObjectId> = slots
            .iter()
            .filter_map(|slot| slot.mapped.as_ref().ok())
            .map(|mapped| mapped.id.clone())
            .collect();
        let everything = record.everything();
        let gone: Vec<AppliedResource> = record::untracked(&everything, &wanted)
            .into_iter()
            .filter(|entry| !is_unmapped(slots, entry))
            .cloned()
            .collect();
        let status = work.work.status.as_ref();
        let conditions = status.map_or(&[][..], |status| &status.conditions);
        if find(conditions, condition::APPLIED).is_none() && !gone.is_empty() {
            return Ok(None);
        }
        let pending = removal::remove_all(self.member, self.key, &record.owner(), &gone).await?;
        for entry in &gone {
            let id = record::id_of(entry);
            if !pending.iter().any(|it| record::id_of(&it.entry) == id) {
                self.member.watches.unconcern(&id, self.key);
            }
        }
        Ok(Some(pending))
    }

    /// Writes what is on the cluster, where the record does not say so.
    async fn write_record(
        &self,
        record: Record,
        slots: &[Slot],
        applied: &Applied,
        pending: &[Pending],
        keep_all: bool,
    ) -> Result<(), AgentError> {
        let failed = || AgentError::at("recording what was applied");
        let mut entries = applied.entries.clone();
        let has = |entries: &[AppliedResource], id: &ObjectId| {
            entries.iter().any(|entry| record::id_of(entry) == *id)
        };
        // What could not be looked at may be there: it stays on record.
        for entry in &record.applied {
            let id = record::id_of(entry);
            let unclear = slots.iter().zip(&applied.reports).any(|(slot, report)| {
                slot.mapped.as_ref().is_ok_and(|mapped| mapped.id == id)
                    && (report.available.is_none()
                        || matches!(report.available, Some(Availability::Unknown(_))))
            });
            let is_pending = pending.iter().any(|it| record::id_of(&it.entry) == id);
            if (unclear || is_pending || keep_all || is_unmapped(slots, entry))
                && !has(&entries, &id)
            {
                entries.push(entry.clone());
            }
        }
        let entries = record::sorted(entries);
        let record = if entries == record.applied {
            record
        } else {
            self.records
                .set_status(&record, &entries, record.eviction_start)
                .await
                .map_err(failed())?
        };
        // Entries of things that are no longer wanted are taken out, lest they are looked for again.
        let is_stale = |entry: &AppliedResource| {
            let id = record::id_of(entry);
            let wanted = slots
                .iter()
                .any(|slot| slot.mapped.as_ref().is_ok_and(|mapped| mapped.id == id));
            !wanted && !has(&record.applied, &id) && !is_unmapped(slots, entry)
        };
        if keep_all || !record.intent.iter().any(is_stale) {
            return Ok(());
        }
        let mut intent = record.intent.clone();
        intent.retain(|entry| !is_stale(entry));
        let metadata = json!({"annotations": records::intent_annotation(&intent)});
        self.records
            .patch_metadata(&record, metadata)
            .await
            .map_err(failed())?;
        Ok(())
    }

    fn safety_net(&self, pending: &[Pending]) -> Option<Timestamp> {
        let again = self.now.checked_add(SignedDuration::from_mins(1)).ok();
        again.filter(|_| !pending.is_empty())
    }

    /// Reports, if there is something new to be said. Returns when to look again.
    async fn write_status(
        &self,
        work: &HubWork,
        applied: &Applied,
        next: Next,
    ) -> Result<Next, AgentError> {
        let failed = || AgentError::at("reporting");
        if let Some(small) = &work.small {
            let previous = small.status.clone().unwrap_or_default();
            let new = work_api::assemble(&previous, work.generation(), &applied.reports, self.now);
            if small.status.as_ref() != Some(&new) {
                self.tell(
                    work,
                    &previous.conditions,
                    &new.conditions,
                    &applied.reports,
                );
                self.shared
                    .hub
                    .set_status(work, &Status::Work(new))
                    .await
                    .map_err(failed())?;
            }
            return Ok(next);
        }
        let previous = work.work.status.clone().unwrap_or_default();
        let rollout = report::is_rolled_out(&work.work);
        let new = status::assemble(
            &previous,
            work.generation(),
            &applied.reports,
            rollout,
            self.now,
        );
        if work.work.status.as_ref() == Some(&new) {
            return Ok(next);
        }
        self.tell(
            work,
            &previous.conditions,
            &new.conditions,
            &applied.reports,
        );
        let written = self
            .shared
            .hub
            .set_status(work, &Status::ManifestWork(new))
            .await
            .map_err(failed())?;
        // A work that has just been done may have to go, at once or later.
        match lifecycle::afterlife(&written.work) {
            Afterlife::Open => Ok(next),
            Afterlife::Stays => Ok(None),
            Afterlife::RemovedAt(time) => Ok(Some(time)),
        }
    }

    /// Events for what is new.
    fn tell(
        &self,
        work: &HubWork,
        before: &[bellwether_api::meta::Condition],
        after: &[bellwether_api::meta::Condition],
        reports: &[Report],
    ) {
        let events = &self.shared.events;
        let is_new = |name: &str| {
            let (old, new) = (find(before, name), find(after, name));
            match (old, new) {
                (Some(old), Some(new)) => {
                    old.status != new.status || old.observed_generation != new.observed_generation
                }
                (None, Some(_)) => true,
                _ => false,
            }
        };
        if is_new(condition::APPLIED) {
            if is_true(after, condition::APPLIED) {
                if let Some(created) = &work.metadata().creation_timestamp {
                    let latency = self.shared.clock.now().duration_since(created.0);
                    self.shared
                        .metrics
                        .latency
                        .observe(latency.try_into().unwrap_or_default());
                }
                let text = format!(
                    "applied {} objects of generation {}",
                    reports.len(),
                    work.generation()
                );
                events.normal(work, reason::APPLIED, &text);
            } else {
                let failures = reports.iter().filter_map(|report| match &report.applied {
                    Err(Failure::Apply(error) | Failure::IgnoreFields(error)) => Some(format!(
                        "{} {}: {error}",
                        report.meta.kind, report.meta.name
                    )),
                    Ok(()) => None,
                });
                let text = failures.collect::<Vec<_>>().join("; ");
                events.warning(work, reason::FAILED, &text);
            }
        }
        if is_new(condition::COMPLETE) && is_true(after, condition::COMPLETE) {
            events.normal(
                work,
                reason::COMPLETE,
                "the work is complete; it is no longer applied",
            );
        }
    }
}

/// What was found out about all manifests of a work.
struct Applied {
    reports: Vec<Report>,
    entries: Vec<AppliedResource>,
    again: Option<Timestamp>,
    retries: usize,
}

impl Applied {
    fn new(slots: &[Slot]) -> Self {
        Self {
            reports: slots
                .iter()
                .map(|slot| report::of_complete(slot.meta.clone()))
                .collect(),
            entries: Vec::new(),
            again: None,
            retries: 0,
        }
    }

    fn fail(&mut self, index: usize, slot: &Slot, error: &str) {
        self.retries += 1;
        self.reports[index] = Report {
            meta: slot.meta.clone(),
            applied: Err(Failure::Apply(error.to_owned())),
            object_generation: None,
            available: Some(Availability::Incomplete),
            conclusions: None,
            feedback: Feedback::Unchanged,
        };
    }
}

/// Whether the status speaks of the work as it is.
fn is_of_generation(work: &HubWork) -> bool {
    let conditions = work
        .work
        .status
        .as_ref()
        .map_or(&[][..], |status| &status.conditions);
    find(conditions, condition::APPLIED)
        .is_some_and(|found| found.observed_generation == Some(work.generation()))
}

/// Whether an entry may be of a manifest whose kind the cluster does not know now.
fn is_unmapped(slots: &[Slot], entry: &AppliedResource) -> bool {
    slots.iter().any(|slot| {
        slot.mapped.is_err()
            && slot.meta.group == entry.group
            && slot.meta.name == entry.name
            && (slot.meta.namespace == entry.namespace
                || slot.meta.namespace.is_empty()
                || entry.namespace.is_empty())
    })
}

fn known_manifests(work: &HubWork) -> &[ManifestCondition] {
    let status = work.work.status.as_ref();
    let manifests = status.and_then(|status| status.resource_status.as_ref());
    manifests.map_or(&[], |status| &status.manifests)
}

fn meta_of(ordinal: usize, manifest: Option<&Manifest>) -> ManifestResourceMeta {
    let mut meta = ManifestResourceMeta {
        ordinal: i32::try_from(ordinal).unwrap_or(i32::MAX),
        ..ManifestResourceMeta::default()
    };
    if let Some(manifest) = manifest {
        meta.group.clone_from(&manifest.group);
        meta.version.clone_from(&manifest.version);
        meta.kind.clone_from(&manifest.kind);
        meta.name.clone_from(&manifest.name);
        meta.namespace.clone_from(&manifest.namespace);
    }
    meta
}

fn entry_of(mapped: &Mapped, uid: Option<&str>) -> AppliedResource {
    AppliedResource {
        group: mapped.id.group.clone(),
        version: mapped.resource.version.clone(),
        resource: mapped.id.resource.clone(),
        name: mapped.id.name.clone(),
        namespace: mapped.id.namespace.clone(),
        uid: uid.map(str::to_owned),
        ..AppliedResource::default()
    }
}
