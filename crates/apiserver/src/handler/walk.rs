//! Reading a collection in small chunks, all as of one revision.
//!
//! A reader that is slow holds a chunk of references, not the collection. It reads the past out of
//! the store's history, and cannot go on when that has been dropped.

use std::vec;

use bellwether_store::{Entry, Keyspace, Range, RangeError, Revision};

use crate::object::StoredObject;
use crate::select::Selector;

/// How many entries are read at once.
const CHUNK: usize = 128;

/// How many bytes of text the entries of a chunk have together, but for the last one.
const CHUNK_BYTES: usize = 256 * 1024;

/// A way through the objects of a collection that a selector wants.
#[derive(Debug)]
pub(crate) struct Walk {
    keyspace: Keyspace<StoredObject>,
    prefix: String,
    selector: Selector,
    /// The revision to read at; `None` for the most recent, until something has been read.
    at: Option<Revision>,
    /// The key after which it began.
    start: Option<String>,
    /// The last key that has been read.
    after: Option<String>,
    /// The last key that is wanted.
    until: Option<String>,
    chunk: vec::IntoIter<Entry<StoredObject>>,
    /// True if there is something behind the chunk.
    more: bool,
}

/// Where a walk has got to.
#[derive(Debug)]
pub(crate) enum Step {
    /// The next object.
    Entry(Entry<StoredObject>),
    /// A chunk without an object that is wanted: others go first.
    Pause,
    /// That was all.
    End,
}

impl Walk {
    /// Begins after a key, at a revision or at the most recent one.
    pub(crate) fn begin(
        keyspace: Keyspace<StoredObject>,
        prefix: String,
        selector: Selector,
        at: Option<Revision>,
        after: Option<String>,
    ) -> Result<Self, RangeError> {
        let mut walk = Self {
            keyspace,
            prefix,
            selector,
            at,
            start: after.clone(),
            after,
            until: None,
            chunk: Vec::new().into_iter(),
            more: true,
        };
        walk.read()?;
        Ok(walk)
    }

    /// The same way from its beginning.
    pub(crate) fn again(&self) -> Result<Self, RangeError> {
        let (keyspace, prefix) = (self.keyspace.clone(), self.prefix.clone());
        let (selector, start) = (self.selector.clone(), self.start.clone());
        let walk = Self::begin(keyspace, prefix, selector, self.at, start)?;
        Ok(walk.until(self.until.clone()))
    }

    /// Ends with this key.
    #[must_use]
    pub(crate) fn until(mut self, key: Option<String>) -> Self {
        self.until = key;
        self
    }

    /// The revision at which everything is read.
    pub(crate) fn revision(&self) -> Revision {
        self.at.unwrap_or_default()
    }

    /// Takes a step.
    pub(crate) fn next(&mut self) -> Result<Step, RangeError> {
        let wanted = |entry: &Entry<StoredObject>| self.selector.matches(&entry.key, &entry.value);
        let found = self.chunk.by_ref().find(wanted);
        if let Some(entry) = found {
            let is_behind = |until: &String| *entry.key > **until;
            if self.until.as_ref().is_some_and(is_behind) {
                self.more = false;
                self.chunk = Vec::new().into_iter();
                return Ok(Step::End);
            }
            return Ok(Step::Entry(entry));
        }
        if !self.more {
            return Ok(Step::End);
        }
        self.read()?;
        Ok(Step::Pause)
    }

    fn read(&mut self) -> Result<(), RangeError> {
        let page = self.keyspace.range(Range {
            prefix: &self.prefix,
            start_after: self.after.as_deref(),
            limit: Some(CHUNK),
            at: self.at,
            uncounted: true,
        })?;
        self.at = Some(page.revision);
        let mut entries = page.entries;
        let mut bytes = 0;
        let fitting = entries.iter().take_while(|entry| {
            let fits = bytes < CHUNK_BYTES;
            bytes += entry.value.length();
            fits
        });
        let kept = fitting.count();
        self.more = page.remaining > 0 || kept < entries.len();
        entries.truncate(kept);
        self.after = entries.last().map(|entry| entry.key.to_string());
        self.chunk = entries.into_iter();
        Ok(())
    }
}
