//! One reconcile of one work: deliver, record, report.

mod deliver;
mod ending;
mod recording;
mod reporting;
mod slots;

use std::sync::Arc;

use bellwether_api::work::names::{condition, event};
use bellwether_apply::pass::{Obstacle, Outcome, Pending, Problem, RecordChange, Settled};
use bellwether_runtime::{Next, Retry};
use bellwether_work::admission;
use bellwether_work::lifecycle::{self, AfterCompletion, is_true};
use bellwether_work::record;
use bellwether_work::status::Report;
use jiff::{SignedDuration, Timestamp};

use super::arrivals::Dependencies;
use super::hub::HubWork;
use super::member::{Member, Memories};
use super::records::{Record, Records};
use super::removal;
use super::{AgentError, Shared, WorkApi, WorkKey, report};
pub(super) use deliver::owned_by;
use reporting::Reported;
use slots::Mapped;
pub(super) use slots::Slot;

/// Reconciles one work, or what is left of one.
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

/// One reconcile of one work that is to be on the cluster.
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
        let mut record = match self.with_record(&work, record, &slots).await {
            Ok(record) => record,
            Err(error) => {
                if error.is_forbidden() {
                    self.report_unrecorded(&work, &error).await?;
                }
                return Err(error);
            }
        };
        if let Some(time) = self.watch(&slots, was_recorded) {
            return Ok(Some(time));
        }
        if work.work.spec.executor.is_some() {
            self.member.rights.follow(self.key).await;
        } else {
            self.member.rights.forget(self.key);
        }
        let applied = self.deliver(&work, &mut record, &slots, memories).await?;
        let dependencies = applied.dependencies.clone();
        self.member.arrivals.set(self.key, dependencies);
        self.write_record(&work, record, &slots, &applied).await?;
        if let Some(time) = applied.settles_at {
            // A kind that was just defined is served in a moment. That is no failure to report.
            return Ok(Some(time));
        }
        let (count, retry) = (applied.failures, applied.retry);
        let next = [applied.again, self.safety_net(&applied.pending)]
            .into_iter()
            .flatten()
            .min();
        let reported = self.write_status(&work, &applied, next).await?;
        // What was not removed because nothing had been reported is removed now that it has been.
        let next = match reported {
            Reported::Said(_) if applied.is_pruning_put_off => Some(self.now),
            Reported::Said(next) | Reported::Later(next) => next,
        };
        memories.retain(|id, _| {
            slots
                .iter()
                .any(|slot| slot.mapped.as_ref().is_ok_and(|mapped| mapped.id == *id))
        });
        if count > 0 {
            return Err(AgentError::Manifests { count, retry });
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

    /// Says which objects concern the work. What was applied before is read with one list a kind: returns when to go on without it if one
    /// has yet to come. It enqueues the work.
    fn watch(&self, slots: &[Slot], was_recorded: bool) -> Next {
        for mapped in slots.iter().filter_map(|slot| slot.mapped.as_ref().ok()) {
            self.member.delivery.watches.track(&mapped.id, self.key);
        }
        if !was_recorded {
            return None;
        }
        let watches = &self.member.delivery.watches;
        let applied = slots.iter().filter_map(|slot| {
            let (mapped, known) = (slot.mapped.as_ref().ok()?, slot.known.as_ref()?);
            is_true(&known.conditions, condition::APPLIED).then_some(mapped)
        });
        let settles = applied.filter_map(|mapped| {
            watches.ensure(&mapped.resource);
            watches.settles_by(&mapped.id)
        });
        settles.max()
    }

    fn safety_net(&self, pending: &[Pending]) -> Option<Timestamp> {
        let again = self.now.checked_add(SignedDuration::from_mins(1)).ok();
        again.filter(|_| !pending.is_empty())
    }
}

/// What was found out about all manifests of a work.
#[derive(Default)]
struct Applied {
    reports: Vec<Report>,
    again: Option<Timestamp>,
    /// How many manifests could not be applied or removed, and are tried again.
    failures: usize,
    /// When the one that is to be tried again first is.
    retry: Retry,
    dependencies: Dependencies,
    /// When to retry for kinds that were just defined, if nothing else failed.
    settles_at: Option<Timestamp>,
    /// Objects that are being deleted.
    pending: Vec<Pending>,
    /// Whether there is something to be removed that must not be removed yet.
    is_pruning_put_off: bool,
    /// What the record has to say where it says otherwise.
    change: RecordChange,
}

impl Applied {
    fn new(slots: &[Slot]) -> Self {
        let reports = slots
            .iter()
            .map(|slot| report::unchanged(slot.meta.clone(), &[]));
        Self {
            reports: reports.collect(),
            ..Self::default()
        }
    }

    /// Notes what a manifest depends on besides its object.
    fn depend_on(&mut self, slot: &Slot) {
        let meta = &slot.meta;
        self.dependencies.add_kind(&meta.group, &meta.kind);
    }

    /// Notes when a manifest is tried again, if it is.
    fn fail(&mut self, retry: Retry) {
        self.failures += usize::from(retry.is_due());
        self.retry = self.retry.min(retry);
    }

    /// Takes in what became of a manifest.
    fn take(&mut self, index: usize, mapped: &Mapped, outcome: &Outcome, report: Report) {
        let obstacle = match &outcome.result {
            Err(Problem::Failed { obstacle, .. }) => *obstacle,
            _ => None,
        };
        match obstacle {
            Some(Obstacle::NoNamespace) => self.dependencies.add_namespace(&mapped.id.namespace),
            Some(Obstacle::Unserved(time)) => {
                let earliest = self.settles_at.map_or(time, |known| known.min(time));
                self.settles_at = Some(earliest);
            }
            None => {}
        }
        self.fail(outcome.retry());
        self.reports[index] = report;
    }

    /// Takes in what became of the set.
    fn take_settled(&mut self, settled: Settled<'_>) {
        for refusal in &settled.failed {
            self.fail(refusal.retry);
        }
        self.pending = settled.pending;
        self.is_pruning_put_off = settled.is_pruning_put_off;
        self.change = settled.change;
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
