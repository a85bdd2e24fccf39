//! Errors of a reconcile: when to try again, and what to count them as.

use std::error::Error;
use std::fmt::{self, Display};
use std::time::Duration;

pub use bellwether_apply::Retry;

/// An error of a reconcile.
pub trait ReconcileError: Error + Send {
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
            Self::Api(status) => retry_of_status(status),
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

/// Returns the text of an error with those of its sources, as far as it does not say them itself.
pub fn with_sources(error: &dyn Error) -> impl Display {
    struct Chain<'a>(&'a dyn Error);
    impl Display for Chain<'_> {
        fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            let mut text = self.0.to_string();
            let mut next = self.0.source();
            while let Some(source) = next {
                let words = source.to_string();
                if !text.contains(&words) {
                    text.push_str(": ");
                    text.push_str(&words);
                }
                next = source.source();
            }
            formatter.write_str(&text)
        }
    }
    Chain(error)
}

/// The longest wait that a server may ask for.
const LONGEST_WAIT: Duration = Duration::from_mins(5);

/// When a request that was answered like this is worth repeating: when the server asks for it, if it says so.
pub(crate) fn retry_of_status(status: &kube::core::Status) -> Retry {
    match (retry_of_code(status.code), retry_after(status)) {
        (Retry::Backoff, Some(wait)) => Retry::After(wait),
        (retry, _) => retry,
    }
}

/// How long the server asks to wait.
fn retry_after(status: &kube::core::Status) -> Option<Duration> {
    let seconds = status.details.as_ref()?.retry_after_seconds;
    (seconds > 0).then(|| Duration::from_secs(seconds.into()).min(LONGEST_WAIT))
}

/// The causes that a server gives for refusing an object, as `field: message`; empty if it gives none.
pub fn causes_of(error: &kube::Error) -> Vec<String> {
    let kube::Error::Api(status) = error else {
        return Vec::new();
    };
    let details = status.details.as_ref();
    let causes = details.map_or(&[][..], |details| details.causes.as_slice());
    let text = |cause: &kube::core::response::StatusCause| match cause.field.as_str() {
        "" => cause.message.clone(),
        field => format!("{field}: {}", cause.message),
    };
    causes.iter().map(text).collect()
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
    use kube::core::response::{StatusCause, StatusDetails};

    use super::*;

    fn details(retry_after_seconds: u32, causes: Vec<StatusCause>) -> StatusDetails {
        StatusDetails {
            name: String::new(),
            group: String::new(),
            kind: String::new(),
            uid: String::new(),
            causes,
            retry_after_seconds,
        }
    }

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

    #[test]
    fn a_server_may_ask_for_a_wait() {
        let check = |code: u16, seconds: u32, expected: Retry| {
            let details = details(seconds, Vec::new());
            let status = kube::core::Status::failure("no", "Reason")
                .with_code(code)
                .with_details(details);
            let refused = crate::RequestError::Refused(Box::new(status.clone()));
            assert_eq!(refused.retry(), expected);
            assert_eq!(kube::Error::Api(Box::new(status)).retry(), expected);
        };
        check(429, 7, Retry::After(Duration::from_secs(7)));
        check(503, 100_000, Retry::After(LONGEST_WAIT));
        check(503, 0, Retry::Backoff);
        check(403, 7, Retry::Slowly);
    }

    #[test]
    fn an_error_is_logged_with_its_sources() {
        #[derive(Debug, thiserror::Error)]
        enum Failed {
            #[error("cannot read the Secret")]
            Silent(#[source] std::io::Error),
            #[error("cannot read the Secret: {0}")]
            Telling(#[source] std::io::Error),
        }
        let refused = || std::io::Error::other("connection refused");
        for error in [Failed::Silent(refused()), Failed::Telling(refused())] {
            let text = with_sources(&error).to_string();
            assert_eq!(text, "cannot read the Secret: connection refused");
        }
    }

    #[test]
    fn the_causes_of_a_refusal_are_kept() {
        let cause = |field: &str, message: &str| StatusCause {
            field: field.to_owned(),
            message: message.to_owned(),
            reason: "FieldValueInvalid".to_owned(),
        };
        let causes = vec![
            cause("spec.replicas", "must not be negative"),
            cause("", "no"),
        ];
        let details = details(0, causes);
        let status = kube::core::Status::failure("no", "Invalid").with_details(details);
        let causes = causes_of(&kube::Error::Api(Box::new(status)));
        assert_eq!(causes, ["spec.replicas: must not be negative", "no"]);
    }
}
