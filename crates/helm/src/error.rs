//! Why a chart cannot be loaded or rendered.

use bellwether_json::yaml::YamlError;

/// Why there is no result. The texts are Helm's where Helm has one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The chart itself is wrong.
    #[error("{0}")]
    Chart(String),
    /// Values or flags are wrong.
    #[error("{0}")]
    Values(String),
    /// Values do not satisfy the schemas of the charts.
    #[error(
        "values don't meet the specifications of the schema(s) in the following chart(s):\n{0}"
    )]
    Schema(String),
    /// A template failed.
    #[error("{0}")]
    Render(String),
    /// What templates produced is not a manifest.
    #[error("{0}")]
    Manifest(String),
}

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    pub(crate) fn chart(message: impl Into<String>) -> Self {
        Self::Chart(message.into())
    }

    pub(crate) fn values(message: impl Into<String>) -> Self {
        Self::Values(message.into())
    }
}

/// The text of a YAML error with its place.
pub(crate) fn yaml_text(error: &YamlError) -> String {
    format!(
        "error converting YAML to JSON: yaml: line {}: {}",
        error.line, error.message
    )
}
