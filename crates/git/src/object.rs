//! Objects of git: names, trees and commits.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use bytes::Bytes;
use sha1::{Digest as _, Sha1};

use crate::{Error, Result};

/// The name of an object: the SHA-1 of its kind, size and content.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Oid([u8; 20]);

impl Oid {
    /// The name that stands for no object.
    pub const ZERO: Self = Self([0; 20]);
    /// The tree without entries.
    pub const EMPTY_TREE: Self = Self([
        0x4b, 0x82, 0x5d, 0xc6, 0x42, 0xcb, 0x6e, 0xb9, 0xa0, 0x60, 0xe5, 0x4b, 0xf8, 0xd6, 0x92,
        0x88, 0xfb, 0xee, 0x49, 0x04,
    ]);

    /// The name of an object with a content.
    pub fn of(kind: Kind, content: &[u8]) -> Self {
        let mut hash = Sha1::new();
        hash.update(format!("{} {}\0", kind.as_str(), content.len()));
        hash.update(content);
        Self(hash.finalize().into())
    }

    /// The name in its binary form.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self)
    }

    /// The twenty bytes.
    pub fn as_bytes(&self) -> &[u8; 20] {
        &self.0
    }

    /// True if this stands for no object.
    pub fn is_zero(&self) -> bool {
        *self == Self::ZERO
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl fmt::Debug for Oid {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl FromStr for Oid {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let invalid = || Error::protocol(format!("{text:?} is not the name of an object"));
        if text.len() != 40 || !text.is_ascii() {
            return Err(invalid());
        }
        let mut bytes = [0; 20];
        for (index, byte) in bytes.iter_mut().enumerate() {
            let digits = &text[index * 2..index * 2 + 2];
            *byte = u8::from_str_radix(digits, 16).map_err(|_| invalid())?;
        }
        Ok(Self(bytes))
    }
}

/// What an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A state of all files, with its author and its parents.
    Commit,
    /// A directory.
    Tree,
    /// The content of a file.
    Blob,
    /// A name with an author.
    Tag,
}

impl Kind {
    /// Its name in headers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::Tree => "tree",
            Self::Blob => "blob",
            Self::Tag => "tag",
        }
    }
}

/// An object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Object {
    /// What it is.
    pub kind: Kind,
    /// What it consists of.
    pub content: Bytes,
}

impl Object {
    /// Makes an object.
    pub fn new(kind: Kind, content: impl Into<Bytes>) -> Self {
        let content = content.into();
        Self { kind, content }
    }

    /// Its name.
    pub fn oid(&self) -> Oid {
        Oid::of(self.kind, &self.content)
    }
}

/// Objects by name.
pub type Objects = BTreeMap<Oid, Object>;

/// What an entry of a tree is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// A file.
    File,
    /// A file that can be executed.
    Executable,
    /// A symbolic link, whose content is the target.
    Link,
    /// A directory.
    Directory,
    /// A commit of another repository.
    Submodule,
    /// A mode that today's git does not write, but keeps.
    Other(u32),
}

impl Mode {
    fn read(text: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(text).ok()?;
        Some(match u32::from_str_radix(text, 8).ok()? {
            0o100_644 => Self::File,
            0o100_755 => Self::Executable,
            0o120_000 => Self::Link,
            0o040_000 => Self::Directory,
            0o160_000 => Self::Submodule,
            other => Self::Other(other),
        })
    }

    fn bits(self) -> u32 {
        match self {
            Self::File => 0o100_644,
            Self::Executable => 0o100_755,
            Self::Link => 0o120_000,
            Self::Directory => 0o040_000,
            Self::Submodule => 0o160_000,
            Self::Other(bits) => bits,
        }
    }
}

/// A directory: entries by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    /// Mode and object by name.
    pub entries: BTreeMap<Vec<u8>, (Mode, Oid)>,
}

impl Tree {
    /// Reads the content of a tree.
    pub fn read(oid: Oid, content: &[u8]) -> Result<Self> {
        let damaged = || Error::Object(oid, "the tree is damaged".to_owned());
        let mut tree = Self::default();
        let mut rest = content;
        while !rest.is_empty() {
            let space = rest
                .iter()
                .position(|byte| *byte == b' ')
                .ok_or_else(damaged)?;
            let mode = Mode::read(&rest[..space]).ok_or_else(damaged)?;
            rest = &rest[space + 1..];
            let end = rest
                .iter()
                .position(|byte| *byte == 0)
                .ok_or_else(damaged)?;
            let name = rest[..end].to_vec();
            let target = rest.get(end + 1..end + 21).and_then(Oid::from_bytes);
            let target = target.ok_or_else(damaged)?;
            if name.is_empty() || name.contains(&b'/') || name == b"." || name == b".." {
                return Err(damaged());
            }
            tree.entries.insert(name, (mode, target));
            rest = &rest[end + 21..];
        }
        Ok(tree)
    }

    /// The content of the tree, with its entries in the order of git: directories as if their names ended in a slash.
    pub fn write(&self) -> Vec<u8> {
        let mut entries: Vec<_> = self.entries.iter().collect();
        let key = |(name, (mode, _)): &(&Vec<u8>, &(Mode, Oid))| {
            let mut key = (*name).clone();
            if *mode == Mode::Directory {
                key.push(b'/');
            }
            key
        };
        entries.sort_by_cached_key(key);
        let mut content = Vec::new();
        for (name, (mode, oid)) in entries {
            content.extend_from_slice(format!("{:o} ", mode.bits()).as_bytes());
            content.extend_from_slice(name);
            content.push(0);
            content.extend_from_slice(oid.as_bytes());
        }
        content
    }
}

/// A state of all files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// The directory.
    pub tree: Oid,
    /// The states that it follows.
    pub parents: Vec<Oid>,
}

impl Commit {
    /// Reads what matters here of a commit.
    pub fn read(oid: Oid, content: &[u8]) -> Result<Self> {
        let damaged = || Error::Object(oid, "the commit is damaged".to_owned());
        let mut tree = None;
        let mut parents = Vec::new();
        for line in content.split(|byte| *byte == b'\n') {
            let line = std::str::from_utf8(line).unwrap_or_default();
            match line.split_once(' ') {
                Some(("tree", name)) if tree.is_none() => tree = Some(name.parse()?),
                Some(("parent", name)) => parents.push(name.parse()?),
                _ => break,
            }
        }
        let tree = tree.ok_or_else(damaged)?;
        Ok(Self { tree, parents })
    }
}

/// What a tag names, as far as it says so in its first line.
pub fn tagged(oid: Oid, content: &[u8]) -> Result<Oid> {
    let line = content.split(|byte| *byte == b'\n').next();
    let line = line.and_then(|line| std::str::from_utf8(line).ok());
    let name = line.and_then(|line| line.strip_prefix("object "));
    match name {
        Some(name) => name.parse(),
        None => Err(Error::Object(oid, "the tag is damaged".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_git() {
        assert_eq!(Oid::of(Kind::Tree, b""), Oid::EMPTY_TREE);
        let blob = Oid::of(Kind::Blob, b"hello\n").to_string();
        assert_eq!(blob, "ce013625030ba8dba906f756967f9e9ca394464a");
        assert_eq!(blob.parse::<Oid>().unwrap().to_string(), blob);
        assert!("xyz".parse::<Oid>().is_err());
    }

    #[test]
    fn directories_are_sorted_as_if_they_ended_in_a_slash() {
        let mut tree = Tree::default();
        let blob = Oid::of(Kind::Blob, b"");
        tree.entries
            .insert(b"a".to_vec(), (Mode::Directory, Oid::EMPTY_TREE));
        tree.entries.insert(b"a.b".to_vec(), (Mode::File, blob));
        tree.entries.insert(b"a0".to_vec(), (Mode::File, blob));
        let content = tree.write();
        let names: Vec<usize> = [&b"100644 a.b\0"[..], b"40000 a\0", b"100644 a0\0"]
            .iter()
            .map(|text| {
                content
                    .windows(text.len())
                    .position(|found| found == *text)
                    .unwrap()
            })
            .collect();
        assert!(names.is_sorted(), "{names:?}");
        assert_eq!(
            Tree::read(Oid::of(Kind::Tree, &content), &content).unwrap(),
            tree
        );
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in ["..", ".", "a/b", ""] {
            let mut content = format!("100644 {name}\0").into_bytes();
            content.extend_from_slice(Oid::EMPTY_TREE.as_bytes());
            assert!(Tree::read(Oid::ZERO, &content).is_err(), "{name:?}");
        }
        assert!(Tree::read(Oid::ZERO, b"100644 a\0short").is_err());
    }
}
