//! The files of a build, as values.

use std::collections::{BTreeMap, BTreeSet};

use crate::path;

/// Files by path. Paths have `/` between their parts and are either all absolute or all relative to
/// one directory, which is `.`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    files: BTreeMap<String, Vec<u8>>,
    directories: BTreeSet<String>,
    absent: BTreeSet<String>,
    /// Directories of the tree with the content of remote bases, by address.
    remotes: BTreeMap<String, String>,
}

impl Tree {
    /// Makes an empty tree.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a file, and with it the directories that it is in.
    pub fn add_file(&mut self, path: &str, content: impl Into<Vec<u8>>) {
        let path = path::clean(path);
        let mut parent = path::parent(&path).to_owned();
        while self.directories.insert(parent.clone()) && !matches!(parent.as_str(), "." | "/") {
            parent = path::parent(&parent).to_owned();
        }
        self.files.insert(path, content.into());
    }

    /// Records that a directory exists.
    pub fn add_directory(&mut self, path: &str) {
        self.directories.insert(path::clean(path));
    }

    /// Records that nothing exists at a path, so that [`crate::needs`] does not ask for it again.
    pub fn add_absent(&mut self, path: &str) {
        self.absent.insert(path::clean(path));
    }

    /// Records in which directory of the tree the content of a remote base is.
    pub fn add_remote_directory(&mut self, address: &str, path: &str) {
        self.remotes.insert(address.to_owned(), path::clean(path));
    }

    /// The content of a file.
    pub(crate) fn file(&self, path: &str) -> Option<&[u8]> {
        self.files.get(path).map(Vec::as_slice)
    }

    pub(crate) fn is_directory(&self, path: &str) -> bool {
        self.directories.contains(path)
    }

    /// True if it is known what is at the path, be it nothing.
    pub(crate) fn knows(&self, path: &str) -> bool {
        self.files.contains_key(path) || self.is_directory(path) || self.absent.contains(path)
    }

    pub(crate) fn remote(&self, address: &str) -> Option<&str> {
        self.remotes.get(address).map(String::as_str)
    }
}

impl<P: AsRef<str>, C: Into<Vec<u8>>> FromIterator<(P, C)> for Tree {
    fn from_iter<I: IntoIterator<Item = (P, C)>>(files: I) -> Self {
        let mut tree = Self::new();
        for (path, content) in files {
            tree.add_file(path.as_ref(), content);
        }
        tree
    }
}
