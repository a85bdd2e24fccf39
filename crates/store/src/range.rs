//! Ordered reads of many entries at one revision, present or past.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use crate::error::RangeError;
use crate::event::Slot;
use crate::space::State;
use crate::value::{Entry, Revision};

/// Which entries to read, and as of when.
#[derive(Debug, Clone, Copy, Default)]
pub struct Range<'a> {
    /// Only keys that start so; the empty prefix is everything.
    pub prefix: &'a str,
    /// Only keys greater than this one: the last key of the page before.
    pub start_after: Option<&'a str>,
    /// At most so many entries.
    pub limit: Option<usize>,
    /// As of this revision; as of now if not given.
    pub at: Option<Revision>,
    /// Do not count the entries that follow: [`Page::remaining`] is 1 if there are any. For reading
    /// many pages, each of which would count the rest.
    pub uncounted: bool,
}

impl<'a> Range<'a> {
    /// All entries with the prefix, as of now.
    pub fn prefix(prefix: &'a str) -> Self {
        Self {
            prefix,
            ..Self::default()
        }
    }
}

/// Entries in the order of their keys, all as of one revision.
pub struct Page<V> {
    /// The entries.
    pub entries: Vec<Entry<V>>,
    /// The revision that they were read at. A watch from here continues without a gap.
    pub revision: Revision,
    /// How many entries follow that the limit cut off.
    pub remaining: usize,
}

impl<V> fmt::Debug for Page<V> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Page")
            .field("entries", &self.entries)
            .field("revision", &self.revision)
            .field("remaining", &self.remaining)
            .finish()
    }
}

impl<V> State<V> {
    /// The range as of now; its `at` is not looked at.
    pub(crate) fn range(&self, range: &Range<'_>) -> Page<V> {
        page(range, self.revision, self.scan(range))
    }

    /// The range as of a revision that the history still reaches back to.
    pub(crate) fn range_at(&self, range: &Range<'_>, at: Revision) -> Result<Page<V>, RangeError> {
        let (oldest, current) = (self.history.compacted(), self.revision);
        if at > current {
            return Err(RangeError::Future { current });
        }
        if at < oldest {
            return Err(RangeError::Compacted { oldest });
        }

        // What the keys written since then held: what the first of those writes replaced.
        let mut past: BTreeMap<&Arc<str>, Option<Slot<V>>> = BTreeMap::new();
        for record in self.history.after(at) {
            let key = &record.event.key;
            let wanted = range.start_after.is_none_or(|start| &**key > start);
            if wanted && key.starts_with(range.prefix) {
                past.entry(key).or_insert_with(|| record.before());
            }
        }
        let unchanged = self.scan(range).filter(|(key, _)| !past.contains_key(key));
        let changed = past
            .iter()
            .filter_map(|(key, slot)| Some((*key, slot.as_ref()?)));
        Ok(page(range, at, merge(unchanged, changed)))
    }
}

fn page<'a, V: 'a>(
    range: &Range<'_>,
    revision: Revision,
    mut slots: impl Iterator<Item = (&'a Arc<str>, &'a Slot<V>)>,
) -> Page<V> {
    let first = slots.by_ref().take(range.limit.unwrap_or(usize::MAX));
    let entries = first.map(|(key, slot)| slot.entry(key)).collect();
    Page {
        entries,
        revision,
        remaining: if range.uncounted {
            usize::from(slots.next().is_some())
        } else {
            slots.count()
        },
    }
}

/// Merges two sequences that are ordered by key and have no key in common.
fn merge<'a, V: 'a>(
    left: impl Iterator<Item = (&'a Arc<str>, &'a Slot<V>)>,
    right: impl Iterator<Item = (&'a Arc<str>, &'a Slot<V>)>,
) -> impl Iterator<Item = (&'a Arc<str>, &'a Slot<V>)> {
    let (mut left, mut right) = (left.peekable(), right.peekable());
    std::iter::from_fn(move || match (left.peek(), right.peek()) {
        (Some((left_key, _)), Some((right_key, _))) if right_key < left_key => right.next(),
        (Some(_), _) => left.next(),
        (None, _) => right.next(),
    })
}
