//! Reading archives.

use std::io::{self, Read};

use crate::BLOCK;
use crate::header::{CHECKSUM, Header, NAME, PREFIX, SIZE, TYPE, checksum};
use crate::write::Kind;

/// Why an archive cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It ends early, or cannot be read.
    #[error("the archive ends early or cannot be read: {0}")]
    Io(#[from] io::Error),
    /// Something in it is not as it was written.
    #[error("the archive is damaged: {0}")]
    Damaged(&'static str),
    /// A link, a device or something else.
    #[error("{0:?} in the archive is neither a file nor a directory")]
    Special(String),
    /// A name that leads out of the place where the archive is unpacked.
    #[error("{0:?} in the archive leads elsewhere")]
    Outside(String),
}

/// An entry; its content follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name, of parts that are separated by `/`.
    pub name: String,
    /// What it is.
    pub kind: Kind,
    /// How many bytes its content has.
    pub length: u64,
}

/// Reads an archive, an entry at a time. What is left of a content is passed over.
#[derive(Debug)]
pub struct Reader<R> {
    from: R,
    /// Bytes of the current content that nobody has read, and those that fill its last block.
    left: u64,
    padding: u64,
}

impl<R: Read> Reader<R> {
    /// Begins with the first entry.
    pub fn new(from: R) -> Self {
        Self {
            from,
            left: 0,
            padding: 0,
        }
    }

    /// The next entry; nothing at the end.
    pub fn next_entry(&mut self) -> Result<Option<Entry>, ReadError> {
        self.pass_over(self.left + self.padding)?;
        let mut header: Header = [0; BLOCK];
        self.from.read_exact(&mut header)?;
        if header.iter().all(|byte| *byte == 0) {
            self.left = 0;
            self.padding = 0;
            return Ok(None);
        }
        if CHECKSUM.number(&header) != Some(checksum(&header)) {
            return Err(ReadError::Damaged("a header has another sum"));
        }
        let entry = entry(&header)?;
        self.left = entry.length;
        self.padding = entry.length.next_multiple_of(BLOCK as u64) - entry.length;
        Ok(Some(entry))
    }

    fn pass_over(&mut self, length: u64) -> Result<(), ReadError> {
        let passed = io::copy(&mut self.from.by_ref().take(length), &mut io::sink())?;
        if passed != length {
            return Err(ReadError::Io(io::ErrorKind::UnexpectedEof.into()));
        }
        Ok(())
    }
}

/// The content of the current entry.
impl<R: Read> Read for Reader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.from.by_ref().take(self.left).read(buffer)?;
        if read == 0 && self.left > 0 && !buffer.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.left -= read as u64;
        Ok(read)
    }
}

fn entry(header: &Header) -> Result<Entry, ReadError> {
    const NO_TEXT: ReadError = ReadError::Damaged("a name is not text");
    let short = NAME.text(header).ok_or(NO_TEXT)?;
    let name = match PREFIX.text(header).ok_or(NO_TEXT)? {
        "" => short.to_owned(),
        prefix => format!("{prefix}/{short}"),
    };
    let kind = match header[TYPE] {
        b'0' | 0 => Kind::File,
        b'5' => Kind::Directory,
        _ => return Err(ReadError::Special(name)),
    };
    let plain = name.trim_end_matches('/');
    if plain.is_empty() || plain.split('/').any(|part| ["", ".", ".."].contains(&part)) {
        return Err(ReadError::Outside(name));
    }
    // A header has eleven octal digits: no sum of lengths overflows.
    let length = SIZE.number(header);
    let length = length.ok_or(ReadError::Damaged("a length is not a number"))?;
    Ok(Entry { name, kind, length })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::{Attributes, Writer};

    const PRIVATE: Attributes = Attributes {
        kind: Kind::File,
        mode: 0o600,
        owner: 0,
    };

    fn archive(files: &[(String, Vec<u8>)]) -> Vec<u8> {
        let mut writer = Writer::new(Vec::new());
        for (name, content) in files {
            writer.file(name, PRIVATE, content).unwrap();
        }
        writer.finish().unwrap()
    }

    fn files(archive: &[u8]) -> Result<Vec<(String, Vec<u8>)>, ReadError> {
        let mut reader = Reader::new(archive);
        let mut files = Vec::new();
        while let Some(entry) = reader.next_entry()? {
            let mut content = Vec::new();
            reader.read_to_end(&mut content)?;
            files.push((entry.name, content));
        }
        Ok(files)
    }

    proptest! {
        #[test]
        fn files_are_read_as_they_were_written(
            files in proptest::collection::vec(("[a-z]{1,60}(/[a-z]{1,60}){0,2}", proptest::collection::vec(any::<u8>(), 0..1500)), 0..5)
        ) {
            let archive = archive(&files);
            prop_assert_eq!(archive.len() % BLOCK, 0);
            prop_assert_eq!(self::files(&archive).unwrap(), files);
        }

        #[test]
        fn an_archive_that_is_cut_off_is_an_error(length in 1_usize..2000, kept in 0_usize..2560) {
            let whole = archive(&[("a".to_owned(), vec![7; length])]);
            // One block of zeros is an end; what matters is before it.
            let content = BLOCK + length.next_multiple_of(BLOCK) + BLOCK;
            prop_assume!(kept < content);
            prop_assert!(self::files(&whole[..kept]).is_err());
        }

        #[test]
        fn nothing_that_is_read_panics(bytes in proptest::collection::vec(any::<u8>(), 0..1200)) {
            let _ = self::files(&bytes);
        }
    }

    #[test]
    fn a_changed_header_is_noticed() {
        let mut archive = archive(&[("a".to_owned(), vec![1])]);
        archive[0] = b'b';
        assert!(matches!(files(&archive), Err(ReadError::Damaged(_))));
    }

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in ["../a", "/a", "a//b", "a/./b"] {
            let archive = archive(&[(name.to_owned(), vec![1])]);
            let read = files(&archive);
            assert!(
                matches!(read, Err(ReadError::Outside(_))),
                "{name}: {read:?}"
            );
        }
    }

    #[test]
    fn a_name_has_to_fit() {
        let mut writer = Writer::new(Vec::new());
        let long = "a".repeat(101);
        assert!(writer.file(&long, PRIVATE, b"").is_err());
        assert!(writer.file("", PRIVATE, b"").is_err());
        let folder = format!("{}/{}", "d".repeat(150), "f".repeat(100));
        writer.file(&folder, PRIVATE, b"x").unwrap();
        let read = files(&writer.finish().unwrap()).unwrap();
        assert_eq!(read, [(folder, b"x".to_vec())]);
    }
}
