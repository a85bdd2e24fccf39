//! The body of a response: all at once, piece by piece from the store, or as events happen.

use std::convert::Infallible;
use std::future::Future as _;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::{Stream, StreamExt as _};
use http_body::{Frame, SizeHint};
use tokio::sync::futures::OwnedNotified;

use crate::frames::{FRAME, Frames};
use crate::limits::{Account, Hold, Permit};

/// The body of a response.
pub struct Body {
    content: Content,
    /// Whose request it is: under way until the last byte has been taken.
    permit: Option<Permit>,
    /// What is held beyond the frames that have been handed over.
    held: Option<Hold>,
    /// Waits until other answers to the same user have been taken.
    room: Option<Pin<Box<OwnedNotified>>>,
}

/// Why a body ends before it is complete: the client has to ask again.
#[derive(Debug, thiserror::Error)]
#[error("the answer was cut off: {0}")]
pub struct Interrupted(pub(crate) String);

impl From<Infallible> for Interrupted {
    fn from(never: Infallible) -> Self {
        match never {}
    }
}

/// Writes an answer whose parts are read when the client is ready for them.
pub(crate) trait Source: Send {
    /// Writes a little more.
    fn fill(&mut self, out: &mut Frames) -> Result<Filled, Interrupted>;
}

/// How far a [`Source`] is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Filled {
    /// There is more.
    More,
    /// There is more, but it takes work to find it: others go first.
    Pause,
    /// That was all.
    End,
}

enum Content {
    /// Everything is known; `None` once it has been handed over.
    Full(Option<Bytes>),
    /// More is read when what there is has been taken.
    Pieces {
        frames: Frames,
        source: Option<Box<dyn Source>>,
    },
    /// More may come at any time.
    Events(Pin<Box<dyn Stream<Item = Result<Vec<u8>, Interrupted>> + Send>>),
}

impl Body {
    /// A body that is known.
    pub(crate) fn full(bytes: impl Into<Bytes>) -> Self {
        Self::from(Content::Full(Some(bytes.into())))
    }

    /// A body without content.
    pub(crate) fn empty() -> Self {
        Self::from(Content::Full(None))
    }

    /// A body of text that is known, and perhaps of more that is not read yet.
    pub(crate) fn pieces(frames: Frames, source: Option<Box<dyn Source>>) -> Self {
        Self::from(Content::Pieces { frames, source })
    }

    /// A body that goes on for as long as events happen.
    pub(crate) fn events(lines: impl Stream<Item = Vec<u8>> + Send + 'static) -> Self {
        Self::from(Content::Events(Box::pin(lines.map(Ok))))
    }

    /// A body whose pieces are made of those of another one, which counts for the same request.
    pub(crate) fn recoded(
        pieces: impl Stream<Item = Result<Vec<u8>, Interrupted>> + Send + 'static,
        permit: Option<Permit>,
    ) -> Self {
        let mut body = Self::from(Content::Events(Box::pin(pieces)));
        if let Some(permit) = permit {
            body.hold(permit);
        }
        body
    }

    /// Hands over what counts the request.
    pub(crate) fn release(&mut self) -> Option<Permit> {
        self.held = None;
        self.permit.take()
    }

    /// Puts back what has been taken from a body that has ended.
    pub(crate) fn refill(&mut self, bytes: Vec<u8>) {
        let bytes = (!bytes.is_empty()).then(|| bytes.into());
        self.content = Content::Full(bytes);
        self.count();
    }

    /// Counts the request, and what is held for it, for as long as the body is being sent.
    pub(crate) fn hold(&mut self, permit: Permit) {
        self.held = Some(permit.account().hold(0));
        self.permit = Some(permit);
        self.count();
    }

    /// Counts what has been written and not handed over.
    fn count(&mut self) {
        let bytes = match &self.content {
            Content::Full(rest) => rest.as_ref().map_or(0, Bytes::len),
            Content::Pieces { frames, .. } => frames.held(),
            Content::Events(_) => 0,
        };
        if let Some(held) = &mut self.held {
            held.set(bytes);
        }
    }

    fn account(&self) -> Option<&Arc<Account>> {
        self.permit.as_ref().map(Permit::account)
    }

    /// Waits until the user has taken enough of other answers.
    fn poll_room(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while let Some(account) = self.permit.as_ref().map(Permit::account)
            && account.is_full()
        {
            let Some(room) = &mut self.room else {
                // Registered before the next look, so that nothing freed in between is missed.
                let mut room = Box::pin(account.freed().notified_owned());
                room.as_mut().enable();
                self.room = Some(room);
                continue;
            };
            ready!(room.as_mut().poll(cx));
            self.room = None;
        }
        self.room = None;
        Poll::Ready(())
    }

    fn poll_content(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Vec<u8>, Interrupted>>> {
        match &mut self.content {
            Content::Full(_) => Poll::Ready(None),
            Content::Events(events) => events.as_mut().poll_next(cx),
            Content::Pieces { frames, source } => {
                while frames.len() < FRAME
                    && let Some(more) = source
                {
                    match more.fill(frames) {
                        Ok(Filled::More) => {}
                        Ok(Filled::End) => *source = None,
                        Ok(Filled::Pause) if frames.len() == 0 => {
                            cx.waker().wake_by_ref();
                            return Poll::Pending;
                        }
                        Ok(Filled::Pause) => break,
                        Err(error) => {
                            *source = None;
                            return Poll::Ready(Some(Err(error)));
                        }
                    }
                }
                Poll::Ready(frames.next().map(Ok))
            }
        }
    }
}

impl From<Content> for Body {
    fn from(content: Content) -> Self {
        Self {
            content,
            permit: None,
            held: None,
            room: None,
        }
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.content {
            Content::Full(bytes) => f
                .debug_tuple("Full")
                .field(&bytes.as_ref().map(Bytes::len))
                .finish(),
            Content::Pieces { .. } => f.write_str("Pieces"),
            Content::Events(_) => f.write_str("Events"),
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Interrupted;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Interrupted>>> {
        let this = &mut *self;
        if let Content::Full(rest) = &mut this.content {
            // It is in memory already: waiting would keep it there.
            let frame = next_frame(rest);
            this.count();
            if frame.is_none() {
                this.permit = None;
            }
            return Poll::Ready(frame.map(|bytes| Ok(Frame::data(bytes))));
        }
        ready!(this.poll_room(cx));
        let frame = ready!(this.poll_content(cx));
        this.count();
        let account = this.account().cloned();
        if frame.is_none() {
            this.permit = None;
        }
        let count = |bytes| match account {
            Some(account) => account.frame(bytes),
            None => bytes.into(),
        };
        Poll::Ready(frame.map(|frame| frame.map(|bytes| Frame::data(count(bytes)))))
    }

    fn is_end_stream(&self) -> bool {
        match &self.content {
            Content::Full(rest) => rest.is_none(),
            Content::Pieces { frames, source } => source.is_none() && frames.len() == 0,
            Content::Events(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Full(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Content::Pieces {
                frames,
                source: None,
            } => SizeHint::with_exact(frames.len() as u64),
            Content::Pieces { .. } | Content::Events(_) => SizeHint::default(),
        }
    }
}

fn next_frame(rest: &mut Option<Bytes>) -> Option<Bytes> {
    match rest {
        Some(bytes) if bytes.len() > FRAME => Some(bytes.split_to(FRAME)),
        _ => rest.take(),
    }
}
