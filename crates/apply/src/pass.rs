//! One pass over a set of objects, as a value: [`Pass::round`] says what to do next, the caller carries
//! it out, reports what came of it, and asks again.
//!
//! 1. What is about to be written is put on record ([`Round::Intend`]).
//! 2. Objects are read and written, those first that others build on ([`Round::Do`]).
//! 3. What is on record and no longer wanted is removed ([`Round::Do`]).
//! 4. [`Settled`] has what became of each object, and what the record has to say now.
//!
//! Nothing here does I/O. A pass that was carried out, and is made again with what is there then, has
//! nothing to write, to remove or to record.

mod object;
mod prune;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use jiff::Timestamp;
use serde_json::Value;

use crate::live::LiveState;
use crate::manifest::ObjectId;
use crate::ownership::Ownership;
use crate::plan::Step;
use crate::record::{Entry, Record, sorted};
use crate::removal::{OwnerKind, Removal};

use object::ObjectState;
pub use object::{
    Blocked, Effect, IsDone, Memory, Object, Obstacle, Outcome, Permission, Problem, Refusal,
    RefusalKind,
};
pub use prune::Pending;
use prune::Prune;

/// One place of a set.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all are open")]
pub enum Slot<'a> {
    /// An object that is to be as its target says.
    Open(Object<'a>),
    /// An object that is done: it is wanted, but never written again.
    Finished(ObjectId),
    /// A manifest that cannot be mapped to a kind of the cluster now. What is on record and may be its
    /// object stays.
    Unmapped {
        /// The group.
        group: String,
        /// The namespace that it was written with; empty if with none.
        namespace: String,
        /// The name.
        name: String,
    },
}

impl Slot<'_> {
    /// Returns the object, if the cluster knows its kind.
    pub fn id(&self) -> Option<&ObjectId> {
        match self {
            Self::Open(object) => Some(&object.id),
            Self::Finished(id) => Some(id),
            Self::Unmapped { .. } => None,
        }
    }

    /// Returns true if an object on record may be that of a manifest which cannot be mapped now.
    fn may_be(&self, id: &ObjectId) -> bool {
        let Self::Unmapped {
            group,
            namespace,
            name,
        } = self
        else {
            return false;
        };
        *group == id.group
            && *name == id.name
            && (*namespace == id.namespace || namespace.is_empty() || id.namespace.is_empty())
    }
}

/// Says of an object whether something holds.
pub type IsObject<'a> = &'a (dyn Fn(&ObjectId) -> bool + Send + Sync);

/// What happens to objects that are on record and no longer wanted.
#[derive(Clone, Copy)]
pub struct Pruning<'a> {
    /// By what objects are known to be ours.
    pub ownership: Ownership<'a>,
    /// Kinds whose objects own others as ours do.
    pub rivals: &'a [OwnerKind<'a>],
    /// Says which objects are left behind: they are no longer ours, and stay.
    pub is_left: Option<IsObject<'a>>,
    /// Whether anything is removed. If not, all that is on record stays there.
    pub is_allowed: bool,
}

impl fmt::Debug for Pruning<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Pruning")
            .field("ownership", &self.ownership)
            .field("rivals", &self.rivals)
            .field("is_allowed", &self.is_allowed)
            .finish_non_exhaustive()
    }
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Round {
    /// Put these on record as about to be written, then call [`Pass::intended`].
    Intend(Vec<Entry>),
    /// Carry these out, in this order, and report each.
    Do(Vec<Task>),
    /// Nothing is left to do but to write the record.
    Settled,
}

/// Something to be carried out.
#[derive(Debug, Clone, PartialEq)]
pub enum Task {
    /// Read an object; then [`Pass::was_read`].
    Read(usize),
    /// Ask whether an object may be written; then [`Pass::was_asked`].
    Ask(usize),
    /// Write an object; then [`Pass::was_written`].
    Write(usize, Step),
    /// Read an object that is on record; then [`Pass::recorded_was_read`].
    ReadRecorded(Entry),
    /// Remove an object that is on record; then [`Pass::was_removed`].
    Remove(Entry, Removal),
}

/// What a record has to say where it says otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecordChange {
    /// What is on the cluster.
    pub applied: Option<Vec<Entry>>,
    /// What is about to be written.
    pub intended: Option<Vec<Entry>>,
}

/// A pass over a set of objects.
#[derive(Debug)]
pub struct Pass<'a> {
    slots: Vec<Slot<'a>>,
    states: Vec<Option<ObjectState>>,
    /// The order in which objects are written.
    order: Vec<usize>,
    record: Record,
    /// Whether the record names all that may be written.
    is_intended: bool,
    pruning: Pruning<'a>,
    prune: Option<Prune>,
}

impl<'a> Pass<'a> {
    /// A pass over a set of objects, of which the record says that it is on the cluster. What is known
    /// of objects saves reading them.
    pub fn new(
        slots: Vec<Slot<'a>>,
        record: Record,
        pruning: Pruning<'a>,
        known: impl Fn(&ObjectId) -> LiveState,
    ) -> Self {
        let states = slots.iter().map(|slot| match slot {
            Slot::Open(object) => Some(ObjectState::new(object, known(&object.id))),
            Slot::Finished(_) | Slot::Unmapped { .. } => None,
        });
        let states = states.collect();
        let mut order: Vec<usize> = (0..slots.len()).collect();
        order.sort_by_key(|index| rank(&slots[*index]));
        Self {
            slots,
            states,
            order,
            record,
            is_intended: false,
            pruning,
            prune: None,
        }
    }

    /// Returns the places of the set.
    pub fn slots(&self) -> &[Slot<'a>] {
        &self.slots
    }

    /// Returns the object at a place, if it is one that is written.
    pub fn object(&self, index: usize) -> Option<&Object<'a>> {
        match self.slots.get(index)? {
            Slot::Open(object) => Some(object),
            Slot::Finished(_) | Slot::Unmapped { .. } => None,
        }
    }

    /// Returns the places in the order in which objects are written.
    pub fn order(&self) -> &[usize] {
        &self.order
    }

    /// Returns true if deciding runs programs of users, which may take long.
    pub fn has_programs(&self) -> bool {
        self.slots.iter().any(|slot| match slot {
            Slot::Open(object) => object.has_programs(),
            Slot::Finished(_) | Slot::Unmapped { .. } => false,
        })
    }

    /// Decides what to do next. What is known of objects on record saves reading them.
    pub fn round(&mut self, known: impl Fn(&ObjectId) -> LiveState, now: Timestamp) -> Round {
        if !self.is_intended {
            let wanted: Vec<Entry> = self.objects().map(|object| object.entry(None)).collect();
            if let Some(intent) = self.record.intent_with(&wanted) {
                return Round::Intend(intent);
            }
            self.is_intended = true;
        }
        let tasks = self.write_tasks(now);
        if !tasks.is_empty() {
            return Round::Do(tasks);
        }
        let tasks = self.prune_tasks(known);
        if !tasks.is_empty() {
            return Round::Do(tasks);
        }
        Round::Settled
    }

    /// The next steps of all objects of the first rank that is not done: those do not build on each
    /// other.
    fn write_tasks(&mut self, now: Timestamp) -> Vec<Task> {
        let mut tasks = Vec::new();
        let mut current = None;
        for index in &self.order {
            let (Some(state), Slot::Open(object)) =
                (&mut self.states[*index], &mut self.slots[*index])
            else {
                continue;
            };
            let rank = object.target.manifest.rank();
            if current.is_some_and(|current| current != rank) {
                break;
            }
            if let Some(task) = state.next(*index, object, now) {
                current = Some(rank);
                tasks.push(task);
            }
        }
        tasks
    }

    fn prune_tasks(&mut self, known: impl Fn(&ObjectId) -> LiveState) -> Vec<Task> {
        let gone = self.gone();
        let prune = self.prune.get_or_insert_with(|| Prune::new(gone, known));
        if self.pruning.is_allowed {
            prune.next(&self.pruning)
        } else {
            Vec::new()
        }
    }

    fn objects(&self) -> impl Iterator<Item = &Object<'a>> {
        self.slots.iter().filter_map(|slot| match slot {
            Slot::Open(object) => Some(object),
            Slot::Finished(_) | Slot::Unmapped { .. } => None,
        })
    }

    /// What is on record and no longer wanted, whatever its version.
    fn gone(&self) -> Vec<Entry> {
        let wanted: BTreeSet<&ObjectId> = self.slots.iter().filter_map(Slot::id).collect();
        let mut all = self.record.everything();
        all.retain(|entry| !wanted.contains(&entry.id) && !self.may_be_unmapped(&entry.id));
        all
    }

    fn may_be_unmapped(&self, id: &ObjectId) -> bool {
        self.slots.iter().any(|slot| slot.may_be(id))
    }

    /// Takes note that the record names what is about to be written.
    pub fn intended(&mut self, record: Record) {
        self.record = record;
    }

    /// Takes note of what was read of an object.
    pub fn was_read(&mut self, index: usize, answer: Result<Option<Value>, Refusal>) {
        if let Some(Some(state)) = self.states.get_mut(index) {
            state.was_read(answer);
        }
    }

    /// Takes note of whether an object may be written.
    pub fn was_asked(&mut self, index: usize, answer: Permission) {
        if let Some(Some(state)) = self.states.get_mut(index) {
            state.was_asked(answer);
        }
    }

    /// Takes note of what came of a write: the object as it is now, nothing if it is gone, or why it
    /// was refused.
    pub fn was_written(
        &mut self,
        index: usize,
        step: Step,
        answer: Result<Option<Value>, Refusal>,
        now: Timestamp,
    ) {
        if let (Some(Some(state)), Some(Slot::Open(object))) =
            (self.states.get_mut(index), self.slots.get_mut(index))
        {
            state.was_written(object, step, answer, now);
        }
    }

    /// Takes note of what was read of an object that is on record.
    pub fn recorded_was_read(&mut self, entry: &Entry, answer: &Result<Option<Value>, Refusal>) {
        if let Some(prune) = &mut self.prune {
            prune.was_read(&entry.id, answer);
        }
    }

    /// Takes note of what came of a removal: the object if it is still there, or why it was refused.
    pub fn was_removed(&mut self, entry: &Entry, answer: &Result<Option<Value>, Refusal>) {
        if let Some(prune) = &mut self.prune {
            prune.was_removed(&entry.id, answer);
        }
    }

    /// Returns what became of everything, once a round said [`Round::Settled`].
    pub fn settle(self) -> Settled<'a> {
        let prune = self.prune.unwrap_or_default();
        let is_kept = !self.pruning.is_allowed && !prune.is_empty();
        let mut settled = Settled {
            slots: self.slots,
            outcomes: self
                .states
                .into_iter()
                .map(|state| state.and_then(ObjectState::into_outcome))
                .collect(),
            order: self.order,
            pending: prune.pending(),
            failed: prune.failures(),
            removed: if self.pruning.is_allowed {
                prune.removed()
            } else {
                Vec::new()
            },
            is_pruning_put_off: is_kept,
            record: self.record,
            change: RecordChange::default(),
        };
        settled.change = settled.record_change();
        settled
    }
}

fn rank(slot: &Slot<'_>) -> usize {
    match slot {
        Slot::Open(object) => object.target.manifest.rank(),
        Slot::Finished(_) | Slot::Unmapped { .. } => usize::MAX,
    }
}

/// What became of a set of objects.
#[derive(Debug)]
pub struct Settled<'a> {
    /// The places of the set, with what is remembered of their objects.
    pub slots: Vec<Slot<'a>>,
    /// What became of each; nothing for those that were not to be written.
    pub outcomes: Vec<Option<Outcome>>,
    /// The places in the order in which objects were written.
    pub order: Vec<usize>,
    /// Objects that are being deleted.
    pub pending: Vec<Pending>,
    /// Why objects could not be removed.
    pub failed: Vec<Refusal>,
    /// Objects that are no longer wanted, and gone or not ours.
    pub removed: Vec<ObjectId>,
    /// Whether there is something to be removed that must not be removed yet.
    pub is_pruning_put_off: bool,
    record: Record,
    /// What the record has to say where it says otherwise.
    pub change: RecordChange,
}

impl Settled<'_> {
    fn record_change(&self) -> RecordChange {
        let unclear = Unclear::of(self);
        let applied = self.applied(&unclear);
        let is_wanted: BTreeSet<&ObjectId> = self.slots.iter().filter_map(Slot::id).collect();
        let on_cluster: BTreeSet<&ObjectId> = applied.iter().map(|entry| &entry.id).collect();
        // Entries of what is no longer wanted are taken out, so that nobody looks for them again.
        let mut intended = self.record.intended.clone();
        if !self.is_pruning_put_off {
            let is_stale = |id: &ObjectId| {
                !is_wanted.contains(id) && !on_cluster.contains(id) && !unclear.contains(id)
            };
            intended.retain(|entry| !is_stale(&entry.id));
        }
        // What is wanted and not there is written again some time.
        let after = Record { applied, intended };
        let intended = after.intent_with(&self.wanted());
        let Record {
            applied,
            intended: before,
        } = after;
        let intended = intended.unwrap_or(before);
        RecordChange {
            intended: (intended != self.record.intended).then_some(intended),
            applied: (applied != self.record.applied).then_some(applied),
        }
    }

    fn wanted(&self) -> Vec<Entry> {
        let open = self.slots.iter().filter_map(|slot| match slot {
            Slot::Open(object) => Some(object.entry(None)),
            Slot::Finished(_) | Slot::Unmapped { .. } => None,
        });
        open.collect()
    }

    /// What is on the cluster: what was seen there, and what was on record and may still be there.
    fn applied(&self, unclear: &Unclear<'_>) -> Vec<Entry> {
        let mut entries: BTreeMap<&ObjectId, Entry> = BTreeMap::new();
        for (slot, outcome) in self.slots.iter().zip(&self.outcomes) {
            if let (Slot::Open(object), Some(outcome)) = (slot, outcome)
                && let LiveState::Present(live) = &outcome.live
            {
                let uid = live["metadata"]["uid"].as_str();
                entries.insert(&object.id, object.entry(uid));
            }
        }
        for entry in &self.record.applied {
            if self.is_pruning_put_off || unclear.contains(&entry.id) {
                entries.entry(&entry.id).or_insert_with(|| entry.clone());
            }
        }
        sorted(entries.into_values().collect())
    }
}

/// Objects that may be on the cluster although nobody has seen them there in this pass, or that are on
/// their way out.
struct Unclear<'a> {
    ids: BTreeSet<&'a ObjectId>,
    unmapped: Vec<&'a Slot<'a>>,
}

impl<'a> Unclear<'a> {
    fn of(settled: &'a Settled<'_>) -> Self {
        let mut found = Self {
            ids: settled.pending.iter().map(|it| &it.entry.id).collect(),
            unmapped: Vec::new(),
        };
        for (slot, outcome) in settled.slots.iter().zip(&settled.outcomes) {
            let live = outcome.as_ref().map(|outcome| &outcome.live);
            match slot {
                Slot::Open(object) if matches!(live, None | Some(LiveState::Unknown)) => {
                    found.ids.insert(&object.id);
                }
                Slot::Open(_) => {}
                Slot::Finished(id) => {
                    found.ids.insert(id);
                }
                Slot::Unmapped { .. } => found.unmapped.push(slot),
            }
        }
        found
    }

    fn contains(&self, id: &ObjectId) -> bool {
        self.ids.contains(id) || self.unmapped.iter().any(|slot| slot.may_be(id))
    }
}

#[cfg(test)]
mod tests;
