//! Where an object comes from and what changed it, for `buildMetadata`.

use std::fmt::Write as _;

use crate::id::Gvk;
use crate::path;

/// The annotation that says where an object comes from.
pub(crate) const ORIGIN: &str = "config.kubernetes.io/origin";

/// The annotation that lists what changed an object.
pub(crate) const TRANSFORMATIONS: &str = "alpha.config.kubernetes.io/transformations";

/// A file, or a generator or transformer in a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The file of an object, relative to the directory of the build.
    pub(crate) path: String,
    /// The file that configures the generator or transformer.
    pub(crate) configured_in: String,
    /// The generator or transformer.
    pub(crate) configured_by: Option<ConfiguredBy>,
}

/// A generator or transformer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ConfiguredBy {
    pub(crate) gvk: Gvk,
    pub(crate) name: String,
    pub(crate) namespace: String,
}

impl Origin {
    /// The origin of what is at a path below this one.
    pub(crate) fn join(&self, path: &str) -> Self {
        Self {
            path: self.below(path),
            ..self.clone()
        }
    }

    /// A built-in generator or transformer that a kustomization file names.
    pub(crate) fn builtin(&self, file: &str, kind: &str) -> Self {
        let configured_by = ConfiguredBy {
            gvk: Gvk {
                group: String::new(),
                version: "builtin".to_owned(),
                kind: kind.to_owned(),
            },
            ..ConfiguredBy::default()
        };
        Self {
            path: String::new(),
            configured_in: self.below(file),
            configured_by: Some(configured_by),
        }
    }

    fn below(&self, path: &str) -> String {
        if self.path.is_empty() {
            return path::clean(path);
        }
        path::join(&self.path, path)
    }

    /// The text of the annotation.
    pub(crate) fn to_text(&self) -> String {
        self.lines().concat()
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.path.is_empty() {
            lines.push(format!("path: {}\n", self.path));
        }
        if !self.configured_in.is_empty() {
            lines.push(format!("configuredIn: {}\n", self.configured_in));
        }
        if let Some(by) = &self.configured_by {
            lines.push("configuredBy:\n".to_owned());
            let parts = [
                ("apiVersion", by.gvk.api_version()),
                ("kind", by.gvk.kind.clone()),
                ("name", by.name.clone()),
                ("namespace", by.namespace.clone()),
            ];
            for (key, value) in parts.into_iter().filter(|(_, value)| !value.is_empty()) {
                lines.push(format!("  {key}: {value}\n"));
            }
        }
        lines
    }
}

/// The text of the annotation that lists transformations.
pub(crate) fn list(origins: &[Origin]) -> String {
    let mut text = String::new();
    for origin in origins {
        for (index, line) in origin.lines().iter().enumerate() {
            // Writing to a string cannot fail.
            let _ = write!(text, "{}{line}", if index == 0 { "- " } else { "  " });
        }
    }
    text
}
