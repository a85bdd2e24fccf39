//! One object of a pass: read, asked about and written until it is as it should be, or cannot be.

use std::fmt;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::Task;
use crate::baseline::Baseline;
use crate::live::LiveState;
use crate::manifest::{ObjectId, ResourceType};
use crate::plan::{ApplyError, Step, is_repair, plan, remember};
use crate::record::Entry;
use crate::repairs::Repairs;
use crate::retry::Retry;
use crate::target::Target;

/// How often a decision is taken again because the object changed meanwhile.
const ATTEMPTS: usize = 6;
/// When to look again for a kind whose definition was just created, and for how long.
const DEFINITION_WAIT: SignedDuration = SignedDuration::from_millis(50);
const DEFINITION_TIMEOUT: SignedDuration = SignedDuration::from_secs(5);
/// When to look again at a conflict that only somebody else can resolve.
const CONFLICT_WAIT: SignedDuration = SignedDuration::from_secs(300);

/// What is remembered of an object between passes.
#[derive(Debug, Default)]
pub struct Memory {
    /// What was written last.
    pub baseline: Option<Baseline>,
    /// How often it was repaired lately.
    pub repairs: Repairs,
    /// Since when it waits for a definition of the same set to be served.
    pub awaited_since: Option<Timestamp>,
}

/// Whether an object may be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Permission {
    /// Nobody has to be asked.
    NotNeeded,
    /// It has to be asked, even if nothing is written.
    Unknown,
    /// It was granted in an earlier pass; it is asked again before a write.
    GrantedBefore,
    /// It was granted in this pass.
    Granted,
    /// It was denied; asked again then.
    Denied {
        /// When to ask again.
        until: Timestamp,
        /// What is reported.
        message: String,
    },
    /// Nobody could say.
    Failed(String),
}

/// Why an object is not written at all in this pass, whatever its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blocked {
    /// What is reported.
    pub message: String,
    /// When to look again, if at a certain time.
    pub until: Option<Timestamp>,
    /// When to try again besides that.
    pub retry: Retry,
}

/// Says whether an object in a state is done.
pub type IsDone<'a> = Box<dyn Fn(&Value) -> bool + Send + Sync + 'a>;

/// An object of a set.
pub struct Object<'a> {
    /// The object.
    pub id: ObjectId,
    /// What the cluster calls its kind.
    pub resource: Arc<ResourceType>,
    /// How it is treated; its baseline is that of the memory.
    pub target: Target<'a>,
    /// What is remembered of it.
    pub memory: Memory,
    /// Whether it may be written.
    pub permission: Permission,
    /// Why it is not written at all, if so.
    pub blocked: Option<Blocked>,
    /// Whether it is read before it is written, even where a write would not need it.
    pub reads_first: bool,
    /// Whether the definition of its kind is in the same set: the cluster may not serve it yet.
    pub is_defined_here: bool,
    /// Says whether an object in this state is done, and never written again.
    pub is_done: Option<IsDone<'a>>,
    /// Whether that runs programs of users.
    pub is_done_by_program: bool,
}

impl<'a> Object<'a> {
    /// An object that is treated in the usual way.
    pub fn new(id: ObjectId, resource: Arc<ResourceType>, target: Target<'a>) -> Self {
        Self {
            id,
            resource,
            target,
            memory: Memory::default(),
            permission: Permission::NotNeeded,
            blocked: None,
            reads_first: false,
            is_defined_here: false,
            is_done: None,
            is_done_by_program: false,
        }
    }

    /// Returns the entry that a record has of it.
    pub fn entry(&self, uid: Option<&str>) -> Entry {
        Entry {
            id: self.id.clone(),
            version: self.resource.version.clone(),
            uid: uid.map(str::to_owned),
        }
    }

    pub(super) fn has_programs(&self) -> bool {
        self.is_done_by_program || self.target.has_programs()
    }

    fn target(&self) -> Target<'_> {
        Target {
            baseline: self.memory.baseline.as_ref(),
            ..self.target
        }
    }
}

impl fmt::Debug for Object<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Object")
            .field("id", &self.id)
            .field("target", &self.target)
            .field("permission", &self.permission)
            .field("blocked", &self.blocked)
            .finish_non_exhaustive()
    }
}

/// Why the server refused something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// What follows from it.
    pub kind: RefusalKind,
    /// What the server says.
    pub message: String,
    /// When it is worth being tried again.
    pub retry: Retry,
}

/// What follows from a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefusalKind {
    /// The object was changed meanwhile, or fields belong to others.
    Conflict,
    /// Fields belong to us, by what we did other than apply them.
    OwnFields,
    /// An object of that name exists already.
    AlreadyExists,
    /// The object, or its kind, does not exist.
    NotFound,
    /// The namespace does not exist, or is being deleted.
    NamespaceMissing,
    /// A field cannot be changed.
    Immutable,
    /// Anything else.
    Other,
}

/// What was done to an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Nothing.
    Left,
    /// It was written.
    Wrote,
    /// It was written, which repaired what somebody else did.
    Repaired,
}

/// What keeps an object from being written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Obstacle {
    /// The namespace is missing, or being deleted.
    NoNamespace,
    /// Its definition was just created, and its kind is not served yet: looked for again then.
    Unserved(Timestamp),
}

/// Why an object is not as it should be.
#[derive(Debug, Clone, PartialEq)]
pub enum Problem {
    /// It cannot be decided what to write.
    Plan(ApplyError),
    /// It must not be written.
    Denied(String),
    /// It is not written in this pass.
    Blocked(Blocked),
    /// It could not be read or written.
    Failed {
        /// What is reported.
        message: String,
        /// What stands in the way, if that is known.
        obstacle: Option<Obstacle>,
        /// When to try again.
        retry: Retry,
    },
}

/// What became of an object.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// What was done, or why it is not as it should be.
    pub result: Result<Effect, Problem>,
    /// What is known of it now.
    pub live: LiveState,
    /// When to look again, if at a certain time.
    pub again: Option<Timestamp>,
    /// Whether it took the place of one that was removed for it.
    pub is_recreated: bool,
}

impl Outcome {
    /// Returns when it has to be tried again, besides at a certain time.
    pub fn retry(&self) -> Retry {
        match &self.result {
            Ok(_) | Err(Problem::Plan(_) | Problem::Denied(_)) => Retry::Never,
            Err(Problem::Blocked(blocked)) => blocked.retry,
            Err(Problem::Failed { retry, .. }) => *retry,
        }
    }
}

/// How far an object is.
#[derive(Debug)]
pub(super) struct ObjectState {
    known: LiveState,
    must_read: bool,
    /// How often it was decided what to write.
    attempts: usize,
    permission: Permission,
    /// A step that follows from the last one, whatever a new decision would say.
    follow_up: Option<Step>,
    /// Whether the write that is under way repairs what somebody else did.
    is_repair: bool,
    is_recreated: bool,
    /// How it ends; what is known of it may still have to be read.
    end: Option<End>,
    outcome: Option<Outcome>,
}

#[derive(Debug, Clone)]
struct End {
    problem: Problem,
    again: Option<Timestamp>,
}

impl ObjectState {
    pub(super) fn new(object: &Object<'_>, known: LiveState) -> Self {
        let must_read = match &known {
            LiveState::Unknown => object.reads_first,
            LiveState::Absent => false,
            // A kind is watched in one version, in whose form another cannot be compared.
            LiveState::Present(live) => {
                live["apiVersion"] != object.target.manifest.object["apiVersion"]
            }
        };
        Self {
            known,
            must_read,
            attempts: 0,
            permission: object.permission.clone(),
            follow_up: None,
            is_repair: false,
            is_recreated: false,
            end: None,
            outcome: None,
        }
    }

    pub(super) fn into_outcome(self) -> Option<Outcome> {
        self.outcome
    }

    /// The next step; nothing if the object is done with.
    pub(super) fn next(
        &mut self,
        index: usize,
        object: &mut Object<'_>,
        now: Timestamp,
    ) -> Option<Task> {
        if self.outcome.is_none()
            && self.end.is_none()
            && let Some(task) = self.decide(index, object, now)
        {
            return Some(task);
        }
        let end = self.end.clone()?;
        // What cannot be written is reported as it is.
        if self.outcome.is_none() && matches!(self.known, LiveState::Unknown) && !self.must_read {
            self.must_read = true;
            return Some(Task::Read(index));
        }
        self.outcome.get_or_insert_with(|| Outcome {
            result: Err(end.problem),
            live: self.known.clone(),
            again: end.again,
            is_recreated: false,
        });
        None
    }

    fn decide(&mut self, index: usize, object: &mut Object<'_>, now: Timestamp) -> Option<Task> {
        if let Some(step) = self.follow_up.take() {
            return Some(Task::Write(index, step));
        }
        match &self.permission {
            Permission::Unknown => return Some(Task::Ask(index)),
            Permission::Denied { until, message } => {
                let problem = Problem::Denied(message.clone());
                return self.end_with(problem, Some(*until));
            }
            Permission::Failed(message) => {
                // It is not read for the report: the next attempt is near.
                let problem = failed(message.clone(), Retry::Backoff);
                self.outcome = Some(Outcome {
                    result: Err(problem),
                    live: self.known.clone(),
                    again: None,
                    is_recreated: false,
                });
                return None;
            }
            Permission::NotNeeded | Permission::GrantedBefore | Permission::Granted => {}
        }
        if self.attempts >= ATTEMPTS {
            let message = "the object keeps changing while it is being written";
            return self.end_with(failed(message.to_owned(), Retry::Backoff), None);
        }
        if self.must_read {
            return Some(Task::Read(index));
        }
        if let LiveState::Present(live) = &self.known {
            let is_leaving = live["metadata"]["deletionTimestamp"].is_string();
            let is_done = || object.is_done.as_ref().is_some_and(|is_done| is_done(live));
            // An object that is done is never written again, nor one that is about to go.
            if is_leaving || object.target.strategy.is_updating() && is_done() {
                return self.finish(Effect::Left, None);
            }
        }
        if let Some(blocked) = &object.blocked {
            return self.end_with(Problem::Blocked(blocked.clone()), blocked.until);
        }
        let target = object.target();
        self.is_repair = is_repair(&target);
        let step = match plan(&target, self.known.as_live()) {
            Ok(step) => step,
            Err(error) => return self.end_with(Problem::Plan(error), None),
        };
        match step {
            Step::Read => {
                self.must_read = true;
                self.attempts += 1;
                Some(Task::Read(index))
            }
            Step::Leave => {
                self.remember(object);
                self.finish(Effect::Left, None)
            }
            step => {
                if let Some(time) = object.memory.repairs.next(now).filter(|_| self.is_repair) {
                    return self.finish(Effect::Left, Some(time));
                }
                if self.permission == Permission::GrantedBefore {
                    return Some(Task::Ask(index));
                }
                self.is_recreated = matches!(step, Step::Recreate { .. });
                Some(Task::Write(index, step))
            }
        }
    }

    fn end_with(&mut self, problem: Problem, again: Option<Timestamp>) -> Option<Task> {
        self.end = Some(End { problem, again });
        // A read that is due belongs to the end now.
        self.must_read = false;
        None
    }

    fn finish(&mut self, effect: Effect, again: Option<Timestamp>) -> Option<Task> {
        self.outcome = Some(Outcome {
            result: Ok(effect),
            live: self.known.clone(),
            again,
            is_recreated: self.is_recreated,
        });
        None
    }

    pub(super) fn was_read(&mut self, answer: Result<Option<Value>, Refusal>) {
        match answer {
            Ok(found) => {
                self.known = LiveState::of(found);
                if self.end.is_none() {
                    self.must_read = false;
                }
            }
            // What is read only for the report may stay unknown.
            Err(_) if self.end.is_some() => {}
            Err(refusal) => {
                self.known = LiveState::Unknown;
                self.end_with(failed(refusal.message, refusal.retry), None);
                self.must_read = true;
            }
        }
    }

    pub(super) fn was_asked(&mut self, answer: Permission) {
        self.permission = answer;
    }

    pub(super) fn was_written(
        &mut self,
        object: &mut Object<'_>,
        step: Step,
        answer: Result<Option<Value>, Refusal>,
        now: Timestamp,
    ) {
        match answer {
            Ok(written) => self.take_result(object, &step, written, now),
            Err(refusal) => self.take_refusal(object, step, refusal, now),
        }
    }

    fn take_result(
        &mut self,
        object: &mut Object<'_>,
        step: &Step,
        written: Option<Value>,
        now: Timestamp,
    ) {
        self.known = LiveState::of(written);
        if matches!(step, Step::Apply { .. })
            && let Some(live) = self.known.object()
            && let Some(patch) = object.target.ownership.patch(live)
        {
            self.follow_up = Some(Step::Own(patch));
            return;
        }
        object.memory.awaited_since = None;
        self.remember(object);
        let effect = if self.is_repair {
            object.memory.repairs.made(now);
            Effect::Repaired
        } else {
            Effect::Wrote
        };
        self.finish(effect, None);
    }

    /// Remembers the object as it is, if it exists.
    fn remember(&self, object: &mut Object<'_>) {
        if let Some(live) = self.known.object() {
            let baseline = remember(&object.target(), live);
            object.memory.baseline = Some(baseline);
        }
    }

    fn take_refusal(
        &mut self,
        object: &mut Object<'_>,
        step: Step,
        refusal: Refusal,
        now: Timestamp,
    ) {
        match (refusal.kind, step) {
            // What we wrote before the strategy was this one is ours to apply.
            (
                RefusalKind::OwnFields,
                Step::Apply {
                    configuration,
                    manager,
                    force: false,
                },
            ) => {
                self.follow_up = Some(Step::Apply {
                    configuration,
                    manager,
                    force: true,
                });
            }
            (RefusalKind::Immutable, Step::Replace(replaced))
                if object.target.manifest.kind == "Secret" =>
            {
                self.is_recreated = true;
                self.follow_up = Some(recreation(replaced));
            }
            // A conflict over fields is no reason to read the object again.
            (RefusalKind::Conflict | RefusalKind::AlreadyExists, step)
                if !matches!(step, Step::Apply { .. }) =>
            {
                self.attempts += 1;
                self.must_read = true;
            }
            _ => self.fail(object, refusal, now),
        }
    }

    /// A conflict over fields is for people to resolve; anything else may pass, a refusal later than an outage.
    fn fail(&mut self, object: &mut Object<'_>, refusal: Refusal, now: Timestamp) {
        let is_conflict = matches!(refusal.kind, RefusalKind::Conflict | RefusalKind::OwnFields);
        let obstacle = match refusal.kind {
            RefusalKind::NamespaceMissing => Some(Obstacle::NoNamespace),
            RefusalKind::NotFound if object.is_defined_here => {
                awaited(&mut object.memory, now).map(Obstacle::Unserved)
            }
            _ => None,
        };
        let problem = Problem::Failed {
            message: refusal.message,
            obstacle,
            retry: match refusal.kind {
                RefusalKind::Conflict | RefusalKind::OwnFields => Retry::Never,
                // It comes soon, or is gone soon.
                RefusalKind::NamespaceMissing => Retry::Backoff,
                _ => refusal.retry,
            },
        };
        let again = now.checked_add(CONFLICT_WAIT).ok();
        self.end_with(problem, again.filter(|_| is_conflict));
    }
}

/// When to look again for a kind that the cluster does not serve yet: its definition is in the same set
/// and was just created. After a while that is a failure as any other.
fn awaited(memory: &mut Memory, now: Timestamp) -> Option<Timestamp> {
    let since = *memory.awaited_since.get_or_insert(now);
    let is_early = now.duration_since(since) < DEFINITION_TIMEOUT;
    now.checked_add(DEFINITION_WAIT).ok().filter(|_| is_early)
}

fn failed(message: String, retry: Retry) -> Problem {
    Problem::Failed {
        message,
        obstacle: None,
        retry,
    }
}

/// The step that makes an object again which cannot be changed to what it should be.
fn recreation(mut object: Value) -> Step {
    let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
    let uid = uid.to_owned();
    if let Some(metadata) = object["metadata"].as_object_mut() {
        for field in [
            "uid",
            "resourceVersion",
            "creationTimestamp",
            "managedFields",
        ] {
            metadata.remove(field);
        }
    }
    Step::Recreate { uid, object }
}
