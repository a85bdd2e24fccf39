//! What is on record and no longer wanted: read, removed, waited for.

use serde_json::Value;

use super::object::Refusal;
use super::{Pruning, Task};
use crate::live::LiveState;
use crate::manifest::ObjectId;
use crate::record::Entry;
use crate::removal::{Removal, finalizers, removal};

/// An object that is being deleted, or could not be removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pending {
    /// The object.
    pub entry: Entry,
    /// What it waits for, in words.
    pub waits_for: String,
}

/// All objects that are no longer wanted.
#[derive(Debug, Default)]
pub(super) struct Prune(Vec<Leftover>);

#[derive(Debug)]
struct Leftover {
    entry: Entry,
    known: LiveState,
    fate: Option<Fate>,
}

#[derive(Debug)]
enum Fate {
    /// It is gone, or not ours.
    Gone,
    /// It is being deleted.
    Waits(Vec<String>),
    /// It could not be read or removed.
    Failed(Refusal),
}

impl Prune {
    pub(super) fn new(gone: Vec<Entry>, known: impl Fn(&ObjectId) -> LiveState) -> Self {
        let leftovers = gone.into_iter().map(|entry| Leftover {
            known: known(&entry.id),
            entry,
            fate: None,
        });
        Self(leftovers.collect())
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next step of each object whose fate is open.
    pub(super) fn next(&mut self, pruning: &Pruning<'_>) -> Vec<Task> {
        let open = self.0.iter_mut().filter(|it| it.fate.is_none());
        open.filter_map(|leftover| leftover.next(pruning)).collect()
    }

    fn find(&mut self, id: &ObjectId) -> impl Iterator<Item = &mut Leftover> {
        let open = self.0.iter_mut();
        open.filter(move |it| it.fate.is_none() && it.entry.id == *id)
    }

    pub(super) fn was_read(&mut self, id: &ObjectId, answer: &Result<Option<Value>, Refusal>) {
        for leftover in self.find(id) {
            match answer {
                Ok(object) => leftover.known = LiveState::of(object.clone()),
                Err(refusal) => leftover.fate = Some(Fate::Failed(refusal.clone())),
            }
        }
    }

    pub(super) fn was_removed(&mut self, id: &ObjectId, answer: &Result<Option<Value>, Refusal>) {
        let fate = || match answer {
            Ok(Some(object)) if object["metadata"]["deletionTimestamp"].is_string() => {
                Fate::Waits(finalizers(object))
            }
            Ok(_) => Fate::Gone,
            Err(refusal) => Fate::Failed(refusal.clone()),
        };
        for leftover in self.find(id) {
            leftover.fate = Some(fate());
        }
    }

    /// What has to stay on record: it is not gone.
    pub(super) fn pending(&self) -> Vec<Pending> {
        let pending = |leftover: &Leftover| {
            let id = &leftover.entry.id;
            let waits_for = match leftover.fate.as_ref()? {
                Fate::Gone => return None,
                Fate::Waits(finalizers) if finalizers.is_empty() => format!("{id} to end"),
                Fate::Waits(finalizers) => {
                    format!("{id} with finalizers {}", finalizers.join(", "))
                }
                Fate::Failed(refusal) => {
                    format!("{id}, which cannot be removed: {}", refusal.message)
                }
            };
            Some(Pending {
                entry: leftover.entry.clone(),
                waits_for,
            })
        };
        self.0.iter().filter_map(pending).collect()
    }

    pub(super) fn failures(&self) -> Vec<Refusal> {
        let failures = self.0.iter().filter_map(|leftover| match &leftover.fate {
            Some(Fate::Failed(refusal)) => Some(refusal.clone()),
            _ => None,
        });
        failures.collect()
    }

    pub(super) fn removed(&self) -> Vec<ObjectId> {
        let gone = self
            .0
            .iter()
            .filter(|it| matches!(it.fate, Some(Fate::Gone)));
        gone.map(|it| it.entry.id.clone()).collect()
    }
}

impl Leftover {
    fn next(&mut self, pruning: &Pruning<'_>) -> Option<Task> {
        let live = match &self.known {
            LiveState::Unknown => return Some(Task::ReadRecorded(self.entry.clone())),
            LiveState::Absent => None,
            LiveState::Present(object) => Some(object.as_ref()),
        };
        let is_left = pruning
            .is_left
            .is_some_and(|is_left| is_left(&self.entry.id));
        if is_left {
            let patch = live.and_then(|live| pruning.ownership.release(live));
            let Some(patch) = patch else {
                self.fate = Some(Fate::Gone);
                return None;
            };
            return Some(Task::Remove(self.entry.clone(), Removal::Release(patch)));
        }
        let uid = self.entry.uid.as_deref();
        match removal(uid, live, &pruning.ownership, pruning.rivals) {
            Removal::Forget => {
                self.fate = Some(Fate::Gone);
                None
            }
            Removal::Wait(finalizers) => {
                self.fate = Some(Fate::Waits(finalizers));
                None
            }
            removal => Some(Task::Remove(self.entry.clone(), removal)),
        }
    }
}
