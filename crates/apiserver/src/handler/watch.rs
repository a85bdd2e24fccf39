//! Following a collection: every change in order, without gaps, until the client or the clock ends it.

use std::sync::Arc;
use std::time::Duration;

use crate::watching::try_next;
use bellwether_store::{Event, Revision, Watch, WatchError};
use futures::stream;
use serde_json::{Value, json};

use crate::answer::{Answer, Writer, to_bytes};
use crate::context::RequestContext;
use crate::frames::{FRAME, Frames};
use crate::handler::list::walk_latest;
use crate::handler::walk::{Step, Walk};
use crate::listing::write_metadata;
use crate::negotiate::Projection;
use crate::object::StoredObject;
use crate::outgoing::Body;
use crate::params::ListOptions;
use crate::resource::Resource;
use crate::select::Selector;
use crate::status::ApiError;
use crate::table;

/// How long a watch lasts if the client does not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(30);

/// How often a quiet watch gets a bookmark.
const BOOKMARK_INTERVAL: Duration = Duration::from_mins(1);

/// How long before its end a watch gets its last bookmark.
const LAST_BOOKMARK: Duration = Duration::from_secs(2);

/// Marks the bookmark after which a client has seen the whole initial state.
const INITIAL_EVENTS_END: &str = "k8s.io/initial-events-end";

/// Answers `GET ?watch=1` of a collection.
pub(crate) async fn watch(cx: &RequestContext) -> Result<Answer, ApiError> {
    let options = ListOptions::parse(&cx.query, true)?;
    let selector = Selector::new(&cx.resource, &options)?;
    let encoder = Encoder::new(cx);
    let timeout = options
        .timeout_seconds
        .map_or(DEFAULT_TIMEOUT, Duration::from_secs);

    let initial = match (options.send_initial_events, options.revision) {
        (Some(wanted), _) => wanted,
        (None, revision) => revision.unwrap_or(0) == 0,
    };
    let walk = if initial {
        Some(walk_latest(cx, &options, selector.clone()).await?)
    } else {
        None
    };
    let from = match (&walk, options.revision) {
        (Some(walk), _) => walk.revision(),
        (None, Some(revision)) => revision,
        (None, None) => cx.cluster.keyspace().revision(),
    };

    let prefix = cx.resource.collection_prefix(cx.namespace.as_deref());
    let keyspace = cx.cluster.keyspace();
    // A revision that is yet to come is waited for in silence.
    let known = from.min(keyspace.revision());
    let follower = match keyspace.watch(&prefix, known) {
        Ok(watch) => Follower {
            initial: walk,
            source: Some(watch),
            selector,
            encoder,
            after: from,
            marks_initial_end: options.send_initial_events == Some(true) && options.bookmarks,
            bookmarks: options.bookmarks,
            deadline: tokio::time::Instant::now() + timeout,
            lines: Frames::default(),
        },
        Err(error) => return Ok(Answer::Watch(expired(&error, from))),
    };
    let body = stream::unfold(follower, |mut follower| async move {
        let lines = follower.next().await?;
        Some((lines, follower))
    });
    Ok(Answer::Watch(Body::events(body)))
}

/// A watch that ends at once, because its beginning is forgotten.
fn expired(error: &WatchError, from: Revision) -> Body {
    let mut lines = Frames::default();
    write_error(&compacted(error, from), &mut lines);
    Body::pieces(lines, None)
}

fn compacted(error: &WatchError, from: Revision) -> ApiError {
    match error {
        WatchError::Compacted { oldest } => {
            ApiError::expired(format!("too old resource version: {from} ({oldest})"))
        }
        other => ApiError::internal(other.to_string()),
    }
}

fn write_error(error: &ApiError, out: &mut Frames) {
    out.text("{\"type\":\"ERROR\",\"object\":");
    out.text(to_bytes(&error.to_status()));
    out.text("}\n");
}

/// A watch under way.
struct Follower {
    /// What is yet to be sent of the state with which the watch began.
    initial: Option<Walk>,
    /// Where events come from; `None` once it has ended.
    source: Option<Watch<StoredObject>>,
    selector: Selector,
    encoder: Encoder,
    /// Events up to this revision are known to the client.
    after: Revision,
    /// True if the client wants to know when it has seen the initial state.
    marks_initial_end: bool,
    bookmarks: bool,
    deadline: tokio::time::Instant,
    /// What has been written and not been sent.
    lines: Frames,
}

impl Follower {
    /// The next lines to send; `None` at the end.
    async fn next(&mut self) -> Option<Vec<u8>> {
        while self.lines.len() == 0 {
            if self.initial.is_some() {
                self.write_initial().await;
            } else {
                self.write_events().await?;
            }
        }
        self.lines.next()
    }

    /// Writes some of the initial state.
    async fn write_initial(&mut self) {
        while self.lines.len() < FRAME
            && let Some(walk) = &mut self.initial
        {
            match walk.next() {
                Ok(Step::Entry(entry)) => {
                    let lines = &mut self.lines;
                    self.encoder
                        .object(Change::Added, &entry.value, entry.modified, lines);
                }
                Ok(Step::Pause) => tokio::task::yield_now().await,
                Ok(Step::End) => {
                    self.initial = None;
                    if self.marks_initial_end {
                        self.encoder.bookmark(self.after, true, &mut self.lines);
                    }
                }
                // The client was slower than the history lasts.
                Err(error) => {
                    let error = ApiError::expired(error.to_string());
                    write_error(&error, &mut self.lines);
                    self.initial = None;
                    self.source = None;
                }
            }
        }
    }

    /// Waits for something to happen, and writes it; `None` at the end.
    async fn write_events(&mut self) -> Option<()> {
        let wake = self.next_wake();
        let source = self.source.as_mut()?;
        tokio::select! {
            event = source.next() => match event {
                Some(Ok(event)) => {
                    self.encode(&event);
                    self.drain();
                }
                Some(Err(error)) => {
                    write_error(&compacted(&error, 0), &mut self.lines);
                    self.source = None;
                }
                None => self.source = None,
            },
            () = tokio::time::sleep_until(wake) => {
                if wake >= self.deadline {
                    self.source = None;
                    return None;
                }
                let reached = source.revision();
                if self.bookmarks && reached >= self.after {
                    self.encoder.bookmark(reached, false, &mut self.lines);
                }
            }
        }
        Some(())
    }

    /// When to send a bookmark, or to end: a client should learn shortly before the end how far it
    /// is, so that it can resume there.
    fn next_wake(&self) -> tokio::time::Instant {
        let now = tokio::time::Instant::now();
        let last = self
            .deadline
            .checked_sub(LAST_BOOKMARK)
            .unwrap_or(self.deadline);
        if now < last && self.bookmarks {
            last.min(now + BOOKMARK_INTERVAL)
        } else {
            self.deadline
        }
    }

    /// Takes along what is there already, so that a burst is one write.
    fn drain(&mut self) {
        while self.lines.len() < FRAME {
            let Some(event) = self.source.as_mut().and_then(try_next) else {
                return;
            };
            match event {
                Ok(event) => self.encode(&event),
                Err(error) => {
                    write_error(&compacted(&error, 0), &mut self.lines);
                    self.source = None;
                }
            }
        }
    }

    /// An object that begins or ceases to match comes and goes for this watcher.
    fn encode(&mut self, event: &Event<StoredObject>) {
        if event.revision <= self.after {
            return;
        }
        let matches = |object: &Arc<StoredObject>| self.selector.matches(&event.key, object);
        let before = event.previous().is_some_and(matches);
        let after = !event.is_delete() && matches(event.value());
        let (change, object) = match (before, after) {
            (false, true) => (Change::Added, event.value()),
            (true, true) => (Change::Modified, event.value()),
            (true, false) if event.is_delete() => (Change::Deleted, event.value()),
            (true, false) => match event.previous() {
                Some(previous) => (Change::Deleted, previous),
                None => return,
            },
            (false, false) => return,
        };
        let lines = &mut self.lines;
        self.encoder.object(change, object, event.revision, lines);
    }
}

/// What happened to an object, in the words of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Added,
    Modified,
    Deleted,
}

impl Change {
    fn as_str(self) -> &'static str {
        match self {
            Self::Added => "ADDED",
            Self::Modified => "MODIFIED",
            Self::Deleted => "DELETED",
        }
    }
}

/// Writes events in the representation that the client wants.
struct Encoder {
    resource: Arc<Resource>,
    writer: Writer,
    clock: bellwether_runtime::Clock,
}

impl Encoder {
    fn new(cx: &RequestContext) -> Self {
        Self {
            resource: cx.resource.clone(),
            writer: cx.writer.clone(),
            clock: cx.cluster.clock().clone(),
        }
    }

    fn object(&self, change: Change, object: &Arc<StoredObject>, at: Revision, out: &mut Frames) {
        out.write(|out| {
            out.extend_from_slice(b"{\"type\":\"");
            out.extend_from_slice(change.as_str().as_bytes());
            out.extend_from_slice(b"\",\"object\":");
        });
        let as_stored = change != Change::Deleted && !self.resource.converts();
        match self.writer.representation.projection {
            Projection::Object if as_stored => {
                out.typed(&self.resource.api_version, &self.resource.kind, object);
            }
            Projection::Metadata if as_stored => out.write(|out| {
                write_metadata(&self.resource, object, &mut Vec::new(), out);
            }),
            _ => {
                let mut value = self.resource.read(object);
                if change == Change::Deleted {
                    // An object that merely ceased to match is its old self, at the new revision.
                    value["metadata"]["resourceVersion"] = at.to_string().into();
                }
                out.text(to_bytes(&self.project(value)));
            }
        }
        out.text("}\n");
    }

    fn project(&self, value: Value) -> Value {
        match self.writer.representation.projection {
            Projection::Object => value,
            Projection::Metadata => table::partial_metadata(&value),
            Projection::Table => {
                let metadata = json!({"resourceVersion": value["metadata"]["resourceVersion"]});
                let writer = Writer {
                    now: self.clock.now(),
                    ..self.writer.clone()
                };
                table::of_objects(
                    &self.resource,
                    std::slice::from_ref(&value),
                    &metadata,
                    &writer,
                )
            }
        }
    }

    fn bookmark(&self, revision: Revision, initial_end: bool, out: &mut Frames) {
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if initial_end {
            metadata["annotations"] = json!({INITIAL_EVENTS_END: "true"});
        }
        let object = match self.writer.representation.projection {
            Projection::Object => json!({
                "kind": *self.resource.kind, "apiVersion": *self.resource.api_version,
                "metadata": metadata,
            }),
            Projection::Metadata => table::partial_metadata(&json!({"metadata": metadata})),
            Projection::Table => json!({
                "kind": "Table", "apiVersion": "meta.k8s.io/v1",
                "metadata": {"resourceVersion": revision.to_string()},
                "columnDefinitions": table::columns(&self.resource),
                "rows": [{"cells": [], "object": table::partial_metadata(&json!({"metadata": metadata}))}],
            }),
        };
        let event = json!({"type": "BOOKMARK", "object": object});
        out.text(to_bytes(&event));
        out.text("\n");
    }
}
