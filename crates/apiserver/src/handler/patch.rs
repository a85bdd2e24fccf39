//! Patching an object in four ways: JSON patch, merge patch, strategic merge patch, apply.

use bellwether_json::yaml::{Document, document_from_yaml};
use bellwether_patch::json_patch::{self, JsonPatchError};
use bellwether_patch::{merge, strategic};
use bellwether_schema::{FieldError, FieldPath};
use http::StatusCode;
use serde_json::Value;

use crate::answer::Reply;
use crate::body::{RequestBody, decode_value, decoding_cause};
use crate::context::RequestContext;
use crate::handler::create::{Written, create_object};
use crate::handler::get::not_found;
use crate::handler::in_place::InPlace;
use crate::handler::update::{Proposal, change};
use crate::metadata;
use crate::ownership::{self, Ownership};
use crate::params::{FieldValidation, WriteOptions};
use crate::repeats::Repeats;
use crate::resource::{Part, Resource};
use crate::status::{ApiError, Subject};

/// The patch types by their content type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PatchType {
    Json,
    Merge,
    Strategic,
    Apply,
}

impl PatchType {
    /// The type that a content type names, if `resource` supports it.
    pub(crate) fn of(cx: &RequestContext, content_type: &str) -> Result<Self, ApiError> {
        match content_type {
            "application/json-patch+json" => Ok(Self::Json),
            "application/merge-patch+json" => Ok(Self::Merge),
            "application/strategic-merge-patch+json" if cx.resource.is_custom() => {
                Err(ApiError::unsupported_media_type(
                    "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml",
                ))
            }
            "application/strategic-merge-patch+json" => Ok(Self::Strategic),
            "application/apply-patch+yaml" => Ok(Self::Apply),
            _ => Err(ApiError::unsupported_patch()),
        }
    }
}

/// Answers `PATCH` of an object or of its status.
pub(crate) async fn patch(
    cx: &RequestContext,
    part: Part,
    body: &RequestBody,
) -> Result<Reply, ApiError> {
    let kind = PatchType::of(cx, &body.content_type)?;
    let options = WriteOptions::parse(&cx.query, "PatchOptions")?;
    options.check_patch(kind == PatchType::Apply)?;
    if kind == PatchType::Apply {
        return apply(cx, part, body, &options).await;
    }
    let patch = Patch::parse(kind, body)?;
    let ownership = Ownership::Update(cx.manager(&options.field_manager));
    let in_place = match &patch.kind {
        ParsedPatch::Json(json) => InPlace::new(cx, part, &options, json),
        ParsedPatch::Merge(_) | ParsedPatch::Strategic(_) => None,
    };
    if let Some(in_place) = &in_place
        && let Some(written) = in_place.write(&options, &patch.repeats, &ownership).await?
    {
        return Ok(written.answer(StatusCode::OK).into());
    }
    let mut warnings = Vec::new();
    let written = change(cx, part, &options, |live| {
        let patched = patch.apply(cx, live.clone())?;
        let (object, found) = decode_value(
            &cx.resource,
            patched,
            &patch.repeats,
            options.field_validation,
        )
        .map_err(|error| match patch.apply(cx, live.clone()) {
            Ok(patched) => undecodable(&cx.resource, &patched, error),
            Err(error) => error,
        })?;
        warnings = found;
        Ok(Proposal {
            object,
            ownership: ownership.clone(),
        })
    })
    .await?;
    if let (Some(in_place), Written::Stored(stored)) = (&in_place, &written) {
        in_place.settle(stored);
    }
    Ok(Reply {
        answer: written.answer(StatusCode::OK),
        warnings,
    })
}

/// A patch whose result is no object of the kind.
fn undecodable(resource: &Resource, patched: &Value, error: ApiError) -> ApiError {
    if resource.is_custom() {
        return error;
    }
    let why = decoding_cause(resource, &error);
    let field = FieldError::invalid(&FieldPath::new("patch"), patched.to_string(), why);
    ApiError::invalid(
        Subject {
            group: "",
            resource: "",
        },
        "",
        &[field],
    )
}

/// A parsed patch, ready to be applied as often as races demand.
#[derive(Debug)]
pub(crate) struct Patch {
    kind: ParsedPatch,
    repeats: Repeats,
}

#[derive(Debug)]
enum ParsedPatch {
    Json(json_patch::JsonPatch),
    Merge(Value),
    Strategic(Value),
}

impl Patch {
    pub(crate) fn parse(kind: PatchType, body: &RequestBody) -> Result<Self, ApiError> {
        let parsed = bellwether_json::strict::parse(&body.bytes).map_err(|error| {
            ApiError::bad_request(match kind {
                PatchType::Strategic => error.to_string(),
                _ => format!("error decoding patch: {error}"),
            })
        })?;
        let expect_object = |value: Value| {
            if value.is_object() {
                return Ok(value);
            }
            if value.is_null() {
                return Err(ApiError::bad_request("Invalid JSON Patch"));
            }
            let what = json_type(&value);
            Err(ApiError::bad_request(format!(
                "error decoding patch: json: cannot unmarshal {what} into Go value of type map[string]interface {{}}"
            )))
        };
        let kind = match kind {
            PatchType::Json => ParsedPatch::Json(
                json_patch::JsonPatch::parse(&parsed.value).map_err(|error| match error {
                    JsonPatchError::TooManyOperations(_) => {
                        ApiError::too_large(format!("Request entity too large: {error}"))
                    }
                    _ => ApiError::bad_request(error.to_string()),
                })?,
            ),
            PatchType::Merge => ParsedPatch::Merge(expect_object(parsed.value)?),
            PatchType::Strategic | PatchType::Apply => {
                ParsedPatch::Strategic(expect_object(parsed.value)?)
            }
        };
        Ok(Self {
            kind,
            repeats: Repeats::Json(parsed.duplicates),
        })
    }

    /// The object after the patch.
    pub(crate) fn apply(&self, cx: &RequestContext, live: Value) -> Result<Value, ApiError> {
        match &self.kind {
            ParsedPatch::Json(patch) => patch.apply(live).map_err(|_| ApiError::patch_rejected()),
            ParsedPatch::Merge(patch) => {
                let mut object = live;
                merge::apply(&mut object, patch.clone())
                    .map_err(|error| ApiError::bad_request(error.to_string()))?;
                Ok(object)
            }
            ParsedPatch::Strategic(patch) => {
                strategic::apply(live, patch.clone(), &cx.resource.schema())
                    .map_err(|error| ApiError::bad_request(error.to_string()))
            }
        }
    }
}

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Server-side apply: the fields in the body are what the manager wants, no more and no less.
async fn apply(
    cx: &RequestContext,
    part: Part,
    body: &RequestBody,
    options: &WriteOptions,
) -> Result<Reply, ApiError> {
    let (wanted, warnings) = decode_applied(body, options.field_validation)?;
    let manager = options.field_manager.clone();
    let force = options.force.unwrap_or(false);
    let exists = cx.cluster.keyspace().get(&cx.key()?).is_some();
    if !exists {
        if part != Part::Main {
            return Err(not_found(cx));
        }
        let uid = metadata::text(&wanted, "uid");
        if !uid.is_empty() {
            let why = format!(
                "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
            );
            return Err(ApiError::conflict(cx.resource.subject(), cx.name()?, &why));
        }
        let object = ownership::apply(cx, part, None, &wanted, &manager, force)?;
        let object = redecode(cx, object)?;
        let ownership = Ownership::Recorded;
        return match create_object(cx, object, options, &ownership).await {
            Ok(created) => Ok(Reply {
                answer: created.answer(StatusCode::CREATED),
                warnings,
            }),
            // Somebody else created it in between: then this is an apply to theirs.
            Err(error) if error.reason == "AlreadyExists" => {
                let answer = apply_to_live(cx, part, options, &wanted).await?;
                Ok(Reply { answer, warnings })
            }
            Err(error) => Err(error),
        };
    }
    Ok(Reply {
        answer: apply_to_live(cx, part, options, &wanted).await?,
        warnings,
    })
}

async fn apply_to_live(
    cx: &RequestContext,
    part: Part,
    options: &WriteOptions,
    wanted: &Value,
) -> Result<crate::answer::Answer, ApiError> {
    let force = options.force.unwrap_or(false);
    let written = change(cx, part, options, |live| {
        if let Some(revision) = wanted["metadata"]["resourceVersion"].as_str()
            && !revision.is_empty()
            && revision != metadata::text(live, "resourceVersion")
        {
            return Err(ApiError::stale(cx.resource.subject(), cx.name()?));
        }
        let object = ownership::apply(cx, part, Some(live), wanted, &options.field_manager, force)?;
        Ok(Proposal {
            object: redecode(cx, object)?,
            ownership: Ownership::Recorded,
        })
    })
    .await?;
    Ok(written.answer(StatusCode::OK))
}

/// The result of a merge is defaulted and pruned as if it had been sent.
fn redecode(cx: &RequestContext, object: Value) -> Result<Value, ApiError> {
    let validation = FieldValidation::Ignore;
    Ok(decode_value(&cx.resource, object, &Repeats::none(), validation)?.0)
}

/// The applied configuration: YAML or JSON. What is wrong with its type or its fields is found when
/// it is merged, because that knows what a manager may own.
fn decode_applied(
    body: &RequestBody,
    validation: FieldValidation,
) -> Result<(Value, Vec<String>), ApiError> {
    let Document {
        value: wanted,
        duplicates,
    } = parse_yaml(&body.bytes)?;
    let repeats = Repeats::Yaml(duplicates);
    if !wanted.is_object() {
        return Err(ApiError::bad_request(format!(
            "error decoding YAML: error unmarshaling JSON: while decoding JSON: json: cannot unmarshal {} into Go value of type map[string]interface {{}}",
            json_type(&wanted)
        )));
    }
    match (validation, repeats.errors().pop()) {
        (FieldValidation::Strict, Some(error)) => Err(ApiError::bad_request(format!(
            "error strict decoding YAML: error converting YAML to JSON: {error}"
        ))),
        (FieldValidation::Ignore, _) => Ok((wanted, Vec::new())),
        _ => Ok((wanted, repeats.warnings())),
    }
}

/// A body that may be YAML, for an apply.
pub(crate) fn parse_yaml(bytes: &[u8]) -> Result<Document, ApiError> {
    let wrong = |error: &dyn std::fmt::Display| {
        ApiError::bad_request(format!("error decoding YAML: {error}"))
    };
    let text = std::str::from_utf8(bytes).map_err(|error| wrong(&error))?;
    document_from_yaml(text).map_err(|error| wrong(&error))
}
