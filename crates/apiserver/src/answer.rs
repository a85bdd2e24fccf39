//! Answers: what a handler returns, and how it is written for the client.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures::Stream;
use http::{HeaderValue, Response, StatusCode, header};
use http_body::{Frame, SizeHint};
use serde_json::Value;

use crate::limits::Permit;
use crate::negotiate::{Format, Representation, Shape};
use crate::object::StoredObject;
use crate::resource::Resource;
use crate::status::ApiError;
use crate::table;

/// The body of a response: all at once, or line by line as a watch yields it.
pub struct Body {
    content: Content,
    /// The request is under way until the last byte has been taken.
    permit: Option<Permit>,
}

enum Content {
    /// Everything is known; `None` once it has been handed over.
    Full(Option<Bytes>),
    /// More may come at any time.
    Stream(Pin<Box<dyn Stream<Item = Bytes> + Send>>),
}

impl Body {
    /// How much is handed over at a time: a client that does not read keeps its request under way.
    const FRAME: usize = 256 * 1024;

    /// A body that is known.
    pub(crate) fn full(bytes: impl Into<Bytes>) -> Self {
        Self::from(Content::Full(Some(bytes.into())))
    }

    /// A body without content.
    pub(crate) fn empty() -> Self {
        Self::from(Content::Full(None))
    }

    /// A body that goes on.
    pub(crate) fn stream(lines: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self::from(Content::Stream(Box::pin(lines)))
    }

    /// Hands over what counts the request.
    pub(crate) fn release(&mut self) -> Option<Permit> {
        self.permit.take()
    }

    /// Puts back what has been taken from a body that has ended.
    pub(crate) fn refill(&mut self, bytes: Vec<u8>) {
        let bytes = (!bytes.is_empty()).then(|| bytes.into());
        self.content = Content::Full(bytes);
    }

    /// Counts the request for as long as the body is being sent.
    pub(crate) fn hold(&mut self, permit: Option<Permit>) {
        self.permit = permit;
    }
}

impl From<Content> for Body {
    fn from(content: Content) -> Self {
        Self {
            content,
            permit: None,
        }
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.content {
            Content::Full(bytes) => f
                .debug_tuple("Full")
                .field(&bytes.as_ref().map(Bytes::len))
                .finish(),
            Content::Stream(_) => f.write_str("Stream"),
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let next = match &mut self.content {
            Content::Full(rest) => Poll::Ready(next_frame(rest)),
            Content::Stream(stream) => stream.as_mut().poll_next(cx),
        };
        if let Poll::Ready(None) = next {
            self.permit = None;
        }
        next.map(|item| item.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        matches!(self.content, Content::Full(None))
    }

    fn size_hint(&self) -> SizeHint {
        match &self.content {
            Content::Full(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Content::Stream(_) => SizeHint::default(),
        }
    }
}

fn next_frame(rest: &mut Option<Bytes>) -> Option<Bytes> {
    match rest {
        Some(bytes) if bytes.len() > Body::FRAME => Some(bytes.split_to(Body::FRAME)),
        _ => rest.take(),
    }
}

/// What a handler found or did.
#[derive(Debug)]
pub(crate) enum Answer {
    /// An object as it is stored.
    Stored(StatusCode, Arc<StoredObject>),
    /// An object that is not stored: a dry run, a review, a scale.
    Value(StatusCode, Value),
    /// Bytes that are ready to be sent as JSON.
    Json(StatusCode, Bytes),
    /// Text such as health and metrics.
    Text(StatusCode, &'static str, String),
    /// A stream of watch events.
    Watch(Body),
}

/// An answer, and what the client should know besides.
#[derive(Debug)]
pub(crate) struct Reply {
    /// What was found or done.
    pub answer: Answer,
    /// Sent as `Warning` headers.
    pub warnings: Vec<String>,
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
    /// Format and shape that the client wants.
    pub representation: Representation,
    /// `includeObject` of tables.
    pub include_object: table::IncludeObject,
    /// The time against which ages are told.
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
            Answer::Json(code, bytes) => self.encoded(code, bytes),
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
        object: &StoredObject,
    ) -> Response<Body> {
        if self.representation.shape == Shape::Object && !resource.converts() {
            let mut json = Vec::with_capacity(object.length() + 64);
            object.write_typed(&resource.api_version, &resource.kind, &mut json);
            return self.encoded(code, json.into());
        }
        self.value(code, Some(resource), resource.read(object))
    }

    fn value(&self, code: StatusCode, resource: Option<&Resource>, value: Value) -> Response<Body> {
        let value = match (self.representation.shape, resource) {
            (Shape::Table, Some(resource)) if value["kind"] == *resource.kind => table::of_objects(
                resource,
                std::slice::from_ref(&value),
                &value["metadata"],
                self,
            ),
            (Shape::Metadata, Some(_)) => table::partial_metadata(&value),
            _ => value,
        };
        self.encoded(code, to_bytes(&value))
    }

    fn encoded(&self, code: StatusCode, json: Bytes) -> Response<Body> {
        if self.representation.format == Format::Json {
            return json_response(code, json);
        }
        let value: Value = serde_json::from_slice(&json).unwrap_or_default();
        let (kind, bytes) = if self.representation.format == Format::Yaml {
            let yaml = bellwether_json::yaml::to_yaml(&value);
            ("application/yaml", yaml.into_bytes())
        } else {
            match bellwether_protobuf::encode(&value) {
                Some(bytes) => (bellwether_protobuf::MEDIA_TYPE, bytes),
                // A subresource may be of a kind that has no such form.
                None => return json_response(code, json),
            }
        };
        let mut response = Response::new(Body::full(bytes));
        *response.status_mut() = code;
        set_content_type(&mut response, kind);
        response
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
