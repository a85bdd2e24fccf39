//! What can go wrong with a repository elsewhere.

use crate::Oid;

/// What an operation returns.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation on a repository failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The address cannot be used.
    #[error("{0}")]
    Address(String),
    /// The server cannot be reached, or does not answer. A later attempt may succeed.
    #[error("cannot reach {address}: {problem}")]
    Unreachable {
        /// Where the repository is.
        address: String,
        /// What the connection said.
        problem: String,
    },
    /// The server refuses the credentials, or wants some.
    #[error("{address} refuses access ({problem}); check the credentials")]
    Denied {
        /// Where the repository is.
        address: String,
        /// What the server said.
        problem: String,
    },
    /// There is no such repository, branch or folder.
    #[error("{0}")]
    NotFound(String),
    /// The server does not accept the push, and the branch has not moved.
    #[error("the push to {branch} was rejected: {reason}")]
    Rejected {
        /// The branch.
        branch: String,
        /// What the server said.
        reason: String,
    },
    /// The branch moved at each attempt to push.
    #[error(
        "the branch {branch} moved during each of {attempts} attempts to push; try again later"
    )]
    Contended {
        /// The branch.
        branch: String,
        /// How many attempts were made.
        attempts: u32,
    },
    /// The server said something that is not in the protocol.
    #[error("the server's answer cannot be understood: {0}")]
    Protocol(String),
    /// Something is larger than what is read.
    #[error("{0}")]
    TooLarge(String),
    /// An object is damaged, or is missing where it should be.
    #[error("object {0}: {1}")]
    Object(Oid, String),
    /// The key of signatures or of SSH cannot be used.
    #[error("{0}")]
    Key(String),
}

impl Error {
    /// A message about the protocol.
    pub(crate) fn protocol(message: impl Into<String>) -> Self {
        Self::Protocol(message.into())
    }

    /// True if the same attempt may succeed later without anybody changing anything.
    pub fn is_temporary(&self) -> bool {
        matches!(self, Self::Unreachable { .. } | Self::Contended { .. })
    }
}
