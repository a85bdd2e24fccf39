//! What a write looks like to a watcher.

use std::fmt;
use std::sync::Arc;

use crate::value::{Entry, Revision};

/// One write, as watchers see it. All watchers of a key share it.
pub struct Event<V> {
    /// The revision of the write.
    pub revision: Revision,
    /// The key written.
    pub key: Arc<str>,
    /// What happened to it.
    pub kind: EventKind<V>,
}

/// What a write did.
pub enum EventKind<V> {
    /// The key got a value.
    Put {
        /// The new value.
        value: Arc<V>,
        /// What it replaced; nothing if the key is new.
        previous: Option<Arc<V>>,
    },
    /// The key was removed.
    Delete {
        /// The final state that the deleter gave it.
        last: Arc<V>,
        /// What was stored before.
        previous: Arc<V>,
    },
}

impl<V> Event<V> {
    /// The value before the write.
    pub fn previous(&self) -> Option<&Arc<V>> {
        match &self.kind {
            EventKind::Put { previous, .. } => previous.as_ref(),
            EventKind::Delete { previous, .. } => Some(previous),
        }
    }

    /// The value that the write brought: the new one, or the final one of a deletion.
    pub fn value(&self) -> &Arc<V> {
        match &self.kind {
            EventKind::Put { value, .. } => value,
            EventKind::Delete { last, .. } => last,
        }
    }

    /// Whether the key is gone after the write.
    pub fn is_delete(&self) -> bool {
        matches!(self.kind, EventKind::Delete { .. })
    }
}

impl<V> fmt::Debug for Event<V> {
    // Without the values: they may be secrets, and need not be printable.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct(if self.is_delete() { "Delete" } else { "Put" })
            .field("revision", &self.revision)
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl<V> fmt::Debug for EventKind<V> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Put { .. } => "Put",
            Self::Delete { .. } => "Delete",
        })
    }
}

/// A value with its revisions: what an ordered map of entries holds beside the key.
pub(crate) struct Slot<V> {
    pub(crate) value: Arc<V>,
    pub(crate) created: Revision,
    pub(crate) modified: Revision,
}

impl<V> Slot<V> {
    pub(crate) fn entry(&self, key: &Arc<str>) -> Entry<V> {
        Entry {
            key: Arc::clone(key),
            value: Arc::clone(&self.value),
            created: self.created,
            modified: self.modified,
        }
    }
}

impl<V> Clone for Slot<V> {
    fn clone(&self) -> Self {
        Self {
            value: Arc::clone(&self.value),
            created: self.created,
            modified: self.modified,
        }
    }
}

/// An event with what else is needed to apply it, to undo it and to store it.
pub(crate) struct Record<V> {
    pub(crate) event: Arc<Event<V>>,
    /// When the key was created; for the creating write its own revision.
    pub(crate) created: Revision,
    /// When the previous value was written, if there was one.
    pub(crate) previous_modified: Option<Revision>,
    /// Milliseconds since 1970, for the age of history.
    pub(crate) time: i64,
}

impl<V> Record<V> {
    /// What the key holds after the write.
    pub(crate) fn after(&self) -> Option<Slot<V>> {
        match &self.event.kind {
            EventKind::Put { value, .. } => Some(Slot {
                value: Arc::clone(value),
                created: self.created,
                modified: self.event.revision,
            }),
            EventKind::Delete { .. } => None,
        }
    }

    /// What the key held before the write.
    pub(crate) fn before(&self) -> Option<Slot<V>> {
        let (value, modified) = self.event.previous().zip(self.previous_modified)?;
        Some(Slot {
            value: Arc::clone(value),
            created: self.created,
            modified,
        })
    }

    /// The written entry: what the writer gets as the answer.
    pub(crate) fn entry(&self) -> Entry<V> {
        Entry {
            key: Arc::clone(&self.event.key),
            value: Arc::clone(self.event.value()),
            created: self.created,
            modified: self.event.revision,
        }
    }
}

impl<V> Clone for Record<V> {
    fn clone(&self) -> Self {
        Self {
            event: Arc::clone(&self.event),
            created: self.created,
            previous_modified: self.previous_modified,
            time: self.time,
        }
    }
}
