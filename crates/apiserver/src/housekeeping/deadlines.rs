//! When to look at which object again.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

/// At most one deadline for each object, by key.
#[derive(Debug, Default)]
pub(super) struct Deadlines {
    by_time: BTreeSet<(Timestamp, Arc<str>)>,
    by_key: HashMap<Arc<str>, Timestamp>,
}

impl Deadlines {
    /// Sets, moves or removes the deadline of an object.
    pub(super) fn set(&mut self, key: &Arc<str>, at: Option<Timestamp>) {
        if let Some(before) = self.by_key.remove(key) {
            self.by_time.remove(&(before, key.clone()));
        }
        if let Some(at) = at {
            self.by_key.insert(key.clone(), at);
            self.by_time.insert((at, key.clone()));
        }
    }

    /// How long until the next one.
    pub(super) fn next(&self, now: Timestamp) -> Option<Duration> {
        let (at, _) = self.by_time.first()?;
        Some(Duration::try_from(at.duration_since(now)).unwrap_or_default())
    }

    /// Takes out the objects whose time has come.
    pub(super) fn due(&mut self, now: Timestamp) -> Vec<Arc<str>> {
        let mut due = Vec::new();
        while self.by_time.first().is_some_and(|(at, _)| *at <= now) {
            if let Some((_, key)) = self.by_time.pop_first() {
                self.by_key.remove(&key);
                due.push(key);
            }
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_has_one_deadline_the_last_that_was_set() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let (one, two): (Arc<str>, Arc<str>) = ("one".into(), "two".into());
        let mut deadlines = Deadlines::default();
        deadlines.set(&one, Some(at(10)));
        deadlines.set(&two, Some(at(20)));
        deadlines.set(&one, Some(at(30)));
        assert_eq!(deadlines.next(at(5)), Some(Duration::from_secs(15)));
        assert!(deadlines.due(at(19)).is_empty());
        assert_eq!(deadlines.due(at(20)), [two]);
        deadlines.set(&one, None);
        assert_eq!(deadlines.next(at(20)), None);
    }
}
