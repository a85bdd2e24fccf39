//! From the rows of a keyspace, in order, back to its records.

use std::collections::HashMap;
use std::sync::Arc;

use super::row::Row;
use crate::event::{Event, EventKind, Record, Slot};
use crate::space::Content;
use crate::value::Revision;

/// Collects the records of one keyspace, and refuses rows that no store wrote in this order.
pub(super) struct Replay<V> {
    content: Content<V>,
    /// The keys as of the last row, to find what the next one replaced.
    current: HashMap<Arc<str>, Slot<V>>,
    /// The revision of the last row in the history.
    last: Revision,
}

impl<V> Replay<V> {
    pub(super) fn new(name: Arc<str>, compacted: Revision) -> Self {
        Self {
            content: Content::new(name, compacted),
            current: HashMap::new(),
            last: compacted,
        }
    }

    /// The name of the keyspace.
    pub(super) fn name(&self) -> &str {
        &self.content.name
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
    pub(super) fn finish(self) -> Content<V> {
        self.content
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows as (revision, created, key), deletions with a leading minus, after compaction at 10.
    #[track_caller]
    fn check(rows: &[(Revision, Revision, &str)], expected: Result<&[&str], &str>) {
        let mut replay = Replay::new("hub".into(), 10);
        for (revision, created, key) in rows {
            let row = Row {
                is_delete: key.starts_with('-'),
                created: *created,
                time: 0,
                key: key.trim_start_matches('-'),
                value: &[],
            };
            if let Err(error) = replay.add(*revision, &row, ()) {
                assert_eq!(Err(error), expected.map(|_| ()));
                return;
            }
        }
        let mut keys: Vec<_> = replay.current.keys().map(|key| &**key).collect();
        keys.sort_unstable();
        assert_eq!(Ok(keys.as_slice()), expected);
    }

    #[test]
    fn rows_that_follow_each_other_are_accepted() {
        check(&[], Ok(&[]));
        check(&[(11, 11, "a"), (12, 12, "b")], Ok(&["a", "b"]));
        check(
            &[(11, 11, "a"), (12, 11, "a"), (13, 11, "-a"), (14, 14, "a")],
            Ok(&["a"]),
        );
        check(
            &[(3, 3, "a"), (7, 5, "b"), (11, 3, "a"), (12, 5, "-b")],
            Ok(&["a"]),
        );
    }

    #[test]
    fn rows_that_no_store_wrote_are_refused() {
        let gap = Err("does not follow the one before");
        check(&[(12, 12, "a")], gap);
        check(&[(11, 11, "a"), (13, 13, "b")], gap);
        let twice = Err("creates a key that exists");
        check(&[(11, 11, "a"), (12, 12, "a")], twice);
        check(&[(3, 3, "a"), (11, 11, "a")], twice);
        let other = Err("continues a key that was created by another write");
        check(&[(11, 11, "a"), (12, 10, "a")], other);
        let missing = Err("changes a key that does not exist");
        check(&[(11, 10, "a")], missing);
        check(&[(11, 11, "-a")], missing);
        check(&[(11, 11, "a"), (12, 11, "-a"), (13, 11, "a")], missing);
    }
}
