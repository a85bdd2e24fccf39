//! What can go wrong with a command.

use std::path::PathBuf;

use crate::connection::Unreachable;

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
    #[error("Error from server ({reason}): {message}")]
    Server {
        /// The code of its answer.
        code: u16,
        /// The reason as a word.
        reason: String,
        /// Its message.
        message: String,
        /// The messages of its causes.
        causes: Vec<String>,
    },
    /// The server found the object wrong.
    #[error("{}", invalid(kind, name, causes))]
    Invalid {
        /// The kind of the object.
        kind: String,
        /// Its name.
        name: String,
        /// What is wrong with it.
        causes: Vec<String>,
    },
    /// No such kind is served.
    #[error(
        "resource mapping not found for name: \"{name}\" namespace: \"{namespace}\" from \"{place}\": \
         no matches for kind \"{kind}\" in version \"{version}\"\nensure CRDs are installed first"
    )]
    NoKind {
        /// The name of the object.
        name: String,
        /// Its namespace.
        namespace: String,
        /// Where the manifest is.
        place: String,
        /// The kind.
        kind: String,
        /// Its group and version.
        version: String,
    },
    /// The server does not answer.
    #[error(transparent)]
    Unreachable(#[from] Unreachable),
    /// Its answer cannot be read.
    #[error("cannot talk to the cluster: {0}")]
    Connection(String),
    /// No resource of that name is served.
    #[error("the server doesn't have a resource type \"{name}\"{}", guess(.meant.as_deref()))]
    NoType {
        /// What was asked for.
        name: String,
        /// What may have been meant.
        meant: Option<String>,
    },
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
    #[error("timed out waiting for the condition{}", on(.0.as_deref()))]
    TimedOut(Option<String>),
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

fn guess(meant: Option<&str>) -> String {
    meant
        .map(|name| format!("; did you mean {name}?"))
        .unwrap_or_default()
}

fn on(object: Option<&str>) -> String {
    object.map(|name| format!(" on {name}")).unwrap_or_default()
}

/// What is wrong with an object: in one line if it is one thing.
fn invalid(kind: &str, name: &str, causes: &[String]) -> String {
    let what = format!("The {kind} {name:?} is invalid: ");
    match causes {
        [only] => what + only,
        several => several
            .iter()
            .fold(what, |text, cause| format!("{text}\n* {cause}")),
    }
}

impl Error {
    /// What is printed about it, in kubectl's words; nothing if all has been said already.
    pub fn report(&self) -> Option<String> {
        match self {
            Self::Several { .. } => None,
            Self::Server { .. } | Self::Invalid { .. } | Self::Unreachable(_) => {
                Some(self.to_string())
            }
            other => Some(format!("error: {other}")),
        }
    }

    /// What becomes of a command some parts of which failed: one failure is its error, several are
    /// printed.
    pub(crate) fn sum_up(
        mut failures: Vec<Self>,
        total: usize,
        notes: &mut dyn std::io::Write,
    ) -> Result<(), Self> {
        if failures.len() == 1
            && let Some(error) = failures.pop()
        {
            return Err(error);
        }
        for text in failures.iter().filter_map(Self::report) {
            writeln!(notes, "{text}")?;
        }
        match failures.len() {
            0 => Ok(()),
            failed => Err(Self::Several { failed, total }),
        }
    }

    /// The same error, saying what was being done with which manifest.
    pub(crate) fn when(self, doing: &str, place: &str) -> Self {
        match self {
            Self::Server {
                code,
                reason,
                message,
                causes,
            } => Self::Server {
                code,
                reason,
                message: format!("error when {doing} \"{place}\": {message}"),
                causes,
            },
            other => other,
        }
    }

    /// Whether the server said that there is no such object.
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Server { code: 404, .. })
    }

    /// Whether the server said that one may not.
    pub(crate) fn is_forbidden(&self) -> bool {
        matches!(self, Self::Server { code: 403, .. })
    }

    /// What the server said, or what went wrong.
    pub(crate) fn message(&self) -> String {
        match self {
            Self::Server { message, .. } => message.clone(),
            other => other.to_string(),
        }
    }
}

impl From<kube::Error> for Error {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => invalid_object(&status).unwrap_or_else(|| Self::Server {
                code: status.code,
                reason: status.reason.clone(),
                message: status.message.clone(),
                causes: causes_of(&status),
            }),
            kube::Error::Service(error) => match error.downcast::<Unreachable>() {
                Ok(unreachable) => Self::Unreachable(*unreachable),
                Err(other) => Self::Connection(chain(&*other)),
            },
            other => Self::Connection(chain(&other)),
        }
    }
}

/// The messages of the causes of a refusal.
fn causes_of(status: &kube::core::Status) -> Vec<String> {
    let details = status.details.iter();
    let causes = details.flat_map(|details| &details.causes);
    causes.map(|cause| cause.message.clone()).collect()
}

/// What the server found wrong with an object, if that is why it refused.
fn invalid_object(status: &kube::core::Status) -> Option<Error> {
    let details = status.details.as_ref();
    let details = details.filter(|found| status.reason == "Invalid" && !found.causes.is_empty())?;
    let causes = details.causes.iter();
    let mut causes: Vec<String> = causes
        .map(|cause| match cause.field.as_str() {
            "" => cause.message.clone(),
            field => format!("{field}: {}", cause.message),
        })
        .collect();
    causes.dedup();
    Some(Error::Invalid {
        kind: details.kind.clone(),
        name: details.name.clone(),
        causes,
    })
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
