//! Reading a collection: selectors, pages, and the state at a revision.

use std::sync::Arc;

use base64::Engine as _;
use base64::alphabet::URL_SAFE;
use base64::engine::general_purpose::{NO_PAD, URL_SAFE_NO_PAD};
use base64::engine::{GeneralPurpose, GeneralPurposeConfig};
use bellwether_store::{Entry, Page, Range, RangeError, Revision};
use http::StatusCode;
use serde_json::{Map, Value, json};

use crate::answer::{Answer, to_bytes};
use crate::context::RequestContext;
use crate::handler::revision::wait_for;
use crate::negotiate::Shape;
use crate::object::StoredObject;
use crate::params::{ListOptions, RevisionMatch};
use crate::select::Selector;
use crate::status::ApiError;
use crate::table;

/// Reads tokens as Go does, which does not mind bits that encode nothing.
const LENIENT: GeneralPurpose = GeneralPurpose::new(&URL_SAFE, TOLERANT);
const TOLERANT: GeneralPurposeConfig = NO_PAD.with_decode_allow_trailing_bits(true);

/// How many entries are read at a time while looking for those that a selector wants.
const CHUNK: usize = 1_000;

/// Answers `GET` of a collection.
pub(crate) async fn list(cx: &RequestContext) -> Result<Answer, ApiError> {
    let options = ListOptions::parse(&cx.query, false)?;
    let found = find(cx, &options).await?;
    Ok(Answer::Json(StatusCode::OK, write(cx, &found).into()))
}

/// The objects of a list, and where it ended.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) entries: Vec<Entry<StoredObject>>,
    pub(crate) revision: Revision,
    continue_token: Option<String>,
    remaining: Option<usize>,
}

/// Finds the objects that the options select.
pub(crate) async fn find(cx: &RequestContext, options: &ListOptions) -> Result<Found, ApiError> {
    let start = Start::of(options)?;
    if let Some(revision) = options
        .revision
        .filter(|_| options.continue_token.is_none())
    {
        wait_for(&cx.cluster, revision).await?;
    }
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
    };
    cx.cluster.keyspace().range(range).map_err(|error| match error {
        RangeError::Compacted { .. } if options.continue_token.is_some() => {
            let mut error = ApiError::expired(
                "The provided continue parameter is too old to display a consistent list result. \
                 You can start a new list without the continue parameter, or use the continue token \
                 in this response to retrieve the remainder of the results. Continuing with the \
                 provided token results in an inconsistent list - objects that were created, \
                 modified, or deleted between the time the first chunk was returned and now may \
                 show up in the list.",
            );
            let start = start_after.and_then(|after| after.strip_prefix(prefix)).unwrap_or("");
            error.continue_token = Some(encode_inconsistent_token(start));
            error
        }
        RangeError::Compacted { .. } => {
            ApiError::expired("The resourceVersion for the provided list is too old.")
        }
        RangeError::Future { current, .. } => {
            ApiError::revision_too_large(at.unwrap_or_default(), current)
        }
    })
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

fn write(cx: &RequestContext, found: &Found) -> Vec<u8> {
    let metadata = metadata(found);
    match cx.writer.representation.shape {
        Shape::Object => write_objects(cx, found, &metadata),
        Shape::Table => {
            let objects: Vec<Value> = found
                .entries
                .iter()
                .map(|entry| cx.resource.read(&entry.value))
                .collect();
            to_bytes(&table::of_objects(
                &cx.resource,
                &objects,
                &metadata,
                &cx.writer,
            ))
            .into()
        }
        Shape::Metadata => {
            let items: Vec<Value> = found
                .entries
                .iter()
                .map(|entry| table::partial_metadata(&cx.resource.read(&entry.value)))
                .collect();
            to_bytes(&json!({
                "kind": "PartialObjectMetadataList",
                "apiVersion": "meta.k8s.io/v1",
                "metadata": metadata,
                "items": items,
            }))
            .into()
        }
    }
}

fn metadata(found: &Found) -> Value {
    let mut metadata = Map::new();
    metadata.insert("resourceVersion".into(), found.revision.to_string().into());
    if let Some(token) = &found.continue_token {
        metadata.insert("continue".into(), token.as_str().into());
    }
    if let Some(remaining) = found.remaining {
        metadata.insert("remainingItemCount".into(), remaining.into());
    }
    Value::Object(metadata)
}

fn write_objects(cx: &RequestContext, found: &Found, metadata: &Value) -> Vec<u8> {
    let resource = &cx.resource;
    let bytes: usize = found
        .entries
        .iter()
        .map(|entry| entry.value.length() + 80)
        .sum();
    let mut out = Vec::with_capacity(bytes + 200);
    out.extend_from_slice(
        format!(
            "{{\"kind\":\"{}\",\"apiVersion\":\"{}\",\"metadata\":{metadata},\"items\":[",
            resource.list_kind, resource.api_version
        )
        .as_bytes(),
    );
    for (position, entry) in found.entries.iter().enumerate() {
        if position > 0 {
            out.push(b',');
        }
        write_item(cx, &entry.value, &mut out);
    }
    out.extend_from_slice(b"]}");
    out
}

/// Items of built-in lists carry no type, those of custom resources do, as in Kubernetes.
fn write_item(cx: &RequestContext, object: &Arc<StoredObject>, out: &mut Vec<u8>) {
    let resource = &cx.resource;
    if resource.converts() {
        let mut value = resource.read(object);
        if let Value::Object(fields) = &mut value
            && !resource.is_custom()
        {
            fields.remove("kind");
            fields.remove("apiVersion");
        }
        out.extend_from_slice(&to_bytes(&value));
    } else if resource.is_custom() {
        object.write_typed(&resource.api_version, &resource.kind, out);
    } else {
        object.write_untyped(out);
    }
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
