//! Delivering the manifests of a work: how each is treated, and what came of it.

use std::sync::Arc;

use bellwether_api::work::names::{condition, event};
use bellwether_api::work::{FieldRetention, KeptFields};
use bellwether_apply::executor::{Account, RETRY_SECONDS};
use bellwether_apply::manifest::defined_kinds;
use bellwether_apply::pass::{
    self as apply, Blocked, Effect, Object, Outcome, Pass as ApplyPass, Permission, Problem,
    Pruning, Settled,
};
use bellwether_apply::record::{Entry, Record as Entries};
use bellwether_apply::{ApplyError, Manifest, Owner, Ownership, Strategy, Target};
use bellwether_runtime::executor::{self, Refusal};
use bellwether_runtime::{Keeper, ReconcileError as _, Retry};
use bellwether_work::executor::account_of;
use bellwether_work::feedback::Allowance;
use bellwether_work::lifecycle::{find, is_true};
use bellwether_work::options::{self, Configs, Options};
use bellwether_work::rules;
use bellwether_work::status::Failure;
use bellwether_work::strategy::{self, RECORD_KINDS};
use jiff::{SignedDuration, Timestamp};

use super::slots::{Mapped, Slot};
use super::{Applied, Pass};
use crate::work::AgentError;
use crate::work::budget::Verdict;
use crate::work::hub::HubWork;
use crate::work::member::{Grant, Memories, Memory};
use crate::work::records::{self, Record};
use crate::work::report::{self, Findings};

/// How one manifest is treated.
struct Treatment<'a> {
    options: Options<'a>,
    strategy: Strategy<'a>,
    /// Fields that keep what others gave them.
    kept: Option<&'a FieldRetention>,
    /// Why it is not written at all, and until when, if so.
    blocked: Option<(Failure, Option<Timestamp>)>,
}

impl<'a> Treatment<'a> {
    /// With the fields that the work has others keep. What it leaves to agents that do not know the annotation is not needed then.
    fn keeping(mut self, slot: &Slot, kept: &'a Result<KeptFields, String>) -> Self {
        let (Ok(mapped), Ok(kept)) = (&slot.mapped, kept) else {
            let problem = kept
                .as_ref()
                .err()
                .map(|it| (Failure::Apply(it.clone()), None));
            self.blocked = self.blocked.or(problem);
            return self;
        };
        self.kept = kept.0.get(&mapped.id.to_string());
        if self.kept.is_some() && matches!(self.strategy, Strategy::ServerSide(_)) {
            self.strategy = Strategy::Update;
        }
        self
    }
}

/// Whose objects they are, and who is asked.
struct Context<'a> {
    work: &'a HubWork,
    owner: &'a Owner,
    /// The account in whose name the work is applied, if it has an executor.
    executor: Option<&'a Account>,
}

impl Pass<'_> {
    /// Delivers all manifests, and reports what came of it.
    pub(super) async fn deliver(
        &self,
        work: &HubWork,
        record: &mut Record,
        slots: &[Slot],
        memories: &mut Memories,
    ) -> Result<Applied, AgentError> {
        let spec = &work.work.spec;
        let owner = record.owner();
        let executor = spec.executor.as_ref().map(account_of).transpose();
        let context = Context {
            work,
            owner: &owner,
            executor: executor.as_ref().ok().and_then(Option::as_ref),
        };
        let mapped = slots.iter().filter_map(|slot| slot.mapped.as_ref().ok());
        let configs = Configs::new(&spec.manifest_configs, mapped.map(|mapped| &mapped.id));
        let kept = KeptFields::read(work.work.metadata.annotations.as_ref());
        let treatments: Vec<Treatment<'_>> = slots
            .iter()
            .map(|slot| {
                self.treatment(work, slot, &configs, memories)
                    .keeping(slot, &kept)
            })
            .collect();
        let places = slots.iter().zip(&treatments).map(|(slot, treatment)| {
            if executor.is_err() && slot.mapped.is_ok() {
                return finished(slot);
            }
            self.place(&context, slot, treatment, memories)
        });
        let pruning = Pruning {
            ownership: owned_by(&owner),
            rivals: &RECORD_KINDS,
            is_left: None,
            is_allowed: is_reported(work),
        };
        let delivery = &self.member.delivery;
        let known = |id: &_| delivery.watches.known(id);
        let pass = ApplyPass::new(places.collect(), record.entries(), pruning, known);
        let mut keeper = WorkKeeper {
            pass: self,
            record,
            executor: context.executor,
            generation: work.generation(),
            grants: Vec::new(),
        };
        let settled = delivery.carry_out(self.key, pass, &mut keeper).await?;
        for (index, grant) in std::mem::take(&mut keeper.grants) {
            if let Ok(mapped) = &slots[index].mapped {
                memories.entry(mapped.id.clone()).or_default().permission = grant.map(Box::new);
            }
        }
        let executor_problem = executor.as_ref().err().map(String::as_str);
        let found = Found {
            work,
            record,
            slots,
            treatments: &treatments,
            executor_problem,
        };
        Ok(self.report_all(&found, settled, memories).await)
    }

    fn treatment<'a>(
        &self,
        work: &HubWork,
        slot: &Slot,
        configs: &Configs<'a>,
        memories: &Memories,
    ) -> Treatment<'a> {
        let Ok(mapped) = &slot.mapped else {
            return Treatment {
                options: Options {
                    rules: configs.rules_of_unknown(&slot.meta),
                    ..Options::default()
                },
                strategy: Strategy::Update,
                kept: None,
                blocked: None,
            };
        };
        let options = configs.of(&mapped.id);
        let exhausted = memories
            .get(&mapped.id)
            .and_then(|it| it.exhausted.as_ref());
        let verdict = exhausted.and_then(|it| it.fields.as_ref());
        let (strategy, refused) = match strategy::strategy(options.strategy) {
            Ok(strategy) => (strategy, None),
            Err(error) => (
                Strategy::Update,
                Some((Failure::Apply(error.to_string()), None)),
            ),
        };
        let over_budget = verdict
            .and_then(|verdict| verdict.standing(work.generation(), self.now))
            .map(|(failure, until)| (failure, Some(until)));
        Treatment {
            options,
            strategy,
            kept: None,
            blocked: refused.or(over_budget),
        }
    }

    /// A manifest as the engine sees it.
    fn place<'a>(
        &'a self,
        context: &Context<'a>,
        slot: &'a Slot,
        treatment: &'a Treatment<'a>,
        memories: &mut Memories,
    ) -> apply::Slot<'a> {
        let mapped = match &slot.mapped {
            Ok(mapped) if !slot.is_complete => mapped,
            _ => return finished(slot),
        };
        let work = context.work;
        let known = slot.known.as_ref();
        let annotations = work.work.metadata.annotations.as_ref();
        let applied_before = is_of_generation(work)
            && known.is_some_and(|known| is_true(&known.conditions, condition::APPLIED));
        let target = Target {
            manifest: &mapped.manifest,
            strategy: &treatment.strategy,
            drift: options::drift(annotations, treatment.kept, &mapped.id, applied_before),
            ownership: Ownership::Reference {
                owner: context.owner,
                belongs: options::is_owned(&work.work.spec, &mapped.id),
            },
            baseline: None,
            applied_before,
        };
        let memory = memories.entry(mapped.id.clone()).or_default();
        let rules = &treatment.options.rules;
        let programs = &self.shared.programs;
        let is_ruled = !rules.is_empty();
        apply::Slot::Open(Object {
            memory: std::mem::take(&mut memory.delivery),
            permission: self.permission(context, memory),
            blocked: treatment.blocked.as_ref().map(|(failure, until)| Blocked {
                message: match failure {
                    Failure::Apply(message) | Failure::IgnoreFields(message) => message.clone(),
                },
                until: *until,
                retry: Retry::Never,
            }),
            // What rules may find to be done is read before the server applies it.
            reads_first: matches!(treatment.strategy, Strategy::ServerSide(_))
                && rules
                    .iter()
                    .any(|rule| rules::condition_of(rule) == condition::COMPLETE),
            is_defined_here: mapped.is_defined_here,
            is_done: is_ruled.then(|| {
                Box::new(move |object: &_| rules::is_complete(rules, object, programs)) as _
            }),
            is_done_by_program: rules::have_programs(rules),
            ..Object::new(mapped.id.clone(), Arc::clone(&mapped.resource), target)
        })
    }

    /// Whether the executor may apply a manifest as it is in this generation of the work, whatever its
    /// strategy writes: asked once a generation, before every later write, when rights on the member
    /// change, and a minute after it was denied.
    fn permission(&self, context: &Context<'_>, memory: &Memory) -> Permission {
        if context.executor.is_none() {
            return Permission::NotNeeded;
        }
        let generation = context.work.generation();
        let rights = self.member.rights.version();
        let known = memory.permission.as_deref();
        let known = known.filter(|it| it.generation == generation && it.rights == rights);
        match known.map(|grant| &grant.denied) {
            Some(None) => Permission::GrantedBefore,
            Some(Some((until, message))) if *until > self.now => Permission::Denied {
                until: *until,
                message: message.clone(),
            },
            _ => Permission::Unknown,
        }
    }
}

/// A manifest that is not written: it is done, cannot be mapped, or its work has no usable executor.
fn finished<'a>(slot: &Slot) -> apply::Slot<'a> {
    match &slot.mapped {
        Ok(mapped) => apply::Slot::Finished(mapped.id.clone()),
        Err(_) => apply::Slot::Unmapped {
            group: slot.meta.group.clone(),
            namespace: slot.meta.namespace.clone(),
            name: slot.meta.name.clone(),
        },
    }
}

/// The ownership of a record.
pub(in crate::work) fn owned_by(owner: &Owner) -> Ownership<'_> {
    Ownership::Reference {
        owner,
        belongs: true,
    }
}

/// Whether anything has been reported about a work. One about which nothing has may be of a hub that
/// took the place of another: nothing is removed then.
fn is_reported(work: &HubWork) -> bool {
    let status = work.work.status.as_ref();
    let conditions = status.map_or(&[][..], |status| &status.conditions);
    find(conditions, condition::APPLIED).is_some()
}

/// Whether the status speaks of the work as it is.
fn is_of_generation(work: &HubWork) -> bool {
    let status = work.work.status.as_ref();
    let conditions = status.map_or(&[][..], |status| &status.conditions);
    find(conditions, condition::APPLIED)
        .is_some_and(|found| found.observed_generation == Some(work.generation()))
}

/// The record of a work, and its executor.
struct WorkKeeper<'a> {
    pass: &'a Pass<'a>,
    record: &'a mut Record,
    executor: Option<&'a Account>,
    generation: i64,
    /// What was asked, by the place of the manifest; nothing if nobody could say.
    grants: Vec<(usize, Option<Grant>)>,
}

impl Keeper for WorkKeeper<'_> {
    type Error = AgentError;

    async fn intend(&mut self, intent: Vec<Entry>) -> Result<Entries, AgentError> {
        let metadata = serde_json::json!({"annotations": records::intent_annotation(&intent)});
        let records = self.pass.records;
        let answer = records.patch_metadata(self.record, metadata).await;
        *self.record = answer.map_err(AgentError::at("recording what is about to be applied"))?;
        Ok(self.record.entries())
    }

    async fn ask(&mut self, index: usize, object: &Object<'_>) -> Permission {
        let Some(account) = self.executor else {
            return Permission::NotNeeded;
        };
        let member = self.pass.member;
        let rights = member.rights.version();
        let answer = executor::check(&member.delivery.objects, account, object).await;
        let grant = |denied| Grant {
            generation: self.generation,
            rights,
            denied,
        };
        let (permission, grant) = match answer {
            Ok(()) => (Permission::Granted, Some(grant(None))),
            Err(Refusal::Unknown(error)) => (Permission::Failed(error), None),
            Err(Refusal::Denied(message)) => {
                let wait = SignedDuration::from_secs(RETRY_SECONDS);
                let now = self.pass.shared.clock.now();
                let until = now.checked_add(wait).unwrap_or(Timestamp::MAX);
                let denied = Some((until, message.clone()));
                (Permission::Denied { until, message }, Some(grant(denied)))
            }
        };
        self.grants.push((index, grant));
        permission
    }
}

/// What was delivered, for reports.
struct Found<'a> {
    work: &'a HubWork,
    record: &'a Record,
    slots: &'a [Slot],
    treatments: &'a [Treatment<'a>],
    executor_problem: Option<&'a str>,
}

impl Pass<'_> {
    /// Reports on all manifests, in the order in which they were written.
    async fn report_all(
        &self,
        found: &Found<'_>,
        mut settled: Settled<'_>,
        memories: &mut Memories,
    ) -> Applied {
        let mut applied = Applied::new(found.slots);
        let mut allowance = Allowance::default();
        for index in std::mem::take(&mut settled.order) {
            let (slot, treatment) = (&found.slots[index], &found.treatments[index]);
            let rules = &treatment.options.rules;
            applied.depend_on(slot);
            let problem = match &slot.mapped {
                Err(error) => Some(error.as_str()),
                Ok(_) if slot.is_complete => None,
                Ok(_) => found.executor_problem,
            };
            if let Some(problem) = problem {
                applied.fail(Retry::Backoff);
                applied.reports[index] = report::of_unmapped(&slot.meta, rules, problem);
                continue;
            }
            let outcome = settled.outcomes[index].take();
            let (Ok(mapped), Some(outcome)) = (&slot.mapped, outcome) else {
                applied.reports[index] = report::of_complete(slot, rules);
                if let Err(error) = self.realign(found.work, found.record, slot).await {
                    applied.fail(error.retry());
                    applied.reports[index].applied = Err(Failure::Apply(error.to_string()));
                }
                continue;
            };
            let memory = memories.entry(mapped.id.clone()).or_default();
            if let apply::Slot::Open(object) = &mut settled.slots[index] {
                memory.delivery = std::mem::take(&mut object.memory);
            }
            self.note_effect(found.work, mapped, &outcome);
            let failure = self.failure(found.work, treatment, &outcome, memory);
            let findings = Findings {
                shared: self.shared,
                member: self.member,
                work: found.work,
                slot,
                options: &treatment.options,
                outcome: &outcome,
                failure,
                id: &mapped.id,
            };
            let (report, again) = report::of_outcome(&findings, &mut allowance, memory).await;
            let polled = self.poll_time(found.work, mapped);
            let times = [applied.again, outcome.again, again, polled];
            applied.again = times.into_iter().flatten().min();
            applied.take(index, mapped, &outcome, report);
        }
        applied.take_settled(settled);
        applied
    }

    /// Counts a write, and records events about it.
    fn note_effect(&self, work: &HubWork, mapped: &Mapped, outcome: &Outcome) {
        let metrics = &self.shared.metrics;
        match &outcome.result {
            Ok(Effect::Wrote) => metrics.applies.inc(),
            Ok(Effect::Repaired) => {
                let text = format!("{} was changed by others and has been repaired", mapped.id);
                let events = &self.shared.events;
                events.normal(work, event::DRIFT_REPAIRED, &text);
                metrics.repairs.inc()
            }
            Err(Problem::Failed { .. }) => metrics.failures.inc(),
            Ok(Effect::Left) | Err(_) => return,
        };
        if outcome.result.is_ok() && mapped.manifest.kind == "CustomResourceDefinition" {
            self.forget_kinds(&mapped.manifest);
        }
    }

    /// What a definition defines may be called otherwise now.
    fn forget_kinds(&self, definition: &Manifest) {
        for (group, version, _) in defined_kinds([definition]).keys() {
            self.member.delivery.discovery.forget(group, version);
        }
    }

    /// Why a manifest is not applied, for its report. A program that exceeded its budget is not run again
    /// for a while.
    fn failure(
        &self,
        work: &HubWork,
        treatment: &Treatment<'_>,
        outcome: &Outcome,
        memory: &mut Memory,
    ) -> Result<(), Failure> {
        let Err(problem) = &outcome.result else {
            return Ok(());
        };
        Err(match problem {
            Problem::Plan(error) => {
                let failure = match error {
                    ApplyError::Field(error) => Failure::IgnoreFields(error.to_string()),
                    other => Failure::Apply(other.to_string()),
                };
                if error.is_over_budget() {
                    let verdict = Verdict::new(failure.clone(), work.generation(), self.now);
                    memory.exhausted.get_or_insert_default().fields = Some(verdict);
                }
                failure
            }
            Problem::Blocked(blocked) => match &treatment.blocked {
                Some((failure, _)) => failure.clone(),
                None => Failure::Apply(blocked.message.clone()),
            },
            Problem::Denied(message) | Problem::Failed { message, .. } => {
                Failure::Apply(message.clone())
            }
        })
    }

    /// When to read an object again that cannot be watched: as often as the agent is configured to, or
    /// more often if its values are asked for more often.
    fn poll_time(&self, work: &HubWork, mapped: &Mapped) -> Option<Timestamp> {
        if !self.member.delivery.watches.is_refused(&mapped.id) {
            return None;
        }
        let interval = self.shared.options.status_sync_interval;
        let interval = SignedDuration::try_from(interval).ok()?;
        let period = report::period(self.shared, work, &mapped.manifest);
        let wait = period.map_or(interval, |period| period.min(interval));
        self.now.checked_add(wait).ok()
    }
}
