//! Answers: what a handler returns, and how it is written for the client.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header};
use serde_json::Value;

use crate::frames::Frames;
use crate::listing::write_metadata;
use crate::negotiate::{Format, Projection, Representation};
use crate::object::StoredObject;
use crate::outgoing::{Body, Filled, Interrupted, Source};
use crate::resource::Resource;
use crate::status::ApiError;
use crate::table;

/// What a handler found or did.
pub(crate) enum Answer {
    /// An object as it is stored.
    Stored(StatusCode, Arc<StoredObject>),
    /// An object that is not stored: a dry run, a review, a scale.
    Value(StatusCode, Value),
    /// A document that is written while it is sent.
    Document(Document),
    /// Text such as health and metrics.
    Text(StatusCode, &'static str, String),
    /// A stream of watch events.
    Watch(Body),
}

/// A document: what of it is written, and what writes the rest.
pub(crate) struct Document {
    /// The form in which it is written.
    pub format: Format,
    /// The beginning.
    pub frames: Frames,
    /// The rest; `None` if there is none.
    pub source: Option<Box<dyn Source>>,
}

/// An answer, and what the client should know besides.
pub(crate) struct Reply {
    /// What was found or done.
    pub answer: Answer,
    /// Sent as `Warning` headers.
    pub warnings: Vec<String>,
}

impl Reply {
    /// The same with more warnings.
    #[must_use]
    pub(crate) fn with(mut self, warnings: Vec<String>) -> Self {
        self.warnings.extend(warnings);
        self
    }
}

impl From<Answer> for Reply {
    fn from(answer: Answer) -> Self {
        Self {
            answer,
            warnings: Vec::new(),
        }
    }
}

/// What is needed to write an object for a client.
#[derive(Debug, Clone)]
pub(crate) struct Writer {
    /// Format and projection that the client wants.
    pub representation: Representation,
    /// `includeObject` of tables.
    pub include_object: table::IncludeObject,
    /// The time that ages are computed against.
    pub now: jiff::Timestamp,
}

impl Writer {
    /// Turns a reply into a response.
    pub(crate) fn respond(&self, resource: Option<&Resource>, reply: Reply) -> Response<Body> {
        let mut response = match reply.answer {
            Answer::Stored(code, object) => match resource {
                Some(resource) => self.stored(code, resource, &object),
                None => json_response(code, object.untyped_json().into()),
            },
            Answer::Value(code, value) => self.value(code, resource, value),
            Answer::Document(document) => self.document(StatusCode::OK, document),
            Answer::Text(code, content_type, text) => {
                let mut response = Response::new(Body::full(text));
                *response.status_mut() = code;
                set_content_type(&mut response, content_type);
                response
            }
            Answer::Watch(body) => {
                let mut response = Response::new(body);
                set_content_type(&mut response, "application/json");
                response
            }
        };
        for warning in reply.warnings {
            if let Some(value) = warning_header(&warning) {
                response.headers_mut().append(header::WARNING, value);
            }
        }
        response
    }

    fn stored(
        &self,
        code: StatusCode,
        resource: &Resource,
        object: &Arc<StoredObject>,
    ) -> Response<Body> {
        if self.representation.projection == Projection::Object && !resource.converts() {
            let mut frames = Frames::default();
            frames.typed(&resource.api_version, &resource.kind, object);
            return self.document(
                code,
                Document {
                    format: Format::Json,
                    frames,
                    source: None,
                },
            );
        }
        // Most of an object may be what nobody asks for.
        if self.representation.projection == Projection::Metadata && !resource.converts() {
            let (mut text, mut metadata) = (Vec::new(), Vec::new());
            write_metadata(resource, object, &mut text, &mut metadata);
            return self.encoded(code, metadata.into());
        }
        self.value(code, Some(resource), resource.read(object))
    }

    fn value(&self, code: StatusCode, resource: Option<&Resource>, value: Value) -> Response<Body> {
        let value = match (self.representation.projection, resource) {
            (Projection::Table, Some(resource)) if value["kind"] == *resource.kind => {
                table::of_objects(
                    resource,
                    std::slice::from_ref(&value),
                    &value["metadata"],
                    self,
                )
            }
            (Projection::Metadata, Some(_)) => table::partial_metadata(&value),
            _ => value,
        };
        self.encoded(code, to_bytes(&value))
    }

    fn document(&self, code: StatusCode, document: Document) -> Response<Body> {
        let Document {
            format,
            frames,
            source,
        } = document;
        if self.representation.format == format {
            let mut response = Response::new(Body::pieces(frames, source));
            *response.status_mut() = code;
            set_content_type(&mut response, format.media_type());
            return response;
        }
        match collect(frames, source) {
            Ok(json) => self.encoded(code, json.into()),
            Err(error) => failure(&ApiError::expired(error.to_string())),
        }
    }

    fn encoded(&self, code: StatusCode, json: Bytes) -> Response<Body> {
        if self.representation.format == Format::Json {
            return json_response(code, json);
        }
        let value: Value = serde_json::from_slice(&json).unwrap_or_default();
        let format = self.representation.format;
        let bytes = if format == Format::Yaml {
            bellwether_json::yaml::to_yaml(&value).into_bytes()
        } else {
            match bellwether_protobuf::encode(&value) {
                Some(bytes) => bytes,
                // A subresource may be of a kind that has no such form.
                None => return json_response(code, json),
            }
        };
        let mut response = Response::new(Body::full(bytes));
        *response.status_mut() = code;
        set_content_type(&mut response, format.media_type());
        response
    }
}

/// The whole of one object, for another form.
fn collect(
    mut frames: Frames,
    mut source: Option<Box<dyn Source>>,
) -> Result<Vec<u8>, Interrupted> {
    let mut json = Vec::new();
    loop {
        while let Some(frame) = frames.next() {
            json.extend_from_slice(&frame);
        }
        let Some(more) = &mut source else {
            return Ok(json);
        };
        if more.fill(&mut frames)? == Filled::End {
            source = None;
        }
    }
}

/// The response to a failed request.
pub(crate) fn failure(error: &ApiError) -> Response<Body> {
    let code = StatusCode::from_u16(error.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if error.plain {
        let mut response = Response::new(Body::full(error.message.clone()));
        *response.status_mut() = code;
        set_content_type(&mut response, "text/plain; charset=utf-8");
        return response;
    }
    let mut response = json_response(code, to_bytes(&error.to_status()));
    let retry = error
        .details
        .as_ref()
        .map_or(0, |details| details.retry_after_seconds);
    if retry > 0 {
        response
            .headers_mut()
            .insert(header::RETRY_AFTER, retry.into());
    }
    response
}

/// A JSON document as a response.
pub(crate) fn json_response(code: StatusCode, json: Bytes) -> Response<Body> {
    let mut response = Response::new(Body::full(json));
    *response.status_mut() = code;
    set_content_type(&mut response, "application/json");
    response
}

/// Serialises a value; values with string keys always can be.
pub(crate) fn to_bytes(value: &Value) -> Bytes {
    serde_json::to_vec(value).unwrap_or_default().into()
}

fn set_content_type(response: &mut Response<Body>, content_type: &'static str) {
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
}

/// A warning as RFC 7234 quotes it; `None` if it cannot be put in a header.
fn warning_header(text: &str) -> Option<HeaderValue> {
    let mut quoted = String::with_capacity(text.len() + 8);
    quoted.push_str("299 - \"");
    for letter in text.chars() {
        if matches!(letter, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(if letter.is_control() { ' ' } else { letter });
    }
    quoted.push('"');
    HeaderValue::from_bytes(quoted.as_bytes()).ok()
}
