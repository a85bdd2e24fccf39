//! The error of controllers that write into the status of an object why they could not finish.

use bellwether_runtime::{ReconcileError, RequestError, Retry};

/// Why an object could not be reconciled.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A request failed.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The object is not as it should be; its status says why. Tried again then.
    #[error("{0}")]
    Reported(String, Retry),
}

impl From<kube::Error> for Error {
    fn from(error: kube::Error) -> Self {
        Self::Request(error.into())
    }
}

impl ReconcileError for Error {
    fn retry(&self) -> Retry {
        match self {
            Self::Request(error) => error.retry(),
            Self::Reported(_, retry) => *retry,
        }
    }

    fn label(&self) -> &'static str {
        match self {
            Self::Request(error) => error.label(),
            Self::Reported(..) => "reported",
        }
    }
}
