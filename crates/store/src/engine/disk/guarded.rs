//! A file that is not written to before its owner knows that it is sound.

use std::fmt;
use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use redb::StorageBackend;
use redb::backends::FileBackend;

use crate::error::OpenError;

/// A file for a database, whose changes stay in memory until [`release`](Self::release).
///
/// A database writes to its file while it opens it, at least to note that it is open, and to repair
/// it. If the file then turns out to be damaged, it must still be what it was before.
#[derive(Clone)]
pub(super) struct GuardedFile {
    file: Arc<dyn StorageBackend>,
    /// What has been done to the file but not yet to the disk; nothing once it is released.
    held: Arc<Mutex<Option<Held>>>,
}

/// Changes in the order in which they were made.
struct Held {
    changes: Vec<Change>,
    /// The length the file would have.
    length: u64,
}

#[derive(Debug, Clone)]
enum Change {
    Write(u64, Vec<u8>),
    Length(u64),
    Sync,
}

impl GuardedFile {
    /// Opens an existing file.
    pub(super) fn open(path: &Path) -> Result<Self, OpenError> {
        let failed = |source| OpenError::Io {
            action: "open",
            path: path.to_owned(),
            source,
        };
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open(path)
            .map_err(failed)?;
        let file = FileBackend::new(file).map_err(|error| failed(io::Error::other(error)))?;
        Self::over(Arc::new(file)).map_err(failed)
    }

    /// Guards anything that is like a file.
    pub(super) fn over(file: Arc<dyn StorageBackend>) -> io::Result<Self> {
        let held = Held {
            changes: Vec::new(),
            length: file.len()?,
        };
        Ok(Self {
            file,
            held: Arc::new(Mutex::new(Some(held))),
        })
    }

    /// Guards the same file once more, as it is now.
    pub(super) fn guard_again(&self) -> io::Result<Self> {
        Self::over(Arc::clone(&self.file))
    }

    /// Whether there is nothing in it.
    pub(super) fn is_empty(&self) -> bool {
        self.held
            .lock()
            .as_ref()
            .is_some_and(|held| held.length == 0)
    }

    /// Writes what has been held back, and everything else from now on at once.
    pub(super) fn release(&self) -> io::Result<()> {
        let held = self.held.lock().take();
        for change in held.into_iter().flat_map(|held| held.changes) {
            match change {
                Change::Write(offset, data) => self.file.write(offset, &data)?,
                Change::Length(length) => self.file.set_len(length)?,
                Change::Sync => self.file.sync_data()?,
            }
        }
        Ok(())
    }
}

impl StorageBackend for GuardedFile {
    fn len(&self) -> io::Result<u64> {
        match &*self.held.lock() {
            Some(held) => Ok(held.length),
            None => self.file.len(),
        }
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        match &*self.held.lock() {
            Some(held) => held.read(&*self.file, offset, out),
            None => self.file.read(offset, out),
        }
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        if let Some(held) = &mut *self.held.lock() {
            held.length = length;
            held.changes.push(Change::Length(length));
            return Ok(());
        }
        self.file.set_len(length)
    }

    fn sync_data(&self) -> io::Result<()> {
        if let Some(held) = &mut *self.held.lock() {
            held.changes.push(Change::Sync);
            return Ok(());
        }
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        if let Some(held) = &mut *self.held.lock() {
            held.changes.push(Change::Write(offset, data.to_vec()));
            return Ok(());
        }
        self.file.write(offset, data)
    }

    fn close(&self) -> io::Result<()> {
        self.file.close()
    }
}

impl Held {
    /// Reads what the file would contain.
    fn read(&self, file: &dyn StorageBackend, offset: u64, out: &mut [u8]) -> io::Result<()> {
        if self.length.saturating_sub(offset) < out.len() as u64 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let stored = clamp(file.len()?, offset, out.len());
        file.read(offset, &mut out[..stored])?;
        out[stored..].fill(0);
        for change in &self.changes {
            match change {
                Change::Write(start, data) => overlay(out, offset, data, *start),
                Change::Length(length) => {
                    let kept = clamp(*length, offset, out.len());
                    out[kept..].fill(0);
                }
                Change::Sync => {}
            }
        }
        Ok(())
    }
}

/// How many of the `count` bytes at `offset` lie before `end`.
fn clamp(end: u64, offset: u64, count: usize) -> usize {
    let before = usize::try_from(end.saturating_sub(offset)).unwrap_or(usize::MAX);
    before.min(count)
}

/// Copies those of the bytes at `start` that fall into the buffer, which begins at `offset`.
fn overlay(buffer: &mut [u8], offset: u64, data: &[u8], start: u64) {
    let skipped = clamp(offset, start, data.len());
    let to = clamp(start, offset, buffer.len());
    for (to, from) in buffer[to..].iter_mut().zip(&data[skipped..]) {
        *to = *from;
    }
}

impl fmt::Debug for GuardedFile {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("GuardedFile")
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Does to a plain vector what the changes do to a file.
    fn apply(bytes: &mut Vec<u8>, file: &GuardedFile, change: Change) {
        match change {
            Change::Write(offset, data) => {
                let start = usize::try_from(offset).unwrap();
                bytes.resize(bytes.len().max(start + data.len()), 0);
                bytes[start..start + data.len()].copy_from_slice(&data);
                // As the database does, make room before writing.
                if file.len().unwrap() < bytes.len() as u64 {
                    file.set_len(bytes.len() as u64).unwrap();
                }
                file.write(offset, &data).unwrap();
            }
            Change::Length(length) => {
                bytes.resize(usize::try_from(length).unwrap(), 0);
                file.set_len(length).unwrap();
            }
            Change::Sync => file.sync_data().unwrap(),
        }
    }

    fn change() -> impl Strategy<Value = Change> {
        let data = prop::collection::vec(1..=255u8, 0..20);
        prop_oneof![
            4 => (0..50u64, data).prop_map(|(offset, data)| Change::Write(offset, data)),
            1 => (0..60u64).prop_map(Change::Length),
            1 => Just(Change::Sync),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn changes_are_seen_at_once_and_made_later(
            original in prop::collection::vec(1..=255u8, 1..40),
            changes in prop::collection::vec(change(), 0..12),
            (offset, count) in (0..60usize, 1..30usize),
        ) {
            let path = tempfile::NamedTempFile::new().unwrap().into_temp_path();
            std::fs::write(&path, &original).unwrap();
            let file = GuardedFile::open(&path).unwrap();
            let mut expected = original.clone();
            for change in changes {
                apply(&mut expected, &file, change);
            }

            prop_assert_eq!(file.len().unwrap(), expected.len() as u64);
            let mut read = vec![0; count];
            let result = file.read(offset as u64, &mut read);
            match expected.get(offset..offset + count) {
                Some(bytes) => prop_assert!(result.is_ok() && read == bytes),
                None => prop_assert!(result.is_err()),
            }
            prop_assert_eq!(&std::fs::read(&path).unwrap(), &original);

            file.release().unwrap();
            prop_assert_eq!(&std::fs::read(&path).unwrap(), &expected);
        }
    }
}
