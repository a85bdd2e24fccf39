//! Deciding a write: whether it may happen, and what it then is. Pure; nothing is changed here.

use std::sync::Arc;

use crate::error::WriteError;
use crate::event::{Event, EventKind, Record};
use crate::value::{Entry, Revision};

/// The state a key has to be in for a write to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// The key does not exist.
    Absent,
    /// The latest write to the key has this revision.
    Revision(Revision),
    /// The writer does not care.
    Any,
}

/// What is done to the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    Put,
    Delete,
}

/// A write that has been asked for.
#[derive(Debug)]
pub(crate) struct Intent<'a> {
    pub(crate) key: &'a str,
    pub(crate) action: Action,
    pub(crate) expected: Expected,
}

/// The moment of a write: the revision it gets if it happens, and when that is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    pub(crate) revision: Revision,
    /// Milliseconds since 1970.
    pub(crate) time: i64,
}

/// Checks the intent against the current entry of its key and, if it may go on, makes the value.
pub(crate) fn decide<V>(
    intent: &Intent<'_>,
    current: Option<Entry<V>>,
    moment: Moment,
    make: impl FnOnce(Revision) -> V,
) -> Result<Record<V>, WriteError<V>> {
    if current.is_none() && intent.action == Action::Delete {
        return Err(WriteError::NotFound);
    }
    let met = match (intent.expected, &current) {
        (Expected::Any, _) | (Expected::Absent, None) => true,
        (Expected::Revision(expected), Some(entry)) => entry.modified == expected,
        (Expected::Absent, Some(_)) | (Expected::Revision(_), None) => false,
    };
    if !met {
        return Err(WriteError::Conflict { current });
    }

    let revision = moment.revision;
    let value = Arc::new(make(revision));
    let created = current.as_ref().map_or(revision, |entry| entry.created);
    let previous_modified = current.as_ref().map(|entry| entry.modified);
    let (key, kind) = match (current, intent.action) {
        (None, _) => {
            let previous = None;
            (Arc::from(intent.key), EventKind::Put { value, previous })
        }
        (Some(entry), Action::Put) => {
            let previous = Some(entry.value);
            (entry.key, EventKind::Put { value, previous })
        }
        (Some(entry), Action::Delete) => {
            let (last, previous) = (value, entry.value);
            (entry.key, EventKind::Delete { last, previous })
        }
    };
    Ok(Record {
        event: Arc::new(Event {
            revision,
            key,
            kind,
        }),
        created,
        previous_modified,
        time: moment.time,
    })
}
