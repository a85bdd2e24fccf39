//! One look at one work: apply, prune, record, report.

mod ending;
mod recording;
mod reporting;
mod slots;

use std::collections::BTreeSet;
use std::sync::Arc;

use bellwether_api::work::AppliedResource;
use bellwether_api::work::names::{condition, event};
use bellwether_apply::manifest::defined_kinds;
use bellwether_apply::{Manifest, ObjectId};
use bellwether_runtime::{LiveState, Next};
use bellwether_work::admission;
use bellwether_work::executor::Account;
use bellwether_work::feedback::Allowance;
use bellwether_work::lifecycle::{self, AfterCompletion, find, is_true};
use bellwether_work::options::{self, Configs, Options};
use bellwether_work::record;
use bellwether_work::status::{Failure, Report};
use bellwether_work::strategy;
use jiff::{SignedDuration, Timestamp};

use super::apply_one::{self, ApplyRequest, Effect, Obstacle, Outcome};
use super::arrivals::Dependencies;
use super::hub::HubWork;
use super::member::{Member, Memories, Memory};
use super::records::{Record, Records};
use super::removal::{self, Pending};
use super::report::Findings;
use super::{AgentError, Shared, WorkApi, WorkKey, report};
use reporting::Reported;
pub(super) use slots::Slot;
use slots::{Mapped, entry_of, is_unmapped};

/// Looks at one work, or at what is left of one.
pub(super) async fn reconcile_work(
    shared: &Shared,
    member: &Arc<Member>,
    key: &WorkKey,
) -> Result<Next, AgentError> {
    if key.record.is_empty() {
        if member.known_records(key.work_api).is_some() {
            member.requeue(key.work_api);
        } else if member.has_records(key.work_api).await? {
            member.records(key.work_api).await?;
        }
        return Ok(None);
    }
    let name = record::work_name(&shared.hub_hash, &key.record);
    let work = name.and_then(|name| shared.hub.get(key.work_api, &key.cluster, name));
    if work.is_none() && !shared.hub.is_known(key.work_api) {
        // Nobody can tell whether there is such a work: nothing is removed because of that.
        return Ok(None);
    }
    if let Some(work) = &work
        && !work.is_deleting()
        && let Some(next) = rest(shared, member, key, work).await?
    {
        return Ok(next);
    }
    if work.is_none() && member.known_records(key.work_api).is_none() {
        return Ok(None);
    }
    let records = match member.records(key.work_api).await {
        Ok(records) => records,
        Err(error) => {
            if let Some(work) = work.filter(|work| error.is_forbidden() && !work.is_deleting()) {
                let records = member.unwatched_records();
                let pass = Pass::new(shared, member, records, key);
                pass.report_unrecorded(&work, &error).await?;
            }
            return Err(error);
        }
    };
    let record = records.get(key.work_api, &key.record);
    match (work, record) {
        (None, None) => {
            member.forget(key);
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
            let pass = Pass::new(shared, member, records, key);
            let result = pass.run(work, record, &mut memories).await;
            member.remember(key, memories);
            result
        }
    }
}

/// Whether a record is this agent's to look after.
fn is_ours(shared: &Shared, record: &Record) -> bool {
    match record.work_api {
        WorkApi::ManifestWork => record.agent_id == shared.agent_id(),
        WorkApi::Work => record::work_name(&shared.hub_hash, record.name()).is_some(),
    }
}

/// A work that is done is left alone until its time has come; nothing if it is not done. What its
/// spec says about its end still counts.
async fn rest(
    shared: &Shared,
    member: &Arc<Member>,
    key: &WorkKey,
    work: &HubWork,
) -> Result<Option<Next>, AgentError> {
    let afterlife = lifecycle::afterlife(&work.work);
    if afterlife == AfterCompletion::NotComplete {
        return Ok(None);
    }
    if let Some(records) = member.known_records(key.work_api)
        && let Some(record) = records.get(key.work_api, &key.record)
        && !is_ours(shared, &record)
    {
        let taken = records.take_over(&record, shared.agent_id()).await;
        taken.map_err(AgentError::at("taking over the record"))?;
    }
    if !lifecycle::is_settled(&work.work) {
        let records = member.records(key.work_api).await?;
        let record = records.get(key.work_api, &key.record);
        let pass = Pass::new(shared, member, records, key);
        pass.settle(work, record.as_ref()).await?;
    }
    match afterlife {
        AfterCompletion::NotComplete | AfterCompletion::Keep => Ok(Some(None)),
        AfterCompletion::DeleteAt(time) if time > shared.clock.now() => Ok(Some(Some(time))),
        AfterCompletion::DeleteAt(_) => {
            remove_expired(shared, member, key, work).await?;
            Ok(Some(None))
        }
    }
}

/// Deletes a work whose time to live is over. A hub that does not let its agents delete works does
/// it itself.
async fn remove_expired(
    shared: &Shared,
    member: &Member,
    key: &WorkKey,
    work: &HubWork,
) -> Result<(), AgentError> {
    match shared.hub.delete(work).await {
        Ok(()) => {
            let text = "the work is complete, and its time to live is over";
            shared.events.normal(work, event::TTL_EXPIRED, text);
            Ok(())
        }
        Err(error) if error.is_forbidden() => {
            if member.note_undeletable(key) {
                tracing::warn!(cluster = %key.cluster, name = work.name(), %error,
                    "the agent may not delete works: those whose time to live is over are left to the hub");
                let text = "the time to live of the work is over, but its agent may not delete it: that is left to the hub";
                shared.events.warning(work, event::TTL_LEFT_TO_HUB, text);
            }
            Ok(())
        }
        Err(error) => Err(AgentError::at("removing a work that is done")(error)),
    }
}

/// One look at one work that is to be on the cluster.
struct Pass<'a> {
    shared: &'a Shared,
    member: &'a Member,
    records: &'a Records,
    key: &'a WorkKey,
    now: Timestamp,
}

impl<'a> Pass<'a> {
    fn new(shared: &'a Shared, member: &'a Member, records: &'a Records, key: &'a WorkKey) -> Self {
        Self {
            shared,
            member,
            records,
            key,
            now: shared.clock.now(),
        }
    }
}

impl Pass<'_> {
    async fn run(
        &self,
        work: HubWork,
        record: Option<Record>,
        memories: &mut Memories,
    ) -> Result<Next, AgentError> {
        let work = self.with_finalizer(work).await?;
        let slots = self.slots(&work, record.as_ref()).await?;
        if slots.is_empty() {
            // A work that should have been refused: what it had stays as it is.
            let reported = self
                .write_status(&work, &Applied::new(&slots), None)
                .await?;
            return Ok(reported.next());
        }
        if record.is_none() && admission::check_name(work.name()).is_err() {
            // Without a record, which would have no name, nothing is applied.
            let reported = self.write_status(&work, &refused(&slots), None).await?;
            return Ok(reported.next());
        }
        let was_recorded = record.is_some();
        let record = match self.with_record(&work, record, &slots).await {
            Ok(record) => record,
            Err(error) => {
                if error.is_forbidden() {
                    self.report_unrecorded(&work, &error).await?;
                }
                return Err(error);
            }
        };
        self.await_watches(&slots, was_recorded).await;
        if work.work.spec.executor.is_some() {
            self.member.rights.follow(self.key).await;
        } else {
            self.member.rights.forget(self.key);
        }
        let applied = self.apply_all(&work, &record, &slots, memories).await;
        let dependencies = applied.dependencies.clone();
        self.member.arrivals.set(self.key, dependencies);
        let (pending, keep_all, failed_removals) = match self.prune(&work, &record, &slots).await {
            Ok(Some(pending)) => (pending, false, 0),
            Ok(None) => (Vec::new(), true, 0),
            Err(error) => {
                tracing::debug!(%error, "pruning failed");
                (Vec::new(), true, 1)
            }
        };
        self.write_record(&work, record, &slots, &applied, &pending, keep_all)
            .await?;
        if let Some(time) = applied.settles_at {
            // A kind that was just defined is served in a moment. That is no failure to report.
            return Ok(Some(time));
        }
        let failures = applied.retries + failed_removals;
        let next = [applied.again, self.safety_net(&pending)]
            .into_iter()
            .flatten()
            .min();
        let reported = self.write_status(&work, &applied, next).await?;
        // What was not removed because nothing had been reported is removed now that it has been.
        let next = match reported {
            Reported::Said(_) if keep_all => Some(self.now),
            Reported::Said(next) | Reported::Later(next) => next,
        };
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

    /// Says which objects concern the work. What was applied before is read with one list a kind.
    async fn await_watches(&self, slots: &[Slot], was_recorded: bool) {
        for mapped in slots.iter().filter_map(|slot| slot.mapped.as_ref().ok()) {
            self.member.watches.track(&mapped.id, self.key);
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
        let mapped = slots.iter().filter_map(|slot| slot.mapped.as_ref().ok());
        let configs = Configs::new(&spec.manifest_configs, mapped.map(|mapped| &mapped.id));
        let mut applied = Applied::new(slots);
        let mut allowance = Allowance::default();
        for index in order {
            let slot = &slots[index];
            let options = match &slot.mapped {
                Ok(mapped) => configs.of(&mapped.id),
                Err(_) => Options {
                    rules: configs.rules_of_unknown(&slot.meta),
                    ..Options::default()
                },
            };
            applied.depend_on(slot);
            if slot.is_complete {
                applied.reports[index] = report::of_complete(slot, &options.rules);
                if let Err(error) = self.realign(work, record, slot).await {
                    applied.retries += 1;
                    applied.reports[index].applied = Err(Failure::Apply(error.to_string()));
                }
                continue;
            }
            let (mapped, executor) = match (&slot.mapped, &executor) {
                (Ok(mapped), Ok(executor)) => (mapped, executor),
                (Err(error), _) | (_, Err(error)) => {
                    applied.retries += 1;
                    applied.reports[index] = report::of_unmapped(&slot.meta, &options.rules, error);
                    continue;
                }
            };
            let known = slot.known.as_ref();
            let request = ApplyRequest {
                manifest: &mapped.manifest,
                resource: &mapped.resource,
                id: &mapped.id,
                strategy: strategy::strategy(options.strategy),
                options,
                owner: &owner,
                owned: options::is_owned(spec, &mapped.id),
                applied_before: of_generation
                    && known.is_some_and(|known| is_true(&known.conditions, condition::APPLIED)),
                is_defined_here: mapped.is_defined_here,
                executor: executor.as_ref(),
                generation: work.generation(),
            };
            let memory = memories.entry(mapped.id.clone()).or_default();
            let outcome = self.apply_one(work, mapped, &request, memory).await;
            let findings = Findings {
                shared: self.shared,
                member: self.member,
                work,
                slot,
                options: &request.options,
                outcome: &outcome,
                id: &mapped.id,
            };
            let (report, again) = report::of_outcome(&findings, &mut allowance, memory).await;
            let polled = self
                .member
                .watches
                .is_refused(&mapped.id)
                .then(|| self.poll_time(work, &mapped.manifest));
            let times = [applied.again, outcome.again, again, polled.flatten()];
            applied.again = times.into_iter().flatten().min();
            applied.take(index, mapped, &outcome, report);
        }
        applied
    }

    /// Applies one manifest, and sees to what follows from it.
    async fn apply_one(
        &self,
        work: &HubWork,
        mapped: &Mapped,
        request: &ApplyRequest<'_>,
        memory: &mut Memory,
    ) -> Outcome {
        let outcome = apply_one::apply(self.shared, self.member, request, memory).await;
        self.member.watches.ensure(&mapped.resource);
        if outcome.effect != Effect::Left && mapped.manifest.kind == "CustomResourceDefinition" {
            self.forget_kinds(&mapped.manifest);
        }
        if outcome.recreated {
            self.member.watches.enqueue_others(&mapped.id, self.key);
        }
        if outcome.effect == Effect::Repaired {
            let text = format!("{} was changed by others and has been repaired", mapped.id);
            self.shared
                .events
                .normal(work, event::DRIFT_REPAIRED, &text);
        }
        outcome
    }

    /// What a definition defines may be called otherwise now.
    fn forget_kinds(&self, definition: &Manifest) {
        for (group, version, _) in defined_kinds([definition]).keys() {
            self.member.discovery.forget(group, version);
        }
    }

    /// When to read an object again that cannot be watched: as often as the agent is told to, or
    /// more often if its values are asked for more often.
    fn poll_time(&self, work: &HubWork, manifest: &Manifest) -> Option<Timestamp> {
        let interval = self.shared.options.status_sync_interval;
        let interval = SignedDuration::try_from(interval).ok()?;
        let period = report::period(self.shared, work, manifest);
        let wait = period.map_or(interval, |period| period.min(interval));
        self.now.checked_add(wait).ok()
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
                self.member.watches.untrack(&id, self.key);
            }
        }
        Ok(Some(pending))
    }

    fn safety_net(&self, pending: &[Pending]) -> Option<Timestamp> {
        let again = self.now.checked_add(SignedDuration::from_mins(1)).ok();
        again.filter(|_| !pending.is_empty())
    }
}

/// What was found out about all manifests of a work.
struct Applied {
    reports: Vec<Report>,
    entries: Vec<AppliedResource>,
    again: Option<Timestamp>,
    retries: usize,
    /// For each manifest, whether its object may be there although nobody has seen it.
    unclear: Vec<bool>,
    dependencies: Dependencies,
    /// When to look again for kinds that were just defined, if nothing else failed.
    settles_at: Option<Timestamp>,
}

impl Applied {
    fn new(slots: &[Slot]) -> Self {
        Self {
            reports: slots
                .iter()
                .map(|slot| report::unchanged(slot.meta.clone(), &[]))
                .collect(),
            entries: Vec::new(),
            again: None,
            retries: 0,
            unclear: vec![true; slots.len()],
            dependencies: Dependencies::default(),
            settles_at: None,
        }
    }

    /// Notes what a manifest depends on besides its object.
    fn depend_on(&mut self, slot: &Slot) {
        let meta = &slot.meta;
        self.dependencies.add_kind(&meta.group, &meta.kind);
    }

    /// Takes in what became of a manifest.
    fn take(&mut self, index: usize, mapped: &Mapped, outcome: &Outcome, report: Report) {
        if let LiveState::Present(object) = &outcome.live {
            let uid = object["metadata"]["uid"].as_str();
            self.entries.push(entry_of(mapped, uid));
        }
        self.unclear[index] = matches!(outcome.live, LiveState::Unknown);
        match outcome.obstacle {
            Some(Obstacle::NoNamespace) => self.dependencies.add_namespace(&mapped.id.namespace),
            Some(Obstacle::Unserved(time)) => {
                let earliest = self.settles_at.map_or(time, |known| known.min(time));
                self.settles_at = Some(earliest);
            }
            Some(Obstacle::Denied) | None => {}
        }
        self.retries += usize::from(outcome.retry);
        self.reports[index] = report;
    }
}

/// What is said of manifests that must not be applied.
fn refused(slots: &[Slot]) -> Applied {
    let mut applied = Applied::new(slots);
    for (report, slot) in applied.reports.iter_mut().zip(slots) {
        if let Err(error) = &slot.mapped {
            *report = report::of_unmapped(&slot.meta, &[], error);
        }
    }
    applied
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
