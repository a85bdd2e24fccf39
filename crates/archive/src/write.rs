//! Writing archives.

use std::io::{self, Read, Write};

use crate::BLOCK;
use crate::header::{
    CHECKSUM, GROUP, MAGIC, MODE, NAME, OWNER, PREFIX, SIZE, TIME, TYPE, checksum,
};

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
}

/// What is kept of an entry besides its name and its content.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attributes {
    /// What it is.
    pub kind: Kind,
    /// Permissions, such as `0o600`.
    pub mode: u32,
    /// The number of the owner, and of its group.
    pub owner: u32,
}

/// Why an entry cannot be written.
#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    /// The archive cannot be written to, or the content cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A name that no archive has.
    #[error("{0:?} cannot be a name in an archive: it is empty, too long or has a zero")]
    Name(String),
    /// More than a header can say.
    #[error("{0:?} is too large for an archive")]
    TooLarge(String),
    /// The content is not as long as was promised.
    #[error("{0:?} is not as long as it was when it was opened")]
    Length(String),
}

/// Writes an archive, an entry at a time. The order is that of the calls; no times are written.
#[derive(Debug)]
pub struct Writer<W> {
    to: W,
}

impl<W: Write> Writer<W> {
    /// Begins an archive.
    pub fn new(to: W) -> Self {
        Self { to }
    }

    /// Writes a file with a content that is in memory.
    pub fn file(
        &mut self,
        name: &str,
        attributes: Attributes,
        content: &[u8],
    ) -> Result<(), WriteError> {
        self.entry(name, attributes, content.len() as u64, content)
    }

    /// Writes a directory. Its name ends with `/`.
    pub fn directory(&mut self, name: &str, attributes: Attributes) -> Result<(), WriteError> {
        self.entry(name, attributes, 0, io::empty())
    }

    /// Writes an entry whose content is read while it is written, and has to be that long.
    pub fn entry(
        &mut self,
        name: &str,
        attributes: Attributes,
        length: u64,
        content: impl Read,
    ) -> Result<(), WriteError> {
        self.to.write_all(&header(name, attributes, length)?)?;
        let written = io::copy(&mut content.take(length), &mut self.to)?;
        if written != length {
            return Err(WriteError::Length(name.to_owned()));
        }
        self.to.write_all(padding(length))?;
        Ok(())
    }

    /// Writes the end of the archive.
    pub fn finish(mut self) -> Result<W, WriteError> {
        self.to.write_all(&[0; 2 * BLOCK])?;
        self.to.flush()?;
        Ok(self.to)
    }
}

/// What fills the last block of a content.
fn padding(length: u64) -> &'static [u8] {
    const ZEROS: [u8; BLOCK] = [0; BLOCK];
    let over = usize::try_from(length % BLOCK as u64).unwrap_or(0);
    &ZEROS[..(BLOCK - over) % BLOCK]
}

fn header(name: &str, attributes: Attributes, length: u64) -> Result<[u8; BLOCK], WriteError> {
    let mut header = [0; BLOCK];
    let (prefix, short) = split(name).ok_or_else(|| WriteError::Name(name.to_owned()))?;
    NAME.set(&mut header, short.as_bytes());
    PREFIX.set(&mut header, prefix.as_bytes());
    MODE.set_number(&mut header, u64::from(attributes.mode & 0o7777));
    OWNER.set_number(&mut header, u64::from(attributes.owner));
    GROUP.set_number(&mut header, u64::from(attributes.owner));
    if !SIZE.set_number(&mut header, length) {
        return Err(WriteError::TooLarge(name.to_owned()));
    }
    TIME.set_number(&mut header, 0);
    MAGIC.set(&mut header, b"ustar\x0000");
    header[TYPE] = match attributes.kind {
        Kind::File => b'0',
        Kind::Directory => b'5',
    };
    let sum = format!("{:06o}\0 ", checksum(&header));
    CHECKSUM.set(&mut header, sum.as_bytes());
    Ok(header)
}

/// The two fields that a name is kept in.
fn split(name: &str) -> Option<(&str, &str)> {
    const SHORT: usize = 100;
    const PREFIX: usize = 155;
    if name.is_empty() || name.contains('\0') {
        return None;
    }
    if name.len() <= SHORT {
        return Some(("", name));
    }
    let slashes = name.match_indices('/').map(|(at, _)| at);
    let mut places = slashes.filter(|at| *at <= PREFIX && name.len() - at - 1 <= SHORT);
    let at = places.find(|at| *at > 0 && at + 1 < name.len())?;
    Some((&name[..at], &name[at + 1..]))
}
