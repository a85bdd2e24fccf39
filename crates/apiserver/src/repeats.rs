//! Keys that occur more than once in a body, and how Kubernetes complains of them.

use bellwether_json::yaml::DuplicateKey;

/// Keys that occur more than once in a mapping. The last one counts, which is seldom what is meant.
#[derive(Debug)]
pub(crate) enum Repeats {
    /// Paths in a JSON text.
    Json(Vec<String>),
    /// Keys in a YAML text, with their lines.
    Yaml(Vec<DuplicateKey>),
}

impl Repeats {
    /// For a body that cannot have any.
    pub(crate) fn none() -> Self {
        Self::Json(Vec::new())
    }

    /// What to warn of.
    pub(crate) fn warnings(&self) -> Vec<String> {
        match self {
            Self::Json(paths) => paths
                .iter()
                .map(|path| format!("duplicate field \"{path}\""))
                .collect(),
            Self::Yaml(keys) => keys.iter().map(ToString::to_string).collect(),
        }
    }

    /// Why strict decoding fails; YAML's make one error of several lines.
    pub(crate) fn errors(&self) -> Vec<String> {
        let warnings = self.warnings();
        match self {
            Self::Yaml(keys) if !keys.is_empty() => {
                let lines = warnings.join("\n  ");
                vec![format!("yaml: unmarshal errors:\n  {lines}")]
            }
            _ => warnings,
        }
    }
}
