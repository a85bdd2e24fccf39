//! Why a request gave nothing: the whole answer of the server, with its causes.

use std::time::Duration;

use bellwether_patch::managed::{CONFLICT_REASON, is_conflict_only_with};
use kube::core::Status;
use kube::core::response::StatusCause;

use crate::retry::{ReconcileError, Retry, label_of_code, retry_of_status};

/// How long an answer may take before a request counts as failed.
pub(crate) const REQUEST_TIMEOUT: Duration = Duration::from_mins(1);

/// Why a request gave nothing.
#[derive(Debug, Clone, thiserror::Error)]
pub enum RequestError {
    /// The server refused it, with this answer.
    #[error("{}", .0.message)]
    Refused(Box<Status>),
    /// The server was not reached, or its answer could not be read.
    #[error("{0}")]
    Unreached(String),
}

impl RequestError {
    /// Returns an error as if the server had refused a request.
    pub fn refused(code: u16, reason: &str, message: &str) -> Self {
        Self::Refused(Box::new(Status::failure(message, reason).with_code(code)))
    }

    /// Returns the answer of the server, if it refused.
    pub fn status(&self) -> Option<&Status> {
        match self {
            Self::Refused(status) => Some(status),
            Self::Unreached(_) => None,
        }
    }

    /// Returns the causes that the server gave, one for each field.
    pub fn causes(&self) -> &[StatusCause] {
        let details = self.status().and_then(|status| status.details.as_ref());
        details.map_or(&[], |details| &details.causes)
    }

    fn is_code(&self, code: u16) -> bool {
        self.status().is_some_and(|status| status.code == code)
    }

    fn is_reason(&self, reason: &str) -> bool {
        self.status().is_some_and(|status| status.reason == reason)
    }

    /// Returns true if the object, or its kind, does not exist.
    pub fn is_not_found(&self) -> bool {
        self.is_code(404)
    }

    /// Returns true if an object of that name exists already.
    pub fn is_already_there(&self) -> bool {
        self.is_code(409) && self.is_reason("AlreadyExists")
    }

    /// Returns true if the object was changed meanwhile, or its fields belong to others.
    pub fn is_conflict(&self) -> bool {
        self.is_code(409) && !self.is_reason("AlreadyExists")
    }

    /// Returns true if an apply was refused because of fields that belong to this manager alone, by
    /// what it did other than apply them.
    pub fn is_conflict_with_only(&self, manager: &str) -> bool {
        let causes = self.causes();
        let is_field_conflict = causes.iter().all(|cause| cause.reason == CONFLICT_REASON);
        self.is_conflict()
            && is_field_conflict
            && is_conflict_only_with(manager, causes.iter().map(|cause| cause.message.as_str()))
    }

    /// Returns true if the server does not allow it.
    pub fn is_forbidden(&self) -> bool {
        self.is_code(403)
    }

    /// Returns true if an object cannot be created because its namespace is missing, or being deleted.
    pub fn is_namespace_missing(&self) -> bool {
        let details = self.status().and_then(|status| status.details.as_ref());
        let is_namespace = details.is_some_and(|details| details.kind == "namespaces");
        let mut causes = self.causes().iter();
        self.is_not_found() && is_namespace
            || self.is_forbidden() && causes.any(|cause| cause.reason == "NamespaceTerminating")
    }

    /// Returns true if the object as sent cannot be accepted.
    pub fn is_invalid(&self) -> bool {
        self.is_code(422)
    }

    /// Returns true if the object as sent cannot be accepted because a field cannot be changed.
    pub fn is_immutable(&self) -> bool {
        let is_immutable = |text: &str| text.contains("immutable");
        let mut causes = self.causes().iter();
        self.is_invalid() && causes.any(|cause| is_immutable(&cause.message))
    }
}

impl From<kube::Error> for RequestError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::Refused(status),
            other => Self::Unreached(other.to_string()),
        }
    }
}

impl From<RequestError> for kube::Error {
    fn from(error: RequestError) -> Self {
        match error {
            RequestError::Refused(status) => Self::Api(status),
            RequestError::Unreached(problem) => Self::Service(problem.into()),
        }
    }
}

impl ReconcileError for RequestError {
    fn retry(&self) -> Retry {
        self.status().map_or(Retry::Backoff, retry_of_status)
    }

    fn label(&self) -> &'static str {
        self.status()
            .map_or("unreachable", |status| label_of_code(status.code))
    }
}

/// Returns an answer, if it comes in time.
pub async fn in_time<T>(
    answer: impl Future<Output = Result<T, kube::Error>>,
) -> Result<T, RequestError> {
    match tokio::time::timeout(REQUEST_TIMEOUT, answer).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(RequestError::Unreached(
            "no answer within a minute".to_owned(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn error(status: Value) -> RequestError {
        RequestError::Refused(serde_json::from_value(status).unwrap())
    }

    #[test]
    fn a_conflict_with_oneself_is_known_by_its_causes() {
        let check = |managers: &[&str], expected: bool| {
            let causes: Vec<Value> = managers
                .iter()
                .map(|manager| {
                    json!({"reason": "FieldManagerConflict", "field": ".data.a",
                        "message": format!("conflict with \"{manager}\" using v1")})
                })
                .collect();
            let error = error(json!({"code": 409, "reason": "Conflict",
                "message": "Apply failed", "details": {"causes": causes}}));
            assert_eq!(
                error.is_conflict_with_only("work-agent"),
                expected,
                "{managers:?}"
            );
        };
        check(&["work-agent"], true);
        check(&["work-agent", "work-agent"], true);
        check(&["work-agent", "kubectl"], false);
        check(&["work-agent-2"], false);
        check(&[], false);
    }

    #[test]
    fn a_missing_namespace_is_known_by_the_details() {
        let check = |status: Value, expected: bool| {
            assert_eq!(
                error(status.clone()).is_namespace_missing(),
                expected,
                "{status}"
            );
        };
        check(
            json!({"code": 404, "reason": "NotFound", "details": {"kind": "namespaces", "name": "n"}}),
            true,
        );
        check(
            json!({"code": 404, "reason": "NotFound", "details": {"kind": "birds", "name": "n"}}),
            false,
        );
        check(
            json!({"code": 403, "reason": "Forbidden", "details": {"causes": [
                {"reason": "NamespaceTerminating", "message": "namespace n is being terminated"}]}}),
            true,
        );
        check(json!({"code": 403, "reason": "Forbidden"}), false);
    }
}
