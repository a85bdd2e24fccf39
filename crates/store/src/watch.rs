//! Following the events of a prefix, from any revision that the history reaches back to.

use std::collections::VecDeque;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures::Stream;
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

use crate::error::WatchError;
use crate::event::Event;
use crate::space::Space;
use crate::value::{Revision, Value};

/// How many events a watch takes from the history at a time: few enough that a watcher which does
/// not read costs nothing, enough that one which does seldom asks for the lock.
const FETCH: usize = 64;

/// The events of a prefix in order of their revisions, without a gap or a duplicate: those of the
/// past first, then live ones.
///
/// A watch holds no events of its own, so a slow one neither blocks writers nor grows; when the
/// history has moved on past it, it ends with [`WatchError::Compacted`]. It ends without an error
/// when the store is closed or the keyspace dropped.
pub struct Watch<V> {
    space: Arc<Space<V>>,
    prefix: Box<str>,
    /// Taken from the history, not yet handed out.
    fetched: VecDeque<Arc<Event<V>>>,
    /// Everything up to here has been fetched.
    fetched_through: Revision,
    /// Everything up to here has been handed out.
    seen: Revision,
    bell: Arc<Notify>,
    /// Set up before the history is looked at, so that what is published in between still wakes.
    rung: Pin<Box<OwnedNotified>>,
    ended: bool,
}

impl<V: Value> Watch<V> {
    pub(crate) fn new(
        space: Arc<Space<V>>,
        prefix: &str,
        from: Revision,
    ) -> Result<Self, WatchError> {
        let bell = space.join(prefix, from)?;
        Ok(Self {
            space,
            prefix: prefix.into(),
            fetched: VecDeque::new(),
            fetched_through: from,
            seen: from,
            rung: Box::pin(Arc::clone(&bell).notified_owned()),
            bell,
            ended: false,
        })
    }
}

impl<V> Watch<V> {
    /// The next event, waiting for it if need be; nothing after the end.
    ///
    /// Dropping the future loses no event.
    pub async fn next(&mut self) -> Option<Result<Arc<Event<V>>, WatchError>> {
        std::future::poll_fn(|cx| self.poll_event(cx)).await
    }

    /// The revision up to which this watch has handed out everything there was. When it is idle
    /// that is the revision of the keyspace, although no event had it: a watch resumed from here
    /// misses nothing.
    pub fn revision(&self) -> Revision {
        if !self.fetched.is_empty() || self.ended {
            return self.seen;
        }
        let state = self.space.read();
        let latest = state
            .subscriptions
            .get(&self.prefix)
            .and_then(|subscription| Some(subscription.events.back()?.revision))
            .unwrap_or(0);
        if latest > self.seen {
            self.seen
        } else {
            state.revision.max(self.seen)
        }
    }

    fn poll_event(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Arc<Event<V>>, WatchError>>> {
        loop {
            if let Some(event) = self.fetched.pop_front() {
                self.seen = event.revision;
                return Poll::Ready(Some(Ok(event)));
            }
            if self.ended {
                return Poll::Ready(None);
            }
            if let Err(error) = self.fetch() {
                self.ended = true;
                return Poll::Ready(Some(Err(error)));
            }
            if self.fetched.is_empty() && !self.ended {
                // Most watches wait for a long time.
                self.fetched = VecDeque::new();
                ready!(self.rung.as_mut().poll(cx));
                self.rung.set(Arc::clone(&self.bell).notified_owned());
            }
        }
    }

    /// Takes the next events from the history.
    fn fetch(&mut self) -> Result<(), WatchError> {
        let state = self.space.read();
        let Some(subscription) = state.subscriptions.get(&self.prefix) else {
            self.ended = true;
            return Ok(());
        };
        if self.fetched_through < subscription.forgotten {
            let oldest = state.history.compacted();
            return Err(WatchError::Compacted { oldest });
        }
        let events = &subscription.events;
        let next = events.partition_point(|event| event.revision <= self.fetched_through);
        let upto = events.len().min(next + FETCH);
        self.fetched
            .extend(events.range(next..upto).map(Arc::clone));
        match self.fetched.back() {
            Some(event) => self.fetched_through = event.revision,
            None => self.ended = state.closed,
        }
        Ok(())
    }
}

impl<V> Stream for Watch<V> {
    type Item = Result<Arc<Event<V>>, WatchError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.poll_event(cx)
    }
}

impl<V> Drop for Watch<V> {
    fn drop(&mut self) {
        self.space.leave(&self.prefix);
    }
}

impl<V> fmt::Debug for Watch<V> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Watch")
            .field("keyspace", &self.space.name)
            .field("prefix", &self.prefix)
            .field("seen", &self.seen)
            .finish_non_exhaustive()
    }
}
