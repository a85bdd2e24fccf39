//! What can go wrong with a command.

use std::path::PathBuf;

/// Why a command failed: what, where, and what to do.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// There is no kubeconfig to find the cluster by.
    #[error(
        "no kubeconfig found: start `bellwether up`, or name one with --kubeconfig or KUBECONFIG"
    )]
    NoKubeconfig,
    /// The kubeconfig is not usable.
    #[error("cannot use the kubeconfig{}: {why}", place(.path.as_ref()))]
    Kubeconfig {
        /// Which one; several, or none in particular, if absent.
        path: Option<PathBuf>,
        /// Why not.
        why: String,
    },
    /// The server refused.
    #[error("error from server ({reason}): {message}")]
    Server {
        /// The code of its answer.
        code: u16,
        /// The reason as a word.
        reason: String,
        /// Its message.
        message: String,
    },
    /// The server could not be asked, or its answer not be read.
    #[error("cannot reach the cluster: {0}")]
    Connection(String),
    /// No resource of that name is served.
    #[error("the server doesn't have a resource type \"{0}\"")]
    NoType(String),
    /// The arguments make no sense together.
    #[error("{0}")]
    Usage(String),
    /// A manifest cannot be read.
    #[error("{place}: {why}")]
    Manifest {
        /// File, and document where there are several.
        place: String,
        /// What is wrong.
        why: String,
    },
    /// What was waited for did not come.
    #[error("timed out waiting for the condition on {0}")]
    TimedOut(String),
    /// Several things failed; each one has been printed.
    #[error("{failed} of {total} failed")]
    Several {
        /// How many.
        failed: usize,
        /// Out of how many.
        total: usize,
    },
    /// Nothing can be printed.
    #[error("cannot write: {0}")]
    Write(#[from] std::io::Error),
}

fn place(path: Option<&PathBuf>) -> String {
    path.map(|path| format!(" {}", path.display()))
        .unwrap_or_default()
}

impl Error {
    /// Whether the server said that there is no such object.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Server { code: 404, .. })
    }
}

impl From<kube::Error> for Error {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::Server {
                code: status.code,
                reason: status.reason.clone(),
                message: status.message.clone(),
            },
            other => Self::Connection(chain(&other)),
        }
    }
}

/// An error with all its causes, since the outermost seldom says why.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}
