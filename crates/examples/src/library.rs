//! The examples that are part of the binary.

use std::borrow::Cow;
use std::path::Path;

use crate::script::{Script, ScriptError};

/// The file in the folder of an example that says what is done and what is promised.
pub const SCRIPT: &str = "script.yaml";

/// A text that is part of the binary, or was read.
type Text = Cow<'static, str>;

/// An example: a folder of files.
#[derive(Debug, Clone)]
pub struct Example {
    /// The name of the folder.
    pub name: Text,
    /// Paths within the folder, and contents.
    pub files: Cow<'static, [(Text, Text)]>,
}

/// All examples, sorted by name.
pub const EXAMPLES: &[Example] = include!(concat!(env!("OUT_DIR"), "/examples.rs"));

impl Example {
    /// Finds an example by its name.
    pub fn find(name: &str) -> Option<&'static Self> {
        EXAMPLES.iter().find(|example| example.name == name)
    }

    /// Reads a folder that is not part of the binary.
    pub fn read(folder: &Path) -> std::io::Result<Self> {
        let mut files = Vec::new();
        read_files(folder, "", &mut files)?;
        Ok(Self {
            name: folder.to_string_lossy().into_owned().into(),
            files: files.into(),
        })
    }

    /// The contents of a file.
    pub fn file(&self, path: &str) -> Option<&str> {
        let mut files = self.files.iter();
        files
            .find(|(known, _)| *known == path)
            .map(|(_, text)| &**text)
    }

    /// Files below a folder, with their paths in it.
    pub(crate) fn below(&self, folder: &str) -> impl Iterator<Item = (&str, &str)> {
        let prefix = format!("{}/", folder.trim_end_matches('/'));
        self.files.iter().filter_map(move |(path, text)| {
            let path = path.strip_prefix(&prefix)?;
            Some((path, &**text))
        })
    }

    /// Reads and checks the script.
    pub fn script(&self) -> Result<Script, ScriptError> {
        let text = self.file(SCRIPT).unwrap_or_default();
        let is_there = |path: &str| self.file(path).is_some() || self.below(path).next().is_some();
        Script::parse(text, is_there)
    }
}

fn read_files(folder: &Path, prefix: &str, files: &mut Vec<(Text, Text)>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let path = format!("{prefix}{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            read_files(&entry.path(), &format!("{path}/"), files)?;
        } else {
            let text = std::fs::read_to_string(entry.path())?;
            files.push((path.into(), text.into()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_examples_have_a_script_that_can_be_read_and_a_readme() {
        for example in EXAMPLES {
            let script = example.script();
            assert!(script.is_ok(), "{}: {}", example.name, script.unwrap_err());
            assert!(example.file("README.md").is_some(), "{}", example.name);
        }
        assert!(!EXAMPLES.is_empty());
    }
}
