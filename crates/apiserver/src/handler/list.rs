//! Reading a collection: selectors, pages, and the state at a revision.

use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::general_purpose::{NO_PAD, URL_SAFE_NO_PAD};
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use bellwether_store::{Entry, Page, Range, RangeError, Revision};
use serde_json::{Map, Value, json};

use crate::answer::{Answer, Document};
use crate::context::RequestContext;
use crate::frames::{FRAME, Frames};
use crate::handler::revision::wait_for;
use crate::handler::walk::{Step, Walk};
use crate::listing::Listing;
use crate::object::StoredObject;
use crate::outgoing::{Filled, Interrupted, Source};
use crate::params::{ListOptions, RevisionMatch};
use crate::select::Selector;
use crate::status::ApiError;

/// Reads tokens as Go does, which does not mind bits that encode nothing.
const LENIENT: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, TOLERANT);
const TOLERANT: GeneralPurposeConfig = NO_PAD.with_decode_allow_trailing_bits(true);

/// How many entries are read at once while looking for those that a selector wants.
const CHUNK: usize = 1_000;

/// Pages up to this size are read before they are written.
const SMALL_PAGE: usize = 500;

/// Answers `GET` of a collection.
pub(crate) async fn list(cx: &RequestContext) -> Result<Answer, ApiError> {
    let options = ListOptions::parse(&cx.query, false)?;
    let start = Start::of(&options)?;
    let selector = Selector::new(&cx.resource, &options)?;
    let by_name = selector.name().is_some();
    if options.limit == 0 && !by_name {
        wait_for_options(cx, &options).await?;
        let walk = begin(cx, selector, start, &options)?;
        let metadata = metadata(walk.revision(), None, None);
        return write(cx, metadata, Items::Walk(Box::new(walk)));
    }
    let mut found = find(cx, &options).await?;
    let metadata = found.metadata();
    let items = if found.entries.len() <= SMALL_PAGE {
        Items::Read(found.entries.into_iter())
    } else {
        // Where the page ends is known: it is read again while it is written.
        let last = found.entries.pop().map(|entry| entry.key.to_string());
        let start = Start {
            at: Some(found.revision),
            ..start
        };
        drop(found);
        Items::Walk(Box::new(begin(cx, selector, start, &options)?.until(last)))
    };
    write(cx, metadata, items)
}

/// A walk through the collection in the path.
fn begin(
    cx: &RequestContext,
    selector: Selector,
    start: Start,
    options: &ListOptions,
) -> Result<Walk, ApiError> {
    let prefix = cx.resource.collection_prefix(cx.namespace.as_deref());
    let after = start.after.map(|after| format!("{prefix}{after}"));
    let keyspace = cx.cluster.keyspace().clone();
    let walk = Walk::begin(keyspace, prefix.clone(), selector, start.at, after.clone());
    walk.map_err(|error| unreadable(&error, &prefix, after.as_deref(), start.at, options))
}

/// Begins to read the most recent state of the collection in the path, whatever the page size: that
/// is what a watch begins with.
pub(crate) async fn walk_latest(
    cx: &RequestContext,
    options: &ListOptions,
    selector: Selector,
) -> Result<Walk, ApiError> {
    wait_for_options(cx, options).await?;
    let latest = Start {
        at: None,
        after: None,
    };
    begin(cx, selector, latest, options)
}

async fn wait_for_options(cx: &RequestContext, options: &ListOptions) -> Result<(), ApiError> {
    let revision = options.revision;
    match revision.filter(|_| options.continue_token.is_none()) {
        Some(revision) => wait_for(&cx.cluster, revision).await,
        None => Ok(()),
    }
}

/// The objects of a list that is being written.
enum Items {
    Read(std::vec::IntoIter<Entry<StoredObject>>),
    Walk(Box<Walk>),
}

impl Items {
    fn next(&mut self) -> Result<Step, RangeError> {
        match self {
            Self::Read(entries) => Ok(entries.next().map_or(Step::End, Step::Entry)),
            Self::Walk(walk) => walk.next(),
        }
    }

    /// The same objects from the beginning.
    fn again(&self) -> Result<Self, RangeError> {
        Ok(match self {
            Self::Read(entries) => Self::Read(entries.clone()),
            Self::Walk(walk) => Self::Walk(Box::new(walk.again()?)),
        })
    }
}

/// Writes a list while it is sent.
struct Writing {
    listing: Listing,
    /// Objects that have yet to be measured, before anything is written.
    unmeasured: Option<Items>,
    items: Items,
}

impl Writing {
    /// Takes a step of measuring, and begins to write after the last one.
    fn measure(&mut self, step: Step, out: &mut Frames) -> Filled {
        match step {
            Step::Entry(entry) => self.listing.measure(&entry.value),
            Step::Pause => return Filled::Pause,
            Step::End => {
                self.unmeasured = None;
                self.listing.begin(out);
            }
        }
        Filled::More
    }
}

impl Source for Writing {
    fn fill(&mut self, out: &mut Frames) -> Result<Filled, Interrupted> {
        let items = self.unmeasured.as_mut().unwrap_or(&mut self.items);
        let step = items
            .next()
            .map_err(|error| Interrupted(error.to_string()))?;
        if self.unmeasured.is_some() {
            return Ok(self.measure(step, out));
        }
        Ok(match step {
            Step::Entry(entry) => {
                self.listing.item(&entry.value, out);
                Filled::More
            }
            Step::Pause => Filled::Pause,
            Step::End => {
                self.listing.end(out);
                Filled::End
            }
        })
    }
}

fn write(cx: &RequestContext, metadata: Value, items: Items) -> Result<Answer, ApiError> {
    let mut frames = Frames::default();
    let listing = Listing::new(&cx.resource, &cx.writer, metadata);
    let format = listing.format();
    let unmeasured = if listing.is_measured() {
        let again = items.again();
        Some(again.map_err(|error| ApiError::expired(error.to_string()))?)
    } else {
        listing.begin(&mut frames);
        None
    };
    let mut writing = Writing {
        listing,
        unmeasured,
        items,
    };
    // A short list is complete at once, so that it is sent with its length.
    while frames.len() < FRAME {
        match writing.fill(&mut frames) {
            Ok(Filled::More) => {}
            Ok(Filled::End) => {
                return Ok(Answer::Document(Document {
                    format,
                    frames,
                    source: None,
                }));
            }
            // The rest is for the one who sends it; so is the error.
            Ok(Filled::Pause) | Err(_) => break,
        }
    }
    Ok(Answer::Document(Document {
        format,
        frames,
        source: Some(Box::new(writing)),
    }))
}

/// The list of objects that have been read.
pub(crate) fn of_entries(
    cx: &RequestContext,
    revision: Revision,
    entries: Vec<Entry<StoredObject>>,
) -> Result<Answer, ApiError> {
    let metadata = metadata(revision, None, None);
    write(cx, metadata, Items::Read(entries.into_iter()))
}

/// The objects of a list, and where it ended.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) entries: Vec<Entry<StoredObject>>,
    pub(crate) revision: Revision,
    continue_token: Option<String>,
    remaining: Option<usize>,
}

impl Found {
    fn metadata(&self) -> Value {
        metadata(
            self.revision,
            self.continue_token.as_deref(),
            self.remaining,
        )
    }
}

/// Finds the objects that the options select.
pub(crate) async fn find(cx: &RequestContext, options: &ListOptions) -> Result<Found, ApiError> {
    let start = Start::of(options)?;
    wait_for_options(cx, options).await?;
    let prefix = cx.resource.collection_prefix(cx.namespace.as_deref());
    let selector = Selector::new(&cx.resource, options)?;
    if let Some(found) = find_by_name(cx, &selector, &start) {
        return Ok(found);
    }
    let limit = if options.limit == 0 {
        usize::MAX
    } else {
        options.limit
    };
    let mut found = Found {
        entries: Vec::new(),
        revision: 0,
        continue_token: None,
        remaining: None,
    };
    let mut at = start.at;
    let mut after = start.after.map(|after| format!("{prefix}{after}"));
    loop {
        let wanted = limit - found.entries.len();
        let chunk = if selector.is_everything() {
            wanted
        } else {
            CHUNK.max(wanted.min(CHUNK))
        };
        let page = read(cx, &prefix, after.as_deref(), chunk, at, options)?;
        found.revision = page.revision;
        at = Some(page.revision);
        after = page.entries.last().map(|entry| entry.key.to_string());
        let more = page.remaining > 0;
        let mut entries = page.entries.into_iter();
        for entry in entries.by_ref() {
            if selector.matches(&entry.key, &entry.value) {
                after = Some(entry.key.to_string());
                found.entries.push(entry);
                if found.entries.len() == limit {
                    break;
                }
            }
        }
        let left = entries.len() + page.remaining;
        if found.entries.len() == limit && left > 0 {
            let last = after.as_deref().unwrap_or_default();
            let start = last.strip_prefix(prefix.as_str()).unwrap_or(last);
            found.continue_token = Some(encode_token(found.revision, start));
            found.remaining = selector.is_everything().then_some(left);
            return Ok(found);
        }
        if !more {
            return Ok(found);
        }
        tokio::task::yield_now().await;
    }
}

/// `metadata.name=x` in a known namespace needs no scan.
fn find_by_name(cx: &RequestContext, selector: &Selector, start: &Start) -> Option<Found> {
    let name = selector.name()?;
    if start.at.is_some() || (cx.resource.namespaced && cx.namespace.is_none()) {
        return None;
    }
    let keyspace = cx.cluster.keyspace();
    let revision = keyspace.revision();
    let entry = keyspace.get(&cx.resource.key(cx.namespace.as_deref(), name));
    let entries: Vec<_> = entry
        .into_iter()
        .filter(|entry| selector.matches(&entry.key, &entry.value))
        .collect();
    let revision = entries
        .first()
        .map_or(revision, |entry| revision.max(entry.modified));
    Some(Found {
        entries,
        revision,
        continue_token: None,
        remaining: None,
    })
}

fn read(
    cx: &RequestContext,
    prefix: &str,
    start_after: Option<&str>,
    limit: usize,
    at: Option<Revision>,
    options: &ListOptions,
) -> Result<Page<StoredObject>, ApiError> {
    let range = Range {
        prefix,
        start_after,
        limit: (limit != usize::MAX).then_some(limit),
        at,
        uncounted: false,
    };
    let page = cx.cluster.keyspace().range(range);
    page.map_err(|error| unreadable(&error, prefix, start_after, at, options))
}

fn unreadable(
    error: &RangeError,
    prefix: &str,
    start_after: Option<&str>,
    at: Option<Revision>,
    options: &ListOptions,
) -> ApiError {
    match error {
        RangeError::Compacted { .. } if options.continue_token.is_some() => {
            let mut error = ApiError::expired(
                "The provided continue parameter is too old to display a consistent list result. \
                 You can start a new list without the continue parameter, or use the continue token \
                 in this response to retrieve the remainder of the results. Continuing with the \
                 provided token results in an inconsistent list - objects that were created, \
                 modified, or deleted between the time the first chunk was returned and now may \
                 show up in the list.",
            );
            let start = start_after
                .and_then(|after| after.strip_prefix(prefix))
                .unwrap_or("");
            error.continue_token = Some(encode_inconsistent_token(start));
            error
        }
        RangeError::Compacted { .. } => {
            ApiError::expired("The resourceVersion for the provided list is too old.")
        }
        RangeError::Future { current, .. } => {
            ApiError::revision_too_large(at.unwrap_or_default(), *current)
        }
    }
}

/// Where and when a list begins.
struct Start {
    /// The revision to read at; `None` for the most recent.
    at: Option<Revision>,
    /// The key, below the collection's prefix, after which it goes on.
    after: Option<String>,
}

impl Start {
    fn of(options: &ListOptions) -> Result<Self, ApiError> {
        let Some(token) = &options.continue_token else {
            let revision = options.revision.filter(|revision| *revision > 0);
            let exact = match options.revision_match {
                Some(matching) => matching == RevisionMatch::Exact,
                // A limit asks for the very state that the client saw before.
                None => options.limit > 0,
            };
            return Ok(Self {
                at: revision.filter(|_| exact),
                after: None,
            });
        };
        if options.revision.is_some_and(|revision| revision > 0) {
            return Err(ApiError::bad_request(
                "specifying resource version is not allowed when using continue",
            ));
        }
        let (at, after) = decode_token(token)?;
        Ok(Self {
            at,
            after: Some(after),
        })
    }
}

/// A continue token as Kubernetes writes it, so that tools that look inside find what they expect.
fn encode_token(revision: Revision, after: &str) -> String {
    let token = json!({"v": "meta.k8s.io/v1", "rv": revision, "start": format!("{after}\0")});
    URL_SAFE_NO_PAD.encode(token.to_string())
}

/// A token that goes on with whatever is there then.
fn encode_inconsistent_token(after: &str) -> String {
    let token = json!({"v": "meta.k8s.io/v1", "rv": -1, "start": format!("{after}\0")});
    URL_SAFE_NO_PAD.encode(token.to_string())
}

fn decode_token(token: &str) -> Result<(Option<Revision>, String), ApiError> {
    let invalid = |why: String| {
        ApiError::bad_request(format!(
            "invalid continue token: continue key is not valid: {why}"
        ))
    };
    let bytes = LENIENT
        .decode(token.trim_end_matches('='))
        .map_err(|error| invalid(error.to_string()))?;
    if let Some(byte) = bytes.first().filter(|byte| !byte.is_ascii()) {
        // Go names the byte as the character of that number.
        return Err(invalid(format!(
            "invalid character '\\u{byte:04x}' looking for beginning of value"
        )));
    }
    let token = bellwether_json::strict::parse(&bytes)
        .map_err(|error| invalid(error.to_string()))?
        .value;
    let revision = token["rv"].as_i64().unwrap_or(0);
    let start = token["start"].as_str().unwrap_or("");
    if token["v"] != "meta.k8s.io/v1" {
        return Err(invalid(format!(
            "server does not recognize this encoded version \"{}\"",
            token["v"].as_str().unwrap_or_default()
        )));
    }
    if revision == 0 {
        return Err(invalid(
            "incorrect encoded start resourceVersion (version meta.k8s.io/v1)".into(),
        ));
    }
    if start.is_empty() || start.split('/').any(|part| part == "..") {
        return Err(invalid(
            "encoded start key empty (version meta.k8s.io/v1)".into(),
        ));
    }
    Ok((
        Revision::try_from(revision).ok(),
        start.trim_end_matches('\0').to_owned(),
    ))
}

fn metadata(revision: Revision, token: Option<&str>, remaining: Option<usize>) -> Value {
    let mut metadata = Map::new();
    metadata.insert("resourceVersion".into(), revision.to_string().into());
    if let Some(token) = token {
        metadata.insert("continue".into(), token.into());
    }
    if let Some(remaining) = remaining {
        metadata.insert("remainingItemCount".into(), remaining.into());
    }
    Value::Object(metadata)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn continue_tokens_survive_the_round_trip() {
        let (at, after) = decode_token(&encode_token(7, "ns/name")).unwrap();
        assert_eq!((at, after.as_str()), (Some(7), "ns/name"));
        let (at, _) = decode_token(&encode_inconsistent_token("x")).unwrap();
        assert_eq!(at, None);
    }

    #[test]
    fn a_broken_continue_token_is_refused() {
        for token in ["garbage", "", "e30", "!!!"] {
            assert_eq!(decode_token(token).unwrap_err().code, 400, "{token}");
        }
    }
}
