//! One manifest: decided and written until it is as it should be, or cannot be.

mod permission;

use std::sync::Arc;

use bellwether_api::work::names::condition;
use bellwether_apply::{
    self as apply, ApplyError, Drift, Manifest, ObjectId, Owner, Ownership, ResourceType, Step,
    Strategy, Target,
};
use bellwether_runtime::{Deleted, LiveState, RequestError, compute};
use bellwether_work::executor::Account;
use bellwether_work::options::Options;
use bellwether_work::rules;
use bellwether_work::status::Failure;
use bellwether_work::strategy::StrategyError;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::Shared;
use super::budget::Verdict;
use super::member::{Member, Memory};
use permission::{ask, may_apply};

/// How often a decision is taken again because the object changed meanwhile.
const ATTEMPTS: usize = 6;
/// How often to look for a kind whose definition was just created, and for how long.
const DEFINITION_WAIT: SignedDuration = SignedDuration::from_millis(50);
const DEFINITION_TIMEOUT: SignedDuration = SignedDuration::from_secs(5);
/// When to look again at a conflict that only somebody else can resolve, in seconds.
const CONFLICT_WAIT: i64 = 300;

/// A manifest of a work on its way to the cluster.
pub(super) struct ApplyRequest<'a> {
    pub(super) manifest: &'a Manifest,
    pub(super) resource: &'a Arc<ResourceType>,
    pub(super) id: &'a ObjectId,
    pub(super) options: Options<'a>,
    pub(super) strategy: Result<Strategy<'a>, StrategyError>,
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
    pub(super) live: LiveState,
    /// When to look again, if at a certain time.
    pub(super) again: Option<Timestamp>,
    /// Whether to try again after a while that grows.
    pub(super) retry: bool,
    /// What was done to it.
    pub(super) effect: Effect,
    /// Whether the object took the place of one that was removed for it.
    pub(super) recreated: bool,
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
    /// It was written, which repaired what somebody else did.
    Repaired,
}

impl Outcome {
    fn fine(live: LiveState) -> Self {
        Self {
            applied: Ok(()),
            live,
            again: None,
            retry: false,
            effect: Effect::Left,
            recreated: false,
            obstacle: None,
        }
    }

    pub(super) fn failed(failure: Failure, live: LiveState) -> Self {
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
    request: &ApplyRequest<'_>,
    memory: &mut Memory,
) -> Outcome {
    let mut known = member.watches.known(request.id);
    let asked = match may_apply(shared, member, request, memory, &known).await {
        Ok(asked) => asked,
        Err(outcome) => return outcome,
    };
    let strategy = match &request.strategy {
        Ok(strategy) => strategy,
        Err(error) => {
            let failure = Failure::Apply(error.to_string());
            let live = seen(member, request, &known).await;
            return Outcome {
                retry: false,
                ..Outcome::failed(failure, live)
            };
        }
    };
    // What may be done is looked at before it is written, even where a write would need no look.
    let mut must_read = match &known {
        LiveState::Unknown => is_completable(request, strategy),
        LiveState::Absent => false,
        // A kind is watched in one version, in whose form another cannot be compared.
        LiveState::Present(object) => object["apiVersion"] != request.manifest.object["apiVersion"],
    };
    for _ in 0..ATTEMPTS {
        if must_read {
            known = match read(member, request).await {
                Ok(known) => known,
                Err(error) => {
                    return Outcome::failed(Failure::Apply(error.to_string()), LiveState::Unknown);
                }
            };
        }
        must_read = true;
        if let LiveState::Present(object) = &known {
            let leaving = object["metadata"]["deletionTimestamp"].is_string();
            // An object that is done is never written again, nor one that is about to go.
            if leaving || is_done(shared, request, strategy, object).await {
                return Outcome::fine(known);
            }
        }
        let live = known.as_live();
        let is_repair = apply::is_repair(&request.target(strategy, memory));
        if let Some((failure, until)) = request.exhausted(memory, shared.clock.now()) {
            return Outcome {
                retry: false,
                again: Some(until),
                ..Outcome::failed(failure, seen(member, request, &known).await)
            };
        }
        let target = request.target(strategy, memory);
        let plan = if strategy.has_programs() {
            compute(|| apply::plan(&target, live)).await
        } else {
            apply::plan(&target, live)
        };
        match plan {
            Err(error) => {
                let is_over_budget = error.is_over_budget();
                let outcome = refused(error, seen(member, request, &known).await);
                if let (true, Err(failure)) = (is_over_budget, &outcome.applied) {
                    let verdict =
                        Verdict::new(failure.clone(), request.generation, shared.clock.now());
                    memory.exhausted.get_or_insert_default().fields = Some(verdict);
                }
                return outcome;
            }
            Ok(Step::Read) => {}
            Ok(Step::Leave) => {
                if let LiveState::Present(object) = &known {
                    memory.baseline = Some(apply::remember(&target, object));
                }
                return Outcome::fine(known);
            }
            Ok(step) => {
                let attempt = Attempt {
                    strategy,
                    step,
                    is_repair,
                    asked,
                    known: &known,
                };
                if let Some(outcome) = attempt.carry_out(shared, member, request, memory).await {
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
    strategy: &'a Strategy<'a>,
    step: Step,
    /// Whether it repairs what somebody else did.
    is_repair: bool,
    /// Whether the executor was asked in this very look.
    asked: bool,
    known: &'a LiveState,
}

impl Attempt<'_> {
    /// Writes, if that is allowed now; nothing if the object is not what it was taken for.
    async fn carry_out(
        self,
        shared: &Shared,
        member: &Member,
        request: &ApplyRequest<'_>,
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
            && let Err(outcome) = ask(shared, member, request, memory, known).await
        {
            return Some(outcome);
        }
        let recreated = matches!(self.step, Step::Recreate { .. });
        match write(member, request, self.step).await {
            Ok(object) => {
                let object = Arc::new(object);
                memory.awaited_since = None;
                member.watches.note(request.id, &object);
                memory.baseline = Some(apply::remember(
                    &request.target(self.strategy, memory),
                    &object,
                ));
                count(shared, memory, is_repair, now);
                Some(Outcome {
                    effect: if is_repair {
                        Effect::Repaired
                    } else {
                        Effect::Wrote
                    },
                    recreated,
                    ..Outcome::fine(LiveState::Present(object))
                })
            }
            Err(Written::ReadAgain) => None,
            Err(Written::Failed(error)) => {
                shared.metrics.failures.inc();
                let mut outcome = unwritten(&error, seen(member, request, known).await, now);
                if let Some(time) = settling(request, &error, memory, now) {
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
    request: &ApplyRequest<'_>,
    error: &RequestError,
    memory: &mut Memory,
    now: Timestamp,
) -> Option<Timestamp> {
    if !request.is_defined_here || !error.is_not_found() || error.is_namespace_missing() {
        return None;
    }
    let since = *memory.awaited_since.get_or_insert(now);
    let is_early = now.duration_since(since) < DEFINITION_TIMEOUT;
    now.checked_add(DEFINITION_WAIT).ok().filter(|_| is_early)
}

impl<'a> ApplyRequest<'a> {
    /// Why fields to be ignored cannot be found out, if that took too much lately.
    fn exhausted(&self, memory: &Memory, now: Timestamp) -> Option<(Failure, Timestamp)> {
        let verdict = memory.exhausted.as_ref()?.fields.as_ref()?;
        verdict.standing(self.generation, now)
    }

    fn target<'b>(&self, strategy: &'b Strategy<'b>, memory: &'b Memory) -> Target<'b>
    where
        'a: 'b,
    {
        Target {
            manifest: self.manifest,
            strategy,
            drift: Drift::Undo,
            ownership: self.ownership(),
            baseline: memory.baseline.as_ref(),
            dry_run: None,
            applied_before: self.applied_before,
        }
    }

    fn ownership(&self) -> Ownership<'a> {
        Ownership::Reference {
            owner: self.owner,
            belongs: self.owned,
        }
    }
}

/// Whether rules say that an object which would be updated is done.
async fn is_done(
    shared: &Shared,
    request: &ApplyRequest<'_>,
    strategy: &Strategy<'_>,
    object: &Value,
) -> bool {
    let rules = &request.options.rules;
    if !strategy.is_updating() || rules.is_empty() {
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
fn is_completable(request: &ApplyRequest<'_>, strategy: &Strategy<'_>) -> bool {
    let mut rules = request.options.rules.iter();
    matches!(strategy, Strategy::ServerSide(_))
        && rules.any(|rule| rules::condition_of(rule) == condition::COMPLETE)
}

fn refused(error: ApplyError, known: LiveState) -> Outcome {
    let failure = match error {
        ApplyError::Field(error) => Failure::IgnoreFields(error.to_string()),
        other => Failure::Apply(other.to_string()),
    };
    Outcome {
        retry: false,
        ..Outcome::failed(failure, known)
    }
}

/// A conflict over fields is for people to resolve; anything else may pass.
fn unwritten(error: &RequestError, known: LiveState, now: Timestamp) -> Outcome {
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
async fn seen(member: &Member, request: &ApplyRequest<'_>, known: &LiveState) -> LiveState {
    match known {
        LiveState::Unknown => read(member, request).await.unwrap_or(LiveState::Unknown),
        known => known.clone(),
    }
}

async fn read(member: &Member, request: &ApplyRequest<'_>) -> Result<LiveState, RequestError> {
    let found = member.objects.get(request.resource, request.id).await?;
    Ok(match found {
        Some(object) => {
            let object = Arc::new(object);
            member.watches.note(request.id, &object);
            LiveState::Present(object)
        }
        None => LiveState::Absent,
    })
}

/// Why a write gave no object.
enum Written {
    /// The object is not what it was taken for.
    ReadAgain,
    Failed(RequestError),
}

async fn write(member: &Member, request: &ApplyRequest<'_>, step: Step) -> Result<Value, Written> {
    let objects = &member.objects;
    let answer = match step {
        Step::Read | Step::Leave => return Err(Written::ReadAgain),
        Step::DryRun(object) => {
            objects
                .try_replace(request.resource, request.id, &object)
                .await
        }
        Step::Patch(patch) => objects.patch(request.resource, request.id, &patch).await,
        Step::Delete { uid } => match objects.delete(request.resource, request.id, &uid).await {
            Ok(Deleted::Waits(object)) => Ok(object),
            Ok(Deleted::Gone) => return Err(Written::ReadAgain),
            Err(error) => Err(error),
        },
        Step::Create(object) => create(member, request, &object).await,
        Step::Replace(object) => match objects.replace(request.resource, request.id, &object).await
        {
            Err(error) if is_immutable_secret(request, &error) => {
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
                recreate(member, request, uid, &new).await
            }
            other => other,
        },
        Step::Recreate { uid, object } => recreate(member, request, &uid, &object).await,
        Step::Own(patch) => objects.merge(request.resource, request.id, &patch).await,
        Step::Apply {
            configuration,
            manager,
            mut force,
        } => {
            let applied = loop {
                let answer = objects.apply(
                    request.resource,
                    request.id,
                    &configuration,
                    &manager,
                    force,
                );
                match answer.await {
                    // What we wrote before the strategy was this one is ours to apply.
                    Err(error) if !force && error.is_conflict_with_only(&manager) => force = true,
                    other => break other,
                }
            };
            match applied {
                Ok(object) => match request.ownership().patch(&object) {
                    Some(patch) => objects.merge(request.resource, request.id, &patch).await,
                    None => Ok(object),
                },
                // A conflict over fields is no reason to look again.
                Err(error) => return Err(Written::Failed(error)),
            }
        }
    };
    answer.map_err(|error| {
        if error.is_conflict() || error.is_already_there() {
            Written::ReadAgain
        } else {
            Written::Failed(error)
        }
    })
}

async fn create(
    member: &Member,
    request: &ApplyRequest<'_>,
    object: &Value,
) -> Result<Value, RequestError> {
    let objects = &member.objects;
    let namespace = &request.id.namespace;
    objects.create(request.resource, namespace, object).await
}

async fn recreate(
    member: &Member,
    request: &ApplyRequest<'_>,
    uid: &str,
    object: &Value,
) -> Result<Value, RequestError> {
    match member
        .objects
        .delete(request.resource, request.id, uid)
        .await?
    {
        Deleted::Gone => create(member, request, object).await,
        // When it is gone, its watch tells, and it is created again.
        Deleted::Waits(object) => Ok(object),
    }
}

fn is_immutable_secret(request: &ApplyRequest<'_>, error: &RequestError) -> bool {
    request.manifest.kind == "Secret" && error.is_immutable()
}
