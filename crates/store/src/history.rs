//! The recent events of one keyspace, without a gap, in order of their revisions.

use std::collections::VecDeque;

use crate::event::{EventKind, Record};
use crate::value::{Revision, Value};

/// About what a record takes besides values.
const RECORD: usize = 160;

/// A ring of records whose revisions follow each other without a gap.
pub(crate) struct History<V> {
    /// The revisions are `compacted + 1`, `compacted + 2` and so on.
    records: VecDeque<Record<V>>,
    /// The latest revision that has been dropped.
    compacted: Revision,
    /// About how many bytes there are only because of this history.
    bytes: usize,
}

/// What is to be kept.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keep {
    /// At most so many records.
    pub(crate) count: usize,
    /// None from before this time, in milliseconds since 1970.
    pub(crate) since: i64,
    /// None up to this revision.
    pub(crate) after: Revision,
}

impl<V> History<V> {
    pub(crate) fn new(compacted: Revision) -> Self {
        Self {
            records: VecDeque::new(),
            compacted,
            bytes: 0,
        }
    }

    /// The latest revision that has been dropped: the oldest that can be watched from or read at.
    pub(crate) fn compacted(&self) -> Revision {
        self.compacted
    }

    /// About how many bytes there are only because of this history.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds the record of the next revision.
    pub(crate) fn push(&mut self, record: Record<V>)
    where
        V: Value,
    {
        self.bytes += weight(&record);
        debug_assert_eq!(
            record.event.revision,
            self.compacted + self.records.len() as u64 + 1,
            "history has no gaps"
        );
        self.records.push_back(record);
    }

    /// The records after the revision, which must not be older than [`Self::compacted`].
    pub(crate) fn after(&self, revision: Revision) -> impl Iterator<Item = &Record<V>> {
        let skip = usize::try_from(revision.saturating_sub(self.compacted)).unwrap_or(usize::MAX);
        self.records.range(skip.min(self.records.len())..)
    }

    /// Whether there is a record that is not to be kept.
    pub(crate) fn exceeds(&self, keep: Keep) -> bool {
        self.records.front().is_some_and(|oldest| {
            self.records.len() > keep.count
                || oldest.time < keep.since
                || oldest.event.revision <= keep.after
        })
    }

    /// Removes and returns the oldest record if it is not to be kept.
    pub(crate) fn drop_oldest(&mut self, keep: Keep) -> Option<Record<V>>
    where
        V: Value,
    {
        if !self.exceeds(keep) {
            return None;
        }
        let oldest = self.records.pop_front()?;
        self.compacted = oldest.event.revision;
        self.bytes = self.bytes.saturating_sub(weight(&oldest));
        Some(oldest)
    }

    /// Gives memory back after many records have been dropped.
    pub(crate) fn shrink(&mut self) {
        if self.records.len() < self.records.capacity() / 4 {
            self.records.shrink_to_fit();
        }
    }
}

/// About how many bytes there are only because of a record: what it replaced or removed.
fn weight<V: Value>(record: &Record<V>) -> usize {
    let previous = record.event.previous().map_or(0, |value| value.weight());
    let last = match &record.event.kind {
        EventKind::Put { .. } => 0,
        EventKind::Delete { last, .. } => last.weight(),
    };
    RECORD + previous + last
}
