//! Changing an object: read, propose, check, write, and again if somebody else was faster.

use bellwether_patch::managed;
use bellwether_store::{Entry, Expected, WriteError};
use http::StatusCode;
use serde_json::Value;

use crate::admission::dynamic::{self, Operation};
use crate::admission::{self, quotas};
use crate::answer::Reply;
use crate::body::RequestBody;
use crate::context::RequestContext;
use crate::handler::create::{Written, create_object};
use crate::handler::get::not_found;
use crate::handler::scale;
use crate::metadata;
use crate::object::{Draft, StoredObject};
use crate::ownership::{Ownership, record_update};
use crate::params::WriteOptions;
use crate::request::Verb;
use crate::resource::Part;
use crate::status::ApiError;
use bellwether_schema::{FieldError, FieldPath};

/// Answers `PUT` of an object or of its status.
pub(crate) async fn update(
    cx: &RequestContext,
    part: Part,
    body: &RequestBody,
) -> Result<Reply, ApiError> {
    let options = WriteOptions::parse(&cx.query, "UpdateOptions")?;
    let (mut object, warnings) = body.decode(&cx.resource, options.field_validation)?;
    metadata::match_path(cx, &mut object)?;
    let ownership = Ownership::Update(cx.manager(&options.field_manager));
    if cx.resource.allows_create_on_update()
        && part == Part::Main
        && cx.cluster.keyspace().get(&cx.key()?).is_none()
    {
        let created = create_object(cx, object, &options, &ownership).await?;
        return Ok(Reply {
            answer: created.answer(StatusCode::CREATED),
            warnings,
        });
    }
    require_revision(cx, &object)?;
    let written = change(cx, part, &options, |_| {
        Ok(Proposal {
            object: object.clone(),
            ownership: ownership.clone(),
        })
    })
    .await?;
    Ok(Reply {
        answer: written.answer(StatusCode::OK),
        warnings,
    })
}

fn require_revision(cx: &RequestContext, object: &Value) -> Result<(), ApiError> {
    let given = !metadata::text(object, "resourceVersion").is_empty();
    if given || cx.resource.allows_unconditional_update() {
        return Ok(());
    }
    let path = FieldPath::new("metadata");
    let path = path.child("resourceVersion");
    let error = FieldError::invalid(&path, 0, "must be specified for an update");
    Err(ApiError::invalid(
        cx.resource.subject(),
        cx.name()?,
        &[error],
    ))
}

/// What a request wants an object to become.
#[derive(Debug)]
pub(crate) struct Proposal {
    /// The new object, decoded and defaulted.
    pub(crate) object: Value,
    /// Who owns what changes.
    pub(crate) ownership: Ownership,
}

/// Changes the object in the path. `propose` is asked again after each lost race.
pub(crate) async fn change(
    cx: &RequestContext,
    part: Part,
    options: &WriteOptions,
    mut propose: impl FnMut(&Value) -> Result<Proposal, ApiError>,
) -> Result<Written, ApiError> {
    let key = cx.key()?;
    let operation = Operation::update(cx, options);
    loop {
        let entry = cx
            .cluster
            .keyspace()
            .get(&key)
            .ok_or_else(|| not_found(cx))?;
        cx.effort.admit(entry.value.length())?;
        let live = cx.resource.read(&entry.value);
        let Proposal { object, ownership } = propose(&live)?;
        let mut object = propose_to(cx, part, &key, object, &live, &ownership)?;
        if part == Part::Scale {
            scale::mutate(cx, &operation, &mut object, &live).await?;
        } else {
            dynamic::mutate(cx, part, &operation, Some(&mut object), Some(&live)).await?;
        }
        let object = settle(cx, part, object, &live)?;
        if part == Part::Scale {
            scale::validate(cx, &operation, &object, &live).await?;
        } else {
            dynamic::validate(cx, part, &operation, Some(&object), Some(&live)).await?;
        }
        if object == live {
            return Ok(Written::Stored(entry.value));
        }
        let reserves = matches!(part, Part::Main | Part::Other(_));
        let reservation = if reserves {
            quotas::reserve(cx, &object, Some(&live), options.dry_run).await?
        } else {
            None
        };
        if options.dry_run {
            return Ok(Written::DryRun(object));
        }
        // After a lost race, anyone who named a revision hears that it is stale; others just go on.
        let written = write(cx, &entry, object).await;
        if let Ok(Some(written)) = written {
            return Ok(written);
        }
        if let Some(reservation) = reservation {
            reservation.cancel().await;
        }
        written?;
    }
}

/// Puts a proposal beside the live object: whether they fit, and who owns what.
pub(super) fn propose_to(
    cx: &RequestContext,
    part: Part,
    key: &str,
    mut object: Value,
    live: &Value,
    ownership: &Ownership,
) -> Result<Value, ApiError> {
    let resource = &cx.resource;
    metadata::match_path(cx, &mut object)?;
    if cx.verb == Verb::Update {
        metadata::check_uid(resource.subject(), key, &object, live)?;
    }
    metadata::check_revision(resource.subject(), &object, live)?;
    metadata::carry_over(&mut object, live);
    object["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"].clone();
    Ok(record_update(cx, part, object, Some(live), ownership))
}

/// Makes a proposal complete and checks it.
pub(super) fn settle(
    cx: &RequestContext,
    part: Part,
    mut object: Value,
    live: &Value,
) -> Result<Value, ApiError> {
    let resource = &cx.resource;
    resource.prepare_update(part, &mut object, live, cx.now);
    admission::on_update(cx, part, &mut object, live)?;
    managed::keep_timestamps_of_unchanged(live, &mut object);
    let errors = resource.validate(part, &object, Some(live), &cx.effort)?;
    if errors.is_empty() {
        admission::check(cx, part, &object, Some(live))?;
        return Ok(object);
    }
    Err(ApiError::invalid(
        resource.kind_subject(),
        metadata::text(live, "name"),
        &errors,
    ))
}

/// Writes the object, or removes it if it was only waiting for its last finalizer. `None` if
/// somebody else was faster.
async fn write(
    cx: &RequestContext,
    entry: &Entry<StoredObject>,
    mut object: Value,
) -> Result<Option<Written>, ApiError> {
    let finished = is_finished(cx, &object);
    cx.resource.to_storage(&mut object);
    let draft = Draft::checked(&object)?.settled_by(still_settled_by(cx, &entry.value));
    let expected = Expected::Revision(entry.modified);
    let keyspace = cx.cluster.keyspace();
    let finish = move |revision| draft.finish(revision);
    let written = if finished {
        keyspace.delete(&entry.key, expected, finish).await
    } else {
        keyspace.put(&entry.key, expected, finish).await
    };
    match written {
        Ok(entry) => {
            admission::after_write(cx);
            Ok(Some(Written::Stored(entry.value)))
        }
        Err(WriteError::Conflict { .. }) => Ok(None),
        Err(WriteError::NotFound) => Err(not_found(cx)),
        Err(error) => Err(ApiError::unwritten(&error)),
    }
}

/// The number of the schema that an object is in order by after a change, if it was before: what has changed was decoded
/// and checked. Webhooks may do as they like.
fn still_settled_by(cx: &RequestContext, live: &StoredObject) -> u32 {
    let number = cx.resource.schema_number();
    let is_settled = live.settled_by() == number && !dynamic::is_configured(cx, Part::Main);
    if is_settled { number } else { 0 }
}

/// Whether nothing keeps a deleted object any longer.
pub(crate) fn is_finished(cx: &RequestContext, object: &Value) -> bool {
    let metadata = &object["metadata"];
    metadata["deletionTimestamp"].is_string()
        && metadata::finalizers(object).is_empty()
        && metadata["deletionGracePeriodSeconds"].as_i64().unwrap_or(0) == 0
        && !admission::holds_back(cx, object)
}
