//! Errors of a reconcile: when to try again, and what to count them as.

use std::fmt::Display;

/// When a key is reconciled again after an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    /// Soon, with a wait that doubles: a conflict, a server that is busy or away.
    Backoff,
    /// Not so soon, with a longer wait that doubles: a refusal that lasts until somebody changes
    /// rights or the object, which a watch usually reports first.
    Slowly,
}

/// An error of a reconcile.
pub trait ReconcileError: Display + Send {
    /// When to try again.
    fn retry(&self) -> Retry {
        Retry::Backoff
    }

    /// One word for metrics, without names of objects.
    fn label(&self) -> &'static str {
        "error"
    }
}

impl ReconcileError for std::convert::Infallible {}

impl ReconcileError for kube::Error {
    fn retry(&self) -> Retry {
        match self {
            Self::Api(status) => retry_of_code(status.code),
            Self::SerdeError(_) => Retry::Slowly,
            _ => Retry::Backoff,
        }
    }

    fn label(&self) -> &'static str {
        match self {
            Self::Api(status) => label_of_code(status.code),
            Self::SerdeError(_) => "unreadable",
            _ => "unreachable",
        }
    }
}

/// When a request that was answered with an HTTP status code is worth repeating.
pub fn retry_of_code(code: u16) -> Retry {
    match code {
        // What is missing may be about to come; the others may succeed next time.
        404 | 408 | 409 | 410 | 429 => Retry::Backoff,
        400..500 => Retry::Slowly,
        _ => Retry::Backoff,
    }
}

/// One word for an HTTP status code that is an error.
pub fn label_of_code(code: u16) -> &'static str {
    match code {
        400 => "bad_request",
        401 => "unauthorized",
        403 => "forbidden",
        404 => "not_found",
        409 => "conflict",
        410 => "expired",
        422 => "invalid",
        429 => "too_many_requests",
        500..600 => "server_error",
        _ => "refused",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_not_repeated_like_outages() {
        for (code, retry, label) in [
            (403, Retry::Slowly, "forbidden"),
            (422, Retry::Slowly, "invalid"),
            (409, Retry::Backoff, "conflict"),
            (429, Retry::Backoff, "too_many_requests"),
            (503, Retry::Backoff, "server_error"),
        ] {
            let status = kube::core::Status::failure("no", "Reason").with_code(code);
            let error = kube::Error::Api(Box::new(status));
            assert_eq!((error.retry(), error.label()), (retry, label), "{code}");
        }
    }
}
