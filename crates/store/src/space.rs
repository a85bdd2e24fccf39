//! One keyspace in memory: its entries, its recent history and its watchers, under one lock.
//!
//! Everything here is durable already: a write gets here when it has been committed.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::slice;
use std::sync::Arc;

use parking_lot::{RwLock, RwLockReadGuard};
use tokio::sync::Notify;

use crate::engine::{Change, Engine};
use crate::error::{RangeError, WatchError, WriteError};
use crate::event::{Record, Slot};
use crate::history::{History, Keep};
use crate::range::{Page, Range};
use crate::retention::Retention;
use crate::subscription::Subscriptions;
use crate::value::{Entry, FIRST_REVISION, Revision, Value};
use crate::write::{Intent, Moment, decide};

/// One keyspace.
pub(crate) struct Space<V> {
    pub(crate) name: Arc<str>,
    retention: Arc<Retention>,
    state: RwLock<State<V>>,
}

/// What the lock of a keyspace protects.
pub(crate) struct State<V> {
    pub(crate) revision: Revision,
    pub(crate) entries: BTreeMap<Arc<str>, Slot<V>>,
    pub(crate) history: History<V>,
    pub(crate) subscriptions: Subscriptions<V>,
    /// Revisions that no read can need any more, for the engine to remove; nothing if the engine
    /// stores nothing.
    garbage: Option<Vec<Revision>>,
    /// How many bytes of history the store knows of.
    accounted: usize,
    /// Set for good when the store is closed or the keyspace dropped.
    pub(crate) closed: bool,
}

/// What an engine has stored of a keyspace.
pub(crate) struct Content<V> {
    pub(crate) name: Arc<str>,
    /// The history up to here is gone.
    pub(crate) compacted: Revision,
    /// In order of their revisions: the latest write to each key, and all after `compacted`.
    pub(crate) records: Vec<Record<V>>,
}

impl<V> Content<V> {
    pub(crate) fn new(name: Arc<str>, compacted: Revision) -> Self {
        Self {
            name,
            compacted,
            records: Vec::new(),
        }
    }
}

/// What an engine may remove of a keyspace.
#[derive(Debug, Default)]
pub(crate) struct Garbage {
    /// The records to remove.
    pub(crate) revisions: Vec<Revision>,
    /// The history up to here is gone.
    pub(crate) compacted: Revision,
}

impl<V> Space<V> {
    pub(crate) fn is_closed(&self) -> bool {
        self.state.read().closed
    }

    pub(crate) fn read(&self) -> RwLockReadGuard<'_, State<V>> {
        self.state.read()
    }

    pub(crate) fn get(&self, key: &str) -> Option<Entry<V>> {
        self.state.read().get(key)
    }

    pub(crate) fn leave(&self, prefix: &str) {
        self.state.write().subscriptions.leave(prefix);
    }

    /// Refuses writes and ends watches from now on.
    pub(crate) fn close(&self) {
        let bells = {
            let mut state = self.state.write();
            state.closed = true;
            state.subscriptions.bells()
        };
        ring(bells);
    }

    /// Closes a keyspace that the engine has dropped, and forgets what was in it.
    pub(crate) fn erase(&self) {
        let entries = {
            let mut state = self.state.write();
            // The engine knows keyspaces by name, and the next one of this name is not to blame.
            state.garbage = None;
            self.retention.account(state.accounted, 0);
            state.accounted = 0;
            state.history = History::new(state.revision);
            std::mem::take(&mut state.entries)
        };
        self.close();
        drop(entries);
    }
}

impl<V: Value> Space<V> {
    /// An empty keyspace whose writes go nowhere else.
    pub(crate) fn in_memory(name: Arc<str>, retention: Arc<Retention>) -> Self {
        Self::with_state(name, retention, State::new(FIRST_REVISION, None))
    }

    /// The keyspace that results from what an engine has stored.
    pub(crate) fn stored(content: Content<V>, retention: Arc<Retention>) -> Self {
        let Content {
            name,
            compacted,
            records,
        } = content;
        let mut state = State::new(compacted, Some(Vec::new()));
        for record in records {
            state.set(&record);
            if record.event.revision > compacted {
                state.revision = record.event.revision;
                state.history.push(record);
            }
        }
        let space = Self::with_state(name, retention, state);
        space.compact(0);
        space
    }

    fn with_state(name: Arc<str>, retention: Arc<Retention>, state: State<V>) -> Self {
        Self {
            name,
            retention,
            state: RwLock::new(state),
        }
    }

    pub(crate) fn range(&self, range: &Range<'_>) -> Result<Page<V>, RangeError> {
        let Some(at) = range.at else {
            return Ok(self.state.read().range(range));
        };
        self.expire();
        self.state.read().range_at(range, at)
    }

    /// Registers a watch, and returns what wakes it.
    pub(crate) fn join(&self, prefix: &str, from: Revision) -> Result<Arc<Notify>, WatchError> {
        let keep = self.keep(0);
        let mut state = self.state.write();
        self.forget(&mut state, keep);
        state.join(prefix, from)
    }

    /// Decides, commits and publishes in one step: for an engine that never waits.
    pub(crate) fn write_through(
        &self,
        mut engine: impl Engine<V>,
        intent: &Intent<'_>,
        make: impl FnOnce(Revision) -> V,
    ) -> Result<Entry<V>, WriteError<V>> {
        let time = self.now();
        let keep = self.keep_since(time);
        let mut bells = Vec::new();
        let entry = {
            let mut state = self.state.write();
            if state.closed {
                return Err(WriteError::Closed);
            }
            let moment = Moment {
                revision: state.revision + 1,
                time,
            };
            let record = decide(intent, state.get(intent.key), moment, make)?;
            engine.commit(&[Change::Append {
                keyspace: &self.name,
                records: slice::from_ref(&record),
            }])?;
            let entry = record.entry();
            state.apply(record, &mut bells);
            self.forget(&mut state, keep);
            entry
        };
        ring(bells);
        Ok(entry)
    }

    /// Removes everything, in storage and in memory: for an engine that never waits.
    pub(crate) fn drop_through(&self, mut engine: impl Engine<V>) -> Result<(), WriteError<V>> {
        let keyspace = &self.name;
        engine.commit(&[Change::Drop { keyspace }])?;
        self.erase();
        Ok(())
    }

    /// Makes records visible that have become durable, and wakes their watchers.
    pub(crate) fn publish(&self, records: Vec<Record<V>>) {
        let keep = self.keep(0);
        let mut bells = Vec::new();
        {
            let mut state = self.state.write();
            for record in records {
                state.apply(record, &mut bells);
            }
            self.forget(&mut state, keep);
        }
        ring(bells);
    }

    /// Drops the history up to the revision, and what is too old or too much anyway.
    pub(crate) fn compact(&self, through: Revision) {
        let keep = self.keep(through);
        let mut state = self.state.write();
        self.forget(&mut state, keep);
        state.history.shrink();
        state.subscriptions.shrink();
    }

    /// Takes what the engine may remove, if it is so much.
    pub(crate) fn take_garbage(&self, at_least: usize) -> Option<Garbage> {
        let mut state = self.state.write();
        let garbage = state.garbage.as_mut()?;
        if garbage.len() < at_least {
            return None;
        }
        Some(Garbage {
            revisions: std::mem::take(garbage),
            compacted: state.history.compacted(),
        })
    }

    /// Milliseconds since 1970.
    pub(crate) fn now(&self) -> i64 {
        self.retention.now()
    }

    /// Drops history that is too old, if there is any.
    fn expire(&self) {
        let keep = self.keep(0);
        if self.state.read().history.exceeds(keep) {
            self.forget(&mut self.state.write(), keep);
        }
    }

    /// Drops history that is not to be kept, and tells the store how much is left.
    fn forget(&self, state: &mut State<V>, keep: Keep) {
        state.compact(keep);
        let bytes = state.history.bytes();
        self.retention.account(state.accounted, bytes);
        state.accounted = bytes;
    }

    fn keep(&self, after: Revision) -> Keep {
        Keep {
            after,
            ..self.keep_since(self.now())
        }
    }

    fn keep_since(&self, now: i64) -> Keep {
        Keep {
            count: self.retention.options.history_events.max(1),
            since: self.retention.since(now),
            after: 0,
        }
    }
}

impl<V> Drop for Space<V> {
    fn drop(&mut self) {
        self.retention.account(self.state.get_mut().accounted, 0);
    }
}

impl<V: Value> State<V> {
    fn apply(&mut self, record: Record<V>, bells: &mut Vec<Arc<Notify>>) {
        self.set(&record);
        self.revision = record.event.revision;
        self.subscriptions.publish(&record.event, bells);
        self.history.push(record);
    }

    fn compact(&mut self, keep: Keep) {
        while let Some(record) = self.history.drop_oldest(keep) {
            self.subscriptions.forget(&record.event);
            if let Some(garbage) = &mut self.garbage {
                garbage.extend(record.previous_modified);
                if record.event.is_delete() {
                    garbage.push(record.event.revision);
                }
            }
        }
    }
}

impl<V> State<V> {
    fn new(revision: Revision, garbage: Option<Vec<Revision>>) -> Self {
        Self {
            revision,
            entries: BTreeMap::new(),
            history: History::new(revision),
            subscriptions: Subscriptions::new(),
            garbage,
            accounted: 0,
            closed: false,
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<Entry<V>> {
        let (key, slot) = self.entries.get_key_value(key)?;
        Some(slot.entry(key))
    }

    /// Entries with the prefix after `start_after`, in order.
    pub(crate) fn scan<'a>(
        &'a self,
        range: &'a Range<'_>,
    ) -> impl Iterator<Item = (&'a Arc<str>, &'a Slot<V>)> {
        let start = match range.start_after {
            Some(key) if key >= range.prefix => Bound::Excluded(key),
            _ => Bound::Included(range.prefix),
        };
        self.entries
            .range::<str, _>((start, Bound::Unbounded))
            .take_while(|(key, _)| key.starts_with(range.prefix))
    }

    fn join(&mut self, prefix: &str, from: Revision) -> Result<Arc<Notify>, WatchError> {
        if self.closed {
            return Err(WatchError::Closed);
        }
        if from > self.revision {
            let current = self.revision;
            return Err(WatchError::Future { current });
        }
        let oldest = self.history.compacted();
        if from < oldest {
            return Err(WatchError::Compacted { oldest });
        }
        let Self {
            history,
            subscriptions,
            ..
        } = self;
        Ok(subscriptions.join(prefix, || {
            let events = history.after(oldest).map(|record| &record.event);
            let matching = events.filter(|event| event.key.starts_with(prefix));
            (matching.map(Arc::clone).collect(), oldest)
        }))
    }

    fn set(&mut self, record: &Record<V>) {
        match record.after() {
            Some(slot) => {
                self.entries.insert(Arc::clone(&record.event.key), slot);
            }
            None => {
                self.entries.remove(&record.event.key);
            }
        }
    }
}

fn ring(bells: Vec<Arc<Notify>>) {
    for bell in bells {
        bell.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Options;
    use crate::engine::memory::Memory;
    use crate::write::{Action, Expected};

    #[test]
    fn what_the_history_no_longer_needs_is_garbage() {
        let options = Options {
            history_events: 1,
            ..Options::default()
        };
        let content = Content::new("hub".into(), FIRST_REVISION);
        let space = Space::stored(content, Arc::new(Retention::new(options)));
        let write = |key, action| {
            let intent = Intent {
                key,
                action,
                expected: Expected::Any,
            };
            space
                .write_through(Memory, &intent, |_| String::new())
                .unwrap()
                .modified
        };
        write("kept", Action::Put);
        let replaced = write("a", Action::Put);
        let deleted = write("a", Action::Put);
        let deletion = write("a", Action::Delete);
        assert!(space.take_garbage(2).is_none());
        write("b", Action::Put);
        let garbage = space.take_garbage(1).unwrap();
        assert_eq!(garbage.revisions, [replaced, deleted, deletion]);
        assert_eq!(garbage.compacted, deletion);
        assert!(space.take_garbage(1).is_none());
    }
}
