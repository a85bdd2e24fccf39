//! Who owns which field: `metadata.managedFields`, kept for every manager and every write.

use std::sync::LazyLock;

use bellwether_json::time;
use bellwether_patch::fieldset::FieldSet;
use bellwether_patch::managed::{self, ApplyError, Write};
use serde_json::{Value, json};

use crate::context::RequestContext;
use crate::resource::Part;
use crate::status::{ApiError, Cause};

/// How a write is entered in `managedFields`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ownership {
    /// This manager owns what it changed.
    Update(String),
    /// An apply has entered it already.
    Recorded,
}

/// What the main part of an object with a status subresource cannot own.
static STATUS: LazyLock<FieldSet> = LazyLock::new(|| fields(&json!({"f:status": {}})));
/// What a status write cannot own.
static SPEC: LazyLock<FieldSet> = LazyLock::new(|| fields(&json!({"f:spec": {}})));

fn fields(json: &Value) -> FieldSet {
    FieldSet::from_json(json).unwrap_or_default()
}

fn reset_fields(cx: &RequestContext, part: Part) -> Option<&'static FieldSet> {
    match part {
        Part::Main if cx.resource.has_status() => Some(&STATUS),
        Part::Status => Some(&SPEC),
        _ => None,
    }
}

/// Calls `act` with what a request says about its write.
fn with_write<T>(
    cx: &RequestContext,
    part: Part,
    manager: &str,
    act: impl FnOnce(&Write<'_>) -> T,
) -> T {
    let schema = cx.resource.schema();
    let now = time::format_time(cx.now);
    act(&Write {
        schema: &schema,
        api_version: &cx.resource.api_version,
        kind: &cx.resource.kind,
        subresource: part.subresource(),
        manager,
        reset_fields: reset_fields(cx, part),
        now: &now,
        versions: None,
    })
}

/// Enters a change in the `managedFields` of `object`.
pub(crate) fn record_update(
    cx: &RequestContext,
    part: Part,
    object: Value,
    live: Option<&Value>,
    ownership: &Ownership,
) -> Value {
    let mut object = match ownership {
        Ownership::Update(manager) => {
            let live = live.unwrap_or_else(|| cx.resource.blank());
            with_write(cx, part, manager, |write| {
                managed::update(live, object, write)
            })
        }
        Ownership::Recorded => object,
    };
    if part == Part::Scale {
        forget_times_of_scale(&mut object);
    }
    object
}

/// Entries of the scale subresource carry no time, because in Kubernetes they are computed on a
/// `Scale`, which has none.
fn forget_times_of_scale(object: &mut Value) {
    let entries = object["metadata"]["managedFields"]
        .as_array_mut()
        .into_iter()
        .flatten();
    for entry in entries.filter(|entry| entry["subresource"] == "scale") {
        if let Value::Object(fields) = entry {
            fields.remove("time");
        }
    }
}

/// What the live object becomes when `manager` applies `wanted`.
pub(crate) fn apply(
    cx: &RequestContext,
    part: Part,
    live: Option<&Value>,
    wanted: &Value,
    manager: &str,
    force: bool,
) -> Result<Value, ApiError> {
    let live = live.unwrap_or_else(|| cx.resource.blank());
    let applied = with_write(cx, part, manager, |write| {
        managed::apply(live, wanted, write, force)
    });
    match applied {
        Ok(applied) => Ok(applied.object),
        Err(ApplyError::Conflict(conflicts)) => {
            let causes = conflicts.causes().into_iter().map(|cause| Cause {
                reason: bellwether_patch::managed::CONFLICT_REASON.into(),
                message: cause.message,
                field: cause.field,
            });
            Err(ApiError::apply_conflict(
                conflicts.to_string(),
                causes.collect(),
            ))
        }
        Err(ApplyError::BadRequest(message)) => Err(ApiError::bad_request(message)),
        Err(ApplyError::Typed(message)) => Err(ApiError::unexplained(message)),
    }
}
