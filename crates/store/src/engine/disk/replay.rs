//! From the rows of a keyspace, in order, back to its records.

use std::collections::HashMap;
use std::sync::Arc;

use super::row::Row;
use crate::event::{Event, EventKind, Record, Slot};
use crate::space::Content;
use crate::value::Revision;

/// Collects the records of one keyspace, and refuses rows that no store wrote in this order.
pub(super) struct Replay<V> {
    pub(super) name: Arc<str>,
    content: Content<V>,
    /// The keys as of the last row, to find what the next one replaced.
    current: HashMap<Arc<str>, Slot<V>>,
    /// The revision of the last row in the history.
    last: Revision,
}

impl<V> Replay<V> {
    pub(super) fn new(name: Arc<str>, compacted: Revision) -> Self {
        Self {
            name,
            content: Content {
                compacted,
                records: Vec::new(),
            },
            current: HashMap::new(),
            last: compacted,
        }
    }

    /// Adds the next row, or says what is wrong with it.
    pub(super) fn add(
        &mut self,
        revision: Revision,
        row: &Row<'_>,
        value: V,
    ) -> Result<(), &'static str> {
        let is_history = revision > self.content.compacted;
        if is_history && revision != self.last + 1 {
            return Err("does not follow the one before");
        }
        let known = self.current.remove_entry(row.key);
        let is_creation = row.created == revision && !row.is_delete;
        match &known {
            Some(_) if is_creation => return Err("creates a key that exists"),
            Some((_, slot)) if slot.created != row.created => {
                return Err("continues a key that was created by another write");
            }
            None if is_history && !is_creation => return Err("changes a key that does not exist"),
            _ => {}
        }
        let record = record(revision, row, value, known);
        if let Some(slot) = record.after() {
            self.current.insert(Arc::clone(&record.event.key), slot);
        }
        if is_history {
            self.last = revision;
        }
        self.content.records.push(record);
        Ok(())
    }

    /// What the rows made.
    pub(super) fn finish(self) -> (Arc<str>, Content<V>) {
        (self.name, self.content)
    }
}

fn record<V>(
    revision: Revision,
    row: &Row<'_>,
    value: V,
    known: Option<(Arc<str>, Slot<V>)>,
) -> Record<V> {
    let value = Arc::new(value);
    let (key, previous) = match known {
        Some((key, slot)) => (key, Some(slot)),
        None => (row.key.into(), None),
    };
    let previous_modified = previous.as_ref().map(|slot| slot.modified);
    let previous = previous.map(|slot| slot.value);
    let kind = if row.is_delete {
        EventKind::Delete {
            // Only a row from before the history has no predecessor, and nobody sees those.
            previous: previous.unwrap_or_else(|| Arc::clone(&value)),
            last: value,
        }
    } else {
        EventKind::Put { value, previous }
    };
    Record {
        event: Arc::new(Event {
            revision,
            key,
            kind,
        }),
        created: row.created,
        previous_modified,
        time: row.time,
    }
}
