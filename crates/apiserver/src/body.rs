//! Request bodies: read with limits, parsed from JSON or YAML, and checked to be what the path asks for.

use std::time::Duration;

use bellwether_json::{strict, yaml};
use bellwether_kinds::Subresource;
use bellwether_schema::decode;
use bytes::Bytes;
use http::HeaderMap;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http_body_util::BodyExt;
use serde_json::Value;

use crate::limits::Hold;
use crate::params::FieldValidation;
use crate::repeats::Repeats;
use crate::resource::{Resource, Source};
use crate::status::ApiError;

/// The largest body that is read, as in Kubernetes.
pub(crate) const LIMIT: usize = 3 * 1024 * 1024;

const ACCEPTED: &str = "application/json, application/yaml, application/vnd.kubernetes.protobuf";

/// What a body says it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MediaType {
    /// `application/json`, or nothing said.
    Json,
    /// `application/yaml`
    Yaml,
    /// What typed clients send of built-in kinds.
    Protobuf,
}

/// A body and its content type.
#[derive(Debug)]
pub(crate) struct RequestBody {
    /// The bytes.
    pub bytes: Bytes,
    /// The `Content-Type` without parameters; empty if there is none.
    pub content_type: String,
    /// Counts the bytes for as long as they are here.
    _hold: Hold,
}

impl RequestBody {
    /// Reads a body up to [`LIMIT`], within the time that its sender has, and counts what it takes.
    pub(crate) async fn read<B>(
        headers: &HeaderMap,
        body: B,
        timeout: Duration,
        mut hold: Hold,
    ) -> Result<Self, ApiError>
    where
        B: http_body::Body<Data = Bytes>,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
        let content_type = text(CONTENT_TYPE)
            .and_then(|value| value.split(';').next())
            .unwrap_or("")
            .trim()
            .to_ascii_lowercase();
        let announced = text(CONTENT_LENGTH).and_then(|length| length.parse::<usize>().ok());
        if announced.is_some_and(|length| length > LIMIT) {
            return Err(too_large());
        }
        let whole = collect(body, &mut hold);
        let bytes = tokio::time::timeout(timeout, whole)
            .await
            .map_err(|_| ApiError::slow_body())??;
        Ok(Self {
            bytes,
            content_type,
            _hold: hold,
        })
    }

    fn media_type(&self) -> Result<MediaType, ApiError> {
        match self.content_type.as_str() {
            "" | "application/json" | "*/*" => Ok(MediaType::Json),
            "application/yaml" => Ok(MediaType::Yaml),
            bellwether_protobuf::MEDIA_TYPE => Ok(MediaType::Protobuf),
            _ => Err(ApiError::unsupported_media_type(ACCEPTED)),
        }
    }

    /// The body of a create or update as an object of `resource`, and warnings about it.
    pub(crate) fn decode(
        &self,
        resource: &Resource,
        validation: FieldValidation,
    ) -> Result<(Value, Vec<String>), ApiError> {
        let (value, repeats) = self.parse(&resource.kind)?;
        decode_value(resource, value, &repeats, validation)
    }

    /// The body as plain JSON, whatever it is; empty is `null`.
    pub(crate) fn parse(&self, expected: &str) -> Result<(Value, Repeats), ApiError> {
        let unrecognized = |why: &dyn std::fmt::Display| {
            ApiError::bad_request(format!(
                "the object provided is unrecognized (must be of type {expected}): couldn't get version/kind; json parse error: {why} ({})",
                summary(&self.bytes)
            ))
        };
        match self.media_type()? {
            MediaType::Json => {
                let parsed = strict::parse(&self.bytes).map_err(|error| unrecognized(&error))?;
                Ok((parsed.value, Repeats::Json(parsed.duplicates)))
            }
            MediaType::Yaml => {
                let text =
                    std::str::from_utf8(&self.bytes).map_err(|error| unrecognized(&error))?;
                let document =
                    yaml::document_from_yaml(text).map_err(|error| unrecognized(&error))?;
                Ok((document.value, Repeats::Yaml(document.duplicates)))
            }
            MediaType::Protobuf => {
                let value =
                    bellwether_protobuf::decode(&self.bytes).map_err(|error| match error {
                        bellwether_protobuf::DecodeError::UnknownKind { .. } => {
                            ApiError::unsupported_media_type(ACCEPTED)
                        }
                        other => ApiError::bad_request(other.to_string()),
                    })?;
                Ok((value, Repeats::none()))
            }
        }
    }

    /// The options in the body of a delete; `null` if there is none.
    pub(crate) fn delete_options(&self) -> Result<Value, ApiError> {
        if self.bytes.is_empty() {
            return Ok(Value::Null);
        }
        let options = match self.media_type()? {
            MediaType::Json => {
                let parsed = strict::parse(&self.bytes).map_err(|error| {
                    ApiError::bad_request(format!(
                        "couldn't get version/kind; json parse error: {error}"
                    ))
                })?;
                parsed.value
            }
            MediaType::Yaml | MediaType::Protobuf => self.parse("DeleteOptions")?.0,
        };
        match options["kind"].as_str() {
            None | Some("" | "DeleteOptions") => Ok(options),
            Some(kind) => {
                let version = options["apiVersion"].as_str().unwrap_or_default();
                Err(ApiError::bad_request(unregistered(kind, version)))
            }
        }
    }
}

fn too_large() -> ApiError {
    ApiError::too_large(format!("Request entity too large: limit is {LIMIT}"))
}

/// Reads what comes, up to [`LIMIT`].
async fn collect<B>(body: B, hold: &mut Hold) -> Result<Bytes, ApiError>
where
    B: http_body::Body<Data = Bytes>,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    let mut body = std::pin::pin!(body);
    let mut first = Bytes::new();
    let mut rest = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| {
            let error = error.into();
            ApiError::bad_request(format!("cannot read the request body: {error}"))
        })?;
        let Ok(data) = frame.into_data() else {
            continue;
        };
        if first.len().max(rest.len()) + data.len() > LIMIT {
            return Err(too_large());
        }
        hold.grow(data.len())?;
        // Small bodies come in one frame, and are not copied.
        if rest.is_empty() && first.is_empty() {
            first = data;
        } else {
            if rest.is_empty() {
                rest.extend_from_slice(&first);
            }
            rest.extend_from_slice(&data);
        }
    }
    Ok(if rest.is_empty() { first } else { rest.into() })
}

/// Checks the type of an object and drops or refuses fields that its schema does not know.
pub(crate) fn decode_value(
    resource: &Resource,
    mut value: Value,
    repeats: &Repeats,
    validation: FieldValidation,
) -> Result<(Value, Vec<String>), ApiError> {
    check_type(resource, &mut value)?;
    let unknown = resource
        .drop_unknown(&mut value)
        .map_err(|why| cannot_handle(resource, &why))?;
    let warnings =
        judge(validation, repeats, &unknown).map_err(|why| cannot_handle(resource, &why))?;
    check_size(&value)?;
    let defaulted = resource.default(&mut value);
    defaulted.map_err(|_| ApiError::too_large_to_store())?;
    Ok((value, warnings))
}

/// Checks the fields of what a subresource takes, such as a Scale, and drops those that its schema does not know. The error
/// is what Go's decoder says of a value of the wrong type.
pub(crate) fn decode_sent(part: &Subresource, mut value: Value) -> Result<Value, String> {
    let Some((group, version, kind)) = part.kind else {
        return Ok(value);
    };
    let package = group.split('.').next().unwrap_or_default();
    let package = if package.is_empty() { "core" } else { package };
    let schema = bellwether_kinds::type_schema(&format!("io.k8s.api.{package}.{version}.{kind}"));
    if let Some(schema) = schema {
        decode::decode(&mut value, &schema, kind).map_err(|error| error.to_string())?;
    }
    value["apiVersion"] = match group {
        "" => version.into(),
        group => format!("{group}/{version}").into(),
    };
    value["kind"] = kind.into();
    Ok(value)
}

/// The most objects that a value may hold, one in another or one beside another. No object that can
/// be stored has as many, and each takes a kilobyte of memory when its defaults are filled in.
const MOST_OBJECTS: usize = 100_000;

/// Refuses what cannot be stored in any case, before more memory is spent on it.
fn check_size(value: &Value) -> Result<(), ApiError> {
    fn count(value: &Value) -> usize {
        match value {
            Value::Array(items) => items.iter().map(count).sum(),
            Value::Object(fields) => 1 + fields.values().map(count).sum::<usize>(),
            _ => 0,
        }
    }
    if count(value) > MOST_OBJECTS {
        return Err(ApiError::too_large_to_store());
    }
    Ok(())
}

/// What fields that are unknown or written twice mean to one who asked for this validation: the
/// warnings, or why the body is refused.
pub(crate) fn judge(
    validation: FieldValidation,
    repeats: &Repeats,
    unknown: &[String],
) -> Result<Vec<String>, String> {
    let unknown = unknown
        .iter()
        .map(|path| format!("unknown field \"{path}\""));
    match validation {
        FieldValidation::Ignore => Ok(Vec::new()),
        FieldValidation::Warn => Ok(repeats.warnings().into_iter().chain(unknown).collect()),
        FieldValidation::Strict => {
            let errors: Vec<_> = repeats.errors().into_iter().chain(unknown).collect();
            if errors.is_empty() {
                return Ok(Vec::new());
            }
            Err(format!("strict decoding error: {}", errors.join(", ")))
        }
    }
}

fn cannot_handle(resource: &Resource, why: &str) -> ApiError {
    ApiError::bad_request(format!("{}{why}", cannot_handle_prefix(resource)))
}

fn cannot_handle_prefix(resource: &Resource) -> String {
    let (kind, version) = (&resource.kind, &resource.version);
    format!("{kind} in version \"{version}\" cannot be handled as a {kind}: ")
}

/// What is wrong with an object that cannot be decoded, without saying that it cannot.
pub(crate) fn decoding_cause<'a>(resource: &Resource, error: &'a ApiError) -> &'a str {
    let prefix = cannot_handle_prefix(resource);
    let message = &error.message;
    message.strip_prefix(&prefix).unwrap_or(message)
}

/// An object may leave out its type; a wrong one is refused in Kubernetes' words.
fn check_type(resource: &Resource, value: &mut Value) -> Result<(), ApiError> {
    if value.is_null() {
        *value = Value::Object(serde_json::Map::new());
    }
    let Value::Object(fields) = value else {
        return Err(ApiError::bad_request(format!(
            "the object provided is unrecognized (must be of type {}): couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }} ({})",
            resource.kind,
            go_type(value),
            summary(value.to_string().as_bytes()),
        )));
    };
    let text = |key: &str| {
        fields
            .get(key)
            .and_then(Value::as_str)
            .unwrap_or("")
            .to_owned()
    };
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let other_kind = !kind.is_empty() && kind != *resource.kind;
    let other_version = !api_version.is_empty() && api_version != *resource.api_version;
    if other_kind
        || (other_version && !resource.is_custom() && !is_built_in(&api_version, &resource.kind))
    {
        let kind = if kind.is_empty() {
            &resource.kind
        } else {
            kind.as_str()
        };
        return Err(wrong_kind(resource, &api_version, kind));
    }
    if !api_version.is_empty() && api_version != *resource.api_version {
        return Err(ApiError::bad_request(format!(
            "the API version in the data ({api_version}) does not match the expected API version ({})",
            resource.api_version
        )));
    }
    fields.insert("apiVersion".into(), (*resource.api_version).into());
    fields.insert("kind".into(), (*resource.kind).into());
    Ok(())
}

fn is_built_in(api_version: &str, kind: &str) -> bool {
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    bellwether_kinds::find_kind(group, version, kind).is_some()
}

/// What Kubernetes says of a type that it does not know.
fn unregistered(kind: &str, api_version: &str) -> String {
    format!(
        "no kind \"{kind}\" is registered for version \"{api_version}\" in scheme \"pkg/runtime/scheme.go:111\""
    )
}

fn wrong_kind(resource: &Resource, api_version: &str, kind: &str) -> ApiError {
    let expected = &resource.kind;
    if let Source::Custom(_) = resource.source {
        return ApiError::bad_request(format!(
            "the kind in the data ({kind}) does not match the expected kind ({expected})"
        ));
    }
    wrong_type(&resource.group, expected, api_version, kind)
}

/// What Kubernetes says of an object that is of another type than the path asks for.
pub(crate) fn wrong_type(group: &str, expected: &str, api_version: &str, kind: &str) -> ApiError {
    let (_, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let why = if is_built_in(api_version, kind) {
        let package = match group {
            "" | "events.k8s.io" => "core",
            group => group.split('.').next().unwrap_or(group),
        };
        format!("converting ({version}.{kind}) to ({package}.{expected}): unknown conversion")
    } else {
        unregistered(kind, api_version)
    };
    ApiError::bad_request(format!(
        "{kind} in version \"{version}\" cannot be handled as a {expected}: {why}"
    ))
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// The beginning of a body, as Kubernetes shows it in errors.
fn summary(data: &[u8]) -> String {
    const LENGTH: usize = 30;
    let shown = &data[..data.len().min(LENGTH)];
    let more = if data.len() > LENGTH { " ..." } else { "" };
    match data.first() {
        None => "<empty>".into(),
        Some(b'{') => format!("{}{more}", String::from_utf8_lossy(shown)),
        Some(_) => crate::discovery::hex(shown).to_lowercase() + more,
    }
}
