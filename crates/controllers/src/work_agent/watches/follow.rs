//! Following one kind: a list, and a watch from there on.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use bellwether_runtime::Queue;
use bellwether_work::manifest::ResourceType;
use futures::{AsyncBufReadExt as _, StreamExt as _};
use kube::api::{ListParams, WatchParams};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Entry, Kind, KindState, Kinds, Name, Watch};
use crate::work_agent::WorkKey;
use crate::work_agent::objects::{Objects, RequestError, collection, within};

/// How many objects a page of a list has.
const PAGE: u32 = 500;
/// How long to wait after a watch broke, at first and at most.
const FIRST_RETRY: Duration = Duration::from_millis(100);
const LAST_RETRY: Duration = Duration::from_secs(30);
/// After how long a server is asked to end a watch, in seconds.
const WATCH_SECONDS: u32 = 290;
/// After how long a watch that says nothing is taken for dead: the server should have ended it.
const DEAD_AFTER: Duration = Duration::from_secs(320);

/// Follows one kind.
pub(super) struct Follower {
    pub(super) objects: Objects,
    pub(super) queue: Queue<WorkKey>,
    pub(super) kinds: Kinds,
    pub(super) kind: Kind,
    pub(super) resource: Arc<ResourceType>,
}

/// What is read of an object to know which one it is.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    metadata: Metadata<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata<'a> {
    #[serde(borrow, default)]
    namespace: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    name: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    resource_version: Option<Cow<'a, str>>,
}

impl Metadata<'_> {
    fn key(&self) -> Name {
        let text = |field: &Option<Cow<'_, str>>| field.as_deref().unwrap_or_default().to_owned();
        (text(&self.namespace), text(&self.name))
    }

    fn version(&self) -> u64 {
        let text = self.resource_version.as_deref();
        text.and_then(|text| text.parse().ok()).unwrap_or_default()
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

impl Follower {
    pub(super) async fn run(self) {
        let mut wait = FIRST_RETRY;
        loop {
            let Err(error) = self.follow(&mut wait).await else {
                continue;
            };
            let refused = error.is_forbidden() || error.is_not_found();
            self.with_watch(|watch| {
                watch.is_current = false;
                watch.is_refused = refused;
                watch.settled.send_if_modified(|settled| {
                    std::mem::replace(settled, refused || *settled) != *settled
                });
            });
            tracing::debug!(kind = ?self.kind, %error, ?wait, "watch interrupted");
            if refused {
                self.tell_all();
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LAST_RETRY);
        }
    }

    /// Reads a list, and follows from there until the server no longer knows where that was.
    async fn follow(&self, wait: &mut Duration) -> Result<(), RequestError> {
        let mut version = self.list().await?;
        loop {
            if self.watch(&mut version).await? {
                *wait = FIRST_RETRY;
            } else {
                // A server that ends watches at once is not asked again at once.
                tokio::time::sleep(FIRST_RETRY).await;
            }
        }
    }

    /// One watch until it ends; whether anything was heard. A connection that breaks is an end: the
    /// next watch begins where it broke.
    async fn watch(&self, version: &mut String) -> Result<bool, RequestError> {
        let params = WatchParams::default().timeout(WATCH_SECONDS);
        let request = collection(&self.resource, "").watch(&params, version);
        let mut request = request.map_err(|error| RequestError::Unreached(error.to_string()))?;
        // Servers that compress a watch line by line are not understood by all decoders.
        let identity = http::HeaderValue::from_static("identity");
        request
            .headers_mut()
            .insert(http::header::ACCEPT_ENCODING, identity);
        let stream = within(self.objects.client().request_stream(request)).await?;
        let stream = std::pin::pin!(stream);
        let mut lines = stream.lines();
        let mut seen = false;
        while let Ok(Some(Ok(line))) = tokio::time::timeout(DEAD_AFTER, lines.next()).await {
            self.hear(&line, version)?;
            seen = true;
        }
        Ok(seen)
    }

    /// Takes in one line of a watch.
    fn hear(&self, line: &str, version: &mut String) -> Result<(), RequestError> {
        let unreadable = |error: serde_json::Error| RequestError::Unreached(error.to_string());
        let line: Line<'_> = serde_json::from_str(line).map_err(unreadable)?;
        if line.kind == "ERROR" {
            // Too old, or worse: begin anew.
            let status = serde_json::from_str(line.object.get()).map_err(unreadable)?;
            return Err(kube::Error::Api(status).into());
        }
        let head: Head<'_> = serde_json::from_str(line.object.get()).map_err(unreadable)?;
        if let Some(text) = head.metadata.resource_version.as_deref() {
            text.clone_into(version);
        }
        let (key, number) = (head.metadata.key(), head.metadata.version());
        match &*line.kind {
            "ADDED" | "MODIFIED" => {
                self.with_entry(&key, |entry| entry.see(number, line.object.get()));
            }
            "DELETED" => self.with_entry(&key, |entry| entry.miss(number)),
            // A bookmark only says how far the watch has come.
            _ => {}
        }
        Ok(())
    }

    /// Reads all objects of the kind, and returns the version of the list.
    async fn list(&self) -> Result<String, RequestError> {
        let mut params = ListParams::default().limit(PAGE);
        // What becomes of interest only now is looked at by whom it concerns.
        let wanted = self.of_interest();
        let mut seen: HashMap<Name, (u64, Box<str>)> = HashMap::new();
        loop {
            let request = collection(&self.resource, "").list(&params);
            let request = request.map_err(|error| RequestError::Unreached(error.to_string()))?;
            let text = within(self.objects.client().request_text(request)).await?;
            let unreadable = |error: serde_json::Error| RequestError::Unreached(error.to_string());
            let page: Page<'_> = serde_json::from_str(&text).map_err(unreadable)?;
            for item in page.items.into_iter().flatten() {
                let head: Head<'_> = serde_json::from_str(item.get()).map_err(unreadable)?;
                let key = head.metadata.key();
                if wanted.contains(&key) {
                    seen.insert(key, (head.metadata.version(), item.get().into()));
                }
            }
            let version = page.metadata.resource_version.unwrap_or_default();
            let next = page.metadata.r#continue.filter(|next| !next.is_empty());
            let Some(next) = next else {
                self.take_list(&wanted, &seen, version.parse().unwrap_or_default());
                return Ok(version);
            };
            params = params.continue_token(&next);
        }
    }

    fn of_interest(&self) -> HashSet<Name> {
        let kinds = self.kinds.lock();
        let state = kinds.get(&self.kind);
        state.map_or_else(HashSet::new, |state| {
            state.objects.keys().cloned().collect()
        })
    }

    fn take_list(
        &self,
        wanted: &HashSet<Name>,
        seen: &HashMap<Name, (u64, Box<str>)>,
        version: u64,
    ) {
        let mut kinds = self.kinds.lock();
        let Some(state) = kinds.get_mut(&self.kind) else {
            return;
        };
        if let Some(watch) = &mut state.watch {
            watch.is_current = true;
            watch.is_refused = false;
            watch.settled.send_replace(true);
        }
        for (key, entry) in &mut state.objects {
            let is_news = match seen.get(key) {
                Some((version, text)) => entry.see(*version, text),
                None => wanted.contains(key) && entry.miss(version),
            };
            if is_news {
                self.tell(entry);
            }
        }
    }

    /// Changes what is known of an object of interest, and tells whom it concerns if it is news.
    fn with_entry(&self, key: &Name, change: impl FnOnce(&mut Entry) -> bool) {
        let mut kinds = self.kinds.lock();
        let entry = kinds
            .get_mut(&self.kind)
            .and_then(|state: &mut KindState| state.objects.get_mut(key));
        if let Some(entry) = entry
            && change(entry)
        {
            self.tell(entry);
        }
    }

    fn with_watch(&self, change: impl FnOnce(&mut Watch)) {
        let mut kinds = self.kinds.lock();
        if let Some(watch) = kinds
            .get_mut(&self.kind)
            .and_then(|state| state.watch.as_mut())
        {
            change(watch);
        }
    }

    fn tell(&self, entry: &Entry) {
        for work in &entry.works {
            self.queue.add(work.clone());
        }
    }

    fn tell_all(&self) {
        let kinds = self.kinds.lock();
        let objects = kinds.get(&self.kind).map(|state| &state.objects);
        objects
            .into_iter()
            .flat_map(HashMap::values)
            .for_each(|entry| self.tell(entry));
    }
}
