//! One manifest: decided and written until it is as it should be, or cannot be.

mod permission;

use std::sync::Arc;

use bellwether_api::work::UpdateStrategyType;
use bellwether_api::work::names::condition;
use bellwether_runtime::compute;
use bellwether_work::apply::{self, ApplyError, Live, Step, Target};
use bellwether_work::executor::Account;
use bellwether_work::manifest::{Manifest, ObjectId, ResourceType};
use bellwether_work::options::Options;
use bellwether_work::ownership::{self, Owner};
use bellwether_work::rules;
use bellwether_work::status::Failure;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::Shared;
use super::budget::Verdict;
use super::member::{Member, Memory};
use super::objects::{Deleted, RequestError};
use super::watches::Known;
use permission::{ask, may_apply};

/// How often a decision is taken anew because the object changed meanwhile.
const ATTEMPTS: usize = 6;
/// How often to look for a kind whose definition was just created, and for how long.
const DEFINITION_WAIT: SignedDuration = SignedDuration::from_millis(50);
const DEFINITION_TIMEOUT: SignedDuration = SignedDuration::from_secs(5);
/// When to look again at a conflict that only somebody else can resolve, in seconds.
const CONFLICT_WAIT: i64 = 300;

/// A manifest of a work on its way to the cluster.
pub(super) struct Job<'a> {
    pub(super) manifest: &'a Manifest,
    pub(super) resource: &'a Arc<ResourceType>,
    pub(super) id: &'a ObjectId,
    pub(super) options: Options<'a>,
    pub(super) owner: &'a Owner,
    pub(super) owned: bool,
    /// Whether the status of the work says that this manifest has been applied.
    pub(super) applied_before: bool,
    /// Whether the definition of the kind is in the same work.
    pub(super) is_defined_here: bool,
    pub(super) executor: Option<&'a Account>,
    /// The generation of the work.
    pub(super) generation: i64,
}

/// What became of a manifest.
pub(super) struct Outcome {
    pub(super) applied: Result<(), Failure>,
    pub(super) live: Known,
    /// When to look again, if at a certain time.
    pub(super) again: Option<Timestamp>,
    /// Whether to try again after a while that grows.
    pub(super) retry: bool,
    /// What was done to it.
    pub(super) effect: Effect,
    /// Whether the object took the place of one that was removed for it.
    pub(super) anew: bool,
    /// What keeps it from being applied, if that is known.
    pub(super) obstacle: Option<Obstacle>,
}

/// What keeps a manifest from being applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Obstacle {
    /// The executor may not apply it. Nothing is reported of the object then.
    Denied,
    /// The namespace is missing, or going.
    NoNamespace,
    /// Its definition was just created, and its kind is not served yet: looked for again then.
    Unserved(Timestamp),
}

/// What was done to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Effect {
    /// Nothing.
    Left,
    /// It was written.
    Wrote,
    /// It was written, which put right what somebody else did.
    Repaired,
}

impl Outcome {
    fn fine(live: Known) -> Self {
        Self {
            applied: Ok(()),
            live,
            again: None,
            retry: false,
            effect: Effect::Left,
            anew: false,
            obstacle: None,
        }
    }

    pub(super) fn failed(failure: Failure, live: Known) -> Self {
        Self {
            applied: Err(failure),
            retry: true,
            ..Self::fine(live)
        }
    }
}

/// Applies one manifest.
pub(super) async fn apply(
    shared: &Shared,
    member: &Member,
    job: &Job<'_>,
    memory: &mut Memory,
) -> Outcome {
    let mut known = member.watches.known(job.id);
    let asked = match may_apply(shared, member, job, memory, &known).await {
        Ok(asked) => asked,
        Err(outcome) => return outcome,
    };
    // What may be done is looked at before it is written, even where a write would need no look.
    let mut looks = match &known {
        Known::Unknown => is_completable(job),
        Known::Absent => false,
        // A kind is watched in one version, in whose form another cannot be compared.
        Known::Present(object) => object["apiVersion"] != job.manifest.object["apiVersion"],
    };
    for _ in 0..ATTEMPTS {
        if looks {
            known = match read(member, job).await {
                Ok(known) => known,
                Err(error) => {
                    return Outcome::failed(Failure::Apply(error.to_string()), Known::Unknown);
                }
            };
        }
        looks = true;
        if let Known::Present(object) = &known {
            let leaving = object["metadata"]["deletionTimestamp"].is_string();
            // An object that is done is never written again, nor one that is about to go.
            if leaving || is_done(shared, job, object).await {
                return Outcome::fine(known);
            }
        }
        let live = match &known {
            Known::Unknown => Live::Unknown,
            Known::Absent => Live::Absent,
            Known::Present(object) => Live::Present(object),
        };
        let is_repair = apply::is_repair(&job.target(memory));
        if let Some((failure, until)) = job.exhausted(memory, shared.clock.now()) {
            return Outcome {
                retry: false,
                again: Some(until),
                ..Outcome::failed(failure, seen(member, job, &known).await)
            };
        }
        let target = job.target(memory);
        let plan = if apply::has_programs(job.options.strategy) {
            compute(|| apply::plan(&target, live)).await
        } else {
            apply::plan(&target, live)
        };
        match plan {
            Err(error) => {
                let is_over_budget = error.is_over_budget();
                let outcome = refused(error, seen(member, job, &known).await);
                if let (true, Err(failure)) = (is_over_budget, &outcome.applied) {
                    let verdict = Verdict::new(failure.clone(), job.generation, shared.clock.now());
                    memory.exhausted.get_or_insert_default().fields = Some(verdict);
                }
                return outcome;
            }
            Ok(Step::Look) => {}
            Ok(Step::Leave) => {
                if let Known::Present(object) = &known {
                    memory.baseline = Some(apply::remember(&target, object));
                }
                return Outcome::fine(known);
            }
            Ok(step) => {
                let attempt = Attempt {
                    step,
                    is_repair,
                    asked,
                    known: &known,
                };
                if let Some(outcome) = attempt.carry_out(shared, member, job, memory).await {
                    return outcome;
                }
            }
        }
    }
    let message = "the object keeps changing while it is being written".to_owned();
    Outcome::failed(Failure::Apply(message), known)
}

/// A write that is about to be tried.
struct Attempt<'a> {
    step: Step,
    /// Whether it puts right what somebody else did.
    is_repair: bool,
    /// Whether the executor was asked in this very look.
    asked: bool,
    known: &'a Known,
}

impl Attempt<'_> {
    /// Writes, if that is allowed now; nothing if the object is not what it was taken for.
    async fn carry_out(
        self,
        shared: &Shared,
        member: &Member,
        job: &Job<'_>,
        memory: &mut Memory,
    ) -> Option<Outcome> {
        let (is_repair, known) = (self.is_repair, self.known);
        let now = shared.clock.now();
        if is_repair && let Some(time) = memory.repairs.next(now) {
            return Some(Outcome {
                again: Some(time),
                ..Outcome::fine(known.clone())
            });
        }
        if !self.asked
            && let Err(outcome) = ask(shared, member, job, memory, known).await
        {
            return Some(outcome);
        }
        let anew = matches!(self.step, Step::Recreate { .. });
        match write(member, job, self.step).await {
            Ok(object) => {
                let object = Arc::new(object);
                memory.awaited_since = None;
                member.watches.note(job.id, &object);
                memory.baseline = Some(apply::remember(&job.target(memory), &object));
                count(shared, memory, is_repair, now);
                Some(Outcome {
                    effect: if is_repair {
                        Effect::Repaired
                    } else {
                        Effect::Wrote
                    },
                    anew,
                    ..Outcome::fine(Known::Present(object))
                })
            }
            Err(Written::LookAgain) => None,
            Err(Written::Failed(error)) => {
                shared.metrics.failures.inc();
                let mut outcome = unwritten(&error, seen(member, job, known).await, now);
                if let Some(time) = settling(job, &error, memory, now) {
                    outcome.obstacle = Some(Obstacle::Unserved(time));
                }
                Some(outcome)
            }
        }
    }
}

/// When to look again for a kind that the cluster does not serve yet: its definition is in the same
/// work and was just created. After a while that is a failure as any other.
fn settling(
    job: &Job<'_>,
    error: &RequestError,
    memory: &mut Memory,
    now: Timestamp,
) -> Option<Timestamp> {
    if !job.is_defined_here || !error.is_not_found() || error.is_namespace_missing() {
        return None;
    }
    let since = *memory.awaited_since.get_or_insert(now);
    let is_early = now.duration_since(since) < DEFINITION_TIMEOUT;
    now.checked_add(DEFINITION_WAIT).ok().filter(|_| is_early)
}

impl<'a> Job<'a> {
    /// Why fields to be ignored cannot be found out, if that took too much lately.
    fn exhausted(&self, memory: &Memory, now: Timestamp) -> Option<(Failure, Timestamp)> {
        let verdict = memory.exhausted.as_ref()?.fields.as_ref()?;
        verdict.standing(self.generation, now)
    }

    fn target<'b>(&self, memory: &'b Memory) -> Target<'b>
    where
        'a: 'b,
    {
        Target {
            manifest: self.manifest,
            strategy: self.options.strategy,
            owner: self.owner,
            owned: self.owned,
            baseline: memory.baseline.as_ref(),
            applied_before: self.applied_before,
        }
    }
}

/// Whether rules say that an object which would be updated is done.
async fn is_done(shared: &Shared, job: &Job<'_>, object: &Value) -> bool {
    let rules = &job.options.rules;
    if !apply::is_updating(job.options.strategy) || rules.is_empty() {
        return false;
    }
    let judge = || rules::is_complete(rules, object, &shared.programs);
    if rules::have_programs(rules) {
        compute(judge).await
    } else {
        judge()
    }
}

/// Whether the server would apply an object that rules may find to be done.
fn is_completable(job: &Job<'_>) -> bool {
    let strategy = job.options.strategy.map(|strategy| &strategy.kind);
    let mut rules = job.options.rules.iter();
    strategy == Some(&UpdateStrategyType::ServerSideApply)
        && rules.any(|rule| rules::condition_of(rule) == condition::COMPLETE)
}

fn refused(error: ApplyError, known: Known) -> Outcome {
    let failure = match error {
        ApplyError::Ignore(error) => Failure::IgnoreFields(error.to_string()),
        other => Failure::Apply(other.to_string()),
    };
    Outcome {
        retry: false,
        ..Outcome::failed(failure, known)
    }
}

/// A conflict over fields is for people to resolve; anything else may pass.
fn unwritten(error: &RequestError, known: Known, now: Timestamp) -> Outcome {
    let is_conflict = error.is_conflict();
    let again = now
        .checked_add(SignedDuration::from_secs(CONFLICT_WAIT))
        .ok();
    Outcome {
        retry: !is_conflict,
        again: again.filter(|_| is_conflict),
        obstacle: error
            .is_namespace_missing()
            .then_some(Obstacle::NoNamespace),
        ..Outcome::failed(Failure::Apply(error.to_string()), known)
    }
}

fn count(shared: &Shared, memory: &mut Memory, is_repair: bool, now: Timestamp) {
    if is_repair {
        memory.repairs.made(now);
        shared.metrics.repairs.inc();
    } else {
        shared.metrics.applies.inc();
    }
}

/// What is known of an object that could not be written; if nothing is, it is read.
async fn seen(member: &Member, job: &Job<'_>, known: &Known) -> Known {
    match known {
        Known::Unknown => read(member, job).await.unwrap_or(Known::Unknown),
        known => known.clone(),
    }
}

async fn read(member: &Member, job: &Job<'_>) -> Result<Known, RequestError> {
    let found = member.objects.get(job.resource, job.id).await?;
    Ok(match found {
        Some(object) => {
            let object = Arc::new(object);
            member.watches.note(job.id, &object);
            Known::Present(object)
        }
        None => Known::Absent,
    })
}

/// Why a write gave no object.
enum Written {
    /// The object is not what it was taken for.
    LookAgain,
    Failed(RequestError),
}

async fn write(member: &Member, job: &Job<'_>, step: Step) -> Result<Value, Written> {
    let objects = &member.objects;
    let answer = match step {
        Step::Look | Step::Leave => return Err(Written::LookAgain),
        Step::Create(object) => create(member, job, &object).await,
        Step::Replace(object) => match objects.replace(job.resource, job.id, &object).await {
            Err(error) if is_immutable_secret(job, &error) => {
                let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
                let mut new = object.clone();
                if let Some(metadata) = new["metadata"].as_object_mut() {
                    for field in [
                        "uid",
                        "resourceVersion",
                        "creationTimestamp",
                        "managedFields",
                    ] {
                        metadata.remove(field);
                    }
                }
                recreate(member, job, uid, &new).await
            }
            other => other,
        },
        Step::Recreate { uid, object } => recreate(member, job, &uid, &object).await,
        Step::Own(patch) => objects.merge(job.resource, job.id, &patch).await,
        Step::Apply {
            configuration,
            manager,
            mut force,
        } => {
            let applied = loop {
                let answer = objects.apply(job.resource, job.id, &configuration, &manager, force);
                match answer.await {
                    // What we wrote before the strategy was this one is ours to apply.
                    Err(error) if !force && error.is_conflict_with_only(&manager) => force = true,
                    other => break other,
                }
            };
            match applied {
                Ok(object) => match ownership::patch(&object, job.owner, job.owned) {
                    Some(patch) => objects.merge(job.resource, job.id, &patch).await,
                    None => Ok(object),
                },
                // A conflict over fields is no reason to look again.
                Err(error) => return Err(Written::Failed(error)),
            }
        }
    };
    answer.map_err(|error| {
        if error.is_conflict() || error.is_already_there() {
            Written::LookAgain
        } else {
            Written::Failed(error)
        }
    })
}

async fn create(member: &Member, job: &Job<'_>, object: &Value) -> Result<Value, RequestError> {
    let objects = &member.objects;
    let namespace = &job.id.namespace;
    objects.create(job.resource, namespace, object).await
}

async fn recreate(
    member: &Member,
    job: &Job<'_>,
    uid: &str,
    object: &Value,
) -> Result<Value, RequestError> {
    match member.objects.delete(job.resource, job.id, uid).await? {
        Deleted::Gone => create(member, job, object).await,
        // When it is gone, its watch tells, and it is created anew.
        Deleted::Waits(object) => Ok(object),
    }
}

fn is_immutable_secret(job: &Job<'_>, error: &RequestError) -> bool {
    job.manifest.kind == "Secret" && error.is_invalid() && error.to_string().contains("immutable")
}
