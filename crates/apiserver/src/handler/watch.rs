//! Following a collection: every change in order, without gaps, until the client or the clock ends it.

use std::sync::Arc;
use std::time::Duration;

use crate::watching::try_next;
use bellwether_store::{Event, Revision, Watch, WatchError};
use bytes::Bytes;
use futures::stream;
use serde_json::{Value, json};

use crate::answer::{Answer, Body, Writer, to_bytes};
use crate::context::RequestContext;
use crate::handler::list::find;
use crate::handler::revision::wait_for;
use crate::negotiate::Shape;
use crate::object::StoredObject;
use crate::params::ListOptions;
use crate::resource::Resource;
use crate::select::Selector;
use crate::status::ApiError;
use crate::table;

/// How long a watch lasts if the client does not say.
const DEFAULT_TIMEOUT: Duration = Duration::from_mins(30);

/// How often a quiet watch is told how far it is.
const BOOKMARK_INTERVAL: Duration = Duration::from_mins(1);

/// How long before its end a watch is told how far it is for the last time.
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
    let mut first = Vec::new();
    let from = if initial {
        let found = initial_state(cx, &options).await?;
        for entry in &found.entries {
            encoder.object(Change::Added, &entry.value, entry.modified, &mut first);
        }
        if options.send_initial_events == Some(true) && options.bookmarks {
            encoder.bookmark(found.revision, true, &mut first);
        }
        found.revision
    } else {
        options
            .revision
            .unwrap_or_else(|| cx.cluster.keyspace().revision())
    };

    let prefix = cx.resource.collection_prefix(cx.namespace.as_deref());
    let keyspace = cx.cluster.keyspace();
    // A revision that is yet to come is waited for in silence.
    let known = from.min(keyspace.revision());
    let follower = match keyspace.watch(&prefix, known) {
        Ok(watch) => Follower {
            source: Some(watch),
            selector,
            encoder,
            after: from,
            bookmarks: options.bookmarks,
            deadline: tokio::time::Instant::now() + timeout,
        },
        Err(error) => return Ok(Answer::Watch(expired(&error, from))),
    };
    let first = (!first.is_empty()).then(|| Bytes::from(first));
    let body = stream::unfold((first, follower), |(first, mut follower)| async move {
        if let Some(first) = first {
            return Some((first, (None, follower)));
        }
        let lines = follower.next().await?;
        Some((lines, (None, follower)))
    });
    Ok(Answer::Watch(Body::stream(body)))
}

/// The state with which a watch begins: all of it, whatever the page size.
async fn initial_state(
    cx: &RequestContext,
    options: &ListOptions,
) -> Result<crate::handler::list::Found, ApiError> {
    if let Some(revision) = options.revision {
        wait_for(&cx.cluster, revision).await?;
    }
    let options = ListOptions {
        revision: None,
        revision_match: None,
        limit: 0,
        continue_token: None,
        ..options.clone()
    };
    find(cx, &options).await
}

/// A watch that ends at once, because its beginning is forgotten.
fn expired(error: &WatchError, from: Revision) -> Body {
    let mut lines = Vec::new();
    write_error(&compacted(error, from), &mut lines);
    Body::full(lines)
}

fn compacted(error: &WatchError, from: Revision) -> ApiError {
    match error {
        WatchError::Compacted { oldest } => {
            ApiError::expired(format!("too old resource version: {from} ({oldest})"))
        }
        other => ApiError::internal(other.to_string()),
    }
}

fn write_error(error: &ApiError, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"type\":\"ERROR\",\"object\":");
    out.extend_from_slice(&to_bytes(&error.to_status()));
    out.extend_from_slice(b"}\n");
}

/// A watch under way.
struct Follower {
    /// Where events come from; `None` once it has ended.
    source: Option<Watch<StoredObject>>,
    selector: Selector,
    encoder: Encoder,
    /// Events up to this revision are known to the client.
    after: Revision,
    bookmarks: bool,
    deadline: tokio::time::Instant,
}

impl Follower {
    /// The next lines to send; `None` at the end.
    async fn next(&mut self) -> Option<Bytes> {
        let mut lines = Vec::new();
        while lines.is_empty() {
            let wake = self.next_wake();
            let source = self.source.as_mut()?;
            tokio::select! {
                event = source.next() => match event {
                    Some(Ok(event)) => {
                        self.encode(&event, &mut lines);
                        self.drain(&mut lines);
                    }
                    Some(Err(error)) => {
                        write_error(&compacted(&error, 0), &mut lines);
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
                        self.encoder.bookmark(reached, false, &mut lines);
                    }
                }
            }
        }
        Some(lines.into())
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
    fn drain(&mut self, lines: &mut Vec<u8>) {
        const ENOUGH: usize = 64 * 1024;
        while lines.len() < ENOUGH {
            let Some(event) = self.source.as_mut().and_then(try_next) else {
                return;
            };
            match event {
                Ok(event) => self.encode(&event, lines),
                Err(error) => {
                    write_error(&compacted(&error, 0), lines);
                    self.source = None;
                }
            }
        }
    }

    /// An object that begins or ceases to match comes and goes for this watcher.
    fn encode(&self, event: &Event<StoredObject>, out: &mut Vec<u8>) {
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
        self.encoder.object(change, object, event.revision, out);
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

    fn object(&self, change: Change, object: &StoredObject, at: Revision, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"type\":\"");
        out.extend_from_slice(change.as_str().as_bytes());
        out.extend_from_slice(b"\",\"object\":");
        let plain = self.writer.representation.shape == Shape::Object;
        if plain && change != Change::Deleted && !self.resource.converts() {
            object.write_typed(&self.resource.api_version, &self.resource.kind, out);
        } else {
            let mut value = self.resource.read(object);
            if change == Change::Deleted {
                // An object that merely ceased to match is its old self, at the new revision.
                value["metadata"]["resourceVersion"] = at.to_string().into();
            }
            out.extend_from_slice(&to_bytes(&self.shape(value)));
        }
        out.extend_from_slice(b"}\n");
    }

    fn shape(&self, value: Value) -> Value {
        match self.writer.representation.shape {
            Shape::Object => value,
            Shape::Metadata => table::partial_metadata(&value),
            Shape::Table => {
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

    fn bookmark(&self, revision: Revision, initial_end: bool, out: &mut Vec<u8>) {
        let mut metadata = json!({"resourceVersion": revision.to_string()});
        if initial_end {
            metadata["annotations"] = json!({INITIAL_EVENTS_END: "true"});
        }
        let object = match self.writer.representation.shape {
            Shape::Object => json!({
                "kind": *self.resource.kind, "apiVersion": *self.resource.api_version,
                "metadata": metadata,
            }),
            Shape::Metadata => table::partial_metadata(&json!({"metadata": metadata})),
            Shape::Table => json!({
                "kind": "Table", "apiVersion": "meta.k8s.io/v1",
                "metadata": {"resourceVersion": revision.to_string()},
                "columnDefinitions": table::columns(&self.resource),
                "rows": [{"cells": [], "object": table::partial_metadata(&json!({"metadata": metadata}))}],
            }),
        };
        let event = json!({"type": "BOOKMARK", "object": object});
        out.extend_from_slice(&to_bytes(&event));
        out.push(b'\n');
    }
}
