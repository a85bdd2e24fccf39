//! Errors as Kubernetes words them: the one place that knows HTTP status codes and reasons.
//!
//! Handlers return [`ApiError`]; the response writer turns it into a `Status` object.

use std::borrow::Cow;

use bellwether_admission::policy::Refusal;
use bellwether_schema::FieldError;
use bellwether_store::WriteError;
use serde_json::{Map, Value, json};

/// Why a request failed, ready to be sent as a `Status`.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{message}")]
pub struct ApiError {
    /// HTTP status code.
    pub code: u16,
    /// Machine-readable reason; empty where Kubernetes gives none.
    pub reason: Cow<'static, str>,
    /// The message for people.
    pub message: String,
    /// `details` of the status, without the empty ones.
    pub details: Option<Box<Details>>,
    /// `metadata.continue` of an expired list, with which a client may go on inconsistently.
    pub continue_token: Option<String>,
    /// Sent as plain text instead of a `Status`.
    pub plain: bool,
}

/// What a failure is about.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Details {
    /// API group of the resource.
    pub group: String,
    /// Kind or resource name, as Kubernetes happens to give it.
    pub kind: String,
    /// Name of the object.
    pub name: String,
    /// Uid of the object.
    pub uid: String,
    /// One entry per field or reason.
    pub causes: Vec<Cause>,
    /// When to try again, in seconds; 0 for no advice.
    pub retry_after_seconds: u32,
}

/// A single thing that is wrong.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Cause {
    /// Machine-readable reason such as `FieldValueInvalid`.
    pub reason: String,
    /// Text for people.
    pub message: String,
    /// Path of the field, if one is to blame.
    pub field: String,
}

/// Names a resource in messages: `configmaps`, `widgets.example.com`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Subject<'a> {
    /// API group, empty for core.
    pub group: &'a str,
    /// Plural resource name, or kind.
    pub resource: &'a str,
}

impl std::fmt::Display for Subject<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.resource)?;
        if !self.group.is_empty() {
            write!(f, ".{}", self.group)?;
        }
        Ok(())
    }
}

impl Subject<'_> {
    fn details(&self, name: &str) -> Details {
        Details {
            group: self.group.to_owned(),
            kind: self.resource.to_owned(),
            name: name.to_owned(),
            ..Details::default()
        }
    }
}

impl ApiError {
    fn new(code: u16, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            code,
            reason: reason.into(),
            message: message.into(),
            details: None,
            continue_token: None,
            plain: false,
        }
    }

    fn with_details(mut self, details: Details) -> Self {
        self.details = Some(Box::new(details));
        self
    }

    /// 400: the request cannot be understood.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, "BadRequest", message)
    }

    /// 401: nobody we know.
    pub fn unauthorized() -> Self {
        Self::new(401, "Unauthorized", "Unauthorized")
    }

    /// 403: somebody who may not.
    pub fn forbidden(subject: Subject<'_>, name: &str, why: &str) -> Self {
        let message = if name.is_empty() {
            format!("{subject} is forbidden: {why}")
        } else {
            format!("{subject} \"{name}\" is forbidden: {why}")
        };
        Self::new(403, "Forbidden", message).with_details(subject.details(name))
    }

    /// 403 for a path that is not a resource.
    pub fn forbidden_path(message: impl Into<String>) -> Self {
        Self::new(403, "Forbidden", message).with_details(Details::default())
    }

    /// What an admission policy refuses: worded as a 403, with a code and a reason of its own.
    pub(crate) fn refused_by_policy(subject: Subject<'_>, name: &str, refusal: &Refusal) -> Self {
        let mut error =
            Self::forbidden(subject, name, &refusal.message).because("", refusal.message.clone());
        error.code = refusal.code();
        error.reason = refusal.reason.clone().into();
        error
    }

    /// The error that a `Status` of somebody else describes.
    pub(crate) fn from_status(status: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let code = status["code"]
            .as_u64()
            .and_then(|code| u16::try_from(code).ok());
        let details = &status["details"];
        let causes = details["causes"].as_array().into_iter().flatten();
        let details = details.is_object().then(|| {
            Box::new(Details {
                group: text(&details["group"]),
                kind: text(&details["kind"]),
                name: text(&details["name"]),
                uid: text(&details["uid"]),
                causes: causes
                    .map(|cause| Cause {
                        reason: text(&cause["reason"]),
                        message: text(&cause["message"]),
                        field: text(&cause["field"]),
                    })
                    .collect(),
                retry_after_seconds: details["retryAfterSeconds"]
                    .as_u64()
                    .and_then(|seconds| u32::try_from(seconds).ok())
                    .unwrap_or(0),
            })
        });
        Self {
            // Only what can be the status of a failed response.
            code: code.filter(|code| (400..600).contains(code)).unwrap_or(400),
            reason: text(&status["reason"]).into(),
            message: text(&status["message"]),
            details,
            continue_token: None,
            plain: false,
        }
    }

    /// 404: no such object.
    pub fn not_found(subject: Subject<'_>, name: &str) -> Self {
        Self::new(404, "NotFound", format!("{subject} \"{name}\" not found"))
            .with_details(subject.details(name))
    }

    /// 404: no such resource or subresource.
    pub fn no_such_resource() -> Self {
        Self::new(
            404,
            "NotFound",
            "the server could not find the requested resource",
        )
        .with_details(Details::default())
    }

    /// 404 in plain text: nothing is served under this path.
    pub fn no_such_path() -> Self {
        let mut error = Self::new(404, "NotFound", "404 page not found\n");
        error.plain = true;
        error
    }

    /// 405: this resource does not do that.
    pub fn method_not_allowed() -> Self {
        Self::new(
            405,
            "MethodNotAllowed",
            "the server does not allow this method on the requested resource",
        )
        .with_details(Details::default())
    }

    /// 405 for a resource whose verbs lack the requested one.
    pub fn verb_not_supported(subject: Subject<'_>, verb: &str) -> Self {
        Self::new(
            405,
            "MethodNotAllowed",
            format!("{verb} is not supported on resources of kind \"{subject}\""),
        )
        .with_details(subject.details(""))
    }

    /// 406: no representation that the client accepts.
    pub fn not_acceptable(available: &str) -> Self {
        Self::new(
            406,
            "NotAcceptable",
            format!("406: Not Acceptable\n\nAvailable representations: {available}"),
        )
        .with_details(Details::default())
    }

    /// 408: the client takes too long to say what it wants.
    pub fn slow_body() -> Self {
        Self::new(
            408,
            "Timeout",
            "Timeout: the body of the request did not arrive in time",
        )
    }

    /// 409: the name is taken.
    pub fn already_exists(subject: Subject<'_>, name: &str) -> Self {
        Self::new(
            409,
            "AlreadyExists",
            format!("{subject} \"{name}\" already exists"),
        )
        .with_details(subject.details(name))
    }

    /// 409: somebody else was faster, or a precondition does not hold.
    pub fn conflict(subject: Subject<'_>, name: &str, why: &str) -> Self {
        Self::new(
            409,
            "Conflict",
            format!("Operation cannot be fulfilled on {subject} \"{name}\": {why}"),
        )
        .with_details(subject.details(name))
    }

    /// 409: the object has moved on since it was read.
    pub fn stale(subject: Subject<'_>, name: &str) -> Self {
        Self::conflict(
            subject,
            name,
            "the object has been modified; please apply your changes to the latest version and try again",
        )
    }

    /// 409: server-side apply would take fields from other managers.
    pub fn apply_conflict(message: String, causes: Vec<Cause>) -> Self {
        Self::new(409, "Conflict", message).with_details(Details {
            causes,
            ..Details::default()
        })
    }

    /// 410: the revision is gone from the history.
    pub fn expired(message: impl Into<String>) -> Self {
        Self::new(410, "Expired", message)
    }

    /// 413: more than we take.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(413, "RequestEntityTooLarge", message)
    }

    /// 415 for a body that is in none of the formats we read.
    pub fn unsupported_media_type(accepted: &str) -> Self {
        Self::new(
            415,
            "UnsupportedMediaType",
            format!(
                "the body of the request was in an unknown format - accepted media types include: {accepted}"
            ),
        )
    }

    /// 415 for a patch whose content type is no patch type at all.
    pub fn unsupported_patch() -> Self {
        Self::new(415, "UnsupportedMediaType", "415: Unsupported Media Type")
            .with_details(Details::default())
    }

    /// 422: the object or the options are understood, but wrong.
    pub fn invalid(subject: Subject<'_>, name: &str, errors: &[FieldError]) -> Self {
        let errors = bellwether_schema::cap(errors.to_vec());
        let message = format!(
            "{subject} \"{name}\" is invalid: {}",
            bellwether_schema::aggregate(&errors)
        );
        let causes = errors.iter().map(Cause::from).collect();
        Self::new(422, "Invalid", message).with_details(Details {
            causes,
            ..subject.details(name)
        })
    }

    /// 422: a patch that cannot be applied to this object.
    pub fn patch_rejected() -> Self {
        Self::new(
            422,
            "Invalid",
            "the server rejected our request due to an error in our request",
        )
        .with_details(Details::default())
    }

    /// 429: ask again later.
    pub fn too_many_requests(message: impl Into<String>, retry_after_seconds: u32) -> Self {
        Self::new(429, "TooManyRequests", message).with_details(Details {
            retry_after_seconds,
            ..Details::default()
        })
    }

    /// The same error with one more cause.
    #[must_use]
    pub fn because(mut self, reason: &str, message: impl Into<String>) -> Self {
        let details = self.details.get_or_insert_default();
        details.causes.push(Cause {
            reason: reason.to_owned(),
            message: message.into(),
            ..Cause::default()
        });
        self
    }

    /// 500: our fault, or one that Kubernetes reports as its own.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(
            500,
            "InternalError",
            format!("Internal error occurred: {}", message.into()),
        )
    }

    /// What a write that the store refused is answered with: 507 if the disk is full. It is not one of
    /// the codes on which clients try again by themselves, so that people see the cause.
    pub(crate) fn unwritten<V>(error: &WriteError<V>) -> Self {
        match error {
            WriteError::Storage(cause) if cause.is_full() => {
                Self::new(507, "InsufficientStorage", cause.to_string())
            }
            other => Self::internal(other.to_string()),
        }
    }

    /// 500 whose cause is repeated in the details, as where Kubernetes wraps an error of its own.
    pub fn internal_cause(message: &str) -> Self {
        Self::internal(message).because("", message)
    }

    /// 500 without a reason, as Kubernetes answers a create that carries a resourceVersion.
    pub fn unexplained(message: impl Into<String>) -> Self {
        Self::new(500, "", message)
    }

    /// 504: the request takes too long.
    pub fn timeout() -> Self {
        Self::new(
            504,
            "Timeout",
            "Timeout: request did not complete within the allotted timeout",
        )
    }

    /// 500: what an API server over etcd answers when an object is too large to be stored.
    pub fn too_large_to_store() -> Self {
        Self::unexplained("etcdserver: request is too large")
    }

    /// 504: the requested revision is ahead of what we have.
    pub fn revision_too_large(requested: u64, current: u64) -> Self {
        let cause = Cause {
            reason: "ResourceVersionTooLarge".into(),
            message: "Too large resource version".into(),
            ..Cause::default()
        };
        Self::new(
            504,
            "Timeout",
            format!("Timeout: Too large resource version: {requested}, current: {current}"),
        )
        .with_details(Details {
            causes: vec![cause],
            retry_after_seconds: 1,
            ..Details::default()
        })
    }

    /// The `Status` object to send.
    pub fn to_status(&self) -> Value {
        let mut metadata = Map::new();
        if let Some(token) = &self.continue_token {
            metadata.insert("continue".into(), token.clone().into());
        }
        let mut status = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": metadata,
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        });
        if !self.reason.is_empty() {
            status["reason"] = (*self.reason).into();
        }
        if let Some(details) = &self.details {
            status["details"] = details.to_json();
        }
        status
    }
}

/// The `Status` of a request that succeeded and has no object to answer with.
pub(crate) fn success(code: Option<u16>, details: Option<&Details>) -> Value {
    let mut status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success",
    });
    if let Some(details) = details {
        status["details"] = details.to_json();
    }
    if let Some(code) = code {
        status["code"] = code.into();
    }
    status
}

impl Details {
    /// Without empty fields, as `omitempty` leaves them out.
    pub fn to_json(&self) -> Value {
        let mut out = Map::new();
        let mut put = |key: &str, text: &str| {
            if !text.is_empty() {
                out.insert(key.into(), text.into());
            }
        };
        put("name", &self.name);
        put("group", &self.group);
        put("kind", &self.kind);
        put("uid", &self.uid);
        if !self.causes.is_empty() {
            let causes = self.causes.iter().map(Cause::to_json).collect();
            out.insert("causes".into(), Value::Array(causes));
        }
        if self.retry_after_seconds > 0 {
            out.insert("retryAfterSeconds".into(), self.retry_after_seconds.into());
        }
        Value::Object(out)
    }
}

impl Cause {
    fn to_json(&self) -> Value {
        let mut out = Map::new();
        for (key, text) in [
            ("reason", &self.reason),
            ("message", &self.message),
            ("field", &self.field),
        ] {
            if !text.is_empty() {
                out.insert(key.into(), text.as_str().into());
            }
        }
        Value::Object(out)
    }
}

impl From<&FieldError> for Cause {
    fn from(error: &FieldError) -> Self {
        Self {
            reason: error.kind.reason().into(),
            message: error.body(),
            field: error.path.clone(),
        }
    }
}
