//! Feeds of the objects of a kind: a list, then watches from there on, until cancelled.
//!
//! Objects pass as the text that the server sent, so that each listener reads as much of them as it
//! needs. Between two events a feed holds no buffer: a process has thousands of them, and most are
//! quiet most of the time.

use std::borrow::Cow;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use futures::{AsyncBufReadExt as _, StreamExt as _};
use http::header::{ACCEPT, ACCEPT_ENCODING, HeaderValue};
use kube::api::{ListParams, WatchParams};
use kube::core::Request;
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::cluster_handle::ClusterHandle;

/// Number of objects in a page of a list.
const PAGE: u32 = 500;
/// Time limit for a list, and for the start of a watch.
const LIST_TIMEOUT: Duration = Duration::from_mins(1);
/// Delay after a failure: the first, and the longest.
const FIRST_RETRY: Duration = Duration::from_millis(100);
const LAST_RETRY: Duration = Duration::from_secs(30);
/// Timeout in seconds that the server is asked to end a watch after.
const WATCH_SECONDS: u32 = 290;
/// Time after which a silent watch is considered broken: the server should have ended it.
const DEAD_AFTER: Duration = Duration::from_secs(320);

/// Which objects of a kind are followed; all of them by default.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Selection {
    labels: Option<String>,
    fields: Option<String>,
    is_metadata_only: bool,
}

/// Asks for objects, or a list of them, without spec and status.
const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

impl Selection {
    /// Only those that a label selector matches.
    #[must_use]
    pub fn labels(selector: &str) -> Self {
        Self {
            labels: Some(selector.to_owned()),
            ..Self::default()
        }
    }

    /// Only those that a field selector matches.
    #[must_use]
    pub fn fields(selector: &str) -> Self {
        Self {
            fields: Some(selector.to_owned()),
            ..Self::default()
        }
    }

    /// Only the metadata of each object: objects that are large are followed at the
    /// price of small ones.
    #[must_use]
    pub fn metadata_only(mut self) -> Self {
        self.is_metadata_only = true;
        self
    }

    /// Asks the server for metadata only, if that is all that is wanted.
    fn ask(&self, request: &mut http::Request<Vec<u8>>, form: &'static str) {
        if self.is_metadata_only {
            let accepted = HeaderValue::from_static(form);
            request.headers_mut().insert(ACCEPT, accepted);
        }
    }
}

/// An event of a feed.
#[derive(Debug)]
pub enum FeedEvent<'a> {
    /// A list begins. What is not in it when it is complete is gone.
    ListStarted,
    /// An object of the list.
    Listed(&'a str),
    /// The list is complete, as of that version.
    ListDone(&'a str),
    /// An object is there, or has changed.
    Applied(&'a str),
    /// An object is gone; this is its last state.
    Deleted(&'a str),
    /// The server cannot be followed at present. After a while a new list begins.
    Disconnected(&'a FeedError),
}

/// Why a feed is interrupted.
#[derive(Debug, thiserror::Error)]
pub enum FeedError {
    /// The server refuses, or cannot be reached.
    #[error(transparent)]
    Kube(#[from] kube::Error),
    /// It does not answer.
    #[error("no answer within a minute")]
    Silence,
    /// Its answer cannot be parsed.
    #[error("cannot read the answer: {0}")]
    Unreadable(#[from] serde_json::Error),
    /// The request cannot be sent.
    #[error("cannot make the request: {0}")]
    Request(#[from] kube::core::request::Error),
}

impl FeedError {
    /// Returns true if the server does not have the kind, or denies access to it.
    pub fn is_refusal(&self) -> bool {
        [403, 404].contains(&self.code())
    }

    /// Returns true if the server no longer has the changes since the last known version.
    fn is_outdated(&self) -> bool {
        self.code() == 410
    }

    fn code(&self) -> u16 {
        match self {
            Self::Kube(kube::Error::Api(status)) => status.code,
            _ => 0,
        }
    }
}

/// Follows the objects at a path such as `/api/v1/configmaps`, and reports every event. It
/// never ends; interrupted watches are resumed.
pub async fn follow(
    cluster: impl Into<ClusterHandle>,
    path: &str,
    selection: &Selection,
    on_event: &mut (dyn FnMut(FeedEvent<'_>) + Send),
) {
    let mut feed = Feed {
        cluster: cluster.into(),
        path,
        selection,
        on_event,
        wait: FIRST_RETRY,
    };
    loop {
        let Err(error) = feed.list_and_watch().await;
        // A server that has forgotten a version has not failed, unless it does so all the time.
        if error.is_outdated() && feed.wait == FIRST_RETRY {
            feed.wait = FIRST_RETRY * 2;
            continue;
        }
        tracing::debug!(%error, path, "watch interrupted");
        (feed.on_event)(FeedEvent::Disconnected(&error));
        feed.pause().await;
    }
}

struct Feed<'a> {
    cluster: ClusterHandle,
    path: &'a str,
    selection: &'a Selection,
    on_event: &'a mut (dyn FnMut(FeedEvent<'_>) + Send),
    /// How long to wait after the next failure.
    wait: Duration,
}

impl Feed<'_> {
    async fn list_and_watch(&mut self) -> Result<std::convert::Infallible, FeedError> {
        // In boxes, what takes a moment and much room.
        let mut version = Box::pin(self.list()).await?;
        loop {
            if self.watch(&mut version).await? {
                self.wait = FIRST_RETRY;
            } else {
                // A server that ends watches at once is not asked again at once.
                tokio::time::sleep(FIRST_RETRY).await;
            }
        }
    }

    /// Lists all objects, reports each of them, and returns the version of the list.
    async fn list(&mut self) -> Result<String, FeedError> {
        (self.on_event)(FeedEvent::ListStarted);
        let client = self.cluster.client();
        let mut params = ListParams {
            label_selector: self.selection.labels.clone(),
            field_selector: self.selection.fields.clone(),
            limit: Some(PAGE),
            ..ListParams::default()
        };
        loop {
            let mut request = Request::new(self.path).list(&params)?;
            self.selection.ask(&mut request, METADATA_LIST);
            let text = within(client.request_text(request)).await?;
            let page: Page<'_> = serde_json::from_str(&text)?;
            for item in page.items.into_iter().flatten() {
                (self.on_event)(FeedEvent::Listed(item.get()));
            }
            let next = page.metadata.r#continue.filter(|next| !next.is_empty());
            let Some(next) = next else {
                let version = page.metadata.resource_version.unwrap_or_default();
                (self.on_event)(FeedEvent::ListDone(&version));
                return Ok(version);
            };
            params.continue_token = Some(next);
        }
    }

    /// Watches until the watch ends, and returns true if there was any event. A broken connection is an end: the
    /// next watch begins where it broke.
    async fn watch(&mut self, version: &mut String) -> Result<bool, FeedError> {
        let params = WatchParams {
            label_selector: self.selection.labels.clone(),
            field_selector: self.selection.fields.clone(),
            timeout: Some(WATCH_SECONDS),
            ..WatchParams::default()
        };
        let mut request = Request::new(self.path).watch(&params, version)?;
        // Servers that compress a watch line by line are not understood by all decoders.
        let identity = HeaderValue::from_static("identity");
        request.headers_mut().insert(ACCEPT_ENCODING, identity);
        self.selection.ask(&mut request, METADATA);
        let client = self.cluster.client();
        let begin = async move { within(client.request_stream(request)).await };
        let stream = Box::pin(begin).await?;
        let stream = std::pin::pin!(stream);
        let mut lines = stream.lines();
        let mut heard = false;
        while let Ok(Some(Ok(line))) = tokio::time::timeout(DEAD_AFTER, lines.next()).await {
            self.handle_line(&line, version)?;
            heard = true;
        }
        Ok(heard)
    }

    /// Reports the event in a line of a watch.
    fn handle_line(&mut self, line: &str, version: &mut String) -> Result<(), FeedError> {
        let line: Line<'_> = serde_json::from_str(line)?;
        let object = line.object.get();
        if line.kind == "ERROR" {
            return Err(kube::Error::Api(serde_json::from_str(object)?).into());
        }
        let head: Head<'_> = serde_json::from_str(object)?;
        (*head.metadata.resource_version).clone_into(version);
        match &*line.kind {
            "ADDED" | "MODIFIED" => (self.on_event)(FeedEvent::Applied(object)),
            "DELETED" => (self.on_event)(FeedEvent::Deleted(object)),
            // A bookmark only says how far the watch has come.
            _ => {}
        }
        Ok(())
    }

    /// Waits, longer with each failure. The delay differs a little between feeds, so that a fleet does
    /// not reconnect all at once.
    async fn pause(&mut self) {
        let mut hasher = DefaultHasher::new();
        (self.path, self.selection, self.wait).hash(&mut hasher);
        let part = u32::try_from(hasher.finish() >> 32).unwrap_or(0);
        let jitter = f64::from(part) / f64::from(u32::MAX) / 2.0;
        tokio::time::sleep(self.wait.mul_f64(1.0 + jitter)).await;
        self.wait = (self.wait * 2).min(LAST_RETRY);
    }
}

/// An answer, if it comes in time.
async fn within<T>(answer: impl Future<Output = Result<T, kube::Error>>) -> Result<T, FeedError> {
    match tokio::time::timeout(LIST_TIMEOUT, answer).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(FeedError::Silence),
    }
}

/// A page of a list; its objects are not parsed.
#[derive(Deserialize)]
struct Page<'a> {
    #[serde(default)]
    metadata: PageMetadata,
    #[serde(borrow, default)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct PageMetadata {
    resource_version: Option<String>,
    r#continue: Option<String>,
}

/// A line of a watch; its object is not parsed.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type", borrow)]
    kind: Cow<'a, str>,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// The part of an object that has its version.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow)]
    resource_version: Cow<'a, str>,
}
