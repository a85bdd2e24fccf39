//! A group of requests that become durable together.
//!
//! Requests are decided in order, each against the current state as changed by those before it.
//! Nobody is answered, not even those that are refused, before the commit: until then the state
//! they were decided against may be gone after a crash.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::engine::{Change, Engine};
use crate::error::{StorageError, WriteError};
use crate::event::{Record, Slot};
use crate::space::{Garbage, Space};
use crate::value::{Entry, Revision, Value};
use crate::write::{Intent, Moment, decide};
use crate::writer::{Answer, Request};

/// How much there has to be removed before a commit takes it along: a removal touches other pages
/// of the database than the writes do, so that many together are cheaper.
const GARBAGE: usize = 256;

/// Requests that have been decided.
pub(crate) struct Group<V> {
    /// In the order of their first requests.
    parts: Vec<Part<V>>,
    /// The parts by the address of their keyspace: a keyspace that has been dropped and its
    /// successor have the same name.
    by_space: HashMap<usize, usize>,
    answers: Vec<Pending<V>>,
}

/// What a group does to one keyspace.
struct Part<V> {
    space: Arc<Space<V>>,
    /// The revision after the records.
    revision: Revision,
    records: Vec<Record<V>>,
    /// What the keys that the records concern hold after them.
    changed: HashMap<Arc<str>, Option<Slot<V>>>,
    garbage: Option<Garbage>,
    /// No more writes: the keyspace was closed before, or is dropped by this group.
    closed: bool,
    dropped: bool,
}

/// An answer that waits for the commit.
enum Pending<V> {
    Write(oneshot::Sender<Answer<V>>, Answer<V>),
    Drop(oneshot::Sender<Result<(), Arc<StorageError>>>),
}

impl<V: Value> Group<V> {
    pub(crate) fn new() -> Self {
        Self {
            parts: Vec::new(),
            by_space: HashMap::new(),
            answers: Vec::new(),
        }
    }

    /// Decides a request.
    pub(crate) fn add(&mut self, request: Request<V>) {
        match request {
            Request::Write(request) => {
                let intent = Intent {
                    key: &request.key,
                    action: request.action,
                    expected: request.expected,
                };
                let (part, make) = (self.part(&request.space), request.make);
                // A panic in the closure leaves the part as it is: the closure runs before
                // anything is changed.
                let decided = catch_unwind(AssertUnwindSafe(|| part.write(&intent, make)));
                self.answers.push(Pending::Write(request.answer, decided));
            }
            Request::Drop { space, answer } => {
                let part = self.part(&space);
                part.dropped |= !part.closed;
                part.closed = true;
                self.answers.push(Pending::Drop(answer));
            }
            // Answered when the group has been committed.
            Request::Snapshot(_) => {}
            Request::Sweep(spaces) => {
                for space in spaces {
                    let part = self.part(&space);
                    if part.garbage.is_none() {
                        part.garbage = part.space.take_garbage(1);
                    }
                }
            }
        }
    }

    /// Makes what the requests change durable.
    pub(crate) fn commit(&self, engine: &mut impl Engine<V>) -> Result<(), StorageError> {
        let changes = changes(&self.parts);
        if changes.is_empty() {
            return Ok(());
        }
        engine.commit(&changes)
    }

    /// Makes the changes visible, and answers.
    pub(crate) fn publish(self) {
        for part in self.parts {
            if !part.records.is_empty() {
                part.space.publish(part.records);
            }
            if part.dropped {
                part.space.erase();
            }
        }
        for pending in self.answers {
            // Those who have stopped waiting need no answer.
            match pending {
                Pending::Write(to, answer) => drop(to.send(answer)),
                Pending::Drop(to) => drop(to.send(Ok(()))),
            }
        }
    }

    /// Answers everybody with the error, and returns what the storage may hold nevertheless.
    pub(crate) fn fail(self, error: &Arc<StorageError>) -> Unsettled<V> {
        for pending in self.answers {
            let error = Arc::clone(error);
            match pending {
                Pending::Write(to, Ok(_)) => drop(to.send(Ok(Err(WriteError::Storage(error))))),
                Pending::Write(to, panic) => drop(to.send(panic)),
                Pending::Drop(to) => drop(to.send(Err(error))),
            }
        }
        Unsettled { parts: self.parts }
    }

    fn part(&mut self, space: &Arc<Space<V>>) -> &mut Part<V> {
        let index = *self
            .by_space
            .entry(Arc::as_ptr(space).addr())
            .or_insert_with(|| {
                self.parts.push(Part::new(Arc::clone(space)));
                self.parts.len() - 1
            });
        &mut self.parts[index]
    }
}

/// What parts of a group change, for an engine.
fn changes<V>(parts: &[Part<V>]) -> Vec<Change<'_, V>> {
    let mut changes = Vec::new();
    for part in parts {
        let keyspace = &part.space.name;
        if !part.records.is_empty() {
            let records = &part.records;
            changes.push(Change::Append { keyspace, records });
        }
        if let Some(garbage) = &part.garbage {
            changes.push(Change::Compact { keyspace, garbage });
        }
        if part.dropped {
            changes.push(Change::Drop { keyspace });
        }
    }
    changes
}

/// Changes of groups that failed: nobody knows whether the storage holds them.
pub(crate) struct Unsettled<V> {
    parts: Vec<Part<V>>,
}

impl<V: Value> Unsettled<V> {
    /// Adds what another group leaves behind that was refused without an attempt: only what it was
    /// to remove is still to be done.
    pub(crate) fn add(&mut self, refused: Self) {
        let removals = refused.parts.into_iter().filter_map(|mut part| {
            part.records.clear();
            part.dropped = false;
            part.garbage.is_some().then_some(part)
        });
        self.parts.extend(removals);
    }

    /// Has the engine take back the writes, which were answered with an error, and make the removals,
    /// which nobody can see.
    pub(crate) fn settle(&self, engine: &mut impl Engine<V>) -> Result<(), StorageError> {
        engine.recover(&changes(&self.parts))?;
        for part in self.parts.iter().filter(|part| part.dropped) {
            part.space.erase();
        }
        Ok(())
    }
}

impl<V: Value> Part<V> {
    fn new(space: Arc<Space<V>>) -> Self {
        let (revision, closed) = {
            let state = space.read();
            (state.revision, state.closed)
        };
        Self {
            garbage: space.take_garbage(GARBAGE),
            space,
            revision,
            records: Vec::new(),
            changed: HashMap::new(),
            closed,
            dropped: false,
        }
    }

    fn write(
        &mut self,
        intent: &Intent<'_>,
        make: impl FnOnce(Revision) -> V,
    ) -> Result<Entry<V>, WriteError<V>> {
        if self.closed {
            return Err(WriteError::Closed);
        }
        let current = match self.changed.get_key_value(intent.key) {
            Some((key, slot)) => slot.as_ref().map(|slot| slot.entry(key)),
            None => self.space.get(intent.key),
        };
        let moment = Moment {
            revision: self.revision + 1,
            time: self.space.now(),
        };
        let record = decide(intent, current, moment, make)?;
        let entry = record.entry();
        self.revision = moment.revision;
        self.changed
            .insert(Arc::clone(&record.event.key), record.after());
        self.records.push(record);
        Ok(entry)
    }
}
