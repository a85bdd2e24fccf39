//! Creating an object.

use std::sync::Arc;

use bellwether_kinds::Creation;
use bellwether_store::{Entry, Expected, WriteError};
use http::StatusCode;
use serde_json::Value;

use crate::access;
use crate::admission;
use crate::admission::dynamic::{self, Operation};
use crate::answer::{Answer, Reply};
use crate::authorize;
use crate::body::RequestBody;
use crate::context::RequestContext;
use crate::metadata;
use crate::object::{Draft, StoredObject};
use crate::ownership::{Ownership, record_update};
use crate::params::WriteOptions;
use crate::resource::Part;
use crate::status::ApiError;

/// How often another name is tried when a generated one is taken.
const NAME_ATTEMPTS: usize = 8;

/// Answers `POST` to a collection.
pub(crate) async fn create(cx: &RequestContext, body: &RequestBody) -> Result<Reply, ApiError> {
    let options = WriteOptions::parse(&cx.query, "CreateOptions")?;
    let (object, warnings) = body.decode(&cx.resource, options.field_validation)?;
    if cx.resource.is_virtual() {
        let operation = Operation::create(cx, &options, false);
        let object = admit_review(cx, object, &operation).await?;
        let answer = Answer::Value(StatusCode::CREATED, access::review(cx, object)?);
        return Ok(Reply { answer, warnings });
    }
    let ownership = Ownership::Update(cx.manager(&options.field_manager));
    let created = create_object(cx, object, &options, &ownership).await?;
    Ok(Reply {
        answer: created.answer(StatusCode::CREATED),
        warnings,
    })
}

/// Checks a review, which is answered and not stored.
async fn admit_review(
    cx: &RequestContext,
    mut review: Value,
    operation: &Operation,
) -> Result<Value, ApiError> {
    access::complete_review(cx, &mut review)?;
    let changed = dynamic::mutate(cx, Part::Main, operation, Some(&mut review), None).await?;
    if changed {
        access::complete_review(cx, &mut review)?;
    }
    access::check_review(cx, &review)?;
    dynamic::validate(cx, Part::Main, operation, Some(&review), None).await?;
    Ok(review)
}

/// An object that was written, or would have been.
#[derive(Debug)]
pub(crate) enum Written {
    /// It is in the store.
    Stored(Arc<StoredObject>),
    /// It was a dry run.
    DryRun(Value),
}

impl Written {
    pub(crate) fn answer(self, code: StatusCode) -> Answer {
        match self {
            Self::Stored(object) => Answer::Stored(code, object),
            Self::DryRun(object) => Answer::Value(code, object),
        }
    }
}

/// Creates a decoded object, as `POST` and as an apply to nothing do.
pub(crate) async fn create_object(
    cx: &RequestContext,
    mut object: Value,
    options: &WriteOptions,
    ownership: &Ownership,
) -> Result<Written, ApiError> {
    authorize::creation(cx)?;
    metadata::match_path(cx, &mut object)?;
    let prefix = metadata::text(&object, "generateName").to_owned();
    let generated = metadata::text(&object, "name").is_empty() && !prefix.is_empty();
    let mut attempts = if generated { NAME_ATTEMPTS } else { 1 };
    loop {
        let mut candidate = object.clone();
        if generated {
            candidate["metadata"]["name"] = metadata::generate_name(&prefix).into();
        }
        attempts -= 1;
        let operation = Operation::create(cx, options, generated);
        match create_named(cx, candidate, options, ownership, &operation).await {
            Err(error) if error.reason == "AlreadyExists" && attempts > 0 => {}
            done => return done,
        }
    }
}

async fn create_named(
    cx: &RequestContext,
    mut object: Value,
    options: &WriteOptions,
    ownership: &Ownership,
    operation: &Operation,
) -> Result<Written, ApiError> {
    let resource = &cx.resource;
    cx.effort.admit(0)?;
    let uid = metadata::new_uid();
    let has_revision = !metadata::text(&object, "resourceVersion").is_empty();
    metadata::initialize(&mut object, &uid, cx.now);
    admission::check_place(cx, &object)?;
    // Who wrote what is settled before the server adds what is its own.
    let mut object = record_update(cx, Part::Main, object, None, ownership);
    let user = cx.identity.to_json();
    let creation = Creation {
        uid: &uid,
        now: cx.now,
        user: &user,
    };
    admission::complete(cx, &mut object).await?;
    if dynamic::mutate(cx, Part::Main, operation, Some(&mut object), None).await? {
        admission::complete_added(cx, &mut object);
    }
    resource.prepare_create(&mut object, &creation);
    admission::on_create(cx, &mut object)?;
    let name = metadata::text(&object, "name").to_owned();
    let errors = resource.validate(Part::Main, &object, None, &cx.effort)?;
    if !errors.is_empty() {
        return Err(ApiError::invalid(resource.kind_subject(), &name, &errors));
    }
    admission::check(cx, Part::Main, &object, None)?;
    dynamic::validate(cx, Part::Main, operation, Some(&object), None).await?;
    let key = resource.key(cx.namespace.as_deref(), &name);
    let reservation = admission::quotas::reserve(cx, &object, None, options.dry_run).await?;
    let created = store(cx, &key, &name, object, options, has_revision).await;
    match (created, reservation) {
        (Err(error), Some(reservation)) => {
            reservation.cancel().await;
            Err(error)
        }
        (Ok(created), reservation) => {
            drop(reservation);
            if !options.dry_run {
                admission::after_create(cx, &key).await;
            }
            Ok(created)
        }
        (created, None) => created,
    }
}

/// Writes a new object that is complete.
async fn store(
    cx: &RequestContext,
    key: &str,
    name: &str,
    mut object: Value,
    options: &WriteOptions,
    has_revision: bool,
) -> Result<Written, ApiError> {
    let resource = &cx.resource;
    if options.dry_run {
        return match cx.cluster.keyspace().get(key) {
            Some(_) => Err(ApiError::already_exists(resource.subject(), name)),
            None => Ok(Written::DryRun(object)),
        };
    }
    if has_revision {
        return Err(ApiError::unexplained(
            "resourceVersion should not be set on objects to be created",
        ));
    }
    resource.to_storage(&mut object);
    let draft = Draft::checked(&object)?;
    let written = cx
        .cluster
        .keyspace()
        .put(key, Expected::Absent, move |revision| {
            draft.finish(revision)
        })
        .await;
    match written {
        Ok(entry) => {
            admission::after_write(cx);
            if let Err(error) = admission::check_place(cx, &object) {
                withdraw(cx, &entry, &object).await;
                return Err(error);
            }
            Ok(Written::Stored(entry.value))
        }
        Err(WriteError::Conflict { .. }) => Err(ApiError::already_exists(resource.subject(), name)),
        Err(error) => Err(ApiError::unwritten(&error)),
    }
}

/// Removes an object whose namespace or definition was deleted while it was written: who removes
/// their contents may not have seen it. Before the deletion began, they would have.
async fn withdraw(cx: &RequestContext, entry: &Entry<StoredObject>, object: &Value) {
    let draft = Draft::new(object);
    let expected = Expected::Revision(entry.modified);
    let finish = move |revision| draft.finish(revision);
    let gone = cx.cluster.keyspace().delete(&entry.key, expected, finish);
    // A conflict means that somebody else has seen it, and removes it.
    if let Err(error) = gone.await {
        tracing::debug!(cluster = cx.cluster.name(), name = &*entry.key, %error, "cannot withdraw an object");
    }
}
