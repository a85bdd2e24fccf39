//! Deleting objects: preconditions, finalizers, grace periods, and what becomes of dependents.

use bellwether_json::time;
use bellwether_store::{Entry, Expected, WriteError};
use http::StatusCode;
use jiff::SignedDuration;
use serde_json::{Value, json};

use crate::admission;
use crate::admission::dynamic::{self, Operation};
use crate::answer::{Answer, Reply};
use crate::body::RequestBody;
use crate::context::RequestContext;
use crate::handler::get::not_found;
use crate::handler::list::{find, of_entries};
use crate::handler::update::is_finished;
use crate::housekeeping::{FOREGROUND, ORPHAN};
use crate::metadata;
use crate::object::{Draft, StoredObject};
use crate::params::{DeleteOptions, ListOptions, Propagation};
use crate::request::Verb;
use crate::resource::Part;
use crate::status::{ApiError, Details, success};

/// Answers `DELETE` of an object.
pub(crate) async fn delete(cx: &RequestContext, body: &RequestBody) -> Result<Reply, ApiError> {
    let options = DeleteOptions::parse(&cx.query, &body.delete_options()?)?;
    let outcome = delete_object(cx, &options).await?;
    Ok(answer(cx, outcome).into())
}

/// Answers `DELETE` of a collection with the list of what was deleted.
pub(crate) async fn delete_collection(
    cx: RequestContext,
    body: &RequestBody,
) -> Result<Reply, ApiError> {
    let options = DeleteOptions::parse(&cx.query, &body.delete_options()?)?;
    let found = find(&cx, &ListOptions::parse(&cx.query, false)?).await?;
    let mut cx = cx;
    let mut deleted = Vec::with_capacity(found.entries.len());
    for entry in found.entries {
        let (namespace, name) = cx.resource.split_key(&entry.key);
        let (namespace, name) = (namespace.map(str::to_owned), name.to_owned());
        cx.namespace = namespace;
        cx.name = Some(name);
        match delete_object(&cx, &options).await {
            Ok(_) => deleted.push(entry),
            Err(error) if error.reason == "NotFound" => {}
            Err(error) => return Err(error),
        }
    }
    let revision = cx.cluster.keyspace().revision();
    Ok(of_entries(&cx, revision, deleted)?.into())
}

/// What a delete did.
#[derive(Debug)]
pub(crate) enum Outcome {
    /// The object is gone; this is what it was last.
    Gone(Value),
    /// The object is marked and waits for its finalizers or its grace period.
    Marked(Value),
}

/// Deletes the object in the path, or marks it.
pub(crate) async fn delete_object(
    cx: &RequestContext,
    options: &DeleteOptions,
) -> Result<Outcome, ApiError> {
    let key = cx.key()?;
    loop {
        let entry = cx
            .cluster
            .keyspace()
            .get(&key)
            .ok_or_else(|| not_found(cx))?;
        cx.effort.admit(entry.value.length())?;
        let live = cx.resource.read(&entry.value);
        check_preconditions(cx, options, &live)?;
        admission::on_delete(cx, &live)?;
        admit(cx, options, &live).await?;
        let object = mark(cx, options, &live);
        let finished = is_finished(cx, &object);
        if options.dry_run {
            return Ok(if finished {
                Outcome::Gone(live)
            } else {
                Outcome::Marked(object)
            });
        }
        if !finished && object == live {
            return Ok(Outcome::Marked(live));
        }
        // What may end gracefully shows when it was deleted, also if that is now.
        let last = if finished && !cx.resource.ends_gracefully() {
            live
        } else {
            object
        };
        match write(cx, &entry, last.clone(), finished).await {
            Ok(stored) if finished => {
                admission::after_write(cx);
                return Ok(Outcome::Gone(cx.resource.read(&stored.value)));
            }
            Ok(stored) => {
                admission::after_write(cx);
                return Ok(Outcome::Marked(cx.resource.read(&stored.value)));
            }
            Err(WriteError::Conflict { .. }) => {}
            Err(WriteError::NotFound) => return Err(not_found(cx)),
            Err(error) => return Err(ApiError::unwritten(&error)),
        }
    }
}

/// Shows a deletion to webhooks and policies. An eviction deletes too, but is not called so.
async fn admit(cx: &RequestContext, options: &DeleteOptions, live: &Value) -> Result<(), ApiError> {
    if !matches!(cx.verb, Verb::Delete | Verb::DeleteCollection) {
        return Ok(());
    }
    let operation = Operation::delete(options);
    dynamic::mutate(cx, Part::Main, &operation, None, Some(live)).await?;
    dynamic::validate(cx, Part::Main, &operation, None, Some(live)).await
}

async fn write(
    cx: &RequestContext,
    entry: &Entry<StoredObject>,
    mut object: Value,
    finished: bool,
) -> Result<Entry<StoredObject>, WriteError<StoredObject>> {
    cx.resource.to_storage(&mut object);
    let draft = Draft::new(&object);
    let expected = Expected::Revision(entry.modified);
    let finish = move |revision| draft.finish(revision);
    let keyspace = cx.cluster.keyspace();
    if finished {
        keyspace.delete(&entry.key, expected, finish).await
    } else {
        keyspace.put(&entry.key, expected, finish).await
    }
}

/// Refuses a deletion that is meant for another object, or another state of it.
pub(crate) fn check_preconditions(
    cx: &RequestContext,
    options: &DeleteOptions,
    live: &Value,
) -> Result<(), ApiError> {
    let name = metadata::text(live, "name");
    if let Some(uid) = &options.uid {
        let found = metadata::text(live, "uid");
        if uid != found {
            return Err(ApiError::conflict(
                cx.resource.kind_subject(),
                name,
                &format!(
                    "the UID in the precondition ({uid}) does not match the UID in record ({found}). The object might have been deleted and then recreated"
                ),
            ));
        }
    }
    if let Some(revision) = &options.resource_version {
        let found = metadata::text(live, "resourceVersion");
        if revision != found {
            return Err(ApiError::conflict(
                cx.resource.kind_subject(),
                name,
                &format!(
                    "the ResourceVersion in the precondition ({revision}) does not match the ResourceVersion in record ({found}). The object might have been modified"
                ),
            ));
        }
    }
    Ok(())
}

/// The object as it looks while it is being deleted.
fn mark(cx: &RequestContext, options: &DeleteOptions, live: &Value) -> Value {
    let mut object = live.clone();
    let finalizers = finalizers_for(options, live, cx.resource.default_propagation());
    let fields = metadata::of(&mut object);
    if finalizers.is_empty() {
        fields.remove("finalizers");
    } else {
        fields.insert("finalizers".into(), json!(finalizers));
    }
    let grace = cx.resource.grace_period(options.grace_period_seconds, live);
    let already = fields.contains_key("deletionTimestamp");
    let earlier = fields
        .get("deletionGracePeriodSeconds")
        .and_then(Value::as_i64)
        .unwrap_or(0);
    if !already || grace < earlier {
        let at = cx
            .now
            .saturating_add(SignedDuration::from_secs(grace))
            .unwrap_or(cx.now);
        fields.insert("deletionTimestamp".into(), time::format_time(at).into());
        fields.insert("deletionGracePeriodSeconds".into(), grace.into());
        if let Some(generation) = fields.get("generation").and_then(Value::as_i64)
            && !already
        {
            fields.insert("generation".into(), (generation + 1).into());
        }
    }
    if !already {
        admission::mark_deleted(cx, &mut object);
    }
    object
}

/// The finalizers with which dependents are orphaned or waited for.
fn finalizers_for<'a>(
    options: &DeleteOptions,
    live: &'a Value,
    default: Propagation,
) -> Vec<&'a str> {
    let mut finalizers = metadata::finalizers(live);
    let kept = |name: &str| finalizers.contains(&name);
    let (orphan, foreground) = match options.propagation {
        Some(Propagation::Orphan) => (true, false),
        Some(Propagation::Foreground) => (false, true),
        Some(Propagation::Background) => (false, false),
        None if kept(ORPHAN) || kept(FOREGROUND) => (kept(ORPHAN), kept(FOREGROUND)),
        None => (default == Propagation::Orphan, false),
    };
    finalizers.retain(|name| *name != ORPHAN && *name != FOREGROUND);
    if orphan {
        finalizers.push(ORPHAN);
    }
    if foreground {
        finalizers.push(FOREGROUND);
    }
    finalizers
}

fn answer(cx: &RequestContext, outcome: Outcome) -> Answer {
    match outcome {
        Outcome::Gone(last) if cx.resource.returns_deleted() => Answer::Value(StatusCode::OK, last),
        Outcome::Gone(last) => {
            let details = Details {
                group: cx.resource.group.to_string(),
                kind: cx.resource.plural.to_string(),
                name: metadata::text(&last, "name").into(),
                uid: metadata::text(&last, "uid").into(),
                ..Details::default()
            };
            Answer::Value(StatusCode::OK, success(None, Some(&details)))
        }
        Outcome::Marked(object) => Answer::Value(StatusCode::OK, object),
    }
}
